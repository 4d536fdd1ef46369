//! q = 1 where the l1 engine does not reach the optimum: columns that say nearly the same in units of many decades.
//!
//! A coefficient of a column in large units costs next to nothing, one in small units a lot, and V must meet bounds |x_c'V| <= rate that
//! are as far apart. The engine's multipliers find those one decade after the other. At q = 1 the interior point method of `smooth` is
//! that of a linear program and steps towards all of them at once. It knows no zeros: an entry is taken for one where its size,
//! relative to the largest, is below the slack of its bound, relative to the rate. From there the engine makes zeros exact.

use super::super::{Options, Solution, Start, Status};
use super::smooth::{self, balance};
use super::{absolute_from, lqa, normal};
use crate::control::Control;
use crate::error::Result;
use crate::problem::LqProblem;
use crate::solver::proximal;

/// Multiplications of a step up to which it is tried.
const STEP: f64 = 1e9;
/// Accuracy, next to the tolerance, at which zeros can be told from others, and at best.
const FINER: f64 = 1e-2;
const FINEST: f64 = 1e-10;
/// Share of the tolerance by which the sparser of two points may be above the other.
const EQUAL: f64 = 1e-2;

/// What was `found`, or what the interior point method leads to where that is better.
pub(super) fn led(problem: &LqProblem, found: Solution, options: &Options, control: &Control) -> Result<Solution> {
    let factored = normal::is_factored(problem.rows(), problem.x.cols(), problem.functions);
    if !factored || lqa::work(problem, problem.x.cols()) > STEP || control.out_of_time() {
        return Ok(found);
    }
    let tolerance = (FINER * options.tolerance).max(FINEST).min(options.tolerance);
    let dense = smooth::solve(problem, None, &Options { tolerance, start: None, ..options.clone() }, control)?;
    if !(dense.gap < found.gap) && !(dense.objective < found.objective) {
        return Ok(found);
    }
    let weights = with_zeros(problem, &dense);
    let start = Start {
        expansion: dense.expansion.clone(),
        weights: Some(weights.clone()),
        intercepts: dense.intercepts.clone(),
    };
    let exact = absolute_from(problem, Some(&start), options, control)?;
    let decision = problem.decision(&weights, &dense.intercepts);
    let objective = problem.penalty(&weights) + problem.loss(&decision);
    let sparse = Solution { weights: Some(weights), decision, objective, ..dense.clone() };
    // the best bound, and of the points about as low as the lowest the first in this order
    let iterations = found.iterations + dense.iterations + exact.iterations;
    let ends = [exact, found, sparse, dense];
    let dual_of = |end: &Solution| end.expansion.iter().map(|v| v.abs()).sum::<f64>();
    let bound = ends.iter().max_by(|a, b| dual_of(a).total_cmp(&dual_of(b)));
    let (dual, expansion) = bound.map_or((0.0, Vec::new()), |end| (dual_of(end), end.expansion.clone()));
    let least = ends.iter().fold(f64::INFINITY, |least, end| least.min(end.objective));
    let low = |end: &Solution| end.objective <= least * (1.0 + EQUAL * options.tolerance);
    let [exact, found, sparse, dense] = ends;
    let best = match () {
        _ if low(&exact) => exact,
        _ if low(&found) => found,
        _ if low(&sparse) => sparse,
        _ => dense,
    };
    let gap = (best.objective - dual).max(0.0) / best.objective.max(f64::MIN_POSITIVE);
    let status = match () {
        _ if gap <= options.tolerance => Status::Converged,
        _ if control.out_of_time() => Status::TimeLimit,
        _ => Status::Inaccurate,
    };
    let trace = vec![best.objective];
    Ok(Solution { expansion, gap, status, trace, iterations, solver: proximal::NAME, ..best })
}

/// The coefficients, those next to 0 as 0; sums over the functions stay 0.
fn with_zeros(problem: &LqProblem, dense: &Solution) -> Vec<f64> {
    let (m, d) = (problem.functions, problem.x.cols());
    let mut weights = dense.weights.clone().unwrap_or_default();
    let shrinks = proximal::units(problem.x);
    let size = |at: usize, w: f64| w.abs() / shrinks[at % d];
    let largest = weights.iter().enumerate().fold(0.0f64, |largest, (at, w)| largest.max(size(at, *w)));
    let pulled = problem.pull(&dense.expansion);
    for column in 0..d {
        let entries = || (0..m).map(|j| pulled[j * d + column]);
        let middle = match m {
            1 => 0.0,
            _ => 0.5 * (entries().fold(f64::NEG_INFINITY, f64::max) + entries().fold(f64::INFINITY, f64::min)),
        };
        for at in (0..m).map(|j| j * d + column) {
            let slack = 1.0 - (pulled[at] - middle).abs();
            if size(at, weights[at]) < slack * largest {
                weights[at] = 0.0;
            }
        }
        if m > 1 {
            balance(&mut weights, column, d);
        }
    }
    weights
}
