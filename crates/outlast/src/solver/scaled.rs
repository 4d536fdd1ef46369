//! The design in units that suit floating point, without a copy of it.
//!
//! With x' = x / 2^e and w' = 2^e w the margins stay as they are, and 4^e times the objective is
//! 1/2 |w'|^2 + sum 4^e c l: the same problem with caps 4^e c and expansion 4^e beta. Powers of two are exact, so the
//! change of units costs no accuracy, and data scaled by 1e150 or 1e-150 run through the same numbers as data near 1.

use crate::data::{Design, chunks};
use rayon::prelude::*;

/// Largest |log2| the scaled caps may have.
const CAP_RANGE: f64 = 500.0;

/// A design seen in units of 2^e.
pub(super) struct Scaled<'a> {
    x: &'a dyn Design,
    /// 2^e
    unit: f64,
    /// The largest |x'|.
    largest: f64,
}

impl<'a> Scaled<'a> {
    /// Units that bring the largest entry near 1, or nearer to the caps where those would leave the range; the caller's own without
    /// caps.
    pub(super) fn new(x: &'a dyn Design, caps: &[f64]) -> Self {
        let entry = largest_entry(x);
        let cap = caps.iter().fold(0.0f64, |largest, &cap| largest.max(cap));
        if entry == 0.0 || cap == 0.0 {
            return Scaled { x, unit: 1.0, largest: entry };
        }
        let exponent = entry.log2().floor() + 1.0;
        let scaled_cap = cap.log2() + 2.0 * exponent;
        let excess = scaled_cap - scaled_cap.clamp(-CAP_RANGE, CAP_RANGE);
        let exponent = exponent - (0.5 * excess).trunc();
        let unit = 2f64.powi(exponent as i32);
        Scaled { x, unit, largest: entry / unit }
    }

    /// Units that bring the largest entry near 1, whatever the caps.
    pub(super) fn by_entries(x: &'a dyn Design) -> Self {
        let entry = largest_entry(x);
        let unit = if entry == 0.0 { 1.0 } else { 2f64.powi((entry.log2().floor() + 1.0).min(1023.0) as i32) };
        Scaled { x, unit, largest: entry / unit }
    }

    /// Some rows of the same data, in the same units.
    pub(super) fn of<'b>(&self, x: &'b dyn Design) -> Scaled<'b> {
        Scaled { x, unit: self.unit, largest: self.largest }
    }

    pub(super) fn rows(&self) -> usize {
        self.x.rows()
    }

    pub(super) fn cols(&self) -> usize {
        self.x.cols()
    }

    /// The data behind.
    pub(super) fn design(&self) -> &'a dyn Design {
        self.x
    }

    /// Factor from x to x'.
    pub(super) fn shrink(&self) -> f64 {
        1.0 / self.unit
    }

    /// A bound of every |x'_row|^2.
    pub(super) fn largest_squared_norm(&self) -> f64 {
        self.largest * self.largest * self.cols() as f64
    }

    /// x'_row . w
    #[inline]
    pub(super) fn dot(&self, row: usize, w: &[f64]) -> f64 {
        self.x.dot(row, w) / self.unit
    }

    /// out += a x'_row
    #[inline]
    pub(super) fn add_scaled(&self, row: usize, a: f64, out: &mut [f64]) {
        self.x.add_scaled(row, a / self.unit, out);
    }

    /// |x'_row|^2
    pub(super) fn squared_norm(&self, row: usize) -> f64 {
        let mut sum = 0.0;
        self.x.for_each(row, &mut |_, value| sum += (value / self.unit).powi(2));
        sum
    }

    /// X' w, rows in parallel.
    pub(super) fn multiply(&self, w: &[f64]) -> Vec<f64> {
        (0..self.rows()).into_par_iter().with_min_len(64).map(|row| self.dot(row, w)).collect()
    }

    /// X'^T beta over the rows with beta != 0.
    pub(super) fn combine(&self, beta: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.cols()];
        for (row, &beta) in beta.iter().enumerate().filter(|(_, beta)| **beta != 0.0) {
            self.add_scaled(row, beta, &mut sum);
        }
        sum
    }

    /// beta or a cap in the scaled problem's units.
    pub(super) fn enter(&self, beta: f64) -> f64 {
        beta * self.unit * self.unit
    }

    /// beta in the caller's units.
    pub(super) fn leave(&self, beta: f64) -> f64 {
        beta / self.unit / self.unit
    }

    /// w' from the caller's w.
    pub(super) fn enter_weight(&self, weight: f64) -> f64 {
        weight * self.unit
    }

    /// The caller's w from w'.
    pub(super) fn leave_weight(&self, weight: f64) -> f64 {
        weight / self.unit
    }
}

fn largest_entry(x: &dyn Design) -> f64 {
    let of_rows = |scratch: &mut Vec<f64>, rows| largest_of(x.stored_in(rows, scratch));
    chunks(x).into_par_iter().map_init(Vec::new, of_rows).reduce(|| 0.0, f64::max)
}

/// The largest absolute value, eight at a time.
fn largest_of(values: &[f64]) -> f64 {
    let mut lanes = [0.0f64; 8];
    let pieces = values.chunks_exact(8);
    let rest = pieces.remainder().iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    for piece in pieces {
        for lane in 0..8 {
            let value = piece[lane].abs();
            lanes[lane] = if value > lanes[lane] { value } else { lanes[lane] };
        }
    }
    lanes.into_iter().fold(rest, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;

    #[test]
    fn units_are_powers_of_two_and_leave_margins_alone() {
        for factor in [1e-150, 1e-3, 1.0, 1e150] {
            let x = Dense::from_rows(&[[3.0 * factor, -factor], [0.0, 2.0 * factor]]);
            let scaled = Scaled::new(&x, &[1.0, 2.0]);
            assert_eq!(scaled.unit.log2().fract(), 0.0);
            let w = [1.0 / factor, 0.5 / factor];
            let own = w.map(|w| scaled.enter_weight(w));
            for row in 0..2 {
                assert_eq!(scaled.dot(row, &own), x.dot(row, &w));
            }
            assert!(scaled.enter(2.0).log2().abs() <= CAP_RANGE + 2.0);
            assert_eq!(scaled.leave(scaled.enter(0.3)), 0.3);
        }
    }
}
