//! One convex problem with k classes over some terms, and what is made of sweeps over its rows.
//!
//! In normalised units (features divided by a power of two, caps by the largest) a level is
//!
//! ```text
//! P(theta) = constant + rho/2 sum_j |w_j|^2 + G.theta + sum_i c_i [max_l (f_il + o_il) - (f_iy)],      f_ij = w_j'x_i + b_j
//! ```
//!
//! with o_il = 1(l != y_i) for a margin's own loss. A term of the cost form has o_il = 1(l = y_i) and no f_iy; its linear part
//! lives in G. theta holds k rows (w_j, b_j) of p = d + 1 values. A smaller level holds the rows near a tie of the largest f + o;
//! every other row is affine and lives on in G and the constant.
//!
//! Hessians of all smoothed or barrier forms of a row are Laplacians of weighted graphs on the classes,
//! sum_{a<b} v_ab (e_a - e_b)(e_a - e_b)' x (x, 1)(x, 1)': one p x p Gram matrix for each pair of classes ([`PairGrams`]).

pub(super) use super::super::level::add;
use super::super::level::{GramSum, at_once, sweep_rows};
use crate::data::{Dense, Design};
use crate::linalg::{Factor, Isa, dot, padded};
use rayon::prelude::*;

/// Most pieces of a sweep: each holds a Gram matrix for every pair of classes.
const PIECES: usize = 16;
/// Rows of a tile of a Gram matrix.
const TILE: usize = 32;

/// Rows wanted within a row's width, over the share of rows per unit of score; and the largest width.
const SUPPORT: f64 = 25.0;
pub(super) const WIDEST: f64 = 2.0;

/// What the loss of a term is taken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The margin of the class.
    Margin,
    /// Minus the margin.
    Cost,
}

/// A convex problem over some terms.
#[derive(Clone)]
pub(super) struct Level<'a> {
    pub x: &'a dyn Design,
    /// Features are multiplied by this power of two as they are read.
    pub unit: f64,
    /// y_i
    pub codes: &'a [u32],
    /// k
    pub classes: usize,
    /// c_i; rows with 0 take no part.
    pub caps: &'a [f64],
    /// Smallest width over which a row's kinks are smoothed, see [`rarity`](Level::rarity).
    pub widths: &'a [f32],
    pub side: Side,
    /// rho
    pub ridge: f64,
    /// G, k x p
    pub linear: Vec<f64>,
    pub constant: f64,
    pub intercept: bool,
    /// Bytes of the Gram matrices of pieces that wait to be merged.
    pub room: usize,
    pub isa: Isa,
}

/// A block of rows as a sweep sees it.
pub(super) struct Block<'b> {
    pub first: usize,
    /// Raw features.
    pub x: &'b [f64],
    pub codes: &'b [u32],
    pub caps: &'b [f64],
}

/// theta with the features' unit folded into w, and room for one class's scores.
pub(super) struct Functional {
    w: Vec<f64>,
    b: Vec<f64>,
}

impl<'a> Level<'a> {
    pub fn rows(&self) -> usize {
        self.codes.len()
    }

    /// p = d + 1
    pub fn order(&self) -> usize {
        self.x.cols() + 1
    }

    /// Number of values of theta.
    pub fn size(&self) -> usize {
        self.classes * self.order()
    }

    fn stride(&self) -> usize {
        padded(self.order())
    }

    /// sum_j |w_j|^2
    pub fn squared_norm(&self, theta: &[f64]) -> f64 {
        theta.chunks_exact(self.order()).map(|row| dot(&row[..row.len() - 1], &row[..row.len() - 1])).sum()
    }

    /// constant + rho/2 |w|^2 + G.theta
    pub fn affine_part(&self, theta: &[f64]) -> f64 {
        self.constant + 0.5 * self.ridge * self.squared_norm(theta) + dot(&self.linear, theta)
    }

    /// G + rho w: the gradient of the affine part.
    pub fn affine_gradient(&self, theta: &[f64]) -> Vec<f64> {
        let p = self.order();
        let ridge = |at: usize| if (at + 1).is_multiple_of(p) { 0.0 } else { self.ridge * theta[at] };
        (0..theta.len()).map(|at| self.linear[at] + ridge(at)).collect()
    }

    /// |r_w|^2 / (2 rho) + |b.r_b|: what a residual of the dual's equations adds to the gap.
    pub fn residual_gap(&self, theta: &[f64], residual: &[f64]) -> f64 {
        let p = self.order();
        let rows = theta.chunks_exact(p).zip(residual.chunks_exact(p));
        let off_balance: f64 = rows.map(|(theta, residual)| theta[p - 1] * residual[p - 1]).sum();
        0.5 * self.squared_norm(residual) / self.ridge + off_balance.abs()
    }

    pub fn functional(&self, theta: &[f64]) -> Functional {
        let (p, k) = (self.order(), self.classes);
        let mut w = Vec::with_capacity(k * (p - 1));
        for row in theta.chunks_exact(p) {
            w.extend(row[..p - 1].iter().map(|w| w * self.unit));
        }
        Functional { w, b: theta.chunks_exact(p).map(|row| row[p - 1]).collect() }
    }

    /// f of a block, rows x classes, into `out`. `column` is scratch.
    pub fn scores(&self, block: &Block, functional: &Functional, column: &mut Vec<f64>, out: &mut [f64]) {
        let (k, d) = (self.classes, self.x.cols());
        column.resize(block.codes.len(), 0.0);
        for class in 0..k {
            self.isa.dots(block.x, &functional.w[class * d..(class + 1) * d], column);
            let b = functional.b[class];
            for (out, value) in out[class..].iter_mut().step_by(k).zip(column.iter()) {
                *out = value + b;
            }
        }
    }

    /// Adds sum_i factors_ij (x_i, 1), x still raw, to row j of `out`. `factors` is rows x classes, `column` scratch.
    pub fn add_rows(&self, block: &Block, factors: &[f64], column: &mut Vec<f64>, out: &mut [f64]) {
        let (k, p) = (self.classes, self.order());
        for class in 0..k {
            column.clear();
            column.extend(factors[class..].iter().step_by(k));
            if column.iter().any(|value| *value != 0.0) {
                let (w, b) = out[class * p..(class + 1) * p].split_at_mut(p - 1);
                self.isa.accumulate(block.x, column, w);
                b[0] += column.iter().sum::<f64>();
            }
        }
    }

    /// Turns a sum made by [`add_rows`](Self::add_rows) into normalised units; without intercept its entries for b are 0.
    pub fn normalise(&self, sum: &mut [f64]) {
        for row in sum.chunks_exact_mut(self.order()) {
            let (b, w) = row.split_last_mut().expect("p >= 1");
            w.iter_mut().for_each(|w| *w *= self.unit);
            if !self.intercept {
                *b = 0.0;
            }
        }
    }

    /// Visits all rows in blocks, on all threads; `width` elements of `state` belong to each row.
    pub fn sweep<S: Send, A: Send>(
        &self,
        width: usize,
        state: &mut [S],
        new: impl Fn() -> A + Sync,
        visit: impl Fn(&Block, &mut [S], &mut A) + Sync,
        merge: impl FnMut(&mut A, A),
    ) -> A {
        self.sweep_grams(0, width, state, new, visit, merge)
    }

    /// The same with accumulators that have so many Gram matrices for each pair of classes.
    pub fn sweep_grams<S: Send, A: Send>(
        &self,
        grams: usize,
        width: usize,
        state: &mut [S],
        new: impl Fn() -> A + Sync,
        visit: impl Fn(&Block, &mut [S], &mut A) + Sync,
        merge: impl FnMut(&mut A, A),
    ) -> A {
        let pairs = self.classes * (self.classes - 1) / 2;
        let at_once = at_once(self.room, grams * pairs, self.stride());
        let visit = |first: usize, x: &[f64], state: &mut [S], accumulator: &mut A| {
            let range = first..first + state.len() / width;
            let block = Block { first, x, codes: &self.codes[range.clone()], caps: &self.caps[range] };
            visit(&block, state, accumulator);
        };
        sweep_rows(self.x, (PIECES, at_once), width, state, new, visit, merge)
    }

    /// o_il + f_il of a row in place of f.
    #[inline]
    pub fn augment(&self, code: u32, f: &mut [f64]) {
        match self.side {
            Side::Margin => {
                let own = f[code as usize];
                f.iter_mut().for_each(|f| *f += 1.0);
                f[code as usize] = own;
            }
            Side::Cost => f[code as usize] += 1.0,
        }
    }

    /// z = 1 - margin, or 1 + margin in the cost form: the loss of a term is [z]_+.
    #[inline]
    pub fn slack(&self, code: u32, f: &[f64]) -> f64 {
        let own = f[code as usize];
        let rival = f.iter().enumerate().filter(|(class, _)| *class != code as usize).map(|(_, f)| *f);
        let difference = rival.fold(f64::NEG_INFINITY, f64::max) - own;
        match self.side {
            Side::Margin => 1.0 + difference,
            Side::Cost => 1.0 - difference,
        }
    }

    /// f of every row, rows x classes.
    pub fn all_scores(&self, theta: &[f64]) -> Vec<f64> {
        let functional = self.functional(theta);
        let mut f = vec![0.0; self.rows() * self.classes];
        let visit = |block: &Block, f: &mut [f64], column: &mut Vec<f64>| self.scores(block, &functional, column, f);
        self.sweep(self.classes, &mut f, Vec::new, visit, |_, _| ());
        f
    }

    /// The width of every row within which about [`SUPPORT`] rows like it lie near a kink. With M_yj = sum c_i x_ij^2 over the rows of class y,
    /// max_j c_i x_ij^2 / M_yj is one over the number of rows that hold column j of class y as this one does.
    pub fn rarity(&self) -> Vec<f32> {
        let (k, d) = (self.classes, self.x.cols());
        let square = |cap: f64, x: f64| cap * (x * self.unit) * (x * self.unit);
        let mut nothing = vec![(); self.rows()];
        let visit = |block: &Block, _: &mut [()], sums: &mut Vec<f64>| {
            for (row, x) in block.x.chunks_exact(d.max(1)).enumerate() {
                let out = &mut sums[block.codes[row] as usize * d..][..d];
                out.iter_mut().zip(x).for_each(|(sum, x)| *sum += square(block.caps[row], *x));
            }
        };
        let moments = self.sweep(1, &mut nothing, || vec![0.0; k * d], visit, |total, part| add(total, &part));
        let inverse: Vec<f64> = moments.iter().map(|m| if *m > 0.0 { SUPPORT / m } else { 0.0 }).collect();
        let mut widths = vec![0.0f32; self.rows()];
        let visit = |block: &Block, widths: &mut [f32], _: &mut ()| {
            for (row, x) in block.x.chunks_exact(d.max(1)).enumerate() {
                let inverse = &inverse[block.codes[row] as usize * d..][..d];
                let share = x.iter().zip(inverse).map(|(x, inverse)| square(block.caps[row], *x) * inverse);
                widths[row] = share.fold(0.0, f64::max).min(WIDEST) as f32;
            }
        };
        self.sweep(1, &mut widths, || (), visit, |_, ()| ());
        widths
    }

    /// A copy of some rows, in normalised units.
    pub fn copy(&self, index: &[u32]) -> Copied {
        let d = self.x.cols();
        let mut values = vec![0.0; d * index.len()];
        let width = 256;
        if d > 0 {
            values.par_chunks_mut(d * width).zip(index.par_chunks(width)).for_each(|(out, index)| {
                let mut scratch = Vec::new();
                for (out, &row) in out.chunks_exact_mut(d).zip(index) {
                    let row = row as usize;
                    let x = self.x.block(row..row + 1, &mut scratch);
                    out.iter_mut().zip(x).for_each(|(out, x)| *out = x * self.unit);
                }
            });
        }
        let x = Dense::new(index.len(), d, values).expect("one row per index");
        Copied {
            x,
            codes: index.iter().map(|&row| self.codes[row as usize]).collect(),
            caps: index.iter().map(|&row| self.caps[row as usize]).collect(),
            widths: index.iter().map(|&row| self.widths[row as usize]).collect(),
        }
    }
}

/// Rows copied out of a level.
pub(super) struct Copied {
    x: Dense<'static, f64>,
    pub codes: Vec<u32>,
    pub caps: Vec<f64>,
    pub widths: Vec<f32>,
}

impl Copied {
    /// The level over these rows with another affine part.
    pub fn level<'a>(&'a self, parent: &Level, linear: Vec<f64>, constant: f64) -> Level<'a> {
        Level {
            x: &self.x,
            unit: 1.0,
            codes: &self.codes,
            classes: parent.classes,
            caps: &self.caps,
            widths: &self.widths,
            side: parent.side,
            ridge: parent.ridge,
            linear,
            constant,
            intercept: parent.intercept,
            room: parent.room,
            isa: parent.isa,
        }
    }
}

/// A Gram matrix for each pair of classes that some row joins.
pub(super) struct PairGrams {
    isa: Isa,
    stride: usize,
    classes: usize,
    unit: f64,
    grams: Vec<Option<GramSum>>,
}

impl PairGrams {
    pub fn new(level: &Level) -> PairGrams {
        let k = level.classes;
        let grams = (0..k * (k - 1) / 2).map(|_| None).collect();
        PairGrams { isa: level.isa, stride: level.stride(), classes: k, unit: level.unit, grams }
    }

    /// Adds weight (x, 1)(x, 1)' to the matrix of classes a < b.
    #[inline]
    pub fn push(&mut self, a: usize, b: usize, x: &[f64], weight: f64) {
        let gram = &mut self.grams[b * (b - 1) / 2 + a];
        let gram = gram.get_or_insert_with(|| GramSum::with_tile(self.isa, self.stride, TILE));
        gram.push(x, self.unit, weight);
    }

    pub fn merge(&mut self, other: PairGrams) {
        for (total, part) in self.grams.iter_mut().zip(other.grams) {
            match (total.as_mut(), part) {
                (Some(total), Some(part)) => total.merge(part),
                (None, part) => *total = part,
                _ => (),
            }
        }
    }

    pub fn flush(&mut self) {
        self.grams.iter_mut().flatten().for_each(GramSum::flush);
    }

    pub fn is_empty(&self) -> bool {
        self.grams.iter().all(Option::is_none)
    }

    /// Adds `factor` times the sum over pairs of (e_a - e_b)(e_a - e_b)' x G_ab to the lower half of a matrix of k p columns.
    pub fn assemble(&self, order: usize, factor: f64, matrix: &mut [f64]) {
        let size = self.classes * order;
        for b in 1..self.classes {
            for a in 0..b {
                let Some(gram) = &self.grams[b * (b - 1) / 2 + a] else { continue };
                for i in 0..order {
                    for j in 0..=i {
                        let value = factor * gram.matrix[i * self.stride + j];
                        matrix[(a * order + i) * size + a * order + j] += value;
                        matrix[(b * order + i) * size + b * order + j] += value;
                        matrix[(b * order + i) * size + a * order + j] -= value;
                        if i != j {
                            matrix[(b * order + j) * size + a * order + i] -= value;
                        }
                    }
                }
            }
        }
    }
}

impl Level<'_> {
    /// rho I + the Laplacians, with the sum of the intercepts held: k p x k p, lower half.
    pub fn hessian(&self, grams: &PairGrams) -> Vec<f64> {
        let mut matrix = vec![0.0; self.size() * self.size()];
        grams.assemble(self.order(), 1.0, &mut matrix);
        self.add_ridge(&mut matrix);
        matrix
    }

    /// Adds rho to the entries of w. The intercepts' common shift, which nothing else determines, gets their mean weight;
    /// without intercept their equations become b = 0.
    pub fn add_ridge(&self, matrix: &mut [f64]) {
        let (p, k, size) = (self.order(), self.classes, self.size());
        for at in (0..size).filter(|at| !(at + 1).is_multiple_of(p)) {
            matrix[at * size + at] += self.ridge;
        }
        let b = |class: usize| class * p + p - 1;
        if self.intercept {
            let mean = (0..k).map(|class| matrix[b(class) * size + b(class)]).sum::<f64>() / k as f64;
            let hold = if mean > 0.0 { mean / k as f64 } else { 1.0 };
            for i in 0..k {
                for j in 0..=i {
                    matrix[b(i) * size + b(j)] += hold;
                }
            }
            return;
        }
        for class in 0..k {
            self.release(matrix, b(class), 1.0);
        }
    }

    /// Makes the equation of one unknown `diagonal` times it.
    pub fn release(&self, matrix: &mut [f64], at: usize, diagonal: f64) {
        let size = self.size();
        matrix[at * size..at * size + at].fill(0.0);
        (at + 1..size).for_each(|row| matrix[row * size + at] = 0.0);
        matrix[at * size + at] = diagonal;
    }

    /// The factor of a matrix of this level.
    pub fn factor(&self, matrix: &[f64]) -> Option<Factor> {
        Factor::nearest(matrix, self.size(), self.size())
    }
}
