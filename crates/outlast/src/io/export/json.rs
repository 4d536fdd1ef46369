//! A model as JSON, for those who write their own scorer.
//!
//! ```text
//! {"format": "outlast-json", "version": 1, "method": ..., "classes": [...], "n_features": d, "feature_names": [...] or null,
//!  "kernel": {"name": "linear" | "rbf" | "poly" | "sigmoid" | "precomputed", "gamma": ..., "degree": ..., "coef0": ...},
//!  "feature_map": "identity" | "squares",
//!  "coef": [[...], ...]                                  linear: a list per function; squares: the columns, then their squares
//!  "support_vectors": [[...], ...], "dual_coef": [[...], ...]      other kernels: a row and its coefficients, one per function
//!  "scaling": {"shift": [...], "scale": [...]} or null             what is done to the columns of x first: (x - shift) / scale, from -1000 to 1000
//!  "support": [...]                                      precomputed: which columns of a row count
//!  "intercept": [...]}
//! ```
//!
//! A field stands in a line of its own, and so does each list of a list of lists. Score of function j: coef_j . x + intercept_j, or sum_i dual_coef_ij k(support_vectors_i, x) + intercept_j. With two classes there is
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
    Ok(Exported { bytes: laid_out(&object).into_bytes(), notes: Vec::new() })
}

/// A field to a line, and of a list of lists a list to a line.
fn laid_out(object: &Map<String, Value>) -> String {
    let of = |value: &Value| match value.as_array() {
        Some(lists) if lists.iter().any(Value::is_array) => {
            let lines: Vec<String> = lists.iter().map(|list| format!("    {list}")).collect();
            format!("[\n{}\n  ]", lines.join(",\n"))
        }
        _ => value.to_string(),
    };
    let fields: Vec<String> =
        object.iter().map(|(name, value)| format!("  {}: {}", Value::from(name.as_str()), of(value))).collect();
    format!("{{\n{}\n}}\n", fields.join(",\n"))
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
        KernelFunction::Custom(_) => {
            Err(refuse(ExportFormat::Json, what(predictor), "none: only the author of such a kernel knows it"))
        }
        plain => Ok(json!({"name": plain.name()})),
    }
}
