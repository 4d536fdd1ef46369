//! The fit of the truncated-loss machine: from checked parameters, rows and labels to a problem, its solution, and a [`Model`].
//!
//! Two classes give one decision function; a payoff matrix then gives every row two terms, each a row of its own. More
//! classes give one function per class. Where a solver has no reduced form for several terms per row (smooth losses, the l1
//! penalty), each term becomes a row of its own as well, and the solution is added up over a row's terms.

use super::common::affordable_gap;
use super::payoff::Payoff;
use super::{
    FitRequest, Model, Probabilities, Probability, Summary, Training, Truncated, fit, probability_fit, search,
};
use crate::data::{Design, Labels, Repeated};
use crate::error::{Error, Result};
use crate::problem::{KernelFunction, Loss, ManyClass, Norm, Penalty, Problem, Terms, TwoClass};
use crate::solver::kernel::KernelStore;
use crate::solver::{self, Care, Options, Solution, Start, Status};

/// Fits; `rough`, where it is not as exact as it can be, brings the kernel rows that other fits share with it.
pub(super) fn run(
    parameters: &Truncated,
    payoff: Option<&Payoff>,
    x: &dyn Design,
    labels: &Labels,
    request: &FitRequest,
    rough: Option<&KernelStore>,
) -> Result<Model> {
    x.check_finite()?;
    let loss = parameters.truncated_loss(labels.classes().len())?;
    let caps = parameters.common.caps(labels, request.sample_weight)?;
    let kernel = parameters.common.kernel.resolve(x, labels, request.sample_weight)?;
    let exact = rough.is_none();
    let task = Task { parameters, payoff, x, labels, loss, caps: &caps, kernel: &kernel, request, exact, store: rough };
    let split =
        payoff.is_some() && (labels.classes().len() == 2 || loss.base().is_smooth() || parameters.penalty.selects());
    if parameters.global_search && labels.classes().len() != 2 {
        let problem = format!("global_search needs two classes; y has {}", labels.classes().len());
        return Err(Error::Classes { problem });
    }
    let solution = if split { task.solve_by_terms()? } else { task.solve()? };
    let (solution, details) = match parameters.global_search {
        false => (solution, None),
        true => task.search(solution).map(|found| (found.solution, Some(found.details)))?,
    };
    let probabilities = match parameters.probability {
        Probability::Off => None,
        Probability::Weighted => Some(task.probabilities(&solution)?),
    };
    let mut model = task.model(solution)?;
    model.summary.details = details.unwrap_or(model.summary.details);
    if let Some((probabilities, unconverged)) = probabilities {
        model.predictor.probabilities = Some(probabilities);
        model.summary.details.set("probability_unconverged", unconverged as f64);
    }
    Ok(model)
}

/// A gap at which another solver is asked.
const FAR: f64 = 0.01;

/// Everything a fit needs, checked.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) parameters: &'a Truncated,
    pub(super) payoff: Option<&'a Payoff>,
    pub(super) x: &'a dyn Design,
    pub(super) labels: &'a Labels,
    pub(super) loss: Loss,
    pub(super) caps: &'a [f64],
    pub(super) kernel: &'a KernelFunction,
    pub(super) request: &'a FitRequest<'a>,
    /// Whether to solve as exactly as costs next to nothing, where that is more than asked for, and from several starts. A
    /// family of problems, each following the one before, needs neither.
    pub(super) exact: bool,
    /// Kernel rows of earlier fits to the same rows.
    pub(super) store: Option<&'a KernelStore>,
}

/// The terms of all rows, each as a row of its own.
struct Split {
    /// Which row of x.
    rows: Vec<u32>,
    /// The class whose margin counts.
    codes: Vec<u32>,
    caps: Vec<f64>,
}

impl Task<'_> {
    pub(super) fn classes(&self) -> usize {
        self.labels.classes().len()
    }

    fn functions(&self) -> usize {
        fit::functions(self.labels)
    }

    fn solve(&self) -> Result<Solution> {
        self.solve_from(self.start()?)
    }

    /// The solution of the problem without payoffs for other weights of the rows.
    pub(super) fn weighted(&self, caps: &[f64], start: Option<Start>) -> Result<Solution> {
        Task { payoff: None, caps, exact: false, ..*self }.solve_from(start)
    }

    /// The families that probabilities are read off, and how many of their fits did not converge.
    fn probabilities(&self, solution: &Solution) -> Result<(Probabilities, usize)> {
        let at_half = self.classes() == 2 && self.payoff.is_none();
        probability_fit::run(self, at_half.then_some(solution))
    }

    fn solve_from(&self, start: Option<Start>) -> Result<Solution> {
        let codes = self.labels.codes();
        if self.classes() == 2 {
            return self.solve_two(self.x, codes, self.caps, start);
        }
        let terms = match self.payoff {
            None => Terms::Own,
            Some(payoff) if payoff.direct => Terms::Cost(&payoff.factors),
            Some(payoff) => Terms::Utility(&payoff.factors),
        };
        self.solve_many(self.x, codes, self.caps, terms, start)
    }

    fn solve_two(&self, x: &dyn Design, codes: &[u32], caps: &[f64], start: Option<Start>) -> Result<Solution> {
        let signs: Vec<f64> = codes.iter().map(|&code| if code == 1 { 1.0 } else { -1.0 }).collect();
        self.solve_problem(
            Problem::Two(TwoClass {
                x,
                signs: &signs,
                caps,
                loss: self.loss,
                norm: Norm::Squared,
                kernel: self.kernel,
                intercept: self.parameters.common.fit_intercept,
            }),
            start,
        )
    }

    fn solve_many(
        &self,
        x: &dyn Design,
        codes: &[u32],
        caps: &[f64],
        terms: Terms,
        start: Option<Start>,
    ) -> Result<Solution> {
        let many = ManyClass {
            x,
            codes,
            classes: self.classes(),
            caps,
            terms,
            loss: self.loss,
            norm: Norm::Squared,
            kernel: self.kernel,
            intercept: self.parameters.common.fit_intercept,
        };
        self.solve_problem(Problem::Many(many), start)
    }

    /// Looks for the global optimum, from a local one.
    fn search(&self, local: Solution) -> Result<search::Found> {
        let codes = self.labels.codes();
        let signs: Vec<f64> = codes.iter().map(|&code| if code == 1 { 1.0 } else { -1.0 }).collect();
        let problem = TwoClass {
            x: self.x,
            signs: &signs,
            caps: self.caps,
            loss: self.loss,
            norm: Norm::Squared,
            kernel: self.kernel,
            intercept: self.parameters.common.fit_intercept,
        };
        search::run(&problem, local, &self.options(None), self.request.control)
    }

    /// Solves with the penalty asked for.
    fn solve_problem(&self, problem: Problem, start: Option<Start>) -> Result<Solution> {
        let options = self.options(start);
        let coefficients = problem.functions() * problem.x().cols();
        let rates = match self.parameters.penalty {
            Penalty::L2 => return self.solve_with(problem, &self.parameters.solver, &options),
            Penalty::Lq => {
                let norm = Norm::Power(self.parameters.q);
                return self.solve_with(problem.with_norm(norm), &self.parameters.solver, &options);
            }
            Penalty::L1 => vec![1.0; coefficients],
            Penalty::AdaptiveL1 => {
                // weights from the l2 fit with the same loss and C; where that has none, the coefficient stays 0
                let pilot = self.solve_with(problem, "auto", &options)?;
                let weights =
                    pilot.weights.unwrap_or_else(|| fit::combine(problem.x(), &pilot.expansion, problem.functions()));
                weights.iter().map(|w| 1.0 / w.abs()).collect()
            }
        };
        self.solve_with(problem.with_norm(Norm::Absolute(&rates)), &self.parameters.solver, &options)
    }

    fn solve_with(&self, problem: Problem, solver: &str, options: &Options) -> Result<Solution> {
        let name = solver::choose(solver, &problem)?;
        let control = &self.request.control;
        let found = self.parameters.common.settled(solver::solve(name, &problem, options, control)?);
        let is_far = found.status == Status::Inaccurate && !(found.gap <= FAR);
        match solver::second(name, &problem).filter(|_| solver == "auto" && self.exact && is_far) {
            Some(second) => {
                let other = self.parameters.common.settled(solver::solve(second, &problem, options, control)?);
                Ok(if other.objective < found.objective { other } else { found })
            }
            None => Ok(found),
        }
    }

    /// Solves with each term as a row of its own, and adds up.
    fn solve_by_terms(&self) -> Result<Solution> {
        let split = self.split();
        let x = match self.kernel {
            KernelFunction::Precomputed => Repeated::square(self.x, split.rows.clone()),
            _ => Repeated::new(self.x, split.rows.clone()),
        };
        // a start's expansion belongs to rows, not to terms
        let start = self.start()?.filter(|start| start.weights.is_some());
        let start = start.map(|start| Start { expansion: Vec::new(), ..start });
        let solution = match self.classes() {
            2 => self.solve_two(&x, &split.codes, &split.caps, start)?,
            _ => self.solve_many(&x, &split.codes, &split.caps, Terms::Own, start)?,
        };
        Ok(self.add_up(&split, solution))
    }

    /// One row per term that weighs something, and at least one per row.
    fn split(&self) -> Split {
        let k = self.classes();
        let mut split = Split { rows: Vec::new(), codes: Vec::new(), caps: Vec::new() };
        for (row, &code) in self.labels.codes().iter().enumerate() {
            let before = split.rows.len();
            for class in 0..k {
                // two classes: the loss of minus one margin is the loss of the other
                let decided = if self.payoff.is_some_and(|payoff| payoff.direct) { 1 - class } else { class };
                let factor = self.payoff.map_or(0.0, |payoff| payoff.factors[code as usize * k + decided]);
                let cap = self.caps[row] * factor;
                if cap > 0.0 || class + 1 == k && split.rows.len() == before {
                    split.rows.push(row as u32);
                    split.codes.push(class as u32);
                    split.caps.push(cap);
                }
            }
        }
        split
    }

    fn add_up(&self, split: &Split, solution: Solution) -> Solution {
        let (n, m) = (self.x.rows(), self.functions());
        let (mut expansion, mut decision) = (vec![0.0; n * m], vec![0.0; n * m]);
        for (term, &row) in split.rows.iter().enumerate() {
            for function in 0..m {
                let (from, to) = (term * m + function, row as usize * m + function);
                expansion[to] += solution.expansion[from];
                decision[to] = solution.decision[from];
            }
        }
        Solution { expansion, decision, majorant: None, ..solution }
    }

    fn start(&self) -> Result<Option<Start>> {
        fit::start(self.x, self.labels, self.request)
    }

    fn options(&self, start: Option<Start>) -> Options {
        let tol = self.parameters.common.tol;
        let tol = if self.exact { tol.min(self.affordable_gap()) } else { tol };
        let care = match (self.exact, &start) {
            (true, _) => Care::Full,
            (false, None) => Care::Rough,
            (false, Some(_)) => Care::Follow,
        };
        Options { care, store: self.store.cloned(), ..self.parameters.common.options(tol, start) }
    }

    /// A gap that costs next to nothing for data of that size, so that small fits are exact whatever the tolerance asked
    /// for: two ways of writing the same data give the same model, and the d.c. path is the exact one.
    fn affordable_gap(&self) -> f64 {
        let size = self.x.rows() * self.functions();
        // what selects variables pays by the column as well
        let size = if self.parameters.penalty.selects() { size.max(size * self.x.cols() / 20) } else { size };
        let kinks_and_curves = self.functions() > 1 && self.loss.base().is_smooth();
        let size = if kinks_and_curves { 10 * size } else { size };
        affordable_gap(size)
    }

    fn model(&self, solution: Solution) -> Result<Model> {
        let (labels, parameters) = (self.labels, self.parameters);
        let margins = fit::margins(labels, &solution.decision);
        let outliers: Vec<bool> = margins.iter().map(|&margin| self.loss.truncates(margin)).collect();
        let predictor = fit::predictor(self.x, labels, self.kernel, self.request, &solution)?;
        let summary = Summary {
            loss: self.loss.base().name().to_string(),
            truncation: self.loss.truncation(),
            penalty: parameters.penalty.name().to_string(),
            utility: self.payoff.filter(|payoff| !payoff.is_cost).map(|payoff| payoff.given.clone()),
            cost: self.payoff.filter(|payoff| payoff.is_cost).map(|payoff| payoff.given.clone()),
            cost_form: parameters.cost_form.name().to_string(),
            utility_baseline: parameters.utility_baseline.name().to_string(),
            solver_asked: parameters.solver.clone(),
            outliers: outliers.iter().filter(|&&outlier| outlier).count(),
            ..fit::summary("truncated", &parameters.common, labels, &solution)?
        };
        let mut summary = summary;
        if parameters.penalty == Penalty::Lq {
            summary.details.set("q", parameters.q);
        }
        let training = Training { margins, outliers, expansion: solution.expansion, eta: None, scores: None };
        Ok(Model { predictor, summary, training: Some(training) })
    }
}
