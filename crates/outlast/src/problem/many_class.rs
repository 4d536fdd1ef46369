//! The problem with k classes, and its judge.
//!
//! ```text
//! P(f) = penalty(f) + sum_i sum_j c_ij l_T(m_ij),      m_ij = f_j(x_i) - max_{l != j} f_l(x_i),      sum_j f_j = 0
//! ```
//!
//! (Wu and Liu 2007 with c_ij = c_i for the row's own class and 0 else; Liu, Wu and He with c_ij = c_i U[y_i, j], U the
//! utility matrix.) m_ij is the functional margin of class j at row i. The *cost form* weighs the terms
//! l_T(-m_ij) by c_i times the cost of deciding for j instead.
//!
//! **The convex bound.** A term beyond the truncation is bounded by its own constant and drops out: that bound touches, and
//! it lies below the d.c. algorithm's bound whatever subgradient that takes. Its fixed points are those of the d.c.
//! algorithm with beta = alpha on truncated terms, so ties for the runner-up need no rule. Kept terms of the utility form are
//! convex as they are. For the hinge, with total_i = sum of the kept c_ij,
//!
//! ```text
//! sum_j c_ij [1 - m_ij]_+ = max over q in total_i x simplex of  sum_j (q_j f_j - [q_j - knot_ij]_+)  + total_i - base_i' f
//! base_ij = c_ij,  knot_ij = total_i - c_ij
//! ```
//!
//! so one vector q_i per row is dual to all its terms (the reduced dual, n k variables). The cost form has the same shape with
//! knot_ij = c_ij, but its kept terms [1 + m_ij]_+ = max(f_j + 1, M_ij) - M_ij, M_ij = max_{l != j} f_l, are differences of
//! convex functions: base_i = sum_j c_ij (a subgradient of M_ij at the current f).
//!
//! Dual of the hinge problem with V_i = base_i - q_i:
//!
//! ```text
//! D(V) = -1/2 sum_j V_j' K V_j + sum_i (total_i - sum_j [q_ij - knot_ij]_+),     sum_i V_ij = 0 for each j if b is free
//! ```
//!
//! and f_j = sum_i V_ij k(x_i, .) + b_j. With the l1 penalty the quadratic term is replaced by the constraint
//! |(X'V)_j - mu| <= rate_j per column, mu the multiplier of sum_j w_j = 0. A smooth loss has terms of the row's own class
//! only: V_iy = r, V_ij = -q_ij, r = sum_{j != y} q_ij, and -c l*(-r / c) in place of the last sum.

use super::kernel::KernelFunction;
use super::loss::Loss;
use super::lq::touching;
use super::penalty::Norm;
use super::two_class::Certificate;
use crate::data::Design;
use crate::linalg::dot;
use rayon::prelude::*;

/// Which terms a row has, and their factors on c_i. Matrices are k x k, row = true class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Terms<'a> {
    /// One: the margin of the row's own class.
    Own,
    /// U[y_i, j] times the loss of the margin of class j.
    Utility(&'a [f64]),
    /// Cost[y_i, j] times the loss of minus the margin of class j. Hinge only.
    Cost(&'a [f64]),
}

/// A problem with k >= 2 classes.
#[derive(Clone, Copy)]
pub struct ManyClass<'a> {
    /// The rows.
    pub x: &'a dyn Design,
    /// Class of each row, 0..k.
    pub codes: &'a [u32],
    /// k
    pub classes: usize,
    /// c_i = C times the sample weight, finite and >= 0.
    pub caps: &'a [f64],
    /// The terms of a row.
    pub terms: Terms<'a>,
    /// The loss, truncated or not.
    pub loss: Loss,
    /// The penalty.
    pub norm: Norm<'a>,
    /// The kernel; `Linear` means f_j = w_j'x.
    pub kernel: &'a KernelFunction,
    /// Whether unpenalised b_j are added.
    pub intercept: bool,
}

/// Decision functions put before the judge. Matrices are row-major.
#[derive(Debug, Clone, Copy)]
pub struct ManyCandidate<'a> {
    /// V, rows x classes; the dual variables of the certificate.
    pub expansion: &'a [f64],
    /// w, classes x columns. `None`: f is the expansion's own.
    pub weights: Option<&'a [f64]>,
    /// b, one per class.
    pub intercepts: &'a [f64],
}

/// The convex bound of one majorise-minimise step.
#[derive(Debug, Clone, PartialEq)]
pub struct Majorant {
    /// Which terms count: one flag per row ([`Terms::Own`]) or rows x classes.
    pub kept: Vec<bool>,
    /// base, rows x classes, of the cost form; empty otherwise, where it is the kept c_ij.
    pub base: Vec<f64>,
}

/// Rows summed on one thread.
const PIECE: usize = 1024;

/// Classes within this of the largest count as tied for it.
const TIE: f64 = 1e-9;

impl ManyClass<'_> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.codes.len()
    }

    /// c_ij
    #[inline]
    pub fn cap(&self, row: usize, class: usize) -> f64 {
        let code = self.codes[row] as usize;
        match self.terms {
            Terms::Own if class == code => self.caps[row],
            Terms::Own => 0.0,
            Terms::Utility(factors) | Terms::Cost(factors) => self.caps[row] * factors[code * self.classes + class],
        }
    }

    /// c_ij if the bound keeps the term, else 0.
    #[inline]
    pub fn kept_cap(&self, bound: &Majorant, row: usize, class: usize) -> f64 {
        let at = match self.terms {
            Terms::Own => row,
            _ => row * self.classes + class,
        };
        if bound.kept[at] { self.cap(row, class) } else { 0.0 }
    }

    /// total_i, and knots and base of a row.
    pub fn shape(&self, bound: &Majorant, row: usize, knots: &mut [f64], base: &mut [f64]) -> f64 {
        let k = self.classes;
        let mut total = 0.0;
        for class in 0..k {
            base[class] = self.kept_cap(bound, row, class);
            total += base[class];
        }
        for class in 0..k {
            knots[class] = if let Terms::Cost(_) = self.terms { base[class] } else { (total - base[class]).max(0.0) };
        }
        if let Terms::Cost(_) = self.terms {
            base.copy_from_slice(&bound.base[row * k..(row + 1) * k]);
        }
        total
    }

    /// f + b of every row, rows x classes.
    pub fn decision(&self, candidate: &ManyCandidate) -> Vec<f64> {
        let mut f = self.decision_without_intercept(candidate);
        for row in f.chunks_exact_mut(self.classes) {
            row.iter_mut().zip(candidate.intercepts).for_each(|(f, b)| *f += b);
        }
        f
    }

    fn decision_without_intercept(&self, candidate: &ManyCandidate) -> Vec<f64> {
        let (n, k) = (self.rows(), self.classes);
        let mut f = vec![0.0; n * k];
        match candidate.weights {
            Some(weights) => f.par_chunks_exact_mut(k).enumerate().for_each(|(row, f)| {
                for (f, w) in f.iter_mut().zip(weights.chunks_exact(self.x.cols().max(1))) {
                    *f = self.x.dot(row, w);
                }
            }),
            None => {
                for class in 0..k {
                    let column: Vec<f64> = (0..n).map(|row| candidate.expansion[row * k + class]).collect();
                    for (row, value) in self.kernel.expand(self.x, &column).into_iter().enumerate() {
                        f[row * k + class] = value;
                    }
                }
            }
        }
        f
    }

    /// The penalty of a candidate.
    pub fn penalty(&self, candidate: &ManyCandidate, decision: &[f64]) -> f64 {
        match candidate.weights {
            Some(weights) => self.norm.of_weights(weights),
            None => {
                // sum_j V_j'K V_j; the rows of V sum to 0, and so the intercepts within `decision` count only by class
                let k = self.classes;
                let of_row = |row: usize| -> f64 {
                    let at = row * k..(row + 1) * k;
                    let f = decision[at.clone()].iter().zip(candidate.intercepts).map(|(f, b)| f - b);
                    candidate.expansion[at].iter().zip(f).map(|(v, f)| v * f).sum()
                };
                0.5 * (0..self.rows()).map(of_row).sum::<f64>()
            }
        }
    }

    /// The functional margin of a class: f_j - max_{l != j} f_l.
    #[inline]
    pub fn margin(f: &[f64], class: usize) -> f64 {
        let mut rival = f64::NEG_INFINITY;
        for (other, &value) in f.iter().enumerate() {
            if other != class && value > rival {
                rival = value;
            }
        }
        f[class] - rival
    }

    /// Margin of the row's own class.
    pub fn own_margin(&self, row: usize, decision: &[f64]) -> f64 {
        Self::margin(&decision[row * self.classes..(row + 1) * self.classes], self.codes[row] as usize)
    }

    /// What the loss is taken of: the margin, or minus it in the cost form.
    #[inline]
    fn argument(&self, f: &[f64], class: usize) -> f64 {
        let margin = Self::margin(f, class);
        if let Terms::Cost(_) = self.terms { -margin } else { margin }
    }

    /// sum of all terms: the non-convex loss.
    pub fn total_loss(&self, decision: &[f64]) -> f64 {
        let k = self.classes;
        let of_row = |row: usize| -> f64 {
            let f = &decision[row * k..(row + 1) * k];
            if let Terms::Own = self.terms {
                let code = self.codes[row] as usize;
                return if self.caps[row] > 0.0 {
                    self.caps[row] * self.loss.value(Self::margin(f, code))
                } else {
                    0.0
                };
            }
            let weighted = (0..k).map(|class| (self.cap(row, class), class)).filter(|(cap, _)| *cap > 0.0);
            weighted.map(|(cap, class)| cap * self.loss.value(self.argument(f, class))).sum()
        };
        // in pieces, so that the sum is the same on any number of threads
        let piece = |start: usize| -> f64 { (start..(start + PIECE).min(self.rows())).map(of_row).sum() };
        let starts: Vec<usize> = (0..self.rows()).step_by(PIECE).collect();
        let parts: Vec<f64> = starts.into_par_iter().map(piece).collect();
        parts.into_iter().sum()
    }

    /// What the terms that a bound drops cost: their flat parts.
    pub fn dropped_loss(&self, bound: &Majorant) -> f64 {
        let Some(truncation) = self.loss.truncation() else { return 0.0 };
        let flat = self.loss.value(truncation);
        let terms = if let Terms::Own = self.terms { 1 } else { self.classes };
        let cap = |at: usize| match self.terms {
            Terms::Own => self.caps[at],
            _ => self.cap(at / terms, at % terms),
        };
        (0..bound.kept.len()).filter(|&at| !bound.kept[at]).map(|at| flat * cap(at)).sum()
    }

    /// P(f): the full, non-convex objective.
    pub fn objective(&self, candidate: &ManyCandidate) -> f64 {
        let f = self.decision(candidate);
        self.penalty(candidate, &f) + self.total_loss(&f)
    }

    /// Rows whose own margin lies beyond the truncation.
    pub fn flat_rows(&self, decision: &[f64]) -> Vec<bool> {
        let rows = (0..self.rows()).into_par_iter().with_min_len(512);
        rows.map(|row| self.loss.truncates(self.own_margin(row, decision))).collect()
    }

    /// The bound that keeps every term: the untruncated problem. (The cost form has none; its bound at f = 0 is this.)
    pub fn untruncated(&self) -> Majorant {
        let terms = if let Terms::Own = self.terms { 1 } else { self.classes };
        let kept = vec![true; self.rows() * terms];
        let base = match self.terms {
            Terms::Cost(_) => self.cost_base(&vec![0.0; self.rows() * self.classes], &kept, None),
            _ => Vec::new(),
        };
        Majorant { kept, base }
    }

    /// The bound that touches at a decision function. `duals` (q, rows x classes), where known, breaks ties of the cost
    /// form.
    pub fn majorant(&self, decision: &[f64], duals: Option<&[f64]>) -> Majorant {
        let k = self.classes;
        let kept: Vec<bool> = match self.terms {
            Terms::Own => self.flat_rows(decision).into_iter().map(|flat| !flat).collect(),
            _ => {
                let rows = decision.chunks_exact(k);
                let of_row = |f: &[f64]| -> Vec<bool> {
                    (0..k).map(|class| !self.loss.truncates(self.argument(f, class))).collect()
                };
                rows.flat_map(of_row).collect()
            }
        };
        let base = match self.terms {
            Terms::Cost(_) => self.cost_base(decision, &kept, duals),
            _ => Vec::new(),
        };
        Majorant { kept, base }
    }

    /// sum_j c_ij (subgradient of max_{l != j} f_l), the weight of tied classes as in q.
    fn cost_base(&self, decision: &[f64], kept: &[bool], duals: Option<&[f64]>) -> Vec<f64> {
        let k = self.classes;
        let mut base = vec![0.0; self.rows() * k];
        for row in 0..self.rows() {
            let f = &decision[row * k..(row + 1) * k];
            for class in 0..k {
                let cap = self.cap(row, class);
                if !kept[row * k + class] || cap == 0.0 {
                    continue;
                }
                let rival = f[class] - Self::margin(f, class);
                let near = rival - TIE * (1.0 + rival.abs());
                let tied = || (0..k).filter(|&other| other != class && f[other] >= near);
                let weight = |other: usize| duals.map_or(0.0, |q| q[row * k + other]);
                let sum: f64 = tied().map(weight).sum();
                let count = tied().count() as f64;
                for other in tied() {
                    base[row * k + other] += cap * if sum > 0.0 { weight(other) / sum } else { 1.0 / count };
                }
            }
        }
        base
    }

    /// Terms that count in one bound and not in the other, and rows whose base moved.
    pub fn changes(&self, from: &Majorant, to: &Majorant) -> usize {
        let terms = if let Terms::Own = self.terms { 1 } else { self.classes };
        let weight = |at: usize| match self.terms {
            Terms::Own => self.caps[at],
            _ => self.cap(at / terms, at % terms),
        };
        let flags = (0..from.kept.len()).filter(|&at| from.kept[at] != to.kept[at] && weight(at) > 0.0).count();
        let moved = from.base.iter().zip(&to.base).enumerate();
        flags + moved.filter(|(at, (a, b))| (*a - *b).abs() > TIE * self.caps[at / self.classes]).count()
    }

    /// Value of the convex bound's loss at f, constants of dropped terms left out.
    pub fn convex_loss(&self, bound: &Majorant, decision: &[f64]) -> f64 {
        let k = self.classes;
        let (mut knots, mut base) = (vec![0.0; k], vec![0.0; k]);
        let mut sum = 0.0;
        for row in 0..self.rows() {
            let f = &decision[row * k..(row + 1) * k];
            if let Terms::Cost(_) = self.terms {
                self.shape(bound, row, &mut knots, &mut base);
                let top = |class: usize| (f[class] - Self::margin(f, class)).max(f[class] + 1.0);
                // knots of the cost form are the kept c_ij
                sum +=
                    (0..k).map(|class| if knots[class] > 0.0 { knots[class] * top(class) } else { 0.0 }).sum::<f64>();
                sum -= dot(&base, f);
                continue;
            }
            for class in 0..k {
                let cap = self.kept_cap(bound, row, class);
                if cap > 0.0 {
                    sum += cap * self.loss.base().value(Self::margin(f, class));
                }
            }
        }
        sum
    }

    /// The certificate of a candidate for the convex problem of a bound. `imbalance` is the largest failure of a dual
    /// constraint of the whole (column sums of V; with the l1 penalty also the bound on X'V), and the dual is -infinity
    /// when a row's own constraint fails by more than rounding.
    pub fn certify(&self, candidate: &ManyCandidate, bound: &Majorant) -> Certificate {
        if let (Norm::Power(q), Some(weights)) = (self.norm, candidate.weights) {
            // the l1 problem that touches
            let rates = touching(weights, q);
            return ManyClass { norm: Norm::Absolute(&rates), ..*self }.certify(candidate, bound);
        }
        let k = self.classes;
        let f = self.decision(candidate);
        let primal = self.penalty(candidate, &f) + self.convex_loss(bound, &f);
        let v = candidate.expansion;
        let mut dual = (0..self.rows()).map(|row| self.row_dual(bound, row, &v[row * k..(row + 1) * k])).sum::<f64>();
        let mut imbalance = 0.0f64;
        if self.intercept {
            for class in 0..k {
                imbalance = imbalance.max((0..self.rows()).map(|row| v[row * k + class]).sum::<f64>().abs());
            }
        }
        match (self.norm, candidate.weights) {
            (Norm::Power(_), _) => {}
            (Norm::Squared, None) => dual -= self.penalty(candidate, &f),
            (Norm::Squared, Some(_)) => dual -= Norm::Squared.of_weights(&self.combined(v)),
            (Norm::Absolute(rates), _) => imbalance = imbalance.max(self.excess(&self.combined(v), rates)),
        }
        let violation = primal - dual;
        Certificate { primal, dual, imbalance, violation }
    }

    /// X'V, classes x columns.
    fn combined(&self, expansion: &[f64]) -> Vec<f64> {
        let (k, d) = (self.classes, self.x.cols());
        let mut w = vec![0.0; k * d];
        for row in 0..self.rows() {
            for class in 0..k {
                let v = expansion[row * k + class];
                if v != 0.0 {
                    self.x.add_scaled(row, v, &mut w[class * d..(class + 1) * d]);
                }
            }
        }
        w
    }

    /// Largest amount by which |w_j - mu| <= rate_j fails in some column, for the best mu of that column.
    fn excess(&self, combined: &[f64], rates: &[f64]) -> f64 {
        let (k, d) = (self.classes, self.x.cols());
        let of_column = |column: usize| {
            let at = |class: usize| (combined[class * d + column], rates[class * d + column]);
            let low = (0..k).map(|class| at(class).0 - at(class).1).fold(f64::NEG_INFINITY, f64::max);
            let high = (0..k).map(|class| at(class).0 + at(class).1).fold(f64::INFINITY, f64::min);
            (0.5 * (low - high)).max(0.0)
        };
        (0..d).map(of_column).fold(0.0, f64::max)
    }

    /// What a row adds to the dual.
    fn row_dual(&self, bound: &Majorant, row: usize, v: &[f64]) -> f64 {
        let k = self.classes;
        let (mut knots, mut base) = (vec![0.0; k], vec![0.0; k]);
        let total = self.shape(bound, row, &mut knots, &mut base);
        let slack = 1e-9 * total;
        if self.loss.base().is_smooth() {
            let code = self.codes[row] as usize;
            let inside = (0..k).all(|class| class == code || v[class] <= slack) && v.iter().sum::<f64>().abs() <= slack;
            let kept = |total: f64| -total * self.loss.base().conjugate((v[code] / total).max(0.0));
            return match (inside, total > 0.0) {
                (false, _) => f64::NEG_INFINITY,
                (true, true) => kept(total),
                (true, false) => 0.0,
            };
        }
        let q: Vec<f64> = base.iter().zip(v).map(|(base, v)| base - v).collect();
        let inside = q.iter().all(|&q| q >= -slack) && (q.iter().sum::<f64>() - total).abs() <= slack;
        if !inside {
            return f64::NEG_INFINITY;
        }
        total - q.iter().zip(&knots).map(|(q, knot)| (q - knot).max(0.0)).sum::<f64>()
    }
}
