//! The problem of the capped losses and its judge.
//!
//! ```text
//! P(f) = 1/2 sum_j |f_j|^2 + sum_i c_i h(g_i),      g_i = sum_j l(y_ij (f_j(x_i) + b_j))
//! ```
//!
//! Two classes have one function and y_i = -1 or +1. Of k classes each has a function of its own, not bound to the others by a
//! sum: y_ij = +1 for the row's class and -1 for the rest, the class of the largest f_j wins. The functions meet only in h, so
//! that for given row weights d_i the convex bound sum_j (1/2 |f_j|^2 + sum_i c_i d_i l(y_ij f_j)) is a problem for each.

use super::concave::Robust;
use super::kernel::KernelFunction;
use crate::data::Design;
use crate::linalg::dot;
use rayon::prelude::*;
use std::ops::Range;

/// A problem with a code for each class.
#[derive(Clone, Copy)]
pub struct Coded<'a> {
    /// The rows.
    pub x: &'a dyn Design,
    /// The class of each row.
    pub codes: &'a [u32],
    /// 1: class 1 against class 0. Else one per class.
    pub functions: usize,
    /// c_i = C times the sample weight, finite and >= 0.
    pub caps: &'a [f64],
    /// The loss.
    pub loss: &'a Robust,
    /// The kernel; `Linear` means f_j = w_j'x.
    pub kernel: &'a KernelFunction,
    /// Whether unpenalised b_j are added.
    pub intercept: bool,
}

/// Decision functions put before the judge.
#[derive(Debug, Clone, Copy)]
pub struct CodedCandidate<'a> {
    /// Rows x functions.
    pub expansion: &'a [f64],
    /// w, functions x columns, of linear functions. `None`: those of the expansion.
    pub weights: Option<&'a [f64]>,
    /// b, one per function.
    pub intercepts: &'a [f64],
}

impl Coded<'_> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.codes.len()
    }

    /// y_ij
    pub fn sign(&self, row: usize, function: usize) -> f64 {
        let class = if self.functions == 1 { 1 } else { function };
        if self.codes[row] as usize == class { 1.0 } else { -1.0 }
    }

    /// The margins y_j f_j of some rows, given the function's values there.
    pub fn margins(&self, rows: Range<usize>, function: usize, values: &[f64], margins: &mut [f64]) {
        let class = if self.functions == 1 { 1 } else { function as u32 };
        let signed = self.codes[rows].iter().zip(values);
        margins.iter_mut().zip(signed).for_each(|(margin, (&code, f))| *margin = if code == class { *f } else { -f });
    }

    /// g of one row, given its decision values.
    pub fn convex_loss(&self, row: usize, decision: &[f64]) -> f64 {
        let terms = decision.iter().enumerate();
        terms.map(|(function, f)| self.loss.base.value(self.sign(row, function) * f)).sum()
    }

    /// The decision values with intercepts, rows x functions, of a candidate.
    pub fn decision(&self, candidate: &CodedCandidate) -> Vec<f64> {
        let (n, m) = (self.rows(), self.functions);
        let mut decision = vec![0.0; n * m];
        for function in 0..m {
            let values = self.without_intercept(candidate, function);
            for row in 0..n {
                decision[row * m + function] = values[row] + candidate.intercepts[function];
            }
        }
        decision
    }

    fn without_intercept(&self, candidate: &CodedCandidate, function: usize) -> Vec<f64> {
        match candidate.weights {
            Some(weights) => {
                let w = &weights[function * self.x.cols()..(function + 1) * self.x.cols()];
                (0..self.rows()).into_par_iter().map(|row| self.x.dot(row, w)).collect()
            }
            None => self.kernel.expand(self.x, &self.of_function(candidate, function)),
        }
    }

    fn of_function(&self, candidate: &CodedCandidate, function: usize) -> Vec<f64> {
        candidate.expansion.iter().copied().skip(function).step_by(self.functions).collect()
    }

    /// 1/2 sum_j |f_j|^2
    pub fn penalty(&self, candidate: &CodedCandidate) -> f64 {
        if let Some(weights) = candidate.weights {
            return 0.5 * dot(weights, weights);
        }
        let half_norm = |function: usize| {
            0.5 * dot(&self.of_function(candidate, function), &self.without_intercept(candidate, function))
        };
        (0..self.functions).map(half_norm).sum()
    }

    /// P of a candidate.
    pub fn objective(&self, candidate: &CodedCandidate) -> f64 {
        let decision = self.decision(candidate);
        let rows = decision.chunks_exact(self.functions).enumerate();
        let loss: f64 = rows
            .filter(|(row, _)| self.caps[*row] > 0.0)
            .map(|(row, f)| self.caps[row] * self.loss.concave.value(self.convex_loss(row, f)))
            .sum();
        self.penalty(candidate) + loss
    }
}
