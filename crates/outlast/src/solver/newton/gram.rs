//! Products with the matrix of kernel values K_ij = k(x_i, x_j).

use super::super::tiles::{self, Panels, Prepared};
use crate::data::Design;
use crate::linalg::{Isa, dot};
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

/// Kernel values computed anew for every product in fused f32 tiles: O(n d) memory, a relative error of about 1e-7.
pub struct Tiled {
    prepared: Prepared,
    panels: Panels,
    all: Vec<u32>,
}

impl Tiled {
    /// Packs the rows, or says (by `None`) that tiles do not suit this kernel, these data or that many bytes.
    pub fn new(x: &dyn Design, kernel: &KernelFunction, bytes: usize) -> Option<Tiled> {
        let prepared = Prepared::new(x, kernel, bytes).filter(|prepared| prepared.far_rows().is_empty())?;
        let all: Vec<u32> = (0..x.rows() as u32).collect();
        let panels = Panels::new(&prepared, &all);
        Some(Tiled { prepared, panels, all })
    }
}

impl Gram for Tiled {
    fn rows(&self) -> usize {
        self.all.len()
    }

    fn multiply(&self, coefficients: &[f64], out: &mut [f64]) {
        let mut sums = vec![0.0; self.panels.padded()];
        tiles::multiply(Isa::detect(), &self.panels, &self.prepared, &self.all, coefficients, &mut sums);
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = sum * self.prepared.unit;
        }
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
        let n = x.rows();
        let mut values = vec![0.0; n * n];
        let all: Vec<u32> = (0..n as u32).collect();
        let mut rows: Vec<&mut [f64]> = values.chunks_mut(n.max(1)).collect();
        kernel.for_each_row(x, x, &all, &all, &mut rows, |row, values| row.copy_from_slice(values));
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
            let mut tiled = [0.0; 4];
            Tiled::new(&x, &kernel, 0).unwrap().multiply(&coefficients, &mut tiled);
            for row in 0..4 {
                assert!((one[row] - three[row]).abs() < 1e-14 && (two[row] - three[row]).abs() < 1e-14);
                assert!((one[row] - tiled[row]).abs() < 1e-5);
            }
        }
    }
}
