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

/// q this close to a bound or knot, as a share of the row's total, is at it.
pub(super) const TINY: f64 = 1e-12;

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

    /// By how much a row's best move gains, given the multipliers.
    pub(super) fn violation(&self, row: usize, intercepts: &[f64]) -> f64 {
        let (mut best, mut worst) = (f64::NEG_INFINITY, f64::INFINITY);
        for class in 0..self.classes {
            best = best.max(self.raise(row, class) + intercepts[class]);
            if self.q[row * self.classes + class] > 0.0 {
                worst = worst.min(self.lower(row, class) + intercepts[class]);
            }
        }
        best - worst
    }

    pub(super) fn gains(&self) -> Gains {
        let k = self.classes;
        let mut gains = Gains { classes: k, value: vec![f64::NEG_INFINITY; k * k], row: vec![0; k * k] };
        let mut raise = vec![0.0; k];
        for row in (0..self.rows()).filter(|&row| self.total[row] > 0.0) {
            raise.iter_mut().enumerate().for_each(|(class, raise)| *raise = self.raise(row, class));
            for from in 0..k {
                if self.q[row * k + from] > 0.0 {
                    let lower = self.lower(row, from);
                    let (values, rows) = (&mut gains.value[from * k..][..k], &mut gains.row[from * k..][..k]);
                    for to in 0..k {
                        if raise[to] - lower > values[to] && to != from {
                            values[to] = raise[to] - lower;
                            rows[to] = row as u32;
                        }
                    }
                }
            }
        }
        gains
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
