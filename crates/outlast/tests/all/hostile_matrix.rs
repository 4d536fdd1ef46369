//! Every method on every kind of data that breaks programs: refused in words, or a finite model; never a panic, never a hang.
//!
//! The rows of the matrix are [`data`], its columns [`methods`]; what must be refused says so, with a word of the message.

use crate::common::{Random, csr};
use outlast::{
    Ablation, Capped, Centroid, Control, Csr, Dense, Design, Error, Estimator, FitRequest, Gamma, Inliers, Kernel,
    Labels, LeaveOneOut, Loss, Lq, Penalty, Truncated, Truncation,
};
use std::time::{Duration, Instant};

const TINY: f64 = 1e-300;
const HUGE: f64 = 1e300;

/// What must come of it.
#[derive(Clone, Copy)]
enum Fate {
    /// An error with this word in it.
    Refused(&'static str),
    /// A model, or an error that says what to do about the scale of the columns.
    Survives,
    /// A model.
    Fits,
}

use Fate::{Fits, Refused, Survives};

struct Hostile {
    what: &'static str,
    x: Box<dyn Design>,
    labels: Labels,
    weights: Option<Vec<f64>>,
    fate: Fate,
}

fn methods() -> Vec<(&'static str, Box<dyn Estimator>)> {
    let rbf = || Kernel::rbf(Gamma::Scale);
    let linear = || Truncated::new(1.0).kernel(Kernel::Linear);
    vec![
        ("truncated rbf", Box::new(Truncated::new(1.0))),
        ("truncated linear", Box::new(linear())),
        ("plain rbf", Box::new(Truncated::new(1.0).truncation(Truncation::Off))),
        ("logistic linear", Box::new(linear().loss(Loss::logistic()))),
        ("exponential rbf", Box::new(Truncated::new(1.0).loss(Loss::exponential()))),
        ("l1", Box::new(linear().penalty(Penalty::L1))),
        ("adaptive l1", Box::new(linear().penalty(Penalty::AdaptiveL1))),
        ("truncated lq", Box::new(linear().penalty(Penalty::Lq))),
        ("capped linear", Box::new(Capped::new(1.0))),
        ("capped rbf", Box::new(Capped::new(1.0).kernel(rbf()).power(2.0))),
        ("lq 1", Box::new(Lq::new(1.0))),
        ("lq 0.5", Box::new(Lq::new(1.0).q(0.5))),
        ("lq 1.5", Box::new(Lq::new(1.0).q(1.5))),
        ("reh", Box::new(Ablation::reh(1.0))),
        ("reh rbf", Box::new(Ablation::reh(1.0).kernel(rbf()))),
        ("rod", Box::new(Ablation::rod(1.0).inlier_fraction(Inliers::Given(0.8)))),
        ("centroid", Box::new(Centroid::new(1.0))),
        ("centroid rbf", Box::new(Centroid::new(1.0).kernel(rbf()))),
        ("loo", Box::new(LeaveOneOut::new())),
        ("loo rbf", Box::new(LeaveOneOut::new().kernel(rbf()))),
    ]
}

/// Two classes with some overlap.
fn usual(rows: usize, cols: usize) -> (Vec<f64>, Vec<u32>) {
    let mut random = Random(17);
    let codes: Vec<u32> = (0..rows as u32).map(|row| row % 2).collect();
    let values = (0..rows * cols).map(|at| random.normal() + f64::from(codes[at / cols])).collect();
    (values, codes)
}

fn dense(rows: usize, cols: usize, values: Vec<f64>) -> Box<dyn Design> {
    Box::new(Dense::new(rows, cols, values).unwrap())
}

/// 20 x 3 with a change.
fn changed(what: &'static str, fate: Fate, change: impl Fn(&mut [f64])) -> Hostile {
    let (mut values, codes) = usual(20, 3);
    change(&mut values);
    Hostile { what, x: dense(20, 3, values), labels: Labels::new(codes), weights: None, fate }
}

/// 20 x 3 with weights.
fn weighted(what: &'static str, fate: Fate, weight: impl Fn(usize) -> f64) -> Hostile {
    Hostile { weights: Some((0..20).map(weight).collect()), ..changed(what, fate, |_| ()) }
}

fn shaped(what: &'static str, fate: Fate, rows: usize, cols: usize, codes: Vec<u32>) -> Hostile {
    let (values, _) = usual(rows.max(1), cols.max(1));
    let x = dense(rows, cols, values[..rows * cols].to_vec());
    Hostile { what, x, labels: Labels::new(codes), weights: None, fate }
}

fn sparse(what: &'static str, cols: usize) -> Hostile {
    let mut random = Random(18);
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..30u32 {
        let mut own: Vec<u32> = (0..4).map(|_| random.below(cols) as u32).chain([row % 2]).collect();
        own.sort_unstable();
        own.dedup();
        values.extend(own.iter().map(|_| 1.0));
        columns.extend(own);
        starts.push(values.len());
    }
    let x = Box::new(Csr::new(30, cols, starts, columns, values).unwrap());
    Hostile { what, x, labels: Labels::new((0..30u32).map(|row| row % 2)), weights: None, fate: Fits }
}

fn data() -> Vec<Hostile> {
    let every =
        |values: &mut [f64], column: usize, to: f64| values[column..].iter_mut().step_by(3).for_each(|v| *v = to);
    let scaled = |values: &mut [f64], by: f64| values.iter_mut().for_each(|value| *value *= by);
    let (values, codes) = usual(20, 3);
    let zeros: Vec<f64> = values.iter().map(|&value| if value > 0.3 { value } else { 0.0 }).collect();
    let mut all = vec![
        changed("NaN", Refused("row 4, column 1"), |values| values[13] = f64::NAN),
        changed("infinity", Refused("row 4, column 1"), |values| values[13] = f64::INFINITY),
        changed("minus infinity", Refused("row 4, column 1"), |values| values[13] = f64::NEG_INFINITY),
        changed("a constant column", Fits, |values| every(values, 1, 7.0)),
        changed("a huge constant column", Survives, |values| every(values, 1, 1e12)),
        changed("only constants", Fits, |values| values.fill(3.0)),
        changed("only zeros", Fits, |values| values.fill(0.0)),
        changed("all rows alike but one", Fits, |values| (1..19).for_each(|row| values.copy_within(0..3, 3 * row))),
        changed("collinear columns", Fits, |values| values.chunks_mut(3).for_each(|row| row[2] = 2.0 * row[0])),
        changed("nearly collinear columns", Fits, |values| {
            values.chunks_mut(3).for_each(|row| row[2] = row[0] * (1.0 + 1e-13));
        }),
        changed("columns of scales 1e-8 and 1e8", Survives, |values| {
            values.chunks_mut(3).for_each(|row| (row[0], row[1]) = (row[0] * 1e-8, row[1] * 1e8));
        }),
        changed("1e-300", Survives, |values| scaled(values, TINY)),
        changed("1e300", Survives, |values| scaled(values, HUGE)),
        changed("1e-200", Survives, |values| scaled(values, 1e-200)),
        changed("1e200", Survives, |values| scaled(values, 1e200)),
        changed("1e-30", Survives, |values| scaled(values, 1e-30)),
        changed("1e30", Survives, |values| scaled(values, 1e30)),
        changed("one value of 1e300", Survives, |values| values[5] = HUGE),
        changed("denormals", Survives, |values| scaled(values, 1e-310)),
        weighted("weights of 1e-300", Survives, |_| TINY),
        weighted("weights of 1e-12", Fits, |_| 1e-12),
        weighted("weights of 1e12", Survives, |_| 1e12),
        weighted("weights of 1e300", Refused("C"), |_| HUGE),
        weighted("weights from 1e-9 to 1e9", Survives, |row| 10f64.powi(row as i32 - 10)),
        weighted("some weights 0", Fits, |row| if row % 5 == 0 { 0.0 } else { 1.0 }),
        weighted("all weights 0", Refused("weight"), |_| 0.0),
        weighted("weights of one class 0", Refused("no row of positive weight"), |row| (row % 2) as f64),
        weighted("a negative weight", Refused("row 3"), |row| if row == 3 { -1.0 } else { 1.0 }),
        weighted("a weight that is no number", Refused("row 3"), |row| if row == 3 { f64::NAN } else { 1.0 }),
        shaped("no rows", Refused("0 rows"), 0, 3, vec![]),
        shaped("no columns", Refused("0 columns"), 4, 0, vec![0, 1, 0, 1]),
        shaped("one row", Refused("class"), 1, 3, vec![0]),
        shaped("two rows", Fits, 2, 1, vec![0, 1]),
        shaped("one class", Refused("two classes"), 6, 2, vec![5; 6]),
        shaped("a class of one row", Fits, 6, 2, vec![0, 0, 0, 0, 0, 1]),
        shaped("as many classes as rows", Fits, 6, 2, (0..6).collect()),
        shaped("100000 classes", Refused("100000 distinct values"), 100_000, 1, (0..100_000).collect()),
        shaped("too few labels", Refused("labels"), 6, 2, vec![0, 1]),
        sparse("a million sparse columns", 1_000_000),
    ];
    let texts = Labels::new((0..20).map(|row| ["a", "a ", " a"][row % 3]));
    all.push(Hostile { labels: texts, ..changed("labels that differ by white space", Fits, |_| ()) });
    all.push(Hostile { x: Box::new(csr(20, 3, &zeros)), ..changed("sparse rows", Fits, |_| ()) });
    all.push(Hostile {
        what: "empty sparse rows",
        x: Box::new(Csr::<f64>::new(20, 3, vec![0; 21], vec![], vec![]).unwrap()),
        labels: Labels::new(codes),
        weights: None,
        fate: Fits,
    });
    all
}

/// One fit, and what must hold of it.
fn judged(name: &str, method: &dyn Estimator, case: &Hostile) {
    let say = || format!("{name} on {}", case.what);
    let began = Instant::now();
    let control = Control::default().time_limit(Duration::from_secs(30));
    let request = FitRequest { sample_weight: case.weights.as_deref(), control, ..FitRequest::default() };
    let result = method.fit_labels(&*case.x, &case.labels, &request);
    assert!(began.elapsed() < Duration::from_secs(10), "{}: {:?}", say(), began.elapsed());
    let model = match (result, case.fate) {
        (Err(error), Refused(word)) => {
            assert!(error.to_string().contains(word), "{}: {error}", say());
            return;
        }
        (Err(Error::Numerical { problem } | Error::Value { problem, .. }), Survives) if problem.contains("scale") => {
            return;
        }
        (Err(error), _) => panic!("{}: {error}", say()),
        (Ok(_), Refused(word)) => panic!("{}: not refused for {word:?}", say()),
        (Ok(model), _) => model,
    };
    let summary = &model.summary;
    assert!(summary.objective.is_finite() && summary.objective >= 0.0, "{}: {summary:?}", say());
    assert!(summary.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{}: {:?}", say(), summary.trace);
    assert!(summary.gap >= 0.0, "{}: gap {}", say(), summary.gap);
    let decision = model.decision_function(&*case.x).unwrap();
    assert!(decision.iter().all(|value| value.is_finite()), "{}: {decision:?}", say());
    let codes = model.predict_codes(&*case.x).unwrap();
    assert!(codes.iter().all(|&code| (code as usize) < model.classes().len()), "{}", say());
}

#[test]
fn every_method_on_every_hostile_set() {
    let data = data();
    for (name, method) in methods() {
        data.iter().for_each(|case| judged(name, &*method, case));
    }
}

/// Kernel matrices that are singular, or all ones, or the identity.
#[test]
fn ill_conditioned_kernels() {
    let (mut values, codes) = usual(20, 3);
    (0..5).for_each(|row| values.copy_within(0..3, 3 * (row + 5)));
    let case = Hostile { what: "", x: dense(20, 3, values), labels: Labels::new(codes), weights: None, fate: Survives };
    for gamma in [1e-300, 1e-12, 1e12, 1e300] {
        for (name, mut method) in methods() {
            if method.common_mut().kernel.name() == "rbf" {
                method.common_mut().kernel = Kernel::rbf(gamma);
                judged(&format!("{name}, gamma {gamma:e}"), &*method, &case);
            }
        }
    }
}

/// Matrices that are no kernels: not symmetric and not square ones are refused; with a negative eigenvalue they are refused by the
/// methods whose problem would have no minimum, and the others end with a finite model.
#[test]
fn precomputed_matrices_that_are_no_kernels() {
    let n = 20;
    let (_, codes) = usual(n, 1);
    let mut random = Random(5);
    let mut indefinite: Vec<f64> = (0..n * n).map(|_| random.normal()).collect();
    for i in 0..n {
        (0..i).for_each(|j| indefinite[i * n + j] = indefinite[j * n + i]);
        indefinite[i * n + i] = -1.0;
    }
    let negative: Vec<f64> = indefinite.iter().map(|value| -value.abs()).collect();
    let mut refused = Vec::new();
    for values in [indefinite, negative] {
        for (name, mut method) in methods() {
            if ["l1", "adaptive l1", "truncated lq", "lq 1", "lq 0.5", "lq 1.5"].contains(&name) {
                continue;
            }
            method.common_mut().kernel = Kernel::Precomputed;
            let control = Control::default().time_limit(Duration::from_secs(20));
            let request = FitRequest { control, ..FitRequest::default() };
            let x = Dense::new(n, n, &values[..]).unwrap();
            match method.fit_labels(&x, &Labels::new(codes.clone()), &request) {
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains("semidefinite"), "{name}: {text}");
                    refused.push(name);
                }
                Ok(model) => {
                    assert!(model.summary.objective.is_finite(), "{name}: {:?}", model.summary);
                    assert!(model.summary.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{name}");
                    assert!(model.decision_function(&x).unwrap().iter().all(|f| f.is_finite()), "{name}");
                }
            }
        }
    }
    for name in ["reh", "rod", "centroid", "loo"] {
        assert!(refused.contains(&name), "{name} takes a matrix with negative eigenvalues; refused by {refused:?}");
    }
}

/// Sizes whose product is beyond what a number can hold.
#[test]
fn sizes_that_overflow_are_refused() {
    assert!(Dense::<f64>::new(usize::MAX, 2, vec![]).is_err());
    assert!(Dense::<f64>::new(1 << 33, 1 << 33, vec![]).is_err());
    assert!(outlast::data::Columns::<f64>::new(1 << 33, 1 << 33, vec![]).is_err());
    assert!(Csr::<f64>::new(usize::MAX, 2, vec![0], vec![], vec![]).is_err());
    let wide = Csr::<f64>::new(2, usize::MAX, vec![0, 1, 2], vec![0, 1], vec![1.0, 1.0]).unwrap();
    let long = Csr::<f64>::new(2, 1 << 40, vec![0, 1, 2], vec![0, u32::MAX], vec![1.0, 1.0]).unwrap();
    for x in [&wide, &long] {
        for (name, method) in methods() {
            let error = method.fit_labels(x, &Labels::new([0, 1]), &FitRequest::default()).unwrap_err();
            let expected = format!("X has {} columns, expected at most 4294967295", x.cols());
            assert_eq!(error.to_string(), expected, "{name}");
        }
    }
}

/// C times weights from the smallest to the largest that is taken, and beyond.
#[test]
fn c_from_the_smallest_to_the_largest() {
    let (values, codes) = usual(20, 3);
    let x = Dense::new(20, 3, values).unwrap();
    for c in [5e-324, TINY, 1e-100, 1e-12, 1e12, 1e100, 1e190, HUGE] {
        for (name, mut method) in methods() {
            method.common_mut().c = c;
            let result = method.fit_labels(&x, &Labels::new(codes.clone()), &FitRequest::default());
            match result {
                Err(error) => {
                    let text = error.to_string();
                    assert!(
                        c == HUGE && text.contains("C = 1e300") && text.contains("1e200"),
                        "{name}, C {c:e}: {text}"
                    );
                }
                Ok(model) => {
                    assert!(c < HUGE, "{name} takes C {c:e}");
                    assert!(
                        model.summary.objective.is_finite() && model.summary.gap >= 0.0,
                        "{name}, C {c:e}: {:?}",
                        model.summary
                    );
                    let decision = model.decision_function(&x).unwrap();
                    assert!(decision.iter().all(|f| f.is_finite()), "{name}, C {c:e}: {decision:?}");
                    if let Some(bound) = model.summary.details.get("lower_bound") {
                        assert!(bound <= model.summary.objective, "{name}, C {c:e}");
                    }
                }
            }
        }
    }
}
