//! The L_q machine as users meet it: paths, searches, costs, maps, truncation, and hostile input.

use crate::common::relative;
use crate::lq_data::{AGREEMENT, Data};
use outlast::data::Design;
use outlast::problem::LqProblem;
use outlast::solver::{Options, Solution, lq};
use outlast::{
    Control, Csr, Dense, Estimator, FeatureMap, FitRequest, Kernel, Lq, LqSearch, Model, Penalty, Status, Truncated,
    Truncation,
};

const CS: [f64; 7] = [0.3, 0.003, 0.01, 0.03, 0.1, 1.0, 10.0];

fn fit(data: &Data, lq: &Lq) -> Model {
    lq.fit(&data.dense(), &data.codes[..]).unwrap()
}

#[test]
fn a_path_is_what_separate_fits_find() {
    for (n, d, k) in [(60, 12, 2), (40, 60, 2), (50, 8, 3)] {
        let data = Data::new(n, d, k, 1.0, 31);
        for q in [1.0, 1.5, 2.0] {
            let base = Lq::new(1.0).q(q).tol(1e-8);
            let path = base.path(&data.dense(), &data.codes[..], &CS).unwrap();
            for (model, c) in path.iter().zip(CS) {
                let cold = fit(&data, &base.clone().c(c));
                assert_eq!(model.summary.c, c);
                assert_eq!(model.summary.status, Status::Converged, "q {q} C {c}: gap {}", model.summary.gap);
                assert!(relative(model.summary.objective, cold.summary.objective) < AGREEMENT, "q {q} C {c}");
            }
        }
        // below 1 only the starts differ
        let base = Lq::new(1.0).q(0.5);
        let path = base.path(&data.dense(), &data.codes[..], &CS).unwrap();
        for (model, c) in path.iter().zip(CS) {
            let cold = fit(&data, &base.clone().c(c));
            let (found, own) = (model.summary.objective, cold.summary.objective);
            assert!(found <= 1.25 * own, "{n} x {d} C {c}: {found} {own}");
            assert!(model.summary.trace.windows(2).all(|pair| pair[1] <= pair[0]));
        }
    }
}

/// Columns that are left out until they are needed change the way, and not the end.
#[test]
fn screening_changes_nothing() {
    for (n, d, k) in [(50, 80, 2), (40, 30, 3)] {
        let data = Data::new(n, d, k, 1.0, 41);
        let x = data.dense();
        let problem: LqProblem = data.problem(&x, 1.0, true);
        let options = Options { tolerance: 1e-8, ..Options::default() };
        let solve = |screening: bool| {
            lq::Path { cs: &CS, qs: &[1.0], screening, decisions: false }
                .solve(&problem, &options, &Control::default())
                .unwrap()
        };
        let (some, all) = (solve(true), solve(false));
        for (on, off) in some[0].iter().zip(&all[0]) {
            assert!(on.status == Status::Converged && off.status == Status::Converged);
            assert!(relative(on.objective, off.objective) < AGREEMENT);
        }
        // by another way: a switch that leaves no column out would come to the same bits
        let apart =
            |(on, off): (&Solution, &Solution)| on.expansion != off.expansion || on.iterations != off.iterations;
        assert!(some[0].iter().zip(&all[0]).any(apart), "{n} x {d}: no column was left out");
        assert!(solve(true)[0].iter().zip(&some[0]).all(|pair| !apart(pair)), "{n} x {d}");
    }
}

#[test]
fn squares_of_the_columns_are_columns() {
    let data = Data::new(60, 4, 2, 1.0, 71);
    let mut wide = Vec::new();
    for row in data.values.chunks_exact(4) {
        wide.extend_from_slice(row);
        wide.extend(row.iter().map(|x| x * x));
    }
    let wide = Dense::new(60, 8, wide).unwrap();
    for q in [0.5, 1.0, 1.5] {
        let by_hand = Lq::new(1.0).q(q).fit(&wide, &data.codes[..]).unwrap();
        for x in [&data.dense() as &dyn Design, &data.sparse()] {
            let mapped = Lq::new(1.0).q(q).feature_map(FeatureMap::Squares).fit(x, &data.codes[..]).unwrap();
            assert!(relative(mapped.summary.objective, by_hand.summary.objective) < AGREEMENT);
            assert_eq!(mapped.predictor.features, 4);
            assert_eq!(mapped.predict_codes(x).unwrap(), by_hand.predict_codes(&wide).unwrap());
            assert!(mapped.selected().unwrap().iter().all(|column| *column < 4));
        }
    }
    let model = Lq::new(1.0).feature_map(FeatureMap::Squares).fit(&data.dense(), &data.codes[..]).unwrap();
    let back = outlast::io::model_from_bytes(&outlast::io::model_to_bytes(&model).unwrap()).unwrap();
    assert_eq!(back.predictor, model.predictor);
    assert_eq!(back.decision_function(&data.dense()).unwrap(), model.decision_function(&data.dense()).unwrap());
}

/// A truncated loss with a penalty of exponent 1 is the l1 problem; without truncation, that of this machine.
#[test]
fn truncation_and_exponent_meet_in_one_loop() {
    for k in [2, 3] {
        let data = Data::new(60, 8, k, 0.5, 81);
        let x = data.dense();
        let truncated = Truncated::new(0.5).kernel(Kernel::Linear).penalty(Penalty::Lq);
        let l1 = truncated.clone().penalty(Penalty::L1).fit(&x, &data.codes[..]).unwrap();
        let one = truncated.clone().q(1.0).fit(&x, &data.codes[..]).unwrap();
        assert!(relative(one.summary.objective, l1.summary.objective) < AGREEMENT);
        for q in [0.5, 0.8] {
            let model = truncated.clone().q(q).fit(&x, &data.codes[..]).unwrap();
            assert!(model.summary.trace.windows(2).all(|pair| pair[1] <= pair[0]));
            let weights = model.predictor.weights().unwrap();
            let penalty: f64 = weights.iter().map(|w| w.abs().powf(q)).sum();
            assert!(penalty > 0.0 && penalty <= model.summary.objective);
            assert!(model.selected().unwrap().len() <= l1.selected().unwrap().len());
            if k == 2 {
                let plain = truncated.clone().q(q).truncation(Truncation::Off).fit(&x, &data.codes[..]).unwrap();
                let lq = fit(&data, &Lq::new(0.5).q(q));
                assert!(lq.summary.objective <= plain.summary.objective * (1.0 + 1e-6));
                assert!(plain.summary.objective <= 1.1 * lq.summary.objective);
            }
        }
    }
    assert!(Truncated::new(1.0).kernel(Kernel::Linear).penalty(Penalty::Lq).q(1.5).check().is_err());
    assert!(Truncated::new(1.0).penalty(Penalty::Lq).check().is_err(), "a kernel");
}

#[test]
fn costs_move_the_threshold_and_bad_ones_are_refused() {
    let data = Data::new(100, 3, 2, 1.0, 91);
    let plain = fit(&data, &Lq::new(1.0));
    let dear = fit(&data, &Lq::new(1.0).cost(vec![vec![0.0, 10.0], vec![1.0, 0.0]]));
    let ones = |model: &Model| model.predict_codes(&data.dense()).unwrap().iter().filter(|code| **code == 1).count();
    assert!(ones(&dear) < ones(&plain));
    assert_eq!(dear.summary.payoff().unwrap().0, "cost");
    let x = data.dense();
    for bad in [
        vec![vec![1.0, 1.0], vec![1.0, 0.0]],
        vec![vec![0.0, -1.0], vec![1.0, 0.0]],
        vec![vec![0.0, f64::NAN], vec![1.0, 0.0]],
        vec![vec![0.0, 1.0]],
        vec![vec![0.0, 1.0, 1.0], vec![1.0, 0.0, 1.0]],
        vec![vec![0.0, 0.0], vec![0.0, 0.0]],
    ] {
        assert!(Lq::new(1.0).cost(bad.clone()).fit(&x, &data.codes[..]).is_err(), "{bad:?}");
    }
    for q in [0.0, -1.0, 2.1, f64::NAN, f64::INFINITY] {
        assert!(Lq::new(1.0).q(q).fit(&x, &data.codes[..]).is_err(), "{q}");
    }
    assert!(Lq::new(1.0).kernel(Kernel::rbf(1.0)).check().unwrap_err().to_string().contains("rbf"));
    assert!(Lq::new(1.0).solver("magic").check().is_err());
    assert!(LqSearch::new(Vec::new(), vec![1.0]).check().is_err());
    assert!(LqSearch::new(0, vec![1.0]).check().is_err());
    assert!(LqSearch::new(vec![1.0], vec![3.0]).check().is_err());
    assert!(LqSearch::new(vec![1.0], vec![1.0]).folds(1).fit(&x, &data.codes[..]).is_err());
}

/// Constant and repeated columns, rows that say nothing, huge and tiny numbers: an answer, finite and certified, or a status.
#[test]
fn odd_data_are_answered() {
    let base = Data::new(30, 3, 2, 1.0, 101);
    let with = |of: &dyn Fn(usize, &[f64]) -> Vec<f64>| -> Vec<Vec<f64>> {
        base.values.chunks_exact(3).enumerate().map(|(row, x)| of(row, x)).collect()
    };
    let cases: Vec<(&str, Vec<Vec<f64>>)> = vec![
        ("constant", with(&|_, x| vec![x[0], 1.0, 1e6])),
        ("repeated", with(&|_, x| vec![x[0], x[0], x[1], x[0]])),
        ("zero", with(&|_, _| vec![0.0, 0.0])),
        ("huge", with(&|_, x| vec![1e100 * x[0], x[1]])),
        ("tiny", with(&|_, x| vec![1e-100 * x[0], 1e-5 * x[1]])),
        ("equal rows", with(&|row, _| vec![f64::from(row < 15)])),
    ];
    for (name, rows) in &cases {
        let d = rows[0].len();
        let x = Dense::new(30, d, rows.concat()).unwrap();
        for q in [0.4, 1.0, 1.5, 2.0] {
            for c in [1e-8, 1.0, 1e8] {
                for solver in ["auto", "lqa"] {
                    for classes in [2, 3] {
                        let codes: Vec<u32> = base
                            .codes
                            .iter()
                            .enumerate()
                            .map(|(row, code)| if classes == 3 && row % 3 == 0 { 2 } else { *code })
                            .collect();
                        let model = Lq::new(c).q(q).solver(solver).fit(&x, &codes[..]).unwrap();
                        let what = format!("{name} q {q} C {c} {solver} k {classes}");
                        let summary = &model.summary;
                        assert!(summary.objective.is_finite(), "{what}");
                        assert!(if solver == "lqa" { summary.gap.is_nan() } else { summary.gap >= 0.0 }, "{what}");
                        // with three functions and huge columns rounding may keep X'V from a certificate
                        let rounded = *name == "huge" && classes == 3 && q > 1.0;
                        if solver == "auto" && q >= 1.0 && !rounded {
                            let (status, gap) = (summary.status, summary.gap);
                            assert!(status == Status::Converged && gap <= 1e-6, "{what}: {status:?}, gap {gap}");
                        }
                        assert!(summary.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{what}: {:?}", summary.trace);
                        assert!(model.decision_function(&x).unwrap().iter().all(|f| f.is_finite()), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn repeated_columns_share_and_rows_are_weights() {
    let data = Data::new(40, 3, 2, 1.0, 111);
    let twice: Vec<f64> = data.values.chunks_exact(3).flat_map(|x| [x[0], x[1], x[2], x[2]]).collect();
    let twice = Dense::new(40, 4, twice).unwrap();
    // splitting a coefficient costs nothing for q = 1 and more for q < 1
    for q in [0.5, 1.0] {
        let plain = fit(&data, &Lq::new(1.0).q(q));
        let doubled = Lq::new(1.0).q(q).fit(&twice, &data.codes[..]).unwrap();
        assert!(relative(plain.summary.objective, doubled.summary.objective) < 1e-5, "q {q}");
    }
    let rows: Vec<[f64; 3]> = data.values.chunks_exact(3).map(|x| x.try_into().unwrap()).collect();
    let doubled: Vec<[f64; 3]> = rows.iter().chain(&rows).copied().collect();
    let codes: Vec<u32> = data.codes.iter().chain(&data.codes).copied().collect();
    for q in [0.5, 1.0, 1.5, 2.0] {
        let repeated = Lq::new(1.0).q(q).fit(&Dense::from_rows(&doubled), &codes[..]).unwrap();
        let weights = vec![2.0; 40];
        let request = FitRequest { sample_weight: Some(&weights), ..FitRequest::default() };
        let weighted = Lq::new(1.0).q(q).fit_with(&data.dense(), &data.codes[..], &request).unwrap();
        assert!(relative(repeated.summary.objective, weighted.summary.objective) < AGREEMENT, "q {q}");
    }
}

/// Equal rows become one, and count as often in the paper's start: its end is no lower on them either, and a row of weight 3 is three
/// rows to it.
#[test]
fn repeated_rows_hide_no_start() {
    for (k, seed) in [(2, 1), (2, 2), (2, 3), (3, 1), (3, 2)] {
        let data = Data::new(36, 5, k, 1.0, 700 + seed);
        let times: Vec<f64> = (0..36).map(|row| [1.0, 1.0, 5.0, 2.0][(row * row + row / 7) % 4]).collect();
        let written: Vec<usize> = (0..36).flat_map(|row| std::iter::repeat_n(row, times[row] as usize)).collect();
        let values: Vec<f64> = written.iter().flat_map(|row| &data.values[5 * row..5 * row + 5]).copied().collect();
        let codes: Vec<u32> = written.iter().map(|&row| data.codes[row]).collect();
        let x = Dense::new(written.len(), 5, values).unwrap();
        for (q, c) in [(0.3, 0.1), (0.5, 0.1), (0.7, 0.3)] {
            let lq = Lq::new(c).q(q);
            let paper = lq.clone().solver("lqa").fit(&x, &codes[..]).unwrap();
            let found = lq.fit(&x, &codes[..]).unwrap();
            let (a, b) = (found.summary.objective, paper.summary.objective);
            assert!(a <= b * (1.0 + 1e-9), "k {k}, seed {seed}, q {q}: {a} {b}");
            let request = FitRequest { sample_weight: Some(&times), ..FitRequest::default() };
            let weighted = lq.solver("lqa").fit_with(&data.dense(), &data.codes[..], &request).unwrap();
            let (one, other) = (&paper.summary.trace, &weighted.summary.trace);
            assert!(one.len() > 3 && one.len() == other.len());
            assert!(one.iter().zip(other).all(|(a, b)| relative(*a, *b) < 1e-9), "k {k}, seed {seed}, q {q}");
        }
    }
}

#[test]
fn many_sparse_columns_are_taken() {
    let (n, d) = (100, 50_000);
    let mut random = crate::common::Random(7);
    let (mut starts, mut columns, mut values, mut codes) = (vec![0], Vec::new(), Vec::new(), Vec::new());
    for row in 0..n {
        let code = (row % 2) as u32;
        codes.push(code);
        columns.push(0);
        values.push(if code == 1 { 1.0 } else { -1.0 } + 0.3 * random.normal());
        let mut rest: Vec<u32> = (0..20).map(|_| 1 + random.below(d - 1) as u32).collect();
        rest.sort_unstable();
        rest.dedup();
        values.extend(rest.iter().map(|_| random.normal()));
        columns.extend(rest);
        starts.push(values.len());
    }
    let x = Csr::new(n, d, starts, columns, values).unwrap();
    let model = Lq::new(0.3).q(0.5).fit(&x, &codes[..]).unwrap();
    assert_eq!(model.selected(), Some(vec![0]));
}

/// Where no column pays, the intercept is all there is, and it is the best one.
#[test]
fn nothing_selected_is_certified() {
    let mut random = crate::common::Random(5);
    for seed in 0..10 {
        let (n, d) = (105, 52);
        let factors: Vec<f64> = (0..n * 5).map(|_| random.normal()).collect();
        let loads: Vec<f64> = (0..5 * d).map(|_| random.normal()).collect();
        let entry = |at: usize| -> f64 { (0..5).map(|f| factors[at / d * 5 + f] * loads[f * d + at % d]).sum() };
        let values: Vec<f64> = (0..n * d).map(|at| entry(at) + 0.3 * random.normal()).collect();
        let codes: Vec<u32> = (0..n).map(|row| u32::from(values[row * d] + 2.0 * random.normal() > 0.0)).collect();
        let x = Dense::new(n, d, values).unwrap();
        let fewer = codes.iter().filter(|code| **code == 1).count().min(n - codes.iter().sum::<u32>() as usize);
        for (q, c) in [(0.1, 0.0107), (0.3, 0.003)] {
            let model = Lq::new(c).q(q).fit(&x, &codes[..]).unwrap();
            assert_eq!(model.summary.status, Status::Converged, "seed {seed} q {q}: gap {}", model.summary.gap);
            assert!(model.summary.objective <= 2.0 * c * fewer as f64 * (1.0 + AGREEMENT), "seed {seed} q {q}");
        }
    }
}

#[test]
fn what_is_refused_is_named() {
    let data = Data::new(30, 3, 2, 1.0, 151);
    let x = data.dense();
    let message = |lq: Lq, x: &dyn Design| lq.fit(x, &data.codes[..]).unwrap_err().to_string();
    assert!(message(Lq::new(1e250), &x).contains("C = "));
    assert!(message(Lq::new(1e150).cost(vec![vec![0.0, 1e100], vec![1.0, 0.0]]), &x).contains("costs"));
    assert!(Lq::new(1.0).path(&x, &data.codes[..], &[1.0, 1e250]).is_err());
    assert!(LqSearch::new(vec![1.0, 1e250], vec![1.0]).fit(&x, &data.codes[..]).is_err());
    let mut large = data.values.clone();
    large[3 * 4 + 1] = 1e300;
    let large = Dense::new(30, 3, large).unwrap();
    let told = message(Lq::new(1.0).feature_map(FeatureMap::Squares), &large);
    assert!(told.contains("row 4") && told.contains("column 1") && told.contains("square"), "{told}");
    // one row of a class is held out in one of the folds
    let rare: Vec<u32> = (0..30).map(|row| u32::from(row == 7)).collect();
    let told = LqSearch::new(vec![1.0], vec![1.0]).folds(3).fit(&x, &rare).unwrap_err().to_string();
    assert!(told.contains("of 3") && told.contains("class"), "{told}");
}

#[test]
fn the_steps_asked_for_are_the_most_taken() {
    let data = Data::new(60, 10, 2, 1.0, 161);
    for steps in [1, 2, 3] {
        let model = fit(&data, &Lq::new(1.0).q(0.5).max_iter(steps));
        assert!(model.summary.trace.len() <= steps + 1, "{:?}", model.summary.trace);
    }
}

/// More unknowns than are factored: conjugate gradients, and a gap that is honest whatever they reach.
#[test]
fn large_problems_are_solved_by_iterations() {
    let (n, d) = (7000, 6500);
    let mut random = crate::common::Random(9);
    let (mut starts, mut columns, mut values, mut codes) = (vec![0], Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        let mut places: Vec<u32> = (0..4).map(|_| random.below(d) as u32).collect();
        places.sort_unstable();
        places.dedup();
        let first = random.normal();
        values.extend(places.iter().enumerate().map(|(at, _)| if at == 0 { first } else { random.normal() }));
        codes.push(u32::from(first + 0.5 * random.normal() > 0.0));
        columns.extend(places);
        starts.push(values.len());
    }
    let x = Csr::new(n, d, starts, columns, values).unwrap();
    let model = Lq::new(0.3).q(1.5).tol(1e-3).fit(&x, &codes[..]).unwrap();
    assert_eq!(model.summary.status, Status::Converged, "gap {}", model.summary.gap);
}
