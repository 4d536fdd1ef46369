//! The separable part of the objective: sum over kept rows of c l(y (f + b)), its derivatives, its conjugate, and its
//! minimiser in b. Sums are taken over fixed chunks, so that they do not depend on the number of threads.

use crate::problem::BaseLoss;
use rayon::prelude::*;

const CHUNK: usize = 4096;
/// A margin at which both losses have underflowed to 0.
const BEYOND_LOSS: f64 = 750.0;

/// Labels and caps; a truncated row has cap 0.
pub(super) struct Rows<'a> {
    pub(super) base: &'static dyn BaseLoss,
    pub(super) signs: &'a [f64],
    pub(super) caps: Vec<f64>,
}

/// First and second derivatives at a point.
pub(super) struct Local {
    /// -c y l'(u): what beta is at the optimum.
    pub(super) target: Vec<f64>,
    /// c l''(u)
    pub(super) curvature: Vec<f64>,
}

impl Rows<'_> {
    /// Sum over the rows with a cap.
    fn sum<const K: usize>(&self, term: impl Fn(usize) -> [f64; K] + Sync) -> [f64; K] {
        let n = self.signs.len();
        let parts: Vec<[f64; K]> = (0..n.div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let mut sums = [0.0; K];
                for row in chunk * CHUNK..((chunk + 1) * CHUNK).min(n) {
                    if self.caps[row] > 0.0 {
                        let terms = term(row);
                        (0..K).for_each(|k| sums[k] += terms[k]);
                    }
                }
                sums
            })
            .collect();
        let mut total = [0.0; K];
        parts.iter().for_each(|part| (0..K).for_each(|k| total[k] += part[k]));
        total
    }

    /// sum c l(y (f + b))
    pub(super) fn loss(&self, f: &[f64], b: f64) -> f64 {
        self.sum(|row| [self.caps[row] * self.base.value(self.signs[row] * (f[row] + b))])[0]
    }

    /// The same at f + t df, b + t db.
    pub(super) fn loss_along(&self, f: &[f64], b: f64, df: &[f64], db: f64, t: f64) -> f64 {
        self.sum(|row| {
            let decision = f[row] + b + t * (df[row] + db);
            [self.caps[row] * self.base.value(self.signs[row] * decision)]
        })[0]
    }

    pub(super) fn local(&self, f: &[f64], b: f64) -> Local {
        let both = |row: usize| {
            let (cap, sign) = (self.caps[row], self.signs[row]);
            if cap == 0.0 {
                return (0.0, 0.0);
            }
            let margin = sign * (f[row] + b);
            (-cap * sign * self.base.slope(margin), cap * self.base.curvature(margin))
        };
        let (target, curvature) = (0..f.len()).into_par_iter().with_min_len(CHUNK).map(both).unzip();
        Local { target, curvature }
    }

    /// sum c l*(-y beta / c), infinite outside the domain.
    pub(super) fn conjugate(&self, beta: &[f64]) -> f64 {
        self.sum(|row| [self.caps[row] * self.base.conjugate(self.signs[row] * beta[row] / self.caps[row])])[0]
    }

    /// With a free intercept and rows of one class only the loss has no minimiser: it falls to 0 as b goes to infinity.
    /// Then the b where it has underflowed to 0, beside f = 0; `None` if both classes are there.
    pub(super) fn one_sided_intercept(&self) -> Option<f64> {
        let [positive, negative] = self.sum(|row| if self.signs[row] > 0.0 { [1.0, 0.0] } else { [0.0, 1.0] });
        match (positive > 0.0, negative > 0.0) {
            (true, true) => None,
            (true, false) => Some(BEYOND_LOSS),
            (false, true) => Some(-BEYOND_LOSS),
            (false, false) => Some(0.0),
        }
    }

    /// The minimiser in b: the root of sum c y l'(y (f + b)), which rises with b. Newton's method inside a bracket.
    pub(super) fn best_intercept(&self, f: &[f64], start: f64) -> f64 {
        let slope = |b: f64| {
            self.sum(|row| {
                let margin = self.signs[row] * (f[row] + b);
                let cap = self.caps[row];
                let slope = cap * self.base.slope(margin);
                [self.signs[row] * slope, cap * self.base.curvature(margin), slope.abs()]
            })
        };
        let Some((mut low, mut high)) = bracket(start, |b| slope(b)[0]) else { return start };
        let mut b = start.clamp(low, high);
        let mut width = high - low;
        for iteration in 0..200 {
            let [first, second, size] = slope(b);
            if first.abs() <= 64.0 * f64::EPSILON * size {
                return b;
            }
            if first > 0.0 {
                high = b;
            } else if first < 0.0 {
                low = b;
            } else {
                return start;
            }
            let newton = b - first / second;
            // on an exponential tail Newton's steps have length 1 however far away the root is
            let creeping = iteration % 3 == 2 && high - low > 0.5 * width;
            let next = if newton > low && newton < high && !creeping { newton } else { 0.5 * (low + high) };
            if iteration % 3 == 2 {
                width = high - low;
            }
            if next == b || (next - b).abs() <= f64::EPSILON * b.abs() || high <= low {
                return next;
            }
            b = next;
        }
        b
    }

    /// Brings beta into the dual's domain: 0 where there is no cap, y beta / c clipped, and if the intercept is free the
    /// heavier sign scaled down until the sum is 0.
    pub(super) fn make_feasible(&self, beta: &mut [f64], intercept: bool) {
        for (row, beta) in beta.iter_mut().enumerate() {
            let (cap, sign) = (self.caps[row], self.signs[row]);
            if cap == 0.0 || beta.is_nan() || sign * *beta <= 0.0 {
                *beta = 0.0;
            } else if !self.base.conjugate(sign * *beta / cap).is_finite() {
                *beta = sign * cap;
            }
        }
        if !intercept {
            return;
        }
        let positive: f64 = beta.iter().filter(|beta| **beta > 0.0).sum();
        let negative: f64 = -beta.iter().filter(|beta| **beta < 0.0).sum::<f64>();
        let share = positive.min(negative) / positive.max(negative).max(f64::MIN_POSITIVE);
        let heavier = positive > negative;
        for beta in beta.iter_mut().filter(|beta| (**beta > 0.0) == heavier) {
            *beta *= share;
        }
    }
}

/// An interval around the sign change of a rising function, `None` if there is none to be found.
fn bracket(start: f64, slope: impl Fn(f64) -> f64) -> Option<(f64, f64)> {
    let first = slope(start);
    if first == 0.0 {
        return Some((start, start));
    }
    let side = if first > 0.0 { -1.0 } else { 1.0 };
    let (mut near, mut step) = (start, 1e-3 * start.abs().max(1.0));
    for _ in 0..64 {
        let far = near + side * step;
        let value = slope(far);
        if value.is_nan() || first.is_nan() {
            return None;
        }
        if value * side >= 0.0 {
            return Some((near.min(far), near.max(far)));
        }
        near = far;
        step *= 4.0;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Loss;

    #[test]
    fn the_best_intercept_has_zero_slope() {
        let signs = [1.0, -1.0, 1.0, -1.0, -1.0];
        let f = [30.0, -2.0, -1.5, 40.0, 0.3];
        for base in [Loss::logistic().base(), Loss::exponential().base()] {
            let rows = Rows { base, signs: &signs, caps: vec![1.0, 1e-3, 0.0, 2.0, 1e4] };
            for start in [-100.0, 0.0, 3.0, 500.0] {
                let b = rows.best_intercept(&f, start);
                for other in [b - 1e-4, b + 1e-4] {
                    assert!(rows.loss(&f, b) < rows.loss(&f, other), "{} from {start}: {b}", base.name());
                }
            }
        }
    }

    #[test]
    fn feasible_points_are_balanced_and_in_the_domain() {
        let signs = [1.0, -1.0, 1.0, -1.0];
        let rows = Rows { base: Loss::logistic().base(), signs: &signs, caps: vec![1.0, 2.0, 0.0, 1.0] };
        let mut beta = [1.5, -0.7, 3.0, 0.2];
        rows.make_feasible(&mut beta, true);
        assert!(beta.iter().sum::<f64>().abs() < 1e-16);
        assert!(rows.conjugate(&beta).is_finite() && beta[2] == 0.0 && beta[3] == 0.0 && beta[0] > 0.0);
    }
}
