//! What searches for parameters share: what goes into them, how they are run, and what comes back.

use crate::errors::to_python;
use crate::fit::{self, ClassName};
use crate::gate;
use crate::matrix::{Borrowed, Matrix};
use numpy::{PyArray1, PyReadonlyArray1};
use outlast::select::tune::{self as select, Rule, Setting};
use outlast::{Design, FitRequest, Labels, Split, Status, Tuned};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Rows and labels: a tuple of X, the codes of the labels, and the classes these stand for.
#[derive(FromPyObject)]
pub struct Data<'py>(Matrix<'py>, PyReadonlyArray1<'py, u32>, Vec<ClassName>);

/// What is held out: that many folds, splits of the caller's, or a set of its own.
#[derive(FromPyObject)]
pub enum Judge<'py> {
    Folds(usize),
    Splits(Vec<(Vec<u32>, Vec<u32>)>),
    Set(Matrix<'py>, PyReadonlyArray1<'py, u32>),
}

impl Judge<'_> {
    /// The same in the core's words; a share held out takes its place, a set of its own stands beside it.
    fn chosen(
        &self,
        holdout: Option<f64>,
        labels: &Labels,
    ) -> PyResult<(select::Judge, Option<(Borrowed<'_>, Labels)>)> {
        Ok(match (self, holdout) {
            (Judge::Set(x, codes), _) => (select::Judge::Folds(2), Some((x.design()?, fit::labels_of(labels, codes)?))),
            (_, Some(share)) => (select::Judge::HoldOut(share), None),
            (Judge::Folds(folds), None) => (select::Judge::Folds(*folds), None),
            (Judge::Splits(given), None) => (select::Judge::Splits(splits(given)), None),
        })
    }
}

fn splits(given: &[(Vec<u32>, Vec<u32>)]) -> Vec<Split> {
    given.iter().map(|(train, test)| Split { train: train.clone(), test: test.clone() }).collect()
}

/// How to search: a dict with these keys. `balanced` weighs the classes of each training part.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Options {
    pub holdout: Option<f64>,
    pub standardize: bool,
    rule: String,
    pub early_stopping: bool,
    pub halving: bool,
    pub nested: Option<usize>,
    pub exact: bool,
    pub balanced: bool,
}

impl Options {
    pub fn rule(&self) -> PyResult<Rule> {
        Rule::from_name(&self.rule).map_err(to_python)
    }
}

/// What goes with every fit: a dict with these keys.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Request<'py> {
    threads: Option<usize>,
    sample_weight: Option<PyReadonlyArray1<'py, f64>>,
    feature_names: Option<Vec<String>>,
    time_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
}

/// Other rows to choose by, if there are any.
pub type Tuning<'a> = Option<(&'a dyn Design, &'a Labels)>;

/// Runs a search with the interpreter free meanwhile. Ctrl-C ends it with the best so far, where its status says that there is one.
pub fn run<T: Send>(
    py: Python<'_>,
    Data(x, codes, classes): Data<'_>,
    (judge, holdout): (&Judge<'_>, Option<f64>),
    request: Request<'_>,
    status: fn(&T) -> Status,
    search: impl FnOnce(select::Judge, &dyn Design, &Labels, Tuning, &FitRequest) -> outlast::Result<T> + Send,
) -> PyResult<T> {
    let labels = fit::labels(classes, &codes)?;
    let design = x.design()?;
    let sample_weight = request.sample_weight.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let feature_names = request.feature_names.as_deref();
    let limit = request.time_limit.map(fit::seconds).transpose()?;
    let (judge, held) = judge.chosen(holdout, &labels)?;
    let best_so_far = |found: &T| status(found) == Status::Interrupted;
    gate::run(py, request.threads, request.progress, best_so_far, move |control| {
        let control = limit.map_or(control, |limit| control.time_limit(limit));
        let request = FitRequest { sample_weight, feature_names, start: None, control };
        let tuning = held.as_ref().map(|(x, y)| (&**x as &dyn Design, y));
        search(judge, &*design, &labels, tuning, &request)
    })
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
