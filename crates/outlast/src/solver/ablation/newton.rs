//! Newton's method on the smoothed relaxation, to a second-order critical point in the columns that W has.
//!
//! Few variables (m times the columns of W): the second derivatives as a matrix, assembled from r (r + 1)/2 weighted Gram matrices of the rows,
//! and damping, (H + d I) step = -gradient with the smallest d at hand that makes the matrix positive definite and the step as good
//! as foretold. Many: truncated conjugate gradients in a trust region (Steihaug), preconditioned on the first column by r I + F'diag(h)F
//! over the rows on the steep part of the smoothed kink; a product costs 2 n m r.
//!
//! Both end when the decrease that a full step foretells is below what the caller can use.

use super::smoothed::{Point, Rows, Smoothed, combine, multiply};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::{Isa, LANES, cholesky, cholesky_solve, dot, padded};
use crate::problem::ablation::Curvature;
use rayon::prelude::*;

/// Variables up to which the matrix is formed.
const DIRECT: usize = 96;
/// Most products per step.
const PRODUCTS: usize = 100;
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

/// What a product with the second derivatives needs.
struct Operator<'a, 'b> {
    problem: &'a Smoothed<'b>,
    point: &'a Point,
    curvature: Vec<Curvature>,
    moving: Option<Vec<f64>>,
}

impl<'a, 'b> Operator<'a, 'b> {
    fn new(problem: &'a Smoothed<'b>, point: &'a Point) -> Self {
        let n = problem.rows.len();
        let curvature = (0..n).map(|row| problem.curvature(point, row)).collect();
        Operator { problem, point, curvature, moving: problem.moving_level(point) }
    }

    fn times(&self, x: &[f64], images: &mut Vec<f64>) -> Vec<f64> {
        let rows = &self.problem.rows;
        let (n, r) = (rows.len(), self.point.columns);
        images.resize(n * r, 0.0);
        multiply(rows, x, r, images);
        let margins = &self.point.margins;
        let images = &*images;
        let mut out = combine(rows, r, |row, out| {
            let h = &self.curvature[row];
            let along: f64 = (1..r).map(|k| margins[k * n + row] * images[k * n + row]).sum();
            out[0] = h.aa * images[row] + h.av * along;
            let common = h.av * images[row] + h.vv * along;
            for k in 1..r {
                out[k] = common * margins[k * n + row] + h.ii * images[k * n + row];
            }
        });
        let shift = self.moving.as_ref().map(|z| (dot(z, x), z));
        out.iter_mut().zip(x).for_each(|(out, x)| *out += rows.ridge * x);
        if let Some((length, z)) = shift {
            out.iter_mut().zip(z).for_each(|(out, z)| *out += length * z);
        }
        out
    }
}

/// r I + F'diag(h)F on the first column over the steep rows, r I on the others.
struct Preconditioner {
    ridge: f64,
    columns: usize,
    /// The steep rows, and the factor of the smaller of the two systems.
    steep: Vec<f64>,
    count: usize,
    factor: Vec<f64>,
    within: bool,
}

impl Preconditioner {
    fn new(rows: &Rows, curvature: &[Curvature]) -> Preconditioner {
        let m = rows.features.columns;
        let mut chosen: Vec<usize> = Vec::new();
        for (row, h) in curvature.iter().enumerate() {
            let f = rows.features.row(row);
            if h.aa > 0.0 && h.aa * dot(f, f) > 0.5 * rows.ridge {
                chosen.push(row);
            }
        }
        let count = chosen.len();
        let within = count < m;
        let order = if within { count } else { m };
        let mut steep = Vec::with_capacity(count * m);
        chosen.iter().for_each(|&row| steep.extend_from_slice(rows.features.row(row)));
        let mut factor = vec![0.0; order * order];
        if within {
            let isa = Isa::detect();
            for j in 0..count {
                isa.dots(&steep[..(j + 1) * m], &steep[j * m..(j + 1) * m], &mut factor[j * order..=j * order + j]);
                factor[j * order + j] += rows.ridge / curvature[chosen[j]].aa;
            }
        } else {
            let heights: Vec<f64> = chosen.iter().map(|&row| curvature[row].aa).collect();
            weighted_gram(&steep, m, &heights, &mut factor);
            (0..m).for_each(|j| factor[j * m + j] += rows.ridge);
        }
        let mut made = Preconditioner { ridge: rows.ridge, columns: m, steep, count, factor, within };
        if !cholesky(&mut made.factor, order) {
            made.count = 0;
            made.within = true;
        }
        made
    }

    fn apply(&self, g: &[f64]) -> Vec<f64> {
        let m = self.columns;
        let mut out: Vec<f64> = g.iter().map(|g| g / self.ridge).collect();
        if !self.within {
            out[..m].copy_from_slice(&g[..m]);
            cholesky_solve(&self.factor, m, &mut out[..m]);
        } else if self.count > 0 {
            let mut inner: Vec<f64> = self.steep.chunks_exact(m).map(|f| dot(f, &g[..m])).collect();
            cholesky_solve(&self.factor, self.count, &mut inner);
            for (f, inner) in self.steep.chunks_exact(m).zip(&inner) {
                let factor = inner / self.ridge;
                out[..m].iter_mut().zip(f).for_each(|(out, f)| *out -= factor * f);
            }
        }
        out
    }
}

/// The lower triangle of sum_i h_i f_i f_i', h > 0.
fn weighted_gram(rows: &[f64], m: usize, heights: &[f64], out: &mut [f64]) {
    const TILE: usize = 32;
    // as many pieces on any number of threads, so that sums are the same
    const PIECE: usize = 512;
    if heights.is_empty() {
        return;
    }
    if m < LANES {
        for (f, height) in rows.chunks_exact(m).zip(heights) {
            for j in 0..m {
                out[j * m..=j * m + j].iter_mut().zip(f).for_each(|(out, value)| *out += height * f[j] * value);
            }
        }
        return;
    }
    let (isa, stride) = (Isa::detect(), padded(m));
    let part = |(rows, heights): (&[f64], &[f64])| {
        let (mut gram, mut tile) = (vec![0.0; stride * stride], vec![0.0; TILE * stride]);
        for (rows, heights) in rows.chunks(TILE * m).zip(heights.chunks(TILE)) {
            for ((out, f), height) in tile.chunks_exact_mut(stride).zip(rows.chunks_exact(m)).zip(heights) {
                let root = height.sqrt();
                out.iter_mut().zip(f).for_each(|(out, f)| *out = root * f);
            }
            isa.gram(&tile[..heights.len() * stride], stride, &mut gram);
        }
        gram
    };
    let pieces: Vec<_> = rows.chunks(PIECE * m).zip(heights.chunks(PIECE)).collect();
    let grams: Vec<Vec<f64>> = pieces.into_par_iter().map(part).collect();
    for gram in grams {
        for j in 0..m {
            let sums = &gram[j * stride..=j * stride + j];
            out[j * m..=j * m + j].iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
        }
    }
}

fn truncated(problem: &Smoothed, point: &mut Point, effort: Effort, control: &Control) -> Result<usize> {
    let mut radius = 0.0;
    let mut images = Vec::new();
    let mut trial = Point { columns: point.columns, ..Point::default() };
    for done in 0..effort.steps {
        control.check()?;
        if control.out_of_time() {
            return Ok(done);
        }
        let gradient = problem.gradient(point);
        let operator = Operator::new(problem, point);
        let preconditioner = Preconditioner::new(&problem.rows, &operator.curvature);
        let steepest = preconditioner.apply(&gradient);
        let slope = dot(&gradient, &steepest);
        if radius == 0.0 {
            radius = slope.sqrt().max((problem.rows.ridge * dot(&point.w, &point.w)).sqrt());
        }
        let found = steihaug(&operator, &preconditioner, &gradient, steepest, radius, point.value, &mut images);
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
}

/// Conjugate gradients until accurate, out of the region, or along negative curvature. Lengths are those of the preconditioner.
fn steihaug(
    operator: &Operator,
    preconditioner: &Preconditioner,
    gradient: &[f64],
    steepest: Vec<f64>,
    radius: f64,
    value: f64,
    images: &mut Vec<f64>,
) -> Found {
    let size = gradient.len();
    let mut residual = gradient.to_vec();
    let mut slope = dot(gradient, &steepest);
    let goal = slope * (slope / value.abs().max(f64::MIN_POSITIVE)).sqrt().min(0.01);
    let mut direction: Vec<f64> = steepest.iter().map(|z| -z).collect();
    let (mut step, mut image) = (vec![0.0; size], vec![0.0; size]);
    let (mut square, mut cross, mut along) = (0.0, 0.0, slope);
    for _ in 0..PRODUCTS {
        let curved = operator.times(&direction, images);
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
    Found { step, foretold, length: square.max(0.0).sqrt() }
}
