//! Newton's method on the smoothed loss of a level with k classes.
//!
//! The largest of a_l = f_l + o_l is smoothed by a quadratic on the simplex,
//!
//! ```text
//! psi(a) = max over t in the simplex of  t.a - delta/2 (|t|^2 - 1),      t = projection of a / delta on the simplex,
//! ```
//!
//! which is max a where the largest leads by delta. With multipliers t0 known already, |t - t0|^2 takes the place of |t|^2 - 1 (the method of
//! multipliers: a + delta t0 for a): then psi costs the less the nearer t0 is, and delta need not go to 0. Its Hessian, (I_S - 11'/|S|) / delta on the support S of t, is the Laplacian
//! of the complete graph on S. With L(u) = max_l (f_l + u o_l) the truncated loss min([z]_+, tau) is L(1) - L(1 - tau), and both are
//! smoothed alike. One fused pass gives scores, value, gradient and the Gram matrices of the rows inside the two
//! windows; the Hessian is rho I + H_near - eta H_far with the largest eta that keeps it definite.
//!
//! Directions that no window row supports (rare columns) would have next to no curvature, and a step along them would carry rows far
//! across their kinks. So rows of rare columns have wider windows ([`Level::rarity`]), and unknowns with little curvature get that of the
//! parabolas which bound the kinks of all rows from above ([`tail`]) after a step that failed. Every step lowers the smoothed value.
//!
//! The weights t are multipliers q = c t of the unsmoothed problem: at the smoothed optimum its duality gap is
//! sum_i c_i (max a - t.a), and at any other point half of Newton's decrement more, as long as window rows can absorb the residual.

pub(super) use super::super::smooth::Stop;
use super::band::Row;
use super::dual::Dual;
use super::level::{Block, Level, PairGrams, Side, add};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::{Factor, dot};
use rayon::prelude::*;

const SHARES: [f64; 5] = [1.0, 0.9, 0.75, 0.5, 0.25];
const PROBES: usize = 4;
/// Newton's method has done enough when its decrement is this share of what the smoothing costs.
pub(super) const ENOUGH: f64 = 0.1;
/// An unknown whose curvature is this share of the bound's, or less, gets all of the bound's; others as much less as they have more.
const SUPPORTED: f64 = 0.05;
/// Rows of which one stands for all in the bound: those with at least about 25 / COMMON like them.
const THINNING: usize = 8;
const COMMON: f32 = 0.01;
/// Share of H_tail in the leverage.
const LEVERAGE_SHARE: f64 = 0.1;

/// Shape of the smoothed loss.
#[derive(Debug, Clone, Copy)]
pub(super) struct Smoothing<'a> {
    /// delta
    pub width: f64,
    /// tau = 1 - s; infinite for the plain hinge.
    pub ceiling: f64,
    /// t0, rows x classes; empty for 0. Of a convex problem only.
    pub prior: &'a [f64],
}

impl Smoothing<'_> {
    fn is_convex(&self) -> bool {
        self.ceiling == f64::INFINITY
    }

    /// delta of a row
    #[inline]
    fn width(&self, level: &Level, row: usize) -> f64 {
        self.width.max(f64::from(level.widths[row]))
    }

    /// f + o + delta t0 of a row in place of f, and delta/2 (1 + |t0|^2), which is not part of the loss.
    #[inline]
    fn shift(&self, level: &Level, row: usize, f: &mut [f64]) -> f64 {
        level.augment(level.codes[row], f);
        if self.prior.is_empty() {
            return 0.0;
        }
        let (mut squares, width) = (1.0, self.width(level, row));
        for (f, t) in f.iter_mut().zip(&self.prior[row * level.classes..]) {
            *f += width * t;
            squares += t * t;
        }
        0.5 * width * squares
    }
}

/// psi and max a - t.a; `weights` becomes t, `support` the classes of positive weight, the largest first.
#[inline]
fn soft_max(a: &[f64], width: f64, weights: &mut [f64], support: &mut Vec<usize>) -> (f64, f64) {
    let (best, next) = two_largest(a);
    let top = a[best];
    weights.fill(0.0);
    support.clear();
    if !(top - a[next] < width) {
        weights[best] = 1.0;
        support.push(best);
        return (top, 0.0);
    }
    // only classes within delta of the top can have weight; by differences, as top - delta may round to the top
    support.extend((0..a.len()).filter(|&class| a[class] - top > -width));
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
    let (mut behind, mut squares) = (0.0, 0.0);
    for &class in support.iter() {
        let weight = (a[class] - top - threshold) / width;
        weights[class] = weight;
        behind += weight * (top - a[class]);
        squares += weight * weight;
    }
    (top - behind + 0.5 * width * (1.0 - squares), behind)
}

/// Scratch for one row.
struct Scratch {
    a: Vec<f64>,
    near: Vec<f64>,
    far: Vec<f64>,
    near_support: Vec<usize>,
    far_support: Vec<usize>,
    /// max a - t.a
    cost: f64,
    /// The loss without smoothing.
    loss: f64,
}

impl Scratch {
    fn new(k: usize) -> Scratch {
        let zeros = || vec![0.0; k];
        let (near_support, far_support) = (Vec::new(), Vec::new());
        Scratch { a: zeros(), near: zeros(), far: zeros(), near_support, far_support, cost: 0.0, loss: 0.0 }
    }

    /// The smoothed loss of a row at f; `near` becomes its gradient.
    #[inline]
    fn row(&mut self, level: &Level, smoothing: Smoothing, row: usize, f: &[f64]) -> f64 {
        let code = level.codes[row];
        let (own, width) = (code as usize, smoothing.width(level, row));
        self.a.copy_from_slice(f);
        let extra = smoothing.shift(level, row, &mut self.a);
        let mut value;
        (value, self.cost) = soft_max(&self.a, width, &mut self.near, &mut self.near_support);
        self.loss = self.a[self.near_support[0]];
        if extra > 0.0 {
            // the multipliers cost what they cost without the shift
            value -= extra;
            self.a.copy_from_slice(f);
            level.augment(code, &mut self.a);
            self.loss = self.a.iter().fold(f64::NEG_INFINITY, |top, a| top.max(*a));
            self.cost = self.near_support.iter().map(|&class| self.near[class] * (self.loss - self.a[class])).sum();
        }
        if smoothing.is_convex() {
            if level.side == Side::Margin {
                value -= f[own];
                self.loss -= f[own];
                self.near[own] -= 1.0;
            }
            return value;
        }
        self.loss = level.slack(code, f).clamp(0.0, smoothing.ceiling);
        let offset = 1.0 - smoothing.ceiling;
        match level.side {
            Side::Margin => {
                self.a.iter_mut().zip(f).for_each(|(a, f)| *a = f + offset);
                self.a[own] = f[own];
            }
            Side::Cost => self.a[own] = f[own] + offset,
        }
        value -= soft_max(&self.a, width, &mut self.far, &mut self.far_support).0;
        self.near.iter_mut().zip(&self.far).for_each(|(near, far)| *near -= far);
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
    pub value: f64,
    /// P without smoothing
    pub exact: f64,
    /// What the multipliers t add to the duality gap.
    pub cost: f64,
    /// Rows of the near window.
    pub window: usize,
    gradient: Vec<f64>,
    near: PairGrams,
    far: PairGrams,
}

struct Sums {
    near: PairGrams,
    far: PairGrams,
    gradient: Vec<f64>,
    value: f64,
    exact: f64,
    cost: f64,
    window: usize,
    scratch: Scratch,
    factors: Vec<f64>,
    column: Vec<f64>,
}

/// Evaluates at theta; `f` (rows x classes) becomes the scores.
pub(super) fn evaluate(level: &Level, theta: &[f64], smoothing: Smoothing, f: &mut [f64]) -> Evaluation {
    let (k, d) = (level.classes, level.x.cols());
    let functional = level.functional(theta);
    let convex = smoothing.is_convex();
    let new = || Sums {
        near: PairGrams::new(level),
        far: PairGrams::new(level),
        gradient: vec![0.0; level.size()],
        value: 0.0,
        exact: 0.0,
        cost: 0.0,
        window: 0,
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
            sums.value += cap * sums.scratch.row(level, smoothing, block.first + row, f);
            sums.exact += cap * sums.scratch.loss;
            sums.cost += cap * sums.scratch.cost;
            let factors = &mut sums.factors[row * k..(row + 1) * k];
            factors.iter_mut().zip(&sums.scratch.near).for_each(|(factor, slope)| *factor = cap * slope);
            let x = &block.x[row * d..(row + 1) * d];
            let weight = cap / smoothing.width(level, block.first + row);
            if sums.scratch.near_support.len() > 1 {
                sums.window += 1;
                push(&mut sums.near, &sums.scratch.near_support, x, weight);
            }
            if !convex && sums.scratch.far_support.len() > 1 {
                push(&mut sums.far, &sums.scratch.far_support, x, weight);
            }
        }
        level.add_rows(block, &sums.factors, &mut sums.column, &mut sums.gradient);
    };
    let mut sums = level.sweep_grams(1 + usize::from(!convex), k, f, new, visit, |total, part| {
        total.near.merge(part.near);
        total.far.merge(part.far);
        add(&mut total.gradient, &part.gradient);
        total.value += part.value;
        total.exact += part.exact;
        total.cost += part.cost;
        total.window += part.window;
    });
    sums.near.flush();
    sums.far.flush();
    level.normalise(&mut sums.gradient);
    add(&mut sums.gradient, &level.affine_gradient(theta));
    if !level.intercept {
        sums.gradient.chunks_exact_mut(d + 1).for_each(|row| row[d] = 0.0);
    }
    let affine = level.affine_part(theta);
    Evaluation {
        value: affine + sums.value,
        exact: affine + sums.exact,
        cost: sums.cost,
        window: sums.window,
        gradient: sums.gradient,
        near: sums.near,
        far: sums.far,
    }
}

/// The multipliers t of every row.
pub(super) fn multipliers(level: &Level, f: &[f64], smoothing: Smoothing) -> Dual {
    let k = level.classes;
    let (mut a, mut weights, mut support) = (vec![0.0; k], vec![0.0; k], Vec::new());
    let mut labels = vec![0; level.rows()];
    let (mut mixed, mut shares) = (Vec::new(), Vec::new());
    for (row, f) in f.chunks_exact(k).enumerate() {
        a.copy_from_slice(f);
        smoothing.shift(level, row, &mut a);
        soft_max(&a, smoothing.width(level, row), &mut weights, &mut support);
        labels[row] = support[0] as u32;
        if support.len() > 1 && level.caps[row] > 0.0 {
            mixed.push(row as u32);
            shares.extend_from_slice(&weights);
        }
    }
    Dual::new(labels, mixed, shares, k)
}

/// Gram matrices of the kinks of all rows: the largest score against the second and the row's own, with the curvature c / (2 r) of the
/// parabola that bounds a kink at distance r from above. Of rows that are nowhere rare, one in [`THINNING`] stands for all.
pub(super) fn tail(level: &Level, rows: &mut [Row], smoothing: Smoothing) -> PairGrams {
    let d = level.x.cols();
    let visit = |block: &Block, rows: &mut [Row], grams: &mut PairGrams| {
        for (at, row) in rows.iter().enumerate() {
            let (index, own) = (block.first + at, block.codes[at]);
            let common = level.widths[index] < COMMON;
            // a truncated row has no kink to keep away from
            if block.caps[at] == 0.0 || row.slack > smoothing.ceiling || common && index % THINNING != 0 {
                continue;
            }
            let cap = if common { THINNING as f64 * block.caps[at] } else { block.caps[at] };
            let x = &block.x[at * d..(at + 1) * d];
            let least = smoothing.width(level, index);
            let mut push = |class: u32, lead: f64| {
                let (a, b) = (row.label.min(class) as usize, row.label.max(class) as usize);
                grams.push(a, b, x, 0.5 * cap / lead.max(least));
            };
            push(row.second, row.lead);
            if level.side == Side::Margin && own != row.label && own != row.second {
                push(own, row.slack);
            }
        }
    };
    let mut grams = level.sweep_grams(1, 1, rows, || PairGrams::new(level), visit, |total, part| total.merge(part));
    grams.flush();
    grams
}

impl Evaluation {
    /// How far each row could move the difference of its two largest scores by its own weight: c (e_a - e_b)'H^-1 (e_a - e_b)
    /// x (x, 1), estimated by random vectors of covariance H^-1, H = rho I + H_near + a share of all kinks' bounds. Large where no row
    /// of the window supports a row's columns.
    pub fn leverage(&self, level: &Level, tail: &PairGrams, f: &[f64]) -> Vec<f32> {
        let k = level.classes;
        let mut matrix = vec![0.0; level.size() * level.size()];
        self.near.assemble(level.order(), 1.0, &mut matrix);
        tail.assemble(level.order(), LEVERAGE_SHARE, &mut matrix);
        level.add_ridge(&mut matrix);
        let Some(factor) = level.factor(&matrix) else { return vec![0.0; level.rows()] };
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
    /// The smoothed value at the start.
    pub first: f64,
    /// Half of the last decrement: what the smoothed value can still fall by.
    pub decrement: f64,
    pub steps: usize,
}

/// A step tried: where it ends, the scores there being in `Newton::next`.
struct Trial {
    theta: Vec<f64>,
    evaluation: Evaluation,
    distance: f64,
}

/// Newton's method at work.
struct Newton<'a> {
    level: &'a Level<'a>,
    smoothing: Smoothing<'a>,
    theta: Vec<f64>,
    f: Vec<f64>,
    next: Vec<f64>,
    current: Evaluation,
    /// The bound's curvature, and the share of it in use.
    tail: Vec<f64>,
    damping: f64,
}

/// Lowers the smoothed objective from `theta`; `f` ends as the scores there.
pub(super) fn newton(
    level: &Level,
    theta: &mut Vec<f64>,
    f: &mut Vec<f64>,
    smoothing: Smoothing,
    tail: &PairGrams,
    stop: Stop,
    control: &Control,
) -> Result<Outcome> {
    f.resize(level.rows() * level.classes, 0.0);
    let current = evaluate(level, theta, smoothing, f);
    let first = current.value;
    let mut bound = vec![0.0; level.size() * level.size()];
    tail.assemble(level.order(), 1.0, &mut bound);
    let mut work = Newton {
        level,
        smoothing,
        theta: std::mem::take(theta),
        f: std::mem::take(f),
        next: vec![0.0; level.rows() * level.classes],
        current,
        tail: bound,
        damping: 0.0,
    };
    let (mut steps, mut decrement) = (0, f64::INFINITY);
    loop {
        control.check()?;
        let Some((direction, slope)) = work.direction() else { break };
        decrement = -0.5 * slope;
        let least = (ENOUGH * work.current.cost).max(1e-15 * work.current.value.abs());
        if steps >= stop.most || !(decrement > least) {
            decrement = work.undamped();
        }
        if steps >= stop.most || control.out_of_time() || !(decrement > least) {
            break;
        }
        steps += 1;
        let before = work.current.value;
        let Some((distance, length)) = work.step(direction, slope, stop.trust) else { break };
        let gained = before - work.current.value;
        if (distance <= stop.still && length > 0.5) || gained <= 1e-14 * before.abs() {
            break;
        }
    }
    (*theta, *f) = (work.theta, work.f);
    Ok(Outcome { evaluation: work.current, first, decrement, steps })
}

impl Newton<'_> {
    /// Newton's direction for the largest share of H_far that keeps the Hessian definite, and the slope along it.
    fn direction(&self) -> Option<(Vec<f64>, f64)> {
        let (level, at) = (self.level, &self.current);
        let (p, size) = (level.order(), level.size());
        let mut near = vec![0.0; size * size];
        at.near.assemble(p, 1.0, &mut near);
        let diagonal: Vec<f64> = (0..size).map(|at| near[at * size + at]).collect();
        level.add_ridge(&mut near);
        let scale = |at: usize| {
            let bound = self.tail[at * size + at];
            if bound > 0.0 { (self.damping * (SUPPORTED * bound / diagonal[at]).min(1.0)).sqrt() } else { 0.0 }
        };
        let scale: Vec<f64> = (0..size).map(scale).collect();
        for i in (0..size).filter(|_| self.damping > 0.0) {
            for j in 0..=i {
                near[i * size + j] += scale[i] * scale[j] * self.tail[i * size + j];
            }
        }
        if !level.intercept {
            (1..=level.classes).for_each(|class| level.release(&mut near, class * p - 1, 1.0));
        }
        let negative: Vec<f64> = at.gradient.iter().map(|g| -g).collect();
        let mut factor = None;
        if !at.far.is_empty() {
            let mut far = vec![0.0; size * size];
            at.far.assemble(p, 1.0, &mut far);
            if !level.intercept {
                (1..=level.classes).for_each(|class| level.release(&mut far, class * p - 1, 0.0));
            }
            factor = SHARES.iter().find_map(|share| definite(&near, &far, *share, size));
        }
        let direction = factor.or_else(|| level.factor(&near))?.solve(&negative);
        let slope = dot(&at.gradient, &direction);
        (direction.iter().all(|value| value.is_finite()) && slope.is_finite()).then_some((direction, slope))
    }

    /// Half of the decrement without the bound's curvature.
    fn undamped(&self) -> f64 {
        let gradient = &self.current.gradient;
        let factor = self.level.factor(&self.level.hessian(&self.current.near));
        factor.map_or(f64::INFINITY, |factor| 0.5 * dot(&factor.solve(gradient), gradient))
    }

    fn attempt(&mut self, direction: &[f64], length: f64) -> Trial {
        let theta: Vec<f64> = self.theta.iter().zip(direction).map(|(theta, step)| theta + length * step).collect();
        let evaluation = evaluate(self.level, &theta, self.smoothing, &mut self.next);
        let distance = movement(&self.f, &self.next, self.level.classes);
        Trial { theta, evaluation, distance }
    }

    /// One step; returns how far it moved the scores and its length. `None` when nothing lowers the value.
    fn step(&mut self, mut direction: Vec<f64>, mut slope: f64, trust: f64) -> Option<(f64, f64)> {
        let mut trial = self.attempt(&direction, 1.0);
        let fails =
            |work: &Self, trial: &Trial, slope: f64| !(trial.evaluation.value <= work.current.value + 1e-4 * slope);
        while fails(self, &trial, slope) && self.damping < 1.0 && trial.distance <= trust {
            self.damping = (10.0 * self.damping).clamp(0.1, 1.0);
            (direction, slope) = self.direction()?;
            // its matrices are let go before others are made
            drop(trial);
            trial = self.attempt(&direction, 1.0);
        }
        let mut length = 1.0;
        if fails(self, &trial, slope) || trial.distance > trust {
            let ray = Ray { level: self.level, smoothing: self.smoothing, f: &self.f, next: &self.next };
            length = ray.search(&self.theta, &direction, slope, trust / trial.distance);
            drop(trial);
            trial = self.attempt(&direction, length);
            if !(trial.evaluation.value < self.current.value) {
                return None;
            }
        } else {
            self.damping = if self.damping > 0.05 { 0.1 * self.damping } else { 0.0 };
        }
        self.theta = trial.theta;
        self.current = trial.evaluation;
        std::mem::swap(&mut self.f, &mut self.next);
        Some((trial.distance, length))
    }
}

/// The factor of near - share far, if that is definite with room to spare.
fn definite(near: &[f64], far: &[f64], share: f64, size: usize) -> Option<Factor> {
    let mut matrix: Vec<f64> = near.iter().zip(far).map(|(near, far)| near - share * far).collect();
    let diagonal: Vec<f64> = (0..size).map(|row| matrix[row * size + row]).collect();
    (0..size).for_each(|row| matrix[row * size + row] -= 0.02 * near[row * size + row]);
    let strict = Factor::is_definite(&matrix, size, size);
    (0..size).for_each(|row| matrix[row * size + row] = diagonal[row]);
    strict.then(|| Factor::definite(&matrix, size, size))?
}

/// Root mean square difference of two scores between two points.
fn movement(f: &[f64], next: &[f64], k: usize) -> f64 {
    let squares = sum(f.len(), |at| (f[at] - next[at]) * (f[at] - next[at]));
    (2.0 * squares / (f.len() as f64).max(k as f64)).sqrt()
}

/// The line f + t (next - f).
struct Ray<'a> {
    level: &'a Level<'a>,
    smoothing: Smoothing<'a>,
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
                value += cap * scratch.row(level, self.smoothing, row, &f);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tie_far_beyond_the_width_of_the_window_shares_the_weight() {
        let (mut weights, mut support) = (vec![0.0; 3], Vec::new());
        let (value, behind) = soft_max(&[1e20, -2e20, 1e20], 0.5, &mut weights, &mut support);
        assert_eq!(weights, [0.5, 0.0, 0.5]);
        assert_eq!((value, behind), (1e20, 0.0));
    }
}
