//! Solving a working set on a dense matrix: sweeps over pairs of classes, and longer cycles where pairs do not help.
//!
//! ```text
//! loop   g(a, b) = largest gain of a move from a to b;   lambda = largest mean of g over cycles;   stop if lambda <= eps
//!        the pairs (a, b) with (g(a, b) + g(b, a)) / 2 near lambda, worst first, each solved to a third, those without a
//!        common class in parallel
//!        if no pair comes near lambda: exact line searches along the best cycle, one row per arc, until a third is left of
//!        its gain; then along the best of the cycles without a common class
//! ```
//!
//! Where lambda falls too slowly, steps on the face of free entries ([`face`]) come in between.
//!
//! Without intercept moves need no partner: lambda is the largest gain, and pairs are all there is.

use super::cycles::{best_cycle, best_cycle_among};
use super::face;
use super::gains::{Gains, Support, gains};
use super::pair::{self, Matrix};
use super::sheet::Sheet;
use crate::control::Control;
use crate::error::Result;
use rayon::prelude::*;

/// Sweeps before level 0 looks again.
const MOST_SWEEPS: usize = 400;

/// Sweeps without a clear fall of lambda after which rounding is all that moves.
const PATIENCE: usize = 50;

/// Rows from which pairs are worth a second thread.
const WORTH: usize = 1024;

/// Pairs below this share of lambda wait.
const NEAR: f64 = 0.3;

/// A cycle of three and more classes is taken when its mean exceeds that of every pair by this factor.
const CLEARLY: f64 = 1.3;

/// Most line searches along a cycle.
const ROUNDS: usize = 30;

/// A pair, or a cycle, is solved to this share of its violation.
const SHARE: f64 = 0.3;

pub(super) struct Arena<'s, M: Matrix> {
    sheet: &'s mut Sheet,
    pub(super) matrix: M,
    balanced: bool,
    /// Where the sheet has mass.
    support: Support,
}

impl<'s, M: Matrix> Arena<'s, M> {
    pub(super) fn new(sheet: &'s mut Sheet, matrix: M, balanced: bool) -> Arena<'s, M> {
        let support = Support::new(sheet);
        Arena { sheet, matrix, balanced, support }
    }

    /// Lowers the largest mean gain to `eps`, or as far as rounding allows. Returns whether anything moved.
    pub(super) fn solve(&mut self, eps: f64, control: &Control) -> Result<bool> {
        let mut moved = false;
        let (mut best_mean, mut since, mut stuck) = (f64::INFINITY, 0, false);
        let wait = self.matrix.patience(self.sheet.classes);
        for _ in 0..MOST_SWEEPS {
            control.check()?;
            if control.out_of_time() {
                break;
            }
            let gains = gains(self.sheet, &self.support);
            let (mean, cycle) = if self.balanced { best_cycle(&gains) } else { (gains.largest(), Vec::new()) };
            since += 1;
            if mean < 0.7 * best_mean {
                (best_mean, since) = (mean, 0);
            }
            if !(mean > eps) || since > PATIENCE.max(3 * wait) {
                break;
            }
            if (since > 0 && since % wait == 0 || stuck) && face::descend(self.sheet, &self.matrix, self.balanced) {
                (moved, stuck) = (true, false);
                self.support = Support::new(self.sheet);
                continue;
            }
            if stuck {
                break;
            }
            let pairs = self.pairs(&gains, (NEAR * mean).max(eps));
            let best = pairs.first().map_or(0.0, |pair| pair.0);
            let cyclic = cycle.len() > 2;
            let mut progress = match cyclic && mean > CLEARLY * best {
                true => self.go_round(&gains, &cycle, mean),
                false => self.sweep(pairs, eps, control),
            };
            if !progress && cyclic {
                progress = self.go_round(&gains, &cycle, mean);
            }
            // where not even a cycle helps, a last try is a step on the face
            stuck = !progress;
            moved |= progress;
        }
        Ok(moved)
    }

    /// Pairs whose mean gain exceeds a bound, worst first.
    fn pairs(&self, gains: &Gains, bound: f64) -> Vec<(f64, usize, usize)> {
        let k = gains.classes;
        let mut pairs = Vec::new();
        for a in 0..k {
            for b in a + 1..k {
                let (forth, back) = (gains.get(a, b), gains.get(b, a));
                let mean = if self.balanced { 0.5 * (forth + back) } else { forth.max(back) };
                if mean > bound {
                    pairs.push((mean, a, b));
                }
            }
        }
        pairs.sort_by(|x, y| y.0.total_cmp(&x.0));
        pairs
    }

    /// Solves the problems of pairs, in rounds of pairs without a common class.
    fn sweep(&mut self, mut pairs: Vec<(f64, usize, usize)>, eps: f64, control: &Control) -> bool {
        let stop = || control.check().is_err() || control.out_of_time();
        let eps = 0.5 * if self.balanced { eps } else { 0.5 * eps };
        let members = self.support.members(self.sheet.classes);
        let mut moved = false;
        while !pairs.is_empty() && !stop() {
            let mut taken = vec![false; self.sheet.classes];
            let mut round = Vec::new();
            pairs.retain(|&(_, a, b)| {
                let free = !taken[a] && !taken[b];
                if free {
                    (taken[a], taken[b]) = (true, true);
                    round.push((a, b));
                }
                !free
            });
            let (sheet, matrix, balanced) = (&*self.sheet, &self.matrix, self.balanced);
            let solve =
                |&pair: &(usize, usize)| pair::solve(sheet, &members, matrix, pair, balanced, SHARE, eps, &stop);
            let moves: Vec<pair::Moves> = match round.len() > 1 && sheet.rows() >= WORTH {
                true => round.par_iter().map(solve).collect(),
                false => round.iter().map(solve).collect(),
            };
            for moves in moves {
                moved |= !moves.is_empty();
                moves.apply(self.sheet, &mut self.support);
            }
        }
        moved
    }

    /// Takes the best cycle, then the best ones that have no class in common with those before, as long as they come near.
    /// Returns whether anything moved.
    fn go_round(&mut self, gains: &Gains, cycle: &[usize], mean: f64) -> bool {
        let members = self.support.members(self.sheet.classes);
        let mut moved = self.follow(gains, cycle, &members);
        let mut rest: Vec<usize> = (0..gains.classes).filter(|class| !cycle.contains(class)).collect();
        loop {
            let (next, cycle) = best_cycle_among(gains, &rest);
            if !(next > NEAR * mean) || cycle.len() < 2 {
                return moved;
            }
            moved |= self.follow(gains, &cycle, &members);
            rest.retain(|class| !cycle.contains(class));
        }
    }

    /// Moves mass round a cycle of classes until little of its gain is left. Returns whether anything moved.
    fn follow(&mut self, gains: &Gains, cycle: &[usize], members: &[Vec<u32>]) -> bool {
        let k = self.sheet.classes;
        let mut arcs: Vec<(usize, usize, usize)> = (0..cycle.len())
            .map(|at| (cycle[at], cycle[(at + 1) % cycle.len()]))
            .map(|(from, to)| (gains.row(from, to), from, to))
            .collect();
        let sheet = &*self.sheet;
        let gain_of = |sheet: &Sheet, &(row, from, to): &(usize, usize, usize)| sheet.gain(row, from, to);
        let first: f64 = arcs.iter().map(|arc| gain_of(sheet, arc)).sum();
        let mut moved = false;
        for _ in 0..ROUNDS {
            if !self.step_round(&arcs) {
                break;
            }
            moved = true;
            // the rows that gain most now; a class may have run dry, or got mass in rows that are not listed
            for arc in &mut arcs {
                let (_, from, to) = *arc;
                let open = members[from].iter().filter(|&&row| self.sheet.q[row as usize * k + from] > 0.0);
                let best = open
                    .map(|&row| (gain_of(self.sheet, &(row as usize, from, to)), row as usize))
                    .max_by(|x, y| x.0.total_cmp(&y.0));
                let Some((_, row)) = best else { break };
                arc.0 = row;
            }
            let gain: f64 = arcs.iter().map(|arc| gain_of(self.sheet, arc)).sum();
            if !(gain > SHARE * first) {
                break;
            }
        }
        moved
    }

    /// Moves mass along one row per arc, as far as that helps. Returns whether anything moved.
    fn step_round(&mut self, arcs: &[(usize, usize, usize)]) -> bool {
        let gain: f64 = arcs.iter().map(|&(row, from, to)| self.sheet.gain(row, from, to)).sum();
        let open = |row: usize, from: usize| self.sheet.q[row * self.sheet.classes + from] > 0.0;
        if !arcs.iter().all(|&(row, from, _)| open(row, from)) {
            return false;
        }
        let room = arcs.iter().map(|&(row, from, to)| self.sheet.room(row, from, to)).fold(f64::INFINITY, f64::min);
        let same = |a: usize, b: usize| f64::from(u8::from(a == b));
        let mut curvature = 0.0;
        for &(row, from, to) in arcs {
            for &(other, out, into) in arcs {
                let common = same(from, out) - same(from, into) - same(to, out) + same(to, into);
                if common != 0.0 {
                    curvature += common * self.matrix.value(row, other);
                }
            }
        }
        let mass = if curvature > 0.0 { (gain / curvature).min(room) } else { room };
        if !(gain > 0.0 && mass > 0.0) {
            return false;
        }
        for (at, &(row, from, to)) in arcs.iter().enumerate() {
            self.sheet.shift(row, from, to, mass);
            for class in [from, to] {
                self.support.set(row, class, self.sheet.q[row * self.sheet.classes + class] > 0.0);
            }
            // what the arc before brings into the class goes out by this one
            let before = arcs[(at + arcs.len() - 1) % arcs.len()].0;
            self.matrix.add_difference(row, before, mass, self.sheet, from);
        }
        true
    }
}
