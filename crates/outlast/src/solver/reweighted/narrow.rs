//! Weighted squared hinges of a linear f with few columns: finite Newton on the active rows (Keerthi and DeCoste, JMLR 2005).
//!
//! With theta = (w, b), x~ = (x, 1) and the active rows A = {y f < 1} the objective is the quadratic
//! 1/2 |w|^2 + sum_A a (y - theta'x~)^2, so a step solves
//!
//! ```text
//! (I_0 + 2 G) step = -(w, 0) - 2 (G theta - m),       G = sum_A a x~ x~',   m = sum_A a y x~
//! ```
//!
//! and is followed by an exact line search. When a full step leaves A as it was, the point is the minimiser. G and m are kept,
//! and only the rows whose weight has changed enter or leave them: O(changes d^2) a step, beside one pass over the data,
//! O(n d), for the new decision values. Everything in the units of [`Scaled`].

use super::super::Status;
use super::super::majorize::Step;
use super::super::scaled::Scaled;
use super::machine::{Certified, Machine, Point};
use super::scheme::LOOSE;
use super::squares::{dual_gain, dual_point, enough, line_search, slope_left, sums, total_loss};
use crate::control::Control;
use crate::data::Repeated;
use crate::error::Result;
use crate::linalg::{Factor, Isa, dot, padded};
use rayon::prelude::*;

const MOST_STEPS: usize = 200;

/// A step that lowers the objective by less than this part of it is rounding.
const ROUNDING: f64 = 1e-15;

/// Entries of X in a piece of work.
const CHUNK: usize = 1 << 15;

/// Entries of X so few that other threads cost more than they bring.
const FEW: usize = 4 * CHUNK;

/// Doubles in a tile of rows for the Gram matrix.
const TILE: usize = 1 << 13;

/// Changes entered into the Gram matrix before it is summed afresh.
const MOST_UPDATES: usize = 30;

/// The first fit starts from one of every so many rows, where these are many for each column.
const PILOT: usize = 16;
const PILOT_ROWS_PER_COLUMN: usize = 20;

pub(super) struct Narrow<'a> {
    data: &'a Scaled<'a>,
    isa: Isa,
    signs: Vec<f64>,
    intercept: bool,
    /// Largest weight worked with.
    most: f64,
    theta: Vec<f64>,
    decision: Vec<f64>,
    sum: GramSum,
}

/// G bordered by m, of the rows entered.
struct GramSum {
    stride: usize,
    /// Rows and columns (x, 1, y), of which the lower triangle counts.
    matrix: Vec<f64>,
    /// The weight with which each row is in it.
    entered: Vec<f64>,
    updates: usize,
    factor: Option<Factor>,
}

impl<'a> Narrow<'a> {
    pub(super) fn new(data: &'a Scaled<'a>, signs: Vec<f64>, intercept: bool, most: f64) -> Self {
        let (n, d) = (data.rows(), data.cols());
        let stride = padded(d + 2);
        let sum =
            GramSum { stride, matrix: vec![0.0; stride * stride], entered: vec![0.0; n], updates: 0, factor: None };
        let theta = vec![0.0; d + 1];
        Narrow { data, isa: Isa::detect(), signs, intercept, most, theta, decision: vec![0.0; n], sum }
    }

    fn cols(&self) -> usize {
        self.data.cols()
    }

    fn order(&self) -> usize {
        self.cols() + usize::from(self.intercept)
    }

    fn enter(&self, weights: &[f64]) -> Vec<f64> {
        weights.iter().map(|&weight| self.data.enter(weight).min(self.most)).collect()
    }

    /// The decision values of theta: one pass.
    fn multiply(&self, theta: &[f64]) -> Vec<f64> {
        let (design, d) = (self.data.design(), self.cols());
        let (w, b, shrink) = (&theta[..d], theta[d], self.data.shrink());
        let mut out = vec![0.0; self.data.rows()];
        let rows = match design.stored() + self.data.rows() {
            0..FEW => self.data.rows().max(1),
            _ => (CHUNK * self.data.rows() / design.stored().max(1)).clamp(16, 1 << 16),
        };
        out.par_chunks_mut(rows).enumerate().for_each_init(Vec::new, |scratch, (piece, out)| {
            let start = piece * rows;
            if design.is_sparse() {
                out.iter_mut().enumerate().for_each(|(k, out)| *out = design.dot(start + k, w));
            } else {
                let block = design.block(start..start + out.len(), scratch);
                self.isa.dots(block, w, out);
            }
            out.iter_mut().for_each(|out| *out = *out * shrink + b);
        });
        out
    }

    /// sum v_i x~_i in the order of theta: one pass over the rows with v != 0.
    fn combine(&self, v: &[f64]) -> Vec<f64> {
        let (design, d) = (self.data.design(), self.cols());
        let rows = (8 * CHUNK * self.data.rows() / design.stored().max(1)).clamp(16, 1 << 16);
        let parts: Vec<Vec<f64>> = v
            .par_chunks(rows)
            .enumerate()
            .map_init(Vec::new, |scratch, (piece, v)| {
                let mut sum = vec![0.0; d + 1];
                let start = piece * rows;
                if design.is_sparse() || v.iter().filter(|v| **v != 0.0).count() * 4 < v.len() {
                    let used = v.iter().enumerate().filter(|(_, v)| **v != 0.0);
                    used.for_each(|(k, &v)| design.add_scaled(start + k, v, &mut sum[..d]));
                } else {
                    let block = design.block(start..start + v.len(), scratch);
                    self.isa.accumulate(block, v, &mut sum[..d]);
                }
                sum[..d].iter_mut().for_each(|sum| *sum *= self.data.shrink());
                sum[d] = v.iter().sum();
                sum
            })
            .collect();
        let mut total = vec![0.0; d + 1];
        parts.iter().for_each(|part| total.iter_mut().zip(part).for_each(|(total, part)| *total += part));
        total
    }

    /// Brings G and m to these weights.
    fn include(&mut self, desired: &[f64]) {
        let change = |row: u32| desired[row as usize] - self.sum.entered[row as usize];
        let pairs = (0..).zip(desired.iter().zip(&self.sum.entered));
        let changed: Vec<u32> = pairs.filter(|(_, (now, before))| now != before).map(|(row, _)| row).collect();
        if changed.is_empty() {
            return;
        }
        self.sum.factor = None;
        self.sum.updates += 1;
        let leaving: f64 = changed.iter().map(|&row| (-change(row)).max(0.0)).sum();
        let [staying, active] = sums([desired], |[weight]| [weight, if weight > 0.0 { 1.0 } else { 0.0 }]);
        // what leaves takes its rounding with it: little may leave, and seldom
        let afresh = 2 * changed.len() > active as usize || leaving > staying || self.sum.updates > MOST_UPDATES;
        let matrix = if afresh {
            let rows: Vec<(u32, f64)> = (0..desired.len() as u32)
                .filter(|&row| desired[row as usize] > 0.0)
                .map(|row| (row, desired[row as usize]))
                .collect();
            self.sum.updates = 0;
            self.squares(&rows)
        } else {
            let (plus, minus): (Vec<u32>, Vec<u32>) = changed.iter().partition(|&&row| change(row) > 0.0);
            let [plus, minus] = [plus, minus].map(|rows| {
                self.squares(&rows.iter().map(|&row| (row, change(row).abs())).collect::<Vec<(u32, f64)>>())
            });
            let mut matrix = std::mem::take(&mut self.sum.matrix);
            matrix.iter_mut().zip(plus).zip(minus).for_each(|((sum, plus), minus)| *sum += plus - minus);
            matrix
        };
        self.sum.matrix = matrix;
        self.sum.entered.copy_from_slice(desired);
    }

    /// The sum of a (x, 1, y)(x, 1, y)' over rows with their weights a > 0.
    fn squares(&self, rows: &[(u32, f64)]) -> Vec<f64> {
        let stride = self.sum.stride;
        let most = if stride > 512 { 2 } else { 8 };
        let piece = rows.len().div_ceil(most).max(256);
        let parts: Vec<Vec<f64>> = rows.par_chunks(piece).map(|rows| self.part(rows)).collect();
        let mut parts = parts.into_iter();
        let mut total = parts.next().unwrap_or_else(|| vec![0.0; stride * stride]);
        parts.for_each(|part| total.iter_mut().zip(part).for_each(|(total, part)| *total += part));
        total
    }

    fn part(&self, rows: &[(u32, f64)]) -> Vec<f64> {
        let (design, d, stride) = (self.data.design(), self.cols(), self.sum.stride);
        let mut matrix = vec![0.0; stride * stride];
        if design.is_sparse() && 4 * design.stored() < design.rows() * d {
            self.add_pairs(rows, &mut matrix);
            return matrix;
        }
        let full = (TILE / stride).clamp(8, 128) * stride;
        let (mut tile, mut scratch) = (Vec::with_capacity(full), Vec::new());
        for &(row, weight) in rows {
            let row = row as usize;
            let root = weight.sqrt();
            let factor = root * self.data.shrink();
            let end = tile.len() + stride;
            tile.extend(design.block(row..row + 1, &mut scratch).iter().map(|x| x * factor));
            tile.push(root);
            tile.push(root * self.signs[row]);
            tile.resize(end, 0.0);
            if end == full {
                self.isa.gram(&tile, stride, &mut matrix);
                tile.clear();
            }
        }
        self.isa.gram(&tile, stride, &mut matrix);
        matrix
    }

    /// Pairs of non-zeros, for rows that have few.
    fn add_pairs(&self, rows: &[(u32, f64)], matrix: &mut [f64]) {
        let (d, stride) = (self.cols(), self.sum.stride);
        let mut entries: Vec<(usize, f64)> = Vec::new();
        for &(row, weight) in rows {
            entries.clear();
            let shrink = self.data.shrink();
            self.data.design().for_each(row as usize, &mut |column, value| entries.push((column, value * shrink)));
            entries.push((d, 1.0));
            entries.push((d + 1, self.signs[row as usize]));
            for (position, &(i, value)) in entries.iter().enumerate() {
                let factor = weight * value;
                entries[..=position].iter().for_each(|&(j, other)| matrix[i * stride + j] += factor * other);
            }
        }
    }

    /// G theta, by the lower triangle.
    fn gram_times_theta(&self) -> Vec<f64> {
        let (order, stride) = (self.order(), self.sum.stride);
        let mut out = vec![0.0; order];
        for i in 0..order {
            let row = &self.sum.matrix[i * stride..i * stride + i + 1];
            out[i] += dot(row, &self.theta[..=i]);
            let own = self.theta[i];
            out[..i].iter_mut().zip(row).for_each(|(out, g)| *out += g * own);
        }
        out
    }

    fn gradient(&self) -> Vec<f64> {
        let (d, stride) = (self.cols(), self.sum.stride);
        let moments = &self.sum.matrix[(d + 1) * stride..(d + 1) * stride + d + 1];
        let mut gradient = self.gram_times_theta();
        gradient.iter_mut().zip(moments).for_each(|(g, m)| *g = 2.0 * (*g - m));
        gradient[..d].iter_mut().zip(&self.theta).for_each(|(g, w)| *g += w);
        gradient
    }

    /// (I_0 + 2 G)^-1 right, unrefined in loose rounds.
    fn solve(&mut self, right: &[f64], tolerance: f64) -> Option<Vec<f64>> {
        let (d, stride, order) = (self.cols(), self.sum.stride, self.order());
        if self.sum.factor.is_none() {
            let mut system: Vec<f64> = self.sum.matrix.iter().map(|g| 2.0 * g).collect();
            (0..d).for_each(|j| system[j * stride + j] += 1.0);
            self.sum.factor = Factor::nearest(&system, stride, order);
        }
        let factor = self.sum.factor.as_ref()?;
        let mut solution = if tolerance >= LOOSE { factor.solve_once(right) } else { factor.solve(right) };
        if !self.intercept {
            solution.push(0.0);
        }
        solution.iter().all(|value| value.is_finite()).then_some(solution)
    }

    fn active(&self, weights: &[f64]) -> Vec<f64> {
        let mut active = weights.to_vec();
        self.isa.run(
            #[inline(always)]
            || {
                let margins = self.signs.iter().zip(&self.decision).map(|(y, f)| y * f);
                active.iter_mut().zip(margins).for_each(|(a, margin)| *a = if margin < 1.0 { *a } else { 0.0 });
            },
        );
        active
    }

    /// Moves a part of the way to `next`.
    fn advance(&mut self, next: (Vec<f64>, Vec<f64>), length: f64) {
        if length == 1.0 {
            (self.theta, self.decision) = next;
            return;
        }
        self.theta.iter_mut().zip(&next.0).for_each(|(theta, next)| *theta += length * (next - *theta));
        self.decision.iter_mut().zip(&next.1).for_each(|(f, next)| *f += length * (next - *f));
    }

    /// A start from some of the rows: the first steps, in which most rows change sides, are cheap there.
    fn pilot(&mut self, weights: &[f64], control: &Control) -> Result<()> {
        let n = self.data.rows();
        let fresh = self.theta.iter().all(|&theta| theta == 0.0);
        if !fresh || n < PILOT * PILOT_ROWS_PER_COLUMN * (self.cols() + 10) {
            return Ok(());
        }
        let rows: Vec<u32> = (0..n as u32).step_by(PILOT).collect();
        let signs = rows.iter().map(|&row| self.signs[row as usize]).collect();
        let own: Vec<f64> = rows.iter().map(|&row| self.data.leave(weights[row as usize] * PILOT as f64)).collect();
        let view = Repeated::new(self.data.design(), rows);
        let data = self.data.of(&view);
        let mut part = Narrow::new(&data, signs, self.intercept, self.most);
        part.minimize(&own, 1.0, control)?;
        let theta = std::mem::take(&mut part.theta);
        self.decision = self.multiply(&theta);
        self.theta = theta;
        Ok(())
    }

    fn own_half_norm(&self) -> f64 {
        let w = &self.theta[..self.cols()];
        0.5 * dot(w, w)
    }
}

impl Machine for Narrow<'_> {
    fn minimize(&mut self, weights: &[f64], tolerance: f64, control: &Control) -> Result<Step> {
        let weights = self.enter(weights);
        let d = self.cols();
        self.pilot(&weights, control)?;
        let mut active = self.active(&weights);
        // next to f = 0, which costs the sum of the weights, less than this is nothing: rows of one class alone cost 0
        let least = (ROUNDING * weights.iter().sum::<f64>()).max(f64::MIN_POSITIVE);
        let (mut left, mut idle) = (f64::INFINITY, 0);
        for iteration in 0..MOST_STEPS {
            control.check()?;
            if control.out_of_time() {
                return Ok(Step { gap: left, iterations: iteration, status: Status::TimeLimit });
            }
            self.include(&active);
            let value = self.own_half_norm() + total_loss(&weights, &self.signs, &self.decision);
            let gradient = self.gradient();
            let negative: Vec<f64> = gradient.iter().map(|g| -g).collect();
            let Some(step) = self.solve(&negative, tolerance) else {
                return Ok(Step { gap: f64::INFINITY, iterations: iteration, status: Status::Inaccurate });
            };
            let slope = dot(&gradient, &step[..gradient.len()]);
            left = -0.5 * slope / value.max(least);
            // near the optimum rounding may send a row back and forth across the margin
            idle = if left <= 100.0 * ROUNDING { idle + 1 } else { 0 };
            if !(left > ROUNDING) || idle > 3 {
                return Ok(Step { gap: 0.0, iterations: iteration, status: Status::Converged });
            }
            let next: Vec<f64> = self.theta.iter().zip(&step).map(|(theta, step)| theta + step).collect();
            let decision = self.multiply(&next);
            let norms = (dot(&self.theta[..d], &step[..d]), dot(&step[..d], &step[..d]));
            let slopes = (slope, slope_left(tolerance));
            let length = line_search(&weights, &self.signs, &self.decision, &decision, norms, slopes);
            let length = if (length - 1.0).abs() <= 1e-12 { 1.0 } else { length };
            self.advance((next, decision), length);
            let now = self.active(&weights);
            let settled = length == 1.0 && now == active;
            active = now;
            if settled || left <= enough(tolerance) {
                return Ok(Step { gap: left, iterations: iteration + 1, status: Status::Converged });
            }
        }
        Ok(Step { gap: left, iterations: MOST_STEPS, status: Status::IterationLimit })
    }

    fn regress(&mut self, weights: &[f64], targets: &[f64], _: &Control) -> Result<bool> {
        let weights = self.enter(weights);
        self.include(&weights);
        let pulls: Vec<f64> = weights.iter().zip(targets).map(|(a, t)| 2.0 * a * t).collect();
        let moments = self.combine(&pulls);
        let order = self.order();
        let Some(theta) = self.solve(&moments[..order], 0.0) else { return Ok(false) };
        self.decision = self.multiply(&theta);
        self.theta = theta;
        Ok(true)
    }

    fn decision(&self) -> &[f64] {
        &self.decision
    }

    fn intercept(&self) -> f64 {
        self.theta[self.cols()]
    }

    fn half_norm(&self) -> f64 {
        0.5 * self.theta[..self.cols()].iter().map(|&w| self.data.leave_weight(w).powi(2)).sum::<f64>()
    }

    fn bend(&self, from: &Point, to: &Point) -> Option<(f64, f64)> {
        let d = self.cols();
        let step: Vec<f64> = to.unknowns[..d].iter().zip(&from.unknowns).map(|(to, from)| to - from).collect();
        let leave = |square: f64| self.data.leave(square);
        Some((leave(dot(&from.unknowns[..d], &step)), leave(0.5 * dot(&step, &step))))
    }

    fn point(&self) -> Point {
        Point { unknowns: self.theta.clone(), weights: None, intercept: 0.0, decision: self.decision.clone(), gap: 0.0 }
    }

    fn go_to(&mut self, point: &Point) {
        self.theta.clone_from(&point.unknowns);
        self.decision.clone_from(&point.decision);
    }

    fn start_at(&mut self, weights: &[f64], intercept: f64) {
        let mut theta: Vec<f64> = weights.iter().map(|&w| self.data.enter_weight(w)).collect();
        theta.push(intercept);
        self.decision = self.multiply(&theta);
        self.theta = theta;
    }

    fn certify(&mut self, weights: &[f64]) -> Certified {
        let lowered = weights.iter().any(|&weight| self.data.enter(weight) > self.most);
        let weights = self.enter(weights);
        let beta = dual_point(&weights, &self.signs, &self.decision, self.intercept);
        let pulled = self.combine(&beta);
        let pulled = &pulled[..self.cols()];
        let primal = self.own_half_norm() + total_loss(&weights, &self.signs, &self.decision);
        let dual = if lowered { f64::NEG_INFINITY } else { dual_gain(&weights, &beta) - 0.5 * dot(pulled, pulled) };
        Certified { primal, dual, expansion: beta.iter().map(|&beta| self.data.leave(beta)).collect() }
    }

    fn coefficients(&self) -> Option<Vec<f64>> {
        Some(self.theta[..self.cols()].iter().map(|&w| self.data.leave_weight(w)).collect())
    }
}
