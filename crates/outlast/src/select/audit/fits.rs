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
use crate::solver::kernel::KernelStore;
use crate::solver::{self, Care, Options, Start, tiles};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most classes that are fitted in pairs.
pub(super) const MOST_IN_PAIRS: usize = 30;

/// Relative duality gap of a fit: what is averaged over many fits need not be exact in any.
pub(super) const TOLERANCE: f64 = 1e-3;

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
    /// Binary fits done so far, and those that need not be done.
    pub done: AtomicUsize,
}

/// The fits without the rows of one fold. At one C after the other, each begins where the last one ended; none has ever seen
/// a row of the fold.
pub(super) struct Fold<'a> {
    field: &'a Field<'a>,
    member: &'a Member,
    /// The rows that are fitted.
    train: Vec<u32>,
    /// The rows that are decided about.
    pub held: Vec<u32>,
    /// By problem, the last solution.
    starts: Vec<Option<Start>>,
}

impl<'a> Fold<'a> {
    /// The fold of that number, where each row has one.
    pub fn new(field: &'a Field<'a>, member: &'a Member, folds: &[usize], fold: usize) -> Fold<'a> {
        let (held, train): (Vec<u32>, Vec<u32>) =
            (0..field.codes.len() as u32).partition(|&row| folds[row as usize] == fold);
        let train = train.into_iter().filter(|&row| field.codes[row as usize].is_some()).collect();
        Fold { field, member, train, held, starts: vec![None; field.scheme.count()] }
    }

    /// Fits, and decides about the rows held out: rows x problems.
    /// `watch` is told of every fit; the fits themselves are told `control`, which only stops them.
    pub fn decide(&mut self, c: f64, watch: &Control, control: &Control) -> Result<Vec<f32>> {
        let (x, kernel) = (self.field.x.design(), &self.member.kernel);
        let count = self.field.scheme.count();
        let linear = matches!(kernel, KernelFunction::Linear);
        let size = if linear { x.cols() } else { self.train.len() };
        let mut coefficients = vec![0.0; size * count];
        let mut intercepts = vec![0.0; count];
        for (problem, pair) in self.field.scheme.problems().into_iter().enumerate() {
            control.check()?;
            let (positions, signs) = self.rows_of(pair);
            let start = self.starts[problem].take();
            let found = self.fit(&positions, &signs, c, start, control)?;
            self.field.report(1, watch);
            match (&found.weights, linear) {
                (Some(w), true) => (0..size).for_each(|column| coefficients[column * count + problem] = w[column]),
                _ => positions
                    .iter()
                    .zip(&found.expansion)
                    .for_each(|(&row, &beta)| coefficients[row * count + problem] = beta),
            }
            intercepts[problem] = found.intercept();
            self.starts[problem] = Some(found);
        }
        control.check()?;
        let held = Rows::copy(x, &self.held)?;
        let values = match linear {
            true => products(held.as_design(), &coefficients, count),
            false => self.expansions(&coefficients, held.as_design())?,
        };
        Ok(values.into_iter().enumerate().map(|(at, value)| (value + intercepts[at % count]) as f32).collect())
    }

    /// Which rows take part in a problem, as positions among those fitted, and on which side.
    fn rows_of(&self, (first, second): (u32, Option<u32>)) -> (Vec<usize>, Vec<f64>) {
        let side = |row: u32| match (self.field.codes[row as usize], second) {
            (Some(code), _) if code == first => Some(1.0),
            (Some(code), Some(second)) if code == second => Some(-1.0),
            (Some(_), None) => Some(-1.0),
            _ => None,
        };
        let sides = self.train.iter().enumerate().filter_map(|(at, &row)| Some((at, side(row)?)));
        sides.unzip()
    }

    fn fit(
        &self,
        positions: &[usize],
        signs: &[f64],
        c: f64,
        start: Option<Start>,
        control: &Control,
    ) -> Result<Start> {
        let kernel = &self.member.kernel;
        let some: Vec<u32> = positions.iter().map(|&at| self.train[at]).collect();
        let rows = Rows::copy(self.field.x.design(), &some)?;
        let x = rows.as_design();
        let caps = vec![c; signs.len()];
        let two =
            TwoClass { x, signs, caps: &caps, loss: self.field.loss, norm: Norm::Squared, kernel, intercept: true };
        let problem = Problem::Two(two);
        let options = Options {
            tolerance: TOLERANCE,
            max_steps: MOST_STEPS,
            seed: self.field.seed,
            start,
            care: Care::Rough,
            store: self.member.shared.clone().map(|whole| KernelStore::within(whole, some.into())),
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
    fn expansions(&self, coefficients: &[f64], held: &dyn Design) -> Result<Vec<f64>> {
        let count = self.field.scheme.count();
        let of = |at: usize| &coefficients[at * count..(at + 1) * count];
        let used: Vec<usize> = (0..self.train.len()).filter(|&at| of(at).iter().any(|&beta| beta != 0.0)).collect();
        let support: Vec<u32> = used.iter().map(|&at| self.train[at]).collect();
        let some: Vec<f64> = used.iter().flat_map(|&at| of(at).iter().copied()).collect();
        let rows = Rows::copy(self.field.x.design(), &support)?;
        Ok(tiles::expand(&self.member.kernel, rows.as_design(), &some, count, held))
    }
}

impl Field<'_> {
    /// Tells of fits that are done, or need not be.
    pub fn report(&self, fits: usize, control: &Control) {
        if fits == 0 {
            return;
        }
        let step = self.done.fetch_add(fits, Ordering::Relaxed) + fits;
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
