//! The smoothed relaxation as a function of W = [w, V]: value, gradient and second derivatives.
//!
//! ```text
//! F(W) = r/2 |W|^2 + sum_i c_i l_t(a_i, sqrt(b_i^2 + e^2))
//! ```
//!
//! With a *budget* (ROD) the level t is not given. A step of the proximal method of multipliers around t0 takes
//! max over t >= 0 of sum_i c_i l_t - t target - (t - t0)^2 / (2 z) in place of the sum; its derivative in t, decreasing, has its zero by
//! a safeguarded Newton iteration over the rows. By the envelope theorem the gradient is that of the given t, and the second
//! derivatives gain a rank-one term.
//!
//! W holds its columns one after the other (k m + j), the margins likewise (k n + i).

use super::space::block_rows;
use crate::linalg::Isa;
use crate::problem::ablation::{Curvature, Features, relaxed_curvature, relaxed_loss};
use rayon::prelude::*;

/// Multiplications from which a pass over the rows goes to all threads.
const PARALLEL: usize = 1 << 20;
/// Columns below which plain loops beat the vector kernels.
const NARROW: usize = 8;

/// The rows, levels and offsets of a relaxation.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) features: Features<'a>,
    pub(super) caps: &'a [f64],
    /// o_i; empty for none.
    pub(super) offsets: &'a [f64],
    /// Rows given as inliers; empty for none.
    pub(super) kept: &'a [bool],
    pub(super) ridge: f64,
}

impl Rows<'_> {
    pub(super) fn len(&self) -> usize {
        self.caps.len()
    }

    #[inline(always)]
    pub(super) fn offset(&self, row: usize) -> f64 {
        if self.offsets.is_empty() { 0.0 } else { self.offsets[row] }
    }

    #[inline(always)]
    pub(super) fn level(&self, row: usize, level: f64) -> f64 {
        if !self.kept.is_empty() && self.kept[row] { f64::INFINITY } else { level }
    }

    /// Whether work of that size is shared.
    pub(super) fn is_large(&self, columns: usize) -> bool {
        self.len() * self.features.columns * columns >= PARALLEL
    }
}

/// A budget for outliers and where its multiplier stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// (1 - rho) sum c
    pub(super) target: f64,
    /// t0
    pub(super) centre: f64,
    /// z
    pub(super) strength: f64,
}

/// The smoothed problem.
#[derive(Clone, Copy)]
pub(super) struct Smoothed<'a> {
    pub(super) rows: Rows<'a>,
    /// e^2
    pub(super) smoothing: f64,
    /// t where there is no budget.
    pub(super) level: f64,
    pub(super) budget: Option<Budget>,
}

/// A point with what is known there.
#[derive(Debug, Clone, Default)]
pub(super) struct Point {
    /// W
    pub(super) w: Vec<f64>,
    /// Columns of W.
    pub(super) columns: usize,
    /// a_i in the first n, then the columns of p_perp.
    pub(super) margins: Vec<f64>,
    /// t
    pub(super) level: f64,
    /// F
    pub(super) value: f64,
}

impl Point {
    pub(super) fn new(w: Vec<f64>, columns: usize) -> Point {
        Point { w, columns, ..Point::default() }
    }

    /// |p_perp|^2 of a row.
    #[inline(always)]
    pub(super) fn squared(&self, row: usize, n: usize) -> f64 {
        (1..self.columns).map(|k| self.margins[k * n + row] * self.margins[k * n + row]).sum()
    }
}

impl Smoothed<'_> {
    /// Margins, level and value at a point's W.
    pub(super) fn evaluate(&self, point: &mut Point) {
        let n = self.rows.len();
        point.margins.resize(point.columns * n, 0.0);
        multiply(&self.rows, &point.w, point.columns, &mut point.margins);
        if !self.rows.offsets.is_empty() {
            point.margins[..n].iter_mut().zip(self.rows.offsets).for_each(|(a, o)| *a += o);
        }
        point.level = self.best_level(point);
        let loss = |row: usize| {
            let level = self.rows.level(row, point.level);
            self.rows.caps[row] * relaxed_loss(level, point.margins[row], point.squared(row, n), self.smoothing).value
        };
        let mut value = sum(n, self.rows.is_large(1), loss);
        if let Some(budget) = self.budget {
            let moved = point.level - budget.centre;
            value -= point.level * budget.target + 0.5 * moved * moved / budget.strength;
        }
        point.value = value + 0.5 * self.rows.ridge * crate::linalg::dot(&point.w, &point.w);
    }

    /// t at a point: given, or the maximiser of the budget's function.
    fn best_level(&self, point: &Point) -> f64 {
        let Some(budget) = self.budget else { return self.level };
        let n = self.rows.len();
        let squares: Vec<f64> = (0..n).map(|row| point.squared(row, n) + self.smoothing).collect();
        let slope = |t: f64| {
            let terms = |row: usize| match self.rows.level(row, t).is_finite() {
                false => [0.0, 0.0],
                true => outlying(t, point.margins[row], squares[row]).map(|value| self.rows.caps[row] * value),
            };
            let [first, second] = sum_pairs(n, self.rows.is_large(1), terms);
            [first - budget.target - (t - budget.centre) / budget.strength, second - 1.0 / budget.strength]
        };
        let total: f64 = self.rows.caps.iter().sum();
        let (mut low, mut high) = (0.0, budget.centre + budget.strength * total);
        if slope(0.0)[0] <= 0.0 {
            return 0.0;
        }
        let first = if point.level > 0.0 { point.level } else { budget.centre };
        let mut t = first.clamp(1e-12 * high, high);
        for _ in 0..100 {
            let [value, change] = slope(t);
            if value > 0.0 {
                low = t
            } else {
                high = t
            }
            let mut next = t - value / change;
            if !(next > low && next < high) {
                next = 0.5 * (low + high);
            }
            let step = (next - t).abs();
            t = next;
            if step <= 1e-14 * t || high - low <= 1e-15 * high {
                break;
            }
        }
        t
    }

    /// The gradient, columns x m.
    pub(super) fn gradient(&self, point: &Point) -> Vec<f64> {
        let (n, r) = (self.rows.len(), point.columns);
        let slopes = |row: usize, out: &mut [f64]| {
            let level = self.rows.level(row, point.level);
            let loss = relaxed_loss(level, point.margins[row], point.squared(row, n), self.smoothing);
            out[0] = -self.rows.caps[row] * loss.alpha * loss.eta;
            for k in 1..r {
                out[k] = -self.rows.caps[row] * loss.bend * point.margins[k * n + row];
            }
        };
        let mut gradient = combine(&self.rows, r, slopes);
        gradient.iter_mut().zip(&point.w).for_each(|(g, w)| *g += self.rows.ridge * w);
        gradient
    }

    /// c_i times the second derivatives of row i's loss.
    pub(super) fn curvature(&self, point: &Point, row: usize) -> Curvature {
        let level = self.rows.level(row, point.level);
        let squared = point.squared(row, self.rows.len());
        let h = relaxed_curvature(level, point.margins[row], squared, self.smoothing);
        let cap = self.rows.caps[row];
        Curvature { aa: cap * h.aa, av: cap * h.av, ii: cap * h.ii, vv: cap * h.vv }
    }

    /// The vector z of the rank-one term zz' that a moving level adds, if any.
    pub(super) fn moving_level(&self, point: &Point) -> Option<Vec<f64>> {
        let budget = self.budget?;
        if point.level <= 0.0 {
            return None;
        }
        let (n, r, t) = (self.rows.len(), point.columns, point.level);
        let terms = |row: usize| match self.rows.level(row, t).is_finite() {
            true => {
                let squared = point.squared(row, n) + self.smoothing;
                [0.0, -self.rows.caps[row] * outlying(t, point.margins[row], squared)[1]]
            }
            false => [0.0, 0.0],
        };
        let height = 1.0 / budget.strength + sum_pairs(n, self.rows.is_large(1), terms)[1];
        let root = height.sqrt();
        let slopes = |row: usize, out: &mut [f64]| {
            out.fill(0.0);
            if self.rows.level(row, t).is_finite() {
                let [da, dv] = outlying_slopes(t, point.margins[row], point.squared(row, n) + self.smoothing);
                let scale = self.rows.caps[row] / root;
                out[0] = scale * da;
                for k in 1..r {
                    out[k] = scale * dv * point.margins[k * n + row];
                }
            }
        };
        Some(combine(&self.rows, r, slopes))
    }
}

/// 1 - eta = dl/dt and its derivative in t; `squared` with smoothing.
#[inline(always)]
fn outlying(t: f64, a: f64, squared: f64) -> [f64; 2] {
    let s = 1.0 - a;
    let c = t - s;
    let square = c * c + squared;
    let q = square.sqrt().max(f64::MIN_POSITIVE);
    if q <= t {
        return [0.5 * (1.0 - c / q), -0.5 * squared / (square * q).max(f64::MIN_POSITIVE)];
    }
    if s > 0.0 { [s * s / (s * s + squared), 0.0] } else { [0.0, 0.0] }
}

/// The derivatives of 1 - eta: in a, and the factor of v along v.
#[inline(always)]
fn outlying_slopes(t: f64, a: f64, squared: f64) -> [f64; 2] {
    let s = 1.0 - a;
    let c = t - s;
    let square = c * c + squared;
    let q = square.sqrt();
    if q <= t {
        let cube = 0.5 / (square * q);
        return [-squared * cube, c * cube];
    }
    if s <= 0.0 {
        return [0.0, 0.0];
    }
    let d = s * s + squared;
    [-2.0 * s * squared / (d * d), -2.0 * s * s / (d * d)]
}

const PIECE: usize = 1024;

/// sum_i term(i)
pub(super) fn sum(n: usize, large: bool, term: impl Fn(usize) -> f64 + Sync) -> f64 {
    sum_pairs(n, large, |row| [term(row), 0.0])[0]
}

fn sum_pairs(n: usize, large: bool, term: impl Fn(usize) -> [f64; 2] + Sync) -> [f64; 2] {
    let piece = |number: usize| {
        let mut total = [0.0; 2];
        for row in number * PIECE..((number + 1) * PIECE).min(n) {
            let [a, b] = term(row);
            total[0] += a;
            total[1] += b;
        }
        total
    };
    let add = |a: [f64; 2], b: [f64; 2]| [a[0] + b[0], a[1] + b[1]];
    let pieces = n.div_ceil(PIECE);
    if large && pieces > 1 {
        // collected first: the order of the sum must not depend on the threads
        let parts: Vec<[f64; 2]> = (0..pieces).into_par_iter().map(piece).collect();
        parts.into_iter().fold([0.0; 2], add)
    } else {
        (0..pieces).map(piece).fold([0.0; 2], add)
    }
}

/// out = F X, columns x n, without offsets.
pub(super) fn multiply(rows: &Rows, x: &[f64], columns: usize, out: &mut [f64]) {
    let (n, m) = (rows.len(), rows.features.columns);
    if m == 0 {
        return out.fill(0.0);
    }
    if m < NARROW {
        for (out, x) in out.chunks_exact_mut(n.max(1)).zip(x.chunks_exact(m)).take(columns) {
            for (out, f) in out.iter_mut().zip(rows.features.values.chunks_exact(m)) {
                *out = f.iter().zip(x).map(|(f, x)| f * x).sum();
            }
        }
        return;
    }
    let isa = Isa::detect();
    let block = block_rows(m);
    if rows.is_large(columns) {
        let parts: Vec<(usize, Vec<f64>)> = (0..n.div_ceil(block))
            .into_par_iter()
            .map(|number| {
                let (start, end) = (number * block, ((number + 1) * block).min(n));
                let mut part = vec![0.0; columns * (end - start)];
                for (part, x) in part.chunks_exact_mut(end - start).zip(x.chunks_exact(m)) {
                    isa.dots(&rows.features.values[start * m..end * m], x, part);
                }
                (start, part)
            })
            .collect();
        for (start, part) in parts {
            let length = part.len() / columns;
            for (k, part) in part.chunks_exact(length).enumerate() {
                out[k * n + start..][..length].copy_from_slice(part);
            }
        }
        return;
    }
    for start in (0..n).step_by(block) {
        let end = (start + block).min(n);
        let values = &rows.features.values[start * m..end * m];
        for k in 0..columns {
            isa.dots(values, &x[k * m..(k + 1) * m], &mut out[k * n + start..k * n + end]);
        }
    }
}

/// sum_i f_i slopes_i', columns x m: `slopes(i, out)` writes the row's coefficients.
pub(super) fn combine(rows: &Rows, columns: usize, slopes: impl Fn(usize, &mut [f64]) + Sync) -> Vec<f64> {
    let (n, m) = (rows.len(), rows.features.columns);
    let isa = Isa::detect();
    let block = block_rows(m);
    let part = |range: std::ops::Range<usize>| {
        let mut total = vec![0.0; columns * m];
        let mut row_slopes = vec![0.0; columns];
        let mut factors = vec![0.0; columns * block];
        let mut start = range.start;
        while start < range.end {
            let end = (start + block).min(range.end);
            let count = end - start;
            for i in 0..count {
                slopes(start + i, &mut row_slopes);
                (0..columns).for_each(|k| factors[k * block + i] = row_slopes[k]);
            }
            let values = &rows.features.values[start * m..end * m];
            for k in 0..columns {
                let factors = &factors[k * block..k * block + count];
                let out = &mut total[k * m..(k + 1) * m];
                if m < NARROW {
                    for (factor, f) in factors.iter().zip(values.chunks_exact(m.max(1))) {
                        out.iter_mut().zip(f).for_each(|(out, f)| *out += factor * f);
                    }
                } else {
                    isa.accumulate(values, factors, out);
                }
            }
            start = end;
        }
        total
    };
    if !rows.is_large(columns) {
        return part(0..n);
    }
    let size = (4 * block).max(n.div_ceil(64));
    let ranges: Vec<_> = (0..n).step_by(size).map(|start| start..(start + size).min(n)).collect();
    let parts: Vec<Vec<f64>> = ranges.into_par_iter().map(part).collect();
    let mut total = vec![0.0; columns * m];
    for part in parts {
        total.iter_mut().zip(&part).for_each(|(total, part)| *total += part);
    }
    total
}
