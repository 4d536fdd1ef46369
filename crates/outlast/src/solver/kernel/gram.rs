//! The kernel matrix as the solver sees it: blocks, products, exact products, within a byte budget.
//!
//! Values are f32 and divided by `unit` (see [`Prepared`]). Two sources: fused tiles, which recompute values for less than
//! a memory read, and rows from the double-precision [`KernelFunction`] for precomputed and caller's kernels, very wide
//! sparse rows, and rbf widths too fine for f32 exponents. Whole rows of K are kept, first come, never evicted, where a
//! value costs clearly more than reading it back, as far as the budget reaches.
//!
//! *Far rows*, at most one in a hundred, lie so far out that their f32 exponents are rounding noise. Against all other rows
//! the rbf kernel is 0 either way; among themselves it is computed in f64.

mod many;
mod store;

pub(crate) use many::place;
pub use store::{KernelStore, SharedRows};

use super::super::tiles::{self, Aligned, PANEL, Panels, Prepared};
use crate::data::Design;
use crate::error::{Error, Result};
use crate::linalg::Isa;
use crate::problem::KernelFunction;
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// Where kept rows come from and go to.
    store: Option<KernelStore>,
    /// Whether a caller's kernel returned something that is no number.
    broken: AtomicBool,
}

enum Source {
    Tiles { prepared: Box<Prepared>, all: Packed },
    Function,
}

/// A set of rows packed as the long side of products.
pub(crate) struct Packed {
    rows: Vec<u32>,
    /// Positions of the far rows among them.
    far: Vec<usize>,
    panels: Option<Panels>,
    padded: usize,
}

impl Packed {
    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Rows with padding: what a row of a block is long.
    pub(crate) fn padded(&self) -> usize {
        self.padded
    }
}

fn pack(prepared: &Prepared, rows: Vec<u32>, room: usize) -> Packed {
    let panels = Panels::with_room(prepared, &rows, room);
    let far = (0..rows.len()).filter(|&position| prepared.is_far(rows[position] as usize)).collect();
    Packed { padded: panels.padded(), far, panels: Some(panels), rows }
}

/// Whole rows of K in slots.
#[derive(Default)]
struct Kept {
    values: Aligned,
    slot: Vec<u32>,
    used: usize,
    slots: usize,
}

const NONE: u32 = u32::MAX;

impl<'a> Gram<'a> {
    /// Prepares the matrix; `keep_bytes` is what kept rows may take, and panels of sparse rows.
    pub(crate) fn new(x: &'a dyn Design, kernel: &'a KernelFunction, isa: Isa, keep_bytes: usize) -> Result<Gram<'a>> {
        let rows = x.rows();
        let (source, unit, diagonal, dear) = match Prepared::new(x, kernel, keep_bytes) {
            Some(prepared) => {
                let all = pack(&prepared, (0..rows as u32).collect(), 0);
                let diagonal = prepared.diagonal.iter().map(|&value| value as f32).collect();
                let (unit, dear) = (prepared.unit, prepared.work_per_value() > DEAR);
                (Source::Tiles { prepared: Box::new(prepared), all }, unit, diagonal, dear)
            }
            None => {
                let (unit, diagonal) = function_diagonal(x, kernel)?;
                (Source::Function, unit, diagonal, !matches!(kernel, KernelFunction::Precomputed))
            }
        };
        let length = rows.next_multiple_of(PANEL);
        let slots = if dear { (keep_bytes / (4 * length.max(1))).min(rows) } else { 0 };
        let kept = Kept { values: Aligned::default(), slot: vec![NONE; rows], used: 0, slots };
        Ok(Gram { x, kernel, isa, rows, source, unit, diagonal, kept, store: None, broken: AtomicBool::new(false) })
    }

    /// The same with the rows that earlier fits to the same rows with the same kernel have kept.
    pub(crate) fn with_store(mut self, store: Option<&KernelStore>) -> Gram<'a> {
        if let Some(store) = store.filter(|_| self.keeps_rows()) {
            if let Some(kept) = store.take(self.rows, self.kept.slots) {
                self.kept = kept;
            }
            self.store = Some(store.clone());
        }
        self
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

    /// How much a value may err.
    pub(crate) fn value_error(&self) -> f64 {
        match &self.source {
            Source::Tiles { prepared, .. } => prepared.value_error(),
            Source::Function => 6e-8,
        }
    }

    /// Fails if the kernel returned something that is no number.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.broken.load(Ordering::Relaxed) {
            return Ok(());
        }
        let problem =
            format!("the {} kernel returned a value that is not finite for some pair of rows", self.kernel.name());
        Err(Error::Numerical { problem })
    }

    /// Packs rows with room for as many more.
    pub(crate) fn pack(&self, rows: &[u32], room: usize) -> Packed {
        match &self.source {
            Source::Tiles { prepared, .. } => pack(prepared, rows.to_vec(), room),
            Source::Function => {
                let padded = (rows.len() + room).next_multiple_of(PANEL);
                Packed { rows: rows.to_vec(), far: Vec::new(), panels: None, padded }
            }
        }
    }

    /// out[i * padded + j] = K(row_i, row_j) for the rows packed; the diagonal is exact. `out` gets room for one row more,
    /// the anchor's.
    pub(crate) fn block(&self, packed: &Packed, out: &mut Aligned) {
        let (rows, stride) = (&packed.rows, packed.padded);
        out.reserve((rows.len() + 1) * stride);
        if self.keeps_rows() && rows.iter().all(|&row| self.kept.slot[row as usize] != NONE) {
            self.gather(rows, stride, out);
        } else if self.shared_block(rows, stride, out) {
            // known from other fits
        } else if let (Source::Tiles { prepared, .. }, Some(panels)) = (&self.source, &packed.panels) {
            tiles::store(self.isa, panels, prepared, rows, out);
            for &i in &packed.far {
                for (&j, value) in packed.far.iter().zip(self.far_values(packed, i)) {
                    out[i * stride + j] = value;
                }
            }
        } else {
            self.function_rows(rows, rows, stride, out);
        }
        for (i, &row) in rows.iter().enumerate() {
            out[i * stride + i] = self.diagonal[row as usize];
        }
    }

    /// Whether the block's rows may be computed one by one, when first needed: from tiles, and without far rows.
    pub(crate) fn has_single_rows(&self, packed: &Packed) -> bool {
        matches!(self.source, Source::Tiles { .. }) && !self.keeps_rows() && packed.far.is_empty()
    }

    /// out = K(row_i, all rows packed), where the rows may be computed one by one.
    pub(crate) fn single_row(&self, packed: &Packed, i: usize, out: &mut [f32]) {
        let row = packed.rows[i];
        if let (Source::Tiles { prepared, .. }, Some(panels)) = (&self.source, &packed.panels) {
            tiles::store_row(self.isa, panels, prepared, row, out);
        }
        out[i] = self.diagonal[row as usize];
    }

    /// K of the far row at position i with all far rows of the set.
    fn far_values(&self, packed: &Packed, i: usize) -> Vec<f32> {
        let far: Vec<u32> = packed.far.iter().map(|&position| packed.rows[position]).collect();
        let mut values = vec![0.0; far.len()];
        self.function_rows(&[packed.rows[i]], &far, far.len(), &mut values);
        values
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
        let mut chunks: Vec<&mut [f32]> = out.chunks_mut(stride.max(1)).take(rows.len()).collect();
        let unit = self.unit;
        self.kernel.for_each_row(self.x, self.x, rows, columns, &mut chunks, |out, values| {
            self.look_at(values);
            for (out, value) in out.iter_mut().zip(values) {
                *out = (value / unit) as f32;
            }
        });
    }

    fn look_at(&self, values: &[f64]) {
        if !values.iter().all(|value| value.is_finite()) {
            self.broken.store(true, Ordering::Relaxed);
        }
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
        if rows.is_empty() {
            return;
        }
        let (Source::Tiles { prepared, .. }, Some(panels)) = (&self.source, &packed.panels) else {
            return self.multiply_function(&packed.rows, rows, coefficients, out);
        };
        let mut far: Vec<f64> = packed.far.iter().map(|&position| out[position]).collect();
        tiles::multiply(self.isa, panels, prepared, rows, coefficients, out);
        if !far.is_empty() {
            let far_rows: Vec<u32> = packed.far.iter().map(|&position| packed.rows[position]).collect();
            self.multiply_function(&far_rows, rows, coefficients, &mut far);
            for (&position, value) in packed.far.iter().zip(far) {
                out[position] = value;
            }
        }
    }

    fn multiply_function(&self, list: &[u32], rows: &[u32], coefficients: &[f64], out: &mut [f64]) {
        let unit = self.unit;
        self.kernel.for_each_row(self.x, self.x, list, rows, &mut out[..list.len()], |out, values| {
            self.look_at(values);
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
            Source::Tiles { all, .. } => self.multiply(all, &others, &weights, out),
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
        let mut values = std::mem::take(&mut self.kept.values);
        let (known, own) = self.known_elsewhere(new);
        let start = self.kept.used * length;
        let (copied, computed) = values[start..].split_at_mut(known.len() * length);
        if let Some(part) = self.store.as_ref().and_then(|store| store.part(self.rows)) {
            let slots = copied.par_chunks_exact_mut(length).zip(&known);
            slots.for_each(|(out, &row)| part.copy(row, self.unit, &mut out[..self.rows]));
        }
        self.compute_rows(&own, computed);
        self.kept.values = values;
        for row in known.into_iter().chain(own) {
            self.kept.slot[row as usize] = self.kept.used as u32;
            self.kept.used += 1;
        }
    }

    /// Rows that fits to other parts of the same set share, and the others.
    fn known_elsewhere(&self, rows: Vec<u32>) -> (Vec<u32>, Vec<u32>) {
        match self.store.as_ref().and_then(|store| store.part(self.rows)) {
            Some(part) => {
                part.compute(self.isa, &rows);
                rows.into_iter().partition(|&row| part.knows(row))
            }
            None => (Vec::new(), rows),
        }
    }

    /// The block from rows that fits to other parts of the same set share; false where they are not all known.
    fn shared_block(&self, rows: &[u32], stride: usize, out: &mut [f32]) -> bool {
        let Some(part) = self.store.as_ref().and_then(|store| store.part(self.rows)) else { return false };
        part.compute(self.isa, rows);
        if !rows.iter().all(|&row| part.knows(row)) {
            return false;
        }
        out[..rows.len() * stride].par_chunks_exact_mut(stride).zip(rows).for_each(|(out, &row)| {
            part.copy_some(row, self.unit, rows, out);
        });
        true
    }

    /// Whole rows of K, one after the other.
    fn compute_rows(&self, rows: &[u32], out: &mut [f32]) {
        let length = self.length();
        let all: Vec<u32> = (0..self.rows as u32).collect();
        match &self.source {
            Source::Tiles { prepared, all: Packed { panels: Some(panels), .. } } => {
                tiles::store(self.isa, panels, prepared, rows, out);
                for (row, out) in rows.iter().zip(out.chunks_exact_mut(length)) {
                    if prepared.is_far(*row as usize) {
                        self.function_rows(&[*row], &all, length, out);
                    }
                }
            }
            _ => self.function_rows(rows, &all, length, out),
        }
    }

    /// The whole matrix in double precision, with zeros up to `size` rows and columns.
    pub(crate) fn double(&self, size: usize) -> Vec<f64> {
        let all: Vec<u32> = (0..self.rows as u32).collect();
        let mut values = vec![0.0; size * size];
        let mut rows: Vec<&mut [f64]> = values.chunks_mut(size.max(1)).take(self.rows).collect();
        self.kernel.for_each_row(self.x, self.x, &all, &all, &mut rows, |row, values| {
            self.look_at(values);
            row.iter_mut().zip(values).for_each(|(out, value)| *out = value / self.unit);
        });
        values
    }

    /// K[targets, all] coefficients in double precision, from the data themselves.
    pub(crate) fn exact(&self, coefficients: &[f64], targets: &[u32]) -> Vec<f64> {
        let mut sums = self.kernel.expand_at(self.x, coefficients, targets);
        self.look_at(&sums);
        for sum in &mut sums {
            *sum /= self.unit;
        }
        sums
    }
}

impl Drop for Gram<'_> {
    fn drop(&mut self) {
        if let Some(store) = self.store.take() {
            store.put(std::mem::take(&mut self.kept));
        }
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
