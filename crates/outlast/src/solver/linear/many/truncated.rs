//! The truncated loss with k classes: min([z]_+, tau), tau = 1 - s, by majorise-minimise.
//!
//! A term with z > tau at the current theta is bounded by its constant and drops out; what is left is the convex problem of
//! [`band`]. One step solves it on all rows, and a step moves theta by little; so, as with two classes:
//!
//! 1. Start at the plain optimum; P there is what the answer never exceeds.
//! 2. Newton's method on the smoothed truncated loss, delta falling: covers in a few passes what would be dozens of steps.
//! 3. Majorise-minimise steps, which certify the result. Small problems also take the path from 1 straight to 3 and
//!    keep the better end.
//!
//! Terms of the cost form are differences of convex functions even untruncated; their bound comes from the problem itself.

use super::band::{self, Context, Guess, Row};
use super::descent::Descent;
use super::dual::Dual;
use super::interior::Pair;
use super::level::Level;
use crate::control::Control;
use crate::error::Result;
use crate::problem::Majorant;
use crate::solver::Status;
use crate::solver::majorize::{self, Limits, Majorizer, Report, Step};

/// Up to this many rows both paths are taken.
const SMALL: usize = 5000;
/// Relative gap of every majorise-minimise step of a small problem: it must go down even when close to the end.
const TIGHT: f64 = 1e-7;
/// The same for a large one, as a share of the tolerance asked for.
const SHARE: f64 = 0.3;
/// Gap of the plain optimum that starts a large problem.
const LOOSE: f64 = 1e-3;
/// Relative gap of the solves that only confirm a truncation set.
const SETTLED: f64 = 1e-9;
/// Rows of the samples on which the descent begins, in units of [`band::few`].
const SAMPLES: [usize; 2] = [2, 10];
/// Width at which the descent over all rows ends.
const NARROW: f64 = 0.02;
/// Most rounds of smoothed descent for one width.
const DESCENTS: usize = 12;
/// Most solves that confirm a truncation set.
const ROUNDS: usize = 6;

/// Bounds of the cost form: kept terms, and the linear part that stands for the concave parts of the terms.
pub(super) trait Bases {
    /// The bound that touches at theta.
    fn bound(&self, theta: &[f64], dual: Option<&Dual>) -> Majorant;
    /// In how many terms two bounds differ.
    fn changes(&self, from: &Majorant, to: &Majorant) -> usize;
    /// Which terms a bound keeps.
    fn kept(&self, bound: &Majorant) -> Vec<bool>;
    /// G of a bound.
    fn linear(&self, bound: &Majorant) -> Vec<f64>;
}

/// The end of the path.
pub(super) struct End {
    /// Solution of the convex problem of the terms kept.
    pub pair: Pair,
    pub kept: Vec<bool>,
    /// The terms that the last convex problem kept, if moving on from it gains less than the tolerance can tell.
    pub solved: Option<Vec<bool>>,
    /// The bound, in the cost form.
    pub bound: Option<Majorant>,
    pub trace: Vec<f64>,
    pub status: Status,
}

/// What the steps are told.
#[derive(Clone, Copy)]
pub(super) struct Plan<'a> {
    pub ceiling: f64,
    pub tolerance: f64,
    pub max_steps: usize,
    pub bases: Option<&'a dyn Bases>,
}

/// Whether both paths are taken for a problem of that many rows.
pub(super) fn is_small(rows: usize) -> bool {
    rows <= SMALL
}

/// Relative gap at which the plain problem is to be solved for a truncated problem of that many rows.
pub(super) fn plain_tolerance(rows: usize, tolerance: f64) -> f64 {
    if rows <= SMALL { tolerance.min(TIGHT) } else { tolerance.max(LOOSE) }
}

fn step_tolerance(level: &Level, plan: Plan) -> f64 {
    if level.rows() <= SMALL { plan.tolerance.min(TIGHT) } else { SHARE * plan.tolerance }
}

/// Minimises the truncated objective from the plain optimum.
pub(super) fn solve(level: &Level, plain: &Pair, plan: Plan, context: &Context) -> Result<End> {
    let start = Trimmed::new(level, plan, &plain.theta, context);
    let bound = start.value();
    let small = level.rows() <= SMALL;
    if plan.ceiling == f64::INFINITY {
        return steps(start, plain, plan, context.control);
    }
    let from = smoothed(level, plain, plan, context)?;
    let mut method = Trimmed::new(level, plan, &from.theta, context);
    method.error = 0.5 * from.width;
    let mut end = steps(method, plain, plan, context.control)?;
    let plan = Plan { max_steps: plan.max_steps - (end.trace.len() - 1).min(plan.max_steps), ..plan };
    if small || !(end.trace[end.trace.len() - 1] <= bound) {
        let direct = steps(start, plain, plan, context.control)?;
        if direct.trace[direct.trace.len() - 1] < end.trace[end.trace.len() - 1] {
            end = direct;
        }
    }
    if bound > end.trace[0] {
        end.trace.insert(0, bound);
    }
    Ok(end)
}

/// Minimises the truncated objective from a point that is near an end already, after a descent on the loss smoothed over `width`.
pub(super) fn follow(level: &Level, from: &Pair, width: f64, plan: Plan, context: &Context) -> Result<End> {
    let mut start = Trimmed::new(level, plan, &from.theta, context);
    if plan.ceiling.is_finite() && level.rows() > SMALL / 4 {
        let wide = Start { theta: from.theta.clone(), width };
        let end = descend(level, &wide, NARROW.min(final_width(level)), plan, context)?;
        let lower = Trimmed::new(level, plan, &end.theta, context);
        start = if lower.value() < start.value() { lower } else { start };
    }
    steps(start, from, plan, context.control)
}

/// The truncated objective.
pub(super) fn value(level: &Level, theta: &[f64], plan: Plan, context: &Context) -> f64 {
    Trimmed::new(level, plan, theta, context).value()
}

/// Most of the way: descent on the smoothed loss, first over samples. Never above the start.
fn smoothed(level: &Level, plain: &Pair, plan: Plan, context: &Context) -> Result<Start> {
    let bound = Trimmed::new(level, plan, &plain.theta, context).value();
    let widest = 0.5f64.min(plan.ceiling);
    let mut from = Start { theta: plain.theta.clone(), width: widest };
    for size in SAMPLES {
        if let Some(copied) = band::sample(level, size * band::few(level), context) {
            // most of the way on a sample, if that leads down
            let small = copied.level(level, level.linear.clone(), level.constant);
            let end = descend(&small, &from, final_width(&small), plan, context)?;
            let before = Trimmed::new(level, plan, &from.theta, context).value();
            if Trimmed::new(level, plan, &end.theta, context).value() < before {
                from = end;
            }
        }
    }
    let end = descend(level, &from, NARROW.min(final_width(level)), plan, context)?;
    if Trimmed::new(level, plan, &end.theta, context).value() <= bound {
        return Ok(end);
    }
    Ok(Start { theta: plain.theta.clone(), width: widest })
}

/// A point and the width of the window that led to it.
struct Start {
    theta: Vec<f64>,
    width: f64,
}

/// Newton's method on the smoothed truncated loss, for widths that fall to `last` or until the smoothing costs less than the tolerance.
fn descend(level: &Level, from: &Start, last: f64, plan: Plan, context: &Context) -> Result<Start> {
    let mut descent = Descent::new(level, &from.theta, plan.ceiling, context);
    let mut width = from.width.max(last);
    loop {
        let mut cost = 0.0;
        for _ in 0..DESCENTS {
            context.control.check()?;
            let round = descent.round(width)?;
            cost = round.cost;
            if round.settled || context.control.out_of_time() || !(round.gained > 1e-5 * descent.exact.abs()) {
                break;
            }
        }
        let enough = cost <= plan.tolerance * SHARE * descent.exact.abs();
        if width <= last || enough || context.control.out_of_time() {
            return Ok(Start { theta: descent.theta, width });
        }
        width = (0.4 * width).max(last);
    }
}

/// Smoothing at which the sampling error of the scores is reached.
fn final_width(level: &Level) -> f64 {
    let order = level.order() * (level.classes - 1);
    (3.0 * (order as f64 / level.rows() as f64).sqrt()).clamp(0.01, 0.3)
}

/// The majorise-minimise loop on all rows.
fn steps(mut method: Trimmed, plain: &Pair, plan: Plan, control: &Control) -> Result<End> {
    let tight = step_tolerance(method.level, plan);
    // on many rows, steps that gain less than the tolerance can tell are not taken
    let decrease = if method.level.rows() > SMALL { SHARE * plan.tolerance } else { 0.0 };
    let limits = Limits { tolerance: tight, loose: tight, decrease, max_steps: plan.max_steps };
    let begin = Step { gap: plain.relative_gap(), iterations: 0, status: Status::Converged };
    let Report { trace, iterations, status, .. } = majorize::run(&mut method, begin, &limits, "truncated", control)?;
    let status = settle(&mut method, status, control)?;
    let flags = |kept: &[f64]| kept.iter().map(|cap| *cap > 0.0).collect::<Vec<bool>>();
    let last = trace.len().checked_sub(2).map_or(f64::INFINITY, |before| trace[before] - trace[before + 1]);
    let still = method.solved && status == Status::Converged && last <= plan.tolerance * method.value().abs();
    let solved = (still && plan.bases.is_none()).then(|| flags(&method.kept));
    method.majorize();
    let pair = Pair { theta: method.theta, dual: method.dual, objective: f64::NAN, gap: f64::NAN, iterations };
    Ok(End { pair, kept: flags(&method.kept), solved, bound: method.bound, trace, status })
}

/// The loop also ends when a step no longer lowers P by more than rounding, with multipliers of an earlier majoriser. Solves with the
/// iterate's own bound until that is the bound of the answer too, as long as P does not rise by more than their gap.
fn settle(method: &mut Trimmed, status: Status, control: &Control) -> Result<Status> {
    if matches!(status, Status::TimeLimit | Status::IterationLimit) {
        return Ok(status);
    }
    let before = method.value();
    let settled = if method.level.rows() <= SMALL { SETTLED } else { step_tolerance(method.level, method.plan) };
    for _ in 0..ROUNDS {
        method.save();
        if method.majorize() == 0 && method.solved {
            break;
        }
        let step = method.minimize(settled, control)?;
        // P of the new iterate exceeds that of the old by no more than the gap
        if !(method.value() <= before * (1.0 + 2.0 * step.gap.max(settled))) {
            method.restore();
            break;
        }
        if step.status == Status::TimeLimit {
            return Ok(step.status);
        }
    }
    Ok(status)
}

/// The truncated objective of a level and its majoriser.
struct Trimmed<'a> {
    level: &'a Level<'a>,
    context: &'a Context<'a>,
    plan: Plan<'a>,
    theta: Vec<f64>,
    rows: Vec<Row>,
    dual: Dual,
    /// caps with truncated rows at 0
    kept: Vec<f64>,
    bound: Option<Majorant>,
    /// expected movement of the scores in the next step
    error: f64,
    /// whether `dual` solves the current majoriser
    solved: bool,
    saved: Option<Saved>,
}

struct Saved {
    theta: Vec<f64>,
    rows: Vec<Row>,
    dual: Dual,
    kept: Vec<f64>,
    bound: Option<Majorant>,
    solved: bool,
}

impl<'a> Trimmed<'a> {
    fn new(level: &'a Level<'a>, plan: Plan<'a>, theta: &[f64], context: &'a Context<'a>) -> Self {
        let mut rows = vec![Row::unknown(); level.rows()];
        band::glance(level, theta, &mut rows);
        Trimmed {
            level,
            context,
            plan,
            theta: theta.to_vec(),
            rows,
            dual: Dual::from_labels(level.codes.to_vec(), level.classes),
            kept: level.caps.to_vec(),
            bound: None,
            error: 0.05,
            solved: false,
            saved: None,
        }
    }

    fn value(&self) -> f64 {
        let ceiling = self.plan.ceiling;
        let rows = self.level.caps.iter().zip(&self.rows).filter(|(cap, _)| **cap > 0.0);
        let loss: f64 = rows.map(|(cap, row)| cap * row.slack.clamp(0.0, ceiling)).sum();
        self.level.affine_part(&self.theta) + loss
    }

    /// Takes a term in or out. Multipliers of a term that returns are those of its label at the current point.
    fn keep(&mut self, kept: impl Fn(usize) -> bool) -> usize {
        let mut changed = 0;
        for at in 0..self.rows.len() {
            let cap = if kept(at) { self.level.caps[at] } else { 0.0 };
            if cap != self.kept[at] {
                changed += 1;
                self.kept[at] = cap;
            }
        }
        changed
    }
}

impl Majorizer for Trimmed<'_> {
    fn objective(&mut self) -> f64 {
        self.value()
    }

    fn majorize(&mut self) -> usize {
        let changed = if let Some(bases) = self.plan.bases {
            let bound = bases.bound(&self.theta, self.solved.then_some(&self.dual));
            let changed = self.bound.as_ref().map_or(usize::MAX, |before| bases.changes(before, &bound));
            let kept = bases.kept(&bound);
            self.keep(|at| kept[at]);
            self.bound = Some(bound);
            changed
        } else {
            let ceiling = self.plan.ceiling;
            let slacks: Vec<bool> = self.rows.iter().map(|row| !(row.slack > ceiling)).collect();
            self.keep(|at| slacks[at])
        };
        self.solved &= changed == 0;
        changed
    }

    fn minimize(&mut self, tolerance: f64, control: &Control) -> Result<Step> {
        let mut level = Level { caps: &self.kept, ..self.level.clone() };
        if let (Some(bases), Some(bound)) = (self.plan.bases, &self.bound) {
            level.linear = bases.linear(bound);
        }
        let guess = Guess { theta: &self.theta, error: self.error, smooth: false };
        let pair = band::exactly(&level, guess, tolerance, self.context)?;
        self.theta.copy_from_slice(&pair.theta);
        let before: Vec<f64> = self.rows.iter().map(|row| row.slack).collect();
        band::glance(self.level, &self.theta, &mut self.rows);
        let squares: f64 = before.iter().zip(&self.rows).map(|(a, row)| (a - row.slack) * (a - row.slack)).sum();
        self.error = (2.0 * (squares / before.len().max(1) as f64).sqrt()).clamp(1e-4, 1.0);
        let gap = pair.relative_gap();
        self.dual = pair.dual;
        self.solved = true;
        let status = if control.out_of_time() {
            Status::TimeLimit
        } else if gap <= tolerance {
            Status::Converged
        } else {
            Status::Inaccurate
        };
        Ok(Step { gap, iterations: pair.iterations, status })
    }

    fn save(&mut self) {
        self.saved = Some(Saved {
            theta: self.theta.clone(),
            rows: self.rows.clone(),
            dual: self.dual.clone(),
            kept: self.kept.clone(),
            bound: self.bound.clone(),
            solved: self.solved,
        });
    }

    fn restore(&mut self) {
        if let Some(saved) = self.saved.take() {
            (self.theta, self.rows, self.dual) = (saved.theta, saved.rows, saved.dual);
            (self.kept, self.bound, self.solved) = (saved.kept, saved.bound, saved.solved);
        }
    }
}
