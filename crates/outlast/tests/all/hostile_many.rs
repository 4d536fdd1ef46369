//! Bad and extreme input with many classes, payoffs and selecting penalties: a clear error before any work, or a finite
//! answer; no panic, no hang.

use crate::common::Random;
use outlast::{
    Baseline, ClassWeight, CostForm, Dense, Design, Error, FitRequest, Kernel, Loss, Model, Penalty, Result, Truncated,
    Truncation,
};
use std::time::{Duration, Instant};

fn message(result: Result<Model>) -> String {
    result.expect_err("should be refused").to_string()
}

/// Rows around k corners, every class at least once.
fn groups(rows: usize, cols: usize, classes: usize, seed: u64) -> (Vec<f64>, Vec<usize>) {
    let mut random = Random(seed);
    let labels: Vec<usize> = (0..rows).map(|row| if row < classes { row } else { random.below(classes) }).collect();
    let centres: Vec<f64> = (0..classes * cols).map(|_| 2.0 * random.normal()).collect();
    let values = labels.iter().flat_map(|&label| (0..cols).map(move |column| label * cols + column));
    let values = values.map(|at| centres[at] + random.normal()).collect();
    (values, labels)
}

fn identity(k: usize) -> Vec<Vec<f64>> {
    (0..k).map(|row| (0..k).map(|column| f64::from(u8::from(row == column))).collect()).collect()
}

/// Right decisions are worth 1, the next class a half.
fn utility(k: usize) -> Vec<Vec<f64>> {
    let mut matrix = identity(k);
    (0..k).for_each(|row| matrix[row][(row + 1) % k] = 0.5);
    matrix
}

fn costs(k: usize) -> Vec<Vec<f64>> {
    (0..k).map(|row| (0..k).map(|column| row.abs_diff(column) as f64).collect()).collect()
}

/// Every combination a fit of k classes can take.
fn methods(k: usize) -> Vec<Truncated> {
    let mut methods = Vec::new();
    for truncation in [Truncation::Auto, Truncation::Off] {
        let plain = Truncated::new(1.0).truncation(truncation);
        let linear = plain.clone().kernel(Kernel::Linear);
        methods.extend([
            plain.clone(),
            linear.clone(),
            linear.clone().fit_intercept(false),
            plain.clone().fit_intercept(false),
            plain.clone().utility(utility(k)),
            linear.clone().utility(utility(k)),
            linear.clone().cost(costs(k)).utility_baseline(Baseline::RowMinimum),
            plain.clone().cost(costs(k)).cost_form(CostForm::Direct),
            linear.clone().cost(costs(k)).cost_form(CostForm::Direct),
            linear.clone().penalty(Penalty::L1),
            linear.clone().penalty(Penalty::AdaptiveL1).utility(utility(k)),
            plain.clone().loss(Loss::logistic()),
            linear.clone().loss(Loss::logistic()).utility(utility(k)),
            linear.clone().loss(Loss::exponential()),
        ]);
    }
    methods
}

/// Fits with every method; whatever comes back must be finite and quick.
fn all_survive(what: &str, x: &dyn Design, labels: &[usize], k: usize) {
    for method in methods(k) {
        let began = Instant::now();
        let result = method.fit(x, &labels.to_vec());
        assert!(began.elapsed() < Duration::from_secs(20), "{what}: {method:?} took {:?}", began.elapsed());
        match result {
            Err(Error::Numerical { .. }) => {}
            Err(error) => panic!("{what}: {method:?}: {error}"),
            Ok(model) => {
                let summary = &model.summary;
                assert!(summary.objective.is_finite() && !summary.gap.is_nan(), "{what}: {method:?}: {summary:?}");
                let falls = summary.trace.windows(2).all(|pair| pair[1] <= pair[0]);
                assert!(falls, "{what}: {method:?}: {:?}", summary.trace);
                let decision = model.decision_function(x).unwrap();
                assert!(decision.iter().all(|value| value.is_finite()), "{what}: {method:?}: {decision:?}");
            }
        }
    }
}

#[test]
fn payoffs_that_make_no_sense_are_refused_by_name() {
    let x = Dense::from_rows(&[[0.0], [1.0], [2.0]]);
    let y = ["a", "b", "c"];
    let with = |matrix: Vec<Vec<f64>>| message(Truncated::new(1.0).utility(matrix).fit(&x, &y));
    let changed = |value: f64| {
        let mut matrix = identity(3);
        matrix[1][2] = value;
        matrix
    };
    for (found, expected) in [
        (with(identity(2)), "utility has 2 rows, expected 3 x 3"),
        (with(Vec::new()), "utility has 0 rows"),
        (with(vec![vec![1.0; 3], vec![1.0; 2], vec![1.0; 3]]), "utility has 2 values in row 1"),
        (with(changed(-1.0)), "utility, row 1, column 2 (counted from 0): -1 for deciding \"c\" when \"b\" is true"),
        (with(changed(f64::NAN)), "utility, row 1, column 2 (counted from 0): NaN"),
        (with(changed(f64::INFINITY)), "utility, row 1, column 2 (counted from 0): inf"),
        (with(vec![vec![0.0; 3]; 3]), "utility = a matrix of zeros"),
        (message(Truncated::new(1.0).cost(vec![vec![2.0; 3]; 3]).fit(&x, &y)), "makes all decisions alike"),
        (
            message(Truncated::new(1.0).cost(identity(3)).utility(identity(3)).fit(&x, &y)),
            "only one of utility and cost",
        ),
        (
            message(
                Truncated::new(1.0).utility(vec![vec![1.0; 3]; 3]).utility_baseline(Baseline::RowMinimum).fit(&x, &y),
            ),
            "makes all decisions alike",
        ),
    ] {
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn what_does_not_fit_together_is_refused_by_name() {
    let x = Dense::from_rows(&[[0.0], [1.0], [2.0]]);
    let y = [0, 1, 2];
    let direct = Truncated::new(1.0).cost(costs(3)).cost_form(CostForm::Direct);
    for (method, expected) in [
        (Truncated::new(1.0).penalty(Penalty::L1), "penalty = \"l1\" with the rbf kernel"),
        (Truncated::new(1.0).penalty(Penalty::AdaptiveL1).kernel(Kernel::Precomputed), "with the precomputed kernel"),
        (Truncated::new(1.0).truncation(0.5), "truncation = 0.5"),
        (direct.clone().loss(Loss::logistic()), "cost_form = \"direct\" with the logistic loss"),
        (direct.clone().kernel(Kernel::Linear).penalty(Penalty::L1), "cost_form = \"direct\" with penalty \"l1\""),
        (Truncated::new(1.0).cost_form(CostForm::Direct), "cost_form = \"direct\" with no cost matrix"),
        (Truncated::new(1.0).class_weight(ClassWeight::Given(vec![1.0; 2])), "class_weight has 2 values"),
        (
            Truncated::new(1.0).class_weight(ClassWeight::Given(vec![1.0, 1.0, 0.0])),
            "class \"2\" has no row of positive",
        ),
    ] {
        let found = message(method.fit(&x, &y));
        assert!(found.contains(expected), "{found}");
    }
    let request = FitRequest { sample_weight: Some(&[1.0, 0.0, 1.0]), ..FitRequest::default() };
    let found = message(Truncated::new(1.0).fit_with(&x, &["a", "b", "c"], &request));
    assert!(found.contains("class \"b\" has no row of positive weight"), "{found}");
    for problem in [
        outlast::gamma_quartiles(&x, &["a", "a", "a"], None).unwrap_err(),
        outlast::gamma_quartiles(&x, &["a", "b"], None).unwrap_err(),
        outlast::gamma_quartiles(&x, &["a", "b", "c"], Some(&[1.0, 0.0, 1.0])).unwrap_err(),
        outlast::gamma_quartiles(&Dense::from_rows(&[[0.0], [f64::NAN]]), &["a", "b"], None).unwrap_err(),
    ] {
        assert!(!problem.to_string().is_empty());
    }
}

#[test]
fn one_row_per_class_and_equal_rows() {
    all_survive("three rows", &Dense::from_rows(&[[0.0], [1.0], [2.0]]), &[0, 1, 2], 3);
    all_survive("equal rows", &Dense::from_rows(&[[1.0, 2.0]; 6]), &[0, 1, 2, 0, 1, 0], 3);
    all_survive("zeros", &Dense::from_rows(&[[0.0]; 4]), &[0, 1, 2, 0], 3);
    let (values, mut labels) = groups(40, 3, 3, 5);
    labels.iter_mut().skip(1).filter(|label| **label == 0).for_each(|label| *label = 1);
    labels[2] = 2;
    assert_eq!(labels.iter().filter(|&&label| label == 0).count(), 1);
    all_survive("a class of one row", &Dense::new(40, 3, values).unwrap(), &labels, 3);
}

#[test]
fn scales_and_c_from_tiny_to_huge() {
    let (values, labels) = groups(40, 3, 3, 8);
    for scale in [1e-300, 1e150] {
        let scaled: Vec<f64> = values.iter().map(|value| value * scale).collect();
        all_survive(&format!("scale {scale:e}"), &Dense::new(40, 3, scaled).unwrap(), &labels, 3);
    }
    let x = Dense::new(40, 3, values).unwrap();
    for c in [1e-300, 1e10] {
        for method in methods(3) {
            let method = method.c(c);
            let began = Instant::now();
            let model = method.fit(&x, &labels).unwrap();
            assert!(began.elapsed() < Duration::from_secs(20), "{method:?} took {:?}", began.elapsed());
            assert!(!model.summary.objective.is_nan() && !model.summary.gap.is_nan(), "{method:?}");
            assert!(model.decision_function(&x).unwrap().iter().all(|f| f.is_finite()), "{method:?}");
        }
    }
}

#[test]
fn a_hundred_classes() {
    let (values, labels) = groups(300, 4, 100, 3);
    let x = Dense::new(300, 4, values).unwrap();
    for kernel in [Kernel::rbf(0.5), Kernel::Linear] {
        let began = Instant::now();
        let model = Truncated::new(10.0).kernel(kernel).tol(1e-2).fit(&x, &labels).unwrap();
        assert!(began.elapsed() < Duration::from_secs(60), "took {:?}", began.elapsed());
        assert_eq!(model.decision_function(&x).unwrap().len(), 300 * 100);
        assert!(model.summary.objective.is_finite());
    }
}
