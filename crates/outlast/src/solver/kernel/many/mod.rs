//! Many classes jointly: the truncated hinge, utility-weighted or not, for any kernel.
//!
//! The convex problem of a bound ([`Majorant`]) has the dual
//!
//! ```text
//! min 1/2 sum_j V_j'K V_j + sum_ij [q_ij - knot_ij]_+,   V_i = base_i - q_i,   q_i in total_i x simplex,   sum_i V_ij = 0
//! ```
//!
//! Its solver rests on two facts. Between two classes only two columns of K V move, and only rows with mass in one of the two
//! take part: a small two-class problem for the block SMO ([`pair`]), independent of pairs without a common class. And a state
//! in which no pair helps is optimal unless some longer cycle of classes gains ([`cycles`]), which is found in O(k^3) and
//! taken by itself. Working sets and their f32 matrix are as with two classes ([`levels`]), the duality gap is the stopping
//! rule, and the intercepts are the multipliers of the column sums.
//!
//! Moving the bound drops terms or brings them back; q is put on the new simplices, the column sums restored greedily, and
//! the solver goes on from there. On many rows the bound is first followed loosely: near the optimum nearly all of the gap is
//! the primal's, so the dual value tells long before the primal one whether a move of the bound helps. What follows goes down.

mod arena;
mod cycles;
mod face;
mod gains;
mod joint;
mod levels;
mod matrix;
mod pair;
mod sheet;

use super::super::majorize::{self, Limits, Majorizer, Step};
use super::super::{Options, Solution, Status};
use super::gram::Gram;
use super::two_level::Sizes;
use super::{LARGEST_CAP, NAME};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::Isa;
use crate::problem::{Majorant, ManyClass, Terms};
use joint::Joint;
use levels::Solver;
use rayon::prelude::*;

/// Up to this many rows each step of the path is solved in full; beyond, only when the bound stands.
const EXACT_PATH: usize = 1500;

/// Beyond, the untruncated problem, which only starts the path, is solved to this many times the tolerance.
const LOOSE_START: f64 = 300.0;

/// Then the bound is followed at these many times the tolerance, one after the other.
const LOOSE_PATH: [f64; 2] = [300.0, 30.0];

/// The largest of these gaps, whatever the tolerance.
const LOOSEST: f64 = 0.05;

/// The steps that follow, which have to go down, begin at this many times the tolerance.
const LOOSE_STEP: f64 = 200.0;

/// A loose step must go down by this share of what its gap leaves open.
const ENOUGH: f64 = 0.1;

/// A step that went down too little is solved on, each time to this share of its gap.
const TIGHTER: f64 = 0.25;

/// Solves a hinge problem with many classes, truncated or not, for any kernel.
pub fn solve_many(problem: &ManyClass, options: &Options, control: &Control) -> Result<Solution> {
    solve_many_on(Isa::detect(), problem, options, control)
}

/// As [`solve_many`], on a given instruction set, which must be among [`Isa::available`].
pub fn solve_many_on(isa: Isa, problem: &ManyClass, options: &Options, control: &Control) -> Result<Solution> {
    let mut machine = Machine::prepare(isa, problem, options)?;
    machine.warm_start(options);
    // the cost form is a difference of convex functions even when nothing is truncated
    let convex = problem.loss.truncation().is_none() && !matches!(problem.terms, Terms::Cost(_));
    let small = problem.rows() <= EXACT_PATH;
    let looser = |times: f64| match small {
        true => options.tolerance,
        false => (times * options.tolerance).min(LOOSEST).max(options.tolerance),
    };
    let start = machine.minimize(if convex { options.tolerance } else { looser(LOOSE_START) }, control)?;
    if convex || start.status == Status::TimeLimit {
        let trace = vec![machine.objective()];
        let report = majorize::Report { trace, gap: start.gap, iterations: start.iterations, status: start.status };
        return Ok(machine.solution(report));
    }
    machine.solver.stage = "truncated hinge";
    let (before, mut start) = (machine.objective(), start);
    let mut steps = options.max_steps;
    for times in LOOSE_PATH.into_iter().filter(|_| !small) {
        start = machine.follow_bound(start, looser(times), &mut steps, control)?;
    }
    let limits = Limits {
        tolerance: options.tolerance,
        loose: looser(LOOSE_STEP),
        decrease: machine.decrease,
        max_steps: steps,
    };
    let mut report = majorize::run(&mut machine, start, &limits, "truncated hinge", control)?;
    if report.trace[0] < before {
        report.trace.insert(0, before);
    }
    Ok(machine.solution(report))
}

/// The iterate and its bound.
struct Machine<'p, 'a, 'o> {
    problem: &'p ManyClass<'a>,
    joint: Joint<'a>,
    solver: Solver<'o>,
    bound: Majorant,
    intercepts: Vec<f64>,
    /// A lower bound on the minimum of the bound: the dual value last reached, and what dropped terms cost.
    floor: f64,
    /// Of the convex problems that count.
    tolerance: f64,
    /// The relative decrease below which a step is the last.
    decrease: f64,
    /// The objective where the current step began.
    current: Option<f64>,
    saved: Option<Saved>,
}

struct Saved {
    q: Vec<f64>,
    h: Vec<f64>,
    base: Vec<f64>,
    knots: Vec<f64>,
    total: Vec<f64>,
    bound: Majorant,
    intercepts: Vec<f64>,
}

impl<'p, 'a, 'o> Machine<'p, 'a, 'o> {
    /// The machine with V = 0, its matrix within the byte budget.
    fn prepare(isa: Isa, problem: &'p ManyClass<'a>, options: &'o Options) -> Result<Self> {
        let sizes = Sizes::new(options.cache_bytes / 2);
        let keep = options.cache_bytes.saturating_sub(sizes.bytes());
        let gram = Gram::new(problem.x, problem.kernel, isa, keep)?.with_store(options.store.as_ref());
        let straight = matches!(problem.terms, Terms::Own);
        let cost_form = matches!(problem.terms, Terms::Cost(_));
        let joint = Joint::new(gram, problem.classes, problem.intercept, straight, cost_form);
        let solver = Solver::new(sizes.direct(), options);
        let bound = problem.untruncated();
        let intercepts = vec![0.0; problem.classes];
        let tolerance = options.tolerance;
        // on many rows a step that gains less than the tolerance can tell is the last
        let decrease = if problem.rows() <= EXACT_PATH { 0.01 * tolerance } else { tolerance };
        let mut machine = Machine {
            problem,
            joint,
            solver,
            bound,
            intercepts,
            floor: f64::NEG_INFINITY,
            tolerance,
            decrease,
            current: None,
            saved: None,
        };
        machine.reshape();
        Ok(machine)
    }

    /// The dual of the current bound, in the solver's units.
    fn reshape(&mut self) {
        let (problem, bound, unit) = (self.problem, &self.bound, self.joint.gram.unit());
        self.joint.reshape(|row, knots, base| {
            let total = problem.shape(bound, row, knots, base);
            // a row that needs more than this is beyond f32 kernel values
            let scale = if total * unit > LARGEST_CAP { LARGEST_CAP / total } else { unit };
            knots.iter_mut().chain(base).for_each(|value| *value *= scale);
            total * scale
        });
    }

    /// Starts from another solution's V.
    fn warm_start(&mut self, options: &Options) {
        let Some(start) = &options.start else { return };
        let k = self.problem.classes;
        if start.expansion.len() != self.joint.rows() * k {
            return;
        }
        let unit = self.joint.gram.unit();
        let (mut rows, mut old) = (Vec::new(), Vec::new());
        for (row, v) in start.expansion.chunks_exact(k).enumerate().filter(|(_, v)| v.iter().any(|v| *v != 0.0)) {
            let v: Vec<f64> = v.iter().map(|v| v * unit).collect();
            old.extend((0..k).map(|class| self.joint.v(row, class)));
            self.joint.set_v(row, &v);
            rows.push(row as u32);
        }
        self.joint.moved(&rows, &old);
    }

    /// Solves the convex problem from the current state. Also returns by how much it may still fall.
    fn settle(&mut self, tolerance: f64, control: &Control) -> Result<(Step, f64)> {
        let step = self.solver.solve(&mut self.joint, tolerance, control)?;
        // what rounding of many moves has added up
        self.joint.balance();
        let measure = self.joint.measure();
        self.intercepts = measure.intercepts;
        let unit = self.joint.gram.unit();
        self.floor = (measure.primal - measure.gap) / unit + self.problem.dropped_loss(&self.bound);
        Ok((step, measure.gap / self.joint.gram.unit()))
    }

    /// Moves the bound as long as that lowers its minimum, each time solved loosely: the dual value, which is what tells, is far
    /// nearer to the minimum than the primal one. Ends no higher than it began.
    fn follow_bound(&mut self, start: Step, loose: f64, steps: &mut usize, control: &Control) -> Result<Step> {
        let before = self.objective();
        let (mut step, mut floor) = (start, f64::INFINITY);
        self.save();
        let first = self.saved.take();
        while *steps > 0 && !control.out_of_time() && self.majorize() > 0 {
            *steps -= 1;
            self.reshape();
            self.joint.balance();
            let next = self.settle(loose, control)?.0;
            step = Step { iterations: step.iterations + next.iterations, ..next };
            let falls = floor - self.floor > self.tolerance * self.floor.abs();
            if !falls || step.status != Status::Converged {
                break;
            }
            floor = self.floor;
        }
        if !(self.objective() <= before) {
            self.saved = first;
            self.restore();
            return Ok(Step { iterations: step.iterations, ..start });
        }
        Ok(step)
    }

    /// f + b, rows x classes.
    fn decision(&self) -> Vec<f64> {
        let k = self.problem.classes;
        let mut decision = vec![0.0; self.joint.rows() * k];
        decision.par_chunks_exact_mut(k).enumerate().with_min_len(512).for_each(|(row, f)| {
            for (class, (f, b)) in f.iter_mut().zip(&self.intercepts).enumerate() {
                *f = self.joint.sheet.score(row, class) + b;
            }
        });
        decision
    }

    fn solution(self, report: majorize::Report) -> Solution {
        let (rows, k) = (self.joint.rows(), self.problem.classes);
        let unit = self.joint.gram.unit();
        let decision = self.decision();
        // a row whose total was clipped: what was solved is not what was asked
        let clipped = self.joint.sheet.total.iter().any(|&total| total >= LARGEST_CAP);
        let (status, gap) = if clipped { (Status::Inaccurate, f64::INFINITY) } else { (report.status, report.gap) };
        Solution {
            expansion: (0..rows * k).map(|at| self.joint.v(at / k, at % k) / unit).collect(),
            weights: None,
            intercepts: self.intercepts,
            truncated: self.problem.flat_rows(&decision),
            decision,
            majorant: Some(self.bound),
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
        self.joint.penalty() / self.joint.gram.unit() + self.problem.total_loss(&self.decision())
    }

    fn majorize(&mut self) -> usize {
        let unit = self.joint.gram.unit();
        let duals: Option<Vec<f64>> =
            self.joint.cost_form.then(|| self.joint.sheet.q.iter().map(|q| q / unit).collect());
        let bound = self.problem.majorant(&self.decision(), duals.as_deref());
        let changed = self.problem.changes(&self.bound, &bound);
        self.bound = bound;
        changed
    }

    fn minimize(&mut self, tolerance: f64, control: &Control) -> Result<Step> {
        self.reshape();
        self.joint.balance();
        let (mut step, mut left) = self.settle(tolerance, control)?;
        if let (true, Some(before)) = (tolerance > self.tolerance, self.current) {
            // the bound can fall by the gap at most: a step that has gone down by a share of it has come a part of the way
            let mut tolerance = tolerance;
            while tolerance > self.tolerance && step.status == Status::Converged {
                let hopeless = before - self.floor <= self.decrease * before.abs();
                if hopeless || before - self.objective() >= ENOUGH * left {
                    break;
                }
                tolerance = (TIGHTER * tolerance.min(step.gap)).max(self.tolerance);
                let next = self.settle(tolerance, control)?;
                (step, left) = (Step { iterations: step.iterations + next.0.iterations, ..next.0 }, next.1);
            }
        }
        Ok(step)
    }

    fn floor(&self) -> f64 {
        self.floor
    }

    fn save(&mut self) {
        self.current = Some(self.objective());
        let sheet = &self.joint.sheet;
        self.saved = Some(Saved {
            q: sheet.q.clone(),
            h: sheet.h.clone(),
            base: self.joint.base.clone(),
            knots: sheet.knots.clone(),
            total: sheet.total.clone(),
            bound: self.bound.clone(),
            intercepts: self.intercepts.clone(),
        });
    }

    fn restore(&mut self) {
        if let Some(saved) = self.saved.take() {
            let sheet = &mut self.joint.sheet;
            (sheet.q, sheet.h, sheet.knots, sheet.total) = (saved.q, saved.h, saved.knots, saved.total);
            self.joint.base = saved.base;
            self.bound = saved.bound;
            self.intercepts = saved.intercepts;
        }
    }
}
