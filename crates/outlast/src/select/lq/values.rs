//! Values of C worth trying.

use crate::data::{Design, Labels, Target};
use crate::error::{Error, Result};
use crate::model::{Estimator, FitRequest, Lq};

/// Values of C, or how many the data are to choose.
#[derive(Debug, Clone, PartialEq)]
pub enum Cs {
    /// So many, by [`default_cs`].
    Count(usize),
    /// These.
    Given(Vec<f64>),
}

impl From<Vec<f64>> for Cs {
    fn from(values: Vec<f64>) -> Self {
        Cs::Given(values)
    }
}

impl From<usize> for Cs {
    fn from(count: usize) -> Self {
        Cs::Count(count)
    }
}

impl Cs {
    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Cs::Count(count) => *count,
            Cs::Given(values) => values.len(),
        }
    }

    pub(super) fn check(&self, base: &Lq) -> Result<()> {
        match self {
            Cs::Count(0) => Err(no_values(0)),
            Cs::Count(_) => Ok(()),
            Cs::Given(values) if values.is_empty() => Err(no_values("no values")),
            Cs::Given(values) => {
                let check = values.iter().try_for_each(|&c| base.clone().c(c).check());
                check.map_err(|error| super::in_list(error, "C", "Cs"))
            }
        }
    }
}

fn no_values(found: impl std::fmt::Display) -> Error {
    Error::parameter("Cs", found, "a whole number >= 1, or a list of at least one number")
}

/// Values of C worth trying: from below where the first variable comes in at q = 1 to a thousand times that, evenly in the
/// logarithm.
///
/// At w = 0 a class pulls at a column with C times its cost and the sum of its distances from the mean of all rows, give or take a factor
/// that the intercepts decide; half of what the largest pull asks for is where the list starts.
pub fn default_cs(
    base: &Lq,
    x: &dyn Design,
    y: &(impl Target + ?Sized),
    sample_weight: Option<&[f64]>,
    count: usize,
) -> Result<Vec<f64>> {
    if count == 0 {
        return Err(no_values(count));
    }
    let labels = y.labels();
    base.check_data(x, &labels, &FitRequest { sample_weight, ..FitRequest::default() })?;
    let weights = base.unit_caps(&labels, sample_weight)?;
    let cost = base.costs(&labels)?;
    let largest = base.on_columns(x, |mapped| largest_pull(mapped, &labels, &weights, cost.as_deref()));
    let first = if largest.is_finite() && largest > 0.0 { (0.5 / largest).clamp(1e-12, 1e12) } else { 1e-2 };
    let at = |step: usize| first * 1000f64.powf(step as f64 / (count - 1).max(1) as f64);
    Ok((0..count).map(at).collect())
}

/// max over functions and columns of |sum over the other classes of weight cost (x - mean)|; one function is pulled by either class, around
/// the mean of rows weighted by their costs.
fn largest_pull(x: &dyn Design, labels: &Labels, weights: &[f64], cost: Option<&[f64]>) -> f64 {
    let (d, k) = (x.cols(), labels.classes().len());
    let (mut sums, mut totals) = (vec![0.0; k * d], vec![0.0; k]);
    for (row, &code) in labels.codes().iter().enumerate().filter(|(row, _)| weights[*row] > 0.0) {
        totals[code as usize] += weights[row];
        x.add_scaled(row, weights[row], &mut sums[code as usize * d..][..d]);
    }
    let price = |class: usize, to: usize| cost.map_or(1.0, |cost| cost[class * k + to]);
    let counted = |class: usize| if k == 2 { price(class, 1 - class) } else { 1.0 };
    let total: f64 = totals.iter().enumerate().map(|(class, total)| counted(class) * total).sum();
    let mut largest = 0.0f64;
    for column in 0..d {
        let mean = (0..k).map(|class| counted(class) * sums[class * d + column]).sum::<f64>() / total;
        for to in 0..k {
            let away = |class: usize| price(class, to) * (sums[class * d + column] - totals[class] * mean);
            let pull: f64 = (0..k).filter(|&class| class != to).map(away).sum();
            largest = largest.max(pull.abs());
        }
    }
    largest
}
