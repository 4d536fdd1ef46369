//! Primal-dual interior point for a level: the sturdy solver, for few rows or as a last resort for all of them.
//!
//! With slack xi_i >= 0, xi_i >= z_i and multipliers u_i, a_i (a + u = k), s = xi - z:
//!
//! ```text
//! a_i s_i = mu,  u_i xi_i = mu,  rho w + g - sum_i a_i y_i (x_i, 1) = 0
//! ```
//!
//! a + u = k and s = xi - z hold from the start, so only the last equation has a residual r. Eliminating all but theta, with
//! q = u s + a xi and D = a u / q, Newton's step is (R + A'DA) dtheta = -r + A'e, A having the rows y_i (x_i, 1): one weighted Gram
//! matrix and a p x p factor per iteration, O(n p^2). Mehrotra's predictor and corrector; one step length, since the problem is
//! quadratic. For any theta and mu the equations of a row have the closed-form solution
//!
//! ```text
//! s = v + (sqrt(z^2 + 4 v^2) - z) / 2,   xi = s + z,   a = mu / s,      v = mu / k
//! ```
//!
//! which makes every theta a centred start. Duality gap of any iterate: sum (k [z]_+ - a z) + |r_w|^2 / (2 rho) - b r_b.

use super::level::{Block, GramSum, Level, add};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::{Factor, dot};

const MOST_ITERATIONS: usize = 400;
/// Iterations without a better gap before the solver gives up.
const PATIENCE: usize = 25;
/// Share of the way to the boundary a step goes.
const FRACTION: f64 = 0.995;
/// A step shorter than this is taken again without the second-order correction.
const SHORT: f64 = 0.1;

/// Where the solver begins.
pub(super) struct Begin<'a> {
    pub theta: &'a [f64],
    /// How far off z (with k classes, f) is expected to be: sets mu.
    pub width: f64,
}

/// An approximate solution with its multipliers.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub theta: Vec<f64>,
    /// a_i in [0, k_i]
    pub dual: Vec<f64>,
    /// P
    pub objective: f64,
    /// Duality gap, with |b r_b| for what the multipliers lack in balance.
    pub gap: f64,
    pub iterations: usize,
}

/// Everything about one row.
#[derive(Clone, Copy, Default)]
struct Row {
    a: f64,
    u: f64,
    s: f64,
    xi: f64,
    /// D and the right-hand side e of the predictor
    d: f64,
    e: f64,
    /// second-order term of the corrector
    second: f64,
    da: f64,
    ds: f64,
    dxi: f64,
}

/// Solves a level until gap <= tolerance |P|, or as far as rounding allows.
pub(super) fn solve(level: &Level, begin: Begin, tolerance: f64, control: &Control) -> Result<Pair> {
    let mut rows = start(level, &begin);
    let mut theta = begin.theta.to_vec();
    let mut best = Pair {
        dual: rows.iter().map(|row| row.a).collect(),
        theta: theta.clone(),
        objective: f64::INFINITY,
        gap: f64::INFINITY,
        iterations: 0,
    };
    let mut since_best = 0;
    for iteration in 0..MOST_ITERATIONS {
        control.check()?;
        best.iterations = iteration;
        let state = assess(level, &theta, &mut rows);
        if !state.gap.is_finite() {
            break;
        }
        since_best += 1;
        if state.gap < best.gap {
            // a crawl does not count as progress
            if state.gap < 0.9 * best.gap {
                since_best = 0;
            }
            best.gap = state.gap;
            best.objective = state.objective;
            best.theta.copy_from_slice(&theta);
            best.dual.iter_mut().zip(&rows).for_each(|(dual, row)| *dual = row.a);
        }
        if state.gap <= tolerance * state.objective.abs() || since_best > PATIENCE || control.out_of_time() {
            break;
        }
        let Some(length) = advance(level, &state, &mut theta, &mut rows) else { break };
        if length < 1e-12 {
            break;
        }
    }
    Ok(best)
}

fn start(level: &Level, begin: &Begin) -> Vec<Row> {
    let n = level.rows();
    let mut z = vec![0.0; n];
    level.slacks(begin.theta, &mut z);
    let active = level.caps.iter().filter(|cap| **cap > 0.0).count().max(1);
    let mu = begin.width * level.caps.iter().sum::<f64>() / active as f64;
    let row = |(z, &cap): (&f64, &f64)| {
        if cap == 0.0 {
            return Row::default();
        }
        let v = mu / cap;
        let root = z.hypot(2.0 * v);
        // the smaller of the two roots without cancellation
        let (s, xi) = if *z > 0.0 {
            let s = v + 2.0 * v * (v / (root + z));
            (s, s + z)
        } else {
            let xi = v + 2.0 * v * (v / (root - z));
            (xi - z, xi)
        };
        let a = (mu / s).min(cap);
        Row { a, u: (mu / xi).min(cap), s, xi, ..Row::default() }
    };
    z.iter().zip(level.caps).map(row).collect()
}

/// What one look at all rows tells.
struct Assessment {
    objective: f64,
    gap: f64,
    /// mean of the products a s and u xi
    mu: f64,
    pairs: f64,
    residual: Vec<f64>,
    predictor: Vec<f64>,
    factor: Option<Factor>,
}

struct Sums {
    gram: GramSum,
    dual: Vec<f64>,
    predictor: Vec<f64>,
    hinge: f64,
    gap: f64,
    products: f64,
    pairs: usize,
    margins: Vec<f64>,
    factors: Vec<f64>,
}

fn assess(level: &Level, theta: &[f64], rows: &mut [Row]) -> Assessment {
    let p = level.order();
    let functional = level.functional(theta);
    let new = || Sums {
        gram: GramSum::new(level),
        dual: vec![0.0; p],
        predictor: vec![0.0; p],
        hinge: 0.0,
        gap: 0.0,
        products: 0.0,
        pairs: 0,
        margins: Vec::new(),
        factors: Vec::new(),
    };
    let d = p - 1;
    let visit = |block: &Block, rows: &mut [Row], sums: &mut Sums| {
        level.margins(block, &functional, &mut sums.margins);
        sums.factors.clear();
        for (k, row) in rows.iter_mut().enumerate() {
            let (y, cap, z) = (block.signs[k], block.caps[k], 1.0 - sums.margins[k]);
            sums.factors.push(y * row.a);
            if cap == 0.0 {
                continue;
            }
            row.d = weight(row);
            row.e = row.d * (row.xi - row.s);
            sums.gram.push(&block.x[k * d..(k + 1) * d], level.unit, row.d);
            sums.hinge += cap * z.max(0.0);
            // k [z]_+ - a z with a = k - u: no cancellation on either side
            sums.gap += if z > 0.0 { row.u * z } else { -row.a * z };
            sums.products += row.a * row.s + row.u * row.xi;
            sums.pairs += 2;
        }
        level.add_rows(block, &sums.factors, &mut sums.dual);
        sums.factors.iter_mut().zip(rows.iter()).zip(block.signs).for_each(|((f, row), y)| *f = y * row.e);
        level.add_rows(block, &sums.factors, &mut sums.predictor);
    };
    let mut sums = level.sweep_grams(1, rows, new, visit, |total, part| {
        total.gram.merge(part.gram);
        add(&mut total.dual, &part.dual);
        add(&mut total.predictor, &part.predictor);
        total.hinge += part.hinge;
        total.gap += part.gap;
        total.products += part.products;
        total.pairs += part.pairs;
    });
    sums.gram.flush();
    level.normalise(&mut sums.dual);
    level.normalise(&mut sums.predictor);
    let residual: Vec<f64> =
        (0..p).map(|j| level.linear[j] - sums.dual[j] + if j + 1 < p { level.ridge * theta[j] } else { 0.0 }).collect();
    let residual_w = &residual[..d];
    level.add_ridge(&mut sums.gram.matrix);
    let pairs = sums.pairs.max(1) as f64;
    Assessment {
        objective: level.affine_part(theta) + sums.hinge,
        gap: sums.gap + 0.5 * dot(residual_w, residual_w) / level.ridge + (residual[d] * theta[d]).abs(),
        mu: sums.products / pairs,
        pairs,
        factor: Factor::nearest(&sums.gram.matrix, level.stride(), p),
        residual,
        predictor: sums.predictor,
    }
}

/// D = a u / (u s + a xi)
fn weight(row: &Row) -> f64 {
    1.0 / (row.s / row.a + row.xi / row.u)
}

/// Longest step that keeps `value` positive.
fn room(value: f64, change: f64, longest: f64) -> f64 {
    if change < 0.0 { longest.min(-value / change) } else { longest }
}

struct StepSums {
    longest: f64,
    /// coefficients of the sum of products as a polynomial of the step length
    linear: f64,
    quadratic: f64,
    centring: Vec<f64>,
    second: Vec<f64>,
    margins: Vec<f64>,
    factors: Vec<f64>,
}

impl StepSums {
    fn new(p: usize) -> StepSums {
        let zeros = || vec![0.0; p];
        let (linear, quadratic) = (0.0, 0.0);
        StepSums {
            longest: 1.0 / FRACTION,
            linear,
            quadratic,
            centring: zeros(),
            second: zeros(),
            margins: vec![],
            factors: vec![],
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
fn advance(level: &Level, state: &Assessment, theta: &mut [f64], rows: &mut [Row]) -> Option<f64> {
    let factor = state.factor.as_ref()?;
    let right: Vec<f64> = state.predictor.iter().zip(&state.residual).map(|(e, r)| e - r).collect();
    let predictor = factor.solve(&right);
    let sums = affine_step(level, &predictor, rows);
    let products = state.mu * state.pairs;
    let reach = sums.longest.min(1.0);
    let after = ((products + reach * (sums.linear + reach * sums.quadratic)) / state.pairs).max(0.0);
    let ratio = (after / state.mu).min(1.0);
    let centre = ratio * ratio * ratio * state.mu;
    let combine = |centre: f64, second: f64| -> Vec<f64> {
        let terms = right.iter().zip(&sums.centring).zip(&sums.second);
        factor.solve(&terms.map(|((r, c), s)| r + centre * c + second * s).collect::<Vec<f64>>())
    };
    let mut direction = combine(centre, 1.0);
    let mut length = final_step(level, &direction, centre, 1.0, rows);
    if length < SHORT {
        let centre = centre.max(0.3 * state.mu);
        direction = combine(centre, 0.0);
        length = final_step(level, &direction, centre, 0.0, rows);
    }
    if !length.is_finite() || direction.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let length = (FRACTION * length).min(1.0);
    theta.iter_mut().zip(&direction).for_each(|(theta, step)| *theta += length * step);
    for row in rows.iter_mut() {
        row.a += length * row.da;
        row.u -= length * row.da;
        row.s += length * row.ds;
        row.xi += length * row.dxi;
    }
    Some(length)
}

/// A dtheta of every row, the predictor's changes of its four numbers, and the right-hand sides of the corrector.
fn affine_step(level: &Level, direction: &[f64], rows: &mut [Row]) -> StepSums {
    let functional = level.functional(direction);
    let visit = |block: &Block, rows: &mut [Row], sums: &mut StepSums| {
        level.margins(block, &functional, &mut sums.margins);
        sums.factors.clear();
        for (k, row) in rows.iter_mut().enumerate() {
            if block.caps[k] == 0.0 {
                sums.factors.push(0.0);
                continue;
            }
            let da = row.e - row.d * sums.margins[k];
            let ds = -row.s - row.s / row.a * da;
            let dxi = -row.xi + row.xi / row.u * da;
            sums.longest = room(row.a, da, room(row.u, -da, room(row.s, ds, room(row.xi, dxi, sums.longest))));
            sums.linear += row.a * ds + row.s * da + row.u * dxi - row.xi * da;
            sums.quadratic += da * (ds - dxi);
            (row.da, row.ds, row.dxi) = (da, ds, dxi);
            let q = row.u * row.s + row.a * row.xi;
            row.second = -da * (row.u * ds + row.a * dxi) / q;
            sums.factors.push(block.signs[k] * (row.u - row.a) / q);
        }
        level.add_rows(block, &sums.factors, &mut sums.centring);
        sums.factors.iter_mut().zip(rows.iter()).zip(block.signs).for_each(|((f, row), y)| *f = y * row.second);
        level.add_rows(block, &sums.factors, &mut sums.second);
    };
    let mut sums = level.sweep(rows, || StepSums::new(level.order()), visit, StepSums::merge);
    level.normalise(&mut sums.centring);
    level.normalise(&mut sums.second);
    sums
}

/// The final changes of every row; returns the longest step that keeps all positive.
fn final_step(level: &Level, direction: &[f64], centre: f64, second: f64, rows: &mut [Row]) -> f64 {
    let functional = level.functional(direction);
    let visit = |block: &Block, rows: &mut [Row], sums: &mut StepSums| {
        level.margins(block, &functional, &mut sums.margins);
        for (k, row) in rows.iter_mut().enumerate() {
            if block.caps[k] == 0.0 {
                continue;
            }
            let q = row.u * row.s + row.a * row.xi;
            let bend = second * row.second;
            let da = row.e + centre * (row.u - row.a) / q + bend - row.d * sums.margins[k];
            // the rows' own equations, with the corrector's products split between the two pairs as they arose
            let (r1, r2) = if second == 0.0 {
                (centre - row.a * row.s, centre - row.u * row.xi)
            } else {
                (centre - row.a * row.s - row.da * row.ds, centre - row.u * row.xi + row.da * row.dxi)
            };
            let ds = (r1 - row.s * da) / row.a;
            let dxi = (r2 + row.xi * da) / row.u;
            (row.da, row.ds, row.dxi) = (da, ds, dxi);
            sums.longest = room(row.a, da, room(row.u, -da, room(row.s, ds, room(row.xi, dxi, sums.longest))));
        }
    };
    let sums =
        level.sweep(rows, || StepSums::new(0), visit, |total, part| total.longest = total.longest.min(part.longest));
    sums.longest
}
