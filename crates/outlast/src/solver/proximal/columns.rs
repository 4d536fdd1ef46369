//! The columns of the design in units that suit floating point, and copies of those in the working set.
//!
//! A column x_j is seen as x_j / u_j with u_j the power of two nearest to its root mean square; its coefficient is u_j w_j
//! and its rate is rate_j / u_j. Powers of two are exact, and columns of any scale run through the same numbers. The intercept is a
//! column of ones.
//!
//! The working set is held by columns: densely, or as (row, value) lists where the design is sparse. All other columns are
//! only seen by [`Columns::pull`], one pass over the rows of the design. Vectors over rows and functions are
//! function-major here: entry (row, function) at function n + row.

use crate::data::Design;
use crate::linalg::{Isa, dot};
use rayon::prelude::*;

/// Share of non-zeros up to which a sparse design is kept sparse.
const SPARSE: f64 = 0.2;
/// Multiplications from which a second thread pays.
const PARALLEL: usize = 100_000;
const CHUNK: usize = 4096;
const NOWHERE: u32 = u32::MAX;
/// Most pieces of a sum over rows, and how many times the sum of its results a piece must be worth.
const PIECES: usize = 8;
const WORTH: usize = 16;

pub(super) enum Column {
    Full(Vec<f64>),
    /// Rows ascending, and their values.
    Sparse(Vec<u32>, Vec<f64>),
}

pub(super) struct Columns<'a> {
    x: &'a dyn Design,
    /// 1 / u_j
    shrink: Vec<f64>,
    intercept: bool,
    sparse: bool,
    /// Column of each slot of the working set; d is the intercept.
    members: Vec<usize>,
    slots: Vec<Column>,
    /// Slot of each column, or `NOWHERE`.
    place: Vec<u32>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(x: &'a dyn Design, intercept: bool) -> Self {
        let (n, d) = (x.rows(), x.cols());
        Columns {
            x,
            shrink: units(x),
            intercept,
            sparse: x.is_sparse() && (x.stored() as f64) < SPARSE * n as f64 * d as f64,
            members: Vec::new(),
            slots: Vec::new(),
            place: vec![NOWHERE; d + 1],
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.x.rows()
    }

    /// d, the intercept not counted.
    pub(super) fn cols(&self) -> usize {
        self.x.cols()
    }

    pub(super) fn has_intercept(&self) -> bool {
        self.intercept
    }

    pub(super) fn is_sparse(&self) -> bool {
        self.sparse
    }

    /// Size of the working set.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn members(&self) -> &[usize] {
        &self.members
    }

    pub(super) fn slot(&self, slot: usize) -> &Column {
        &self.slots[slot]
    }

    pub(super) fn contains(&self, column: usize) -> bool {
        self.place[column] != NOWHERE
    }

    /// 1 / u_j; 1 for the intercept.
    pub(super) fn shrink(&self, column: usize) -> f64 {
        self.shrink.get(column).copied().unwrap_or(1.0)
    }

    /// Adds columns to the end of the working set, in the order given; those in it already are left out.
    pub(super) fn add(&mut self, columns: &[usize]) {
        let first = self.slots.len();
        for &column in columns {
            if !self.contains(column) {
                self.place[column] = self.members.len() as u32;
                self.members.push(column);
            }
        }
        let fresh = self.members[first..].to_vec();
        if self.sparse { self.add_sparse(first, &fresh) } else { self.add_full(&fresh) }
    }

    fn add_full(&mut self, fresh: &[usize]) {
        let (n, d) = (self.rows(), self.cols());
        let mut values: Vec<Vec<f64>> = fresh.iter().map(|_| Vec::with_capacity(n)).collect();
        let mut scratch = Vec::new();
        let step = (32_768 / d.max(1)).clamp(1, 512);
        for start in (0..n).step_by(step) {
            let rows = start..(start + step).min(n);
            let count = rows.len();
            let block = self.x.block(rows, &mut scratch);
            for (&column, out) in fresh.iter().zip(&mut values) {
                if column == d {
                    out.extend(std::iter::repeat_n(1.0, count));
                } else {
                    let shrink = self.shrink[column];
                    out.extend((0..count).map(|row| block[row * d + column] * shrink));
                }
            }
        }
        self.slots.extend(values.into_iter().map(Column::Full));
    }

    fn add_sparse(&mut self, first: usize, fresh: &[usize]) {
        let (n, d) = (self.rows(), self.cols());
        let mut lists: Vec<(Vec<u32>, Vec<f64>)> = fresh.iter().map(|_| Default::default()).collect();
        for row in 0..n {
            let (place, shrink) = (&self.place, &self.shrink);
            self.x.for_each(row, &mut |column, value| {
                let slot = place[column];
                if slot != NOWHERE && slot as usize >= first && value != 0.0 {
                    let list = &mut lists[slot as usize - first];
                    list.0.push(row as u32);
                    list.1.push(value * shrink[column]);
                }
            });
        }
        if let Some(at) = fresh.iter().position(|&column| column == d) {
            lists[at] = ((0..n as u32).collect(), vec![1.0; n]);
        }
        self.slots.extend(lists.into_iter().map(|(rows, values)| Column::Sparse(rows, values)));
    }

    /// A hash of a row of the design.
    pub(super) fn hash_of(&self, row: usize) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        self.x.for_each(row, &mut |column, value| {
            if value != 0.0 {
                hash = (hash ^ column as u64 ^ value.to_bits().rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                hash ^= hash >> 29;
            }
        });
        hash
    }

    /// Whether two rows of the design are equal.
    pub(super) fn same(&self, one: usize, other: usize) -> bool {
        let stored = |row: usize| {
            let mut entries = Vec::new();
            self.x.for_each(row, &mut |column, value| {
                if value != 0.0 {
                    entries.push((column, value));
                }
            });
            entries
        };
        stored(one) == stored(other)
    }

    /// Keeps the slots that are flagged.
    pub(super) fn retain(&mut self, keep: &[bool]) {
        let mut flags = keep.iter();
        self.slots.retain(|_| *flags.next().unwrap_or(&true));
        for (&column, _) in self.members.iter().zip(keep).filter(|(_, keep)| !**keep) {
            self.place[column] = NOWHERE;
        }
        let mut flags = keep.iter();
        self.members.retain(|_| *flags.next().unwrap_or(&true));
        for (slot, &column) in self.members.iter().enumerate() {
            self.place[column] = slot as u32;
        }
    }

    /// x_s . v_j for each slot s and function j, slot-major.
    pub(super) fn dots(&self, v: &[f64], functions: usize) -> Vec<f64> {
        let n = self.rows();
        let of = |at: usize| {
            let v = &v[at % functions * n..(at % functions + 1) * n];
            match &self.slots[at / functions] {
                Column::Full(x) => dot(x, v),
                Column::Sparse(rows, values) => rows.iter().zip(values).map(|(&row, x)| x * v[row as usize]).sum(),
            }
        };
        let count = self.len() * functions;
        if n * count < PARALLEL {
            return (0..count).map(of).collect();
        }
        (0..count).into_par_iter().with_min_len(4).map(of).collect()
    }

    /// out_j += sum_s coefficients_sj x_s; coefficients slot-major, out function-major.
    pub(super) fn multiply_add(&self, coefficients: &[f64], functions: usize, out: &mut [f64]) {
        let n = self.rows();
        if n == 0 {
            return;
        }
        let isa = Isa::detect();
        let add = |function: usize, first: usize, out: &mut [f64]| {
            for (slot, column) in self.slots.iter().enumerate() {
                let a = coefficients[slot * functions + function];
                if a == 0.0 {
                    continue;
                }
                match column {
                    Column::Full(x) => {
                        let x = &x[first..first + out.len()];
                        isa.run(
                            #[inline(always)]
                            || out.iter_mut().zip(x).for_each(|(out, x)| *out += a * x),
                        );
                    }
                    // sparse lists are never cut
                    Column::Sparse(rows, values) => {
                        rows.iter().zip(values).for_each(|(&row, x)| out[row as usize] += a * x);
                    }
                }
            }
        };
        if self.sparse || n * self.len() * functions < PARALLEL {
            out.chunks_exact_mut(n).enumerate().for_each(|(function, out)| add(function, 0, out));
        } else {
            for (function, out) in out.chunks_exact_mut(n).enumerate() {
                out.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, out)| add(function, chunk * CHUNK, out));
            }
        }
    }

    /// Entries of the working set.
    pub(super) fn stored(&self) -> f64 {
        let of = |column: &Column| match column {
            Column::Full(values) => values.len(),
            Column::Sparse(rows, _) => rows.len(),
        };
        self.slots.iter().map(of).sum::<usize>() as f64
    }

    /// The sum over all columns of the square of how many entries they have.
    pub(super) fn squared_counts(&self) -> f64 {
        by_column(self.x, |_, _| 1.0, |a, b| a + b).iter().map(|count| count * count).sum()
    }

    /// Multiplications of a pass over X.
    pub(super) fn pass(&self, functions: usize) -> f64 {
        (self.x.stored() * functions) as f64
    }

    /// x_c . v_j for every column c of the design, function-major; the intercept not counted.
    pub(super) fn pull(&self, v: &[f64], functions: usize) -> Vec<f64> {
        let (n, d) = (self.rows(), self.cols());
        let size = functions * d;
        let pieces = pieces(self.x.stored() * functions, size);
        let length = n.div_ceil(pieces).max(1);
        let of_piece = |piece: usize| {
            let mut sum = vec![0.0; size];
            for row in piece * length..((piece + 1) * length).min(n) {
                for function in 0..functions {
                    let v = v[function * n + row];
                    if v != 0.0 {
                        self.x.add_scaled(row, v, &mut sum[function * d..(function + 1) * d]);
                    }
                }
            }
            sum
        };
        let mut parts = (0..pieces).into_par_iter().map(of_piece).collect::<Vec<_>>().into_iter();
        let mut total = parts.next().unwrap_or_default();
        for part in parts {
            total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        }
        for sums in total.chunks_exact_mut(d.max(1)) {
            sums.iter_mut().zip(&self.shrink).for_each(|(sum, shrink)| *sum *= shrink);
        }
        total
    }
}

/// 1 / u_j: u_j the power of two nearest to the root mean square of a column, 1 for a column of zeros.
pub(in crate::solver) fn units(x: &dyn Design) -> Vec<f64> {
    let power =
        |value: f64| if value > 0.0 { 2f64.powi(value.log2().round().clamp(-1000.0, 1000.0) as i32) } else { 1.0 };
    let largest = by_column(x, |_, value| value.abs(), f64::max);
    let first: Vec<f64> = largest.iter().map(|&value| 1.0 / power(value)).collect();
    let squares = by_column(x, |column, value| (value * first[column]).powi(2), |a, b| a + b);
    let n = x.rows().max(1) as f64;
    first.iter().zip(squares).map(|(first, sum)| first / power((sum / n).sqrt())).collect()
}

/// In how many pieces a sum over rows is cut: by its size alone, so that it is the same on any number of threads.
pub(in crate::solver) fn pieces(work: usize, results: usize) -> usize {
    if work < PARALLEL { 1 } else { (work / (WORTH * results.max(1))).clamp(1, PIECES) }
}

/// Folds a function of the entries of each column.
pub(in crate::solver) fn by_column(
    x: &dyn Design,
    of: impl Fn(usize, f64) -> f64 + Sync,
    fold: impl Fn(f64, f64) -> f64 + Sync,
) -> Vec<f64> {
    let (n, d) = (x.rows(), x.cols());
    let pieces = pieces(x.stored(), d);
    let length = n.div_ceil(pieces).max(1);
    let parts: Vec<Vec<f64>> = (0..pieces)
        .into_par_iter()
        .map(|piece| {
            let (mut sums, mut scratch) = (vec![0.0; d], Vec::new());
            for row in piece * length..((piece + 1) * length).min(n) {
                if x.is_sparse() {
                    x.for_each(row, &mut |column, value| sums[column] = fold(sums[column], of(column, value)));
                    continue;
                }
                let entries = sums.iter_mut().zip(x.block(row..row + 1, &mut scratch)).enumerate();
                entries.for_each(|(column, (sum, &value))| *sum = fold(*sum, of(column, value)));
            }
            sums
        })
        .collect();
    let mut parts = parts.into_iter();
    let mut total = parts.next().unwrap_or_default();
    for part in parts {
        total.iter_mut().zip(part).for_each(|(total, part)| *total = fold(*total, part));
    }
    total
}
