//! A first theta from growing samples of the rows, and a guess of how far z is from its optimum there.
//!
//! A sample of m rows gets its caps multiplied by n/m. The error of z at the sample's optimum is about sqrt(p/m); what the next,
//! eight times larger sample moves z by measures it, and predicts the error that is left, sqrt(8) times smaller.

use super::band::Context;
use super::interior::{self, Begin};
use super::level::{Copied, Level};
use super::smooth::{self, Smoothing, Stop};
use crate::error::Result;

const GROWTH: usize = 8;
const LOOSE: f64 = 3e-3;

pub(super) struct Pilot {
    pub theta: Vec<f64>,
    pub error: f64,
    pub iterations: usize,
}

pub(super) fn run(level: &Level, seed: u64, context: &Context) -> Result<Pilot> {
    let active = counted(level);
    let p = level.order();
    let mut size = (40 * p).max(2000);
    let mut random = (seed ^ 0x9E37_79B9_7F4A_7C15) | 1 << 63;
    let mut theta = vec![0.0; p];
    let mut error = 1.0f64;
    let mut iterations = 0;
    let mut first = true;
    while 3 * size < active.len() {
        let copied = scaled_sample(level, &active, size, &mut random);
        let small = copied.level(level, level.linear.clone(), level.constant);
        if first {
            let pair = interior::solve(&small, Begin { theta: &theta, width: 1.0 }, LOOSE, context.control)?;
            theta = pair.theta;
            iterations += pair.iterations;
            error = (p as f64 / size as f64).sqrt();
        } else {
            let smoothing = Smoothing { width: (3.0 * error).min(1.0), ceiling: f64::INFINITY };
            let stop = Stop { still: 0.1 * error, most: 8, trust: f64::INFINITY };
            let mut z = Vec::new();
            let outcome =
                smooth::newton(&small, &context.metric, &mut theta, &mut z, smoothing, stop, context.control)?;
            iterations += outcome.steps;
            error = outcome.moved.clamp(0.2 * error, 2.0) / (GROWTH as f64).sqrt();
        }
        first = false;
        size *= GROWTH;
    }
    Ok(Pilot { theta, error: error.min(1.0), iterations })
}

/// A sample of `size` rows standing for all of a level; `None` when the level has not many more.
pub(super) fn sample(level: &Level, size: usize, seed: u64) -> Option<Copied> {
    let active = counted(level);
    (4 * size < active.len())
        .then(|| scaled_sample(level, &active, size, &mut ((seed ^ 0x9E37_79B9_7F4A_7C15) | 1 << 63)))
}

fn counted(level: &Level) -> Vec<u32> {
    (0..level.rows() as u32).filter(|&row| level.caps[row as usize] > 0.0).collect()
}

fn scaled_sample(level: &Level, active: &[u32], size: usize, random: &mut u64) -> Copied {
    let mut copied = level.copy(&draw(active, size, random));
    let factor = active.len() as f64 / size as f64;
    copied.caps.iter_mut().for_each(|cap| *cap *= factor);
    copied
}

/// One row from each of `size` equal stretches.
fn draw(active: &[u32], size: usize, random: &mut u64) -> Vec<u32> {
    let stretch = active.len() as f64 / size as f64;
    let mut pick = |k: usize| {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        let u = (*random >> 11) as f64 / (1u64 << 53) as f64;
        active[(((k as f64 + u) * stretch) as usize).min(active.len() - 1)]
    };
    (0..size).map(&mut pick).collect()
}
