//! Columns of mean 0 and variance 1, but for far values.
//!
//! ```text
//! z = (x - shift) / scale,    shift the weighted mean of the column, scale the root of its weighted variance
//! ```
//!
//! Mean and variance are those of the values within the column's far fences (`fences.rs`): one absurd cell does not flatten its column. Without far
//! values they are the plain ones. Far values themselves stay far, up to a thousand deviations.
//!
//! A column without spread has the scale 1. Sparse rows are only divided (shift = 0), so that zeros stay zeros; there zeros are never far.

use super::{Design, Fences};
use rayon::prelude::*;
use std::ops::Range;

/// Values are pulled in to this many deviations: far enough to look like nothing else, near enough for a solver to keep its digits. Without far
/// values none of fewer than a million rows is further out.
pub(crate) const FARTHEST: f64 = 1e3;
/// How far the fences stand out: skewed columns have their tails within, one cell in wrong units does not.
const REACH: f64 = 30.0;

/// What is subtracted from each column, and what it is divided by.
///
/// ```
/// use outlast::Dense;
/// use outlast::data::Scaling;
/// let x = Dense::from_rows(&[[1.0, 7.0], [3.0, 7.0]]);
/// let scaling = Scaling::of(&x, None);
/// assert_eq!((scaling.shift, scaling.scale), (vec![2.0, 7.0], vec![1.0, 1.0]));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// One number per column; all 0 for sparse data.
    pub shift: Vec<f64>,
    /// One number > 0 per column.
    pub scale: Vec<f64>,
}

impl Scaling {
    /// Mean and deviation of the columns within their far fences, each row counted as often as its weight says.
    pub fn of(x: &dyn Design, weights: Option<&[f64]>) -> Scaling {
        Scaling::with_fences(x, weights).0
    }

    /// The same, and the fences.
    pub(crate) fn with_fences(x: &dyn Design, weights: Option<&[f64]>) -> (Scaling, Vec<Fences>) {
        let (n, d) = (x.rows(), x.cols());
        let total = weights.map_or(n as f64, |weights| weights.iter().sum());
        // shares, so that huge weights stay finite
        let share = |row: usize| weights.map_or(1.0, |weights| weights[row]) / total;
        if !(total > 0.0) {
            return (Scaling { shift: vec![0.0; d], scale: vec![1.0; d] }, vec![Fences::default(); d]);
        }
        let fences = fences(x, share);
        let each = |visit: &mut dyn FnMut(usize, usize, f64)| {
            each(x, |row, column, value| {
                if fences[column].hold(value) {
                    visit(row, column, value);
                }
            });
        };
        // in units of the largest entry: no overflow for 1e200, no underflow for 1e-200
        let mut unit = vec![0.0f64; d];
        each(&mut |_, column, value| unit[column] = unit[column].max(value.abs()));
        unit.iter_mut().for_each(|unit| *unit = if unit.is_normal() { *unit } else { 1.0 });
        let far = far(x, &fences, share);
        // what is left of the whole without the far values
        let near = |column: usize| if far[column] > 0.0 { 1.0 - far[column] } else { 1.0 };
        let mut mean = vec![0.0; d];
        each(&mut |row, column, value| mean[column] += share(row) * (value / unit[column]));
        mean.iter_mut().enumerate().for_each(|(column, mean)| *mean /= near(column));
        // stored entries about the mean, and the zeros that are left out
        let (mut variance, mut stored) = (vec![0.0; d], vec![0.0; d]);
        each(&mut |row, column, value| {
            variance[column] += share(row) * (value / unit[column] - mean[column]).powi(2);
            stored[column] += share(row);
        });
        let rounding = n as f64 * f64::EPSILON;
        let deviation = |column: usize| {
            let (mean, zeros) = (mean[column], (near(column) - stored[column]).max(0.0));
            let variance = (variance[column] + if x.is_sparse() { zeros * mean * mean } else { 0.0 }) / near(column);
            // more than rounding makes of a constant column
            let spread = variance > rounding * variance + (rounding * mean).powi(2);
            let deviation = variance.sqrt() * unit[column];
            (spread && deviation.is_normal()).then_some(deviation)
        };
        let deviations: Vec<Option<f64>> = (0..d).map(deviation).collect();
        let scale = deviations.iter().map(|deviation| deviation.unwrap_or(1.0)).collect();
        let mut shift = vec![0.0; d];
        if !x.is_sparse() {
            // a constant column becomes 0, not what rounding leaves of it
            x.copy_row((0..n).find(|&row| share(row) > 0.0).unwrap_or(0), &mut shift);
            for column in (0..d).filter(|&column| deviations[column].is_some()) {
                shift[column] = mean[column] * unit[column];
            }
        }
        (Scaling { shift, scale }, fences)
    }

    /// Whether anything is subtracted, so that zeros do not stay zeros.
    pub fn shifts(&self) -> bool {
        self.shift.iter().any(|&shift| shift != 0.0)
    }

    fn apply(&self, column: usize, value: f64) -> f64 {
        let (shift, scale) = (self.shift[column], self.scale[column]);
        let difference = value - shift;
        // the difference of two huge numbers may not be a number that exists
        let z = if difference.is_finite() { difference / scale } else { value / scale - shift / scale };
        z.clamp(-FARTHEST, FARTHEST)
    }
}

/// The share of each column that lies beyond its fences.
fn far(x: &dyn Design, fences: &[Fences], share: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut far = vec![0.0; x.cols()];
    each(x, |row, column, value| {
        if !fences[column].hold(value) {
            far[column] += share(row);
        }
    });
    far
}

/// Entries whose order is looked at together.
const AT_ONCE: usize = 1 << 22;

/// The fences of each column. Dense columns are looked at some at a time, sparse ones where zeros do not hold both quartiles.
fn fences(x: &dyn Design, share: impl Fn(usize) -> f64) -> Vec<Fences> {
    let (n, d) = (x.rows(), x.cols());
    let mut fences = vec![Fences::default(); d];
    if !x.is_sparse() {
        let mut row_values = vec![0.0; d];
        let width = (AT_ONCE / n.max(1)).clamp(1, d.max(1));
        for (part, out) in fences.chunks_mut(width).enumerate() {
            let mut lists = vec![Vec::with_capacity(n); out.len()];
            for row in 0..n {
                x.copy_row(row, &mut row_values);
                let values = &row_values[part * width..];
                lists.iter_mut().zip(values).for_each(|(list, &value)| list.push((value, share(row))));
            }
            let found = lists.par_iter_mut().map(|list| Fences::of_shares(list, 0.0, REACH));
            out.copy_from_slice(&found.collect::<Vec<_>>());
        }
        return fences;
    }
    let mut stored = vec![0.0; d];
    each(x, |row, column, _| stored[column] += share(row));
    let mut lists: Vec<Vec<(f64, f64)>> = vec![Vec::new(); d];
    each(x, |row, column, value| {
        if stored[column] >= 0.25 {
            lists[column].push((value, share(row)));
        }
    });
    let found = lists.par_iter_mut().zip(&stored).map(|(list, stored)| match list.is_empty() {
        true => Fences::default(),
        false => Fences::of_shares(list, (1.0 - stored).max(0.0), REACH).around_zero(),
    });
    found.collect()
}

fn each(x: &dyn Design, mut visit: impl FnMut(usize, usize, f64)) {
    for row in 0..x.rows() {
        x.for_each(row, &mut |column, value| visit(row, column, value));
    }
}

/// A view of `x` with its columns on one scale.
pub struct Standardized<'a> {
    x: &'a dyn Design,
    scaling: &'a Scaling,
    fences: Option<&'a [Fences]>,
    sparse: bool,
}

impl<'a> Standardized<'a> {
    /// The view; `scaling` must have as many columns as `x`.
    pub fn new(x: &'a dyn Design, scaling: &'a Scaling) -> Self {
        Standardized { x, scaling, fences: None, sparse: x.is_sparse() && !scaling.shifts() }
    }

    /// The same with far values pulled in to their fences.
    pub(crate) fn within(x: &'a dyn Design, scaling: &'a Scaling, fences: &'a [Fences]) -> Self {
        Standardized { fences: Some(fences), ..Standardized::new(x, scaling) }
    }

    fn apply(&self, column: usize, value: f64) -> f64 {
        let value = self.fences.map_or(value, |fences| fences[column].pull(value));
        self.scaling.apply(column, value)
    }
}

impl Design for Standardized<'_> {
    fn rows(&self) -> usize {
        self.x.rows()
    }

    fn cols(&self) -> usize {
        self.x.cols()
    }

    fn stored(&self) -> usize {
        if self.sparse { self.x.stored() } else { self.x.rows() * self.x.cols() }
    }

    fn is_sparse(&self) -> bool {
        self.sparse
    }

    fn for_each(&self, row: usize, visit: &mut dyn FnMut(usize, f64)) {
        if self.sparse || !self.x.is_sparse() {
            return self.x.for_each(row, &mut |column, value| visit(column, self.apply(column, value)));
        }
        let mut values = vec![0.0; self.cols()];
        self.copy_row(row, &mut values);
        values.into_iter().enumerate().for_each(|(column, value)| visit(column, value));
    }

    fn dot(&self, row: usize, w: &[f64]) -> f64 {
        let mut sum = 0.0;
        self.for_each(row, &mut |column, value| sum += value * w[column]);
        sum
    }

    fn add_scaled(&self, row: usize, a: f64, out: &mut [f64]) {
        self.for_each(row, &mut |column, value| out[column] += a * value);
    }

    fn copy_row(&self, row: usize, out: &mut [f64]) {
        self.x.copy_row(row, out);
        for (column, value) in out.iter_mut().enumerate().take(self.cols()) {
            *value = self.apply(column, *value);
        }
    }

    fn block<'b>(&'b self, rows: Range<usize>, scratch: &'b mut Vec<f64>) -> &'b [f64] {
        let cols = self.cols();
        scratch.clear();
        scratch.resize(rows.len() * cols, 0.0);
        for (out, row) in scratch.chunks_exact_mut(cols.max(1)).zip(rows) {
            self.copy_row(row, out);
        }
        scratch
    }

    fn stored_in<'b>(&'b self, rows: Range<usize>, scratch: &'b mut Vec<f64>) -> &'b [f64] {
        if !self.sparse {
            return self.block(rows, scratch);
        }
        scratch.clear();
        for row in rows {
            self.for_each(row, &mut |_, value| scratch.push(value));
        }
        scratch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, Dense};

    #[test]
    fn columns_have_mean_zero_and_variance_one() {
        let rows: Vec<[f64; 3]> = (0..7).map(|i| [f64::from(i * i) * 1e200, f64::from(i % 3) * 1e-200, 4.0]).collect();
        let x = Dense::from_rows(&rows);
        let scaling = Scaling::of(&x, None);
        let view = Standardized::new(&x, &scaling);
        let mut scratch = Vec::new();
        let values = view.block(0..7, &mut scratch);
        for column in 0..2 {
            let of: Vec<f64> = (0..7).map(|row| values[3 * row + column]).collect();
            let mean = of.iter().sum::<f64>() / 7.0;
            let variance = of.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / 7.0;
            assert!(mean.abs() < 1e-12 && (variance - 1.0).abs() < 1e-12, "{mean} {variance}");
        }
        assert!((0..7).all(|row| values[3 * row + 2] == 0.0));
    }

    /// The plain mean and deviation, and far values out of them.
    #[test]
    fn far_values_have_no_part_in_the_scale() {
        let value = |row: usize| (row * 37 % 101) as f64 / 7.0 - 3.0;
        let clean: Vec<[f64; 1]> = (0..100).map(|row| [value(row)]).collect();
        let mean = clean.iter().map(|row| row[0]).sum::<f64>() / 100.0;
        let deviation = (clean.iter().map(|row| (row[0] - mean).powi(2)).sum::<f64>() / 100.0).sqrt();
        for absurd in [1e5, -1e300, f64::MAX] {
            let mut rows = clean.clone();
            rows.insert(40, [absurd]);
            let scaling = Scaling::of(&Dense::from_rows(&rows), None);
            assert!((scaling.shift[0] - mean).abs() < 1e-12 * deviation, "{absurd:e}: {}", scaling.shift[0]);
            assert!((scaling.scale[0] / deviation - 1.0).abs() < 1e-12, "{absurd:e}: {}", scaling.scale[0]);
            let x = Dense::from_rows(&rows);
            assert_eq!(Standardized::new(&x, &scaling).dot(40, &[1.0]), absurd.signum() * FARTHEST);
        }
    }

    #[test]
    fn far_values_count_by_their_weights_and_in_sparse_columns() {
        let values = [1.0, 2.0, 3.0, 4.0, 2.0, 3.0, 900.0];
        let weights = [2.0, 1.0, 3.0, 1.0, 0.0, 1.0, 2.0];
        let rows: Vec<[f64; 1]> = values.map(|value| [value]).to_vec();
        let often: Vec<[f64; 1]> =
            values.iter().zip(weights).flat_map(|(&value, weight)| vec![[value]; weight as usize]).collect();
        let (a, b) =
            (Scaling::of(&Dense::from_rows(&rows), Some(&weights)), Scaling::of(&Dense::from_rows(&often), None));
        assert!((a.shift[0] - b.shift[0]).abs() < 1e-13 && (a.scale[0] - b.scale[0]).abs() < 1e-13, "{a:?} {b:?}");
        assert!(a.scale[0] < 2.0);
        // zeros among them, left out of the storage
        let mut dense: Vec<[f64; 1]> = often.clone();
        dense.extend([[0.0]; 3]);
        let stored: Vec<f64> = often.iter().map(|row| row[0]).collect();
        let starts: Vec<usize> = (0..=dense.len()).map(|row| row.min(stored.len())).collect();
        let sparse = Csr::new(dense.len(), 1, starts, vec![0; stored.len()], stored).unwrap();
        let (of_dense, of_sparse) = (Scaling::of(&Dense::from_rows(&dense), None), Scaling::of(&sparse, None));
        assert!((of_dense.scale[0] - of_sparse.scale[0]).abs() < 1e-13 && !of_sparse.shifts());
        assert!(of_sparse.scale[0] < 2.0);
        // few stored values are what the column has to say
        let mut starts = vec![0; 41];
        starts[40] = 1;
        let rare = Csr::new(40, 1, starts, vec![0], vec![1e6]).unwrap();
        assert!((Scaling::of(&rare, None).scale[0] - 1e6 * (39.0f64 / 1600.0).sqrt()).abs() < 1e-6);
    }

    #[test]
    fn weights_count_as_rows() {
        let x = Dense::from_rows(&[[1.0], [2.0], [5.0], [9.0]]);
        let twice = Dense::from_rows(&[[1.0], [1.0], [2.0], [5.0], [5.0], [5.0]]);
        let (a, b) = (Scaling::of(&x, Some(&[2.0, 1.0, 3.0, 0.0])), Scaling::of(&twice, None));
        assert!((a.shift[0] - b.shift[0]).abs() < 1e-14 && (a.scale[0] - b.scale[0]).abs() < 1e-14);
    }

    #[test]
    fn sparse_columns_are_divided_only() {
        let dense = Dense::from_rows(&[[0.0, 3.0], [4.0, 0.0], [0.0, 0.0]]);
        let sparse = Csr::new(3, 2, vec![0, 1, 2, 2], vec![1, 0], vec![3.0, 4.0]).unwrap();
        let (of_dense, of_sparse) = (Scaling::of(&dense, None), Scaling::of(&sparse, None));
        assert!(!of_sparse.shifts());
        for (a, b) in of_dense.scale.iter().zip(&of_sparse.scale) {
            assert!((a - b).abs() < 1e-14);
        }
        let view = Standardized::new(&sparse, &of_sparse);
        assert!(view.is_sparse());
        assert_eq!(view.dot(1, &[1.0, 1.0]), 4.0 / of_sparse.scale[0]);
        // what was learnt from dense rows moves the zeros of sparse ones
        let moved = Standardized::new(&sparse, &of_dense);
        assert!(!moved.is_sparse() && moved.dot(2, &[1.0, 0.0]) != 0.0);
    }
}
