//! 1 < q <= 2: a primal-dual interior point method in the dual variables.
//!
//! The coefficients are those that belong to V, w = grad g(X'V) with g the conjugate of the penalty (see [`LqProblem`]): the power
//! q / (q - 1) >= 2, with second derivatives everywhere. For each term z = 1 - s f is written xi - t with
//!
//! ```text
//! alpha t = mu,   (c - alpha) xi = mu,   xi, t >= 0,   0 <= alpha <= c,    V = s alpha balanced over the functions if b is free
//! ```
//!
//! and mu falls to 0. A Newton step has dV = k - W df, df = X B X'dV + db, W = 1 / (t / alpha + xi / (c - alpha)) and B = g'': the
//! equations of [`Normal`]. Each step is a predictor and a corrector with one factor (Mehrotra). V stays feasible, so that every point
//! comes with a certificate: P - D = sum c [z]_+ - alpha z. A step is shortened until the products and the error of xi - t = z together
//! fall; for q near 1, where g is nearly a wall, that happens.

use super::super::{Options, Solution, Status};
use super::normal::{Normal, pull, push};
use super::{SMOOTH, rows_by_functions};
use crate::control::{Control, Progress};
use crate::error::Result;
use crate::problem::LqProblem;
use crate::problem::lq::conjugate;

const MOST_STEPS: usize = 200;
/// Share of the way to the boundary that a step goes.
const REACH: f64 = 0.995;
/// Share of the fall a step promises that it must keep.
const KEPT: f64 = 0.05;
/// Halvings of a step.
const HALVINGS: usize = 12;
/// Steps without a smaller gap after which rounding is taken to be the reason.
const PATIENCE: usize = 6;

/// A point; vectors over terms list those that count.
#[derive(Clone)]
struct Point {
    alpha: Vec<f64>,
    t: Vec<f64>,
    xi: Vec<f64>,
    intercepts: Vec<f64>,
    /// What follows from alpha: w and g'', functions x columns; g; and f without b at all rows, function-major.
    weights: Vec<f64>,
    bends: Vec<f64>,
    conjugate: f64,
    decision: Vec<f64>,
}

/// A direction.
struct Direction {
    alpha: Vec<f64>,
    t: Vec<f64>,
    xi: Vec<f64>,
    intercepts: Vec<f64>,
}

struct Inside<'a> {
    problem: &'a LqProblem<'a>,
    /// Positions (function-major), caps and signs of the terms that count.
    at: Vec<usize>,
    caps: Vec<f64>,
    signs: Vec<f64>,
}

impl<'a> Inside<'a> {
    fn new(problem: &'a LqProblem<'a>) -> Self {
        let n = problem.rows();
        let cap = |at: &usize| problem.cap(at % n, at / n);
        let at: Vec<usize> = (0..n * problem.functions).filter(|at| cap(at) > 0.0).collect();
        let caps = at.iter().map(cap).collect();
        let signs = at.iter().map(|at| problem.sign(at % n)).collect();
        Inside { problem, at, caps, signs }
    }

    fn rows(&self) -> usize {
        self.problem.rows()
    }

    /// V, function-major over all rows.
    fn spread(&self, alpha: &[f64]) -> Vec<f64> {
        let mut v = vec![0.0; self.rows() * self.problem.functions];
        for ((&at, sign), alpha) in self.at.iter().zip(&self.signs).zip(alpha) {
            v[at] = sign * alpha;
        }
        v
    }

    /// What follows from alpha.
    fn follow(&self, alpha: Vec<f64>, t: Vec<f64>, xi: Vec<f64>, intercepts: Vec<f64>) -> Point {
        let (m, d) = (self.problem.functions, self.problem.x.cols());
        let pulled = pull(self.problem.x, &self.spread(&alpha), m);
        let (mut weights, mut bends) = (vec![0.0; m * d], vec![0.0; m * d]);
        let mut value = 0.0;
        let mut u = vec![0.0; m];
        for column in 0..d {
            (0..m).for_each(|j| u[j] = pulled[j * d + column]);
            let found = conjugate(&u, self.problem.q);
            value += found.value;
            for j in 0..m {
                weights[j * d + column] = found.weights[j];
                bends[j * d + column] = found.bends[j];
            }
        }
        let decision = push(self.problem.x, &weights, &vec![0.0; m], m);
        Point { alpha, t, xi, intercepts, weights, bends, conjugate: value, decision }
    }

    /// z = 1 - s f of a term.
    fn z(&self, point: &Point, term: usize) -> f64 {
        let at = self.at[term];
        1.0 - self.signs[term] * (point.decision[at] + point.intercepts[at / self.rows()])
    }

    /// A balanced share of every cap, small enough that no column stands beyond where its coefficient would be 1.
    fn start(&self) -> Point {
        let (m, n, d) = (self.problem.functions, self.rows(), self.problem.x.cols());
        // terms of equal kind: those of one function, or for one function those of one sign
        let kind = |term: usize| if m == 1 { usize::from(self.signs[term] > 0.0) } else { self.at[term] / n };
        let mut totals = vec![0.0; m.max(2)];
        (0..self.at.len()).for_each(|term| totals[kind(term)] += self.caps[term]);
        let least = totals.iter().fold(f64::INFINITY, |least, total| least.min(*total));
        let share = |term: usize| if self.problem.intercept { least / totals[kind(term)] } else { 1.0 };
        let full: Vec<f64> = (0..self.at.len()).map(|term| share(term) * self.caps[term]).collect();
        let pulled = pull(self.problem.x, &self.spread(&full), m);
        let spread = |column: usize| {
            let entries = (0..m).map(|j| pulled[j * d + column]);
            let mean = if m == 1 { 0.0 } else { entries.clone().sum::<f64>() / m as f64 };
            entries.fold(0.0f64, |most, u| most.max((u - mean).abs()))
        };
        let worst = (0..d).map(spread).fold(0.0, f64::max);
        let factor = (0.5 * self.problem.q / worst).min(0.5);
        let alpha = full.iter().map(|full| factor * full).collect();
        let count = self.at.len();
        self.follow(alpha, vec![1.0; count], vec![2.0; count], vec![0.0; m])
    }

    /// Sum of the products, and of the errors of xi - t = z times c.
    fn merit(&self, point: &Point) -> (f64, f64) {
        let (mut products, mut errors) = (0.0, 0.0);
        for term in 0..self.at.len() {
            products += point.alpha[term] * point.t[term] + (self.caps[term] - point.alpha[term]) * point.xi[term];
            errors += self.caps[term] * (point.xi[term] - point.t[term] - self.z(point, term)).abs();
        }
        (products, errors)
    }

    /// Primal and dual.
    fn values(&self, point: &Point) -> (f64, f64) {
        let loss: f64 = (0..self.at.len()).map(|term| self.caps[term] * self.z(point, term).max(0.0)).sum();
        let dual = point.alpha.iter().sum::<f64>() - point.conjugate;
        (self.problem.penalty(&point.weights) + loss, dual)
    }

    /// W over all rows.
    fn curvature(&self, point: &Point) -> Vec<f64> {
        let mut curvature = vec![0.0; self.rows() * self.problem.functions];
        for (term, &at) in self.at.iter().enumerate() {
            let alpha = point.alpha[term];
            curvature[at] = 1.0 / (point.t[term] / alpha + point.xi[term] / (self.caps[term] - alpha));
        }
        curvature
    }

    /// The step towards products `low` (alpha t) and `high` ((c - alpha) xi).
    fn direction(&self, point: &Point, normal: &Normal, curvature: &[f64], low: &[f64], high: &[f64]) -> Direction {
        let (m, n) = (self.problem.functions, self.rows());
        let mut k = vec![0.0; n * m];
        for (term, &at) in self.at.iter().enumerate() {
            let (alpha, gamma) = (point.alpha[term], self.caps[term] - point.alpha[term]);
            let aim = self.z(point, term) + low[term] / alpha - high[term] / gamma;
            k[at] = self.signs[term] * curvature[at] * aim;
        }
        // V is balanced but for rounding, which a step takes off
        let v = self.spread(&point.alpha);
        let sum = |j: usize| v[j * n..(j + 1) * n].iter().sum::<f64>();
        let balance: Vec<f64> = (0..m.max(2) - 1).map(|j| if m == 1 { -sum(0) } else { sum(m - 1) - sum(j) }).collect();
        let found = normal.solve(&k, &balance);
        let (mut alpha, mut t, mut xi) = (Vec::new(), Vec::new(), Vec::new());
        for (term, &at) in self.at.iter().enumerate() {
            let (old, gamma) = (point.alpha[term], self.caps[term] - point.alpha[term]);
            let by = self.signs[term] * found.v[at];
            alpha.push(by);
            t.push(low[term] / old - point.t[term] - point.t[term] / old * by);
            xi.push(high[term] / gamma - point.xi[term] + point.xi[term] / gamma * by);
        }
        Direction { alpha, t, xi, intercepts: found.intercepts }
    }

    /// The longest step that keeps all signs, at most 1.
    fn room(&self, point: &Point, by: &Direction) -> f64 {
        let mut room = 1.0f64;
        for term in 0..self.at.len() {
            let gamma = self.caps[term] - point.alpha[term];
            for (value, step) in [
                (point.alpha[term], by.alpha[term]),
                (gamma, -by.alpha[term]),
                (point.t[term], by.t[term]),
                (point.xi[term], by.xi[term]),
            ] {
                if step < 0.0 {
                    room = room.min(-value / step);
                }
            }
        }
        room
    }

    fn moved(&self, point: &Point, by: &Direction, length: f64) -> Point {
        let add = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a + length * b).collect() };
        self.follow(
            add(&point.alpha, &by.alpha),
            add(&point.t, &by.t),
            add(&point.xi, &by.xi),
            add(&point.intercepts, &by.intercepts),
        )
    }

    /// Predictor and corrector; `None` if rounding leaves no step.
    fn step(&self, point: &Point) -> Option<Point> {
        let curvature = self.curvature(point);
        let problem = self.problem;
        let normal = Normal::new(problem.x, problem.functions, problem.intercept, &point.bends, &curvature)?;
        let count = self.at.len();
        let (products, errors) = self.merit(point);
        let mu = products / (2 * count) as f64;
        let zeros = vec![0.0; count];
        let first = self.direction(point, &normal, &curvature, &zeros, &zeros);
        let room = self.room(point, &first);
        let after: f64 = (0..count)
            .map(|term| {
                let alpha = point.alpha[term] + room * first.alpha[term];
                alpha * (point.t[term] + room * first.t[term])
                    + (self.caps[term] - alpha) * (point.xi[term] + room * first.xi[term])
            })
            .sum();
        let center = mu * (after / products).clamp(0.0, 1.0).powi(3);
        let low: Vec<f64> = (0..count).map(|term| center - first.alpha[term] * first.t[term]).collect();
        let high: Vec<f64> = (0..count).map(|term| center + first.alpha[term] * first.xi[term]).collect();
        let by = self.direction(point, &normal, &curvature, &low, &high);
        let mut length = (REACH * self.room(point, &by)).min(1.0);
        for _ in 0..HALVINGS {
            let next = self.moved(point, &by, length);
            let (left, wrong) = self.merit(&next);
            if left + wrong <= (1.0 - KEPT * length) * (products + errors) {
                return Some(next);
            }
            length *= 0.5;
        }
        None
    }
}

/// Solves; q > 1.
pub(super) fn solve(problem: &LqProblem, options: &Options, control: &Control) -> Result<Solution> {
    let inside = Inside::new(problem);
    let mut point = inside.start();
    let mut best = Best::nothing(problem);
    let (mut status, mut steps, mut waited) = (Status::IterationLimit, 0, 0);
    let most = MOST_STEPS.min(options.max_iterations);
    loop {
        control.check()?;
        let before = best.gap();
        let (primal, dual) = inside.values(&point);
        best.note(&inside, &point, primal, dual);
        let gap = best.gap();
        control.report(Progress { stage: "lq interior", step: steps, objective: best.primal, gap });
        waited = if gap < 0.9 * before { 0 } else { waited + 1 };
        if gap <= options.tolerance {
            status = Status::Converged;
            break;
        }
        if control.out_of_time() {
            status = Status::TimeLimit;
            break;
        }
        if steps >= most {
            break;
        }
        let next = if inside.at.is_empty() || waited > PATIENCE && gap < 1e-6 { None } else { inside.step(&point) };
        let Some(next) = next else {
            status = Status::Inaccurate;
            break;
        };
        point = next;
        steps += 1;
    }
    Ok(best.solution(problem, steps, status))
}

/// The best point and the best bound.
struct Best {
    primal: f64,
    dual: f64,
    weights: Vec<f64>,
    intercepts: Vec<f64>,
    v: Vec<f64>,
}

impl Best {
    /// w = 0 and V = 0.
    fn nothing(problem: &LqProblem) -> Best {
        let (m, d, n) = (problem.functions, problem.x.cols(), problem.rows());
        let (weights, intercepts) = (vec![0.0; m * d], vec![0.0; m]);
        let primal = problem.loss(&vec![0.0; n * m]);
        Best { primal, dual: 0.0, weights, intercepts, v: vec![0.0; n * m] }
    }

    fn gap(&self) -> f64 {
        (self.primal - self.dual).max(0.0) / self.primal.abs().max(f64::MIN_POSITIVE)
    }

    fn note(&mut self, inside: &Inside, point: &Point, primal: f64, dual: f64) {
        if primal < self.primal {
            self.primal = primal;
            self.weights.clone_from(&point.weights);
            self.intercepts.clone_from(&point.intercepts);
        }
        if dual > self.dual {
            self.dual = dual;
            self.v = inside.spread(&point.alpha);
        }
    }

    fn solution(self, problem: &LqProblem, iterations: usize, status: Status) -> Solution {
        let gap = self.gap();
        let decision = problem.decision(&self.weights, &self.intercepts);
        let objective = problem.penalty(&self.weights) + problem.loss(&decision);
        Solution {
            expansion: rows_by_functions(&self.v, problem.functions),
            weights: Some(self.weights),
            intercepts: self.intercepts,
            decision,
            truncated: vec![false; problem.rows()],
            majorant: None,
            objective,
            gap,
            trace: vec![objective],
            iterations,
            status,
            solver: SMOOTH,
        }
    }
}
