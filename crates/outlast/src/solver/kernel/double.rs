//! The last digits on few rows: SMO with the whole matrix in double precision.
//!
//! Refinement with f32 blocks contracts slowly where rows are nearly alike: large moves between them hardly change the
//! objective but carry f32 errors. On few rows the matrix fits in f64 and there is nothing to refine. Same steps as
//! [`block`](super::block); cost 4 n multiply-adds a step, memory 8 n^2 bytes.

use super::dual::Dual;
use super::ranges::Ranges;
use crate::control::Control;
use crate::error::Result;

/// Rows up to which the matrix is taken in double precision.
pub(crate) const ROWS: usize = 1500;

/// Steps per row before giving up, and multiply-adds: few rows may take more steps, as badly scaled columns ask for, in no time.
const PATIENCE: usize = 2000;
const LEAST_WORK: usize = 50_000_000;
const WORK: usize = 2_000_000_000;

/// A curvature below this share of K_ii + K_jj is rounding.
const FLAT: f64 = 1e-12;

/// Minimises from the dual's current state, F being exact, to a relative gap, or as far as the steps reach.
pub(crate) fn finish(dual: &mut Dual, tolerance: f64, control: &Control) -> Result<()> {
    let rows = dual.rows();
    // without an intercept the anchor is one more row of zeros
    let size = rows + usize::from(!dual.balanced);
    let kernel = dual.gram.double(size);
    let with_anchor = |values: &[f64], anchor: f64| -> Vec<f64> {
        let mut values = values[..rows].to_vec();
        values.resize(size, anchor);
        values
    };
    let (lower, upper) = (with_anchor(&dual.lower, f64::NEG_INFINITY), with_anchor(&dual.upper, f64::INFINITY));
    let (mut beta, mut gradient) = (with_anchor(&dual.beta, 0.0), with_anchor(&dual.gradient, 0.0));
    let ranges = Ranges { lower: &lower, upper: &upper, kinks: &[], jump: 0.0 };
    let mut left = (PATIENCE * size).max(LEAST_WORK / (4 * size)).min(WORK / (4 * size));
    while left > 0 {
        control.check()?;
        dual.beta.copy_from_slice(&beta[..rows]);
        dual.gradient[..rows].copy_from_slice(&gradient[..rows]);
        if dual.measure().relative_gap() <= tolerance || control.out_of_time() {
            break;
        }
        let most = size.min(left);
        left -= most;
        if minimize(&kernel, size, ranges, &mut beta, &mut gradient, 0.0, most) == 0 {
            break;
        }
    }
    dual.beta.copy_from_slice(&beta[..rows]);
    // what rounding added up over the steps
    dual.refresh();
    Ok(())
}

/// At most `most` steps on the whole of a dense matrix, to a violation of `eps`; `gradient` is kept up to date, without
/// what kinks have added to it. Returns the steps taken.
pub(crate) fn minimize(
    kernel: &[f64],
    size: usize,
    ranges: Ranges,
    beta: &mut [f64],
    gradient: &mut [f64],
    eps: f64,
    most: usize,
) -> usize {
    let start: Vec<i8> = (0..size).map(|row| ranges.kinks_below(row, beta[row])).collect();
    for step in 0..most {
        let rise = |row: usize| gradient[row] + ranges.piece(row, beta[row], start[row], true).1;
        let fall = |row: usize| gradient[row] + ranges.piece(row, beta[row], start[row], false).1;
        let rising = (0..size).filter(|&row| beta[row] < ranges.upper[row]);
        let Some((i, lowest)) = rising.map(|row| (row, rise(row))).min_by(|a, b| a.1.total_cmp(&b.1)) else {
            return step;
        };
        let k_i = &kernel[i * size..(i + 1) * size];
        let curvature = |j: usize| {
            let sum = k_i[i] + kernel[j * size + j];
            (sum - 2.0 * k_i[j]).max(FLAT * sum).max(f64::MIN_POSITIVE)
        };
        let gain = |j: usize| (fall(j) - lowest).powi(2) / curvature(j);
        let falling = (0..size).filter(|&row| beta[row] > ranges.lower[row] && fall(row) - lowest > eps);
        let best = falling.map(|row| (row, gain(row))).max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((j, _)) = best.filter(|(_, gain)| *gain > 0.0) else { return step };
        let (upper, lower) = (ranges.piece(i, beta[i], 0, true).0, ranges.piece(j, beta[j], 0, false).0);
        let wanted = (fall(j) - lowest) / curvature(j);
        let moved = wanted.min(upper - beta[i]).min(beta[j] - lower);
        beta[i] = if moved < upper - beta[i] { beta[i] + moved } else { upper };
        beta[j] = if moved < beta[j] - lower { beta[j] - moved } else { lower };
        let k_j = &kernel[j * size..(j + 1) * size];
        for ((f, a), b) in gradient.iter_mut().zip(k_i).zip(k_j) {
            *f += moved * (a - b);
        }
    }
    most
}
