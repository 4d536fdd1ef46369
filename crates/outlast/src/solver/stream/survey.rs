//! The first pass: counts, scales, and a sample of the rows drawn evenly.
//!
//! Every row has a key, a pseudorandom function of its number; the sample are the rows of the smallest keys. So it does not depend on how the rows
//! are cut into parts, and samples of parts add up.

use super::Task;
use super::passes::{Asking, Passes};
use crate::control::Control;
use crate::data::{Chunk, ChunkView};
use crate::error::{Error, Result};
use crate::memory::give_back;

/// What a survey asks for.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct SurveyAsk {
    pub classes: usize,
    pub cols: usize,
    /// Rows of the sample.
    pub most: usize,
    /// Keys that can't be among the smallest.
    pub below: u64,
    pub seed: u64,
}

/// What the first pass finds.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
pub struct Survey {
    /// Rows of each class.
    pub rows: Vec<u64>,
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
}

impl Survey {
    /// Number of rows.
    pub fn total(&self) -> u64 {
        self.rows.iter().sum()
    }

    /// Rows, every one with the same chance.
    pub fn sample(&self) -> &Chunk {
        &self.sample
    }

    pub(super) fn add(&mut self, other: Survey) {
        let pairs = [(&mut self.weights, &other.weights), (&mut self.squares, &other.squares)];
        pairs.into_iter().for_each(|(sum, part)| sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part));
        self.rows.iter_mut().zip(&other.rows).for_each(|(sum, part)| *sum += part);
        let largest = self.largest_weights.iter_mut().zip(&other.largest_weights);
        largest.for_each(|(most, part)| *most = most.max(*part));
        self.largest = self.largest.max(other.largest);
        self.limit = self.limit.min(other.limit);
        self.numbers.extend_from_slice(&other.numbers);
        self.sample.x.extend_from_slice(&other.sample.x);
        self.sample.codes.extend_from_slice(&other.sample.codes);
        self.sample.weights.extend_from_slice(&other.sample.weights);
        if self.numbers.len() > self.most + self.most / 2 {
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
    pub(super) fn with_columns(&self, columns: &[u32]) -> Survey {
        let d = self.squares.len() / self.rows.len().max(1);
        let pick = |squares: &[f64]| columns.iter().map(|column| squares[*column as usize]).collect::<Vec<_>>();
        let x = self.sample.x.chunks_exact(d.max(1));
        let x = x.flat_map(|row| columns.iter().map(|column| row[*column as usize])).collect();
        let Chunk { first, codes, weights, .. } = &self.sample;
        Survey {
            rows: self.rows.clone(),
            weights: self.weights.clone(),
            largest_weights: self.largest_weights.clone(),
            squares: self.squares.chunks_exact(d.max(1)).flat_map(pick).collect(),
            largest: self.largest,
            most: self.most,
            seed: self.seed,
            limit: self.limit,
            numbers: self.numbers.clone(),
            sample: Chunk { first: *first, x, codes: codes.clone(), weights: weights.clone() },
        }
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

/// Looks at all rows once.
pub fn survey(passes: &mut dyn Passes, classes: usize, sampled: usize, seed: u64, control: &Control) -> Result<Survey> {
    let cols = passes.cols();
    // where the number of rows is known, parts need not send what will not be in the sample: five standard deviations are room enough
    let wanted = sampled as f64 + 5.0 * (sampled as f64).sqrt() + 10.0;
    let share = passes.rows().map_or(1.0, |rows| wanted / rows.max(1) as f64);
    let below = if share < 1.0 { (share * u64::MAX as f64) as u64 } else { u64::MAX };
    let ask = SurveyAsk { classes, cols, most: sampled, below, seed };
    let mut survey = Asking { passes, control, count: 0 }.survey(ask)?;
    survey.shrink();
    give_back();
    Ok(survey)
}

/// The survey of some rows; those that can't be used are refused.
pub(super) fn partition_survey(rows: &ChunkView, ask: &SurveyAsk) -> Result<Survey> {
    let (d, k) = (ask.cols, ask.classes);
    check(rows, d, k)?;
    let mut survey = Survey {
        rows: vec![0; k],
        weights: vec![0.0; k],
        largest_weights: vec![0.0; k],
        squares: vec![0.0; k * d],
        largest: rows.x.iter().fold(0.0, |largest, x| largest.max(x.abs())),
        most: ask.most,
        seed: ask.seed,
        limit: ask.below,
        numbers: Vec::new(),
        sample: Chunk::default(),
    };
    let mut chosen = Vec::new();
    for row in 0..rows.rows() {
        let (class, weight) = (rows.codes[row] as usize, rows.weight(row));
        survey.rows[class] += 1;
        survey.weights[class] += weight;
        survey.largest_weights[class] = weight.max(survey.largest_weights[class]);
        let squares = &mut survey.squares[class * d..(class + 1) * d];
        for (sum, x) in squares.iter_mut().zip(&rows.x[row * d..(row + 1) * d]) {
            let x = f64::from(*x);
            *sum += weight * x * x;
        }
        let key = key(rows.first + row as u64, ask.seed);
        if key < ask.below {
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
