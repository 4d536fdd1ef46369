//! Problems with an l1 penalty, a judge of their solutions, and a general conic solver on the linear program.
#![allow(dead_code)]

use super::common::{Noise, Random, csr, planes};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, ZeroConeT};
use outlast::problem::{Candidate, Majorant, ManyCandidate, ManyClass, Norm, Terms, TwoClass};
use outlast::solver::{Options, Solution, proximal};
use outlast::{Control, Csr, Dense, Design, KernelFunction, Loss, Status};

/// Tolerance of the solver in most tests, a hundred times tighter than what is asserted.
pub const TOLERANCE: f64 = 1e-8;
pub const AGREEMENT: f64 = 1e-6;
/// Rounding of a margin.
const ROUNDING: f64 = 1e-14;

static LINEAR: KernelFunction = KernelFunction::Linear;

/// Rows of k classes from noisy planes on the first few columns.
pub struct Data {
    pub n: usize,
    pub d: usize,
    pub k: usize,
    pub values: Vec<f64>,
    pub codes: Vec<u32>,
    pub caps: Vec<f64>,
    pub rates: Vec<f64>,
}

impl Data {
    /// Rates are all 1: one per column for two classes, one per column and class for more.
    pub fn new(n: usize, d: usize, k: usize, cap: f64, seed: u64) -> Data {
        let (values, codes) = planes(n, d, k, &Noise { used: 4, spread: 0.4, flipped: 0.1 }, seed);
        let functions = if k == 2 { 1 } else { k };
        Data { n, d, k, values, codes, caps: vec![cap; n], rates: vec![1.0; functions * d] }
    }

    /// Random rates, a tenth of them 0 and a tenth infinite, and random weights, some 0.
    pub fn varied(mut self, seed: u64) -> Data {
        let mut random = Random(seed);
        self.rates.iter_mut().for_each(|rate| {
            *rate = match random.unit() {
                u if u < 0.1 => 0.0,
                u if u < 0.2 => f64::INFINITY,
                u => 0.3 + 2.0 * u,
            };
        });
        self.caps.iter_mut().for_each(|cap| *cap *= if random.unit() < 0.1 { 0.0 } else { 0.5 + random.unit() });
        self
    }

    pub fn dense(&self) -> Dense<'_> {
        Dense::new(self.n, self.d, &self.values[..]).unwrap()
    }

    pub fn sparse(&self) -> Csr<'static> {
        csr(self.n, self.d, &self.values)
    }

    pub fn signs(&self) -> Vec<f64> {
        self.codes.iter().map(|&code| if code == 1 { 1.0 } else { -1.0 }).collect()
    }

    pub fn two<'a>(&'a self, x: &'a dyn Design, signs: &'a [f64], loss: Loss, intercept: bool) -> TwoClass<'a> {
        let norm = Norm::Absolute(&self.rates);
        TwoClass { x, signs, caps: &self.caps, loss, norm, kernel: &LINEAR, intercept }
    }

    pub fn many<'a>(&'a self, x: &'a dyn Design, rates: &'a [f64], loss: Loss, intercept: bool) -> ManyClass<'a> {
        ManyClass {
            x,
            codes: &self.codes,
            classes: self.k,
            caps: &self.caps,
            terms: Terms::Own,
            loss,
            norm: Norm::Absolute(rates),
            kernel: &LINEAR,
            intercept,
        }
    }

    pub fn solve(&self, loss: Loss, intercept: bool, tolerance: f64) -> Solution {
        self.solve_on(&self.dense(), loss, intercept, &options(tolerance))
    }

    /// Solves as what it is, two classes or more, and puts the solution before the judge.
    pub fn solve_on(&self, x: &dyn Design, loss: Loss, intercept: bool, options: &Options) -> Solution {
        self.solve_watched(x, loss, intercept, options, &Control::default())
    }

    pub fn solve_watched(
        &self,
        x: &dyn Design,
        loss: Loss,
        intercept: bool,
        options: &Options,
        control: &Control,
    ) -> Solution {
        if self.k > 2 {
            let problem = self.many(x, &self.rates, loss, intercept);
            let solution = proximal::solve_many(&problem, options, control).unwrap();
            judge_many(&problem, &solution, options.tolerance);
            return solution;
        }
        let signs = self.signs();
        let problem = self.two(x, &signs, loss, intercept);
        let solution = proximal::solve(&problem, options, control).unwrap();
        judge_two(&problem, &solution, options.tolerance);
        solution
    }
}

pub fn options(tolerance: f64) -> Options {
    Options { tolerance, ..Options::default() }
}

pub fn judge_two(problem: &TwoClass, solution: &Solution, tolerance: f64) {
    let weights = solution.weights.as_deref().unwrap();
    let intercept = solution.intercept();
    let candidate = Candidate { expansion: &solution.expansion, weights: Some(weights), intercept };
    // a truncated row is dropped: of no weight, which the judge takes to mean beta = 0
    let dropped: Vec<f64> =
        problem.caps.iter().zip(&solution.truncated).map(|(c, out)| if *out { 0.0 } else { *c }).collect();
    let convex = TwoClass { caps: &dropped, ..*problem };
    let certificate = convex.certify(&candidate, &vec![false; problem.rows()]);
    let largest = problem.caps.iter().fold(0.0f64, |a, b| a.max(*b));
    let scale = largest * problem.rows() as f64;
    // where moving to the point's own set gains nothing, the certificate belongs to the set before
    let own = certificate.dual > f64::NEG_INFINITY;
    assert!(own || problem.loss.truncation().is_some());
    let gap = if own { certificate.relative_gap() } else { solution.gap };
    judge(solution, tolerance, gap, certificate.imbalance, scale, certificate.primal);
    let objective = problem.objective(&candidate);
    assert!((solution.objective - objective).abs() <= 1e-9 * objective.abs() + ROUNDING * scale, "{objective}");
    assert!(problem.intercept || intercept == 0.0);
}

pub fn judge_many(problem: &ManyClass, solution: &Solution, tolerance: f64) {
    let (k, d) = (problem.classes, problem.x.cols());
    let weights = solution.weights.as_deref().unwrap();
    let candidate =
        ManyCandidate { expansion: &solution.expansion, weights: Some(weights), intercepts: &solution.intercepts };
    let bound: &Majorant = solution.majorant.as_ref().unwrap();
    let certificate = problem.certify(&candidate, bound);
    let largest = problem.caps.iter().fold(0.0f64, |a, b| a.max(*b));
    let scale = largest * problem.rows() as f64;
    judge(solution, tolerance, certificate.relative_gap(), certificate.imbalance, scale, certificate.primal);
    let objective = problem.objective(&candidate);
    assert!((solution.objective - objective).abs() <= 1e-9 * objective.abs() + ROUNDING * scale, "{objective}");
    for column in 0..d {
        let entries: Vec<f64> = (0..k).map(|class| weights[class * d + column]).collect();
        let size: f64 = entries.iter().map(|w| w.abs()).sum();
        assert!(entries.iter().sum::<f64>().abs() <= 1e-14 * size, "{entries:?}");
    }
    let size: f64 = solution.intercepts.iter().map(|b| b.abs()).sum();
    assert!(solution.intercepts.iter().sum::<f64>().abs() <= 1e-14 * size);
    assert!(problem.intercept || size == 0.0);
}

/// `scale` is the sum of the caps: margins are known to their rounding, and the loss to this times that.
fn judge(solution: &Solution, tolerance: f64, gap: f64, imbalance: f64, scale: f64, primal: f64) {
    assert!(imbalance <= 1e-12 * scale, "imbalance {imbalance}");
    assert!(solution.gap >= 0.0 && solution.gap < f64::INFINITY, "{}", solution.gap);
    let rounding = 1e-11 + ROUNDING * scale / primal.max(f64::MIN_POSITIVE);
    assert!((gap - solution.gap).abs() <= rounding + 0.01 * solution.gap, "reported {} certified {gap}", solution.gap);
    if solution.status == Status::Converged {
        assert!(solution.gap <= tolerance, "{} {tolerance}", solution.gap);
    }
    assert!(solution.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", solution.trace);
    assert_eq!(solution.trace.last(), Some(&solution.objective));
    assert!(solution.weights.as_ref().unwrap().iter().all(|w| w.is_finite()));
    assert!(solution.intercepts.iter().all(|b| b.is_finite()));
    assert_eq!(solution.solver, "proximal-newton");
}

pub fn converged(solution: &Solution) -> &Solution {
    assert_eq!(solution.status, Status::Converged, "gap {}", solution.gap);
    solution
}

pub fn selected(solution: &Solution) -> usize {
    solution.weights.as_ref().unwrap().iter().filter(|w| **w != 0.0).count()
}

/// Rows of a linear program, in triplets.
#[derive(Default)]
struct Program {
    rows: Vec<usize>,
    cols: Vec<usize>,
    values: Vec<f64>,
    right: Vec<f64>,
}

impl Program {
    fn push(&mut self, terms: &[(usize, f64)], right: f64) {
        for &(column, value) in terms {
            self.rows.push(self.right.len());
            self.cols.push(column);
            self.values.push(value);
        }
        self.right.push(right);
    }
}

/// Clarabel on the linear program: w = plus - minus, both >= 0, b, and xi_i >= 0 with xi_i >= 1 + f_j - f_y. Returns the
/// optimum and the coefficients (functions x columns).
pub fn independent(data: &Data, intercept: bool) -> (f64, Vec<f64>) {
    let (n, d, k) = (data.n, data.d, data.k);
    let functions = if k == 2 { 1 } else { k };
    let (plus, minus, b, xi) = (0, functions * d, 2 * functions * d, 2 * functions * d + functions);
    let size = xi + n;
    let mut cost = vec![0.0; size];
    let mut program = Program::default();
    for (at, &rate) in data.rates.iter().enumerate() {
        if rate == f64::INFINITY {
            program.push(&[(plus + at, 1.0)], 0.0);
            program.push(&[(minus + at, 1.0)], 0.0);
        } else {
            // a rate of 0 would leave plus + minus without a bound
            cost[plus + at] = rate.max(1e-12);
            cost[minus + at] = rate.max(1e-12);
        }
    }
    if !intercept {
        (0..functions).for_each(|function| program.push(&[(b + function, 1.0)], 0.0));
    }
    if functions > 1 {
        for column in 0..d {
            let entries = (0..k).flat_map(|j| [(plus + j * d + column, 1.0), (minus + j * d + column, -1.0)]);
            program.push(&entries.collect::<Vec<_>>(), 0.0);
        }
        program.push(&(0..k).map(|j| (b + j, 1.0)).collect::<Vec<_>>(), 0.0);
    }
    let equations = program.right.len();
    let function = |j: usize, row: usize, factor: f64| {
        let x = &data.values[row * d..(row + 1) * d];
        let mut terms: Vec<(usize, f64)> = vec![(b + j, factor)];
        for (column, value) in x.iter().enumerate() {
            terms.push((plus + j * d + column, factor * value));
            terms.push((minus + j * d + column, -factor * value));
        }
        terms
    };
    for row in 0..n {
        cost[xi + row] = data.caps[row];
        let y = data.codes[row] as usize;
        if functions == 1 {
            let mut terms = function(0, row, if y == 1 { -1.0 } else { 1.0 });
            terms.push((xi + row, -1.0));
            program.push(&terms, -1.0);
        } else {
            for j in (0..k).filter(|&j| j != y) {
                let mut terms = function(j, row, 1.0);
                terms.extend(function(y, row, -1.0));
                terms.push((xi + row, -1.0));
                program.push(&terms, -1.0);
            }
        }
        program.push(&[(xi + row, -1.0)], 0.0);
    }
    for at in 0..2 * functions * d {
        program.push(&[(at, -1.0)], 0.0);
    }
    let Program { rows, cols, values, right } = program;
    let a = CscMatrix::new_from_triplets(right.len(), size, rows, cols, values);
    let p = CscMatrix::new(size, size, vec![0; size + 1], vec![], vec![]);
    let cones = [ZeroConeT(equations), NonnegativeConeT(right.len() - equations)];
    let settings = DefaultSettings {
        verbose: false,
        tol_gap_abs: 1e-10,
        tol_gap_rel: 1e-10,
        tol_feas: 1e-10,
        ..DefaultSettings::default()
    };
    let mut solver = DefaultSolver::new(&p, &cost, &a, &right, &cones, settings).unwrap();
    solver.solve();
    let status = solver.solution.status;
    assert!(matches!(status, SolverStatus::Solved | SolverStatus::AlmostSolved), "the judge failed: {status:?}");
    let x = &solver.solution.x;
    (solver.solution.obj_val, (0..functions * d).map(|at| x[plus + at] - x[minus + at]).collect())
}
