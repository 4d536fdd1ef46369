//! A dense primal-dual interior point for all rows' losses at once.
//!
//! ```text
//! min over Theta (k x p), sum_j theta_j = 0
//!     1/2 sum_c ridge_c sum_j theta_jc^2 + <linear, Theta> + sum_i L_i(F_i) - base_i'F_i,      F_ij = theta_j'x_i
//! ```
//!
//! L_i as in `cells`. Every row is kept strictly feasible, so that only the equation of theta has a residual,
//!
//! ```text
//! R = ridge theta + linear - sum_i V_i x_i',      V_i = base_i - q_i
//! ```
//!
//! and Newton's step for theta is (ridge + normal matrix) dtheta = -R - sum_i (dq_i at dF = 0) x_i' (`system`). Mehrotra's
//! predictor and corrector with one step length. Duality gap of any iterate, from the rows' own gaps:
//!
//! ```text
//! sum_i gap_i + sum_c |R_c|^2 / (2 ridge_c),     |R_c| (1 + |theta_c|) where ridge_c = 0
//! ```
//!
//! Cost of an iteration: m p^2 k (k - 1) / 4 and the factor of order (k - 1) p; usually 15 to 40 of them. The caps are seen in
//! units of their mean.
//!
//! Assumption: where ridge_c = 0, some V strictly inside the rows' sets balances that column for each class (for an intercept:
//! each class has a base somewhere). Otherwise theta runs off to infinity, and the status says that the gap stayed open.

use super::super::Status;
use super::cells::{self, Cell, Form, Kind, Reach};
use super::system::{CHUNK, Features, Weights, centre_classes};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::linalg::Factor;
use crate::problem::BaseLoss;
use rayon::prelude::*;

const MOST_ITERATIONS: usize = 300;
/// Iterations without a clearly better gap before the solver gives up.
const PATIENCE: usize = 25;
/// Share of the way to the boundary a step goes.
const FRACTION: f64 = 0.995;
/// A step shorter than this is taken again without the second-order correction.
const SHORT: f64 = 0.1;
/// Mean product at the start, in mean caps: from nothing, and from a given theta.
const COLD: f64 = 1.0;
const WARM: f64 = 0.1;
/// Share of the ridge that counts when V is made that of theta.
const SETTLING: f64 = 1e-6;
/// A knot this close to the total is the total.
const FULL: f64 = 1.0 - 1e-12;

/// A convex problem. Matrices are row-major.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    /// m x p; an intercept is a column of ones with ridge 0.
    pub features: &'a [f64],
    /// p
    pub columns: usize,
    /// k >= 2
    pub classes: usize,
    /// One per column, >= 0.
    pub ridge: &'a [f64],
    /// k x p. What it has in common over the classes does not count.
    pub linear: &'a [f64],
    pub rows: Rows<'a>,
}

/// The losses of the rows.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    /// The reduced hinge: totals m, knots and base m x k.
    Hinge { totals: &'a [f64], knots: &'a [f64], base: &'a [f64] },
    /// caps_i l(F_y - max_{j != y} F_j).
    Smooth { loss: &'static dyn BaseLoss, codes: &'a [u32], caps: &'a [f64] },
}

/// When to stop: whichever comes first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Goal {
    /// Gap over |primal|.
    pub relative: f64,
    /// Gap.
    pub absolute: f64,
}

impl Goal {
    fn met(&self, gap: f64, primal: f64, unit: f64) -> bool {
        gap * unit <= self.absolute || gap <= self.relative * primal.abs()
    }
}

/// An approximate solution with its multipliers.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// k x p
    pub theta: Vec<f64>,
    /// V = base - q, m x k. q lies in its row's set exactly; the columns' sums are 0 as far as `gap` says.
    pub expansion: Vec<f64>,
    /// The objective at theta.
    pub primal: f64,
    /// Its distance to the dual value of V, where columns without ridge count |R| (1 + |theta|).
    pub gap: f64,
    pub iterations: usize,
    pub status: Status,
}

/// Solves a task, from theta = 0 or from near a given theta.
pub(crate) fn minimize(task: &Task, start: Option<&[f64]>, goal: Goal, control: &Control) -> Result<Outcome> {
    let mut path = Path::new(task, start)?;
    let mut best = Outcome {
        theta: path.caller_theta(),
        expansion: Vec::new(),
        primal: f64::INFINITY,
        gap: f64::INFINITY,
        iterations: 0,
        status: Status::Inaccurate,
    };
    let mut since_best = 0;
    for iteration in 0.. {
        control.check()?;
        best.iterations = iteration;
        let mut state = path.assess(path.expansion());
        if !state.gap.is_finite() {
            break;
        }
        // near the end V is made that of theta: R, small as it is, moves f = K V by its root
        if goal.met(2.0 * state.rows_gap, state.primal, path.cap_unit)
            && let Some(settled) = path.settle(&state).filter(|settled| settled.gap < 1.1 * state.gap)
        {
            state.gap = settled.gap;
            state.settled = Some(settled.expansion);
        }
        since_best += 1;
        let gap = state.gap * path.cap_unit;
        if gap < best.gap {
            // a crawl does not count as progress
            since_best = if gap < 0.9 * best.gap { 0 } else { since_best };
            best.gap = gap;
            best.primal = state.primal * path.cap_unit;
            best.theta = path.caller_theta();
            let expansion = state.settled.as_ref().unwrap_or(&state.expansion);
            best.expansion = expansion.iter().map(|v| v * path.cap_unit).collect();
        }
        if goal.met(best.gap, best.primal, 1.0) {
            best.status = Status::Converged;
            break;
        }
        if control.out_of_time() {
            best.status = Status::TimeLimit;
            break;
        }
        if iteration == MOST_ITERATIONS {
            best.status = Status::IterationLimit;
            break;
        }
        if since_best > PATIENCE || !path.advance(&state) {
            break;
        }
    }
    if best.expansion.is_empty() {
        let problem = "the interior point left the range of floating point; scale X or choose another C".to_string();
        return Err(Error::Numerical { problem });
    }
    Ok(best)
}

/// The current point, in units that suit floating point.
struct Path<'a> {
    features: Features<'a>,
    columns: usize,
    classes: usize,
    ridge: Vec<f64>,
    linear: Vec<f64>,
    /// Caps are divided by this.
    cap_unit: f64,
    /// base over `cap_unit`; empty for smooth losses.
    base: Vec<f64>,
    forms: Vec<Form>,
    theta: Vec<f64>,
    cells: Vec<Cell>,
}

/// What one look at all rows tells.
struct State {
    primal: f64,
    gap: f64,
    /// What the rows add to the gap.
    rows_gap: f64,
    /// Mean and number of the products.
    mu: f64,
    pairs: f64,
    expansion: Vec<f64>,
    /// A better V for the same theta, off the path.
    settled: Option<Vec<f64>>,
    residual: Vec<f64>,
}

/// Sums over the rows of a chunk.
#[derive(Default)]
struct Sums {
    loss: f64,
    gap: f64,
    products: f64,
    pairs: usize,
    rows: Vec<f64>,
}

impl<'a> Path<'a> {
    fn new(task: &Task<'a>, start: Option<&[f64]>) -> Result<Self> {
        let (p, k) = (task.columns, task.classes);
        let features = Features::new(task.features, p, k);
        let caps = match task.rows {
            Rows::Hinge { totals, .. } => totals,
            Rows::Smooth { caps, .. } => caps,
        };
        let counted = caps.iter().filter(|cap| **cap > 0.0).count().max(1) as f64;
        let mean = caps.iter().map(|cap| cap / counted).sum::<f64>();
        let cap_unit = if mean > 0.0 { mean.log2().round().exp2() } else { 1.0 };
        let ridge: Vec<f64> = (0..p).map(|c| task.ridge[c] / features.unit(c) / features.unit(c) / cap_unit).collect();
        let mut linear: Vec<f64> =
            task.linear.iter().enumerate().map(|(at, g)| g / features.unit(at % p) / cap_unit).collect();
        if ridge.iter().chain(&linear).any(|value| !value.is_finite()) || !cap_unit.is_finite() {
            let problem = "X and C are too far apart for floating point; scale one of them".to_string();
            return Err(Error::Numerical { problem });
        }
        centre_classes(&mut linear, p, k);
        let mut theta: Vec<f64> = match start {
            Some(start) => start.iter().enumerate().map(|(at, theta)| theta * features.unit(at % p)).collect(),
            None => vec![0.0; k * p],
        };
        centre_classes(&mut theta, p, k);
        let base = match task.rows {
            Rows::Hinge { base, .. } => base.iter().map(|base| base / cap_unit).collect(),
            Rows::Smooth { .. } => Vec::new(),
        };
        let (forms, cells) = shapes(task, cap_unit);
        let mut path = Path { features, columns: p, classes: k, ridge, linear, cap_unit, base, forms, theta, cells };
        path.centre(if start.is_some() { WARM } else { COLD });
        Ok(path)
    }

    fn caller_theta(&self) -> Vec<f64> {
        self.features.outward(&self.theta)
    }

    fn base_of(&self, row: usize) -> &[f64] {
        let k = self.classes;
        if self.base.is_empty() { &[] } else { &self.base[row * k..(row + 1) * k] }
    }

    /// Runs over all rows in parallel chunks: `visit(rows' numbers, forms, cells, scores of theta, sums)`, after which what
    /// is left in the scores is summed as factors of the rows, if asked.
    fn sweep(
        &mut self,
        theta: &[f64],
        visit: impl Fn(usize, &Form, &mut [Cell], &mut [f64], &mut Sums) + Sync,
        adding: bool,
    ) -> Vec<Sums> {
        let (k, p) = (self.classes, self.columns);
        let outward = self.features.outward(theta);
        let (features, forms) = (&self.features, &self.forms);
        self.cells
            .par_chunks_mut(CHUNK * k)
            .enumerate()
            .map(|(chunk, cells)| {
                let (mut scores, mut scratch) = (vec![0.0; cells.len()], Vec::new());
                let mut sums = Sums::default();
                features.scores(chunk, &outward, &mut scores, &mut scratch);
                for (at, (cells, scores)) in cells.chunks_exact_mut(k).zip(scores.chunks_exact_mut(k)).enumerate() {
                    let row = chunk * CHUNK + at;
                    if forms[row].total + forms[row].cap > 0.0 {
                        visit(row, &forms[row], cells, scores, &mut sums);
                    } else {
                        scores.fill(0.0);
                    }
                }
                if adding {
                    sums.rows = vec![0.0; k * p];
                    features.add(chunk, &scores, &mut sums.rows, &mut scratch);
                }
                sums
            })
            .collect()
    }

    /// The sum of all chunks' rows, in the solver's units.
    fn total_rows(&self, parts: &[Sums]) -> Vec<f64> {
        let mut total = vec![0.0; self.classes * self.columns];
        for part in parts {
            total.iter_mut().zip(&part.rows).for_each(|(total, part)| *total += part);
        }
        self.features.inward(&mut total);
        total
    }

    fn centre(&mut self, width: f64) {
        let theta = self.theta.clone();
        self.sweep(&theta, |_, form, cells, scores, _| cells::centre(cells, scores, width, form), false);
    }

    /// V of the cells.
    fn expansion(&self) -> Vec<f64> {
        let k = self.classes;
        let mut expansion = vec![0.0; self.cells.len()];
        for (row, form) in self.forms.iter().enumerate().filter(|(_, form)| form.total + form.cap > 0.0) {
            let at = row * k..(row + 1) * k;
            cells::expansion(&self.cells[at.clone()], form, self.base_of(row), &mut expansion[at]);
        }
        expansion
    }

    /// theta with other multipliers, of which every one is changed by a small share of itself so that R vanishes: Newton's
    /// equations with the multipliers as weights, which are far better conditioned than the path's own late ones, and hardly
    /// any ridge. `None` if the changes were not small.
    fn settle(&mut self, state: &State) -> Option<State> {
        let k = self.classes;
        let counts = |row: usize| self.forms[row].total + self.forms[row].cap > 0.0;
        let cells = (0..self.cells.len()).map(|at| if counts(at / k) { self.cells[at].dual().abs() } else { 0.0 });
        let cells: Vec<f64> = cells.collect();
        let sums: Vec<f64> = cells.chunks_exact(k).map(|cells| cells.iter().sum()).collect();
        let weights = Weights { cells, sums };
        let ridge: Vec<f64> = self.ridge.iter().map(|ridge| SETTLING * ridge).collect();
        let factor = self.features.factor(&weights, &ridge)?;
        let first = self.shift(state, &weights, &factor)?;
        match self.shift(&first, &weights, &factor) {
            Some(second) if second.gap < first.gap => Some(second),
            _ => Some(first),
        }
    }

    /// One round of [`settle`](Self::settle).
    fn shift(&mut self, state: &State, weights: &Weights, factor: &Factor) -> Option<State> {
        let k = self.classes;
        let right: Vec<f64> = state.residual.iter().map(|r| -r).collect();
        let step = self.features.outward(&self.features.solve(factor, &right));
        let mut expansion = state.expansion.clone();
        let features = &self.features;
        let sound = expansion.par_chunks_mut(CHUNK * k).enumerate().map(|(chunk, expansion)| {
            let (mut change, mut scratch) = (vec![0.0; expansion.len()], Vec::new());
            features.scores(chunk, &step, &mut change, &mut scratch);
            let rows = expansion.chunks_exact_mut(k).zip(change.chunks_exact(k)).enumerate();
            rows.fold(true, |sound, (at, (expansion, change))| {
                let row = chunk * CHUNK + at;
                sound & shift_row(expansion, change, &weights.cells[row * k..(row + 1) * k], weights.sums[row])
            })
        });
        let sound = sound.reduce(|| true, |a, b| a & b);
        sound.then(|| self.assess(expansion))
    }

    fn assess(&mut self, expansion: Vec<f64>) -> State {
        let (k, p) = (self.classes, self.columns);
        let theta = self.theta.clone();
        let base = std::mem::take(&mut self.base);
        let parts = self.sweep(
            &theta,
            |row, form, cells, scores, sums| {
                let at = row * k..(row + 1) * k;
                let base = if base.is_empty() { &[][..] } else { &base[at.clone()] };
                let worth = cells::worth(cells, scores, &expansion[at.clone()], base, form);
                sums.loss += worth.loss - base.iter().zip(scores.iter()).map(|(base, f)| base * f).sum::<f64>();
                sums.gap += worth.gap;
                let (products, pairs) = cells::products(cells);
                sums.products += products;
                sums.pairs += pairs;
                scores.copy_from_slice(&expansion[at]);
            },
            true,
        );
        self.base = base;
        let pulled = self.total_rows(&parts);
        let mut state = State {
            primal: parts.iter().map(|part| part.loss).sum(),
            gap: 0.0,
            rows_gap: parts.iter().map(|part| part.gap).sum(),
            mu: 0.0,
            pairs: parts.iter().map(|part| part.pairs).sum::<usize>().max(1) as f64,
            expansion,
            settled: None,
            residual: vec![0.0; k * p],
        };
        state.gap = state.rows_gap;
        state.mu = parts.iter().map(|part| part.products).sum::<f64>() / state.pairs;
        for at in 0..k * p {
            let (ridge, theta, linear) = (self.ridge[at % p], self.theta[at], self.linear[at]);
            let residual = ridge * theta + linear - pulled[at];
            state.primal += 0.5 * ridge * theta * theta + linear * theta;
            state.gap +=
                if ridge > 0.0 { 0.5 * residual * (residual / ridge) } else { residual.abs() * (1.0 + theta.abs()) };
            state.residual[at] = residual;
        }
        state
    }

    /// One predictor-corrector step; `false` when it could not be made.
    fn advance(&mut self, state: &State) -> bool {
        let pull = self.linearise(0.0, 0.0);
        let Some(factor) = self.features.factor(&self.weights(), &self.ridge) else { return false };
        let right = |pull: &[f64]| -> Vec<f64> { state.residual.iter().zip(pull).map(|(r, q)| -r - q).collect() };
        let predictor = self.features.solve(&factor, &right(&pull));
        let reach = self.turn(&predictor, 0.0, 0.0);
        let length = reach.longest.min(1.0);
        let after = state.mu + length * (reach.linear + length * reach.quadratic) / state.pairs;
        let ratio = (after / state.mu).clamp(0.0, 1.0);
        let mut centre = ratio * ratio * ratio * state.mu;
        let mut step = Vec::new();
        let mut length = 0.0;
        for second in [1.0, 0.0] {
            if second == 0.0 {
                centre = centre.max(0.3 * state.mu);
            }
            let pull = self.linearise(centre, second);
            step = self.features.solve(&factor, &right(&pull));
            length = (FRACTION * self.turn(&step, centre, second).longest).min(1.0);
            if length >= SHORT {
                break;
            }
        }
        if !(length > 1e-12) || step.iter().any(|value| !value.is_finite()) {
            return false;
        }
        self.theta.iter_mut().zip(&step).for_each(|(theta, step)| *theta += length * step);
        let k = self.classes;
        let rows = self.cells.par_chunks_exact_mut(k).zip(&self.forms);
        rows.all(|(cells, form)| form.total + form.cap == 0.0 || cells::advance(cells, length, form))
    }

    /// Linearises all cells; sum_i (dq_i at dF = 0) x_i'.
    fn linearise(&mut self, centre: f64, second: f64) -> Vec<f64> {
        let zero = vec![0.0; self.theta.len()];
        let visit = |_: usize, form: &Form, cells: &mut [Cell], out: &mut [f64], _: &mut Sums| {
            cells::linearise(cells, centre, second, form, out);
        };
        let parts = self.sweep(&zero, visit, true);
        self.total_rows(&parts)
    }

    fn weights(&self) -> Weights {
        let k = self.classes;
        let counts = |row: usize| self.forms[row].total + self.forms[row].cap > 0.0;
        let cells = (0..self.cells.len()).map(|at| if counts(at / k) { self.cells[at].weight } else { 0.0 });
        let cells: Vec<f64> = cells.collect();
        let sums = cells.chunks_exact(k).map(|cells| cells.iter().sum()).collect();
        Weights { cells, sums }
    }

    /// The changes of all cells for a change of theta.
    fn turn(&mut self, step: &[f64], centre: f64, second: f64) -> Reach {
        let k = self.classes;
        let outward = self.features.outward(step);
        let (features, forms) = (&self.features, &self.forms);
        let chunks = self.cells.par_chunks_mut(CHUNK * k).enumerate();
        let parts: Vec<Reach> = chunks
            .map(|(chunk, cells)| {
                let (mut change, mut scratch) = (vec![0.0; cells.len()], Vec::new());
                features.scores(chunk, &outward, &mut change, &mut scratch);
                let rows = cells.chunks_exact_mut(k).zip(change.chunks_exact(k)).zip(&forms[chunk * CHUNK..]);
                let counted = rows.filter(|(_, form)| form.total + form.cap > 0.0);
                counted.fold(Reach::NEW, |reach, ((cells, change), form)| {
                    reach.merge(cells::turn(cells, change, centre, second, form))
                })
            })
            .collect();
        parts.into_iter().fold(Reach::NEW, Reach::merge)
    }
}

/// Changes q_j by weight_j (change_j - their weighted mean). `false` if some q would change by more than half of itself.
fn shift_row(expansion: &mut [f64], change: &[f64], weights: &[f64], sum: f64) -> bool {
    if !(sum > 0.0) {
        return true;
    }
    let mean = weights.iter().zip(change).map(|(weight, change)| weight * change).sum::<f64>() / sum;
    for ((v, weight), change) in expansion.iter_mut().zip(weights).zip(change) {
        *v -= weight * (change - mean);
    }
    // the rows of V sum to 0; the largest q is known least well
    let largest = (0..weights.len()).fold(0, |at, class| if weights[class] > weights[at] { class } else { at });
    expansion[largest] = 0.0;
    expansion[largest] = -expansion.iter().sum::<f64>();
    change.iter().zip(weights).all(|(change, &weight)| weight == 0.0 || (change - mean).abs() <= 0.5)
}

/// Forms and empty cells of all rows.
fn shapes(task: &Task, cap_unit: f64) -> (Vec<Form>, Vec<Cell>) {
    let k = task.classes;
    match task.rows {
        Rows::Hinge { totals, knots, .. } => {
            let forms = totals.iter().map(|total| Form { total: total / cap_unit, cap: 0.0, loss: None });
            let kind = |(at, &knot): (usize, &f64)| {
                let total = totals[at / k];
                Cell::new(match knot {
                    knot if knot <= (1.0 - FULL) * total => Kind::Single(1.0),
                    knot if knot >= FULL * total => Kind::Single(0.0),
                    knot => Kind::Double(knot / cap_unit),
                })
            };
            (forms.collect(), knots.iter().enumerate().map(kind).collect())
        }
        Rows::Smooth { loss, codes, caps } => {
            let forms = caps.iter().map(|cap| Form { total: 0.0, cap: cap / cap_unit, loss: Some(loss) });
            let kind = |at: usize| if codes[at / k] as usize == at % k { Kind::Own } else { Kind::Single(0.0) };
            (forms.collect(), (0..codes.len() * k).map(|at| Cell::new(kind(at))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Loss;

    fn numbers(count: usize, seed: u64) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..count).map(|_| (0..6).map(|_| next()).sum::<f64>() - 3.0).collect()
    }

    /// Features with a column of ones, and classes that have something to do with them.
    fn data(m: usize, d: usize, k: usize, scale: f64) -> (Vec<f64>, Vec<u32>) {
        let (x, noise) = (numbers(m * d, 1), numbers(m * k, 2));
        let mut features = Vec::new();
        let mut codes = Vec::new();
        for row in 0..m {
            let x = &x[row * d..(row + 1) * d];
            features.extend(x.iter().map(|x| scale * x));
            features.push(1.0);
            let score = |class: usize| x[class % d] * if class < d { 1.0 } else { -1.0 } + 0.7 * noise[row * k + class];
            let best = (0..k).max_by(|&a, &b| score(a).total_cmp(&score(b))).unwrap();
            codes.push(if row < k { row as u32 } else { best as u32 });
        }
        (features, codes)
    }

    /// `stiffness` = C times the squared scale of the features. Beyond 1e20 the rounding of R alone, squared over the ridge,
    /// shows in the gap.
    fn check(task: &Task, stiffness: f64, what: &str) {
        let tolerance = if stiffness > 1e20 { 1e-2 } else { 1e-8 };
        let goal = Goal { relative: tolerance, absolute: 0.0 };
        let found = minimize(task, None, goal, &Control::default()).unwrap();
        assert_eq!(found.status, Status::Converged, "{what}: {} {}", found.gap, found.primal);
        assert!(found.gap <= tolerance * found.primal.abs());
        // the columns of V balance, and its rows sum to 0
        let (k, p) = (task.classes, task.columns);
        let size: f64 = found.expansion.iter().map(|v| v.abs()).sum();
        for class in 0..k {
            let ones = found.expansion.iter().skip(class).step_by(k).sum::<f64>() - task.linear[class * p + p - 1];
            assert!(ones.abs() <= 1e-5 * size, "{what}: {ones} of {size}");
        }
        assert!(found.expansion.chunks(k).all(|v| v.iter().sum::<f64>().abs() <= 1e-12 * size));
    }

    #[test]
    fn hinge_tasks_end_with_a_small_gap() {
        let (m, d) = (200, 4);
        for k in [2, 3, 5] {
            for scale in [1e-8, 1.0, 1e8] {
                let (features, codes) = data(m, d, k, scale);
                let mut ridge = vec![1.0; d + 1];
                ridge[d] = 0.0;
                let linear = vec![0.0; k * (d + 1)];
                for c in [1e-6, 1e-2, 1.0, 1e3, 1e10] {
                    for own in [true, false] {
                        let factors = numbers(k * k, 9);
                        let cap = |row: usize, class: usize| match own {
                            true if codes[row] as usize == class => c,
                            true => 0.0,
                            false => c * factors[codes[row] as usize * k + class].abs(),
                        };
                        let base: Vec<f64> = (0..m * k).map(|at| cap(at / k, at % k)).collect();
                        let totals: Vec<f64> = base.chunks(k).map(|base| base.iter().sum()).collect();
                        let knots: Vec<f64> = (0..m * k).map(|at| totals[at / k] - base[at]).collect();
                        let rows = Rows::Hinge { totals: &totals, knots: &knots, base: &base };
                        let (features, ridge, linear) = (&features, &ridge, &linear);
                        let task = Task { features, columns: d + 1, classes: k, ridge, linear, rows };
                        check(&task, c * scale * scale, &format!("k = {k}, scale {scale}, C = {c}, own {own}"));
                    }
                }
            }
        }
    }

    #[test]
    fn smooth_tasks_end_with_a_small_gap() {
        let (m, d) = (200, 4);
        for k in [2, 3, 5] {
            for scale in [1e-8, 1.0, 1e8] {
                let (features, codes) = data(m, d, k, scale);
                let mut ridge = vec![1.0; d + 1];
                ridge[d] = 0.0;
                let linear = vec![0.0; k * (d + 1)];
                for c in [1e-6, 1e-2, 1.0, 1e3, 1e10] {
                    for loss in [Loss::logistic().base(), Loss::exponential().base()] {
                        let caps: Vec<f64> = (0..m).map(|row| c * (row % 3) as f64).collect();
                        let rows = Rows::Smooth { loss, codes: &codes, caps: &caps };
                        let (features, ridge, linear) = (&features, &ridge, &linear);
                        let task = Task { features, columns: d + 1, classes: k, ridge, linear, rows };
                        check(&task, c * scale * scale, &format!("k = {k}, scale {scale}, C = {c}, {}", loss.name()));
                    }
                }
            }
        }
    }
}
