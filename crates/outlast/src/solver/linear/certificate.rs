//! From an approximate solution to one with exact multipliers: clean, balance, certify.
//!
//! The multipliers a of an interior point are all strictly inside their boxes and miss sum y a = 0 by rounding or more. Here
//! multipliers at the edge of their box are put on it, rows in the interior absorb the difference (weighted least squares,
//! so that A'a keeps matching rho w), and what is left of the imbalance goes to the rows with the smallest |z|, which costs |z| each. Then
//!
//! ```text
//! P - D = sum (k [z]_+ - a z) + |rho w - X'(y a)|^2 / (2 rho)
//! ```
//!
//! is the true gap. w is the iterate or X'(y a)/rho, whichever has the smaller P.

use super::interior::Pair;
use super::level::{Block, GramSum, Level, add};
use crate::linalg::{Factor, dot};

/// Multipliers this close to an edge, relative to the box or to the largest multiplier, are put on it.
const EDGE: f64 = 1e-7;
const CORRECTIONS: usize = 3;

/// A certified pair: sum y a = 0 to rounding, 0 <= a <= k.
pub(super) struct Certified {
    pub theta: Vec<f64>,
    pub dual: Vec<f64>,
    /// z at theta
    pub slacks: Vec<f64>,
    pub objective: f64,
    pub gap: f64,
}

impl Certified {
    pub fn relative_gap(&self) -> f64 {
        (self.gap / self.objective.abs().max(f64::MIN_POSITIVE)).max(0.0)
    }
}

/// Certifies a pair for the level it belongs to, with clean multipliers if those reach the tolerance, else with the better of
/// clean and raw ones. `keep`: the pair's own w is kept if that reaches the tolerance, even where the expansion's is better
/// for the convex problem; it may be the better one for a problem that is not.
pub(super) fn certify(level: &Level, pair: &Pair, tolerance: f64, keep: bool) -> Certified {
    let enough = if keep { tolerance } else { 0.0 };
    let mut slacks = vec![0.0; level.rows()];
    level.slacks(&pair.theta, &mut slacks);
    let mut clean = pair.dual.clone();
    snap(level, &slacks, &mut clean);
    let clean = judge(level, &pair.theta, &slacks, clean, enough);
    if clean.relative_gap() <= tolerance {
        return clean;
    }
    let raw = judge(level, &pair.theta, &slacks, pair.dual.clone(), enough);
    if raw.gap < clean.gap { raw } else { clean }
}

fn snap(level: &Level, slacks: &[f64], dual: &mut [f64]) {
    let largest = dual.iter().fold(0.0f64, |largest, a| largest.max(*a));
    for ((a, &cap), &z) in dual.iter_mut().zip(level.caps).zip(slacks) {
        if z < 0.0 && *a <= EDGE * largest.min(cap) {
            *a = 0.0;
        } else if z > 0.0 && cap - *a <= EDGE * cap {
            *a = cap;
        }
    }
}

fn judge(level: &Level, theta: &[f64], slacks: &[f64], mut dual: Vec<f64>, enough: f64) -> Certified {
    for _ in 0..CORRECTIONS {
        if !absorb(level, theta, &mut dual) {
            break;
        }
    }
    if level.intercept {
        balance(level, slacks, &mut dual);
    }
    let mut sum = rows_sum(level, &dual);
    let d = theta.len() - 1;
    shorten(level, &mut dual, &mut sum);
    let (own, own_gap) = (theta.to_vec(), complement(level, slacks, &dual));
    let residual: f64 = (0..d).map(|j| (level.ridge * theta[j] + level.linear[j] - sum[j]).powi(2)).sum();
    let off_balance = if level.intercept { (level.linear[d] - sum[d]) * theta[d] } else { 0.0 };
    let own = Certified {
        objective: level.affine_part(&own) + hinge(level, slacks),
        theta: own,
        slacks: slacks.to_vec(),
        gap: own_gap + 0.5 * residual / level.ridge + off_balance,
        dual: Vec::new(),
    };
    if own.relative_gap() <= enough {
        return Certified { dual, ..own };
    }
    // the expansion's own w
    let mut expanded: Vec<f64> = (0..d).map(|j| (sum[j] - level.linear[j]) / level.ridge).collect();
    expanded.push(theta[d]);
    let mut z = vec![0.0; slacks.len()];
    level.slacks(&expanded, &mut z);
    let expanded = Certified {
        objective: level.affine_part(&expanded) + hinge(level, &z),
        gap: complement(level, &z, &dual) + off_balance,
        theta: expanded,
        slacks: z,
        dual: Vec::new(),
    };
    let better = if expanded.gap < own.gap { expanded } else { own };
    Certified { dual, ..better }
}

/// Scales the multipliers to the best point of the segment from 0, D(t) = t sum a - t^2 |X'(y a)|^2 / (2 rho). At an optimum that is
/// t = 1; it is less when rounding in X'(y a) outweighs everything, as with enormous caps.
fn shorten(level: &Level, dual: &mut [f64], sum: &mut [f64]) {
    if level.linear.iter().any(|g| *g != 0.0) {
        return;
    }
    let squares = squared_norm(sum);
    let best = level.ridge * dual.iter().sum::<f64>() / squares;
    if squares > 0.0 && best < 1.0 {
        dual.iter_mut().for_each(|a| *a *= best);
        sum.iter_mut().for_each(|s| *s *= best);
    }
}

fn hinge(level: &Level, slacks: &[f64]) -> f64 {
    level.caps.iter().zip(slacks).map(|(cap, z)| cap * z.max(0.0)).sum()
}

/// sum (k [z]_+ - a z)
fn complement(level: &Level, slacks: &[f64], dual: &[f64]) -> f64 {
    let rows = level.caps.iter().zip(slacks).zip(dual);
    rows.map(|((cap, &z), a)| if z > 0.0 { (cap - a) * z } else { -a * z }).sum()
}

/// A'a
pub(super) fn rows_sum(level: &Level, dual: &[f64]) -> Vec<f64> {
    let p = level.order();
    let mut nothing = vec![(); level.rows()];
    let visit = |block: &Block, _: &mut [()], (sum, factors): &mut (Vec<f64>, Vec<f64>)| {
        factors.clear();
        factors.extend(block.signs.iter().zip(&dual[block.first..]).map(|(y, a)| y * a));
        level.add_rows(block, factors, sum);
    };
    let new = || (vec![0.0; p], Vec::new());
    let mut sum = level.sweep(&mut nothing, new, visit, |total, part| add(&mut total.0, &part.0)).0;
    level.normalise(&mut sum);
    sum
}

/// Moves the multipliers inside their boxes so that A'a comes closer to rho w + g. Returns whether another round may help.
fn absorb(level: &Level, theta: &[f64], dual: &mut [f64]) -> bool {
    let p = level.order();
    let sum = rows_sum(level, dual);
    let mut target: Vec<f64> =
        (0..p).map(|j| level.linear[j] - sum[j] + if j + 1 < p { level.ridge * theta[j] } else { 0.0 }).collect();
    if !level.intercept {
        target[p - 1] = 0.0;
    }
    let free = |k: usize, dual: &[f64]| dual[k].min(level.caps[k] - dual[k]);
    let mut nothing = vec![(); level.rows()];
    let visit = |block: &Block, rows: &mut [()], gram: &mut GramSum| {
        for k in 0..rows.len() {
            let weight = free(block.first + k, dual);
            if weight > 0.0 {
                gram.push(&block.x[k * (p - 1)..(k + 1) * (p - 1)], level.unit, weight);
            }
        }
    };
    let mut gram = level.sweep_grams(1, &mut nothing, || GramSum::new(level), visit, |total, part| total.merge(part));
    gram.flush();
    if gram.count == 0 {
        return false;
    }
    // directions no free row supports get no correction instead of an enormous one
    let stride = level.stride();
    let trace: f64 = (0..p).map(|j| gram.matrix[j * stride + j]).sum();
    for j in 0..p {
        gram.matrix[j * stride + j] += 1e-15 * trace + f64::MIN_POSITIVE;
    }
    if !level.intercept {
        gram.matrix[(p - 1) * stride..(p - 1) * stride + p - 1].fill(0.0);
    }
    let Some(factor) = Factor::nearest(&gram.matrix, stride, p) else { return false };
    let direction = factor.solve(&target);
    if direction.iter().any(|value| !value.is_finite()) {
        return false;
    }
    let functional = level.functional(&direction);
    let visit = |block: &Block, dual: &mut [f64], (margins, clipped): &mut (Vec<f64>, bool)| {
        level.margins(block, &functional, margins);
        for (k, a) in dual.iter_mut().enumerate() {
            let cap = block.caps[k];
            let room = a.min(cap - *a);
            if room > 0.0 {
                let next = *a + room * margins[k];
                *clipped |= !(0.0..=cap).contains(&next);
                *a = next.clamp(0.0, cap);
            }
        }
    };
    level.sweep(dual, || (Vec::new(), false), visit, |total, part| total.1 |= part.1).1
}

/// Brings sum y a - g_b to 0 by moving multipliers: first those inside their boxes, then those of the smallest |z|.
fn balance(level: &Level, slacks: &[f64], dual: &mut [f64]) {
    let required = level.linear[level.order() - 1];
    for _ in 0..3 {
        let mut excess = level.signs.iter().zip(&*dual).map(|(y, a)| y * a).sum::<f64>() - required;
        if excess == 0.0 {
            return;
        }
        let inside: Vec<usize> = (0..dual.len()).filter(|&k| dual[k] > 0.0 && dual[k] < level.caps[k]).collect();
        // spread over the free rows in proportion to their room, so that none is pushed to its edge needlessly
        let room = |k: usize, dual: &[f64]| {
            if (level.signs[k] > 0.0) == (excess > 0.0) { dual[k] } else { level.caps[k] - dual[k] }
        };
        let total: f64 = inside.iter().map(|&k| room(k, dual)).sum();
        if total > excess.abs() {
            let share = excess.abs() / total;
            for &k in &inside {
                let step = share * room(k, dual);
                let down = (level.signs[k] > 0.0) == (excess > 0.0);
                dual[k] = (dual[k] + if down { -step } else { step }).clamp(0.0, level.caps[k]);
            }
            continue;
        }
        let mut order: Vec<usize> = (0..dual.len()).filter(|&k| level.caps[k] > 0.0).collect();
        order.sort_by(|&i, &j| slacks[i].abs().total_cmp(&slacks[j].abs()));
        for k in order {
            let down = (level.signs[k] > 0.0) == (excess > 0.0);
            let room = if down { dual[k] } else { level.caps[k] - dual[k] };
            let step = room.min(excess.abs());
            dual[k] = (dual[k] + if down { -step } else { step }).clamp(0.0, level.caps[k]);
            excess -= step * excess.signum();
            if excess == 0.0 {
                break;
            }
        }
    }
}

/// The middle of the interval of optimal intercepts when no multiplier lies inside its box; `None` when b is unique or unbounded.
pub(super) fn middle_intercept(level: &Level, slacks: &[f64], dual: &[f64], b: f64) -> Option<f64> {
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    for k in 0..dual.len() {
        let (y, cap, a) = (level.signs[k], level.caps[k], dual[k]);
        if cap == 0.0 {
            continue;
        }
        if a > 0.0 && a < cap {
            return None;
        }
        // the b at which this row reaches its kink; a row at 0 must stay on its side, a row at its cap on the other
        let kink = b + y * slacks[k];
        if (a == 0.0) == (y > 0.0) { low = low.max(kink) } else { high = high.min(kink) }
    }
    (low < high && low.is_finite() && high.is_finite()).then_some(0.5 * (low + high))
}

/// |w|^2 of a theta
pub(super) fn squared_norm(theta: &[f64]) -> f64 {
    let w = &theta[..theta.len() - 1];
    dot(w, w)
}
