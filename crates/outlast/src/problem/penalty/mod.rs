//! The registry of penalties. Adding one is a line in [`Penalty::ALL`] and an arm of the functions below.
//!
//! ```text
//! l2            1/2 sum_j |f_j|^2         w of a linear f, or the norm of the kernel's space
//! l1            sum |w|                   linear f only; exact zeros
//! adaptive_l1   sum rate |w|              rate = 1 / |w of the l2 fit|, so that large coefficients are hardly shrunk
//! lq            sum |w|^q                 linear f only; for q < 1 not convex
//! ```
//!
//! The intercepts are never penalised. Solvers see a [`Norm`]: what the penalty comes down to once its rates are known.

use super::lq::size;
use crate::error::{Error, Result};

/// How the size of the decision function is measured, as users name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Penalty {
    /// 1/2 |w|^2, with a kernel half the squared norm of its space.
    #[default]
    L2,
    /// Sum of the absolute values of the coefficients of a linear f.
    L1,
    /// As `L1`, each coefficient divided by the absolute value it has in the `L2` fit.
    AdaptiveL1,
    /// Sum of |w|^q of a linear f.
    Lq,
}

impl Penalty {
    /// Every penalty there is.
    pub const ALL: &'static [Penalty] = &[Penalty::L2, Penalty::L1, Penalty::AdaptiveL1, Penalty::Lq];

    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            Penalty::L2 => "l2",
            Penalty::L1 => "l1",
            Penalty::AdaptiveL1 => "adaptive_l1",
            Penalty::Lq => "lq",
        }
    }

    /// One line for help texts.
    pub fn about(self) -> &'static str {
        match self {
            Penalty::L2 => "half the squared norm; any kernel",
            Penalty::L1 => "sum of absolute coefficients: selects variables; linear kernel only",
            Penalty::AdaptiveL1 => "l1 with rates from the l2 fit: selects fewer variables and shrinks them less",
            Penalty::Lq => "sum of |w|^q: the smaller q, the fewer variables; linear kernel only",
        }
    }

    /// Whether it sets coefficients to exactly 0, and therefore needs a linear f.
    pub fn selects(self) -> bool {
        self != Penalty::L2
    }

    /// The penalty of that name.
    pub fn from_name(name: &str) -> Result<Penalty> {
        Penalty::ALL.iter().copied().find(|penalty| penalty.name() == name).ok_or_else(|| {
            let names: Vec<_> = Penalty::ALL.iter().map(|penalty| penalty.name()).collect();
            Error::parameter("penalty", format!("{name:?}"), format!("one of {}", names.join(", ")))
        })
    }
}

/// The penalty as a problem holds it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Norm<'a> {
    /// 1/2 sum_j |f_j|^2
    #[default]
    Squared,
    /// sum rate |w|, one rate >= 0 per coefficient (functions x columns, as the weights); an infinite rate fixes its
    /// coefficient at 0.
    Absolute(&'a [f64]),
    /// sum |w|^q, 0 < q <= 1; not convex below 1.
    Power(f64),
}

impl Norm<'_> {
    /// The penalty of linear weights.
    pub fn of_weights(&self, weights: &[f64]) -> f64 {
        match self {
            Norm::Squared => 0.5 * weights.iter().map(|w| w * w).sum::<f64>(),
            Norm::Power(q) => size(weights, *q),
            Norm::Absolute(rates) => {
                // infinite rates times a coefficient of 0 count nothing
                weights.iter().zip(*rates).filter(|(w, _)| **w != 0.0).map(|(w, rate)| rate * w.abs()).sum()
            }
        }
    }
}
