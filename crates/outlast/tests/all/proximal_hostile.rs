//! The l1 solver on problems that are extreme, odd or refused.

use crate::sparse_data::{Data, TOLERANCE, converged, independent, judge_many, selected};
use outlast::problem::{ManyClass, Norm};
use outlast::solver::{Options, Solution, proximal};
use outlast::{Control, KernelFunction, Loss, Status};
use std::time::{Duration, Instant};

/// Longest a case may take, in hardly optimised code on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Ends soon, with finite numbers that the judge confirms.
fn survives(data: &Data, what: &str) -> Vec<Solution> {
    let mut all = Vec::new();
    for loss in [Loss::hinge(), Loss::hinge().truncated_at(-1.0).unwrap(), Loss::logistic()] {
        for intercept in [true, false] {
            let start = Instant::now();
            let solution = data.solve(loss, intercept, 1e-6);
            println!("{what}: {} gap {:.1e} {:?}", solution.status, solution.gap, start.elapsed());
            assert!(start.elapsed() < PATIENCE, "{what}: {:?}", start.elapsed());
            assert!(solution.objective.is_finite(), "{what}");
            all.push(solution);
        }
    }
    all
}

#[test]
fn a_small_c_selects_nothing() {
    for k in [2, 3, 4] {
        let data = Data::new(60, 10, k, 1e-6, 59);
        let solution = data.solve(Loss::hinge(), true, TOLERANCE);
        converged(&solution);
        assert_eq!(selected(&solution), 0);
        let mut constant = Data::new(60, 1, k, 1e-6, 59);
        constant.codes = data.codes.clone();
        constant.values.fill(0.0);
        let (optimum, _) = independent(&constant, true);
        assert!((solution.objective - optimum).abs() <= 1e-6 * 60.0 * 1e-6, "{} {optimum}", solution.objective);
        if k == 2 {
            let ones = data.codes.iter().filter(|&&code| code == 1).count();
            assert_eq!(solution.intercept(), if 2 * ones > 60 { 1.0 } else { -1.0 });
        }
    }
}

#[test]
fn extreme_caps_and_separable_data() {
    for k in [2, 3] {
        for cap in [1e-10, 1e3, 1e10] {
            survives(&Data::new(60, 4, k, cap, 61), &format!("k {k} C {cap}"));
            let mut data = Data::new(40, 3, k, cap, 67);
            for row in 0..data.n {
                data.values[row * 3 + data.codes[row] as usize % 3] += 12.0;
            }
            let all = survives(&data, &format!("separable k {k} C {cap}"));
            converged(&all[0]);
            if cap > 1.0 {
                assert!(selected(&all[0]) > 0 && all[0].objective < 10.0, "{}", all[0].objective);
            }
        }
    }
}

#[test]
fn odd_columns_and_few_rows() {
    for k in [2, 3] {
        let mut data = Data::new(80, 7, k, 1.0, 71);
        for row in data.values.chunks_exact_mut(7) {
            row[3] = 2.5;
            row[4] = row[0];
            row[5] = 0.0;
            row[6] = -row[1];
        }
        for solution in survives(&data, "constant, repeated and empty columns") {
            converged(&solution);
        }
        for (n, d) in [(2, 1), (3, 5), (40, 1), (5, 60)] {
            if n >= k {
                for solution in survives(&Data::new(n, d, k, 1.0, 73), &format!("k {k}, {n} x {d}")) {
                    converged(&solution);
                }
            }
        }
        let mut data = Data::new(30, 3, k, 0.0, 79);
        assert!(survives(&data, "no weights").iter().all(|solution| solution.objective == 0.0));
        data.caps.fill(1.0);
        data.rates.fill(f64::INFINITY);
        assert!(survives(&data, "nothing may be selected").iter().all(|solution| selected(solution) == 0));
        data.rates.fill(0.0);
        survives(&data, "nothing is penalised");
    }
}

#[test]
fn limits_and_interrupts_are_honoured() {
    let data = Data::new(200, 50, 3, 1.0, 83);
    let x = data.dense();
    let problem = data.many(&x, &data.rates, Loss::hinge(), true);
    let stop = || true;
    let interrupted = Control::default().interrupt(&stop);
    let error = proximal::solve_many(&problem, &Options::default(), &interrupted).unwrap_err();
    assert!(matches!(error, outlast::Error::Interrupted));
    let late = Control::default().time_limit(Duration::ZERO);
    let solution = proximal::solve_many(&problem, &Options::default(), &late).unwrap();
    judge_many(&problem, &solution, f64::INFINITY);
    assert_eq!(solution.status, Status::TimeLimit);
}

#[test]
fn what_it_does_not_take_is_refused_by_name() {
    let data = Data::new(10, 2, 3, 1.0, 89);
    let x = data.dense();
    let squared = ManyClass { norm: Norm::Squared, ..data.many(&x, &data.rates, Loss::hinge(), true) };
    let error = proximal::solve_many(&squared, &Options::default(), &Control::default()).unwrap_err().to_string();
    assert!(error.contains("l1"), "{error}");
    let rbf = KernelFunction::Rbf { gamma: 1.0 };
    let kernel = ManyClass { kernel: &rbf, ..data.many(&x, &data.rates, Loss::hinge(), true) };
    let error = proximal::solve_many(&kernel, &Options::default(), &Control::default()).unwrap_err().to_string();
    assert!(error.contains("linear"), "{error}");
    let short = data.many(&x, &data.rates[1..], Loss::hinge(), true);
    let error = proximal::solve_many(&short, &Options::default(), &Control::default()).unwrap_err().to_string();
    assert!(error.contains("rates"), "{error}");
}
