//! The first pass: counts, scales, and a sample of the rows drawn evenly.

use super::Task;
use crate::control::Control;
use crate::data::{Chunk, Chunks};
use crate::error::{Error, Result};

/// What the first pass finds.
pub(super) struct Survey {
    pub rows: u64,
    /// The power of two that brings the largest feature to between 1/2 and 1.
    pub unit: f64,
    pub largest_cap: f64,
    /// sum c x^2 of each column, and sum c, in normalised units.
    pub metric: Vec<f64>,
    /// Rows, every one with the same chance.
    pub sample: Chunk,
}

/// Looks at all rows once.
pub(super) fn run(rows: &mut dyn Chunks, task: &Task, sampled: usize, seed: u64, control: &Control) -> Result<Survey> {
    let d = rows.cols();
    let mut chunk = Chunk::default();
    let mut metric = vec![0.0; d + 1];
    let (mut count, mut largest, mut largest_cap) = (0u64, 0.0f32, 0.0f64);
    let mut sample = Chunk::default();
    let mut random = (seed ^ 0x9E37_79B9_7F4A_7C15) | 1 << 63;
    let cap_of: Vec<f64> = task.terms.iter().map(|terms| terms.iter().map(|(_, cap)| *cap).sum()).collect();
    let most_of: Vec<f64> =
        task.terms.iter().map(|terms| terms.iter().fold(0.0, |most, (_, cap)| cap.max(most))).collect();
    rows.rewind()?;
    while rows.next(&mut chunk)? {
        control.check()?;
        check(&chunk, d, task)?;
        largest = chunk.x.iter().fold(largest, |largest, x| largest.max(x.abs()));
        for row in 0..chunk.rows() {
            let (code, weight) = (chunk.codes[row] as usize, chunk.weight(row));
            largest_cap = largest_cap.max(most_of[code] * weight);
            let cap = cap_of[code] * weight;
            for (sum, x) in metric.iter_mut().zip(&chunk.x[row * d..(row + 1) * d]) {
                let x = f64::from(*x);
                *sum += cap * x * x;
            }
            metric[d] += cap;
            count += 1;
            if sample.rows() < sampled {
                sample.push(&chunk, row);
                continue;
            }
            // each row so far has the same chance to be in the sample (Vitter's algorithm R)
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let place = (u128::from(random) * u128::from(count)) >> 64;
            if let Some(place) = usize::try_from(place).ok().filter(|place| *place < sampled) {
                sample.x[place * d..(place + 1) * d].copy_from_slice(&chunk.x[row * d..(row + 1) * d]);
                (sample.codes[place], sample.weights[place]) = (chunk.codes[row], weight);
            }
        }
    }
    if count == 0 || !(largest_cap > 0.0) {
        return Err(Error::shape("X", "no row of positive weight", "at least one of every class"));
    }
    let unit = if largest > 0.0 { (-f64::from(largest).log2().floor()).exp2() } else { 1.0 };
    let (b, w) = metric.split_last_mut().expect("one for the intercept");
    w.iter_mut().for_each(|sum| *sum *= unit * unit / largest_cap);
    *b /= largest_cap;
    Ok(Survey { rows: count, unit, largest_cap, metric, sample })
}

fn check(chunk: &Chunk, d: usize, task: &Task) -> Result<()> {
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
    if let Some(row) = chunk.codes.iter().position(|code| *code as usize >= task.classes) {
        let problem = format!("code {} does not name one of {} classes", chunk.codes[row], task.classes);
        return Err(Error::Value { what: "y", row: at(row), column: None, problem });
    }
    if let Some(row) = chunk.weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
        let problem = format!("a weight of {} is not allowed: weights must be finite and >= 0", chunk.weights[row]);
        return Err(Error::Value { what: "sample_weight", row: at(row), column: None, problem });
    }
    Ok(())
}
