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
use crate::solver::ways_out;

/// Relative gap aimed at.
const TIGHT: f64 = 1e-9;
/// Most majorise-minimise steps.
const STEPS: usize = 60;

/// Multipliers are of theta's own labels.
fn begin(near: &Near, theta: &[f64]) -> Pair {
    let dual = Dual::from_labels(near.anchors.to_vec(), near.classes);
    Pair { theta: theta.to_vec(), dual, objective: 1.0, gap: f64::INFINITY, iterations: 0 }
}

fn level<'a>(near: &'a Near, widths: &'a [f32]) -> Level<'a> {
    Level {
        x: near.x,
        unit: near.unit,
        codes: near.anchors,
        classes: near.classes,
        caps: near.caps,
        widths,
        side: Side::Margin,
        ridge: near.ridge,
        linear: near.linear.clone(),
        constant: near.constant,
        intercept: near.intercept,
        room: near.room,
        isa: Isa::detect(),
    }
}

fn plan(ceiling: f64) -> truncated::Plan<'static> {
    truncated::Plan { ceiling, tolerance: TIGHT, max_steps: STEPS, bases: None }
}

/// Down to a critical point of the loss with a ceiling.
fn down(near: &Near, level: &Level, theta: &[f64], ceiling: f64, context: &Context) -> Result<truncated::End> {
    truncated::follow(level, &begin(near, theta), near.reach.min(0.5).min(ceiling), plan(ceiling), context)
}

pub(in crate::solver) fn polish(near: &Near, theta: &[f64], seed: u64, control: &Control) -> Result<Polished> {
    let widths = vec![0.0; near.anchors.len()];
    let level = level(near, &widths);
    let context = Context { control, seed };
    let end = down(near, &level, theta, near.ceiling, &context)?;
    let kept = end.solved.as_ref().unwrap_or(&end.kept);
    let caps: Vec<f64> = near.caps.iter().zip(kept).map(|(cap, kept)| if *kept { *cap } else { 0.0 }).collect();
    let certified = certify(&Level { caps: &caps, ..level.clone() }, &end.pair, TIGHT, true);
    Ok(Polished { theta: certified.theta, gap: certified.gap.max(0.0) })
}

pub(in crate::solver) fn explore(near: &Near, theta: &[f64], seed: u64, control: &Control) -> Result<Option<Vec<f64>>> {
    let widths = vec![0.0; near.anchors.len()];
    let level = level(near, &widths);
    let context = Context { control, seed };
    let down = |theta: &[f64], ceiling: f64| Ok(down(near, &level, theta, ceiling, &context)?.pair.theta);
    let value = |theta: &[f64]| Ok(truncated::value(&level, theta, plan(near.ceiling), &context));
    ways_out::explore(near.ceiling, theta, control, down, value)
}
