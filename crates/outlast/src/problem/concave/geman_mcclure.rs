//! Geman and McClure's function of the squared hinge: cap g / (cap + g). It never gives a row up altogether: the slope
//! (cap / (cap + g))^2 falls smoothly, to 1/4 where g reaches the cap.

use super::super::loss::{BaseLoss, squared_hinge::SquaredHinge};
use super::lp::Capped;
use super::{Concave, Form};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct GemanMcClure;

impl Form for GemanMcClure {
    fn name(&self) -> &'static str {
        "geman_mcclure"
    }

    fn about(&self) -> &'static str {
        "cap g / (cap + g) of the squared hinge g: weights that fall smoothly"
    }

    fn has_power(&self) -> bool {
        false
    }

    fn make(&self, _: f64, cap: f64, _: usize) -> (&'static dyn BaseLoss, Arc<dyn Concave>) {
        match cap.is_finite() {
            true => (&SquaredHinge, Arc::new(Saturating { cap })),
            false => (&SquaredHinge, Arc::new(Capped { cap })),
        }
    }
}

#[derive(Debug, Clone)]
struct Saturating {
    cap: f64,
}

impl Concave for Saturating {
    fn value(&self, g: f64) -> f64 {
        // g may be infinite
        if g <= self.cap { g / (1.0 + g / self.cap) } else { self.cap / (1.0 + self.cap / g) }
    }

    fn slope(&self, g: f64) -> f64 {
        (1.0 + g / self.cap).powi(-2)
    }

    fn uncapped(&self, g: f64) -> f64 {
        g
    }

    fn bounds(&self) -> Vec<Arc<dyn Concave>> {
        vec![Arc::new(self.clone())]
    }
}
