//! Solvers of the L_q problem (see [`LqProblem`]).
//!
//! | q | how | file |
//! |---|---|---|
//! | < 1 | reweighted l1 problems from several starts | `portfolio`, `reweight` |
//! | 1 | the l1 engine, led by the interior point method where it stops short | `solver::proximal`, `vertex` |
//! | 1 to 2 | an interior point method | `smooth`, `normal` |
//! | 2, one function | the solvers of the quadratic penalty | `solver::linear`, `solver::coordinate` |
//! | any, if asked for | the paper's quadratic approximation from discriminant analysis | `lqa`, `discriminant` |
//!
//! Columns far from 0 are centred, units changed, and empty columns left out, by `frame`.
//!
//! It stops on the relative duality gap of the convex problem, for q < 1 that of the last reweighted one.

mod discriminant;
mod frame;
mod lqa;
mod normal;
mod path;
mod portfolio;
mod reweight;
mod smooth;
mod vertex;

pub use path::Path;

use super::majorize::Step;
use super::proximal::{self, Weighted};
use super::{Options, Solution, Start, Status, choose, solve as solve_problem};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::problem::{KernelFunction, Loss, LqProblem, Norm, Problem, TwoClass};

/// The names a user can ask for.
pub const NAMES: &[&str] = &["auto", LQA];
/// The paper's algorithm.
pub const LQA: &str = "lqa";
/// Unknowns up to which what the solvers of the quadratic penalty leave inaccurate is solved again.
const MOST_AGAIN: usize = 1000;
/// The rate, next to caps and columns of 1, of a penalty that can't be told from none, and one that is no longer certified for sure.
const INVISIBLE: f64 = 1e-20;
const FAINT: f64 = 1e-10;
/// A gap that leaves nothing to be gained elsewhere.
const NEGLIGIBLE: f64 = 1e-7;
/// The interior point method.
pub const SMOOTH: &str = "lq-interior";

/// Solves.
pub fn solve(problem: &LqProblem, solver: &str, options: &Options, control: &Control) -> Result<Solution> {
    if !NAMES.contains(&solver) {
        return Err(Error::parameter("solver", format!("{solver:?}"), format!("one of {}", NAMES.join(", "))));
    }
    let run = |problem: &LqProblem, options: &Options| match problem.q {
        _ if solver == LQA => lqa::solve(problem, options, control),
        1.0 => not_above_the_paper(problem, absolute(problem, options, control)?, options, control),
        q if q > 1.0 => not_above_the_paper(problem, curved(problem, options, control)?, options, control),
        _ => portfolio::solve(problem, options, control),
    };
    let found = frame::on_stored(problem, options, |problem, options| {
        frame::centred(problem, options, |problem, options| Ok(vec![run(problem, options)?]))
    });
    only(found?)
}

/// For q < 1 what is found without the paper's algorithm: dear starts left out, single columns exchanged.
pub(super) fn solve_sparsely(problem: &LqProblem, options: &Options, control: &Control) -> Result<Solution> {
    let found = frame::on_stored(problem, options, |problem, options| {
        frame::centred(problem, options, |problem, options| {
            Ok(vec![portfolio::solve_sparsely(problem, options, control)?])
        })
    });
    only(found?)
}

/// The solution of a list of one.
fn only(list: Vec<Solution>) -> Result<Solution> {
    let nothing = || Error::Numerical { problem: "no solution was found".to_string() };
    list.into_iter().next().ok_or_else(nothing)
}

/// Whether a problem with q > 1 is the interior point method's, whatever its units.
fn by_interior(problem: &LqProblem) -> bool {
    problem.q < 2.0 || problem.functions > 1
}

/// q > 1
fn curved(problem: &LqProblem, options: &Options, control: &Control) -> Result<Solution> {
    let found = frame::in_units(problem, options, control, |problem, factors, options| {
        if by_interior(problem) || factors.is_some() {
            return smooth::solve(problem, factors, options, control);
        }
        let found = square(problem, options, control)?;
        let unknowns = normal::unknowns(problem.rows(), problem.x.cols(), 1);
        if found.status != Status::Inaccurate || unknowns > MOST_AGAIN {
            return Ok(found);
        }
        let other = smooth::solve(problem, None, options, control)?;
        Ok(if other.gap < found.gap { other } else { found })
    })?;
    let penalty = problem.penalty(found.weights.as_deref().unwrap_or(&[]));
    match found.status == Status::Inaccurate && penalty <= options.tolerance * found.objective {
        true => by_loss_alone(problem, found, options, control),
        false => Ok(found),
    }
}

/// What was `found`, or if that is not certain to be next to the optimum the end of the paper's algorithm, where that is affordable and
/// lower. The bound stays.
fn not_above_the_paper(problem: &LqProblem, found: Solution, options: &Options, control: &Control) -> Result<Solution> {
    if !matches!(found.status, Status::Inaccurate | Status::IterationLimit) || found.gap <= NEGLIGIBLE {
        return Ok(found);
    }
    let end = portfolio::paper_start(problem, lqa::decrease(options), options.max_steps, control)?;
    let Some(mut end) = end else { return Ok(found) };
    if problem.functions > 1 {
        let d = problem.x.cols();
        (0..d).for_each(|column| smooth::balance(&mut end.weights, column, d));
        smooth::balance(&mut end.intercepts, 0, 1);
    }
    let decision = problem.decision(&end.weights, &end.intercepts);
    let objective = problem.penalty(&end.weights) + problem.loss(&decision);
    if !(objective < found.objective) {
        return Ok(found);
    }
    let bound = found.objective * (1.0 - found.gap);
    let gap = (objective - bound).max(0.0) / objective.max(f64::MIN_POSITIVE);
    let status = if gap <= options.tolerance { Status::Converged } else { found.status };
    let (weights, intercepts) = (Some(end.weights), end.intercepts);
    Ok(Solution { weights, intercepts, decision, objective, gap, status, trace: vec![objective], ..found })
}

/// A solution whose penalty is next to nothing, with the bound that the loss alone has: to bound it with the penalty X'V would have to be
/// as small as that, which rounding does not let it be. The bound holds to the rounding of X'V, as that of q = 1 does.
fn by_loss_alone(problem: &LqProblem, found: Solution, options: &Options, control: &Control) -> Result<Solution> {
    let rate = |shrink: &f64| INVISIBLE * problem.largest_cap() / shrink;
    let rates: Vec<f64> = proximal::units(problem.x).iter().map(rate).collect();
    with_rates(problem, &rates, found, options, control)
}

/// The local minimum that reweighting leads to from one start, for q <= 1.
pub fn descend(
    problem: &LqProblem,
    weights: &[f64],
    intercepts: &[f64],
    options: &Options,
    control: &Control,
) -> Result<Solution> {
    let (_, fine) = portfolio::efforts(options);
    let start = Start { expansion: Vec::new(), weights: Some(weights.to_vec()), intercepts: intercepts.to_vec() };
    let options = Options { start: Some(start), ..options.clone() };
    let run = |problem: &LqProblem, options: &Options| {
        let b = options.start.as_ref().map_or(intercepts, |start| &start.intercepts);
        let found = reweight::follow(problem, weights, b, None, &fine, control)?;
        Ok(vec![portfolio::solution(problem, found)])
    };
    only(frame::centred(problem, &options, run)?)
}

/// Rows x functions from functions x rows.
fn rows_by_functions(values: &[f64], functions: usize) -> Vec<f64> {
    let n = values.len() / functions.max(1);
    (0..values.len()).map(|at| values[at % functions * n + at / functions]).collect()
}

/// q = 1
fn absolute(problem: &LqProblem, options: &Options, control: &Control) -> Result<Solution> {
    let mut found = absolute_from(problem, options.start.as_ref(), options, control)?;
    let is_over = |found: &Solution| matches!(found.status, Status::Converged | Status::TimeLimit);
    let rate = |shrink: &f64| if *shrink < FAINT * problem.largest_cap() { 0.0 } else { 1.0 };
    let rates: Vec<f64> = proximal::units(problem.x).iter().map(rate).collect();
    if !is_over(&found) && rates.contains(&0.0) {
        found = with_rates(problem, &rates, found, options, control)?;
    }
    if found.status == Status::Inaccurate { vertex::led(problem, found, options, control) } else { Ok(found) }
}

/// q = 1 by the l1 engine, from a start if there is one.
fn absolute_from(problem: &LqProblem, start: Option<&Start>, options: &Options, control: &Control) -> Result<Solution> {
    let mut engine = Weighted::new(problem, options.max_iterations);
    if let Some(start) = start {
        if let Some(weights) = &start.weights {
            engine.start_at(weights, &start.intercepts);
        }
        engine.start_multipliers(&start.expansion);
    }
    let step = engine.minimize(options.tolerance, control)?;
    Ok(solution(problem, &engine, step))
}

/// What the problem with other rates of its columns, some next to nothing, finds, where that bounds better than what was `found`.
fn with_rates(
    problem: &LqProblem,
    rates: &[f64],
    found: Solution,
    options: &Options,
    control: &Control,
) -> Result<Solution> {
    let mut engine = Weighted::new(problem, options.max_iterations);
    engine.set_rates(&rates.repeat(problem.functions));
    engine.start_at(found.weights.as_deref().unwrap_or(&[]), &found.intercepts);
    let step = engine.minimize(options.tolerance, control)?;
    let other = solution(problem, &engine, step);
    let dual: f64 = other.expansion.iter().map(|v| v.abs()).sum();
    let least = other.objective.min(found.objective);
    let gap = (least - dual).max(0.0) / least.max(f64::MIN_POSITIVE);
    if !(gap < found.gap) {
        return Ok(found);
    }
    let status = if gap <= options.tolerance { Status::Converged } else { Status::Inaccurate };
    let expansion = other.expansion.clone();
    let best = if other.objective < found.objective { other } else { found };
    Ok(Solution { expansion, gap, status, ..best })
}

/// What the engine stands at.
fn solution(problem: &LqProblem, engine: &Weighted, step: Step) -> Solution {
    let answer = engine.answer();
    let decision = engine.decision();
    let weights = answer.weights.unwrap_or_default();
    let objective = problem.penalty(&weights) + problem.loss(&decision);
    Solution {
        expansion: answer.expansion,
        weights: Some(weights),
        intercepts: answer.intercepts,
        decision,
        truncated: vec![false; problem.rows()],
        majorant: None,
        objective,
        gap: step.gap,
        trace: vec![objective],
        iterations: step.iterations,
        status: step.status,
        solver: proximal::NAME,
    }
}

/// q = 2, one function: sum w^2 + sum c hinge = 2 (1/2 sum w^2 + sum c/2 hinge).
fn square(problem: &LqProblem, options: &Options, control: &Control) -> Result<Solution> {
    let signs: Vec<f64> = (0..problem.rows()).map(|row| problem.sign(row)).collect();
    let caps: Vec<f64> = (0..problem.rows()).map(|row| 0.5 * problem.cap(row, 0)).collect();
    let halved = Problem::Two(TwoClass {
        x: problem.x,
        signs: &signs,
        caps: &caps,
        loss: Loss::hinge(),
        norm: Norm::Squared,
        kernel: &KernelFunction::Linear,
        intercept: problem.intercept,
    });
    let mut options = options.clone();
    if let Some(start) = &mut options.start {
        start.expansion.iter_mut().for_each(|v| *v *= 0.5);
    }
    let mut found = solve_problem(choose("auto", &halved)?, &halved, &options, control)?;
    found.expansion.iter_mut().for_each(|v| *v *= 2.0);
    found.trace.iter_mut().for_each(|value| *value *= 2.0);
    found.objective *= 2.0;
    if found.weights.is_none() {
        found.weights = Some(problem.pull(&found.expansion).iter().map(|u| 0.5 * u).collect());
    }
    Ok(found)
}
