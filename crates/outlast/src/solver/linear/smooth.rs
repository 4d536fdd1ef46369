//! Newton's method on the smoothed loss of a level: brings theta near the optimum in a few passes over all rows.
//!
//! The kink of [z]_+ is replaced by a parabola of width delta: slope t(z) = clip(1/2 + z/delta, 0, 1). The truncated loss min([z]_+, tau)
//! becomes psi(z) - psi(z - tau), no longer convex. One fused pass gives margins, value, gradient and the Gram matrices of the rows
//! inside the two windows, H_0 and H_tau; the Hessian is rho I + H_0 - H_tau, of which the largest multiple eta of H_tau that leaves it
//! definite is kept. Levenberg's damping, in the metric of the columns' second moments, guards directions that no window
//! row supports (rare columns). Every step lowers the smoothed value.

use super::level::{Block, GramSum, Level, add};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::{Factor, dot};
use rayon::prelude::*;

const SHARES: [f64; 6] = [1.0, 0.9, 0.8, 0.65, 0.5, 0.25];
const PROBES: usize = 4;
const LEAST_DAMPING: f64 = 1e-6;

/// Shape of the smoothed loss.
#[derive(Debug, Clone, Copy)]
pub(super) struct Smoothing {
    /// delta
    pub width: f64,
    /// tau = 1 - s; infinite for the plain hinge.
    pub ceiling: f64,
}

impl Smoothing {
    fn is_convex(&self) -> bool {
        self.ceiling == f64::INFINITY
    }

    /// psi, its slope, and whether z lies in the window.
    #[inline(always)]
    fn kink(z: f64, width: f64) -> (f64, f64, bool) {
        let t = 0.5 + z / width;
        let slope = t.clamp(0.0, 1.0);
        (width * slope * (t - 0.5 * slope), slope, t > 0.0 && t < 1.0)
    }

    fn value(&self, z: f64) -> f64 {
        let low = Self::kink(z, self.width).0;
        if self.is_convex() { low } else { low - Self::kink(z - self.ceiling, self.width).0 }
    }

    fn slope(&self, z: f64) -> f64 {
        let low = Self::kink(z, self.width).1;
        if self.is_convex() { low } else { low - Self::kink(z - self.ceiling, self.width).1 }
    }
}

/// The smoothed problem at one theta.
pub(super) struct Evaluation {
    value: f64,
    gradient: Vec<f64>,
    near: GramSum,
    far: Option<GramSum>,
}

impl Evaluation {
    /// Random vectors u with E (u'(x, 1))^2 = (x, 1)' H^-1 (x, 1), H = rho I + H_0: how far a row could move its own z, also along
    /// directions that no row of the window supports.
    pub fn probes(&self, level: &Level) -> Vec<Vec<f64>> {
        let (p, stride) = (level.order(), level.stride());
        let mut matrix = self.near.matrix.clone();
        level.add_ridge(&mut matrix);
        let Some(factor) = Factor::nearest(&matrix, stride, p) else { return Vec::new() };
        let mut random = 0x2545_F491_4F6C_DD1Du64;
        let mut sign = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            if random >> 63 == 0 { -1.0 } else { 1.0 }
        };
        (0..PROBES)
            .map(|_| factor.spread(&(0..p).map(|_| sign()).collect::<Vec<f64>>()))
            .filter(|probe| probe.iter().all(|value| value.is_finite()))
            .collect()
    }
}

struct Sums {
    near: GramSum,
    far: Option<GramSum>,
    gradient: Vec<f64>,
    value: f64,
    margins: Vec<f64>,
    factors: Vec<f64>,
}

pub(super) fn evaluate(level: &Level, theta: &[f64], smoothing: Smoothing, z: &mut [f64]) -> Evaluation {
    let p = level.order();
    let d = p - 1;
    let functional = level.functional(theta);
    let convex = smoothing.is_convex();
    let (width, ceiling) = (smoothing.width, smoothing.ceiling);
    let inverse = 1.0 / width;
    let new = || Sums {
        near: GramSum::new(level),
        far: (!convex).then(|| GramSum::new(level)),
        gradient: vec![0.0; p],
        value: 0.0,
        margins: Vec::new(),
        factors: Vec::new(),
    };
    let visit = |block: &Block, z: &mut [f64], sums: &mut Sums| {
        level.margins(block, &functional, &mut sums.margins);
        sums.factors.resize(z.len(), 0.0);
        for k in 0..z.len() {
            let (y, cap, slack) = (block.signs[k], block.caps[k], 1.0 - sums.margins[k]);
            z[k] = slack;
            let t = 0.5 + slack * inverse;
            let mut slope = t.clamp(0.0, 1.0);
            let mut value = slope * (t - 0.5 * slope);
            let near = t > 0.0 && t < 1.0;
            if !convex {
                let t = 0.5 + (slack - ceiling) * inverse;
                let far = t.clamp(0.0, 1.0);
                value -= far * (t - 0.5 * far);
                slope -= far;
                if t > 0.0 && t < 1.0 && cap > 0.0 {
                    let gram = sums.far.as_mut().expect("made for the truncated loss");
                    gram.push(&block.x[k * d..(k + 1) * d], level.unit, cap * inverse);
                }
            }
            if near && cap > 0.0 {
                sums.near.push(&block.x[k * d..(k + 1) * d], level.unit, cap * inverse);
            }
            sums.value += cap * value;
            sums.factors[k] = -cap * slope * y;
        }
        level.add_rows(block, &sums.factors, &mut sums.gradient);
    };
    let mut sums = level.sweep_grams(1 + usize::from(!convex), z, new, visit, |total, part| {
        total.near.merge(part.near);
        if let (Some(total), Some(part)) = (&mut total.far, part.far) {
            total.merge(part);
        }
        add(&mut total.gradient, &part.gradient);
        total.value += part.value;
    });
    sums.near.flush();
    if let Some(far) = &mut sums.far {
        far.flush();
    }
    level.normalise(&mut sums.gradient);
    for j in 0..d {
        sums.gradient[j] += level.ridge * theta[j] + level.linear[j];
    }
    sums.gradient[d] += level.linear[d];
    let affine = level.affine_part(theta);
    Evaluation { value: affine + width * sums.value, gradient: sums.gradient, near: sums.near, far: sums.far }
}

/// What Newton's method did.
pub(super) struct Outcome {
    pub evaluation: Evaluation,
    /// Root mean square change of z from start to end.
    pub moved: f64,
    pub steps: usize,
}

/// When Newton's method ends: a step moved z (with k classes, the scores) by less than `still` (root mean square), or the most steps were taken.
#[derive(Clone, Copy)]
pub(super) struct Stop {
    pub still: f64,
    pub most: usize,
    /// Largest root mean square movement of z in one step on the non-convex loss.
    pub trust: f64,
}

/// Lowers the smoothed objective from `theta`; `z` ends as the slacks there.
pub(super) fn newton(
    level: &Level,
    metric: &[f64],
    theta: &mut Vec<f64>,
    z: &mut Vec<f64>,
    smoothing: Smoothing,
    stop: Stop,
    control: &Control,
) -> Result<Outcome> {
    z.resize(level.rows(), 0.0);
    let mut current = evaluate(level, theta, smoothing, z);
    let first = z.clone();
    let mut next_z = vec![0.0; z.len()];
    let mut damping = LEAST_DAMPING;
    let mut steps = 0;
    while steps < stop.most {
        control.check()?;
        if control.out_of_time() {
            break;
        }
        let Some(direction) = direction(level, metric, &current, damping) else { break };
        let slope = dot(&current.gradient, &direction);
        if !(slope < -1e-15 * current.value.abs()) {
            break;
        }
        steps += 1;
        let trial =
            |t: f64| -> Vec<f64> { theta.iter().zip(&direction).map(|(theta, step)| theta + t * step).collect() };
        let mut next_theta = trial(1.0);
        let mut next = evaluate(level, &next_theta, smoothing, &mut next_z);
        let mut distance = root_mean_square(z, &next_z);
        let too_far = distance > stop.trust;
        let mut length = 1.0;
        if !(next.value <= current.value + 1e-4 * slope) || too_far {
            length = line_search(level, theta, &direction, slope, smoothing, z, &next_z, stop.trust / distance);
            next_theta = trial(length);
            // its matrices are let go before others are made
            drop(next);
            next = evaluate(level, &next_theta, smoothing, &mut next_z);
            distance *= length;
            if !(next.value < current.value) {
                damping = (1e3 * damping).max(1e-3);
                if damping > 1e3 || steps == stop.most {
                    level.slacks(theta, z);
                    break;
                }
                continue;
            }
        }
        damping = if length < 0.5 { (10.0 * damping).clamp(1e-3, 1e3) } else { (0.1 * damping).max(LEAST_DAMPING) };
        *theta = next_theta;
        std::mem::swap(z, &mut next_z);
        let gained = current.value - next.value;
        current = next;
        if (distance <= stop.still && length > 0.5) || gained <= 1e-14 * current.value.abs() {
            break;
        }
    }
    Ok(Outcome { evaluation: current, moved: root_mean_square(&first, z), steps })
}

/// Newton's direction for the largest share of H_tau that keeps the Hessian definite.
fn direction(level: &Level, metric: &[f64], at: &Evaluation, damping: f64) -> Option<Vec<f64>> {
    let (p, stride) = (level.order(), level.stride());
    // made again for every share: no more matrices than needed are held at once
    let near = || {
        let mut near = at.near.matrix.clone();
        level.add_ridge(&mut near);
        (0..p).for_each(|j| near[j * stride + j] += damping * metric[j]);
        near
    };
    let negative: Vec<f64> = at.gradient.iter().map(|g| -g).collect();
    if let Some(far) = at.far.as_ref().filter(|far| far.count > 0) {
        for share in SHARES {
            let mut matrix = near();
            let own: Vec<f64> = (0..p).map(|j| matrix[j * stride + j]).collect();
            // without intercept the last equation is b = 0
            let held = (p - usize::from(!level.intercept)) * stride;
            matrix[..held].iter_mut().zip(&far.matrix).for_each(|(near, far)| *near -= share * far);
            // definite with room to spare
            let diagonal: Vec<f64> = (0..p).map(|j| matrix[j * stride + j]).collect();
            (0..p).for_each(|j| matrix[j * stride + j] -= 0.02 * own[j]);
            let strict = Factor::is_definite(&matrix, stride, p);
            (0..p).for_each(|j| matrix[j * stride + j] = diagonal[j]);
            if strict {
                return Factor::definite(&matrix, stride, p).map(|factor| factor.solve(&negative));
            }
        }
    }
    let direction = Factor::nearest(&near(), stride, p)?.solve(&negative);
    direction.iter().all(|value| value.is_finite()).then_some(direction)
}

/// A step length on the ray z + t (next - z): by secants on the slope for the convex loss, by backtracking for the truncated one.
#[allow(clippy::too_many_arguments)]
fn line_search(
    level: &Level,
    theta: &[f64],
    direction: &[f64],
    slope: f64,
    smoothing: Smoothing,
    z: &[f64],
    next: &[f64],
    longest: f64,
) -> f64 {
    let d = theta.len() - 1;
    let linear = level.ridge * dot(&theta[..d], &direction[..d]) + dot(&level.linear, direction);
    let quadratic = level.ridge * dot(&direction[..d], &direction[..d]);
    if !smoothing.is_convex() {
        let change = |t: f64| {
            t * linear
                + 0.5 * t * t * quadratic
                + sum(z.len(), |k| {
                    let now = smoothing.value(z[k] + t * (next[k] - z[k]));
                    level.caps[k] * (now - smoothing.value(z[k]))
                })
        };
        let mut t = longest.min(1.0);
        for _ in 0..30 {
            if change(t) <= 1e-4 * t * slope {
                break;
            }
            t *= 0.4;
        }
        return t;
    }
    let slope_at = |t: f64| {
        linear
            + t * quadratic
            + sum(z.len(), |k| {
                let step = next[k] - z[k];
                level.caps[k] * smoothing.slope(z[k] + t * step) * step
            })
    };
    let (mut low, mut low_slope, mut high, mut high_slope) = (0.0, slope, 1.0, slope_at(1.0));
    let mut t = 1.0;
    for _ in 0..40 {
        if high_slope <= 0.0 || low_slope >= 0.0 {
            break;
        }
        t = (low * high_slope - high * low_slope) / (high_slope - low_slope);
        // stay clear of the ends, so that the bracket shrinks from both sides
        t = t.clamp(low + 0.05 * (high - low), high - 0.05 * (high - low));
        let here = slope_at(t);
        if here.abs() <= 0.1 * slope.abs() {
            break;
        }
        if here > 0.0 { (high, high_slope) = (t, here) } else { (low, low_slope) = (t, here) }
    }
    t
}

const PIECE: usize = 16384;

/// Sum over rows in fixed pieces, so that it does not depend on the number of threads.
fn sum(rows: usize, term: impl Fn(usize) -> f64 + Sync) -> f64 {
    let piece = |number: usize| (number * PIECE..((number + 1) * PIECE).min(rows)).map(&term).sum::<f64>();
    let parts: Vec<f64> = (0..rows.div_ceil(PIECE)).into_par_iter().map(piece).collect();
    parts.iter().sum()
}

fn root_mean_square(a: &[f64], b: &[f64]) -> f64 {
    (sum(a.len(), |k| (a[k] - b[k]) * (a[k] - b[k])) / a.len().max(1) as f64).sqrt()
}
