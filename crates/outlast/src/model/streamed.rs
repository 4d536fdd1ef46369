//! Fits to rows that come in chunks: what is asked for is checked, counted and handed to [`solver::stream`](crate::solver::stream).

use super::common::LARGEST_CAP;
use super::payoff::Payoff;
use super::{CostForm, Details, Estimator, Function, Model, Predictor, Probability, Summary, Truncated, fit};
use crate::control::Control;
use crate::data::{Chunk, Chunks, Class};
use crate::error::{Error, Result, quoted};
use crate::problem::{Kernel, KernelFunction, Penalty};
use crate::solver::stream::{self, Task};
use crate::solver::{Options, Status};

/// Fewest bytes a fit in chunks can do with.
const LEAST_MEMORY: usize = 1 << 24;

/// What goes into a fit in chunks beside the parameters and the rows.
///
/// [`Estimator::fit_chunks`] fits to rows that are read several times: data larger than memory. [`Truncated`] with the linear kernel, the
/// hinge loss and the l2 penalty does; the objective is that of a fit in memory to the same rows. The model knows nothing about
/// single rows.
///
/// ```
/// use outlast::data::{Chunk, Parts};
/// use outlast::model::StreamRequest;
/// use outlast::{Class, Control, Estimator, Kernel, Truncated};
///
/// let part = |x: [f32; 2], codes: [u32; 2]| Chunk { x: x.to_vec(), codes: codes.to_vec(), ..Chunk::default() };
/// let mut rows = Parts::new(1, vec![part([0.0, 1.0], [0, 0]), part([2.0, 3.0], [1, 1])]);
/// let classes = [Class::from("high"), Class::from("low")];
/// let request =
///     StreamRequest { classes: &classes, feature_names: None, memory: 1 << 26, control: Control::default() };
/// let model = Truncated::new(10.0).kernel(Kernel::Linear).fit_chunks(&mut rows, &request)?;
/// assert_eq!(model.summary.rows, 4);
/// # Ok::<(), outlast::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct StreamRequest<'a> {
    /// The classes, sorted, as the chunks' codes name them.
    pub classes: &'a [Class],
    /// Names of the columns.
    pub feature_names: Option<&'a [String]>,
    /// Bytes that may be used beside a chunk, at least 16 MB.
    pub memory: usize,
    /// Progress, interrupt, time limit.
    pub control: Control<'a>,
}

/// Rows and weights of each class.
struct Counts {
    rows: Vec<usize>,
    weights: Vec<f64>,
    largest: Vec<f64>,
}

impl Truncated {
    /// [`Estimator::fit_chunks`] of this method.
    pub(super) fn stream(&self, rows: &mut dyn Chunks, request: &StreamRequest) -> Result<Model> {
        self.check()?;
        self.check_streamed()?;
        if rows.cols() == 0 {
            return Err(Error::shape("X", "0 columns", "at least 1"));
        }
        if request.memory < LEAST_MEMORY {
            let allowed = format!("at least {} MB", LEAST_MEMORY >> 20);
            return Err(Error::parameter("memory", format!("{} bytes", request.memory), allowed));
        }
        if request.feature_names.is_some_and(|names| names.len() != rows.cols()) {
            let found = format!("{} names", request.feature_names.map_or(0, <[String]>::len));
            return Err(Error::shape("feature_names", found, format!("{}, one per column of X", rows.cols())));
        }
        let payoff = Payoff::of(self, request.classes)?;
        fit::in_pool(self.common.threads, || self.streamed(rows, request, payoff))
    }

    fn streamed(&self, rows: &mut dyn Chunks, request: &StreamRequest, payoff: Option<Payoff>) -> Result<Model> {
        let k = request.classes.len();
        let counts = count(rows, request)?;
        let factors = self.common.factors_for(&counts.rows)?;
        let cap = |class: usize| self.common.c * factors.as_ref().map_or(1.0, |factors| factors[class]);
        if let Some(empty) = (0..k).find(|&class| !(cap(class) * counts.weights[class] > 0.0)) {
            let class = quoted(&request.classes[empty].to_string());
            let problem = format!("class {class} has no row of positive weight; every class needs one");
            return Err(Error::Classes { problem });
        }
        if (0..k).any(|class| !(cap(class) * counts.largest[class] < LARGEST_CAP)) {
            let allowed = format!("a number that is below {LARGEST_CAP:e} when multiplied by weights");
            return Err(Error::parameter("C", format_args!("{:?}", self.common.c), allowed));
        }
        let terms = |class: usize| -> Vec<(u32, f64)> {
            let Some(payoff) = &payoff else { return vec![(class as u32, cap(class))] };
            let own = (0..k).map(|other| (other as u32, cap(class) * payoff.factors[class * k + other]));
            own.filter(|(_, cap)| *cap > 0.0).collect()
        };
        let task = Task {
            classes: k,
            terms: (0..k).map(terms).collect(),
            loss: self.truncated_loss(k)?,
            intercept: self.common.fit_intercept,
            memory: request.memory,
        };
        let options: Options = self.common.options(self.common.tol, None);
        let found = stream::solve(rows, &task, &options, &request.control)?;
        let mut details = Details::default();
        details.set("passes", found.passes as f64);
        let status = match found.status {
            Status::IterationLimit | Status::Inaccurate if found.gap <= self.common.tol => Status::Converged,
            status => status,
        };
        let summary = Summary {
            method: "truncated".to_string(),
            c: self.common.c,
            loss: task.loss.base().name().to_string(),
            truncation: task.loss.truncation(),
            penalty: self.penalty.name().to_string(),
            utility: payoff.as_ref().filter(|payoff| !payoff.is_cost).map(|payoff| payoff.given.clone()),
            cost: payoff.as_ref().filter(|payoff| payoff.is_cost).map(|payoff| payoff.given.clone()),
            cost_form: self.cost_form.name().to_string(),
            utility_baseline: self.utility_baseline.name().to_string(),
            class_weight: factors,
            fit_intercept: self.common.fit_intercept,
            tol: self.common.tol,
            max_iter: self.common.max_iter,
            solver_asked: self.solver.clone(),
            solver: stream::NAME.to_string(),
            rows: counts.rows.iter().sum(),
            class_rows: counts.rows,
            outliers: found.outliers as usize,
            objective: found.objective,
            steps: found.trace.len().saturating_sub(1),
            trace: found.trace,
            gap: found.gap,
            iterations: found.passes,
            status,
            details,
        };
        let predictor = Predictor {
            classes: request.classes.to_vec(),
            feature_names: request.feature_names.map(<[String]>::to_vec),
            features: rows.cols(),
            kernel: KernelFunction::Linear,
            support: Vec::new(),
            coefficients: Vec::new(),
            function: Function::Linear { weights: found.weights },
            intercepts: found.intercepts,
            probabilities: None,
            votes: None,
            scaling: None,
        };
        Ok(Model { predictor, summary, training: None })
    }

    /// What a fit in chunks does not know is refused by name.
    pub(super) fn check_streamed(&self) -> Result<()> {
        let refuse = |name: &'static str, value: String, allowed: &str| {
            Err(Error::parameter(name, format!("{value} for rows in chunks"), allowed))
        };
        match () {
            _ if !matches!(self.common.kernel, Kernel::Linear) => {
                refuse("kernel", format!("{:?}", self.common.kernel.name()), "\"linear\"")
            }
            _ if self.loss.base().name() != "hinge" => {
                refuse("loss", format!("{:?}", self.loss.base().name()), "\"hinge\"")
            }
            _ if self.penalty != Penalty::L2 => refuse("penalty", format!("{:?}", self.penalty.name()), "\"l2\""),
            _ if self.cost_form == CostForm::Direct => refuse("cost_form", "\"direct\"".to_string(), "\"utility\""),
            _ if self.global_search => refuse("global_search", "on".to_string(), "off"),
            _ if self.probability != Probability::Off => refuse("probability", "on".to_string(), "off"),
            _ if !matches!(self.solver.as_str(), "auto" | stream::NAME) => {
                refuse("solver", format!("{:?}", self.solver), "\"auto\"")
            }
            _ => Ok(()),
        }
    }
}

/// A pass that counts the classes.
fn count(rows: &mut dyn Chunks, request: &StreamRequest) -> Result<Counts> {
    let k = request.classes.len();
    if k < 2 {
        let problem = format!("the rows are of {k} class; a classifier needs two classes");
        return Err(Error::Classes { problem });
    }
    let mut counts = Counts { rows: vec![0; k], weights: vec![0.0; k], largest: vec![0.0; k] };
    let mut chunk = Chunk::default();
    rows.rewind()?;
    while rows.next(&mut chunk)? {
        request.control.check()?;
        for (row, &code) in chunk.codes.iter().enumerate() {
            // a code beyond the classes is refused by the survey of the rows
            if let Some(count) = counts.rows.get_mut(code as usize) {
                *count += 1;
                let weight = chunk.weight(row);
                counts.weights[code as usize] += weight;
                counts.largest[code as usize] = weight.max(counts.largest[code as usize]);
            }
        }
    }
    Ok(counts)
}
