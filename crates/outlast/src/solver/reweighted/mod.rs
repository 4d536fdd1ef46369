//! Concave functions of convex losses, by reweighting: the capped l_p machine and its relatives.
//!
//! ```text
//! min  1/2 sum_j |f_j|^2 + sum_i c_i h(g_i),      g_i = sum_j l(y_ij (f_j(x_i) + b_j)),      h concave
//! ```
//!
//! A round takes the row weights d_i = h'(g_i) and minimises 1/2 sum_j |f_j|^2 + sum_i c_i d_i g_i, which splits into one convex
//! problem for each function (Nie, Wang and Huang 2017, algorithm 1, step 2, which their algorithm 2 does not carry out). With the
//! squared hinge that is a finite Newton method; p = 1 with one function goes through the solvers of the hinge. Two to ten rounds
//! where h only caps; where its slope is infinite at 0 (p < 2) it is bounded by tangents below a floor that is lowered in turns.
//!
//! The objective has many local minima. [`solve`] runs from several starts (`starts`) and keeps the best.
//! [`Settings::alternating`] is the paper's algorithm 2 instead: one linear system a function and round.

mod caps;
mod general;
mod machine;
mod narrow;
mod samples;
mod scheme;
mod space;
mod squares;
mod starts;
mod stored;

pub use space::Matrix;

use super::majorize::{self, Step};
use super::{Options, Solution, Status};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::problem::concave::{Concave, Robust};
use crate::problem::{Coded, Loss};
use scheme::{Functions, Points, Quadratic, Reweighting, State, by_rows, limits, loose};
use space::Space;
use starts::Effort;
use std::sync::Arc;

/// The solvers' names: what a user can ask for.
pub const NAMES: &[&str] = &["exact", "alternating"];

/// Rounds of the paper's heuristic in which the cap moves.
const MOVING_ROUNDS: usize = 5;

/// Relative decrease at which a loop ends.
const DECREASE: f64 = 1e-8;

/// The same for p < 2, whose weights never stand still.
const MOVING_DECREASE: f64 = 1e-7;

/// The same where only a better start is wanted.
const COARSE_DECREASE: f64 = 1e-4;

/// Where the cap comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CapRule {
    /// The problem's loss has it.
    Fixed,
    /// During the first five rounds it is put where this share of the rows' weight lies beyond it, and stays there.
    Beyond(f64),
}

/// What is special to this solver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Where the cap comes from.
    pub cap: CapRule,
    /// The paper's algorithm 2 instead of exact rounds.
    pub alternating: bool,
    /// Which matrix the systems are written in.
    pub matrix: Matrix,
    /// Whether several starts are tried.
    pub portfolio: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { cap: CapRule::Fixed, alternating: false, matrix: Matrix::Auto, portfolio: true }
    }
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// `truncated` are the rows beyond the cap.
    pub solution: Solution,
    /// The cap, infinite for none.
    pub cap: f64,
    /// What each row would cost without a cap.
    pub losses: Vec<f64>,
}

/// Where a run from one start ended.
struct Run {
    points: Points,
    weights: Vec<f64>,
    trace: Vec<f64>,
    /// P with h itself.
    objective: f64,
    iterations: usize,
    status: Status,
    exhausted: bool,
}

/// Solves.
///
/// ```
/// use outlast::problem::{Coded, concave::{self, Robust}};
/// use outlast::solver::{Options, reweighted};
/// use outlast::{Control, Dense, KernelFunction};
///
/// let x = Dense::from_rows(&[[-2.0], [-1.0], [1.0], [2.0], [50.0]]);
/// let loss = Robust::new(concave::from_name("lp")?, 2.0, 2.0, 1);
/// let problem = Coded {
///     x: &x,
///     codes: &[0, 0, 1, 1, 0],
///     functions: 1,
///     caps: &[1.0; 5],
///     loss: &loss,
///     kernel: &KernelFunction::Linear,
///     intercept: true,
/// };
/// let found = reweighted::solve(&problem, &Default::default(), &Options::default(), &Control::default())?;
/// assert_eq!(found.solution.truncated, [false, false, false, false, true]);
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn solve(problem: &Coded, settings: &Settings, options: &Options, control: &Control) -> Result<Found> {
    match settings.alternating {
        true => alternate(problem, settings, options, control),
        false => exact(problem, settings, options, control),
    }
}

/// Exact rounds from several starts.
fn exact(problem: &Coded, settings: &Settings, options: &Options, control: &Control) -> Result<Found> {
    let space = space_of(problem, settings.matrix, options)?;
    let name = match space {
        Space::Other => "reweighted",
        _ => "finite-newton",
    };
    let fresh = || functions_in(&space, problem, options);
    let mut functions = fresh()?;
    if let CapRule::Beyond(share) = settings.cap {
        move_cap(&mut functions, share, options, control)?;
    }
    let mut best = starts::best(&mut functions, &fresh, settings, &Effort::of(problem), options, control)?;
    functions.go_to(&best.points);
    let (gap, expansion) = certify(&mut functions, &mut best, options, control)?;
    Ok(found(&functions, best, (gap, expansion), options, name))
}

fn is_squared(problem: &Coded) -> bool {
    problem.loss.base.name() == Loss::squared_hinge().base().name()
}

/// The matrices of the squared hinge; the other losses have none.
fn space_of<'a>(problem: &Coded<'a>, matrix: Matrix, options: &Options) -> Result<Space<'a>> {
    if is_squared(problem) { Space::new(problem, matrix, options) } else { Ok(Space::Other) }
}

fn functions_in<'b>(space: &'b Space, problem: &Coded<'b>, options: &Options) -> Result<Functions<'b>> {
    let machines = match is_squared(problem) {
        true => space.machines(problem, options),
        false => space::general_machines(problem, Loss::from_name(problem.loss.base.name())?, options),
    };
    Ok(Functions { problem: *problem, loss: problem.loss.clone(), machines })
}

/// The heuristic: rounds in which the cap follows the losses.
fn move_cap(functions: &mut Functions, share: f64, options: &Options, control: &Control) -> Result<()> {
    let mut weights = vec![1.0; functions.problem.rows()];
    functions.minimize(&weights, options.tolerance, control)?;
    for round in 0..MOVING_ROUNDS {
        put_cap(functions, share);
        if round + 1 == MOVING_ROUNDS {
            break;
        }
        let next = functions.slopes(&*working(&functions.loss));
        if next == weights || !functions.any(&next) {
            break;
        }
        weights = next;
        functions.minimize(&weights, loose(options.tolerance), control)?;
    }
    Ok(())
}

/// A row of at least this margin is never given up by the heuristic: where fewer rows than its share are worse, the cap lies here.
const CLEAR_MARGIN: f64 = 0.9;

/// Puts the cap where that share of the rows lies beyond it.
fn put_cap(functions: &mut Functions, share: f64) {
    let least = functions.loss.concave.uncapped(functions.loss.base.value(CLEAR_MARGIN));
    let losses: Vec<f64> = functions.convex_losses().iter().map(|&g| functions.loss.concave.uncapped(g)).collect();
    functions.loss = functions.loss.with_cap(caps::beyond(&losses, functions.problem.caps, share).max(least));
}

/// The bound of h that rough work is done with.
fn working(loss: &Robust) -> Arc<dyn Concave> {
    let bounds = loss.concave.bounds();
    bounds[(bounds.len() - 1).min(1)].clone()
}

/// How the rounds from a start are run: with each bound of h in turn.
#[derive(Clone, Copy)]
struct Rounds<'a> {
    bounds: &'a [Arc<dyn Concave>],
    /// Relative decrease at which the last bound's rounds end.
    decrease: f64,
    options: &'a Options,
    control: &'a Control<'a>,
}

impl Rounds<'_> {
    /// From given row weights.
    fn run_from_weights(&self, functions: &mut Functions, weights: Vec<f64>) -> Result<Run> {
        let first = functions.minimize(&weights, self.options.tolerance, self.control)?;
        self.run_from_minimiser(functions, weights, first)
    }

    /// From the current point, whose row weights these are.
    fn run_from_point(&self, functions: &mut Functions, weights: Vec<f64>) -> Result<Run> {
        let start = Step { gap: f64::INFINITY, iterations: 0, status: Status::Converged };
        self.run_from_minimiser(functions, weights, start)
    }

    /// From the current point, which minimises the bound of these weights, as `first` tells.
    fn run_from_minimiser(&self, functions: &mut Functions, mut weights: Vec<f64>, first: Step) -> Result<Run> {
        let Rounds { bounds, options, control, .. } = *self;
        let (mut trace, mut iterations, mut status, mut exhausted) = (Vec::new(), 0, first.status, false);
        let mut start = first;
        for (number, bound) in bounds.iter().enumerate() {
            let last = number + 1 == bounds.len();
            let decrease = if last { self.decrease } else { COARSE_DECREASE };
            let limits = limits(options.tolerance, decrease, options.max_steps);
            let state = State::new(functions, &**bound, weights);
            let mut method = Reweighting { state, tolerance: options.tolerance };
            let report = majorize::run(&mut method, start, &limits, "capped", control)?;
            weights = method.state.weights;
            exhausted = method.state.exhausted;
            append(&mut trace, &report.trace);
            iterations += report.iterations;
            status = match report.status {
                // not the rounds but the steps within one came to their end: the certificate decides what that was worth
                Status::IterationLimit if report.trace.len() <= options.max_steps => Status::Inaccurate,
                other => other,
            };
            start = Step { gap: report.gap, iterations: 0, status };
            if status == Status::TimeLimit {
                break;
            }
        }
        let objective = functions.objective(&*functions.loss.concave);
        Ok(Run { points: functions.points(), weights, trace, objective, iterations, status, exhausted })
    }
}

/// Values of one bound after those of the bound above it: what does not go down is left out.
fn append(trace: &mut Vec<f64>, more: &[f64]) {
    for &value in more {
        if trace.last().is_none_or(|last| value < *last) {
            trace.push(value);
        }
    }
}

/// The certified gap of the last convex problem and the expansions; solved once more, harder, where that misses the tolerance.
fn certify(functions: &mut Functions, best: &mut Run, options: &Options, control: &Control) -> Result<(f64, Vec<f64>)> {
    let (gap, expansion) = functions.certify(&best.weights);
    if gap <= options.tolerance || matches!(best.status, Status::TimeLimit | Status::IterationLimit) {
        return Ok((gap, expansion));
    }
    let step = functions.minimize(&best.weights, 1e-6 * options.tolerance, control)?;
    best.iterations += step.iterations;
    let objective = functions.objective(&*functions.loss.concave);
    let (better, polished) = functions.certify(&best.weights);
    if better < gap && objective <= best.objective {
        best.objective = objective;
        best.points = functions.points();
        return Ok((better, polished));
    }
    functions.go_to(&best.points);
    Ok((gap, expansion))
}

/// Algorithm 2 of the paper, from D = I and M = 0.
fn alternate(problem: &Coded, settings: &Settings, options: &Options, control: &Control) -> Result<Found> {
    if problem.loss.form.name() != "lp" {
        let found = format!("\"alternating\" with the loss {:?}", problem.loss.form.name());
        return Err(Error::parameter("solver", found, "\"exact\", or the loss \"lp\""));
    }
    let space = Space::with_matrix(problem, settings.matrix, options)?;
    if let Space::Other = space {
        let found = format!("\"alternating\" with {} rows and {} columns", problem.rows(), problem.x.cols());
        return Err(Error::parameter("solver", found, space::allowed_for_matrices(problem)));
    }
    let squared = Robust::squared(problem.loss.power, problem.loss.cap);
    let mut functions = Functions { problem: *problem, loss: squared, machines: space.machines(problem, options) };
    let mut targets = functions.targets();
    let mut weights = vec![1.0; problem.rows()];
    functions.regress(&weights, &targets, control)?;
    let mut rounds = 1;
    if let CapRule::Beyond(share) = settings.cap {
        while rounds < MOVING_ROUNDS {
            put_cap(&mut functions, share);
            weights = functions.slopes(&*floored(&functions.loss));
            targets = functions.targets();
            functions.regress(&weights, &targets, control)?;
            rounds += 1;
        }
        put_cap(&mut functions, share);
    }
    let bound = floored(&functions.loss);
    let exact = functions.loss.concave.clone();
    let start = Step { gap: 0.0, iterations: rounds, status: Status::Converged };
    let mut method = Quadratic { state: State::new(&mut functions, &*bound, weights), targets };
    let report = majorize::run(&mut method, start, &limits(1.0, DECREASE, options.max_steps), "alternating", control)?;
    let State { weights, exhausted, .. } = method.state;
    let run = Run {
        points: functions.points(),
        weights,
        objective: functions.objective(&*exact),
        trace: report.trace,
        iterations: report.iterations,
        status: report.status,
        exhausted,
    };
    let certificate = functions.certify(&run.weights);
    // the gap is that of the convex bound; the algorithm stops by its decrease, as the paper's does
    let loose = Options { tolerance: f64::INFINITY, ..options.clone() };
    Ok(found(&functions, run, certificate, &loose, "alternating"))
}

/// The bound that algorithm 2 works with: one floor for good, high enough that rows outside the margin are not held fast.
fn floored(loss: &Robust) -> Arc<dyn Concave> {
    loss.concave.bounds()[0].clone()
}

fn found(
    functions: &Functions,
    run: Run,
    (gap, expansion): (f64, Vec<f64>),
    options: &Options,
    solver: &'static str,
) -> Found {
    let mut trace = run.trace;
    // from the last bound of h to h itself
    append(&mut trace, &[run.objective]);
    if let Some(last) = trace.last_mut() {
        *last = last.min(run.objective);
    }
    let status = match run.status {
        _ if run.exhausted => Status::AllCapped,
        Status::Converged | Status::Inaccurate if gap <= options.tolerance => Status::Converged,
        Status::Converged => Status::Inaccurate,
        other => other,
    };
    let mut losses = functions.convex_losses();
    losses.iter_mut().for_each(|g| *g = functions.loss.concave.uncapped(*g));
    Found {
        solution: Solution {
            expansion,
            weights: functions.coefficients().map(|(weights, _)| weights),
            intercepts: functions.intercepts(),
            decision: by_rows(&functions.decisions()),
            truncated: losses.iter().map(|&loss| functions.loss.is_beyond(loss)).collect(),
            majorant: None,
            objective: run.objective,
            gap,
            trace,
            iterations: run.iterations,
            status,
            solver,
        },
        cap: functions.loss.cap,
        losses,
    }
}
