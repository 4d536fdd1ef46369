//! The rows of a two-class problem.
//!
//! Hinge: V = y alpha with alpha in [0, c], dual value alpha, z = 1 - y f; smoothed, alpha = clip(alpha0 + sigma z, 0, c), with
//! curvature sigma where it is not clipped. Smooth losses: V = -c y l'(y f), dual value -c l*(-y V / c).

use super::rows::{Blocks, Local, Piece, Rows, Term};
use crate::problem::BaseLoss;

pub(super) struct Two<'a> {
    pub(super) base: &'static dyn BaseLoss,
    pub(super) signs: &'a [f64],
    /// c_i, 0 for rows that do not count.
    pub(super) caps: Vec<f64>,
}

impl Two<'_> {
    /// alpha of a row, and its unclipped value.
    fn clipped(&self, row: usize, decision: f64, multiplier: f64, sigma: f64) -> (f64, f64) {
        let y = self.signs[row];
        let raw = y * multiplier + sigma * (1.0 - y * decision);
        (raw.clamp(0.0, self.caps[row]), raw)
    }

    /// max over alpha of alpha z - (alpha - alpha0)^2 / (2 sigma)
    fn smoothed(&self, row: usize, decision: f64, multiplier: f64, alpha: f64, sigma: f64) -> f64 {
        let y = self.signs[row];
        let moved = alpha - y * multiplier;
        alpha * (1.0 - y * decision) - moved * moved / (2.0 * sigma)
    }
}

impl Rows for Two<'_> {
    fn functions(&self) -> usize {
        1
    }

    fn is_smooth(&self) -> bool {
        self.base.is_smooth()
    }

    fn largest_cap(&self) -> f64 {
        self.caps.iter().fold(0.0, |largest, &cap| cap.max(largest))
    }

    fn look(&self, decision: &[f64], multipliers: &[f64], sigma: f64) -> Local {
        let mut blocks = Blocks::new(1);
        let mut v = vec![0.0; decision.len()];
        let (mut value, mut loss) = (0.0, 0.0);
        let smooth = self.is_smooth();
        for (row, &cap) in self.caps.iter().enumerate().filter(|(_, cap)| **cap > 0.0) {
            let (y, f) = (self.signs[row], decision[row]);
            if smooth {
                loss += cap * self.base.value(y * f);
                v[row] = -cap * y * self.base.slope(y * f);
                let weight = cap * self.base.curvature(y * f);
                if weight > 0.0 {
                    blocks.push(row, 0, 0, weight);
                }
                continue;
            }
            let (alpha, raw) = self.clipped(row, f, multipliers[row], sigma);
            v[row] = y * alpha;
            value += self.smoothed(row, f, multipliers[row], alpha, sigma);
            loss += cap * (1.0 - y * f).max(0.0);
            if raw > 0.0 && raw < cap {
                blocks.push(row, 0, 0, 1.0);
            }
        }
        if smooth {
            return Local { value: loss, loss, v, blocks, scale: 1.0 };
        }
        Local { value, loss, v, blocks, scale: sigma }
    }

    fn value(&self, decision: &[f64], multipliers: &[f64], sigma: f64) -> f64 {
        let mut sum = 0.0;
        let smooth = self.is_smooth();
        for (row, &cap) in self.caps.iter().enumerate().filter(|(_, cap)| **cap > 0.0) {
            let f = decision[row];
            sum += if smooth {
                cap * self.base.value(self.signs[row] * f)
            } else {
                let alpha = self.clipped(row, f, multipliers[row], sigma).0;
                self.smoothed(row, f, multipliers[row], alpha, sigma)
            };
        }
        sum
    }

    fn admit(&self, multipliers: &mut [f64]) {
        for (row, v) in multipliers.iter_mut().enumerate() {
            let y = self.signs[row];
            *v = y * (y * *v).clamp(0.0, self.caps[row]);
        }
    }

    fn room(&self, v: &[f64]) -> Blocks {
        let mut blocks = Blocks::new(1);
        // the exponential loss has no upper end
        let closed = self.base.conjugate(2.0).is_infinite();
        for (row, &cap) in self.caps.iter().enumerate().filter(|(_, cap)| **cap > 0.0) {
            let alpha = v[row].abs();
            let room = if closed { alpha * ((cap - alpha) / cap) } else { alpha };
            if room > 0.0 {
                blocks.push(row, 0, 0, room);
            }
        }
        blocks
    }

    fn is_feasible(&self, v: &[f64]) -> bool {
        let fits = |row: usize| {
            let (alpha, cap) = (self.signs[row] * v[row], self.caps[row]);
            if cap > 0.0 { self.base.conjugate(alpha / cap) < f64::INFINITY } else { alpha == 0.0 }
        };
        (0..v.len()).all(fits)
    }

    fn dual(&self, v: &[f64]) -> f64 {
        let rows = self.caps.iter().enumerate().filter(|(_, cap)| **cap > 0.0);
        rows.map(|(row, &cap)| -cap * self.base.conjugate(self.signs[row] * v[row] / cap)).sum()
    }

    fn terms(&self) -> Option<Vec<Term>> {
        let piece = |row: usize| match self.signs[row] > 0.0 {
            true => Piece { plus: Some(0), minus: None },
            false => Piece { plus: None, minus: Some(0) },
        };
        let counted = self.caps.iter().enumerate().filter(|(_, cap)| **cap > 0.0);
        (!self.is_smooth()).then(|| counted.map(|(row, &cap)| Term { row, cap, pieces: vec![piece(row)] }).collect())
    }

    fn best_constant(&self) -> Option<Vec<f64>> {
        if self.is_smooth() {
            return None;
        }
        // on [-1, 1] the loss of b is linear: sum c (1 - y b)
        let lean: f64 = self.caps.iter().zip(self.signs).map(|(cap, y)| cap * y).sum();
        Some(vec![if lean == 0.0 { 0.0 } else { lean.signum() }])
    }
}
