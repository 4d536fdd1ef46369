//! Descent on the smoothed loss over many rows, and the convex problem solved by it.
//!
//! One round takes some of Newton's steps over the rows near a kink only; all others are affine (or, truncated, constant), and one pass over
//! all rows tells what that left out:
//!
//! ```text
//! P(theta) - P_near(theta) = sum over rows that changed their label of what the affine loss lacks        (0 where the round began)
//! ```
//!
//! Rows that changed join the next round's; a round that led up is taken again with them, then with all rows.
//!
//! For a convex problem the weights t of the smoothed maxima are multipliers, and the duality gap is what the smoothing costs, about
//! delta^2 x (rows per unit of score) / 6, plus Newton's decrement, plus what was left out. So delta falls until that is the tolerance
//! asked for: no exact solution is needed for moderate tolerances. For small ones the window would hold too few rows to
//! determine theta, and [`band`](super::band) goes on from here.

use super::band::{self, Context, Guess, Place, Row};
use super::certificate::certify;
use super::dual::Dual;
use super::interior::Pair;
use super::level::{Level, Side};
use super::smooth::{self, Smoothing, Stop};
use crate::control::Progress;
use crate::error::Result;

/// Most rounds of a convex solve.
const ROUNDS: usize = 60;
/// Most of Newton's steps in a round.
const STEPS: usize = 8;
/// What a round may leave out, as a share of what the smoothing costs.
const LEFT_OUT: f64 = 0.3;
/// Fewest rows of a window per unknown.
const WINDOW: f64 = 2.0;
/// Rounds that may pass without a much smaller gap.
const STALLS: usize = 5;
/// Range of the factor from one width to the next.
const SHRINK: (f64, f64) = (0.2, 0.7);

/// A descent at work.
pub(super) struct Descent<'a> {
    level: &'a Level<'a>,
    context: &'a Context<'a>,
    /// tau; infinite for the convex problem.
    ceiling: f64,
    pub theta: Vec<f64>,
    /// P without smoothing
    pub exact: f64,
    pub rows: Vec<Row>,
    /// Root mean square change of z in the last round.
    moved: f64,
    failures: usize,
    /// Multipliers found so far.
    prior: Option<Dual>,
}

/// What a round did.
pub(super) struct Round {
    /// Nothing more to gain at this width.
    pub settled: bool,
    /// By how much the smoothed objective fell.
    pub gained: f64,
    /// Duality gap (convex problem), as long as the window's rows can absorb the residual.
    pub gap: f64,
    /// What of it the smoothing costs.
    pub cost: f64,
    /// Rows of the window.
    pub window: usize,
    pub steps: usize,
}

impl<'a> Descent<'a> {
    pub fn new(level: &'a Level<'a>, theta: &[f64], ceiling: f64, context: &'a Context<'a>) -> Self {
        let mut rows = vec![Row::unknown(); level.rows()];
        let loss = band::glance(level, theta, &mut rows);
        let (theta, moved, failures) = (theta.to_vec(), f64::INFINITY, 0);
        let mut descent = Descent { level, context, ceiling, theta, exact: 0.0, rows, moved, failures, prior: None };
        descent.exact = descent.value(&descent.theta, &descent.rows, loss);
        descent
    }

    fn value(&self, theta: &[f64], rows: &[Row], loss: f64) -> f64 {
        let loss = if self.ceiling == f64::INFINITY { loss } else { band::truncated(self.level, rows, self.ceiling) };
        self.level.affine_part(theta) + loss
    }

    /// Some of Newton's steps at one width.
    pub fn round(&mut self, width: f64) -> Result<Round> {
        let (level, ceiling) = (self.level, self.ceiling);
        let reach = (3.0 * self.moved).max(2.0 * width);
        let mut chosen = band::select(level, &mut self.rows, reach, ceiling, band::few(level) / 2, &[]);
        // a truncated cost is not affine between its kinks
        let bent = level.side == Side::Cost && ceiling < f64::INFINITY;
        let whole = self.failures > 1 || bent || 2 * chosen.band.len() > level.rows();
        let copied = (!whole).then(|| level.copy(&chosen.band));
        let near =
            copied.as_ref().map(|copied| copied.level(level, std::mem::take(&mut chosen.linear), chosen.constant));
        let near = near.as_ref().unwrap_or(level);
        let (mut theta, mut f) = (self.theta.clone(), Vec::new());
        let index = (!whole).then_some(&chosen.band[..]);
        let prior = self.prior.as_ref().map_or(Vec::new(), |prior| prior.dense(index));
        let smoothing = Smoothing { width, ceiling, prior: &prior };
        // the truncated loss is not convex: no farther than the rows near its kinks tell
        let trust = if ceiling < f64::INFINITY { 0.5 * reach.max(0.5) } else { f64::INFINITY };
        let stop = Stop { still: 0.0, most: STEPS, trust };
        let tail = smooth::tail(level, &mut self.rows, Smoothing { width, ceiling, prior: &[] });
        let outcome = smooth::newton(near, &mut theta, &mut f, smoothing, &tail, stop, self.context.control)?;
        let mut rows = self.rows.clone();
        let loss = band::glance(level, &theta, &mut rows);
        let exact = self.value(&theta, &rows, loss);
        let left_out = exact - outcome.evaluation.exact;
        let gained = outcome.first - outcome.evaluation.value - left_out;
        let cost = outcome.evaluation.cost;
        let gap = cost + outcome.decrement.max(0.0) + left_out.max(0.0);
        let done = outcome.steps < STEPS || outcome.decrement <= smooth::ENOUGH * cost;
        let settled = done && left_out.abs() <= LEFT_OUT * cost;
        if !whole {
            self.force(&mut rows);
        }
        if gained > 0.0 || outcome.steps == 0 || whole {
            self.moved = band::movement(&self.rows, &rows);
            self.failures = 0;
            (self.theta, self.exact, self.rows) = (theta, exact, rows);
            if ceiling == f64::INFINITY && settled {
                let inner = smooth::multipliers(near, &f, smoothing);
                self.prior = Some(if whole { inner } else { Dual::compose(self.labels(), &chosen.band, &inner) });
            }
        } else {
            self.failures += 1;
        }
        let (window, steps) = (outcome.evaluation.window, outcome.steps);
        Ok(Round { settled, gained, gap, cost, window, steps })
    }

    /// The labels of the rows that count.
    fn labels(&self) -> Vec<u32> {
        self.rows.iter().map(|row| row.label).collect()
    }

    /// Marks rows that were affine or constant and are so no longer, now and for a round that is taken again.
    fn force(&mut self, next: &mut [Row]) {
        for (at, (row, next)) in self.rows.iter_mut().zip(next).enumerate() {
            if self.level.caps[at] > 0.0 && row.left(next, self.ceiling) {
                (row.place, next.place) = (Place::Forced, Place::Forced);
            }
        }
    }
}

/// Where smoothing led to.
pub(super) struct Smoothed {
    pub theta: Vec<f64>,
    /// Width of the last window.
    pub width: f64,
    pub iterations: usize,
    /// The solution, if it was asked for and the tolerance was reached.
    pub pair: Option<Pair>,
}

/// Solves a level by smoothing alone, as far as that goes; without `certified` the estimate of the gap is enough.
pub(super) fn solve(
    level: &Level,
    guess: Guess,
    tolerance: f64,
    certified: bool,
    context: &Context,
) -> Result<Smoothed> {
    let mut descent = Descent::new(level, guess.theta, f64::INFINITY, context);
    if !guess.smooth {
        descent.moved = guess.error;
    }
    let (first, unknowns) = (descent.exact, (level.order() * (level.classes - 1)) as f64);
    let mut width = guess.error.clamp(1e-6, 1.0) * 2.0;
    let (mut iterations, mut stalls, mut best) = (0, 0, f64::INFINITY);
    for _ in 0..ROUNDS {
        let round = descent.round(width)?;
        iterations += round.steps;
        let size = descent.exact.abs().max(f64::MIN_POSITIVE);
        let gap = round.gap / size;
        context.control.report(Progress { stage: "hinge", step: iterations, objective: descent.exact, gap });
        if let Some(dual) = descent.prior.clone().filter(|_| round.settled && gap <= tolerance) {
            if !certified {
                break;
            }
            let pair =
                Pair { theta: descent.theta.clone(), dual, objective: descent.exact, gap: round.gap, iterations };
            let found = certify(level, &pair, tolerance, true);
            if found.scale == 1.0 && found.relative_gap() <= tolerance {
                let (mut theta, mut objective, mut gap) = (found.theta, found.objective, found.gap);
                if first < objective {
                    // the start was better; the multipliers certify it all the more
                    (theta, gap, objective) = (guess.theta.to_vec(), gap - (objective - first), first);
                }
                let pair = Pair { theta: theta.clone(), dual: found.dual, objective, gap, iterations };
                return Ok(Smoothed { theta, width, iterations, pair: Some(pair) });
            }
        }
        stalls = if gap < 0.7 * best { 0 } else { stalls + 1 };
        best = best.min(gap);
        if context.control.out_of_time() || stalls > STALLS {
            break;
        }
        if round.settled {
            descent.moved = descent.moved.max(0.5 * width);
            // the cost of smoothing falls with the square of the width, the window's rows with the width
            let needed = 0.8 * (tolerance * size / round.cost).sqrt();
            let enough = WINDOW * unknowns / round.window as f64;
            width *= needed.max(enough).clamp(SHRINK.0, SHRINK.1);
        }
    }
    Ok(Smoothed { theta: descent.theta, width, iterations, pair: None })
}
