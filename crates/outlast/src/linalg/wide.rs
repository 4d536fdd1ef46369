//! The block functions for x86-64. AVX2 is the portable code compiled for it; AVX-512 is written out, because row lengths
//! of one to seven vectors with a masked tail are what compilers do worst.

use super::{LANES, portable};
use std::arch::x86_64::*;

#[target_feature(enable = "avx2,fma")]
pub(super) fn run_avx2<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
pub(super) fn run_avx512<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn dots_avx2(rows: &[f64], w: &[f64], out: &mut [f64]) {
    portable::dots::<true>(rows, w, out);
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn accumulate_avx2(rows: &[f64], factors: &[f64], out: &mut [f64]) {
    portable::accumulate::<true>(rows, factors, out);
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn gram_avx2(tile: &[f64], stride: usize, gram: &mut [f64]) {
    portable::gram::<true>(tile, stride, gram);
}

/// The mask of the last `count` < 8 lanes' worth of a row.
#[inline(always)]
fn tail_mask(count: usize) -> __mmask8 {
    ((1u32 << count) - 1) as u8
}

/// Eight horizontal sums by a tree of transposing additions.
#[target_feature(enable = "avx512f,avx512dq")]
fn sums(a: [__m512d; 8]) -> __m512d {
    let pair = |x, y| _mm512_add_pd(_mm512_unpacklo_pd(x, y), _mm512_unpackhi_pd(x, y));
    let quad = |x, y| _mm512_add_pd(_mm512_shuffle_f64x2::<0x88>(x, y), _mm512_shuffle_f64x2::<0xDD>(x, y));
    let (first, second) = (quad(pair(a[0], a[1]), pair(a[2], a[3])), quad(pair(a[4], a[5]), pair(a[6], a[7])));
    quad(first, second)
}

/// # Safety
/// `rows` must hold `out.len()` rows of `w.len()` values.
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn dots_avx512(rows: &[f64], w: &[f64], out: &mut [f64]) {
    let columns = w.len();
    let whole = columns / LANES * LANES;
    let mask = tail_mask(columns - whole);
    let groups = out.len() / LANES * LANES;
    // SAFETY: row i + r < out.len() and columns up to `whole`, or masked below `columns`, stay inside `rows` and `w`.
    unsafe {
        for i in (0..groups).step_by(LANES) {
            let x = rows.as_ptr().add(i * columns);
            let mut a = [_mm512_setzero_pd(); LANES];
            for j in (0..whole).step_by(LANES) {
                let w = _mm512_loadu_pd(w.as_ptr().add(j));
                for (r, a) in a.iter_mut().enumerate() {
                    *a = _mm512_fmadd_pd(_mm512_loadu_pd(x.add(r * columns + j)), w, *a);
                }
            }
            if mask != 0 {
                let w = _mm512_maskz_loadu_pd(mask, w.as_ptr().add(whole));
                for (r, a) in a.iter_mut().enumerate() {
                    *a = _mm512_fmadd_pd(_mm512_maskz_loadu_pd(mask, x.add(r * columns + whole)), w, *a);
                }
            }
            _mm512_storeu_pd(out.as_mut_ptr().add(i), sums(a));
        }
    }
    portable::dots::<true>(&rows[groups * columns..], w, &mut out[groups..]);
}

/// # Safety
/// `rows` must hold `factors.len()` rows of `out.len()` values.
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn accumulate_avx512(rows: &[f64], factors: &[f64], out: &mut [f64]) {
    let columns = out.len();
    let whole = columns / LANES * LANES;
    let mask = tail_mask(columns - whole);
    let groups = factors.len() / LANES * LANES;
    // SAFETY: row i + r < factors.len() and columns up to `whole`, or masked below `columns`, stay inside `rows` and `out`.
    unsafe {
        for i in (0..groups).step_by(LANES) {
            let x = rows.as_ptr().add(i * columns);
            let a: [__m512d; LANES] = std::array::from_fn(|r| _mm512_set1_pd(factors[i + r]));
            for j in (0..whole).step_by(LANES) {
                let target = out.as_mut_ptr().add(j);
                let (mut even, mut odd) = (_mm512_loadu_pd(target), _mm512_setzero_pd());
                for r in (0..LANES).step_by(2) {
                    even = _mm512_fmadd_pd(a[r], _mm512_loadu_pd(x.add(r * columns + j)), even);
                    odd = _mm512_fmadd_pd(a[r + 1], _mm512_loadu_pd(x.add((r + 1) * columns + j)), odd);
                }
                _mm512_storeu_pd(target, _mm512_add_pd(even, odd));
            }
            if mask != 0 {
                let target = out.as_mut_ptr().add(whole);
                let (mut even, mut odd) = (_mm512_maskz_loadu_pd(mask, target), _mm512_setzero_pd());
                for r in (0..LANES).step_by(2) {
                    even = _mm512_fmadd_pd(a[r], _mm512_maskz_loadu_pd(mask, x.add(r * columns + whole)), even);
                    let next = _mm512_maskz_loadu_pd(mask, x.add((r + 1) * columns + whole));
                    odd = _mm512_fmadd_pd(a[r + 1], next, odd);
                }
                _mm512_mask_storeu_pd(target, mask, _mm512_add_pd(even, odd));
            }
        }
    }
    portable::accumulate::<true>(&rows[groups * columns..], &factors[groups..], out);
}

/// # Safety
/// `tile` must hold whole rows of `stride` values, `stride` a positive multiple of 8, and `gram` stride^2 values.
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn gram_avx512(tile: &[f64], stride: usize, gram: &mut [f64]) {
    for i in (0..stride).step_by(LANES) {
        let mut j = 0;
        while j + LANES <= i {
            // SAFETY: i and j + 8 are columns below `stride`.
            unsafe { gram_block::<2>(tile, stride, i, j, gram) };
            j += 2 * LANES;
        }
        if j == i {
            // SAFETY: as above.
            unsafe { gram_block::<1>(tile, stride, i, j, gram) };
        }
    }
}

/// Rows i..i+8 and columns j..j+8W of G, in 8 W registers.
///
/// # Safety
/// As `gram_avx512`, and i + 8 <= stride, j + 8 W <= stride.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn gram_block<const W: usize>(tile: &[f64], stride: usize, i: usize, j: usize, gram: &mut [f64]) {
    let mut sums = [[_mm512_setzero_pd(); W]; LANES];
    // SAFETY: the caller's promise keeps every access inside a row of `tile` and of `gram`.
    unsafe {
        for row in tile.chunks_exact(stride) {
            let row = row.as_ptr();
            let right: [__m512d; W] = std::array::from_fn(|k| _mm512_loadu_pd(row.add(j + k * LANES)));
            for (r, sums) in sums.iter_mut().enumerate() {
                let left = _mm512_set1_pd(*row.add(i + r));
                for k in 0..W {
                    sums[k] = _mm512_fmadd_pd(left, right[k], sums[k]);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            for (k, sum) in sums.iter().enumerate() {
                let target = gram.as_mut_ptr().add((i + r) * stride + j + k * LANES);
                _mm512_storeu_pd(target, _mm512_add_pd(_mm512_loadu_pd(target), *sum));
            }
        }
    }
}
