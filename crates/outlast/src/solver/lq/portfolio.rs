//! q < 1: the best of several local minima.
//!
//! w = 0 is always a local minimum, and reweighting never leaves a zero, so what is found depends on the start. Followed are
//!
//! - l1 solutions with all rates 1, 0.3, 0.1, 0.03, 0.01: more and more columns, until there is one for every few rows;
//! - the end of a path of smoothed rates q (|w| + e)^(q-1), e falling;
//! - where a linear system of its size is cheap, discriminant analysis, unless it is far above w = 0 ([`FAR`]);
//! - the end of the paper's algorithm, so that what is returned is never above that, as long as its steps cost no more than [`STEP`] and they all
//!   no more than a budget;
//! - w = 0; and the start given, if any: with [`Care::Follow`] that one alone.
//!
//! Each is followed loosely. The best is changed by a column, one left out or one brought in with a coefficient like the others' and the
//! sign the loss asks for, as long as that leads lower and is cheap; and what is best then is followed to the tolerance.

use super::super::proximal::Weighted;
use super::super::{Care, Options, Solution, Status, proximal};
use super::reweight::{Effort, Local, follow, step};
use super::{discriminant, lqa, normal};
use crate::control::{Control, Progress};
use crate::data::{Design, Repeated};
use crate::error::Result;
use crate::problem::LqProblem;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Rates of the l1 starts.
const RATES: [f64; 5] = [1.0, 0.3, 0.1, 0.03, 0.01];
/// Smoothings, relative to the largest coefficient.
const SMOOTHINGS: [f64; 4] = [0.3, 0.1, 0.03, 0.01];
/// How many times what f = 0 costs discriminant analysis may cost to be a start.
const FAR: f64 = 100.0;
/// Accuracy of the starts.
const ROUGH: f64 = 1e-2;
/// Starts of a race that are followed, and how far above the lowest, relatively, one of them may be.
const FINALISTS: usize = 2;
const BEHIND: f64 = 0.1;
/// Relative difference of coefficients that are alike.
const ALIKE: f64 = 0.05;
/// Multiplications of a step of the paper's algorithm up to which it is followed.
const STEP: f64 = 1e11;
/// Multiplications of a linear system that is cheap.
const CHEAP: f64 = 1e8;
/// Multiplications that changes by a column may take, how many rounds, and how many columns are tried.
const MOVES: f64 = 1e8;
const ROUNDS: usize = 10;
const NEWCOMERS: usize = 20;
/// How many of the changes that are lowest after a step are followed.
const FOLLOWED: usize = 5;
/// Accuracy of the end where that is cheap: what the paper's algorithm finds in as many steps as it likes is no lower than that.
const EXACT: f64 = 1e-9;
/// Relative decrease at which the paper's algorithm ends as a start of a cheap fit or of a path.
const DIGITS: f64 = 1e-7;
/// Relative difference of two objectives of one point that is rounding.
const ROUNDING: f64 = 1e-9;
/// Time between reports of work that goes on in several places.
const PAUSE: Duration = Duration::from_millis(200);

/// A start: coefficients, intercepts, V where it is known.
#[derive(Clone)]
pub(super) struct Start {
    pub(super) weights: Vec<f64>,
    pub(super) intercepts: Vec<f64>,
    pub(super) expansion: Option<Vec<f64>>,
}

/// How the starts are followed, and how the best of them.
pub(super) fn efforts(options: &Options) -> (Effort, Effort) {
    let fine = Effort {
        tolerance: options.tolerance,
        loose: (10.0 * options.tolerance).clamp(1e-4, 1e-2).max(options.tolerance),
        decrease: (1e-2 * options.tolerance).clamp(1e-14, 1e-6),
        max_steps: options.max_steps,
        max_iterations: options.max_iterations,
    };
    let rough = Effort { tolerance: fine.tolerance.max(1e-5), loose: 1e-3f64.max(fine.loose), decrease: 1e-5, ..fine };
    (rough, fine)
}

/// Tells of starts that are followed side by side as one: how many are through, and the best of them. What each reports by itself would
/// be a mixture.
struct Together<'a> {
    control: &'a Control<'a>,
    stage: &'static str,
    state: Mutex<State>,
}

struct State {
    through: usize,
    best: f64,
    told: Instant,
}

impl<'a> Together<'a> {
    fn new(control: &'a Control<'a>, stage: &'static str) -> Self {
        Together { control, stage, state: Mutex::new(State { through: 0, best: f64::NAN, told: Instant::now() }) }
    }

    /// One more is through.
    fn add(&self, found: &Local) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.through += 1;
        state.best = state.best.min(found.objective());
        self.tell(&mut state);
    }

    /// Something is going on.
    fn beat(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.told.elapsed() >= PAUSE {
            self.tell(&mut state);
        }
    }

    fn tell(&self, state: &mut State) {
        let (stage, step, objective) = (self.stage, state.through, state.best);
        self.control.report(Progress { stage, step, objective, gap: f64::NAN });
        state.told = Instant::now();
    }
}

/// The best of the local minima that the starts lead to, each followed, by all cores. Its work is that of all.
pub(super) fn best(
    problem: &LqProblem,
    starts: impl IntoIterator<Item = Start>,
    effort: &Effort,
    control: &Control,
) -> Result<Option<Local>> {
    let starts: Vec<Start> = starts.into_iter().collect();
    let together = Together::new(control, "starts");
    let beat = |_: Progress| together.beat();
    let each = control.progress(&beat);
    let go = |start: &Start| -> Result<Local> {
        let found = follow(problem, &start.weights, &start.intercepts, start.expansion.as_deref(), effort, &each)?;
        together.add(&found);
        Ok(found)
    };
    // a start is let go once it was followed, and of two ends the higher one: with many columns each is large
    let in_time = |start: Start| -> Result<Ends> {
        match control.out_of_time() {
            true => Ok(Ends { best: None, late: vec![start] }),
            false => Ok(Ends { best: Some(go(&start)?), late: Vec::new() }),
        }
    };
    let ends = starts.into_par_iter().with_max_len(1).map(in_time).try_reduce(Ends::default, |a, b| Ok(a.and(b)))?;
    // with no time left to follow any, the lowest of the rest where they stand
    match ends.late.is_empty() {
        true => Ok(ends.best),
        false => Ok(Some(better(ends.best, go(&lowest(problem, ends.late))?))),
    }
}

/// What some starts led to: the best end, and those that there was no time for.
#[derive(Default)]
struct Ends {
    best: Option<Local>,
    late: Vec<Start>,
}

impl Ends {
    fn and(mut self, mut other: Ends) -> Ends {
        self.late.append(&mut other.late);
        let best = match other.best {
            Some(found) => Some(better(self.best, found)),
            None => self.best,
        };
        Ends { best, late: self.late }
    }
}

/// The lowest of some starts, each with all its columns or the largest of them alone: what was found for another penalty has too many.
fn lowest(problem: &LqProblem, starts: Vec<Start>) -> Start {
    let all = starts.into_iter().flat_map(|start| thinned(problem, start));
    let judged = all.map(|start| (problem.objective(&start.weights, &start.intercepts), start));
    judged.min_by(|(a, _), (b, _)| a.total_cmp(b)).map_or_else(|| nothing(problem), |(_, start)| start)
}

/// A start with all its columns, with the larger half of them, with a quarter, and so on.
fn thinned(problem: &LqProblem, start: Start) -> impl Iterator<Item = Start> {
    let (m, d) = (problem.functions, problem.x.cols());
    let size = |column: usize| (0..m).map(|j| start.weights[j * d + column].abs()).fold(0.0, f64::max);
    let mut columns: Vec<(f64, usize)> = (0..d).map(|c| (size(c), c)).filter(|(size, _)| *size > 0.0).collect();
    columns.sort_by(|a, b| b.0.total_cmp(&a.0));
    let counts = std::iter::successors(Some(columns.len()), |count| (*count > 1).then_some(count / 2));
    let with_largest = move |count: usize| {
        let mut weights = vec![0.0; m * d];
        for at in columns[..count].iter().flat_map(|(_, column)| (0..m).map(move |j| j * d + column)) {
            weights[at] = start.weights[at];
        }
        Start { weights, intercepts: start.intercepts.clone(), expansion: start.expansion.clone() }
    };
    counts.map(with_largest)
}

/// The lower of two, of two as good the sparser, with the work of both.
pub(super) fn better(one: Option<Local>, other: Local) -> Local {
    let Some(one) = one else { return other };
    let work = one.work + other.work;
    let (a, b) = (one.objective(), other.objective());
    let equal = (a - b).abs() <= 1e-12 * a.abs();
    let first = if equal { one.size() <= other.size() } else { a < b };
    Local { work, ..if first { one } else { other } }
}

/// The starts that are lowest after one step each, where they stand then; those that have met are one.
pub(super) fn race(problem: &LqProblem, starts: Vec<Start>, effort: &Effort, control: &Control) -> Result<Vec<Start>> {
    if starts.len() <= FINALISTS {
        return Ok(starts);
    }
    let together = Together::new(control, "race");
    let beat = |_: Progress| together.beat();
    let each = control.progress(&beat);
    let first = |start: &Start| -> Result<Local> {
        let found = step(problem, &start.weights, &start.intercepts, start.expansion.as_deref(), effort, &each)?;
        together.add(&found);
        Ok(found)
    };
    let mut stepped = starts.par_iter().with_max_len(1).map(first).collect::<Result<Vec<Local>>>()?;
    stepped.sort_by(|a, b| a.objective().total_cmp(&b.objective()));
    stepped.dedup_by(|other, one| alike(&one.weights, &other.weights));
    stepped.truncate(FINALISTS);
    let most = stepped.first().map_or(f64::INFINITY, |lowest| (1.0 + BEHIND) * lowest.objective());
    stepped.retain(|one| one.objective() <= most);
    let start =
        |local: Local| Start { weights: local.weights, intercepts: local.intercepts, expansion: Some(local.expansion) };
    Ok(stepped.into_iter().map(start).collect())
}

/// Whether the same coefficients are used.
pub(super) fn same_support(one: &[f64], other: &[f64]) -> bool {
    one.iter().zip(other).all(|(a, b)| (*a == 0.0) == (*b == 0.0))
}

/// Whether the same coefficients are used, and these hardly differ.
pub(super) fn alike(one: &[f64], other: &[f64]) -> bool {
    let close = |a: f64, b: f64| a == b || a != 0.0 && b != 0.0 && (a - b).abs() <= ALIKE * a.abs();
    one.iter().zip(other).all(|(a, b)| close(*a, *b))
}

/// Follows all starts, then the best to the tolerance.
pub(super) fn solve(problem: &LqProblem, options: &Options, control: &Control) -> Result<Solution> {
    let given = given_start(problem, options);
    if let (Care::Follow, Some(start)) = (options.care, &given) {
        let (rough, fine) = efforts(options);
        let found = follow(problem, &start.weights, &start.intercepts, start.expansion.as_deref(), &rough, control)?;
        return polish(problem, found, &fine, control);
    }
    let (rough, fine) = efforts(options);
    // the end of a cheap fit is below the last digits of the paper's algorithm
    let decrease = if is_cheap(problem) { lqa::decrease(options).max(DIGITS) } else { lqa::decrease(options) };
    let mut starts = sparse_starts(problem, options, control)?;
    starts.extend(given);
    let (found, end) =
        best_of_all(problem, starts, &Thoroughness { rough, decrease, moves: MOVES, race: false }, options, control)?;
    let paper = end.as_ref().map_or(f64::INFINITY, |end| problem.objective(&end.weights, &end.intercepts));
    let fine = if is_cheap(problem) { Effort { tolerance: fine.tolerance.min(EXACT), ..fine } } else { fine };
    let mut last = polish(problem, improve(problem, found, &mut { MOVES }, &rough, control)?, &fine, control)?;
    if let Some(start) = end.filter(|_| paper < last.objective) {
        // by what the tolerance leaves: from there the objective only falls
        let found = follow(problem, &start.weights, &start.intercepts, None, &fine, control)?;
        if found.objective() < last.objective {
            last = solution(problem, found);
        }
    }
    if last.status == Status::Inaccurate && last.gap <= options.tolerance {
        last.status = Status::Converged;
    }
    Ok(last)
}

/// The best of some starts and of nothing.
fn best_or_nothing(problem: &LqProblem, starts: Vec<Start>, effort: &Effort, control: &Control) -> Result<Local> {
    let nothing = nothing(problem);
    let mut found = follow(problem, &nothing.weights, &nothing.intercepts, None, effort, control)?;
    if let Some(other) = best(problem, starts, effort, control)? {
        found = better(Some(found), other);
    }
    Ok(found)
}

/// The best of the sparse starts and of all others, roughly; and where the paper's algorithm ends, by a relative decrease, if it was run.
fn best_of_all(
    problem: &LqProblem,
    mut starts: Vec<Start>,
    how: &Thoroughness,
    options: &Options,
    control: &Control,
) -> Result<(Local, Option<Start>)> {
    let rough = &how.rough;
    if is_cheap(problem) {
        starts.extend(discriminant_start(problem));
    }
    if how.race {
        starts = race(problem, starts, rough, control)?;
    }
    let mut found = best_or_nothing(problem, starts, rough, control)?;
    let end = paper_start(problem, how.decrease, options.max_steps, control)?;
    if let Some(start) = &end {
        // with many columns it is dear to follow: then only if it is the lowest so far
        let few = columns_used(problem, &start.weights) <= most_columns(problem);
        if is_cheap(problem) || few || problem.objective(&start.weights, &start.intercepts) < found.objective() {
            found = better(best(problem, [start.clone()], rough, control)?, found);
        }
    }
    Ok((found, end))
}

/// The best of the sparse starts and nothing, improved: a fit without what may be dear.
pub(super) fn solve_sparsely(problem: &LqProblem, options: &Options, control: &Control) -> Result<Solution> {
    let (rough, fine) = efforts(options);
    let found = best_or_nothing(problem, sparse_starts(problem, options, control)?, &rough, control)?;
    polish(problem, improve(problem, found, &mut { MOVES }, &rough, control)?, &fine, control)
}

/// How the starts of a problem without neighbours are dealt with.
pub(super) struct Thoroughness {
    /// How each is followed.
    pub(super) rough: Effort,
    /// The relative decrease at which the paper's algorithm ends.
    pub(super) decrease: f64,
    /// Multiplications that changes by a column may take.
    pub(super) moves: f64,
    /// Whether only those that are lowest after a step are followed.
    pub(super) race: bool,
}

impl Thoroughness {
    /// That of a fit.
    pub(super) fn full(options: &Options) -> Self {
        let (rough, _) = efforts(options);
        Thoroughness { rough, decrease: lqa::decrease(options).max(DIGITS), moves: MOVES, race: false }
    }
}

/// The best of the starts given, of the end of smoothed rates from the l1 solutions and of all other starts, improved: the first point of a
/// path.
pub(super) fn solve_from(
    problem: &LqProblem,
    (mut starts, absolute): (Vec<Start>, &[Start]),
    (how, fine): (&Thoroughness, &Effort),
    options: &Options,
    control: &Control,
) -> Result<Solution> {
    starts.extend_from_slice(absolute);
    if let Some(middle) = absolute.get(absolute.len() / 2) {
        let mut engine = Weighted::new(problem, options.max_iterations);
        starts.push(smoothed_start(&mut engine, problem, middle, control)?);
    }
    let (found, _) = best_of_all(problem, starts, how, options, control)?;
    polish(problem, improve(problem, found, &mut { how.moves }, &how.rough, control)?, fine, control)
}

/// The start a caller gave, if it fits.
fn given_start(problem: &LqProblem, options: &Options) -> Option<Start> {
    let start = options.start.as_ref()?;
    let weights = start.weights.clone().filter(|weights| weights.len() == problem.functions * problem.x.cols())?;
    let fits = start.intercepts.len() == problem.functions;
    fits.then(|| Start { weights, intercepts: start.intercepts.clone(), expansion: None })
}

/// A way to change a local minimum by one column: leave it out, or bring it in.
struct Exchange<'a, 'b> {
    problem: &'b LqProblem<'a>,
    best: Local,
    /// X'V, functions x columns: which way the loss pulls at each coefficient.
    pulled: Vec<f64>,
    /// The size of a coefficient that is not 0.
    typical: f64,
    used: Vec<bool>,
}

impl<'a, 'b> Exchange<'a, 'b> {
    fn new(problem: &'b LqProblem<'a>, best: Local) -> Self {
        let (m, d) = (problem.functions, problem.x.cols());
        let used = (0..d).map(|column| (0..m).any(|j| best.weights[j * d + column] != 0.0)).collect();
        let sum: f64 = best.weights.iter().map(|w| w.abs()).sum();
        let typical = if sum > 0.0 { sum / best.size() as f64 } else { 1.0 };
        Exchange { problem, pulled: problem.pull(&best.expansion), best, typical, used }
    }

    /// Columns worth a try: the unused ones that are pulled at most, and all that are used.
    fn candidates(&self) -> Vec<usize> {
        let (mut used, mut columns): (Vec<usize>, Vec<usize>) = (0..self.used.len()).partition(|&c| self.used[c]);
        columns.sort_by(|&a, &b| self.strongest(b).total_cmp(&self.strongest(a)));
        columns.truncate(NEWCOMERS);
        columns.append(&mut used);
        columns
    }

    fn strongest(&self, column: usize) -> f64 {
        self.entries(column).fold(0.0, |most, u| most.max(u.abs()))
    }

    fn entries(&self, column: usize) -> impl Iterator<Item = f64> {
        self.pulled[column..].iter().step_by(self.problem.x.cols()).copied()
    }

    /// The coefficients with that column left out, or brought in the way it is pulled.
    fn changed(&self, column: usize) -> Vec<f64> {
        let (m, d) = (self.problem.functions, self.problem.x.cols());
        let mean = if m == 1 { 0.0 } else { self.entries(column).sum::<f64>() / m as f64 };
        let scale = self.typical / self.strongest(column).max(f64::MIN_POSITIVE);
        let mut weights = self.best.weights.clone();
        for (j, u) in self.entries(column).enumerate() {
            weights[j * d + column] = if self.used[column] { 0.0 } else { scale * (u - mean) };
        }
        weights
    }
}

/// Leaves columns out and brings columns in, one at a time, while that leads lower and the budget of multiplications lasts.
pub(super) fn improve(
    problem: &LqProblem,
    best: Local,
    budget: &mut f64,
    effort: &Effort,
    control: &Control,
) -> Result<Local> {
    let together = Together::new(control, "exchanges");
    let beat = |_: Progress| together.beat();
    let each = &control.progress(&beat);
    let mut at = Exchange::new(problem, best);
    for _ in 0..ROUNDS {
        together.add(&at.best);
        // the lowest so far, in order: all of them would be as many copies of w
        let mut begun: Vec<Local> = Vec::new();
        for column in at.candidates() {
            if *budget < 0.0 || control.out_of_time() {
                return Ok(at.best);
            }
            let (weights, best) = (at.changed(column), &at.best);
            let found = step(problem, &weights, &best.intercepts, Some(&best.expansion), effort, each)?;
            *budget -= found.work;
            let place = begun.partition_point(|other| other.objective() <= found.objective());
            begun.insert(place, found);
            begun.truncate(FOLLOWED);
        }
        let mut lower: Option<Local> = None;
        for start in begun {
            let found = follow(problem, &start.weights, &start.intercepts, Some(&start.expansion), effort, each)?;
            *budget -= found.work;
            if found.objective() < lower.as_ref().unwrap_or(&at.best).objective() * (1.0 - 1e-6) {
                lower = Some(found);
            }
        }
        match lower {
            Some(found) => at = Exchange::new(problem, found),
            None => break,
        }
    }
    Ok(at.best)
}

/// Follows a local minimum found roughly to the tolerance, with the steps that are left.
pub(super) fn polish(problem: &LqProblem, mut rough: Local, fine: &Effort, control: &Control) -> Result<Solution> {
    let left = fine.max_steps.saturating_sub(rough.report.trace.len() - 1);
    if left == 0 && rough.report.gap > fine.tolerance {
        rough.report.status = Status::IterationLimit;
    }
    let stands = rough.report.trace.len() == 1 && rough.report.gap <= fine.tolerance;
    if left == 0 || stands || rough.report.status == Status::TimeLimit {
        return Ok(solution(problem, rough));
    }
    let fine = Effort { max_steps: left, ..*fine };
    let mut last = follow(problem, &rough.weights, &rough.intercepts, Some(&rough.expansion), &fine, control)?;
    let mut trace = rough.report.trace;
    // the point is the same one but for the rounding of its objective
    trace.pop();
    trace.append(&mut last.report.trace);
    last.report.trace = trace;
    last.report.iterations += rough.report.iterations;
    Ok(solution(problem, last))
}

/// A local minimum as solvers return it.
pub(super) fn solution(problem: &LqProblem, found: Local) -> Solution {
    let objective = problem.penalty(&found.weights) + problem.loss(&found.decision);
    let mut trace = found.report.trace;
    trace.pop();
    trace.push(objective);
    // next to what f = 0 costs
    level(&mut trace, 1e-3 * ROUNDING * problem.caps.iter().sum::<f64>());
    debug_assert!(trace.windows(2).all(|pair| pair[1] <= pair[0]), "the trace rises: {trace:?}");
    Solution {
        expansion: found.expansion,
        decision: found.decision,
        weights: Some(found.weights),
        intercepts: found.intercepts,
        truncated: vec![false; problem.rows()],
        majorant: None,
        objective,
        gap: found.report.gap,
        trace,
        iterations: found.report.iterations,
        status: found.report.status,
        solver: proximal::NAME,
    }
}

/// Takes rounding out of a trace: the last point of one minimisation is the first of the next, on other columns, and its objective is
/// summed in another order. A rise by more than that would be one, and stays for all to see.
fn level(trace: &mut [f64], rounding: f64) {
    for at in (1..trace.len()).rev() {
        let (before, after) = (trace[at - 1], trace[at]);
        if before < after && after <= before * (1.0 + ROUNDING) + rounding {
            trace[at - 1] = after;
        }
    }
}

/// Columns from which a start has too many to be near the best: it is dear to follow, too.
pub(super) fn most_columns(problem: &LqProblem) -> usize {
    (problem.rows() / 4).max(50)
}

/// Columns with a coefficient that is not 0.
pub(super) fn columns_used(problem: &LqProblem, weights: &[f64]) -> usize {
    let (m, d) = (problem.functions, problem.x.cols());
    (0..d).filter(|&column| (0..m).any(|j| weights[j * d + column] != 0.0)).count()
}

/// w = 0.
pub(super) fn nothing(problem: &LqProblem) -> Start {
    let weights = vec![0.0; problem.functions * problem.x.cols()];
    Start { weights, intercepts: vec![0.0; problem.functions], expansion: None }
}

/// l1 solutions, and the end of a path of smoothed rates.
fn sparse_starts(problem: &LqProblem, options: &Options, control: &Control) -> Result<Vec<Start>> {
    let mut engine = Weighted::new(problem, options.max_iterations);
    let mut starts = absolute_starts(&mut engine, problem, control)?;
    if !control.out_of_time() {
        let middle = starts[starts.len() / 2].clone();
        starts.push(smoothed_start(&mut engine, problem, &middle, control)?);
    }
    Ok(starts)
}

/// Where the engine stands.
fn standing(engine: &Weighted) -> Start {
    let answer = engine.answer();
    let weights = answer.weights.unwrap_or_default();
    Start { weights, intercepts: answer.intercepts, expansion: Some(answer.expansion) }
}

/// l1 solutions, one at least: whatever q is.
pub(super) fn absolute_starts(engine: &mut Weighted, problem: &LqProblem, control: &Control) -> Result<Vec<Start>> {
    let mut starts = Vec::new();
    let size = problem.functions * problem.x.cols();
    for rate in RATES {
        engine.set_rates(&vec![rate; size]);
        engine.minimize(ROUGH, control)?;
        let start = standing(engine);
        let dense = columns_used(problem, &start.weights) > most_columns(problem);
        if !dense || starts.is_empty() {
            starts.push(start);
        }
        if dense || control.out_of_time() {
            break;
        }
    }
    Ok(starts)
}

/// The end of a path of smoothed rates, from the middle of the l1 solutions.
fn smoothed_start(engine: &mut Weighted, problem: &LqProblem, middle: &Start, control: &Control) -> Result<Start> {
    let mut weights = middle.weights.clone();
    engine.start_at(&weights, &middle.intercepts);
    for smoothing in SMOOTHINGS {
        let largest = weights.iter().fold(0.0f64, |largest, w| largest.max(w.abs()));
        if largest == 0.0 {
            break;
        }
        let rate = |w: &f64| problem.q * (w.abs() + smoothing * largest).powf(problem.q - 1.0);
        engine.set_rates(&weights.iter().map(rate).collect::<Vec<_>>());
        engine.minimize(ROUGH, control)?;
        weights = engine.answer().weights.unwrap_or_default();
        if control.out_of_time() {
            break;
        }
    }
    Ok(standing(engine))
}

fn is_cheap(problem: &LqProblem) -> bool {
    lqa::work(problem, problem.x.cols()) <= CHEAP
}

/// Discriminant analysis, unless that is far above w = 0: with about as many columns as rows its coefficients may be huge, and are dear
/// to follow.
fn discriminant_start(problem: &LqProblem) -> Option<Start> {
    let (weights, intercepts) = discriminant::start(problem)?;
    let nothing = problem.loss(&vec![0.0; problem.rows() * problem.functions]);
    let near = problem.objective(&weights, &intercepts) <= FAR * nothing;
    near.then_some(Start { weights, intercepts, expansion: None })
}

/// Where the paper's algorithm ends on the rows that count, if its steps can be afforded.
pub(super) fn paper_start(
    problem: &LqProblem,
    decrease: f64,
    steps: usize,
    control: &Control,
) -> Result<Option<Start>> {
    let rows: Vec<u32> = (0..problem.rows() as u32).filter(|&row| problem.caps[row as usize] > 0.0).collect();
    let codes: Vec<u32> = rows.iter().map(|&row| problem.codes[row as usize]).collect();
    let caps: Vec<f64> = rows.iter().map(|&row| problem.caps[row as usize]).collect();
    let of_rows = |counts: &[f64]| -> Vec<f64> { rows.iter().map(|&row| counts[row as usize]).collect() };
    let counts = problem.counts.map(of_rows);
    let whole = rows.len() == problem.rows();
    let view = Repeated::new(problem.x, rows);
    let x: &dyn Design = if whole { problem.x } else { &view };
    let part = LqProblem { x, codes: &codes, caps: &caps, counts: counts.as_deref(), ..*problem };
    let factored = normal::is_factored(part.rows(), part.x.cols(), part.functions);
    if !factored || lqa::work(&part, part.x.cols()) > STEP || control.out_of_time() {
        return Ok(None);
    }
    let (weights, intercepts) = lqa::end(&part, decrease, steps, control)?;
    Ok(Some(Start { weights, intercepts, expansion: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_levelled_and_a_rise_is_not_hidden() {
        let mut trace = [3.0, 2.0, 2.0 + 1e-10, 1.0, 1.0 + 1e-12];
        level(&mut trace, 0.0);
        assert_eq!(trace, [3.0, 2.0 + 1e-10, 2.0 + 1e-10, 1.0 + 1e-12, 1.0 + 1e-12]);
        let mut trace = [3.0, 1.0, 1.0 + 1e-6, 0.5];
        level(&mut trace, 1e-7);
        assert_eq!(trace, [3.0, 1.0, 1.0 + 1e-6, 0.5]);
    }

    /// Where the penalty of discriminant analysis is far above what f = 0 costs, it is no start.
    #[test]
    fn discriminant_analysis_is_a_start_where_it_is_not_far_off() {
        let (n, d) = (30, 4);
        let value = |at: usize| ((at * 7919 + 13) % 1009) as f64 / 500.0 - 1.0;
        let x = crate::data::Dense::new(n, d, (0..n * d).map(value).collect::<Vec<f64>>()).unwrap();
        let codes: Vec<u32> = (0..n).map(|row| u32::from(value(row * d) + 0.3 * value(row * d + 1) > 0.0)).collect();
        for (cap, is_start) in [(1.0, true), (1e-5, false)] {
            let caps = vec![cap; n];
            let problem = LqProblem {
                x: &x,
                codes: &codes,
                classes: 2,
                functions: 1,
                caps: &caps,
                counts: None,
                cost: None,
                q: 0.3,
                intercept: true,
            };
            assert_eq!(discriminant_start(&problem).is_some(), is_start, "C = {cap}");
        }
    }
}
