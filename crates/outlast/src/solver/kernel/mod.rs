//! Kernel machines: the truncated hinge by the d.c. algorithm on a two-level block SMO.
//!
//! The convex problem of a truncation set has the dual
//!
//! ```text
//! min 1/2 b'K b - y'b,   sum b = 0,   0 <= y b <= c (kept rows),   -c <= y b <= 0 (truncated rows)
//! ```
//!
//! (Wu and Liu 2007, section 3.1, with b = y (alpha - beta)). Moving the majoriser flips the boxes of the rows that crossed
//! the truncation point; b is put into the new box, the sum restored greedily, and the solver goes on from there. Each
//! step after the first costs a small part of the first.

mod block;
mod double;
mod dual;
mod gram;
mod many;
mod outer;
mod ranges;
mod select;
mod shifted;
mod two_level;

use super::majorize::{self, Limits, Majorizer, Step};
use super::{Care, Options, Solution, Status};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::Isa;
use crate::problem::TwoClass;
use dual::Dual;
use gram::Gram;
use two_level::{Sizes, Solver};

pub use gram::{KernelStore, SharedRows};
pub use many::{solve_many, solve_many_on};
pub use shifted::solve_shifted;

/// Steps of the d.c. algorithm are solved to this many times the tolerance until the truncation set stands. On few rows
/// they are not: the path is then that of the exact d.c. algorithm started at the exact hinge solution.
const LOOSENESS: f64 = 40.0;

/// Up to how many rows that is.
const EXACT_PATH: usize = 4000;

/// Distance from the truncation point at which a row's side is in doubt.
const DOUBT: f64 = 1e-4;

/// In doubt, the path is also started at the hinge solutions of C times these.
const STIFFER: [f64; 2] = [3.0, 30.0];

/// In doubt, or up to this many rows, it is also started at the difference of the classes' kernel means.
const ALWAYS: usize = 1000;

/// The solver's name.
pub const NAME: &str = "kernel-smo";

/// Solves a two-class hinge problem, truncated or not, for any kernel.
pub fn solve(problem: &TwoClass, options: &Options, control: &Control) -> Result<Solution> {
    solve_on(Isa::detect(), problem, options, control)
}

/// As [`solve`], on a given instruction set, which must be among [`Isa::available`].
pub fn solve_on(isa: Isa, problem: &TwoClass, options: &Options, control: &Control) -> Result<Solution> {
    let mut machine = Machine::prepare(isa, problem, options)?;
    let followed = if problem.loss.truncation().is_some() { machine.follow(options)? } else { None };
    if followed.is_none() {
        machine.warm_start(options)?;
    }
    machine.solver.stage = "hinge";
    let start = match followed {
        Some(start) => start,
        None => machine.minimize(options.tolerance, control)?,
    };
    let Some(truncation) = problem.loss.truncation() else {
        let trace = vec![machine.objective()];
        let report = majorize::Report { trace, gap: start.gap, iterations: start.iterations, status: start.status };
        return Ok(machine.solution(report));
    };
    let careful = options.care == Care::Full;
    let small = problem.rows() <= EXACT_PATH && careful;
    let limits = Limits {
        tolerance: options.tolerance,
        loose: if small { options.tolerance } else { LOOSENESS * options.tolerance },
        decrease: 0.01 * options.tolerance,
        max_steps: options.max_steps,
    };
    // rows just at the truncation point: which side they are on is rounding, and may decide where the path ends
    let in_doubt = small && (0..problem.rows()).any(|row| (machine.margin(row) - truncation).abs() < DOUBT);
    machine.solver.stage = "truncated hinge";
    let report = majorize::run(&mut machine, start, &limits, "truncated hinge", control)?;
    let mut best = machine.solution(report);
    if followed.is_some() {
        return Ok(best);
    }
    let few = problem.rows() <= ALWAYS && careful;
    let starts = [(few || in_doubt, None), (in_doubt, Some(STIFFER[0])), (in_doubt, Some(STIFFER[1]))];
    for (_, factor) in starts.into_iter().filter(|(wanted, _)| *wanted) {
        let mut other = Machine::prepare(isa, problem, options)?;
        let start = match factor {
            None => other.mean_start(),
            Some(factor) => other.stiff_start(factor, control)?,
        };
        let report = majorize::run(&mut other, start, &limits, "truncated hinge", control)?;
        let other = other.solution(report);
        if other.gap.is_finite() && other.objective < best.objective {
            best = other;
        }
    }
    Ok(best)
}

/// The iterate and its majoriser.
struct Machine<'p, 'a, 'o> {
    problem: &'p TwoClass<'a>,
    dual: Dual<'a>,
    solver: Solver<'o>,
    /// Boxes of kept rows, in the solver's unit.
    caps: Vec<f64>,
    truncated: Vec<bool>,
    intercept: f64,
    saved: Option<Saved>,
}

struct Saved {
    beta: Vec<f64>,
    gradient: Vec<f64>,
    truncated: Vec<bool>,
    intercept: f64,
}

/// The largest box in units of the kernel's size. A row that needs more than this is beyond f32 kernel values, and nearly
/// beyond f64: the box is clipped and the answer reported as inaccurate.
const LARGEST_CAP: f64 = 1e14;

impl<'p, 'a, 'o> Machine<'p, 'a, 'o> {
    fn new(problem: &'p TwoClass<'a>, gram: Gram<'a>, solver: Solver<'o>) -> Self {
        let unit = gram.unit();
        let caps: Vec<f64> = problem.caps.iter().map(|cap| (cap * unit).min(LARGEST_CAP)).collect();
        let linear = problem.signs.iter().map(|y| -y).collect();
        let rows = problem.rows();
        let dual = Dual::new(gram, linear, vec![0.0; rows], vec![0.0; rows], problem.intercept);
        let mut machine =
            Machine { problem, dual, solver, caps, truncated: vec![false; rows], intercept: 0.0, saved: None };
        machine.set_boxes();
        machine
    }

    /// The machine with b = 0, its matrix within the byte budget.
    fn prepare(isa: Isa, problem: &'p TwoClass<'a>, options: &'o Options) -> Result<Self> {
        let sizes = Sizes::new(options.cache_bytes / 2);
        let keep = options.cache_bytes.saturating_sub(sizes.bytes());
        let gram = Gram::new(problem.x, problem.kernel, isa, keep)?.with_store(options.store.as_ref());
        Ok(Machine::new(problem, gram, Solver::new(sizes, options)))
    }

    /// Starts from the hinge solution of a larger C, where fewer rows are alike.
    fn stiff_start(&mut self, factor: f64, control: &Control) -> Result<Step> {
        let caps = self.caps.clone();
        self.caps.iter_mut().for_each(|cap| *cap = (*cap * factor).min(LARGEST_CAP));
        self.set_boxes();
        let step = self.minimize(1e-6, control)?;
        self.caps = caps;
        // of the problem itself this solves nothing
        Ok(Step { gap: f64::INFINITY, status: Status::Inaccurate, ..step })
    }

    /// Starts from f = mean of k(x, .) over the positive rows minus that over the negative ones, shifted and scaled to
    /// margins of 1 at the medians: far rows hardly count.
    fn mean_start(&mut self) -> Step {
        let rows = self.dual.rows();
        let total = |sign: f64| -> f64 {
            (0..rows).filter(|&row| self.problem.signs[row] == sign).map(|row| self.caps[row]).sum()
        };
        let totals = [total(-1.0), total(1.0)];
        let all: Vec<u32> = (0..rows as u32).collect();
        let share = |row: usize| {
            let y = self.problem.signs[row];
            y * self.caps[row] / totals[usize::from(y > 0.0)].max(f64::MIN_POSITIVE)
        };
        let mut beta: Vec<f64> = (0..rows).map(share).collect();
        let mut f = vec![0.0; self.dual.gradient.len()];
        self.dual.gram.multiply_all(&all, &beta, &mut f);
        let median = |sign: f64| -> f64 {
            let mut values: Vec<f64> =
                (0..rows).filter(|&row| self.problem.signs[row] == sign).map(|row| f[row]).collect();
            match values.len() {
                0 => 0.0,
                count => *values.select_nth_unstable_by(count / 2, f64::total_cmp).1,
            }
        };
        let (low, high) = (median(-1.0), median(1.0));
        let scale = if high > low { 2.0 / (high - low) } else { 0.0 };
        beta.iter_mut().for_each(|b| *b *= scale);
        for row in 0..rows {
            self.dual.gradient[row] = scale * f[row] + self.dual.linear[row];
        }
        self.dual.beta = beta;
        self.intercept = if self.problem.intercept { -0.5 * scale * (low + high) } else { 0.0 };
        Step { gap: f64::INFINITY, iterations: 0, status: Status::Inaccurate }
    }

    fn set_boxes(&mut self) {
        for row in 0..self.truncated.len() {
            let positive = (self.problem.signs[row] > 0.0) != self.truncated[row];
            let cap = self.caps[row];
            (self.dual.lower[row], self.dual.upper[row]) = if positive { (0.0, cap) } else { (-cap, 0.0) };
        }
    }

    /// Starts from another solution's b: moved into the boxes, the sum restored.
    fn warm_start(&mut self, options: &Options) -> Result<()> {
        let Some(start) = &options.start else { return Ok(()) };
        let unit = self.dual.gram.unit();
        let (mut rows, mut moves) = (Vec::new(), Vec::new());
        for (row, &beta) in start.expansion.iter().enumerate().take(self.dual.rows()) {
            let beta = (beta * unit).clamp(self.dual.lower[row], self.dual.upper[row]);
            if beta != 0.0 {
                self.dual.beta[row] = beta;
                rows.push(row as u32);
                moves.push(beta);
            }
        }
        self.dual.moved(&rows, &moves);
        self.dual.balance()
    }

    /// Starts at another solution itself, its truncated rows included, if that is wanted.
    fn follow(&mut self, options: &Options) -> Result<Option<Step>> {
        let Some(start) = options.start.as_ref().filter(|_| options.care == Care::Follow) else { return Ok(None) };
        if start.expansion.len() != self.truncated.len() {
            return Ok(None);
        }
        // the multipliers of truncated rows are on the other side of 0
        for row in 0..self.truncated.len() {
            self.truncated[row] = self.problem.signs[row] * start.expansion[row] < 0.0;
        }
        self.set_boxes();
        self.warm_start(options)?;
        self.intercept = if self.problem.intercept { start.intercept() } else { 0.0 };
        // of the problem itself this solves nothing
        Ok(Some(Step { gap: f64::INFINITY, iterations: 0, status: Status::Inaccurate }))
    }

    /// y f of a row.
    fn margin(&self, row: usize) -> f64 {
        let y = self.problem.signs[row];
        1.0 + y * (self.dual.gradient[row] + self.intercept)
    }

    fn solution(self, report: majorize::Report) -> Solution {
        let rows = self.dual.rows();
        let unit = self.dual.gram.unit();
        let decision: Vec<f64> = (0..rows).map(|row| self.problem.signs[row] * self.margin(row)).collect();
        // a row at the truncation point itself belongs to either set; the multipliers decide
        let at_the_point =
            |margin: f64| self.problem.loss.truncation().is_some_and(|s| (margin - s).abs() <= 1e-9 * (1.0 + s.abs()));
        let side = |row: usize| match self.margin(row) {
            margin if at_the_point(margin) => self.truncated[row],
            margin => self.problem.loss.truncates(margin),
        };
        let truncated = (0..rows).map(side).collect();
        // a row at a clipped bound: what was solved is not what was asked
        let clipped = (0..rows)
            .any(|row| self.problem.caps[row] * unit > LARGEST_CAP && self.dual.beta[row].abs() >= self.caps[row]);
        let (status, gap) = if clipped { (Status::Inaccurate, f64::INFINITY) } else { (report.status, report.gap) };
        Solution {
            expansion: self.dual.beta.iter().map(|b| b / unit).collect(),
            weights: None,
            intercepts: vec![self.intercept],
            decision,
            truncated,
            majorant: None,
            objective: report.trace[report.trace.len() - 1],
            gap,
            trace: report.trace,
            iterations: report.iterations,
            status,
            solver: NAME,
        }
    }
}

impl Majorizer for Machine<'_, '_, '_> {
    fn objective(&mut self) -> f64 {
        let unit = self.dual.gram.unit();
        let rows = self.dual.rows();
        let quadratic: f64 =
            (0..rows).map(|row| self.dual.beta[row] * (self.dual.gradient[row] - self.dual.linear[row])).sum();
        let loss: f64 = (0..rows).map(|row| self.problem.caps[row] * self.problem.loss.value(self.margin(row))).sum();
        0.5 * quadratic / unit + loss
    }

    fn majorize(&mut self) -> usize {
        let mut changed = 0;
        for row in 0..self.truncated.len() {
            let now = self.problem.loss.truncates(self.margin(row));
            changed += usize::from(now != self.truncated[row]);
            self.truncated[row] = now;
        }
        self.set_boxes();
        changed
    }

    fn minimize(&mut self, tolerance: f64, control: &Control) -> Result<Step> {
        self.dual.clamp();
        self.dual.balance()?;
        let step = self.solver.solve(&mut self.dual, tolerance, control)?;
        self.intercept = self.dual.intercept(&self.dual.measure());
        Ok(step)
    }

    fn save(&mut self) {
        self.saved = Some(Saved {
            beta: self.dual.beta.clone(),
            gradient: self.dual.gradient.clone(),
            truncated: self.truncated.clone(),
            intercept: self.intercept,
        });
    }

    fn restore(&mut self) {
        if let Some(saved) = self.saved.take() {
            self.dual.beta = saved.beta;
            self.dual.gradient = saved.gradient;
            self.truncated = saved.truncated;
            self.intercept = saved.intercept;
            self.set_boxes();
        }
    }
}
