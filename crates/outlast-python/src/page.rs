//! The page of an audit, from JSON.

use crate::errors::to_python;
use outlast::io::{Page, save_page};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Writes the page that a JSON text describes; numbers may be null.
#[pyfunction]
pub fn write_page(py: Python<'_>, json: &str, path: PathBuf) -> PyResult<()> {
    py.detach(|| {
        let page: Page = serde_json::from_str(json).map_err(|error| PyValueError::new_err(format!("page: {error}")))?;
        save_page(&page, path).map_err(to_python)
    })
}
