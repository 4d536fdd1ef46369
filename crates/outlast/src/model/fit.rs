//! The fit: from checked parameters, rows and labels to a problem, its solution, and a [`Model`].
//!
//! Two classes give one decision function; a payoff matrix then gives every row two terms, each a row of its own. More
//! classes give one function per class. Where a solver has no reduced form for several terms per row (smooth losses, the l1
//! penalty), each term becomes a row of its own as well, and the solution is added up over a row's terms.

use super::payoff::Payoff;
use super::{FitRequest, Function, Model, Predictor, Rows, Summary, Training, Truncated};
use crate::data::{Design, Labels, Repeated, check_weights};
use crate::error::{Error, Result, quoted};
use crate::problem::{KernelFunction, Loss, ManyClass, Norm, Penalty, Problem, Terms, TwoClass};
use crate::solver::{self, Options, Solution, Start, Status};

/// Most classes a joint fit takes.
const MOST_CLASSES: usize = 1000;

pub(super) fn check_shapes(x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<()> {
    if x.rows() == 0 {
        return Err(Error::shape("X", "0 rows", "at least 2"));
    }
    if x.cols() == 0 {
        return Err(Error::shape("X", "0 columns", "at least 1"));
    }
    if x.rows() > u32::MAX as usize - 64 {
        return Err(Error::shape("X", format!("{} rows", x.rows()), "fewer than 2^32"));
    }
    if labels.len() != x.rows() {
        return Err(Error::shape("y", format!("{} labels", labels.len()), format!("{}, one per row of X", x.rows())));
    }
    match labels.classes() {
        [only] => {
            let only = quoted(&only.to_string());
            let problem = format!("every row is of class {only}; a classifier needs two classes");
            return Err(Error::Classes { problem });
        }
        classes if classes.len() > MOST_CLASSES => {
            let problem = format!(
                "y has {} distinct values; a classifier takes at most {MOST_CLASSES} classes (is y a number to predict?)",
                classes.len()
            );
            return Err(Error::Classes { problem });
        }
        _ => {}
    }
    if let Some(names) = request.feature_names
        && names.len() != x.cols()
    {
        let found = format!("{} names", names.len());
        return Err(Error::shape("feature_names", found, format!("{}, one per column of X", x.cols())));
    }
    request.sample_weight.map_or(Ok(()), |weights| check_weights(weights, x.rows()))
}

/// Every class must keep some weight.
pub(super) fn check_class_weights(labels: &Labels, weights: &[f64]) -> Result<()> {
    let mut total = vec![0.0; labels.classes().len()];
    for (&code, weight) in labels.codes().iter().zip(weights) {
        total[code as usize] += weight;
    }
    match total.iter().position(|&total| total == 0.0) {
        None => Ok(()),
        Some(empty) => {
            let class = quoted(&labels.classes()[empty].to_string());
            let problem = format!("class {class} has no row of positive weight; every class needs one");
            Err(Error::Classes { problem })
        }
    }
}

/// Runs `work` on that many threads, or on the global pool.
pub(super) fn in_pool<T: Send>(threads: Option<usize>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let Some(threads) = threads else { return work() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    match pool {
        Ok(pool) => pool.install(work),
        Err(error) => {
            Err(Error::parameter("n_jobs", threads, format!("a number of threads the system can start ({error})")))
        }
    }
}

/// Fits.
pub(super) fn run(
    parameters: &Truncated,
    payoff: Option<&Payoff>,
    x: &dyn Design,
    labels: &Labels,
    request: &FitRequest,
) -> Result<Model> {
    x.check_finite()?;
    let loss = parameters.truncated_loss(labels.classes().len())?;
    let caps = parameters.caps(labels, request.sample_weight)?;
    let kernel = parameters.kernel.resolve(x, labels, request.sample_weight)?;
    let task = Task { parameters, payoff, x, labels, loss, caps: &caps, kernel: &kernel, request };
    let split =
        payoff.is_some() && (labels.classes().len() == 2 || loss.base().is_smooth() || parameters.penalty.selects());
    let solution = if split { task.solve_by_terms()? } else { task.solve()? };
    task.model(solution)
}

/// Everything a fit needs, checked.
struct Task<'a> {
    parameters: &'a Truncated,
    payoff: Option<&'a Payoff>,
    x: &'a dyn Design,
    labels: &'a Labels,
    loss: Loss,
    caps: &'a [f64],
    kernel: &'a KernelFunction,
    request: &'a FitRequest<'a>,
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
    fn classes(&self) -> usize {
        self.labels.classes().len()
    }

    fn functions(&self) -> usize {
        if self.classes() == 2 { 1 } else { self.classes() }
    }

    fn solve(&self) -> Result<Solution> {
        let codes = self.labels.codes();
        let start = self.start()?;
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
                intercept: self.parameters.fit_intercept,
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
            intercept: self.parameters.fit_intercept,
        };
        self.solve_problem(Problem::Many(many), start)
    }

    /// Solves with the penalty asked for.
    fn solve_problem(&self, problem: Problem, start: Option<Start>) -> Result<Solution> {
        let options = self.options(start);
        let coefficients = problem.functions() * problem.x().cols();
        let rates = match self.parameters.penalty {
            Penalty::L2 => return self.solve_with(problem, &self.parameters.solver, &options),
            Penalty::L1 => vec![1.0; coefficients],
            Penalty::AdaptiveL1 => {
                // weights from the l2 fit with the same loss and C; where that has none, the coefficient stays 0
                let pilot = self.solve_with(problem, "auto", &options)?;
                let weights =
                    pilot.weights.unwrap_or_else(|| combine(problem.x(), &pilot.expansion, problem.functions()));
                weights.iter().map(|w| 1.0 / w.abs()).collect()
            }
        };
        self.solve_with(problem.with_norm(Norm::Absolute(&rates)), &self.parameters.solver, &options)
    }

    fn solve_with(&self, problem: Problem, solver: &str, options: &Options) -> Result<Solution> {
        let name = solver::choose(solver, &problem)?;
        let mut solution = solver::solve(name, &problem, options, &self.request.control)?;
        if solution.status == Status::Inaccurate && solution.gap <= self.parameters.tol {
            // small fits aim higher than they were asked to
            solution.status = Status::Converged;
        }
        Ok(solution)
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
        let Some(model) = self.request.start else { return Ok(None) };
        let Some(training) = &model.training else {
            return Err(Error::shape("start", "no training rows", "a model fitted in this process"));
        };
        let (rows, functions) = (self.x.rows(), self.functions());
        if model.predictor.functions() != functions {
            let found = format!("{} classes", model.predictor.classes.len());
            return Err(Error::shape("start", found, format!("{}, as y has", self.classes())));
        }
        if training.expansion.len() != rows * functions {
            let found = format!("{} training rows", training.expansion.len() / functions);
            return Err(Error::shape("start", found, format!("{rows}, as X has")));
        }
        Ok(Some(Start {
            expansion: training.expansion.clone(),
            weights: model.predictor.weights().map(<[f64]>::to_vec),
            intercepts: model.predictor.intercepts.clone(),
        }))
    }

    fn options(&self, start: Option<Start>) -> Options {
        Options {
            tolerance: self.parameters.tol.min(self.affordable_gap()),
            max_steps: self.parameters.max_iter,
            cache_bytes: (self.parameters.cache_size * 1e6) as usize,
            seed: self.parameters.random_state,
            start,
            ..Options::default()
        }
    }

    /// A gap that costs next to nothing for data of that size, so that small fits are exact whatever the tolerance asked
    /// for: two ways of writing the same data give the same model, and the d.c. path is the exact one.
    fn affordable_gap(&self) -> f64 {
        let size = self.x.rows() * self.functions();
        // what selects variables pays by the column as well
        let size = if self.parameters.penalty.selects() { size.max(size * self.x.cols() / 20) } else { size };
        let kinks_and_curves = self.functions() > 1 && self.loss.base().is_smooth();
        let size = if kinks_and_curves { 10 * size } else { size };
        match size {
            0..=1000 => 1e-10,
            1001..=4000 => 1e-7,
            _ => f64::INFINITY,
        }
    }

    /// The margin of each row's own class.
    fn margins(&self, decision: &[f64]) -> Vec<f64> {
        let codes = self.labels.codes().iter();
        match self.functions() {
            1 => codes.zip(decision).map(|(&code, f)| if code == 1 { *f } else { -f }).collect(),
            m => codes.zip(decision.chunks_exact(m)).map(|(&code, f)| ManyClass::margin(f, code as usize)).collect(),
        }
    }

    fn model(&self, solution: Solution) -> Result<Model> {
        let (x, labels, parameters) = (self.x, self.labels, self.parameters);
        let m = self.functions();
        let of_row = |row: u32| row as usize * m..(row as usize + 1) * m;
        let support: Vec<u32> =
            (0..x.rows() as u32).filter(|&row| solution.expansion[of_row(row)].iter().any(|&v| v != 0.0)).collect();
        let coefficients: Vec<f64> =
            support.iter().flat_map(|&row| solution.expansion[of_row(row)].iter().copied()).collect();
        let function = match self.kernel {
            KernelFunction::Linear => {
                Function::Linear { weights: solution.weights.unwrap_or_else(|| combine(x, &solution.expansion, m)) }
            }
            KernelFunction::Precomputed => Function::Precomputed,
            _ => Function::Kernel { rows: Rows::copy(x, &support)? },
        };
        let margins = self.margins(&solution.decision);
        let outliers: Vec<bool> = margins.iter().map(|&margin| self.loss.truncates(margin)).collect();
        let summary = Summary {
            method: "truncated".to_string(),
            c: parameters.c,
            loss: self.loss.base().name().to_string(),
            truncation: self.loss.truncation(),
            penalty: parameters.penalty.name().to_string(),
            utility: self.payoff.filter(|payoff| !payoff.is_cost).map(|payoff| payoff.given.clone()),
            cost: self.payoff.filter(|payoff| payoff.is_cost).map(|payoff| payoff.given.clone()),
            cost_form: parameters.cost_form.name().to_string(),
            utility_baseline: parameters.utility_baseline.name().to_string(),
            class_weight: parameters.class_factors(labels)?,
            fit_intercept: parameters.fit_intercept,
            tol: parameters.tol,
            max_iter: parameters.max_iter,
            solver_asked: parameters.solver.clone(),
            solver: solution.solver.to_string(),
            rows: x.rows(),
            class_rows: labels.counts(),
            outliers: outliers.iter().filter(|&&outlier| outlier).count(),
            objective: solution.objective,
            steps: solution.trace.len().saturating_sub(1),
            trace: solution.trace,
            gap: solution.gap,
            iterations: solution.iterations,
            status: solution.status,
        };
        let predictor = Predictor {
            classes: labels.classes().to_vec(),
            feature_names: self.request.feature_names.map(<[String]>::to_vec),
            features: x.cols(),
            kernel: self.kernel.clone(),
            support,
            coefficients,
            function,
            intercepts: solution.intercepts,
        };
        let training = Training { margins, outliers, expansion: solution.expansion };
        Ok(Model { predictor, summary, training: Some(training) })
    }
}

/// sum_i expansion_ij x_i, functions x columns
fn combine(x: &dyn Design, expansion: &[f64], functions: usize) -> Vec<f64> {
    let cols = x.cols();
    let mut weights = vec![0.0; functions * cols];
    for (row, coefficients) in expansion.chunks_exact(functions).enumerate() {
        for (coefficient, out) in coefficients.iter().zip(weights.chunks_exact_mut(cols)) {
            if *coefficient != 0.0 {
                x.add_scaled(row, *coefficient, out);
            }
        }
    }
    weights
}
