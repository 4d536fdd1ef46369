//! Products of a block of f32 rows with a few columns at once, for iterations whose direction, not whose answer, they decide.
//! Rows and columns are padded with zeros to a stride that is a multiple of [`WIDE`].

/// Lanes of the widest vector used, in f32. Strides are multiples of this.
pub const WIDE: usize = 16;

#[inline(always)]
fn fused<const FMA: bool>(a: f32, b: f32, sum: f32) -> f32 {
    if FMA { a.mul_add(b, sum) } else { a * b + sum }
}

#[inline(always)]
fn lanes(values: &[f32], at: usize) -> &[f32; WIDE] {
    values[at..].first_chunk().expect("the stride is padded")
}

/// out[i columns + k] = row_i . x_k
#[inline(always)]
pub(super) fn products<const FMA: bool>(rows: &[f32], stride: usize, x: &[f32], columns: usize, out: &mut [f32]) {
    for (row, out) in rows.chunks_exact(stride).zip(out.chunks_exact_mut(columns)) {
        let mut k = 0;
        while k + 4 <= columns {
            products_of::<FMA, 4>(row, &x[k * stride..], &mut out[k..k + 4]);
            k += 4;
        }
        while k < columns {
            products_of::<FMA, 1>(row, &x[k * stride..], &mut out[k..k + 1]);
            k += 1;
        }
    }
}

#[inline(always)]
fn products_of<const FMA: bool, const C: usize>(row: &[f32], x: &[f32], out: &mut [f32]) {
    let stride = row.len();
    let mut sums = [[0.0f32; WIDE]; C];
    for j in (0..stride).step_by(WIDE) {
        let f = lanes(row, j);
        for (k, sums) in sums.iter_mut().enumerate() {
            let x = lanes(x, k * stride + j);
            for lane in 0..WIDE {
                sums[lane] = fused::<FMA>(f[lane], x[lane], sums[lane]);
            }
        }
    }
    for (out, sums) in out.iter_mut().zip(&sums) {
        let half: [f32; 8] = std::array::from_fn(|lane| sums[lane] + sums[lane + 8]);
        let quarter: [f32; 4] = std::array::from_fn(|lane| half[lane] + half[lane + 4]);
        *out = (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
    }
}

/// out_k += sum_i factors[i columns + k] row_i
#[inline(always)]
pub(super) fn combine<const FMA: bool>(rows: &[f32], stride: usize, factors: &[f32], columns: usize, out: &mut [f32]) {
    for (rows, factors) in rows.chunks(4 * stride).zip(factors.chunks(4 * columns)) {
        for (k, out) in out.chunks_exact_mut(stride).enumerate() {
            if rows.len() == 4 * stride {
                let a: [f32; 4] = std::array::from_fn(|i| factors[i * columns + k]);
                for (j, out) in out.chunks_exact_mut(WIDE).enumerate() {
                    let f: [&[f32; WIDE]; 4] = std::array::from_fn(|i| lanes(rows, i * stride + j * WIDE));
                    for lane in 0..WIDE {
                        let first = fused::<FMA>(a[1], f[1][lane], a[0] * f[0][lane]);
                        let second = fused::<FMA>(a[3], f[3][lane], a[2] * f[2][lane]);
                        out[lane] += first + second;
                    }
                }
            } else {
                for (i, f) in rows.chunks_exact(stride).enumerate() {
                    let a = factors[i * columns + k];
                    out.iter_mut().zip(f).for_each(|(out, f)| *out = fused::<FMA>(a, *f, *out));
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod wide {
    use super::WIDE;
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx2,fma")]
    pub(in super::super) fn products_avx2(rows: &[f32], stride: usize, x: &[f32], columns: usize, out: &mut [f32]) {
        super::products::<true>(rows, stride, x, columns, out);
    }

    #[target_feature(enable = "avx2,fma")]
    pub(in super::super) fn combine_avx2(
        rows: &[f32],
        stride: usize,
        factors: &[f32],
        columns: usize,
        out: &mut [f32],
    ) {
        super::combine::<true>(rows, stride, factors, columns, out);
    }

    /// # Safety
    /// `rows` must hold n rows of `stride` values, `stride` a multiple of 16, `x` `columns` such, `out` n x `columns` values.
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(in super::super) unsafe fn products_avx512(
        rows: &[f32],
        stride: usize,
        x: &[f32],
        columns: usize,
        out: &mut [f32],
    ) {
        let count = rows.len() / stride;
        let mut k = 0;
        while k < columns {
            let width = (columns - k).min(4);
            let mut i = 0;
            while i < count {
                let high = if count - i >= 4 { 4 } else { 1 };
                let (f, x) = (&rows[i * stride..], &x[k * stride..]);
                let out = &mut out[i * columns + k..];
                // SAFETY: rows i..i+high and columns k..k+width exist.
                unsafe {
                    match (high, width) {
                        (4, 4) => block::<4, 4>(f, stride, x, columns, out),
                        (4, 3) => block::<4, 3>(f, stride, x, columns, out),
                        (4, 2) => block::<4, 2>(f, stride, x, columns, out),
                        (4, _) => block::<4, 1>(f, stride, x, columns, out),
                        (_, 4) => block::<1, 4>(f, stride, x, columns, out),
                        (_, 3) => block::<1, 3>(f, stride, x, columns, out),
                        (_, 2) => block::<1, 2>(f, stride, x, columns, out),
                        (_, _) => block::<1, 1>(f, stride, x, columns, out),
                    }
                }
                i += high;
            }
            k += width;
        }
    }

    /// # Safety
    /// R rows in `rows`, C columns in `x`, and in `out` R rows of `columns` values, the last at least C.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn block<const R: usize, const C: usize>(
        rows: &[f32],
        stride: usize,
        x: &[f32],
        columns: usize,
        out: &mut [f32],
    ) {
        let mut sums = [[_mm512_setzero_ps(); C]; R];
        // SAFETY: the caller's promise; j + 16 <= stride.
        unsafe {
            for j in (0..stride).step_by(WIDE) {
                let right: [__m512; C] = std::array::from_fn(|k| _mm512_loadu_ps(x.as_ptr().add(k * stride + j)));
                for (i, sums) in sums.iter_mut().enumerate() {
                    let left = _mm512_loadu_ps(rows.as_ptr().add(i * stride + j));
                    for k in 0..C {
                        sums[k] = _mm512_fmadd_ps(left, right[k], sums[k]);
                    }
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            for (k, sum) in sums.iter().enumerate() {
                out[i * columns + k] = _mm512_reduce_add_ps(*sum);
            }
        }
    }

    /// # Safety
    /// `rows` must hold n rows of `stride` values, `stride` a multiple of 16, `factors` n x `columns` values, `out` `columns` rows.
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(in super::super) unsafe fn combine_avx512(
        rows: &[f32],
        stride: usize,
        factors: &[f32],
        columns: usize,
        out: &mut [f32],
    ) {
        let count = rows.len() / stride;
        let mut i = 0;
        while i < count {
            let high = if count - i >= 8 { 8 } else { 1 };
            let (f, a) = (&rows[i * stride..], &factors[i * columns..]);
            let mut k = 0;
            while k < columns {
                let wide = if columns - k >= 2 { 2 } else { 1 };
                // SAFETY: rows i..i+high and columns k..k+wide exist.
                unsafe {
                    match (high, wide) {
                        (8, 2) => add::<8, 2>(f, stride, a, columns, k, out),
                        (8, _) => add::<8, 1>(f, stride, a, columns, k, out),
                        (_, 2) => add::<1, 2>(f, stride, a, columns, k, out),
                        (_, _) => add::<1, 1>(f, stride, a, columns, k, out),
                    }
                }
                k += wide;
            }
            i += high;
        }
    }

    /// # Safety
    /// R rows in `rows` and `factors`, columns k..k+C in `out`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn add<const R: usize, const C: usize>(
        rows: &[f32],
        stride: usize,
        factors: &[f32],
        columns: usize,
        k: usize,
        out: &mut [f32],
    ) {
        let a: [[__m512; C]; R] =
            std::array::from_fn(|i| std::array::from_fn(|c| _mm512_set1_ps(factors[i * columns + k + c])));
        // SAFETY: the caller's promise; j + 16 <= stride.
        unsafe {
            for j in (0..stride).step_by(WIDE) {
                let target: [*mut f32; C] = std::array::from_fn(|c| out.as_mut_ptr().add((k + c) * stride + j));
                let mut sums: [__m512; C] = std::array::from_fn(|c| _mm512_loadu_ps(target[c]));
                for (i, a) in a.iter().enumerate() {
                    let f = _mm512_loadu_ps(rows.as_ptr().add(i * stride + j));
                    for c in 0..C {
                        sums[c] = _mm512_fmadd_ps(a[c], f, sums[c]);
                    }
                }
                for c in 0..C {
                    _mm512_storeu_ps(target[c], sums[c]);
                }
            }
        }
    }
}
