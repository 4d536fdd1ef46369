//! The exact end on gathered rows where the loss is truncated and the penalty is sum rate |w|^q, q <= 1: majorise-minimise steps on the rows near the kinks, beside
//! the linear function that stands for all others, without a pass.
//!
//! Terms beyond the ceiling drop out of a step, and for q < 1 the penalty is replaced by the weighted l1 penalty that touches it. What is left is convex, and solved down to
//! a lower bound (`bound`) as if the gathered rows were all there are; so the end has a duality gap. Other ceilings lead out of local minima on the same rows.

use super::band::Found;
use super::passes::{Answer, Ask, Asking, Passes, Request, Told, unexpected};
use super::rounds::TINY_WIDTH;
use super::sums::State;
use super::term::each_term;
use super::{Given, Separable, Spec};
use crate::control::Control;
use crate::data::Chunk;
use crate::error::Result;
use crate::linalg::dot;
use crate::solver::Options;
use crate::solver::linear::Polished;
use crate::solver::ways_out::explore;

/// Most steps.
const STEPS: usize = 30;
/// A relative decrease that is not worth a step.
const LITTLE: f64 = 1e-9;
/// Relative gap of the steps until none leads lower, that of the ones after them, and the share of the tolerance that it is at most: all rows are to be certified.
const ROUGH: f64 = 1e-4;
const EXACT: f64 = 1e-6;
const SHARE: f64 = 0.3;

/// Gathered terms beside a linear function of theta.
struct Beside {
    rows: Chunk,
    cols: usize,
    unit: f64,
    /// In normalised units.
    linear: Vec<f64>,
    constant: f64,
}

impl Beside {
    fn value(&self, theta: &[f64]) -> f64 {
        self.constant + dot(&self.linear, theta)
    }
}

impl Passes for Beside {
    fn cols(&self) -> usize {
        self.cols
    }

    fn pass(&mut self, request: &Request, _: &Control) -> Result<Answer> {
        let mut answer = request.answer(&self.rows.view(), true)?;
        for (ask, told) in request.asks.iter().zip(&mut answer.0) {
            match (ask, told) {
                (Ask::Statistics { states, .. }, Told::Statistics(sums)) => {
                    for (sums, state) in sums.iter_mut().zip(states) {
                        let value = self.value(&state.theta);
                        sums.value += value;
                        sums.loss += value;
                        let slopes = self.linear.chunks_exact(self.cols + 1);
                        for (sum, slope) in sums.gradient.chunks_exact_mut(self.cols + 1).zip(slopes) {
                            // sums are those of the rows as they were read
                            let (w, b) = (&slope[..self.cols], slope[self.cols]);
                            sum.iter_mut().zip(w).for_each(|(sum, slope)| *sum += slope / self.unit);
                            sum[self.cols] += b;
                        }
                    }
                }
                (Ask::Ray { ends, steps, .. }, Told::Values(values)) => {
                    let [from, to] = [&ends[0], &ends[1]].map(|end| self.value(end));
                    values.iter_mut().zip(steps).for_each(|(value, step)| *value += from + step * (to - from));
                }
                _ => return Err(unexpected()),
            }
        }
        Ok(answer)
    }
}

/// What is gathered at a point, as a problem of its own.
pub(super) struct Gathered<'a> {
    pub given: &'a Given<'a>,
    pub penalty: &'a Separable,
    pub found: &'a Found,
    /// Where.
    pub at: &'a [f64],
    pub control: &'a Control<'a>,
    pub options: &'a Options,
}

impl Gathered<'_> {
    /// Descends to a critical point of it.
    pub(super) fn settle(&self) -> Result<Polished> {
        let exact = EXACT.min(SHARE * self.options.tolerance);
        self.down(self.at, self.given.spec.ceiling, &[ROUGH.max(exact), exact])
    }

    /// A point lower than where it was gathered, by ways that other ceilings lead. Nothing where none is found.
    pub(super) fn explore(&self) -> Result<Option<Vec<f64>>> {
        let ceiling = self.given.spec.ceiling;
        let down = |theta: &[f64], ceiling: f64| Ok(self.down(theta, ceiling, &[ROUGH])?.theta);
        explore(ceiling, self.at, self.control, down, |theta| self.value(&mut self.rows(), theta, ceiling))
    }

    fn rows(&self) -> Beside {
        Beside {
            rows: self.found.rows.clone(),
            cols: self.given.spec.cols,
            unit: self.given.spec.unit,
            linear: self.found.linear.clone(),
            constant: self.found.constant,
        }
    }

    /// The loss with a ceiling: a gathered row is one term.
    fn spec(&self, ceiling: f64) -> Spec {
        let terms = (0..self.given.spec.classes as u32).map(|anchor| vec![(anchor, 1.0)]).collect();
        Spec { ceiling, terms, ..self.given.spec.clone() }
    }

    fn value(&self, rows: &mut Beside, theta: &[f64], ceiling: f64) -> Result<f64> {
        let spec = self.spec(ceiling);
        let mut asking = Asking { passes: rows, control: self.control, count: 0 };
        let loss = asking.statistics(&spec, State { theta: theta.to_vec(), width: TINY_WIDTH })?.loss;
        Ok(self.penalty.value(&spec, theta) + loss)
    }

    /// Steps with each of some relative gaps, until none leads lower.
    fn down(&self, start: &[f64], ceiling: f64, aims: &[f64]) -> Result<Polished> {
        let (spec, control) = (self.spec(ceiling), self.control);
        let mut rows = self.rows();
        let (mut theta, mut lowest, mut gap) = (start.to_vec(), f64::INFINITY, f64::INFINITY);
        for aim in aims {
            let mut kept: Option<Vec<f64>> = None;
            for _ in 0..STEPS {
                let next = kept_at(&spec, &self.found.rows, &theta);
                if kept.as_ref() == Some(&next) && self.penalty.q == 1.0 {
                    break;
                }
                rows.rows.weights.clone_from(kept.insert(next));
                let mut given = self.given.clone();
                given.separable = Some(self.penalty.touching_at(&spec, &theta));
                given.spec = Spec { ceiling: f64::INFINITY, ..spec.clone() };
                let mut work = given.work(Asking { passes: &mut rows, control, count: 0 }, control);
                // where they were gathered the rows cost what all rows cost
                work.given.level = work.penalty(self.at) + work.statistics(self.at, TINY_WIDTH)?.loss;
                let end = work.certified_to(theta.clone(), *aim, self.options)?;
                rows.rows.weights.clone_from(&self.found.rows.weights);
                let value = self.value(&mut rows, &end.theta, ceiling)?;
                if !(value <= lowest + LITTLE * lowest.abs()) {
                    break;
                }
                let is_little = lowest - value <= LITTLE * value.abs();
                (theta, lowest, gap) = (end.theta, value, end.gap * end.objective.abs());
                if is_little || control.out_of_time() {
                    break;
                }
            }
        }
        Ok(Polished { theta, gap })
    }
}

/// Caps of gathered terms, 0 for those beyond the ceiling.
fn kept_at(spec: &Spec, rows: &Chunk, theta: &[f64]) -> Vec<f64> {
    let mut kept = rows.weights.clone();
    each_term(spec, rows, theta, |row, _, slack| {
        if slack > spec.ceiling {
            kept[row] = 0.0;
        }
    });
    kept
}

#[cfg(test)]
mod tests {
    use super::super::band::{Band, partition_band};
    use super::super::sums::tests::{chunk, noise, spec};
    use super::super::sums::{Sums, partition_statistics};
    use super::*;

    /// How far theta moves, and a distance that no score moves by then.
    const STEP: f64 = 1e-3;
    const FAR: f64 = 0.1;

    #[test]
    fn gathered_rows_change_by_what_all_rows_change() {
        for classes in [2, 3] {
            let (spec, all) = (spec(classes, 1.6), chunk(300, classes));
            let mut noise = noise(11);
            let theta: Vec<f64> = (0..spec.size()).map(|_| noise()).collect();
            let moved: Vec<f64> = theta.iter().map(|theta| theta + STEP * noise()).collect();
            let now = Band { theta: theta.clone(), half_width: FAR, forced: Vec::new() };
            let mut found = partition_band(&all.view(), &spec, &now, None, 300 * classes, false);
            assert!(found.count > 10 && found.count < 200 * classes, "{} are gathered", found.count);
            spec.normalise(&mut found.linear);
            let own = Spec { terms: (0..classes as u32).map(|anchor| vec![(anchor, 1.0)]).collect(), ..spec.clone() };
            let mut beside = Beside {
                rows: found.rows,
                cols: spec.cols,
                unit: spec.unit,
                linear: found.linear,
                constant: found.constant,
            };
            let control = Control::default();
            let mut asking = Asking { passes: &mut beside, control: &control, count: 0 };
            // windows that end before rows which are not gathered begin
            let state = |theta: &[f64]| State { theta: theta.to_vec(), width: FAR };
            let mut few = |theta: &[f64]| asking.statistics(&own, state(theta)).unwrap();
            let whole = |theta: &[f64]| partition_statistics(&all.view(), &spec, &[state(theta)], false).remove(0);
            let (few, whole) = ([few(&theta), few(&moved)], [whole(&theta), whole(&moved)]);
            let change = |sums: &[_; 2], of: fn(&Sums) -> f64| of(&sums[1]) - of(&sums[0]);
            for of in [|sums: &Sums| sums.value, |sums: &Sums| sums.loss] {
                let (found, wanted) = (change(&few, of), change(&whole, of));
                assert!((found - wanted).abs() <= 1e-10 * whole[0].loss, "{classes}: {found} and {wanted}");
                assert!(wanted.abs() > 1e-6 * whole[0].loss, "{classes}: nothing has changed");
            }
            for (found, wanted) in few[1].gradient.iter().zip(&whole[1].gradient) {
                assert!((found - wanted).abs() <= 1e-10 * (1.0 + wanted.abs()), "{classes}: {found} and {wanted}");
            }
        }
    }
}
