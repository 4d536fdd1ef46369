//! The global minimum of the hinge truncated at 0 by enumeration: every set of outliers, each time the support vector machine on the
//! other rows by Clarabel.
#![allow(dead_code)]

use crate::common::{Data, clarabel_dual, kernel_matrix};
use outlast::problem::{Norm, TwoClass};
use outlast::{Dense, KernelFunction, Loss};

/// A problem that owns its parts.
pub struct Case {
    pub data: Data,
    pub caps: Vec<f64>,
    pub kernel: KernelFunction,
    pub intercept: bool,
}

impl Case {
    pub fn new(rows: usize, cols: usize, c: f64, kernel: KernelFunction, intercept: bool, seed: u64) -> Case {
        let data = Data::noisy(rows, cols, 0.2, seed).weighted(seed + 1);
        let caps = data.weights.iter().map(|weight| c * weight).collect();
        Case { data, caps, kernel, intercept }
    }

    pub fn with<T>(&self, work: impl FnOnce(&TwoClass) -> T) -> T {
        let x = self.data.dense();
        work(&problem(&x, &self.data.signs, &self.caps, &self.kernel, self.intercept))
    }

    /// The least value over all sets of outliers for which `allowed(cost of the outliers)`, each charged `charge` times its cap.
    pub fn enumerate(&self, charge: f64, allowed: impl Fn(f64) -> bool) -> f64 {
        let x = self.data.dense();
        let kernel = kernel_matrix(&self.kernel, &x);
        let n = self.data.rows;
        (0..1u32 << n).fold(f64::INFINITY, |least, set| {
            let out: f64 = (0..n).filter(|row| set >> row & 1 == 1).map(|row| self.caps[row]).sum();
            let wasted = (0..n).any(|row| set >> row & 1 == 1 && self.caps[row] == 0.0);
            if wasted || !allowed(out) || charge * out >= least {
                return least;
            }
            let cap = |row: usize| if set >> row & 1 == 1 { 0.0 } else { self.caps[row] };
            let side =
                |row: usize, positive: bool| if (self.data.signs[row] > 0.0) == positive { cap(row) } else { 0.0 };
            let lower: Vec<f64> = (0..n).map(|row| -side(row, false)).collect();
            let upper: Vec<f64> = (0..n).map(|row| side(row, true)).collect();
            let value = -clarabel_dual(&kernel, &self.data.signs, &lower, &upper, self.intercept);
            least.min(value + charge * out)
        })
    }

    /// The global minimum.
    pub fn minimum(&self) -> f64 {
        self.enumerate(1.0, |_| true)
    }
}

/// The problem of the hinge truncated at 0.
pub fn problem<'a>(
    x: &'a Dense,
    signs: &'a [f64],
    caps: &'a [f64],
    kernel: &'a KernelFunction,
    intercept: bool,
) -> TwoClass<'a> {
    TwoClass { norm: Norm::Squared, x, signs, caps, loss: Loss::hinge().truncated_at(0.0).unwrap(), kernel, intercept }
}
