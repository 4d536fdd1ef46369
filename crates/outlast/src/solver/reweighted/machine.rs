//! What the scheme needs of one decision function: the convex problem of given row weights.

use super::super::majorize::Step;
use crate::control::Control;
use crate::error::Result;

/// One decision function with a current point, and a way to minimise 1/2 |f|^2 + sum_i a_i l(y_i (f(x_i) + b)) for any row
/// weights a.
pub(super) trait Machine: Send + Sync {
    /// Minimises for these weights, starting from the current point.
    fn minimize(&mut self, weights: &[f64], tolerance: f64, control: &Control) -> Result<Step>;

    /// Minimises 1/2 |f|^2 + sum_i a_i (t_i - f(x_i) - b)^2. `false` where there is no way to do that.
    fn regress(&mut self, weights: &[f64], targets: &[f64], control: &Control) -> Result<bool>;

    /// f(x_i) + b at the current point.
    fn decision(&self) -> &[f64];

    /// b
    fn intercept(&self) -> f64;

    /// 1/2 |f|^2
    fn half_norm(&self) -> f64;

    /// What is added to 1/2 |f|^2 at t on the line that is at `from` at 0 and at `to` at 1: the factors of t and t^2. `None` where what
    /// lies between two points of the machine, or beyond them, is none.
    fn bend(&self, from: &Point, to: &Point) -> Option<(f64, f64)>;

    /// The current point, to come back to.
    fn point(&self) -> Point;

    /// Goes back to a point.
    fn go_to(&mut self, point: &Point);

    /// Goes to a linear function, in the caller's units, if it can.
    fn start_at(&mut self, weights: &[f64], intercept: f64);

    /// The value of the convex problem of these weights at the current point and that of a dual point, both computed afresh
    /// from the data, and the dual point's expansion.
    fn certify(&mut self, weights: &[f64]) -> Certified;

    /// The coefficients w of a linear f, in the caller's units.
    fn coefficients(&self) -> Option<Vec<f64>>;
}

/// A point of a machine, in the machine's own units.
#[derive(Debug, Clone, Default)]
pub(super) struct Point {
    /// w, or the expansion.
    pub unknowns: Vec<f64>,
    /// w where `unknowns` is an expansion beside it.
    pub weights: Option<Vec<f64>>,
    pub intercept: f64,
    pub decision: Vec<f64>,
    /// The relative gap its solver certified, where that is how it is known.
    pub gap: f64,
}

impl Point {
    /// The point at t on the line that is here at 0 and at `to` at 1.
    pub(super) fn towards(&self, to: &Point, t: f64) -> Point {
        let line = |from: &[f64], to: &[f64]| from.iter().zip(to).map(|(from, to)| from + t * (to - from)).collect();
        Point {
            unknowns: line(&self.unknowns, &to.unknowns),
            weights: self.weights.as_ref().zip(to.weights.as_ref()).map(|(from, to)| line(from, to)),
            intercept: self.intercept + t * (to.intercept - self.intercept),
            decision: line(&self.decision, &to.decision),
            gap: f64::INFINITY,
        }
    }
}

/// What a certificate says.
pub(super) struct Certified {
    pub primal: f64,
    pub dual: f64,
    /// beta, in the caller's units.
    pub expansion: Vec<f64>,
}
