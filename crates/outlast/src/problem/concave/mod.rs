//! Concave functions of a row's convex loss, and the losses they make.
//!
//! ```text
//! loss_i = h(g_i),    g_i = sum_j l(y_ij f_j(x_i))
//! ```
//!
//! with l convex, one of the margin losses, and h concave and rising from h(0) = 0. Then h(g) <= h(a) + h'(a) (g - a) with equality
//! at g = a: a row whose loss is large has a small slope, so the bound of the whole objective at a point is the convex problem
//! with row weights h'(g_i). That is all the majorise-minimise loop needs of a loss (Nie, Wang and Huang, "Multiclass capped
//! l_p-norm SVM for robust classifications", AAAI 2017, algorithm 1). A loss is one file here and one line in [`ALL`].
//!
//! | name | l | h(g) |
//! |---|---|---|
//! | `lp` | squared hinge, or the hinge for p = 1 and one function | min(g^(p/2), cap) |
//! | `logistic` | logistic | min(g, cap) |
//! | `geman_mcclure` | squared hinge | cap g / (cap + g) |

mod geman_mcclure;
mod logistic;
mod lp;

pub use lp::FLOOR;

use super::loss::BaseLoss;
use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// A concave function h of a row's convex loss g >= 0.
pub trait Concave: Send + Sync + fmt::Debug {
    /// h(g)
    fn value(&self, g: f64) -> f64;

    /// h'(g) >= 0, finite; a supergradient at kinks.
    fn slope(&self, g: f64) -> f64;

    /// h(g) in the place of each g: one call for many rows.
    fn replace_by_values(&self, g: &mut [f64]) {
        g.iter_mut().for_each(|g| *g = self.value(*g));
    }

    /// h'(g) in the place of each g.
    fn replace_by_slopes(&self, g: &mut [f64]) {
        g.iter_mut().for_each(|g| *g = self.slope(*g));
    }

    /// The row's loss if there were no cap: what rows are compared by.
    fn uncapped(&self, g: f64) -> f64;

    /// Upper bounds of h to work with, each below the one before; the last is h or as close to it as numbers allow. More than
    /// one where h'(0) is infinite.
    fn bounds(&self) -> Vec<Arc<dyn Concave>>;
}

/// A kind of loss, before its parameters are known.
pub trait Form: Sync + fmt::Debug {
    /// The name users see.
    fn name(&self) -> &'static str;

    /// One line for help texts.
    fn about(&self) -> &'static str;

    /// Whether the power p is a parameter of it.
    fn has_power(&self) -> bool;

    /// l and h for a power, a cap (infinite for none) and a number of decision functions.
    fn make(&self, power: f64, cap: f64, functions: usize) -> (&'static dyn BaseLoss, Arc<dyn Concave>);
}

/// Every form there is.
pub static ALL: &[&dyn Form] = &[&lp::Lp, &logistic::Logistic, &geman_mcclure::GemanMcClure];

/// The form of that name.
pub fn from_name(name: &str) -> Result<&'static dyn Form> {
    ALL.iter().copied().find(|form| form.name() == name).ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|form| form.name()).collect();
        Error::parameter("loss", format!("{name:?}"), format!("one of {}", names.join(", ")))
    })
}

/// A loss with its parameters.
#[derive(Debug, Clone)]
pub struct Robust {
    /// Which kind.
    pub form: &'static dyn Form,
    /// p of `lp`.
    pub power: f64,
    /// What a row costs at most, infinite for no limit.
    pub cap: f64,
    /// For how many decision functions.
    functions: usize,
    /// l
    pub base: &'static dyn BaseLoss,
    /// h
    pub concave: Arc<dyn Concave>,
}

impl Robust {
    /// A loss of that form.
    pub fn new(form: &'static dyn Form, power: f64, cap: f64, functions: usize) -> Robust {
        let (base, concave) = form.make(power, cap, functions);
        Robust { form, power, cap, functions, base, concave }
    }

    /// `lp` on squared residuals, also where there is a shorter way for the exact rounds.
    pub(crate) fn squared(power: f64, cap: f64) -> Robust {
        Robust::new(&lp::Lp, power, cap, 2)
    }

    /// The same with another cap.
    pub fn with_cap(&self, cap: f64) -> Robust {
        Robust::new(self.form, self.power, cap, self.functions)
    }

    /// Whether a row of that convex loss lies beyond the cap.
    pub fn gives_up(&self, g: f64) -> bool {
        self.is_beyond(self.concave.uncapped(g))
    }

    /// Whether a row that would cost this much without a cap is given up.
    pub fn is_beyond(&self, uncapped: f64) -> bool {
        uncapped > self.cap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> impl Iterator<Item = f64> {
        (0..200).map(|step| 1.3e-3 * f64::from(step).powi(2))
    }

    fn all() -> Vec<(String, Vec<Arc<dyn Concave>>)> {
        let mut made = Vec::new();
        for form in ALL {
            for power in [0.5, 1.0, 1.5, 2.0] {
                for cap in [0.7, 3.0, f64::INFINITY] {
                    for functions in [1, 3] {
                        let robust = Robust::new(*form, power, cap, functions);
                        let mut bounds = robust.concave.bounds();
                        bounds.push(robust.concave);
                        made.push((format!("{} p {power} cap {cap} k {functions}", form.name()), bounds));
                    }
                }
            }
        }
        made
    }

    /// h(g) <= h(a) + h'(a) (g - a), with the bounds in descending order above h.
    #[test]
    fn tangents_lie_above_and_bounds_descend() {
        for (name, bounds) in all() {
            for h in &bounds[..bounds.len() - 1] {
                for a in grid() {
                    let slope = h.slope(a);
                    assert!(slope.is_finite() && slope >= 0.0, "{name} at {a}");
                    for g in grid() {
                        let tangent = h.value(a) + slope * (g - a);
                        assert!(h.value(g) <= tangent + 1e-12 * (1.0 + tangent.abs()), "{name}: {a} {g}");
                    }
                }
            }
            for pair in bounds.windows(2) {
                for g in grid() {
                    assert!(pair[1].value(g) <= pair[0].value(g) * (1.0 + 1e-15), "{name} at {g}");
                }
            }
            let last = &bounds[bounds.len() - 2];
            let exact = &bounds[bounds.len() - 1];
            assert!(grid().all(|g| last.value(g) - exact.value(g) <= FLOOR.powf(0.25)), "{name}");
        }
    }

    #[test]
    fn slopes_are_derivatives() {
        for (name, bounds) in all() {
            for h in &bounds[..bounds.len() - 1] {
                for g in grid().filter(|&g| g > 0.05) {
                    let step = 1e-6 * g;
                    let (up, down) = (h.slope(g + step), h.slope(g - step));
                    if (up - down).abs() < 1e-3 * down {
                        let slope = (h.value(g + step) - h.value(g - step)) / (2.0 * step);
                        assert!((slope - h.slope(g)).abs() <= 1e-4 * (1e-3 + slope), "{name} at {g}");
                    }
                }
            }
        }
    }

    #[test]
    fn unknown_names_are_refused_with_the_list() {
        let error = from_name("huber").unwrap_err().to_string();
        assert!(error.contains("\"huber\"") && error.contains("lp, logistic, geman_mcclure"), "{error}");
    }
}
