//! The robust fits of one fold: every pair of classes, and their decisions about the rows held out.
//!
//! Pairs are small problems that both cores and the cache like, and a wrong label of a third class has no part in them. Beyond
//! [`MOST_IN_PAIRS`] classes each class is fitted against all others instead.

use super::Member;
use super::scaled::Scaled;
use crate::control::Control;
use crate::data::Design;
use crate::error::Result;
use crate::model::Rows;
use crate::problem::{KernelFunction, Loss, Norm, Problem, TwoClass};
use crate::solver::{self, Care, Options, Start, tiles};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most classes that are fitted in pairs.
pub(super) const MOST_IN_PAIRS: usize = 30;

/// Relative duality gap of a fit: what is averaged over many fits need not be exact in any.
const TOLERANCE: f64 = 1e-3;

/// Most majorise-minimise steps of a fit.
const MOST_STEPS: usize = 10;

/// Rows, and rows per column, up to which pairs of rows are the shorter way to a linear function than columns.
const FEW: usize = 2000;
const FEW_PER_COLUMN: usize = 8;

/// Which binary problems stand for k classes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scheme {
    /// i against j, i < j.
    Pairs(usize),
    /// i against the rest.
    Rest(usize),
}

impl Scheme {
    pub fn of(k: usize) -> Scheme {
        if k <= MOST_IN_PAIRS { Scheme::Pairs(k) } else { Scheme::Rest(k) }
    }

    /// How many problems.
    pub fn count(self) -> usize {
        match self {
            Scheme::Pairs(k) => k * (k - 1) / 2,
            Scheme::Rest(k) => k,
        }
    }

    /// The classes of each problem, the second `None` for all others.
    pub fn problems(self) -> Vec<(u32, Option<u32>)> {
        match self {
            Scheme::Pairs(k) => {
                let k = k as u32;
                (0..k).flat_map(|i| (i + 1..k).map(move |j| (i, Some(j)))).collect()
            }
            Scheme::Rest(k) => (0..k as u32).map(|i| (i, None)).collect(),
        }
    }

    /// Where the problem of a pair stands.
    pub fn pair(k: usize, i: usize, j: usize) -> usize {
        i * (2 * k - i - 1) / 2 + j - i - 1
    }
}

/// The rows that are judged, and what every fit needs.
pub(super) struct Field<'a> {
    pub x: &'a Scaled,
    /// Class of each row among those that are judged; `None` for rows of classes too small to be.
    pub codes: &'a [Option<u32>],
    pub scheme: Scheme,
    pub loss: Loss,
    pub seed: u64,
    /// Binary fits done so far.
    pub done: &'a AtomicUsize,
}

/// Decisions of the fits without one fold about its rows, one list per C: rows x problems.
pub(super) type Decisions = Vec<Vec<f32>>;

impl Field<'_> {
    /// Fits without `held` and decides about it, for each C.
    /// `watch` is told of every fit; the fits themselves are told `control`, which only stops them.
    pub fn judge(
        &self,
        member: &Member,
        cs: &[f64],
        train: &[u32],
        held: &[u32],
        watch: &Control,
        control: &Control,
    ) -> Result<Decisions> {
        let x = self.x.design();
        let kernel = &member.kernel;
        let count = self.scheme.count();
        let linear = matches!(kernel, KernelFunction::Linear);
        let place: Vec<u32> = train.iter().copied().filter(|&row| self.codes[row as usize].is_some()).collect();
        let size = if linear { x.cols() } else { place.len() };
        let mut coefficients = vec![vec![0.0; size * count]; cs.len()];
        let mut intercepts = vec![vec![0.0; count]; cs.len()];
        for (problem, &(first, second)) in self.scheme.problems().iter().enumerate() {
            let takes = |row: u32| match (self.codes[row as usize], second) {
                (Some(code), _) if code == first => Some(1.0),
                (Some(code), Some(second)) if code == second => Some(-1.0),
                (Some(_), None) => Some(-1.0),
                _ => None,
            };
            let positions: Vec<usize> = (0..place.len()).filter(|&at| takes(place[at]).is_some()).collect();
            let some: Vec<u32> = positions.iter().map(|&at| place[at]).collect();
            let signs: Vec<f64> = some.iter().filter_map(|&row| takes(row)).collect();
            let rows = Rows::copy(x, &some)?;
            let mut start = None;
            for (at, &c) in cs.iter().enumerate() {
                control.check()?;
                let found = self.fit(rows.as_design(), &signs, c, kernel, start, control)?;
                self.report(watch);
                match (&found.weights, linear) {
                    (Some(w), true) => {
                        (0..size).for_each(|column| coefficients[at][column * count + problem] = w[column])
                    }
                    _ => positions
                        .iter()
                        .zip(&found.expansion)
                        .for_each(|(&row, &beta)| coefficients[at][row * count + problem] = beta),
                }
                intercepts[at][problem] = found.intercept();
                start = Some(found);
            }
        }
        let held = Rows::copy(x, held)?;
        let decide = |(coefficients, intercepts): (&Vec<f64>, &Vec<f64>)| -> Result<Vec<f32>> {
            control.check()?;
            let values = if linear {
                products(held.as_design(), coefficients, count)
            } else {
                self.expansions(kernel, &place, coefficients, held.as_design())?
            };
            let with = |(at, value): (usize, f64)| (value + intercepts[at % count]) as f32;
            Ok(values.into_iter().enumerate().map(with).collect())
        };
        coefficients.iter().zip(&intercepts).map(decide).collect()
    }

    fn fit(
        &self,
        x: &dyn Design,
        signs: &[f64],
        c: f64,
        kernel: &KernelFunction,
        start: Option<Start>,
        control: &Control,
    ) -> Result<Start> {
        let caps = vec![c; signs.len()];
        let two = TwoClass { x, signs, caps: &caps, loss: self.loss, norm: Norm::Squared, kernel, intercept: true };
        let problem = Problem::Two(two);
        let options = Options {
            tolerance: TOLERANCE,
            max_steps: MOST_STEPS,
            seed: self.seed,
            start,
            care: Care::Rough,
            ..Options::default()
        };
        let few = x.rows() <= FEW && x.rows() <= FEW_PER_COLUMN * x.cols();
        let name = solver::choose(if few { solver::kernel::NAME } else { "auto" }, &problem)?;
        let solution = solver::solve(name, &problem, &options, control)?;
        let weights = match (solution.weights, kernel) {
            (None, KernelFunction::Linear) => {
                let mut weights = vec![0.0; x.cols()];
                for (row, &beta) in solution.expansion.iter().enumerate().filter(|(_, beta)| **beta != 0.0) {
                    x.add_scaled(row, beta, &mut weights);
                }
                Some(weights)
            }
            (weights, _) => weights,
        };
        Ok(Start { expansion: solution.expansion, weights, intercepts: solution.intercepts })
    }

    /// sum over rows with a coefficient in any problem
    fn expansions(
        &self,
        kernel: &KernelFunction,
        place: &[u32],
        coefficients: &[f64],
        held: &dyn Design,
    ) -> Result<Vec<f64>> {
        let count = self.scheme.count();
        let of = |at: usize| &coefficients[at * count..(at + 1) * count];
        let used: Vec<usize> = (0..place.len()).filter(|&at| of(at).iter().any(|&beta| beta != 0.0)).collect();
        let support: Vec<u32> = used.iter().map(|&at| place[at]).collect();
        let some: Vec<f64> = used.iter().flat_map(|&at| of(at).iter().copied()).collect();
        let rows = Rows::copy(self.x.design(), &support)?;
        Ok(tiles::expand(kernel, rows.as_design(), &some, count, held))
    }

    fn report(&self, control: &Control) {
        let step = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        control.report(crate::control::Progress { stage: super::STAGE, step, objective: f64::NAN, gap: f64::NAN });
    }
}

/// X W, W columns x problems
fn products(x: &dyn Design, weights: &[f64], count: usize) -> Vec<f64> {
    let mut values = vec![0.0; x.rows() * count];
    for (row, out) in values.chunks_exact_mut(count).enumerate() {
        x.for_each(row, &mut |column, value| {
            let weights = &weights[column * count..(column + 1) * count];
            out.iter_mut().zip(weights).for_each(|(out, w)| *out += value * w);
        });
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_stand_where_they_are_looked_for() {
        for k in 2..8 {
            let problems = Scheme::Pairs(k).problems();
            assert_eq!(problems.len(), Scheme::Pairs(k).count());
            for (at, (i, j)) in problems.iter().enumerate() {
                assert_eq!(Scheme::pair(k, *i as usize, j.unwrap() as usize), at);
            }
        }
    }
}
