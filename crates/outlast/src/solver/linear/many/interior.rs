//! Primal-dual interior point for a level with k classes: the sturdy solver, for few rows or as a last resort for all of them.
//!
//! With xi_i >= f_ij + o_ij for every class, slacks s_ij = xi_i - f_ij - o_ij and multipliers q_ij, sum_j q_ij = c_i:
//!
//! ```text
//! q_ij s_ij = mu,      rho w_j + G_j + sum_i (q_ij - c_i 1(j = y_i)) (x_i, 1) = 0
//! ```
//!
//! The slacks follow theta and the row sums of q hold from the start, so only the last equation has a residual r. Eliminating
//! all but theta, with D = q / s and sigma = sum_j D_j, Newton's step is
//!
//! ```text
//! (R + sum_i L_i x (x_i, 1)(x_i, 1)') dtheta = -r - sum_i h_i x (x_i, 1),      L = D - D 1 1' D / sigma
//! ```
//!
//! L is the Laplacian of the complete graph on the classes with weights D_a D_b / sigma: a Gram matrix per pair of classes,
//! O(n k^2 p^2) at worst, and pairs of negligible weight are left out. Mehrotra's predictor and corrector; one step length,
//! since the problem is quadratic. Every theta has a centred start: xi solves sum_j mu / (xi - f_j - o_j) = c.
//! Duality gap of any iterate: sum_ij q_ij (max_l (f + o)_il - (f + o)_ij) + |r_w|^2 / (2 rho) - b.r_b.

use super::dual::Dual;
use super::level::{Block, Level, PairGrams, Side, add};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::Factor;

const MOST_ITERATIONS: usize = 200;
/// Iterations without a better gap before the solver gives up.
const PATIENCE: usize = 20;
/// Share of the way to the boundary a step goes.
const FRACTION: f64 = 0.995;
/// A step shorter than this is taken again without the second-order correction.
const SHORT: f64 = 0.1;
/// Pairs lighter than this share of rho do not enter the matrix: all of them together weigh less than the ridge.
const LIGHT: f64 = 1e-9;
/// Newton steps for the centred start of a row.
const CENTRING: usize = 60;

/// Where the solver begins.
pub(super) struct Begin<'a> {
    pub theta: &'a [f64],
    /// How far off f is expected to be: sets mu.
    pub width: f64,
}

/// An approximate solution with its multipliers.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub theta: Vec<f64>,
    pub dual: Dual,
    /// P
    pub objective: f64,
    /// Duality gap, with |b.r_b| for what the multipliers lack in balance.
    pub gap: f64,
    pub iterations: usize,
}

impl Pair {
    pub fn relative_gap(&self) -> f64 {
        self.gap / self.objective.abs().max(f64::MIN_POSITIVE)
    }
}

/// Solves a level until gap <= tolerance |P|, or as far as rounding allows.
pub(super) fn solve(level: &Level, begin: Begin, tolerance: f64, control: &Control) -> Result<Pair> {
    let k = level.classes;
    let mut rows = start(level, &begin);
    let mut theta = begin.theta.to_vec();
    let mut best_q = multipliers(&rows, k);
    let (mut best_theta, mut objective, mut gap) = (theta.clone(), f64::INFINITY, f64::INFINITY);
    let (mut since_best, mut iterations) = (0, 0);
    for iteration in 0..MOST_ITERATIONS {
        control.check()?;
        iterations = iteration;
        let state = assess(level, &theta, &mut rows);
        if !state.gap.is_finite() {
            break;
        }
        since_best += 1;
        if state.gap < gap {
            // a crawl does not count as progress
            if state.gap < 0.9 * gap {
                since_best = 0;
            }
            (gap, objective) = (state.gap, state.objective);
            best_theta.copy_from_slice(&theta);
            best_q = multipliers(&rows, k);
        }
        if state.gap <= tolerance * state.objective.abs() || since_best > PATIENCE || control.out_of_time() {
            break;
        }
        let Some(length) = advance(level, &state, &mut theta, &mut rows) else { break };
        if length < 1e-12 {
            break;
        }
    }
    let dual = Dual::from_rows(&best_q, level.caps, k);
    Ok(Pair { theta: best_theta, dual, objective, gap, iterations })
}

/// The four numbers of each class of a row: q, s, dq, ds.
const FIELDS: usize = 4;

/// A row's numbers, split.
struct Numbers<'a> {
    q: &'a mut [f64],
    s: &'a mut [f64],
    dq: &'a mut [f64],
    ds: &'a mut [f64],
}

impl<'a> Numbers<'a> {
    fn of(row: &'a mut [f64]) -> Numbers<'a> {
        let k = row.len() / FIELDS;
        let (q, rest) = row.split_at_mut(k);
        let (s, rest) = rest.split_at_mut(k);
        let (dq, ds) = rest.split_at_mut(k);
        Numbers { q, s, dq, ds }
    }

    fn weight(&self, class: usize) -> f64 {
        self.q[class] / self.s[class]
    }

    /// sigma
    fn total(&self) -> f64 {
        (0..self.q.len()).map(|class| self.weight(class)).sum()
    }

    /// h_j - D_j (sum h - missing) / sigma in place of h.
    fn reduce(&self, missing: f64, h: &mut [f64]) {
        let share = (h.iter().sum::<f64>() - missing) / self.total();
        h.iter_mut().enumerate().for_each(|(class, h)| *h -= self.weight(class) * share);
    }

    /// dq and ds for a change of f and the right-hand sides e, with the rest that the row sum of q is missing.
    fn solve(&mut self, df: &[f64], e: impl Fn(&Numbers, usize) -> f64, missing: f64, change: &mut [f64]) {
        let k = self.q.len();
        for class in 0..k {
            change[class] = e(self, class);
        }
        let pulled: f64 = (0..k).map(|class| change[class] / self.s[class] + self.weight(class) * df[class]).sum();
        let dxi = (pulled - missing) / self.total();
        for class in 0..k {
            let ds = dxi - df[class];
            self.ds[class] = ds;
            self.dq[class] = (change[class] - self.q[class] * ds) / self.s[class];
        }
    }

    /// Longest step that keeps all positive.
    fn room(&self, mut longest: f64) -> f64 {
        for class in 0..self.q.len() {
            if self.dq[class] < 0.0 {
                longest = longest.min(-self.q[class] / self.dq[class]);
            }
            if self.ds[class] < 0.0 {
                longest = longest.min(-self.s[class] / self.ds[class]);
            }
        }
        longest
    }
}

fn multipliers(rows: &[f64], k: usize) -> Vec<f64> {
    rows.chunks_exact(FIELDS * k).flat_map(|row| row[..k].iter().copied()).collect()
}

fn start(level: &Level, begin: &Begin) -> Vec<f64> {
    let k = level.classes;
    let f = level.all_scores(begin.theta);
    let active = level.caps.iter().filter(|cap| **cap > 0.0).count().max(1);
    let mu = begin.width.max(f64::MIN_POSITIVE) * level.caps.iter().sum::<f64>() / active as f64;
    let mut rows = vec![0.0; level.rows() * FIELDS * k];
    let mut a = vec![0.0; k];
    for (row, numbers) in rows.chunks_exact_mut(FIELDS * k).enumerate() {
        let cap = level.caps[row];
        if cap == 0.0 {
            continue;
        }
        a.copy_from_slice(&f[row * k..(row + 1) * k]);
        level.augment(level.codes[row], &mut a);
        let top = a.iter().fold(f64::NEG_INFINITY, |top, a| top.max(*a));
        let lift = centred(&a, top, mu / cap);
        let Numbers { q, s, .. } = Numbers::of(numbers);
        let mut total = 0.0;
        for class in 0..k {
            s[class] = lift + (top - a[class]);
            q[class] = 1.0 / s[class];
            total += q[class];
        }
        q.iter_mut().for_each(|q| *q *= cap / total);
    }
    rows
}

/// The lift t with sum_j v / (t + top - a_j) = 1: between v and k v, by Newton's method on the reciprocal of the sum, which is
/// concave and increasing in t.
fn centred(a: &[f64], top: f64, v: f64) -> f64 {
    let mut lift = v;
    for _ in 0..CENTRING {
        let (mut sum, mut slope) = (0.0, 0.0);
        for a in a {
            let term = 1.0 / (lift + (top - a));
            sum += term;
            slope += term * term;
        }
        // 1 / sum - v has slope `slope / sum^2`
        let step = (v - 1.0 / sum) * sum * sum / slope;
        let next = (lift + step).clamp(lift, a.len() as f64 * v);
        if !(next > lift * (1.0 + 1e-12)) {
            break;
        }
        lift = next;
    }
    lift
}

/// What one look at all rows tells.
struct Assessment {
    objective: f64,
    gap: f64,
    /// mean of the products q s
    mu: f64,
    pairs: f64,
    residual: Vec<f64>,
    predictor: Vec<f64>,
    factor: Option<Factor>,
}

struct Sums {
    grams: PairGrams,
    dual: Vec<f64>,
    predictor: Vec<f64>,
    loss: f64,
    gap: f64,
    products: f64,
    rows: usize,
    scores: Vec<f64>,
    factors: Vec<f64>,
    column: Vec<f64>,
    d: Vec<f64>,
}

fn assess(level: &Level, theta: &[f64], rows: &mut [f64]) -> Assessment {
    let (k, d, size) = (level.classes, level.x.cols(), level.size());
    let functional = level.functional(theta);
    let light = LIGHT * level.ridge;
    let new = || Sums {
        grams: PairGrams::new(level),
        dual: vec![0.0; size],
        predictor: vec![0.0; size],
        loss: 0.0,
        gap: 0.0,
        products: 0.0,
        rows: 0,
        scores: Vec::new(),
        factors: Vec::new(),
        column: Vec::new(),
        d: vec![0.0; k],
    };
    let visit = |block: &Block, rows: &mut [f64], sums: &mut Sums| {
        let count = block.codes.len();
        sums.scores.resize(count * k, 0.0);
        level.scores(block, &functional, &mut sums.column, &mut sums.scores);
        sums.factors.clear();
        sums.factors.resize(2 * count * k, 0.0);
        let (own, ahead) = sums.factors.split_at_mut(count * k);
        for row in 0..count {
            let (cap, code) = (block.caps[row], block.codes[row]);
            if cap == 0.0 {
                continue;
            }
            let numbers = Numbers::of(&mut rows[row * FIELDS * k..(row + 1) * FIELDS * k]);
            let f = &mut sums.scores[row * k..(row + 1) * k];
            sums.loss += cap * loss_and_augment(level, code, f);
            let top = f.iter().fold(f64::NEG_INFINITY, |top, f| top.max(*f));
            let mut total = 0.0;
            for class in 0..k {
                let q = numbers.q[class];
                sums.gap += q * (top - f[class]);
                sums.products += q * numbers.s[class];
                own[row * k + class] = q;
                sums.d[class] = numbers.weight(class);
                total += sums.d[class];
            }
            let missing = cap - numbers.q.iter().sum::<f64>();
            let ahead = &mut ahead[row * k..(row + 1) * k];
            ahead.iter_mut().zip(numbers.q.iter()).for_each(|(h, q)| *h = -q);
            numbers.reduce(missing, ahead);
            if level.side == Side::Margin {
                own[row * k + code as usize] -= cap;
            }
            sums.rows += 1;
            let x = &block.x[row * d..(row + 1) * d];
            for b in 1..k {
                let share = sums.d[b] / total;
                for a in 0..b {
                    let weight = sums.d[a] * share;
                    if weight > light {
                        sums.grams.push(a, b, x, weight);
                    }
                }
            }
        }
        level.add_rows(block, own, &mut sums.column, &mut sums.dual);
        level.add_rows(block, ahead, &mut sums.column, &mut sums.predictor);
    };
    let mut sums = level.sweep(FIELDS * k, rows, new, visit, |total, part| {
        total.grams.merge(part.grams);
        add(&mut total.dual, &part.dual);
        add(&mut total.predictor, &part.predictor);
        total.loss += part.loss;
        total.gap += part.gap;
        total.products += part.products;
        total.rows += part.rows;
    });
    sums.grams.flush();
    level.normalise(&mut sums.dual);
    level.normalise(&mut sums.predictor);
    let mut residual = level.affine_gradient(theta);
    add(&mut residual, &sums.dual);
    let pairs = (sums.rows * k).max(1) as f64;
    Assessment {
        objective: level.affine_part(theta) + sums.loss,
        gap: sums.gap + level.residual_gap(theta, &residual),
        mu: sums.products / pairs,
        pairs,
        factor: level.factor(&level.hessian(&sums.grams)),
        residual,
        predictor: sums.predictor,
    }
}

/// max_l (f + o) - f_y (or max_l (f + o) in the cost form) of a row, and f + o in place of f.
#[inline]
pub(super) fn loss_and_augment(level: &Level, code: u32, f: &mut [f64]) -> f64 {
    let own = if level.side == Side::Margin { f[code as usize] } else { 0.0 };
    level.augment(code, f);
    f.iter().fold(f64::NEG_INFINITY, |top, f| top.max(*f)) - own
}

struct StepSums {
    longest: f64,
    /// coefficients of the sum of products as a polynomial of the step length
    linear: f64,
    quadratic: f64,
    centring: Vec<f64>,
    second: Vec<f64>,
    scores: Vec<f64>,
    factors: Vec<f64>,
    column: Vec<f64>,
    change: Vec<f64>,
}

impl StepSums {
    fn new(size: usize, k: usize) -> StepSums {
        StepSums {
            longest: 1.0 / FRACTION,
            linear: 0.0,
            quadratic: 0.0,
            centring: vec![0.0; size],
            second: vec![0.0; size],
            scores: Vec::new(),
            factors: Vec::new(),
            column: Vec::new(),
            change: vec![0.0; k],
        }
    }

    fn merge(&mut self, part: StepSums) {
        self.longest = self.longest.min(part.longest);
        self.linear += part.linear;
        self.quadratic += part.quadratic;
        add(&mut self.centring, &part.centring);
        add(&mut self.second, &part.second);
    }
}

/// One predictor-corrector step. Returns its length; `None` when the factor or a direction failed.
fn advance(level: &Level, state: &Assessment, theta: &mut [f64], rows: &mut [f64]) -> Option<f64> {
    let factor = state.factor.as_ref()?;
    let right: Vec<f64> = state.predictor.iter().zip(&state.residual).map(|(h, r)| -h - r).collect();
    let predictor = factor.solve(&right);
    let sums = affine_step(level, &predictor, rows);
    let products = state.mu * state.pairs;
    let reach = sums.longest.min(1.0);
    let after = ((products + reach * (sums.linear + reach * sums.quadratic)) / state.pairs).max(0.0);
    let ratio = (after / state.mu).min(1.0);
    let centre = ratio * ratio * ratio * state.mu;
    let combine = |centre: f64, second: f64| -> Vec<f64> {
        let terms = right.iter().zip(&sums.centring).zip(&sums.second);
        factor.solve(&terms.map(|((r, c), s)| r - centre * c - second * s).collect::<Vec<f64>>())
    };
    let mut direction = combine(centre, 1.0);
    let mut length = final_step(level, &direction, centre, true, rows);
    if !(length >= SHORT) {
        let centre = centre.max(0.3 * state.mu);
        direction = combine(centre, 0.0);
        length = final_step(level, &direction, centre, false, rows);
    }
    if !length.is_finite() || direction.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let length = (FRACTION * length).min(1.0);
    theta.iter_mut().zip(&direction).for_each(|(theta, step)| *theta += length * step);
    let k = level.classes;
    for row in rows.chunks_exact_mut(FIELDS * k) {
        let Numbers { q, s, dq, ds } = Numbers::of(row);
        for class in 0..k {
            q[class] += length * dq[class];
            s[class] += length * ds[class];
        }
    }
    Some(length)
}

/// The predictor's changes of every row, and the right-hand sides of the corrector.
fn affine_step(level: &Level, direction: &[f64], rows: &mut [f64]) -> StepSums {
    let k = level.classes;
    let functional = level.functional(direction);
    let visit = |block: &Block, rows: &mut [f64], sums: &mut StepSums| {
        let count = block.codes.len();
        sums.scores.resize(count * k, 0.0);
        level.scores(block, &functional, &mut sums.column, &mut sums.scores);
        sums.factors.clear();
        sums.factors.resize(2 * count * k, 0.0);
        let (centring, second) = sums.factors.split_at_mut(count * k);
        for row in 0..count {
            let cap = block.caps[row];
            if cap == 0.0 {
                continue;
            }
            let mut numbers = Numbers::of(&mut rows[row * FIELDS * k..(row + 1) * FIELDS * k]);
            let missing = cap - numbers.q.iter().sum::<f64>();
            let df = &sums.scores[row * k..(row + 1) * k];
            numbers.solve(df, |own, class| -own.q[class] * own.s[class], missing, &mut sums.change);
            sums.longest = numbers.room(sums.longest);
            let (centring, second) = (&mut centring[row * k..][..k], &mut second[row * k..][..k]);
            for class in 0..k {
                let (dq, ds) = (numbers.dq[class], numbers.ds[class]);
                sums.linear += numbers.q[class] * ds + numbers.s[class] * dq;
                sums.quadratic += dq * ds;
                centring[class] = 1.0 / numbers.s[class];
                second[class] = -dq * ds / numbers.s[class];
            }
            numbers.reduce(0.0, centring);
            numbers.reduce(0.0, second);
        }
        level.add_rows(block, centring, &mut sums.column, &mut sums.centring);
        level.add_rows(block, second, &mut sums.column, &mut sums.second);
    };
    let mut sums = level.sweep(FIELDS * k, rows, || StepSums::new(level.size(), k), visit, StepSums::merge);
    level.normalise(&mut sums.centring);
    level.normalise(&mut sums.second);
    sums
}

/// The final changes of every row; returns the longest step that keeps all positive.
fn final_step(level: &Level, direction: &[f64], centre: f64, second: bool, rows: &mut [f64]) -> f64 {
    let k = level.classes;
    let functional = level.functional(direction);
    let visit = |block: &Block, rows: &mut [f64], sums: &mut StepSums| {
        let count = block.codes.len();
        sums.scores.resize(count * k, 0.0);
        level.scores(block, &functional, &mut sums.column, &mut sums.scores);
        for row in 0..count {
            let cap = block.caps[row];
            if cap == 0.0 {
                continue;
            }
            let mut numbers = Numbers::of(&mut rows[row * FIELDS * k..(row + 1) * FIELDS * k]);
            let missing = cap - numbers.q.iter().sum::<f64>();
            let df = &sums.scores[row * k..(row + 1) * k];
            let right = |own: &Numbers, class: usize| {
                let bend = if second { own.dq[class] * own.ds[class] } else { 0.0 };
                centre - own.q[class] * own.s[class] - bend
            };
            numbers.solve(df, right, missing, &mut sums.change);
            sums.longest = numbers.room(sums.longest);
        }
    };
    let new = || StepSums::new(0, k);
    level.sweep(FIELDS * k, rows, new, visit, |total, part| total.longest = total.longest.min(part.longest)).longest
}
