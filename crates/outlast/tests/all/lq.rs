//! The L_q machine against a general conic solver and itself written differently.

use crate::common::relative;
use crate::lq_data::{AGREEMENT, Data, TOLERANCE, converged, independent, judge, options};
use outlast::data::Design;
use outlast::problem::LqProblem;
use outlast::solver::{Options, lq};
use outlast::{Control, FitRequest, Lq, Progress};
use std::sync::Mutex;
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

/// The end that `solver="lqa"` comes to by itself, with its own limits, at a size that is not cheap; with costs and weights, some of
/// them 0, at sizes of every kind.
#[test]
fn the_paper_s_own_end_is_no_lower_whatever_rows_cost() {
    let model = |lq: &Lq, data: &Data, c: f64| {
        let weights: Vec<f64> = data.caps.iter().map(|cap| cap / c).collect();
        let request = FitRequest { sample_weight: Some(&weights), ..FitRequest::default() };
        lq.fit_with(&data.dense(), &data.codes[..], &request).unwrap()
    };
    let sizes = [
        (60, 10, 2, 0.3, 0.5),
        (50, 8, 3, 0.3, 0.3),
        (30, 60, 2, 1.0, 0.8),
        (40, 50, 3, 0.5, 0.5),
        (4000, 160, 2, 0.02, 0.8),
    ];
    for (n, d, k, c, q) in sizes {
        let data = Data::new(n, d, k, c, 61).varied(5);
        let cost = data.cost.as_ref().unwrap().chunks(k).map(<[f64]>::to_vec).collect();
        let lq = Lq::new(c).q(q).cost(cost);
        let (found, paper) = (model(&lq, &data, c), model(&lq.clone().solver("lqa"), &data, c));
        let (a, b) = (found.summary.objective, paper.summary.objective);
        assert!(a <= b * (1.0 + 1e-9), "{n} x {d}, k {k}, q {q}: {a} {b}, {:e}", a / b - 1.0);
        assert!(!found.selected().unwrap().is_empty() && paper.summary.trace.len() > 3, "{n} x {d}: trivial");
    }
}

/// However the last step ended, no column is left that costs more than it can save.
#[test]
fn nothing_is_left_below_the_threshold() {
    for (k, q, c) in [(2, 0.3, 0.1), (2, 0.5, 0.1), (2, 0.8, 0.1), (3, 0.5, 0.4)] {
        let data = Data::new(60, 30, k, c, 400);
        let x = data.dense();
        let problem = data.problem(&x, q, true);
        let (m, d) = (data.functions, data.d);
        // a start with too many columns
        let caps: Vec<f64> = data.caps.iter().map(|cap| 30.0 * cap).collect();
        let convex = LqProblem { q: 1.0, caps: &caps, ..problem };
        let start = lq::solve(&convex, "auto", &options(1e-6), &Control::default()).unwrap();
        let steepest = |j: usize, column: usize| -> f64 {
            (0..data.n).map(|row| problem.cap(row, j) * data.values[row * d + column].abs()).sum()
        };
        for steps in [1, 2, 1000] {
            let options = Options { max_steps: steps, ..options(1e-6) };
            let weights = start.weights.as_deref().unwrap();
            let found = lq::descend(&problem, weights, &start.intercepts, &options, &Control::default()).unwrap();
            judge(&problem, &found, false);
            assert!(found.trace.len() <= steps + 1);
            let weights = found.weights.unwrap();
            assert!(weights.iter().any(|w| *w != 0.0), "k {k} q {q}: nothing is left");
            for column in 0..d {
                let entries = || (0..m).map(|j| (weights[j * d + column].abs(), steepest(j, column)));
                let cost: f64 = entries().map(|(w, _)| w.powf(q)).sum();
                let saved: f64 = entries().map(|(w, steepest)| w * steepest).sum();
                assert!(cost == 0.0 || cost < saved, "k {k} q {q}, {steps} steps, column {column}: {cost} {saved}");
                let least = |steepest: f64| (q / steepest).powf(1.0 / (1.0 - q));
                assert!(m > 1 || entries().all(|(w, steepest)| w == 0.0 || w >= least(steepest)));
            }
        }
    }
}

/// Starts are followed side by side and told of as one: steps are counted up, and the objective does not rise.
#[test]
fn reports_of_what_goes_on_side_by_side_do_not_mix() {
    let data = Data::new(150, 40, 3, 0.5, 78);
    let told: Mutex<Vec<Progress>> = Mutex::new(Vec::new());
    let watch = |progress: Progress| told.lock().unwrap().push(progress);
    let request = FitRequest { control: Control::default().progress(&watch), ..FitRequest::default() };
    let lq = Lq::new(0.5).q(0.5).threads(3);
    lq.fit_with(&data.dense(), &data.codes[..], &request).unwrap();
    let told = told.into_inner().unwrap();
    for (stage, least) in [("starts", 5), ("exchanges", 1), ("reweighting", 1)] {
        let of_stage: Vec<&Progress> = told.iter().filter(|progress| progress.stage == stage).collect();
        assert!(of_stage.len() >= least, "{stage}: {}", of_stage.len());
        for pair in of_stage.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            let again = after.step <= 1 && after.step <= before.step;
            let falls = before.objective.is_nan() || after.objective <= before.objective * (1.0 + 1e-9);
            let next = after.step == before.step || after.step == before.step + 1;
            assert!(again || next && falls, "{before:?}, then {after:?}");
        }
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
