//! Weighted squared hinges in the space of a kernel whose matrix is kept, and of a linear f with more columns than rows: finite
//! Newton in the expansion.
//!
//! f = sum beta_i k(x_i, .). On the active rows A = {y f < 1}, S = diag(2 a)^1/2, the minimiser of the quadratic has beta = 0
//! outside A and
//!
//! ```text
//! (K_AA + S^-2) beta + 1 b = y,   1'beta = 0         as        (I + S K_AA S) v + S 1 b = S y,   beta = S v
//! ```
//!
//! whose matrix has no eigenvalue below 1. The step to it is followed by an exact line search; when a full step leaves A as it
//! was, the point is the minimiser. O(|A|^3) a step, conjugate gradients beyond [`DIRECT_ROWS`] rows, and n |A| for the new
//! decision values.

use super::super::Status;
use super::super::majorize::Step;
use super::machine::{Certified, Machine, Point};
use super::squares::{dual_gain, dual_point, enough, line_search, slope_left, total_loss};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::dot;
use faer::linalg::matmul::matmul;
use faer::linalg::solvers::{Llt, Solve};
use faer::{Mat, MatMut, MatRef, Side};
use rayon::prelude::*;

const MOST_STEPS: usize = 200;
const ROUNDING: f64 = 1e-15;

/// The first fit starts from about so many of the rows.
const PILOT_ROWS: usize = 800;

/// Most active rows for a factorisation.
pub(super) const DIRECT_ROWS: usize = 3000;
const MOST_PRODUCTS: usize = 1000;

/// Rows up to which a factor is kept between rounds.
const KEPT_ROWS: usize = 1000;

/// The kernel values between the rows, and the units they are in.
pub(super) struct Values {
    pub rows: usize,
    /// n x n
    pub matrix: Vec<f64>,
    /// Factor from the caller's weights to those that go with `matrix`.
    pub unit: f64,
    /// Largest weight worked with, in the units of `matrix`.
    pub most: f64,
}

impl Values {
    fn row(&self, row: usize) -> &[f64] {
        &self.matrix[row * self.rows..(row + 1) * self.rows]
    }

    /// K v, reading only the rows with v != 0.
    fn multiply(&self, v: &[f64]) -> Vec<f64> {
        let n = self.rows;
        let used: Vec<u32> = (0..n as u32).filter(|&row| v[row as usize] != 0.0).collect();
        let piece = n.div_ceil(8).max(64);
        let mut out = vec![0.0; n];
        out.par_chunks_mut(piece).enumerate().for_each(|(number, out)| {
            let start = number * piece;
            let end = start + out.len();
            for &row in &used {
                let (value, row) = (v[row as usize], &self.row(row as usize)[start..end]);
                out.iter_mut().zip(row).for_each(|(out, k)| *out += value * k);
            }
        });
        out
    }
}

pub(super) struct Stored<'a> {
    values: &'a Values,
    signs: Vec<f64>,
    intercept: bool,
    beta: Vec<f64>,
    b: f64,
    /// With b.
    decision: Vec<f64>,
    factor: Option<Factored>,
}

/// I + S K_AA S of some rows, factored.
struct Factored {
    rows: Vec<u32>,
    roots: Vec<f64>,
    lower: Llt<f64>,
}

impl<'a> Stored<'a> {
    pub(super) fn new(values: &'a Values, signs: Vec<f64>, intercept: bool) -> Self {
        let n = values.rows;
        Stored { values, signs, intercept, beta: vec![0.0; n], b: 0.0, decision: vec![0.0; n], factor: None }
    }

    fn enter(&self, weights: &[f64]) -> Vec<f64> {
        weights.iter().map(|&weight| (weight * self.values.unit).min(self.values.most)).collect()
    }

    /// The minimiser of 1/2 |f|^2 + sum a (t - f - b)^2 over the rows with a > 0: beta and b.
    fn quadratic(&mut self, weights: &[f64], targets: &[f64], control: &Control) -> Result<Option<(Vec<f64>, f64)>> {
        let n = weights.len();
        let rows: Vec<u32> = (0..n as u32).filter(|&row| weights[row as usize] > 0.0).collect();
        let roots: Vec<f64> = rows.iter().map(|&row| (2.0 * weights[row as usize]).sqrt()).collect();
        let right: Vec<f64> = rows.iter().zip(&roots).map(|(&row, root)| root * targets[row as usize]).collect();
        let Some((own, border)) = self.solve(rows.clone(), &roots, &right, control)? else { return Ok(None) };
        let weight = dot(&roots, &border);
        let b = if self.intercept && weight > 0.0 { dot(&roots, &own) / weight } else { 0.0 };
        let mut beta = vec![0.0; n];
        for (k, &row) in rows.iter().enumerate() {
            beta[row as usize] = roots[k] * (own[k] - b * border[k]);
        }
        // no rows, no pull on b
        let b = if self.intercept && weight == 0.0 { self.b } else { b };
        Ok((b.is_finite() && beta.iter().all(|beta| beta.is_finite())).then_some((beta, b)))
    }

    /// (I + S K S)^-1 of the right-hand side and of S 1.
    fn solve(
        &mut self,
        rows: Vec<u32>,
        roots: &[f64],
        right: &[f64],
        control: &Control,
    ) -> Result<Option<(Vec<f64>, Vec<f64>)>> {
        if rows.len() > DIRECT_ROWS {
            let system = |v: &[f64]| self.product(&rows, roots, v);
            let one = conjugate_gradients(right, system, control)?;
            let two = match self.intercept {
                true => conjugate_gradients(roots, system, control)?,
                false => vec![0.0; right.len()],
            };
            return Ok(Some((one, two)));
        }
        if !self.factor.as_ref().is_some_and(|factor| factor.rows == rows && factor.roots == roots) {
            self.factor = None;
            self.factor = self.factored(rows, roots);
        }
        let Some(Factored { lower, .. }) = &self.factor else { return Ok(None) };
        let both = Mat::from_fn(right.len(), 2, |i, j| if j == 0 { right[i] } else { roots[i] });
        let solution = lower.solve(&both);
        let column = |j: usize| (0..right.len()).map(|i| solution[(i, j)]).collect::<Vec<f64>>();
        Ok(Some((column(0), column(1))))
    }

    fn factored(&self, rows: Vec<u32>, roots: &[f64]) -> Option<Factored> {
        let order = rows.len();
        let mut system = Mat::zeros(order, order);
        for (column, &j) in rows.iter().enumerate() {
            let (values, out) = (self.values.row(j as usize), system.col_as_slice_mut(column));
            for (row, &i) in rows.iter().enumerate().skip(column) {
                out[row] = roots[row] * roots[column] * values[i as usize];
            }
            out[column] += 1.0;
        }
        // a kernel that is not positive semidefinite may need more than the 1 it has
        let mut shift = 0.0;
        while shift <= 1e3 {
            if let Ok(lower) = system.llt(Side::Lower) {
                return Some(Factored { rows, roots: roots.to_vec(), lower });
            }
            let more = if shift == 0.0 { 1e-12 } else { 99.0 * shift };
            (0..order).for_each(|k| system[(k, k)] *= 1.0 + more);
            shift += more;
        }
        None
    }

    /// (I + S K S) v
    fn product(&self, rows: &[u32], roots: &[f64], v: &[f64]) -> Vec<f64> {
        let mut spread = vec![0.0; self.values.rows];
        rows.iter().zip(roots).zip(v).for_each(|((&row, root), v)| spread[row as usize] = root * v);
        let image = self.values.multiply(&spread);
        rows.iter().zip(roots).zip(v).map(|((&row, root), v)| v + root * image[row as usize]).collect()
    }

    fn active(&self, weights: &[f64]) -> Vec<f64> {
        let of_row = |row: usize| if self.signs[row] * self.decision[row] < 1.0 { weights[row] } else { 0.0 };
        (0..weights.len()).map(of_row).collect()
    }

    /// A start from some of the rows: at f = 0 every row is active.
    fn pilot(&mut self, weights: &[f64], control: &Control) -> Result<()> {
        let stride = self.values.rows / PILOT_ROWS;
        if stride < 2 || self.beta.iter().any(|&beta| beta != 0.0) {
            return Ok(());
        }
        let of_row = |(row, &weight): (usize, &f64)| {
            if row % stride == 0 { weight / self.values.unit * stride as f64 } else { 0.0 }
        };
        let some: Vec<f64> = weights.iter().enumerate().map(of_row).collect();
        self.run(&some, 1.0, control)?;
        Ok(())
    }

    /// <f, g> for g = sum gamma k(x, .), f the current function.
    fn inner(&self, gamma: &[f64]) -> f64 {
        let total: f64 = gamma.iter().sum();
        dot(gamma, &self.decision) - self.b * total
    }

    fn own_half_norm(&self) -> f64 {
        0.5 * self.inner(&self.beta)
    }

    fn decision_of(&self, beta: &[f64], b: f64) -> Vec<f64> {
        let mut decision = self.values.multiply(beta);
        decision.iter_mut().for_each(|f| *f += b);
        decision
    }

    /// Newton's method from the current point.
    fn run(&mut self, weights: &[f64], tolerance: f64, control: &Control) -> Result<Step> {
        let weights = self.enter(weights);
        let targets = self.signs.clone();
        let mut active = self.active(&weights);
        // next to f = 0, which costs the sum of the weights, less than this is nothing: rows of one class alone cost 0
        let least = (ROUNDING * weights.iter().sum::<f64>()).max(f64::MIN_POSITIVE);
        let (mut left, mut idle) = (f64::INFINITY, 0);
        for iteration in 0..MOST_STEPS {
            control.check()?;
            if control.out_of_time() {
                return Ok(Step { gap: left, iterations: iteration, status: Status::TimeLimit });
            }
            let value = self.own_half_norm() + total_loss(&weights, &self.signs, &self.decision);
            let Some((beta, b)) = self.quadratic(&active, &targets, control)? else {
                return Ok(Step { gap: f64::INFINITY, iterations: iteration, status: Status::Inaccurate });
            };
            let decision = self.decision_of(&beta, b);
            // the slope of the objective along the step, from its gradient f - sum 2 a (y - f) k
            let step: Vec<f64> = beta.iter().zip(&self.beta).map(|(next, now)| next - now).collect();
            let change = |row: usize| decision[row] - self.decision[row];
            let pulled: f64 = (0..active.len())
                .filter(|&row| active[row] > 0.0)
                .map(|row| 2.0 * active[row] * (targets[row] - self.decision[row]) * change(row))
                .sum();
            let linear = self.inner(&step);
            let square = {
                let total: f64 = step.iter().sum();
                (0..step.len()).map(|row| step[row] * change(row)).sum::<f64>() - (b - self.b) * total
            };
            let slope = linear - pulled;
            left = -0.5 * slope / value.max(least);
            // near the optimum rounding may send a row back and forth across the margin
            idle = if left <= 100.0 * ROUNDING { idle + 1 } else { 0 };
            if !(left > ROUNDING) || idle > 3 {
                return Ok(Step { gap: 0.0, iterations: iteration, status: Status::Converged });
            }
            let slopes = (slope, slope_left(tolerance));
            let length = line_search(&weights, &self.signs, &self.decision, &decision, (linear, square), slopes);
            let length = if (length - 1.0).abs() <= 1e-12 { 1.0 } else { length };
            if length == 1.0 {
                (self.beta, self.b, self.decision) = (beta, b, decision);
            } else {
                self.beta.iter_mut().zip(&step).for_each(|(beta, step)| *beta += length * step);
                self.b += length * (b - self.b);
                self.decision.iter_mut().zip(&decision).for_each(|(f, next)| *f += length * (next - *f));
            }
            let now = self.active(&weights);
            let settled = length == 1.0 && now == active;
            active = now;
            if settled || left <= enough(tolerance) {
                return Ok(Step { gap: left, iterations: iteration + 1, status: Status::Converged });
            }
        }
        Ok(Step { gap: left, iterations: MOST_STEPS, status: Status::IterationLimit })
    }
}

impl Machine for Stored<'_> {
    fn minimize(&mut self, weights: &[f64], tolerance: f64, control: &Control) -> Result<Step> {
        let entered = self.enter(weights);
        self.pilot(&entered, control)?;
        let step = self.run(weights, tolerance, control)?;
        self.factor.take_if(|factor| factor.rows.len() > KEPT_ROWS);
        Ok(step)
    }

    fn regress(&mut self, weights: &[f64], targets: &[f64], control: &Control) -> Result<bool> {
        let weights = self.enter(weights);
        let Some((beta, b)) = self.quadratic(&weights, targets, control)? else { return Ok(false) };
        self.decision = self.decision_of(&beta, b);
        (self.beta, self.b) = (beta, b);
        Ok(true)
    }

    fn decision(&self) -> &[f64] {
        &self.decision
    }

    fn intercept(&self) -> f64 {
        self.b
    }

    fn half_norm(&self) -> f64 {
        self.own_half_norm() / self.values.unit
    }

    fn bend(&self, from: &Point, to: &Point) -> Option<(f64, f64)> {
        let line = |from: &[f64], to: &[f64]| -> Vec<f64> { to.iter().zip(from).map(|(to, from)| to - from).collect() };
        let (beta, mut step) = (line(&from.unknowns, &to.unknowns), line(&from.decision, &to.decision));
        step.iter_mut().for_each(|step| *step -= to.intercept - from.intercept);
        Some((dot(&from.unknowns, &step) / self.values.unit, 0.5 * dot(&beta, &step) / self.values.unit))
    }

    fn point(&self) -> Point {
        Point {
            unknowns: self.beta.clone(),
            weights: None,
            intercept: self.b,
            decision: self.decision.clone(),
            gap: 0.0,
        }
    }

    fn go_to(&mut self, point: &Point) {
        self.beta.clone_from(&point.unknowns);
        self.decision.clone_from(&point.decision);
        self.b = point.intercept;
    }

    /// A function that is not an expansion has no place here.
    fn start_at(&mut self, _: &[f64], _: f64) {}

    fn certify(&mut self, weights: &[f64]) -> Certified {
        let lowered = weights.iter().any(|&weight| weight * self.values.unit > self.values.most);
        let weights = self.enter(weights);
        self.decision = self.decision_of(&self.beta, self.b);
        let dual_beta = dual_point(&weights, &self.signs, &self.decision, self.intercept);
        let pulled = self.values.multiply(&dual_beta);
        let primal = self.own_half_norm() + total_loss(&weights, &self.signs, &self.decision);
        let dual =
            if lowered { f64::NEG_INFINITY } else { dual_gain(&weights, &dual_beta) - 0.5 * dot(&dual_beta, &pulled) };
        // the function itself, not the dual point, is what predicts
        Certified { primal, dual, expansion: self.beta.iter().map(|beta| beta / self.values.unit).collect() }
    }

    fn coefficients(&self) -> Option<Vec<f64>> {
        None
    }
}

/// Solves A x = right, A positive definite with eigenvalues >= 1.
fn conjugate_gradients(right: &[f64], multiply: impl Fn(&[f64]) -> Vec<f64>, control: &Control) -> Result<Vec<f64>> {
    let mut solution = vec![0.0; right.len()];
    let mut residual = right.to_vec();
    let mut direction = residual.clone();
    let mut energy = dot(&residual, &residual);
    let goal = 1e-20 * energy;
    for _ in 0..MOST_PRODUCTS {
        control.check()?;
        if energy.is_nan() || energy <= goal || control.out_of_time() {
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
        let next = dot(&residual, &residual);
        let momentum = next / energy;
        direction.iter_mut().zip(&residual).for_each(|(direction, r)| *direction = r + momentum * *direction);
        energy = next;
    }
    Ok(solution)
}

/// Rows of a piece of [`from_inner_products`].
const BLOCK: usize = 48;

/// A symmetric function of the inner products of dense rows: n x n, entry (i, j) being `value(i, j, x_i . x_j)`.
pub(super) fn from_inner_products(rows: &[f64], n: usize, value: impl Fn(usize, usize, f64) -> f64 + Sync) -> Vec<f64> {
    let d = rows.len() / n.max(1);
    let mut matrix = vec![0.0; n * n];
    matrix.par_chunks_mut((BLOCK * n).max(1)).enumerate().for_each(|(number, out)| {
        let (start, size) = (number * BLOCK, out.len() / n);
        let end = start + size;
        let own = MatRef::from_row_major_slice(&rows[start * d..end * d], size, d);
        let all = MatRef::from_row_major_slice(&rows[..end * d], end, d);
        // rows of the result are columns of its transpose
        let product = MatMut::from_column_major_slice_with_stride_mut(out, end, size, n);
        matmul(product, faer::Accum::Replace, all, own.transpose(), 1.0, faer::Par::Seq);
        for (row, out) in (start..end).zip(out.chunks_exact_mut(n)) {
            out[..=row].iter_mut().enumerate().for_each(|(column, out)| *out = value(row, column, *out));
        }
    });
    mirror(&mut matrix, n);
    matrix
}

/// Copies the lower triangle to the upper one, in square pieces that fit the cache.
fn mirror(matrix: &mut [f64], n: usize) {
    for top in (0..n).step_by(BLOCK) {
        for left in (0..=top).step_by(BLOCK) {
            for row in top..(top + BLOCK).min(n) {
                for column in left..(left + BLOCK).min(row) {
                    matrix[column * n + row] = matrix[row * n + column];
                }
            }
        }
    }
}
