//! From where the descents begin, and which end is taken.
//!
//! What a truncated loss or the penalty sum |w|^q, q < 1, leads to depends on the start. Compared are
//!
//! - the descent from the optimum of the loss that is not truncated, for q < 1 with rates of 1, 0.1 and 0.01: w = 0 is a local minimum
//!   of these, and zeros stay;
//! - for q < 1 the descents from the plain machine, the best end with the loss that is not truncated; from the best sparse machine
//!   of Liu et al. (`solver::lq`), whose loss is the same one for two classes, and for k has margins k times as wide; and from the truncated
//!   machine with q = 1;
//! - the best constant function (`constant`). Where all classes but one are truncated, it is a minimum of its own bound, and where q < 1 its
//!   zeros stay: it is an end.
//!
//! A descent never rises, so that the end taken is no higher than any of these points. Ends as good as each other to rounding are told
//! apart by their order, not by the order in which rows were summed.

use super::super::{Care, Options, Solution, Start, Status};
use super::constant::{Constant, TIE};
use super::{NAME, touching};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::problem::{KernelFunction, Loss, Norm};

/// Rates of the l1 problems that sum |w|^q is started from: w = 0 is a local minimum, and zeros stay.
const RATES: [f64; 3] = [1.0, 0.1, 0.01];

/// Where a descent begins.
pub(super) enum Origin {
    /// At the optimum of the loss that is not truncated, with these rates.
    Rates(Vec<f64>),
    /// At a point; for q < 1 with the rates that touch there.
    Point(Start),
}

/// A problem, two classes or k, as the search for its best end sees it.
pub(super) trait Machine: Sized {
    fn loss(&self) -> Loss;
    fn norm(&self) -> Norm<'_>;
    fn kernel(&self) -> &KernelFunction;
    fn intercept(&self) -> bool;
    /// Decision functions, and columns of each.
    fn shape(&self) -> (usize, usize);
    /// The caps of each class, summed.
    fn totals(&self) -> Vec<f64>;
    /// The same without truncation.
    fn plain(&self) -> Self;
    /// P
    fn objective(&self, start: &Start) -> f64;
    /// A descent; q of sum |w|^q, if that is concave.
    fn descend(&self, from: Origin, power: Option<f64>, options: &Options, control: &Control) -> Result<Solution>;
    /// The best sparse machine with the hinge, on the same rows, and in margins of this loss.
    fn sparsest(&self, q: f64, options: &Options, control: &Control) -> Result<Vec<Start>>;
    /// w = 0 as a solution that nothing can lower.
    fn constant(&self, intercepts: Vec<f64>, objective: f64) -> Solution;
}

/// The best end of a problem this solver takes.
pub(super) fn best(problem: &impl Machine, options: &Options, control: &Control) -> Result<Solution> {
    let kernel = problem.kernel();
    if !matches!(kernel, KernelFunction::Linear) {
        return Err(Error::parameter("kernel", kernel.name(), "linear, which an l1 penalty needs"));
    }
    let (functions, columns) = problem.shape();
    let coefficients = functions * columns;
    let convex = |rates: Vec<f64>| -> Result<Solution> {
        let found = problem.descend(Origin::Rates(rates), None, options, control)?;
        // a convex problem has one optimum
        let several = problem.loss().truncation().is_some();
        if several { or_constant(problem, found, None, options, control) } else { Ok(found) }
    };
    match problem.norm() {
        Norm::Absolute(rates) if rates.len() == coefficients => convex(rates.to_vec()),
        Norm::Absolute(rates) => {
            Err(Error::shape("rates", format!("{} rates", rates.len()), format!("{coefficients}, one per coefficient")))
        }
        Norm::Squared => Err(Error::parameter("solver", NAME, "another one: this one needs an l1 penalty")),
        Norm::Power(1.0) => convex(vec![1.0; coefficients]),
        Norm::Power(q) if q > 0.0 && q < 1.0 => concave(problem, q, options, control),
        Norm::Power(q) => Err(Error::parameter("q", q, "a number > 0 and <= 1")),
    }
}

/// The best end for sum |w|^q.
fn concave(problem: &impl Machine, q: f64, options: &Options, control: &Control) -> Result<Solution> {
    let (functions, columns) = problem.shape();
    let is_hinge = problem.loss().base().name() == Loss::hinge().base().name();
    let unstarted = Options { start: None, ..options.clone() };
    let sparsest = if is_hinge { problem.sparsest(q, &unstarted, control)? } else { Vec::new() };
    let rates = |rate: &f64| Origin::Rates(vec![*rate; functions * columns]);
    let touching = |start: &Start| start.weights.as_ref().map(|weights| Origin::Rates(touching(weights, q)));
    let plain = problem.plain();
    let near = lowest(&plain, sparsest.clone());
    let origins = RATES.iter().map(rates).chain(near.iter().filter_map(touching));
    let found = ends(&plain, origins, q, options, control)?;
    let found = or_constant(&plain, found, Some(q), options, control)?;
    if problem.loss().truncation().is_none() {
        return Ok(found);
    }
    let iterations = found.iterations;
    let mut points = vec![start_of(found)];
    points.extend(lowest(problem, sparsest));
    if options.care == Care::Full && !control.out_of_time() {
        let absolute = problem.descend(Origin::Rates(vec![1.0; functions * columns]), None, options, control)?;
        points.push(start_of(absolute));
    }
    let origins = RATES.iter().map(rates).chain(points.into_iter().map(Origin::Point));
    let mut best = ends(problem, origins, q, options, control)?;
    best.iterations += iterations;
    or_constant(problem, best, Some(q), options, control)
}

/// The lowest of the ends that some origins lead to, the first of them in any case, the others as long as there is time.
fn ends(
    problem: &impl Machine,
    origins: impl Iterator<Item = Origin>,
    q: f64,
    options: &Options,
    control: &Control,
) -> Result<Solution> {
    let mut best: Option<Solution> = None;
    for origin in origins {
        if let Some(best) = &mut best
            && control.out_of_time()
        {
            best.status = Status::TimeLimit;
            break;
        }
        let found = problem.descend(origin, Some(q), options, control)?;
        best = Some(match best {
            Some(best) => lower(best, found),
            None => found,
        });
    }
    best.ok_or_else(|| Error::Numerical { problem: "no start was followed".to_string() })
}

/// The lower of two ends, the first if there is no telling, with the iterations of both.
fn lower(first: Solution, second: Solution) -> Solution {
    let iterations = first.iterations + second.iterations;
    let best = if second.objective < first.objective * (1.0 - TIE) { second } else { first };
    Solution { iterations, ..best }
}

/// An end, or the best constant function if that is lower.
fn or_constant(
    problem: &impl Machine,
    found: Solution,
    power: Option<f64>,
    options: &Options,
    control: &Control,
) -> Result<Solution> {
    let constant = Constant::best(problem.loss(), &problem.totals(), problem.intercept());
    let (functions, columns) = problem.shape();
    let intercepts = constant.intercepts(functions);
    if constant.is_end && is_constant(&found) && constant.objective <= found.objective * (1.0 + TIE) {
        // any longer lead costs the same, and the way there decided which
        let end = problem.constant(intercepts, constant.objective);
        let status = if found.status == Status::TimeLimit { found.status } else { end.status };
        return Ok(Solution { iterations: found.iterations, status, ..end });
    }
    if !(constant.objective < found.objective * (1.0 - TIE)) {
        return Ok(found);
    }
    let other = if constant.is_end {
        problem.constant(intercepts, constant.objective)
    } else {
        // its rows are all kept: a convex problem has it, or something lower, for its optimum
        let weights = Some(vec![0.0; functions * columns]);
        problem.descend(Origin::Point(Start { expansion: Vec::new(), weights, intercepts }), power, options, control)?
    };
    let out_of_time = found.status == Status::TimeLimit;
    let best = lower(found, other);
    Ok(if out_of_time { Solution { status: Status::TimeLimit, ..best } } else { best })
}

/// Whether w = 0.
fn is_constant(found: &Solution) -> bool {
    found.weights.as_ref().is_some_and(|weights| weights.iter().all(|w| *w == 0.0))
}

/// The start of the lowest objective.
fn lowest(problem: &impl Machine, starts: Vec<Start>) -> Option<Start> {
    let judged = starts.into_iter().map(|start| (problem.objective(&start), start));
    let lower = |a: (f64, Start), b: (f64, Start)| if b.0 < a.0 * (1.0 - TIE) { b } else { a };
    judged.reduce(lower).map(|(_, start)| start)
}

/// A solution as a start. Its dual variables belong to another loss.
fn start_of(found: Solution) -> Start {
    Start { expansion: Vec::new(), weights: found.weights, intercepts: found.intercepts }
}
