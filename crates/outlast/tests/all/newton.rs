//! Newton for the smooth losses: against Clarabel's exponential cone, finite differences, the judge, and itself in other
//! clothes.

use crate::two_class_data::{candidate, check_honest, close, clouds, pick, sparse};
use clarabel::algebra::CscMatrix;
use clarabel::solver::SupportedConeT::{ExponentialConeT, NonnegativeConeT};
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, SolverStatus};
use outlast::problem::{Candidate, Norm, TwoClass};
use outlast::solver::{Options, Solution, Start, newton};
use outlast::{Control, Csr, Dense, Design, KernelFunction, Loss};

const TOLERANCE: f64 = 1e-9;
const AGREES: f64 = 1e-6;

fn problem<'a>(
    x: &'a dyn Design,
    signs: &'a [f64],
    caps: &'a [f64],
    loss: Loss,
    kernel: &'a KernelFunction,
    intercept: bool,
) -> TwoClass<'a> {
    TwoClass { norm: Norm::Squared, x, signs, caps, loss, kernel, intercept }
}

fn solve(problem: &TwoClass) -> Solution {
    let options = Options { tolerance: TOLERANCE, ..Options::default() };
    let solution = newton::solve(problem, &options, &Control::default()).unwrap();
    check_honest(problem, &solution, TOLERANCE);
    assert!(solution.status.is_converged(), "{} {}", solution.status, solution.gap);
    solution
}

fn gram(x: &Dense, kernel: &KernelFunction) -> Dense<'static> {
    let n = x.rows();
    let values: Vec<f64> = (0..n * n).map(|k| kernel.evaluate(x.row(k / n), x.row(k % n))).collect();
    Dense::new(n, n, values).unwrap()
}

fn smooth() -> [Loss; 2] {
    [Loss::logistic(), Loss::exponential()]
}

/// min 1/2 |w|^2 + sum c t over the exponential cone {(a, b, e): b exp(a / b) <= e}. Logistic: exp(-u - t) = p,
/// exp(-t) = q, p + q <= 1. Exponential: exp(-u) <= t.
fn clarabel_objective(x: &Dense, signs: &[f64], caps: &[f64], logistic: bool, intercept: bool) -> f64 {
    let (n, d) = (x.rows(), x.cols());
    let per_row = if logistic { 3 } else { 1 };
    let variables = d + 1 + per_row * n;
    let (mut rows, mut columns, mut values, mut right, mut cones) = (vec![], vec![], vec![], vec![], vec![]);
    // A v + s = right with s in the cones
    let mut put = |row: usize, column: usize, value: f64| {
        rows.push(row);
        columns.push(column);
        values.push(value);
    };
    for row in 0..n {
        let t = d + 1 + per_row * row;
        let base = right.len();
        for (column, value) in x.row(row).iter().enumerate() {
            put(base, column, signs[row] * value);
        }
        if intercept {
            put(base, d, signs[row]);
        }
        if logistic {
            put(base, t, 1.0);
            put(base + 2, t + 1, -1.0);
            right.extend([0.0, 1.0, 0.0]);
            put(base + 3, t, 1.0);
            put(base + 5, t + 2, -1.0);
            right.extend([0.0, 1.0, 0.0]);
            put(base + 6, t + 1, 1.0);
            put(base + 6, t + 2, 1.0);
            right.push(1.0);
            cones.extend([ExponentialConeT(), ExponentialConeT(), NonnegativeConeT(1)]);
        } else {
            put(base + 2, t, -1.0);
            right.extend([0.0, 1.0, 0.0]);
            cones.push(ExponentialConeT());
        }
    }
    let a = CscMatrix::new_from_triplets(right.len(), variables, rows, columns, values);
    let diagonal: Vec<usize> = (0..d).collect();
    let quadratic = CscMatrix::new_from_triplets(variables, variables, diagonal.clone(), diagonal, vec![1.0; d]);
    let mut linear = vec![0.0; variables];
    (0..n).for_each(|row| linear[d + 1 + per_row * row] = caps[row]);
    let settings =
        DefaultSettingsBuilder::default().verbose(false).tol_gap_abs(1e-9).tol_gap_rel(1e-9).build().unwrap();
    let mut solver = DefaultSolver::new(&quadratic, &linear, &a, &right, &cones, settings).unwrap();
    solver.solve();
    assert!(matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved));
    solver.solution.obj_val
}

#[test]
fn objectives_match_clarabel() {
    for (case, (n, d)) in [(60, 4), (25, 40)].into_iter().enumerate() {
        let (x, signs) = clouds(n, d, 0.2, case as u64);
        let compressed = sparse(&x);
        for (which, loss) in smooth().into_iter().enumerate() {
            for intercept in [false, true] {
                for c in [1e-2, 1.0, 1e2] {
                    let caps: Vec<f64> = (0..n).map(|row| c * (1 + row % 3) as f64).collect();
                    let expected = clarabel_objective(&x, &signs, &caps, which == 0, intercept);
                    for x in [&x as &dyn Design, &compressed] {
                        let found = solve(&problem(x, &signs, &caps, loss, &KernelFunction::Linear, intercept));
                        assert!(close(found.objective, expected, AGREES), "{} vs {expected}", found.objective);
                        assert!(found.weights.unwrap().iter().any(|w| *w != 0.0));
                    }
                }
            }
        }
    }
}

#[test]
fn the_gradient_vanishes() {
    let (x, signs) = clouds(70, 5, 0.0, 3);
    let caps: Vec<f64> = (0..70).map(|row| (row % 3) as f64).collect();
    for loss in smooth() {
        let linear = problem(&x, &signs, &caps, loss, &KernelFunction::Linear, true);
        let found = solve(&linear);
        let weights = found.weights.clone().unwrap();
        let value = |w: &[f64], b: f64| {
            linear.objective(&Candidate { expansion: &found.expansion, weights: Some(w), intercept: b })
        };
        let h = 1e-4;
        for column in 0..5 {
            let (mut up, mut down) = (weights.clone(), weights.clone());
            up[column] += h;
            down[column] -= h;
            let slope = (value(&up, found.intercept()) - value(&down, found.intercept())) / (2.0 * h);
            assert!(slope.abs() <= 1e-5 * found.objective, "{slope}");
        }
        let b = found.intercept();
        let slope = (value(&weights, b + h) - value(&weights, b - h)) / (2.0 * h);
        assert!(slope.abs() <= 1e-5 * found.objective, "{slope}");
    }
}

#[test]
fn linear_is_the_kernel_form_with_inner_products() {
    let (x, signs) = clouds(50, 6, 0.0, 11);
    let inner = gram(&x, &KernelFunction::Linear);
    let caps: Vec<f64> = (0..50).map(|row| 0.5 * (row % 4) as f64).collect();
    for loss in smooth() {
        for loss in [loss, loss.truncated_at(-0.5).unwrap()] {
            for intercept in [false, true] {
                let linear = solve(&problem(&x, &signs, &caps, loss, &KernelFunction::Linear, intercept));
                let kernel = solve(&problem(&inner, &signs, &caps, loss, &KernelFunction::Precomputed, intercept));
                assert!(close(linear.objective, kernel.objective, AGREES), "{loss:?}");
                for (a, b) in linear.decision.iter().zip(&kernel.decision) {
                    assert!((a - b).abs() <= 1e-4 * (1.0 + a.abs()), "{a} {b}");
                }
            }
        }
    }
}

#[test]
fn kernels_stored_and_streamed_agree() {
    let (x, signs) = clouds(120, 3, 0.0, 12);
    let kernel = KernelFunction::Rbf { gamma: 0.3 };
    for c in [0.1, 10.0, 1e4] {
        let caps = vec![c; 120];
        for loss in smooth() {
            let rbf = problem(&x, &signs, &caps, loss, &kernel, true);
            let stored = solve(&rbf);
            let options = Options { tolerance: TOLERANCE, cache_bytes: 0, ..Options::default() };
            let streamed = newton::solve(&rbf, &options, &Control::default()).unwrap();
            assert!(streamed.status.is_converged(), "{} {}", streamed.status, streamed.gap);
            assert!(close(stored.objective, streamed.objective, AGREES));
            assert!(stored.expansion.iter().any(|beta| *beta != 0.0));
        }
    }
}

#[test]
fn wide_problems_by_conjugate_gradients_match_the_kernel_form() {
    let (x, signs) = clouds(40, 1200, 0.9, 13);
    let inner = gram(&x, &KernelFunction::Linear);
    let compressed = sparse(&x);
    let caps = vec![1.0; 40];
    for loss in smooth() {
        let wide = solve(&problem(&compressed, &signs, &caps, loss, &KernelFunction::Linear, true));
        let kernel = solve(&problem(&inner, &signs, &caps, loss, &KernelFunction::Precomputed, true));
        assert!(close(wide.objective, kernel.objective, AGREES));
    }
}

#[test]
fn a_million_columns() {
    let (n, d) = (200, 1_000_000);
    let mut random = crate::two_class_data::Random(5);
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..n {
        let mut own: Vec<u32> = (0..20).map(|_| (random.uniform() * d as f64) as u32).collect();
        own.sort_unstable();
        own.dedup();
        values.extend(own.iter().map(|_| random.normal()));
        columns.extend(own);
        starts.push(values.len());
    }
    let x = Csr::new(n, d, starts, columns, values).unwrap();
    let signs: Vec<f64> = (0..n).map(|row| if row % 3 == 0 { 1.0 } else { -1.0 }).collect();
    solve(&problem(&x, &signs, &vec![1.0; n], Loss::logistic(), &KernelFunction::Linear, true));
}

#[test]
fn weights_labels_and_starts() {
    let (x, signs) = clouds(50, 5, 0.0, 14);
    let caps: Vec<f64> = (0..50).map(|row| (row % 3) as f64).collect();
    let rows: Vec<usize> = (0..50).flat_map(|row| vec![row; row % 3]).collect();
    let (copied, ones) = (pick(&x, &rows), vec![1.0; rows.len()]);
    let copied_signs: Vec<f64> = rows.iter().map(|&row| signs[row]).collect();
    let swapped: Vec<f64> = signs.iter().map(|y| -y).collect();
    for kernel in [KernelFunction::Linear, KernelFunction::Rbf { gamma: 0.2 }] {
        for loss in smooth() {
            let weighted = solve(&problem(&x, &signs, &caps, loss, &kernel, true));
            let repeated = solve(&problem(&copied, &copied_signs, &ones, loss, &kernel, true));
            assert!(close(weighted.objective, repeated.objective, AGREES));
            let negated = solve(&problem(&x, &swapped, &caps, loss, &kernel, true));
            assert!(weighted.decision.iter().zip(&negated.decision).all(|(a, b)| (a + b).abs() < 1e-4));
            let start = Start {
                expansion: weighted.expansion.clone(),
                weights: weighted.weights.clone(),
                intercepts: weighted.intercepts.clone(),
            };
            let options = Options { tolerance: TOLERANCE, start: Some(start), ..Options::default() };
            let again = newton::solve(&problem(&x, &signs, &caps, loss, &kernel, true), &options, &Control::default());
            let again = again.unwrap();
            assert!(again.iterations <= 2 && close(again.objective, weighted.objective, AGREES));
        }
    }
}

#[test]
fn truncated_solutions_are_critical_points_below_the_start() {
    for seed in 0..4 {
        let (x, signs) = clouds(80, 4, 0.0, 200 + seed);
        for kernel in [KernelFunction::Linear, KernelFunction::Rbf { gamma: 0.3 }] {
            for loss in smooth() {
                for (c, truncation) in [(0.1, 0.0), (1.0, -1.0), (30.0, -0.3)] {
                    let caps = vec![c; 80];
                    let loss = loss.truncated_at(truncation).unwrap();
                    let plain = solve(&problem(&x, &signs, &caps, loss.untruncated(), &kernel, true));
                    let cut = problem(&x, &signs, &caps, loss, &kernel, true);
                    let found = solve(&cut);
                    let start = cut.objective(&candidate(&plain));
                    assert!(found.objective <= start * (1.0 + AGREES));
                    assert!(close(found.trace[0], start, AGREES));
                    let certificate = cut.certify(&candidate(&found), &found.truncated);
                    let flat =
                        found.truncated.iter().filter(|&&t| t).count() as f64 * c * loss.base().value(truncation);
                    assert!(close(certificate.primal + flat, found.objective, AGREES));
                }
            }
        }
    }
}

#[test]
fn far_outliers_do_not_move_the_truncated_exponential() {
    let (x, signs) = clouds(60, 2, 0.0, 15);
    let mut values = x.values().to_vec();
    values.extend([300.0, -200.0]);
    let far = Dense::new(61, 2, values).unwrap();
    for sign in [1.0, -1.0] {
        let mut far_signs = signs.clone();
        far_signs.push(sign);
        let caps = vec![0.1; 61];
        let loss = Loss::exponential().truncated_at(-0.5).unwrap();
        let cut = problem(&far, &far_signs, &caps, loss, &KernelFunction::Linear, true);
        let options = Options { tolerance: 1e-6, ..Options::default() };
        let found = newton::solve(&cut, &options, &Control::default()).unwrap();
        check_honest(&cut, &found, 1e-6);
        assert!(found.objective <= 0.1 * 61.0 * loss.value(-1.0));
    }
}

#[test]
fn hostile_data_end_in_bounded_time_with_an_honest_status() {
    let options = Options { tolerance: 1e-6, ..Options::default() };
    let twins = Dense::from_rows(&[[1.0, 2.0], [1.0, 2.0], [0.0, 0.0], [3.0, -1.0], [3.0, -1.0]]);
    let empty = Csr::<f64>::new(3, 4, vec![0, 0, 0, 0], vec![], vec![]).unwrap();
    let single = Dense::from_rows(&[[1.0, 2.0]]);
    let (clear, labels) = clouds(40, 60, 0.0, 5);
    let wild: Vec<f64> = clear.values().iter().enumerate().map(|(k, v)| v * 10f64.powi((k % 7) as i32)).collect();
    let wild = Dense::new(40, 60, wild).unwrap();
    let cases: [(&dyn Design, &[f64]); 5] = [
        (&twins, &[1.0, -1.0, 1.0, -1.0, 1.0]),
        (&empty, &[1.0, 1.0, -1.0]),
        (&single, &[-1.0]),
        (&clear, &labels),
        (&wild, &labels),
    ];
    for (case, (x, signs)) in cases.into_iter().enumerate() {
        for kernel in [
            KernelFunction::Linear,
            KernelFunction::Rbf { gamma: 0.1 },
            KernelFunction::Sigmoid { gamma: 0.1, coef0: 0.0 },
        ] {
            for loss in smooth() {
                for loss in [loss, loss.truncated_at(-1.0).unwrap()] {
                    for c in [1e-10, 1.0, 1e10] {
                        for intercept in [false, true] {
                            let caps = vec![c; signs.len()];
                            let hostile = problem(x, signs, &caps, loss, &kernel, intercept);
                            let found = newton::solve(&hostile, &options, &Control::default()).unwrap();
                            assert!(found.objective.is_finite(), "case {case} {kernel:?} {loss:?} C = {c}");
                            if !matches!(kernel, KernelFunction::Sigmoid { .. }) {
                                check_honest(&hostile, &found, 1e-6);
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_scale_of_the_data_does_not_matter() {
    let (x, signs) = clouds(40, 6, 0.0, 33);
    for loss in smooth() {
        for (factor, c) in [(1e150, 1e-10), (1e150, 1.0), (1e-150, 1.0), (1e-150, 1e10)] {
            let values: Vec<f64> = x.values().iter().map(|value| value * factor).collect();
            let scaled = Dense::new(40, 6, values).unwrap();
            let caps = vec![c; 40];
            let far = problem(&scaled, &signs, &caps, loss, &KernelFunction::Linear, true);
            let options = Options { tolerance: 1e-6, ..Options::default() };
            let found = newton::solve(&far, &options, &Control::default()).unwrap();
            check_honest(&far, &found, 1e-6);
        }
        let factor = 2f64.powi(-200);
        let values: Vec<f64> = x.values().iter().map(|value| value * factor).collect();
        let scaled = Dense::new(40, 6, values).unwrap();
        let caps = vec![1.0 / factor / factor; 40];
        let found = solve(&problem(&scaled, &signs, &caps, loss, &KernelFunction::Linear, true));
        let plain = solve(&problem(&x, &signs, &[1.0; 40], loss, &KernelFunction::Linear, true));
        assert!(close(found.objective * factor * factor, plain.objective, AGREES));
    }
}

#[test]
fn the_hinge_is_refused_by_name() {
    let x = Dense::from_rows(&[[1.0], [2.0]]);
    let hinge = problem(&x, &[1.0, -1.0], &[1.0, 1.0], Loss::hinge(), &KernelFunction::Linear, true);
    let error = newton::solve(&hinge, &Options::default(), &Control::default()).unwrap_err();
    assert!(error.to_string().contains("newton"));
}
