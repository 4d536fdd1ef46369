//! The l1 solver against a general conic solver on the linear program, and against a slow method on smooth losses.

use crate::common::{Random, relative};
use crate::sparse_data::{AGREEMENT, Data, TOLERANCE, converged, independent, options, selected};
use outlast::problem::Candidate;
use outlast::{Csr, Loss};
use std::time::{Duration, Instant};

/// Longest the widest case may take, in hardly optimised code on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_conic_solver_finds_the_same_optimum() {
    for (k, n, d, cap) in
        [(2, 60, 8, 0.3), (2, 50, 70, 1.0), (2, 80, 5, 30.0), (3, 50, 6, 0.5), (4, 40, 12, 1.0), (5, 60, 4, 5.0)]
    {
        for intercept in [true, false] {
            for varied in [false, true] {
                let data = Data::new(n, d, k, cap, 7 + n as u64);
                let data = if varied { data.varied(11 + k as u64) } else { data };
                let (optimum, _) = independent(&data, intercept);
                let what = format!("k {k}, {n} x {d}, intercept {intercept}, varied {varied}");
                let dense = data.solve(Loss::hinge(), intercept, TOLERANCE);
                converged(&dense);
                assert!(
                    (dense.objective - optimum).abs() <= AGREEMENT * optimum.abs() + 1e-9,
                    "{what}: {} {optimum}",
                    dense.objective
                );
                let sparse = data.solve_on(&data.sparse(), Loss::hinge(), intercept, &options(TOLERANCE));
                assert!((sparse.objective - optimum).abs() <= AGREEMENT * optimum.abs() + 1e-9, "{what}: sparse");
                assert!(selected(&dense) > 0, "{what}: the answer is trivial");
                let weights = dense.weights.as_ref().unwrap();
                assert!(weights.iter().zip(&data.rates).all(|(w, rate)| *rate < f64::INFINITY || *w == 0.0), "{what}");
            }
        }
    }
}

#[test]
fn sparse_columns_are_dense_ones_with_zeros() {
    for k in [2, 3] {
        let mut data = Data::new(120, 40, k, 1.0, 17);
        let mut random = Random(5);
        data.values.iter_mut().for_each(|value| *value *= if random.unit() < 0.1 { 3.0 } else { 0.0 });
        for loss in [Loss::hinge(), Loss::logistic(), Loss::hinge().truncated_at(-0.5).unwrap()] {
            let dense = data.solve(loss, true, TOLERANCE);
            let sparse = data.solve_on(&data.sparse(), loss, true, &options(TOLERANCE));
            converged(&dense);
            converged(&sparse);
            assert!(selected(&dense) > 0);
            if loss.truncation().is_none() {
                assert!(relative(sparse.objective, dense.objective) < AGREEMENT);
            }
        }
    }
}

#[test]
fn a_million_sparse_columns_are_taken() {
    let (n, d, each) = (100, 1_000_000, 10);
    let mut random = Random(9);
    let mut data = Data { n, d, k: 2, values: vec![], codes: vec![], caps: vec![1.0; n], rates: vec![1.0; d] };
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for row in 0..n {
        data.codes.push((row % 2) as u32);
        columns.push(row as u32 % 2);
        values.push(0.5);
        let mut rest: Vec<u32> = (1..each).map(|_| 2 + random.below(d - 2) as u32).collect();
        rest.sort_unstable();
        rest.dedup();
        // rows short of an entry by a repetition get the last column
        while rest.len() < each - 1 {
            rest.push(d as u32 - (each - rest.len()) as u32);
        }
        rest.sort_unstable();
        columns.extend(rest);
        values.extend((1..each).map(|_| random.normal()));
    }
    let starts: Vec<usize> = (0..=n).map(|row| row * each).collect();
    let x = Csr::new(n, d, starts, columns, values).unwrap();
    let start = Instant::now();
    let solution = data.solve_on(&x, Loss::hinge(), true, &options(TOLERANCE));
    converged(&solution);
    assert!(start.elapsed() < PATIENCE);
    // columns 0 and 1 tell the classes apart
    assert!(selected(&solution) >= 1 && solution.objective < n as f64 / 4.0, "{}", solution.objective);
}

#[test]
fn zeros_are_those_of_the_program() {
    for (k, n, d, cap) in [(2, 60, 30, 0.2), (3, 60, 20, 0.1)] {
        let data = Data::new(n, d, k, cap, 3);
        let (_, expected) = independent(&data, true);
        let solution = data.solve(Loss::hinge(), true, 1e-10);
        let weights = solution.weights.as_ref().unwrap();
        let largest = expected.iter().fold(0.0f64, |a, w| a.max(w.abs()));
        for (w, expected) in weights.iter().zip(&expected) {
            assert_eq!(*w == 0.0, expected.abs() < 1e-6 * largest, "{w} {expected}");
            assert!((w - expected).abs() < 1e-5 * largest);
        }
        let count = selected(&solution);
        assert!(count > 1 && count < weights.len() * 2 / 3, "{count}");
    }
}

/// Coordinate descent by golden sections, slow and sure, on the smooth losses.
fn by_coordinates(data: &Data, loss: Loss) -> f64 {
    let (x, signs) = (data.dense(), data.signs());
    let problem = data.two(&x, &signs, loss, true);
    let mut point = vec![0.0; data.d + 1];
    let value = |point: &[f64]| {
        let expansion = vec![0.0; data.n];
        let (weights, intercept) = (Some(&point[..data.d]), point[data.d]);
        problem.objective(&Candidate { expansion: &expansion, weights, intercept })
    };
    for sweep in 0..150 {
        for at in 0..point.len() {
            let reach = 2.0 / (1.0 + sweep as f64 / 5.0);
            let (mut low, mut high) = (point[at] - reach, point[at] + reach);
            let mut of = |w: f64| {
                point[at] = w;
                value(&point)
            };
            for _ in 0..30 {
                let (a, b) = (low + 0.382 * (high - low), low + 0.618 * (high - low));
                if of(a) < of(b) { high = b } else { low = a }
            }
            let middle = 0.5 * (low + high);
            let best = if of(0.0) <= of(middle) { 0.0 } else { middle };
            point[at] = best;
        }
    }
    value(&point)
}

#[test]
fn smooth_losses_reach_the_optimum_of_a_slow_method() {
    for loss in [Loss::logistic(), Loss::exponential()] {
        let data = Data::new(50, 4, 2, 0.3, 19);
        let solution = data.solve(loss, true, TOLERANCE);
        converged(&solution);
        assert!(selected(&solution) > 0);
        let slow = by_coordinates(&data, loss);
        assert!(
            solution.objective <= slow * (1.0 + TOLERANCE) && relative(solution.objective, slow) < 1e-5,
            "{} {slow}",
            solution.objective
        );
        for k in [3, 4] {
            let data = Data::new(60, 5, k, 0.5, 23);
            for intercept in [true, false] {
                let solution = data.solve(loss, intercept, TOLERANCE);
                converged(&solution);
                assert!(selected(&solution) > 0);
            }
        }
    }
}
