//! Linear equations that the quadratic bound (`lqa`) and the interior point method (`smooth`) share:
//!
//! ```text
//! V = k - W f,     f = X w + b,     w = B X'V,     column sums of V equal over functions (0 for one) if b is free
//! ```
//!
//! in V and b, W >= 0 diagonal over rows and functions and B_c = D_c - D_c 11'D_c / 1'D_c over the functions of a column c (D_c for
//! one function), D_c = diag(bends) >= 0: the minimum of a quadratic whose second derivatives are those of the penalty, 1/bends, and of
//! the rows, W. B_c = L_c L_c'. For a given b, one of three:
//!
//! ```text
//! terms       (W^-1 + X B X') V = W^-1 k                                       one unknown per term
//! columns     A v = L'X_l'k_l + L'X_h'V_h,  A = I + L'X_l'W_l X_l L             w = L v, d max(1, m-1) unknowns
//!             (W_h^-1 + X_h L A^-1 L'X_h') V_h = W_h^-1 k_h - X_h L A^-1 L'X_l'k_l
//! iterations  (I + L'X'W X L) v = L'X'k  by conjugate gradients                 where neither fits
//! ```
//!
//! Terms of large W are the h of the second: V_h = k_h - W_h f_h would lose the digits of f that W_h multiplies. V is affine in b, and b
//! follows from what the column sums of V shall be, so that these hold whatever V is worth otherwise.
//!
//! Where columns are of very different sizes, or terms of very different W, what is found may be refined: the equations are solved again for
//! what they lack, r = k - V - W f, measured by sum r^2 / W, as long as that falls.
//!
//! Cost: n d times the number of unknowns, and a Cholesky factor. Vectors over rows are function-major.

use super::super::proximal::pieces;
use crate::data::Design;
use crate::linalg::{Factor, dot};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;
use std::ops::Range;

/// Entries of a block of rows.
const BLOCK: usize = 1 << 17;
/// Multiplications of a matrix from which a second thread pays; strips or pieces, the least width of a strip, and the rows for each column
/// from which pieces of rows are better, though each has a matrix of its own.
const PARALLEL: usize = 2_000_000;
const PIECES: usize = 8;
const STRIP: usize = 32;
const TALL: usize = 32;
/// W from which a term is solved for by itself, for V of about 1.
const STIFF: f64 = 1e3;
/// Unknowns up to which a system is factored.
const MOST_UNKNOWNS: usize = 6000;
/// Relative residual at which conjugate gradients end, and most iterations.
const GRADIENTS: (f64, usize) = (1e-9, 1000);

/// Relative lack that needs no refinement, and most refinements.
const PRECISE: f64 = 1e-10;
const REFINEMENTS: usize = 3;

/// V, w (functions x columns) and b.
pub(super) struct Found {
    pub(super) v: Vec<f64>,
    pub(super) weights: Vec<f64>,
    pub(super) intercepts: Vec<f64>,
}

impl Found {
    fn plus(&self, by: &Found) -> Found {
        let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + b).collect();
        Found {
            v: sum(&self.v, &by.v),
            weights: sum(&self.weights, &by.weights),
            intercepts: sum(&self.intercepts, &by.intercepts),
        }
    }
}

/// The equations for given second derivatives, factored.
pub(super) struct Normal<'a> {
    x: &'a dyn Design,
    functions: usize,
    bends: &'a [f64],
    curvature: &'a [f64],
    size: f64,
    form: Form,
    /// V of k = W N_a for each free intercept a, and the factor of their column sums.
    border: Option<(Vec<Vec<f64>>, Factor)>,
}

enum Form {
    /// The terms with W > 0 and the factor of their equations.
    Terms { terms: Vec<usize>, factor: Factor },
    /// L of each column, the factor of A, the terms h and the factor of theirs.
    Columns { roots: Vec<f64>, factor: Factor, stiff: Vec<usize>, inner: Option<Factor> },
    /// L of each column, and the diagonal of the matrix.
    Iterations { roots: Vec<f64>, diagonal: Vec<f64> },
}

/// Unknowns of the smaller system.
pub(super) fn unknowns(rows: usize, cols: usize, functions: usize) -> usize {
    let free = reduced(functions);
    (cols * free).min(rows * free)
}

/// Whether that system is factored.
pub(super) fn is_factored(rows: usize, cols: usize, functions: usize) -> bool {
    unknowns(rows, cols, functions) <= MOST_UNKNOWNS
}

/// m - 1 of m functions, or the only one.
fn reduced(functions: usize) -> usize {
    functions.max(2) - 1
}

impl<'a> Normal<'a> {
    /// `bends` is functions x columns, `curvature` functions x rows, `size` what V is about. `None` if a number is not finite.
    pub(super) fn new(
        x: &'a dyn Design,
        functions: usize,
        intercept: bool,
        bends: &'a [f64],
        curvature: &'a [f64],
        size: f64,
    ) -> Option<Self> {
        let terms: Vec<usize> = (0..curvature.len()).filter(|&at| curvature[at] > 0.0).collect();
        let columns = x.cols() * reduced(functions);
        let mut normal = Normal { x, functions, bends, curvature, size, form: Form::nothing()?, border: None };
        normal.form = match () {
            _ if columns.min(terms.len()) > MOST_UNKNOWNS => normal.by_iterations(),
            _ if columns <= terms.len() => normal.by_columns()?,
            _ => normal.by_terms(terms)?,
        };
        if intercept {
            normal.border = Some(normal.bordered()?);
        }
        Some(normal)
    }

    /// Solves for k (function-major); `balance` is what N'1'V shall be, m - 1 numbers or 1.
    pub(super) fn solve(&self, k: &[f64], balance: &[f64]) -> Found {
        let mut v = self.without_intercepts(k);
        let mut free = Vec::new();
        if let Some((solved, rest)) = &self.border {
            let lack: Vec<f64> = self.sums(&v).iter().zip(balance).map(|(sum, goal)| sum - goal).collect();
            free = rest.solve(&lack);
            for (solved, by) in solved.iter().zip(&free) {
                v.iter_mut().zip(solved).for_each(|(v, s)| *v -= by * s);
            }
        }
        let weights = self.combine(&v);
        Found { v, weights, intercepts: whole(&free, self.functions) }
    }

    /// As [`solve`](Self::solve), refined where the equations are factored.
    pub(super) fn solve_refined(&self, k: &[f64], balance: &[f64]) -> Found {
        let mut found = self.solve(k, balance);
        if let Form::Iterations { .. } = self.form {
            return found;
        }
        let enough = PRECISE * PRECISE * self.measure(k);
        let mut lack = self.lack(k, &found);
        for _ in 0..REFINEMENTS {
            let size = self.measure(&lack);
            if size <= enough {
                break;
            }
            let left: Vec<f64> = self.sums(&found.v).iter().zip(balance).map(|(sum, goal)| goal - sum).collect();
            let next = found.plus(&self.solve(&lack, &left));
            lack = self.lack(k, &next);
            if !(self.measure(&lack) < size) {
                break;
            }
            found = next;
        }
        found
    }

    /// k - V - W f
    fn lack(&self, k: &[f64], found: &Found) -> Vec<f64> {
        let f = push(self.x, &found.weights, &found.intercepts, self.functions);
        self.answer(k, &f).iter().zip(&found.v).map(|(answer, v)| answer - v).collect()
    }

    /// sum r^2 / W
    fn measure(&self, rows: &[f64]) -> f64 {
        rows.iter().zip(self.curvature).filter(|(_, w)| **w > 0.0).map(|(r, w)| r / w * r).sum()
    }

    /// V for b = 0.
    fn without_intercepts(&self, k: &[f64]) -> Vec<f64> {
        match &self.form {
            Form::Terms { terms, factor } => {
                let right: Vec<f64> = terms.iter().map(|&at| k[at] / self.curvature[at]).collect();
                // terms without curvature keep their constant
                let mut v = k.to_vec();
                terms.iter().zip(factor.solve(&right)).for_each(|(&at, found)| v[at] = found);
                v
            }
            Form::Columns { roots, factor, stiff, inner } => {
                let mut soft = k.to_vec();
                stiff.iter().for_each(|&at| soft[at] = 0.0);
                let mut solution = factor.solve(&self.gather(roots, &soft));
                let mut of_stiff = Vec::new();
                if let Some(inner) = inner {
                    let f = self.decide(roots, &solution);
                    let right: Vec<f64> = stiff.iter().map(|&at| k[at] / self.curvature[at] - f[at]).collect();
                    of_stiff = inner.solve(&right);
                    stiff.iter().zip(&of_stiff).for_each(|(&at, v)| soft[at] = *v);
                    solution = factor.solve(&self.gather(roots, &soft));
                }
                let mut v = self.answer(k, &self.decide(roots, &solution));
                stiff.iter().zip(of_stiff).for_each(|(&at, found)| v[at] = found);
                v
            }
            Form::Iterations { roots, diagonal } => {
                let solution = self.gradients(roots, diagonal, self.gather(roots, k));
                self.answer(k, &self.decide(roots, &solution))
            }
        }
    }

    /// k - W f
    fn answer(&self, k: &[f64], f: &[f64]) -> Vec<f64> {
        k.iter().zip(f.iter().zip(self.curvature)).map(|(k, (f, w))| k - w * f).collect()
    }

    /// N'1'V
    fn sums(&self, v: &[f64]) -> Vec<f64> {
        let (m, n) = (self.functions, self.x.rows());
        let sums: Vec<f64> = v.chunks_exact(n.max(1)).map(|v| v.iter().sum()).collect();
        (0..reduced(m)).map(|a| (0..m).map(|j| intercept_entry(j, a, m) * sums[j]).sum()).collect()
    }

    fn bordered(&self) -> Option<(Vec<Vec<f64>>, Factor)> {
        let (m, n, r) = (self.functions, self.x.rows(), reduced(self.functions));
        let column = |a: usize| -> Vec<f64> {
            (0..n * m).map(|at| intercept_entry(at / n, a, m) * self.curvature[at]).collect()
        };
        let solved: Vec<Vec<f64>> = (0..r).map(|a| self.without_intercepts(&column(a))).collect();
        let sums: Vec<Vec<f64>> = solved.iter().map(|v| self.sums(v)).collect();
        // symmetric but for rounding
        let entries: Vec<f64> = (0..r * r).map(|at| 0.5 * (sums[at / r][at % r] + sums[at % r][at / r])).collect();
        Some((solved, Factor::nearest(&entries, r, r)?))
    }

    /// L'X'V, column-major.
    fn gather(&self, roots: &[f64], v: &[f64]) -> Vec<f64> {
        let (m, d, r) = (self.functions, self.x.cols(), reduced(self.functions));
        let pulled = pull(self.x, v, m);
        let of = |at: usize| {
            let (column, a) = (at / r, at % r);
            (0..m).map(|j| roots[(column * m + j) * r + a] * pulled[j * d + column]).sum()
        };
        (0..d * r).map(of).collect()
    }

    /// X L v, function-major.
    fn decide(&self, roots: &[f64], solution: &[f64]) -> Vec<f64> {
        let (m, d, r) = (self.functions, self.x.cols(), reduced(self.functions));
        let mut weights = vec![0.0; m * d];
        for (column, root) in roots.chunks_exact(m * r).enumerate() {
            for j in 0..m {
                weights[j * d + column] = (0..r).map(|a| root[j * r + a] * solution[column * r + a]).sum();
            }
        }
        push(self.x, &weights, &vec![0.0; m], m)
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
            let norm = dot(&sizes, &sizes).sqrt();
            if norm == 0.0 {
                continue;
            }
            // the reflection that takes the unit vector along D^1/2 1 to the last axis; its other columns are orthogonal to it
            let mut axis: Vec<f64> = sizes.iter().map(|s| s / norm).collect();
            axis[m - 1] += 1.0;
            let square = dot(&axis, &axis);
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
        let (roots, stiff) = (self.roots(), self.stiff());
        let mut soft = self.curvature.to_vec();
        stiff.iter().for_each(|&at| soft[at] = 0.0);
        let size = d * r;
        let mut matrix = vec![0.0; size * size];
        for j in 0..m {
            let gram = columns_gram(self.x, &soft[j * n..(j + 1) * n]);
            for one in 0..d {
                for other in 0..=one {
                    let g = gram[one * d + other];
                    if g == 0.0 {
                        continue;
                    }
                    for a in 0..r {
                        let by = g * roots[(one * m + j) * r + a];
                        for b in 0..r {
                            let (row, column) = (one * r + a, other * r + b);
                            if column <= row {
                                matrix[row * size + column] += by * roots[(other * m + j) * r + b];
                            }
                        }
                    }
                }
            }
        }
        (0..size).for_each(|at| matrix[at * size + at] += 1.0);
        let factor = Factor::nearest(&matrix, size, size)?;
        let inner = if stiff.is_empty() { None } else { Some(self.among(&stiff, &roots, &factor)?) };
        Some(Form::Columns { roots, factor, stiff, inner })
    }

    /// Terms whose W is large, no more than twice the unknowns.
    fn stiff(&self) -> Vec<usize> {
        let mut stiff: Vec<usize> =
            (0..self.curvature.len()).filter(|&at| self.curvature[at] > STIFF * self.size).collect();
        stiff.sort_by(|&a, &b| self.curvature[b].total_cmp(&self.curvature[a]));
        stiff.truncate(2 * self.x.cols() * reduced(self.functions));
        stiff
    }

    /// The factor of W_h^-1 + X_h L A^-1 L'X_h'.
    fn among(&self, stiff: &[usize], roots: &[f64], factor: &Factor) -> Option<Factor> {
        let (m, d, r, n) = (self.functions, self.x.cols(), reduced(self.functions), self.x.rows());
        let image = |&at: &usize| -> Vec<f64> {
            let mut row = vec![0.0; d];
            self.x.copy_row(at % n, &mut row);
            (0..d * r).map(|entry| roots[(entry / r * m + at / n) * r + entry % r] * row[entry / r]).collect()
        };
        let images: Vec<Vec<f64>> = stiff.iter().map(image).collect();
        let solved: Vec<Vec<f64>> = images.par_iter().map(|image| factor.solve(image)).collect();
        let size = stiff.len();
        let mut matrix = vec![0.0; size * size];
        for one in 0..size {
            for other in 0..=one {
                matrix[one * size + other] = dot(&images[one], &solved[other]);
            }
            matrix[one * size + one] += 1.0 / self.curvature[stiff[one]];
        }
        Factor::nearest(&matrix, size, size)
    }

    fn by_iterations(&self) -> Form {
        let (m, d, r, n) = (self.functions, self.x.cols(), reduced(self.functions), self.x.rows());
        let roots = self.roots();
        let mut diagonal = vec![1.0; d * r];
        for (at, &weight) in self.curvature.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            self.x.for_each(at % n, &mut |column, value| {
                for a in 0..r {
                    let entry = roots[(column * m + at / n) * r + a] * value;
                    diagonal[column * r + a] += weight * entry * entry;
                }
            });
        }
        Form::Iterations { roots, diagonal }
    }

    /// (I + L'X'W X L)^-1 right by conjugate gradients, preconditioned by the diagonal.
    fn gradients(&self, roots: &[f64], diagonal: &[f64], right: Vec<f64>) -> Vec<f64> {
        let mut solution = vec![0.0; right.len()];
        let mut residual = right;
        let ease = |residual: &[f64]| -> Vec<f64> { residual.iter().zip(diagonal).map(|(r, by)| r / by).collect() };
        let mut eased = ease(&residual);
        let mut direction = eased.clone();
        let mut product = dot(&residual, &eased);
        let first = product;
        for _ in 0..GRADIENTS.1 {
            if !(product > GRADIENTS.0 * GRADIENTS.0 * first) {
                break;
            }
            let mut f = self.decide(roots, &direction);
            f.iter_mut().zip(self.curvature).for_each(|(f, w)| *f *= w);
            let mut image = self.gather(roots, &f);
            image.iter_mut().zip(&direction).for_each(|(image, v)| *image += v);
            let length = product / dot(&direction, &image);
            solution.iter_mut().zip(&direction).for_each(|(s, by)| *s += length * by);
            residual.iter_mut().zip(&image).for_each(|(r, by)| *r -= length * by);
            eased = ease(&residual);
            let next = dot(&residual, &eased);
            let keep = next / product;
            direction.iter_mut().zip(&eased).for_each(|(v, by)| *v = by + keep * *v);
            product = next;
        }
        solution
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
        Some(Form::Terms { terms, factor: Factor::nearest(&matrix, size, size)? })
    }
}

impl Form {
    /// A form of no unknowns.
    fn nothing() -> Option<Form> {
        Some(Form::Terms { terms: Vec::new(), factor: Factor::nearest(&[], 0, 0)? })
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
    let pieces = pieces(x.stored() * functions, functions * d);
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

/// X' diag(weights) X, row-major, both halves. Cut into strips, or into pieces of rows where these are many, by the size alone: the same
/// on any number of threads.
pub(super) fn columns_gram(x: &dyn Design, weights: &[f64]) -> Vec<f64> {
    let (n, d) = (x.rows(), x.cols());
    let mut gram = vec![0.0; d * d];
    if d == 0 {
        return gram;
    }
    if n < TALL * d || n * d * d < PARALLEL {
        let width = if n * d * d < PARALLEL { d } else { d.div_ceil(PIECES).max(STRIP) };
        let strip = |(at, out): (usize, &mut [f64])| add_strip(x, weights, 0..n, at * width, out);
        gram.par_chunks_mut(width * d).enumerate().with_max_len(1).for_each(strip);
    } else {
        let length = n.div_ceil(PIECES);
        let part = |piece: usize| {
            let mut part = vec![0.0; d * d];
            add_strip(x, weights, piece * length..((piece + 1) * length).min(n), 0, &mut part);
            part
        };
        let parts: Vec<Vec<f64>> = (0..n.div_ceil(length)).into_par_iter().map(part).collect();
        parts.iter().for_each(|part| gram.iter_mut().zip(part).for_each(|(sum, part)| *sum += part));
    }
    for row in 0..d {
        (0..row).for_each(|column| gram[column * d + row] = gram[row * d + column]);
    }
    gram
}

/// Adds what some rows of X bring to the rows of the matrix from `first` on, up to the diagonal and a little beyond.
fn add_strip(x: &dyn Design, weights: &[f64], rows: Range<usize>, first: usize, out: &mut [f64]) {
    let d = x.cols();
    let strip = first..first + out.len() / d;
    let height = (BLOCK / d).clamp(8, 1024);
    let (mut scratch, mut scaled) = (Vec::new(), Vec::new());
    let mut out = MatMut::from_row_major_slice_mut(out, strip.len(), d).subcols_mut(0, strip.end);
    for start in rows.clone().step_by(height) {
        let block = start..(start + height).min(rows.end);
        let count = block.len();
        let plain = x.block(block.clone(), &mut scratch);
        scaled.clear();
        for (row, weight) in plain.chunks_exact(d).zip(&weights[block]) {
            scaled.extend(row[strip.clone()].iter().map(|x| weight * x));
        }
        let plain = MatRef::from_row_major_slice(plain, count, d).subcols(0, strip.end);
        let scaled = MatRef::from_row_major_slice(&scaled, count, strip.len());
        matmul(out.as_mut(), Accum::Add, scaled.transpose(), plain, 1.0, Par::Seq);
    }
}

/// X diag(weights) X', row-major, lower half.
pub(super) fn rows_gram(x: &dyn Design, weights: &[f64]) -> Vec<f64> {
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

    /// All forms solve the same equations, with terms that weigh next to nothing and terms that decide.
    #[test]
    fn the_forms_agree() {
        let value = |seed: usize| ((seed * 7919 + 13) % 101) as f64 / 50.0 - 1.0;
        for functions in [1, 3] {
            let (n, d) = (9, 4);
            let values: Vec<f64> = (0..n * d).map(value).collect();
            let x = Dense::new(n, d, values).unwrap();
            let bends: Vec<f64> = (0..functions * d).map(|at| if at == 2 { 0.0 } else { 1.5 + value(at) }).collect();
            let size = |at: usize| [1.0, 1e-3, 1e5][at % 3];
            let curvature: Vec<f64> = (0..functions * n).map(|at| size(at) * (1.2 + value(at + 3))).collect();
            let k: Vec<f64> = (0..functions * n).map(|at| value(at + 50)).collect();
            let balance = vec![0.3; functions.max(2) - 1];
            let with = |form: &dyn Fn(&Normal) -> Form| {
                let mut normal = Normal::new(&x, functions, true, &bends, &curvature, 1.0).unwrap();
                normal.form = form(&normal);
                normal.border = Some(normal.bordered().unwrap());
                normal.solve(&k, &balance)
            };
            let terms = with(&|normal| normal.by_terms((0..functions * n).collect()).unwrap());
            let columns = with(&|normal| normal.by_columns().unwrap());
            let iterations = with(&|normal| normal.by_iterations());
            let close = |a: &[f64], b: &[f64], tolerance: f64| {
                let far = a.iter().zip(b).find(|(a, b)| !((*a - *b).abs() < tolerance * (1.0 + b.abs())));
                assert!(far.is_none(), "{far:?}");
            };
            // the gradients stop at GRADIENTS.0 of a system whose condition is that of the curvature, 1e8 / 1e3 after the stiff terms
            for (other, tolerance) in [(&columns, 1e-6), (&iterations, 1e5 * GRADIENTS.0)] {
                close(&other.v, &terms.v, tolerance);
                close(&other.weights, &terms.weights, tolerance);
                close(&other.intercepts, &terms.intercepts, tolerance);
            }
            let f = push(&x, &terms.weights, &terms.intercepts, functions);
            let holds = |(at, (f, v)): (usize, (&f64, &f64))| {
                (k[at] - curvature[at] * f - v).abs() < 1e-9 * (1.0 + curvature[at])
            };
            assert!(f.iter().zip(&terms.v).enumerate().all(holds));
        }
    }
}
