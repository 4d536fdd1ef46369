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
use crate::linalg::Isa;

/// q this close to a bound or knot, as a share of the row's total, is at it.
pub(super) const TINY: f64 = 1e-12;

/// Some rows of the problem.
pub(super) struct Sheet {
    pub(super) isa: Isa,
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
    /// Then that class of each row.
    pub(super) own: Vec<u32>,
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

    /// raise_to - lower_from, for a row with mass in `from`.
    #[inline(always)]
    pub(super) fn gain(&self, row: usize, from: usize, to: usize) -> f64 {
        if !self.straight {
            return self.raise(row, to) - self.lower(row, from);
        }
        let slope = |class: usize| f64::from(u8::from(self.own[row] as usize == class));
        self.score(row, to) - slope(to) - (self.score(row, from) - slope(from))
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
        // SAFETY: the instruction set was detected.
        unsafe {
            match self.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => add_column_avx512(&mut self.h, self.classes, from, to, column),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => add_column_avx2(&mut self.h, self.classes, from, to, column),
                _ => add_column(&mut self.h, self.classes, from, to, column),
            }
        }
    }

    /// h of a class, panel by panel.
    #[inline(always)]
    pub(super) fn column(&mut self, class: usize) -> impl Iterator<Item = &mut [f64]> {
        self.h.chunks_exact_mut(self.classes * PANEL).map(move |panel| &mut panel[class * PANEL..][..PANEL])
    }

    /// h_class += column
    pub(super) fn add_to_class(&mut self, class: usize, column: &[f64]) {
        for (h, column) in self.column(class).zip(column.chunks(PANEL)) {
            h.iter_mut().zip(column).for_each(|(h, value)| *h += value);
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

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
fn add_column_avx512(h: &mut [f64], classes: usize, from: usize, to: usize, column: &[f64]) {
    add_column(h, classes, from, to, column);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn add_column_avx2(h: &mut [f64], classes: usize, from: usize, to: usize, column: &[f64]) {
    add_column(h, classes, from, to, column);
}

#[inline(always)]
fn add_column(h: &mut [f64], classes: usize, from: usize, to: usize, column: &[f64]) {
    for (number, column) in column.chunks(PANEL).enumerate() {
        let panel = &mut h[number * classes * PANEL..][..classes * PANEL];
        for (class, sign) in [(from, 1.0), (to, -1.0)] {
            let h = &mut panel[class * PANEL..][..column.len()];
            for lane in 0..column.len() {
                h[lane] += sign * column[lane];
            }
        }
    }
}
