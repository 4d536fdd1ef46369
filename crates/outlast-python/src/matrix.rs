//! X as it comes from Python: borrowed from numpy without a copy.

use crate::errors::to_python;
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use outlast::{Csr, Dense, Design};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A C-contiguous matrix of float64 or float32, or the parts of a CSR matrix: (indptr, indices, data, columns).
#[derive(FromPyObject)]
pub enum Matrix<'py> {
    Double(PyReadonlyArray2<'py, f64>),
    Single(PyReadonlyArray2<'py, f32>),
    Sparse(PyReadonlyArray1<'py, usize>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f64>, usize),
    SparseSingle(PyReadonlyArray1<'py, usize>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f32>, usize),
}

impl Matrix<'_> {
    /// The matrix behind the core's trait.
    pub fn design(&self) -> PyResult<Box<dyn Design + Send + '_>> {
        Ok(match self {
            Matrix::Double(array) => Box::new(dense(array)?),
            Matrix::Single(array) => Box::new(dense(array)?),
            Matrix::Sparse(starts, columns, values, width) => Box::new(sparse(starts, columns, values, *width)?),
            Matrix::SparseSingle(starts, columns, values, width) => Box::new(sparse(starts, columns, values, *width)?),
        })
    }
}

fn dense<'a, T>(array: &'a PyReadonlyArray2<'_, T>) -> PyResult<Dense<'a, T>>
where
    T: numpy::Element + outlast::data::Element,
{
    if !array.is_c_contiguous() {
        return Err(PyValueError::new_err("X must be C-contiguous"));
    }
    let (rows, columns) = (array.shape()[0], array.shape()[1]);
    Dense::new(rows, columns, array.as_slice()?).map_err(to_python)
}

fn sparse<'a, T>(
    starts: &'a PyReadonlyArray1<'_, usize>,
    columns: &'a PyReadonlyArray1<'_, u32>,
    values: &'a PyReadonlyArray1<'_, T>,
    width: usize,
) -> PyResult<Csr<'a, T>>
where
    T: numpy::Element + outlast::data::Element,
{
    let starts = starts.as_slice()?;
    let rows = starts.len().checked_sub(1).ok_or_else(|| PyValueError::new_err("indptr is empty"))?;
    Csr::new(rows, width, starts, columns.as_slice()?, values.as_slice()?).map_err(to_python)
}
