//! Time of a fit in chunks as rows grow: `cargo run --release --example stream_growth -- 500000 2000000`.
//!
//! Rows are made on the fly, in every pass the same: 20 columns, two classes, one label in twenty wrong. Prints one JSON object a line.

use outlast::data::{Chunk, Chunks};
use outlast::model::StreamRequest;
use outlast::solver::stream::MOST_SENT;
use outlast::{Class, Control, Estimator, Kernel, Result, Truncated};
use rayon::prelude::*;
use std::time::Instant;

const COLUMNS: usize = 20;
const ROWS: usize = 1 << 15;

/// Rows by a counter: row i is a function of i.
struct Made {
    rows: u64,
    at: u64,
}

/// Scatters a number over 64 bits (SplitMix64).
fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Chunks for Made {
    fn cols(&self) -> usize {
        COLUMNS
    }

    fn rewind(&mut self) -> Result<()> {
        self.at = 0;
        Ok(())
    }

    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let count = (self.rows - self.at).min(ROWS as u64) as usize;
        chunk.first = self.at;
        chunk.x.resize(count * COLUMNS, 0.0);
        chunk.codes.resize(count, 0);
        let first = self.at;
        let rows = chunk.x.par_chunks_exact_mut(COLUMNS).zip(chunk.codes.par_iter_mut()).enumerate();
        rows.for_each(|(k, (x, code))| {
            let row = scatter(first + k as u64);
            let class = (row & 1) as u32;
            for (column, x) in x.iter_mut().enumerate() {
                // four pieces of 16 bits: nearly normal, of variance 1/3
                let bits = scatter(row.wrapping_add(column as u64 + 1));
                let sum = (0..4).map(|piece| ((bits >> (16 * piece)) & 0xffff) as f32).sum::<f32>();
                let middle = if class == 1 { 0.08 } else { -0.08 } * (column % 4) as f32;
                *x = middle + sum / 65536.0 - 2.0;
            }
            let wrong = (row >> 8).is_multiple_of(20);
            *code = if wrong { 1 - class } else { class };
        });
        self.at += count as u64;
        Ok(count > 0)
    }
}

fn main() -> Result<()> {
    let classes = [Class::from(0), Class::from(1)];
    let method = Truncated::new(1e-3).kernel(Kernel::Linear);
    let counts = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    for rows in counts {
        let start = Instant::now();
        let request = StreamRequest {
            classes: &classes,
            feature_names: None,
            memory: 256 << 20,
            sums: MOST_SENT,
            control: Control::default(),
        };
        let model = method.fit_chunks(&mut Made { rows, at: 0 }, &request)?;
        let (summary, seconds) = (&model.summary, start.elapsed().as_secs_f64());
        println!(
            "{{\"rows\": {rows}, \"seconds\": {seconds:.2}, \"passes\": {}, \"gap\": {:e}, \"status\": \"{}\", \"objective\": {}}}",
            summary.details.get("passes").unwrap_or(0.0),
            summary.gap,
            summary.status,
            summary.objective
        );
    }
    Ok(())
}
