//! q < 1: reweighting, from one start.
//!
//! |w|^q is concave in |w|: |w|^q <= |w0|^q + q |w0|^(q-1) (|w| - |w0|), and coefficients at 0 stay there. The bound of a step is the
//! weighted l1 problem with the rates q |w0|^(q-1), infinite at 0, which the l1 engine solves with exact zeros. So a start's zeros are
//! for good, and the work is done on a copy of its other columns.
//!
//! Every non-zero coefficient of a local minimum obeys |w_c| >= (q / G_c)^(1 / (1-q)), G_c = sum_i c_i |x_ic|, since the slope of the
//! loss is at most G_c. A column all of whose entries together cost more than they can save, sum_j |w_cj|^q >= sum_j G_cj |w_cj|, is
//! set to 0: the objective does not rise, and what is left is above (1 / G)^(1 / (1-q)) in some entry.

use super::super::Status;
use super::super::majorize::{self, Limits, Majorizer, Report, Step};
use super::super::proximal::{Point, Weighted, changed_rates};
use super::frame::only_columns;
use crate::control::Control;
use crate::data::{Dense, Design};
use crate::error::Result;
use crate::problem::LqProblem;
use crate::problem::lq::clear;

/// Coefficients (functions x columns) and intercepts, and V (rows x functions) where it is known.
#[derive(Debug, Clone)]
pub struct Local {
    /// w, functions x columns.
    pub weights: Vec<f64>,
    /// b
    pub intercepts: Vec<f64>,
    /// V of the last convex problem, rows x functions.
    pub expansion: Vec<f64>,
    /// f + b, rows x functions.
    pub decision: Vec<f64>,
    /// What the loop did.
    pub report: Report,
    /// Multiplications that took.
    pub work: f64,
}

impl Local {
    /// P
    pub fn objective(&self) -> f64 {
        self.report.trace[self.report.trace.len() - 1]
    }

    /// Coefficients that are not 0.
    pub fn size(&self) -> usize {
        self.weights.iter().filter(|w| **w != 0.0).count()
    }
}

struct Reweighting<'a, 'b> {
    problem: &'b LqProblem<'a>,
    engine: Weighted<'a>,
    rates: Vec<f64>,
    /// G, functions x columns.
    steepest: Vec<f64>,
    saved: Option<(Point, Vec<f64>)>,
}

impl Reweighting<'_, '_> {
    fn weights(&self) -> Vec<f64> {
        self.engine.answer().weights.unwrap_or_default()
    }

    /// Sets columns to 0 that cost more than they can save; whether there were any.
    fn clear(&self, weights: &mut [f64]) -> bool {
        clear(weights, &self.steepest, self.problem.q, self.problem.functions)
    }

    /// Clears what the last convex problem has left, and solves on without it; out of steps or time it is cleared and no more.
    fn clear_the_end(&mut self, report: &mut Report, limits: &Limits, control: &Control) -> Result<()> {
        loop {
            let mut weights = self.weights();
            if !self.clear(&mut weights) {
                return Ok(());
            }
            self.rates = self.problem.rates(&weights);
            self.engine.set_rates(&self.rates);
            let here = self.objective();
            report.trace.pop();
            report.trace.push(here);
            let limited = matches!(report.status, Status::IterationLimit | Status::TimeLimit);
            if limited || report.trace.len() > limits.max_steps {
                continue;
            }
            self.save();
            let touching = self.touching_value();
            let step = self.minimize(limits.tolerance, control)?;
            report.iterations += step.iterations;
            (report.gap, report.status) = (step.gap, step.status);
            let next = self.objective();
            if next <= here {
                report.trace.push(next);
            } else if let Some((point, _)) = &self.saved {
                report.gap = (touching - self.engine.dual()).max(0.0) / touching.max(f64::MIN_POSITIVE);
                report.status = if report.gap <= limits.tolerance { Status::Converged } else { Status::Inaccurate };
                self.engine.go_back(point);
            }
        }
    }

    /// A start that no step lowers may be a minimum to the last digit, of which no convex problem has told yet. The bound that touches it
    /// is solved, and what that leaves to gain is the start's gap.
    fn certify_start(&mut self, report: &mut Report, tolerance: f64, control: &Control) -> Result<()> {
        self.save();
        self.majorize();
        let here = self.touching_value();
        let step = self.minimize(tolerance, control)?;
        report.iterations += step.iterations;
        let gap = (here - self.engine.dual()).max(0.0) / here.max(f64::MIN_POSITIVE);
        if !(gap <= tolerance) {
            self.restore();
            return Ok(());
        }
        if let Some((point, _)) = &self.saved {
            self.engine.go_back(point);
        }
        (report.gap, report.status) = (gap, Status::Converged);
        Ok(())
    }

    /// The convex bound at the point where it touches.
    fn touching_value(&self) -> f64 {
        self.problem.q * self.problem.penalty(&self.weights()) + self.problem.loss(&self.engine.decision())
    }
}

impl Majorizer for Reweighting<'_, '_> {
    fn objective(&mut self) -> f64 {
        self.problem.penalty(&self.weights()) + self.problem.loss(&self.engine.decision())
    }

    fn majorize(&mut self) -> usize {
        let mut weights = self.weights();
        self.clear(&mut weights);
        let rates = self.problem.rates(&weights);
        let changed = changed_rates(&rates, &self.rates);
        if changed > 0 {
            self.engine.set_rates(&rates);
            self.rates = rates;
        }
        changed
    }

    fn minimize(&mut self, tolerance: f64, control: &Control) -> Result<Step> {
        self.engine.minimize(tolerance, control)
    }

    fn save(&mut self) {
        self.saved = Some((self.engine.point(), self.rates.clone()));
    }

    fn restore(&mut self) {
        if let Some((point, rates)) = &self.saved {
            self.rates.clone_from(rates);
            self.engine.set_rates(rates);
            self.engine.go_to(point);
        }
    }
}

/// How exactly a start is followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    pub(super) tolerance: f64,
    pub(super) loose: f64,
    pub(super) decrease: f64,
    pub(super) max_steps: usize,
    pub(super) max_iterations: usize,
}

/// Follows a start to a local minimum.
pub(super) fn follow(
    problem: &LqProblem,
    weights: &[f64],
    intercepts: &[f64],
    expansion: Option<&[f64]>,
    effort: &Effort,
    control: &Control,
) -> Result<Local> {
    lead(problem, (weights, intercepts, expansion), effort, true, control)
}

/// One step from a start, to be followed later: nothing is cleared at its end.
pub(super) fn step(
    problem: &LqProblem,
    weights: &[f64],
    intercepts: &[f64],
    expansion: Option<&[f64]>,
    effort: &Effort,
    control: &Control,
) -> Result<Local> {
    lead(problem, (weights, intercepts, expansion), &Effort { max_steps: 1, ..*effort }, false, control)
}

fn lead(
    problem: &LqProblem,
    (weights, intercepts, expansion): (&[f64], &[f64], Option<&[f64]>),
    effort: &Effort,
    to_the_end: bool,
    control: &Control,
) -> Result<Local> {
    let (m, d) = (problem.functions, problem.x.cols());
    let used: Vec<usize> = (0..d).filter(|&column| (0..m).any(|j| weights[j * d + column] != 0.0)).collect();
    // a design has at least one column
    let kept = if used.is_empty() { vec![0] } else { used };
    let p = kept.len();
    let compact = columns_of(problem.x, &kept)?;
    let small = problem.on(&*compact);
    let pick = |from: &[f64]| -> Vec<f64> { (0..m * p).map(|at| from[at / p * d + kept[at % p]]).collect() };
    let mut method = Reweighting {
        problem: &small,
        engine: Weighted::new(&small, effort.max_iterations),
        rates: vec![1.0; m * p],
        steepest: steepest(&small),
        saved: None,
    };
    method.engine.start_at(&pick(weights), intercepts);
    if let Some(expansion) = expansion {
        method.engine.start_multipliers(expansion);
    }
    let start = Step { gap: f64::INFINITY, iterations: 0, status: Status::Inaccurate };
    let limits = Limits {
        tolerance: effort.tolerance,
        loose: effort.loose,
        decrease: effort.decrease,
        max_steps: effort.max_steps,
    };
    let mut report = majorize::run(&mut method, start, &limits, "reweighting", control)?;
    if report.trace.len() == 1 && report.status == Status::Inaccurate {
        method.certify_start(&mut report, effort.tolerance, control)?;
    }
    if to_the_end {
        method.clear_the_end(&mut report, &limits, control)?;
    }
    let answer = method.engine.answer();
    let small_weights = answer.weights.unwrap_or_default();
    let mut weights = vec![0.0; m * d];
    (0..m * p).for_each(|at| weights[at / p * d + kept[at % p]] = small_weights[at]);
    Ok(Local {
        weights,
        intercepts: answer.intercepts,
        expansion: answer.expansion,
        decision: method.engine.decision(),
        report,
        // the copy, and what is summed over it for the units and the threshold
        work: method.engine.spent() + (3 * compact.stored() + problem.x.stored()) as f64,
    })
}

/// Some columns, which ascend; as sparse as X is.
pub(super) fn columns_of(x: &dyn Design, columns: &[usize]) -> Result<Box<dyn Design>> {
    let (n, p) = (x.rows(), columns.len());
    if x.is_sparse() {
        return Ok(Box::new(only_columns(x, columns)?));
    }
    let mut values = vec![0.0; n * p];
    let mut full = Vec::new();
    for (row, out) in values.chunks_exact_mut(p).enumerate() {
        let values = x.block(row..row + 1, &mut full);
        out.iter_mut().zip(columns).for_each(|(out, &column)| *out = values[column]);
    }
    Ok(Box::new(Dense::new(n, p, values)?))
}

/// G: the steepest the loss can be in each coefficient.
pub(super) fn steepest(problem: &LqProblem) -> Vec<f64> {
    let (m, d) = (problem.functions, problem.x.cols());
    let (mut sums, mut scratch) = (vec![0.0; m * d], Vec::new());
    for row in 0..problem.rows() {
        for (j, sums) in sums.chunks_exact_mut(d.max(1)).enumerate() {
            let cap = problem.cap(row, j);
            if cap > 0.0 && problem.x.is_sparse() {
                problem.x.for_each(row, &mut |column, value| sums[column] += cap * value.abs());
            } else if cap > 0.0 {
                let values = problem.x.block(row..row + 1, &mut scratch);
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += cap * value.abs());
            }
        }
    }
    sums
}
