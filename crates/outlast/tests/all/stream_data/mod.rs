//! Rows in chunks, fitted in chunks and in memory.

use outlast::data::{Chunk, Chunks, Parts};
use outlast::model::{Function, StreamRequest};
use outlast::solver::stream::MOST_SENT;
use outlast::{Class, Control, Dense, Estimator, FitRequest, Kernel, Labels, Model, Truncated};

/// Enough for a sample of some thousand rows, and no more.
pub const MEMORY: usize = 1 << 24;

pub fn random(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed | 1 << 63;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Rows of k classes around centres, some labels wrong, some of these far out.
pub struct Data {
    pub cols: usize,
    pub classes: usize,
    pub x: Vec<f32>,
    pub codes: Vec<u32>,
}

pub fn data(rows: usize, cols: usize, classes: usize, seed: u64) -> Data {
    let mut uniform = random(seed);
    let mut normal = move || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    let centres: Vec<f64> = (0..classes * cols).map(|_| 2.0 * normal()).collect();
    let mut other = random(seed ^ 99);
    let (mut x, mut codes) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let code = (other() * classes as f64) as usize;
        let far = if other() < 0.01 { 6.0 } else { 1.0 };
        let columns = (0..cols).map(|j| (far * (centres[code * cols + j] + normal()) + 3.0 * j as f64) as f32);
        x.extend(columns);
        let wrong = if other() < 0.08 { (other() * classes as f64) as usize } else { code };
        codes.push(wrong as u32);
    }
    Data { cols, classes, x, codes }
}

impl Data {
    pub fn rows(&self) -> usize {
        self.codes.len()
    }

    pub fn names(&self) -> Vec<Class> {
        (0..self.classes as i64).map(Class::Int).collect()
    }

    /// Cut into parts of these sizes, the last one taking what is left.
    pub fn parts(&self, sizes: &[usize], weights: Option<&[f64]>) -> Parts {
        let mut parts = Vec::new();
        let mut at = 0;
        for size in sizes.iter().copied().chain([usize::MAX]) {
            let end = at + size.min(self.rows() - at);
            parts.push(Chunk {
                first: 0,
                x: self.x[at * self.cols..end * self.cols].to_vec(),
                codes: self.codes[at..end].to_vec(),
                weights: weights.map_or(Vec::new(), |weights| weights[at..end].to_vec()),
            });
            at = end;
        }
        Parts::new(self.cols, parts)
    }

    pub fn dense(&self) -> Dense<'static, f64> {
        Dense::new(self.rows(), self.cols, self.x.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>()).unwrap()
    }

    pub fn labels(&self) -> Labels {
        Labels::from_codes(self.names(), self.codes.clone()).unwrap()
    }

    pub fn stream(&self, method: &dyn Estimator, sizes: &[usize], weights: Option<&[f64]>) -> Model {
        stream(method, &mut self.parts(sizes, weights), &self.names(), MOST_SENT)
    }

    pub fn in_memory(&self, method: &dyn Estimator, weights: Option<&[f64]>) -> Model {
        let request = FitRequest { sample_weight: weights, ..FitRequest::default() };
        method.fit_labels(&self.dense(), &self.labels(), &request).unwrap()
    }

    /// The objective of a model, written out; `caps` is C times the weight of a row, `factors` what its terms weigh.
    pub fn objective(&self, model: &Model, caps: impl Fn(usize) -> f64, factors: impl Fn(u32, u32) -> f64) -> f64 {
        0.5 * weights(model).iter().map(|w| w * w).sum::<f64>() + self.loss(model, caps, factors)
    }

    /// The objective without its penalty.
    pub fn loss(&self, model: &Model, caps: impl Fn(usize) -> f64, factors: impl Fn(u32, u32) -> f64) -> f64 {
        let ceiling = model.summary.truncation.map_or(f64::INFINITY, |s| 1.0 - s);
        let scores = model.decision_function(&self.dense()).unwrap();
        let (m, k) = (scores.len() / self.rows(), self.classes as u32);
        let mut total = 0.0;
        for (row, f) in scores.chunks_exact(m).enumerate() {
            for class in 0..k {
                let margin = match m {
                    1 => f[0] * if class == 1 { 1.0 } else { -1.0 },
                    _ => {
                        let others = (0..m).filter(|l| *l != class as usize).map(|l| f[l]);
                        f[class as usize] - others.fold(f64::NEG_INFINITY, f64::max)
                    }
                };
                total += caps(row) * factors(self.codes[row], class) * (1.0 - margin).clamp(0.0, ceiling);
            }
        }
        total
    }
}

pub fn stream(method: &dyn Estimator, rows: &mut dyn Chunks, classes: &[Class], sums: usize) -> Model {
    let request = StreamRequest { classes, feature_names: None, memory: MEMORY, sums, control: Control::default() };
    method.fit_chunks(rows, &request).unwrap()
}

pub fn linear(c: f64) -> Truncated {
    Truncated::new(c).kernel(Kernel::Linear).tol(1e-8)
}

pub fn own(code: u32, class: u32) -> f64 {
    f64::from(u8::from(code == class))
}

#[track_caller]
pub fn assert_near(found: f64, wanted: f64, tolerance: f64) {
    assert!((found - wanted).abs() <= tolerance * wanted.abs(), "{found} is not {wanted}: {:e}", found / wanted - 1.0);
}

pub fn weights(model: &Model) -> &[f64] {
    let Function::Linear { weights } = &model.predictor.function else { panic!("a linear model") };
    weights
}
