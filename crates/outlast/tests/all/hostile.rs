//! Bad and extreme input through the public face: a clear error or a right answer, no panic, no hang.

use crate::common::Data;
use outlast::{
    ClassWeight, Csr, Dense, Design, Error, FitRequest, Gamma, Kernel, Loss, Model, Result, Truncated, Truncation,
};
use std::time::{Duration, Instant};

/// Every solver with a loss and a kernel it takes.
fn methods() -> Vec<Truncated> {
    let mut methods = Vec::new();
    for truncation in [Truncation::Auto, Truncation::Off] {
        for intercept in [true, false] {
            for (solver, kernel, loss) in [
                ("auto", Kernel::default(), Loss::hinge()),
                ("auto", Kernel::Linear, Loss::hinge()),
                ("linear-dcd", Kernel::Linear, Loss::hinge()),
                ("kernel-smo", Kernel::Poly { gamma: Gamma::Scale, degree: 3, coef0: 1.0 }, Loss::hinge()),
                ("kernel-smo", Kernel::Sigmoid { gamma: Gamma::Scale, coef0: 0.0 }, Loss::hinge()),
                ("auto", Kernel::default(), Loss::logistic()),
                ("auto", Kernel::Linear, Loss::logistic()),
                ("auto", Kernel::Linear, Loss::exponential()),
            ] {
                let method = Truncated::new(1.0).kernel(kernel).loss(loss).truncation(truncation);
                methods.push(method.fit_intercept(intercept).solver(solver));
            }
        }
    }
    methods
}

/// Fits with every method; whatever comes back must be finite and quick.
fn all_survive(what: &str, x: &dyn Design, labels: &[i32]) -> Vec<Model> {
    let mut models = Vec::new();
    for method in methods() {
        let began = Instant::now();
        let result = method.fit(x, &labels.to_vec());
        assert!(began.elapsed() < Duration::from_secs(20), "{what}: {method:?} took {:?}", began.elapsed());
        match result {
            Err(Error::Numerical { .. }) => {}
            Err(error) => panic!("{what}: {method:?}: {error}"),
            Ok(model) => {
                let summary = &model.summary;
                // no higher than f = 0, where no loss is more than 1 with C = 1
                assert!(summary.objective <= x.rows() as f64 * (1.0 + 1e-6), "{what}: {method:?}: {summary:?}");
                assert!(
                    summary.trace.windows(2).all(|pair| pair[1] <= pair[0]),
                    "{what}: {method:?}: {:?}",
                    summary.trace
                );
                assert!(!summary.gap.is_nan(), "{what}: {method:?}");
                let decision = model.decision_function(x).unwrap();
                assert!(decision.iter().all(|value| value.is_finite()), "{what}: {method:?}: {decision:?}");
                models.push(model);
            }
        }
    }
    models
}

fn message(result: Result<Model>) -> String {
    result.expect_err("should be refused").to_string()
}

#[test]
fn values_that_are_no_numbers_are_named() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let x = Dense::from_rows(&[[0.0, 1.0], [1.0, bad]]);
        let text = message(Truncated::new(1.0).fit(&x, &[0, 1]));
        assert!(text.contains("row 1, column 1"), "{text}");
        let model = Truncated::new(1.0).fit(&Dense::from_rows(&[[0.0, 1.0], [1.0, 0.0]]), &[0, 1]).unwrap();
        assert!(model.predict(&x).is_err());
    }
}

#[test]
fn shapes_and_classes_are_checked() {
    let x = Dense::from_rows(&[[0.0], [1.0], [2.0]]);
    let method = Truncated::new(1.0);
    assert!(message(method.fit(&Dense::<f64>::new(0, 2, vec![]).unwrap(), &Vec::<i32>::new())).contains("0 rows"));
    assert!(message(method.fit(&Dense::<f64>::new(2, 0, vec![]).unwrap(), &[0, 1])).contains("0 columns"));
    assert!(message(method.fit(&x, &[0, 1])).contains("2 labels"));
    assert!(message(method.fit(&x, &["a", "a", "a"])).contains("class \"a\""));
    let values: Vec<f64> = (0..2000).map(f64::from).collect();
    let many = Dense::new(2000, 1, &values[..]).unwrap();
    let all: Vec<u32> = (0..2000).collect();
    assert!(message(method.fit(&many, &all)).contains("2000 distinct values"));
    assert!(message(method.fit(&Dense::from_rows(&[[1.0]]), &[0])).contains("two classes"));
    for (weights, text) in [
        (vec![1.0, 1.0], "2 values"),
        (vec![1.0, -1.0, 1.0], "row 1"),
        (vec![1.0, f64::NAN, 1.0], "row 1"),
        (vec![0.0, 1.0, 0.0], "no row of positive weight"),
    ] {
        let request = FitRequest { sample_weight: Some(&weights), ..FitRequest::default() };
        let found = message(method.fit_with(&x, &[0, 1, 0], &request));
        assert!(found.contains(text), "{found}");
    }
    let model = method.fit(&x, &[0, 1, 1]).unwrap();
    assert!(model.predict(&Dense::from_rows(&[[0.0, 1.0]])).unwrap_err().to_string().contains("2 columns"));
}

#[test]
fn parameters_out_of_range_are_named_with_their_value() {
    let x = Dense::from_rows(&[[0.0], [1.0]]);
    let y = [0, 1];
    let bad = |method: Truncated, name: &str, value: &str| {
        let text = message(method.fit(&x, &y));
        assert!(text.contains(name) && text.contains(value), "{text}");
    };
    for c in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        bad(Truncated::new(c), "C", &c.to_string());
    }
    bad(Truncated::new(1.0).tol(0.0), "tol", "0");
    bad(Truncated::new(1.0).truncation(0.5), "truncation", "0.5");
    bad(Truncated::new(1.0).kernel(Kernel::rbf(-2.0)), "gamma", "-2");
    bad(Truncated::new(1.0).kernel(Kernel::Poly { gamma: Gamma::Auto, degree: 0, coef0: 0.0 }), "degree", "0");
    bad(Truncated::new(1.0).kernel(Kernel::Sigmoid { gamma: Gamma::Auto, coef0: f64::NAN }), "coef0", "NaN");
    bad(Truncated::new(1.0).threads(0), "n_jobs", "0");
    bad(Truncated::new(1.0).cache_size(-1.0), "cache_size", "-1");
    bad(Truncated::new(1.0).solver("magic"), "solver", "magic");
    bad(Truncated::new(1.0).solver("linear-band"), "solver", "linear-band");
    bad(Truncated::new(1.0).kernel(Kernel::Linear).loss(Loss::logistic()).solver("linear-dcd"), "solver", "logistic");
    bad(Truncated::new(1.0).class_weight(ClassWeight::Given(vec![1.0, -1.0])), "class_weight", "-1");
    bad(Truncated::new(1.0).class_weight(ClassWeight::Given(vec![1.0])), "class_weight", "1 values");
    bad(Truncated::new(1.0).kernel(Kernel::Precomputed), "square", "1 columns");
}

#[test]
fn two_rows_are_enough() {
    all_survive("two rows", &Dense::from_rows(&[[0.0], [1.0]]), &[-1, 1]);
    all_survive("two equal rows", &Dense::from_rows(&[[1.0, 2.0], [1.0, 2.0]]), &[-1, 1]);
}

#[test]
fn constant_columns_and_rows_of_zeros() {
    let x = Dense::from_rows(&[[3.0, 0.0], [3.0, 1.0], [3.0, 2.0], [3.0, 3.0], [3.0, -1.0], [3.0, 9.0]]);
    all_survive("one constant column", &x, &[-1, -1, 1, 1, -1, -1]);
    let constant = Dense::from_rows(&[[5.0]; 8]);
    for model in all_survive("only constants", &constant, &[1, 1, 1, 1, 1, -1, -1, -1]) {
        // nothing to tell the rows apart: with an intercept the majority wins
        if model.predictor.intercepts[0] != 0.0 && model.summary.status.is_converged() {
            assert!(model.predict_codes(&constant).unwrap().iter().all(|&code| code == 1), "{:?}", model.summary);
        }
    }
    all_survive("only zeros", &Dense::from_rows(&[[0.0, 0.0]; 6]), &[1, -1, 1, -1, 1, -1]);
    let empty = Csr::<f64>::new(4, 3, vec![0; 5], vec![], vec![]).unwrap();
    all_survive("only empty rows", &empty, &[1, -1, 1, 1]);
}

#[test]
fn duplicated_rows_with_opposite_labels() {
    let rows: Vec<[f64; 2]> = (0..40).map(|i| [(i / 2 % 5) as f64, (i / 10) as f64]).collect();
    let labels: Vec<i32> = (0..40).map(|i| if i % 2 == 0 { 1 } else { -1 }).collect();
    all_survive("opposite duplicates", &Dense::from_rows(&rows), &labels);
}

#[test]
fn c_from_tiny_to_huge() {
    let data = Data::noisy(60, 3, 0.1, 77);
    for method in methods() {
        let text = message(method.clone().c(1e300).fit(&data.dense(), &data.labels()));
        assert!(text.contains("C = 1e300") && text.contains("1e200"), "{text}");
        for c in [1e-300, 1e-10, 1e10, 1e190] {
            let method = method.clone().c(c);
            let began = Instant::now();
            let model = method.fit(&data.dense(), &data.labels()).unwrap();
            assert!(began.elapsed() < Duration::from_secs(20), "{method:?} took {:?}", began.elapsed());
            assert!(!model.summary.objective.is_nan(), "{method:?}");
            assert!(model.decision_function(&data.dense()).unwrap().iter().all(|f| f.is_finite()), "{method:?}");
        }
    }
}

#[test]
fn features_of_any_scale() {
    let data = Data::noisy(60, 3, 0.1, 78);
    for scale in [1e-300, 1e-200, 1e-150, 1e150, 1e300] {
        let values: Vec<f64> = data.values.iter().map(|value| value * scale).collect();
        let x = Dense::new(data.rows, data.cols, values).unwrap();
        all_survive(&format!("scale {scale:e}"), &x, &data.labels());
    }
    // the rbf kernel with its width from the data does not see the scale at all
    let method = Truncated::new(1.0).truncation(Truncation::Off);
    let expected = method.fit(&data.dense(), &data.labels()).unwrap().summary.objective;
    for scale in [1e-140, 1e140] {
        let values: Vec<f64> = data.values.iter().map(|value| value * scale).collect();
        let x = Dense::new(data.rows, data.cols, values).unwrap();
        let found = method.fit(&x, &data.labels()).unwrap().summary.objective;
        assert!(crate::common::relative(found, expected) < 1e-6, "{scale:e}: {found} {expected}");
    }
}

#[test]
fn a_million_columns() {
    let (rows, cols) = (200, 1_000_000);
    let mut random = crate::common::Random(5);
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut labels = Vec::new();
    for row in 0..rows {
        let mut own: Vec<u32> = (0..10).map(|_| random.below(cols) as u32).collect();
        own.push((row % 2) as u32);
        own.sort_unstable();
        own.dedup();
        values.extend(own.iter().map(|_| 1.0));
        columns.extend(own);
        starts.push(values.len());
        labels.push(if row % 2 == 0 { 1 } else { -1 });
    }
    let x = Csr::new(rows, cols, starts, columns, values).unwrap();
    for model in all_survive("a million columns", &x, &labels) {
        let right = model
            .predict_codes(&x)
            .unwrap()
            .iter()
            .zip(&labels)
            .filter(|(code, label)| (**code == 1) == (**label == 1))
            .count();
        assert!(right > 150, "{:?}: {right} of {rows}", model.summary);
    }
}

#[test]
fn time_limits_and_interrupts_are_honoured_by_every_solver() {
    let data = Data::noisy(3000, 8, 0.2, 6);
    for method in methods() {
        let stop = || true;
        let control = outlast::Control::default().interrupt(&stop);
        let request = FitRequest { control, ..FitRequest::default() };
        let error = method.fit_with(&data.dense(), &data.labels(), &request).unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{method:?}");
        let control = outlast::Control::default().time_limit(Duration::from_millis(1));
        let request = FitRequest { control, ..FitRequest::default() };
        let began = Instant::now();
        let model = method.fit_with(&data.dense(), &data.labels(), &request).unwrap();
        assert!(began.elapsed() < Duration::from_secs(5), "{method:?} took {:?}", began.elapsed());
        assert!(model.summary.objective.is_finite(), "{method:?}");
    }
}
