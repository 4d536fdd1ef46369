//! The whole grid on the rows of a split: solved along paths, and judged on the rows held out.
//!
//! Solutions for q <= 1 start from each other and are one path; every q > 1 is a path by itself. A split is solved from its training rows alone:
//! for q < 1, where zeros stay zeros, a start from all rows would bring in the columns that the rows held out speak for. Whoever watches may
//! end a path: the points that it had not reached are not judged.

use crate::control::{Control, Progress};
use crate::data::Repeated;
use crate::error::Result;
use crate::model::Lq;
use crate::model::condense::Condensed;
use crate::problem::LqProblem;
use crate::select::tune::STAGE;
use crate::select::tune::part::{Owned, Part};
use crate::select::tune::score::{Payoff, of_rows};
use crate::solver::lq::Path;
use crate::solver::{Options, Solution, Status};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the gap of a fit is multiplied by on all rows, and once more on splits, where errors and columns are all that counts, and the
/// largest it then is.
const LOOSER: f64 = 10.0;
const LOOSEST: f64 = 1e-4;

/// A grid of C and q, and how to walk over it.
#[derive(Clone, Copy)]
pub(super) struct Walk<'a> {
    pub base: &'a Lq,
    pub cs: &'a [f64],
    pub qs: &'a [f64],
    pub payoff: &'a Payoff,
    pub cost: Option<&'a [f64]>,
    /// Ends a path with what it has.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Who is told.
    pub control: Control<'a>,
    /// Points told so far, over all searches of a nested cross-validation.
    pub done: &'a AtomicUsize,
}

/// Values of q that are solved together.
pub(super) struct Group {
    /// Their places in the list.
    places: Vec<usize>,
    /// By q, then by C.
    solutions: Vec<Vec<Solution>>,
}

/// What a point lost on the rows held out of a split, and which columns it used.
#[derive(Clone)]
pub(super) struct Judged {
    pub error: f64,
    /// Standard error over the rows.
    pub spread: f64,
    pub columns: Vec<u32>,
    /// Whether it was solved to the tolerance.
    pub converged: bool,
}

impl Walk<'_> {
    /// Places in the list of q that are solved together.
    fn groups(&self) -> Vec<Vec<usize>> {
        let (below, above): (Vec<usize>, Vec<usize>) = (0..self.qs.len()).partition(|&at| self.qs[at] <= 1.0);
        let groups = std::iter::once(below).chain(above.into_iter().map(|at| vec![at]));
        groups.filter(|places| !places.is_empty()).collect()
    }

    /// All rows.
    pub fn whole(&self, rows: &Owned) -> Result<Vec<Group>> {
        self.solve(rows, false)
    }

    /// The training rows of a split; what is found is judged at once.
    pub fn part(&self, part: &Part) -> Result<Vec<Option<Judged>>> {
        Ok(self.judge(&self.solve(&part.train, true)?, part))
    }

    /// The grid on some rows, of which equal ones are one.
    fn solve(&self, owned: &Owned, decisions: bool) -> Result<Vec<Group>> {
        let labels = &owned.labels;
        let caps = self.base.unit_caps_of_some(labels, owned.weights.as_deref())?;
        self.base.on_columns(owned.rows.as_design(), |mapped| {
            if !self.base.is_small(mapped, labels) {
                return self.paths(&self.base.problem(mapped, labels, &caps, &caps, self.cost), decisions);
            }
            let few = Condensed::new(mapped, labels, &caps)?;
            let fewer = Repeated::new(mapped, few.rows.clone());
            self.paths(&self.base.problem(&fewer, &few.labels, &few.caps, &few.caps, self.cost), decisions)
        })
    }

    /// Every group, side by side; with `decisions` these are all that counts.
    fn paths(&self, problem: &LqProblem, decisions: bool) -> Result<Vec<Group>> {
        let solve = |places: Vec<usize>| -> Result<Group> {
            let qs: Vec<f64> = places.iter().map(|&at| self.qs[at]).collect();
            let path = Path { cs: self.cs, qs: &qs, screening: true, decisions };
            let found = path.solve(problem, &self.options(decisions), &Control::default().finish(self.stop))?;
            if !(self.stop)() {
                self.tell(qs.len() * self.cs.len());
            }
            Ok(Group {
                places,
                solutions: found.into_iter().map(|list| list.into_iter().map(slim).collect()).collect(),
            })
        };
        let groups: Vec<Result<Group>> = self.groups().into_par_iter().with_max_len(1).map(solve).collect();
        groups.into_iter().collect()
    }

    fn options(&self, decisions: bool) -> Options {
        let mut options = self.base.common.search_options();
        let looser = |tolerance: f64, most: f64| tolerance.max((LOOSER * tolerance).min(most));
        options.tolerance = looser(options.tolerance, LOOSEST);
        if decisions {
            options.tolerance = looser(options.tolerance, LOOSER * LOOSEST);
        }
        options
    }

    fn tell(&self, points: usize) {
        let step = self.done.fetch_add(points, Ordering::Relaxed) + points;
        self.control.report(Progress { stage: STAGE, step, objective: f64::NAN, gap: f64::NAN });
    }

    /// Every point that was reached, by q and then by C.
    pub fn judge(&self, groups: &[Group], part: &Part) -> Vec<Option<Judged>> {
        let mut judged = vec![None; self.qs.len() * self.cs.len()];
        self.base.on_columns(part.held.as_design(), |mapped| {
            let features = part.held.as_design().cols();
            for (place, list) in groups.iter().flat_map(|group| group.places.iter().zip(&group.solutions)) {
                for (at, solution) in list.iter().enumerate().filter(|(_, point)| point.status != Status::TimeLimit) {
                    let decided = |row: usize| decide(solution, |w| mapped.dot(row, w));
                    let loss = |(row, &truth): (usize, &u32)| self.payoff.loss(truth, decided(row));
                    let losses: Vec<f64> = part.codes.iter().enumerate().map(loss).collect();
                    let (error, spread) = of_rows(&losses, &part.weights);
                    let (columns, converged) = (columns(features, solution), solution.status == Status::Converged);
                    judged[place * self.cs.len() + at] = Some(Judged { error, spread, columns, converged });
                }
            }
        });
        judged
    }

    /// The solutions by q and then by C.
    pub fn flattened(&self, groups: Vec<Group>) -> Vec<Solution> {
        let mut lists: Vec<(usize, Vec<Solution>)> =
            groups.into_iter().flat_map(|group| group.places.into_iter().zip(group.solutions)).collect();
        lists.sort_by_key(|(place, _)| *place);
        lists.into_iter().flat_map(|(_, list)| list).collect()
    }
}

/// The class that a solution decides for, by w'x of a row.
fn decide(solution: &Solution, dot: impl Fn(&[f64]) -> f64) -> u32 {
    let (weights, m) = (solution.weights.as_deref().unwrap_or(&[]), solution.intercepts.len());
    let width = weights.len() / m.max(1);
    let value = |j: usize| dot(&weights[j * width..(j + 1) * width]) + solution.intercepts[j];
    if m == 1 {
        return u32::from(value(0) > 0.0);
    }
    let values: Vec<f64> = (0..m).map(value).collect();
    (0..m).fold(0, |best, j| if values[j] > values[best] { j } else { best }) as u32
}

/// Columns of X that a solution uses.
pub(super) fn columns(features: usize, solution: &Solution) -> Vec<u32> {
    let used = solution.weights.iter().flatten().enumerate().filter(|(_, w)| **w != 0.0);
    let mut columns: Vec<u32> = used.map(|(at, _)| (at % features.max(1)) as u32).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// A solution without what belongs to its rows.
fn slim(solution: Solution) -> Solution {
    Solution { expansion: Vec::new(), decision: Vec::new(), ..solution }
}
