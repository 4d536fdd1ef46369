//! The search for a global optimum of the hinge truncated at 0: a second start, and branch and bound.
//!
//! The relaxation REH gives a lower bound of the objective and a classifier to start the local method from. On few rows branch and
//! bound goes on from the better of the two local optima until the bound meets it, the time is up, or the caller has seen
//! enough: what was found so far is kept.

use super::Details;
use super::ablation::classifier;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::problem::{Candidate, TwoClass};
use crate::solver::ablation::{self, Rule};
use crate::solver::{Options, Solution, Status};
use std::time::Duration;

/// Rows up to which branch and bound is worth a try.
const FEW: usize = 200;

/// How long branch and bound takes where the caller set no limit.
const PATIENCE: Duration = Duration::from_secs(60);

/// Relative gap of the relaxation that starts the search.
const TOLERANCE: f64 = 1e-6;

/// The best solution, and what is known about the global optimum.
pub(super) struct Found {
    pub solution: Solution,
    pub details: Details,
}

/// What is known so far.
struct State {
    best: Solution,
    lower: f64,
    proved: bool,
    nodes: usize,
}

/// Searches, from a local optimum.
pub(super) fn run(problem: &TwoClass, local: Solution, options: &Options, control: Control) -> Result<Found> {
    let mut state = State { best: local, lower: 0.0, proved: false, nodes: 0 };
    match state.go_on(problem, options, control) {
        Ok(()) => {}
        Err(Error::Interrupted) => state.best.status = Status::Interrupted,
        Err(error) => return Err(error),
    }
    let mut details = Details::default();
    // no objective is negative, and no bound above an objective is one
    details.set("lower_bound", state.lower.clamp(0.0, state.best.objective));
    details.set("proved", f64::from(state.proved));
    details.set("nodes", state.nodes as f64);
    Ok(Found { solution: state.best, details })
}

impl State {
    fn go_on(&mut self, problem: &TwoClass, options: &Options, control: Control) -> Result<()> {
        let exact = Options { tolerance: TOLERANCE, start: None, ..options.clone() };
        let relaxed = ablation::relax(problem, Rule::Reh, &exact, control)?;
        self.lower = self.lower.max(relaxed.lower);
        self.offer(classifier(problem, Rule::Reh, &relaxed, true, options, &control)?);
        // with an intercept the bound around a solution would be the relaxation's once more
        if !problem.intercept {
            let (expansion, weights) = (&self.best.expansion, self.best.weights.as_deref());
            let candidate = Candidate { expansion, weights, intercept: self.best.intercept() };
            self.lower = self.lower.max(ablation::bound(problem, &candidate, &exact, control)?.lower);
        }
        self.proved = self.best.objective - self.lower <= TOLERANCE * self.best.objective;
        if !self.proved && control.out_of_time() {
            self.best.status = Status::TimeLimit;
        }
        if self.proved || problem.rows() > FEW || control.out_of_time() {
            return Ok(());
        }
        let branched = ablation::branch(problem, &self.best, &exact, control.or_time_limit(PATIENCE))?;
        self.lower = self.lower.max(branched.lower);
        (self.nodes, self.proved) = (branched.nodes, branched.proved);
        let status = if branched.interrupted { Status::Interrupted } else { branched.solution.status };
        self.offer(branched.solution);
        if !self.proved {
            self.best.status = status;
        }
        Ok(())
    }

    /// Takes a solution if it is better, and adds it to the trace.
    fn offer(&mut self, other: Solution) {
        if other.objective < self.best.objective {
            let mut trace = std::mem::take(&mut self.best.trace);
            trace.push(other.objective);
            self.best = Solution { trace, solver: self.best.solver, ..other };
        }
    }
}
