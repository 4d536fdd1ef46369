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
        for last in (1..rows.len()).rev() {
            rows.swap(last, (draw(&mut random) % (last as u64 + 1)) as usize);
        }
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

/// SplitMix64.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
