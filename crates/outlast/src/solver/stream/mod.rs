//! Linear machines on rows that are read again and again and never held: data larger than memory, or spread over workers.
//!
//! ```text
//! P(theta) = rho/2 sum_j |w_j|^2 + sum_i sum_terms c min(h(z), tau),      h(z) = max(0, max_l z_l),   intercepts unpenalised
//! ```
//!
//! in the units of the in-memory solver ([`linear`](super::linear)): one function for two classes, else k; `sums` says what a term is.
//! No state is kept for a row. What a pass over the data yields are sums over rows, of a size that does not depend on their number, and
//! the sums of parts add up to the sums of all, wherever the parts lie.
//!
//! 1. **Survey**, one pass: counts, scales, a sample of the rows drawn evenly.
//! 2. **Sample**: the in-memory solver on the sample, its caps made larger, gives a theta whose scores are off by about sqrt(p / sample).
//! 3. **Newton** (`newton`) on the smoothed truncated loss over all rows. A pass gives value, gradient and Hessian (`sums`); the
//!    width of the smoothing falls from the sample's error to that of all rows. Two or three passes for each width, some more where the loss is
//!    truncated; then also from the plain optimum of the sample, with a width that falls from 1/2, and the lower end counts.
//! 4. **Bands** (`band`): one pass gathers the few rows near a kink; all others are affine there and become one linear function. The
//!    in-memory solver finishes on the gathered rows: majorise-minimise steps, interior point, certificate. The next pass gathers at
//!    the new theta, and sums up by how much rows were not what they were taken for; the inner duality gap and that sum are a duality
//!    gap of the whole. Rows that changed sides are gathered wherever they lie from then on. One pass a round, two to five rounds.
//!
//! Ends when the relative gap is below the tolerance, at a critical point of the truncated problem. Ten passes in all, thirty to a hundred where
//! the loss is truncated, each O(n d k) and O((d k)^2) for the rows within a window; memory O((d k)^2) beside a chunk, the sample and the gathered rows, both of which
//! have a bound that the caller's memory sets. The objective is exact for the rows as they are given: sums are in f64.

mod band;
mod newton;
mod rounds;
mod sums;
mod survey;

use self::band::{Band, Found, partition_band};
use self::sums::{State, Sums, partition_ray, partition_statistics};
use self::survey::Survey;
use super::{Options, Status};
use crate::control::Control;
use crate::data::{Chunk, Chunks, Dense};
use crate::error::{Error, Result};
use crate::linalg::{Isa, dot};
use crate::problem::{KernelFunction, Loss, ManyClass, Norm, Problem, Terms, TwoClass};
use crate::solver;

/// The solver's name.
pub const NAME: &str = "linear-stream";
/// rho is kept within these bounds, as in memory.
const RIDGE_RANGE: (f64, f64) = (1e-280, 1e280);
/// Relative gap of the sample's problem.
const SAMPLE_TOLERANCE: f64 = 1e-4;
/// Most rows gathered, and of a sample; more is of no use.
const MOST_GATHERED: usize = 100_000;
const MOST_SAMPLED: usize = 100_000;
/// Fewest rows that can be gathered at once.
const FEWEST: usize = 2000;
/// Share of the memory for the rows gathered: their solver takes several times as much as they do.
const SHARE: usize = 12;

/// What is to be solved.
#[derive(Debug, Clone)]
pub struct Task {
    /// k
    pub classes: usize,
    /// For each class the terms that a row of it has: the class whose margin counts, and the cap for a row of weight 1.
    pub terms: Vec<Vec<(u32, f64)>>,
    /// The hinge, truncated or not.
    pub loss: Loss,
    /// Whether there are intercepts.
    pub intercept: bool,
    /// Bytes that may be used beside a chunk.
    pub memory: usize,
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
    /// Relative duality gap of the last convex problem.
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
}

/// The problem in normalised units: caps by the largest, features by a power of two.
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
        if self.functions == 1 { 1 } else { self.functions * (self.functions - 1) / 2 }
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

/// One call of [`solve`].
struct Work<'a> {
    rows: &'a mut dyn Chunks,
    spec: Spec,
    survey: Survey,
    control: &'a Control<'a>,
    chunk: Chunk,
    passes: usize,
}

impl Work<'_> {
    /// A pass over all rows.
    fn pass(&mut self, mut each: impl FnMut(&Chunk, &Spec)) -> Result<()> {
        self.rows.rewind()?;
        self.passes += 1;
        while self.rows.next(&mut self.chunk)? {
            self.control.check()?;
            each(&self.chunk, &self.spec);
        }
        Ok(())
    }

    fn statistics(&mut self, theta: &[f64], width: f64) -> Result<Sums> {
        let state = State { theta: theta.to_vec(), width };
        let mut total: Option<Sums> = None;
        self.pass(|chunk, spec| {
            let part = partition_statistics(chunk, spec, &state);
            match &mut total {
                None => total = Some(part),
                Some(total) => total.add(part),
            }
        })?;
        let mut sums = match total {
            Some(sums) => sums,
            None => partition_statistics(&Chunk::default(), &self.spec, &state),
        };
        self.spec.normalise(&mut sums.gradient);
        sums.near.iter_mut().chain(&mut sums.far).for_each(|gram| gram.flush());
        Ok(sums)
    }

    /// The smoothed objective at several points between two, and beyond.
    fn ray(&mut self, from: &[f64], to: &[f64], steps: &[f64], width: f64) -> Result<Vec<f64>> {
        let mut values = vec![0.0; steps.len()];
        self.pass(|chunk, spec| partition_ray(chunk, spec, [from, to], steps, width, &mut values))?;
        for (value, step) in values.iter_mut().zip(steps) {
            let theta: Vec<f64> = from.iter().zip(to).map(|(from, to)| from + step * (to - from)).collect();
            *value += self.spec.penalty(&theta);
        }
        Ok(values)
    }

    fn gather(&mut self, now: &Band, before: Option<&Band>, most: usize) -> Result<Found> {
        let mut total = Found::new(&self.spec);
        self.pass(|chunk, spec| total.add(partition_band(chunk, spec, now, before, most), most))?;
        self.spec.normalise(&mut total.linear);
        Ok(total)
    }

    /// Root mean square of how far scores move from one theta to another, on the sample.
    fn movement(&self, from: &[f64], to: &[f64]) -> f64 {
        let change: Vec<f64> = from.iter().zip(to).map(|(from, to)| to - from).collect();
        let (folded, d) = (self.spec.folded(&change), self.spec.cols);
        let sample = &self.survey.sample;
        let mut squares = 0.0;
        for x in sample.x.chunks_exact(d.max(1)) {
            for (w, b) in folded.chunks_exact(d.max(1)).zip(change[d..].iter().step_by(d + 1)) {
                let moved: f64 = w.iter().zip(x).map(|(w, x)| w * f64::from(*x)).sum::<f64>() + b;
                squares += moved * moved;
            }
        }
        (squares / (sample.rows() * self.spec.functions).max(1) as f64).sqrt()
    }

    /// The in-memory answer on the sample.
    fn solve_sample(&self, loss: Loss, options: &Options) -> Result<Vec<f64>> {
        let (spec, sample) = (&self.spec, &self.survey.sample);
        let growth = self.survey.rows as f64 / sample.rows().max(1) as f64;
        let (mut x, mut anchors, mut caps) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..sample.rows() {
            for &(anchor, factor) in spec.terms(sample.codes[row]) {
                x.extend(sample.x[row * spec.cols..(row + 1) * spec.cols].iter().map(|x| f64::from(*x) * spec.unit));
                anchors.push(anchor);
                caps.push(growth * factor * sample.weight(row) / spec.ridge);
            }
        }
        let x = Dense::new(anchors.len(), spec.cols, x)?;
        let signs: Vec<f64> = anchors.iter().map(|&anchor| if anchor == 1 { 1.0 } else { -1.0 }).collect();
        let (kernel, intercept) = (&KernelFunction::Linear, spec.intercept);
        let (norm, terms) = (Norm::Squared, Terms::Own);
        let problem = match spec.functions {
            1 => Problem::Two(TwoClass { x: &x, signs: &signs, caps: &caps, loss, norm, kernel, intercept }),
            classes => Problem::Many(ManyClass {
                x: &x,
                codes: &anchors,
                classes,
                caps: &caps,
                terms,
                loss,
                norm,
                kernel,
                intercept,
            }),
        };
        let options = Options { tolerance: SAMPLE_TOLERANCE, start: None, ..options.clone() };
        let solution = solver::solve(solver::linear::NAME, &problem, &options, &self.control.silent())?;
        let weights = solution.weights.unwrap_or_default();
        let rows = weights.chunks_exact(spec.cols).zip(&solution.intercepts);
        Ok(rows.flat_map(|(w, b)| w.iter().chain([b]).copied()).collect())
    }
}

/// Solves a linear problem whose rows come in chunks: hinge, truncated or not, l2 penalty, any number of classes.
///
/// ```
/// use outlast::data::{Chunk, Parts};
/// use outlast::solver::{Options, stream};
/// use outlast::{Control, Loss};
///
/// let part = |x: [f32; 2], codes: [u32; 2]| Chunk { x: x.to_vec(), codes: codes.to_vec(), ..Chunk::default() };
/// let mut rows = Parts::new(1, vec![part([0.0, 1.0], [0, 0]), part([2.0, 3.0], [1, 1])]);
/// let task = stream::Task {
///     classes: 2,
///     terms: vec![vec![(0, 10.0)], vec![(1, 10.0)]],
///     loss: Loss::hinge(),
///     intercept: true,
///     memory: 1 << 24,
/// };
/// let found = stream::solve(&mut rows, &task, &Options::default(), &Control::default())?;
/// // the widest gap between the classes is from 1 to 2: w = 2, b = -3
/// assert!((found.weights[0] - 2.0).abs() < 1e-3 && (found.intercepts[0] + 3.0).abs() < 1e-3);
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn solve(rows: &mut dyn Chunks, task: &Task, options: &Options, control: &Control) -> Result<Streamed> {
    let cols = rows.cols();
    let functions = if task.classes == 2 { 1 } else { task.classes };
    if task.loss.base().name() != "hinge" {
        let allowed = format!("used with the hinge loss only, not {}", task.loss.base().name());
        return Err(Error::parameter("solver", NAME, allowed));
    }
    if task.classes < 2 || task.terms.len() != task.classes {
        return Err(Error::shape("y", format!("{} classes", task.classes), "at least 2, with terms for each"));
    }
    let shifted = !rows.shift().is_empty();
    if shifted && !task.intercept {
        return Err(Error::shape("X", "columns that were shifted", "none without an intercept"));
    }
    // a row: features, and what the sample's solver keeps of it
    let room = task.memory / SHARE / (8 * (cols + 16));
    let sampled = (room / functions).clamp(FEWEST, MOST_SAMPLED);
    let survey = survey::run(rows, task, sampled, options.seed, control)?;
    let largest = survey.largest_cap;
    let ridge = (survey.unit / largest) * survey.unit;
    let terms = |list: &Vec<(u32, f64)>| list.iter().map(|(anchor, cap)| (*anchor, cap / largest)).collect();
    let spec = Spec {
        cols,
        classes: task.classes,
        functions,
        terms: task.terms.iter().map(terms).collect(),
        ceiling: task.loss.truncation().map_or(f64::INFINITY, |s| 1.0 - s),
        ridge: ridge.clamp(RIDGE_RANGE.0, RIDGE_RANGE.1),
        unit: survey.unit,
        intercept: task.intercept,
        isa: Isa::detect(),
    };
    let shrink = (spec.ridge / ridge).min(1.0);
    let shift = rows.shift().to_vec();
    let mut work = Work { rows, spec, survey, control, chunk: Chunk::default(), passes: 1 };
    let mut best = work.run(task, options, (room / functions).clamp(FEWEST, MOST_GATHERED))?;
    // back to the caller's units
    let order = work.spec.order();
    best.theta
        .chunks_exact_mut(order)
        .for_each(|row| row[..cols].iter_mut().for_each(|w| *w *= shrink * work.spec.unit));
    let weights: Vec<f64> = best.theta.chunks_exact(order).flat_map(|row| row[..cols].iter().copied()).collect();
    let mut intercepts: Vec<f64> = best.theta.chunks_exact(order).map(|row| row[cols]).collect();
    if shifted {
        for (b, w) in intercepts.iter_mut().zip(weights.chunks_exact(cols.max(1))) {
            *b -= dot(w, &shift);
        }
    }
    centre(&mut intercepts);
    Ok(Streamed {
        weights,
        intercepts,
        objective: best.objective * largest,
        gap: best.gap,
        trace: best.trace.iter().map(|value| value * largest).collect(),
        outliers: best.outliers,
        passes: work.passes,
        gathered: best.gathered,
        status: best.status,
    })
}

/// Several intercepts sum up to 0.
fn centre(intercepts: &mut [f64]) {
    if intercepts.len() > 1 {
        let mean = intercepts.iter().sum::<f64>() / intercepts.len() as f64;
        intercepts.iter_mut().for_each(|b| *b -= mean);
    }
}
