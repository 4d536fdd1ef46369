//! The problem as the steps see it, and what follows from a point.

use super::super::super::proximal;
use super::super::normal::{pull, push};
use super::couples::Couples;
use crate::problem::LqProblem;
use crate::problem::lq::power;

/// Range of the rates: a penalty that counts for less can't be told from none.
const RATES: (f64, f64) = (1e-200, 1e200);

#[derive(Clone)]
pub(super) struct Point {
    pub(super) couples: Couples,
    pub(super) intercepts: Vec<f64>,
    /// m, one per column.
    pub(super) middles: Vec<f64>,
}

/// What follows from a point: u (functions x columns) and f (function-major).
pub(super) struct View {
    pub(super) pulled: Vec<f64>,
    pub(super) decision: Vec<f64>,
}

pub(super) struct Inside<'a> {
    pub(super) problem: &'a LqProblem<'a>,
    /// Positions (function-major), caps and signs of the terms that count; caps in `unit`.
    pub(super) at: Vec<usize>,
    pub(super) caps: Vec<f64>,
    pub(super) signs: Vec<f64>,
    /// What the objective is divided by, a power of two.
    pub(super) unit: f64,
    /// What the penalty of each column counts for, in `unit`.
    pub(super) rates: Vec<f64>,
    /// About 1 / root mean square of each column: the size of coefficients to start from.
    pub(super) scales: Vec<f64>,
}

impl<'a> Inside<'a> {
    /// `factors` are the logarithms of what the columns' penalties are multiplied by; without them nothing is.
    pub(super) fn new(problem: &'a LqProblem<'a>, factors: Option<&[f64]>) -> Self {
        let n = problem.rows();
        let cap = |at: &usize| problem.cap(at % n, at / n);
        let at: Vec<usize> = (0..n * problem.functions).filter(|at| cap(at) > 0.0).collect();
        let caps: Vec<f64> = at.iter().map(cap).collect();
        let unit = proximal::unit_of(&caps);
        let caps = caps.iter().map(|cap| cap / unit).collect();
        let signs = at.iter().map(|at| problem.sign(at % n)).collect();
        let rate = |factor: &f64| (factor - unit.ln()).exp().clamp(RATES.0, RATES.1);
        let rates = match factors {
            Some(factors) => factors.iter().map(rate).collect(),
            None => vec![1.0 / unit; problem.x.cols()],
        };
        Inside { problem, at, caps, signs, unit, rates, scales: proximal::units(problem.x) }
    }

    /// The slope of the penalty of an entry (functions x columns) at w >= 0.
    pub(super) fn slope(&self, at: usize, w: f64) -> f64 {
        let q = self.problem.q;
        self.rates[at % self.rates.len()] * q * power(w, q - 1.0)
    }

    /// The objective, in `unit`.
    pub(super) fn objective(&self, weights: &[f64], intercepts: &[f64]) -> f64 {
        let q = self.problem.q;
        let columns = weights.iter().zip(self.rates.iter().cycle());
        let penalty: f64 = columns.map(|(w, rate)| rate * power(w.abs(), q)).sum();
        penalty + self.problem.loss(&self.problem.decision(weights, intercepts)) / self.unit
    }

    /// V, function-major over all rows, of numbers by term.
    pub(super) fn spread(&self, alpha: &[f64]) -> Vec<f64> {
        let mut v = vec![0.0; self.problem.rows() * self.problem.functions];
        for ((&at, sign), alpha) in self.at.iter().zip(&self.signs).zip(alpha) {
            v[at] = sign * alpha;
        }
        v
    }

    /// Sums of the caps of terms of equal kind: those of one function, or for one function those of one sign.
    pub(super) fn totals(&self) -> Vec<f64> {
        let mut totals = vec![0.0; self.problem.functions.max(2)];
        (0..self.at.len()).for_each(|term| totals[self.kind(term)] += self.caps[term]);
        totals
    }

    pub(super) fn kind(&self, term: usize) -> usize {
        match self.problem.functions {
            1 => usize::from(self.signs[term] > 0.0),
            _ => self.at[term] / self.problem.rows(),
        }
    }

    /// Intercepts that cost nothing, where there are no terms of some kind.
    pub(super) fn costless(&self) -> Option<Vec<f64>> {
        let totals = self.totals();
        let empty = totals.iter().filter(|total| **total == 0.0).count();
        match (self.problem.intercept, self.problem.functions) {
            _ if self.at.is_empty() => Some(vec![0.0; self.problem.functions]),
            (true, 1) if empty > 0 => Some(vec![if totals[0] == 0.0 { 1.0 } else { -1.0 }]),
            (true, m) if empty > 0 => {
                let up = (m - empty) as f64 / empty as f64;
                Some(totals.iter().map(|total| if *total == 0.0 { up } else { -1.0 }).collect())
            }
            _ => None,
        }
    }

    /// alpha with the kinds of larger sum scaled down to the least: balanced but for rounding.
    pub(super) fn levelled(&self, alpha: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.problem.functions.max(2)];
        alpha.iter().enumerate().for_each(|(term, alpha)| sums[self.kind(term)] += alpha);
        let least = sums.iter().fold(f64::INFINITY, |least: f64, sum| least.min(*sum));
        let share = |term: usize| if sums[self.kind(term)] > 0.0 { least / sums[self.kind(term)] } else { 0.0 };
        alpha.iter().enumerate().map(|(term, alpha)| alpha * share(term)).collect()
    }

    /// How far the column sums of V are from what a free b asks for.
    pub(super) fn imbalance(&self, alpha: &[f64]) -> f64 {
        let (m, n) = (self.problem.functions, self.problem.rows());
        let v = self.spread(alpha);
        let sums: Vec<f64> = v.chunks_exact(n.max(1)).map(|v| v.iter().sum()).collect();
        let goal = if m == 1 { 0.0 } else { sums[0] };
        sums.iter().fold(0.0, |most, sum| most.max((sum - goal).abs()))
    }

    pub(super) fn weights(&self, point: &Point) -> Vec<f64> {
        let (plus, minus) = (&point.couples.plus.x, &point.couples.minus.x);
        plus.iter().zip(minus).map(|(plus, minus)| plus - minus).collect()
    }

    pub(super) fn view(&self, point: &Point) -> View {
        let (x, m) = (self.problem.x, self.problem.functions);
        let pulled = pull(x, &self.spread(&point.couples.low.z), m);
        let decision = push(x, &self.weights(point), &point.intercepts, m);
        View { pulled, decision }
    }
}
