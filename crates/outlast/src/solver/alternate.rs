//! Local methods for the problems that ablation relaxes, by turns over the rows kept and the classifier.
//!
//! ```text
//! REH  P(f) = 1/2 |f|^2 + min_eta sum_i c_i (eta_i h_i + 1 - eta_i)        = 1/2 |f|^2 + sum_i c_i min(1, h_i)
//! ROD  P(f) = 1/2 |f|^2 + min_eta sum_i c_i eta_i h_i,   sum c_i eta_i >= rho sum c_i
//! ```
//!
//! over 0 <= eta <= 1, with h_i = [1 - y_i (f(x_i) + b)]_+. Given f the best eta is known: REH keeps the rows with h < 1, ROD the
//! rows of smallest h up to the share rho of the weight (the last one in part). Given eta, f minimises a hinge loss with the
//! weights c eta. For eta fixed this bounds P from above and touches it at the current f, so the majorise-minimise loop runs
//! it, and P never rises.

use super::ablation::Rule;
use super::majorize::{self, Limits, Majorizer, Step};
use super::{Options, Solution, Start, Status, choose, solve};
use crate::control::Control;
use crate::error::Result;
use crate::problem::{Candidate, Loss, Problem, TwoClass};

/// How far each row is kept, best for these hinge losses.
pub fn kept(rule: Rule, losses: &[f64], caps: &[f64]) -> Vec<f64> {
    match rule {
        Rule::Reh => losses.iter().map(|&loss| if loss < 1.0 { 1.0 } else { 0.0 }).collect(),
        Rule::Rod { inliers } => {
            let mut order: Vec<usize> = (0..losses.len()).collect();
            order.sort_by(|&a, &b| losses[a].total_cmp(&losses[b]));
            let mut left = inliers * caps.iter().sum::<f64>();
            let mut eta = vec![0.0; losses.len()];
            for row in order {
                // rows without weight are kept for nothing
                eta[row] = if caps[row] > 0.0 { (left / caps[row]).clamp(0.0, 1.0) } else { 1.0 };
                left -= eta[row] * caps[row];
            }
            eta
        }
    }
}

/// The loss part of P at these hinge losses.
pub fn total(rule: Rule, losses: &[f64], caps: &[f64]) -> f64 {
    let eta = kept(rule, losses, caps);
    let constant = if let Rule::Reh = rule { 1.0 } else { 0.0 };
    let rows = losses.iter().zip(caps).zip(eta);
    // 0 x infinity never is a term: a row that is not kept costs its constant only
    rows.map(|((loss, cap), eta)| cap * (if eta > 0.0 { eta * loss } else { 0.0 } + constant * (1.0 - eta))).sum()
}

/// A critical point of P, from a decision function on. The problem's own loss is not looked at: it is the hinge.
pub fn refine(problem: &TwoClass, rule: Rule, start: Start, options: &Options, control: &Control) -> Result<Solution> {
    let problem = TwoClass { loss: Loss::hinge(), ..*problem };
    let solver = choose("auto", &Problem::Two(problem))?;
    let mut turns = Turns::new(&problem, rule, solver, start, options);
    let limits = Limits {
        tolerance: options.tolerance,
        loose: options.tolerance,
        decrease: 1e-12,
        max_steps: options.max_steps,
    };
    // the start solves nothing yet
    let begun = Step { gap: f64::INFINITY, iterations: 0, status: Status::Inaccurate };
    let report = majorize::run(&mut turns, begun, &limits, "alternation", control)?;
    let losses = turns.losses();
    let dropped = kept(rule, &losses, problem.caps).iter().map(|&eta| eta == 0.0).collect();
    let point = turns.point;
    Ok(Solution {
        expansion: point.start.expansion,
        weights: point.start.weights,
        intercepts: point.start.intercepts,
        decision: point.decision,
        truncated: dropped,
        majorant: None,
        objective: report.trace[report.trace.len() - 1],
        gap: report.gap,
        trace: report.trace,
        iterations: report.iterations,
        status: report.status,
        solver,
    })
}

/// P of a decision function as it stands, without a step.
pub fn evaluate(problem: &TwoClass, rule: Rule, start: Start) -> Solution {
    let point = Point::of(problem, start);
    let losses = losses(problem, &point.decision);
    let objective = point.penalty + total(rule, &losses, problem.caps);
    Solution {
        expansion: point.start.expansion,
        weights: point.start.weights,
        intercepts: point.start.intercepts,
        decision: point.decision,
        truncated: kept(rule, &losses, problem.caps).iter().map(|&eta| eta == 0.0).collect(),
        majorant: None,
        objective,
        gap: f64::INFINITY,
        trace: vec![objective],
        iterations: 0,
        status: Status::Converged,
        solver: super::ablation::NAME,
    }
}

fn losses(problem: &TwoClass, decision: &[f64]) -> Vec<f64> {
    decision.iter().zip(problem.signs).map(|(f, y)| (1.0 - y * f).max(0.0)).collect()
}

/// A decision function and its values.
#[derive(Clone)]
struct Point {
    start: Start,
    decision: Vec<f64>,
    penalty: f64,
}

impl Point {
    fn of(problem: &TwoClass, start: Start) -> Point {
        let intercept = start.intercept();
        let candidate = Candidate { expansion: &start.expansion, weights: start.weights.as_deref(), intercept };
        let mut decision = problem.decision_without_intercept(&candidate);
        let penalty = problem.penalty(&candidate, &decision);
        decision.iter_mut().for_each(|f| *f += intercept);
        Point { start, decision, penalty }
    }
}

struct Turns<'a, 'b> {
    problem: &'a TwoClass<'b>,
    rule: Rule,
    solver: &'static str,
    options: &'a Options,
    point: Point,
    eta: Vec<f64>,
    saved: Option<(Point, Vec<f64>)>,
}

impl<'a, 'b> Turns<'a, 'b> {
    fn new(
        problem: &'a TwoClass<'b>,
        rule: Rule,
        solver: &'static str,
        start: Start,
        options: &'a Options,
    ) -> Turns<'a, 'b> {
        let point = Point::of(problem, start);
        // no row has been judged yet, so that the first look changes all
        Turns { problem, rule, solver, options, point, eta: vec![f64::NAN; problem.rows()], saved: None }
    }

    fn losses(&self) -> Vec<f64> {
        losses(self.problem, &self.point.decision)
    }
}

impl Majorizer for Turns<'_, '_> {
    fn objective(&mut self) -> f64 {
        self.point.penalty + total(self.rule, &self.losses(), self.problem.caps)
    }

    fn majorize(&mut self) -> usize {
        let eta = kept(self.rule, &self.losses(), self.problem.caps);
        let changed = eta.iter().zip(&self.eta).filter(|(new, old)| new != old).count();
        self.eta = eta;
        changed
    }

    fn minimize(&mut self, tolerance: f64, control: &Control) -> Result<Step> {
        let caps: Vec<f64> = self.problem.caps.iter().zip(&self.eta).map(|(cap, eta)| cap * eta).collect();
        let problem = TwoClass { caps: &caps, ..*self.problem };
        let options = Options { tolerance, start: Some(self.point.start.clone()), ..self.options.clone() };
        let solution = solve(self.solver, &Problem::Two(problem), &options, control)?;
        let start = Start { expansion: solution.expansion, weights: solution.weights, intercepts: solution.intercepts };
        self.point = Point::of(self.problem, start);
        Ok(Step { gap: solution.gap, iterations: solution.iterations, status: solution.status })
    }

    fn save(&mut self) {
        self.saved = Some((self.point.clone(), self.eta.clone()));
    }

    fn restore(&mut self) {
        if let Some((point, eta)) = self.saved.take() {
            (self.point, self.eta) = (point, eta);
        }
    }
}
