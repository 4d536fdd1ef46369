//! The augmented Lagrangian and its proximal Newton method, on a working set of columns.
//!
//! ```text
//! repeat                                                  V: multipliers of the rows, sigma: weight of the square
//!   minimise  sum_i smoothed_i(f_i; V, sigma) + sum rate |w|   by proximal Newton steps on the working set
//!   columns outside it whose bound |x_j'V| <= rate fails enter, and the minimisation goes on
//!   V = minus the gradient of the smoothed loss; sigma grows
//! until the duality gap is small
//! ```
//!
//! V made feasible (see `certificate`) bounds the optimum from below at every step; the best bound and the best point are
//! kept. For piecewise linear losses the iteration is finite: once window and signs are those of the solution, one
//! Newton step is exact. A smooth loss takes the same road without multipliers.
//!
//! Cost per Newton step, window of m rows, p columns: O(n p) and, where the window moved, O(m p^2), and a p x p Cholesky
//! factor or two; a pass over all of X per multiplier step.

use super::super::Status;
use super::super::majorize::Step;
use super::certificate::{Best, rounding_of, worst_ratio};
use super::columns::Columns;
use super::gram::Gram;
use super::interior::Groups;
use super::model::Model;
use super::rows::{Local, Rows, pair};
use crate::control::{Control, Progress};
use crate::error::Result;
use crate::linalg::Isa;

/// Most multiplier steps.
const MOST_ROUNDS: usize = 200;
/// Most Newton steps for one set of multipliers.
const MOST_STEPS: usize = 300;
/// Multiplier steps without a smaller gap after which rounding is taken to be the reason.
const PATIENCE: usize = 8;
/// Largest sigma in units of the largest cap.
const STIFFEST: f64 = 1e4;
/// Largest first sigma next to multipliers that are known already: they shall stay what they are, not jump to their caps.
const WARM: f64 = 10.0;
/// A sigma, relative to the largest cap, below which the search for the right one goes in leaps as long as nothing is certified.
const FAINT: f64 = 1e-6;
/// First accuracy of the minimisation, relative to the objective.
const LOOSE: f64 = 0.05;
/// Multiplications that are not worth counting.
const CHEAP: f64 = 1e6;
/// Interior point steps whose work the engine may spend before it leaves the problem to them: without and with a start. On sparse
/// solutions it needs much less than one, on dense ones more than all of them would. With fewer columns than rows its own equations are the
/// smaller ones, and it may spend the work of a whole solution.
const WAIT: (f64, f64) = (0.25, 2.0);
const WAIT_TALL: f64 = 30.0;
/// How many times the work spent so far a last attempt may take, how many multiplications at least, and the gap that is worth one, next
/// to the tolerance.
const LAST: f64 = 10.0;
const MODEST: f64 = 1e9;
const FAR: f64 = 100.0;
/// Accuracy asked for next to the solution, where a step is exact.
const FINE: f64 = 1e-7;
/// Damping: first and least, relative to the stiffness, and most, relative to the curvature (`Engine::stiffness`).
const DAMPING: (f64, f64, f64) = (0.1, 0.03, 10.0);
/// Full steps in a row after which the least damping goes down, by a factor of 10 with each of the next few.
const FULL: usize = 10;
const FALLS: usize = 8;
/// Damping next to the solution: first and least.
const NEAR: (f64, f64) = (1e-6, 1e-9);
/// Share of the predicted decrease a step must keep.
const ARMIJO: f64 = 1e-4;
const ROUNDING: f64 = 1e-15;

pub(super) struct Engine<'a, R: Rows> {
    pub(super) rows: R,
    pub(super) columns: Columns<'a>,
    /// Functions x columns, as the caller gave them.
    pub(super) rates: Vec<f64>,
    /// The objective is worked with in this unit, a power of two times the C of a path.
    pub(super) unit: f64,
    /// Coefficients of the working set in its units, slot-major.
    pub(super) weights: Vec<f64>,
    /// f, function-major.
    pub(super) decision: Vec<f64>,
    pub(super) multipliers: Vec<f64>,
    pub(super) best: Best,
    sigma: Option<f64>,
    damping: f64,
    /// Full steps in a row.
    full: usize,
    /// Whether the interior point method has led next to the solution.
    near: bool,
    pub(super) gram: Gram,
    iterations: usize,
    /// Multiplications of the current minimisation, and how many it may take before another way is looked for.
    work: f64,
    allowed: f64,
    /// Multiplications of all minimisations, passes over X included.
    pub(super) spent: f64,
    pub(super) groups: Option<Groups>,
    /// Whether columns are left out of the working set until they are needed.
    screening: bool,
}

/// How a Newton step ended.
enum Move {
    /// The objective fell.
    Down,
    /// A full step whose decrease rounding would hide.
    Blind,
    /// There is no step to take.
    Stuck,
}

/// The point before a blind step, and how inexact it was.
struct Before {
    weights: Vec<f64>,
    decision: Vec<f64>,
    inexactness: f64,
}

/// Where another way was taken.
struct Aside {
    point: Vec<(usize, Vec<f64>)>,
    multipliers: Vec<f64>,
    sigma: f64,
    accuracy: f64,
}

impl<'a, R: Rows> Engine<'a, R> {
    pub(super) fn new(rows: R, columns: Columns<'a>, rates: Vec<f64>, unit: f64) -> Self {
        let size = columns.rows() * rows.functions();
        let mut engine = Engine {
            rows,
            columns,
            rates,
            unit,
            weights: Vec::new(),
            decision: vec![0.0; size],
            multipliers: vec![0.0; size],
            best: Best::new(size),
            sigma: None,
            damping: DAMPING.0,
            full: 0,
            near: false,
            gram: Gram::default(),
            iterations: 0,
            work: 0.0,
            allowed: f64::INFINITY,
            spent: 0.0,
            groups: None,
            screening: true,
        };
        let free: Vec<usize> = (0..engine.columns.cols()).filter(|&column| engine.is_free(column)).collect();
        if engine.columns.has_intercept() {
            engine.enter(&[engine.columns.cols()]);
        }
        engine.enter(&free);
        engine
    }

    pub(super) fn functions(&self) -> usize {
        self.rows.functions()
    }

    /// The rate of an entry in the units of its column.
    pub(super) fn rate(&self, column: usize, function: usize) -> f64 {
        let d = self.columns.cols();
        if column == d { 0.0 } else { self.rates[function * d + column] / self.unit * self.columns.shrink(column) }
    }

    /// Whether the column can move at no cost.
    pub(super) fn is_free(&self, column: usize) -> bool {
        let zeros = (0..self.functions()).filter(|&function| self.rate(column, function) == 0.0).count();
        zeros >= self.functions().min(2)
    }

    /// Puts columns into the working set.
    pub(super) fn enter(&mut self, columns: &[usize]) {
        if !columns.is_empty() {
            self.columns.add(columns);
            self.weights.resize(self.columns.len() * self.functions(), 0.0);
        }
    }

    /// Changes the rates; coefficients that an infinite rate fixes become 0.
    pub(super) fn set_rates(&mut self, rates: &[f64]) {
        self.rates.copy_from_slice(rates);
        let m = self.functions();
        let members = self.columns.members().to_vec();
        for (slot, column) in members.into_iter().enumerate() {
            for function in 0..m {
                if self.rate(column, function) == f64::INFINITY {
                    self.weights[slot * m + function] = 0.0;
                }
            }
        }
        let free: Vec<usize> = (0..self.columns.cols()).filter(|&column| self.is_free(column)).collect();
        self.enter(&free);
        self.gram.clear();
        self.drop_zeros();
        self.refresh();
    }

    /// Starts from coefficients (functions x columns) and intercepts in the caller's units.
    pub(super) fn start_at(&mut self, weights: &[f64], intercepts: &[f64]) {
        let (m, d) = (self.functions(), self.columns.cols());
        if weights.len() != m * d || intercepts.len() != m {
            return;
        }
        let used = |column: &usize| {
            let entry = |function: usize| (weights[function * d + column], self.rate(*column, function));
            let possible = |(w, rate): (f64, f64)| w == 0.0 || rate < f64::INFINITY;
            (0..m).any(|function| entry(function).0 != 0.0) && (0..m).all(|function| possible(entry(function)))
        };
        let used: Vec<usize> = (0..d).filter(used).collect();
        self.enter(&used);
        for (slot, &column) in self.columns.members().iter().enumerate() {
            for function in 0..m {
                self.weights[slot * m + function] = match column {
                    column if column == d => intercepts[function],
                    column => weights[function * d + column] / self.columns.shrink(column),
                };
            }
        }
        self.refresh();
    }

    /// f from the coefficients.
    pub(super) fn refresh(&mut self) {
        self.decision.fill(0.0);
        let m = self.functions();
        self.columns.multiply_add(&self.weights, m, &mut self.decision);
    }

    /// sum rate |w| in units of `unit`
    pub(super) fn penalty(&self) -> f64 {
        let m = self.functions();
        let slots = self.columns.members().iter().zip(self.weights.chunks_exact(m));
        let of = |(&column, weights): (&usize, &[f64])| -> f64 {
            let entries = weights.iter().enumerate().filter(|(_, w)| **w != 0.0);
            entries.map(|(function, w)| self.rate(column, function) * w.abs()).sum()
        };
        slots.map(of).sum()
    }

    /// Minimises the convex problem to a relative gap, starting from the current point and multipliers.
    pub(super) fn minimize(&mut self, tolerance: f64, limit: usize, control: &Control) -> Result<Step> {
        self.iterations = 0;
        self.best = Best::new(self.multipliers.len());
        self.rows.admit(&mut self.multipliers);
        if self.rows.largest_cap() == 0.0 {
            self.weights.fill(0.0);
            self.multipliers.fill(0.0);
        }
        self.refresh();
        let first = self.first_sigma();
        let mut sigma = first;
        let mut accuracy = LOOSE;
        let wait = if self.multipliers.iter().all(|v| *v == 0.0) { WAIT.0 } else { WAIT.1 };
        self.work = 0.0;
        self.full = 0;
        self.near = false;
        self.allowed = CHEAP;
        let (mut waited, mut status) = (0, Status::IterationLimit);
        let (mut last, mut leap) = (f64::INFINITY, 1);
        // whether the interior point method has had its turn, and where it took over
        let (mut tried, mut aside) = (false, None);
        for round in 0..MOST_ROUNDS {
            let before = self.iterations;
            let Some((local, violators)) = self.descend(sigma, accuracy, limit, control)? else {
                // the face is dense, or there is no other way than on
                self.allowed = self.interior_work().map_or(f64::INFINITY, |work| self.patience(wait) * work);
                if self.work > self.allowed {
                    tried = true;
                    let here = self.aside(sigma, accuracy);
                    if let Some(near) = self.lead_inside(tolerance, control)? {
                        ((sigma, accuracy), aside) = (near, Some(here));
                    }
                }
                continue;
            };
            let gap = self.best.relative_gap();
            control.report(Progress { stage: "l1", step: round, objective: self.best.primal * self.unit, gap });
            if gap <= tolerance {
                status = Status::Converged;
                break;
            }
            if control.out_of_time() {
                status = Status::TimeLimit;
                break;
            }
            if self.iterations >= limit {
                break;
            }
            waited = if self.best.take_progress() { 0 } else { waited + 1 };
            if sigma < self.rows.largest_cap() {
                waited = 0;
            }
            if waited >= PATIENCE {
                waited = 0;
                if let Some(before) = aside.take() {
                    // what looked like the solution from inside was none
                    (sigma, accuracy) = self.back_to(before);
                    continue;
                }
                let most = (LAST * self.work).max(MODEST);
                let affordable = self.interior_work().is_some_and(|work| WAIT_TALL * work <= most);
                // next to the solution it is rounding that is in the way
                let is_far = gap > FAR * tolerance;
                if !std::mem::replace(&mut tried, true)
                    && (affordable && is_far)
                    && let Some(near) = self.lead_inside(tolerance, control)?
                {
                    (sigma, accuracy) = near;
                    continue;
                }
                status = Status::Inaccurate;
                break;
            }
            self.multipliers = local.v;
            let quick = self.iterations - before <= 5 || gap > 0.3 * last;
            last = gap;
            let faint = FAINT * self.rows.largest_cap();
            leap = if gap > 0.99 && sigma < faint { 2 * leap } else { 1 };
            sigma = match leap {
                1 => (sigma * if quick { 10.0 } else { 3.0 }).min(STIFFEST * self.rows.largest_cap()),
                _ => (sigma * 10f64.powi(leap)).min(faint),
            };
            accuracy = (0.1 * gap).min(0.3 * accuracy).max(0.1 * tolerance).max(1e-13);
            if !violators {
                self.drop_zeros();
            }
            self.refresh();
        }
        self.spent += self.work;
        self.sigma = Some((sigma / 100.0).max(first));
        self.damping = self.damping.max(DAMPING.1);
        self.settle(tolerance);
        let gap = self.best.relative_gap();
        status = match status {
            Status::Converged if !(gap <= tolerance) => Status::Inaccurate,
            _ if gap <= tolerance => Status::Converged,
            status => status,
        };
        Ok(Step { gap, iterations: self.iterations, status })
    }

    /// Interior point steps whose work may be spent.
    fn patience(&self, wait: f64) -> f64 {
        if self.is_tall() { wait.max(WAIT_TALL) } else { wait }
    }

    /// What it takes to go on from here later.
    fn aside(&self, sigma: f64, accuracy: f64) -> Aside {
        Aside { point: self.point(), multipliers: self.multipliers.clone(), sigma, accuracy }
    }

    /// Goes on from there; returns sigma and the accuracy.
    fn back_to(&mut self, aside: Aside) -> (f64, f64) {
        self.go_to(&aside.point);
        self.multipliers = aside.multipliers;
        (self.damping, self.near) = (DAMPING.0, false);
        (aside.sigma, aside.accuracy)
    }

    /// Next to the solution by the interior point method, once; from there on sigma and the accuracy are these.
    fn lead_inside(&mut self, tolerance: f64, control: &Control) -> Result<Option<(f64, f64)>> {
        self.allowed = f64::INFINITY;
        if !self.interior(tolerance, control)? {
            return Ok(None);
        }
        (self.damping, self.near) = (NEAR.0, true);
        Ok(Some((self.rows.largest_cap(), (0.1 * tolerance).clamp(1e-13, FINE))))
    }

    /// sigma such that multipliers cross their box in a few steps, or what |x_j'V| <= rate leaves of the box.
    fn first_sigma(&self) -> f64 {
        if let Some(sigma) = self.sigma {
            return sigma;
        }
        let cap = self.rows.largest_cap().max(f64::MIN_POSITIVE);
        if self.rows.is_smooth() {
            return cap;
        }
        // where nothing is known of the multipliers, those of w = 0
        let known = self.largest_multiplier();
        let nowhere = vec![0.0; self.decision.len()];
        let decision = if known > 0.0 { &self.decision } else { &nowhere };
        let local = self.rows.look(decision, &self.multipliers, 0.5 * cap);
        let pulled = self.columns.pull(&local.v, self.functions());
        let ratio = (0..self.columns.cols()).map(|column| self.ratio_of(&pulled, column, 0.0)).fold(1.0, f64::max);
        let sigma = 0.5 * cap * (300.0 / ratio).min(1.0);
        if known > 0.0 { sigma.min(WARM * known) } else { sigma }
    }

    fn largest_multiplier(&self) -> f64 {
        self.multipliers.iter().fold(0.0, |largest, v| largest.max(v.abs()))
    }

    /// How far beyond its bound a column's x'V lies, as a factor; `pulled` is function-major.
    pub(super) fn ratio_of(&self, pulled: &[f64], column: usize, slack: f64) -> f64 {
        let (m, d) = (self.functions(), self.columns.cols());
        worst_ratio(m, slack, |function| (pulled[function * d + column], self.rate(column, function)))
    }

    /// Newton steps until the smoothed problem is solved to an accuracy relative to the objective; then the
    /// certificate. Returns the rows there, and whether the working set was still lacking columns; `None` if that takes more work
    /// than allowed.
    fn descend(&mut self, sigma: f64, accuracy: f64, limit: usize, control: &Control) -> Result<Option<(Local, bool)>> {
        let mut steps = 0;
        let mut blind: Option<Before> = None;
        loop {
            control.check()?;
            let mut local = self.rows.look(&self.decision, &self.multipliers, sigma);
            let pulled = self.columns.dots(&local.v, self.functions());
            let mut primal = local.loss + self.penalty();
            let mut stop = steps >= MOST_STEPS || self.iterations >= limit || control.out_of_time();
            let inexactness = self.inexactness(&pulled, rounding_of(&local.v), primal);
            if let Some(before) = blind.take()
                && !(inexactness < 0.5 * before.inexactness)
            {
                // rounding is all that is left
                self.weights = before.weights;
                self.decision = before.decision;
                local = self.rows.look(&self.decision, &self.multipliers, sigma);
                primal = local.loss + self.penalty();
                stop = true;
            }
            if !stop && inexactness > accuracy * primal {
                if self.work > self.allowed {
                    return Ok(None);
                }
                steps += 1;
                self.iterations += 1;
                let (weights, decision) = (self.weights.clone(), self.decision.clone());
                match self.newton(&local, &pulled, sigma) {
                    Move::Down => continue,
                    Move::Blind => {
                        blind = Some(Before { weights, decision, inexactness });
                        continue;
                    }
                    Move::Stuck => stop = true,
                }
            }
            let violators = self.certify(&local, primal, accuracy);
            self.spent += self.columns.pass(self.functions());
            if violators.is_empty() || stop {
                return Ok(Some((local, !violators.is_empty())));
            }
            self.enter(&violators);
        }
    }

    /// How far the current point is from solving the smoothed problem on the working set: an estimate of its gap. `slack` is the rounding
    /// of what is pulled.
    fn inexactness(&self, pulled: &[f64], slack: f64, primal: f64) -> f64 {
        let m = self.functions();
        let (mut sum, mut worst) = (0.0, 1.0f64);
        for (slot, &column) in self.columns.members().iter().enumerate() {
            let entries = slot * m..(slot + 1) * m;
            let (weights, v) = (&self.weights[entries.clone()], &pulled[entries]);
            let mut short = 0.0;
            for function in (0..m).filter(|&function| weights[function] != 0.0) {
                short += self.rate(column, function) * weights[function].abs() - v[function] * weights[function];
            }
            sum += f64::abs(short);
            worst = worst.max(worst_ratio(m, slack, |function| (v[function], self.rate(column, function))));
            if column == self.columns.cols() || self.is_free(column) {
                let zeros =
                    || (0..m).filter(|&function| self.rate(column, function) == 0.0).map(|function| v[function]);
                let middle = if m == 1 { 0.0 } else { zeros().sum::<f64>() / zeros().count() as f64 };
                sum += zeros().map(|v| (v - middle).abs()).fold(0.0, f64::max);
            }
        }
        sum + (worst - 1.0) * primal
    }

    /// One proximal Newton step with a line search.
    fn newton(&mut self, local: &Local, pulled: &[f64], sigma: f64) -> Move {
        let (m, p) = (self.functions(), self.columns.len());
        // x'v, x'step and the rows
        self.spent += self.columns.stored() * 2.0 * m as f64 + 10.0 * self.decision.len() as f64;
        self.work += self.gram.set(&self.columns, local.blocks.clone());
        let (stiffness, curvature) = self.stiffness(local);
        let by_function = |from: &[f64]| -> Vec<f64> { (0..m * p).map(|at| from[at % p * m + at / p]).collect() };
        let members = self.columns.members();
        let rates: Vec<f64> = (0..m * p).map(|at| self.rate(members[at % p], at / p)).collect();
        let start = by_function(&self.weights);
        let slope: Vec<f64> = by_function(pulled).iter().map(|v| -v).collect();
        let old_penalty = self.penalty();
        let old = local.value + old_penalty;
        loop {
            let mut model = Model {
                gram: &self.gram,
                scale: local.scale,
                shift: self.damping * stiffness,
                functions: m,
                slots: p,
                isa: Isa::detect(),
                rates: &rates,
                point: start.clone(),
                slope: slope.clone(),
                work: 0.0,
            };
            model.minimize();
            self.work += model.work;
            let point = model.point;
            let step: Vec<f64> = (0..m * p).map(|at| point[at % m * p + at / m] - self.weights[at]).collect();
            let mut along = vec![0.0; self.decision.len()];
            self.columns.multiply_add(&step, m, &mut along);
            let penalty_at = |length: f64| -> f64 {
                let entries =
                    step.iter().zip(&self.weights).enumerate().filter(|(_, (step, w))| **step != 0.0 || **w != 0.0);
                entries.map(|(at, (step, w))| rates[at % m * p + at / m] * (w + length * step).abs()).sum()
            };
            let linear: f64 = -step.iter().zip(pulled).map(|(step, v)| step * v).sum::<f64>();
            let predicted = linear + penalty_at(1.0) - old_penalty;
            let slack = ROUNDING * (old.abs() + old_penalty);
            if !(predicted < 0.0) {
                return Move::Stuck;
            }
            let hidden = predicted > -10.0 * slack;
            let mut length = 1.0;
            let mut accepted = hidden;
            if hidden {
                self.decision.iter_mut().zip(&along).for_each(|(f, by)| *f += by);
            }
            for _ in 0..if hidden { 0 } else { 12 } {
                let decision: Vec<f64> = self.decision.iter().zip(&along).map(|(f, by)| f + length * by).collect();
                let new = self.rows.value(&decision, &self.multipliers, sigma) + penalty_at(length);
                if new <= old + ARMIJO * length * predicted + slack {
                    accepted = true;
                    self.decision = decision;
                    break;
                }
                length *= 0.5;
            }
            if !accepted {
                self.damping *= 10.0;
                if self.damping * stiffness > DAMPING.2 * curvature {
                    self.damping = DAMPING.0;
                    return Move::Stuck;
                }
                continue;
            }
            for at in 0..m * p {
                let new = point[at % m * p + at / m];
                self.weights[at] = if length == 1.0 { new } else { self.weights[at] + length * step[at] };
            }
            self.damping = match length {
                1.0 => (0.3 * self.damping).max(self.least_damping()),
                length if length < 0.2 => 4.0 * self.damping,
                _ => self.damping,
            };
            self.full = if length == 1.0 { self.full + 1 } else { 0 };
            return if hidden { Move::Blind } else { Move::Down };
        }
    }

    /// Of many full steps in a row each gains little: the damping is what holds them back.
    fn least_damping(&self) -> f64 {
        let falls = self.full.saturating_sub(FULL).min(FALLS) as i32;
        if self.near { NEAR.1 } else { DAMPING.1 * 0.1f64.powi(falls) }
    }

    /// What the damping is relative to: the penalty over the squared norm of the coefficients, so that a step along which
    /// the loss is flat is of the size the coefficients have; at most all curvature there is, which comes second.
    fn stiffness(&self, local: &Local) -> (f64, f64) {
        let m = self.functions();
        let of_function =
            |function: usize| -> f64 { local.blocks.pairs[pair(function, function)].weights.iter().sum() };
        let most = (0..m).map(of_function).fold(0.0, f64::max);
        let least =
            if self.rows.is_smooth() { 1e-12 * self.rows.largest_cap() } else { 0.01 * self.columns.rows() as f64 };
        let curvature = local.scale * most.max(least);
        let slots = self.columns.members().iter().zip(self.weights.chunks_exact(m));
        let penalised = slots.filter(|(column, _)| **column != self.columns.cols());
        let square: f64 = penalised.flat_map(|(_, weights)| weights).map(|w| w * w).sum();
        let relative = self.penalty() / square;
        let usable = relative > 0.0 && relative < f64::INFINITY;
        // what is below rounding next to the curvature would damp nothing
        (if usable { relative.clamp(1e-13 * curvature, curvature) } else { 0.01 * curvature }, curvature)
    }

    /// Leaves columns out until they are needed, or takes all of them from now on.
    pub(super) fn screen(&mut self, screening: bool) {
        self.screening = screening;
        if !screening {
            self.enter(&(0..self.columns.cols()).collect::<Vec<_>>());
        }
    }

    /// Takes columns out of the working set whose coefficients are 0.
    pub(super) fn drop_zeros(&mut self) {
        if !self.screening {
            return;
        }
        let m = self.functions();
        let keep: Vec<bool> = (0..self.columns.len())
            .map(|slot| {
                let column = self.columns.members()[slot];
                let used = self.weights[slot * m..(slot + 1) * m].iter().any(|w| *w != 0.0);
                used || column == self.columns.cols() || self.is_free(column)
            })
            .collect();
        self.keep(&keep);
    }

    /// Keeps the columns of the working set that are flagged.
    pub(super) fn keep(&mut self, keep: &[bool]) {
        let m = self.functions();
        if keep.iter().all(|keep| *keep) {
            return;
        }
        let mut flags = keep.iter().flat_map(|keep| std::iter::repeat_n(*keep, m));
        self.weights.retain(|_| flags.next().unwrap_or(true));
        self.columns.retain(keep);
        self.gram.retain(keep);
    }

    /// Goes to the best point seen; multipliers stay those of the last step, near the optimum's. The objective is computed
    /// afresh: with a large C the rounding of margins just below 1 may cost more than the tolerance, and a point longer by a few
    /// units of rounding costs nothing.
    fn settle(&mut self, tolerance: f64) {
        self.gram.clear();
        let Some(point) = self.best.point.clone() else { return };
        self.go_to(&point);
        self.weights.chunks_exact_mut(self.rows.functions()).for_each(balance);
        self.refresh();
        self.best.primal = self.primal();
        let weights = self.weights.clone();
        for longer in [1e-15, 1e-14, 1e-13, 1e-12, 1e-11] {
            if self.best.relative_gap() <= tolerance {
                return;
            }
            let kept = std::mem::replace(&mut self.weights, weights.iter().map(|w| w * (1.0 + longer)).collect());
            self.weights.chunks_exact_mut(self.rows.functions()).for_each(balance);
            self.refresh();
            let primal = self.primal();
            if primal < self.best.primal {
                self.best.primal = primal;
            } else {
                self.weights = kept;
                self.refresh();
            }
        }
    }

    /// The convex objective at the current point.
    pub(super) fn primal(&self) -> f64 {
        let sigma = self.rows.largest_cap().max(f64::MIN_POSITIVE);
        self.rows.look(&self.decision, &self.multipliers, sigma).loss + self.penalty()
    }

    /// The coefficients that are not 0: column and entries.
    pub(super) fn point(&self) -> Vec<(usize, Vec<f64>)> {
        let slots = self.columns.members().iter().zip(self.weights.chunks_exact(self.functions()));
        slots.filter(|(_, w)| w.iter().any(|w| *w != 0.0)).map(|(&column, w)| (column, w.to_vec())).collect()
    }

    /// Goes to a point remembered.
    pub(super) fn go_to(&mut self, point: &[(usize, Vec<f64>)]) {
        self.weights.fill(0.0);
        let columns: Vec<usize> = point.iter().map(|(column, _)| *column).collect();
        self.enter(&columns);
        let m = self.functions();
        let members = self.columns.members().to_vec();
        for (column, entries) in point {
            if let Some(slot) = members.iter().position(|member| member == column) {
                self.weights[slot * m..(slot + 1) * m].copy_from_slice(entries);
            }
        }
        self.gram.clear();
        self.drop_zeros();
        self.refresh();
    }
}

/// Takes the rounding off a sum over functions that is 0.
pub(super) fn balance(entries: &mut [f64]) {
    let sum: f64 = entries.iter().sum();
    if entries.len() > 1
        && let Some(largest) = entries.iter_mut().max_by(|a, b| a.abs().total_cmp(&b.abs()))
    {
        *largest -= sum;
    }
}
