//! What the engine asks of the rows: their loss, its smoothed form, and their part of the dual.
//!
//! The loss of row i is a convex function of f_i, one number per function,
//!
//! ```text
//! loss_i(f) = max over V in a convex set of  (dual value of V) - V'f
//! ```
//!
//! and the augmented Lagrangian replaces it by the same maximum with |V - V0|^2 / (2 sigma) taken off, V0 the current
//! multipliers: a function with the gradient -V, piecewise quadratic for the hinge. A smooth loss needs none of that and
//! is taken as it is (sigma is ignored). V = 0 is always feasible with the value 0, so that feasible V may be scaled down.

/// Symmetric functions x functions blocks, one per row, by pairs of functions.
#[derive(Debug, Clone, Default)]
pub(super) struct Blocks {
    /// Pair (j, l), l <= j, at j (j + 1) / 2 + l.
    pub(super) pairs: Vec<Pair>,
}

/// The rows whose block has an entry at one pair of functions, ascending, and that entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Pair {
    pub(super) rows: Vec<u32>,
    pub(super) weights: Vec<f64>,
}

impl Blocks {
    pub(super) fn new(functions: usize) -> Self {
        Blocks { pairs: vec![Pair::default(); functions * (functions + 1) / 2] }
    }

    pub(super) fn push(&mut self, row: usize, one: usize, other: usize, weight: f64) {
        let pair = &mut self.pairs[pair(one, other)];
        pair.rows.push(row as u32);
        pair.weights.push(weight);
    }
}

/// Where a pair of functions is found.
pub(super) fn pair(one: usize, other: usize) -> usize {
    let (low, high) = if one < other { (one, other) } else { (other, one) };
    high * (high + 1) / 2 + low
}

/// The smoothed loss at a point. V is function-major.
#[derive(Debug, Clone)]
pub(super) struct Local {
    /// Sum of the smoothed loss.
    pub(super) value: f64,
    /// Sum of the loss itself.
    pub(super) loss: f64,
    /// Minus the gradient.
    pub(super) v: Vec<f64>,
    /// Second derivatives divided by `scale`.
    pub(super) blocks: Blocks,
    pub(super) scale: f64,
}

/// c max(0, max over pieces of 1 - e'f): a term of a piecewise linear loss.
#[derive(Debug, Clone)]
pub(super) struct Term {
    pub(super) row: usize,
    pub(super) cap: f64,
    pub(super) pieces: Vec<Piece>,
}

/// e: the unit vector of one function less that of another, either of which may be missing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) plus: Option<usize>,
    pub(super) minus: Option<usize>,
}

impl Piece {
    /// The functions of e and their signs.
    pub(super) fn parts(&self) -> impl Iterator<Item = (usize, f64)> + use<> {
        let plus = self.plus.map(|function| (function, 1.0));
        plus.into_iter().chain(self.minus.map(|function| (function, -1.0)))
    }

    /// q of the piece from V of a row that a single term decides; `v` is function-major with `rows` entries each.
    pub(super) fn dual_of(&self, v: &[f64], rows: usize, row: usize) -> f64 {
        match (self.plus, self.minus) {
            (_, Some(function)) => -v[function * rows + row],
            (Some(function), None) => v[function * rows + row],
            (None, None) => 0.0,
        }
    }

    /// e'f at a row; `values` is function-major with `rows` entries each.
    pub(super) fn of(&self, values: &[f64], rows: usize, row: usize) -> f64 {
        self.parts().map(|(function, sign)| sign * values[function * rows + row]).sum()
    }
}

pub(super) trait Rows: Sync {
    /// 1, or the number of classes.
    fn functions(&self) -> usize;

    /// Whether the loss is smooth as it is, so that multipliers play no part.
    fn is_smooth(&self) -> bool;

    /// Largest c_i.
    fn largest_cap(&self) -> f64;

    /// Value, gradient and curvature of the smoothed loss. `decision` and `multipliers` are function-major.
    fn look(&self, decision: &[f64], multipliers: &[f64], sigma: f64) -> Local;

    /// Value of the smoothed loss alone.
    fn value(&self, decision: &[f64], multipliers: &[f64], sigma: f64) -> f64;

    /// Brings multipliers into the set of feasible V.
    fn admit(&self, multipliers: &mut [f64]);

    /// Positive semidefinite blocks M_i such that V_i + M_i t stays feasible for small t; 0 at corners of the set.
    fn room(&self, v: &[f64]) -> Blocks;

    /// Whether V is feasible as it stands.
    fn is_feasible(&self, v: &[f64]) -> bool;

    /// The dual value of a feasible V.
    fn dual(&self, v: &[f64]) -> f64;

    /// The terms whose sum the loss is, those that count, if it is piecewise linear.
    fn terms(&self) -> Option<Vec<Term>>;

    /// Intercepts that minimise the loss when all coefficients are 0, where they are known exactly.
    fn best_constant(&self) -> Option<Vec<f64>> {
        None
    }
}
