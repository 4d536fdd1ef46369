//! One positive definite system: equilibrated, factored, and shifted if rounding made it indefinite.

use faer::linalg::solvers::Solve;
use faer::{Mat, Side};

/// A factored matrix.
pub(super) struct Factor {
    factor: faer::linalg::solvers::Llt<f64>,
    scale: Vec<f64>,
}

impl Factor {
    /// Factors A given its lower half. `None` if it is not positive definite even when shifted.
    pub(super) fn new(mut matrix: Mat<f64>) -> Option<Factor> {
        let size = matrix.nrows();
        let root = |k: usize| if matrix[(k, k)] > 0.0 { matrix[(k, k)].sqrt() } else { 1.0 };
        let scale: Vec<f64> = (0..size).map(|k| 1.0 / root(k)).collect();
        for column in 0..size {
            for row in column..size {
                matrix[(row, column)] *= scale[row] * scale[column];
            }
        }
        let mut shift = 0.0;
        for _ in 0..8 {
            let mut shifted = matrix.clone();
            for k in 0..size {
                shifted[(k, k)] += shift;
            }
            if let Ok(factor) = shifted.llt(Side::Lower) {
                return Some(Factor { factor, scale });
            }
            shift = if shift == 0.0 { 1e-13 } else { 100.0 * shift };
        }
        None
    }

    /// A^-1 right
    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let scaled = Mat::from_fn(right.len(), 1, |k, _| right[k] * self.scale[k]);
        let solution = self.factor.solve(&scaled);
        (0..right.len()).map(|k| solution[(k, 0)] * self.scale[k]).collect()
    }
}
