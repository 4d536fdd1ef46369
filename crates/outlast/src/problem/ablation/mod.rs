//! The relaxation of the hinge truncated at 0, row by row, and lower bounds that anyone can check.
//!
//! ```text
//! P(w) = r/2 |w|^2 + sum_i c_i min(1, [1 - u_i]_+),       u_i = f_i'w + o_i
//! ```
//!
//! with f_i = y_i x_i (or a row of diag(y) L, K = LL'), an offset o_i = y_i b for a given b, and a ridge r that is 1 in the
//! caller's units. Lifting w to (w, R), R >= ww', gives a convex problem (Xu, Crammer and Schuurmans 2006, REH, with
//! diag(M) = eta). In a factor W = [w, V] of R, with p_i = W'f_i, a_i = f_i'w + o_i, b_i = |V'f_i|, it reads
//!
//! ```text
//! min_W r/2 |W|^2 + sum_i c_i l_t(a_i, b_i),       t = 1
//! ```
//!
//! and ROD, min r/2 |w|^2 + sum_i c_i eta_i [1 - u_i]_+ with sum c_i eta_i >= rho sum c_i, is the maximum over levels t >= 0
//! of that minus t (1 - rho) sum c. Row by row, with s = 1 - a, c = t - s, q = sqrt(c^2 + b^2), D = s^2 + b^2:
//!
//! | where | l_t | eta | alpha | sigma |
//! |---|---|---|---|---|
//! | q <= t | t - (c + q)/2 | (1 + c/q)/2 | 1 | q |
//! | q > t, a < 1 | t s^2/D | b^2/D | 2 t s/D | t |
//! | q > t, a >= 1 | 0 | 1 | 0 | t |
//!
//! dl/da = -alpha eta, dl/dp_perp = -alpha^2/(2 sigma) p_perp. The kink at p = (1, 0) is smoothed by b^2 -> b^2 + e^2, which
//! near it is a parabola of width e^2/2 and stays convex in the lift. A row that is *kept* (eta = 1 given) has t = infinity:
//! the hinge, smoothed by the same width.
//!
//! # The certificate
//!
//! For 0 <= alpha <= 1, sigma > 0 and every u
//!
//! ```text
//! min(t, [1 - u]_+) >= t - (t - alpha (1 - u) + sigma)^2 / (4 sigma)
//! ```
//!
//! since with h = [1 - u]_+ < t (else the left is t) alpha (1 - u) <= h, so that t - alpha (1 - u) + sigma >= (t - h) + sigma > 0,
//! whose square is >= 4 sigma (t - h). A [`Minorant`] is the right side as a function of p = f'w. The sum of P's minorants is
//! quadratic in w, and its minimum, finite where H = r I - sum_i bend_i f_i f_i' is positive definite, is a lower bound of P:
//! [`lower_bound`]. The rows enter the bound alone, no matter where alpha and sigma come from.

mod certificate;

pub use certificate::{Features, lower_bound};

/// What the relaxed loss of a row is at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelaxedLoss {
    /// l_t(a, b)
    pub value: f64,
    /// How much the row counts as an inlier, 0 to 1.
    pub eta: f64,
    /// The multiplier, 0 to 1.
    pub alpha: f64,
    /// The row's share of the lift, > 0; infinite for a kept row.
    pub sigma: f64,
    /// alpha^2 / (2 sigma): minus the slope along p_perp.
    pub bend: f64,
}

/// The second derivatives: aa; av v; ii I + vv vv' with v = p_perp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curvature {
    /// d2/da2
    pub aa: f64,
    /// d2/da dv = av v
    pub av: f64,
    /// The multiple of the identity in d2/dv2.
    pub ii: f64,
    /// The multiple of vv' in d2/dv2.
    pub vv: f64,
}

/// The relaxed loss at level t (infinite: a kept row), margin `a`, `squared` = b^2, smoothing e^2.
#[inline(always)]
pub fn relaxed_loss(level: f64, a: f64, squared: f64, smoothing: f64) -> RelaxedLoss {
    let s = 1.0 - a;
    if level == f64::INFINITY {
        return kept_loss(s, 0.5 * smoothing);
    }
    let b = squared + smoothing;
    let c = level - s;
    let q = (c * c + b).sqrt();
    if q <= level {
        // c + q and 1 + c/q without cancellation where c < 0
        let sum = if c >= 0.0 { c + q } else { b / (q - c) };
        let q = q.max(f64::MIN_POSITIVE);
        return RelaxedLoss { value: level - 0.5 * sum, eta: 0.5 * sum / q, alpha: 1.0, sigma: q, bend: 0.5 / q };
    }
    if s <= 0.0 {
        return RelaxedLoss { value: 0.0, eta: 1.0, alpha: 0.0, sigma: level, bend: 0.0 };
    }
    let d = s * s + b;
    let share = s * s / d;
    let alpha = 2.0 * level * s / d;
    RelaxedLoss { value: level * share, eta: b / d, alpha, sigma: level, bend: 2.0 * level * share / d }
}

/// [s]_+ with a parabola of the given width at its kink.
#[inline(always)]
fn kept_loss(s: f64, width: f64) -> RelaxedLoss {
    let (value, alpha) = match s {
        _ if s <= 0.0 => (0.0, 0.0),
        _ if s >= width => (s - 0.5 * width, 1.0),
        _ => (0.5 * s * (s / width), s / width),
    };
    RelaxedLoss { value, eta: 1.0, alpha, sigma: f64::INFINITY, bend: 0.0 }
}

/// The second derivatives of [`relaxed_loss`]; smoothing > 0.
#[inline(always)]
pub fn relaxed_curvature(level: f64, a: f64, squared: f64, smoothing: f64) -> Curvature {
    let s = 1.0 - a;
    if level == f64::INFINITY {
        let inside = s > 0.0 && s < 0.5 * smoothing;
        return Curvature { aa: if inside { 2.0 / smoothing } else { 0.0 }, av: 0.0, ii: 0.0, vv: 0.0 };
    }
    let b = squared + smoothing;
    let c = level - s;
    let square = c * c + b;
    let q = square.sqrt();
    if q <= level {
        let (ii, vv) = (-0.5 / q, 0.5 / (square * q));
        return Curvature { aa: -b * vv, av: c * vv, ii, vv };
    }
    if s <= 0.0 {
        return Curvature { aa: 0.0, av: 0.0, ii: 0.0, vv: 0.0 };
    }
    let d = s * s + b;
    let cube = 2.0 * level / (d * d * d);
    Curvature {
        aa: cube * b * (b - 3.0 * s * s),
        av: -2.0 * cube * s * (s * s - b),
        ii: -cube * d * s * s,
        vv: 4.0 * cube * s * s,
    }
}

/// constant - slope p - bend p^2 / 2 <= cap min(t, [1 - (p + offset)]_+) for every p.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Minorant {
    /// Value at p = 0.
    pub constant: f64,
    /// Minus the slope at p = 0.
    pub slope: f64,
    /// Minus the curvature, >= 0.
    pub bend: f64,
    /// Sum of the magnitudes that `constant` was computed from.
    pub size: f64,
}

impl Minorant {
    /// The minorant of alpha in [0, 1] and sigma > 0 at level t, infinite for a kept row (whose sigma is not used).
    pub fn new(cap: f64, level: f64, alpha: f64, sigma: f64, offset: f64) -> Minorant {
        if level == f64::INFINITY {
            let constant = cap * alpha * (1.0 - offset);
            return Minorant { constant, slope: cap * alpha, bend: 0.0, size: cap * alpha * (1.0 + offset.abs()) };
        }
        if !(sigma > 0.0) {
            return Minorant::flat(0.0);
        }
        let pull = alpha * (1.0 - offset);
        let root = level - pull + sigma;
        let ratio = alpha / sigma;
        // t - root^2/(4 sigma) = (level alone) - ..., written so that alpha = 0, sigma = t gives 0 exactly
        let constant = level - 0.25 * root * (root / sigma);
        let magnitude = level + sigma + alpha * (1.0 + offset.abs());
        let size = level + 0.25 * magnitude * (magnitude / sigma);
        Minorant {
            constant: cap * constant,
            slope: 0.5 * cap * root * ratio,
            bend: 0.5 * cap * alpha * ratio,
            size: cap * size,
        }
    }

    /// A row known to cost that much, whatever w.
    pub fn flat(cost: f64) -> Minorant {
        Minorant { constant: cost, slope: 0.0, bend: 0.0, size: cost.abs() }
    }

    /// The same for a p known only up to its own direction of squared length `error`: the kernel's factor leaves out a part
    /// E <= error I of the kernel, as if each row had one coordinate of length sqrt(error) to itself. Minimising over
    /// that coordinate, at ridge r, gives again a minorant. `None` when the row could use it without bound.
    pub fn widened(self, error: f64, ridge: f64) -> Option<Minorant> {
        if error == 0.0 {
            return Some(self);
        }
        let rest = ridge - error * self.bend * (1.0 + 4.0 * f64::EPSILON);
        if !(rest > 0.5 * ridge) {
            return None;
        }
        let lost = 0.5 * error * self.slope * (self.slope / rest);
        let grown = ridge / rest;
        Some(Minorant {
            constant: self.constant - lost,
            slope: self.slope * grown,
            bend: self.bend * grown,
            size: self.size + lost,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> impl Iterator<Item = (f64, f64, f64)> {
        let levels = [0.3, 1.0, 2.5, f64::INFINITY];
        levels.into_iter().flat_map(|level| {
            (-60..=60).flat_map(move |k| (0..8).map(move |j| (level, 0.05 * k as f64 + 1e-3, 0.31 * j as f64)))
        })
    }

    #[test]
    fn without_lift_it_is_the_truncated_hinge() {
        for (level, a, _) in grid() {
            let loss = relaxed_loss(level, a, 0.0, 0.0);
            assert!((loss.value - (1.0 - a).max(0.0).min(level)).abs() < 1e-14, "{level} {a} {loss:?}");
        }
    }

    /// l_t(a, b) = min over eta and u on its sphere of eta-hinge: here by brute force over the sphere |u|^2 = u.v0 = eta, in
    /// the plane of p: u = eta v0 + sqrt(eta - eta^2) e, so that p.u = eta a + sqrt(eta - eta^2) b.
    #[test]
    fn it_is_the_smallest_value_over_the_sphere() {
        for (level, a, b) in grid().filter(|(level, ..)| level.is_finite()) {
            let brute = (0..=20_000).fold(f64::INFINITY, |least, k| {
                let eta = f64::from(k) / 20_000.0;
                let reach = (eta - eta * eta).max(0.0).sqrt() * b;
                least.min((eta - eta * a - reach).max(0.0) + level * (1.0 - eta))
            });
            let loss = relaxed_loss(level, a, b * b, 0.0).value;
            assert!(loss <= brute + 1e-12 && brute - loss < 2e-3, "{level} {a} {b}: {loss} {brute}");
        }
    }

    #[test]
    fn slopes_and_curvatures_are_derivatives() {
        const STEP: f64 = 1e-6;
        let smoothing = 0.01;
        let gradient = |level: f64, a: f64, v: [f64; 2]| {
            let loss = relaxed_loss(level, a, v[0] * v[0] + v[1] * v[1], smoothing);
            [-loss.alpha * loss.eta, -loss.bend * v[0], -loss.bend * v[1]]
        };
        for (level, a, b) in grid() {
            let v = [0.8 * b, -0.6 * b];
            let value = |a: f64, v: [f64; 2]| relaxed_loss(level, a, v[0] * v[0] + v[1] * v[1], smoothing).value;
            let h = relaxed_curvature(level, a, b * b, smoothing);
            let point = [a, v[0], v[1]];
            for first in 0..3 {
                let (mut up, mut down) = (point, point);
                up[first] += STEP;
                down[first] -= STEP;
                let slope = (value(up[0], [up[1], up[2]]) - value(down[0], [down[1], down[2]])) / (2.0 * STEP);
                let exact = gradient(level, a, v)[first];
                assert!((slope - exact).abs() < 2e-4, "{level} {a} {b} d{first}: {slope} {exact}");
                let region = |p: [f64; 3]| {
                    let squared = p[1] * p[1] + p[2] * p[2];
                    let loss = relaxed_loss(level, p[0], squared, smoothing);
                    (loss.alpha == 1.0, loss.alpha == 0.0)
                };
                if region(up) != region(down) {
                    continue;
                }
                let (gu, gd) = (gradient(level, up[0], [up[1], up[2]]), gradient(level, down[0], [down[1], down[2]]));
                for second in 0..3 {
                    let found = (gu[second] - gd[second]) / (2.0 * STEP);
                    let exact = match (first, second) {
                        (0, 0) => h.aa,
                        (0, k) | (k, 0) => h.av * v[k - 1],
                        (j, k) => h.vv * v[j - 1] * v[k - 1] + if j == k { h.ii } else { 0.0 },
                    };
                    assert!(
                        (found - exact).abs() < 1e-4 * (1.0 + exact.abs()),
                        "{level} {a} {b} {first}{second}: {found} {exact}"
                    );
                }
            }
        }
    }

    #[test]
    fn minorants_lie_below_and_touch() {
        for (level, a, b) in grid() {
            let loss = relaxed_loss(level, a, b * b, 0.0);
            for offset in [0.0, -0.7] {
                let row = Minorant::new(2.0, level, loss.alpha, loss.sigma, offset);
                for k in -100..100 {
                    let p = 0.07 * f64::from(k);
                    let true_loss = 2.0 * (1.0 - p - offset).max(0.0).min(level);
                    let bound = row.constant - row.slope * p - 0.5 * row.bend * p * p;
                    assert!(
                        bound <= true_loss + 1e-9 * (1.0 + row.size),
                        "{level} {a} {b} at {p}: {bound} {true_loss}"
                    );
                }
                let p = a - offset;
                let here = row.constant - row.slope * p - 0.5 * row.bend * (p * p + b * b);
                assert!((here - 2.0 * loss.value).abs() < 1e-9 * (1.0 + row.size), "{level} {a} {b}: {here} {loss:?}");
            }
        }
    }

    /// Without diag(M) = eta, the point eta = e, M = ee' + cI is feasible. There the value is the dual
    /// max over 0 <= alpha <= 1 of e'alpha - alpha'(G o M)alpha / (2 beta), G o M = G + c diag(G) >= c diag(K): at most
    /// beta/(2c) sum 1/K_ii, which goes to 0 whatever the data.
    #[test]
    fn the_relaxation_without_its_diagonal_says_nothing() {
        let rows: [[f64; 2]; 4] = [[1.0, 2.0], [-0.5, 1.0], [3.0, -1.0], [-1.0, -1.5]];
        let gram = |i: usize, j: usize| rows[i][0] * rows[j][0] + rows[i][1] * rows[j][1];
        let beta = 2.0;
        let value = |c: f64| {
            let matrix = |i: usize, j: usize| gram(i, j) * if i == j { 1.0 + c } else { 1.0 };
            let mut alpha = [0.0f64; 4];
            for i in (0..4).cycle().take(4000) {
                let others: f64 = (0..4).filter(|&j| j != i).map(|j| matrix(i, j) * alpha[j]).sum();
                alpha[i] = ((beta - others) / matrix(i, i)).clamp(0.0, 1.0);
            }
            let quadratic: f64 = (0..16).map(|k| alpha[k / 4] * matrix(k / 4, k % 4) * alpha[k % 4]).sum();
            alpha.iter().sum::<f64>() - quadratic / (2.0 * beta)
        };
        let plain = value(0.0);
        for c in [1e2, 1e4, 1e6] {
            let formula: f64 = (0..4).map(|i| beta / (2.0 * c * gram(i, i))).sum();
            assert!(value(c) <= formula && value(c) > 0.0);
        }
        assert!(plain > 1.0 && value(1e6) < 1e-5 * plain, "{plain}");
    }
}
