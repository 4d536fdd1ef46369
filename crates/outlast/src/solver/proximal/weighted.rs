//! The weighted l1 problems of an L_q problem, one after another on the same rows with other rates:
//!
//! ```text
//! min  sum rate_cj |w_cj| + sum_ij c_ij [1 - s_ij f_j(x_i)]_+
//! ```
//!
//! q = 1 is one of them; reweighting for q < 1 is a sequence. Point and multipliers of one are the start of the next.

use super::super::majorize::Step;
use super::super::truncation::Answer;
use super::apart::Apart;
use super::columns::Columns;
use super::engine::Engine;
use super::{Saved, Solver, unit_of};
use crate::control::Control;
use crate::error::Result;
use crate::problem::LqProblem;

/// A point remembered, with its dual point and multipliers.
#[derive(Clone)]
pub(in crate::solver) struct Point {
    saved: Saved,
    multipliers: Vec<f64>,
}

/// How near its cap, relatively, a multiplier counts as being there.
const AT_CAP: f64 = 1e-3;

pub(in crate::solver) struct Weighted<'a> {
    solver: Solver<'a, Apart>,
}

impl<'a> Weighted<'a> {
    /// All rates 1.
    pub(in crate::solver) fn new(problem: &LqProblem<'a>, limit: usize) -> Self {
        let (n, m) = (problem.rows(), problem.functions);
        let each = |of: &dyn Fn(usize, usize) -> f64| -> Vec<f64> { (0..n * m).map(|at| of(at % n, at / n)).collect() };
        let caps = each(&|row, function| problem.cap(row, function));
        let unit = unit_of(&caps);
        let caps: Vec<f64> = caps.into_iter().map(|cap| cap / unit).collect();
        let rows = Apart { functions: m, signs: each(&|row, _| problem.sign(row)), caps };
        let rates = vec![1.0; m * problem.x.cols()];
        let engine = Engine::new(rows, Columns::new(problem.x, problem.intercept), rates, unit);
        Weighted { solver: Solver { engine, caps: vec![0.0; n], limit, power: None } }
    }

    /// Rates are functions x columns.
    pub(in crate::solver) fn set_rates(&mut self, rates: &[f64]) {
        self.solver.engine.set_rates(rates);
    }

    /// Whether columns are left out until they are needed.
    pub(in crate::solver) fn screen(&mut self, screening: bool) {
        self.solver.engine.screen(screening);
    }

    /// The problem with all caps multiplied: another C. Multipliers at their caps follow these, the others stay: those are what keeps
    /// rows at the margin, and change little.
    pub(in crate::solver) fn scale_caps(&mut self, factor: f64) {
        let engine = &mut self.solver.engine;
        // in units of the caps nothing changes but the unit
        engine.unit *= factor;
        let inside =
            engine.multipliers.iter_mut().zip(&engine.rows.caps).filter(|(v, cap)| v.abs() < (1.0 - AT_CAP) * **cap);
        inside.for_each(|(v, _)| *v /= factor);
    }

    /// Starts at coefficients (functions x columns) and intercepts.
    pub(in crate::solver) fn start_at(&mut self, weights: &[f64], intercepts: &[f64]) {
        self.solver.engine.start_at(weights, intercepts);
    }

    /// Starts the multipliers at V, rows x functions.
    pub(in crate::solver) fn start_multipliers(&mut self, expansion: &[f64]) {
        let engine = &mut self.solver.engine;
        let m = engine.functions();
        let n = engine.columns.rows();
        if expansion.len() == n * m {
            for (at, v) in expansion.iter().enumerate().filter(|(_, v)| v.is_finite()) {
                engine.multipliers[at % m * n + at / m] = v / engine.unit;
            }
        }
    }

    /// To a relative gap, from the current point.
    pub(in crate::solver) fn minimize(&mut self, tolerance: f64, control: &Control) -> Result<Step> {
        self.solver.engine.minimize(tolerance, self.solver.limit, control)
    }

    /// Multiplications so far, roughly.
    pub(in crate::solver) fn spent(&self) -> f64 {
        self.solver.engine.spent
    }

    pub(in crate::solver) fn answer(&self) -> Answer {
        self.solver.answer()
    }

    /// f + b, rows x functions.
    pub(in crate::solver) fn decision(&self) -> Vec<f64> {
        self.solver.decision()
    }

    pub(in crate::solver) fn point(&self) -> Point {
        Point { saved: self.solver.point(), multipliers: self.solver.engine.multipliers.clone() }
    }

    /// Goes to the coefficients of a point and keeps the bound found since.
    pub(in crate::solver) fn go_back(&mut self, point: &Point) {
        self.solver.engine.go_to(&point.saved.weights);
    }

    /// The best lower bound of the last minimisation.
    pub(in crate::solver) fn dual(&self) -> f64 {
        self.solver.engine.best.dual * self.solver.engine.unit
    }

    pub(in crate::solver) fn go_to(&mut self, point: &Point) {
        self.solver.go_to(&point.saved);
        self.solver.engine.multipliers.clone_from(&point.multipliers);
    }
}
