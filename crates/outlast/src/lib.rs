//! Support vector machines that outlast bad labels and outliers.

pub mod control;
pub mod data;
pub mod error;
#[cfg(feature = "io")]
pub mod io;
pub mod linalg;
pub mod model;
pub mod problem;
pub mod solver;

pub use control::{Control, Progress};
pub use data::{Class, Csr, Dense, Design, Labels, Target};
pub use error::{Error, Result};
pub use model::{ClassWeight, FitRequest, Model, Truncated, Truncation};
pub use problem::{CustomKernel, Gamma, Kernel, KernelFunction, Loss, Penalty};
pub use solver::Status;
