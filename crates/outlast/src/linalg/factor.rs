//! Cholesky factor of a symmetric, nominally positive matrix that may be badly scaled or nearly singular.
//!
//! The matrix A is equilibrated to S A S with unit diagonal, so that columns of any scale are treated alike, and factored with the
//! smallest shift e I that succeeds. Solutions are refined against A itself while the residual falls.

use super::{Isa, lane_sum};
use faer::linalg::solvers::{Llt, Solve};
use faer::{Mat, MatMut, MatRef, Side};

/// First shift tried after an unshifted factorisation failed, relative to the unit diagonal.
const FIRST_SHIFT: f64 = 1e-15;
const REFINEMENTS: usize = 3;

/// A factor S A S + e I = L L'.
pub struct Factor {
    order: usize,
    scale: Vec<f64>,
    lower: Llt<f64>,
    /// A itself, both triangles, row-major.
    matrix: Vec<f64>,
}

impl Factor {
    /// Factors the leading `order` x `order` part of a row-major matrix, of which the lower triangle is read. `None` when it is
    /// not positive definite to working precision, or not finite.
    pub fn definite(matrix: &[f64], stride: usize, order: usize) -> Option<Factor> {
        Self::shifted(matrix, stride, order, 0.0)
    }

    /// Whether [`definite`](Self::definite) has a factor, without what a factor keeps.
    pub fn is_definite(matrix: &[f64], stride: usize, order: usize) -> bool {
        Self::lower(matrix, stride, order, 0.0).is_some()
    }

    /// As [`definite`](Self::definite), with the smallest relative shift that makes it succeed. `None` only when an entry is not
    /// finite.
    pub fn nearest(matrix: &[f64], stride: usize, order: usize) -> Option<Factor> {
        let mut shift = 0.0;
        while shift <= 1.0 {
            if let Some(factor) = Self::shifted(matrix, stride, order, shift) {
                return Some(factor);
            }
            shift = if shift == 0.0 { FIRST_SHIFT } else { 100.0 * shift };
        }
        None
    }

    /// As [`nearest`](Self::nearest), of a matrix given by its lower half.
    pub fn nearest_of(matrix: &Mat<f64>) -> Option<Factor> {
        let order = matrix.nrows();
        let rows: Vec<f64> = (0..order * order).map(|k| matrix[(k / order, k % order)]).collect();
        Self::nearest(&rows, order, order)
    }

    /// S and L.
    fn lower(matrix: &[f64], stride: usize, order: usize, shift: f64) -> Option<(Vec<f64>, Llt<f64>)> {
        let rows = |i: usize| &matrix[i * stride..i * stride + i + 1];
        if !(0..order).all(|i| rows(i).iter().all(|value| value.is_finite())) {
            return None;
        }
        let scale: Vec<f64> = (0..order).map(|i| rows(i)[i].max(f64::MIN_POSITIVE).sqrt().recip()).collect();
        let mut equilibrated = vec![0.0; order * order];
        for i in 0..order {
            let scaled = rows(i).iter().zip(&scale).map(|(value, other)| scale[i] * value * other);
            equilibrated[i * order..].iter_mut().zip(scaled).for_each(|(entry, value)| *entry = value);
            equilibrated[i * order + i] += shift;
        }
        let lower = Llt::new(MatRef::from_row_major_slice(&equilibrated, order, order), Side::Lower).ok()?;
        Some((scale, lower))
    }

    fn shifted(matrix: &[f64], stride: usize, order: usize, shift: f64) -> Option<Factor> {
        let (scale, lower) = Self::lower(matrix, stride, order, shift)?;
        let rows = |i: usize| &matrix[i * stride..i * stride + i + 1];
        let mut full = vec![0.0; order * order];
        for i in 0..order {
            full[i * order..i * order + i + 1].copy_from_slice(rows(i));
            rows(i)[..i].iter().enumerate().for_each(|(j, value)| full[j * order + i] = *value);
        }
        Some(Factor { order, scale, lower, matrix: full })
    }

    /// x with A x = b, as far as the shift allows.
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut x = self.solve_once(right);
        let mut size = f64::INFINITY;
        for _ in 0..REFINEMENTS {
            let residual = self.residual(right, &x);
            let next: f64 = residual.iter().zip(&self.scale).map(|(r, s)| (r * s) * (r * s)).sum();
            if next.is_nan() || next >= 0.25 * size || next == 0.0 {
                break;
            }
            size = next;
            let correction = self.solve_once(&residual);
            x.iter_mut().zip(&correction).for_each(|(x, c)| *x += c);
        }
        x
    }

    /// S L^-T noise: a vector of covariance A^-1 when `noise` has covariance I.
    pub fn spread(&self, noise: &[f64]) -> Vec<f64> {
        let lower = self.lower.L();
        let mut x = noise[..self.order].to_vec();
        for i in (0..self.order).rev() {
            let known: f64 = (i + 1..self.order).map(|k| lower[(k, i)] * x[k]).sum();
            x[i] = (x[i] - known) / lower[(i, i)];
        }
        x.iter_mut().zip(&self.scale).for_each(|(x, scale)| *x *= scale);
        x
    }

    /// As [`solve`](Self::solve), without refinement.
    pub fn solve_once(&self, right: &[f64]) -> Vec<f64> {
        let mut x: Vec<f64> = right[..self.order].iter().zip(&self.scale).map(|(right, scale)| right * scale).collect();
        solve_one(&self.lower, &mut x);
        x.iter_mut().zip(&self.scale).for_each(|(x, scale)| *x *= scale);
        x
    }

    fn residual(&self, right: &[f64], x: &[f64]) -> Vec<f64> {
        let rows = self.matrix.chunks_exact(self.order.max(1));
        rows.zip(right).map(|(row, right)| right - super::dot(row, x)).collect()
    }
}

/// Solves L L' x = b in place for a single b, which the general routine, made for many at once, takes several times as long for.
pub fn solve_one(factor: &Llt<f64>, x: &mut [f64]) {
    let lower = factor.L();
    let columns = (0..lower.ncols()).map(|j| lower.col(j).try_as_col_major().map(|column| column.as_slice()));
    let Some(columns) = columns.collect::<Option<Vec<&[f64]>>>() else {
        return factor.solve_in_place(MatMut::from_column_major_slice_mut(x, lower.ncols(), 1));
    };
    Isa::detect().run(
        #[inline(always)]
        || {
            for (j, column) in columns.iter().enumerate() {
                let value = x[j] / column[j];
                x[j] = value;
                x[j + 1..].iter_mut().zip(&column[j + 1..]).for_each(|(x, l)| *x -= value * l);
            }
            for (j, column) in columns.iter().enumerate().rev() {
                x[j] = (x[j] - lane_sum(&column[j + 1..], &x[j + 1..], |a, b| a * b)) / column[j];
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCURACY: f64 = 1e-9;

    #[test]
    fn solves_badly_scaled_and_singular_systems() {
        // A = S B S with B = [[2, 1], [1, 2]] and scales 1e-100, 1e100
        let scale = [1e-100, 1e100];
        let matrix = [2.0 * scale[0] * scale[0], 7.0, scale[0] * scale[1], 2.0 * scale[1] * scale[1]];
        let factor = Factor::definite(&matrix, 2, 2).unwrap();
        let x = factor.solve(&[3.0 * scale[0], 3.0 * scale[1]]);
        assert!((x[0] * scale[0] - 1.0).abs() < ACCURACY && (x[1] * scale[1] - 1.0).abs() < ACCURACY);

        // |A^-1/2 e|^2 summed over unit vectors e is the trace of A^-1, 2/3 (1/s_0^2 + 1/s_1^2)
        let trace: f64 = [[1.0, 0.0], [0.0, 1.0]].iter().map(|e| (factor.spread(e)[0] * scale[0]).powi(2)).sum();
        assert!((trace - 2.0 / 3.0).abs() < ACCURACY);

        let twice = [1.0, 1.0, 1.0, 1.0];
        let x = Factor::nearest(&twice, 2, 2).unwrap().solve(&[2.0, 2.0]);
        assert!((x[0] + x[1] - 2.0).abs() < 1e-6, "{x:?}");
        assert!(Factor::definite(&[1.0, 0.0, 2.0, 1.0], 2, 2).is_none());
        assert!(Factor::nearest(&[f64::NAN, 0.0, 0.0, 1.0], 2, 2).is_none());
    }
}
