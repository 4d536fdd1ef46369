//! The one majorise-minimise loop.
//!
//! Every non-convex method here bounds its objective P from above by a convex M(. ; f) that touches it at f, and moves to
//! the minimiser of M. Then P(f+) <= M(f+; f) <= M(f; f) = P(f): the objective never rises. The truncated losses bound
//! the flat part (the d.c. algorithm); other methods bring other bounds. A method supplies a [`Majorizer`]; the descent
//! check, the trace, the stopping rule, progress, interrupt and limits are here and nowhere else.
//!
//! Stopping rule: the majoriser did not change (same truncation set) after a step solved to the full tolerance, which
//! makes the iterate a critical point; or the relative decrease of such a step fell below [`Limits::decrease`], or, by the
//! majoriser's lower bound, can't reach it.
//! Steps before that may be solved loosely ([`Limits::loose`]): they only have to go down.

use super::Status;
use crate::control::{Control, Progress};
use crate::error::Result;

/// What a convex solve reports back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Relative duality gap reached.
    pub gap: f64,
    /// Iterations taken.
    pub iterations: usize,
    /// How it ended.
    pub status: Status,
}

/// A non-convex objective with a convex majoriser.
pub trait Majorizer {
    /// P at the current iterate.
    fn objective(&mut self) -> f64;

    /// Moves the majoriser to the current iterate. Returns how many of its terms changed.
    fn majorize(&mut self) -> usize;

    /// Minimises the majoriser to a relative gap, starting from the current iterate.
    fn minimize(&mut self, tolerance: f64, control: &Control) -> Result<Step>;

    /// A lower bound on the minimum of the current majoriser, as far as it is known.
    fn floor(&self) -> f64 {
        f64::NEG_INFINITY
    }

    /// Remembers the current iterate and majoriser.
    fn save(&mut self);

    /// Goes back to what was last saved.
    fn restore(&mut self);
}

/// When the loop ends and how exactly it solves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Relative gap of the convex problems that count.
    pub tolerance: f64,
    /// Relative gap while the majoriser still moves, >= `tolerance`.
    pub loose: f64,
    /// Relative decrease below which the loop ends.
    pub decrease: f64,
    /// Most steps.
    pub max_steps: usize,
}

/// What the loop did.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// P at the start and after each step. Never rises.
    pub trace: Vec<f64>,
    /// Relative gap of the last convex problem.
    pub gap: f64,
    /// Iterations of all convex solves.
    pub iterations: usize,
    /// How it ended.
    pub status: Status,
}

/// Runs the loop from the majorizer's current iterate, which `start` describes (the solve that led to it). Its gap is infinite where no
/// convex problem led there: then there is none to go back to.
pub fn run(
    method: &mut dyn Majorizer,
    start: Step,
    limits: &Limits,
    stage: &'static str,
    control: &Control,
) -> Result<Report> {
    let mut trace = vec![method.objective()];
    let mut report = start;
    let mut iterations = start.iterations;
    // whether the current iterate minimises its majoriser to the full tolerance
    let mut exact = false;
    let mut status = Status::IterationLimit;
    for step in 0..limits.max_steps {
        control.check()?;
        let current = trace[trace.len() - 1];
        control.report(Progress { stage, step, objective: current, gap: report.gap });
        if control.out_of_time() {
            status = Status::TimeLimit;
            break;
        }
        method.save();
        let (before, before_exact) = (report, exact);
        let changed = method.majorize();
        if changed == 0 && exact {
            status = report.status;
            break;
        }
        let tolerance = if changed == 0 { limits.tolerance } else { limits.loose };
        report = method.minimize(tolerance, control)?;
        iterations += report.iterations;
        let mut next = method.objective();
        exact = tolerance <= limits.tolerance;
        // a step solved too loosely to go down is solved again in full
        let enough = limits.decrease * current.abs();
        if !exact && !(current - next > enough) {
            if before_exact && current - method.floor() <= enough {
                // no solution of this step gains more
                method.restore();
                report = before;
                status = report.status;
                break;
            }
            report = method.minimize(limits.tolerance, control)?;
            iterations += report.iterations;
            next = method.objective();
            exact = true;
        }
        if !(next <= current) {
            // what the full solve could not lower is as low as the tolerance can tell
            method.restore();
            report = before;
            if report.gap > limits.tolerance && report.gap < f64::INFINITY {
                report = polish(method, before, &mut trace, limits, control)?;
                iterations += report.iterations;
            }
            status = report.status;
            break;
        }
        trace.push(next);
        if exact && current - next <= enough {
            status = report.status;
            break;
        }
        if report.status == Status::TimeLimit {
            status = Status::TimeLimit;
            break;
        }
    }
    Ok(Report { trace, gap: report.gap, iterations, status })
}

/// Solves the current majoriser, so far solved loosely, to the full tolerance, and keeps the result if it is no higher.
fn polish(
    method: &mut dyn Majorizer,
    loose: Step,
    trace: &mut Vec<f64>,
    limits: &Limits,
    control: &Control,
) -> Result<Step> {
    method.save();
    let step = method.minimize(limits.tolerance, control)?;
    let next = method.objective();
    if next <= trace[trace.len() - 1] {
        trace.push(next);
        return Ok(step);
    }
    method.restore();
    Ok(Step { status: Status::Inaccurate, iterations: step.iterations, ..loose })
}
