//! The rows as vectors: features f_i = y_i x_i for a linear problem of fewer columns than rows, else the rows of
//! diag(y) L with K = LL' + E by pivoted Cholesky, so that the rank of the kernel drives the cost.
//!
//! Units: features are divided by a power of two 2^e that brings the largest near 1, the objective by the largest cap k. Margins stay
//! as they are, caps become c/k, and the ridge 1/(k 4^e) carries the scale of the problem.
//!
//! E is positive semidefinite up to rounding, so that K <= LL' + error I with error = tr E plus a bound of the rounding. A kernel
//! that is not known to be positive semidefinite (sigmoid, precomputed, the caller's) is checked entry by entry:
//! |E_ij| <= sqrt(E_ii E_jj), which is what the error bound needs.
//!
//! A free intercept makes the origin of the features a matter of taste. They are centred, and a last column holds the
//! intercept's own coordinate (see `interval`).

use super::lifted::next_random;
use super::smoothed::{Rows, multiply};
use crate::control::Control;
use crate::data::Design;
use crate::error::{Error, Result};
use crate::linalg::dot;
use crate::problem::ablation::Features;
use crate::problem::{KernelFunction, Norm, TwoClass};
use rayon::prelude::*;

/// The ridge is kept within these bounds.
const RIDGE_RANGE: (f64, f64) = (1e-280, 1e280);
/// A pivot this far below 0, relative to the largest diagonal entry and per column taken out, is no rounding.
const NEGATIVE: f64 = 1e-11;
/// Columns of the factor that are computed at a time.
const PIVOTS: usize = 8;
const GROWTH: usize = 64;
/// Fewer leading columns are not worth a space of their own.
const FEWEST_LEADING: usize = 16;
/// Rows, and rows per column, from which a sample goes ahead: one row in SAMPLED.
const MANY_ROWS: usize = 4000;
const MANY_PER_COLUMN: usize = 40;
const SAMPLED: u64 = 5;
/// Entries of the factor below this are taken as 0; the largest are near 1.
const TINY: f64 = 1e-60;
/// Rows of a block that is read several times in a row.
const BLOCK_VALUES: usize = 4096;

/// The rows that count, in units that suit floating point.
#[derive(Clone)]
pub(super) struct Space {
    /// Rows x columns, signed.
    pub(super) features: Vec<f64>,
    /// m, with the intercept's column.
    pub(super) columns: usize,
    /// c_i / k
    pub(super) caps: Vec<f64>,
    /// y_i
    pub(super) signs: Vec<f64>,
    /// Which row of the problem each is.
    pub(super) origin: Vec<usize>,
    /// 1 / (k 4^e)
    pub(super) ridge: f64,
    /// K <= LL' + error I, in units of the features.
    pub(super) error: f64,
    /// k: values times this are in the caller's units.
    pub(super) scale: f64,
    /// Cost of the rows that no w can change, in units of k.
    pub(super) constant: f64,
    /// Whether the last column is the intercept's.
    pub(super) intercept: bool,
    /// Whether the true ridge is smaller than what floating point can hold: then nothing is certified.
    pub(super) unsafe_ridge: bool,
    /// 2^e
    unit: f64,
}

impl Space {
    /// The space of a problem; `accuracy` is the relative error of the bound that the kernel's factor may cause.
    pub(super) fn new(problem: &TwoClass, accuracy: f64, control: &Control) -> Result<Space> {
        check(problem)?;
        let origin: Vec<usize> = (0..problem.rows()).filter(|&row| problem.caps[row] > 0.0).collect();
        let scale = problem.caps.iter().fold(0.0f64, |largest, &cap| largest.max(cap));
        let caps: Vec<f64> = origin.iter().map(|&row| problem.caps[row] / scale).collect();
        let signs: Vec<f64> = origin.iter().map(|&row| problem.signs[row]).collect();
        let mut space = Space {
            features: Vec::new(),
            columns: 0,
            caps,
            signs,
            origin,
            ridge: 1.0,
            error: 0.0,
            scale: if scale > 0.0 { scale } else { 1.0 },
            constant: 0.0,
            intercept: problem.intercept,
            unsafe_ridge: false,
            unit: 1.0,
        };
        let linear = matches!(problem.kernel, KernelFunction::Linear);
        if linear && problem.x.cols() <= space.rows() {
            space.take_rows(problem.x);
        } else {
            space.factor(problem, accuracy, control)?;
        }
        let ridge = (1.0 / space.scale / space.unit) / space.unit;
        space.unsafe_ridge = !(ridge >= RIDGE_RANGE.0);
        space.ridge = ridge.clamp(RIDGE_RANGE.0, RIDGE_RANGE.1);
        if space.intercept {
            space.centre();
        }
        Ok(space)
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.caps.len()
    }

    pub(super) fn view(&self) -> Features<'_> {
        Features { values: &self.features, columns: self.columns }
    }

    /// The rows of a problem without offsets.
    pub(super) fn all_rows<'a>(&'a self, kept: &'a [bool]) -> Rows<'a> {
        Rows { features: self.view(), caps: &self.caps, offsets: &[], kept, ridge: self.ridge }
    }

    /// beta in the caller's units, of a w = sum beta_i f_i / ridge.
    pub(super) fn leave(&self, beta: f64) -> f64 {
        beta * self.scale
    }

    /// b for the caller's origin, given b for the centred rows. The expansion of w = sum_i beta_i (x_i - mean) becomes one in
    /// the x_i, whose sum is 0.
    pub(super) fn leave_intercept(&self, expansion: &mut [f64], centred: f64, problem: &TwoClass) -> f64 {
        if !self.intercept {
            return 0.0;
        }
        let sum: f64 = expansion.iter().sum();
        let total: f64 = self.caps.iter().sum();
        for (&row, cap) in self.origin.iter().zip(&self.caps) {
            expansion[row] -= sum * cap / total;
        }
        // f(mean), the mean taken over the decisions
        let f = problem.kernel.expand(problem.x, expansion);
        let middle: f64 = self.origin.iter().zip(&self.caps).map(|(&row, cap)| f[row] * cap / total).sum();
        centred - middle
    }

    /// tr E in the caller's units.
    pub(super) fn kernel_error(&self) -> f64 {
        self.error * self.unit * self.unit
    }

    /// Length of the intercept's coordinate: the column becomes y_i times that.
    pub(super) fn set_reach(&mut self, reach: f64) {
        let last = self.columns - 1;
        for (row, sign) in self.features.chunks_exact_mut(self.columns).zip(&self.signs) {
            row[last] = sign * reach;
        }
    }

    /// The longest feature, without the intercept's column.
    pub(super) fn longest(&self) -> f64 {
        let own = self.columns - usize::from(self.intercept);
        let rows = self.features.chunks_exact(self.columns.max(1));
        rows.map(|row| dot(&row[..own], &row[..own])).fold(0.0, f64::max).sqrt()
    }

    /// The same space with some of its rows.
    pub(super) fn only(&self, rows: &[usize]) -> Space {
        let m = self.columns;
        let take = |from: &[f64]| -> Vec<f64> { rows.iter().map(|&row| from[row]).collect() };
        let mut features = Vec::with_capacity(rows.len() * m);
        rows.iter().for_each(|&row| features.extend_from_slice(&self.features[row * m..(row + 1) * m]));
        Space {
            features,
            caps: take(&self.caps),
            signs: take(&self.signs),
            origin: rows.iter().map(|&row| self.origin[row]).collect(),
            ..*self
        }
    }

    /// The space of the first columns, where few of them hold all but `share` of the rows' squared lengths.
    pub(super) fn leading(&self, share: f64) -> Option<Space> {
        let m = self.columns;
        let mut squares = vec![0.0; m];
        for row in self.features.chunks_exact(m.max(1)) {
            squares.iter_mut().zip(row).for_each(|(square, f)| *square += f * f);
        }
        let total: f64 = squares.iter().sum();
        let mut left = total;
        let count = squares.iter().take_while(|square| {
            let more = left > share * total;
            left -= **square;
            more
        });
        let count = count.count();
        if self.intercept || count < FEWEST_LEADING || 2 * count > m {
            return None;
        }
        let mut features = Vec::with_capacity(self.rows() * count);
        self.features.chunks_exact(m).for_each(|row| features.extend_from_slice(&row[..count]));
        Some(Space { features, columns: count, ..self.clone() })
    }

    /// The space of every few rows, at random, where there are many rows for its columns; each stands for its share of the weight.
    pub(super) fn sampled(&self, seed: u64) -> Option<Space> {
        let n = self.rows();
        if self.intercept || n < MANY_ROWS || n < MANY_PER_COLUMN * self.columns {
            return None;
        }
        let mut state = seed;
        let chosen: Vec<usize> = (0..n).filter(|_| next_random(&mut state).is_multiple_of(SAMPLED)).collect();
        let mut sample = self.only(&chosen);
        let share: f64 = sample.caps.iter().sum::<f64>() / self.caps.iter().sum::<f64>();
        (share > 0.0).then(|| {
            sample.caps.iter_mut().for_each(|cap| *cap /= share);
            sample
        })
    }

    fn take_rows(&mut self, x: &dyn Design) {
        let d = x.cols();
        let mut features = vec![0.0; self.rows() * d];
        for (out, &row) in features.chunks_exact_mut(d.max(1)).zip(&self.origin) {
            x.copy_row(row, out);
        }
        let largest = features.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
        self.unit = power_of_two(largest);
        for (row, sign) in features.chunks_exact_mut(d.max(1)).zip(&self.signs) {
            row.iter_mut().for_each(|value| *value = sign * (*value / self.unit));
        }
        self.features = features;
        self.columns = d;
    }

    /// Pivoted Cholesky of the kernel matrix.
    fn factor(&mut self, problem: &TwoClass, accuracy: f64, control: &Control) -> Result<()> {
        let n = self.rows();
        let kernel = Columns::new(problem, &self.origin);
        let diagonal = kernel.diagonal()?;
        let largest = diagonal.iter().fold(0.0f64, |a, &b| a.max(b));
        let own = power_of_two(largest.sqrt());
        let shrink = 1.0 / own;
        self.unit = own * kernel.unit;
        let mut rest: Vec<f64> = diagonal.iter().map(|value| value * shrink * shrink).collect();
        let trace: f64 = rest.iter().sum();
        let largest = rest.iter().fold(0.0f64, |a, &b| a.max(b));
        // the bound loses at most error/(2 ridge) sum (c alpha)^2, and the value is at most sum c
        let ridge = (1.0 / self.scale / self.unit) / self.unit;
        let squares: f64 = self.caps.iter().map(|cap| cap * cap).sum();
        // with an intercept what is lost counts against every interval
        let share = if problem.intercept { 2e-3 } else { 2e-2 };
        let goal = share * accuracy * ridge * self.caps.iter().sum::<f64>() / squares.max(f64::MIN_POSITIVE);
        let floor = 4.0 * f64::EPSILON * trace;
        let mut factor = Factored::new(n);
        while factor.count < n {
            control.check()?;
            let left: f64 = rest.iter().sum();
            let height = rest.iter().fold(0.0f64, |a, &b| a.max(b));
            if left <= goal.max(floor) || height <= 4.0 * f64::EPSILON * largest {
                break;
            }
            let pivots = highest(&rest, PIVOTS.min(n - factor.count), 0.5 * height);
            let mut batch: Vec<(usize, Vec<f64>)> = Vec::with_capacity(pivots.len());
            let known = factor.rows_of(&pivots);
            for (pivot, known) in pivots.into_iter().zip(known.chunks_exact(n)) {
                let mut column = kernel.column(pivot, shrink)?;
                column.iter_mut().zip(known).for_each(|(value, known)| *value -= known);
                batch.push((pivot, column));
            }
            // the rest of the batch as long as it is high
            let first = factor.count;
            while let Some(at) = (0..batch.len()).max_by(|&a, &b| rest[batch[a].0].total_cmp(&rest[batch[b].0])) {
                let (pivot, mut column) = batch.swap_remove(at);
                let own = rest[pivot];
                if factor.count > first && !(own > 0.5 * rest.iter().fold(0.0f64, |a, &b| a.max(b))) {
                    break;
                }
                factor.subtract(first, pivot, &mut column);
                let root = own.sqrt();
                column.iter_mut().for_each(|value| *value /= root);
                column[pivot] = root;
                let lowest = -NEGATIVE * largest * (factor.count + 1) as f64;
                for (row, (rest, value)) in rest.iter_mut().zip(&column).enumerate() {
                    *rest = if row == pivot { 0.0 } else { *rest - value * value };
                    if !(*rest >= lowest) {
                        return Err(not_semidefinite(problem, self.origin[row], self.origin[pivot]));
                    }
                    *rest = rest.max(0.0);
                }
                factor.push(&column);
            }
        }
        let m = factor.count;
        let mut features = factor.into_rows();
        // rounding of the kernel values and of m subtractions, each relative to the diagonal
        let mut rounding = f64::EPSILON * (m as f64 + 16.0) * trace + n as f64 * m as f64 * 2.0 * TINY * largest;
        if !kernel.is_surely_semidefinite() {
            rounding += n as f64 * kernel.check_rest(&features, m, &rest, largest, shrink)?;
        }
        self.error = rest.iter().sum::<f64>() + rounding;
        for (row, &sign) in self.signs.iter().enumerate() {
            features[row * m..(row + 1) * m].iter_mut().for_each(|value| *value *= sign);
        }
        self.features = features;
        self.columns = m;
        Ok(())
    }

    /// Moves the origin to the weighted mean and adds the intercept's column.
    fn centre(&mut self) {
        let (n, m) = (self.rows(), self.columns);
        let total: f64 = self.caps.iter().sum();
        let mut mean = vec![0.0; m];
        for row in 0..n {
            let share = self.caps[row] * self.signs[row] / total;
            mean.iter_mut().zip(&self.features[row * m..]).for_each(|(mean, f)| *mean += share * f);
        }
        // |fl(f - mean) - (f - mean)| <= off, which moves the kernel by at most n (2 |f - mean| off + off^2)
        let longest =
            |rows: &[f64], m: usize| rows.chunks_exact(m.max(1)).map(|row| dot(row, row)).fold(0.0, f64::max).sqrt();
        let off = f64::EPSILON * (longest(&self.features, m) + dot(&mean, &mean).sqrt());
        let mut features = vec![0.0; n * (m + 1)];
        for (row, out) in features.chunks_exact_mut(m + 1).enumerate() {
            for k in 0..m {
                out[k] = self.features[row * m + k] - self.signs[row] * mean[k];
            }
            out[m] = self.signs[row];
        }
        self.error += n as f64 * off * (2.0 * longest(&features, m + 1) + off);
        self.features = features;
        self.columns = m + 1;
    }

    /// At level 1 and without intercept a row without features costs c whatever w: a constant, which no smoothing shall blur.
    pub(super) fn drop_zero_rows(&mut self) {
        if self.intercept {
            return;
        }
        let m = self.columns;
        let counts = |row: usize| self.features[row * m..(row + 1) * m].iter().any(|&value| value != 0.0);
        let keep: Vec<usize> = (0..self.rows()).filter(|&row| counts(row)).collect();
        if keep.len() == self.rows() {
            return;
        }
        self.constant = (0..self.rows()).filter(|&row| !counts(row)).map(|row| self.caps[row]).sum();
        let take = |from: &[f64]| -> Vec<f64> { keep.iter().map(|&row| from[row]).collect() };
        let features = keep.iter().flat_map(|&row| self.features[row * m..(row + 1) * m].to_vec()).collect();
        (self.caps, self.signs) = (take(&self.caps), take(&self.signs));
        self.origin = keep.iter().map(|&row| self.origin[row]).collect();
        self.features = features;
    }
}

/// Up to `most` of the highest entries, from `least` on, the highest first.
fn highest(rest: &[f64], most: usize, least: f64) -> Vec<usize> {
    let mut found: Vec<usize> = (0..rest.len()).filter(|&row| rest[row] >= least).collect();
    let fall = |a: &usize, b: &usize| rest[*b].total_cmp(&rest[*a]).then(a.cmp(b));
    if found.len() > most {
        found.select_nth_unstable_by(most - 1, fall);
        found.truncate(most);
    }
    found.sort_unstable_by(fall);
    found
}

/// The factor while it grows: row-major, its stride a multiple of GROWTH.
struct Factored {
    rows: usize,
    stride: usize,
    count: usize,
    values: Vec<f64>,
    caps: Vec<f64>,
}

impl Factored {
    fn new(rows: usize) -> Factored {
        Factored { rows, stride: 0, count: 0, values: Vec::new(), caps: vec![0.0; rows] }
    }

    /// L L_p' for some rows p, one after the other.
    fn rows_of(&self, pivots: &[usize]) -> Vec<f64> {
        let mut out = vec![0.0; pivots.len() * self.rows];
        let features = Features { values: &self.values, columns: self.stride };
        let own: Vec<f64> = pivots.iter().flat_map(|&pivot| features.row(pivot)).copied().collect();
        let rows = Rows { features, caps: &self.caps, offsets: &[], kept: &[], ridge: 1.0 };
        multiply(&rows, &own, pivots.len(), &mut out);
        out
    }

    /// column -= the part of L L_p' that columns from `first` on make.
    fn subtract(&self, first: usize, pivot: usize, column: &mut [f64]) {
        if first == self.count {
            return;
        }
        let own = &self.values[pivot * self.stride..][first..self.count];
        for (value, row) in column.iter_mut().zip(self.values.chunks_exact(self.stride)) {
            *value -= row[first..self.count].iter().zip(own).map(|(a, b)| a * b).sum::<f64>();
        }
    }

    fn push(&mut self, column: &[f64]) {
        if self.count == self.stride {
            self.values = self.spread(self.stride + GROWTH);
            self.stride += GROWTH;
        }
        for (row, value) in self.values.chunks_exact_mut(self.stride).zip(column) {
            // what is far below rounding would only make products of subnormal numbers, which are slow
            row[self.count] = if value.abs() < TINY { 0.0 } else { *value };
        }
        self.count += 1;
    }

    fn spread(&self, stride: usize) -> Vec<f64> {
        let mut values = vec![0.0; self.rows * stride];
        let kept = self.count.min(stride);
        if kept > 0 {
            for (out, row) in values.chunks_exact_mut(stride).zip(self.values.chunks_exact(self.stride)) {
                out[..kept].copy_from_slice(&row[..kept]);
            }
        }
        values
    }

    fn into_rows(self) -> Vec<f64> {
        self.spread(self.count)
    }
}

fn check(problem: &TwoClass) -> Result<()> {
    let n = problem.x.rows();
    if problem.signs.len() != n || problem.caps.len() != n || u32::try_from(n).is_err() {
        let found = format!("{n} rows for {} labels and {} weights", problem.signs.len(), problem.caps.len());
        return Err(Error::shape("X", found, "as many of each, fewer than 2^32"));
    }
    if problem.loss.base().name() != "hinge" || problem.loss.truncation() != Some(0.0) {
        return Err(Error::parameter("loss", problem.loss.base().name(), "the hinge truncated at 0"));
    }
    if !matches!(problem.norm, Norm::Squared) {
        return Err(Error::parameter("penalty", "l1", "l2 with the relaxations of the truncated hinge"));
    }
    Ok(())
}

/// The power of two above a number; 1 for 0.
fn power_of_two(largest: f64) -> f64 {
    if largest > 0.0 { (largest.log2().floor().clamp(-1000.0, 1000.0) + 1.0).exp2() } else { 1.0 }
}

fn not_semidefinite(problem: &TwoClass, row: usize, other: usize) -> Error {
    let rows = if row == other { format!("row {row}") } else { format!("rows {row} and {other}") };
    let allowed = format!(
        "a positive semidefinite kernel: k(x, z) = k(z, x), k(x, x) >= 0, k(x, z)^2 <= k(x, x) k(z, z) and so on, which fails at {rows} \
         (counted from 0)"
    );
    Error::parameter("kernel", problem.kernel.name(), allowed)
}

/// Columns of the kernel matrix over the rows that count.
struct Columns<'a> {
    problem: &'a TwoClass<'a>,
    rows: Vec<u32>,
    /// What the rows of a linear kernel are divided by, so that no product leaves the range.
    unit: f64,
}

impl<'a> Columns<'a> {
    fn new(problem: &'a TwoClass<'a>, origin: &[usize]) -> Self {
        let mut largest = 0.0f64;
        if matches!(problem.kernel, KernelFunction::Linear) {
            for &row in origin {
                problem.x.for_each(row, &mut |_, value| largest = largest.max(value.abs()));
            }
        }
        Columns { problem, rows: origin.iter().map(|&row| row as u32).collect(), unit: power_of_two(largest) }
    }

    fn is_surely_semidefinite(&self) -> bool {
        match self.problem.kernel {
            KernelFunction::Linear | KernelFunction::Rbf { .. } => true,
            KernelFunction::Poly { coef0, .. } => *coef0 >= 0.0,
            _ => false,
        }
    }

    /// K_ii, refused where negative or not finite.
    fn diagonal(&self) -> Result<Vec<f64>> {
        let x = self.problem.x;
        let value = |own: &mut Vec<f64>, row: usize| {
            own.resize(x.cols(), 0.0);
            x.copy_row(row, own);
            match self.problem.kernel {
                KernelFunction::Precomputed => own[row],
                KernelFunction::Linear => own.iter().map(|value| (value / self.unit).powi(2)).sum(),
                kernel => kernel.evaluate(own, own),
            }
        };
        let diagonal: Vec<f64> =
            self.rows.par_iter().with_min_len(64).map_init(Vec::new, |own, &row| value(own, row as usize)).collect();
        match diagonal.iter().position(|value| !value.is_finite() || *value < 0.0) {
            None => Ok(diagonal),
            Some(at) if diagonal[at] < 0.0 => {
                Err(not_semidefinite(self.problem, self.rows[at] as usize, self.rows[at] as usize))
            }
            Some(at) => Err(too_large(self.rows[at])),
        }
    }

    /// Column `pivot` times shrink^2.
    fn column(&self, pivot: usize, shrink: f64) -> Result<Vec<f64>> {
        let (x, kernel) = (self.problem.x, self.problem.kernel);
        if let KernelFunction::Linear = kernel {
            let mut own = vec![0.0; x.cols()];
            x.copy_row(self.rows[pivot] as usize, &mut own);
            own.iter_mut().for_each(|value| *value = *value / self.unit * shrink);
            let value = |&row: &u32| x.dot(row as usize, &own) / self.unit * shrink;
            return Ok(self.rows.par_iter().with_min_len(64).map(value).collect());
        }
        let mut column = vec![0.0; self.rows.len()];
        let own = [self.rows[pivot]];
        kernel.for_each_row(x, x, &self.rows, &own, &mut column, |out, values| *out = values[0] * shrink * shrink);
        if let Some(at) = column.iter().position(|value| !value.is_finite()) {
            return Err(too_large(self.rows[at]));
        }
        if !self.is_surely_semidefinite() {
            let across = vec![0.0; self.rows.len()];
            let mut holder = [across];
            kernel.for_each_row(x, x, &own, &self.rows, &mut holder, |out, values| out.copy_from_slice(values));
            let largest = column.iter().fold(0.0f64, |a, b| a.max(b.abs()));
            for (row, (down, across)) in column.iter().zip(&holder[0]).enumerate() {
                if !((down - across * shrink * shrink).abs() <= NEGATIVE * largest) {
                    return Err(not_semidefinite(self.problem, self.rows[row] as usize, self.rows[pivot] as usize));
                }
            }
        }
        Ok(column)
    }

    /// The largest amount by which |K_ij - L_i.L_j| exceeds sqrt(E_ii E_jj); refused where that is no rounding.
    fn check_rest(&self, factor: &[f64], m: usize, rest: &[f64], largest: f64, shrink: f64) -> Result<f64> {
        let (x, kernel) = (self.problem.x, self.problem.kernel);
        let slack = NEGATIVE * largest * (m + 1) as f64;
        let mut worst: Vec<(usize, usize, f64)> = (0..self.rows.len()).map(|row| (row, 0, 0.0)).collect();
        kernel.for_each_row(x, x, &self.rows, &self.rows, &mut worst, |(row, at, most), values| {
            let own = &factor[*row * m..(*row + 1) * m];
            for (other, value) in values.iter().enumerate() {
                let left = value * shrink * shrink - dot(own, &factor[other * m..(other + 1) * m]);
                let excess = left.abs() - (rest[*row] * rest[other]).sqrt();
                if !(excess <= *most) {
                    (*at, *most) = (other, excess);
                }
            }
        });
        match worst.iter().find(|(_, _, excess)| !(*excess <= slack)) {
            None => Ok(worst.iter().fold(0.0, |most, (_, _, excess)| excess.max(most))),
            Some(&(row, at, _)) => Err(not_semidefinite(self.problem, self.rows[row] as usize, self.rows[at] as usize)),
        }
    }
}

fn too_large(row: u32) -> Error {
    Error::Numerical {
        problem: format!("the kernel's values leave the range of floating point at row {row} (counted from 0)"),
    }
}

/// Rows per block that stays in the cache.
pub(super) fn block_rows(columns: usize) -> usize {
    (BLOCK_VALUES / columns.max(1)).clamp(8, 512)
}
