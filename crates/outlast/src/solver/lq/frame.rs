//! The same problem in columns that floating point likes.
//!
//! *Stored columns.* Of sparse X, columns without any entry have the coefficient 0, and are left out.
//!
//! *Centres.* A column far from 0 next to its spread is nearly a multiple of the intercept's, and products of the two lose all digits
//! of what tells them apart. b is not penalised, so that w'x + b = w'(x - center) + (b + w'center) is the same problem. A constant column
//! becomes 0, and so does its coefficient.
//!
//! *Units*, for q > 1. With x_c = u_c x'_c and w_c = w'_c / u_c the penalty of a column counts u_c^-q, and all numbers are near 1. A
//! column whose penalty outweighs anything it could save is left out.
//!
//! Both are done on a copy of X, and only where they are needed. u_c is a power of two, and a difference of numbers this close is exact,
//! so that nothing is rounded.

use super::super::proximal::{self, Weighted, by_column};
use super::super::{Options, Solution, Start, Status};
use crate::control::Control;
use crate::data::{Csr, Dense, Design};
use crate::error::Result;
use crate::problem::LqProblem;

/// How many times its spread a column may be away from 0.
const FAR: f64 = 8.0;
/// The binary logarithm of a unit that needs no change.
const NEAR: f64 = 40.0;
/// What coefficients save, relative to the loss, that is less than rounding.
const NOTHING: f64 = 1e-20;

/// Lets `run` solve on the columns that have entries, where most have none.
pub(super) fn on_stored(
    problem: &LqProblem,
    options: &Options,
    run: impl FnOnce(&LqProblem, &Options) -> Result<Vec<Solution>>,
) -> Result<Vec<Solution>> {
    let Some(kept) = stored_columns(problem.x) else { return run(problem, options) };
    let (m, d, p) = (problem.functions, problem.x.cols(), kept.len());
    let x = only_columns(problem.x, &kept)?;
    let mut options = options.clone();
    if let Some(start) = &mut options.start {
        start.weights = start.weights.take().map(|weights| pick(&weights, d, &kept));
    }
    let mut found = run(&problem.on(&x), &options)?;
    for solution in &mut found {
        if let Some(few) = solution.weights.take().filter(|few| few.len() == m * p) {
            let mut weights = vec![0.0; m * d];
            few.iter().enumerate().for_each(|(at, w)| weights[at / p * d + kept[at % p]] = *w);
            solution.weights = Some(weights);
        }
    }
    Ok(found)
}

/// Some columns of coefficients, functions x `cols`.
pub(super) fn pick(weights: &[f64], cols: usize, kept: &[usize]) -> Vec<f64> {
    weights.chunks_exact(cols.max(1)).flat_map(|w| kept.iter().map(|&column| w[column])).collect()
}

/// The columns of sparse X with an entry; `None` if they are most of them.
fn stored_columns(x: &dyn Design) -> Option<Vec<usize>> {
    if !x.is_sparse() {
        return None;
    }
    let mut stored = vec![false; x.cols()];
    for row in 0..x.rows() {
        x.for_each(row, &mut |column, value| stored[column] |= value != 0.0);
    }
    // a design has at least one column
    stored[0] = true;
    let kept: Vec<usize> = (0..x.cols()).filter(|&column| stored[column]).collect();
    (2 * kept.len() < x.cols()).then_some(kept)
}

/// Some columns of sparse X, which ascend.
pub(super) fn only_columns(x: &dyn Design, kept: &[usize]) -> Result<Csr<'static>> {
    const NOWHERE: u32 = u32::MAX;
    let mut place = vec![NOWHERE; x.cols()];
    kept.iter().zip(0..).for_each(|(&column, slot)| place[column] = slot);
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..x.rows() {
        x.for_each(row, &mut |column, value| {
            if place[column] != NOWHERE {
                columns.push(place[column]);
                values.push(value);
            }
        });
        starts.push(values.len());
    }
    Csr::new(x.rows(), kept.len(), starts, columns, values)
}

/// Lets `run` solve on centred columns.
pub(super) fn centred(
    problem: &LqProblem,
    options: &Options,
    run: impl FnOnce(&LqProblem, &Options) -> Result<Vec<Solution>>,
) -> Result<Vec<Solution>> {
    let centers = if problem.intercept { far_centers(problem.x) } else { None };
    let Some(centers) = centers else { return run(problem, options) };
    let x = copied(problem.x, |column, value| value - centers[column])?;
    let mut options = options.clone();
    if let Some(start) = &mut options.start {
        move_intercepts(start.weights.as_deref(), &mut start.intercepts, &centers, 1.0);
    }
    let mut found = run(&problem.on(x.as_ref()), &options)?;
    for solution in &mut found {
        move_intercepts(solution.weights.as_deref(), &mut solution.intercepts, &centers, -1.0);
    }
    Ok(found)
}

/// b += sign w'center
fn move_intercepts(weights: Option<&[f64]>, intercepts: &mut [f64], centers: &[f64], sign: f64) {
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
    let spread = by_column(x, |column, value| (value - first[column]).abs(), f64::max);
    let far = |column: usize| first[column].abs() > FAR * spread[column];
    if !(0..x.cols()).any(far) {
        return None;
    }
    let stored = if x.is_sparse() { by_column(x, |_, _| 1.0, |a, b| a + b) } else { vec![n as f64; x.cols()] };
    let sums = by_column(x, |column, value| value - first[column], |a, b| a + b);
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

/// Columns in units of their own.
struct Units {
    /// 1 / u_c; 0 for columns that are left out.
    shrink: Vec<f64>,
    /// -q ln u_c; for columns that are left out a penalty like the loss.
    factors: Vec<f64>,
}

impl Units {
    /// `None` if the columns are well as they are.
    fn new(problem: &LqProblem) -> Option<Units> {
        let (q, n, d) = (problem.q, problem.rows(), problem.x.cols());
        let mut shrink = proximal::units(problem.x);
        let mut factors: Vec<f64> = shrink.iter().map(|shrink| q * shrink.ln()).collect();
        let steepest = 2.0 * n as f64 * problem.largest_cap();
        if steepest == 0.0 {
            return None;
        }
        let mut changed = shrink.iter().any(|shrink| shrink.log2().abs() > NEAR);
        for (shrink, factor) in shrink.iter_mut().zip(&mut factors) {
            // a column saves at most the conjugate of its penalty at the steepest slope s, s (s / (q rate))^(1 / (q-1)) but for a factor
            let saved = (d as f64).ln() + (steepest.ln() - q.ln() - *factor) / (q - 1.0);
            if saved < NOTHING.ln() {
                (*shrink, *factor) = (0.0, problem.largest_cap().ln());
                changed = true;
            }
        }
        changed.then_some(Units { shrink, factors })
    }

    /// Coefficients in the units of the columns as they came.
    fn back(&self, weights: &[f64]) -> Vec<f64> {
        weights.iter().zip(self.shrink.iter().cycle()).map(|(w, shrink)| w * shrink).collect()
    }

    fn start(&self, start: Start) -> Start {
        let into = |(w, shrink): (&f64, &f64)| if *shrink > 0.0 { w / shrink } else { 0.0 };
        let weights = start.weights.map(|weights| weights.iter().zip(self.shrink.iter().cycle()).map(into).collect());
        Start { weights, ..start }
    }
}

/// Lets `run` solve in units in which the columns are near 1, where they are not, and tells it the logarithms of what their penalties are
/// then multiplied by; q > 1.
pub(super) fn in_units(
    problem: &LqProblem,
    options: &Options,
    control: &Control,
    run: impl FnOnce(&LqProblem, Option<&[f64]>, &Options) -> Result<Solution>,
) -> Result<Solution> {
    let Some(units) = Units::new(problem) else { return run(problem, None, options) };
    if units.shrink.iter().all(|shrink| *shrink == 0.0) {
        return constant(problem, options, control);
    }
    let x = copied(problem.x, |column, value| value * units.shrink[column])?;
    let mut inner = options.clone();
    inner.start = inner.start.take().map(|start| units.start(start));
    let found = run(&problem.on(x.as_ref()), Some(&units.factors), &inner)?;
    let weights = units.back(found.weights.as_deref().unwrap_or(&[]));
    // on the columns as they came coefficients may be too small for all their digits
    let decision = problem.decision(&weights, &found.intercepts);
    let (loss, claimed) = (problem.loss(&decision), problem.loss(&found.decision));
    let objective = problem.penalty(&weights) + loss;
    let gap = found.gap + (loss - claimed).max(0.0) / objective.max(f64::MIN_POSITIVE);
    let lost = found.status == Status::Converged && gap > options.tolerance.max(found.gap);
    let status = if lost { Status::Inaccurate } else { found.status };
    Ok(Solution { weights: Some(weights), decision, objective, gap, status, trace: vec![objective], ..found })
}

/// The best of all solutions with w = 0.
fn constant(problem: &LqProblem, options: &Options, control: &Control) -> Result<Solution> {
    let mut engine = Weighted::new(problem, options.max_iterations);
    engine.set_rates(&vec![f64::INFINITY; problem.functions * problem.x.cols()]);
    let step = engine.minimize(options.tolerance, control)?;
    Ok(Solution { solver: proximal::NAME, ..super::solution(problem, &engine, step) })
}
