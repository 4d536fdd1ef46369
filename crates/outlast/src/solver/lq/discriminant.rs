//! Linear discriminant analysis, the start of the paper's algorithm.
//!
//! Columns are standardised to mean 0 and variance 1 over all rows. With the class means m_j and the pooled covariance S of the
//! standardised columns, w_j = S^-1 m_j and b_j = -1/2 m_j'w_j + log(share of class j), less their means over the classes; for one
//! function w = w_2 - w_1, b = b_2 - b_1. Where there are no fewer columns than rows S is replaced by S + 0.01 I. Rows without weight do
//! not count.

use crate::linalg::{Factor, dot};
use crate::problem::LqProblem;

const RIDGE: f64 = 0.01;

/// Coefficients (functions x columns) and intercepts.
pub(super) fn start(problem: &LqProblem) -> Option<(Vec<f64>, Vec<f64>)> {
    let (d, k) = (problem.x.cols(), problem.classes);
    let rows: Vec<usize> = (0..problem.rows()).filter(|&row| problem.caps[row] > 0.0).collect();
    let n = rows.len();
    let mut z = vec![0.0; n * d];
    z.chunks_exact_mut(d.max(1)).zip(&rows).for_each(|(out, &row)| problem.x.copy_row(row, out));
    let (centers, scales) = standardize(&mut z, n, d);
    let codes: Vec<usize> = rows.iter().map(|&row| problem.codes[row] as usize).collect();
    let mut counts = vec![0.0f64; k];
    let mut means = vec![0.0; k * d];
    for (z, &code) in z.chunks_exact(d.max(1)).zip(&codes) {
        counts[code] += 1.0;
        means[code * d..(code + 1) * d].iter_mut().zip(z).for_each(|(mean, z)| *mean += z);
    }
    for (mean, count) in means.chunks_exact_mut(d.max(1)).zip(&counts) {
        mean.iter_mut().for_each(|mean| *mean /= count.max(1.0));
    }
    for (z, &code) in z.chunks_exact_mut(d.max(1)).zip(&codes) {
        z.iter_mut().zip(&means[code * d..(code + 1) * d]).for_each(|(z, mean)| *z -= mean);
    }
    let pooled = Pooled::new(z, n, d, (n as f64 - k as f64).max(1.0))?;
    let mut weights = vec![0.0; k * d];
    let mut intercepts = vec![0.0; k];
    for j in 0..k {
        let mean = &means[j * d..(j + 1) * d];
        let w = pooled.solve(mean);
        // back to the columns as they came
        intercepts[j] = -0.5 * dot(mean, &w) + (counts[j].max(0.5) / n as f64).ln();
        for (column, w) in w.iter().enumerate() {
            weights[j * d + column] = w / scales[column];
            intercepts[j] -= w / scales[column] * centers[column];
        }
    }
    if !problem.intercept {
        intercepts.fill(0.0);
    }
    if weights.iter().chain(&intercepts).any(|value| !value.is_finite()) {
        return None;
    }
    if problem.functions == 1 {
        let difference = (0..d).map(|column| weights[d + column] - weights[column]).collect();
        return Some((difference, vec![intercepts[1] - intercepts[0]]));
    }
    center(&mut intercepts, 1, k);
    center(&mut weights, d, k);
    Some((weights, intercepts))
}

/// Takes the mean over the classes off.
fn center(values: &mut [f64], stride: usize, classes: usize) {
    for at in 0..stride {
        let mean = (0..classes).map(|j| values[j * stride + at]).sum::<f64>() / classes as f64;
        (0..classes).for_each(|j| values[j * stride + at] -= mean);
    }
}

/// Columns to mean 0 and variance 1; constant ones become 0, whatever rounding has left of them, and keep the scale 1.
fn standardize(z: &mut [f64], n: usize, d: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut centers, mut scales) = (vec![0.0; d], vec![0.0; d]);
    for row in z.chunks_exact(d.max(1)) {
        centers.iter_mut().zip(row).for_each(|(center, z)| *center += z / n as f64);
    }
    for row in z.chunks_exact(d.max(1)) {
        for ((scale, center), z) in scales.iter_mut().zip(&centers).zip(row) {
            *scale += (z - center) * (z - center) / n as f64;
        }
    }
    for (scale, center) in scales.iter_mut().zip(&centers) {
        *scale = scale.sqrt();
        if !(*scale > 1e-14 * center.abs()) || !scale.is_finite() {
            *scale = f64::INFINITY;
        }
    }
    for row in z.chunks_exact_mut(d.max(1)) {
        row.iter_mut().zip(centers.iter().zip(&scales)).for_each(|(z, (center, scale))| *z = (*z - center) / scale);
    }
    scales.iter_mut().filter(|scale| scale.is_infinite()).for_each(|scale| *scale = 1.0);
    (centers, scales)
}

/// S^-1, or (S + ridge I)^-1 by way of the rows.
struct Pooled {
    z: Vec<f64>,
    cols: usize,
    freedom: f64,
    factor: Factor,
    wide: bool,
}

impl Pooled {
    fn new(z: Vec<f64>, n: usize, d: usize, freedom: f64) -> Option<Pooled> {
        let wide = d >= n;
        let size = if wide { n } else { d };
        let mut matrix = vec![0.0; size * size];
        let view = faer::MatRef::from_row_major_slice(&z, n, d);
        let product = if wide { view * view.transpose() } else { view.transpose() * view };
        for row in 0..size {
            for column in 0..=row {
                matrix[row * size + column] = product[(row, column)];
            }
            if wide {
                matrix[row * size + row] += RIDGE * freedom;
            }
        }
        let factor = Factor::nearest(&matrix, size, size)?;
        Some(Pooled { z, cols: d, freedom, factor, wide })
    }

    fn solve(&self, right: &[f64]) -> Vec<f64> {
        if !self.wide {
            return self.factor.solve(right).iter().map(|value| value * self.freedom).collect();
        }
        let rows = || self.z.chunks_exact(self.cols.max(1));
        let images: Vec<f64> = rows().map(|row| dot(row, right)).collect();
        let mut out = right.to_vec();
        for (row, by) in rows().zip(self.factor.solve(&images)) {
            out.iter_mut().zip(row).for_each(|(out, z)| *out -= by * z);
        }
        out.iter_mut().for_each(|value| *value /= RIDGE);
        out
    }
}
