//! L_q problems, a judge of their solutions, and a general conic solver for q = 1 and q = 2.
#![allow(dead_code)]

use super::common::{Noise, Random, csr, planes};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, ZeroConeT};
use outlast::problem::LqProblem;
use outlast::solver::{Options, Solution, lq};
use outlast::{Control, Csr, Dense, Design, Status};

/// Tolerance of the solver, a hundred times tighter than what is asserted.
pub const TOLERANCE: f64 = 1e-8;
pub const AGREEMENT: f64 = 1e-6;

/// Rows of k classes from noisy planes on the first few columns.
pub struct Data {
    pub n: usize,
    pub d: usize,
    pub k: usize,
    pub functions: usize,
    pub values: Vec<f64>,
    pub codes: Vec<u32>,
    pub caps: Vec<f64>,
    pub cost: Option<Vec<f64>>,
}

impl Data {
    pub fn new(n: usize, d: usize, k: usize, c: f64, seed: u64) -> Data {
        let (values, codes) = planes(n, d, k, &Noise { used: 3, spread: 0.5, flipped: 0.0 }, seed);
        let functions = if k == 2 { 1 } else { k };
        Data { n, d, k, functions, values, codes, caps: vec![c; n], cost: None }
    }

    /// Random costs off the diagonal, and random weights, some 0.
    pub fn varied(mut self, seed: u64) -> Data {
        let mut random = Random(seed);
        let k = self.k;
        let cost = (0..k * k).map(|at| if at / k == at % k { 0.0 } else { 0.2 + 3.0 * random.unit() }).collect();
        self.cost = Some(cost);
        self.caps.iter_mut().for_each(|cap| *cap *= if random.unit() < 0.1 { 0.0 } else { 0.5 + random.unit() });
        self
    }

    pub fn dense(&self) -> Dense<'_> {
        Dense::new(self.n, self.d, &self.values[..]).unwrap()
    }

    pub fn sparse(&self) -> Csr<'static> {
        csr(self.n, self.d, &self.values)
    }

    pub fn problem<'a>(&'a self, x: &'a dyn Design, q: f64, intercept: bool) -> LqProblem<'a> {
        LqProblem {
            x,
            codes: &self.codes,
            classes: self.k,
            functions: self.functions,
            caps: &self.caps,
            counts: None,
            cost: self.cost.as_deref(),
            q,
            intercept,
        }
    }

    /// Solves and puts the solution before the judge.
    pub fn solve(&self, q: f64, intercept: bool) -> Solution {
        self.solve_with(&self.dense(), q, intercept, "auto", &options(TOLERANCE))
    }

    pub fn solve_with(&self, x: &dyn Design, q: f64, intercept: bool, solver: &str, options: &Options) -> Solution {
        let problem = self.problem(x, q, intercept);
        let solution = lq::solve(&problem, solver, options, &Control::default()).unwrap();
        judge(&problem, &solution, solver == "lqa");
        solution
    }
}

pub fn options(tolerance: f64) -> Options {
    Options { tolerance, ..Options::default() }
}

/// What every solution must be: its objective its own, its trace falling, its coefficients balanced, its gap certified.
pub fn judge(problem: &LqProblem, solution: &Solution, lqa: bool) {
    let (m, d) = (problem.functions, problem.x.cols());
    let weights = solution.weights.as_deref().unwrap();
    let objective = problem.objective(weights, &solution.intercepts);
    assert!((objective - solution.objective).abs() <= 1e-9 * objective.abs(), "{objective} {}", solution.objective);
    assert!(solution.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", solution.trace);
    assert_eq!(solution.trace.last(), Some(&solution.objective));
    assert!(weights.iter().chain(&solution.intercepts).all(|value| value.is_finite()));
    for column in 0..if m == 1 { 0 } else { d } {
        let entries: Vec<f64> = (0..m).map(|j| weights[j * d + column]).collect();
        let size: f64 = entries.iter().map(|w| w.abs()).sum();
        assert!(entries.iter().sum::<f64>().abs() <= 1e-9 * (size + 1e-9), "{entries:?}");
    }
    assert!(problem.intercept || solution.intercepts.iter().all(|b| *b == 0.0));
    if lqa {
        assert!(solution.gap.is_nan(), "nothing is certified, and not {}", solution.gap);
        return;
    }
    assert!(solution.gap >= 0.0, "{}", solution.gap);
    let certificate = problem.certify(weights, &solution.intercepts, &solution.expansion);
    let total: f64 = problem.caps.iter().sum();
    if problem.q >= 1.0 {
        assert!(
            certificate.imbalance <= 1e-9 * total,
            "imbalance {} of {total}, q {}, {}",
            certificate.imbalance,
            problem.q,
            solution.solver
        );
        let gap = certificate.relative_gap();
        assert!(gap <= solution.gap + 1e-10 + 0.01 * solution.gap, "certified {gap}, reported {}", solution.gap);
    }
}

pub fn converged(solution: &Solution) -> &Solution {
    assert_eq!(solution.status, Status::Converged, "gap {} by {}", solution.gap, solution.solver);
    assert!(solution.gap <= TOLERANCE);
    solution
}

/// Rows of a program, in triplets.
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

/// Clarabel on the linear (q = 1) or quadratic (q = 2) program: the optimum.
pub fn independent(problem: &LqProblem) -> f64 {
    program(problem, &vec![1.0; problem.functions * problem.x.cols()]).0
}

/// The optimum, w and b. Variables are w and b, sizes s with -s <= w <= s for q = 1, which cost what the rates say, and xi >= 0 with
/// xi >= 1 - s f.
pub fn program(problem: &LqProblem, rates: &[f64]) -> (f64, Vec<f64>, Vec<f64>) {
    let (n, d, m) = (problem.rows(), problem.x.cols(), problem.functions);
    let (w, b, size, xi) = (0, m * d, m * d + m, 2 * m * d + m);
    let total = xi + n * m;
    let mut cost = vec![0.0; total];
    let mut program = Program::default();
    if !problem.intercept {
        (0..m).for_each(|j| program.push(&[(b + j, 1.0)], 0.0));
    }
    if m > 1 {
        for column in 0..d {
            program.push(&(0..m).map(|j| (w + j * d + column, 1.0)).collect::<Vec<_>>(), 0.0);
        }
        program.push(&(0..m).map(|j| (b + j, 1.0)).collect::<Vec<_>>(), 0.0);
    }
    let equations = program.right.len();
    for at in 0..m * d {
        if problem.q == 1.0 {
            cost[size + at] = rates[at];
            program.push(&[(w + at, 1.0), (size + at, -1.0)], 0.0);
            program.push(&[(w + at, -1.0), (size + at, -1.0)], 0.0);
        } else {
            program.push(&[(size + at, -1.0)], 0.0);
        }
    }
    let mut row_values = vec![0.0; d];
    for row in 0..n {
        problem.x.copy_row(row, &mut row_values);
        for j in 0..m {
            let cap = problem.cap(row, j);
            cost[xi + row * m + j] = cap;
            program.push(&[(xi + row * m + j, -1.0)], 0.0);
            if cap > 0.0 {
                let sign = problem.sign(row);
                let mut terms: Vec<(usize, f64)> =
                    row_values.iter().enumerate().map(|(column, x)| (w + j * d + column, -sign * x)).collect();
                terms.push((b + j, -sign));
                terms.push((xi + row * m + j, -1.0));
                program.push(&terms, -1.0);
            }
        }
    }
    let Program { rows, cols, values, right } = program;
    let a = CscMatrix::new_from_triplets(right.len(), total, rows, cols, values);
    let diagonal = if problem.q == 2.0 { m * d } else { 0 };
    // the quadratic form is 1/2 x'Px
    let p = CscMatrix::new_from_triplets(
        total,
        total,
        (0..diagonal).collect(),
        (0..diagonal).collect(),
        vec![2.0; diagonal],
    );
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
    let found = &solver.solution.x;
    (solver.solution.obj_val, found[w..b].to_vec(), found[b..size].to_vec())
}
