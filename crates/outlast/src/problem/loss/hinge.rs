//! The hinge, l(u) = [1 - u]_+.

use super::BaseLoss;

#[derive(Debug)]
pub(super) struct Hinge;

impl BaseLoss for Hinge {
    fn name(&self) -> &'static str {
        "hinge"
    }

    fn about(&self) -> &'static str {
        "max(0, 1 - u), the support vector machine's loss"
    }

    fn value(&self, margin: f64) -> f64 {
        (1.0 - margin).max(0.0)
    }

    fn slope(&self, margin: f64) -> f64 {
        if margin < 1.0 { -1.0 } else { 0.0 }
    }

    fn curvature(&self, _: f64) -> f64 {
        0.0
    }

    fn conjugate(&self, dual: f64) -> f64 {
        if (0.0..=1.0).contains(&dual) { -dual } else { f64::INFINITY }
    }

    fn is_smooth(&self) -> bool {
        false
    }

    fn lowest_consistent_truncation(&self, classes: usize) -> f64 {
        -1.0 / (classes as f64 - 1.0)
    }
}
