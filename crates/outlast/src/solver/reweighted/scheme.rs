//! The two majorisers of h(g), as instances of the one loop.
//!
//! | majoriser | bound of c h(g) at the current point | minimised by |
//! |---|---|---|
//! | [`Reweighting`] | c h'(g_i) g, convex in f | the machines, exactly |
//! | [`Quadratic`] | and g = sum_j [1 - y_j f_j]_+^2 by sum_j (t_j - f_j)^2, t_j = y_j max(1, y_j f_j) | one linear system a function |
//!
//! The second is algorithm 2 of Nie, Wang and Huang: cheaper steps, many more of them.

use super::super::majorize::{Majorizer, Step};
use super::super::{Status, majorize::Limits};
use super::machine::{Machine, Point};
use super::squares::{PIECE, sums, sums_of_pieces};
use crate::control::Control;
use crate::error::Result;
use crate::problem::Coded;
use crate::problem::concave::{Concave, Robust};
use rayon::prelude::*;

/// A part of the cost of f = 0 that is rounding.
const NOTHING: f64 = 1e-13;

/// Rows whose margins are computed together.
const AT_ONCE: usize = 256;

/// Factor from one step of [`Functions::go_beyond`] to the next, and how many are tried.
const GROWTH: f64 = 1.5;
const MOST_GROWTHS: usize = 20;

/// Decision functions with their problem.
pub(super) struct Functions<'a> {
    pub problem: Coded<'a>,
    /// The loss, which has its cap from here.
    pub loss: Robust,
    pub machines: Vec<Box<dyn Machine + 'a>>,
}

/// The points of all machines.
pub(super) type Points = Vec<Point>;

impl Functions<'_> {
    /// g of every row.
    pub(super) fn convex_losses(&self) -> Vec<f64> {
        self.of_rows(&self.decisions(), |_| {})
    }

    pub(super) fn decisions(&self) -> Vec<&[f64]> {
        self.machines.iter().map(|machine| machine.decision()).collect()
    }

    /// Something that takes the place of g, for every row.
    fn of_rows(&self, values: &[&[f64]], replace: impl Fn(&mut [f64]) + Sync) -> Vec<f64> {
        let mut all = vec![0.0; self.problem.rows()];
        all.par_chunks_mut(PIECE).enumerate().for_each(|(number, g)| {
            self.add_convex_losses(values, number * PIECE, g);
            replace(g);
        });
        all
    }

    /// Adds g of the rows from `first`, given the decision values of each function.
    fn add_convex_losses(&self, values: &[&[f64]], first: usize, g: &mut [f64]) {
        let mut margins = [0.0; AT_ONCE];
        for (number, g) in g.chunks_mut(AT_ONCE).enumerate() {
            let rows = first + number * AT_ONCE..first + number * AT_ONCE + g.len();
            for (function, f) in values.iter().enumerate() {
                let margins = &mut margins[..g.len()];
                self.problem.margins(rows.clone(), function, &f[rows.clone()], margins);
                self.loss.base.add_values(margins, g);
            }
        }
    }

    pub(super) fn penalty(&self) -> f64 {
        self.machines.iter().map(|machine| machine.half_norm()).sum()
    }

    /// P with a given h.
    pub(super) fn objective(&self, concave: &dyn Concave) -> f64 {
        self.penalty() + self.loss(concave, &self.decisions())
    }

    /// sum_i c_i h(g_i), given the decision values of each function.
    fn loss(&self, concave: &dyn Concave, values: &[&[f64]]) -> f64 {
        let caps = self.problem.caps;
        let [loss] = sums_of_pieces(caps.len(), |piece| {
            let mut g = vec![0.0; piece.len()];
            self.add_convex_losses(values, piece.start, &mut g);
            concave.replace_by_values(&mut g);
            sums([&g, &caps[piece]], |[h, cap]| [if cap > 0.0 { cap * h } else { 0.0 }])
        });
        loss
    }

    /// h'(g) of every row.
    pub(super) fn slopes(&self, concave: &dyn Concave) -> Vec<f64> {
        self.slopes_at(concave, &self.decisions())
    }

    /// The same at other decision values.
    pub(super) fn slopes_at(&self, concave: &dyn Concave, values: &[&[f64]]) -> Vec<f64> {
        self.of_rows(values, |g| concave.replace_by_slopes(g))
    }

    /// Whether these row weights leave anything to fit.
    pub(super) fn any(&self, weights: &[f64]) -> bool {
        weights.iter().zip(self.problem.caps).any(|(weight, cap)| *weight > 0.0 && *cap > 0.0)
    }

    fn costs(&self, weights: &[f64]) -> Vec<f64> {
        self.problem.caps.iter().zip(weights).map(|(cap, weight)| cap * weight).collect()
    }

    /// Minimises the convex bound of given row weights, the functions in parallel.
    pub(super) fn minimize(&mut self, weights: &[f64], tolerance: f64, control: &Control) -> Result<Step> {
        let costs = self.costs(weights);
        let solve = |machine: &mut Box<dyn Machine + '_>| machine.minimize(&costs, tolerance, control);
        let steps: Vec<Step> = match self.machines.as_mut_slice() {
            [only] => vec![solve(only)?],
            many => many.par_iter_mut().map(solve).collect::<Result<_>>()?,
        };
        Ok(together(&steps))
    }

    /// One linear system a function, for targets that are rows x functions. `false` where a machine has none.
    pub(super) fn regress(&mut self, weights: &[f64], targets: &[Vec<f64>], control: &Control) -> Result<bool> {
        let costs = self.costs(weights);
        let pairs = self.machines.par_iter_mut().zip(targets);
        let done: Vec<bool> =
            pairs.map(|(machine, targets)| machine.regress(&costs, targets, control)).collect::<Result<_>>()?;
        Ok(done.into_iter().all(|done| done))
    }

    /// t_j = y_j max(1, y_j f_j) at the current point.
    pub(super) fn targets(&self) -> Vec<Vec<f64>> {
        let of_function = |function: usize| {
            let rows = self.machines[function].decision().iter().enumerate();
            rows.map(|(row, f)| {
                let sign = self.problem.sign(row, function);
                sign * (sign * f).max(1.0)
            })
            .collect()
        };
        (0..self.machines.len()).map(of_function).collect()
    }

    pub(super) fn points(&self) -> Points {
        self.machines.iter().map(|machine| machine.point()).collect()
    }

    pub(super) fn go_to(&mut self, points: &Points) {
        self.machines.iter_mut().zip(points).for_each(|(machine, point)| machine.go_to(point));
    }

    /// w, functions x columns, and b, where the functions are linear.
    pub(super) fn coefficients(&self) -> Option<(Vec<f64>, Vec<f64>)> {
        let weights: Option<Vec<Vec<f64>>> = self.machines.iter().map(|machine| machine.coefficients()).collect();
        Some((weights?.concat(), self.intercepts()))
    }

    pub(super) fn intercepts(&self) -> Vec<f64> {
        self.machines.iter().map(|machine| machine.intercept()).collect()
    }

    /// Goes to linear functions, w being functions x columns.
    pub(super) fn start_at(&mut self, weights: &[f64], intercepts: &[f64]) {
        let of_function = weights.chunks(self.problem.x.cols().max(1)).zip(intercepts);
        self.machines.iter_mut().zip(of_function).for_each(|(machine, (weights, &b))| machine.start_at(weights, b));
    }

    /// Goes on along the line from a point to the current one, in growing steps while P falls.
    fn go_beyond(&mut self, from: &Points, concave: &dyn Concave) {
        let to = self.points();
        let machines = self.machines.iter().zip(from.iter().zip(&to));
        let bends: Option<Vec<(f64, f64)>> = machines.map(|(machine, (from, to))| machine.bend(from, to)).collect();
        let Some(bends) = bends else { return };
        let (lean, bend) = bends.iter().fold((0.0, 0.0), |sum, of_one| (sum.0 + of_one.0, sum.1 + of_one.1));
        let mut values: Vec<Vec<f64>> = to.iter().map(|point| point.decision.clone()).collect();
        let (mut best, mut kept, mut length) = (lean + bend + self.loss(concave, &views(&values)), 1.0, 1.0);
        for _ in 0..MOST_GROWTHS {
            length *= GROWTH;
            for ((values, from), to) in values.iter_mut().zip(from).zip(&to) {
                let ends = from.decision.iter().zip(&to.decision);
                values.iter_mut().zip(ends).for_each(|(value, (from, to))| *value = from + length * (to - from));
            }
            let value = length * (lean + length * bend) + self.loss(concave, &views(&values));
            if !(value < best) {
                break;
            }
            (best, kept) = (value, length);
        }
        if kept != 1.0 {
            self.go_to(&from.iter().zip(&to).map(|(from, to)| from.towards(to, kept)).collect());
        }
    }

    /// Relative gap of the convex problem of these row weights, and the expansions, rows x functions.
    pub(super) fn certify(&mut self, weights: &[f64]) -> (f64, Vec<f64>) {
        let costs = self.costs(weights);
        let found: Vec<_> = self.machines.iter_mut().map(|machine| machine.certify(&costs)).collect();
        let (primal, dual) = found.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.primal, sum.1 + one.dual));
        // rows of one class alone cost 0: what is nothing next to f = 0 is no gap
        let least = (NOTHING * costs.iter().sum::<f64>()).max(f64::MIN_POSITIVE);
        let gap: f64 = (primal - dual) / f64::max(primal, least);
        let expansion = by_rows(&found.iter().map(|one| one.expansion.as_slice()).collect::<Vec<_>>());
        (if gap.is_nan() { f64::INFINITY } else { gap.max(0.0) }, expansion)
    }
}

/// Rows x functions, of what each function has for all rows.
pub(super) fn by_rows(functions: &[&[f64]]) -> Vec<f64> {
    match functions {
        [only] => only.to_vec(),
        many => (0..many.first().map_or(0, |f| f.len())).flat_map(|row| many.iter().map(move |f| f[row])).collect(),
    }
}

/// The decision values of each function.
pub(super) fn views(decisions: &[Vec<f64>]) -> Vec<&[f64]> {
    decisions.iter().map(|decision| decision.as_slice()).collect()
}

/// Several solves as one.
fn together(steps: &[Step]) -> Step {
    let worst = |status: Status| match status {
        Status::Converged => 0,
        Status::Inaccurate => 1,
        _ => 2,
    };
    Step {
        gap: steps.iter().map(|step| step.gap).fold(0.0, f64::max),
        iterations: steps.iter().map(|step| step.iterations).sum(),
        status: steps.iter().map(|step| step.status).max_by_key(|&status| worst(status)).unwrap_or(Status::Converged),
    }
}

/// Where a majoriser stands: the functions, the row weights of the bound, and the point before the last step.
pub(super) struct State<'a, 'b> {
    pub functions: &'b mut Functions<'a>,
    pub concave: &'b dyn Concave,
    pub weights: Vec<f64>,
    /// Whether the weights would all have become 0.
    pub exhausted: bool,
    saved: Option<(Points, Vec<f64>)>,
}

impl<'a, 'b> State<'a, 'b> {
    pub(super) fn new(functions: &'b mut Functions<'a>, concave: &'b dyn Concave, weights: Vec<f64>) -> Self {
        State { functions, concave, weights, exhausted: false, saved: None }
    }

    /// Takes the row weights of the current point. Returns how many changed; `None`, and nothing taken, if all would be 0.
    fn reweight(&mut self) -> Option<usize> {
        let weights = self.functions.slopes(self.concave);
        if !self.functions.any(&weights) {
            self.exhausted = true;
            return None;
        }
        let caps = self.functions.problem.caps;
        let changed = (0..weights.len()).filter(|&row| caps[row] > 0.0 && weights[row] != self.weights[row]).count();
        self.weights = weights;
        Some(changed)
    }

    fn save(&mut self) {
        self.saved = Some((self.functions.points(), self.weights.clone()));
    }

    fn restore(&mut self) {
        if let Some((points, weights)) = &self.saved {
            self.functions.go_to(points);
            self.weights.clone_from(weights);
        }
    }
}

/// The convex bound with row weights h'(g).
///
/// Rounds go down by a nearly constant factor, in nearly the same direction: the slope of h moves only as far as the last step
/// led. So a round that is not solved in full goes on along its line, past the bound's minimiser, while P falls ([`GROWTH`]).
pub(super) struct Reweighting<'a, 'b> {
    pub state: State<'a, 'b>,
    /// Rounds solved to this tolerance end at the bound's minimiser.
    pub tolerance: f64,
}

impl Majorizer for Reweighting<'_, '_> {
    fn objective(&mut self) -> f64 {
        self.state.functions.objective(self.state.concave)
    }

    fn majorize(&mut self) -> usize {
        self.state.reweight().unwrap_or(0)
    }

    fn minimize(&mut self, tolerance: f64, control: &Control) -> Result<Step> {
        let State { functions, concave, weights, saved, .. } = &mut self.state;
        let step = functions.minimize(weights, tolerance, control)?;
        if tolerance > self.tolerance
            && let Some((from, _)) = saved
        {
            functions.go_beyond(from, *concave);
        }
        Ok(step)
    }

    fn save(&mut self) {
        self.state.save();
    }

    fn restore(&mut self) {
        self.state.restore();
    }
}

/// The quadratic bound of squared residuals.
pub(super) struct Quadratic<'a, 'b> {
    pub state: State<'a, 'b>,
    /// t_j, rows of each function.
    pub targets: Vec<Vec<f64>>,
}

impl Majorizer for Quadratic<'_, '_> {
    fn objective(&mut self) -> f64 {
        self.state.functions.objective(self.state.concave)
    }

    fn majorize(&mut self) -> usize {
        let Some(changed) = self.state.reweight() else { return 0 };
        let targets = self.state.functions.targets();
        let moved = usize::from(targets != self.targets);
        self.targets = targets;
        changed + moved
    }

    fn minimize(&mut self, _: f64, control: &Control) -> Result<Step> {
        let done = self.state.functions.regress(&self.state.weights, &self.targets, control)?;
        let status = if done { Status::Converged } else { Status::Inaccurate };
        Ok(Step { gap: 0.0, iterations: 1, status })
    }

    fn save(&mut self) {
        self.state.save();
    }

    fn restore(&mut self) {
        self.state.restore();
    }
}

/// How far a round is solved while the row weights still move. Newton's steps go down whatever the weights, so one or two of
/// them do; the last round is solved in full.
pub(super) const LOOSE: f64 = 1e-2;

/// Tolerances below this are asked for where exact rounds cost next to nothing, so that two ways of writing the same data take the
/// same path.
const EXACT: f64 = 1e-6;

/// The tolerance of a round after which others follow.
pub(super) fn loose(tolerance: f64) -> f64 {
    if tolerance < EXACT { tolerance } else { tolerance.max(LOOSE) }
}

/// How the loop runs: until a round gains less than `decrease`.
pub(super) fn limits(tolerance: f64, decrease: f64, max_steps: usize) -> Limits {
    Limits { tolerance, loose: loose(tolerance), decrease, max_steps }
}
