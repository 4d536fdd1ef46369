//! First points: next to a start, or in the middle.
//!
//! In the middle all products w v are about the same, p, and what the equations lack falls no faster than the steps are long: a w that is
//! too small by far has a v = p / w that exceeds all it should balance, and steps then end at one bound after the other before v has
//! come down. So w is as large as it may be: of the size that decides a row, or that for which v is the slope of the penalty,
//! w q rate w^(q-1) = p, where that is less.

use super::super::super::Start;
use super::super::normal::{pull, push};
use super::couples::{Couple, Couples};
use super::inside::{Inside, Point};
use crate::problem::lq::power;

/// How far from a start the first point is, as a share of the way to the middle.
const AWAY: f64 = 0.05;

impl Inside<'_> {
    /// alpha: a balanced share of every cap.
    fn shares(&self) -> Vec<f64> {
        let totals = self.totals();
        let least = totals.iter().fold(f64::INFINITY, |least, total| least.min(*total));
        let share = |term: usize| if self.problem.intercept { least / totals[self.kind(term)] } else { 1.0 };
        (0..self.at.len()).map(|term| 0.5 * share(term) * self.caps[term]).collect()
    }

    /// Coefficients of no sign, t = xi = 1, and a share of the caps: as much as keeps X'V from outweighing all else, or, if `careful`, from
    /// outweighing the penalty.
    pub(super) fn cold(&self, careful: bool) -> Point {
        let (m, d, q) = (self.problem.functions, self.problem.x.cols(), self.problem.q);
        let mut alpha = self.shares();
        let pulled = pull(self.problem.x, &self.spread(&alpha), m);
        // alpha t + (c - alpha) xi = c
        let typical = 0.5 * self.caps.iter().sum::<f64>() / self.caps.len().max(1) as f64;
        let size = |at: usize| self.scales[at % d].min(power(typical / (q * self.rates[at % d]), 1.0 / q));
        let sizes: Vec<f64> = (0..m * d).map(size).collect();
        let excess = |at: usize| match careful {
            true => 2.0 * pulled[at].abs() / self.slope(at, sizes[at]),
            false => (pulled[at].abs() * self.scales[at % d]).sqrt(),
        };
        let most = (0..m * d).map(excess).fold(1.0, f64::max);
        alpha.iter_mut().for_each(|alpha| *alpha /= most);
        let ones = vec![1.0; self.at.len()];
        self.inside(alpha, [ones.clone(), ones], [sizes.clone(), sizes], vec![0.0; m])
    }

    /// A point next to a start given, where its V is one: as far inside as `AWAY` says.
    pub(super) fn warm(&self, start: &Start) -> Option<Point> {
        let (m, n, d) = (self.problem.functions, self.problem.rows(), self.problem.x.cols());
        let weights = start.weights.as_ref().filter(|weights| weights.len() == m * d)?;
        if start.expansion.len() != n * m || start.intercepts.len() != m {
            return None;
        }
        let given = |term: usize| {
            let at = self.at[term];
            (self.signs[term] * start.expansion[at % n * m + at / n] / self.unit).clamp(0.0, self.caps[term])
        };
        let middle = self.shares();
        let alpha: Vec<f64> =
            (0..self.at.len()).map(|term| given(term) + AWAY * (middle[term] - given(term))).collect();
        let lost = self.imbalance(&alpha);
        if self.problem.intercept && !(lost <= 1e-12 * alpha.iter().sum::<f64>()) {
            return None;
        }
        let decision = push(self.problem.x, weights, &start.intercepts, m);
        let z = |term: usize| 1.0 - self.signs[term] * decision[self.at[term]];
        let slack = |sign: f64| (0..self.at.len()).map(|term| (sign * z(term)).max(0.0) + AWAY).collect();
        let side =
            |sign: f64| (0..m * d).map(|at| (sign * weights[at]).max(0.0) + AWAY * self.scales[at % d]).collect();
        Some(self.inside(alpha, [slack(-1.0), slack(1.0)], [side(1.0), side(-1.0)], start.intercepts.clone()))
    }

    /// The point of alpha, (t, xi), (w+, w-) and b: m and v follow, v above what products of the average size ask for.
    fn inside(&self, alpha: Vec<f64>, slacks: [Vec<f64>; 2], sides: [Vec<f64>; 2], intercepts: Vec<f64>) -> Point {
        let (m, d) = (self.problem.functions, self.problem.x.cols());
        let pulled = pull(self.problem.x, &self.spread(&alpha), m);
        let mean = |column: usize| match m {
            1 => 0.0,
            _ => (0..m).map(|j| pulled[j * d + column]).sum::<f64>() / m as f64,
        };
        let middles: Vec<f64> = (0..d).map(mean).collect();
        let rest: Vec<f64> = alpha.iter().zip(&self.caps).map(|(alpha, cap)| cap - alpha).collect();
        let [t, xi] = slacks;
        let (low, high) = (Couple { x: t, z: alpha }, Couple { x: xi, z: rest });
        let typical = (low.product() + high.product()) / (2 * self.at.len()).max(1) as f64;
        let slope = |side: &[f64], sign: f64| -> Vec<f64> {
            let bare = |at: usize| self.slope(at, side[at]) - sign * (pulled[at] - middles[at % d]);
            (0..m * d).map(|at| bare(at).max(typical / side[at])).collect()
        };
        let [plus, minus] = sides;
        let (up, down) = (slope(&plus, 1.0), slope(&minus, -1.0));
        let couples = Couples { low, high, plus: Couple { x: plus, z: up }, minus: Couple { x: minus, z: down } };
        Point { couples, intercepts, middles }
    }
}
