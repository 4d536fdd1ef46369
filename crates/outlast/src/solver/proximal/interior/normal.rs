//! The normal equations of a step, in as many unknowns as there are different rows:
//!
//! ```text
//! (W^-1 + sum_c B_c x_c x_c') v + X_F u_F = right,     X_F'v = balance
//! ```
//!
//! with v the change of V, B_c the spreads of a column less what its sum takes, and F the columns that cost nothing. With m > 1
//! functions the entries of a column sum to 0, so that the last is minus the sum of the others: f = N f^ with N = [I; -1'], v
//! stands for N'dV, and m - 1 numbers per row remain. Rows with equal x are one row here.

use super::super::columns::{Column, Columns};
use super::super::rows::Term;
use super::entries::Entries;
use super::terms::Terms;
use faer::linalg::matmul::matmul;
use faer::linalg::solvers::{Llt, Solve};
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};
use std::collections::HashMap;

/// Columns multiplied at a time.
const CHUNK: usize = 256;
/// Rows one thread works on.
const PANEL: usize = 128;
/// What a failing factorisation adds to the diagonal, relative to it.
const SHIFTS: [f64; 4] = [0.0, 1e-14, 1e-11, 1e-8];

/// W^-1 of rows without a term.
const STILL: f64 = 1e100;

/// Rows by their x.
pub(in super::super) struct Groups {
    /// Group of each row.
    of: Vec<u32>,
    /// One row of each group.
    leaders: Vec<u32>,
    /// Whether a row is the only one of its group that counts.
    alone: Vec<bool>,
}

impl Groups {
    pub(in super::super) fn new(columns: &Columns) -> Self {
        let n = columns.rows();
        let mut seen: HashMap<u64, Vec<u32>> = HashMap::new();
        let mut groups = Groups { of: Vec::with_capacity(n), leaders: Vec::new(), alone: Vec::new() };
        for row in 0..n {
            let alike = seen.entry(columns.hash_of(row)).or_default();
            let known = alike.iter().find(|&&group| columns.same(row, groups.leaders[group as usize] as usize));
            let group = known.copied().unwrap_or(groups.leaders.len() as u32);
            if group as usize == groups.leaders.len() {
                groups.leaders.push(row as u32);
                alike.push(group);
            }
            groups.of.push(group);
        }
        groups
    }

    /// Notes which rows have a term.
    pub(super) fn count(&mut self, terms: &[Term], rows: usize, functions: usize) {
        let mut counts = vec![0; self.leaders.len()];
        terms.iter().for_each(|term| counts[self.of[term.row] as usize] += 1);
        self.alone = vec![false; rows];
        for term in terms {
            // V of a row is told by N'V only where its sum over the functions is known
            let told = functions == 1 || term.pieces.iter().all(|piece| piece.plus.is_some() && piece.minus.is_some());
            self.alone[term.row] = told && counts[self.of[term.row] as usize] == 1;
        }
    }

    pub(super) fn alone(&self) -> &[bool] {
        &self.alone
    }

    pub(in super::super) fn len(&self) -> usize {
        self.leaders.len()
    }

    /// Sums over the rows of each group; function-major both.
    fn gather(&self, values: &[f64], functions: usize) -> Vec<f64> {
        let (n, count) = (self.of.len(), self.len());
        let mut out = vec![0.0; count * functions];
        for function in 0..functions {
            for (row, &group) in self.of.iter().enumerate() {
                out[function * count + group as usize] += values[function * n + row];
            }
        }
        out
    }

    /// What the leaders have.
    fn pick(&self, values: &[f64], functions: usize) -> Vec<f64> {
        let n = self.of.len();
        (0..functions)
            .flat_map(|function| self.leaders.iter().map(move |&row| values[function * n + row as usize]))
            .collect()
    }
}

/// m - 1 of m functions, or the only one.
pub(super) fn reduced(functions: usize) -> usize {
    functions.max(2) - 1
}

/// N'a for numbers by function, function-major.
fn reduce(values: Vec<f64>, functions: usize) -> Vec<f64> {
    if functions == 1 {
        return values;
    }
    let n = values.len() / functions;
    let last = &values[(functions - 1) * n..];
    (0..(functions - 1) * n).map(|at| values[at] - last[at % n]).collect()
}

/// The solution of the equations, by group, function-major.
pub(super) struct Step {
    /// k
    constant: Vec<f64>,
    v: Vec<f64>,
    /// u_F
    pub(super) free: Vec<f64>,
}

pub(super) struct Normal<'a> {
    groups: &'a Groups,
    functions: usize,
    /// W^-1 of each group, m^ x m^.
    inverses: Vec<f64>,
    factor: Llt<f64>,
    /// X_F, and the solutions of its columns.
    border: Mat<f64>,
    solved: Mat<f64>,
    schur: Option<Llt<f64>>,
}

impl<'a> Normal<'a> {
    /// `None` if the equations are singular.
    pub(super) fn new(
        columns: &Columns,
        groups: &'a Groups,
        terms: &Terms,
        entries: &Entries,
        free: &[usize],
        functions: usize,
    ) -> Option<Self> {
        let (size, count) = (reduced(functions), groups.len());
        let inverses = inverses(groups, terms, functions)?;
        let mut matrix = spread_matrix(columns, groups, entries, functions);
        for group in 0..count {
            for one in 0..size {
                for other in 0..=one {
                    matrix[(one * count + group, other * count + group)] +=
                        inverses[(group * size + one) * size + other];
                }
            }
        }
        let diagonal: Vec<f64> = (0..matrix.nrows()).map(|at| matrix[(at, at)]).collect();
        let factor = SHIFTS.iter().find_map(|shift| {
            diagonal.iter().enumerate().for_each(|(at, d)| matrix[(at, at)] = d * (1.0 + shift));
            matrix.llt(Side::Lower).ok()
        })?;
        let mut border = Mat::zeros(count * size, free.len() * size);
        for (place, &slot) in free.iter().enumerate() {
            let x = leaders_of(columns, groups, slot);
            for function in 0..size {
                let column = border.col_as_slice_mut(place * size + function);
                column[function * count..(function + 1) * count].copy_from_slice(&x);
            }
        }
        let solved = factor.solve(&border);
        let schur = border.transpose() * &solved;
        let schur = if free.is_empty() { None } else { Some(schur.llt(Side::Lower).ok()?) };
        Some(Normal { groups, functions, inverses, factor, border, solved, schur })
    }

    /// `constant` is dV at df = 0, `moved` is what f moves by at dV = 0, `lack` is N'G of the columns F.
    pub(super) fn solve(&self, constant: Vec<f64>, moved: &[f64], lack: &[f64]) -> Step {
        let constant = self.groups.gather(&reduce(constant, self.functions), reduced(self.functions));
        let mut right = self.soften(&constant);
        right.iter_mut().zip(self.leading(moved)).for_each(|(right, moved)| *right -= moved);
        let (v, free) = self.once(&right, lack);
        Step { constant, v, free }
    }

    /// Takes off a step what its equations are in error by; `moved` is what the coefficients move f by, `lack` what the columns
    /// F still lack.
    pub(super) fn refine(&self, step: &mut Step, moved: &[f64], lack: &[f64]) {
        let left: Vec<f64> = step.constant.iter().zip(&step.v).map(|(constant, v)| constant - v).collect();
        let mut error = self.soften(&left);
        error.iter_mut().zip(self.leading(moved)).for_each(|(error, moved)| *error -= moved);
        let (v, free) = self.once(&error, lack);
        step.v.iter_mut().zip(v).for_each(|(v, by)| *v += by);
        step.free.iter_mut().zip(free).for_each(|(free, by)| *free += by);
    }

    /// The first m^ functions at the leaders' rows.
    fn leading(&self, values: &[f64]) -> Vec<f64> {
        let size = reduced(self.functions);
        self.groups.pick(&values[..values.len() / self.functions * size], size)
    }

    /// W^-1 a
    fn soften(&self, values: &[f64]) -> Vec<f64> {
        let (size, count) = (reduced(self.functions), self.groups.len());
        let of = |at: usize| {
            let (one, group) = (at / count, at % count);
            let inverse = &self.inverses[(group * size + one) * size..][..size];
            inverse.iter().enumerate().map(|(other, a)| a * values[other * count + group]).sum()
        };
        (0..values.len()).map(of).collect()
    }

    fn once(&self, right: &[f64], lack: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut v = self.factor.solve(&Mat::from_fn(right.len(), 1, |at, _| right[at]));
        let mut free = Vec::new();
        if let Some(schur) = &self.schur {
            let pulled = self.border.transpose() * &v;
            let right = Mat::from_fn(lack.len(), 1, |at, _| pulled[(at, 0)] + lack[at]);
            let steps = schur.solve(&right);
            v -= &self.solved * &steps;
            free = steps.col_as_slice(0).to_vec();
        }
        (v.col_as_slice(0).to_vec(), free)
    }

    /// N'dV of a step at the leaders' rows, 0 elsewhere, function-major with m^ functions.
    pub(super) fn spread(&self, step: &Step) -> Vec<f64> {
        let (n, size, count) = (self.groups.of.len(), reduced(self.functions), self.groups.len());
        let mut spread = vec![0.0; n * size];
        for (group, &row) in self.groups.leaders.iter().enumerate() {
            for function in 0..size {
                spread[function * n + row as usize] = step.v[function * count + group];
            }
        }
        spread
    }

    /// df of a step by way of V: W^-1 (k - v).
    pub(super) fn change(&self, step: &Step) -> Vec<f64> {
        let (n, size, count) = (self.groups.of.len(), reduced(self.functions), self.groups.len());
        let left: Vec<f64> = step.constant.iter().zip(&step.v).map(|(constant, v)| constant - v).collect();
        let by = self.soften(&left);
        let mut change = vec![0.0; n * self.functions];
        for (row, &group) in self.groups.of.iter().enumerate() {
            for function in 0..size {
                change[function * n + row] = by[function * count + group as usize];
                if self.functions > 1 {
                    change[size * n + row] -= by[function * count + group as usize];
                }
            }
        }
        change
    }
}

/// (N'WN)^-1 of each group.
fn inverses(groups: &Groups, terms: &Terms, functions: usize) -> Option<Vec<f64>> {
    let (m, size) = (functions, reduced(functions));
    let mut blocks = vec![0.0; groups.len() * size * size];
    if terms.rows().any(|row| !groups.alone()[row]) {
        let curvature = terms.curvature();
        for (row, &group) in groups.of.iter().enumerate() {
            let block = &mut blocks[group as usize * size * size..][..size * size];
            add_reduced(&curvature[row * m * m..][..m * m], block, m);
        }
    }
    for block in blocks.chunks_exact_mut(size * size) {
        invert(block, size)?;
    }
    // dV with N'dV a unit vector: the sum over the functions is 0
    let basis: Vec<f64> =
        (0..size * m).map(|at| f64::from(at / m == at % m) - if m > 1 { 1.0 / m as f64 } else { 0.0 }).collect();
    for (t, row) in terms.rows().enumerate().filter(|(_, row)| groups.alone()[*row]) {
        let group = groups.of[row] as usize;
        terms.stiffness(t, &basis, &mut blocks[group * size * size..][..size * size]);
    }
    Some(blocks)
}

/// out += N'WN
fn add_reduced(block: &[f64], out: &mut [f64], functions: usize) {
    let (m, size, last) = (functions, reduced(functions), functions - 1);
    for one in 0..size {
        for other in 0..size {
            out[one * size + other] += block[one * m + other];
            if m > 1 {
                out[one * size + other] += block[last * m + last] - block[one * m + last] - block[last * m + other];
            }
        }
    }
}

/// A symmetric positive block to its inverse.
fn invert(block: &mut [f64], size: usize) -> Option<()> {
    let largest = (0..size).fold(0.0f64, |largest, at| largest.max(block[at * size + at]));
    if largest == 0.0 {
        // no term: V stays
        (0..size).for_each(|at| block[at * size + at] = STILL);
        return Some(());
    }
    (0..size).for_each(|at| block[at * size + at] += 1e-14 * largest);
    for pivot in 0..size {
        let p = 1.0 / block[pivot * size + pivot].max(1e-18 * largest);
        for row in (0..size).filter(|&row| row != pivot) {
            let factor = block[row * size + pivot] * p;
            for column in (0..size).filter(|&column| column != pivot) {
                block[row * size + column] -= factor * block[pivot * size + column];
            }
            block[row * size + pivot] = -factor;
        }
        (0..size).filter(|&column| column != pivot).for_each(|column| block[pivot * size + column] *= p);
        block[pivot * size + pivot] = p;
    }
    block.iter().all(|value| value.is_finite()).then_some(())
}

/// The leaders' values of a column.
fn leaders_of(columns: &Columns, groups: &Groups, slot: usize) -> Vec<f64> {
    match columns.slot(slot) {
        Column::Full(x) => groups.leaders.iter().map(|&row| x[row as usize]).collect(),
        Column::Sparse(rows, values) => {
            let mut out = vec![0.0; groups.len()];
            for (&row, &value) in rows.iter().zip(values) {
                out[groups.of[row as usize] as usize] = value;
            }
            out
        }
    }
}

/// An entry of B_c.
fn weight_of(entries: &Entries, place: usize, (one, other): (usize, usize), functions: usize) -> f64 {
    let spread = |function: usize| entries.spread(place * functions + function);
    let own = if one == other { spread(one) } else { 0.0 };
    if functions == 1 { own } else { own - spread(one) * spread(other) / (0..functions).map(spread).sum::<f64>() }
}

/// As [`spread_matrix`], from lists of non-zeros.
fn add_lists(matrix: &mut Mat<f64>, columns: &Columns, groups: &Groups, entries: &Entries, functions: usize) {
    let (size, count) = (reduced(functions), groups.len());
    for (place, &slot) in entries.slots.iter().enumerate() {
        let Column::Sparse(rows, values) = columns.slot(slot) else { continue };
        // rows with equal x are one
        let leads = |row: u32| groups.leaders[groups.of[row as usize] as usize] == row;
        let list: Vec<(usize, f64)> = (rows.iter().zip(values).filter(|(row, _)| leads(**row)))
            .map(|(&row, &x)| (groups.of[row as usize] as usize, x))
            .collect();
        for one in 0..size {
            for other in 0..=one {
                let weight = weight_of(entries, place, (one, other), functions);
                for &(j, x) in &list {
                    let column = &mut matrix.col_as_slice_mut(other * count + j)[one * count..(one + 1) * count];
                    // groups are in the order of their leaders: on the diagonal blocks the lower half will do
                    list.iter()
                        .filter(|(i, _)| one != other || *i >= j)
                        .for_each(|&(i, y)| column[i] += weight * x * y);
                }
            }
        }
    }
}

/// Multiplications of [`spread_matrix`] for some columns, at most.
pub(super) fn spread_work(columns: &Columns, groups: &Groups, most: f64, functions: usize) -> f64 {
    let size = reduced(functions) as f64;
    let each = match columns.is_sparse() {
        true => columns.squared_counts(),
        false => (groups.len() as f64).powi(2) * (columns.cols() as f64).min(most),
    };
    0.5 * size * (size + 1.0) * each
}

/// sum_c B_c x_c x_c', its lower half.
fn spread_matrix(columns: &Columns, groups: &Groups, entries: &Entries, functions: usize) -> Mat<f64> {
    let (m, size, count) = (functions, reduced(functions), groups.len());
    let mut matrix: Mat<f64> = Mat::zeros(count * size, count * size);
    if columns.is_sparse() {
        add_lists(&mut matrix, columns, groups, entries, functions);
        return matrix;
    }
    let places: Vec<usize> = (0..entries.slots.len()).collect();
    let mut plain = vec![0.0; count * CHUNK];
    let mut weighted = vec![0.0; count * CHUNK];
    for places in places.chunks(CHUNK) {
        for (&place, out) in places.iter().zip(plain.chunks_exact_mut(count)) {
            out.copy_from_slice(&leaders_of(columns, groups, entries.slots[place]));
        }
        for one in 0..size {
            for other in 0..=one {
                let each = places.iter().zip(plain.chunks_exact(count).zip(weighted.chunks_exact_mut(count)));
                for (&place, (x, out)) in each {
                    let weight = weight_of(entries, place, (one, other), m);
                    out.iter_mut().zip(x).for_each(|(out, x)| *out = weight * x);
                }
                let block = matrix.as_mut().submatrix_mut(one * count, other * count, count, count);
                let wide = places.len();
                let plain = MatRef::from_column_major_slice(&plain[..count * wide], count, wide);
                let weighted = MatRef::from_column_major_slice(&weighted[..count * wide], count, wide);
                add_lower(block, 0, weighted, plain);
            }
        }
    }
    for one in 0..size {
        for other in 0..one {
            for i in 0..count {
                for j in 0..i {
                    matrix[(one * count + j, other * count + i)] = matrix[(one * count + i, other * count + j)];
                }
            }
        }
    }
    matrix
}

/// Adds weighted plain' to rows of a square matrix from `first` on, up to the diagonal and a little beyond.
fn add_lower(out: MatMut<f64>, first: usize, weighted: MatRef<f64>, plain: MatRef<f64>) {
    let rows = out.nrows();
    if rows > PANEL {
        let half = rows / 2;
        let (top, bottom) = out.split_at_row_mut(half);
        let (above, below) = weighted.split_at_row(half);
        rayon::join(|| add_lower(top, first, above, plain), || add_lower(bottom, first + half, below, plain));
        return;
    }
    let width = first + rows;
    let part = out.get_mut(.., ..width);
    matmul(part, Accum::Add, weighted, plain.get(..width, ..).transpose(), 1.0, Par::Seq);
}
