//! The l1 solver where many coefficients are not 0, so that the interior point method takes part.

use crate::common::{Random, relative};
use crate::sparse_data::{AGREEMENT, Data, TOLERANCE, converged, independent, options, selected};
use outlast::solver::Options;
use outlast::{Control, Design, Loss, Progress};
use std::sync::atomic::{AtomicBool, Ordering};

/// Solves, and demands that the interior was entered.
fn through_the_interior(data: &Data, x: &dyn Design, loss: Loss, intercept: bool) -> f64 {
    let seen = AtomicBool::new(false);
    let watch = |progress: Progress| {
        seen.fetch_or(progress.stage == "l1 interior", Ordering::Relaxed);
    };
    let control = Control::default().progress(&watch);
    let solution = data.solve_watched(x, loss, intercept, &options(TOLERANCE), &control);
    converged(&solution);
    assert!(seen.load(Ordering::Relaxed), "the interior was not needed");
    assert!(selected(&solution) > data.n / 4, "{} selected", selected(&solution));
    solution.objective
}

/// More columns than rows, and a cap that makes almost every row count.
fn dense_face(n: usize, d: usize, k: usize) -> Data {
    Data::new(n, d, k, 1.0, 3 + n as u64)
}

#[test]
fn a_conic_solver_finds_the_same_optimum() {
    for (n, d, k) in [(120, 200, 2), (70, 90, 3), (50, 60, 4)] {
        for intercept in [true, false] {
            let data = dense_face(n, d, k);
            let (optimum, _) = independent(&data, intercept);
            let found = through_the_interior(&data, &data.dense(), Loss::hinge(), intercept);
            assert!(relative(found, optimum) < AGREEMENT, "{n} x {d}, k {k}: {found} {optimum}");
            let sparse = through_the_interior(&data, &data.sparse(), Loss::hinge(), intercept);
            assert!(relative(sparse, optimum) < AGREEMENT, "{n} x {d}, k {k}: {sparse} {optimum}");
        }
    }
}

#[test]
fn rates_of_any_kind_and_weights() {
    for (n, d, k) in [(120, 200, 2), (70, 90, 3)] {
        let data = dense_face(n, d, k).varied(29);
        let (optimum, _) = independent(&data, true);
        let found = through_the_interior(&data, &data.dense(), Loss::hinge(), true);
        assert!((found - optimum).abs() <= AGREEMENT * optimum.abs() + 1e-9, "{n} x {d}, k {k}: {found} {optimum}");
    }
}

#[test]
fn rows_with_the_same_x_share_an_equation() {
    for k in [2, 3] {
        let mut data = dense_face(90, 120, k);
        let mut random = Random(7);
        // every third row is the one before with another label or the same
        for row in (1..90).step_by(3) {
            data.values.copy_within((row - 1) * 120..row * 120, row * 120);
            data.codes[row] = random.below(k) as u32;
        }
        let (optimum, _) = independent(&data, true);
        let found = through_the_interior(&data, &data.dense(), Loss::hinge(), true);
        assert!(relative(found, optimum) < AGREEMENT, "k {k}: {found} {optimum}");
    }
}

#[test]
fn truncated_paths_pass_it_too() {
    for k in [2, 3] {
        let mut data = dense_face(80, 120, k);
        data.caps.fill(0.3);
        let plain = through_the_interior(&data, &data.dense(), Loss::hinge(), true);
        let loss = Loss::hinge().truncated_at(-0.2).unwrap();
        let robust = data.solve_on(&data.dense(), loss, true, &options(TOLERANCE));
        converged(&robust);
        assert!(robust.objective <= plain * (1.0 + AGREEMENT) && selected(&robust) > 0);
    }
}

#[test]
fn a_start_at_the_solution_does_without() {
    let data = dense_face(80, 100, 3);
    let x = data.dense();
    let found = through_the_interior(&data, &x, Loss::hinge(), true);
    // a start at the solution leaves nothing to the interior
    let cold = data.solve(Loss::hinge(), true, TOLERANCE);
    let start = outlast::solver::Start {
        expansion: cold.expansion.clone(),
        weights: cold.weights.clone(),
        intercepts: cold.intercepts.clone(),
    };
    let entered = AtomicBool::new(false);
    let watch = |progress: Progress| {
        entered.fetch_or(progress.stage == "l1 interior", Ordering::Relaxed);
    };
    let warm = Options { start: Some(start), ..options(TOLERANCE) };
    let warm = data.solve_watched(&x, Loss::hinge(), true, &warm, &Control::default().progress(&watch));
    assert!(relative(warm.objective, found) < AGREEMENT && !entered.load(Ordering::Relaxed));
}
