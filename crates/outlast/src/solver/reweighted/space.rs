//! Which machines a problem gets, and the matrices they share.
//!
//! | machines | for | kept |
//! |---|---|---|
//! | [`Narrow`] | squared hinge, linear, d <= n and d <= 2,000 | d x d for each function |
//! | [`Stored`] | squared hinge, kernels, and linear with d > n | the n x n kernel matrix, once |
//! | [`General`] | the other losses, and whatever is too large for these, or so sparse that its non-zeros are less work | what the solver behind keeps |

use super::super::Options;
use super::super::newton::STEEPEST;
use super::super::scaled::Scaled;
use super::general::General;
use super::machine::Machine;
use super::narrow::Narrow;
use super::starts::is_cheap;
use super::stored::{DIRECT_ROWS, Stored, Values, from_inner_products};
use crate::data::Design;
use crate::error::{Error, Result};
use crate::linalg::dot;
use crate::problem::{Coded, KernelFunction, Loss};
use rayon::prelude::*;

/// Which matrix the squared hinge's systems are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Matrix {
    /// The smaller one that fits, or none where X is so sparse that conjugate gradients take less work.
    #[default]
    Auto,
    /// d x d, linear functions only.
    Columns,
    /// n x n.
    Rows,
}

const MOST_COLUMNS: usize = 2000;

/// Rows up to which an n x n matrix is used for linear functions.
const MOST_ROWS: usize = 6000;

/// Passes over the non-zeros that a fit by conjugate gradients takes, about.
const PASSES: f64 = 2000.0;

/// Rows from which the values of an rbf kernel are computed from inner products.
const MANY_ROWS: usize = 300;

/// Matrices that machines borrow.
pub(super) enum Space<'a> {
    Columns(Scaled<'a>),
    Rows(Values),
    Other,
}

impl<'a> Space<'a> {
    /// The space of squared hinges: that of the matrix asked for, else of whatever takes less work.
    pub(super) fn new(problem: &Coded<'a>, matrix: Matrix, options: &Options) -> Result<Space<'a>> {
        match matrix {
            Matrix::Auto if gradients_are_cheaper(problem) => Ok(Space::Other),
            _ => Space::with_matrix(problem, matrix, options),
        }
    }

    /// The same, with a matrix wherever it has room.
    pub(super) fn with_matrix(problem: &Coded<'a>, matrix: Matrix, options: &Options) -> Result<Space<'a>> {
        let linear = matches!(problem.kernel, KernelFunction::Linear);
        let n = problem.rows();
        // the matrix, and a factor for each function that is being solved
        let factors = rayon::current_num_threads().min(problem.functions) * n.min(DIRECT_ROWS).pow(2);
        let room = n.saturating_mul(n).saturating_add(factors).saturating_mul(8) <= options.cache_bytes.max(1 << 20);
        let columns = || Space::Columns(scaled(problem));
        match matrix {
            Matrix::Columns if linear => Ok(columns()),
            Matrix::Columns => Err(Error::parameter("matrix", "columns", "rows, or the linear kernel")),
            Matrix::Rows => Ok(Space::Rows(values(problem))),
            Matrix::Auto if linear && fits_columns(problem) => Ok(columns()),
            Matrix::Auto if room && (!linear || n <= MOST_ROWS) => Ok(Space::Rows(values(problem))),
            Matrix::Auto => Ok(Space::Other),
        }
    }

    /// The machines of a problem with the squared hinge.
    pub(super) fn machines<'b>(&'b self, problem: &Coded<'b>, options: &Options) -> Vec<Box<dyn Machine + 'b>> {
        let of_function = |function: usize| -> Box<dyn Machine + 'b> {
            let signs = signs(problem, function);
            match self {
                Space::Columns(data) => {
                    let most = STEEPEST / data.largest_squared_norm().max(1.0);
                    Box::new(Narrow::new(data, signs, problem.intercept, most))
                }
                Space::Rows(values) => Box::new(Stored::new(values, signs, problem.intercept)),
                Space::Other => Box::new(general(problem, Loss::squared_hinge(), signs, options)),
            }
        };
        (0..problem.functions).map(of_function).collect()
    }
}

/// Whether X is so sparse that conjugate gradients take less work than a matrix of its rows and a factor of that; not where the fit is so
/// small that all starts are tried, of which some take linear systems.
fn gradients_are_cheaper(problem: &Coded) -> bool {
    let (x, n) = (problem.x, problem.rows() as f64);
    if !matches!(problem.kernel, KernelFunction::Linear) || !x.is_sparse() || is_cheap(problem) {
        return false;
    }
    let stored = x.stored() as f64;
    let order = if fits_columns(problem) { x.cols() as f64 } else { n };
    let matrix = if fits_columns(problem) { stored * stored / n } else { n * stored };
    matrix + order.powi(3) / 3.0 > PASSES * 2.0 * stored
}

fn fits_columns(problem: &Coded) -> bool {
    let d = problem.x.cols();
    d <= problem.rows() && d <= MOST_COLUMNS
}

/// What would let [`Space::with_matrix`] find a matrix for a problem that has none.
pub(super) fn allowed_for_matrices(problem: &Coded) -> String {
    match problem.kernel {
        KernelFunction::Linear => {
            format!(
                "\"exact\", or at most {MOST_COLUMNS} columns, or at most {MOST_ROWS} rows whose matrix fits cache_size"
            )
        }
        _ => {
            let megabytes = (problem.rows() as f64).powi(2) * 8.0 / 1e6;
            format!("\"exact\", or a cache_size of at least {megabytes:.0} megabytes, which holds the kernel matrix")
        }
    }
}

/// The machines of any other loss.
pub(super) fn general_machines<'b>(problem: &Coded<'b>, loss: Loss, options: &Options) -> Vec<Box<dyn Machine + 'b>> {
    let of_function = |function: usize| -> Box<dyn Machine + 'b> {
        Box::new(general(problem, loss, signs(problem, function), options))
    };
    (0..problem.functions).map(of_function).collect()
}

fn general<'b>(problem: &Coded<'b>, loss: Loss, signs: Vec<f64>, options: &Options) -> General<'b> {
    General::new((problem.x, problem.kernel), loss, signs, problem.intercept, options.clone())
}

fn signs(problem: &Coded, function: usize) -> Vec<f64> {
    (0..problem.rows()).map(|row| problem.sign(row, function)).collect()
}

/// The rows in their units. Where the weights would leave the range in units that suit the rows, these come first: the weights are
/// cut off at [`STEEPEST`] then.
fn scaled<'a>(problem: &Coded<'a>) -> Scaled<'a> {
    let data = Scaled::new(problem.x, problem.caps);
    if data.largest_squared_norm() < STEEPEST { data } else { Scaled::by_entries(problem.x) }
}

fn values(problem: &Coded) -> Values {
    let (x, n) = (problem.x, problem.rows());
    let quick = match problem.kernel {
        KernelFunction::Linear => Some(linear_values(problem)),
        KernelFunction::Rbf { gamma } if !x.is_sparse() && n >= MANY_ROWS => {
            rbf_values(x, *gamma).map(|matrix| (matrix, 1.0))
        }
        _ => None,
    };
    let (matrix, unit) = quick.unwrap_or_else(|| {
        let mut matrix = vec![0.0; n * n];
        let all: Vec<u32> = (0..n as u32).collect();
        let mut rows: Vec<&mut [f64]> = matrix.chunks_mut(n.max(1)).collect();
        problem.kernel.for_each_row(x, x, &all, &all, &mut rows, |row, values| row.copy_from_slice(values));
        (matrix, 1.0)
    });
    let largest = (0..n).map(|row| matrix[row * n + row].abs()).fold(f64::MIN_POSITIVE, f64::max);
    Values { rows: n, matrix, unit, most: STEEPEST / largest.max(1.0) }
}

/// Inner products in the units of [`Scaled`], and the factor of the weights that goes with them.
fn linear_values(problem: &Coded) -> (Vec<f64>, f64) {
    let data = scaled(problem);
    let (design, n, d) = (data.design(), data.rows(), data.cols());
    let (shrink, unit) = (data.shrink(), data.enter(1.0).min(f64::MAX));
    if design.is_sparse() {
        let mut matrix = vec![0.0; n * n];
        matrix.par_chunks_mut(n.max(1)).enumerate().for_each_init(
            || vec![0.0; d],
            |own, (row, out)| {
                design.for_each(row, &mut |column, value| own[column] = value * shrink);
                out.iter_mut().enumerate().for_each(|(other, out)| *out = data.dot(other, own));
                design.for_each(row, &mut |column, _| own[column] = 0.0);
            },
        );
        return (matrix, unit);
    }
    let mut scratch = Vec::new();
    let rows = design.block(0..n, &mut scratch);
    let moderate = shrink.log2().abs() < 200.0;
    let matrix = match moderate {
        true => from_inner_products(rows, n, |_, _, inner| inner * shrink * shrink),
        false => from_inner_products(&rows.iter().map(|x| x * shrink).collect::<Vec<f64>>(), n, |_, _, inner| inner),
    };
    (matrix, unit)
}

/// Largest error of a kernel value that inner products may cause; beyond it the distance is summed up from the differences.
const KERNEL_ERROR: f64 = 1e-13;

/// exp(-gamma |x - z|^2) from the inner products of centred rows; `None` where their squares overflow.
fn rbf_values(x: &dyn Design, gamma: f64) -> Option<Vec<f64>> {
    let (n, d) = (x.rows(), x.cols());
    let mut scratch = Vec::new();
    let given = x.block(0..n, &mut scratch);
    let mut rows = given.to_vec();
    let mut means = vec![0.0; d];
    for row in rows.chunks_exact(d) {
        means.iter_mut().zip(row).for_each(|(mean, x)| *mean += x / n as f64);
    }
    for row in rows.chunks_exact_mut(d) {
        row.iter_mut().zip(&means).for_each(|(x, mean)| *x -= mean);
    }
    let squares: Vec<f64> = rows.chunks_exact(d).map(|row| dot(row, row)).collect();
    if !squares.iter().all(|square| *square < 1e300) {
        return None;
    }
    Some(from_inner_products(&rows, n, |i, j, inner| {
        let sum = squares[i] + squares[j];
        let square = if i == j { 0.0 } else { (sum - 2.0 * inner).max(0.0) };
        let value = exp_negative(-gamma * square);
        // |x|^2 + |z|^2 - 2 x'z is wrong by a few roundings of its terms, the value by gamma times that; far apart it is 0 anyway
        if gamma * sum * f64::EPSILON <= KERNEL_ERROR || (value == 0.0 && square > 1e-3 * sum) {
            return value;
        }
        let (one, other) = (&given[i * d..(i + 1) * d], &given[j * d..(j + 1) * d]);
        exp_negative(-gamma * one.iter().zip(other).map(|(x, z)| (x - z).powi(2)).sum::<f64>())
    }))
}

/// exp(x) for x <= 0, to an error of a few roundings: a library call each would cost more than the inner product. With
/// x = k log 2 + r, |r| <= log(2) / 2, it is 2^k times the Taylor polynomial of exp(r), whose remainder is below 1e-17.
#[inline(always)]
fn exp_negative(x: f64) -> f64 {
    const HIGH: f64 = 6.931_471_803_691_238e-1;
    const LOW: f64 = 1.908_214_929_270_587_7e-10;
    // adding and taking away 1.5 * 2^52 rounds to a whole number
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const INVERSE_FACTORIALS: [f64; 14] = [
        1.0 / 6_227_020_800.0,
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    // below that the result is 0 to working precision beside the 1 on the diagonal; also stops NaN and -infinity
    if !(x > -700.0) {
        return 0.0;
    }
    let k = (x * std::f64::consts::LOG2_E + ROUND) - ROUND;
    let r = (x - k * HIGH) - k * LOW;
    let power = INVERSE_FACTORIALS.iter().fold(0.0, |sum, factor| sum * r + factor);
    power * f64::from_bits(((1023 + k as i64) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::exp_negative;

    #[test]
    fn exponentials_are_those_of_the_library() {
        for step in 0..70_000 {
            let x = -0.01 * f64::from(step) + 1e-3 * f64::from(step % 7);
            let (own, library) = (exp_negative(x.min(0.0)), x.min(0.0).exp());
            assert!((own - library).abs() <= 1e-15 * library, "{x}: {own} {library}");
        }
        assert_eq!(exp_negative(0.0), 1.0);
        assert_eq!(exp_negative(f64::NEG_INFINITY), 0.0);
        assert_eq!(exp_negative(-1e300), 0.0);
    }
}
