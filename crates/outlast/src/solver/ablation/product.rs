//! Products with the second derivatives of the smoothed relaxation,
//!
//! ```text
//! H X = r X + sum_i f_i (f_i'X) C_i + z (z'X)
//! ```
//!
//! over the rows whose C_i is not 0 (beyond the margin and the lift it is), copied together. They decide the direction of a step and not
//! its value, so f32 serves where C_i is not too steep for it: an error u in f_i'X counts as u sqrt(|C_i| |f_i|^2 / r) in the norm of the
//! preconditioner.

use super::smoothed::{Point, Rows, Smoothed, combine, multiply};
use crate::linalg::{Isa, WIDE, dot};
use crate::problem::ablation::{Curvature, Features};
use rayon::prelude::*;

/// The largest |C_i| |f_i|^2 / r for f32.
const STEEPEST: f64 = 1e9;
/// The longest |f_i|^2 for f32.
const LONGEST: f64 = 1e18;
/// Multiplications per piece: as many pieces on any number of threads, so that sums are the same.
const PIECE: usize = 1 << 20;
/// Values of a block that is read twice.
const BLOCK: usize = 1 << 12;

/// Rows up to which products are kept.
const MOST_KNOWN: usize = 2048;
/// Values below this, beside others near 1, are taken as 0: their products would be subnormal numbers, which are slow.
const TINY: f32 = 1e-18;

pub(super) fn shortened(value: f64) -> f32 {
    if value.abs() < f64::from(TINY) { 0.0 } else { value as f32 }
}

/// Columns of length m in units of their largest entry, padded to the stride, and that unit. `None` where there is none.
pub(super) fn narrowed(x: &[f64], m: usize, stride: usize) -> Option<(Vec<f32>, f64)> {
    let unit = x.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
    if !(unit > 0.0 && unit.is_finite()) {
        return None;
    }
    let mut short = vec![0.0f32; x.len() / m * stride];
    for (short, x) in short.chunks_exact_mut(stride).zip(x.chunks_exact(m)) {
        short.iter_mut().zip(x).for_each(|(short, x)| *short = shortened(x / unit));
    }
    Some((short, unit))
}

/// Adds padded columns in some unit.
pub(super) fn widen(short: &[f32], stride: usize, unit: f64, out: &mut [f64], m: usize) {
    for (out, short) in out.chunks_exact_mut(m).zip(short.chunks_exact(stride)) {
        out.iter_mut().zip(short).for_each(|(out, short)| *out += unit * f64::from(*short));
    }
}

/// Products f_i'f_j of rows that were asked for, kept.
#[derive(Default)]
pub(super) struct Pairs {
    /// Each row's place among those known, plus 1.
    place: Vec<u32>,
    values: Vec<f64>,
    products: Vec<Vec<f64>>,
}

impl Pairs {
    /// Places of some rows.
    pub(super) fn places(&mut self, features: Features, n: usize, rows: impl Iterator<Item = usize>) -> Vec<usize> {
        let (m, isa) = (features.columns, Isa::detect());
        self.place.resize(n, 0);
        if self.products.len() > MOST_KNOWN {
            *self = Pairs { place: vec![0; n], ..Pairs::default() };
        }
        rows.map(|row| {
            if self.place[row] == 0 {
                self.values.extend_from_slice(features.row(row));
                let mut products = vec![0.0; self.values.len() / m];
                isa.dots(&self.values, features.row(row), &mut products);
                self.products.push(products);
                self.place[row] = self.products.len() as u32;
            }
            self.place[row] as usize - 1
        })
        .collect()
    }

    /// f_i'f_j of two places.
    #[inline(always)]
    pub(super) fn product(&self, a: usize, b: usize) -> f64 {
        if a >= b { self.products[a][b] } else { self.products[b][a] }
    }

    /// f_i of a place.
    pub(super) fn row(&self, at: usize, m: usize) -> &[f64] {
        &self.values[at * m..(at + 1) * m]
    }
}

/// The rows that have curvature, kept from step to step as long as they stay the same.
#[derive(Default)]
pub(super) struct Active {
    pub(super) rows: Vec<usize>,
    caps: Vec<f64>,
    single: Vec<f32>,
    double: Vec<f64>,
}

impl Active {
    fn choose(&mut self, rows: Vec<usize>) {
        if rows != self.rows {
            self.caps.resize(rows.len(), 0.0);
            self.rows = rows;
            self.single.clear();
            self.double.clear();
        }
    }

    fn copy_single(&mut self, features: Features) {
        if self.single.is_empty() {
            let (m, stride) = (features.columns, features.columns.next_multiple_of(WIDE));
            self.single.resize(self.rows.len() * stride, 0.0);
            for (out, &row) in self.single.chunks_exact_mut(stride).zip(&self.rows) {
                out[..m].iter_mut().zip(features.row(row)).for_each(|(out, f)| *out = shortened(*f));
            }
        }
    }

    fn copy_double(&mut self, features: Features) {
        if self.double.is_empty() {
            self.rows.iter().for_each(|&row| self.double.extend_from_slice(features.row(row)));
        }
    }
}

/// The second derivatives at a point.
pub(super) struct Operator<'a> {
    features: Features<'a>,
    ridge: f64,
    /// Columns of W.
    columns: usize,
    active: &'a Active,
    /// C_i of the active rows.
    pub(super) curvature: Vec<Curvature>,
    /// p_perp of the active rows.
    lift: Vec<f64>,
    moving: Option<Vec<f64>>,
    /// C_i / r and p_perp in f32, where that is enough.
    single: Option<(Vec<[f32; 4]>, Vec<f32>)>,
    scratch: Vec<f64>,
}

impl<'a> Operator<'a> {
    /// `squares` are |f_i|^2.
    pub(super) fn new(problem: &Smoothed<'a>, point: &Point, squares: &[f64], active: &'a mut Active) -> Operator<'a> {
        let rows = &problem.rows;
        let (n, r, ridge) = (rows.len(), point.columns, rows.ridge);
        let (mut chosen, mut curvature, mut lift) = (Vec::new(), Vec::new(), Vec::new());
        let (mut steepest, mut longest) = (0.0f64, 0.0f64);
        for row in 0..n {
            let h = problem.curvature(point, row);
            if h.aa == 0.0 && h.ii == 0.0 {
                continue;
            }
            chosen.push(row);
            lift.extend((1..r).map(|k| point.margins[k * n + row]));
            let height = h.aa.abs().max(h.ii.abs()).max(h.vv * point.squared(row, n));
            steepest = steepest.max(height * squares[row]);
            longest = longest.max(squares[row]);
            curvature.push(h);
        }
        active.choose(chosen);
        let mut single = None;
        if steepest <= STEEPEST * ridge && longest <= LONGEST {
            active.copy_single(rows.features);
            let part = |value: f64| (value / ridge) as f32;
            let heights = curvature.iter().map(|h| [part(h.aa), part(h.av), part(h.ii), part(h.vv)]).collect();
            single = Some((heights, lift.iter().map(|&v| v as f32).collect()));
        } else {
            active.copy_double(rows.features);
        }
        let moving = problem.moving_level(point);
        Operator {
            features: rows.features,
            ridge,
            columns: r,
            active,
            curvature,
            lift,
            moving,
            single,
            scratch: Vec::new(),
        }
    }

    /// Whether f32 is enough here.
    pub(super) fn is_single(&self) -> bool {
        self.single.is_some()
    }

    /// The active rows' numbers.
    pub(super) fn rows(&self) -> &[usize] {
        &self.active.rows
    }

    /// p_perp of an active row.
    pub(super) fn lift(&self, at: usize) -> &[f64] {
        &self.lift[at * (self.columns - 1)..(at + 1) * (self.columns - 1)]
    }

    /// H x
    pub(super) fn times(&mut self, x: &[f64]) -> Vec<f64> {
        let mut out = match &self.single {
            Some((heights, lift)) => self.in_single(x, heights, lift),
            None => self.in_double(x),
        };
        if let Some(z) = &self.moving {
            let length = dot(z, x);
            out.iter_mut().zip(z).for_each(|(out, z)| *out += length * z);
        }
        out
    }

    fn double_rows(&self) -> Rows<'a> {
        let features = Features { values: &self.active.double, columns: self.features.columns };
        Rows { features, caps: &self.active.caps, offsets: &[], kept: &[], ridge: self.ridge }
    }

    fn in_double(&mut self, x: &[f64]) -> Vec<f64> {
        let (n, r) = (self.active.rows.len(), self.columns);
        let rows = self.double_rows();
        self.scratch.resize(n * r, 0.0);
        multiply(&rows, x, r, &mut self.scratch);
        let (images, lift) = (&self.scratch, &self.lift);
        let mut out = combine(&rows, r, |row, out| {
            let h = &self.curvature[row];
            let v = &lift[row * (r - 1)..(row + 1) * (r - 1)];
            let along: f64 = v.iter().enumerate().map(|(k, v)| v * images[(k + 1) * n + row]).sum();
            out[0] = h.aa * images[row] + h.av * along;
            let common = h.av * images[row] + h.vv * along;
            for k in 1..r {
                out[k] = common * v[k - 1] + h.ii * images[k * n + row];
            }
        });
        out.iter_mut().zip(x).for_each(|(out, x)| *out += self.ridge * x);
        out
    }

    fn in_single(&self, x: &[f64], heights: &[[f32; 4]], lift: &[f32]) -> Vec<f64> {
        let r = self.columns;
        let mut out = self.pass(x, r, |row, slopes| {
            let [aa, av, ii, vv] = heights[row];
            let v = &lift[row * (r - 1)..(row + 1) * (r - 1)];
            let along: f32 = v.iter().zip(&slopes[1..]).map(|(v, image)| v * image).sum();
            let common = av * slopes[0] + vv * along;
            slopes[0] = aa * slopes[0] + av * along;
            slopes[1..].iter_mut().zip(v).for_each(|(slope, v)| *slope = common * v + ii * *slope);
        });
        out.iter_mut().zip(x).for_each(|(out, x)| *out = self.ridge * (*out + x));
        out
    }

    /// G x / r for one column x, G = sum_i bend_i f_i f_i' as in the certificate: minus the multiple of the identity in C_i.
    pub(super) fn bent(&self, x: &[f64]) -> Vec<f64> {
        if let Some((heights, _)) = &self.single {
            return self.pass(x, 1, |row, slopes| slopes[0] *= -heights[row][2]);
        }
        let rows = self.double_rows();
        let mut images = vec![0.0; self.active.rows.len()];
        multiply(&rows, x, 1, &mut images);
        combine(&rows, 1, |row, out| out[0] = -self.curvature[row].ii / self.ridge * images[row])
    }

    /// sum_i f_i slopes_i' for the slopes that `change` makes of f_i'X, X of r columns.
    fn pass(&self, x: &[f64], r: usize, change: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f64> {
        let m = self.features.columns;
        let stride = m.next_multiple_of(WIDE);
        let isa = Isa::detect();
        let mut out = vec![0.0; x.len()];
        let Some((short, unit)) = narrowed(x, m, stride) else { return out };
        let piece = (PIECE / (stride * r)).max(64).next_multiple_of(8);
        let block = (BLOCK / stride).max(8) / 8 * 8;
        let count = self.active.rows.len();
        let part = |number: usize| {
            let range = number * piece..((number + 1) * piece).min(count);
            let mut total = vec![0.0f32; r * stride];
            let mut slopes = vec![0.0f32; block * r];
            for start in range.clone().step_by(block) {
                let end = (start + block).min(range.end);
                let rows = &self.active.single[start * stride..end * stride];
                let slopes = &mut slopes[..(end - start) * r];
                isa.products(rows, stride, &short, r, slopes);
                (start..end).zip(slopes.chunks_exact_mut(r)).for_each(|(row, slopes)| change(row, slopes));
                slopes.iter_mut().for_each(|slope| *slope = if slope.abs() < TINY { 0.0 } else { *slope });
                isa.combine(rows, stride, slopes, r, &mut total);
            }
            total
        };
        let pieces = count.div_ceil(piece);
        let parts: Vec<Vec<f32>> =
            if pieces > 1 { (0..pieces).into_par_iter().map(part).collect() } else { (0..pieces).map(part).collect() };
        parts.iter().for_each(|total| widen(total, stride, unit, &mut out, m));
        out
    }
}
