//! A primal-dual interior point method for piecewise linear losses, where many coefficients are not 0.
//!
//! The engine's steps are cheap while few columns take part. On a dense face each costs a factorisation or more, and there are
//! hundreds; here some twenty factorisations lead from nowhere to next to the solution, whatever the data. The engine then
//! makes zeros exact and the bound a certificate, in a step or two.
//!
//! ```text
//! repeat                                          x z: the products that vanish at the solution, see `terms` and `entries`
//!   normal equations, one row per row of the design (see `normal`), factored once and used twice:
//!   towards x z = 0; then towards x z = (what that left)^3 / (what there was)^2, with dx dz taken into account as far as the first went
//!   primal and dual step lengths that keep all signs; where these are short, a third time towards half of what there was
//! until sum x z <= goal x objective
//! ```
//!
//! Errors of the linear equations are carried along and mended by every step, so that columns may come and go: the equations
//! hold those whose bound is not far from tight.
//!
//! Cost per step, n rows, p columns, m functions: O(n^2 m^2 (p + n m)) and a pass over the design.

mod couples;
mod entries;
mod normal;
mod terms;

use super::certificate::worst_ratio;
use super::engine::{Engine, balance};
use super::rows::{Rows, Term};
use crate::control::{Control, Progress};
use crate::error::Result;
use couples::Couples;
use entries::Entries;
pub(super) use normal::Groups;
use normal::{Normal, reduced, spread_work};
use terms::Terms;

const MOST_STEPS: usize = 60;
/// Most unknowns of the normal equations.
const MOST_UNKNOWNS: usize = 5000;
/// Steps without smaller products after which rounding is taken to be the reason. With a large C products differ by orders of magnitude at
/// first, and the first steps do no more than bring them together.
const PATIENCE: usize = 24;
/// A step shorter than this is made again towards a share of the products there are, without a second order.
const SHORT: f64 = 0.1;
const CENTRED: f64 = 0.5;
/// Steps without smaller products that are enough of them where the gap is this small next to what is asked for.
const WAITED: usize = 3;
const ENOUGH: f64 = 1e-3;
/// A rate that fixes an entry at 0, next to the largest slope the loss can have.
const FORBIDDING: f64 = 1e6;
/// Columns at first, per unknown of the normal equations.
const COLUMNS: usize = 2;
/// Share of its bound above which a column enters, and below which it leaves.
const NEAR: (f64, f64) = (0.8, 0.6);
/// Relative gap below which columns leave.
const SETTLED: f64 = 0.5;
/// Relative gap from which the engine does better to start.
const ARRIVED: f64 = 1e-3;
/// Accuracies, relative to the objective, at which a coefficient next to 0 can be told from others: coarsest and finest.
const GOALS: (f64, f64) = (1e-8, 1e-9);
/// Gap below which points are kept: rounding may take over, and a later one be worse.
const ROUGH: f64 = 1e-5;
/// Growth of the gap that shows it.
const LOST: f64 = 1e3;
/// Slack, relative to the rate, below which a coefficient of 0 may have been taken for one by mistake.
const TIGHT: f64 = 1e-3;

#[derive(Clone)]
struct Inside {
    terms: Terms,
    entries: Entries,
    /// Slots of columns that cost nothing.
    free: Vec<usize>,
}

impl Inside {
    fn couples(&self) -> [&Couples; 4] {
        [&self.terms.pieces, &self.terms.rests, &self.entries.plus, &self.entries.minus]
    }

    fn aim(&mut self, center: f64, bent: f64) {
        self.terms.pieces.aim(center, bent);
        self.terms.rests.aim(center, bent);
        self.entries.plus.aim(center, bent);
        self.entries.minus.aim(center, bent);
    }

    fn count(&self) -> usize {
        self.couples().iter().map(|couples| couples.len()).sum()
    }

    /// Mean product.
    fn center(&self) -> f64 {
        self.couples().iter().map(|couples| couples.product()).sum::<f64>() / self.count().max(1) as f64
    }

    /// Mean product after steps of these lengths.
    fn center_after(&self, (primal, dual): (f64, f64)) -> f64 {
        let sum: f64 = self.couples().iter().map(|couples| couples.product_after(primal, dual)).sum();
        sum / self.count().max(1) as f64
    }

    fn room(&self) -> (f64, f64) {
        let rooms = self.couples().map(|couples| couples.room());
        rooms.into_iter().fold((1.0, 1.0), |(p, d), room| (room.0.min(p), room.1.min(d)))
    }
}

/// A point on the way.
struct Kept {
    gap: f64,
    primal: f64,
    inside: Inside,
    weights: Vec<f64>,
}

impl Kept {
    /// Whether rounding has taken over since: the objective rose by more than the gap left, or the gap by far.
    fn is_lost(&self, gap: f64, primal: f64) -> bool {
        primal > self.primal * (1.0 + self.gap) || gap > LOST * self.gap
    }
}

impl<R: Rows> Engine<'_, R> {
    /// Multiplications of a step, if there is a way to make one.
    pub(super) fn interior_work(&mut self) -> Option<f64> {
        self.rows.terms()?;
        let groups = self.groups.get_or_insert_with(|| Groups::new(&self.columns));
        let (count, size) = (groups.len() as f64, reduced(self.rows.functions()) as f64);
        let unknowns = count * size;
        let most = COLUMNS as f64 * unknowns;
        let work = spread_work(&self.columns, groups, most, self.rows.functions()) + unknowns.powi(3) / 3.0;
        (unknowns <= MOST_UNKNOWNS as f64).then_some(work)
    }

    /// Whether there are fewer columns than rows.
    pub(super) fn is_tall(&self) -> bool {
        self.groups.as_ref().is_some_and(|groups| self.columns.cols() < groups.len())
    }

    /// Goes next to the solution from nowhere. Returns whether it got there; if not, nothing has changed.
    pub(super) fn interior(&mut self, tolerance: f64, control: &Control) -> Result<bool> {
        let (Some(terms), Some(mut groups)) = (self.rows.terms(), self.groups.take()) else { return Ok(false) };
        groups.count(&terms, self.columns.rows(), self.functions());
        let before = self.point();
        let mut inside = self.enter_interior(terms, &groups);
        let gap = self.follow_center(&mut inside, &groups, tolerance, control);
        self.groups = Some(groups);
        let found = gap? < ARRIVED;
        if found {
            self.leave_interior(&inside);
        } else {
            self.go_to(&before);
        }
        Ok(found)
    }

    /// Steps to a relative gap well below a tolerance; returns that reached.
    fn follow_center(
        &mut self,
        inside: &mut Inside,
        groups: &Groups,
        tolerance: f64,
        control: &Control,
    ) -> Result<f64> {
        let m = self.functions();
        let goal = (0.01 * tolerance).clamp(GOALS.1, GOALS.0);
        let (mut gap, mut least, mut waited) = (f64::INFINITY, f64::INFINITY, 0);
        let mut best: Option<Kept> = None;
        for step in 0..MOST_STEPS {
            control.check()?;
            let pulled = self.look_inside(inside, gap);
            let center = inside.center();
            let primal = self.primal();
            gap = center * inside.count() as f64 / primal;
            control.report(Progress { stage: "l1 interior", step, objective: primal * self.unit, gap });
            waited = if center < 0.9 * least { 0 } else { waited + 1 };
            least = least.min(center);
            if !gap.is_finite() {
                return Ok(f64::INFINITY);
            }
            if best.as_ref().is_some_and(|best| best.is_lost(gap, primal)) {
                break;
            }
            if gap < ROUGH && best.as_ref().is_none_or(|best| gap < best.gap) {
                best = Some(Kept { gap, primal, inside: inside.clone(), weights: self.weights.clone() });
            }
            let patience = if gap <= (ENOUGH * tolerance).min(ROUGH) { WAITED } else { PATIENCE };
            if gap <= goal || waited > patience || control.out_of_time() {
                break;
            }
            let Some(normal) = Normal::new(&self.columns, groups, &inside.terms, &inside.entries, &inside.free, m)
            else {
                break;
            };
            inside.aim(0.0, 0.0);
            self.direction(inside, &normal, groups, &pulled);
            let room = inside.room();
            let reached = inside.center_after(room);
            inside.aim(center * (reached / center).powi(3), room.0 * room.1);
            let mut free = self.direction(inside, &normal, groups, &pulled);
            let (mut primal, mut dual) = inside.room();
            if primal.min(dual) < SHORT {
                inside.aim(CENTRED * center, 0.0);
                free = self.direction(inside, &normal, groups, &pulled);
                (primal, dual) = inside.room();
            }
            inside.terms.advance(primal, dual);
            inside.entries.advance(primal, dual);
            for (&slot, steps) in inside.free.iter().zip(free.chunks_exact(m)) {
                for (function, by) in steps.iter().enumerate() {
                    self.weights[slot * m + function] += primal * by;
                }
            }
        }
        if let Some(best) = best {
            (gap, *inside) = (best.gap, best.inside);
            self.weights[..best.weights.len()].copy_from_slice(&best.weights);
        }
        Ok(gap)
    }

    /// f = 0, V a share of what is in the middle of the rows' sets, and the columns whose bounds are nearest to tight.
    fn enter_interior(&mut self, terms: Vec<Term>, groups: &Groups) -> Inside {
        let (m, n, d) = (self.functions(), self.columns.rows(), self.columns.cols());
        self.weights.fill(0.0);
        let middle = Terms::new(terms.clone(), 1.0, n, m);
        let pulled = self.columns.pull(&middle.v(), m);
        let ratios: Vec<f64> = (0..d).map(|column| self.ratio_of(&pulled, column, 0.0)).collect();
        let mut usable: Vec<usize> = (0..d).filter(|&column| self.is_priced(column)).collect();
        usable.sort_by(|&a, &b| ratios[b].total_cmp(&ratios[a]));
        let worst = usable.first().map_or(0.0, |&column| ratios[column]);
        usable.truncate(COLUMNS * groups.len() * reduced(m));
        usable.sort_unstable();
        self.enter(&usable);
        let share = (0.5 / worst).min(1.0);
        let terms = Terms::new(terms, share, n, m);
        let center = terms.pieces.product() / terms.pieces.len().max(1) as f64;
        let mut entries = Entries::new(m);
        let members = self.columns.members();
        let (mut rates, mut g) = (vec![0.0; m], vec![0.0; m]);
        for slot in (0..members.len()).filter(|&slot| self.is_priced(members[slot])) {
            for function in 0..m {
                rates[function] = self.price(members[slot], function);
                g[function] = share * pulled[function * d + members[slot]];
            }
            entries.push(slot, &rates, &g, center);
        }
        let costless = |slot: &usize| (0..m).all(|function| self.rate(members[*slot], function) == 0.0);
        let free = (0..members.len()).filter(costless).collect();
        Inside { terms, entries, free }
    }

    /// Whether a column costs something and may be used: all rates are positive, and finite but for those of entries that are fixed at 0,
    /// next to two others at least, whose sum is 0.
    fn is_priced(&self, column: usize) -> bool {
        let m = self.functions();
        let rates = || (0..m).map(|function| self.rate(column, function));
        rates().all(|rate| rate > 0.0) && rates().filter(|rate| *rate < f64::INFINITY).count() >= m.min(2)
    }

    /// The rate of an entry, one that fixes it at 0 as a number next to which all else is nothing.
    fn price(&self, column: usize, function: usize) -> f64 {
        match self.rate(column, function) {
            f64::INFINITY => FORBIDDING * self.columns.rows() as f64 * self.rows.largest_cap(),
            rate => rate,
        }
    }

    /// Notes the errors of all equations, after columns have come and gone. Returns x'V of the working set.
    fn look_inside(&mut self, inside: &mut Inside, gap: f64) -> Vec<f64> {
        let (m, d) = (self.functions(), self.columns.cols());
        let v = inside.terms.v();
        let center = inside.center();
        if self.columns.len() < d {
            let pulled = self.columns.pull(&v, m);
            let near =
                |column: &usize| !self.columns.contains(*column) && self.ratio_of(&pulled, *column, 0.0) > NEAR.0;
            let near: Vec<usize> = (0..d).filter(|column| near(column) && self.is_priced(*column)).collect();
            self.enter(&near);
        }
        let pulled = self.columns.dots(&v, m);
        let members = self.columns.members();
        let ratio = |slot: usize| {
            worst_ratio(m, 0.0, |function| (pulled[slot * m + function], self.rate(members[slot], function)))
        };
        if gap < SETTLED {
            inside.entries.retain(|slot| ratio(slot) > NEAR.1);
        }
        let mut within = vec![false; members.len()];
        inside.entries.slots.iter().for_each(|&slot| within[slot] = true);
        let (mut rates, mut g) = (vec![0.0; m], vec![0.0; m]);
        for slot in (0..members.len()).filter(|&slot| !within[slot] && self.is_priced(members[slot])) {
            if ratio(slot) > NEAR.0 {
                for function in 0..m {
                    rates[function] = self.price(members[slot], function);
                    g[function] = pulled[slot * m + function];
                }
                inside.entries.push(slot, &rates, &g, center);
            }
        }
        let free: Vec<(usize, Vec<f64>)> =
            inside.free.iter().map(|&slot| (slot, self.weights[slot * m..(slot + 1) * m].to_vec())).collect();
        self.weights.fill(0.0);
        for (slot, weights) in free {
            self.weights[slot * m..(slot + 1) * m].copy_from_slice(&weights);
        }
        for (place, &slot) in inside.entries.slots.iter().enumerate() {
            for function in 0..m {
                let forbidden = self.rate(self.columns.members()[slot], function) == f64::INFINITY;
                self.weights[slot * m + function] =
                    if forbidden { 0.0 } else { inside.entries.at(place * m + function) };
            }
        }
        self.refresh();
        inside.terms.look(&self.decision);
        inside.entries.look(&pulled);
        pulled
    }

    /// The direction to the targets; returns the steps of the free columns, m each.
    fn direction(&self, inside: &mut Inside, normal: &Normal, groups: &Groups, pulled: &[f64]) -> Vec<f64> {
        let (m, n) = (self.functions(), self.columns.rows());
        let size = reduced(m);
        let constant = inside.terms.constant();
        inside.entries.follow(&vec![0.0; self.columns.len() * m], m);
        let moved = self.image(inside, &[]);
        let lack = self.lack(inside, pulled, m);
        let mut step = normal.solve(constant, &moved, &lack);
        // the last function's change of G counts as 0: only differences matter
        let mut changes = self.columns.dots(&normal.spread(&step), size);
        inside.entries.follow(&changes, size);
        let moved = self.image(inside, &whole(&step.free, m));
        let still = self.lack(inside, &changes, size);
        let left: Vec<f64> = lack.iter().zip(still).map(|(lack, change)| lack + change).collect();
        normal.refine(&mut step, &moved, &left);
        let mut dv = normal.spread(&step);
        changes = self.columns.dots(&dv, size);
        inside.entries.follow(&changes, size);
        if m > 1 {
            let mean = |row: usize| (0..size).map(|function| dv[function * n + row]).sum::<f64>() / m as f64;
            let means: Vec<f64> = (0..n).map(mean).collect();
            dv.iter_mut().enumerate().for_each(|(at, v)| *v -= means[at % n]);
            dv.extend(means.iter().map(|mean| -mean));
        }
        inside.terms.follow(&dv, &normal.change(&step), groups.alone());
        whole(&step.free, m)
    }

    /// N'G of the columns that cost nothing; G slot-major with that many functions: all, or N'G itself.
    fn lack(&self, inside: &Inside, pulled: &[f64], given: usize) -> Vec<f64> {
        let m = self.functions();
        let last = |slot: usize| if m > 1 && given == m { pulled[slot * m + m - 1] } else { 0.0 };
        let entries = inside.free.iter().flat_map(|&slot| (0..reduced(m)).map(move |function| (slot, function)));
        entries.map(|(slot, function)| pulled[slot * given + function] - last(slot)).collect()
    }

    /// What the steps of the coefficients move f by.
    fn image(&self, inside: &Inside, free: &[f64]) -> Vec<f64> {
        let m = self.functions();
        let mut coefficients = vec![0.0; self.weights.len()];
        for (place, &slot) in inside.entries.slots.iter().enumerate() {
            for function in 0..m {
                coefficients[slot * m + function] = inside.entries.step(place * m + function);
            }
        }
        for (&slot, steps) in inside.free.iter().zip(free.chunks_exact(m)) {
            coefficients[slot * m..(slot + 1) * m].copy_from_slice(steps);
        }
        let mut out = vec![0.0; self.decision.len()];
        self.columns.multiply_add(&coefficients, m, &mut out);
        out
    }

    /// Takes point and multipliers over, coefficients that are next to 0 as 0.
    fn leave_interior(&mut self, inside: &Inside) {
        let m = self.functions();
        let largest = inside.entries.largest();
        let mut keep: Vec<bool> = self.columns.members().iter().map(|&column| !self.is_priced(column)).collect();
        for (place, &slot) in inside.entries.slots.iter().enumerate() {
            keep[slot] = (0..m).any(|function| inside.entries.slack(place * m + function) < TIGHT);
            for function in 0..m {
                let entry = place * m + function;
                let used = inside.entries.is_used(entry, largest) && self.weights[slot * m + function] != 0.0;
                self.weights[slot * m + function] = if used { inside.entries.at(entry) } else { 0.0 };
            }
            let weights = &mut self.weights[slot * m..(slot + 1) * m];
            balance(weights);
            keep[slot] |= weights.iter().any(|w| *w != 0.0);
        }
        self.multipliers = inside.terms.v();
        self.rows.admit(&mut self.multipliers);
        self.gram.clear();
        self.keep(&keep);
        self.refresh();
    }
}

/// All m entries of columns given by the first m - 1.
fn whole(steps: &[f64], functions: usize) -> Vec<f64> {
    if functions == 1 {
        return steps.to_vec();
    }
    let last = |steps: &[f64]| -steps.iter().sum::<f64>();
    steps.chunks_exact(functions - 1).flat_map(|steps| steps.iter().copied().chain([last(steps)])).collect()
}
