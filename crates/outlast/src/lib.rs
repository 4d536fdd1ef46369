//! Support vector machines that outlast bad labels and outliers.
//!
//! Outlast minimises
//!
//! ```text
//! penalty(f) + C sum_i weight_i min(l(m_i), l(s))
//! ```
//!
//! over linear functions or those of a kernel's space, plus unpenalised intercepts. With two classes m_i = y_i f(x_i); with
//! k classes there is a function for each, sum_j f_j = 0, and m_i = f_y(x_i) - max_{j != y} f_j(x_i). The loss l (hinge,
//! logistic, exponential) is cut off at a margin s <= 0, the *truncation*: rows further on the wrong side stop pulling and
//! are reported as outliers. Without truncation it is the ordinary (multicategory) support vector machine. A utility matrix U
//! gives a row a term for every class, U[y_i, j] min(l(m_ij), l(s)) with the margin m_ij of class j. The penalty is
//! 1/2 sum_j |f_j|^2, or for linear functions the (weighted) sum of absolute coefficients, which selects variables.
//!
//! ```
//! use outlast::{Dense, Kernel, Truncated};
//!
//! let x = Dense::from_rows(&[[0.0], [0.2], [0.4], [0.6], [0.8], [1.0], [30.0]]);
//! let y = [0, 0, 0, 1, 1, 1, 0]; // the last label is wrong, and far away
//! let model = Truncated::new(10.0).kernel(Kernel::Linear).fit(&x, &y)?;
//! assert_eq!(model.predict_codes(&x)?, [0, 0, 0, 1, 1, 1, 1]);
//! let training = model.training.as_ref().expect("a fitted model knows its training rows");
//! assert!(training.outliers[6]);
//! assert!(model.summary.trace.windows(2).all(|pair| pair[1] <= pair[0]));
//! # Ok::<(), outlast::Error>(())
//! ```
//!
//! Rows go in as [`Dense`] (f64 or f32) or [`Csr`], labels as anything that is a [`Target`]. [`Truncated`] holds the
//! parameters, [`FitRequest`] sample weights, a warm start and a [`Control`] for progress, interrupt and time limit;
//! [`Model`] predicts. [`problem::TwoClass`] and [`problem::ManyClass`] judge any candidate by objective and duality gap
//! without calling a solver. [`gamma_quartiles`] finds kernel widths worth trying.
//! The crate prints nothing. Readers and model files are in `io`, behind the feature of that name.

pub mod control;
pub mod data;
pub mod error;
#[cfg(feature = "io")]
pub mod io;
pub mod linalg;
mod memory;
pub mod model;
pub mod problem;
pub mod select;
pub mod solver;

pub use control::{Control, Progress};
pub use data::{Class, Csr, Dense, Design, FeatureMap, Labels, Target};
pub use error::{Error, Result};
pub use model::{
    Ablation, Baseline, Cap, Capped, Centroid, Certified, ClassWeight, CostForm, Estimator, FitRequest, Inliers,
    LeaveOneOut, Lq, Model, Probability, Shift, Truncated, Truncation, certify, gamma_quartiles,
};
pub use problem::{CustomKernel, Gamma, Kernel, KernelFunction, Loss, Penalty};
pub use select::{Audit, AuditKernel, AuditReport, LqChoice, LqSearch, Split, Tune, Tuned};
pub use solver::Status;

/// The README's examples, run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

/// The examples of the Rust guide, run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
pub struct Guide;
