//! Many columns of which few are used, by penalties sum rate |w|^q with q <= 1: the solver works on some columns, and the others are looked at
//! when it has ended.
//!
//! For q = 1 a column outside is missing where the derivative of the loss exceeds its rate; these enter, the worst first, until there are
//! none. For q < 1 a coefficient of 0 stays there whatever the derivative: the columns are those of the starts.

use super::passes::{Answer, Passes, Request};
use super::sums::State;
use super::{MOST_SUMS, Separable, Streamed, Survey, Task, Work, solve_by};
use crate::control::Control;
use crate::data::{Chunk, ChunkView};
use crate::error::{Error, Result};
use crate::solver::{Options, Status};

/// Rounds of columns.
const ROUNDS: usize = 30;
/// A derivative beyond its rate by more than this share makes a column enter, and how many may at once.
const BEYOND: f64 = 1e-3;
const AT_ONCE: usize = 200;
/// A round that lowers the objective by less, relatively, was the last.
const STILL: f64 = 1e-7;
/// Width of the smoothing at which derivatives are told.
const WIDTH: f64 = 1e-3;

/// The rows with some columns only.
struct Narrowed<'a> {
    passes: &'a mut dyn Passes,
    columns: &'a [u32],
    shift: Vec<f64>,
}

impl Passes for Narrowed<'_> {
    fn cols(&self) -> usize {
        self.columns.len()
    }

    fn shift(&self) -> &[f64] {
        &self.shift
    }

    fn rows(&self) -> Option<u64> {
        self.passes.rows()
    }

    fn pass(&mut self, request: &Request, control: &Control) -> Result<Answer> {
        self.passes.pass(&Request { asks: request.asks.clone(), columns: self.columns.to_vec() }, control)
    }
}

/// Some columns of a chunk.
pub(super) fn some_columns(rows: &ChunkView, columns: &[u32]) -> Result<Chunk> {
    let d = rows.x.len() / rows.rows().max(1);
    if let Some(column) = columns.iter().find(|column| rows.rows() > 0 && **column as usize >= d) {
        return Err(Error::shape(
            "X",
            format!("{d} columns"),
            format!("those that were surveyed, {column} among them"),
        ));
    }
    let mut x = Vec::with_capacity(rows.rows() * columns.len());
    for row in rows.x.chunks_exact(d.max(1)) {
        x.extend(columns.iter().map(|column| row[*column as usize]));
    }
    Ok(Chunk { first: rows.first, x, codes: rows.codes.to_vec(), weights: rows.weights.to_vec() })
}

/// Solves with few columns at a time.
pub(super) fn solve(
    passes: &mut dyn Passes,
    survey: &Survey,
    task: &Task,
    penalty: &Separable,
    options: &Options,
    control: &Control,
) -> Result<Streamed> {
    let d = passes.cols();
    let m = if task.classes == 2 { 1 } else { task.classes };
    let shift = passes.shift().to_vec();
    let mut starts: Vec<Vec<f64>> = task.starts.iter().filter(|start| start.len() == m * (d + 1)).cloned().collect();
    let mut columns: Vec<u32> =
        (0..d as u32).filter(|&column| starts.iter().any(|start| is_used(&start[..m * d], column, d))).collect();
    let (mut before, mut trace, mut last): (usize, Vec<f64>, f64) = (survey.passes, Vec::new(), f64::INFINITY);
    for round in 0.. {
        if columns.is_empty() {
            columns.push(0);
        }
        let few = narrowed(task, penalty, &columns, &starts, d);
        check(&few, columns.len(), d)?;
        let here = columns.iter().map(|&column| shift.get(column as usize).copied().unwrap_or(0.0)).collect();
        let own = if shift.is_empty() { Vec::new() } else { here };
        let mut rows = Narrowed { passes: &mut *passes, columns: &columns, shift: own };
        let mut found = solve_by(&mut rows, &survey.with_columns(&columns)?, &few, false, options, control)?;
        // the survey's passes were for all
        before += found.passes - survey.passes;
        let mut weights = vec![0.0; m * d];
        for (at, w) in found.weights.iter().enumerate() {
            weights[at / columns.len() * d + columns[at % columns.len()] as usize] = *w;
        }
        trace.extend(
            found
                .trace
                .iter()
                .filter(|value| trace.last().is_none_or(|last| *value < last))
                .copied()
                .collect::<Vec<_>>(),
        );
        found.weights = weights;
        let late = matches!(found.status, Status::TimeLimit) || round == ROUNDS;
        let still = last - found.objective <= STILL * found.objective.abs();
        last = found.objective;
        let missing = match penalty.q == 1.0 && !late && !still {
            true => {
                before += 1;
                missing(passes, survey, task, penalty, &found, &columns, control)?
            }
            false => Vec::new(),
        };
        if missing.is_empty() {
            if round == ROUNDS && found.status == Status::Converged && penalty.q == 1.0 {
                found.status = Status::IterationLimit;
            }
            return Ok(Streamed { passes: before, trace, solver: super::NAMES[2], ..found });
        }
        columns.retain(|&column| is_used(&found.weights, column, d));
        columns.extend(missing);
        columns.sort_unstable();
        starts = vec![found.start(&shift)];
    }
    unreachable!("the last round returns")
}

fn is_used(weights: &[f64], column: u32, d: usize) -> bool {
    weights[column as usize..].iter().step_by(d).any(|w| *w != 0.0)
}

fn check(task: &Task, columns: usize, d: usize) -> Result<()> {
    let m = task.functions();
    let sums = (m * (columns + 1)).saturating_mul(m * (columns + 1));
    if sums > MOST_SUMS {
        let found = format!("{columns} of {d} columns in use, whose sums are {sums} numbers");
        return Err(Error::shape("X", found, format!("at most {MOST_SUMS} numbers: a smaller C, or rows in memory")));
    }
    let needed = task.bytes(columns);
    if needed > task.memory {
        let found = format!("{columns} of {d} columns in use, which take {} MB", needed.div_ceil(1_000_000));
        let allowed = format!("no more than the memory, {} MB: a smaller C, or more memory", task.memory / 1_000_000);
        return Err(Error::shape("X", found, allowed));
    }
    Ok(())
}

/// The task of some columns.
fn narrowed(task: &Task, penalty: &Separable, columns: &[u32], starts: &[Vec<f64>], d: usize) -> Task {
    let m = penalty.rates.len() / d;
    let pick = |values: &[f64]| -> Vec<f64> {
        (0..m).flat_map(|function| columns.iter().map(move |column| values[function * d + *column as usize])).collect()
    };
    let start = |start: &Vec<f64>| [pick(&start[..m * d]), start[m * d..].to_vec()].concat();
    let penalty = Some(Separable { q: penalty.q, rates: pick(&penalty.rates) });
    Task { penalty, starts: starts.iter().map(start).collect(), ..task.clone() }
}

/// Columns outside whose derivative exceeds their rate, the worst first.
fn missing(
    passes: &mut dyn Passes,
    survey: &Survey,
    task: &Task,
    penalty: &Separable,
    found: &Streamed,
    columns: &[u32],
    control: &Control,
) -> Result<Vec<u32>> {
    let d = passes.cols();
    let m = penalty.rates.len() / d;
    let shift = passes.shift().to_vec();
    let mut work = Work::new(passes, survey, task, true, control)?;
    let spec = work.given.spec.clone();
    let mut theta = vec![0.0; spec.size()];
    for (function, row) in theta.chunks_exact_mut(d + 1).enumerate() {
        let own = &found.weights[function * d..(function + 1) * d];
        row.iter_mut().zip(own).for_each(|(theta, w)| *theta = w / spec.unit);
        // rows are told without what was taken off
        row[d] = found.intercepts[function] + own.iter().zip(&shift).map(|(w, shift)| w * shift).sum::<f64>();
    }
    let sums = work.asking.statistics(&spec, State { theta, width: WIDTH })?;
    let ratio = |column: usize| {
        let of = |function: usize| {
            (sums.gradient[function * (d + 1) + column] * work.given.largest, penalty.rates[function * d + column])
        };
        beyond(m, (0..m).map(of))
    };
    // as exact as those in use are, which are at their rates
    let used = columns.iter().filter(|column| is_used(&found.weights, **column, d));
    let bound =
        used.map(|column| ratio(*column as usize)).filter(|ratio| ratio.is_finite()).fold(1.0 + BEYOND, f64::max);
    let mut outside: Vec<(f64, u32)> = (0..d as u32)
        .filter(|column| columns.binary_search(column).is_err())
        .map(|column| (ratio(column as usize), column))
        .filter(|(ratio, _)| *ratio > bound)
        .collect();
    outside.sort_by(|a, b| b.0.total_cmp(&a.0));
    outside.truncate(AT_ONCE.max(columns.len()));
    Ok(outside.into_iter().map(|(_, column)| column).collect())
}

/// The largest factor by which derivatives exceed rates; of several functions, whose coefficients sum up to 0, differences of two.
pub(super) fn beyond(functions: usize, entries: impl Iterator<Item = (f64, f64)>) -> f64 {
    let entries: Vec<(f64, f64)> = entries.filter(|(_, rate)| rate.is_finite()).collect();
    let ratio = |size: f64, rate: f64| if size > 0.0 { size / rate } else { 0.0 };
    match entries[..] {
        [(g, rate)] if functions == 1 => ratio(g.abs(), rate),
        _ => {
            let pairs =
                entries.iter().enumerate().flat_map(|(at, one)| entries[..at].iter().map(move |two| (one, two)));
            pairs.map(|(one, two)| ratio((one.0 - two.0).abs(), one.1 + two.1)).fold(0.0, f64::max)
        }
    }
}
