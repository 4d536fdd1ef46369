//! Newton's method on the smoothed loss of a level with k classes.
//!
//! The largest of a_l = f_l + o_l is smoothed by a quadratic on the simplex,
//!
//! ```text
//! psi(a) = max over t in the simplex of  t.a - delta/2 (|t|^2 - 1),      t = projection of a / delta on the simplex,
//! ```
//!
//! which is max a where the largest leads by delta. Its Hessian, (I_S - 11'/|S|) / delta on the support S of t, is the Laplacian
//! of the complete graph on S. With L(u) = max_l (f_l + u o_l) the truncated loss min([z]_+, tau) is L(1) - L(1 - tau), and both are
//! smoothed alike. One fused pass gives scores, value, gradient and the Gram matrices of the rows inside the two
//! windows; the Hessian is rho I + H_near - eta H_far with the largest eta that keeps it definite. Directions that no window row
//! supports (rare columns) are guarded by a share lambda of H_tail, in which a row that leads by r > delta has the weight c / (2 r): the
//! curvature of the parabola that bounds its kink from above, with which (lambda = 1) no step goes beyond the kinks it should
//! not pass. Every step lowers the smoothed value.

pub(super) use super::super::smooth::Stop;
use super::level::{Block, Level, PairGrams, Side, add};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::{Factor, dot};
use rayon::prelude::*;

const SHARES: [f64; 5] = [1.0, 0.9, 0.75, 0.5, 0.25];
const PROBES: usize = 4;
/// Shares of H_tail: where Newton's method begins, and their range. Beyond 1 steps are shorter than the bound asks for.
const FIRST_DAMPING: f64 = 0.1;
const DAMPING_RANGE: (f64, f64) = (1e-3, 30.0);
/// Share of H_tail in the leverage.
const LEVERAGE_SHARE: f64 = 0.1;

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
}

/// psi and its weights t; `support` lists the classes of positive weight.
#[inline]
fn soft_max(a: &[f64], width: f64, weights: &mut [f64], support: &mut Vec<usize>) -> (f64, Lead) {
    let (best, next) = two_largest(a);
    let (top, second) = (a[best], a[next]);
    weights.fill(0.0);
    support.clear();
    if !(top - second < width) {
        weights[best] = 1.0;
        support.push(best);
        return (top, Some((best, next, top - second)));
    }
    // only classes within delta of the top can have weight
    support.extend((0..a.len()).filter(|&class| a[class] > top - width));
    support.sort_unstable_by(|&i, &j| a[j].total_cmp(&a[i]));
    let (mut sum, mut threshold, mut count) = (0.0, 0.0, 0);
    for (at, &class) in support.iter().enumerate() {
        sum += a[class] - top;
        let next = (sum - width) / (at + 1) as f64;
        if a[class] - top <= next {
            break;
        }
        (threshold, count) = (next, at + 1);
    }
    support.truncate(count);
    let (mut mean, mut squares) = (0.0, 0.0);
    for &class in support.iter() {
        let weight = (a[class] - top - threshold) / width;
        weights[class] = weight;
        mean += weight * (a[class] - top);
        squares += weight * weight;
    }
    (top + mean + 0.5 * width * (1.0 - squares), None)
}

/// The two largest and the lead of the first, where that is at least delta.
type Lead = Option<(usize, usize, f64)>;

/// Scratch for one row.
struct Scratch {
    a: Vec<f64>,
    near: Vec<f64>,
    far: Vec<f64>,
    near_support: Vec<usize>,
    far_support: Vec<usize>,
    /// Of the row's kept maximum.
    lead: Lead,
    /// The largest and the row's own class, if that is neither first nor second nor within delta.
    behind: Lead,
}

impl Scratch {
    fn new(k: usize) -> Scratch {
        let zeros = || vec![0.0; k];
        Scratch {
            a: zeros(),
            near: zeros(),
            far: zeros(),
            near_support: Vec::new(),
            far_support: Vec::new(),
            lead: None,
            behind: None,
        }
    }

    /// The smoothed loss of a row at f; `near` becomes its gradient.
    #[inline]
    fn row(&mut self, level: &Level, smoothing: Smoothing, code: u32, f: &[f64]) -> f64 {
        let own = code as usize;
        self.a.copy_from_slice(f);
        level.augment(code, &mut self.a);
        let (mut value, lead) = soft_max(&self.a, smoothing.width, &mut self.near, &mut self.near_support);
        self.lead = lead;
        let (first, second) = (self.near_support[0], self.lead.map_or(own, |(_, second, _)| second));
        let distance = self.a[first] - self.a[own];
        let third = own != first && own != second && distance > smoothing.width;
        self.behind = third.then_some((first, own, distance));
        if smoothing.is_convex() {
            if level.side == Side::Margin {
                value -= f[own];
                self.near[own] -= 1.0;
            }
            return value;
        }
        let offset = 1.0 - smoothing.ceiling;
        match level.side {
            Side::Margin => {
                self.a.iter_mut().zip(f).for_each(|(a, f)| *a = f + offset);
                self.a[own] = f[own];
            }
            Side::Cost => self.a[own] = f[own] + offset,
        }
        value -= soft_max(&self.a, smoothing.width, &mut self.far, &mut self.far_support).0;
        self.near.iter_mut().zip(&self.far).for_each(|(near, far)| *near -= far);
        // a truncated row has no kink to keep away from
        if level.slack(code, f) > smoothing.ceiling {
            (self.lead, self.behind) = (None, None);
        }
        value
    }
}

fn push(grams: &mut PairGrams, support: &[usize], x: &[f64], weight: f64) {
    for (at, &i) in support.iter().enumerate() {
        for &j in &support[..at] {
            grams.push(i.min(j), i.max(j), x, weight / support.len() as f64);
        }
    }
}

/// The smoothed problem at one theta.
pub(super) struct Evaluation {
    value: f64,
    gradient: Vec<f64>,
    near: PairGrams,
    far: PairGrams,
    tail: PairGrams,
}

struct Sums {
    near: PairGrams,
    far: PairGrams,
    tail: PairGrams,
    gradient: Vec<f64>,
    value: f64,
    scratch: Scratch,
    factors: Vec<f64>,
    column: Vec<f64>,
}

/// Evaluates at theta; `f` (rows x classes) becomes the scores.
pub(super) fn evaluate(level: &Level, theta: &[f64], smoothing: Smoothing, f: &mut [f64]) -> Evaluation {
    let (k, d) = (level.classes, level.x.cols());
    let functional = level.functional(theta);
    let convex = smoothing.is_convex();
    let inverse = 1.0 / smoothing.width;
    let new = || Sums {
        near: PairGrams::new(level),
        far: PairGrams::new(level),
        tail: PairGrams::new(level),
        gradient: vec![0.0; level.size()],
        value: 0.0,
        scratch: Scratch::new(k),
        factors: Vec::new(),
        column: Vec::new(),
    };
    let visit = |block: &Block, f: &mut [f64], sums: &mut Sums| {
        level.scores(block, &functional, &mut sums.column, f);
        sums.factors.clear();
        sums.factors.resize(f.len(), 0.0);
        for (row, f) in f.chunks_exact(k).enumerate() {
            let cap = block.caps[row];
            if cap == 0.0 {
                continue;
            }
            sums.value += cap * sums.scratch.row(level, smoothing, block.codes[row], f);
            let factors = &mut sums.factors[row * k..(row + 1) * k];
            factors.iter_mut().zip(&sums.scratch.near).for_each(|(factor, slope)| *factor = cap * slope);
            let x = &block.x[row * d..(row + 1) * d];
            if sums.scratch.near_support.len() > 1 {
                push(&mut sums.near, &sums.scratch.near_support, x, cap * inverse);
            } else if let Some((a, b, lead)) = sums.scratch.lead {
                sums.tail.push(a.min(b), a.max(b), x, 0.5 * cap / lead);
            }
            if let Some((top, own, lead)) = sums.scratch.behind {
                sums.tail.push(top.min(own), top.max(own), x, 0.5 * cap / lead);
            }
            if !convex && sums.scratch.far_support.len() > 1 {
                push(&mut sums.far, &sums.scratch.far_support, x, cap * inverse);
            }
        }
        level.add_rows(block, &sums.factors, &mut sums.column, &mut sums.gradient);
    };
    let mut sums = level.sweep(k, f, new, visit, |total, part| {
        total.near.merge(part.near);
        total.far.merge(part.far);
        total.tail.merge(part.tail);
        add(&mut total.gradient, &part.gradient);
        total.value += part.value;
    });
    sums.near.flush();
    sums.far.flush();
    sums.tail.flush();
    level.normalise(&mut sums.gradient);
    add(&mut sums.gradient, &level.affine_gradient(theta));
    if !level.intercept {
        sums.gradient.chunks_exact_mut(d + 1).for_each(|row| row[d] = 0.0);
    }
    let value = level.affine_part(theta) + sums.value;
    Evaluation { value, gradient: sums.gradient, near: sums.near, far: sums.far, tail: sums.tail }
}

impl Evaluation {
    /// rho I + H_near + share H_tail
    fn damped(&self, level: &Level, share: f64) -> Vec<f64> {
        let mut matrix = vec![0.0; level.size() * level.size()];
        self.near.assemble(level.order(), 1.0, &mut matrix);
        self.tail.assemble(level.order(), share, &mut matrix);
        level.add_ridge(&mut matrix);
        matrix
    }

    /// How far each row could move the difference of its two largest scores by its own weight: c (e_a - e_b)'H^-1 (e_a - e_b)
    /// x (x, 1), estimated by random vectors of covariance H^-1, H = rho I + H_near + a share of H_tail. Large where no row of the window supports
    /// a row's columns.
    pub fn leverage(&self, level: &Level, f: &[f64]) -> Vec<f32> {
        let k = level.classes;
        let Some(factor) = level.factor(&self.damped(level, LEVERAGE_SHARE)) else { return vec![0.0; level.rows()] };
        let mut random = 0x2545_F491_4F6C_DD1Du64;
        let mut sign = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            if random >> 63 == 0 { -1.0 } else { 1.0 }
        };
        let probes: Vec<_> = (0..PROBES)
            .map(|_| factor.spread(&(0..level.size()).map(|_| sign()).collect::<Vec<f64>>()))
            .filter(|probe| probe.iter().all(|value| value.is_finite()))
            .map(|probe| level.functional(&probe))
            .collect();
        let mut leverage = vec![0.0f32; level.rows()];
        type Memory = (Vec<f64>, Vec<f64>, Vec<f64>);
        let visit = |block: &Block, out: &mut [f32], (moves, column, a): &mut Memory| {
            moves.resize(out.len() * k, 0.0);
            for probe in &probes {
                level.scores(block, probe, column, moves);
                for (row, out) in out.iter_mut().enumerate() {
                    a.clear();
                    a.extend_from_slice(&f[(block.first + row) * k..][..k]);
                    level.augment(block.codes[row], a);
                    let (first, second) = two_largest(a);
                    let moved = moves[row * k + first] - moves[row * k + second];
                    *out += (block.caps[row] * moved * moved / PROBES as f64) as f32;
                }
            }
        };
        level.sweep(1, &mut leverage, || (Vec::new(), Vec::new(), Vec::new()), visit, |_, _| ());
        leverage
    }
}

/// The classes of the largest and the second largest score.
#[inline]
pub(super) fn two_largest(a: &[f64]) -> (usize, usize) {
    let (mut first, mut second) = if a[1] > a[0] { (1, 0) } else { (0, 1) };
    for class in 2..a.len() {
        if a[class] > a[first] {
            (first, second) = (class, first);
        } else if a[class] > a[second] {
            second = class;
        }
    }
    (first, second)
}

/// What Newton's method did.
pub(super) struct Outcome {
    pub evaluation: Evaluation,
    /// Root mean square change of a difference of two scores from start to end.
    pub moved: f64,
    pub steps: usize,
}

/// Lowers the smoothed objective from `theta`; `f` ends as the scores there.
pub(super) fn newton(
    level: &Level,
    metric: &[f64],
    theta: &mut Vec<f64>,
    f: &mut Vec<f64>,
    smoothing: Smoothing,
    stop: Stop,
    control: &Control,
) -> Result<Outcome> {
    let k = level.classes;
    f.resize(level.rows() * k, 0.0);
    let mut current = evaluate(level, theta, smoothing, f);
    let first = theta.clone();
    let mut next_f = vec![0.0; f.len()];
    let mut damping = FIRST_DAMPING;
    let mut steps = 0;
    while steps < stop.most {
        control.check()?;
        if control.out_of_time() {
            break;
        }
        let Some(direction) = direction(level, &current, damping) else { break };
        let slope = dot(&current.gradient, &direction);
        if !(slope < -1e-15 * current.value.abs()) {
            break;
        }
        steps += 1;
        let trial =
            |t: f64| -> Vec<f64> { theta.iter().zip(&direction).map(|(theta, step)| theta + t * step).collect() };
        let mut next_theta = trial(1.0);
        let mut next = evaluate(level, &next_theta, smoothing, &mut next_f);
        let mut distance = movement(f, &next_f, k);
        let mut length = 1.0;
        if !(next.value <= current.value + 1e-4 * slope) || distance > stop.trust {
            let ray = Ray { level, smoothing, f, next: &next_f };
            length = ray.search(theta, &direction, slope, stop.trust / distance);
            next_theta = trial(length);
            next = evaluate(level, &next_theta, smoothing, &mut next_f);
            distance *= length;
            if !(next.value < current.value) {
                if damping == DAMPING_RANGE.1 {
                    break;
                }
                damping = (10.0 * damping).min(DAMPING_RANGE.1);
                continue;
            }
        }
        damping *= if length < 0.1 {
            10.0
        } else if length < 0.7 {
            3.0
        } else {
            0.3
        };
        damping = damping.clamp(DAMPING_RANGE.0, DAMPING_RANGE.1);
        *theta = next_theta;
        std::mem::swap(f, &mut next_f);
        let gained = current.value - next.value;
        current = next;
        if (distance <= stop.still && length > 0.5) || gained <= 1e-14 * current.value.abs() {
            break;
        }
    }
    let change: Vec<f64> = theta.iter().zip(&first).map(|(a, b)| a - b).collect();
    Ok(Outcome { evaluation: current, moved: spread(level, metric, &change), steps })
}

/// Root mean square of the difference of two scores of a theta, from the columns' moments (columns taken as uncorrelated).
fn spread(level: &Level, metric: &[f64], theta: &[f64]) -> f64 {
    let p = level.order();
    let weight = metric[p - 1].max(f64::MIN_POSITIVE);
    let sum: f64 = theta.iter().enumerate().map(|(at, value)| metric[at % p] * value * value).sum();
    (2.0 * sum / weight / level.classes as f64).sqrt()
}

/// Root mean square difference of two scores between two points.
fn movement(f: &[f64], next: &[f64], k: usize) -> f64 {
    let squares = sum(f.len(), |at| (f[at] - next[at]) * (f[at] - next[at]));
    (2.0 * squares / (f.len() as f64).max(k as f64)).sqrt()
}

/// Newton's direction for the largest share of H_far that keeps the Hessian definite.
fn direction(level: &Level, at: &Evaluation, damping: f64) -> Option<Vec<f64>> {
    let (p, size) = (level.order(), level.size());
    let near = at.damped(level, damping);
    let negative: Vec<f64> = at.gradient.iter().map(|g| -g).collect();
    if !at.far.is_empty() {
        let mut far = vec![0.0; size * size];
        at.far.assemble(p, 1.0, &mut far);
        if !level.intercept {
            (1..=level.classes).for_each(|class| level.release(&mut far, class * p - 1, 0.0));
        }
        for share in SHARES {
            let matrix: Vec<f64> = near.iter().zip(&far).map(|(near, far)| near - share * far).collect();
            // definite with room to spare
            let mut strict = matrix.clone();
            for row in 0..size {
                strict[row * size + row] -= 0.02 * near[row * size + row];
            }
            if Factor::definite(&strict, size, size).is_some() {
                return Factor::definite(&matrix, size, size).map(|factor| factor.solve(&negative));
            }
        }
    }
    let direction = level.factor(&near)?.solve(&negative);
    direction.iter().all(|value| value.is_finite()).then_some(direction)
}

/// The line f + t (next - f).
struct Ray<'a> {
    level: &'a Level<'a>,
    smoothing: Smoothing,
    f: &'a [f64],
    next: &'a [f64],
}

impl Ray<'_> {
    /// A step length: by secants on the slope for the convex loss, by backtracking for the truncated one.
    fn search(&self, theta: &[f64], direction: &[f64], slope: f64, longest: f64) -> f64 {
        let linear = dot(&self.level.affine_gradient(theta), direction);
        let quadratic = self.level.ridge * self.level.squared_norm(direction);
        if !self.smoothing.is_convex() {
            let start = self.loss(0.0).0;
            let mut t = longest.min(1.0);
            for _ in 0..30 {
                if t * linear + 0.5 * t * t * quadratic + self.loss(t).0 - start <= 1e-4 * t * slope {
                    break;
                }
                t *= 0.4;
            }
            return t;
        }
        let slope_at = |t: f64| linear + t * quadratic + self.loss(t).1;
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

    /// The smoothed loss at t and its derivative.
    fn loss(&self, t: f64) -> (f64, f64) {
        let (level, k) = (self.level, self.level.classes);
        let pieces = level.rows().div_ceil(PIECE);
        let piece = |number: usize| {
            let mut scratch = Scratch::new(k);
            let mut f = vec![0.0; k];
            let (mut value, mut slope) = (0.0, 0.0);
            for row in number * PIECE..((number + 1) * PIECE).min(level.rows()) {
                let cap = level.caps[row];
                if cap == 0.0 {
                    continue;
                }
                let (from, to) = (&self.f[row * k..(row + 1) * k], &self.next[row * k..(row + 1) * k]);
                for class in 0..k {
                    f[class] = from[class] + t * (to[class] - from[class]);
                }
                value += cap * scratch.row(level, self.smoothing, level.codes[row], &f);
                slope += cap * (0..k).map(|class| scratch.near[class] * (to[class] - from[class])).sum::<f64>();
            }
            (value, slope)
        };
        let parts: Vec<(f64, f64)> = (0..pieces).into_par_iter().map(piece).collect();
        parts.iter().fold((0.0, 0.0), |total, part| (total.0 + part.0, total.1 + part.1))
    }
}

const PIECE: usize = 16384;

/// Sum over values in fixed pieces, so that it does not depend on the number of threads.
fn sum(count: usize, term: impl Fn(usize) -> f64 + Sync) -> f64 {
    let piece = |number: usize| (number * PIECE..((number + 1) * PIECE).min(count)).map(&term).sum::<f64>();
    let parts: Vec<f64> = (0..count.div_ceil(PIECE)).into_par_iter().map(piece).collect();
    parts.iter().sum()
}
