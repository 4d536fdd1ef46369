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

pub(super) use super::super::interior::Begin;
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
/// Largest share of mu aimed at: halved after long steps, doubled after short ones.
const CENTRING_RANGE: (f64, f64) = (0.05, 0.8);
const FIRST_CENTRING: f64 = 0.2;
/// Most corrections that a step of less than `LONG` gets, each to make it longer by `REACH`.
const CORRECTORS: usize = 4;
const LONG: f64 = 0.9;
const REACH: f64 = 0.2;
/// Pairs lighter than this share of rho, or of the largest cap, do not enter the matrix: all of them together weigh less than the
/// ridge.
const LIGHT: f64 = 1e-9;
/// Times the products that the residual may be of the gap at the start.
const UNBALANCED: f64 = 30.0;
/// Newton steps for the centred start of a row.
const LIFTS: usize = 60;

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
    let mut width = begin.width;
    while width < 1.0 && !balanced(level, &theta, &mut rows) {
        // too near the boundary for the way that is left
        width = (10.0 * width).min(1.0);
        rows = start(level, &Begin { theta: begin.theta, width });
    }
    let mut best_q = multipliers(&rows, k);
    let (mut best_theta, mut objective, mut gap) = (theta.clone(), f64::INFINITY, f64::INFINITY);
    let (mut since_best, mut iterations, mut most) = (0, 0, FIRST_CENTRING);
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
        let Some(length) = advance(level, &state, most, &mut theta, &mut rows) else { break };
        let change = if length < 0.25 {
            2.0
        } else if length > 0.6 {
            0.5
        } else {
            1.0
        };
        most = (change * most).clamp(CENTRING_RANGE.0, CENTRING_RANGE.1);
        if length < 1e-12 {
            break;
        }
    }
    let dual = Dual::from_rows(&best_q, level.caps, k);
    Ok(Pair { theta: best_theta, dual, objective, gap, iterations })
}

/// The numbers of each class of a row: q, s, the right-hand side e of its equation q ds + s dq = e, dq, ds, and a trial's dq, ds.
const FIELDS: usize = 7;

/// A row's numbers, split.
struct Numbers<'a> {
    q: &'a mut [f64],
    s: &'a mut [f64],
    e: &'a mut [f64],
    dq: &'a mut [f64],
    ds: &'a mut [f64],
    trial_dq: &'a mut [f64],
    trial_ds: &'a mut [f64],
}

impl<'a> Numbers<'a> {
    fn of(row: &'a mut [f64]) -> Numbers<'a> {
        let k = row.len() / FIELDS;
        let (q, rest) = row.split_at_mut(k);
        let (s, rest) = rest.split_at_mut(k);
        let (e, rest) = rest.split_at_mut(k);
        let (dq, rest) = rest.split_at_mut(k);
        let (ds, rest) = rest.split_at_mut(k);
        let (trial_dq, trial_ds) = rest.split_at_mut(k);
        Numbers { q, s, e, dq, ds, trial_dq, trial_ds }
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

    /// dxi for a change of f and a right-hand side e, with the rest that the row sum of q is missing.
    fn lift(&self, df: &[f64], e: impl Fn(usize) -> f64, missing: f64) -> f64 {
        let pulled: f64 =
            (0..self.q.len()).map(|class| e(class) / self.s[class] + self.weight(class) * df[class]).sum();
        (pulled - missing) / self.total()
    }

    /// dq and ds for a change of f and the right-hand sides e.
    fn solve(&mut self, df: &[f64], missing: f64) {
        let dxi = self.lift(df, |class| self.e[class], missing);
        for class in 0..self.q.len() {
            let ds = dxi - df[class];
            self.ds[class] = ds;
            self.dq[class] = (self.e[class] - self.q[class] * ds) / self.s[class];
        }
    }

    /// As [`solve`](Self::solve), for the trial, with the products after a step of that length corrected.
    fn solve_trial(&mut self, df: &[f64], missing: f64, length: f64, centre: f64) {
        let dxi = self.lift(df, |class| self.e[class] + self.correction(class, length, centre), missing);
        for class in 0..self.q.len() {
            let e = self.e[class] + self.correction(class, length, centre);
            let ds = dxi - df[class];
            self.trial_ds[class] = ds;
            self.trial_dq[class] = (e - self.q[class] * ds) / self.s[class];
        }
    }

    /// Makes the trial the step.
    fn accept(&mut self, length: f64, centre: f64) {
        for class in 0..self.q.len() {
            self.e[class] += self.correction(class, length, centre);
            self.dq[class] = self.trial_dq[class];
            self.ds[class] = self.trial_ds[class];
        }
    }

    /// What brings the product after a step of that length between a tenth and ten times the centre (Gondzio 1996).
    fn correction(&self, class: usize, length: f64, centre: f64) -> f64 {
        let after = (self.q[class] + length * self.dq[class]) * (self.s[class] + length * self.ds[class]);
        (after.clamp(0.1 * centre, 10.0 * centre) - after).max(-10.0 * centre)
    }

    /// Longest step that keeps all positive.
    fn room(&self, dq: &[f64], ds: &[f64], mut longest: f64) -> f64 {
        for class in 0..self.q.len() {
            if dq[class] < 0.0 {
                longest = longest.min(-self.q[class] / dq[class]);
            }
            if ds[class] < 0.0 {
                longest = longest.min(-self.s[class] / ds[class]);
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
    for _ in 0..LIFTS {
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

/// Whether the residual is not much more of the gap than the products.
fn balanced(level: &Level, theta: &[f64], rows: &mut [f64]) -> bool {
    let k = level.classes;
    type Sums = (Vec<f64>, f64, Vec<f64>, Vec<f64>);
    let visit = |block: &Block, rows: &mut [f64], (sum, products, factors, column): &mut Sums| {
        factors.clear();
        factors.resize(block.codes.len() * k, 0.0);
        for (row, factors) in factors.chunks_exact_mut(k).enumerate().filter(|(row, _)| block.caps[*row] > 0.0) {
            let numbers = Numbers::of(&mut rows[row * FIELDS * k..(row + 1) * FIELDS * k]);
            factors.copy_from_slice(numbers.q);
            *products += numbers.q.iter().zip(&*numbers.s).map(|(q, s)| q * s).sum::<f64>();
            if level.side == Side::Margin {
                factors[block.codes[row] as usize] -= block.caps[row];
            }
        }
        level.add_rows(block, factors, column, sum);
    };
    let new = || (vec![0.0; level.size()], 0.0, Vec::new(), Vec::new());
    let (mut residual, products, ..) = level.sweep(FIELDS * k, rows, new, visit, |total, part| {
        add(&mut total.0, &part.0);
        total.1 += part.1;
    });
    level.normalise(&mut residual);
    add(&mut residual, &level.affine_gradient(theta));
    level.residual_gap(theta, &residual) <= UNBALANCED * products
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
    let light = LIGHT * level.ridge.min(1.0);
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
    let mut sums = level.sweep_grams(1, FIELDS * k, rows, new, visit, |total, part| {
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
}

impl StepSums {
    fn new(size: usize) -> StepSums {
        StepSums {
            longest: 1.0 / FRACTION,
            linear: 0.0,
            quadratic: 0.0,
            centring: vec![0.0; size],
            second: vec![0.0; size],
            scores: Vec::new(),
            factors: Vec::new(),
            column: Vec::new(),
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
fn advance(level: &Level, state: &Assessment, most: f64, theta: &mut [f64], rows: &mut [f64]) -> Option<f64> {
    let factor = state.factor.as_ref()?;
    let right: Vec<f64> = state.predictor.iter().zip(&state.residual).map(|(h, r)| -h - r).collect();
    let predictor = factor.solve(&right);
    let sums = affine_step(level, &predictor, rows);
    let products = state.mu * state.pairs;
    let reach = sums.longest.min(1.0);
    let after = ((products + reach * (sums.linear + reach * sums.quadratic)) / state.pairs).max(0.0);
    let ratio = (after / state.mu).min(1.0);
    // a single row may hold back the predictor: the corrections see to it
    let centre = (ratio * ratio * ratio).min(most) * state.mu;
    let combine = |centre: f64, second: f64| -> Vec<f64> {
        let terms = right.iter().zip(&sums.centring).zip(&sums.second);
        terms.map(|((r, c), s)| r - centre * c - second * s).collect()
    };
    let mut target = combine(centre, 1.0);
    let mut direction = factor.solve(&target);
    let mut length = final_step(level, &direction, centre, true, rows);
    if !(length >= SHORT) {
        let centre = centre.max(0.3 * state.mu);
        target = combine(centre, 0.0);
        direction = factor.solve(&target);
        length = final_step(level, &direction, centre, false, rows);
    }
    for _ in 0..CORRECTORS {
        if !(length < LONG) {
            break;
        }
        let aim = (length + REACH).min(1.0);
        let aimed_centre = centre.max(1e-3 * state.mu);
        let correction = correction(level, aim, aimed_centre, rows);
        let trial_target: Vec<f64> = target.iter().zip(&correction).map(|(right, c)| right - c).collect();
        let trial = factor.solve(&trial_target);
        let reached = corrected_step(level, &trial, aim, aimed_centre, rows);
        if !(reached >= length + 0.1 * REACH) {
            break;
        }
        (target, direction, length) = (trial_target, trial, reached);
        for row in rows.chunks_exact_mut(FIELDS * level.classes) {
            let mut numbers = Numbers::of(row);
            numbers.accept(aim, aimed_centre);
        }
    }
    if !length.is_finite() || direction.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let length = (FRACTION * length).min(1.0);
    theta.iter_mut().zip(&direction).for_each(|(theta, step)| *theta += length * step);
    let k = level.classes;
    for row in rows.chunks_exact_mut(FIELDS * k) {
        let Numbers { q, s, dq, ds, .. } = Numbers::of(row);
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
            (0..k).for_each(|class| numbers.e[class] = -numbers.q[class] * numbers.s[class]);
            numbers.solve(df, missing);
            sums.longest = numbers.room(numbers.dq, numbers.ds, sums.longest);
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
    let mut sums = level.sweep(FIELDS * k, rows, || StepSums::new(level.size()), visit, StepSums::merge);
    level.normalise(&mut sums.centring);
    level.normalise(&mut sums.second);
    sums
}

/// sum_i h_i x (x_i, 1) of the corrections.
fn correction(level: &Level, aim: f64, centre: f64, rows: &mut [f64]) -> Vec<f64> {
    let k = level.classes;
    let visit = |block: &Block, rows: &mut [f64], sums: &mut StepSums| {
        let count = block.codes.len();
        sums.factors.clear();
        sums.factors.resize(count * k, 0.0);
        for row in (0..count).filter(|&row| block.caps[row] > 0.0) {
            let numbers = Numbers::of(&mut rows[row * FIELDS * k..(row + 1) * FIELDS * k]);
            let h = &mut sums.factors[row * k..(row + 1) * k];
            (0..k).for_each(|class| h[class] = numbers.correction(class, aim, centre) / numbers.s[class]);
            numbers.reduce(0.0, h);
        }
        level.add_rows(block, &sums.factors, &mut sums.column, &mut sums.centring);
    };
    let new = || StepSums::new(level.size());
    let mut sum = level.sweep(FIELDS * k, rows, new, visit, StepSums::merge).centring;
    level.normalise(&mut sum);
    sum
}

/// The trial's changes of every row; returns the longest step that keeps all positive.
fn corrected_step(level: &Level, direction: &[f64], aim: f64, centre: f64, rows: &mut [f64]) -> f64 {
    let k = level.classes;
    let functional = level.functional(direction);
    let visit = |block: &Block, rows: &mut [f64], sums: &mut StepSums| {
        let count = block.codes.len();
        sums.scores.resize(count * k, 0.0);
        level.scores(block, &functional, &mut sums.column, &mut sums.scores);
        for row in (0..count).filter(|&row| block.caps[row] > 0.0) {
            let mut numbers = Numbers::of(&mut rows[row * FIELDS * k..(row + 1) * FIELDS * k]);
            let missing = block.caps[row] - numbers.q.iter().sum::<f64>();
            numbers.solve_trial(&sums.scores[row * k..(row + 1) * k], missing, aim, centre);
            sums.longest = numbers.room(numbers.trial_dq, numbers.trial_ds, sums.longest);
        }
    };
    let new = || StepSums::new(0);
    level.sweep(FIELDS * k, rows, new, visit, |total, part| total.longest = total.longest.min(part.longest)).longest
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
            for class in 0..k {
                let bend = if second { numbers.dq[class] * numbers.ds[class] } else { 0.0 };
                numbers.e[class] = centre - numbers.q[class] * numbers.s[class] - bend;
            }
            numbers.solve(df, missing);
            sums.longest = numbers.room(numbers.dq, numbers.ds, sums.longest);
        }
    };
    let new = || StepSums::new(0);
    level.sweep(FIELDS * k, rows, new, visit, |total, part| total.longest = total.longest.min(part.longest)).longest
}
