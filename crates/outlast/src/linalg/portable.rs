//! The block functions without intrinsics. `FMA` is set only where the instruction exists: elsewhere `mul_add` is a slow
//! library call.

use super::LANES;

#[inline(always)]
fn fused<const FMA: bool>(a: f64, b: f64, sum: f64) -> f64 {
    if FMA { a.mul_add(b, sum) } else { a * b + sum }
}

#[inline(always)]
pub(super) fn dots<const FMA: bool>(rows: &[f64], w: &[f64], out: &mut [f64]) {
    let columns = w.len();
    for (i, out) in out.iter_mut().enumerate() {
        let row = &rows[i * columns..(i + 1) * columns];
        let mut lanes = [0.0; LANES];
        let (xs, ws) = (row.chunks_exact(LANES), w.chunks_exact(LANES));
        let mut tail = 0.0;
        for (x, w) in xs.remainder().iter().zip(ws.remainder()) {
            tail = fused::<FMA>(*x, *w, tail);
        }
        for (x, w) in xs.zip(ws) {
            for lane in 0..LANES {
                lanes[lane] = fused::<FMA>(x[lane], w[lane], lanes[lane]);
            }
        }
        let half: [f64; 4] = std::array::from_fn(|lane| lanes[lane] + lanes[lane + 4]);
        *out = (half[0] + half[2]) + (half[1] + half[3]) + tail;
    }
}

#[inline(always)]
pub(super) fn accumulate<const FMA: bool>(rows: &[f64], factors: &[f64], out: &mut [f64]) {
    let columns = out.len();
    let quads = factors.len() / 4 * 4;
    for i in (0..quads).step_by(4) {
        let x: [&[f64]; 4] = std::array::from_fn(|r| &rows[(i + r) * columns..(i + r + 1) * columns]);
        let a: [f64; 4] = std::array::from_fn(|r| factors[i + r]);
        for j in 0..columns {
            let first = fused::<FMA>(a[1], x[1][j], a[0] * x[0][j]);
            let second = fused::<FMA>(a[3], x[3][j], a[2] * x[2][j]);
            out[j] += first + second;
        }
    }
    for i in quads..factors.len() {
        for (out, x) in out.iter_mut().zip(&rows[i * columns..(i + 1) * columns]) {
            *out = fused::<FMA>(factors[i], *x, *out);
        }
    }
}

/// Blocks of 4 x 8 entries of G stay in registers while the tile streams by.
#[inline(always)]
pub(super) fn gram<const FMA: bool>(tile: &[f64], stride: usize, gram: &mut [f64]) {
    for i in (0..stride).step_by(4) {
        for j in (0..=i).step_by(LANES) {
            let mut sums = [[0.0; LANES]; 4];
            for row in tile.chunks_exact(stride) {
                let right: &[f64; LANES] = row[j..].first_chunk().expect("the stride is padded");
                let left: &[f64; 4] = row[i..].first_chunk().expect("the stride is padded");
                for (sums, &left) in sums.iter_mut().zip(left) {
                    for lane in 0..LANES {
                        sums[lane] = fused::<FMA>(left, right[lane], sums[lane]);
                    }
                }
            }
            for (r, sums) in sums.iter().enumerate() {
                let out = &mut gram[(i + r) * stride + j..][..LANES];
                for (out, sum) in out.iter_mut().zip(sums) {
                    *out += sum;
                }
            }
        }
    }
}
