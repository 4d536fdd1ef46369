//! Weighted Gram matrices of many rows.

use super::{Isa, LANES, padded};
use rayon::prelude::*;

/// Rows of [`weighted_gram`] whose terms are added up in a row; then come the sums of as many.
pub const GRAM_DEPTH: usize = 512;
/// Rows per call of the Gram kernel.
const TILE: usize = 64;
/// As many pieces on any number of threads, so that sums are the same.
const PIECE: usize = GRAM_DEPTH;
/// Multiplications from which the pieces go to all threads.
const PARALLEL: usize = 1 << 23;

/// sum_i h_i f_i f_i' of rows f_i of m values with h_i >= 0: the lower triangle, row-major.
pub fn weighted_gram(rows: &[(&[f64], f64)], m: usize) -> Vec<f64> {
    let mut out = vec![0.0; m * m];
    if m == 0 || rows.is_empty() {
        return out;
    }
    let narrow = m < LANES;
    let (isa, stride) = (Isa::detect(), if narrow { m } else { padded(m) });
    let part = |rows: &[(&[f64], f64)]| {
        let mut gram = vec![0.0; stride * stride];
        if narrow {
            for (f, height) in rows {
                for j in 0..m {
                    let scaled = height * f[j];
                    gram[j * m..=j * m + j].iter_mut().zip(*f).for_each(|(out, value)| *out += scaled * value);
                }
            }
            return gram;
        }
        let mut tile = vec![0.0; TILE * stride];
        for rows in rows.chunks(TILE) {
            for (out, (f, height)) in tile.chunks_exact_mut(stride).zip(rows) {
                let root = height.sqrt();
                out.iter_mut().zip(*f).for_each(|(out, f)| *out = root * f);
            }
            isa.gram(&tile[..rows.len() * stride], stride, &mut gram);
        }
        gram
    };
    let add = |gram: &[f64], out: &mut [f64]| {
        for j in 0..m {
            let sums = &gram[j * stride..=j * stride + j];
            out[j * m..=j * m + j].iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
        }
    };
    if rows.len() * m * m < PARALLEL || rows.len() <= PIECE {
        rows.chunks(PIECE).for_each(|rows| add(&part(rows), &mut out));
    } else {
        let grams: Vec<Vec<f64>> = rows.par_chunks(PIECE).map(part).collect();
        grams.iter().for_each(|gram| add(gram, &mut out));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_sum_of_outer_products() {
        for (n, m) in [(0, 3), (5, 1), (700, 5), (3, 9), (1100, 20)] {
            let values: Vec<f64> = (0..n * m).map(|k| ((k * 7919 + 13) % 1000) as f64 / 1000.0 - 0.5).collect();
            let rows: Vec<(&[f64], f64)> =
                values.chunks_exact(m).zip(0..).map(|(f, i)| (f, f64::from(i % 4))).collect();
            let gram = weighted_gram(&rows, m);
            for j in 0..m {
                for k in 0..=j {
                    let sum: f64 = rows.iter().map(|(f, height)| height * f[j] * f[k]).sum();
                    assert!((gram[j * m + k] - sum).abs() <= 1e-12 * (1.0 + n as f64), "{n} {m} {j} {k}");
                }
            }
        }
    }
}
