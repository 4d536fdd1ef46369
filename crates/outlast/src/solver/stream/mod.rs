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
//! 3. **Newton** ([`newton`]) on the smoothed truncated loss over all rows. A pass gives value, gradient and Hessian ([`sums`]); the
//!    width of the smoothing falls from the sample's error to that of all rows. Two or three passes for each width, some more where the loss is
//!    truncated; then also from the plain optimum of the sample, with a width that falls from 1/2, and the lower end counts.
//! 4. **Bands** ([`band`]): one pass gathers the few rows near a kink; all others are affine there and become one linear function. The
//!    in-memory solver finishes on the gathered rows: majorise-minimise steps, interior point, certificate. The next pass gathers at
//!    the new theta, and sums up by how much rows were not what they were taken for; the inner duality gap and that sum are a duality
//!    gap of the whole. Rows that changed sides are gathered wherever they lie from then on. One pass a round, two to five rounds.
//!
//! Ends when the relative gap is below the tolerance, at a critical point of the truncated problem. Ten passes in all, thirty to forty where
//! the loss is truncated, each O(n d k) and O((d k)^2) for the rows within a window; memory O((d k)^2) beside a chunk, the sample and the gathered rows, both of which
//! have a bound that the caller's memory sets. The objective is exact for the rows as they are given: sums are in f64.

mod band;
mod newton;
mod sums;
mod survey;

use self::band::{Band, Found, partition_band};
use self::sums::{State, Sums, partition_ray, partition_statistics};
use self::survey::Survey;
use super::linear::{Near, polish};
use super::{Options, Status};
use crate::control::{Control, Progress};
use crate::data::{Chunk, Chunks, Dense};
use crate::error::{Error, Result};
use crate::linalg::{Isa, dot};
use crate::problem::{KernelFunction, Loss, ManyClass, Norm, Problem, Terms, TwoClass};
use crate::solver;

/// The solver's name.
pub const NAME: &str = "linear-stream";
/// rho is kept within these bounds, as in memory.
const RIDGE_RANGE: (f64, f64) = (1e-280, 1e280);
/// Relative gap aimed at: rounds cost a pass each, and the last digits come with the first.
const AIM: f64 = 1e-6;
/// Relative gap of the sample's problem.
const SAMPLE_TOLERANCE: f64 = 1e-4;
/// Widths of the smoothing, and the factor from one to the next.
const WIDEST: f64 = 0.5;
const NARROWEST: f64 = 0.003;
const NARROWING: f64 = 0.3;
/// Most rounds of gathering.
const ROUNDS: usize = 30;
/// A width that smooths nothing.
const TINY_WIDTH: f64 = 1e-12;
/// The smallest width of Newton's method after a band led astray, and the halvings of the way back.
const LEAST_WIDTH: f64 = 1e-5;
const HALVINGS: i32 = 14;
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
    fn from_sample(&self, loss: Loss, options: &Options) -> Result<Vec<f64>> {
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

/// The end of Newton's method.
struct Descended {
    theta: Vec<f64>,
    sums: Sums,
    /// The objective at the start, and at the end if that is lower.
    trace: Vec<f64>,
}

impl Descended {
    fn objective(&self) -> f64 {
        self.trace[self.trace.len() - 1]
    }
}

/// The lowest point so far.
struct Best {
    theta: Vec<f64>,
    objective: f64,
    gap: f64,
    trace: Vec<f64>,
    outliers: u64,
    gathered: usize,
    status: Status,
}

impl Work<'_> {
    fn run(&mut self, task: &Task, options: &Options, most: usize) -> Result<Best> {
        // the errors of the scores that the sample and that all rows leave
        let error = |rows: f64| 3.0 * (self.spec.size() as f64 / rows.max(1.0)).sqrt();
        let widest = WIDEST.min(self.spec.ceiling);
        let width = error(self.survey.sample.rows() as f64).clamp(NARROWEST, widest);
        let last = error(self.survey.rows as f64).clamp(NARROWEST, width);
        let start = self.from_sample(task.loss, options)?;
        let mut lowest = self.down(start, width, last)?;
        if self.spec.ceiling.is_finite() && !self.control.out_of_time() {
            // the end that the plain optimum leads to may be another one
            let plain = self.from_sample(task.loss.untruncated(), options)?;
            let other = self.down(plain, widest, last)?;
            if other.objective() < lowest.objective() {
                lowest = other;
            }
        }
        self.rounds(lowest, options, most)
    }

    /// Newton's method from a start, with widths that fall from one to another.
    fn down(&mut self, start: Vec<f64>, from: f64, to: f64) -> Result<Descended> {
        let mut width = from;
        let mut sums = self.statistics(&start, width)?;
        let bound = self.spec.penalty(&start) + sums.loss;
        let mut theta = start.clone();
        loop {
            (theta, sums) = self.descend(theta, sums, width)?;
            if width <= to || self.control.out_of_time() {
                break;
            }
            width = (NARROWING * width).max(to);
            sums = self.statistics(&theta, width)?;
        }
        let smoothed = self.spec.penalty(&theta) + sums.loss;
        let (theta, trace) = if smoothed <= bound { (theta, vec![bound, smoothed]) } else { (start, vec![bound]) };
        Ok(Descended { theta, sums, trace })
    }

    /// Rounds of gathering until the gap is small enough.
    fn rounds(&mut self, from: Descended, options: &Options, most: usize) -> Result<Best> {
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
        let mut now = Band { theta, half_width: half_width(&sums, most), forced: Vec::new() };
        // what the last solve was made of, and the gap it came with
        let mut before: Option<(Band, f64)> = None;
        for round in 0..ROUNDS {
            self.control.check()?;
            if self.control.out_of_time() {
                best.status = Status::TimeLimit;
                break;
            }
            let found = self.gather(&now, before.as_ref().map(|(band, _)| band), most)?;
            let objective = self.spec.penalty(&now.theta) + found.loss;
            let convex = (objective - found.beyond).max(f64::MIN_POSITIVE);
            let gap = before.as_ref().map_or(f64::INFINITY, |(_, gap)| (gap + found.wrong) / convex);
            self.control.report(Progress { stage: "stream", step: round, objective, gap });
            let lower = objective <= best.objective;
            // what is higher by no more than its gap is as good and certified
            if lower || gap <= aim && objective - best.objective <= gap * objective && best.gap > aim {
                if objective < best.objective {
                    best.trace.push(objective);
                }
                best.objective = objective;
                best.theta.clone_from(&now.theta);
                (best.gap, best.outliers, best.gathered) = (gap, found.outliers, found.count);
            }
            if gap <= aim || before.is_some() && found.violators.is_empty() && !lower {
                break;
            }
            if before.is_some() && !lower {
                // too far for what was taken for affine: the best point on the way, and down from there
                let (theta, sums) = self.retreat(&best, &now)?;
                now = Band { theta, half_width: half_width(&sums, most), forced: Vec::new() };
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
                now.half_width *= 0.5;
                before = None;
                continue;
            }
            let inner = self.finish(&found, &now.theta, options)?;
            now.theta = inner.theta;
            before = Some((gathered, inner.gap));
        }
        if best.gap <= options.tolerance {
            best.status = Status::Converged;
        }
        best.gap = if best.gap.is_finite() { best.gap } else { 1.0 };
        Ok(best)
    }

    /// The lowest point on the way from the best to one that is higher, then Newton's method with a width below that of the band that
    /// led astray.
    fn retreat(&mut self, best: &Best, far: &Band) -> Result<(Vec<f64>, Sums)> {
        let steps: Vec<f64> = (1..=HALVINGS).map(|k| 0.5f64.powi(k)).collect();
        let values = self.ray(&best.theta, &far.theta, &steps, TINY_WIDTH)?;
        let lowest = (0..steps.len()).min_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(0);
        let step = if values[lowest] < best.objective { steps[lowest] } else { 0.0 };
        let theta: Vec<f64> = best.theta.iter().zip(&far.theta).map(|(from, to)| from + step * (to - from)).collect();
        let width = far.half_width.clamp(LEAST_WIDTH, WIDEST.min(self.spec.ceiling));
        let sums = self.statistics(&theta, width)?;
        let (lower, sums) = self.descend(theta.clone(), sums, width)?;
        let exact = self.spec.penalty(&lower) + sums.loss;
        if exact <= values[lowest].min(best.objective) {
            return Ok((lower, sums));
        }
        let sums = self.statistics(&theta, width)?;
        Ok((theta, sums))
    }

    /// The exact answer on the gathered rows.
    fn finish(&self, found: &Found, theta: &[f64], options: &Options) -> Result<solver::linear::Polished> {
        let spec = &self.spec;
        let values: Vec<f64> = found.rows.x.iter().map(|x| f64::from(*x) * spec.unit).collect();
        let x = Dense::new(found.rows.rows(), spec.cols, values)?;
        let near = Near {
            x: &x,
            anchors: &found.rows.codes,
            caps: &found.rows.weights,
            classes: spec.classes,
            ridge: spec.ridge,
            linear: found.linear.clone(),
            constant: found.constant,
            intercept: spec.intercept,
            ceiling: spec.ceiling,
            metric: self.survey.metric.clone(),
        };
        polish(&near, theta, options.seed, &self.control.silent())
    }
}

/// The largest width within which no more rows lie than can be gathered.
fn half_width(sums: &Sums, most: usize) -> f64 {
    // room for rows that change sides
    let most = most as u64 / 2;
    match sums.within.iter().position(|&count| count <= most) {
        // as much as any row can move
        Some(0) => 1.0,
        Some(halvings) => (-(halvings as f64)).exp2(),
        None => (-(sums.within.len() as f64)).exp2(),
    }
}
