//! The weighted normal matrix X'WX, summed over blocks of rows in parallel: O(n d^2), or O(non-zeros^2) for each sparse row.

use super::scaled::Scaled;
use faer::Mat;
use faer::linalg::matmul::matmul;
use rayon::prelude::*;

const BLOCK_ROWS: usize = 512;

/// The lower half of X'WX, with a last row (X'W1, 1'W1) if `border`.
pub(super) fn matrix(data: &Scaled, weights: &[f64], border: bool) -> Mat<f64> {
    let n = data.rows();
    let size = data.cols() + usize::from(border);
    let pieces = rayon::current_num_threads().clamp(1, 8).min(n.div_ceil(BLOCK_ROWS)).max(1);
    let length = n.div_ceil(pieces);
    // pairs of non-zeros beat dense blocks where rows are short, although they go one at a time
    let design = data.design();
    let sparse = design.is_sparse() && 4 * design.stored() < n * data.cols();
    let parts: Vec<Mat<f64>> = (0..pieces)
        .into_par_iter()
        .map(|piece| {
            let rows = piece * length..((piece + 1) * length).min(n);
            if sparse { sparse_part(data, weights, size, rows) } else { part(data, weights, size, rows) }
        })
        .collect();
    let mut sum = Mat::zeros(size, size);
    for part in parts {
        sum += part;
    }
    sum
}

fn sparse_part(data: &Scaled, weights: &[f64], size: usize, rows: std::ops::Range<usize>) -> Mat<f64> {
    let mut sum = Mat::zeros(size, size);
    let mut entries: Vec<(usize, f64)> = Vec::new();
    for row in rows.filter(|&row| weights[row] > 0.0) {
        entries.clear();
        data.design().for_each(row, &mut |column, value| entries.push((column, value * data.shrink())));
        if size > data.cols() {
            entries.push((data.cols(), 1.0));
        }
        for (position, &(column, value)) in entries.iter().enumerate() {
            let out = sum.col_as_slice_mut(column);
            let factor = weights[row] * value;
            entries[position..].iter().for_each(|&(other, value)| out[other] += factor * value);
        }
    }
    sum
}

fn part(data: &Scaled, weights: &[f64], size: usize, rows: std::ops::Range<usize>) -> Mat<f64> {
    let d = data.cols();
    let mut sum = Mat::zeros(size, size);
    let mut scratch = Vec::new();
    // columns of `scaled` are rows of X times the root of their weight
    let mut scaled = Mat::zeros(size, BLOCK_ROWS);
    let mut start = rows.start;
    while start < rows.end {
        let end = (start + BLOCK_ROWS).min(rows.end);
        let values = data.design().block(start..end, &mut scratch);
        for (k, row) in (start..end).enumerate() {
            let root = weights[row].sqrt();
            let factor = root * data.shrink();
            let column = scaled.col_as_slice_mut(k);
            for (out, value) in column.iter_mut().zip(&values[k * d..(k + 1) * d]) {
                *out = factor * value;
            }
            if size > d {
                column[d] = root;
            }
        }
        let block = scaled.subcols(0, end - start);
        matmul(sum.as_mut(), faer::Accum::Add, block, block.transpose(), 1.0, faer::Par::Seq);
        start = end;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, Dense, Design};

    #[test]
    fn dense_and_sparse_agree_with_the_definition() {
        let (n, d) = (700, 9);
        let entry = |k: usize| if k.is_multiple_of(7) { (k % 11) as f64 - 5.0 } else { 0.0 };
        let x = Dense::new(n, d, (0..n * d).map(entry).collect::<Vec<f64>>()).unwrap();
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in 0..n {
            for column in (0..d).filter(|column| x.row(row)[*column] != 0.0) {
                columns.push(column as u32);
                values.push(x.row(row)[column]);
            }
            starts.push(values.len());
        }
        let sparse = Csr::new(n, d, starts, columns, values).unwrap();
        let weights: Vec<f64> = (0..n).map(|row| (row % 5) as f64).collect();
        for design in [&x as &dyn Design, &sparse] {
            let data = Scaled::new(design, &[1.0]);
            let found = matrix(&data, &weights, true);
            let own = |row: usize, column: usize| if column < d { x.row(row)[column] * data.shrink() } else { 1.0 };
            for a in 0..=d {
                for b in 0..=a {
                    let expected: f64 = (0..n).map(|row| weights[row] * own(row, a) * own(row, b)).sum();
                    assert!((found[(a, b)] - expected).abs() <= 1e-12 * (1.0 + expected.abs()), "{a} {b}");
                }
            }
        }
    }
}
