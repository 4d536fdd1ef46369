//! The search over parameters, against loops written out: splits, scaling, fits and counts one by one.

use outlast::data::{Scaling, Standardized};
use outlast::model::{AblationMethod, Rows, certify_with};
use outlast::select::stratified;
use outlast::select::tune::{Judge, Measure, Rule, Setting, State};
use outlast::{
    Ablation, Capped, Control, Csr, Dense, Design, Error, FitRequest, Gamma, Kernel, Labels, Model, Progress, Split,
    Status, Truncated, Truncation, Tune, Tuned,
};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Two rings on columns of very different sizes; one label in ten is wrong.
fn rings(n: usize, seed: u64) -> (Vec<[f64; 3]>, Vec<i64>) {
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for row in 0..n {
        let class = (row % 2) as i64;
        let radius = 1.0 + class as f64 + 0.5 * draw();
        let angle = std::f64::consts::TAU * draw();
        x.push([1000.0 * radius * angle.cos() + 5000.0, radius * angle.sin(), 0.01 * draw()]);
        y.push(if draw() < 0.1 { 1 - class } else { class });
    }
    (x, y)
}

fn base() -> Truncated {
    Truncated::new(1.0).tol(1e-8).random_state(3)
}

fn taken(x: &dyn Design, rows: &[u32]) -> Rows {
    Rows::copy(x, rows).unwrap()
}

fn some(labels: &Labels, rows: &[u32]) -> Labels {
    Labels::new(rows.iter().map(|&row| labels.classes()[labels.codes()[row as usize] as usize].clone()))
}

/// Mean and population deviation of each column, by the textbook.
fn textbook(rows: &dyn Design) -> Scaling {
    let (n, d) = (rows.rows(), rows.cols());
    let mut values = vec![0.0; n * d];
    values.chunks_exact_mut(d).enumerate().for_each(|(row, out)| rows.copy_row(row, out));
    let of = |column: usize| (0..n).map(move |row| row * d + column);
    let mean = |column: usize| of(column).map(|at| values[at]).sum::<f64>() / n as f64;
    let shift: Vec<f64> = (0..d).map(mean).collect();
    let scale =
        |column: usize| (of(column).map(|at| (values[at] - shift[column]).powi(2)).sum::<f64>() / n as f64).sqrt();
    let scale = (0..d).map(scale).collect();
    Scaling { shift, scale }
}

/// Fits without a split's rows and counts its mistakes.
fn mistakes(x: &dyn Design, labels: &Labels, split: &Split, scale: bool, method: &Truncated) -> f64 {
    let (train, test) = (taken(x, &split.train), taken(x, &split.test));
    let (mut train, mut test) = (train, test);
    if scale {
        let scaling = textbook(train.as_design());
        let all = |rows: &Rows| (0..rows.as_design().rows() as u32).collect::<Vec<_>>();
        train = taken(&Standardized::new(train.as_design(), &scaling), &all(&train));
        test = taken(&Standardized::new(test.as_design(), &scaling), &all(&test));
    }
    let model = method.fit(train.as_design(), &some(labels, &split.train)).unwrap();
    let decided = model.predict(test.as_design()).unwrap();
    let truth = some(labels, &split.test);
    let wrong = truth.codes().iter().zip(&decided).filter(|(code, to)| truth.classes()[**code as usize] != **to);
    wrong.count() as f64 / decided.len() as f64
}

#[test]
fn points_have_the_errors_of_fits_by_themselves() {
    let (x, y) = rings(90, 1);
    let (x, labels) = (Dense::from_rows(&x), Labels::new(y));
    for scale in [true, false] {
        let tuned = Tune::new(base())
            .over("C", [1.0, 0.1])
            .over("gamma", ["median", "scale"])
            .over("truncation", ["auto".into(), outlast::select::tune::Setting::Nothing])
            .standardize(scale)
            .early_stop(false)
            .exact(true)
            .folds(3)
            .fit(&x, &labels)
            .unwrap();
        let splits = Split::of_folds(&stratified(&labels, 3, 3).unwrap());
        assert_eq!(tuned.cells.len(), 8);
        for cell in &tuned.cells {
            let [_, truncation, gamma, c] = &cell.settings[..] else { panic!("{:?}", cell.settings) };
            let gamma = Gamma::from_name(&gamma.to_string()).unwrap();
            let truncation = if truncation.to_string() == "auto" { Truncation::Auto } else { Truncation::Off };
            let method = base().c(c.number().unwrap()).kernel(Kernel::rbf(gamma)).truncation(truncation);
            let errors: Vec<f64> = splits.iter().map(|split| mistakes(&x, &labels, split, scale, &method)).collect();
            assert_eq!(cell.errors, errors, "{:?}", cell.settings);
            assert_eq!(cell.state, State::Done);
        }
        let least = tuned.cells.iter().map(|cell| cell.mean).fold(f64::INFINITY, f64::min);
        assert_eq!(tuned.best().mean, least);
    }
}

#[test]
fn the_chosen_model_is_the_fit_to_scaled_rows() {
    let (rows, y) = rings(80, 2);
    let x = Dense::from_rows(&rows);
    for kernel in
        [Kernel::rbf(Gamma::Scale), Kernel::Linear, Kernel::Poly { gamma: Gamma::Auto, degree: 2, coef0: 1.0 }]
    {
        let method = base().kernel(kernel.clone());
        let mut tune = Tune::new(method.clone()).over("C", [0.5]);
        if !matches!(kernel, Kernel::Linear) {
            tune = tune.over("gamma", [0.3]);
        }
        let tuned = tune.fit(&x, &y).unwrap();
        let mut plain = method.c(0.5);
        plain.common.kernel = match kernel {
            Kernel::Rbf { .. } => Kernel::rbf(0.3),
            Kernel::Poly { degree, coef0, .. } => Kernel::Poly { gamma: 0.3.into(), degree, coef0 },
            other => other,
        };
        let scaling = textbook(&x);
        let model = plain.fit(&Standardized::new(&x, &scaling), &y).unwrap();
        let ours = tuned.model.decision_function(&x).unwrap();
        let theirs = model.decision_function(&Standardized::new(&x, &scaling)).unwrap();
        for (a, b) in ours.iter().zip(&theirs) {
            assert!((a - b).abs() < 1e-6 * (1.0 + b.abs()), "{a} {b}");
        }
        assert!(tuned.model.is_standardized());
        assert_eq!(tuned.model.predictor.scaling.is_none(), matches!(plain.common.kernel, Kernel::Linear));
    }
}

#[cfg(feature = "io")]
#[test]
fn a_scaled_model_comes_back_from_its_file() {
    use outlast::io::{ExportFormat, export_model, model_from_bytes, model_to_bytes};
    let (rows, y) = rings(60, 3);
    let x = Dense::from_rows(&rows);
    for kernel in [Kernel::default(), Kernel::Linear] {
        let mut model = Tune::new(base().kernel(kernel)).over("C", [1.0]).folds(2).fit(&x, &y).unwrap().model;
        let decided = model.decision_function(&x).unwrap();
        model.training = None;
        let again = model_from_bytes(&model_to_bytes(&model).unwrap()).unwrap();
        assert_eq!(again, model);
        assert_eq!(again.decision_function(&x).unwrap(), decided);
        let linear = model.predictor.scaling.is_none();
        assert_eq!(export_model(&model, ExportFormat::Libsvm).is_ok(), linear);
        let json = export_model(&model, ExportFormat::Json).unwrap().bytes;
        assert_eq!(String::from_utf8(json).unwrap().contains("\"shift\""), !linear);
    }
}

/// What is held out has no part in the scale it is put on, nor in the widths.
#[test]
fn rows_held_out_do_not_leak() {
    let (mut rows, y) = rings(60, 4);
    let split = Split { train: (0..40).collect(), test: (40..60).collect() };
    let mut weights = vec![1.0; 60];
    weights[50] = 0.0;
    let run = |rows: &[[f64; 3]]| -> Tuned {
        let request = FitRequest { sample_weight: Some(&weights), ..FitRequest::default() };
        Tune::new(base())
            .over("C", [0.1, 1.0, 10.0])
            .over("gamma", ["q1", "median", "scale"])
            .judge(Judge::Splits(vec![split.clone()]))
            .fit_with(&Dense::from_rows(rows), &y, &request)
            .unwrap()
    };
    let before = run(&rows);
    rows[50] = [1e9, -1e9, 77.0];
    let after = run(&rows);
    let errors = |tuned: &Tuned| tuned.cells.iter().map(|cell| cell.errors.clone()).collect::<Vec<_>>();
    assert_eq!(errors(&before), errors(&after));
}

#[test]
fn weights_count_as_rows() {
    let (rows, y) = rings(40, 5);
    let weights: Vec<f64> = (0..40).map(|row| f64::from(row % 3)).collect();
    let repeated: Vec<u32> = (0..40u32).flat_map(|row| vec![row; (row % 3) as usize]).collect();
    let split = |rows: &[u32]| {
        let (test, train) = (0..rows.len() as u32).partition(|&at| rows[at as usize].is_multiple_of(4));
        Judge::Splits(vec![Split { train, test }])
    };
    let tune = Tune::new(base()).over("C", [0.1, 1.0]).over("gamma", ["median", "scale"]).exact(true);
    let x = Dense::from_rows(&rows);
    let request = FitRequest { sample_weight: Some(&weights), ..FitRequest::default() };
    let all: Vec<u32> = (0..40).collect();
    let weighted = tune.clone().judge(split(&all)).fit_with(&x, &y, &request).unwrap();
    let longer: Vec<[f64; 3]> = repeated.iter().map(|&row| rows[row as usize]).collect();
    let labels: Vec<i64> = repeated.iter().map(|&row| y[row as usize]).collect();
    let copied = tune.judge(split(&repeated)).fit(&Dense::from_rows(&longer), &labels).unwrap();
    for (a, b) in weighted.cells.iter().zip(&copied.cells) {
        assert!((a.mean - b.mean).abs() < 1e-12, "{a:?} {b:?}");
    }
    let (a, b) = (weighted.model.decision_function(&x).unwrap(), copied.model.decision_function(&x).unwrap());
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5 * (1.0 + a.abs())));
}

#[test]
fn seeds_and_threads() {
    let (rows, y) = rings(300, 6);
    let x = Dense::from_rows(&rows);
    let run = |seed: u64, threads: usize| {
        Tune::new(Truncated::new(1.0).random_state(seed).threads(threads)).folds(5).fit(&x, &y).unwrap()
    };
    let one = run(1, 1);
    assert_eq!(one.cells.len(), 27);
    for other in [run(1, 2), run(1, 3)] {
        // NaN of points given up is equal to itself here
        assert_eq!(format!("{:?}", one.cells), format!("{:?}", other.cells));
        assert_eq!(one.chosen, other.chosen);
        assert_eq!(one.model.decision_function(&x).unwrap(), other.model.decision_function(&x).unwrap());
    }
    assert_ne!(format!("{:?}", one.cells), format!("{:?}", run(2, 2).cells));
}

#[test]
fn points_given_up_would_not_have_been_chosen() {
    let (rows, y) = rings(400, 7);
    let x = Dense::from_rows(&rows);
    for rule in [Rule::Best, Rule::OneSe] {
        let tune = Tune::new(Truncated::new(1.0)).rule(rule);
        let (early, full) = (tune.fit(&x, &y).unwrap(), tune.clone().early_stop(false).fit(&x, &y).unwrap());
        let stopped = early.cells.iter().filter(|cell| cell.state == State::Stopped).count();
        assert!(stopped > 0, "{rule:?}");
        assert!(full.cells.iter().all(|cell| cell.state == State::Done));
        assert_eq!(early.chosen, full.chosen);
        // what was judged is the same but for the starts of the fits
        for (a, b) in early.cells.iter().zip(&full.cells).filter(|(a, _)| a.state == State::Done) {
            assert!((a.mean - b.mean).abs() <= 0.01, "{a:?} {b:?}");
        }
    }
}

#[test]
fn halving_fits_few_points_to_all_rows() {
    let (rows, y) = rings(400, 8);
    let x = Dense::from_rows(&rows);
    let tuned = Tune::new(Truncated::new(1.0)).halving(true).early_stop(false).fit(&x, &y).unwrap();
    let full = Tune::new(Truncated::new(1.0)).early_stop(false).fit(&x, &y).unwrap();
    let with = |share: f64| tuned.cells.iter().filter(|cell| (cell.share - share).abs() < 1e-12).count();
    assert_eq!((with(1.0), with(1.0 / 3.0), with(1.0 / 9.0)), (3, 6, 18));
    assert_eq!(tuned.best().share, 1.0);
    assert!(full.cells[tuned.chosen].mean <= full.best().mean + 2.0 * full.best().standard_error);
}

#[test]
fn the_nested_error_is_that_of_searches_written_out() {
    let (rows, y) = rings(80, 9);
    let (x, labels) = (Dense::from_rows(&rows), Labels::new(y));
    let tune = Tune::new(base()).over("C", [0.1, 1.0]).over("gamma", ["median"]).folds(2);
    let nested = tune.clone().nested(3).fit(&x, &labels).unwrap().nested.unwrap();
    let outer = Split::of_folds(&stratified(&labels, 3, 3 ^ 1).unwrap());
    for (at, split) in outer.iter().enumerate() {
        let found = tune.fit(taken(&x, &split.train).as_design(), &some(&labels, &split.train)).unwrap();
        let decided = found.model.predict(taken(&x, &split.test).as_design()).unwrap();
        let truth = some(&labels, &split.test);
        let wrong = truth.codes().iter().zip(&decided).filter(|(code, to)| truth.classes()[**code as usize] != **to);
        assert_eq!(nested.errors[at], wrong.count() as f64 / split.test.len() as f64);
        assert_eq!(nested.chosen[at], found.best().settings);
    }
    assert!((nested.mean - nested.errors.iter().sum::<f64>() / 3.0).abs() < 1e-15);
}

#[test]
fn an_interrupt_keeps_the_best_so_far() {
    let (rows, y) = rings(200, 10);
    let x = Dense::from_rows(&rows);
    let tune = Tune::new(Truncated::new(1.0).threads(2)).folds(5).early_stop(false);
    let after = |fits: usize| -> outlast::Result<Tuned> {
        let seen = AtomicUsize::new(0);
        let count = |progress: Progress| {
            assert!(progress.step <= tune.steps(200));
            seen.fetch_max(progress.step, Ordering::Relaxed);
        };
        let stop = || seen.load(Ordering::Relaxed) >= fits;
        let control = Control::default().progress(&count).interrupt(&stop);
        tune.fit_with(&x, &y, &FitRequest { control, ..FitRequest::default() })
    };
    let best = after(60).unwrap();
    assert_eq!((best.status, best.model.summary.status), (Status::Interrupted, Status::Interrupted));
    assert!(best.cells.iter().any(|cell| cell.state != State::Done));
    assert_eq!(best.model.predict_codes(&x).unwrap().len(), 200);
    let whole = after(usize::MAX).unwrap();
    assert_eq!(whole.model.summary.status, Status::Converged);
    assert!(matches!(after(0), Err(Error::Interrupted)));
}

#[test]
fn other_rows_and_parts_held_out() {
    let (rows, y) = rings(120, 11);
    let (more, truth) = rings(50, 12);
    let (x, other) = (Dense::from_rows(&rows), Dense::from_rows(&more));
    let tune = Tune::new(base()).over("C", [0.1, 1.0]).over("gamma", [0.5]);
    let tuned = tune.fit_tuned(&x, &y, (&other, &truth), &FitRequest::default()).unwrap();
    assert_eq!(tuned.splits, 1);
    let wrong = |model: &Model| {
        let decided = model.predict(&other).unwrap();
        decided.iter().zip(&truth).filter(|(to, truth)| **to != outlast::Class::Int(**truth)).count() as f64 / 50.0
    };
    assert_eq!(tuned.best().mean, wrong(&tuned.model));
    let (p, n) = (tuned.best().mean, 50.0);
    assert!((tuned.best().standard_error - (p * (1.0 - p) / n).sqrt()).abs() < 1e-12);
    let held = tune.judge(Judge::HoldOut(0.25)).fit(&x, &y).unwrap();
    assert_eq!((held.splits, held.cells[0].errors.len()), (1, 1));
}

/// A width that is a number lets the folds share kernel rows; the rule of the same width does not, as it might depend on them.
#[test]
fn folds_that_share_kernel_rows_find_the_same() {
    let (n, d) = (240, 70);
    let (rings, y) = rings(n, 9);
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    let of = |row: &[f64; 3]| [(row[0] - 5000.0) / 1000.0, row[1]];
    let values: Vec<f64> =
        rings.iter().flat_map(|row| (0..d).map(|at| of(row)[at % 2] + 0.2 * draw()).collect::<Vec<_>>()).collect();
    let x = Dense::new(n, d, values).unwrap();
    let search = |y: &Labels, width: Setting| {
        let tune = Tune::new(Truncated::new(1.0).random_state(3)).standardize(false).early_stop(false);
        tune.over("gamma", [width]).over("C", [0.3, 3.0]).over("truncation", ["auto"]).folds(4).fit(&x, y).unwrap()
    };
    let three: Vec<i64> = y.iter().enumerate().map(|(row, class)| if row % 12 == 0 { 2 } else { *class }).collect();
    for labels in [Labels::new(y), Labels::new(three)] {
        let (shared, alone) = (search(&labels, Setting::Number(1.0 / d as f64)), search(&labels, "auto".into()));
        let means: Vec<f64> = shared.cells.iter().map(|cell| cell.mean).collect();
        assert!(means.iter().any(|mean| *mean > 0.0 && *mean < 0.5), "nothing was learnt: {means:?}");
        for (a, b) in shared.cells.iter().zip(&alone.cells) {
            // rounding in single precision may turn a row at the boundary
            let most = 1.0 / (n as f64 / 4.0) + 1e-12;
            assert!(
                a.errors.iter().zip(&b.errors).all(|(a, b)| (a - b).abs() <= most),
                "{:?} {:?}",
                a.errors,
                b.errors
            );
        }
        assert_eq!(shared.chosen, alone.chosen);
    }
}

#[test]
fn costs_and_utilities_are_the_measure() {
    let (rows, y) = rings(120, 13);
    let x = Dense::from_rows(&rows);
    let cost = vec![vec![0.0, 1.0], vec![5.0, 0.0]];
    let costly = Tune::new(base().cost(cost)).over("C", [0.1, 1.0]).over("gamma", [0.5]).folds(3).fit(&x, &y).unwrap();
    assert_eq!(costly.measure, Measure::Cost);
    assert!(costly.best().mean > 0.0);
    // utilities 5 - cost: the same losses less 5, and the same fits
    let utility = vec![vec![5.0, 4.0], vec![0.0, 5.0]];
    let useful = Tune::new(base().utility(utility)).over("C", [0.1, 1.0]).over("gamma", [0.5]).folds(3);
    let useful = useful.fit(&x, &y).unwrap();
    assert_eq!(useful.measure, Measure::Utility);
    for (a, b) in costly.cells.iter().zip(&useful.cells) {
        assert!((a.mean - (b.mean + 5.0)).abs() < 1e-12, "{a:?} {b:?}");
    }
}

#[test]
fn the_other_methods_are_searched_as_well() {
    let (rows, y) = rings(60, 14);
    let x = Dense::from_rows(&rows);
    let capped = Tune::new(Capped::new(1.0)).over("C", [0.1, 1.0]).over("p", [1.0, 2.0]).folds(3).fit(&x, &y).unwrap();
    assert_eq!(capped.cells.len(), 2 * 2 * 3);
    assert_eq!(capped.model.summary.method, "capped");
    for method in [AblationMethod::Reh, AblationMethod::Rod] {
        let mut tune = Tune::new(Ablation::new(method, 1.0)).over("C", [0.1, 1.0]).folds(2);
        if method == AblationMethod::Rod {
            tune = tune.over("inlier_fraction", [0.8, 1.0]);
        }
        let tuned = tune.fit(&x, &y).unwrap();
        assert_eq!(tuned.cells.len(), if method == AblationMethod::Rod { 4 } else { 2 });
        assert_eq!(tuned.model.summary.method, method.name());
    }
    let kernel = Tune::new(Capped::new(1.0).kernel(Kernel::default())).over("C", [1.0]).folds(2).fit(&x, &y).unwrap();
    assert_eq!(kernel.cells.len(), 9);
}

#[test]
fn three_classes_and_sparse_rows() {
    let (rows, _) = rings(90, 15);
    let y: Vec<&str> = (0..90).map(|row| ["a", "b", "c"][row % 3]).collect();
    let x = Dense::from_rows(&rows);
    let tuned = Tune::new(base()).over("C", [1.0]).folds(3).fit(&x, &y).unwrap();
    assert_eq!(tuned.model.classes().len(), 3);
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in &rows {
        row.iter().enumerate().filter(|(at, _)| *at != 2).for_each(|(at, value)| {
            columns.push(at as u32);
            values.push(*value);
        });
        starts.push(values.len());
    }
    let sparse = Csr::new(90, 3, starts, columns, values).unwrap();
    let tuned = Tune::new(base()).over("C", [1.0]).folds(3).fit(&sparse, &y).unwrap();
    assert!(tuned.model.predictor.scaling.as_ref().is_some_and(|scaling| !scaling.shifts()));
}

#[test]
fn kernel_values_are_searched_as_they_are() {
    let (rows, y) = rings(60, 16);
    let kernel = |a: &[f64; 3], b: &[f64; 3]| {
        let scaled = |row: &[f64; 3]| [(row[0] - 5000.0) / 1000.0, row[1]];
        let (a, b) = (scaled(a), scaled(b));
        (-0.5 * ((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2))).exp()
    };
    let values: Vec<f64> = rows.iter().flat_map(|a| rows.iter().map(move |b| kernel(a, b))).collect();
    let gram = Dense::new(60, 60, values).unwrap();
    let scaled: Vec<[f64; 2]> = rows.iter().map(|row| [(row[0] - 5000.0) / 1000.0, row[1]]).collect();
    let tune = |method: Truncated| Tune::new(method).over("C", [0.1, 1.0, 10.0]).folds(3).exact(true);
    let given = tune(base().kernel(Kernel::Precomputed)).fit(&gram, &y).unwrap();
    let computed = tune(base()).over("gamma", [0.5]).standardize(false).fit(&Dense::from_rows(&scaled), &y).unwrap();
    let errors = |tuned: &Tuned| tuned.cells.iter().map(|cell| cell.errors.clone()).collect::<Vec<_>>();
    assert_eq!(errors(&given), errors(&computed));
}

#[test]
fn bad_input_is_refused_by_name() {
    let (rows, mut y) = rings(30, 17);
    let x = Dense::from_rows(&rows);
    let tune = || Tune::new(base());
    let refused = |tune: Tune, words: &str| {
        let error = tune.fit(&x, &y).err().unwrap_or_else(|| panic!("{words}")).to_string();
        assert!(error.contains(words), "{words} in {error}");
    };
    refused(tune().over("C", Vec::<f64>::new()), "C");
    refused(tune().over("C", [f64::NAN]), "C");
    refused(tune().over("C", [-1.0]), "C");
    refused(tune().over("C", ["auto"]), "C");
    refused(tune().over("gamma", [f64::NAN]), "gamma");
    refused(tune().over("gamma", ["wide"]), "gamma");
    refused(tune().over("truncation", [0.5]), "truncation");
    refused(tune().over("penalty", ["l1"]), "penalty");
    refused(tune().over("p", [1.0]), "over");
    refused(tune().folds(1), "cv");
    refused(tune().folds(31), "cv");
    refused(tune().nested(1), "nested");
    refused(tune().judge(Judge::HoldOut(1.0)), "holdout");
    refused(tune().judge(Judge::Splits(Vec::new())), "cv");
    refused(tune().judge(Judge::Splits(vec![Split { train: vec![0, 99], test: vec![1] }])), "cv");
    refused(Tune::new(base().kernel(Kernel::Linear)).over("gamma", [1.0]), "gamma");
    y.iter_mut().for_each(|class| *class = 0);
    y[7] = 1;
    let error = tune().fit(&x, &y).err().unwrap().to_string();
    assert!(error.contains("class \"1\"") && error.contains("split"), "{error}");
}

/// Models that scaled their columns are certified as models fitted to scaled rows are.
#[test]
fn a_certificate_is_that_of_scaled_rows() {
    let (rows, y) = rings(30, 18);
    let x = Dense::from_rows(&rows);
    let weights: Vec<f64> = (0..30).map(|row| 0.5 + f64::from(row % 3)).collect();
    let request = FitRequest { sample_weight: Some(&weights), ..FitRequest::default() };
    let labels = Labels::new(y);
    for (kernel, intercept) in [(Kernel::rbf(0.4), true), (Kernel::Linear, true), (Kernel::Linear, false)] {
        let method = base().c(1.0).kernel(kernel.clone()).truncation(0.0).fit_intercept(intercept);
        let mut tune = Tune::new(method.clone()).over("C", [1.0]).folds(2);
        if !matches!(kernel, Kernel::Linear) {
            tune = tune.over("gamma", [0.4]);
        }
        let tuned = tune.fit_with(&x, &labels, &request).unwrap();
        let scaling = Scaling::of(&x, Some(&weights));
        let scaled = taken(&Standardized::new(&x, &scaling), &(0..30).collect::<Vec<_>>());
        let plain = method.fit_with(scaled.as_design(), &labels, &request).unwrap();
        let certified =
            |model: &Model, x: &dyn Design| certify_with(model, x, &labels, Some(&weights), Control::default());
        let (ours, theirs) = (certified(&tuned.model, &x).unwrap(), certified(&plain, scaled.as_design()).unwrap());
        assert!(theirs.lower_bound > 0.0);
        for (a, b) in [(ours.objective, theirs.objective), (ours.lower_bound, theirs.lower_bound)] {
            assert!((a - b).abs() < 1e-5 * b, "{kernel:?}: {a} {b}");
        }
        assert_eq!(ours.proved, theirs.proved);
        assert!((ours.objective - tuned.model.summary.objective).abs() < 1e-6 * ours.objective);
    }
}
