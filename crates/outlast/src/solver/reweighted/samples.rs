//! Starts for many rows: tried on some of them, followed on more.
//!
//! Minima that lie in different places do so in a sample too. The starts run on rows enough to tell good ones from bad. Their best fits
//! the sample better than it fits other rows, so that the plain fit, which does so less, is a candidate beside it: both are followed on
//! three times as many rows, and the one that ends lower goes on with three times as many again. Rounds that move far are cheap where
//! rows are few, and what is left for all rows are those that move little.

use super::super::Options;
use super::scheme::{Functions, loose};
use super::starts::{self, CHEAP, Effort};
use super::{COARSE_DECREASE, Rounds, Settings, functions_in, space_of, working};
use crate::control::Control;
use crate::data::{Dense, Design, Repeated};
use crate::error::Result;
use crate::problem::concave::Robust;
use crate::problem::{Coded, KernelFunction};
use rayon::prelude::*;

/// Columns up to which, and rows for each of them at least with which, starts are tried on some of the rows; and how many entries these
/// may have.
const MOST_COLUMNS: usize = 200;
const ROWS_PER_COLUMN: usize = 10;
const SIZE: usize = CHEAP / 16;

/// How many times as many rows the next sample has.
const GROWTH: usize = 3;

/// Rows that are copied together.
const COPIED: usize = 512;

/// Every so many rows.
struct Sample<'a> {
    x: Box<dyn Design + 'a>,
    codes: Vec<u32>,
    caps: Vec<f64>,
}

impl<'a> Sample<'a> {
    fn new(problem: &Coded<'a>, stride: usize) -> Result<Sample<'a>> {
        let rows: Vec<u32> = (0..problem.rows() as u32).step_by(stride).collect();
        let codes: Vec<u32> = rows.iter().map(|&row| problem.codes[row as usize]).collect();
        let caps = rows.iter().map(|&row| problem.caps[row as usize] * stride as f64).collect();
        let x: Box<dyn Design + 'a> = match problem.x.is_sparse() {
            true => Box::new(Repeated::new(problem.x, rows)),
            false => {
                let d = problem.x.cols();
                let mut values = vec![0.0; rows.len() * d];
                let copies = values.par_chunks_mut((COPIED * d).max(1)).zip(rows.par_chunks(COPIED));
                copies.for_each(|(out, rows)| {
                    out.chunks_mut(d.max(1)).zip(rows).for_each(|(out, &row)| problem.x.copy_row(row as usize, out));
                });
                Box::new(Dense::new(rows.len(), d, values)?)
            }
        };
        Ok(Sample { x, codes, caps })
    }

    fn problem<'b>(&'b self, whole: &Coded<'b>, loss: &'b Robust) -> Coded<'b> {
        Coded { x: &*self.x, codes: &self.codes, caps: &self.caps, loss, ..*whole }
    }
}

/// Linear functions: w, functions x columns, and b.
type Linear = (Vec<f64>, Vec<f64>);

/// Goes to the best functions of some of the rows, if these are lower on all rows than the point at hand. Whether it has gone.
pub(super) fn from_some_rows(functions: &mut Functions, options: &Options, control: &Control) -> Result<bool> {
    let problem = functions.problem;
    let (n, d, m) = (problem.rows(), problem.x.cols(), problem.functions);
    let wanted = (SIZE / (d * m).max(1)).max(ROWS_PER_COLUMN * d * m);
    let mut stride = n / wanted.max(1);
    if d > MOST_COLUMNS || stride < 2 || !matches!(problem.kernel, KernelFunction::Linear) {
        return Ok(false);
    }
    let loss = functions.loss.clone();
    let mut candidates = best_of_starts(&problem, stride, &loss, options, control)?;
    while stride >= GROWTH * GROWTH {
        stride /= GROWTH;
        candidates = followed(&problem, stride, &loss, &candidates, options, control)?;
    }
    Ok(go_to_lowest(functions, &candidates))
}

/// Goes to the lowest of the candidates, if that is lower than the point at hand. Whether it has gone.
fn go_to_lowest(functions: &mut Functions, candidates: &[Linear]) -> bool {
    let value = |functions: &Functions| functions.objective(&*functions.loss.concave);
    let (mut lowest, mut best, mut gone) = (value(functions), functions.points(), false);
    for (weights, intercepts) in candidates {
        functions.start_at(weights, intercepts);
        let next = value(functions);
        if next < lowest {
            (lowest, best, gone) = (next, functions.points(), true);
        }
    }
    functions.go_to(&best);
    gone
}

/// The best end point of all starts on every so many rows, and the plain fit to them.
fn best_of_starts(
    problem: &Coded,
    stride: usize,
    loss: &Robust,
    options: &Options,
    control: &Control,
) -> Result<Vec<Linear>> {
    let sample = Sample::new(problem, stride)?;
    let part = sample.problem(problem, loss);
    let space = space_of(&part, Default::default(), options)?;
    let fresh = || functions_in(&space, &part, options);
    let mut functions = fresh()?;
    functions.minimize(&vec![1.0; part.rows()], loose(options.tolerance), control)?;
    let plain = functions.coefficients();
    let found = starts::best(&mut functions, &fresh, &Settings::default(), &Effort::SAMPLED, options, control)?;
    functions.go_to(&found.points);
    Ok(functions.coefficients().into_iter().chain(plain).collect())
}

/// The lowest point that rounds on every so many rows lead to from the candidates, roughly.
fn followed(
    problem: &Coded,
    stride: usize,
    loss: &Robust,
    candidates: &[Linear],
    options: &Options,
    control: &Control,
) -> Result<Vec<Linear>> {
    let sample = Sample::new(problem, stride)?;
    let part = sample.problem(problem, loss);
    let space = space_of(&part, Default::default(), options)?;
    let (bounds, silent) = (loss.concave.bounds(), control.silent());
    let rounds = Rounds { bounds: starts::rough(&bounds), decrease: COARSE_DECREASE, options, control: &silent };
    let follow = |(weights, intercepts): &Linear| -> Result<(f64, Option<Linear>)> {
        let mut functions = functions_in(&space, &part, options)?;
        functions.start_at(weights, intercepts);
        let weights = functions.slopes(&*working(loss));
        if functions.any(&weights) {
            rounds.run_from_point(&mut functions, weights)?;
        }
        Ok((functions.objective(&*loss.concave), functions.coefficients()))
    };
    let ends = candidates.par_iter().with_max_len(1).map(follow).collect::<Result<Vec<_>>>()?;
    let lowest = ends.into_iter().min_by(|(one, _), (other, _)| one.total_cmp(other));
    Ok(lowest.and_then(|(_, functions)| functions).into_iter().collect())
}
