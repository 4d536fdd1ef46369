//! Conjugate gradients on the face of free rows.
//!
//! Coordinate descent finds quickly which rows sit at a bound, and then creeps along the face of the others when C is
//! large. On that face the dual is the unconstrained quadratic H = X_F X_F' + rho 1 1'; H d = -G is solved by conjugate
//! gradients, scaled by the diagonal, and beta moves to the projection of beta + t d onto the boxes, t = 1, 1/2, ...,
//! where the dual falls enough; at worst to the first bound met, where it always falls. (Moré and Toraldo 1991, with
//! coordinate descent in place of their gradient steps.)
//!
//! Cost: one pass over the free rows each way per iteration.

use super::dual::Dual;
use crate::linalg::dot;

/// What a face step did.
pub(super) struct FaceStep {
    /// Passes over the free rows, in rows visited.
    pub(super) visited: usize,
    /// Whether the linear system was solved to `TARGET`.
    pub(super) solved: bool,
    /// Whether a step of at least half length was taken.
    pub(super) long: bool,
}

/// Fall of the residual at which the linear system counts as solved.
const TARGET: f64 = 1e-6;
const TRIALS: usize = 6;

/// One step on the face of the free rows, with at most `limit` conjugate-gradient iterations.
pub(super) fn step(dual: &mut Dual, limit: usize) -> FaceStep {
    let free = dual.free_rows();
    if free.is_empty() {
        return FaceStep { visited: 0, solved: true, long: false };
    }
    let gradient: Vec<f64> = free.iter().map(|&row| dual.gradient(row as usize)).collect();
    let (direction, iterations, solved) = solve(dual, &free, &gradient, limit);
    let (long, trials) = search(dual, &free, &gradient, &direction);
    FaceStep { visited: (2 * iterations + trials + 1) * free.len(), solved, long }
}

/// d with H d = -gradient, approximately.
fn solve(dual: &Dual, free: &[u32], gradient: &[f64], limit: usize) -> (Vec<f64>, usize, bool) {
    let diagonal: Vec<f64> = free.iter().map(|&row| dual.squares[row as usize] + dual.stiffness).collect();
    let scaled = |residual: &[f64]| residual.iter().zip(&diagonal).map(|(r, d)| r / d).collect::<Vec<f64>>();
    let mut solution = vec![0.0; free.len()];
    let mut residual: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut direction = scaled(&residual);
    let mut energy = dot(&residual, &direction);
    let first = energy;
    for iteration in 0..limit {
        if energy <= TARGET * TARGET * first {
            return (solution, iteration, true);
        }
        let image = multiply(dual, free, &direction);
        let curvature = dot(&direction, &image);
        // directions of (numerically) no curvature are left to coordinate descent, which runs them into a bound
        let scale: f64 = direction.iter().zip(&diagonal).map(|(p, d)| p * p * d).sum();
        if curvature.is_nan() || curvature <= 1e-14 * scale {
            return (solution, iteration, true);
        }
        let length = energy / curvature;
        for k in 0..free.len() {
            solution[k] += length * direction[k];
            residual[k] -= length * image[k];
        }
        let next = scaled(&residual);
        let next_energy = dot(&residual, &next);
        let momentum = next_energy / energy;
        for k in 0..free.len() {
            direction[k] = next[k] + momentum * direction[k];
        }
        energy = next_energy;
    }
    (solution, limit, false)
}

/// H p
fn multiply(dual: &Dual, free: &[u32], p: &[f64]) -> Vec<f64> {
    let mut combined = vec![0.0; dual.weights.len()];
    for (&row, &p) in free.iter().zip(p) {
        dual.data.add_scaled(row as usize, p, &mut combined);
    }
    let constant = dual.stiffness * p.iter().sum::<f64>();
    free.iter().map(|&row| dual.data.dot(row as usize, &combined) + constant).collect()
}

/// Projected search along `direction`. Returns whether the step was long, and the trials made.
fn search(dual: &mut Dual, free: &[u32], gradient: &[f64], direction: &[f64]) -> (bool, usize) {
    let mut length = 1.0;
    for trial in 1..=TRIALS {
        if try_length(dual, free, gradient, direction, length) {
            return (length >= 0.5, trial);
        }
        length *= 0.5;
    }
    let first = free.iter().zip(direction).map(|(&row, &d)| {
        let row = row as usize;
        let bound = if d > 0.0 { dual.upper[row] } else { dual.lower[row] };
        if d == 0.0 { 1.0 } else { (bound - dual.beta[row]) / d }
    });
    let length = first.fold(1.0, f64::min);
    try_length(dual, free, gradient, direction, length);
    (false, TRIALS + 1)
}

/// Moves to the projection of beta + t d if the dual falls by at least a hundredth of what its slope promises.
fn try_length(dual: &mut Dual, free: &[u32], gradient: &[f64], direction: &[f64], length: f64) -> bool {
    let mut combined = vec![0.0; dual.weights.len()];
    let (mut slope, mut sum) = (0.0, 0.0);
    let mut targets = Vec::with_capacity(free.len());
    for (k, &row) in free.iter().enumerate() {
        let row = row as usize;
        let target = (dual.beta[row] + length * direction[k]).clamp(dual.lower[row], dual.upper[row]);
        let change = target - dual.beta[row];
        slope += gradient[k] * change;
        sum += change;
        dual.data.add_scaled(row, change, &mut combined);
        targets.push(target);
    }
    let fall = slope + 0.5 * dot(&combined, &combined) + 0.5 * dual.stiffness * sum * sum;
    let enough = fall < 0.0 && fall <= 0.01 * slope;
    if !enough {
        return false;
    }
    for (&row, target) in free.iter().zip(targets) {
        dual.beta[row as usize] = target;
    }
    dual.sum += sum;
    for (weight, change) in dual.weights.iter_mut().zip(combined) {
        *weight += change;
    }
    true
}
