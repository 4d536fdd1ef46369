//! The choice of parameters by data.

use crate::errors::to_python;
use crate::fit::{self, ClassName, LqParameters};
use crate::fitted::Fitted;
use crate::gate;
use crate::matrix::Matrix;
use numpy::{PyArray1, PyReadonlyArray1};
use outlast::select::default_cs;
use outlast::{FitRequest, LqChoice, LqSearch, Split};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Values, or how many the data are to choose.
#[derive(FromPyObject)]
pub enum Values {
    Count(usize),
    Given(Vec<f64>),
}

/// What is held out: that many folds, splits of the caller's, or a set of its own.
#[derive(FromPyObject)]
pub enum Judge<'py> {
    Folds(usize),
    Splits(Vec<(Vec<u32>, Vec<u32>)>),
    Set(Matrix<'py>, PyReadonlyArray1<'py, u32>),
}

pub fn splits(given: &[(Vec<u32>, Vec<u32>)]) -> Vec<Split> {
    given.iter().map(|(train, test)| Split { train: train.clone(), test: test.clone() }).collect()
}

/// Chooses C and q of the L_q machine; returns the model and a dict of what was found on the way. `parameters` as for `fit`; lists
/// over the grid run over q, and within it over C.
#[pyfunction]
#[pyo3(signature = (x, codes, classes, parameters, cs, qs, judge, *, threads=None, sample_weight=None, feature_names=None,
    time_limit=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "every one is a named argument in Python")]
pub fn search_lq<'py>(
    py: Python<'py>,
    x: Matrix<'_>,
    codes: PyReadonlyArray1<'_, u32>,
    classes: Vec<ClassName>,
    parameters: &Bound<'_, PyAny>,
    cs: Values,
    qs: Vec<f64>,
    judge: Judge<'_>,
    threads: Option<usize>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    feature_names: Option<Vec<String>>,
    time_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Fitted, Bound<'py, PyDict>)> {
    let base = fit::shared(parameters)?;
    let base = parameters.extract::<LqParameters>()?.with(base).map_err(to_python)?;
    let labels = fit::labels(classes, &codes)?;
    let design = x.design()?;
    let sample_weight = sample_weight.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let feature_names = feature_names.as_deref();
    let limit = time_limit.map(fit::seconds).transpose()?;
    let held = match &judge {
        Judge::Set(x, codes) => Some((x.design()?, fit::labels_of(&labels, codes)?)),
        _ => None,
    };
    let (folds, splits) = match &judge {
        Judge::Folds(folds) => (*folds, None),
        Judge::Splits(given) => (0, Some(splits(given))),
        Judge::Set(..) => (0, None),
    };
    let choice = gate::run(
        py,
        threads,
        progress,
        |_: &LqChoice| false,
        move |control| {
            let control = limit.map_or(control, |limit| control.time_limit(limit));
            let cs = match cs {
                Values::Given(cs) => cs,
                Values::Count(count) => default_cs(&base, &*design, &labels, sample_weight, count)?,
            };
            let request = FitRequest { sample_weight, feature_names, start: None, control };
            let search = LqSearch::new(cs, qs).base(base).folds(folds);
            match (&held, &splits) {
                (Some((x, y)), _) => search.fit_tuned(&*design, &labels, (&**x, y), &request),
                (None, Some(splits)) => search.fit_splits(&*design, &labels, splits, &request),
                (None, None) => search.fit_with(&*design, &labels, &request),
            }
        },
    )?;
    let found = PyDict::new(py);
    found.set_item("cs", PyArray1::from_slice(py, &choice.cs))?;
    found.set_item("qs", PyArray1::from_slice(py, &choice.qs))?;
    found.set_item("mean_errors", PyArray1::from_slice(py, &choice.mean_errors))?;
    found.set_item("fold_errors", PyArray1::from_slice(py, &choice.fold_errors))?;
    found.set_item("sizes", PyArray1::from_vec(py, choice.path.iter().map(|point| point.size).collect()))?;
    let weights = choice.path.iter().flat_map(|point| point.weights.iter().copied()).collect();
    found.set_item("weights", PyArray1::from_vec(py, weights))?;
    let intercepts = choice.path.iter().flat_map(|point| point.intercepts.iter().copied()).collect();
    found.set_item("intercepts", PyArray1::from_vec(py, intercepts))?;
    found.set_item("stability", PyArray1::from_slice(py, &choice.stability))?;
    found.set_item("c", choice.c)?;
    found.set_item("q", choice.q)?;
    Ok((Fitted { model: choice.model }, found))
}
