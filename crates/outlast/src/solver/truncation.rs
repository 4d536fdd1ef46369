//! Truncated losses as majorise-minimise: the [`Majorizer`] shared by solvers that can minimise the convex problem of a
//! given bound.
//!
//! At the current f a term is *truncated* when its margin is below s. Its flat cost c l(s) is bounded by c l(s) itself: the
//! term is dropped (the two-class hinge solvers follow the d.c. algorithm and bound it by c l(s) + c [y f - 1]_+). Kept
//! terms keep their convex loss. A penalty that is not convex has a bound of its own, which moves in the same steps. The loop starts at the optimum of the untruncated loss, so it never ends above that
//! point's objective.

use super::majorize::{self, Limits, Majorizer, Step};
use super::{Options, Solution, Status};
use crate::control::Control;
use crate::error::Result;
use crate::problem::{Majorant, ManyClass, Terms, TwoClass};

/// What the loop needs of a problem.
pub(super) trait Bounded {
    /// The convex bound of a step.
    type Bound: Clone;

    /// Whether the untruncated bound is the problem itself.
    fn is_convex(&self) -> bool;

    /// The bound of the untruncated loss.
    fn untruncated(&self) -> Self::Bound;

    /// The bound that touches at a decision function; the dual variables may break ties.
    fn bound(&self, decision: &[f64], duals: Option<&[f64]>) -> Self::Bound;

    /// In how many terms two bounds differ.
    fn changes(&self, from: &Self::Bound, to: &Self::Bound) -> usize;

    /// The non-convex loss.
    fn total(&self, decision: &[f64]) -> f64;

    /// Rows on the flat part of the loss.
    fn flat(&self, decision: &[f64]) -> Vec<bool>;

    /// The bound as a solution carries it.
    fn majorant(bound: Self::Bound) -> Option<Majorant>;
}

impl Bounded for TwoClass<'_> {
    type Bound = Vec<bool>;

    fn is_convex(&self) -> bool {
        self.loss.truncation().is_none()
    }

    fn untruncated(&self) -> Vec<bool> {
        vec![false; self.rows()]
    }

    fn bound(&self, decision: &[f64], _: Option<&[f64]>) -> Vec<bool> {
        self.flat(decision)
    }

    fn changes(&self, from: &Vec<bool>, to: &Vec<bool>) -> usize {
        // rows without weight never count
        (0..from.len()).filter(|&row| from[row] != to[row] && self.caps[row] > 0.0).count()
    }

    fn total(&self, decision: &[f64]) -> f64 {
        self.total_loss(decision, 0.0)
    }

    fn flat(&self, decision: &[f64]) -> Vec<bool> {
        decision.iter().zip(self.signs).map(|(decision, sign)| self.loss.truncates(sign * decision)).collect()
    }

    fn majorant(_: Vec<bool>) -> Option<Majorant> {
        None
    }
}

impl Bounded for ManyClass<'_> {
    type Bound = Majorant;

    fn is_convex(&self) -> bool {
        self.loss.truncation().is_none() && !matches!(self.terms, Terms::Cost(_))
    }

    fn untruncated(&self) -> Majorant {
        ManyClass::untruncated(self)
    }

    fn bound(&self, decision: &[f64], duals: Option<&[f64]>) -> Majorant {
        self.majorant(decision, duals)
    }

    fn changes(&self, from: &Majorant, to: &Majorant) -> usize {
        ManyClass::changes(self, from, to)
    }

    fn total(&self, decision: &[f64]) -> f64 {
        self.total_loss(decision)
    }

    fn flat(&self, decision: &[f64]) -> Vec<bool> {
        self.flat_rows(decision)
    }

    fn majorant(bound: Majorant) -> Option<Majorant> {
        Some(bound)
    }
}

/// A convex solver with a current point.
pub(super) trait Convex<P: Bounded> {
    /// A remembered point.
    type Point: Clone;

    /// Minimises the convex problem of a bound, starting from the current point.
    fn minimize(&mut self, bound: &P::Bound, tolerance: f64, control: &Control) -> Result<Step>;

    /// f(x_i) + b at the current point, rows x functions.
    fn decision(&self) -> Vec<f64>;

    /// The penalty at the current point.
    fn penalty(&self) -> f64;

    /// Whether the penalty is convex, so that [`reweigh`](Self::reweigh) has nothing to do.
    fn is_convex(&self) -> bool {
        true
    }

    /// Moves the bound of the penalty to the current point. Returns how many of its terms changed.
    fn reweigh(&mut self) -> usize {
        0
    }

    /// Dual variables that may break ties of the next bound.
    fn duals(&self) -> Option<Vec<f64>> {
        None
    }

    /// The current point.
    fn point(&self) -> Self::Point;

    /// Goes back to a remembered point. Dual variables that certify it better may be kept.
    fn go_to(&mut self, point: &Self::Point);

    /// Goes back to a remembered point with the dual variables found since, which certify it as well.
    fn go_back(&mut self, point: &Self::Point) {
        self.go_to(point);
    }

    /// beta, w and b in the caller's units.
    fn answer(&self) -> Answer;
}

/// A point in the caller's units.
pub(super) struct Answer {
    pub(super) expansion: Vec<f64>,
    pub(super) weights: Option<Vec<f64>>,
    pub(super) intercepts: Vec<f64>,
}

struct Truncating<'a, 'b, P: Bounded, S: Convex<P>> {
    problem: &'a P,
    solver: &'b mut S,
    bound: P::Bound,
    saved: Option<(S::Point, P::Bound)>,
}

impl<P: Bounded, S: Convex<P>> Majorizer for Truncating<'_, '_, P, S> {
    fn objective(&mut self) -> f64 {
        self.solver.penalty() + self.problem.total(&self.solver.decision())
    }

    fn majorize(&mut self) -> usize {
        let bound = self.problem.bound(&self.solver.decision(), self.solver.duals().as_deref());
        let changed = self.problem.changes(&self.bound, &bound);
        self.bound = bound;
        changed + self.solver.reweigh()
    }

    fn minimize(&mut self, tolerance: f64, control: &Control) -> Result<Step> {
        self.solver.minimize(&self.bound, tolerance, control)
    }

    fn save(&mut self) {
        self.saved = Some((self.solver.point(), self.bound.clone()));
    }

    fn restore(&mut self) {
        if let Some((point, bound)) = &self.saved {
            self.solver.go_to(point);
            self.bound.clone_from(bound);
        }
    }
}

/// Solves the untruncated problem, then runs the loop if that is not all.
pub(super) fn solve<P: Bounded, S: Convex<P>>(
    problem: &P,
    options: &Options,
    control: &Control,
    solver: &mut S,
    name: &'static str,
) -> Result<Solution> {
    let bound = problem.untruncated();
    let start = solver.minimize(&bound, options.tolerance, control)?;
    descend(problem, bound, start, options, control, solver, name)
}

/// As [`solve`], but from the solver's current point, whose penalty has the bound that touches there: the first convex problem is that of
/// the bound that touches at it, so that the end is no higher than the point.
pub(super) fn follow<P: Bounded, S: Convex<P>>(
    problem: &P,
    options: &Options,
    control: &Control,
    solver: &mut S,
    name: &'static str,
) -> Result<Solution> {
    let decision = solver.decision();
    let (point, before) = (solver.point(), solver.penalty() + problem.total(&decision));
    let bound = problem.bound(&decision, None);
    let start = solver.minimize(&bound, options.tolerance, control)?;
    if !(solver.penalty() + problem.total(&solver.decision()) <= before) {
        // as low as the tolerance can tell
        solver.go_back(&point);
    }
    descend(problem, bound, start, options, control, solver, name)
}

/// Runs the loop from the solver's current point, which minimises a bound, if that is not all.
fn descend<P: Bounded, S: Convex<P>>(
    problem: &P,
    bound: P::Bound,
    start: Step,
    options: &Options,
    control: &Control,
    solver: &mut S,
    name: &'static str,
) -> Result<Solution> {
    let mut method = Truncating { problem, solver, bound, saved: None };
    let convex = problem.is_convex() && method.solver.is_convex();
    let report = if !convex && start.status != Status::TimeLimit {
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
        truncated: problem.flat(&decision),
        majorant: P::majorant(method.bound),
        decision,
        expansion: answer.expansion,
        weights: answer.weights,
        intercepts: answer.intercepts,
        objective: report.trace[report.trace.len() - 1],
        gap: report.gap,
        trace: report.trace,
        iterations: report.iterations,
        status: report.status,
        solver: name,
    })
}
