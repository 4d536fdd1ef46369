//! Prediction: sum_j c_j k(z_j, x_i) for new rows x_i, for one function or several.

use super::{Coefficients, PANEL, Panels, Prepared, multiply_many};
use crate::data::Design;
use crate::linalg::Isa;
use crate::problem::KernelFunction;

/// Up to this many support vectors values are computed in double precision.
const FEW: usize = 512;

/// Rows packed at a time.
const BATCH: usize = 4096;

/// Error of a decision value that f32 tiles may cause, against 1 + the largest coefficient.
const ERROR: f64 = 2e-5;

/// Bytes that panels of sparse support vectors may take.
const PANELS: usize = 1 << 30;

/// The expansions at every row of `x`, rows x functions, from coefficients z-rows x functions. Which precision is used
/// depends on the expansion alone, so that a row's value does not depend on the rows it is asked for with.
pub(crate) fn expand(
    kernel: &KernelFunction,
    z: &dyn Design,
    coefficients: &[f64],
    functions: usize,
    x: &dyn Design,
) -> Vec<f64> {
    let support: Vec<u32> = (0..z.rows() as u32).collect();
    let coefficients = Coefficients::from_dense(functions, coefficients);
    let exact = |rows: &[u32]| {
        let mut sums = vec![0.0; rows.len() * functions];
        let mut places: Vec<&mut [f64]> = sums.chunks_mut(functions).collect();
        kernel.for_each_row(x, z, rows, &support, &mut places, |sum, values| coefficients.add_products(values, sum));
        sums
    };
    let all: Vec<u32> = (0..x.rows() as u32).collect();
    let prepared = if z.rows() <= FEW { None } else { Prepared::new(z, kernel, PANELS) };
    let Some(prepared) = prepared else { return exact(&all) };
    // rounding errors of the values are independent: their sum grows like the root of the sum of squares
    let size = coefficients.squares().into_iter().fold(0.0, f64::max).sqrt() * prepared.unit;
    if prepared.value_error() * size > ERROR * (1.0 + coefficients.largest()) {
        return exact(&all);
    }
    let has_far_rows = !prepared.far_rows().is_empty();
    let isa = Isa::detect();
    let mut sums = Vec::with_capacity(x.rows() * functions);
    for batch in all.chunks(BATCH) {
        let rows = prepared.like(x, batch);
        let local: Vec<u32> = (0..batch.len() as u32).collect();
        let panels = Panels::new(&rows, &local);
        let mut values = vec![0.0; batch.len().next_multiple_of(PANEL) * functions];
        multiply_many(isa, &panels, &prepared, &support, &coefficients, &mut values);
        let of = |row: usize, function: usize| values[(row / PANEL * functions + function) * PANEL + row % PANEL];
        let start = sums.len();
        for row in 0..batch.len() {
            sums.extend((0..functions).map(|function| prepared.unit * of(row, function)));
        }
        // far rows lose the digits of their f32 exponents: only they are computed again, and only if it can matter
        if has_far_rows {
            let far: Vec<usize> = (0..batch.len()).filter(|&row| rows.is_far(row)).collect();
            let far_rows: Vec<u32> = far.iter().map(|&row| batch[row]).collect();
            for (row, values) in far.into_iter().zip(exact(&far_rows).chunks_exact(functions)) {
                sums[start + row * functions..start + (row + 1) * functions].copy_from_slice(values);
            }
        }
    }
    sums
}
