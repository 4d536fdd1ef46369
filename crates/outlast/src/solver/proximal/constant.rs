//! The best constant function: w = 0 and the intercepts of least loss.
//!
//! ```text
//! min over b of  sum_j c_j l_T(b_j - max_{l != j} b_l),        c_j: the weights of class j, summed
//! ```
//!
//! One class j leads, by t >= 0. l_T does not rise, so that it is best for all others to be t behind, and what remains is
//!
//! ```text
//! min over j and t >= 0 of  c_j l_T(t) + (sum of the others' c) l_T(-t)
//! ```
//!
//! which is convex up to t = -s, and from there on falls to what the others cost on the flat part: either the minimum of the first piece,
//! or a lead so long that the rows of class j cost nothing. With two classes f = t or -t. The rows enter by their sums alone, so that a row
//! of weight 2 is two rows. O(n + k^2).

use crate::problem::Loss;

/// A difference of objectives, relatively, that may be rounding: the earlier one stays.
pub(super) const TIE: f64 = 1e-9;
/// Longest lead.
const LONGEST: f64 = 1024.0;
const BISECTIONS: usize = 60;

/// A class that leads all others by some margin, and what that costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Constant {
    class: usize,
    lead: f64,
    pub(super) objective: f64,
    /// Whether all other classes lie on the flat part of the loss, and the leader's rows cost nothing: nothing is left to lower.
    pub(super) is_end: bool,
}

impl Constant {
    /// The best one for classes of these weights; without intercepts f = 0.
    pub(super) fn best(loss: Loss, totals: &[f64], intercept: bool) -> Constant {
        let zero = totals.iter().sum::<f64>() * loss.value(0.0);
        let mut best = Constant { class: 0, lead: 0.0, objective: zero, is_end: false };
        for class in 0..if intercept { totals.len() } else { 0 } {
            let others: f64 = totals.iter().enumerate().filter(|(other, _)| *other != class).map(|(_, c)| c).sum();
            for (lead, is_end) in leads(loss, totals[class], others) {
                let objective = totals[class] * loss.value(lead) + others * loss.value(-lead);
                if objective < best.objective * (1.0 - TIE) {
                    best = Constant { class, lead, objective, is_end };
                }
            }
        }
        best
    }

    /// b: one function of two classes, else one for each class, with the sum 0.
    pub(super) fn intercepts(&self, functions: usize) -> Vec<f64> {
        if functions == 1 {
            return vec![if self.class == 1 { self.lead } else { -self.lead }];
        }
        let behind = -self.lead / functions as f64;
        let mut intercepts = vec![behind; functions];
        intercepts[self.class] = -behind * (functions - 1) as f64;
        intercepts
    }
}

/// The leads that may be best, and whether nothing is left to lower there.
fn leads(loss: Loss, own: f64, others: f64) -> impl Iterator<Item = (f64, bool)> {
    let flat = loss.truncation().map(|_| (long_lead(loss), true));
    std::iter::once((short_lead(loss, own, others), false)).chain(flat)
}

/// The lead that is best as long as nothing is truncated.
fn short_lead(loss: Loss, own: f64, others: f64) -> f64 {
    let most = loss.truncation().map_or(LONGEST, |truncation| -truncation);
    if !loss.base().is_smooth() {
        // linear up to the kink
        return if own > others { most.min(1.0) } else { 0.0 };
    }
    let (mut low, mut high) = (0.0, most);
    for _ in 0..BISECTIONS {
        let middle = 0.5 * (low + high);
        let falls = own * loss.base().slope(middle) - others * loss.base().slope(-middle) < 0.0;
        (low, high) = if falls { (middle, high) } else { (low, middle) };
    }
    low
}

/// A lead at which the rows of the leader cost nothing, to the last bit, and all others are truncated: then 0 bounds the convex problem of a step,
/// which otherwise has no minimum.
fn long_lead(loss: Loss) -> f64 {
    let mut lead = 1.0;
    while (loss.value(lead) > 0.0 || !loss.truncates(-lead)) && lead < f64::MAX {
        lead *= 2.0;
    }
    lead
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(loss: Loss, totals: &[f64], b: &[f64]) -> f64 {
        let rival = |class: usize| (0..b.len()).filter(|&l| l != class).map(|l| b[l]).fold(f64::NEG_INFINITY, f64::max);
        (0..b.len()).map(|class| totals[class] * loss.value(b[class] - rival(class))).sum()
    }

    /// No point of a grid of intercepts is lower, and the objective is that of the intercepts.
    #[test]
    fn no_grid_of_intercepts_has_a_lower_one() {
        let losses = [Loss::hinge(), Loss::logistic(), Loss::exponential()];
        let grid: Vec<f64> = (-12..=12).map(|step| f64::from(step) / 4.0).chain([-40.0, 40.0]).collect();
        for truncation in [None, Some(0.0), Some(-0.5), Some(-1.0), Some(-3.0)] {
            for base in losses {
                let loss = truncation.map_or(base, |at| base.truncated_at(at).unwrap());
                for totals in [[1.0, 2.0, 4.0], [3.0, 3.0, 3.0], [0.0, 5.0, 1.0], [9.0, 1.0, 2.0]] {
                    let best = Constant::best(loss, &totals, true);
                    let own = cost(loss, &totals, &best.intercepts(3));
                    assert!((own - best.objective).abs() <= 1e-12 * own, "{own} {best:?}");
                    for one in &grid {
                        for two in &grid {
                            let other = cost(loss, &totals, &[*one, *two, 0.0]);
                            assert!(best.objective <= other * (1.0 + 1e-8), "{loss:?} {totals:?}: {best:?} {other}");
                        }
                    }
                }
            }
        }
    }

    /// Weights of no class decide between equals: the first stays.
    #[test]
    fn ties_are_decided_by_order() {
        let loss = Loss::hinge().truncated_at(-0.2).unwrap();
        let best = Constant::best(loss, &[1.0, 1.0 + 1e-15, 1.0 + 3e-15], true);
        assert_eq!(best.class, 0);
        assert!(best.is_end);
        assert_eq!(Constant::best(loss, &[1.0, 2.0], false).lead, 0.0);
    }
}
