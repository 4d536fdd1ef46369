//! The same problem in columns that floating point likes.
//!
//! *Centres.* A column far from 0 next to its spread is nearly a multiple of the intercept's, and products of the two lose all digits
//! of what tells them apart. b is not penalised, so that w'x + b = w'(x - center) + (b + w'center) is the same problem.
//!
//! *Units*, for q > 1. With X = t X' and w = w' / t, t^q P = sum |w'|^q + sum t^q c [..]_+: the problem of X' and t^q c. Where t^q c is
//! next to nothing, w = 0 but for less than rounding; where it is beyond 1e200, rows that are decided wrongly are all that counts.
//!
//! Both are done on a copy of X, and only where they are needed. t is a power of two, and a difference of numbers this close is exact,
//! so that nothing is rounded.

use super::super::proximal::{self, Weighted, by_column};
use super::super::{Options, Solution, Start};
use crate::control::Control;
use crate::data::{Csr, Dense, Design};
use crate::error::Result;
use crate::problem::LqProblem;

/// How many times its spread a column may be away from 0.
const FAR: f64 = 8.0;
/// The binary logarithm of a unit that needs no change.
const NEAR: f64 = 40.0;
/// Sum of the caps, times columns, below which coefficients save less than rounding: they save at most a quarter of that, relatively.
const NOTHING: f64 = 1e-20;
/// Largest cap.
const MOST: f64 = 1e200;

/// Lets `run` solve on centred columns, which is told what was taken off them (nothing, or one number per column).
pub(super) fn centred(
    problem: &LqProblem,
    options: &Options,
    run: impl FnOnce(&LqProblem, &Options, &[f64]) -> Result<Vec<Solution>>,
) -> Result<Vec<Solution>> {
    let centers = if problem.intercept { far_centers(problem.x) } else { None };
    let Some(centers) = centers else { return run(problem, options, &[]) };
    let x = copied(problem.x, |column, value| value - centers[column])?;
    let mut options = options.clone();
    if let Some(start) = &mut options.start {
        move_intercepts(start.weights.as_deref(), &mut start.intercepts, &centers, 1.0);
    }
    let mut found = run(&problem.on(x.as_ref()), &options, &centers)?;
    for solution in &mut found {
        move_intercepts(solution.weights.as_deref(), &mut solution.intercepts, &centers, -1.0);
    }
    Ok(found)
}

/// b += sign w'center
pub(super) fn move_intercepts(weights: Option<&[f64]>, intercepts: &mut [f64], centers: &[f64], sign: f64) {
    let Some(weights) = weights.filter(|weights| weights.len() == intercepts.len() * centers.len()) else { return };
    for (b, w) in intercepts.iter_mut().zip(weights.chunks_exact(centers.len().max(1))) {
        *b += sign * w.iter().zip(centers).map(|(w, center)| w * center).sum::<f64>();
    }
}

/// The mean of every column that is far from 0 and stored in all rows, 0 for the others; `None` if there is no such column.
fn far_centers(x: &dyn Design) -> Option<Vec<f64>> {
    let n = x.rows();
    let mut first = vec![0.0; x.cols()];
    if n == 0 {
        return None;
    }
    x.copy_row(0, &mut first);
    let spread = by_column(x, &|column, value| (value - first[column]).abs(), &f64::max);
    let far = |column: usize| spread[column] > 0.0 && first[column].abs() > FAR * spread[column];
    if !(0..x.cols()).any(far) {
        return None;
    }
    let stored = if x.is_sparse() { by_column(x, &|_, _| 1.0, &|a, b| a + b) } else { vec![n as f64; x.cols()] };
    let sums = by_column(x, &|column, value| value - first[column], &|a, b| a + b);
    let center = |column: usize| match far(column) && stored[column] == n as f64 {
        true => first[column] + sums[column] / n as f64,
        false => 0.0,
    };
    let centers: Vec<f64> = (0..x.cols()).map(center).collect();
    centers.iter().any(|center| *center != 0.0).then_some(centers)
}

/// A copy with every stored entry changed.
fn copied(x: &dyn Design, change: impl Fn(usize, f64) -> f64) -> Result<Box<dyn Design>> {
    let (n, d) = (x.rows(), x.cols());
    if !x.is_sparse() {
        let mut values = vec![0.0; n * d];
        for (row, out) in values.chunks_exact_mut(d.max(1)).enumerate() {
            x.copy_row(row, out);
            out.iter_mut().enumerate().for_each(|(column, value)| *value = change(column, *value));
        }
        return Ok(Box::new(Dense::new(n, d, values)?));
    }
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..n {
        x.for_each(row, &mut |column, value| {
            columns.push(column as u32);
            values.push(change(column, value));
        });
        starts.push(values.len());
    }
    Ok(Box::new(Csr::new(n, d, starts, columns, values)?))
}

/// Lets `run` solve in a unit of X in which its largest columns are near 1; q > 1.
pub(super) fn in_units(
    problem: &LqProblem,
    options: &Options,
    control: &Control,
    run: impl FnOnce(&LqProblem, &Options) -> Result<Solution>,
) -> Result<Solution> {
    let largest = by_column(problem.x, &|_, value| value.abs(), &f64::max).into_iter().fold(0.0, f64::max);
    if largest == 0.0 || largest.log2().abs() <= NEAR {
        return run(problem, options);
    }
    let unit = 2f64.powi(largest.log2().round().clamp(-1000.0, 1000.0) as i32);
    let factor = unit.powf(problem.q);
    let caps: Vec<f64> = problem.caps.iter().map(|cap| (cap * factor).min(MOST)).collect();
    if caps.iter().sum::<f64>() * (problem.x.cols() as f64) < NOTHING {
        return constant(problem, options, control);
    }
    // what is left of 1e300 in units of 2^1000
    let shrink = 1.0 / unit;
    let x = copied(problem.x, |_, value| value * shrink)?;
    let mut options = options.clone();
    options.start = options.start.take().map(|start| Start {
        weights: start.weights.map(|weights| weights.iter().map(|w| w * unit).collect()),
        expansion: start.expansion.iter().map(|v| v * factor).collect(),
        ..start
    });
    let found = run(&LqProblem { x: x.as_ref(), caps: &caps, ..*problem }, &options)?;
    let weights: Vec<f64> = found.weights.iter().flatten().map(|w| w / unit).collect();
    let objective = problem.penalty(&weights) + problem.loss(&found.decision);
    Ok(Solution {
        expansion: found.expansion.iter().map(|v| v / factor).collect(),
        weights: Some(weights),
        objective,
        trace: vec![objective],
        ..found
    })
}

/// The best of all solutions with w = 0.
fn constant(problem: &LqProblem, options: &Options, control: &Control) -> Result<Solution> {
    let mut engine = Weighted::new(problem, options.max_iterations);
    engine.set_rates(&vec![f64::INFINITY; problem.functions * problem.x.cols()]);
    let step = engine.minimize(options.tolerance, control)?;
    Ok(Solution { solver: proximal::NAME, ..super::solution(problem, &engine, step) })
}
