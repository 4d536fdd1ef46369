//! The hinge without truncation and a penalty sum rate |w|^q, q >= 1: a convex problem, followed down until a lower bound certifies the end. With the squared norm that is
//! what is left where gathering does not end, and of a truncated loss it is a majorise-minimise step on gathered rows (`beside`).
//!
//! As the width of the smoothing falls its minimiser moves along a path that is straight as long as no row enters or leaves a window. So the ends of two widths
//! tell where the next one lies, and about where that of no smoothing does: what is lowest on that line counts. Where very many rows lie at a kink together, as those of a
//! function that is constant do, a step from anywhere else would leave all of their windows.
//!
//! **Bound.** The multipliers of the smoothed loss, q_i in `term` and `apart`, belong to the dual of the loss itself as well. With G = sum c q'dz/dtheta, the gradient
//! of the smoothed loss, and the slackness sum c (h(z) - q'z), the values of the two problems at theta and q differ by
//!
//! ```text
//! P - D = slackness + Omega(w) + G'theta + Omega*(-G_w),        G_b = 0; of several functions, that sum up to 0, equal entries of G_b
//! ```
//!
//! For q = 1 the conjugate is 0 where no derivative exceeds its rate, and infinite elsewhere: multipliers times a factor below 1 are feasible as well, and the
//! largest is taken. (Those of rows that stand behind a linear function count among them: the bound is one of the problem of all rows.) For q > 1 it is finite everywhere; of several functions it is the least over a number for each column. What is left of G_b counts by how far off the optimal
//! intercepts can be: they lie at kinks, and the penalty of the optimal w is no more than P.

use super::columns::beyond;
use super::newton::Then;
use super::rounds::{Best, TINY_WIDTH};
use super::smooth::{FIRST, LEAST, NARROWING};
use super::sums::Sums;
use super::{Given, Separable, Shape, Spec, Work};
use crate::error::Result;
use crate::linalg::dot;
use crate::solver::ways_out::End;
use crate::solver::{Options, Status};

/// Relative gap aimed at.
const AIM: f64 = 1e-6;
/// A width from which on derivatives are made exact.
const NARROW: f64 = 0.01;
/// Shares of the way to no smoothing that are looked at.
const SHARES: [f64; 6] = [0.25, 0.5, 0.75, 0.9, 1.0, 1.1];

/// Halvings of the interval in which the number of a column lies.
const HALVINGS: usize = 200;

impl Work<'_> {
    /// Whether a bound is known: with too many columns steps are not exact.
    pub(super) fn has_bound(&self) -> bool {
        let spec = &self.given.spec;
        let convex = !spec.ceiling.is_finite() && !matches!(spec.shape, Shape::Capped { .. });
        convex && !spec.wide && self.given.separable.as_ref().is_some_and(|penalty| penalty.q >= 1.0)
    }

    /// Widths that fall, from a start, until the gap is small.
    pub(super) fn certified(&mut self, start: Vec<f64>, options: &Options) -> Result<Best> {
        self.certified_to(start, AIM.min(options.tolerance), options)
    }

    /// On from an end that is not certified, of a convex problem: where too many rows for the memory lie at the kinks.
    pub(super) fn certified_after(&mut self, best: Best, options: &Options) -> Result<Best> {
        let end = self.certified(best.theta.clone(), options)?;
        let (bound, status, gap) = (end.objective * (1.0 - end.gap), end.status, best.gap);
        let lowest = if end.objective < best.objective { end.after(best) } else { best };
        let gap = relative(lowest.objective, bound).min(gap);
        let status = if gap <= options.tolerance { Status::Converged } else { status };
        Ok(Best { gap, status, ..lowest })
    }

    /// The same until a gap.
    pub(super) fn certified_to(&mut self, start: Vec<f64>, aim: f64, options: &Options) -> Result<Best> {
        let penalty = self.given.separable.clone().unwrap_or_else(|| Separable::squared(&self.given.spec));
        let mut theta = start;
        let (mut width, mut before): (f64, Option<(Vec<f64>, f64)>) = (FIRST, None);
        let (mut lowest, mut trace, mut bound) = (None, Vec::new(), f64::NEG_INFINITY);
        let status = loop {
            let sums = self.statistics(&theta, width)?;
            self.lower(&theta, &sums, &mut lowest, &mut trace);
            let then = if width <= NARROW { Then::Bound } else { Then::Nothing };
            let reached = self.descend(theta, sums, width, then)?;
            theta = reached.theta;
            self.lower(&theta, &reached.sums, &mut lowest, &mut trace);
            bound = bound.max(penalty.bound(&self.given, &theta, &reached.sums));
            if let Some((from, wider)) = &before {
                let beyond = width / (wider - width);
                let steps = SHARES.map(|share| 1.0 + share * beyond);
                let values = self.ray(from, &theta, &steps, TINY_WIDTH)?;
                let at = (0..steps.len()).min_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(0);
                if lowest.as_ref().is_none_or(|(_, lowest)| values[at] < *lowest) {
                    let there = between(from, &theta, steps[at]);
                    let sums = self.statistics(&there, TINY_WIDTH)?;
                    self.lower(&there, &sums, &mut lowest, &mut trace);
                }
            }
            let gap = lowest.as_ref().map_or(1.0, |(_, objective)| relative(*objective, bound));
            if gap <= aim {
                break Status::Converged;
            }
            if self.control.out_of_time() {
                break Status::TimeLimit;
            }
            if width <= LEAST {
                break if gap <= options.tolerance { Status::Converged } else { Status::Inaccurate };
            }
            let next = NARROWING * width;
            let on = before.as_ref().map(|(from, wider)| between(from, &theta, 1.0 + (width - next) / (wider - width)));
            before = Some((theta.clone(), width));
            theta = on.unwrap_or(theta);
            width = next;
        };
        let (theta, objective) = lowest.unwrap_or((theta, f64::INFINITY));
        Ok(Best { theta, objective, gap: relative(objective, bound), trace, outliers: 0, gathered: 0, status })
    }
}

/// A point on the line through two.
fn between(from: &[f64], to: &[f64], step: f64) -> Vec<f64> {
    from.iter().zip(to).map(|(from, to)| from + step * (to - from)).collect()
}

/// The gap next to the objective, 1 at most: of a sum of losses and penalties 0 is a bound.
fn relative(objective: f64, bound: f64) -> f64 {
    ((objective - bound) / objective.abs().max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
}

impl Separable {
    /// rho/2 |w|^2
    fn squared(spec: &Spec) -> Separable {
        Separable { q: 2.0, rates: vec![0.5 * spec.ridge; spec.functions * spec.cols] }
    }

    /// A lower bound of the objective; `sums` are those at `theta`, normalised.
    fn bound(&self, given: &Given, theta: &[f64], sums: &Sums) -> f64 {
        let (spec, largest) = (&given.spec, given.survey.largest());
        let (m, p) = (spec.functions, spec.order());
        let objective = self.value(spec, theta) + sums.loss;
        // sum c q, and what the rest of the dual adds up to
        let linear = sums.loss - sums.slackness - dot(&sums.gradient, theta);
        let of_intercepts = || sums.gradient[p - 1..].iter().step_by(p).copied();
        let mean = if m > 1 { of_intercepts().sum::<f64>() / m as f64 } else { 0.0 };
        let off: f64 = match spec.intercept {
            true => {
                let penalty = objective.max(given.level);
                let farthest = m as f64 * (1.0 + 2.0 * largest * spec.unit * self.size(penalty));
                let at = theta[p - 1..].iter().step_by(p);
                of_intercepts().zip(at).map(|(g, b)| (g - mean).abs() * (farthest + b.abs())).sum()
            }
            false => 0.0,
        };
        let mut bound = self.dual(spec, &sums.gradient, linear - off);
        if spec.shape == Shape::Apart && spec.intercept {
            // the multipliers of a function make up its derivatives alone: smaller ones are balanced exactly
            let least = of_intercepts().fold(f64::INFINITY, f64::min).max(0.0);
            let functions = sums.gradient.chunks_exact(p);
            let balanced =
                functions.flat_map(|g| g.iter().map(|value| least / g[p - 1].max(f64::MIN_POSITIVE) * value));
            bound = bound.max(self.dual(spec, &balanced.collect::<Vec<_>>(), m as f64 * least));
        }
        if bound.is_finite() { bound.min(objective) } else { f64::NEG_INFINITY }
    }

    /// The value of the dual where multipliers sum up to `linear` and make up these derivatives.
    fn dual(&self, spec: &Spec, gradient: &[f64], linear: f64) -> f64 {
        let (m, p) = (spec.functions, spec.order());
        let rate = |at: usize| self.rates[at / p * spec.cols + at % p];
        let entries =
            |place: usize| (0..m).map(move |function| function * p + place).map(|at| (gradient[at], rate(at)));
        if self.q == 1.0 {
            return linear / (0..spec.cols).map(|place| beyond(m, entries(place))).fold(1.0, f64::max);
        }
        linear - (0..spec.cols).map(|place| conjugate(m, self.q, entries(place).collect())).sum::<f64>()
    }

    /// The largest sum |w| of coefficients whose penalty is no more than so much.
    fn size(&self, penalty: f64) -> f64 {
        let rates = self.rates.iter().filter(|rate| rate.is_finite());
        if self.q == 1.0 {
            return penalty / rates.fold(f64::INFINITY, |least, rate| least.min(*rate));
        }
        let sum: f64 = rates.map(|rate| rate.powf(-1.0 / (self.q - 1.0))).sum();
        penalty.powf(1.0 / self.q) * sum.powf(1.0 - 1.0 / self.q)
    }
}

/// sup over w of -g'w - sum rate |w|^q, where those of several functions sum up to 0: pairs of g and the rate.
fn conjugate(functions: usize, q: f64, entries: Vec<(f64, f64)>) -> f64 {
    let entries: Vec<(f64, f64)> = entries.into_iter().filter(|(_, rate)| rate.is_finite()).collect();
    let alone = |v: f64, rate: f64| (q - 1.0) * rate * (v.abs() / (rate * q)).powf(q / (q - 1.0));
    match entries[..] {
        [(g, rate)] if functions == 1 => return alone(g, rate),
        [] | [_] => return 0.0,
        _ => {}
    }
    // any number is an upper bound, the one where the maximisers sum up to 0 the least
    let maximiser = |v: f64, rate: f64| v.signum() * (v.abs() / (rate * q)).powf(1.0 / (q - 1.0));
    let total = |number: f64| entries.iter().map(|(g, rate)| maximiser(-g - number, *rate)).sum::<f64>();
    let ends = |pick: fn(f64, f64) -> f64, from: f64| entries.iter().map(|(g, _)| -g).fold(from, pick);
    let (mut low, mut high) = (ends(f64::min, f64::INFINITY), ends(f64::max, f64::NEG_INFINITY));
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if !(low < middle && middle < high) {
            break;
        }
        if total(middle) > 0.0 { low = middle } else { high = middle }
    }
    let at = |number: f64| entries.iter().map(|(g, rate)| alone(-g - number, *rate)).sum::<f64>();
    at(low).min(at(high)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the supremum looked for on a fine grid.
    #[test]
    fn conjugates_are_suprema() {
        for q in [1.3, 1.5, 2.0] {
            let value = |w: f64, (g, rate): (f64, f64)| -g * w - rate * w.abs().powf(q);
            let grid = || (-40_000..=40_000).map(|k| f64::from(k) * 1e-3);
            let one = (0.7, 0.4);
            let alone = grid().map(|w| value(w, one)).fold(f64::NEG_INFINITY, f64::max);
            assert!((conjugate(1, q, vec![one]) - alone).abs() <= 1e-5, "{q}");
            let two = [(0.7, 0.4), (-0.3, 0.9)];
            let pair = grid().map(|w| value(w, two[0]) + value(-w, two[1])).fold(f64::NEG_INFINITY, f64::max);
            assert!((conjugate(2, q, two.to_vec()) - pair).abs() <= 1e-5, "{q}");
            // one of two that is fixed at 0 holds the other one there
            assert_eq!(conjugate(2, q, vec![(0.7, 0.4), (-0.3, f64::INFINITY)]), 0.0);
        }
    }
}
