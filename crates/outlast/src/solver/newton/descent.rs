//! Damped Newton in a space of functions f, with b kept at its exact minimiser.
//!
//! A step solves the quadratic model at (f, b) for a direction (df, db) and takes the first length t = 1, 1/2, ... with
//! P(t) <= P(0) + 1e-4 t P'(0); an infinite P(t), the exponential loss too far out, counts as too high. The dual point of an
//! iterate is r = -c y l'(u), in the domain of the conjugate by construction and balanced because b is a minimiser, so
//! that P - D = 1/2 |f - f_r|^2 falls to rounding as fast as Newton's method converges.

use super::super::Status;
use super::super::majorize::Step;
use super::rows::{Local, Rows};
use crate::control::{Control, Progress};
use crate::error::Result;

/// A Newton direction.
pub(super) struct Direction {
    /// df on the rows.
    pub(super) decision: Vec<f64>,
    /// db
    pub(super) intercept: f64,
    /// <f, df>
    pub(super) cross: f64,
    /// |df|^2
    pub(super) square: f64,
}

/// A space of functions with a current point.
pub(super) trait Space {
    /// f on the rows, without b.
    fn decision(&self) -> &[f64];

    /// 1/2 |f|^2
    fn half_norm(&self) -> f64;

    /// Goes to f = 0.
    fn reset(&mut self);

    /// Takes up f_r = sum r_j k(x_j, .), the fixed-point image of f. Returns 1/2 |f_r|^2.
    fn pull(&mut self, target: Vec<f64>) -> f64;

    /// Newton's direction given what was pulled and the curvatures, linear systems solved to a relative residual.
    fn direction(&mut self, local: &Local, intercept: bool, residual: f64) -> Direction;

    /// f += t df with the last direction.
    fn advance(&mut self, direction: &Direction, length: f64);

    /// Puts a feasible pair near the current point down as the answer if it beats the one before, and returns its gap;
    /// `gap` is that of f against f_r at intercept `b`.
    fn settle(&mut self, rows: &Rows, intercept: bool, b: f64, gap: f64) -> f64;

    /// Goes to the best pair put down, returns its gap and b.
    fn conclude(&mut self) -> Option<(f64, f64)>;
}

/// Steps whose predicted decrease is below rounding before that is blamed.
const IDLE_STEPS: usize = 3;

/// Minimises 1/2 |f|^2 + sum c l(y (f + b)) to a relative duality gap from the current point.
pub(super) fn minimize(
    space: &mut dyn Space,
    rows: &Rows,
    intercept: bool,
    b: &mut f64,
    (tolerance, max_iterations): (f64, usize),
    control: &Control,
) -> Result<Step> {
    if let Some(far) = if intercept { rows.one_sided_intercept() } else { None } {
        space.reset();
        *b = far;
    } else if !(space.half_norm() + rows.loss(space.decision(), *b)).is_finite() {
        space.reset();
        *b = 0.0;
    }
    let mut idle = 0;
    let mut iteration = 0;
    let mut status = loop {
        control.check()?;
        if intercept && rows.one_sided_intercept().is_none() {
            *b = rows.best_intercept(space.decision(), *b);
        }
        let (local, primal, gap) = look(space, rows, intercept, *b);
        control.report(Progress { stage: "newton", step: iteration, objective: primal, gap });
        if gap <= tolerance && space.settle(rows, intercept, *b, gap) <= tolerance {
            break Status::Converged;
        }
        if iteration >= max_iterations {
            break Status::IterationLimit;
        }
        if control.out_of_time() {
            break Status::TimeLimit;
        }
        let residual = gap.sqrt().clamp(1e-10, 0.1);
        let direction = space.direction(&local, intercept, residual);
        let slope = slope(&local, &direction);
        idle = if -slope <= 1e-15 * primal.abs() { idle + 1 } else { 0 };
        let Some(length) = search(space, rows, *b, &direction, primal, slope) else { break Status::Inaccurate };
        space.advance(&direction, length);
        *b += length * direction.intercept;
        iteration += 1;
        if idle > IDLE_STEPS {
            break Status::Inaccurate;
        }
    };
    if status != Status::Converged {
        let (_, _, gap) = look(space, rows, intercept, *b);
        if space.settle(rows, intercept, *b, gap) <= tolerance {
            status = Status::Converged;
        }
    }
    let Some((gap, best)) = space.conclude() else {
        return Ok(Step { gap: f64::INFINITY, iterations: iteration, status });
    };
    *b = best;
    if gap <= tolerance {
        status = Status::Converged;
    }
    Ok(Step { gap, iterations: iteration, status })
}

/// Derivatives, primal value and relative gap at the current point.
fn look(space: &mut dyn Space, rows: &Rows, intercept: bool, b: f64) -> (Local, f64, f64) {
    let local = rows.local(space.decision(), b);
    let primal = space.half_norm() + rows.loss(space.decision(), b);
    let mut target = local.target.clone();
    rows.make_feasible(&mut target, intercept);
    let conjugate = rows.conjugate(&target);
    let dual = -space.pull(target) - conjugate;
    (local, primal, relative_gap(primal, dual))
}

/// (P - D) / P, infinite where it can't be told.
pub(super) fn relative_gap(primal: f64, dual: f64) -> f64 {
    let gap = (primal - dual) / primal.abs().max(f64::MIN_POSITIVE);
    if gap.is_nan() { f64::INFINITY } else { gap }
}

/// P'(0) along a direction.
fn slope(local: &Local, direction: &Direction) -> f64 {
    let rows = local.target.iter().zip(&direction.decision);
    direction.cross - rows.map(|(target, df)| target * (df + direction.intercept)).sum::<f64>()
}

/// The first length at which P falls enough.
fn search(space: &dyn Space, rows: &Rows, b: f64, direction: &Direction, primal: f64, slope: f64) -> Option<f64> {
    if !slope.is_finite() || !primal.is_finite() {
        return None;
    }
    // near the optimum the decrease drowns in the rounding of P
    let rounding = 1e-14 * primal.abs();
    let mut length = 1.0;
    for _ in 0..60 {
        let half_norm = space.half_norm() + length * (direction.cross + 0.5 * length * direction.square);
        let loss = rows.loss_along(space.decision(), b, &direction.decision, direction.intercept, length);
        if half_norm + loss <= primal + 1e-4 * length * slope.min(0.0) + rounding {
            return Some(length);
        }
        length *= 0.5;
    }
    None
}
