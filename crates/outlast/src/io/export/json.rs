//! A model as JSON, for those who write their own scorer.
//!
//! ```text
//! {"format": "outlast-json", "version": 1, "method": ..., "classes": [...], "n_features": d, "feature_names": [...] or null,
//!  "kernel": {"name": "linear" | "rbf" | "poly" | "sigmoid" | "precomputed", "gamma": ..., "degree": ..., "coef0": ...},
//!  "feature_map": "identity" | "squares",
//!  "coef": [[...], ...]                                  linear: a list per function; squares: the columns, then their squares
//!  "support_vectors": [[...], ...], "dual_coef": [[...], ...]      other kernels: a row and its coefficients, one per function
//!  "scaling": {"shift": [...], "scale": [...]} or null             what is done to the columns of x first: (x - shift) / scale
//!  "support": [...]                                      precomputed: which columns of a row count
//!  "intercept": [...]}
//! ```
//!
//! Score of function j: coef_j . x + intercept_j, or sum_i dual_coef_ij k(support_vectors_i, x) + intercept_j. With two classes there is
//! one function, positive for the second class; with more, the largest wins, the first of equals.

use super::{ExportFormat, Exported, refuse, what};
use crate::data::Class;
use crate::error::Result;
use crate::model::{Function, Model, Predictor};
use crate::problem::KernelFunction;
use serde_json::{Map, Value, json};

pub(super) fn export(model: &Model) -> Result<Exported> {
    let predictor = &model.predictor;
    let mut object = Map::new();
    let mut set = |name: &str, value: Value| object.insert(name.to_string(), value);
    set("format", json!("outlast-json"));
    set("version", json!(1));
    set("method", json!(model.summary.method));
    set("classes", predictor.classes.iter().map(class).collect());
    set("n_features", json!(predictor.features));
    set("feature_names", json!(predictor.feature_names));
    set("kernel", kernel(predictor)?);
    set("feature_map", json!(predictor.feature_map().name()));
    let m = predictor.functions();
    let by =
        |values: &[f64], length: usize| -> Value { values.chunks_exact(length.max(1)).map(|row| json!(row)).collect() };
    match &predictor.function {
        Function::Linear { weights } | Function::Squares { weights } => {
            set("coef", by(weights, weights.len() / m));
        }
        Function::Kernel { rows } => {
            let rows = rows.as_design();
            let mut dense = vec![0.0; rows.cols()];
            let row = |row| {
                rows.copy_row(row, &mut dense);
                json!(dense)
            };
            set("support_vectors", (0..rows.rows()).map(row).collect());
            set("dual_coef", by(&predictor.coefficients, m));
        }
        Function::Precomputed => {
            set("support", json!(predictor.support));
            set("dual_coef", by(&predictor.coefficients, m));
        }
    }
    set("intercept", json!(predictor.intercepts));
    let scaling = predictor.scaling.as_ref();
    set("scaling", json!(scaling.map(|scaling| json!({"shift": scaling.shift, "scale": scaling.scale}))));
    let mut bytes = Value::Object(object).to_string().into_bytes();
    bytes.push(b'\n');
    Ok(Exported { bytes, notes: Vec::new() })
}

fn class(class: &Class) -> Value {
    match class {
        Class::Int(value) => json!(value),
        Class::Text(value) => json!(value),
    }
}

fn kernel(predictor: &Predictor) -> Result<Value> {
    match &predictor.kernel {
        KernelFunction::Rbf { gamma } => Ok(json!({"name": "rbf", "gamma": gamma})),
        KernelFunction::Poly { gamma, degree, coef0 } => {
            Ok(json!({"name": "poly", "gamma": gamma, "degree": degree, "coef0": coef0}))
        }
        KernelFunction::Sigmoid { gamma, coef0 } => Ok(json!({"name": "sigmoid", "gamma": gamma, "coef0": coef0})),
        KernelFunction::Custom(_) => Err(refuse(ExportFormat::Json, what(predictor), "none: only its author knows it")),
        plain => Ok(json!({"name": plain.name()})),
    }
}
