//! 1 < q <= 2: a primal-dual interior point method.
//!
//! With w = w+ - w-, both >= 0, and z = 1 - s f of a term written xi - t, the conditions are
//!
//! ```text
//! alpha t = mu,   (c - alpha) xi = mu,   w+ v+ = mu,   w- v- = mu,        V = s alpha balanced over the functions if b is free
//! q (w+)^(q-1) - v+ = u - m = v- - q (w-)^(q-1),   u = X'V,     m the multiplier of sum_j w_j = 0 (0 for one function)
//! ```
//!
//! and mu falls to 0. As q falls to 1 these become those of the linear program. A Newton step has dV = k - W df and
//! dw = B (du - dm) + constant with W = 1 / (t / alpha + xi / (c - alpha)), B = E+ + E-, E = 1 / (q (q-1) w^(q-2) + v / w): the
//! equations of [`Normal`]. Each step is a predictor and a corrector with one factor (Mehrotra).
//!
//! The objective is divided by `unit`, a power of two next to the largest cap, so that caps are at most about 1 and the penalty has the
//! rate 1 / unit, or, where the columns are in units of their own, a rate for each; coefficients start at the size of their columns. So units of C and X do not matter. The first point need not fulfil
//! the equations but for V; each step takes its share off what they lack. A start given is moved a little to the inside first.
//!
//! V stays within its box and balanced, so that every point has a certificate: r V is feasible for 0 <= r <= 1 with the dual value
//! r sum alpha - r^p g(X'V), p = q / (q - 1) and g the conjugate of the penalty (see [`LqProblem`]), and the best r is known.
//!
//! It goes on as long as anything falls (`patience`): the gap, the sum of the products, or what the equations lack, of which a step of
//! length r leaves 1 - r. Products that are far below the gap asked for tell nothing any more; what remains then is rounding.

mod best;
mod couples;
mod inside;
mod patience;
mod start;
mod step;

use super::super::{Options, Solution, Status};
use crate::control::{Control, Progress};
use crate::error::Result;
use crate::problem::LqProblem;
use best::Best;
pub(super) use best::balance;
use inside::{Inside, Point};
use patience::Patience;

const MOST_STEPS: usize = 300;
/// A gap that another start would not lower: what is left of it is rounding.
const ROUNDED: f64 = 1e-8;
/// The penalty is curved, so that coefficients are known to the root of the gap only: where a tolerance as small as this is asked
/// for, so many steps follow.
const EXACT: f64 = 1e-9;
const POLISH: usize = 4;

/// Solves; q > 1. `factors` are logarithms of what the penalty of each column is multiplied by; the solution's objective is that without.
pub(super) fn solve(
    problem: &LqProblem,
    factors: Option<&[f64]>,
    options: &Options,
    control: &Control,
) -> Result<Solution> {
    let inside = Inside::new(problem, factors);
    let mut best = Best::nothing(&inside);
    if let Some(intercepts) = inside.costless() {
        best.note_primal(&inside, best.weights.clone(), &intercepts);
        return Ok(best.solution(problem, 0, Status::Converged));
    }
    let mut end = End { status: Status::IterationLimit, steps: 0 };
    let given = options.start.as_ref().and_then(|start| inside.warm(start));
    // the last start is for what the others do not lead to
    for point in given.into_iter().chain([false, true].into_iter().map(|careful| inside.cold(careful))) {
        follow(&inside, point, &mut best, &mut end, options, control)?;
        if end.status != Status::Inaccurate || best.gap() <= ROUNDED {
            break;
        }
    }
    Ok(best.solution(problem, end.steps, end.status))
}

/// How it ended, and after how many steps in all.
struct End {
    status: Status,
    steps: usize,
}

/// Steps from one start, as long as there is progress.
fn follow(
    inside: &Inside,
    mut point: Point,
    best: &mut Best,
    end: &mut End,
    options: &Options,
    control: &Control,
) -> Result<()> {
    let mut patience = Patience::new(options.tolerance);
    let mut polish = if options.tolerance <= EXACT { POLISH } else { 0 };
    let most = MOST_STEPS.min(options.max_iterations);
    loop {
        control.check()?;
        let view = inside.view(&point);
        best.note(inside, &point, &view);
        let gap = best.gap();
        control.report(Progress { stage: "lq interior", step: end.steps, objective: best.primal * inside.unit, gap });
        let done = gap <= options.tolerance;
        end.status = match () {
            _ if done => Status::Converged,
            _ if control.out_of_time() => Status::TimeLimit,
            _ if end.steps >= most => Status::IterationLimit,
            _ => Status::Inaccurate,
        };
        let stop = match end.status {
            Status::Converged => polish == 0 || control.out_of_time(),
            Status::Inaccurate => patience.is_over(gap, point.couples.product() / best.primal),
            _ => true,
        };
        if stop {
            return Ok(());
        }
        let Some(length) = inside.step(&mut point, &view) else { return Ok(()) };
        patience.lack *= 1.0 - length;
        polish -= usize::from(done);
        end.steps += 1;
    }
}
