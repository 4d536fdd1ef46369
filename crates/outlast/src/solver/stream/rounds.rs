//! The way to the answer: from the sample down by Newton's method, then rounds of gathering until the gap is small enough.

use super::band::{Band, Found};
use super::beside::Gathered;
use super::newton::{Reached, Then};
use super::sampled::Sampled;
use super::sums::Sums;
use super::term::each_term;
use super::together::Descent;
use super::{Given, Spec, Task, Work};
use crate::control::{Control, Progress};
use crate::data::Dense;
use crate::error::Result;
use crate::memory::give_back;
use crate::solver::linear::{Near, Polished, explore, polish};
use crate::solver::ways_out::End;
use crate::solver::{Options, Status};

/// Relative gap aimed at: rounds cost a pass each, and the last digits come with the first.
const AIM: f64 = 1e-6;
/// Widths of the smoothing, and the factor from one to the next.
pub(super) const WIDEST: f64 = 0.5;
const NARROWEST: f64 = 0.003;
const NARROWING: f64 = 0.3;
/// Most rounds of gathering.
const ROUNDS: usize = 30;
/// Ways back after which the path of widths is the shorter way, where it is one to a certificate.
const RETREATS: usize = 4;
/// A gap that is worth that path: what is less is rounding.
const LEFT: f64 = 1e-5;
/// A width that smooths nothing.
pub(super) const TINY_WIDTH: f64 = 1e-12;
/// The smallest width of Newton's method after a band led astray, and the halvings of the way back.
const LEAST_WIDTH: f64 = 1e-5;
const HALVINGS: i32 = 14;
/// How far, next to the width of the band, the way back is looked at: what is beyond says nothing of the rows in between.
const AHEAD: f64 = 16.0;
/// A width of bands below which the rows that are left lie at a kink, more than can be gathered. None is narrower.
const LEAST_BAND: f64 = 1e-9;
/// As far as any row is known to move.
const FARTHEST: f64 = 1.0;
/// A relative decrease that is none, and one that may be rounding.
const TRIFLE: f64 = 1e-9;
const ROUNDING: f64 = 1e-13;

/// Movement of the scores between two starts that are one.
pub(super) const SAME: f64 = 1e-2;

/// The end of Newton's method.
pub(super) struct Descended {
    pub theta: Vec<f64>,
    pub sums: Sums,
    /// The objective at the start, and at the end if that is lower.
    pub trace: Vec<f64>,
}

impl Descended {
    fn lower(self, other: Descended) -> Descended {
        if other.objective() < self.objective() { other } else { self }
    }
}

impl End for Descended {
    fn objective(&self) -> f64 {
        self.trace[self.trace.len() - 1]
    }

    fn after(self, before: Descended) -> Descended {
        let mut trace = before.trace;
        trace.push(self.objective());
        Descended { trace, ..self }
    }
}

/// The lowest point so far.
pub(super) struct Best {
    pub theta: Vec<f64>,
    pub objective: f64,
    pub gap: f64,
    pub trace: Vec<f64>,
    pub outliers: u64,
    pub gathered: usize,
    pub status: Status,
}

impl End for Best {
    fn objective(&self) -> f64 {
        self.objective
    }

    fn after(self, before: Best) -> Best {
        let mut trace = before.trace;
        trace.push(self.objective);
        Best { trace, ..self }
    }
}

impl Work<'_> {
    pub(super) fn run(&mut self, task: &Task, options: &Options, most: usize) -> Result<Best> {
        let sampled = Sampled::new(&self.given, self.control);
        let width = sampled.width().clamp(NARROWEST, WIDEST.min(self.given.spec.ceiling));
        let last = error(&self.given.spec, self.given.survey.total() as f64).clamp(NARROWEST, width);
        let mut starts = sampled.starts(task.loss, options, width)?;
        give_back();
        let lowest = match starts.len() {
            1 => self.down(starts.remove(0), width, last, Then::Gathering(most))?,
            _ => {
                let descent = |start: Vec<f64>| -> Descent<Option<Descended>> {
                    Box::new(move |work| work.down_unless_met(start, width, last, Then::Gathering(most)))
                };
                let ends = self.together(starts.into_iter().map(descent).collect())?;
                let differ = ends.iter().flatten().count() > 1;
                let lowest = ends.into_iter().flatten().reduce(Descended::lower);
                let lowest = lowest.unwrap_or_else(|| unreachable!("one of them is ahead of the others"));
                match differ {
                    true => {
                        let lowest = self.by_other_ceilings(lowest, (width, last), most)?;
                        self.out_nearby(lowest, last, options, most)?
                    }
                    false => lowest,
                }
            }
        };
        // what is left to go is less than the last width
        let mut best = self.rounds(lowest, last, options, most)?;
        if best.status == Status::TimeLimit {
            // nothing may have been gathered there
            best.outliers = self.outliers(&best.theta)?;
        }
        match best.status {
            Status::IterationLimit | Status::Inaccurate
                if !self.given.spec.ceiling.is_finite() && best.gap > options.tolerance.max(LEFT) =>
            {
                self.certified_after(best, options)
            }
            _ => Ok(best),
        }
    }

    /// Answers on the sample: to the loss itself, and to that which is not truncated unless it is the same.
    pub(super) fn wide_starts(&self, task: &Task, options: &Options) -> Result<Vec<Vec<f64>>> {
        let sampled = Sampled::new(&self.given, self.control);
        let (own, plain) = sampled.answers(task.loss, options)?;
        give_back();
        // where no row is given up it is the same one
        let plain = plain.filter(|plain| self.given.movement(&own, plain) > SAME);
        // fewer rows than coefficients are fitted by noise: then nothing at all may be the better start
        let nothing = sampled.is_small().then(|| vec![0.0; self.given.spec.size()]);
        Ok([Some(own), plain, nothing].into_iter().flatten().collect())
    }

    /// Newton's method from a start, with widths that fall from one to another.
    pub(super) fn down(&mut self, start: Vec<f64>, from: f64, to: f64, then: Then) -> Result<Descended> {
        let end = self.down_unless_met(start, from, to, then)?;
        Ok(end.unwrap_or_else(|| unreachable!("a descent alone meets nobody")))
    }

    /// The same; nothing where another descent is ahead.
    fn down_unless_met(&mut self, start: Vec<f64>, from: f64, to: f64, then: Then) -> Result<Option<Descended>> {
        let mut width = from;
        let start = self.given.held(start);
        let mut sums = self.statistics(&start, width)?;
        let bound = self.penalty(&start) + sums.loss;
        let mut theta = start.clone();
        loop {
            let last = width <= to;
            let reached = self.descend(theta, sums, width, if last { then } else { Then::Narrower })?;
            (theta, sums) = (reached.theta, reached.sums);
            self.post(&theta, width);
            if self.is_met(&theta, width) {
                return Ok(None);
            }
            if last {
                break;
            }
            // where time is up this is the last pass, and what is told is told of this point; and where a width has nothing to tell, those next to it have little
            let at_once = self.control.out_of_time() || reached.idle;
            let next = if at_once { to } else { (NARROWING * width).max(to) };
            drop(sums);
            sums = self.statistics(&theta, next)?;
            // those that have ended the same width at the same time are known by now
            if self.is_met(&theta, width) {
                return Ok(None);
            }
            width = next;
        }
        let smoothed = self.penalty(&theta) + sums.loss;
        let (theta, trace) = if smoothed <= bound { (theta, vec![bound, smoothed]) } else { (start, vec![bound]) };
        Ok(Some(Descended { theta, sums, trace }))
    }

    /// Out of a local minimum by descents with other ceilings.
    fn by_other_ceilings(&mut self, lowest: Descended, (width, last): (f64, f64), most: usize) -> Result<Descended> {
        self.out(lowest, |lowest, factor| {
            let start = lowest.theta.clone();
            Box::new(move |work| {
                let there = work.with_ceiling(factor, |work| work.down(start, width, width, Then::Nothing))?;
                work.down_unless_met(there.theta, width, last, Then::Gathering(most))
            })
        })
    }

    /// Rounds of gathering until the gap is small enough.
    pub(super) fn rounds(&mut self, from: Descended, reach: f64, options: &Options, most: usize) -> Result<Best> {
        let Descended { theta, sums, trace } = from;
        let aim = options.tolerance.min(AIM);
        let objective = trace[trace.len() - 1];
        let mut best = Best {
            theta: theta.clone(),
            objective,
            gap: f64::INFINITY,
            trace,
            outliers: 0,
            gathered: 0,
            status: Status::IterationLimit,
        };
        let half_width = self.given.half_width(&theta, &sums, most, reach);
        let mut now = Band { theta, half_width, forced: Vec::new() };
        drop(sums);
        // what the last solve was made of, and the gap it came with
        let mut before: Option<(Band, f64)> = None;
        let mut retreats = 0;
        for round in 0..ROUNDS {
            if self.control.out_of_time() {
                best.status = Status::TimeLimit;
                break;
            }
            let found = self.gather(&now, before.as_ref().map(|(band, _)| band), most)?;
            let objective = self.penalty(&now.theta) + found.loss;
            let convex = (objective - found.beyond).max(f64::MIN_POSITIVE);
            let gap = before.as_ref().map_or(f64::INFINITY, |(_, gap)| (gap + found.wrong) / convex);
            let told = objective * self.given.largest;
            self.control.report(Progress { stage: "stream", step: round, objective: told, gap });
            let lower = objective <= best.objective;
            let falls = objective < best.objective * (1.0 - ROUNDING);
            // what is higher by no more than its gap is as good and certified
            if lower || gap <= aim && objective - best.objective <= gap * objective && best.gap > aim {
                best.trace.retain(|value| *value > objective);
                best.trace.push(objective);
                best.objective = objective;
                best.theta.clone_from(&now.theta);
                (best.gap, best.outliers, best.gathered) = (gap, found.outliers, found.count);
            }
            if gap <= aim || before.is_some() && found.violators.is_empty() && !falls {
                // what is left of the gap is the rounding of the solver in memory
                best.status = Status::Inaccurate;
                break;
            }
            if before.is_some() && !lower {
                retreats += 1;
                if retreats == RETREATS && !self.given.spec.ceiling.is_finite() {
                    break;
                }
                // too far for what was taken for affine: the best point on the way, and down from there
                let Some((theta, sums)) = self.retreat(&best, &now)? else {
                    best.status = Status::Inaccurate;
                    break;
                };
                let objective = self.penalty(&theta) + sums.loss;
                if objective < best.objective {
                    // no more is known of it
                    best.trace.push(objective);
                    best.theta.clone_from(&theta);
                    (best.objective, best.gap) = (objective, f64::INFINITY);
                }
                let half_width = self.given.half_width(&theta, &sums, most, FARTHEST);
                now = Band { theta, half_width, forced: Vec::new() };
                before = None;
                continue;
            }
            let gathered = now.clone();
            now.forced.extend_from_slice(&found.violators);
            now.forced.sort_unstable();
            now.forced.dedup();
            if now.forced.len() > most / 2 {
                now.forced.clear();
            }
            if found.count > most {
                // fewer rows, at the same place
                now.half_width = (0.5 * now.half_width).min(FARTHEST);
                if now.half_width < LEAST_BAND {
                    best.status = Status::Inaccurate;
                    break;
                }
                before = None;
                continue;
            }
            let inner = self.finish(&found, &now, options)?;
            now.theta = self.given.held(inner.theta);
            before = Some((gathered, inner.gap));
        }
        if best.gap <= options.tolerance {
            best.status = Status::Converged;
        }
        // 0 is a bound
        best.gap = best.gap.min(1.0);
        Ok(best)
    }

    /// The lowest point on the way from the best to one that is higher, then Newton's method with a width below that of the band that
    /// led astray. Nothing if neither is lower: what is gathered there would be the same again.
    fn retreat(&mut self, best: &Best, far: &Band) -> Result<Option<(Vec<f64>, Sums)>> {
        let longest = (AHEAD * far.half_width / self.given.movement(&best.theta, &far.theta)).min(0.5);
        let steps: Vec<f64> = (0..HALVINGS).map(|k| longest * 0.5f64.powi(k)).collect();
        let values = self.ray(&best.theta, &far.theta, &steps, TINY_WIDTH)?;
        let lowest = (0..steps.len()).min_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(0);
        let step = if values[lowest] < best.objective { steps[lowest] } else { 0.0 };
        let theta: Vec<f64> = best.theta.iter().zip(&far.theta).map(|(from, to)| from + step * (to - from)).collect();
        let width = far.half_width.clamp(LEAST_WIDTH, WIDEST.min(self.given.spec.ceiling));
        let sums = self.statistics(&theta, width)?;
        let Reached { theta: lower, sums, .. } = self.descend(theta.clone(), sums, width, Then::Nothing)?;
        let exact = self.penalty(&lower) + sums.loss;
        let objective = values[lowest].min(best.objective);
        let enough = best.objective * (1.0 - TRIFLE);
        if exact <= objective {
            return Ok((exact < enough).then_some((lower, sums)));
        }
        if !(objective < enough) {
            return Ok(None);
        }
        let sums = self.statistics(&theta, width)?;
        Ok(Some((theta, sums)))
    }

    /// Rows beyond the truncation.
    pub(super) fn outliers(&mut self, theta: &[f64]) -> Result<u64> {
        let here = Band { theta: theta.to_vec(), half_width: 0.0, forced: Vec::new() };
        Ok(self.gather(&here, None, 0)?.outliers)
    }

    /// The exact answer on the gathered rows.
    fn finish(&self, found: &Found, now: &Band, options: &Options) -> Result<Polished> {
        let control = self.control.silent();
        if let Some(gathered) = self.gathered(found, now, &control, options) {
            return gathered.settle();
        }
        let x = self.rows_of(found)?;
        polish(&self.near(found, now, &x), &now.theta, options.seed, &control)
    }

    /// A point lower than where rows were gathered, by ways that other ceilings lead on these rows. Nothing where none is found.
    pub(super) fn explore(&self, found: &Found, now: &Band, options: &Options) -> Result<Option<Vec<f64>>> {
        let control = self.control.silent();
        if let Some(gathered) = self.gathered(found, now, &control, options) {
            return gathered.explore();
        }
        let x = self.rows_of(found)?;
        explore(&self.near(found, now, &x), &now.theta, options.seed, &control)
    }

    /// Where the penalty is not the squared norm.
    fn gathered<'a>(
        &'a self,
        found: &'a Found,
        now: &'a Band,
        control: &'a Control,
        options: &'a Options,
    ) -> Option<Gathered<'a>> {
        let penalty = self.given.separable.as_ref()?;
        Some(Gathered { given: &self.given, penalty, found, at: &now.theta, control, options })
    }

    fn rows_of<'a>(&self, found: &'a Found) -> Result<Dense<'a, f32>> {
        Dense::new(found.rows.rows(), self.given.spec.cols, &found.rows.x[..])
    }

    /// The problem of the gathered rows.
    fn near<'a>(&self, found: &'a Found, now: &Band, x: &'a Dense<f32>) -> Near<'a> {
        let spec = &self.given.spec;
        Near {
            x,
            unit: spec.unit,
            anchors: &found.rows.codes,
            caps: &found.rows.weights,
            classes: spec.classes,
            ridge: spec.ridge,
            linear: found.linear.clone(),
            constant: found.constant,
            intercept: spec.intercept,
            ceiling: spec.ceiling,
            reach: now.half_width,
            metric: self.given.metric.clone(),
            room: self.given.room,
        }
    }
}

/// The error of the scores that so many rows leave.
pub(super) fn error(spec: &Spec, rows: f64) -> f64 {
    3.0 * (spec.size() as f64 / rows.max(1.0)).sqrt()
}

impl Given<'_> {
    /// A width of the band within which no more rows lie than can be gathered.
    pub(super) fn half_width(&self, theta: &[f64], sums: &Sums, most: usize, reach: f64) -> f64 {
        // room for rows that change sides
        let most = most / 2;
        // counted as often as they are there
        let all = match sums.within.iter().position(|&count| count <= most as u64) {
            Some(halvings) => FARTHEST * 0.5f64.powi(halvings as i32),
            None => FARTHEST * 0.5f64.powi(sums.within.len() as i32),
        };
        // equal ones are gathered once
        let different = if self.often.is_empty() { 0.0 } else { self.reach(theta, most) };
        all.min(reach).max(different)
    }

    /// A distance from the kinks within which so many different terms lie, as the sample tells: a row that is there once stands for as many others as there are for each of the sample, and
    /// one that is there more often for itself.
    pub(super) fn reach(&self, theta: &[f64], wanted: usize) -> f64 {
        let sample = self.survey.sample();
        let each = self.survey.total() as f64 / sample.rows().max(1) as f64;
        let mut terms = Vec::new();
        each_term(&self.spec, sample, theta, |row, term, _| {
            let stands_for = match self.often.get(row) {
                None | Some(1) => each,
                Some(times) => 1.0 / f64::from(*times),
            };
            terms.push((term.distance(self.spec.ceiling), stands_for));
        });
        terms.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut count = 0.0;
        let enough = |(_, stands_for): &(f64, f64)| {
            count += stands_for;
            count > wanted as f64
        };
        terms.into_iter().find(enough).map_or(f64::INFINITY, |(distance, _)| distance)
    }
}
