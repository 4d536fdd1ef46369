//! The whole grid on the rows of a split: solved along paths, and judged on the rows held out.
//!
//! Solutions for q <= 1 start from each other and are one path; every q > 1 is a path by itself. Whoever watches may end a path: the points
//! that it had not reached are not judged.

use crate::control::{Control, Progress};
use crate::data::Repeated;
use crate::error::Result;
use crate::model::Lq;
use crate::model::condense::Condensed;
use crate::select::tune::STAGE;
use crate::select::tune::part::{Owned, Part};
use crate::select::tune::score::{Payoff, of_rows};
use crate::solver::lq::{Guide, Path};
use crate::solver::{Solution, Status};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the gap of a fit is multiplied by in a search, where errors and columns are all that counts, and the largest it then is.
const LOOSER: f64 = 10.0;
const LOOSEST: f64 = 1e-4;
/// Multipliers of all points, in numbers, that are kept to guide the folds.
const MOST_KEPT: usize = 20_000_000;

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
        let solve = |places: Vec<usize>| -> Result<Group> {
            let solutions = self.solve(rows, &places, None)?;
            Ok(Group { places, solutions })
        };
        let groups: Vec<Result<Group>> = self.groups().into_par_iter().with_max_len(1).map(solve).collect();
        groups.into_iter().collect()
    }

    /// The training rows of a split, guided by all rows, which these are of; what is found is judged at once.
    pub fn part(&self, part: &Part, train: &[u32], whole: &[Group]) -> Result<Vec<Option<Judged>>> {
        let solve = |group: &Group| -> Result<Group> {
            // convex problems do not need one
            let is_guided = group.places.iter().any(|&at| self.qs[at] < 1.0);
            let guide = is_guided.then_some((&group.solutions[..], train));
            let solutions = self.solve(&part.train, &group.places, guide)?;
            Ok(Group { places: group.places.clone(), solutions })
        };
        let groups: Vec<Result<Group>> = whole.par_iter().with_max_len(1).map(solve).collect();
        Ok(self.judge(&groups.into_iter().collect::<Result<Vec<Group>>>()?, part))
    }

    /// Some values of q on some rows; a guide is the same of all rows, and which of them these are.
    fn solve(
        &self,
        owned: &Owned,
        places: &[usize],
        guide: Option<(&[Vec<Solution>], &[u32])>,
    ) -> Result<Vec<Vec<Solution>>> {
        let (x, labels) = (owned.rows.as_design(), &owned.labels);
        let caps = self.base.unit_caps_of_some(labels, owned.weights.as_deref())?;
        let qs: Vec<f64> = places.iter().map(|&at| self.qs[at]).collect();
        let found = self.base.on_columns(x, |mapped| {
            let few = match self.base.is_small(mapped, labels) {
                true => Some(Condensed::new(mapped, labels, &caps)?),
                false => None,
            };
            let fewer = few.as_ref().map(|few| Repeated::new(mapped, few.rows.clone()));
            let problem = match (&few, &fewer) {
                (Some(few), Some(fewer)) => self.base.problem(fewer, &few.labels, &few.caps, self.cost),
                _ => self.base.problem(mapped, labels, &caps, self.cost),
            };
            let guide = guide.map(|(solutions, rows)| guide_of(solutions, rows, few.as_ref(), problem.functions));
            let path = Path { cs: self.cs, qs: &qs, screening: true, guide };
            let mut options = self.base.common.search_options();
            options.tolerance = options.tolerance.max((LOOSER * options.tolerance).min(LOOSEST));
            let found = path.solve(&problem, &options, &Control::default().finish(self.stop))?;
            let kept = problem.functions * labels.len() * self.cs.len() * self.qs.len() <= MOST_KEPT;
            let finish = |solution: Solution| match &few {
                _ if !kept => slim(solution),
                Some(few) => few.expand(solution, mapped, &caps),
                None => solution,
            };
            Ok(found.into_iter().map(|list| list.into_iter().map(finish).collect()).collect())
        })?;
        if !(self.stop)() {
            self.tell(qs.len() * self.cs.len());
        }
        Ok(found)
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
                    let columns = columns(features, solution);
                    judged[place * self.cs.len() + at] = Some(Judged { error, spread, columns });
                }
            }
        });
        judged
    }

    /// The solutions by q and then by C, without what belongs to their rows.
    pub fn flattened(&self, groups: Vec<Group>) -> Vec<Solution> {
        let mut lists: Vec<(usize, Vec<Solution>)> =
            groups.into_iter().flat_map(|group| group.places.into_iter().zip(group.solutions)).collect();
        lists.sort_by_key(|(place, _)| *place);
        lists.into_iter().flat_map(|(_, list)| list).map(slim).collect()
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

/// The path of all rows as a guide for some of them, which `few` may have condensed.
fn guide_of<'a>(solutions: &'a [Vec<Solution>], rows: &[u32], few: Option<&Condensed>, functions: usize) -> Guide<'a> {
    let on_rows = |solution: &Solution| -> Vec<f64> {
        let of_row = |&row: &u32| &solution.expansion[row as usize * functions..][..functions];
        let some: Vec<f64> = rows.iter().flat_map(of_row).copied().collect();
        few.map_or(some.clone(), |few| few.gather(&some, functions))
    };
    let known = solutions.iter().flatten().all(|solution| !solution.expansion.is_empty());
    let expansions = if known { solutions.iter().flatten().map(on_rows).collect() } else { Vec::new() };
    Guide { solutions, expansions }
}

/// A solution without what belongs to its rows.
fn slim(solution: Solution) -> Solution {
    Solution { expansion: Vec::new(), decision: Vec::new(), ..solution }
}
