//! Linear equations that the quadratic bound (`lqa`) and the interior point method (`smooth`) share:
//!
//! ```text
//! V = k - W f,     f = X w + b,     w = B X'V,     column sums of V equal over functions (0 for one) if b is free
//! ```
//!
//! in V and b, W >= 0 diagonal over rows and functions and B_c = D_c - D_c 11'D_c / 1'D_c over the functions of a column c (D_c for
//! one function), D_c = diag(bends) >= 0: the minimum of a quadratic whose second derivatives are those of the penalty, 1/bends, and of
//! the rows, W. B_c = L_c L_c', and the smaller of two systems is factored:
//!
//! ```text
//! (I + L'X'W X L) v = L'X'k  (w = L v; d max(1, m-1) unknowns)          (W^-1 + X B X') V = W^-1 k  (one unknown per term)
//! ```
//!
//! each with b eliminated. Cost: n d times the number of unknowns, and a Cholesky factor. Vectors over rows are function-major.

use crate::data::Design;
use crate::linalg::Factor;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Entries of a block of rows.
const BLOCK: usize = 1 << 17;

/// V, w (functions x columns) and b.
pub(super) struct Found {
    pub(super) v: Vec<f64>,
    pub(super) weights: Vec<f64>,
    pub(super) intercepts: Vec<f64>,
}

/// The equations for given second derivatives, factored.
pub(super) struct Normal<'a> {
    x: &'a dyn Design,
    functions: usize,
    intercept: bool,
    bends: &'a [f64],
    curvature: &'a [f64],
    form: Form,
}

enum Form {
    /// L of each column, and the factor of the equations in v and b.
    Columns { roots: Vec<f64>, factor: Factor },
    /// The terms with W > 0, the factor of their equations, the solutions of b's columns, and the factor of what is left for b.
    Terms { terms: Vec<usize>, factor: Factor, border: Vec<Vec<f64>>, solved: Vec<Vec<f64>>, rest: Option<Factor> },
}

/// Unknowns of the smaller system.
pub(super) fn unknowns(rows: usize, cols: usize, functions: usize) -> usize {
    let free = reduced(functions);
    (cols * free).min(rows * free)
}

/// m - 1 of m functions, or the only one.
fn reduced(functions: usize) -> usize {
    functions.max(2) - 1
}

impl<'a> Normal<'a> {
    /// `bends` is functions x columns, `curvature` functions x rows. `None` if a number is not finite.
    pub(super) fn new(
        x: &'a dyn Design,
        functions: usize,
        intercept: bool,
        bends: &'a [f64],
        curvature: &'a [f64],
    ) -> Option<Self> {
        let terms: Vec<usize> = (0..curvature.len()).filter(|&at| curvature[at] > 0.0).collect();
        let mut normal = Normal { x, functions, intercept, bends, curvature, form: Form::nothing()? };
        normal.form =
            if x.cols() * reduced(functions) <= terms.len() { normal.by_columns()? } else { normal.by_terms(terms)? };
        Some(normal)
    }

    /// Solves for k (function-major); `balance` is what N'1'V shall be, m - 1 numbers or 1.
    pub(super) fn solve(&self, k: &[f64], balance: &[f64]) -> Found {
        match &self.form {
            Form::Columns { roots, factor } => self.solve_columns(roots, factor, k, balance),
            Form::Terms { terms, factor, border, solved, rest } => {
                let right: Vec<f64> = terms.iter().map(|&at| k[at] / self.curvature[at]).collect();
                let mut v = factor.solve(&right);
                let mut free = Vec::new();
                if let Some(rest) = rest {
                    let lack: Vec<f64> = border
                        .iter()
                        .zip(balance)
                        .map(|(column, goal)| crate::linalg::dot(column, &v) - goal)
                        .collect();
                    free = rest.solve(&lack);
                    for (solved, by) in solved.iter().zip(&free) {
                        v.iter_mut().zip(solved).for_each(|(v, s)| *v -= by * s);
                    }
                }
                // terms without curvature keep their constant
                let mut all = k.to_vec();
                terms.iter().zip(&v).for_each(|(&at, &v)| all[at] = v);
                let weights = self.combine(&all);
                Found { v: all, weights, intercepts: whole(&free, self.functions) }
            }
        }
    }

    /// B X'V, functions x columns.
    fn combine(&self, v: &[f64]) -> Vec<f64> {
        let (m, d) = (self.functions, self.x.cols());
        let mut u = pull(self.x, v, m);
        for column in 0..d {
            let bend = |j: usize| self.bends[j * d + column];
            let total: f64 = (0..m).map(bend).sum();
            let mean = if m == 1 || total == 0.0 {
                0.0
            } else {
                (0..m).map(|j| bend(j) * u[j * d + column]).sum::<f64>() / total
            };
            (0..m).for_each(|j| u[j * d + column] = bend(j) * (u[j * d + column] - mean));
        }
        u
    }

    /// L of every column: m x r, column after column.
    fn roots(&self) -> Vec<f64> {
        let (m, d, r) = (self.functions, self.x.cols(), reduced(self.functions));
        let mut roots = vec![0.0; d * m * r];
        for (column, root) in roots.chunks_exact_mut(m * r).enumerate() {
            let sizes: Vec<f64> = (0..m).map(|j| self.bends[j * d + column].max(0.0).sqrt()).collect();
            if m == 1 {
                root[0] = sizes[0];
                continue;
            }
            let norm = crate::linalg::dot(&sizes, &sizes).sqrt();
            if norm == 0.0 {
                continue;
            }
            // the reflection that takes the unit vector along D^1/2 1 to the last axis; its other columns are orthogonal to it
            let mut axis: Vec<f64> = sizes.iter().map(|s| s / norm).collect();
            axis[m - 1] += 1.0;
            let square = crate::linalg::dot(&axis, &axis);
            for j in 0..m {
                for a in 0..r {
                    root[j * r + a] = sizes[j] * (f64::from(j == a) - 2.0 * axis[j] * axis[a] / square);
                }
            }
        }
        roots
    }

    fn by_columns(&self) -> Option<Form> {
        let (m, d, r, n) = (self.functions, self.x.cols(), reduced(self.functions), self.x.rows());
        let roots = self.roots();
        let free = if self.intercept { r } else { 0 };
        let size = d * r + free;
        let mut matrix = vec![0.0; size * size];
        for j in 0..m {
            // X'W_j X with a column of ones at the end
            let weights = &self.curvature[j * n..(j + 1) * n];
            let gram = columns_gram(self.x, weights);
            let wide = d + 1;
            let root = |column: usize, a: usize| match column < d {
                true => roots[(column * m + j) * r + a],
                false => intercept_entry(j, a, m),
            };
            let last = if free > 0 { wide } else { d };
            for one in 0..last {
                for other in 0..=one {
                    let g = gram[one * wide + other];
                    if g == 0.0 {
                        continue;
                    }
                    for a in 0..r {
                        let by = g * root(one, a);
                        for b in 0..r {
                            let (row, column) = (one * r + a, other * r + b);
                            if column <= row {
                                matrix[row * size + column] += by * root(other, b);
                            }
                        }
                    }
                }
            }
        }
        (0..d * r).for_each(|at| matrix[at * size + at] += 1.0);
        Some(Form::Columns { roots, factor: Factor::nearest(&matrix, size, size)? })
    }

    fn solve_columns(&self, roots: &[f64], factor: &Factor, k: &[f64], balance: &[f64]) -> Found {
        let (m, d, r, n) = (self.functions, self.x.cols(), reduced(self.functions), self.x.rows());
        let free = if self.intercept { r } else { 0 };
        let pulled = pull(self.x, k, m);
        let mut right = vec![0.0; d * r + free];
        for (column, root) in roots.chunks_exact(m * r).enumerate() {
            for a in 0..r {
                right[column * r + a] = (0..m).map(|j| root[j * r + a] * pulled[j * d + column]).sum();
            }
        }
        for a in 0..free {
            let sum: f64 = (0..m).map(|j| intercept_entry(j, a, m) * k[j * n..(j + 1) * n].iter().sum::<f64>()).sum();
            right[d * r + a] = sum - balance[a];
        }
        let solution = factor.solve(&right);
        let mut weights = vec![0.0; m * d];
        for (column, root) in roots.chunks_exact(m * r).enumerate() {
            for j in 0..m {
                weights[j * d + column] = (0..r).map(|a| root[j * r + a] * solution[column * r + a]).sum();
            }
        }
        let intercepts = whole(&solution[d * r..], m);
        let f = push(self.x, &weights, &intercepts, m);
        let v = k.iter().zip(f.iter().zip(self.curvature)).map(|(k, (f, w))| k - w * f).collect();
        Found { v, weights, intercepts }
    }

    fn by_terms(&self, terms: Vec<usize>) -> Option<Form> {
        let (m, d, n) = (self.functions, self.x.cols(), self.x.rows());
        let size = terms.len();
        let mut matrix = vec![0.0; size * size];
        for one in 0..m {
            for other in 0..=one {
                let weight = |column: usize| {
                    let bend = |j: usize| self.bends[j * d + column];
                    let total: f64 = (0..m).map(bend).sum();
                    let own = if one == other { bend(one) } else { 0.0 };
                    if m == 1 || total == 0.0 { own } else { own - bend(one) * bend(other) / total }
                };
                let weights: Vec<f64> = (0..d).map(weight).collect();
                let gram = rows_gram(self.x, &weights);
                for (row, &a) in terms.iter().enumerate() {
                    for (column, &b) in terms.iter().enumerate().take(row + 1) {
                        if a / n == one && b / n == other {
                            let (i, l) = (a % n, b % n);
                            matrix[row * size + column] += gram[i.max(l) * n + i.min(l)];
                        }
                    }
                }
            }
        }
        terms.iter().enumerate().for_each(|(row, &at)| matrix[row * size + row] += 1.0 / self.curvature[at]);
        let factor = Factor::nearest(&matrix, size, size)?;
        let (mut border, mut solved) = (Vec::new(), Vec::new());
        let mut rest = None;
        if self.intercept {
            let r = reduced(m);
            for a in 0..r {
                let column: Vec<f64> = terms.iter().map(|&at| intercept_entry(at / n, a, m)).collect();
                solved.push(factor.solve(&column));
                border.push(column);
            }
            let entries: Vec<f64> = (0..r * r).map(|at| crate::linalg::dot(&border[at / r], &solved[at % r])).collect();
            rest = Some(Factor::nearest(&entries, r, r)?);
        }
        Some(Form::Terms { terms, factor, border, solved, rest })
    }
}

impl Form {
    /// A form of no unknowns.
    fn nothing() -> Option<Form> {
        let factor = Factor::nearest(&[], 0, 0)?;
        Some(Form::Terms { terms: Vec::new(), factor, border: Vec::new(), solved: Vec::new(), rest: None })
    }
}

/// N = [I; -1'] of the intercepts, or 1.
fn intercept_entry(function: usize, a: usize, functions: usize) -> f64 {
    match function {
        _ if functions == 1 => 1.0,
        j if j == a => 1.0,
        j if j + 1 == functions => -1.0,
        _ => 0.0,
    }
}

/// N b
fn whole(free: &[f64], functions: usize) -> Vec<f64> {
    let entry = |j: usize| free.iter().enumerate().map(|(a, b)| intercept_entry(j, a, functions) * b).sum();
    (0..functions).map(entry).collect()
}

/// X'V, functions x columns, of V function-major.
pub(super) fn pull(x: &dyn Design, v: &[f64], functions: usize) -> Vec<f64> {
    let (n, d) = (x.rows(), x.cols());
    let pieces = if x.stored() * functions < 100_000 { 1 } else { rayon::current_num_threads().clamp(1, 8) };
    let length = n.div_ceil(pieces).max(1);
    let of_piece = |piece: usize| {
        let mut sum = vec![0.0; functions * d];
        for row in piece * length..((piece + 1) * length).min(n) {
            for function in 0..functions {
                let v = v[function * n + row];
                if v != 0.0 {
                    x.add_scaled(row, v, &mut sum[function * d..(function + 1) * d]);
                }
            }
        }
        sum
    };
    let parts: Vec<Vec<f64>> = (0..pieces).into_par_iter().map(of_piece).collect();
    let mut parts = parts.into_iter();
    let mut total = parts.next().unwrap_or_default();
    parts.for_each(|part| total.iter_mut().zip(part).for_each(|(total, part)| *total += part));
    total
}

/// X w + b, function-major.
pub(super) fn push(x: &dyn Design, weights: &[f64], intercepts: &[f64], functions: usize) -> Vec<f64> {
    let (n, d) = (x.rows(), x.cols());
    let of = |at: usize| {
        let (function, row) = (at / n, at % n);
        x.dot(row, &weights[function * d..(function + 1) * d]) + intercepts[function]
    };
    match x.stored() * functions < 100_000 {
        true => (0..n * functions).map(of).collect(),
        false => (0..n * functions).into_par_iter().with_min_len(64).map(of).collect(),
    }
}

/// [X 1]' diag(weights) [X 1], row-major, both halves.
fn columns_gram(x: &dyn Design, weights: &[f64]) -> Vec<f64> {
    let (n, d) = (x.rows(), x.cols());
    let wide = d + 1;
    let height = (BLOCK / wide).clamp(8, 1024);
    let blocks: Vec<usize> = (0..n).step_by(height).collect();
    let part = |first: &[usize]| {
        let mut sums = vec![0.0; wide * wide];
        let (mut scratch, mut plain, mut scaled) = (Vec::new(), Vec::new(), Vec::new());
        for &first in first {
            let rows = first..(first + height).min(n);
            let count = rows.len();
            plain.clear();
            scaled.clear();
            for (row, weight) in x.block(rows.clone(), &mut scratch).chunks_exact(d.max(1)).zip(&weights[rows]) {
                plain.extend_from_slice(row);
                plain.push(1.0);
                scaled.extend(row.iter().map(|x| weight * x));
                scaled.push(*weight);
            }
            let plain = MatRef::from_row_major_slice(&plain, count, wide);
            let scaled = MatRef::from_row_major_slice(&scaled, count, wide);
            let out = MatMut::from_row_major_slice_mut(&mut sums, wide, wide);
            matmul(out, Accum::Add, scaled.transpose(), plain, 1.0, Par::Seq);
        }
        sums
    };
    let pieces = if n * wide * wide < 2_000_000 { 1 } else { rayon::current_num_threads().clamp(1, 8) };
    let share = blocks.len().div_ceil(pieces).max(1);
    let parts: Vec<Vec<f64>> = blocks.par_chunks(share).map(part).collect();
    let mut parts = parts.into_iter();
    let mut total = parts.next().unwrap_or_else(|| vec![0.0; wide * wide]);
    parts.for_each(|part| total.iter_mut().zip(part).for_each(|(total, part)| *total += part));
    total
}

/// X diag(weights) X', row-major, lower half.
fn rows_gram(x: &dyn Design, weights: &[f64]) -> Vec<f64> {
    let (n, d) = (x.rows(), x.cols());
    let mut gram = vec![0.0; n * n];
    if x.is_sparse() {
        gram.par_chunks_exact_mut(n.max(1)).enumerate().for_each_init(
            || vec![0.0; d],
            |spread, (row, out)| {
                x.for_each(row, &mut |column, value| spread[column] = weights[column] * value);
                (0..=row).for_each(|other| out[other] = x.dot(other, spread));
                x.for_each(row, &mut |column, _| spread[column] = 0.0);
            },
        );
        return gram;
    }
    let height = (BLOCK / d.max(1)).clamp(16, 256);
    gram.par_chunks_mut(height * n.max(1)).enumerate().for_each_init(
        || (Vec::new(), Vec::new()),
        |(scratch, scaled): &mut (Vec<f64>, Vec<f64>), (block, out)| {
            let first = block * height;
            let count = out.len() / n;
            scaled.clear();
            for row in x.block(first..first + count, scratch).chunks_exact(d.max(1)) {
                scaled.extend(row.iter().zip(weights).map(|(x, weight)| weight * x));
            }
            let left = MatRef::from_row_major_slice(scaled, count, d);
            let mut out = MatMut::from_row_major_slice_mut(out, count, n);
            for other in (0..first + count).step_by(height) {
                let width = height.min(n - other);
                let right = MatRef::from_row_major_slice(x.block(other..other + width, scratch), width, d);
                let part = out.as_mut().subcols_mut(other, width);
                matmul(part, Accum::Replace, left, right.transpose(), 1.0, Par::Seq);
            }
        },
    );
    gram
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;

    /// Both forms solve the same equations.
    #[test]
    fn columns_and_terms_agree() {
        let value = |seed: usize| ((seed * 7919 + 13) % 101) as f64 / 50.0 - 1.0;
        for functions in [1, 3] {
            let (n, d) = (9, 4);
            let values: Vec<f64> = (0..n * d).map(value).collect();
            let x = Dense::new(n, d, values).unwrap();
            let bends: Vec<f64> = (0..functions * d).map(|at| if at == 2 { 0.0 } else { 1.5 + value(at) }).collect();
            let curvature: Vec<f64> = (0..functions * n).map(|at| 1.2 + value(at + 3)).collect();
            let k: Vec<f64> = (0..functions * n).map(|at| value(at + 50)).collect();
            let balance = vec![0.3; functions.max(2) - 1];
            let base = Normal::new(&x, functions, true, &bends, &curvature).unwrap();
            let columns = Normal { form: base.by_columns().unwrap(), ..base }.solve(&k, &balance);
            let base = Normal::new(&x, functions, true, &bends, &curvature).unwrap();
            let terms = Normal { form: base.by_terms((0..functions * n).collect()).unwrap(), ..base };
            let terms = terms.solve(&k, &balance);
            for (a, b) in
                [(&columns.v, &terms.v), (&columns.weights, &terms.weights), (&columns.intercepts, &terms.intercepts)]
            {
                assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9), "{a:?} {b:?}");
            }
            let f = push(&x, &terms.weights, &terms.intercepts, functions);
            assert!(
                f.iter().zip(&terms.v).enumerate().all(|(at, (f, v))| (k[at] - curvature[at] * f - v).abs() < 1e-9)
            );
        }
    }
}
