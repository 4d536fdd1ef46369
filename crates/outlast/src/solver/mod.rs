//! Solvers: from a [`TwoClass`](crate::problem::TwoClass) or [`ManyClass`](crate::problem::ManyClass) problem to a [`Solution`]. They know nothing of files, labels or
//! models.

pub mod ablation;
pub mod alternate;
mod choose;
pub mod coordinate;
pub mod interior;
pub mod kernel;
pub mod leave_one_out;
pub mod linear;
pub mod lq;
pub mod majorize;
pub mod newton;
mod normal;
pub mod proximal;
pub mod reweighted;
mod scaled;
pub mod stream;
pub mod tiles;
mod truncation;
mod ways_out;

pub use choose::{NAMES, choose, second, solve};

use crate::problem::Majorant;
use std::fmt;

/// How a solver ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// The last convex problem was solved to the tolerance asked for, and its truncation set is its own (or moving to that
    /// set gains less than the tolerance can tell).
    Converged,
    /// As `Converged`, but rounding kept the gap above the tolerance asked for; the gap reached is reported.
    Inaccurate,
    /// The iteration limit ended the work.
    IterationLimit,
    /// The time limit ended the work.
    TimeLimit,
    /// The caller ended a search that keeps its best answer so far.
    Interrupted,
    /// Every row lies beyond the cap, so that nothing was left to fit: the last model before that.
    AllCapped,
}

impl Status {
    /// Whether the tolerance was met.
    pub fn is_converged(self) -> bool {
        self == Status::Converged
    }

    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            Status::Converged => "converged",
            Status::Inaccurate => "inaccurate",
            Status::IterationLimit => "iteration_limit",
            Status::TimeLimit => "time_limit",
            Status::Interrupted => "interrupted",
            Status::AllCapped => "all_capped",
        }
    }

    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Status> {
        use Status::*;
        let all = [Converged, Inaccurate, IterationLimit, TimeLimit, Interrupted, AllCapped];
        all.into_iter().find(|status| status.name() == name)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// With how much care a problem is solved. All but `Full` are for families of problems; solvers other than `kernel-smo` for two classes
/// and `linear-band` know `Full` alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Care {
    /// Small problems more exactly than the tolerance asks for: the kernel's in double precision, truncated ones from several starts.
    #[default]
    Full,
    /// The tolerance is all that counts; a truncated problem is followed down from the plain optimum alone.
    Rough,
    /// Likewise, and majorise-minimise steps begin at [`Options::start`] itself, its truncated rows included.
    Follow,
}

/// What every solver is told beside the problem.
#[derive(Debug, Clone)]
pub struct Options {
    /// Relative duality gap at which a convex problem counts as solved.
    pub tolerance: f64,
    /// Most majorise-minimise steps.
    pub max_steps: usize,
    /// Most iterations of the solver inside one convex problem (its own kind of iteration).
    pub max_iterations: usize,
    /// Bytes the solver may keep beyond the data and O(n) vectors.
    pub cache_bytes: usize,
    /// Seed of whatever is drawn at random.
    pub seed: u64,
    /// A solution of a nearby problem on the same rows (another C, another truncation) to start from.
    pub start: Option<Start>,
    /// More than the tolerance asks for, or not.
    pub care: Care,
    /// Kernel rows of earlier fits to the same rows with the same kernel.
    pub store: Option<kernel::KernelStore>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            tolerance: 1e-4,
            max_steps: 100,
            max_iterations: 100_000,
            cache_bytes: 1 << 30,
            seed: 0,
            start: None,
            care: Care::Full,
            store: None,
        }
    }
}

/// Where a warm start begins: as in a [`Solution`].
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// Rows x functions.
    pub expansion: Vec<f64>,
    /// Functions x columns, for linear solvers.
    pub weights: Option<Vec<f64>>,
    /// One per function.
    pub intercepts: Vec<f64>,
}

/// What every solver returns. There is one decision function for two classes, and one per class for more; matrices are
/// row-major.
#[derive(Debug, Clone)]
pub struct Solution {
    /// beta (or V), rows x functions: f_j = sum_i beta_ij k(x_i, .) + b_j. Satisfies the dual's constraints. With the l1
    /// penalty it only certifies.
    pub expansion: Vec<f64>,
    /// w of a linear solver, functions x columns.
    pub weights: Option<Vec<f64>>,
    /// b, 0 without intercept.
    pub intercepts: Vec<f64>,
    /// f(x_i) + b on the training rows, rows x functions.
    pub decision: Vec<f64>,
    /// Rows on the flat part of the loss.
    pub truncated: Vec<bool>,
    /// The convex bound last minimised, of a problem with many classes.
    pub majorant: Option<Majorant>,
    /// The full, non-convex objective.
    pub objective: f64,
    /// Relative duality gap of the last convex problem.
    pub gap: f64,
    /// Objective after the start and after each majorise-minimise step. Never rises.
    pub trace: Vec<f64>,
    /// Iterations inside the convex problems, summed.
    pub iterations: usize,
    /// How it ended.
    pub status: Status,
    /// Which solver it was.
    pub solver: &'static str,
}

impl Start {
    /// b of a problem with one function.
    pub fn intercept(&self) -> f64 {
        self.intercepts.first().copied().unwrap_or(0.0)
    }
}

impl Solution {
    /// b of a problem with one function.
    pub fn intercept(&self) -> f64 {
        self.intercepts.first().copied().unwrap_or(0.0)
    }
}
