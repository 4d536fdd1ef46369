//! 1 < q <= 2: a primal-dual interior point method.
//!
//! With w = w+ - w-, both >= 0, and z = 1 - s f of a term written xi - t, the conditions are
//!
//! ```text
//! alpha t = mu,   (c - alpha) xi = mu,   w+ v+ = mu,   w- v- = mu,        V = s alpha balanced over the functions if b is free
//! q (w+)^(q-1) - v+ = u - m = v- - q (w-)^(q-1),   u = X'V,     m the multiplier of sum_j w_j = 0 (0 for one function)
//! ```
//!
//! and mu falls to 0. As q falls to 1 these become those of the linear program. A Newton step has dV = k - W df and
//! dw = B (du - dm) + constant with W = 1 / (t / alpha + xi / (c - alpha)), B = E+ + E-, E = 1 / (q (q-1) w^(q-2) + v / w): the
//! equations of [`Normal`]. Each step is a predictor and a corrector with one factor (Mehrotra).
//!
//! The objective is divided by `unit`, a power of two next to the largest cap, so that caps are at most about 1 and the penalty has the
//! rate 1 / unit; coefficients start at the size of their columns. So units of C and X do not matter. The first point need not fulfil
//! the equations but for V; each step takes its share off what they lack. A start given is moved a little to the inside first.
//!
//! V stays within its box and balanced, so that every point has a certificate: r V is feasible for 0 <= r <= 1 with the dual value
//! r sum alpha - r^p g(X'V), p = q / (q - 1) and g the conjugate of the penalty (see [`LqProblem`]), and the best r is known.

use super::super::{Options, Solution, Start, Status, proximal};
use super::normal::{Normal, pull, push};
use super::{SMOOTH, rows_by_functions};
use crate::control::{Control, Progress};
use crate::error::Result;
use crate::problem::LqProblem;
use crate::problem::lq::{conjugate, power};
use std::borrow::Cow;

/// Imbalance, relative to the caps, that is rounding.
const BALANCED: f64 = 1e-13;
const MOST_STEPS: usize = 300;
/// Share of the way to the boundary that a step goes.
const REACH: f64 = 0.99;
/// Steps without a smaller gap after which rounding is taken to be the reason.
const PATIENCE: usize = 15;
/// The penalty is curved, so that coefficients are known to the root of the gap only: where a tolerance as small as this is asked
/// for, so many steps follow.
const EXACT: f64 = 1e-9;
const POLISH: usize = 4;
/// How far from a start the first point is, as a share of the way to the middle.
const AWAY: f64 = 0.05;
/// Least coefficient to start from, relative to one that would decide a row.
const SMALL: f64 = 1e-4;

/// A pair of numbers >= 0 whose product falls to 0: values and their steps.
#[derive(Clone, Default)]
struct Couple {
    x: Vec<f64>,
    z: Vec<f64>,
}

impl Couple {
    fn product(&self) -> f64 {
        crate::linalg::dot(&self.x, &self.z)
    }

    /// The longest step that keeps the signs.
    fn room(&self, by: &Couple) -> f64 {
        let sides = self.x.iter().zip(&by.x).chain(self.z.iter().zip(&by.z));
        sides.filter(|(_, step)| **step < 0.0).fold(f64::INFINITY, |room, (value, step)| room.min(-value / step))
    }

    fn product_after(&self, by: &Couple, length: f64) -> f64 {
        let pairs = self.x.iter().zip(&by.x).zip(self.z.iter().zip(&by.z));
        pairs.map(|((x, dx), (z, dz))| (x + length * dx) * (z + length * dz)).sum()
    }

    fn advance(&mut self, by: &Couple, length: f64) {
        self.x.iter_mut().zip(&by.x).for_each(|(x, by)| *x += length * by);
        self.z.iter_mut().zip(&by.z).for_each(|(z, by)| *z += length * by);
    }

    /// target - dx dz
    fn corrected(&self, target: f64) -> Vec<f64> {
        self.x.iter().zip(&self.z).map(|(dx, dz)| target - dx * dz).collect()
    }
}

/// t with alpha, xi with c - alpha (terms that count); w+ with v+, w- with v- (functions x columns).
#[derive(Clone, Default)]
struct Couples {
    low: Couple,
    high: Couple,
    plus: Couple,
    minus: Couple,
}

impl Couples {
    fn all(&self) -> [&Couple; 4] {
        [&self.low, &self.high, &self.plus, &self.minus]
    }

    fn count(&self) -> usize {
        self.all().iter().map(|couple| couple.x.len()).sum()
    }

    fn product(&self) -> f64 {
        self.all().iter().map(|couple| couple.product()).sum()
    }

    fn room(&self, by: &Couples) -> f64 {
        self.all().iter().zip(by.all()).fold(f64::INFINITY, |room, (couple, by)| room.min(couple.room(by)))
    }

    fn product_after(&self, by: &Couples, length: f64) -> f64 {
        self.all().iter().zip(by.all()).map(|(couple, by)| couple.product_after(by, length)).sum()
    }
}

/// What products are aimed at.
struct Targets {
    low: Vec<f64>,
    high: Vec<f64>,
    plus: Vec<f64>,
    minus: Vec<f64>,
}

#[derive(Clone)]
struct Point {
    couples: Couples,
    intercepts: Vec<f64>,
    /// m, one per column.
    middles: Vec<f64>,
}

/// What follows from a point: u (functions x columns) and f (function-major).
struct View {
    pulled: Vec<f64>,
    decision: Vec<f64>,
}

struct Inside<'a> {
    problem: &'a LqProblem<'a>,
    /// Positions (function-major), caps and signs of the terms that count; caps in `unit`.
    at: Vec<usize>,
    caps: Vec<f64>,
    signs: Vec<f64>,
    /// What the objective is divided by, a power of two.
    unit: f64,
    /// 1 / unit: what the penalty counts for.
    rate: f64,
    /// About 1 / root mean square of each column: the size of coefficients to start from.
    scales: Vec<f64>,
}

impl<'a> Inside<'a> {
    fn new(problem: &'a LqProblem<'a>) -> Self {
        let n = problem.rows();
        let cap = |at: &usize| problem.cap(at % n, at / n);
        let at: Vec<usize> = (0..n * problem.functions).filter(|at| cap(at) > 0.0).collect();
        let caps: Vec<f64> = at.iter().map(cap).collect();
        let unit = proximal::unit_of(&caps);
        let caps = caps.iter().map(|cap| cap / unit).collect();
        let signs = at.iter().map(|at| problem.sign(at % n)).collect();
        Inside { problem, at, caps, signs, unit, rate: 1.0 / unit, scales: proximal::units(problem.x) }
    }

    /// V, function-major over all rows, of numbers by term.
    fn spread(&self, alpha: &[f64]) -> Vec<f64> {
        let mut v = vec![0.0; self.problem.rows() * self.problem.functions];
        for ((&at, sign), alpha) in self.at.iter().zip(&self.signs).zip(alpha) {
            v[at] = sign * alpha;
        }
        v
    }

    /// Sums of the caps of terms of equal kind: those of one function, or for one function those of one sign.
    fn totals(&self) -> Vec<f64> {
        let mut totals = vec![0.0; self.problem.functions.max(2)];
        (0..self.at.len()).for_each(|term| totals[self.kind(term)] += self.caps[term]);
        totals
    }

    fn kind(&self, term: usize) -> usize {
        match self.problem.functions {
            1 => usize::from(self.signs[term] > 0.0),
            _ => self.at[term] / self.problem.rows(),
        }
    }

    /// Intercepts that cost nothing, where there are no terms of some kind.
    fn costless(&self) -> Option<Vec<f64>> {
        let totals = self.totals();
        let empty = totals.iter().filter(|total| **total == 0.0).count();
        match (self.problem.intercept, self.problem.functions) {
            _ if self.at.is_empty() => Some(vec![0.0; self.problem.functions]),
            (true, 1) if empty > 0 => Some(vec![if totals[0] == 0.0 { 1.0 } else { -1.0 }]),
            (true, m) if empty > 0 => {
                let up = (m - empty) as f64 / empty as f64;
                Some(totals.iter().map(|total| if *total == 0.0 { up } else { -1.0 }).collect())
            }
            _ => None,
        }
    }

    /// alpha: a balanced share of every cap.
    fn shares(&self) -> Vec<f64> {
        let totals = self.totals();
        let least = totals.iter().fold(f64::INFINITY, |least, total| least.min(*total));
        let share = |term: usize| if self.problem.intercept { least / totals[self.kind(term)] } else { 1.0 };
        (0..self.at.len()).map(|term| 0.5 * share(term) * self.caps[term]).collect()
    }

    /// Coefficients of the size of their columns' and of no sign, t = xi = 1, and a share of the caps: as much as keeps X'V from
    /// outweighing all else, or, if `careful`, from outweighing the penalty.
    fn cold(&self, careful: bool) -> Point {
        let (m, d, q) = (self.problem.functions, self.problem.x.cols(), self.problem.q);
        let mut alpha = self.shares();
        let pulled = pull(self.problem.x, &self.spread(&alpha), m);
        let size = |at: usize| {
            // where the penalty outweighs the loss, half of the way (in logarithms) to what it leaves
            let scale = self.scales[at % d];
            let steep = self.rate * q * power(scale, q - 1.0);
            scale * power(2.0 * pulled[at].abs() / steep, 0.5 / (q - 1.0)).clamp(SMALL, 1.0)
        };
        let sizes: Vec<f64> = (0..m * d).map(size).collect();
        let excess = |at: usize| match careful {
            true => 2.0 * pulled[at].abs() / (self.rate * q * power(sizes[at], q - 1.0)),
            false => (pulled[at].abs() * self.scales[at % d]).sqrt(),
        };
        let most = (0..m * d).map(excess).fold(1.0, f64::max);
        alpha.iter_mut().for_each(|alpha| *alpha /= most);
        let ones = vec![1.0; self.at.len()];
        self.inside(alpha, [ones.clone(), ones], [sizes.clone(), sizes], vec![0.0; m])
    }

    /// A point next to a start given, where its V is one: as far inside as `AWAY` says.
    fn warm(&self, start: &Start) -> Option<Point> {
        let (m, n, d) = (self.problem.functions, self.problem.rows(), self.problem.x.cols());
        let weights = start.weights.as_ref().filter(|weights| weights.len() == m * d)?;
        if start.expansion.len() != n * m || start.intercepts.len() != m {
            return None;
        }
        let given = |term: usize| {
            let at = self.at[term];
            (self.signs[term] * start.expansion[at % n * m + at / n] / self.unit).clamp(0.0, self.caps[term])
        };
        let middle = self.shares();
        let alpha: Vec<f64> =
            (0..self.at.len()).map(|term| given(term) + AWAY * (middle[term] - given(term))).collect();
        let lost = self.imbalance(&alpha);
        if self.problem.intercept && !(lost <= 1e-12 * alpha.iter().sum::<f64>()) {
            return None;
        }
        let decision = push(self.problem.x, weights, &start.intercepts, m);
        let z = |term: usize| 1.0 - self.signs[term] * decision[self.at[term]];
        let slack = |sign: f64| (0..self.at.len()).map(|term| (sign * z(term)).max(0.0) + AWAY).collect();
        let side =
            |sign: f64| (0..m * d).map(|at| (sign * weights[at]).max(0.0) + AWAY * self.scales[at % d]).collect();
        Some(self.inside(alpha, [slack(-1.0), slack(1.0)], [side(1.0), side(-1.0)], start.intercepts.clone()))
    }

    /// alpha with the kinds of larger sum scaled down to the least: balanced but for rounding.
    fn levelled(&self, alpha: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.problem.functions.max(2)];
        alpha.iter().enumerate().for_each(|(term, alpha)| sums[self.kind(term)] += alpha);
        let least = sums.iter().fold(f64::INFINITY, |least: f64, sum| least.min(*sum));
        let share = |term: usize| if sums[self.kind(term)] > 0.0 { least / sums[self.kind(term)] } else { 0.0 };
        alpha.iter().enumerate().map(|(term, alpha)| alpha * share(term)).collect()
    }

    /// How far the column sums of V are from what a free b asks for.
    fn imbalance(&self, alpha: &[f64]) -> f64 {
        let (m, n) = (self.problem.functions, self.problem.rows());
        let v = self.spread(alpha);
        let sums: Vec<f64> = v.chunks_exact(n.max(1)).map(|v| v.iter().sum()).collect();
        let goal = if m == 1 { 0.0 } else { sums[0] };
        sums.iter().fold(0.0, |most, sum| most.max((sum - goal).abs()))
    }

    /// The point of alpha, (t, xi), (w+, w-) and b: m and v follow, v above what products of the average size ask for.
    fn inside(&self, alpha: Vec<f64>, slacks: [Vec<f64>; 2], sides: [Vec<f64>; 2], intercepts: Vec<f64>) -> Point {
        let (m, d, q) = (self.problem.functions, self.problem.x.cols(), self.problem.q);
        let pulled = pull(self.problem.x, &self.spread(&alpha), m);
        let mean = |column: usize| match m {
            1 => 0.0,
            _ => (0..m).map(|j| pulled[j * d + column]).sum::<f64>() / m as f64,
        };
        let middles: Vec<f64> = (0..d).map(mean).collect();
        let rest: Vec<f64> = alpha.iter().zip(&self.caps).map(|(alpha, cap)| cap - alpha).collect();
        let [t, xi] = slacks;
        let (low, high) = (Couple { x: t, z: alpha }, Couple { x: xi, z: rest });
        let typical = (low.product() + high.product()) / (2 * self.at.len()).max(1) as f64;
        let slope = |side: &[f64], sign: f64| -> Vec<f64> {
            let bare = |at: usize| self.rate * q * power(side[at], q - 1.0) - sign * (pulled[at] - middles[at % d]);
            (0..m * d).map(|at| bare(at).max(typical / side[at])).collect()
        };
        let [plus, minus] = sides;
        let (up, down) = (slope(&plus, 1.0), slope(&minus, -1.0));
        let couples = Couples { low, high, plus: Couple { x: plus, z: up }, minus: Couple { x: minus, z: down } };
        Point { couples, intercepts, middles }
    }

    fn weights(&self, point: &Point) -> Vec<f64> {
        let (plus, minus) = (&point.couples.plus.x, &point.couples.minus.x);
        plus.iter().zip(minus).map(|(plus, minus)| plus - minus).collect()
    }

    fn view(&self, point: &Point) -> View {
        let (x, m) = (self.problem.x, self.problem.functions);
        let pulled = pull(x, &self.spread(&point.couples.low.z), m);
        let decision = push(x, &self.weights(point), &point.intercepts, m);
        View { pulled, decision }
    }

    /// W over all rows.
    fn curvature(&self, point: &Point) -> Vec<f64> {
        let (low, high) = (&point.couples.low, &point.couples.high);
        let mut curvature = vec![0.0; self.problem.rows() * self.problem.functions];
        for (term, &at) in self.at.iter().enumerate() {
            curvature[at] = 1.0 / (low.x[term] / low.z[term] + high.x[term] / high.z[term]);
        }
        curvature
    }

    /// E of one side.
    fn ease(&self, side: &Couple) -> Vec<f64> {
        let (q, rate) = (self.problem.q, self.rate);
        side.x.iter().zip(&side.z).map(|(w, v)| 1.0 / (rate * q * (q - 1.0) * power(*w, q - 2.0) + v / w)).collect()
    }

    /// The step towards given products.
    fn direction(&self, point: &Point, view: &View, system: &System, aim: &Targets) -> Point {
        let (m, n, d, q) = (self.problem.functions, self.problem.rows(), self.problem.x.cols(), self.problem.q);
        let couples = &point.couples;
        let aside = |side: &Couple, target: &[f64], sign: f64| -> Vec<f64> {
            let slack = |at: usize| sign * (view.pulled[at] - point.middles[at % d]);
            let bend = |at: usize| self.rate * q * power(side.x[at], q - 1.0);
            (0..m * d).map(|at| slack(at) - bend(at) + target[at] / side.x[at]).collect()
        };
        let (up, down) = (aside(&couples.plus, &aim.plus, 1.0), aside(&couples.minus, &aim.minus, -1.0));
        let (plus, minus, bends) = (&system.plus, &system.minus, &system.bends);
        let e: Vec<f64> = (0..m * d).map(|at| plus[at] * up[at] - minus[at] * down[at]).collect();
        // what the sum over the functions takes
        let weights = self.weights(point);
        let over = |column: usize, of: &[f64]| (0..m).map(|j| of[j * d + column]).sum::<f64>();
        let lift: Vec<f64> = match m {
            1 => vec![0.0; d],
            _ => (0..d).map(|c| (over(c, &e) + over(c, &weights)) / over(c, bends)).collect(),
        };
        let constant: Vec<f64> = (0..m * d).map(|at| e[at] - bends[at] * lift[at % d]).collect();
        let moved = push(self.problem.x, &constant, &vec![0.0; m], m);
        let mut k = vec![0.0; n * m];
        for (term, &at) in self.at.iter().enumerate() {
            let z = 1.0 - self.signs[term] * view.decision[at];
            let goal = z + aim.low[term] / couples.low.z[term] - aim.high[term] / couples.high.z[term];
            k[at] = system.curvature[at] * (self.signs[term] * goal - moved[at]);
        }
        // V is balanced but for rounding, which a step takes off
        let v = self.spread(&couples.low.z);
        let sum = |j: usize| v[j * n..(j + 1) * n].iter().sum::<f64>();
        let balance: Vec<f64> = (0..m.max(2) - 1).map(|j| if m == 1 { -sum(0) } else { sum(m - 1) - sum(j) }).collect();
        let found = system.normal.solve(&k, &balance);
        let du = pull(self.problem.x, &found.v, m);
        let middles: Vec<f64> = match m {
            1 => vec![0.0; d],
            _ => (0..d)
                .map(|c| (0..m).map(|j| bends[j * d + c] * du[j * d + c]).sum::<f64>() / over(c, bends) + lift[c])
                .collect(),
        };
        let mut by = Couples::default();
        for (term, &at) in self.at.iter().enumerate() {
            let step = self.signs[term] * found.v[at];
            let (low, high) = (&couples.low, &couples.high);
            by.low.z.push(step);
            by.high.z.push(-step);
            by.low.x.push((aim.low[term] - low.x[term] * step) / low.z[term] - low.x[term]);
            by.high.x.push((aim.high[term] + high.x[term] * step) / high.z[term] - high.x[term]);
        }
        for at in 0..m * d {
            let du = du[at] - middles[at % d];
            let sides = [
                (&mut by.plus, &couples.plus, plus[at] * (du + up[at]), aim.plus[at]),
                (&mut by.minus, &couples.minus, minus[at] * (down[at] - du), aim.minus[at]),
            ];
            for (by, side, step, target) in sides {
                by.x.push(step);
                by.z.push((target - side.z[at] * step) / side.x[at] - side.z[at]);
            }
        }
        Point { couples: by, intercepts: found.intercepts, middles }
    }

    /// Predictor and corrector; false if rounding leaves no step.
    fn step(&self, point: &mut Point, view: &View) -> bool {
        let curvature = self.curvature(point);
        let (plus, minus) = (self.ease(&point.couples.plus), self.ease(&point.couples.minus));
        let bends: Vec<f64> = plus.iter().zip(&minus).map(|(a, b)| a + b).collect();
        let problem = self.problem;
        let normal = Normal::new(problem.x, problem.functions, problem.intercept, &bends, &curvature, 1.0);
        let Some(normal) = normal else { return false };
        let system = System { normal, curvature: &curvature, plus, minus, bends: &bends };
        let (terms, entries) = (self.at.len(), bends.len());
        let all = |value: f64| Targets {
            low: vec![value; terms],
            high: vec![value; terms],
            plus: vec![value; entries],
            minus: vec![value; entries],
        };
        let first = self.direction(point, view, &system, &all(0.0));
        let (products, count) = (point.couples.product(), point.couples.count() as f64);
        let room = point.couples.room(&first.couples).min(1.0);
        let after = point.couples.product_after(&first.couples, room);
        let center = products / count * (after / products).clamp(0.0, 1.0).powi(3);
        let by = &first.couples;
        let aim = Targets {
            low: by.low.corrected(center),
            high: by.high.corrected(center),
            plus: by.plus.corrected(center),
            minus: by.minus.corrected(center),
        };
        let by = self.direction(point, view, &system, &aim);
        let length = (REACH * point.couples.room(&by.couples)).min(1.0);
        if !(length > 1e-10) || by.intercepts.iter().any(|b| !b.is_finite()) {
            return false;
        }
        point.couples.low.advance(&by.couples.low, length);
        point.couples.high.advance(&by.couples.high, length);
        point.couples.plus.advance(&by.couples.plus, length);
        point.couples.minus.advance(&by.couples.minus, length);
        point.intercepts.iter_mut().zip(&by.intercepts).for_each(|(b, by)| *b += length * by);
        point.middles.iter_mut().zip(&by.middles).for_each(|(m, by)| *m += length * by);
        true
    }
}

/// The equations of a step.
struct System<'a> {
    normal: Normal<'a>,
    curvature: &'a [f64],
    plus: Vec<f64>,
    minus: Vec<f64>,
    bends: &'a [f64],
}

/// Solves; q > 1.
pub(super) fn solve(problem: &LqProblem, options: &Options, control: &Control) -> Result<Solution> {
    let inside = Inside::new(problem);
    let mut best = Best::nothing(problem);
    if let Some(intercepts) = inside.costless() {
        best.note_primal(problem, best.weights.clone(), &intercepts);
        return Ok(best.solution(problem, 0, Status::Converged));
    }
    let mut end = End { status: Status::IterationLimit, steps: 0 };
    let given = options.start.as_ref().and_then(|start| inside.warm(start));
    // the last start is for what the others do not lead to
    for point in given.into_iter().chain([false, true].into_iter().map(|careful| inside.cold(careful))) {
        follow(&inside, point, &mut best, &mut end, options, control)?;
        if end.status != Status::Inaccurate {
            break;
        }
    }
    Ok(best.solution(problem, end.steps, end.status))
}

/// How it ended, and after how many steps in all.
struct End {
    status: Status,
    steps: usize,
}

/// Steps from one start, as long as gap or products fall.
fn follow(
    inside: &Inside,
    mut point: Point,
    best: &mut Best,
    end: &mut End,
    options: &Options,
    control: &Control,
) -> Result<()> {
    let mut waited = 0;
    let mut products = f64::INFINITY;
    let mut polish = if options.tolerance <= EXACT { POLISH } else { 0 };
    let most = MOST_STEPS.min(options.max_iterations);
    loop {
        control.check()?;
        let before = best.gap();
        let view = inside.view(&point);
        best.note(inside, &point, &view);
        let gap = best.gap();
        control.report(Progress { stage: "lq interior", step: end.steps, objective: best.primal, gap });
        let product = point.couples.product();
        waited = if gap < 0.9 * before || product < 0.5 * products { 0 } else { waited + 1 };
        products = products.min(product);
        let done = gap <= options.tolerance;
        end.status = match () {
            _ if done => Status::Converged,
            _ if control.out_of_time() => Status::TimeLimit,
            _ if end.steps >= most => Status::IterationLimit,
            _ => Status::Inaccurate,
        };
        let stop = match end.status {
            Status::Converged => polish == 0 || control.out_of_time(),
            Status::Inaccurate => waited > PATIENCE,
            _ => true,
        };
        if stop || !inside.step(&mut point, &view) {
            return Ok(());
        }
        polish -= usize::from(done);
        end.steps += 1;
    }
}

/// The best point and the best bound.
struct Best {
    primal: f64,
    dual: f64,
    weights: Vec<f64>,
    intercepts: Vec<f64>,
    /// Function-major.
    v: Vec<f64>,
}

impl Best {
    /// w = 0 and V = 0.
    fn nothing(problem: &LqProblem) -> Best {
        let (m, d, n) = (problem.functions, problem.x.cols(), problem.rows());
        let (weights, intercepts) = (vec![0.0; m * d], vec![0.0; m]);
        let primal = problem.loss(&vec![0.0; n * m]);
        Best { primal, dual: 0.0, weights, intercepts, v: vec![0.0; n * m] }
    }

    fn gap(&self) -> f64 {
        (self.primal - self.dual).max(0.0) / self.primal.abs().max(f64::MIN_POSITIVE)
    }

    /// Looks at w of the point, and at the w that belongs to its V.
    fn note(&mut self, inside: &Inside, point: &Point, view: &View) {
        let problem = inside.problem;
        let (m, d, q) = (problem.functions, problem.x.cols(), problem.q);
        let mut weights = inside.weights(point);
        if m > 1 {
            (0..d).for_each(|column| balance(&mut weights, column, d));
        }
        self.note_primal(problem, weights, &point.intercepts);
        let mut alpha = Cow::Borrowed(&point.couples.low.z);
        let mut pulled = Cow::Borrowed(&view.pulled);
        if problem.intercept && inside.imbalance(&alpha) > BALANCED * inside.totals().iter().sum::<f64>() {
            alpha = Cow::Owned(inside.levelled(&alpha));
            pulled = Cow::Owned(pull(problem.x, &inside.spread(&alpha), m));
        }
        let (r, dual) = best_multiple(alpha.iter().sum(), &pulled, m, q, inside.rate);
        if inside.unit * dual > self.dual {
            self.dual = inside.unit * dual;
            self.v = inside.spread(&alpha);
            self.v.iter_mut().for_each(|v| *v *= r * inside.unit);
        }
    }

    fn note_primal(&mut self, problem: &LqProblem, weights: Vec<f64>, intercepts: &[f64]) {
        let mut intercepts = intercepts.to_vec();
        if intercepts.len() > 1 {
            balance(&mut intercepts, 0, 1);
        }
        let primal = problem.objective(&weights, &intercepts);
        if primal < self.primal {
            (self.primal, self.weights, self.intercepts) = (primal, weights, intercepts);
        }
    }

    fn solution(self, problem: &LqProblem, iterations: usize, status: Status) -> Solution {
        let gap = self.gap();
        let decision = problem.decision(&self.weights, &self.intercepts);
        let objective = problem.penalty(&self.weights) + problem.loss(&decision);
        Solution {
            expansion: rows_by_functions(&self.v, problem.functions),
            weights: Some(self.weights),
            intercepts: self.intercepts,
            decision,
            truncated: vec![false; problem.rows()],
            majorant: None,
            objective,
            gap,
            trace: vec![objective],
            iterations,
            status,
            solver: SMOOTH,
        }
    }
}

/// The r in [0, 1] for which r V bounds best, and the bound r total - r^p value: value = sum_c rate g_c(u_c / rate). Powers as large as
/// p are left to logarithms.
fn best_multiple(total: f64, pulled: &[f64], functions: usize, q: f64, rate: f64) -> (f64, f64) {
    let d = pulled.len() / functions.max(1);
    let largest = pulled.iter().fold(0.0f64, |largest, u| largest.max(u.abs()));
    if !(total > 0.0) || !largest.is_finite() {
        return (0.0, 0.0);
    }
    let mut scaled = 0.0;
    let mut u = vec![0.0; functions];
    for column in 0..if largest > 0.0 { d } else { 0 } {
        (0..functions).for_each(|j| u[j] = pulled[j * d + column] / largest);
        scaled += conjugate(&u, q).value;
    }
    if scaled == 0.0 {
        return (1.0, total);
    }
    let p = q / (q - 1.0);
    let log_value = p * largest.ln() - (p - 1.0) * rate.ln() + scaled.ln();
    let log_r = (total.ln() - p.ln() - log_value) / (p - 1.0);
    match log_r < 0.0 {
        true => (log_r.exp(), log_r.exp() * total * (1.0 - 1.0 / p)),
        false => (1.0, total - log_value.exp()),
    }
}

/// Takes what is left of the sum over the functions off the largest entry.
fn balance(values: &mut [f64], column: usize, stride: usize) {
    let entries = || (column..values.len()).step_by(stride);
    let sum: f64 = entries().map(|at| values[at]).sum();
    let largest = entries().max_by(|&a, &b| values[a].abs().total_cmp(&values[b].abs()));
    if let Some(at) = largest {
        values[at] -= sum;
    }
}
