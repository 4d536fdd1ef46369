//! The two-class problem and its judge.
//!
//! ```text
//! P(f) = 1/2 |f|^2 + sum_i c_i l_T(y_i (f(x_i) + b)),        f = sum_j beta_j k(x_j, .)  or  f = w'x
//! ```
//!
//! with y_i = -1 or +1 and c_i = C times the sample weight. Given which rows are truncated, the majoriser of P is convex:
//! a kept row costs c l(y f); a truncated row costs nothing up to a constant, except that with the hinge (the d.c.
//! algorithm of Wu and Liu 2007) it costs c [y f - 1]_+, which is 0 wherever the row is still truncated.
//! Its dual in beta, with r_i = y_i beta_i / c_i the usual multiplier of a kept row:
//!
//! ```text
//! D(beta) = -1/2 beta'K beta - sum_kept c_i l*(-r_i) + sum_truncated y_i beta_i,     sum beta = 0 if b is free,
//! ```
//!
//! truncated rows having 0 <= -y beta <= c (hinge) or beta = 0. P - D >= 0 certifies a candidate; both are evaluated here
//! in double precision from the data alone, at O(n) kernel rows, whatever solver the candidate came from.

use super::kernel::KernelFunction;
use super::loss::Loss;
use super::lq::touching;
use super::penalty::Norm;
use crate::data::Design;
use crate::linalg::dot;
use rayon::prelude::*;

/// A two-class problem: data, loss and the space of decision functions.
#[derive(Clone, Copy)]
pub struct TwoClass<'a> {
    /// The rows.
    pub x: &'a dyn Design,
    /// y_i, each exactly -1 or +1.
    pub signs: &'a [f64],
    /// c_i = C times the sample weight, finite and >= 0.
    pub caps: &'a [f64],
    /// The loss, truncated or not.
    pub loss: Loss,
    /// The penalty; 1/2 |f|^2 above is `Norm::Squared`.
    pub norm: Norm<'a>,
    /// The kernel; `Linear` means f = w'x.
    pub kernel: &'a KernelFunction,
    /// Whether an unpenalised b is added to f.
    pub intercept: bool,
}

/// A decision function put before the judge.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// beta, one per row; the dual variables of the certificate.
    pub expansion: &'a [f64],
    /// w of a linear f. `None`: f is the expansion's own.
    pub weights: Option<&'a [f64]>,
    /// b
    pub intercept: f64,
}

/// What the judge found about the convex problem that belongs to a truncation set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certificate {
    /// Value of the convex problem at the candidate (truncated rows counted without their constant).
    pub primal: f64,
    /// Value of its dual, a lower bound of every primal value if `imbalance` is 0.
    pub dual: f64,
    /// Largest failure of a dual constraint on all rows together: |sum beta| if the intercept is free, and with the l1
    /// penalty |x_j'beta| - rate_j.
    pub imbalance: f64,
    /// Largest amount by which an optimality condition of a single row or pair of rows fails (as LIBSVM measures it).
    pub violation: f64,
}

impl Certificate {
    /// (primal - dual) / |primal|, what `tol` is compared with.
    pub fn relative_gap(&self) -> f64 {
        (self.primal - self.dual) / self.primal.abs().max(f64::MIN_POSITIVE)
    }
}

impl TwoClass<'_> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.signs.len()
    }

    /// f(x_i) without b, for every row.
    pub fn decision_without_intercept(&self, candidate: &Candidate) -> Vec<f64> {
        let n = self.rows();
        match candidate.weights {
            Some(w) => (0..n).into_par_iter().map(|row| self.x.dot(row, w)).collect(),
            None => self.kernel.expand(self.x, candidate.expansion),
        }
    }

    /// The penalty of f.
    pub fn penalty(&self, candidate: &Candidate, decision_without_intercept: &[f64]) -> f64 {
        match candidate.weights {
            Some(w) => self.norm.of_weights(w),
            None => 0.5 * dot(candidate.expansion, decision_without_intercept),
        }
    }

    /// P(f): the full, non-convex objective.
    pub fn objective(&self, candidate: &Candidate) -> f64 {
        let f = self.decision_without_intercept(candidate);
        self.penalty(candidate, &f) + self.total_loss(&f, candidate.intercept)
    }

    /// sum_i c_i l_T(y_i (f_i + b))
    pub fn total_loss(&self, decision_without_intercept: &[f64], intercept: f64) -> f64 {
        let rows = self.signs.iter().zip(self.caps).zip(decision_without_intercept);
        rows.filter(|((_, cap), _)| **cap > 0.0).map(|((y, cap), f)| cap * self.loss.value(y * (f + intercept))).sum()
    }

    /// Which rows lie on the flat part of the loss.
    pub fn truncation_set(&self, candidate: &Candidate) -> Vec<bool> {
        let f = self.decision_without_intercept(candidate);
        f.iter().zip(self.signs).map(|(f, y)| self.loss.truncates(y * (f + candidate.intercept))).collect()
    }

    /// The certificate of a candidate for the convex problem that belongs to a truncation set.
    pub fn certify(&self, candidate: &Candidate, truncated: &[bool]) -> Certificate {
        if let (Norm::Power(q), Some(weights)) = (self.norm, candidate.weights) {
            // the l1 problem that touches
            let rates = touching(weights, q);
            return TwoClass { norm: Norm::Absolute(&rates), ..*self }.certify(candidate, truncated);
        }
        let f = self.decision_without_intercept(candidate);
        let b = candidate.intercept;
        let beta = candidate.expansion;
        let penalty = self.penalty(candidate, &f);
        let mut imbalance = if self.intercept { beta.iter().sum::<f64>().abs() } else { 0.0 };
        // with w given, the dual's own quadratic term is that of X'beta, not of w
        let dual_penalty = match (candidate.weights, self.norm) {
            (None, _) => penalty,
            (Some(_), Norm::Power(_)) => 0.0,
            (Some(_), Norm::Squared) => Norm::Squared.of_weights(&self.combined(beta)),
            (Some(_), Norm::Absolute(rates)) => {
                let excess = self.combined(beta).iter().zip(rates).map(|(v, rate)| v.abs() - rate).fold(0.0, f64::max);
                imbalance = imbalance.max(excess);
                0.0
            }
        };
        let (mut primal, mut dual) = (penalty, -dual_penalty);
        for (row, &truncated) in truncated.iter().enumerate() {
            let (y, cap) = (self.signs[row], self.caps[row]);
            let margin = y * (f[row] + b);
            if cap == 0.0 {
                dual -= if beta[row] == 0.0 { 0.0 } else { f64::INFINITY };
            } else if !truncated {
                primal += cap * self.loss.base().value(margin);
                dual -= cap * self.loss.base().conjugate(y * beta[row] / cap);
            } else if self.loss.base().is_smooth() {
                dual -= if beta[row] == 0.0 { 0.0 } else { f64::INFINITY };
            } else {
                primal += cap * (margin - 1.0).max(0.0);
                let inside = (0.0..=cap).contains(&(-y * beta[row]));
                dual += if inside { y * beta[row] } else { f64::NEG_INFINITY };
            }
        }
        Certificate { primal, dual, imbalance, violation: self.violation(&f, b, beta, truncated) }
    }

    /// X'beta
    fn combined(&self, beta: &[f64]) -> Vec<f64> {
        let mut v = vec![0.0; self.x.cols()];
        for (row, &beta) in beta.iter().enumerate().filter(|(_, beta)| **beta != 0.0) {
            self.x.add_scaled(row, beta, &mut v);
        }
        v
    }

    /// Largest failure of an optimality condition. Hinge: max over rows that may fall of F minus min over rows that may
    /// rise, F = f - y, with b (or 0) in between. Smooth losses: max |beta + c y l'(y f)| over c.
    fn violation(&self, f: &[f64], b: f64, beta: &[f64], truncated: &[bool]) -> f64 {
        if self.loss.base().is_smooth() {
            let rows = (0..self.rows()).filter(|&row| self.caps[row] > 0.0 && !truncated[row]);
            return rows.fold(0.0, |worst, row| {
                let y = self.signs[row];
                worst.max((beta[row] / self.caps[row] + y * self.loss.base().slope(y * (f[row] + b))).abs())
            });
        }
        let (mut highest, mut lowest) = if self.intercept { (f64::NEG_INFINITY, f64::INFINITY) } else { (0.0, 0.0) };
        for row in 0..self.rows() {
            let (y, cap) = (self.signs[row], self.caps[row]);
            let gradient = f[row] - y;
            let (lower, upper) = if (y > 0.0) != truncated[row] { (0.0, cap) } else { (-cap, 0.0) };
            if beta[row] < upper {
                lowest = gradient.min(lowest);
            }
            if beta[row] > lower {
                highest = gradient.max(highest);
            }
        }
        (highest - lowest).max(0.0)
    }
}
