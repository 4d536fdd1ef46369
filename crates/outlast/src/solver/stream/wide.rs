//! Many columns: the Hessian is told by its products with vectors, O(d k) numbers a pass, and a step is found by conjugate gradients.
//!
//! ```text
//! (D + H_0 - share H_tau) s = -gradient,        D: second derivatives of the penalty, and the damping
//! ```
//!
//! Every product is a pass. What the sample tells of the Hessian preconditions them, half of it as it is and half spread over the
//! diagonal, by conjugate gradients of its own that ask nobody. The share is 1 until a direction bends down, and 0 from then on.

use super::apart::{Power, residuals, sign};
use super::sums::{Scored, State, Sums, sweep};
use super::term::Term;
use super::{Shape, Spec, Work};
use crate::data::ChunkView;
use crate::error::Result;
use crate::linalg::dot;

/// Most products for a step, and the error that is left, relative to that of no step at all.
const MOST_PRODUCTS: usize = 40;
const LEFT: f64 = 0.1;
/// The same for the preconditioner, whose products may read as many rows as a pass does.
const SAMPLE_PRODUCTS: (usize, usize) = (3, 40);
const SAMPLE_LEFT: f64 = 0.1;
/// Curvature along a direction, next to that of the rows at 0, that counts as none.
const FLAT: f64 = 1e-6;
/// The second derivative of what is fixed at 0.
const FIXED: f64 = 1e200;
/// A coefficient, next to the largest, below which |w|^q is taken to bend no more.
const SMALL: f64 = 1e-3;

/// H_0 v and then H_tau v of the rows of a chunk: what `sums` would tell by Gram matrices.
pub(super) fn partition_products(
    chunk: &ChunkView,
    spec: &Spec,
    state: &State,
    along: &[f64],
    parallel: bool,
) -> Vec<f64> {
    let (d, m) = (spec.cols, spec.functions);
    struct Piece {
        total: Vec<f64>,
        term: Term,
        residuals: Vec<f64>,
        /// Parts x functions x rows of a block.
        factors: Vec<f64>,
    }
    let new = || Piece {
        total: vec![0.0; 2 * spec.size()],
        term: Term::new(spec),
        residuals: vec![0.0; m],
        factors: Vec::new(),
    };
    let visit = |block: &Scored, piece: &mut Piece| {
        let rows = block.scores.len() / m;
        let Piece { total, term, residuals, factors } = piece;
        factors.clear();
        factors.resize(2 * m * rows, 0.0);
        for row in 0..rows {
            let at = block.first + row;
            let of = (chunk.codes[at], chunk.weight(at));
            let range = row * m..(row + 1) * m;
            let (scores, moved) = (&block.scores[range.clone()], &block.others[0][range]);
            let add = |part: usize, function: usize, value: f64| factors[(part * m + function) * rows + row] += value;
            match spec.shape {
                Shape::Margin => margin_row(spec, state.width, of, scores, moved, term, add),
                Shape::Apart => apart_row(spec, state.width, of, scores, moved, add),
                Shape::Capped { power, cap } => {
                    let h = Power { power, cap, floor: state.width };
                    capped_row(spec, &h, of, scores, moved, residuals, add);
                }
            }
        }
        for (factors, out) in factors.chunks_exact(rows.max(1)).zip(total.chunks_exact_mut(d + 1)) {
            if factors.iter().any(|factor| *factor != 0.0) {
                spec.isa.accumulate(block.x, factors, &mut out[..d]);
                out[d] += factors.iter().sum::<f64>();
            }
        }
    };
    let mut total = vec![0.0; 2 * spec.size()];
    for piece in sweep(chunk, spec, &[&state.theta, along], parallel, new, visit) {
        total.iter_mut().zip(&piece.total).for_each(|(total, part)| *total += part);
    }
    total
}

/// The terms of a row of class and weight `of`; `add` gets part, function and how far the derivative in the function's score moves.
fn margin_row(
    spec: &Spec,
    width: f64,
    of: (u32, f64),
    scores: &[f64],
    moved: &[f64],
    term: &mut Term,
    mut add: impl FnMut(usize, usize, f64),
) {
    for &(anchor, factor) in spec.terms(of.0) {
        let weight = factor * of.1 / width;
        let slack = term.slacks(scores, anchor);
        if slack - spec.ceiling >= 0.5 * width {
            continue;
        }
        for (part, lowered) in [0.0, spec.ceiling].into_iter().enumerate() {
            if weight == 0.0 || !(slack - lowered > -0.5 * width) {
                break;
            }
            term.smooth(lowered, width);
            term.edges(anchor, |a, b, share| match a == b {
                true => add(part, a, weight * share * moved[a]),
                false => {
                    let change = weight * share * (moved[a] - moved[b]);
                    add(part, a, change);
                    add(part, b, -change);
                }
            });
        }
    }
}

fn apart_row(
    spec: &Spec,
    width: f64,
    of: (u32, f64),
    scores: &[f64],
    moved: &[f64],
    mut add: impl FnMut(usize, usize, f64),
) {
    for &(function, factor) in spec.terms(of.0) {
        let function = function as usize;
        let t = 0.5 + (1.0 + scores[function]) / width;
        if t > 0.0 && t < 1.0 {
            add(0, function, factor * of.1 / width * moved[function]);
        }
    }
}

fn capped_row(
    spec: &Spec,
    h: &Power,
    of: (u32, f64),
    scores: &[f64],
    moved: &[f64],
    r: &mut [f64],
    mut add: impl FnMut(usize, usize, f64),
) {
    let cap: f64 = spec.terms(of.0).iter().map(|(_, factor)| factor * of.1).sum();
    let g = residuals(spec, of.0, scores, r);
    let (_, slope, curvature) = h.bound(g);
    if cap == 0.0 || slope == 0.0 || g == 0.0 {
        return;
    }
    let stacked = |function: usize| 2.0 * r[function] * sign(spec, of.0, function);
    let along: f64 = (0..r.len()).map(|function| stacked(function) * moved[function]).sum();
    for function in (0..r.len()).filter(|&function| r[function] > 0.0) {
        add(0, function, 2.0 * cap * slope * moved[function]);
        add(1, function, -curvature * cap * stacked(function) * along);
    }
}

/// Where products are asked for, and what is added to them.
struct Place {
    state: State,
    /// D
    diagonal: Vec<f64>,
    /// Whether functions sum up to 0 in every column.
    summed: bool,
    /// The diagonal that stands for a Hessian, and what the sample's is multiplied by.
    rough: Vec<f64>,
    growth: f64,
    /// Products of the sample's Hessian in a preconditioner.
    products: usize,
}

impl Work<'_> {
    /// As [`Work::step`], by products.
    pub(super) fn wide_step(
        &mut self,
        theta: &[f64],
        sums: &Sums,
        (width, damping): (f64, f64),
    ) -> Result<Option<(Vec<f64>, f64)>> {
        let p = self.given.spec.order();
        let mut gradient = sums.gradient.clone();
        let mut diagonal: Vec<f64> = (0..theta.len()).map(|at| damping * self.given.metric[at % p]).collect();
        self.bend(theta, &mut gradient, &mut diagonal);
        let place = self.place(theta, width, diagonal);
        place.project(&self.given.spec, &mut gradient);
        let direction = self.conjugate(&place, &gradient)?;
        let slope = dot(&gradient, &direction);
        Ok((slope.is_finite() && direction.iter().all(|step| step.is_finite())).then_some((direction, slope)))
    }

    /// Adds the penalty's derivatives.
    fn bend(&self, theta: &[f64], gradient: &mut [f64], diagonal: &mut [f64]) {
        let (d, p) = (self.given.spec.cols, self.given.spec.order());
        let weights = (0..theta.len()).filter(|at| at % p < d);
        let Some(penalty) = &self.given.separable else {
            for at in weights {
                gradient[at] += self.given.spec.ridge * theta[at];
                diagonal[at] += self.given.spec.ridge;
            }
            return;
        };
        let largest = weights.clone().map(|at| theta[at].abs()).fold(0.0, f64::max);
        // nothing is known of how large coefficients are: as if all were 1
        let least = if largest > 0.0 { SMALL * largest } else { 1.0 };
        for at in weights {
            let (w, rate) = (theta[at], penalty.rates[at / p * d + at % p]);
            if !rate.is_finite() {
                (gradient[at], diagonal[at]) = (0.0, FIXED);
                continue;
            }
            gradient[at] += rate * penalty.q * w.abs().powf(penalty.q - 1.0) * if w < 0.0 { -1.0 } else { 1.0 };
            diagonal[at] += rate * penalty.q * w.abs().max(least).powf(penalty.q - 2.0);
        }
    }

    fn place(&self, theta: &[f64], width: f64, diagonal: Vec<f64>) -> Place {
        let (spec, sample) = (&self.given.spec, self.given.survey.sample());
        let (m, p) = (spec.functions, spec.order());
        let growth = self.given.survey.total() as f64 / sample.rows().max(1) as f64;
        let state = State { theta: theta.to_vec(), width };
        // how many rows are in a window, by their weight: the product with an intercept
        let weight = |function: usize| {
            let at = function * p + p - 1;
            let mut unit = vec![0.0; m * p];
            unit[at] = 1.0;
            growth * partition_products(&sample.view(), spec, &state, &unit, true)[at]
        };
        let share = (0..m).map(weight).sum::<f64>() / (m as f64 * self.given.metric[p - 1]).max(f64::MIN_POSITIVE);
        let rough = diagonal.iter().enumerate();
        let rough = rough.map(|(at, d)| (d + 0.5 * share * self.given.metric[at % p]).max(f64::MIN_POSITIVE)).collect();
        let summed = m > 1 && self.given.separable.is_some();
        let products = (growth as usize).clamp(SAMPLE_PRODUCTS.0, SAMPLE_PRODUCTS.1);
        Place { state, diagonal, summed, rough, growth, products }
    }

    /// Conjugate gradients. Preconditioners that are not quite the same each time are allowed for.
    fn conjugate(&mut self, place: &Place, gradient: &[f64]) -> Result<Vec<f64>> {
        let size = gradient.len();
        let mut step = vec![0.0; size];
        let (mut near, mut share) = (vec![0.0; size], if self.convex { 0.0 } else { 1.0 });
        let mut rest: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut solved = self.precondition(place, &rest);
        let mut along = solved.clone();
        let mut energy = dot(&rest, &solved);
        let first = energy;
        self.rest = 0.0;
        for product in 0..MOST_PRODUCTS {
            if !(energy > 0.0) {
                break;
            }
            if self.control.out_of_time() {
                // what the sample says of it
                self.rest = energy;
                return Ok(if product == 0 { solved } else { step });
            }
            let mut told = self.asking.products(&self.given.spec, place.state.clone(), &along)?;
            self.given.spec.normalise(&mut told);
            let (mut bent, mut far) = (told[..size].to_vec(), told[size..].to_vec());
            bent.iter_mut().zip(&place.diagonal).zip(&along).for_each(|((bent, d), along)| *bent += d * along);
            place.project(&self.given.spec, &mut bent);
            place.project(&self.given.spec, &mut far);
            let (up, down) = (dot(&along, &bent), dot(&along, &far));
            if !(up > 0.0) {
                break;
            }
            let turned = share > 0.0 && !(up - down > FLAT * up);
            if turned {
                share = 0.0;
                rest = gradient.iter().zip(&near).map(|(g, near)| -g - near).collect();
            }
            let length = dot(&rest, &along) / (up - share * down);
            let before = rest.clone();
            for at in 0..size {
                step[at] += length * along[at];
                near[at] += length * bent[at];
                rest[at] -= length * (bent[at] - share * far[at]);
            }
            solved = self.precondition(place, &rest);
            let next = dot(&rest, &solved);
            if next <= LEFT * LEFT * first {
                break;
            }
            if product + 1 == MOST_PRODUCTS {
                self.rest = next;
            }
            let momentum = if turned { 0.0 } else { ((next - dot(&before, &solved)) / energy).max(0.0) };
            along.iter_mut().zip(&solved).for_each(|(along, solved)| *along = solved + momentum * *along);
            energy = next;
        }
        Ok(step)
    }

    /// What the sample makes of a right-hand side.
    fn precondition(&self, place: &Place, right: &[f64]) -> Vec<f64> {
        let (spec, sample) = (&self.given.spec, self.given.survey.sample().view());
        let mut step = vec![0.0; right.len()];
        let mut rest = right.to_vec();
        let divided = |rest: &[f64]| {
            let mut solved: Vec<f64> = rest.iter().zip(&place.rough).map(|(rest, rough)| rest / rough).collect();
            place.project(spec, &mut solved);
            solved
        };
        let mut along = divided(&rest);
        let mut energy = dot(&rest, &along);
        let first = energy;
        for _ in 0..place.products {
            if !(energy > SAMPLE_LEFT * SAMPLE_LEFT * first) {
                break;
            }
            let mut bent = partition_products(&sample, spec, &place.state, &along, true);
            bent.truncate(right.len());
            spec.normalise(&mut bent);
            for at in 0..bent.len() {
                bent[at] = 0.5 * place.growth * bent[at] + place.rough[at] * along[at];
            }
            place.project(spec, &mut bent);
            let curvature = dot(&along, &bent);
            if !(curvature > 0.0) {
                break;
            }
            let length = energy / curvature;
            step.iter_mut().zip(&along).for_each(|(step, along)| *step += length * along);
            rest.iter_mut().zip(&bent).for_each(|(rest, bent)| *rest -= length * bent);
            let solved = divided(&rest);
            let next = dot(&rest, &solved);
            along.iter_mut().zip(&solved).for_each(|(along, solved)| *along = solved + next / energy * *along);
            energy = next;
        }
        step
    }
}

impl Place {
    /// Leaves what a step may be: without intercept b = 0, and sums over functions 0 where they have to be.
    fn project(&self, spec: &Spec, values: &mut [f64]) {
        let (m, p) = (spec.functions, spec.order());
        if !spec.intercept {
            (0..m).for_each(|function| values[function * p + p - 1] = 0.0);
        }
        if self.summed {
            for place in 0..p {
                let mean = (0..m).map(|function| values[function * p + place]).sum::<f64>() / m as f64;
                (0..m).for_each(|function| values[function * p + place] -= mean);
            }
        }
    }
}
