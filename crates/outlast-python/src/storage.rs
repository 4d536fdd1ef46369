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

pub fn load(path: &Path) -> PyResult<Model> {
    outlast::io::load_model(path).map_err(to_python)
}
