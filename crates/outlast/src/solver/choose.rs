//! Which solver takes a problem.

use super::{Options, Solution, coordinate, interior, kernel, linear, newton, proximal};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::problem::{KernelFunction, Norm, Problem, Terms};

/// The names a user can ask for.
pub const NAMES: &[&str] =
    &["auto", kernel::NAME, linear::NAME, coordinate::NAME, newton::NAME, interior::NAME, proximal::NAME];

/// Columns up to which a d x d matrix is the cheapest thing to hold, given rows enough: `TALL` per column. With k classes
/// it is that of (k - 1) d columns.
const NARROW: usize = 1000;
const TALL: usize = 5;

/// Columns so few that the number of rows does not matter.
const FEW: usize = 64;

/// Share of non-zeros from which sparse rows are better read densely.
const FULL: f64 = 0.1;

/// The solver for a problem: the one asked for if it fits, else the best for its shape. A solver that does not fit is
/// refused by name.
pub fn choose(asked: &str, problem: &Problem) -> Result<&'static str> {
    let Some(name) = NAMES.iter().copied().find(|name| *name == asked) else {
        return Err(Error::parameter("solver", format!("{asked:?}"), format!("one of {}", NAMES.join(", "))));
    };
    let fitting = fitting(problem);
    if name == "auto" {
        return Ok(best(problem, fitting));
    }
    if !fitting.contains(&name) {
        let penalty = match problem.norm() {
            Norm::Squared => "l2",
            Norm::Absolute(_) => "l1",
            Norm::Power(_) => "lq",
        };
        let with = format!(
            "with the {} loss, the {} kernel and an {penalty} penalty",
            problem.loss().base().name(),
            problem.kernel().name()
        );
        let allowed = format!("one of auto, {} {with}", fitting.join(", "));
        return Err(Error::parameter("solver", format!("{asked:?}"), allowed));
    }
    Ok(name)
}

/// The solver that may take a problem over from the one of that name, where that has ended far from certain: rows that few others are near to,
/// and which decide all, are hard to see from a band of rows.
pub fn second(name: &str, problem: &Problem) -> Option<&'static str> {
    (name == linear::NAME && fitting(problem).contains(&coordinate::NAME)).then_some(coordinate::NAME)
}

/// The solvers that can take a problem.
fn fitting(problem: &Problem) -> &'static [&'static str] {
    let linear = matches!(problem.kernel(), KernelFunction::Linear);
    let smooth = problem.loss().base().is_smooth();
    match (problem, problem.norm(), smooth, linear) {
        (_, Norm::Absolute(_) | Norm::Power(_), ..) => &[proximal::NAME],
        (Problem::Two(_), _, true, _) => &[newton::NAME],
        (Problem::Many(_), _, true, _) => &[interior::NAME],
        (_, _, false, false) => &[kernel::NAME],
        (Problem::Two(_), _, false, true) => &[linear::NAME, coordinate::NAME, kernel::NAME],
        (Problem::Many(many), _, false, true) => match many.terms {
            Terms::Own => &[linear::NAME, coordinate::NAME, kernel::NAME],
            _ => &[linear::NAME, kernel::NAME],
        },
    }
}

/// The best of several for the problem's shape.
fn best(problem: &Problem, fitting: &'static [&'static str]) -> &'static str {
    if !fitting.contains(&linear::NAME) {
        return fitting[0];
    }
    let x = problem.x();
    let dense = !x.is_sparse() || x.stored() as f64 >= FULL * x.rows() as f64 * x.cols() as f64;
    let cols = x.cols() * (problem.functions() - 1).max(1);
    let narrow = cols <= FEW || cols <= NARROW && x.rows() >= TALL * cols;
    match dense && narrow {
        true => linear::NAME,
        false if fitting.contains(&coordinate::NAME) => coordinate::NAME,
        false => kernel::NAME,
    }
}

/// Runs the solver of that name, one that [`choose`] returned.
///
/// Two of them read X in order: `linear-band` in blocks, `kernel-smo` once, into a form of its own, but for kernels that it knows by their
/// values alone. The others visit rows in no order, and get them row by row.
pub fn solve(name: &str, problem: &Problem, options: &Options, control: &Control) -> Result<Solution> {
    let by_values = matches!(problem.kernel(), KernelFunction::Precomputed | KernelFunction::Custom(_));
    let in_order = name == linear::NAME || name == kernel::NAME && !by_values;
    let copy = if in_order { None } else { problem.x().row_major() };
    let problem = copy.as_ref().map_or(*problem, |copy| problem.with_x(&**copy));
    match &problem {
        Problem::Two(problem) => match name {
            linear::NAME => linear::solve(problem, options, control),
            coordinate::NAME => coordinate::solve(problem, options, control),
            newton::NAME => newton::solve(problem, options, control),
            proximal::NAME => proximal::solve(problem, options, control),
            _ => kernel::solve(problem, options, control),
        },
        Problem::Many(problem) => match name {
            linear::NAME => linear::solve_many(problem, options, control),
            coordinate::NAME => coordinate::solve_many(problem, options, control),
            interior::NAME => interior::solve_many(problem, options, control),
            proximal::NAME => proximal::solve_many(problem, options, control),
            _ => kernel::solve_many(problem, options, control),
        },
    }
}
