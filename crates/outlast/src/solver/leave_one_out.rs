//! The leave-one-out support vector machine: a linear program, by a primal-dual interior point.
//!
//! ```text
//! min over alpha >= 0:  sum_i c_i [1 - y_i f(x_i) + r alpha_i k_ii]_+,      f = sum_j alpha_j y_j k(x_j, .)
//! ```
//!
//! r = 1 leaves each row's own term out of its loss (Weston and Herbrich's leave-one-out machine); other r are their adaptive
//! margins. With A = yy' o K - r diag(K) it is the linear program
//!
//! ```text
//! min c'xi   s.t.  A alpha + xi - s = 1,   alpha, xi, s >= 0         max 1'u   s.t.  A'u + z = 0,  z >= 0,   0 <= u <= c
//! ```
//!
//! Newton's method on u s = mu, (c - u) xi = mu, alpha z = mu, with v = c - u, eliminates everything but alpha:
//!
//! ```text
//! (A'D A + diag(z / alpha)) dalpha = rhs,      D = (u/s) / (1 + (u/s) (xi/v))
//! ```
//!
//! one Cholesky factor of an n x n matrix per iteration, used twice (Mehrotra's predictor and corrector). The gap is primal minus
//! dual value plus alpha'[A'u]_+, what the dual's constraint still fails by, once that is no more than rounding: at 0 all optimality
//! conditions hold.
//!
//! Squares of the numbers of X must not leave the range of floating point: where they would, a linear machine is solved for X over a power
//! of two.

use super::{Options, Solution, Status};
use crate::control::{Control, Progress};
use crate::error::{Error, Result};
use crate::linalg::{Factor, dot};
use crate::problem::{KernelFunction, TwoClass};
use faer::{Col, ColRef, Mat};

/// The solver's name.
pub const NAME: &str = "leave-one-out-lp";

/// Most rows: the matrix and its factor are n x n.
pub const MOST_ROWS: usize = 20_000;

/// Where the largest number of X lies within these bounds, its square is far from the limits of floating point.
const SAFE: (f64, f64) = (1e-100, 1e100);

/// An optimum below this share of what all rows weigh is measured by that.
const NOTHING: f64 = 1e-10;

/// What the dual's constraint may fail by, relative to the sizes of what is added up in it.
const FEASIBLE: f64 = 1e-12;

/// Multipliers below this share of the largest are taken for 0.
const TRACE: f64 = 1e-9;

/// Share of the way to the boundary that a step takes.
const STAY: f64 = 0.995;

/// Solves it. The problem's loss and intercept are not looked at: the loss is the hinge, and there is no intercept.
pub fn solve(problem: &TwoClass, factor: f64, options: &Options, control: &Control) -> Result<Solution> {
    let program = Program::new(problem, factor)?;
    let mut state = State::new(&program);
    let mut best = (f64::INFINITY, vec![0.0; program.rows()]);
    let mut least = program.primal(&best.1);
    let mut status = Status::IterationLimit;
    let mut iterations = 0;
    while iterations < options.max_steps {
        control.check()?;
        let (primal, gap) = program.judge(&state);
        control.report(Progress { stage: "leave-one-out", step: iterations, objective: primal * program.scale, gap });
        // of equally far bounds the lower value is the better
        if gap < best.0 || gap == best.0 && primal < least {
            best = (gap, state.alpha.clone());
            least = primal;
        }
        if gap <= options.tolerance {
            status = Status::Converged;
            break;
        }
        if control.out_of_time() {
            status = Status::TimeLimit;
            break;
        }
        iterations += 1;
        if !state.step(&program) {
            status = Status::Inaccurate;
            break;
        }
    }
    program.solution(problem, best, iterations, status)
}

/// The linear program on the rows that weigh something, in units in which the largest weight and k_ii are 1.
struct Program {
    active: Vec<u32>,
    a: Mat<f64>,
    caps: Vec<f64>,
    /// The largest weight.
    scale: f64,
    /// The largest k_ii.
    unit: f64,
    /// r k_ii of the active rows, in the units of the kernel values.
    own: Vec<f64>,
    /// Kernel values are those of X over this power of two; 1 but for linear kernels of absurd scales.
    scale_of_x: f64,
}

impl Program {
    fn new(problem: &TwoClass, factor: f64) -> Result<Program> {
        let active: Vec<u32> = (0..problem.rows() as u32).filter(|&row| problem.caps[row as usize] > 0.0).collect();
        let n = active.len();
        if n > MOST_ROWS {
            let expected = format!("at most {MOST_ROWS} for the leave-one-out machine");
            return Err(Error::shape("X", format!("{n} rows"), expected));
        }
        let mut values: Vec<Vec<f64>> = vec![Vec::new(); n];
        let x = problem.x;
        let scale_of_x = if let KernelFunction::Linear = problem.kernel { scale_of(problem) } else { 1.0 };
        match scale_of_x == 1.0 {
            true => {
                problem.kernel.for_each_row(x, x, &active, &active, &mut values, |out, row| out.extend_from_slice(row))
            }
            false => values = scaled_products(problem, &active, scale_of_x),
        }
        let unit = (0..n).map(|i| values[i][i].abs()).fold(0.0, f64::max);
        let unit = if unit > 0.0 { unit } else { 1.0 };
        let y = |i: usize| problem.signs[active[i] as usize];
        let own: Vec<f64> = (0..n).map(|i| factor * values[i][i]).collect();
        let a = Mat::from_fn(n, n, |i, j| (y(i) * y(j) * values[i][j] - if i == j { own[i] } else { 0.0 }) / unit);
        if !a.norm_max().is_finite() {
            return Err(Error::Numerical {
                problem: "a kernel value is not finite; scale the columns of X".to_string(),
            });
        }
        let weights = || active.iter().map(|&row| problem.caps[row as usize]);
        let scale = weights().fold(0.0, f64::max);
        let caps = weights().map(|cap| cap / scale).collect();
        Ok(Program { active, a, caps, scale, unit, own, scale_of_x })
    }

    fn rows(&self) -> usize {
        self.caps.len()
    }

    /// A v
    fn times(&self, v: &[f64]) -> Vec<f64> {
        to_vec(&self.a * ColRef::from_slice(v))
    }

    /// A'v
    fn transposed_times(&self, v: &[f64]) -> Vec<f64> {
        to_vec(self.a.transpose() * ColRef::from_slice(v))
    }

    /// sum c [1 - A alpha]_+
    fn primal(&self, alpha: &[f64]) -> f64 {
        self.times(alpha).iter().zip(&self.caps).map(|(margin, cap)| cap * (1.0 - margin).max(0.0)).sum()
    }

    /// sum_i |A_ij| u_i
    fn pull(&self, j: usize, u: &[f64]) -> f64 {
        self.a.col(j).iter().zip(u).map(|(a, u)| a.abs() * u).sum()
    }

    /// Value of the primal problem and relative gap.
    fn judge(&self, state: &State) -> (f64, f64) {
        let primal = self.primal(&state.alpha);
        let excess = self.transposed_times(&state.u);
        let infeasible: f64 = excess.iter().zip(&state.alpha).map(|(e, alpha)| alpha * e.max(0.0)).sum();
        // an optimum of 0 is measured by what all rows weigh
        let size = primal.abs().max(NOTHING * self.caps.iter().sum::<f64>());
        // alpha may have to become very large yet, and would make much of what the dual's constraint fails by: u bounds the optimum only
        // where that is rounding; else u = 0 does
        let bounds = excess.iter().enumerate().all(|(j, e)| *e <= FEASIBLE * self.pull(j, &state.u));
        if !bounds {
            return (primal, primal / size);
        }
        let gap = primal - state.u.iter().sum::<f64>() + infeasible;
        (primal, gap.max(0.0) / size)
    }

    /// An interior point never is 0: what is small is taken for 0, unless that costs something. (Where kernel values are of very different
    /// sizes, a small multiplier may mean much.)
    fn without_traces(&self, alpha: Vec<f64>) -> Vec<f64> {
        let largest = alpha.iter().copied().fold(0.0, f64::max);
        let cleaned: Vec<f64> = alpha.iter().map(|&alpha| if alpha > TRACE * largest { alpha } else { 0.0 }).collect();
        let before = self.primal(&alpha);
        let least = NOTHING * self.caps.iter().sum::<f64>();
        if self.primal(&cleaned) <= before + TRACE * before.abs().max(least) { cleaned } else { alpha }
    }

    fn solution(
        &self,
        problem: &TwoClass,
        (gap, alpha): (f64, Vec<f64>),
        iterations: usize,
        status: Status,
    ) -> Result<Solution> {
        let alpha = self.without_traces(alpha);
        let (mut scaled, mut own) = (vec![0.0; problem.rows()], vec![0.0; problem.rows()]);
        for ((&row, &alpha), &k) in self.active.iter().zip(&alpha).zip(&self.own) {
            let alpha = alpha / self.unit;
            scaled[row as usize] = problem.signs[row as usize] * alpha;
            own[row as usize] = alpha * k;
        }
        let s = self.scale_of_x;
        let expansion: Vec<f64> = scaled.iter().map(|beta| beta / s / s).collect();
        let weights = (s != 1.0).then(|| combined(problem, &scaled, s));
        let decision = match &weights {
            Some(w) => (0..problem.rows()).map(|row| problem.x.dot(row, w)).collect(),
            None => problem.kernel.expand(problem.x, &expansion),
        };
        if expansion.iter().chain(weights.iter().flatten()).any(|value| !value.is_finite()) {
            let problem = "the coefficients are too large for floating point; scale the columns of X".to_string();
            return Err(Error::Numerical { problem });
        }
        let loss = |row: usize| (1.0 - problem.signs[row] * decision[row] + own[row]).max(0.0);
        let objective = (0..problem.rows()).map(|row| problem.caps[row] * loss(row)).sum();
        Ok(Solution {
            expansion,
            weights,
            intercepts: vec![0.0],
            decision,
            truncated: vec![false; problem.rows()],
            majorant: None,
            objective,
            gap,
            trace: vec![objective],
            iterations,
            status,
            solver: NAME,
        })
    }
}

/// A power of two of the size of X, where squares of its numbers leave the safe range; else 1.
fn scale_of(problem: &TwoClass) -> f64 {
    let mut largest = 0.0f64;
    (0..problem.rows()).for_each(|row| problem.x.for_each(row, &mut |_, value| largest = largest.max(value.abs())));
    match largest == 0.0 || (SAFE.0..=SAFE.1).contains(&largest) {
        true => 1.0,
        false => 2f64.powi(largest.log2().floor() as i32),
    }
}

/// x_i'x_j / s^2 of some rows.
fn scaled_products(problem: &TwoClass, rows: &[u32], s: f64) -> Vec<Vec<f64>> {
    let x = problem.x;
    let mut scaled = vec![0.0; x.cols()];
    let mut of_row = |row: u32| -> Vec<f64> {
        scaled.fill(0.0);
        x.for_each(row as usize, &mut |column, value| scaled[column] = value / s);
        rows.iter().map(|&other| x.dot(other as usize, &scaled) / s).collect()
    };
    rows.iter().map(|&row| of_row(row)).collect()
}

/// sum_i beta_i x_i / s^2
fn combined(problem: &TwoClass, beta: &[f64], s: f64) -> Vec<f64> {
    let mut w = vec![0.0; problem.x.cols()];
    for (row, &beta) in beta.iter().enumerate().filter(|(_, beta)| **beta != 0.0) {
        problem.x.for_each(row, &mut |column, value| w[column] += beta * (value / s));
    }
    w.iter_mut().for_each(|w| *w /= s);
    w
}

fn to_vec(column: Col<f64>) -> Vec<f64> {
    column.iter().copied().collect()
}

/// All variables, each > 0 (v = c - u).
struct State {
    alpha: Vec<f64>,
    xi: Vec<f64>,
    s: Vec<f64>,
    u: Vec<f64>,
    v: Vec<f64>,
    z: Vec<f64>,
}

/// A direction for all of them.
struct Move {
    alpha: Vec<f64>,
    xi: Vec<f64>,
    s: Vec<f64>,
    u: Vec<f64>,
    z: Vec<f64>,
}

impl State {
    fn new(program: &Program) -> State {
        let n = program.rows();
        let u: Vec<f64> = program.caps.iter().map(|cap| 0.5 * cap).collect();
        State { alpha: vec![1.0; n], xi: vec![1.0; n], s: vec![1.0; n], v: u.clone(), u, z: vec![1.0; n] }
    }

    /// Mean of the products that shall become 0.
    fn complementarity(&self) -> f64 {
        (dot(&self.u, &self.s) + dot(&self.v, &self.xi) + dot(&self.alpha, &self.z)) / (3 * self.u.len()) as f64
    }

    /// One predictor-corrector step. `false` when no step can be taken.
    fn step(&mut self, program: &Program) -> bool {
        let n = program.rows();
        let weight: Vec<f64> =
            (0..n).map(|i| self.u[i] / self.s[i] / (1.0 + self.u[i] * self.xi[i] / (self.s[i] * self.v[i]))).collect();
        let scaled = Mat::from_fn(n, n, |i, j| weight[i].sqrt() * program.a[(i, j)]);
        let mut matrix = scaled.transpose() * &scaled;
        for i in 0..n {
            matrix[(i, i)] += self.z[i] / self.alpha[i];
        }
        let Some(factor) = Factor::nearest_of(&matrix) else { return false };
        let mu = self.complementarity();
        let zeros = vec![0.0; n];
        let plain = self.direction(program, &factor, &weight, 0.0, [&zeros, &zeros, &zeros]);
        let (primal, dual) = self.longest(&plain);
        let after = self.after(&plain, primal, dual);
        let centring = (after / mu).powi(3).clamp(0.0, 1.0);
        let product = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a * b).collect() };
        let second = [
            product(&plain.u, &plain.s),
            product(&plain.u, &plain.xi).iter().map(|p| -p).collect(),
            product(&plain.alpha, &plain.z),
        ];
        let both = self.direction(program, &factor, &weight, centring * mu, [&second[0], &second[1], &second[2]]);
        let (primal, dual) = self.longest(&both);
        if !(primal > 0.0 && dual > 0.0) || primal.max(dual) < 1e-12 {
            return false;
        }
        self.go(&both, (STAY * primal).min(1.0), (STAY * dual).min(1.0));
        true
    }

    /// The direction to u s = mu - second_0, v xi = mu - second_1, alpha z = mu - second_2.
    fn direction(&self, program: &Program, factor: &Factor, weight: &[f64], mu: f64, second: [&[f64]; 3]) -> Move {
        let n = program.rows();
        let margins = program.times(&self.alpha);
        // A alpha + xi - s - 1, and -A'u - z
        let primal: Vec<f64> = (0..n).map(|i| margins[i] + self.xi[i] - self.s[i] - 1.0).collect();
        let excess = program.transposed_times(&self.u);
        let dual: Vec<f64> = (0..n).map(|j| -excess[j] - self.z[j]).collect();
        // du = e - D A dalpha
        let e: Vec<f64> = (0..n)
            .map(|i| {
                let (u, v, s, xi) = (self.u[i], self.v[i], self.s[i], self.xi[i]);
                let by_xi = (mu - v * xi - second[1][i]) / v;
                ((mu - u * s - second[0][i]) / s - u / s * (by_xi + primal[i])) / (1.0 + u * xi / (s * v))
            })
            .collect();
        let pulled = program.transposed_times(&e);
        let right: Vec<f64> = (0..n)
            .map(|j| (mu - self.alpha[j] * self.z[j] - second[2][j]) / self.alpha[j] - dual[j] + pulled[j])
            .collect();
        let alpha = factor.solve(&right);
        let moved = program.times(&alpha);
        let u: Vec<f64> = (0..n).map(|i| e[i] - weight[i] * moved[i]).collect();
        let xi: Vec<f64> =
            (0..n).map(|i| (mu - self.v[i] * self.xi[i] - second[1][i] + self.xi[i] * u[i]) / self.v[i]).collect();
        let s: Vec<f64> = (0..n).map(|i| moved[i] + xi[i] + primal[i]).collect();
        let pulled = program.transposed_times(&u);
        let z: Vec<f64> = (0..n).map(|j| dual[j] - pulled[j]).collect();
        Move { alpha, xi, s, u, z }
    }

    /// Longest steps of (alpha, xi, s) and of (u, v, z) that stay >= 0.
    fn longest(&self, to: &Move) -> (f64, f64) {
        let limit = |at: &[f64], by: &[f64], sign: f64| {
            let steps = at.iter().zip(by).filter(|(_, by)| sign * **by < 0.0).map(|(at, by)| -at / (sign * by));
            steps.fold(f64::INFINITY, f64::min)
        };
        let primal =
            limit(&self.alpha, &to.alpha, 1.0).min(limit(&self.xi, &to.xi, 1.0)).min(limit(&self.s, &to.s, 1.0));
        let dual = limit(&self.u, &to.u, 1.0).min(limit(&self.v, &to.u, -1.0)).min(limit(&self.z, &to.z, 1.0));
        (primal, dual)
    }

    /// The mean product after a step.
    fn after(&self, to: &Move, primal: f64, dual: f64) -> f64 {
        let (p, d) = (primal.min(1.0), dual.min(1.0));
        let sum: f64 = (0..self.u.len())
            .map(|i| {
                (self.u[i] + d * to.u[i]) * (self.s[i] + p * to.s[i])
                    + (self.v[i] - d * to.u[i]) * (self.xi[i] + p * to.xi[i])
                    + (self.alpha[i] + p * to.alpha[i]) * (self.z[i] + d * to.z[i])
            })
            .sum();
        sum / (3 * self.u.len()) as f64
    }

    fn go(&mut self, to: &Move, primal: f64, dual: f64) {
        let add = |at: &mut [f64], by: &[f64], step: f64| {
            at.iter_mut().zip(by).for_each(|(at, by)| *at = (*at + step * by).max(f64::MIN_POSITIVE));
        };
        add(&mut self.alpha, &to.alpha, primal);
        add(&mut self.xi, &to.xi, primal);
        add(&mut self.s, &to.s, primal);
        add(&mut self.v, &to.u, -dual);
        add(&mut self.u, &to.u, dual);
        add(&mut self.z, &to.z, dual);
    }
}
