//! Rows in chunks that are hard: at kinks in great numbers, far from the others, with columns that no row of a class uses.

use crate::stream_data::*;
use outlast::model::StreamRequest;
use outlast::solver::stream::MOST_SENT;
use outlast::{Control, Estimator, Lq, Penalty, Status, Truncation};
use std::time::{Duration, Instant};

/// Relative difference allowed between objectives of convex problems.
const SAME: f64 = 1e-6;
/// Passes of a fit along the path of widths.
const MOST_PASSES: f64 = 300.0;

/// sum |w|^q + C times the hinge of Lee, Lin and Wahba, or the hinge of two classes, written out.
fn objective(data: &Data, model: &outlast::Model, c: f64, q: f64) -> f64 {
    let scores = model.decision_function(&data.dense()).unwrap();
    let m = scores.len() / data.rows();
    let cost = |(f, &code): (&[f64], &u32)| -> f64 {
        match m {
            1 => (1.0 - if code == 1 { f[0] } else { -f[0] }).max(0.0),
            _ => (0..m).filter(|j| *j != code as usize).map(|j| (1.0 + f[j]).max(0.0)).sum(),
        }
    };
    let loss: f64 = scores.chunks_exact(m).zip(&data.codes).map(cost).sum();
    weights(model).iter().map(|w| w.abs().powf(q)).sum::<f64>() + c * loss
}

/// Most functions are constant for all rows but a few, which then lie at a kink together.
#[test]
fn a_rare_class_of_which_nothing_is_learnt_leaves_all_rows_at_its_kink() {
    let mut data = data(60_000, 5, 3, 8);
    let mut count = 0;
    for code in &mut data.codes {
        count += usize::from(*code == 2);
        if *code == 2 && count > 30 {
            *code = count as u32 % 2;
        }
    }
    for (c, q) in [(1e-3, 1.0), (1e-2, 1.0), (1e-3, 1.5), (1e-3, 2.0)] {
        let method = Lq::new(c).q(q).tol(1e-6);
        let (found, wanted) = (data.stream(&method, &[17_000, 9_000], None), data.in_memory(&method, None));
        let told = &found.summary;
        println!("C {c} q {q}: {:e} {:?} {:e}", told.objective / wanted.summary.objective - 1.0, told.status, told.gap);
        assert_near(told.objective, objective(&data, &found, c, q), 1e-9);
        // the gap is a bound: the fit in memory is no lower than it allows
        assert!(wanted.summary.objective >= told.objective * (1.0 - told.gap) * (1.0 - 1e-7), "C {c} q {q}");
        assert!(told.objective <= wanted.summary.objective * (1.0 + SAME), "C {c} q {q}");
        assert!(told.status == Status::Converged && told.gap <= 1e-6, "C {c} q {q}: {:?} {:e}", told.status, told.gap);
    }
}

#[test]
fn gaps_of_absolute_values_are_bounds() {
    let data = data(50_000, 6, 2, 21);
    for c in [1e-4, 1e-2, 1.0] {
        let l1 = linear(c).penalty(Penalty::L1).truncation(Truncation::Off).tol(1e-6);
        let (found, wanted) = (data.stream(&l1, &[20_000], None), data.in_memory(&l1, None));
        assert!(found.summary.gap > 0.0 && found.summary.gap <= 1e-6, "{:e}", found.summary.gap);
        assert_near(found.summary.objective, wanted.summary.objective, SAME);
    }
}

/// Truncated losses of many rows with a penalty next to which C is large: what is left to choose is which rows are given up.
#[test]
fn sparse_penalties_of_truncated_losses_end_certified_and_no_higher_than_in_memory() {
    for (classes, cols, penalty) in [(2, 12, Penalty::L1), (2, 12, Penalty::Lq), (3, 6, Penalty::L1)] {
        let data = data(30_000, cols, classes, 90 + cols as u64);
        let method = linear(1.0).penalty(penalty).tol(1e-4);
        let (found, wanted) = (data.stream(&method, &[11_000, 0, 3], None), data.in_memory(&method, None));
        let (told, bound) = (&found.summary, wanted.summary.objective * (1.0 + 1e-4));
        println!("{penalty:?} {classes}: {:e} {:e}", told.objective / wanted.summary.objective - 1.0, told.gap);
        assert!(told.status == Status::Converged && told.gap <= 1e-4, "{:?} {:e}", told.status, told.gap);
        assert!(told.objective <= bound, "{penalty:?} {classes}: {} is above {bound}", told.objective);
        let power = |w: &f64| if penalty == Penalty::Lq { w.abs().powf(method.q) } else { w.abs() };
        let written = weights(&found).iter().map(power).sum::<f64>() + data.loss(&found, |_| 1.0, own);
        assert_near(told.objective, written, 1e-9);
        assert!(told.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", told.trace);
    }
}

/// Classes far apart and some wrong labels: few rows lie near a kink, and each of them is given up or not.
#[test]
fn rows_to_give_up_are_chosen_as_well_as_in_memory() {
    for (classes, seed) in [(2, 3), (2, 4), (3, 5), (4, 6)] {
        let (n, cols) = (30_000, 10);
        let mut uniform = random(seed);
        let mut normal = move || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let mut other = random(seed + 100);
        let centres: Vec<f64> = (0..classes * cols).map(|_| 2.0 * normal()).collect();
        let mut data = Data { cols, classes, x: Vec::new(), codes: Vec::new() };
        for _ in 0..n {
            let class = (other() * classes as f64) as usize;
            data.x.extend((0..cols).map(|column| (centres[class * cols + column] + normal()) as f32));
            data.codes.push(if other() < 0.05 { (other() * classes as f64) as u32 } else { class as u32 });
        }
        let method = linear(1.0).tol(1e-6);
        let (found, wanted) = (data.stream(&method, &[9000, 1], None), data.in_memory(&method, None));
        let (told, bound) = (&found.summary, wanted.summary.objective * (1.0 + 1e-4));
        println!("{classes}: {:e} {}", told.objective / wanted.summary.objective - 1.0, told.outliers);
        assert!(told.objective <= bound, "{classes} {seed}: {} is above {bound}", told.objective);
        assert_near(told.objective, data.objective(&found, |_| 1.0, own), 1e-9);
        assert!(told.outliers > 500 && told.status == Status::Converged, "{classes} {seed}: {:?}", told.status);
    }
}

/// Columns that are 0 in nearly all rows and large in the others: most rows are equal, and very many lie at kinks.
#[test]
fn columns_with_heavy_tails_are_certified() {
    for (classes, cols) in [(2, 12), (3, 20), (4, 8)] {
        let data = heavy(30_000, cols, classes, 3 + classes as u64);
        let plain = linear(1.0).truncation(Truncation::Off).tol(1e-4);
        let lq = |q: f64| Lq::new(1.0).q(q).tol(1e-4);
        let methods: [(&str, &dyn Estimator); 4] =
            [("l2", &plain), ("l1", &plain.clone().penalty(Penalty::L1)), ("q = 1", &lq(1.0)), ("q = 1.5", &lq(1.5))];
        for (name, method) in methods {
            let (found, wanted) = (data.stream(method, &[25_000, 1], None), data.in_memory(method, None));
            let (told, wanted) = (&found.summary, wanted.summary.objective);
            println!(
                "{classes} {name}: {:e} {:e} {:?}",
                told.objective / wanted - 1.0,
                told.gap,
                told.details.get("passes")
            );
            assert_eq!(told.solver, "linear-stream");
            let passes = told.details.get("passes").unwrap();
            assert!(passes <= MOST_PASSES, "{classes} {name}: {passes} passes");
            assert!(told.status == Status::Converged && told.gap <= 1e-4, "{classes} {name}: {:e}", told.gap);
            assert!(told.objective <= wanted * (1.0 + 1e-5), "{classes} {name}: {} is above {wanted}", told.objective);
            assert!(
                wanted >= told.objective * (1.0 - told.gap) * (1.0 - 1e-9),
                "{classes} {name}: the gap is no bound"
            );
        }
    }
}

/// Columns of which one value in a hundred is not 0, and exponential.
fn heavy(rows: usize, cols: usize, classes: usize, seed: u64) -> Data {
    let mut uniform = random(seed);
    let weights: Vec<f64> = (0..classes * cols).map(|_| 4.0 * uniform() - 2.0).collect();
    let mut data = Data { cols, classes, x: Vec::new(), codes: Vec::new() };
    for _ in 0..rows {
        let row: Vec<f64> =
            (0..cols).map(|_| if uniform() < 0.01 { -100.0 * (1.0 - uniform()).ln() } else { 0.0 }).collect();
        let score = |class: usize, noise: f64| -> f64 {
            noise + weights[class * cols..(class + 1) * cols].iter().zip(&row).map(|(w, x)| w * x).sum::<f64>() / 100.0
        };
        let scores: Vec<f64> = (0..classes).map(|class| score(class, uniform())).collect();
        let best = (0..classes).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap_or(0);
        data.codes.push(if uniform() < 0.1 { (uniform() * classes as f64) as u32 } else { best as u32 });
        data.x.extend(row.iter().map(|x| *x as f32));
    }
    data
}

/// A limit that passes while a fit with many ends looks for ways out: it ends soon, with an answer.
#[test]
fn ways_out_end_in_time() {
    let data = data(60_000, 4, 3, 60_001);
    for limit in [0.0, 0.2, 1.0] {
        let mut rows = data.parts(&[20_000], None);
        let control = Control::default().time_limit(Duration::from_secs_f64(limit));
        let classes = data.names();
        let request =
            StreamRequest { classes: &classes, feature_names: None, memory: MEMORY, sums: MOST_SENT, control };
        let from = Instant::now();
        let found = linear(1.0).fit_chunks(&mut rows, &request);
        let seconds = from.elapsed().as_secs_f64();
        match found {
            Ok(model) => {
                let told = &model.summary;
                println!("{limit}: {seconds} s, {:?}, {} outliers", told.status, told.outliers);
                let scores = model.decision_function(&data.dense()).unwrap();
                let is_beyond = |(f, code): (&[f64], &u32)| {
                    let others = (0..3).filter(|class| *class != *code as usize).map(|class| f[class]);
                    f[*code as usize] - others.fold(f64::NEG_INFINITY, f64::max) < told.truncation.unwrap()
                };
                let counted = scores.chunks_exact(3).zip(&data.codes).filter(|row| is_beyond(*row)).count();
                // single rows may lie on the edge
                assert!(told.outliers.abs_diff(counted as _) <= 5, "{} outliers, {counted} counted", told.outliers);
                assert!(told.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", told.trace);
                assert_near(told.objective, data.objective(&model, |_| 1.0, own), 1e-9);
            }
            Err(error) => assert!(limit == 0.0 && error.to_string().contains("time limit"), "{error}"),
        }
        assert!(seconds < limit + 10.0, "{seconds} s for {limit} s");
    }
}

/// Columns of few values: there are few different rows, each very many times.
#[test]
fn rows_that_repeat_themselves_are_certified() {
    let mut uniform = random(5);
    for classes in [2, 3] {
        let (n, cols) = (60_000, 5);
        let mut data = Data { cols, classes, x: Vec::new(), codes: Vec::new() };
        for _ in 0..n {
            let row: Vec<f32> = (0..cols).map(|_| f32::from(uniform() < 0.5)).collect();
            let score = f64::from(row[0] - row[1] + 0.5 * row[2]) + 2.0 * uniform() - 1.0;
            data.codes.push(if uniform() < 0.1 { classes as u32 - 1 } else { u32::from(score > 0.0) });
            data.x.extend(row);
        }
        for truncation in [Truncation::Off, Truncation::Auto] {
            for c in [1e-4, 1e-2] {
                let method = linear(c).truncation(truncation);
                let (found, wanted) = (data.stream(&method, &[25_000, 1], None), data.in_memory(&method, None));
                let told = &found.summary;
                assert!(told.status == Status::Converged && told.gap <= 1e-6, "{classes} {c}: {:e}", told.gap);
                assert!(told.objective <= wanted.summary.objective * (1.0 + SAME), "{classes} {truncation:?} {c}");
                assert_near(told.objective, data.objective(&found, |_| c, own), 1e-9);
            }
        }
    }
}

/// Two clusters far from nearly all rows, which no sample is likely to have: all depends on them, and the way there is long.
#[test]
fn clusters_far_away_are_reached() {
    let (n, few) = (120_000, 40);
    let mut uniform = random(77);
    let mut normal = move || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    let mut data = Data { cols: 1, classes: 2, x: Vec::new(), codes: Vec::new() };
    for row in 0..n {
        let (centre, code) = match row % (n / few) {
            7 => (1000.0, 1),
            11 => (985.0, 0),
            _ => (0.0, 0),
        };
        data.x.push((centre + normal()) as f32);
        data.codes.push(code);
    }
    for truncation in [Truncation::Off, Truncation::Auto] {
        let method = linear(1.0).truncation(truncation);
        let (found, wanted) = (data.stream(&method, &[50_000], None), data.in_memory(&method, None));
        println!("{truncation:?}: {} {}", found.summary.objective, wanted.summary.objective);
        assert!(found.summary.objective <= wanted.summary.objective * (1.0 + 1e-4), "{truncation:?}");
        // no row is wrong; the rows in memory go to another solver where the band does not see the clusters
        for told in [&found.summary, &wanted.summary] {
            assert!(told.objective < 0.1 && told.status == Status::Converged, "{truncation:?} {}", told.solver);
        }
    }
}
