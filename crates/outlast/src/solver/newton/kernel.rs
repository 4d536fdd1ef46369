//! f = K beta: Newton in the expansion.
//!
//! At the optimum beta = r, r_i = -c_i y_i l'(u_i). Newton's equations for the change (delta, db) are
//!
//! ```text
//! (I + W K) delta + W db = r - beta =: rho,      sum (beta + delta) = 0 if b is free,      W = diag(c l''(u))
//! (I + W K)^-1 rho = rho - W^1/2 A^-1 W^1/2 K rho,     (I + W K)^-1 W 1 = W^1/2 A^-1 W^1/2 1,     A = I + W^1/2 K W^1/2
//! ```
//!
//! which never divides by W, so rows whose curvature has underflowed, and truncated rows (W = r = 0, hence
//! delta = -beta), need no special case (Rasmussen and Williams 2006, algorithm 3.1, with an intercept). A has
//! eigenvalues >= 1: Cholesky on the rows with W > 0 where K is kept and small. Otherwise conjugate gradients on
//! (I + W K) delta = rho in the inner product of K, where I + W K is symmetric: one product with K per iteration.

use super::descent::{Direction, Space, relative_gap};
use super::gram::Gram;
use super::rows::{Local, Rows};
use crate::linalg::{Factor, dot};
use faer::Mat;

/// Most rows for a factorisation.
const DIRECT_ROWS: usize = 2000;
const MOST_PRODUCTS: usize = 1000;

pub(super) struct Kernel<'a> {
    gram: &'a dyn Gram,
    pub(super) beta: Vec<f64>,
    decision: Vec<f64>,
    /// r and K r
    target: Vec<f64>,
    pulled: Vec<f64>,
    step: Vec<f64>,
    best: Option<Best>,
}

struct Best {
    beta: Vec<f64>,
    decision: Vec<f64>,
    intercept: f64,
    gap: f64,
}

/// A on the rows with W > 0.
struct Factored {
    factor: Factor,
    rows: Vec<usize>,
}

impl Factored {
    /// W^1/2 A^-1 v
    fn solve(&self, roots: &[f64], v: &[f64]) -> Vec<f64> {
        let right: Vec<f64> = self.rows.iter().map(|&row| v[row]).collect();
        let mut out = vec![0.0; roots.len()];
        self.rows.iter().zip(self.factor.solve(&right)).for_each(|(&row, value)| out[row] = roots[row] * value);
        out
    }
}

impl<'a> Kernel<'a> {
    pub(super) fn new(gram: &'a dyn Gram, beta: Option<Vec<f64>>) -> Self {
        let n = gram.rows();
        let empty = Vec::new;
        let mut space = Kernel {
            gram,
            beta: vec![0.0; n],
            decision: vec![0.0; n],
            target: empty(),
            pulled: empty(),
            step: empty(),
            best: None,
        };
        if let Some(beta) = beta.filter(|beta| beta.len() == n) {
            space.set_beta(beta);
        }
        space
    }

    pub(super) fn set_beta(&mut self, beta: Vec<f64>) {
        self.decision = self.product(&beta);
        self.beta = beta;
    }

    fn product(&self, v: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; v.len()];
        self.gram.multiply(v, &mut out);
        out
    }

    /// A on the rows with curvature, factored; `None` where that costs too much.
    fn factor(&self, roots: &[f64]) -> Option<Factored> {
        let values = self.gram.values()?;
        let rows: Vec<usize> = (0..roots.len()).filter(|&row| roots[row] > 0.0).collect();
        if rows.len() > DIRECT_ROWS {
            return None;
        }
        Some(Factored { factor: Factor::nearest_of(&self.system(values, roots, &rows))?, rows })
    }

    /// Newton's step by the factor.
    fn solve_directly(&self, factored: &Factored, roots: &[f64], intercept: bool) -> (Vec<f64>, f64) {
        let right: Vec<f64> =
            (0..roots.len()).map(|row| roots[row] * (self.pulled[row] - self.decision[row])).collect();
        let correction = factored.solve(roots, &right);
        let mut step: Vec<f64> =
            (0..roots.len()).map(|row| self.target[row] - self.beta[row] - correction[row]).collect();
        let mut db = 0.0;
        if intercept {
            let border = factored.solve(roots, roots);
            let weight: f64 = border.iter().sum();
            let imbalance = self.beta.iter().zip(&step).map(|(beta, step)| beta + step).sum::<f64>();
            if weight > 0.0 {
                db = imbalance / weight;
                step.iter_mut().zip(border).for_each(|(step, border)| *step -= db * border);
            }
        }
        (step, db)
    }

    /// Newton's step by conjugate gradients in the space of functions: inner product p'K p + p_b^2 / k, so that every
    /// iterate lowers the quadratic model and one product with K does for an iteration.
    fn solve_iteratively(&self, curvature: &[f64], intercept: bool, tolerance: f64) -> (Vec<f64>, f64) {
        let n = curvature.len();
        let mut residual: Vec<f64> = (0..n).map(|row| self.target[row] - self.beta[row]).collect();
        let mut residual_image: Vec<f64> = (0..n).map(|row| self.pulled[row] - self.decision[row]).collect();
        let mut residual_b = if intercept { self.target.iter().sum() } else { 0.0 };
        // b's own curvature is sum W, but at most 1/k once f may follow: k from the residual's Rayleigh quotient
        let inverse = dot(&residual, &residual) / dot(&residual, &residual_image);
        let weight = curvature.iter().sum::<f64>().min(inverse.max(0.0)).max(f64::MIN_POSITIVE);
        let (mut p, mut p_image, mut p_b) = (residual.clone(), residual_image.clone(), residual_b / weight);
        let (mut step, mut step_b) = (vec![0.0; n], 0.0);
        let mut energy = dot(&residual, &residual_image) + residual_b * residual_b / weight;
        let goal = tolerance * tolerance * energy;
        for _ in 0..MOST_PRODUCTS {
            if energy.is_nan() || energy <= goal {
                break;
            }
            let bent: Vec<f64> = (0..n).map(|row| curvature[row] * (p_image[row] + p_b)).collect();
            let bent_sum = if intercept { bent.iter().sum() } else { 0.0 };
            let bending = dot(&p, &p_image) + dot(&bent, &p_image) + p_b * bent_sum;
            if bending.is_nan() || bending <= 0.0 {
                break;
            }
            let bent_image = self.product(&bent);
            let length = energy / bending;
            for row in 0..n {
                step[row] += length * p[row];
                residual[row] -= length * (p[row] + bent[row]);
                residual_image[row] -= length * (p_image[row] + bent_image[row]);
            }
            step_b += length * p_b;
            residual_b -= length * bent_sum;
            let next = dot(&residual, &residual_image) + residual_b * residual_b / weight;
            let momentum = next / energy;
            for row in 0..n {
                p[row] = residual[row] + momentum * p[row];
                p_image[row] = residual_image[row] + momentum * p_image[row];
            }
            p_b = residual_b / weight + momentum * p_b;
            energy = next;
        }
        (step, step_b)
    }

    /// The lower half of A on some rows.
    fn system(&self, values: &[f64], roots: &[f64], rows: &[usize]) -> Mat<f64> {
        let n = roots.len();
        let mut system = Mat::zeros(rows.len(), rows.len());
        for (column, &j) in rows.iter().enumerate() {
            let out = system.col_as_slice_mut(column);
            for (row, &i) in rows.iter().enumerate().skip(column) {
                out[row] = roots[i] * roots[j] * values[j * n + i];
            }
            out[column] += 1.0;
        }
        system
    }

    /// A feasible beta as primal and dual point at once: f = K beta, b its best.
    fn judge(&self, rows: &Rows, intercept: bool, b: f64, mut beta: Vec<f64>) -> Best {
        rows.make_feasible(&mut beta, intercept);
        let decision = self.product(&beta);
        let one_sided = intercept && rows.one_sided_intercept().is_some();
        let b = if intercept && !one_sided { rows.best_intercept(&decision, b) } else { b };
        let half_norm = 0.5 * dot(&beta, &decision);
        let gap = relative_gap(half_norm + rows.loss(&decision, b), -half_norm - rows.conjugate(&beta));
        Best { beta, decision, intercept: b, gap }
    }
}

impl Space for Kernel<'_> {
    fn decision(&self) -> &[f64] {
        &self.decision
    }

    fn half_norm(&self) -> f64 {
        0.5 * dot(&self.beta, &self.decision)
    }

    fn reset(&mut self) {
        self.beta.fill(0.0);
        self.decision.fill(0.0);
    }

    fn pull(&mut self, target: Vec<f64>) -> f64 {
        self.pulled = self.product(&target);
        self.target = target;
        0.5 * dot(&self.target, &self.pulled)
    }

    fn direction(&mut self, local: &Local, intercept: bool, residual: f64) -> Direction {
        let roots: Vec<f64> = local.curvature.iter().map(|curvature| curvature.sqrt()).collect();
        let (step, db) = match self.factor(&roots) {
            Some(factored) => self.solve_directly(&factored, &roots, intercept),
            None => self.solve_iteratively(&local.curvature, intercept, residual),
        };
        let decision = self.product(&step);
        let (cross, square) = (dot(&step, &self.decision), dot(&step, &decision));
        self.step = step;
        Direction { decision, intercept: db, cross, square }
    }

    fn advance(&mut self, direction: &Direction, length: f64) {
        // a full step lands on r exactly where there is no curvature: truncated rows leave the expansion
        self.beta.iter_mut().zip(&self.step).for_each(|(beta, step)| *beta += length * step);
        self.decision.iter_mut().zip(&direction.decision).for_each(|(f, df)| *f += length * df);
    }

    /// Tries beta itself, the better one when curvatures are large, and r, the better one when they are small.
    fn settle(&mut self, rows: &Rows, intercept: bool, b: f64, _: f64) -> f64 {
        let tries = [self.beta.clone(), self.target.clone()].map(|beta| self.judge(rows, intercept, b, beta));
        let [one, two] = tries;
        let better = if one.gap <= two.gap { one } else { two };
        let gap = better.gap;
        if self.best.as_ref().is_none_or(|best| gap < best.gap) {
            self.best = Some(better);
        }
        gap
    }

    fn conclude(&mut self) -> Option<(f64, f64)> {
        let best = self.best.take()?;
        if !best.gap.is_finite() {
            self.reset();
            return Some((f64::INFINITY, best.intercept));
        }
        self.beta = best.beta;
        self.decision = best.decision;
        Some((best.gap, best.intercept))
    }
}
