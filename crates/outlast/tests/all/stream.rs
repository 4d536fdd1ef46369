//! Fits to rows in chunks, against fits to the same rows in memory and the objective written out.

use crate::stream_data::*;
use outlast::data::{Chunk, Chunks, Parts};
use outlast::io::{ReadOptions, Stream, StreamOptions, open_stream};
use outlast::model::{Cap, ClassWeight, StreamRequest};
use outlast::solver::stream::MOST_SENT;
use outlast::{Capped, Class, Control, Estimator, Lq, Model, Penalty, Status, Truncated, Truncation};

/// Relative difference allowed between objectives of convex problems, and of truncated ones, whose ends may differ.
const SAME: f64 = 1e-6;
const CLOSE: f64 = 1e-4;

/// Converged, its trace falling, its objective the one written out, and that of a fit in memory or lower.
#[track_caller]
fn check(data: &Data, method: &Truncated, tolerance: f64) -> Model {
    let model = data.stream(method, &[7001, 0, 12, 9000], None);
    let wanted = data.in_memory(method, None);
    let summary = &model.summary;
    assert_near(summary.objective, data.objective(&model, |_| summary.c, own), 1e-9);
    assert_eq!(summary.status, Status::Converged, "gap {:e}", summary.gap);
    assert!(summary.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", summary.trace);
    println!(
        "{} rows {} columns {} classes C {} {:?}",
        data.rows(),
        data.cols,
        data.classes,
        summary.c,
        method.truncation
    );
    assert!(
        summary.objective <= wanted.summary.objective * (1.0 + tolerance),
        "{} is above {}",
        summary.objective,
        wanted.summary.objective
    );
    if method.truncation == Truncation::Off {
        assert_near(summary.objective, wanted.summary.objective, tolerance);
    }
    println!(
        "{} passes, gap {:.1e}, {} against {}",
        summary.details.get("passes").unwrap(),
        summary.gap,
        summary.objective,
        wanted.summary.objective
    );
    model
}

#[test]
fn two_classes_plain_and_truncated() {
    for (rows, cols, c) in [(80_000, 5, 1.0), (50_000, 12, 0.01), (60_000, 3, 100.0)] {
        let data = data(rows, cols, 2, rows as u64);
        check(&data, &linear(c).truncation(Truncation::Off), SAME);
        let model = check(&data, &linear(c), CLOSE);
        assert!(model.summary.outliers > 0);
        check(&data, &linear(c).truncation(0.0), CLOSE);
    }
}

#[test]
fn many_classes_plain_and_truncated() {
    for (rows, cols, classes, c) in [(60_000, 4, 3, 1.0), (40_000, 6, 5, 0.1)] {
        let data = data(rows, cols, classes, rows as u64 + 1);
        // the last digits of many classes are beyond the interior point
        let method = linear(c).tol(1e-7);
        check(&data, &method.clone().truncation(Truncation::Off), SAME);
        let model = check(&data, &method, CLOSE);
        assert!(model.predictor.intercepts.iter().sum::<f64>().abs() < 1e-8);
    }
}

#[test]
fn few_rows_are_fitted_as_in_memory() {
    let data = data(3000, 4, 2, 17);
    let (found, wanted) = (data.stream(&linear(1.0), &[700, 0, 1000], None), data.in_memory(&linear(1.0), None));
    assert_eq!(found.summary.objective, wanted.summary.objective);
    assert_eq!(found.summary.details.get("passes"), Some(1.0));
    assert!(found.training.is_none());
}

/// Not above the fit in memory, and equal to it where the problem is convex; the objective is that of the weights.
#[track_caller]
fn check_other(data: &Data, method: &dyn Estimator, convex: bool, objective: impl Fn(&Model) -> f64) -> Model {
    let model = data.stream(method, &[7001, 0, 12, 9000], None);
    let wanted = data.in_memory(method, None);
    let summary = &model.summary;
    println!(
        "{} {} passes, gap {:.1e}, {} against {}",
        summary.method,
        summary.details.get("passes").unwrap(),
        summary.gap,
        summary.objective,
        wanted.summary.objective
    );
    assert_eq!(summary.solver, "linear-stream");
    assert_eq!(summary.status, Status::Converged, "gap {:e}", summary.gap);
    assert!(summary.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", summary.trace);
    assert_near(summary.objective, objective(&model), 1e-9);
    assert!(
        summary.objective <= wanted.summary.objective * (1.0 + CLOSE),
        "{} is above {}",
        summary.objective,
        wanted.summary.objective
    );
    if convex {
        assert_near(summary.objective, wanted.summary.objective, CLOSE);
    }
    model
}

#[test]
fn capped_losses() {
    for (classes, power, cap) in
        [(2, 2.0, 4.0), (2, 1.0, 2.0), (2, 1.5, f64::INFINITY), (3, 2.0, 5.0), (3, 1.0, 2.5), (2, 0.7, 2.0)]
    {
        let data = data(30_000, 4, classes, 40 + classes as u64);
        let method = Capped::new(0.1).power(power).cap(cap);
        let written = |model: &Model| {
            let scores = model.decision_function(&data.dense()).unwrap();
            let m = scores.len() / data.rows();
            let mut total = 0.5 * weights(model).iter().map(|w| w * w).sum::<f64>();
            for (f, code) in scores.chunks_exact(m).zip(&data.codes) {
                let own = |j: usize| if *code as usize == if m == 1 { 1 } else { j } { 1.0 } else { -1.0 };
                let g: f64 = f.iter().enumerate().map(|(j, f)| (1.0 - own(j) * f).max(0.0).powi(2)).sum();
                total += 0.1 * g.powf(0.5 * power).min(cap);
            }
            total
        };
        let convex = cap.is_infinite() && power >= 1.0;
        let model = check_other(&data, &method, convex, written);
        assert!(cap.is_infinite() || model.summary.outliers > 0);
    }
}

#[test]
fn other_penalties() {
    for (classes, q) in [(2, 1.0), (2, 0.5), (2, 1.5), (3, 1.0), (3, 0.5)] {
        let data = data(30_000, 6, classes, 50 + classes as u64);
        let method = Lq::new(0.001).q(q).tol(1e-4);
        let written = |model: &Model| {
            let scores = model.decision_function(&data.dense()).unwrap();
            let m = scores.len() / data.rows();
            let mut total = weights(model).iter().map(|w| w.abs().powf(q)).sum::<f64>();
            for (f, code) in scores.chunks_exact(m).zip(&data.codes) {
                total += 0.001
                    * match m {
                        1 => (1.0 - f[0] * if *code == 1 { 1.0 } else { -1.0 }).max(0.0),
                        _ => (0..m).filter(|j| *j != *code as usize).map(|j| (1.0 + f[j]).max(0.0)).sum::<f64>(),
                    };
            }
            total
        };
        let model = check_other(&data, &method, q >= 1.0, written);
        for column in 0..if classes > 2 { 6 } else { 0 } {
            let sum: f64 = weights(&model)[column..].iter().step_by(6).sum();
            assert!(sum.abs() < 1e-9, "{sum}");
        }
    }
    for penalty in [Penalty::L1, Penalty::AdaptiveL1, Penalty::Lq] {
        for (classes, truncation) in [(2, Truncation::Off), (2, Truncation::Auto), (3, Truncation::Auto)] {
            let data = data(24_000, 5, classes, 60 + classes as u64);
            let method = linear(0.002).penalty(penalty).truncation(truncation).tol(1e-4);
            let found = data.stream(&method, &[5000], None);
            let wanted = data.in_memory(&method, None);
            println!(
                "{penalty:?} {classes} {truncation:?}: {} against {}",
                found.summary.objective, wanted.summary.objective
            );
            assert_eq!(found.summary.status, Status::Converged, "gap {:e}", found.summary.gap);
            let bound = match penalty {
                // the rates come from a fit of their own, which in memory may be another one: both models at the rates of the chunks
                Penalty::AdaptiveL1 if truncation == Truncation::Auto => {
                    let pilot = data.stream(&linear(0.002).truncation(truncation).tol(1e-4), &[5000], None);
                    let penalty = |model: &Model| -> f64 {
                        weights(model).iter().zip(weights(&pilot)).map(|(w, at)| (w / at).abs()).sum()
                    };
                    let loss = |model: &Model| data.loss(model, |_| 0.002, own);
                    assert_near(found.summary.objective, penalty(&found) + loss(&found), 1e-9);
                    penalty(&wanted) + loss(&wanted)
                }
                _ => wanted.summary.objective,
            };
            assert!(found.summary.objective <= bound * (1.0 + CLOSE), "{bound}");
            if penalty == Penalty::L1 && truncation == Truncation::Off {
                assert_near(found.summary.objective, wanted.summary.objective, CLOSE);
                assert_eq!(found.selected(), wanted.selected());
            }
        }
    }
}

#[test]
fn without_intercept() {
    let data = data(30_000, 5, 2, 5);
    let model = check(&data, &linear(1.0).fit_intercept(false), CLOSE);
    assert_eq!(model.predictor.intercepts, [0.0]);
}

#[test]
fn how_rows_are_cut_does_not_matter() {
    let data = data(20_000, 4, 2, 11);
    let whole = data.stream(&linear(1.0), &[], None).summary.objective;
    for sizes in [&[10_000][..], &[1, 0, 0, 7_000, 3], &[5_000, 5_000, 5_000], &[999; 16]] {
        assert_near(data.stream(&linear(1.0), sizes, None).summary.objective, whole, SAME);
    }
}

#[test]
fn weights_classes_and_utilities_count_as_in_memory() {
    let data = data(24_000, 4, 2, 21);
    let mut uniform = random(3);
    let weights: Vec<f64> = (0..data.rows()).map(|_| (4.0 * uniform()).floor()).collect();
    let method = linear(1.0).class_weight(ClassWeight::Given(vec![1.0, 2.5])).truncation(Truncation::Off);
    let (found, wanted) = (data.stream(&method, &[5000], Some(&weights)), data.in_memory(&method, Some(&weights)));
    assert_near(found.summary.objective, wanted.summary.objective, SAME);
    let caps = |row: usize| weights[row] * if data.codes[row] == 1 { 2.5 } else { 1.0 };
    assert_near(found.summary.objective, data.objective(&found, caps, own), 1e-9);
    // a row of weight 2 is two rows
    let mut twice = Data { x: Vec::new(), codes: Vec::new(), ..data };
    for (row, weight) in weights.iter().enumerate() {
        for _ in 0..*weight as usize {
            twice.x.extend_from_slice(&data.x[row * 4..(row + 1) * 4]);
            twice.codes.push(data.codes[row]);
        }
    }
    assert_near(twice.stream(&method, &[5000], None).summary.objective, found.summary.objective, SAME);
    let balanced = linear(0.5).class_weight(ClassWeight::Balanced);
    let (found, wanted) = (data.stream(&balanced, &[5000], None), data.in_memory(&balanced, None));
    assert_eq!(found.summary.class_weight, wanted.summary.class_weight);
    assert_near(found.summary.objective, wanted.summary.objective, CLOSE);
    for classes in [2, 3] {
        let data = self::data(24_000, 4, classes, 31);
        let utility: Vec<Vec<f64>> =
            (0..classes).map(|a| (0..classes).map(|b| if a == b { 2.0 } else { 0.3 * b as f64 }).collect()).collect();
        let worth = utility.clone();
        let method = linear(1.0).utility(utility).truncation(Truncation::Off);
        let (found, wanted) = (data.stream(&method, &[5000], None), data.in_memory(&method, None));
        assert_near(found.summary.objective, wanted.summary.objective, SAME);
        let factors = |code: u32, class: u32| worth[code as usize][class as usize];
        assert_near(found.summary.objective, data.objective(&found, |_| 1.0, factors), 1e-9);
    }
}

#[test]
fn what_chunks_cannot_do_is_refused_by_name() {
    let data = data(50, 2, 2, 1);
    let refusal = |method: &Truncated| {
        let classes = data.names();
        let request = StreamRequest {
            classes: &classes,
            feature_names: None,
            memory: MEMORY,
            sums: MOST_SENT,
            control: Control::default(),
        };
        method.fit_chunks(&mut data.parts(&[], None), &request).unwrap_err().to_string()
    };
    assert!(refusal(&Truncated::new(1.0)).contains("kernel"));
    assert!(refusal(&linear(1.0).loss(outlast::Loss::logistic())).contains("loss"));
    assert!(refusal(&linear(-1.0)).contains("C"));
    // what is needed without any matrix is named
    let classes: Vec<Class> = (0..90).map(Class::Int).collect();
    let memory = 1 << 24;
    let request =
        StreamRequest { classes: &classes, feature_names: None, memory, sums: MOST_SENT, control: Control::default() };
    let refused = linear(1.0).fit_chunks(&mut Parts::new(4000, Vec::new()), &request).unwrap_err().to_string();
    assert!(refused.contains("memory") && refused.contains("4000 columns and 90 classes"), "{refused}");
}

#[test]
fn hostile_rows_end_with_an_answer() {
    let constant = Data {
        cols: 2,
        classes: 2,
        x: vec![1.0; 2 * 12_000],
        codes: (0..12_000).map(|k| u32::from(k % 3 == 0)).collect(),
    };
    let separable = Data {
        cols: 1,
        classes: 2,
        x: (0..12_000).map(|k| k as f32).collect(),
        codes: (0..12_000).map(|k| u32::from(k >= 6000)).collect(),
    };
    let mut single = data(12_000, 2, 2, 7);
    single.codes.iter_mut().enumerate().for_each(|(row, code)| *code = u32::from(row == 77));
    let mut tiny = data(12_000, 2, 2, 8);
    tiny.x.iter_mut().for_each(|x| *x *= 1e-30);
    let mut huge = data(12_000, 2, 2, 8);
    huge.x.iter_mut().for_each(|x| *x *= 1e30);
    for data in [&constant, &separable, &single, &tiny, &huge] {
        for c in [1e-6, 1.0, 1e10] {
            for method in [linear(c), linear(c).truncation(Truncation::Off)] {
                let model = data.stream(&method, &[100, 2000], None);
                let summary = &model.summary;
                assert!(summary.objective.is_finite() && summary.gap.is_finite(), "{summary:?}");
                let wanted = data.in_memory(&method, None).summary.objective;
                assert!(
                    summary.objective <= wanted * (1.0 + 1e-3) + 1e-9,
                    "{} is above {wanted} at C = {c}",
                    summary.objective
                );
            }
        }
    }
}

/// With a limit of no numbers at all every table is a wide one.
fn check_wide(data: &Data, method: &dyn Estimator, solver: &str, tolerance: f64) -> Model {
    let found = stream(method, &mut data.parts(&[7001, 0, 12, 9000], None), &data.names(), 0);
    let wanted = data.in_memory(method, None);
    let (own, memory) = (&found.summary, &wanted.summary);
    let passes = own.details.get("passes").unwrap();
    println!("{solver} {passes} passes, gap {:.1e}, {} against {}", own.gap, own.objective, memory.objective);
    assert_eq!(own.solver, solver);
    assert_eq!(own.status, Status::Converged, "gap {:e}", own.gap);
    assert!(own.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", own.trace);
    assert!(own.objective <= memory.objective * (1.0 + tolerance), "{} is above {}", own.objective, memory.objective);
    found
}

#[test]
fn many_columns_by_products() {
    for (classes, truncation) in
        [(2, Truncation::Off), (2, Truncation::Auto), (3, Truncation::Off), (3, Truncation::Auto)]
    {
        let data = data(30_000, 12, classes, 70 + classes as u64);
        let method = linear(0.01).truncation(truncation).tol(1e-4);
        // truncated losses of three classes end in another minimum
        let tolerance = if classes == 3 && truncation == Truncation::Auto { 3.0 * CLOSE } else { CLOSE };
        let model = check_wide(&data, &method, "linear-stream-cg", tolerance);
        assert_near(model.summary.objective, data.objective(&model, |_| 0.01, own), 1e-9);
        assert_eq!(model.summary.outliers > 0, truncation == Truncation::Auto);
    }
    let four = data(24_000, 10, 2, 77);
    check_wide(
        &four,
        &linear(0.01).fit_intercept(false).truncation(Truncation::Off).tol(1e-4),
        "linear-stream-cg",
        CLOSE,
    );
    for (classes, power, cap) in [(2, 2.0, 4.0), (3, 2.0, 5.0), (2, 1.5, f64::INFINITY), (3, 1.5, 4.0)] {
        let data = data(24_000, 8, classes, 80 + classes as u64);
        check_wide(&data, &Capped::new(0.1).power(power).cap(cap), "linear-stream-cg", CLOSE);
    }
    for classes in [2, 3] {
        let data = data(24_000, 8, classes, 90 + classes as u64);
        check_wide(&data, &Lq::new(0.001).q(1.5).tol(1e-4), "linear-stream-cg", CLOSE);
    }
}

#[test]
fn many_columns_by_those_in_use() {
    for (classes, q) in [(2, 1.0), (3, 1.0), (2, 0.5), (3, 0.5)] {
        // most columns are noise
        let mut data = data(24_000, 4, classes, 100 + classes as u64);
        let mut uniform = random(7);
        let noise = |x: &[f32], uniform: &mut dyn FnMut() -> f64| {
            x.iter().copied().chain((0..16).map(|_| 4.0 * uniform() as f32 - 2.0)).collect::<Vec<f32>>()
        };
        data.x = data.x.chunks_exact(4).flat_map(|row| noise(row, &mut uniform)).collect();
        data.cols = 20;
        let method = Lq::new(0.001).q(q).tol(1e-4);
        let found = check_wide(&data, &method, "linear-stream-columns", CLOSE);
        let wanted = data.in_memory(&method, None);
        assert_eq!(found.selected(), wanted.selected(), "{classes} classes, q = {q}");
        assert!(found.selected().is_some_and(|used| used.len() < 20));
    }
    let data = data(24_000, 8, 2, 110);
    for penalty in [Penalty::L1, Penalty::AdaptiveL1] {
        let method = linear(0.002).penalty(penalty).truncation(Truncation::Off).tol(1e-4);
        check_wide(&data, &method, "linear-stream-columns", CLOSE);
    }
}

/// Noise, but for a tenth of the columns at most.
fn noisy(rows: usize, cols: usize) -> Data {
    let mut data = data(rows, 1, 2, 120);
    let mut uniform = random(8);
    let mut row = |code: u32| {
        let mut noise = (0..cols).map(|_| (2.0 * uniform() - 1.0) as f32).collect::<Vec<f32>>();
        noise[..20].iter_mut().for_each(|x| *x += if code == 1 { 0.3 } else { -0.3 });
        noise
    };
    data.x = data.codes.iter().flat_map(|code| row(*code)).collect();
    data.cols = cols;
    data
}

#[test]
fn hundreds_of_columns_by_products() {
    check_wide(&noisy(20_000, 300), &linear(1e-3).tol(1e-3), "linear-stream-cg", 1e-3);
}

#[test]
fn a_table_too_wide_for_matrices_is_solved_without() {
    // more rows than a sample has; with so small a C next to nothing is learnt, and that in no time
    let data = noisy(2_600, 2_100);
    let method = linear(1e-9).tol(1e-3);
    let found = data.stream(&method, &[1500, 0, 700], None);
    assert_eq!(found.summary.solver, "linear-stream-cg");
    assert_eq!(found.summary.status, Status::Converged, "gap {:e}", found.summary.gap);
    assert_near(found.summary.objective, data.in_memory(&method, None).summary.objective, CLOSE);
}

/// The key by which rows are drawn, SplitMix64 of their number, for the seed 0.
fn key(row: usize) -> u64 {
    let mut z = (row as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The last class has 30 rows, of the largest keys: no sample that is drawn evenly has one.
fn with_a_rare_class(classes: usize) -> Data {
    let mut data = data(30_000, 4, classes, 71 + classes as u64);
    let mut order: Vec<usize> = (0..data.rows()).collect();
    order.sort_unstable_by_key(|row| std::cmp::Reverse(key(*row)));
    let rare = classes as u32 - 1;
    data.codes.iter_mut().filter(|code| **code == rare).for_each(|code| *code = 0);
    for &row in &order[..30] {
        data.codes[row] = rare;
        data.x[4 * row] = 14.0 + data.x[4 * row] / 8.0;
        data.x[4 * row + 1] = -9.0 + data.x[4 * row + 1] / 8.0;
    }
    data
}

#[test]
fn a_class_that_the_sample_lacks_is_not_lost() {
    let sizes = [&[7001, 0, 12, 9000][..], &[15_000]];
    for classes in [2, 3] {
        let data = with_a_rare_class(classes);
        let lq = Lq::new(0.1).q(0.5).tol(1e-4);
        let truncated = linear(0.1).penalty(Penalty::Lq).q(0.5).tol(1e-4);
        let plain = linear(0.1).truncation(Truncation::Off);
        let methods = [&lq as &dyn Estimator, &linear(0.1), &plain, &truncated];
        // both at once for three classes is a long fit, and one of `other_penalties`
        for method in &methods[..if classes == 2 { 4 } else { 3 }] {
            let wanted = data.in_memory(*method, None).summary.objective;
            let found = sizes.map(|sizes| data.stream(*method, sizes, None));
            let at = found.each_ref().map(|model| model.summary.objective);
            println!("{classes} classes, {}: {at:?} against {wanted}", found[0].summary.method);
            assert!(weights(&found[0]).iter().any(|w| *w != 0.0), "nothing was learnt");
            // powers below 1 and truncated losses of three classes have many ends
            let many = found[0].summary.details.get("q").is_some() || found[0].summary.penalty == "lq";
            let several = classes == 3 && found[0].summary.truncation.is_some();
            assert!(at[0] <= wanted * (1.0 + CLOSE), "{} is above {wanted}", at[0]);
            assert_near(at[1], at[0], if many || several { CLOSE } else { SAME });
        }
    }
    // wrong labels enough for the rule to have something to cap
    let mut data = with_a_rare_class(3);
    data.codes.iter_mut().step_by(5).filter(|code| **code < 2).for_each(|code| *code = 1 - *code);
    let method = Capped::new(0.1).power(2.0).cap(Cap::Auto);
    let found = data.stream(&method, sizes[0], None);
    let cap = found.summary.details.get("cap").expect("a cap by a rule is a number");
    let on_all = data.in_memory(&method, None).summary.details.get("cap").unwrap();
    let wanted = data.in_memory(&Capped::new(0.1).power(2.0).cap(cap), None).summary.objective;
    println!("cap {cap} on the sample, {on_all} on all rows; {} against {wanted}", found.summary.objective);
    assert_near(cap, on_all, 0.1);
    assert!(found.summary.objective <= wanted * (1.0 + CLOSE), "{} is above {wanted}", found.summary.objective);
}

#[test]
fn rare_rows_of_few_weights_are_found() {
    let mut data = data(20_000, 3, 2, 9);
    data.codes.iter_mut().enumerate().for_each(|(row, code)| *code = u32::from(row % 4 == 0));
    data.x.chunks_exact_mut(3).step_by(4).for_each(|x| x[0] += 9.0);
    // of 5000 rows of a class three have a weight, those of the largest keys
    let mut own: Vec<usize> = (0..data.rows()).step_by(4).collect();
    own.sort_unstable_by_key(|row| std::cmp::Reverse(key(*row)));
    let weights: Vec<f64> =
        (0..data.rows()).map(|row| f64::from(u8::from(row % 4 > 0 || own[..3].contains(&row)))).collect();
    let method = Lq::new(0.5).q(0.5).tol(1e-4);
    let found = data.stream(&method, &[5000], Some(&weights)).summary.objective;
    let wanted = data.in_memory(&method, Some(&weights)).summary.objective;
    assert!(found <= wanted * (1.0 + CLOSE), "{found} is above {wanted}");
}

#[test]
fn too_many_classes_are_refused() {
    let data = Data {
        cols: 1,
        classes: 1001,
        x: (0..2002).map(|row| row as f32).collect(),
        codes: (0..2002).map(|row| row % 1001).collect(),
    };
    let classes = data.names();
    let (memory, control) = (MEMORY, Control::default());
    let request = StreamRequest { classes: &classes, feature_names: None, memory, sums: MOST_SENT, control };
    for method in [&linear(1.0) as &dyn Estimator, &Lq::new(1.0), &Capped::new(1.0)] {
        // nothing is asked of the rows
        let refused = method.fit_chunks(&mut Parts::new(1, Vec::new()), &request).unwrap_err().to_string();
        assert!(refused.contains("1001 distinct values") && refused.contains("a number to predict"), "{refused}");
    }
}

#[test]
fn a_value_that_is_too_large_is_named_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a.csv", "b.csv"].map(|name| folder.path().join(name));
    std::fs::write(&a, "age,label\n1,0\n2,1\n").unwrap();
    std::fs::write(&b, "age,label\n3,0\n1e300,1\n").unwrap();
    let options = StreamOptions { memory: 64, cache: None, shift: false };
    let refused = open_stream(&[a, b], &ReadOptions::default(), &options, &Control::default()).err().unwrap();
    let refused = refused.to_string();
    assert!(refused.contains("b.csv: row 2, column \"age\": 1e300 is too large"), "{refused}");
}

/// Where the fit in memory would take more than there is, rows that were held go to disk, and are the same.
#[test]
fn held_rows_go_to_disk_where_the_method_takes_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    let value = |row: usize| 1e6 + (row * 7919 % 101) as f64 / 8.0;
    let text: String = (0..20_000).map(|row| format!("{},{}\n", value(row), ["b", "a"][row % 2])).collect();
    std::fs::write(&path, text).unwrap();
    let options = StreamOptions { memory: 1 << 24, cache: None, shift: true };
    let open =
        || open_stream(std::slice::from_ref(&path), &ReadOptions::default(), &options, &Control::default()).unwrap();
    assert!(matches!(open().within(&linear(1.0), &options).unwrap(), Stream::Whole(_)));
    let Stream::Cached { mut rows, classes, notes, .. } = open().within(&Lq::new(1.0).q(0.5), &options).unwrap() else {
        panic!("they do not fit")
    };
    assert_eq!((classes, notes.len()), (vec!["a".into(), "b".into()], 0));
    let (shift, mut chunk, mut row) = (rows.shift()[0], Chunk::default(), 0);
    rows.rewind().unwrap();
    while rows.next(&mut chunk).unwrap() {
        for (x, code) in chunk.x.iter().zip(&chunk.codes) {
            assert!((f64::from(*x) + shift - value(row)).abs() < 1e-5 && *code == 1 - row as u32 % 2, "{row}");
            row += 1;
        }
    }
    assert_eq!(row, 20_000);
}

/// The rows of a file, with what was taken off put back, and what was noted.
fn read_back(path: &std::path::Path, shift: bool) -> (Vec<f64>, Vec<String>) {
    let options = StreamOptions { memory: 1 << 20, cache: None, shift };
    let opened = open_stream(&[path.to_path_buf()], &ReadOptions::default(), &options, &Control::default()).unwrap();
    let Stream::Cached { mut rows, notes, .. } = opened else { panic!("the rows do not fit") };
    let shift = [rows.shift(), &[0.0; 40][..]].concat();
    let (mut values, mut chunk) = (Vec::new(), Chunk::default());
    rows.rewind().unwrap();
    while rows.next(&mut chunk).unwrap() {
        values.extend(chunk.x.iter().enumerate().map(|(at, x)| f64::from(*x) + shift[at % 40]));
    }
    (values, notes)
}

#[test]
fn a_column_that_moves_away_from_0_keeps_its_digits() {
    use std::fmt::Write;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("moves.csv");
    let mut uniform = random(5);
    let level = |row: usize| if row < 27_000 { 0.0 } else { 1e8 };
    let values: Vec<f64> = (0..90_000).map(|row| level(row) + (1000.0 * uniform()).round() / 1000.0).collect();
    let mut text = String::new();
    for (row, value) in values.iter().enumerate() {
        writeln!(text, "{value:.3}{},{}", ",0".repeat(39), row % 2).unwrap();
    }
    std::fs::write(&path, text).unwrap();
    let (found, notes) = read_back(&path, true);
    assert_eq!(found.len(), 40 * values.len());
    let error = |row: usize| (found[40 * row] - values[row]).abs();
    let worst = (27_000..values.len()).map(error).fold(0.0, f64::max);
    assert!(worst < 1e-6, "rows at 1e8 are off by {worst}");
    // what is at 0 can't be kept as well, and that is said
    assert!(notes.iter().any(|note| note.contains("column 1") && note.contains("32 bits")), "{notes:?}");
    // without an intercept nothing can be taken off
    let (_, notes) = read_back(&path, false);
    assert!(notes.iter().any(|note| note.contains("column 1")), "{notes:?}");
}
