//! The capped machine: against Clarabel, brute force over the rows given up, itself in other forms, and the identities of its
//! problem.

mod common;

use common::{Data, Random, clarabel_dual, kernel_matrix, relative};
use outlast::problem::concave::{self, Robust};
use outlast::problem::{Coded, CodedCandidate};
use outlast::solver::reweighted::{self, CapRule, Found, Matrix, Settings};
use outlast::solver::{Options, Status};
use outlast::{Capped, Control, Csr, Dense, Design, Kernel, KernelFunction};

const TOLERANCE: f64 = 1e-10;
const AGREES: f64 = 1e-8;
const SAME_FORM: f64 = 1e-10;

fn lp(power: f64, cap: f64, functions: usize) -> Robust {
    Robust::new(concave::from_name("lp").unwrap(), power, cap, functions)
}

fn problem<'a>(
    x: &'a dyn Design,
    codes: &'a [u32],
    functions: usize,
    caps: &'a [f64],
    loss: &'a Robust,
    kernel: &'a KernelFunction,
) -> Coded<'a> {
    Coded { x, codes, functions, caps, loss, kernel, intercept: true }
}

fn solve(problem: &Coded, settings: &Settings) -> Found {
    let options = Options { tolerance: TOLERANCE, ..Options::default() };
    let found = reweighted::solve(problem, settings, &options, &Control::default()).unwrap();
    let loss = problem.loss.with_cap(found.cap);
    judged(&Coded { loss: &loss, ..*problem }, &found);
    found
}

/// What the solver says is what the judge computes from the data.
fn judged(problem: &Coded, found: &Found) {
    let solution = &found.solution;
    let candidate = CodedCandidate {
        expansion: &solution.expansion,
        weights: solution.weights.as_deref(),
        intercepts: &solution.intercepts,
    };
    let value = problem.objective(&candidate);
    assert!(relative(solution.objective, value) < 1e-9, "{} {value}", solution.objective);
    assert!(solution.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", solution.trace);
    assert_eq!(solution.trace.last(), Some(&solution.objective));
    assert!(solution.gap.is_finite());
    let m = problem.functions;
    for (row, f) in solution.decision.chunks_exact(m).enumerate() {
        assert_eq!(solution.truncated[row], problem.loss.gives_up(problem.convex_loss(row, f)), "row {row}");
    }
}

fn codes(data: &Data) -> Vec<u32> {
    data.signs.iter().map(|&sign| u32::from(sign > 0.0)).collect()
}

/// Three clouds with some labels wrong.
fn three(rows: usize, cols: usize, seed: u64) -> (Dense<'static>, Vec<u32>) {
    let mut random = Random(seed);
    let (mut values, mut codes) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let class = row % 3;
        values.extend((0..cols).map(|column| random.normal() + if column == class { 2.0 } else { 0.0 }));
        codes.push(if random.unit() < 0.1 { random.below(3) } else { class } as u32);
    }
    (Dense::new(rows, cols, values).unwrap(), codes)
}

/// min 1/2 |f|^2 + sum c [1 - y f]_+^2 by its dual: K + diag(1 / 2c), y beta >= 0, sum beta = 0.
fn clarabel_squared(kernel: &[f64], signs: &[f64], caps: &[f64]) -> f64 {
    let n = signs.len();
    let mut shifted = kernel.to_vec();
    (0..n).filter(|&row| caps[row] > 0.0).for_each(|row| shifted[row * n + row] += 0.5 / caps[row]);
    let far = |row: usize| if caps[row] > 0.0 { 300.0 } else { 0.0 };
    let lower: Vec<f64> = (0..n).map(|row| if signs[row] > 0.0 { 0.0 } else { -far(row) }).collect();
    let upper: Vec<f64> = (0..n).map(|row| if signs[row] > 0.0 { far(row) } else { 0.0 }).collect();
    -clarabel_dual(&shifted, signs, &lower, &upper, true)
}

#[test]
fn without_a_cap_the_square_is_clarabels() {
    let data = Data::noisy(60, 3, 0.1, 1).weighted(2);
    let caps: Vec<f64> = data.weights.iter().map(|weight| 0.7 * weight).collect();
    let x = data.dense();
    for kernel in [KernelFunction::Linear, KernelFunction::Rbf { gamma: 0.3 }] {
        let loss = lp(2.0, f64::INFINITY, 1);
        let own = codes(&data);
        let found = solve(&problem(&x, &own, 1, &caps, &loss, &kernel), &Settings::default());
        let judge = clarabel_squared(&kernel_matrix(&kernel, &x), &data.signs, &caps);
        assert!(relative(found.solution.objective, judge) < AGREES, "{} {judge}", found.solution.objective);
        assert!(found.solution.gap <= TOLERANCE && found.solution.status.is_converged());
    }
    let (x, codes) = three(60, 4, 3);
    for kernel in [KernelFunction::Linear, KernelFunction::Rbf { gamma: 0.2 }] {
        let (loss, caps) = (lp(2.0, f64::INFINITY, 3), vec![0.4; 60]);
        let found = solve(&problem(&x, &codes, 3, &caps, &loss, &kernel), &Settings::default());
        let matrix = kernel_matrix(&kernel, &x);
        let judge: f64 = (0..3)
            .map(|class| {
                let signs: Vec<f64> = codes.iter().map(|&code| if code == class { 1.0 } else { -1.0 }).collect();
                clarabel_squared(&matrix, &signs, &caps)
            })
            .sum();
        assert!(relative(found.solution.objective, judge) < AGREES, "{} {judge}", found.solution.objective);
    }
}

/// The minimiser (w, b) of 1/2 |w|^2 + sum over a set of rows of (y - w'x - b)^2, two columns, by elimination.
fn quadratic(x: &Dense, signs: &[f64], set: u32) -> [f64; 3] {
    let mut m = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]];
    for row in (0..signs.len()).filter(|row| set >> row & 1 == 1) {
        let v = [x.row(row)[0], x.row(row)[1], 1.0];
        for i in 0..3 {
            (0..3).for_each(|j| m[i][j] += 2.0 * v[i] * v[j]);
            m[i][3] += 2.0 * v[i] * signs[row];
        }
    }
    for k in 0..3 {
        let below: Vec<usize> = (0..3).filter(|&i| i != k).collect();
        for i in below {
            let factor = m[i][k] / m[k][k];
            (k..4).for_each(|j| m[i][j] -= factor * m[k][j]);
        }
    }
    [m[0][3] / m[0][0], m[1][3] / m[1][1], m[2][3] / m[2][2]]
}

/// For p = 2 the global minimiser minimises the quadratic of its own active rows. So the best value over the minimisers of all sets
/// of rows is the global optimum.
#[test]
fn brute_force_over_the_active_rows() {
    let mut hits = 0;
    for seed in 0..20 {
        let data = Data::noisy(9, 2, 0.25, 100 + seed);
        let (x, own, caps, cap) = (data.dense(), codes(&data), vec![1.0; 9], 1.5);
        let loss = lp(2.0, cap, 1);
        let problem = problem(&x, &own, 1, &caps, &loss, &KernelFunction::Linear);
        let value = |theta: [f64; 3]| {
            problem.objective(&CodedCandidate { expansion: &[], weights: Some(&theta[..2]), intercepts: &theta[2..] })
        };
        // without active rows w = 0, and b fits the rows of one class
        let flat = value([0.0, 0.0, 1.0]).min(value([0.0, 0.0, -1.0]));
        let best = (1..512).map(|set| value(quadratic(&x, &data.signs, set))).fold(flat, f64::min);
        let found = solve(&problem, &Settings::default()).solution;
        assert!(found.objective >= best * (1.0 - 1e-9), "seed {seed}: {} below {best}", found.objective);
        let active = |row: &usize| !found.truncated[*row] && data.signs[*row] * found.decision[*row] < 1.0;
        let set = (0..9).filter(active).fold(0, |set, row| set | 1 << row);
        let own = value(quadratic(&x, &data.signs, set));
        assert!(relative(found.objective, own) < 1e-9 || relative(found.objective, flat) < 1e-9, "seed {seed}");
        hits += usize::from(relative(found.objective, best) < 1e-9);
    }
    assert!(hits >= 15, "{hits} of 20 are globally optimal");
}

#[test]
fn both_matrices_give_the_same_model() {
    for (rows, cols) in [(80, 5), (30, 60)] {
        let data = Data::noisy(rows, cols, 0.15, 7).weighted(3);
        let (x, own) = (data.dense(), codes(&data));
        for power in [2.0, 1.5] {
            let loss = lp(power, 3.0, 1);
            let problem = problem(&x, &own, 1, &data.weights, &loss, &KernelFunction::Linear);
            let of = |matrix| solve(&problem, &Settings { matrix, portfolio: false, ..Settings::default() }).solution;
            let (one, two) = (of(Matrix::Columns), of(Matrix::Rows));
            assert!(relative(one.objective, two.objective) < SAME_FORM, "{} {}", one.objective, two.objective);
            let largest = one.decision.iter().fold(0.0f64, |most, f| most.max(f.abs()));
            let same = one.decision.iter().zip(&two.decision).all(|(a, b)| (a - b).abs() < 1e-6 * largest);
            assert!(same, "{rows} x {cols}, p = {power}");
        }
    }
}

/// P_multi(C 2^(1 - p/2), 2^(p/2) cap) = 2 P_binary(C, cap) with f_1 = -f_0.
#[test]
fn two_functions_for_two_classes_are_twice_the_one() {
    let data = Data::noisy(70, 3, 0.15, 11);
    let (x, own) = (data.dense(), codes(&data));
    for power in [0.5, 1.0, 1.5, 2.0f64] {
        let cap = 1.7;
        let one = lp(power, cap, 1);
        let caps = vec![0.5; 70];
        let single = solve(&problem(&x, &own, 1, &caps, &one, &KernelFunction::Linear), &Settings::default());
        let two = lp(power, 2f64.powf(0.5 * power) * cap, 2);
        let scaled = vec![0.5 * 2f64.powf(1.0 - 0.5 * power); 70];
        let double = problem(&x, &own, 2, &scaled, &two, &KernelFunction::Linear);
        // the same function in the other form has twice the value
        let w = single.solution.weights.clone().unwrap();
        let both: Vec<f64> = w.iter().map(|w| -w).chain(w.iter().copied()).collect();
        let b = single.solution.intercepts[0];
        let n = own.len();
        let candidate = CodedCandidate { expansion: &vec![0.0; 2 * n], weights: Some(&both), intercepts: &[-b, b] };
        assert!(relative(double.objective(&candidate), 2.0 * single.solution.objective) < 1e-9, "p = {power}");
        let found = solve(&double, &Settings::default());
        // p < 2 ends at a floor above 0, so the last digits differ
        let accuracy = if power == 2.0 { 1e-9 } else { 2e-2 };
        assert!(
            relative(found.solution.objective, 2.0 * single.solution.objective) < accuracy,
            "p = {power}: {} {}",
            found.solution.objective,
            2.0 * single.solution.objective
        );
    }
}

#[test]
fn exact_is_never_worse_than_alternating() {
    let mut better = 0;
    for seed in 0..10 {
        let data = Data::noisy(80, 4, 0.2, 500 + seed);
        let (x2, own) = (data.dense(), codes(&data));
        let (x3, third) = three(60, 4, 900 + seed);
        for power in [0.7, 1.0, 2.0] {
            for (x, codes, functions) in [(&x2, &own, 1), (&x3, &third, 3)] {
                let (loss, caps) = (lp(power, 1.5, functions), vec![1.0; x.rows()]);
                let problem = problem(x, codes, functions, &caps, &loss, &KernelFunction::Linear);
                let options = Options { max_steps: 5000, ..Options::default() };
                let alternating = Settings { alternating: true, ..Settings::default() };
                let slow = reweighted::solve(&problem, &alternating, &options, &Control::default()).unwrap();
                judged(&problem, &slow);
                let exact = solve(&problem, &Settings::default());
                let (a, b) = (exact.solution.objective, slow.solution.objective);
                assert!(a <= b * (1.0 + 1e-6), "seed {seed} p {power} k {functions}: {a} {b}");
                better += usize::from(a < b * (1.0 - 1e-4));
            }
        }
    }
    assert!(better > 0);
}

#[test]
fn sparse_rows_and_doubled_rows_change_nothing() {
    let data = Data::noisy(50, 4, 0.2, 21);
    let (x, own) = (data.dense(), codes(&data));
    let columns: Vec<u32> = (0..50).flat_map(|_| 0..4).collect();
    let sparse =
        Csr::new(50, 4, (0..=50).map(|row| 4 * row).collect::<Vec<usize>>(), columns, data.values.clone()).unwrap();
    let twice: Vec<f64> = data.values.chunks(4).flat_map(|row| row.iter().chain(row).copied()).collect();
    let twice = Dense::new(100, 4, twice).unwrap();
    let twice_codes: Vec<u32> = own.iter().flat_map(|&code| [code, code]).collect();
    for kernel in [KernelFunction::Linear, KernelFunction::Rbf { gamma: 0.4 }] {
        for power in [1.0, 2.0] {
            let loss = lp(power, f64::INFINITY, 1);
            let settings = Settings { cap: CapRule::Beyond(0.1), ..Settings::default() };
            let (ones, twos, once) = (vec![1.0; 50], vec![2.0; 50], vec![1.0; 100]);
            let dense = solve(&problem(&x, &own, 1, &ones, &loss, &kernel), &settings);
            let other = solve(&problem(&sparse, &own, 1, &ones, &loss, &kernel), &settings);
            assert!(relative(dense.solution.objective, other.solution.objective) < 1e-8);
            assert!(dense.cap.is_finite() && relative(dense.cap, other.cap) < 1e-6);
            let heavy = solve(&problem(&x, &own, 1, &twos, &loss, &kernel), &settings);
            let doubled = solve(&problem(&twice, &twice_codes, 1, &once, &loss, &kernel), &settings);
            assert!(relative(heavy.solution.objective, doubled.solution.objective) < 1e-8, "p = {power}");
        }
    }
}

#[test]
fn every_loss_every_power_and_cap_goes_down() {
    let data = Data::noisy(60, 3, 0.2, 31);
    let own = codes(&data);
    let x2 = data.dense();
    let (x3, third) = three(60, 3, 32);
    for form in concave::ALL {
        for power in if form.has_power() { &[0.5, 1.0, 1.3, 2.0][..] } else { &[1.0] } {
            for cap in [CapRule::Fixed, CapRule::Beyond(0.15)] {
                for kernel in [KernelFunction::Linear, KernelFunction::Rbf { gamma: 0.3 }] {
                    for (x, codes, functions) in [(&x2, &own, 1), (&x3, &third, 3)] {
                        let loss = Robust::new(*form, *power, 1.2, functions);
                        let caps = vec![1.0; 60];
                        let problem = problem(x, codes, functions, &caps, &loss, &kernel);
                        let options = Options { tolerance: 1e-8, max_steps: 500, ..Options::default() };
                        let settings = Settings { cap, ..Settings::default() };
                        let found = reweighted::solve(&problem, &settings, &options, &Control::default()).unwrap();
                        let what = format!("{} p {power} {cap:?} k {functions} {}", form.name(), kernel.name());
                        assert!(
                            found.solution.status.is_converged(),
                            "{what}: {} {}",
                            found.solution.status,
                            found.solution.gap
                        );
                        let loss = loss.with_cap(found.cap);
                        judged(&Coded { loss: &loss, ..problem }, &found);
                        assert!(found.solution.decision.iter().any(|f| f.abs() > 0.1), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_cap_that_gives_up_every_row_keeps_the_last_model() {
    let data = Data::noisy(40, 2, 0.3, 41);
    let labels = data.labels();
    // C so small that every row is inside the margin by a lot
    let model = Capped::new(1e-6).power(2.0).cap(1e-3).fit(&data.dense(), &labels).unwrap();
    assert_eq!(model.summary.status, Status::AllCapped);
    assert!(model.predictor.weights().unwrap().iter().any(|w| *w != 0.0));
    assert_eq!(model.summary.outliers, 40);
}

#[test]
fn bad_parameters_are_named() {
    let data = Data::noisy(20, 2, 0.1, 51);
    let (x, y) = (data.dense(), data.labels());
    let refused = |method: Capped, name: &str| {
        let error = method.fit(&x, &y).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    };
    for power in [0.0, -1.0, 2.1, f64::NAN, f64::INFINITY] {
        refused(Capped::new(1.0).power(power), "p = ");
    }
    for cap in [0.0, -1.0, f64::NAN] {
        refused(Capped::new(1.0).cap(cap), "cap = ");
    }
    for share in [-0.1, 1.0, f64::NAN] {
        refused(Capped::new(1.0).cap_fraction(share), "cap_fraction");
    }
    refused(Capped::new(1.0).solver("newton"), "solver");
    refused(Capped::new(1.0).loss("huber"), "loss");
    refused(Capped::new(1.0).loss("logistic").solver("alternating"), "solver");
    refused(Capped::new(0.0), "C");
}

#[test]
fn hostile_data_end_in_a_model() {
    let mut random = Random(61);
    let n = 30;
    let y: Vec<i32> = (0..n).map(|row| i32::from(row % 2 == 0)).collect();
    let plain: Vec<f64> = (0..2 * n).map(|_| random.normal()).collect();
    for factor in [1e-300, 1e-150, 1e-5, 1.0, 1e5, 1e150, 1e300] {
        for c in [1e-10, 1.0, 1e10] {
            for power in [0.5, 1.0, 2.0] {
                let x = Dense::new(n, 2, plain.iter().map(|x| x * factor).collect::<Vec<f64>>()).unwrap();
                let model = Capped::new(c).power(power).fit(&x, &y).unwrap();
                let what = format!("{factor:e} {c:e} {power}");
                assert!(model.summary.objective.is_finite() && !model.summary.gap.is_nan(), "{what}");
                assert!(model.decision_function(&x).unwrap().iter().all(|f| !f.is_nan()), "{what}");
            }
        }
    }
    // constant columns, duplicate rows, a class of one row, fewer rows than classes' worth of columns
    let same = Dense::new(6, 2, vec![1.0; 12]).unwrap();
    for y in [[0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 1], [0, 1, 2, 2, 2, 2]] {
        for power in [0.5, 1.0, 2.0] {
            for kernel in [Kernel::Linear, Kernel::rbf(1.0)] {
                let model = Capped::new(1.0).power(power).kernel(kernel).fit(&same, &y).unwrap();
                assert!(model.summary.objective.is_finite());
            }
        }
    }
}
