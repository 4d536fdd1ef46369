//! Equal rows of one class as one row, in an order that does not depend on theirs.
//!
//! The optimum does not change: the caps of equal rows add up. What a search among local minima finds then does not either,
//! whether a row is written twice or has the weight 2, and wherever it stands.

use crate::data::{Design, Labels};
use crate::error::Result;
use crate::solver::Solution;
use std::cmp::Ordering;

/// The rows that are left.
pub(crate) struct Condensed {
    /// Which row of X.
    pub(crate) rows: Vec<u32>,
    pub(crate) labels: Labels,
    pub(crate) caps: Vec<f64>,
    /// Which of them each row has become; rows without weight become none.
    place: Vec<Option<u32>>,
}

impl Condensed {
    /// Cost: a dense copy of X, and sorting it.
    pub(crate) fn new(x: &dyn Design, labels: &Labels, caps: &[f64]) -> Result<Condensed> {
        let d = x.cols();
        let mut values = vec![0.0; x.rows() * d];
        values.chunks_exact_mut(d.max(1)).enumerate().for_each(|(row, out)| x.copy_row(row, out));
        let row = |at: u32| &values[at as usize * d..(at as usize + 1) * d];
        let compare = |&a: &u32, &b: &u32| -> Ordering {
            let codes = labels.codes();
            let entries = row(a).iter().zip(row(b)).map(|(a, b)| a.total_cmp(b));
            codes[a as usize]
                .cmp(&codes[b as usize])
                .then(entries.into_iter().find(|o| o.is_ne()).unwrap_or(Ordering::Equal))
        };
        let mut order: Vec<u32> = (0..x.rows() as u32).filter(|&row| caps[row as usize] > 0.0).collect();
        order.sort_by(compare);
        let (mut rows, mut sums): (Vec<u32>, Vec<f64>) = (Vec::new(), Vec::new());
        let mut place = vec![None; x.rows()];
        for &at in &order {
            match rows.last() {
                Some(last) if compare(last, &at).is_eq() => *sums.last_mut().unwrap_or(&mut 0.0) += caps[at as usize],
                _ => {
                    rows.push(at);
                    sums.push(caps[at as usize]);
                }
            }
            place[at as usize] = Some(rows.len() as u32 - 1);
        }
        let codes = rows.iter().map(|&row| labels.codes()[row as usize]).collect();
        let labels = Labels::from_codes(labels.classes().to_vec(), codes)?;
        Ok(Condensed { rows, labels, caps: sums, place })
    }

    /// The solution for all rows of X.
    pub(crate) fn expand(&self, solution: Solution, x: &dyn Design, caps: &[f64]) -> Solution {
        let (n, m) = (x.rows(), solution.intercepts.len());
        let (mut expansion, mut decision) = (vec![0.0; n * m], vec![0.0; n * m]);
        let weights = solution.weights.as_deref().unwrap_or(&[]);
        for row in 0..n {
            for function in 0..m {
                let at = row * m + function;
                match self.place[row].map(|place| place as usize) {
                    Some(place) => {
                        expansion[at] = solution.expansion[place * m + function] * (caps[row] / self.caps[place]);
                        decision[at] = solution.decision[place * m + function];
                    }
                    None => {
                        let w = &weights[function * x.cols()..(function + 1) * x.cols()];
                        decision[at] = x.dot(row, w) + solution.intercepts[function];
                    }
                }
            }
        }
        Solution { expansion, decision, truncated: vec![false; n], ..solution }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;

    #[test]
    fn equal_rows_of_a_class_become_one_wherever_they_stand() {
        let labels = Labels::new([0, 1, 0, 0, 1]);
        let x = Dense::from_rows(&[[2.0], [1.0], [1.0], [2.0], [3.0]]);
        let found = Condensed::new(&x, &labels, &[1.0, 1.0, 1.0, 2.0, 0.0]).unwrap();
        assert_eq!(found.rows, [2, 0, 1]);
        assert_eq!(found.caps, [1.0, 3.0, 1.0]);
        assert_eq!(found.labels.codes(), [0, 0, 1]);
        assert_eq!(found.place, [Some(1), Some(2), Some(0), Some(1), None]);
    }
}
