//! LIBSVM's model file.
//!
//! ```text
//! svm_type c_svc, kernel_type, its parameters, nr_class 2, total_sv, rho, label a b, nr_sv, SV, then a line per support vector:
//! coefficient index:value index:value ...
//! ```
//!
//! LIBSVM decides for the first label where sum_i coefficient_i k(x_i, x) - rho > 0; our f is positive for the second class, so that
//! the labels change places and rho = -b. A linear model is one support vector, w, of coefficient 1. The count of support vectors by
//! class, which two classes make no use of, goes by the sign of the coefficient.

use super::{ExportFormat, Exported, exact, numbered, refuse, what};
use crate::data::Design;
use crate::error::Result;
use crate::model::{Function, Predictor};
use crate::problem::KernelFunction;
use std::fmt::Write;

pub(super) fn export(predictor: &Predictor) -> Result<Exported> {
    if predictor.classes.len() != 2 {
        let with = format!("{} classes fitted jointly", predictor.classes.len());
        return Err(refuse(ExportFormat::Libsvm, with, "another one, or a model of two classes"));
    }
    if predictor.scaling.is_some() {
        let with = format!("{} of columns that the model itself puts on one scale", what(predictor));
        return Err(refuse(ExportFormat::Libsvm, with, "onnx or json, or a model of columns scaled beforehand"));
    }
    let kernel = kernel_lines(predictor)?;
    let lines = support_lines(predictor);
    let (labels, notes) = numbered(predictor);
    let positive = lines.iter().filter(|line| line.0 > 0.0).count();
    let mut text = format!("svm_type c_svc\n{kernel}nr_class 2\ntotal_sv {}\n", lines.len());
    let _ = write!(text, "rho {}\nlabel {} {}\n", exact(-predictor.intercepts[0]), labels[1], labels[0]);
    let _ = write!(text, "nr_sv {positive} {}\nSV\n", lines.len() - positive);
    // grouped, as LIBSVM expects them
    for wanted in [true, false] {
        for (coefficient, entries) in lines.iter().filter(|line| (line.0 > 0.0) == wanted) {
            let _ = writeln!(text, "{} {entries}", exact(*coefficient));
        }
    }
    Ok(Exported { bytes: text.into_bytes(), notes })
}

fn kernel_lines(predictor: &Predictor) -> Result<String> {
    match (&predictor.kernel, &predictor.function) {
        (_, Function::Squares { .. }) => Err(refuse(ExportFormat::Libsvm, what(predictor), "onnx or json")),
        (KernelFunction::Linear, _) => Ok("kernel_type linear\n".to_string()),
        (KernelFunction::Rbf { gamma }, _) => Ok(format!("kernel_type rbf\ngamma {}\n", exact(*gamma))),
        (KernelFunction::Poly { gamma, degree, coef0 }, _) => {
            Ok(format!("kernel_type polynomial\ndegree {degree}\ngamma {}\ncoef0 {}\n", exact(*gamma), exact(*coef0)))
        }
        (KernelFunction::Sigmoid { gamma, coef0 }, _) => {
            Ok(format!("kernel_type sigmoid\ngamma {}\ncoef0 {}\n", exact(*gamma), exact(*coef0)))
        }
        (KernelFunction::Precomputed, _) => Ok("kernel_type precomputed\n".to_string()),
        (KernelFunction::Custom(_), _) => {
            Err(refuse(ExportFormat::Libsvm, what(predictor), "none: only its author knows it"))
        }
    }
}

/// Coefficient and entries of each support vector.
fn support_lines(predictor: &Predictor) -> Vec<(f64, String)> {
    match &predictor.function {
        Function::Linear { weights } | Function::Squares { weights } => {
            let entries = weights.iter().enumerate().filter(|(_, w)| **w != 0.0);
            vec![(1.0, entries.map(|(column, &w)| entry(column, w)).collect())]
        }
        // LIBSVM counts training rows from 1, in a column of number 0
        Function::Precomputed => {
            let rows = predictor.support.iter().zip(&predictor.coefficients);
            rows.map(|(row, &coefficient)| (coefficient, format!("0:{} ", row + 1))).collect()
        }
        Function::Kernel { rows } => {
            let rows = rows.as_design();
            let line = |row| {
                let mut entries = String::new();
                rows.for_each(row, &mut |column, value| {
                    if value != 0.0 {
                        entries += &entry(column, value);
                    }
                });
                (predictor.coefficients[row], entries)
            };
            (0..Design::rows(rows)).map(line).collect()
        }
    }
}

fn entry(column: usize, value: f64) -> String {
    format!("{}:{} ", column + 1, exact(value))
}
