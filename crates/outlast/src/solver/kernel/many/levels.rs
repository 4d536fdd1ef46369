//! Level 0: working sets of all rows.
//!
//! A = all free rows + the worst violators + the rows that may soon be (they fall short by less than the violation), solved on a dense K_AA to a part of the violation ([`arena`](super::arena)); then
//! h += K[:, changed] dV for the rows that changed net, all classes in one pass over the rows.

use super::super::super::Options;
use super::super::super::majorize::Step;
use super::super::super::tiles::{Aligned, PANEL};
use super::super::gram::place;
use super::super::outer::{self, Outer, Standing};
use super::arena::Arena;
use super::joint::{Joint, Measure};
use super::matrix::{Double, Single};
use super::sheet::Sheet;
use crate::control::Control;
use crate::error::Result;
use rayon::prelude::*;
use std::sync::Mutex;

/// Rows, and rows times classes, up to which the matrix is taken in double precision.
const FEW_ROWS: usize = 1500;
const FEW_VALUES: usize = 4500;

/// The stage of the untruncated problem.
const START: &str = "hinge";

/// A working set is solved to this share of the violation.
const SHARE: f64 = 0.1;

/// Below this gap a round leaves the share of the gap that it leaves of the violation, and about as many rows move as in the
/// round before.
const LATE: f64 = 0.03;

/// Where such a round can reach the tolerance by up to this much more, it aims there: another round would cost more. Not so
/// where rows turn at knots.
const REACH: f64 = 0.25;

/// The share of moving rows beyond which the matrix is computed in one go: a value then costs less than half.
const MOST: f64 = 0.8;

/// Rounds in double precision that may pass before the gap has halved.
const PATIENCE: usize = 8;

/// What a solve may spend, and its scratch space.
pub(super) struct Solver<'o> {
    /// Most rows of A.
    largest: usize,
    options: &'o Options,
    pub(super) stage: &'static str,
    /// Whether a working set has been solved: then few rows of the next will move.
    warm: bool,
    /// The share of the rows of a working set that moved, in the last round that tells of the next.
    moving: f64,
    kernel: Aligned,
    buffers: Mutex<Vec<Aligned>>,
}

impl<'o> Solver<'o> {
    pub(super) fn new(largest: usize, options: &'o Options) -> Solver<'o> {
        Solver {
            largest,
            options,
            stage: START,
            warm: false,
            moving: 0.0,
            kernel: Aligned::default(),
            buffers: Mutex::new(Vec::new()),
        }
    }

    /// Minimises to a relative gap, from the current state.
    pub(super) fn solve(&mut self, joint: &mut Joint, tolerance: f64, control: &Control) -> Result<Step> {
        let (options, stage) = (self.options, self.stage);
        outer::run(&mut Level { solver: self, joint }, tolerance, options, stage, control)
    }

    /// The rows of A, those of a class together.
    fn choose(&self, joint: &Joint, measure: &Measure, outer: usize) -> Vec<u32> {
        let sheet = &joint.sheet;
        let rows = sheet.rows();
        let k = sheet.classes;
        let (mut free, mut violators) = (Vec::new(), Vec::new());
        let cold = outer == 0 && measure.violation >= 1.0;
        let mut state = self.options.seed ^ 0x9e37_79b9_7f4a_7c15;
        let look = |row: usize| match sheet.total[row] > 0.0 {
            true => (sheet.violation(row, &measure.intercepts), sheet.interior(row) > 1),
            false => (f64::NEG_INFINITY, false),
        };
        let looks: Vec<(f64, bool)> = (0..rows).into_par_iter().with_min_len(512).map(look).collect();
        for (row, (violation, inside)) in looks.into_iter().enumerate() {
            if inside {
                free.push((violation, row as u32));
            } else if violation > -measure.violation {
                // at a cold start every row violates alike
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                violators.push((if cold { (state >> 40) as f64 } else { violation }, row as u32));
            }
        }
        let size = self.usual(joint).max(free.len() + free.len() / 2).min(self.largest).min(rows);
        let most = |list: &mut Vec<(f64, u32)>, count: usize| {
            if list.len() > count {
                list.select_nth_unstable_by(count, |a, b| b.0.total_cmp(&a.0));
                list.truncate(count);
            }
        };
        most(&mut free, size * 3 / 4);
        most(&mut violators, size - free.len());
        let mut set: Vec<u32> = free.into_iter().chain(violators).map(|entry| entry.1).collect();
        let class = |row: u32| {
            let q = sheet.of(&sheet.q, row as usize);
            (0..k).fold(0, |best, class| if q[class] > q[best] { class } else { best })
        };
        set.sort_by_cached_key(|&row| (class(row), row));
        set
    }

    /// Rows of A, unless more are free.
    fn usual(&self, joint: &Joint) -> usize {
        if joint.gram.keeps_rows() { 2048 } else { 4096.max(joint.rows() / 7) }
    }

    fn improve(
        &mut self,
        joint: &mut Joint,
        measure: &Measure,
        tolerance: f64,
        outer: usize,
        control: &Control,
    ) -> Result<()> {
        let rows = self.choose(joint, measure, outer);
        let cold = !std::mem::replace(&mut self.warm, true);
        // gap and violation fall together: aim below the violation at which the gap will do
        let late = measure.relative_gap() < LATE;
        let enough = 0.3 * (tolerance / measure.relative_gap()).min(1.0);
        let reach = if late && joint.sheet.straight { REACH } else { 1.0 };
        let eps = measure.violation * if enough > reach * SHARE { enough } else { SHARE };
        let packed = joint.gram.pack(&rows, 0);
        if cold {
            // at once for larger sets to come, which would need new pages else
            let most = self.usual(joint).min(self.largest).min(joint.rows()).next_multiple_of(PANEL);
            self.kernel.reserve(most * most);
        }
        let mut part = part(joint, &rows, packed.padded());
        let old: Vec<f64> = part.q.clone();
        let at_once = cold || (outer > 0 || late) && self.moving > MOST;
        let matrix = Single::new(&joint.gram, &packed, at_once, &mut self.kernel, &self.buffers);
        Arena::new(&mut part, matrix, joint.balanced).solve(eps, control)?;
        let k = joint.sheet.classes;
        let (mut changed, mut before) = (Vec::new(), Vec::new());
        for (at, &row) in rows.iter().enumerate() {
            let (new, old) = (&part.q[at * k..(at + 1) * k], &old[at * k..(at + 1) * k]);
            if new != old {
                let row = row as usize;
                before.extend((0..k).map(|class| joint.v(row, class)));
                joint.sheet.q[row * k..(row + 1) * k].copy_from_slice(new);
                changed.push(row as u32);
            }
        }
        if cold || outer > 0 || late {
            self.moving = changed.len() as f64 / rows.len().max(1) as f64;
        }
        joint.moved(&changed, &before);
        Ok(())
    }
}

/// The sheet of some rows.
fn part(joint: &Joint, rows: &[u32], padded: usize) -> Sheet {
    let sheet = &joint.sheet;
    let k = sheet.classes;
    let take =
        |from: &[f64]| -> Vec<f64> { rows.iter().flat_map(|&row| sheet.of(from, row as usize)).copied().collect() };
    let mut h = vec![0.0; padded.next_multiple_of(PANEL) * k];
    for (at, &row) in rows.iter().enumerate() {
        for class in 0..k {
            h[place(k, at, class)] = sheet.score(row as usize, class);
        }
    }
    Sheet {
        isa: sheet.isa,
        classes: k,
        total: rows.iter().map(|&row| sheet.total[row as usize]).collect(),
        knots: take(&sheet.knots),
        q: take(&sheet.q),
        h,
        straight: sheet.straight,
        own: rows.iter().map(|&row| sheet.own[row as usize]).collect(),
    }
}

/// The solver with its dual, as the outer loop sees them.
struct Level<'s, 'o, 'd, 'a> {
    solver: &'s mut Solver<'o>,
    joint: &'d mut Joint<'a>,
}

impl Outer for Level<'_, '_, '_, '_> {
    type Measure = Measure;

    fn measure(&mut self) -> Measure {
        self.joint.measure()
    }

    fn standing(&self, measure: &Measure) -> Standing {
        let unit = self.joint.gram.unit();
        Standing { gap: measure.gap, primal: measure.primal, violation: measure.violation, unit }
    }

    fn check(&self) -> Result<()> {
        self.joint.gram.check()
    }

    fn improve(&mut self, measure: &Measure, tolerance: f64, outer: usize, control: &Control) -> Result<()> {
        self.solver.improve(self.joint, measure, tolerance, outer, control)
    }

    fn refresh(&mut self) {
        self.joint.refresh();
    }

    /// Errors of different rows are independent, and enter the gap times V: their sum is that of a random walk, taken four
    /// times as large.
    fn error_matters(&self, measure: &Measure, tolerance: f64) -> bool {
        let joint = &self.joint;
        let k = joint.sheet.classes;
        let squares: f64 = (0..joint.rows())
            .flat_map(|row| (0..k).map(move |class| (row, class)))
            .map(|(row, class)| joint.v(row, class).powi(2))
            .sum();
        let size = 4.0 * squares.sqrt();
        let allowed = tolerance * measure.primal.abs();
        joint.gram.value_error() * size * size > 0.1 * allowed && size * joint.score_error() > allowed
    }

    fn has_few_rows(&self) -> bool {
        self.joint.rows() <= FEW_ROWS && self.joint.rows() * self.joint.sheet.classes <= FEW_VALUES
    }

    fn finish_in_double(&mut self, tolerance: f64, control: &Control) -> Result<()> {
        let joint = &mut *self.joint;
        let size = joint.rows();
        let mut matrix = Double { kernel: joint.gram.double(size), size };
        let (mut best, mut since) = (f64::INFINITY, 0);
        let mut eps = joint.measure().violation;
        while since < PATIENCE && !control.out_of_time() {
            eps *= 0.1;
            let mut arena = Arena::new(&mut joint.sheet, matrix, joint.balanced);
            let moved = arena.solve(eps, control)?;
            matrix = arena.matrix;
            let measure = joint.measure();
            if measure.relative_gap() <= 0.5 * tolerance || !moved && !(measure.violation > eps) && since > 2 {
                break;
            }
            since = if measure.gap < 0.5 * best { 0 } else { since + 1 };
            best = best.min(measure.gap);
            eps = eps.min(measure.violation);
        }
        joint.refresh();
        Ok(())
    }
}
