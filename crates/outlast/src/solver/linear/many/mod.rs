//! Linear support vector machine with k classes, hinge or truncated hinge, for many more rows than columns.
//!
//! ```text
//! P(W, b) = 1/2 sum_j |w_j|^2 + sum_t c_t T(m_t),      m_t = f_y(x) - max_{l != y} f_l(x),      f_j = w_j'x + b_j
//! ```
//!
//! over terms t = (row, class y): one per row, or with a utility or cost matrix one for each positive entry of the matrix's row
//! (a view that repeats the data's rows; nothing is copied). The scheme is that of two classes, the kink of the hinge replaced by
//! ties of the largest loss-augmented scores f_l + 1(l != y):
//!
//! | file | does |
//! |---|---|
//! | `level` | a convex problem over some terms, scores, and Gram matrices for pairs of classes |
//! | `dual` | multipliers of which few are mixed |
//! | `smooth` | Newton's method on the smoothed loss |
//! | `descent` | the same over many rows, most of them affine; multipliers that certify moderate tolerances |
//! | `band` | the exact solution from the rows near a tie, verified on all rows; growing samples for a first guess |
//! | `interior` | primal-dual interior point: few rows, or last resort |
//! | `truncated` | descent on the truncated loss and the majorise-minimise steps |
//! | `certificate` | clean multipliers, exact column sums, true duality gap |

mod band;
mod certificate;
mod descent;
mod dual;
mod interior;
mod level;
mod polish;
mod smooth;
mod truncated;

pub(in crate::solver) use self::polish::{explore, polish};

use self::band::{Context, Guess, Pilot, Row};
use self::certificate::{Certified, certify};
use self::dual::Dual;
use self::interior::Pair;
use self::level::{Level, Side};
use self::truncated::Bases;
use super::{NAME, RIDGE_RANGE, WARM_ERROR};
use crate::control::{Control, Progress};
use crate::data::{Design, Repeated};
use crate::error::{Error, Result};
use crate::linalg::Isa;
use crate::problem::{KernelFunction, Majorant, ManyCandidate, ManyClass, Norm, Terms};
use crate::solver::{Options, Solution, Status};

/// Most certificates taken until the set they hold for is the solution's own.
const RECHECKS: usize = 3;

/// Solves a linear hinge problem with k classes, truncated or not, with a squared penalty.
///
/// ```
/// use outlast::{Control, Dense, KernelFunction, Loss};
/// use outlast::problem::{ManyClass, Norm, Terms};
/// use outlast::solver::{Options, linear};
///
/// let x = Dense::from_rows(&[[0.0], [1.0], [2.0], [3.0]]);
/// let problem = ManyClass {
///     x: &x,
///     codes: &[0, 0, 1, 1],
///     classes: 2,
///     caps: &[10.0; 4],
///     terms: Terms::Own,
///     loss: Loss::hinge(),
///     norm: Norm::Squared,
///     kernel: &KernelFunction::Linear,
///     intercept: true,
/// };
/// let options = Options { tolerance: 1e-8, ..Options::default() };
/// let solution = linear::solve_many(&problem, &options, &Control::default())?;
/// // the margin f_1 - f_0 grows from -1 to 1 between 1 and 2: w = (-1, 1), b = (3/2, -3/2)
/// let weights = solution.weights.unwrap();
/// assert!((weights[1] - 1.0).abs() < 1e-3 && (solution.intercepts[0] - 1.5).abs() < 1e-3);
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn solve_many(problem: &ManyClass, options: &Options, control: &Control) -> Result<Solution> {
    check(problem)?;
    let terms = List::new(problem)?;
    let repeated = Repeated::new(problem.x, terms.rows.clone());
    let design: &dyn Design = if let Terms::Own = problem.terms { problem.x } else { &repeated };
    let caps_largest = terms.caps.iter().fold(0.0f64, |largest, cap| largest.max(*cap));
    let unit = super::unit(problem.x);
    let largest = if caps_largest > 0.0 { caps_largest } else { 1.0 };
    let caps: Vec<f64> = terms.caps.iter().map(|cap| cap / largest).collect();
    let side = if let Terms::Cost(_) = problem.terms { Side::Cost } else { Side::Margin };
    let mut level = Level {
        x: design,
        unit,
        codes: &terms.codes,
        classes: problem.classes,
        caps: &caps,
        widths: &[],
        side,
        ridge: ((unit / largest) * unit).clamp(RIDGE_RANGE.0, RIDGE_RANGE.1),
        linear: vec![0.0; problem.classes * (problem.x.cols() + 1)],
        constant: 0.0,
        intercept: problem.intercept,
        room: options.cache_bytes,
        isa: Isa::detect(),
    };
    // few rows are all rare; there the windows' widths alone decide
    let widths = if truncated::is_small(level.rows()) { vec![0.0; level.rows()] } else { level.rarity() };
    level.widths = &widths;
    let context = Context { control, seed: options.seed };
    let shrink = level.ridge / ((unit / largest) * unit);
    Work { problem, terms: &terms, level: &level, largest, shrink, options, context: &context }.solve()
}

fn check(problem: &ManyClass) -> Result<()> {
    if !matches!(problem.kernel, KernelFunction::Linear) {
        return Err(Error::parameter("solver", NAME, "used with the linear kernel only"));
    }
    if problem.loss.base().name() != "hinge" {
        let allowed = format!("used with the hinge loss only, not {}", problem.loss.base().name());
        return Err(Error::parameter("solver", NAME, allowed));
    }
    if problem.norm != Norm::Squared {
        return Err(Error::parameter("solver", NAME, "used with the l2 penalty only"));
    }
    let (n, k) = (problem.x.rows(), problem.classes);
    if problem.codes.len() != n || problem.caps.len() != n {
        let found = format!("{n} rows for {} labels and {} weights", problem.codes.len(), problem.caps.len());
        return Err(Error::shape("X", found, "as many of each"));
    }
    if k < 2 || problem.codes.iter().any(|code| *code as usize >= k) {
        return Err(Error::shape("y", format!("{k} classes"), "at least 2, and no label beyond them"));
    }
    Ok(())
}

/// The terms of a problem: (row, class, cap).
struct List {
    /// Rows of the terms; empty when they are the data's rows.
    rows: Vec<u32>,
    codes: Vec<u32>,
    caps: Vec<f64>,
}

impl List {
    fn new(problem: &ManyClass) -> Result<List> {
        let n = problem.rows();
        let count = if let Terms::Own = problem.terms { n } else { n.saturating_mul(problem.classes) };
        if u32::try_from(count).is_err() {
            return Err(Error::shape("X", format!("{count} terms"), "fewer than 2^32"));
        }
        let mut list = List { rows: Vec::new(), codes: Vec::new(), caps: Vec::new() };
        if let Terms::Own = problem.terms {
            list.codes = problem.codes.to_vec();
            list.caps = problem.caps.to_vec();
            return Ok(list);
        }
        for row in 0..n {
            for class in 0..problem.classes {
                let cap = problem.cap(row, class);
                if cap > 0.0 {
                    list.rows.push(row as u32);
                    list.codes.push(class as u32);
                    list.caps.push(cap);
                }
            }
        }
        Ok(list)
    }

    /// The data's row of a term.
    fn row(&self, term: usize) -> usize {
        self.rows.get(term).map_or(term, |row| *row as usize)
    }
}

/// One call of [`solve_many`].
struct Work<'a> {
    problem: &'a ManyClass<'a>,
    terms: &'a List,
    level: &'a Level<'a>,
    /// The largest cap.
    largest: f64,
    /// The rho solved with over the true one: not 1 where that is beyond the range of numbers. Where it is less than 1, w is
    /// that much smaller.
    shrink: f64,
    options: &'a Options,
    context: &'a Context<'a>,
}

/// What has been solved: the terms kept, and the bound in the cost form.
struct Solved {
    kept: Vec<bool>,
    bound: Option<Majorant>,
    /// Whether moving on to the answer's own set gains less than the tolerance can tell.
    still: bool,
}

impl Work<'_> {
    fn solve(&self) -> Result<Solution> {
        let start = self.start()?;
        let cost = self.level.side == Side::Cost;
        if cost && let Some(solution) = self.free_class() {
            return Ok(solution);
        }
        match self.problem.loss.truncation() {
            None if !cost => self.plain(start),
            truncation => self.truncated(start, truncation.map_or(f64::INFINITY, |s| 1.0 - s)),
        }
    }

    /// The answer when some class never costs anything and b is free: always decide for it.
    fn free_class(&self) -> Option<Solution> {
        let (problem, k) = (self.problem, self.level.classes);
        let mut costs = vec![!problem.intercept; k];
        self.level.codes.iter().for_each(|code| costs[*code as usize] = true);
        let free = costs.iter().position(|costs| !costs)?;
        let mut intercepts = vec![0.0; k];
        intercepts[free] = band::FAR;
        centre(&mut intercepts, 1);
        let decision: Vec<f64> = (0..problem.rows()).flat_map(|_| intercepts.iter().copied()).collect();
        Some(Solution {
            expansion: vec![0.0; decision.len()],
            weights: Some(vec![0.0; k * problem.x.cols()]),
            intercepts,
            truncated: problem.flat_rows(&decision),
            majorant: Some(problem.majorant(&decision, None)),
            decision,
            objective: 0.0,
            gap: 0.0,
            trace: vec![0.0],
            iterations: 0,
            status: Status::Converged,
            solver: NAME,
        })
    }

    /// theta of the caller's start, if any.
    fn start(&self) -> Result<Option<Vec<f64>>> {
        let Some(start) = &self.options.start else { return Ok(None) };
        let Some(weights) = &start.weights else { return Ok(None) };
        let (k, d) = (self.level.classes, self.level.x.cols());
        if weights.len() != k * d || start.intercepts.len() != k {
            let found = format!("{} weights and {} intercepts", weights.len(), start.intercepts.len());
            return Err(Error::shape("start", found, format!("{} and {k}", k * d)));
        }
        let mut theta = Vec::with_capacity(self.level.size());
        for class in 0..k {
            theta.extend(weights[class * d..(class + 1) * d].iter().map(|w| w / self.level.unit));
            theta.push(if self.level.intercept { start.intercepts[class] } else { 0.0 });
        }
        Ok(theta.iter().all(|value| value.is_finite()).then_some(theta))
    }

    fn convex(&self, level: &Level, start: Option<Vec<f64>>, tolerance: f64) -> Result<Pair> {
        let (theta, error, before) = match start {
            Some(theta) => (theta, WARM_ERROR, 0),
            None if level.rows() <= band::few(level) => (vec![0.0; level.size()], 1.0, 0),
            None => {
                let pilot = band::pilot(level, self.context)?;
                (pilot.theta, pilot.error, pilot.iterations)
            }
        };
        let guess = Guess { theta: &theta, error, smooth: true };
        let mut pair = band::solve(level, guess, tolerance, self.context)?;
        pair.iterations += before;
        Ok(pair)
    }

    /// As [`convex`](Self::convex), without a certificate.
    fn roughly(&self, level: &Level, start: Option<Vec<f64>>, tolerance: f64) -> Result<Pair> {
        if level.rows() <= band::few(level) {
            return self.convex(level, start, tolerance);
        }
        let pilot = match start {
            Some(theta) => Pilot { theta, error: WARM_ERROR, iterations: 0 },
            None => band::pilot(level, self.context)?,
        };
        let guess = Guess { theta: &pilot.theta, error: pilot.error, smooth: true };
        let smoothed = descent::solve(level, guess, tolerance, false, self.context)?;
        let dual = Dual::from_labels(level.codes.to_vec(), level.classes);
        let iterations = pilot.iterations + smoothed.iterations;
        Ok(Pair { theta: smoothed.theta, dual, objective: f64::NAN, gap: f64::NAN, iterations })
    }

    fn plain(&self, start: Option<Vec<f64>>) -> Result<Solution> {
        let tolerance = self.options.tolerance;
        // some to spare for what cleaning the multipliers costs; the last digit is nearly free
        let pair = self.convex(self.level, start, 0.1 * tolerance)?;
        let found = certify(self.level, &pair, tolerance, false);
        let solved = Solved { kept: vec![true; self.level.rows()], bound: None, still: false };
        Ok(self.solution(found, solved, Vec::new(), pair.iterations, Status::Converged))
    }

    fn truncated(&self, start: Option<Vec<f64>>, ceiling: f64) -> Result<Solution> {
        let tolerance = self.options.tolerance;
        let cost = Cost { work: self };
        let is_cost = self.level.side == Side::Cost;
        let mut level = self.level.clone();
        if is_cost {
            level.linear = cost.linear(&self.problem.untruncated());
        }
        let enough = truncated::plain_tolerance(level.rows(), tolerance);
        let plain = match truncated::is_small(level.rows()) {
            true => self.convex(&level, start, enough)?,
            false => self.roughly(&level, start, enough)?,
        };
        let bases: Option<&dyn Bases> = if is_cost { Some(&cost) } else { None };
        let plan = truncated::Plan { ceiling, tolerance, max_steps: self.options.max_steps, bases };
        let end = truncated::solve(self.level, &plain, plan, self.context)?;
        let iterations = plain.iterations + end.pair.iterations;
        let mut pair = end.pair.clone();
        let mut solved = Solved { kept: end.kept, bound: end.bound, still: false };
        let mut found = self.certify_kept(&pair, &solved);
        for _ in 0..RECHECKS {
            // the certificate may prefer a slightly different w, and with it another set
            let own = self.own(&found.theta, ceiling);
            if is_cost || self.same(&own, &solved.kept) {
                break;
            }
            pair.theta.clone_from(&found.theta);
            solved.kept = own;
            found = self.certify_kept(&pair, &solved);
        }
        if let Some(kept) = end.solved.filter(|_| found.relative_gap() > tolerance) {
            // the answer's own set is another one, by little
            let last = Solved { kept, bound: None, still: true };
            let certified = self.certify_kept(&end.pair, &last);
            if certified.relative_gap() <= tolerance {
                (found, solved) = (certified, last);
            }
        }
        Ok(self.solution(found, solved, end.trace, iterations, end.status))
    }

    /// Which terms a theta keeps.
    fn own(&self, theta: &[f64], ceiling: f64) -> Vec<bool> {
        let mut rows = vec![Row::unknown(); self.level.rows()];
        band::glance(self.level, theta, &mut rows);
        rows.iter().map(|row| !(row.slack > ceiling)).collect()
    }

    /// Whether two sets agree on the terms that count.
    fn same(&self, a: &[bool], b: &[bool]) -> bool {
        (0..a.len()).all(|at| a[at] == b[at] || self.level.caps[at] == 0.0)
    }

    /// Certifies a pair for the convex problem of the terms kept.
    fn certify_kept(&self, pair: &Pair, solved: &Solved) -> Certified {
        let (kept, caps) = (&solved.kept, self.level.caps);
        let caps: Vec<f64> = caps.iter().zip(kept).map(|(cap, kept)| if *kept { *cap } else { 0.0 }).collect();
        let mut level = Level { caps: &caps, ..self.level.clone() };
        if let Some(bound) = &solved.bound {
            level.linear = Cost { work: self }.linear(bound);
        }
        // multipliers of terms that changed sides after the last solve; the certificate tells what that costs
        let mut pair = pair.clone();
        let mut rows = vec![Row::unknown(); level.rows()];
        band::glance(&level, &pair.theta, &mut rows);
        let was = pair.dual.clone();
        pair.dual.relabel(|at| (!kept[at] || !was.counts(at)).then_some(rows[at].label));
        certify(&level, &pair, self.options.tolerance, true)
    }

    /// V, rows x classes, in the caller's units: base - q of every row.
    fn expansion(&self, found: &Certified, bound: &Majorant) -> Vec<f64> {
        let (problem, k) = (self.problem, self.level.classes);
        let shares = found.dual.dense(None);
        let (mut knots, mut base) = (vec![0.0; k], vec![0.0; k]);
        let mut out = vec![0.0; problem.rows() * k];
        for (at, share) in shares.chunks_exact(k).enumerate() {
            let row = self.terms.row(at);
            let cap = problem.kept_cap(bound, row, self.level.codes[at] as usize);
            out[row * k..(row + 1) * k].iter_mut().zip(share).for_each(|(v, share)| *v -= share * cap);
        }
        for (row, v) in out.chunks_exact_mut(k).enumerate() {
            problem.shape(bound, row, &mut knots, &mut base);
            v.iter_mut().zip(&base).for_each(|(v, base)| *v = found.scale * (*v + base));
        }
        out
    }

    /// Back to the caller's units.
    fn solution(
        &self,
        found: Certified,
        solved: Solved,
        trace: Vec<f64>,
        iterations: usize,
        status: Status,
    ) -> Solution {
        let (problem, level) = (self.problem, self.level);
        let (k, d) = (problem.classes, problem.x.cols());
        let (mut gap, still) = (found.relative_gap(), solved.still);
        let bound = solved.bound.unwrap_or_else(|| Majorant { kept: self.flags(&solved.kept), base: Vec::new() });
        let mut expansion = self.expansion(&found, &bound);
        let mut weights = Vec::with_capacity(k * d);
        let mut intercepts = Vec::with_capacity(k);
        for row in found.theta.chunks_exact(d + 1) {
            weights.extend(row[..d].iter().map(|w| w * self.shrink.min(1.0) * level.unit));
            intercepts.push(row[d]);
        }
        centre(&mut weights, d);
        centre(&mut intercepts, 1);
        if self.shrink != 1.0 {
            gap = self.recertify(&mut expansion, &weights, &intercepts, &bound);
        }
        let candidate = ManyCandidate { expansion: &expansion, weights: Some(&weights), intercepts: &intercepts };
        let decision = problem.decision(&candidate);
        let objective = problem.penalty(&candidate, &decision) + problem.total_loss(&decision);
        let own = problem.majorant(&decision, None).kept;
        let weight = |at: usize| match problem.terms {
            Terms::Own => problem.caps[at],
            _ => problem.cap(at / k, at % k),
        };
        let own = (0..own.len()).all(|at| own[at] == bound.kept[at] || weight(at) == 0.0);
        let mut trace: Vec<f64> = trace.iter().map(|value| value * self.largest).collect();
        trace.retain(|value| *value > objective);
        trace.push(objective);
        let status = match status {
            Status::TimeLimit | Status::IterationLimit => status,
            _ if self.context.control.out_of_time() && gap > self.options.tolerance => Status::TimeLimit,
            _ if (own || still) && gap <= self.options.tolerance => Status::Converged,
            _ => Status::Inaccurate,
        };
        self.context.control.report(Progress { stage: "certified", step: iterations, objective, gap });
        Solution {
            truncated: problem.flat_rows(&decision),
            majorant: Some(bound),
            expansion,
            weights: Some(weights),
            intercepts,
            decision,
            objective,
            gap,
            trace,
            iterations,
            status,
            solver: NAME,
        }
    }

    /// The gap of a solution found with another rho than the true one, as the problem sees it. Multipliers of a separable
    /// problem are proportional to rho, those of others are not: the better of the two is kept.
    fn recertify(&self, expansion: &mut Vec<f64>, weights: &[f64], intercepts: &[f64], bound: &Majorant) -> f64 {
        let gap = |expansion: &[f64]| {
            let candidate = ManyCandidate { expansion, weights: Some(weights), intercepts };
            self.problem.certify(&candidate, bound).relative_gap()
        };
        let scaled: Vec<f64> = expansion.iter().map(|v| v / self.shrink.max(1.0)).collect();
        let (own, other) = (gap(expansion), gap(&scaled));
        if other < own {
            *expansion = scaled;
        }
        own.min(other).min(f64::MAX)
    }

    /// The flags of a bound: per row, or rows x classes with terms that have no weight kept.
    fn flags(&self, kept: &[bool]) -> Vec<bool> {
        if let Terms::Own = self.problem.terms {
            return kept.to_vec();
        }
        let k = self.level.classes;
        let mut flags = vec![true; self.problem.rows() * k];
        for (at, kept) in kept.iter().enumerate() {
            flags[self.terms.row(at) * k + self.level.codes[at] as usize] = *kept;
        }
        flags
    }
}

/// Takes the mean of the k rows of a k x columns matrix off each.
fn centre(values: &mut [f64], columns: usize) {
    let k = values.len() / columns.max(1);
    for column in 0..columns {
        let mean = (0..k).map(|class| values[class * columns + column]).sum::<f64>() / k as f64;
        (0..k).for_each(|class| values[class * columns + column] -= mean);
    }
}

/// The bounds of the cost form, from the problem.
struct Cost<'a, 'b> {
    work: &'b Work<'a>,
}

impl Bases for Cost<'_, '_> {
    fn bound(&self, theta: &[f64], dual: Option<&Dual>) -> Majorant {
        let (problem, level) = (self.work.problem, self.work.level);
        let (k, d) = (problem.classes, problem.x.cols());
        let mut weights = Vec::with_capacity(k * d);
        for row in theta.chunks_exact(d + 1) {
            weights.extend(row[..d].iter().map(|w| w * level.unit));
        }
        let intercepts: Vec<f64> = theta.chunks_exact(d + 1).map(|row| row[d]).collect();
        let candidate = ManyCandidate { expansion: &[], weights: Some(&weights), intercepts: &intercepts };
        let q = dual.map(|dual| {
            let mut q = vec![0.0; problem.rows() * k];
            for (at, share) in dual.dense(None).chunks_exact(k).enumerate() {
                let row = self.work.terms.row(at);
                let cap = self.work.terms.caps[at];
                q[row * k..(row + 1) * k].iter_mut().zip(share).for_each(|(q, share)| *q += share * cap);
            }
            q
        });
        problem.majorant(&problem.decision(&candidate), q.as_deref())
    }

    fn changes(&self, from: &Majorant, to: &Majorant) -> usize {
        self.work.problem.changes(from, to)
    }

    fn kept(&self, bound: &Majorant) -> Vec<bool> {
        let k = self.work.level.classes;
        let term = |at: usize| bound.kept[self.work.terms.row(at) * k + self.work.level.codes[at] as usize];
        (0..self.work.level.rows()).map(term).collect()
    }

    fn linear(&self, bound: &Majorant) -> Vec<f64> {
        let (problem, level) = (self.work.problem, self.work.level);
        let (k, d) = (problem.classes, problem.x.cols());
        let mut linear = vec![0.0; level.size()];
        for (row, base) in bound.base.chunks_exact(k).enumerate() {
            for (class, base) in base.iter().enumerate().filter(|(_, base)| **base != 0.0) {
                let out = &mut linear[class * (d + 1)..(class + 1) * (d + 1)];
                let factor = -base / self.work.largest;
                problem.x.add_scaled(row, factor, &mut out[..d]);
                out[d] += factor;
            }
        }
        level.normalise(&mut linear);
        linear
    }
}
