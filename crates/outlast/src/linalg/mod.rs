//! Small shared numerics for tall dense blocks: rows of a design matrix, a few dozen to a few thousand at a time.
//!
//! | function | computes |
//! |---|---|
//! | [`Isa::run`] | anything, compiled for the instructions at hand |
//! | [`Isa::dots`] | x_i . w for each row of a block |
//! | [`Isa::accumulate`] | out += sum_i a_i x_i |
//! | [`Isa::gram`] | G += T'T for a tile of rows, lower triangle |
//! | [`Isa::products`], [`Isa::combine`] | the first two for several w or a at once, in f32 |
//! | [`weighted_gram`] | sum_i h_i x_i x_i' of many rows, on all threads |
//! | [`cholesky`] | Cholesky factor in place, unshifted |
//! | [`Factor`] | Cholesky factor of a symmetric positive matrix, equilibrated and refined |
//!
//! The first four are compiled for AVX-512, AVX2 with FMA, and any machine; [`Isa::detect`] chooses once at run time.

mod factor;
mod gram;
mod portable;
mod single;
mod small;
#[cfg(target_arch = "x86_64")]
mod wide;

pub use factor::{Factor, solve_one};
pub use gram::{GRAM_DEPTH, weighted_gram};
pub use single::WIDE;
pub use small::{cholesky, cholesky_solve};

use std::sync::OnceLock;

/// Lanes of the widest vector used, in doubles. Strides of padded rows are multiples of this.
pub const LANES: usize = 8;

/// `columns` rounded up to a multiple of [`LANES`].
pub fn padded(columns: usize) -> usize {
    columns.next_multiple_of(LANES)
}

/// Which vector instructions the inner loops use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    /// Whatever the target guarantees.
    Portable,
    /// 256-bit vectors with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// The best of what this machine has.
    pub fn detect() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| *Self::available().last().unwrap_or(&Isa::Portable))
    }

    /// Everything this machine has, best last.
    pub fn available() -> Vec<Isa> {
        #[allow(unused_mut)]
        let mut found = vec![Isa::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                found.push(Isa::Avx2);
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                {
                    found.push(Isa::Avx512);
                }
            }
        }
        found
    }

    /// Runs `work`, compiled for these instructions: loops that are inlined into it use their vectors.
    #[inline]
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        match self {
            Isa::Portable => work(),
            // SAFETY: the variant exists only where `available` found the instructions.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { wide::run_avx2(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { wide::run_avx512(work) },
        }
    }

    /// out_i = x_i . w, rows of `w.len()` contiguous values in `rows`.
    ///
    /// # Panics
    /// When `rows` does not hold `out.len()` rows.
    pub fn dots(self, rows: &[f64], w: &[f64], out: &mut [f64]) {
        assert_eq!(rows.len(), out.len() * w.len());
        match self {
            Isa::Portable => portable::dots::<false>(rows, w, out),
            // SAFETY: the variant exists only where `available` found the instructions; lengths were checked above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { wide::dots_avx2(rows, w, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { wide::dots_avx512(rows, w, out) },
        }
    }

    /// out += sum_i factors_i x_i, rows of `out.len()` contiguous values in `rows`.
    ///
    /// # Panics
    /// When `rows` does not hold `factors.len()` rows.
    pub fn accumulate(self, rows: &[f64], factors: &[f64], out: &mut [f64]) {
        assert_eq!(rows.len(), factors.len() * out.len());
        match self {
            Isa::Portable => portable::accumulate::<false>(rows, factors, out),
            // SAFETY: the variant exists only where `available` found the instructions; lengths were checked above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { wide::accumulate_avx2(rows, factors, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { wide::accumulate_avx512(rows, factors, out) },
        }
    }

    /// G += T'T, where `tile` holds rows of `stride` values (a multiple of [`LANES`]) and `gram` is stride x stride, row-major.
    /// Only the lower triangle of G is defined afterwards.
    ///
    /// # Panics
    /// When the lengths do not fit.
    pub fn gram(self, tile: &[f64], stride: usize, gram: &mut [f64]) {
        assert!(stride > 0 && stride.is_multiple_of(LANES) && tile.len().is_multiple_of(stride));
        assert_eq!(gram.len(), stride * stride);
        match self {
            Isa::Portable => portable::gram::<false>(tile, stride, gram),
            // SAFETY: the variant exists only where `available` found the instructions; lengths were checked above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { wide::gram_avx2(tile, stride, gram) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { wide::gram_avx512(tile, stride, gram) },
        }
    }
}

impl Isa {
    /// out[i columns + k] = x_i . w_k: rows x_i of `stride` values (a multiple of [`WIDE`]), `columns` vectors w_k likewise.
    ///
    /// # Panics
    /// When the lengths do not fit.
    pub fn products(self, rows: &[f32], stride: usize, w: &[f32], columns: usize, out: &mut [f32]) {
        assert!(stride > 0 && stride.is_multiple_of(WIDE) && rows.len().is_multiple_of(stride) && columns > 0);
        assert!(w.len() == columns * stride && out.len() == rows.len() / stride * columns);
        match self {
            Isa::Portable => single::products::<false>(rows, stride, w, columns, out),
            // SAFETY: the variant exists only where `available` found the instructions; lengths were checked above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { single::wide::products_avx2(rows, stride, w, columns, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { single::wide::products_avx512(rows, stride, w, columns, out) },
        }
    }

    /// out_k += sum_i factors[i columns + k] x_i, lengths as in [`products`](Self::products).
    ///
    /// # Panics
    /// When the lengths do not fit.
    pub fn combine(self, rows: &[f32], stride: usize, factors: &[f32], columns: usize, out: &mut [f32]) {
        assert!(stride > 0 && stride.is_multiple_of(WIDE) && rows.len().is_multiple_of(stride) && columns > 0);
        assert!(out.len() == columns * stride && factors.len() == rows.len() / stride * columns);
        match self {
            Isa::Portable => single::combine::<false>(rows, stride, factors, columns, out),
            // SAFETY: the variant exists only where `available` found the instructions; lengths were checked above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { single::wide::combine_avx2(rows, stride, factors, columns, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { single::wide::combine_avx512(rows, stride, factors, columns, out) },
        }
    }
}

/// Numbers from which looking for wider vectors pays.
const LONG: usize = 64;

/// a . b, the same to the last bit on every machine.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    if a.len() < LONG {
        return lane_sum(a, b, |a, b| a * b);
    }
    Isa::detect().run(
        #[inline(always)]
        || lane_sum(a, b, |a, b| a * b),
    )
}

/// sum of term(a_k, b_k), eight at a time: as fast as the memory, and a smaller error than one after the other.
#[inline(always)]
pub(crate) fn lane_sum(a: &[f64], b: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    let mut lanes = [0.0; 8];
    let (left, right) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: f64 = left.remainder().iter().zip(right.remainder()).map(|(&a, &b)| term(a, b)).sum();
    for (a, b) in left.zip(right) {
        for lane in 0..8 {
            lanes[lane] += term(a[lane], b[lane]);
        }
    }
    lanes.iter().sum::<f64>() + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDING: f64 = 1e-13;

    /// Numbers of mixed sign and size that no two products of share.
    fn numbers(count: usize, seed: u64) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        (0..count)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
            })
            .collect()
    }

    fn close(a: &[f64], b: &[f64], what: &str) {
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() <= ROUNDING * (1.0 + b.abs()), "{what}: {a} {b}");
        }
    }

    #[test]
    fn every_instruction_set_computes_the_definition() {
        for isa in Isa::available() {
            for columns in [0, 1, 3, 7, 8, 9, 15, 16, 20, 31, 33, 54] {
                for rows in [0, 1, 5, 8, 13, 64] {
                    let what = format!("{isa:?} {rows} x {columns}");
                    let x = numbers(rows * columns, 1);
                    let (w, a) = (numbers(columns, 2), numbers(rows, 3));
                    let mut out = vec![0.0; rows];
                    isa.dots(&x, &w, &mut out);
                    let expected: Vec<f64> = (0..rows).map(|i| dot(&x[i * columns..(i + 1) * columns], &w)).collect();
                    close(&out, &expected, &what);

                    let start = numbers(columns, 4);
                    let mut out = start.clone();
                    isa.accumulate(&x, &a, &mut out);
                    let expected: Vec<f64> = (0..columns)
                        .map(|j| start[j] + (0..rows).map(|i| a[i] * x[i * columns + j]).sum::<f64>())
                        .collect();
                    close(&out, &expected, &what);
                }
            }
            for stride in [16, 48] {
                for (rows, columns) in [(0, 1), (1, 2), (5, 3), (9, 4), (13, 7)] {
                    let single = |values: Vec<f64>| values.into_iter().map(|value| value as f32).collect::<Vec<f32>>();
                    let double = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<f64>>();
                    let (x, w) = (single(numbers(rows * stride, 1)), single(numbers(columns * stride, 2)));
                    let (a, start) = (single(numbers(rows * columns, 3)), single(numbers(columns * stride, 4)));
                    let (x2, w2, a2) = (double(&x), double(&w), double(&a));
                    let mut found = vec![0.0; rows * columns];
                    isa.products(&x, stride, &w, columns, &mut found);
                    for (at, found) in found.iter().enumerate() {
                        let (i, k) = (at / columns, at % columns);
                        let expected = dot(&x2[i * stride..(i + 1) * stride], &w2[k * stride..(k + 1) * stride]);
                        assert!((f64::from(*found) - expected).abs() < 1e-5, "{isa:?} {rows} {columns}");
                    }
                    let mut found = start.clone();
                    isa.combine(&x, stride, &a, columns, &mut found);
                    for (at, found) in found.iter().enumerate() {
                        let (k, j) = (at / stride, at % stride);
                        let sum: f64 = (0..rows).map(|i| a2[i * columns + k] * x2[i * stride + j]).sum();
                        let expected = f64::from(start[at]) + sum;
                        assert!((f64::from(*found) - expected).abs() < 1e-5, "{isa:?} {rows} {columns}");
                    }
                }
            }
            for stride in [8, 16, 24, 40, 56] {
                for rows in [0, 1, 7, 64] {
                    let (tile, start) = (numbers(rows * stride, 5), numbers(stride * stride, 6));
                    let mut gram = start.clone();
                    isa.gram(&tile, stride, &mut gram);
                    for i in 0..stride {
                        for j in 0..=i {
                            let sum: f64 = (0..rows).map(|r| tile[r * stride + i] * tile[r * stride + j]).sum();
                            let expected = start[i * stride + j] + sum;
                            close(&[gram[i * stride + j]], &[expected], &format!("{isa:?} gram {rows} x {stride}"));
                        }
                    }
                }
            }
        }
    }
}
