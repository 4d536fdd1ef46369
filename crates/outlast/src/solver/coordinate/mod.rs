//! Linear hinge, sparse or with many columns: dual coordinate descent with an exact, unpenalised intercept.
//!
//! ```text
//! min  1/2 |w|^2 + sum_kept c_i [1 - y_i (w'x_i + b)]_+ + sum_truncated c_i [y_i (w'x_i + b) - 1]_+
//! ```
//!
//! In beta (w = X'beta) the dual is min 1/2 |X'beta|^2 - y'beta with sum beta = 0 and boxes 0 <= y beta <= c for kept rows,
//! -c <= y beta <= 0 for truncated ones. Coordinate descent with random permutations and shrinking is that of Hsieh,
//! Chang, Lin, Keerthi and Sundararajan (ICML 2008). What differs:
//!
//! - The constraint sum beta = 0, the intercept's, is met by a proximal-point loop: (b - b0)^2 / (2 rho) is added to the
//!   primal, which makes b = b0 + rho sum(beta), and b0 moves to b whenever the inner problem is solved to the accuracy of
//!   that move. rho starts at the median |x_i|^2, where a typical coordinate step loses half its length, and doubles up to
//!   four times when b0 still moves as fast as before.
//! - Conjugate gradients on the face of free rows (`face`) help where coordinate descent creeps (large C), and where
//!   that is not enough and the smaller side of X is small, an interior point (`interior`) finds the neighbourhood of
//!   the optimum, from where coordinate descent goes on.
//! - It stops on the duality gap of a feasible pair: beta balanced exactly within its boxes, w = X'beta recomputed, b the
//!   exact minimiser for that w.
//!
//! Iterations are counted in passes over the rows. Cost of one: O(non-zeros). Memory: O(n + d). More classes: `many`.

mod blocks;
mod dual;
mod face;
mod intercept;
mod interior;
mod many;

pub use many::solve_many;

use super::majorize::Step;
use super::scaled::Scaled;
use super::truncation::{self, Answer, Convex};
use super::{Options, Solution, Status};
use crate::control::{Control, Progress};
use crate::error::{Error, Result};
use crate::problem::{KernelFunction, TwoClass};
use dual::Dual;

/// The solver's name.
pub const NAME: &str = "linear-dcd";

/// Solves a linear hinge problem, truncated or not.
///
/// ```
/// use outlast::problem::TwoClass;
/// use outlast::solver::{Options, coordinate};
/// use outlast::{Control, Csr, KernelFunction, Loss};
///
/// let x = Csr::new(2, 1_000_000, vec![0, 1, 2], vec![7, 999_999], vec![1.0, 1.0])?;
/// let problem = TwoClass {
///     norm: outlast::problem::Norm::Squared,
///     x: &x,
///     signs: &[1.0, -1.0],
///     caps: &[10.0, 10.0],
///     loss: Loss::hinge(),
///     kernel: &KernelFunction::Linear,
///     intercept: true,
/// };
/// let solution = coordinate::solve(&problem, &Options::default(), &Control::default())?;
/// let w = solution.weights.unwrap();
/// assert!((w[7] - 1.0).abs() < 1e-3 && (w[999_999] + 1.0).abs() < 1e-3);
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn solve(problem: &TwoClass, options: &Options, control: &Control) -> Result<Solution> {
    solve_with(problem, options, control, true)
}

fn solve_with(problem: &TwoClass, options: &Options, control: &Control, shrinking: bool) -> Result<Solution> {
    if !matches!(problem.kernel, KernelFunction::Linear) {
        return Err(Error::parameter("solver", NAME, "another one: linear-dcd needs kernel = linear"));
    }
    if problem.loss.base().is_smooth() {
        return Err(Error::parameter("solver", NAME, "another one: linear-dcd needs loss = hinge"));
    }
    let data = Scaled::new(problem.x, problem.caps);
    let mut solver = Coordinate::new(problem, &data, options, shrinking);
    truncation::solve(problem, options, control, &mut solver, NAME)
}

/// Most passes between two looks at the duality gap.
const PASSES_PER_LOOK: usize = 500;
/// Slack that may be rounding.
const ROUNDING_SLACK: f64 = 1e-8;
/// Passes after which coordinate descent counts as creeping.
const FAIR_TRIAL: usize = 300;
/// Looks without progress after which rounding is blamed.
const PATIENCE: usize = 12;
/// The gap must fall by this factor to count as progress.
const PROGRESS: f64 = 0.9;
/// Or the dual must rise by this share.
const RISE: f64 = 1e-7;

/// A feasible pair with its gap, in scaled units.
#[derive(Clone)]
struct Point {
    /// beta, balanced.
    beta: Vec<f64>,
    weights: Vec<f64>,
    /// w'x_i
    decision: Vec<f64>,
    intercept: f64,
    /// Value of the dual.
    value: f64,
    gap: f64,
}

struct Coordinate<'a> {
    data: &'a Scaled<'a>,
    dual: Dual<'a>,
    /// Caps in scaled units, low enough for every margin to be finite.
    caps: Vec<f64>,
    caller_caps: &'a [f64],
    intercept: bool,
    max_iterations: usize,
    /// Bytes for matrices.
    room: usize,
    point: Point,
    accuracy: f64,
    face: FaceSchedule,
}

/// When to leave coordinate descent for the face, and for how long.
struct FaceSchedule {
    /// Passes to make before the next face step.
    wait: usize,
    passes: usize,
    /// Conjugate-gradient iterations allowed.
    limit: usize,
}

impl<'a> Coordinate<'a> {
    fn new(problem: &'a TwoClass<'a>, data: &'a Scaled<'a>, options: &'a Options, shrinking: bool) -> Self {
        let n = problem.rows();
        let dual = Dual::new(data, problem.signs, problem.intercept, shrinking, options.seed);
        let largest = dual.squares.iter().fold(dual.stiffness, |largest, &square| largest.max(square));
        let most = 1e290 / (largest.max(1.0) * (n as f64 + 1.0).powi(2));
        let caps: Vec<f64> = problem.caps.iter().map(|&cap| data.enter(cap).min(most)).collect();
        let start = options.start.as_ref();
        let beta = match start {
            Some(start) if start.expansion.len() == n => start.expansion.iter().map(|&beta| data.enter(beta)).collect(),
            _ => vec![0.0; n],
        };
        let point = Point {
            beta,
            weights: vec![0.0; data.cols()],
            decision: vec![0.0; n],
            intercept: start.map_or(0.0, |start| start.intercept()),
            value: f64::NEG_INFINITY,
            gap: f64::INFINITY,
        };
        Coordinate {
            data,
            dual,
            caps,
            caller_caps: problem.caps,
            intercept: problem.intercept,
            max_iterations: options.max_iterations,
            room: options.cache_bytes,
            point,
            accuracy: 0.1,
            face: FaceSchedule { wait: 5, passes: 0, limit: 20 },
        }
    }

    /// The boxes of a truncation set.
    fn set_boxes(&mut self, truncated: &[bool]) {
        for row in 0..truncated.len() {
            let up = (self.dual.signs[row] > 0.0) != truncated[row];
            self.dual.lower[row] = if up { 0.0 } else { -self.caps[row] };
            self.dual.upper[row] = if up { self.caps[row] } else { 0.0 };
        }
    }

    /// Coordinate descent and face steps until projected gradients spread by no more than `accuracy`. Returns the passes.
    fn descend(&mut self, accuracy: f64, most: usize, control: &Control) -> Result<usize> {
        let mut passes = 0;
        while passes < most {
            control.check()?;
            if control.out_of_time() {
                break;
            }
            let spread = self.dual.epoch();
            passes += 1;
            self.face.passes += 1;
            if spread <= accuracy {
                if self.dual.live == self.dual.rows.len() {
                    break;
                }
                self.dual.unshrink();
            } else if self.face.passes >= self.face.wait {
                passes += self.face_step();
            }
        }
        Ok(passes)
    }

    /// A face step, and what it teaches about the next one. Returns its cost in passes.
    fn face_step(&mut self) -> usize {
        let step = face::step(&mut self.dual, self.face.limit);
        let cost = step.visited.div_ceil(self.dual.rows.len().max(1));
        if step.long {
            self.face.wait = (self.face.wait / 2).max(2);
            if !step.solved {
                self.face.limit = (2 * self.face.limit).min(5000);
            }
        } else {
            self.face.wait = (2 * self.face.wait).min(64);
        }
        // no more is spent on faces than on epochs, unless faces pay
        self.face.passes = 0;
        if !step.long {
            self.face.wait = self.face.wait.max(cost);
        }
        cost
    }

    /// A feasible pair near the dual's current point, and its gap.
    fn certify(&mut self, truncated: &[bool]) -> Point {
        self.dual.refresh();
        let dual = &self.dual;
        let mut beta = dual.beta.clone();
        let mut weights = dual.weights.clone();
        if self.intercept {
            intercept::balance(&mut beta, &dual.lower, &dual.upper);
            weights = self.data.combine(&beta);
        }
        let decision = self.data.multiply(&weights);
        let intercept = match self.intercept {
            true => intercept::best_intercept(&decision, dual.signs, &dual.lower, &dual.upper),
            false => 0.0,
        };
        let value = dual.signs.iter().zip(&beta).map(|(sign, beta)| sign * beta).sum::<f64>() - half(&weights);
        let mut point = Point { beta, weights, decision, intercept, value, gap: f64::INFINITY };
        let primal = self.primal(&point, truncated);
        let gap = (primal - value) / primal.abs().max(f64::MIN_POSITIVE);
        point.gap = if gap.is_nan() { f64::INFINITY } else { gap };
        self.lengthen(point, truncated, primal)
    }

    /// The convex objective at a point. With the caller's own caps: what was cut off to keep numbers finite must show.
    fn primal(&self, point: &Point, truncated: &[bool]) -> f64 {
        let mut primal = half(&point.weights);
        for row in 0..truncated.len() {
            let slack = 1.0 - self.dual.signs[row] * (point.decision[row] + point.intercept);
            let loss = if truncated[row] { -slack } else { slack }.max(0.0);
            primal += if loss > 0.0 { self.data.enter(self.caller_caps[row]) * loss } else { 0.0 };
        }
        primal
    }

    /// With a huge C, margins short of 1 by a rounding error cost more than all else. If all are that close, a slightly
    /// longer (w, b) puts them beyond 1; it is taken where it is better.
    fn lengthen(&self, point: Point, truncated: &[bool], primal: f64) -> Point {
        let slack = |row: usize| 1.0 - self.dual.signs[row] * (point.decision[row] + point.intercept);
        let kept = (0..truncated.len()).filter(|&row| !truncated[row] && self.caps[row] > 0.0);
        let largest = kept.map(slack).fold(0.0, f64::max);
        if largest == 0.0 || largest >= ROUNDING_SLACK {
            return point;
        }
        let factor = 1.0 + 2.0 * largest;
        let mut longer = point.clone();
        longer.weights.iter_mut().for_each(|w| *w *= factor);
        longer.decision = self.data.multiply(&longer.weights);
        longer.intercept *= factor;
        let longer_primal = self.primal(&longer, truncated);
        if longer_primal < primal {
            longer.gap = (longer_primal - longer.value) / longer_primal.abs().max(f64::MIN_POSITIVE);
            longer
        } else {
            point
        }
    }
}

/// 1/2 |w|^2
fn half(weights: &[f64]) -> f64 {
    0.5 * weights.iter().map(|w| w * w).sum::<f64>()
}

impl Convex<TwoClass<'_>> for Coordinate<'_> {
    type Point = Point;

    fn minimize(&mut self, truncated: &Vec<bool>, tolerance: f64, control: &Control) -> Result<Step> {
        self.set_boxes(truncated);
        let (beta, intercept) = (std::mem::take(&mut self.point.beta), self.point.intercept);
        self.dual.start(&beta, intercept);
        self.point = self.certify(truncated);
        self.accuracy = (16.0 * self.accuracy).min(0.1);
        let (mut passes, mut looks, mut last_move) = (0, 0, None);
        let mut jumped = false;
        let (mut least_gap, mut highest) = (f64::INFINITY, f64::NEG_INFINITY);
        let status = loop {
            if self.point.gap <= tolerance {
                break Status::Converged;
            }
            if passes >= self.max_iterations {
                break Status::IterationLimit;
            }
            if control.out_of_time() {
                break Status::TimeLimit;
            }
            if looks > PATIENCE && passes > FAIR_TRIAL {
                break Status::Inaccurate;
            }
            let fresh = !jumped && passes > FAIR_TRIAL;
            if fresh {
                jumped = true;
                self.jump(tolerance, control)?;
            }
            let most = PASSES_PER_LOOK.min(self.max_iterations - passes);
            // where an interior point ended is looked at as it is
            let taken = if fresh { 0 } else { self.descend(self.accuracy, most, control)? };
            passes += taken;
            let point = self.certify(truncated);
            control.report(Progress { stage: NAME, step: passes, objective: f64::NAN, gap: point.gap });
            let rises = point.value > highest + RISE * highest.abs() || highest == f64::NEG_INFINITY;
            looks = if point.gap < PROGRESS * least_gap || rises { 0 } else { looks + 1 };
            least_gap = least_gap.min(point.gap);
            highest = highest.max(point.value);
            if point.gap < self.point.gap {
                self.point = point;
            }
            let moved = self.move_centre(&mut last_move);
            if taken < PASSES_PER_LOOK {
                self.accuracy = (0.1 * moved).clamp(0.1 * self.accuracy, 0.5 * self.accuracy).max(1e-15);
            }
        };
        Ok(Step { gap: self.point.gap, iterations: passes, status })
    }

    fn decision(&self) -> Vec<f64> {
        self.point.decision.iter().map(|f| f + self.point.intercept).collect()
    }

    fn penalty(&self) -> f64 {
        0.5 * self.point.weights.iter().map(|&w| self.data.leave_weight(w).powi(2)).sum::<f64>()
    }

    fn point(&self) -> Point {
        self.point.clone()
    }

    /// A step that did not go down ended at a dual point whose bound holds for the point we return to as well, and is
    /// tighter there: P(f) < P(f+) <= M(f+). So beta and the gap stay.
    fn go_to(&mut self, point: &Point) {
        self.point.weights.clone_from(&point.weights);
        self.point.decision.clone_from(&point.decision);
        self.point.intercept = point.intercept;
    }

    fn answer(&self) -> Answer {
        let fit = |(&beta, &cap): (&f64, &f64)| self.data.leave(beta).clamp(-cap, cap);
        Answer {
            expansion: self.point.beta.iter().zip(self.caller_caps).map(fit).collect(),
            weights: Some(self.point.weights.iter().map(|&w| self.data.leave_weight(w)).collect()),
            intercepts: vec![self.point.intercept],
        }
    }
}

impl Coordinate<'_> {
    /// Moves the dual to where an interior point ends, if the problem is small enough for one.
    fn jump(&mut self, tolerance: f64, control: &Control) -> Result<()> {
        if !interior::is_affordable(self.dual.rows.len(), self.data.cols(), self.room) {
            return Ok(());
        }
        if let Some((beta, b)) = interior::solve(&self.dual, self.intercept, 0.1 * tolerance, control)? {
            self.dual.start(&beta, b);
            self.accuracy = self.accuracy.min(tolerance);
        }
        Ok(())
    }

    /// One proximal step of b, lengthened by the secant through the last two where they make a trustworthy one: the move
    /// falls with b0 and vanishes at the optimal b. Returns the length of the plain step, 0 without intercept.
    fn move_centre(&mut self, last: &mut Option<(f64, f64)>) -> f64 {
        if !self.intercept {
            return 0.0;
        }
        let centre = self.dual.centre;
        let moved = self.dual.intercept() - centre;
        let mut next = centre + moved;
        if let Some((old_centre, old_moved)) = *last {
            let slope = (moved - old_moved) / (centre - old_centre);
            if slope < -0.05 && slope > -1.0 && moved.abs() > 4.0 * self.accuracy {
                next = centre - moved / slope;
            }
            if moved.abs() > 0.5 * old_moved.abs() {
                self.dual.stiffen();
            }
        }
        *last = Some((centre, moved));
        self.dual.centre = next;
        self.dual.unshrink();
        moved.abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;
    use crate::problem::{Loss, Norm};

    #[test]
    fn shrinking_changes_nothing() {
        let mut random = dual::Random(3);
        let mut uniform = || random.uniform();
        let (n, d) = (200, 12);
        let signs: Vec<f64> = (0..n).map(|row| if row % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let values: Vec<f64> = (0..n * d).map(|k| uniform() - 0.5 + 0.2 * signs[k / d]).collect();
        let x = Dense::new(n, d, values).unwrap();
        for (c, loss) in [(0.1, Loss::hinge()), (10.0, Loss::hinge()), (1.0, Loss::hinge().truncated_at(-0.5).unwrap())]
        {
            let caps = vec![c; n];
            let kernel = KernelFunction::Linear;
            let problem = TwoClass {
                norm: Norm::Squared,
                x: &x,
                signs: &signs,
                caps: &caps,
                loss,
                kernel: &kernel,
                intercept: true,
            };
            let options = Options { tolerance: 1e-9, ..Options::default() };
            let on = solve_with(&problem, &options, &Control::default(), true).unwrap();
            let off = solve_with(&problem, &options, &Control::default(), false).unwrap();
            assert!(on.status.is_converged() && off.status.is_converged());
            assert!(on.objective > 0.0 && on.expansion.iter().any(|beta| *beta != 0.0));
            assert!((on.objective - off.objective).abs() <= 1e-7 * on.objective, "C = {c}");
        }
    }
}
