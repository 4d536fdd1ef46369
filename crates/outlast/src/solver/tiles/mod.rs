//! Kernel values in fused f32 tiles.
//!
//! A kernel value is cheaper to compute again than to fetch from memory as long as a row has few non-zeros: at d = 20 about
//! 0.4 ns a value on one AVX-512 core. So rows are laid out for that. The *long* side of a product is packed in panels of 64
//! rows, feature-major (`Panels`); the *short* side in groups of 6 dense rows or 2 sparse rows (`Block`). A micro-kernel
//! holds 64 x 6 inner products in registers, applies the kernel's map, and either stores the values or multiplies them by
//! coefficients at once, so that the matrix never exists:
//!
//! ```text
//! store   K[block, panel]                      (f32)
//! sum     out[panel] += K[panel, block] c      (6 or 8 products in f32, then f64)
//! spread  out[panel] += K[panel, block] C      (C with several columns, mostly zeros; 96 products in f32, then f64)
//! ```
//!
//! Cost: m n (d multiply-adds + about 10 operations) for m block rows and n panel rows; bytes: 4 d n per pass.

mod buffer;
mod coefficients;
mod expand;
mod kernels;
mod pack;
mod prepared;
mod simd;

pub(crate) use buffer::Aligned;
pub(crate) use coefficients::Coefficients;
pub(crate) use expand::expand;
pub(crate) use pack::{Block, Panels};
pub(crate) use prepared::Prepared;
#[cfg(target_arch = "x86_64")]
pub(crate) use simd::{Avx2, Avx512};
pub(crate) use simd::{LANES, Lanes, Portable};

use crate::linalg::Isa;
use rayon::prelude::*;

/// Rows of a panel.
pub(crate) const PANEL: usize = 64;

/// Dense rows of a group in a block.
pub(crate) const GROUP: usize = 6;

/// Block rows whose packed form stays in the second-level cache during a pass over the panels.
const CHUNK: usize = 3072;

/// out[q] += sum_j coefficients_j k(panel row q, rows_j) / unit for every panel row.
pub(crate) fn multiply(
    isa: Isa,
    panels: &Panels,
    short: &Prepared,
    rows: &[u32],
    coefficients: &[f64],
    out: &mut [f64],
) {
    // coefficients in units of their largest, so that none overflows in f32
    let largest = coefficients.iter().fold(0.0f64, |largest, c| largest.max(c.abs()));
    if largest == 0.0 {
        return;
    }
    for (rows, coefficients) in rows.chunks(CHUNK).zip(coefficients.chunks(CHUNK)) {
        let coefficients: Vec<f32> = coefficients.iter().map(|c| (c / largest) as f32).collect();
        let block = Block::new(short, rows, &coefficients);
        out.par_chunks_mut(PANEL).enumerate().with_min_len(2).for_each(|(panel, out)| {
            let mut sums = [0.0; PANEL];
            kernels::sum(isa, short.map, panels.panel(panel), &block, &mut sums);
            for (out, sum) in out.iter_mut().zip(sums) {
                *out += largest * sum;
            }
        });
    }
}

/// Block rows whose products are summed in f32.
const SHORT_SUM: usize = 96;

/// out[p][f][lane] += sum_j C_jf k(row `lane` of panel p, rows_j) / unit: several functions in one pass. `out` holds, per
/// panel, 64 values of each function.
pub(crate) fn multiply_many(
    isa: Isa,
    panels: &Panels,
    short: &Prepared,
    rows: &[u32],
    coefficients: &Coefficients,
    out: &mut [f64],
) {
    let largest = coefficients.largest();
    if largest == 0.0 {
        return;
    }
    let size = coefficients.functions() * PANEL;
    for (chunk, rows) in rows.chunks(CHUNK).enumerate() {
        let block = Block::spread(short, rows, coefficients, chunk * CHUNK, largest);
        let run = (SHORT_SUM * block.groups).div_ceil(rows.len()).max(1);
        let buffer = || Aligned::zeroed(size);
        out.par_chunks_mut(size).enumerate().with_min_len(2).for_each_init(buffer, |sums, (panel, out)| {
            let mut start = 0;
            while start < block.groups {
                let end = (start + run).min(block.groups);
                sums.fill(0.0);
                kernels::spread(isa, short.map, panels.panel(panel), &block, start..end, sums);
                for (out, sum) in out.iter_mut().zip(sums.iter()) {
                    *out += largest * f64::from(*sum);
                }
                start = end;
            }
        });
    }
}

/// out[j * stride + q] = k(rows_j, panel row q) / unit. `stride` is the panels' padded length.
pub(crate) fn store(isa: Isa, panels: &Panels, short: &Prepared, rows: &[u32], out: &mut [f32]) {
    let stride = panels.padded();
    assert!(out.len() >= rows.len() * stride);
    let start = Shared(out.as_mut_ptr());
    let blocks: Vec<Block> = rows.chunks(CHUNK).map(|rows| Block::new(short, rows, &[])).collect();
    (0..panels.count()).into_par_iter().for_each(|panel| {
        for (number, block) in blocks.iter().enumerate() {
            // SAFETY: panel `panel` writes lanes panel * 64 .. + 64 of each row and no other task does; the assertion
            // above covers the last row.
            unsafe {
                let to = start.get().add(number * CHUNK * stride + panel * PANEL);
                kernels::store(isa, short.map, panels.panel(panel), block, to, stride);
            }
        }
    });
}

/// out[q] = k(row, panel row q) / unit, on this thread.
pub(crate) fn store_row(isa: Isa, panels: &Panels, short: &Prepared, row: u32, out: &mut [f32]) {
    assert!(out.len() >= panels.padded());
    let block = Block::new(short, &[row], &[]);
    for (panel, out) in (0..panels.count()).zip(out.chunks_exact_mut(PANEL)) {
        // SAFETY: the chunk has room for the one row of a panel.
        unsafe { kernels::store(isa, short.map, panels.panel(panel), &block, out.as_mut_ptr(), PANEL) };
    }
}

/// A pointer several tasks write disjoint parts through.
#[derive(Clone, Copy)]
struct Shared(*mut f32);
// SAFETY: only handed to tasks that write disjoint elements.
unsafe impl Sync for Shared {}
// SAFETY: likewise.
unsafe impl Send for Shared {}

impl Shared {
    fn get(self) -> *mut f32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, Dense, Design};
    use crate::problem::KernelFunction;

    fn rows(count: usize, cols: usize, share: f64) -> Vec<f64> {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        (0..count * cols).map(|_| if next() < share { 2.0 * next() - 1.0 } else { 0.0 }).collect()
    }

    fn sparse_copy(count: usize, cols: usize, values: &[f64]) -> Csr<'static> {
        let (mut starts, mut columns, mut stored) = (vec![0], Vec::new(), Vec::new());
        for row in values.chunks_exact(cols) {
            for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                columns.push(column as u32);
                stored.push(value);
            }
            starts.push(stored.len());
        }
        Csr::new(count, cols, starts, columns, stored).unwrap()
    }

    /// Every kernel, instruction set and storage against the formula in f64.
    #[test]
    fn tiles_compute_the_kernel() {
        let kernels = [
            KernelFunction::Linear,
            KernelFunction::Rbf { gamma: 0.7 },
            KernelFunction::Poly { gamma: 0.5, degree: 3, coef0: 1.0 },
            KernelFunction::Poly { gamma: 0.5, degree: 2, coef0: -0.3 },
            KernelFunction::Sigmoid { gamma: 0.9, coef0: 0.2 },
        ];
        for (count, cols, share) in [(70, 9, 1.0), (131, 20, 0.2)] {
            let values = rows(count, cols, share);
            let dense = Dense::new(count, cols, &values[..]).unwrap();
            let sparse = sparse_copy(count, cols, &values);
            let designs: [&dyn Design; 2] = [&dense, &sparse];
            for kernel in &kernels {
                for x in designs {
                    let prepared = Prepared::new(x, kernel, 1 << 20).unwrap();
                    let all: Vec<u32> = (0..count as u32).collect();
                    let short: Vec<u32> = (0..count as u32).rev().step_by(3).collect();
                    let coefficients: Vec<f64> = short.iter().map(|&row| f64::from(row) - 31.5).collect();
                    let panels = Panels::new(&prepared, &all);
                    for isa in Isa::available() {
                        let mut stored = vec![0.0; short.len() * panels.padded()];
                        store(isa, &panels, &prepared, &short, &mut stored);
                        let mut alone = vec![0.0; panels.padded()];
                        for (row, together) in short.iter().zip(stored.chunks_exact(panels.padded())) {
                            store_row(isa, &panels, &prepared, *row, &mut alone);
                            assert_eq!(alone, together, "{isa:?} {kernel:?}");
                        }
                        let mut sums = vec![0.0; panels.padded()];
                        multiply(isa, &panels, &prepared, &short, &coefficients, &mut sums);
                        // a second function with half of the coefficients, negated
                        let mut both = Coefficients::new(2);
                        for (j, c) in coefficients.iter().enumerate() {
                            both.push([*c, if j % 2 == 0 { -c } else { 0.0 }].into_iter());
                        }
                        let mut many = vec![0.0; 2 * panels.padded()];
                        multiply_many(isa, &panels, &prepared, &short, &both, &mut many);
                        for i in 0..count {
                            let (mut sum, mut half) = (0.0, 0.0);
                            for (j, &row) in short.iter().enumerate() {
                                let exact = kernel.evaluate(dense.row(i), dense.row(row as usize));
                                let value = f64::from(stored[j * panels.padded() + i]) * prepared.unit;
                                assert!(
                                    (value - exact).abs() < 2e-6 * prepared.unit,
                                    "{isa:?} {kernel:?}: {value} {exact}"
                                );
                                sum += coefficients[j] * exact;
                                half -= if j % 2 == 0 { coefficients[j] * exact } else { 0.0 };
                            }
                            let size: f64 = coefficients.iter().map(|c| c.abs()).sum();
                            let error = (sums[i] * prepared.unit - sum).abs();
                            assert!(error < 1e-6 * size * prepared.unit, "{isa:?} {kernel:?}: {error}");
                            let at = i / PANEL * 2 * PANEL + i % PANEL;
                            for (value, exact) in [(many[at], sum), (many[at + PANEL], half)] {
                                let error = (value * prepared.unit - exact).abs();
                                assert!(error < 1e-6 * size * prepared.unit, "{isa:?} {kernel:?}: {error} of many");
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn hopeless_scales_are_left_to_double_precision() {
        let values = rows(50, 3, 1.0);
        let x = Dense::new(50, 3, &values[..]).unwrap();
        assert!(Prepared::new(&x, &KernelFunction::Rbf { gamma: 1e12 }, 0).is_none());
        assert!(Prepared::new(&x, &KernelFunction::Precomputed, 0).is_none());
        assert!(Prepared::new(&x, &KernelFunction::Rbf { gamma: 1e-12 }, 0).is_some());
    }
}
