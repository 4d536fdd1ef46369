//! The optimisation problems, without any way of solving them: losses, penalties, kernels.
//! The judges [`TwoClass`] and [`ManyClass`] evaluate objective, duality gap and KKT residual of *any* candidate in double
//! precision.

pub mod ablation;
mod coded;
pub mod concave;
pub mod kernel;
pub mod loss;
pub mod lq;
mod many_class;
pub mod penalty;
mod two_class;

pub use coded::{Coded, CodedCandidate};
pub use kernel::{CustomKernel, Gamma, Kernel, KernelFunction};
pub use loss::{BaseLoss, Loss};
pub use lq::LqProblem;
pub use many_class::{Majorant, ManyCandidate, ManyClass, Terms};
pub use penalty::{Norm, Penalty};
pub use two_class::{Candidate, Certificate, TwoClass};

use crate::data::Design;

/// A problem of either kind: what a solver is chosen for.
#[derive(Clone, Copy)]
pub enum Problem<'a> {
    /// Two classes, one decision function.
    Two(TwoClass<'a>),
    /// k classes, k decision functions.
    Many(ManyClass<'a>),
}

impl<'a> Problem<'a> {
    /// The rows.
    pub fn x(&self) -> &'a dyn Design {
        match self {
            Problem::Two(problem) => problem.x,
            Problem::Many(problem) => problem.x,
        }
    }

    /// The loss.
    pub fn loss(&self) -> Loss {
        match self {
            Problem::Two(problem) => problem.loss,
            Problem::Many(problem) => problem.loss,
        }
    }

    /// The penalty.
    pub fn norm(&self) -> Norm<'a> {
        match self {
            Problem::Two(problem) => problem.norm,
            Problem::Many(problem) => problem.norm,
        }
    }

    /// The kernel.
    pub fn kernel(&self) -> &'a KernelFunction {
        match self {
            Problem::Two(problem) => problem.kernel,
            Problem::Many(problem) => problem.kernel,
        }
    }

    /// Number of decision functions: 1 for two classes.
    pub fn functions(&self) -> usize {
        match self {
            Problem::Two(_) => 1,
            Problem::Many(problem) => problem.classes,
        }
    }

    /// The same problem on other rows, or the same ones stored otherwise.
    pub fn with_x<'b>(self, x: &'b dyn Design) -> Problem<'b>
    where
        'a: 'b,
    {
        match self {
            Problem::Two(problem) => Problem::Two(TwoClass { x, ..problem }),
            Problem::Many(problem) => Problem::Many(ManyClass { x, ..problem }),
        }
    }

    /// The same problem with another penalty.
    pub fn with_norm(self, norm: Norm<'a>) -> Problem<'a> {
        match self {
            Problem::Two(problem) => Problem::Two(TwoClass { norm, ..problem }),
            Problem::Many(problem) => Problem::Many(ManyClass { norm, ..problem }),
        }
    }
}
