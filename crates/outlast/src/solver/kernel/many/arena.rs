//! Solving a working set on a dense matrix: sweeps over pairs of classes, and longer cycles where pairs do not help.
//!
//! ```text
//! loop   g(a, b) = largest gain of a move from a to b;   lambda = largest mean of g over cycles;   stop if lambda <= eps
//!        the pairs (a, b) with (g(a, b) + g(b, a)) / 2 near lambda, worst first, each solved to a third, those without a
//!        common class in parallel
//!        if no pair comes near lambda: an exact line search along the best cycle, one row per arc
//! ```
//!
//! Where lambda falls too slowly, steps on the face of free entries ([`face`]) come in between.
//!
//! Without intercept moves need no partner: lambda is the largest gain, and pairs are all there is.

use super::cycles::best_cycle;
use super::face;
use super::pair::{self, Matrix};
use super::sheet::{Gains, Sheet};
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

/// A pair is solved to this share of its violation.
const SHARE: f64 = 0.3;

pub(super) struct Arena<'s, M: Matrix> {
    pub(super) sheet: &'s mut Sheet,
    pub(super) matrix: M,
    pub(super) balanced: bool,
}

impl<M: Matrix> Arena<'_, M> {
    /// Lowers the largest mean gain to `eps`, or as far as rounding allows. Returns whether anything moved.
    pub(super) fn solve(&mut self, eps: f64, control: &Control) -> Result<bool> {
        let mut moved = false;
        let mut gains = self.sheet.gains();
        // classes whose columns moved since gains were up to date
        let mut changed = vec![false; self.sheet.classes];
        let (mut best_mean, mut since, mut stuck) = (f64::INFINITY, 0, false);
        let wait = self.matrix.patience(self.sheet.classes);
        for _ in 0..MOST_SWEEPS {
            control.check()?;
            if control.out_of_time() {
                break;
            }
            self.sheet.update_gains(&mut gains, &changed);
            changed.fill(false);
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
                changed.fill(true);
                continue;
            }
            if stuck {
                break;
            }
            let pairs = self.pairs(&gains, (NEAR * mean).max(eps));
            let best = pairs.first().map_or(0.0, |pair| pair.0);
            let cyclic = cycle.len() > 2;
            let mut progress = match cyclic && mean > CLEARLY * best {
                true => self.go_round(&gains, &cycle, &mut changed),
                false => self.sweep(pairs, eps, &mut changed, control),
            };
            if !progress && cyclic {
                progress = self.go_round(&gains, &cycle, &mut changed);
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
    fn sweep(
        &mut self,
        mut pairs: Vec<(f64, usize, usize)>,
        eps: f64,
        changed: &mut [bool],
        control: &Control,
    ) -> bool {
        let stop = || control.check().is_err() || control.out_of_time();
        let eps = 0.5 * if self.balanced { eps } else { 0.5 * eps };
        let members = self.sheet.members();
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
                if !moves.is_empty() {
                    moved = true;
                    moves.classes().into_iter().for_each(|class| changed[class] = true);
                }
                moves.apply(self.sheet);
            }
        }
        moved
    }

    /// Moves mass round a cycle of classes, in the row of the largest gain for each arc, as far as that helps. Returns whether
    /// anything moved.
    fn go_round(&mut self, gains: &Gains, cycle: &[usize], changed: &mut [bool]) -> bool {
        let k = gains.classes;
        let arcs: Vec<(usize, usize, usize)> = (0..cycle.len())
            .map(|at| (cycle[at], cycle[(at + 1) % cycle.len()]))
            .map(|(from, to)| (gains.row[from * k + to] as usize, from, to))
            .collect();
        let gain: f64 = arcs.iter().map(|&(_, from, to)| gains.get(from, to)).sum();
        let room = arcs.iter().map(|&(row, from, to)| self.sheet.room(row, from, to)).fold(f64::INFINITY, f64::min);
        let same = |a: usize, b: usize| f64::from(u8::from(a == b));
        let mut curvature = 0.0;
        for &(row, from, to) in &arcs {
            for &(other, out, into) in &arcs {
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
        for &(row, from, to) in &arcs {
            changed[from] = true;
            self.sheet.shift(row, from, to, mass);
            let column = self.matrix.combine(&[row as u32], &[mass]);
            self.sheet.add_column(from, to, &column);
        }
        true
    }
}
