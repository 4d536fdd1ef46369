//! The convex problem with k classes by bands: few passes over many rows, an exact solve over few.
//!
//! Near the optimum a row whose largest f + o leads by more than the scores can still move is affine. So:
//!
//! ```text
//! 1. smooth   Newton on the smoothed loss, delta = the expected error of the scores
//! 2. band     rows that lead by <= h, rows that could move their own lead by that much (rare columns), and for each class some
//!             rows near a tie with it, are copied out
//! 3. solve    the band's level, in the same way with a smaller delta; few rows: interior point
//! 4. verify   scores of all rows: an affine row of another label adds c (its new lead) to the gap and joins the band
//! ```
//!
//! The multipliers of affine rows are exactly c e_label, so the sum of the band's gap and the violators' leads is a duality gap of
//! the whole level. After some rounds without success the interior point takes all rows.

use super::descent;
use super::dual::Dual;
use super::interior::{self, Begin, Pair};
use super::level::{Block, Copied, Level, Side, WIDEST, add};
use super::smooth::{self, Smoothing, Stop, two_largest};
use crate::control::{Control, Progress};
use crate::error::Result;

/// Rounds of band and verification before all rows go to the interior point.
const ROUNDS: usize = 10;
/// A row enters the band when its own weight could move its lead this many times farther than the lead.
const LEVERAGE: f64 = 4.0;
/// Smallest share of the rows a band must leave out to be worth it.
const WORTH: f64 = 0.7;
/// A row enters the band when it is this many of its own widths from a kink.
const REACH: f64 = 3.0;
/// b of the only class that counts, when nothing else determines it.
pub(super) const FAR: f64 = 2.0;
/// Growth of the samples of the first guess, and relative gap of its first.
const GROWTH: usize = 5;
const LOOSE: f64 = 3e-3;

/// What stays the same on all levels of one solve.
pub(super) struct Context<'a> {
    pub control: &'a Control<'a>,
    pub seed: u64,
}

/// Fewest rows for which bands are used.
pub(super) fn few(level: &Level) -> usize {
    (40 * level.order() * (level.classes - 1)).max(2000)
}

/// Where a solve begins.
#[derive(Clone, Copy)]
pub(super) struct Guess<'a> {
    pub theta: &'a [f64],
    /// Expected error of the scores.
    pub error: f64,
    /// Whether to run Newton's method on the smoothed loss first.
    pub smooth: bool,
}

/// Where a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Affine,
    Truncated,
    Band,
    /// In the band for good.
    Forced,
}

/// What is known of a row's scores.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// Class of the largest f + o, and of the second largest.
    pub label: u32,
    pub second: u32,
    pub place: Place,
    /// Difference of the two.
    pub lead: f64,
    /// z
    pub slack: f64,
}

impl Row {
    pub fn unknown() -> Row {
        Row { label: 0, second: 0, place: Place::Affine, lead: 0.0, slack: 0.0 }
    }

    /// Distance from the nearest kink of min([z]_+, ceiling).
    fn distance(&self, ceiling: f64) -> f64 {
        if self.slack > ceiling { self.slack - ceiling } else { self.lead.min(ceiling - self.slack) }
    }

    /// Whether a row that was affine or constant is so no longer at `next`.
    pub fn left(&self, next: &Row, ceiling: f64) -> bool {
        match self.place {
            Place::Affine => next.slack > ceiling || next.label != self.label,
            Place::Truncated => !(next.slack > ceiling),
            _ => false,
        }
    }

    fn see(&mut self, level: &Level, code: u32, f: &mut [f64]) -> f64 {
        self.slack = level.slack(code, f);
        let own = if level.side == Side::Margin { f[code as usize] } else { 0.0 };
        level.augment(code, f);
        let (first, second) = two_largest(f);
        (self.label, self.second) = (first as u32, second as u32);
        self.lead = f[first] - f[second];
        f[first] - own
    }
}

/// Looks at all rows at theta; returns the loss.
pub(super) fn glance(level: &Level, theta: &[f64], rows: &mut [Row]) -> f64 {
    let k = level.classes;
    let functional = level.functional(theta);
    let visit = |block: &Block, rows: &mut [Row], (loss, f, column): &mut (f64, Vec<f64>, Vec<f64>)| {
        f.resize(rows.len() * k, 0.0);
        level.scores(block, &functional, column, f);
        for (at, row) in rows.iter_mut().enumerate() {
            let value = row.see(level, block.codes[at], &mut f[at * k..(at + 1) * k]);
            *loss += if block.caps[at] > 0.0 { block.caps[at] * value } else { 0.0 };
        }
    };
    level.sweep(1, rows, || (0.0, Vec::new(), Vec::new()), visit, |total, part| total.0 += part.0).0
}

/// sum_i c_i min([z_i]_+, ceiling)
pub(super) fn truncated(level: &Level, rows: &[Row], ceiling: f64) -> f64 {
    let counted = level.caps.iter().zip(rows).filter(|(cap, _)| **cap > 0.0);
    counted.map(|(cap, row)| cap * row.slack.clamp(0.0, ceiling)).sum()
}

/// Root mean square change of z.
pub(super) fn movement(from: &[Row], to: &[Row]) -> f64 {
    let squares: f64 = from.iter().zip(to).map(|(a, b)| (a.slack - b.slack) * (a.slack - b.slack)).sum();
    (squares / from.len().max(1) as f64).sqrt()
}

/// Solves a level to a relative gap.
pub(super) fn solve(level: &Level, guess: Guess, tolerance: f64, context: &Context) -> Result<Pair> {
    if let Some(pair) = one_class(level, guess.theta) {
        return Ok(pair);
    }
    let active = level.caps.iter().filter(|cap| **cap > 0.0).count();
    if active <= few(level) {
        return exactly(level, guess, tolerance, context);
    }
    let smoothed = descent::solve(level, guess, tolerance, true, context)?;
    if let Some(pair) = smoothed.pair {
        return Ok(pair);
    }
    let guess = Guess { theta: &smoothed.theta, error: 0.5 * smoothed.width, smooth: false };
    let mut pair = exactly(level, guess, tolerance, context)?;
    pair.iterations += smoothed.iterations;
    Ok(pair)
}

/// Solves a level by bands.
pub(super) fn exactly(level: &Level, guess: Guess, tolerance: f64, context: &Context) -> Result<Pair> {
    if let Some(pair) = one_class(level, guess.theta) {
        return Ok(pair);
    }
    let active = level.caps.iter().filter(|cap| **cap > 0.0).count();
    if active <= few(level) {
        return interior::solve(level, Begin { theta: guess.theta, width: guess.error }, tolerance, context.control);
    }
    let mut theta = guess.theta.to_vec();
    let mut f = vec![0.0; level.rows() * level.classes];
    let delta = guess.error.clamp(1e-6, 1.0) * 2.0;
    let mut iterations = 0;
    let smoothing = Smoothing { width: delta, ceiling: f64::INFINITY, prior: &[] };
    let mut rows = vec![Row::unknown(); level.rows()];
    glance(level, &theta, &mut rows);
    let tail = smooth::tail(level, &mut rows, smoothing);
    let evaluation = if guess.smooth {
        let stop = Stop { still: 0.1 * delta, most: 30, trust: f64::INFINITY };
        let outcome = smooth::newton(level, &mut theta, &mut f, smoothing, &tail, stop, context.control)?;
        iterations += outcome.steps;
        outcome.evaluation
    } else {
        smooth::evaluate(level, &theta, smoothing, &mut f)
    };
    let leverage = evaluation.leverage(level, &tail, &f);
    drop((f, evaluation));
    let mut lowest = level.affine_part(&theta) + glance(level, &theta, &mut rows);
    let mut half_width = if guess.smooth { 0.75 * delta } else { delta };
    let mut best: Option<Pair> = None;
    for round in 0..ROUNDS {
        context.control.check()?;
        let chosen = select(level, &mut rows, half_width, f64::INFINITY, few(level) / 2, &leverage);
        if chosen.band.len() as f64 > WORTH * active as f64 {
            break;
        }
        let copied = level.copy(&chosen.band);
        let inner_level = copied.level(level, chosen.linear, chosen.constant);
        let error = if round == 0 { 0.1 * delta } else { 0.02 * delta };
        let inner = exactly(&inner_level, Guess { theta: &theta, error, smooth: true }, 0.3 * tolerance, context)?;
        iterations += inner.iterations;
        let inner_failed = !(inner.gap <= tolerance * inner.objective.abs());
        let found = verify(level, inner, &chosen.band, &mut rows, iterations);
        let (gap, objective, violators) = (found.pair.relative_gap(), found.pair.objective, found.violators);
        context.control.report(Progress { stage: "hinge", step: iterations, objective, gap });
        if objective <= lowest {
            lowest = objective;
            theta.copy_from_slice(&found.pair.theta);
        } else {
            half_width *= 2.0;
            glance(level, &theta, &mut rows);
        }
        if best.as_ref().is_none_or(|best| found.pair.gap < best.gap) {
            best = Some(found.pair);
        }
        if gap <= tolerance || context.control.out_of_time() {
            break;
        }
        if inner_failed {
            half_width *= 2.0;
        } else if violators == 0 {
            break;
        } else if 2 * violators > chosen.band.len() {
            half_width *= 2.0;
        }
    }
    match best {
        Some(pair) if pair.relative_gap() <= tolerance || context.control.out_of_time() => Ok(pair),
        best => {
            let cold = vec![0.0; level.size()];
            let mut last = interior::solve(level, Begin { theta: &cold, width: 1.0 }, tolerance, context.control)?;
            last.iterations += iterations;
            Ok(match best {
                Some(best) if best.gap <= last.gap => best,
                _ => last,
            })
        }
    }
}

/// The answer when at most one class has terms that count and b is free: w = 0 and any b that leads by enough.
fn one_class(level: &Level, theta: &[f64]) -> Option<Pair> {
    let mut counted = level.codes.iter().zip(level.caps).filter(|(_, cap)| **cap > 0.0).map(|(code, _)| *code);
    let first = counted.next();
    let free = level.side == Side::Margin && (level.intercept || first.is_none());
    if !free || level.linear.iter().any(|g| *g != 0.0) || counted.any(|code| Some(code) != first) {
        return None;
    }
    let (p, k) = (level.order(), level.classes);
    let mut b: Vec<f64> = (0..k).map(|class| theta[class * p + p - 1]).collect();
    if let Some(code) = first.filter(|&code| level.slack(code, &b) > 0.0) {
        b = (0..k).map(|class| if class == code as usize { FAR } else { 0.0 } - FAR / k as f64).collect();
    }
    let mut answer = vec![0.0; theta.len()];
    (0..k).for_each(|class| answer[class * p + p - 1] = b[class]);
    let dual = Dual::from_labels(level.codes.to_vec(), k);
    Some(Pair { theta: answer, dual, objective: level.constant, gap: 0.0, iterations: 0 })
}

/// A band and the affine part that stands for all other rows.
pub(super) struct Chosen {
    pub band: Vec<u32>,
    pub linear: Vec<f64>,
    pub constant: f64,
}

/// For each class the distance within which `count` rows are near a tie with it, at least `half_width`.
fn reaches(level: &Level, rows: &[Row], half_width: f64, ceiling: f64, count: usize) -> Vec<f64> {
    let k = level.classes;
    let mut near = vec![Vec::new(); k];
    for (row, _) in rows.iter().zip(level.caps).filter(|(_, cap)| **cap > 0.0) {
        let distance = row.distance(ceiling);
        near[row.label as usize].push(distance);
        near[row.second as usize].push(distance);
    }
    let reach = |near: &mut Vec<f64>| match count < near.len() {
        true => half_width.max(*near.select_nth_unstable_by(count, f64::total_cmp).1),
        false => f64::INFINITY,
    };
    near.iter_mut().map(reach).collect()
}

/// Splits the rows by their distance from a kink, at least about `least` of them in the band. Rows marked `Forced` stay there. Rows
/// beyond `ceiling` (the truncated loss; infinite for the plain one) are constant.
pub(super) fn select(
    level: &Level,
    rows: &mut [Row],
    half_width: f64,
    ceiling: f64,
    least: usize,
    leverage: &[f32],
) -> Chosen {
    let reaches = reaches(level, rows, half_width, ceiling, least / level.classes);
    let place = |row: &Row, cap: f64, leverage: f64, width: f64| {
        let distance = row.distance(ceiling);
        let reach = reaches[row.label as usize].max(reaches[row.second as usize]).max(width);
        if row.place == Place::Forced || cap > 0.0 && (distance <= reach || LEVERAGE * leverage > distance) {
            if row.place == Place::Forced { Place::Forced } else { Place::Band }
        } else if row.slack > ceiling {
            Place::Truncated
        } else {
            Place::Affine
        }
    };
    let in_band = |row: &Row| matches!(row.place, Place::Band | Place::Forced);
    for (at, row) in rows.iter_mut().enumerate() {
        row.place = place(
            row,
            level.caps[at],
            leverage.get(at).map_or(0.0, |value| f64::from(*value)),
            REACH * f64::from(level.widths[at]),
        );
    }
    let band: Vec<u32> = (0..rows.len() as u32).filter(|&at| in_band(&rows[at as usize])).collect();
    let k = level.classes;
    type Sums = (Vec<f64>, f64, Vec<f64>, Vec<f64>);
    let visit = |block: &Block, rows: &mut [Row], (linear, constant, factors, column): &mut Sums| {
        factors.clear();
        factors.resize(rows.len() * k, 0.0);
        for (at, row) in rows.iter().enumerate() {
            let (cap, code) = (block.caps[at], block.codes[at]);
            if cap == 0.0 {
                continue;
            }
            match row.place {
                Place::Truncated => *constant += cap * ceiling,
                Place::Affine => {
                    let differs = row.label != code;
                    factors[at * k + row.label as usize] += cap;
                    if level.side == Side::Margin {
                        factors[at * k + code as usize] -= cap;
                    }
                    *constant += if differs == (level.side == Side::Margin) { cap } else { 0.0 };
                }
                _ => (),
            }
        }
        level.add_rows(block, factors, column, linear);
    };
    let new = || (vec![0.0; level.size()], 0.0, Vec::new(), Vec::new());
    let (mut linear, constant, ..) = level.sweep(1, rows, new, visit, |total, part| {
        add(&mut total.0, &part.0);
        total.1 += part.1;
    });
    level.normalise(&mut linear);
    add(&mut linear, &level.linear);
    Chosen { band, linear, constant: constant + level.constant }
}

struct Verified {
    pair: Pair,
    violators: usize,
}

/// Checks the band's solution on all rows. Violators are marked `Forced`.
fn verify(level: &Level, inner: Pair, band: &[u32], rows: &mut [Row], iterations: usize) -> Verified {
    let k = level.classes;
    let functional = level.functional(&inner.theta);
    let labels: Vec<u32> = rows.iter().map(|row| row.label).collect();
    type Sums = (f64, f64, usize, Vec<f64>, Vec<f64>);
    let visit = |block: &Block, rows: &mut [Row], (loss, wrong, violators, f, column): &mut Sums| {
        f.resize(rows.len() * k, 0.0);
        level.scores(block, &functional, column, f);
        for (at, row) in rows.iter_mut().enumerate() {
            let cap = block.caps[at];
            let f = &mut f[at * k..(at + 1) * k];
            let before = row.label as usize;
            let value = row.see(level, block.codes[at], f);
            if cap == 0.0 {
                continue;
            }
            *loss += cap * value;
            if row.place == Place::Affine && row.label as usize != before {
                *wrong += cap * (f[row.label as usize] - f[before]);
                *violators += 1;
                row.place = Place::Forced;
            }
        }
    };
    let new = || (0.0, 0.0, 0, Vec::new(), Vec::new());
    let (loss, wrong, violators, ..) = level.sweep(1, rows, new, visit, |total, part| {
        total.0 += part.0;
        total.1 += part.1;
        total.2 += part.2;
    });
    let pair = Pair {
        objective: level.affine_part(&inner.theta) + loss,
        gap: inner.gap + wrong,
        dual: Dual::compose(labels, band, &inner.dual),
        theta: inner.theta,
        iterations,
    };
    Verified { pair, violators }
}

/// A first theta.
pub(super) struct Pilot {
    pub theta: Vec<f64>,
    /// Expected error of the scores.
    pub error: f64,
    pub iterations: usize,
}

/// A first theta from growing samples of the rows. A sample of m rows gets its caps multiplied by n/m; its scores err by about
/// sqrt(unknowns / m).
pub(super) fn pilot(level: &Level, context: &Context) -> Result<Pilot> {
    let active = counted(level);
    let order = level.order() * (level.classes - 1);
    let mut size = (10 * order).max(2000);
    let mut random = (context.seed ^ 0x9E37_79B9_7F4A_7C15) | 1 << 63;
    let mut pilot = Pilot { theta: vec![0.0; level.size()], error: 1.0, iterations: 0 };
    while 3 * size < active.len() {
        let copied = scaled_sample(level, &active, size, &mut random);
        let small = copied.level(level, level.linear.clone(), level.constant);
        let share = order as f64 / size as f64;
        if pilot.iterations == 0 {
            let begin = Begin { theta: &pilot.theta, width: 1.0 };
            let pair = interior::solve(&small, begin, LOOSE, context.control)?;
            pilot.theta = pair.theta;
            pilot.iterations += pair.iterations.max(1);
        } else {
            // no closer than the sample tells
            let guess = Guess { theta: &pilot.theta, error: pilot.error, smooth: true };
            let smoothed = descent::solve(&small, guess, 0.5 * share, false, context)?;
            pilot.theta = smoothed.theta;
            pilot.iterations += smoothed.iterations;
        }
        pilot.error = share.sqrt();
        size *= GROWTH;
    }
    pilot.error = pilot.error.min(1.0);
    Ok(pilot)
}

/// A sample of `size` rows standing for all of a level; `None` when the level has not many more.
pub(super) fn sample(level: &Level, size: usize, context: &Context) -> Option<Copied> {
    let active = counted(level);
    let mut random = (context.seed ^ 0x9E37_79B9_7F4A_7C15) | 1 << 63;
    (4 * size < active.len()).then(|| scaled_sample(level, &active, size, &mut random))
}

fn counted(level: &Level) -> Vec<u32> {
    (0..level.rows() as u32).filter(|&row| level.caps[row as usize] > 0.0).collect()
}

/// One row from each of `size` equal stretches.
fn scaled_sample(level: &Level, active: &[u32], size: usize, random: &mut u64) -> Copied {
    let stretch = active.len() as f64 / size as f64;
    let mut pick = |at: usize| {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        let u = (*random >> 11) as f64 / (1u64 << 53) as f64;
        active[(((at as f64 + u) * stretch) as usize).min(active.len() - 1)]
    };
    let index: Vec<u32> = (0..size).map(&mut pick).collect();
    let mut copied = level.copy(&index);
    copied.caps.iter_mut().for_each(|cap| *cap *= stretch);
    copied.widths.iter_mut().for_each(|width| *width = (*width * stretch as f32).min(WIDEST as f32));
    copied
}
