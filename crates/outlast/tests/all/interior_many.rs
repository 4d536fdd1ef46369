//! The interior point for many classes: against Clarabel, the two-class solvers, the judge, and itself in other clothes.

use crate::many_class_data::{
    Random, candidate, check_honest, clarabel_objective, close, clouds, pick, problem, sparse,
};
use outlast::problem::{ManyClass, Norm, Terms, TwoClass};
use outlast::solver::{Options, Solution, interior, kernel, newton};
use outlast::{Control, Csr, Dense, Design, KernelFunction, Loss};

const TOLERANCE: f64 = 1e-8;
const AGREES: f64 = 1e-6;

fn solve(problem: &ManyClass) -> Solution {
    let options = Options { tolerance: TOLERANCE, ..Options::default() };
    let solution = interior::solve_many(problem, &options, &Control::default()).unwrap();
    check_honest(problem, &solution, TOLERANCE);
    assert!(solution.status.is_converged(), "{} {}", solution.status, solution.gap);
    solution
}

fn smooth() -> [Loss; 2] {
    [Loss::logistic(), Loss::exponential()]
}

fn kernels() -> [KernelFunction; 2] {
    [KernelFunction::Linear, KernelFunction::Rbf { gamma: 0.3 }]
}

#[test]
fn smooth_objectives_match_clarabel() {
    for k in 2..=5 {
        let (x, codes) = clouds(40, 3, k, 0.0, k as u64);
        for kernel in kernels() {
            for loss in smooth() {
                for c in [1e-2, 1.0, 30.0] {
                    let caps: Vec<f64> = (0..40).map(|row| c * (row % 4) as f64).collect();
                    let intercept = c != 1.0;
                    let own = ManyClass { intercept, ..problem(&x, &codes, k, &caps, loss, &kernel) };
                    let expected = clarabel_objective(&own, &x, &own.untruncated());
                    let found = solve(&own);
                    assert!(close(found.objective, expected, AGREES), "{} vs {expected}", found.objective);
                    assert!(found.expansion.iter().any(|v| *v != 0.0));
                }
            }
        }
    }
}

/// c of rows by their class.
fn by_class(codes: &[u32], weights: [f64; 3]) -> Vec<f64> {
    codes.iter().map(|&code| weights[code as usize]).collect()
}

#[test]
fn uneven_class_weights_match_clarabel() {
    // one heavy class, or one light one; in units that suit Clarabel's absolute tolerances
    let (x, codes) = clouds(50, 2, 3, 0.0, 41);
    for kernel in kernels() {
        for loss in smooth() {
            for weights in [[10.0, 0.1, 0.1], [1.0, 1.0, 1e-2], [1e6, 0.1, 0.1], [1.0, 1.0, 1e-7]] {
                // Clarabel finds no solution, or one 1e-3 above ours
                if weights[0] == 1e6 && !matches!(kernel, KernelFunction::Linear) {
                    continue;
                }
                let caps = by_class(&codes, weights);
                let uneven = problem(&x, &codes, 3, &caps, loss, &kernel);
                let expected = clarabel_objective(&uneven, &x, &uneven.untruncated());
                let found = solve(&uneven).objective;
                assert!(close(found, expected, AGREES), "{weights:?} {loss:?}: {found} vs {expected}");
            }
        }
    }
}

#[test]
fn class_weights_however_uneven_end_with_the_judges_consent() {
    // intercepts of the logarithm of the ratio, and rows with r = c to the last digit
    let (x, codes) = clouds(50, 2, 3, 0.0, 41);
    for kernel in kernels() {
        for loss in smooth() {
            for ratio in [1e2f64, 1e4, 1e8] {
                for c in [1e-4, 1.0, 1e2] {
                    for weights in
                        [[c, c / ratio, c / ratio], [c, c, c / ratio], [c * ratio.sqrt(), c, c / ratio.sqrt()]]
                    {
                        let caps = by_class(&codes, weights);
                        solve(&problem(&x, &codes, 3, &caps, loss, &kernel));
                    }
                }
            }
        }
    }
}

#[test]
fn hinge_objectives_match_clarabel() {
    for k in 2..=5 {
        let (x, codes) = clouds(40, 3, k, 0.0, 10 + k as u64);
        let mut random = Random(k as u64);
        let factors: Vec<f64> = (0..k * k).map(|at| if at % 5 == 3 { 0.0 } else { random.uniform() }).collect();
        for kernel in kernels() {
            for (case, terms) in [Terms::Own, Terms::Utility(&factors), Terms::Cost(&factors)].into_iter().enumerate() {
                for c in [1e-2, 1.0, 30.0] {
                    let caps: Vec<f64> = (0..40).map(|row| c * (row % 4) as f64).collect();
                    let many = ManyClass { terms, ..problem(&x, &codes, k, &caps, Loss::hinge(), &kernel) };
                    let options = Options { tolerance: TOLERANCE, ..Options::default() };
                    let found = interior::solve_many(&many, &options, &Control::default()).unwrap();
                    // the cost form is not convex: its last bound is what was solved, and the minimum may be 0 or below
                    let bound = found.majorant.as_ref().unwrap();
                    let expected = clarabel_objective(&many, &x, bound);
                    let certificate = many.certify(&candidate(&found), bound);
                    let value = certificate.primal;
                    let scale = expected.abs().max(1e-3 * caps.iter().sum::<f64>());
                    assert!((value - expected).abs() <= AGREES * scale, "{case} C = {c}: {value} vs {expected}");
                    // f = K V of a hinge with a large C shows every rounding error of V
                    let gap = value - certificate.dual;
                    assert!(gap <= 10.0 * TOLERANCE * scale, "{case} C = {c}: {} {gap}", found.status);
                }
            }
        }
    }
}

#[test]
fn two_classes_are_the_two_class_problem() {
    // w_1 = -w_2 = w / 2: half the penalty, so twice the caps and twice the value
    let (x, codes) = clouds(60, 4, 2, 0.0, 3);
    let signs: Vec<f64> = codes.iter().map(|&code| if code == 0 { 1.0 } else { -1.0 }).collect();
    for kernel in kernels() {
        for loss in [Loss::logistic(), Loss::exponential(), Loss::hinge()] {
            let (caps, double) = (vec![0.7; 60], vec![1.4; 60]);
            let many = solve(&problem(&x, &codes, 2, &caps, loss, &kernel));
            let two = TwoClass {
                norm: Norm::Squared,
                x: &x,
                signs: &signs,
                caps: &double,
                loss,
                kernel: &kernel,
                intercept: true,
            };
            let options = Options { tolerance: TOLERANCE, ..Options::default() };
            let solve_two = if loss.base().is_smooth() { newton::solve } else { kernel::solve };
            let two = solve_two(&two, &options, &Control::default()).unwrap();
            assert!(close(2.0 * many.objective, two.objective, AGREES), "{loss:?}");
            for (f, single) in many.decision.chunks(2).zip(&two.decision) {
                assert!((f[0] - f[1] - single).abs() <= 1e-2 * (1.0 + single.abs()), "{f:?} {single}");
            }
        }
    }
}

#[test]
fn truncated_solutions_are_critical_points_below_the_start() {
    for seed in 0..3 {
        let k = 3 + seed as usize % 2;
        let (x, codes) = clouds(60, 4, k, 0.0, 50 + seed);
        for kernel in kernels() {
            for (loss, truncation) in [(Loss::logistic(), -0.4), (Loss::exponential(), -0.3), (Loss::hinge(), -0.5)] {
                let caps = vec![[0.1, 2.0][seed as usize % 2]; 60];
                let truncated = loss.truncated_at(truncation).unwrap();
                let robust = problem(&x, &codes, k, &caps, truncated, &kernel);
                let plain = solve(&problem(&x, &codes, k, &caps, loss, &kernel));
                let found = solve(&robust);
                let start = robust.objective(&candidate(&plain));
                assert!(close(found.trace[0], start, AGREES), "{} {start}", found.trace[0]);
                assert!(found.objective <= start * (1.0 + 1e-9));
                // the bound at the end, solved afresh, goes no lower
                let bound = robust.majorant(&found.decision, None);
                let flat: f64 =
                    (0..60).filter(|&row| !bound.kept[row]).map(|row| caps[row] * loss.value(truncation)).sum();
                let value = clarabel_objective(&robust, &x, &bound) + flat;
                assert!(found.objective <= value + AGREES * found.objective, "{} {value}", found.objective);
            }
        }
    }
}

#[test]
fn dense_and_sparse_copies_and_weights_and_names_do_not_matter() {
    let k = 3;
    let (x, codes) = clouds(50, 5, k, 0.5, 8);
    let caps: Vec<f64> = (0..50).map(|row| [0.0, 1.0, 2.0][row % 3]).collect();
    let rows: Vec<usize> = (0..50).flat_map(|row| vec![row; row % 3]).collect();
    let copied = pick(&x, &rows);
    let copied_codes: Vec<u32> = rows.iter().map(|&row| codes[row]).collect();
    let ones = vec![1.0; rows.len()];
    let renamed: Vec<u32> = codes.iter().map(|code| (code + 1) % 3).collect();
    let compressed = sparse(&x);
    for kernel in kernels() {
        for loss in [Loss::logistic(), Loss::exponential(), Loss::hinge()] {
            let weighted = solve(&problem(&x, &codes, k, &caps, loss, &kernel));
            let others = [
                solve(&problem(&compressed, &codes, k, &caps, loss, &kernel)),
                solve(&problem(&copied, &copied_codes, k, &ones, loss, &kernel)),
                solve(&problem(&x, &renamed, k, &caps, loss, &kernel)),
            ];
            for other in &others {
                assert!(close(weighted.objective, other.objective, AGREES));
            }
            for (a, b) in weighted.decision.chunks(k).zip(others[2].decision.chunks(k)) {
                (0..k).for_each(|class| assert!((a[class] - b[(class + 1) % k]).abs() <= 1e-2, "{a:?} {b:?}"));
            }
        }
    }
}

#[test]
fn more_columns_than_rows_is_the_kernel_of_inner_products() {
    let (x, codes) = clouds(30, 80, 3, 0.6, 9);
    let n = x.rows();
    let inner: Vec<f64> = (0..n * n).map(|at| KernelFunction::Linear.evaluate(x.row(at / n), x.row(at % n))).collect();
    let inner = Dense::new(n, n, inner).unwrap();
    let caps = vec![1.0; n];
    for loss in smooth() {
        let wide = solve(&problem(&sparse(&x), &codes, 3, &caps, loss, &KernelFunction::Linear));
        let kernel = solve(&problem(&inner, &codes, 3, &caps, loss, &KernelFunction::Precomputed));
        assert!(close(wide.objective, kernel.objective, AGREES));
        assert_eq!(wide.weights.unwrap().len(), 3 * 80);
    }
}

#[test]
fn every_kernel_is_taken() {
    let (x, codes) = clouds(60, 3, 3, 0.0, 19);
    let caps = vec![0.5; 60];
    let poly = KernelFunction::Poly { gamma: 0.3, degree: 2, coef0: 1.0 };
    let found = solve(&problem(&x, &codes, 3, &caps, Loss::logistic(), &poly));
    // the kernel's own features: 1, x and the products, of which ten are enough
    assert!(found.objective < 60.0 * 0.5 * 2f64.ln());
    // tanh is not a positive kernel: the answer must still be finite, and its status honest
    let sigmoid = KernelFunction::Sigmoid { gamma: 0.1, coef0: 0.0 };
    let sigmoid = problem(&x, &codes, 3, &caps, Loss::logistic(), &sigmoid);
    let found = interior::solve_many(&sigmoid, &Options::default(), &Control::default()).unwrap();
    assert!(found.objective.is_finite());
}

#[test]
fn classes_that_lose_all_their_rows_take_no_part() {
    // class 2 has weight nowhere: the others are solved as if it were not there, and it is never predicted
    let (x, codes) = clouds(50, 3, 3, 0.0, 23);
    let caps: Vec<f64> = codes.iter().map(|&code| if code == 2 { 0.0 } else { 1.0 }).collect();
    let two: Vec<u32> = codes.iter().map(|&code| code.min(1)).collect();
    for kernel in kernels() {
        for loss in [Loss::logistic(), Loss::exponential(), Loss::hinge()] {
            let three = solve(&problem(&x, &codes, 3, &caps, loss, &kernel));
            let reduced = solve(&problem(&x, &two, 2, &caps, loss, &kernel));
            assert!(close(three.objective, reduced.objective, AGREES));
            assert!(three.decision.chunks(3).all(|f| f[2] < f[0].max(f[1])));
        }
    }
}

#[test]
fn hostile_data_end_with_an_honest_status_or_a_clear_error() {
    let options = Options { tolerance: 1e-6, ..Options::default() };
    let run = |x: &dyn Design, codes: &[u32], k: usize, caps: &[f64]| {
        for kernel in kernels() {
            for loss in [Loss::logistic(), Loss::exponential(), Loss::hinge()] {
                for loss in [loss, loss.truncated_at(-0.5).unwrap()] {
                    for intercept in [true, false] {
                        let hostile = ManyClass { intercept, ..problem(x, codes, k, caps, loss, &kernel) };
                        match interior::solve_many(&hostile, &options, &Control::default()) {
                            Ok(found) => check_honest(&hostile, &found, 1e-6),
                            Err(error) => assert!(error.to_string().contains("floating point"), "{error}"),
                        }
                    }
                }
            }
        }
    };
    let (x, codes) = clouds(30, 3, 4, 0.0, 31);
    let scaled = |factor: f64| {
        let values: Vec<f64> = x.values().iter().map(|value| value * factor).collect();
        Dense::new(30, 3, values).unwrap()
    };
    for c in [0.0, 1e-300, 1e-10, 1.0, 1e10] {
        run(&x, &codes, 4, &[c; 30]);
    }
    for factor in [1e-300, 1e-150, 1e-8, 1e8, 1e150, 1e300] {
        run(&scaled(factor), &codes, 4, &[1.0; 30]);
    }
    // constant columns, equal rows, fewer rows than classes, one row, no entries
    let constant = Dense::from_rows(&[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]);
    let empty = Csr::<f64>::new(3, 4, vec![0, 0, 0, 0], vec![], vec![]).unwrap();
    for c in [1e-6, 1.0, 1e10] {
        run(&constant, &[0, 1, 2, 0], 3, &[c; 4]);
        run(&constant, &[0, 1, 2, 0], 7, &[c; 4]);
        run(&Dense::from_rows(&[[1.0, 2.0]]), &[1], 3, &[c]);
        run(&empty, &[0, 2, 2], 3, &[c; 3]);
    }
}

#[test]
fn a_penalty_it_does_not_have_is_refused() {
    let (x, codes) = clouds(20, 2, 3, 0.0, 1);
    let rates = vec![1.0; 6];
    let caps = vec![1.0; 20];
    let own = problem(&x, &codes, 3, &caps, Loss::logistic(), &KernelFunction::Linear);
    let wrong = ManyClass { norm: Norm::Absolute(&rates), ..own };
    let error = interior::solve_many(&wrong, &Options::default(), &Control::default()).unwrap_err();
    assert!(error.to_string().contains("interior-point"));
}
