//! Random problems with many classes, and an independent solver for their convex bounds.
#![allow(dead_code)]

use clarabel::algebra::CscMatrix;
use clarabel::solver::SupportedConeT::{self, ExponentialConeT, NonnegativeConeT, ZeroConeT};
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, SolverStatus};
use outlast::problem::{Majorant, ManyCandidate, ManyClass, Norm, Terms};
use outlast::solver::Solution;
use outlast::{Csr, Dense, Design, KernelFunction, Loss};

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

/// k overlapping clouds of unequal size off the origin; a share `zeros` of the entries is 0 and a tenth of the labels wrong.
/// Every class occurs if n >= k.
pub fn clouds(n: usize, d: usize, k: usize, zeros: f64, seed: u64) -> (Dense<'static>, Vec<u32>) {
    let mut random = Random(seed);
    let centres: Vec<f64> = (0..k * d).map(|_| 1.5 * random.normal() / (d as f64).sqrt()).collect();
    let mut values = Vec::with_capacity(n * d);
    let mut codes = Vec::with_capacity(n);
    for row in 0..n {
        let code = if row < k { row } else { (random.uniform().powf(1.3) * k as f64) as usize };
        for column in 0..d {
            let value = 0.5 + centres[code * d + column] + random.normal();
            values.push(if random.uniform() < zeros { 0.0 } else { value });
        }
        let wrong = row >= k && random.uniform() < 0.1;
        codes.push(if wrong { (random.uniform() * k as f64) as u32 } else { code as u32 });
    }
    (Dense::new(n, d, values).unwrap(), codes)
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

pub fn problem<'a>(
    x: &'a dyn Design,
    codes: &'a [u32],
    classes: usize,
    caps: &'a [f64],
    loss: Loss,
    kernel: &'a KernelFunction,
) -> ManyClass<'a> {
    ManyClass { x, codes, classes, caps, terms: Terms::Own, loss, norm: Norm::Squared, kernel, intercept: true }
}

pub fn candidate(solution: &Solution) -> ManyCandidate<'_> {
    ManyCandidate {
        expansion: &solution.expansion,
        weights: solution.weights.as_deref(),
        intercepts: &solution.intercepts,
    }
}

pub fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(f64::MIN_POSITIVE)
}

/// What must hold of every solution: the judge agrees, the trace never rises, everything is finite, f sums to 0.
pub fn check_honest(problem: &ManyClass, solution: &Solution, tolerance: f64) {
    let k = problem.classes;
    assert!(solution.objective.is_finite() && solution.intercepts.iter().all(|b| b.is_finite()));
    assert!(solution.decision.iter().chain(&solution.expansion).all(|value| value.is_finite()));
    assert!(solution.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", solution.trace);
    assert!(!solution.gap.is_nan());
    let judged = problem.objective(&candidate(solution));
    assert!(close(judged, solution.objective, 1e-9), "{judged} {}", solution.objective);
    let sum: f64 = solution.intercepts.iter().sum();
    let size: f64 = solution.intercepts.iter().map(|b| b.abs()).sum();
    assert!(sum.abs() <= 1e-12 * (1.0 + size), "b sums to {sum}");
    // f is a sum over multipliers as large as the caps, and has their rounding
    let rounding = 1e-15 * problem.caps.iter().sum::<f64>();
    for f in solution.decision.chunks(k) {
        let size: f64 = f.iter().map(|f| f.abs()).sum();
        assert!(f.iter().sum::<f64>().abs() <= 1e-6 * (1.0 + size) + rounding, "{f:?}");
    }
    if solution.status.is_converged() {
        assert!(solution.gap <= tolerance, "gap {} > {tolerance}", solution.gap);
        let bound = solution.majorant.as_ref().unwrap();
        let certificate = problem.certify(&candidate(solution), bound);
        let size: f64 = solution.expansion.iter().map(|v| v.abs()).sum();
        assert!(certificate.imbalance <= 1e-12 * size, "imbalance {} of {size}", certificate.imbalance);
        // total - q of the judge has the rounding of the caps
        let rounding = 1e-9 * certificate.primal.abs() + 1e-15 * problem.caps.iter().sum::<f64>();
        assert!(certificate.dual <= certificate.primal + rounding, "{certificate:?}");
        let gap = certificate.relative_gap();
        assert!(
            gap <= tolerance + rounding / certificate.primal.abs().max(f64::MIN_POSITIVE),
            "judge's gap {gap}, solver's {}: {certificate:?}",
            solution.gap
        );
    }
}

/// A conic program under construction: A v + s = right, s in the cones.
struct Program {
    rows: Vec<usize>,
    columns: Vec<usize>,
    values: Vec<f64>,
    right: Vec<f64>,
    cones: Vec<SupportedConeT<f64>>,
    linear: Vec<f64>,
}

impl Program {
    fn variable(&mut self, cost: f64) -> usize {
        self.linear.push(cost);
        self.linear.len() - 1
    }

    /// right - sum of the terms, one entry of a cone.
    fn entry(&mut self, terms: &[(usize, f64)], right: f64) {
        for &(column, value) in terms {
            self.rows.push(self.right.len());
            self.columns.push(column);
            self.values.push(value);
        }
        self.right.push(right);
    }

    fn at_least(&mut self, terms: &[(usize, f64)], bound: f64) {
        let negated: Vec<(usize, f64)> = terms.iter().map(|&(column, value)| (column, -value)).collect();
        self.entry(&negated, -bound);
        self.cones.push(NonnegativeConeT(1));
    }

    /// exp(first) <= second.
    fn exponential(&mut self, first: &[(usize, f64)], second: usize) {
        let negated: Vec<(usize, f64)> = first.iter().map(|&(column, value)| (column, -value)).collect();
        self.entry(&negated, 0.0);
        self.entry(&[], 1.0);
        self.entry(&[(second, -1.0)], 0.0);
        self.cones.push(ExponentialConeT());
    }
}

/// Clarabel's minimum of the convex problem of a bound.
pub fn clarabel_objective(problem: &ManyClass, x: &Dense, bound: &Majorant) -> f64 {
    let (n, k) = (problem.rows(), problem.classes);
    let linear = matches!(problem.kernel, KernelFunction::Linear);
    let rows: Vec<Vec<f64>> = (0..n)
        .map(|i| match linear {
            true => x.row(i).to_vec(),
            false => (0..n).map(|j| problem.kernel.evaluate(x.row(i), x.row(j))).collect(),
        })
        .collect();
    let p = rows[0].len();
    let mut program =
        Program { rows: vec![], columns: vec![], values: vec![], right: vec![], cones: vec![], linear: vec![] };
    (0..k * p + k).for_each(|_| {
        program.variable(0.0);
    });
    // sum of the b_j, or each of them, is 0
    let free: Vec<(usize, f64)> = (0..k).map(|class| (k * p + class, 1.0)).collect();
    if problem.intercept {
        program.entry(&free, 0.0);
        program.cones.push(ZeroConeT(1));
    } else {
        free.iter().for_each(|term| program.entry(&[*term], 0.0));
        program.cones.push(ZeroConeT(k));
    }
    let score = |row: usize, class: usize, factor: f64| -> Vec<(usize, f64)> {
        let mut terms: Vec<(usize, f64)> =
            rows[row].iter().enumerate().map(|(column, value)| (class * p + column, factor * value)).collect();
        terms.push((k * p + class, factor));
        terms
    };
    for row in 0..n {
        if problem.loss.base().is_smooth() {
            let (own, cap) = (problem.codes[row] as usize, problem.kept_cap(bound, row, problem.codes[row] as usize));
            if cap == 0.0 {
                continue;
            }
            let (margin, loss) = (program.variable(0.0), program.variable(cap));
            for class in (0..k).filter(|class| *class != own) {
                let terms = [score(row, own, 1.0), score(row, class, -1.0), vec![(margin, -1.0)]].concat();
                program.at_least(&terms, 0.0);
            }
            if problem.loss.base().name() == "logistic" {
                // exp(-u - t) + exp(-t) <= 1
                let (one, two) = (program.variable(0.0), program.variable(0.0));
                program.exponential(&[(margin, -1.0), (loss, -1.0)], one);
                program.exponential(&[(loss, -1.0)], two);
                program.at_least(&[(one, -1.0), (two, -1.0)], -1.0);
            } else {
                program.exponential(&[(margin, -1.0)], loss);
            }
            continue;
        }
        for class in 0..k {
            let cap = problem.kept_cap(bound, row, class);
            if cap == 0.0 {
                continue;
            }
            let loss = program.variable(cap);
            let rivals = (0..k).filter(|other| *other != class);
            if let Terms::Cost(_) = problem.terms {
                // max(f_j + 1, f_l) - base'f
                program.at_least(&[score(row, class, -1.0), vec![(loss, 1.0)]].concat(), 1.0);
                rivals.for_each(|other| {
                    program.at_least(&[score(row, other, -1.0), vec![(loss, 1.0)]].concat(), 0.0);
                });
            } else {
                program.at_least(&[(loss, 1.0)], 0.0);
                rivals.for_each(|other| {
                    let terms = [score(row, class, 1.0), score(row, other, -1.0), vec![(loss, 1.0)]].concat();
                    program.at_least(&terms, 1.0);
                });
            }
        }
        if let Terms::Cost(_) = problem.terms {
            for class in 0..k {
                let base = bound.base[row * k + class];
                score(row, class, -base).into_iter().for_each(|(column, value)| program.linear[column] += value);
            }
        }
    }
    minimum(program, &rows, k, linear)
}

fn minimum(program: Program, features: &[Vec<f64>], k: usize, linear: bool) -> f64 {
    let p = features[0].len();
    let (mut rows, mut columns, mut values) = (vec![], vec![], vec![]);
    for class in 0..k {
        for column in 0..p {
            for row in 0..=column {
                let value = if linear { f64::from(u8::from(row == column)) } else { features[row][column] };
                if value != 0.0 {
                    rows.push(class * p + row);
                    columns.push(class * p + column);
                    values.push(value);
                }
            }
        }
    }
    let size = program.linear.len();
    let quadratic = CscMatrix::new_from_triplets(size, size, rows, columns, values);
    let a = CscMatrix::new_from_triplets(program.right.len(), size, program.rows, program.columns, program.values);
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-9)
        .tol_gap_rel(1e-9)
        .tol_feas(1e-9)
        .build()
        .unwrap();
    let mut solver =
        DefaultSolver::new(&quadratic, &program.linear, &a, &program.right, &program.cones, settings).unwrap();
    solver.solve();
    assert!(
        matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved),
        "the judge failed: {:?}",
        solver.solution.status
    );
    solver.solution.obj_val
}
