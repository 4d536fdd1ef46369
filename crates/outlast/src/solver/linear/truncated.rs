//! The truncated hinge: plain optimum, smoothed descent, then majorise-minimise steps until the truncation set is its own.
//!
//! ```text
//! P(theta) = rho/2 |w|^2 + sum_i k_i min([z_i]_+, tau),      tau = 1 - s
//! ```
//!
//! Given which rows are truncated (z > tau), the majoriser counts k tau for those and k [z]_+ for the others: never below P, equal to P at
//! the current theta, and tighter than the d.c. algorithm's, with the same critical points. Its minimiser is the plain
//! problem with the truncated rows' caps set to 0.
//!
//! 1. The plain optimum; P there is what the answer never exceeds.
//! 2. Newton's method on the smoothed truncated loss, delta falling: covers in a few passes what would be dozens of steps.
//! 3. Majorise-minimise steps on the rows near either kink, all others being affine or constant; verified on all rows.
//! 4. The same loop on all rows, which certifies the result. Small problems also take the path from 1 straight to 4 and
//!    keep the better end.

use super::band::{self, ACTIVE, BAND, Context, FORCED, Guess, INACTIVE, TRUNCATED};
use super::interior::Pair;
use super::level::Level;
use super::pilot;
use super::smooth::{self, Smoothing, Stop};
use crate::control::Control;
use crate::error::Result;
use crate::solver::Status;
use crate::solver::majorize::{self, Limits, Majorizer, Report, Step};

/// Up to this many rows both paths are taken.
pub(super) const SMALL: usize = 5000;
/// Relative gap of every majorise-minimise step: it must go down even when close to the end.
const TIGHT: f64 = 1e-7;
/// Gap of the plain optimum that starts a large problem.
const LOOSE: f64 = 1e-3;
/// Relative gap of the solves that only confirm a truncation set.
const SETTLED: f64 = 1e-9;
/// Rows of the sample on which the descent begins, in units of [`band::few`].
const SAMPLE: usize = 10;
/// Most rounds of smoothed descent for one width.
const DESCENTS: usize = 12;
/// Rounds of bands around both kinks.
const ROUNDS: usize = 6;

/// The end of the path.
pub(super) struct End {
    /// Solution of the convex problem that belongs to `truncated`.
    pub pair: Pair,
    pub truncated: Vec<bool>,
    pub trace: Vec<f64>,
    pub status: Status,
}

/// What the steps are told.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub ceiling: f64,
    pub tolerance: f64,
    pub max_steps: usize,
    /// Whether the path from the plain optimum is taken as well.
    pub both: bool,
}

impl Plan {
    /// Takes the steps of a path off those that are left.
    fn spend(&mut self, end: &End) {
        self.max_steps = self.max_steps.saturating_sub(end.trace.len() - 1);
    }
}

/// Relative gap at which the plain problem is to be solved for a small truncated problem or a large one.
pub(super) fn plain_tolerance(small: bool, tolerance: f64) -> f64 {
    if small { tolerance.min(TIGHT) } else { tolerance.max(LOOSE) }
}

/// Minimises the truncated objective from the plain optimum.
pub(super) fn solve(level: &Level, plain: &Pair, others: &[Vec<f64>], plan: Plan, context: &Context) -> Result<End> {
    let start = Trimmed::new(level, plan.ceiling, &plain.theta, context);
    let bound = start.value();
    let widest = 0.5f64.min(plan.ceiling);
    let mut candidate = plain.theta.clone();
    let mut width = widest;
    if let Some(copied) = pilot::sample(level, SAMPLE * band::few(level), 0) {
        // most of the way on a sample, if that leads down
        let small = copied.level(level, level.linear.clone(), level.constant);
        let theta = descend(&small, &candidate, widest, plan, context)?;
        if Trimmed::new(level, plan.ceiling, &theta, context).value() < bound {
            candidate = theta;
            width = 3.0 * final_width(&small);
        }
    }
    candidate = descend(level, &candidate, width.min(widest), plan, context)?;
    let smoothed = Trimmed::new(level, plan.ceiling, &candidate, context);
    if !(smoothed.value() <= bound) {
        candidate = plain.theta.clone();
    }
    // all loops together take no more steps than asked for
    let mut plan = plan;
    let (candidate, used) = near_kinks(level, candidate, plan, context)?;
    plan.max_steps -= used;
    let mut end = steps(Trimmed::new(level, plan.ceiling, &candidate, context), plain, plan, context.control)?;
    plan.spend(&end);
    if plan.both || !(end.trace[end.trace.len() - 1] <= bound) {
        let direct = steps(start, plain, plan, context.control)?;
        plan.spend(&direct);
        if direct.trace[direct.trace.len() - 1] < end.trace[end.trace.len() - 1] {
            end = direct;
        }
    }
    for theta in others {
        let other = steps(Trimmed::new(level, plan.ceiling, theta, context), plain, plan, context.control)?;
        plan.spend(&other);
        if other.trace[other.trace.len() - 1] < end.trace[end.trace.len() - 1] {
            end = other;
        }
    }
    if bound > end.trace[0] {
        end.trace.insert(0, bound);
    }
    Ok(end)
}

/// Minimises the truncated objective from a point that is near an end already.
pub(super) fn follow(level: &Level, theta: &[f64], plain: &Pair, plan: Plan, context: &Context) -> Result<End> {
    steps(Trimmed::new(level, plan.ceiling, theta, context), plain, plan, context.control)
}

/// The truncated objective.
pub(super) fn value(level: &Level, theta: &[f64], ceiling: f64, context: &Context) -> f64 {
    Trimmed::new(level, ceiling, theta, context).value()
}

/// Newton's method on the smoothed truncated loss, for falling widths. Rows with z < 0 or z > tau have no slope, so that most rows matter
/// only if z moves far: a few steps are taken over the rows with -reach < z < tau + reach, then all rows are looked at again.
pub(super) fn descend(level: &Level, from: &[f64], widest: f64, plan: Plan, context: &Context) -> Result<Vec<f64>> {
    let mut current = Trimmed::new(level, plan.ceiling, from, context);
    let last = final_width(level);
    let mut width = widest.max(last);
    let mut moved = f64::INFINITY;
    let mut whole = false;
    loop {
        for _ in 0..DESCENTS {
            // far enough for several steps like the last, at most half of what z itself measures
            let reach = (4.0 * moved).min(1.0f64.max(0.5 * spread(&current.z))).max(0.5);
            let near: Vec<u32> = (0..current.z.len() as u32)
                .filter(|&k| current.z[k as usize] > -reach && current.z[k as usize] < plan.ceiling + reach)
                .collect();
            let mut theta = current.theta.clone();
            let mut z = Vec::new();
            let smoothing = Smoothing { width, ceiling: plan.ceiling };
            let stop = Stop { still: 0.05 * width, most: 5, trust: 0.5 * reach };
            let outcome = if !whole && 2 * near.len() < level.rows() {
                let copied = level.copy(&near);
                let part = copied.level(level, level.linear.clone(), level.constant);
                smooth::newton(&part, &context.metric, &mut theta, &mut z, smoothing, stop, context.control)?
            } else {
                smooth::newton(level, &context.metric, &mut theta, &mut z, smoothing, stop, context.control)?
            };
            let next = Trimmed::new(level, plan.ceiling, &theta, context);
            moved = outcome.moved;
            let settled = moved <= 0.1 * width || outcome.steps < stop.most;
            let gained = current.value() - next.value();
            if gained > 0.0 {
                current = next;
                whole = false;
            } else if !std::mem::replace(&mut whole, true) {
                // rows left out came back: once more with all of them
                continue;
            }
            if settled || !(gained > 1e-6 * current.value()) {
                break;
            }
            if context.control.out_of_time() {
                return Ok(current.theta);
            }
        }
        if width <= last {
            return Ok(current.theta);
        }
        width = (0.3 * width).max(last);
    }
}

/// Root mean square of z.
fn spread(z: &[f64]) -> f64 {
    (z.iter().map(|z| z * z).sum::<f64>() / z.len().max(1) as f64).sqrt()
}

/// Smoothing at which the sampling error of z, sqrt(p/n), is reached.
fn final_width(level: &Level) -> f64 {
    (3.0 * (level.order() as f64 / level.rows() as f64).sqrt()).clamp(0.01, 0.3)
}

/// Majorise-minimise steps on the rows near the kinks, accepted when the objective over all rows falls. Returns where they led to and
/// their number.
fn near_kinks(level: &Level, mut theta: Vec<f64>, plan: Plan, context: &Context) -> Result<(Vec<f64>, usize)> {
    if level.rows() <= 2 * band::few(level) {
        return Ok((theta, 0));
    }
    // the other half is for the loop over all rows
    let (most, mut used) = (plan.max_steps / 2, 0);
    let mut z = vec![0.0; level.rows()];
    let smoothing = Smoothing { width: final_width(level), ceiling: plan.ceiling };
    let probes = smooth::evaluate(level, &theta, smoothing, &mut z).probes(level);
    let mut state = vec![INACTIVE; level.rows()];
    let mut half_width = 1.5 * final_width(level);
    let mut current = Trimmed::new(level, plan.ceiling, &theta, context);
    for _ in 0..ROUNDS {
        context.control.check()?;
        let enough = (2 * band::few(level)).min(level.rows() / 4);
        half_width = half_width.max(band::nearest(level, &current.z, plan.ceiling, enough));
        let chosen = band::select(level, &current.z, half_width, plan.ceiling, &probes, &mut state);
        if used == most || 2 * chosen.band.len() > level.rows() || context.control.out_of_time() {
            break;
        }
        let copied = level.copy(&chosen.band);
        let inner = copied.level(level, chosen.linear, chosen.constant);
        let mut method = Trimmed::new(&inner, plan.ceiling, &theta, context);
        let limits = Limits { tolerance: SETTLED, loose: SETTLED, decrease: 0.0, max_steps: (most - used).min(60) };
        let begin = Step { gap: f64::NAN, iterations: 0, status: Status::Converged };
        let report = majorize::run(&mut method, begin, &limits, "truncated", context.control)?;
        used += report.trace.len() - 1;
        let next = Trimmed::new(level, plan.ceiling, &method.theta, context);
        let mut changed = 0;
        for k in 0..state.len() {
            let counts = level.caps[k] > 0.0 && !matches!(state[k], BAND | FORCED);
            if counts && side(next.z[k], plan.ceiling) != state[k] {
                changed += 1;
                state[k] = FORCED;
            }
        }
        if next.value() < current.value() {
            theta = method.theta.clone();
            current = next;
        } else if changed > chosen.band.len() {
            half_width *= 2.0;
        }
        if changed == 0 {
            break;
        }
    }
    Ok((theta, used))
}

fn side(z: f64, ceiling: f64) -> u8 {
    if z > ceiling {
        TRUNCATED
    } else if z > 0.0 {
        ACTIVE
    } else {
        INACTIVE
    }
}

/// The majorise-minimise loop on all rows.
fn steps(mut method: Trimmed, plain: &Pair, plan: Plan, control: &Control) -> Result<End> {
    let tight = plan.tolerance.min(TIGHT);
    let limits = Limits { tolerance: tight, loose: tight, decrease: 0.0, max_steps: plan.max_steps };
    let begin = Step {
        gap: plain.gap / plain.objective.abs().max(f64::MIN_POSITIVE),
        iterations: 0,
        status: Status::Converged,
    };
    let Report { trace, iterations, status, .. } = majorize::run(&mut method, begin, &limits, "truncated", control)?;
    let status = settle(&mut method, status, control)?;
    let own: Vec<bool> = method.z.iter().map(|z| *z > plan.ceiling).collect();
    // multipliers of rows that changed sides after the last solve; the certificate will tell what that costs
    let mut dual = method.dual;
    for k in 0..own.len() {
        if own[k] {
            dual[k] = 0.0;
        } else if method.truncated[k] {
            dual[k] = method.level.caps[k];
        }
    }
    let pair = Pair { theta: method.theta, dual, objective: f64::NAN, gap: f64::NAN, iterations };
    Ok(End { pair, truncated: own, trace, status })
}

/// The loop also ends when a step no longer lowers P by more than rounding, with multipliers of an earlier majoriser. Solves with the
/// iterate's own truncation set until that is the set of the answer too, as long as P does not rise by more than their gap.
fn settle(method: &mut Trimmed, status: Status, control: &Control) -> Result<Status> {
    if matches!(status, Status::TimeLimit | Status::IterationLimit) {
        return Ok(status);
    }
    let before = method.value();
    for _ in 0..ROUNDS {
        method.save();
        if method.majorize() == 0 && method.solved {
            break;
        }
        let step = method.minimize(SETTLED, control)?;
        // P of the new iterate exceeds that of the old by no more than the gap
        if !(method.value() <= before * (1.0 + 2.0 * step.gap.max(SETTLED))) {
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
    ceiling: f64,
    theta: Vec<f64>,
    z: Vec<f64>,
    dual: Vec<f64>,
    truncated: Vec<bool>,
    /// caps with truncated rows at 0
    kept: Vec<f64>,
    /// expected movement of z in the next step
    error: f64,
    /// whether `dual` solves the current majoriser
    solved: bool,
    saved: Option<Saved>,
}

struct Saved {
    theta: Vec<f64>,
    z: Vec<f64>,
    dual: Vec<f64>,
    truncated: Vec<bool>,
    kept: Vec<f64>,
    solved: bool,
}

impl<'a> Trimmed<'a> {
    fn new(level: &'a Level<'a>, ceiling: f64, theta: &[f64], context: &'a Context<'a>) -> Self {
        let mut z = vec![0.0; level.rows()];
        level.slacks(theta, &mut z);
        Trimmed {
            level,
            context,
            ceiling,
            theta: theta.to_vec(),
            dual: vec![0.0; z.len()],
            truncated: vec![false; z.len()],
            kept: level.caps.to_vec(),
            z,
            error: 0.05,
            solved: false,
            saved: None,
        }
    }

    fn value(&self) -> f64 {
        let loss: f64 = self.level.caps.iter().zip(&self.z).map(|(cap, z)| cap * z.clamp(0.0, self.ceiling)).sum();
        self.level.affine_part(&self.theta) + loss
    }
}

impl Majorizer for Trimmed<'_> {
    fn objective(&mut self) -> f64 {
        self.value()
    }

    fn majorize(&mut self) -> usize {
        let mut changed = 0;
        for k in 0..self.z.len() {
            let beyond = self.z[k] > self.ceiling;
            if beyond != self.truncated[k] {
                changed += 1;
                self.truncated[k] = beyond;
                self.kept[k] = if beyond { 0.0 } else { self.level.caps[k] };
            }
        }
        self.solved &= changed == 0;
        changed
    }

    fn minimize(&mut self, tolerance: f64, control: &Control) -> Result<Step> {
        let level = Level { caps: &self.kept, ..self.level.clone() };
        let guess = Guess { theta: &self.theta, error: self.error, smooth: false };
        let pair = band::solve(&level, guess, tolerance, self.context)?;
        self.theta = pair.theta;
        let old = std::mem::take(&mut self.z);
        self.z = vec![0.0; old.len()];
        level.slacks(&self.theta, &mut self.z);
        let squares: f64 = old.iter().zip(&self.z).map(|(a, b)| (a - b) * (a - b)).sum();
        self.error = (2.0 * (squares / old.len().max(1) as f64).sqrt()).clamp(1e-4, 1.0);
        self.dual = pair.dual;
        self.solved = true;
        let gap = pair.gap / pair.objective.abs().max(f64::MIN_POSITIVE);
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
            z: self.z.clone(),
            dual: self.dual.clone(),
            truncated: self.truncated.clone(),
            kept: self.kept.clone(),
            solved: self.solved,
        });
    }

    fn restore(&mut self) {
        if let Some(Saved { theta, z, dual, truncated, kept, solved }) = self.saved.take() {
            (self.theta, self.z, self.dual) = (theta, z, dual);
            (self.truncated, self.kept, self.solved) = (truncated, kept, solved);
        }
    }
}
