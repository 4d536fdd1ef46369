//! Linear machines on rows that are read again and again and never held: data larger than memory, or spread over workers.
//!
//! ```text
//! P(theta) = rho/2 sum_j |w_j|^2 + sum_i sum_terms c min(h(z), tau),      h(z) = max(0, max_l z_l),   intercepts unpenalised
//! ```
//!
//! in the units of the in-memory solver ([`linear`](super::linear)): one function for two classes, else k; `term` says what a term is.
//! No state is kept for a row. What a pass over the data yields are sums over rows, of a size that does not depend on their number, and
//! the sums of parts add up to the sums of all, wherever the parts lie: [`Passes`] is all that the solver sees of them.
//!
//! Other losses ([`Shape`], `apart`) and penalties ([`Separable`]) take the steps 1 and 3 alone, from the starts they are given, until a lower bound is met (`bound`: convex problems) or smoothing can't be
//! seen (`smooth`); truncated losses with other penalties take step 4 as well (`beside`). For the hinge with the squared norm:
//!
//! 1. **Survey**, one pass: counts, scales, a sample of the rows drawn evenly; one more where a class is rare, for rows of it.
//! 2. **Sample** (`sampled`): the in-memory solver on the sample, its caps made larger, gives a theta whose scores are off by about sqrt(p / sample). Where the loss
//!    is truncated, several such thetas: different ends on the sample.
//! 3. **Newton** (`newton`) on the smoothed truncated loss over all rows. A pass gives value, gradient and Hessian (`sums`); the
//!    width of the smoothing falls from the sample's error to that of all rows. One to three passes for each width. Several starts are followed in the same
//!    passes (`together`), and become one where they meet; the lowest end counts, or what other ceilings lead to from there (`ways_out`).
//! 4. **Bands** (`band`): one pass gathers the few rows near a kink; all others are affine there and become one linear function. The
//!    in-memory solver finishes on the gathered rows: majorise-minimise steps, interior point, certificate. The next pass gathers at
//!    the new theta, and sums up by how much rows were not what they were taken for; the inner duality gap and that sum are a duality
//!    gap of the whole. Rows that changed sides are gathered wherever they lie from then on. One pass a round, two to five rounds.
//!
//! Ends when the relative gap is below the tolerance, at a critical point of the truncated problem. About ten passes in all, some tens where many
//! starts differ, each O(n d k) and O((d k)^2) for the rows within a window, for each start; memory O((d k)^2) beside a chunk, the sample and the gathered rows, all of which
//! have a bound that the caller's memory sets. The objective is exact for the rows as they are given: sums are in f64.

mod apart;
mod band;
mod beside;
mod bound;
mod columns;
mod newton;
mod passes;
mod rounds;
mod sampled;
mod separable;
mod smooth;
mod sums;
mod survey;
mod term;
mod together;
mod ways_out;
mod wide;

#[cfg(feature = "wire")]
pub use self::passes::Messages;
pub use self::passes::{Answer, Local, Passes, Request};
pub use self::survey::{Part, Survey, survey};

use self::band::{Band, Found, how_often};
use self::passes::Asking;
use self::sums::{State, Sums};
use self::together::Board;
use super::{Options, Status};
use crate::control::{Control, Progress};
use crate::error::{Error, Result};
use crate::linalg::{Isa, dot};
use crate::problem::Loss;

/// The solver's name.
pub const NAME: &str = NAMES[0];
/// What it goes by in an answer: with Gram matrices of all columns, with products of Hessians and vectors, with Gram matrices of the
/// columns in use.
pub const NAMES: [&str; 3] = ["linear-stream", "linear-stream-cg", "linear-stream-columns"];
/// rho is kept within these bounds, as in memory.
const RIDGE_RANGE: (f64, f64) = (1e-280, 1e280);
/// Most rows gathered, and of a sample; more is of no use.
const MOST_GATHERED: usize = 100_000;
const MOST_SAMPLED: usize = 100_000;
/// Rows of the sample that tell how far scores move.
const MOST_MOVED: usize = 4000;
/// Fewest rows that can be gathered at once, and of a sample.
const FEWEST: usize = 2000;
/// So many even where the memory is small.
const LEAST: usize = 100;
/// Vectors of the order of theta that a solve without matrices has at the same time, those of pieces of a chunk among them.
const VECTORS: usize = 40;
/// Most numbers of the Gram matrices of a pass: 1 GB.
const MOST_SUMS: usize = 1 << 27;
/// Numbers of a pass, unless more is allowed: from there on vectors are sent, and no matrices of all columns.
pub const MOST_SENT: usize = 1 << 22;
/// Bytes of memory for each of these numbers: sums at a point, of all rows so far, of a chunk, and of a piece of it, while rows enter and when they have.
const SUM_BYTES: usize = 6 * 8;
/// Bytes for each entry of a step's matrix: as it is, scaled, its factor, and what refines a solution; with several functions those of the solver of
/// the sample, which are more.
const STEP_BYTES: (usize, usize) = (5 * 8, 8 * 8);
/// The share of the memory that they may take together, and one part in how many of it for each of several descents at once.
const STEP_SHARE: (usize, usize) = (2, 3);
const DESCENT_SHARE: usize = 5;
/// Bytes of the sums of all pieces of a chunk together, at most, and the share of the memory.
const PIECE_BYTES: usize = 1 << 26;
const PIECE_SHARE: usize = 8;
/// What is not worth a pass where every product is one: a share of the tolerance, and at most.
const LITTLE: (f64, f64) = (0.1, 5e-5);
/// Share of the memory for the rows gathered: their solver takes several times as much as they do.
const SHARE: usize = 12;
/// Shares of the memory for what solvers of the sample keep beside its rows, with Gram matrices and without.
const SOLVER_SHARE: (usize, usize) = (8, 2);

/// A penalty sum rate |w|^q.
#[derive(Debug, Clone)]
pub struct Separable {
    /// In (0, 2].
    pub q: f64,
    /// One for each coefficient, functions x columns; infinite ones fix their coefficient at 0.
    pub rates: Vec<f64>,
}

/// What is to be solved.
#[derive(Debug, Clone)]
pub struct Task {
    /// k
    pub classes: usize,
    /// For each class the terms that a row of it has: the class whose margin counts, and the cap for a row of weight 1.
    pub terms: Vec<Vec<(u32, f64)>>,
    /// What a row costs; of `Margin` the loss says where it is truncated.
    pub shape: Shape,
    /// The hinge, truncated or not.
    pub loss: Loss,
    /// Instead of half the squared norm.
    pub penalty: Option<Separable>,
    /// Where to begin: w of every function, then b of every function. Only the hinge with the squared norm finds its own.
    pub starts: Vec<Vec<f64>>,
    /// Whether there are intercepts.
    pub intercept: bool,
    /// Bytes that may be used beside a chunk.
    pub memory: usize,
    /// Most numbers of an answer's Gram matrices, usually [`MOST_SENT`].
    pub sums: usize,
}

/// The answer. There is nothing about single rows.
#[derive(Debug, Clone)]
pub struct Streamed {
    /// w, functions x columns.
    pub weights: Vec<f64>,
    /// b, one per function.
    pub intercepts: Vec<f64>,
    /// The full, non-convex objective.
    pub objective: f64,
    /// Relative duality gap of the last convex problem; of `linear-stream-cg`, of capped losses, and of q < 1 without truncation an estimate of
    /// what is left.
    pub gap: f64,
    /// The objective at the sample's answer, after the smoothed descent, and after each round. Never rises.
    pub trace: Vec<f64>,
    /// Rows beyond the truncation.
    pub outliers: u64,
    /// Passes over the data.
    pub passes: usize,
    /// Rows gathered in the last round.
    pub gathered: usize,
    /// How it ended.
    pub status: Status,
    /// One of [`NAMES`].
    pub solver: &'static str,
}

impl Streamed {
    /// As a start for the same rows: they are told without what was taken off their columns.
    pub fn start(&self, shift: &[f64]) -> Vec<f64> {
        let d = self.weights.len() / self.intercepts.len().max(1);
        let moved = |function: usize| dot(&self.weights[function * d..][..shift.len()], shift);
        let intercepts = self.intercepts.iter().enumerate().map(|(function, b)| b + moved(function));
        self.weights.iter().copied().chain(intercepts).collect()
    }
}

/// What a row costs.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
pub enum Shape {
    /// The truncated hinge of the margin of a class, see `sums`.
    Margin,
    /// The hinge of every function apart from the others, sum of c [1 + f_j]_+ over terms.
    Apart,
    /// min(|residuals|^p, cap)
    Capped {
        /// p, in (0, 2]
        power: f64,
        /// Infinite for none.
        cap: f64,
    },
}

/// The problem in normalised units: caps by the largest, features by a power of two.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
struct Spec {
    cols: usize,
    classes: usize,
    functions: usize,
    terms: Vec<Vec<(u32, f64)>>,
    /// tau, infinite without truncation
    ceiling: f64,
    ridge: f64,
    unit: f64,
    intercept: bool,
    shape: Shape,
    /// Whether Hessians are told by products.
    wide: bool,
    /// Bytes of the sums of all pieces of a chunk.
    room: usize,
    #[cfg_attr(feature = "wire", serde(skip, default = "Isa::detect"))]
    isa: Isa,
}

impl Spec {
    /// p
    fn order(&self) -> usize {
        self.cols + 1
    }

    /// Number of values of theta.
    fn size(&self) -> usize {
        self.functions * self.order()
    }

    /// Gram matrices of a Hessian.
    fn pairs(&self) -> usize {
        pairs(self.shape, self.functions)
    }

    fn terms(&self, code: u32) -> &[(u32, f64)] {
        &self.terms[code as usize]
    }

    /// w of every function with the features' unit folded in.
    fn folded(&self, theta: &[f64]) -> Vec<f64> {
        let rows = theta.chunks_exact(self.order());
        rows.flat_map(|row| row[..self.cols].iter().map(|w| w * self.unit)).collect()
    }

    /// rho/2 |w|^2
    fn penalty(&self, theta: &[f64]) -> f64 {
        let squares = theta.chunks_exact(self.order()).map(|row| dot(&row[..self.cols], &row[..self.cols]));
        0.5 * self.ridge * squares.sum::<f64>()
    }

    /// Turns a sum over raw rows into normalised units; without intercept its last entries are 0.
    fn normalise(&self, sum: &mut [f64]) {
        for row in sum.chunks_exact_mut(self.order()) {
            row[..self.cols].iter_mut().for_each(|w| *w *= self.unit);
            if !self.intercept {
                row[self.cols] = 0.0;
            }
        }
    }
}

/// What is given, in normalised units.
#[derive(Clone)]
struct Given<'a> {
    spec: Spec,
    survey: &'a Survey,
    /// How often each row of the sample is there, where rows are gathered; nothing where all of them differ.
    often: Vec<u32>,
    /// sum c x^2 of each column, and sum c.
    metric: Vec<f64>,
    /// The penalty in normalised units, unless it is rho/2 |w|^2.
    separable: Option<Separable>,
    /// What P was divided by.
    largest: f64,
    /// An objective that no minimiser exceeds, beside the one at hand: rows that stand beside a linear function tell less than they cost.
    level: f64,
    /// What is not worth a pass, relative to the objective, beyond what never is.
    little: f64,
    /// Descents that memory has room for at once.
    side_by_side: usize,
    /// Bytes of what a solver keeps beside its rows.
    room: usize,
}

/// A descent, or one call of [`solve`].
struct Work<'a> {
    given: Given<'a>,
    asking: Asking<'a>,
    /// Whether a step by products leaves out what bends down, and what the last one left, an estimate.
    convex: bool,
    rest: f64,
    /// What descents under way at the same time know of each other, and the place of this one.
    board: Option<(usize, &'a Board)>,
    control: &'a Control<'a>,
}

impl<'a> Given<'a> {
    /// Work on it.
    fn work<'b>(self, asking: Asking<'b>, control: &'b Control<'b>) -> Work<'b>
    where
        'a: 'b,
    {
        Work { given: self, asking, convex: false, rest: 0.0, board: None, control }
    }

    /// A theta whose intercepts are no farther apart than any row can tell. Where all rows of a class are given up its intercept has no lower
    /// bound, and solvers may leave it where sums of scores have no digits.
    fn held(&self, mut theta: Vec<f64>) -> Vec<f64> {
        let (spec, p) = (&self.spec, self.spec.order());
        if spec.shape != Shape::Margin || !spec.intercept || !spec.ceiling.is_finite() {
            return theta;
        }
        let size = |w: &[f64]| w.iter().map(|w| w.abs()).sum::<f64>() * self.survey.largest();
        let farthest = spec.folded(&theta).chunks_exact(spec.cols.max(1)).map(size).fold(0.0, f64::max);
        // scores differ by no more than twice that
        let most = 2.0 * farthest + 2.0 * spec.ceiling;
        if spec.functions == 1 {
            theta[p - 1] = theta[p - 1].clamp(-most, most);
            return theta;
        }
        let highest = theta[p - 1..].iter().step_by(p).copied().fold(f64::NEG_INFINITY, f64::max);
        let farthest = theta[p - 1..].iter().step_by(p).map(|b| highest - b).fold(0.0, f64::max);
        if farthest > most {
            // only differences count
            theta[p - 1..].iter_mut().step_by(p).for_each(|b| *b = (*b - highest).max(-most));
            let mean = theta[p - 1..].iter().step_by(p).sum::<f64>() / spec.functions as f64;
            theta[p - 1..].iter_mut().step_by(p).for_each(|b| *b -= mean);
        }
        theta
    }

    /// Root mean square of how far scores move from one theta to another, on the sample.
    fn movement(&self, from: &[f64], to: &[f64]) -> f64 {
        let change: Vec<f64> = from.iter().zip(to).map(|(from, to)| to - from).collect();
        let (folded, d) = (self.spec.folded(&change), self.spec.cols);
        let sample = self.survey.sample();
        let rows = sample.rows().min(MOST_MOVED);
        let mut squares = 0.0;
        for x in sample.x.chunks_exact(d.max(1)).take(rows) {
            for (w, b) in folded.chunks_exact(d.max(1)).zip(change[d..].iter().step_by(d + 1)) {
                let moved: f64 = w.iter().zip(x).map(|(w, x)| w * f64::from(*x)).sum::<f64>() + b;
                squares += moved * moved;
            }
        }
        (squares / (rows * self.spec.functions).max(1) as f64).sqrt()
    }
}

impl Work<'_> {
    fn statistics(&mut self, theta: &[f64], width: f64) -> Result<Sums> {
        let mut sums = self.asking.statistics(&self.given.spec, State { theta: theta.to_vec(), width })?;
        self.given.spec.normalise(&mut sums.gradient);
        let objective = (self.penalty(theta) + sums.loss) * self.given.largest;
        self.control.report(Progress { stage: "descent", step: self.asking.count, objective, gap: f64::NAN });
        Ok(sums)
    }

    /// The smoothed objective at several points between two, and beyond.
    fn ray(&mut self, from: &[f64], to: &[f64], steps: &[f64], width: f64) -> Result<Vec<f64>> {
        let mut values = self.asking.ray(&self.given.spec, [from, to], steps, width)?;
        for (value, step) in values.iter_mut().zip(steps) {
            let theta: Vec<f64> = from.iter().zip(to).map(|(from, to)| from + step * (to - from)).collect();
            *value += self.penalty(&theta);
        }
        Ok(values)
    }

    fn penalty(&self, theta: &[f64]) -> f64 {
        self.given
            .separable
            .as_ref()
            .map_or_else(|| self.given.spec.penalty(theta), |penalty| penalty.value(&self.given.spec, theta))
    }

    fn gather(&mut self, now: &Band, before: Option<&Band>, most: usize) -> Result<Found> {
        let mut total = self.asking.gather(&self.given.spec, now, before, most)?;
        self.given.spec.normalise(&mut total.linear);
        Ok(total)
    }
}

/// Rows of the sample that a solve with so much memory wants; fewer where there are known to be very many rows, if a start is all it is for.
pub fn sample_size(cols: usize, classes: usize, memory: usize, rows: Option<u64>) -> usize {
    let most = room(cols, classes, memory, MOST_SAMPLED);
    let functions = if classes == 2 { 1 } else { classes };
    rows.map_or(most, |rows| sampled::solved(most, rows, functions.saturating_mul(cols + 1)))
}

/// Bytes without which there is no solve: vectors of coefficients, the least sample with what its solver keeps, and what the survey tells of every class.
pub fn least_memory(cols: usize, classes: usize) -> usize {
    let functions = if classes == 2 { 1 } else { classes };
    let vectors = (8 * VECTORS).saturating_mul(functions.saturating_mul(cols + 1));
    let rows = (3 * 8 * LEAST).saturating_mul(cols);
    vectors.saturating_add(rows).saturating_add((3 * 8 * classes).saturating_mul(cols))
}

/// Rows there is room for: features, and what the sample's solver keeps of them. Some are needed all the same, unless they alone are too much.
fn room(cols: usize, classes: usize, memory: usize, most: usize) -> usize {
    let room = memory / SHARE / (8 * (cols + 16)) / if classes == 2 { 1 } else { classes };
    let fewest = (2 * memory / SHARE / (4 * cols.max(1))).clamp(LEAST, FEWEST);
    room.clamp(fewest, most.max(fewest))
}

/// Solves a linear problem whose rows come in chunks or lie elsewhere.
///
/// ```
/// use outlast::data::{Chunk, Parts};
/// use outlast::solver::{Options, stream};
/// use outlast::{Control, Loss};
///
/// let part = |x: [f32; 2], codes: [u32; 2]| Chunk { x: x.to_vec(), codes: codes.to_vec(), ..Chunk::default() };
/// let mut rows = Parts::new(1, vec![part([0.0, 1.0], [0, 0]), part([2.0, 3.0], [1, 1])]);
/// let mut passes = stream::Local::new(&mut rows);
/// let task = stream::Task {
///     classes: 2,
///     terms: vec![vec![(0, 10.0)], vec![(1, 10.0)]],
///     shape: stream::Shape::Margin,
///     loss: Loss::hinge(),
///     penalty: None,
///     starts: Vec::new(),
///     intercept: true,
///     memory: 1 << 24,
///     sums: stream::MOST_SENT,
/// };
/// let survey = stream::survey(&mut passes, 2, 1000, 0, &Control::default())?;
/// let found = stream::solve(&mut passes, &survey, &task, &Options::default(), &Control::default())?;
/// // the widest gap between the classes is from 1 to 2: w = 2, b = -3
/// assert!((found.weights[0] - 2.0).abs() < 1e-3 && (found.intercepts[0] + 3.0).abs() < 1e-3);
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn solve(
    passes: &mut dyn Passes,
    survey: &Survey,
    task: &Task,
    options: &Options,
    control: &Control,
) -> Result<Streamed> {
    if task.loss.base().name() != "hinge" {
        let allowed = format!("used with the hinge loss only, not {}", task.loss.base().name());
        return Err(Error::parameter("solver", NAME, allowed));
    }
    if task.classes < 2 || task.terms.len() != task.classes || survey.rows.len() != task.classes {
        return Err(Error::shape("y", format!("{} classes", task.classes), "at least 2, with terms for each"));
    }
    if !passes.shift().is_empty() && !task.intercept {
        return Err(Error::shape("X", "columns that were shifted", "none without an intercept"));
    }
    let wide = task.is_wide(passes.cols());
    match &task.penalty {
        Some(penalty) if wide && penalty.q <= 1.0 => columns::solve(passes, survey, task, penalty, options, control),
        _ => solve_by(passes, survey, task, wide, options, control),
    }
}

/// Gram matrices of a Hessian.
fn pairs(shape: Shape, functions: usize) -> usize {
    match shape {
        Shape::Margin if functions > 1 => functions * (functions - 1) / 2,
        _ => functions,
    }
}

impl Task {
    fn functions(&self) -> usize {
        if self.classes == 2 { 1 } else { self.classes }
    }

    /// Numbers of the Gram matrices of so many columns.
    fn numbers(&self, cols: usize) -> usize {
        let whole = if matches!(self.shape, Shape::Capped { power, .. } if power < 2.0) { self.functions() } else { 0 };
        (pairs(self.shape, self.functions()) + whole * whole).saturating_mul((cols + 1).saturating_mul(cols + 1))
    }

    /// Whether there are too many columns for Gram matrices of all of them.
    pub fn is_wide(&self, cols: usize) -> bool {
        let allowed = self.memory / STEP_SHARE.1 * STEP_SHARE.0;
        self.numbers(cols) > self.sums.min(MOST_SUMS) || self.bytes(cols) > allowed
    }

    /// Bytes of them and of the matrices of a step.
    fn bytes(&self, cols: usize) -> usize {
        let size = self.functions().saturating_mul(cols + 1);
        let each = if self.functions() == 1 { STEP_BYTES.0 } else { STEP_BYTES.1 };
        let step = size.saturating_mul(size).saturating_mul(each);
        self.numbers(cols).saturating_mul(SUM_BYTES).saturating_add(step)
    }
}

impl<'a> Work<'a> {
    fn new(
        passes: &'a mut dyn Passes,
        survey: &'a Survey,
        task: &Task,
        wide: bool,
        control: &'a Control<'a>,
    ) -> Result<Self> {
        let cols = passes.cols();
        let largest = survey.largest_cap(task);
        if survey.total() == 0 || !(largest > 0.0) {
            return Err(Error::shape("X", "no row of positive weight", "at least one of every class"));
        }
        let unit = survey.unit();
        let terms = |list: &Vec<(u32, f64)>| list.iter().map(|(anchor, cap)| (*anchor, cap / largest)).collect();
        let spec = Spec {
            cols,
            classes: task.classes,
            functions: task.functions(),
            terms: task.terms.iter().map(terms).collect(),
            ceiling: task.loss.truncation().map_or(f64::INFINITY, |s| 1.0 - s),
            ridge: ridge(unit, largest).clamp(RIDGE_RANGE.0, RIDGE_RANGE.1),
            unit,
            intercept: task.intercept,
            shape: task.shape,
            wide,
            room: PIECE_BYTES.min(task.memory / PIECE_SHARE),
            isa: Isa::detect(),
        };
        let numbers = task.numbers(cols);
        if !wide && numbers > MOST_SUMS {
            let found = format!("{cols} columns for {} functions, whose sums are {numbers} numbers", spec.functions);
            let allowed = format!("at most {MOST_SUMS} numbers: fewer columns, or rows in memory");
            return Err(Error::shape("X", found, allowed));
        }
        let metric = survey.metric(task);
        let normalised = |penalty: &Separable| {
            // P is divided by the largest cap, features are multiplied by the unit
            let factor = unit.powf(penalty.q) / largest;
            Separable { q: penalty.q, rates: penalty.rates.iter().map(|rate| rate * factor).collect() }
        };
        let separable = task.penalty.as_ref().map(normalised);
        // the sums and matrices of one more descent, or the rows of the sample once more, beside all else
        let one = if wide { 8 * survey.sample().x.len() } else { task.bytes(cols) };
        let side_by_side = (task.memory / DESCENT_SHARE / one.max(1)).max(1);
        let room = task.memory / if wide { SOLVER_SHARE.1 } else { SOLVER_SHARE.0 };
        let often = if wide || task.shape != Shape::Margin { Vec::new() } else { how_often(survey.sample(), cols) };
        let given =
            Given { spec, survey, often, metric, separable, largest, level: 0.0, little: 0.0, side_by_side, room };
        Ok(given.work(Asking { passes, control, count: survey.passes }, control))
    }
}

/// rho before it is kept within bounds.
fn ridge(unit: f64, largest: f64) -> f64 {
    (unit / largest) * unit
}

/// Solves with the Hessian of all columns, told by Gram matrices or by products.
fn solve_by(
    passes: &mut dyn Passes,
    survey: &Survey,
    task: &Task,
    wide: bool,
    options: &Options,
    control: &Control,
) -> Result<Streamed> {
    let cols = passes.cols();
    let shift = passes.shift().to_vec();
    let mut work = Work::new(passes, survey, task, wide, control)?;
    let (unit, largest) = (work.given.spec.unit, work.given.largest);
    if wide {
        work.given.little = (LITTLE.0 * options.tolerance).min(LITTLE.1);
    }
    let shrink = (work.given.spec.ridge / ridge(unit, largest)).min(1.0);
    let most = room(cols, task.classes, task.memory, MOST_GATHERED);
    let mut best = match task.shape == Shape::Margin && task.penalty.is_none() {
        true if wide => {
            let starts = work.wide_starts(task, options)?;
            work.smoothly(starts, options, most)?
        }
        true => work.run(task, options, most)?,
        false => {
            let inverse = 1.0 / (shrink * unit);
            let starts = task.starts.iter().map(|start| normal_start(&work.given.spec, start, inverse)).collect();
            work.smoothly(starts, options, most)?
        }
    };
    // back to the caller's units
    let order = work.given.spec.order();
    best.theta
        .chunks_exact_mut(order)
        .for_each(|row| row[..cols].iter_mut().for_each(|w| *w *= shrink * work.given.spec.unit));
    let weights: Vec<f64> = best.theta.chunks_exact(order).flat_map(|row| row[..cols].iter().copied()).collect();
    let mut intercepts: Vec<f64> = best.theta.chunks_exact(order).map(|row| row[cols]).collect();
    if !shift.is_empty() {
        for (b, w) in intercepts.iter_mut().zip(weights.chunks_exact(cols.max(1))) {
            *b -= dot(w, &shift);
        }
    }
    if !matches!(task.shape, Shape::Capped { .. }) {
        // the functions of a capped machine are not bound to each other
        centre(&mut intercepts);
    }
    Ok(Streamed {
        weights,
        intercepts,
        objective: best.objective * largest,
        gap: best.gap,
        trace: best.trace.iter().map(|value| value * largest).collect(),
        outliers: best.outliers,
        passes: work.asking.count,
        gathered: best.gathered,
        status: best.status,
        solver: NAMES[usize::from(wide)],
    })
}

/// A start in the caller's units as theta.
fn normal_start(spec: &Spec, start: &[f64], inverse: f64) -> Vec<f64> {
    let (m, d) = (spec.functions, spec.cols);
    let mut theta = vec![0.0; spec.size()];
    if start.len() == m * (d + 1) {
        for (function, row) in theta.chunks_exact_mut(d + 1).enumerate() {
            let w = &start[function * d..(function + 1) * d];
            row.iter_mut().zip(w).for_each(|(theta, w)| *theta = w * inverse);
            row[d] = if spec.intercept { start[m * d + function] } else { 0.0 };
        }
    }
    theta
}

/// Several intercepts sum up to 0.
fn centre(intercepts: &mut [f64]) {
    if intercepts.len() > 1 {
        let mean = intercepts.iter().sum::<f64>() / intercepts.len() as f64;
        intercepts.iter_mut().for_each(|b| *b -= mean);
    }
}
