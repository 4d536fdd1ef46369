//! The squared hinge, l(u) = [1 - u]_+^2. Differentiable once; its curvature jumps at u = 1, so that Newton's method ends
//! after finitely many steps. Used under a concave function (`problem/concave`), not offered for truncation.

use super::BaseLoss;

#[derive(Debug)]
pub(crate) struct SquaredHinge;

impl BaseLoss for SquaredHinge {
    fn name(&self) -> &'static str {
        "squared_hinge"
    }

    fn about(&self) -> &'static str {
        "max(0, 1 - u)^2"
    }

    fn value(&self, margin: f64) -> f64 {
        let slack = (1.0 - margin).max(0.0);
        slack * slack
    }

    fn slope(&self, margin: f64) -> f64 {
        -2.0 * (1.0 - margin).max(0.0)
    }

    fn curvature(&self, margin: f64) -> f64 {
        if margin < 1.0 { 2.0 } else { 0.0 }
    }

    fn conjugate(&self, dual: f64) -> f64 {
        if dual >= 0.0 { 0.25 * dual * dual - dual } else { f64::INFINITY }
    }

    fn is_smooth(&self) -> bool {
        true
    }

    /// l(s) = k/(k-1) l(0)
    fn lowest_consistent_truncation(&self, classes: usize) -> f64 {
        let k = classes as f64;
        1.0 - (k / (k - 1.0)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_and_conjugate_are_those_of_the_value() {
        let loss = SquaredHinge;
        for step in -300..300 {
            let u = f64::from(step) / 50.0 + 1e-3;
            let h = 1e-6;
            let slope = (loss.value(u + h) - loss.value(u - h)) / (2.0 * h);
            assert!((slope - loss.slope(u)).abs() < 1e-5 * (1.0 + slope.abs()), "{u}");
            let a = -loss.slope(u);
            // Fenchel's equality at a = -l'(u)
            assert!((loss.conjugate(a) - (-a * u - loss.value(u))).abs() < 1e-10 * (1.0 + a * a), "{u}");
        }
        for k in 2..6 {
            let s = loss.lowest_consistent_truncation(k);
            assert!((loss.value(s) - k as f64 / (k as f64 - 1.0)).abs() < 1e-12 && s <= 0.0);
        }
    }
}
