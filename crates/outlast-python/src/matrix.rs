//! X as it comes from Python: borrowed from numpy without a copy.

use crate::errors::to_python;
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use outlast::data::Columns;
use outlast::{Csr, Dense, Design};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A matrix of float64 or float32 in C or Fortran order, or the parts of a CSR matrix: (indptr, indices, data, columns).
#[derive(FromPyObject)]
pub enum Matrix<'py> {
    Double(PyReadonlyArray2<'py, f64>),
    Single(PyReadonlyArray2<'py, f32>),
    Sparse(PyReadonlyArray1<'py, usize>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f64>, usize),
    SparseSingle(PyReadonlyArray1<'py, usize>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f32>, usize),
}

/// A matrix behind the core's trait.
pub type Borrowed<'a> = Box<dyn Design + Send + 'a>;

impl Matrix<'_> {
    /// The matrix as it is stored, for what reads it in order.
    pub fn as_stored(&self) -> PyResult<Borrowed<'_>> {
        match self {
            Matrix::Double(array) => dense(array, false),
            Matrix::Single(array) => dense(array, false),
            other => other.design(),
        }
    }

    /// The matrix by rows: one in Fortran order is copied.
    pub fn design(&self) -> PyResult<Borrowed<'_>> {
        Ok(match self {
            Matrix::Double(array) => dense(array, true)?,
            Matrix::Single(array) => dense(array, true)?,
            Matrix::Sparse(starts, columns, values, width) => Box::new(sparse(starts, columns, values, *width)?),
            Matrix::SparseSingle(starts, columns, values, width) => Box::new(sparse(starts, columns, values, *width)?),
        })
    }
}

fn dense<'a, T>(array: &'a PyReadonlyArray2<'_, T>, by_rows: bool) -> PyResult<Borrowed<'a>>
where
    T: numpy::Element + outlast::data::Element,
{
    let (rows, columns) = (array.shape()[0], array.shape()[1]);
    if array.is_c_contiguous() {
        return Ok(Box::new(Dense::new(rows, columns, array.as_slice()?).map_err(to_python)?));
    }
    if !array.is_fortran_contiguous() {
        return Err(PyValueError::new_err("X must be contiguous, in C or Fortran order"));
    }
    let stored = Columns::new(rows, columns, array.as_slice()?).map_err(to_python)?;
    Ok(if by_rows { Box::new(stored.to_rows()) } else { Box::new(stored) })
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
