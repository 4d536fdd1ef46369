//! The outer loop: improve until the relative duality gap will do, and make sure that f32 did not hide it.
//!
//! Kernel values carry an error of about 1e-7, and F = K b a multiple of that. When the gap is reached, F is checked in double
//! precision on a sample of rows; if the error could matter, F is computed anew in f64 and the solver goes on from there.
//! Updates stay f32: their error scales with the step they propose, so this is iterative refinement, and any tolerance
//! above f64 rounding is within reach. On few rows the last digits come from the matrix in double precision.

use super::super::majorize::Step;
use super::super::{Care, Options, Status};
use crate::control::{Control, Progress};
use crate::error::Result;

/// Where a state stands, in the solver's units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    /// primal - dual
    pub(crate) gap: f64,
    pub(crate) primal: f64,
    /// How far the optimality conditions fail; 0 ends the work.
    pub(crate) violation: f64,
    /// What turns a value into the caller's, by division.
    pub(crate) unit: f64,
}

impl Standing {
    pub(crate) fn relative_gap(&self) -> f64 {
        self.gap / self.primal.abs().max(f64::MIN_POSITIVE)
    }
}

/// A dual problem with its state, and how to improve it.
pub(crate) trait Outer {
    /// What a look at all rows brings.
    type Measure;

    fn measure(&mut self) -> Self::Measure;

    fn standing(&self, measure: &Self::Measure) -> Standing;

    /// Fails if the kernel returned something that is no number.
    fn check(&self) -> Result<()>;

    /// One step of level 0.
    fn improve(&mut self, measure: &Self::Measure, tolerance: f64, outer: usize, control: &Control) -> Result<()>;

    /// Computes F anew in double precision.
    fn refresh(&mut self);

    /// Whether the error of F could hide a gap above the tolerance.
    fn error_matters(&self, measure: &Self::Measure, tolerance: f64) -> bool;

    /// Whether the matrix may be taken in double precision.
    fn has_few_rows(&self) -> bool;

    /// Goes on in double precision, F being exact, to the tolerance or as far as that reaches.
    fn finish_in_double(&mut self, tolerance: f64, control: &Control) -> Result<()>;
}

/// Improves until the relative gap is reached or nothing helps.
pub(crate) fn run<O: Outer>(
    problem: &mut O,
    tolerance: f64,
    options: &Options,
    stage: &'static str,
    control: &Control,
) -> Result<Step> {
    let mut stall = Stall::new(PATIENCE);
    let mut refined = Stall::new(REFINEMENTS);
    let mut outer = 0;
    loop {
        control.check()?;
        problem.check()?;
        let measure = problem.measure();
        let standing = problem.standing(&measure);
        let report = |status| Step { gap: standing.relative_gap(), iterations: outer, status };
        if standing.relative_gap() <= tolerance || standing.violation == 0.0 {
            if options.care == Care::Full && problem.has_few_rows() {
                return in_double(problem, tolerance, outer, control);
            }
            if !problem.error_matters(&measure, tolerance) {
                return Ok(report(Status::Converged));
            }
            let honest = refresh(problem);
            if honest.relative_gap() <= tolerance || refined.no_progress(&honest) {
                let status = if honest.relative_gap() <= tolerance { Status::Converged } else { Status::Inaccurate };
                return Ok(Step { gap: honest.relative_gap(), iterations: outer, status });
            }
            stall = Stall { refreshed: true, ..Stall::new(PATIENCE) };
            continue;
        }
        control.report(Progress {
            stage,
            step: outer,
            objective: standing.primal / standing.unit,
            gap: standing.relative_gap(),
        });
        if control.out_of_time() {
            return Ok(report(Status::TimeLimit));
        }
        if outer >= options.max_iterations {
            return Ok(report(Status::IterationLimit));
        }
        if stall.no_progress(&standing) {
            if options.care == Care::Full && problem.has_few_rows() {
                return in_double(problem, tolerance, outer, control);
            }
            let honest = refresh(problem);
            if stall.refreshed || refined.no_progress(&honest) {
                return Ok(Step { gap: honest.relative_gap(), iterations: outer, status: Status::Inaccurate });
            }
            stall = Stall { refreshed: true, ..Stall::new(PATIENCE) };
            continue;
        }
        problem.improve(&measure, tolerance, outer, control)?;
        outer += 1;
    }
}

fn refresh<O: Outer>(problem: &mut O) -> Standing {
    problem.refresh();
    let measure = problem.measure();
    problem.standing(&measure)
}

/// Few rows: F in double precision, and the rest of the way if that shows there is one.
fn in_double<O: Outer>(problem: &mut O, tolerance: f64, iterations: usize, control: &Control) -> Result<Step> {
    let mut gap = refresh(problem).relative_gap();
    if gap > tolerance {
        problem.finish_in_double(tolerance, control)?;
        let measure = problem.measure();
        gap = problem.standing(&measure).relative_gap();
    }
    problem.check()?;
    let status = match gap <= tolerance {
        true => Status::Converged,
        false if control.out_of_time() => Status::TimeLimit,
        false => Status::Inaccurate,
    };
    Ok(Step { gap, iterations, status })
}

/// Steps, and refinements of F, that may pass before the best gap has halved.
const PATIENCE: usize = 12;
const REFINEMENTS: usize = 3;

/// Notices that the gap no longer falls.
struct Stall {
    best: Option<f64>,
    since: usize,
    patience: usize,
    /// Whether F was computed anew since the gap last fell.
    refreshed: bool,
}

impl Stall {
    fn new(patience: usize) -> Stall {
        Stall { best: None, since: 0, patience, refreshed: false }
    }

    fn no_progress(&mut self, standing: &Standing) -> bool {
        match self.best {
            Some(best) if !(standing.gap < 0.5 * best) => self.since += 1,
            _ => {
                if self.best.is_some() {
                    self.refreshed = false;
                }
                self.best = Some(standing.gap);
                self.since = 0;
            }
        }
        self.since > self.patience
    }
}
