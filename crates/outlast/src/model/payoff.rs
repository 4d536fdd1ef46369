//! What decisions are worth: utility and cost matrices.
//!
//! Row = true class, column = decision, in the sorted order of the classes. A cost matrix becomes the utility matrix
//! max(cost) - cost (Liu, Wu and He, section 3.3), or is used as it is ([`CostForm::Direct`]). Adding a constant to a row of
//! the utility matrix leaves the best decision as it is but changes the loss that stands in for it; [`Baseline::RowMinimum`]
//! takes the smallest such matrix.

use super::Truncated;
use crate::data::Class;
use crate::error::{Error, Result};

/// How a cost matrix enters the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CostForm {
    /// As the utility max(cost) - cost.
    #[default]
    Utility,
    /// As it is: sum_j cost[y, j] l_T(-margin of j), which is not convex even without truncation. Hinge only.
    Direct,
}

impl CostForm {
    /// Every form there is.
    pub const ALL: &'static [CostForm] = &[CostForm::Utility, CostForm::Direct];

    /// One line for help texts.
    pub fn about(self) -> &'static str {
        match self {
            CostForm::Utility => "as the utilities max(cost) - cost",
            CostForm::Direct => {
                "as it is, in a loss that is not convex even without truncation; hinge loss, l2 penalty"
            }
        }
    }

    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            CostForm::Utility => "utility",
            CostForm::Direct => "direct",
        }
    }

    /// The form of that name.
    pub fn from_name(name: &str) -> Result<CostForm> {
        Self::ALL
            .iter()
            .copied()
            .find(|form| form.name() == name)
            .ok_or_else(|| Error::parameter("cost_form", format!("{name:?}"), "one of utility, direct"))
    }
}

/// What is subtracted from each row of the utility matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Baseline {
    /// Nothing.
    #[default]
    Keep,
    /// The row's smallest value.
    RowMinimum,
}

impl Baseline {
    /// Every baseline there is.
    pub const ALL: &'static [Baseline] = &[Baseline::Keep, Baseline::RowMinimum];

    /// One line for help texts.
    pub fn about(self) -> &'static str {
        match self {
            Baseline::Keep => "nothing",
            Baseline::RowMinimum => "the smallest utility of its row: the same best decisions, another loss",
        }
    }

    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            Baseline::Keep => "keep",
            Baseline::RowMinimum => "row_minimum",
        }
    }

    /// The baseline of that name.
    pub fn from_name(name: &str) -> Result<Baseline> {
        Self::ALL
            .iter()
            .copied()
            .find(|baseline| baseline.name() == name)
            .ok_or_else(|| Error::parameter("utility_baseline", format!("{name:?}"), "one of keep, row_minimum"))
    }
}

/// A checked matrix of payoffs, k x k, row-major.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Payoff {
    /// The matrix as the user gave it.
    pub(super) given: Vec<f64>,
    /// Whether the user gave costs.
    pub(super) is_cost: bool,
    /// The factors of the loss terms.
    pub(super) factors: Vec<f64>,
    /// Whether the terms are those of the cost form.
    pub(super) direct: bool,
}

impl Payoff {
    /// The payoff of a set of parameters; `None` where right decisions are worth 1 and all others 0.
    pub(super) fn of(parameters: &Truncated, classes: &[Class]) -> Result<Option<Payoff>> {
        let (name, rows) = match (&parameters.utility, &parameters.cost) {
            (None, None) => return Ok(None),
            (Some(utility), None) => ("utility", utility),
            (None, Some(cost)) => ("cost", cost),
            (Some(_), Some(_)) => {
                return Err(Error::parameter(
                    "cost",
                    "a matrix beside a utility matrix",
                    "only one of utility and cost",
                ));
            }
        };
        let given = checked(name, rows, classes)?;
        let is_cost = name == "cost";
        let direct = is_cost && parameters.cost_form == CostForm::Direct;
        let k = classes.len();
        let mut factors = given.clone();
        if is_cost && !direct {
            let largest = given.iter().fold(0.0f64, |largest, value| largest.max(*value));
            factors.iter_mut().for_each(|value| *value = largest - *value);
        }
        if !direct && parameters.utility_baseline == Baseline::RowMinimum {
            for row in factors.chunks_exact_mut(k) {
                let least = row.iter().fold(f64::INFINITY, |least, value| least.min(*value));
                row.iter_mut().for_each(|value| *value -= least);
            }
        }
        if factors.chunks_exact(k).all(|row| row.iter().all(|&factor| factor == row[0])) {
            let allowed = "one in which some decision is worth more than another";
            return Err(Error::parameter(name, "a matrix that makes all decisions alike", allowed));
        }
        Ok(Some(Payoff { given, is_cost, factors, direct }))
    }
}

/// A k x k matrix of finite numbers >= 0, not all 0, row-major.
pub(super) fn checked(name: &'static str, rows: &[Vec<f64>], classes: &[Class]) -> Result<Vec<f64>> {
    let k = classes.len();
    let wanted = || format!("{k} x {k}, a row and a column per class");
    if rows.len() != k {
        return Err(Error::shape(name, format!("{} rows", rows.len()), wanted()));
    }
    if let Some((at, row)) = rows.iter().enumerate().find(|(_, row)| row.len() != k) {
        return Err(Error::shape(name, format!("{} values in row {at}", row.len()), wanted()));
    }
    for (truth, row) in rows.iter().enumerate() {
        if let Some(decision) = row.iter().position(|value| !(value.is_finite() && *value >= 0.0)) {
            let problem = format!(
                "{} for deciding {} when {} is true; every {name} must be finite and >= 0",
                row[decision],
                crate::error::quoted(&classes[decision].to_string()),
                crate::error::quoted(&classes[truth].to_string())
            );
            return Err(Error::Value { what: name, row: truth, column: Some(decision), problem });
        }
    }
    if rows.iter().flatten().all(|&value| value == 0.0) {
        return Err(Error::parameter(name, "a matrix of zeros", "at least one value > 0"));
    }
    Ok(rows.concat())
}
