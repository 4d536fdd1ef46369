//! Random small problems over everything a user can ask for.

use crate::common::Random;
use outlast::data::Columns;
use outlast::model::{AblationMethod, Common};
use outlast::{
    Ablation, Baseline, Cap, Capped, Centroid, ClassWeight, CostForm, Csr, Dense, Design, Estimator, FeatureMap,
    Inliers, Kernel, Labels, LeaveOneOut, Loss, Lq, Penalty, Shift, Truncated, Truncation,
};

#[derive(Debug, Clone)]
pub enum Method {
    Truncated(Truncated),
    Capped(Capped),
    Lq(Lq),
    Ablation(Ablation),
    Centroid(Centroid),
    LeaveOneOut(LeaveOneOut),
}

impl Method {
    pub fn estimator(&self) -> &dyn Estimator {
        match self {
            Method::Truncated(method) => method,
            Method::Capped(method) => method,
            Method::Lq(method) => method,
            Method::Ablation(method) => method,
            Method::Centroid(method) => method,
            Method::LeaveOneOut(method) => method,
        }
    }

    pub fn common(&self) -> &Common {
        match self {
            Method::Truncated(method) => &method.common,
            Method::Capped(method) => &method.common,
            Method::Lq(method) => &method.common,
            Method::Ablation(method) => &method.common,
            Method::Centroid(method) => &method.common,
            Method::LeaveOneOut(method) => &method.common,
        }
    }

    fn common_mut(&mut self) -> &mut Common {
        match self {
            Method::Truncated(method) => &mut method.common,
            Method::Capped(method) => &mut method.common,
            Method::Lq(method) => &mut method.common,
            Method::Ablation(method) => &mut method.common,
            Method::Centroid(method) => &mut method.common,
            Method::LeaveOneOut(method) => &mut method.common,
        }
    }

    /// For the table of results.
    pub fn group(&self) -> String {
        match self {
            Method::Truncated(method) => {
                format!("truncated {} {}", method.loss.base().name(), method.penalty.name())
            }
            Method::Capped(method) => format!("capped {}", method.loss),
            Method::Lq(method) => format!("lq {}", method.solver),
            Method::Ablation(method) => method.method.name().to_string(),
            Method::Centroid(_) => "centroid".to_string(),
            Method::LeaveOneOut(_) => "loo".to_string(),
        }
    }
}

/// One problem.
#[derive(Debug, Clone)]
pub struct Case {
    pub rows: usize,
    pub cols: usize,
    /// Exact in 32 bits, so that every form of the rows holds the same numbers.
    pub values: Vec<f64>,
    pub labels: Labels,
    pub weights: Option<Vec<f64>>,
    /// Dense, dense f32, by columns, CSR, CSR f32.
    pub form: usize,
    pub method: Method,
}

fn pick<T: Clone>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len())].clone()
}

impl Case {
    pub fn new(seed: u64) -> Case {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed);
        let kind = random.below(20);
        let ablation = (12..15).contains(&kind);
        let k = if ablation { 2 } else { pick(&mut random, &[2, 2, 2, 3, 4]) };
        let rows = if ablation { 4 + random.below(5) } else { k + 4 + random.below(32) };
        let cols = 1 + random.below(7);
        let (values, codes) = data(rows, cols, k, &mut random);
        let weights = (random.below(3) == 0).then(|| {
            let weight = |row: usize, random: &mut Random| match random.below(8) {
                0 if row >= k => 0.0,
                1 => 10.0,
                _ => 0.2 + random.unit(),
            };
            (0..rows).map(|row| weight(row, &mut random)).collect()
        });
        let mut method = match kind {
            0..=7 => Method::Truncated(truncated(k, &mut random)),
            8..=11 => Method::Lq(lq(k, &mut random)),
            12..=14 => Method::Ablation(ablation_of(&mut random)),
            15 | 16 => Method::Capped(capped(&mut random)),
            17 => {
                // of more than two classes each problem has a shift of its own, which the model does not tell
                let auto = if k == 2 { Shift::Auto } else { Shift::By(0.02) };
                let shift = pick(&mut random, &[auto, Shift::By(0.0), Shift::By(0.1)]);
                Method::Centroid(Centroid::new(1.0).shift(shift))
            }
            _ => Method::LeaveOneOut(LeaveOneOut::new().factor(pick(&mut random, &[1.0, 0.5, 2.0]))),
        };
        let linear_only = match &method {
            Method::Truncated(method) => method.penalty.selects(),
            Method::Lq(_) => true,
            _ => false,
        };
        let loo = matches!(method, Method::LeaveOneOut(_));
        let common = method.common_mut();
        common.c = 10f64.powf(4.0 * random.unit() - 2.0);
        common.kernel = if linear_only { Kernel::Linear } else { kernel(&mut random) };
        common.fit_intercept = !loo && random.below(3) > 0;
        common.threads = Some(1 + random.below(2));
        common.class_weight = match random.below(6) {
            0 => ClassWeight::Balanced,
            1 => ClassWeight::Given((0..k).map(|_| 0.5 + random.unit()).collect()),
            _ => ClassWeight::Equal,
        };
        let form = random.below(5);
        let mut case = Case { rows, cols, values, labels: Labels::new(codes), weights, form, method };
        if let Kernel::Precomputed = case.method.common().kernel {
            case.precompute();
        }
        case
    }

    /// In place of the rows their rbf kernel, rounded to 32 bits with 1 + 1/64 on the diagonal, which keeps it positive definite.
    fn precompute(&mut self) {
        let (n, d) = (self.rows, self.cols);
        let row = |i: usize| &self.values[i * d..(i + 1) * d];
        let value = |i: usize, j: usize| {
            let squared: f64 = row(i).iter().zip(row(j)).map(|(a, b)| (a - b) * (a - b)).sum();
            f64::from((-0.3 * squared).exp() as f32) + if i == j { 1.0 / 64.0 } else { 0.0 }
        };
        self.values = (0..n * n).map(|at| value(at / n, at % n)).collect();
        self.cols = n;
    }

    pub fn dense(&self) -> Dense<'_> {
        Dense::new(self.rows, self.cols, &self.values[..]).unwrap()
    }

    /// The rows in the form of the case.
    pub fn design(&self) -> Box<dyn Design> {
        let (n, d) = (self.rows, self.cols);
        let narrow = |values: &[f64]| -> Vec<f32> { values.iter().map(|&x| x as f32).collect() };
        let sparse = crate::common::csr(n, d, &self.values);
        match self.form {
            0 => Box::new(Dense::new(n, d, self.values.clone()).unwrap()),
            1 => Box::new(Dense::new(n, d, narrow(&self.values)).unwrap()),
            2 => {
                let turned: Vec<f64> = (0..n * d).map(|at| self.values[at % n * d + at / n]).collect();
                Box::new(Columns::new(n, d, turned).unwrap())
            }
            3 => Box::new(sparse),
            _ => {
                let (starts, columns) = (sparse.starts().to_vec(), sparse.columns().to_vec());
                Box::new(Csr::new(n, d, starts, columns, narrow(sparse.values())).unwrap())
            }
        }
    }
}

/// Clouds with wrong labels, and now and then what solvers do not like: zeros, duplicates, collinear and constant columns, scales.
fn data(n: usize, d: usize, k: usize, random: &mut Random) -> (Vec<f64>, Vec<u32>) {
    let apart = pick(random, &[0.5, 1.5, 4.0]);
    let zeros = pick(random, &[0.0, 0.0, 0.5]);
    let centres: Vec<f64> = (0..k * d).map(|_| apart * random.normal()).collect();
    let codes: Vec<u32> = (0..n).map(|row| if row < k { row } else { random.below(k) } as u32).collect();
    let mut values = Vec::with_capacity(n * d);
    for &code in &codes {
        for column in 0..d {
            let value = centres[code as usize * d + column] + random.normal();
            values.push(if random.unit() < zeros { 0.0 } else { value });
        }
    }
    let (from, to) = (random.below(d), random.below(d));
    match random.below(8) {
        0 => (1..n / 2).for_each(|pair| values.copy_within(0..d, (2 * pair) * d)),
        1 => (0..n).for_each(|row| values[row * d + to] = 2.0 * values[row * d + from]),
        2 => (0..n).for_each(|row| values[row * d + to] = 3.0),
        3 => (0..n).for_each(|row| values[row * d + to] *= 1e3),
        4 => (0..n).for_each(|row| values[row * d + to] *= 1e-3),
        _ => {}
    }
    values.iter_mut().for_each(|value| *value = f64::from(*value as f32));
    (values, codes)
}

fn kernel(random: &mut Random) -> Kernel {
    let gamma = pick(random, &[0.1, 0.5, 2.0]).into();
    match random.below(6) {
        0..=2 => Kernel::Linear,
        3 => Kernel::Rbf { gamma },
        4 => Kernel::Poly { gamma, degree: 2, coef0: 1.0 },
        _ => Kernel::Precomputed,
    }
}

fn payoff(k: usize, diagonal: f64, random: &mut Random) -> Vec<Vec<f64>> {
    let mut entry = |i: usize, j: usize| if i == j { diagonal } else { pick(random, &[0.0, 0.25, 0.5, 2.0]) };
    let mut matrix: Vec<Vec<f64>> = (0..k).map(|i| (0..k).map(|j| entry(i, j)).collect()).collect();
    matrix[0][1] = 0.75;
    matrix
}

fn truncated(k: usize, random: &mut Random) -> Truncated {
    let loss = pick(random, &[Loss::hinge(), Loss::hinge(), Loss::logistic(), Loss::exponential()]);
    let truncations = [Truncation::Off, Truncation::Off, Truncation::Off, Truncation::Auto, Truncation::At(0.0)];
    let penalties = [Penalty::L2, Penalty::L2, Penalty::L2, Penalty::L1, Penalty::AdaptiveL1, Penalty::Lq];
    let mut method = Truncated::new(1.0).loss(loss).truncation(pick(random, &truncations));
    method = method.penalty(pick(random, &penalties));
    match random.below(6) {
        0 => method.utility(payoff(k, 1.0, random)).utility_baseline(pick(random, Baseline::ALL)),
        1 => {
            let direct = !method.loss.base().is_smooth() && !method.penalty.selects() && random.below(2) == 0;
            let form = if direct { CostForm::Direct } else { CostForm::Utility };
            method.cost(payoff(k, 0.0, random)).cost_form(form)
        }
        _ => method,
    }
}

fn lq(k: usize, random: &mut Random) -> Lq {
    let mut method = Lq::new(1.0).q(pick(random, &[1.0, 1.0, 2.0, 2.0, 1.5, 0.5, 0.1]));
    if random.below(3) == 0 {
        method = method.cost(payoff(k, 0.0, random));
    }
    if random.below(8) == 0 {
        method = method.solver("lqa");
    }
    if random.below(4) == 0 { method.feature_map(FeatureMap::Squares) } else { method }
}

fn capped(random: &mut Random) -> Capped {
    let cap = pick(random, &[Cap::At(f64::INFINITY), Cap::At(f64::INFINITY), Cap::At(2.0), Cap::Auto]);
    let loss = pick(random, &["lp", "lp", "lp", "logistic", "geman_mcclure"]);
    Capped::new(1.0).loss(loss).power(pick(random, &[1.0, 2.0, 2.0, 0.5])).cap(cap)
}

fn ablation_of(random: &mut Random) -> Ablation {
    let method = Ablation::new(pick(random, &[AblationMethod::Reh, AblationMethod::Rod]), 1.0);
    method.inlier_fraction(pick(random, &[Inliers::Given(1.0), Inliers::Given(0.8), Inliers::Given(0.5)]))
}
