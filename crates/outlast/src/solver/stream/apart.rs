//! Sums for losses in which every function has a residual of its own.
//!
//! **Apart** (Lee, Lin and Wahba's hinge): a term names a function j and costs c [1 + f_j]_+, smoothed as in `sums`.
//!
//! **Capped**: a row costs c h(g), g = sum_j r_j^2, r_j = [1 - y_ij f_j]_+, with h(g) = min(g^(p/2), cap). Below a floor e the power is replaced
//! by its tangent at e, as in memory. With u = (y_ij r_j (x, 1))_j, of all functions one after the other, the second derivative of a row below
//! the cap is
//!
//! ```text
//! c (2 h'(g) diag(r_j > 0) x (x, 1)(x, 1)'  +  4 h''(g) u u'),       h'' <= 0
//! ```
//!
//! so that one Gram matrix for each function and, for p < 2, one of the order of theta make up the Hessian.

use super::sums::{Gram, HALVINGS, Scored, State, Sums, sweep};
use super::{Shape, Spec};
use crate::data::ChunkView;
use crate::linalg::padded;
use crate::solver::linear::GramSum;

/// Rows of a tile of weighted rows.
const TILE: usize = 32;

/// The sums of a piece while rows enter.
struct Growing {
    value: f64,
    loss: f64,
    blurred: f64,
    slackness: f64,
    beyond: u64,
    gradient: Vec<f64>,
    near: Vec<GramSum>,
    far: Vec<GramSum>,
    /// Functions x rows of a block.
    factors: Vec<f64>,
    residuals: Vec<f64>,
    stacked: Vec<f64>,
}

impl Growing {
    fn new(spec: &Spec) -> Growing {
        let gram = |order: usize| GramSum::with_tile(spec.isa, padded(order), TILE);
        let curved = !spec.wide && matches!(spec.shape, Shape::Capped { power, .. } if power < 2.0);
        Growing {
            value: 0.0,
            loss: 0.0,
            blurred: 0.0,
            slackness: 0.0,
            beyond: 0,
            gradient: vec![0.0; spec.size()],
            near: (0..if spec.wide { 0 } else { spec.functions }).map(|_| gram(spec.order())).collect(),
            // a row brings its own 1, so the last entry of the last function is the one that is added to a tile's rows
            far: (0..usize::from(curved)).map(|_| gram(spec.size())).collect(),
            factors: Vec::new(),
            residuals: vec![0.0; spec.functions],
            stacked: Vec::with_capacity(spec.size()),
        }
    }

    fn grown(self, spec: &Spec) -> Sums {
        Sums {
            value: self.value,
            loss: self.loss,
            blurred: self.blurred,
            slackness: self.slackness,
            beyond: self.beyond,
            gradient: self.gradient,
            near: self.near.into_iter().map(|sum| Gram::of(sum, spec.order())).collect(),
            far: self.far.into_iter().map(|sum| Gram::of(sum, spec.size())).collect(),
            within: [0; HALVINGS],
        }
    }
}

/// h and what it is bounded by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Power {
    pub power: f64,
    pub cap: f64,
    pub floor: f64,
}

impl Power {
    /// h(g)
    pub fn exact(&self, g: f64) -> f64 {
        self.raise(g).min(self.cap)
    }

    fn raise(&self, g: f64) -> f64 {
        match self.power {
            2.0 => g,
            1.0 => g.sqrt(),
            power => g.powf(0.5 * power),
        }
    }

    /// Whether a row is given up.
    pub fn beyond(&self, g: f64) -> bool {
        self.raise(g) > self.cap
    }

    /// The bound, its slope and its curvature.
    pub fn bound(&self, g: f64) -> (f64, f64, f64) {
        if self.power == 2.0 {
            return if g > self.cap { (self.cap, 0.0, 0.0) } else { (g, 1.0, 0.0) };
        }
        if self.beyond(g) {
            return (self.cap, 0.0, 0.0);
        }
        // rows are not capped by the tangent alone
        let floor = self.floor.min(0.01 * self.cap.powf(2.0 / self.power)).max(f64::MIN_POSITIVE);
        let half = 0.5 * self.power;
        let steepness = |g: f64| half * self.raise(g) / g;
        match g <= floor {
            true => ((self.raise(floor) + steepness(floor) * (g - floor)).min(self.cap), steepness(floor), 0.0),
            false => (self.raise(g), steepness(g), (half - 1.0) * steepness(g) / g),
        }
    }
}

/// The sums over the rows of a chunk at a point.
pub(super) fn partition_statistics(chunk: &ChunkView, spec: &Spec, state: &State, parallel: bool) -> Sums {
    let (d, m) = (spec.cols, spec.functions);
    let visit = |block: &Scored, sums: &mut Growing| {
        let rows = block.scores.len() / m;
        sums.factors.clear();
        sums.factors.resize(m * rows, 0.0);
        for row in 0..rows {
            let at = block.first + row;
            let (scores, x) = (&block.scores[row * m..(row + 1) * m], &block.x[row * d..(row + 1) * d]);
            let place = (row, rows);
            match spec.shape {
                Shape::Capped { power, cap } => {
                    let h = Power { power, cap, floor: state.width };
                    capped_row(spec, &h, (chunk.codes[at], chunk.weight(at)), scores, x, place, sums);
                }
                _ => apart_row(spec, state.width, (chunk.codes[at], chunk.weight(at)), scores, x, place, sums),
            }
        }
        for function in 0..m {
            let factors = &sums.factors[function * rows..(function + 1) * rows];
            let gradient = &mut sums.gradient[function * (d + 1)..(function + 1) * (d + 1)];
            spec.isa.accumulate(block.x, factors, &mut gradient[..d]);
            gradient[d] += factors.iter().sum::<f64>();
        }
    };
    let parts = sweep(chunk, spec, &[&state.theta], parallel, || Growing::new(spec), visit);
    let mut total = Growing::new(spec).grown(spec);
    parts.into_iter().for_each(|part| total.add(part.grown(spec)));
    total
}

/// A row of class and weight `of`, in the block at `place.0` of `place.1`.
fn apart_row(
    spec: &Spec,
    width: f64,
    of: (u32, f64),
    scores: &[f64],
    x: &[f64],
    place: (usize, usize),
    sums: &mut Growing,
) {
    for &(function, factor) in spec.terms(of.0) {
        let (function, cap) = (function as usize, factor * of.1);
        let z = 1.0 + scores[function];
        sums.loss += cap * z.max(0.0);
        let t = 0.5 + z / width;
        if t <= 0.0 || cap == 0.0 {
            continue;
        }
        let q = t.min(1.0);
        let smoothed = width * q * (t - 0.5 * q);
        sums.value += cap * smoothed;
        sums.blurred += cap * (smoothed - z.max(0.0));
        sums.slackness += cap * (z.max(0.0) - q * z);
        sums.factors[function * place.1 + place.0] += cap * q;
        if t < 1.0
            && let Some(near) = sums.near.get_mut(function)
        {
            near.push(x, spec.unit, cap / width);
        }
    }
}

/// As [`apart_row`].
fn capped_row(
    spec: &Spec,
    h: &Power,
    of: (u32, f64),
    scores: &[f64],
    x: &[f64],
    place: (usize, usize),
    sums: &mut Growing,
) {
    let cap: f64 = spec.terms(of.0).iter().map(|(_, factor)| factor * of.1).sum();
    if cap == 0.0 {
        return;
    }
    let g = residuals(spec, of.0, scores, &mut sums.residuals);
    let (value, slope, curvature) = h.bound(g);
    sums.loss += cap * h.exact(g);
    sums.value += cap * value;
    sums.beyond += u64::from(h.beyond(g));
    if slope == 0.0 || g == 0.0 {
        return;
    }
    sums.blurred += cap * (value - h.exact(g));
    for (function, &r) in sums.residuals.iter().enumerate().filter(|(_, r)| **r > 0.0) {
        let sign = sign(spec, of.0, function);
        sums.factors[function * place.1 + place.0] -= 2.0 * cap * slope * sign * r;
        if let Some(near) = sums.near.get_mut(function) {
            near.push(x, spec.unit, 2.0 * cap * slope);
        }
    }
    if curvature < 0.0
        && let [far] = &mut sums.far[..]
    {
        sums.stacked.clear();
        for (function, &r) in sums.residuals.iter().enumerate() {
            let factor = 2.0 * r * sign(spec, of.0, function);
            sums.stacked.extend(x.iter().map(|x| x * factor * spec.unit));
            sums.stacked.push(factor);
        }
        far.push_whole(&sums.stacked, -curvature * cap);
    }
}

/// y_ij
pub(super) fn sign(spec: &Spec, code: u32, function: usize) -> f64 {
    let class = if spec.functions == 1 { 1 } else { function };
    if code as usize == class { 1.0 } else { -1.0 }
}

/// r of every function; returns g.
pub(super) fn residuals(spec: &Spec, code: u32, scores: &[f64], out: &mut [f64]) -> f64 {
    let mut g = 0.0;
    for (function, (r, score)) in out.iter_mut().zip(scores).enumerate() {
        *r = (1.0 - sign(spec, code, function) * score).max(0.0);
        g += *r * *r;
    }
    g
}

/// What a row of that class and weight 1 costs, smoothed, or for a width of 0 as it is.
pub(super) fn row_loss(spec: &Spec, code: u32, scores: &[f64], width: f64, scratch: &mut Vec<f64>) -> f64 {
    match spec.shape {
        Shape::Capped { power, cap } => {
            scratch.resize(spec.functions, 0.0);
            let g = residuals(spec, code, scores, scratch);
            let h = Power { power, cap, floor: width };
            let value = if width > 0.0 { h.bound(g).0 } else { h.exact(g) };
            value * spec.terms(code).iter().map(|(_, factor)| factor).sum::<f64>()
        }
        _ => {
            let cost = |z: f64| match width > 0.0 {
                true => {
                    let t = (0.5 + z / width).max(0.0);
                    let q = t.min(1.0);
                    width * q * (t - 0.5 * q)
                }
                false => z.max(0.0),
            };
            spec.terms(code).iter().map(|&(function, factor)| factor * cost(1.0 + scores[function as usize])).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Chunk;
    use crate::linalg::Isa;

    fn spec(classes: usize, shape: Shape) -> Spec {
        let terms = |class: u32| match shape {
            Shape::Capped { .. } => vec![(class, 1.0)],
            _ => (0..classes as u32)
                .filter(|other| *other != class)
                .map(|other| (other, 1.0 + 0.3 * other as f64))
                .collect(),
        };
        Spec {
            cols: 3,
            classes,
            functions: if classes == 2 { 1 } else { classes },
            terms: (0..classes as u32).map(terms).collect(),
            ceiling: f64::INFINITY,
            ridge: 0.1,
            unit: 0.5,
            intercept: true,
            shape,
            wide: false,
            room: 1 << 26,
            isa: Isa::detect(),
        }
    }

    fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed | 1 << 63;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            4.0 * (state >> 11) as f64 / (1u64 << 53) as f64 - 2.0
        }
    }

    /// Gradient and Hessian against central differences of value and gradient.
    #[test]
    fn derivatives_are_those_of_the_value() {
        let shapes = [
            (3, Shape::Apart),
            (2, Shape::Capped { power: 2.0, cap: 2.5 }),
            (2, Shape::Capped { power: 1.5, cap: f64::INFINITY }),
            (3, Shape::Capped { power: 2.0, cap: 9.0 }),
            (3, Shape::Capped { power: 1.0, cap: 2.7 }),
            (4, Shape::Capped { power: 0.6, cap: 3.1 }),
        ];
        for (classes, shape) in shapes {
            let spec = spec(classes, shape);
            let mut noise = noise(classes as u64);
            let chunk = Chunk {
                first: 0,
                x: (0..3 * 60).map(|_| noise() as f32).collect(),
                codes: (0..60).map(|row| row % classes as u32).collect(),
                weights: (0..60).map(|_| noise() + 2.5).collect(),
            };
            let theta: Vec<f64> = (0..spec.size()).map(|_| 0.5 * noise()).collect();
            let at = |theta: &[f64]| {
                let state = State { theta: theta.to_vec(), width: 0.3 };
                let mut sums = partition_statistics(&chunk.view(), &spec, &state, false);
                spec.normalise(&mut sums.gradient);
                sums
            };
            let sums = at(&theta);
            assert!(sums.value > 0.0 && sums.loss <= sums.value * (1.0 + 1e-12) || matches!(shape, Shape::Apart));
            let hessian = super::super::newton::hessian(&spec, &sums);
            for place in 0..theta.len() {
                let moved = |by: f64| {
                    let mut theta = theta.clone();
                    theta[place] += by;
                    at(&theta)
                };
                let (up, down) = (moved(1e-6), moved(-1e-6));
                let slope = (up.value - down.value) / 2e-6;
                assert!((slope - sums.gradient[place]).abs() <= 1e-5 * (1.0 + slope.abs()), "{shape:?} {place}");
                for other in 0..theta.len() {
                    let curve = (up.gradient[other] - down.gradient[other]) / 2e-6;
                    let found = hessian[place * theta.len() + other];
                    assert!(
                        (curve - found).abs() <= 1e-4 * (1.0 + curve.abs()),
                        "{shape:?} {place} {other}: {curve} {found}"
                    );
                }
            }
        }
    }
}
