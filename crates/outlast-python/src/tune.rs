//! The choice of parameters by data, for the methods that share one search.

use crate::errors::to_python;
use crate::fit::{self, ClassName, NumberOrName};
use crate::fitted::Fitted;
use crate::gate;
use crate::matrix::Matrix;
use crate::search::Judge;
use numpy::{PyArray1, PyReadonlyArray1};
use outlast::select::tune::{self as select, Rule, Setting};
use outlast::{ClassWeight, Error, FitRequest, Status, Tune, Tuned};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Names of the parameters that a search can run over.
const NAMES: [&str; 9] = ["penalty", "q", "truncation", "p", "cap", "cap_fraction", "inlier_fraction", "gamma", "C"];

/// How to search: a dict with these keys. `balanced` weighs the classes of each training part.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct SearchOptions {
    pub holdout: Option<f64>,
    pub standardize: bool,
    pub rule: String,
    early_stopping: bool,
    halving: bool,
    pub nested: Option<usize>,
    exact: bool,
    pub balanced: bool,
}

fn setting(value: Option<NumberOrName>) -> Setting {
    match value {
        None => Setting::Nothing,
        Some(NumberOrName::Number(number)) => Setting::Number(number),
        Some(NumberOrName::Name(name)) => Setting::Name(name),
    }
}

/// Chooses parameters of a method; returns the model and a dict of what was found on the way. `parameters` as for `fit`; `grid` holds
/// pairs of a parameter's name and its values, those left out being the defaults.
#[pyfunction]
#[pyo3(signature = (x, codes, classes, method, parameters, grid, judge, options, *, threads=None, sample_weight=None,
    feature_names=None, time_limit=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "every one is a named argument in Python")]
pub fn tune<'py>(
    py: Python<'py>,
    x: Matrix<'_>,
    codes: PyReadonlyArray1<'_, u32>,
    classes: Vec<ClassName>,
    method: &str,
    parameters: &Bound<'_, PyAny>,
    grid: Vec<(String, Vec<Option<NumberOrName>>)>,
    judge: Judge<'_>,
    options: SearchOptions,
    threads: Option<usize>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    feature_names: Option<Vec<String>>,
    time_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Fitted, Bound<'py, PyDict>)> {
    let mut search = Tune::of(fit::tunable(method, parameters)?)
        .standardize(options.standardize)
        .rule(Rule::from_name(&options.rule).map_err(to_python)?)
        .early_stop(options.early_stopping)
        .halving(options.halving)
        .nested(options.nested)
        .exact(options.exact);
    if options.balanced {
        search.method.common_mut().class_weight = ClassWeight::Balanced;
    }
    for (name, values) in grid {
        let Some(known) = NAMES.iter().find(|known| **known == name) else {
            return Err(to_python(Error::parameter(
                "grid",
                format!("{name:?}"),
                format!("one of {}", NAMES.join(", ")),
            )));
        };
        search = search.over(known, values.into_iter().map(setting));
    }
    let labels = fit::labels(classes, &codes)?;
    let design = x.design()?;
    let sample_weight = sample_weight.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let feature_names = feature_names.as_deref();
    let limit = time_limit.map(fit::seconds).transpose()?;
    let (judge, held) = judge.chosen(options.holdout, &labels)?;
    let search = search.judge(judge);
    let best_so_far = |tuned: &Tuned| tuned.status == Status::Interrupted;
    let tuned = gate::run(py, threads, progress, best_so_far, move |control| {
        let control = limit.map_or(control, |limit| control.time_limit(limit));
        let request = FitRequest { sample_weight, feature_names, start: None, control };
        match &held {
            Some((x, y)) => search.fit_tuned(&*design, &labels, (&**x, y), &request),
            None => search.fit_with(&*design, &labels, &request),
        }
    })?;
    let found = described(py, &tuned)?;
    Ok((Fitted { model: tuned.model }, found))
}

/// What was found, as Python takes it. Numbers that are compared are better when they are less.
pub fn described<'py>(py: Python<'py>, tuned: &Tuned) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    let names: Vec<&str> = tuned.axes.iter().map(|axis| axis.name).collect();
    let sizes: Vec<usize> = tuned.axes.iter().map(|axis| axis.values.len()).collect();
    found.set_item("names", names)?;
    found.set_item("sizes", sizes)?;
    let points: Vec<Bound<'py, PyList>> =
        tuned.cells.iter().map(|cell| settings(py, &cell.settings)).collect::<PyResult<_>>()?;
    found.set_item("points", points)?;
    let numbers = |of: &dyn Fn(&select::Cell) -> f64| PyArray1::from_vec(py, tuned.cells.iter().map(of).collect());
    found.set_item("means", numbers(&|cell| cell.mean))?;
    found.set_item("standard_errors", numbers(&|cell| cell.standard_error))?;
    found.set_item("shares", numbers(&|cell| cell.share))?;
    let errors = tuned.cells.iter().flat_map(|cell| cell.errors.iter().copied()).collect();
    found.set_item("errors", PyArray1::from_vec(py, errors))?;
    found.set_item("states", tuned.cells.iter().map(|cell| cell.state.name()).collect::<Vec<_>>())?;
    found.set_item("chosen", tuned.chosen)?;
    found.set_item("splits", tuned.splits)?;
    found.set_item("measure", tuned.measure.name())?;
    found.set_item("status", tuned.status.name())?;
    if let Some(nested) = &tuned.nested {
        found.set_item("nested_errors", PyArray1::from_slice(py, &nested.errors))?;
        found.set_item("nested_standard_error", nested.standard_error)?;
        let chosen: Vec<Bound<'py, PyList>> =
            nested.chosen.iter().map(|values| settings(py, values)).collect::<PyResult<_>>()?;
        found.set_item("nested_points", chosen)?;
    }
    Ok(found)
}

fn settings<'py>(py: Python<'py>, values: &[Setting]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for value in values {
        match value {
            Setting::Number(number) => list.append(number)?,
            Setting::Name(name) => list.append(name)?,
            Setting::Nothing => list.append(py.None())?,
        }
    }
    Ok(list)
}
