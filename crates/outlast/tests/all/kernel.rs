//! The kernel solver against Clarabel, brute force and its own identities.

use crate::common::{Data, Random, boxes, clarabel_dual, kernel_matrix, relative};
use outlast::linalg::Isa;
use outlast::problem::{Candidate, Norm, TwoClass};
use outlast::solver::{Options, Solution, Start, kernel};
use outlast::{Control, Csr, Dense, Design, KernelFunction, Loss, Status};

/// Relative gap asked of the solver, and relative difference allowed against others.
const TIGHT: f64 = 1e-8;
const CLOSE: f64 = 1e-6;

fn options() -> Options {
    Options { tolerance: TIGHT, ..Options::default() }
}

fn solve(problem: &TwoClass) -> Solution {
    kernel::solve(problem, &options(), &Control::default()).unwrap()
}

fn certify(problem: &TwoClass, solution: &Solution) -> outlast::problem::Certificate {
    problem.certify(&candidate(solution), &solution.truncated)
}

fn candidate(solution: &Solution) -> Candidate<'_> {
    Candidate { expansion: &solution.expansion, weights: None, intercept: solution.intercept() }
}

fn kernels() -> Vec<KernelFunction> {
    vec![
        KernelFunction::Linear,
        KernelFunction::Rbf { gamma: 0.3 },
        KernelFunction::Poly { gamma: 0.5, degree: 3, coef0: 1.0 },
    ]
}

#[test]
fn hinge_matches_clarabel_for_every_kernel() {
    for (number, kernel) in kernels().iter().enumerate() {
        for (c, intercept) in [(0.01, true), (1.0, true), (30.0, true), (1.0, false)] {
            let data = Data::noisy(90, 4, 0.1, 10 + number as u64).weighted(5);
            let x = data.dense();
            let caps: Vec<f64> = data.weights.iter().map(|w| c * w).collect();
            let loss = Loss::hinge();
            let problem =
                TwoClass { norm: Norm::Squared, x: &x, signs: &data.signs, caps: &caps, loss, kernel, intercept };
            let solution = solve(&problem);
            assert_eq!(solution.status, Status::Converged, "{} C = {c}", kernel.name());
            let (lower, upper) = boxes(&problem, &solution.truncated);
            let reference = -clarabel_dual(&kernel_matrix(kernel, &x), &data.signs, &lower, &upper, intercept);
            let what = format!("{} C = {c} intercept {intercept}", kernel.name());
            assert!(relative(solution.objective, reference) < CLOSE, "{what}: {} {reference}", solution.objective);
            let certificate = certify(&problem, &solution);
            assert!(certificate.relative_gap() < 10.0 * TIGHT, "{what}: {certificate:?}");
            assert!(certificate.imbalance < 1e-9, "{what}: {certificate:?}");
            assert!(solution.expansion.iter().any(|b| *b != 0.0), "{what}: trivial");
            for (row, f) in solution.decision.iter().enumerate() {
                let exact = problem.decision_without_intercept(&candidate(&solution))[row] + solution.intercept();
                assert!((f - exact).abs() < 1e-5 * (1.0 + exact.abs()), "{what}");
            }
        }
    }
}

#[test]
fn precomputed_and_custom_kernels_equal_the_built_in_one() {
    let data = Data::noisy(120, 3, 0.1, 3);
    let x = data.dense();
    let caps = vec![2.0; data.rows];
    let rbf = KernelFunction::Rbf { gamma: 0.4 };
    let values = kernel_matrix(&rbf, &x);
    let gram = Dense::new(data.rows, data.rows, values).unwrap();
    let outlast::Kernel::Custom(custom) = outlast::Kernel::custom("mine", |a, b| {
        (-0.4 * a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>()).exp()
    }) else {
        unreachable!()
    };
    let custom = KernelFunction::Custom(custom);
    for loss in [Loss::hinge(), Loss::hinge().truncated_at(-1.0).unwrap()] {
        let objective = |x: &dyn Design, kernel: &KernelFunction| {
            solve(&TwoClass { norm: Norm::Squared, x, signs: &data.signs, caps: &caps, loss, kernel, intercept: true })
                .objective
        };
        let expected = objective(&x, &rbf);
        assert!(relative(objective(&gram, &KernelFunction::Precomputed), expected) < CLOSE);
        assert!(relative(objective(&x, &custom), expected) < CLOSE);
    }
}

/// Global minimum of the truncated problem: the best over which rows are dropped at a price of 1 - s each.
fn brute_force(problem: &TwoClass, kernel: &[f64], truncation: f64) -> f64 {
    let n = problem.rows();
    (0u32..1 << n)
        .map(|set| {
            let dropped = |row: usize| set >> row & 1 == 1;
            let cap = |row: usize| if dropped(row) { 0.0 } else { problem.caps[row] };
            let lower: Vec<f64> = (0..n).map(|row| if problem.signs[row] > 0.0 { 0.0 } else { -cap(row) }).collect();
            let upper: Vec<f64> = (0..n).map(|row| if problem.signs[row] > 0.0 { cap(row) } else { 0.0 }).collect();
            let price: f64 = (0..n).filter(|&row| dropped(row)).map(|row| problem.caps[row] * (1.0 - truncation)).sum();
            price - clarabel_dual(kernel, problem.signs, &lower, &upper, problem.intercept)
        })
        .fold(f64::INFINITY, f64::min)
}

#[test]
fn truncated_solutions_are_critical_and_never_below_the_global_optimum() {
    let mut reached = 0;
    for seed in 0..6 {
        let data = Data::noisy(9, 2, 0.3, 100 + seed);
        let x = data.dense();
        let caps = vec![1.5; data.rows];
        let kernel = KernelFunction::Rbf { gamma: 0.5 };
        let loss = Loss::hinge().truncated_at(-0.5).unwrap();
        let problem = TwoClass {
            norm: Norm::Squared,
            x: &x,
            signs: &data.signs,
            caps: &caps,
            loss,
            kernel: &kernel,
            intercept: true,
        };
        let solution = solve(&problem);
        let matrix = kernel_matrix(&kernel, &x);
        let global = brute_force(&problem, &matrix, -0.5);
        assert!(solution.objective >= global - CLOSE * global, "seed {seed}");
        reached += usize::from(relative(solution.objective, global) < CLOSE);
        // critical: no better answer with the same rows truncated
        let (lower, upper) = boxes(&problem, &solution.truncated);
        let truncated = solution.truncated.iter().filter(|&&t| t).count() as f64;
        let own = 1.5 * 1.5 * truncated - clarabel_dual(&matrix, &data.signs, &lower, &upper, true);
        assert!(relative(solution.objective, own) < CLOSE, "seed {seed}: {} {own}", solution.objective);
        assert_eq!(problem.truncation_set(&candidate(&solution)), solution.truncated);
    }
    assert!(reached > 0, "the global optimum was never reached");
}

#[test]
fn truncated_path_goes_down_and_ends_critical() {
    for (seed, cols, c) in [(1, 2, 1.0), (2, 5, 0.3), (3, 2, 20.0)] {
        let data = Data::noisy(300, cols, 0.15, seed);
        let x = data.dense();
        let caps = vec![c; data.rows];
        let kernel = KernelFunction::Rbf { gamma: 0.3 };
        let loss = Loss::hinge().truncated_at(-1.0).unwrap();
        let problem = TwoClass {
            norm: Norm::Squared,
            x: &x,
            signs: &data.signs,
            caps: &caps,
            loss,
            kernel: &kernel,
            intercept: true,
        };
        let solution = solve(&problem);
        assert!(solution.trace.len() > 1 && solution.truncated.iter().any(|&t| t), "nothing was truncated");
        assert!(solution.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", solution.trace);
        assert_eq!(solution.objective, solution.trace[solution.trace.len() - 1]);
        assert!(relative(problem.objective(&candidate(&solution)), solution.objective) < CLOSE);
        let certificate = certify(&problem, &solution);
        assert!(certificate.relative_gap() < CLOSE, "{certificate:?}");
    }
}

#[test]
fn a_truncation_nobody_reaches_is_the_hinge() {
    let data = Data::noisy(150, 3, 0.1, 8);
    let x = data.dense();
    let caps = vec![1.0; data.rows];
    let kernel = KernelFunction::Rbf { gamma: 0.3 };
    let problem = |loss| TwoClass {
        norm: Norm::Squared,
        x: &x,
        signs: &data.signs,
        caps: &caps,
        loss,
        kernel: &kernel,
        intercept: true,
    };
    let plain = solve(&problem(Loss::hinge()));
    let truncated = solve(&problem(Loss::hinge().truncated_at(-1e6).unwrap()));
    assert!(relative(truncated.objective, plain.objective) < CLOSE);
}

/// Every way of computing gives the same objective.
#[test]
fn instruction_sets_threads_budgets_and_storages_agree() {
    let data = Data::noisy(400, 6, 0.1, 21);
    // values f32 holds exactly, with enough zeros for sparse storage
    let mut random = Random(4);
    let values: Vec<f64> =
        data.values.iter().map(|v| if random.unit() < 0.6 { 0.0 } else { f64::from(*v as f32) }).collect();
    let x = Dense::new(data.rows, data.cols, &values[..]).unwrap();
    let single = Dense::new(data.rows, data.cols, values.iter().map(|v| *v as f32).collect::<Vec<f32>>()).unwrap();
    let (mut starts, mut columns, mut stored) = (vec![0], Vec::new(), Vec::new());
    for row in values.chunks_exact(data.cols) {
        for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            columns.push(column as u32);
            stored.push(value);
        }
        starts.push(stored.len());
    }
    let sparse = Csr::new(data.rows, data.cols, starts, columns, stored).unwrap();
    let caps = vec![3.0; data.rows];
    for kernel in kernels() {
        for loss in [Loss::hinge(), Loss::hinge().truncated_at(-1.0).unwrap()] {
            let problem = |x| TwoClass {
                norm: Norm::Squared,
                x,
                signs: &data.signs,
                caps: &caps,
                loss,
                kernel: &kernel,
                intercept: true,
            };
            let expected = solve(&problem(&x)).objective;
            let check = |what: &str, solution: Solution| {
                if loss.truncation().is_some() {
                    // which critical point the path ends in may turn on the last bit; that it is one may not
                    let certificate = certify(&problem(&x), &solution);
                    assert!(certificate.relative_gap() < CLOSE, "{} {what}: {certificate:?}", kernel.name());
                    return;
                }
                let difference = relative(solution.objective, expected);
                assert!(difference < CLOSE, "{} {what}: {difference:e} {:?}", kernel.name(), solution.status);
            };
            for isa in Isa::available() {
                let run = |x| kernel::solve_on(isa, &problem(x), &options(), &Control::default()).unwrap();
                check(&format!("{isa:?}"), run(&x));
                check(&format!("{isa:?} sparse"), run(&sparse));
            }
            check("f32", solve(&problem(&single)));
            let small = Options { cache_bytes: 1_000_000, ..options() };
            check("1 MB", kernel::solve(&problem(&x), &small, &Control::default()).unwrap());
            for threads in [1, 2] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                check("threads", pool.install(|| solve(&problem(&x))));
            }
        }
    }
}

#[test]
fn wide_rows_use_kept_rows_and_agree_with_few_bytes() {
    // more than 64 columns: rows of K are kept while the budget lasts
    let data = Data::noisy(500, 90, 0.1, 33);
    let x = data.dense();
    let caps = vec![1.0; data.rows];
    let kernel = KernelFunction::Rbf { gamma: 0.01 };
    let loss = Loss::hinge().truncated_at(-1.0).unwrap();
    let problem = TwoClass {
        norm: Norm::Squared,
        x: &x,
        signs: &data.signs,
        caps: &caps,
        loss,
        kernel: &kernel,
        intercept: true,
    };
    let full = solve(&problem);
    for bytes in [0, 1_000_000] {
        let few = Options { cache_bytes: bytes, ..options() };
        let solution = kernel::solve(&problem, &few, &Control::default()).unwrap();
        assert!(relative(solution.objective, full.objective) < CLOSE);
    }
}

#[test]
fn warm_starts_along_c_end_where_cold_starts_do() {
    let data = Data::noisy(400, 3, 0.1, 13);
    let x = data.dense();
    let kernel = KernelFunction::Rbf { gamma: 0.3 };
    let mut start = None;
    for c in [0.1, 1.0, 10.0, 0.5] {
        let caps = vec![c; data.rows];
        let loss = Loss::hinge();
        let problem = TwoClass {
            norm: Norm::Squared,
            x: &x,
            signs: &data.signs,
            caps: &caps,
            loss,
            kernel: &kernel,
            intercept: true,
        };
        let cold = solve(&problem);
        let warm = Options { start: start.take(), ..options() };
        let warm = kernel::solve(&problem, &warm, &Control::default()).unwrap();
        assert!(relative(warm.objective, cold.objective) < CLOSE, "C = {c}");
        start = Some(Start { expansion: warm.expansion, weights: None, intercepts: warm.intercepts });
    }
}

#[test]
fn duplicates_with_opposite_labels_and_hopeless_boxes_end() {
    let rows = [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [2.0, 0.0], [0.0, 2.0]];
    let x = Dense::from_rows(&rows);
    let signs = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
    let sigmoid = KernelFunction::Sigmoid { gamma: 0.5, coef0: -1.0 };
    for kernel in kernels().into_iter().chain([sigmoid]) {
        for c in [1e-10, 1.0, 1e10] {
            for intercept in [true, false] {
                let caps = [c; 6];
                let loss = Loss::hinge().truncated_at(0.0).unwrap();
                let problem = TwoClass {
                    norm: Norm::Squared,
                    x: &x,
                    signs: &signs,
                    caps: &caps,
                    loss,
                    kernel: &kernel,
                    intercept,
                };
                let solution = kernel::solve(&problem, &Options::default(), &Control::default()).unwrap();
                assert!(solution.objective.is_finite() && solution.intercept().is_finite());
                assert!(solution.trace.windows(2).all(|pair| pair[1] <= pair[0]));
            }
        }
    }
}

#[test]
fn features_of_any_scale_give_the_same_machine() {
    let data = Data::noisy(80, 3, 0.1, 17);
    let loss = Loss::hinge().truncated_at(-1.0).unwrap();
    let expected = {
        let (x, caps) = (data.dense(), vec![1.0; data.rows]);
        let kernel = KernelFunction::Rbf { gamma: 0.3 };
        solve(&TwoClass {
            norm: Norm::Squared,
            x: &x,
            signs: &data.signs,
            caps: &caps,
            loss,
            kernel: &kernel,
            intercept: true,
        })
    };
    for scale in [1e-150, 1e-30, 1e30, 1e150] {
        let values: Vec<f64> = data.values.iter().map(|v| v * scale).collect();
        let x = Dense::new(data.rows, data.cols, values).unwrap();
        let caps = vec![1.0; data.rows];
        let kernel = KernelFunction::Rbf { gamma: 0.3 / scale / scale };
        let problem = TwoClass {
            norm: Norm::Squared,
            x: &x,
            signs: &data.signs,
            caps: &caps,
            loss,
            kernel: &kernel,
            intercept: true,
        };
        assert!(relative(solve(&problem).objective, expected.objective) < CLOSE, "{scale:e}");
        // linear: C scaled along, so that the problem is the same
        let caps = vec![1.0 / scale / scale; data.rows];
        let problem = TwoClass { kernel: &KernelFunction::Linear, caps: &caps, ..problem };
        let solution = solve(&problem);
        assert!(solution.decision.iter().all(|f| f.is_finite()), "{scale:e}");
        assert!(solution.decision.iter().any(|f| f.abs() > 0.1), "{scale:e}: trivial");
    }
}

#[test]
fn an_interrupt_ends_the_work() {
    let data = Data::noisy(200, 3, 0.1, 2);
    let x = data.dense();
    let caps = vec![1.0; data.rows];
    let kernel = KernelFunction::Rbf { gamma: 0.3 };
    let problem = TwoClass {
        norm: Norm::Squared,
        x: &x,
        signs: &data.signs,
        caps: &caps,
        loss: Loss::hinge(),
        kernel: &kernel,
        intercept: true,
    };
    let stop = || true;
    let error = kernel::solve(&problem, &options(), &Control::default().interrupt(&stop)).unwrap_err();
    assert!(matches!(error, outlast::Error::Interrupted));
    let none = Control::default().time_limit(std::time::Duration::ZERO);
    assert_eq!(kernel::solve(&problem, &options(), &none).unwrap().status, Status::TimeLimit);
}

/// Rows so far out that f32 exponents mean nothing: alone, in a pair, and as a sentinel value.
#[test]
fn far_rows_do_not_disturb_the_others() {
    let mut data = Data::noisy(400, 3, 0.1, 44);
    for (row, value) in [(5, 1e6), (17, 999_999.0), (18, 999_999.3)] {
        for column in 0..3 {
            data.values[3 * row + column] = value;
        }
    }
    let x = data.dense();
    let caps = vec![2.0; data.rows];
    let kernel = KernelFunction::Rbf { gamma: 0.5 };
    for loss in [Loss::hinge(), Loss::hinge().truncated_at(-1.0).unwrap()] {
        let problem = TwoClass {
            norm: Norm::Squared,
            x: &x,
            signs: &data.signs,
            caps: &caps,
            loss,
            kernel: &kernel,
            intercept: true,
        };
        for isa in Isa::available() {
            let solution = kernel::solve_on(isa, &problem, &options(), &Control::default()).unwrap();
            assert_eq!(solution.status, Status::Converged, "{isa:?}");
            let certificate = certify(&problem, &solution);
            assert!(certificate.relative_gap() < CLOSE, "{isa:?}: {certificate:?}");
        }
    }
}

/// Without an intercept the anchor needs a place of its own, also when the block is full.
#[test]
fn no_intercept_at_every_size() {
    for rows in [63, 64, 65, 127, 128, 129] {
        // orthogonal rows: each is free at beta = y
        let mut values = vec![0.0; rows * rows];
        (0..rows).for_each(|row| values[row * rows + row] = 1.0);
        let gram = Dense::new(rows, rows, values).unwrap();
        let signs: Vec<f64> = (0..rows).map(|row| if row % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let caps = vec![5.0; rows];
        let kernel = KernelFunction::Precomputed;
        let problem = TwoClass {
            norm: Norm::Squared,
            x: &gram,
            signs: &signs,
            caps: &caps,
            loss: Loss::hinge(),
            kernel: &kernel,
            intercept: false,
        };
        let solution = solve(&problem);
        assert_eq!(solution.status, Status::Converged);
        assert!(relative(solution.objective, rows as f64 / 2.0) < CLOSE, "{rows}: {}", solution.objective);
    }
}

/// Enough rows for blocks within the working set, for working sets smaller than the data, and for the loose path.
#[test]
fn many_rows_are_certified_by_the_judge() {
    let data = Data::noisy(6000, 4, 0.15, 55);
    let x = data.dense();
    let caps = vec![1.0; data.rows];
    let kernel = KernelFunction::Rbf { gamma: 0.2 };
    let mut objectives = Vec::new();
    for (loss, bytes) in
        [(Loss::hinge(), 1 << 30), (Loss::hinge(), 1 << 20), (Loss::hinge().truncated_at(-1.0).unwrap(), 1 << 30)]
    {
        let problem = TwoClass {
            norm: Norm::Squared,
            x: &x,
            signs: &data.signs,
            caps: &caps,
            loss,
            kernel: &kernel,
            intercept: true,
        };
        let options = Options { tolerance: 1e-6, cache_bytes: bytes, ..Options::default() };
        let solution = kernel::solve(&problem, &options, &Control::default()).unwrap();
        assert_eq!(solution.status, Status::Converged);
        let certificate = certify(&problem, &solution);
        assert!(certificate.relative_gap() < 1e-4 && certificate.imbalance < 1e-6, "{certificate:?}");
        objectives.push(solution.objective);
    }
    assert!(relative(objectives[0], objectives[1]) < 1e-5 && objectives[2] < objectives[0]);
}

#[test]
fn a_kernel_that_returns_no_number_is_an_error() {
    let data = Data::noisy(30, 2, 0.1, 3);
    let bad = outlast::Kernel::custom("bad", |a, b| if a[0] == b[0] { 1.0 } else { f64::NAN });
    let method = outlast::Truncated::new(1.0).kernel(bad);
    let error = method.fit(&data.dense(), &data.labels()).unwrap_err().to_string();
    assert!(error.contains("bad") && error.contains("not finite"), "{error}");
}
