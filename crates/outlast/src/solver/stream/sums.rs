//! Sums over the rows of a part: all that a step of the solver wants to know of the data.
//!
//! Rows come in blocks with the scores of every function (`sweep`). What each term of a row adds, see `term`: the smoothed loss, its gradient, and one
//! weighted Gram matrix sum v (x, 1)(x, 1)' for each pair of classes (one in all for two), which make up the Hessian.

use super::apart::{self, row_loss};
use super::term::{Term, pair};
use super::{Shape, Spec};
use crate::data::ChunkView;
use crate::linalg::padded;
use crate::solver::linear::GramSum;
use rayon::prelude::*;

/// Rows read at a time, in values: they stay in the cache while several products are formed.
const BLOCK_VALUES: usize = 8192;
/// Most pieces of a chunk, each with sums of its own; fixed, so that sums do not depend on the number of threads.
const PIECES: usize = 16;
/// Rows of a tile of weighted rows.
const TILE: usize = 32;
/// Steps of the counts of rows near a kink: within 1, 1/2, 1/4, ...
pub(super) const HALVINGS: usize = 24;

/// A point at which sums are wanted.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct State {
    /// (w_j, b_j) of every function.
    pub theta: Vec<f64>,
    /// delta
    pub width: f64,
}

/// Sums over rows; those of parts add up to those of the whole.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Sums {
    /// The smoothed loss.
    pub value: f64,
    /// The loss itself.
    pub loss: f64,
    /// The difference of the two on rows that smoothing touches: a capped loss rises by a constant where a row costs nothing, which moves no minimum.
    pub blurred: f64,
    /// By how much the multipliers of the smoothed loss fall short of the loss: sum c (h(z) - q'z). Only without truncation and caps.
    pub slackness: f64,
    /// Rows beyond a cap.
    pub beyond: u64,
    /// Gradient of the smoothed loss, functions x p.
    pub gradient: Vec<f64>,
    /// Gram matrices of the rows within the windows at 0 and at tau, one for each pair of classes.
    pub near: Vec<Gram>,
    pub far: Vec<Gram>,
    /// Terms whose distance from the nearest kink is at most 2^-k.
    pub within: [u64; HALVINGS],
}

impl Sums {
    /// Adds the sums of other rows.
    pub(super) fn add(&mut self, other: Sums) {
        self.value += other.value;
        self.loss += other.loss;
        self.blurred += other.blurred;
        self.slackness += other.slackness;
        self.beyond += other.beyond;
        add(&mut self.gradient, &other.gradient);
        let pairs = self.near.iter_mut().zip(other.near).chain(self.far.iter_mut().zip(other.far));
        pairs.for_each(|(sum, part)| sum.add(part));
        self.within.iter_mut().zip(other.within).for_each(|(sum, part)| *sum += part);
    }
}

fn add(total: &mut [f64], part: &[f64]) {
    total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
}

/// A symmetric matrix: its lower triangle by rows, or nothing where no row has entered.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Gram(Vec<f64>);

impl Gram {
    pub fn of(mut sum: GramSum, order: usize) -> Gram {
        if sum.count == 0 {
            return Gram::default();
        }
        sum.flush();
        let stride = padded(order);
        let mut lower = Vec::with_capacity(order * (order + 1) / 2);
        (0..order).for_each(|row| lower.extend_from_slice(&sum.matrix[row * stride..row * stride + row + 1]));
        Gram(lower)
    }

    fn add(&mut self, other: Gram) {
        match (self.0.is_empty(), other.0.is_empty()) {
            (true, _) => *self = other,
            (false, true) => {}
            (false, false) => add(&mut self.0, &other.0),
        }
    }

    /// Whether no row has entered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An entry.
    pub fn at(&self, a: usize, b: usize) -> f64 {
        let (low, high) = (a.max(b), a.min(b));
        self.0[low * (low + 1) / 2 + high]
    }
}

/// The sums of a piece while rows enter.
struct Growing {
    value: f64,
    loss: f64,
    slackness: f64,
    gradient: Vec<f64>,
    near: Vec<GramSum>,
    far: Vec<GramSum>,
    /// Terms by how many of the steps of [`Sums::within`] they belong to.
    by_steps: [u64; HALVINGS + 1],
}

impl Growing {
    fn new(spec: &Spec) -> Growing {
        let gram = || GramSum::with_tile(spec.isa, padded(spec.order()), TILE);
        let grams = |wanted: bool| (0..if wanted { spec.pairs() } else { 0 }).map(|_| gram()).collect();
        Growing {
            value: 0.0,
            loss: 0.0,
            slackness: 0.0,
            gradient: vec![0.0; spec.size()],
            near: grams(!spec.wide),
            far: grams(spec.ceiling.is_finite() && !spec.wide),
            by_steps: [0; HALVINGS + 1],
        }
    }

    /// Adds the terms of a row, and their derivatives to the factors of the rows of its block.
    #[inline]
    fn add_row(&mut self, spec: &Spec, width: f64, row: &Row, term: &mut Term, factors: &mut [f64]) {
        let m = spec.functions;
        for &(anchor, factor) in spec.terms(row.code) {
            let cap = row.weight * factor;
            if cap == 0.0 {
                continue;
            }
            let slack = term.slacks(row.scores, anchor);
            self.by_steps[steps_within(term.distance(spec.ceiling))] += 1;
            self.loss += cap * slack.clamp(0.0, spec.ceiling);
            if slack <= -0.5 * width {
                continue;
            }
            // beyond both kinks and their widths the parts cancel, which rounding would not see of slacks that are huge
            if slack - spec.ceiling >= 0.5 * width {
                self.value += cap * spec.ceiling;
                continue;
            }
            let weight = cap / width;
            let mut value = term.smooth(0.0, width);
            self.slackness += cap * (slack.max(0.0) - term.attained());
            if let near @ [_, ..] = &mut self.near[..] {
                term.edges(anchor, |a, b, share| near[pair(a, b, m)].push(row.x, spec.unit, share * weight));
            }
            term.slope(anchor, cap, row.place, factors);
            if slack - spec.ceiling > -0.5 * width {
                value -= term.smooth(spec.ceiling, width);
                if let far @ [_, ..] = &mut self.far[..] {
                    term.edges(anchor, |a, b, share| far[pair(a, b, m)].push(row.x, spec.unit, share * weight));
                }
                term.slope(anchor, -cap, row.place, factors);
            }
            self.value += cap * value;
        }
    }

    /// The gradient's share of the rows of a block.
    fn add_gradient(&mut self, spec: &Spec, x: &[f64], factors: &[f64]) {
        let (d, rows) = (spec.cols, factors.len() / spec.functions);
        for (factors, gradient) in factors.chunks_exact(rows.max(1)).zip(self.gradient.chunks_exact_mut(d + 1)) {
            spec.isa.accumulate(x, factors, &mut gradient[..d]);
            gradient[d] += factors.iter().sum::<f64>();
        }
    }

    fn grown(self, order: usize) -> Sums {
        let grams = |sums: Vec<GramSum>| sums.into_iter().map(|sum| Gram::of(sum, order)).collect();
        let (mut within, mut more) = ([0; HALVINGS], 0);
        for (count, of) in within.iter_mut().zip(&self.by_steps[1..]).rev() {
            more += of;
            *count = more;
        }
        Sums {
            value: self.value,
            loss: self.loss,
            blurred: self.value - self.loss,
            slackness: self.slackness,
            beyond: 0,
            gradient: self.gradient,
            near: grams(self.near),
            far: grams(self.far),
            within,
        }
    }
}

/// How many of 1, 1/2, 1/4, ... a distance is no larger than: its exponent tells.
#[inline]
fn steps_within(distance: f64) -> usize {
    const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;
    // -0 is 0
    let bits = distance.abs().to_bits();
    let exponent = (bits >> FRACTION) as i64 - i64::from(f64::MAX_EXP - 1);
    let is_above = bits & ((1 << FRACTION) - 1) != 0;
    (1 - exponent - i64::from(is_above)).clamp(0, HALVINGS as i64) as usize
}

/// A row of a block.
struct Row<'a> {
    weight: f64,
    code: u32,
    x: &'a [f64],
    scores: &'a [f64],
    /// Its place among how many rows.
    place: (usize, usize),
}

/// The rows of a part in blocks, with the scores of every function.
pub(super) struct Scored<'a> {
    /// Place of the first row in the chunk.
    pub first: usize,
    /// Features, in f64.
    pub x: &'a [f64],
    /// Rows x functions.
    pub scores: &'a [f64],
    /// The same for further thetas.
    pub others: &'a [Vec<f64>],
}

/// Visits the rows of a chunk, on all threads where `parallel`: `visit` gets blocks with the scores for `thetas`, and the sums of its piece, which are handed
/// back in order of rows.
pub(super) fn sweep<A: Send>(
    chunk: &ChunkView,
    spec: &Spec,
    thetas: &[&[f64]],
    parallel: bool,
    new: impl Fn() -> A + Sync,
    visit: impl Fn(&Scored, &mut A) + Sync,
) -> Vec<A> {
    let (rows, d, m) = (chunk.rows(), spec.cols, spec.functions);
    let sums = 8 * 2 * thetas.len() * if spec.wide { spec.size() } else { spec.pairs() * padded(spec.order()).pow(2) };
    let pieces = (spec.room / sums.max(1)).clamp(1, PIECES);
    let piece = rows.div_ceil(pieces).max(1);
    let step = (BLOCK_VALUES / d.max(1)).clamp(16, 512);
    let folded: Vec<Vec<f64>> = thetas.iter().map(|theta| spec.folded(theta)).collect();
    let work = |number: usize| {
        let end = ((number + 1) * piece).min(rows);
        let (mut x, mut column) = (Vec::new(), Vec::new());
        let mut scores = vec![Vec::new(); thetas.len()];
        let mut accumulator = new();
        let mut first = (number * piece).min(rows);
        while first < end {
            let count = step.min(end - first);
            x.clear();
            x.extend(chunk.x[first * d..(first + count) * d].iter().map(|x| f64::from(*x)));
            column.resize(count, 0.0);
            for ((scores, folded), theta) in scores.iter_mut().zip(&folded).zip(thetas) {
                scores.resize(count * m, 0.0);
                for function in 0..m {
                    spec.isa.dots(&x, &folded[function * d..(function + 1) * d], &mut column);
                    let b = theta[function * (d + 1) + d];
                    for (out, value) in scores[function..].iter_mut().step_by(m).zip(&column) {
                        *out = value + b;
                    }
                }
            }
            visit(&Scored { first, x: &x, scores: &scores[0], others: &scores[1..] }, &mut accumulator);
            first += count;
        }
        accumulator
    };
    let pieces = 0..rows.div_ceil(piece).max(1);
    if parallel { pieces.into_par_iter().map(work).collect() } else { pieces.map(work).collect() }
}

/// The sums over the rows of a chunk at some points: the function that a worker with a part of the data runs.
pub(super) fn partition_statistics(chunk: &ChunkView, spec: &Spec, states: &[State], parallel: bool) -> Vec<Sums> {
    if spec.shape != Shape::Margin {
        return states.iter().map(|state| apart::partition_statistics(chunk, spec, state, parallel)).collect();
    }
    let m = spec.functions;
    struct Work {
        sums: Vec<Growing>,
        term: Term,
        /// Functions x rows of a block.
        factors: Vec<f64>,
    }
    let new = || Work {
        sums: states.iter().map(|_| Growing::new(spec)).collect(),
        term: Term::new(spec),
        factors: Vec::new(),
    };
    let visit = |block: &Scored, work: &mut Work| {
        let scores = std::iter::once(block.scores).chain(block.others.iter().map(Vec::as_slice));
        for ((sums, state), scores) in work.sums.iter_mut().zip(states).zip(scores) {
            work.factors.clear();
            work.factors.resize(scores.len(), 0.0);
            let rows = scores.len() / m;
            for row in 0..rows {
                let at = block.first + row;
                let own = Row {
                    weight: chunk.weight(at),
                    code: chunk.codes[at],
                    x: &block.x[row * spec.cols..(row + 1) * spec.cols],
                    scores: &scores[row * m..(row + 1) * m],
                    place: (row, rows),
                };
                sums.add_row(spec, state.width, &own, &mut work.term, &mut work.factors);
            }
            sums.add_gradient(spec, block.x, &work.factors);
        }
    };
    let thetas: Vec<&[f64]> = states.iter().map(|state| &state.theta[..]).collect();
    let mut totals: Vec<Sums> = states.iter().map(|_| Growing::new(spec).grown(spec.order())).collect();
    for part in sweep(chunk, spec, &thetas, parallel, new, visit) {
        totals.iter_mut().zip(part.sums).for_each(|(total, part)| total.add(part.grown(spec.order())));
    }
    totals
}

/// The smoothed loss at several points of a ray.
pub(super) fn partition_ray(
    chunk: &ChunkView,
    spec: &Spec,
    ends: [&[f64]; 2],
    steps: &[f64],
    width: f64,
    parallel: bool,
) -> Vec<f64> {
    let m = spec.functions;
    let new = || (vec![0.0; steps.len()], Term::new(spec), vec![0.0; m], Vec::new());
    let visit = |block: &Scored, (values, term, scores, scratch): &mut (Vec<f64>, Term, Vec<f64>, Vec<f64>)| {
        for row in 0..block.scores.len() / m {
            let at = block.first + row;
            for (value, step) in values.iter_mut().zip(steps) {
                for function in 0..m {
                    let (from, to) = (block.scores[row * m + function], block.others[0][row * m + function]);
                    scores[function] = from + step * (to - from);
                }
                if spec.shape != Shape::Margin {
                    *value += chunk.weight(at) * row_loss(spec, chunk.codes[at], scores, width, scratch);
                    continue;
                }
                for &(anchor, factor) in spec.terms(chunk.codes[at]) {
                    let slack = term.slacks(scores, anchor);
                    let loss = match slack {
                        _ if slack <= -0.5 * width => 0.0,
                        _ if slack - spec.ceiling >= 0.5 * width => spec.ceiling,
                        _ if slack - spec.ceiling > -0.5 * width => {
                            term.smooth(0.0, width) - term.smooth(spec.ceiling, width)
                        }
                        _ => term.smooth(0.0, width),
                    };
                    *value += chunk.weight(at) * factor * loss;
                }
            }
        }
    };
    let mut values = vec![0.0; steps.len()];
    sweep(chunk, spec, &ends, parallel, new, visit).iter().for_each(|part| add(&mut values, &part.0));
    values
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::data::Chunk;
    use crate::linalg::Isa;

    /// Relative error of a central difference.
    const DIFFERENCE: f64 = 1e-6;

    pub fn spec(classes: usize, ceiling: f64) -> Spec {
        let all =
            |class: u32| (0..classes as u32).map(|other| (other, if other == class { 1.0 } else { 0.3 })).collect();
        Spec {
            cols: 3,
            classes,
            functions: if classes == 2 { 1 } else { classes },
            terms: (0..classes as u32).map(all).collect(),
            ceiling,
            ridge: 0.1,
            unit: 0.5,
            intercept: true,
            shape: Shape::Margin,
            wide: false,
            room: 1 << 26,
            isa: Isa::detect(),
        }
    }

    pub fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed | 1 << 63;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            4.0 * (state >> 11) as f64 / (1u64 << 53) as f64 - 2.0
        }
    }

    pub fn chunk(rows: usize, classes: usize) -> Chunk {
        let mut noise = noise(7);
        Chunk {
            first: 0,
            x: (0..3 * rows).map(|_| noise() as f32).collect(),
            codes: (0..rows).map(|row| (row % classes) as u32).collect(),
            weights: (0..rows).map(|_| noise() + 2.0).collect(),
        }
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_value() {
        for (classes, ceiling) in [(2, f64::INFINITY), (2, 1.5), (3, f64::INFINITY), (4, 1.3)] {
            let (spec, chunk) = (spec(classes, ceiling), chunk(50, classes));
            let mut noise = noise(classes as u64);
            let theta: Vec<f64> = (0..spec.size()).map(|_| noise()).collect();
            let at = |theta: &[f64]| {
                let state = State { theta: theta.to_vec(), width: 0.7 };
                partition_statistics(&chunk.view(), &spec, &[state], true).remove(0)
            };
            let mut gradient = at(&theta).gradient;
            spec.normalise(&mut gradient);
            for place in 0..theta.len() {
                let moved = |by: f64| {
                    let mut theta = theta.clone();
                    theta[place] += by;
                    at(&theta).value
                };
                let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                let error = (slope - gradient[place]).abs();
                assert!(
                    error <= DIFFERENCE * (1.0 + slope.abs()),
                    "{classes}, {place}: {slope} and {}",
                    gradient[place]
                );
            }
        }
    }

    #[test]
    fn terms_far_beyond_the_ceiling_cost_just_that() {
        for classes in [2, 4] {
            let (spec, chunk) = (spec(classes, 1.3), chunk(100, classes));
            let mut noise = noise(5);
            let mut theta: Vec<f64> = (0..spec.size()).map(|_| noise()).collect();
            // one class is given up
            theta[spec.order() - 1] = -1e11;
            let state = State { theta: theta.clone(), width: 1e-6 };
            let sums = partition_statistics(&chunk.view(), &spec, &[state], false).remove(0);
            let ray = partition_ray(&chunk.view(), &spec, [&theta, &theta], &[0.5], 1e-12, false);
            for value in [sums.value, ray[0]] {
                assert!((value - sums.loss).abs() <= 1e-6 * sums.loss, "{value} and {}", sums.loss);
            }
        }
    }

    #[test]
    fn smoothing_leaves_the_loss_alone_away_from_kinks() {
        for classes in [2, 5] {
            let (spec, chunk) = (spec(classes, 1.5), chunk(200, classes));
            let mut noise = noise(3);
            let theta: Vec<f64> = (0..spec.size()).map(|_| noise()).collect();
            let sums = partition_statistics(&chunk.view(), &spec, &[State { theta, width: 1e-9 }], false).remove(0);
            assert!((sums.value - sums.loss).abs() <= 1e-9 * sums.loss, "{} and {}", sums.value, sums.loss);
        }
    }

    #[test]
    fn sums_of_parts_are_sums_of_the_whole() {
        let (spec, whole) = (spec(3, 1.5), chunk(90, 3));
        let mut noise = noise(5);
        let state = State { theta: (0..spec.size()).map(|_| noise()).collect(), width: 0.4 };
        let state = &[state];
        let mut total = partition_statistics(&ChunkView::default(), &spec, state, false).remove(0);
        for rows in [0..0, 0..31, 31..32, 32..90] {
            let part = Chunk {
                first: rows.start as u64,
                x: whole.x[3 * rows.start..3 * rows.end].to_vec(),
                codes: whole.codes[rows.clone()].to_vec(),
                weights: whole.weights[rows].to_vec(),
            };
            total.add(partition_statistics(&part.view(), &spec, state, false).remove(0));
        }
        let wanted = partition_statistics(&whole.view(), &spec, state, true).remove(0);
        assert!((total.value - wanted.value).abs() <= 1e-12 * wanted.value);
        assert_eq!(total.within, wanted.within);
        let pairs = total.gradient.iter().zip(&wanted.gradient);
        pairs.for_each(|(found, wanted)| assert!((found - wanted).abs() <= 1e-12 * (1.0 + wanted.abs())));
    }
    #[test]
    fn distances_are_counted_as_they_are_compared() {
        let powers =
            (0..40).map(|k| 0.5f64.powi(k)).chain([0.0, -0.0, f64::MIN_POSITIVE, 1e-320, 3.0, 1e300, f64::INFINITY]);
        for distance in powers.flat_map(|power| [power, power.next_up(), power * 0.75]) {
            let wanted = (0..HALVINGS as i32).filter(|&k| distance <= 0.5f64.powi(k)).count();
            assert_eq!(steps_within(distance), wanted, "{distance:e}");
        }
    }

    #[test]
    fn sums_at_several_points_are_those_at_each() {
        for classes in [2, 3] {
            let (spec, chunk) = (spec(classes, 1.5), chunk(700, classes));
            let mut noise = noise(11);
            let mut state = |width: f64| State { theta: (0..spec.size()).map(|_| noise()).collect(), width };
            let states = [state(0.4), state(0.1), state(0.02)];
            let together = partition_statistics(&chunk.view(), &spec, &states, true);
            for (found, state) in together.iter().zip(states) {
                let alone = &partition_statistics(&chunk.view(), &spec, &[state], false)[0];
                assert!(alone.value > 0.0 && alone.near.iter().any(|gram| !gram.is_empty()));
                assert_eq!((found.value, &found.gradient, found.within), (alone.value, &alone.gradient, alone.within));
                for (found, alone) in found.near.iter().chain(&found.far).zip(alone.near.iter().chain(&alone.far)) {
                    assert_eq!(found.0, alone.0);
                }
            }
        }
    }
}
