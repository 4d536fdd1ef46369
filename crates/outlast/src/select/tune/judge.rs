//! What points are judged by, and which of them is taken.

use super::part::Labelled;
use crate::data::Labels;
use crate::error::{Error, Result};
use crate::select::{Split, stratified};

/// Which point is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rule {
    /// The one with the least mean error.
    #[default]
    Best,
    /// The one of smallest C, for the L_q machine of fewest columns, whose mean error is within one standard error of the least.
    OneSe,
}

impl Rule {
    /// The names users can ask for.
    pub const NAMES: &'static [&'static str] = &["best", "one_se"];

    /// The rule of that name.
    pub fn from_name(name: &str) -> Result<Rule> {
        match name {
            "best" => Ok(Rule::Best),
            "one_se" => Ok(Rule::OneSe),
            _ => Err(Error::parameter("rule", format!("{name:?}"), "\"best\" or \"one_se\"")),
        }
    }
}

/// What the points are judged by.
#[derive(Debug, Clone, PartialEq)]
pub enum Judge {
    /// So many stratified folds, each held out once.
    Folds(usize),
    /// One stratified part of the rows, of that share.
    HoldOut(f64),
    /// Splits of the caller's.
    Splits(Vec<Split>),
}

impl Judge {
    /// Checks whatever can be checked without data.
    pub(in crate::select) fn check(&self) -> Result<()> {
        match self {
            Judge::HoldOut(share) if !(*share > 0.0 && *share < 1.0) => {
                Err(Error::parameter("holdout", share, "a number > 0 and < 1"))
            }
            Judge::Folds(folds) if *folds < 2 => Err(Error::parameter("cv", folds, "a whole number >= 2")),
            _ => Ok(()),
        }
    }

    /// How many splits there are, of so many rows.
    pub(in crate::select) fn count(&self, rows: usize) -> usize {
        match self {
            Judge::Folds(folds) => (*folds).min(rows.max(1)),
            Judge::HoldOut(_) => 1,
            Judge::Splits(splits) => splits.len(),
        }
    }

    /// The splits; of all rows and all those of `by`, if that is other data.
    pub(in crate::select) fn splits(&self, data: Labelled, by: Option<Labelled>, seed: u64) -> Result<Vec<Split>> {
        let all = |rows: usize| -> Vec<u32> { (0..rows as u32).collect() };
        match (self, by) {
            (_, Some(by)) => Ok(vec![Split { train: all(data.x.rows()), test: all(by.x.rows()) }]),
            (Judge::Folds(folds), _) => Ok(Split::of_folds(&stratified(data.labels, *folds, seed)?)),
            (Judge::HoldOut(share), _) => Ok(vec![Split::hold_out(data.labels, *share, seed)]),
            (Judge::Splits(splits), _) => {
                if splits.is_empty() {
                    return Err(Error::shape("cv", "no splits", "at least one"));
                }
                splits.iter().try_for_each(|split| split.check(data.x.rows()))?;
                Ok(splits.clone())
            }
        }
    }

    /// What takes its place for some of the rows, about which positions among all of them say nothing.
    pub(in crate::select) fn inner(&self) -> Judge {
        match self {
            Judge::Splits(splits) => Judge::Folds(splits.len().clamp(2, 10)),
            other => other.clone(),
        }
    }
}

/// The splits of a cross-validation around a search: other ones than those within.
pub(in crate::select) fn outer_splits(labels: &Labels, folds: usize, seed: u64) -> Result<Vec<Split>> {
    Ok(Split::of_folds(&stratified(labels, folds, seed ^ 1)?))
}

/// Checks the folds of a cross-validation around a search.
pub(in crate::select) fn check_nested(nested: Option<usize>) -> Result<()> {
    match nested {
        Some(folds) if folds < 2 => Err(Error::parameter("nested", folds, "a whole number >= 2, or none")),
        _ => Ok(()),
    }
}
