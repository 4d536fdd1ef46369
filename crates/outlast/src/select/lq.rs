//! C and q of the L_q machine, chosen by cross-validation or on a tuning set.
//!
//! All rows, then every fold, are solved along the whole grid by [`Path`], in which each point is the start of others. What all rows
//! found guides the folds, which are spread over the cores. The error of a point is the share of held-out weight that is decided wrongly, or with a cost matrix the
//! mean cost of the decisions. The point with the least mean error is chosen; of several, the one with the fewest variables on all
//! rows, then the smaller C. The model is the local minimum of the path, which was judged, followed to the tolerance of a fit.

use super::{Split, stratified};
use crate::data::{Design, Labels, Repeated, Target};
use crate::error::{Error, Result};
use crate::model::condense::Condensed;
use crate::model::{Estimator, FitRequest, Lq, Model, Rows};
use crate::solver::lq::{Guide, Path};
use crate::solver::{Care, Solution, Start};
use rayon::prelude::*;

/// What the gap of a fit is multiplied by in a search, where errors and columns are all that counts, and the largest it then is.
const LOOSER: f64 = 10.0;
const LOOSEST: f64 = 1e-4;
/// Multipliers of all points, in numbers, that are kept to guide the folds.
const MOST_KEPT: usize = 20_000_000;

/// A grid of C and q to choose from.
///
/// ```
/// use outlast::{Dense, Lq, LqSearch};
///
/// let rows: Vec<[f64; 3]> = (0..40).map(|i| [f64::from(i % 7) - 3.0, f64::from(i % 5), f64::from(i % 3)]).collect();
/// let y: Vec<bool> = rows.iter().map(|row| row[0] > 0.0).collect();
/// let found = LqSearch::new(vec![0.1, 1.0], vec![0.5, 1.0]).folds(4).fit(&Dense::from_rows(&rows), &y)?;
/// assert_eq!(found.mean_errors.len(), 4);
/// assert_eq!(found.model.selected(), Some(vec![0]));
/// assert_eq!(found.stability[0], 1.0);
/// # Ok::<(), outlast::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LqSearch {
    /// The parameters that are not searched: costs, weights, feature map, tolerance, threads, seed.
    pub base: Lq,
    /// The values of C.
    pub cs: Vec<f64>,
    /// The values of q.
    pub qs: Vec<f64>,
    /// Folds of the cross-validation.
    pub folds: usize,
}

/// One point of the grid, solved on all rows.
#[derive(Debug, Clone)]
pub struct Point {
    /// C
    pub c: f64,
    /// q
    pub q: f64,
    /// w, functions x columns (of the feature map).
    pub weights: Vec<f64>,
    /// b, one per function.
    pub intercepts: Vec<f64>,
    /// The objective.
    pub objective: f64,
    /// Columns of X with a coefficient that is not 0.
    pub size: usize,
}

/// What a search found. Lists over the grid run over q, and within it over C.
#[derive(Debug, Clone)]
pub struct LqChoice {
    /// The values of C.
    pub cs: Vec<f64>,
    /// The values of q.
    pub qs: Vec<f64>,
    /// Mean error of each point.
    pub mean_errors: Vec<f64>,
    /// Error of each point, fold after fold; with a tuning set there is one fold.
    pub fold_errors: Vec<f64>,
    /// The path on all rows.
    pub path: Vec<Point>,
    /// Which point was chosen.
    pub chosen: usize,
    /// Its C.
    pub c: f64,
    /// Its q.
    pub q: f64,
    /// Share of the folds in which each column of X is selected at the chosen point; empty with a tuning set.
    pub stability: Vec<f64>,
    /// The model of the chosen point, fitted to all rows.
    pub model: Model,
}

/// Rows held out, and what deciding for a class costs.
struct HeldOut<'a> {
    x: &'a dyn Design,
    codes: &'a [u32],
    weights: Vec<f64>,
    cost: Option<&'a [f64]>,
    classes: usize,
}

impl LqSearch {
    /// A grid with five folds.
    pub fn new(cs: Vec<f64>, qs: Vec<f64>) -> Self {
        LqSearch { base: Lq::new(1.0), cs, qs, folds: 5 }
    }

    /// Sets the parameters that are not searched.
    pub fn base(mut self, base: Lq) -> Self {
        self.base = base;
        self
    }

    /// Sets the number of folds.
    pub fn folds(mut self, folds: usize) -> Self {
        self.folds = folds;
        self
    }

    /// Checks every parameter that can be checked without data.
    pub fn check(&self) -> Result<()> {
        self.base.check()?;
        for (name, values) in [("Cs", &self.cs), ("qs", &self.qs)] {
            if values.is_empty() {
                return Err(Error::parameter(name, "no values", "at least one"));
            }
        }
        self.cs.iter().try_for_each(|&c| self.base.clone().c(c).check())?;
        self.qs.iter().try_for_each(|&q| self.base.clone().q(q).check())
    }

    /// Chooses by cross-validation.
    pub fn fit(&self, x: &dyn Design, y: &(impl Target + ?Sized)) -> Result<LqChoice> {
        self.fit_with(x, y, &FitRequest::default())
    }

    /// As [`fit`](Self::fit), with sample weights or someone watching.
    pub fn fit_with(&self, x: &dyn Design, y: &(impl Target + ?Sized), request: &FitRequest) -> Result<LqChoice> {
        let labels = y.labels();
        self.check()?;
        let folds = stratified(&labels, self.folds, self.base.common.random_state)?;
        self.fit_splits(x, &labels, &Split::of_folds(&folds), request)
    }

    /// As [`fit_with`](Self::fit_with), with splits of the caller's.
    pub fn fit_splits(
        &self,
        x: &dyn Design,
        y: &(impl Target + ?Sized),
        splits: &[Split],
        request: &FitRequest,
    ) -> Result<LqChoice> {
        let labels = y.labels();
        self.check()?;
        self.base.check_data(x, &labels, request)?;
        if splits.is_empty() {
            return Err(Error::shape("cv", "no splits", "at least one"));
        }
        splits.iter().try_for_each(|split| split.check(x.rows()))?;
        self.check_caps(&labels, request)?;
        self.check_classes(&labels, splits, request)?;
        self.base.in_pool(|| self.cross_validate(x, &labels, splits, request))
    }

    /// Chooses by the error on rows of their own.
    pub fn fit_tuned(
        &self,
        x: &dyn Design,
        y: &(impl Target + ?Sized),
        tuning: (&dyn Design, &(impl Target + ?Sized)),
        request: &FitRequest,
    ) -> Result<LqChoice> {
        let labels = y.labels();
        self.check()?;
        self.base.check_data(x, &labels, request)?;
        self.check_caps(&labels, request)?;
        let codes = known_codes(&labels, x.cols(), tuning.0, &tuning.1.labels())?;
        self.base.in_pool(|| {
            let all: Vec<u32> = (0..x.rows() as u32).collect();
            let path: Vec<Solution> = self.solve(x, &labels, &all, None, request)?.into_iter().flatten().collect();
            let cost = self.base.costs(&labels)?;
            let held = HeldOut {
                x: tuning.0,
                codes: &codes,
                weights: vec![1.0; codes.len()],
                cost: cost.as_deref(),
                classes: labels.classes().len(),
            };
            let errors = self.errors(&path, &held);
            self.choose(x, &labels, path, errors, Vec::new(), request)
        })
    }

    fn check_caps(&self, labels: &Labels, request: &FitRequest) -> Result<()> {
        self.cs.iter().try_for_each(|&c| self.base.check_caps(c, labels, request.sample_weight))
    }

    /// Two classes at least must have weight in every training part.
    fn check_classes(&self, labels: &Labels, splits: &[Split], request: &FitRequest) -> Result<()> {
        let caps = self.base.unit_caps(labels, request.sample_weight)?;
        for (at, split) in splits.iter().enumerate() {
            let mut present = vec![false; labels.classes().len()];
            let counted = split.train.iter().filter(|&&row| caps[row as usize] > 0.0);
            counted.for_each(|&row| present[labels.codes()[row as usize] as usize] = true);
            if present.iter().filter(|present| **present).count() < 2 {
                let only = present.iter().position(|present| *present);
                let left = only.map_or("rows without weight".to_string(), |class| {
                    format!("rows of class {}", crate::error::quoted(&labels.classes()[class].to_string()))
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

    /// All rows first, which guide the folds.
    fn cross_validate(
        &self,
        x: &dyn Design,
        labels: &Labels,
        splits: &[Split],
        request: &FitRequest,
    ) -> Result<LqChoice> {
        let cost = self.base.costs(labels)?;
        let all: Vec<u32> = (0..x.rows() as u32).collect();
        let whole = self.solve(x, labels, &all, None, request)?;
        let run = |split: &Split| -> Result<(Vec<Solution>, Vec<f64>)> {
            let path = self.solve(x, labels, &split.train, Some(&whole), request)?;
            let path: Vec<Solution> = path.into_iter().flatten().map(slim).collect();
            let rows = Rows::copy(x, &split.test)?;
            let codes: Vec<u32> = split.test.iter().map(|&row| labels.codes()[row as usize]).collect();
            let weight = |&row: &u32| request.sample_weight.map_or(1.0, |weights| weights[row as usize]);
            let held = HeldOut {
                x: rows.as_design(),
                codes: &codes,
                weights: split.test.iter().map(weight).collect(),
                cost: cost.as_deref(),
                classes: labels.classes().len(),
            };
            let errors = self.errors(&path, &held);
            Ok((path, errors))
        };
        let results: Vec<Result<(Vec<Solution>, Vec<f64>)>> = splits.par_iter().with_max_len(1).map(run).collect();
        let results = results.into_iter().collect::<Result<Vec<_>>>()?;
        let errors: Vec<f64> = results.iter().flat_map(|(_, errors)| errors.iter().copied()).collect();
        let paths = results.into_iter().map(|(path, _)| path).collect();
        self.choose(x, labels, whole.into_iter().flatten().map(slim).collect(), errors, paths, request)
    }

    /// The whole grid on some rows, by q and then by C; `guide` is that of all rows.
    fn solve(
        &self,
        x: &dyn Design,
        labels: &Labels,
        rows: &[u32],
        guide: Option<&[Vec<Solution>]>,
        request: &FitRequest,
    ) -> Result<Vec<Vec<Solution>>> {
        let caps = self.base.unit_caps(labels, request.sample_weight)?;
        let cost = self.base.costs(labels)?;
        let caps: Vec<f64> = rows.iter().map(|&row| caps[row as usize]).collect();
        let codes = rows.iter().map(|&row| labels.codes()[row as usize]).collect();
        let some = Labels::from_codes(labels.classes().to_vec(), codes)?;
        // columns are read again and again: rows next to each other
        let copied = Rows::copy(x, rows)?;
        self.base.on_columns(copied.as_design(), |mapped| {
            let few = match self.base.is_small(mapped, &some) {
                true => Some(Condensed::new(mapped, &some, &caps)?),
                false => None,
            };
            let fewer = few.as_ref().map(|few| Repeated::new(mapped, few.rows.clone()));
            let problem = match (&few, &fewer) {
                (Some(few), Some(fewer)) => self.base.problem(fewer, &few.labels, &few.caps, cost.as_deref()),
                _ => self.base.problem(mapped, &some, &caps, cost.as_deref()),
            };
            let guide = guide.map(|solutions| guide_of(solutions, rows, few.as_ref(), problem.functions));
            let path = Path { cs: &self.cs, qs: &self.qs, screening: true, guide };
            let mut options = self.base.common.search_options();
            options.tolerance = options.tolerance.max((LOOSER * options.tolerance).min(LOOSEST));
            let found = path.solve(&problem, &options, &request.control)?;
            let kept = problem.functions * rows.len() * self.cs.len() * self.qs.len() <= MOST_KEPT;
            let finish = |solution: Solution| match &few {
                _ if !kept => slim(solution),
                Some(few) => few.expand(solution, mapped, &caps),
                None => solution,
            };
            Ok(found.into_iter().map(|list| list.into_iter().map(finish).collect()).collect())
        })
    }

    /// The error of each point.
    fn errors(&self, path: &[Solution], held: &HeldOut) -> Vec<f64> {
        let total: f64 = held.weights.iter().sum();
        self.base.on_columns(held.x, |mapped| {
            let of = |solution: &Solution| {
                let weights = solution.weights.as_deref().unwrap_or(&[]);
                let m = solution.intercepts.len();
                let decided = |row: usize| -> usize {
                    let value = |j: usize| {
                        let w = &weights[j * mapped.cols()..(j + 1) * mapped.cols()];
                        mapped.dot(row, w) + solution.intercepts[j]
                    };
                    if m == 1 {
                        return usize::from(value(0) > 0.0);
                    }
                    let values: Vec<f64> = (0..m).map(value).collect();
                    (0..m).fold(0, |best, j| if values[j] > values[best] { j } else { best })
                };
                let lost = |row: usize| {
                    let (truth, decided) = (held.codes[row] as usize, decided(row));
                    let loss =
                        held.cost.map_or(f64::from(truth != decided), |cost| cost[truth * held.classes + decided]);
                    held.weights[row] * loss
                };
                // without any weight there is nothing to judge by: not a number
                (0..held.codes.len()).map(lost).sum::<f64>() / total
            };
            path.iter().map(of).collect()
        })
    }

    /// Columns of X that a solution uses.
    fn used(&self, features: usize, solution: &Solution) -> Vec<bool> {
        let mut used = vec![false; features];
        for (at, w) in solution.weights.iter().flatten().enumerate() {
            used[at % features] |= *w != 0.0;
        }
        used
    }

    fn choose(
        &self,
        x: &dyn Design,
        labels: &Labels,
        path: Vec<Solution>,
        fold_errors: Vec<f64>,
        folds: Vec<Vec<Solution>>,
        request: &FitRequest,
    ) -> Result<LqChoice> {
        let (count, d) = (path.len(), x.cols());
        let repeats = fold_errors.len() / count.max(1);
        let judged: Vec<usize> = (0..repeats).filter(|fold| !fold_errors[fold * count].is_nan()).collect();
        if judged.is_empty() {
            return Err(Error::shape("cv", "splits whose held-out rows have no weight", "some weight to judge by"));
        }
        let mean = |point: usize| {
            judged.iter().map(|fold| fold_errors[fold * count + point]).sum::<f64>() / judged.len() as f64
        };
        let mean_errors: Vec<f64> = (0..count).map(mean).collect();
        let sizes: Vec<usize> =
            path.iter().map(|solution| self.used(d, solution).iter().filter(|used| **used).count()).collect();
        let least = mean_errors.iter().fold(f64::INFINITY, |least, error| least.min(*error));
        let c_of = |point: usize| self.cs[point % self.cs.len()];
        let chosen = (0..count)
            .filter(|&point| mean_errors[point] <= least + 1e-12)
            .min_by(|&a, &b| sizes[a].cmp(&sizes[b]).then(c_of(a).total_cmp(&c_of(b))))
            .unwrap_or(0);
        let (c, q) = (c_of(chosen), self.qs[chosen / self.cs.len()]);
        let mut stability = vec![0.0; if folds.is_empty() { 0 } else { d }];
        for fold in &folds {
            for (share, used) in stability.iter_mut().zip(self.used(d, &fold[chosen])) {
                *share += f64::from(used) / folds.len() as f64;
            }
        }
        let start = Start {
            expansion: Vec::new(),
            weights: path[chosen].weights.clone(),
            intercepts: path[chosen].intercepts.clone(),
        };
        // a convex problem has one minimum, whatever its start
        let care = if q < 1.0 { Care::Follow } else { Care::Full };
        let model = self.base.clone().c(c).q(q).run(x, labels, request, Some(start), care)?;
        let points = path.into_iter().zip(sizes).enumerate().map(|(point, (solution, size))| Point {
            c: c_of(point),
            q: self.qs[point / self.cs.len()],
            objective: solution.objective,
            weights: solution.weights.unwrap_or_default(),
            intercepts: solution.intercepts,
            size,
        });
        Ok(LqChoice {
            path: points.collect(),
            cs: self.cs.clone(),
            qs: self.qs.clone(),
            mean_errors,
            fold_errors,
            chosen,
            c,
            q,
            stability,
            model,
        })
    }
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

/// Values of C worth trying: from below where the first variable comes in at q = 1 to a thousand times that, evenly in the
/// logarithm.
///
/// At w = 0 a class pulls at a column with C times the sum of its distances from the mean of all rows, give or take a factor that
/// the intercepts decide; half of what the largest pull asks for is where the list starts.
pub fn default_cs(
    base: &Lq,
    x: &dyn Design,
    y: &(impl Target + ?Sized),
    sample_weight: Option<&[f64]>,
    count: usize,
) -> Result<Vec<f64>> {
    if count == 0 {
        return Err(Error::parameter("Cs", count, "a whole number >= 1, or a list of numbers"));
    }
    let labels = y.labels();
    base.check_data(x, &labels, &FitRequest { sample_weight, ..FitRequest::default() })?;
    let weights = base.unit_caps(&labels, sample_weight)?;
    let largest = base.on_columns(x, |mapped| largest_pull(mapped, &labels, &weights));
    let first = if largest.is_finite() && largest > 0.0 { (0.5 / largest).clamp(1e-12, 1e12) } else { 1e-2 };
    let at = |step: usize| first * 1000f64.powf(step as f64 / (count - 1).max(1) as f64);
    Ok((0..count).map(at).collect())
}

/// max over classes and columns of |sum over the class of weight (x - mean)|
fn largest_pull(x: &dyn Design, labels: &Labels, weights: &[f64]) -> f64 {
    let (d, k) = (x.cols(), labels.classes().len());
    let (mut sums, mut totals) = (vec![0.0; k * d], vec![0.0; k]);
    for (row, &code) in labels.codes().iter().enumerate().filter(|(row, _)| weights[*row] > 0.0) {
        totals[code as usize] += weights[row];
        x.add_scaled(row, weights[row], &mut sums[code as usize * d..][..d]);
    }
    let total: f64 = totals.iter().sum();
    let mut largest = 0.0f64;
    for column in 0..d {
        let mean = (0..k).map(|class| sums[class * d + column]).sum::<f64>() / total;
        for class in 0..k {
            largest = largest.max((sums[class * d + column] - totals[class] * mean).abs());
        }
    }
    largest
}

/// The codes of tuning labels among the training classes.
pub(super) fn known_codes(labels: &Labels, cols: usize, x: &dyn Design, tuning: &Labels) -> Result<Vec<u32>> {
    if x.cols() != cols {
        return Err(Error::shape("the tuning set", format!("{} columns", x.cols()), format!("{cols}, as X has")));
    }
    if tuning.len() != x.rows() || tuning.is_empty() {
        let expected = format!("{}, one per row of the tuning set", x.rows().max(1));
        return Err(Error::shape("the tuning set's y", format!("{} labels", tuning.len()), expected));
    }
    x.check_finite()?;
    let known = |class: &crate::data::Class| labels.classes().iter().position(|other| other == class);
    let codes: Vec<Option<usize>> = tuning.classes().iter().map(known).collect();
    if let Some(unknown) = codes.iter().position(|code| code.is_none()) {
        let class = crate::error::quoted(&tuning.classes()[unknown].to_string());
        return Err(Error::Classes {
            problem: format!("the tuning set has class {class}, which the training rows lack"),
        });
    }
    let code = |&code: &u32| codes[code as usize].unwrap_or(0) as u32;
    Ok(tuning.codes().iter().map(code).collect())
}
