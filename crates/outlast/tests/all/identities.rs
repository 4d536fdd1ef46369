//! Identities that hold for every solver and loss, as property tests through the public face.
//!
//! Two ways of writing the same problem must reach the same objective. The truncated problem has many critical points, and
//! which one the d.c. path ends in may turn on the last bit; there the plain problem is compared, and for the truncated one
//! that both ends are critical points of their own problem (see the solvers' own tests).

use crate::common::{Data, Random, relative};
use outlast::{ClassWeight, Csr, Dense, Design, FitRequest, Kernel, Loss, Model, Status, Truncated, Truncation};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Solver tolerance and what is asserted.
const TIGHT: f64 = 1e-9;
const CLOSE: f64 = 1e-7;

/// A solver with a loss and a kernel it takes.
#[derive(Debug, Clone)]
struct Setting {
    solver: &'static str,
    kernel: Kernel,
    loss: Loss,
    intercept: bool,
    c: f64,
}

fn setting() -> impl Strategy<Value = Setting> {
    let solver = prop_oneof![
        Just(("kernel-smo", Kernel::rbf(0.4), Loss::hinge())),
        Just(("kernel-smo", Kernel::Linear, Loss::hinge())),
        Just(("linear-band", Kernel::Linear, Loss::hinge())),
        Just(("linear-dcd", Kernel::Linear, Loss::hinge())),
        Just(("newton", Kernel::Linear, Loss::logistic())),
        Just(("newton", Kernel::rbf(0.4), Loss::logistic())),
        Just(("newton", Kernel::Linear, Loss::exponential())),
    ];
    (solver, any::<bool>(), prop_oneof![Just(0.03), Just(1.0), Just(5.0)])
        .prop_map(|((solver, kernel, loss), intercept, c)| Setting { solver, kernel, loss, intercept, c })
}

fn data() -> impl Strategy<Value = Data> {
    (20usize..90, 1usize..6, any::<u64>()).prop_map(|(rows, cols, seed)| {
        let mut data = Data::noisy(rows, cols, 0.1, seed);
        // values that f32 holds, some of them zero, so that every storage can hold the same matrix
        let mut random = Random(seed ^ 1);
        for value in &mut data.values {
            *value = if random.unit() < 0.3 { 0.0 } else { f64::from(*value as f32).clamp(-4.0, 4.0) };
        }
        data
    })
}

impl Setting {
    fn method(&self) -> Truncated {
        Truncated::new(self.c)
            .kernel(self.kernel.clone())
            .loss(self.loss)
            .truncation(Truncation::Off)
            .fit_intercept(self.intercept)
            .solver(self.solver)
            .tol(TIGHT)
    }

    fn fit(&self, x: &dyn Design, labels: &[i32], weights: Option<&[f64]>) -> Model {
        let request = FitRequest { sample_weight: weights, ..FitRequest::default() };
        self.method().fit_with(x, &labels.to_vec(), &request).unwrap()
    }
}

fn same(setting: &Setting, what: &str, a: &Model, b: &Model) -> Result<(), TestCaseError> {
    let difference = relative(a.summary.objective, b.summary.objective);
    // a fit that could not reach the tolerance says so, and by how much it may be off
    let gaps = a.summary.gap + b.summary.gap;
    prop_assert!(gaps < 1e-4, "{setting:?} {what}: {gaps:e}");
    prop_assert!(difference < CLOSE + 2.0 * gaps, "{setting:?} {what}: {difference:e}, gaps {gaps:e}");
    Ok(())
}

fn sparse(data: &Data) -> Csr<'static> {
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in data.values.chunks_exact(data.cols) {
        for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            columns.push(column as u32);
            values.push(value);
        }
        starts.push(values.len());
    }
    Csr::new(data.rows, data.cols, starts, columns, values).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, rng_seed: RngSeed::Fixed(2007), ..ProptestConfig::default() })]

    #[test]
    fn every_storage_gives_the_same_fit(setting in setting(), data in data()) {
        let labels = data.labels();
        let dense = setting.fit(&data.dense(), &labels, None);
        let single: Vec<f32> = data.values.iter().map(|&value| value as f32).collect();
        let single = Dense::new(data.rows, data.cols, single).unwrap();
        same(&setting, "f32", &setting.fit(&single, &labels, None), &dense)?;
        same(&setting, "sparse", &setting.fit(&sparse(&data), &labels, None), &dense)?;
        // and the trivial answer is not what they agree on
        prop_assert!(dense.support_count() > 0 && dense.summary.objective > 0.0);
    }

    #[test]
    fn the_order_of_rows_does_not_matter(setting in setting(), data in data(), seed in any::<u64>()) {
        let labels = data.labels();
        let mut order: Vec<usize> = (0..data.rows).collect();
        let mut random = Random(seed);
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last + 1));
        }
        let values: Vec<f64> = order.iter().flat_map(|&row| data.dense().row(row).to_vec()).collect();
        let shuffled: Vec<i32> = order.iter().map(|&row| labels[row]).collect();
        let x = Dense::new(data.rows, data.cols, values).unwrap();
        same(&setting, "permuted", &setting.fit(&x, &shuffled, None), &setting.fit(&data.dense(), &labels, None))?;
    }

    #[test]
    fn swapped_labels_negate_the_decision(setting in setting(), data in data()) {
        let labels = data.labels();
        let swapped: Vec<i32> = labels.iter().map(|label| -label).collect();
        let (a, b) = (setting.fit(&data.dense(), &labels, None), setting.fit(&data.dense(), &swapped, None));
        same(&setting, "swapped", &a, &b)?;
        let (f, g) = (a.decision_function(&data.dense()).unwrap(), b.decision_function(&data.dense()).unwrap());
        let unique = a.summary.loss != "hinge" || !setting.intercept;
        for (f, g) in f.iter().zip(&g) {
            // with a hinge and an intercept b may be an interval; then only f without b is unique
            let shift = if unique { 0.0 } else { a.predictor.intercepts[0] + b.predictor.intercepts[0] };
            prop_assert!((f + g - shift).abs() < 1e-3 * (1.0 + f.abs()), "{setting:?}: {f} {g}");
        }
    }

    #[test]
    fn weights_are_repeated_rows(setting in setting(), data in data(), seed in any::<u64>()) {
        let labels = data.labels();
        let mut random = Random(seed);
        // the first two rows hold one class each and stay
        let copies: Vec<usize> = (0..data.rows).map(|row| if row < 2 { 1 } else { random.below(4) }).collect();
        let repeat = |row: usize| std::iter::repeat_n(row, copies[row]);
        let order: Vec<usize> = (0..data.rows).flat_map(repeat).collect();
        let values: Vec<f64> = order.iter().flat_map(|&row| data.dense().row(row).to_vec()).collect();
        let repeated: Vec<i32> = order.iter().map(|&row| labels[row]).collect();
        let x = Dense::new(order.len(), data.cols, values).unwrap();
        let weights: Vec<f64> = copies.iter().map(|&copies| copies as f64).collect();
        let weighted = setting.fit(&data.dense(), &labels, Some(&weights));
        same(&setting, "weights", &weighted, &setting.fit(&x, &repeated, None))?;
        // and class weights are sample weights by class
        let by_class: Vec<f64> = labels.iter().map(|&label| if label > 0 { 3.0 } else { 0.5 }).collect();
        let given = setting.method().class_weight(ClassWeight::Given(vec![0.5, 3.0])).fit(&data.dense(), &labels).unwrap();
        same(&setting, "class weights", &given, &setting.fit(&data.dense(), &labels, Some(&by_class)))?;
    }

    #[test]
    fn threads_budget_and_warm_start_do_not_matter(setting in setting(), data in data()) {
        let labels = data.labels();
        let cold = setting.fit(&data.dense(), &labels, None);
        for method in [setting.method().threads(1), setting.method().threads(2), setting.method().cache_size(1.0)] {
            same(&setting, "threads or cache", &method.fit(&data.dense(), &labels).unwrap(), &cold)?;
        }
        let mut other = setting.clone();
        other.c *= 3.0;
        let start = other.fit(&data.dense(), &labels, None);
        let request = FitRequest { start: Some(&start), ..FitRequest::default() };
        same(&setting, "warm", &setting.method().fit_with(&data.dense(), &labels, &request).unwrap(), &cold)?;
    }

    #[test]
    fn truncation_lowers_the_objective_step_by_step(setting in setting(), data in data()) {
        let labels = data.labels();
        let plain = setting.fit(&data.dense(), &labels, None);
        let truncated = setting.method().truncation(Truncation::Auto).fit(&data.dense(), &labels).unwrap();
        let summary = &truncated.summary;
        prop_assert!(summary.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{setting:?}: {:?}", summary.trace);
        let loss = setting.loss.truncated_at(summary.truncation.unwrap()).unwrap();
        // never worse than what the plain solution costs under the truncated loss
        let margins = &plain.training.as_ref().unwrap().margins;
        let untruncated: f64 = margins.iter().map(|&margin| setting.c * setting.loss.value(margin)).sum();
        let cut: f64 = margins.iter().map(|&margin| setting.c * loss.value(margin)).sum();
        let start = plain.summary.objective - untruncated + cut;
        prop_assert!(summary.objective <= start * (1.0 + CLOSE), "{setting:?}: {} {start}", summary.objective);
        // a truncation nobody reaches changes nothing
        let far = setting.method().truncation(-1e5).fit(&data.dense(), &labels).unwrap();
        same(&setting, "far truncation", &far, &plain)?;
        prop_assert_eq!(far.summary.outliers, 0);
        // margins and outliers are told as they are
        let training = truncated.training.as_ref().unwrap();
        let s = summary.truncation.unwrap();
        if summary.status == Status::Converged {
            prop_assert!(training.margins.iter().zip(&training.outliers).all(|(margin, outlier)| (*margin < s) == *outlier));
        }
    }
}
