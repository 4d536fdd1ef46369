//! Products with the matrix of kernel values K_ij = k(x_i, x_j).

use crate::data::Design;
use crate::problem::KernelFunction;
use rayon::prelude::*;

/// The matrix of kernel values between the training rows, as something to multiply with.
pub trait Gram: Sync {
    /// Number of rows, n.
    fn rows(&self) -> usize;

    /// out_i = sum_j coefficients_j k(x_j, x_i)
    fn multiply(&self, coefficients: &[f64], out: &mut [f64]);

    /// The matrix itself, row after row, where it is kept.
    fn values(&self) -> Option<&[f64]> {
        None
    }
}

/// Kernel values computed anew for every product: O(n) memory, double precision.
pub struct Streamed<'a> {
    /// The rows.
    pub x: &'a dyn Design,
    /// The kernel.
    pub kernel: &'a KernelFunction,
}

impl Gram for Streamed<'_> {
    fn rows(&self) -> usize {
        self.x.rows()
    }

    fn multiply(&self, coefficients: &[f64], out: &mut [f64]) {
        out.copy_from_slice(&self.kernel.expand(self.x, coefficients));
    }
}

/// Kernel values computed once and kept: 8 n^2 bytes.
pub struct Stored {
    rows: usize,
    values: Vec<f64>,
}

impl Stored {
    /// Computes all values.
    pub fn new(x: &dyn Design, kernel: &KernelFunction) -> Stored {
        let (n, d) = (x.rows(), x.cols());
        let mut values = vec![0.0; n * n];
        if let KernelFunction::Precomputed = kernel {
            values.par_chunks_mut(n.max(1)).enumerate().for_each(|(row, out)| x.copy_row(row, out));
            return Stored { rows: n, values };
        }
        // dense copies of a batch of rows against every row
        let batch = ((1 << 16) / d.max(1)).clamp(1, n.max(1));
        let mut dense = Vec::new();
        for start in (0..n).step_by(batch) {
            let end = (start + batch).min(n);
            dense.resize((end - start) * d, 0.0);
            dense.chunks_exact_mut(d.max(1)).zip(start..end).for_each(|(out, row)| x.copy_row(row, out));
            values.par_chunks_mut(n).enumerate().for_each_init(
                || vec![0.0; d],
                |own, (row, out)| {
                    x.copy_row(row, own);
                    for (k, out) in out[start..end].iter_mut().enumerate() {
                        *out = kernel.evaluate(own, &dense[k * d..(k + 1) * d]);
                    }
                },
            );
        }
        Stored { rows: n, values }
    }
}

impl Gram for Stored {
    fn rows(&self) -> usize {
        self.rows
    }

    fn multiply(&self, coefficients: &[f64], out: &mut [f64]) {
        let rows = self.values.par_chunks_exact(self.rows.max(1));
        out.par_iter_mut().zip(rows).with_min_len(16).for_each(|(out, values)| *out = dot(values, coefficients));
    }

    fn values(&self) -> Option<&[f64]> {
        Some(&self.values)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (left, right) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: f64 = left.remainder().iter().zip(right.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in left.zip(right) {
        (0..8).for_each(|lane| lanes[lane] += a[lane] * b[lane]);
    }
    lanes.iter().sum::<f64>() + tail
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, Dense};

    #[test]
    fn stored_and_streamed_products_agree() {
        let x = Dense::from_rows(&[[0.1, 2.0, 0.0], [0.0, -1.0, 0.5], [1.5, 0.0, 0.0], [0.0, 0.0, 0.0]]);
        let sparse = Csr::new(4, 3, vec![0, 2, 4, 5, 5], vec![0, 1, 1, 2, 0], vec![0.1, 2.0, -1.0, 0.5, 1.5]).unwrap();
        let coefficients = [1.0, -2.0, 0.5, 3.0];
        for kernel in [KernelFunction::Linear, KernelFunction::Rbf { gamma: 0.7 }] {
            let (mut one, mut two, mut three) = ([0.0; 4], [0.0; 4], [0.0; 4]);
            Stored::new(&x, &kernel).multiply(&coefficients, &mut one);
            Stored::new(&sparse, &kernel).multiply(&coefficients, &mut two);
            Streamed { x: &x, kernel: &kernel }.multiply(&coefficients, &mut three);
            for row in 0..4 {
                assert!((one[row] - three[row]).abs() < 1e-14 && (two[row] - three[row]).abs() < 1e-14);
            }
        }
    }
}
