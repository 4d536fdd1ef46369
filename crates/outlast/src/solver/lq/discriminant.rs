//! Linear discriminant analysis, the start of the paper's algorithm.
//!
//! Columns are standardised to mean 0 and variance 1 over all rows. With the class means m_j and the pooled covariance S of the
//! standardised columns, w_j = S^-1 m_j and b_j = -1/2 m_j'w_j + log(share of class j), less their means over the classes; for one
//! function w = w_2 - w_1, b = b_2 - b_1. Where there are no fewer columns than rows S is replaced by S + 0.01 I. A row counts as often
//! as the problem says, so that equal rows may be one, and not at all without weight.

use super::normal::{columns_gram, rows_gram};
use crate::data::{Dense, Repeated};
use crate::linalg::{Factor, dot};
use crate::problem::LqProblem;
use rayon::prelude::*;

const RIDGE: f64 = 0.01;

/// How many times its deviation a column's mean may be.
const FAR: f64 = 1e4;

/// Coefficients (functions x columns) and intercepts.
pub(super) fn start(problem: &LqProblem) -> Option<(Vec<f64>, Vec<f64>)> {
    let (d, k) = (problem.x.cols(), problem.classes);
    let rows = Rows::new(problem);
    let moments = Moments::new(problem, &rows);
    if moments.are_extreme() {
        return start_on_standardized(problem, &moments);
    }
    let pooled = Pooled::new(Deviations::new(problem, &rows, &moments))?;
    let mut weights = vec![0.0; k * d];
    let mut intercepts = vec![0.0; k];
    for j in 0..k {
        let mean: Vec<f64> = (0..d).map(|column| moments.standardized(j, column)).collect();
        let w = pooled.solve(&mean);
        // back to the columns as they came
        intercepts[j] = -0.5 * dot(&mean, &w) + rows.share(moments.counts[j]).ln();
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

/// The same by way of a copy, for columns whose squares or means are beyond what products of them can bear.
fn start_on_standardized(problem: &LqProblem, moments: &Moments) -> Option<(Vec<f64>, Vec<f64>)> {
    let (n, d) = (problem.rows(), problem.x.cols());
    let mut z = vec![0.0; n * d];
    for (row, z) in z.chunks_exact_mut(d).enumerate() {
        problem.x.copy_row(row, z);
        z.iter_mut().enumerate().for_each(|(column, z)| *z = moments.standardize(column, *z));
    }
    let copy = Dense::new(n, d, z).ok()?;
    let copied = problem.on(&copy);
    // once standardised they are not extreme, but for rows without weight
    if Moments::new(&copied, &Rows::new(&copied)).are_extreme() {
        return None;
    }
    let (mut weights, mut intercepts) = start(&copied)?;
    for (weights, b) in weights.chunks_exact_mut(d).zip(&mut intercepts) {
        for (column, w) in weights.iter_mut().enumerate() {
            *w = if moments.constant[column] { 0.0 } else { *w / moments.units[column] };
            if problem.intercept {
                *b -= *w * moments.centers[column];
            }
        }
    }
    weights.iter().chain(&intercepts).all(|value| value.is_finite()).then_some((weights, intercepts))
}

/// Takes the mean over the classes off.
fn center(values: &mut [f64], stride: usize, classes: usize) {
    for at in 0..stride {
        let mean = (0..classes).map(|j| values[j * stride + at]).sum::<f64>() / classes as f64;
        (0..classes).for_each(|j| values[j * stride + at] -= mean);
    }
}

/// The rows with weight, and how much each counts.
struct Rows {
    at: Vec<usize>,
    /// In units of the largest count.
    counts: Vec<f64>,
    /// Their sum.
    sum: f64,
    /// The sum of all counts as they were given: how many rows there are. Counts that are weights may be small; no row is less than one.
    total: f64,
}

impl Rows {
    fn new(problem: &LqProblem) -> Rows {
        let count = |row: usize| problem.counts.map_or(1.0, |counts| counts[row]);
        let counted = |&row: &usize| problem.caps[row] > 0.0 && count(row) > 0.0;
        let at: Vec<usize> = (0..problem.rows()).filter(counted).collect();
        let largest = at.iter().map(|&row| count(row)).fold(0.0, f64::max);
        let counts: Vec<f64> = at.iter().map(|&row| count(row) / largest).collect();
        let sum: f64 = counts.iter().sum();
        let total = (largest * sum).max(at.len() as f64);
        Rows { at, counts, sum, total }
    }

    /// Rows and what they count.
    fn each(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.at.iter().copied().zip(self.counts.iter().copied())
    }

    /// The share of a class with that count; of one without rows that of half a row.
    fn share(&self, count: f64) -> f64 {
        if count > 0.0 { count / self.sum } else { 0.5 / self.total.max(1.0) }
    }

    /// Rows less classes, in units of the largest count: what the sum of squares is divided by.
    fn freedom(&self, classes: usize) -> f64 {
        let rows = self.total.max(1.0);
        self.sum * ((rows - classes as f64).max(1.0) / rows)
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
    fn new(problem: &LqProblem, rows: &Rows) -> Moments {
        let (x, d, k, n) = (problem.x, problem.x.cols(), problem.classes, rows.sum);
        let (mut counts, mut means) = (vec![0.0f64; k], vec![0.0; k * d]);
        for (row, count) in rows.each() {
            let code = problem.codes[row] as usize;
            counts[code] += count;
            x.add_scaled(row, count, &mut means[code * d..(code + 1) * d]);
        }
        let mut centers = vec![0.0; d];
        for (mean, count) in means.chunks_exact_mut(d.max(1)).zip(&counts) {
            centers.iter_mut().zip(&*mean).for_each(|(center, sum)| *center += sum / n);
            mean.iter_mut().filter(|_| *count > 0.0).for_each(|mean| *mean /= count);
        }
        // entries that are not stored are 0
        let (mut squares, mut stored) = (vec![0.0; d], vec![(0, 0.0); d]);
        for (row, count) in rows.each() {
            x.for_each(row, &mut |column, value| {
                squares[column] += count * (value - centers[column]).powi(2) / n;
                stored[column] = (stored[column].0 + 1, stored[column].1 + count);
            });
        }
        let spread = |column: usize| {
            // where none is missing, what rounding leaves of their counts is nothing
            let missing = if stored[column].0 == rows.at.len() { 0.0 } else { n - stored[column].1 };
            let unstored = missing * (centers[column] / n) * centers[column];
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
        self.standardize(column, self.means[class * self.centers.len() + column])
    }

    fn standardize(&self, column: usize, value: f64) -> f64 {
        if self.constant[column] { 0.0 } else { (value - self.centers[column]) / self.units[column] }
    }

    /// Whether a column's squares would be out of range, or its variance lost in the square of its mean.
    fn are_extreme(&self) -> bool {
        let of_column = |column: usize| {
            let unit = self.units[column];
            !(1e-100..1e100).contains(&unit) || self.centers[column].abs() > FAR * unit
        };
        (0..self.units.len()).any(|column| !self.constant[column] && of_column(column))
    }
}

/// Standardised rows less their class means, each times the root of its count, Z = R^1/2 (X - M) / u, as they follow from X: no copy is
/// made.
struct Deviations<'a> {
    problem: &'a LqProblem<'a>,
    rows: &'a Rows,
    /// R^1/2
    roots: Vec<f64>,
    /// Classes x columns.
    means: &'a [f64],
    /// 1 / u, 0 for constant columns.
    inverse: Vec<f64>,
}

impl<'a> Deviations<'a> {
    fn new(problem: &'a LqProblem<'a>, rows: &'a Rows, moments: &'a Moments) -> Self {
        let units = moments.units.iter().zip(&moments.constant);
        let inverse = units.map(|(unit, constant)| if *constant { 0.0 } else { 1.0 / unit }).collect();
        let roots = rows.counts.iter().map(|count| count.sqrt()).collect();
        Deviations { problem, rows, roots, means: &moments.means, inverse }
    }

    fn class(&self, row: usize) -> usize {
        self.problem.codes[row] as usize
    }

    /// The means of each class.
    fn classes(&self) -> impl Iterator<Item = &[f64]> {
        self.means.chunks_exact(self.inverse.len().max(1))
    }

    /// Z u
    fn images(&self, u: &[f64]) -> Vec<f64> {
        let scaled: Vec<f64> = u.iter().zip(&self.inverse).map(|(u, inverse)| u * inverse).collect();
        let of_class: Vec<f64> = self.classes().map(|mean| dot(mean, &scaled)).collect();
        let of_row =
            |(&row, root): (&usize, &f64)| root * (self.problem.x.dot(row, &scaled) - of_class[self.class(row)]);
        self.rows.at.par_iter().zip(&self.roots).map(of_row).collect()
    }

    /// Z'v
    fn combine(&self, v: &[f64]) -> Vec<f64> {
        let (mut out, mut totals) = (vec![0.0; self.inverse.len()], vec![0.0; self.problem.classes]);
        for ((&row, root), v) in self.rows.at.iter().zip(&self.roots).zip(v) {
            self.problem.x.add_scaled(row, root * v, &mut out);
            totals[self.class(row)] += root * v;
        }
        for (mean, total) in self.classes().zip(totals) {
            out.iter_mut().zip(mean).for_each(|(out, mean)| *out -= total * mean);
        }
        out.iter_mut().zip(&self.inverse).for_each(|(out, inverse)| *out *= inverse);
        out
    }

    /// Z Z' = R^1/2 (X X' - M X' - X M' + M M') R^1/2, all over u^2: row-major, lower half.
    fn rows_gram(&self) -> Vec<f64> {
        let (x, rows, k) = (self.problem.x, &self.rows.at, self.problem.classes);
        let m = rows.len();
        let squares: Vec<f64> = self.inverse.iter().map(|inverse| inverse * inverse).collect();
        let scaled: Vec<Vec<f64>> = self
            .classes()
            .map(|mean| mean.iter().zip(&squares).map(|(mean, square)| mean * square).collect())
            .collect();
        let cross: Vec<Vec<f64>> =
            scaled.iter().map(|class| rows.iter().map(|&row| x.dot(row, class)).collect()).collect();
        let inner: Vec<f64> = scaled.iter().flat_map(|one| self.classes().map(move |other| dot(one, other))).collect();
        let mut gram = match m == self.problem.rows() {
            true => rows_gram(x, &squares),
            false => rows_gram(&Repeated::new(x, rows.iter().map(|&row| row as u32).collect()), &squares),
        };
        for i in 0..m {
            for j in 0..=i {
                let (a, b) = (self.class(rows[i]), self.class(rows[j]));
                let entry = gram[i * m + j] + inner[a * k + b] - cross[a][j] - cross[b][i];
                gram[i * m + j] = self.roots[i] * entry * self.roots[j];
            }
        }
        gram
    }

    /// Z'Z = (X'R X - sum over classes of counts m m') / (u u'): row-major.
    fn columns_gram(&self) -> Vec<f64> {
        let (mut counted, mut counts) = (vec![0.0; self.problem.rows()], vec![0.0; self.problem.classes]);
        for (row, count) in self.rows.each() {
            counted[row] = count;
            counts[self.class(row)] += count;
        }
        let mut gram = columns_gram(self.problem.x, &counted);
        for (at, row) in gram.chunks_exact_mut(self.inverse.len().max(1)).enumerate() {
            for (mean, count) in self.classes().zip(&counts) {
                row.iter_mut().zip(mean).for_each(|(entry, other)| *entry -= count * mean[at] * other);
            }
            row.iter_mut().zip(&self.inverse).for_each(|(entry, inverse)| *entry *= self.inverse[at] * inverse);
        }
        gram
    }
}

/// S^-1, or (S + ridge I)^-1, then by way of the rows if they are fewer.
struct Pooled<'a> {
    z: Deviations<'a>,
    freedom: f64,
    factor: Factor,
    by_rows: bool,
}

impl<'a> Pooled<'a> {
    fn new(z: Deviations<'a>) -> Option<Self> {
        let (n, d) = (z.rows.at.len(), z.inverse.len());
        let freedom = z.rows.freedom(z.problem.classes);
        // however often rows count, S has no more directions than there are rows
        let by_rows = d >= n;
        let size = if by_rows { n } else { d };
        let mut matrix = if by_rows { z.rows_gram() } else { z.columns_gram() };
        if by_rows {
            (0..size).for_each(|at| matrix[at * size + at] += RIDGE * freedom);
        }
        let factor = Factor::nearest(&matrix, size, size)?;
        Some(Pooled { z, freedom, factor, by_rows })
    }

    fn solve(&self, right: &[f64]) -> Vec<f64> {
        if !self.by_rows {
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
    use faer::Mat;
    use faer::linalg::solvers::Solve;

    /// The formula itself, on a copy of standardised rows: more columns than rows, and fewer; dense and sparse; a row without weight, and
    /// a constant column.
    #[test]
    fn is_the_formula() {
        for (n, d, k) in [(8, 20, 2), (30, 5, 3), (12, 12, 3)] {
            let stored = |at: usize| at % d != 1 && (at * 7919 + 13).is_multiple_of(3);
            let value = |at: usize| if stored(at) { ((at * 31) % 17) as f64 - 5.0 } else { 0.0 };
            let all: Vec<f64> = (0..n * d).map(value).collect();
            let codes: Vec<u32> = (0..n as u32).map(|row| row % k as u32).collect();
            let caps: Vec<f64> = (0..n).map(|row| if row == 3 { 0.0 } else { 1.0 }).collect();
            let functions = if k == 2 { 1 } else { k };
            let with = |x: &dyn Design| {
                let (codes, caps) = (&codes, &caps);
                start(&LqProblem {
                    x,
                    codes,
                    classes: k,
                    functions,
                    caps,
                    cost: None,
                    q: 0.5,
                    intercept: true,
                    counts: None,
                })
                .unwrap()
            };
            let dense = with(&Dense::new(n, d, all.clone()).unwrap());
            let places: Vec<usize> = (0..n * d).filter(|&at| stored(at)).collect();
            let starts: Vec<usize> = (0..=n).map(|row| places.partition_point(|&at| at < row * d)).collect();
            let columns: Vec<u32> = places.iter().map(|at| (at % d) as u32).collect();
            let values: Vec<f64> = places.iter().map(|&at| value(at)).collect();
            let sparse = with(&Csr::new(n, d, starts, columns, values).unwrap());
            let truth = by_copy(&all, &codes, (n, d, k));
            assert!(truth.0.iter().any(|w| w.abs() > 0.01));
            let close = |(one, other): (&f64, &f64)| (one - other).abs() <= 1e-8 * (1.0 + one.abs());
            for found in [&dense, &sparse] {
                assert!(found.0.iter().zip(&truth.0).all(close), "{found:?} {truth:?}");
                assert!(found.1.iter().zip(&truth.1).all(close), "{found:?} {truth:?}");
            }
        }
    }

    /// A row that counts three times is three rows: with fewer columns than rows, and with more.
    #[test]
    fn counts_are_rows() {
        let n = 12;
        let times = |row: usize| 1 + row % 3;
        let written: Vec<u32> = (0..n).flat_map(|row| std::iter::repeat_n(row as u32, times(row))).collect();
        for (d, k) in [(4, 2), (5, 3), (40, 2), (30, 3)] {
            let value = |at: usize| ((at * at * 31 + 7 * at) % 1009) as f64 / 100.0 - 5.0;
            let x = Dense::new(n, d, (0..n * d).map(value).collect::<Vec<f64>>()).unwrap();
            let codes: Vec<u32> = (0..n as u32).map(|row| row * row % 5 % k).collect();
            let (classes, functions) = (k as usize, if k == 2 { 1 } else { 3 });
            let counts: Vec<f64> = (0..n).map(|row| times(row) as f64).collect();
            let few = LqProblem {
                x: &x,
                codes: &codes,
                classes,
                functions,
                caps: &counts,
                counts: Some(&counts),
                cost: None,
                q: 0.5,
                intercept: true,
            };
            let all = Repeated::new(&x, written.clone());
            let codes: Vec<u32> = written.iter().map(|&row| codes[row as usize]).collect();
            let caps = vec![1.0; written.len()];
            let many = LqProblem { x: &all, codes: &codes, caps: &caps, counts: None, ..few };
            let (one, other) = (start(&few).unwrap(), start(&many).unwrap());
            let once = start(&LqProblem { counts: None, ..few }).unwrap();
            let far = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(far(&one.0, &other.0) < 1e-9 && far(&one.1, &other.1) < 1e-9, "{d} columns, {k} classes");
            assert!(far(&once.0, &other.0) > 1e-3, "{d} columns, {k} classes: the counts change nothing");
            // weights may be of any size: small ones make no row less than one, and large ones no matrix larger than the rows'
            let equally = |weight: f64| vec![weight; n];
            let small = start(&LqProblem { counts: Some(&equally(1e-3)), ..few }).unwrap();
            assert!(far(&once.0, &small.0) < 1e-9 && far(&once.1, &small.1) < 1e-9, "{d} columns, {k} classes");
            let weights = equally(1e4);
            let large = LqProblem { counts: Some(&weights), ..few };
            let rows = Rows::new(&large);
            let moments = Moments::new(&large, &rows);
            let pooled = Pooled::new(Deviations::new(&large, &rows, &moments)).unwrap();
            assert_eq!((pooled.by_rows, start(&large).is_some()), (d >= n, true));
        }
    }

    fn by_copy(all: &[f64], codes: &[u32], (n, d, k): (usize, usize, usize)) -> (Vec<f64>, Vec<f64>) {
        let rows: Vec<usize> = (0..n).filter(|&row| row != 3).collect();
        let count = rows.len() as f64;
        let column = |c: usize| rows.iter().map(move |&row| all[row * d + c]);
        let centers: Vec<f64> = (0..d).map(|c| column(c).sum::<f64>() / count).collect();
        let square = |c: usize| column(c).map(|x| (x - centers[c]).powi(2)).sum::<f64>() / count;
        let units: Vec<f64> = (0..d).map(|c| if square(c) > 0.0 { square(c).sqrt() } else { 1.0 }).collect();
        let z = |row: usize, c: usize| (all[row * d + c] - centers[c]) / units[c];
        let of_class = |j: usize| rows.iter().copied().filter(move |&row| codes[row] as usize == j);
        let mean = |j: usize, c: usize| of_class(j).map(|row| z(row, c)).sum::<f64>() / of_class(j).count() as f64;
        let deviation = |row: usize, c: usize| z(row, c) - mean(codes[row] as usize, c);
        let freedom = (rows.len() - k) as f64;
        let mut pooled = Mat::from_fn(d, d, |a, b| {
            rows.iter().map(|&row| deviation(row, a) * deviation(row, b)).sum::<f64>() / freedom
        });
        let ridge = if d >= rows.len() { RIDGE } else { 0.0 };
        // a constant column has no covariance, and its mean is 0: any variance will do
        (0..d).for_each(|c| pooled[(c, c)] += if pooled[(c, c)] == 0.0 { 1.0 } else { ridge });
        let factor = pooled.full_piv_lu();
        let (mut weights, mut intercepts) = (vec![0.0; k * d], vec![0.0; k]);
        for j in 0..k {
            let w = factor.solve(Mat::from_fn(d, 1, |c, _| mean(j, c)));
            intercepts[j] = (of_class(j).count() as f64 / count).ln();
            for c in 0..d {
                weights[j * d + c] = w[(c, 0)] / units[c];
                intercepts[j] -= 0.5 * mean(j, c) * w[(c, 0)] + centers[c] * weights[j * d + c];
            }
        }
        if k == 2 {
            return ((0..d).map(|c| weights[d + c] - weights[c]).collect(), vec![intercepts[1] - intercepts[0]]);
        }
        center(&mut intercepts, 1, k);
        center(&mut weights, d, k);
        (weights, intercepts)
    }
}
