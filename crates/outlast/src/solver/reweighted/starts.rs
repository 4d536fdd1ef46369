//! Starts of the exact rounds.
//!
//! A start is a vector of row weights. The first is always that of the point at hand: the plain fit, or where the heuristic of the
//! cap has led. Where a fit is cheap enough the others follow, and the best end point is kept:
//!
//! | start | row weights |
//! |---|---|
//! | plain | 1 |
//! | least squares | the slopes h' at the ridge regression on the labels |
//! | alternating | the slopes where algorithm 2 ends, from least squares, or after as many rounds as are cheap |
//! | leverage | less for rows of a linear machine that lie far from the mean, which fit themselves whatever their label |
//! | trimmed | 0 for the share of rows that fits worst, in turns, else 1 |
//! | flat | 1 for the rows of a class, 0 for all others: one and the same decision for all rows; for a cap that was given, not one that was put where the plain fit has its losses |
//! | continuation | the slopes at the end point of the cap times 4, of that times 2, ... |
//!
//! From the best end a cap that was given is lowered or raised a little for a few rounds, in turns, and the end kept where that led lower.
//!
//! The rounds from weights h'(g(f)) end no higher than P(f): where algorithm 2 has converged, no higher than that.
//!
//! Each is followed by machines of its own, from the plain fit, so that cores share them. With more rows the starts are tried on some of
//! them (`samples`).

use super::super::majorize::Step;
use super::super::{Options, Status};
use super::samples::from_some_rows;
use super::scheme::{Functions, Points, views};
use super::space::{Matrix, Space};
use super::{COARSE_DECREASE, CapRule, DECREASE, MOVING_DECREASE, Rounds, Run, Settings, caps, floored, working};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::dot;
use crate::problem::concave::{Concave, Robust};
use crate::problem::{Coded, KernelFunction, Loss};
use rayon::prelude::*;
use std::sync::Arc;

/// Entries of the smaller matrix, rows x the fewer of rows and columns (of a kernel: of rows), times functions, up to which every start is
/// tried; and how many times as many with few rows for each column, where a sample tells little.
pub(super) const CHEAP: usize = 500_000;
const STILL_CHEAP: usize = 4 * CHEAP;
const FEW_ROWS_PER_COLUMN: usize = 40;

/// Rounds of algorithm 2: at least (with a kernel, whose matrix may be factored in each of them), at most, and what they may cost
/// together (entries of the matrix read).
const ALTERNATIONS: (usize, usize) = (20, 2000);
const KERNEL_ALTERNATIONS: usize = 3;
const ALTERNATING_WORK: usize = 100_000_000;

const TRIMMINGS: usize = 3;
/// Classes up to which each by itself is a start.
const MOST_FLAT: u32 = 4;
const FACTORS: [f64; 3] = [8.0, 4.0, 2.0];

/// Factors of the cap that lead out of local minima: where every start is tried these give up too few rows, else too many. And the
/// rounds with such a cap.
const LOWER: [f64; 5] = [0.9, 0.8, 0.7, 0.6, 0.5];
const HIGHER: [f64; 1] = [1.1];
const FEW_ROUNDS: usize = 5;

/// Ends that differ by less, relatively, are the same.
const TIE: f64 = 1e-12;

/// How much is done for each start.
pub(super) struct Effort {
    /// Rounds of algorithm 2.
    alternations: usize,
    /// Relative decrease at which the rounds with h itself end.
    decrease: f64,
    /// Whether the lower bounds of h follow, where it has several.
    refined: bool,
}

impl Effort {
    /// As many rounds of algorithm 2 as are cheap, and all exact ones.
    pub(super) fn of(problem: &Coded) -> Effort {
        let (least, most) = ALTERNATIONS;
        let (least, work) = match problem.kernel {
            KernelFunction::Linear => (least, size(problem)),
            _ => (KERNEL_ALTERNATIONS, size(problem).saturating_mul(problem.rows() / 3)),
        };
        let alternations = (ALTERNATING_WORK / work.max(1)).clamp(least, most);
        Effort { alternations, decrease: DECREASE, refined: true }
    }

    fn decrease_with(&self, bounds: &[Arc<dyn Concave>]) -> f64 {
        if bounds.len() == 1 { self.decrease } else { COARSE_DECREASE }
    }

    /// Enough to tell good starts from bad ones.
    pub(super) const SAMPLED: Effort =
        Effort { alternations: ALTERNATIONS.0, decrease: COARSE_DECREASE, refined: false };
}

/// Makes the decision functions anew.
pub(super) type Fresh<'f, 'a> = &'f (dyn Fn() -> Result<Functions<'a>> + Sync);

/// The best end point of all starts. Where the cap has moved, the point at hand is where that led to.
pub(super) fn best<'a>(
    functions: &mut Functions<'a>,
    fresh: Fresh<'_, 'a>,
    settings: &Settings,
    effort: &Effort,
    options: &Options,
    control: &Control,
) -> Result<Run> {
    let problem = functions.problem;
    let bounds = functions.loss.concave.bounds();
    let rounds = Rounds { bounds: rough(&bounds), decrease: effort.decrease_with(&bounds), options, control };
    let plain = vec![1.0; problem.rows()];
    let convex = functions.loss.cap == f64::INFINITY && bounds.len() == 1;
    let portfolio = settings.portfolio && !convex;
    let sampled = portfolio && !is_cheap(&problem) && from_some_rows(functions, options, control)?;
    let weights = functions.slopes(&*working(&functions.loss));
    let mut plain_fit = None;
    let mut best = match settings.cap {
        _ if sampled && functions.any(&weights) => rounds.run_from_point(functions, weights)?,
        CapRule::Beyond(_) if functions.any(&weights) => rounds.run_from_weights(functions, weights)?,
        _ => {
            let first = functions.minimize(&plain, options.tolerance, control)?;
            plain_fit = Some(functions.points());
            rounds.run_from_minimiser(functions, plain.clone(), first)?
        }
    };
    if portfolio && is_cheap(&problem) && best.status != Status::TimeLimit {
        match &plain_fit {
            Some(points) => functions.go_to(points),
            None => drop(functions.minimize(&plain, options.tolerance, control)?),
        }
        let others = Others::new(functions, settings, effort.alternations, &best);
        best = others.better_than(best, fresh, &rounds)?;
    }
    let given = settings.cap == CapRule::Fixed && functions.loss.cap.is_finite();
    if portfolio && given && effort.refined && best.status == Status::Converged && !best.exhausted {
        let factors: &[f64] = if is_cheap(&problem) { &LOWER } else { &HIGHER };
        best = by_nearby_caps(functions, best, factors, &rounds)?;
    }
    if bounds.len() == 1 || best.status == Status::TimeLimit || !effort.refined {
        return Ok(best);
    }
    refine(functions, best, &bounds, options, control)
}

/// The bounds for comparing starts: all of them if there is one, else the first two.
pub(super) fn rough(bounds: &[Arc<dyn Concave>]) -> &[Arc<dyn Concave>] {
    &bounds[..bounds.len().min(2)]
}

/// Out of a local minimum: a few rounds with each of other caps, and on from there with the cap itself. The lowest end is kept, and
/// the next cap is tried from there.
fn by_nearby_caps(functions: &mut Functions, mut best: Run, factors: &[f64], rounds: &Rounds) -> Result<Run> {
    let own = functions.loss.clone();
    for factor in factors {
        if rounds.control.out_of_time() {
            best.status = Status::TimeLimit;
            break;
        }
        functions.go_to(&best.points);
        functions.loss = own.with_cap(factor * own.cap);
        let led = few_rounds(functions, rounds);
        functions.loss = own.clone();
        led?;
        let weights = functions.slopes(&*working(&own));
        if !functions.any(&weights) {
            continue;
        }
        let run = rounds.run_from_point(functions, weights)?;
        if run.status == Status::TimeLimit {
            best.status = Status::TimeLimit;
        }
        if !run.exhausted && run.objective < best.objective * (1.0 - TIE) {
            let mut trace = std::mem::take(&mut best.trace);
            super::append(&mut trace, &run.trace);
            best = Run { trace, iterations: best.iterations + run.iterations, ..run };
        }
    }
    functions.go_to(&best.points);
    Ok(best)
}

/// Rounds from the current point, with the cap that the functions have now.
fn few_rounds(functions: &mut Functions, rounds: &Rounds) -> Result<()> {
    let weights = functions.slopes(&*working(&functions.loss));
    if functions.any(&weights) {
        let bounds = functions.loss.concave.bounds();
        let options = Options { max_steps: FEW_ROUNDS.min(rounds.options.max_steps), ..rounds.options.clone() };
        let rounds = Rounds { bounds: rough(&bounds), decrease: COARSE_DECREASE, options: &options, ..*rounds };
        rounds.run_from_point(functions, weights)?;
    }
    Ok(())
}

/// Goes on with the lower bounds of h.
fn refine(
    functions: &mut Functions,
    best: Run,
    bounds: &[Arc<dyn Concave>],
    options: &Options,
    control: &Control,
) -> Result<Run> {
    functions.go_to(&best.points);
    let rest = &bounds[rough(bounds).len()..];
    let step = Step { gap: 0.0, iterations: 0, status: best.status };
    let rounds = Rounds { bounds: rest, decrease: MOVING_DECREASE, options, control };
    let run = rounds.run_from_minimiser(functions, best.weights.clone(), step)?;
    if run.objective > best.objective {
        return Ok(best);
    }
    let mut trace = best.trace;
    super::append(&mut trace, &run.trace);
    let iterations = best.iterations + run.iterations;
    Ok(Run { trace, iterations, exhausted: run.exhausted || best.exhausted, ..run })
}

/// Entries of the smaller matrix, rows x the fewer of rows and columns, of a kernel rows x rows, times functions.
fn size(problem: &Coded) -> usize {
    let n = problem.rows();
    let order = match problem.kernel {
        KernelFunction::Linear => problem.x.cols().min(n),
        _ => n,
    };
    n.saturating_mul(order).saturating_mul(problem.functions)
}

/// Whether every start is tried on all rows.
pub(super) fn is_cheap(problem: &Coded) -> bool {
    let unknowns = problem.x.cols().saturating_mul(problem.functions);
    let few_rows = matches!(problem.kernel, KernelFunction::Linear) && problem.rows() / FEW_ROWS_PER_COLUMN < unknowns;
    size(problem) <= if few_rows { STILL_CHEAP } else { CHEAP }
}

/// One of the other starts, or several that come from the same work.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Plain,
    Leverage,
    Regression,
    Trimmed,
    Continuation,
    Flat(u32),
}

/// All starts but the first.
struct Others {
    kinds: Vec<Kind>,
    /// The plain fit, from which all are followed.
    from: Points,
    loss: Robust,
    matrix: Matrix,
    /// Share of the rows' weight that is given up there.
    share: f64,
    alternations: usize,
}

impl Others {
    /// `functions` are at the plain fit, `best` is where the first start ended.
    fn new(functions: &Functions, settings: &Settings, alternations: usize, best: &Run) -> Others {
        let problem = functions.problem;
        let mut kinds = vec![Kind::Leverage, Kind::Regression, Kind::Trimmed, Kind::Continuation];
        let share = match settings.cap {
            CapRule::Beyond(share) => {
                kinds.insert(0, Kind::Plain);
                share
            }
            CapRule::Fixed => {
                let classes = problem.functions.max(2) as u32;
                if classes <= MOST_FLAT && !best.exhausted {
                    kinds.extend((0..classes).map(Kind::Flat));
                }
                let g = functions.convex_losses();
                let beyond = (0..g.len()).filter(|&row| functions.loss.gives_up(g[row])).map(|row| problem.caps[row]);
                beyond.sum::<f64>() / problem.caps.iter().sum::<f64>()
            }
        };
        let (from, loss) = (functions.points(), functions.loss.clone());
        Others { kinds, from, loss, matrix: settings.matrix, share, alternations }
    }

    /// The row weights of a kind of start, with the point of the plain fit at hand.
    fn weights(
        &self,
        kind: Kind,
        functions: &mut Functions,
        options: &Options,
        control: &Control,
    ) -> Result<Vec<Vec<f64>>> {
        let problem = functions.problem;
        let plain = || vec![1.0; problem.rows()];
        Ok(match kind {
            Kind::Plain => vec![plain()],
            Kind::Leverage => by_leverage(&problem).into_iter().collect(),
            Kind::Regression => by_regression(functions, self.matrix, self.alternations, options, control)?,
            Kind::Trimmed => vec![trimmed(functions, &plain(), self.share, options, control)?],
            Kind::Continuation => by_continuation(functions, &plain(), options, control)?.into_iter().collect(),
            Kind::Flat(class) => {
                vec![problem.codes.iter().map(|&code| f64::from(u8::from(code == class))).collect()]
            }
        })
    }

    /// Where the starts of a kind end; those not yet followed when time is up are `None`.
    fn follow<'a>(&self, kind: Kind, fresh: Fresh<'_, 'a>, rounds: &Rounds) -> Result<Vec<Option<Run>>> {
        if rounds.control.out_of_time() {
            return Ok(vec![None]);
        }
        let mut functions = fresh()?;
        functions.loss = self.loss.clone();
        functions.go_to(&self.from);
        let mut runs = Vec::new();
        for weights in self.weights(kind, &mut functions, rounds.options, rounds.control)? {
            if rounds.control.out_of_time() {
                runs.push(None);
            } else if functions.any(&weights) {
                runs.push(Some(rounds.run_from_weights(&mut functions, weights)?));
            }
        }
        Ok(runs)
    }

    /// The lowest of a run and of where the starts end; the cores share the kinds.
    fn better_than<'a>(&self, mut best: Run, fresh: Fresh<'_, 'a>, rounds: &Rounds) -> Result<Run> {
        let silent = rounds.control.silent();
        let rounds = Rounds { control: &silent, ..*rounds };
        let ends: Vec<Result<Vec<Option<Run>>>> =
            self.kinds.par_iter().with_max_len(1).map(|&kind| self.follow(kind, fresh, &rounds)).collect();
        for run in ends.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten() {
            let Some(run) = run else {
                best.status = Status::TimeLimit;
                continue;
            };
            // a tie goes to the earlier one, whatever the last digits say
            let lower = run.objective < best.objective * (1.0 - TIE);
            if !run.exhausted && (lower || best.exhausted) {
                let late = best.status == Status::TimeLimit;
                best = run;
                if late {
                    best.status = Status::TimeLimit;
                }
            }
        }
        Ok(best)
    }
}

/// (m / |x - mean|^2)^2 where that is below 1, m the median of these distances. A far row with a wrong label has so much leverage that
/// it never costs enough to be given up.
fn by_leverage(problem: &Coded) -> Option<Vec<f64>> {
    let KernelFunction::Linear = problem.kernel else { return None };
    let (n, d) = (problem.rows(), problem.x.cols());
    let total: f64 = problem.caps.iter().sum();
    let mut mean = vec![0.0; d];
    (0..n).for_each(|row| problem.x.add_scaled(row, problem.caps[row] / total, &mut mean));
    let square = dot(&mean, &mean);
    let distance = |row: usize| (problem.x.squared_norm(row) - 2.0 * problem.x.dot(row, &mean) + square).max(0.0);
    let distances: Vec<f64> = (0..n).map(distance).collect();
    let mut sorted: Vec<usize> = (0..n).filter(|&row| problem.caps[row] > 0.0).collect();
    sorted.sort_unstable_by(|&a, &b| distances[a].total_cmp(&distances[b]));
    let mut below = 0.0;
    let middle = sorted.iter().find(|&&row| {
        below += problem.caps[row];
        below >= 0.5 * total
    });
    let median = distances[*middle?];
    let finite = distances.iter().all(|distance| distance.is_finite());
    if !(median > 0.0 && finite) {
        return None;
    }
    Some(distances.iter().map(|distance| (median / distance.max(median)).powi(2)).collect())
}

/// Least squares, and algorithm 2 from there, by machines of its own where the loss has none that solve quadratic problems.
fn by_regression(
    functions: &mut Functions,
    matrix: Matrix,
    rounds: usize,
    options: &Options,
    control: &Control,
) -> Result<Vec<Vec<f64>>> {
    let problem = functions.problem;
    if functions.loss.form.name() != "lp" || functions.loss.base.name() == Loss::squared_hinge().base().name() {
        let found = alternated(functions, rounds, control)?;
        return Ok(found.iter().map(|found| functions.slopes_at(&*floored(&functions.loss), &views(found))).collect());
    }
    let space = Space::with_matrix(&problem, matrix, options)?;
    if let Space::Other = space {
        return Ok(Vec::new());
    }
    let loss = Robust::squared(functions.loss.power, functions.loss.cap);
    let mut squares = Functions { problem, loss, machines: space.machines(&problem, options) };
    let found = alternated(&mut squares, rounds, control)?;
    Ok(found.iter().map(|found| functions.slopes_at(&*floored(&functions.loss), &views(found))).collect())
}

/// The decision values of each function at least squares, and where algorithm 2 ends from there or after as many rounds as are
/// cheap. None where a machine solves no quadratic problems.
fn alternated(functions: &mut Functions, rounds: usize, control: &Control) -> Result<Vec<Vec<Vec<f64>>>> {
    let problem = functions.problem;
    let bound = floored(&functions.loss);
    let mut found = Vec::new();
    let mut weights = vec![1.0; problem.rows()];
    let mut targets: Vec<Vec<f64>> =
        (0..problem.functions).map(|j| (0..problem.rows()).map(|row| problem.sign(row, j)).collect()).collect();
    let mut value = f64::INFINITY;
    for round in 0..rounds {
        control.check()?;
        if control.out_of_time() || !functions.any(&weights) || !functions.regress(&weights, &targets, control)? {
            break;
        }
        weights = functions.slopes(&*bound);
        targets = functions.targets();
        let next = functions.objective(&*bound);
        let ended = round + 1 == rounds || value - next <= DECREASE * next.abs();
        value = next;
        if round == 0 || ended {
            found.push(functions.machines.iter().map(|machine| machine.decision().to_vec()).collect());
        }
        if ended && round > 0 {
            break;
        }
    }
    Ok(found)
}

/// The rows that fit worst are left out, in turns.
fn trimmed(
    functions: &mut Functions,
    plain: &[f64],
    share: f64,
    options: &Options,
    control: &Control,
) -> Result<Vec<f64>> {
    let problem = functions.problem;
    let mut weights = plain.to_vec();
    for _ in 0..TRIMMINGS {
        functions.minimize(&weights, options.tolerance, control)?;
        let g = functions.convex_losses();
        let cut = caps::beyond(&g, problem.caps, share);
        weights = g.iter().map(|&g| if g > cut { 0.0 } else { 1.0 }).collect();
        if !functions.any(&weights) {
            return Ok(plain.to_vec());
        }
    }
    Ok(weights)
}

/// Down from higher caps.
fn by_continuation(
    functions: &mut Functions,
    plain: &[f64],
    options: &Options,
    control: &Control,
) -> Result<Option<Vec<f64>>> {
    if !functions.loss.cap.is_finite() {
        return Ok(None);
    }
    let own = functions.loss.clone();
    let mut weights = plain.to_vec();
    for factor in FACTORS {
        functions.loss = own.with_cap(factor * own.cap);
        let bounds = functions.loss.concave.bounds();
        let rounds = Rounds { bounds: rough(&bounds), decrease: COARSE_DECREASE, options, control };
        let run = rounds.run_from_weights(functions, weights.clone());
        functions.loss = own.clone();
        run?;
        let next = functions.slopes(&*working(&own));
        if functions.any(&next) {
            weights = next;
        }
    }
    Ok(Some(weights))
}
