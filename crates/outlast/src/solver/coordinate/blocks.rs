//! The dual of k classes with the intercepts' constraints augmented, and block coordinate descent on it.
//!
//! ```text
//! min  sum_j 1/2 |X'V_j|^2 + b0_j s_j + rho/2 s_j^2  -  sum_i V_iy,     s_j = sum_i V_ij
//! V_ij <= 0 for j != y,   V_iy <= c_i,   sum_j V_ij = 0
//! ```
//!
//! Its gradient is G_ij = w_j'x_i + b_j - 1(j = y), b = b0 + rho s. The block of one row is minimised exactly (Crammer and
//! Singer 2002): with A = |x_i|^2 + rho, B_j = G_j - A V_j and bounds C_j = c 1(j = y) the minimiser is
//!
//! ```text
//! V_j = min(C_j, (beta - B_j) / A),     beta the root of sum_j V_j = 0
//! ```
//!
//! found by sorting B_j + A C_j. Cost: O(non-zeros of the row x k). Weights are stored with the classes of a column side by
//! side, so that every non-zero reads one piece of memory.
//!
//! Shrinking: q_i = C - V is at a vertex a of its simplex and G_a exceeds all others by more than the largest violation of the
//! previous epoch: the row is left out until the others have converged.

use super::super::scaled::Scaled;
use super::dual::{Random, STIFFEST, typical};
use rayon::prelude::*;

pub(super) struct Blocks<'a> {
    data: &'a Scaled<'a>,
    codes: &'a [u32],
    pub(super) classes: usize,
    /// c_i of the kept rows, 0 of the others.
    pub(super) caps: Vec<f64>,
    /// V, rows x classes.
    pub(super) expansion: Vec<f64>,
    /// X'V, columns x classes.
    pub(super) weights: Vec<f64>,
    pub(super) squares: Vec<f64>,
    /// s
    pub(super) sums: Vec<f64>,
    /// b0
    pub(super) centre: Vec<f64>,
    /// rho, 0 without intercept
    pub(super) stiffness: f64,
    least_stiffness: f64,
    /// Classes that take part.
    pub(super) present: Vec<usize>,
    /// Rows with a cap; the first `live` of them are not shrunk.
    pub(super) rows: Vec<u32>,
    pub(super) live: usize,
    limit: f64,
    shrinking: bool,
    random: Random,
    gradient: Vec<f64>,
    sorted: Vec<f64>,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(
        data: &'a Scaled<'a>,
        codes: &'a [u32],
        classes: usize,
        intercept: bool,
        shrinking: bool,
        seed: u64,
    ) -> Self {
        let n = data.rows();
        let squares: Vec<f64> = (0..n).into_par_iter().map(|row| data.squared_norm(row)).collect();
        let stiffness = if intercept { typical(&squares) } else { 0.0 };
        Blocks {
            data,
            codes,
            classes,
            caps: vec![0.0; n],
            expansion: vec![0.0; n * classes],
            weights: vec![0.0; data.cols() * classes],
            squares,
            sums: vec![0.0; classes],
            centre: vec![0.0; classes],
            stiffness,
            least_stiffness: stiffness,
            present: Vec::new(),
            rows: Vec::new(),
            live: 0,
            limit: f64::INFINITY,
            shrinking,
            random: Random(seed),
            gradient: vec![0.0; classes],
            sorted: Vec::with_capacity(classes),
        }
    }

    /// Starts from V, brought into the rows' sets, and b.
    pub(super) fn start(&mut self, expansion: &[f64], centre: &[f64]) {
        let k = self.classes;
        let mut is_present = vec![self.stiffness == 0.0; k];
        for row in (0..self.caps.len()).filter(|&row| self.caps[row] > 0.0) {
            is_present[self.codes[row] as usize] = true;
        }
        self.present = (0..k).filter(|&class| is_present[class]).collect();
        self.rows = (0..self.caps.len()).filter(|&row| self.caps[row] > 0.0).map(|row| row as u32).collect();
        self.expansion.copy_from_slice(expansion);
        for row in 0..self.caps.len() {
            let (own, cap) = (self.codes[row] as usize, self.caps[row]);
            let v = &mut self.expansion[row * k..(row + 1) * k];
            (0..k).for_each(|class| v[class] = if is_present[class] && class != own { v[class].min(0.0) } else { 0.0 });
            close_row(v, own, cap);
        }
        self.centre.copy_from_slice(centre);
        self.stiffness = self.least_stiffness;
        self.refresh();
        self.unshrink();
    }

    /// Recomputes w and s from V, free of the rounding of many small steps.
    pub(super) fn refresh(&mut self) {
        self.weights = combine(self.data, &self.expansion, self.classes);
        for class in 0..self.classes {
            self.sums[class] = self.expansion.iter().skip(class).step_by(self.classes).sum();
        }
    }

    pub(super) fn unshrink(&mut self) {
        self.live = self.rows.len();
        self.limit = f64::INFINITY;
    }

    pub(super) fn stiffen(&mut self) {
        self.stiffness = (2.0 * self.stiffness).min(STIFFEST * self.least_stiffness);
    }

    /// b
    pub(super) fn intercept(&self, class: usize) -> f64 {
        if self.stiffness > 0.0 { self.centre[class] + self.stiffness * self.sums[class] } else { 0.0 }
    }

    /// One pass over the live rows in random order. Returns the largest violation met.
    pub(super) fn epoch(&mut self) -> f64 {
        self.random.shuffle(&mut self.rows[..self.live]);
        let mut largest = 0.0f64;
        let mut position = 0;
        while position < self.live {
            let row = self.rows[position] as usize;
            self.look(row);
            let (violation, idle) = self.violation(row);
            if self.shrinking && idle > self.limit {
                self.live -= 1;
                self.rows.swap(position, self.live);
                continue;
            }
            largest = largest.max(violation);
            if violation > 0.0 {
                self.step(row);
            }
            position += 1;
        }
        self.limit = if largest > 0.0 { largest } else { f64::INFINITY };
        largest
    }

    /// G of a row.
    fn look(&mut self, row: usize) {
        let k = self.classes;
        for class in 0..k {
            self.gradient[class] = self.intercept(class);
        }
        let (gradient, weights, shrink) = (&mut self.gradient, &self.weights, self.data.shrink());
        self.data.design().for_each(row, &mut |column, value| {
            let value = value * shrink;
            gradient.iter_mut().zip(&weights[column * k..]).for_each(|(sum, w)| *sum += value * w);
        });
        self.gradient[self.codes[row] as usize] -= 1.0;
    }

    /// max G - min of G where q > 0; and, at a vertex a, G_a less the largest of the others (else minus infinity).
    fn violation(&self, row: usize) -> (f64, f64) {
        let k = self.classes;
        let (own, cap) = (self.codes[row] as usize, self.caps[row]);
        let v = &self.expansion[row * k..(row + 1) * k];
        let (mut highest, mut second, mut lowest, mut used) = (f64::NEG_INFINITY, f64::NEG_INFINITY, f64::INFINITY, 0);
        for &class in &self.present {
            let g = self.gradient[class];
            if g > highest {
                (highest, second) = (g, highest);
            } else if g > second {
                second = g;
            }
            let q = if class == own { cap - v[class] } else { -v[class] };
            if q > 0.0 {
                lowest = lowest.min(g);
                used += 1;
            }
        }
        let violation = (highest - lowest).max(0.0);
        let idle = if used == 1 && violation == 0.0 { highest - second } else { f64::NEG_INFINITY };
        (violation, idle)
    }

    /// Minimises a row's block for the gradient at hand.
    fn step(&mut self, row: usize) {
        let k = self.classes;
        let (own, cap) = (self.codes[row] as usize, self.caps[row]);
        let curvature = self.squares[row] + self.stiffness;
        let old: Vec<f64> = self.expansion[row * k..(row + 1) * k].to_vec();
        let mut new = vec![0.0; k];
        if curvature > 0.0 {
            // B_j + A C_j
            let corner = |class: usize| {
                let extra = if class == own { curvature * (cap - old[class]) } else { -curvature * old[class] };
                self.gradient[class] + extra
            };
            self.sorted.clear();
            self.sorted.extend(self.present.iter().map(|&class| corner(class)));
            self.sorted.sort_unstable_by(|a, b| b.total_cmp(a));
            let mut sum = self.sorted[0] - curvature * cap;
            let mut count = 1.0;
            for &next in &self.sorted[1..] {
                if sum >= count * next {
                    break;
                }
                sum += next;
                count += 1.0;
            }
            let beta = sum / count;
            for &class in self.present.iter().filter(|class| **class != own) {
                new[class] = (old[class] + (beta - self.gradient[class]) / curvature).min(0.0);
            }
        } else {
            let best = self.present.iter().fold(
                own,
                |at, &class| {
                    if self.gradient[class] > self.gradient[at] { class } else { at }
                },
            );
            if best != own {
                new[best] = -cap;
            }
        }
        close_row(&mut new, own, cap);
        let change: Vec<f64> = new.iter().zip(&old).map(|(new, old)| new - old).collect();
        if change.iter().all(|change| *change == 0.0) {
            return;
        }
        self.expansion[row * k..(row + 1) * k].copy_from_slice(&new);
        self.sums.iter_mut().zip(&change).for_each(|(sum, change)| *sum += change);
        let (weights, shrink) = (&mut self.weights, self.data.shrink());
        self.data.design().for_each(row, &mut |column, value| {
            let value = value * shrink;
            weights[column * k..].iter_mut().zip(&change).for_each(|(w, change)| *w += value * change);
        });
    }
}

/// V_y = minus the sum of the others, which are <= 0; all of them shortened if that exceeds the cap.
fn close_row(v: &mut [f64], own: usize, cap: f64) {
    v[own] = 0.0;
    let sum = -v.iter().sum::<f64>();
    if sum > cap {
        let share = cap / sum;
        v.iter_mut().for_each(|v| *v *= share);
        v[own] = -v.iter().sum::<f64>();
        v[own] = v[own].min(cap);
    } else {
        v[own] = sum;
    }
}

/// X'V, columns x classes.
pub(super) fn combine(data: &Scaled, expansion: &[f64], k: usize) -> Vec<f64> {
    let mut weights = vec![0.0; data.cols() * k];
    for (row, v) in expansion.chunks_exact(k).enumerate().filter(|(_, v)| v.iter().any(|v| *v != 0.0)) {
        data.design().for_each(row, &mut |column, value| {
            let value = value * data.shrink();
            weights[column * k..].iter_mut().zip(v).for_each(|(w, v)| *w += value * v);
        });
    }
    weights
}

/// w_j'x_i, rows x classes.
pub(super) fn multiply(data: &Scaled, weights: &[f64], k: usize) -> Vec<f64> {
    let mut scores = vec![0.0; data.rows() * k];
    scores.par_chunks_exact_mut(k).enumerate().for_each(|(row, scores)| {
        data.design().for_each(row, &mut |column, value| {
            let value = value * data.shrink();
            scores.iter_mut().zip(&weights[column * k..]).for_each(|(score, w)| *score += value * w);
        });
    });
    scores
}

/// Moves V within the rows' sets until its columns sum to 0, along the rows where that costs least: from V_ia to V_ib costs
/// G_ib - G_ia. `scores` are w_j'x_i.
pub(super) fn balance_cheaply(expansion: &mut [f64], k: usize, scores: &[f64], codes: &[u32], caps: &[f64]) {
    let rows = caps.len();
    for _ in 0..2 * k {
        let sums: Vec<f64> = (0..k).map(|class| expansion.iter().skip(class).step_by(k).sum()).collect();
        let a = (0..k).fold(0, |at, class| if sums[class] > sums[at] { class } else { at });
        let b = (0..k).fold(0, |at, class| if sums[class] < sums[at] { class } else { at });
        let mut amount = sums[a].min(-sums[b]);
        if !(amount > 0.0) {
            return;
        }
        let room = |row: usize, v: &[f64]| if codes[row] as usize == b { caps[row] - v[b] } else { -v[b] };
        let cost = |row: usize| {
            let own = codes[row] as usize;
            let g = |class: usize| scores[row * k + class] - f64::from(u8::from(class == own));
            g(b) - g(a)
        };
        let mut order: Vec<(f64, u32)> = (0..rows)
            .filter(|&row| room(row, &expansion[row * k..(row + 1) * k]) > 0.0)
            .map(|row| (cost(row), row as u32))
            .collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        for (_, row) in order {
            let row = row as usize;
            let v = &mut expansion[row * k..(row + 1) * k];
            let moved = amount.min(room(row, v));
            v[a] -= moved;
            v[b] += moved;
            amount -= moved;
            if amount <= 0.0 {
                break;
            }
        }
    }
}
