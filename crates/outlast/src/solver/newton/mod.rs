//! Smooth losses, logistic and exponential, linear or with a kernel: Newton's method.
//!
//! ```text
//! min  1/2 |f|^2 + sum_kept c_i l(y_i (f(x_i) + b))
//! ```
//!
//! A truncated row costs c l(s), a constant, which is the tightest bound of min(l(u), l(s)) there: it is dropped.
//!
//! | space | unknowns | linear systems |
//! |---|---|---|
//! | linear | w, d of them | Cholesky of I + X'WX up to 1,000 columns, else conjugate gradients |
//! | kernel | beta, n of them | Cholesky of I + W^1/2 K W^1/2 up to 2,000 rows, else conjugate gradients |
//!
//! The intercept is unpenalised and exact. It stops on the relative duality gap; the dual point of an iterate is
//! beta_i = -c_i y_i l'(u_i). Usually 5 to 15 Newton steps, fewer from a warm start. The linear space works in units that
//! suit floating point, so the scale of the data does not matter.

mod descent;
mod gram;
mod kernel;
mod linear;
mod rows;

pub use gram::{Gram, Stored, Streamed, Tiled};

use super::majorize::Step;
use super::scaled::Scaled;
use super::truncation::{self, Answer, Convex};
use super::{Options, Solution, Status};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::problem::{KernelFunction, TwoClass};
use descent::Space;
use kernel::Kernel;
use linear::Linear;
use rows::Rows;

/// The solver's name.
pub const NAME: &str = "newton";

/// Most Newton steps for one convex problem. A damped step moves a margin by about 1 at least, so problems that need more
/// have optima hundreds of units away.
const MOST_STEPS: usize = 1000;

/// Largest c |x|^2 worked with. Beyond it the penalty is below the rounding of the loss by more than its square, no gap can
/// be certified, and the minimiser is that of this value; the status says `Inaccurate`.
pub(super) const STEEPEST: f64 = 1e40;

/// Solves a problem with a smooth loss, truncated or not.
///
/// ```
/// use outlast::problem::TwoClass;
/// use outlast::solver::{Options, newton};
/// use outlast::{Control, Dense, KernelFunction, Loss};
///
/// let x = Dense::from_rows(&[[0.0], [1.0], [2.0], [3.0]]);
/// let problem = TwoClass {
///     norm: outlast::problem::Norm::Squared,
///     x: &x,
///     signs: &[-1.0, -1.0, 1.0, 1.0],
///     caps: &[1.0; 4],
///     loss: Loss::logistic(),
///     kernel: &KernelFunction::Linear,
///     intercept: true,
/// };
/// let solution = newton::solve(&problem, &Options::default(), &Control::default())?;
/// // by symmetry the boundary lies in the middle, at 1.5
/// assert!((solution.intercept() + 1.5 * solution.weights.unwrap()[0]).abs() < 1e-9);
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn solve(problem: &TwoClass, options: &Options, control: &Control) -> Result<Solution> {
    check(problem)?;
    if let KernelFunction::Linear = problem.kernel {
        return solve_linear(problem, options, control);
    }
    let n = problem.rows();
    if n.saturating_mul(n).saturating_mul(8) <= options.cache_bytes {
        solve_with_gram(problem, &Stored::new(problem.x, problem.kernel), options, control)
    } else {
        // f32 tiles where their error stays well below the gap asked for
        let tiled =
            if options.tolerance >= TILED { Tiled::new(problem.x, problem.kernel, options.cache_bytes) } else { None };
        match tiled {
            Some(tiled) => solve_with_gram(problem, &tiled, options, control),
            None => solve_with_gram(problem, &Streamed { x: problem.x, kernel: problem.kernel }, options, control),
        }
    }
}

/// Relative gaps from which kernel values in f32 will do.
const TILED: f64 = 1e-5;

/// As [`solve`] in the expansion of any kernel, with the products K v supplied by the caller.
pub fn solve_with_gram(problem: &TwoClass, gram: &dyn Gram, options: &Options, control: &Control) -> Result<Solution> {
    check(problem)?;
    if gram.rows() != problem.rows() {
        let found = format!("{} rows", gram.rows());
        return Err(Error::shape("the kernel matrix", found, format!("{}, one per label", problem.rows())));
    }
    let start = options.start.as_ref();
    let space = Kernel::new(gram, start.map(|start| start.expansion.clone()));
    let mut solver = Newton {
        space,
        rows: Rows { base: problem.loss.base(), signs: problem.signs, caps: vec![0.0; problem.rows()] },
        caps: problem.caps.to_vec(),
        lowered: false,
        intercept: problem.intercept,
        b: start.map_or(0.0, |start| start.intercept()),
        max_iterations: options.max_iterations,
    };
    truncation::solve(problem, options, control, &mut solver, NAME)
}

fn solve_linear(problem: &TwoClass, options: &Options, control: &Control) -> Result<Solution> {
    let data = Scaled::new(problem.x, problem.caps);
    let start = options.start.as_ref();
    let weights = start.and_then(|start| start.weights.as_ref());
    let weights = weights.map(|weights| weights.iter().map(|&w| data.enter_weight(w)).collect());
    let most = STEEPEST / (0..data.rows()).map(|row| data.squared_norm(row)).fold(1.0, f64::max);
    let caps: Vec<f64> = problem.caps.iter().map(|&cap| data.enter(cap)).collect();
    let mut solver = Newton {
        space: Linear::new(&data, weights),
        rows: Rows { base: problem.loss.base(), signs: problem.signs, caps: vec![0.0; problem.rows()] },
        lowered: caps.iter().any(|&cap| cap > most),
        caps: caps.iter().map(|cap| cap.min(most)).collect(),
        intercept: problem.intercept,
        b: start.map_or(0.0, |start| start.intercept()),
        max_iterations: options.max_iterations,
    };
    truncation::solve(problem, options, control, &mut solver, NAME)
}

fn check(problem: &TwoClass) -> Result<()> {
    if problem.loss.base().is_smooth() {
        Ok(())
    } else {
        Err(Error::parameter("solver", NAME, "another one: newton needs loss = logistic or exponential"))
    }
}

struct Newton<'a, S> {
    space: S,
    rows: Rows<'a>,
    caps: Vec<f64>,
    /// Whether caps were lowered to [`STEEPEST`].
    lowered: bool,
    intercept: bool,
    b: f64,
    max_iterations: usize,
}

impl<S: Space> Newton<'_, S> {
    fn descend(&mut self, truncated: &[bool], tolerance: f64, control: &Control) -> Result<Step> {
        for (row, cap) in self.rows.caps.iter_mut().enumerate() {
            *cap = if truncated[row] { 0.0 } else { self.caps[row] };
        }
        if !self.intercept {
            self.b = 0.0;
        }
        let limits = (tolerance, self.max_iterations.min(MOST_STEPS));
        let mut step = descent::minimize(&mut self.space, &self.rows, self.intercept, &mut self.b, limits, control)?;
        if self.lowered && step.status == Status::Converged {
            step = Step { gap: f64::INFINITY, status: Status::Inaccurate, ..step };
        }
        Ok(step)
    }

    fn decision_with_intercept(&self) -> Vec<f64> {
        self.space.decision().iter().map(|f| f + self.b).collect()
    }
}

impl Convex<TwoClass<'_>> for Newton<'_, Linear<'_>> {
    type Point = (Vec<f64>, f64);

    fn minimize(&mut self, truncated: &Vec<bool>, tolerance: f64, control: &Control) -> Result<Step> {
        self.descend(truncated, tolerance, control)
    }

    fn decision(&self) -> Vec<f64> {
        self.decision_with_intercept()
    }

    fn penalty(&self) -> f64 {
        let data = self.space.data;
        0.5 * self.space.weights.iter().map(|&w| data.leave_weight(w).powi(2)).sum::<f64>()
    }

    fn point(&self) -> Self::Point {
        (self.space.weights.clone(), self.b)
    }

    /// The expansion stays: it certifies the point we return to at least as well as the one we leave.
    fn go_to(&mut self, (weights, b): &Self::Point) {
        self.space.set_weights(weights.clone());
        self.b = *b;
    }

    fn answer(&self) -> Answer {
        let data = self.space.data;
        Answer {
            expansion: self.space.expansion.iter().map(|&beta| data.leave(beta)).collect(),
            weights: Some(self.space.weights.iter().map(|&w| data.leave_weight(w)).collect()),
            intercepts: vec![self.b],
        }
    }
}

impl Convex<TwoClass<'_>> for Newton<'_, Kernel<'_>> {
    type Point = (Vec<f64>, f64);

    fn minimize(&mut self, truncated: &Vec<bool>, tolerance: f64, control: &Control) -> Result<Step> {
        self.descend(truncated, tolerance, control)
    }

    fn decision(&self) -> Vec<f64> {
        self.decision_with_intercept()
    }

    fn penalty(&self) -> f64 {
        self.space.half_norm()
    }

    fn point(&self) -> Self::Point {
        (self.space.beta.clone(), self.b)
    }

    fn go_to(&mut self, (beta, b): &Self::Point) {
        self.space.set_beta(beta.clone());
        self.b = *b;
    }

    fn answer(&self) -> Answer {
        Answer { expansion: self.space.beta.clone(), weights: None, intercepts: vec![self.b] }
    }
}
