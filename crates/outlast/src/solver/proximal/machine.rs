//! Problems with two classes and with k as [`starts`](super::starts) sees them.

use super::super::truncation::{self, Convex};
use super::super::{Options, Solution, Start, Status, lq};
use super::columns::Columns;
use super::engine::Engine;
use super::many::Many;
use super::rows::Rows;
use super::starts::{Machine, Origin};
use super::two::Two;
use super::{NAME, Solver, touching, unit_of};
use crate::control::Control;
use crate::error::Result;
use crate::problem::{Candidate, KernelFunction, Loss, LqProblem, ManyCandidate, ManyClass, Norm, TwoClass};

impl Machine for TwoClass<'_> {
    fn loss(&self) -> Loss {
        self.loss
    }

    fn norm(&self) -> Norm<'_> {
        self.norm
    }

    fn kernel(&self) -> &KernelFunction {
        self.kernel
    }

    fn intercept(&self) -> bool {
        self.intercept
    }

    fn shape(&self) -> (usize, usize) {
        (1, self.x.cols())
    }

    fn totals(&self) -> Vec<f64> {
        totals(2, self.signs.iter().map(|sign| usize::from(*sign > 0.0)), self.caps)
    }

    fn plain(&self) -> Self {
        TwoClass { loss: self.loss.untruncated(), ..*self }
    }

    fn objective(&self, start: &Start) -> f64 {
        let expansion = vec![0.0; self.rows()];
        let intercept = start.intercept();
        TwoClass::objective(self, &Candidate { expansion: &expansion, weights: start.weights.as_deref(), intercept })
    }

    fn descend(&self, from: Origin, power: Option<f64>, options: &Options, control: &Control) -> Result<Solution> {
        let (unit, caps) = in_units(self.caps);
        let rows = Two { base: self.loss.base(), signs: self.signs, caps: caps.clone() };
        let engine = |rates| Engine::new(rows, Columns::new(self.x, self.intercept), rates, unit);
        let prepared = Prepared { rates: rates_at(&from, self.norm, self.x.cols()), caps, power, from };
        prepared.run(self, engine, options, control)
    }

    fn sparsest(&self, q: f64, options: &Options, control: &Control) -> Result<Vec<Start>> {
        let codes: Vec<u32> = self.signs.iter().map(|sign| u32::from(*sign > 0.0)).collect();
        let whole = LqProblem {
            x: self.x,
            codes: &codes,
            classes: 2,
            functions: 1,
            caps: self.caps,
            counts: None,
            cost: None,
            q,
            intercept: self.intercept,
        };
        Ok(vec![scaled(&lq::solve_sparsely(&whole, options, control)?, 1.0)])
    }

    fn constant(&self, intercepts: Vec<f64>, objective: f64) -> Solution {
        let (n, b) = (self.rows(), intercepts.first().copied().unwrap_or(0.0));
        let truncated = self.signs.iter().map(|sign| self.loss.truncates(sign * b)).collect();
        let weights = Some(vec![0.0; self.x.cols()]);
        Solution { truncated, weights, ..end(vec![b; n], intercepts, objective) }
    }
}

impl Machine for ManyClass<'_> {
    fn loss(&self) -> Loss {
        self.loss
    }

    fn norm(&self) -> Norm<'_> {
        self.norm
    }

    fn kernel(&self) -> &KernelFunction {
        self.kernel
    }

    fn intercept(&self) -> bool {
        self.intercept
    }

    fn shape(&self) -> (usize, usize) {
        (self.classes, self.x.cols())
    }

    fn totals(&self) -> Vec<f64> {
        totals(self.classes, self.codes.iter().map(|code| *code as usize), self.caps)
    }

    fn plain(&self) -> Self {
        ManyClass { loss: self.loss.untruncated(), ..*self }
    }

    fn objective(&self, start: &Start) -> f64 {
        let expansion = vec![0.0; self.rows() * self.classes];
        let (weights, intercepts) = (start.weights.as_deref(), &start.intercepts[..]);
        ManyClass::objective(self, &ManyCandidate { expansion: &expansion, weights, intercepts })
    }

    fn descend(&self, from: Origin, power: Option<f64>, options: &Options, control: &Control) -> Result<Solution> {
        let (unit, caps) = in_units(self.caps);
        let rows = Many { base: self.loss.base(), codes: self.codes, classes: self.classes, caps: caps.clone() };
        let engine = |rates| Engine::new(rows, Columns::new(self.x, self.intercept), rates, unit);
        let coefficients = self.classes * self.x.cols();
        let prepared = Prepared { rates: rates_at(&from, self.norm, coefficients), caps, power, from };
        prepared.run(self, engine, options, control)
    }

    /// The loss there is that of Lee, Lin and Wahba: f of a row's own class goes up to k - 1 where all others are at -1.
    fn sparsest(&self, q: f64, options: &Options, control: &Control) -> Result<Vec<Start>> {
        let whole = LqProblem {
            x: self.x,
            codes: self.codes,
            classes: self.classes,
            functions: self.classes,
            caps: self.caps,
            counts: None,
            cost: None,
            q,
            intercept: self.intercept,
        };
        let found = lq::solve_sparsely(&whole, options, control)?;
        Ok(vec![scaled(&found, 1.0), scaled(&found, 1.0 / self.classes as f64)])
    }

    fn constant(&self, intercepts: Vec<f64>, objective: f64) -> Solution {
        let decision = intercepts.repeat(self.rows());
        let (truncated, majorant) = (self.flat_rows(&decision), Some(self.majorant(&decision, None)));
        let weights = Some(vec![0.0; self.classes * self.x.cols()]);
        Solution { truncated, majorant, weights, ..end(decision, intercepts, objective) }
    }
}

/// A descent about to begin.
struct Prepared {
    rates: Vec<f64>,
    caps: Vec<f64>,
    power: Option<f64>,
    from: Origin,
}

impl Prepared {
    fn run<'a, P, R>(
        self,
        problem: &P,
        engine: impl FnOnce(Vec<f64>) -> Engine<'a, R>,
        options: &Options,
        control: &Control,
    ) -> Result<Solution>
    where
        P: truncation::Bounded,
        R: Rows,
        Solver<'a, R>: Convex<P>,
    {
        let engine = engine(self.rates);
        let mut solver = Solver { engine, caps: self.caps, limit: options.max_iterations, power: self.power };
        match self.from {
            Origin::Rates(_) => {
                if let Some(start) = &options.start {
                    solver.start(start);
                }
                truncation::solve(problem, options, control, &mut solver, NAME)
            }
            Origin::Point(start) => {
                solver.start(&start);
                truncation::follow(problem, options, control, &mut solver, NAME)
            }
        }
    }
}

/// The rates that a descent begins with.
fn rates_at(from: &Origin, norm: Norm, coefficients: usize) -> Vec<f64> {
    match (from, norm) {
        (Origin::Rates(rates), _) => rates.clone(),
        (Origin::Point(_), Norm::Absolute(rates)) => rates.to_vec(),
        (Origin::Point(Start { weights: Some(weights), .. }), Norm::Power(q)) => touching(weights, q),
        _ => vec![1.0; coefficients],
    }
}

/// A power of two next to the largest cap, and the caps in this unit.
fn in_units(caps: &[f64]) -> (f64, Vec<f64>) {
    let unit = unit_of(caps);
    (unit, caps.iter().map(|cap| cap / unit).collect())
}

fn totals(classes: usize, codes: impl Iterator<Item = usize>, caps: &[f64]) -> Vec<f64> {
    let mut totals = vec![0.0; classes];
    codes.zip(caps).for_each(|(code, cap)| totals[code] += cap);
    totals
}

/// A solution times a factor, as a start. Its dual variables belong to another loss.
fn scaled(found: &Solution, factor: f64) -> Start {
    let times = |values: &[f64]| -> Vec<f64> { values.iter().map(|value| value * factor).collect() };
    let weights = found.weights.as_deref().map(times);
    Start { expansion: Vec::new(), weights, intercepts: times(&found.intercepts) }
}

/// A constant function whose bound nothing can lower: the rows that are kept cost nothing, and V = 0 certifies it.
fn end(decision: Vec<f64>, intercepts: Vec<f64>, objective: f64) -> Solution {
    Solution {
        expansion: vec![0.0; decision.len()],
        weights: None,
        intercepts,
        decision,
        truncated: Vec::new(),
        majorant: None,
        objective,
        gap: 0.0,
        trace: vec![objective],
        iterations: 0,
        status: Status::Converged,
        solver: NAME,
    }
}
