//! Columns on one scale as part of a model.
//!
//! ```text
//! w'(x - shift) / scale + b  =  v'x + b - v'shift,    v = w / scale
//! ```
//!
//! So a linear model takes the scaling into its weights and intercepts; any other keeps it beside the function.

use super::{Function, Model, Predictor};
use crate::data::Scaling;

impl Model {
    /// A model of columns that were put on one scale, as a model of the columns as they came.
    pub(crate) fn of_unscaled(mut self, scaling: Scaling) -> Model {
        self.summary.details.set("standardized", 1.0);
        if !fold(&mut self.predictor, &scaling) {
            self.predictor.scaling = Some(scaling);
        }
        self
    }
}

/// Takes the scaling into the weights, if there are any and none becomes infinite.
fn fold(predictor: &mut Predictor, scaling: &Scaling) -> bool {
    let Some((function, intercepts)) = folded(&predictor.function, &predictor.intercepts, scaling) else {
        return false;
    };
    let mut probabilities = predictor.probabilities.clone();
    if let Some(probabilities) = &mut probabilities {
        let before: Vec<f64> = probabilities.families.iter().flat_map(|family| family.intercepts.clone()).collect();
        let Some((function, after)) = folded(&probabilities.function, &before, scaling) else { return false };
        probabilities.function = function;
        let levels = probabilities.levels.len().max(1);
        for (family, after) in probabilities.families.iter_mut().zip(after.chunks_exact(levels)) {
            family.intercepts = after.to_vec();
        }
    }
    (predictor.function, predictor.intercepts, predictor.probabilities) = (function, intercepts, probabilities);
    true
}

fn folded(function: &Function, intercepts: &[f64], scaling: &Scaling) -> Option<(Function, Vec<f64>)> {
    let Function::Linear { weights } = function else { return None };
    let (weights, intercepts) = unscaled(weights, intercepts, scaling)?;
    Some((Function::Linear { weights }, intercepts))
}

/// Weights and intercepts for columns as they came, of those for columns on one scale; nothing, where one becomes infinite.
pub(crate) fn unscaled(weights: &[f64], intercepts: &[f64], scaling: &Scaling) -> Option<(Vec<f64>, Vec<f64>)> {
    let d = scaling.scale.len();
    let divided: Vec<f64> = weights.iter().enumerate().map(|(at, w)| w / scaling.scale[at % d]).collect();
    let moved = |(v, b): (&[f64], &f64)| b - v.iter().zip(&scaling.shift).map(|(v, shift)| v * shift).sum::<f64>();
    let intercepts: Vec<f64> = divided.chunks_exact(d).zip(intercepts).map(moved).collect();
    let finite = divided.iter().chain(&intercepts).all(|value| value.is_finite());
    finite.then_some((divided, intercepts))
}
