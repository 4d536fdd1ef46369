//! q < 1 against an exhaustive search over supports.

mod common;
mod lq_data;

use common::Random;
use lq_data::{AGREEMENT, Data, options};
use outlast::problem::LqProblem;
use outlast::solver::lq;
use outlast::{Control, Dense};

/// The best objective over all supports: for each, the restricted problem from many starts of all magnitudes and signs, among them what
/// was `found`.
fn exhaustive(data: &Data, q: f64, found: &[f64]) -> f64 {
    let mut best = f64::INFINITY;
    let mut random = Random(77);
    for support in 0u32..1 << data.d {
        let columns: Vec<usize> = (0..data.d).filter(|column| support >> column & 1 == 1).collect();
        // a design has a column
        let pick = |row: &[f64]| -> Vec<f64> {
            if columns.is_empty() { vec![0.0] } else { columns.iter().map(|&column| row[column]).collect() }
        };
        let values: Vec<f64> = data.values.chunks_exact(data.d).flat_map(pick).collect();
        let x = Dense::new(data.n, columns.len().max(1), values).unwrap();
        let problem: LqProblem = data.problem(&x, q, true);
        let descend =
            |weights: &[f64]| lq::descend(&problem, weights, &[0.0], &options(1e-8), &Control::default()).unwrap();
        best = best.min(descend(&pick(found)).objective);
        let rates = LqProblem { q: 1.0, ..problem };
        let convex = lq::solve(&rates, "auto", &options(1e-4), &Control::default()).unwrap().weights.unwrap();
        best = best.min(descend(&convex).objective);
        for _ in 0..6 {
            let weights: Vec<f64> =
                convex.iter().map(|_| random.normal() * 3f64.powf(2.0 * random.unit() - 1.0)).collect();
            best = best.min(descend(&weights).objective);
        }
    }
    best
}

/// What is found is never below the best over all supports, and mostly not above it.
#[test]
fn small_problems_reach_the_best_support() {
    let (mut reached, mut trials) = (0, 0);
    for seed in 0..12 {
        for (q, c) in [(0.3, 0.2), (0.5, 0.5), (0.8, 1.0)] {
            let data = Data::new(40, 6, 2, c, 1000 + seed);
            let found = data.solve(q, true);
            let best = exhaustive(&data, q, found.weights.as_ref().unwrap());
            assert!(found.objective >= best * (1.0 - AGREEMENT), "seed {seed} q {q}: {} {best}", found.objective);
            trials += 1;
            reached += usize::from(found.objective <= best * (1.0 + AGREEMENT));
        }
    }
    println!("{reached} of {trials}");
    assert!(10 * reached >= 9 * trials, "{reached} of {trials}");
}
