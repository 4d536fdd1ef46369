//! The rows near a kink, gathered in a pass, and the check of what became of the others.
//!
//! At a theta whose scores are off by less than h, a term farther than h from every kink of its loss is affine: 0, or c (1 + f_l - f_j) for
//! the class l of its largest slack, or the constant c tau. All such terms together are one linear function of theta. The pass that gathers
//! the others at a new theta also checks the terms that were taken for affine at the theta before:
//!
//! ```text
//! wrong = sum c |affine function - loss|     at the new theta
//! ```
//!
//! is what the problem of the gathered rows and the problem of all rows differ by there.
//!
//! Equal rows are gathered once, with the sum of their caps: of columns that have few values more rows may lie at one kink than memory holds.

use super::Spec;
use super::sums::{Scored, sweep};
use super::term::Term;
use crate::data::{Chunk, ChunkView};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Where terms are affine.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Band {
    pub theta: Vec<f64>,
    /// h
    pub half_width: f64,
    /// Rows that are gathered wherever they lie, ascending.
    pub forced: Vec<u64>,
}

impl Band {
    fn gathers(&self, row: u64, distance: f64) -> bool {
        distance <= self.half_width || self.forced.binary_search(&row).is_ok()
    }
}

/// What a pass finds.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Found {
    /// The loss at theta.
    pub loss: f64,
    /// Its part from terms beyond the ceiling.
    pub beyond: f64,
    /// Rows whose own margin lies beyond the ceiling.
    pub outliers: u64,
    /// The linear part that stands for affine terms, functions x p, and its constant. What terms beyond the ceiling cost is not in it: most of
    /// the objective may be theirs, and gaps are relative to the rest.
    pub linear: Vec<f64>,
    pub constant: f64,
    /// Gathered terms: rows, the anchor instead of the class, the cap instead of the weight.
    pub rows: Chunk,
    /// Terms that are gathered or, where they are too many, would have been.
    pub count: usize,
    pub wrong: f64,
    /// Rows of terms that were not what they were taken for.
    pub violators: Vec<u64>,
    /// Most terms that are kept.
    most: usize,
    /// Where they are, by what they are made of.
    #[cfg_attr(feature = "wire", serde(skip))]
    places: HashMap<u64, u32>,
}

/// A number for what a term is made of. Different terms with the same one are kept beside each other.
fn hashed(x: &[f32], anchor: u32) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, bits: u32| (hash.rotate_left(23) ^ u64::from(bits)).wrapping_mul(FACTOR);
    // -0 is 0
    x.iter().fold(mix(0, anchor), |hash, x| mix(hash, (x + 0.0).to_bits()))
}

/// How often each row is there; nothing where all of them differ.
pub(super) fn how_often(rows: &Chunk, cols: usize) -> Vec<u32> {
    let mut found: HashMap<u64, u32> = HashMap::with_capacity(rows.rows());
    let hashes: Vec<u64> =
        rows.codes.iter().enumerate().map(|(row, code)| hashed(&rows.x[row * cols..(row + 1) * cols], *code)).collect();
    hashes.iter().for_each(|hash| *found.entry(*hash).or_default() += 1);
    if found.len() == hashes.len() { Vec::new() } else { hashes.iter().map(|hash| found[hash]).collect() }
}

impl Found {
    fn new(spec: &Spec, most: usize) -> Found {
        Found { linear: vec![0.0; spec.size()], most, ..Found::default() }
    }

    fn gather(&mut self, x: &[f32], anchor: u32, cap: f64) {
        let (here, d) = (self.rows.rows(), x.len());
        match self.places.entry(hashed(x, anchor)) {
            Entry::Occupied(place) => {
                let at = *place.get() as usize;
                if self.rows.codes[at] == anchor && self.rows.x[at * d..(at + 1) * d] == *x {
                    self.rows.weights[at] += cap;
                    return;
                }
            }
            Entry::Vacant(place) if here < self.most => {
                place.insert(here as u32);
            }
            Entry::Vacant(_) => {}
        }
        self.count += 1;
        if here < self.most {
            self.rows.x.extend_from_slice(x);
            self.rows.codes.push(anchor);
            self.rows.weights.push(cap);
        }
    }

    /// Adds what was found in the rows that follow.
    pub(super) fn add(&mut self, other: Found) {
        self.loss += other.loss;
        self.beyond += other.beyond;
        self.outliers += other.outliers;
        self.linear.iter_mut().zip(&other.linear).for_each(|(sum, part)| *sum += part);
        self.constant += other.constant;
        self.wrong += other.wrong;
        self.count += other.count - other.rows.rows();
        let rows = if other.rows.codes.is_empty() { &self.rows } else { &other.rows };
        let d = rows.x.len() / rows.rows().max(1);
        if self.places.is_empty() {
            // they came as bytes
            for row in 0..self.rows.rows() {
                self.places
                    .entry(hashed(&self.rows.x[row * d..(row + 1) * d], self.rows.codes[row]))
                    .or_insert(row as u32);
            }
        }
        for row in 0..other.rows.rows() {
            let (anchor, cap) = (other.rows.codes[row], other.rows.weights[row]);
            self.gather(&other.rows.x[row * d..(row + 1) * d], anchor, cap);
        }
        let room = self.most.saturating_sub(self.violators.len());
        self.violators.extend(other.violators.into_iter().take(room));
    }
}

/// Gathers the terms near a kink at `now`, and checks those taken for affine at `before`.
pub(super) fn partition_band(
    chunk: &ChunkView,
    spec: &Spec,
    now: &Band,
    before: Option<&Band>,
    most: usize,
    parallel: bool,
) -> Found {
    let (d, m) = (spec.cols, spec.functions);
    let new = || (Found::new(spec, most), Term::new(spec), Term::new(spec), Vec::<f64>::new());
    let visit = |block: &Scored, (found, term, old, factors): &mut (Found, Term, Term, Vec<f64>)| {
        let rows = block.scores.len() / m;
        factors.clear();
        factors.resize(m * rows, 0.0);
        for row in 0..rows {
            let at = block.first + row;
            let (number, code) = (chunk.first + at as u64, chunk.codes[at]);
            let scores = &block.scores[row * m..(row + 1) * m];
            let own = term.slacks(scores, code);
            found.outliers += u64::from(own > spec.ceiling);
            for &(anchor, factor) in spec.terms(code) {
                let cap = factor * chunk.weight(at);
                if cap == 0.0 {
                    continue;
                }
                let slack = term.slacks(scores, anchor);
                let loss = slack.clamp(0.0, spec.ceiling);
                found.loss += cap * loss;
                found.beyond += if slack > spec.ceiling { cap * spec.ceiling } else { 0.0 };
                if let Some(before) = before {
                    let slack = old.slacks(&block.others[0][row * m..(row + 1) * m], anchor);
                    if !before.gathers(number, old.distance(spec.ceiling)) {
                        let taken_for = match old.label() {
                            _ if slack > spec.ceiling => spec.ceiling,
                            None => 0.0,
                            Some(class) => term.slack(class),
                        };
                        let off = (taken_for - loss).abs();
                        if off > 0.0 {
                            found.wrong += cap * off;
                            found.violators.push(number);
                        }
                    }
                }
                if now.gathers(number, term.distance(spec.ceiling)) {
                    found.gather(&chunk.x[at * d..(at + 1) * d], anchor, cap);
                } else if let (Some(class), true) = (term.label(), slack <= spec.ceiling) {
                    found.constant += cap;
                    if m == 1 {
                        factors[row] += if anchor == 1 { -cap } else { cap };
                    } else {
                        factors[class * rows + row] += cap;
                        factors[anchor as usize * rows + row] -= cap;
                    }
                }
            }
        }
        for function in 0..m {
            let factors = &factors[function * rows..(function + 1) * rows];
            let linear = &mut found.linear[function * (d + 1)..(function + 1) * (d + 1)];
            spec.isa.accumulate(block.x, factors, &mut linear[..d]);
            linear[d] += factors.iter().sum::<f64>();
        }
    };
    let thetas: Vec<&[f64]> = [Some(now), before].into_iter().flatten().map(|band| &band.theta[..]).collect();
    let mut total = Found::new(spec, most);
    sweep(chunk, spec, &thetas, parallel, new, visit).into_iter().for_each(|part| total.add(part.0));
    total
}

#[cfg(test)]
mod tests {
    use super::super::sums::tests::{chunk, spec};
    use super::*;

    #[test]
    fn equal_rows_are_counted() {
        let rows =
            Chunk { x: vec![1.0, 0.0, 1.0, -0.0, 2.0, 0.0, 1.0, 0.0], codes: vec![0, 0, 0, 1], ..Chunk::default() };
        assert_eq!(how_often(&rows, 2), [2, 2, 1, 1]);
        let all_differ = Chunk { codes: vec![0, 1, 0, 1], x: vec![1.0, 1.0, 2.0, 2.0], ..Chunk::default() };
        assert!(how_often(&all_differ, 1).is_empty());
    }

    /// In whatever order parts come, some of them without rows near a kink: equal ones meet.
    #[test]
    fn equal_rows_of_parts_are_gathered_once() {
        let (spec, all) = (spec(2, f64::INFINITY), chunk(200, 2));
        let now = Band { theta: vec![0.1; spec.size()], half_width: f64::INFINITY, forced: Vec::new() };
        let nothing = Band { half_width: -1.0, ..now.clone() };
        let found = |band: &Band| partition_band(&all.view(), &spec, band, None, 1000, false);
        let once = found(&now);
        let mut sum = once.clone();
        sum.places.clear();
        sum.add(found(&nothing));
        sum.add(found(&now));
        assert!(once.count > 100 && sum.count == once.count, "{} and {}", once.count, sum.count);
        assert_eq!(sum.rows.weights.iter().sum::<f64>(), 2.0 * once.rows.weights.iter().sum::<f64>());
    }
}
