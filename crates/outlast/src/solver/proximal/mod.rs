//! The l1 penalty: augmented Lagrangian and proximal Newton.
//!
//! ```text
//! min  sum_j rate_j |w_j| + sum_i c_i l(y_i (w'x_i + b))                                            two classes
//! min  sum rate_cj |w_cj| + sum_i c_i l(f_y - max_{l != y} f_l),  f_j = w_j'x_i + b_j               k classes
//!      with sum_j w_cj = 0 for each column c, and sum_j b_j = 0
//! ```
//!
//! b is not penalised; a rate of 0 leaves its coefficient unpenalised, an infinite one fixes it at 0. Truncated rows are dropped.
//! Coefficients are exactly 0 where the optimum's are.
//!
//! | file | what it holds |
//! |---|---|
//! | `starts`, `machine` | where descents begin and which end is taken, for two classes and for k |
//! | `constant` | the best constant function |
//! | `engine` | multipliers, Newton steps, working set |
//! | `interior` | another way next to the solution, where it is dense |
//! | `model` | the quadratic model with the penalty |
//! | `gram` | its second derivatives, kept between steps |
//! | `certificate` | feasible dual points and the gap |
//! | `rows`, `two`, `many`, `apart` | the losses as the engine sees them |
//! | `weighted` | the l1 problems of an L_q problem, whose rates change |
//! | `columns` | the design by columns, in units near 1 |
//!
//! It stops on the relative duality gap. The dual point returned satisfies every constraint to rounding, so that the gap
//! is a certificate.

mod apart;
mod certificate;
mod columns;
mod constant;
mod engine;
mod gram;
mod interior;
mod machine;
mod many;
mod model;
mod rows;
mod starts;
mod two;
mod weighted;

use super::majorize::Step;
use super::truncation::{Answer, Convex};
use super::{Options, Solution, Start};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::problem::lq::{size, touching};
use crate::problem::{Majorant, ManyClass, Terms, TwoClass};
pub(in crate::solver) use columns::{by_column, pieces, units};
use engine::Engine;
use many::Many;
use rows::Rows;
use two::Two;
pub(in crate::solver) use weighted::{Point, Weighted};

/// Relative change of a rate that counts as one.
const SAME: f64 = 1e-12;

/// The solver's name.
pub const NAME: &str = "proximal-newton";

/// Solves a problem with two classes.
pub fn solve(problem: &TwoClass, options: &Options, control: &Control) -> Result<Solution> {
    starts::best(problem, options, control)
}

/// Solves a problem with many classes, one term per row.
pub fn solve_many(problem: &ManyClass, options: &Options, control: &Control) -> Result<Solution> {
    if problem.terms != Terms::Own {
        return Err(Error::parameter("solver", NAME, "another one: this one takes each term as a row of its own"));
    }
    starts::best(problem, options, control)
}

/// How many rates are others; one that is infinite now and was not is.
pub(in crate::solver) fn changed_rates(rates: &[f64], before: &[f64]) -> usize {
    let same = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= SAME * a.abs().min(b.abs());
    rates.iter().zip(before).filter(|pair| !same(*pair)).count()
}

/// The power of two next to the largest cap.
pub(in crate::solver) fn unit_of(caps: &[f64]) -> f64 {
    let largest = caps.iter().fold(0.0f64, |largest, &cap| largest.max(cap));
    if largest > 0.0 { 2f64.powi(largest.log2().floor().clamp(-1000.0, 1000.0) as i32) } else { 1.0 }
}

/// An engine, and what the caps are when every row counts.
struct Solver<'a, R: Rows> {
    engine: Engine<'a, R>,
    caps: Vec<f64>,
    limit: usize,
    /// q of sum |w|^q, whose rates follow the point.
    power: Option<f64>,
}

/// A point and the dual point that certifies it.
#[derive(Clone)]
struct Saved {
    weights: Vec<(usize, Vec<f64>)>,
    v: Vec<f64>,
    /// The rates, where they follow the point.
    rates: Option<Vec<f64>>,
}

impl<R: Rows> Solver<'_, R> {
    /// Starts at a point of another problem on the same rows, as far as it fits.
    fn start(&mut self, start: &Start) {
        if let Some(weights) = &start.weights {
            self.engine.start_at(weights, &start.intercepts);
        }
        let (n, m) = (self.caps.len(), self.engine.functions());
        if start.expansion.len() == n * m {
            for (at, v) in start.expansion.iter().enumerate().filter(|(_, v)| v.is_finite()) {
                self.engine.multipliers[at % m * n + at / m] = v / self.engine.unit;
            }
        }
    }

    fn point(&self) -> Saved {
        let rates = self.power.map(|_| self.engine.rates.clone());
        Saved { weights: self.engine.point(), v: self.engine.best.v.clone(), rates }
    }

    /// Goes to the coefficients of a point and keeps the dual point found since.
    fn go_back(&mut self, point: &Saved) {
        self.engine.go_to(&point.weights);
    }

    fn go_to(&mut self, point: &Saved) {
        if let Some(rates) = &point.rates {
            self.engine.set_rates(rates);
        }
        self.engine.go_to(&point.weights);
        self.engine.best.v.clone_from(&point.v);
    }

    /// Rows x functions.
    fn decision(&self) -> Vec<f64> {
        by_row(&self.engine.decision, self.engine.functions())
    }

    fn penalty(&self) -> f64 {
        match self.power {
            Some(q) => size(&self.weights(), q),
            None => self.engine.penalty() * self.engine.unit,
        }
    }

    /// Moves the rates to q |w|^(q-1); returns how many changed.
    fn reweigh(&mut self) -> usize {
        let Some(q) = self.power else { return 0 };
        let rates = touching(&self.weights(), q);
        let changed = changed_rates(&rates, &self.engine.rates);
        if changed > 0 {
            self.engine.set_rates(&rates);
        }
        changed
    }

    /// Functions x columns.
    fn weights(&self) -> Vec<f64> {
        let engine = &self.engine;
        let (m, d) = (engine.functions(), engine.columns.cols());
        let mut weights = vec![0.0; m * d];
        for (column, entries) in engine.point().into_iter().filter(|(column, _)| *column < d) {
            for (function, entry) in entries.into_iter().enumerate() {
                weights[function * d + column] = entry * engine.columns.shrink(column);
            }
        }
        weights
    }

    fn answer(&self) -> Answer {
        let engine = &self.engine;
        let (m, d) = (engine.functions(), engine.columns.cols());
        let weights = self.weights();
        let intercept = engine.point().into_iter().find(|(column, _)| *column == d);
        let intercepts = intercept.map_or(vec![0.0; m], |(_, entries)| entries);
        let size = self.caps.len() * m;
        let v = if engine.best.v.len() == size { engine.best.v.clone() } else { vec![0.0; size] };
        let expansion = by_row(&v, m).into_iter().map(|v| v * engine.unit).collect();
        Answer { expansion, weights: Some(weights), intercepts }
    }
}

/// Rows x functions from functions x rows.
fn by_row(values: &[f64], functions: usize) -> Vec<f64> {
    let n = values.len() / functions.max(1);
    (0..values.len()).map(|at| values[at % functions * n + at / functions]).collect()
}

impl Convex<TwoClass<'_>> for Solver<'_, Two<'_>> {
    type Point = Saved;

    fn minimize(&mut self, truncated: &Vec<bool>, tolerance: f64, control: &Control) -> Result<Step> {
        for (row, cap) in self.engine.rows.caps.iter_mut().enumerate() {
            *cap = if truncated[row] { 0.0 } else { self.caps[row] };
        }
        self.engine.minimize(tolerance, self.limit, control)
    }

    fn decision(&self) -> Vec<f64> {
        self.decision()
    }

    fn penalty(&self) -> f64 {
        self.penalty()
    }

    fn is_convex(&self) -> bool {
        self.power.is_none()
    }

    fn reweigh(&mut self) -> usize {
        self.reweigh()
    }

    fn point(&self) -> Saved {
        self.point()
    }

    fn go_to(&mut self, point: &Saved) {
        self.go_to(point);
    }

    fn go_back(&mut self, point: &Saved) {
        self.go_back(point);
    }

    fn answer(&self) -> Answer {
        self.answer()
    }
}

impl Convex<ManyClass<'_>> for Solver<'_, Many<'_>> {
    type Point = Saved;

    fn minimize(&mut self, bound: &Majorant, tolerance: f64, control: &Control) -> Result<Step> {
        for (row, cap) in self.engine.rows.caps.iter_mut().enumerate() {
            *cap = if bound.kept[row] { self.caps[row] } else { 0.0 };
        }
        self.engine.minimize(tolerance, self.limit, control)
    }

    fn decision(&self) -> Vec<f64> {
        self.decision()
    }

    fn penalty(&self) -> f64 {
        self.penalty()
    }

    fn is_convex(&self) -> bool {
        self.power.is_none()
    }

    fn reweigh(&mut self) -> usize {
        self.reweigh()
    }

    fn point(&self) -> Saved {
        self.point()
    }

    fn go_to(&mut self, point: &Saved) {
        self.go_to(point);
    }

    fn go_back(&mut self, point: &Saved) {
        self.go_back(point);
    }

    fn answer(&self) -> Answer {
        self.answer()
    }
}
