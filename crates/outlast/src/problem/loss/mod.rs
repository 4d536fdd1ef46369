//! Losses of the functional margin u = y f(x), and their truncation.
//!
//! A base loss l is convex and falls; truncated at s <= 0 it becomes
//!
//! ```text
//! l_T(u) = min(l(u), l(s))          hinge: T_s(u) = [1 - u]_+ - [s - u]_+
//! ```
//!
//! so that a row with u < s, an *outlier*, costs the same however far away it lies. Adding a loss is one file beside this
//! and one line in [`ALL`]; the registry feeds the command's help, the Python names and the property tests.
//!
//! Fisher-consistent truncation for k classes (Wu and Liu 2007, theorem 1, and its analogues): s from the value of
//! [`BaseLoss::lowest_consistent_truncation`] up to 0. With two classes every s <= 0 is consistent, and that value is
//! only the default.

mod exponential;
mod hinge;
mod logistic;
pub(crate) mod squared_hinge;

use crate::error::{Error, Result};
use std::fmt;

/// A convex, non-increasing loss of the margin.
pub trait BaseLoss: Sync + fmt::Debug {
    /// The name users see.
    fn name(&self) -> &'static str;

    /// One line for help texts.
    fn about(&self) -> &'static str;

    /// l(u)
    fn value(&self, margin: f64) -> f64;

    /// Adds l(u) of each margin to a sum: one call for many rows.
    fn add_values(&self, margins: &[f64], sums: &mut [f64]) {
        sums.iter_mut().zip(margins).for_each(|(sum, &margin)| *sum += self.value(margin));
    }

    /// l'(u), a subgradient at kinks. Never positive.
    fn slope(&self, margin: f64) -> f64;

    /// l''(u), 0 at kinks.
    fn curvature(&self, margin: f64) -> f64;

    /// l*(-a), the convex conjugate at minus the dual variable; infinite outside its domain.
    fn conjugate(&self, dual: f64) -> f64;

    /// Whether l is twice differentiable, so that Newton's method applies as it is.
    fn is_smooth(&self) -> bool;

    /// The lowest truncation point that is Fisher consistent for that many classes; the default truncation.
    fn lowest_consistent_truncation(&self, classes: usize) -> f64;
}

/// Every base loss there is.
pub static ALL: &[&dyn BaseLoss] = &[&hinge::Hinge, &logistic::Logistic, &exponential::Exponential];

/// A base loss, truncated or not.
///
/// ```
/// use outlast::Loss;
/// let loss = Loss::hinge().truncated_at(-1.0)?;
/// assert_eq!(loss.value(0.5), 0.5);
/// assert_eq!(loss.value(-100.0), 2.0);       // no outlier costs more than 1 - s
/// assert!(loss.truncates(-100.0));
/// # Ok::<(), outlast::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    base: &'static dyn BaseLoss,
    truncation: Option<f64>,
}

impl Loss {
    /// [1 - u]_+
    pub fn hinge() -> Loss {
        Loss { base: &hinge::Hinge, truncation: None }
    }

    /// log(1 + exp(-u))
    pub fn logistic() -> Loss {
        Loss { base: &logistic::Logistic, truncation: None }
    }

    /// exp(-u)
    pub fn exponential() -> Loss {
        Loss { base: &exponential::Exponential, truncation: None }
    }

    /// [1 - u]_+^2, not truncated.
    pub(crate) fn squared_hinge() -> Loss {
        Loss { base: &squared_hinge::SquaredHinge, truncation: None }
    }

    /// The untruncated loss of that name.
    pub fn from_name(name: &str) -> Result<Loss> {
        match ALL.iter().find(|base| base.name() == name) {
            Some(&base) => Ok(Loss { base, truncation: None }),
            None => {
                let names: Vec<_> = ALL.iter().map(|base| base.name()).collect();
                Err(Error::parameter("loss", format!("{name:?}"), format!("one of {}", names.join(", "))))
            }
        }
    }

    /// The same loss truncated at `truncation` <= 0.
    pub fn truncated_at(self, truncation: f64) -> Result<Loss> {
        if truncation.is_finite() && truncation <= 0.0 {
            Ok(Loss { truncation: Some(truncation), ..self })
        } else {
            Err(Error::parameter("truncation", truncation, "a finite number <= 0, \"auto\", or none at all"))
        }
    }

    /// The same loss without truncation.
    pub fn untruncated(self) -> Loss {
        Loss { truncation: None, ..self }
    }

    /// The loss before truncation.
    pub fn base(&self) -> &'static dyn BaseLoss {
        self.base
    }

    /// The paper's s, if any.
    pub fn truncation(&self) -> Option<f64> {
        self.truncation
    }

    /// Whether a row of that margin lies on the flat, truncated part.
    #[inline]
    pub fn truncates(&self, margin: f64) -> bool {
        self.truncation.is_some_and(|truncation| margin < truncation)
    }

    /// l_T(u)
    #[inline]
    pub fn value(&self, margin: f64) -> f64 {
        self.base.value(self.truncation.map_or(margin, |truncation| margin.max(truncation)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> impl Iterator<Item = f64> {
        (-400..=400).map(|step| step as f64 / 50.0 + 1e-4)
    }

    #[test]
    fn slopes_and_curvatures_are_derivatives() {
        for base in ALL {
            for u in grid() {
                let h = 1e-5;
                let slope = (base.value(u + h) - base.value(u - h)) / (2.0 * h);
                assert!((slope - base.slope(u)).abs() <= 1e-6 * (1.0 + slope.abs()), "{} at {u}", base.name());
                if base.is_smooth() {
                    let curvature = (base.slope(u + h) - base.slope(u - h)) / (2.0 * h);
                    assert!(
                        (curvature - base.curvature(u)).abs() <= 1e-6 * (1.0 + curvature),
                        "{} at {u}",
                        base.name()
                    );
                }
            }
        }
    }

    #[test]
    fn conjugate_is_the_supremum() {
        // l*(-a) = sup_u (-a u - l(u)): Fenchel's inequality everywhere, equality at a = -l'(u).
        for base in ALL {
            for u in grid() {
                for step in 0..=20 {
                    let a = step as f64 / 20.0;
                    assert!(base.conjugate(a) >= -a * u - base.value(u) - 1e-12, "{} at {u}, {a}", base.name());
                }
                let a = -base.slope(u);
                let touching = -a * u - base.value(u);
                assert!(
                    (base.conjugate(a) - touching).abs() <= 1e-9 * (1.0 + touching.abs()),
                    "{} at {u}",
                    base.name()
                );
            }
        }
    }

    #[test]
    fn truncation_is_the_smaller_of_two() {
        for base in ALL {
            let plain = Loss { base: *base, truncation: None };
            for s in [-2.0, -0.5, 0.0] {
                let truncated = plain.truncated_at(s).unwrap();
                for u in grid() {
                    assert_eq!(truncated.value(u), base.value(u).min(base.value(s)), "{}", base.name());
                }
            }
            assert!(plain.truncated_at(0.1).is_err() && plain.truncated_at(f64::NAN).is_err());
        }
    }

    /// The consistent range is where the truncated conditional risk has its minimum at the most probable class: on the
    /// hardest case for k classes, all others equal, the loss at the truncation point is at most k/(k-1) times l(0)... for
    /// the three losses here that is the published closed form, checked by its defining equation l(s) = k/(k-1) l(0).
    #[test]
    fn lowest_consistent_truncations_solve_their_equation() {
        for base in ALL {
            for k in 2..10 {
                let s = base.lowest_consistent_truncation(k);
                let ratio = k as f64 / (k as f64 - 1.0);
                assert!((base.value(s) - ratio * base.value(0.0)).abs() < 1e-12, "{} k = {k}", base.name());
                assert!(s <= 0.0);
            }
        }
    }

    #[test]
    fn unknown_names_are_refused_with_the_list() {
        let error = Loss::from_name("huber").unwrap_err().to_string();
        assert!(error.contains("\"huber\"") && error.contains("hinge, logistic, exponential"), "{error}");
    }
}
