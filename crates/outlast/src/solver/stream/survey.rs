//! The first pass: counts, scales, and a sample of the rows drawn evenly.
//!
//! Every row has a key, a pseudorandom function of its number; the sample are the rows of the smallest keys. So it does not depend on how the rows
//! are cut into parts, and samples of parts add up.
//!
//! A class of which the sample has too few rows is asked for once more, in a second pass: its rows of the smallest keys, up to `ENOUGH`. They take the
//! place of those in the sample ([`Survey::part`]), and weigh as many rows as they stand for, so that sums over them are unbiased: N_j / n_j of the class where
//! the others have N / n.

use super::Task;
use super::columns::some_columns;
use super::passes::{Asking, Passes};
use crate::control::Control;
use crate::data::{Chunk, ChunkView};
use crate::error::{Error, Result};
use crate::memory::give_back;
use std::borrow::Cow;
use std::ops::Range;

/// Rows of positive weight that are enough of a class; fewer where there are so many classes that these would be more than this part of the sample.
const ENOUGH: usize = 100;
const PART: usize = 4;

/// What a survey asks for.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct SurveyAsk {
    pub classes: usize,
    pub cols: usize,
    /// Rows of the sample.
    pub most: usize,
    /// For each class, keys from which on a row can't be among those wanted.
    pub below: Vec<u64>,
    /// Whether rows without weight may be in the sample.
    pub weightless: bool,
    pub seed: u64,
}

/// What the first pass finds.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
pub struct Survey {
    /// Rows of each class.
    pub rows: Vec<u64>,
    /// Those of positive weight.
    weighted: Vec<u64>,
    /// Their weights' sum.
    pub weights: Vec<f64>,
    /// The largest weight of each class.
    pub largest_weights: Vec<f64>,
    /// sum weight x^2, classes x columns.
    squares: Vec<f64>,
    /// The largest |x|.
    largest: f32,
    most: usize,
    seed: u64,
    /// Keys from which on a row can't be in the sample.
    pub(super) limit: u64,
    /// The numbers of the sample's rows.
    numbers: Vec<u64>,
    sample: Chunk,
    /// Rows of the classes that the sample has too few of, each standing for `stands_for` of its class.
    rare: Chunk,
    stands_for: Vec<f64>,
    /// How many passes it took.
    pub passes: usize,
}

/// Rows that stand for all of them alike, once weights are multiplied by all rows over those of the range that was asked for.
pub struct Part<'a> {
    even: ChunkView<'a>,
    /// Of the rows of `even`: 0 for those of a rare class. Empty where there is none.
    weights: Vec<f64>,
    rare: Cow<'a, Chunk>,
}

impl Part<'_> {
    /// The rows, in two pieces.
    pub fn views(&self) -> [ChunkView<'_>; 2] {
        let weights = if self.weights.is_empty() { self.even.weights } else { &self.weights };
        [ChunkView { weights, ..self.even }, self.rare.view()]
    }
}

impl Survey {
    /// Number of rows.
    pub fn total(&self) -> u64 {
        self.rows.iter().sum()
    }

    /// The largest |x|.
    pub(super) fn largest(&self) -> f64 {
        f64::from(self.largest)
    }

    /// Rows, every one with the same chance.
    pub fn sample(&self) -> &Chunk {
        &self.sample
    }

    /// Some rows of the sample, and all of those that stand for rare classes in place of its own.
    pub fn part(&self, rows: Range<usize>) -> Part<'_> {
        let (sample, d) = (self.sample.view(), self.sample.x.len() / self.sample.rows().max(1));
        let even = ChunkView {
            first: 0,
            x: &sample.x[rows.start * d..rows.end * d],
            codes: &sample.codes[rows.clone()],
            weights: if sample.weights.is_empty() { &[] } else { &sample.weights[rows.clone()] },
        };
        if self.rare.codes.is_empty() {
            return Part { even, weights: Vec::new(), rare: Cow::Borrowed(&self.rare) };
        }
        let is_rare = |row: usize| self.stands_for[even.codes[row] as usize] > 0.0;
        let weights = (0..even.rows()).map(|row| if is_rare(row) { 0.0 } else { even.weight(row) }).collect();
        let each = rows.len() as f64 / self.total().max(1) as f64;
        let mut rare = self.rare.clone();
        let codes = rare.codes.iter();
        rare.weights.iter_mut().zip(codes).for_each(|(weight, code)| *weight *= self.stands_for[*code as usize] * each);
        Part { even, weights, rare: Cow::Owned(rare) }
    }

    /// Asks for rows of the classes that the sample has too few of.
    fn ask_for_rare(&mut self, passes: &mut dyn Passes, control: &Control) -> Result<()> {
        let (k, cols) = (self.rows.len(), passes.cols());
        let enough = (self.most / PART / k.max(1)).clamp(1, ENOUGH);
        let mut found = vec![0u64; k];
        let here = (0..self.sample.rows()).filter(|row| self.sample.weight(*row) > 0.0);
        here.for_each(|row| found[self.sample.codes[row] as usize] += 1);
        let is_rare = |class: usize| found[class] < self.weighted[class].min(enough as u64);
        if self.is_whole() || !(0..k).any(is_rare) {
            return Ok(());
        }
        let below = |class: usize| if is_rare(class) { key_below(enough, self.weighted[class]) } else { 0 };
        let below = (0..k).map(below).collect();
        let ask = SurveyAsk { classes: k, cols, most: usize::MAX / 2, below, weightless: false, seed: self.seed };
        let told = Asking { passes, control, count: 0 }.survey(ask)?;
        let mut order: Vec<usize> = (0..told.numbers.len()).collect();
        order.sort_unstable_by_key(|&at| key(told.numbers[at], self.seed));
        let mut taken = vec![0usize; k];
        for at in order {
            let class = told.sample.codes[at] as usize;
            if taken[class] < enough {
                taken[class] += 1;
                push(&mut self.rare, &told.sample.view(), at);
            }
        }
        let each =
            |class: usize| if taken[class] > 0 { self.weighted[class] as f64 / taken[class] as f64 } else { 0.0 };
        self.stands_for = (0..k).map(each).collect();
        self.passes += 1;
        Ok(())
    }

    pub(super) fn add(&mut self, other: Survey) {
        let pairs = [(&mut self.weights, &other.weights), (&mut self.squares, &other.squares)];
        pairs.into_iter().for_each(|(sum, part)| sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part));
        let pairs = [(&mut self.rows, &other.rows), (&mut self.weighted, &other.weighted)];
        pairs.into_iter().for_each(|(sum, part)| sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part));
        let largest = self.largest_weights.iter_mut().zip(&other.largest_weights);
        largest.for_each(|(most, part)| *most = most.max(*part));
        self.largest = self.largest.max(other.largest);
        self.limit = self.limit.min(other.limit);
        self.numbers.extend_from_slice(&other.numbers);
        self.sample.x.extend_from_slice(&other.sample.x);
        self.sample.codes.extend_from_slice(&other.sample.codes);
        self.sample.weights.extend_from_slice(&other.sample.weights);
        if self.numbers.len() > self.most.saturating_add(self.most / 2) {
            self.shrink();
        }
    }

    /// Keeps the rows of the smallest keys, in their order.
    fn shrink(&mut self) {
        let seed = self.seed;
        let mut order: Vec<usize> = (0..self.numbers.len()).collect();
        order.sort_unstable_by_key(|&at| key(self.numbers[at], seed));
        order.truncate(self.most);
        self.arrange(&order);
        if self.numbers.len() == self.most {
            self.limit = self.numbers.last().map_or(0, |&number| key(number, seed).saturating_add(1));
        }
    }

    fn arrange(&mut self, order: &[usize]) {
        let mut sample = Chunk::default();
        let cols = self.sample.x.len() / self.sample.rows().max(1);
        sample.x.reserve_exact(order.len() * cols);
        order.iter().for_each(|&at| push(&mut sample, &self.sample.view(), at));
        self.numbers = order.iter().map(|&at| self.numbers[at]).collect();
        self.sample = sample;
    }

    /// The same of some columns, in the same units.
    pub(super) fn with_columns(&self, columns: &[u32]) -> Result<Survey> {
        let d = self.squares.len() / self.rows.len().max(1);
        let pick = |squares: &[f64]| columns.iter().map(|column| squares[*column as usize]).collect::<Vec<_>>();
        Ok(Survey {
            rows: self.rows.clone(),
            weighted: self.weighted.clone(),
            weights: self.weights.clone(),
            largest_weights: self.largest_weights.clone(),
            squares: self.squares.chunks_exact(d.max(1)).flat_map(pick).collect(),
            largest: self.largest,
            most: self.most,
            seed: self.seed,
            limit: self.limit,
            numbers: self.numbers.clone(),
            sample: some_columns(&self.sample.view(), columns)?,
            rare: some_columns(&self.rare.view(), columns)?,
            stands_for: self.stands_for.clone(),
            passes: self.passes,
        })
    }

    /// Whether the sample has all rows.
    pub fn is_whole(&self) -> bool {
        self.numbers.len() as u64 == self.total()
    }

    /// The rows of the sample in the order in which they were numbered.
    pub fn into_rows(mut self) -> Chunk {
        let mut order: Vec<usize> = (0..self.numbers.len()).collect();
        order.sort_unstable_by_key(|&at| self.numbers[at]);
        self.arrange(&order);
        self.sample
    }

    /// The power of two that brings the largest feature to between 1/2 and 1.
    pub(super) fn unit(&self) -> f64 {
        if self.largest > 0.0 { (-f64::from(self.largest).log2().floor()).exp2() } else { 1.0 }
    }

    pub(super) fn largest_cap(&self, task: &Task) -> f64 {
        let most = |terms: &Vec<(u32, f64)>| terms.iter().fold(0.0, |most: f64, (_, cap)| cap.max(most));
        task.terms.iter().zip(&self.largest_weights).map(|(terms, weight)| most(terms) * weight).fold(0.0, f64::max)
    }

    /// sum c x^2 of each column, and sum c, in normalised units.
    pub(super) fn metric(&self, task: &Task) -> Vec<f64> {
        let d = self.squares.len() / self.rows.len().max(1);
        let (unit, largest) = (self.unit(), self.largest_cap(task));
        let mut metric = vec![0.0; d + 1];
        for (class, terms) in task.terms.iter().enumerate() {
            let cap = terms.iter().map(|(_, cap)| *cap).sum::<f64>() / largest;
            let squares = &self.squares[class * d..(class + 1) * d];
            metric.iter_mut().zip(squares).for_each(|(sum, square)| *sum += cap * square * unit * unit);
            metric[d] += cap * self.weights[class];
        }
        metric
    }
}

fn push(to: &mut Chunk, from: &ChunkView, row: usize) {
    let cols = from.x.len() / from.rows().max(1);
    to.x.extend_from_slice(&from.x[row * cols..(row + 1) * cols]);
    to.codes.push(from.codes[row]);
    to.weights.push(from.weight(row));
}

/// Below which key there are so many of that many rows, or some more: five standard deviations are room enough.
fn key_below(wanted: usize, rows: u64) -> u64 {
    let wanted = wanted as f64 + 5.0 * (wanted as f64).sqrt() + 10.0;
    let share = wanted / rows.max(1) as f64;
    if share < 1.0 { (share * u64::MAX as f64) as u64 } else { u64::MAX }
}

/// Looks at all rows once; a second time for classes that are rare.
pub fn survey(passes: &mut dyn Passes, classes: usize, sampled: usize, seed: u64, control: &Control) -> Result<Survey> {
    let cols = passes.cols();
    // where the number of rows is known, parts need not send what will not be in the sample
    let below = passes.rows().map_or(u64::MAX, |rows| key_below(sampled, rows));
    let ask = SurveyAsk { classes, cols, most: sampled, below: vec![below; classes], weightless: true, seed };
    let mut survey = Asking { passes: &mut *passes, control, count: 0 }.survey(ask)?;
    survey.shrink();
    survey.ask_for_rare(passes, control)?;
    give_back();
    Ok(survey)
}

/// The survey of some rows; those that can't be used are refused.
pub(super) fn partition_survey(rows: &ChunkView, ask: &SurveyAsk) -> Result<Survey> {
    let (d, k) = (ask.cols, ask.classes);
    check(rows, d, k)?;
    if ask.below.len() != k {
        return Err(Error::shape("a survey", format!("{} bounds", ask.below.len()), format!("{k}, one per class")));
    }
    let mut survey = Survey {
        rows: vec![0; k],
        weighted: vec![0; k],
        weights: vec![0.0; k],
        largest_weights: vec![0.0; k],
        squares: vec![0.0; k * d],
        largest: rows.x.iter().fold(0.0, |largest, x| largest.max(x.abs())),
        most: ask.most,
        seed: ask.seed,
        limit: u64::MAX,
        numbers: Vec::new(),
        sample: Chunk::default(),
        rare: Chunk::default(),
        stands_for: Vec::new(),
        passes: 1,
    };
    let mut chosen = Vec::new();
    for row in 0..rows.rows() {
        let (class, weight) = (rows.codes[row] as usize, rows.weight(row));
        survey.rows[class] += 1;
        survey.weighted[class] += u64::from(weight > 0.0);
        survey.weights[class] += weight;
        survey.largest_weights[class] = weight.max(survey.largest_weights[class]);
        let squares = &mut survey.squares[class * d..(class + 1) * d];
        for (sum, x) in squares.iter_mut().zip(&rows.x[row * d..(row + 1) * d]) {
            let x = f64::from(*x);
            *sum += weight * x * x;
        }
        let key = key(rows.first + row as u64, ask.seed);
        if key < ask.below[class] && (weight > 0.0 || ask.weightless) {
            chosen.push((key, row));
        }
    }
    chosen.sort_unstable();
    chosen.truncate(ask.most);
    chosen.iter().for_each(|&(_, row)| push(&mut survey.sample, rows, row));
    survey.numbers = chosen.into_iter().map(|(_, row)| rows.first + row as u64).collect();
    Ok(survey)
}

/// The key of a row: its number scattered over 64 bits (SplitMix64).
fn key(number: u64, seed: u64) -> u64 {
    let mut z = (number ^ seed.rotate_left(32)).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn check(chunk: &ChunkView, d: usize, classes: usize) -> Result<()> {
    let rows = chunk.rows();
    if chunk.x.len() != rows * d || !(chunk.weights.is_empty() || chunk.weights.len() == rows) {
        let found = format!("a chunk of {rows} labels, {} values and {} weights", chunk.x.len(), chunk.weights.len());
        return Err(Error::shape("X", found, format!("{d} values and a weight for each label")));
    }
    let at = |row: usize| (chunk.first + row as u64) as usize;
    if let Some(place) = chunk.x.iter().position(|x| !x.is_finite()) {
        let problem = "the value is not finite as a number of 32 bits".to_string();
        return Err(Error::Value { what: "X", row: at(place / d), column: Some(place % d), problem });
    }
    if let Some(row) = chunk.codes.iter().position(|code| *code as usize >= classes) {
        let problem = format!("code {} does not name one of {classes} classes", chunk.codes[row]);
        return Err(Error::Value { what: "y", row: at(row), column: None, problem });
    }
    if let Some(row) = chunk.weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
        let problem = format!("a weight of {} is not allowed: weights must be finite and >= 0", chunk.weights[row]);
        return Err(Error::Value { what: "sample_weight", row: at(row), column: None, problem });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Local;
    use super::*;
    use crate::data::Parts;

    const ROWS: usize = 40_000;

    /// One row in 400 is of class 1, 3 are of class 2, and half of the rows of each have no weight.
    fn surveyed(sizes: &[usize]) -> Survey {
        let code = |row: usize| if row % 15_000 == 7 { 2 } else { u32::from(row.is_multiple_of(400)) };
        let weight = |row: usize| if row / 400 % 2 == 1 && code(row) == 1 { 0.0 } else { 1.0 };
        let mut at = 0usize;
        let mut part = |size: usize| {
            let rows = at..ROWS.min(at.saturating_add(size));
            at = rows.end;
            let (x, codes) = (rows.clone().map(|row| row as f32).collect(), rows.clone().map(code).collect());
            Chunk { first: 0, x, codes, weights: rows.map(weight).collect() }
        };
        let parts: Vec<Chunk> = sizes.iter().chain([&usize::MAX]).map(|size| part(*size)).collect();
        survey(&mut Local::new(&mut Parts::new(1, parts)), 3, 2000, 0, &Control::default()).unwrap()
    }

    fn drawn(survey: &Survey, rows: Range<usize>) -> Vec<(f32, u32, f64)> {
        let part = survey.part(rows);
        let of = |view: ChunkView| (0..view.rows()).map(|at| (view.x[at], view.codes[at], view.weight(at))).collect();
        part.views().into_iter().flat_map(|view| -> Vec<(f32, u32, f64)> { of(view) }).collect()
    }

    #[test]
    fn rare_classes_stand_for_all_of_their_rows() {
        let survey = surveyed(&[]);
        assert_eq!(survey.passes, 2);
        for rows in [0..2000, 0..500, 700..800] {
            let growth = ROWS as f64 / rows.len() as f64;
            let rows = drawn(&survey, rows);
            let sum = |class: u32| rows.iter().filter(|row| row.1 == class).map(|row| row.2 * growth).sum::<f64>();
            assert!((sum(1) - 50.0).abs() < 1e-9 && (sum(2) - 3.0).abs() < 1e-9, "{} and {}", sum(1), sum(2));
            assert!((sum(0) / 39_897.0 - 1.0).abs() < 0.02, "{}", sum(0));
        }
    }

    #[test]
    fn how_rows_are_cut_does_not_matter() {
        let whole = drawn(&surveyed(&[]), 0..2000);
        for sizes in [&[1, 0, 17_000][..], &[3333; 9]] {
            assert_eq!(drawn(&surveyed(sizes), 0..2000), whole);
        }
    }

    #[test]
    fn where_no_class_is_rare_one_pass_is_enough() {
        let codes = (0..ROWS as u32).map(|row| row % 2).collect();
        let part = Chunk { x: vec![1.0; ROWS], codes, ..Chunk::default() };
        let found = survey(&mut Local::new(&mut Parts::new(1, vec![part])), 2, 2000, 0, &Control::default()).unwrap();
        assert_eq!((found.passes, found.rare.rows()), (1, 0));
    }
}
