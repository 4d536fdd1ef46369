//! Linear hinge of k classes, sparse or with many columns: block dual coordinate descent with exact, unpenalised intercepts.
//!
//! The structure is that of two classes (see the module above): exact steps on one row's k dual variables in random order with
//! shrinking (`blocks`), a proximal-point loop on b, and a stop on the duality gap of a feasible pair: V with columns that sum
//! to 0, w = X'V recomputed, b of the loop. Where descent creeps (large C) and the smaller side of X is small, an interior
//! point solves the problem instead. Truncated rows are dropped. A class that no kept row has takes no part.
//!
//! Iterations are counted in passes over the rows. Cost of one: O(non-zeros x k). Memory: O((n + d) k).

use super::super::interior::{self, balance::Room};
use super::super::majorize::Step;
use super::super::scaled::Scaled;
use super::super::truncation::{self, Answer, Convex};
use super::super::{Options, Solution, Status};
use super::blocks::{Blocks, balance_cheaply, combine, multiply};
use super::{FAIR_TRIAL, NAME, PASSES_PER_LOOK, PATIENCE, PROGRESS, RISE, ROUNDING_SLACK, half};
use crate::control::{Control, Progress};
use crate::error::{Error, Result};
use crate::problem::{KernelFunction, Majorant, ManyClass, Norm, Terms};

/// Rows times the square of the smaller side times the square of the classes up to which an interior point may help.
const MOST_WORK: f64 = 2e10;
/// Passes before the first look at the duality gap.
const FIRST_LOOK: usize = 8;
/// Columns of its normal matrix.
const MOST_ORDER: usize = 3000;
/// Matrices of that order which it takes as much memory as, with those of its threads.
const MATRICES: usize = 12;

/// Solves a linear hinge problem of k classes with terms of the rows' own classes, truncated or not.
pub fn solve_many(problem: &ManyClass, options: &Options, control: &Control) -> Result<Solution> {
    solve_many_with(problem, options, control, true)
}

pub(super) fn solve_many_with(
    problem: &ManyClass,
    options: &Options,
    control: &Control,
    shrinking: bool,
) -> Result<Solution> {
    let needs = |what: &str| Err(Error::parameter("solver", NAME, format!("another one: {NAME} needs {what}")));
    if !matches!(problem.kernel, KernelFunction::Linear) {
        return needs("kernel = linear");
    }
    if problem.loss.base().is_smooth() {
        return needs("loss = hinge");
    }
    if problem.terms != Terms::Own {
        return needs("neither a utility nor a cost matrix with more than two classes");
    }
    if problem.norm != Norm::Squared {
        return needs("penalty = l2");
    }
    let data = Scaled::new(problem.x, problem.caps);
    let mut solver = ManyCoordinate::new(problem, &data, options, shrinking);
    truncation::solve(problem, options, control, &mut solver, NAME)
}

/// A feasible pair with its gap, in scaled units.
#[derive(Clone)]
struct Point {
    expansion: Vec<f64>,
    /// Columns x classes.
    weights: Vec<f64>,
    /// w_j'x_i
    scores: Vec<f64>,
    intercepts: Vec<f64>,
    /// Value of the dual.
    value: f64,
    gap: f64,
}

struct ManyCoordinate<'a> {
    problem: &'a ManyClass<'a>,
    data: &'a Scaled<'a>,
    options: &'a Options,
    blocks: Blocks<'a>,
    /// Caps in scaled units, low enough for every margin to be finite.
    caps: Vec<f64>,
    point: Point,
    accuracy: f64,
}

impl<'a> ManyCoordinate<'a> {
    fn new(problem: &'a ManyClass<'a>, data: &'a Scaled<'a>, options: &'a Options, shrinking: bool) -> Self {
        let (n, k) = (problem.rows(), problem.classes);
        let blocks = Blocks::new(data, problem.codes, k, problem.intercept, shrinking, options.seed);
        let largest = blocks.squares.iter().fold(blocks.stiffness, |largest, &square| largest.max(square));
        let most = 1e290 / (largest.max(1.0) * (n as f64 + 1.0).powi(2));
        let caps = problem.caps.iter().map(|&cap| data.enter(cap).min(most)).collect();
        let start =
            options.start.as_ref().filter(|start| start.expansion.len() == n * k && start.intercepts.len() == k);
        let point = Point {
            expansion: match start {
                Some(start) => start.expansion.iter().map(|&v| data.enter(v)).collect(),
                None => vec![0.0; n * k],
            },
            weights: vec![0.0; data.cols() * k],
            scores: vec![0.0; n * k],
            intercepts: start.map_or(vec![0.0; k], |start| start.intercepts.clone()),
            value: f64::NEG_INFINITY,
            gap: f64::INFINITY,
        };
        ManyCoordinate { problem, data, options, blocks, caps, point, accuracy: 0.1 }
    }

    /// Passes until no row's violation exceeds `accuracy`. Returns their number.
    fn descend(&mut self, accuracy: f64, most: usize, control: &Control) -> Result<usize> {
        let mut passes = 0;
        while passes < most && !control.out_of_time() {
            control.check()?;
            let violation = self.blocks.epoch();
            passes += 1;
            if violation <= accuracy {
                if self.blocks.live == self.blocks.rows.len() {
                    break;
                }
                self.blocks.unshrink();
            }
        }
        Ok(passes)
    }

    /// A feasible pair near the dual's current point, and its gap.
    fn certify(&mut self, bound: &Majorant) -> Point {
        self.blocks.refresh();
        let k = self.problem.classes;
        let blocks = &self.blocks;
        let mut expansion = blocks.expansion.clone();
        let mut weights = blocks.weights.clone();
        let mut scores = multiply(self.data, &weights, k);
        if self.problem.intercept {
            balance_cheaply(&mut expansion, k, &scores, self.problem.codes, &blocks.caps);
            let base: Vec<f64> = (0..expansion.len())
                .map(|at| if self.problem.codes[at / k] as usize == at % k { blocks.caps[at / k] } else { 0.0 })
                .collect();
            let room = Room { base: &base, codes: self.problem.codes, caps: &blocks.caps, loss: None };
            interior::balance::balance(&mut expansion, k, &room);
            weights = combine(self.data, &expansion, k);
            scores = multiply(self.data, &weights, k);
        }
        let mut intercepts: Vec<f64> = (0..k).map(|class| blocks.intercept(class)).collect();
        self.lower_absent(&scores, &mut intercepts);
        self.judge(bound, expansion, weights, scores, intercepts)
    }

    /// b of the classes that take no part: below all others by 1 everywhere. Then all are centred.
    fn lower_absent(&self, scores: &[f64], intercepts: &mut [f64]) {
        let (k, present) = (intercepts.len(), &self.blocks.present);
        if !self.problem.intercept {
            return;
        }
        if present.len() < k {
            let values = scores.chunks_exact(k).flat_map(|f| present.iter().map(|&class| f[class] + intercepts[class]));
            let lowest = values.fold(f64::INFINITY, f64::min);
            for class in (0..k).filter(|class| !present.contains(class)) {
                intercepts[class] = if present.is_empty() { 0.0 } else { lowest - 1.0 };
            }
        }
        let mean = intercepts.iter().sum::<f64>() / k as f64;
        intercepts.iter_mut().for_each(|b| *b -= mean);
    }

    fn judge(
        &self,
        bound: &Majorant,
        expansion: Vec<f64>,
        weights: Vec<f64>,
        scores: Vec<f64>,
        intercepts: Vec<f64>,
    ) -> Point {
        let k = self.problem.classes;
        let own: f64 = expansion.chunks_exact(k).zip(self.problem.codes).map(|(v, &code)| v[code as usize]).sum();
        let value = own - half(&weights);
        let mut point = Point { expansion, weights, scores, intercepts, value, gap: f64::INFINITY };
        let primal = self.primal(&point, bound);
        let size: f64 = point.expansion.iter().map(|v| v.abs()).sum();
        let off = |class: usize| point.expansion.iter().skip(class).step_by(k).sum::<f64>().abs();
        let balanced = !self.problem.intercept || (0..k).all(|class| off(class) <= 1e-12 * size);
        let gap = (primal - value) / primal.abs().max(f64::MIN_POSITIVE);
        point.gap = if gap.is_nan() || !balanced { f64::INFINITY } else { gap };
        self.lengthen(point, bound, primal)
    }

    /// 1 - the margin of a row's own class.
    fn slack(&self, point: &Point, row: usize) -> f64 {
        let k = self.problem.classes;
        let own = self.problem.codes[row] as usize;
        let f = |class: usize| point.scores[row * k + class] + point.intercepts[class];
        let rival = (0..k).filter(|class| *class != own).map(f).fold(f64::NEG_INFINITY, f64::max);
        1.0 - (f(own) - rival)
    }

    /// The convex objective at a point, with the caller's own caps: what was cut off to keep numbers finite must show.
    fn primal(&self, point: &Point, bound: &Majorant) -> f64 {
        let mut primal = half(&point.weights);
        for row in (0..bound.kept.len()).filter(|&row| bound.kept[row]) {
            let loss = self.slack(point, row);
            primal += if loss > 0.0 { self.data.enter(self.problem.caps[row]) * loss } else { 0.0 };
        }
        primal
    }

    /// With a huge C, margins short of 1 by a rounding error cost more than all else: a slightly longer (w, b) puts them
    /// beyond 1, and is taken where it is better.
    fn lengthen(&self, point: Point, bound: &Majorant, primal: f64) -> Point {
        let kept = (0..bound.kept.len()).filter(|&row| bound.kept[row] && self.caps[row] > 0.0);
        let largest = kept.map(|row| self.slack(&point, row)).fold(0.0, f64::max);
        if largest == 0.0 || largest >= ROUNDING_SLACK {
            return point;
        }
        let factor = 1.0 + 2.0 * largest;
        let mut longer = point.clone();
        longer.weights.iter_mut().for_each(|w| *w *= factor);
        longer.scores = multiply(self.data, &longer.weights, self.problem.classes);
        longer.intercepts.iter_mut().for_each(|b| *b *= factor);
        let longer_primal = self.primal(&longer, bound);
        if longer_primal < primal && point.gap.is_finite() {
            longer.gap = (longer_primal - longer.value) / longer_primal.abs().max(f64::MIN_POSITIVE);
            longer
        } else {
            point
        }
    }

    /// One proximal step of b. Returns its length, 0 without intercept.
    fn move_centre(&mut self, last: &mut f64) -> f64 {
        if !self.problem.intercept {
            return 0.0;
        }
        let next: Vec<f64> = (0..self.problem.classes).map(|class| self.blocks.intercept(class)).collect();
        let moved = next.iter().zip(&self.blocks.centre).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        if moved > 0.5 * *last {
            self.blocks.stiffen();
        }
        *last = moved;
        self.blocks.centre = next;
        self.blocks.unshrink();
        moved
    }

    /// The same convex problem by an interior point, if it is small enough for one.
    fn jump(&mut self, bound: &Majorant, tolerance: f64, control: &Control) -> Result<Option<Point>> {
        let (n, d, k) = (self.problem.rows(), self.data.cols(), self.problem.classes);
        let side = n.min(d) + 1;
        let work = n as f64 * (side * side) as f64 * (k * k) as f64;
        let order = side * (k - 1);
        if order > MOST_ORDER || work > MOST_WORK || 8 * MATRICES * order * order > self.options.cache_bytes {
            return Ok(None);
        }
        let caps: Vec<f64> =
            self.problem.caps.iter().zip(&bound.kept).map(|(cap, kept)| if *kept { *cap } else { 0.0 }).collect();
        let convex = ManyClass { caps: &caps, loss: self.problem.loss.untruncated(), ..*self.problem };
        let options = Options { tolerance: 0.1 * tolerance, start: None, ..self.options.clone() };
        let found = match interior::solve_many(&convex, &options, control) {
            Ok(found) => found,
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(_) => return Ok(None),
        };
        let expansion: Vec<f64> = found.expansion.iter().map(|&v| self.data.enter(v)).collect();
        self.blocks.start(&expansion, &found.intercepts);
        self.accuracy = self.accuracy.min(tolerance);
        // w of the interior point beside its V, which is feasible as it is
        let columns = self.data.cols();
        let mut weights = vec![0.0; columns * k];
        for (at, w) in found.weights.unwrap_or_default().into_iter().enumerate() {
            weights[at % columns * k + at / columns] = self.data.enter_weight(w);
        }
        let value = {
            let own: f64 = expansion.chunks_exact(k).zip(self.problem.codes).map(|(v, &code)| v[code as usize]).sum();
            own - half(&combine(self.data, &expansion, k))
        };
        let scores = multiply(self.data, &weights, k);
        let mut point = self.judge(bound, expansion, weights, scores, found.intercepts);
        if point.gap.is_finite() {
            let primal = self.primal(&point, bound);
            point.value = value;
            point.gap = (primal - value) / primal.abs().max(f64::MIN_POSITIVE);
        }
        Ok(Some(point))
    }
}

impl Convex<ManyClass<'_>> for ManyCoordinate<'_> {
    type Point = Point;

    fn minimize(&mut self, bound: &Majorant, tolerance: f64, control: &Control) -> Result<Step> {
        for (row, cap) in self.blocks.caps.iter_mut().enumerate() {
            *cap = if bound.kept[row] { self.caps[row] } else { 0.0 };
        }
        self.blocks.start(&self.point.expansion, &self.point.intercepts);
        self.point = self.certify(bound);
        self.accuracy = (16.0 * self.accuracy).min(0.1);
        let (mut passes, mut looks, mut last_move) = (0, 0, f64::INFINITY);
        let (mut jumped, mut unmoved) = (false, 0);
        let (mut least_gap, mut highest) = (f64::INFINITY, f64::NEG_INFINITY);
        let limit = self.options.max_iterations;
        let status = loop {
            if self.point.gap <= tolerance {
                break Status::Converged;
            }
            if passes >= limit {
                break Status::IterationLimit;
            }
            if control.out_of_time() {
                break Status::TimeLimit;
            }
            if looks > PATIENCE && passes > FAIR_TRIAL {
                break Status::Inaccurate;
            }
            if !jumped && passes > FAIR_TRIAL {
                jumped = true;
                if let Some(point) = self.jump(bound, tolerance, control)?
                    && point.gap < self.point.gap
                {
                    least_gap = least_gap.min(point.gap);
                    self.point = point;
                    continue;
                }
            }
            let most = (passes / 2).clamp(FIRST_LOOK, PASSES_PER_LOOK).min(limit - passes);
            let taken = self.descend(self.accuracy, most, control)?;
            passes += taken;
            unmoved += taken;
            let point = self.certify(bound);
            control.report(Progress { stage: NAME, step: passes, objective: f64::NAN, gap: point.gap });
            let rises = point.value > highest + RISE * highest.abs() || highest == f64::NEG_INFINITY;
            looks = if point.gap < PROGRESS * least_gap || rises { 0 } else { looks + 1 };
            least_gap = least_gap.min(point.gap);
            highest = highest.max(point.value);
            if point.gap < self.point.gap {
                self.point = point;
            }
            // b0 moves when its inner problem is solved, or has had its share of passes
            if taken < most || unmoved >= PASSES_PER_LOOK {
                unmoved = 0;
                let moved = self.move_centre(&mut last_move);
                if taken < most {
                    self.accuracy = (0.1 * moved).clamp(0.1 * self.accuracy, 0.5 * self.accuracy).max(1e-15);
                }
            }
        };
        Ok(Step { gap: self.point.gap, iterations: passes, status })
    }

    fn decision(&self) -> Vec<f64> {
        let k = self.problem.classes;
        self.point.scores.iter().enumerate().map(|(at, f)| f + self.point.intercepts[at % k]).collect()
    }

    fn penalty(&self) -> f64 {
        0.5 * self.point.weights.iter().map(|&w| self.data.leave_weight(w).powi(2)).sum::<f64>()
    }

    fn point(&self) -> Point {
        self.point.clone()
    }

    fn go_to(&mut self, point: &Point) {
        self.point = point.clone();
    }

    fn answer(&self) -> Answer {
        let (k, d) = (self.problem.classes, self.data.cols());
        let weight = |at: usize| self.data.leave_weight(self.point.weights[at % d * k + at / d]);
        Answer {
            expansion: self.point.expansion.iter().map(|&v| self.data.leave(v)).collect(),
            weights: Some((0..k * d).map(weight).collect()),
            intercepts: self.point.intercepts.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::dual::Random;
    use super::*;
    use crate::data::Dense;
    use crate::problem::Loss;

    #[test]
    fn shrinking_changes_nothing() {
        let mut random = Random(3);
        let (n, d, k) = (150, 10, 4);
        let codes: Vec<u32> = (0..n).map(|row| (row % k) as u32).collect();
        let shift = |at: usize| 0.4 * f64::from(u8::from(at % d == codes[at / d] as usize));
        let values: Vec<f64> = (0..n * d).map(|at| random.uniform() - 0.5 + shift(at)).collect();
        let x = Dense::new(n, d, values).unwrap();
        for (c, loss) in [(0.1, Loss::hinge()), (1.0, Loss::hinge()), (1.0, Loss::hinge().truncated_at(-0.5).unwrap())]
        {
            let caps = vec![c; n];
            let problem = ManyClass {
                x: &x,
                codes: &codes,
                classes: k,
                caps: &caps,
                terms: Terms::Own,
                loss,
                norm: Norm::Squared,
                kernel: &KernelFunction::Linear,
                intercept: true,
            };
            let options = Options { tolerance: 1e-8, ..Options::default() };
            let on = solve_many_with(&problem, &options, &Control::default(), true).unwrap();
            let off = solve_many_with(&problem, &options, &Control::default(), false).unwrap();
            assert!(on.status.is_converged() && off.status.is_converged(), "{} {}", on.gap, off.gap);
            assert!(on.objective > 0.0 && on.expansion.iter().any(|v| *v != 0.0));
            assert!((on.objective - off.objective).abs() <= 1e-6 * on.objective, "C = {c}");
        }
    }
}
