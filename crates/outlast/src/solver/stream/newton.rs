//! Newton's method on the smoothed truncated loss, a pass over the data for every step.
//!
//! The Hessian rho I + H_0 - H_tau may be indefinite: the largest share of H_tau that leaves it definite is kept. Levenberg's damping, in
//! the metric of the columns' second moments, guards directions that no row of a window supports. A step goes no farther than the smoothing
//! can tell; one that does not go down is replaced by the best of a dozen on the same ray, which one pass tells.

use super::sums::{Gram, Sums};
use super::term::pair;
use super::{Shape, Spec, Work};
use crate::error::Result;
use crate::linalg::{Factor, dot};

const SHARES: [f64; 6] = [1.0, 0.9, 0.8, 0.65, 0.5, 0.25];
const LEAST_DAMPING: f64 = 1e-8;
/// Most steps for one width; the convex problem's converge, those of the truncated one become many and small.
const MOST_STEPS: usize = 20;
const MOST_TRUNCATED: usize = 12;
/// Of a capped square, which has no width that falls: all steps are taken here.
const MOST_SMOOTH: usize = 100;
/// Points of a ray.
const RAY: usize = 12;
/// Where derivatives have to be exact: few where they are so after some, and a way to the next width that is not begun too early elsewhere.
const MOST_EXACT: usize = 60;
/// Steps after which it is rounding that is left.
const STUCK: usize = 4;
/// The rounding of values.
const ROUNDING: f64 = 1e-14;
/// Relative decrease that is not worth a pass, of the convex problem and of the truncated one.
const LITTLE: f64 = 1e-7;
const LITTLE_TRUNCATED: f64 = 1e-6;
/// Farthest that scores move in a step, root mean square, and next to the width the distance of a step that is the last.
const TRUST: f64 = 0.5;
const SMALL: f64 = 0.05;
/// How near to the minimum, next to the reach of what is gathered, is near enough.
const CLOSE: f64 = 0.2;

/// What comes after a descent.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Then {
    /// One with a smaller width, whose first pass tells of the last step of this one.
    Narrower,
    /// The rows near a kink are gathered, so many at most: where they end is how near to the minimum it must come.
    Gathering(usize),
    /// Nothing.
    Nothing,
    /// A lower bound is told of the derivatives, which have to be as exact as steps can make them.
    Bound,
}

/// Where a descent has ended.
pub(super) struct Reached {
    pub theta: Vec<f64>,
    /// Those at theta, but where a smaller width follows perhaps those before the last step.
    pub sums: Sums,
    /// Whether no step was worth a pass.
    pub idle: bool,
}

impl Work<'_> {
    /// Lowers the smoothed objective; `sums` are those at `theta`. Where another width follows, no pass is spent on a last step that is
    /// small next to this one, or gains little.
    pub(super) fn descend(&mut self, mut theta: Vec<f64>, mut sums: Sums, width: f64, then: Then) -> Result<Reached> {
        let mut damping = LEAST_DAMPING;
        let smooth = matches!(self.given.spec.shape, Shape::Capped { power: 2.0, .. });
        let (most, little) = match then {
            Then::Bound => (MOST_EXACT, ROUNDING * ROUNDING),
            _ if self.given.spec.ceiling.is_finite() => (MOST_TRUNCATED, LITTLE_TRUNCATED),
            _ if smooth => (MOST_SMOOTH, LITTLE),
            _ => (MOST_STEPS, LITTLE),
        };
        let is_exact = then == Then::Bound;
        let (mut moved, mut idle) = (false, false);
        let (mut least, mut stuck) = (f64::INFINITY, 0);
        for _ in 0..most {
            let value = self.penalty(&theta) + sums.value;
            let Some((direction, slope)) = self.step(&theta, &sums, (width, damping))? else {
                // a function without a row in its window has no curvature of its own
                damping = (1e3 * damping).max(1e-3);
                if damping > 1e3 {
                    break;
                }
                continue;
            };
            if is_exact {
                stuck = if -slope < 0.5 * least { 0 } else { stuck + 1 };
                least = least.min(-slope);
                if least <= ROUNDING * value.abs() && stuck >= STUCK {
                    break;
                }
            }
            let is_little = !(-slope > little.max(0.1 * self.given.little) * value.abs());
            if self.control.out_of_time() || is_little && (is_exact || then == Then::Nothing) {
                break;
            }
            let along =
                |t: f64| -> Vec<f64> { theta.iter().zip(&direction).map(|(theta, step)| theta + t * step).collect() };
            let whole = along(1.0);
            let distance = self.given.movement(&theta, &whole);
            let mut length = (TRUST / distance).min(1.0);
            let mut next_theta = along(length);
            let is_near = distance <= SMALL * width || is_little && distance <= width;
            if then == Then::Narrower && is_near {
                (theta, idle) = (next_theta, is_little && !moved);
                break;
            }
            // rows are gathered next: what counts is how near the minimum is, and not what is gained on the way
            let close = |rows: usize| CLOSE * self.given.half_width(&theta, &sums, rows, width).min(width);
            let is_far = is_little && matches!(then, Then::Gathering(rows) if distance > close(rows));
            if is_little && !is_far {
                idle = !moved;
                break;
            }
            if length < 1.0 && !self.given.spec.ceiling.is_finite() {
                // the way may be long, and a convex function tells how far it leads down
                let steps: Vec<f64> = (0..RAY).map(|k| 0.5f64.powi(k as i32)).collect();
                let values = self.ray(&theta, &whole, &steps, width)?;
                let lowest = (0..RAY).min_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(0);
                length = if values[lowest] < value { steps[lowest] } else { length };
                next_theta = along(length);
            }
            let mut next = self.statistics(&next_theta, width)?;
            let rounding = if is_exact { ROUNDING * value.abs() } else { 0.0 };
            if !(self.penalty(&next_theta) + next.value <= value + 1e-4 * length * slope + rounding) {
                let steps: Vec<f64> = (1..=RAY).map(|k| length * 0.5f64.powi(k as i32)).collect();
                let values = self.ray(&theta, &whole, &steps, width)?;
                let lowest = (0..RAY).min_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(0);
                if !(values[lowest] < value) {
                    damping = (1e3 * damping).max(1e-3);
                    if damping > 1e3 {
                        break;
                    }
                    continue;
                }
                length = steps[lowest];
                next_theta = along(length);
                drop(next);
                next = self.statistics(&next_theta, width)?;
            }
            damping = if length < 0.3 { (10.0 * damping).clamp(1e-4, 1e3) } else { (0.1 * damping).max(LEAST_DAMPING) };
            (theta, sums, moved) = (next_theta, next, true);
            if distance * length <= SMALL * width && length > 0.5 && !smooth && !is_exact {
                break;
            }
        }
        Ok(Reached { theta, sums, idle })
    }

    /// A step, and the decrease that it promises, below 0.
    pub(super) fn step(
        &mut self,
        theta: &[f64],
        sums: &Sums,
        (width, damping): (f64, f64),
    ) -> Result<Option<(Vec<f64>, f64)>> {
        if self.given.spec.wide {
            self.wide_step(theta, sums, (width, damping))
        } else {
            Ok(self.full_step(theta, sums, damping))
        }
    }

    /// The same by matrices.
    fn full_step(&self, theta: &[f64], sums: &Sums, damping: f64) -> Option<(Vec<f64>, f64)> {
        let Some(penalty) = &self.given.separable else {
            let gradient = self.gradient(theta, sums);
            let direction = self.direction(sums, &gradient, damping)?;
            let slope = dot(&gradient, &direction);
            return Some((direction, slope));
        };
        let matrix = self.matrix(sums, damping);
        let target = penalty.step(&self.given.spec, &matrix, &sums.gradient, theta)?;
        let direction: Vec<f64> = target.iter().zip(theta).map(|(target, theta)| target - theta).collect();
        let change = penalty.value(&self.given.spec, &target) - penalty.value(&self.given.spec, theta);
        let slope = dot(&sums.gradient, &direction) + change;
        Some((direction, slope))
    }

    /// The largest share of the curvature that is definite.
    fn matrix(&self, sums: &Sums, damping: f64) -> Vec<f64> {
        let (spec, p) = (&self.given.spec, self.given.spec.order());
        let added = |at: usize| damping * self.given.metric[at % p];
        for share in SHARES.into_iter().filter(|_| !sums.far.is_empty()) {
            let (mut matrix, near) = curvature(spec, sums, share, added);
            pin(spec, &mut matrix, &near);
            if is_strict(spec, &mut matrix, &near) {
                drop(matrix);
                return curvature(spec, sums, share, added).0;
            }
        }
        curvature(spec, sums, 0.0, added).0
    }

    fn gradient(&self, theta: &[f64], sums: &Sums) -> Vec<f64> {
        let p = self.given.spec.order();
        let ridge = |at: usize| if (at + 1).is_multiple_of(p) { 0.0 } else { self.given.spec.ridge * theta[at] };
        sums.gradient.iter().enumerate().map(|(at, g)| g + ridge(at)).collect()
    }

    fn direction(&self, sums: &Sums, gradient: &[f64], damping: f64) -> Option<Vec<f64>> {
        let (spec, size, p) = (&self.given.spec, self.given.spec.size(), self.given.spec.order());
        let negative: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let added = |at: usize| {
            let ridge = if (at + 1).is_multiple_of(p) { 0.0 } else { spec.ridge };
            ridge + damping * self.given.metric[at % p]
        };
        let finite = |direction: Vec<f64>| direction.iter().all(|value| value.is_finite()).then_some(direction);
        for share in SHARES.into_iter().filter(|_| !sums.far.is_empty()) {
            let (mut matrix, near) = curvature(spec, sums, share, added);
            pin(spec, &mut matrix, &near);
            if is_strict(spec, &mut matrix, &near) {
                return Factor::definite(&matrix, size, size).and_then(|factor| finite(factor.solve(&negative)));
            }
        }
        let (mut matrix, near) = curvature(spec, sums, 0.0, added);
        pin(spec, &mut matrix, &near);
        Factor::nearest(&matrix, size, size).and_then(|factor| finite(factor.solve(&negative)))
    }
}

/// H_0 - share H_tau with what is added to the diagonal, and the diagonal without H_tau. One matrix is held, and made again for another share: several
/// would not fit where there are many columns.
fn curvature(spec: &Spec, sums: &Sums, share: f64, added: impl Fn(usize) -> f64) -> (Vec<f64>, Vec<f64>) {
    let size = spec.size();
    let mut matrix = vec![0.0; size * size];
    assemble(spec, &sums.near, 1.0, &mut matrix);
    (0..size).for_each(|at| matrix[at * size + at] += added(at));
    let near = (0..size).map(|at| matrix[at * size + at]).collect();
    if share != 0.0 {
        assemble(spec, &sums.far, -share, &mut matrix);
    }
    (matrix, near)
}

/// Whether a matrix is definite with room to spare.
fn is_strict(spec: &Spec, matrix: &mut [f64], near: &[f64]) -> bool {
    let size = spec.size();
    let diagonal: Vec<f64> = (0..size).map(|at| matrix[at * size + at]).collect();
    (0..size).for_each(|at| matrix[at * size + at] -= margin(spec) * near[at]);
    let strict = Factor::is_definite(matrix, size, size);
    (0..size).for_each(|at| matrix[at * size + at] = diagonal[at]);
    strict
}

/// By how much, next to the part from rows at 0, a Hessian must be definite. Where both parts are of the same rows (capped losses) they cancel to
/// what is meant.
fn margin(spec: &Spec) -> f64 {
    if spec.shape == Shape::Margin { 0.02 } else { 1e-9 }
}

/// The second derivative of the smoothed loss.
#[cfg(test)]
pub(super) fn hessian(spec: &Spec, sums: &Sums) -> Vec<f64> {
    curvature(spec, sums, 1.0, |_| 0.0).0
}

/// Adds a multiple of the Hessian of Gram matrices: sum over pairs (e_a - e_b)(e_a - e_b)' x G_ab; of losses whose functions are apart one of each
/// function, or a single one of all.
fn assemble(spec: &Spec, grams: &[Gram], factor: f64, matrix: &mut [f64]) {
    let (m, p, size) = (spec.functions, spec.order(), spec.size());
    let mut add = |a: usize, b: usize, gram: &Gram, sign: f64| {
        for i in 0..p {
            for j in 0..p {
                matrix[(a * p + i) * size + b * p + j] += sign * factor * gram.at(i, j);
            }
        }
    };
    if spec.shape != Shape::Margin && m > 1 {
        if let [whole] = grams
            && !whole.is_empty()
        {
            (0..size * size).for_each(|at| matrix[at] += factor * whole.at(at / size, at % size));
        } else if grams.len() == m {
            let filled = grams.iter().enumerate().filter(|(_, gram)| !gram.is_empty());
            filled.for_each(|(function, gram)| add(function, function, gram, 1.0));
        }
        return;
    }
    if m == 1 {
        return grams.iter().filter(|gram| !gram.is_empty()).for_each(|gram| add(0, 0, gram, 1.0));
    }
    for a in 0..m {
        for b in a + 1..m {
            let gram = &grams[pair(a, b, m)];
            if !gram.is_empty() {
                add(a, a, gram, 1.0);
                add(b, b, gram, 1.0);
                add(a, b, gram, -1.0);
                add(b, a, gram, -1.0);
            }
        }
    }
}

/// Holds what the loss does not determine: without intercept b = 0, with several of them their sum. `near` is a diagonal.
fn pin(spec: &Spec, matrix: &mut [f64], near: &[f64]) {
    let (m, p, size) = (spec.functions, spec.order(), spec.size());
    let places: Vec<usize> = (0..m).map(|function| function * p + p - 1).collect();
    if !spec.intercept {
        for &at in &places {
            for other in 0..size {
                matrix[at * size + other] = 0.0;
                matrix[other * size + at] = 0.0;
            }
            matrix[at * size + at] = 1.0;
        }
    } else if m > 1 && !matches!(spec.shape, Shape::Capped { .. }) {
        let mean = places.iter().map(|&at| near[at]).sum::<f64>() / m as f64;
        let mean = mean.max(f64::MIN_POSITIVE);
        for &a in &places {
            for &b in &places {
                matrix[a * size + b] += mean / m as f64;
            }
        }
    }
}
