//! Kernel widths to choose from.

use super::common::check_class_weights;
use super::{FitRequest, fit};
use crate::data::{Design, Target};
use crate::error::Result;
use crate::problem::Gamma;

/// The gammas to tune an rbf kernel over: 1 / (2 sigma^2) with sigma the lower quartile, the median and the upper quartile of
/// the distances between rows of different classes (as Wu and Liu choose it). Of more than some 1,450 rows an even
/// sample is taken.
///
/// ```
/// use outlast::{Dense, gamma_quartiles};
///
/// let x = Dense::from_rows(&[[0.0], [1.0], [2.0], [3.0]]);
/// // between the classes: 1, 2, 3
/// let [q1, median, q3] = gamma_quartiles(&x, &["a", "b", "b", "b"], None)?;
/// assert_eq!((q1, median, q3), (1.0 / 2.0, 1.0 / 8.0, 1.0 / 18.0));
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn gamma_quartiles(x: &dyn Design, y: &(impl Target + ?Sized), sample_weight: Option<&[f64]>) -> Result<[f64; 3]> {
    let labels = y.labels();
    fit::check_shapes(x, &labels, &FitRequest { sample_weight, ..FitRequest::default() })?;
    x.check_finite()?;
    check_class_weights(&labels, sample_weight.unwrap_or(&vec![1.0; labels.len()]))?;
    Ok(Gamma::quartiles(x, &labels, sample_weight))
}
