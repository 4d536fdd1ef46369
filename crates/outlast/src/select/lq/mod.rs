//! C and q of the L_q machine, chosen by cross-validation or on a tuning set.
//!
//! All rows, and the training rows of every split, are solved along the whole grid by [`Path`](crate::solver::lq::Path), in which each
//! point is the start of others (`walk`). No split knows anything of another or of all rows; they are spread over the cores. Columns are put
//! on one scale, points judged, and the choice made honest by nested cross-validation, as in [`tune`](super::tune); but all points of a split
//! are solved together, so that none is given up on the way. Of several points that the rule allows, the one with the fewest
//! variables on all rows is taken, then that of the smaller C. The model is the local minimum of the path,
//! followed to the tolerance of a fit: what the splits judged are minima like it, and not a lower one elsewhere.

mod values;
mod walk;

pub use values::{Cs, default_cs};

use super::Split;
use super::tune::judge::{check_nested, outer_splits};
use super::tune::part::{self, Labelled, Owned, Part};
use super::tune::score::Payoff;
use super::tune::{Axis, Cell, Ended, Judge, Nested, Rule, SEARCH_TIME, State, Tuned, grid, nested, tuned};
use crate::data::{Design, FeatureMap, Labels, Scaling, Standardized, Target};
use crate::error::{Error, Result, quoted};
use crate::model::{Estimator, FitRequest, Lq, Model, unscaled};
use crate::problem::Kernel;
use crate::solver::{Care, Solution, Start, Status};
use rayon::prelude::*;
use std::sync::atomic::AtomicUsize;
use walk::{Judged, Walk};

/// How many values of C are tried unless others are asked for.
pub const DEFAULT_COUNT: usize = 20;

/// Values of q tried unless others are asked for.
pub const DEFAULT_QS: [f64; 6] = [0.3, 0.5, 0.75, 1.0, 1.5, 2.0];

/// The part of the search's time that all rows may take, beside the splits.
const WHOLE_TIME: f64 = 0.5;

/// A grid of C and q to choose from.
///
/// ```
/// use outlast::{Dense, Lq, LqSearch};
///
/// let rows: Vec<[f64; 3]> = (0..40).map(|i| [f64::from(i % 7) - 3.0, f64::from(i % 5), f64::from(i % 3)]).collect();
/// let y: Vec<bool> = rows.iter().map(|row| row[0] > 0.0).collect();
/// let found = LqSearch::new(vec![0.1, 1.0], vec![0.5, 1.0]).folds(4).fit(&Dense::from_rows(&rows), &y)?;
/// assert_eq!(found.tuned.cells.len(), 4);
/// assert_eq!(found.tuned.model.selected(), Some(vec![0]));
/// assert_eq!(found.stability[0], 1.0);
/// # Ok::<(), outlast::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LqSearch {
    /// The parameters that are not searched: costs, weights, feature map, tolerance, threads, seed.
    pub base: Lq,
    /// The values of C, or how many.
    pub cs: Cs,
    /// The values of q.
    pub qs: Vec<f64>,
    /// What the points are judged by.
    pub judge: Judge,
    /// Whether columns are put on one scale as part of the model.
    pub standardize: bool,
    /// Which point is taken.
    pub rule: Rule,
    /// Folds of a cross-validation around the whole search, for an honest error.
    pub nested: Option<usize>,
}

/// One point of the grid, solved on all rows.
#[derive(Debug, Clone)]
pub struct Point {
    /// C
    pub c: f64,
    /// q
    pub q: f64,
    /// w, functions x columns, in the units of X; with squares of the columns, of the columns as the model scales them.
    pub weights: Vec<f64>,
    /// b, one per function.
    pub intercepts: Vec<f64>,
    /// The objective, on the columns as the model scales them.
    pub objective: f64,
    /// Columns of X with a coefficient that is not 0.
    pub size: usize,
    /// Whether the point was solved to the tolerance of the search, on all rows and on the training rows of every split that was judged.
    pub converged: bool,
}

/// What a search found. Lists over the grid run over q, and within it over C.
#[derive(Debug, Clone)]
pub struct LqChoice {
    /// The grid, what was chosen, and the model of that point, fitted to all rows.
    pub tuned: Tuned,
    /// The path on all rows.
    pub path: Vec<Point>,
    /// Share of the splits in which each column of X is selected at the chosen point; empty with a tuning set.
    pub stability: Vec<f64>,
}

impl LqChoice {
    /// The chosen point of the path.
    pub fn point(&self) -> &Point {
        &self.path[self.tuned.chosen]
    }
}

impl Default for LqSearch {
    /// [`DEFAULT_COUNT`] values of C by the data, [`DEFAULT_QS`], five folds, columns on one scale.
    fn default() -> Self {
        LqSearch::new(DEFAULT_COUNT, DEFAULT_QS.to_vec())
    }
}

impl LqSearch {
    /// A grid, or how many values of C and a list of q, with five folds and columns on one scale.
    pub fn new(cs: impl Into<Cs>, qs: Vec<f64>) -> Self {
        LqSearch {
            base: Lq::new(1.0),
            cs: cs.into(),
            qs,
            judge: Judge::Folds(5),
            standardize: true,
            rule: Rule::Best,
            nested: None,
        }
    }

    /// Sets the parameters that are not searched.
    pub fn base(mut self, base: Lq) -> Self {
        self.base = base;
        self
    }

    search_methods!(LqChoice);

    /// Checks every parameter that can be checked without data.
    pub fn check(&self) -> Result<()> {
        self.base.check()?;
        self.base.check_path()?;
        self.cs.check(&self.base)?;
        if self.qs.is_empty() {
            return Err(Error::parameter("qs", "no values", "at least one"));
        }
        self.judge.check()?;
        check_nested(self.nested)?;
        self.qs.iter().try_for_each(|&q| self.base.clone().q(q).check()).map_err(|error| in_list(error, "q", "qs"))
    }

    /// How many points are reported as progress: those of all rows and of every split. With a tuning set (`tuned`) there are no splits.
    pub fn steps(&self, rows: usize, tuned: bool) -> usize {
        let cells = self.cs.count() * self.qs.len();
        let splits = if tuned { 0 } else { self.judge.count(rows) };
        cells * (1 + splits) * (1 + self.nested.unwrap_or(0))
    }

    /// Chooses, by the rows of `tuning` if there are any, and fits to `x`.
    pub fn fit_labels(
        &self,
        x: &dyn Design,
        labels: &Labels,
        tuning: Option<(&dyn Design, &Labels)>,
        request: &FitRequest,
    ) -> Result<LqChoice> {
        self.check()?;
        // the columns as they came; what the feature map makes of them is looked at on their scale
        self.base.clone().feature_map(FeatureMap::Identity).check_data(x, labels, request)?;
        let splits = if tuning.is_some() { 0 } else { self.judge.count(x.rows()) };
        self.base.check_search_memory(x, labels, self.cs.count().saturating_mul(self.qs.len()), splits)?;
        let data = Labelled { x, labels, weights: request.sample_weight };
        let other = match tuning {
            Some((x, y)) => Some((x, part::known_labels(labels, data.x.cols(), x, y)?)),
            None => None,
        };
        if other.is_some() && self.nested.is_some() {
            let found = "a set of its own with nested cross-validation";
            return Err(Error::parameter("tuning", found, "left out, or used without it"));
        }
        let by = other.as_ref().map(|(x, labels)| Labelled { x: *x, labels, weights: None });
        let done = AtomicUsize::new(0);
        self.base.in_pool(|| {
            let mut choice = self.search(data, by, request, &done)?;
            if let Some(folds) = self.nested.filter(|_| choice.tuned.status == Status::Converged) {
                choice.tuned.nested = self.around(data, folds, request, &done)?;
            }
            Ok(choice)
        })
    }

    /// The error of the whole procedure, by cross-validation around it.
    fn around(&self, data: Labelled, folds: usize, request: &FitRequest, done: &AtomicUsize) -> Result<Option<Nested>> {
        let inner = LqSearch { nested: None, judge: self.judge.inner(), ..self.clone() };
        let outer = outer_splits(data.labels, folds, self.base.common.random_state)?;
        part::check_classes(data, &outer)?;
        let (payoff, _) = self.payoff(data.labels)?;
        nested::around(data, &outer, &Kernel::Linear, &payoff, request, |some, request| {
            Ok(inner.search(some, None, request, done)?.tuned)
        })
    }

    fn payoff(&self, labels: &Labels) -> Result<(Payoff, super::tune::Measure)> {
        Ok(Payoff::of(self.base.costs(labels)?.map(|cost| (cost, true)), labels.classes().len()))
    }

    /// Two classes at least must have weight in every training part.
    fn check_classes(&self, data: Labelled, splits: &[Split]) -> Result<()> {
        let (labels, caps) = (data.labels, self.base.unit_caps(data.labels, data.weights)?);
        for (at, split) in splits.iter().enumerate() {
            let mut present = vec![false; labels.classes().len()];
            let counted = split.train.iter().filter(|&&row| caps[row as usize] > 0.0);
            counted.for_each(|&row| present[labels.codes()[row as usize] as usize] = true);
            if present.iter().filter(|present| **present).count() < 2 {
                let only = present.iter().position(|present| *present);
                let left = only.map_or("rows without weight".to_string(), |class| {
                    format!("rows of class {}", quoted(&labels.classes()[class].to_string()))
                });
                let split = at + 1;
                let problem = format!(
                    "split {split} of {} leaves only {left} to fit, and two classes are needed: take fewer folds, or other splits",
                    splits.len()
                );
                return Err(Error::Classes { problem });
            }
        }
        Ok(())
    }

    /// The values of C, for columns on their scale.
    fn values(&self, rows: &Owned) -> Result<Vec<f64>> {
        let (x, weights) = (rows.rows.as_design(), rows.weights.as_deref());
        let cs = match &self.cs {
            Cs::Given(cs) => cs.clone(),
            Cs::Count(count) if self.standardize => {
                // one far value must not move the whole list
                let (_, fences) = Scaling::with_fences(x, weights);
                let as_is = Scaling { shift: vec![0.0; x.cols()], scale: vec![1.0; x.cols()] };
                let near = Standardized::within(x, &as_is, &fences);
                default_cs(&self.base, &near, &rows.labels, weights, *count)?
            }
            Cs::Count(count) => default_cs(&self.base, x, &rows.labels, weights, *count)?,
        };
        cs.iter().try_for_each(|&c| self.base.check_caps(c, &rows.labels, weights))?;
        Ok(cs)
    }

    /// The search, and the fit of what it chose.
    fn search(
        &self,
        data: Labelled,
        by: Option<Labelled>,
        request: &FitRequest,
        done: &AtomicUsize,
    ) -> Result<LqChoice> {
        let splits = self.judge.splits(data, by, self.base.common.random_state)?;
        self.check_classes(data, &splits)?;
        let all: Vec<u32> = (0..data.x.rows() as u32).collect();
        // columns are read again and again: rows next to each other
        let (rows, scaling) = data.taken(&all, &Kernel::Linear)?.on_one_scale(self.standardize)?;
        self.base.check_data(rows.rows.as_design(), data.labels, request)?;
        let cs = self.values(&rows)?;
        let axes = vec![Axis::new("q", self.qs.clone()), Axis::new("C", cs.clone())];
        let settings = grid::product(&axes)?;
        let ((payoff, measure), cost) = (self.payoff(data.labels)?, self.base.costs(data.labels)?);
        let control = request.control.share_of_time(SEARCH_TIME);
        let stop = || Ended::of(&control) != Ended::Done;
        let (qs, cost) = (&self.qs[..], cost.as_deref());
        let walk = Walk { base: &self.base, cs: &cs, qs, payoff: &payoff, cost, stop: &stop, control, done };
        let early = if by.is_none() { control.share_of_time(WHOLE_TIME) } else { control };
        let until = || Ended::of(&early) != Ended::Done;
        let run = |split: &Split| -> Result<Vec<Option<Judged>>> {
            match stop() {
                true => Ok(vec![None; settings.len()]),
                false => {
                    let rows = Part::new(data, &split.train, data, &split.test, &Kernel::Linear, self.standardize)?;
                    walk.part(&rows)
                }
            }
        };
        let to_solve = if by.is_none() { &splits[..] } else { &[] };
        let (whole, judged): (_, Vec<Result<_>>) = rayon::join(
            || Walk { stop: &until, ..walk }.whole(&rows),
            || to_solve.par_iter().with_max_len(1).map(run).collect(),
        );
        let (whole, mut judged) = (whole?, judged.into_iter().collect::<Result<Vec<_>>>()?);
        let rows = match by {
            // the path on all rows is what other rows judge
            Some(by) => {
                let part = Part::beside(rows, scaling.as_ref(), by, &splits[0].test)?;
                judged.push(walk.judge(&whole, &part));
                part.train
            }
            None => rows,
        };
        let path = walk.flattened(whole);
        let features = data.x.cols();
        let sizes: Vec<usize> = path.iter().map(|solution| walk::columns(features, solution).len()).collect();
        let cells: Vec<Cell> = settings.into_iter().enumerate().map(|(at, point)| cell(point, at, &judged)).collect();
        let through = cells.iter().all(|cell| cell.state == State::Done);
        let ended = if through { Ended::Done } else { Ended::of(&control) };
        let chosen = tuned::choose(&cells, &axes, self.rule, &sizes).ok_or_else(|| ended.without_choice())?;
        let (c, q) = (cs[chosen % cs.len()], self.qs[chosen / cs.len()]);
        let request = FitRequest { start: None, control: ended.control(request.control), ..*request };
        let mut model = self.refit(&rows, &path[chosen], (c, q), &request)?;
        if let Some(scaling) = scaling.clone() {
            model = model.of_unscaled(scaling);
        }
        let status = ended.status();
        if status != Status::Converged {
            model.summary.status = status;
        }
        let stability = if by.is_some() { Vec::new() } else { stability(features, chosen, &judged) };
        let path = self.points(path, &sizes, &cs, scaling.as_ref(), &judged);
        let splits = splits.len();
        let tuned = Tuned { axes, cells, chosen, splits, measure, nested: None, status, model };
        Ok(LqChoice { tuned, path, stability })
    }

    /// The chosen point, followed from where the path found it.
    fn refit(&self, rows: &Owned, found: &Solution, (c, q): (f64, f64), request: &FitRequest) -> Result<Model> {
        let (weights, intercepts) = (found.weights.clone(), found.intercepts.clone());
        let start = Start { expansion: Vec::new(), weights, intercepts };
        // a convex problem has one minimum, whatever its start; what was not reached in time is no minimum
        let care = if q < 1.0 && found.status != Status::TimeLimit { Care::Follow } else { Care::Full };
        self.base.clone().c(c).q(q).run(rows.rows.as_design(), &rows.labels, request, Some(start), care)
    }

    /// The path as users see it.
    fn points(
        &self,
        path: Vec<Solution>,
        sizes: &[usize],
        cs: &[f64],
        scaling: Option<&Scaling>,
        judged: &[Vec<Option<Judged>>],
    ) -> Vec<Point> {
        let scaling = scaling.filter(|_| self.base.feature_map == FeatureMap::Identity);
        let point = |(at, (solution, &size)): (usize, (Solution, &usize))| {
            let (weights, intercepts) = (solution.weights.unwrap_or_default(), solution.intercepts);
            let moved = scaling.and_then(|scaling| unscaled(&weights, &intercepts, scaling));
            let (weights, intercepts) = moved.unwrap_or((weights, intercepts));
            let (c, q) = (cs[at % cs.len()], self.qs[at / cs.len()]);
            let on_splits = judged.iter().filter_map(|points| points[at].as_ref()).all(|judged| judged.converged);
            let converged = solution.status == Status::Converged && on_splits;
            Point { c, q, weights, intercepts, objective: solution.objective, size, converged }
        };
        path.into_iter().zip(sizes).enumerate().map(point).collect()
    }
}

/// An error about a value, named as the list that it is in.
fn in_list(error: Error, one: &str, list: &'static str) -> Error {
    match error {
        Error::Parameter { name, value, allowed } if name == one => Error::Parameter { name: list, value, allowed },
        other => other,
    }
}

/// A point of the grid by what it lost on each split.
fn cell(settings: Vec<super::tune::Setting>, at: usize, judged: &[Vec<Option<Judged>>]) -> Cell {
    let of_splits: Vec<Option<&Judged>> = judged.iter().map(|points| points[at].as_ref()).collect();
    let errors = of_splits.iter().map(|judged| judged.map_or(f64::NAN, |judged| judged.error)).collect();
    let spread = of_splits.iter().flatten().next_back().map_or(f64::NAN, |judged| judged.spread);
    let state = match of_splits.iter().flatten().count() {
        0 => State::NotReached,
        count if count < judged.len() => State::Partly,
        _ => State::Done,
    };
    Cell::of(settings, errors, spread, state)
}

/// Share of the splits judged in which each column is selected at a point.
fn stability(features: usize, point: usize, judged: &[Vec<Option<Judged>>]) -> Vec<f64> {
    let of_splits: Vec<&Judged> = judged.iter().filter_map(|points| points[point].as_ref()).collect();
    let mut counts = vec![0usize; features];
    of_splits.iter().flat_map(|judged| &judged.columns).for_each(|&column| counts[column as usize] += 1);
    counts.into_iter().map(|count| count as f64 / of_splits.len() as f64).collect()
}
