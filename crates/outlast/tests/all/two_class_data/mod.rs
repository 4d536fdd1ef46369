//! Random two-class data and small helpers shared by the solver tests.
#![allow(dead_code)]

use outlast::problem::{Candidate, TwoClass};
use outlast::solver::Solution;
use outlast::{Csr, Dense, Design};

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Roughly normal: mean 0, variance 1.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Two overlapping clouds; the fraction `zeros` of the entries is 0, a tenth of the labels is flipped, and the classes
/// are shifted by an offset so that the intercept matters.
pub fn clouds(n: usize, d: usize, zeros: f64, seed: u64) -> (Dense<'static>, Vec<f64>) {
    let mut random = Random(seed);
    let centre: Vec<f64> = (0..d).map(|_| random.normal() / (d as f64).sqrt()).collect();
    let mut values = Vec::with_capacity(n * d);
    let mut signs = Vec::with_capacity(n);
    for _ in 0..n {
        let sign = if random.uniform() < 0.4 { 1.0 } else { -1.0 };
        for centre in &centre {
            let value = 0.5 + sign * centre + random.normal();
            values.push(if random.uniform() < zeros { 0.0 } else { value });
        }
        signs.push(if random.uniform() < 0.1 { -sign } else { sign });
    }
    signs[0] = 1.0;
    signs[n - 1] = -1.0;
    (Dense::new(n, d, values).unwrap(), signs)
}

/// The same matrix without its zeros.
pub fn sparse(x: &Dense) -> Csr<'static> {
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..x.rows() {
        for (column, &value) in x.row(row).iter().enumerate().filter(|(_, value)| **value != 0.0) {
            columns.push(column as u32);
            values.push(value);
        }
        starts.push(values.len());
    }
    Csr::new(x.rows(), x.cols(), starts, columns, values).unwrap()
}

/// Some rows of a matrix, in the order given.
pub fn pick(x: &Dense, rows: &[usize]) -> Dense<'static> {
    let values: Vec<f64> = rows.iter().flat_map(|&row| x.row(row).to_vec()).collect();
    Dense::new(rows.len(), x.cols(), values).unwrap()
}

/// The solution as a candidate for the judge.
pub fn candidate(solution: &Solution) -> Candidate<'_> {
    Candidate { expansion: &solution.expansion, weights: solution.weights.as_deref(), intercept: solution.intercept() }
}

pub fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(f64::MIN_POSITIVE)
}

/// What must hold of every solution, whatever the data: the judge agrees, the trace never rises.
pub fn check_honest(problem: &TwoClass, solution: &Solution, tolerance: f64) {
    assert!(solution.objective.is_finite() && solution.intercept().is_finite());
    assert!(solution.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", solution.trace);
    assert!(close(problem.objective(&candidate(solution)), solution.objective, 1e-9));
    let truncated = problem.truncation_set(&candidate(solution));
    assert_eq!(truncated, solution.truncated);
    if solution.status.is_converged() {
        assert!(solution.gap <= tolerance, "gap {} > {tolerance}", solution.gap);
        let certificate = problem.certify(&candidate(solution), &truncated);
        let size: f64 = solution.expansion.iter().map(|beta| beta.abs()).sum();
        assert!(certificate.imbalance <= 1e-13 * size, "imbalance {}", certificate.imbalance);
        assert!(
            certificate.dual <= certificate.primal * (1.0 + 1e-9),
            "{certificate:?} {:?} {:?}",
            problem.loss,
            problem.kernel
        );
        let judged = certificate.relative_gap();
        assert!(
            judged <= tolerance + 1e-11,
            "judge's gap {judged} > {tolerance}, solver's {}: {certificate:?} {:?} {:?}",
            solution.gap,
            solution.trace,
            problem.caps
        );
    }
}
