//! Rows made ready for the tiles: scaled, rounded to f32, dense or sparse.
//!
//! With u = x scaled and o an offset per row, every kernel is a map of one inner product:
//!
//! ```text
//! k(x, z) / unit = map(u_x . u_z + o_x + o_z)
//!   rbf      u = sqrt(2 gamma log2 e) (x - mean), o = -|u|^2 / 2       map = 2^t
//!   linear   u = x / sqrt(unit)                    o = 0                map = t
//!   poly     u = sqrt(gamma) x / unit^(1/2degree)  o = coef0 / 2 / ...  map = t^degree
//!   sigmoid  u = sqrt(gamma) x                     o = coef0 / 2        map = tanh t
//! ```
//!
//! `unit`, about the largest |k(x, x)|, keeps f32 in range for data of any scale; the solver works with k / unit and boxes
//! times unit. Norms are those of the *rounded* values, in f64, else k(x, x) would not be 1.

use crate::data::{Design, chunks};
use crate::problem::KernelFunction;
use rayon::prelude::*;

/// What turns the inner product into the kernel value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Map {
    Exp2,
    Identity,
    Power(u32),
    Tanh,
}

pub(crate) enum Storage {
    Dense(Vec<f32>),
    Sparse { starts: Vec<usize>, columns: Vec<u32>, values: Vec<f32> },
}

/// Rows ready for the tiles.
pub(crate) struct Prepared {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) map: Map,
    pub(crate) storage: Storage,
    /// o of each row.
    pub(crate) offsets: Vec<f32>,
    /// k(x, x) / unit of each row.
    pub(crate) diagonal: Vec<f64>,
    /// What kernel values were divided by.
    pub(crate) unit: f64,
    scaling: Scaling,
}

/// How raw rows become u.
#[derive(Clone)]
struct Scaling {
    factor: f64,
    mean: Vec<f64>,
    offset: f64,
    sparse: bool,
}

/// Beyond this an entry of u only makes the kernel saturate; clamped so that sums of products stay finite in f32.
const LARGEST: f64 = 1e17;

/// Half norms beyond which the f32 exponent of the rbf kernel is too coarse (error 6e-8 times as much).
const COARSE: f32 = 400.0;

/// Below this share of non-zeros rows are stored sparse.
const SPARSE: f64 = 0.5;

impl Prepared {
    /// Prepares the rows, or says (by `None`) that tiles do not suit this kernel or these data: panels are dense, so that
    /// sparse rows take far more room there, more than `bytes` at worst.
    pub(crate) fn new(x: &dyn Design, kernel: &KernelFunction, bytes: usize) -> Option<Prepared> {
        let panels = x.rows().saturating_mul(x.cols()).saturating_mul(4);
        if x.cols() == 0 || (x.is_sparse() && panels > bytes) {
            return None;
        }
        let (map, unit) = map_and_unit(x, kernel)?;
        let sparse = (count_nonzero(x) as f64) < SPARSE * x.rows() as f64 * x.cols() as f64;
        let centred = map == Map::Exp2 && !sparse;
        let mean = if centred { column_means(x) } else { vec![0.0; x.cols()] };
        let (factor, offset) = match *kernel {
            KernelFunction::Rbf { gamma } => ((2.0 * std::f64::consts::LOG2_E).sqrt() * gamma.sqrt(), 0.0),
            KernelFunction::Linear => (1.0 / unit.sqrt(), 0.0),
            KernelFunction::Poly { gamma, degree, coef0 } => {
                let root = unit.powf(1.0 / f64::from(degree));
                (gamma.sqrt() / root.sqrt(), 0.5 * coef0 / root)
            }
            KernelFunction::Sigmoid { gamma, coef0 } => (gamma.sqrt(), 0.5 * coef0),
            _ => return None,
        };
        let all: Vec<u32> = (0..x.rows() as u32).collect();
        let prepared = Prepared::with_scaling(x, &all, map, unit, Scaling { factor, mean, offset, sparse });
        prepared.is_fine_enough().then_some(prepared)
    }

    /// Prepares some other rows in the same way, for prediction.
    pub(crate) fn like(&self, x: &dyn Design, rows: &[u32]) -> Prepared {
        Prepared::with_scaling(x, rows, self.map, self.unit, self.scaling.clone())
    }

    fn with_scaling(x: &dyn Design, list: &[u32], map: Map, unit: f64, scaling: Scaling) -> Prepared {
        let (rows, cols) = (list.len(), x.cols());
        let round = |value: f64, column: usize| -> f32 {
            let u = (value - scaling.mean[column]) * scaling.factor;
            u.clamp(-LARGEST, LARGEST) as f32
        };
        let storage = if scaling.sparse {
            let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
            for &row in list {
                x.for_each(row as usize, &mut |column, value| {
                    let u = round(value, column);
                    if u != 0.0 {
                        columns.push(column as u32);
                        values.push(u);
                    }
                });
                starts.push(values.len());
            }
            Storage::Sparse { starts, columns, values }
        } else {
            let mut values = vec![0f32; rows * cols];
            values.par_chunks_exact_mut(cols).zip(list).for_each(|(out, &row)| {
                for (column, out) in out.iter_mut().enumerate() {
                    *out = round(0.0, column);
                }
                x.for_each(row as usize, &mut |column, value| out[column] = round(value, column));
            });
            Storage::Dense(values)
        };
        let mut prepared = Prepared {
            rows,
            cols,
            map,
            storage,
            offsets: vec![scaling.offset as f32; rows],
            diagonal: vec![1.0; rows],
            unit,
            scaling,
        };
        prepared.finish_offsets();
        prepared
    }

    fn finish_offsets(&mut self) {
        let squares: Vec<f64> = (0..self.rows).into_par_iter().map(|row| square(self.row(row).1)).collect();
        match self.map {
            Map::Exp2 => {
                for (offset, square) in self.offsets.iter_mut().zip(&squares) {
                    *offset = (-0.5 * square) as f32;
                }
            }
            map => {
                let offset = 2.0 * self.scaling.offset;
                self.diagonal = squares.iter().map(|square| map.apply(square + offset)).collect();
            }
        }
    }

    /// Whether a row lies so far out that its rbf exponents lose digits in f32.
    pub(crate) fn is_far(&self, row: usize) -> bool {
        self.map == Map::Exp2 && self.offsets[row] < -COARSE
    }

    /// The rows that do.
    pub(crate) fn far_rows(&self) -> Vec<u32> {
        (0..self.rows as u32).filter(|&row| self.is_far(row as usize)).collect()
    }

    /// How much a kernel value, divided by `unit`, errs on average.
    pub(crate) fn value_error(&self) -> f64 {
        const ROUNDING: f64 = 6e-8;
        match self.map {
            Map::Exp2 => {
                let near = (0..self.rows).filter(|&row| !self.is_far(row));
                let total: f64 = near.map(|row| f64::from(self.offsets[row].abs())).sum();
                ROUNDING * (1.0 + total / self.rows.max(1) as f64)
            }
            Map::Power(degree) => ROUNDING * (1.0 + f64::from(degree)),
            Map::Identity | Map::Tanh => 2.0 * ROUNDING,
        }
    }

    /// Whether nearly all rows keep enough digits in f32.
    fn is_fine_enough(&self) -> bool {
        self.far_rows().len() * 100 <= self.rows
    }

    /// Columns (for sparse storage) and values of a row.
    pub(crate) fn row(&self, row: usize) -> (&[u32], &[f32]) {
        match &self.storage {
            Storage::Dense(values) => (&[], &values[row * self.cols..(row + 1) * self.cols]),
            Storage::Sparse { starts, columns, values } => {
                let range = starts[row]..starts[row + 1];
                (&columns[range.clone()], &values[range])
            }
        }
    }

    /// Multiply-adds per kernel value.
    pub(crate) fn work_per_value(&self) -> f64 {
        match &self.storage {
            Storage::Dense(_) => self.cols as f64,
            Storage::Sparse { values, .. } => values.len() as f64 / self.rows.max(1) as f64,
        }
    }
}

impl Map {
    /// The map in f64.
    fn apply(self, t: f64) -> f64 {
        match self {
            Map::Exp2 => t.exp2(),
            Map::Identity => t,
            Map::Power(degree) => t.powi(degree as i32),
            Map::Tanh => t.tanh(),
        }
    }
}

fn square(values: &[f32]) -> f64 {
    values.iter().map(|&v| f64::from(v) * f64::from(v)).sum()
}

fn count_nonzero(x: &dyn Design) -> usize {
    let count = |values: &[f64]| values.iter().filter(|value| **value != 0.0).count();
    chunks(x).into_par_iter().map_init(Vec::new, |scratch, rows| count(x.stored_in(rows, scratch))).sum()
}

fn column_means(x: &dyn Design) -> Vec<f64> {
    let mut mean = vec![0.0; x.cols()];
    let share = 1.0 / x.rows().max(1) as f64;
    for row in 0..x.rows() {
        x.add_scaled(row, share, &mut mean);
    }
    mean
}

/// The map of a kernel and the power of two that brings its diagonal to about 1; `None` if tiles can't do it.
fn map_and_unit(x: &dyn Design, kernel: &KernelFunction) -> Option<(Map, f64)> {
    let largest_square = || (0..x.rows()).into_par_iter().map(|row| x.squared_norm(row)).reduce(|| 0.0, f64::max);
    let (map, largest) = match *kernel {
        KernelFunction::Rbf { .. } => return Some((Map::Exp2, 1.0)),
        KernelFunction::Sigmoid { .. } => return Some((Map::Tanh, 1.0)),
        KernelFunction::Linear => (Map::Identity, largest_square()),
        KernelFunction::Poly { gamma, degree, coef0 } => {
            (Map::Power(degree), (gamma * largest_square() + coef0.abs()).powi(degree as i32))
        }
        KernelFunction::Precomputed | KernelFunction::Custom(_) => return None,
    };
    if largest == 0.0 {
        return Some((map, 1.0));
    }
    largest.is_normal().then(|| (map, largest.log2().ceil().exp2()))
}
