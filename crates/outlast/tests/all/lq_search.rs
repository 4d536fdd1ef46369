//! The search over C and q of the L_q machine, against loops written out: splits, scaling, fits and counts one by one.

use crate::common::{Random, relative};
use crate::lq_data::Data;
use outlast::data::{Scaling, Standardized};
use outlast::model::Rows;
use outlast::select::tune::{Judge, Measure, Rule, State};
use outlast::select::{default_cs, stratified};
use outlast::{
    ClassWeight, Control, Csr, Dense, Design, Error, FeatureMap, FitRequest, Labels, Lq, LqChoice, LqSearch, Model,
    Progress, Split, Status,
};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Relative difference of two ways to the same convex optimum.
const SAME: f64 = 1e-6;
/// A hundredth of that.
const TOLERANCE: f64 = 1e-8;

/// Columns of sizes that differ by orders of magnitude, far from 0.
fn uneven(data: &Data) -> Vec<f64> {
    let d = data.values.len() / data.codes.len();
    data.values.iter().enumerate().map(|(at, x)| 10f64.powi((at % d) as i32 % 5 - 2) * (x + 3.0)).collect()
}

fn all(rows: usize) -> Vec<u32> {
    (0..rows as u32).collect()
}

/// Some rows, put on the scale of others.
fn scaled(x: &dyn Design, rows: &[u32], scaling: &Scaling) -> Rows {
    Rows::copy(&Standardized::new(x, scaling), rows).unwrap()
}

fn some(labels: &Labels, rows: &[u32]) -> Labels {
    let codes = rows.iter().map(|&row| labels.codes()[row as usize]).collect();
    Labels::from_codes(labels.classes().to_vec(), codes).unwrap()
}

/// A fit without the held-out rows of a split, on columns scaled by hand, and what it loses on them.
fn lost(x: &dyn Design, labels: &Labels, split: &Split, method: &Lq, loss: impl Fn(u32, u32) -> f64) -> f64 {
    let train = Rows::copy(x, &split.train).unwrap();
    let scaling = Scaling::of(train.as_design(), None);
    let model = method.fit(scaled(x, &split.train, &scaling).as_design(), &some(labels, &split.train)).unwrap();
    let decided = model.predict_codes(scaled(x, &split.test, &scaling).as_design()).unwrap();
    let truth = split.test.iter().map(|&row| labels.codes()[row as usize]);
    truth.zip(&decided).map(|(truth, &to)| loss(truth, to)).sum::<f64>() / decided.len() as f64
}

fn wrong(truth: u32, to: u32) -> f64 {
    f64::from(truth != to)
}

fn means(found: &LqChoice) -> Vec<f64> {
    found.tuned.cells.iter().map(|cell| cell.mean).collect()
}

fn errors(found: &LqChoice) -> Vec<Vec<f64>> {
    found.tuned.cells.iter().map(|cell| cell.errors.clone()).collect()
}

#[test]
fn a_search_takes_the_fewest_mistakes_and_the_sparser_of_two() {
    let data = Data::new(120, 15, 2, 1.0, 51);
    let search = LqSearch::new(vec![0.01, 0.1, 1.0], vec![0.5, 1.0, 2.0]).folds(4);
    let x = data.dense();
    let found = search.fit(&x, &data.codes[..]).unwrap();
    let (chosen, model) = (found.tuned.chosen, &found.tuned.model);
    let least = means(&found).into_iter().fold(f64::INFINITY, f64::min);
    assert_eq!(found.tuned.best().mean, least);
    for (point, cell) in found.path.iter().zip(&found.tuned.cells) {
        assert!(cell.mean > least || point.size >= found.path[chosen].size);
        assert!((cell.errors.iter().sum::<f64>() / 4.0 - cell.mean).abs() < 1e-12);
        assert_eq!(cell.settings, [point.q.into(), point.c.into()]);
    }
    let point = found.point();
    assert_eq!((model.summary.c, model.summary.details.get("q")), (point.c, Some(point.q)));
    assert!(found.stability.iter().all(|share| (0.0..=1.0).contains(share)));
    assert!(model.summary.objective <= point.objective * (1.0 + 1e-9));
    // one thread finds the same
    let alone = search.clone().base(Lq::new(1.0).threads(1)).fit(&x, &data.codes[..]).unwrap();
    assert_eq!((alone.tuned.chosen, errors(&alone)), (chosen, errors(&found)));
}

#[test]
fn points_have_the_errors_of_fits_to_scaled_rows() {
    for k in [2, 3] {
        let data = Data::new(90, 8, k, 1.0, 53);
        let (x, labels) = (Dense::new(90, 8, uneven(&data)).unwrap(), Labels::new(data.codes.clone()));
        let base = Lq::new(1.0).tol(TOLERANCE).random_state(5);
        // for smaller C the intercepts of several classes are not unique
        let search = LqSearch::new(vec![0.3, 3.0], vec![1.0, 1.5, 2.0]).folds(3).base(base.clone());
        let found = search.fit(&x, &labels).unwrap();
        let splits = Split::of_folds(&stratified(&labels, 3, 5).unwrap());
        let scaling = Scaling::of(&x, None);
        let rows = scaled(&x, &all(90), &scaling);
        for (cell, point) in found.tuned.cells.iter().zip(&found.path) {
            let method = base.clone().c(point.c).q(point.q);
            let by_hand: Vec<f64> = splits.iter().map(|split| lost(&x, &labels, split, &method, wrong)).collect();
            for (ours, by_hand) in cell.errors.iter().zip(&by_hand) {
                assert!((ours - by_hand).abs() < SAME, "{k} classes, {:?}", cell.settings);
            }
            // the path on all rows: its objective on scaled columns, its coefficients on the columns as they came
            let whole = method.fit(rows.as_design(), &labels).unwrap();
            assert!(relative(point.objective, whole.summary.objective) < SAME, "{k} classes, {:?}", cell.settings);
            if point.c == found.point().c && point.q == found.point().q {
                let (ours, by_hand) = (
                    found.tuned.model.decision_function(&x).unwrap(),
                    whole.decision_function(rows.as_design()).unwrap(),
                );
                assert!(relative(found.tuned.model.summary.objective, whole.summary.objective) < SAME);
                assert!(ours.iter().zip(&by_hand).all(|(a, b)| (a - b).abs() < 1e-3 * (1.0 + b.abs())));
                let weights = found.tuned.model.predictor.weights().unwrap();
                assert!(weights.iter().zip(&point.weights).all(|(a, b)| (a == &0.0) == (b == &0.0)));
            }
        }
        assert!(found.tuned.model.is_standardized() && found.tuned.model.predictor.scaling.is_none());
    }
}

/// The same without a scale, and with weights by class of the training rows of each split.
#[test]
fn points_have_the_errors_of_fits_to_the_rows_as_they_are() {
    let data = Data::new(100, 6, 3, 1.0, 55);
    let (x, labels) = (data.dense(), Labels::new(data.codes.clone()));
    let base = Lq::new(1.0).tol(TOLERANCE).class_weight(ClassWeight::Balanced);
    let search = LqSearch::new(vec![0.3, 3.0], vec![1.0, 2.0]).folds(3).base(base.clone()).standardize(false);
    let found = search.fit(&x, &labels).unwrap();
    let splits = Split::of_folds(&stratified(&labels, 3, 0).unwrap());
    for cell in &found.tuned.cells {
        let [q, c] = [cell.settings[0].number().unwrap(), cell.settings[1].number().unwrap()];
        for (split, ours) in splits.iter().zip(&cell.errors) {
            let train = Rows::copy(&x, &split.train).unwrap();
            let model = base.clone().c(c).q(q).fit(train.as_design(), &some(&labels, &split.train)).unwrap();
            let decided = model.predict_codes(Rows::copy(&x, &split.test).unwrap().as_design()).unwrap();
            let truth = some(&labels, &split.test);
            let wrong = truth.codes().iter().zip(&decided).filter(|(truth, to)| truth != to).count();
            assert!((wrong as f64 / decided.len() as f64 - ours).abs() < SAME, "{:?}", cell.settings);
        }
    }
    assert!(!found.tuned.model.is_standardized());
}

#[test]
fn costs_are_the_measure() {
    let data = Data::new(90, 5, 2, 1.0, 57);
    let (x, labels) = (Dense::new(90, 5, uneven(&data)).unwrap(), Labels::new(data.codes.clone()));
    let cost = vec![vec![0.0, 1.0], vec![7.0, 0.0]];
    let base = Lq::new(1.0).tol(TOLERANCE).cost(cost.clone());
    let found = LqSearch::new(vec![0.03, 0.3], vec![1.0, 2.0]).folds(3).base(base.clone()).fit(&x, &labels).unwrap();
    assert_eq!(found.tuned.measure, Measure::Cost);
    let splits = Split::of_folds(&stratified(&labels, 3, 0).unwrap());
    for (cell, point) in found.tuned.cells.iter().zip(&found.path) {
        for (split, ours) in splits.iter().zip(&cell.errors) {
            let method = base.clone().c(point.c).q(point.q);
            let by_hand = lost(&x, &labels, split, &method, |truth, to| cost[truth as usize][to as usize]);
            assert!((ours - by_hand).abs() < SAME, "{:?}", cell.settings);
        }
    }
}

#[test]
fn one_standard_error_takes_the_fewest_columns() {
    let data = Data::new(150, 20, 2, 1.0, 59);
    let search = LqSearch::new(8, vec![0.5, 1.0, 2.0]).rule(Rule::OneSe);
    let found = search.fit(&data.dense(), &data.codes[..]).unwrap();
    let cells = &found.tuned.cells;
    // by the textbook
    for cell in cells {
        let n = cell.errors.len() as f64;
        let spread = cell.errors.iter().map(|error| (error - cell.mean).powi(2)).sum::<f64>() / (n - 1.0);
        assert!((cell.standard_error - (spread / n).sqrt()).abs() < 1e-12);
    }
    let best = cells.iter().min_by(|a, b| a.mean.total_cmp(&b.mean)).unwrap();
    let within = |at: &usize| cells[*at].mean <= best.mean + best.standard_error + 1e-12;
    let key = |at: usize| (found.path[at].size, found.path[at].c);
    let fewest = (0..cells.len()).filter(within).map(key).min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    assert_eq!(Some(key(found.tuned.chosen)), fewest);
    let least = search.rule(Rule::Best).fit(&data.dense(), &data.codes[..]).unwrap();
    assert!(found.point().size <= least.point().size);
}

#[test]
fn the_nested_error_is_that_of_searches_written_out() {
    let data = Data::new(90, 6, 2, 1.0, 63);
    let (x, labels) = (Dense::new(90, 6, uneven(&data)).unwrap(), Labels::new(data.codes.clone()));
    for judge in [Judge::Folds(2), Judge::HoldOut(0.3)] {
        let search = LqSearch::new(4, vec![0.5, 1.0]).judge(judge).base(Lq::new(1.0).random_state(3));
        let found = search.clone().nested(3).fit(&x, &labels).unwrap();
        let nested = found.tuned.nested.unwrap();
        let outer = Split::of_folds(&stratified(&labels, 3, 3 ^ 1).unwrap());
        for (at, split) in outer.iter().enumerate() {
            let train = Rows::copy(&x, &split.train).unwrap();
            let inner = search.fit(train.as_design(), &some(&labels, &split.train)).unwrap();
            let held = Rows::copy(&x, &split.test).unwrap();
            let decided = inner.tuned.model.predict_codes(held.as_design()).unwrap();
            let truth = some(&labels, &split.test);
            let wrong = truth.codes().iter().zip(&decided).filter(|(truth, to)| truth != to).count();
            assert!((nested.errors[at] - wrong as f64 / decided.len() as f64).abs() < 1e-15);
            assert_eq!(nested.chosen[at], inner.tuned.best().settings);
        }
        assert!((nested.mean - nested.errors.iter().sum::<f64>() / 3.0).abs() < 1e-15);
    }
}

#[test]
fn a_tuning_set_decides_in_place_of_folds() {
    let (data, tuning) = (Data::new(80, 6, 3, 1.0, 61), Data::new(90, 6, 3, 1.0, 61));
    let (x, held) = (Dense::new(80, 6, uneven(&data)).unwrap(), Dense::new(90, 6, uneven(&tuning)).unwrap());
    let search = LqSearch::new(vec![0.01, 1.0], vec![0.7, 1.0]);
    let run = |search: &LqSearch, truth: &[u32]| {
        search.fit_tuned(&x, &data.codes[..], (&held, truth), &FitRequest::default())
    };
    let found = run(&search, &tuning.codes).unwrap();
    assert!(found.stability.is_empty() && found.tuned.splits == 1);
    let wrong = |model: &Model| {
        model.predict_codes(&held).unwrap().iter().zip(&tuning.codes).filter(|(a, b)| a != b).count() as f64 / 90.0
    };
    assert!((wrong(&found.tuned.model) - found.tuned.best().mean).abs() < 0.05);
    let (p, n) = (found.tuned.best().mean, 90.0);
    assert!((found.tuned.best().standard_error - (p * (1.0 - p) / n).sqrt()).abs() < 1e-12);
    assert!(run(&search, &[9; 90]).is_err());
    assert!(run(&search.nested(3), &tuning.codes).is_err());
}

/// Whatever the rows held out are called, a split finds the same: of two classes each decision is wrong once. With columns enough some
/// agree with any labels, so that a start which knows these shows.
#[test]
fn labels_held_out_do_not_leak() {
    let (n, d) = (40, 150);
    let mut random = Random(11);
    let x = Dense::new(n, d, (0..n * d).map(|_| random.normal()).collect::<Vec<f64>>()).unwrap();
    let truth: Vec<u32> = (0..n as u32).map(|row| row % 2).collect();
    for split in Split::of_folds(&(0..n).map(|row| row / 10).collect::<Vec<usize>>()) {
        let mut flipped = truth.clone();
        split.test.iter().for_each(|&row| flipped[row as usize] = 1 - flipped[row as usize]);
        let judge = Judge::Splits(vec![split]);
        let search = LqSearch::new(vec![0.3, 1.0], vec![0.3, 1.0, 1.5]).judge(judge.clone());
        let run = |labels: &[u32]| means(&search.fit(&x, labels).unwrap());
        for (one, other) in run(&truth).iter().zip(run(&flipped)) {
            assert!((one + other - 1.0).abs() < 1e-12, "{one} {other}");
        }
        // nor in the columns selected
        let alone = LqSearch::new(vec![1.0], vec![0.3]).judge(judge);
        let selected = |labels: &[u32]| alone.fit(&x, labels).unwrap().stability;
        assert!(selected(&truth) == selected(&flipped) && selected(&truth).contains(&1.0));
    }
}

/// What is held out has no part in the scale it is put on.
#[test]
fn rows_held_out_do_not_leak() {
    let data = Data::new(60, 4, 2, 1.0, 65);
    let split = Split { train: (0..40).collect(), test: (40..60).collect() };
    let mut weights = vec![1.0; 60];
    weights[50] = 0.0;
    let request = FitRequest { sample_weight: Some(&weights), ..FitRequest::default() };
    let search = LqSearch::new(vec![0.05, 0.5], vec![0.5, 1.0, 2.0]).judge(Judge::Splits(vec![split]));
    let run = |values: &[f64]| {
        errors(&search.fit_with(&Dense::new(60, 4, values).unwrap(), &data.codes[..], &request).unwrap())
    };
    let mut absurd = data.values.clone();
    absurd[50 * 4..51 * 4].copy_from_slice(&[1e9, -1e9, 77.0, 1e-9]);
    assert_eq!(run(&data.values), run(&absurd));
}

#[test]
fn sparse_columns_and_squares_are_scaled_as_part_of_the_model() {
    let data = Data::new(80, 5, 2, 1.0, 67);
    let values = uneven(&data);
    let x = Dense::new(80, 5, &values[..]).unwrap();
    let starts: Vec<usize> = (0..=80).map(|row| 5 * row).collect();
    let columns: Vec<u32> = (0..80).flat_map(|_| 0..5).collect();
    let sparse = Csr::new(80, 5, starts, columns, values.clone()).unwrap();
    for map in [FeatureMap::Identity, FeatureMap::Squares] {
        let search = LqSearch::new(vec![0.1], vec![1.0]).folds(2).base(Lq::new(1.0).feature_map(map).tol(TOLERANCE));
        for x in [&x as &dyn Design, &sparse] {
            let model = search.fit(x, &data.codes[..]).unwrap().tuned.model;
            let scaling = Scaling::of(x, None);
            assert_eq!(scaling.shifts(), !x.is_sparse());
            let rows = scaled(x, &all(80), &scaling);
            let by_hand = search.base.clone().c(0.1).fit(rows.as_design(), &data.codes[..]).unwrap();
            assert!(relative(model.summary.objective, by_hand.summary.objective) < SAME);
            let (a, b) = (model.decision_function(x).unwrap(), by_hand.decision_function(rows.as_design()).unwrap());
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-3 * (1.0 + b.abs())));
            assert_eq!(model.predictor.scaling.is_some(), map == FeatureMap::Squares);
            #[cfg(feature = "io")]
            {
                use outlast::io::{model_from_bytes, model_to_bytes};
                let again = model_from_bytes(&model_to_bytes(&Model { training: None, ..model }).unwrap()).unwrap();
                assert_eq!(again.decision_function(x).unwrap(), a);
            }
        }
    }
}

#[test]
fn an_interrupt_keeps_the_best_so_far() {
    let data = Data::new(200, 20, 2, 1.0, 69);
    let x = data.dense();
    let search = LqSearch::new(10, vec![0.5, 1.0, 1.5]).base(Lq::new(1.0).threads(2));
    let steps = search.steps(200, false);
    assert_eq!(steps, 30 * 6);
    let after = |points: usize| -> outlast::Result<LqChoice> {
        let seen = AtomicUsize::new(0);
        let count = |progress: Progress| {
            assert!(progress.step <= steps);
            seen.fetch_max(progress.step, Ordering::Relaxed);
        };
        let stop = || seen.load(Ordering::Relaxed) >= points;
        let control = Control::default().progress(&count).interrupt(&stop);
        search.fit_with(&x, &data.codes[..], &FitRequest { control, ..FitRequest::default() })
    };
    // of all rows and of each split 20 points up to q = 1, and 10 beyond
    let best = after(110).unwrap();
    assert_eq!((best.tuned.status, best.tuned.model.summary.status), (Status::Interrupted, Status::Interrupted));
    let states: Vec<State> = best.tuned.cells.iter().map(|cell| cell.state).collect();
    assert!(states.contains(&State::Partly) && !states.contains(&State::Stopped), "{states:?}");
    assert!(best.tuned.best().mean.is_finite() && best.stability.iter().all(|share| share.is_finite()));
    assert_eq!(best.tuned.model.predict_codes(&x).unwrap().len(), 200);
    let whole = after(usize::MAX).unwrap();
    assert_eq!((whole.tuned.status, whole.tuned.model.summary.status), (Status::Converged, Status::Converged));
    assert!(matches!(after(0), Err(Error::Interrupted)));
    // points judged before the interrupt are those of the whole search
    for (some, all) in best.tuned.cells.iter().zip(&whole.tuned.cells) {
        for (some, all) in some.errors.iter().zip(&all.errors).filter(|(some, _)| !some.is_nan()) {
            assert_eq!(some, all);
        }
    }
    // no time at all is said to be too little
    let control = Control::default().time_limit(std::time::Duration::ZERO);
    let told = search.fit_with(&x, &data.codes[..], &FitRequest { control, ..FitRequest::default() }).unwrap_err();
    assert!(told.to_string().contains("time_limit"), "{told}");
}

#[test]
fn columns_without_spread_and_of_every_size() {
    let data = Data::new(60, 4, 2, 1.0, 73);
    let mut values = data.values.clone();
    for row in values.chunks_exact_mut(4) {
        row[1] = 5.0;
        row[2] *= 1e-200;
        row[3] *= 1e200;
    }
    let x = Dense::new(60, 4, values).unwrap();
    for map in [FeatureMap::Identity, FeatureMap::Squares] {
        let search = LqSearch::new(4, vec![0.5, 1.0, 2.0]).folds(3).base(Lq::new(1.0).feature_map(map));
        let found = search.fit(&x, &data.codes[..]).unwrap();
        assert!(found.tuned.cells.iter().all(|cell| cell.mean.is_finite()));
        assert!(found.tuned.model.decision_function(&x).unwrap().iter().all(|value| value.is_finite()));
        assert!(!found.tuned.model.selected().unwrap().contains(&1));
    }
}

/// The model is the solution that was judged, and not a lower one with other columns.
#[test]
fn the_model_is_what_was_judged() {
    for (n, d, k, cs) in [(40, 60, 2, vec![0.3, 10.0]), (50, 8, 3, vec![0.3, 10.0]), (100, 20, 2, vec![0.1, 1.0])] {
        let data = Data::new(n, d, k, 1.0, 31);
        let search = LqSearch::new(cs, vec![0.5]).standardize(false);
        let found = search.fit(&data.dense(), &data.codes[..]).unwrap();
        let model = &found.tuned.model;
        assert!(model.summary.objective <= found.point().objective * (1.0 + SAME));
        assert_eq!(model.selected().unwrap().len(), found.point().size);
        let weights = model.predictor.weights().unwrap();
        let largest = weights.iter().fold(0.0f64, |largest, w| largest.max(w.abs()));
        assert!(
            largest > 0.0 && weights.iter().zip(&found.point().weights).all(|(a, b)| (a - b).abs() < 0.02 * largest)
        );
    }
}

/// Costs scale the values of C that are tried, and change nothing else.
#[test]
fn values_of_c_know_the_costs() {
    for k in [2, 3] {
        let data = Data::new(60, 6, k, 1.0, 37);
        let prices = |by: f64| -> Vec<Vec<f64>> {
            let price = |row: usize, to: usize| if row == to { 0.0 } else { by * (1.0 + 0.5 * row as f64 + to as f64) };
            (0..k).map(|row| (0..k).map(|to| price(row, to)).collect()).collect()
        };
        let cs = |base: Lq| default_cs(&base, &data.dense(), &data.codes[..], None, 5).unwrap();
        let (once, often) = (cs(Lq::new(1.0).cost(prices(1.0))), cs(Lq::new(1.0).cost(prices(128.0))));
        assert!(
            once.iter().zip(&often).all(|(once, often)| relative(*once, 128.0 * often) < 1e-12),
            "{once:?} {often:?}"
        );
        let ones: Vec<Vec<f64>> = (0..k).map(|row| (0..k).map(|to| f64::from(u8::from(row != to))).collect()).collect();
        assert!(cs(Lq::new(1.0)).iter().zip(cs(Lq::new(1.0).cost(ones))).all(|(a, b)| relative(*a, b) < 1e-12));
        // the first variable comes in within the list
        let models = Lq::new(1.0).cost(prices(128.0)).path(&data.dense(), &data.codes[..], &often).unwrap();
        let sizes: Vec<usize> = models.iter().map(|model| model.selected().unwrap().len()).collect();
        assert!(sizes[0] <= 1 && sizes[4] > 1, "{sizes:?}");
    }
}

#[test]
fn the_papers_algorithm_has_no_path() {
    let data = Data::new(30, 3, 2, 1.0, 41);
    let base = Lq::new(1.0).q(0.5).solver("lqa");
    let refused =
        |error: Error| assert!(error.to_string().contains("solver") && error.to_string().contains("lqa"), "{error}");
    refused(base.path(&data.dense(), &data.codes[..], &[1.0]).unwrap_err());
    refused(LqSearch::new(vec![1.0], vec![0.5]).base(base).fit(&data.dense(), &data.codes[..]).unwrap_err());
}
