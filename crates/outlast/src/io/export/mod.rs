//! Models in the forms of other programs.
//!
//! | format | what | which models |
//! |---|---|---|
//! | `libsvm` | a model file of LIBSVM | two classes, or more where pairs vote; any kernel but a caller's own |
//! | `liblinear` | a model file of LIBLINEAR | linear, any number of classes |
//! | `onnx` | plain tensor operators in double precision: `label` and `scores` | every kernel but `precomputed` and a caller's own |
//! | `json` | every number that predicts, readable | every kernel but a caller's own |
//!
//! The numbers are written so that they read back exactly. LIBSVM and LIBLINEAR know whole numbers of 32 bits as classes only: other
//! classes are numbered from 0 in their order, and a note says so.

mod json;
mod liblinear;
mod libsvm;
mod onnx;
mod protobuf;

use crate::data::Class;
use crate::error::{Error, Result};
use crate::model::{Function, Model, Predictor};

/// A form in which a model can leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// A model file of LIBSVM.
    Libsvm,
    /// A model file of LIBLINEAR.
    Liblinear,
    /// An ONNX graph.
    Onnx,
    /// JSON.
    Json,
}

impl ExportFormat {
    /// Every format there is.
    pub const ALL: &'static [ExportFormat] =
        &[ExportFormat::Libsvm, ExportFormat::Liblinear, ExportFormat::Onnx, ExportFormat::Json];

    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            ExportFormat::Libsvm => "libsvm",
            ExportFormat::Liblinear => "liblinear",
            ExportFormat::Onnx => "onnx",
            ExportFormat::Json => "json",
        }
    }

    /// One line for help texts.
    pub fn about(self) -> &'static str {
        match self {
            ExportFormat::Libsvm => "a LIBSVM model file: two classes",
            ExportFormat::Liblinear => "a LIBLINEAR model file: linear models",
            ExportFormat::Onnx => "an ONNX graph of plain tensor operators: labels and scores",
            ExportFormat::Json => "every number that predicts, readable",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Result<ExportFormat> {
        let names: Vec<&str> = Self::ALL.iter().map(|format| format.name()).collect();
        let found = Self::ALL.iter().copied().find(|format| format.name() == name);
        found.ok_or_else(|| Error::parameter("format", format!("{name:?}"), format!("one of {}", names.join(", "))))
    }
}

/// A model in another form.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    /// The file.
    pub bytes: Vec<u8>,
    /// What the reader should know about it.
    pub notes: Vec<String>,
}

/// Brings a model into another form.
///
/// ```
/// use outlast::io::{export_model, ExportFormat};
/// use outlast::{Dense, Kernel, Truncated};
///
/// let x = Dense::from_rows(&[[0.0], [1.0], [2.0], [3.0]]);
/// let model = Truncated::new(1.0).kernel(Kernel::Linear).fit(&x, &[1, 1, 5, 5])?;
/// let text = String::from_utf8(export_model(&model, ExportFormat::Libsvm)?.bytes).unwrap();
/// assert!(text.starts_with("svm_type c_svc\nkernel_type linear\nnr_class 2\n"));
/// assert!(text.contains("\nlabel 5 1\n"));
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn export_model(model: &Model, format: ExportFormat) -> Result<Exported> {
    let predictor = &model.predictor;
    if predictor.votes.is_some() && format != ExportFormat::Libsvm {
        return Err(refuse(format, "a model whose pairs of classes vote", "libsvm"));
    }
    let mut exported = match format {
        ExportFormat::Libsvm => libsvm::export(predictor),
        ExportFormat::Liblinear => liblinear::export(predictor),
        ExportFormat::Onnx => onnx::export(predictor),
        ExportFormat::Json => json::export(model),
    }?;
    if predictor.probabilities.is_some() {
        exported.notes.push("what probabilities are read off is left out: decisions only".to_string());
    }
    Ok(exported)
}

fn refuse(format: ExportFormat, with: impl std::fmt::Display, allowed: &str) -> Error {
    Error::parameter("format", format!("\"{}\" for {with}", format.name()), allowed)
}

/// The classes as whole numbers of 32 bits, and a note where they are not so by themselves.
fn numbered(predictor: &Predictor) -> (Vec<i32>, Vec<String>) {
    let number = |class: &Class| match class {
        Class::Int(value) => i32::try_from(*value).ok(),
        Class::Text(_) => None,
    };
    match predictor.classes.iter().map(number).collect() {
        Some(numbers) => (numbers, Vec::new()),
        None => {
            let names: Vec<String> =
                predictor.classes.iter().enumerate().map(|(code, class)| format!("{code} = {class}")).collect();
            let note = format!("the format knows whole numbers of 32 bits as classes only: {}", names.join(", "));
            ((0..predictor.classes.len() as i32).collect(), vec![note])
        }
    }
}

/// The kernel's name, as an error shows it.
fn what(predictor: &Predictor) -> String {
    match &predictor.function {
        Function::Linear { .. } => "a linear model".to_string(),
        Function::Squares { .. } => "a model of the columns and their squares".to_string(),
        Function::Precomputed => "a precomputed kernel".to_string(),
        Function::Kernel { .. } => format!("the {} kernel", predictor.kernel.name()),
    }
}

/// A number that reads back exactly.
fn exact(value: f64) -> String {
    if value == 0.0 || (1e-5..1e16).contains(&value.abs()) { format!("{value}") } else { format!("{value:e}") }
}
