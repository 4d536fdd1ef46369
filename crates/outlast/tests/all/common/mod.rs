//! What several test files share: random problems and an independent solver.
#![allow(dead_code)]

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, ZeroConeT};
use outlast::problem::TwoClass;
use outlast::{Csr, Dense, KernelFunction};

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

/// How [`planes`] decides.
pub struct Noise {
    /// Columns that count, the first ones.
    pub used: usize,
    /// Of the score of each class.
    pub spread: f64,
    /// Share of labels at random.
    pub flipped: f64,
}

/// Rows of k classes from noisy planes on the first few columns: values, row-major, and codes. Every class occurs.
pub fn planes(n: usize, d: usize, k: usize, noise: &Noise, seed: u64) -> (Vec<f64>, Vec<u32>) {
    let mut random = Random(seed);
    let used = d.min(noise.used);
    let planes: Vec<f64> = (0..k * used).map(|_| random.normal()).collect();
    let values: Vec<f64> = (0..n * d).map(|_| random.normal()).collect();
    let code = |row: usize| {
        let x = &values[row * d..row * d + used];
        let score = |plane: &[f64]| -> f64 { plane.iter().zip(x).map(|(a, b)| a * b).sum() };
        let scores: Vec<f64> =
            planes.chunks_exact(used).map(|plane| score(plane) + noise.spread * random.normal()).collect();
        let best = (0..k).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
        let flipped = noise.flipped > 0.0 && random.unit() < noise.flipped;
        match row {
            row if row < k => row as u32,
            _ if flipped => random.below(k) as u32,
            _ => best as u32,
        }
    };
    let codes = (0..n).map(code).collect();
    (values, codes)
}

/// Row-major values with the zeros left out.
pub fn csr(n: usize, d: usize, values: &[f64]) -> Csr<'static> {
    let (mut starts, mut columns, mut stored) = (vec![0], Vec::new(), Vec::new());
    for row in values.chunks_exact(d) {
        for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            columns.push(column as u32);
            stored.push(value);
        }
        starts.push(stored.len());
    }
    Csr::new(n, d, starts, columns, stored).unwrap()
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
