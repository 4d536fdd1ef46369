//! Dual coordinate descent against Clarabel, against the judge, and against itself in other clothes.

use crate::two_class_data::{candidate, check_honest, close, clouds, pick, sparse};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus};
use outlast::problem::{Norm, TwoClass};
use outlast::solver::{Options, Solution, Start, coordinate};
use outlast::{Control, Csr, Dense, Design, KernelFunction, Loss, Status};

const TOLERANCE: f64 = 1e-8;
const AGREES: f64 = 1e-6;

fn problem<'a>(x: &'a dyn Design, signs: &'a [f64], caps: &'a [f64], loss: Loss, intercept: bool) -> TwoClass<'a> {
    TwoClass { norm: Norm::Squared, x, signs, caps, loss, kernel: &KernelFunction::Linear, intercept }
}

fn solve(problem: &TwoClass) -> Solution {
    solve_from(problem, None)
}

fn solve_from(problem: &TwoClass, start: Option<Start>) -> Solution {
    let options = Options { tolerance: TOLERANCE, start, ..Options::default() };
    let solution = coordinate::solve(problem, &options, &Control::default()).unwrap();
    check_honest(problem, &solution, TOLERANCE);
    solution
}

/// min 1/2 |w|^2 + c'xi with xi >= 0 and y (Xw + b) + xi >= 1, by an interior-point method.
fn clarabel_objective(x: &Dense, signs: &[f64], caps: &[f64], intercept: bool) -> f64 {
    let (n, d) = (x.rows(), x.cols());
    let variables = d + 1 + n;
    let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut put = |row: usize, column: usize, value: f64| {
        rows.push(row);
        columns.push(column);
        values.push(value);
    };
    for row in 0..n {
        for (column, value) in x.row(row).iter().enumerate() {
            put(row, column, -signs[row] * value);
        }
        if intercept {
            put(row, d, -signs[row]);
        }
        put(row, d + 1 + row, -1.0);
        put(n + row, d + 1 + row, -1.0);
    }
    let a = CscMatrix::new_from_triplets(2 * n, variables, rows, columns, values);
    let diagonal: Vec<usize> = (0..d).collect();
    let quadratic = CscMatrix::new_from_triplets(variables, variables, diagonal.clone(), diagonal, vec![1.0; d]);
    let mut linear = vec![0.0; variables];
    linear[d + 1..].copy_from_slice(caps);
    let mut right = vec![-1.0; n];
    right.extend(vec![0.0; n]);
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-11)
        .tol_gap_rel(1e-11)
        .tol_feas(1e-11)
        .build()
        .unwrap();
    let mut solver = DefaultSolver::new(&quadratic, &linear, &a, &right, &[NonnegativeConeT(2 * n)], settings).unwrap();
    solver.solve();
    assert!(matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved));
    solver.solution.obj_val
}

#[test]
fn objectives_match_clarabel() {
    for (case, (n, d, zeros)) in [(60, 5, 0.0), (80, 20, 0.7), (30, 90, 0.0), (40, 120, 0.9)].into_iter().enumerate() {
        let (x, signs) = clouds(n, d, zeros, case as u64);
        let compressed = sparse(&x);
        for intercept in [false, true] {
            for c in [1e-3, 1e-1, 1.0, 1e2, 1e4] {
                let caps: Vec<f64> = (0..n).map(|row| c * (row % 4) as f64).collect();
                let expected = clarabel_objective(&x, &signs, &caps, intercept);
                for x in [&x as &dyn Design, &compressed] {
                    let found = solve(&problem(x, &signs, &caps, Loss::hinge(), intercept));
                    assert!(found.status.is_converged(), "{} gap {} (case {case}, C = {c})", found.status, found.gap);
                    assert!(close(found.objective, expected, AGREES), "{} vs {expected}", found.objective);
                    assert!(found.objective > 0.0);
                }
            }
        }
    }
}

#[test]
fn a_row_without_weight_is_no_row_and_weight_two_is_two_rows() {
    let (x, signs) = clouds(50, 8, 0.3, 9);
    let caps: Vec<f64> = (0..50).map(|row| [0.0, 1.0, 2.0][row % 3]).collect();
    let weighted = solve(&problem(&x, &signs, &caps, Loss::hinge(), true));
    let rows: Vec<usize> = (0..50).flat_map(|row| vec![row; row % 3]).collect();
    let copied = pick(&x, &rows);
    let copied_signs: Vec<f64> = rows.iter().map(|&row| signs[row]).collect();
    let repeated = solve(&problem(&copied, &copied_signs, &vec![1.0; rows.len()], Loss::hinge(), true));
    assert!(close(weighted.objective, repeated.objective, AGREES));
    for (a, b) in weighted.weights.unwrap().iter().zip(repeated.weights.unwrap()) {
        assert!((a - b).abs() < 1e-4);
    }
}

#[test]
fn swapped_labels_negate_the_function() {
    let (x, signs) = clouds(60, 10, 0.2, 4);
    let swapped: Vec<f64> = signs.iter().map(|y| -y).collect();
    let caps = vec![1.0; 60];
    for loss in [Loss::hinge(), Loss::hinge().truncated_at(-0.5).unwrap()] {
        let one = solve(&problem(&x, &signs, &caps, loss, true));
        let other = solve(&problem(&x, &swapped, &caps, loss, true));
        assert!(close(one.objective, other.objective, AGREES));
        for (a, b) in one.decision.iter().zip(&other.decision) {
            assert!((a + b).abs() < 1e-3, "{a} {b}");
        }
    }
}

#[test]
fn truncated_solutions_are_critical_points_below_the_hinge() {
    for seed in 0..6 {
        let (x, signs) = clouds(80, 6, 0.0, 100 + seed);
        for (c, truncation) in [(0.1, 0.0), (1.0, -1.0), (10.0, -0.3), (100.0, 0.0)] {
            let caps = vec![c; 80];
            let loss = Loss::hinge().truncated_at(truncation).unwrap();
            let truncated_problem = problem(&x, &signs, &caps, loss, seed % 2 == 0);
            let plain = solve(&problem(&x, &signs, &caps, Loss::hinge(), seed % 2 == 0));
            let found = solve(&truncated_problem);
            assert!(found.status.is_converged(), "{} {}", found.status, found.gap);
            let start = truncated_problem.objective(&candidate(&plain));
            assert!(found.objective <= start * (1.0 + AGREES));
            assert!(close(found.trace[0], start, AGREES));
            // truncated at the same rows again, the convex problem has the same value
            let certificate = truncated_problem.certify(&candidate(&found), &found.truncated);
            let flat = found.truncated.iter().filter(|&&t| t).count() as f64 * c * (1.0 - truncation);
            assert!(close(certificate.primal + flat, found.objective, AGREES));
        }
    }
}

#[test]
fn a_warm_start_ends_at_the_same_objective() {
    let (x, signs) = clouds(100, 15, 0.5, 21);
    let (small, large) = (vec![0.5; 100], vec![2.0; 100]);
    let first = solve(&problem(&x, &signs, &small, Loss::hinge(), true));
    let start = Start { expansion: first.expansion, weights: first.weights, intercepts: first.intercepts };
    let hinge = problem(&x, &signs, &large, Loss::hinge(), true);
    let (warm, cold) = (solve_from(&hinge, Some(start)), solve(&hinge));
    assert!(close(warm.objective, cold.objective, AGREES));
}

#[test]
fn the_scale_of_the_data_does_not_matter() {
    let (x, signs) = clouds(40, 6, 0.0, 33);
    for (factor, c) in [(1e150, 1.0), (1e-150, 1.0), (1e150, 1e-10), (1e-150, 1e10), (1e-150, 1e-10)] {
        let values: Vec<f64> = x.values().iter().map(|value| value * factor).collect();
        let scaled = Dense::new(40, 6, values).unwrap();
        let caps = vec![c; 40];
        let options = Options { tolerance: 1e-6, max_iterations: 20_000, ..Options::default() };
        let scaled_problem = problem(&scaled, &signs, &caps, Loss::hinge(), true);
        let found = coordinate::solve(&scaled_problem, &options, &Control::default()).unwrap();
        assert!(found.objective.is_finite());
        check_honest(&scaled_problem, &found, 1e-6);
    }
    // the same numbers in other units: C r^2 with X / r
    let factor = 2f64.powi(200);
    let values: Vec<f64> = x.values().iter().map(|value| value * factor).collect();
    let scaled = Dense::new(40, 6, values).unwrap();
    let caps = vec![1.0 / factor / factor; 40];
    let found = solve(&problem(&scaled, &signs, &caps, Loss::hinge(), true));
    let plain = solve(&problem(&x, &signs, &[1.0; 40], Loss::hinge(), true));
    assert!(close(found.objective * factor * factor, plain.objective, AGREES));
}

#[test]
fn hostile_data_end_in_bounded_time_with_an_honest_status() {
    let options = Options { tolerance: 1e-6, max_iterations: 20_000, ..Options::default() };
    let run = |x: &dyn Design, signs: &[f64], c: f64, loss: Loss| {
        for intercept in [false, true] {
            let caps = vec![c; signs.len()];
            let hostile = problem(x, signs, &caps, loss, intercept);
            let found = coordinate::solve(&hostile, &options, &Control::default()).unwrap();
            check_honest(&hostile, &found, 1e-6);
            assert!(found.gap <= 1e-6 || !found.status.is_converged());
        }
    };
    let truncated = Loss::hinge().truncated_at(-1.0).unwrap();
    // duplicated rows with opposite labels, an empty row, one row, rows that are all empty
    let twins = Dense::from_rows(&[[1.0, 2.0], [1.0, 2.0], [0.0, 0.0], [3.0, -1.0], [3.0, -1.0]]);
    let empty = Csr::<f64>::new(3, 4, vec![0, 0, 0, 0], vec![], vec![]).unwrap();
    let single = Dense::from_rows(&[[1.0, 2.0]]);
    let (clear, _) = clouds(40, 60, 0.0, 5);
    let (mixed, labels) = clouds(60, 3, 0.0, 6);
    for loss in [Loss::hinge(), truncated] {
        for c in [1e-10, 1.0, 1e10] {
            run(&twins, &[1.0, -1.0, 1.0, -1.0, 1.0], c, loss);
            run(&empty, &[1.0, 1.0, -1.0], c, loss);
            run(&single, &[-1.0], c, loss);
            // 40 rows in 60 dimensions are separable whatever their labels
            run(&clear, &labels[..40], c, loss);
            run(&mixed, &labels, c, loss);
        }
    }
}

#[test]
fn a_separable_problem_with_huge_c_is_solved() {
    let (x, signs) = clouds(40, 100, 0.0, 7);
    let caps = vec![1e10; 40];
    let found = solve(&problem(&x, &signs, &caps, Loss::hinge(), true));
    assert_eq!(found.status, Status::Converged);
    assert!(found.decision.iter().zip(&signs).all(|(f, y)| y * f >= 1.0 - 1e-6));
}

#[test]
fn many_rows_few_columns_and_a_large_c_are_solved() {
    let (x, signs) = clouds(600, 15, 0.5, 17);
    let x = sparse(&x);
    for c in [1e4, 1e8] {
        let caps = vec![c; 600];
        for loss in [Loss::hinge(), Loss::hinge().truncated_at(-1.0).unwrap()] {
            let hard = problem(&x, &signs, &caps, loss, true);
            let options = Options { tolerance: 1e-6, ..Options::default() };
            let found = coordinate::solve(&hard, &options, &Control::default()).unwrap();
            check_honest(&hard, &found, 1e-6);
            assert!(found.status.is_converged(), "C = {c}: {} {}", found.status, found.gap);
        }
    }
}

#[test]
fn other_kernels_and_losses_are_refused_by_name() {
    let x = Dense::from_rows(&[[1.0], [2.0]]);
    let kernel = KernelFunction::Rbf { gamma: 1.0 };
    let wrong = TwoClass { kernel: &kernel, ..problem(&x, &[1.0, -1.0], &[1.0, 1.0], Loss::hinge(), true) };
    let error = coordinate::solve(&wrong, &Options::default(), &Control::default()).unwrap_err();
    assert!(error.to_string().contains("linear-dcd"));
    let wrong = problem(&x, &[1.0, -1.0], &[1.0, 1.0], Loss::logistic(), true);
    assert!(coordinate::solve(&wrong, &Options::default(), &Control::default()).is_err());
}

#[test]
fn an_iteration_limit_is_reported() {
    let (x, signs) = clouds(100, 10, 0.0, 8);
    let caps = vec![100.0; 100];
    let options = Options { tolerance: 1e-12, max_iterations: 2, ..Options::default() };
    let found = coordinate::solve(&problem(&x, &signs, &caps, Loss::hinge(), true), &options, &Control::default());
    assert_eq!(found.unwrap().status, Status::IterationLimit);
}
