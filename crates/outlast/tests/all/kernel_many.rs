//! The kernel solver for many classes against Clarabel and its own identities.

use crate::common::{Data, Random, kernel_matrix, relative};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, ZeroConeT};
use outlast::linalg::Isa;
use outlast::problem::{Certificate, Majorant, ManyCandidate, ManyClass, Norm, Terms, TwoClass};
use outlast::solver::{Options, Solution, Start, kernel};
use outlast::{Control, Dense, Design, KernelFunction, Loss, Status};

/// Relative gap asked of the solver, and relative difference allowed against others.
const TIGHT: f64 = 1e-8;
const CLOSE: f64 = 1e-6;

fn options() -> Options {
    Options { tolerance: TIGHT, ..Options::default() }
}

fn solve(problem: &ManyClass) -> Solution {
    kernel::solve_many(problem, &options(), &Control::default()).unwrap()
}

fn candidate(solution: &Solution) -> ManyCandidate<'_> {
    ManyCandidate { expansion: &solution.expansion, weights: None, intercepts: &solution.intercepts }
}

fn certify(problem: &ManyClass, solution: &Solution) -> Certificate {
    problem.certify(&candidate(solution), solution.majorant.as_ref().unwrap())
}

fn kernels() -> [KernelFunction; 3] {
    [
        KernelFunction::Rbf { gamma: 0.3 },
        KernelFunction::Linear,
        KernelFunction::Poly { gamma: 0.5, degree: 2, coef0: 1.0 },
    ]
}

/// Noisy rows round one centre per class.
struct Many {
    rows: usize,
    cols: usize,
    classes: usize,
    values: Vec<f64>,
    codes: Vec<u32>,
    weights: Vec<f64>,
}

impl Many {
    fn noisy(rows: usize, cols: usize, classes: usize, flipped: f64, seed: u64) -> Many {
        let mut random = Random(seed);
        let centres: Vec<f64> = (0..classes * cols).map(|_| 1.5 * random.normal()).collect();
        let (mut values, mut codes) = (Vec::new(), Vec::new());
        for row in 0..rows {
            let class = if row < classes { row } else { random.below(classes) };
            values.extend((0..cols).map(|column| centres[class * cols + column] + random.normal()));
            let flip = row >= classes && random.unit() < flipped;
            codes.push(if flip { random.below(classes) } else { class } as u32);
        }
        Many { rows, cols, classes, values, codes, weights: vec![1.0; rows] }
    }

    fn weighted(mut self, seed: u64) -> Many {
        let mut random = Random(seed);
        let classes = self.classes;
        let weight = |row: usize, random: &mut Random| {
            if row >= classes && random.unit() < 0.1 { 0.0 } else { 0.2 + random.unit() }
        };
        self.weights = (0..self.rows).map(|row| weight(row, &mut random)).collect();
        self
    }

    fn dense(&self) -> Dense<'_> {
        Dense::new(self.rows, self.cols, &self.values[..]).unwrap()
    }

    fn caps(&self, c: f64) -> Vec<f64> {
        self.weights.iter().map(|w| c * w).collect()
    }

    fn problem<'a>(&'a self, x: &'a dyn Design, caps: &'a [f64], kernel: &'a KernelFunction) -> ManyClass<'a> {
        ManyClass {
            x,
            codes: &self.codes,
            classes: self.classes,
            caps,
            terms: Terms::Own,
            loss: Loss::hinge(),
            norm: Norm::Squared,
            kernel,
            intercept: true,
        }
    }
}

fn random_factors(classes: usize, own: f64, seed: u64) -> Vec<f64> {
    let mut random = Random(seed);
    let entry = |at: usize, random: &mut Random| {
        if at / classes == at % classes { own } else { if random.unit() < 0.2 { 0.0 } else { 0.8 * random.unit() } }
    };
    (0..classes * classes).map(|at| entry(at, &mut random)).collect()
}

fn truncated(classes: usize) -> Loss {
    Loss::hinge().truncated_at(-1.0 / (classes as f64 - 1.0)).unwrap()
}

/// L with L L' = K, columns of nothing but rounding left at 0.
fn root(kernel: &[f64], n: usize) -> Vec<f64> {
    let mut l = vec![0.0; n * n];
    let largest = (0..n).map(|i| kernel[i * n + i]).fold(0.0, f64::max);
    for j in 0..n {
        let pivot = kernel[j * n + j] - (0..j).map(|m| l[j * n + m] * l[j * n + m]).sum::<f64>();
        if pivot <= 1e-11 * largest {
            continue;
        }
        l[j * n + j] = pivot.sqrt();
        for i in j + 1..n {
            let inner: f64 = (0..j).map(|m| l[i * n + m] * l[j * n + m]).sum();
            l[i * n + j] = (kernel[i * n + j] - inner) / l[j * n + j];
        }
    }
    l
}

/// Clarabel's minimum of the convex problem of a bound, stated in the primal: with K = L L' and f_j = L w_j + b_j,
/// min 1/2 sum |w_j|^2 + sum_t c_t z_t - base'f, z_t >= every piece of term t.
fn clarabel_primal(problem: &ManyClass, bound: &Majorant, kernel: &[f64]) -> f64 {
    let (n, k) = (problem.rows(), problem.classes);
    let l = root(kernel, n);
    let cost_form = matches!(problem.terms, Terms::Cost(_));
    let terms: Vec<(usize, usize, f64)> = (0..n)
        .flat_map(|row| (0..k).map(move |class| (row, class)))
        .map(|(row, class)| (row, class, problem.kept_cap(bound, row, class)))
        .filter(|term| term.2 > 0.0)
        .collect();
    let (b_at, z_at) = (n * k, n * k + if problem.intercept { k } else { 0 });
    let size = z_at + terms.len();
    let (mut rows, mut cols, mut values, mut right) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut cones = Vec::new();
    if problem.intercept {
        for class in 0..k {
            rows.push(0);
            cols.push(b_at + class);
            values.push(1.0);
        }
        right.push(0.0);
        cones.push(ZeroConeT(1));
    }
    // adds s f_class(x_row) to the last row
    let add =
        |rows: &mut Vec<usize>, cols: &mut Vec<usize>, values: &mut Vec<f64>, at, row: usize, class: usize, s: f64| {
            for m in (0..=row).filter(|&m| l[row * n + m] != 0.0) {
                rows.push(at);
                cols.push(class * n + m);
                values.push(s * l[row * n + m]);
            }
            if problem.intercept {
                rows.push(at);
                cols.push(b_at + class);
                values.push(s);
            }
        };
    let equalities = right.len();
    for (t, &(row, class, _)) in terms.iter().enumerate() {
        let mut piece = |parts: &[(usize, f64)], constant: f64| {
            // parts.f + constant - z <= 0
            let at = right.len();
            parts.iter().for_each(|&(class, s)| add(&mut rows, &mut cols, &mut values, at, row, class, s));
            rows.push(at);
            cols.push(z_at + t);
            values.push(-1.0);
            right.push(-constant);
        };
        let others = (0..k).filter(|&other| other != class);
        if cost_form {
            piece(&[(class, 1.0)], 1.0);
            others.for_each(|other| piece(&[(other, 1.0)], 0.0));
        } else {
            piece(&[], 0.0);
            others.for_each(|other| piece(&[(other, 1.0), (class, -1.0)], 1.0));
        }
    }
    cones.push(NonnegativeConeT(right.len() - equalities));
    let mut q = vec![0.0; size];
    terms.iter().enumerate().for_each(|(t, term)| q[z_at + t] = term.2);
    if cost_form {
        for at in 0..n * k {
            let (row, class, base) = (at / k, at % k, bound.base[at]);
            (0..=row).for_each(|m| q[class * n + m] -= base * l[row * n + m]);
            if problem.intercept {
                q[b_at + class] -= base;
            }
        }
    }
    let diagonal: Vec<usize> = (0..n * k).collect();
    let p = CscMatrix::new_from_triplets(size, size, diagonal.clone(), diagonal, vec![1.0; n * k]);
    let a = CscMatrix::new_from_triplets(right.len(), size, rows, cols, values);
    let settings = DefaultSettings {
        verbose: false,
        tol_gap_abs: 1e-11,
        tol_gap_rel: 1e-11,
        tol_feas: 1e-11,
        ..DefaultSettings::default()
    };
    let mut solver = DefaultSolver::new(&p, &q, &a, &right, &cones, settings).unwrap();
    solver.solve();
    assert!(
        matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved),
        "the judge failed: {:?}",
        solver.solution.status
    );
    solver.solution.obj_val
}

/// The convex problem last solved has Clarabel's optimum, and the certificate says so.
fn check_convex(problem: &ManyClass, solution: &Solution, what: &str) {
    assert_eq!(solution.status, Status::Converged, "{what}: gap {:e}", solution.gap);
    let certificate = certify(problem, solution);
    assert!(certificate.relative_gap() < 10.0 * TIGHT, "{what}: {certificate:?}");
    assert!(certificate.imbalance < 1e-9, "{what}: {certificate:?}");
    let matrix = kernel_matrix(problem.kernel, &copy(problem.x));
    let reference = clarabel_primal(problem, solution.majorant.as_ref().unwrap(), &matrix);
    let size = reference.abs().max(1e-3);
    assert!((certificate.primal - reference).abs() < CLOSE * size, "{what}: {} {reference}", certificate.primal);
    for row in solution.expansion.chunks_exact(problem.classes).chain(solution.decision.chunks_exact(problem.classes)) {
        assert!(row.iter().sum::<f64>().abs() < 1e-6 * (1.0 + row[0].abs()), "{what}: rows sum to 0");
    }
    assert!(solution.intercepts.iter().sum::<f64>().abs() < 1e-9, "{what}");
}

fn copy(x: &dyn Design) -> Dense<'static> {
    let mut values = vec![0.0; x.rows() * x.cols()];
    values.chunks_exact_mut(x.cols()).enumerate().for_each(|(row, out)| x.copy_row(row, out));
    Dense::new(x.rows(), x.cols(), values).unwrap()
}

#[test]
fn convex_problems_match_clarabel() {
    for classes in 2..=5 {
        for (number, kernel) in kernels().iter().enumerate() {
            let seed = 10 * classes as u64 + number as u64;
            let data = Many::noisy(36, 3, classes, 0.15, seed).weighted(seed);
            let x = data.dense();
            let caps = data.caps([0.3, 1.0, 5.0][(number + classes) % 3]);
            let (utility, cost) = (random_factors(classes, 1.0, seed), random_factors(classes, 0.0, seed + 1));
            for (form, terms) in [Terms::Own, Terms::Utility(&utility), Terms::Cost(&cost)].into_iter().enumerate() {
                let intercept = (number + classes + form) % 3 != 0;
                let problem = ManyClass { terms, intercept, ..data.problem(&x, &caps, kernel) };
                let solution = solve(&problem);
                check_convex(&problem, &solution, &format!("{} k = {classes} {terms:?} {intercept}", kernel.name()));
                if form < 2 {
                    assert!(solution.expansion.iter().any(|v| *v != 0.0), "trivial");
                    assert!(relative(solution.objective, certify(&problem, &solution).primal) < CLOSE);
                }
            }
        }
    }
}

/// Where exchanges between two classes do not suffice.
#[test]
fn hundreds_of_tiny_problems_match_clarabel() {
    for seed in 0..300 {
        let mut random = Random(1000 + seed);
        let classes = 3 + random.below(2);
        let rows = 6 + random.below(5);
        let data = Many::noisy(rows, 2, classes, 0.4, seed).weighted(seed);
        let x = data.dense();
        let caps = data.caps(10f64.powf(2.0 * random.unit() - 1.0));
        let kernel = KernelFunction::Rbf { gamma: 0.2 + random.unit() };
        let utility = random_factors(classes, 1.0, seed);
        let terms = if seed % 3 == 0 { Terms::Utility(&utility) } else { Terms::Own };
        let problem = ManyClass { terms, ..data.problem(&x, &caps, &kernel) };
        let solution = solve(&problem);
        check_convex(&problem, &solution, &format!("seed {seed}"));
    }
}

#[test]
fn truncated_solutions_go_down_and_end_critical() {
    for classes in [3, 4] {
        for form in 0..3 {
            let data = Many::noisy(50, 2, classes, 0.2, 7 + form);
            let x = data.dense();
            let caps = data.caps(2.0);
            let kernel = KernelFunction::Rbf { gamma: 0.4 };
            let (utility, cost) = (random_factors(classes, 1.0, form), random_factors(classes, 0.0, form));
            let terms = [Terms::Own, Terms::Utility(&utility), Terms::Cost(&cost)][form as usize];
            let problem = ManyClass { terms, loss: truncated(classes), ..data.problem(&x, &caps, &kernel) };
            let solution = solve(&problem);
            let what = format!("{terms:?} k = {classes}");
            let hinge = solve(&ManyClass { loss: Loss::hinge(), ..problem });
            let truncates = problem.majorant(&hinge.decision, None).kept.contains(&false);
            assert!(solution.trace.len() > 1 || !truncates, "{what}: nothing moved");
            assert!(solution.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{what}: {:?}", solution.trace);
            let objective = problem.objective(&candidate(&solution));
            assert!(relative(objective, solution.objective) < CLOSE, "{what}: {objective} {}", solution.objective);
            // no decrease from the convex problem of its own bound
            let bound = problem.majorant(&solution.decision, None);
            let matrix = kernel_matrix(&kernel, &x);
            if form < 2 {
                let own = problem.penalty(&candidate(&solution), &solution.decision)
                    + problem.convex_loss(&bound, &solution.decision);
                let best = clarabel_primal(&problem, &bound, &matrix);
                assert!(own - best < CLOSE * own.abs(), "{what}: {own} {best}");
            }
            check_convex(&problem, &solution, &what);
            // never above the hinge solution, where that is the start (the cost form has its own path there)
            if form < 2 {
                assert!(solution.objective <= problem.objective(&candidate(&hinge)) * (1.0 + CLOSE), "{what}");
            }
        }
    }
}

#[test]
fn two_classes_equal_the_two_class_solver() {
    for (seed, c, loss) in [(1, 0.5, Loss::hinge()), (2, 5.0, Loss::hinge()), (3, 1.0, truncated(2))] {
        let data = Data::noisy(80, 3, 0.1, seed).weighted(seed);
        let x = data.dense();
        for kernel in &kernels() {
            // which critical point a truncated path ends in is its own affair: here it is the same one
            if loss.truncation().is_some() && kernel.name() != "rbf" {
                continue;
            }
            let caps: Vec<f64> = data.weights.iter().map(|w| c * w).collect();
            let doubled: Vec<f64> = caps.iter().map(|cap| 2.0 * cap).collect();
            let codes: Vec<u32> = data.signs.iter().map(|&sign| u32::from(sign > 0.0)).collect();
            let two = TwoClass {
                x: &x,
                signs: &data.signs,
                caps: &doubled,
                loss,
                norm: Norm::Squared,
                kernel,
                intercept: true,
            };
            let many = ManyClass {
                x: &x,
                codes: &codes,
                classes: 2,
                caps: &caps,
                terms: Terms::Own,
                loss,
                norm: Norm::Squared,
                kernel,
                intercept: true,
            };
            let two = kernel::solve(&two, &options(), &Control::default()).unwrap();
            let many = solve(&many);
            // w_1 = -w_2 = w / 2: half the penalty
            assert!(relative(2.0 * many.objective, two.objective) < CLOSE, "{} {:?}", kernel.name(), loss.truncation());
            if loss.truncation().is_none() && kernel.name() == "rbf" {
                for (row, f) in two.decision.iter().enumerate() {
                    let own = many.decision[2 * row + 1] - many.decision[2 * row];
                    assert!((own - f).abs() < 1e-3 * (1.0 + f.abs()), "{own} {f}");
                }
            }
        }
    }
}

#[test]
fn identities() {
    let classes = 3;
    let data = Many::noisy(60, 3, classes, 0.1, 5);
    let x = data.dense();
    let caps = data.caps(1.5);
    for kernel in &kernels() {
        let problem = data.problem(&x, &caps, kernel);
        let expected = solve(&problem).objective;
        let identity = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        let weighted = solve(&ManyClass { terms: Terms::Utility(&identity), ..problem });
        assert!(relative(weighted.objective, expected) < CLOSE, "utility = identity");
        let permuted: Vec<u32> = data.codes.iter().map(|&code| (code + 1) % 3).collect();
        let other = solve(&ManyClass { codes: &permuted, ..problem });
        assert!(relative(other.objective, expected) < CLOSE, "permuted classes");
        let doubled: Vec<f64> = caps.iter().map(|cap| 2.0 * cap).collect();
        let heavy = solve(&ManyClass { caps: &doubled, ..problem });
        let values: Vec<f64> = data.values.iter().chain(&data.values).copied().collect();
        let codes: Vec<u32> = data.codes.iter().chain(&data.codes).copied().collect();
        let twice: Vec<f64> = caps.iter().chain(&caps).copied().collect();
        let both = Dense::new(2 * data.rows, data.cols, values).unwrap();
        let twin = solve(&ManyClass { x: &both, codes: &codes, caps: &twice, ..problem });
        assert!(relative(twin.objective, heavy.objective) < CLOSE, "duplicated rows");
        let far = solve(&ManyClass { loss: Loss::hinge().truncated_at(-1e6).unwrap(), ..problem });
        assert!(relative(far.objective, expected) < CLOSE, "a truncation nobody reaches");
    }
}

/// Every way of computing gives the same objective.
#[test]
fn instruction_sets_threads_budgets_and_starts_agree() {
    let classes = 4;
    let data = Many::noisy(500, 5, classes, 0.1, 21);
    let x = data.dense();
    let caps = data.caps(1.0);
    let utility = random_factors(classes, 1.0, 3);
    for (kernel, terms) in
        [(&kernels()[0], Terms::Own), (&kernels()[1], Terms::Own), (&kernels()[0], Terms::Utility(&utility))]
    {
        let problem = ManyClass { terms, ..data.problem(&x, &caps, kernel) };
        let expected = solve(&problem);
        let check = |what: &str, solution: Solution| {
            let difference = relative(solution.objective, expected.objective);
            assert!(difference < CLOSE, "{} {terms:?} {what}: {difference:e} {:?}", kernel.name(), solution.status);
        };
        for isa in Isa::available() {
            let run = kernel::solve_many_on(isa, &problem, &options(), &Control::default()).unwrap();
            check(&format!("{isa:?}"), run);
        }
        let small = Options { cache_bytes: 1_000_000, ..options() };
        check("1 MB", kernel::solve_many(&problem, &small, &Control::default()).unwrap());
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            check("threads", pool.install(|| solve(&problem)));
        }
        let other = data.caps(0.3);
        let near = solve(&ManyClass { caps: &other, ..problem });
        let start = Start { expansion: near.expansion, weights: None, intercepts: near.intercepts };
        let warm = Options { start: Some(start), ..options() };
        check("warm", kernel::solve_many(&problem, &warm, &Control::default()).unwrap());
    }
}

#[test]
fn precomputed_and_wide_rows_agree_with_the_built_in_kernel() {
    // more than 64 columns: rows of K are kept
    let data = Many::noisy(300, 70, 3, 0.1, 33);
    let x = data.dense();
    let caps = data.caps(1.0);
    let kernel = KernelFunction::Rbf { gamma: 0.01 };
    let problem = data.problem(&x, &caps, &kernel);
    let expected = solve(&problem).objective;
    let gram = Dense::new(data.rows, data.rows, kernel_matrix(&kernel, &x)).unwrap();
    let precomputed = ManyClass { x: &gram, kernel: &KernelFunction::Precomputed, ..problem };
    assert!(relative(solve(&precomputed).objective, expected) < CLOSE);
    for bytes in [0, 1_000_000] {
        let few = Options { cache_bytes: bytes, ..options() };
        let solution = kernel::solve_many(&problem, &few, &Control::default()).unwrap();
        assert!(relative(solution.objective, expected) < CLOSE, "{bytes} bytes");
    }
}

/// Working sets smaller than the data, and the loose path.
#[test]
fn many_rows_are_certified_by_the_judge() {
    let classes = 3;
    let data = Many::noisy(5000, 4, classes, 0.15, 55);
    let x = data.dense();
    let caps = data.caps(1.0);
    let kernel = KernelFunction::Rbf { gamma: 0.2 };
    let mut objectives = Vec::new();
    for loss in [Loss::hinge(), truncated(classes)] {
        let problem = ManyClass { loss, ..data.problem(&x, &caps, &kernel) };
        let options = Options { tolerance: 1e-5, ..Options::default() };
        let solution = kernel::solve_many(&problem, &options, &Control::default()).unwrap();
        assert_eq!(solution.status, Status::Converged);
        let certificate = certify(&problem, &solution);
        assert!(certificate.relative_gap() < 2e-5 && certificate.imbalance < 1e-6, "{certificate:?}");
        assert!(solution.trace.windows(2).all(|pair| pair[1] <= pair[0]));
        objectives.push(solution.objective);
    }
    assert!(objectives[1] < objectives[0]);
}

#[test]
fn hostile_problems_end_with_numbers() {
    let rows = [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [2.0, 0.0], [0.0, 2.0]];
    let x = Dense::from_rows(&rows);
    let codes = [0, 1, 2, 0, 1, 2, 0];
    let sigmoid = KernelFunction::Sigmoid { gamma: 0.5, coef0: -1.0 };
    let utility = random_factors(5, 1.0, 1);
    let identity: Vec<f64> = (0..25).map(|at| f64::from(u8::from(at / 5 == at % 5))).collect();
    for kernel in kernels().into_iter().chain([sigmoid]) {
        for c in [0.0, 1e-300, 1e-10, 1.0, 1e10] {
            for intercept in [true, false] {
                // classes 3 and 4 have no row
                for factors in [&utility, &identity] {
                    let caps = [c, c, c, 0.0, c, c, c];
                    let problem = ManyClass {
                        x: &x,
                        codes: &codes,
                        classes: 5,
                        caps: &caps,
                        terms: Terms::Utility(factors),
                        loss: Loss::hinge().truncated_at(0.0).unwrap(),
                        norm: Norm::Squared,
                        kernel: &kernel,
                        intercept,
                    };
                    for terms in [problem.terms, Terms::Own, Terms::Cost(factors)] {
                        let problem = ManyClass { terms, ..problem };
                        let solution = kernel::solve_many(&problem, &Options::default(), &Control::default()).unwrap();
                        let what = format!("{} C = {c} {intercept} {terms:?}", kernel.name());
                        assert!(solution.objective.is_finite() && !solution.gap.is_nan(), "{what}");
                        assert!(solution.decision.iter().all(|f| f.is_finite()), "{what}");
                        assert!(solution.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_interrupt_ends_the_work() {
    let data = Many::noisy(100, 3, 3, 0.1, 2);
    let x = data.dense();
    let caps = data.caps(1.0);
    let kernel = KernelFunction::Rbf { gamma: 0.3 };
    let problem = data.problem(&x, &caps, &kernel);
    let stop = || true;
    let error = kernel::solve_many(&problem, &options(), &Control::default().interrupt(&stop)).unwrap_err();
    assert!(matches!(error, outlast::Error::Interrupted));
    let none = Control::default().time_limit(std::time::Duration::ZERO);
    assert_eq!(kernel::solve_many(&problem, &options(), &none).unwrap().status, Status::TimeLimit);
}
