//! The exact answer on few rows beside a linear part that stands for all others: the end of a solve whose rows are not in memory. And ways out of a local minimum
//! that few rows make.

use super::band::Context;
use super::certificate::certify;
use super::interior::Pair;
use super::level::Level;
use super::{kept, many, truncated};
use crate::control::Control;
use crate::data::Design;
use crate::error::Result;
use crate::linalg::Isa;
use crate::solver::ways_out;

/// Relative gap aimed at.
const TIGHT: f64 = 1e-10;
/// Most majorise-minimise steps.
const STEPS: usize = 100;
/// Rows for each coefficient from which on a smoothed loss says something.
const MANY: usize = 20;

/// The problem: constant + rho/2 |w|^2 + g'theta + the truncated losses of some terms, all in normalised units.
pub(in crate::solver) struct Near<'a> {
    pub x: &'a dyn Design,
    /// What features are multiplied by as they are read.
    pub unit: f64,
    /// The class whose margin counts, of each term.
    pub anchors: &'a [u32],
    pub caps: &'a [f64],
    pub classes: usize,
    pub ridge: f64,
    pub linear: Vec<f64>,
    pub constant: f64,
    pub intercept: bool,
    /// tau
    pub ceiling: f64,
    /// How far from its kinks a term is among these.
    pub reach: f64,
    /// Second moments of the columns, and the sum of all caps.
    pub metric: Vec<f64>,
    /// Bytes of the matrices of pieces of the rows that wait to be merged.
    pub room: usize,
}

/// A critical point of it.
pub(in crate::solver) struct Polished {
    pub theta: Vec<f64>,
    /// Duality gap of the convex problem of the terms that are not truncated there.
    pub gap: f64,
}

impl Near<'_> {
    fn signs(&self) -> Vec<f64> {
        self.anchors.iter().map(|&anchor| if anchor == 1 { 1.0 } else { -1.0 }).collect()
    }

    fn level<'a>(&'a self, signs: &'a [f64]) -> Level<'a> {
        Level {
            x: self.x,
            unit: self.unit,
            signs,
            caps: self.caps,
            ridge: self.ridge,
            linear: self.linear.clone(),
            constant: self.constant,
            intercept: self.intercept,
            room: self.room,
            isa: Isa::detect(),
        }
    }

    /// Down to a critical point of the loss with a ceiling.
    fn down(&self, level: &Level, theta: &[f64], ceiling: f64, context: &Context) -> Result<truncated::End> {
        let dual = vec![0.0; level.rows()];
        let begin = Pair { theta: theta.to_vec(), dual, objective: 1.0, gap: f64::INFINITY, iterations: 0 };
        let plan = truncated::Plan { ceiling, tolerance: TIGHT, max_steps: STEPS, both: false };
        // down on the smoothed loss first: what would be dozens of steps
        let theta = match ceiling.is_finite() && level.rows() > MANY * theta.len() {
            true => truncated::descend(level, theta, self.reach.min(0.5).min(ceiling), plan, context)?,
            false => theta.to_vec(),
        };
        truncated::follow(level, &theta, &begin, plan, context)
    }
}

/// Descends from `theta` to a critical point.
pub(in crate::solver) fn polish(near: &Near, theta: &[f64], seed: u64, control: &Control) -> Result<Polished> {
    if near.classes > 2 {
        return many::polish(near, theta, seed, control);
    }
    let signs = near.signs();
    let level = near.level(&signs);
    let context = Context { control, metric: near.metric.clone() };
    let end = near.down(&level, theta, near.ceiling, &context)?;
    let caps = kept(near.caps, &end.truncated);
    let dual = end.pair.dual.iter().zip(&caps).map(|(a, cap)| a.min(*cap)).collect();
    let certified = certify(&Level { caps: &caps, ..level.clone() }, &Pair { dual, ..end.pair }, TIGHT, true);
    Ok(Polished { theta: certified.theta, gap: certified.gap.max(0.0) })
}

/// A point lower than `theta`, by ways that other ceilings lead. Nothing where none is found.
pub(in crate::solver) fn explore(near: &Near, theta: &[f64], seed: u64, control: &Control) -> Result<Option<Vec<f64>>> {
    if near.classes > 2 {
        return many::explore(near, theta, seed, control);
    }
    let signs = near.signs();
    let level = near.level(&signs);
    let context = Context { control, metric: near.metric.clone() };
    let down = |theta: &[f64], ceiling: f64| Ok(near.down(&level, theta, ceiling, &context)?.pair.theta);
    let value = |theta: &[f64]| Ok(truncated::value(&level, theta, near.ceiling, &context));
    ways_out::explore(near.ceiling, theta, control, down, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;

    const CEILING: f64 = 2.0;
    const RIDGE: f64 = 0.05;
    const CAP: f64 = 1.0;

    /// A dozen rows on a line, one in four on the wrong side.
    fn rows(seed: u64) -> (Vec<f64>, Vec<u32>) {
        let mut state = 1u64 << 63 | seed;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..12)
            .map(|row| {
                let side = if row % 2 == 0 { -1.0 } else { 1.0 };
                let wrong = next() < 0.25;
                (3.0 * (next() + 0.2) * side, u32::from((row % 2 == 1) != wrong))
            })
            .unzip()
    }

    fn objective(x: &[f64], codes: &[u32], [w, b]: [f64; 2]) -> f64 {
        let slack = |(x, code): (&f64, &u32)| 1.0 - (w * x + b) * if *code == 1 { 1.0 } else { -1.0 };
        0.5 * RIDGE * w * w + CAP * x.iter().zip(codes).map(|row| slack(row).clamp(0.0, CEILING)).sum::<f64>()
    }

    /// Where ways out lead next to a fine grid.
    #[test]
    fn ways_out_lead_to_the_lowest_point_of_a_few_rows() {
        let (mut ends, mut left, mut lowest_of_all) = (0, 0, 0);
        for seed in 1..=20 {
            let (values, codes) = rows(seed);
            let axis = |reach: i32| (-reach..=reach).map(|k| f64::from(k) * 0.02);
            let points = axis(250).flat_map(|w| axis(400).map(move |b| [w, b]));
            let lowest = points.map(|point| objective(&values, &codes, point)).fold(f64::INFINITY, f64::min);
            let x = Dense::new(12, 1, &values[..]).unwrap();
            let near = Near {
                x: &x,
                unit: 1.0,
                anchors: &codes,
                caps: &[CAP; 12],
                classes: 2,
                ridge: RIDGE,
                linear: vec![0.0; 2],
                constant: 0.0,
                intercept: true,
                ceiling: CEILING,
                reach: 1.0,
                metric: vec![values.iter().map(|x| CAP * x * x).sum(), 12.0 * CAP],
                room: 1 << 20,
            };
            let control = Control::default();
            for start in [[0.0, 0.0], [0.5, 0.5], [0.5, -0.5], [5.0, 0.0]] {
                let end = polish(&near, &start, 0, &control).unwrap().theta;
                let before = objective(&values, &codes, [end[0], end[1]]);
                let lower = explore(&near, &end, 0, &control).unwrap();
                left += usize::from(lower.is_some());
                let after = lower.map_or(before, |end| objective(&values, &codes, [end[0], end[1]]));
                assert!(after <= before, "{seed}: {after} from {before}");
                ends += 1;
                lowest_of_all += usize::from(after <= lowest * (1.0 + 1e-6));
            }
        }
        assert!(left > 10, "only {left} local minima were left");
        assert!(10 * lowest_of_all >= 9 * ends, "{lowest_of_all} of {ends}");
    }
}
