//! The audit finds what was put in: flipped labels, conflicts, far rows; and estimates how much of it there is.

use crate::common::Random;
use outlast::select::audit::Reason;
use outlast::{Audit, AuditKernel, Control, Csr, Dense, Design, Error, Labels, Progress};
use std::sync::atomic::{AtomicUsize, Ordering};

const D: usize = 4;

/// Gaussian classes of variance 1 around given centres, with labels that follow a matrix of mistakes.
struct Drawn {
    x: Dense<'static>,
    truth: Vec<usize>,
    given: Vec<usize>,
    /// Chance that the label is wrong, in closed form from the densities and the matrix.
    oracle: Vec<f64>,
}

impl Drawn {
    /// `mistakes[true][given]` are chances.
    fn new(rows: usize, centres: &[[f64; D]], mistakes: &[Vec<f64>], seed: u64) -> Drawn {
        let mut random = Random(seed);
        let k = centres.len();
        let (mut values, mut truth, mut given, mut oracle) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for row in 0..rows {
            let class = row % k;
            let x: Vec<f64> = centres[class].iter().map(|centre| centre + random.normal()).collect();
            let mut share = random.unit();
            let label = (0..k)
                .find(|&label| {
                    share -= mistakes[class][label];
                    share < 0.0
                })
                .unwrap_or(class);
            let density = |class: usize| -> f64 {
                let distance: f64 = x.iter().zip(&centres[class]).map(|(x, c)| (x - c) * (x - c)).sum();
                (-0.5 * distance).exp() * mistakes[class][label]
            };
            let total: f64 = (0..k).map(density).sum();
            oracle.push(1.0 - density(label) / total);
            values.extend(x);
            truth.push(class);
            given.push(label);
        }
        Drawn { x: Dense::new(rows, D, values).unwrap(), truth, given, oracle }
    }

    fn wrong(&self) -> Vec<bool> {
        self.truth.iter().zip(&self.given).map(|(a, b)| a != b).collect()
    }
}

fn two_centres() -> [[f64; D]; 2] {
    [[-1.2, 0.0, 0.5, 0.0], [1.2, 0.0, -0.5, 0.0]]
}

fn three_centres() -> [[f64; D]; 3] {
    [[0.0, 2.2, 0.0, 0.0], [2.0, -1.2, 0.0, 0.0], [-2.0, -1.2, 0.0, 0.0]]
}

fn flips(k: usize, share: f64) -> Vec<Vec<f64>> {
    let off = share / (k - 1) as f64;
    (0..k).map(|a| (0..k).map(|b| if a == b { 1.0 - share } else { off }).collect()).collect()
}

/// Mean over wrong rows of the share of wrong rows among those ranked at least as high.
fn average_precision(scores: &[f64], wrong: &[bool]) -> f64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    let (mut hits, mut sum) = (0.0, 0.0);
    for (place, &row) in order.iter().enumerate().filter(|(_, row)| wrong[**row]) {
        let _ = row;
        hits += 1.0;
        sum += hits / (place + 1) as f64;
    }
    sum / hits
}

#[test]
fn flips_are_ranked_nearly_as_well_as_by_the_true_densities() {
    for (k, share, seed) in [(2, 0.1, 1), (2, 0.2, 2), (3, 0.15, 3)] {
        let drawn = match k {
            2 => Drawn::new(600, &two_centres(), &flips(2, share), seed),
            _ => Drawn::new(600, &three_centres(), &flips(3, share), seed),
        };
        let wrong = drawn.wrong();
        let report = Audit::default().run(&drawn.x, &drawn.given).unwrap();
        let (found, best) = (average_precision(&report.scores, &wrong), average_precision(&drawn.oracle, &wrong));
        assert!(found > best - 0.05, "{k} classes, {share}: {found} against {best} of the oracle");
        assert!(found > 4.0 * share, "{k} classes, {share}: {found} against {share} by chance");
        // most suspects with a wrong label are told their true class
        let right =
            report.suspects.iter().filter(|s| wrong[s.row] && s.suggested as usize == drawn.truth[s.row]).count();
        let caught = report.suspects.iter().filter(|s| wrong[s.row]).count();
        assert!(caught > 0 && right * 10 > caught * 9, "{right} of {caught}");
        assert!(report.suspects.windows(2).all(|pair| pair[0].score >= pair[1].score));
    }
}

#[test]
fn the_noise_matrix_is_near_the_truth() {
    // given class 0 is often truly class 1, nothing else is wrong
    let mistakes = [vec![1.0, 0.0, 0.0], vec![0.3, 0.7, 0.0], vec![0.0, 0.0, 1.0]];
    let far = three_centres().map(|centre| centre.map(|c| 1.7 * c));
    let drawn = Drawn::new(900, &far, &mistakes, 5);
    let report = Audit::default().run(&drawn.x, &drawn.given).unwrap();
    for given in 0..3 {
        let rows: Vec<usize> = (0..900).filter(|&row| drawn.given[row] == given).collect();
        for truth in 0..3 {
            let share = rows.iter().filter(|&&row| drawn.truth[row] == truth).count() as f64 / rows.len() as f64;
            let found = report.noise[given][truth];
            assert!((found - share).abs() < 0.05, "given {given}, true {truth}: {found} against {share}");
        }
        assert!((report.noise[given].iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
    let wrong = drawn.wrong().iter().filter(|wrong| **wrong).count() as f64 / 900.0;
    assert!((report.wrong_share - wrong).abs() < 0.03, "{} against {wrong}", report.wrong_share);
}

#[test]
fn clean_labels_stay_in_peace() {
    let far = two_centres().map(|centre| centre.map(|c| 4.0 * c));
    let drawn = Drawn::new(300, &far, &flips(2, 0.0), 8);
    let report = Audit::default().run(&drawn.x, &drawn.given).unwrap();
    let labels = report.suspects.iter().filter(|s| s.suggested != s.given).count();
    assert_eq!(labels, 0);
    assert!(report.wrong_share < 0.01, "{}", report.wrong_share);
}

/// Twice the same, with one thread as with two, and another seed is another split.
#[test]
fn the_same_seed_gives_the_same_scores() {
    let drawn = Drawn::new(150, &three_centres(), &flips(3, 0.1), 11);
    let run = |seed: u64, threads: usize| {
        Audit::default().repeats(2).seed(seed).threads(threads).run(&drawn.x, &drawn.given).unwrap().scores
    };
    let first = run(7, 1);
    assert_eq!(first, run(7, 1));
    let two = run(7, 2);
    assert!(first.iter().zip(&two).all(|(a, b)| (a - b).abs() < 1e-6));
    assert_ne!(first, run(8, 1));
}

#[test]
fn sparse_rows_are_audited_as_dense_ones() {
    let drawn = Drawn::new(120, &two_centres(), &flips(2, 0.1), 13);
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..120 {
        drawn.x.for_each(row, &mut |column, value| {
            columns.push(column as u32);
            values.push(value);
        });
        starts.push(values.len());
    }
    let sparse = Csr::new(120, D, starts, columns, values).unwrap();
    let audit = Audit::default().repeats(1).threads(1);
    let (a, b) = (audit.run(&drawn.x, &drawn.given).unwrap(), audit.run(&sparse, &drawn.given).unwrap());
    assert_eq!(a.scores, b.scores);
}

#[test]
fn conflicts_far_rows_and_small_classes_are_named() {
    let drawn = Drawn::new(200, &two_centres(), &flips(2, 0.0), 17);
    let mut values = drawn.x.values().to_vec();
    let mut labels: Vec<String> = drawn.given.iter().map(|label| format!("c{label}")).collect();
    // row 3 repeats row 0 with the other label, row 5 lies far out, rows 6 and 7 are alone in their class
    values.copy_within(0..D, 3 * D);
    labels[3] = "c1".to_string();
    labels[0] = "c0".to_string();
    values[5 * D..6 * D].fill(1e5);
    labels[6] = "rare".to_string();
    labels[7] = "rare".to_string();
    let x = Dense::new(200, D, values).unwrap();
    let report = Audit::default().repeats(1).run(&x, &labels).unwrap();
    assert_eq!(report.conflicts, [vec![0, 3]]);
    assert_eq!((0..200).filter(|&row| report.far[row].is_some()).collect::<Vec<_>>(), [5]);
    assert_eq!(report.small_classes, [2]);
    let reasons = |row: usize| &report.suspects.iter().find(|s| s.row == row).unwrap().reasons;
    assert!(reasons(0).contains(&Reason::Conflict { with: 3, rows: 2 }));
    assert!(reasons(5).iter().any(|reason| matches!(reason, Reason::Far { times } if *times > 100.0)));
    assert!(reasons(6).contains(&Reason::SmallClass { rows: 2 }));
    assert!(report.scores[0] >= 0.5 && report.scores[3] >= 0.5 && report.scores[5] >= 0.5);
    assert_eq!(report.scores[6], 0.5);
    let words: Vec<String> = report.suspects.iter().flat_map(|suspect| report.words(suspect)).collect();
    assert!(words.iter().any(|w| w == "same values as row 4, other label"), "{words:?}");
    assert!(words.iter().any(|w| w == "one of only 2 rows of its class"), "{words:?}");
}

#[test]
fn hostile_tables_are_audited_or_refused_by_name() {
    let y: Vec<usize> = (0..24).map(|row| row % 2).collect();
    let column = |value: fn(usize) -> f64| (0..24).map(|row| [value(row), 1.0]).collect::<Vec<[f64; 2]>>();
    for rows in [
        column(|_| 0.0),
        column(|row| if row == 3 { 1e300 } else { row as f64 }),
        column(|row| if row % 2 == 0 { 1e300 } else { -1e300 }),
        column(|row| 1e-300 * row as f64),
        column(|row| f64::MAX * if row % 3 == 0 { 1.0 } else { -1.0 }),
        column(|row| (row / 12) as f64),
    ] {
        for kernel in [AuditKernel::Both, AuditKernel::Rbf, AuditKernel::Linear] {
            let report = Audit::default().repeats(1).kernel(kernel).run(&Dense::from_rows(&rows), &y).unwrap();
            for values in [&report.scores, &report.confidence, &report.agreement] {
                assert!(values.iter().all(|value| (0.0..=1.0).contains(value)), "{rows:?}: {values:?}");
            }
            assert!(report.margins.iter().chain(report.noise.iter().flatten()).all(|value| value.is_finite()));
        }
    }
    let refused =
        |audit: Audit, rows: &[[f64; 1]], y: &[i32]| audit.run(&Dense::from_rows(rows), y).unwrap_err().to_string();
    let some: Vec<[f64; 1]> = (0..6).map(|row| [f64::from(row)]).collect();
    assert!(refused(Audit::default(), &some, &[1; 6]).contains("two classes"));
    assert!(refused(Audit::default(), &some, &[0, 0, 0, 0, 1, 1]).contains("two classes of 3 rows"));
    assert!(refused(Audit::default(), &some, &[0, 0, 0]).contains("labels"));
    assert!(refused(Audit::default(), &[[f64::NAN]; 6], &[0, 0, 0, 1, 1, 1]).contains("NaN"));
    assert!(refused(Audit::default().folds(1), &some, &[0, 0, 0, 1, 1, 1]).contains("folds"));
    assert!(refused(Audit::default().repeats(0), &some, &[0, 0, 0, 1, 1, 1]).contains("repeats"));
    assert!(refused(Audit::default().c(-1.0), &some, &[0, 0, 0, 1, 1, 1]).contains("C = -1"));
    assert!(refused(Audit::default().truncation(1.0), &some, &[0, 0, 0, 1, 1, 1]).contains("truncation"));
    // as few rows as can be
    let report = Audit::default().run(&Dense::from_rows(&some), &[0, 0, 0, 1, 1, 1]).unwrap();
    assert_eq!((report.folds, report.scores.len()), (5, 6));
    assert!(Audit::default().folds(100).run(&Dense::from_rows(&some), &[0, 0, 0, 1, 1, 1]).is_ok());
}

#[test]
fn many_classes_are_audited_against_the_rest() {
    let rows: Vec<[f64; 2]> = (0..160).map(|row| [f64::from(row / 4), f64::from(row % 4) / 10.0]).collect();
    let mut y: Vec<i32> = (0..160).map(|row| row / 4).collect();
    y[80] = 3;
    let report =
        Audit::default().repeats(1).kernel(AuditKernel::Rbf).c(10.0).run(&Dense::from_rows(&rows), &y).unwrap();
    let rank = report.scores.iter().filter(|score| **score > report.scores[80]).count();
    assert!(report.scores[80] > 0.5 && rank < 40, "{} at {rank}", report.scores[80]);
}

#[test]
fn progress_counts_to_the_end_and_an_interrupt_ends_it() {
    let drawn = Drawn::new(120, &three_centres(), &flips(3, 0.1), 19);
    let (most, told) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let watch = |progress: Progress| {
        assert_eq!(progress.stage, "audit");
        most.fetch_max(progress.step, Ordering::Relaxed);
        told.fetch_add(1, Ordering::Relaxed);
    };
    let audit = Audit::default().repeats(2);
    audit.run_with(&drawn.x, &drawn.given, Control::default().progress(&watch)).unwrap();
    let steps = audit.steps(&Labels::new(drawn.given.iter().copied()));
    // fits that turn out not to be needed are counted at once
    assert_eq!(most.load(Ordering::Relaxed), steps);
    assert!((1..=steps).contains(&told.load(Ordering::Relaxed)));
    let calls = AtomicUsize::new(0);
    let stop = || calls.fetch_add(1, Ordering::Relaxed) > 20;
    let outcome = audit.run_with(&drawn.x, &drawn.given, Control::default().interrupt(&stop));
    assert!(matches!(outcome, Err(Error::Interrupted)));
}
