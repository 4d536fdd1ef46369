//! Columns on one scale, so that one kernel width and one C suit most tables.
//!
//! ```text
//! z = (x - mean) / deviation,    mean and deviation of the values pulled in to [q1 - 5 r, q3 + 5 r],    r = q3 - q1
//! ```
//!
//! q1 and q3 are the quartiles of the column. What lies outside the fence is pulled in to it before a fit sees it, so that a single
//! 1e300 neither flattens its column nor decides a fit. Columns with r = 0 are taken as they are. A column without spread is 0.
//! Labels have no part in this. Sparse tables that would not fit into memory densely are scaled only and stay sparse.

use crate::data::{Csr, Dense, Design, Fences};
use crate::error::Result;
use crate::model::Rows;
use rayon::prelude::*;

/// How far the fences stand out.
const REACH: f64 = 5.0;
/// Most entries of a sparse table that is made dense.
const MOST_DENSE: usize = 50_000_000;

/// What is done to one column: `(clamp(x, low, high) - shift) / scale`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Values below are pulled up to it.
    pub low: f64,
    /// Values above are pulled down to it.
    pub high: f64,
    /// What is subtracted.
    pub shift: f64,
    /// What it is divided by; infinite for a column without spread.
    pub scale: f64,
}

impl Scale {
    fn of(column: &mut [f64], shifted: bool) -> Scale {
        let none = Scale { low: f64::MIN, high: f64::MAX, shift: 0.0, scale: f64::INFINITY };
        if column.is_empty() {
            return none;
        }
        column.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| column[(share * (column.len() - 1) as f64).round() as usize];
        let Fences { low, high } = Fences::of_quartiles(at(0.25), at(0.75), REACH);
        let unit = column[0].clamp(low, high).abs().max(column[column.len() - 1].clamp(low, high).abs());
        if unit == 0.0 || !unit.is_normal() {
            return none;
        }
        let value = |x: &f64| x.clamp(low, high) / unit;
        let count = column.len() as f64;
        let mean = column.iter().map(value).sum::<f64>() / count;
        let centre = if shifted { mean } else { 0.0 };
        let spread = (column.iter().map(|x| (value(x) - mean).powi(2)).sum::<f64>() / count).sqrt();
        // rounding alone is no spread
        if spread <= 1e-13 * mean.abs().max(1e-3) {
            return Scale { shift: centre * unit, ..none };
        }
        Scale { low, high, shift: centre * unit, scale: spread * unit }
    }

    fn apply(&self, x: f64) -> f64 {
        let z = self.far(x.clamp(self.low, self.high));
        if z.is_finite() { z } else { 0.0 }
    }

    /// The same without the fence.
    fn far(&self, x: f64) -> f64 {
        // both divided first: their difference may not be a number that exists
        (x / self.scale) - (self.shift / self.scale)
    }
}

/// A table on one scale.
pub(super) struct Scaled {
    pub rows: Rows,
    pub scales: Vec<Scale>,
}

impl Scaled {
    pub fn new(x: &dyn Design) -> Result<Scaled> {
        let (n, d) = (x.rows(), x.cols());
        if x.is_sparse() && n.saturating_mul(d) > MOST_DENSE {
            return Scaled::sparse(x);
        }
        let mut values = vec![0.0; n * d];
        values.par_chunks_exact_mut(d).enumerate().for_each(|(row, out)| x.copy_row(row, out));
        let scale =
            |column: usize| Scale::of(&mut values.iter().skip(column).step_by(d).copied().collect::<Vec<_>>(), true);
        let scales: Vec<Scale> = (0..d).into_par_iter().map(scale).collect();
        values.par_chunks_exact_mut(d).for_each(|row| {
            row.iter_mut().zip(&scales).for_each(|(value, scale)| *value = scale.apply(*value));
        });
        Ok(Scaled { rows: Rows::Dense(Dense::new(n, d, values)?), scales })
    }

    /// Columns are divided only, by the root of the mean square over all rows.
    fn sparse(x: &dyn Design) -> Result<Scaled> {
        let (n, d) = (x.rows(), x.cols());
        let mut largest = vec![0.0f64; d];
        for row in 0..n {
            x.for_each(row, &mut |column, value| largest[column] = largest[column].max(value.abs()));
        }
        let mut squares = vec![0.0; d];
        for row in 0..n {
            x.for_each(row, &mut |column, value| {
                if value != 0.0 {
                    squares[column] += (value / largest[column]).powi(2);
                }
            });
        }
        let scale = |(largest, square): (&f64, &f64)| {
            let scale = largest * (square / n as f64).sqrt();
            let scale = if scale > 0.0 { scale } else { f64::INFINITY };
            Scale { low: f64::MIN, high: f64::MAX, shift: 0.0, scale }
        };
        let scales: Vec<Scale> = largest.iter().zip(&squares).map(scale).collect();
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in 0..n {
            x.for_each(row, &mut |column, value| {
                columns.push(column as u32);
                values.push(scales[column].apply(value));
            });
            starts.push(values.len());
        }
        Ok(Scaled { rows: Rows::Sparse(Csr::new(n, d, starts, columns, values)?), scales })
    }

    pub fn design(&self) -> &dyn Design {
        self.rows.as_design()
    }

    /// A row as far out as it is, each coordinate within ±`limit`.
    pub fn far_row(&self, x: &dyn Design, row: usize, limit: f64, out: &mut [f64]) {
        x.copy_row(row, out);
        for (value, scale) in out.iter_mut().zip(&self.scales) {
            *value = scale.far(*value).clamp(-limit, limit);
            if value.is_nan() {
                *value = 0.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_mean_zero_and_deviation_one() {
        for unit in [1.0, 1e-300, 1e300] {
            let rows: Vec<[f64; 1]> = (0..9).map(|row| [f64::from(row) * unit / 10.0]).collect();
            let scaled = Scaled::new(&Dense::from_rows(&rows)).unwrap();
            let values: Vec<f64> = (0..9).map(|row| scaled.design().dot(row, &[1.0])).collect();
            let mean = values.iter().sum::<f64>() / 9.0;
            let variance = values.iter().map(|z| z * z).sum::<f64>() / 9.0;
            assert!(mean.abs() < 1e-12 && (variance - 1.0).abs() < 1e-12, "{unit:e}: {mean} {variance}");
        }
    }

    #[test]
    fn one_huge_value_does_not_flatten_its_column() {
        let mut rows: Vec<[f64; 2]> = (0..100).map(|row| [f64::from(row % 10), 7.0]).collect();
        rows[50] = [1e300, 7.0];
        let scaled = Scaled::new(&Dense::from_rows(&rows)).unwrap();
        let z = |row: usize| scaled.design().dot(row, &[1.0, 0.0]);
        assert!(z(9) - z(0) > 1.0, "{} {}", z(0), z(9));
        assert!(z(50).is_finite() && z(50) > z(9));
        assert!((0..100).all(|row| scaled.design().dot(row, &[0.0, 1.0]) == 0.0));
        let mut far = [0.0; 2];
        scaled.far_row(&Dense::from_rows(&rows), 50, 1e6, &mut far);
        assert_eq!(far, [1e6, 0.0]);
    }
}
