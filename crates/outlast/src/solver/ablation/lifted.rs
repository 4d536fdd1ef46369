//! The relaxation over given rows: a few columns of W, the smoothing taken away in steps, a certificate at the end of each.
//!
//! ```text
//! for e = .5, .25, .1, .03, then as the gap asks:
//!   Newton's method at smoothing e; with a budget, a few steps of the proximal method of multipliers
//!   e <= .04: compress V to its rank; while an eigenvalue of G exceeds r: append the eigenvector to V, Newton again
//!   upper = value at e = 0, lower = certificate; stop when upper - lower <= tolerance |upper|
//! ```
//!
//! The problem is convex in (w, R), so a W that is stationary with H >= 0 is a global minimiser; the number of columns stays at the rank of
//! the solution plus one, seldom more than 8.

use super::lower::{Curve, Multipliers, certified, jacobi};
use super::newton::{Effort, descend};
use super::smoothed::{Budget, Point, Rows, Smoothed, sum};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::dot;
use crate::problem::ablation::relaxed_loss;
use crate::solver::Status;

/// The smoothing at first; then it follows from the gap: by FALL[0] to FALL[1] at a time, down to FINEST.
const SMOOTHINGS: [f64; 4] = [0.5, 0.25, 0.1, 0.03];
const FALL: [f64; 2] = [0.3, 0.7];
const FINEST: f64 = 3e-6;
/// From this smoothing on the rank is exact; before, an eigenvalue may exceed the ridge by LOOSE.
const ADAPT: f64 = 0.04;
const LOOSE: f64 = 0.005;
/// From this smoothing on the rank is looked at.
const CHECKED: f64 = 0.1;
/// Columns of W at the start.
const FIRST_COLUMNS: usize = 4;
/// Decrease not worth a Newton step: times e^2 at first, then times the tolerance, from the first to the second as the gap
/// asks for it. The bound is of first order in what is left of the gradient where the value is of second.
const LOOSE_DECREASE: f64 = 1e-4;
const FINE_DECREASE: [f64; 2] = [1e-3, 1e-7];
const ESCAPES: usize = 15;
/// Most directions appended at once.
const MOST_DIRECTIONS: usize = 6;
const NEWTON_STEPS: usize = 300;
/// Values below this share of sum c count as 0 when the gap is measured.
pub(crate) const NOTHING: f64 = 1e-9;

/// The level of the truncated rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Level {
    /// Given: 1 for REH.
    Given(f64),
    /// Found, for a budget of `target` = (1 - rho) sum c, `from` a guess.
    Budget { target: f64, from: f64 },
}

/// What is asked of a solve.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goal {
    /// Relative gap.
    pub(super) tolerance: f64,
    /// A lower bound of this is enough.
    pub(super) cutoff: f64,
    /// A value below this is enough: the bound can't exceed it.
    pub(super) hopeless: f64,
    /// Largest smoothing at which a certificate is taken.
    pub(super) certify_from: f64,
    /// Smallest smoothing.
    pub(super) finest: f64,
    /// Largest smoothing.
    pub(super) coarsest: f64,
    /// Most Newton steps in all.
    pub(super) steps: usize,
}

impl Goal {
    pub(super) fn full(tolerance: f64, steps: usize) -> Goal {
        Goal {
            tolerance,
            cutoff: f64::INFINITY,
            hopeless: f64::NEG_INFINITY,
            certify_from: ADAPT,
            finest: 0.0,
            coarsest: 1.0,
            steps,
        }
    }
}

/// A solved relaxation.
#[derive(Debug, Clone)]
pub(super) struct Lifted {
    /// W, its columns one after the other.
    pub(super) w: Vec<f64>,
    pub(super) columns: usize,
    /// Value of the relaxation at W, an upper bound of its minimum.
    pub(super) value: f64,
    /// Certified lower bound.
    pub(super) lower: f64,
    /// t
    pub(super) level: f64,
    pub(super) eta: Vec<f64>,
    pub(super) alpha: Vec<f64>,
    pub(super) sigma: Vec<f64>,
    pub(super) steps: usize,
    pub(super) status: Status,
}

/// W to begin with: w along the mean row, V at random, both of the length that makes margins near 1, but no longer than what costs
/// as much as all rows together. All zeros where the rows are.
pub(super) fn start(rows: &Rows, seed: u64) -> (Vec<f64>, usize) {
    let (n, m) = (rows.len(), rows.features.columns);
    let columns = FIRST_COLUMNS.min(m + 1);
    let mut w = vec![0.0; columns * m];
    let mut squares = 0.0;
    for row in 0..n {
        let f = rows.features.row(row);
        squares += dot(f, f);
        w[..m].iter_mut().zip(f).for_each(|(w, f)| *w += rows.caps[row] * f);
    }
    if squares == 0.0 {
        return (vec![0.0; columns * m], columns);
    }
    let longest = (2.0 * rows.caps.iter().sum::<f64>() / rows.ridge).sqrt();
    let unit = (n as f64 / squares).sqrt().min(longest);
    let length = dot(&w[..m], &w[..m]).sqrt().max(f64::MIN_POSITIVE);
    w[..m].iter_mut().for_each(|w| *w *= unit / length);
    let mut state = seed ^ 0x5851_F42D_4C95_7F2D;
    let spread = unit / ((columns.max(2) - 1) as f64).sqrt();
    for value in &mut w[m..] {
        *value = spread * normal(&mut state);
    }
    (w, columns)
}

/// Roughly normal.
fn normal(state: &mut u64) -> f64 {
    (0..12).fold(-6.0, |total, _| total + (next_random(state) >> 11) as f64 / (1u64 << 53) as f64)
}

/// The next of a sequence of pseudo-random numbers (splitmix).
pub(super) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Solves the relaxation from a given W.
pub(super) fn solve(
    rows: &Rows,
    error: f64,
    level: Level,
    start: (Vec<f64>, usize),
    goal: Goal,
    control: &Control,
    watch: &dyn Fn(usize, f64, f64),
) -> Result<Lifted> {
    let total: f64 = rows.caps.iter().sum();
    let mut work = Work {
        rows,
        point: Point::new(start.0, start.1),
        target: if let Level::Budget { target, .. } = level { Some(target) } else { None },
        level: match level {
            Level::Given(level) | Level::Budget { from: level, .. } => level,
        },
        strength: 3.0,
        scale: 1.0,
        fine: FINE_DECREASE[0],
        steps: 0,
        goal,
        control,
    };
    let mut best: Option<Lifted> = None;
    // no relaxation is below 0
    let mut lower = 0.0f64;
    let mut status = Status::Inaccurate;
    let mut coarse = SMOOTHINGS.into_iter().filter(|e| *e <= goal.coarsest);
    let mut e = coarse.next().unwrap_or(goal.coarsest);
    while e >= goal.finest.max(FINEST) {
        let mut fall = FALL[0];
        let found = work.stage(e)?;
        control.check()?;
        let ending = match () {
            _ if control.out_of_time() => Some(Status::TimeLimit),
            _ if work.steps >= goal.steps => Some(Status::IterationLimit),
            _ => None,
        };
        if let Some((curve, multipliers, top)) = found {
            let value = work.value();
            let price = work.target.map_or(0.0, |target| work.level * target * (1.0 + 4.0 * f64::EPSILON));
            let enough = (value - 0.5 * goal.tolerance * value.abs()).min(goal.cutoff) + price;
            let (bound, _) = certified(rows, error, work.level, &multipliers, &curve, top, enough);
            lower = lower.max(bound - price);
            if best.as_ref().is_none_or(|best| value < best.value) {
                best = Some(work.answer(value, e, multipliers));
            }
            let value = best.as_ref().map_or(value, |best| best.value);
            watch(work.steps, value, lower);
            let tight = value - lower <= goal.tolerance * value.abs().max(NOTHING * total);
            if tight || lower >= goal.cutoff || value < goal.hopeless {
                status = Status::Converged;
                break;
            }
            // the gap falls like e^3 to e^4 where nothing else is left
            let gap = (value - lower) / value.abs().max(f64::MIN_POSITIVE);
            fall = (0.3 * goal.tolerance / gap).powf(0.25).clamp(FALL[0], FALL[1]);
        }
        if let Some(ending) = ending {
            status = ending;
            break;
        }
        if e <= ADAPT {
            work.fine = (work.fine / 10.0).max(FINE_DECREASE[1]);
        }
        e = coarse.next().unwrap_or(fall * e);
    }
    let steps = work.steps;
    let mut answer = best.unwrap_or_else(|| {
        let e = goal.coarsest.min(SMOOTHINGS[0]);
        work.answer(work.value(), e, work.multipliers(e))
    });
    answer.lower = lower;
    answer.steps = steps;
    answer.status = status;
    Ok(answer)
}

struct Work<'a, 'b> {
    rows: &'a Rows<'a>,
    point: Point,
    /// The budget, if any.
    target: Option<f64>,
    level: f64,
    /// z of the proximal method relative to t.
    strength: f64,
    /// The level that smoothing is relative to.
    scale: f64,
    /// Of FINE_DECREASE, the one in use.
    fine: f64,
    steps: usize,
    goal: Goal,
    control: &'a Control<'b>,
}

impl Work<'_, '_> {
    /// e^2 in units of the level: l_t is homogeneous in (t, 1 - a, b).
    fn smoothing(&self, e: f64) -> f64 {
        let unit = if self.target.is_some() { self.scale.min(1.0) } else { 1.0 };
        (e * unit) * (e * unit)
    }

    /// z = strength t^2 / value: the level's own curvature is of the order value / t^2.
    fn reach(&self) -> f64 {
        let total: f64 = self.rows.caps.iter().sum();
        let value = if self.point.value > 0.0 { self.point.value } else { self.level * total };
        self.strength * self.level * (self.level / value)
    }

    fn smoothed(&self, e: f64) -> Smoothed<'_> {
        let budget = self.target.map(|target| Budget { target, centre: self.level, strength: self.reach() });
        Smoothed { rows: *self.rows, smoothing: self.smoothing(e), level: self.level, budget }
    }

    /// Minimises at a smoothing, to second order where the rank is adapted, and gives what the certificate needs.
    fn stage(&mut self, e: f64) -> Result<Option<(Curve, Multipliers, f64)>> {
        self.compress();
        for _ in 0..ESCAPES {
            self.descend(e)?;
            let tired = self.steps >= self.goal.steps || self.control.out_of_time();
            if e > CHECKED && !tired {
                return Ok(None);
            }
            let multipliers = self.multipliers(e);
            let curve = Curve::new(self.rows, self.level, &multipliers);
            let (tops, directions) = curve.tops(MOST_DIRECTIONS);
            let top = tops.first().copied().unwrap_or(0.0);
            let least = if e > ADAPT { 1.0 + LOOSE } else { 1.0 + 1e-7 };
            let above = tops.iter().filter(|&&value| value > least).count();
            if tired || above == 0 || !self.escape(e, &directions[..above * self.rows.features.columns]) {
                return Ok((e <= self.goal.certify_from || tired).then_some((curve, multipliers, top)));
            }
        }
        Ok(Some(self.certificate(e)))
    }

    fn descend(&mut self, e: f64) -> Result<()> {
        let rounds = match self.target {
            None => 1,
            Some(_) if e > ADAPT => 2,
            Some(_) => 8,
        };
        self.scale = self.level;
        for _ in 0..rounds {
            let mut point = std::mem::take(&mut self.point);
            let problem = self.smoothed(e);
            if point.value == 0.0 {
                problem.evaluate(&mut point);
            }
            let share = if e > ADAPT { LOOSE_DECREASE * e * e } else { (self.fine * self.goal.tolerance).max(1e-14) };
            let enough = share * point.value.abs();
            let left = self.goal.steps.saturating_sub(self.steps).clamp(1, NEWTON_STEPS);
            let steps = descend(&problem, &mut point, Effort { enough, steps: left }, self.control)?;
            let (before, reach) = (self.level, problem.budget.map_or(1.0, |budget| budget.strength));
            self.level = point.level;
            self.point = point;
            self.steps += steps;
            let Some(_) = self.target else { break };
            let moved = self.level - before;
            // a step to 0 would have no unit of its own
            self.level = self.level.max(0.01 * before);
            if moved * moved / reach <= enough {
                break;
            }
            self.strength = (4.0 * self.strength).min(1e6);
        }
        Ok(())
    }

    fn certificate(&self, e: f64) -> (Curve, Multipliers, f64) {
        let multipliers = self.multipliers(e);
        let curve = Curve::new(self.rows, self.level, &multipliers);
        let top = curve.tops(1).0.first().copied().unwrap_or(0.0);
        (curve, multipliers, top)
    }

    fn multipliers(&self, e: f64) -> Multipliers {
        let n = self.rows.len();
        let (mut alpha, mut sigma) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for row in 0..n {
            let loss = self.loss(row, e);
            alpha.push(loss.alpha);
            sigma.push(loss.sigma);
        }
        Multipliers { alpha, sigma }
    }

    fn loss(&self, row: usize, e: f64) -> crate::problem::ablation::RelaxedLoss {
        let n = self.rows.len();
        let level = self.rows.level(row, self.level);
        relaxed_loss(level, self.point.margins[row], self.point.squared(row, n), self.smoothing(e))
    }

    /// The value without smoothing: with a budget, the largest over the level.
    fn value(&self) -> f64 {
        let n = self.rows.len();
        let penalty = 0.5 * self.rows.ridge * dot(&self.point.w, &self.point.w);
        let at = |t: f64| {
            let loss = |row: usize| {
                let level = self.rows.level(row, t);
                self.rows.caps[row]
                    * relaxed_loss(level, self.point.margins[row], self.point.squared(row, n), 0.0).value
            };
            sum(n, self.rows.is_large(1), loss)
        };
        let Some(target) = self.target else { return penalty + at(self.level) };
        let slope = |t: f64| {
            let outlying = |row: usize| {
                let level = self.rows.level(row, t);
                let loss = relaxed_loss(level, self.point.margins[row], self.point.squared(row, n), 0.0);
                self.rows.caps[row] * (1.0 - loss.eta)
            };
            sum(n, self.rows.is_large(1), outlying) - target
        };
        // concave in t: the zero of a decreasing slope, from around the level at hand
        let (mut low, mut high) = (self.level, self.level.max(1e-12));
        let mut step = 1e-6 * high;
        while slope(high) > 0.0 && high < 1e15 {
            low = high;
            high += step;
            step *= 4.0;
        }
        step = 1e-6 * low;
        while low > 0.0 && slope(low) <= 0.0 {
            high = low;
            low = (low - step).max(0.0);
            step *= 4.0;
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if !(high - low > 1e-14 * high) {
                break;
            }
            if slope(middle) > 0.0 { low = middle } else { high = middle }
        }
        penalty + [low, high, self.level].into_iter().map(|t| at(t) - t * target).fold(f64::NEG_INFINITY, f64::max)
    }

    fn answer(&self, value: f64, e: f64, multipliers: Multipliers) -> Lifted {
        Lifted {
            w: self.point.w.clone(),
            columns: self.point.columns,
            value,
            lower: f64::NEG_INFINITY,
            level: self.level,
            eta: (0..self.rows.len()).map(|row| self.loss(row, e).eta).collect(),
            alpha: multipliers.alpha,
            sigma: multipliers.sigma,
            steps: 0,
            status: Status::Inaccurate,
        }
    }

    /// V rotated so that its columns are orthogonal, those of no length dropped: VV' stays.
    fn compress(&mut self) {
        let m = self.rows.features.columns;
        let r = self.point.columns;
        if r <= 1 {
            return;
        }
        let v = &self.point.w[m..];
        let order = r - 1;
        let mut gram = vec![0.0; order * order];
        for j in 0..order {
            for k in 0..=j {
                gram[j * order + k] = dot(&v[j * m..(j + 1) * m], &v[k * m..(k + 1) * m]);
                gram[k * order + j] = gram[j * order + k];
            }
        }
        let (values, vectors) = jacobi(&gram, order);
        let least = 1e-12 * dot(&self.point.w, &self.point.w);
        let mut w = self.point.w[..m].to_vec();
        for at in (0..order).filter(|&at| values[at] > least) {
            let from = w.len();
            w.resize(from + m, 0.0);
            for k in 0..order {
                let weight = vectors[k * order + at];
                w[from..].iter_mut().zip(&v[k * m..(k + 1) * m]).for_each(|(w, v)| *w += weight * v);
            }
        }
        self.point.columns = w.len() / m.max(1);
        self.point.w = w;
    }

    /// Appends directions to V at the best of some lengths. `false` when none of them goes down.
    fn escape(&mut self, e: f64, directions: &[f64]) -> bool {
        let saved = self.point.clone();
        self.compress();
        let m = self.rows.features.columns;
        let base = dot(&self.point.w, &self.point.w).sqrt().max(f64::MIN_POSITIVE);
        let problem = self.smoothed(e);
        let before = {
            let mut here = Point::new(self.point.w.clone(), self.point.columns);
            problem.evaluate(&mut here);
            here.value
        };
        let mut best: Option<Point> = None;
        for k in 0..12 {
            let length = base * 10f64.powf(-5.0 + 0.5 * f64::from(k));
            let mut w = self.point.w.clone();
            w.extend(directions.iter().map(|value| length * value));
            let mut trial = Point::new(w, self.point.columns + directions.len() / m);
            problem.evaluate(&mut trial);
            if best.as_ref().is_none_or(|best| trial.value < best.value) {
                best = Some(trial);
            }
        }
        match best {
            Some(best) if best.value < before - 1e-14 * before.abs() => {
                self.point = best;
                true
            }
            _ => {
                self.point = saved;
                false
            }
        }
    }
}
