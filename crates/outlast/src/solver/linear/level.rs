//! One convex problem over some rows, and the sweep over its rows that everything else is made of.
//!
//! In normalised units (features divided by a power of two, caps by the largest cap) a level is
//!
//! ```text
//! P(theta) = constant + rho/2 |w|^2 + g'theta + sum_i k_i [z_i]_+,      z_i = 1 - y_i (w'x_i + b),   theta = (w, b)
//! ```
//!
//! The whole problem has g = 0 and constant = 0. A smaller level holds the rows near the kink only; every other row is affine there
//! and lives on in g and the constant, so that P keeps its meaning from level to level.

use crate::data::{Dense, Design};
use crate::linalg::{Isa, dot, padded};
use rayon::prelude::*;

/// Rows read at a time: they stay in the second-level cache while several products are formed.
const BLOCK_VALUES: usize = 8192;
/// Most pieces a sweep is cut into. Fixed, so that sums do not depend on the number of threads.
const PIECES: usize = 64;
const SMALLEST_PIECE: usize = 512;
/// Rows of a tile of weighted rows, collected before they enter a Gram matrix.
const TILE: usize = 64;

/// Visits all rows of a design in blocks, on all threads: `visit` is given the number of the first row, the raw features and the
/// block's part of `state`, which has `width` elements per row. Each of at most `pieces` pieces has its own accumulator; they are merged
/// in order of rows. No more than `at_once` of them wait to be merged, which changes nothing but the memory taken.
pub(super) fn sweep_rows<S: Send, A: Send>(
    x: &dyn Design,
    (pieces, at_once): (usize, usize),
    width: usize,
    state: &mut [S],
    new: impl Fn() -> A + Sync,
    visit: impl Fn(usize, &[f64], &mut [S], &mut A) + Sync,
    mut merge: impl FnMut(&mut A, A),
) -> A {
    let n = state.len() / width;
    let step = (BLOCK_VALUES / x.cols().max(1)).clamp(16, 512);
    let piece = n.div_ceil(pieces).max(SMALLEST_PIECE).next_multiple_of(8);
    let work = |number: usize, state: &mut [S]| {
        let start = number * piece;
        let mut scratch = Vec::new();
        let mut accumulator = new();
        for (k, state) in state.chunks_mut(step * width).enumerate() {
            let first = start + k * step;
            let x = x.block(first..first + state.len() / width, &mut scratch);
            visit(first, x, state, &mut accumulator);
        }
        accumulator
    };
    let at_once = at_once.clamp(1, pieces);
    let mut total: Option<A> = None;
    for (wave, state) in state.chunks_mut(at_once * piece * width).enumerate() {
        let first = wave * at_once;
        let parts: Vec<A> = if state.len() <= piece * width {
            vec![work(first, state)]
        } else {
            let parts = state.par_chunks_mut(piece * width).enumerate();
            parts.map(|(number, state)| work(first + number, state)).collect()
        };
        for part in parts {
            match &mut total {
                None => total = Some(part),
                Some(total) => merge(total, part),
            }
        }
    }
    total.unwrap_or_else(&new)
}

/// How many pieces with so many Gram matrices of `stride` columns fit into some bytes.
pub(super) fn at_once(room: usize, grams: usize, stride: usize) -> usize {
    room / (8 * grams * stride * stride).max(1)
}

/// A convex problem over some rows.
#[derive(Clone)]
pub(super) struct Level<'a> {
    pub x: &'a dyn Design,
    /// Features are multiplied by this power of two as they are read.
    pub unit: f64,
    /// y_i
    pub signs: &'a [f64],
    /// k_i in [0, 1]; rows with 0 take no part.
    pub caps: &'a [f64],
    /// rho
    pub ridge: f64,
    /// g, p values
    pub linear: Vec<f64>,
    pub constant: f64,
    pub intercept: bool,
    /// Bytes of the Gram matrices of pieces that wait to be merged.
    pub room: usize,
    pub isa: Isa,
}

/// A block of rows as a sweep sees it.
pub(super) struct Block<'b> {
    /// Number of the first row.
    pub first: usize,
    /// Raw features, contiguous.
    pub x: &'b [f64],
    pub signs: &'b [f64],
    pub caps: &'b [f64],
}

/// theta with the features' unit folded into w, ready for raw rows.
pub(super) struct Functional {
    w: Vec<f64>,
    b: f64,
}

impl<'a> Level<'a> {
    pub fn rows(&self) -> usize {
        self.signs.len()
    }

    /// p = d + 1
    pub fn order(&self) -> usize {
        self.x.cols() + 1
    }

    /// Row length of tiles and Gram matrices.
    pub fn stride(&self) -> usize {
        padded(self.order())
    }

    /// constant + rho/2 |w|^2 + g'theta
    pub fn affine_part(&self, theta: &[f64]) -> f64 {
        let w = &theta[..theta.len() - 1];
        self.constant + 0.5 * self.ridge * dot(w, w) + dot(&self.linear, theta)
    }

    pub fn functional(&self, theta: &[f64]) -> Functional {
        let (b, w) = theta.split_last().expect("theta holds at least b");
        Functional { w: w.iter().map(|w| w * self.unit).collect(), b: *b }
    }

    /// out_i = y_i (w'x_i + b) on a block
    pub fn margins(&self, block: &Block, functional: &Functional, out: &mut Vec<f64>) {
        out.resize(block.signs.len(), 0.0);
        self.isa.dots(block.x, &functional.w, out);
        for (out, y) in out.iter_mut().zip(block.signs) {
            *out = y * (*out + functional.b);
        }
    }

    /// Adds sum_i factors_i (x_i, 1), x still raw, to `out` (p values).
    pub fn add_rows(&self, block: &Block, factors: &[f64], out: &mut [f64]) {
        let (b, w) = out.split_last_mut().expect("p >= 1");
        self.isa.accumulate(block.x, factors, w);
        *b += factors.iter().sum::<f64>();
    }

    /// Turns a sum made by [`add_rows`](Self::add_rows) into normalised units; without intercept its last entry is 0.
    pub fn normalise(&self, sum: &mut [f64]) {
        let (b, w) = sum.split_last_mut().expect("p >= 1");
        w.iter_mut().for_each(|w| *w *= self.unit);
        if !self.intercept {
            *b = 0.0;
        }
    }

    /// Adds rho to the diagonal of a Gram matrix; without intercept the last equation becomes b = 0.
    pub fn add_ridge(&self, gram: &mut [f64]) {
        let (p, stride) = (self.order(), self.stride());
        for j in 0..p - 1 {
            gram[j * stride + j] += self.ridge;
        }
        if !self.intercept {
            gram[(p - 1) * stride..(p - 1) * stride + p].fill(0.0);
            gram[(p - 1) * stride + p - 1] = 1.0;
        }
    }

    /// Visits all rows in blocks, on all threads. `state` has one element per row; each piece of rows has its own accumulator and
    /// they are merged in order of rows.
    pub fn sweep<S: Send, A: Send>(
        &self,
        state: &mut [S],
        new: impl Fn() -> A + Sync,
        visit: impl Fn(&Block, &mut [S], &mut A) + Sync,
        merge: impl FnMut(&mut A, A),
    ) -> A {
        self.sweep_grams(0, state, new, visit, merge)
    }

    /// The same with accumulators that have so many Gram matrices.
    pub fn sweep_grams<S: Send, A: Send>(
        &self,
        grams: usize,
        state: &mut [S],
        new: impl Fn() -> A + Sync,
        visit: impl Fn(&Block, &mut [S], &mut A) + Sync,
        merge: impl FnMut(&mut A, A),
    ) -> A {
        sweep_rows(
            self.x,
            (PIECES, at_once(self.room, grams, self.stride())),
            1,
            state,
            new,
            |first, x, state, accumulator| {
                let range = first..first + state.len();
                let block = Block { first, x, signs: &self.signs[range.clone()], caps: &self.caps[range] };
                visit(&block, state, accumulator);
            },
            merge,
        )
    }

    /// z_i of every row.
    pub fn slacks(&self, theta: &[f64], z: &mut [f64]) {
        let functional = self.functional(theta);
        self.sweep(
            z,
            Vec::new,
            |block, z, margins| {
                self.margins(block, &functional, margins);
                z.iter_mut().zip(margins).for_each(|(z, m)| *z = 1.0 - *m);
            },
            |_, _| (),
        );
    }

    /// A copy of some rows, in normalised units.
    pub fn copy(&self, index: &[u32]) -> Copied {
        let d = self.x.cols();
        let mut values = vec![0.0; d * index.len()];
        let width = SMALLEST_PIECE;
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
        let pick = |from: &[f64]| index.iter().map(|&row| from[row as usize]).collect::<Vec<f64>>();
        let x = Dense::new(index.len(), d, values).expect("one row per index");
        Copied { x, signs: pick(self.signs), caps: pick(self.caps) }
    }
}

/// Rows copied out of a level.
pub(super) struct Copied {
    x: Dense<'static, f64>,
    pub signs: Vec<f64>,
    pub caps: Vec<f64>,
}

impl Copied {
    /// The level over these rows with another affine part.
    pub fn level<'a>(&'a self, parent: &Level, linear: Vec<f64>, constant: f64) -> Level<'a> {
        Level {
            x: &self.x,
            unit: 1.0,
            signs: &self.signs,
            caps: &self.caps,
            ridge: parent.ridge,
            linear,
            constant,
            intercept: parent.intercept,
            room: parent.room,
            isa: parent.isa,
        }
    }
}

/// A Gram matrix under construction: weighted rows are collected in a tile, full tiles are multiplied.
pub(in crate::solver) struct GramSum {
    isa: Isa,
    stride: usize,
    /// Values of a full tile.
    full: usize,
    tile: Vec<f64>,
    pub matrix: Vec<f64>,
    /// Rows entered.
    pub count: usize,
}

impl GramSum {
    pub(super) fn new(level: &Level) -> GramSum {
        GramSum::with_tile(level.isa, level.stride(), TILE)
    }

    /// A matrix of `stride` columns from tiles of `rows` rows.
    pub fn with_tile(isa: Isa, stride: usize, rows: usize) -> GramSum {
        let full = rows * stride;
        GramSum { isa, stride, full, tile: Vec::with_capacity(full), matrix: vec![0.0; stride * stride], count: 0 }
    }

    /// G += weight (x, 1)(x, 1)', weight >= 0.
    #[inline]
    pub fn push(&mut self, x: &[f64], unit: f64, weight: f64) {
        let root = weight.sqrt();
        let factor = root * unit;
        let start = self.tile.len();
        self.tile.extend(x.iter().map(|x| x * factor));
        self.tile.push(root);
        self.tile.resize(start + self.stride, 0.0);
        self.count += 1;
        if self.tile.len() == self.full {
            self.flush();
        }
    }

    /// G += weight x x', weight >= 0, of rows that have their 1 already.
    pub fn push_whole(&mut self, x: &[f64], weight: f64) {
        let (root, start) = (weight.sqrt(), self.tile.len());
        self.tile.extend(x.iter().map(|x| x * root));
        self.tile.resize(start + self.stride, 0.0);
        self.count += 1;
        if self.tile.len() == self.full {
            self.flush();
        }
    }

    pub fn flush(&mut self) {
        self.isa.gram(&self.tile, self.stride, &mut self.matrix);
        self.tile.clear();
    }

    pub fn merge(&mut self, mut other: GramSum) {
        other.flush();
        self.flush();
        self.matrix.iter_mut().zip(&other.matrix).for_each(|(sum, part)| *sum += part);
        self.count += other.count;
    }
}

pub(super) fn add(total: &mut [f64], part: &[f64]) {
    total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_pieces_wait_changes_no_bit() {
        let (n, d) = (5000, 3);
        let x = Dense::new(n, d, (0..n * d).map(|k| (k as f64).sin()).collect::<Vec<f64>>()).unwrap();
        let (signs, caps) = (vec![1.0; n], vec![1.0; n]);
        let level = |room: usize| Level {
            x: &x,
            unit: 1.0,
            signs: &signs,
            caps: &caps,
            ridge: 1.0,
            linear: vec![0.0; d + 1],
            constant: 0.0,
            intercept: true,
            room,
            isa: Isa::detect(),
        };
        let swept = |room: usize| {
            let level = level(room);
            let mut seen = vec![0usize; n];
            let visit = |block: &Block, seen: &mut [usize], gram: &mut GramSum| {
                for (k, seen) in seen.iter_mut().enumerate() {
                    *seen = block.first + k;
                    gram.push(&block.x[k * d..(k + 1) * d], 1.0, 0.1);
                }
            };
            let merge = |total: &mut GramSum, part| total.merge(part);
            let mut gram = level.sweep_grams(1, &mut seen, || GramSum::new(&level), visit, merge);
            gram.flush();
            assert!(seen.iter().enumerate().all(|(row, seen)| row == *seen) && gram.count == n);
            gram.matrix
        };
        let one = 8 * padded(d + 1) * padded(d + 1);
        assert_eq!(at_once(3 * one, 1, padded(d + 1)), 3);
        let wanted = swept(usize::MAX);
        assert!(wanted[0] > 0.0);
        for room in [0, one, 3 * one] {
            assert_eq!(swept(room), wanted, "{room} bytes");
        }
    }
}
