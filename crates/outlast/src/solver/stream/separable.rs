//! The quadratic model of the loss with a penalty sum rate |w|^q, on the client: d k unknowns, no rows.
//!
//! ```text
//! min over u   1/2 u'Hu - c'u + sum_j rate_j |u_j|^q,       several functions sum up to 0 in every column
//! ```
//!
//! Unknowns are written u = B v, B a basis of what the sums leave (Helmert's), without coefficients that are fixed at 0.
//!
//! **q = 1**: a primal-dual interior point method on u = a - b, a, b >= 0. With the multipliers y of this equation, s_a = r - y, s_b = r + y and
//! t = a/s_a + b/s_b a step solves
//!
//! ```text
//! B'(H + 1/t) B dv = -B'(H u - c + y + (u - mu/s_a + mu/s_b) / t)
//! ```
//!
//! then the coefficients that go to 0 are set to 0, and the others solved for with their signs held. **q < 1**: rates q rate |w|^(q-1) of the
//! current point, infinite at 0: the bound that touches there. **q > 1**: |u|^q is bounded by its quadratic in u^2, again and again.

use super::{Separable, Spec};
use crate::linalg::{Factor, dot};

const ITERATIONS: usize = 60;
const ROUNDS: usize = 300;
/// Relative complementarity at which the interior point method ends.
const TIGHT: f64 = 1e-12;
/// Share of the way to the boundary.
const BOUNDARY: f64 = 0.99;
/// How fast the complementarity is asked to fall.
const CENTRING: f64 = 0.1;
/// A coefficient next to the largest that counts as 0 in a quadratic bound.
const NOTHING: f64 = 1e-9;
/// Relative rise of the model that exact zeros may cost.
const ROUNDING: f64 = 1e-9;
/// Relative change at which the bounds end.
const STILL: f64 = 1e-11;

impl Separable {
    /// sum rate |w|^q of normalised coefficients.
    pub(super) fn value(&self, spec: &Spec, theta: &[f64]) -> f64 {
        let rows = theta.chunks_exact(spec.order()).zip(self.rates.chunks_exact(spec.cols));
        let power = |w: f64| if self.q == 1.0 { w.abs() } else { w.abs().powf(self.q) };
        let term = |(w, rate): (&f64, &f64)| if *w == 0.0 { 0.0 } else { rate * power(*w) };
        rows.map(|(row, rates)| row[..spec.cols].iter().zip(rates).map(term).sum::<f64>()).sum()
    }

    /// Rates of the weighted l1 penalty that touches at a point, one for each value of theta: 0 for intercepts.
    fn touching(&self, spec: &Spec, theta: &[f64]) -> Vec<f64> {
        let rate = |w: f64, rate: f64| match self.q {
            1.0 => rate,
            _ if w == 0.0 => f64::INFINITY,
            q => rate * q * w.abs().powf(q - 1.0),
        };
        let rows = theta.chunks_exact(spec.order()).zip(self.rates.chunks_exact(spec.cols));
        rows.flat_map(|(row, rates)| row.iter().zip(rates).map(|(w, r)| rate(*w, *r)).chain([0.0]).collect::<Vec<_>>())
            .collect()
    }

    /// The weighted l1 penalty that touches at a point.
    pub(super) fn touching_at(&self, spec: &Spec, theta: &[f64]) -> Separable {
        let rates = self.touching(spec, theta);
        let of_columns = rates.chunks_exact(spec.order()).flat_map(|row| row[..spec.cols].iter().copied());
        Separable { q: 1.0, rates: of_columns.collect() }
    }

    /// The minimiser of the model whose matrix and gradient are those at `theta`.
    pub(super) fn step(&self, spec: &Spec, matrix: &[f64], gradient: &[f64], theta: &[f64]) -> Option<Vec<f64>> {
        let size = theta.len();
        let right: Vec<f64> =
            (0..size).map(|at| dot(&matrix[at * size..(at + 1) * size], theta) - gradient[at]).collect();
        if self.q <= 1.0 {
            let rates = self.touching(spec, theta);
            let basis = Basis::new(spec, |at| rates[at].is_infinite());
            return absolute(&Model { basis: &basis, matrix, right: &right, rates: &rates }, theta);
        }
        let rates: Vec<f64> =
            self.rates.chunks_exact(spec.cols).flat_map(|row| row.iter().copied().chain([0.0])).collect();
        let basis = Basis::new(spec, |at| rates[at].is_infinite());
        curved(&Model { basis: &basis, matrix, right: &right, rates: &rates }, self.q, theta)
    }
}

/// What is minimised; rates have a value for every entry of theta.
struct Model<'a> {
    basis: &'a Basis,
    matrix: &'a [f64],
    right: &'a [f64],
    rates: &'a [f64],
}

impl Model<'_> {
    fn size(&self) -> usize {
        self.right.len()
    }

    fn times(&self, u: &[f64]) -> Vec<f64> {
        let size = self.size();
        (0..size).map(|at| dot(&self.matrix[at * size..(at + 1) * size], u)).collect()
    }

    fn value(&self, u: &[f64]) -> f64 {
        let penalty: f64 = u.iter().zip(self.rates).filter(|(u, _)| **u != 0.0).map(|(u, r)| r * u.abs()).sum();
        0.5 * dot(&self.times(u), u) - dot(self.right, u) + penalty
    }

    /// Solves B'(H + diag) B v = B'right; returns B v.
    fn solve(&self, diagonal: &[f64], right: &[f64]) -> Option<Vec<f64>> {
        let size = self.size();
        let mut matrix = self.matrix.to_vec();
        (0..size).for_each(|at| matrix[at * size + at] += diagonal[at]);
        let (reduced, order) = (self.basis.reduce(&matrix, size), self.basis.columns.len());
        let factor = Factor::nearest(&reduced, order, order)?;
        let v = factor.solve(&self.basis.transposed(right));
        v.iter().all(|v| v.is_finite()).then(|| self.basis.times(&v, size))
    }
}

/// Columns of B, each with its few entries.
struct Basis {
    columns: Vec<Vec<(usize, f64)>>,
    /// The free entries of theta that belong to the same column of the table.
    groups: Vec<Vec<usize>>,
    /// Whether a group's entries sum up to 0.
    summed: bool,
}

impl Basis {
    fn new(spec: &Spec, fixed: impl Fn(usize) -> bool) -> Basis {
        let (m, p) = (spec.functions, spec.order());
        let free = |place: usize| (0..m).map(|function| function * p + place).filter(|&at| !fixed(at)).collect();
        Basis::of((0..if spec.intercept { p } else { p - 1 }).map(free).collect(), m > 1)
    }

    fn of(groups: Vec<Vec<usize>>, summed: bool) -> Basis {
        let mut columns = Vec::new();
        for free in &groups {
            if !summed {
                columns.extend(free.iter().map(|&at| vec![(at, 1.0)]));
                continue;
            }
            // orthonormal vectors that sum up to 0
            for k in 1..free.len() {
                let scale = 1.0 / ((k * (k + 1)) as f64).sqrt();
                let mut column: Vec<(usize, f64)> = free[..k].iter().map(|&at| (at, scale)).collect();
                column.push((free[k], -(k as f64) * scale));
                columns.push(column);
            }
        }
        Basis { columns, groups, summed }
    }

    /// The same without some entries.
    fn without(&self, gone: &[bool]) -> Basis {
        let left = |group: &Vec<usize>| group.iter().copied().filter(|&at| !gone[at]).collect();
        Basis::of(self.groups.iter().map(left).collect(), self.summed)
    }

    /// B'MB
    fn reduce(&self, matrix: &[f64], size: usize) -> Vec<f64> {
        let order = self.columns.len();
        let mut reduced = vec![0.0; order * order];
        for (a, left) in self.columns.iter().enumerate() {
            for (b, right) in self.columns[..=a].iter().enumerate() {
                let entries = left.iter().flat_map(|l| right.iter().map(move |r| (l, r)));
                let sum: f64 = entries.map(|(l, r)| l.1 * r.1 * matrix[l.0 * size + r.0]).sum();
                reduced[a * order + b] = sum;
                reduced[b * order + a] = sum;
            }
        }
        reduced
    }

    fn transposed(&self, u: &[f64]) -> Vec<f64> {
        self.columns.iter().map(|column| column.iter().map(|(at, value)| value * u[*at]).sum()).collect()
    }

    fn times(&self, v: &[f64], size: usize) -> Vec<f64> {
        let mut u = vec![0.0; size];
        for (column, v) in self.columns.iter().zip(v) {
            column.iter().for_each(|(at, value)| u[*at] += value * v);
        }
        u
    }

    /// u as what the basis can say.
    fn project(&self, u: &[f64]) -> Vec<f64> {
        self.times(&self.transposed(u), u.len())
    }
}

/// The interior point method for q = 1.
fn absolute(model: &Model, theta: &[f64]) -> Option<Vec<f64>> {
    let size = model.size();
    let counted: Vec<usize> = (0..size).filter(|&at| model.rates[at] > 0.0 && model.rates[at].is_finite()).collect();
    let mut u = model.basis.project(theta);
    let largest = counted.iter().map(|&at| u[at].abs()).fold(0.0, f64::max).max(1e-3);
    let (mut a, mut b, mut y) = (vec![0.0; size], vec![0.0; size], vec![0.0; size]);
    for &at in &counted {
        a[at] = u[at].max(0.0) + 0.1 * largest;
        b[at] = (-u[at]).max(0.0) + 0.1 * largest;
    }
    let scale = counted.iter().map(|&at| model.rates[at] * largest).sum::<f64>().max(f64::MIN_POSITIVE);
    for _ in 0..ITERATIONS {
        let slack = |at: usize, y: &[f64]| (model.rates[at] - y[at], model.rates[at] + y[at]);
        let gap: f64 = counted.iter().map(|&at| a[at] * slack(at, &y).0 + b[at] * slack(at, &y).1).sum();
        let off: f64 = counted.iter().map(|&at| model.rates[at] * (u[at] - a[at] + b[at]).abs()).sum();
        if gap <= TIGHT * scale && off <= TIGHT * scale {
            break;
        }
        let mu = CENTRING * gap / (2 * counted.len()).max(1) as f64;
        let (mut diagonal, mut pull) = (vec![0.0; size], vec![0.0; size]);
        for &at in &counted {
            let (s_a, s_b) = slack(at, &y);
            diagonal[at] = 1.0 / (a[at] / s_a + b[at] / s_b);
            pull[at] = y[at] + (u[at] - mu / s_a + mu / s_b) * diagonal[at];
        }
        let slope: Vec<f64> =
            model.times(&u).iter().zip(model.right).zip(&pull).map(|((hu, c), pull)| c - hu - pull).collect();
        let du = model.solve(&diagonal, &slope)?;
        let mut length: f64 = 1.0;
        let mut moves = Vec::with_capacity(counted.len());
        for &at in &counted {
            let (s_a, s_b) = slack(at, &y);
            let dy = (du[at] + u[at] - mu / s_a + mu / s_b) * diagonal[at];
            let da = mu / s_a - a[at] + a[at] / s_a * dy;
            let db = mu / s_b - b[at] - b[at] / s_b * dy;
            for (value, change) in [(a[at], da), (b[at], db), (s_a, -dy), (s_b, dy)] {
                if change < 0.0 {
                    length = length.min(-BOUNDARY * value / change);
                }
            }
            moves.push((at, da, db, dy));
        }
        u.iter_mut().zip(&du).for_each(|(u, du)| *u += length * du);
        for (at, da, db, dy) in moves {
            a[at] += length * da;
            b[at] += length * db;
            y[at] += length * dy;
        }
    }
    Some(settled(model, u, &y, &counted, largest))
}

/// Exact zeros, the others solved for with their signs held; or the interior point's answer, where that does not fit.
fn settled(model: &Model, u: Vec<f64>, y: &[f64], counted: &[usize], largest: f64) -> Vec<f64> {
    let largest = counted.iter().map(|&at| u[at].abs()).fold(0.0, f64::max).max(1e-12 * largest);
    // complementary: the smaller of the two, each next to its scale, is the one that is 0
    let zero = |at: usize| u[at].abs() / largest < 1.0 - y[at].abs() / model.rates[at];
    let mut is_zero = vec![false; u.len()];
    counted.iter().for_each(|&at| is_zero[at] = zero(at));
    let basis = model.basis.without(&is_zero);
    let few = Model { basis: &basis, ..*model };
    let right: Vec<f64> = (0..u.len())
        .map(|at| {
            let rate = if is_zero[at] || !model.rates[at].is_finite() { 0.0 } else { model.rates[at] };
            model.right[at] - rate * if u[at] < 0.0 { -1.0 } else { 1.0 }
        })
        .collect();
    let bound = model.value(&u) + ROUNDING * model.value(&u).abs();
    let solved = few.solve(&vec![0.0; u.len()], &right).filter(|solved| model.value(solved) <= bound);
    solved.or_else(|| Some(basis.project(&u)).filter(|rough| model.value(rough) <= bound)).unwrap_or(u)
}

/// Quadratic bounds for q > 1: |u|^q <= |w|^q + q/2 |w|^(q-2) (u^2 - w^2).
fn curved(model: &Model, q: f64, theta: &[f64]) -> Option<Vec<f64>> {
    let mut u = model.basis.project(theta);
    if u.iter().zip(model.rates).all(|(u, rate)| *u == 0.0 || *rate == 0.0) {
        // nothing to touch at: the model without penalty
        u = model.solve(&vec![0.0; u.len()], model.right)?;
    }
    for _ in 0..ROUNDS {
        let largest = u.iter().zip(model.rates).filter(|(_, r)| **r > 0.0).map(|(u, _)| u.abs()).fold(0.0, f64::max);
        let least = (NOTHING * largest).max(f64::MIN_POSITIVE);
        let weight = |(u, rate): (&f64, &f64)| match rate.is_finite() {
            true => rate * q * u.abs().max(least).powf(q - 2.0),
            false => 0.0,
        };
        let diagonal: Vec<f64> = u.iter().zip(model.rates).map(weight).collect();
        let next = model.solve(&diagonal, model.right)?;
        let change = next.iter().zip(&u).map(|(next, u)| (next - u).abs()).fold(0.0, f64::max);
        u = next;
        if change <= STILL * largest {
            break;
        }
    }
    Some(u)
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::*;
    use crate::linalg::Isa;

    fn spec(functions: usize, cols: usize) -> Spec {
        Spec {
            cols,
            classes: functions.max(2),
            functions,
            terms: Vec::new(),
            ceiling: f64::INFINITY,
            ridge: 0.0,
            unit: 1.0,
            intercept: true,
            shape: Shape::Margin,
            wide: false,
            room: 1 << 26,
            isa: Isa::detect(),
        }
    }

    /// A random positive matrix and gradient.
    fn model(size: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut state = seed | 1 << 63;
        let mut noise = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            2.0 * (state >> 11) as f64 / (1u64 << 53) as f64 - 1.0
        };
        let root: Vec<f64> = (0..size * size).map(|_| noise()).collect();
        let mut matrix = vec![0.0; size * size];
        for a in 0..size {
            for b in 0..size {
                matrix[a * size + b] = (0..size).map(|k| root[a * size + k] * root[b * size + k]).sum();
            }
            matrix[a * size + a] += 0.1;
        }
        (matrix, (0..size).map(|_| 2.0 * noise()).collect())
    }

    /// No small move that keeps the sums goes down: the optimality condition itself, tried out.
    #[test]
    fn no_move_goes_down() {
        for (functions, cols, q) in [(1, 6, 1.0), (1, 5, 1.5), (3, 4, 1.0), (3, 3, 1.3), (1, 4, 2.0), (4, 5, 1.0)] {
            for seed in 0..6 {
                let spec = spec(functions, cols);
                let size = spec.size();
                let (matrix, gradient) = model(size, 77 * seed + size as u64);
                let penalty =
                    Separable { q, rates: (0..functions * cols).map(|k| 0.3 + 0.2 * (k % 3) as f64).collect() };
                let theta = vec![0.0; size];
                let found = penalty.step(&spec, &matrix, &gradient, &theta).unwrap();
                let value = |u: &[f64]| {
                    let hu: Vec<f64> = (0..size).map(|at| dot(&matrix[at * size..(at + 1) * size], u)).collect();
                    0.5 * dot(&hu, u) + dot(&gradient, u) + penalty.value(&spec, u)
                };
                let best = value(&found);
                for place in 0..spec.order() {
                    let sum: f64 = (0..functions).map(|function| found[function * spec.order() + place]).sum();
                    assert!(functions == 1 || sum.abs() < 1e-9, "{sum}");
                    for (up, down) in (0..functions).flat_map(|up| (0..functions).map(move |down| (up, down))) {
                        if functions > 1 && up == down {
                            continue;
                        }
                        for by in [1e-2, -1e-2, 1e-4, -1e-4] {
                            let mut moved = found.clone();
                            moved[up * spec.order() + place] += by;
                            if functions > 1 {
                                moved[down * spec.order() + place] -= by;
                            }
                            assert!(value(&moved) >= best - 1e-9 * best.abs(), "{functions} {q} {seed}: {place} {by}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn large_rates_leave_nothing_but_the_intercept() {
        let spec = spec(1, 4);
        let (matrix, gradient) = model(spec.size(), 3);
        let found = Separable { q: 1.0, rates: vec![1e6; 4] }.step(&spec, &matrix, &gradient, &[0.0; 5]).unwrap();
        assert_eq!(found[..4], [0.0; 4]);
        assert!((found[4] + gradient[4] / matrix[24]).abs() < 1e-9);
    }
}
