//! Fits to rows that come in chunks: what is asked for is checked, counted and handed to [`solver::stream`](crate::solver::stream).

mod capped;
mod lq;
mod truncated;

use super::common::LARGEST_CAP;
use super::{
    Baseline, ClassWeight, Common, CostForm, Details, Estimator, FitRequest, Function, Model, Predictor, Summary, fit,
};
use crate::control::Control;
use crate::data::{Chunk, Class, Dense, Labels};
use crate::error::{Error, Result, quoted};
use crate::problem::KernelFunction;
use crate::solver::Status;
use crate::solver::stream::{self, Passes, Streamed, Survey};

/// Fewest bytes a fit in chunks can do with.
const LEAST_MEMORY: usize = 1 << 24;

/// What goes into a fit in chunks beside the parameters and the rows.
///
/// [`Estimator::fit_chunks`] fits to rows that are read several times: data larger than memory. [`Truncated`](crate::Truncated) with the hinge loss,
/// [`Capped`](crate::Capped) with its own loss and [`Lq`](crate::Lq) do, with the linear kernel; the objective is that of a fit in memory to the same rows. The
/// model knows nothing about single rows.
///
/// ```
/// use outlast::data::{Chunk, Parts};
/// use outlast::model::StreamRequest;
/// use outlast::solver::stream::MOST_SENT;
/// use outlast::{Class, Control, Estimator, Kernel, Truncated};
///
/// let part = |x: [f32; 2], codes: [u32; 2]| Chunk { x: x.to_vec(), codes: codes.to_vec(), ..Chunk::default() };
/// let mut rows = Parts::new(1, vec![part([0.0, 1.0], [0, 0]), part([2.0, 3.0], [1, 1])]);
/// let classes = [Class::from("high"), Class::from("low")];
/// let request =
///     StreamRequest { classes: &classes, feature_names: None, memory: 1 << 26, sums: MOST_SENT, control: Control::default() };
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
    /// Numbers of a pass above which no matrices of all columns are sent, see [`stream::Task::sums`].
    pub sums: usize,
    /// Progress, interrupt, time limit.
    pub control: Control<'a>,
}

/// Rows of the sample that are fitted to find a start of the methods whose fits in memory take long, at most and at least, and the share of the memory
/// for that: the sample lies beside them.
const MOST_STARTING: usize = 20_000;
const LEAST_STARTING: usize = 100;
const STARTING_SHARE: (usize, usize) = (3, 5);

/// What all methods do first: checks, the survey, and what a row of each class weighs.
struct Prepared {
    survey: Survey,
    class_rows: Vec<usize>,
    factors: Option<Vec<f64>>,
    /// C x class weight.
    caps: Vec<f64>,
}

/// The outcome: rows so few that they are all here, or a survey.
enum First {
    Few(Chunk),
    Many(Box<Prepared>),
}

/// `starts`: whether the sample is for a start and nothing else, so that very many rows want no larger one.
fn prepare(common: &Common, rows: &mut dyn Passes, request: &StreamRequest, starts: bool) -> Result<First> {
    let k = request.classes.len();
    if k < 2 {
        let problem = format!("the rows are of {k} class; a classifier needs two classes");
        return Err(Error::Classes { problem });
    }
    let sampled = stream::sample_size(rows.cols(), k, request.memory, rows.rows().filter(|_| starts));
    let survey = stream::survey(rows, k, sampled, common.random_state, &request.control)?;
    if survey.is_whole() {
        return Ok(First::Few(survey.into_rows()));
    }
    let class_rows: Vec<usize> = survey.rows.iter().map(|&count| count as usize).collect();
    let factors = common.factors_for(&class_rows)?;
    let cap = |class: usize| common.c * factors.as_ref().map_or(1.0, |factors| factors[class]);
    let caps: Vec<f64> = (0..k).map(cap).collect();
    if let Some(empty) = (0..k).find(|&class| !(caps[class] * survey.weights[class] > 0.0)) {
        let class = quoted(&request.classes[empty].to_string());
        let problem = format!("class {class} has no row of positive weight; every class needs one");
        return Err(Error::Classes { problem });
    }
    if (0..k).any(|class| !(caps[class] * survey.largest_weights[class] < LARGEST_CAP)) {
        let allowed = format!("a number that is below {LARGEST_CAP:e} when multiplied by weights");
        return Err(Error::parameter("C", format_args!("{:?}", common.c), allowed));
    }
    Ok(First::Many(Box::new(Prepared { survey, class_rows, factors, caps })))
}

/// Checks what does not depend on the method.
fn check_request(rows: &dyn Passes, request: &StreamRequest) -> Result<()> {
    if rows.cols() == 0 {
        return Err(Error::shape("X", "0 columns", "at least 1"));
    }
    fit::check_class_count(request.classes.len())?;
    if request.memory < LEAST_MEMORY {
        let allowed = format!("at least {} MB", LEAST_MEMORY >> 20);
        return Err(Error::parameter("memory", format!("{} bytes", request.memory), allowed));
    }
    let (cols, classes) = (rows.cols(), request.classes.len());
    let needed = stream::least_memory(cols, classes);
    if request.memory < needed {
        let allowed = format!("at least {} MB for {cols} columns and {classes} classes", needed.div_ceil(1_000_000));
        return Err(Error::parameter("memory", format!("{} bytes", request.memory), allowed));
    }
    if request.feature_names.is_some_and(|names| names.len() != rows.cols()) {
        let found = format!("{} names", request.feature_names.map_or(0, <[String]>::len));
        return Err(Error::shape("feature_names", found, format!("{}, one per column of X", rows.cols())));
    }
    Ok(())
}

/// A fit in memory to rows that are few enough to be all in the sample.
fn in_memory(method: &dyn Estimator, few: Chunk, rows: &dyn Passes, request: &StreamRequest) -> Result<Model> {
    let (cols, shift) = (rows.cols(), rows.shift());
    let value = |(at, x): (usize, &f32)| f64::from(*x) + shift.get(at % cols).copied().unwrap_or(0.0);
    let values: Vec<f64> = few.x.iter().enumerate().map(value).collect();
    let x = Dense::new(few.rows(), cols, values)?;
    let labels = Labels::from_codes(request.classes.to_vec(), few.codes)?;
    let sample_weight = few.weights.iter().any(|weight| *weight != 1.0).then_some(&few.weights[..]);
    let (feature_names, control) = (request.feature_names, request.control);
    let mut model =
        method.fit_labels(&x, &labels, &FitRequest { sample_weight, feature_names, start: None, control })?;
    model.summary.details.set("passes", 1.0);
    model.predictor.support = Vec::new();
    model.predictor.coefficients = Vec::new();
    model.training = None;
    Ok(model)
}

impl Prepared {
    /// The model of a method on some rows of the sample, with C made larger by the rows that they stand for.
    fn on_sample<M: Estimator + Clone>(&self, method: &M, request: &StreamRequest) -> Result<Model> {
        let sample = self.survey.sample();
        let cols = sample.x.len() / sample.rows().max(1);
        let fit = method.footprint(cols, request.classes.len());
        let room = request.memory / STARTING_SHARE.1 * STARTING_SHARE.0;
        let most = fit.rows(room, MOST_STARTING).max(LEAST_STARTING);
        let rows = sample.rows().min(most);
        let growth = self.survey.total() as f64 / rows.max(1) as f64;
        let mut method = method.clone();
        let common = method.common_mut();
        common.c *= growth;
        common.class_weight = self.factors.clone().map_or(ClassWeight::Equal, ClassWeight::Given);
        let part = self.survey.part(0..rows);
        let (mut values, mut codes, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for view in part.views() {
            values.extend(view.x.iter().map(|x| f64::from(*x)));
            codes.extend_from_slice(view.codes);
            weights.extend((0..view.rows()).map(|row| view.weight(row)));
        }
        let x = Dense::new(codes.len(), cols, values)?;
        let labels = Labels::from_codes(request.classes.to_vec(), codes)?;
        let control = request.control.silent();
        let own = FitRequest { sample_weight: Some(&weights), feature_names: None, start: None, control };
        method.fit_labels(&x, &labels, &own)
    }

    /// The outcome as a model.
    fn model(self, common: &Common, found: Streamed, asked: Asked, cols: usize, request: &StreamRequest) -> Model {
        let mut details = asked.details;
        details.set("passes", found.passes as f64);
        let status = match found.status {
            Status::IterationLimit | Status::Inaccurate if found.gap <= common.tol => Status::Converged,
            status => status,
        };
        let summary = Summary {
            c: common.c,
            class_weight: self.factors,
            fit_intercept: common.fit_intercept,
            tol: common.tol,
            max_iter: common.max_iter,
            solver: found.solver.to_string(),
            rows: self.class_rows.iter().sum(),
            class_rows: self.class_rows,
            outliers: found.outliers as usize,
            objective: found.objective,
            steps: found.trace.len().saturating_sub(1),
            trace: found.trace,
            gap: fit::told_gap(found.gap),
            iterations: found.passes,
            status,
            details,
            ..asked.summary
        };
        let predictor = Predictor {
            classes: request.classes.to_vec(),
            feature_names: request.feature_names.map(<[String]>::to_vec),
            features: cols,
            kernel: KernelFunction::Linear,
            support: Vec::new(),
            coefficients: Vec::new(),
            function: Function::Linear { weights: found.weights },
            intercepts: found.intercepts,
            probabilities: None,
            votes: None,
            scaling: None,
        };
        Model { predictor, summary, training: None }
    }
}

/// What a method says of itself; the numbers of the fit are filled in.
struct Asked {
    summary: Summary,
    details: Details,
}

impl Asked {
    fn of(method: &str, loss: &str, penalty: &str, solver: &str) -> Asked {
        let summary = Summary {
            method: method.to_string(),
            c: 1.0,
            loss: loss.to_string(),
            truncation: None,
            penalty: penalty.to_string(),
            utility: None,
            cost: None,
            cost_form: CostForm::Utility.name().to_string(),
            utility_baseline: Baseline::Keep.name().to_string(),
            class_weight: None,
            fit_intercept: true,
            tol: 0.0,
            max_iter: 0,
            solver_asked: solver.to_string(),
            solver: String::new(),
            rows: 0,
            class_rows: Vec::new(),
            outliers: 0,
            objective: 0.0,
            trace: Vec::new(),
            steps: 0,
            gap: 0.0,
            iterations: 0,
            status: Status::Converged,
            details: Details::default(),
        };
        Asked { summary, details: Details::default() }
    }
}

/// w and b of a model, as a start.
fn start_of(model: Model) -> Vec<Vec<f64>> {
    match model.predictor.function {
        Function::Linear { weights } => vec![weights.into_iter().chain(model.predictor.intercepts).collect()],
        _ => Vec::new(),
    }
}

fn refuse(name: &'static str, value: String, allowed: &str) -> Result<()> {
    Err(Error::parameter(name, format!("{value} for rows in chunks"), allowed))
}
