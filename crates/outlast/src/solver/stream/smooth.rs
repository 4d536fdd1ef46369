//! Capped losses, and penalties sum rate |w|^q: Newton's method on the smoothed loss goes on until what the smoothing adds can't be seen. Where the loss is truncated
//! and the penalty is another than the squared norm, that is where rounds of gathering begin.
//!
//! A pass tells both the smoothed loss and the loss itself, so that what the smoothing adds is measured and not estimated: with rows spread evenly it is of
//! the order of the squared width, next to the loss. The relative gap reported is that difference and the decrease that the last quadratic model
//! promises, which for a convex problem is what is left, to second order; of several widths the one that tells the least. There is no dual point, and so no
//! certificate of these ends.

use super::newton::{Reached, Then};
use super::rounds::{Best, Descended, SAME, WIDEST};
use super::sums::Sums;
use super::together::Descent;
use super::{Shape, Work};
use crate::error::Result;
use crate::solver::ways_out::End;
use crate::solver::{Options, Status};

/// Widths of the hinge's smoothing: the first, the last that is always reached, the last of all, and the factor from one to the next.
pub(super) const FIRST: f64 = 0.1;
const USUAL: f64 = 3e-3;
pub(super) const LEAST: f64 = 1e-5;
pub(super) const NARROWING: f64 = 0.3;
/// Floors of the squared residual, for p < 2.
const FLOORS: [f64; 4] = [1e-2, 1e-4, 1e-6, 1e-8];
/// From one floor to the next where the gap is looked for.
const RISE: f64 = 3.0;
/// Relative difference of the smoothed loss and the loss that counts as none.
const UNSEEN: f64 = 1e-6;

impl Work<'_> {
    /// The lowest of the ends that the starts lead to.
    pub(super) fn smoothly(&mut self, mut starts: Vec<Vec<f64>>, options: &Options, most: usize) -> Result<Best> {
        if starts.is_empty() {
            starts.push(vec![0.0; self.given.spec.size()]);
        }
        let mut ends: Vec<Best> = Vec::new();
        if self.given.spec.wide || starts.len() == 1 || starts.len() > self.given.side_by_side {
            for start in starts {
                if ends.is_empty() || !self.control.out_of_time() {
                    ends.push(self.end_from(start, options)?);
                }
            }
        } else {
            let descent = |start: Vec<f64>| -> Descent<Best> { Box::new(move |work| work.end_from(start, options)) };
            ends = self.together(starts.into_iter().map(descent).collect())?;
        }
        let differ = ends.iter().any(|end| self.given.movement(&ends[0].theta, &end.theta) > SAME);
        let lowest = ends.into_iter().min_by(|a, b| a.objective.total_cmp(&b.objective));
        let mut best = lowest.unwrap_or_else(|| unreachable!("there is a start"));
        if differ {
            best = self.narrowed_by_other_ceilings(best, options)?;
        }
        if self.given.spec.shape == Shape::Margin && self.given.spec.ceiling.is_finite() {
            if self.given.separable.is_some() && !self.given.spec.wide {
                best = self.exactly(best, differ, options, most)?;
            }
            best.outliers = self.outliers(&best.theta)?;
        }
        Ok(best)
    }

    fn end_from(&mut self, start: Vec<f64>, options: &Options) -> Result<Best> {
        if self.has_bound() { self.certified(start, options) } else { self.narrow(start, options) }
    }

    /// On from the end of a descent by the rows near the kinks, at most so many; out of a local minimum where ends differ.
    fn exactly(&mut self, best: Best, differ: bool, options: &Options, most: usize) -> Result<Best> {
        let sums = self.statistics(&best.theta, LEAST)?;
        let from = Descended { theta: best.theta.clone(), sums, trace: best.trace.clone() };
        let from = if differ { self.out_nearby(from, LEAST, options, most)? } else { from };
        self.rounds(from, WIDEST, options, most)
    }

    /// Out of a local minimum by descents with other ceilings.
    fn narrowed_by_other_ceilings(&mut self, best: Best, options: &Options) -> Result<Best> {
        let objective = best.objective;
        let best = self.out(best, |best, factor| {
            let start = best.theta.clone();
            Box::new(move |work| {
                let there = work.with_ceiling(factor, |work| work.narrow(start, options))?;
                work.with_ceiling(1.0, |work| work.narrow(there.theta, options)).map(Some)
            })
        })?;
        if !(best.objective < objective) {
            return Ok(best);
        }
        let end = self.narrow(best.theta.clone(), options)?;
        Ok(if end.objective <= best.objective { end.after(best) } else { best })
    }

    /// Widths that fall, from one start.
    fn narrow(&mut self, start: Vec<f64>, options: &Options) -> Result<Best> {
        let mut widths = match self.given.spec.shape {
            Shape::Capped { power: 2.0, .. } => vec![FLOORS[0]],
            Shape::Capped { .. } => FLOORS.to_vec(),
            _ => vec![FIRST.min(self.given.spec.ceiling)],
        };
        let hinge = !matches!(self.given.spec.shape, Shape::Capped { .. });
        let mut theta = start;
        let mut at = 0;
        let mut trace: Vec<f64> = Vec::new();
        let mut lowest: Option<(Vec<f64>, f64)> = None;
        let unseen = UNSEEN.max(self.given.little);
        let (sums, width) = loop {
            let width = widths[at];
            let sums = self.statistics(&theta, width)?;
            self.lower(&theta, &sums, &mut lowest, &mut trace);
            let Reached { theta: next, sums, .. } = self.descend(theta, sums, width, Then::Nothing)?;
            theta = next;
            self.lower(&theta, &sums, &mut lowest, &mut trace);
            let added = sums.blurred.abs() / self.value(&theta, &sums);
            if hinge
                && at + 1 == widths.len()
                && (width > USUAL && self.given.little == 0.0 || added > unseen && width > LEAST)
            {
                widths.push(NARROWING * width);
            }
            at += 1;
            // a floor that can't be seen need not be lowered: below it there are too few rows to tell a curvature
            let done = at == widths.len() || !hinge && added <= unseen;
            if done || self.control.out_of_time() {
                break (sums, width);
            }
        };
        let beyond = sums.beyond;
        let mut gap = self.left(&theta, sums, width)?;
        let (theta, objective) = lowest.unwrap_or((theta, f64::INFINITY));
        if !hinge && gap > options.tolerance && !self.control.out_of_time() {
            // a low floor has too few rows below it for a curvature that can be believed; a higher one adds more, and tells more
            let mut floor = widths[at - 1];
            while gap > options.tolerance && floor <= FLOORS[0] && !self.control.out_of_time() {
                let sums = self.statistics(&theta, floor)?;
                gap = gap.min(self.left(&theta, sums, floor)?);
                floor *= RISE;
            }
        }
        let status = match () {
            _ if self.control.out_of_time() => Status::TimeLimit,
            _ if gap <= options.tolerance => Status::Converged,
            _ if width <= LEAST || !hinge => Status::Inaccurate,
            _ => Status::IterationLimit,
        };
        Ok(Best { theta, objective, gap, trace, outliers: beyond, gathered: 0, status })
    }

    /// The relative gap that a smoothed loss tells: what its quadratic model promises, and what smoothing adds. Where the power is below 1, and
    /// every row at its kink makes a local minimum, the model is that of the convex bound with weights h'(g), as in memory.
    fn left(&mut self, theta: &[f64], mut sums: Sums, width: f64) -> Result<f64> {
        if matches!(self.given.spec.shape, Shape::Capped { power, .. } if power < 1.0) {
            sums.far.clear();
            self.convex = true;
        }
        let step = self.step(theta, &sums, (width, 0.0));
        self.convex = false;
        let promised = step?.map_or(0.0, |(_, slope)| -slope).max(0.0) + self.rest;
        Ok((promised + sums.blurred.abs()) / self.value(theta, &sums))
    }

    fn value(&self, theta: &[f64], sums: &Sums) -> f64 {
        (self.penalty(theta) + sums.loss).max(f64::MIN_POSITIVE)
    }

    /// Keeps a point that is lower in the objective itself.
    pub(super) fn lower(&self, theta: &[f64], sums: &Sums, lowest: &mut Option<(Vec<f64>, f64)>, trace: &mut Vec<f64>) {
        let objective = self.penalty(theta) + sums.loss;
        if lowest.as_ref().is_none_or(|(_, best)| objective < *best) {
            *lowest = Some((theta.to_vec(), objective));
            trace.push(objective);
        }
    }
}
