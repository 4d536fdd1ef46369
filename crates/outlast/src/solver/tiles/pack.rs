//! The two packed layouts.

use super::buffer::Aligned;
use super::coefficients::Coefficients;
use super::prepared::{Map, Prepared, Storage};
use super::{GROUP, PANEL};
use rayon::prelude::*;

/// Offset of a padding row: with the rbf map its kernel values are exactly 0.
const PADDING: f32 = -1e30;

/// The long side: panels of 64 rows, feature-major inside a panel.
pub(crate) struct Panels {
    count: usize,
    cols: usize,
    values: Aligned,
    offsets: Aligned,
}

/// One panel: `cols` x 64 values and 64 offsets.
#[derive(Clone, Copy)]
pub(crate) struct Panel<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) offsets: &'a [f32],
}

impl Panels {
    /// Packs the rows listed.
    pub(crate) fn new(prepared: &Prepared, rows: &[u32]) -> Panels {
        Panels::with_room(prepared, rows, 0)
    }

    /// Packs the rows listed, with at least `room` padding rows behind them.
    pub(crate) fn with_room(prepared: &Prepared, rows: &[u32], room: usize) -> Panels {
        let count = (rows.len() + room).div_ceil(PANEL);
        let cols = prepared.cols;
        let mut values = Aligned::zeroed(count * PANEL * cols);
        let mut offsets = Aligned::zeroed(count * PANEL);
        let padding = if prepared.map == Map::Exp2 { PADDING } else { 0.0 };
        offsets.fill(padding);
        let panels = values.par_chunks_exact_mut(PANEL * cols).zip(offsets.par_chunks_exact_mut(PANEL));
        panels.zip(rows.par_chunks(PANEL)).with_min_len(4).for_each(|((values, offsets), rows)| {
            for (lane, &row) in rows.iter().enumerate() {
                offsets[lane] = prepared.offsets[row as usize];
                let (columns, entries) = prepared.row(row as usize);
                match prepared.storage {
                    Storage::Dense(_) => {
                        for (column, &entry) in entries.iter().enumerate() {
                            values[column * PANEL + lane] = entry;
                        }
                    }
                    Storage::Sparse { .. } => {
                        for (&column, &entry) in columns.iter().zip(entries) {
                            values[column as usize * PANEL + lane] = entry;
                        }
                    }
                }
            }
        });
        Panels { count, cols, values, offsets }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Rows with padding.
    pub(crate) fn padded(&self) -> usize {
        self.count() * PANEL
    }

    pub(crate) fn panel(&self, panel: usize) -> Panel<'_> {
        let size = PANEL * self.cols;
        Panel {
            values: &self.values[panel * size..(panel + 1) * size],
            offsets: &self.offsets[panel * PANEL..(panel + 1) * PANEL],
        }
    }
}

/// The short side: groups of [`GROUP`] dense rows, or pairs of sparse rows of about equal length.
pub(crate) struct Block {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) groups: usize,
    pub(crate) offsets: Vec<f32>,
    pub(crate) coefficients: Vec<f32>,
    /// How many functions `terms` go to.
    pub(crate) functions: usize,
    /// Slot s has terms[starts[s]..starts[s + 1]]: 64 times a function's number, and its coefficient.
    pub(crate) starts: Vec<usize>,
    pub(crate) terms: Vec<(u32, f32)>,
    pub(crate) entries: Entries,
}

pub(crate) enum Entries {
    /// values[(group * cols + column) * GROUP + member]
    Dense(Aligned),
    /// Slot s holds row order[s]; pair g has entries[2 * starts[g]..2 * starts[g + 1]], the two rows alternating, each entry
    /// the position of its column in a panel and its value.
    Sparse { order: Vec<u32>, starts: Vec<usize>, entries: Vec<(u32, f32)> },
}

impl Block {
    /// Packs the rows listed with their coefficients (none: a block that is only stored).
    pub(crate) fn new(prepared: &Prepared, rows: &[u32], coefficients: &[f32]) -> Block {
        let mut block = Block::without_coefficients(prepared, rows);
        for slot in 0..rows.len() {
            block.coefficients[slot] = coefficients.get(block.position(slot)).copied().unwrap_or(0.0);
        }
        block
    }

    /// Packs the rows listed with their coefficients in several functions, each divided by `unit`; the first row is row
    /// `first` of `coefficients`.
    pub(crate) fn spread(
        prepared: &Prepared,
        rows: &[u32],
        coefficients: &Coefficients,
        first: usize,
        unit: f64,
    ) -> Block {
        let mut block = Block::without_coefficients(prepared, rows);
        block.functions = coefficients.functions();
        block.starts = Vec::with_capacity(block.offsets.len() + 1);
        block.starts.push(0);
        for slot in 0..block.offsets.len() {
            if slot < rows.len() {
                let own = coefficients.row(first + block.position(slot));
                let scaled = own.iter().map(|&(function, c)| (function * PANEL as u32, (c / unit) as f32));
                block.terms.extend(scaled);
            }
            block.starts.push(block.terms.len());
        }
        block
    }

    /// Which of the rows listed a slot holds.
    fn position(&self, slot: usize) -> usize {
        match &self.entries {
            Entries::Dense(_) => slot,
            Entries::Sparse { order, .. } => order[slot] as usize,
        }
    }

    fn without_coefficients(prepared: &Prepared, rows: &[u32]) -> Block {
        let order: Vec<u32> = match prepared.storage {
            Storage::Dense(_) => (0..rows.len() as u32).collect(),
            Storage::Sparse { .. } => {
                let mut order: Vec<u32> = (0..rows.len() as u32).collect();
                order.sort_by_key(|&slot| prepared.row(rows[slot as usize] as usize).1.len());
                order
            }
        };
        let size = if matches!(prepared.storage, Storage::Dense(_)) { GROUP } else { 2 };
        let groups = rows.len().div_ceil(size);
        let mut offsets = vec![if prepared.map == Map::Exp2 { PADDING } else { 0.0 }; groups * size];
        for (slot, &position) in order.iter().enumerate() {
            offsets[slot] = prepared.offsets[rows[position as usize] as usize];
        }
        let entries = match prepared.storage {
            Storage::Dense(_) => Entries::Dense(pack_dense(prepared, rows, groups)),
            Storage::Sparse { .. } => pack_sparse(prepared, rows, order, groups),
        };
        Block {
            rows: rows.len(),
            cols: prepared.cols,
            groups,
            coefficients: vec![0.0; offsets.len()],
            offsets,
            functions: 0,
            starts: Vec::new(),
            terms: Vec::new(),
            entries,
        }
    }
}

fn pack_dense(prepared: &Prepared, rows: &[u32], groups: usize) -> Aligned {
    let cols = prepared.cols;
    let mut values = Aligned::zeroed(groups * GROUP * cols);
    for (group, rows) in values.chunks_exact_mut(GROUP * cols).zip(rows.chunks(GROUP)) {
        for (member, &row) in rows.iter().enumerate() {
            for (column, &value) in prepared.row(row as usize).1.iter().enumerate() {
                group[column * GROUP + member] = value;
            }
        }
    }
    values
}

fn pack_sparse(prepared: &Prepared, rows: &[u32], order: Vec<u32>, groups: usize) -> Entries {
    let (mut starts, mut entries) = (vec![0], Vec::new());
    for group in 0..groups {
        let member = |offset: usize| match order.get(2 * group + offset) {
            Some(&slot) => prepared.row(rows[slot as usize] as usize),
            None => (&[][..], &[][..]),
        };
        let pair = [member(0), member(1)];
        for position in 0..pair[0].1.len().max(pair[1].1.len()) {
            for (columns, values) in pair {
                entries.push(match values.get(position) {
                    Some(&value) => (columns[position] * PANEL as u32, value),
                    None => (0, 0.0),
                });
            }
        }
        starts.push(entries.len() / 2);
    }
    Entries::Sparse { order, starts, entries }
}
