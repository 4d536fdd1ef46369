//! Linear discriminant analysis, the start of the paper's algorithm.
//!
//! Columns are standardised to mean 0 and variance 1 over all rows. With the class means m_j and the pooled covariance S of the
//! standardised columns, w_j = S^-1 m_j and b_j = -1/2 m_j'w_j + log(share of class j), less their means over the classes; for one
//! function w = w_2 - w_1, b = b_2 - b_1. Where there are no fewer columns than rows S is replaced by S + 0.01 I. Rows without weight do
//! not count.

use super::normal::{columns_gram, rows_gram};
use crate::linalg::{Factor, dot};
use crate::problem::LqProblem;
use faer::MatRef;
use rayon::prelude::*;

const RIDGE: f64 = 0.01;

/// Coefficients (functions x columns) and intercepts.
pub(super) fn start(problem: &LqProblem) -> Option<(Vec<f64>, Vec<f64>)> {
    let (d, k) = (problem.x.cols(), problem.classes);
    let rows: Vec<usize> = (0..problem.rows()).filter(|&row| problem.caps[row] > 0.0).collect();
    let moments = Moments::new(problem, &rows);
    let freedom = (rows.len() as f64 - k as f64).max(1.0);
    let pooled = Pooled::new(Deviations::new(problem, &rows, &moments), freedom)?;
    let mut weights = vec![0.0; k * d];
    let mut intercepts = vec![0.0; k];
    for j in 0..k {
        let mean: Vec<f64> = (0..d).map(|column| moments.standardized(j, column)).collect();
        let w = pooled.solve(&mean);
        // back to the columns as they came
        intercepts[j] = -0.5 * dot(&mean, &w) + (moments.counts[j].max(0.5) / rows.len() as f64).ln();
        for (column, w) in w.iter().enumerate() {
            weights[j * d + column] = w / moments.units[column];
            intercepts[j] -= w / moments.units[column] * moments.centers[column];
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

/// Means and spreads of the columns, and the means in each class.
struct Moments {
    counts: Vec<f64>,
    centers: Vec<f64>,
    /// Standard deviations; 1 of constant columns, whatever rounding has left of them, whose deviations count as 0.
    units: Vec<f64>,
    constant: Vec<bool>,
    /// Classes x columns.
    means: Vec<f64>,
}

impl Moments {
    /// Two passes over what is stored.
    fn new(problem: &LqProblem, rows: &[usize]) -> Moments {
        let (x, d, k, n) = (problem.x, problem.x.cols(), problem.classes, rows.len() as f64);
        let (mut counts, mut means) = (vec![0.0f64; k], vec![0.0; k * d]);
        for &row in rows {
            let code = problem.codes[row] as usize;
            counts[code] += 1.0;
            x.add_scaled(row, 1.0, &mut means[code * d..(code + 1) * d]);
        }
        let mut centers = vec![0.0; d];
        for (mean, count) in means.chunks_exact_mut(d.max(1)).zip(&counts) {
            centers.iter_mut().zip(&*mean).for_each(|(center, sum)| *center += sum / n);
            mean.iter_mut().for_each(|mean| *mean /= count.max(1.0));
        }
        // entries that are not stored are 0
        let (mut squares, mut stored) = (vec![0.0; d], vec![0.0; d]);
        for &row in rows {
            x.for_each(row, &mut |column, value| {
                squares[column] += (value - centers[column]).powi(2) / n;
                stored[column] += 1.0;
            });
        }
        let spread = |column: usize| {
            let unstored = (n - stored[column]) * (centers[column] / n) * centers[column];
            (squares[column] + unstored).sqrt()
        };
        let mut units: Vec<f64> = (0..d).map(spread).collect();
        let varies = |(unit, center): (&f64, &f64)| *unit > 1e-14 * center.abs() && unit.is_finite();
        let constant: Vec<bool> = units.iter().zip(&centers).map(|pair| !varies(pair)).collect();
        units.iter_mut().zip(&constant).filter(|(_, constant)| **constant).for_each(|(unit, _)| *unit = 1.0);
        Moments { counts, centers, units, constant, means }
    }

    /// The mean of a class in a standardised column.
    fn standardized(&self, class: usize, column: usize) -> f64 {
        let mean = self.means[class * self.centers.len() + column];
        if self.constant[column] { 0.0 } else { (mean - self.centers[column]) / self.units[column] }
    }
}

/// Standardised rows less their class means, Z.
enum Deviations<'a> {
    /// A copy, row-major.
    Dense { z: Vec<f64>, cols: usize },
    /// Sparse X stays as it is: z_i = (x_i - m_i) / u.
    Sparse { problem: &'a LqProblem<'a>, rows: &'a [usize], means: &'a [f64], inverse: Vec<f64> },
}

impl<'a> Deviations<'a> {
    fn new(problem: &'a LqProblem<'a>, rows: &'a [usize], moments: &'a Moments) -> Self {
        let d = problem.x.cols();
        let inverse = moments.units.iter().zip(&moments.constant).map(|(unit, c)| if *c { 0.0 } else { 1.0 / unit });
        if problem.x.is_sparse() {
            return Deviations::Sparse { problem, rows, means: &moments.means, inverse: inverse.collect() };
        }
        let inverse: Vec<f64> = inverse.collect();
        let mut z = vec![0.0; rows.len() * d];
        z.par_chunks_exact_mut(d.max(1)).zip(rows).for_each(|(z, &row)| {
            problem.x.copy_row(row, z);
            let code = problem.codes[row] as usize;
            let of_column = moments.means[code * d..(code + 1) * d].iter().zip(&inverse);
            z.iter_mut().zip(of_column).for_each(|(z, (mean, inverse))| *z = (*z - mean) * inverse);
        });
        Deviations::Dense { z, cols: d }
    }

    /// Rows and columns.
    fn shape(&self) -> (usize, usize) {
        match self {
            Deviations::Dense { z, cols } => (z.len() / (*cols).max(1), *cols),
            Deviations::Sparse { rows, inverse, .. } => (rows.len(), inverse.len()),
        }
    }

    /// Z u
    fn images(&self, u: &[f64]) -> Vec<f64> {
        match self {
            Deviations::Dense { z, cols } => z.par_chunks_exact((*cols).max(1)).map(|z| dot(z, u)).collect(),
            Deviations::Sparse { problem, rows, means, inverse } => {
                let scaled: Vec<f64> = u.iter().zip(inverse).map(|(u, inverse)| u * inverse).collect();
                let of_class: Vec<f64> = means.chunks_exact(u.len().max(1)).map(|mean| dot(mean, &scaled)).collect();
                let of_row = |&row: &usize| problem.x.dot(row, &scaled) - of_class[problem.codes[row] as usize];
                rows.par_iter().map(of_row).collect()
            }
        }
    }

    /// Z'v
    fn combine(&self, v: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.shape().1];
        match self {
            Deviations::Dense { z, cols } => {
                for (z, by) in z.chunks_exact((*cols).max(1)).zip(v) {
                    out.iter_mut().zip(z).for_each(|(out, z)| *out += by * z);
                }
            }
            Deviations::Sparse { problem, rows, means, inverse } => {
                for (&row, by) in rows.iter().zip(v) {
                    problem.x.add_scaled(row, *by, &mut out);
                }
                for (class, mean) in means.chunks_exact(out.len().max(1)).enumerate() {
                    let of_class = rows.iter().zip(v).filter(|(row, _)| problem.codes[**row] as usize == class);
                    let total: f64 = of_class.map(|(_, by)| by).sum();
                    out.iter_mut().zip(mean).for_each(|(out, mean)| *out -= total * mean);
                }
                out.iter_mut().zip(inverse).for_each(|(out, inverse)| *out *= inverse);
            }
        }
        out
    }

    /// Z Z' for wide ones, else Z'Z: row-major, lower half.
    fn gram(&self, wide: bool) -> Vec<f64> {
        match self {
            Deviations::Dense { z, cols } => {
                let view = MatRef::from_row_major_slice(z, self.shape().0, *cols);
                let product = if wide { view * view.transpose() } else { view.transpose() * view };
                let size = product.nrows();
                (0..size * size).map(|at| product[(at / size, at % size)]).collect()
            }
            Deviations::Sparse { problem, rows, means, inverse } if wide => {
                let (n, m) = (problem.rows(), rows.len());
                let squares: Vec<f64> = inverse.iter().map(|inverse| inverse * inverse).collect();
                let all = rows_gram(problem.x, &squares);
                let classes: Vec<Vec<f64>> = means
                    .chunks_exact(inverse.len().max(1))
                    .map(|mean| mean.iter().zip(&squares).map(|(mean, square)| mean * square).collect())
                    .collect();
                let code = |row: usize| problem.codes[row] as usize;
                let cross: Vec<Vec<f64>> =
                    classes.iter().map(|class| rows.iter().map(|&row| problem.x.dot(row, class)).collect()).collect();
                let between = |a: usize, b: usize| dot(&classes[a], &means[b * inverse.len()..(b + 1) * inverse.len()]);
                let k = classes.len();
                let inner: Vec<f64> = (0..k * k).map(|at| between(at / k, at % k)).collect();
                let mut gram = vec![0.0; m * m];
                for i in 0..m {
                    for j in 0..=i {
                        let (a, b) = (code(rows[i]), code(rows[j]));
                        gram[i * m + j] = all[rows[i] * n + rows[j]] - cross[a][j] - cross[b][i] + inner[a * k + b];
                    }
                }
                gram
            }
            Deviations::Sparse { problem, rows, means, inverse } => {
                let d = inverse.len();
                let mut counted = vec![0.0; problem.rows()];
                rows.iter().for_each(|&row| counted[row] = 1.0);
                let mut gram = columns_gram(problem.x, &counted);
                for (class, mean) in means.chunks_exact(d.max(1)).enumerate() {
                    let count = rows.iter().filter(|&&row| problem.codes[row] as usize == class).count() as f64;
                    for (row, own) in gram.chunks_exact_mut(d.max(1)).zip(mean) {
                        row.iter_mut().zip(mean).for_each(|(entry, mean)| *entry -= count * own * mean);
                    }
                }
                for (row, own) in gram.chunks_exact_mut(d.max(1)).zip(inverse) {
                    row.iter_mut().zip(inverse).for_each(|(entry, inverse)| *entry *= own * inverse);
                }
                gram
            }
        }
    }
}

/// S^-1, or (S + ridge I)^-1 by way of the rows.
struct Pooled<'a> {
    z: Deviations<'a>,
    freedom: f64,
    factor: Factor,
    wide: bool,
}

impl<'a> Pooled<'a> {
    fn new(z: Deviations<'a>, freedom: f64) -> Option<Self> {
        let (n, d) = z.shape();
        let wide = d >= n;
        let size = if wide { n } else { d };
        let mut matrix = z.gram(wide);
        if wide {
            (0..size).for_each(|at| matrix[at * size + at] += RIDGE * freedom);
        }
        let factor = Factor::nearest(&matrix, size, size)?;
        Some(Pooled { z, freedom, factor, wide })
    }

    fn solve(&self, right: &[f64]) -> Vec<f64> {
        if !self.wide {
            return self.factor.solve(right).iter().map(|value| value * self.freedom).collect();
        }
        let by = self.factor.solve(&self.z.images(right));
        let combined = self.z.combine(&by);
        right.iter().zip(combined).map(|(right, combined)| (right - combined) / RIDGE).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, Dense, Design};

    /// Sparse X, which is not copied, has the start of dense X: more columns than rows, and fewer.
    #[test]
    fn sparse_and_dense_start_alike() {
        for (n, d, k) in [(8, 20, 2), (30, 5, 3), (12, 12, 3)] {
            let value = |at: usize| if (at * 7919 + 13) % 3 == 0 { ((at * 31) % 17) as f64 - 5.0 } else { 0.0 };
            let x = Dense::new(n, d, (0..n * d).map(value).collect::<Vec<f64>>()).unwrap();
            let stored: Vec<usize> = (0..n * d).filter(|&at| value(at) != 0.0).collect();
            let starts: Vec<usize> = (0..=n).map(|row| stored.partition_point(|&at| at < row * d)).collect();
            let columns: Vec<u32> = stored.iter().map(|at| (at % d) as u32).collect();
            let values: Vec<f64> = stored.iter().map(|&at| value(at)).collect();
            let sparse = Csr::new(n, d, starts, columns, values).unwrap();
            let codes: Vec<u32> = (0..n as u32).map(|row| row % k as u32).collect();
            // a row without weight does not count
            let caps: Vec<f64> = (0..n).map(|row| if row == 3 { 0.0 } else { 1.0 }).collect();
            let functions = if k == 2 { 1 } else { k };
            let with = |x: &dyn Design| {
                let (codes, caps) = (&codes, &caps);
                start(&LqProblem { x, codes, classes: k, functions, caps, cost: None, q: 0.5, intercept: true })
                    .unwrap()
            };
            let ((w, b), (other_w, other_b)) = (with(&x), with(&sparse));
            assert!(w.iter().any(|w| w.abs() > 0.01));
            let close = |(one, other): (&f64, &f64)| (one - other).abs() <= 1e-9 * (1.0 + one.abs());
            assert!(w.iter().zip(&other_w).all(close), "{w:?} {other_w:?}");
            assert!(b.iter().zip(&other_b).all(close), "{b:?} {other_b:?}");
        }
    }
}
