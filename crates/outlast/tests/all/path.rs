//! The truncated hinge against the exact d.c. algorithm and against brute force, for every solver that takes it.
//!
//! The reference is Wu and Liu's algorithm, written out with Clarabel for every convex problem, started at the exact hinge
//! solution. On few rows no solver may end above it.

use crate::common::{Data, boxes, clarabel_dual, clarabel_solution, kernel_matrix};
use outlast::problem::{Norm, Problem, TwoClass};
use outlast::solver::{self, Options};
use outlast::{Control, KernelFunction, Loss};

const CLOSE: f64 = 1e-6;

/// The objective at the end of the d.c. path.
fn reference(problem: &TwoClass, kernel: &[f64]) -> f64 {
    let n = problem.rows();
    let mut truncated = vec![false; n];
    let mut best = f64::INFINITY;
    for _ in 0..50 {
        let (lower, upper) = boxes(problem, &truncated);
        let (_, beta) = clarabel_solution(kernel, problem.signs, &lower, &upper, problem.intercept);
        let f: Vec<f64> = (0..n).map(|i| (0..n).map(|j| kernel[i * n + j] * beta[j]).sum()).collect();
        let b = if problem.intercept { intercept(problem, &f, &beta, &lower, &upper) } else { 0.0 };
        let half_norm: f64 = 0.5 * (0..n).map(|i| beta[i] * f[i]).sum::<f64>();
        best = best.min(half_norm + problem.total_loss(&f, b));
        let own: Vec<bool> = (0..n).map(|i| problem.loss.truncates(problem.signs[i] * (f[i] + b))).collect();
        if own == truncated {
            break;
        }
        truncated = own;
    }
    best
}

/// The middle of what b may be, from the rows clearly inside or at the right side of their box.
fn intercept(problem: &TwoClass, f: &[f64], beta: &[f64], lower: &[f64], upper: &[f64]) -> f64 {
    let (mut lowest, mut highest) = (f64::INFINITY, f64::NEG_INFINITY);
    for row in 0..f.len() {
        let gradient = f[row] - problem.signs[row];
        let edge = 1e-6 * (upper[row] - lower[row]);
        if beta[row] < upper[row] - edge {
            lowest = lowest.min(gradient);
        }
        if beta[row] > lower[row] + edge {
            highest = highest.max(gradient);
        }
    }
    -0.5 * (lowest + highest)
}

fn solvers(kernel: &KernelFunction) -> &'static [&'static str] {
    match kernel {
        KernelFunction::Linear => &["kernel-smo", "linear-band", "linear-dcd"],
        _ => &["kernel-smo"],
    }
}

#[test]
fn no_solver_ends_above_the_exact_path() {
    let options = Options { tolerance: 1e-9, ..Options::default() };
    let mut moved = 0;
    for seed in 0..12 {
        for kernel in [KernelFunction::Linear, KernelFunction::Rbf { gamma: 0.4 }] {
            let data = Data::noisy(60, 2, 0.15, 900 + seed);
            let x = data.dense();
            let caps = vec![[0.1, 1.0, 10.0][seed as usize % 3]; data.rows];
            let loss = Loss::hinge().truncated_at([-1.0, 0.0][seed as usize % 2]).unwrap();
            let intercept = seed % 4 != 3;
            let problem = TwoClass {
                norm: Norm::Squared,
                x: &x,
                signs: &data.signs,
                caps: &caps,
                loss,
                kernel: &kernel,
                intercept,
            };
            let expected = reference(&problem, &kernel_matrix(&kernel, &x));
            for name in solvers(&kernel) {
                let solution = solver::solve(name, &Problem::Two(problem), &options, &Control::default()).unwrap();
                let above = (solution.objective - expected) / expected;
                assert!(above < CLOSE, "{name} {} seed {seed}: {above:e} above the exact path", kernel.name());
                moved += usize::from(solution.trace.len() > 1);
            }
        }
    }
    assert!(moved > 10, "hardly anything was truncated");
}

#[test]
fn linear_solvers_are_critical_and_never_below_the_global_optimum() {
    let kernel = KernelFunction::Linear;
    for seed in 0..4 {
        let data = Data::noisy(8, 2, 0.3, 300 + seed);
        let x = data.dense();
        let caps = vec![1.5; data.rows];
        let s = -0.5;
        let loss = Loss::hinge().truncated_at(s).unwrap();
        let problem = TwoClass {
            norm: Norm::Squared,
            x: &x,
            signs: &data.signs,
            caps: &caps,
            loss,
            kernel: &kernel,
            intercept: true,
        };
        let matrix = kernel_matrix(&kernel, &x);
        let value = |dropped: &dyn Fn(usize) -> bool| {
            let cap = |row: usize| if dropped(row) { 0.0 } else { caps[row] };
            let lower: Vec<f64> = (0..8).map(|row| if data.signs[row] > 0.0 { 0.0 } else { -cap(row) }).collect();
            let upper: Vec<f64> = (0..8).map(|row| if data.signs[row] > 0.0 { cap(row) } else { 0.0 }).collect();
            let price: f64 = (0..8).filter(|&row| dropped(row)).map(|row| caps[row] * (1.0 - s)).sum();
            price - clarabel_dual(&matrix, &data.signs, &lower, &upper, true)
        };
        let global = (0u32..1 << 8).map(|set| value(&|row| set >> row & 1 == 1)).fold(f64::INFINITY, f64::min);
        for name in solvers(&kernel) {
            let options = Options { tolerance: 1e-9, ..Options::default() };
            let solution = solver::solve(name, &Problem::Two(problem), &options, &Control::default()).unwrap();
            assert!(solution.objective >= global * (1.0 - CLOSE), "{name} seed {seed}");
            let own = value(&|row| solution.truncated[row]);
            assert!(
                (solution.objective - own).abs() <= CLOSE * own,
                "{name} seed {seed}: {} {own}",
                solution.objective
            );
        }
    }
}
