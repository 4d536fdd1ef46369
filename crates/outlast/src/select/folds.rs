//! Splits of the rows for cross-validation.

use crate::data::Labels;
use crate::error::{Error, Result};

/// The fold of each row: the rows of each class are shuffled and dealt out in turn, the next class where the last one ended, so that
/// folds and the classes within them differ by one row at most.
///
/// ```
/// use outlast::{Labels, select::stratified};
/// let folds = stratified(&Labels::new([0, 0, 0, 0, 1, 1]), 2, 7)?;
/// assert_eq!(folds.iter().filter(|fold| **fold == 0).count(), 3);
/// assert_ne!(folds[4], folds[5]);
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn stratified(labels: &Labels, folds: usize, seed: u64) -> Result<Vec<usize>> {
    if folds < 2 || folds > labels.len() {
        let allowed = format!("a whole number from 2 to {}, the number of rows", labels.len());
        return Err(Error::parameter("cv", folds, allowed));
    }
    let mut of = vec![0; labels.len()];
    let mut random = seed;
    let mut next = 0;
    for class in 0..labels.classes().len() as u32 {
        let mut rows: Vec<usize> = (0..labels.len()).filter(|&row| labels.codes()[row] == class).collect();
        shuffle(&mut rows, &mut random);
        for row in rows {
            of[row] = next % folds;
            next += 1;
        }
    }
    Ok(of)
}

/// Rows to fit and rows to judge by.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Rows fitted.
    pub train: Vec<u32>,
    /// Rows held out.
    pub test: Vec<u32>,
}

impl Split {
    /// The splits of folds: each is held out once.
    pub fn of_folds(folds: &[usize]) -> Vec<Split> {
        let count = folds.iter().map(|fold| fold + 1).max().unwrap_or(0);
        let split = |held: usize| {
            let (test, train) = (0..folds.len() as u32).partition(|&row| folds[row as usize] == held);
            Split { train, test }
        };
        (0..count).map(split).collect()
    }

    /// A share of the rows of each class held out, drawn by the seed: one at least, and one at least kept of a class that has two.
    pub fn hold_out(labels: &Labels, share: f64, seed: u64) -> Split {
        let (mut train, mut test, mut random) = (Vec::new(), Vec::new(), seed);
        for class in 0..labels.classes().len() as u32 {
            let mut rows: Vec<u32> =
                (0..labels.len() as u32).filter(|&row| labels.codes()[row as usize] == class).collect();
            shuffle(&mut rows, &mut random);
            let held = ((share * rows.len() as f64).round() as usize).clamp(1, rows.len().saturating_sub(1).max(1));
            test.extend_from_slice(&rows[..held.min(rows.len())]);
            train.extend_from_slice(&rows[held.min(rows.len())..]);
        }
        train.sort_unstable();
        test.sort_unstable();
        Split { train, test }
    }

    /// Checks that the rows are there, and that there are some to fit and some to judge by.
    pub fn check(&self, rows: usize) -> Result<()> {
        if self.train.is_empty() || self.test.is_empty() {
            let found = format!("a split of {} and {} rows", self.train.len(), self.test.len());
            return Err(Error::shape("cv", found, "rows to fit and rows to judge by in every split"));
        }
        match self.train.iter().chain(&self.test).find(|&&row| row as usize >= rows) {
            None => Ok(()),
            Some(row) => {
                Err(Error::shape("cv", format!("row {row}"), format!("rows from 0 to {}", rows.saturating_sub(1))))
            }
        }
    }
}

/// Every order is as likely as any other.
pub(super) fn shuffle<T>(rows: &mut [T], random: &mut u64) {
    for last in (1..rows.len()).rev() {
        rows.swap(last, (draw(random) % (last as u64 + 1)) as usize);
    }
}

/// SplitMix64.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
