//! The dual problem and the state of its solution.
//!
//! ```text
//! min 1/2 b'K b + q'b,   lower <= b <= upper,   sum b fixed (if the intercept is free),        F = K b + q
//! ```
//!
//! For the support vector machine b_i = y_i alpha_i and q = -y: the labels disappear from the solver, and any box works.
//! With r = -(F + intercept), the primal of row i is max(lower r, upper r) and the duality gap is the sum over rows of
//! max(lower r, upper r) - b r, each >= 0: O(n) from F, so it can be the stopping rule.
//!
//! Without an intercept the sum is free. That case is reduced to the other by one more row, *the anchor*, whose kernel
//! values are all 0 and whose box is unbounded: it takes up whatever the others leave, and its F is always 0.

use super::gram::Gram;
use crate::error::Result;

pub(crate) struct Dual<'a> {
    pub(crate) gram: Gram<'a>,
    /// q
    pub(crate) linear: Vec<f64>,
    pub(crate) beta: Vec<f64>,
    /// F, padded to whole panels
    pub(crate) gradient: Vec<f64>,
    pub(crate) lower: Vec<f64>,
    pub(crate) upper: Vec<f64>,
    /// Whether sum b is fixed; else there is an anchor.
    pub(crate) balanced: bool,
}

/// Where a state stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measure {
    /// min F over rows that can rise (the anchor included)
    pub(crate) lowest: f64,
    /// max F over rows that can fall
    pub(crate) highest: f64,
    /// Rows strictly inside their box.
    pub(crate) free: usize,
    /// primal - dual
    pub(crate) gap: f64,
    /// value of the primal problem
    pub(crate) primal: f64,
}

impl Measure {
    /// How far the optimality conditions fail.
    pub(crate) fn violation(&self) -> f64 {
        (self.highest - self.lowest).max(0.0)
    }

    /// The middle of what F may be at the free rows.
    pub(crate) fn middle(&self) -> f64 {
        match (self.lowest.is_finite(), self.highest.is_finite()) {
            (true, true) => 0.5 * (self.lowest + self.highest),
            (true, false) => self.lowest,
            (false, true) => self.highest,
            (false, false) => 0.0,
        }
    }

    pub(crate) fn relative_gap(&self) -> f64 {
        self.gap / self.primal.abs().max(f64::MIN_POSITIVE)
    }
}

impl<'a> Dual<'a> {
    /// The problem with b = 0.
    pub(crate) fn new(gram: Gram<'a>, linear: Vec<f64>, lower: Vec<f64>, upper: Vec<f64>, balanced: bool) -> Dual<'a> {
        let rows = gram.rows();
        let mut gradient = linear.clone();
        gradient.resize(rows.next_multiple_of(super::super::tiles::PANEL), 0.0);
        Dual { gram, linear, beta: vec![0.0; rows], gradient, lower, upper, balanced }
    }

    pub(crate) fn rows(&self) -> usize {
        self.beta.len()
    }

    /// The intercept that belongs to the current F.
    pub(crate) fn intercept(&self, measure: &Measure) -> f64 {
        if self.balanced { -measure.middle() } else { 0.0 }
    }

    pub(crate) fn measure(&self) -> Measure {
        let (mut lowest, mut highest) = if self.balanced { (f64::INFINITY, f64::NEG_INFINITY) } else { (0.0, 0.0) };
        let (mut free, mut dual) = (0, 0.0);
        for row in 0..self.rows() {
            let (b, f) = (self.beta[row], self.gradient[row]);
            let (rises, falls) = (b < self.upper[row], b > self.lower[row]);
            if rises && f < lowest {
                lowest = f;
            }
            if falls && f > highest {
                highest = f;
            }
            free += usize::from(rises && falls);
            dual -= 0.5 * b * (f + self.linear[row]);
        }
        let mut measure = Measure { lowest, highest, free, gap: 0.0, primal: 0.0 };
        let intercept = self.intercept(&measure);
        let mut gap = 0.0;
        for row in 0..self.rows() {
            let r = -(self.gradient[row] + intercept);
            let bound = if r > 0.0 { self.upper[row] } else { self.lower[row] };
            gap += (bound - self.beta[row]) * r;
        }
        measure.gap = gap;
        measure.primal = dual + gap;
        measure
    }

    /// Brings F up to date after `rows` moved by `moves`.
    pub(crate) fn moved(&mut self, rows: &[u32], moves: &[f64]) {
        if rows.is_empty() {
            return;
        }
        let mut gradient = std::mem::take(&mut self.gradient);
        self.gram.multiply_all(rows, moves, &mut gradient);
        self.gradient = gradient;
    }

    /// Puts every b into its box, and F up to date.
    pub(crate) fn clamp(&mut self) {
        let (mut rows, mut moves) = (Vec::new(), Vec::new());
        for row in 0..self.rows() {
            let inside = self.beta[row].clamp(self.lower[row], self.upper[row]);
            if inside != self.beta[row] {
                rows.push(row as u32);
                moves.push(inside - self.beta[row]);
                self.beta[row] = inside;
            }
        }
        self.moved(&rows, &moves);
    }

    /// Computes F anew in double precision.
    pub(crate) fn refresh(&mut self) {
        let all: Vec<u32> = (0..self.rows() as u32).collect();
        let product = self.gram.exact(&self.beta, &all);
        for ((f, product), q) in self.gradient.iter_mut().zip(product).zip(&self.linear) {
            *f = product + q;
        }
    }

    /// The largest error of F among some rows that matter: the extreme ones and an even spread of the others.
    pub(crate) fn gradient_error(&self, measure: &Measure) -> f64 {
        const SAMPLE: usize = 32;
        let step = self.rows().div_ceil(SAMPLE).max(1);
        let mut rows: Vec<u32> = (0..self.rows() as u32).step_by(step).collect();
        let extreme = |wanted: f64| (0..self.rows()).find(|&row| self.gradient[row] == wanted);
        rows.extend([measure.lowest, measure.highest].into_iter().filter_map(extreme).map(|row| row as u32));
        let product = self.gram.exact(&self.beta, &rows);
        let errors = rows.iter().zip(product).map(|(&row, product)| {
            let row = row as usize;
            (product + self.linear[row] - self.gradient[row]).abs()
        });
        errors.fold(0.0, f64::max)
    }

    /// Brings sum b back to 0 after boxes changed: the rows whose move costs least move first, with F kept current inside a
    /// block of candidates.
    pub(crate) fn balance(&mut self) -> Result<()> {
        const CANDIDATES: usize = 512;
        // each round either ends the imbalance or empties the room of 512 rows
        for _ in 0..self.rows().div_ceil(CANDIDATES) + 1 {
            let excess: f64 = self.beta.iter().sum();
            let size: f64 = self.beta.iter().map(|b| b.abs()).sum();
            if excess.abs() <= 1e-12 * size || excess == 0.0 || !self.balanced {
                break;
            }
            let direction = -excess.signum();
            let room = |dual: &Self, row: usize| match direction > 0.0 {
                true => dual.upper[row] - dual.beta[row],
                false => dual.beta[row] - dual.lower[row],
            };
            // moving b by direction s changes the objective by direction F s: smallest first
            let mut keys: Vec<(f64, u32)> = (0..self.rows())
                .filter(|&row| room(self, row) > 0.0)
                .map(|row| (direction * self.gradient[row], row as u32))
                .collect();
            if keys.len() > CANDIDATES {
                keys.select_nth_unstable_by(CANDIDATES, |a, b| a.0.total_cmp(&b.0));
                keys.truncate(CANDIDATES);
            }
            let rows: Vec<u32> = keys.iter().map(|key| key.1).collect();
            let packed = self.gram.pack(&rows, 0);
            let mut kernel = super::super::tiles::Aligned::default();
            self.gram.block(&packed, &mut kernel);
            let stride = packed.padded();
            let mut cost: Vec<f64> = keys.iter().map(|key| key.0).collect();
            let mut moves = vec![0.0; rows.len()];
            let mut left = excess.abs();
            while left > 0.0 {
                let open = (0..rows.len()).filter(|&at| room(self, rows[at] as usize) > 0.0);
                let Some(at) = open.min_by(|&a, &b| cost[a].total_cmp(&cost[b])) else { break };
                let row = rows[at] as usize;
                let available = room(self, row);
                let step = left.min(available);
                if step < available {
                    self.beta[row] += direction * step;
                } else {
                    self.beta[row] = if direction > 0.0 { self.upper[row] } else { self.lower[row] };
                }
                left -= step;
                moves[at] += direction * step;
                for (cost, value) in cost.iter_mut().zip(&kernel[at * stride..]) {
                    *cost += step * f64::from(*value);
                }
            }
            let moved: Vec<usize> = (0..rows.len()).filter(|&at| moves[at] != 0.0).collect();
            let moved_rows: Vec<u32> = moved.iter().map(|&at| rows[at]).collect();
            let moved_by: Vec<f64> = moved.iter().map(|&at| moves[at]).collect();
            self.moved(&moved_rows, &moved_by);
        }
        Ok(())
    }
}
