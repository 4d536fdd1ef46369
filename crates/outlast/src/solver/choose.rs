//! Which solver takes a problem.

use super::{Options, Solution, coordinate, kernel, linear, newton};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::problem::{KernelFunction, TwoClass};

/// The names a user can ask for.
pub const NAMES: &[&str] = &["auto", kernel::NAME, linear::NAME, coordinate::NAME, newton::NAME];

/// Columns up to which a d x d matrix is the cheapest thing to hold, given rows enough: `TALL` per column.
const NARROW: usize = 1000;
const TALL: usize = 5;

/// Columns so few that the number of rows does not matter.
const FEW: usize = 64;

/// Share of non-zeros from which sparse rows are better read densely.
const FULL: f64 = 0.1;

/// The solver for a problem: the one asked for if it fits, else the best for its shape. A solver that does not fit is
/// refused by name.
pub fn choose(asked: &str, problem: &TwoClass) -> Result<&'static str> {
    let Some(name) = NAMES.iter().copied().find(|name| *name == asked) else {
        return Err(Error::parameter("solver", format!("{asked:?}"), format!("one of {}", NAMES.join(", "))));
    };
    let loss = problem.loss.base();
    let linear = matches!(problem.kernel, KernelFunction::Linear);
    let fitting: &[&str] = match (loss.is_smooth(), linear) {
        (true, _) => &["auto", newton::NAME],
        (false, false) => &["auto", kernel::NAME],
        (false, true) => &["auto", linear::NAME, coordinate::NAME, kernel::NAME],
    };
    if !fitting.contains(&name) {
        let with = format!("with the {} loss and the {} kernel", loss.name(), problem.kernel.name());
        return Err(Error::parameter("solver", format!("{asked:?}"), format!("one of {} {with}", fitting.join(", "))));
    }
    if name != "auto" {
        return Ok(name);
    }
    let cols = problem.x.cols();
    let entries = problem.rows() as f64 * cols as f64;
    let dense = !problem.x.is_sparse() || problem.x.stored() as f64 >= FULL * entries;
    Ok(match (loss.is_smooth(), linear) {
        (true, _) => newton::NAME,
        (false, false) => kernel::NAME,
        (false, true) if dense && (cols <= FEW || cols <= NARROW && problem.rows() >= TALL * cols) => linear::NAME,
        (false, true) => coordinate::NAME,
    })
}

/// Runs the solver of that name, one that [`choose`] returned.
pub fn solve(name: &str, problem: &TwoClass, options: &Options, control: &Control) -> Result<Solution> {
    match name {
        linear::NAME => linear::solve(problem, options, control),
        coordinate::NAME => coordinate::solve(problem, options, control),
        newton::NAME => newton::solve(problem, options, control),
        _ => kernel::solve(problem, options, control),
    }
}
