//! How far a model may be from the global optimum of its own, non-convex problem.
//!
//! For two classes, the hinge truncated at 0 (or REH) and the l2 penalty there is a lower bound of the global optimum that any
//! feasible point of a dual gives ([`solver::ablation`](crate::solver::ablation) has the mathematics). It is tight for
//! small C or classes that are nearly separable, and falls towards 0 as C grows.
//!
//! A model that put its columns on one scale has its problem on the scaled columns, and that is what is bounded.

use super::common::caps;
use super::{FitRequest, Model, Rows, fit};
use crate::control::Control;
use crate::data::{Class, Design, Labels, Scaling, Standardized, Target};
use crate::error::{Error, Result, quoted};
use crate::problem::{Candidate, KernelFunction, Loss, Norm, TwoClass};
use crate::solver::{Options, ablation};

/// Relative difference of two ways to compute the same decision value, one of them with kernel values in single precision.
const SAME: f64 = 1e-3;

/// A model's objective between a certified lower bound and itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certified {
    /// No function of the model's space has a smaller objective on these rows.
    pub lower_bound: f64,
    /// The model's objective on these rows.
    pub objective: f64,
    /// (objective - lower_bound) / objective; 0 where both are 0.
    pub gap: f64,
    /// Whether the model is proved to be globally optimal, to the tolerance.
    pub proved: bool,
}

/// Certifies a model on the rows it was fitted to.
///
/// ```
/// use outlast::{Dense, Kernel, Truncated, certify};
///
/// let x = Dense::from_rows(&[[-2.0], [-1.0], [1.0], [2.0], [30.0]]);
/// let y = [0, 0, 1, 1, 0]; // the last label is wrong, and far away
/// let model = Truncated::new(0.1).truncation(0.0).kernel(Kernel::Linear).fit_intercept(false).fit(&x, &y)?;
/// let certified = certify(&model, &x, &y)?;
/// assert!(certified.lower_bound <= certified.objective && certified.gap < 0.5);
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn certify(model: &Model, x: &dyn Design, y: &(impl Target + ?Sized)) -> Result<Certified> {
    certify_with(model, x, &y.labels(), None, Control::default())
}

/// As [`certify`], with the sample weights of the fit and a caller who watches.
pub fn certify_with(
    model: &Model,
    x: &dyn Design,
    labels: &Labels,
    sample_weight: Option<&[f64]>,
    control: Control,
) -> Result<Certified> {
    check(model)?;
    let request = FitRequest { sample_weight, ..FitRequest::default() };
    fit::check_shapes(x, labels, &request)?;
    let predictor = &model.predictor;
    let signs = signs(model, labels)?;
    let codes: Vec<u32> = signs.iter().map(|&sign| u32::from(sign > 0.0)).collect();
    let summary = &model.summary;
    let caps = caps(summary.c, summary.class_weight.as_deref(), &codes, sample_weight)?;
    let scaling = scaling(model, x, sample_weight);
    let scaled = match &scaling {
        Some(scaling) => Some(Rows::copy(&Standardized::new(x, scaling), &(0..x.rows() as u32).collect::<Vec<u32>>())?),
        None => None,
    };
    let rows = scaled.as_ref().map_or(x, Rows::as_design);
    let expansion = expansion(model, x, rows)?;
    let (weights, intercept) = candidate(model, scaling.as_ref());
    let problem = TwoClass {
        x: rows,
        signs: &signs,
        caps: &caps,
        loss: Loss::hinge().truncated_at(0.0)?,
        norm: Norm::Squared,
        kernel: &predictor.kernel,
        intercept: summary.fit_intercept,
    };
    let candidate = Candidate { expansion: &expansion, weights: weights.as_deref(), intercept };
    let options = Options { tolerance: 1e-6, ..Options::default() };
    let bound = ablation::bound_relaxed(&problem, &candidate, &options, control)?;
    Ok(Certified {
        lower_bound: bound.lower,
        objective: bound.objective,
        gap: bound.gap.max(0.0),
        proved: bound.proved,
    })
}

/// Whether the model's problem is the one the bound is for.
fn check(model: &Model) -> Result<()> {
    let refuse = |what: &str| {
        let allowed = "a two-class model with the hinge truncated at 0, penalty l2 and no utilities or costs";
        Err(Error::parameter("model", what, allowed))
    };
    let summary = &model.summary;
    match () {
        _ if model.predictor.classes.len() != 2 => refuse(&format!("one of {} classes", model.predictor.classes.len())),
        _ if !matches!(summary.method.as_str(), "truncated" | "reh") => {
            refuse(&format!("one of method {}", summary.method))
        }
        _ if summary.loss != "hinge" => refuse(&format!("one with the {} loss", summary.loss)),
        _ if summary.truncation.is_none() => refuse("one that is not truncated"),
        _ if summary.truncation != Some(0.0) => {
            refuse(&format!("one truncated at {}", summary.truncation.unwrap_or_default()))
        }
        _ if summary.penalty != "l2" => refuse(&format!("one with penalty {}", summary.penalty)),
        _ if summary.payoff().is_some() => refuse("one with a utility or cost matrix"),
        _ => Ok(()),
    }
}

/// -1 or +1 for each row, by the model's classes.
fn signs(model: &Model, labels: &Labels) -> Result<Vec<f64>> {
    let known = |class: &Class| {
        model.classes().iter().position(|known| known == class).ok_or_else(|| {
            let problem = format!("the model does not know class {}", quoted(&class.to_string()));
            Error::Classes { problem }
        })
    };
    let places: Vec<usize> = labels.classes().iter().map(known).collect::<Result<_>>()?;
    Ok(labels.codes().iter().map(|&code| if places[code as usize] == 1 { 1.0 } else { -1.0 }).collect())
}

/// How the model scales columns. A linear model has that in its weights: it is the scaling of the rows it was fitted to.
fn scaling(model: &Model, x: &dyn Design, sample_weight: Option<&[f64]>) -> Option<Scaling> {
    match &model.predictor.scaling {
        None if model.is_standardized() => Some(Scaling::of(x, sample_weight)),
        kept => kept.clone(),
    }
}

/// Weights and intercept on the scaled columns.
fn candidate(model: &Model, scaling: Option<&Scaling>) -> (Option<Vec<f64>>, f64) {
    let predictor = &model.predictor;
    let (weights, intercept) = (predictor.weights(), predictor.intercepts[0]);
    let (Some(weights), Some(scaling), None) = (weights, scaling, &predictor.scaling) else {
        return (weights.map(<[f64]>::to_vec), intercept);
    };
    let moved = weights.iter().zip(&scaling.shift).map(|(v, shift)| v * shift).sum::<f64>();
    let grown = weights.iter().zip(&scaling.scale).map(|(v, scale)| v * scale).collect();
    (Some(grown), if model.summary.fit_intercept { intercept + moved } else { 0.0 })
}

/// The model's coefficients on the rows given, which must be those of its training; `rows` are the same as the model scales them.
fn expansion(model: &Model, x: &dyn Design, rows: &dyn Design) -> Result<Vec<f64>> {
    let predictor = &model.predictor;
    if x.rows() != model.summary.rows {
        let expected = format!("{}, those the model was fitted to", model.summary.rows);
        return Err(Error::shape("X", format!("{} rows", x.rows()), expected));
    }
    let mut expansion = vec![0.0; x.rows()];
    for (&row, &coefficient) in predictor.support.iter().zip(&predictor.coefficients) {
        if let Some(place) = expansion.get_mut(row as usize) {
            *place = coefficient;
        }
    }
    if let KernelFunction::Linear = predictor.kernel {
        return Ok(expansion);
    }
    // the same numbers on the same rows give the same function
    let decided = predictor.decision_function(x)?;
    let b = predictor.intercepts[0];
    let values = predictor.kernel.expand(rows, &expansion);
    let size = decided.iter().map(|value| value.abs()).fold(1.0, f64::max);
    let row = decided.iter().zip(&values).position(|(decided, value)| (decided - value - b).abs() > SAME * size);
    match row {
        None => Ok(expansion),
        Some(row) => {
            let problem = "the model was not fitted to these rows, or not in this order".to_string();
            Err(Error::Value { what: "X", row, column: None, problem })
        }
    }
}
