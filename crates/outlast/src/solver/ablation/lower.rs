//! The certified lower bound around alpha and sigma, and the direction in which the relaxation is not yet optimal.
//!
//! alpha, sigma of a point give H = r I - G with G = sum_i bend_i f_i f_i'. Only at the optimum H >= 0, and there it is singular as soon as
//! V is not 0. With g alpha in place of alpha on the rows that are not kept, H = r I - g^2 G; constants and slopes are
//! polynomials in g as well, so that the best g is found from one Gram matrix, and the bound itself is then taken by
//! [`lower_bound`] in safe arithmetic. W is optimal iff it is stationary and H >= 0: an eigenvector of G above r is a way further down.

use super::smoothed::Rows;
use crate::linalg::{cholesky, cholesky_solve, dot, weighted_gram};
use crate::problem::ablation::{Minorant, lower_bound};
use faer::{Mat, Side};
use rayon::prelude::*;

/// How far below the ridge the largest eigenvalue of G is kept, relative: first, and by this factor more or less.
const FIRST_MARGIN: f64 = 1e-7;
const FALL: f64 = 10.0;
const LEAST_MARGIN: f64 = 1e-11;
const MOST_MARGIN: f64 = 0.5;
const ROWS_PER_PIECE: usize = 512;
/// Order up to which all eigenvectors are computed.
const SMALL: usize = 16;

/// alpha and sigma of every row.
#[derive(Debug, Clone, Default)]
pub(super) struct Multipliers {
    pub(super) alpha: Vec<f64>,
    pub(super) sigma: Vec<f64>,
}

/// What the rows sum to as a polynomial in g.
pub(super) struct Curve {
    order: usize,
    ridge: f64,
    /// G, both triangles.
    gram: Vec<f64>,
    /// Slopes: g^0, g^1, g^2.
    linear: [Vec<f64>; 3],
    constant: [f64; 3],
}

#[derive(Default)]
struct Part {
    linear: [Vec<f64>; 3],
    constant: [f64; 3],
    /// Rows with a bend, and that.
    bent: Vec<(usize, f64)>,
}

impl Curve {
    pub(super) fn new(rows: &Rows, level: f64, multipliers: &Multipliers) -> Curve {
        let (n, m) = (rows.len(), rows.features.columns);
        let part = |number: usize| {
            part(rows, level, multipliers, number * ROWS_PER_PIECE..((number + 1) * ROWS_PER_PIECE).min(n))
        };
        let pieces = n.div_ceil(ROWS_PER_PIECE);
        let add = |mut total: Part, part: Part| {
            for k in 0..3 {
                total.linear[k].iter_mut().zip(&part.linear[k]).for_each(|(a, b)| *a += b);
                total.constant[k] += part.constant[k];
            }
            total.bent.extend(part.bent);
            total
        };
        let total = if pieces > 1 && rows.is_large(1) {
            let parts: Vec<Part> = (0..pieces).into_par_iter().map(part).collect();
            parts.into_iter().reduce(add)
        } else {
            (0..pieces).map(part).reduce(add)
        };
        let total = total.unwrap_or_else(|| self::part(rows, level, multipliers, 0..0));
        let bent: Vec<(&[f64], f64)> = total.bent.iter().map(|&(row, bend)| (rows.features.row(row), bend)).collect();
        let mut gram = weighted_gram(&bent, m);
        for j in 0..m {
            for k in 0..j {
                gram[k * m + j] = gram[j * m + k];
            }
        }
        Curve { order: m, ridge: rows.ridge, gram, linear: total.linear, constant: total.constant }
    }

    /// The largest eigenvalues of G relative to the ridge, falling, and their eigenvectors one after the other.
    pub(super) fn tops(&self, most: usize) -> (Vec<f64>, Vec<f64>) {
        let (mut values, vectors) = largest_eigenpairs(&self.gram, self.order, most);
        values.iter_mut().for_each(|value| *value /= self.ridge);
        (values, vectors)
    }

    /// The bound at g, up to rounding; `None` where H is not positive definite. `scratch` holds a matrix.
    fn value(&self, g: f64, scratch: &mut Vec<f64>) -> Option<f64> {
        let m = self.order;
        scratch.clear();
        scratch.extend(self.gram.iter().map(|value| -g * g * value));
        (0..m).for_each(|j| scratch[j * m + j] += self.ridge);
        if !cholesky(scratch, m) {
            return None;
        }
        let slope: Vec<f64> =
            (0..m).map(|j| self.linear[0][j] + g * (self.linear[1][j] + g * self.linear[2][j])).collect();
        let mut x = slope.clone();
        cholesky_solve(scratch, m, &mut x);
        Some(self.constant[0] + g * (self.constant[1] + g * self.constant[2]) - 0.5 * dot(&slope, &x))
    }

    /// The best g found, given the largest eigenvalue, or the first that is good enough.
    fn best_scale(&self, top: f64, enough: f64) -> f64 {
        let mut scratch = Vec::new();
        let mut best = (f64::NEG_INFINITY, 0.0);
        for factor in [FALL, 1.0 / FALL] {
            let mut margin = if factor > 1.0 { FIRST_MARGIN } else { FIRST_MARGIN * factor };
            while (LEAST_MARGIN..MOST_MARGIN).contains(&margin) {
                let g = if top > 0.0 { ((1.0 - margin) / top).sqrt().min(1.0) } else { 1.0 };
                margin *= factor;
                let found = self.value(g, &mut scratch);
                if let Some(value) = found.filter(|value| *value > best.0) {
                    best = (value, g);
                } else if best.0 > f64::NEG_INFINITY {
                    break;
                }
                if best.0 >= enough || g == 1.0 {
                    return best.1;
                }
            }
        }
        best.1
    }
}

fn part(rows: &Rows, level: f64, multipliers: &Multipliers, range: std::ops::Range<usize>) -> Part {
    let m = rows.features.columns;
    let mut total = Part { linear: [vec![0.0; m], vec![0.0; m], vec![0.0; m]], ..Part::default() };
    for row in range {
        let (alpha, sigma, cap) = (multipliers.alpha[row], multipliers.sigma[row], rows.caps[row]);
        let f = rows.features.row(row);
        let offset = rows.offset(row);
        let level = rows.level(row, level);
        if level == f64::INFINITY {
            total.constant[0] += cap * alpha * (1.0 - offset);
            total.linear[0].iter_mut().zip(f).for_each(|(sum, f)| *sum += cap * alpha * f);
            continue;
        }
        if alpha == 0.0 || !(sigma > 0.0) {
            if sigma > 0.0 {
                total.constant[0] += cap * Minorant::new(1.0, level, 0.0, sigma, 0.0).constant;
            }
            continue;
        }
        // t - (t + sigma - g alpha (1 - o))^2 / (4 sigma)
        let (base, pull) = (level + sigma, alpha * (1.0 - offset));
        let quarter = 0.25 * cap / sigma;
        total.constant[0] += cap * level - quarter * base * base;
        total.constant[1] += 2.0 * quarter * base * pull;
        total.constant[2] -= quarter * pull * pull;
        let (first, second) = (2.0 * quarter * base * alpha, -2.0 * quarter * pull * alpha);
        let bend = 2.0 * quarter * alpha * alpha;
        for j in 0..m {
            total.linear[1][j] += first * f[j];
            total.linear[2][j] += second * f[j];
        }
        total.bent.push((row, bend));
    }
    total
}

/// The certified bound around the multipliers, scaled at best or such that the bound is `enough`: bound and scale.
pub(super) fn certified(
    rows: &Rows,
    error: f64,
    level: f64,
    multipliers: &Multipliers,
    curve: &Curve,
    top: f64,
    enough: f64,
) -> (f64, f64) {
    let mut scale = curve.best_scale(top, enough);
    // the safe arithmetic may need a little more room than the curve
    for _ in 0..12 {
        let bound = lower_bound(rows.features, rows.len(), rows.ridge, error, |row| {
            let level = rows.level(row, level);
            let factor = if level == f64::INFINITY { 1.0 } else { scale };
            let alpha = (factor * multipliers.alpha[row]).clamp(0.0, 1.0);
            Minorant::new(rows.caps[row], level, alpha, multipliers.sigma[row], rows.offset(row))
        });
        if bound > f64::NEG_INFINITY || scale == 0.0 {
            return (bound, scale);
        }
        let margin = (1.0 - scale * scale * top).max(LEAST_MARGIN);
        scale = if margin < 0.3 && top > 0.0 { ((1.0 - 10.0 * margin) / top).max(0.0).sqrt().min(scale) } else { 0.0 };
    }
    (f64::NEG_INFINITY, scale)
}

/// The largest eigenvalues, falling, and their eigenvectors one after the other: Jacobi rotations for a small matrix, Lanczos with full
/// reorthogonalisation else, where the later ones are approximate.
pub(super) fn largest_eigenpairs(matrix: &[f64], order: usize, most: usize) -> (Vec<f64>, Vec<f64>) {
    if order > SMALL {
        return lanczos(matrix, order, most);
    }
    let (values, vectors) = jacobi(matrix, order);
    let mut at: Vec<usize> = (0..order).collect();
    at.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    at.truncate(most);
    let chosen = at.iter().flat_map(|&at| (0..order).map(move |j| j * order + at)).map(|k| vectors[k]).collect();
    (at.iter().map(|&at| values[at]).collect(), chosen)
}

/// Eigenvalues and eigenvectors (columns, row-major) of a small symmetric matrix.
pub(super) fn jacobi(matrix: &[f64], order: usize) -> (Vec<f64>, Vec<f64>) {
    let mut a = matrix.to_vec();
    let mut v = vec![0.0; order * order];
    (0..order).for_each(|j| v[j * order + j] = 1.0);
    for _ in 0..40 {
        let off: f64 = (0..order).map(|j| (0..j).map(|k| a[j * order + k].powi(2)).sum::<f64>()).sum();
        let all: f64 = a.iter().map(|value| value * value).sum();
        if !(off > 1e-32 * all) {
            break;
        }
        for p in 0..order {
            for q in p + 1..order {
                let apq = a[p * order + q];
                if apq == 0.0 {
                    continue;
                }
                let theta = (a[q * order + q] - a[p * order + p]) / (2.0 * apq);
                let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let t = if theta == 0.0 { 1.0 } else { t };
                let c = 1.0 / t.hypot(1.0);
                let s = t * c;
                for k in 0..order {
                    let (kp, kq) = (a[k * order + p], a[k * order + q]);
                    (a[k * order + p], a[k * order + q]) = (c * kp - s * kq, s * kp + c * kq);
                }
                for k in 0..order {
                    let (pk, qk) = (a[p * order + k], a[q * order + k]);
                    (a[p * order + k], a[q * order + k]) = (c * pk - s * qk, s * pk + c * qk);
                    let (kp, kq) = (v[k * order + p], v[k * order + q]);
                    (v[k * order + p], v[k * order + q]) = (c * kp - s * kq, s * kp + c * kq);
                }
            }
        }
    }
    ((0..order).map(|j| a[j * order + j]).collect(), v)
}

fn lanczos(matrix: &[f64], order: usize, wanted: usize) -> (Vec<f64>, Vec<f64>) {
    const MOST: usize = 120;
    // the heaviest row is near the eigenvector
    let heaviest = (0..order).max_by(|&a, &b| matrix[a * order + a].total_cmp(&matrix[b * order + b])).unwrap_or(0);
    let start = (0..order)
        .map(|j| matrix[heaviest * order + j] + 1e-3 * matrix[heaviest * order + heaviest] * ((j % 7) as f64 - 3.0))
        .collect();
    let times = |x: &[f64]| matrix.chunks_exact(order).map(|row| dot(row, x)).collect();
    lanczos_of(&times, start, order, wanted, MOST)
}

/// The same of a matrix given by its products, in at most so many steps.
pub(super) fn lanczos_of(
    times: &dyn Fn(&[f64]) -> Vec<f64>,
    start: Vec<f64>,
    order: usize,
    wanted: usize,
    most: usize,
) -> (Vec<f64>, Vec<f64>) {
    let most = order.min(most);
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(most);
    let (mut diagonal, mut beside): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut next = start;
    let mut found = (vec![0.0], vec![0.0; order]);
    for step in 0..most {
        let length = dot(&next, &next).sqrt();
        if !(length > 0.0 && length.is_finite()) {
            break;
        }
        if step > 0 {
            beside.push(length);
        }
        basis.push(next.iter().map(|value| value / length).collect());
        let last = &basis[step];
        let mut image = times(last);
        diagonal.push(dot(last, &image));
        for _ in 0..2 {
            for known in &basis {
                let part = dot(known, &image);
                image.iter_mut().zip(known).for_each(|(image, known)| *image -= part * known);
            }
        }
        let rest = dot(&image, &image).sqrt();
        if step + 1 == most || step % 8 == 7 || rest <= 1e-14 * diagonal[0].abs() {
            let size = diagonal.len();
            let tridiagonal = Mat::from_fn(size, size, |i, j| match i.abs_diff(j) {
                0 => diagonal[i],
                1 => beside[i.min(j)],
                _ => 0.0,
            });
            if let Ok(eigen) = tridiagonal.self_adjoint_eigen(Side::Lower) {
                let (values, weights) = (eigen.S(), eigen.U());
                let count = wanted.min(size);
                let mut vectors = vec![0.0; count * order];
                for (at, vector) in vectors.chunks_exact_mut(order).enumerate() {
                    for (k, known) in basis.iter().enumerate() {
                        let weight = weights[(k, size - 1 - at)];
                        vector.iter_mut().zip(known).for_each(|(out, known)| *out += weight * known);
                    }
                }
                let top = values[size - 1];
                found = ((0..count).map(|at| values[size - 1 - at]).collect(), vectors);
                if rest * weights[(size - 1, size - 1)].abs() <= 1e-10 * top.abs() {
                    break;
                }
            }
            if rest <= 1e-14 * diagonal[0].abs() {
                break;
            }
        }
        next = image;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_find_the_largest_eigenpair() {
        for order in [1, 2, 3, 9, 16, 17, 60, 150] {
            // diag + rank one, no closed form needed: the residual and a Rayleigh quotient no other vector exceeds
            let entry = |i: usize, j: usize| {
                let u = |k: usize| ((k * 37 + 11) % 23) as f64 / 23.0;
                u(i) * u(j) + if i == j { ((i * 13) % 5) as f64 * 0.1 } else { 0.0 }
            };
            let matrix: Vec<f64> = (0..order * order).map(|k| entry(k / order, k % order)).collect();
            let (values, vectors) = largest_eigenpairs(&matrix, order, 3);
            let (value, vector) = (values[0], &vectors[..order]);
            assert!(values.windows(2).all(|pair| pair[0] >= pair[1]) && vectors.len() == order * values.len());
            let residual: f64 = (0..order)
                .map(|i| (dot(&matrix[i * order..(i + 1) * order], vector) - value * vector[i]).powi(2))
                .sum();
            assert!(residual.sqrt() < 1e-8 * value, "{order}: {residual}");
            let mut shifted: Vec<f64> = matrix.iter().map(|value| -value).collect();
            (0..order).for_each(|j| shifted[j * order + j] += value * (1.0 + 1e-9));
            assert!(cholesky(&mut shifted, order), "{order}: not the largest");
        }
    }
}
