//! The exact answer on few rows beside a linear part that stands for all others: the end of a solve whose rows are not in memory.

use super::band::Context;
use super::certificate::certify;
use super::interior::Pair;
use super::level::Level;
use super::{kept, many, truncated};
use crate::control::Control;
use crate::data::Design;
use crate::error::Result;
use crate::linalg::Isa;

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

/// Descends from `theta` to a critical point.
pub(in crate::solver) fn polish(near: &Near, theta: &[f64], seed: u64, control: &Control) -> Result<Polished> {
    if near.classes > 2 {
        return many::polish(near, theta, seed, control);
    }
    let signs: Vec<f64> = near.anchors.iter().map(|&anchor| if anchor == 1 { 1.0 } else { -1.0 }).collect();
    let level = Level {
        x: near.x,
        unit: near.unit,
        signs: &signs,
        caps: near.caps,
        ridge: near.ridge,
        linear: near.linear.clone(),
        constant: near.constant,
        intercept: near.intercept,
        room: near.room,
        isa: Isa::detect(),
    };
    let context = Context { control, metric: near.metric.clone() };
    let begin =
        Pair { theta: theta.to_vec(), dual: vec![0.0; signs.len()], objective: 1.0, gap: f64::INFINITY, iterations: 0 };
    let plan = truncated::Plan { ceiling: near.ceiling, tolerance: TIGHT, max_steps: STEPS, both: false };
    // down on the smoothed loss first: what would be dozens of steps
    let theta = match near.ceiling.is_finite() && near.anchors.len() > MANY * theta.len() {
        true => truncated::descend(&level, theta, near.reach.min(0.5).min(near.ceiling), plan, &context)?,
        false => theta.to_vec(),
    };
    let end = truncated::follow(&level, &theta, &begin, plan, &context)?;
    let caps = kept(near.caps, &end.truncated);
    let dual = end.pair.dual.iter().zip(&caps).map(|(a, cap)| a.min(*cap)).collect();
    let certified = certify(&Level { caps: &caps, ..level.clone() }, &Pair { dual, ..end.pair }, TIGHT, true);
    Ok(Polished { theta: certified.theta, gap: certified.gap.max(0.0) })
}
