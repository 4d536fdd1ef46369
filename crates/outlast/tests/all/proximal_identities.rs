//! The l1 solver against itself: problems that are the same in other words.

use crate::common::relative;
use crate::sparse_data::{AGREEMENT, Data, TOLERANCE, converged, judge_many, options, selected};
use outlast::solver::{Options, Start, proximal};
use outlast::{Control, Loss};

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
        [(2, 120, 5, 1.0, -1.0), (2, 80, 40, 2.0, 0.0), (3, 100, 6, 1.0, -0.5), (4, 80, 10, 0.5, -1.0 / 3.0)]
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
