//! The preconditioner of the conjugate gradients: the flat and the steep part of the second derivatives.
//!
//! On the columns of V they are r I - G plus what is steep, and near the optimum G has a cluster of eigenvalues at r: the directions
//! in which V may still turn. B = r (I - Q diag(1 - d) Q') on these columns, Q the eigenvectors found and d their |1 - eigenvalue/r| from FLAT
//! upwards, and r I on the first.
//!
//! Near the kink of a row its second derivatives are those of one direction u in the plane of a and p_perp, of height h: f_i f_i' times
//! h uu'. With the steep directions as columns of S = [f_i (x) u_i], M = B + S diag(h) S', and
//!
//! ```text
//! M^-1 g = B^-1 g - B^-1 S (diag(1/h) + S'B^-1 S)^-1 S'B^-1 g
//! ```
//!
//! Where there are more of them than columns of the features, the blocks of M on the diagonal are factored instead: one for the first
//! column of W, one for all the others, with the average over their directions.

use super::lower::lanczos_of;
use super::product::{Operator, Pairs, narrowed, shortened, widen};
use super::smoothed::Rows;
use crate::linalg::{Isa, WIDE, cholesky, cholesky_solve, dot, weighted_gram};
use crate::problem::ablation::Curvature;

/// A direction counts as steep from this height on, relative to the ridge.
const STEEP: f64 = 0.5;
/// Directions are taken as those of the first column when the rest is below this.
const TILTED: f64 = 0.03;
/// Most steep directions, the steepest first.
const MOST_STEEP: usize = 192;
/// The least d.
const FLAT: f64 = 0.1;
/// Eigenvalues of G / r that are taken: from, most.
const NOTICED: f64 = 0.7;
const MOST_FLAT: usize = 16;
/// Steps of the Lanczos iteration.
const SEARCH: usize = 40;

/// Directions in which r I - G is nearly 0.
#[derive(Default)]
pub(super) struct Flat {
    /// Q, its columns one after the other.
    vectors: Vec<f64>,
    /// 1/d - 1
    gains: Vec<f64>,
}

impl Flat {
    /// From the largest eigenpairs of G / r that some steps of the Lanczos iteration find.
    pub(super) fn new(operator: &Operator, m: usize, start: &[f64]) -> Flat {
        let (values, vectors) = lanczos_of(&|x| operator.bent(x), start.to_vec(), m, MOST_FLAT, SEARCH);
        let count = values.iter().take_while(|value| **value > NOTICED).count();
        let gains = values[..count].iter().map(|value| 1.0 / (1.0 - value).abs().clamp(FLAT, 1.0) - 1.0).collect();
        Flat { vectors: vectors[..count * m].to_vec(), gains }
    }

    /// r B^-1 x of one column of V, added to x.
    fn lift(&self, x: &mut [f64]) {
        let m = x.len();
        let lengths: Vec<f64> =
            self.vectors.chunks_exact(m).zip(&self.gains).map(|(q, gain)| gain * dot(q, x)).collect();
        for (q, length) in self.vectors.chunks_exact(m).zip(&lengths) {
            x.iter_mut().zip(q).for_each(|(x, q)| *x += length * q);
        }
    }
}

pub(super) struct Preconditioner<'a> {
    ridge: f64,
    /// Columns of the features.
    columns: usize,
    flat: &'a Flat,
    kind: Kind,
}

enum Kind {
    None,
    Few(Few),
    Many { first: Vec<f64>, others: Option<Vec<f64>> },
}

struct Few {
    /// f_i, those of directions along the first column first.
    rows: Stored,
    /// How many these are.
    straight: usize,
    /// u_i of the others.
    tilts: Vec<Vec<f64>>,
    factor: Vec<f64>,
    order: usize,
}

/// In f32 where the second derivatives are.
enum Stored {
    Single { values: Vec<f32>, stride: usize },
    Double(Vec<f64>),
}

struct Steep {
    row: usize,
    height: f64,
    /// u_i; empty along the first column.
    tilt: Vec<f64>,
}

impl<'a> Preconditioner<'a> {
    pub(super) fn new(
        rows: &Rows,
        squares: &[f64],
        operator: &Operator,
        flat: &'a Flat,
        pairs: &mut Pairs,
    ) -> Preconditioner<'a> {
        let (m, ridge) = (rows.features.columns, rows.ridge);
        let mut steep: Vec<Steep> = Vec::new();
        for (at, (&row, h)) in operator.rows().iter().zip(&operator.curvature).enumerate() {
            let least = STEEP * ridge / squares[row].max(f64::MIN_POSITIVE);
            for (height, cosine, sine) in heights(h, operator.lift(at)) {
                if height > least {
                    let tilt =
                        if sine.abs() < TILTED { Vec::new() } else { direction(cosine, sine, operator.lift(at)) };
                    steep.push(Steep { row, height, tilt });
                }
            }
        }
        let kind = match steep.len() {
            0 => Kind::None,
            count if count < m || m > MOST_STEEP => {
                few(rows, steep, flat, pairs, operator.is_single()).map_or(Kind::None, Kind::Few)
            }
            _ => many(rows, operator),
        };
        Preconditioner { ridge, columns: m, flat, kind }
    }

    /// M^-1 g
    pub(super) fn apply(&self, g: &[f64]) -> Vec<f64> {
        let m = self.columns;
        let mut out: Vec<f64> = g.iter().map(|g| g / self.ridge).collect();
        if let Kind::Many { first, others } = &self.kind {
            out[..m].copy_from_slice(&g[..m]);
            cholesky_solve(first, m, &mut out[..m]);
            if let Some(others) = others {
                out[m..].copy_from_slice(&g[m..]);
                out[m..].chunks_exact_mut(m).for_each(|out| cholesky_solve(others, m, out));
            }
            return out;
        }
        out[m..].chunks_exact_mut(m).for_each(|out| self.flat.lift(out));
        if let Kind::Few(few) = &self.kind {
            let mut part = few.part(&out, m);
            part[m..].chunks_exact_mut(m).for_each(|part| self.flat.lift(part));
            out.iter_mut().zip(&part).for_each(|(out, part)| *out -= part);
        }
        out
    }
}

/// The heights of a row's second derivatives in the plane of a and p_perp, and the cosine and sine of their directions with a.
fn heights(h: &Curvature, lift: &[f64]) -> [(f64, f64, f64); 2] {
    let squared: f64 = lift.iter().map(|v| v * v).sum();
    let (p, q, s) = (h.aa, h.av * squared.sqrt(), h.vv * squared + h.ii);
    if squared == 0.0 {
        return [(p, 1.0, 0.0), (0.0, 0.0, 1.0)];
    }
    let (middle, half) = (0.5 * (p + s), 0.5 * (p - s));
    let reach = half.hypot(q);
    let (x, y) = if half >= 0.0 { (half + reach, q) } else { (q, reach - half) };
    let length = x.hypot(y).max(f64::MIN_POSITIVE);
    let (cosine, sine) = (x / length, y / length);
    [(middle + reach, cosine, sine), (middle - reach, -sine, cosine)]
}

fn direction(cosine: f64, sine: f64, lift: &[f64]) -> Vec<f64> {
    let length = lift.iter().map(|v| v * v).sum::<f64>().sqrt();
    std::iter::once(cosine).chain(lift.iter().map(|v| sine * (v / length))).collect()
}

fn few(rows: &Rows, mut steep: Vec<Steep>, flat: &Flat, pairs: &mut Pairs, single: bool) -> Option<Few> {
    if steep.len() > MOST_STEEP {
        steep.select_nth_unstable_by(MOST_STEEP, |a, b| b.height.total_cmp(&a.height));
        steep.truncate(MOST_STEEP);
    }
    let (m, order) = (rows.features.columns, steep.len());
    steep.sort_by_key(|steep| !steep.tilt.is_empty());
    let straight = steep.iter().filter(|steep| steep.tilt.is_empty()).count();
    let places = pairs.places(rows.features, rows.len(), steep.iter().map(|steep| steep.row));
    let mut factor = vec![0.0; order * order];
    // Q'f_i times the root of the gain, for the tilted
    let known = flat.gains.len();
    let mut images = vec![0.0; (order - straight) * known];
    for ((q, gain), k) in flat.vectors.chunks_exact(m).zip(&flat.gains).zip(0..) {
        for (at, &place) in places[straight..].iter().enumerate() {
            images[at * known + k] = gain.sqrt() * dot(q, pairs.row(place, m));
        }
    }
    for j in 0..order {
        let row = &mut factor[j * order..=j * order + j];
        row.iter_mut().zip(&places).for_each(|(value, &other)| *value = pairs.product(places[j], other));
        if j >= straight {
            let own = &steep[j].tilt;
            row[..straight].iter_mut().for_each(|value| *value *= own[0]);
            let image = &images[(j - straight) * known..][..known];
            for (at, (value, other)) in row[straight..].iter_mut().zip(&steep[straight..]).enumerate() {
                let lifted = *value + dot(image, &images[at * known..][..known]);
                let aligned: f64 = own[1..].iter().zip(&other.tilt[1..]).map(|(a, b)| a * b).sum();
                *value = *value * own[0] * other.tilt[0] + lifted * aligned;
            }
        }
        row[j] += rows.ridge / steep[j].height;
    }
    let tilts = steep.into_iter().skip(straight).map(|steep| steep.tilt).collect();
    cholesky(&mut factor, order).then(|| Few {
        rows: Stored::new(pairs, &places, m, single),
        straight,
        tilts,
        factor,
        order,
    })
}

impl Stored {
    fn new(pairs: &Pairs, places: &[usize], m: usize, single: bool) -> Stored {
        if !single {
            return Stored::Double(places.iter().flat_map(|&at| pairs.row(at, m).iter().copied()).collect());
        }
        let stride = m.next_multiple_of(WIDE);
        let mut values = vec![0.0; places.len() * stride];
        for (out, &at) in values.chunks_exact_mut(stride).zip(places) {
            out.iter_mut().zip(pairs.row(at, m)).for_each(|(out, f)| *out = shortened(*f));
        }
        Stored::Single { values, stride }
    }
}

impl Few {
    /// S (r diag(1/h) + r S'B^-1 S)^-1 S'y
    fn part(&self, y: &[f64], m: usize) -> Vec<f64> {
        match &self.rows {
            Stored::Double(rows) => self.in_double(rows, y, m),
            Stored::Single { values, stride } => self.in_single(values, *stride, y, m),
        }
    }

    fn in_double(&self, rows: &[f64], y: &[f64], m: usize) -> Vec<f64> {
        let isa = Isa::detect();
        let mut inner = vec![0.0; self.order];
        isa.dots(rows, &y[..m], &mut inner);
        let tilted = &rows[self.straight * m..];
        let mut images = vec![0.0; self.tilts.len()];
        for (k, y) in y.chunks_exact(m).enumerate() {
            let inner = &mut inner[self.straight..];
            if k == 0 {
                inner.iter_mut().zip(&self.tilts).for_each(|(inner, tilt)| *inner *= tilt[0]);
            } else if !inner.is_empty() {
                isa.dots(tilted, y, &mut images);
                for ((inner, image), tilt) in inner.iter_mut().zip(&images).zip(&self.tilts) {
                    *inner += tilt[k] * image;
                }
            }
        }
        cholesky_solve(&self.factor, self.order, &mut inner);
        let mut out = vec![0.0; y.len()];
        let (straight, others) = inner.split_at(self.straight);
        isa.accumulate(&rows[..self.straight * m], straight, &mut out[..m]);
        for (k, out) in out.chunks_exact_mut(m).enumerate() {
            for ((image, inner), tilt) in images.iter_mut().zip(others).zip(&self.tilts) {
                *image = tilt[k] * inner;
            }
            isa.accumulate(tilted, &images, out);
        }
        out
    }

    fn in_single(&self, rows: &[f32], stride: usize, y: &[f64], m: usize) -> Vec<f64> {
        let (isa, r) = (Isa::detect(), y.len() / m);
        let mut out = vec![0.0; y.len()];
        let Some((short, unit)) = narrowed(y, m, stride) else { return out };
        let (straight, tilted) = rows.split_at(self.straight * stride);
        let (mut along, mut images) = (vec![0.0f32; self.straight], vec![0.0f32; self.tilts.len() * r]);
        isa.products(straight, stride, &short[..stride], 1, &mut along);
        isa.products(tilted, stride, &short, r, &mut images);
        let across = images
            .chunks_exact(r)
            .zip(&self.tilts)
            .map(|(image, tilt)| image.iter().zip(tilt).map(|(image, tilt)| f64::from(*image) * tilt).sum::<f64>());
        let mut inner: Vec<f64> = along.iter().map(|along| f64::from(*along)).chain(across).collect();
        cholesky_solve(&self.factor, self.order, &mut inner);
        let (first, others) = inner.split_at(self.straight);
        along.iter_mut().zip(first).for_each(|(along, inner)| *along = shortened(*inner));
        for ((image, inner), tilt) in images.chunks_exact_mut(r).zip(others).zip(&self.tilts) {
            image.iter_mut().zip(tilt).for_each(|(image, tilt)| *image = shortened(tilt * inner));
        }
        let mut total = vec![0.0f32; r * stride];
        isa.combine(straight, stride, &along, 1, &mut total[..stride]);
        isa.combine(tilted, stride, &images, r, &mut total);
        widen(&total, stride, unit, &mut out, m);
        out
    }
}

fn many(rows: &Rows, operator: &Operator) -> Kind {
    let (m, ridge) = (rows.features.columns, rows.ridge);
    let system = |height: &dyn Fn(usize) -> f64| {
        let heights: Vec<f64> = (0..operator.rows().len()).map(|at| height(at).max(0.0)).collect();
        let chosen = operator.rows().iter().zip(&heights).filter(|(_, height)| **height > 0.0);
        let chosen: Vec<(&[f64], f64)> = chosen.map(|(&row, &height)| (rows.features.row(row), height)).collect();
        let mut factor = weighted_gram(&chosen, m);
        (0..m).for_each(|j| factor[j * m + j] += ridge);
        cholesky(&mut factor, m).then_some(factor)
    };
    let Some(first) = system(&|at| operator.curvature[at].aa) else { return Kind::None };
    let count = operator.lift(0).len();
    let others = (count > 0).then(|| {
        let share = 1.0 / count as f64;
        system(&|at| {
            let squared: f64 = operator.lift(at).iter().map(|v| v * v).sum();
            operator.curvature[at].ii + share * squared * operator.curvature[at].vv
        })
    });
    Kind::Many { first, others: others.flatten() }
}
