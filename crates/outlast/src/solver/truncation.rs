//! Truncated losses as majorise-minimise: the [`Majorizer`] shared by solvers that can minimise the convex problem of a
//! given truncation set.
//!
//! At the current f a row is *truncated* when y f < s. Its flat cost c l(s) is bounded by c l(s) itself for the smooth
//! losses (the row is dropped), and for the hinge by c l(s) + c [y f - 1]_+ (the d.c. algorithm). Kept rows keep their
//! convex loss. The loop starts at the optimum of the untruncated loss, so it never ends above that point's objective.

use super::majorize::{self, Limits, Majorizer, Step};
use super::{Options, Solution, Status};
use crate::control::Control;
use crate::error::Result;
use crate::problem::TwoClass;

/// A convex solver with a current point.
pub(super) trait Convex {
    /// A remembered point.
    type Point: Clone;

    /// Minimises the convex problem of a truncation set, starting from the current point.
    fn minimize(&mut self, truncated: &[bool], tolerance: f64, control: &Control) -> Result<Step>;

    /// f(x_i) + b at the current point.
    fn decision(&self) -> Vec<f64>;

    /// 1/2 |f|^2 at the current point.
    fn half_norm(&self) -> f64;

    /// The current point.
    fn point(&self) -> Self::Point;

    /// Goes back to a remembered point. Dual variables that certify it better may be kept.
    fn go_to(&mut self, point: &Self::Point);

    /// beta, w and b in the caller's units.
    fn answer(&self) -> Answer;
}

/// A point in the caller's units.
pub(super) struct Answer {
    pub(super) expansion: Vec<f64>,
    pub(super) weights: Option<Vec<f64>>,
    pub(super) intercept: f64,
}

struct Truncating<'a, 'b, S: Convex> {
    problem: &'a TwoClass<'a>,
    solver: &'b mut S,
    truncated: Vec<bool>,
    saved: Option<(S::Point, Vec<bool>)>,
}

impl<S: Convex> Truncating<'_, '_, S> {
    /// Rows on the flat part of the loss at the current point. Rows without weight never count.
    fn flat_rows(&self) -> Vec<bool> {
        flat_rows(self.problem, &self.solver.decision())
    }
}

fn flat_rows(problem: &TwoClass, decision: &[f64]) -> Vec<bool> {
    let rows = decision.iter().zip(problem.signs);
    rows.map(|(decision, sign)| problem.loss.truncates(sign * decision)).collect()
}

impl<S: Convex> Majorizer for Truncating<'_, '_, S> {
    fn objective(&mut self) -> f64 {
        self.solver.half_norm() + self.problem.total_loss(&self.solver.decision(), 0.0)
    }

    fn majorize(&mut self) -> usize {
        let flat = self.flat_rows();
        let caps = self.problem.caps;
        let changed = (0..flat.len()).filter(|&row| flat[row] != self.truncated[row] && caps[row] > 0.0).count();
        self.truncated = flat;
        changed
    }

    fn minimize(&mut self, tolerance: f64, control: &Control) -> Result<Step> {
        self.solver.minimize(&self.truncated, tolerance, control)
    }

    fn save(&mut self) {
        self.saved = Some((self.solver.point(), self.truncated.clone()));
    }

    fn restore(&mut self) {
        if let Some((point, truncated)) = &self.saved {
            self.solver.go_to(point);
            self.truncated.clone_from(truncated);
        }
    }
}

/// Solves the untruncated problem, then runs the loop if the loss is truncated.
pub(super) fn solve<S: Convex>(
    problem: &TwoClass,
    options: &Options,
    control: &Control,
    solver: &mut S,
    name: &'static str,
) -> Result<Solution> {
    let kept = vec![false; problem.rows()];
    let start = solver.minimize(&kept, options.tolerance, control)?;
    let mut method = Truncating { problem, solver, truncated: kept, saved: None };
    let report = if problem.loss.truncation().is_some() && start.status != Status::TimeLimit {
        let loose = (10.0 * options.tolerance).min(1e-2).max(options.tolerance);
        let limits = Limits { tolerance: options.tolerance, loose, decrease: 1e-14, max_steps: options.max_steps };
        majorize::run(&mut method, start, &limits, "truncated", control)?
    } else {
        let trace = vec![method.objective()];
        majorize::Report { trace, gap: start.gap, iterations: start.iterations, status: start.status }
    };
    let answer = method.solver.answer();
    let decision = method.solver.decision();
    Ok(Solution {
        truncated: flat_rows(problem, &decision),
        decision,
        expansion: answer.expansion,
        weights: answer.weights,
        intercept: answer.intercept,
        objective: report.trace[report.trace.len() - 1],
        gap: report.gap,
        trace: report.trace,
        iterations: report.iterations,
        status: report.status,
        solver: name,
    })
}
