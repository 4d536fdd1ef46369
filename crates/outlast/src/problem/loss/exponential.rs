//! The exponential loss, l(u) = exp(-u).

use super::BaseLoss;

#[derive(Debug)]
pub(super) struct Exponential;

impl BaseLoss for Exponential {
    fn name(&self) -> &'static str {
        "exponential"
    }

    fn about(&self) -> &'static str {
        "exp(-u), boosting's loss; sensitive to outliers unless truncated"
    }

    fn value(&self, margin: f64) -> f64 {
        (-margin).exp()
    }

    fn slope(&self, margin: f64) -> f64 {
        -(-margin).exp()
    }

    fn curvature(&self, margin: f64) -> f64 {
        (-margin).exp()
    }

    fn conjugate(&self, dual: f64) -> f64 {
        match dual {
            a if a > 0.0 => a * a.ln() - a,
            0.0 => 0.0,
            _ => f64::INFINITY,
        }
    }

    fn is_smooth(&self) -> bool {
        true
    }

    fn lowest_consistent_truncation(&self, classes: usize) -> f64 {
        (1.0 - 1.0 / classes as f64).ln()
    }
}
