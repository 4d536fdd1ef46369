//! f = w'x: Newton in w.
//!
//! H = I + X'WX bordered by the intercept, W = diag(c l''(u)). Up to [`DIRECT_COLUMNS`] columns H is formed from blocks of
//! rows in parallel, O(n d^2), equilibrated and factored by Cholesky; beyond that conjugate gradients scaled by the
//! diagonal, O(non-zeros) per iteration. With fewer rows that bend than columns these run in the rows: with v = W (X step + db),
//!
//! ```text
//! (W^-1 + XX') v = X right + db 1,       1'v = right_b,       step = right - X'v
//! ```
//!
//! where weights of all sizes, which a diagonal of H does not tell apart, stand on the diagonal. Everything in the units of [`Scaled`].

use super::super::normal;
use super::super::scaled::Scaled;
use super::descent::{Direction, Space};
use super::rows::{Local, Rows};
use crate::linalg::{Factor, dot};
use faer::Mat;
use rayon::prelude::*;

const DIRECT_COLUMNS: usize = 1000;
/// Most iterations of conjugate gradients, and what of the largest curvature is none.
const MOST_ITERATIONS: usize = 5000;
const FAINT: f64 = 1e-30;
/// Most multiplications for one Hessian.
const DIRECT_WORK: f64 = 5e10;

pub(super) struct Linear<'a> {
    pub(super) data: &'a Scaled<'a>,
    pub(super) weights: Vec<f64>,
    decision: Vec<f64>,
    /// X'r and r
    pulled: Vec<f64>,
    target: Vec<f64>,
    step: Vec<f64>,
    best: Option<Best>,
    /// beta of the last answer.
    pub(super) expansion: Vec<f64>,
}

struct Best {
    weights: Vec<f64>,
    decision: Vec<f64>,
    expansion: Vec<f64>,
    intercept: f64,
    gap: f64,
}

impl<'a> Linear<'a> {
    pub(super) fn new(data: &'a Scaled<'a>, weights: Option<Vec<f64>>) -> Self {
        let mut space = Linear {
            data,
            weights: vec![0.0; data.cols()],
            decision: vec![0.0; data.rows()],
            pulled: Vec::new(),
            target: Vec::new(),
            step: Vec::new(),
            best: None,
            expansion: vec![0.0; data.rows()],
        };
        if let Some(weights) = weights.filter(|weights| weights.len() == data.cols()) {
            space.set_weights(weights);
        }
        space
    }

    pub(super) fn set_weights(&mut self, weights: Vec<f64>) {
        self.decision = self.data.multiply(&weights);
        self.weights = weights;
    }

    /// X'v, rows in parallel where that pays.
    fn combine(&self, v: &[f64]) -> Vec<f64> {
        let (n, d) = (v.len(), self.data.cols());
        let pieces = rayon::current_num_threads().min(self.data.design().stored() / (4 * d.max(1)) + 1).min(16);
        if pieces <= 1 {
            return self.data.combine(v);
        }
        let size = n.div_ceil(pieces);
        let sums: Vec<Vec<f64>> = (0..pieces)
            .into_par_iter()
            .map(|piece| {
                let mut sum = vec![0.0; d];
                for row in (piece * size..((piece + 1) * size).min(n)).filter(|&row| v[row] != 0.0) {
                    self.data.add_scaled(row, v[row], &mut sum);
                }
                sum
            })
            .collect();
        let mut total = vec![0.0; d];
        for sum in sums {
            total.iter_mut().zip(sum).for_each(|(total, part)| *total += part);
        }
        total
    }

    /// Minus the gradient: X'r - w, and sum r for the intercept.
    fn descent(&self, intercept: bool) -> Vec<f64> {
        let mut descent: Vec<f64> = self.pulled.iter().zip(&self.weights).map(|(pulled, w)| pulled - w).collect();
        if intercept {
            descent.push(self.target.iter().sum());
        }
        descent
    }

    fn solve_directly(&self, curvature: &[f64], right: &[f64], intercept: bool) -> Option<Vec<f64>> {
        Some(Factor::nearest_of(&self.hessian(curvature, intercept))?.solve(right))
    }

    /// The lower half of I + X'WX, bordered by X'W1 and 1'W1 if the intercept is free.
    fn hessian(&self, curvature: &[f64], intercept: bool) -> Mat<f64> {
        let mut hessian = normal::matrix(self.data, curvature, intercept);
        for column in 0..self.data.cols() {
            hessian[(column, column)] += 1.0;
        }
        hessian
    }

    /// H p
    fn multiply(&self, curvature: &[f64], p: &[f64]) -> Vec<f64> {
        let d = self.data.cols();
        let border = p.get(d).copied();
        let mut along = self.data.multiply(&p[..d]);
        let db = border.unwrap_or(0.0);
        along.iter_mut().zip(curvature).for_each(|(along, curvature)| *along = curvature * (*along + db));
        let mut image = self.combine(&along);
        image.iter_mut().zip(p).for_each(|(image, p)| *image += p);
        if border.is_some() {
            image.push(along.iter().sum());
        }
        image
    }

    /// The direction by conjugate gradients in the rows; `None` if it does not go down.
    fn solve_by_rows(&self, curvature: &[f64], right: &[f64], intercept: bool, residual: f64) -> Option<Vec<f64>> {
        let (n, d) = (self.data.rows(), self.data.cols());
        let largest = curvature.iter().fold(0.0f64, |largest, c| largest.max(*c));
        // a row that bends next to nothing is left out: the direction need not be exact
        let bends = |row: usize| curvature[row] > FAINT * largest;
        let of_rows = |of: &dyn Fn(usize) -> f64, else_: f64| -> Vec<f64> {
            (0..n).map(|row| if bends(row) { of(row) } else { else_ }).collect()
        };
        let inverse = of_rows(&|row| 1.0 / curvature[row], 0.0);
        let diagonal = of_rows(&|row| inverse[row] + self.data.squared_norm(row), 1.0);
        let image = |v: &[f64]| -> Vec<f64> {
            let along = self.data.multiply(&self.combine(v));
            of_rows(&|row| along[row] + inverse[row] * v[row], 0.0)
        };
        let solve = |right: Vec<f64>| conjugate_gradients(&right, &diagonal, residual, MOST_ITERATIONS, image);
        let along = self.data.multiply(&right[..d]);
        let mut v = solve(of_rows(&|row| along[row], 0.0));
        let mut db = 0.0;
        if intercept {
            let unit = solve(of_rows(&|_| 1.0, 0.0));
            db = (right[d] - v.iter().sum::<f64>()) / unit.iter().sum::<f64>();
            v.iter_mut().zip(&unit).for_each(|(v, unit)| *v += db * unit);
        }
        let pulled = self.combine(&v);
        let mut step: Vec<f64> = right[..d].iter().zip(&pulled).map(|(right, pulled)| right - pulled).collect();
        if intercept {
            step.push(db);
        }
        (dot(right, &step) > 0.0).then_some(step)
    }

    /// diag H
    fn diagonal(&self, curvature: &[f64], intercept: bool) -> Vec<f64> {
        let mut diagonal = vec![1.0; self.data.cols()];
        let shrink = self.data.shrink();
        for (row, &curvature) in curvature.iter().enumerate().filter(|(_, curvature)| **curvature > 0.0) {
            let add = &mut |column: usize, value: f64| diagonal[column] += curvature * (value * shrink).powi(2);
            self.data.design().for_each(row, add);
        }
        if intercept {
            let total: f64 = curvature.iter().sum();
            diagonal.push(if total > 0.0 { total } else { 1.0 });
        }
        diagonal
    }
}

impl Space for Linear<'_> {
    fn decision(&self) -> &[f64] {
        &self.decision
    }

    fn half_norm(&self) -> f64 {
        0.5 * dot(&self.weights, &self.weights)
    }

    fn reset(&mut self) {
        self.weights.fill(0.0);
        self.decision.fill(0.0);
    }

    fn pull(&mut self, target: Vec<f64>) -> f64 {
        self.pulled = self.combine(&target);
        self.target = target;
        0.5 * dot(&self.pulled, &self.pulled)
    }

    fn direction(&mut self, local: &Local, intercept: bool, residual: f64) -> Direction {
        let right = self.descent(intercept);
        let size = right.len() as f64;
        let direct = right.len() <= DIRECT_COLUMNS && size * size * self.data.rows() as f64 <= DIRECT_WORK;
        let bending = local.curvature.iter().filter(|curvature| **curvature > 0.0).count();
        let solved = match direct {
            true => self.solve_directly(&local.curvature, &right, intercept),
            false if bending < self.data.cols() => self.solve_by_rows(&local.curvature, &right, intercept, residual),
            false => None,
        };
        let mut step = solved.unwrap_or_else(|| {
            let diagonal = self.diagonal(&local.curvature, intercept);
            let limit = 10 * right.len().min(self.data.rows() + 1) + 50;
            conjugate_gradients(&right, &diagonal, residual, limit.min(MOST_ITERATIONS), |p| {
                self.multiply(&local.curvature, p)
            })
        });
        let db = if intercept { step.pop().unwrap_or(0.0) } else { 0.0 };
        let decision = self.data.multiply(&step);
        let direction =
            Direction { decision, intercept: db, cross: dot(&self.weights, &step), square: dot(&step, &step) };
        self.step = step;
        direction
    }

    fn advance(&mut self, direction: &Direction, length: f64) {
        self.weights.iter_mut().zip(&self.step).for_each(|(w, step)| *w += length * step);
        self.decision.iter_mut().zip(&direction.decision).for_each(|(f, df)| *f += length * df);
    }

    fn settle(&mut self, _: &Rows, _: bool, b: f64, gap: f64) -> f64 {
        if self.best.as_ref().is_none_or(|best| gap < best.gap) {
            self.best = Some(Best {
                weights: self.weights.clone(),
                decision: self.decision.clone(),
                expansion: self.target.clone(),
                intercept: b,
                gap,
            });
        }
        gap
    }

    fn conclude(&mut self) -> Option<(f64, f64)> {
        let best = self.best.take()?;
        self.weights = best.weights;
        self.decision = best.decision;
        self.expansion = best.expansion;
        Some((best.gap, best.intercept))
    }
}

/// Solves A x = right for a positive definite A, scaled by a diagonal, to a relative residual.
fn conjugate_gradients(
    right: &[f64],
    diagonal: &[f64],
    tolerance: f64,
    limit: usize,
    multiply: impl Fn(&[f64]) -> Vec<f64>,
) -> Vec<f64> {
    let scaled = |residual: &[f64]| residual.iter().zip(diagonal).map(|(r, d)| r / d).collect::<Vec<f64>>();
    let mut solution = vec![0.0; right.len()];
    let mut residual = right.to_vec();
    let mut direction = scaled(&residual);
    let mut energy = dot(&residual, &direction);
    let goal = tolerance * tolerance * energy;
    for _ in 0..limit {
        if energy.is_nan() || energy <= goal {
            break;
        }
        let image = multiply(&direction);
        let curvature = dot(&direction, &image);
        if curvature.is_nan() || curvature <= 0.0 {
            break;
        }
        let length = energy / curvature;
        for k in 0..right.len() {
            solution[k] += length * direction[k];
            residual[k] -= length * image[k];
        }
        let next = scaled(&residual);
        let next_energy = dot(&residual, &next);
        let momentum = next_energy / energy;
        direction.iter_mut().zip(&next).for_each(|(direction, next)| *direction = next + momentum * *direction);
        energy = next_energy;
    }
    solution
}
