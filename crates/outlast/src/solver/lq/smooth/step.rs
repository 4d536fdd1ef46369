//! One step: predictor and corrector.
//!
//! The corrector takes the products dx dz of the predictor off the products that are aimed at, as if that step were taken in full. Where
//! there is less room for it than for the predictor, room r < 1, the products of a step of that length, r^2 dx dz, are tried instead.

use super::super::normal::{Normal, pull, push};
use super::couples::{Couple, Couples, Targets};
use super::inside::{Inside, Point, View};
use crate::problem::lq::power;

/// Share of the way to the boundary that a step goes.
const REACH: f64 = 0.99;

impl Inside<'_> {
    /// W over all rows.
    fn curvature(&self, point: &Point) -> Vec<f64> {
        let (low, high) = (&point.couples.low, &point.couples.high);
        let mut curvature = vec![0.0; self.problem.rows() * self.problem.functions];
        for (term, &at) in self.at.iter().enumerate() {
            curvature[at] = 1.0 / (low.x[term] / low.z[term] + high.x[term] / high.z[term]);
        }
        curvature
    }

    /// E of one side.
    fn ease(&self, side: &Couple) -> Vec<f64> {
        let q = self.problem.q;
        let sides = side.x.iter().zip(&side.z).zip(self.rates.iter().cycle());
        sides.map(|((w, v), rate)| 1.0 / (rate * q * (q - 1.0) * power(*w, q - 2.0) + v / w)).collect()
    }

    /// The step towards given products.
    fn direction(&self, point: &Point, view: &View, system: &System, aim: &Targets) -> Point {
        let (m, n, d) = (self.problem.functions, self.problem.rows(), self.problem.x.cols());
        let couples = &point.couples;
        let aside = |side: &Couple, target: &[f64], sign: f64| -> Vec<f64> {
            let slack = |at: usize| sign * (view.pulled[at] - point.middles[at % d]);
            (0..m * d).map(|at| slack(at) - self.slope(at, side.x[at]) + target[at] / side.x[at]).collect()
        };
        let (up, down) = (aside(&couples.plus, &aim.plus, 1.0), aside(&couples.minus, &aim.minus, -1.0));
        let (plus, minus, bends) = (&system.plus, &system.minus, &system.bends);
        let e: Vec<f64> = (0..m * d).map(|at| plus[at] * up[at] - minus[at] * down[at]).collect();
        // what the sum over the functions takes
        let weights = self.weights(point);
        let over = |column: usize, of: &[f64]| (0..m).map(|j| of[j * d + column]).sum::<f64>();
        let lift: Vec<f64> = match m {
            1 => vec![0.0; d],
            _ => (0..d).map(|c| (over(c, &e) + over(c, &weights)) / over(c, bends)).collect(),
        };
        let constant: Vec<f64> = (0..m * d).map(|at| e[at] - bends[at] * lift[at % d]).collect();
        let moved = push(self.problem.x, &constant, &vec![0.0; m], m);
        let mut k = vec![0.0; n * m];
        for (term, &at) in self.at.iter().enumerate() {
            let z = 1.0 - self.signs[term] * view.decision[at];
            let goal = z + aim.low[term] / couples.low.z[term] - aim.high[term] / couples.high.z[term];
            k[at] = system.curvature[at] * (self.signs[term] * goal - moved[at]);
        }
        // V is balanced but for rounding, which a step takes off
        let v = self.spread(&couples.low.z);
        let sum = |j: usize| v[j * n..(j + 1) * n].iter().sum::<f64>();
        let balance: Vec<f64> = (0..m.max(2) - 1).map(|j| if m == 1 { -sum(0) } else { sum(m - 1) - sum(j) }).collect();
        let found = system.normal.solve_refined(&k, &balance);
        let du = pull(self.problem.x, &found.v, m);
        let middles: Vec<f64> = match m {
            1 => vec![0.0; d],
            _ => (0..d)
                .map(|c| (0..m).map(|j| bends[j * d + c] * du[j * d + c]).sum::<f64>() / over(c, bends) + lift[c])
                .collect(),
        };
        let mut by = Couples::default();
        for (term, &at) in self.at.iter().enumerate() {
            let step = self.signs[term] * found.v[at];
            let (low, high) = (&couples.low, &couples.high);
            by.low.z.push(step);
            by.high.z.push(-step);
            by.low.x.push((aim.low[term] - low.x[term] * step) / low.z[term] - low.x[term]);
            by.high.x.push((aim.high[term] + high.x[term] * step) / high.z[term] - high.x[term]);
        }
        for at in 0..m * d {
            let du = du[at] - middles[at % d];
            let sides = [
                (&mut by.plus, &couples.plus, plus[at] * (du + up[at]), aim.plus[at]),
                (&mut by.minus, &couples.minus, minus[at] * (down[at] - du), aim.minus[at]),
            ];
            for (by, side, step, target) in sides {
                by.x.push(step);
                by.z.push((target - side.z[at] * step) / side.x[at] - side.z[at]);
            }
        }
        Point { couples: by, intercepts: found.intercepts, middles }
    }

    /// Predictor and corrector, and how much of the step was taken; nothing if rounding leaves no step.
    pub(super) fn step(&self, point: &mut Point, view: &View) -> Option<f64> {
        let curvature = self.curvature(point);
        let (plus, minus) = (self.ease(&point.couples.plus), self.ease(&point.couples.minus));
        let bends: Vec<f64> = plus.iter().zip(&minus).map(|(a, b)| a + b).collect();
        let problem = self.problem;
        let normal = Normal::new(problem.x, problem.functions, problem.intercept, &bends, &curvature, 1.0);
        let system = System { normal: normal?, curvature: &curvature, plus, minus, bends: &bends };
        let (terms, entries) = (self.at.len(), bends.len());
        let all = |value: f64| Targets {
            low: vec![value; terms],
            high: vec![value; terms],
            plus: vec![value; entries],
            minus: vec![value; entries],
        };
        let first = self.direction(point, view, &system, &all(0.0));
        let (products, count) = (point.couples.product(), point.couples.count() as f64);
        let room = point.couples.room(&first.couples).min(1.0);
        let after = point.couples.product_after(&first.couples, room);
        let center = products / count * (after / products).clamp(0.0, 1.0).powi(3);
        let corrected = |share: f64| {
            let by = self.direction(point, view, &system, &first.couples.corrected(center, share));
            (point.couples.room(&by.couples), by)
        };
        let (mut longest, mut by) = corrected(1.0);
        if longest < room {
            let (length, other) = corrected(room * room);
            if length > longest {
                (longest, by) = (length, other);
            }
        }
        let length = (REACH * longest).min(1.0);
        if !(length > 1e-10) || by.intercepts.iter().any(|b| !b.is_finite()) {
            return None;
        }
        point.couples.low.advance(&by.couples.low, length);
        point.couples.high.advance(&by.couples.high, length);
        point.couples.plus.advance(&by.couples.plus, length);
        point.couples.minus.advance(&by.couples.minus, length);
        point.intercepts.iter_mut().zip(&by.intercepts).for_each(|(b, by)| *b += length * by);
        point.middles.iter_mut().zip(&by.middles).for_each(|(m, by)| *m += length * by);
        Some(length)
    }
}

/// The equations of a step.
struct System<'a> {
    normal: Normal<'a>,
    curvature: &'a [f64],
    plus: Vec<f64>,
    minus: Vec<f64>,
    bends: &'a [f64],
}
