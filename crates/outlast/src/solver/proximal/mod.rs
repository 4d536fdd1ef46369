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
mod engine;
mod gram;
mod interior;
mod many;
mod model;
mod rows;
mod two;
mod weighted;

use super::majorize::Step;
use super::truncation::{self, Answer, Convex};
use super::{Options, Solution};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::problem::{KernelFunction, Majorant, ManyClass, Norm, Terms, TwoClass};
use columns::Columns;
use engine::Engine;
use many::Many;
use rows::Rows;
use two::Two;
pub(in crate::solver) use weighted::{Point, Weighted};

/// The solver's name.
pub const NAME: &str = "proximal-newton";

/// Solves a problem with two classes.
pub fn solve(problem: &TwoClass, options: &Options, control: &Control) -> Result<Solution> {
    let rates = rates(problem.norm, problem.kernel, problem.x.cols())?;
    let unit = unit_of(problem.caps);
    let caps: Vec<f64> = problem.caps.iter().map(|cap| cap / unit).collect();
    let rows = Two { base: problem.loss.base(), signs: problem.signs, caps: caps.clone() };
    let engine = Engine::new(rows, Columns::new(problem.x, problem.intercept), rates.to_vec(), unit);
    let mut solver = Solver { engine, caps, limit: options.max_iterations };
    solver.start(options);
    truncation::solve(problem, options, control, &mut solver, NAME)
}

/// Solves a problem with many classes, one term per row.
pub fn solve_many(problem: &ManyClass, options: &Options, control: &Control) -> Result<Solution> {
    let rates = rates(problem.norm, problem.kernel, problem.classes * problem.x.cols())?;
    if problem.terms != Terms::Own {
        return Err(Error::parameter("solver", NAME, "another one: this one takes each term as a row of its own"));
    }
    let unit = unit_of(problem.caps);
    let caps: Vec<f64> = problem.caps.iter().map(|cap| cap / unit).collect();
    let rows = Many { base: problem.loss.base(), codes: problem.codes, classes: problem.classes, caps: caps.clone() };
    let engine = Engine::new(rows, Columns::new(problem.x, problem.intercept), rates.to_vec(), unit);
    let mut solver = Solver { engine, caps, limit: options.max_iterations };
    solver.start(options);
    truncation::solve(problem, options, control, &mut solver, NAME)
}

/// The rates of a problem this solver takes.
fn rates<'a>(norm: Norm<'a>, kernel: &KernelFunction, coefficients: usize) -> Result<&'a [f64]> {
    if !matches!(kernel, KernelFunction::Linear) {
        return Err(Error::parameter("kernel", kernel.name(), "linear, which an l1 penalty needs"));
    }
    match norm {
        Norm::Absolute(rates) if rates.len() == coefficients => Ok(rates),
        Norm::Absolute(rates) => {
            Err(Error::shape("rates", format!("{} rates", rates.len()), format!("{coefficients}, one per coefficient")))
        }
        Norm::Squared => Err(Error::parameter("solver", NAME, "another one: this one needs an l1 penalty")),
    }
}

/// The power of two next to the largest cap.
fn unit_of(caps: &[f64]) -> f64 {
    let largest = caps.iter().fold(0.0f64, |largest, &cap| largest.max(cap));
    if largest > 0.0 { 2f64.powi(largest.log2().floor().clamp(-1000.0, 1000.0) as i32) } else { 1.0 }
}

/// An engine, and what the caps are when every row counts.
struct Solver<'a, R: Rows> {
    engine: Engine<'a, R>,
    caps: Vec<f64>,
    limit: usize,
}

/// A point and the dual point that certifies it.
#[derive(Clone)]
struct Saved {
    weights: Vec<(usize, Vec<f64>)>,
    v: Vec<f64>,
}

impl<R: Rows> Solver<'_, R> {
    fn start(&mut self, options: &Options) {
        let Some(start) = &options.start else { return };
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
        Saved { weights: self.engine.point(), v: self.engine.best.v.clone() }
    }

    fn go_to(&mut self, point: &Saved) {
        self.engine.go_to(&point.weights);
        self.engine.best.v.clone_from(&point.v);
    }

    /// Rows x functions.
    fn decision(&self) -> Vec<f64> {
        by_row(&self.engine.decision, self.engine.functions())
    }

    fn penalty(&self) -> f64 {
        self.engine.penalty() * self.engine.unit
    }

    fn answer(&self) -> Answer {
        let engine = &self.engine;
        let (m, d) = (engine.functions(), engine.columns.cols());
        let mut weights = vec![0.0; m * d];
        let mut intercepts = vec![0.0; m];
        for (column, entries) in engine.point() {
            for (function, entry) in entries.into_iter().enumerate() {
                if column == d {
                    intercepts[function] = entry;
                } else {
                    weights[function * d + column] = entry * engine.columns.shrink(column);
                }
            }
        }
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

    fn point(&self) -> Saved {
        self.point()
    }

    fn go_to(&mut self, point: &Saved) {
        self.go_to(point);
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

    fn point(&self) -> Saved {
        self.point()
    }

    fn go_to(&mut self, point: &Saved) {
        self.go_to(point);
    }

    fn answer(&self) -> Answer {
        self.answer()
    }
}
