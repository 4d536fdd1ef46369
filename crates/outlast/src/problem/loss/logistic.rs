//! The logistic loss, l(u) = log(1 + exp(-u)).

use super::BaseLoss;

#[derive(Debug)]
pub(super) struct Logistic;

/// p log p, continued by 0.
fn entropy(p: f64) -> f64 {
    if p > 0.0 { p * p.ln() } else { 0.0 }
}

impl BaseLoss for Logistic {
    fn name(&self) -> &'static str {
        "logistic"
    }

    fn about(&self) -> &'static str {
        "log(1 + exp(-u)), smooth, never quite zero"
    }

    fn value(&self, margin: f64) -> f64 {
        // the larger of -u and 0 taken out, so that nothing overflows
        (-margin).max(0.0) + (-margin.abs()).exp().ln_1p()
    }

    fn slope(&self, margin: f64) -> f64 {
        let e = (-margin.abs()).exp();
        if margin >= 0.0 { -e / (1.0 + e) } else { -1.0 / (1.0 + e) }
    }

    fn curvature(&self, margin: f64) -> f64 {
        let e = (-margin.abs()).exp();
        e / ((1.0 + e) * (1.0 + e))
    }

    fn conjugate(&self, dual: f64) -> f64 {
        // (1 - a) log(1 - a) by ln_1p: a certificate multiplies its rounding by the cap
        let rest = if dual < 1.0 { (1.0 - dual) * (-dual).ln_1p() } else { 0.0 };
        if (0.0..=1.0).contains(&dual) { entropy(dual) + rest } else { f64::INFINITY }
    }

    fn is_smooth(&self) -> bool {
        true
    }

    fn lowest_consistent_truncation(&self, classes: usize) -> f64 {
        let k = classes as f64;
        -(2f64.powf(k / (k - 1.0)) - 1.0).ln()
    }
}
