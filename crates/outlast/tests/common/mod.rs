//! What several test files share: random problems and an independent solver.
#![allow(dead_code)]

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, ZeroConeT};
use outlast::problem::TwoClass;
use outlast::{Dense, KernelFunction};

/// SplitMix64, so that every problem is the same on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform on [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Roughly normal: twelve uniforms.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f64) as usize
    }
}

/// Rows, signs and weights of a noisy two-class problem.
#[derive(Debug)]
pub struct Data {
    pub rows: usize,
    pub cols: usize,
    pub values: Vec<f64>,
    pub signs: Vec<f64>,
    pub weights: Vec<f64>,
}

impl Data {
    /// A linear rule with `flipped` of the labels turned round and a few far outliers; both classes always occur.
    pub fn noisy(rows: usize, cols: usize, flipped: f64, seed: u64) -> Data {
        let mut random = Random(seed);
        let w: Vec<f64> = (0..cols).map(|_| random.normal()).collect();
        let mut values = Vec::with_capacity(rows * cols);
        let mut signs = Vec::with_capacity(rows);
        for row in 0..rows {
            let far = if random.unit() < 0.03 { 8.0 } else { 1.0 };
            let x: Vec<f64> = (0..cols).map(|_| far * random.normal()).collect();
            let f: f64 = x.iter().zip(&w).map(|(x, w)| x * w).sum::<f64>() + 0.5;
            let mut sign = if f > 0.0 { 1.0 } else { -1.0 };
            if random.unit() < flipped {
                sign = -sign;
            }
            if row < 2 {
                sign = if row == 0 { 1.0 } else { -1.0 };
            }
            values.extend(x);
            signs.push(sign);
        }
        Data { rows, cols, values, signs, weights: vec![1.0; rows] }
    }

    pub fn weighted(mut self, seed: u64) -> Data {
        let mut random = Random(seed);
        self.weights =
            (0..self.rows).map(|row| if row > 1 && random.unit() < 0.1 { 0.0 } else { 0.2 + random.unit() }).collect();
        self
    }

    pub fn dense(&self) -> Dense<'_> {
        Dense::new(self.rows, self.cols, &self.values[..]).unwrap()
    }

    pub fn labels(&self) -> Vec<i32> {
        self.signs.iter().map(|&sign| sign as i32).collect()
    }
}

/// The kernel matrix in f64.
pub fn kernel_matrix(kernel: &KernelFunction, x: &Dense) -> Vec<f64> {
    use outlast::Design;
    let n = x.rows();
    let mut k = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..n {
            k[i * n + j] = match kernel {
                KernelFunction::Precomputed => x.row(i)[j],
                _ => kernel.evaluate(x.row(i), x.row(j)),
            };
        }
    }
    k
}

/// Clarabel's minimum of 1/2 b'Kb - y'b over the box, sum b = 0 if `balanced`: minus the value of the convex primal.
pub fn clarabel_dual(kernel: &[f64], signs: &[f64], lower: &[f64], upper: &[f64], balanced: bool) -> f64 {
    clarabel_solution(kernel, signs, lower, upper, balanced).0
}

/// As [`clarabel_dual`], with the minimiser.
pub fn clarabel_solution(
    kernel: &[f64],
    signs: &[f64],
    lower: &[f64],
    upper: &[f64],
    balanced: bool,
) -> (f64, Vec<f64>) {
    let all = signs.len();
    // a box of no width leaves an interior point method without an interior: such rows stay out
    let kept: Vec<usize> = (0..all).filter(|&row| upper[row] > lower[row]).collect();
    let n = kept.len();
    let (signs, lower, upper) = {
        let take = |from: &[f64]| -> Vec<f64> { kept.iter().map(|&row| from[row]).collect() };
        (take(signs), take(lower), take(upper))
    };
    let mut beta = vec![0.0; all];
    if n == 0 {
        return (0.0, beta);
    }
    let (mut rows, mut cols, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for j in 0..n {
        for i in 0..=j {
            rows.push(i);
            cols.push(j);
            values.push(0.5 * (kernel[kept[i] * all + kept[j]] + kernel[kept[j] * all + kept[i]]));
        }
    }
    let p = CscMatrix::new_from_triplets(n, n, rows, cols, values);
    let q: Vec<f64> = signs.iter().map(|y| -y).collect();
    let (mut rows, mut cols, mut values, mut b) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut cones = Vec::new();
    if balanced {
        for j in 0..n {
            rows.push(0);
            cols.push(j);
            values.push(1.0);
        }
        b.push(0.0);
        cones.push(ZeroConeT(1));
    }
    for j in 0..n {
        for (sign, bound) in [(1.0, upper[j]), (-1.0, -lower[j])] {
            rows.push(b.len());
            cols.push(j);
            values.push(sign);
            b.push(bound);
        }
    }
    cones.push(NonnegativeConeT(2 * n));
    let a = CscMatrix::new_from_triplets(b.len(), n, rows, cols, values);
    let settings = DefaultSettings {
        verbose: false,
        tol_gap_abs: 1e-11,
        tol_gap_rel: 1e-11,
        tol_feas: 1e-11,
        ..DefaultSettings::default()
    };
    let mut solver = DefaultSolver::new(&p, &q, &a, &b, &cones, settings).unwrap();
    solver.solve();
    assert!(
        matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved),
        "the judge failed: {:?}",
        solver.solution.status
    );
    for (&row, value) in kept.iter().zip(&solver.solution.x) {
        beta[row] = *value;
    }
    (solver.solution.obj_val, beta)
}

/// Boxes of a truncation set: kept rows [0, c] y, truncated rows [-c, 0] y.
pub fn boxes(problem: &TwoClass, truncated: &[bool]) -> (Vec<f64>, Vec<f64>) {
    let both = |row: usize| {
        let cap = problem.caps[row];
        if (problem.signs[row] > 0.0) != truncated[row] { (0.0, cap) } else { (-cap, 0.0) }
    };
    (0..problem.rows()).map(both).unzip()
}

/// |a - b| relative to b.
pub fn relative(a: f64, b: f64) -> f64 {
    (a - b).abs() / b.abs().max(1e-300)
}
