//! The fit: Python's parameters into the core's, then through the gate.

use crate::errors::to_python;
use crate::fitted::Fitted;
use crate::gate;
use crate::matrix::Matrix;
use numpy::PyReadonlyArray1;
use outlast::{
    Baseline, Class, ClassWeight, CostForm, Error, FitRequest, Gamma, Kernel, Labels, Loss, Penalty, Truncated,
    Truncation,
};
use pyo3::prelude::*;

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

fn truncation(value: Option<NumberOrName>) -> outlast::Result<Truncation> {
    match value {
        None => Ok(Truncation::Off),
        Some(NumberOrName::Number(at)) => Ok(Truncation::At(at)),
        Some(NumberOrName::Name(name)) if name == "auto" => Ok(Truncation::Auto),
        Some(NumberOrName::Name(name)) => {
            Err(Error::parameter("truncation", format!("{name:?}"), "a finite number <= 0, \"auto\" or None"))
        }
    }
}

fn gamma(value: NumberOrName) -> outlast::Result<Gamma> {
    match value {
        NumberOrName::Number(value) => Ok(Gamma::Value(value)),
        NumberOrName::Name(name) => Gamma::from_name(&name),
    }
}

/// Fits a truncated-loss SVM.
///
/// `x` is a C-contiguous matrix of float64 or float32, or (indptr, indices, data, columns) of a CSR matrix; `codes` are
/// positions in `classes`. `utility` and `cost` are lists of rows, `class_weight` has one factor per class; `threads=None` means all cores. `progress` is called
/// as progress(stage, step, objective, gap); what it raises ends the fit.
#[pyfunction]
#[pyo3(signature = (x, codes, classes, *, c, truncation, loss, penalty, kernel, gamma, degree, coef0, utility, cost,
    cost_form, utility_baseline, class_weight, fit_intercept, tol, max_iter, cache_size, threads, random_state, solver, sample_weight=None, feature_names=None,
    start=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "every one is a named parameter of the estimator")]
pub fn fit(
    py: Python<'_>,
    x: Matrix<'_>,
    codes: PyReadonlyArray1<'_, u32>,
    classes: Vec<ClassName>,
    c: f64,
    truncation: Option<NumberOrName>,
    loss: &str,
    penalty: &str,
    kernel: &str,
    gamma: NumberOrName,
    degree: u32,
    coef0: f64,
    utility: Option<Vec<Vec<f64>>>,
    cost: Option<Vec<Vec<f64>>>,
    cost_form: &str,
    utility_baseline: &str,
    class_weight: Option<Vec<f64>>,
    fit_intercept: bool,
    tol: f64,
    max_iter: usize,
    cache_size: f64,
    threads: Option<usize>,
    random_state: u64,
    solver: String,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    feature_names: Option<Vec<String>>,
    start: Option<Py<Fitted>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Fitted> {
    let parameters = || {
        Ok(Truncated {
            c,
            truncation: self::truncation(truncation)?,
            loss: Loss::from_name(loss)?,
            penalty: Penalty::from_name(penalty)?,
            kernel: Kernel::from_name(kernel, self::gamma(gamma)?, degree, coef0)?,
            utility,
            cost,
            cost_form: CostForm::from_name(cost_form)?,
            utility_baseline: Baseline::from_name(utility_baseline)?,
            class_weight: class_weight.map_or(ClassWeight::Equal, ClassWeight::Given),
            fit_intercept,
            tol,
            max_iter,
            cache_size,
            // the gate's pool has the threads asked for
            threads: None,
            random_state,
            solver,
        })
    };
    let parameters: Truncated = parameters().map_err(to_python)?;
    let classes = classes.into_iter().map(Class::from).collect();
    let labels = Labels::from_codes(classes, codes.as_slice()?.to_vec()).map_err(to_python)?;
    let design = x.design()?;
    let sample_weight = sample_weight.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let start = start.as_ref().map(|start| &start.get().model);
    let feature_names = feature_names.as_deref();
    let model = gate::run(py, threads, progress, move |control| {
        let request = FitRequest { sample_weight, feature_names, start, control };
        parameters.fit_with(&*design, &labels, &request)
    })?;
    Ok(Fitted { model })
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
    let classes = classes.into_iter().map(Class::from).collect();
    let labels = Labels::from_codes(classes, codes.as_slice()?.to_vec()).map_err(to_python)?;
    let design = x.design()?;
    let weights = sample_weight.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let [q1, median, q3] = gate::run(py, threads, None, move |_| outlast::gamma_quartiles(&*design, &labels, weights))?;
    Ok((q1, median, q3))
}
