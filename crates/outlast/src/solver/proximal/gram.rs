//! The second derivatives on the working set: H_(s,j),(t,l) = sum_i B_i[j,l] x_is x_it, one matrix per pair of functions.
//!
//! For the hinge the blocks B_i / sigma depend only on which rows (and classes) are in the window, and few of them change from
//! one Newton step to the next: only the difference is added, O(changed rows p^2) instead of O(window p^2).
//!
//! What is cut for the threads is cut by its size alone, so that sums are the same on any number of them: the matrix into strips, or,
//! where it is small next to the rows, the rows into pieces.

use super::columns::{Column, Columns};
use super::rows::{Blocks, Pair, pair};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Rows multiplied at a time.
const CHUNK: usize = 512;
/// Multiplications from which a second thread pays.
const PARALLEL: usize = 2_000_000;
/// Strips or pieces, and the least width of a strip.
const PIECES: usize = 8;
const STRIP: usize = 16;
/// Rows for each column from which pieces of rows are better than strips, though each has a matrix of its own.
const TALL: usize = 32;
/// Differences added before everything is summed afresh, so that rounding does not pile up.
const MOST_PATCHES: usize = 30;

#[derive(Default)]
pub(super) struct Gram {
    order: usize,
    /// Symmetric, row-major, order x order.
    pairs: Vec<Vec<f64>>,
    held: Blocks,
    patches: usize,
}

impl Gram {
    /// Row s of the matrix of a pair of functions.
    #[inline]
    pub(super) fn row(&self, one: usize, other: usize, slot: usize) -> &[f64] {
        &self.pairs[pair(one, other)][slot * self.order..(slot + 1) * self.order]
    }

    #[inline]
    pub(super) fn at(&self, one: usize, other: usize, slot: usize, with: usize) -> f64 {
        self.pairs[pair(one, other)][slot * self.order + with]
    }

    /// Whether no row has this pair.
    pub(super) fn is_empty(&self, one: usize, other: usize) -> bool {
        self.held.pairs[pair(one, other)].rows.is_empty()
    }

    /// The matrices of some slots alone.
    pub(super) fn of_slots(columns: &Columns, slots: &[usize], blocks: Blocks) -> Gram {
        let order = slots.len();
        let mut gram = Gram { order, pairs: vec![vec![0.0; order * order]; blocks.pairs.len()], ..Gram::default() };
        for (addend, sums) in blocks.pairs.iter().zip(&mut gram.pairs) {
            add(columns, slots, addend, sums);
        }
        gram.held = blocks;
        gram
    }

    /// Moves to the blocks given. Columns may have been added to the end of the working set since the last call. Returns how many
    /// multiplications that took.
    pub(super) fn set(&mut self, columns: &Columns, blocks: Blocks) -> f64 {
        let order = columns.len();
        if self.pairs.len() != blocks.pairs.len() || self.order > order {
            *self = Gram { order, pairs: vec![vec![0.0; order * order]; blocks.pairs.len()], ..Gram::default() };
            self.held.pairs = vec![Pair::default(); blocks.pairs.len()];
        }
        let grown = self.order < order;
        let changes: Vec<Pair> =
            self.held.pairs.iter().zip(&blocks.pairs).map(|(old, new)| difference(old, new)).collect();
        let count = |pairs: &[Pair]| pairs.iter().map(|pair| pair.rows.len()).sum::<usize>();
        let patch = !grown && self.patches < MOST_PATCHES && 2 * count(&changes) < count(&blocks.pairs);
        if patch {
            self.patches += 1;
        } else {
            self.order = order;
            self.patches = 0;
            self.pairs.iter_mut().for_each(|sums| *sums = vec![0.0; order * order]);
        }
        let addends = if patch { &changes } else { &blocks.pairs };
        let slots: Vec<usize> = (0..order).collect();
        let work = match columns.is_sparse() {
            true => 0.5 * columns.stored() * order as f64 * addends.len() as f64,
            false => count(addends) as f64 * (order * order) as f64,
        };
        for (addend, sums) in addends.iter().zip(&mut self.pairs) {
            add(columns, &slots, addend, sums);
        }
        self.held = blocks;
        work
    }

    /// Keeps the slots that are flagged.
    pub(super) fn retain(&mut self, keep: &[bool]) {
        let kept: Vec<usize> = (0..self.order.min(keep.len())).filter(|&slot| keep[slot]).collect();
        for sums in &mut self.pairs {
            let order = self.order;
            *sums = kept.iter().flat_map(|&s| kept.iter().map(move |&t| s * order + t)).map(|at| sums[at]).collect();
        }
        self.order = kept.len();
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Gram::default();
    }
}

/// new - old, rows where they differ.
fn difference(old: &Pair, new: &Pair) -> Pair {
    let mut change = Pair::default();
    let (mut a, mut b) = (0, 0);
    while a < old.rows.len() || b < new.rows.len() {
        let left = old.rows.get(a).copied().unwrap_or(u32::MAX);
        let right = new.rows.get(b).copied().unwrap_or(u32::MAX);
        let row = left.min(right);
        let mut weight = 0.0;
        if right == row {
            weight += new.weights[b];
            b += 1;
        }
        if left == row {
            weight -= old.weights[a];
            a += 1;
        }
        if weight != 0.0 {
            change.rows.push(row);
            change.weights.push(weight);
        }
    }
    change
}

fn add(columns: &Columns, slots: &[usize], addend: &Pair, sums: &mut [f64]) {
    match addend.rows.is_empty() {
        true => {}
        false if columns.is_sparse() => add_sparse(columns, slots, addend, sums),
        false => add_full(columns, slots, addend, sums),
    }
}

fn add_full(columns: &Columns, slots: &[usize], addend: &Pair, sums: &mut [f64]) {
    let order = slots.len();
    let count = addend.rows.len();
    if count * order * order < PARALLEL {
        add_lower(columns, slots, &addend.rows, &addend.weights, order, sums);
    } else if count < TALL * order {
        let width = order.div_ceil(PIECES).max(STRIP);
        add_lower(columns, slots, &addend.rows, &addend.weights, width, sums);
    } else {
        let length = count.div_ceil(PIECES);
        let pieces = addend.rows.par_chunks(length).zip(addend.weights.par_chunks(length));
        let part = |(rows, weights): (&[u32], &[f64])| {
            let mut part = vec![0.0; order * order];
            add_lower(columns, slots, rows, weights, order, &mut part);
            part
        };
        for part in pieces.map(part).collect::<Vec<_>>() {
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
    }
    mirror(sums, order);
}

/// The half s >= t copied to the other.
fn mirror(sums: &mut [f64], order: usize) {
    for s in 0..order {
        for t in 0..s {
            sums[t * order + s] = sums[s * order + t];
        }
    }
}

/// Adds to the entries (s, t), s >= t; others may change as well. A strip of that many rows of the matrix is a thread's work.
fn add_lower(columns: &Columns, slots: &[usize], rows: &[u32], weights: &[f64], width: usize, sums: &mut [f64]) {
    let order = slots.len();
    let height = CHUNK.min(rows.len());
    let (mut plain, mut weighted) = (vec![0.0; height * order], vec![0.0; height * order]);
    for (rows, weights) in rows.chunks(CHUNK).zip(weights.chunks(CHUNK)) {
        let count = rows.len();
        for (position, &slot) in slots.iter().enumerate() {
            let Column::Full(x) = columns.slot(slot) else { continue };
            let at = position * count..(position + 1) * count;
            let (plain, weighted) = (&mut plain[at.clone()], &mut weighted[at]);
            for (k, (&row, weight)) in rows.iter().zip(weights).enumerate() {
                plain[k] = x[row as usize];
                weighted[k] = weight * plain[k];
            }
        }
        let plain = MatRef::from_column_major_slice(&plain[..count * order], count, order);
        let weighted = MatRef::from_column_major_slice(&weighted[..count * order], count, order);
        // the row-major lower half is the column-major upper half
        let whole = width >= order;
        let shape = if whole { BlockStructure::TriangularUpper } else { BlockStructure::Rectangular };
        let strip = |(at, sums): (usize, &mut [f64])| {
            let (first, wide) = (at * width, sums.len() / order);
            matmul(
                MatMut::from_column_major_slice_mut(sums, order, wide).subrows_mut(0, first + wide),
                shape,
                Accum::Add,
                weighted.subcols(0, first + wide).transpose(),
                BlockStructure::Rectangular,
                plain.subcols(first, wide),
                BlockStructure::Rectangular,
                1.0,
                Par::Seq,
            );
        };
        match whole {
            true => strip((0, sums)),
            false => sums.par_chunks_mut(width * order).enumerate().with_max_len(1).for_each(strip),
        }
    }
}

/// As [`add_full`]: each column spread out once and multiplied with the lists of those before it, O(p non-zeros).
fn add_sparse(columns: &Columns, slots: &[usize], addend: &Pair, sums: &mut [f64]) {
    let order = slots.len();
    let mut weights = vec![0.0; columns.rows()];
    addend.rows.iter().zip(&addend.weights).for_each(|(&row, weight)| weights[row as usize] = *weight);
    sums.par_chunks_mut(order.max(1)).enumerate().with_min_len(8).for_each_init(
        || vec![0.0; columns.rows()],
        |spread, (s, sums)| {
            let Column::Sparse(rows, values) = columns.slot(slots[s]) else { return };
            rows.iter().zip(values).for_each(|(&row, x)| spread[row as usize] = weights[row as usize] * x);
            for (t, sum) in sums.iter_mut().enumerate().take(s + 1) {
                let Column::Sparse(rows, values) = columns.slot(slots[t]) else { continue };
                *sum += rows.iter().zip(values).map(|(&row, x)| x * spread[row as usize]).sum::<f64>();
            }
            rows.iter().for_each(|&row| spread[row as usize] = 0.0);
        },
    );
    mirror(sums, order);
}
