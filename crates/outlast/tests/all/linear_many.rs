//! The linear solver for k classes against a general conic solver, against the judge, and against itself by identities.

use crate::common::{Random, relative};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};
use outlast::problem::{Majorant, ManyCandidate, ManyClass, Norm, Terms, TwoClass};
use outlast::solver::{Options, Solution, Start, linear};
use outlast::{Control, Dense, Design, KernelFunction, Loss, Progress, Status};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tolerance of the solver, a hundred times tighter than what is asserted.
const TOLERANCE: f64 = 1e-8;
const AGREEMENT: f64 = 1e-6;

static LINEAR: KernelFunction = KernelFunction::Linear;

/// Classes around random centres, some labels drawn anew, and weights.
struct Data {
    n: usize,
    d: usize,
    k: usize,
    values: Vec<f64>,
    codes: Vec<u32>,
    caps: Vec<f64>,
}

impl Data {
    fn new(n: usize, d: usize, k: usize, cap: f64, seed: u64) -> Data {
        let mut random = Random(seed);
        let centres: Vec<f64> = (0..k * d).map(|_| 1.5 * random.normal()).collect();
        let (mut values, mut codes) = (Vec::new(), Vec::new());
        for row in 0..n {
            let class = if row < k { row } else { random.below(k) };
            values.extend((0..d).map(|column| centres[class * d + column] + random.normal()));
            let flipped = row >= k && random.unit() < 0.15;
            codes.push(if flipped { random.below(k) } else { class } as u32);
        }
        Data { n, d, k, values, codes, caps: vec![cap; n] }
    }

    fn weighted(mut self, seed: u64) -> Data {
        let mut random = Random(seed);
        let weight = |row: usize, u: f64| if row >= self.k && u < 0.1 { 0.0 } else { 0.2 + u };
        self.caps = self.caps.iter().enumerate().map(|(row, cap)| cap * weight(row, random.unit())).collect();
        self
    }

    fn dense(&self) -> Dense<'_> {
        Dense::new(self.n, self.d, &self.values[..]).unwrap()
    }

    fn problem<'a>(&'a self, x: &'a dyn Design, terms: Terms<'a>, loss: Loss) -> ManyClass<'a> {
        let (codes, caps) = (&self.codes[..], &self.caps[..]);
        let (norm, kernel) = (Norm::Squared, &LINEAR);
        ManyClass { x, codes, classes: self.k, caps, terms, loss, norm, kernel, intercept: true }
    }

    fn solve(&self, terms: Terms, loss: Loss) -> Solution {
        solve(&self.problem(&self.dense(), terms, loss), TOLERANCE)
    }
}

fn truncated(truncation: f64) -> Loss {
    Loss::hinge().truncated_at(truncation).unwrap()
}

fn solve(problem: &ManyClass, tolerance: f64) -> Solution {
    let options = Options { tolerance, ..Options::default() };
    let solution = linear::solve_many(problem, &options, &Control::default()).unwrap();
    judge(problem, &solution, tolerance);
    solution
}

fn candidate(solution: &Solution) -> ManyCandidate<'_> {
    ManyCandidate {
        expansion: &solution.expansion,
        weights: solution.weights.as_deref(),
        intercepts: &solution.intercepts,
    }
}

/// Every claim of a solution that the problem itself can check.
fn judge(problem: &ManyClass, solution: &Solution, tolerance: f64) {
    let bound = solution.majorant.as_ref().unwrap();
    let certificate = problem.certify(&candidate(solution), bound);
    let largest = problem.caps.iter().fold(0.0f64, |a, b| a.max(*b));
    assert!(certificate.imbalance <= 1e-11 * largest * problem.rows() as f64, "{certificate:?}");
    assert!(solution.gap.is_finite() && solution.gap >= 0.0, "{}", solution.gap);
    let gap = certificate.relative_gap();
    assert!(
        (gap - solution.gap).abs() <= 1e-9 + 1e-4 * tolerance + 0.02 * solution.gap,
        "reported {} certified {gap} {} {certificate:?}",
        solution.gap,
        solution.status
    );
    if solution.status == Status::Converged {
        assert!(solution.gap <= tolerance, "{} {tolerance}", solution.gap);
    }
    let objective = problem.objective(&candidate(solution));
    assert!((objective - solution.objective).abs() <= 1e-9 * objective.abs() + f64::MIN_POSITIVE);
    assert!(solution.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", solution.trace);
    assert_eq!(solution.trace.last(), Some(&solution.objective));
    let weights = solution.weights.as_deref().unwrap();
    assert!(weights.iter().chain(&solution.intercepts).all(|value| value.is_finite()));
    // sum_j f_j = 0
    let d = problem.x.cols();
    let size = weights.iter().chain(&solution.intercepts).fold(1.0f64, |a, b| a.max(b.abs()));
    for column in 0..d {
        let sum: f64 = (0..problem.classes).map(|class| weights[class * d + column]).sum();
        assert!(sum.abs() <= 1e-12 * size * problem.classes as f64);
    }
    assert!(solution.intercepts.iter().sum::<f64>().abs() <= 1e-12 * size * problem.classes as f64);
    assert_eq!(solution.solver, "linear-band");
}

fn converged(solution: &Solution) -> &Solution {
    assert_eq!(solution.status, Status::Converged, "gap {}", solution.gap);
    solution
}

fn agree(a: f64, b: f64, what: &str) {
    assert!(relative(a, b) <= AGREEMENT, "{what}: {a} {b}");
}

/// Clarabel's minimum of 1/2 |W|^2 + sum_t c_t (xi_t - [own] f_y) - sum_i base_i.f_i over the kept terms, xi_t >= f_l + o_l.
fn independent(problem: &ManyClass, bound: &Majorant) -> f64 {
    let (k, d) = (problem.classes, problem.x.cols());
    let cost = matches!(problem.terms, Terms::Cost(_));
    let terms: Vec<(usize, usize, f64)> = (0..problem.rows())
        .flat_map(|row| (0..k).map(move |class| (row, class)))
        .map(|(row, class)| (row, class, problem.kept_cap(bound, row, class)))
        .filter(|(.., cap)| *cap > 0.0)
        .collect();
    // variables: W, b with b_0 = 0, xi
    let size = k * d + k + terms.len();
    let w = |class: usize, column: usize| class * d + column;
    let b = |class: usize| k * d + class;
    let mut q = vec![0.0; size];
    let mut entries: Vec<(usize, usize, f64)> = vec![(0, b(0), 1.0)];
    let mut right = vec![0.0];
    let mut x = vec![0.0; d];
    let linear = |q: &mut [f64], x: &[f64], class: usize, weight: f64| {
        (0..d).for_each(|column| q[w(class, column)] += weight * x[column]);
        q[b(class)] += weight;
    };
    if !problem.intercept {
        for class in 1..k {
            entries.push((class, b(class), 1.0));
            right.push(0.0);
        }
    }
    let zeros = right.len();
    for (at, &(row, class, cap)) in terms.iter().enumerate() {
        problem.x.copy_row(row, &mut x);
        q[k * d + k + at] += cap;
        if !cost {
            linear(&mut q, &x, class, -cap);
        }
        for other in 0..k {
            // f_other + o - xi <= 0
            let line = right.len();
            for column in 0..d {
                entries.push((line, w(other, column), x[column]));
            }
            entries.push((line, b(other), 1.0));
            entries.push((line, k * d + k + at, -1.0));
            right.push(if (other == class) == cost { -1.0 } else { 0.0 });
        }
    }
    for (row, base) in bound.base.chunks_exact(k).enumerate() {
        problem.x.copy_row(row, &mut x);
        base.iter().enumerate().for_each(|(class, base)| linear(&mut q, &x, class, -base));
    }
    let diagonal: Vec<usize> = (0..k * d).collect();
    let p = CscMatrix::new_from_triplets(size, size, diagonal.clone(), diagonal, vec![1.0; k * d]);
    let rows = entries.iter().map(|entry| entry.0).collect();
    let cols = entries.iter().map(|entry| entry.1).collect();
    let values = entries.iter().map(|entry| entry.2).collect();
    let a = CscMatrix::new_from_triplets(right.len(), size, rows, cols, values);
    let cones = [SupportedConeT::ZeroConeT(zeros), SupportedConeT::NonnegativeConeT(right.len() - zeros)];
    let settings = DefaultSettings {
        verbose: false,
        tol_gap_abs: 1e-10,
        tol_gap_rel: 1e-10,
        tol_feas: 1e-10,
        ..DefaultSettings::default()
    };
    let mut solver = DefaultSolver::new(&p, &q, &a, &right, &cones, settings).unwrap();
    solver.solve();
    assert!(matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved));
    solver.solution.obj_val
}

/// The convex value of a solution's bound, and Clarabel's.
fn critical(problem: &ManyClass, solution: &Solution, what: &str) {
    converged(solution);
    let bound = solution.majorant.as_ref().unwrap();
    let found = problem.certify(&candidate(solution), bound).primal;
    agree(found, independent(problem, bound), what);
    // the bound is the solution's own
    let own = problem.majorant(&solution.decision, None);
    let flags = Majorant { kept: own.kept, base: bound.base.clone() };
    assert_eq!(problem.changes(bound, &flags), 0, "{what}");
}

fn random_factors(k: usize, seed: u64) -> Vec<f64> {
    let mut random = Random(seed);
    (0..k * k).map(|at| if at % (k + 1) == 0 { 1.0 } else { (random.unit() - 0.3).max(0.0) }).collect()
}

#[test]
fn the_hinge_agrees_with_clarabel() {
    for k in 2..=5 {
        for (seed, cap) in [(1, 0.05), (2, 3.0)] {
            let data = Data::new(90, 3, k, cap, 10 * k as u64 + seed).weighted(seed);
            let x = data.dense();
            for intercept in [true, false] {
                let problem = ManyClass { intercept, ..data.problem(&x, Terms::Own, Loss::hinge()) };
                let solution = solve(&problem, TOLERANCE);
                converged(&solution);
                let what = format!("{k} classes, C = {cap}, intercept {intercept}");
                agree(solution.objective, independent(&problem, &problem.untruncated()), &what);
                assert!(solution.weights.unwrap().iter().any(|w| w.abs() > 1e-6), "{what}");
            }
        }
    }
}

#[test]
fn utilities_agree_with_clarabel_and_the_identity_is_the_plain_problem() {
    for k in 2..=4 {
        let data = Data::new(70, 3, k, 0.5, 77 + k as u64).weighted(3);
        let x = data.dense();
        let factors = random_factors(k, k as u64);
        let problem = data.problem(&x, Terms::Utility(&factors), Loss::hinge());
        let solution = solve(&problem, TOLERANCE);
        agree(converged(&solution).objective, independent(&problem, &problem.untruncated()), "utility");
        let identity: Vec<f64> = (0..k * k).map(|at| f64::from(u8::from(at % (k + 1) == 0))).collect();
        let same = data.solve(Terms::Utility(&identity), Loss::hinge());
        agree(same.objective, data.solve(Terms::Own, Loss::hinge()).objective, "identity");
    }
}

#[test]
fn truncated_solutions_are_critical() {
    for k in 2..=4 {
        for seed in [5, 6] {
            let data = Data::new(80, 3, k, 1.0, 100 * k as u64 + seed).weighted(seed);
            let x = data.dense();
            let factors = random_factors(k, seed);
            let loss = truncated(-1.0 / (k as f64 - 1.0));
            for terms in [Terms::Own, Terms::Utility(&factors)] {
                let problem = data.problem(&x, terms, loss);
                let solution = solve(&problem, TOLERANCE);
                critical(&problem, &solution, &format!("{k} {seed} {terms:?}"));
                // never above the plain optimum
                let plain = data.solve(terms, Loss::hinge());
                assert!(solution.objective <= problem.objective(&candidate(&plain)) * (1.0 + AGREEMENT));
            }
        }
    }
}

#[test]
fn the_cost_form_is_critical() {
    for (k, loss) in
        [(2, Loss::hinge()), (2, truncated(-1.0)), (3, Loss::hinge()), (3, truncated(-0.5)), (4, truncated(0.0))]
    {
        let data = Data::new(60, 2, k, 0.7, 900 + k as u64);
        let x = data.dense();
        let mut random = Random(9);
        let mut factors: Vec<f64> = (0..k * k).map(|_| 0.2 + random.unit()).collect();
        (0..k).for_each(|class| factors[class * (k + 1)] = 0.0);
        let problem = data.problem(&x, Terms::Cost(&factors), loss);
        let solution = solve(&problem, TOLERANCE);
        let bound = solution.majorant.as_ref().unwrap();
        let found = problem.certify(&candidate(&solution), bound).primal;
        let expected = independent(&problem, bound);
        assert!(solution.objective > 1e-3);
        assert!((found - expected).abs() <= AGREEMENT * solution.objective, "{k} {found} {expected}");
        // a class that never costs anything; the judge's relative gap of an objective of 0 is rounding
        (0..k).for_each(|row| factors[row * k + 1] = 0.0);
        let problem = data.problem(&x, Terms::Cost(&factors), loss);
        let free = linear::solve_many(&problem, &Options::default(), &Control::default()).unwrap();
        assert_eq!((free.objective, problem.objective(&candidate(&free))), (0.0, 0.0));
    }
}

#[test]
fn two_classes_are_the_two_class_solver() {
    let data = Data::new(300, 4, 2, 0.4, 21).weighted(4);
    let x = data.dense();
    let signs: Vec<f64> = data.codes.iter().map(|code| 2.0 * f64::from(*code) - 1.0).collect();
    // |w|^2 = 2 |w_1|^2 with f = f_1 - f_0 = 2 f_1: the objective is half of that with twice C
    let caps: Vec<f64> = data.caps.iter().map(|cap| 2.0 * cap).collect();
    for loss in [Loss::hinge(), truncated(-1.0)] {
        let (norm, kernel, intercept) = (Norm::Squared, &LINEAR, true);
        let two = TwoClass { x: &x, signs: &signs, caps: &caps, loss, norm, kernel, intercept };
        let options = Options { tolerance: TOLERANCE, ..Options::default() };
        let two = linear::solve(&two, &options, &Control::default()).unwrap();
        let many = data.solve(Terms::Own, loss);
        if loss.truncation().is_none() {
            agree(2.0 * many.objective, two.objective, "k = 2");
            for (column, w) in two.weights.unwrap().iter().enumerate() {
                let own = many.weights.as_ref().unwrap();
                assert!((own[data.d + column] - own[column] - w).abs() <= 1e-3 * (1.0 + w.abs()));
            }
        } else {
            // limits of majorise-minimise need not agree
            assert!(2.0 * many.objective <= 1.02 * two.objective);
        }
    }
}

#[test]
fn samples_and_bands_reach_the_tolerance() {
    // too many rows for the interior point alone
    for (k, loss) in [(3, Loss::hinge()), (4, Loss::hinge()), (3, truncated(-0.5))] {
        let data = Data::new(9000, 4, k, 0.02, 31 + k as u64);
        let solution = data.solve(Terms::Own, loss);
        converged(&solution);
        assert!(solution.weights.unwrap().iter().any(|w| w.abs() > 1e-3));
    }
}

#[test]
fn threads_do_not_change_the_answer() {
    let data = Data::new(6000, 3, 3, 0.1, 41);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| data.solve(Terms::Own, truncated(-0.5)))
    };
    let (one, two) = (run(1), run(2));
    assert_eq!(one.objective, two.objective);
    assert_eq!(one.weights, two.weights);
}

#[test]
fn permuted_classes_and_doubled_rows() {
    let data = Data::new(150, 3, 4, 0.6, 51);
    let plain = data.solve(Terms::Own, Loss::hinge());
    let order = [2u32, 0, 3, 1];
    let codes = data.codes.iter().map(|code| order[*code as usize]).collect();
    let permuted = Data { codes, values: data.values.clone(), caps: data.caps.clone(), ..data };
    let other = permuted.solve(Terms::Own, Loss::hinge());
    agree(other.objective, plain.objective, "permuted classes");
    for class in 0..4 {
        let to = order[class] as usize;
        assert!((plain.intercepts[class] - other.intercepts[to]).abs() <= 1e-3);
    }
    let data = Data::new(150, 3, 4, 0.6, 51);
    let twice = Data {
        n: 300,
        values: [&data.values[..], &data.values[..]].concat(),
        codes: [&data.codes[..], &data.codes[..]].concat(),
        caps: vec![0.3; 300],
        ..data
    };
    agree(twice.solve(Terms::Own, Loss::hinge()).objective, plain.objective, "doubled rows");
}

#[test]
fn warm_starts_reach_the_same_optimum() {
    let data = Data::new(2500, 3, 3, 0.1, 61);
    let x = data.dense();
    let problem = data.problem(&x, Terms::Own, Loss::hinge());
    let cold = solve(&problem, TOLERANCE);
    let start = Start {
        expansion: Vec::new(),
        weights: cold.weights.as_ref().map(|weights| weights.iter().map(|w| 1.3 * w).collect()),
        intercepts: cold.intercepts.clone(),
    };
    let options = Options { tolerance: TOLERANCE, start: Some(start), ..Options::default() };
    let warm = linear::solve_many(&problem, &options, &Control::default()).unwrap();
    judge(&problem, &warm, TOLERANCE);
    agree(converged(&warm).objective, cold.objective, "warm");
    let short = Start { weights: Some(vec![0.0; 2]), ..Start::default() };
    let options = Options { start: Some(short), ..Options::default() };
    assert!(linear::solve_many(&problem, &options, &Control::default()).is_err());
}

#[test]
fn hostile_data_neither_fails_nor_lies() {
    let loose = 1e-4;
    let base = || Data::new(120, 3, 3, 1.0, 71);
    let mut cases: Vec<(&str, Data)> = Vec::new();
    for cap in [0.0, 1e-300, 1e-10, 1e6, 1e10] {
        cases.push(("caps", Data { caps: vec![cap; 120], ..base() }));
    }
    for scale in [1e-300, 1e-8, 1e8, 1e150] {
        cases.push(("scale", Data { values: base().values.iter().map(|v| v * scale).collect(), ..base() }));
    }
    let mut constant = base();
    constant.values.chunks_exact_mut(3).for_each(|row| row[1] = 7.0);
    cases.push(("a constant column", constant));
    cases.push(("nothing but constants", Data { values: vec![2.0; 360], ..base() }));
    cases.push(("zeros", Data { values: vec![0.0; 360], ..base() }));
    cases.push(("one class", Data { codes: vec![1; 120], ..base() }));
    let single = (0..120).map(|row| if row == 0 { 2 } else { row % 2 } as u32).collect();
    cases.push(("a class with one row", Data { codes: single, ..base() }));
    cases.push(("a class with no row", Data { k: 5, ..base() }));
    let tiny =
        Data { n: 2, values: vec![0.0, 1.0, 0.0, 1.0, 0.0, 0.0], codes: vec![0, 2], caps: vec![1.0; 2], ..base() };
    cases.push(("fewer rows than classes", tiny));
    let mut uneven = base();
    uneven.values.chunks_exact_mut(3).for_each(|row| {
        row[0] *= 1e-6;
        row[2] *= 1e5;
    });
    cases.push(("uneven columns", uneven));
    // separable: three corners far apart
    let corner = |row: usize| [[9.0, 0.0, 0.1], [-9.0, 1.0, 0.0], [0.0, 12.0, -0.1]][row % 3];
    let codes = (0..120).map(|row| row as u32 % 3).collect();
    let values = (0..120).flat_map(corner).collect();
    cases.push(("separable and duplicated", Data { values, codes, caps: vec![1e6; 120], ..base() }));
    for (what, data) in &cases {
        for loss in [Loss::hinge(), truncated(-0.5)] {
            let x = data.dense();
            let solution = solve(&data.problem(&x, Terms::Own, loss), loose);
            let fine = matches!(solution.status, Status::Converged | Status::Inaccurate);
            assert!(fine, "{what}: {} {}", solution.status, solution.gap);
            assert!(solution.objective.is_finite(), "{what}");
            let huge = data.caps[0] >= 1e6 || data.caps[0] < 1e-100;
            let cap = data.caps[0];
            assert!(huge || *what == "scale" || solution.status == Status::Converged, "{what} {cap}: {}", solution.gap);
        }
    }
}

#[test]
fn rare_columns_and_many_rows() {
    // a column that is not 0 in a handful of rows, enormous there
    let mut data = Data::new(6000, 4, 3, 0.5, 81);
    data.values.chunks_exact_mut(4).enumerate().for_each(|(row, x)| x[3] = if row % 997 == 3 { 300.0 } else { 0.0 });
    let x = data.dense();
    for loss in [Loss::hinge(), truncated(-0.5)] {
        converged(&solve(&data.problem(&x, Terms::Own, loss), 1e-5));
    }
}

#[test]
fn no_more_steps_than_asked_for() {
    for n in [300, 9_000] {
        let data = Data::new(n, 3, 3, 1.0, 77);
        let (x, steps) = (data.dense(), AtomicUsize::new(0));
        let count = |progress: Progress| {
            steps.fetch_add(usize::from(progress.stage == "truncated"), Ordering::Relaxed);
        };
        let control = Control::default().progress(&count);
        let problem = data.problem(&x, Terms::Own, truncated(-0.5));
        let options = Options { tolerance: TOLERANCE, max_steps: 1, ..Options::default() };
        let solution = linear::solve_many(&problem, &options, &control).unwrap();
        assert!(steps.load(Ordering::Relaxed) <= 1, "{n} rows: {steps:?}");
        judge(&problem, &solution, TOLERANCE);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let data = Data::new(20, 2, 3, 1.0, 91);
    let x = data.dense();
    let refused = |problem: ManyClass| linear::solve_many(&problem, &Options::default(), &Control::default()).is_err();
    assert!(refused(data.problem(&x, Terms::Own, Loss::logistic())));
    let rates = vec![1.0; 6];
    assert!(refused(ManyClass { norm: Norm::Absolute(&rates), ..data.problem(&x, Terms::Own, Loss::hinge()) }));
    assert!(refused(ManyClass { classes: 2, ..data.problem(&x, Terms::Own, Loss::hinge()) }));
    let stop = || true;
    let control = Control::default().interrupt(&stop);
    let problem = data.problem(&x, Terms::Own, Loss::hinge());
    assert!(linear::solve_many(&problem, &Options::default(), &control).is_err());
}
