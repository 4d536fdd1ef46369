//! The sample, solved in memory: where descents on all rows begin.
//!
//! Its caps are made larger by the rows that each of its rows stands for. As many rows as tell scores to a few per cent are enough: the rest is
//! Newton's method's. A truncated loss has several ends. Here these are the answer to the loss itself, and what Newton's method on the smoothed
//! loss leads to on the sample: from there, from the plain optimum, with a width that falls from 1/2, and from the answers on pieces of the sample. Those that come to
//! the same place are one start. One is given up where it is higher by more than chance allows: losses differ by no more than scores do, so that the difference of two
//! sums has a standard error of at most sum c / sqrt(rows) times the distance of the scores.

use super::newton::Then;
use super::passes::{Answer, Asking, Passes, Request};
use super::rounds::{WIDEST, error};
use super::{Given, Spec};
use crate::control::Control;
use crate::data::{ChunkView, Dense};
use crate::error::Result;
use crate::problem::{KernelFunction, Loss, ManyClass, Norm, Problem, Terms, TwoClass};
use crate::solver::ways_out::End;
use crate::solver::{self, Options};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// Relative gap of the sample's problem.
const TOLERANCE: f64 = 1e-4;
/// Rows that are solved: so many, so many for each coefficient, or one for so many rows up to a number, whose solution takes less than a pass and saves some.
const ENOUGH: usize = 10_000;
const FOR_EACH: usize = 500;
const STANDS_FOR: u64 = 400;
const AT_MOST: u64 = 50_000;
/// How many times as many rows there may be for a sample to be a good part of them.
const AMPLE: u64 = 8;
/// Pieces of the sample that are fitted for further starts: with one function and very many rows, and else, where there are more ends; what part of the sample they are, and their
/// fewest rows for each coefficient.
const PIECES: (usize, usize) = (2, 8);
const PART: usize = 8;
const LEAST_PIECE: usize = 40;
/// Most starts, with very many rows and else.
const MOST: (usize, usize) = (4, 8);
/// Distance in scores, next to the width, within which two ends are one.
const NEAR: f64 = 0.5;
/// Standard errors by which an end is higher on the sample if it is given up.
const DEVIATIONS: f64 = 4.0;

/// Rows that are solved of a sample of so many, for so many coefficients: all where they are a good part of all there are, and passes cost little next to them.
pub(super) fn solved(sample: usize, total: u64, size: usize) -> usize {
    let enough = ENOUGH.max(FOR_EACH.saturating_mul(size)).max((total / STANDS_FOR).min(AT_MOST) as usize);
    if is_ample(sample, total) { sample } else { sample.min(enough) }
}

fn is_ample(sample: usize, total: u64) -> bool {
    total <= AMPLE.saturating_mul(sample as u64)
}

/// Matrices of the order of theta that a solver of the sample has at the same time, if it has any.
const MATRICES: usize = 8;

/// What it takes to solve it; threads may share it.
#[derive(Clone, Copy)]
pub(super) struct Sampled<'a> {
    given: &'a Given<'a>,
    /// Rows that are solved.
    rows: usize,
    control: &'a Control<'a>,
}

/// Rows of the sample as if they were all there are.
struct Held<'a>([ChunkView<'a>; 2], usize);

impl Passes for Held<'_> {
    fn cols(&self) -> usize {
        self.1
    }

    fn pass(&mut self, request: &Request, _: &Control) -> Result<Answer> {
        let mut answer = request.answer(&self.0[0], false)?;
        if self.0[1].rows() > 0 {
            answer.add(request.answer(&self.0[1], false)?)?;
        }
        Ok(answer)
    }
}

impl<'a> Sampled<'a> {
    pub fn new(given: &'a Given<'a>, control: &'a Control<'a>) -> Sampled<'a> {
        let survey = given.survey;
        Sampled { given, rows: solved(survey.sample().rows(), survey.total(), given.spec.size()), control }
    }

    /// Whether there are more coefficients than rows.
    pub fn is_small(&self) -> bool {
        self.rows < self.given.spec.size()
    }

    /// How far off its scores are.
    pub fn width(&self) -> f64 {
        error(&self.given.spec, self.rows as f64)
    }

    /// The answers to the loss itself and, where it is truncated, to that which is not.
    pub fn answers(&self, loss: Loss, options: &Options) -> Result<(Vec<f64>, Option<Vec<f64>>)> {
        let own = || self.solve(0..self.rows, loss, options);
        let plain = || self.solve(0..self.rows, loss.untruncated(), options);
        if !self.given.spec.ceiling.is_finite() {
            return Ok((own()?, None));
        }
        if self.given.side_by_side == 1 {
            return Ok((own()?, Some(plain()?)));
        }
        let (own, plain) = rayon::join(own, plain);
        Ok((own?, Some(plain?)))
    }

    /// Where descents may begin with a width: ends that differ on the sample.
    pub fn starts(&self, loss: Loss, options: &Options, width: f64) -> Result<Vec<Vec<f64>>> {
        let ample = is_ample(self.rows, self.given.survey.total());
        let most = if ample { MOST.1 } else { MOST.0 }.min(self.given.side_by_side);
        if most == 1 {
            return Ok(vec![self.solve(0..self.rows, loss, options)?]);
        }
        let (own, plain) = self.answers(loss, options)?;
        let Some(plain) = plain else { return Ok(vec![own]) };
        let spec = &self.given.spec;
        let widest = WIDEST.min(spec.ceiling);
        let rows = self.rows / PART;
        let from = error(spec, rows as f64).clamp(width, widest.max(width));
        let pieces = match rows < LEAST_PIECE * spec.size() {
            true => 0,
            false if spec.functions > 1 || ample => PIECES.1,
            false => PIECES.0,
        };
        let end = |at: usize| match at {
            0 => self.descend(own.clone(), width, width),
            1 => self.descend(plain.clone(), widest, width),
            _ => self.descend(self.solve((at - 2) * rows..(at - 1) * rows, loss, options)?, from, width),
        };
        let mut ends = Vec::new();
        for first in (0..pieces + 2).step_by(most) {
            let some = first..(first + most).min(pieces + 2);
            ends.extend(some.into_par_iter().map(end).collect::<Result<Vec<_>>>()?);
        }
        ends.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        let lowest = ends[0].1;
        // all caps together, for a row of the sample
        let cap = self.given.metric[spec.cols] / (self.rows as f64).sqrt();
        let mut starts: Vec<Vec<f64>> = Vec::new();
        for (theta, objective) in ends {
            let apart = starts.iter().map(|start| self.given.movement(start, &theta)).fold(f64::INFINITY, f64::min);
            let behind = starts.first().map_or(0.0, |first| DEVIATIONS * cap * self.given.movement(first, &theta));
            let is_one = starts.is_empty() || apart > NEAR * width && objective - lowest <= behind;
            if is_one && starts.len() < most {
                starts.push(theta);
            }
        }
        Ok(starts)
    }

    /// Newton's method on the sample: where it ends, and the objective there.
    fn descend(&self, start: Vec<f64>, from: f64, to: f64) -> Result<(Vec<f64>, f64)> {
        let (part, growth) = (self.given.survey.part(0..self.rows), self.growth(self.rows));
        let larger = |terms: &Vec<(u32, f64)>| terms.iter().map(|(anchor, cap)| (*anchor, growth * cap)).collect();
        let terms = self.given.spec.terms.iter().map(larger).collect();
        let spec = Spec { terms, ..self.given.spec.clone() };
        let control = self.control.silent();
        let mut held = Held(part.views(), self.given.spec.cols);
        let asking = Asking { passes: &mut held, control: &control, count: 0 };
        let end = Given { spec, ..self.given.clone() }.work(asking, &control).down(start, from, to, Then::Nothing)?;
        Ok((end.theta.clone(), end.objective()))
    }

    /// All rows for each of some.
    fn growth(&self, rows: usize) -> f64 {
        self.given.survey.total() as f64 / rows.max(1) as f64
    }

    /// The answer on some of its rows.
    fn solve(&self, rows: Range<usize>, loss: Loss, options: &Options) -> Result<Vec<f64>> {
        let (spec, growth) = (&self.given.spec, self.growth(rows.len()));
        let part = self.given.survey.part(rows);
        let [even, rare] = part.views();
        // rows are as they were read; the unit of their features, a power of two, is in the caps
        let borrowed = rare.rows() == 0 && spec.terms.iter().all(|terms| terms.len() == 1);
        let (mut x, mut anchors, mut caps) = (Vec::new(), Vec::new(), Vec::new());
        for view in [even, rare] {
            for (row, values) in view.x.chunks_exact(spec.cols).enumerate() {
                for &(anchor, factor) in spec.terms(view.codes[row]) {
                    if !borrowed {
                        x.extend_from_slice(values);
                    }
                    anchors.push(anchor);
                    caps.push(growth * factor * view.weight(row) / spec.ridge * spec.unit * spec.unit);
                }
            }
        }
        let values = if borrowed { Cow::Borrowed(even.x) } else { Cow::Owned(x) };
        let x = Dense::<f32>::new(anchors.len(), spec.cols, values)?;
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
        let room = self.given.room.min(options.cache_bytes);
        let options = Options { tolerance: TOLERANCE, start: None, cache_bytes: room, ..options.clone() };
        let name = match spec.wide {
            true if 8 * MATRICES * spec.size() * spec.size() > room => solver::coordinate::NAME,
            true => solver::choose::choose("auto", &problem)?,
            false => solver::linear::NAME,
        };
        let solution = solver::solve(name, &problem, &options, &self.control.silent())?;
        let weights = solution.weights.unwrap_or_default();
        let rows = weights.chunks_exact(spec.cols).zip(&solution.intercepts);
        Ok(rows.flat_map(|(w, b)| w.iter().map(|w| w / spec.unit).chain([*b])).collect())
    }
}
