//! Models as bytes and files.

use crate::errors::to_python;
use outlast::Model;
use pyo3::prelude::*;
use std::path::Path;

pub fn to_bytes(model: &Model) -> PyResult<Vec<u8>> {
    outlast::io::model_to_bytes(model).map_err(to_python)
}

pub fn from_bytes(bytes: &[u8]) -> PyResult<Model> {
    outlast::io::model_from_bytes(bytes).map_err(to_python)
}

pub fn save(model: &Model, path: &Path) -> PyResult<()> {
    outlast::io::save_model(model, path).map_err(to_python)
}

pub fn load(path: &Path, features: Option<usize>) -> PyResult<Model> {
    let mut model = outlast::io::load_model(path).map_err(to_python)?;
    features.map_or(Ok(()), |features| model.widen(features)).map_err(to_python)?;
    Ok(model)
}

pub fn export(model: &Model, path: &Path, format: &str) -> PyResult<Vec<String>> {
    let exported = outlast::io::ExportFormat::from_name(format)
        .and_then(|format| outlast::io::export_model(model, format))
        .map_err(to_python)?;
    outlast::io::write_atomically(path, |out| out.write_all(&exported.bytes)).map_err(to_python)?;
    Ok(exported.notes)
}
