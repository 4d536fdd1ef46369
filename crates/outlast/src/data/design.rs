//! The design matrix `X`: n rows, d columns, behind one trait.
//!
//! | type | storage | row access |
//! |---|---|---|
//! | [`Dense<f64>`] | row-major | no copy |
//! | [`Dense<f32>`] | row-major | widened to f64, a block at a time |
//! | [`Columns`](super::Columns) | column-major, f64 or f32 | brought into rows, a block at a time |
//! | [`Csr`] | compressed sparse rows, f64 or f32 values, columns ascending in a row | non-zeros only |
//!
//! Solvers that stream over all rows ask for [`Design::block`]: contiguous f64 rows, borrowed where the storage already
//! is that, else written into a scratch buffer that fits the cache. Solvers that touch rows one by one use
//! [`Design::dot`] and [`Design::add_scaled`], which cost O(non-zeros of the row).

use crate::error::{Error, Result};
use crate::linalg::{Isa, lane_sum};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// A matrix of features, rows = samples.
///
/// Row and column arguments must be in range; the slices passed must have [`cols`](Self::cols) elements.
pub trait Design: Sync {
    /// Number of rows, n.
    fn rows(&self) -> usize;

    /// Number of columns, d.
    fn cols(&self) -> usize;

    /// Number of entries stored: n d for dense storage.
    fn stored(&self) -> usize;

    /// Whether zeros are left out of the storage.
    fn is_sparse(&self) -> bool;

    /// Whether the entries of a row lie far from each other.
    fn by_columns(&self) -> bool {
        false
    }

    /// A copy row by row, where the storage is [by columns](Self::by_columns): for what visits rows in no order.
    fn row_major(&self) -> Option<Box<dyn Design>> {
        None
    }

    /// Calls `visit(column, value)` for each stored entry of a row, columns ascending.
    fn for_each(&self, row: usize, visit: &mut dyn FnMut(usize, f64));

    /// x_row . w
    fn dot(&self, row: usize, w: &[f64]) -> f64;

    /// out += a x_row
    fn add_scaled(&self, row: usize, a: f64, out: &mut [f64]);

    /// Contiguous row-major f64 copy or view of some rows. `scratch` is resized as needed and reused between calls.
    fn block<'a>(&'a self, rows: Range<usize>, scratch: &'a mut Vec<f64>) -> &'a [f64];

    /// The entries stored for some rows, in order. `scratch` as in [`block`](Self::block).
    fn stored_in<'a>(&'a self, rows: Range<usize>, scratch: &'a mut Vec<f64>) -> &'a [f64];

    /// |x_row|^2
    fn squared_norm(&self, row: usize) -> f64 {
        let mut sum = 0.0;
        self.for_each(row, &mut |_, value| sum += value * value);
        sum
    }

    /// Writes one row densely; what `out` has beyond the columns becomes 0.
    fn copy_row(&self, row: usize, out: &mut [f64]) {
        out.fill(0.0);
        self.for_each(row, &mut |column, value| out[column] = value);
    }

    /// Refuses NaN and infinities, naming the first one.
    fn check_finite(&self) -> Result<()> {
        let isa = Isa::detect();
        // 0 x value is 0 or NaN, and so is the sum: one quick look at all entries, then a slow one only where needed
        let finite = chunks(self).into_par_iter().map_init(Vec::new, |scratch, rows| {
            let values = self.stored_in(rows, scratch);
            isa.run(
                #[inline(always)]
                || lane_sum(values, values, |value, _| 0.0 * value) == 0.0,
            )
        });
        if finite.all(|finite| finite) {
            return Ok(());
        }
        let bad = (0..self.rows()).into_par_iter().find_map_first(|row| {
            let mut found = None;
            self.for_each(row, &mut |column, value| {
                if !value.is_finite() && found.is_none() {
                    found = Some((column, value));
                }
            });
            found.map(|(column, value)| (row, column, value))
        });
        match bad {
            None => Ok(()),
            Some((row, column, value)) => {
                let value = if value.is_nan() { "NaN".to_string() } else { value.to_string() };
                let problem = format!("the value is {value}; every value must be finite (no NaN, no infinity)");
                Err(Error::Value { what: "X", row, column: Some(column), problem })
            }
        }
    }
}

/// Ranges of rows of some 4,096 entries each: pieces of work for the cores that fit the cache.
pub(crate) fn chunks(x: &(impl Design + ?Sized)) -> Vec<Range<usize>> {
    let size = (4096 * x.rows() / x.stored().max(1)).clamp(1, 4096);
    (0..x.rows()).step_by(size).map(|start| start..(start + size).min(x.rows())).collect()
}

/// A type matrices can hold: `f64` or `f32`.
pub trait Element: Copy + Default + PartialEq + Send + Sync + 'static {
    /// The value as f64, exactly.
    fn wide(self) -> f64;
    /// Rows as f64: the storage itself where it is f64.
    #[doc(hidden)]
    fn widen<'a>(values: &'a [Self], scratch: &'a mut Vec<f64>) -> &'a [f64];
}

impl Element for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
    fn widen<'a>(values: &'a [f64], _: &'a mut Vec<f64>) -> &'a [f64] {
        values
    }
}

impl Element for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self.into()
    }
    fn widen<'a>(values: &'a [f32], scratch: &'a mut Vec<f64>) -> &'a [f64] {
        scratch.clear();
        scratch.extend(values.iter().map(|&value| f64::from(value)));
        scratch
    }
}

/// A dense row-major matrix, owned or borrowed.
///
/// ```
/// use outlast::{Dense, Design};
/// let x = Dense::from_rows(&[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
/// assert_eq!((x.rows(), x.cols()), (3, 2));
/// assert_eq!(x.dot(1, &[1.0, 1.0]), 7.0);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Dense<'a, T: Element = f64> {
    rows: usize,
    cols: usize,
    values: Cow<'a, [T]>,
}

impl<'a, T: Element> Dense<'a, T> {
    /// The values, row by row.
    pub fn into_values(self) -> Vec<T> {
        self.values.into_owned()
    }

    /// A matrix over `rows * cols` values in row-major order.
    pub fn new(rows: usize, cols: usize, values: impl Into<Cow<'a, [T]>>) -> Result<Self> {
        let values = values.into();
        match rows.checked_mul(cols) {
            Some(size) if size == values.len() => Ok(Dense { rows, cols, values }),
            _ => Err(Error::shape("X", format!("{} values", values.len()), format!("{rows} rows x {cols} columns"))),
        }
    }

    /// A matrix from arrays of equal length.
    pub fn from_rows<const D: usize>(rows: &[[T; D]]) -> Dense<'static, T> {
        Dense { rows: rows.len(), cols: D, values: Cow::Owned(rows.as_flattened().to_vec()) }
    }

    /// The values in row-major order.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// One row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &[T] {
        &self.values[row * self.cols..(row + 1) * self.cols]
    }
}

impl<T: Element> Design for Dense<'_, T> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn cols(&self) -> usize {
        self.cols
    }

    fn stored(&self) -> usize {
        self.values.len()
    }

    fn is_sparse(&self) -> bool {
        false
    }

    fn for_each(&self, row: usize, visit: &mut dyn FnMut(usize, f64)) {
        for (column, value) in self.row(row).iter().enumerate() {
            visit(column, value.wide());
        }
    }

    fn dot(&self, row: usize, w: &[f64]) -> f64 {
        let x = self.row(row);
        let mut lanes = [0.0; 8];
        let (xs, ws) = (x.chunks_exact(8), w[..x.len()].chunks_exact(8));
        let tail: f64 = xs.remainder().iter().zip(ws.remainder()).map(|(x, w)| x.wide() * w).sum();
        for (x, w) in xs.zip(ws) {
            for lane in 0..8 {
                lanes[lane] += x[lane].wide() * w[lane];
            }
        }
        lanes.iter().sum::<f64>() + tail
    }

    fn add_scaled(&self, row: usize, a: f64, out: &mut [f64]) {
        for (out, x) in out.iter_mut().zip(self.row(row)) {
            *out += a * x.wide();
        }
    }

    fn block<'b>(&'b self, rows: Range<usize>, scratch: &'b mut Vec<f64>) -> &'b [f64] {
        T::widen(&self.values[rows.start * self.cols..rows.end * self.cols], scratch)
    }

    fn stored_in<'b>(&'b self, rows: Range<usize>, scratch: &'b mut Vec<f64>) -> &'b [f64] {
        self.block(rows, scratch)
    }

    fn squared_norm(&self, row: usize) -> f64 {
        self.row(row).iter().map(|x| x.wide() * x.wide()).sum()
    }

    fn copy_row(&self, row: usize, out: &mut [f64]) {
        let (own, rest) = out.split_at_mut(self.cols);
        own.iter_mut().zip(self.row(row)).for_each(|(out, x)| *out = x.wide());
        rest.fill(0.0);
    }
}

/// A matrix in compressed sparse row form, owned or borrowed.
///
/// ```
/// use outlast::{Csr, Design};
/// // [[0, 2, 0], [0, 0, 0], [1, 0, 3]]
/// let x = Csr::new(3, 3, vec![0, 1, 1, 3], vec![1, 0, 2], vec![2.0, 1.0, 3.0])?;
/// assert_eq!(x.dot(2, &[1.0, 1.0, 1.0]), 4.0);
/// # Ok::<(), outlast::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Csr<'a, T: Element = f64> {
    rows: usize,
    cols: usize,
    starts: Cow<'a, [usize]>,
    columns: Cow<'a, [u32]>,
    values: Cow<'a, [T]>,
}

impl<'a, T: Element> Csr<'a, T> {
    /// A matrix whose row `i` has `values[starts[i]..starts[i+1]]` at `columns[starts[i]..starts[i+1]]`.
    ///
    /// Columns must ascend strictly within a row.
    pub fn new(
        rows: usize,
        cols: usize,
        starts: impl Into<Cow<'a, [usize]>>,
        columns: impl Into<Cow<'a, [u32]>>,
        values: impl Into<Cow<'a, [T]>>,
    ) -> Result<Self> {
        let csr = Csr { rows, cols, starts: starts.into(), columns: columns.into(), values: values.into() };
        csr.check()?;
        Ok(csr)
    }

    fn check(&self) -> Result<()> {
        if self.starts.len() != self.rows.saturating_add(1) {
            return Err(Error::shape("X", format!("{} row starts", self.starts.len()), format!("{} + 1", self.rows)));
        }
        if self.columns.len() != self.values.len() {
            let found = format!("{} columns for {} values", self.columns.len(), self.values.len());
            return Err(Error::shape("X", found, "as many of each"));
        }
        if self.starts[0] != 0 || self.starts[self.rows] != self.values.len() {
            return Err(Error::shape(
                "X",
                "row starts that do not span the values",
                "starts from 0 to the number of values",
            ));
        }
        for row in 0..self.rows {
            let (start, end) = (self.starts[row], self.starts[row + 1]);
            if start > end || end > self.values.len() {
                return Err(Error::shape("X", format!("a row start that falls at row {row}"), "ascending row starts"));
            }
            let columns = &self.columns[start..end];
            let ascending = columns.windows(2).all(|pair| pair[0] < pair[1]);
            if !ascending || columns.last().is_some_and(|&last| last as usize >= self.cols) {
                let problem = format!("column numbers must ascend strictly and stay below {}", self.cols);
                return Err(Error::Value { what: "X", row, column: None, problem });
            }
        }
        Ok(())
    }

    /// The stored columns and values of one row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> (&[u32], &[T]) {
        let range = self.starts[row]..self.starts[row + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// Where each row starts, and the total at the end.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The column of each stored entry.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The stored entries.
    pub fn values(&self) -> &[T] {
        &self.values
    }
}

impl<T: Element> Design for Csr<'_, T> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn cols(&self) -> usize {
        self.cols
    }

    fn stored(&self) -> usize {
        self.values.len()
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn for_each(&self, row: usize, visit: &mut dyn FnMut(usize, f64)) {
        let (columns, values) = self.row(row);
        for (&column, &value) in columns.iter().zip(values) {
            visit(column as usize, value.wide());
        }
    }

    fn dot(&self, row: usize, w: &[f64]) -> f64 {
        let (columns, values) = self.row(row);
        columns.iter().zip(values).map(|(&column, value)| w[column as usize] * value.wide()).sum()
    }

    fn add_scaled(&self, row: usize, a: f64, out: &mut [f64]) {
        let (columns, values) = self.row(row);
        for (&column, value) in columns.iter().zip(values) {
            out[column as usize] += a * value.wide();
        }
    }

    fn block<'b>(&'b self, rows: Range<usize>, scratch: &'b mut Vec<f64>) -> &'b [f64] {
        scratch.clear();
        scratch.resize(rows.len() * self.cols, 0.0);
        for (out, row) in scratch.chunks_exact_mut(self.cols.max(1)).zip(rows) {
            self.add_scaled(row, 1.0, out);
        }
        scratch
    }

    fn stored_in<'b>(&'b self, rows: Range<usize>, scratch: &'b mut Vec<f64>) -> &'b [f64] {
        T::widen(&self.values[self.starts[rows.start]..self.starts[rows.end]], scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [[f64; 3]; 3] = [[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, -3.0]];

    fn all() -> [Box<dyn Design>; 4] {
        let single = TABLE.map(|row| row.map(|value| value as f32));
        let sparse = Csr::new(3, 3, vec![0, 1, 1, 3], vec![1, 0, 2], vec![2.0, 1.0, -3.0]).unwrap();
        let both = Csr::new(3, 3, vec![0, 1, 1, 3], vec![1, 0, 2], vec![2.0f32, 1.0, -3.0]).unwrap();
        [Box::new(Dense::from_rows(&TABLE)), Box::new(Dense::from_rows(&single)), Box::new(sparse), Box::new(both)]
    }

    #[test]
    fn every_storage_gives_the_same_answers() {
        let w = [0.5, 1.0, 2.0];
        for x in all() {
            let mut scratch = Vec::new();
            assert_eq!(x.block(1..3, &mut scratch), TABLE[1..].as_flattened());
            for (row, expected) in TABLE.iter().enumerate() {
                let mut out = [0.0; 3];
                x.copy_row(row, &mut out);
                assert_eq!(out, *expected);
                assert_eq!(x.dot(row, &w), expected.iter().zip(w).map(|(a, b)| a * b).sum::<f64>());
                assert_eq!(x.squared_norm(row), expected.iter().map(|a| a * a).sum::<f64>());
                let mut out = [1.0; 3];
                x.add_scaled(row, 2.0, &mut out);
                assert_eq!(out, expected.map(|a| 1.0 + 2.0 * a));
            }
        }
    }

    #[test]
    fn wrong_sizes_are_refused() {
        assert!(Dense::new(2, 2, vec![1.0; 3]).is_err());
        assert!(Dense::<f64>::new(usize::MAX, 2, vec![]).is_err());
        assert!(Csr::new(1, 2, vec![0, 1], vec![2], vec![1.0]).is_err());
        assert!(Csr::new(1, 2, vec![0, 2], vec![1, 0], vec![1.0, 1.0]).is_err());
        assert!(Csr::new(2, 2, vec![0, 2, 1], vec![0], vec![1.0]).is_err());
        assert!(Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).is_ok());
    }

    #[test]
    fn the_first_bad_value_is_named() {
        let x = Dense::from_rows(&[[1.0, 2.0], [f64::NAN, f64::INFINITY]]);
        let error = x.check_finite().unwrap_err().to_string();
        assert!(error.contains("row 1, column 0") && error.contains("NaN"), "{error}");
    }
}
