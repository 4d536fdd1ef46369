//! Decisions between more than two classes by a vote of all pairs, which is how models of LIBSVM decide.
//!
//! The classes have an order of the model's own. Its support vectors are those of the first class, then those of the second and so on, and
//! each has k - 1 coefficients, one for every other class in that order. For places a < b in the order
//!
//! ```text
//! g_ab(x) = sum_{i of a} coefficient_{i, b - 1} k(x_i, x) + sum_{i of b} coefficient_{i, a} k(x_i, x) + intercept_ab
//! ```
//!
//! is a vote for a where it is positive, else for b. Most votes win; of several classes with as many, the first in the order.
//!
//! What [`Predictor::decision_function`](super::Predictor::decision_function) gives has a column for each pair (0, 1), (0, 2), ..., (1, 2), ... of
//! *sorted* classes, positive for the first of the two: g_ab or -g_ab.

use super::predictor::Expansion;
use super::probability::pairs;
use crate::data::{Design, Repeated};
use crate::problem::KernelFunction;

/// How a model of pairs is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Votes {
    /// The classes, as positions in the sorted list, in the model's own order.
    pub order: Vec<u32>,
    /// Support vectors of each, in that order.
    pub counts: Vec<usize>,
}

impl Votes {
    /// The number of pairs of so many classes, if it can be counted.
    pub fn pairs(classes: usize) -> Option<usize> {
        classes.checked_mul(classes.saturating_sub(1)).map(|twice| twice / 2)
    }

    /// Where each class stands in the order.
    fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.order.len()];
        self.order.iter().enumerate().for_each(|(place, &class)| places[class as usize] = place);
        places
    }

    /// Which column the coefficients of a class at one place have for the class at another.
    fn column(own: usize, other: usize) -> usize {
        if other < own { other } else { other - 1 }
    }

    /// The functions without their intercepts, rows x pairs.
    pub(super) fn values(
        &self,
        kernel: &KernelFunction,
        support: &dyn Design,
        coefficients: &[f64],
        x: &dyn Design,
    ) -> Vec<f64> {
        let (k, places) = (self.order.len(), self.places());
        let (functions, others) = (k * (k - 1) / 2, k - 1);
        let mut values = vec![0.0; x.rows() * functions];
        let mut start = 0;
        for (own, &count) in self.counts.iter().enumerate() {
            let rows = Repeated::new(support, (start as u32..(start + count) as u32).collect());
            let of_class = &coefficients[start * others..(start + count) * others];
            let sums = Expansion::of_rows(kernel, &rows, of_class, others, x);
            start += count;
            for (out, sums) in values.chunks_exact_mut(functions).zip(sums.chunks_exact(others)) {
                for (out, (first, second)) in out.iter_mut().zip(pairs(k)) {
                    let (first, second) = (places[first], places[second]);
                    let sign = if first < second { 1.0 } else { -1.0 };
                    if own == first || own == second {
                        *out += sign * sums[Self::column(own, first + second - own)];
                    }
                }
            }
        }
        values
    }

    /// The class each row of decision values stands for.
    pub(super) fn decide(&self, decision: &[f64]) -> Vec<u32> {
        let (k, places) = (self.order.len(), self.places());
        let winner = |values: &[f64]| {
            let mut votes = vec![0usize; k];
            for (value, (first, second)) in values.iter().zip(pairs(k)) {
                let (first, second) = (places[first], places[second]);
                let of_first = if first < second { *value > 0.0 } else { *value >= 0.0 };
                votes[if of_first { first } else { second }] += 1;
            }
            let most = votes.iter().max().copied().unwrap_or(0);
            self.order[votes.iter().position(|&count| count == most).unwrap_or(0)]
        };
        decision.chunks_exact(k * (k - 1) / 2).map(winner).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;

    #[test]
    fn pairs_are_turned_into_the_order_of_sorted_classes() {
        // one support vector for each of the classes 2, 0, 1, of the linear kernel on the line
        let votes = Votes { order: vec![2, 0, 1], counts: vec![1, 1, 1] };
        let support = Dense::from_rows(&[[1.0], [10.0], [100.0]]);
        let coefficients = [1.0, 2.0, -3.0, 4.0, -5.0, -6.0];
        let found = votes.values(&KernelFunction::Linear, &support, &coefficients, &Dense::from_rows(&[[1.0]]));
        // by places: g_01 = 1 - 30, g_02 = 2 - 500, g_12 = 40 - 600; (0, 1) is g_12, (0, 2) is -g_01, (1, 2) is -g_02
        assert!(found.iter().zip([-560.0, 29.0, 498.0]).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
    }

    #[test]
    fn ties_go_to_the_first_in_the_order_and_a_value_of_zero_to_the_later_one() {
        let votes = Votes { order: vec![2, 0, 1], counts: vec![0; 3] };
        // 0 beats 1, 2 beats 0, 1 beats 2: a vote each
        assert_eq!(votes.decide(&[1.0, -1.0, 1.0]), [2]);
        assert_eq!(votes.decide(&[-1.0, -1.0, 1.0]), [1]);
        // (0, 1) is a vote for 1, (0, 2) for 0, (1, 2) for 1
        assert_eq!(votes.decide(&[0.0, 0.0, 0.0]), [1]);
    }
}
