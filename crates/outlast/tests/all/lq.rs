//! The L_q machine against a general conic solver and itself written differently.

use crate::common::relative;
use crate::lq_data::{AGREEMENT, Data, TOLERANCE, converged, independent, options};
use outlast::data::Design;
use outlast::problem::LqProblem;
use outlast::solver::{Options, lq};
use outlast::{Control, Progress};
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_conic_solver_finds_the_same_optimum() {
    for q in [1.0, 2.0] {
        for (k, n, d, c) in
            [(2, 60, 8, 0.3), (2, 40, 70, 1.0), (2, 80, 5, 30.0), (3, 50, 6, 0.5), (3, 30, 40, 1.0), (4, 40, 7, 2.0)]
        {
            for intercept in [true, false] {
                for varied in [false, true] {
                    let data = Data::new(n, d, k, c, 7 + n as u64);
                    let data = if varied { data.varied(11 + k as u64) } else { data };
                    let what = format!("q {q}, k {k}, {n} x {d}, intercept {intercept}, varied {varied}");
                    let x = data.dense();
                    let optimum = independent(&data.problem(&x, q, intercept));
                    let found = data.solve(q, intercept);
                    converged(&found);
                    assert!(relative(found.objective, optimum) < AGREEMENT, "{what}: {} {optimum}", found.objective);
                    let sparse = data.solve_with(&data.sparse(), q, intercept, "auto", &options(TOLERANCE));
                    assert!(relative(sparse.objective, optimum) < AGREEMENT, "{what}: sparse");
                    assert!(found.weights.as_ref().unwrap().iter().any(|w| *w != 0.0), "{what}: trivial");
                }
            }
        }
    }
}

/// Between 1 and 2 the judge's certificate is the proof: primal and dual evaluated from the data alone.
#[test]
fn exponents_between_one_and_two_are_certified() {
    for q in [1.02, 1.1, 1.3, 1.5, 1.8] {
        for (k, n, d, c) in [(2, 60, 8, 0.3), (2, 40, 70, 1.0), (2, 50, 3, 100.0), (3, 50, 6, 0.5), (4, 25, 30, 1.0)] {
            for intercept in [true, false] {
                let data = Data::new(n, d, k, c, 5 + n as u64).varied(3);
                let found = data.solve(q, intercept);
                converged(&found);
            }
        }
    }
}

/// With a lambda the joint form of two classes is the single function's with 2 lambda: f_2 = -f_1 = f, and each penalty counts twice.
#[test]
fn the_joint_form_of_two_classes_has_twice_the_penalty() {
    let mut joint = Data::new(40, 6, 2, 2.0, 3);
    joint.functions = 2;
    let single = Data { caps: vec![1.0; 40], functions: 1, ..Data::new(40, 6, 2, 2.0, 3) };
    for q in [0.5, 1.0, 1.5, 2.0] {
        let (a, b) = if q < 1.0 {
            // which local minimum is found depends on the start
            let start: Vec<f64> = (1..=6).map(|column| 1.0 / f64::from(column)).collect();
            let both: Vec<f64> = start.iter().map(|w| -w).chain(start.iter().copied()).collect();
            let (x, y) = (joint.dense(), single.dense());
            let descend = |problem: &LqProblem, weights: &[f64], intercepts: &[f64]| {
                lq::descend(problem, weights, intercepts, &options(TOLERANCE), &Control::default()).unwrap()
            };
            let joint = descend(&joint.problem(&x, q, true), &both, &[0.0, 0.0]);
            (joint, descend(&single.problem(&y, q, true), &start, &[0.0]))
        } else {
            (joint.solve(q, true), single.solve(q, true))
        };
        assert!(relative(a.objective, 2.0 * b.objective) < AGREEMENT, "q {q}: {} {}", a.objective, b.objective);
        let (joint, single) = (a.weights.unwrap(), b.weights.unwrap());
        assert!(single.iter().any(|w| *w != 0.0));
        if q != 1.0 {
            let largest = single.iter().fold(0.0f64, |largest, w| largest.max(w.abs()));
            assert!(single.iter().zip(&joint[6..]).all(|(a, b)| (a - b).abs() < 1e-3 * largest), "q {q}");
        }
    }
}

#[test]
fn the_quadratic_approximation_is_never_below() {
    for q in [0.3, 0.5, 0.9, 1.0, 1.5, 2.0] {
        for (k, n, d, c) in [(2, 60, 10, 0.5), (2, 30, 50, 1.0), (3, 50, 8, 0.5)] {
            let data = Data::new(n, d, k, c, 17 + n as u64);
            let limits = Options { tolerance: 1e-5, max_steps: 1000, ..Options::default() };
            let paper = data.solve_with(&data.dense(), q, true, "lqa", &limits);
            let found = data.solve(q, true);
            assert!(paper.trace.len() > 3);
            assert!(
                found.objective <= paper.objective * (1.0 + 1e-9),
                "q {q} k {k} {n} x {d}: {} {}",
                found.objective,
                paper.objective
            );
            // it stalls, the more the more columns there are
            if q >= 1.0 && d < n {
                assert!(relative(paper.objective, found.objective) < 2e-3, "{} {}", paper.objective, found.objective);
            }
        }
    }
}

/// The end of the paper's algorithm is one of the starts, on sparse columns as well.
#[test]
fn the_paper_s_end_is_a_start_where_it_is_affordable() {
    for (n, d, steps, seeds) in [(100, 30, 500, 2), (40, 200, 500, 2), (330, 650, 30, 1)] {
        for seed in 0..seeds {
            let data = Data::new(n, d, 2, 0.3, 900 + seed);
            let sparse = data.sparse();
            let dense = data.dense();
            for x in [&dense as &dyn Design, &sparse] {
                let limits = Options { tolerance: 1e-5, max_steps: steps, ..Options::default() };
                let paper = data.solve_with(x, 0.5, true, "lqa", &limits);
                let found = data.solve_with(x, 0.5, true, "auto", &options(1e-6));
                let what = format!("{n} x {d}, seed {seed}, sparse {}", x.is_sparse());
                assert!(
                    found.objective <= paper.objective * (1.0 + 1e-9),
                    "{what}: {} {}",
                    found.objective,
                    paper.objective
                );
            }
        }
    }
}

/// Not even in the last digits: the paper's algorithm ends by its decrease, not by a gap, and may be the more exact of the two.
#[test]
fn the_paper_s_last_digits_are_no_lower() {
    for (k, seed) in [(2, 1), (3, 1), (3, 2)] {
        let data = Data::new(150, 30, k, 0.05, 40 + seed);
        let limits = Options { tolerance: 1e-8, max_steps: 3000, ..Options::default() };
        let paper = data.solve_with(&data.dense(), 0.5, true, "lqa", &limits);
        let found = data.solve_with(&data.dense(), 0.5, true, "auto", &options(1e-6));
        let (a, b) = (found.objective, paper.objective);
        assert!(a <= b * (1.0 + 1e-9), "k {k}, seed {seed}: {a} {b}, {:e}", a / b - 1.0);
    }
}

/// Out of time at once, or soon: still no worse than w = 0, and where an l1 problem was solved, better than that.
#[test]
fn a_time_limit_returns_the_best_point_known() {
    let data = Data::new(200, 120, 3, 1.0, 77);
    let x = data.dense();
    let problem = data.problem(&x, 0.5, true);
    let nothing = problem.objective(&vec![0.0; 3 * 120], &[0.0; 3]);
    let whole = data.solve(0.5, true);
    for limit in [0, 1] {
        // as soon as the first convex problem is through
        let begun = AtomicUsize::new(0);
        let watch = |progress: Progress| {
            if progress.stage == "l1" {
                begun.fetch_add(1, Ordering::Relaxed);
            }
        };
        let enough = || begun.load(Ordering::Relaxed) >= 12 * limit;
        let control = Control::default().progress(&watch).finish(&enough);
        let found = lq::solve(&problem, "auto", &options(1e-6), &control).unwrap();
        assert!(whole.objective <= found.objective * (1.0 + AGREEMENT));
        assert!(found.objective <= nothing * (1.0 + 1e-12), "{} {nothing}", found.objective);
        if limit > 0 {
            assert!(found.objective < 0.9 * nothing, "{} {nothing}", found.objective);
            assert!(found.weights.as_ref().unwrap().iter().any(|w| *w != 0.0));
        }
    }
}
