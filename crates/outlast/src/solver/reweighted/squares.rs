//! What the two ways of minimising weighted squared hinges share.
//!
//! Along a line the objective is a convex, piecewise quadratic function of the step t,
//!
//! ```text
//! q(t) = linear t + 1/2 quadratic t^2 + sum_i a_i [z_i + t dz_i]_+^2,       z_i = 1 - y_i f(x_i)
//! ```
//!
//! whose slope is piecewise linear: Newton's method inside a bracket finds its root exactly after finitely many pieces. The dual
//! point of an f is beta_i = 2 a_i y_i [z_i]_+, brought to sum 0 if there is an intercept.

use super::scheme::LOOSE;
use rayon::prelude::*;
use std::ops::Range;

pub(super) const PIECE: usize = 8192;

/// Pieces up to which other threads cost more than they bring.
const FEW_PIECES: usize = 2;

const MOST_PIECES_OF_A_LINE: usize = 60;

/// Sums over rows.
pub(super) fn sums<const K: usize>(rows: usize, term: impl Fn(usize) -> [f64; K] + Sync) -> [f64; K] {
    sums_of_pieces(rows, |piece| {
        let mut sums = [0.0; K];
        for row in piece {
            let terms = term(row);
            (0..K).for_each(|k| sums[k] += terms[k]);
        }
        sums
    })
}

/// Sums over rows in fixed pieces, so that they do not depend on the number of threads.
pub(super) fn sums_of_pieces<const K: usize>(
    rows: usize,
    of_piece: impl Fn(Range<usize>) -> [f64; K] + Sync,
) -> [f64; K] {
    let piece = |number: usize| of_piece(number * PIECE..((number + 1) * PIECE).min(rows));
    let mut total = [0.0; K];
    let parts: Vec<[f64; K]> = match rows.div_ceil(PIECE) {
        pieces @ 0..=FEW_PIECES => (0..pieces).map(piece).collect(),
        pieces => (0..pieces).into_par_iter().map(piece).collect(),
    };
    parts.iter().for_each(|part| (0..K).for_each(|k| total[k] += part[k]));
    total
}

/// sum_i a_i [1 - y_i f_i]_+^2
pub(super) fn total_loss(weights: &[f64], signs: &[f64], decision: &[f64]) -> f64 {
    let term = |row: usize| {
        let slack = (1.0 - signs[row] * decision[row]).max(0.0);
        if weights[row] > 0.0 { [weights[row] * slack * slack] } else { [0.0] }
    };
    sums(decision.len(), term)[0]
}

/// How much of the slope a line search may leave: rounds that are solved loosely need no exact one.
pub(super) fn slope_left(tolerance: f64) -> f64 {
    if tolerance >= LOOSE { LOOSE } else { 1e-12 }
}

/// The step from f to `next` that minimises q, where no more than `left` is left of `slope`, q'(0) < 0.
pub(super) fn line_search(
    weights: &[f64],
    signs: &[f64],
    decision: &[f64],
    next: &[f64],
    (linear, quadratic): (f64, f64),
    (slope, left): (f64, f64),
) -> f64 {
    let derivatives = |t: f64| {
        let term = |row: usize| {
            let (y, a) = (signs[row], weights[row]);
            let dz = y * (decision[row] - next[row]);
            let z = 1.0 - y * decision[row] + t * dz;
            if z > 0.0 && a > 0.0 { [2.0 * a * z * dz, 2.0 * a * dz * dz] } else { [0.0, 0.0] }
        };
        let [first, second] = sums(decision.len(), term);
        (linear + t * quadratic + first, quadratic + second)
    };
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut t = 1.0;
    for _ in 0..MOST_PIECES_OF_A_LINE {
        let (first, second) = derivatives(t);
        if !(first.abs() > left * slope.abs()) {
            break;
        }
        if first > 0.0 {
            high = t
        } else {
            low = t
        }
        let newton = t - first / second;
        let middle = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * t };
        let next = if newton > low && newton < high { newton } else { middle };
        if (next - t).abs() <= 1e-14 * t {
            break;
        }
        t = next;
    }
    t
}

/// The decrease a step promises, relatively, after which no other is needed: what is left then is of higher order.
pub(super) fn enough(tolerance: f64) -> f64 {
    tolerance * tolerance.sqrt()
}

/// The dual point of a decision function.
pub(super) fn dual_point(weights: &[f64], signs: &[f64], decision: &[f64], intercept: bool) -> Vec<f64> {
    let of_row = |row: usize| {
        let slack = (1.0 - signs[row] * decision[row]).max(0.0);
        if weights[row] > 0.0 { 2.0 * weights[row] * signs[row] * slack } else { 0.0 }
    };
    let mut beta: Vec<f64> = (0..decision.len()).map(of_row).collect();
    if intercept {
        let [positive, negative] = sums(beta.len(), |row| [beta[row].max(0.0), (-beta[row]).max(0.0)]);
        let share = positive.min(negative) / positive.max(negative).max(f64::MIN_POSITIVE);
        let heavier = positive > negative;
        beta.iter_mut().filter(|beta| (**beta > 0.0) == heavier).for_each(|beta| *beta *= share);
    }
    beta
}

/// sum |beta| - sum beta^2 / (4 a): the dual without its quadratic form.
pub(super) fn dual_gain(weights: &[f64], beta: &[f64]) -> f64 {
    let term = |row: usize| {
        let beta = beta[row];
        if beta == 0.0 { [0.0] } else { [beta.abs() - beta * (beta / (4.0 * weights[row]))] }
    };
    sums(beta.len(), term)[0]
}
