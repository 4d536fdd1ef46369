//! LIBSVM's model file.
//!
//! ```text
//! svm_type c_svc, kernel_type, its parameters, nr_class, total_sv, rho, label a b, nr_sv, SV, then a line per support vector:
//! coefficient index:value index:value ...
//! ```
//!
//! LIBSVM decides for the first label where sum_i coefficient_i k(x_i, x) - rho > 0; our f is positive for the second class, so that
//! the labels change places and rho = -b. A linear model is one support vector, w, of coefficient 1. The count of support vectors by
//! class, which two classes make no use of, goes by the sign of the coefficient.
//!
//! A model whose pairs of classes vote came from such a file, and is laid out as there.

use super::{ExportFormat, Exported, exact, numbered, refuse, what};
use crate::error::Result;
use crate::model::{Function, Predictor, Votes, pairs};
use crate::problem::KernelFunction;
use std::fmt::Write;

pub(super) fn export(predictor: &Predictor) -> Result<Exported> {
    if predictor.scaling.is_some() {
        let with = format!("{} of columns that the model itself puts on one scale", what(predictor));
        return Err(refuse(ExportFormat::Libsvm, with, "onnx or json, or the columns scaled before the fit"));
    }
    let layout = match &predictor.votes {
        Some(votes) => of_pairs(predictor, votes),
        None if predictor.classes.len() == 2 => of_two(predictor),
        None => {
            let with = format!("{} classes fitted jointly", predictor.classes.len());
            return Err(refuse(ExportFormat::Libsvm, with, "onnx or json (liblinear too, if the model is linear)"));
        }
    };
    let kernel = kernel_lines(predictor)?;
    let (numbers, notes) = numbered(predictor);
    let labels: Vec<i32> = layout.order.iter().map(|&class| numbers[class]).collect();
    let mut text = format!("svm_type c_svc\n{kernel}nr_class {}\ntotal_sv {}\n", labels.len(), layout.lines.len());
    let rho: Vec<String> = layout.rho.iter().map(|&rho| exact(rho)).collect();
    let _ = writeln!(text, "rho {}\nlabel {}", rho.join(" "), spaced(&labels));
    let _ = writeln!(text, "nr_sv {}\nSV", spaced(&layout.counts));
    layout.lines.iter().for_each(|line| text.push_str(line));
    Ok(Exported { bytes: text.into_bytes(), notes })
}

/// What a file says, in its order.
struct Layout {
    /// The classes, as positions in the sorted list.
    order: Vec<usize>,
    /// Support vectors of each.
    counts: Vec<usize>,
    /// One for each pair.
    rho: Vec<f64>,
    /// The support vectors.
    lines: Vec<String>,
}

fn of_two(predictor: &Predictor) -> Layout {
    let single = [1.0];
    let coefficients: &[f64] = match predictor.weights() {
        Some(_) => &single,
        None => &predictor.coefficients,
    };
    let line = |row: usize| format!("{} {}\n", exact(coefficients[row]), entries(predictor, row));
    // grouped, as LIBSVM expects them
    let (positive, others): (Vec<usize>, Vec<usize>) =
        (0..coefficients.len()).partition(|&row| coefficients[row] > 0.0);
    Layout {
        order: vec![1, 0],
        counts: vec![positive.len(), others.len()],
        rho: vec![-predictor.intercepts[0]],
        lines: positive.into_iter().chain(others).map(line).collect(),
    }
}

fn of_pairs(predictor: &Predictor, votes: &Votes) -> Layout {
    let k = votes.order.len();
    let order: Vec<usize> = votes.order.iter().map(|&class| class as usize).collect();
    let sorted: Vec<(usize, usize)> = pairs(k).collect();
    let rho = pairs(k).map(|(first, second)| {
        let (first, second) = (order[first], order[second]);
        let function = sorted.iter().position(|&pair| pair == (first.min(second), first.max(second))).unwrap_or(0);
        if first < second { -predictor.intercepts[function] } else { predictor.intercepts[function] }
    });
    let line = |(row, coefficients): (usize, &[f64])| {
        let coefficients: Vec<String> = coefficients.iter().map(|&value| exact(value)).collect();
        format!("{} {}\n", coefficients.join(" "), entries(predictor, row))
    };
    Layout {
        counts: votes.counts.clone(),
        rho: rho.collect(),
        lines: predictor.coefficients.chunks_exact(k - 1).enumerate().map(line).collect(),
        order,
    }
}

fn spaced<T: ToString>(values: &[T]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<String>>().join(" ")
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
            Err(refuse(ExportFormat::Libsvm, what(predictor), "none: only the author of such a kernel knows it"))
        }
    }
}

/// The entries of a support vector.
fn entries(predictor: &Predictor, row: usize) -> String {
    let mut text = String::new();
    let mut add = |column: usize, value: f64| {
        if value != 0.0 {
            let _ = write!(text, "{}:{} ", column + 1, exact(value));
        }
    };
    match &predictor.function {
        Function::Linear { weights } | Function::Squares { weights } => {
            weights.iter().enumerate().for_each(|(column, &w)| add(column, w));
        }
        Function::Kernel { rows } => rows.as_design().for_each(row, &mut add),
        // LIBSVM counts training rows from 1, in a column of number 0
        Function::Precomputed => text = format!("0:{} ", predictor.support[row] + 1),
    }
    text
}
