//! A free intercept.
//!
//! b has no penalty: lifted like the other coordinates its R_bb would go to infinity for free, every row would get b_i large, and the
//! relaxation would be 0. But for b given the relaxation is as before, with offsets y_i b; and for b within h of a centre,
//! b = centre + delta, delta can be lifted under R_dd <= h^2. With a multiplier mu >= 0 for that,
//!
//! ```text
//! min_W r/2 |W|^2 + mu/2 |W_d|^2 + sum_i c_i l(a_i, b_i) - mu h^2/2
//! ```
//!
//! is a lower bound for the whole interval, whatever mu: one more column y_i sqrt(r/mu) of the features. The relaxation's value is the
//! least over b, and its bound the least over intervals that cover all b worth looking at: for a given w the loss is piecewise linear in b
//! with convex kinks only at margins of 1, so some best b is y_i - f(x_i), and |b| <= 1 + |w| max |f_i| with
//! r/2 |w|^2 at most the objective at w = 0 and b = 1 or -1: twice the lighter class. Intervals are halved where their bound is lowest until it meets the best value.

use super::lifted::{self, Goal, Level, Lifted};
use super::smoothed::Rows;
use super::space::Space;
use crate::control::Control;
use crate::error::Result;
use crate::solver::Status;

/// Solves per interval that move its multiplier.
const MOVES: usize = 4;
/// Ratios of |W_d| to h that leave the multiplier as it is.
const GOOD: std::ops::Range<f64> = 0.6..1.6;
/// Smoothing from which a warm start goes on.
const WARM: f64 = 0.03;
/// Steps along b before the search.
const DESCENTS: usize = 12;
/// Most intervals.
const MOST: usize = 2000;

/// All b within `half` of `centre`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    pub(super) centre: f64,
    pub(super) half: f64,
    /// mu
    pub(super) multiplier: f64,
}

impl Interval {
    /// All b that can be best when r/2 |w|^2 <= `value`.
    pub(super) fn whole(space: &Space, value: f64) -> Interval {
        let length = (2.0 * value.max(0.0) / space.ridge).sqrt();
        let half = (1.0 + length * space.longest()) * (1.0 + 1e-9);
        let total: f64 = space.caps.iter().sum();
        Interval { centre: 0.0, half, multiplier: total / (half * half).max(1.0) }
    }

    pub(super) fn halves(&self) -> [Interval; 2] {
        let half = 0.5 * self.half;
        [-half, half].map(|shift| Interval { centre: self.centre + shift, half: half * (1.0 + 1e-12), ..*self })
    }
}

/// What is known of an interval.
pub(super) struct Bounded {
    pub(super) lower: f64,
    pub(super) lifted: Lifted,
    pub(super) multiplier: f64,
    /// b at the relaxation's w.
    pub(super) intercept: f64,
}

/// A lower bound for all b of an interval. `kept` and `level` as in the relaxation; the goal's cutoff and hopelessness count for
/// the bound itself.
pub(super) fn bound(
    space: &mut Space,
    kept: &[bool],
    level: Level,
    interval: Interval,
    start: (Vec<f64>, usize),
    goal: Goal,
    control: &Control,
) -> Result<Bounded> {
    let offsets: Vec<f64> = space.signs.iter().map(|sign| sign * interval.centre).collect();
    let m = space.columns;
    let mut multiplier = interval.multiplier;
    let mut start = start;
    let mut best: Option<Bounded> = None;
    for round in 0..MOVES {
        let reach = (space.ridge / multiplier).sqrt();
        space.set_reach(reach);
        let rows = Rows { features: space.view(), caps: &space.caps, offsets: &offsets, kept, ridge: space.ridge };
        // (mu h^2)/2 with its rounding
        let price = 0.5 * multiplier * interval.half * interval.half * (1.0 + 8.0 * f64::EPSILON);
        let goal = Goal { cutoff: goal.cutoff + price, hopeless: goal.hopeless + price, ..goal };
        let lifted = lifted::solve(&rows, space.error, level, start, goal, control, &|_, _, _| ())?;
        let columns = lifted.w.chunks_exact(m);
        let spread = reach * columns.map(|column| column[m - 1] * column[m - 1]).sum::<f64>().sqrt();
        let intercept = interval.centre + (reach * lifted.w[m - 1]).clamp(-interval.half, interval.half);
        let lower = (lifted.lower - price).max(0.0);
        start = (lifted.w.clone(), lifted.columns);
        let ended = lifted.status == Status::TimeLimit || lifted.status == Status::IterationLimit;
        let used = multiplier;
        if best.as_ref().is_none_or(|best| lower > best.lower) {
            best = Some(Bounded { lower, lifted, multiplier: used, intercept });
        }
        let ratio = spread / interval.half;
        let done = best.as_ref().is_some_and(|best| best.lower >= goal.cutoff - price);
        if done || ended || round + 1 == MOVES || GOOD.contains(&ratio) || (ratio < GOOD.start && multiplier < 1e-12) {
            break;
        }
        let factor = (ratio * ratio).clamp(0.05, 20.0);
        multiplier *= factor;
        // the coordinate of delta in the new units
        let unit = factor.sqrt();
        for column in start.0.chunks_exact_mut(m) {
            column[m - 1] *= unit;
        }
    }
    best.ok_or_else(|| crate::error::Error::Numerical { problem: "no bound for an interval of the intercept".into() })
}

/// No more than this is the objective at w = 0, b = 1 or -1, truncated or not.
fn at_nothing(space: &Space) -> f64 {
    let weight = |class: f64| -> f64 {
        space.signs.iter().zip(&space.caps).filter(|(sign, _)| **sign == class).map(|(_, cap)| cap).sum()
    };
    2.0 * weight(1.0).min(weight(-1.0))
}

/// The relaxation at a given b.
pub(super) fn at(
    space: &mut Space,
    kept: &[bool],
    level: Level,
    intercept: f64,
    start: (Vec<f64>, usize),
    goal: Goal,
    control: &Control,
) -> Result<Lifted> {
    let offsets: Vec<f64> = space.signs.iter().map(|sign| sign * intercept).collect();
    space.set_reach(0.0);
    let rows = Rows { features: space.view(), caps: &space.caps, offsets: &offsets, kept, ridge: space.ridge };
    lifted::solve(&rows, space.error, level, start, goal, control, &|_, _, _| ())
}

/// The relaxation with a free intercept, its b and its status; `lower` holds for all b.
pub(super) fn solve(
    space: &mut Space,
    kept: &[bool],
    level: Level,
    goal: Goal,
    seed: u64,
    control: &Control,
    watch: &dyn Fn(usize, f64, f64),
) -> Result<(Lifted, f64)> {
    let offsets = vec![0.0; space.rows()];
    let first = {
        space.set_reach(0.0);
        let rows = Rows { features: space.view(), caps: &space.caps, offsets: &offsets, kept, ridge: space.ridge };
        lifted::start(&rows, seed)
    };
    let mut best = at(space, kept, level, 0.0, first, goal, control)?;
    let mut intercept = 0.0;
    let mut steps = best.steps;
    let warm = |lifted: &Lifted| (lifted.w.clone(), lifted.columns);
    // down along b: steps of a length that grows while they gain and halves else
    let mut step = 0.5;
    for _ in 0..DESCENTS {
        let mut gained = false;
        for sign in [-1.0, 1.0] {
            let trial = intercept + sign * step;
            let goal = Goal { cutoff: best.value, coarsest: WARM, ..goal };
            let other = at(space, kept, level, trial, warm(&best), goal, control)?;
            steps += other.steps;
            if other.value < best.value - 1e-3 * goal.tolerance * best.value.abs() {
                (best, intercept, gained) = (other, trial, true);
                break;
            }
        }
        step *= if gained { 1.5 } else { 0.3 };
        if step < 1e-3 || control.out_of_time() {
            break;
        }
    }
    let mut open = vec![(0.0f64, Interval::whole(space, at_nothing(space)), warm(&best))];
    let mut closed = f64::INFINITY;
    let mut status = Status::Converged;
    let mut count = 0;
    // a minimum of 0 is measured by what all rows weigh
    let nothing = lifted::NOTHING * space.caps.iter().sum::<f64>();
    while let Some(at_least) = (0..open.len()).min_by(|&a, &b| open[a].0.total_cmp(&open[b].0)) {
        let (known, interval, start) = open.swap_remove(at_least);
        let cutoff = best.value - goal.tolerance * best.value.abs().max(nothing);
        if known >= cutoff || best.value <= f64::MIN_POSITIVE {
            closed = closed.min(known);
            continue;
        }
        count += 1;
        if count > MOST || control.out_of_time() || steps >= goal.steps {
            status = if control.out_of_time() { Status::TimeLimit } else { Status::IterationLimit };
            closed = closed.min(known);
            break;
        }
        control.check()?;
        let coarsest = if count == 1 { goal.coarsest } else { WARM };
        let tolerance = 0.1 * goal.tolerance;
        let quick = Goal { cutoff, hopeless: cutoff, certify_from: 0.1, tolerance, coarsest, ..goal };
        let found = bound(space, kept, level, interval, start, quick, control)?;
        steps += found.lifted.steps;
        let lower = found.lower.max(known);
        let known_here = (interval.centre - intercept).abs() <= interval.half * (1.0 + 1e-9);
        if lower < cutoff && (!known_here || count % 8 == 0) {
            let goal = Goal { cutoff: best.value, coarsest: WARM, ..goal };
            let trial = at(space, kept, level, found.intercept, warm(&found.lifted), goal, control)?;
            steps += trial.steps;
            if trial.value < best.value {
                (best, intercept) = (trial, found.intercept);
            }
        }
        let reached = open.iter().map(|(lower, ..)| *lower).fold(closed.min(lower), f64::min);
        watch(steps, best.value, reached);
        if lower >= cutoff {
            closed = closed.min(lower);
            continue;
        }
        let parent = Interval { multiplier: found.multiplier, ..interval };
        for half in parent.halves() {
            open.push((lower, half, warm(&found.lifted)));
        }
    }
    best.lower = open.iter().map(|(lower, ..)| *lower).fold(closed, f64::min).min(best.value);
    best.steps = steps;
    best.status = status;
    Ok((best, intercept))
}
