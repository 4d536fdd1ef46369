//! Ways out of local minima, on all rows and on the rows near the kinks.
//!
//! All ways of a turn on all rows go by the same passes. Where few rows lie near the kinks, what is left to choose is which of them are given up: then the rows near
//! the kinks are gathered, as far from them as memory allows, and ways are followed on these beside the linear function that stands for all others. That takes no
//! passes but one that gathers and one that tells what the end is worth on all rows.

use super::band::Band;
use super::rounds::Descended;
use super::together::Descent;
use super::{Shape, Work};
use crate::error::Result;
use crate::solver::Options;
use crate::solver::ways_out::{End, out};

/// Rows up to which ways out are tried. With more there are fewer minima, and passes are dear.
const MOST: u64 = 2_000_000;
/// How many times as many ways as memory has room for at once are followed in a turn, one after the other.
const BATCHES: usize = 4;
/// What is not worth a pass with another ceiling.
const ROUGH: f64 = 1e-4;
/// Most gatherings.
const GATHERINGS: usize = 8;
/// Most multiplications of a step of Newton's method on the gathered rows, with the squared norm, and with other penalties, which take more steps.
const AFFORDABLE: (usize, usize) = (100_000_000, 10_000_000);
/// Rows gathered for each coefficient, at least.
const LEAST: usize = 4;

impl Work<'_> {
    /// Whether ways out are known, and passes not too dear.
    fn has_ways_out(&self) -> bool {
        let is_bounded = match self.given.spec.shape {
            Shape::Capped { cap, .. } => cap.is_finite(),
            _ => self.given.spec.ceiling.is_finite(),
        };
        is_bounded && !self.given.spec.wide && self.given.survey.total() <= MOST
    }

    /// Out of a local minimum; `way` is a descent with a ceiling times a factor, and on with the own one, or nothing where that meets another.
    pub(super) fn out<'a, E: End + Send + 'a>(
        &mut self,
        lowest: E,
        way: impl Fn(&E, f64) -> Descent<'a, Option<E>>,
    ) -> Result<E> {
        if !self.has_ways_out() {
            return Ok(lowest);
        }
        let control = self.control;
        out(lowest, control, |lowest, factors| {
            let mut ends = Vec::new();
            for some in factors.chunks(self.given.side_by_side).take(BATCHES) {
                if control.out_of_time() {
                    break;
                }
                ends.extend(self.together(some.iter().map(|factor| way(lowest, *factor)).collect())?);
            }
            Ok(ends.into_iter().flatten().collect())
        })
    }

    /// Something done roughly, with the ceiling times a factor.
    pub(super) fn with_ceiling<T>(&mut self, factor: f64, with: impl FnOnce(&mut Work) -> Result<T>) -> Result<T> {
        let (spec, board) = (&mut self.given.spec, self.board.take());
        let (shape, ceiling) = (spec.shape, spec.ceiling);
        spec.ceiling *= factor;
        if let Shape::Capped { cap, .. } = &mut spec.shape {
            *cap *= factor;
        }
        let little = std::mem::replace(&mut self.given.little, ROUGH);
        let found = with(self);
        (self.given.spec.shape, self.given.spec.ceiling) = (shape, ceiling);
        (self.given.little, self.board) = (little, board);
        found
    }

    /// Out of a local minimum on the rows near the kinks, at most so many; sums are those with a width.
    pub(super) fn out_nearby(
        &mut self,
        mut lowest: Descended,
        width: f64,
        options: &Options,
        most: usize,
    ) -> Result<Descended> {
        let size = self.given.spec.size();
        // two ways are followed at the same time, each with what its solver keeps of the rows
        let affordable = if self.given.separable.is_some() { AFFORDABLE.1 } else { AFFORDABLE.0 };
        let rows = (most / 2).min(affordable / (size * size));
        if !self.has_ways_out() || rows < LEAST * size {
            return Ok(lowest);
        }
        let reach = self.given.reach(&lowest.theta, rows / 2);
        let mut now = Band { theta: lowest.theta.clone(), half_width: reach, forced: Vec::new() };
        for _ in 0..GATHERINGS {
            if self.control.out_of_time() || now.forced.len() > rows / 2 {
                break;
            }
            let found = self.gather(&now, None, rows)?;
            if found.count > rows {
                break;
            }
            let Some(theta) = self.explore(&found, &now, options)? else { break };
            let there = Band { theta: self.given.held(theta), half_width: 0.0, forced: Vec::new() };
            let found = self.gather(&there, Some(&now), rows)?;
            let objective = self.penalty(&there.theta) + found.loss;
            if objective < lowest.objective() {
                let sums = self.statistics(&there.theta, width)?;
                let end = Descended { theta: there.theta, sums, trace: vec![objective] };
                let is_worth = end.is_worth(&lowest);
                lowest = end.after(lowest);
                if !is_worth {
                    break;
                }
                let half_width = self.given.reach(&lowest.theta, rows / 2);
                now = Band { theta: lowest.theta.clone(), half_width, forced: Vec::new() };
            } else {
                // what lies on this way was taken for affine
                now.forced.extend_from_slice(&found.violators);
                now.forced.sort_unstable();
                now.forced.dedup();
            }
        }
        Ok(lowest)
    }
}
