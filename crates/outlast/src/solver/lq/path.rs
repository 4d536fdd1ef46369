//! Solutions for a list of C and a list of q on the same rows, each of which helps the others.
//!
//! ```text
//! q = 1     C rising: point, multipliers and working set of one C are the start of the next
//! q < 1     C falling, q falling: followed are the solutions of the next larger C and of the next larger q, and the l1 solutions of
//!           this C and of about 3 and 10 times it (rates of 1/3 and 1/10), all known already; those that did not change with C are left
//!           out, and the best two after a step, if the second is not far behind, go on. The largest C, from which the others come, is
//!           solved from every start a fit has; and where the columns in use are not those of the next larger C, single ones are
//!           exchanged, as far as a budget goes that grows with every C
//! q > 1     C rising, each from the one before, which often is the solution still: with C so large that no row is on the wrong side
//! ```
//!
//! All starts are of the rows themselves: a fold that began where all rows end would keep, for q < 1, what the rows held out had chosen.
//! Where only decisions count, on a fold, the starts of the largest C race as well, and the paper's algorithm is cut short.
//!
//! *Screening.* A column takes part once its bound |x_c'V| <= rate fails by more than the accuracy, and is looked at again at every
//! certificate: what is left out is checked afterwards, so that nothing is lost (the gap counts all columns). For q < 1 columns at 0
//! stay there by the bound itself, and the work is done on copies of the others.

use super::super::proximal::Weighted;
use super::super::{Options, Solution, Status};
use super::portfolio::{self, Start, Thoroughness};
use super::reweight::Effort;
use super::{by_interior, curved, frame};
use crate::control::Control;
use crate::error::Result;
use crate::problem::LqProblem;

/// How many times C the l1 solutions are taken from, unless they have too many columns.
const STRONGER: [f64; 3] = [1.0, 3.0, 10.0];

/// Multiplications that exchanges of columns may take for each C; what is not needed is kept for the next.
const MOVES: f64 = 1e6;

/// Multiplications that exchanges may take for the largest C, and the relative decrease at which the paper's algorithm ends there, where
/// only decisions count.
const FIRST_MOVES: f64 = 1e7;
const FIRST_DECREASE: f64 = 1e-2;

/// How near, relatively, is near: a multiplier to its bound, what a fit costs to what w = 0 costs.
const NEAR: f64 = 1e-3;

/// What is wanted.
#[derive(Debug, Clone)]
pub struct Path<'a> {
    /// The values of C, in any order.
    pub cs: &'a [f64],
    /// The values of q, in any order.
    pub qs: &'a [f64],
    /// Whether columns are left out until they are needed; only a test has reason to say no.
    pub screening: bool,
    /// Whether only decisions count: for q < 1 minima are then looked for less thoroughly, from the same starts.
    pub decisions: bool,
}

impl Path<'_> {
    /// Solves for every q and C: solutions by q, then by C, in the order given. The caps of `problem` are those of C = 1.
    pub fn solve(&self, problem: &LqProblem, options: &Options, control: &Control) -> Result<Vec<Vec<Solution>>> {
        let all = frame::on_stored(problem, options, |problem, options| {
            frame::centred(problem, options, |problem, options| Walk::new(self, problem, options, control).all())
        });
        let mut all = all?.into_iter();
        Ok(self.qs.iter().map(|_| all.by_ref().take(self.cs.len()).collect()).collect())
    }
}

/// A path on columns of its own.
struct Walk<'a> {
    path: &'a Path<'a>,
    problem: &'a LqProblem<'a>,
    options: &'a Options,
    control: &'a Control<'a>,
    /// Places of C in the list, rising.
    rising: Vec<usize>,
}

/// What is known when the solutions for a q < 1 are looked for: those for q = 1, and those for the next larger q.
struct Known<'a> {
    absolute: &'a [Solution],
    /// l1 starts for the largest C.
    starts: &'a [Start],
    above: &'a [Solution],
    /// Place of q in the list.
    at: usize,
}

impl<'a> Walk<'a> {
    fn new(path: &'a Path<'a>, problem: &'a LqProblem<'a>, options: &'a Options, control: &'a Control<'a>) -> Self {
        let mut rising: Vec<usize> = (0..path.cs.len()).collect();
        rising.sort_by(|&a, &b| path.cs[a].total_cmp(&path.cs[b]));
        Walk { path, problem, options, control, rising }
    }

    /// By q, then by C.
    fn all(&self) -> Result<Vec<Solution>> {
        // of two that go on side by side one reports
        let silent = self.control.silent();
        let beside = Walk { control: &silent, rising: self.rising.clone(), ..*self };
        let above = if self.path.qs.iter().any(|&q| q <= 1.0) { &beside } else { self };
        let (up, above) = rayon::join(|| self.up_to_one(), || above.above_one());
        let mut found: Vec<(usize, Vec<Solution>)> = up?;
        found.extend(above?);
        found.sort_by_key(|(at, _)| *at);
        Ok(found.into_iter().flat_map(|(_, list)| list).collect())
    }

    /// C at a place of the list.
    fn c(&self, at: usize) -> f64 {
        self.path.cs[at]
    }

    /// The caps of a C.
    fn caps(&self, at: usize) -> Vec<f64> {
        self.problem.caps.iter().map(|cap| self.c(at) * cap).collect()
    }

    /// Every q <= 1, falling.
    fn up_to_one(&self) -> Result<Vec<(usize, Vec<Solution>)>> {
        let qs = self.path.qs;
        let mut falling: Vec<usize> = (0..qs.len()).filter(|&at| qs[at] <= 1.0).collect();
        falling.sort_by(|&a, &b| qs[b].total_cmp(&qs[a]));
        if falling.is_empty() {
            return Ok(Vec::new());
        }
        let absolute = self.absolute()?;
        let starts = if falling.iter().any(|&at| qs[at] < 1.0) { self.first_starts()? } else { Vec::new() };
        let mut found: Vec<(usize, Vec<Solution>)> = Vec::new();
        for at in falling {
            let above = found.last().map_or(&absolute, |(_, list)| list);
            let list = match qs[at] == 1.0 {
                true => absolute.clone(),
                false => self.reweighted(&Known { absolute: &absolute, starts: &starts, above, at })?,
            };
            found.push((at, list));
        }
        Ok(found)
    }

    /// Every q > 1.
    fn above_one(&self) -> Result<Vec<(usize, Vec<Solution>)>> {
        let above = (0..self.path.qs.len()).filter(|&at| self.path.qs[at] > 1.0);
        above.map(|at| Ok((at, self.smooth(self.path.qs[at])?))).collect()
    }

    /// The l1 starts of a fit, for the largest C; the same for every q.
    fn first_starts(&self) -> Result<Vec<Start>> {
        let Some(&largest) = self.rising.last() else { return Ok(Vec::new()) };
        let problem = LqProblem { q: 1.0, caps: &self.caps(largest), ..*self.problem };
        let mut engine = Weighted::new(&problem, self.options.max_iterations);
        portfolio::absolute_starts(&mut engine, &problem, self.control)
    }

    /// q = 1, in the order of the list.
    fn absolute(&self) -> Result<Vec<Solution>> {
        let problem = LqProblem { q: 1.0, ..*self.problem };
        let mut engine = Weighted::new(&problem, self.options.max_iterations);
        engine.screen(self.path.screening);
        let mut found: Vec<Option<Solution>> = vec![None; self.path.cs.len()];
        let mut last = 1.0;
        for &at in &self.rising {
            self.control.check()?;
            engine.scale_caps(self.c(at) / last);
            last = self.c(at);
            let step = engine.minimize(self.options.tolerance, self.control)?;
            found[at] = Some(super::solution(&LqProblem { caps: &self.caps(at), ..problem }, &engine, step));
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// q > 1, in the order of the list.
    fn smooth(&self, q: f64) -> Result<Vec<Solution>> {
        let mut found: Vec<Option<Solution>> = vec![None; self.path.cs.len()];
        // the largest C that was solved for
        let mut last: Option<usize> = None;
        for &at in &self.rising {
            self.control.check()?;
            let caps = self.caps(at);
            let problem = LqProblem { q, caps: &caps, ..*self.problem };
            let smaller = last.and_then(|last| Some((found[last].as_ref()?, self.c(at) / self.c(last))));
            if let Some(solution) = smaller.and_then(|(smaller, _)| self.carried(smaller, &problem)) {
                found[at] = Some(solution);
                continue;
            }
            let start = smaller.map(|(smaller, growth)| self.grown(smaller, growth, &problem));
            found[at] = Some(curved(&problem, &Options { start, ..self.options.clone() }, self.control)?);
            last = Some(at);
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// The solution of a smaller C as that of the problem, where it is good enough: V and so its bound stay feasible as caps grow.
    fn carried(&self, smaller: &Solution, problem: &LqProblem) -> Option<Solution> {
        let bound = smaller.objective * (1.0 - smaller.gap);
        let objective = problem.penalty(smaller.weights.as_deref()?) + problem.loss(&smaller.decision);
        let gap = (objective - bound).max(0.0) / objective.max(f64::MIN_POSITIVE);
        let enough = smaller.status == Status::Converged && gap <= self.options.tolerance;
        enough.then(|| Solution { objective, gap, trace: vec![objective], iterations: 0, ..smaller.clone() })
    }

    /// The solution of a C that is `growth` times smaller as a start. Multipliers at their bounds follow these, the others hardly change;
    /// but the interior point method wants them balanced, and all grow.
    fn grown(&self, smaller: &Solution, growth: f64, problem: &LqProblem) -> super::super::Start {
        let m = problem.functions;
        let all = by_interior(problem);
        let bound = |at: usize| (1.0 - NEAR) / growth * problem.cap(at / m, at % m);
        let follow = |(at, v): (usize, &f64)| if all || v.abs() >= bound(at) { v * growth } else { *v };
        super::super::Start {
            expansion: smaller.expansion.iter().enumerate().map(follow).collect(),
            weights: smaller.weights.clone(),
            intercepts: smaller.intercepts.clone(),
        }
    }

    /// q < 1, in the order of the list.
    fn reweighted(&self, known: &Known) -> Result<Vec<Solution>> {
        let (full, exact) = (Thoroughness::full(self.options), portfolio::efforts(self.options).1);
        // neighbours are close: what a step gains below the tolerance is left
        let rough = Effort { tolerance: full.rough.tolerance.max(1e-3), loose: 1e-2, decrease: 1e-3, ..full.rough };
        let (fine, first, first_fine) = match self.path.decisions {
            false => (Effort { decrease: exact.decrease.max(0.1 * self.options.tolerance), ..exact }, full, exact),
            true => {
                let fine = Effort { decrease: exact.tolerance, ..exact };
                (fine, Thoroughness { rough, decrease: FIRST_DECREASE, moves: FIRST_MOVES, race: true }, fine)
            }
        };
        let q = self.path.qs[known.at];
        let one = LqProblem { q, ..*self.problem };
        let empty = portfolio::best(&one, [portfolio::nothing(&one)], &rough, self.control)?;
        let (empty, near) = (empty.map_or(0.0, |empty| empty.objective()), rough.tolerance.max(NEAR));
        let mut found: Vec<Option<Solution>> = vec![None; self.path.cs.len()];
        let mut budget: f64 = 0.0;
        for (place, &at) in self.rising.iter().enumerate().rev() {
            self.control.check()?;
            let caps = self.caps(at);
            let problem = LqProblem { q, caps: &caps, ..*self.problem };
            let starts = self.starts(&problem, known, place, &found);
            let larger = self.rising.get(place + 1).and_then(|&larger| found[larger].as_ref());
            budget = budget.max(0.0) + MOVES;
            let solution = match larger {
                None => {
                    let (starts, how) = ((starts, known.starts), (&first, &first_fine));
                    portfolio::solve_from(&problem, starts, how, self.options, self.control)?
                }
                Some(larger) => {
                    let starts = portfolio::race(&problem, starts, &rough, self.control)?;
                    let mut best = portfolio::best(&problem, starts, &rough, self.control)?;
                    // w = 0 costs C times the same
                    if best.as_ref().is_none_or(|best| best.objective() > (1.0 - near) * empty * self.c(at)) {
                        let nothing = portfolio::best(&problem, [portfolio::nothing(&problem)], &rough, self.control)?;
                        best = nothing.map(|nothing| portfolio::better(best.take(), nothing)).or(best);
                    }
                    let Some(mut best) = best else { break };
                    let known = larger.weights.as_deref();
                    if !known.is_some_and(|known| portfolio::same_support(known, &best.weights)) {
                        best = portfolio::improve(&problem, best, &mut budget, &rough, self.control)?;
                    }
                    portfolio::polish(&problem, best, &fine, self.control)?
                }
            };
            // what was cut short may have missed a start
            let out_of_time = solution.status == Status::TimeLimit || self.control.out_of_time();
            let status = if out_of_time { Status::TimeLimit } else { solution.status };
            found[at] = Some(Solution { status, ..solution });
            if out_of_time {
                break;
            }
        }
        self.fill(&mut found, known);
        Ok(found.into_iter().flatten().collect())
    }

    /// The starts for the C at a place of `rising`, all different.
    fn starts(&self, problem: &LqProblem, known: &Known, place: usize, found: &[Option<Solution>]) -> Vec<Start> {
        let at = self.rising[place];
        let mut starts: Vec<Start> = Vec::new();
        let mut sources: Vec<(&Solution, f64)> = Vec::new();
        if self.moved(known.above, place) {
            sources.push((&known.above[at], 1.0));
        }
        sources.extend(self.stronger(problem, known.absolute, place));
        // multipliers within the smaller bounds stay, those beyond are cut off at them
        let larger = self.rising.get(place + 1);
        sources.extend(larger.and_then(|&larger| Some((found[larger].as_ref()?, 1.0))));
        for (source, factor) in sources {
            let weights = source.weights.clone().unwrap_or_default();
            if starts.iter().all(|start| start.weights != weights) {
                let expansion = source.expansion.iter().map(|v| v * factor).collect();
                starts.push(Start { weights, intercepts: source.intercepts.clone(), expansion: Some(expansion) });
            }
        }
        starts
    }

    /// l1 solutions of this C and larger ones, and what their multipliers are to be multiplied by.
    fn stronger<'s>(&self, problem: &LqProblem, absolute: &'s [Solution], place: usize) -> Vec<(&'s Solution, f64)> {
        let c = self.c(self.rising[place]);
        let mut sources = Vec::new();
        for factor in STRONGER {
            let reached = |&other: &usize| self.c(self.rising[other]) >= 0.999 * factor * c;
            let Some(other) = (place..self.rising.len()).find(reached) else { continue };
            let source = &absolute[self.rising[other]];
            let used = portfolio::columns_used(problem, source.weights.as_deref().unwrap_or(&[]));
            if used <= portfolio::most_columns(problem) && self.moved(absolute, other) {
                sources.push((source, c / self.c(self.rising[other])));
            }
        }
        sources
    }

    /// Whether a solution is another one than that of the next larger C; what is not leads where that one led.
    fn moved(&self, list: &[Solution], place: usize) -> bool {
        let next = self.rising.get(place + 1);
        let weights = |at: usize| list[at].weights.as_deref().unwrap_or(&[]);
        next.is_none_or(|&next| !portfolio::alike(weights(self.rising[place]), weights(next)))
    }

    /// What was not reached in time is what the larger q found.
    fn fill(&self, found: &mut [Option<Solution>], known: &Known) {
        let q = self.path.qs[known.at];
        for (at, found) in found.iter_mut().enumerate() {
            found.get_or_insert_with(|| {
                let source = known.above[at].clone();
                let weights = source.weights.as_deref().unwrap_or(&[]);
                let problem = LqProblem { q, caps: &self.caps(at), ..*self.problem };
                let objective = problem.objective(weights, &source.intercepts);
                Solution { objective, trace: vec![objective], status: Status::TimeLimit, ..source }
            });
        }
    }
}
