//! The whole grid on the rows of a split: solved along paths, and judged on the rows held out.
//!
//! Solutions for q <= 1 start from each other and are one path; every q > 1 is a path by itself. Convex problems, q >= 1, need no guide: on a
//! split they are solved while all rows still are (`ahead`), so that no core waits. Whoever watches may end a path: the points that it had
//! not reached are not judged.

use crate::control::{Control, Progress};
use crate::data::{Design, Repeated};
use crate::error::Result;
use crate::model::Lq;
use crate::model::condense::Condensed;
use crate::problem::LqProblem;
use crate::select::tune::STAGE;
use crate::select::tune::part::{Owned, Part};
use crate::select::tune::score::{Payoff, of_rows};
use crate::solver::lq::{Guide, Path};
use crate::solver::{Options, Solution, Status};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the gap of a fit is multiplied by in a search, where errors and columns are all that counts, and the largest it then is.
const LOOSER: f64 = 10.0;
const LOOSEST: f64 = 1e-4;
/// Multipliers of all points, in numbers, that are kept to guide the folds, and numbers of the solutions for q = 1 on all of these.
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
    /// Splits, whose solutions for q = 1 are kept beside each other.
    pub splits: usize,
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

/// What is known before some values of q are solved.
#[derive(Default)]
struct Known<'a> {
    /// The same values of q on all rows, and which of them these are.
    guide: Option<(&'a [Vec<Solution>], &'a [u32])>,
    /// q = 1 on these rows.
    absolute: Option<&'a [Solution]>,
}

/// What was solved on a split before its guide was there.
pub(super) struct Ahead {
    /// q = 1, by C.
    absolute: Option<Vec<Solution>>,
    /// Of every point; those with q < 1 are to come.
    pub judged: Vec<Option<Judged>>,
}

/// A problem as it is solved.
struct View<'a> {
    problem: &'a LqProblem<'a>,
    /// Its rows, if equal ones have become one.
    few: Option<&'a Condensed>,
    mapped: &'a dyn Design,
    caps: &'a [f64],
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
            let solutions = self.solve(rows, &places, &Known::default())?;
            Ok(Group { places, solutions })
        };
        let groups: Vec<Result<Group>> = self.groups().into_par_iter().with_max_len(1).map(solve).collect();
        groups.into_iter().collect()
    }

    /// What the training rows of a split need no guide for, q >= 1, judged at once.
    pub fn ahead(&self, part: &Part) -> Result<Ahead> {
        let curved = || {
            let places: Vec<usize> = (0..self.qs.len()).filter(|&at| self.qs[at] > 1.0).collect();
            let solve = |at: usize| -> Result<Group> {
                let solutions = self.solve(&part.train, &[at], &Known::default())?;
                Ok(Group { places: vec![at], solutions })
            };
            places.into_par_iter().with_max_len(1).map(solve).collect::<Vec<_>>()
        };
        let (absolute, curved) = rayon::join(|| self.absolute(&part.train), curved);
        let (absolute, mut groups) = (absolute?, curved.into_iter().collect::<Result<Vec<Group>>>()?);
        let mut judged = self.judge(&groups, part);
        if let Some(solutions) = &absolute {
            groups.clear();
            let places = (0..self.qs.len()).filter(|&at| self.qs[at] == 1.0);
            groups.extend(places.map(|at| Group { places: vec![at], solutions: vec![solutions.clone()] }));
            judged = joined(judged, self.judge(&groups, part));
        }
        Ok(Ahead { judged, absolute })
    }

    /// The solutions for q = 1, from which those for smaller q start, if any q asks for them and those of all splits are not too much
    /// to keep.
    fn absolute(&self, owned: &Owned) -> Result<Option<Vec<Solution>>> {
        if self.qs.iter().all(|&q| q > 1.0) {
            return Ok(None);
        }
        self.on_rows(owned, |view| {
            let each = view.problem.functions * (2 * view.problem.rows() + view.problem.x.cols());
            if each.saturating_mul(self.cs.len()).saturating_mul(self.splits) > MOST_KEPT {
                return Ok(None);
            }
            let path = Path { qs: &[1.0], ..self.path() };
            Ok(path.solve(view.problem, &self.options(), &self.ending())?.into_iter().next())
        })
    }

    /// The rest of the grid on the training rows of a split, guided by all rows, which these are of; what is found is judged at once.
    pub fn part(&self, part: &Part, train: &[u32], whole: &[Group], ahead: Ahead) -> Result<Vec<Option<Judged>>> {
        let Some(group) = whole.iter().find(|group| group.places.iter().any(|&at| self.qs[at] <= 1.0)) else {
            return Ok(ahead.judged);
        };
        let is_guided = group.places.iter().any(|&at| self.qs[at] < 1.0);
        let guide = is_guided.then_some((&group.solutions[..], train));
        let known = Known { guide, absolute: ahead.absolute.as_deref() };
        let solutions = self.solve(&part.train, &group.places, &known)?;
        Ok(joined(ahead.judged, self.judge(&[Group { places: group.places.clone(), solutions }], part)))
    }

    /// Some values of q on some rows.
    fn solve(&self, owned: &Owned, places: &[usize], known: &Known) -> Result<Vec<Vec<Solution>>> {
        let qs: Vec<f64> = places.iter().map(|&at| self.qs[at]).collect();
        let found = self.on_rows(owned, |view| {
            let guide =
                known.guide.map(|(solutions, rows)| guide_of(solutions, rows, view.few, view.problem.functions));
            let path = Path { qs: &qs, guide, absolute: known.absolute, ..self.path() };
            let found = path.solve(view.problem, &self.options(), &self.ending())?;
            let kept = view.problem.functions * owned.labels.len() * self.cs.len() * self.qs.len() <= MOST_KEPT;
            let finish = |solution: Solution| match view.few {
                _ if !kept => slim(solution),
                Some(few) => few.expand(solution, view.mapped, view.caps),
                None => solution,
            };
            Ok(found.into_iter().map(|list| list.into_iter().map(finish).collect()).collect())
        })?;
        if !(self.stop)() {
            self.tell(qs.len() * self.cs.len());
        }
        Ok(found)
    }

    /// Lets `run` solve the problem of some rows, of equal ones one.
    fn on_rows<T>(&self, owned: &Owned, run: impl FnOnce(&View) -> Result<T>) -> Result<T> {
        let labels = &owned.labels;
        let caps = self.base.unit_caps_of_some(labels, owned.weights.as_deref())?;
        self.base.on_columns(owned.rows.as_design(), |mapped| {
            let few = match self.base.is_small(mapped, labels) {
                true => Some(Condensed::new(mapped, labels, &caps)?),
                false => None,
            };
            let fewer = few.as_ref().map(|few| Repeated::new(mapped, few.rows.clone()));
            let problem = match (&few, &fewer) {
                (Some(few), Some(fewer)) => self.base.problem(fewer, &few.labels, &few.caps, &few.caps, self.cost),
                _ => self.base.problem(mapped, labels, &caps, &caps, self.cost),
            };
            run(&View { problem: &problem, few: few.as_ref(), mapped, caps: &caps })
        })
    }

    /// The path over all C.
    fn path(&self) -> Path<'_> {
        Path { cs: self.cs, qs: &[], screening: true, guide: None, absolute: None }
    }

    fn options(&self) -> Options {
        let mut options = self.base.common.search_options();
        options.tolerance = options.tolerance.max((LOOSER * options.tolerance).min(LOOSEST));
        options
    }

    fn ending(&self) -> Control<'_> {
        Control::default().finish(self.stop)
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

/// What was judged in one place or the other.
fn joined(one: Vec<Option<Judged>>, other: Vec<Option<Judged>>) -> Vec<Option<Judged>> {
    one.into_iter().zip(other).map(|(one, other)| one.or(other)).collect()
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
