//! The minimum of a sum of [`Minorant`]s, evaluated so that rounding can only lower it.
//!
//! ```text
//! bound = sum_i constant_i - 1/2 g'H^-1 g,     g = sum_i slope_i f_i,     H = r I - sum_i bend_i f_i f_i'
//! ```
//!
//! With u the unit roundoff and sums of depth k (rows in pieces, pieces one after the other: k = piece + pieces), the computed H
//! differs from the true one by at most e = 2u [(k + 20) tr(sum bend f f') + (m + 4) m r] in norm. Cholesky factors H - 3e, whose own backward
//! error is below e; then S = H - e is below the true H, and at least e. For any x, with the residual q = g - Sx,
//! g'S^-1 g = x'g + x'q + q'S^-1 q <= x'g + |x||q| + |q|^2/e, where |q| includes the rounding of g and of itself. The constants add
//! (k + 20) u times the sum of their magnitudes. Cost O(n m^2 + m^3).

use super::Minorant;
use crate::linalg::{GRAM_DEPTH, cholesky, cholesky_solve, dot, weighted_gram};
use rayon::prelude::*;

/// Row-major features f_i of n rows.
#[derive(Debug, Clone, Copy)]
pub struct Features<'a> {
    /// n x columns values.
    pub values: &'a [f64],
    /// Number of columns m.
    pub columns: usize,
}

impl<'a> Features<'a> {
    /// One row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &'a [f64] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }
}

/// Rows per piece of the sums over rows.
const PIECE: usize = 512;
/// Multiplications from which the sums go to all threads.
const PARALLEL: usize = 1 << 18;

/// Sums over rows: g and scalars, and what the rows add to H.
#[derive(Default)]
struct Sums {
    linear: Vec<f64>,
    constant: f64,
    size: f64,
    /// sum |slope_i| |f_i|
    reach: f64,
    /// sum bend_i |f_i|^2
    trace: f64,
    unusable: bool,
    /// Rows with bend > 0, and that.
    bent: Vec<(usize, f64)>,
}

/// A number no greater than min_w r/2 |w|^2 + sum_i minorant_i(f_i'w), for the kernel that the features describe up to
/// `error` (see [`Minorant::widened`]; 0 for exact features); minus infinity when H is not positive definite beyond rounding.
/// `minorant(i)` gives row i's.
pub fn lower_bound(
    features: Features,
    rows: usize,
    ridge: f64,
    error: f64,
    minorant: impl Fn(usize) -> Minorant + Sync,
) -> f64 {
    let m = features.columns;
    let part =
        |number: usize| sums(features, ridge, error, number * PIECE..((number + 1) * PIECE).min(rows), &minorant);
    let pieces = rows.div_ceil(PIECE);
    let total = if rows * m >= PARALLEL {
        let parts: Vec<Sums> = (0..pieces).into_par_iter().map(part).collect();
        parts.into_iter().reduce(add)
    } else {
        (0..pieces).map(part).reduce(add)
    };
    let Some(total) = total else { return 0.0 };
    if total.unusable {
        return f64::NEG_INFINITY;
    }
    let bent: Vec<(&[f64], f64)> = total.bent.iter().map(|&(row, bend)| (features.row(row), bend)).collect();
    let gram = weighted_gram(&bent, m);
    let depth = (rows.min(GRAM_DEPTH.max(PIECE)) + pieces + 20) as f64;
    finish(&total, &gram, m, ridge, depth)
}

fn sums(
    features: Features,
    ridge: f64,
    error: f64,
    rows: std::ops::Range<usize>,
    minorant: &(impl Fn(usize) -> Minorant + Sync),
) -> Sums {
    let mut sums = Sums { linear: vec![0.0; features.columns], ..Sums::default() };
    for row in rows {
        let Some(bound) = minorant(row).widened(error, ridge) else {
            sums.unusable = true;
            return sums;
        };
        sums.constant += bound.constant;
        sums.size += bound.size;
        if bound.slope == 0.0 && bound.bend == 0.0 {
            continue;
        }
        let f = features.row(row);
        let square = dot(f, f);
        sums.reach += bound.slope.abs() * square.sqrt();
        sums.trace += bound.bend * square;
        sums.linear.iter_mut().zip(f).for_each(|(sum, f)| *sum += bound.slope * f);
        if bound.bend > 0.0 {
            sums.bent.push((row, bound.bend));
        }
    }
    sums
}

fn add(mut total: Sums, part: Sums) -> Sums {
    total.linear.iter_mut().zip(&part.linear).for_each(|(a, b)| *a += b);
    total.constant += part.constant;
    total.size += part.size;
    total.reach += part.reach;
    total.trace += part.trace;
    total.unusable |= part.unusable;
    total.bent.extend(part.bent);
    total
}

fn finish(total: &Sums, gram: &[f64], m: usize, ridge: f64, depth: f64) -> f64 {
    const UNIT: f64 = f64::EPSILON;
    let order = m as f64;
    let slack = UNIT * (depth * total.trace + (order + 4.0) * order * ridge);
    // S, both triangles
    let mut matrix = vec![0.0; m * m];
    for j in 0..m {
        for k in 0..=j {
            let value = if j == k { ridge - slack } else { 0.0 } - gram[j * m + k];
            matrix[j * m + k] = value;
            matrix[k * m + j] = value;
        }
    }
    let mut factor = matrix.clone();
    (0..m).for_each(|j| factor[j * m + j] -= 2.0 * slack);
    if !cholesky(&mut factor, m) {
        return f64::NEG_INFINITY;
    }
    let g = &total.linear;
    let mut x = g.clone();
    cholesky_solve(&factor, m, &mut x);
    let mut residual = vec![0.0; m];
    for _ in 0..2 {
        difference(&matrix, g, &x, &mut residual);
        let mut step = residual.clone();
        cholesky_solve(&factor, m, &mut step);
        x.iter_mut().zip(&step).for_each(|(x, step)| *x += step);
    }
    difference(&matrix, g, &x, &mut residual);
    let norm = |v: &[f64]| dot(v, v).sqrt();
    let length = norm(&x);
    // rounding of g, and of the residual: |S| <= m r entrywise in norm
    let off = UNIT * (depth * total.reach + (order + 4.0) * (norm(g) + order * ridge * length));
    let left = norm(&residual) + off;
    let product = dot(&x, g);
    let magnitude: f64 = x.iter().zip(g).map(|(x, g)| (x * g).abs()).sum();
    let quadratic = product + length * (left + off) + left * (left / slack) + UNIT * (order + 4.0) * magnitude;
    let bound = total.constant - 0.5 * quadratic * (1.0 + 4.0 * UNIT) - UNIT * depth * total.size;
    if bound.is_nan() { f64::NEG_INFINITY } else { bound }
}

/// g - S x
fn difference(matrix: &[f64], g: &[f64], x: &[f64], out: &mut [f64]) {
    for ((out, row), g) in out.iter_mut().zip(matrix.chunks_exact(x.len().max(1))).zip(g) {
        *out = g - dot(row, x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_by_hand() {
        // r/2 w^2 + alpha (1 - 2 w): minimum at w = 2 alpha / r, value alpha - 2 alpha^2 / r
        let features = Features { values: &[2.0], columns: 1 };
        let bound = lower_bound(features, 1, 4.0, 0.0, |_| Minorant::new(1.0, f64::INFINITY, 0.5, 1.0, 0.0));
        assert!(bound <= 0.375 && bound > 0.375 - 1e-12, "{bound}");
        // too much bend for the ridge
        let bent = lower_bound(features, 1, 4.0, 0.0, |_| Minorant::new(1.0, 1.0, 1.0, 0.4, 0.0));
        assert_eq!(bent, f64::NEG_INFINITY);
    }

    /// A direction of its own for each row is what `error` stands for.
    #[test]
    fn an_error_of_the_kernel_is_a_direction_for_each_row() {
        let (n, m) = (12, 10);
        let numbers: Vec<f64> = (0..n * m).map(|k| ((k * 7919 + 13) % 1000) as f64 / 1000.0 - 0.5).collect();
        let error: f64 = 0.3;
        let mut wide = vec![0.0; n * (m + n)];
        for i in 0..n {
            wide[i * (m + n)..][..m].copy_from_slice(&numbers[i * m..][..m]);
            wide[i * (m + n) + m + i] = error.sqrt();
        }
        let minorant = |i: usize| Minorant::new(1.0, 1.0, 0.3 + 0.05 * i as f64, 0.9, 0.1);
        let exact = lower_bound(Features { values: &wide, columns: m + n }, n, 3.0, 0.0, minorant);
        let short = lower_bound(Features { values: &numbers, columns: m }, n, 3.0, error, minorant);
        assert!((exact - short).abs() < 1e-9 && exact.is_finite(), "{exact} {short}");
    }
}
