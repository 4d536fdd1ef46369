//! The relaxations and their certificates against enumeration of all outlier sets, closed forms and identities.

use crate::ablation_data::{Case, problem};
use crate::common::{Data, Random, clarabel_dual, kernel_matrix, relative};
use outlast::problem::ablation::{Features, Minorant, lower_bound};
use outlast::problem::{Candidate, TwoClass};
use outlast::solver::ablation::{Relaxed, Rule, bound, bound_relaxed, relax};
use outlast::solver::{Options, Solution, choose, solve};
use outlast::{Control, Csr, Dense, KernelFunction, Status};
use proptest::prelude::*;

/// Relative gap asked of the relaxation.
const TOLERANCE: f64 = 1e-7;
/// What Clarabel and rounding may add to the truth.
const TRUTH: f64 = 1e-8;
/// Agreement of two ways to the same relaxation.
const SAME: f64 = 1e-5;

const LINEAR: KernelFunction = KernelFunction::Linear;

fn options() -> Options {
    Options { tolerance: TOLERANCE, ..Options::default() }
}

fn relaxed(problem: &TwoClass, rule: Rule) -> Relaxed {
    let relaxed = relax(problem, rule, &options(), Control::default()).unwrap();
    assert!(relaxed.lower <= relaxed.value * (1.0 + 1e-12), "{} {}", relaxed.lower, relaxed.value);
    assert!(relaxed.eta.iter().chain(&relaxed.alpha).all(|value| (0.0..=1.0).contains(value)));
    relaxed
}

fn local(problem: &TwoClass) -> Solution {
    let problem = outlast::problem::Problem::Two(*problem);
    let options = Options { tolerance: 1e-9, ..Options::default() };
    solve(choose("auto", &problem).unwrap(), &problem, &options, &Control::default()).unwrap()
}

fn candidate(solution: &Solution) -> Candidate<'_> {
    Candidate { expansion: &solution.expansion, weights: solution.weights.as_deref(), intercept: solution.intercept() }
}

fn kernels() -> [KernelFunction; 3] {
    [LINEAR, KernelFunction::Rbf { gamma: 0.3 }, KernelFunction::Poly { gamma: 0.05, degree: 2, coef0: 1.0 }]
}

#[test]
fn the_relaxation_lies_below_every_outlier_set() {
    let mut tight = 0;
    for (seed, kernel) in (0..).zip(kernels().into_iter().cycle().take(9)) {
        let c = [0.05, 0.5, 4.0][seed as usize / 3];
        let case = Case::new(8, 2, c, kernel, false, 100 + seed);
        let truth = case.minimum();
        case.with(|problem| {
            let reh = relaxed(problem, Rule::Reh);
            assert_eq!(reh.status, Status::Converged);
            assert!(reh.value - reh.lower <= TOLERANCE * reh.value, "{} {}", reh.value, reh.lower);
            assert!(reh.lower <= truth * (1.0 + TRUTH), "{} > {truth}", reh.lower);
            assert!(reh.value > 0.05 * truth, "a vacuous relaxation: {} of {truth}", reh.value);
            tight += usize::from(relative(reh.value, truth) < SAME);
            assert!(truth <= local(problem).objective * (1.0 + TRUTH));
        });
    }
    assert!(tight >= 2, "strong regularisation makes it tight: {tight}");
}

#[test]
fn rod_lies_below_every_outlier_set_of_its_budget() {
    for (seed, kernel) in (0..).zip(kernels().into_iter().cycle().take(6)) {
        let case = Case::new(7, 2, [0.3, 3.0][seed as usize % 2], kernel, false, 300 + seed);
        let total: f64 = case.caps.iter().sum();
        for inliers in [0.5, 0.8] {
            let truth = case.enumerate(0.0, |out| out <= (1.0 - inliers) * total * (1.0 + 1e-12));
            case.with(|problem| {
                let rod = relaxed(problem, Rule::Rod { inliers });
                assert!(rod.lower <= truth * (1.0 + TRUTH), "{} > {truth}", rod.lower);
                assert!(
                    rod.value - rod.lower <= 10.0 * TOLERANCE * rod.value,
                    "{} {} {:?}",
                    rod.value,
                    rod.lower,
                    rod.status
                );
                let kept: f64 = rod.eta.iter().zip(&case.caps).map(|(eta, cap)| eta * cap).sum();
                assert!(kept >= (inliers - 1e-2) * total, "{kept} of {total}");
            });
        }
    }
}

#[test]
fn all_rows_inliers_is_the_support_vector_machine() {
    for kernel in kernels() {
        let case = Case::new(20, 3, 1.0, kernel, false, 17);
        let x = case.data.dense();
        let matrix = kernel_matrix(&case.kernel, &x);
        let side =
            |row: usize, positive: bool| if (case.data.signs[row] > 0.0) == positive { case.caps[row] } else { 0.0 };
        let lower: Vec<f64> = (0..20).map(|row| -side(row, false)).collect();
        let upper: Vec<f64> = (0..20).map(|row| side(row, true)).collect();
        let svm = -clarabel_dual(&matrix, &case.data.signs, &lower, &upper, false);
        case.with(|problem| {
            let rod = relaxed(problem, Rule::Rod { inliers: 1.0 });
            assert!(relative(rod.value, svm) < SAME && relative(rod.lower, svm) < SAME, "{} {svm}", rod.value);
            // and a little less budget is a little less
            let near = relaxed(problem, Rule::Rod { inliers: 0.98 });
            assert!(near.value < svm && near.value > 0.5 * svm, "{} {svm}", near.value);
        });
    }
}

/// The level of a budget is its price: the relaxation at that price, minus the budget's cost, is ROD itself, and REH is ROD of the share
/// that REH keeps, plus the rows it drops.
#[test]
fn a_budget_that_reh_would_spend_gives_reh() {
    let case = Case::new(60, 2, 0.4, LINEAR, false, 5);
    let total: f64 = case.caps.iter().sum();
    case.with(|problem| {
        let reh = relaxed(problem, Rule::Reh);
        let kept: f64 = reh.eta.iter().zip(&case.caps).map(|(eta, cap)| eta * cap).sum();
        let rod = relaxed(problem, Rule::Rod { inliers: kept / total });
        assert!(relative(rod.value + (total - kept), reh.value) < 1e-4, "{} {} {}", rod.value, total - kept, reh.value);
        assert!((rod.multiplier - 1.0).abs() < 0.02, "{}", rod.multiplier);
    });
}

#[test]
fn identities_hold() {
    let data = Data::noisy(40, 3, 0.15, 9);
    let x = data.dense();
    let caps = vec![0.7; 40];
    let plain = relaxed(&problem(&x, &data.signs, &caps, &LINEAR, false), Rule::Reh);

    // the linear kernel through its factor
    let poly = KernelFunction::Poly { gamma: 1.0, degree: 1, coef0: 0.0 };
    let factored = relaxed(&problem(&x, &data.signs, &caps, &poly, false), Rule::Reh);
    assert_eq!((plain.rank, factored.rank), (3, 3));
    assert!(relative(factored.value, plain.value) < SAME && relative(factored.lower, plain.lower) < SAME);

    // sparse rows
    let starts: Vec<usize> = (0..=40).map(|row| 3 * row).collect();
    let columns: Vec<u32> = (0..120).map(|k| k % 3).collect();
    let sparse = Csr::new(40, 3, starts, columns, data.values.clone()).unwrap();
    let other = TwoClass { x: &sparse, ..problem(&x, &data.signs, &caps, &LINEAR, false) };
    assert_eq!(relaxed(&other, Rule::Reh).value, plain.value);

    // half the weight twice
    let twice: Vec<f64> = data.values.iter().chain(&data.values).copied().collect();
    let signs: Vec<f64> = data.signs.iter().chain(&data.signs).copied().collect();
    let doubled = Dense::new(80, 3, twice).unwrap();
    let half = relaxed(&problem(&doubled, &signs, &[0.35; 80], &LINEAR, false), Rule::Reh);
    assert!(relative(half.value, plain.value) < SAME, "{} {}", half.value, plain.value);

    // the recovered f is the relaxation's own w: r w = sum c eta alpha f, so its penalty is at most the value
    let f = KernelFunction::Linear.expand(&x, &plain.expansion);
    let penalty: f64 = 0.5 * f.iter().zip(&plain.expansion).map(|(f, beta)| f * beta).sum::<f64>();
    assert!(penalty > 0.0 && penalty <= plain.value);
}

#[test]
fn any_scale_of_the_data_is_the_same_problem() {
    let data = Data::noisy(30, 2, 0.2, 21);
    let x = data.dense();
    let plain = relaxed(&problem(&x, &data.signs, &[1.0; 30], &LINEAR, false), Rule::Reh);
    for scale in [1e-150f64, 1e-20, 1e20, 1e140] {
        // w -> w / scale: the objective is that of caps c scale^-2, times scale^-2
        let values: Vec<f64> = data.values.iter().map(|value| value * scale).collect();
        let scaled = Dense::new(30, 2, values).unwrap();
        let cap = 1.0 / scale / scale;
        let found = relaxed(&problem(&scaled, &data.signs, &[cap; 30], &LINEAR, false), Rule::Reh);
        assert!(relative(found.value / cap, plain.value) < 1e-9, "{scale}: {} {}", found.value / cap, plain.value);
        assert!(found.lower / cap <= plain.value);
    }
}

#[test]
fn degenerate_data_have_right_answers() {
    // zero rows cost their caps
    let x = Dense::from_rows(&[[0.0, 0.0], [1.0, 0.5], [0.0, 0.0], [-1.0, 0.2]]);
    let found = relaxed(&problem(&x, &[1.0, 1.0, -1.0, -1.0], &[1.0, 2.0, 0.5, 2.0], &LINEAR, false), Rule::Reh);
    let without = Dense::from_rows(&[[1.0, 0.5], [-1.0, 0.2]]);
    let rest = relaxed(&problem(&without, &[1.0, -1.0], &[2.0; 2], &LINEAR, false), Rule::Reh);
    assert!((found.value - rest.value - 1.5).abs() < 1e-9 && found.value - found.lower <= TOLERANCE * found.value);
    // no row counts, no column, nothing but zeros
    let nothing = relaxed(&problem(&x, &[1.0, 1.0, -1.0, -1.0], &[0.0; 4], &LINEAR, false), Rule::Reh);
    assert_eq!((nothing.value, nothing.lower), (0.0, 0.0));
    let zeros = Dense::new(3, 1, vec![0.0; 3]).unwrap();
    for kernel in [LINEAR, KernelFunction::Poly { gamma: 1.0, degree: 2, coef0: 0.0 }] {
        let found = relaxed(&problem(&zeros, &[1.0, -1.0, 1.0], &[1.0; 3], &kernel, false), Rule::Reh);
        assert!((found.value - 3.0).abs() < 1e-12 && (found.lower - 3.0).abs() < 1e-9);
    }
    // more columns than rows, at any scale: K through its factor
    let wide = Data::noisy(6, 20, 0.2, 2);
    let x = wide.dense();
    let plain = relaxed(&problem(&x, &wide.signs, &[0.01; 6], &LINEAR, false), Rule::Reh);
    assert!(plain.rank <= 6);
    let far: Vec<f64> = wide.values.iter().map(|value| value * 1e170).collect();
    let far = Dense::new(6, 20, far).unwrap();
    let cap = 0.01 / 1e170 / 1e170;
    let found =
        relax(&problem(&far, &wide.signs, &[cap; 6], &LINEAR, false), Rule::Reh, &options(), Control::default());
    assert!(found.is_ok_and(|found| found.value.is_finite() && found.lower >= 0.0));
    // an intercept with one class, or nobody
    for signs in [[1.0; 4], [-1.0; 4]] {
        for caps in [[1.0; 4], [0.0; 4]] {
            let x = Dense::from_rows(&[[1.0, 2.0], [0.5, 1.0], [-1.0, 0.3], [0.0, 0.0]]);
            let found = relaxed(&problem(&x, &signs, &caps, &LINEAR, true), Rule::Reh);
            assert!(found.value < 1e-6 && found.lower == 0.0 && found.intercept.is_finite(), "{found:?}");
        }
    }
    // one class, all rows equal, huge and tiny C
    let equal = Dense::new(4, 1, vec![2.0; 4]).unwrap();
    for c in [1e-10, 1.0, 1e10] {
        for signs in [[1.0; 4], [1.0, 1.0, 1.0, -1.0]] {
            let caps = [c; 4];
            let problem = problem(&equal, &signs, &caps, &LINEAR, false);
            for rule in [Rule::Reh, Rule::Rod { inliers: 0.75 }] {
                let found = relaxed(&problem, rule);
                assert!(found.value.is_finite() && found.lower.is_finite() && found.value >= 0.0, "{c} {found:?}");
            }
        }
    }
}

#[test]
fn kernels_that_are_not_semidefinite_are_named() {
    let refuse = |values: &[f64]| {
        let n = (values.len() as f64).sqrt() as usize;
        let x = Dense::new(n, n, values.to_vec()).unwrap();
        let (signs, caps) = (vec![1.0; n], vec![1.0; n]);
        let problem = problem(&x, &signs, &caps, &KernelFunction::Precomputed, false);
        relax(&problem, Rule::Reh, &options(), Control::default()).unwrap_err().to_string()
    };
    for bad in [
        &[1.0, 2.0, 2.0, 1.0][..],
        &[1.0, 0.0, 0.0, -1.0],
        &[1.0, 0.5, 0.2, 1.0],
        &[0.0, 1.0, 1.0, 0.0],
        &[1.0, 0.9, -0.9, 0.9, 1.0, 0.9, -0.9, 0.9, 1.0],
    ] {
        let error = refuse(bad);
        assert!(error.contains("kernel") && error.contains("positive semidefinite"), "{error}");
    }
}

#[test]
fn the_bound_around_a_solution_is_below_the_minimum() {
    let mut proved = 0;
    for (seed, kernel) in (0..).zip(kernels().into_iter().cycle().take(9)) {
        let case = Case::new(8, 2, [0.02, 0.3, 3.0][seed as usize / 3], kernel, false, 500 + seed);
        let truth = case.minimum();
        case.with(|problem| {
            let solution = local(problem);
            let options = Options { tolerance: 1e-6, ..Options::default() };
            let near = bound(problem, &candidate(&solution), &options, Control::default()).unwrap();
            let better = bound_relaxed(problem, &candidate(&solution), &options, Control::default()).unwrap();
            for found in [near, better] {
                assert!(found.lower <= truth * (1.0 + TRUTH) && found.lower >= 0.0, "{found:?} {truth}");
                assert!(!found.proved || relative(found.objective, truth) < 1e-5, "{found:?} {truth}");
            }
            assert!(better.lower >= near.lower);
            proved += usize::from(near.proved);
        });
    }
    assert!(proved >= 1, "strong regularisation proves itself: {proved}");
}

#[test]
fn a_free_intercept_is_bounded_over_all_its_values() {
    for (seed, kernel) in (0..).zip(kernels()) {
        let case = Case::new(7, 2, [0.2, 1.0, 2.0][seed as usize], kernel, true, 700 + seed);
        let truth = case.minimum();
        case.with(|problem| {
            let options = Options { tolerance: 1e-5, ..Options::default() };
            let reh = relax(problem, Rule::Reh, &options, Control::default()).unwrap();
            assert!(reh.value - reh.lower <= 1e-5 * reh.value, "{} {} {:?}", reh.value, reh.lower, reh.status);
            assert!(reh.lower <= truth * (1.0 + TRUTH), "{} > {truth}", reh.lower);
            let solution = local(problem);
            let found = bound(problem, &candidate(&solution), &options, Control::default()).unwrap();
            assert!(found.lower <= truth * (1.0 + TRUTH));
            let sum: f64 = reh.expansion.iter().sum();
            assert!(sum.abs() < 1e-9 * reh.expansion.iter().map(|beta| beta.abs()).sum::<f64>() + 1e-12);
        });
    }
}

#[test]
fn a_shift_of_the_rows_is_a_matter_of_the_intercept() {
    let data = Data::noisy(15, 2, 0.2, 33);
    let x = data.dense();
    let moved: Vec<f64> = data.values.iter().enumerate().map(|(k, value)| value + [3.0, -5.0][k % 2]).collect();
    let other = Dense::new(15, 2, moved).unwrap();
    let options = Options { tolerance: 1e-5, ..Options::default() };
    let caps = [0.5; 15];
    let [here, there] = [&x, &other].map(|x| {
        relax(&problem(x, &data.signs, &caps, &LINEAR, true), Rule::Reh, &options, Control::default()).unwrap()
    });
    assert!(relative(here.value, there.value) < 1e-4, "{} {}", here.value, there.value);
    let decide = |x: &Dense, found: &Relaxed| -> Vec<f64> {
        KernelFunction::Linear.expand(x, &found.expansion).iter().map(|f| f + found.intercept).collect()
    };
    for (a, b) in decide(&x, &here).iter().zip(decide(&other, &there)) {
        assert!((a - b).abs() < 0.05, "{a} {b}");
    }
}

#[test]
fn bad_shares_are_refused_and_limits_end_honestly() {
    let case = Case::new(40, 3, 1.0, KernelFunction::Rbf { gamma: 0.5 }, false, 3);
    case.with(|problem| {
        for inliers in [0.0, -1.0, 1.5, f64::NAN] {
            let error = relax(problem, Rule::Rod { inliers }, &options(), Control::default()).unwrap_err().to_string();
            assert!(error.contains("inlier_fraction"), "{error}");
        }
        let few = Options { max_iterations: 2, ..options() };
        let found = relax(problem, Rule::Reh, &few, Control::default()).unwrap();
        assert_eq!(found.status, Status::IterationLimit);
        assert!(found.lower <= found.value);
        let none = Control::default().time_limit(std::time::Duration::ZERO);
        let found = relax(problem, Rule::Reh, &options(), none).unwrap();
        assert_eq!(found.status, Status::TimeLimit);
        assert!(found.lower <= found.value && found.value.is_finite());
        let stop = || true;
        assert!(relax(problem, Rule::Reh, &options(), Control::default().interrupt(&stop)).is_err());
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever alpha, sigma: never above the truth.
    #[test]
    fn no_certificate_exceeds_the_minimum(seed in 0u64..1000, strength in 0.01f64..1.0, c in 0.01f64..3.0) {
        let case = Case::new(6, 2, c, LINEAR, false, seed);
        let truth = case.minimum();
        let features: Vec<f64> = (0..12).map(|k| case.data.signs[k / 2] * case.data.values[k]).collect();
        let mut random = Random(seed);
        for _ in 0..40 {
            let pairs: Vec<(f64, f64)> = (0..6).map(|_| (strength * random.unit(), 0.05 + 2.0 * random.unit())).collect();
            let error = if random.unit() < 0.5 { 0.0 } else { 0.01 };
            let bound = lower_bound(Features { values: &features, columns: 2 }, 6, 1.0, error, |row| {
                Minorant::new(case.caps[row], 1.0, pairs[row].0, pairs[row].1, 0.0)
            });
            prop_assert!(bound <= truth * (1.0 + TRUTH), "{bound} > {truth}");
        }
    }
}
