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
use crate::linalg::Isa;
use rayon::prelude::*;
use std::ops::Range;

pub(super) const PIECE: usize = 8192;

/// Pieces up to which other threads cost more than they bring.
const FEW_PIECES: usize = 4;

const MOST_PIECES_OF_A_LINE: usize = 60;

/// Sums that are kept side by side: enough for a loop over them to be compiled to the widest vectors.
const LANES: usize = 64;

/// Sums over rows of what a row has in each of some columns.
pub(super) fn sums<const C: usize, const K: usize>(
    columns: [&[f64]; C],
    term: impl Fn([f64; C]) -> [f64; K] + Sync,
) -> [f64; K] {
    let isa = Isa::detect();
    sums_of_pieces(columns[0].len(), |piece| {
        let split = columns.map(|column| column[piece.clone()].as_chunks::<LANES>());
        isa.run(
            #[inline(always)]
            || {
                let mut lanes = [[0.0; LANES]; K];
                for at in 0..split[0].0.len() {
                    let rows = split.map(|(whole, _)| &whole[at]);
                    for lane in 0..LANES {
                        let terms = term(rows.map(|values| values[lane]));
                        (0..K).for_each(|k| lanes[k][lane] += terms[k]);
                    }
                }
                let mut sums = lanes.map(|lanes| lanes.iter().sum::<f64>());
                for at in 0..split[0].1.len() {
                    let terms = term(split.map(|(_, rest)| rest[at]));
                    (0..K).for_each(|k| sums[k] += terms[k]);
                }
                sums
            },
        )
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
    let [loss] = sums([weights, signs, decision], |[a, y, f]| {
        let slack = (1.0 - y * f).max(0.0);
        [if a > 0.0 { a * slack * slack } else { 0.0 }]
    });
    loss
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
        let [first, second] = sums([weights, signs, decision, next], |[a, y, f, next]| {
            let dz = y * (f - next);
            let z = 1.0 - y * f + t * dz;
            let pull = if (z > 0.0) & (a > 0.0) { 2.0 * a * dz } else { 0.0 };
            // a row that does not pull may have no finite z
            if pull == 0.0 { [0.0, 0.0] } else { [pull * z, pull * dz] }
        });
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
    let of_row = |((a, y), f): ((&f64, &f64), &f64)| {
        let slack = (1.0 - y * f).max(0.0);
        if *a > 0.0 { 2.0 * a * y * slack } else { 0.0 }
    };
    let mut beta: Vec<f64> = weights.iter().zip(signs).zip(decision).map(of_row).collect();
    if intercept {
        let [positive, negative] = sums([&beta], |[beta]| [beta.max(0.0), (-beta).max(0.0)]);
        let share = positive.min(negative) / positive.max(negative).max(f64::MIN_POSITIVE);
        let heavier = positive > negative;
        beta.iter_mut().filter(|beta| (**beta > 0.0) == heavier).for_each(|beta| *beta *= share);
    }
    beta
}

/// sum |beta| - sum beta^2 / (4 a): the dual without its quadratic form.
pub(super) fn dual_gain(weights: &[f64], beta: &[f64]) -> f64 {
    let [gain] =
        sums([weights, beta], |[a, beta]| [if beta == 0.0 { 0.0 } else { beta.abs() - beta * (beta / (4.0 * a)) }]);
    gain
}
