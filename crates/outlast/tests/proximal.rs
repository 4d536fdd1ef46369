//! The l1 solver against a general conic solver on the linear program, against the judge, and against itself by
//! identities.

mod common;

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, ZeroConeT};
use common::{Random, relative};
use outlast::problem::{Candidate, Majorant, ManyCandidate, ManyClass, Norm, Terms, TwoClass};
use outlast::solver::{Options, Solution, Start, proximal};
use outlast::{Control, Csr, Dense, Design, KernelFunction, Loss, Status};
use std::time::{Duration, Instant};

/// Tolerance of the solver in most tests, a hundred times tighter than what is asserted.
const TOLERANCE: f64 = 1e-8;
const AGREEMENT: f64 = 1e-6;
/// Rounding of a margin.
const ROUNDING: f64 = 1e-14;
/// Longest a hostile case may take, in hardly optimised code on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

static LINEAR: KernelFunction = KernelFunction::Linear;

/// Rows of k classes from noisy planes on the first few columns.
struct Data {
    n: usize,
    d: usize,
    k: usize,
    values: Vec<f64>,
    codes: Vec<u32>,
    caps: Vec<f64>,
    rates: Vec<f64>,
}

impl Data {
    /// Rates are all 1: one per column for two classes, one per column and class for more.
    fn new(n: usize, d: usize, k: usize, cap: f64, seed: u64) -> Data {
        let mut random = Random(seed);
        let used = d.min(4);
        let planes: Vec<f64> = (0..k * used).map(|_| random.normal()).collect();
        let values: Vec<f64> = (0..n * d).map(|_| random.normal()).collect();
        let codes = (0..n)
            .map(|row| {
                let x = &values[row * d..row * d + used];
                let score = |class: usize| -> f64 {
                    planes[class * used..(class + 1) * used].iter().zip(x).map(|(a, b)| a * b).sum()
                };
                let scores: Vec<f64> = (0..k).map(|class| score(class) + 0.4 * random.normal()).collect();
                let best = (0..k).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
                let flipped = random.unit() < 0.1;
                if row < k {
                    row as u32
                } else if flipped {
                    random.below(k) as u32
                } else {
                    best as u32
                }
            })
            .collect();
        let functions = if k == 2 { 1 } else { k };
        Data { n, d, k, values, codes, caps: vec![cap; n], rates: vec![1.0; functions * d] }
    }

    /// Random rates, a tenth of them 0 and a tenth infinite, and random weights, some 0.
    fn varied(mut self, seed: u64) -> Data {
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

    fn dense(&self) -> Dense<'_> {
        Dense::new(self.n, self.d, &self.values[..]).unwrap()
    }

    fn sparse(&self) -> Csr<'static> {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in self.values.chunks_exact(self.d) {
            for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                columns.push(column as u32);
                values.push(value);
            }
            starts.push(values.len());
        }
        Csr::new(self.n, self.d, starts, columns, values).unwrap()
    }

    fn signs(&self) -> Vec<f64> {
        self.codes.iter().map(|&code| if code == 1 { 1.0 } else { -1.0 }).collect()
    }

    fn two<'a>(&'a self, x: &'a dyn Design, signs: &'a [f64], loss: Loss, intercept: bool) -> TwoClass<'a> {
        let norm = Norm::Absolute(&self.rates);
        TwoClass { x, signs, caps: &self.caps, loss, norm, kernel: &LINEAR, intercept }
    }

    fn many<'a>(&'a self, x: &'a dyn Design, rates: &'a [f64], loss: Loss, intercept: bool) -> ManyClass<'a> {
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

    fn solve(&self, loss: Loss, intercept: bool, tolerance: f64) -> Solution {
        self.solve_on(&self.dense(), loss, intercept, &options(tolerance))
    }

    /// Solves as what it is, two classes or more, and puts the solution before the judge.
    fn solve_on(&self, x: &dyn Design, loss: Loss, intercept: bool, options: &Options) -> Solution {
        if self.k > 2 {
            let problem = self.many(x, &self.rates, loss, intercept);
            let solution = proximal::solve_many(&problem, options, &Control::default()).unwrap();
            judge_many(&problem, &solution, options.tolerance);
            return solution;
        }
        let signs = self.signs();
        let problem = self.two(x, &signs, loss, intercept);
        let solution = proximal::solve(&problem, options, &Control::default()).unwrap();
        judge_two(&problem, &solution, options.tolerance);
        solution
    }
}

fn options(tolerance: f64) -> Options {
    Options { tolerance, ..Options::default() }
}

fn judge_two(problem: &TwoClass, solution: &Solution, tolerance: f64) {
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

fn judge_many(problem: &ManyClass, solution: &Solution, tolerance: f64) {
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

fn converged(solution: &Solution) -> &Solution {
    assert_eq!(solution.status, Status::Converged, "gap {}", solution.gap);
    solution
}

fn selected(solution: &Solution) -> usize {
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
fn independent(data: &Data, intercept: bool) -> (f64, Vec<f64>) {
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

#[test]
fn many_classes_with_k_2_are_two_classes() {
    for loss in [Loss::hinge(), Loss::logistic(), Loss::hinge().truncated_at(-0.5).unwrap()] {
        for intercept in [true, false] {
            let data = Data::new(70, 12, 2, 0.5, 31).varied(5);
            let two = data.solve(loss, intercept, TOLERANCE);
            let rates: Vec<f64> = data.rates.iter().chain(&data.rates).copied().collect();
            let x = data.dense();
            let problem = data.many(&x, &rates, loss, intercept);
            let many = proximal::solve_many(&problem, &options(TOLERANCE), &Control::default()).unwrap();
            judge_many(&problem, &many, TOLERANCE);
            converged(&two);
            converged(&many);
            assert!(selected(&two) > 0);
            if loss.truncation().is_none() {
                assert!(relative(many.objective, two.objective) < AGREEMENT, "{} {}", many.objective, two.objective);
            }
        }
    }
}

#[test]
fn truncated_paths_fall_to_critical_points() {
    for (k, n, d, cap, truncation) in
        [(2, 120, 5, 1.0, -1.0), (2, 80, 40, 0.5, 0.0), (3, 100, 6, 1.0, -0.5), (4, 80, 10, 0.5, -1.0 / 3.0)]
    {
        for base in [Loss::hinge(), Loss::logistic()] {
            let data = Data::new(n, d, k, cap, 41);
            let loss = base.truncated_at(truncation).unwrap();
            let robust = data.solve(loss, true, TOLERANCE);
            converged(&robust);
            assert!(robust.truncated.iter().any(|out| *out) && selected(&robust) > 0, "k {k}");
            // the convex problem of its own set has the same optimum
            let mut kept = Data::new(n, d, k, cap, 41);
            kept.caps.iter_mut().zip(&robust.truncated).filter(|(_, out)| **out).for_each(|(cap, _)| *cap = 0.0);
            let constant: f64 = robust.truncated.iter().filter(|out| **out).map(|_| cap * base.value(truncation)).sum();
            let again = kept.solve(base, true, TOLERANCE);
            assert!(
                relative(again.objective + constant, robust.objective) < AGREEMENT,
                "{} {}",
                again.objective + constant,
                robust.objective
            );
        }
    }
}

#[test]
fn repeated_rows_are_weights() {
    for k in [2, 3] {
        let mut data = Data::new(50, 8, k, 0.4, 43);
        let (mut values, mut codes) = (Vec::new(), Vec::new());
        for row in 0..data.n {
            // rows come 0, 1 or 2 times
            let times = if row < 6 { 1 } else { row % 3 };
            for _ in 0..times {
                values.extend_from_slice(&data.values[row * data.d..(row + 1) * data.d]);
                codes.push(data.codes[row]);
            }
            data.caps[row] *= times as f64;
        }
        let repeated =
            Data { n: codes.len(), d: 8, k, caps: vec![0.4; codes.len()], values, codes, rates: data.rates.clone() };
        let weighted = data.solve(Loss::hinge(), true, TOLERANCE);
        let repeated = repeated.solve(Loss::hinge(), true, TOLERANCE);
        assert!(relative(weighted.objective, repeated.objective) < AGREEMENT);
        assert!(selected(&weighted) > 0);
    }
}

#[test]
fn a_warm_start_and_threads_do_not_matter() {
    for k in [2, 3] {
        let data = Data::new(100, 20, k, 0.3, 47);
        let cold = data.solve(Loss::hinge(), true, TOLERANCE);
        let start = Start {
            expansion: cold.expansion.clone(),
            weights: cold.weights.clone(),
            intercepts: cold.intercepts.clone(),
        };
        let warm = Options { start: Some(start), ..options(TOLERANCE) };
        let warm = data.solve_on(&data.dense(), Loss::hinge(), true, &warm);
        converged(&warm);
        assert!(relative(warm.objective, cold.objective) < AGREEMENT);
        assert!(warm.iterations <= cold.iterations, "{} {}", warm.iterations, cold.iterations);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let single = pool.install(|| data.solve(Loss::hinge(), true, TOLERANCE));
        assert!(relative(single.objective, cold.objective) < AGREEMENT);
    }
}

#[test]
fn scales_of_columns_do_not_matter() {
    for k in [2, 3] {
        let mut data = Data::new(60, 6, k, 0.5, 53);
        let expected = data.solve(Loss::hinge(), true, TOLERANCE);
        // x_j scaled by s and its rates likewise: the same problem
        let scales = [1e-8, 1e8, 1.0, 1e-150, 1e150, 3.0];
        for row in data.values.chunks_exact_mut(6) {
            row.iter_mut().zip(scales).for_each(|(x, scale)| *x *= scale);
        }
        for rates in data.rates.chunks_exact_mut(6) {
            rates.iter_mut().zip(scales).for_each(|(rate, scale)| *rate *= scale);
        }
        let x = data.dense();
        let found = if k == 2 {
            let signs = data.signs();
            proximal::solve(&data.two(&x, &signs, Loss::hinge(), true), &options(TOLERANCE), &Control::default())
                .unwrap()
        } else {
            proximal::solve_many(
                &data.many(&x, &data.rates, Loss::hinge(), true),
                &options(TOLERANCE),
                &Control::default(),
            )
            .unwrap()
        };
        converged(&found);
        assert!(
            relative(found.objective, expected.objective) < AGREEMENT,
            "{} {}",
            found.objective,
            expected.objective
        );
        assert!(selected(&found) > 0);
    }
}

/// Ends soon, with finite numbers that the judge confirms.
fn survives(data: &Data, what: &str) -> Vec<Solution> {
    let mut all = Vec::new();
    for loss in [Loss::hinge(), Loss::hinge().truncated_at(-1.0).unwrap(), Loss::logistic()] {
        for intercept in [true, false] {
            let start = Instant::now();
            let solution = data.solve(loss, intercept, 1e-6);
            println!("{what}: {} gap {:.1e} {:?}", solution.status, solution.gap, start.elapsed());
            assert!(start.elapsed() < PATIENCE, "{what}: {:?}", start.elapsed());
            assert!(solution.objective.is_finite(), "{what}");
            all.push(solution);
        }
    }
    all
}

#[test]
fn a_small_c_selects_nothing() {
    for k in [2, 3, 4] {
        let data = Data::new(60, 10, k, 1e-6, 59);
        let solution = data.solve(Loss::hinge(), true, TOLERANCE);
        converged(&solution);
        assert_eq!(selected(&solution), 0);
        let mut constant = Data::new(60, 1, k, 1e-6, 59);
        constant.codes = data.codes.clone();
        constant.values.fill(0.0);
        let (optimum, _) = independent(&constant, true);
        assert!((solution.objective - optimum).abs() <= 1e-6 * 60.0 * 1e-6, "{} {optimum}", solution.objective);
        if k == 2 {
            let ones = data.codes.iter().filter(|&&code| code == 1).count();
            assert_eq!(solution.intercept(), if 2 * ones > 60 { 1.0 } else { -1.0 });
        }
    }
}

#[test]
fn extreme_caps_and_separable_data() {
    for k in [2, 3] {
        for cap in [1e-10, 1e3, 1e10] {
            survives(&Data::new(60, 4, k, cap, 61), &format!("k {k} C {cap}"));
            let mut data = Data::new(40, 3, k, cap, 67);
            for row in 0..data.n {
                data.values[row * 3 + data.codes[row] as usize % 3] += 12.0;
            }
            let all = survives(&data, &format!("separable k {k} C {cap}"));
            converged(&all[0]);
            if cap > 1.0 {
                assert!(selected(&all[0]) > 0 && all[0].objective < 10.0, "{}", all[0].objective);
            }
        }
    }
}

#[test]
fn odd_columns_and_few_rows() {
    for k in [2, 3] {
        let mut data = Data::new(80, 7, k, 1.0, 71);
        for row in data.values.chunks_exact_mut(7) {
            row[3] = 2.5;
            row[4] = row[0];
            row[5] = 0.0;
            row[6] = -row[1];
        }
        for solution in survives(&data, "constant, repeated and empty columns") {
            converged(&solution);
        }
        for (n, d) in [(2, 1), (3, 5), (40, 1), (5, 60)] {
            if n >= k {
                for solution in survives(&Data::new(n, d, k, 1.0, 73), &format!("k {k}, {n} x {d}")) {
                    converged(&solution);
                }
            }
        }
        let mut data = Data::new(30, 3, k, 0.0, 79);
        assert!(survives(&data, "no weights").iter().all(|solution| solution.objective == 0.0));
        data.caps.fill(1.0);
        data.rates.fill(f64::INFINITY);
        assert!(survives(&data, "nothing may be selected").iter().all(|solution| selected(solution) == 0));
        data.rates.fill(0.0);
        survives(&data, "nothing is penalised");
    }
}

#[test]
fn limits_and_interrupts_are_honoured() {
    let data = Data::new(200, 50, 3, 1.0, 83);
    let x = data.dense();
    let problem = data.many(&x, &data.rates, Loss::hinge(), true);
    let stop = || true;
    let interrupted = Control::default().interrupt(&stop);
    let error = proximal::solve_many(&problem, &Options::default(), &interrupted).unwrap_err();
    assert!(matches!(error, outlast::Error::Interrupted));
    let late = Control::default().time_limit(Duration::ZERO);
    let solution = proximal::solve_many(&problem, &Options::default(), &late).unwrap();
    judge_many(&problem, &solution, f64::INFINITY);
    assert_eq!(solution.status, Status::TimeLimit);
}

#[test]
fn what_it_does_not_take_is_refused_by_name() {
    let data = Data::new(10, 2, 3, 1.0, 89);
    let x = data.dense();
    let squared = ManyClass { norm: Norm::Squared, ..data.many(&x, &data.rates, Loss::hinge(), true) };
    let error = proximal::solve_many(&squared, &Options::default(), &Control::default()).unwrap_err().to_string();
    assert!(error.contains("l1"), "{error}");
    let rbf = KernelFunction::Rbf { gamma: 1.0 };
    let kernel = ManyClass { kernel: &rbf, ..data.many(&x, &data.rates, Loss::hinge(), true) };
    let error = proximal::solve_many(&kernel, &Options::default(), &Control::default()).unwrap_err().to_string();
    assert!(error.contains("linear"), "{error}");
    let short = data.many(&x, &data.rates[1..], Loss::hinge(), true);
    let error = proximal::solve_many(&short, &Options::default(), &Control::default()).unwrap_err().to_string();
    assert!(error.contains("rates"), "{error}");
}
