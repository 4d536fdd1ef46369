//! Newton's method on the smoothed relaxation, to a second-order critical point in the columns that W has.
//!
//! Few variables (m times the columns of W): the second derivatives as a matrix, assembled from r (r + 1)/2 weighted Gram matrices of the rows,
//! and damping, (H + d I) step = -gradient with the smallest d at hand that makes the matrix positive definite and the step as good
//! as foretold. Many: truncated conjugate gradients in a trust region (Steihaug); a product costs 2 m r for each row that has curvature.
//!
//! Both end when the decrease that a full step foretells is below what the caller can use.

use super::precondition::{Flat, Preconditioner};
use super::product::{Active, Operator, Pairs};
use super::smoothed::{Point, Smoothed};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::{cholesky, cholesky_solve, dot};
use crate::problem::ablation::Curvature;
use rayon::prelude::*;

/// Variables up to which the matrix is formed.
const DIRECT: usize = 96;
/// Most products per step.
const PRODUCTS: usize = 100;
/// Products after which the flat directions are found anew.
const REFRESH: usize = 60;
/// Damping relative to the ridge: the least, and below which a small step counts as convergence.
const LEAST_DAMPING: f64 = 1e-9;
const SMALL_DAMPING: f64 = 1e-2;
const ROWS_PER_PIECE: usize = 1024;

/// How a descent ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Decrease that is not worth a step.
    pub(super) enough: f64,
    /// Most steps.
    pub(super) steps: usize,
}

/// Goes down from a point, whose W alone is used. Returns the steps taken.
pub(super) fn descend(problem: &Smoothed, point: &mut Point, effort: Effort, control: &Control) -> Result<usize> {
    problem.evaluate(point);
    if point.w.is_empty() || problem.rows.len() == 0 {
        point.w.fill(0.0);
        problem.evaluate(point);
        return Ok(0);
    }
    if point.w.len() <= DIRECT {
        direct(problem, point, effort, control)
    } else {
        truncated(problem, point, effort, control)
    }
}

fn direct(problem: &Smoothed, point: &mut Point, effort: Effort, control: &Control) -> Result<usize> {
    let ridge = problem.rows.ridge;
    let order = point.w.len();
    let mut damping = ridge * SMALL_DAMPING;
    let mut matrix = Vec::new();
    let mut factor = vec![0.0; order * order];
    let mut trial = Point { columns: point.columns, ..Point::default() };
    let mut step = vec![0.0; order];
    for done in 0..effort.steps {
        if done % 16 == 15 {
            control.check()?;
            if control.out_of_time() {
                return Ok(done);
            }
        }
        let gradient = problem.gradient(point);
        hessian(problem, point, &mut matrix);
        let largest = (0..order).fold(0.0f64, |largest, j| largest.max(matrix[j * order + j].abs()));
        loop {
            factor.copy_from_slice(&matrix);
            (0..order).for_each(|j| factor[j * order + j] += damping);
            if cholesky(&mut factor, order) {
                step.iter_mut().zip(&gradient).for_each(|(step, g)| *step = -g);
                cholesky_solve(&factor, order, &mut step);
                let foretold = 0.5 * (damping * dot(&step, &step) - dot(&gradient, &step));
                trial.level = point.level;
                trial.w.clear();
                trial.w.extend(point.w.iter().zip(&step).map(|(w, step)| w + step));
                problem.evaluate(&mut trial);
                let gained = point.value - trial.value;
                let last = foretold <= effort.enough && damping <= ridge * SMALL_DAMPING;
                if gained >= 1e-3 * foretold || (last && gained > 0.0) {
                    std::mem::swap(point, &mut trial);
                    damping *= match gained / foretold {
                        ratio if ratio > 0.75 => 0.1,
                        ratio if ratio > 0.25 => 1.0,
                        _ => 4.0,
                    };
                    damping = damping.max(ridge * LEAST_DAMPING);
                    if last {
                        return Ok(done + 1);
                    }
                    break;
                }
                if last || foretold <= 1e-15 * point.value.abs() {
                    return Ok(done + 1);
                }
            }
            damping = (8.0 * damping).max(1e-9 * largest);
            if !(damping < f64::MAX / 16.0) || damping > 1e20 * (largest + ridge) {
                return Ok(done + 1);
            }
        }
    }
    Ok(effort.steps)
}

/// The second derivatives, both triangles, row-major.
fn hessian(problem: &Smoothed, point: &Point, matrix: &mut Vec<f64>) {
    let rows = &problem.rows;
    let (n, m, r) = (rows.len(), rows.features.columns, point.columns);
    let (triangle, pairs) = (m * (m + 1) / 2, r * (r + 1) / 2);
    let part = |number: usize| {
        let mut sums = vec![0.0; pairs * triangle];
        let mut outer = vec![0.0; triangle];
        let mut weights = vec![0.0; pairs];
        for row in number * ROWS_PER_PIECE..((number + 1) * ROWS_PER_PIECE).min(n) {
            let h = problem.curvature(point, row);
            if h.aa == 0.0 && h.ii == 0.0 {
                continue;
            }
            pair_weights(&h, point, row, n, &mut weights);
            let f = rows.features.row(row);
            let mut at = 0;
            for j in 0..m {
                for k in 0..=j {
                    outer[at] = f[j] * f[k];
                    at += 1;
                }
            }
            for (sums, &weight) in sums.chunks_exact_mut(triangle).zip(&weights) {
                sums.iter_mut().zip(&outer).for_each(|(sum, outer)| *sum += weight * outer);
            }
        }
        sums
    };
    let pieces = n.div_ceil(ROWS_PER_PIECE);
    let add = |mut total: Vec<f64>, part: Vec<f64>| {
        total.iter_mut().zip(&part).for_each(|(total, part)| *total += part);
        total
    };
    let sums = if pieces > 1 && rows.is_large(pairs) {
        let parts: Vec<Vec<f64>> = (0..pieces).into_par_iter().map(part).collect();
        parts.into_iter().reduce(add)
    } else {
        (0..pieces).map(part).reduce(add)
    };
    let order = m * r;
    matrix.clear();
    matrix.resize(order * order, 0.0);
    let sums = sums.unwrap_or_default();
    let mut pair = 0;
    for k in 0..r {
        for l in 0..=k {
            let sums = &sums[pair * triangle..(pair + 1) * triangle];
            pair += 1;
            for j in 0..m {
                for i in 0..=j {
                    let value = sums[j * (j + 1) / 2 + i];
                    for (a, b) in [(j, i), (i, j)] {
                        matrix[(k * m + a) * order + l * m + b] = value;
                        matrix[(l * m + b) * order + k * m + a] = value;
                    }
                }
            }
        }
    }
    (0..order).for_each(|j| matrix[j * order + j] += rows.ridge);
    if let Some(z) = problem.moving_level(point) {
        for (row, a) in matrix.chunks_exact_mut(order).zip(&z) {
            row.iter_mut().zip(&z).for_each(|(value, b)| *value += a * b);
        }
    }
}

/// A row's second derivatives as a lower triangle over the columns of W.
#[inline(always)]
fn pair_weights(h: &Curvature, point: &Point, row: usize, n: usize, weights: &mut [f64]) {
    weights[0] = h.aa;
    let mut at = 1;
    for k in 1..point.columns {
        let v = point.margins[k * n + row];
        weights[at] = h.av * v;
        for l in 1..k {
            weights[at + l] = h.vv * v * point.margins[l * n + row];
        }
        weights[at + k] = h.vv * v * v + h.ii;
        at += k + 1;
    }
}

fn truncated(problem: &Smoothed, point: &mut Point, effort: Effort, control: &Control) -> Result<usize> {
    let mut radius = 0.0;
    let (mut active, mut pairs) = (Active::default(), Pairs::default());
    let (mut flat, mut since) = (Flat::default(), REFRESH);
    let features = problem.rows.features;
    let squares: Vec<f64> = (0..problem.rows.len()).map(|row| dot(features.row(row), features.row(row))).collect();
    let mut trial = Point { columns: point.columns, ..Point::default() };
    for done in 0..effort.steps {
        control.check()?;
        if control.out_of_time() {
            return Ok(done);
        }
        let gradient = problem.gradient(point);
        let mut operator = Operator::new(problem, point, &squares, &mut active);
        if since >= REFRESH && point.columns > 1 {
            flat = Flat::new(&operator, features.columns, &gradient[features.columns..2 * features.columns]);
            since = 0;
        }
        let preconditioner = Preconditioner::new(&problem.rows, &squares, &operator, &flat, &mut pairs);
        let steepest = preconditioner.apply(&gradient);
        let slope = dot(&gradient, &steepest);
        if radius == 0.0 {
            radius = slope.sqrt().max((problem.rows.ridge * dot(&point.w, &point.w)).sqrt());
        }
        let found = steihaug(&mut operator, &preconditioner, &gradient, steepest, radius, point.value);
        since += found.products;
        let inside = found.length < 0.99 * radius;
        trial.level = point.level;
        trial.w.clear();
        trial.w.extend(point.w.iter().zip(&found.step).map(|(w, step)| w + step));
        problem.evaluate(&mut trial);
        let gained = point.value - trial.value;
        let last = found.foretold <= effort.enough && inside;
        let ratio = gained / found.foretold;
        if ratio >= 1e-3 || (last && gained > 0.0) {
            std::mem::swap(point, &mut trial);
        }
        if last || !(found.foretold > 1e-15 * point.value.abs()) {
            return Ok(done + 1);
        }
        if !(ratio >= 0.25) {
            radius = 0.25 * found.length;
        } else if ratio > 0.75 && !inside {
            radius *= 2.5;
        }
        if !(radius > 0.0) {
            return Ok(done + 1);
        }
    }
    Ok(effort.steps)
}

struct Found {
    step: Vec<f64>,
    foretold: f64,
    length: f64,
    products: usize,
}

/// Conjugate gradients until accurate, out of the region, or along negative curvature. Lengths are those of the preconditioner.
fn steihaug(
    operator: &mut Operator,
    preconditioner: &Preconditioner,
    gradient: &[f64],
    steepest: Vec<f64>,
    radius: f64,
    value: f64,
) -> Found {
    let size = gradient.len();
    let mut residual = gradient.to_vec();
    let mut slope = dot(gradient, &steepest);
    let goal = slope * (slope / value.abs().max(f64::MIN_POSITIVE)).sqrt().min(0.01);
    let mut direction: Vec<f64> = steepest.iter().map(|z| -z).collect();
    let (mut step, mut image) = (vec![0.0; size], vec![0.0; size]);
    let (mut square, mut cross, mut along) = (0.0, 0.0, slope);
    let mut products = 0;
    for _ in 0..PRODUCTS {
        products += 1;
        let curved = operator.times(&direction);
        let bend = dot(&direction, &curved);
        let border = (-cross + (cross * cross + along * (radius * radius - square)).max(0.0).sqrt()) / along;
        let length = if bend > 1e-12 * along { slope / bend } else { f64::INFINITY };
        let leaves = !(length < border);
        let length = if leaves { border } else { length };
        for k in 0..size {
            step[k] += length * direction[k];
            image[k] += length * curved[k];
            residual[k] += length * curved[k];
        }
        square += 2.0 * length * cross + length * length * along;
        if leaves {
            square = radius * radius;
            break;
        }
        let next = preconditioner.apply(&residual);
        let next_slope = dot(&residual, &next);
        if !(next_slope > goal) {
            break;
        }
        let factor = next_slope / slope;
        direction.iter_mut().zip(&next).for_each(|(d, z)| *d = factor * *d - z);
        cross = factor * (cross + length * along);
        along = next_slope + factor * factor * along;
        slope = next_slope;
    }
    let foretold = -(dot(gradient, &step) + 0.5 * dot(&step, &image));
    Found { step, foretold, length: square.max(0.0).sqrt(), products }
}
