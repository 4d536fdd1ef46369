//! Class probabilities that assume no model of them.
//!
//! Weigh the rows of the second class by 2 (1 - pi) and those of the first by 2 pi. The best decision is then the sign of
//! P(second | x) - pi, and f_pi, fitted with these weights, estimates it: where pi -> f_pi(x) changes its sign, there is the
//! probability.
//!
//! ```text
//! P(second | x) = integral over pi from 0 to 1 of [f_pi(x) > 0]
//! ```
//!
//! The fits are at the levels pi = 1/20, ..., 19/20; between levels f_pi(x) is interpolated, with f_0 = 1 and f_1 = -1, which is what
//! the hinge gives where all the weight is on one class. The integral is the level of the only change of sign where there is
//! one. The true family is nested: where it is positive at a level, it is so at every lower one. Fits are not always, so that a row may have
//! several changes; the fit at 1/2, which is the model itself, then has the last word, and the integral is over the half it leaves open:
//!
//! ```text
//! P(second | x) = 1/2 + integral from 1/2 to 1   where f_1/2(x) > 0,   else   integral from 0 to 1/2
//! ```
//!
//! (Wang, Shen and Liu, "Probability estimation for large-margin classifiers", Biometrika 2008; with truncated losses Wu, Zhang and
//! Liu, "Robust model-free multiclass probability estimation", JASA 2010.)
//!
//! More classes: each pair of them has a family, fitted to the rows of the two, and r_ab = P(a | a or b, x) are coupled to
//!
//! ```text
//! min over p of  sum_a sum_{b != a} (r_ba p_a - r_ab p_b)^2,    sum p = 1
//! ```
//!
//! (Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise coupling", JMLR 2004, their second approach.)

use super::predictor::{Expansion, Function};
use crate::data::{Design, Repeated};
use crate::error::{Error, Result};
use crate::problem::KernelFunction;
use rayon::prelude::*;

/// Whether a fit also estimates probabilities, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Probability {
    /// None.
    #[default]
    Off,
    /// From a family of weighted fits.
    Weighted,
}

impl Probability {
    /// Every way there is.
    pub const ALL: &'static [Probability] = &[Probability::Off, Probability::Weighted];

    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            Probability::Off => "none",
            Probability::Weighted => "weighted",
        }
    }

    /// One line for help texts.
    pub fn about(self) -> &'static str {
        match self {
            Probability::Off => "none",
            Probability::Weighted => {
                "from a family of weighted fits: 18 more for two classes, 19 for each pair of more"
            }
        }
    }

    /// The way of that name.
    pub fn from_name(name: &str) -> Result<Probability> {
        let found = Self::ALL.iter().copied().find(|way| way.name() == name);
        found.ok_or_else(|| Error::parameter("probability", format!("{name:?}"), "one of none, weighted"))
    }
}

/// Families of weighted decision functions, one for each pair of classes.
#[derive(Debug, Clone, PartialEq)]
pub struct Probabilities {
    /// The levels, ascending, in (0, 1).
    pub levels: Vec<f64>,
    /// Training rows that carry any of the functions, ascending; none for linear models.
    pub support: Vec<u32>,
    /// What the functions are made of: those rows, or for linear models all weights, pairs x levels x columns.
    pub function: Function,
    /// The pairs (0, 1), (0, 2), ..., (1, 2), ... of classes.
    pub families: Vec<Family>,
}

/// The weighted decision functions of two classes, one for each level.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// Positions in the list of supporting rows, ascending.
    pub positions: Vec<u32>,
    /// Coefficients of these rows, rows x levels.
    pub coefficients: Vec<f64>,
    /// b, one per level.
    pub intercepts: Vec<f64>,
}

/// The pairs of so many classes, in the order of the families.
pub fn pairs(classes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..classes).flat_map(move |first| (first + 1..classes).map(move |second| (first, second)))
}

/// The levels of the fits.
pub(super) fn levels() -> Vec<f64> {
    const INTERVALS: usize = 20;
    (1..INTERVALS).map(|level| level as f64 / INTERVALS as f64).collect()
}

impl Probabilities {
    /// The probabilities of each row, rows x classes. `x` must have the columns and be as finite as for a prediction.
    pub(super) fn of(&self, kernel: &KernelFunction, classes: usize, x: &dyn Design) -> Vec<f64> {
        let (n, m) = (x.rows(), self.levels.len());
        let mut wins = vec![0.0; n * self.families.len()];
        for (pair, family) in self.families.iter().enumerate() {
            let values = self.values(pair, family, kernel, x);
            for (row, values) in values.chunks_exact(m).enumerate() {
                wins[row * self.families.len() + pair] = self.second(values, &family.intercepts);
            }
        }
        if classes == 2 {
            return wins.into_iter().flat_map(|second| [1.0 - second, second]).collect();
        }
        let mut probabilities = vec![0.0; n * classes];
        let rows = probabilities.par_chunks_exact_mut(classes).zip(wins.par_chunks_exact(self.families.len()));
        rows.for_each(|(out, wins)| couple(wins, out));
        probabilities
    }

    /// f - b of a family at every row, rows x levels.
    fn values(&self, pair: usize, family: &Family, kernel: &KernelFunction, x: &dyn Design) -> Vec<f64> {
        let functions = self.levels.len();
        let weights;
        let (function, support);
        let expansion = match &self.function {
            Function::Linear { weights: all } => {
                let size = functions * x.cols();
                weights = Function::Linear { weights: all[pair * size..(pair + 1) * size].to_vec() };
                Expansion { function: &weights, kernel, support: &[], coefficients: &[], functions }
            }
            Function::Kernel { rows } if family.positions.len() < self.support.len() => {
                let some = Repeated::new(rows.as_design(), family.positions.clone());
                return Expansion::of_rows(kernel, &some, &family.coefficients, functions, x);
            }
            _ => {
                support = family.positions.iter().map(|&at| self.support[at as usize]).collect::<Vec<u32>>();
                function = &self.function;
                Expansion { function, kernel, support: &support, coefficients: &family.coefficients, functions }
            }
        };
        expansion.values(x)
    }

    /// The share of the levels at which the second class is decided for, on the side of 1/2 where the level nearest to it lies.
    fn second(&self, values: &[f64], intercepts: &[f64]) -> f64 {
        let f = |at: usize| values[at] + intercepts[at];
        let inner = (0..values.len()).map(|at| (self.levels[at], f(at)));
        let ends: Vec<(f64, f64)> = [(0.0, 1.0)].into_iter().chain(inner).chain([(1.0, -1.0)]).collect();
        let area = |ends: &[(f64, f64)]| -> f64 {
            ends.windows(2).map(|ends| (ends[1].0 - ends[0].0) * positive_share(ends[0].1, ends[1].1)).sum()
        };
        let middle = 1 + values.len() / 2;
        let (level, at_middle) = ends[middle];
        let sum = if at_middle > 0.0 { level + area(&ends[middle..]) } else { area(&ends[..=middle]) };
        sum.clamp(SURE, 1.0 - SURE)
    }
}

/// Makes a class the most probable one by the least change: all that are more probable, and it, get their mean.
pub(super) fn agree(p: &mut [f64], class: usize) {
    let mut above: Vec<usize> = (0..p.len()).filter(|&other| other != class && p[other] >= p[class]).collect();
    if above.iter().all(|&other| p[other] == p[class] && other > class) {
        return;
    }
    above.sort_by(|&a, &b| p[b].total_cmp(&p[a]));
    let (mut sum, mut count) = (p[class], 1);
    for &other in &above {
        // the mean falls with each class that is taken in, down to those below it
        if p[other] < sum / f64::from(count) {
            break;
        }
        sum += p[other];
        count += 1;
    }
    let (mean, taken) = (sum / f64::from(count), count as usize - 1);
    above[..taken].iter().for_each(|&other| p[other] = mean - SURE / f64::from(count - 1));
    p[class] = mean + SURE;
}

/// No family can tell a smaller probability from 0.
const SURE: f64 = 1e-9;

/// The share of a segment on which the line from `from` to `to` is positive.
fn positive_share(from: f64, to: f64) -> f64 {
    match (from > 0.0, to > 0.0) {
        (true, true) => 1.0,
        (false, false) => 0.0,
        // of numbers whose difference is beyond f64 the ratio still is not
        (true, false) => 1.0 / (1.0 - to / from),
        (false, true) => 1.0 / (1.0 - from / to),
    }
}

/// Iterations of the coupling, and the change at which it ends.
const COUPLING_STEPS: usize = 1000;
const COUPLING_CHANGE: f64 = 1e-12;

/// The probabilities of the classes from those of the second class of each pair.
///
/// With Q_aa = sum_b r_ba^2 and Q_ab = -r_ba r_ab the problem is min p'Qp, and p_a = (p'Qp - sum_{b != a} Q_ab p_b) / Q_aa with p
/// brought back to the sum 1 after each such step converges to its solution (Wu, Lin and Weng, algorithm 2).
fn couple(wins: &[f64], p: &mut [f64]) {
    let k = p.len();
    let mut r = vec![0.0; k * k];
    for ((first, second), &win) in pairs(k).zip(wins) {
        r[second * k + first] = win;
        r[first * k + second] = 1.0 - win;
    }
    let mut q = vec![0.0; k * k];
    for (a, b) in pairs(k) {
        let (ab, ba) = (r[a * k + b], r[b * k + a]);
        q[a * k + a] += ba * ba;
        q[b * k + b] += ab * ab;
        (q[a * k + b], q[b * k + a]) = (-ab * ba, -ab * ba);
    }
    p.fill(1.0 / k as f64);
    for _ in 0..COUPLING_STEPS {
        let mut change = 0.0f64;
        for a in 0..k {
            let row = |t: usize, p: &[f64]| -> f64 { q[t * k..(t + 1) * k].iter().zip(p).map(|(q, p)| q * p).sum() };
            let total: f64 = (0..k).map(|t| p[t] * row(t, p)).sum();
            let own = q[a * k + a];
            let next = ((total - (row(a, p) - own * p[a])) / own).max(0.0);
            change = change.max((next - p[a]).abs());
            p[a] = next;
            let sum: f64 = p.iter().sum();
            p.iter_mut().for_each(|p| *p /= sum);
        }
        if !(change > COUPLING_CHANGE) {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(levels: Vec<f64>, values: &[f64]) -> f64 {
        let function = Function::Linear { weights: Vec::new() };
        let none = vec![0.0; values.len()];
        Probabilities { levels, support: Vec::new(), function, families: Vec::new() }.second(values, &none)
    }

    #[test]
    fn the_level_of_the_change_of_sign_is_the_probability() {
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} for {expected}");
        close(of(vec![0.25, 0.5, 0.75], &[1.0, 1.0, -1.0]), 0.625);
        close(of(vec![0.25, 0.5, 0.75], &[1.0, 0.0, -1.0]), 0.5);
        close(of(vec![0.5], &[3.0]), 0.875);
        close(of(vec![0.5], &[-1.0]), 0.25);
        // out of order: the middle decides which half counts, and there what is positive
        close(of(vec![0.25, 0.5, 0.75], &[-1.0, 1.0, -1.0]), 0.5 + 0.125);
        close(of(vec![0.25, 0.5, 0.75], &[1.0, -1.0, 1.0]), 0.25 + 0.125);
        close(of(vec![0.2, 0.4, 0.5, 0.6, 0.8], &[-1.0, 1.0, 1.0, -1.0, 1.0]), 0.5 + 0.05 + 0.1 + 0.1);
        assert!(of(vec![0.5], &[-f64::MAX]) > 0.0 && of(vec![0.5], &[f64::MAX]) < 1.0);
    }

    #[test]
    fn agreement_is_the_least_change() {
        for (given, class, expected) in [
            (vec![0.2, 0.8], 1, vec![0.2, 0.8]),
            (vec![0.6, 0.4], 1, vec![0.5, 0.5]),
            (vec![0.5, 0.5], 1, vec![0.5, 0.5]),
            (vec![0.45, 0.15, 0.4], 2, vec![0.425, 0.15, 0.425]),
            (vec![0.4, 0.2, 0.4], 1, vec![1.0 / 3.0; 3]),
            (vec![0.6, 0.2, 0.2], 2, vec![0.4, 0.2, 0.4]),
        ] {
            let mut found = given.clone();
            agree(&mut found, class);
            assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 2.0 * SURE), "{found:?} for {given:?}");
            assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-15);
            assert!((0..found.len()).all(|other| other == class || found[other] < found[class]), "{found:?}");
        }
        let mut tie = vec![0.5, 0.5];
        agree(&mut tie, 0);
        assert_eq!(tie, [0.5, 0.5]);
    }

    #[test]
    fn coupling_gives_back_the_probabilities_that_the_pairs_came_from() {
        for p in [vec![0.2, 0.3, 0.5], vec![0.97, 0.01, 0.01, 0.01], vec![1e-6, 1.0 - 2e-6, 1e-6]] {
            let wins: Vec<f64> = pairs(p.len()).map(|(a, b)| p[b] / (p[a] + p[b])).collect();
            let mut found = vec![0.0; p.len()];
            couple(&wins, &mut found);
            assert!(found.iter().zip(&p).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} for {p:?}");
        }
    }

    #[test]
    fn coupling_contradicting_pairs_still_sums_to_one() {
        for win in [SURE, 0.5, 1.0 - SURE] {
            // a beats b, b beats c, c beats a
            let mut found = vec![0.0; 3];
            couple(&[win, 1.0 - win, win], &mut found);
            assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12 && found.iter().all(|p| *p >= 0.0), "{found:?}");
        }
    }
}
