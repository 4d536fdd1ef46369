//! The fits behind [`Probabilities`]: for each pair of classes a family over the levels, each fit started at the one before, from the
//! level 1/2 outwards. Where there are two classes and no payoffs, that of level 1/2 is the model itself.
//!
//! Only signs count: the fits are as exact as `tol` asks for, and no more.

use super::probability::{Family, Probabilities, levels, pairs};
use super::truncated_fit::Task;
use super::{Function, Rows, fit};
use crate::control::Progress;
use crate::data::{Design, Labels, Repeated};
use crate::error::Result;
use crate::problem::KernelFunction;
use crate::solver::{Solution, Start, Status};

/// The families, and how many of their fits did not converge. `at_half` is the solution at level 1/2, where there is one already.
pub(super) fn run(task: &Task, at_half: Option<&Solution>) -> Result<(Probabilities, usize)> {
    let levels = levels();
    let mut collected = Collected { carries: vec![false; task.x.rows()], ..Collected::default() };
    for (first, second) in pairs(task.classes()) {
        if task.classes() == 2 {
            let rows = (0..task.x.rows() as u32).collect();
            Pair { task: *task, rows }.family(&levels, at_half, &mut collected)?;
        } else {
            of_two(task, [first, second], &levels, &mut collected)?;
        }
    }
    collected.finish(task, levels)
}

/// The family of two of several classes, on their rows alone.
fn of_two(task: &Task, classes: [usize; 2], levels: &[f64], collected: &mut Collected) -> Result<()> {
    let codes = task.labels.codes();
    let rows: Vec<u32> =
        (0..codes.len() as u32).filter(|&row| classes.contains(&(codes[row as usize] as usize))).collect();
    let names = classes.map(|class| task.labels.classes()[class].clone()).to_vec();
    let second = |&row: &u32| u32::from(codes[row as usize] as usize == classes[1]);
    let labels = Labels::from_codes(names, rows.iter().map(second).collect())?;
    let caps: Vec<f64> = rows.iter().map(|&row| task.caps[row as usize]).collect();
    let (copied, square);
    let x: &dyn Design = match task.kernel {
        KernelFunction::Precomputed => {
            square = Repeated::square(task.x, rows.clone());
            &square
        }
        _ => {
            copied = Rows::copy(task.x, &rows)?;
            copied.as_design()
        }
    };
    let task = Task { x, labels: &labels, caps: &caps, loss: task.parameters.truncated_loss(2)?, ..*task };
    Pair { task, rows }.family(levels, None, collected)
}

/// A two-class problem without payoffs, and which rows of all it has.
struct Pair<'a> {
    task: Task<'a>,
    rows: Vec<u32>,
}

impl Pair<'_> {
    fn family(&self, levels: &[f64], at_half: Option<&Solution>, collected: &mut Collected) -> Result<()> {
        let half = levels.len() / 2;
        let mut found: Vec<Option<Start>> = levels.iter().map(|_| None).collect();
        let middle = match at_half {
            Some(solution) => start(solution),
            None => self.fit(levels[half], None, collected)?,
        };
        for outwards in [(0..half).rev().collect::<Vec<usize>>(), (half + 1..levels.len()).collect()] {
            let mut previous = middle.clone();
            for level in outwards {
                previous = self.fit(levels[level], Some(previous), collected)?;
                found[level] = Some(previous.clone());
            }
        }
        found[half] = Some(middle);
        collected.add(self, found.into_iter().flatten().collect());
        Ok(())
    }

    /// f at a level: rows of the second class count 2 (1 - level), those of the first 2 level.
    fn fit(&self, level: f64, from: Option<Start>, collected: &mut Collected) -> Result<Start> {
        let task = &self.task;
        let factors = [2.0 * level, 2.0 * (1.0 - level)];
        let rows = task.caps.iter().zip(task.labels.codes());
        let caps: Vec<f64> = rows.map(|(cap, &code)| cap * factors[code as usize]).collect();
        let step = collected.fits;
        task.request.control.report(Progress { stage: "probability", step, objective: f64::NAN, gap: f64::NAN });
        let solution = task.weighted(&caps, from)?;
        collected.fits += 1;
        collected.unconverged += usize::from(solution.status != Status::Converged);
        Ok(start(&solution))
    }
}

fn start(solution: &Solution) -> Start {
    let Solution { expansion, weights, intercepts, .. } = solution;
    Start { expansion: expansion.clone(), weights: weights.clone(), intercepts: intercepts.clone() }
}

/// What the families have given so far.
#[derive(Default)]
struct Collected {
    fits: usize,
    unconverged: usize,
    /// Which training rows carry a function.
    carries: Vec<bool>,
    /// Of linear models, pairs x levels x columns.
    weights: Vec<f64>,
    /// With positions among all training rows.
    families: Vec<Family>,
}

impl Collected {
    fn add(&mut self, pair: &Pair, functions: Vec<Start>) {
        let intercepts = functions.iter().map(|function| function.intercepts[0]).collect();
        let mut family = Family { positions: Vec::new(), coefficients: Vec::new(), intercepts };
        if matches!(pair.task.kernel, KernelFunction::Linear) {
            for function in functions {
                let combined = || fit::combine(pair.task.x, &function.expansion, 1);
                self.weights.extend(function.weights.clone().unwrap_or_else(combined));
            }
        } else {
            for (at, &row) in pair.rows.iter().enumerate() {
                let of_row = functions.iter().map(|function| function.expansion[at]);
                if of_row.clone().any(|coefficient| coefficient != 0.0) {
                    self.carries[row as usize] = true;
                    family.positions.push(row);
                    family.coefficients.extend(of_row);
                }
            }
        }
        self.families.push(family);
    }

    fn finish(mut self, task: &Task, levels: Vec<f64>) -> Result<(Probabilities, usize)> {
        let support: Vec<u32> = (0..self.carries.len() as u32).filter(|&row| self.carries[row as usize]).collect();
        let mut place = vec![0; self.carries.len()];
        support.iter().enumerate().for_each(|(at, &row)| place[row as usize] = at as u32);
        for family in &mut self.families {
            family.positions.iter_mut().for_each(|row| *row = place[*row as usize]);
        }
        let function = match task.kernel {
            KernelFunction::Linear => Function::Linear { weights: self.weights },
            KernelFunction::Precomputed => Function::Precomputed,
            _ => Function::Kernel { rows: Rows::copy(task.x, &support)? },
        };
        Ok((Probabilities { levels, support, function, families: self.families }, self.unconverged))
    }
}
