//! What an iteration asks of the features: scores, sums of rows, and the normal matrix.
//!
//! With weights D_ij of the cells the normal matrix of a row is (diag(D_i) - D_i D_i' / sum D_i) (x) x_i x_i'. It does not see a
//! change common to all classes, so the last class is held fixed and theta re-centred afterwards: order (k - 1) p, and block
//! (a, b) is the sum of
//!
//! ```text
//! D_a (sum of the other D) / sum D   if a = b,      - D_a D_b / sum D   else
//! ```
//!
//! times x_i x_i': weights of one sign, k (k - 1) / 2 symmetric products of half cost. Columns are seen in units of a power of
//! two, so that products of features stay in range.

use crate::linalg::{Factor, Isa};
use faer::Mat;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use rayon::prelude::*;

/// Rows of one piece of work.
pub(super) const CHUNK: usize = 256;
/// Pieces into which the sums over all rows of the normal matrix are cut.
const PIECES: usize = 8;

pub(super) struct Features<'a> {
    /// m x p
    values: &'a [f64],
    columns: usize,
    classes: usize,
    /// Power of two by which a column is divided.
    unit: Vec<f64>,
    isa: Isa,
}

/// Weights of all cells, m x k, and their sums by row.
pub(super) struct Weights {
    pub(super) cells: Vec<f64>,
    pub(super) sums: Vec<f64>,
}

impl<'a> Features<'a> {
    pub(super) fn new(values: &'a [f64], columns: usize, classes: usize) -> Self {
        let p = columns.max(1);
        let largest = values
            .par_chunks(CHUNK * p)
            .map(|block| {
                let mut largest = vec![0.0f64; p];
                for row in block.chunks_exact(p) {
                    largest.iter_mut().zip(row).for_each(|(largest, value)| *largest = largest.max(value.abs()));
                }
                largest
            })
            .reduce(|| vec![0.0f64; p], |a, b| a.iter().zip(&b).map(|(a, b)| a.max(*b)).collect());
        let unit = |&largest: &f64| if largest > 0.0 { largest.log2().round().exp2() } else { 1.0 };
        Features { values, columns, classes, unit: largest[..columns].iter().map(unit).collect(), isa: Isa::detect() }
    }

    pub(super) fn unit(&self, column: usize) -> f64 {
        self.unit[column]
    }

    fn block(&self, chunk: usize, rows: usize) -> &[f64] {
        let start = chunk * CHUNK * self.columns;
        &self.values[start..start + rows * self.columns]
    }

    /// theta for features in the caller's units.
    pub(super) fn outward(&self, theta: &[f64]) -> Vec<f64> {
        theta.iter().enumerate().map(|(at, theta)| theta / self.unit[at % self.columns]).collect()
    }

    /// Scores of the rows of a chunk, rows x k. `theta` as [`outward`](Self::outward) returns it.
    pub(super) fn scores(&self, chunk: usize, theta: &[f64], out: &mut [f64], scratch: &mut Vec<f64>) {
        let k = self.classes;
        let rows = out.len() / k;
        scratch.resize(rows, 0.0);
        if self.columns == 0 {
            return out.fill(0.0);
        }
        for (class, theta) in theta.chunks_exact(self.columns).enumerate() {
            self.isa.dots(self.block(chunk, rows), theta, scratch);
            out.iter_mut().skip(class).step_by(k).zip(scratch.iter()).for_each(|(out, score)| *out = *score);
        }
    }

    /// sum += factors_ij x_i over the rows of a chunk, k x p; factors rows x k.
    pub(super) fn add(&self, chunk: usize, factors: &[f64], sum: &mut [f64], scratch: &mut Vec<f64>) {
        let k = self.classes;
        let rows = factors.len() / k;
        if self.columns == 0 {
            return;
        }
        for (class, sum) in sum.chunks_exact_mut(self.columns).enumerate() {
            scratch.clear();
            scratch.extend(factors.iter().skip(class).step_by(k));
            self.isa.accumulate(self.block(chunk, rows), scratch, sum);
        }
    }

    /// A sum of rows in the solver's units.
    pub(super) fn inward(&self, sum: &mut [f64]) {
        sum.iter_mut().enumerate().for_each(|(at, sum)| *sum /= self.unit[at % self.columns]);
    }

    /// The normal matrix with the ridge, factored.
    pub(super) fn factor(&self, weights: &Weights, ridge: &[f64]) -> Option<Factor> {
        let (p, free) = (self.columns, self.classes - 1);
        let order = free * p;
        let pairs: Vec<(usize, usize)> = (0..free).flat_map(|a| (0..=a).map(move |b| (a, b))).collect();
        let mut matrix = vec![0.0; order * order];
        let pieces = PIECES.div_ceil(pairs.len()).min(weights.sums.len().div_ceil(CHUNK)).max(1);
        let length = weights.sums.len().div_ceil(pieces).next_multiple_of(CHUNK);
        // a few blocks at a time: they are p x p each
        for group in pairs.chunks(PIECES) {
            let tasks: Vec<(usize, usize, usize)> =
                group.iter().flat_map(|&(a, b)| (0..pieces).map(move |piece| (a, b, piece))).collect();
            let blocks: Vec<Mat<f64>> = tasks
                .par_iter()
                .map(|&(a, b, piece)| self.gram(weights, a, b, piece * length..(piece + 1) * length))
                .collect();
            for (&(a, b, _), block) in tasks.iter().zip(&blocks) {
                let sign = if a == b { 1.0 } else { -1.0 };
                for column in 0..p {
                    for row in 0..p {
                        let value = if row >= column { block[(row, column)] } else { block[(column, row)] };
                        matrix[(a * p + row) * order + b * p + column] += sign * value;
                    }
                }
            }
        }
        let share = 1.0 / self.classes as f64;
        for (a, b) in pairs {
            for (column, ridge) in ridge.iter().enumerate() {
                let own = if a == b { 1.0 - share } else { -share };
                matrix[(a * p + column) * order + b * p + column] += own * ridge;
            }
        }
        Factor::nearest(&matrix, order, order)
    }

    /// The lower half of sum |weight| x x' over some rows.
    fn gram(&self, weights: &Weights, a: usize, b: usize, rows: std::ops::Range<usize>) -> Mat<f64> {
        let p = self.columns;
        let end = rows.end.min(weights.sums.len());
        let mut sum = Mat::zeros(p, p);
        let mut scaled = Mat::zeros(p, CHUNK);
        let mut start = rows.start;
        let inverse: Vec<f64> = self.unit.iter().map(|unit| 1.0 / unit).collect();
        while start < end {
            let stop = (start + CHUNK).min(end);
            let mut used = 0;
            for row in start..stop {
                let root = weights.pair(row, self.classes, a, b).sqrt();
                if root == 0.0 {
                    continue;
                }
                let x = &self.values[row * p..(row + 1) * p];
                let column = scaled.col_as_slice_mut(used);
                for ((out, x), inverse) in column.iter_mut().zip(x).zip(&inverse) {
                    *out = root * (x * inverse);
                }
                used += 1;
            }
            let block = scaled.subcols(0, used);
            triangular::matmul(
                sum.as_mut(),
                BlockStructure::TriangularLower,
                faer::Accum::Add,
                block,
                BlockStructure::Rectangular,
                block.transpose(),
                BlockStructure::Rectangular,
                1.0,
                faer::Par::Seq,
            );
            start = stop;
        }
        sum
    }

    /// The change of theta, summing to 0 over the classes, for a right-hand side k x p that does.
    pub(super) fn solve(&self, factor: &Factor, right: &[f64]) -> Vec<f64> {
        let (p, k) = (self.columns, self.classes);
        let mut theta = factor.solve(&right[..(k - 1) * p]);
        theta.resize(k * p, 0.0);
        centre_classes(&mut theta, p, k);
        theta
    }
}

/// Makes k x p coefficients sum to 0 over the classes.
pub(super) fn centre_classes(theta: &mut [f64], columns: usize, classes: usize) {
    for column in 0..columns {
        let mean = (0..classes).map(|class| theta[class * columns + column]).sum::<f64>() / classes as f64;
        (0..classes).for_each(|class| theta[class * columns + column] -= mean);
    }
}

impl Weights {
    /// Absolute value of the factor of x x' in block (a, b).
    fn pair(&self, row: usize, classes: usize, a: usize, b: usize) -> f64 {
        let cells = &self.cells[row * classes..(row + 1) * classes];
        let sum = self.sums[row];
        if !(sum > 0.0) {
            return 0.0;
        }
        if a != b {
            return cells[a] * (cells[b] / sum);
        }
        let rest = match cells[a] > 0.5 * sum {
            true => (0..classes).filter(|&class| class != a).map(|class| cells[class]).sum(),
            false => sum - cells[a],
        };
        cells[a] * (rest / sum)
    }
}
