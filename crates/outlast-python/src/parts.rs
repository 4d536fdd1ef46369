//! Rows that lie in other processes: a part of them as an object that travels, what it answers, and the fit that asks.

use crate::errors::to_python;
use crate::fit::{ClassName, method, seconds};
use crate::fitted::Fitted;
use crate::gate;
use crate::matrix::Matrix;
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArrayMethods};
use outlast::data::ChunkView;
use outlast::model::StreamRequest;
use outlast::solver::stream::{Answer, MOST_SENT, Messages, Request};
use outlast::{Class, ClassWeight, Error};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rayon::ThreadPoolBuilder;
use std::sync::Arc;

/// Some rows: values in 32 bits with a constant taken off each column, classes by number, weights (or none).
#[pyclass(frozen, module = "outlast._core")]
pub struct Partition {
    first: u64,
    cols: usize,
    // shared with the same rows under other numbers
    x: Arc<Vec<f32>>,
    codes: Vec<u32>,
    weights: Arc<Vec<f64>>,
}

impl Partition {
    fn view(&self) -> ChunkView<'_> {
        ChunkView { first: self.first, x: &self.x, codes: &self.codes, weights: &self.weights }
    }
}

#[pymethods]
impl Partition {
    #[new]
    #[pyo3(signature = (x, codes, weights=None, shift=None))]
    fn new(
        py: Python<'_>,
        x: Matrix<'_>,
        codes: PyReadonlyArray1<'_, u32>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        shift: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Partition> {
        let design = x.design()?;
        let (rows, cols) = (design.rows(), design.cols());
        let shift = shift.map_or(Ok(vec![0.0; cols]), |shift| shift.as_slice().map(<[f64]>::to_vec))?;
        let of_rows = |length: usize| length == rows;
        if !of_rows(codes.len()) || shift.len() != cols || weights.as_ref().is_some_and(|w| !of_rows(w.len())) {
            return Err(PyValueError::new_err(format!("{rows} rows, but {} labels", codes.len())));
        }
        let weights = weights.map_or(Ok(Vec::new()), |weights| weights.as_slice().map(<[f64]>::to_vec))?;
        let read = || -> outlast::Result<Vec<f32>> {
            let mut values: Vec<f32> = Vec::with_capacity(rows * cols);
            let mut row_values = vec![0.0; cols];
            for row in 0..rows {
                design.copy_row(row, &mut row_values);
                values.extend(row_values.iter().zip(&shift).map(|(value, shift)| (value - shift) as f32));
                let kept = &values[row * cols..];
                if let Some(column) = kept.iter().position(|value| !value.is_finite()) {
                    let value = row_values[column];
                    let problem = match value.is_finite() {
                        true => format!("{value} is too large for the 32 bits that rows are kept in; scale the column"),
                        false => format!("{value} is not a finite number"),
                    };
                    return Err(Error::Value { what: "X", row, column: Some(column), problem });
                }
            }
            Ok(values)
        };
        let values = py.detach(read).map_err(to_python)?;
        Ok(Partition {
            first: 0,
            cols,
            x: Arc::new(values),
            codes: codes.as_slice()?.to_vec(),
            weights: Arc::new(weights),
        })
    }

    /// The same rows, numbered from `first`, with other numbers for the classes.
    fn renumbered(&self, codes: Vec<u32>, first: u64) -> PyResult<Partition> {
        let new = |code: &u32| codes.get(*code as usize).copied();
        let codes: Option<Vec<u32>> = self.codes.iter().map(new).collect();
        let codes = codes.ok_or_else(|| PyValueError::new_err("a class has no new number"))?;
        Ok(Partition { first, cols: self.cols, x: self.x.clone(), codes, weights: self.weights.clone() })
    }

    /// The same rows with other weights.
    fn weighed(&self, weights: PyReadonlyArray1<'_, f64>) -> PyResult<Partition> {
        if weights.len() != self.codes.len() {
            return Err(PyValueError::new_err(format!("{} rows, but {} weights", self.codes.len(), weights.len())));
        }
        let weights = Arc::new(weights.as_slice()?.to_vec());
        Ok(Partition { first: self.first, cols: self.cols, x: self.x.clone(), codes: self.codes.clone(), weights })
    }

    /// The mean of every column and the sum of squares around it, of the values as they are kept.
    fn moments<'py>(&self, py: Python<'py>) -> (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>) {
        let (mean, spread) = py.detach(|| moments(&self.x, self.cols));
        (PyArray1::from_vec(py, mean), PyArray1::from_vec(py, spread))
    }

    /// The answer to a request, on that many threads.
    #[pyo3(signature = (request, threads=1))]
    fn answer<'py>(&self, py: Python<'py>, request: &[u8], threads: usize) -> PyResult<Bound<'py, PyBytes>> {
        let ask = |parallel: bool| Request::from_bytes(request)?.answer(&self.view(), parallel)?.to_bytes();
        let answer = py.detach(|| match threads {
            0 | 1 => ask(false),
            // a pool of its own: that of a fit in this process may be waiting for this answer
            _ => match ThreadPoolBuilder::new().num_threads(threads).build() {
                Ok(pool) => pool.install(|| ask(true)),
                Err(_) => ask(false),
            },
        });
        Ok(PyBytes::new(py, &answer.map_err(to_python)?))
    }

    /// Number of rows.
    #[getter]
    fn rows(&self) -> usize {
        self.codes.len()
    }

    /// The number of each row's class.
    #[getter]
    fn codes<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, &self.codes)
    }

    /// Number of columns.
    #[getter]
    fn cols(&self) -> usize {
        self.cols
    }

    fn __sizeof__(&self) -> usize {
        4 * (self.x.len() + self.codes.len()) + 8 * self.weights.len() + 64
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let own = slf.get();
        let head = [own.first, own.cols as u64, own.codes.len() as u64, own.weights.len() as u64];
        let mut bytes = Vec::with_capacity(32 + own.__sizeof__());
        head.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        own.codes.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        own.weights.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        own.x.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        Ok((slf.getattr("from_bytes")?, (PyBytes::new(slf.py(), &bytes),)))
    }

    /// What pickle kept.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Partition> {
        let damaged = || PyValueError::new_err("the bytes of a partition are damaged");
        let (head, rest) = data.split_at_checked(32).ok_or_else(damaged)?;
        let head: Vec<u64> = words(head).map(u64::from_le_bytes).collect();
        let sizes: Option<Vec<usize>> = head[1..].iter().map(|size| usize::try_from(*size).ok()).collect();
        let (cols, rows, weighed) = match sizes.as_deref() {
            Some(&[cols, rows, weighed]) => (cols, rows, weighed),
            _ => return Err(damaged()),
        };
        let codes_end = rows.checked_mul(4).ok_or_else(damaged)?;
        let (codes, rest) = rest.split_at_checked(codes_end).ok_or_else(damaged)?;
        let weights_end = weighed.checked_mul(8).ok_or_else(damaged)?;
        let (weights, values) = rest.split_at_checked(weights_end).ok_or_else(damaged)?;
        if rows.checked_mul(cols).and_then(|size| size.checked_mul(4)) != Some(values.len()) {
            return Err(damaged());
        }
        Ok(Partition {
            first: head[0],
            cols,
            x: Arc::new(words(values).map(f32::from_le_bytes).collect()),
            codes: words(codes).map(u32::from_le_bytes).collect(),
            weights: Arc::new(words(weights).map(f64::from_le_bytes).collect()),
        })
    }
}

/// Differences from the first row are summed up, so that columns far from 0 keep their digits.
fn moments(x: &[f32], cols: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut sums, mut squares) = (vec![0.0; cols], vec![0.0; cols]);
    let first: Vec<f64> = x.iter().take(cols).map(|x| f64::from(*x)).collect();
    for row in x.chunks_exact(cols.max(1)) {
        for (((sum, square), x), first) in sums.iter_mut().zip(&mut squares).zip(row).zip(&first) {
            let away = f64::from(*x) - first;
            *sum += away;
            *square += away * away;
        }
    }
    let rows = (x.len() / cols.max(1)).max(1) as f64;
    let spread = squares.iter().zip(&sums).map(|(square, sum)| (square - sum * sum / rows).max(0.0)).collect();
    (sums.iter().enumerate().map(|(at, sum)| first.get(at).copied().unwrap_or(0.0) + sum / rows).collect(), spread)
}

/// Bytes in words of N.
fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.chunks_exact(N).map(|word| word.try_into().unwrap_or([0; N]))
}

/// The sum of the answers of several parts, in their order.
#[pyfunction]
pub fn add_answers<'py>(py: Python<'py>, answers: Vec<Bound<'py, PyBytes>>) -> PyResult<Bound<'py, PyBytes>> {
    let answers: Vec<&[u8]> = answers.iter().map(|answer| answer.as_bytes()).collect();
    let add = || -> outlast::Result<Vec<u8>> {
        let mut parts = answers.iter();
        let first = parts.next().ok_or_else(|| Error::shape("answers", "none", "at least one"))?;
        let mut total = Answer::from_bytes(first)?;
        for part in parts {
            total.add(Answer::from_bytes(part)?)?;
        }
        total.to_bytes()
    };
    Ok(PyBytes::new(py, &py.detach(add).map_err(to_python)?))
}

/// Fits to rows elsewhere: `ask(request)` is called on the calling thread with bytes, and returns the sum of all parts' answers. `size` are their
/// rows and columns; `balanced` stands for class weights by the number of rows.
#[pyfunction]
#[pyo3(signature = (ask, size, classes, method, parameters, *, shift=None, balanced=false, memory=1 << 30, threads=None,
    feature_names=None, time_limit=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "every one is a named argument in Python")]
pub fn fit_parts(
    py: Python<'_>,
    ask: Py<PyAny>,
    size: (u64, usize),
    classes: Vec<ClassName>,
    method: &str,
    parameters: &Bound<'_, PyAny>,
    shift: Option<Vec<f64>>,
    balanced: bool,
    memory: usize,
    threads: Option<usize>,
    feature_names: Option<Vec<String>>,
    time_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Fitted> {
    let mut method = self::method(method, parameters)?;
    if balanced {
        method.common_mut().class_weight = ClassWeight::Balanced;
    }
    method.check_chunks().map_err(to_python)?;
    let limit = time_limit.map(seconds).transpose()?;
    let classes: Vec<Class> = classes.into_iter().map(Class::from).collect();
    let feature_names = feature_names.as_deref();
    let model = gate::run_asking(py, threads, progress, ask, move |control, ask| {
        let control = limit.map_or(control, |limit| control.time_limit(limit));
        let mut passes = Messages { cols: size.1, rows: size.0, shift: shift.unwrap_or_default(), ask };
        method.fit_passes(
            &mut passes,
            &StreamRequest { classes: &classes, feature_names, memory, sums: MOST_SENT, control },
        )
    })?;
    Ok(Fitted { model })
}
