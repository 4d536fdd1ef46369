//! The search itself: which points are fitted on which splits, and which are given up on the way.
//!
//! **Hopeless points.** After the first splits, and with many splits once more half-way, each point is compared with the best so far on the rows held out
//! of both. With d_i the weighted difference of their losses on row i, a point is given up where
//!
//! ```text
//! sum_i d_i - 3 sqrt(sum_i d_i^2)  >  m sum_i weight_i
//! ```
//!
//! that is, where it is behind by more than three standard errors of the difference (McNemar's test, for mistakes). m is 0; with the
//! rule of one standard error it is one and a half standard errors of the best, so that no point that the rule could take is lost. What is
//! compared, and when, does not depend on the number of threads.
//!
//! **Successive halving.** Every point is fitted to a ninth of the training rows of each split, the best third of them to a third of the
//! rows, the best third of these to all.

use super::line::{Line, Runner};
use super::part::{Labelled, Part};
use super::score::{self, mean};
use super::tuned::{Cell, State};
use super::{Ended, Rule, STAGE};
use crate::control::{Control, Progress};
use crate::error::Result;
use crate::problem::Kernel;
use crate::select::Split;
use crate::select::folds::shuffle;
use crate::solver::kernel::{KernelStore, SharedRows};
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Standard errors by which a hopeless point is behind.
const BEHIND: f64 = 3.0;

/// Standard errors of the best within which the other rule may choose.
const MARGIN: f64 = 1.5;

/// Splits before the first comparison.
const FIRST: usize = 2;

/// What a step of halving divides by.
const FACTOR: usize = 3;

/// Fewest training rows of a class in a step of halving.
const FEWEST: usize = 20;

/// A search over given splits.
pub(super) struct Search<'a> {
    pub runner: Runner<'a>,
    pub lines: Vec<Line>,
    pub data: Labelled<'a>,
    /// What is held out of `data`, or other rows.
    pub by: Labelled<'a>,
    pub splits: &'a [Split],
    pub kernel: &'a Kernel,
    pub scale: bool,
    pub rule: Rule,
    pub early_stop: bool,
    pub halving: bool,
    pub seed: u64,
    pub control: Control<'a>,
    /// Steps told so far, over all searches of a nested cross-validation.
    pub done: &'a AtomicUsize,
}

/// What is known of a point.
struct Record {
    errors: Vec<f64>,
    /// Losses by split and row, weighted.
    losses: Vec<Option<Vec<f32>>>,
    /// Standard error over the rows of the last split judged.
    row_error: f64,
    share: f64,
    state: State,
}

impl Search<'_> {
    /// How many fits there are at most.
    pub fn steps(cells: usize, splits: usize, halving: bool) -> usize {
        let counts = if halving { halves(cells) } else { vec![cells] };
        counts.iter().sum::<usize>() * splits
    }

    pub fn run(&self) -> Result<(Vec<Cell>, Ended)> {
        let count = self.runner.cells.len();
        let mut records: Vec<Record> = (0..count).map(|_| Record::new(self.splits.len(), 0.0)).collect();
        let mut counts = vec![true; count];
        let mut ended = Ended::Done;
        let shared = self.shared_rows()?;
        for stage in self.stages(count) {
            let last = stage.keep.is_none();
            for round in self.rounds(last) {
                self.round(&round, stage.share, &shared, &mut counts, &mut records)?;
                ended = Ended::of(&self.control);
                if ended != Ended::Done {
                    break;
                }
                if last && self.early_stop && round.end < self.splits.len() {
                    self.give_up(round.end, &mut counts, &mut records);
                }
            }
            if ended != Ended::Done {
                break;
            }
            if let Some(keep) = stage.keep {
                self.halve(keep, &mut counts, &mut records);
            }
        }
        let cells = records.into_iter().zip(self.runner.cells).map(|(record, settings)| {
            let share = record.share;
            Cell { share, ..Cell::of(settings.clone(), record.errors, record.row_error, record.state) }
        });
        Ok((cells.collect(), ended))
    }

    /// By line, the kernel rows that its splits share: where columns stay as they are, and there are several splits.
    fn shared_rows(&self) -> Result<Vec<Option<SharedRows>>> {
        let bytes = self.runner.method.common().search_options().cache_bytes / self.lines.len().max(1);
        let of = |line: &Line| match self.scale || self.splits.len() < 2 {
            true => Ok(None),
            false => self.runner.shared_rows(line, self.data, bytes),
        };
        self.lines.iter().map(of).collect()
    }

    fn stages(&self, cells: usize) -> Vec<Stage> {
        if !self.halving {
            return vec![Stage { share: 1.0, keep: None }];
        }
        let counts = halves(cells);
        let share = |left: usize| (FACTOR as f64).powi(-(left as i32));
        let stage = |at: usize| Stage { share: share(counts.len() - 1 - at), keep: counts.get(at + 1).copied() };
        (0..counts.len()).map(stage).collect()
    }

    /// Splits that are judged before points are compared.
    fn rounds(&self, last: bool) -> Vec<std::ops::Range<usize>> {
        let all = self.splits.len();
        if !(last && self.early_stop) || all <= FIRST {
            return std::iter::once(0..all).collect();
        }
        let half = all.div_ceil(2);
        match all <= 5 {
            true => vec![0..FIRST, FIRST..all],
            false => vec![0..FIRST, FIRST..half, half..all],
        }
    }

    /// Fits and judges some splits.
    fn round(
        &self,
        splits: &std::ops::Range<usize>,
        share: f64,
        shared: &[Option<SharedRows>],
        counts: &mut [bool],
        records: &mut [Record],
    ) -> Result<()> {
        let trained = |at: usize| -> Arc<[u32]> {
            let train = &self.splits[at].train;
            if share < 1.0 { self.some(train, share).into() } else { train[..].into() }
        };
        let trained: Vec<Arc<[u32]>> = splits.clone().map(trained).collect();
        let part = |(at, rows): (usize, &Arc<[u32]>)| -> Result<Part> {
            Part::new(self.data, rows, self.by, &self.splits[at].test, self.kernel, self.scale)
        };
        let parts: Vec<Result<Part>> = splits.clone().into_par_iter().zip(&trained).map(part).collect();
        let parts = parts.into_iter().collect::<Result<Vec<Part>>>()?;
        let counting = |line: &usize| self.lines[*line].cells.iter().any(|&cell| counts[cell]);
        let lines: Vec<usize> = (0..self.lines.len()).filter(counting).collect();
        let units: Vec<(usize, usize)> =
            (0..parts.len()).flat_map(|part| lines.iter().map(move |line| (part, *line))).collect();
        let silent = self.control.silent();
        let told = || self.tell(1);
        let run = |&(part, line): &(usize, usize)| {
            let within = |whole: &SharedRows| KernelStore::within(whole.clone(), trained[part].clone());
            let store = shared[line].as_ref().map_or_else(KernelStore::default, within);
            self.runner.run(&parts[part], &self.lines[line], counts, &silent, &told, store)
        };
        let found: Vec<Result<Vec<super::line::Judged>>> = units.par_iter().with_max_len(1).map(run).collect();
        for ((part, _), judged) in units.iter().zip(found) {
            let (at, weights) = (splits.start + part, &parts[*part].weights);
            for judged in judged? {
                let record = &mut records[judged.cell];
                // what was found with fewer rows gives way to what is found with more
                if record.share != share {
                    *record = Record::new(self.splits.len(), share);
                }
                let (error, spread) = score::of_rows(&judged.losses, weights);
                (record.errors[at], record.row_error) = (error, spread);
                let lost = |(loss, weight): (&f64, &f64)| (loss * weight) as f32;
                record.losses[at] = Some(judged.losses.iter().zip(weights).map(lost).collect());
                record.state = State::Partly;
            }
        }
        if splits.end == self.splits.len() {
            let through = records.iter_mut().zip(counts).filter(|(record, counts)| **counts && record.is_through());
            through.for_each(|(record, _)| record.state = State::Done);
        }
        Ok(())
    }

    fn tell(&self, steps: usize) {
        let step = self.done.fetch_add(steps, Ordering::Relaxed) + steps;
        self.control.report(Progress { stage: STAGE, step, objective: f64::NAN, gap: f64::NAN });
    }

    /// Gives up the points that are too far behind the best.
    fn give_up(&self, splits: usize, counts: &mut [bool], records: &mut [Record]) {
        let known = |record: &Record| mean(&record.errors[..splits]);
        let open = (0..records.len()).filter(|&cell| counts[cell]);
        let Some(best) = open.min_by(|&a, &b| known(&records[a]).total_cmp(&known(&records[b]))) else { return };
        let margin = if self.rule == Rule::OneSe { MARGIN } else { 0.0 };
        let best_sum = records[best].sums(splits, |_, loss| loss);
        let rows = records[best].losses[..splits].iter().flatten().map(Vec::len).sum::<usize>() as f64;
        let centre = best_sum.0 / rows.max(1.0);
        let best_spread = records[best].sums(splits, |_, loss| loss - centre).1.sqrt();
        let hopeless = |cell: usize| {
            let (sum, squares) = records[cell].against(&records[best], splits);
            sum - BEHIND * squares.sqrt() > margin * best_spread
        };
        let lost: Vec<usize> =
            (0..records.len()).filter(|&cell| counts[cell] && cell != best && hopeless(cell)).collect();
        for cell in lost {
            counts[cell] = false;
            records[cell].state = State::Stopped;
            self.tell(self.splits.len() - splits);
        }
    }

    /// Keeps the best points.
    fn halve(&self, keep: usize, counts: &mut [bool], records: &mut [Record]) {
        let mut order: Vec<usize> = (0..records.len()).filter(|&cell| counts[cell]).collect();
        order.sort_by(|&a, &b| mean(&records[a].errors).total_cmp(&mean(&records[b].errors)).then(a.cmp(&b)));
        for &cell in order.iter().skip(keep) {
            counts[cell] = false;
            records[cell].state = State::Stopped;
        }
    }

    /// A share of the rows of each class, drawn by the seed.
    fn some(&self, train: &[u32], share: f64) -> Vec<u32> {
        let codes = self.data.labels.codes();
        let mut random = self.seed ^ 0x5bd1_e995;
        let mut taken = Vec::new();
        for class in 0..self.data.labels.classes().len() as u32 {
            let mut own: Vec<u32> = train.iter().copied().filter(|&row| codes[row as usize] == class).collect();
            shuffle(&mut own, &mut random);
            // rows of weight first: every class must keep some
            own.sort_by_key(|&row| self.data.weight(row) == 0.0);
            let wanted = ((share * own.len() as f64).ceil() as usize).max(FEWEST).min(own.len());
            taken.extend_from_slice(&own[..wanted]);
        }
        taken.sort_unstable();
        taken
    }
}

/// A step of halving: the share of the training rows, and how many points go on from it.
struct Stage {
    share: f64,
    keep: Option<usize>,
}

/// Points fitted in each step.
fn halves(cells: usize) -> Vec<usize> {
    let mut counts = vec![cells];
    while counts.len() < 3 && counts[counts.len() - 1] > 2 {
        counts.push(counts[counts.len() - 1].div_ceil(FACTOR));
    }
    counts
}

impl Record {
    fn new(splits: usize, share: f64) -> Record {
        let (errors, losses) = (vec![f64::NAN; splits], vec![None; splits]);
        Record { errors, losses, row_error: f64::NAN, share, state: State::NotReached }
    }

    fn is_through(&self) -> bool {
        self.losses.iter().all(Option::is_some)
    }

    /// Sum and sum of squares over the rows judged.
    fn sums(&self, splits: usize, of: impl Fn(usize, f64) -> f64) -> (f64, f64) {
        let mut sums = (0.0, 0.0);
        for losses in self.losses[..splits].iter().flatten() {
            for (row, &loss) in losses.iter().enumerate() {
                let value = of(row, f64::from(loss));
                sums = (sums.0 + value, sums.1 + value * value);
            }
        }
        sums
    }

    /// The same of the differences from another point.
    fn against(&self, other: &Record, splits: usize) -> (f64, f64) {
        let mut sums = (0.0, 0.0);
        for (own, other) in self.losses[..splits].iter().zip(&other.losses) {
            let (Some(own), Some(other)) = (own, other) else { continue };
            for (own, other) in own.iter().zip(other) {
                let difference = f64::from(*own) - f64::from(*other);
                sums = (sums.0 + difference, sums.1 + difference * difference);
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_divides_by_three_twice() {
        assert_eq!(halves(27), [27, 9, 3]);
        assert_eq!(halves(2), [2]);
        assert_eq!(halves(4), [4, 2]);
    }
}
