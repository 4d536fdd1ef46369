//! The capped machine: against Clarabel, brute force over the rows given up, itself in other forms, and the identities of its
//! problem.

use crate::common::{Data, Random, clarabel_dual, kernel_matrix, relative};
use outlast::model::{Cap, Estimator};
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

/// d x d and n x n: the same objective, and the same functions.
#[test]
fn both_matrices_give_the_same_model() {
    for (rows, cols) in [(80, 5), (30, 60)] {
        let data = Data::noisy(rows, cols, 0.15, 7).weighted(3);
        let (x2, own) = (data.dense(), codes(&data));
        let (x3, third) = three(rows, cols, 8);
        for (x, codes, functions) in [(&x2, &own, 1), (&x3, &third, 3)] {
            for (power, cap) in [(2.0, f64::INFINITY), (2.0, 3.0), (1.5, 3.0)] {
                let loss = lp(power, cap, functions);
                let problem = problem(x, codes, functions, &data.weights, &loss, &KernelFunction::Linear);
                let of =
                    |matrix| solve(&problem, &Settings { matrix, portfolio: false, ..Settings::default() }).solution;
                let (one, two) = (of(Matrix::Columns), of(Matrix::Rows));
                assert!(one.weights.is_some() && two.weights.is_none());
                assert!(relative(one.objective, two.objective) < SAME_FORM, "{} {}", one.objective, two.objective);
                let largest = one.decision.iter().fold(0.0f64, |most, f| most.max(f.abs()));
                let apart = one.decision.iter().zip(&two.decision).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
                // with p < 2 weights reach 1e5, and the systems' condition with them
                let accuracy = if power == 2.0 { SAME_FORM } else { 1e-6 };
                assert!(apart < accuracy * largest, "{rows} x {cols}, p = {power}, k = {functions}: {apart:e}");
            }
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
        // p < 2 starts differ in the least squares' scale, and may end in other minima
        let accuracy = if power == 2.0 { 1e-9 } else { 2e-2 };
        assert!(
            relative(found.solution.objective, 2.0 * single.solution.objective) < accuracy,
            "p = {power}: {} {}",
            found.solution.objective,
            2.0 * single.solution.objective
        );
    }
}

/// The same without a cap, where p >= 1 is convex. p < 2 ends at a floor above 0 and a decrease of 1e-7.
#[test]
fn without_a_cap_two_functions_are_twice_the_one() {
    let data = Data::noisy(70, 3, 0.15, 12);
    let (x, own) = (data.dense(), codes(&data));
    for (power, accuracy) in [(2.0, AGREES), (1.5, 1e-5), (1.0, 1e-4)] {
        let (one, two) = (lp(power, f64::INFINITY, 1), lp(power, f64::INFINITY, 2));
        let (caps, scaled) = (vec![0.5; 70], vec![0.5 * 2f64.powf(1.0 - 0.5 * power); 70]);
        let single = solve(&problem(&x, &own, 1, &caps, &one, &KernelFunction::Linear), &Settings::default()).solution;
        let double =
            solve(&problem(&x, &own, 2, &scaled, &two, &KernelFunction::Linear), &Settings::default()).solution;
        let apart = relative(double.objective, 2.0 * single.objective);
        assert!(apart < accuracy, "p = {power}: {apart:e}");
    }
}

/// Both solvers on the same problem: the exact one ends no higher.
fn never_worse(problem: &Coded, tolerance: f64, what: &str) -> bool {
    let options = Options { max_steps: 5000, ..Options::default() };
    let alternating = Settings { alternating: true, ..Settings::default() };
    let slow = reweighted::solve(problem, &alternating, &options, &Control::default()).unwrap();
    judged(problem, &slow);
    let options = Options { tolerance, ..Options::default() };
    let exact = reweighted::solve(problem, &Settings::default(), &options, &Control::default()).unwrap();
    judged(problem, &exact);
    let (a, b) = (exact.solution.objective, slow.solution.objective);
    assert!(a <= b * (1.0 + 1e-6), "{what}: {a} {b}, {:e}", a / b - 1.0);
    a < b * (1.0 - 1e-4)
}

#[test]
fn exact_is_never_worse_than_alternating() {
    let mut better = 0;
    for seed in 0..20 {
        let data = Data::noisy(80, 4, 0.2, 500 + seed);
        let (x2, own) = (data.dense(), codes(&data));
        let (x3, third) = three(60, 4, 900 + seed);
        for power in [0.7, 1.0, 2.0] {
            for (x, codes, functions) in [(&x2, &own, 1), (&x3, &third, 3)] {
                let (loss, caps) = (lp(power, 1.5, functions), vec![1.0; x.rows()]);
                let problem = problem(x, codes, functions, &caps, &loss, &KernelFunction::Linear);
                let what = format!("seed {seed} p {power} k {functions}");
                better += usize::from(never_worse(&problem, TOLERANCE, &what));
            }
        }
    }
    assert!(better > 0);
}

/// More rows than every start is tried on: a sample of them finds where to begin. A part of the rows lies far out with any label.
#[test]
fn exact_is_never_worse_than_alternating_on_more_rows() {
    let (n, d) = (13_000, 40);
    let mut data = Data::noisy(n, d, 0.15, 700);
    data.values[..n / 20 * d].iter_mut().for_each(|x| *x *= 4.0);
    let (x, own, caps) = (data.dense(), codes(&data), vec![1.0; n]);
    for power in [1.0, 2.0] {
        let loss = lp(power, 1.5, 1);
        let problem = problem(&x, &own, 1, &caps, &loss, &KernelFunction::Linear);
        never_worse(&problem, 1e-4, &format!("p {power}"));
    }
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

/// Paths that only some sizes and kernels take. The gap is computed from the data, and so says that a solution is one.
#[test]
fn large_kernels_pilots_and_conjugate_gradients_are_certified() {
    let settings = Settings { portfolio: false, ..Settings::default() };
    let certified = |problem: &Coded, what: &str| {
        let options = Options { tolerance: 1e-8, ..Options::default() };
        let found = reweighted::solve(problem, &settings, &options, &Control::default()).unwrap();
        judged(problem, &found);
        assert!(found.solution.gap <= 1e-8, "{what}: {:e}", found.solution.gap);
        assert!(found.solution.decision.iter().any(|f| f.abs() > 1e-3), "{what}");
        found.solution
    };
    let loss = lp(2.0, f64::INFINITY, 1);
    // a cost so low that every row is active: more than are factored
    let data = Data::noisy(3200, 2, 0.1, 81);
    let (x, own, caps) = (data.dense(), codes(&data), vec![1e-4; 3200]);
    let rbf = KernelFunction::Rbf { gamma: 0.3 };
    let many = certified(&problem(&x, &own, 1, &caps, &loss, &rbf), "conjugate gradients");
    assert!(many.decision.iter().zip(&data.signs).all(|(f, sign)| sign * f < 1.0));
    // enough rows for a first fit on some of them
    let data = Data::noisy(5000, 2, 0.1, 82);
    let (x, own, caps) = (data.dense(), codes(&data), vec![1.0; 5000]);
    certified(&problem(&x, &own, 1, &caps, &loss, &KernelFunction::Linear), "pilot");
    // values of an rbf kernel from inner products
    let data = Data::noisy(320, 3, 0.1, 83);
    let (x, own, caps) = (data.dense(), codes(&data), vec![1.0; 320]);
    certified(&problem(&x, &own, 1, &caps, &loss, &rbf), "rbf");
    // and from differences, where a row is far away: it changes nothing for the others
    let near = solve(&problem(&x, &own, 1, &caps, &loss, &rbf), &settings).solution;
    let mut values = data.values.clone();
    values.extend([1e10; 3]);
    let (far, mut one_more) = (Dense::new(321, 3, values).unwrap(), own.clone());
    one_more.push(1);
    let mut light = caps.clone();
    light.push(1e-9);
    let with_it = solve(&problem(&far, &one_more, 1, &light, &loss, &rbf), &settings).solution;
    assert!(with_it.decision.iter().zip(&near.decision).all(|(a, b)| (a - b).abs() < 1e-6));
}

#[test]
fn few_entries_a_row_are_the_dense_rows() {
    let (n, d, mut random) = (300, 40, Random(91));
    let mut dense = vec![0.0; n * d];
    let (mut starts, mut columns, mut values) = (vec![0usize], Vec::new(), Vec::new());
    let mut own = Vec::new();
    for row in 0..n {
        let mut sum = 0.0;
        for column in 0..d {
            if random.unit() >= 0.08 {
                continue;
            }
            let value = random.normal();
            sum += if column % 2 == 0 { value } else { -value };
            dense[row * d + column] = value;
            columns.push(column as u32);
            values.push(value);
        }
        starts.push(values.len());
        own.push(u32::from(sum + 0.3 * random.normal() > 0.0));
    }
    let (dense, sparse) = (Dense::new(n, d, dense).unwrap(), Csr::new(n, d, starts, columns, values).unwrap());
    let (loss, caps) = (lp(2.0, 2.0, 1), vec![1.0; n]);
    let settings = Settings { matrix: Matrix::Columns, ..Settings::default() };
    let one = solve(&problem(&dense, &own, 1, &caps, &loss, &KernelFunction::Linear), &settings).solution;
    let two = solve(&problem(&sparse, &own, 1, &caps, &loss, &KernelFunction::Linear), &settings).solution;
    assert!(two.gap <= TOLERANCE && relative(one.objective, two.objective) < SAME_FORM);
    assert!(one.weights.unwrap().iter().zip(two.weights.unwrap()).all(|(a, b)| (a - b).abs() < 1e-9));
}

/// Few entries a row and more columns than pay for a matrix: conjugate gradients, and the same minimum as with one.
#[test]
fn sparse_rows_need_no_matrix() {
    let (n, d) = (4000, 600);
    let mut random = Random(12);
    let (mut starts, mut columns, mut values, mut own) = (vec![0], Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        let mut places: Vec<u32> = (0..3).map(|_| random.below(d) as u32).collect();
        places.sort_unstable();
        places.dedup();
        let sum: f64 = places.iter().map(|&column| f64::from(column % 3) - 1.0).sum();
        values.extend(places.iter().map(|_| 1.0));
        columns.extend(places);
        starts.push(values.len());
        own.push(u32::from(sum + 0.5 * random.normal() > 0.0));
    }
    let x = Csr::new(n, d, starts, columns, values).unwrap();
    let (loss, caps) = (lp(2.0, f64::INFINITY, 1), vec![0.5; n]);
    let kernel = KernelFunction::Linear;
    let problem = problem(&x, &own, 1, &caps, &loss, &kernel);
    let auto = solve(&problem, &Settings::default());
    let stored = solve(&problem, &Settings { matrix: Matrix::Columns, ..Settings::default() });
    assert_eq!((auto.solution.solver, stored.solution.solver), ("reweighted", "finite-newton"));
    assert!(relative(auto.solution.objective, stored.solution.objective) < AGREES);
    // what solves a linear system a round gets its matrix all the same
    let settings = Settings { alternating: true, ..Settings::default() };
    let options = Options { tolerance: 1e-4, max_steps: 3, ..Options::default() };
    assert!(reweighted::solve(&problem, &settings, &options, &Control::default()).is_ok());
}

/// The weights of p = 1 with three functions move slowly: as many rounds as that takes are allowed for.
#[test]
fn rounds_are_enough_unless_told_otherwise() {
    assert_eq!((Capped::new(1.0).common.max_iter, outlast::Lq::new(1.0).common.max_iter), (1000, 1000));
    let (x, codes) = three(300, 6, 5);
    let model = Capped::new(1.0).power(1.0).cap(1.0).fit(&x, &codes[..]).unwrap();
    assert!(model.summary.status.is_converged(), "{:?}", model.summary.status);
}

#[test]
fn no_cap_has_a_name() {
    let (x, codes) = three(60, 3, 8);
    assert_eq!(Cap::from_name("none").unwrap(), Cap::At(f64::INFINITY));
    let told = Cap::from_name("never").unwrap_err().to_string();
    assert!(["auto", "cv", "none"].iter().all(|name| told.contains(name)), "{told}");
    let model = Capped::new(1.0).power(2.0).cap(Cap::from_name("none").unwrap()).fit(&x, &codes[..]).unwrap();
    assert_eq!((model.summary.outliers, model.summary.details.get("cap")), (0, None));
}

#[test]
fn the_scale_of_huge_data_does_not_matter() {
    let data = Data::noisy(60, 2, 0.1, 95);
    let y = data.labels();
    for power in [0.5, 1.0, 2.0] {
        let fit = |factor: f64| {
            let x = Dense::new(60, 2, data.values.iter().map(|x| x * factor).collect::<Vec<f64>>()).unwrap();
            let model = Capped::new(1.0).power(power).fit(&x, &y).unwrap();
            model.decision_function(&x).unwrap()
        };
        // the penalty is nothing beside the loss in both
        let (one, two) = (fit(1e100), fit(1e300));
        assert!(two.iter().any(|f| f.abs() > 0.1), "p = {power}");
        let same = one.iter().zip(&two).filter(|(a, b)| (**a > 0.0) == (**b > 0.0)).count();
        assert!(same >= 57, "p = {power}: {same} of 60");
    }
}

#[test]
fn separable_rows_are_not_given_up() {
    let mut random = Random(97);
    let y: Vec<i32> = (0..200).map(|row| row % 2).collect();
    let values: Vec<f64> = y.iter().flat_map(|&y| [y, y]).map(|y| random.normal() + f64::from(10 * y)).collect();
    let x = Dense::new(200, 2, values).unwrap();
    for power in [0.5, 1.0, 2.0] {
        for c in [1.0, 1e4] {
            let model = Capped::new(c).power(power).fit(&x, &y).unwrap();
            assert_eq!(model.summary.outliers, 0, "p = {power}, C = {c}");
            // with p < 1 and a steep loss the weights span more than the gap can tell
            assert!(
                power < 1.0 || model.summary.status.is_converged(),
                "p = {power}, C = {c}: {}",
                model.summary.status
            );
        }
    }
}

#[test]
fn cross_validation_leaves_time_for_the_fit() {
    let data = Data::noisy(3000, 20, 0.1, 98);
    let (x, y) = (data.dense(), data.labels());
    let control = Control::default().time_limit(std::time::Duration::from_millis(200));
    let labels = outlast::Labels::new(y.iter().copied());
    let request = outlast::model::FitRequest { control, ..Default::default() };
    let model = Capped::new(1.0).power(0.5).cap(Cap::CrossValidation).fit_labels(&x, &labels, &request).unwrap();
    assert!(model.predictor.weights().unwrap().iter().any(|w| *w != 0.0));
}

#[test]
fn a_matrix_that_has_no_room_is_refused_with_what_would_help() {
    let data = Data::noisy(700, 2, 0.1, 99);
    let (x, y) = (data.dense(), data.labels());
    let error = Capped::new(1.0).kernel(Kernel::rbf(1.0)).solver("alternating").cache_size(1.0).fit(&x, &y);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("cache_size of at least"), "{error}");
}
