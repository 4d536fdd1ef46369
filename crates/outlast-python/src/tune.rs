//! The choice of parameters by data: for the methods that share one search, and of C and q of the L_q machine along paths.

use crate::errors::to_python;
use crate::fit::{self, LqParameters, NumberOrName};
use crate::fitted::Fitted;
use crate::search::{Data, Judge, Options, Request, described, run};
use numpy::PyArray1;
use outlast::select::Cs;
use outlast::select::tune::Setting;
use outlast::{ClassWeight, Error, LqChoice, LqSearch, Tune, Tuned};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Names of the parameters that a search can run over.
const NAMES: [&str; 9] = ["penalty", "q", "truncation", "p", "cap", "cap_fraction", "inlier_fraction", "gamma", "C"];

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
#[expect(clippy::too_many_arguments, reason = "each is a thing of its own")]
pub fn tune<'py>(
    py: Python<'py>,
    data: Data<'_>,
    method: &str,
    parameters: &Bound<'_, PyAny>,
    grid: Vec<(String, Vec<Option<NumberOrName>>)>,
    judge: Judge<'_>,
    options: Options,
    request: Request<'_>,
) -> PyResult<(Fitted, Bound<'py, PyDict>)> {
    let mut search = Tune::of(fit::tunable(method, parameters)?)
        .standardize(options.standardize)
        .rule(options.rule()?)
        .early_stop(options.early_stopping)
        .halving(options.halving)
        .nested(options.nested)
        .exact(options.exact);
    if options.balanced {
        search.method.common_mut().class_weight = ClassWeight::Balanced;
    }
    for (name, values) in grid {
        let Some(known) = NAMES.iter().find(|known| **known == name) else {
            let allowed = format!("one of {}", NAMES.join(", "));
            return Err(to_python(Error::parameter("grid", format!("{name:?}"), allowed)));
        };
        search = search.over(known, values.into_iter().map(setting));
    }
    let status = |tuned: &Tuned| tuned.status;
    let tuned = run(py, data, (&judge, options.holdout), request, status, |judge, x, y, tuning, request| {
        search.judge(judge).fit_labels(x, y, tuning, request)
    })?;
    let found = described(py, &tuned)?;
    Ok((Fitted { model: tuned.model }, found))
}

/// Values, or how many the data are to choose.
#[derive(FromPyObject)]
pub enum Values {
    Count(usize),
    Given(Vec<f64>),
}

impl From<Values> for Cs {
    fn from(values: Values) -> Cs {
        match values {
            Values::Given(cs) => Cs::Given(cs),
            Values::Count(count) => Cs::Count(count),
        }
    }
}

/// Chooses C and q of the L_q machine; returns the model and a dict of what was found on the way. `parameters` as for `fit`; lists
/// over the grid run over q, and within it over C. Of `options`, those that give points up say nothing here.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is a thing of its own")]
pub fn search_lq<'py>(
    py: Python<'py>,
    data: Data<'_>,
    parameters: &Bound<'_, PyAny>,
    cs: Values,
    qs: Vec<f64>,
    judge: Judge<'_>,
    options: Options,
    request: Request<'_>,
) -> PyResult<(Fitted, Bound<'py, PyDict>)> {
    let mut base = parameters.extract::<LqParameters>()?.with(fit::shared(parameters)?).map_err(to_python)?;
    if options.balanced {
        base.common.class_weight = ClassWeight::Balanced;
    }
    let search =
        LqSearch::new(cs, qs).base(base).standardize(options.standardize).rule(options.rule()?).nested(options.nested);
    let status = |choice: &LqChoice| choice.tuned.status;
    let by = (&judge, options.holdout);
    let choice = run(py, data, by, request, status, |judge, x, y, tuning, request| {
        search.judge(judge).fit_labels(x, y, tuning, request)
    })?;
    let found = described(py, &choice.tuned)?;
    found.set_item("selected", PyArray1::from_vec(py, choice.path.iter().map(|point| point.size).collect()))?;
    found.set_item("converged", choice.path.iter().map(|point| point.converged).collect::<Vec<_>>())?;
    let weights = choice.path.iter().flat_map(|point| point.weights.iter().copied()).collect();
    found.set_item("weights", PyArray1::from_vec(py, weights))?;
    let intercepts = choice.path.iter().flat_map(|point| point.intercepts.iter().copied()).collect();
    found.set_item("intercepts", PyArray1::from_vec(py, intercepts))?;
    found.set_item("stability", PyArray1::from_slice(py, &choice.stability))?;
    Ok((Fitted { model: choice.tuned.model }, found))
}
