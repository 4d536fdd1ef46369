//! The dense matrices a working set is solved on: f32 from the tiles, or f64 on few rows.

use super::super::super::tiles::{Aligned, LANES, Lanes, PANEL, Portable};
#[cfg(target_arch = "x86_64")]
use super::super::super::tiles::{Avx2, Avx512};
use super::super::block::{DenseBlock, Rows};
use super::super::double;
use super::super::ranges::Ranges;
use super::pair::Matrix;
use crate::linalg::Isa;
use rayon::prelude::*;
use std::sync::Mutex;

/// K in f32, rows `stride` long.
pub(super) struct Single<'k> {
    pub(super) isa: Isa,
    pub(super) kernel: &'k [f32],
    pub(super) stride: usize,
    pub(super) diagonal: Vec<f32>,
    /// Buffers for the blocks of pairs, one per thread at most.
    pub(super) buffers: &'k Mutex<Vec<Aligned>>,
}

/// Rows up to which products with the whole matrix cost little.
const SMALL: usize = 1024;

/// Multiply-adds that are worth a second thread.
const WORTH: usize = 1 << 18;

/// Some rows and columns of a matrix, copied together row by row when first asked for: few rows of a pair's problem move.
struct Lazy<'m> {
    kernel: &'m [f32],
    length: usize,
    rows: &'m [u32],
    /// `rows`, filled up to the stride with their first.
    columns: Vec<u32>,
    block: &'m mut [f32],
    present: Vec<bool>,
}

impl<'m> Lazy<'m> {
    /// `size` rows, those beyond `rows` of zeros.
    fn new(matrix: &'m Single, rows: &'m [u32], size: usize, stride: usize, block: &'m mut [f32]) -> Lazy<'m> {
        let (kernel, length) = (matrix.kernel, matrix.stride);
        assert!(block.len() >= size * stride && stride >= size && size >= rows.len() && stride.is_multiple_of(LANES));
        assert!(rows.iter().all(|&row| (row as usize) < length && (row as usize + 1) * length <= kernel.len()));
        let mut columns = rows.to_vec();
        columns.resize(stride, 0);
        block[rows.len() * stride..size * stride].fill(0.0);
        let present = (0..size).map(|row| row >= rows.len()).collect();
        Lazy { kernel, length, rows, columns, block, present }
    }
}

impl Rows for Lazy<'_> {
    fn covers(&self, rows: usize, stride: usize) -> bool {
        self.present.len() >= rows && self.columns.len() == stride
    }

    #[inline(always)]
    unsafe fn row<L: Lanes>(&mut self, row: usize, stride: usize) -> *const f32 {
        let out = &mut self.block[row * stride..(row + 1) * stride];
        if !self.present[row] {
            self.present[row] = true;
            for (out, columns) in out.chunks_exact_mut(LANES).zip(self.columns.chunks_exact(LANES)) {
                // SAFETY: `new` has checked rows and columns against the matrix.
                unsafe {
                    let from = self.kernel.as_ptr().add(self.rows[row] as usize * self.length);
                    L::store(out.as_mut_ptr(), L::gather(from, columns.as_ptr()));
                }
            }
            out[self.rows.len()..].fill(0.0);
        }
        out.as_ptr()
    }
}

impl Matrix for Single<'_> {
    const ENOUGH: f64 = 1e-6;

    fn patience(&self, classes: usize) -> usize {
        if self.stride <= SMALL { 8 } else { 12 * classes }
    }

    fn value(&self, i: usize, j: usize) -> f64 {
        f64::from(if i == j { self.diagonal[i] } else { self.kernel[i * self.stride + j] })
    }

    fn combine(&self, rows: &[u32], moves: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.stride];
        let largest = moves.iter().fold(0.0f64, |largest, c| largest.max(c.abs()));
        if largest == 0.0 {
            return sums;
        }
        let factors: Vec<f32> = moves.iter().map(|c| (c / largest) as f32).collect();
        let piece = (WORTH / rows.len()).next_multiple_of(PANEL).max(PANEL);
        let add = |(number, sums): (usize, &mut [f64])| {
            let columns = &self.kernel[number * piece..];
            // SAFETY: `isa` was detected; rows end within the matrix, whose stride is a multiple of 64.
            unsafe {
                match self.isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => add_rows_avx512(columns, self.stride, rows, &factors, sums),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => add_rows_avx2(columns, self.stride, rows, &factors, sums),
                    _ => add_rows::<Portable>(columns, self.stride, rows, &factors, sums),
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
        dense.solve(self.isa, kernel, x, gradient, 0.5 * (lowest + highest), eps, most, &|| stop());
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
unsafe fn add_rows_avx512(columns: &[f32], stride: usize, rows: &[u32], factors: &[f32], sums: &mut [f64]) {
    unsafe { add_rows::<Avx512>(columns, stride, rows, factors, sums) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn add_rows_avx2(columns: &[f32], stride: usize, rows: &[u32], factors: &[f32], sums: &mut [f64]) {
    unsafe { add_rows::<Avx2>(columns, stride, rows, factors, sums) }
}

/// sums += sum_r factors_r columns[rows_r * stride..], eight products in f32 at a time, then f64. `sums` is a multiple of 64
/// long.
#[inline(always)]
unsafe fn add_rows<L: Lanes>(columns: &[f32], stride: usize, rows: &[u32], factors: &[f32], sums: &mut [f64]) {
    const WIDTH: usize = PANEL / LANES;
    let last = rows.iter().copied().max().unwrap_or(0) as usize;
    assert!(sums.len().is_multiple_of(PANEL) && columns.len() >= last * stride + sums.len());
    for (panel, sums) in sums.chunks_exact_mut(PANEL).enumerate() {
        for (rows, factors) in rows.chunks(8).zip(factors.chunks(8)) {
            // SAFETY: bounded by the assertion above.
            unsafe {
                let mut partial = [L::splat(0.0); WIDTH];
                for (&row, &factor) in rows.iter().zip(factors) {
                    let (from, factor) =
                        (columns.as_ptr().add(row as usize * stride + panel * PANEL), L::splat(factor));
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
