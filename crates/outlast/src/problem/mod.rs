//! The optimisation problems, without any way of solving them: losses, penalties, kernels, and the judge
//! [`TwoClass`] that evaluates objective, duality gap and KKT residual of *any* candidate in double precision.

pub mod kernel;
pub mod loss;
pub mod penalty;
mod two_class;

pub use kernel::{CustomKernel, Gamma, Kernel, KernelFunction};
pub use loss::{BaseLoss, Loss};
pub use penalty::Penalty;
pub use two_class::{Candidate, Certificate, TwoClass};
