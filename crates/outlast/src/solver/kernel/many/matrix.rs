//! The dense matrices a working set is solved on: f32 from the tiles, or f64 on few rows.

use super::super::super::tiles::{Aligned, LANES, Lanes, PANEL, Portable};
#[cfg(target_arch = "x86_64")]
use super::super::super::tiles::{Avx2, Avx512};
use super::super::block::{DenseBlock, Rows};
use super::super::double;
use super::super::gram::{Gram, Packed};
use super::super::ranges::Ranges;
use super::pair::Matrix;
use super::sheet::Sheet;
use crate::linalg::Isa;
use rayon::prelude::*;
use std::sync::{Mutex, Once};

/// K in f32. A row is computed when it is first needed, where that can be done: few rows of a working set move.
pub(super) struct Single<'k, 'a> {
    gram: &'k Gram<'a>,
    packed: &'k Packed,
    /// Rows, each `stride` long.
    kernel: *mut f32,
    stride: usize,
    /// Whether a row has been computed; empty if all have been from the start.
    present: Vec<Once>,
    diagonal: Vec<f32>,
    /// Buffers for the blocks of pairs, one per thread at most.
    buffers: &'k Mutex<Vec<Aligned>>,
}

// SAFETY: a row is written once, inside its `Once`, and read only after that.
unsafe impl Sync for Single<'_, '_> {}

impl<'k, 'a> Single<'k, 'a> {
    /// The matrix of the rows packed, in one go or row by row as needed. `kernel` gives the room.
    pub(super) fn new(
        gram: &'k Gram<'a>,
        packed: &'k Packed,
        at_once: bool,
        kernel: &'k mut Aligned,
        buffers: &'k Mutex<Vec<Aligned>>,
    ) -> Single<'k, 'a> {
        let count = packed.rows().len();
        let present: Vec<Once> = match gram.has_single_rows(packed) && !at_once {
            true => (0..count).map(|_| Once::new()).collect(),
            false => Vec::new(),
        };
        match present.is_empty() {
            true => gram.block(packed, kernel),
            false => kernel.reserve(count * packed.padded()),
        }
        let diagonal = packed.rows().iter().map(|&row| gram.diagonal()[row as usize]).collect();
        let stride = packed.padded();
        assert!(kernel.len() >= count * stride);
        Single { gram, packed, kernel: kernel.as_mut_ptr(), stride, present, diagonal, buffers }
    }

    #[inline(always)]
    fn row(&self, row: usize) -> &[f32] {
        assert!(row < self.diagonal.len());
        if self.present.get(row).is_some_and(|present| !present.is_completed()) {
            self.compute(row);
        }
        // SAFETY: `new` has checked that the matrix has that row; it is not written to any more.
        unsafe { std::slice::from_raw_parts(self.kernel.add(row * self.stride), self.stride) }
    }

    #[cold]
    fn compute(&self, row: usize) {
        self.present[row].call_once(|| {
            // SAFETY: as in `row`; while its `Once` runs nobody else looks at the row.
            let out = unsafe { std::slice::from_raw_parts_mut(self.kernel.add(row * self.stride), self.stride) };
            self.gram.single_row(self.packed, row, out);
        });
    }
}

/// Rows up to which products with the whole matrix cost little.
const SMALL: usize = 1024;

/// Rows to compute that are worth a second thread.
const MANY: usize = 16;

/// Multiply-adds that are worth a second thread.
const WORTH: usize = 1 << 18;

/// Some rows and columns of a matrix, copied together row by row when first asked for: few rows of a pair's problem move.
struct Lazy<'m, 'k, 'a> {
    matrix: &'m Single<'k, 'a>,
    rows: &'m [u32],
    /// `rows`, filled up to the stride with their first.
    columns: Vec<u32>,
    block: &'m mut [f32],
    present: Vec<bool>,
}

impl<'m, 'k, 'a> Lazy<'m, 'k, 'a> {
    /// `size` rows, those beyond `rows` of zeros.
    fn new(
        matrix: &'m Single<'k, 'a>,
        rows: &'m [u32],
        size: usize,
        stride: usize,
        block: &'m mut [f32],
    ) -> Lazy<'m, 'k, 'a> {
        assert!(block.len() >= size * stride && stride >= size && size >= rows.len() && stride.is_multiple_of(LANES));
        assert!(rows.iter().all(|&row| (row as usize) < matrix.stride));
        let mut columns = rows.to_vec();
        columns.resize(stride, 0);
        block[rows.len() * stride..size * stride].fill(0.0);
        let present = (0..size).map(|row| row >= rows.len()).collect();
        Lazy { matrix, rows, columns, block, present }
    }
}

impl Rows for Lazy<'_, '_, '_> {
    fn covers(&self, rows: usize, stride: usize) -> bool {
        self.present.len() >= rows && self.columns.len() == stride
    }

    #[inline(always)]
    unsafe fn row<L: Lanes>(&mut self, row: usize, stride: usize) -> *const f32 {
        let out = &mut self.block[row * stride..(row + 1) * stride];
        if !self.present[row] {
            self.present[row] = true;
            let from = self.matrix.row(self.rows[row] as usize);
            // SAFETY: the instruction set is present; `new` has checked the columns against the matrix.
            unsafe {
                match self.matrix.gram.isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => gather_avx512(from, &self.columns, out),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => gather_avx2(from, &self.columns, out),
                    _ => gather::<Portable>(from, &self.columns, out),
                }
            }
            out[self.rows.len()..].fill(0.0);
        }
        out.as_ptr()
    }
}

impl Matrix for Single<'_, '_> {
    const ENOUGH: f64 = 1e-6;
    const MOST: usize = 20;

    fn patience(&self, classes: usize) -> usize {
        if self.stride <= SMALL { 16 } else { 12 * classes }
    }

    fn value(&self, i: usize, j: usize) -> f64 {
        f64::from(if i == j { self.diagonal[i] } else { self.row(i)[j] })
    }

    fn combine(&self, rows: &[u32], moves: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.stride];
        let largest = moves.iter().fold(0.0f64, |largest, c| largest.max(c.abs()));
        if largest == 0.0 {
            return sums;
        }
        let factors: Vec<f32> = moves.iter().map(|c| (c / largest) as f32).collect();
        let rows: Vec<&[f32]> = match rows.len() > MANY && !self.present.is_empty() {
            true => rows.par_iter().map(|&row| self.row(row as usize)).collect(),
            false => rows.iter().map(|&row| self.row(row as usize)).collect(),
        };
        let piece = (WORTH / rows.len()).next_multiple_of(PANEL).max(PANEL);
        let add = |(number, sums): (usize, &mut [f64])| {
            let start = number * piece;
            // SAFETY: `isa` was detected.
            unsafe {
                match self.gram.isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => add_rows_avx512(&rows, start, &factors, sums),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => add_rows_avx2(&rows, start, &factors, sums),
                    _ => add_rows::<Portable>(&rows, start, &factors, sums),
                }
            }
            sums.iter_mut().for_each(|sum| *sum *= largest);
        };
        match piece < self.stride {
            true => sums.par_chunks_mut(piece).enumerate().for_each(add),
            false => add((0, &mut sums)),
        }
        sums
    }

    fn add_difference(&self, plus: usize, minus: usize, factor: f64, sheet: &mut Sheet, class: usize) {
        let (plus, minus) = (self.row(plus), self.row(minus));
        // SAFETY: `isa` was detected.
        unsafe {
            match self.gram.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => add_difference_avx512(plus, minus, factor, sheet, class),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => add_difference_avx2(plus, minus, factor, sheet, class),
                _ => add_difference(plus, minus, factor, sheet, class),
            }
        }
    }

    fn minimize(
        &self,
        rows: &[u32],
        ranges: Ranges,
        x: &mut [f64],
        gradient: &[f64],
        eps: f64,
        stop: &(dyn Fn() -> bool + Sync),
    ) {
        let stride = x.len().next_multiple_of(PANEL);
        let mut block = self.buffers.lock().ok().and_then(|mut buffers| buffers.pop()).unwrap_or_default();
        block.reserve(x.len() * stride);
        let mut diagonal: Vec<f32> = rows.iter().map(|&row| self.diagonal[row as usize]).collect();
        diagonal.resize(x.len(), 0.0);
        let (lowest, highest) = extremes(ranges, x, gradient);
        let dense = DenseBlock { stride, diagonal: &diagonal, ranges };
        let most = 10 * x.len() + 200;
        let kernel = Lazy::new(self, rows, x.len(), stride, &mut block);
        dense.solve(self.gram.isa, kernel, x, gradient, 0.5 * (lowest + highest), eps, most, &|| stop());
        if let Ok(mut buffers) = self.buffers.lock() {
            buffers.push(block);
        }
    }
}

/// (min F over rows that can rise, max F over rows that can fall), kinks left out.
fn extremes(ranges: Ranges, x: &[f64], gradient: &[f64]) -> (f64, f64) {
    let (mut lowest, mut highest) = (f64::INFINITY, f64::NEG_INFINITY);
    for (row, &f) in gradient.iter().enumerate() {
        if x[row] < ranges.upper[row] {
            lowest = lowest.min(f);
        }
        if x[row] > ranges.lower[row] {
            highest = highest.max(f);
        }
    }
    (lowest.min(highest), highest.max(lowest))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
unsafe fn gather_avx512(from: &[f32], columns: &[u32], out: &mut [f32]) {
    // SAFETY: the instruction set is enabled here; the rest is the caller's promise, passed on.
    unsafe { gather::<Avx512>(from, columns, out) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn gather_avx2(from: &[f32], columns: &[u32], out: &mut [f32]) {
    // SAFETY: as above.
    unsafe { gather::<Avx2>(from, columns, out) }
}

/// out_j = from[columns_j].
///
/// # Safety
/// The instruction set must be present, and every column below the length of `from`.
#[inline(always)]
unsafe fn gather<L: Lanes>(from: &[f32], columns: &[u32], out: &mut [f32]) {
    for (out, columns) in out.chunks_exact_mut(LANES).zip(columns.chunks_exact(LANES)) {
        // SAFETY: both chunks have a vector's length.
        unsafe { L::store(out.as_mut_ptr(), L::gather(from.as_ptr(), columns.as_ptr())) };
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
fn add_difference_avx512(plus: &[f32], minus: &[f32], factor: f64, sheet: &mut Sheet, class: usize) {
    add_difference(plus, minus, factor, sheet, class);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn add_difference_avx2(plus: &[f32], minus: &[f32], factor: f64, sheet: &mut Sheet, class: usize) {
    add_difference(plus, minus, factor, sheet, class);
}

#[inline(always)]
fn add_difference(plus: &[f32], minus: &[f32], factor: f64, sheet: &mut Sheet, class: usize) {
    let size = sheet.classes * PANEL;
    for panel in 0..sheet.h.len() / size {
        let h = &mut sheet.h[panel * size + class * PANEL..][..PANEL];
        let (plus, minus) = (&plus[panel * PANEL..][..PANEL], &minus[panel * PANEL..][..PANEL]);
        for lane in 0..PANEL {
            h[lane] += factor * f64::from(plus[lane] - minus[lane]);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
unsafe fn add_rows_avx512(rows: &[&[f32]], start: usize, factors: &[f32], sums: &mut [f64]) {
    // SAFETY: the instruction set is enabled here.
    unsafe { add_rows::<Avx512>(rows, start, factors, sums) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn add_rows_avx2(rows: &[&[f32]], start: usize, factors: &[f32], sums: &mut [f64]) {
    // SAFETY: the instruction set is enabled here.
    unsafe { add_rows::<Avx2>(rows, start, factors, sums) }
}

/// sums += sum_r factors_r rows_r[start..], eight products in f32 at a time, then f64. `sums` is a multiple of 64 long.
///
/// # Safety
/// The instruction set must be present; lengths are checked.
#[inline(always)]
unsafe fn add_rows<L: Lanes>(rows: &[&[f32]], start: usize, factors: &[f32], sums: &mut [f64]) {
    const WIDTH: usize = PANEL / LANES;
    assert!(sums.len().is_multiple_of(PANEL) && rows.iter().all(|row| row.len() >= start + sums.len()));
    for (panel, sums) in sums.chunks_exact_mut(PANEL).enumerate() {
        for (rows, factors) in rows.chunks(8).zip(factors.chunks(8)) {
            // SAFETY: bounded by the assertion above.
            unsafe {
                let mut partial = [L::splat(0.0); WIDTH];
                for (row, &factor) in rows.iter().zip(factors) {
                    let (from, factor) = (row.as_ptr().add(start + panel * PANEL), L::splat(factor));
                    for g in 0..WIDTH {
                        partial[g] = L::fma(L::load(from.add(g * LANES)), factor, partial[g]);
                    }
                }
                for g in 0..WIDTH {
                    L::add_to_f64(sums.as_mut_ptr().add(g * LANES), partial[g]);
                }
            }
        }
    }
}

/// K in f64, square.
pub(super) struct Double {
    pub(super) kernel: Vec<f64>,
    pub(super) size: usize,
}

impl Matrix for Double {
    const ENOUGH: f64 = 1e-20;
    const MOST: usize = 100;

    fn patience(&self, _: usize) -> usize {
        2
    }

    fn value(&self, i: usize, j: usize) -> f64 {
        self.kernel[i * self.size + j]
    }

    fn combine(&self, rows: &[u32], moves: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.size];
        for (&row, factor) in rows.iter().zip(moves) {
            let from = &self.kernel[row as usize * self.size..][..self.size];
            sums.iter_mut().zip(from).for_each(|(sum, value)| *sum += factor * value);
        }
        sums
    }

    fn add_difference(&self, plus: usize, minus: usize, factor: f64, sheet: &mut Sheet, class: usize) {
        let row = |row: usize| self.kernel[row * self.size..][..self.size].chunks(PANEL);
        for ((h, plus), minus) in sheet.column(class).zip(row(plus)).zip(row(minus)) {
            let differences = plus.iter().zip(minus).map(|(plus, minus)| plus - minus);
            h.iter_mut().zip(differences).for_each(|(h, difference)| *h += factor * difference);
        }
    }

    fn minimize(
        &self,
        rows: &[u32],
        ranges: Ranges,
        x: &mut [f64],
        gradient: &[f64],
        eps: f64,
        _: &(dyn Fn() -> bool + Sync),
    ) {
        let size = x.len();
        let mut block = vec![0.0; size * size];
        for (out, &row) in block.chunks_exact_mut(size).zip(rows) {
            for (out, &column) in out.iter_mut().zip(rows) {
                *out = self.value(row as usize, column as usize);
            }
        }
        double::minimize(&block, size, ranges, x, &mut gradient.to_vec(), eps, 10 * size + 200);
    }
}
