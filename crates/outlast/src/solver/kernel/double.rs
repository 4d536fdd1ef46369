//! The last digits on few rows: SMO with the whole matrix in double precision.
//!
//! Refinement with f32 blocks contracts slowly where rows are nearly alike: large moves between them hardly change the
//! objective but carry f32 errors. On few rows the matrix fits in f64 and there is nothing to refine. Same steps as
//! [`block`](super::block); cost 4 n multiply-adds a step, memory 8 n^2 bytes.

use super::dual::Dual;
use crate::control::Control;
use crate::error::Result;

/// Rows up to which the matrix is taken in double precision.
pub(crate) const ROWS: usize = 1500;

/// Steps per row before giving up, and multiply-adds.
const PATIENCE: usize = 2000;
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
    for step in 0..(PATIENCE * size).min(WORK / (4 * size)) {
        if step % size == 0 {
            control.check()?;
            dual.beta.copy_from_slice(&beta[..rows]);
            dual.gradient[..rows].copy_from_slice(&gradient[..rows]);
            if dual.measure().relative_gap() <= tolerance || control.out_of_time() {
                break;
            }
        }
        let rising = (0..size).filter(|&row| beta[row] < upper[row]);
        let Some(i) = rising.min_by(|&a, &b| gradient[a].total_cmp(&gradient[b])) else { break };
        let k_i = &kernel[i * size..(i + 1) * size];
        let curvature = |j: usize| {
            let sum = k_i[i] + kernel[j * size + j];
            (sum - 2.0 * k_i[j]).max(FLAT * sum).max(f64::MIN_POSITIVE)
        };
        let falling = (0..size).filter(|&row| beta[row] > lower[row] && gradient[row] > gradient[i]);
        let gain = |j: usize| (gradient[j] - gradient[i]).powi(2) / curvature(j);
        let Some(j) = falling.max_by(|&a, &b| gain(a).total_cmp(&gain(b))) else { break };
        let wanted = (gradient[j] - gradient[i]) / curvature(j);
        let moved = wanted.min(upper[i] - beta[i]).min(beta[j] - lower[j]);
        beta[i] = if moved < upper[i] - beta[i] { beta[i] + moved } else { upper[i] };
        beta[j] = if moved < beta[j] - lower[j] { beta[j] - moved } else { lower[j] };
        let k_j = &kernel[j * size..(j + 1) * size];
        for ((f, a), b) in gradient.iter_mut().zip(k_i).zip(k_j) {
            *f += moved * (a - b);
        }
    }
    dual.beta.copy_from_slice(&beta[..rows]);
    // what rounding added up over the steps
    dual.refresh();
    Ok(())
}
