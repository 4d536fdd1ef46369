//! Branch and bound to the global minimum of the hinge truncated at 0.
//!
//! A node gives some rows as inliers (plain hinge), some as outliers (cost c_i, no say in w), and an interval of the intercept if that is
//! free. Its bound is the relaxation's certificate over the rest. A node whose bound reaches (1 - tolerance) times the best objective
//! known is closed; else its w starts a local search, and it is split: on the row whose eta is nearest to 1/2, or by
//! halving the interval where that is wide or costs the bound much of what is missing. Nodes are taken lowest bound first, a few
//! at a time on all threads; which ones does not depend on the number of threads, nor does the result.
//!
//! The local search drops the rows with margin below 0, refits the support vector machine on the others, and repeats until the
//! set stands still.

use super::interval::{self, Interval};
use super::lifted::{self, Goal, Level, Lifted};
use super::space::Space;
use crate::control::{Control, Progress};
use crate::error::{Error, Result};
use crate::problem::{Candidate, Problem, TwoClass};
use crate::solver::{Options, Solution, Start, Status, choose, solve};
use rayon::prelude::*;
use std::collections::HashSet;

/// Nodes per round.
const BATCH: usize = 4;
/// An interval of half this width blurs all margins: it is halved first.
const WIDE: f64 = 0.5;
/// Share of what a bound is missing from which the interval's price is to blame.
const SHARE: f64 = 0.4;
/// Most steps of a local search.
const LOCAL_STEPS: usize = 50;
/// Newton steps per node.
const NODE_STEPS: usize = 400;

/// What branch and bound found.
#[derive(Debug, Clone)]
pub struct Branched {
    /// The best decision function known; its `status` says how the search ended.
    pub solution: Solution,
    /// No decision function has a smaller objective.
    pub lower: f64,
    /// Nodes bounded.
    pub nodes: usize,
    /// Whether the two agree to the tolerance.
    pub proved: bool,
    /// (objective - lower) / objective
    pub gap: f64,
    /// Whether the caller's interrupt ended the search.
    pub interrupted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Open,
    In,
    Out,
}

#[derive(Clone)]
struct Node {
    lower: f64,
    /// In the order of creation: breaks ties.
    number: usize,
    sides: Vec<Side>,
    interval: Option<Interval>,
    start: (Vec<f64>, usize),
}

struct Answer {
    lower: f64,
    lifted: Lifted,
    interval: Option<Interval>,
    /// Price of the interval in the bound.
    price: f64,
    /// Margins of the relaxation's w below 0, over all rows of the space.
    dropped: Vec<bool>,
}

/// Searches for the global minimum, beginning with a solution of the same problem. When time is up, or the caller interrupts, it
/// returns the best so far.
pub fn branch(problem: &TwoClass, start: &Solution, options: &Options, control: Control) -> Result<Branched> {
    let mut search = match Search::new(problem, start, options, control) {
        Err(Error::Interrupted) => return Ok(unsearched(start)),
        search => search?,
    };
    let ending = match search.run() {
        Ok(ending) => ending,
        Err(Error::Interrupted) => {
            search.interrupted = true;
            Status::TimeLimit
        }
        Err(error) => return Err(error),
    };
    Ok(search.result(ending))
}

fn unsearched(start: &Solution) -> Branched {
    let solution = Solution { status: Status::TimeLimit, ..start.clone() };
    let proved = solution.objective <= 0.0;
    Branched { solution, lower: 0.0, nodes: 0, proved, gap: if proved { 0.0 } else { 1.0 }, interrupted: true }
}

struct Search<'a> {
    problem: &'a TwoClass<'a>,
    options: &'a Options,
    control: Control<'a>,
    space: Space,
    best: Solution,
    open: Vec<Node>,
    /// Least bound of the nodes closed.
    closed: f64,
    nodes: usize,
    numbered: usize,
    /// Sets of dropped rows that were refitted.
    tried: HashSet<Vec<bool>>,
    interrupted: bool,
}

impl<'a> Search<'a> {
    fn new(problem: &'a TwoClass, start: &Solution, options: &'a Options, control: Control<'a>) -> Result<Search<'a>> {
        let mut space = Space::new(problem, 0.1 * options.tolerance, &control)?;
        space.drop_zero_rows();
        let mut best = start.clone();
        best.objective = problem.objective(&candidate(start));
        let mut search = Search {
            problem,
            options,
            control,
            space,
            best,
            open: Vec::new(),
            closed: f64::INFINITY,
            nodes: 0,
            numbered: 0,
            tried: HashSet::new(),
            interrupted: false,
        };
        let margins: Vec<bool> = search.best.truncated.clone();
        search.local(margins)?;
        search.plant();
        Ok(search)
    }

    /// The best objective in the units of the space, rows of constant cost left out.
    fn best_value(&self) -> f64 {
        self.best.objective / self.space.scale - self.space.constant
    }

    /// A bound that closes a node.
    fn cutoff(&self) -> f64 {
        (self.best.objective * (1.0 - self.options.tolerance)) / self.space.scale - self.space.constant
    }

    fn plant(&mut self) {
        let interval = self.space.intercept.then(|| Interval::whole(&self.space, self.best_value()));
        let start = lifted::start(&self.space.all_rows(&[]), self.options.seed);
        let sides = vec![Side::Open; self.space.rows()];
        self.open.push(Node { lower: 0.0, number: 0, sides, interval, start });
    }

    fn run(&mut self) -> Result<Status> {
        while !self.open.is_empty() {
            self.control.check()?;
            self.report();
            if self.control.out_of_time() {
                return Ok(Status::TimeLimit);
            }
            if self.nodes >= self.options.max_iterations {
                return Ok(Status::IterationLimit);
            }
            let batch = self.take();
            if batch.is_empty() {
                break;
            }
            let cutoff = self.cutoff();
            let (space, options, control) = (&self.space, self.options, &self.control);
            let work = |node: &Node| bounded(space, node, cutoff, options, control);
            let small = self.space.rows() * self.space.columns < 64;
            let answers: Vec<Result<Answer>> = if small || batch.len() == 1 {
                batch.iter().map(work).collect()
            } else {
                batch.par_iter().map(work).collect()
            };
            let mut failed = None;
            for (node, answer) in batch.into_iter().zip(answers) {
                let unsettled = node.clone();
                if let Err(error) = answer.and_then(|answer| self.settle(node, answer)) {
                    // it stays open, and with it the bound it stands for
                    self.open.push(unsettled);
                    failed = Some(error);
                }
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(Status::Converged)
    }

    /// The nodes with the lowest bounds; those already above the cutoff are closed.
    fn take(&mut self) -> Vec<Node> {
        let cutoff = self.cutoff();
        let mut closed = self.closed;
        self.open.retain(|node| {
            if node.lower >= cutoff {
                closed = closed.min(node.lower);
            }
            node.lower < cutoff
        });
        self.closed = closed;
        self.open.sort_by(|a, b| b.lower.total_cmp(&a.lower).then(b.number.cmp(&a.number)));
        self.open.split_off(self.open.len().saturating_sub(BATCH)).into_iter().rev().collect()
    }

    fn settle(&mut self, node: Node, answer: Answer) -> Result<()> {
        self.nodes += 1;
        let lower = answer.lower.max(node.lower);
        if lower >= self.cutoff() {
            self.closed = self.closed.min(lower);
            return Ok(());
        }
        let mut dropped = vec![false; self.problem.rows()];
        for (k, &row) in self.space.origin.iter().enumerate() {
            dropped[row] = answer.dropped[k];
        }
        if let Err(error) = self.local(dropped) {
            self.open.push(node);
            return Err(error);
        }
        if lower >= self.cutoff() {
            self.closed = self.closed.min(lower);
            return Ok(());
        }
        self.split(&node, answer, lower);
        Ok(())
    }

    fn split(&mut self, node: &Node, answer: Answer, lower: f64) {
        let start = (answer.lifted.w, answer.lifted.columns);
        let missing = self.best_value() - lower;
        let open: Vec<usize> = (0..node.sides.len()).filter(|&row| node.sides[row] == Side::Open).collect();
        let halve = answer
            .interval
            .filter(|interval| open.is_empty() || interval.half > WIDE || answer.price > SHARE * missing);
        if let Some(interval) = halve {
            for half in interval.halves() {
                self.add(Node {
                    lower,
                    number: 0,
                    sides: node.sides.clone(),
                    interval: Some(half),
                    start: start.clone(),
                });
            }
            return;
        }
        // eta belongs to the rows that are not out, in order
        let mut etas = answer.lifted.eta.iter();
        let eta: Vec<f64> = node
            .sides
            .iter()
            .map(|side| if *side == Side::Out { 0.0 } else { etas.next().copied().unwrap_or(1.0) })
            .collect();
        let distance = |row: usize| (eta[row] - 0.5).abs() / self.space.caps[row].max(1e-3);
        let Some(row) = open.into_iter().min_by(|&a, &b| distance(a).total_cmp(&distance(b))) else {
            // nothing left to split, and the bound not tight enough: it stays as it is
            self.closed = self.closed.min(lower);
            return;
        };
        for side in [Side::In, Side::Out] {
            let mut sides = node.sides.clone();
            sides[row] = side;
            self.add(Node { lower, number: 0, sides, interval: answer.interval, start: start.clone() });
        }
    }

    fn add(&mut self, mut node: Node) {
        self.numbered += 1;
        node.number = self.numbered;
        self.open.push(node);
    }

    /// Refits on the rows that are not dropped, until the set stands still; keeps what is best.
    fn local(&mut self, mut dropped: Vec<bool>) -> Result<()> {
        for _ in 0..LOCAL_STEPS {
            self.control.check()?;
            if self.control.out_of_time() || !self.tried.insert(dropped.clone()) {
                return Ok(());
            }
            let Some(solution) = self.refit(&dropped)? else { return Ok(()) };
            dropped.clone_from(&solution.truncated);
            if solution.objective < self.best.objective {
                self.best = solution;
            }
        }
        Ok(())
    }

    /// The support vector machine on the rows that are not dropped, judged by the truncated loss.
    fn refit(&self, dropped: &[bool]) -> Result<Option<Solution>> {
        let caps: Vec<f64> =
            self.problem.caps.iter().zip(dropped).map(|(cap, dropped)| if *dropped { 0.0 } else { *cap }).collect();
        if caps.iter().all(|cap| *cap == 0.0) {
            return Ok(None);
        }
        let convex = TwoClass { caps: &caps, loss: self.problem.loss.untruncated(), ..*self.problem };
        let start = Start {
            expansion: self.best.expansion.clone(),
            weights: self.best.weights.clone(),
            intercepts: self.best.intercepts.clone(),
        };
        let tolerance = (1e-2 * self.options.tolerance).max(1e-10);
        let options = Options { tolerance, start: Some(start), max_iterations: 100_000, ..self.options.clone() };
        let name = choose("auto", &Problem::Two(convex))?;
        let mut solution = solve(name, &Problem::Two(convex), &options, &self.control)?;
        solution.objective = self.problem.objective(&candidate(&solution));
        solution.truncated = self.problem.truncation_set(&candidate(&solution));
        if !solution.objective.is_finite() {
            return Ok(None);
        }
        Ok(Some(solution))
    }

    fn lower(&self) -> f64 {
        let least = self.open.iter().map(|node| node.lower).fold(self.closed, f64::min);
        let lower = ((least + self.space.constant) * self.space.scale).max(0.0);
        if self.space.unsafe_ridge { 0.0 } else { lower.min(self.best.objective) }
    }

    fn gap(&self) -> f64 {
        (self.best.objective - self.lower()) / self.best.objective.abs().max(f64::MIN_POSITIVE)
    }

    fn report(&self) {
        let progress = Progress { stage: "branch", step: self.nodes, objective: self.best.objective, gap: self.gap() };
        self.control.report(progress);
    }

    fn result(self, ending: Status) -> Branched {
        let (lower, gap) = (self.lower(), self.gap());
        let proved = gap <= self.options.tolerance * (1.0 + 1e-9);
        let status = match ending {
            Status::Converged if !proved => Status::Inaccurate,
            ending => ending,
        };
        let mut solution = self.best;
        solution.status = status;
        solution.trace = vec![solution.objective];
        Branched { solution, lower, nodes: self.nodes, proved, gap, interrupted: self.interrupted }
    }
}

fn candidate(solution: &Solution) -> Candidate<'_> {
    Candidate { expansion: &solution.expansion, weights: solution.weights.as_deref(), intercept: solution.intercept() }
}

/// The relaxation of a node.
fn bounded(space: &Space, node: &Node, cutoff: f64, options: &Options, control: &Control) -> Result<Answer> {
    let m = space.columns;
    let rest: Vec<usize> = (0..space.rows()).filter(|&row| node.sides[row] != Side::Out).collect();
    let out: f64 = (0..space.rows()).filter(|&row| node.sides[row] == Side::Out).map(|row| space.caps[row]).sum();
    let mut own = space.only(&rest);
    let kept: Vec<bool> = rest.iter().map(|&row| node.sides[row] == Side::In).collect();
    let goal = Goal {
        tolerance: 0.1 * options.tolerance,
        cutoff: cutoff - out,
        hopeless: cutoff - out,
        certify_from: 0.1,
        finest: 0.0,
        coarsest: if node.number == 0 { 1.0 } else { 0.1 },
        steps: NODE_STEPS,
    };
    let (lifted, lower, interval, price, intercept) = match node.interval {
        None => {
            let rows = own.all_rows(&kept);
            let lifted =
                lifted::solve(&rows, own.error, Level::Given(1.0), node.start.clone(), goal, control, &|_, _, _| ())?;
            let lower = lifted.lower;
            (lifted, lower, None, 0.0, 0.0)
        }
        Some(interval) => {
            let found =
                interval::bound(&mut own, &kept, Level::Given(1.0), interval, node.start.clone(), goal, control)?;
            let price = 0.5 * found.multiplier * interval.half * interval.half;
            let interval = Interval { multiplier: found.multiplier, ..interval };
            (found.lifted, found.lower, Some(interval), price, found.intercept)
        }
    };
    let own_columns = m - usize::from(space.intercept);
    let w = &lifted.w[..own_columns];
    let margin = |row: usize| {
        let f = &space.features[row * m..row * m + own_columns];
        f.iter().zip(w).map(|(f, w)| f * w).sum::<f64>() + space.signs[row] * intercept
    };
    let dropped = (0..space.rows()).map(|row| margin(row) < 0.0).collect();
    // a sum of a few dozen caps: its rounding is far below the certificate's own
    let lower = lower + out * (1.0 - 64.0 * f64::EPSILON);
    Ok(Answer { lower, lifted, interval, price, dropped })
}
