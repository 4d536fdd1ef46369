//! One Python exception per kind of error.

use outlast::Error;
use pyo3::exceptions::{PyFloatingPointError, PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;

/// The Python exception for an error of the core.
pub fn to_python(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::Numerical { .. } => PyFloatingPointError::new_err(message),
        Error::Io { file, source } => match source.raw_os_error() {
            // with an errno Python picks FileNotFoundError, PermissionError, ...
            Some(code) => PyOSError::new_err((code, plain_reason(&source), file.into_os_string())),
            None => PyOSError::new_err(message),
        },
        _ => PyValueError::new_err(message),
    }
}

/// What the operating system said, without Rust's " (os error 2)".
fn plain_reason(source: &std::io::Error) -> String {
    let text = source.to_string();
    match text.rfind(" (os error") {
        Some(end) => text[..end].to_string(),
        None => text,
    }
}
