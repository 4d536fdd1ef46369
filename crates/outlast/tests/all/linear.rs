//! The linear solver against a general conic solver, against the judge, and against itself by identities.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SupportedConeT};
use outlast::problem::{Candidate, Norm, TwoClass};
use outlast::solver::{Options, Solution, Start, linear};
use outlast::{Control, Csr, Dense, Design, KernelFunction, Loss, Progress, Status};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Tolerance of the solver in most tests, a hundred times tighter than what is asserted.
const TOLERANCE: f64 = 1e-8;
const AGREEMENT: f64 = 1e-6;
/// Longest a hostile case may take, in unoptimised code on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

static LINEAR: KernelFunction = KernelFunction::Linear;

struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * (self.uniform() + 1e-300).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Data with labels from a noisy plane, some flipped, on a grid coarse enough for f32.
struct Data {
    n: usize,
    d: usize,
    values: Vec<f64>,
    signs: Vec<f64>,
    caps: Vec<f64>,
}

impl Data {
    fn new(n: usize, d: usize, cap: f64, flipped: f64, seed: u64) -> Data {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..10 {
            random.uniform();
        }
        let plane: Vec<f64> = (0..d).map(|_| random.normal()).collect();
        let values: Vec<f64> = (0..n * d).map(|_| (random.normal() * 256.0).round() / 256.0).collect();
        let signs = (0..n)
            .map(|i| {
                let f: f64 = values[i * d..(i + 1) * d].iter().zip(&plane).map(|(x, w)| x * w).sum();
                let y = if f + 0.3 + 0.3 * random.normal() > 0.0 { 1.0 } else { -1.0 };
                if random.uniform() < flipped { -y } else { y }
            })
            .collect();
        Data { n, d, values, signs, caps: vec![cap; n] }
    }

    fn dense(&self) -> Dense<'_> {
        Dense::new(self.n, self.d, &self.values[..]).unwrap()
    }

    fn solve(&self, loss: Loss, intercept: bool, tolerance: f64) -> Solution {
        solve(&self.dense(), &self.signs, &self.caps, loss, intercept, tolerance)
    }
}

fn problem<'a>(x: &'a dyn Design, signs: &'a [f64], caps: &'a [f64], loss: Loss, intercept: bool) -> TwoClass<'a> {
    TwoClass { norm: Norm::Squared, x, signs, caps, loss, kernel: &LINEAR, intercept }
}

fn solve(x: &dyn Design, signs: &[f64], caps: &[f64], loss: Loss, intercept: bool, tolerance: f64) -> Solution {
    let problem = problem(x, signs, caps, loss, intercept);
    let options = Options { tolerance, ..Options::default() };
    let solution = linear::solve(&problem, &options, &Control::default()).unwrap();
    judge(&problem, &solution, tolerance);
    solution
}

/// Every claim of a solution that the problem itself can check.
fn judge(problem: &TwoClass, solution: &Solution, tolerance: f64) {
    let weights = solution.weights.as_deref().unwrap();
    let candidate =
        Candidate { expansion: &solution.expansion, weights: Some(weights), intercept: solution.intercept() };
    let certificate = problem.certify(&candidate, &solution.truncated);
    let largest = problem.caps.iter().fold(0.0f64, |a, b| a.max(*b));
    assert!(certificate.imbalance <= 1e-12 * largest * problem.rows() as f64, "{certificate:?}");
    let gap = certificate.relative_gap();
    assert!(solution.gap.is_finite() && solution.gap >= 0.0, "{}", solution.gap);
    assert!(
        (gap - solution.gap).abs() <= 1e-9 + 0.01 * solution.gap,
        "reported {} certified {gap} {}",
        solution.gap,
        solution.status
    );
    if solution.status == Status::Converged {
        assert!(solution.gap <= tolerance, "{} {tolerance}", solution.gap);
        let own = problem.truncation_set(&candidate);
        let counted = own.iter().zip(&solution.truncated).zip(problem.caps).filter(|(_, cap)| **cap > 0.0);
        assert_eq!(counted.filter(|((a, b), _)| a != b).count(), 0);
    }
    let objective = problem.objective(&candidate);
    let rounding = 1e-9 * objective.abs() + f64::MIN_POSITIVE;
    assert!((objective - solution.objective).abs() <= rounding, "{objective} {}", solution.objective);
    assert!(solution.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", solution.trace);
    assert_eq!(solution.trace.last(), Some(&solution.objective));
    assert!(weights.iter().all(|w| w.is_finite()) && solution.intercept().is_finite());
    assert_eq!(solution.solver, "linear-band");
}

fn converged(solution: &Solution) -> &Solution {
    assert_eq!(solution.status, Status::Converged, "gap {}", solution.gap);
    solution
}

fn agree(a: f64, b: f64, what: &str) {
    assert!((a - b).abs() <= AGREEMENT * b.abs().max(1e-300), "{what}: {a} {b}");
}

/// Clarabel on min 1/2|w|^2 + sum c xi, xi >= 0, xi >= 1 - y (w'x + b); variables w, b, xi.
fn independent(data: &Data, intercept: bool) -> f64 {
    let (n, d) = (data.n, data.d);
    let size = d + 1 + n;
    let mut quadratic = vec![vec![0.0; size]; size];
    for (j, row) in quadratic.iter_mut().enumerate().take(d) {
        row[j] = 1.0;
    }
    let p = CscMatrix::from(&quadratic);
    let mut q = vec![0.0; size];
    q[d + 1..].copy_from_slice(&data.caps);
    // b = 0 or free, then the two bounds of each xi; s = right - A x
    let mut a = vec![vec![0.0; size]; 1 + 2 * n];
    let mut right = vec![0.0; 1 + 2 * n];
    if !intercept {
        a[0][d] = 1.0;
    }
    for i in 0..n {
        let y = data.signs[i];
        for j in 0..d {
            a[1 + i][j] = -y * data.values[i * d + j];
        }
        a[1 + i][d] = -y;
        a[1 + i][d + 1 + i] = -1.0;
        right[1 + i] = -1.0;
        a[1 + n + i][d + 1 + i] = -1.0;
    }
    let a = CscMatrix::from(&a);
    let cones = [SupportedConeT::ZeroConeT(1), SupportedConeT::NonnegativeConeT(2 * n)];
    let settings = DefaultSettings {
        verbose: false,
        tol_gap_abs: 1e-10,
        tol_gap_rel: 1e-10,
        tol_feas: 1e-10,
        ..DefaultSettings::default()
    };
    let mut solver = DefaultSolver::new(&p, &q, &a, &right, &cones, settings).unwrap();
    solver.solve();
    // the objective of the point it found, from the data
    let w = &solver.solution.x[..d];
    let b = if intercept { solver.solution.x[d] } else { 0.0 };
    let loss: f64 = (0..n)
        .map(|i| {
            let f: f64 = data.values[i * d..(i + 1) * d].iter().zip(w).map(|(x, w)| x * w).sum::<f64>() + b;
            data.caps[i] * (1.0 - data.signs[i] * f).max(0.0)
        })
        .sum();
    0.5 * w.iter().map(|w| w * w).sum::<f64>() + loss
}

#[test]
fn no_more_steps_than_asked_for() {
    for n in [300, 9_000] {
        let data = Data::new(n, 3, 1.0, 0.2, 77);
        let (x, steps) = (data.dense(), AtomicUsize::new(0));
        let count = |progress: Progress| {
            steps.fetch_add(usize::from(progress.stage == "truncated"), Ordering::Relaxed);
        };
        let control = Control::default().progress(&count);
        let problem = problem(&x, &data.signs, &data.caps, Loss::hinge().truncated_at(0.0).unwrap(), true);
        let options = Options { tolerance: TOLERANCE, max_steps: 1, ..Options::default() };
        linear::solve(&problem, &options, &control).unwrap();
        assert!(steps.load(Ordering::Relaxed) <= 1, "{n} rows: {steps:?}");
    }
}

#[test]
fn a_conic_solver_finds_the_same_optimum() {
    for (k, cap) in [1e-3, 1e-1, 1.0, 30.0, 1e3, 1e6].into_iter().enumerate() {
        for intercept in [true, false] {
            let seed = 10 + k as u64;
            let mut data = Data::new(60 + 30 * k, 1 + 2 * k, cap, 0.1, seed);
            let mut random = Random(seed);
            data.caps.iter_mut().for_each(|cap| *cap *= 0.1 + random.uniform());
            let solution = data.solve(Loss::hinge(), intercept, TOLERANCE);
            let other = independent(&data, intercept);
            agree(solution.objective, other, &format!("C = {cap}, intercept {intercept}"));
            converged(&solution);
            assert!(solution.weights.as_ref().unwrap().iter().any(|w| w.abs() > 1e-9));
        }
    }
}

#[test]
fn many_rows_are_certified() {
    for intercept in [true, false] {
        let data = Data::new(20_000, 10, 1.0, 0.1, 3);
        let loose = data.solve(Loss::hinge(), intercept, 1e-4);
        let tight = data.solve(Loss::hinge(), intercept, AGREEMENT);
        let tightest = data.solve(Loss::hinge(), intercept, TOLERANCE);
        converged(&loose);
        converged(&tight);
        converged(&tightest);
        assert!(loose.objective <= tightest.objective * (1.0 + 1e-4));
        assert!(tight.objective <= tightest.objective * (1.0 + AGREEMENT));
        assert!(tightest.objective <= tight.objective * (1.0 + TOLERANCE));
    }
}

/// The end of the path is a critical point: the convex problem of its own truncation set has the same optimum.
fn is_critical(data: &Data, solution: &Solution, loss: Loss, intercept: bool) {
    let kept = |(cap, out): (&f64, &bool)| if *out { 0.0 } else { *cap };
    let caps: Vec<f64> = data.caps.iter().zip(&solution.truncated).map(kept).collect();
    let convex = solve(&data.dense(), &data.signs, &caps, Loss::hinge(), intercept, TOLERANCE);
    let beyond: f64 = data.caps.iter().zip(&caps).map(|(all, kept)| all - kept).sum();
    agree(solution.objective, convex.objective + beyond * (1.0 - loss.truncation().unwrap()), "critical");
}

#[test]
fn truncated_answers_are_critical_and_never_worse_than_the_hinge() {
    for (n, d, cap, truncation) in [
        (150, 3, 1.0, -1.0),
        (300, 5, 10.0, 0.0),
        (300, 2, 0.05, -0.5),
        (400, 4, 1e4, -1.0),
        (20_000, 10, 1.0, -1.0),
        (20_000, 5, 100.0, 0.0),
    ] {
        for intercept in [true, false] {
            let data = Data::new(n, d, cap, 0.15, 5 + n as u64);
            let loss = Loss::hinge().truncated_at(truncation).unwrap();
            let robust = data.solve(loss, intercept, TOLERANCE);
            converged(&robust);
            is_critical(&data, &robust, loss, intercept);
            assert!(robust.truncated.iter().any(|out| *out));
            let plain = data.solve(Loss::hinge(), intercept, TOLERANCE);
            let x = data.dense();
            let weights = plain.weights.as_deref();
            let candidate = Candidate { expansion: &plain.expansion, weights, intercept: plain.intercept() };
            let bound = problem(&x, &data.signs, &data.caps, loss, intercept).objective(&candidate);
            assert!(robust.objective <= bound * (1.0 + TOLERANCE), "{} {bound}", robust.objective);
        }
    }
}

#[test]
fn storage_does_not_matter() {
    for n in [300, 8000] {
        let data = Data::new(n, 6, 1.0, 0.1, 11);
        let single: Vec<f32> = data.values.iter().map(|value| *value as f32).collect();
        let single = Dense::new(data.n, data.d, single).unwrap();
        let starts: Vec<usize> = (0..=data.n).map(|i| i * data.d).collect();
        let columns: Vec<u32> = (0..data.n * data.d).map(|k| (k % data.d) as u32).collect();
        let sparse = Csr::new(data.n, data.d, starts, columns, data.values.clone()).unwrap();
        for loss in [Loss::hinge(), Loss::hinge().truncated_at(-1.0).unwrap()] {
            let expected = data.solve(loss, true, TOLERANCE).objective;
            for x in [&single as &dyn Design, &sparse] {
                agree(solve(x, &data.signs, &data.caps, loss, true, TOLERANCE).objective, expected, "storage");
            }
        }
    }
}

#[test]
fn threads_do_not_matter() {
    let data = Data::new(30_000, 8, 1.0, 0.1, 13);
    for loss in [Loss::hinge(), Loss::hinge().truncated_at(-1.0).unwrap()] {
        let [one, two] = [1, 2].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| data.solve(loss, true, AGREEMENT))
        });
        assert_eq!(one.objective, two.objective);
        assert_eq!(one.weights, two.weights);
    }
}

#[test]
fn weights_are_repetitions() {
    for n in [200, 6000] {
        let mut data = Data::new(n, 4, 0.7, 0.1, 17);
        let (mut values, mut signs, mut caps) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..n {
            // rows come 0, 1 or 2 times
            let times = i % 3;
            for _ in 0..times {
                values.extend_from_slice(&data.values[i * data.d..(i + 1) * data.d]);
                signs.push(data.signs[i]);
                caps.push(data.caps[i]);
            }
            data.caps[i] *= times as f64;
        }
        let repeated = Data { n: signs.len(), d: data.d, values, signs, caps };
        for intercept in [true, false] {
            let weighted = data.solve(Loss::hinge(), intercept, TOLERANCE);
            agree(weighted.objective, repeated.solve(Loss::hinge(), intercept, TOLERANCE).objective, "weights");
            assert!((0..n).step_by(3).all(|i| weighted.expansion[i] == 0.0));
        }
    }
}

#[test]
fn swapped_labels_and_permuted_rows_change_nothing() {
    let data = Data::new(5000, 5, 1.0, 0.1, 19);
    let expected = data.solve(Loss::hinge(), true, TOLERANCE);
    let mut swapped = Data::new(5000, 5, 1.0, 0.1, 19);
    swapped.signs.iter_mut().for_each(|y| *y = -*y);
    let swapped = swapped.solve(Loss::hinge(), true, TOLERANCE);
    agree(swapped.objective, expected.objective, "swapped");
    assert!((swapped.intercept() + expected.intercept()).abs() < 1e-3);
    let mut turned = Data::new(5000, 5, 1.0, 0.1, 19);
    turned.signs.reverse();
    turned.values = turned.values.chunks_exact(5).rev().flatten().copied().collect();
    agree(turned.solve(Loss::hinge(), true, TOLERANCE).objective, expected.objective, "permuted");
}

#[test]
fn a_warm_start_leads_to_the_same_optimum() {
    let data = Data::new(20_000, 6, 1.0, 0.1, 23);
    let x = data.dense();
    for loss in [Loss::hinge(), Loss::hinge().truncated_at(-1.0).unwrap()] {
        let problem = problem(&x, &data.signs, &data.caps, loss, true);
        let cold = data.solve(loss, true, TOLERANCE);
        let start = Start { expansion: Vec::new(), weights: cold.weights.clone(), intercepts: cold.intercepts.clone() };
        let options = Options { tolerance: TOLERANCE, start: Some(start), ..Options::default() };
        let warm = linear::solve(&problem, &options, &Control::default()).unwrap();
        judge(&problem, &warm, TOLERANCE);
        let limit = if loss.truncation().is_some() { 1e-3 } else { AGREEMENT };
        assert!(warm.objective <= cold.objective * (1.0 + limit));
    }
}

#[test]
fn the_unit_of_features_is_the_unit_of_c() {
    for n in [200, 6000] {
        for power in [40, -40] {
            // x scaled by s, C by 1/s^2: the same problem
            let scale = f64::from(power).exp2();
            let mut data = Data::new(n, 3, 1.0, 0.1, 29);
            let expected = data.solve(Loss::hinge(), true, TOLERANCE);
            data.values.iter_mut().for_each(|x| *x *= scale);
            data.caps.iter_mut().for_each(|cap| *cap /= scale * scale);
            let scaled = data.solve(Loss::hinge(), true, TOLERANCE);
            agree(scaled.objective * scale * scale, expected.objective, "scaled");
            agree(scaled.weights.unwrap()[0] * scale, expected.weights.unwrap()[0], "weights");
        }
    }
}

/// Ends soon, with finite numbers that the judge confirms, whatever the status.
fn survives(data: &Data, what: &str) -> Vec<Solution> {
    let mut all = Vec::new();
    for loss in [Loss::hinge(), Loss::hinge().truncated_at(-1.0).unwrap()] {
        for intercept in [true, false] {
            let start = Instant::now();
            let solution = data.solve(loss, intercept, 1e-4);
            println!("{what}: {} gap {:.1e} {:?}", solution.status, solution.gap, start.elapsed());
            assert!(start.elapsed() < PATIENCE, "{what}: {:?}", start.elapsed());
            assert!(solution.objective.is_finite(), "{what}");
            all.push(solution);
        }
    }
    all
}

#[test]
fn extreme_caps() {
    for n in [100, 6000] {
        for cap in [1e-10, 1e6, 1e10] {
            for flipped in [0.0, 0.1] {
                let data = Data::new(n, 4, cap, flipped, 31);
                for solution in survives(&data, &format!("n {n} C {cap} flipped {flipped}")) {
                    converged(&solution);
                }
            }
        }
    }
}

#[test]
fn separable_data_reach_the_widest_margin() {
    for n in [100, 8000] {
        let mut data = Data::new(n, 3, 1.0, 0.0, 37);
        for i in 0..n {
            let x = &mut data.values[i * 3..(i + 1) * 3];
            x[0] += 4.0 * data.signs[i];
        }
        let mut norms = Vec::new();
        for cap in [1e3, 1e6, 1e10] {
            data.caps.fill(cap);
            let solution = data.solve(Loss::hinge(), true, TOLERANCE);
            norms.push(converged(&solution).objective);
        }
        agree(norms[1], norms[2], "hard margin");
        assert!(norms[0] <= norms[1] * (1.0 + AGREEMENT));
    }
}

#[test]
fn extreme_features() {
    for n in [100, 4000] {
        for scale in [1e150, 1e-150] {
            let mut data = Data::new(n, 3, 1.0, 0.1, 41);
            data.values.iter_mut().for_each(|x| *x *= scale);
            for solution in survives(&data, &format!("n {n} features {scale}")) {
                assert!(solution.objective <= data.caps.iter().sum::<f64>() * (1.0 + AGREEMENT));
            }
        }
    }
}

#[test]
fn rare_constant_and_repeated_columns() {
    let n = 12_000;
    let mut data = Data::new(n, 8, 1.0, 0.1, 43);
    for i in 0..n {
        let x = &mut data.values[i * 8..(i + 1) * 8];
        x[4] = 3.0;
        x[5] = x[0];
        x[6] = if i % 4001 == 7 { 400.0 } else { 0.0 };
        x[7] = if i % 700 == 3 { 1.0 } else { 0.0 };
    }
    for solution in survives(&data, "rare columns") {
        converged(&solution);
    }
}

#[test]
fn contradictions_few_rows_and_few_weights() {
    let mut data = Data::new(4000, 3, 1.0, 0.0, 47);
    let half = data.n / 2;
    data.values.copy_within(0..half * 3, half * 3);
    for i in 0..half {
        data.signs[half + i] = -data.signs[i];
    }
    for solution in survives(&data, "every row with both labels") {
        converged(&solution);
    }
    let mut data = Data::new(6000, 3, 1.0, 0.2, 53);
    data.caps.iter_mut().enumerate().for_each(|(i, cap)| *cap = if i % 600 < 2 { 1.0 } else { 0.0 });
    for solution in survives(&data, "few weights") {
        converged(&solution);
    }
    for (n, d) in [(1, 1), (2, 1), (3, 5), (20, 40), (5000, 1)] {
        for solution in survives(&Data::new(n, d, 1.0, 0.3, 59), &format!("{n} x {d}")) {
            converged(&solution);
        }
    }
}

#[test]
fn nothing_to_learn_from() {
    let mut data = Data::new(50, 2, 1.0, 0.0, 61);
    data.caps.fill(0.0);
    assert!(survives(&data, "no weights").iter().all(|solution| solution.objective == 0.0));
    data.caps.fill(1.0);
    data.signs.fill(-1.0);
    assert_eq!(survives(&data, "one class")[0].objective, 0.0);
    data.values.fill(0.0);
    data.signs[3] = 1.0;
    // b = -1 costs 2 for the one row of the other class; truncated at -1 the same
    assert!((survives(&data, "no features")[0].objective - 2.0).abs() <= 2e-4);
    let data = Data { n: 4, d: 0, values: vec![], signs: vec![1.0, 1.0, 1.0, -1.0], caps: vec![1.0; 4] };
    assert!((survives(&data, "no columns")[0].objective - 2.0).abs() <= 2e-4);
}

#[test]
fn limits_and_interrupts_are_honoured() {
    let data = Data::new(20_000, 10, 1.0, 0.1, 67);
    let x = data.dense();
    for loss in [Loss::hinge(), Loss::hinge().truncated_at(-1.0).unwrap()] {
        let problem = problem(&x, &data.signs, &data.caps, loss, true);
        let stop = || true;
        let interrupted = Control::default().interrupt(&stop);
        assert!(matches!(linear::solve(&problem, &Options::default(), &interrupted), Err(outlast::Error::Interrupted)));
        let late = Control::default().time_limit(Duration::ZERO);
        let solution = linear::solve(&problem, &Options::default(), &late).unwrap();
        judge(&problem, &solution, f64::INFINITY);
        assert_eq!(solution.status, Status::TimeLimit);
    }
}

#[test]
fn other_losses_and_kernels_are_refused_by_name() {
    let x = Dense::from_rows(&[[0.0], [1.0]]);
    let other = problem(&x, &[1.0, -1.0], &[1.0, 1.0], Loss::logistic(), true);
    let error = linear::solve(&other, &Options::default(), &Control::default()).unwrap_err().to_string();
    assert!(error.contains("logistic"), "{error}");
    let kernel = KernelFunction::Rbf { gamma: 1.0 };
    let other = TwoClass { kernel: &kernel, loss: Loss::hinge(), ..other };
    let error = linear::solve(&other, &Options::default(), &Control::default()).unwrap_err().to_string();
    assert!(error.contains("linear kernel"), "{error}");
}
