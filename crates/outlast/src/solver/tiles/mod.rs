//! Kernel values in fused f32 tiles.
//!
//! A kernel value is cheaper to compute again than to fetch from memory as long as a row has few non-zeros: at d = 20 about
//! 0.4 ns a value on one AVX-512 core. So rows are laid out for that. The *long* side of a product is packed in panels of 64
//! rows, feature-major ([`Panels`]); the *short* side in groups of 6 dense rows or 2 sparse rows ([`Block`]). A micro-kernel
//! holds 64 x 6 inner products in registers, applies the kernel's map, and either stores the values or multiplies them by
//! coefficients at once, so that the matrix never exists:
//!
//! ```text
//! store   K[block, panel]                      (f32)
//! sum     out[panel] += K[panel, block] c      (6 or 8 products in f32, then f64)
//! ```
//!
//! Cost: m n (d multiply-adds + about 10 operations) for m block rows and n panel rows; bytes: 4 d n per pass.

mod buffer;
mod expand;
mod kernels;
mod pack;
mod prepared;
mod simd;

pub(crate) use buffer::Aligned;
pub(crate) use expand::expand;
pub(crate) use pack::{Block, Panels};
pub(crate) use prepared::Prepared;
pub use simd::Isa;
#[cfg(target_arch = "x86_64")]
pub(crate) use simd::{Avx2, Avx512};
pub(crate) use simd::{LANES, Lanes, Portable};

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

/// A pointer several tasks write disjoint parts through.
#[derive(Clone, Copy)]
struct Shared(*mut f32);
// SAFETY: only handed to tasks that write disjoint elements.
unsafe impl Sync for Shared {}
unsafe impl Send for Shared {}

impl Shared {
    fn get(self) -> *mut f32 {
        self.0
    }
}
