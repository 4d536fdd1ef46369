//! The kernel matrix as the solver sees it: blocks, products, exact products, within a byte budget.
//!
//! Values are f32 and divided by `unit` (see [`Prepared`]). Two sources: fused tiles, which recompute values for less than
//! a memory read, and rows from the double-precision [`KernelFunction`] for precomputed and caller's kernels, very wide
//! sparse rows, and rbf widths too fine for f32 exponents. Whole rows of K are kept, first come, never evicted, where a
//! value costs clearly more than reading it back, as far as the budget reaches.

use super::super::tiles::{self, Aligned, PANEL, Panels, Prepared};
use crate::data::Design;
use crate::error::{Error, Result};
use crate::linalg::Isa;
use crate::problem::KernelFunction;
use rayon::prelude::*;

/// Multiply-adds per value beyond which rows are worth keeping.
const DEAR: f64 = 64.0;

pub(crate) struct Gram<'a> {
    x: &'a dyn Design,
    kernel: &'a KernelFunction,
    pub(crate) isa: Isa,
    rows: usize,
    source: Source,
    unit: f64,
    diagonal: Vec<f32>,
    kept: Kept,
}

enum Source {
    Tiles { prepared: Box<Prepared>, all: Panels },
    Function,
}

/// A set of rows packed as the long side of products.
pub(crate) enum Packed {
    Panels(Panels),
    List(Vec<u32>),
}

impl Packed {
    /// Rows with padding: what a row of a block is long.
    pub(crate) fn padded(&self) -> usize {
        match self {
            Packed::Panels(panels) => panels.padded(),
            Packed::List(rows) => rows.len().next_multiple_of(PANEL),
        }
    }
}

/// Whole rows of K in slots.
struct Kept {
    values: Aligned,
    slot: Vec<u32>,
    used: usize,
    slots: usize,
}

const NONE: u32 = u32::MAX;

impl<'a> Gram<'a> {
    /// Prepares the matrix; `keep_bytes` is what kept rows may take.
    pub(crate) fn new(x: &'a dyn Design, kernel: &'a KernelFunction, isa: Isa, keep_bytes: usize) -> Result<Gram<'a>> {
        let rows = x.rows();
        let all: Vec<u32> = (0..rows as u32).collect();
        let (source, unit, diagonal, dear) = match Prepared::new(x, kernel) {
            Some(prepared) => {
                let panels = Panels::new(&prepared, &all);
                let diagonal = prepared.diagonal.iter().map(|&value| value as f32).collect();
                let (unit, dear) = (prepared.unit, prepared.work_per_value() > DEAR);
                (Source::Tiles { prepared: Box::new(prepared), all: panels }, unit, diagonal, dear)
            }
            None => {
                let (unit, diagonal) = function_diagonal(x, kernel)?;
                (Source::Function, unit, diagonal, !matches!(kernel, KernelFunction::Precomputed))
            }
        };
        let length = rows.next_multiple_of(PANEL);
        let slots = if dear { (keep_bytes / (4 * length.max(1))).min(rows) } else { 0 };
        let kept = Kept { values: Aligned::default(), slot: vec![NONE; rows], used: 0, slots };
        Ok(Gram { x, kernel, isa, rows, source, unit, diagonal, kept })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// What values were divided by.
    pub(crate) fn unit(&self) -> f64 {
        self.unit
    }

    /// K_ii
    pub(crate) fn diagonal(&self) -> &[f32] {
        &self.diagonal
    }

    /// Whether rows are kept, that is, whether values are dear.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.kept.slots > 0
    }

    pub(crate) fn pack(&self, rows: &[u32]) -> Packed {
        match &self.source {
            Source::Tiles { prepared, .. } => Packed::Panels(Panels::new(prepared, rows)),
            Source::Function => Packed::List(rows.to_vec()),
        }
    }

    /// out[i * padded + j] = K(rows_i, rows_j) for the same rows packed; the diagonal is exact. `out` gets room for one row
    /// more, the anchor's.
    pub(crate) fn block(&self, rows: &[u32], packed: &Packed, out: &mut Aligned) {
        let stride = packed.padded();
        out.reserve((rows.len() + 1) * stride);
        if self.keeps_rows() && rows.iter().all(|&row| self.kept.slot[row as usize] != NONE) {
            self.gather(rows, stride, out);
        } else {
            match (&self.source, packed) {
                (Source::Tiles { prepared, .. }, Packed::Panels(panels)) => {
                    tiles::store(self.isa, panels, prepared, rows, out);
                }
                _ => self.function_rows(rows, rows, stride, out),
            }
        }
        for (i, &row) in rows.iter().enumerate() {
            out[i * stride + i] = self.diagonal[row as usize];
        }
    }

    fn gather(&self, rows: &[u32], stride: usize, out: &mut [f32]) {
        out[..rows.len() * stride].par_chunks_exact_mut(stride).zip(rows).for_each(|(out, &row)| {
            let kept = self.kept_row(row);
            for (value, &column) in out.iter_mut().zip(rows) {
                *value = kept[column as usize];
            }
        });
    }

    fn function_rows(&self, rows: &[u32], columns: &[u32], stride: usize, out: &mut [f32]) {
        let mut chunks: Vec<&mut [f32]> = out.chunks_mut(stride).take(rows.len()).collect();
        let unit = self.unit;
        self.kernel.for_each_row(self.x, self.x, rows, columns, &mut chunks, |out, values| {
            for (out, value) in out.iter_mut().zip(values) {
                *out = (value / unit) as f32;
            }
        });
    }

    fn length(&self) -> usize {
        self.rows.next_multiple_of(PANEL)
    }

    fn kept_row(&self, row: u32) -> &[f32] {
        let length = self.length();
        let slot = self.kept.slot[row as usize] as usize;
        &self.kept.values[slot * length..(slot + 1) * length]
    }

    /// out[q] += sum_j coefficients_j K(packed row q, rows_j)
    pub(crate) fn multiply(&self, packed: &Packed, rows: &[u32], coefficients: &[f64], out: &mut [f64]) {
        match (&self.source, packed) {
            (Source::Tiles { prepared, .. }, Packed::Panels(panels)) => {
                tiles::multiply(self.isa, panels, prepared, rows, coefficients, out);
            }
            (_, Packed::List(list)) => self.multiply_function(list, rows, coefficients, out),
            _ => {}
        }
    }

    fn multiply_function(&self, list: &[u32], rows: &[u32], coefficients: &[f64], out: &mut [f64]) {
        let unit = self.unit;
        self.kernel.for_each_row(self.x, self.x, list, rows, &mut out[..list.len()], |out, values| {
            *out += values.iter().zip(coefficients).map(|(value, c)| value * c).sum::<f64>() / unit;
        });
    }

    /// out += K[all rows, rows] coefficients, keeping rows while there is room.
    pub(crate) fn multiply_all(&mut self, rows: &[u32], coefficients: &[f64], out: &mut [f64]) {
        if self.keeps_rows() {
            self.keep(rows);
        }
        let (mut kept, mut others, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for (&row, &coefficient) in rows.iter().zip(coefficients) {
            if self.kept.slot[row as usize] != NONE {
                kept.push((self.kept_row(row), coefficient));
            } else {
                others.push(row);
                weights.push(coefficient);
            }
        }
        if !kept.is_empty() {
            add_kept(&kept, out);
        }
        match &self.source {
            Source::Tiles { prepared, all } => tiles::multiply(self.isa, all, prepared, &others, &weights, out),
            Source::Function if others.is_empty() => {}
            Source::Function => {
                let all: Vec<u32> = (0..self.rows as u32).collect();
                self.multiply_function(&all, &others, &weights, out);
            }
        }
    }

    fn keep(&mut self, rows: &[u32]) {
        let room = self.kept.slots - self.kept.used;
        let new: Vec<u32> =
            rows.iter().copied().filter(|&row| self.kept.slot[row as usize] == NONE).take(room).collect();
        if new.is_empty() {
            return;
        }
        let length = self.length();
        if self.kept.values.is_empty() {
            self.kept.values = Aligned::zeroed(self.kept.slots * length);
        }
        let start = self.kept.used * length;
        let mut values = std::mem::take(&mut self.kept.values);
        match &self.source {
            Source::Tiles { prepared, all } => tiles::store(self.isa, all, prepared, &new, &mut values[start..]),
            Source::Function => {
                let all: Vec<u32> = (0..self.rows as u32).collect();
                self.function_rows(&new, &all, length, &mut values[start..]);
            }
        }
        self.kept.values = values;
        for row in new {
            self.kept.slot[row as usize] = self.kept.used as u32;
            self.kept.used += 1;
        }
    }

    /// K[targets, all] coefficients in double precision, from the data themselves.
    pub(crate) fn exact(&self, coefficients: &[f64], targets: &[u32]) -> Vec<f64> {
        let mut sums = self.kernel.expand_at(self.x, coefficients, targets);
        for sum in &mut sums {
            *sum /= self.unit;
        }
        sums
    }
}

/// out += sum of coefficient times row, eight products in f32 at a time, then f64.
fn add_kept(kept: &[(&[f32], f64)], out: &mut [f64]) {
    let largest = kept.iter().fold(0.0f64, |largest, (_, c)| largest.max(c.abs()));
    if largest == 0.0 {
        return;
    }
    out.par_chunks_mut(PANEL).enumerate().with_min_len(4).for_each(|(panel, out)| {
        let mut sums = [0.0f64; PANEL];
        for eight in kept.chunks(8) {
            let mut partial = [0f32; PANEL];
            for (row, coefficient) in eight {
                let (values, c) = (&row[panel * PANEL..(panel + 1) * PANEL], (coefficient / largest) as f32);
                for (partial, value) in partial.iter_mut().zip(values) {
                    *partial += c * value;
                }
            }
            for (sum, partial) in sums.iter_mut().zip(partial) {
                *sum += f64::from(partial);
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out += largest * sum;
        }
    });
}

/// unit and k(x, x) / unit in double precision.
fn function_diagonal(x: &dyn Design, kernel: &KernelFunction) -> Result<(f64, Vec<f32>)> {
    let mut own = vec![0.0; x.cols()];
    let mut diagonal = vec![0.0; x.rows()];
    for (row, value) in diagonal.iter_mut().enumerate() {
        if let KernelFunction::Rbf { .. } = kernel {
            *value = 1.0;
            continue;
        }
        x.copy_row(row, &mut own);
        *value = if let KernelFunction::Precomputed = kernel { own[row] } else { kernel.evaluate(&own, &own) };
        if !value.is_finite() {
            let problem = format!(
                "the {} kernel of row {row} with itself is {value}: scale the columns of X, or lower gamma, degree or coef0",
                kernel.name()
            );
            return Err(Error::Numerical { problem });
        }
    }
    let largest = diagonal.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let unit = if largest > 0.0 { largest.log2().ceil().exp2().clamp(f64::MIN_POSITIVE, f64::MAX) } else { 1.0 };
    Ok((unit, diagonal.into_iter().map(|value| (value / unit) as f32).collect()))
}
