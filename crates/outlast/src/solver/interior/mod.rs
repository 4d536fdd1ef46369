//! Many classes by an interior point: the smooth losses, and the hinge as a judge of other solvers.
//!
//! ```text
//! min  1/2 sum_j |f_j|^2 + sum over kept rows of L_i(f(x_i) + b) - base_i'(f(x_i) + b),     sum_j f_j = 0, sum_j b_j = 0
//! ```
//!
//! L_i is the reduced hinge of [`ManyClass`], or c_i l(f_y - max_{j != y} f_j) of a smooth loss, which is convex with a kink
//! wherever rivals tie. `space` turns f into a few dense columns, `core` solves, and here V is made feasible (columns that sum
//! to 0 exactly, `balance`) and judged: gap = primal - dual with f = K V in double precision, for a linear f the better of X'V
//! and theta. Truncated terms are dropped (see `truncation`).
//!
//! A class no kept row has as its base (after truncation, or because it never occurs) has V_j = 0 and f_j = b_j, as low as need
//! be: it takes no part. A single class left has loss 0 at f = 0.
//!
//! Cost: some 20 iterations of O(n r^2 k^2 / 4) with r columns, and O(n^2) kernel values for the certificate. Memory:
//! O(n (r + k)) and a few matrices of order r (k - 1), limited by [`Options::cache_bytes`].

pub(super) mod balance;
mod cells;
pub(crate) mod core;
mod space;
mod system;

use super::majorize::Step;
use super::truncation::{self, Answer, Convex};
use super::{Options, Solution, Status};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::problem::{Majorant, ManyClass, Norm, Terms};
use balance::{Room, balance};
use core::{Goal, Rows, Task};
use space::Space;

/// The solver's name.
pub const NAME: &str = "interior-point";

/// A margin at which every smooth loss has underflowed to 0.
const BEYOND_LOSS: f64 = 750.0;
/// The path's own gap aimed for, against the certified one asked for.
const AIM: f64 = 0.3;
/// How often a path is followed further when its certificate falls short, and by how much.
const ATTEMPTS: usize = 2;
const FURTHER: f64 = 1e-3;

/// Solves a problem with many classes, any kernel, any loss, with the l2 penalty.
pub fn solve_many(problem: &ManyClass, options: &Options, control: &Control) -> Result<Solution> {
    if problem.norm != Norm::Squared {
        return Err(Error::parameter("solver", NAME, "another one: interior-point needs penalty = l2"));
    }
    if problem.loss.base().is_smooth() && problem.terms != Terms::Own {
        return Err(Error::parameter("loss", problem.loss.base().name(), "hinge with a utility or cost matrix"));
    }
    let space = Space::new(problem, options.cache_bytes, options.tolerance)?;
    let caps: Vec<f64> = problem.caps.iter().map(|&cap| space.data().enter(cap)).collect();
    let scaled = ManyClass { caps: &caps, ..*problem };
    let (n, k) = (problem.rows(), problem.classes);
    let point = Point {
        expansion: vec![0.0; n * k],
        weights: space.is_linear().then(|| vec![0.0; k * problem.x.cols()]),
        intercepts: vec![0.0; k],
        decision: vec![0.0; n * k],
        base: Vec::new(),
        gap: f64::INFINITY,
    };
    let mut solver = Interior { problem: scaled, space: &space, point };
    truncation::solve(problem, options, control, &mut solver, NAME)
}

/// A feasible pair with its gap, in scaled units.
#[derive(Clone)]
struct Point {
    /// V
    expansion: Vec<f64>,
    weights: Option<Vec<f64>>,
    intercepts: Vec<f64>,
    /// f + b
    decision: Vec<f64>,
    /// base of the bound, for q.
    base: Vec<f64>,
    gap: f64,
}

/// The rows of a bound in scaled units.
struct Shape {
    totals: Vec<f64>,
    knots: Vec<f64>,
    base: Vec<f64>,
    /// Classes that take part.
    present: Vec<usize>,
}

struct Interior<'a> {
    /// With caps in scaled units.
    problem: ManyClass<'a>,
    space: &'a Space<'a>,
    point: Point,
}

impl Interior<'_> {
    fn shape(&self, bound: &Majorant) -> Shape {
        let (n, k) = (self.problem.rows(), self.problem.classes);
        let mut shape =
            Shape { totals: vec![0.0; n], knots: vec![0.0; n * k], base: vec![0.0; n * k], present: vec![] };
        for row in 0..n {
            let at = row * k..(row + 1) * k;
            shape.totals[row] =
                self.problem.shape(bound, row, &mut shape.knots[at.clone()], &mut shape.base[at.clone()]);
            if let Terms::Cost(_) = self.problem.terms {
                shape.base[at].iter_mut().for_each(|base| *base = self.space.data().enter(*base));
            }
        }
        let has_base = |class: &usize| shape.base.iter().skip(*class).step_by(k).any(|base| *base > 0.0);
        shape.present = match self.problem.intercept {
            true => (0..k).filter(has_base).collect(),
            false => (0..k).collect(),
        };
        shape
    }

    /// Follows the path for the classes that take part; V and theta of all classes.
    fn follow(&self, shape: &Shape, tolerance: f64, control: &Control) -> Result<core::Outcome> {
        let (k, p) = (self.problem.classes, self.space.columns);
        let present = &shape.present;
        let ridge = self.space.ridge();
        let linear = vec![0.0; present.len() * p];
        let take = |from: &[f64]| -> Vec<f64> {
            from.chunks_exact(k).flat_map(|row| present.iter().map(|&class| row[class])).collect()
        };
        let (knots, base) = (take(&shape.knots), take(&shape.base));
        let place = |code: &u32| present.iter().position(|&class| class == *code as usize).unwrap_or(0) as u32;
        let codes: Vec<u32> = self.problem.codes.iter().map(place).collect();
        let loss = self.problem.loss.base();
        let rows = match loss.is_smooth() {
            true => Rows::Smooth { loss, codes: &codes, caps: &shape.totals },
            false => Rows::Hinge { totals: &shape.totals, knots: &knots, base: &base },
        };
        let features = &self.space.features;
        let task = Task { features, columns: p, classes: present.len(), ridge: &ridge, linear: &linear, rows };
        let goal = Goal { relative: tolerance, absolute: f64::MIN_POSITIVE };
        let mut outcome = core::minimize(&task, None, goal, control)?;
        outcome.expansion = spread(&outcome.expansion, present, k);
        let mut theta = vec![0.0; k * p];
        for (from, &class) in present.iter().enumerate() {
            theta[class * p..(class + 1) * p].copy_from_slice(&outcome.theta[from * p..(from + 1) * p]);
        }
        outcome.theta = theta;
        Ok(outcome)
    }

    /// V made feasible and judged, with b of the path.
    fn certify(&self, bound: &Majorant, shape: Shape, mut expansion: Vec<f64>, theta: &[f64]) -> Point {
        let (k, p) = (self.problem.classes, self.space.columns);
        let smooth = self.problem.loss.base().is_smooth();
        if self.problem.intercept {
            let room = Room {
                base: if smooth { &[] } else { &shape.base },
                codes: self.problem.codes,
                caps: &shape.totals,
                loss: smooth.then(|| self.problem.loss.base()),
            };
            balance(&mut expansion, k, &room);
        }
        let (image, weights) = self.space.image(&expansion, k);
        let half = 0.5 * expansion.iter().zip(&image).map(|(v, f)| v * f).sum::<f64>();
        let dual = self.rows_dual(&shape, &expansion) - half;
        let intercepts: Vec<f64> = match self.problem.intercept {
            true => (0..k).map(|class| theta[class * p + p - 1]).collect(),
            false => vec![0.0; k],
        };
        let judge = |image: Vec<f64>, weights: Option<Vec<f64>>, penalty: f64| {
            let mut intercepts = intercepts.clone();
            self.lower_absent(&shape, &image, &mut intercepts);
            let mut decision = image;
            decision.chunks_exact_mut(k).for_each(|f| f.iter_mut().zip(&intercepts).for_each(|(f, b)| *f += b));
            let primal = penalty + self.loss(bound, &decision, &shape);
            let gap = (primal - dual).abs() / primal.abs().max(f64::MIN_POSITIVE);
            let gap = if gap.is_nan() { f64::INFINITY } else { gap };
            Point { expansion: Vec::new(), weights, intercepts, decision, base: Vec::new(), gap }
        };
        let mut best = judge(image, weights, half);
        if self.space.explicit {
            let d = self.problem.x.cols();
            let weights: Vec<f64> = theta.chunks_exact(p.max(1)).flat_map(|theta| &theta[..d]).copied().collect();
            let penalty = Norm::Squared.of_weights(&weights);
            let image = self.space.scores(&weights, k);
            let other = judge(image, Some(weights), penalty);
            if other.gap < best.gap {
                best = other;
            }
        }
        Point { expansion, base: shape.base, ..best }
    }

    /// The bound's loss in scaled units.
    fn loss(&self, bound: &Majorant, decision: &[f64], shape: &Shape) -> f64 {
        if let Terms::Cost(_) = self.problem.terms {
            // the bound's base is in the caller's units
            let scaled = Majorant { kept: bound.kept.clone(), base: shape.base.clone() };
            return self.problem.convex_loss(&scaled, decision);
        }
        self.problem.convex_loss(bound, decision)
    }

    /// b of the classes that take no part: below all others by 1 everywhere. Then all are centred.
    fn lower_absent(&self, shape: &Shape, image: &[f64], intercepts: &mut [f64]) {
        let k = intercepts.len();
        if !self.problem.intercept {
            return;
        }
        if shape.present.len() < k {
            let lowest = image
                .chunks_exact(k)
                .flat_map(|f| shape.present.iter().map(|&class| f[class] + intercepts[class]))
                .fold(f64::INFINITY, f64::min);
            let beyond = match shape.present.len() {
                0 => 0.0,
                1 if self.problem.loss.base().is_smooth() => lowest - BEYOND_LOSS,
                _ => lowest - 1.0,
            };
            for class in (0..k).filter(|class| !shape.present.contains(class)) {
                intercepts[class] = beyond;
            }
        }
        let mean = intercepts.iter().sum::<f64>() / k as f64;
        intercepts.iter_mut().for_each(|b| *b -= mean);
    }

    /// The rows' part of the dual.
    fn rows_dual(&self, shape: &Shape, expansion: &[f64]) -> f64 {
        let k = self.problem.classes;
        let loss = self.problem.loss.base();
        let of_row = |row: usize| {
            let (total, at) = (shape.totals[row], row * k..(row + 1) * k);
            let v = &expansion[at.clone()];
            if total == 0.0 {
                return 0.0;
            }
            if loss.is_smooth() {
                return -total * loss.conjugate((v[self.problem.codes[row] as usize] / total).max(0.0));
            }
            let cells = v.iter().zip(&shape.base[at.clone()]).zip(&shape.knots[at]);
            total - cells.map(|((v, base), knot)| (base - v - knot).max(0.0)).sum::<f64>()
        };
        (0..shape.totals.len()).map(of_row).sum()
    }

    /// With no class, or a single one, f = 0 is best.
    fn settle_trivially(&self, bound: &Majorant, shape: Shape) -> Point {
        let zero = vec![0.0; self.point.expansion.len()];
        let theta = vec![0.0; self.problem.classes * self.space.columns];
        self.certify(bound, shape, zero, &theta)
    }
}

/// Columns for all classes, 0 for those that take no part.
fn spread(expansion: &[f64], present: &[usize], k: usize) -> Vec<f64> {
    let rows = expansion.len() / present.len().max(1);
    let mut out = vec![0.0; rows * k];
    for (row, values) in expansion.chunks_exact(present.len()).enumerate() {
        values.iter().zip(present).for_each(|(value, class)| out[row * k + class] = *value);
    }
    out
}

impl Convex<ManyClass<'_>> for Interior<'_> {
    type Point = Point;

    fn minimize(&mut self, bound: &Majorant, tolerance: f64, control: &Control) -> Result<Step> {
        let shape = self.shape(bound);
        if shape.present.len() < 2 || shape.totals.iter().all(|total| *total == 0.0) {
            self.point = self.settle_trivially(bound, shape);
            return Ok(Step { gap: self.point.gap, iterations: 0, status: Status::Converged });
        }
        let mut aim = AIM * tolerance;
        let mut iterations = 0;
        let mut best: Option<Point> = None;
        let mut status = Status::Inaccurate;
        for _ in 0..ATTEMPTS {
            let outcome = self.follow(&shape, aim, control)?;
            iterations += outcome.iterations;
            let again = self.shape(bound);
            let point = self.certify(bound, again, outcome.expansion, &outcome.theta);
            if best.as_ref().is_none_or(|best| point.gap < best.gap) {
                best = Some(point);
            }
            let gap = best.as_ref().map_or(f64::INFINITY, |best| best.gap);
            status = match outcome.status {
                _ if gap <= tolerance => Status::Converged,
                Status::Converged => Status::Inaccurate,
                other => other,
            };
            if outcome.status != Status::Converged || gap <= tolerance {
                break;
            }
            aim *= FURTHER;
        }
        if let Some(best) = best.filter(|best| best.gap.is_finite()) {
            self.point = best;
        } else {
            let problem =
                "the interior point left the range of floating point; scale X or choose another C".to_string();
            return Err(Error::Numerical { problem });
        }
        Ok(Step { gap: self.point.gap, iterations, status })
    }

    fn decision(&self) -> Vec<f64> {
        self.point.decision.clone()
    }

    fn penalty(&self) -> f64 {
        let data = self.space.data();
        match &self.point.weights {
            Some(weights) => 0.5 * weights.iter().map(|&w| data.leave_weight(w).powi(2)).sum::<f64>(),
            None => {
                let k = self.problem.classes;
                let b = &self.point.intercepts;
                let cells = self.point.expansion.iter().zip(&self.point.decision).enumerate();
                0.5 * cells.map(|(at, (v, f))| v * (f - b[at % k])).sum::<f64>()
            }
        }
    }

    fn duals(&self) -> Option<Vec<f64>> {
        let has = matches!(self.problem.terms, Terms::Cost(_)) && !self.point.base.is_empty();
        has.then(|| self.point.base.iter().zip(&self.point.expansion).map(|(base, v)| (base - v).max(0.0)).collect())
    }

    fn point(&self) -> Point {
        self.point.clone()
    }

    fn go_to(&mut self, point: &Point) {
        self.point = point.clone();
    }

    fn answer(&self) -> Answer {
        let data = self.space.data();
        Answer {
            expansion: self.point.expansion.iter().map(|&v| data.leave(v)).collect(),
            weights: self.point.weights.as_ref().map(|weights| weights.iter().map(|&w| data.leave_weight(w)).collect()),
            intercepts: self.point.intercepts.clone(),
        }
    }
}
