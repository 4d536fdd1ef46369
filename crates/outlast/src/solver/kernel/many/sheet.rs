//! Rows x classes: the dual variables q, the scores they see, and what moving them gains.
//!
//! Moving mass of row i from class a to class b changes the dual objective at the rate -(raise_b - lower_a), where
//!
//! ```text
//! raise_j = h_j - [q_j >= knot_j],      lower_j = h_j - [q_j > knot_j]      (for q_j > 0)
//! ```
//!
//! With multipliers b of the column sums a row is optimal when no raise_j + b_j exceeds a lower_j + b_j of its mass.

use super::super::super::tiles::PANEL;
use super::super::gram::place;
use rayon::prelude::*;
use std::ops::Range;

/// q this close to a bound or knot, as a share of the row's total, is at it.
pub(super) const TINY: f64 = 1e-12;

/// Rows times classes from which gains are worth a second thread.
const WORTH: usize = 1 << 15;

/// Some rows of the problem.
pub(super) struct Sheet {
    pub(super) classes: usize,
    /// Sum of q over a row.
    pub(super) total: Vec<f64>,
    /// Rows x classes.
    pub(super) knots: Vec<f64>,
    /// Rows x classes, each row in total x simplex.
    pub(super) q: Vec<f64>,
    /// K V, in panels (see [`place`]).
    pub(super) h: Vec<f64>,
    /// Whether the knots of every row are 0 for one class and the total for the others: then slopes never change.
    pub(super) straight: bool,
}

/// For each ordered pair of classes (a, b), the largest gain of a move from a to b, and the row that has it.
#[derive(Debug, Clone)]
pub(super) struct Gains {
    pub(super) classes: usize,
    /// -infinity where no row has mass in a.
    pub(super) value: Vec<f64>,
    pub(super) row: Vec<u32>,
}

impl Gains {
    pub(super) fn get(&self, from: usize, to: usize) -> f64 {
        self.value[from * self.classes + to]
    }

    /// The largest gain of a single move.
    pub(super) fn largest(&self) -> f64 {
        self.value.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

impl Sheet {
    pub(super) fn rows(&self) -> usize {
        self.total.len()
    }

    /// The k entries of a row in a row-major matrix.
    #[inline(always)]
    pub(super) fn of<'v>(&self, values: &'v [f64], row: usize) -> &'v [f64] {
        &values[row * self.classes..(row + 1) * self.classes]
    }

    #[inline(always)]
    pub(super) fn score(&self, row: usize, class: usize) -> f64 {
        self.h[place(self.classes, row, class)]
    }

    #[inline(always)]
    pub(super) fn raise(&self, row: usize, class: usize) -> f64 {
        let at = row * self.classes + class;
        let above = self.q[at] >= self.knots[at] - TINY * self.total[row];
        self.score(row, class) - f64::from(u8::from(above))
    }

    #[inline(always)]
    pub(super) fn lower(&self, row: usize, class: usize) -> f64 {
        let at = row * self.classes + class;
        let above = self.q[at] > self.knots[at] + TINY * self.total[row];
        self.score(row, class) - f64::from(u8::from(above))
    }

    /// Classes in which a row's q can move both ways at one rate.
    pub(super) fn interior(&self, row: usize) -> usize {
        let tiny = TINY * self.total[row];
        let inside = |(q, knot): (&f64, &f64)| *q > tiny && (q - knot).abs() > tiny;
        self.of(&self.q, row).iter().zip(self.of(&self.knots, row)).filter(|pair| inside(*pair)).count()
    }

    /// By how much a row's best move gains, given the multipliers: negative where every move loses.
    pub(super) fn violation(&self, row: usize, intercepts: &[f64]) -> f64 {
        // the two best classes to go to and the two best to come from: one may be both
        let (mut to, mut from) = ([(f64::NEG_INFINITY, usize::MAX); 2], [(f64::INFINITY, usize::MAX); 2]);
        for class in 0..self.classes {
            let raise = self.raise(row, class) + intercepts[class];
            if raise > to[0].0 {
                to = [(raise, class), to[0]];
            } else if raise > to[1].0 {
                to[1] = (raise, class);
            }
            if self.q[row * self.classes + class] > 0.0 {
                let lower = self.lower(row, class) + intercepts[class];
                if lower < from[0].0 {
                    from = [(lower, class), from[0]];
                } else if lower < from[1].0 {
                    from[1] = (lower, class);
                }
            }
        }
        if to[0].1 != from[0].1 {
            return to[0].0 - from[0].0;
        }
        (to[1].0 - from[0].0).max(to[0].0 - from[1].0)
    }

    pub(super) fn gains(&self) -> Gains {
        let k = self.classes;
        let mut gains = Gains { classes: k, value: vec![f64::NEG_INFINITY; k * k], row: vec![0; k * k] };
        self.update_gains(&mut gains, &vec![true; k]);
        gains
    }

    /// Brings gains up to date after only some classes' q and h changed.
    pub(super) fn update_gains(&self, gains: &mut Gains, changed: &[bool]) {
        let k = self.classes;
        for from in 0..k {
            for to in (0..k).filter(|&to| changed[from] || changed[to]) {
                gains.value[from * k + to] = f64::NEG_INFINITY;
            }
        }
        let classes: Vec<usize> = (0..k).filter(|&class| changed[class]).collect();
        if self.rows() * classes.len() < WORTH {
            return self.add_gains(gains, changed, &classes, 0..self.rows());
        }
        let piece = self.rows().div_ceil(rayon::current_num_threads()).max(1);
        let starts: Vec<usize> = (0..self.rows()).step_by(piece).collect();
        let parts: Vec<Gains> = starts
            .into_par_iter()
            .map(|start| {
                let mut part = gains.clone();
                self.add_gains(&mut part, changed, &classes, start..(start + piece).min(self.rows()));
                part
            })
            .collect();
        for part in parts {
            for at in 0..k * k {
                if part.value[at] > gains.value[at] {
                    (gains.value[at], gains.row[at]) = (part.value[at], part.row[at]);
                }
            }
        }
    }

    /// Takes the moves from or to changed classes in some rows into account.
    fn add_gains(&self, gains: &mut Gains, changed: &[bool], classes: &[usize], rows: Range<usize>) {
        let k = self.classes;
        let mut raise = vec![0.0; k];
        let mut sources = Vec::with_capacity(k);
        for row in rows {
            let total = self.total[row];
            if total == 0.0 {
                continue;
            }
            let (q, knots) = (self.of(&self.q, row), self.of(&self.knots, row));
            let h = &self.h[place(k, row, 0)..];
            let tiny = TINY * total;
            let raise_of = |class: usize| h[class * PANEL] - f64::from(u8::from(q[class] >= knots[class] - tiny));
            sources.clear();
            sources.extend((0..k).filter(|&class| q[class] > 0.0));
            if sources.iter().any(|&class| changed[class]) {
                (0..k).for_each(|class| raise[class] = raise_of(class));
            } else {
                classes.iter().for_each(|&class| raise[class] = raise_of(class));
            }
            for &from in &sources {
                let lower = h[from * PANEL] - f64::from(u8::from(q[from] > knots[from] + tiny));
                let (values, rows) = (&mut gains.value[from * k..][..k], &mut gains.row[from * k..][..k]);
                let mut take = |to: usize| {
                    if raise[to] - lower > values[to] && to != from {
                        values[to] = raise[to] - lower;
                        rows[to] = row as u32;
                    }
                };
                match changed[from] {
                    true => (0..k).for_each(&mut take),
                    false => classes.iter().copied().for_each(&mut take),
                }
            }
        }
    }

    /// For each class, the rows with mass in it.
    pub(super) fn members(&self) -> Vec<Vec<u32>> {
        let mut members = vec![Vec::new(); self.classes];
        for (row, q) in self.q.chunks_exact(self.classes).enumerate() {
            q.iter().zip(&mut members).filter(|(q, _)| **q > 0.0).for_each(|(_, list)| list.push(row as u32));
        }
        members
    }

    /// How far a move from one class to another can go in a row before its rate changes.
    pub(super) fn room(&self, row: usize, from: usize, to: usize) -> f64 {
        let at = |class: usize| row * self.classes + class;
        let tiny = TINY * self.total[row];
        let (q, knot) = (self.q[at(from)], self.knots[at(from)]);
        let down = if q > knot + tiny { q - knot } else { q };
        let (q, knot) = (self.q[at(to)], self.knots[at(to)]);
        if q >= knot - tiny { down } else { down.min(knot - q) }
    }

    /// Moves mass; entries next to a bound or knot are put on it.
    pub(super) fn shift(&mut self, row: usize, from: usize, to: usize, mass: f64) {
        let tiny = TINY * self.total[row];
        for (class, change) in [(from, -mass), (to, mass)] {
            let at = row * self.classes + class;
            self.q[at] = snap(self.q[at] + change, self.knots[at], tiny);
        }
    }

    /// h_from += column, h_to -= column
    pub(super) fn add_column(&mut self, from: usize, to: usize, column: &[f64]) {
        let k = self.classes;
        for (panel, column) in self.h.chunks_exact_mut(k * PANEL).zip(column.chunks(PANEL)) {
            for (lane, value) in column.iter().enumerate() {
                panel[from * PANEL + lane] += value;
                panel[to * PANEL + lane] -= value;
            }
        }
    }

    /// h_class += column
    pub(super) fn add_to_class(&mut self, class: usize, column: &[f64]) {
        let size = self.classes * PANEL;
        for (panel, column) in self.h.chunks_exact_mut(size).zip(column.chunks(PANEL)) {
            panel[class * PANEL..].iter_mut().zip(column).for_each(|(h, value)| *h += value);
        }
    }

    /// What a row adds to the duality gap: the largest q.f - sum [q - knot]_+ over its simplex, less that of its q.
    pub(super) fn row_gap(&self, row: usize, intercepts: &[f64], cost_form: bool) -> f64 {
        let k = self.classes;
        let f = |class: usize| self.score(row, class) + intercepts[class];
        let (mut first, mut second, mut top) = (f64::NEG_INFINITY, f64::NEG_INFINITY, 0);
        for class in 0..k {
            let value = f(class);
            if value > first {
                (first, second, top) = (value, first, class);
            } else if value > second {
                second = value;
            }
        }
        let total = self.total[row];
        let (q, knots) = (self.of(&self.q, row), self.of(&self.knots, row));
        // both sides relative to total x the largest f
        let own: f64 = (0..k)
            .filter(|&class| q[class] > 0.0)
            .map(|class| q[class] * (f(class) - first) - (q[class] - knots[class]).max(0.0))
            .sum();
        let best: f64 = match cost_form {
            // each class takes its knot at f_j or, where that is better, at the largest f less 1
            true => (0..k).map(|class| knots[class] * (f(class) - first).max(-1.0)).sum(),
            // all goes to the largest, but for what exceeds its knot
            false => -(total - knots[top]).max(0.0) * (first - second).min(1.0),
        };
        best - own
    }

    /// sum_j [q_j - knot_j]_+ of a row.
    pub(super) fn excess(&self, row: usize) -> f64 {
        self.of(&self.q, row).iter().zip(self.of(&self.knots, row)).map(|(q, knot)| (q - knot).max(0.0)).sum()
    }
}

/// q, or the bound or knot next to it.
#[inline(always)]
pub(super) fn snap(q: f64, knot: f64, tiny: f64) -> f64 {
    if q <= tiny {
        0.0
    } else if (q - knot).abs() <= tiny {
        knot
    } else {
        q
    }
}
