//! The convex problem by bands: few passes over many rows, an exact solve over few.
//!
//! Near the optimum a row with |z| larger than what z can still move is affine: it adds -k y (x, 1) to the linear part if z > 0 and
//! nothing otherwise. So:
//!
//! ```text
//! 1. smooth   Newton on the smoothed loss, delta = the expected error of z
//! 2. band     rows with |z| <= h, and rows that could move their own z by |z| (rare columns), are copied out
//! 3. solve    the band's level, in the same way with a smaller delta; few rows: interior point
//! 4. verify   z of all rows: an affine row that changed side adds k |z| to the gap, and joins the band for the next round
//! ```
//!
//! The multipliers of affine rows are exactly 0 or k, so the sum of the band's gap and the violators' k |z| is a duality gap of the whole
//! level. After some rounds without success the interior point takes all rows.

use super::interior::{self, Begin, Pair};
use super::level::{Block, Level, add};
use super::smooth::{self, Smoothing, Stop};
use crate::control::{Control, Progress};
use crate::error::Result;

/// Rounds of band and verification before all rows go to the interior point.
const ROUNDS: usize = 8;
/// A row enters the band when its own weight could move its z this many times farther than |z|.
const LEVERAGE: f64 = 4.0;
/// Smallest share of the rows a band must leave out to be worth it.
const WORTH: f64 = 0.7;

/// |b| when only one class counts and nothing else determines it: other rows, truncated before, stay so.
const FAR: f64 = 4.0;

/// Sides of a row.
pub(super) const INACTIVE: u8 = 0;
pub(super) const ACTIVE: u8 = 1;
pub(super) const BAND: u8 = 2;
pub(super) const FORCED: u8 = 3;
pub(super) const TRUNCATED: u8 = 4;

/// What stays the same on all levels of one solve.
pub(super) struct Context<'a> {
    pub control: &'a Control<'a>,
    /// sum_i k_i x_ij^2 of the whole problem, and sum k
    pub metric: Vec<f64>,
}

/// Fewest rows for which bands are used.
pub(super) fn few(level: &Level) -> usize {
    (30 * level.order()).max(2000)
}

/// Where a solve begins.
#[derive(Clone, Copy)]
pub(super) struct Guess<'a> {
    pub theta: &'a [f64],
    /// Expected error of z.
    pub error: f64,
    /// Whether to run Newton's method on the smoothed loss first.
    pub smooth: bool,
}

/// Solves a level to a relative gap.
pub(super) fn solve(level: &Level, guess: Guess, tolerance: f64, context: &Context) -> Result<Pair> {
    if let Some(pair) = one_class(level, guess.theta) {
        return Ok(pair);
    }
    let active = level.caps.iter().filter(|cap| **cap > 0.0).count();
    if active <= few(level) {
        return interior::solve(level, Begin { theta: guess.theta, width: guess.error }, tolerance, context.control);
    }
    let mut theta = guess.theta.to_vec();
    let mut z = vec![0.0; level.rows()];
    let delta = guess.error.clamp(1e-6, 1.0) * 2.0;
    let mut iterations = 0;
    let smoothing = Smoothing { width: delta, ceiling: f64::INFINITY };
    let probes = if guess.smooth {
        let stop = Stop { still: 0.1 * delta, most: 10, trust: f64::INFINITY };
        let outcome = smooth::newton(level, &context.metric, &mut theta, &mut z, smoothing, stop, context.control)?;
        iterations += outcome.steps;
        outcome.evaluation.probes(level)
    } else {
        smooth::evaluate(level, &theta, smoothing, &mut z).probes(level)
    };
    let mut state = vec![INACTIVE; level.rows()];
    let mut lowest = objective(level, &theta, &z);
    let mut half_width = if guess.smooth { 0.75 * delta } else { delta };
    let mut best: Option<Pair> = None;
    for round in 0..ROUNDS {
        context.control.check()?;
        let mut chosen = select(level, &z, half_width, f64::INFINITY, &probes, &mut state);
        if chosen.band.len() < few(level) / 2 {
            // too few rows to hold theta; more cost little
            half_width = half_width.max(nearest(level, &z, f64::INFINITY, few(level)));
            chosen = select(level, &z, half_width, f64::INFINITY, &probes, &mut state);
        }
        if chosen.band.len() as f64 > WORTH * active as f64 {
            break;
        }
        let copied = level.copy(&chosen.band);
        let inner_level = copied.level(level, chosen.linear, chosen.constant);
        let error = if round == 0 { 0.1 * delta } else { 0.02 * delta };
        let inner = solve(&inner_level, Guess { theta: &theta, error, smooth: true }, 0.3 * tolerance, context)?;
        iterations += inner.iterations;
        let found = verify(level, &inner, &chosen.band, &mut state, &mut z, iterations);
        let gap = found.pair.gap / found.pair.objective.abs().max(f64::MIN_POSITIVE);
        let objective = found.pair.objective;
        context.control.report(Progress { stage: "hinge", step: iterations, objective, gap });
        let inner_failed = inner.gap > tolerance * inner.objective.abs();
        let violators = found.violators;
        if objective <= lowest {
            lowest = objective;
            theta.copy_from_slice(&found.pair.theta);
        } else {
            half_width *= 2.0;
            level.slacks(&theta, &mut z);
        }
        if best.as_ref().is_none_or(|best| found.pair.gap < best.gap) {
            best = Some(found.pair);
        }
        if gap <= tolerance || context.control.out_of_time() {
            break;
        }
        if inner_failed || violators == 0 {
            break;
        }
        if 2 * violators > chosen.band.len() {
            half_width *= 2.0;
        }
    }
    match best {
        Some(pair) if pair.gap <= tolerance * pair.objective.abs() || context.control.out_of_time() => Ok(pair),
        best => {
            let cold = vec![0.0; level.order()];
            let mut last = interior::solve(level, Begin { theta: &cold, width: 1.0 }, tolerance, context.control)?;
            last.iterations += iterations;
            Ok(match best {
                Some(best) if best.gap <= last.gap => best,
                _ => last,
            })
        }
    }
}

/// The answer when all rows that count are of one class and b is free: w = 0 and any b beyond their kink. The guess's b if that is one.
fn one_class(level: &Level, theta: &[f64]) -> Option<Pair> {
    let mut counted = level.signs.iter().zip(level.caps).filter(|(_, cap)| **cap > 0.0).map(|(y, _)| *y);
    let first = counted.next();
    if !level.intercept || level.linear.iter().any(|g| *g != 0.0) || counted.any(|y| Some(y) != first) {
        return None;
    }
    let (y, b) = (first.unwrap_or(1.0), theta[theta.len() - 1]);
    let mut answer = vec![0.0; theta.len()];
    answer[theta.len() - 1] = if y * b >= 1.0 { b } else { y * FAR };
    let dual = vec![0.0; level.rows()];
    Some(Pair { theta: answer, dual, objective: level.constant, gap: 0.0, iterations: 0 })
}

/// P without smoothing, from the slacks.
fn objective(level: &Level, theta: &[f64], z: &[f64]) -> f64 {
    level.affine_part(theta) + level.caps.iter().zip(z).map(|(cap, z)| cap * z.max(0.0)).sum::<f64>()
}

/// The distance from the kinks (0, and `ceiling` if finite) within which `count` of the rows that count lie.
pub(super) fn nearest(level: &Level, z: &[f64], ceiling: f64, count: usize) -> f64 {
    let counted = z.iter().zip(level.caps).filter(|(_, cap)| **cap > 0.0);
    let mut distances: Vec<f64> = counted.map(|(z, _)| z.abs().min((z - ceiling).abs())).collect();
    if count >= distances.len() {
        return f64::INFINITY;
    }
    *distances.select_nth_unstable_by(count, f64::total_cmp).1
}

/// A band and the affine part that stands for all other rows.
pub(super) struct Chosen {
    pub band: Vec<u32>,
    pub linear: Vec<f64>,
    pub constant: f64,
}

/// Splits the rows by z; `state` remembers the side of each. Rows marked FORCED stay in the band. Rows beyond `ceiling` (the truncated
/// loss; infinite for the plain one) are constant.
pub(super) fn select(
    level: &Level,
    z: &[f64],
    half_width: f64,
    ceiling: f64,
    probes: &[Vec<f64>],
    state: &mut [u8],
) -> Chosen {
    let chosen = split(level, z, half_width, ceiling, probes, state);
    // a window too empty to say anything about leverage
    if 3 * chosen.band.len() > level.rows() && !probes.is_empty() {
        return split(level, z, half_width, ceiling, &[], state);
    }
    chosen
}

fn split(level: &Level, z: &[f64], half_width: f64, ceiling: f64, probes: &[Vec<f64>], state: &mut [u8]) -> Chosen {
    let p = level.order();
    let probes: Vec<_> = probes.iter().map(|probe| level.functional(probe)).collect();
    let share = LEVERAGE / probes.len().max(1) as f64;
    type Sums = (Vec<u32>, Vec<f64>, f64, Vec<f64>, Vec<f64>, Vec<f64>);
    let visit = |block: &Block, state: &mut [u8], (band, linear, constant, factors, moves, leverage): &mut Sums| {
        factors.clear();
        leverage.clear();
        leverage.resize(state.len(), 0.0);
        for probe in &probes {
            level.margins(block, probe, moves);
            leverage.iter_mut().zip(moves.iter()).for_each(|(sum, value)| *sum += share * value * value);
        }
        for (k, state) in state.iter_mut().enumerate() {
            let (row, cap) = (block.first + k, block.caps[k]);
            let z = z[row];
            let distance = z.abs().min((z - ceiling).abs());
            let mut factor = 0.0;
            if cap == 0.0 {
                *state = INACTIVE;
            } else if *state == FORCED || distance <= half_width || cap * leverage[k] > distance {
                *state = if *state == FORCED { FORCED } else { BAND };
                band.push(row as u32);
            } else if z > ceiling {
                *state = TRUNCATED;
                *constant += cap * ceiling;
            } else if z > 0.0 {
                *state = ACTIVE;
                factor = -cap * block.signs[k];
                *constant += cap;
            } else {
                *state = INACTIVE;
            }
            factors.push(factor);
        }
        level.add_rows(block, factors, linear);
    };
    let new = || (Vec::new(), vec![0.0; p], 0.0, Vec::new(), Vec::new(), Vec::new());
    let (band, mut linear, constant, ..) = level.sweep(state, new, visit, |total, part| {
        total.0.extend(part.0);
        add(&mut total.1, &part.1);
        total.2 += part.2;
    });
    level.normalise(&mut linear);
    add(&mut linear, &level.linear);
    Chosen { band, linear, constant: constant + level.constant }
}

struct Verified {
    pair: Pair,
    violators: usize,
}

/// Checks the band's solution on all rows. Violators are marked FORCED.
fn verify(level: &Level, inner: &Pair, band: &[u32], state: &mut [u8], z: &mut [f64], iterations: usize) -> Verified {
    let functional = level.functional(&inner.theta);
    struct Row<'a> {
        z: &'a mut f64,
        state: &'a mut u8,
        dual: f64,
    }
    let mut rows: Vec<Row> = z.iter_mut().zip(state.iter_mut()).map(|(z, state)| Row { z, state, dual: 0.0 }).collect();
    for (&row, a) in band.iter().zip(&inner.dual) {
        rows[row as usize].dual = *a;
    }
    type Sums = (f64, f64, usize, Vec<f64>);
    let visit = |block: &Block, rows: &mut [Row], (loss, wrong, violators, margins): &mut Sums| {
        level.margins(block, &functional, margins);
        for (k, row) in rows.iter_mut().enumerate() {
            let (cap, z) = (block.caps[k], 1.0 - margins[k]);
            *row.z = z;
            *loss += cap * z.max(0.0);
            if *row.state == ACTIVE {
                row.dual = cap;
            }
            let bad = match *row.state {
                ACTIVE => z < 0.0,
                INACTIVE => z > 0.0 && cap > 0.0,
                _ => false,
            };
            if bad {
                *wrong += cap * z.abs();
                *violators += 1;
                *row.state = FORCED;
            }
        }
    };
    let new = || (0.0, 0.0, 0, Vec::new());
    let (loss, wrong, violators, _) = level.sweep(&mut rows, new, visit, |total, part| {
        total.0 += part.0;
        total.1 += part.1;
        total.2 += part.2;
    });
    let pair = Pair {
        objective: level.affine_part(&inner.theta) + loss,
        gap: inner.gap + wrong,
        dual: rows.iter().map(|row| row.dual).collect(),
        theta: inner.theta.clone(),
        iterations,
    };
    Verified { pair, violators }
}
