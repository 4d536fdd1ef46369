//! A lower bound of the global minimum around a decision function that some solver found.
//!
//! At a local minimiser of P with margins a_i take, by margin: |a| < 1: alpha = 1, sigma = |a|; a = 1: alpha the dual variable of the
//! support vector machine on the rows kept, sigma = 1; a > 1: 0, 1; a <= -1: 2/(1 - a), 1. The minorants then touch P's terms at f, and f is
//! their stationary point: if H >= 0, f minimises the bound and is a global minimiser of P. In general sigma is raised and alpha
//! scaled down until H >= 0, whatever gives most. The bound is tight under strong regularisation or near separability, and falls to 0 with C -> infinity
//! otherwise.

use super::lower::{Curve, Multipliers, certified};
use super::smoothed::Rows;
use super::space::Space;
use super::{Options, Rule, interval, lifted, relax};
use crate::control::Control;
use crate::error::Result;
use crate::problem::{Candidate, TwoClass};

/// Margins this near 1 count as 1: the dual variable decides.
const AT_ONE: f64 = 1e-3;
/// sigma is raised to these in turn until H >= 0: a row near the truncation bends too much for most ridges.
const FLOORS: [f64; 7] = [0.0, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0];

/// A lower bound beside the objective it belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// No decision function has a smaller objective.
    pub lower: f64,
    /// The candidate's objective.
    pub objective: f64,
    /// Whether the two agree to the tolerance: then the candidate is a global minimiser.
    pub proved: bool,
    /// (objective - lower) / objective
    pub gap: f64,
    /// Trace of what the kernel's factor left out; the bound allows for it.
    pub kernel_error: f64,
}

/// The bound around a candidate; the expansion must hold its dual variables. With an intercept the bound must hold for all b and
/// takes the work of [`relax`]. Without, it is cheap, and [`bound_relaxed`] may give a better one.
///
/// ```
/// use outlast::problem::{Candidate, Norm, TwoClass};
/// use outlast::solver::{Options, ablation, linear};
/// use outlast::{Control, Dense, KernelFunction, Loss};
///
/// let x = Dense::from_rows(&[[1.0], [2.0], [-1.0], [-2.0]]);
/// let problem = TwoClass {
///     norm: Norm::Squared,
///     x: &x,
///     signs: &[1.0, 1.0, -1.0, -1.0],
///     caps: &[1.0; 4],
///     loss: Loss::hinge().truncated_at(0.0)?,
///     kernel: &KernelFunction::Linear,
///     intercept: false,
/// };
/// let options = Options { tolerance: 1e-6, ..Options::default() };
/// let solution = linear::solve(&problem, &options, &Control::default())?;
/// let found = Candidate { expansion: &solution.expansion, weights: solution.weights.as_deref(), intercept: 0.0 };
/// let bound = ablation::bound(&problem, &found, &options, Control::default())?;
/// assert!(bound.proved && bound.lower <= bound.objective);
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn bound(problem: &TwoClass, candidate: &Candidate, options: &Options, control: Control) -> Result<Bound> {
    let objective = problem.objective(candidate);
    if problem.intercept {
        return over_all_intercepts(problem, objective, options, control);
    }
    let mut space = Space::new(problem, options.tolerance, &control)?;
    space.drop_zero_rows();
    let multipliers = multipliers(problem, candidate, &space);
    let rows = Rows { features: space.view(), caps: &space.caps, offsets: &[], kept: &[], ridge: space.ridge };
    let mut lower = f64::NEG_INFINITY;
    for floor in FLOORS {
        control.check()?;
        let raised = Multipliers {
            alpha: multipliers.alpha.clone(),
            sigma: multipliers.sigma.iter().map(|sigma| sigma.max(floor)).collect(),
        };
        let curve = Curve::new(&rows, 1.0, &raised);
        let top = curve.tops(1).0.first().copied().unwrap_or(0.0);
        lower = lower.max(certified(&rows, space.error, 1.0, &raised, &curve, top, f64::INFINITY).0);
        if top <= 1.0 || control.out_of_time() {
            break;
        }
    }
    Ok(judged(&space, objective, lower, options.tolerance))
}

/// The better of [`bound`] and of the relaxation's.
pub fn bound_relaxed(problem: &TwoClass, candidate: &Candidate, options: &Options, control: Control) -> Result<Bound> {
    let near = bound(problem, candidate, options, control)?;
    if near.proved || problem.intercept {
        return Ok(near);
    }
    let relaxed = relax(problem, Rule::Reh, options, control)?;
    let lower = near.lower.max(relaxed.lower).min(near.objective);
    Ok(Bound { lower, ..compared(near.objective, lower, options.tolerance, near.kernel_error) })
}

fn over_all_intercepts(problem: &TwoClass, objective: f64, options: &Options, control: Control) -> Result<Bound> {
    let mut space = Space::new(problem, options.tolerance, &control)?;
    let goal = lifted::Goal::full(options.tolerance, options.max_iterations);
    let level = lifted::Level::Given(1.0);
    let (lifted, _) = interval::solve(&mut space, &[], level, goal, options.seed, &control, &|_, _, _| ())?;
    Ok(judged(&space, objective, lifted.lower, options.tolerance))
}

fn judged(space: &Space, objective: f64, lower: f64, tolerance: f64) -> Bound {
    // no objective is below 0
    let lower = if space.unsafe_ridge { 0.0 } else { ((lower + space.constant) * space.scale).max(0.0) };
    compared(objective, lower.min(objective), tolerance, space.kernel_error())
}

fn compared(objective: f64, lower: f64, tolerance: f64, kernel_error: f64) -> Bound {
    let gap = (objective - lower) / objective.abs().max(f64::MIN_POSITIVE);
    Bound { lower, objective, proved: gap <= tolerance, gap, kernel_error }
}

/// alpha and sigma by margin.
fn multipliers(problem: &TwoClass, candidate: &Candidate, space: &Space) -> Multipliers {
    let f = problem.decision_without_intercept(candidate);
    let row = |&row: &usize| {
        let y = problem.signs[row];
        let a = y * (f[row] + candidate.intercept);
        let dual = y * candidate.expansion[row] / problem.caps[row];
        match a {
            _ if (a - 1.0).abs() <= AT_ONE || (a > 0.5 && dual > 1e-9 && dual < 1.0 - 1e-9) => {
                (dual.clamp(0.0, 1.0), 1.0)
            }
            _ if a > 1.0 => (0.0, 1.0),
            _ if a > -1.0 => (1.0, a.abs().max(1e-12)),
            _ => ((2.0 / (1.0 - a)).min(1.0), 1.0),
        }
    };
    let (alpha, sigma) = space.origin.iter().map(row).unzip();
    Multipliers { alpha, sigma }
}
