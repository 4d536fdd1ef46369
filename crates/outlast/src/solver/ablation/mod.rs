//! Convex outlier ablation: the relaxations REH and ROD of the hinge truncated at 0, lower bounds of its global minimum, and
//! branch and bound to that minimum.
//!
//! ```text
//! P(f) = 1/2 |f|^2 + sum_i c_i min(1, [1 - y_i (f(x_i) + b)]_+)
//! ```
//!
//! (Xu, Crammer and Schuurmans 2006, in the form with C = 1/beta and sample weights: c_i = C times the weight, and all values C times
//! the paper's.) The relaxation, its row losses and the certificate are stated in [`problem::ablation`](crate::problem::ablation). Here:
//!
//! | file | does |
//! |---|---|
//! | `space` | the rows as vectors: x itself, or the rows of a pivoted Cholesky factor of the kernel |
//! | `smoothed` | the smoothed relaxation of W: value, gradient, second derivatives |
//! | `newton` | its minimisation at a given smoothing |
//! | `product`, `precondition` | products with the second derivatives, and the conjugate gradients' preconditioner |
//! | `lower` | the certified bound, and where to go when it is not tight |
//! | `lifted` | the relaxation solved: smoothing taken away, rank adapted |
//! | `interval` | a free intercept: intervals of b |
//! | `bound` | a lower bound around a given decision function |
//! | `branch` | branch and bound |

mod bound;
mod branch;
mod interval;
mod lifted;
mod lower;
mod newton;
mod precondition;
mod product;
mod smoothed;
mod space;

pub use self::bound::{Bound, bound, bound_relaxed};
pub use self::branch::{Branched, branch};

pub(crate) use self::lifted::NOTHING;
use self::lifted::{Goal, Level, Lifted};
use self::space::Space;
use super::{Options, Status};
use crate::control::{Control, Progress};
use crate::error::{Error, Result};
use crate::problem::{KernelFunction, TwoClass};

/// The name of the method that solves the relaxations.
pub const NAME: &str = "lifted-newton";

/// What the leading columns may leave of the features' squared lengths, and the smoothing down to which they serve.
const COARSE: f64 = 3e-3;
const AHEAD_OF_COLUMNS: f64 = 0.03;
/// The same for a sample of the rows.
const AHEAD_OF_ROWS: f64 = 0.1;

/// Fails, by name, where the kernel is not positive semidefinite on the problem's rows. Kernels that always are pass at once; others
/// cost a pivoted Cholesky factor.
pub fn check_semidefinite(problem: &TwoClass, control: &Control) -> Result<()> {
    match problem.kernel {
        KernelFunction::Linear | KernelFunction::Rbf { .. } => Ok(()),
        _ => Space::new(problem, 1e-6, control).map(|_| ()),
    }
}

/// Which relaxation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// The truncated hinge itself: every row may be an outlier at the price c_i.
    Reh,
    /// Robust outlier detection: 1/2 |f|^2 + sum c_i eta_i hinge_i where sum c_i eta_i >= inliers sum c_i.
    Rod {
        /// rho, in (0, 1].
        inliers: f64,
    },
}

/// A relaxation, solved.
#[derive(Debug, Clone)]
pub struct Relaxed {
    /// How much each row counts as an inlier, 0 to 1.
    pub eta: Vec<f64>,
    /// The multipliers, 0 to 1.
    pub alpha: Vec<f64>,
    /// The rows' share of the lift.
    pub sigma: Vec<f64>,
    /// beta_i = c_i eta_i alpha_i y_i: the recovered f = sum_j beta_j k(x_j, .).
    pub expansion: Vec<f64>,
    /// b, 0 without intercept.
    pub intercept: f64,
    /// Value of the relaxation at the point found, in the units of P.
    pub value: f64,
    /// Certified lower bound of that value's minimum; of REH also of the minimum of P.
    pub lower: f64,
    /// The level t: 1 for REH, the price of an outlier for ROD.
    pub multiplier: f64,
    /// Columns of the features: of x, or of the kernel's factor.
    pub rank: usize,
    /// Trace of what the kernel's factor left out, rounding included.
    pub kernel_error: f64,
    /// Columns of W.
    pub columns: usize,
    /// Newton steps.
    pub iterations: usize,
    /// How it ended.
    pub status: Status,
}

/// Solves the relaxation of a two-class problem with the hinge truncated at 0.
///
/// ```
/// use outlast::problem::{Norm, TwoClass};
/// use outlast::solver::{Options, ablation};
/// use outlast::{Control, Dense, KernelFunction, Loss};
///
/// let x = Dense::from_rows(&[[1.0], [1.5], [-1.0], [-1.2], [30.0]]);
/// let problem = TwoClass {
///     norm: Norm::Squared,
///     x: &x,
///     signs: &[1.0, 1.0, -1.0, -1.0, -1.0], // the last label is wrong, and far away
///     caps: &[10.0; 5],
///     loss: Loss::hinge().truncated_at(0.0)?,
///     kernel: &KernelFunction::Linear,
///     intercept: false,
/// };
/// let options = Options { tolerance: 1e-6, ..Options::default() };
/// let relaxed = ablation::relax(&problem, ablation::Rule::Reh, &options, Control::default())?;
/// assert!(relaxed.value - relaxed.lower <= 1e-6 * relaxed.value);
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn relax(problem: &TwoClass, rule: Rule, options: &Options, control: Control) -> Result<Relaxed> {
    if let Rule::Rod { inliers } = rule
        && !(inliers > 0.0 && inliers <= 1.0)
    {
        return Err(Error::parameter("inlier_fraction", inliers, "a number above 0, at most 1"));
    }
    let mut space = Space::new(problem, options.tolerance, &control)?;
    if rule == Rule::Reh {
        space.drop_zero_rows();
    }
    let total: f64 = space.caps.iter().sum();
    let (level, kept) = match rule {
        Rule::Reh => (Level::Given(1.0), Vec::new()),
        Rule::Rod { inliers: 1.0 } => (Level::Given(1.0), vec![true; space.rows()]),
        Rule::Rod { inliers } => (Level::Budget { target: (1.0 - inliers) * total, from: 1.0 }, Vec::new()),
    };
    let (scale, constant) = (space.scale, space.constant);
    let watch = |step: usize, value: f64, lower: f64| {
        let gap = (value - lower) / (value + constant).abs().max(f64::MIN_POSITIVE);
        control.report(Progress { stage: "relaxation", step, objective: (value + constant) * scale, gap });
    };
    let goal = Goal::full(options.tolerance, options.max_iterations);
    if problem.intercept {
        let (lifted, intercept) = interval::solve(&mut space, &kept, level, goal, options.seed, &control, &watch)?;
        return Ok(answer(problem, &space, lifted, intercept));
    }
    let lifted = in_two_spaces(&space, &kept, level, goal, options.seed, &control, &watch)?;
    Ok(answer(problem, &space, lifted, 0.0))
}

/// The relaxation without intercept: down to a small smoothing in a smaller space where there is one, and to the end in the whole.
/// What is left out there changes the solution by no more than that smoothing does.
fn in_two_spaces(
    space: &Space,
    kept: &[bool],
    level: Level,
    goal: Goal,
    seed: u64,
    control: &Control,
    watch: &dyn Fn(usize, f64, f64),
) -> Result<Lifted> {
    let rows = space.all_rows(kept);
    let fewer = || (kept.is_empty()).then(|| space.sampled(seed)).flatten().map(|space| (space, AHEAD_OF_ROWS));
    let Some((small, until)) = space.leading(COARSE).map(|space| (space, AHEAD_OF_COLUMNS)).or_else(fewer) else {
        return lifted::solve(&rows, space.error, level, lifted::start(&rows, seed), goal, control, watch);
    };
    let own = small.all_rows(kept);
    let (m, k) = (space.columns, small.columns);
    let first = Goal { finest: until, certify_from: 0.0, ..goal };
    let ahead = lifted::solve(&own, small.error, level, lifted::start(&own, seed), first, control, &|_, _, _| ())?;
    let mut w = vec![0.0; ahead.columns * m];
    w.chunks_exact_mut(m).zip(ahead.w.chunks_exact(k)).for_each(|(all, some)| all[..k].copy_from_slice(some));
    let level = match level {
        Level::Budget { target, .. } => Level::Budget { target, from: ahead.level },
        given => given,
    };
    let goal = Goal { coarsest: until, steps: goal.steps.saturating_sub(ahead.steps).max(1), ..goal };
    let lifted = lifted::solve(&rows, space.error, level, (w, ahead.columns), goal, control, watch)?;
    Ok(Lifted { steps: lifted.steps + ahead.steps, ..lifted })
}

fn answer(problem: &TwoClass, space: &Space, lifted: Lifted, intercept: f64) -> Relaxed {
    let n = problem.rows();
    let spread = |from: &[f64], other: f64| {
        let mut out = vec![other; n];
        space.origin.iter().zip(from).for_each(|(&row, value)| out[row] = *value);
        out
    };
    let mut expansion = vec![0.0; n];
    for (k, &row) in space.origin.iter().enumerate() {
        let beta = space.caps[k] * lifted.eta[k] * lifted.alpha[k] * space.signs[k];
        expansion[row] = space.leave(beta);
    }
    let intercept = space.leave_intercept(&mut expansion, intercept, problem);
    let lower = if space.unsafe_ridge { 0.0 } else { lifted.lower + space.constant };
    Relaxed {
        eta: spread(&lifted.eta, 1.0),
        alpha: spread(&lifted.alpha, 1.0),
        sigma: spread(&lifted.sigma, 1.0),
        expansion,
        intercept,
        value: (lifted.value + space.constant) * space.scale,
        lower: lower * space.scale,
        multiplier: lifted.level,
        rank: space.columns - usize::from(space.intercept),
        kernel_error: space.kernel_error(),
        columns: lifted.columns,
        iterations: lifted.steps,
        status: if space.unsafe_ridge { Status::Inaccurate } else { lifted.status },
    }
}
