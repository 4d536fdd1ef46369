//! The sample solved in memory, its caps made larger by the rows that each of its rows stands for.

use super::{Spec, Survey};
use crate::control::Control;
use crate::data::Dense;
use crate::error::Result;
use crate::problem::{KernelFunction, Loss, ManyClass, Norm, Problem, Terms, TwoClass};
use crate::solver::{self, Options};
use std::ops::Range;

/// Relative gap of the sample's problem.
const TOLERANCE: f64 = 1e-4;

/// What it takes to solve it; threads may share it.
#[derive(Clone, Copy)]
pub(super) struct Sampled<'a> {
    pub spec: &'a Spec,
    pub survey: &'a Survey,
    pub control: &'a Control<'a>,
}

impl Sampled<'_> {
    /// The answer on some of its rows.
    pub fn solve(&self, rows: Range<usize>, loss: Loss, options: &Options) -> Result<Vec<f64>> {
        let (spec, sample) = (self.spec, self.survey.sample());
        let growth = self.survey.total() as f64 / rows.len().max(1) as f64;
        let (mut x, mut anchors, mut caps) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            for &(anchor, factor) in spec.terms(sample.codes[row]) {
                x.extend(sample.x[row * spec.cols..(row + 1) * spec.cols].iter().map(|x| f64::from(*x) * spec.unit));
                anchors.push(anchor);
                caps.push(growth * factor * sample.weight(row) / spec.ridge);
            }
        }
        let x = Dense::new(anchors.len(), spec.cols, x)?;
        let signs: Vec<f64> = anchors.iter().map(|&anchor| if anchor == 1 { 1.0 } else { -1.0 }).collect();
        let (kernel, intercept) = (&KernelFunction::Linear, spec.intercept);
        let (norm, terms) = (Norm::Squared, Terms::Own);
        let problem = match spec.functions {
            1 => Problem::Two(TwoClass { x: &x, signs: &signs, caps: &caps, loss, norm, kernel, intercept }),
            classes => Problem::Many(ManyClass {
                x: &x,
                codes: &anchors,
                classes,
                caps: &caps,
                terms,
                loss,
                norm,
                kernel,
                intercept,
            }),
        };
        let options = Options { tolerance: TOLERANCE, start: None, ..options.clone() };
        let name = if spec.wide { solver::choose::choose("auto", &problem)? } else { solver::linear::NAME };
        let solution = solver::solve(name, &problem, &options, &self.control.silent())?;
        let weights = solution.weights.unwrap_or_default();
        let rows = weights.chunks_exact(spec.cols).zip(&solution.intercepts);
        Ok(rows.flat_map(|(w, b)| w.iter().chain([b]).copied()).collect())
    }
}
