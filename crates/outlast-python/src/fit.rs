//! The fit: Python's parameters into the core's, then through the gate.

use crate::errors::to_python;
use crate::fitted::Fitted;
use crate::gate;
use crate::matrix::Matrix;
use numpy::PyReadonlyArray1;
use outlast::model::{AblationMethod, Common};
use outlast::select::tune::Tunable;
use outlast::{
    Ablation, Baseline, Cap, Capped, Centroid, Class, ClassWeight, CostForm, Error, Estimator, FeatureMap, FitRequest,
    Gamma, Inliers, Kernel, Labels, LeaveOneOut, Loss, Lq, Model, Penalty, Probability, Shift, Status, Truncated,
    Truncation,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::Duration;

/// A number, or the name of a rule that finds one.
#[derive(FromPyObject)]
pub enum NumberOrName {
    Number(f64),
    Name(String),
}

/// A class as a model file keeps it.
#[derive(FromPyObject, IntoPyObject)]
pub enum ClassName {
    Int(i64),
    Text(String),
}

impl From<ClassName> for Class {
    fn from(name: ClassName) -> Class {
        match name {
            ClassName::Int(value) => Class::Int(value),
            ClassName::Text(value) => Class::Text(value),
        }
    }
}

impl From<&Class> for ClassName {
    fn from(class: &Class) -> ClassName {
        match class {
            Class::Int(value) => ClassName::Int(*value),
            Class::Text(value) => ClassName::Text(value.clone()),
        }
    }
}

pub fn truncation(value: Option<NumberOrName>) -> outlast::Result<Truncation> {
    match value {
        None => Ok(Truncation::Off),
        Some(NumberOrName::Number(at)) => Ok(Truncation::At(at)),
        Some(NumberOrName::Name(name)) if name == "auto" => Ok(Truncation::Auto),
        Some(NumberOrName::Name(name)) => {
            Err(Error::parameter("truncation", format!("{name:?}"), "a finite number <= 0, \"auto\" or None"))
        }
    }
}

pub fn gamma(value: NumberOrName) -> outlast::Result<Gamma> {
    match value {
        NumberOrName::Number(value) => Ok(Gamma::Value(value)),
        NumberOrName::Name(name) => Gamma::from_name(&name),
    }
}

/// The parameters all methods share: a dict with these keys. `class_weight` has one factor per class.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct SharedParameters {
    c: f64,
    kernel: String,
    gamma: NumberOrName,
    degree: u32,
    coef0: f64,
    class_weight: Option<Vec<f64>>,
    fit_intercept: bool,
    tol: f64,
    max_iter: usize,
    cache_size: f64,
    random_state: u64,
}

impl SharedParameters {
    fn common(self) -> outlast::Result<Common> {
        Ok(Common {
            c: self.c,
            kernel: Kernel::from_name(&self.kernel, gamma(self.gamma)?, self.degree, self.coef0)?,
            class_weight: self.class_weight.map_or(ClassWeight::Equal, ClassWeight::Given),
            fit_intercept: self.fit_intercept,
            tol: self.tol,
            max_iter: self.max_iter,
            cache_size: self.cache_size,
            // the gate's pool has the threads asked for
            threads: None,
            random_state: self.random_state,
        })
    }
}

/// The parameters of one method: a dict with the keys of its own beside the shared ones. `utility` and `cost` are lists of
/// rows.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct TruncatedParameters {
    truncation: Option<NumberOrName>,
    loss: String,
    penalty: String,
    q: f64,
    utility: Option<Vec<Vec<f64>>>,
    cost: Option<Vec<Vec<f64>>>,
    cost_form: String,
    utility_baseline: String,
    global_search: bool,
    probability: String,
    solver: String,
}

impl TruncatedParameters {
    fn with(self, common: Common) -> outlast::Result<Truncated> {
        Ok(Truncated {
            common,
            truncation: truncation(self.truncation)?,
            loss: Loss::from_name(&self.loss)?,
            penalty: Penalty::from_name(&self.penalty)?,
            q: self.q,
            utility: self.utility,
            cost: self.cost,
            cost_form: CostForm::from_name(&self.cost_form)?,
            utility_baseline: Baseline::from_name(&self.utility_baseline)?,
            global_search: self.global_search,
            probability: Probability::from_name(&self.probability)?,
            solver: self.solver,
        })
    }
}

/// As [`TruncatedParameters`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct AblationParameters {
    inlier_fraction: NumberOrName,
    refine: bool,
}

impl AblationParameters {
    fn with(self, common: Common, method: AblationMethod) -> outlast::Result<Ablation> {
        let inlier_fraction = match self.inlier_fraction {
            NumberOrName::Number(share) => Inliers::Given(share),
            NumberOrName::Name(name) => Inliers::from_name(&name)?,
        };
        Ok(Ablation { common, method, inlier_fraction, refine: self.refine })
    }
}

/// As [`TruncatedParameters`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct LqParameters {
    q: f64,
    cost: Option<Vec<Vec<f64>>>,
    solver: String,
    feature_map: String,
}

impl LqParameters {
    pub fn with(self, common: Common) -> outlast::Result<Lq> {
        let feature_map = FeatureMap::from_name(&self.feature_map)?;
        Ok(Lq { common, q: self.q, cost: self.cost, feature_map, solver: self.solver })
    }
}

/// As [`TruncatedParameters`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct CappedParameters {
    p: f64,
    cap: NumberOrName,
    cap_fraction: f64,
    loss: String,
    solver: String,
}

impl CappedParameters {
    fn with(self, common: Common) -> outlast::Result<Capped> {
        let cap = match self.cap {
            NumberOrName::Number(cap) => Cap::At(cap),
            NumberOrName::Name(name) => Cap::from_name(&name)?,
        };
        let CappedParameters { p, cap_fraction, loss, solver, .. } = self;
        Ok(Capped { common, power: p, cap, cap_fraction, loss, solver })
    }
}

/// As [`TruncatedParameters`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct CentroidParameters {
    shift: NumberOrName,
}

impl CentroidParameters {
    fn with(self, common: Common) -> outlast::Result<Centroid> {
        let shift = match self.shift {
            NumberOrName::Number(shift) => Shift::By(shift),
            NumberOrName::Name(name) if name == "auto" => Shift::Auto,
            NumberOrName::Name(name) => {
                return Err(Error::parameter("shift", format!("{name:?}"), "a finite number >= 0, or \"auto\""));
            }
        };
        Ok(Centroid { common, shift })
    }
}

/// As [`TruncatedParameters`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct LeaveOneOutParameters {
    factor: f64,
}

/// The shared parameters of a dict.
pub fn shared(parameters: &Bound<'_, PyAny>) -> PyResult<Common> {
    parameters.extract::<SharedParameters>()?.common().map_err(to_python)
}

/// The method of that name with the parameters of a dict, of those that a search can run over.
pub fn tunable(name: &str, parameters: &Bound<'_, PyAny>) -> PyResult<Box<dyn Tunable + Send>> {
    let common = shared(parameters)?;
    Ok(match name {
        "truncated" => Box::new(parameters.extract::<TruncatedParameters>()?.with(common).map_err(to_python)?),
        "reh" | "rod" => {
            let form = AblationMethod::from_name(name).map_err(to_python)?;
            Box::new(parameters.extract::<AblationParameters>()?.with(common, form).map_err(to_python)?)
        }
        "capped" => Box::new(parameters.extract::<CappedParameters>()?.with(common).map_err(to_python)?),
        other => return Err(PyValueError::new_err(format!("there is no method {other:?}"))),
    })
}

/// The method of that name with the parameters of a dict.
pub fn method(name: &str, parameters: &Bound<'_, PyAny>) -> PyResult<Box<dyn Estimator + Send>> {
    if ["truncated", "capped", "reh", "rod"].contains(&name) {
        return Ok(tunable(name, parameters)?);
    }
    let common = shared(parameters)?;
    let method: Box<dyn Estimator + Send> = match name {
        "lq" => Box::new(parameters.extract::<LqParameters>()?.with(common).map_err(to_python)?),
        "centroid" => Box::new(parameters.extract::<CentroidParameters>()?.with(common).map_err(to_python)?),
        "loo" => Box::new(LeaveOneOut { common, factor: parameters.extract::<LeaveOneOutParameters>()?.factor }),
        other => return Err(PyValueError::new_err(format!("there is no method {other:?}"))),
    };
    Ok(method)
}

/// Fits.
///
/// `x` is a matrix of float64 or float32 in C or Fortran order, or (indptr, indices, data, columns) of a CSR matrix; `codes` are
/// positions in `classes`. `threads=None` means all cores, `time_limit` is in seconds. `progress` is called as
/// progress(stage, step, objective, gap); what it raises ends the fit, and something true that it returns ends it with the
/// best so far.
#[pyfunction]
#[pyo3(signature = (x, codes, classes, method, parameters, *, threads=None, sample_weight=None, feature_names=None,
    start=None, time_limit=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "every one is a named argument in Python")]
pub fn fit(
    py: Python<'_>,
    x: Matrix<'_>,
    codes: PyReadonlyArray1<'_, u32>,
    classes: Vec<ClassName>,
    method: &str,
    parameters: &Bound<'_, PyAny>,
    threads: Option<usize>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    feature_names: Option<Vec<String>>,
    start: Option<Py<Fitted>>,
    time_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Fitted> {
    // this method's solvers ask for another order where they need it
    let design = if method == "truncated" { x.as_stored() } else { x.design() }?;
    let method = self::method(method, parameters)?;
    let labels = labels(classes, &codes)?;
    let sample_weight = sample_weight.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let start = start.as_ref().map(|start| &start.get().model);
    let feature_names = feature_names.as_deref();
    let limit = time_limit.map(seconds).transpose()?;
    let model = gate::run(py, threads, progress, best_so_far, move |control| {
        let control = limit.map_or(control, |limit| control.time_limit(limit));
        method.fit_labels(&*design, &labels, &FitRequest { sample_weight, feature_names, start, control })
    })?;
    Ok(Fitted { model })
}

/// Whether a search that was stopped has an answer all the same.
fn best_so_far(model: &Model) -> bool {
    model.summary.status == Status::Interrupted
}

pub fn labels(classes: Vec<ClassName>, codes: &PyReadonlyArray1<'_, u32>) -> PyResult<Labels> {
    let classes = classes.into_iter().map(Class::from).collect();
    Labels::from_codes(classes, codes.as_slice()?.to_vec()).map_err(to_python)
}

/// Labels of other rows, as positions among the same classes.
pub fn labels_of(labels: &Labels, codes: &PyReadonlyArray1<'_, u32>) -> PyResult<Labels> {
    Labels::from_codes(labels.classes().to_vec(), codes.as_slice()?.to_vec()).map_err(to_python)
}

pub fn seconds(limit: f64) -> PyResult<Duration> {
    let refuse = || to_python(Error::parameter("time_limit", limit, "a number of seconds > 0, or None"));
    Duration::try_from_secs_f64(limit).ok().filter(|limit| !limit.is_zero()).ok_or_else(refuse)
}

/// The widths of an rbf kernel worth trying: gamma by the lower quartile, the median and the upper quartile of the
/// distances between rows of different classes.
#[pyfunction]
#[pyo3(signature = (x, codes, classes, sample_weight=None, threads=None))]
pub fn gamma_quartiles(
    py: Python<'_>,
    x: Matrix<'_>,
    codes: PyReadonlyArray1<'_, u32>,
    classes: Vec<ClassName>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    threads: Option<usize>,
) -> PyResult<(f64, f64, f64)> {
    let labels = labels(classes, &codes)?;
    let design = x.design()?;
    let weights = sample_weight.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let [q1, median, q3] =
        gate::run(py, threads, None, |_| false, move |_| outlast::gamma_quartiles(&*design, &labels, weights))?;
    Ok((q1, median, q3))
}
