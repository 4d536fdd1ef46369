//! Cholesky in place for matrices of a few to a few hundred columns, without allocation where they are small.

use super::dot;
use faer::linalg::solvers::Llt;
use faer::{MatRef, Side};

/// From this order on the blocked factorisation is the faster one.
const BLOCKED: usize = 48;

/// Replaces the lower triangle of a row-major symmetric matrix by its Cholesky factor. `false` when it is not positive definite to
/// working precision or not finite; the matrix is then spoilt.
pub fn cholesky(matrix: &mut [f64], order: usize) -> bool {
    if order >= BLOCKED {
        return blocked(matrix, order);
    }
    for j in 0..order {
        let (above, below) = matrix.split_at_mut(j * order);
        let row = &mut below[..order];
        for k in 0..j {
            let known = &above[k * order..k * order + order];
            let inner = if j < 8 { plain(&row[..k], &known[..k]) } else { dot(&row[..k], &known[..k]) };
            row[k] = (row[k] - inner) / known[k];
        }
        let rest = row[j] - dot(&row[..j], &row[..j]);
        if !(rest > 0.0 && rest.is_finite()) {
            return false;
        }
        row[j] = rest.sqrt();
    }
    true
}

#[inline(always)]
fn plain(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn blocked(matrix: &mut [f64], order: usize) -> bool {
    let lower_finite = (0..order).all(|j| matrix[j * order..=j * order + j].iter().all(|value| value.is_finite()));
    if !lower_finite {
        return false;
    }
    let Ok(factor) = Llt::new(MatRef::from_row_major_slice(matrix, order, order), Side::Lower) else { return false };
    let lower = factor.L();
    for j in 0..order {
        for k in 0..=j {
            matrix[j * order + k] = lower[(j, k)];
        }
    }
    true
}

/// Solves L L' x = b in place, L as [`cholesky`] leaves it.
pub fn cholesky_solve(factor: &[f64], order: usize, x: &mut [f64]) {
    for j in 0..order {
        let row = &factor[j * order..j * order + j];
        x[j] = (x[j] - dot(row, &x[..j])) / factor[j * order + j];
    }
    for j in (0..order).rev() {
        let value = x[j] / factor[j * order + j];
        x[j] = value;
        let row = &factor[j * order..j * order + j];
        x[..j].iter_mut().zip(row).for_each(|(x, l)| *x -= value * l);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_small_and_blocked_systems() {
        for order in [1, 2, 5, 13, 47, 48, 70] {
            let entry =
                |j: usize, k: usize| if j == k { 3.0 } else { 1.0 / (1.0 + (j as f64 - k as f64).abs()).powi(2) };
            let matrix: Vec<f64> = (0..order * order).map(|at| entry(at / order, at % order)).collect();
            let mut factor = matrix.clone();
            assert!(cholesky(&mut factor, order));
            let truth: Vec<f64> = (0..order).map(|j| j as f64 - 2.5).collect();
            let mut x: Vec<f64> = (0..order).map(|j| dot(&matrix[j * order..(j + 1) * order], &truth)).collect();
            cholesky_solve(&factor, order, &mut x);
            assert!(x.iter().zip(&truth).all(|(a, b)| (a - b).abs() < 1e-10), "{order}");
            let mut indefinite = matrix.clone();
            indefinite[order * order - 1] = -1.0;
            assert!(!cholesky(&mut indefinite, order));
            let mut broken = matrix;
            broken[0] = f64::NAN;
            assert!(!cholesky(&mut broken, order));
        }
    }
}
