//! Starts of the exact rounds.
//!
//! A start is a vector of row weights. The first is always that of the point at hand: the plain fit, or where the heuristic of the
//! cap has led. Where a fit is cheap enough the others follow, and the best end point is kept:
//!
//! | start | row weights |
//! |---|---|
//! | plain | 1 |
//! | least squares | the slopes h' at the ridge regression on the labels |
//! | alternating | the slopes where algorithm 2 ends, from least squares, or after as many rounds as are cheap |
//! | leverage | less for rows of a linear machine that lie far from the mean, which fit themselves whatever their label |
//! | trimmed | 0 for the share of rows that fits worst, in turns, else 1 |
//! | continuation | the slopes at the end point of the cap times 4, of that times 2, ... |

use super::super::majorize::Step;
use super::super::{Options, Status};
use super::scheme::Functions;
use super::{
    COARSE_DECREASE, CapRule, DECREASE, MOVING_DECREASE, Run, Settings, caps, floored, run_from, run_on, working,
};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::dot;
use crate::problem::concave::Concave;
use crate::problem::{Coded, KernelFunction};
use std::sync::Arc;

/// Entries of the smaller matrix, rows x the fewer of rows and columns, times functions, up to which every start is tried.
const CHEAP: usize = 500_000;

/// Rounds of algorithm 2: at least, at most, and what they may cost together (entries of the matrix read).
const ALTERNATIONS: (usize, usize) = (20, 2000);
const ALTERNATING_WORK: usize = 100_000_000;

const TRIMMINGS: usize = 3;
const FACTORS: [f64; 3] = [8.0, 4.0, 2.0];

/// The best end point of all starts. The point at hand is what `first` led to.
pub(super) fn best(
    functions: &mut Functions,
    settings: &Settings,
    first: Step,
    options: &Options,
    control: &Control,
) -> Result<Run> {
    let problem = functions.problem;
    let bounds = functions.loss.concave.bounds();
    let plain = vec![1.0; problem.rows()];
    let at_hand = functions.points();
    let from_hand = match settings.cap {
        CapRule::Fixed => run_on(functions, plain.clone(), first, rough(&bounds), decrease(&bounds), options, control)?,
        CapRule::Beyond(_) => {
            let weights = functions.slopes(&*working(&functions.loss));
            let weights = if functions.any(&weights) { weights } else { plain.clone() };
            run_from(functions, weights, rough(&bounds), decrease(&bounds), options, control)?
        }
    };
    let mut best = from_hand;
    let size = problem.rows().saturating_mul(problem.x.cols().min(problem.rows())).saturating_mul(problem.functions);
    let convex = functions.loss.cap == f64::INFINITY && bounds.len() == 1;
    if settings.portfolio && !convex && size <= CHEAP {
        functions.go_to(&at_hand);
        for weights in others(functions, settings, &plain, options, control)? {
            if control.out_of_time() || best.status == Status::TimeLimit {
                break;
            }
            if !functions.any(&weights) {
                continue;
            }
            let run = run_from(functions, weights, rough(&bounds), decrease(&bounds), options, control)?;
            // a tie goes to the earlier one, whatever the last digits say
            let lower = run.objective < best.objective * (1.0 - 1e-12);
            if !run.exhausted && (lower || best.exhausted) {
                best = run;
            }
        }
    }
    if bounds.len() == 1 || best.status == Status::TimeLimit {
        return Ok(best);
    }
    refine(functions, best, &bounds, options, control)
}

/// The bounds for comparing starts: all of them if there is one, else the first two.
fn rough(bounds: &[Arc<dyn Concave>]) -> &[Arc<dyn Concave>] {
    &bounds[..bounds.len().min(2)]
}

fn decrease(bounds: &[Arc<dyn Concave>]) -> f64 {
    if bounds.len() == 1 { DECREASE } else { COARSE_DECREASE }
}

/// Goes on with the lower bounds of h.
fn refine(
    functions: &mut Functions,
    best: Run,
    bounds: &[Arc<dyn Concave>],
    options: &Options,
    control: &Control,
) -> Result<Run> {
    functions.go_to(&best.points);
    let rest = &bounds[rough(bounds).len()..];
    let step = Step { gap: 0.0, iterations: 0, status: best.status };
    let run = run_on(functions, best.weights.clone(), step, rest, MOVING_DECREASE, options, control)?;
    if run.objective > best.objective {
        return Ok(best);
    }
    let mut trace = best.trace;
    super::append(&mut trace, &run.trace);
    let iterations = best.iterations + run.iterations;
    Ok(Run { trace, iterations, exhausted: run.exhausted || best.exhausted, ..run })
}

/// The row weights of all other starts.
fn others(
    functions: &mut Functions,
    settings: &Settings,
    plain: &[f64],
    options: &Options,
    control: &Control,
) -> Result<Vec<Vec<f64>>> {
    let problem = functions.problem;
    let mut starts = Vec::new();
    functions.minimize(plain, options.tolerance, control)?;
    let share = match settings.cap {
        CapRule::Beyond(share) => share,
        CapRule::Fixed => {
            let g = functions.convex_losses();
            let beyond = (0..g.len()).filter(|&row| functions.loss.gives_up(g[row])).map(|row| problem.caps[row]);
            beyond.sum::<f64>() / problem.caps.iter().sum::<f64>()
        }
    };
    if let CapRule::Beyond(_) = settings.cap {
        starts.push(plain.to_vec());
    }
    starts.extend(by_leverage(&problem));
    starts.extend(by_regression(functions, control)?);
    starts.push(trimmed(functions, plain, share, options, control)?);
    starts.extend(by_continuation(functions, plain, options, control)?);
    Ok(starts)
}

/// (m / |x - mean|^2)^2 where that is below 1, m the median of these distances. A far row with a wrong label has so much leverage that
/// it never costs enough to be given up.
fn by_leverage(problem: &Coded) -> Option<Vec<f64>> {
    let KernelFunction::Linear = problem.kernel else { return None };
    let (n, d) = (problem.rows(), problem.x.cols());
    let total: f64 = problem.caps.iter().sum();
    let mut mean = vec![0.0; d];
    (0..n).for_each(|row| problem.x.add_scaled(row, problem.caps[row] / total, &mut mean));
    let square = dot(&mean, &mean);
    let distance = |row: usize| (problem.x.squared_norm(row) - 2.0 * problem.x.dot(row, &mean) + square).max(0.0);
    let distances: Vec<f64> = (0..n).map(distance).collect();
    let mut sorted: Vec<usize> = (0..n).filter(|&row| problem.caps[row] > 0.0).collect();
    sorted.sort_unstable_by(|&a, &b| distances[a].total_cmp(&distances[b]));
    let mut below = 0.0;
    let middle = sorted.iter().find(|&&row| {
        below += problem.caps[row];
        below >= 0.5 * total
    });
    let median = distances[*middle?];
    let finite = distances.iter().all(|distance| distance.is_finite());
    if !(median > 0.0 && finite) {
        return None;
    }
    Some(distances.iter().map(|distance| (median / distance.max(median)).powi(2)).collect())
}

/// Least squares, and algorithm 2 from there.
fn by_regression(functions: &mut Functions, control: &Control) -> Result<Vec<Vec<f64>>> {
    let problem = functions.problem;
    let bound = floored(&functions.loss);
    let mut starts = Vec::new();
    let mut weights = vec![1.0; problem.rows()];
    let mut targets: Vec<Vec<f64>> =
        (0..problem.functions).map(|j| (0..problem.rows()).map(|row| problem.sign(row, j)).collect()).collect();
    let entries = problem.rows() * problem.functions * problem.x.cols().min(problem.rows());
    let (least, most) = ALTERNATIONS;
    let rounds = (ALTERNATING_WORK / entries.max(1)).clamp(least, most);
    let mut value = f64::INFINITY;
    for round in 0..rounds {
        control.check()?;
        if control.out_of_time() || !functions.any(&weights) || !functions.regress(&weights, &targets, control)? {
            break;
        }
        weights = functions.slopes(&*bound);
        targets = functions.targets();
        let next = functions.objective(&*bound);
        let ended = round + 1 == rounds || value - next <= DECREASE * next.abs();
        value = next;
        if round == 0 || ended {
            starts.push(weights.clone());
        }
        if ended && round > 0 {
            break;
        }
    }
    Ok(starts)
}

/// The rows that fit worst are left out, in turns.
fn trimmed(
    functions: &mut Functions,
    plain: &[f64],
    share: f64,
    options: &Options,
    control: &Control,
) -> Result<Vec<f64>> {
    let problem = functions.problem;
    let mut weights = plain.to_vec();
    for _ in 0..TRIMMINGS {
        functions.minimize(&weights, options.tolerance, control)?;
        let g = functions.convex_losses();
        let cut = caps::beyond(&g, problem.caps, share);
        weights = g.iter().map(|&g| if g > cut { 0.0 } else { 1.0 }).collect();
        if !functions.any(&weights) {
            return Ok(plain.to_vec());
        }
    }
    Ok(weights)
}

/// Down from higher caps.
fn by_continuation(
    functions: &mut Functions,
    plain: &[f64],
    options: &Options,
    control: &Control,
) -> Result<Option<Vec<f64>>> {
    if !functions.loss.cap.is_finite() {
        return Ok(None);
    }
    let own = functions.loss.clone();
    let mut weights = plain.to_vec();
    for factor in FACTORS {
        functions.loss = own.with_cap(factor * own.cap);
        let bounds = functions.loss.concave.bounds();
        let run = run_from(functions, weights.clone(), rough(&bounds), COARSE_DECREASE, options, control);
        functions.loss = own.clone();
        run?;
        let next = functions.slopes(&*working(&own));
        if functions.any(&next) {
            weights = next;
        }
    }
    Ok(Some(weights))
}
