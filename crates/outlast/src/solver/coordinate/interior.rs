//! The same dual by a primal-dual interior point, for problems on which coordinate descent creeps (huge C, many more
//! rows than columns) and whose smaller side is small.
//!
//! ```text
//! K beta - y + b 1 - z_l + z_u = 0,    sum beta = 0,    z_l (beta - lower) = z_u (upper - beta) = mu,      K = X X'
//! ```
//!
//! Mehrotra's predictor and corrector; beta stays strictly inside its boxes. A step solves with K + D, D diagonal:
//! directly if n <= d, else by (K + D)^-1 = D^-1 - D^-1 X (I + X'D^-1 X)^-1 X'D^-1 with iterative refinement. Cost of an
//! iteration: O(n d min(n, d)); usually 20 to 40 of them. Rows without room (cap 0) take no part.

use super::super::normal;
use super::dual::Dual;
use crate::control::Control;
use crate::error::Result;
use crate::linalg::Factor;
use faer::Mat;
use rayon::prelude::*;

const MOST_SIDE: usize = 1500;
const MOST_WORK: f64 = 2e10;
const MOST_STEPS: usize = 100;
const REFINEMENTS: usize = 2;

/// Matrices of the smaller side that a step has at the same time.
const MATRICES: usize = 5;

/// Whether a problem of that shape is small enough, and its matrices fit into some bytes.
pub(super) fn is_affordable(rows: usize, cols: usize, bytes: usize) -> bool {
    let side = rows.min(cols);
    side <= MOST_SIDE && 8 * MATRICES * side * side <= bytes && rows as f64 * cols as f64 * side as f64 <= MOST_WORK
}

struct State<'a, 'b> {
    dual: &'b Dual<'a>,
    intercept: bool,
    /// Rows with room.
    rows: Vec<usize>,
    beta: Vec<f64>,
    b: f64,
    below: Vec<f64>,
    above: Vec<f64>,
    /// K on the rows with room, where it is the smaller way.
    gram: Option<Mat<f64>>,
}

/// A system K + D, factored.
struct System<'s, 'a, 'b> {
    state: &'s State<'a, 'b>,
    diagonal: Vec<f64>,
    factor: Factor,
}

struct Move {
    beta: Vec<f64>,
    b: f64,
    below: Vec<f64>,
    above: Vec<f64>,
}

/// beta and b near the optimum of the dual's boxes; `None` if the numbers did not allow it. The complementarity is
/// brought down to `accuracy` times the sum of |beta|.
pub(super) fn solve(dual: &Dual, intercept: bool, accuracy: f64, control: &Control) -> Result<Option<(Vec<f64>, f64)>> {
    let mut state = State::new(dual, intercept);
    if state.rows.is_empty() {
        return Ok(None);
    }
    let mut sound = (state.beta.clone(), state.b);
    for _ in 0..MOST_STEPS {
        control.check()?;
        let gradient = state.gradient();
        let gap = state.complementarity() * 2.0 * state.rows.len() as f64;
        let size: f64 = state.beta.iter().map(|beta| beta.abs()).sum();
        if gap <= accuracy * size || control.out_of_time() {
            sound = (state.beta.clone(), state.b);
            break;
        }
        // the first equation holds from the start; when rounding has undone that, the last step was one too many
        let off = (0..gradient.len()).map(|k| (gradient[k] - state.below[k] + state.above[k]).abs());
        if off.fold(0.0, f64::max) > 1e-3 {
            break;
        }
        sound = (state.beta.clone(), state.b);
        if !state.step(&gradient) {
            break;
        }
    }
    let (inside, b) = sound;
    let mut beta = vec![0.0; dual.beta.len()];
    state.rows.iter().zip(inside).for_each(|(&row, value)| beta[row] = value);
    Ok(beta.iter().all(|beta| beta.is_finite()).then_some((beta, b)))
}

impl<'a, 'b> State<'a, 'b> {
    fn new(dual: &'b Dual<'a>, intercept: bool) -> Self {
        let rows: Vec<usize> = (0..dual.beta.len()).filter(|&row| dual.upper[row] > dual.lower[row]).collect();
        let beta: Vec<f64> = rows.iter().map(|&row| 0.5 * (dual.lower[row] + dual.upper[row])).collect();
        let empty = Vec::new;
        let gram = if rows.len() <= dual.data.cols() { Some(gram(dual, &rows)) } else { None };
        let mut state = State { dual, intercept, rows, beta, b: 0.0, below: empty(), above: empty(), gram };
        // multipliers that meet the first equation from the start, bounded away from 0
        let gradient = state.gradient();
        let mean = gradient.iter().map(|g| g.abs()).sum::<f64>() / gradient.len().max(1) as f64;
        state.below = gradient.iter().map(|g| g.max(0.0) + mean).collect();
        state.above = gradient.iter().map(|g| (-g).max(0.0) + mean).collect();
        state
    }

    fn room_below(&self, k: usize) -> f64 {
        self.beta[k] - self.dual.lower[self.rows[k]]
    }

    fn room_above(&self, k: usize) -> f64 {
        self.dual.upper[self.rows[k]] - self.beta[k]
    }

    fn spread(&self, v: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.dual.beta.len()];
        self.rows.iter().zip(v).for_each(|(&row, &value)| out[row] = value);
        out
    }

    /// K v
    fn product(&self, v: &[f64]) -> Vec<f64> {
        let w = self.dual.data.combine(&self.spread(v));
        self.rows.par_iter().with_min_len(64).map(|&row| self.dual.data.dot(row, &w)).collect()
    }

    /// K beta - y + b
    fn gradient(&self) -> Vec<f64> {
        let mut gradient = self.product(&self.beta);
        gradient.iter_mut().zip(&self.rows).for_each(|(g, &row)| *g += self.b - self.dual.signs[row]);
        gradient
    }

    /// mu
    fn complementarity(&self) -> f64 {
        let n = self.beta.len();
        let sum: f64 = (0..n).map(|k| self.room_below(k) * self.below[k] + self.room_above(k) * self.above[k]).sum();
        sum / (2.0 * n as f64)
    }

    /// One predictor-corrector step; `false` if it could not be made.
    fn step(&mut self, gradient: &[f64]) -> bool {
        let n = self.beta.len();
        let diagonal: Vec<f64> =
            (0..n).map(|k| self.below[k] / self.room_below(k) + self.above[k] / self.room_above(k)).collect();
        let Some(system) = System::new(self, diagonal) else { return false };
        let unit = if self.intercept { Some(system.solve(&vec![1.0; n])) } else { None };
        let none = vec![0.0; n];
        let predictor = system.newton(gradient, unit.as_deref(), &none, &none);
        let mu = self.complementarity();
        let longest = self.longest(&predictor);
        let reached = self.complementarity_after(&predictor, longest);
        let aim = mu * (reached / mu).clamp(0.0, 1.0).powi(3);
        let below: Vec<f64> = (0..n).map(|k| aim - predictor.beta[k] * predictor.below[k]).collect();
        let above: Vec<f64> = (0..n).map(|k| aim + predictor.beta[k] * predictor.above[k]).collect();
        let corrector = system.newton(gradient, unit.as_deref(), &below, &above);
        let length = (0.995 * self.longest(&corrector)).min(1.0);
        let finite = corrector.b.is_finite() && corrector.beta.iter().all(|step| step.is_finite());
        if !finite || length < 1e-10 {
            return false;
        }
        for k in 0..n {
            let row = self.rows[k];
            let target = self.beta[k] + length * corrector.beta[k];
            // rounding must not put beta onto a bound
            if target > self.dual.lower[row] && target < self.dual.upper[row] {
                self.beta[k] = target;
            }
            self.below[k] += length * corrector.below[k];
            self.above[k] += length * corrector.above[k];
        }
        self.b += length * corrector.b;
        true
    }

    /// The longest step, at most 1, that keeps every room and multiplier positive.
    fn longest(&self, step: &Move) -> f64 {
        let limit = |value: f64, change: f64| if change < 0.0 { -value / change } else { f64::INFINITY };
        (0..self.beta.len()).fold(1.0, |length: f64, k| {
            length
                .min(limit(self.room_below(k), step.beta[k]))
                .min(limit(self.room_above(k), -step.beta[k]))
                .min(limit(self.below[k], step.below[k]))
                .min(limit(self.above[k], step.above[k]))
        })
    }

    fn complementarity_after(&self, step: &Move, length: f64) -> f64 {
        let n = self.beta.len();
        let term = |k: usize| {
            (self.room_below(k) + length * step.beta[k]) * (self.below[k] + length * step.below[k])
                + (self.room_above(k) - length * step.beta[k]) * (self.above[k] + length * step.above[k])
        };
        (0..n).map(term).sum::<f64>() / (2.0 * n as f64)
    }
}

impl<'s, 'a, 'b> System<'s, 'a, 'b> {
    fn new(state: &'s State<'a, 'b>, diagonal: Vec<f64>) -> Option<Self> {
        let matrix = match &state.gram {
            Some(gram) => {
                let mut matrix = gram.clone();
                (0..diagonal.len()).for_each(|k| matrix[(k, k)] += diagonal[k]);
                matrix
            }
            None => {
                let inverse: Vec<f64> = diagonal.iter().map(|d| 1.0 / d).collect();
                let mut matrix = normal::matrix(state.dual.data, &state.spread(&inverse), false);
                (0..matrix.nrows()).for_each(|k| matrix[(k, k)] += 1.0);
                matrix
            }
        };
        Some(System { state, diagonal, factor: Factor::nearest_of(&matrix)? })
    }

    /// (K + D)^-1 v, refined.
    fn solve(&self, v: &[f64]) -> Vec<f64> {
        let mut solution = self.solve_once(v);
        for _ in 0..REFINEMENTS {
            let image = self.state.product(&solution);
            let residual: Vec<f64> = (0..v.len()).map(|k| v[k] - image[k] - self.diagonal[k] * solution[k]).collect();
            let correction = self.solve_once(&residual);
            solution.iter_mut().zip(correction).for_each(|(solution, correction)| *solution += correction);
        }
        solution
    }

    fn solve_once(&self, v: &[f64]) -> Vec<f64> {
        if self.state.gram.is_some() {
            return self.factor.solve(v);
        }
        let data = self.state.dual.data;
        let scaled: Vec<f64> = v.iter().zip(&self.diagonal).map(|(v, d)| v / d).collect();
        let inner = self.factor.solve(&data.combine(&self.state.spread(&scaled)));
        let rows = self.state.rows.par_iter().with_min_len(64);
        let image: Vec<f64> = rows.map(|&row| data.dot(row, &inner)).collect();
        (0..v.len()).map(|k| (v[k] - image[k]) / self.diagonal[k]).collect()
    }

    /// Newton's step towards products `below` and `above` of rooms and multipliers.
    fn newton(&self, gradient: &[f64], unit: Option<&[f64]>, below: &[f64], above: &[f64]) -> Move {
        let state = self.state;
        let n = gradient.len();
        let right: Vec<f64> =
            (0..n).map(|k| -gradient[k] + below[k] / state.room_below(k) - above[k] / state.room_above(k)).collect();
        let mut step = self.solve(&right);
        let mut db = 0.0;
        if let Some(unit) = unit {
            let sum: f64 = state.beta.iter().sum::<f64>() + step.iter().sum::<f64>();
            db = sum / unit.iter().sum::<f64>();
            step.iter_mut().zip(unit).for_each(|(step, unit)| *step -= db * unit);
        }
        let towards = |target: f64, room: f64, multiplier: f64, change: f64| {
            target / room - multiplier - multiplier / room * change
        };
        Move {
            b: db,
            below: (0..n).map(|k| towards(below[k], state.room_below(k), state.below[k], step[k])).collect(),
            above: (0..n).map(|k| towards(above[k], state.room_above(k), state.above[k], -step[k])).collect(),
            beta: step,
        }
    }
}

/// The lower half of K on some rows.
fn gram(dual: &Dual, rows: &[usize]) -> Mat<f64> {
    let columns: Vec<Vec<f64>> = rows
        .par_iter()
        .enumerate()
        .map_init(
            || vec![0.0; dual.data.cols()],
            |own, (column, &row)| {
                own.fill(0.0);
                dual.data.add_scaled(row, 1.0, own);
                rows[column..].iter().map(|&other| dual.data.dot(other, own)).collect()
            },
        )
        .collect();
    let mut gram = Mat::zeros(rows.len(), rows.len());
    for (column, values) in columns.iter().enumerate() {
        gram.col_as_slice_mut(column)[column..].copy_from_slice(values);
    }
    gram
}
