//! What moves of mass between classes gain, over all rows of a sheet.
//!
//! g(a, b) = max over rows with q_a > 0 of raise_b - lower_a. A pass turns 64 rows of scores at a time from panels to rows, so
//! that a source's gains to all classes are one short run of vector operations: O(k) per row and per source.

use super::super::super::tiles::PANEL;
use super::sheet::{Sheet, TINY};
use crate::linalg::{Isa, padded};
use rayon::prelude::*;
use std::ops::Range;

/// Rows times classes from which a pass is worth a second thread.
const WORTH: usize = 1 << 17;

/// For each row, the classes it has mass in.
pub(super) struct Support {
    words: usize,
    bits: Vec<u64>,
}

impl Support {
    pub(super) fn new(sheet: &Sheet) -> Support {
        let words = sheet.classes.div_ceil(64);
        let mut bits = vec![0; sheet.rows() * words];
        let rows = bits.par_chunks_exact_mut(words).zip(sheet.q.par_chunks_exact(sheet.classes));
        rows.with_min_len(512).for_each(|(bits, q)| {
            for (word, q) in bits.iter_mut().zip(q.chunks(64)) {
                *word = q.iter().rev().fold(0, |word, &q| word << 1 | u64::from(q > 0.0));
            }
        });
        Support { words, bits }
    }

    /// Notes whether a row has mass in a class.
    #[inline(always)]
    pub(super) fn set(&mut self, row: usize, class: usize, has: bool) {
        let (word, bit) = (&mut self.bits[row * self.words + class / 64], 1u64 << (class % 64));
        *word = if has { *word | bit } else { *word & !bit };
    }

    /// The classes of a row.
    #[inline(always)]
    fn of(&self, row: usize) -> impl Iterator<Item = usize> {
        let words = &self.bits[row * self.words..(row + 1) * self.words];
        words.iter().enumerate().flat_map(|(number, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(64 * number + bit)
            })
        })
    }

    /// For each class, the rows with mass in it.
    pub(super) fn members(&self, classes: usize) -> Vec<Vec<u32>> {
        let mut members = vec![Vec::new(); classes];
        for row in 0..self.bits.len() / self.words {
            self.of(row).for_each(|class| members[class].push(row as u32));
        }
        members
    }
}

/// For each ordered pair of classes (a, b), the largest gain of a move from a to b, and the row that has it.
#[derive(Debug, Clone)]
pub(super) struct Gains {
    pub(super) classes: usize,
    /// `classes`, padded to whole vectors.
    pub(super) width: usize,
    pub(super) isa: Isa,
    /// `classes` x `width`, -infinity where no row has mass in a.
    pub(super) value: Vec<f64>,
    /// As wide as `value`, for the vectors' sake.
    row: Vec<u64>,
}

impl Gains {
    /// No move gains anything.
    pub(super) fn new(classes: usize, isa: Isa) -> Gains {
        let width = padded(classes);
        let size = classes * width;
        Gains { classes, width, isa, value: vec![f64::NEG_INFINITY; size], row: vec![0; size] }
    }

    #[inline(always)]
    pub(super) fn get(&self, from: usize, to: usize) -> f64 {
        self.value[from * self.width + to]
    }

    /// The row with the largest gain.
    pub(super) fn row(&self, from: usize, to: usize) -> usize {
        self.row[from * self.width + to] as usize
    }

    /// The largest gain of a single move.
    pub(super) fn largest(&self) -> f64 {
        self.value.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// The larger of each two gains, the own one where they are alike.
    fn merge(&mut self, other: &Gains) {
        for at in 0..self.value.len() {
            if other.value[at] > self.value[at] {
                (self.value[at], self.row[at]) = (other.value[at], other.row[at]);
            }
        }
    }
}

/// The gains of all moves.
pub(super) fn gains(sheet: &Sheet, support: &Support) -> Gains {
    let (rows, none) = (sheet.rows(), Gains::new(sheet.classes, sheet.isa));
    let part = |rows: Range<usize>| {
        let mut gains = none.clone();
        // SAFETY: the sheet's instruction set was detected.
        unsafe {
            match sheet.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => scan_avx512(sheet, support, &mut gains, rows),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => scan_avx2(sheet, support, &mut gains, rows),
                _ => scan(sheet, support, &mut gains, rows),
            }
        }
        gains
    };
    if rows * sheet.classes < WORTH {
        return part(0..rows);
    }
    let piece = rows.div_ceil(rayon::current_num_threads()).next_multiple_of(PANEL);
    let starts: Vec<usize> = (0..rows).step_by(piece).collect();
    let parts: Vec<Gains> = starts.into_par_iter().map(|start| part(start..(start + piece).min(rows))).collect();
    let mut gains = none;
    parts.iter().for_each(|part| gains.merge(part));
    gains
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
fn scan_avx512(sheet: &Sheet, support: &Support, gains: &mut Gains, rows: Range<usize>) {
    scan(sheet, support, gains, rows);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn scan_avx2(sheet: &Sheet, support: &Support, gains: &mut Gains, rows: Range<usize>) {
    scan(sheet, support, gains, rows);
}

/// Takes the moves in some rows, which begin with a panel, into account.
#[inline(always)]
fn scan(sheet: &Sheet, support: &Support, gains: &mut Gains, rows: Range<usize>) {
    let (k, width) = (sheet.classes, gains.width);
    // the padding never gains
    let mut scores = vec![f64::NEG_INFINITY; PANEL * width];
    for first in rows.clone().step_by(PANEL) {
        for class in 0..k {
            let h = &sheet.h[(first * k + class * PANEL)..][..PANEL];
            for lane in 0..PANEL {
                scores[lane * width + class] = h[lane];
            }
        }
        for lane in 0..PANEL.min(rows.end - first) {
            let row = first + lane;
            let tiny = TINY * sheet.total[row];
            let (q, knots) = (&sheet.of(&sheet.q, row)[..k], &sheet.of(&sheet.knots, row)[..k]);
            let raise = &mut scores[lane * width..][..width];
            for class in 0..k {
                raise[class] -= if q[class] >= knots[class] - tiny { 1.0 } else { 0.0 };
            }
            for from in support.of(row) {
                let lower = sheet.lower(row, from);
                let own = std::mem::replace(&mut raise[from], f64::NEG_INFINITY);
                let values = &mut gains.value[from * width..][..width];
                let rows = &mut gains.row[from * width..][..width];
                for to in 0..width {
                    let gain = raise[to] - lower;
                    rows[to] = if gain > values[to] { row as u64 } else { rows[to] };
                    values[to] = if gain > values[to] { gain } else { values[to] };
                }
                raise[from] = own;
            }
        }
    }
}
