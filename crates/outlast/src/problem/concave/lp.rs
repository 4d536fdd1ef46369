//! min(r^p, cap) of the norm r of the one-sided residuals [1 - y_j f_j]_+, 0 < p <= 2.
//!
//! As a function of g = r^2 it is min(g^(p/2), cap), concave. For p < 2 its slope at 0 is infinite: below a floor e the power is
//! replaced by its tangent at e, which is above it, and the floor is lowered from [`COARSE`] to [`FLOOR`]. For p = 1 and a single
//! function g^(1/2) is the hinge itself: then l is the hinge and h only caps it.

use super::super::loss::{BaseLoss, Loss, squared_hinge::SquaredHinge};
use super::{Concave, Form};
use std::sync::Arc;

/// The lowest floor of g.
pub const FLOOR: f64 = 1e-10;

/// The highest.
const COARSE: f64 = 1e-2;

/// Factor from one floor to the next.
const RATIO: f64 = 1e-2;

#[derive(Debug)]
pub(super) struct Lp;

impl Form for Lp {
    fn name(&self) -> &'static str {
        "lp"
    }

    fn about(&self) -> &'static str {
        "min(r^p, cap) of the norm r of the residuals on the wrong side of the margin"
    }

    fn has_power(&self) -> bool {
        true
    }

    fn make(&self, power: f64, cap: f64, functions: usize) -> (&'static dyn BaseLoss, Arc<dyn Concave>) {
        match power {
            2.0 => (&SquaredHinge, Arc::new(Capped { cap })),
            1.0 if functions == 1 => (Loss::hinge().base(), Arc::new(Capped { cap })),
            _ => (&SquaredHinge, Arc::new(Power { power, cap, floor: 0.0 })),
        }
    }
}

/// min(g, cap)
#[derive(Debug, Clone)]
pub(super) struct Capped {
    pub(super) cap: f64,
}

impl Concave for Capped {
    fn value(&self, g: f64) -> f64 {
        g.min(self.cap)
    }

    fn slope(&self, g: f64) -> f64 {
        if g > self.cap { 0.0 } else { 1.0 }
    }

    fn uncapped(&self, g: f64) -> f64 {
        g
    }

    fn bounds(&self) -> Vec<Arc<dyn Concave>> {
        vec![Arc::new(self.clone())]
    }
}

/// min(g^(p/2), cap), the power replaced by its tangent below the floor.
#[derive(Debug, Clone)]
struct Power {
    power: f64,
    cap: f64,
    floor: f64,
}

impl Power {
    /// g^(p/2)
    fn raise(&self, g: f64) -> f64 {
        if self.power == 1.0 { g.sqrt() } else { g.powf(0.5 * self.power) }
    }

    /// The slope of g^(p/2).
    fn steepness(&self, g: f64) -> f64 {
        0.5 * self.power * self.raise(g) / g
    }

    fn value_above(&self, floor: f64, g: f64) -> f64 {
        let raw = match g < floor {
            true => self.raise(floor) + self.steepness(floor) * (g - floor),
            false => self.raise(g),
        };
        raw.min(self.cap)
    }

    fn slope_above(&self, floor: f64, g: f64) -> f64 {
        if self.raise(g) > self.cap { 0.0 } else { self.steepness(g.max(floor).max(f64::MIN_POSITIVE)) }
    }

    /// The tangent at the floor lies above the cap where the cap is lower than it: then rows are capped at 0 already, and the
    /// floor must go down with it.
    fn floor(&self) -> f64 {
        self.floor.min(0.01 * self.cap.powf(2.0 / self.power))
    }
}

impl Concave for Power {
    fn value(&self, g: f64) -> f64 {
        self.value_above(self.floor(), g)
    }

    fn slope(&self, g: f64) -> f64 {
        self.slope_above(self.floor(), g)
    }

    fn replace_by_values(&self, g: &mut [f64]) {
        let floor = self.floor();
        g.iter_mut().for_each(|g| *g = self.value_above(floor, *g));
    }

    fn replace_by_slopes(&self, g: &mut [f64]) {
        let floor = self.floor();
        g.iter_mut().for_each(|g| *g = self.slope_above(floor, *g));
    }

    fn uncapped(&self, g: f64) -> f64 {
        self.raise(g)
    }

    fn bounds(&self) -> Vec<Arc<dyn Concave>> {
        let mut floors = vec![COARSE];
        while floors[floors.len() - 1] > 2.0 * FLOOR {
            floors.push(floors[floors.len() - 1] * RATIO);
        }
        let with = |floor: f64| -> Arc<dyn Concave> { Arc::new(Power { floor, ..self.clone() }) };
        floors.into_iter().map(with).collect()
    }
}
