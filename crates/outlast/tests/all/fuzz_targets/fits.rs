//! Fits of small arrays of any numbers with any parameters, by every method: an error in words, or a model of finite numbers whose
//! objective never rose, whose gap is no less than 0, and which decides for classes there are.

use super::bytes::Bytes;
use super::files::refused;
use super::models;
use outlast::data::Columns;
use outlast::model::AblationMethod;
use outlast::{
    Ablation, Baseline, Cap, Capped, Centroid, ClassWeight, Control, CostForm, Csr, Dense, Design, Estimator,
    FeatureMap, FitRequest, Gamma, Inliers, Kernel, Labels, LeaveOneOut, Loss, Lq, Model, Penalty, Probability, Shift,
    Truncated, Truncation,
};
use std::time::{Duration, Instant};

/// What a fit may take before it counts as hanging. Its time limit is a twentieth of that.
const PATIENCE: Duration = Duration::from_secs(20);

/// An array and labels.
struct Data {
    rows: usize,
    cols: usize,
    values: Vec<f64>,
    labels: Labels,
    weights: Option<Vec<f64>>,
}

impl Data {
    fn new(bytes: &mut Bytes) -> Data {
        let (rows, cols) = (bytes.below(13), bytes.below(5));
        let (classes, hard) = (1 + bytes.below(4), bytes.below(4) == 3);
        let precomputed = bytes.below(8) == 7;
        let cols = if precomputed { rows } else { cols };
        let number = |bytes: &mut Bytes| if hard { bytes.any() } else { bytes.usual() };
        let mut values: Vec<f64> = (0..rows * cols).map(|_| number(bytes)).collect();
        if precomputed && bytes.flag() {
            // most matrices are refused for not being symmetric: some are made so
            for i in 0..rows {
                (0..i).for_each(|j| values[i * cols + j] = values[j * cols + i]);
            }
        }
        let labels = Labels::new((0..rows).map(|_| bytes.below(classes) as u32));
        let weights = bytes.flag().then(|| (0..rows).map(|_| number(bytes).abs()).collect());
        Data { rows, cols, values, labels, weights }
    }

    /// The same numbers in another form; those of 32 bits are rounded.
    fn design(&self, form: usize) -> Box<dyn Design> {
        let (n, d) = (self.rows, self.cols);
        match form {
            1 => Box::new(Dense::new(n, d, self.values.iter().map(|&x| x as f32).collect::<Vec<f32>>()).unwrap()),
            2 => {
                let by_columns: Vec<f64> = (0..d * n).map(|at| self.values[at % n * d + at / n]).collect();
                Box::new(Columns::new(n, d, by_columns).unwrap())
            }
            3 => {
                let (mut starts, mut columns, mut stored) = (vec![0], Vec::new(), Vec::new());
                for row in self.values.chunks(d.max(1)).take(n) {
                    for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                        columns.push(column as u32);
                        stored.push(value);
                    }
                    starts.push(stored.len());
                }
                starts.resize(n + 1, stored.len());
                Box::new(Csr::new(n, d, starts, columns, stored).unwrap())
            }
            _ => Box::new(Dense::new(n, d, self.values.clone()).unwrap()),
        }
    }
}

/// A parameter: a usual one, or anything.
fn parameter(bytes: &mut Bytes, usual: &[f64]) -> f64 {
    match bytes.below(usual.len() + 1) {
        at if at < usual.len() => usual[at],
        _ => bytes.any(),
    }
}

fn kernel(bytes: &mut Bytes) -> Kernel {
    let gamma = match bytes.below(7) {
        0 => Gamma::Scale,
        1 => Gamma::Auto,
        2 => Gamma::Q1,
        3 => Gamma::Median,
        4 => Gamma::Q3,
        _ => Gamma::Value(parameter(bytes, &[0.5, 1e-12, 1e12])),
    };
    match bytes.below(8) {
        0 | 1 => Kernel::Linear,
        2 | 3 => Kernel::Rbf { gamma },
        4 => Kernel::Poly { gamma, degree: u32::from(bytes.byte() % 5), coef0: parameter(bytes, &[0.0, 1.0]) },
        5 => Kernel::Sigmoid { gamma, coef0: parameter(bytes, &[0.0, -1.0]) },
        6 => Kernel::Precomputed,
        _ => Kernel::custom("product", |a, b| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() + 1.0),
    }
}

fn square(bytes: &mut Bytes, k: usize, diagonal: Option<f64>) -> Vec<Vec<f64>> {
    let mut entry = |i: usize, j: usize| match diagonal {
        Some(value) if i == j && bytes.below(8) > 0 => value,
        _ => parameter(bytes, &[0.0, 1.0, 0.5, 3.0]),
    };
    (0..k).map(|i| (0..k).map(|j| entry(i, j)).collect()).collect()
}

fn truncated(bytes: &mut Bytes, k: usize) -> Truncated {
    let truncation = match bytes.below(4) {
        0 => Truncation::Off,
        1 => Truncation::Auto,
        2 => Truncation::At(0.0),
        _ => Truncation::At(parameter(bytes, &[-0.5, -1.0, -2.0])),
    };
    let loss = bytes.choose(&[Loss::hinge(), Loss::hinge(), Loss::logistic(), Loss::exponential()]);
    let mut method = Truncated::new(1.0).truncation(truncation).loss(loss).penalty(bytes.choose(Penalty::ALL));
    method = method.q(parameter(bytes, &[0.5, 1.0]));
    match bytes.below(6) {
        0 => method = method.utility(square(bytes, k, Some(1.0))),
        1 => method = method.cost(square(bytes, k, Some(0.0))),
        _ => {}
    }
    method = method.cost_form(bytes.choose(&[CostForm::Utility, CostForm::Utility, CostForm::Direct]));
    method = method.utility_baseline(bytes.choose(Baseline::ALL)).global_search(bytes.below(8) == 7);
    let solvers = [&["auto"; 4][..], outlast::solver::NAMES].concat();
    method = method.solver(bytes.choose(&solvers));
    if bytes.below(16) == 15 { method.probability(Probability::Weighted) } else { method }
}

fn capped(bytes: &mut Bytes) -> Capped {
    let cap = match bytes.below(4) {
        0 => Cap::Auto,
        1 => Cap::At(f64::INFINITY),
        2 => Cap::CrossValidation,
        _ => Cap::At(parameter(bytes, &[0.5, 1.0, 4.0])),
    };
    let loss = bytes.choose(outlast::problem::concave::ALL).name();
    let solver = bytes.choose(&["exact", "exact", "alternating"]);
    let method = Capped::new(1.0).power(parameter(bytes, &[1.0, 2.0, 0.5])).cap(cap).loss(loss).solver(solver);
    method.cap_fraction(parameter(bytes, &[0.1, 0.0, 0.5]))
}

fn lq(bytes: &mut Bytes, k: usize) -> Lq {
    let mut method = Lq::new(1.0).q(parameter(bytes, &[1.0, 0.5, 2.0, 1.5, 0.01]));
    if bytes.below(4) == 3 {
        method = method.cost(square(bytes, k, Some(0.0)));
    }
    let map = bytes.choose(&[FeatureMap::Identity, FeatureMap::Identity, FeatureMap::Squares]);
    method.feature_map(map).solver(bytes.choose(&["auto", "auto", "lqa"]))
}

fn ablation(bytes: &mut Bytes) -> Ablation {
    let inliers = match bytes.below(4) {
        0 => Inliers::Transition,
        1 => Inliers::CrossValidation,
        _ => Inliers::Given(parameter(bytes, &[1.0, 0.8, 0.5])),
    };
    let method = Ablation::new(bytes.choose(&[AblationMethod::Reh, AblationMethod::Rod]), 1.0);
    method.inlier_fraction(inliers).refine(bytes.flag())
}

fn estimator(bytes: &mut Bytes, k: usize) -> Box<dyn Estimator> {
    let mut method: Box<dyn Estimator> = match bytes.below(10) {
        0..=3 => Box::new(truncated(bytes, k)),
        4 => Box::new(capped(bytes)),
        5 | 6 => Box::new(lq(bytes, k)),
        7 => Box::new(ablation(bytes)),
        8 => {
            let shift = if bytes.flag() { Shift::Auto } else { Shift::By(parameter(bytes, &[0.0, 0.1, 10.0])) };
            Box::new(Centroid::new(1.0).shift(shift))
        }
        _ => Box::new(LeaveOneOut::new().factor(parameter(bytes, &[1.0, 0.1, 5.0]))),
    };
    let common = method.common_mut();
    common.c = parameter(bytes, &[1.0, 0.01, 100.0, 1e6, 1e-6]);
    if bytes.flag() {
        common.kernel = kernel(bytes);
    }
    common.class_weight = match bytes.below(4) {
        0 => ClassWeight::Balanced,
        1 => ClassWeight::Given((0..k).map(|_| parameter(bytes, &[1.0, 2.0, 0.0])).collect()),
        _ => ClassWeight::Equal,
    };
    if bytes.flag() {
        common.fit_intercept = !common.fit_intercept;
    }
    common.tol = parameter(bytes, &[common.tol, common.tol, 1e-2, 1e-8]);
    common.max_iter = bytes.choose(&[100, 100, 1, 3, 0]);
    common.cache_size = parameter(bytes, &[100.0, 100.0, 1e-9]);
    common.random_state = u64::from(bytes.byte());
    method
}

/// One fit.
pub fn fit(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let data = Data::new(&mut bytes);
    let method = estimator(&mut bytes, data.labels.classes().len());
    let x = data.design(bytes.below(4));
    let control = Control::default().time_limit(PATIENCE / 20);
    let request = FitRequest { sample_weight: data.weights.as_deref(), control, ..FitRequest::default() };
    let began = Instant::now();
    let result = method.fit_labels(&*x, &data.labels, &request);
    assert!(began.elapsed() < PATIENCE, "a fit of {} rows took {:?}", data.rows, began.elapsed());
    match result {
        Err(error) => refused(&error),
        Ok(model) => held(&model, &*x, &data),
    }
}

fn held(model: &Model, x: &dyn Design, data: &Data) {
    let summary = &model.summary;
    let say = || format!("{summary:?}");
    assert!(summary.objective.is_finite(), "{}", say());
    assert!(summary.trace.iter().all(|value| value.is_finite()), "{}", say());
    assert!(summary.trace.windows(2).all(|pair| pair[1] <= pair[0]), "the objective rises: {}", say());
    let uncertified = summary.solver == "lqa" && summary.gap.is_nan();
    assert!(summary.gap >= 0.0 || uncertified, "the gap is negative, or no number: {}", say());
    // the papers' own algorithms end by rules of their own
    if summary.status.is_converged() && !["alternating", "lqa"].contains(&&*summary.solver_asked) {
        assert!(summary.gap <= summary.tol.max(1e-9), "converged with a gap above the tolerance: {}", say());
    }
    if let Some(bound) = summary.details.get("lower_bound") {
        assert!(bound <= summary.objective, "{}", say());
    }
    let predictor = &model.predictor;
    let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
    assert!(finite(&predictor.intercepts) && finite(&predictor.coefficients), "{predictor:?}");
    assert!(finite(predictor.weights().unwrap_or_default()), "{predictor:?}");
    let training = model.training.as_ref().expect("a fit knows its rows");
    assert!(training.margins.len() == data.rows && finite(&training.margins), "{:?}", training.margins);
    assert!(training.outliers.len() == data.rows);
    let decision = model.decision_function(x).expect("the training rows can be decided");
    assert!(finite(&decision), "{decision:?} {}", say());
    let classes = model.predict(x).expect("the training rows can be decided");
    assert!(classes.iter().all(|class| data.labels.classes().contains(class)));
    if predictor.probabilities.is_some() {
        let p = model.predict_proba(x).expect("a model with probabilities has them");
        let k = data.labels.classes().len();
        assert!(
            p.chunks(k).all(|p| p.iter().all(|p| *p >= 0.0) && (p.iter().sum::<f64>() - 1.0).abs() < 1e-9),
            "{p:?}"
        );
    }
    if !matches!(predictor.kernel, outlast::KernelFunction::Custom(_)) {
        models::round_trip(model);
        if data.values.iter().all(|value| value.abs() < 1e3) {
            models::scored(model, &Dense::new(data.rows, data.cols, data.values.clone()).unwrap());
        }
    }
}
