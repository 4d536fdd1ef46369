//! From decision values to the chances of the classes.
//!
//! A binary fit of class i against class j has f_ij > 0 for i. Its chance (Platt 1999; targets and Newton's method as in Lin, Lin and
//! Weng 2007) is
//!
//! ```text
//! r_ij = 1 / (1 + exp(-(slope f_ij + offset)))        slope, offset: maximum likelihood over held-out rows of the two classes
//! ```
//!
//! and the chances of all classes (Wu, Lin and Weng 2004, their second method) are
//!
//! ```text
//! min_p  sum_i sum_{j != i} (r_ji p_i - r_ij p_j)^2,  sum_i p_i = 1:      p = Q^-1 1 / (1' Q^-1 1)
//! Q_ii = sum_{j != i} r_ji^2,   Q_ij = -r_ji r_ij
//! ```
//!
//! With many classes, where each is fitted against all others, the chances r_i are divided by their sum.

use crate::linalg::{cholesky, cholesky_solve};

/// Chances stay that far from 0 and 1.
const LEAST: f64 = 1e-7;

/// The line through decision values that gives the logarithm of the odds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sigmoid {
    pub slope: f64,
    pub offset: f64,
}

impl Sigmoid {
    /// Fits to decision values and whether the row is of the first class. The slope is never negative: a fit whose decisions are
    /// worse than none says nothing.
    pub fn fit(values: &[(f64, bool)]) -> Sigmoid {
        let first = values.iter().filter(|(_, first)| *first).count() as f64;
        let second = values.len() as f64 - first;
        let (high, low) = ((first + 1.0) / (first + 2.0), 1.0 / (second + 2.0));
        let target = |is_first: bool| if is_first { high } else { low };
        let constant = Sigmoid { slope: 0.0, offset: ((first + 1.0) / (second + 1.0)).ln() };
        let loss = |at: Sigmoid| -> f64 {
            let one = |&(value, is_first): &(f64, bool)| {
                let odds = at.slope * value + at.offset;
                odds.max(0.0) + (-odds.abs()).exp().ln_1p() - target(is_first) * odds
            };
            values.iter().map(one).sum()
        };
        let mut at = constant;
        let mut current = loss(at);
        for _ in 0..100 {
            let (mut g, mut h) = ([0.0; 2], [1e-12, 0.0, 1e-12]);
            for &(value, is_first) in values {
                let chance = 1.0 / (1.0 + (-(at.slope * value + at.offset)).exp());
                let (residual, weight) = (chance - target(is_first), chance * (1.0 - chance));
                g[0] += residual * value;
                g[1] += residual;
                h[0] += weight * value * value;
                h[1] += weight * value;
                h[2] += weight;
            }
            let determinant = h[0] * h[2] - h[1] * h[1];
            if !(determinant > 0.0 && determinant.is_finite()) || g[0].abs().max(g[1].abs()) < 1e-7 {
                break;
            }
            let step = [(h[2] * g[0] - h[1] * g[1]) / determinant, (h[0] * g[1] - h[1] * g[0]) / determinant];
            let mut length = 1.0;
            let next = loop {
                let next = Sigmoid { slope: at.slope - length * step[0], offset: at.offset - length * step[1] };
                let value = loss(next);
                if value < current {
                    current = value;
                    break Some(next);
                }
                length /= 2.0;
                if length < 1e-6 {
                    break None;
                }
            };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        if at.slope > 0.0 && at.slope.is_finite() && at.offset.is_finite() { at } else { constant }
    }

    /// The chance of the first class.
    pub fn chance(&self, value: f64) -> f64 {
        (1.0 / (1.0 + (-(self.slope * value + self.offset)).exp())).clamp(LEAST, 1.0 - LEAST)
    }
}

/// The chances of k classes from those of pairs: `chance(i, j)`, i < j, is that of i against j.
pub(super) fn couple(k: usize, chance: impl Fn(usize, usize) -> f64, scratch: &mut Vec<f64>, out: &mut [f64]) {
    if k == 2 {
        out[0] = chance(0, 1);
        out[1] = 1.0 - out[0];
        return;
    }
    scratch.clear();
    scratch.resize(k * k, 0.0);
    for i in 0..k {
        for j in i + 1..k {
            let r = chance(i, j);
            scratch[i * k + i] += (1.0 - r) * (1.0 - r);
            scratch[j * k + j] += r * r;
            scratch[j * k + i] = -r * (1.0 - r);
            scratch[i * k + j] = -r * (1.0 - r);
        }
    }
    // Q is singular where all chances agree with one p
    let ridge = 1e-10 * (0..k).map(|i| scratch[i * k + i]).sum::<f64>();
    (0..k).for_each(|i| scratch[i * k + i] += ridge);
    out.fill(1.0);
    if cholesky(scratch, k) {
        cholesky_solve(scratch, k, out);
    }
    normalize(out);
}

/// Multiplies the roots of several opinions about the same row: the logarithmic pool, in which one that is sure outweighs one that is
/// not. What is pooled is the mean of each over its repeats.
pub(super) fn pool(opinions: &[Vec<f64>], out: &mut [f64]) {
    let share = 1.0 / opinions.len().max(1) as f64;
    for (class, out) in out.iter_mut().enumerate() {
        *out = opinions.iter().map(|chances| share * chances[class].max(LEAST).ln()).sum::<f64>().exp();
    }
    normalize(out);
}

/// Divides by the sum, with nothing below the least chance.
pub(super) fn normalize(chances: &mut [f64]) {
    let largest = chances.iter().fold(0.0f64, |largest, p| largest.max(*p));
    let scale = if largest > 0.0 && largest.is_finite() { largest } else { 1.0 };
    chances.iter_mut().for_each(|p| *p = if p.is_finite() { (*p / scale).max(LEAST) } else { 1.0 });
    let sum: f64 = chances.iter().sum();
    chances.iter_mut().for_each(|p| *p /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs that agree with one vector of chances give that vector.
    #[test]
    fn consistent_pairs_are_coupled_to_their_source() {
        for p in [vec![0.5, 0.3, 0.2], vec![0.9, 0.05, 0.03, 0.02], vec![0.25; 4]] {
            let k = p.len();
            let mut found = vec![0.0; k];
            couple(k, |i, j| p[i] / (p[i] + p[j]), &mut Vec::new(), &mut found);
            assert!(p.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-6), "{p:?} {found:?}");
        }
    }

    #[test]
    fn contradicting_pairs_still_give_chances() {
        let circle = |i: usize, j: usize| if j == i + 1 { 1.0 - LEAST } else { LEAST };
        let mut found = [0.0; 3];
        couple(3, circle, &mut Vec::new(), &mut found);
        assert!(found.iter().all(|p| (p - 1.0 / 3.0).abs() < 1e-3), "{found:?}");
    }

    /// By hand: roots of products, divided by their sum.
    #[test]
    fn opinions_are_pooled_by_their_logarithms() {
        let mut found = [0.0; 2];
        pool(&[vec![0.5, 0.5], vec![0.8, 0.2]], &mut found);
        assert!((found[0] - 2.0 / 3.0).abs() < 1e-12 && (found[1] - 1.0 / 3.0).abs() < 1e-12, "{found:?}");
        pool(&[vec![0.3, 0.7]], &mut found);
        assert!((found[0] - 0.3).abs() < 1e-12, "{found:?}");
        pool(&[vec![0.0, 1.0], vec![1.0, 0.0]], &mut found);
        assert!((found[0] - 0.5).abs() < 1e-12, "{found:?}");
    }

    /// Values drawn so that the truth is known: odds = 2 f + 0.5 at a grid of f.
    #[test]
    fn the_sigmoid_is_found() {
        let mut values = Vec::new();
        for at in -20..=20 {
            let f = f64::from(at) / 10.0;
            let chance = 1.0 / (1.0 + (-(2.0 * f + 0.5f64)).exp());
            let firsts = (1000.0 * chance).round() as usize;
            values.extend((0..1000).map(|row| (f, row < firsts)));
        }
        let found = Sigmoid::fit(&values);
        assert!((found.slope - 2.0).abs() < 0.01 && (found.offset - 0.5).abs() < 0.01, "{found:?}");
        // decisions that point the wrong way, constants, one class, nothing
        assert_eq!(Sigmoid::fit(&[(1.0, false), (-1.0, true)]).slope, 0.0);
        for values in [vec![], vec![(0.0, true)], vec![(1e30, true), (-1e30, false)], vec![(3.0, true), (3.0, false)]] {
            let chance = Sigmoid::fit(&values).chance(1e30);
            assert!(chance > 0.0 && chance < 1.0, "{values:?}: {chance}");
        }
    }
}
