//! Linear two-class support vector machine, hinge or truncated hinge, for many more rows than columns.
//!
//! ```text
//! P(w, b) = 1/2 |w|^2 + sum_i c_i T(y_i (w'x_i + b)),       T(u) = min([1 - u]_+, 1 - s),   b unpenalised
//! ```
//!
//! Normalised: features are divided by a power of two, P by the largest cap, so that only rho = 1 / (c_max sigma^2) carries the scale
//! of the problem and data of any magnitude work. No copy of the data is made; rows are scaled as they are read.
//!
//! | file | does |
//! |---|---|
//! | `level` | a convex problem over some rows, and the sweep over rows in cached blocks on all threads |
//! | `pilot` | a first guess from growing samples |
//! | `smooth` | Newton's method on the smoothed loss: a few passes over all rows |
//! | `band` | the exact solution from the rows near the kink, verified on all rows |
//! | `interior` | primal-dual interior point: few rows, or last resort |
//! | `truncated` | descent on the truncated loss and the majorise-minimise steps |
//! | `certificate` | clean multipliers, exact balance, true duality gap |
//! | `polish` | the exact answer on few rows for solves whose rows are not in memory |
//!
//! Four to six passes over the data for the plain hinge, O(n d) each, plus O(m p^2) per interior-point iteration on the m rows of a band.

// `!(a < b)` is meant: a NaN must count as failure
#![allow(clippy::neg_cmp_op_on_partial_ord)]

mod band;
mod certificate;
mod interior;
mod level;
mod many;
mod pilot;
mod polish;
mod smooth;
mod truncated;

use self::band::{Context, Guess};
use self::certificate::{Certified, certify, middle_intercept};
use self::interior::Pair;
use self::level::{Block, Level, add};
use super::{Care, Options, Solution, Status};
use crate::control::{Control, Progress};
use crate::data::Design;
use crate::error::{Error, Result};
use crate::linalg::{Isa, dot};
use crate::problem::{KernelFunction, TwoClass};
use rayon::prelude::*;

pub(super) use self::level::GramSum;
pub use self::many::solve_many;
pub(super) use self::polish::{Near, Polished, explore, polish};

/// The solver's name.
pub const NAME: &str = "linear-band";
/// rho is kept within these bounds; beyond them the data decide nothing or everything, to any precision.
const RIDGE_RANGE: (f64, f64) = (1e-280, 1e280);
/// Most certificates taken until the set they hold for is the solution's own.
const RECHECKS: usize = 3;
/// Parts of the columns whose medians are found one after the other.
const MEDIAN_PARTS: usize = 8;
/// Expected error of z at a caller's start.
const WARM_ERROR: f64 = 0.2;

/// Solves a linear two-class hinge problem, truncated or not.
///
/// ```
/// use outlast::{Control, Dense, KernelFunction, Loss};
/// use outlast::problem::TwoClass;
/// use outlast::solver::{Options, linear};
///
/// let x = Dense::from_rows(&[[0.0], [1.0], [2.0], [3.0]]);
/// let problem = TwoClass {
///     norm: outlast::problem::Norm::Squared,
///     x: &x,
///     signs: &[-1.0, -1.0, 1.0, 1.0],
///     caps: &[10.0; 4],
///     loss: Loss::hinge(),
///     kernel: &KernelFunction::Linear,
///     intercept: true,
/// };
/// let solution = linear::solve(&problem, &Options { tolerance: 1e-8, ..Options::default() }, &Control::default())?;
/// // the widest gap between the classes is from 1 to 2: w = 2, b = -3
/// assert!((solution.weights.as_ref().unwrap()[0] - 2.0).abs() < 1e-3 && (solution.intercept() + 3.0).abs() < 1e-3);
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn solve(problem: &TwoClass, options: &Options, control: &Control) -> Result<Solution> {
    check(problem)?;
    let caps_largest = problem.caps.iter().fold(0.0f64, |largest, cap| largest.max(*cap));
    if let Some(solution) = trivial(problem, caps_largest) {
        return Ok(solution);
    }
    let unit = unit(problem.x);
    let ridge = (unit / caps_largest) * unit;
    let caps: Vec<f64> = problem.caps.iter().map(|cap| cap / caps_largest).collect();
    let level = Level {
        x: problem.x,
        unit,
        signs: problem.signs,
        caps: &caps,
        ridge: ridge.clamp(RIDGE_RANGE.0, RIDGE_RANGE.1),
        linear: vec![0.0; problem.x.cols() + 1],
        constant: 0.0,
        intercept: problem.intercept,
        room: options.cache_bytes,
        isa: Isa::detect(),
    };
    let context = Context { control, metric: moments(&level) };
    let start = start(&level, options)?;
    let shrink = (level.ridge / ridge).min(1.0);
    let work = Work { problem, level: &level, caps_largest, shrink, options, context: &context };
    match problem.loss.truncation() {
        None => work.plain(start),
        Some(truncation) => work.truncated(start, 1.0 - truncation),
    }
}

fn check(problem: &TwoClass) -> Result<()> {
    if !matches!(problem.kernel, KernelFunction::Linear) {
        return Err(Error::parameter("solver", NAME, "used with the linear kernel only"));
    }
    if problem.loss.base().name() != "hinge" {
        let allowed = format!("used with the hinge loss only, not {}", problem.loss.base().name());
        return Err(Error::parameter("solver", NAME, allowed));
    }
    let n = problem.x.rows();
    if problem.signs.len() != n || problem.caps.len() != n || u32::try_from(n).is_err() {
        let found = format!("{n} rows for {} labels and {} weights", problem.signs.len(), problem.caps.len());
        return Err(Error::shape("X", found, "as many of each, fewer than 2^32"));
    }
    Ok(())
}

/// The answer when nothing has to be computed: no row counts, or all that count are of one class and b is free.
fn trivial(problem: &TwoClass, caps_largest: f64) -> Option<Solution> {
    let mut counted = problem.signs.iter().zip(problem.caps).filter(|(_, cap)| **cap > 0.0).map(|(y, _)| *y);
    let intercept = if caps_largest > 0.0 {
        let first = counted.next()?;
        if !problem.intercept || counted.any(|y| y != first) {
            return None;
        }
        first
    } else {
        0.0
    };
    let n = problem.rows();
    Some(Solution {
        expansion: vec![0.0; n],
        weights: Some(vec![0.0; problem.x.cols()]),
        intercepts: vec![intercept],
        majorant: None,
        decision: vec![intercept; n],
        truncated: problem.signs.iter().map(|y| problem.loss.truncates(y * intercept)).collect(),
        objective: 0.0,
        gap: 0.0,
        trace: vec![0.0],
        iterations: 0,
        status: Status::Converged,
        solver: NAME,
    })
}

/// The power of two that brings the largest feature to between 1/2 and 1.
fn unit(x: &dyn Design) -> f64 {
    const PIECE: usize = 256;
    let (n, d) = (x.rows(), x.cols());
    let piece = (PIECE * 64 / d.max(1)).clamp(1, 4096);
    let largest = (0..n.div_ceil(piece))
        .into_par_iter()
        .map_init(Vec::new, |scratch, number| {
            let block = x.block(number * piece..((number + 1) * piece).min(n), scratch);
            let mut lanes = [0.0f64; 8];
            for values in block.chunks(8) {
                for (lane, value) in lanes.iter_mut().zip(values) {
                    let size = value.abs();
                    *lane = if size > *lane { size } else { *lane };
                }
            }
            lanes.iter().fold(0.0f64, |a, b| a.max(*b))
        })
        .reduce(|| 0.0, f64::max);
    if largest > 0.0 { (-largest.log2().floor().clamp(-1000.0, 1000.0)).exp2() } else { 1.0 }
}

/// sum_i k_i x_ij^2 for each column, and sum k.
fn moments(level: &Level) -> Vec<f64> {
    let d = level.x.cols();
    let mut nothing = vec![(); level.rows()];
    let visit = |block: &Block, _: &mut [()], sums: &mut Vec<f64>| {
        for (k, cap) in block.caps.iter().enumerate() {
            let factor = cap.sqrt() * level.unit;
            for (sum, x) in sums.iter_mut().zip(&block.x[k * d..(k + 1) * d]) {
                let x = factor * x;
                *sum += x * x;
            }
            sums[d] += cap;
        }
    };
    level.sweep(&mut nothing, || vec![0.0; d + 1], visit, |total, part| add(total, &part))
}

/// theta of the caller's start, if any.
fn start(level: &Level, options: &Options) -> Result<Option<Vec<f64>>> {
    let Some(start) = &options.start else { return Ok(None) };
    let Some(weights) = &start.weights else { return Ok(None) };
    if weights.len() + 1 != level.order() {
        let expected = format!("{} weights", level.order() - 1);
        return Err(Error::shape("start", format!("{} weights", weights.len()), expected));
    }
    let mut theta: Vec<f64> = weights.iter().map(|w| w / level.unit).collect();
    theta.push(if level.intercept { start.intercept() } else { 0.0 });
    Ok(theta.iter().all(|value| value.is_finite()).then_some(theta))
}

/// Caps with those of truncated rows at 0.
fn kept(caps: &[f64], truncated: &[bool]) -> Vec<f64> {
    caps.iter().zip(truncated).map(|(cap, out)| if *out { 0.0 } else { *cap }).collect()
}

/// The function that is +1 at the positive rows' median and -1 at the negative rows', column by column: a start that no
/// single row, however far, can drag off. In units of the level; `None` if the medians coincide.
fn medians(problem: &TwoClass, unit: f64) -> Option<Vec<f64>> {
    let d = problem.x.cols();
    // some columns at a time: all of them would be the table once more
    let width = d.div_ceil(MEDIAN_PARTS).max(1);
    let mut columns = vec![Vec::new(); width];
    let mut own = vec![0.0; d];
    let mut median = |sign: f64| -> Vec<f64> {
        let mut medians = Vec::with_capacity(d);
        for first in (0..d).step_by(width) {
            columns.iter_mut().for_each(Vec::clear);
            for row in (0..problem.rows()).filter(|&row| problem.signs[row] == sign && problem.caps[row] > 0.0) {
                problem.x.copy_row(row, &mut own);
                columns.iter_mut().zip(&own[first..]).for_each(|(column, value)| column.push(value * unit));
            }
            let middle = |column: &mut Vec<f64>| match column.len() {
                0 => 0.0,
                count => *column.select_nth_unstable_by(count / 2, f64::total_cmp).1,
            };
            medians.extend(columns[..width.min(d - first)].iter_mut().map(middle));
        }
        medians
    };
    let (positive, negative) = (median(1.0), median(-1.0));
    let difference: Vec<f64> = positive.iter().zip(&negative).map(|(a, b)| a - b).collect();
    let gain = 2.0 / dot(&difference, &difference);
    let mut theta: Vec<f64> = difference.iter().map(|w| gain * w).collect();
    let middle: f64 = positive.iter().zip(&negative).zip(&theta).map(|((a, b), w)| 0.5 * (a + b) * w).sum();
    theta.push(if problem.intercept { -middle } else { 0.0 });
    theta.iter().all(|value| value.is_finite()).then_some(theta)
}

/// One call of [`solve`].
struct Work<'a> {
    problem: &'a TwoClass<'a>,
    level: &'a Level<'a>,
    caps_largest: f64,
    /// w is 1 / ridge times a sum over the rows: what it is to be multiplied by where the ridge had to be cut.
    shrink: f64,
    options: &'a Options,
    context: &'a Context<'a>,
}

impl Work<'_> {
    fn convex(&self, start: Option<Vec<f64>>, tolerance: f64) -> Result<Pair> {
        let level = self.level;
        let (theta, error, before) = match start {
            Some(theta) => (theta, WARM_ERROR, 0),
            None if level.rows() <= band::few(level) => (vec![0.0; level.order()], 1.0, 0),
            None => {
                let pilot = pilot::run(level, self.options.seed, self.context)?;
                (pilot.theta, pilot.error, pilot.iterations)
            }
        };
        let guess = Guess { theta: &theta, error, smooth: true };
        let mut pair = band::solve(level, guess, tolerance, self.context)?;
        pair.iterations += before;
        Ok(pair)
    }

    fn plain(&self, start: Option<Vec<f64>>) -> Result<Solution> {
        let tolerance = self.options.tolerance;
        // some to spare for what cleaning the multipliers costs; the last digit is nearly free
        let pair = self.convex(start, 0.1 * tolerance)?;
        let found = certify(self.level, &pair, tolerance, false);
        let truncated = vec![false; self.level.rows()];
        Ok(self.solution(found, truncated, Vec::new(), pair.iterations, Status::Converged))
    }

    fn truncated(&self, start: Option<Vec<f64>>, ceiling: f64) -> Result<Solution> {
        let tolerance = self.options.tolerance;
        let followed = start.clone().filter(|_| self.options.care == Care::Follow);
        let small = self.level.rows() <= truncated::SMALL && self.options.care == Care::Full;
        let plain = self.convex(start, truncated::plain_tolerance(small, tolerance))?;
        let plan = truncated::Plan { ceiling, tolerance, max_steps: self.options.max_steps, both: small };
        let others: Vec<Vec<f64>> = match small {
            true => medians(self.problem, self.level.unit).into_iter().collect(),
            false => Vec::new(),
        };
        let end = match followed {
            Some(theta) => truncated::follow(self.level, &theta, &plain, plan, self.context)?,
            None => truncated::solve(self.level, &plain, &others, plan, self.context)?,
        };
        let iterations = plain.iterations + end.pair.iterations;
        let (mut pair, mut out) = (end.pair, end.truncated);
        let mut found = self.certify_kept(&pair, &out);
        for _ in 0..RECHECKS {
            // the certificate may prefer a slightly different w, and with it another set
            let own: Vec<bool> = found.slacks.iter().map(|z| *z > ceiling).collect();
            if own == out {
                break;
            }
            pair.theta = found.theta;
            out = own;
            found = self.certify_kept(&pair, &out);
        }
        Ok(self.solution(found, out, end.trace, iterations, end.status))
    }

    /// Certifies a pair for the convex problem without the truncated rows.
    fn certify_kept(&self, pair: &Pair, truncated: &[bool]) -> Certified {
        let caps = kept(self.level.caps, truncated);
        let dual = pair.dual.iter().zip(&caps).map(|(a, cap)| a.min(*cap)).collect();
        let level = Level { caps: &caps, ..self.level.clone() };
        certify(&level, &Pair { dual, ..pair.clone() }, self.options.tolerance, true)
    }

    /// Back to the caller's units.
    fn solution(
        &self,
        found: Certified,
        solved: Vec<bool>,
        trace: Vec<f64>,
        iterations: usize,
        status: Status,
    ) -> Solution {
        let (problem, level) = (self.problem, self.level);
        let gap = found.relative_gap();
        let d = problem.x.cols();
        let mut theta = found.theta;
        if level.intercept {
            let caps = kept(level.caps, &solved);
            let level = Level { caps: &caps, ..level.clone() };
            if let Some(b) = middle_intercept(&level, &found.slacks, &found.dual, theta[d]) {
                // moving b must not change which rows are truncated
                let shift = b - theta[d];
                let rows = found.slacks.iter().zip(problem.signs).zip(&solved);
                let same = rows.into_iter().all(|((z, y), out)| problem.loss.truncates(1.0 - z + y * shift) == *out);
                theta[d] = if same { b } else { theta[d] };
            }
        }
        theta[..d].iter_mut().for_each(|w| *w *= self.shrink);
        let weights: Vec<f64> = theta[..d].iter().map(|w| w * level.unit).collect();
        let intercept = theta[d];
        let mut decision = vec![0.0; level.rows()];
        level.slacks(&theta, &mut decision);
        decision.iter_mut().zip(problem.signs).for_each(|(z, y)| *z = y * (1.0 - *z));
        let half_norm = 0.5 * weights.iter().map(|w| w * w).sum::<f64>();
        let loss: f64 = decision
            .iter()
            .zip(problem.signs)
            .zip(problem.caps)
            .filter(|(_, cap)| **cap > 0.0)
            .map(|((f, y), cap)| cap * problem.loss.value(y * f))
            .sum();
        let objective = half_norm + loss;
        let mut truncated: Vec<bool> =
            decision.iter().zip(problem.signs).map(|(f, y)| problem.loss.truncates(y * f)).collect();
        let mut own = true;
        for k in (0..truncated.len()).filter(|&k| level.caps[k] > 0.0) {
            own &= truncated[k] == solved[k];
            // the certificate holds for the set that was solved
            truncated[k] = solved[k];
        }
        let mut trace: Vec<f64> = trace.iter().map(|value| value * self.caps_largest).collect();
        trace.retain(|value| *value > objective);
        trace.push(objective);
        let status = match status {
            Status::TimeLimit | Status::IterationLimit => status,
            _ if self.context.control.out_of_time() && gap > self.options.tolerance => Status::TimeLimit,
            _ if own && gap <= self.options.tolerance => Status::Converged,
            _ => Status::Inaccurate,
        };
        let progress = Progress { stage: "certified", step: iterations, objective, gap };
        self.context.control.report(progress);
        // back from shares of the largest cap, without leaving the box by rounding
        let beta = |k: usize| problem.signs[k] * (found.dual[k] * self.caps_largest).min(problem.caps[k]);
        Solution {
            expansion: (0..found.dual.len()).map(beta).collect(),
            weights: Some(weights),
            intercepts: vec![intercept],
            majorant: None,
            decision,
            truncated,
            objective,
            gap,
            trace,
            iterations,
            status,
            solver: NAME,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::interior::Begin;
    use super::*;
    use crate::data::Dense;

    const TOLERANCE: f64 = 1e-8;
    const AGREEMENT: f64 = 1e-6;

    /// Rows on a noisy plane in three columns, one of them rare.
    fn data(n: usize) -> (Dense<'static>, Vec<f64>) {
        let mut state = 88_172_645_463_325_252u64;
        let mut uniform = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        let (mut values, mut signs) = (Vec::new(), Vec::new());
        for i in 0..n {
            let (x, y) = (uniform(), uniform());
            values.extend([x, y, if i % 1000 == 5 { 50.0 } else { 0.0 }]);
            signs.push(if x - 0.5 * y + 0.2 + 0.3 * uniform() > 0.0 { 1.0 } else { -1.0 });
        }
        (Dense::new(n, 3, values).unwrap(), signs)
    }

    #[test]
    fn bands_and_instructions_do_not_change_the_optimum() {
        let (x, signs) = data(9000);
        let caps = vec![1.0; 9000];
        let control = Control::default();
        let mut objectives = Vec::new();
        for isa in Isa::available() {
            let linear = vec![0.0; 4];
            let (unit, ridge, constant, intercept) = (1.0, 0.01, 0.0, true);
            let room = usize::MAX;
            let level =
                Level { x: &x, unit, signs: &signs, caps: &caps, ridge, linear, constant, intercept, room, isa };
            let context = Context { control: &control, metric: moments(&level) };
            let cold = vec![0.0; 4];
            let all = interior::solve(&level, Begin { theta: &cold, width: 1.0 }, TOLERANCE, &control).unwrap();
            let pilot = pilot::run(&level, 1, &context).unwrap();
            for smooth in [true, false] {
                let guess = Guess { theta: &pilot.theta, error: pilot.error, smooth };
                let pair = band::solve(&level, guess, TOLERANCE, &context).unwrap();
                assert!(pair.gap <= TOLERANCE * pair.objective && all.gap <= TOLERANCE * all.objective);
                objectives.extend([pair.objective, all.objective]);
            }
        }
        for objective in &objectives {
            assert!((objective - objectives[0]).abs() <= AGREEMENT * objectives[0], "{objectives:?}");
        }
    }
}
