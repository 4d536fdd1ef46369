//! The space of decision functions as a few dense columns.
//!
//! A linear f over no more columns than rows is theta'x. Otherwise K = L L' by Cholesky's method with the largest remaining
//! diagonal entry as pivot, L of n x r, and f = L theta on the rows: the rank r, not n, drives the cost. It stops when what is
//! left of the trace is too small to show: what is left out, E, moves a decision value by at most sum |V| times the largest
//! entry of E, and that is kept far below the tolerance. Or it stops at the most columns that memory allows. Certificates use K
//! itself, so whatever is left out shows in the gap. Cost: n r kernel values and O(n r^2).

use super::super::scaled::Scaled;
use crate::data::Design;
use crate::error::{Error, Result};
use crate::problem::{KernelFunction, ManyClass};
use rayon::prelude::*;

/// Change of a decision value that may be left out, in tolerances.
const LEFT: f64 = 0.01;
/// Least and most share of the trace of K that may be left out.
const SHARES: (f64, f64) = (1e-14, 1e-8);
/// Memory that is used whatever the caller allows.
const LEAST_BYTES: usize = 256 << 20;
/// Copies of the normal matrix that exist at one time.
const COPIES: usize = 4;
/// Rows of one piece of work.
const PIECE: usize = 512;

pub(super) struct Space<'a> {
    data: Scaled<'a>,
    kernel: &'a KernelFunction,
    /// n x columns, the last one of ones if the intercept is free.
    pub(super) features: Vec<f64>,
    pub(super) columns: usize,
    intercept: bool,
    /// Whether the columns are those of X.
    pub(super) explicit: bool,
}

impl<'a> Space<'a> {
    pub(super) fn new(problem: &ManyClass<'a>, cache_bytes: usize, tolerance: f64) -> Result<Space<'a>> {
        let (n, d) = (problem.rows(), problem.x.cols());
        let linear = matches!(problem.kernel, KernelFunction::Linear);
        let data = if linear { Scaled::new(problem.x, problem.caps) } else { Scaled::new(problem.x, &[]) };
        let most = most_columns(n, problem.classes, cache_bytes.max(LEAST_BYTES));
        let explicit = linear && d <= n;
        if explicit && d + 1 > most {
            let problem = format!(
                "{d} columns and {} classes need more memory than the interior point may use ({} MB); \
                 drop columns, or raise cache_bytes",
                problem.classes,
                cache_bytes.max(LEAST_BYTES) >> 20
            );
            return Err(Error::Numerical { problem });
        }
        let mut space = Space {
            data,
            kernel: problem.kernel,
            features: Vec::new(),
            columns: 0,
            intercept: problem.intercept,
            explicit,
        };
        if explicit {
            space.copy_rows()
        } else {
            let reach: f64 = problem.caps.iter().map(|&cap| space.data.enter(cap)).sum();
            space.factor(most, LEFT * tolerance / reach)
        }
        Ok(space)
    }

    pub(super) fn is_linear(&self) -> bool {
        matches!(self.kernel, KernelFunction::Linear)
    }

    pub(super) fn data(&self) -> &Scaled<'a> {
        &self.data
    }

    /// One per column: 0 for the intercept.
    pub(super) fn ridge(&self) -> Vec<f64> {
        let mut ridge = vec![1.0; self.columns];
        if let (true, Some(last)) = (self.intercept, ridge.last_mut()) {
            *last = 0.0;
        }
        ridge
    }

    fn copy_rows(&mut self) {
        let d = self.data.cols();
        self.columns = d + usize::from(self.intercept);
        self.features = vec![0.0; self.data.rows() * self.columns];
        let (data, shrink) = (&self.data, self.data.shrink());
        self.features.par_chunks_exact_mut(self.columns.max(1)).enumerate().for_each(|(row, out)| {
            out[d..].fill(1.0);
            data.design().for_each(row, &mut |column, value| out[column] = value * shrink);
        });
    }

    /// Cholesky's method with pivots, until the mean of what is left of the diagonal is below `error`.
    fn factor(&mut self, most: usize, error: f64) {
        let n = self.data.rows();
        let mut left = self.diagonal();
        let trace: f64 = left.iter().sum();
        let share = (error * n as f64 / trace).max(SHARES.0).min(SHARES.1);
        let largest = left.iter().fold(0.0f64, |a, &b| a.max(b));
        let mut factor: Vec<Vec<f64>> = Vec::new();
        while factor.len() < n.min(most.saturating_sub(1)) {
            let pivot = (0..n).fold(0, |at, row| if left[row] > left[at] { row } else { at });
            let rest: f64 = left.iter().map(|left| left.max(0.0)).sum();
            // entries below the rounding of the largest are no pivots
            if !(rest > share * trace) || !(left[pivot] > 8.0 * f64::EPSILON * largest) {
                break;
            }
            let mut column = self.column(pivot);
            let root = left[pivot].sqrt();
            column.par_chunks_mut(PIECE).enumerate().for_each(|(piece, out)| {
                for known in &factor {
                    let known_pivot = known[pivot];
                    out.iter_mut().zip(&known[piece * PIECE..]).for_each(|(out, known)| *out -= known * known_pivot);
                }
                out.iter_mut().for_each(|out| *out /= root);
            });
            column[pivot] = root;
            left.iter_mut().zip(&column).for_each(|(left, column)| *left -= column * column);
            left[pivot] = 0.0;
            factor.push(column);
        }
        self.columns = factor.len() + usize::from(self.intercept);
        self.features = vec![1.0; n * self.columns];
        self.features.par_chunks_exact_mut(self.columns.max(1)).enumerate().for_each(|(row, out)| {
            out.iter_mut().zip(&factor).for_each(|(out, column)| *out = column[row]);
        });
    }

    fn diagonal(&self) -> Vec<f64> {
        let x = self.data.design();
        let of_row = |row: usize| match *self.kernel {
            KernelFunction::Linear => self.data.squared_norm(row),
            KernelFunction::Rbf { .. } => 1.0,
            KernelFunction::Poly { gamma, degree, coef0 } => (gamma * x.squared_norm(row) + coef0).powi(degree as i32),
            KernelFunction::Sigmoid { gamma, coef0 } => (gamma * x.squared_norm(row) + coef0).tanh(),
            KernelFunction::Precomputed => entry(x, row, row),
            KernelFunction::Custom(ref custom) => {
                let mut own = vec![0.0; x.cols()];
                x.copy_row(row, &mut own);
                custom.evaluate(&own, &own)
            }
        };
        (0..self.data.rows()).into_par_iter().map(of_row).collect()
    }

    /// k(x_i, x_row) for all i.
    fn column(&self, row: usize) -> Vec<f64> {
        let x = self.data.design();
        let n = x.rows();
        match self.kernel {
            KernelFunction::Linear => {
                let mut own = vec![0.0; x.cols()];
                self.data.add_scaled(row, 1.0, &mut own);
                self.data.multiply(&own)
            }
            KernelFunction::Precomputed => {
                let mut column = vec![0.0; n];
                x.copy_row(row, &mut column);
                column
            }
            kernel => {
                let all: Vec<u32> = (0..n as u32).collect();
                let mut column = vec![0.0; n];
                kernel.for_each_row(x, x, &all, &[row as u32], &mut column, |out, values| *out = values[0]);
                column
            }
        }
    }

    /// K V, n x k, by the kernel itself; for a linear kernel also X'V, k x d. In scaled units.
    pub(super) fn image(&self, expansion: &[f64], k: usize) -> (Vec<f64>, Option<Vec<f64>>) {
        let n = self.data.rows();
        if self.is_linear() {
            let weights: Vec<f64> = (0..k)
                .into_par_iter()
                .flat_map_iter(|class| {
                    let own: Vec<f64> = expansion.iter().skip(class).step_by(k).copied().collect();
                    self.data.combine(&own)
                })
                .collect();
            return (self.scores(&weights, k), Some(weights));
        }
        let support: Vec<u32> = (0..n)
            .filter(|&row| expansion[row * k..(row + 1) * k].iter().any(|v| *v != 0.0))
            .map(|row| row as u32)
            .collect();
        let factors: Vec<f64> =
            support.iter().flat_map(|&row| &expansion[row as usize * k..(row as usize + 1) * k]).copied().collect();
        let all: Vec<u32> = (0..n as u32).collect();
        let mut out: Vec<Vec<f64>> = vec![Vec::new(); n];
        let x = self.data.design();
        self.kernel.for_each_row(x, x, &all, &support, &mut out, |out, values| {
            let mut sums = vec![0.0; k];
            for (value, factors) in values.iter().zip(factors.chunks_exact(k)) {
                sums.iter_mut().zip(factors).for_each(|(sum, factor)| *sum += value * factor);
            }
            *out = sums;
        });
        (out.concat(), None)
    }

    /// X'w of every row and class, n x k, from weights k x d in scaled units.
    pub(super) fn scores(&self, weights: &[f64], k: usize) -> Vec<f64> {
        let (n, d) = (self.data.rows(), self.data.cols());
        let of_row = |row: usize| (0..k).map(move |class| self.data.dot(row, &weights[class * d..(class + 1) * d]));
        (0..n).into_par_iter().flat_map_iter(of_row).collect()
    }
}

fn entry(x: &dyn Design, row: usize, column: usize) -> f64 {
    let mut found = 0.0;
    x.for_each(row, &mut |at, value| {
        if at == column {
            found = value;
        }
    });
    found
}

/// The most columns p for which n p and a few matrices of order (k - 1) p fit.
fn most_columns(rows: usize, classes: usize, bytes: usize) -> usize {
    let (rows, free) = (rows as f64, (classes - 1) as f64);
    let square = COPIES as f64 * free * free;
    let doubles = bytes as f64 / 8.0;
    ((rows * rows + 4.0 * square * doubles).sqrt() - rows) as usize / (2.0 * square) as usize
}
