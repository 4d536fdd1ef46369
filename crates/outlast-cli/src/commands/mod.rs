//! One file per command.

pub mod apply;
pub mod audit;
pub mod certify;
pub mod evaluate;
pub mod export;
pub mod fit;
pub mod gamma;
pub mod predict;
pub mod reproduce;
pub mod tune;

use crate::failure::Failure;
use outlast::{Labels, Model, io};
use std::path::Path;

/// The labels of a table that must have some.
pub fn labels_of(table: &io::Table) -> Result<&Labels, Failure> {
    table.labels.as_ref().ok_or_else(|| Failure::Usage(format!("{}: there are no labels", table.source.display())))
}

/// A model; one of LIBSVM, which does not tell its number of features, with those asked for.
pub fn load_model(path: &Path, features: Option<usize>) -> Result<Model, Failure> {
    let mut model = io::load_model(path)?;
    match features {
        Some(features) if model.summary.solver == "libsvm" => model.widen(features)?,
        _ => {}
    }
    Ok(model)
}
