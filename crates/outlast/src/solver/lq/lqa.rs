//! Local quadratic approximation, the paper's algorithm (its section 4 and appendix).
//!
//! With z = 1 - s f and z0, w0 the current values,
//!
//! ```text
//! [z]_+ <= z^2 / (4 |z0|) + z / 2 + |z0| / 4,          |w|^q <= |w0|^q + (q / 2) |w0|^(q-2) (w^2 - w0^2)       (q <= 2)
//! ```
//!
//! with equality at z0 and w0: a quadratic bound, minimised by one linear system ([`Normal`] with W = c / (2 |z0|), k = s (c / 2 + W),
//! bends |w0|^(2-q) / q) of d or n unknowns, whichever is fewer. The objective never rises. |z0| is kept above 1e-10, and for
//! that reason the last digits stall; coefficients come near 0 without reaching it. It starts from discriminant analysis.

use super::super::majorize::{self, Limits, Majorizer, Report, Step};
use super::super::{Options, Solution, Status};
use super::frame::pick;
use super::normal::{Normal, push, unknowns};
use super::reweight::{columns_of, steepest};
use super::{LQA, discriminant, rows_by_functions};
use crate::control::Control;
use crate::data::Design;
use crate::error::Result;
use crate::problem::LqProblem;
use crate::problem::lq::power;

/// Least |z0|.
const FLOOR: f64 = 1e-10;

/// Steps until columns are left out for the first time; as many more where none could be.
const LEG: usize = 2;
/// A column counts no longer when this is its part of X B X', next to the largest, and its step can't make it grow by far.
const NEGLIGIBLE: f64 = 1e-15;
const SHRINKING: f64 = 0.1;
/// The part of the columns that is worth a copy of the others.
const WORTH: f64 = 0.2;
/// How many steps on all columns may be spent: where q is close to 1 columns vanish slowly.
const MOST_WORK: f64 = 100.0;
/// Multiplications that may be spent whatever a step takes.
const LEAST_WORK: f64 = 2e9;

/// The current point and its bound.
struct Approximation<'a> {
    problem: &'a LqProblem<'a>,
    weights: Vec<f64>,
    intercepts: Vec<f64>,
    /// f, function-major.
    decision: Vec<f64>,
    /// V of the last bound, function-major.
    v: Vec<f64>,
    bends: Vec<f64>,
    curvature: Vec<f64>,
    constant: Vec<f64>,
    saved: Option<(Vec<f64>, Vec<f64>, Vec<f64>)>,
}

impl<'a> Approximation<'a> {
    fn new(problem: &'a LqProblem<'a>, weights: Vec<f64>, intercepts: Vec<f64>) -> Self {
        let size = problem.rows() * problem.functions;
        let decision = push(problem.x, &weights, &intercepts, problem.functions);
        let zeros = || vec![0.0; size];
        Approximation {
            problem,
            bends: vec![0.0; weights.len()],
            weights,
            intercepts,
            decision,
            v: zeros(),
            curvature: zeros(),
            constant: zeros(),
            saved: None,
        }
    }

    fn run(&mut self, decrease: f64, max_steps: usize, control: &Control) -> Result<Report> {
        let start = Step { gap: 0.0, iterations: 0, status: Status::Converged };
        let limits = Limits { tolerance: 1.0, loose: 1.0, decrease, max_steps };
        majorize::run(self, start, &limits, LQA, control)
    }
}

impl Majorizer for Approximation<'_> {
    fn objective(&mut self) -> f64 {
        let decision = rows_by_functions(&self.decision, self.problem.functions);
        self.problem.penalty(&self.weights) + self.problem.loss(&decision)
    }

    fn majorize(&mut self) -> usize {
        let (n, q) = (self.problem.rows(), self.problem.q);
        for (bend, w) in self.bends.iter_mut().zip(&self.weights) {
            *bend = power(w.abs(), 2.0 - q) / q;
        }
        if q == 2.0 {
            self.bends.fill(0.5);
        }
        for at in 0..self.decision.len() {
            let (cap, sign) = (self.problem.cap(at % n, at / n), self.problem.sign(at % n));
            let z = (1.0 - sign * self.decision[at]).abs().max(FLOOR);
            self.curvature[at] = cap / (2.0 * z);
            self.constant[at] = sign * (0.5 * cap + self.curvature[at]);
        }
        // a bound that moves by however little is another one
        1
    }

    fn minimize(&mut self, _: f64, _: &Control) -> Result<Step> {
        let problem = self.problem;
        let largest = problem.caps.iter().fold(0.0f64, |largest, cap| largest.max(*cap));
        let (x, functions, intercept) = (problem.x, problem.functions, problem.intercept);
        let normal = Normal::new(x, functions, intercept, &self.bends, &self.curvature, largest);
        let Some(normal) = normal else {
            return Ok(Step { gap: 0.0, iterations: 1, status: Status::Inaccurate });
        };
        let found = normal.solve(&self.constant, &vec![0.0; problem.functions.max(2) - 1]);
        self.decision = push(problem.x, &found.weights, &found.intercepts, problem.functions);
        self.weights = found.weights;
        self.intercepts = found.intercepts;
        self.v = found.v;
        // the quadratic is solved in closed form
        Ok(Step { gap: 0.0, iterations: 1, status: Status::Converged })
    }

    fn save(&mut self) {
        self.saved = Some((self.weights.clone(), self.intercepts.clone(), self.decision.clone()));
    }

    fn restore(&mut self) {
        if let Some((weights, intercepts, decision)) = &self.saved {
            self.weights.clone_from(weights);
            self.intercepts.clone_from(intercepts);
            self.decision.clone_from(decision);
        }
    }
}

/// From discriminant analysis (or zero coefficients, where that fails) until a step lowers the objective by less than `decrease` of it.
fn run<'a>(
    problem: &'a LqProblem<'a>,
    decrease: f64,
    max_steps: usize,
    control: &Control,
) -> Result<(Approximation<'a>, Report)> {
    let (weights, intercepts) = start(problem);
    let mut method = Approximation::new(problem, weights, intercepts);
    let report = method.run(decrease, max_steps, control)?;
    Ok((method, report))
}

/// The algorithm's own start.
fn start(problem: &LqProblem) -> (Vec<f64>, Vec<f64>) {
    let nothing = || (vec![0.0; problem.functions * problem.x.cols()], vec![0.0; problem.functions]);
    discriminant::start(problem).unwrap_or_else(nothing)
}

/// Multiplications of a step with so many columns.
pub(super) fn work(problem: &LqProblem, columns: usize) -> f64 {
    let (n, m) = (problem.rows(), problem.functions);
    let unknowns = unknowns(n, columns, m) as f64;
    unknowns * (n * columns * m) as f64 + unknowns.powi(3)
}

/// Where the algorithm ends for q < 1: coefficients and intercepts. Its steps from a small coefficient are |w|^(2-q) times what the loss
/// pulls, so that those that vanish do so faster than any geometric sequence. Columns are left out when nothing is left of them to
/// working precision; the steps are the algorithm's own, and most of them cost what the few columns that stay do.
pub(super) fn end(
    problem: &LqProblem,
    decrease: f64,
    max_steps: usize,
    control: &Control,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let (m, d) = (problem.functions, problem.x.cols());
    let (mut weights, mut intercepts) = start(problem);
    let mut squares = vec![0.0; d];
    (0..problem.rows()).for_each(|row| problem.x.for_each(row, &mut |column, value| squares[column] += value * value));
    let steepest = steepest(problem);
    let mut kept: Vec<usize> = (0..d).collect();
    let mut compact: Option<Box<dyn Design>> = None;
    let (mut left, mut leg) = (max_steps, LEG);
    let mut budget = (MOST_WORK * work(problem, d)).max(LEAST_WORK);
    loop {
        let part = problem.on(compact.as_deref().unwrap_or(problem.x));
        let mut method = Approximation::new(&part, pick(&weights, d, &kept), intercepts);
        let steps = leg.min(left);
        let report = method.run(decrease, steps, control)?;
        weights.fill(0.0);
        method.weights.iter().enumerate().for_each(|(at, w)| weights[at / kept.len() * d + kept[at % kept.len()]] = *w);
        intercepts = method.intercepts;
        left -= steps;
        budget -= steps as f64 * work(problem, kept.len());
        if left == 0 || budget < 0.0 || report.status != Status::IterationLimit {
            return Ok((weights, intercepts));
        }
        let largest = |column: usize| (0..m).map(|j| weights[j * d + column].abs()).fold(0.0, f64::max);
        let part = |column: usize| power(largest(column), 2.0 - problem.q) * squares[column];
        let grows = |column: usize| {
            let pull = (0..m).map(|j| steepest[j * d + column]).fold(0.0, f64::max);
            power(largest(column), 1.0 - problem.q) * pull > SHRINKING * problem.q
        };
        let most = kept.iter().map(|&column| part(column)).fold(0.0, f64::max);
        let counts = |&column: &usize| !(part(column) <= NEGLIGIBLE * most) || grows(column);
        let staying: Vec<usize> = kept.iter().copied().filter(counts).collect();
        if staying.is_empty() || (staying.len() as f64) > (1.0 - WORTH) * kept.len() as f64 {
            leg *= 2;
            continue;
        }
        compact = Some(columns_of(problem.x, &staying)?);
        kept = staying;
    }
}

/// The relative decrease at which it ends.
pub(super) fn decrease(options: &Options) -> f64 {
    1e-2 * options.tolerance
}

/// The paper's algorithm.
pub(super) fn solve(problem: &LqProblem, options: &Options, control: &Control) -> Result<Solution> {
    let (method, report) = run(problem, decrease(options), options.max_steps, control)?;
    let functions = problem.functions;
    Ok(Solution {
        expansion: rows_by_functions(&method.v, functions),
        decision: rows_by_functions(&method.decision, functions),
        weights: Some(method.weights),
        intercepts: method.intercepts,
        truncated: vec![false; problem.rows()],
        majorant: None,
        objective: report.trace[report.trace.len() - 1],
        // nothing is certified
        gap: f64::NAN,
        trace: report.trace,
        iterations: report.iterations,
        status: report.status,
        solver: LQA,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;

    /// Leaving columns out changes no step: the same coefficients as with all of them, two classes and three.
    #[test]
    fn columns_that_vanish_do_not_count() {
        let (n, d) = (30, 200);
        let value = |at: usize| ((at * 7919 + 13) % 1009) as f64 / 500.0 - 1.0;
        let x = Dense::new(n, d, (0..n * d).map(value).collect::<Vec<f64>>()).unwrap();
        for k in [2, 3] {
            let codes: Vec<u32> = (0..n as u32).map(|row| (row * row) % k).collect();
            let (classes, functions) = (k as usize, if k == 2 { 1 } else { 3 });
            let caps = vec![0.5; n];
            let problem = LqProblem {
                x: &x,
                codes: &codes,
                classes,
                functions,
                caps: &caps,
                counts: None,
                cost: None,
                q: 0.5,
                intercept: true,
            };
            let (control, steps) = (Control::default(), 25);
            let (all, _) = run(&problem, 1e-12, steps, &control).unwrap();
            let (some, intercepts) = end(&problem, 1e-12, steps, &control).unwrap();
            let left = some.iter().filter(|w| **w != 0.0).count();
            assert!(left < functions * d / 4, "{left} of {} coefficients are left", functions * d);
            let largest = all.weights.iter().fold(0.0f64, |largest, w| largest.max(w.abs()));
            let far = all.weights.iter().zip(&some).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(largest > 0.1 && far < 1e-6 * largest, "{far} of {largest}");
            let beside = all.intercepts.iter().zip(&intercepts).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(beside < 1e-6, "{beside}");
        }
    }
}
