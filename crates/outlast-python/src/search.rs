//! The choice of C and q of the L_q machine by data.

use crate::errors::to_python;
use crate::fit::{self, ClassName, LqParameters};
use crate::fitted::Fitted;
use crate::gate;
use crate::matrix::{Borrowed, Matrix};
use crate::tune::{SearchOptions, described};
use numpy::{PyArray1, PyReadonlyArray1};
use outlast::select::{Cs, tune as select};
use outlast::{ClassWeight, FitRequest, Labels, LqChoice, LqSearch, Split, Status};
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

impl Judge<'_> {
    /// The same in the core's words; a share held out takes its place, a set of its own stands beside it.
    pub fn chosen(
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

/// Chooses C and q of the L_q machine; returns the model and a dict of what was found on the way. `parameters` as for `fit`; lists
/// over the grid run over q, and within it over C. Of `options`, those that give points up say nothing here.
#[pyfunction]
#[pyo3(signature = (x, codes, classes, parameters, cs, qs, judge, options, *, threads=None, sample_weight=None,
    feature_names=None, time_limit=None, progress=None))]
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
    options: SearchOptions,
    threads: Option<usize>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    feature_names: Option<Vec<String>>,
    time_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Fitted, Bound<'py, PyDict>)> {
    let mut base = parameters.extract::<LqParameters>()?.with(fit::shared(parameters)?).map_err(to_python)?;
    if options.balanced {
        base.common.class_weight = ClassWeight::Balanced;
    }
    let labels = fit::labels(classes, &codes)?;
    let design = x.design()?;
    let sample_weight = sample_weight.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let feature_names = feature_names.as_deref();
    let limit = time_limit.map(fit::seconds).transpose()?;
    let (judge, held) = judge.chosen(options.holdout, &labels)?;
    let cs = match cs {
        Values::Given(cs) => Cs::Given(cs),
        Values::Count(count) => Cs::Count(count),
    };
    let rule = select::Rule::from_name(&options.rule).map_err(to_python)?;
    let (standardize, nested) = (options.standardize, options.nested);
    let search = LqSearch { base, cs, qs, judge, standardize, rule, nested };
    let best_so_far = |choice: &LqChoice| choice.tuned.status == Status::Interrupted;
    let choice = gate::run(py, threads, progress, best_so_far, move |control| {
        let control = limit.map_or(control, |limit| control.time_limit(limit));
        let request = FitRequest { sample_weight, feature_names, start: None, control };
        match &held {
            Some((x, y)) => search.fit_tuned(&*design, &labels, (&**x, y), &request),
            None => search.fit_with(&*design, &labels, &request),
        }
    })?;
    let found = described(py, &choice.tuned)?;
    found.set_item("selected", PyArray1::from_vec(py, choice.path.iter().map(|point| point.size).collect()))?;
    let weights = choice.path.iter().flat_map(|point| point.weights.iter().copied()).collect();
    found.set_item("weights", PyArray1::from_vec(py, weights))?;
    let intercepts = choice.path.iter().flat_map(|point| point.intercepts.iter().copied()).collect();
    found.set_item("intercepts", PyArray1::from_vec(py, intercepts))?;
    found.set_item("stability", PyArray1::from_slice(py, &choice.stability))?;
    Ok((Fitted { model: choice.tuned.model }, found))
}
