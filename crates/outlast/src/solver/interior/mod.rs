//! Many classes, smooth losses: an interior point method.

mod cells;
pub(crate) mod core;
mod system;

use super::{Options, Solution};
use crate::control::Control;
use crate::error::Result;

/// The solver's name.
pub const NAME: &str = "interior-point";

/// Solves a problem with many classes.
pub fn solve_many(_: &crate::problem::ManyClass, _: &Options, _: &Control) -> Result<Solution> {
    Err(crate::error::Error::Numerical { problem: "this solver does not take many classes yet".to_string() })
}
