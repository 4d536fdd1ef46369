//! The one majorise-minimise loop.
//!
//! Every non-convex method here bounds its objective P from above by a convex M(. ; f) that touches it at f, and moves to
//! the minimiser of M. Then P(f+) <= M(f+; f) <= M(f; f) = P(f): the objective never rises. The truncated losses bound
//! the flat part (the d.c. algorithm); other methods bring other bounds. A method supplies a [`Majorizer`]; the descent
//! check, the trace, the stopping rule, progress, interrupt and limits are here and nowhere else.
//!
//! Stopping rule: the majoriser did not change (same truncation set) after a step solved to the full tolerance, which
//! makes the iterate a critical point; or the relative decrease of such a step fell below [`Limits::decrease`].
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

/// Runs the loop from the majorizer's current iterate, which `start` describes (the solve that led to it).
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
        let before = report;
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
        // a step solved too loosely to go down is solved again in full, then beyond that: exact steps never go up
        let enough = limits.decrease * current.abs();
        let mut again = limits.tolerance;
        while report.status != Status::TimeLimit
            && (!exact && !(current - next > enough) || exact && !(next <= current) && again >= 1e-4 * limits.tolerance)
        {
            report = method.minimize(again, control)?;
            iterations += report.iterations;
            next = method.objective();
            exact = true;
            again *= 0.01;
        }
        if !(next <= current) {
            // what even that could not lower is as low as rounding can tell
            method.restore();
            report = before;
            status = if report.gap <= limits.tolerance { report.status } else { Status::Inaccurate };
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
