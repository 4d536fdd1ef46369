//! LIBLINEAR's model file.
//!
//! ```text
//! solver_type MCSVM_CS, nr_class k, label ..., nr_feature d, bias 1, w, then a line per column, a number per class; the last line is
//! the intercepts'
//! ```
//!
//! That solver's models have one function per class and the largest wins. For two classes it keeps both, f and -f.

use super::{ExportFormat, Exported, exact, numbered, refuse, what};
use crate::error::Result;
use crate::model::{Function, Predictor};
use std::fmt::Write;

pub(super) fn export(predictor: &Predictor) -> Result<Exported> {
    let Function::Linear { weights } = &predictor.function else {
        return Err(refuse(ExportFormat::Liblinear, what(predictor), "onnx or json, or the model a linear one"));
    };
    if predictor.scaling.is_some() {
        let with = "columns that the model itself puts on one scale";
        return Err(refuse(ExportFormat::Liblinear, with, "onnx or json, or the columns scaled before the fit"));
    }
    let (labels, notes) = numbered(predictor);
    let (d, two) = (predictor.features, predictor.classes.len() == 2);
    let labels: Vec<String> = labels.iter().map(i32::to_string).collect();
    let mut text = format!("solver_type MCSVM_CS\nnr_class {}\nlabel {}\n", labels.len(), labels.join(" "));
    let _ = write!(text, "nr_feature {d}\nbias 1\nw\n");
    for column in 0..=d {
        let of = |function: usize| {
            if column < d { weights[function * d + column] } else { predictor.intercepts[function] }
        };
        let values: Vec<f64> = if two { vec![-of(0), of(0)] } else { (0..labels.len()).map(of).collect() };
        for value in values {
            let _ = write!(text, "{} ", exact(value));
        }
        text.push('\n');
    }
    Ok(Exported { bytes: text.into_bytes(), notes })
}
