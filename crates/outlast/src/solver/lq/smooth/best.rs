//! The best point and the best bound seen, and the bound of a point.

use super::super::super::{Solution, Status};
use super::super::normal::pull;
use super::super::{SMOOTH, rows_by_functions};
use super::inside::{Inside, Point, View};
use crate::problem::LqProblem;
use crate::problem::lq::log_conjugate;
use std::borrow::Cow;

/// Imbalance, relative to the caps, that is rounding.
const BALANCED: f64 = 1e-13;
/// Rounding of x_c'V, relative to the sum of the sizes of its terms.
const ROUNDING: f64 = 1e-14;

/// The best point and the best bound, in units of the objective.
pub(super) struct Best {
    pub(super) primal: f64,
    dual: f64,
    pub(super) weights: Vec<f64>,
    intercepts: Vec<f64>,
    /// Function-major.
    v: Vec<f64>,
}

impl Best {
    /// w = 0 and V = 0.
    pub(super) fn nothing(inside: &Inside) -> Best {
        let (m, d, n) = (inside.problem.functions, inside.problem.x.cols(), inside.problem.rows());
        let (weights, intercepts) = (vec![0.0; m * d], vec![0.0; m]);
        let primal = inside.objective(&weights, &intercepts);
        Best { primal, dual: 0.0, weights, intercepts, v: vec![0.0; n * m] }
    }

    pub(super) fn gap(&self) -> f64 {
        (self.primal - self.dual).max(0.0) / self.primal.abs().max(f64::MIN_POSITIVE)
    }

    /// Looks at w of the point, and at the w that belongs to its V.
    pub(super) fn note(&mut self, inside: &Inside, point: &Point, view: &View) {
        let problem = inside.problem;
        let (m, d, q) = (problem.functions, problem.x.cols(), problem.q);
        let mut weights = inside.weights(point);
        if m > 1 {
            (0..d).for_each(|column| balance(&mut weights, column, d));
        }
        self.note_primal(inside, weights, &point.intercepts);
        let mut alpha = Cow::Borrowed(&point.couples.low.z);
        let mut pulled = Cow::Borrowed(&view.pulled);
        if problem.intercept && inside.imbalance(&alpha) > BALANCED * inside.totals().iter().sum::<f64>() {
            alpha = Cow::Owned(inside.levelled(&alpha));
            pulled = Cow::Owned(pull(problem.x, &inside.spread(&alpha), m));
        }
        let total = alpha.iter().sum();
        let pulled = without_rounding(&pulled, m, |column| ROUNDING * total / inside.scales[column]);
        let (r, dual) = best_multiple(total, &pulled, m, q, &inside.rates);
        if dual > self.dual {
            self.dual = dual;
            self.v = inside.spread(&alpha);
            self.v.iter_mut().for_each(|v| *v *= r * inside.unit);
        }
    }

    pub(super) fn note_primal(&mut self, inside: &Inside, weights: Vec<f64>, intercepts: &[f64]) {
        let mut intercepts = intercepts.to_vec();
        if intercepts.len() > 1 {
            balance(&mut intercepts, 0, 1);
        }
        let primal = inside.objective(&weights, &intercepts);
        if primal < self.primal {
            (self.primal, self.weights, self.intercepts) = (primal, weights, intercepts);
        }
    }

    pub(super) fn solution(self, problem: &LqProblem, iterations: usize, status: Status) -> Solution {
        let gap = self.gap();
        let decision = problem.decision(&self.weights, &self.intercepts);
        let objective = problem.penalty(&self.weights) + problem.loss(&decision);
        Solution {
            expansion: rows_by_functions(&self.v, problem.functions),
            weights: Some(self.weights),
            intercepts: self.intercepts,
            decision,
            truncated: vec![false; problem.rows()],
            majorant: None,
            objective,
            gap,
            trace: vec![objective],
            iterations,
            status,
            solver: SMOOTH,
        }
    }
}

/// X'V less the rounding of its sums, `slack` of each column: where a penalty is next to nothing, so must X'V be.
fn without_rounding(pulled: &[f64], functions: usize, slack: impl Fn(usize) -> f64) -> Vec<f64> {
    let d = pulled.len() / functions.max(1);
    let mut out = pulled.to_vec();
    for column in 0..d {
        let entries = || (0..functions).map(|j| pulled[j * d + column]);
        // what is common to all functions does not count
        let mean = if functions == 1 { 0.0 } else { entries().sum::<f64>() / functions as f64 };
        let largest = entries().fold(0.0f64, |largest, u| largest.max((u - mean).abs()));
        let share = if largest > 0.0 { (1.0 - slack(column) / largest).max(0.0) } else { 0.0 };
        (0..functions).for_each(|j| out[j * d + column] = share * (pulled[j * d + column] - mean));
    }
    out
}

/// The r in [0, 1] for which r V bounds best, and the bound r total - r^p value: value = sum_c rate_c g_c(u_c / rate_c). Powers as large
/// as p are left to logarithms. For q = 1 r V is feasible or not: |u_c - mu| <= rate_c.
fn best_multiple(total: f64, pulled: &[f64], functions: usize, q: f64, rates: &[f64]) -> (f64, f64) {
    if q == 1.0 {
        let r = largest_multiple(pulled, functions, rates);
        return (r, r * total);
    }
    let (d, p) = (rates.len(), q / (q - 1.0));
    let mut u = vec![0.0; functions];
    let mut of_column = |column: usize| {
        let entry = |j: usize| pulled[j * d + column];
        let largest = (0..functions).fold(0.0f64, |largest, j| largest.max(entry(j).abs()));
        if largest == 0.0 {
            return f64::NEG_INFINITY;
        }
        (0..functions).for_each(|j| u[j] = entry(j) / largest);
        p * largest.ln() - (p - 1.0) * rates[column].ln() + log_conjugate(&u, q)
    };
    let logs: Vec<f64> = (0..d).map(&mut of_column).collect();
    let most = logs.iter().fold(f64::NEG_INFINITY, |most, log| most.max(*log));
    if !(total > 0.0) || most.is_nan() || most == f64::INFINITY {
        return (0.0, 0.0);
    }
    if most == f64::NEG_INFINITY {
        return (1.0, total);
    }
    let log_value = most + logs.iter().map(|log| (log - most).exp()).sum::<f64>().ln();
    let log_r = (total.ln() - p.ln() - log_value) / (p - 1.0);
    match log_r < 0.0 {
        true => (log_r.exp(), log_r.exp() * total * (1.0 - 1.0 / p)),
        false => (1.0, total - log_value.exp()),
    }
}

/// The largest r <= 1 with r |u_c - mu| <= rate_c for all columns and some mu of each (0 for one function).
fn largest_multiple(pulled: &[f64], functions: usize, rates: &[f64]) -> f64 {
    let d = rates.len();
    let of_column = |column: usize| {
        let entries = || (0..functions).map(|j| pulled[j * d + column]);
        let size = match functions {
            1 => pulled[column].abs(),
            _ => 0.5 * (entries().fold(f64::NEG_INFINITY, f64::max) - entries().fold(f64::INFINITY, f64::min)),
        };
        if size > rates[column] { rates[column] / size } else { 1.0 }
    };
    (0..d).map(of_column).fold(1.0, f64::min)
}

/// Takes what is left of the sum over the functions off the largest entry.
pub(in super::super) fn balance(values: &mut [f64], column: usize, stride: usize) {
    let entries = || (column..values.len()).step_by(stride);
    let sum: f64 = entries().map(|at| values[at]).sum();
    let largest = entries().max_by(|&a, &b| values[a].abs().total_cmp(&values[b].abs()));
    if let Some(at) = largest {
        values[at] -= sum;
    }
}
