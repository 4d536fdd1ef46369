//! The l1 penalty: augmented Lagrangian and proximal Newton.

use super::{Options, Solution};
use crate::control::Control;
use crate::error::Result;

/// The solver's name.
pub const NAME: &str = "proximal-newton";

/// Solves a problem with two classes.
pub fn solve(_: &crate::problem::TwoClass, _: &Options, _: &Control) -> Result<Solution> {
    Err(crate::error::Error::Numerical { problem: "this solver does not take two classes yet".to_string() })
}

/// Solves a problem with many classes.
pub fn solve_many(_: &crate::problem::ManyClass, _: &Options, _: &Control) -> Result<Solution> {
    Err(crate::error::Error::Numerical { problem: "this solver does not take many classes yet".to_string() })
}
