//! Branch and bound against enumeration.

use crate::ablation_data::Case;
use crate::common::relative;
use outlast::problem::{Problem, TwoClass};
use outlast::solver::ablation::{Branched, branch};
use outlast::solver::{Options, Solution, choose, solve};
use outlast::{Control, KernelFunction, Progress, Status};
use std::sync::Mutex;
use std::time::Duration;

const TOLERANCE: f64 = 1e-6;
/// 100 times less exact than what is asked of the search.
const SAME: f64 = 1e-4;

fn options() -> Options {
    Options { tolerance: TOLERANCE, ..Options::default() }
}

fn local(problem: &TwoClass) -> Solution {
    let problem = Problem::Two(*problem);
    solve(choose("auto", &problem).unwrap(), &problem, &options(), &Control::default()).unwrap()
}

fn search(problem: &TwoClass, control: Control) -> Branched {
    let start = local(problem);
    let found = branch(problem, &start, &options(), control).unwrap();
    assert!(found.solution.objective <= start.objective * (1.0 + 1e-12));
    assert!(found.lower <= found.solution.objective && found.lower >= 0.0);
    let judged = problem.objective(&outlast::problem::Candidate {
        expansion: &found.solution.expansion,
        weights: found.solution.weights.as_deref(),
        intercept: found.solution.intercept(),
    });
    assert!(relative(judged, found.solution.objective) < 1e-9);
    found
}

#[test]
fn it_finds_what_enumeration_finds() {
    let kernels = [LINEAR, KernelFunction::Rbf { gamma: 0.3 }];
    let mut improved = 0;
    for seed in 0..10 {
        let kernel = kernels[seed as usize % 2].clone();
        let case = Case::new(9, 2, [0.1, 1.0, 5.0][seed as usize % 3], kernel, seed >= 5, 40 + seed);
        let truth = case.minimum();
        case.with(|problem| {
            let found = search(problem, Control::default());
            assert!(found.proved && found.solution.status == Status::Converged, "{seed}: {} {}", found.lower, truth);
            assert!(relative(found.solution.objective, truth) < SAME, "{seed}: {} {truth}", found.solution.objective);
            assert!(found.lower <= truth * (1.0 + 1e-8), "{seed}: {} > {truth}", found.lower);
            improved += usize::from(local(problem).objective > truth * (1.0 + SAME));
        });
    }
    assert!(improved >= 1, "no local search missed the minimum");
}

const LINEAR: KernelFunction = KernelFunction::Linear;

#[test]
fn fifty_rows_close() {
    for intercept in [false, true] {
        let case = Case::new(50, 2, 0.05, LINEAR, intercept, 77);
        case.with(|problem| {
            let found = search(problem, Control::default());
            assert!(found.proved, "{} {} after {}", found.lower, found.solution.objective, found.nodes);
        });
    }
}

#[test]
fn threads_do_not_change_the_result() {
    let case = Case::new(30, 3, 1.0, LINEAR, false, 78);
    case.with(|problem| {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| search(problem, Control::default()))
        };
        let (one, two) = (with(1), with(2));
        assert_eq!((one.nodes, one.lower, one.solution.objective), (two.nodes, two.lower, two.solution.objective));
    });
}

#[test]
fn it_stops_with_the_best_so_far() {
    let case = Case::new(60, 4, 30.0, KernelFunction::Rbf { gamma: 0.2 }, false, 79);
    case.with(|problem| {
        let found = search(problem, Control::default().time_limit(Duration::ZERO));
        assert!(!found.proved && found.solution.status == Status::TimeLimit);
        let stop = || true;
        let found = search(problem, Control::default().interrupt(&stop));
        assert!(found.interrupted && !found.proved);
        // progress comes, and the gap never rises
        let told: Mutex<Vec<Progress>> = Mutex::new(Vec::new());
        let tell = |progress: Progress| {
            if progress.stage == "branch" {
                told.lock().unwrap().push(progress);
            }
        };
        let after = || told.lock().unwrap().len() >= 4;
        let found = search(problem, Control::default().progress(&tell).interrupt(&after));
        let told = told.into_inner().unwrap();
        assert!(found.proved || told.len() >= 4);
        assert!(told.windows(2).all(|pair| pair[1].gap <= pair[0].gap * (1.0 + 1e-9) && pair[1].step >= pair[0].step));
    });
}

#[test]
fn trivial_problems_end_at_once() {
    // one class: with an intercept nothing is left to do
    let mut case = Case::new(5, 2, 1.0, LINEAR, true, 80);
    case.data.signs = vec![1.0; 5];
    case.with(|problem| {
        let found = search(problem, Control::default());
        assert!(found.proved && found.solution.objective == 0.0 && found.lower == 0.0);
    });
    let mut case = Case::new(5, 2, 1.0, LINEAR, false, 81);
    case.caps = vec![0.0; 5];
    case.with(|problem| assert!(search(problem, Control::default()).proved));
}
