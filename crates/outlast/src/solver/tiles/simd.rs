//! Sixteen f32 lanes on three instruction sets.
//!
//! The tile and SMO kernels are written once, over [`Lanes`], and instantiated for AVX-512, AVX2 and plain Rust; the choice
//! is made at run time ([`Isa::detect`](crate::linalg::Isa::detect)). A function that uses `Lanes` is `#[inline(always)]` and reached only through a
//! wrapper that enables the instruction set, so that it compiles to straight vector code.
//!
//! Every method is one instruction or a few. All have the same two conditions, those of the trait: the instruction set is there, and
//! pointers are valid for 16 lanes (loads and stores need no alignment). The body of each relies on these and on nothing else, so
//! they are not repeated at every one.
#![allow(clippy::undocumented_unsafe_blocks)]

/// Lanes of a vector.
pub(crate) const LANES: usize = 16;

/// 2^f on [-1/2, 1/2]: minimax polynomial of degree 6 with p(0) = 1, relative error 2e-9 (8e-8 evaluated in f32).
#[allow(clippy::approx_constant)] // the first coefficient is close to ln 2, as it must be, but is not meant to be it
const EXP2: [f32; 7] =
    [1.0, 0.693_147_2, 0.240_226_48, 0.055_503_324, 0.009_618_437, 0.001_339_887_4, 0.000_153_533_63];

/// Vectors of [`LANES`] f32 and what the kernels do with them.
///
/// # Safety
/// Every method requires the implementing instruction set to be present, and pointers to be valid for 16 lanes.
pub(crate) trait Lanes: Copy {
    type Vector: Copy;
    type Mask: Copy;
    unsafe fn splat(value: f32) -> Self::Vector;
    unsafe fn load(from: *const f32) -> Self::Vector;
    unsafe fn store(to: *mut f32, v: Self::Vector);
    /// from[at[lane]]; positions below 2^31.
    unsafe fn gather(from: *const f32, at: *const u32) -> Self::Vector;
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn sub(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn mul(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn max(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn min(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// a b + c
    unsafe fn fma(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// An approximate 1/a, good to 11 bits at least.
    unsafe fn reciprocal(a: Self::Vector) -> Self::Vector;
    /// a < b, lane by lane
    unsafe fn less(a: Self::Vector, b: Self::Vector) -> Self::Mask;
    /// mask ? a : b
    unsafe fn select(mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn reduce_min(a: Self::Vector) -> f32;
    unsafe fn reduce_max(a: Self::Vector) -> f32;
    /// The nearest whole number.
    unsafe fn round(a: Self::Vector) -> Self::Vector;
    /// a 2^n for whole n <= 127; 0 where n < -126.
    unsafe fn scale(a: Self::Vector, n: Self::Vector) -> Self::Vector;
    /// to[0..16] += a
    unsafe fn add_to_f64(to: *mut f64, a: Self::Vector);

    /// 2^a for a <= 127; 0 below the normal range.
    #[inline(always)]
    unsafe fn exp2(a: Self::Vector) -> Self::Vector {
        unsafe {
            let whole = Self::round(a);
            let fraction = Self::sub(a, whole);
            let mut p = Self::splat(EXP2[6]);
            p = Self::fma(p, fraction, Self::splat(EXP2[5]));
            p = Self::fma(p, fraction, Self::splat(EXP2[4]));
            p = Self::fma(p, fraction, Self::splat(EXP2[3]));
            p = Self::fma(p, fraction, Self::splat(EXP2[2]));
            p = Self::fma(p, fraction, Self::splat(EXP2[1]));
            p = Self::fma(p, fraction, Self::splat(EXP2[0]));
            Self::scale(p, whole)
        }
    }
}

/// Plain Rust.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

macro_rules! lanewise {
    ($f:expr) => {{
        let mut out = [0.0f32; LANES];
        for lane in 0..LANES {
            out[lane] = $f(lane);
        }
        out
    }};
}

impl Lanes for Portable {
    type Vector = [f32; LANES];
    type Mask = [bool; LANES];

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self::Vector {
        [value; LANES]
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::Vector {
        unsafe { from.cast::<[f32; LANES]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: Self::Vector) {
        unsafe { to.cast::<[f32; LANES]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn gather(from: *const f32, at: *const u32) -> Self::Vector {
        unsafe { lanewise!(|i: usize| *from.add(*at.add(i) as usize)) }
    }
    #[inline(always)]
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector {
        lanewise!(|i: usize| a[i] + b[i])
    }
    #[inline(always)]
    unsafe fn sub(a: Self::Vector, b: Self::Vector) -> Self::Vector {
        lanewise!(|i: usize| a[i] - b[i])
    }
    #[inline(always)]
    unsafe fn mul(a: Self::Vector, b: Self::Vector) -> Self::Vector {
        lanewise!(|i: usize| a[i] * b[i])
    }
    #[inline(always)]
    unsafe fn max(a: Self::Vector, b: Self::Vector) -> Self::Vector {
        lanewise!(|i: usize| if a[i] > b[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    unsafe fn min(a: Self::Vector, b: Self::Vector) -> Self::Vector {
        lanewise!(|i: usize| if a[i] < b[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    unsafe fn fma(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        lanewise!(|i: usize| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    unsafe fn reciprocal(a: Self::Vector) -> Self::Vector {
        lanewise!(|i: usize| 1.0 / a[i])
    }
    #[inline(always)]
    unsafe fn less(a: Self::Vector, b: Self::Vector) -> Self::Mask {
        let mut out = [false; LANES];
        for lane in 0..LANES {
            out[lane] = a[lane] < b[lane];
        }
        out
    }
    #[inline(always)]
    unsafe fn select(mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        lanewise!(|i: usize| if mask[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    unsafe fn reduce_min(a: Self::Vector) -> f32 {
        a.into_iter().fold(f32::INFINITY, f32::min)
    }
    #[inline(always)]
    unsafe fn reduce_max(a: Self::Vector) -> f32 {
        a.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }
    #[inline(always)]
    unsafe fn round(a: Self::Vector) -> Self::Vector {
        // adding 1.5 2^23 pushes the fraction out; exact for |a| < 2^22, clamped to that
        const SHIFT: f32 = 12_582_912.0;
        lanewise!(|i: usize| (a[i].clamp(-4e6, 4e6) + SHIFT) - SHIFT)
    }
    #[inline(always)]
    unsafe fn scale(a: Self::Vector, n: Self::Vector) -> Self::Vector {
        lanewise!(|i: usize| {
            let power = f32::from_bits(((n[i].clamp(-127.0, 127.0) as i32 + 127) << 23) as u32);
            if n[i] < -126.0 { 0.0 } else { a[i] * power }
        })
    }
    #[inline(always)]
    unsafe fn add_to_f64(to: *mut f64, a: Self::Vector) {
        for (lane, value) in a.into_iter().enumerate() {
            unsafe { *to.add(lane) += f64::from(value) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Lanes;
    use std::arch::x86_64::*;

    /// One 512-bit register.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512;

    impl Lanes for Avx512 {
        type Vector = __m512;
        type Mask = __mmask16;

        #[inline(always)]
        unsafe fn splat(value: f32) -> __m512 {
            unsafe { _mm512_set1_ps(value) }
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> __m512 {
            unsafe { _mm512_loadu_ps(from) }
        }
        #[inline(always)]
        unsafe fn store(to: *mut f32, v: __m512) {
            unsafe { _mm512_storeu_ps(to, v) }
        }
        #[inline(always)]
        unsafe fn gather(from: *const f32, at: *const u32) -> __m512 {
            unsafe { _mm512_i32gather_ps::<4>(_mm512_loadu_si512(at.cast()), from.cast()) }
        }
        #[inline(always)]
        unsafe fn add(a: __m512, b: __m512) -> __m512 {
            unsafe { _mm512_add_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn sub(a: __m512, b: __m512) -> __m512 {
            unsafe { _mm512_sub_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn mul(a: __m512, b: __m512) -> __m512 {
            unsafe { _mm512_mul_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn max(a: __m512, b: __m512) -> __m512 {
            unsafe { _mm512_max_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn min(a: __m512, b: __m512) -> __m512 {
            unsafe { _mm512_min_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
            unsafe { _mm512_fmadd_ps(a, b, c) }
        }
        #[inline(always)]
        unsafe fn reciprocal(a: __m512) -> __m512 {
            unsafe { _mm512_rcp14_ps(a) }
        }
        #[inline(always)]
        unsafe fn less(a: __m512, b: __m512) -> __mmask16 {
            unsafe { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b) }
        }
        #[inline(always)]
        unsafe fn select(mask: __mmask16, a: __m512, b: __m512) -> __m512 {
            unsafe { _mm512_mask_blend_ps(mask, b, a) }
        }
        #[inline(always)]
        unsafe fn reduce_min(a: __m512) -> f32 {
            unsafe { _mm512_reduce_min_ps(a) }
        }
        #[inline(always)]
        unsafe fn reduce_max(a: __m512) -> f32 {
            unsafe { _mm512_reduce_max_ps(a) }
        }
        #[inline(always)]
        unsafe fn round(a: __m512) -> __m512 {
            unsafe { _mm512_roundscale_ps::<0x08>(a) }
        }
        #[inline(always)]
        unsafe fn scale(a: __m512, n: __m512) -> __m512 {
            unsafe { _mm512_scalef_ps(a, n) }
        }
        #[inline(always)]
        unsafe fn add_to_f64(to: *mut f64, a: __m512) {
            unsafe {
                let low = _mm512_cvtps_pd(_mm512_castps512_ps256(a));
                let high = _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(a));
                _mm512_storeu_pd(to, _mm512_add_pd(_mm512_loadu_pd(to), low));
                _mm512_storeu_pd(to.add(8), _mm512_add_pd(_mm512_loadu_pd(to.add(8)), high));
            }
        }
    }

    /// Two 256-bit registers.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2;

    type Pair = [__m256; 2];

    #[inline(always)]
    unsafe fn across(a: __m256, op: impl Fn(__m128, __m128) -> __m128) -> f32 {
        unsafe {
            let four = op(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let two = op(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(op(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }

    #[inline(always)]
    unsafe fn add_half(to: *mut f64, a: __m256) {
        unsafe {
            let low = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
            let high = _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(a));
            _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), low));
            _mm256_storeu_pd(to.add(4), _mm256_add_pd(_mm256_loadu_pd(to.add(4)), high));
        }
    }

    #[inline(always)]
    unsafe fn scale_half(a: __m256, n: __m256) -> __m256 {
        unsafe {
            // exponent bits of -127 + bias are 0: exactly 0
            let n = _mm256_max_ps(n, _mm256_set1_ps(-127.0));
            let bits = _mm256_slli_epi32::<23>(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)));
            _mm256_mul_ps(a, _mm256_castsi256_ps(bits))
        }
    }

    impl Lanes for Avx2 {
        type Vector = Pair;
        type Mask = Pair;

        #[inline(always)]
        unsafe fn splat(value: f32) -> Pair {
            unsafe { [_mm256_set1_ps(value); 2] }
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> Pair {
            unsafe { [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))] }
        }
        #[inline(always)]
        unsafe fn store(to: *mut f32, v: Pair) {
            unsafe {
                _mm256_storeu_ps(to, v[0]);
                _mm256_storeu_ps(to.add(8), v[1]);
            }
        }
        #[inline(always)]
        unsafe fn gather(from: *const f32, at: *const u32) -> Pair {
            unsafe {
                let half = |at: *const u32| _mm256_i32gather_ps::<4>(from, _mm256_loadu_si256(at.cast()));
                [half(at), half(at.add(8))]
            }
        }
        #[inline(always)]
        unsafe fn add(a: Pair, b: Pair) -> Pair {
            unsafe { [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])] }
        }
        #[inline(always)]
        unsafe fn sub(a: Pair, b: Pair) -> Pair {
            unsafe { [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])] }
        }
        #[inline(always)]
        unsafe fn mul(a: Pair, b: Pair) -> Pair {
            unsafe { [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])] }
        }
        #[inline(always)]
        unsafe fn max(a: Pair, b: Pair) -> Pair {
            unsafe { [_mm256_max_ps(a[0], b[0]), _mm256_max_ps(a[1], b[1])] }
        }
        #[inline(always)]
        unsafe fn min(a: Pair, b: Pair) -> Pair {
            unsafe { [_mm256_min_ps(a[0], b[0]), _mm256_min_ps(a[1], b[1])] }
        }
        #[inline(always)]
        unsafe fn fma(a: Pair, b: Pair, c: Pair) -> Pair {
            unsafe { [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])] }
        }
        #[inline(always)]
        unsafe fn reciprocal(a: Pair) -> Pair {
            unsafe { [_mm256_rcp_ps(a[0]), _mm256_rcp_ps(a[1])] }
        }
        #[inline(always)]
        unsafe fn less(a: Pair, b: Pair) -> Pair {
            unsafe { [_mm256_cmp_ps::<_CMP_LT_OQ>(a[0], b[0]), _mm256_cmp_ps::<_CMP_LT_OQ>(a[1], b[1])] }
        }
        #[inline(always)]
        unsafe fn select(mask: Pair, a: Pair, b: Pair) -> Pair {
            unsafe { [_mm256_blendv_ps(b[0], a[0], mask[0]), _mm256_blendv_ps(b[1], a[1], mask[1])] }
        }
        #[inline(always)]
        unsafe fn reduce_min(a: Pair) -> f32 {
            unsafe {
                across(
                    _mm256_min_ps(a[0], a[1]),
                    #[inline(always)]
                    |a, b| _mm_min_ps(a, b),
                )
            }
        }
        #[inline(always)]
        unsafe fn reduce_max(a: Pair) -> f32 {
            unsafe {
                across(
                    _mm256_max_ps(a[0], a[1]),
                    #[inline(always)]
                    |a, b| _mm_max_ps(a, b),
                )
            }
        }
        #[inline(always)]
        unsafe fn round(a: Pair) -> Pair {
            unsafe {
                const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
                [_mm256_round_ps::<NEAREST>(a[0]), _mm256_round_ps::<NEAREST>(a[1])]
            }
        }
        #[inline(always)]
        unsafe fn scale(a: Pair, n: Pair) -> Pair {
            unsafe { [scale_half(a[0], n[0]), scale_half(a[1], n[1])] }
        }
        #[inline(always)]
        unsafe fn add_to_f64(to: *mut f64, a: Pair) {
            unsafe {
                add_half(to, a[0]);
                add_half(to.add(8), a[1]);
            }
        }
    }
}
