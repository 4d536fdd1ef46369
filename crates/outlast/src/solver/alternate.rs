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
//!
//! *Ties.* After a step of ROD rows that are kept often stand at the margin, h = 0 all of them, more than the share rho. Any choice among
//! them is as good now, but not for the next step, and rounding must not make it: of rows whose losses are the same but for rounding those
//! are kept first that the relaxation keeps more of, and of those that are equal in this as well each is kept in the same part.

use super::ablation::Rule;
use super::majorize::{self, Limits, Majorizer, Step};
use super::{Options, Solution, Start, Status, choose, solve};
use crate::control::Control;
use crate::error::Result;
use crate::problem::{Candidate, Loss, Problem, TwoClass};

/// What two hinge losses, or two shares of rows kept, differ by at most when they are the same but for rounding.
const TIE: f64 = 1e-7;
/// What sums of weights are off by, relatively.
const ROUNDING: f64 = 1e-12;

/// How far each row is kept, best for these hinge losses.
pub fn kept(rule: Rule, losses: &[f64], caps: &[f64]) -> Vec<f64> {
    match rule {
        Rule::Reh => losses.iter().map(|&loss| if loss < 1.0 { 1.0 } else { 0.0 }).collect(),
        Rule::Rod { inliers } => {
            let mut order: Vec<usize> = (0..losses.len()).collect();
            order.sort_by(|&a, &b| losses[a].total_cmp(&losses[b]));
            share(inliers, caps, order.iter().map(std::slice::from_ref))
        }
    }
}

/// The same, where ties are decided by what another eta keeps.
fn kept_by(rule: Rule, losses: &[f64], caps: &[f64], other: &[f64]) -> Vec<f64> {
    let Rule::Rod { inliers } = rule else { return kept(rule, losses, caps) };
    let mut order: Vec<usize> = (0..losses.len()).collect();
    order.sort_by(|&a, &b| losses[a].total_cmp(&losses[b]));
    tied(&order, losses).into_iter().for_each(|tie| {
        order[tie].sort_by(|&a, &b| other[b].total_cmp(&other[a]));
    });
    let equal = tied(&order, losses).into_iter().flat_map(|tie| {
        let first = tie.start;
        tied(&order[tie], other).into_iter().map(move |equal| first + equal.start..first + equal.end)
    });
    share(inliers, caps, equal.map(|equal| &order[equal]))
}

/// Ranges of rows that follow each other, whose values do not differ from that of the first.
fn tied(order: &[usize], values: &[f64]) -> Vec<std::ops::Range<usize>> {
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, &row) in order.iter().enumerate() {
        match ranges.last_mut() {
            Some(range) if (values[row] - values[order[range.start]]).abs() <= TIE => range.end = at + 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}

/// Keeps groups of rows, one after the other, up to a share of all weight; all rows of a group in the same part.
fn share<'a>(inliers: f64, caps: &[f64], groups: impl Iterator<Item = &'a [usize]>) -> Vec<f64> {
    let total: f64 = caps.iter().sum();
    let mut left = inliers * total;
    let mut eta = vec![0.0; caps.len()];
    for group in groups {
        let weight: f64 = group.iter().map(|&row| caps[row]).sum();
        // what the sums leave of nothing is no part of a row
        left = if left <= ROUNDING * total { 0.0 } else { left };
        // rows without weight are kept for nothing
        let part = if weight > 0.0 { (left / weight).clamp(0.0, 1.0) } else { 1.0 };
        for &row in group {
            eta[row] = if caps[row] > 0.0 { part } else { 1.0 };
        }
        left -= part * weight;
    }
    eta
}

/// The loss part of P at these hinge losses.
pub fn total(rule: Rule, losses: &[f64], caps: &[f64]) -> f64 {
    let eta = kept(rule, losses, caps);
    let constant = if let Rule::Reh = rule { 1.0 } else { 0.0 };
    let rows = losses.iter().zip(caps).zip(eta);
    // 0 x infinity never is a term: a row that is not kept costs its constant only
    rows.map(|((loss, cap), eta)| cap * (if eta > 0.0 { eta * loss } else { 0.0 } + constant * (1.0 - eta))).sum()
}

/// A critical point of P, from a decision function on; `relaxed` is the eta of the relaxation. The problem's own loss is not looked at: it is
/// the hinge.
pub fn refine(
    problem: &TwoClass,
    rule: Rule,
    start: Start,
    relaxed: &[f64],
    options: &Options,
    control: &Control,
) -> Result<Solution> {
    let problem = TwoClass { loss: Loss::hinge(), ..*problem };
    let solver = choose("auto", &Problem::Two(problem))?;
    let point = Point::of(&problem, start);
    // no row has been judged yet, so that the first look changes all
    let eta = vec![f64::NAN; problem.rows()];
    let mut turns = Turns { problem: &problem, rule, relaxed, solver, options, point, eta, saved: None };
    let limits = Limits {
        tolerance: options.tolerance,
        loose: options.tolerance,
        decrease: 1e-12,
        max_steps: options.max_steps,
    };
    // the start solves nothing yet
    let begun = Step { gap: f64::INFINITY, iterations: 0, status: Status::Inaccurate };
    let report = majorize::run(&mut turns, begun, &limits, "alternation", control)?;
    let dropped = turns.kept().iter().map(|&eta| eta == 0.0).collect();
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
    /// The eta of the relaxation.
    relaxed: &'a [f64],
    solver: &'static str,
    options: &'a Options,
    point: Point,
    eta: Vec<f64>,
    saved: Option<(Point, Vec<f64>)>,
}

impl Turns<'_, '_> {
    fn losses(&self) -> Vec<f64> {
        losses(self.problem, &self.point.decision)
    }

    fn kept(&self) -> Vec<f64> {
        kept_by(self.rule, &self.losses(), self.problem.caps, self.relaxed)
    }
}

impl Majorizer for Turns<'_, '_> {
    fn objective(&mut self) -> f64 {
        self.point.penalty + total(self.rule, &self.losses(), self.problem.caps)
    }

    fn majorize(&mut self) -> usize {
        let eta = self.kept();
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

#[cfg(test)]
mod tests {
    use super::*;

    const ROD: Rule = Rule::Rod { inliers: 0.75 };

    #[test]
    fn rounding_does_not_decide_which_of_equal_rows_are_kept() {
        let (caps, relaxed) = ([1.0; 4], [0.9, 0.2, 0.8, 0.7]);
        for noise in [[0.0, 3e-16, 2e-12, 1e-9], [1e-9, 0.0, 1e-15, 2e-12]] {
            assert_eq!(kept_by(ROD, &noise, &caps, &relaxed), [1.0, 0.0, 1.0, 1.0]);
        }
        // a row that is worse is worse
        assert_eq!(kept_by(ROD, &[1.0, 0.0, 0.0, 0.0], &caps, &relaxed), [0.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn rows_that_are_equal_in_all_are_kept_in_the_same_part() {
        let kept = kept_by(ROD, &[0.0, 1e-12, 0.0, 0.0], &[1.0, 2.0, 1.0, 0.0], &[0.5, 0.5, 0.5, 1.0]);
        assert!(kept[..3].iter().all(|eta| (eta - 0.75).abs() < 1e-15) && kept[3] == 1.0, "{kept:?}");
    }

    #[test]
    fn a_share_of_whole_rows_leaves_the_others_out() {
        let (losses, caps) = ((0..40).map(f64::from).collect::<Vec<_>>(), [0.1; 40]);
        let kept = kept(Rule::Rod { inliers: 0.9 }, &losses, &caps);
        assert!(kept[..35].iter().all(|eta| *eta == 1.0) && kept[36..].iter().all(|eta| *eta == 0.0), "{kept:?}");
    }

    #[test]
    fn without_ties_both_are_the_same() {
        let (losses, caps) = ([0.3, 0.0, 2.0, 0.1, 1.0], [1.0, 2.0, 0.5, 1.5, 1.0]);
        for inliers in [0.3, 0.75, 1.0] {
            let rule = Rule::Rod { inliers };
            assert_eq!(kept_by(rule, &losses, &caps, &[0.5; 5]), kept(rule, &losses, &caps));
        }
        assert_eq!(kept_by(Rule::Reh, &losses, &caps, &[0.5; 5]), kept(Rule::Reh, &losses, &caps));
    }
}
