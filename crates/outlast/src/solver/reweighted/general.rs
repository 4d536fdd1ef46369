//! Any convex margin loss in any space, by the crate's other solvers: the hinge, the logistic loss, and squared hinges too large
//! for a matrix of columns or rows to be kept. Row weights are caps; each solve starts from the last answer.

use super::super::majorize::Step;
use super::super::{Options, Solution, Start, choose};
use super::machine::{Certified, Machine, Point};
use crate::control::Control;
use crate::data::Design;
use crate::error::Result;
use crate::linalg::dot;
use crate::problem::{KernelFunction, Loss, Norm, Problem, TwoClass};
use rayon::prelude::*;

pub(super) struct General<'a> {
    x: &'a dyn Design,
    kernel: &'a KernelFunction,
    loss: Loss,
    signs: Vec<f64>,
    intercept: bool,
    options: Options,
    point: Point,
    half_norm: f64,
}

impl<'a> General<'a> {
    pub(super) fn new(
        (x, kernel): (&'a dyn Design, &'a KernelFunction),
        loss: Loss,
        signs: Vec<f64>,
        intercept: bool,
        options: Options,
    ) -> Self {
        let n = signs.len();
        let linear = matches!(kernel, KernelFunction::Linear);
        let point = Point {
            unknowns: vec![0.0; n],
            weights: linear.then(|| vec![0.0; x.cols()]),
            intercept: 0.0,
            decision: vec![0.0; n],
            gap: f64::INFINITY,
        };
        General { x, kernel, loss, signs, intercept, options, point, half_norm: 0.0 }
    }

    fn problem<'b>(&'b self, caps: &'b [f64]) -> TwoClass<'b> {
        TwoClass {
            x: self.x,
            signs: &self.signs,
            caps,
            loss: self.loss,
            norm: Norm::Squared,
            kernel: self.kernel,
            intercept: self.intercept,
        }
    }

    fn solve(&self, caps: &[f64], tolerance: f64, control: &Control) -> Result<Solution> {
        let mut expansion = self.point.unknowns.clone();
        // what a weight of 0 allows
        expansion.iter_mut().zip(caps).filter(|(_, cap)| **cap == 0.0).for_each(|(beta, _)| *beta = 0.0);
        let start = Start { expansion, weights: self.point.weights.clone(), intercepts: vec![self.point.intercept] };
        let options = Options { tolerance, start: Some(start), ..self.options.clone() };
        let problem = Problem::Two(self.problem(caps));
        choose::solve(choose::choose("auto", &problem)?, &problem, &options, control)
    }

    fn measure(&mut self) {
        self.half_norm = match &self.point.weights {
            Some(weights) => 0.5 * dot(weights, weights),
            None => {
                let total: f64 = self.point.unknowns.iter().sum();
                0.5 * (dot(&self.point.unknowns, &self.point.decision) - self.point.intercept * total)
            }
        };
    }
}

impl Machine for General<'_> {
    fn minimize(&mut self, weights: &[f64], tolerance: f64, control: &Control) -> Result<Step> {
        let weights: Vec<f64> = weights.iter().map(|weight| weight.min(1e200)).collect();
        let solution = self.solve(&weights, tolerance, control)?;
        let intercept = solution.intercept();
        let weights = match (solution.weights, self.kernel) {
            (None, KernelFunction::Linear) => {
                let mut weights = vec![0.0; self.x.cols()];
                let used = solution.expansion.iter().enumerate().filter(|(_, beta)| **beta != 0.0);
                used.for_each(|(row, &beta)| self.x.add_scaled(row, beta, &mut weights));
                Some(weights)
            }
            (weights, _) => weights,
        };
        let gap = solution.gap;
        self.point = Point { unknowns: solution.expansion, weights, intercept, decision: solution.decision, gap };
        self.measure();
        Ok(Step { gap: solution.gap, iterations: solution.iterations, status: solution.status })
    }

    fn regress(&mut self, _: &[f64], _: &[f64], _: &Control) -> Result<bool> {
        Ok(false)
    }

    fn decision(&self) -> &[f64] {
        &self.point.decision
    }

    fn intercept(&self) -> f64 {
        self.point.intercept
    }

    fn half_norm(&self) -> f64 {
        self.half_norm
    }

    /// Beyond the last answer there are expansions that no dual allows.
    fn bend(&self, _: &Point, _: &Point) -> Option<(f64, f64)> {
        None
    }

    fn point(&self) -> Point {
        self.point.clone()
    }

    fn go_to(&mut self, point: &Point) {
        self.point.clone_from(point);
        self.measure();
    }

    fn start_at(&mut self, weights: &[f64], intercept: f64) {
        let decision = (0..self.signs.len()).into_par_iter().map(|row| self.x.dot(row, weights) + intercept).collect();
        let unknowns = vec![0.0; self.signs.len()];
        self.point = Point { unknowns, weights: Some(weights.to_vec()), intercept, decision, gap: f64::INFINITY };
        self.measure();
    }

    /// By the gap that the solver certified when it left the point.
    fn certify(&mut self, weights: &[f64]) -> Certified {
        let caps = weights.iter().map(|weight| weight.min(1e200));
        let rows = caps.zip(&self.signs).zip(&self.point.decision);
        let loss: f64 =
            rows.filter(|((cap, _), _)| *cap > 0.0).map(|((cap, sign), f)| cap * self.loss.value(sign * f)).sum();
        let primal = self.half_norm + loss;
        let dual = if self.point.gap.is_finite() { primal * (1.0 - self.point.gap) } else { f64::NEG_INFINITY };
        Certified { primal, dual, expansion: self.point.unknowns.clone() }
    }

    fn coefficients(&self) -> Option<Vec<f64>> {
        self.point.weights.clone()
    }
}
