//! As [`super::super::polish`], with k classes.

use super::super::polish::{Near, Polished};
use super::band::Context;
use super::certificate::certify;
use super::dual::Dual;
use super::interior::Pair;
use super::level::{Level, Side};
use super::truncated;
use crate::control::Control;
use crate::error::Result;
use crate::linalg::Isa;

/// Relative gap aimed at.
const TIGHT: f64 = 1e-9;
/// Most majorise-minimise steps.
const STEPS: usize = 60;

pub(in crate::solver) fn polish(near: &Near, theta: &[f64], seed: u64, control: &Control) -> Result<Polished> {
    let widths = vec![0.0; near.anchors.len()];
    let level = Level {
        x: near.x,
        unit: near.unit,
        codes: near.anchors,
        classes: near.classes,
        caps: near.caps,
        widths: &widths,
        side: Side::Margin,
        ridge: near.ridge,
        linear: near.linear.clone(),
        constant: near.constant,
        intercept: near.intercept,
        room: near.room,
        isa: Isa::detect(),
    };
    let context = Context { control, seed };
    let begin = Pair {
        theta: theta.to_vec(),
        dual: Dual::from_labels(near.anchors.to_vec(), near.classes),
        objective: 1.0,
        gap: f64::INFINITY,
        iterations: 0,
    };
    let plan = truncated::Plan { ceiling: near.ceiling, tolerance: TIGHT, max_steps: STEPS, bases: None };
    let end = truncated::follow(&level, &begin, near.reach.min(0.5).min(near.ceiling), plan, &context)?;
    let kept = end.solved.as_ref().unwrap_or(&end.kept);
    let caps: Vec<f64> = near.caps.iter().zip(kept).map(|(cap, kept)| if *kept { *cap } else { 0.0 }).collect();
    let certified = certify(&Level { caps: &caps, ..level.clone() }, &end.pair, TIGHT, true);
    Ok(Polished { theta: certified.theta, gap: certified.gap.max(0.0) })
}
