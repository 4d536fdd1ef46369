//! Lower bounds of the optimum that hold to rounding.
//!
//! The dual of min sum_i loss_i(f_i) + sum rate |w| is to maximise the rows' dual value of V subject to
//!
//! ```text
//! |x_c'V| <= rate_c                      one function
//! |x_c'V_j - mu| <= rate_cj, all j       several, for some mu per column c: x_c'V_j - x_c'V_l <= rate_cj + rate_cl, all pairs
//! ```
//!
//! Bounds of 0 (the intercept's, and those of columns that cost nothing) are equations; so are, at the optimum, the bounds of
//! coefficients that are not 0. They are met first: V + M t, M the room the rows have, with t from the normal equations of
//! the equations, a few times over; all of them if the rows have room for that, else those that must hold. Then V is
//! scaled by the largest factor <= 1 that meets the other bounds; V = 0 being feasible for every row, so is what lies between.

use super::engine::Engine;
use super::gram::Gram;
use super::rows::Rows;
use crate::linalg::Factor;

/// Largest error of an equation, relative to the sum of the sizes of its terms.
const BALANCED: f64 = 1e-14;
/// What a bound may fail by, likewise: the rounding of the sum that is compared with it.
const ROUNDING: f64 = 1e-15;
const REFINEMENTS: usize = 5;
/// Most equations beyond those that must hold.
const MOST_EQUATIONS: usize = 1500;

/// Accuracies below which the coefficients that are not 0 are taken to be those of the optimum.
const LATE: f64 = 1e-3;

/// The best point and the best bound seen for one convex problem.
#[derive(Debug, Clone)]
pub(super) struct Best {
    pub(super) primal: f64,
    pub(super) dual: f64,
    /// Columns and their coefficients.
    pub(super) point: Option<Vec<(usize, Vec<f64>)>>,
    /// V of the bound, function-major.
    pub(super) v: Vec<f64>,
    /// The gap when progress was last asked for.
    last: f64,
}

impl Best {
    /// Nothing seen yet, on that many entries of V: V = 0 is feasible with the value 0.
    pub(super) fn new(size: usize) -> Self {
        Best { primal: f64::INFINITY, dual: 0.0, point: None, v: vec![0.0; size], last: f64::INFINITY }
    }

    pub(super) fn relative_gap(&self) -> f64 {
        let gap = (self.primal - self.dual).max(0.0) / self.primal.abs().max(f64::MIN_POSITIVE);
        if gap.is_nan() { f64::INFINITY } else { gap }
    }

    /// Whether the gap fell noticeably since this was last asked.
    pub(super) fn take_progress(&mut self) -> bool {
        let gap = self.relative_gap();
        let progress = gap < 0.9 * self.last;
        if progress {
            self.last = gap;
        }
        progress
    }
}

/// The largest factor by which x'V of a column exceeds a bound that is not 0; `of` gives (x'V_j, rate_j), `slack` is the
/// rounding of x'V.
pub(super) fn worst_ratio(functions: usize, slack: f64, of: impl Fn(usize) -> (f64, f64)) -> f64 {
    let ratio = |size: f64, rate: f64| if rate > 0.0 && rate < f64::INFINITY { (size - slack) / rate } else { 0.0 };
    if functions == 1 {
        let (v, rate) = of(0);
        return ratio(v.abs(), rate);
    }
    let mut worst = 0.0f64;
    for one in 0..functions {
        let (v, rate) = of(one);
        if rate == f64::INFINITY {
            continue;
        }
        for other in 0..one {
            let (w, other) = of(other);
            worst = worst.max(ratio((v - w).abs(), rate + other));
        }
    }
    worst
}

impl<R: Rows> Engine<'_, R> {
    /// Takes the current point and V to `best` if they are better, and returns the columns outside the working set whose
    /// bound fails by more than the accuracy, worst first, no more than the working set should grow by.
    pub(super) fn certify(&mut self, local: &super::rows::Local, primal: f64, accuracy: f64) -> Vec<usize> {
        self.note_primal(primal);
        let mut tight = None;
        let settled = self.weights.iter().filter(|w| **w != 0.0).count();
        if settled > 0 && settled <= MOST_EQUATIONS && accuracy < LATE {
            tight = self.balance(&local.v, &self.equations(true));
        }
        let mut ratios = Vec::new();
        if let Some(v) = tight {
            ratios = self.bound_with(v);
        }
        // the other V may serve better, and its bounds tell which columns are missing
        if ratios.iter().any(|ratio| *ratio > 1.0 + accuracy) || ratios.is_empty() {
            ratios = match self.balance(&local.v, &self.equations(false)) {
                Some(v) => self.bound_with(v),
                None => self.ratios(&local.v),
            };
        }
        let outside = |column: &usize| ratios[*column] > 1.0 + accuracy && !self.columns.contains(*column);
        let mut violators: Vec<usize> = (0..ratios.len()).filter(outside).collect();
        violators.sort_by(|&a, &b| ratios[b].total_cmp(&ratios[a]));
        violators.truncate(self.columns.len().max(10));
        violators
    }

    /// Scales a balanced V to meet its bounds and takes it to `best` if it is better. Returns by what factors the bounds of
    /// all columns were exceeded.
    fn bound_with(&mut self, mut v: Vec<f64>) -> Vec<f64> {
        let ratios = self.ratios(&v);
        let worst = ratios.iter().fold(1.0f64, |worst, &ratio| worst.max(ratio));
        v.iter_mut().for_each(|v| *v /= worst);
        let dual = self.rows.dual(&v);
        if dual > self.best.dual {
            self.best.dual = dual;
            self.best.v = v;
        }
        ratios
    }

    /// By what factor the bound of each column is exceeded.
    fn ratios(&self, v: &[f64]) -> Vec<f64> {
        let pulled = self.columns.pull(v, self.functions());
        let slack = rounding_of(v);
        (0..self.columns.cols()).map(|column| self.ratio_of(&pulled, column, slack)).collect()
    }

    /// Takes the current point to `best` if it is better.
    fn note_primal(&mut self, primal: f64) {
        let d = self.columns.cols();
        if primal < self.best.primal {
            self.best.primal = primal;
            self.best.point = Some(self.point());
        }
        // all coefficients 0: the intercept alone may be known exactly
        let constant = self.columns.has_intercept() && self.point().iter().all(|(column, _)| *column == d);
        if !constant {
            return;
        }
        if let Some(intercepts) = self.rows.best_constant() {
            let n = self.columns.rows();
            let decision: Vec<f64> = intercepts.iter().flat_map(|b| std::iter::repeat_n(*b, n)).collect();
            let loss = self.rows.look(&decision, &self.multipliers, self.rows.largest_cap().max(1.0)).loss;
            if loss < self.best.primal {
                self.best.primal = loss;
                self.best.point = Some(vec![(d, intercepts)]);
            }
        }
    }

    /// V moved so that the equations hold. `None` if the rows have no room for that.
    fn balance(&self, v: &[f64], equations: &[Equation]) -> Option<Vec<f64>> {
        let (m, n) = (self.functions(), self.columns.rows());
        let mut v = v.to_vec();
        if equations.is_empty() {
            return Some(v);
        }
        let mut factor = None;
        let mut last = f64::INFINITY;
        for _ in 0..=REFINEMENTS {
            let pulled = self.columns.dots(&v, m);
            let residual: Vec<f64> = equations.iter().map(|equation| equation.of(m, &pulled)).collect();
            let largest = residual.iter().fold(0.0f64, |largest, r| largest.max(r.abs()));
            let total: f64 = v.iter().map(|v| v.abs()).sum();
            let feasible = self.rows.is_feasible(&v);
            if feasible && largest <= BALANCED * total && (largest <= 0.1 * ROUNDING * total || !(largest < 0.5 * last))
            {
                return Some(v);
            }
            last = largest;
            let blocks = self.rows.room(&v);
            if factor.is_none() {
                factor = Some(self.normal_equations(equations, &blocks)?);
            }
            let multipliers = factor.as_ref()?.solve(&residual);
            // t as a function on the rows, then V -= M t
            let mut coefficients = vec![0.0; self.columns.len() * m];
            for (equation, multiplier) in equations.iter().zip(&multipliers) {
                equation.spread(m, *multiplier, &mut coefficients);
            }
            let mut t = vec![0.0; v.len()];
            self.columns.multiply_add(&coefficients, m, &mut t);
            let before = v.clone();
            for one in 0..m {
                for other in 0..m {
                    let pair = &blocks.pairs[super::rows::pair(one, other)];
                    for (&row, weight) in pair.rows.iter().zip(&pair.weights) {
                        v[one * n + row as usize] -= weight * t[other * n + row as usize];
                    }
                }
            }
            // what leaves the set is brought back, and the rest tries again
            if !self.rows.is_feasible(&v) {
                self.rows.admit(&mut v);
                factor = None;
            }
            if v.iter().zip(&before).all(|(a, b)| a == b) || v.iter().any(|v| v.is_nan()) {
                break;
            }
        }
        let pulled = self.columns.dots(&v, m);
        let total: f64 = v.iter().map(|v| v.abs()).sum();
        let holds = equations.iter().all(|equation| equation.of(m, &pulled).abs() <= BALANCED * total);
        (holds && self.rows.is_feasible(&v)).then_some(v)
    }

    /// The bounds that are 0, and if `tight` those of coefficients that are not 0 as well.
    fn equations(&self, tight: bool) -> Vec<Equation> {
        let m = self.functions();
        let mut equations = Vec::new();
        for (slot, &column) in self.columns.members().iter().enumerate() {
            let weight = |function: usize| self.weights[slot * m + function];
            let tied = |&function: &usize| self.rate(column, function) == 0.0 || tight && weight(function) != 0.0;
            // x'V less mu, where the coefficient is not 0
            let goal = |function: usize| {
                let rate = self.rate(column, function);
                if rate == 0.0 { 0.0 } else { rate * weight(function).signum() }
            };
            let tied: Vec<usize> = (0..m).filter(tied).collect();
            match (m, tied.split_first()) {
                (1, Some(_)) => equations.push(Equation { slot, function: 0, against: None, goal: goal(0) }),
                (_, Some((&first, rest))) => equations.extend(rest.iter().map(|&function| Equation {
                    slot,
                    function,
                    against: Some(first),
                    goal: goal(function) - goal(first),
                })),
                _ => {}
            }
        }
        equations
    }

    fn normal_equations(&self, equations: &[Equation], blocks: &super::rows::Blocks) -> Option<Factor> {
        let mut slots: Vec<usize> = equations.iter().map(|equation| equation.slot).collect();
        slots.dedup();
        let gram = Gram::of_slots(&self.columns, &slots, blocks.clone());
        // equations come in the order of their slots
        let place = |equation: &Equation| slots.partition_point(|&slot| slot < equation.slot);
        let size = equations.len();
        let mut matrix = vec![0.0; size * size];
        for (row, a) in equations.iter().enumerate() {
            for (column, b) in equations.iter().enumerate().take(row + 1) {
                let h = |one: usize, other: usize| gram.at(one, other, place(a), place(b));
                matrix[row * size + column] = match (a.against, b.against) {
                    (Some(x), Some(y)) => h(a.function, b.function) - h(a.function, y) - h(x, b.function) + h(x, y),
                    _ => h(a.function, b.function),
                };
            }
        }
        Factor::nearest(&matrix, size, size)
    }
}

/// The rounding of x'V for columns of mean square near 1.
pub(super) fn rounding_of(v: &[f64]) -> f64 {
    ROUNDING * v.iter().map(|v| v.abs()).sum::<f64>()
}

/// x_s'V_j - x_s'V_l = goal, or x_s'V_j = goal.
struct Equation {
    slot: usize,
    function: usize,
    against: Option<usize>,
    goal: f64,
}

impl Equation {
    /// How far it is from holding.
    fn of(&self, functions: usize, pulled: &[f64]) -> f64 {
        let against = self.against.map_or(0.0, |against| pulled[self.slot * functions + against]);
        pulled[self.slot * functions + self.function] - against - self.goal
    }

    fn spread(&self, functions: usize, multiplier: f64, coefficients: &mut [f64]) {
        coefficients[self.slot * functions + self.function] += multiplier;
        if let Some(against) = self.against {
            coefficients[self.slot * functions + against] -= multiplier;
        }
    }
}
