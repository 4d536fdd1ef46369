//! Dense storage by columns, as Fortran order, pandas and polars have it, read without a copy.
//!
//! A block of rows is gathered column by column, a run of neighbouring entries from each, so that whoever streams over blocks reads
//! memory in order. A single row costs a cache line for every entry: solvers that visit rows in no order take
//! [copies](Design::row_major) instead.

use super::{Dense, Design, Element};
use crate::error::{Error, Result};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// A dense column-major matrix, owned or borrowed.
///
/// ```
/// use outlast::data::{Columns, Design};
/// // [[1, 2], [3, 4], [5, 6]]
/// let x = Columns::new(3, 2, vec![1.0, 3.0, 5.0, 2.0, 4.0, 6.0])?;
/// assert_eq!(x.dot(1, &[1.0, 1.0]), 7.0);
/// # Ok::<(), outlast::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Columns<'a, T: Element = f64> {
    /// The transposed matrix, whose rows are the columns.
    turned: Dense<'a, T>,
}

impl<'a, T: Element> Columns<'a, T> {
    /// A matrix over `rows * cols` values, column after column.
    pub fn new(rows: usize, cols: usize, values: impl Into<Cow<'a, [T]>>) -> Result<Self> {
        let values = values.into();
        let found = format!("{} values", values.len());
        let turned = Dense::new(cols, rows, values);
        let turned = turned.map_err(|_| Error::shape("X", found, format!("{rows} rows x {cols} columns")))?;
        Ok(Columns { turned })
    }

    /// The same matrix row by row, in the same precision.
    pub fn to_rows(&self) -> Dense<'static, T> {
        let (rows, cols) = (self.rows(), self.cols());
        let mut values = vec![T::default(); rows * cols];
        values.par_chunks_mut(GATHERED * cols.max(1)).enumerate().for_each(|(number, out)| {
            let first = number * GATHERED;
            self.gather(first..first + out.len() / cols, out, |value| value);
        });
        Dense::new(rows, cols, values).expect("as many values as before")
    }

    /// Writes some rows, one after the other: eight columns at a time, of which whole cache lines are read and written.
    fn gather<U>(&self, rows: Range<usize>, out: &mut [U], change: impl Fn(T) -> U) {
        let cols = self.cols();
        for (part, out) in out.chunks_mut(GATHERED * cols.max(1)).enumerate() {
            let (first, count) = (rows.start + part * GATHERED, out.len() / cols);
            let of = |column: usize| &self.turned.row(column)[first..first + count];
            let together = cols - cols % WIDTH;
            for start in (0..together).step_by(WIDTH) {
                let columns: [&[T]; WIDTH] = std::array::from_fn(|at| of(start + at));
                for (row, out) in out.chunks_exact_mut(cols).enumerate() {
                    for (out, column) in out[start..start + WIDTH].iter_mut().zip(columns) {
                        *out = change(column[row]);
                    }
                }
            }
            for column in together..cols {
                for (out, &value) in out[column..].iter_mut().step_by(cols).zip(of(column)) {
                    *out = change(value);
                }
            }
        }
    }

    fn entries(&self, row: usize) -> impl Iterator<Item = f64> {
        self.turned.values().iter().skip(row).step_by(self.rows().max(1)).map(|value| value.wide())
    }
}

/// Rows gathered at a time, eight cache lines of a column, and columns gathered together.
const GATHERED: usize = 64;
const WIDTH: usize = 8;

impl<T: Element> Design for Columns<'_, T> {
    fn rows(&self) -> usize {
        self.turned.cols()
    }

    fn cols(&self) -> usize {
        self.turned.rows()
    }

    fn stored(&self) -> usize {
        self.turned.stored()
    }

    fn is_sparse(&self) -> bool {
        false
    }

    fn by_columns(&self) -> bool {
        true
    }

    fn row_major(&self) -> Option<Box<dyn Design>> {
        Some(Box::new(self.to_rows()))
    }

    fn for_each(&self, row: usize, visit: &mut dyn FnMut(usize, f64)) {
        self.entries(row).enumerate().for_each(|(column, value)| visit(column, value));
    }

    /// Summed in the order of [`Dense`], to the last bit.
    fn dot(&self, row: usize, w: &[f64]) -> f64 {
        let (mut lanes, mut tail) = ([0.0; 8], 0.0);
        let full = self.cols() - self.cols() % 8;
        for (column, (value, w)) in self.entries(row).zip(w).enumerate() {
            match column < full {
                true => lanes[column % 8] += value * w,
                false => tail += value * w,
            }
        }
        lanes.iter().sum::<f64>() + tail
    }

    fn add_scaled(&self, row: usize, a: f64, out: &mut [f64]) {
        out.iter_mut().zip(self.entries(row)).for_each(|(out, value)| *out += a * value);
    }

    fn block<'b>(&'b self, rows: Range<usize>, scratch: &'b mut Vec<f64>) -> &'b [f64] {
        scratch.resize(rows.len() * self.cols(), 0.0);
        self.gather(rows, scratch, T::wide);
        scratch
    }

    fn stored_in<'b>(&'b self, rows: Range<usize>, scratch: &'b mut Vec<f64>) -> &'b [f64] {
        self.block(rows, scratch)
    }

    fn copy_row(&self, row: usize, out: &mut [f64]) {
        let (own, rest) = out.split_at_mut(self.cols());
        own.iter_mut().zip(self.entries(row)).for_each(|(out, value)| *out = value);
        rest.fill(0.0);
    }
}

/// A dense copy row by row in double precision.
pub(super) fn copied(x: &dyn Design) -> Dense<'static> {
    const PIECE: usize = 256;
    let (rows, cols) = (x.rows(), x.cols());
    let mut values = vec![0.0; rows * cols];
    values.par_chunks_mut(PIECE * cols.max(1)).enumerate().for_each_init(Vec::new, |scratch, (number, out)| {
        let first = number * PIECE;
        out.copy_from_slice(x.block(first..first + out.len() / cols, scratch));
    });
    Dense::new(rows, cols, values).expect("a value for each entry")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_as_in_rows() {
        for (rows, cols) in [(1, 1), (3, 2), (16, 8), (150, 19), (5, 0), (0, 4)] {
            let by_rows: Vec<f64> = (0..rows * cols).map(|at| ((at * 7919) % 1000) as f64 / 7.0 - 60.0).collect();
            let dense = Dense::new(rows, cols, by_rows.clone()).unwrap();
            let turned: Vec<f64> = (0..rows * cols).map(|at| by_rows[at % rows * cols + at / rows]).collect();
            let columns = Columns::new(rows, cols, turned).unwrap();
            assert_eq!(columns.to_rows(), dense);
            assert_eq!(copied(&columns), dense);
            assert!(columns.row_major().is_some() && dense.row_major().is_none());
            let w: Vec<f64> = (0..cols).map(|column| 1.0 / (column as f64 + 0.3)).collect();
            let (mut one, mut other) = (Vec::new(), Vec::new());
            for start in (0..rows).step_by(7) {
                for end in (start..=rows).step_by(5) {
                    assert_eq!(columns.block(start..end, &mut one), dense.block(start..end, &mut other));
                }
                assert_eq!(columns.dot(start, &w), dense.dot(start, &w));
                let (mut a, mut b) = (vec![0.5; cols + 1], vec![0.5; cols + 1]);
                columns.copy_row(start, &mut a);
                dense.copy_row(start, &mut b);
                assert_eq!(a, b);
                columns.add_scaled(start, 0.1, &mut a[..cols]);
                dense.add_scaled(start, 0.1, &mut b[..cols]);
                assert_eq!(a, b);
                assert_eq!(columns.squared_norm(start), dense.squared_norm(start));
            }
        }
        assert!(Columns::new(2, 2, vec![1.0; 3]).is_err());
        assert!(Columns::<f64>::new(usize::MAX, 2, vec![]).is_err());
    }

    #[test]
    fn the_first_bad_value_is_named() {
        let x = Columns::new(2, 2, vec![1.0, f64::NAN, 2.0, f64::INFINITY]).unwrap();
        let error = x.check_finite().unwrap_err().to_string();
        assert!(error.contains("row 1, column 0") && error.contains("NaN"), "{error}");
    }
}
