use super::*;
use crate::data::{Class, Csr, Dense};
use crate::model::{Function, Predictor, Rows, Summary};
use crate::problem::{Kernel, KernelFunction};
use crate::solver::Status;
use proptest::prelude::*;

fn linear(weights: Vec<f64>) -> Model {
    let features = weights.len();
    Model {
        predictor: Predictor {
            classes: vec![Class::Int(-1), Class::Int(1)],
            feature_names: None,
            features,
            kernel: KernelFunction::Linear,
            support: vec![0, 3],
            coefficients: vec![-0.1, 0.1],
            function: Function::Linear { weights },
            intercepts: vec![0.3],
        },
        summary: Summary {
            method: "truncated".to_string(),
            c: 0.1,
            loss: "hinge".to_string(),
            truncation: Some(-1.0),
            penalty: "l2".to_string(),
            utility: None,
            cost: None,
            cost_form: "utility".into(),
            utility_baseline: "keep".into(),
            class_weight: None,
            fit_intercept: true,
            tol: 1e-4,
            max_iter: 100,
            solver_asked: "auto".to_string(),
            solver: "newton".to_string(),
            rows: 5,
            class_rows: vec![2, 3],
            outliers: 1,
            objective: 1.5,
            trace: vec![2.0, 1.5],
            steps: 1,
            gap: f64::INFINITY,
            iterations: 7,
            status: Status::Converged,
        },
        training: None,
    }
}

/// All floating-point numbers of a model, as bits: equality of these and of the rest is equality bit for bit.
fn bits(model: &Model) -> Vec<u64> {
    let (p, s) = (&model.predictor, &model.summary);
    let mut all = vec![p.intercepts[0], s.c, s.truncation.unwrap_or(9.0), s.objective, s.gap, s.tol];
    all.extend(s.class_weight.iter().flatten());
    all.extend(&s.trace);
    all.extend(&p.coefficients);
    all.extend(p.kernel.gamma());
    match &p.function {
        Function::Linear { weights } => all.extend(weights),
        Function::Kernel { rows: Rows::Dense(rows) } => all.extend(rows.values()),
        Function::Kernel { rows: Rows::Sparse(rows) } => all.extend(rows.values()),
        Function::Precomputed => {}
    }
    all.into_iter().map(f64::to_bits).collect()
}

/// What [`bits`] leaves out.
fn words(model: &Model) -> String {
    let mut rest = model.clone();
    (rest.summary.objective, rest.summary.gap, rest.summary.tol) = (0.0, 0.0, 0.0);
    rest.summary.trace.clear();
    format!("{rest:?}")
}

fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![prop::num::f64::NORMAL, prop::num::f64::SUBNORMAL, Just(0.0), Just(-0.0)]
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![finite(), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(f64::from_bits(0x7ff8_dead_beef_0001))]
}

fn kernels() -> impl Strategy<Value = KernelFunction> {
    let gamma = || 1e-300..1e300f64;
    prop_oneof![
        Just(KernelFunction::Linear),
        gamma().prop_map(|gamma| KernelFunction::Rbf { gamma }),
        (gamma(), 1..=64u32, finite()).prop_map(|(gamma, degree, coef0)| KernelFunction::Poly { gamma, degree, coef0 }),
        (gamma(), finite()).prop_map(|(gamma, coef0)| KernelFunction::Sigmoid { gamma, coef0 }),
    ]
}

fn functions(features: usize, support: usize) -> impl Strategy<Value = (KernelFunction, Function)> {
    let dense = prop::collection::vec(finite(), features * support)
        .prop_map(move |values| Function::Kernel { rows: Rows::Dense(Dense::new(support, features, values).unwrap()) });
    let sparse =
        prop::collection::vec(prop::collection::btree_map(0..features as u32, finite(), 0..=features), support)
            .prop_map(move |rows| {
                let mut starts = vec![0];
                let (mut columns, mut values) = (Vec::new(), Vec::new());
                for row in rows {
                    columns.extend(row.keys());
                    values.extend(row.values());
                    starts.push(values.len());
                }
                Function::Kernel { rows: Rows::Sparse(Csr::new(support, features, starts, columns, values).unwrap()) }
            });
    prop_oneof![
        prop::collection::vec(finite(), features)
            .prop_map(|weights| (KernelFunction::Linear, Function::Linear { weights })),
        (kernels(), dense),
        (kernels(), sparse),
        Just((KernelFunction::Precomputed, Function::Precomputed)),
    ]
}

fn classes() -> impl Strategy<Value = Vec<Class>> {
    let class = prop_oneof![any::<i64>().prop_map(Class::Int), any::<String>().prop_map(Class::Text)];
    prop::collection::btree_set(class, 2).prop_map(|classes| classes.into_iter().collect())
}

prop_compose! {
    fn models()(features in 1..5usize, support in 0..4usize)(
        (features, support) in Just((features, support)),
        (kernel, function) in functions(features.max(support), support),
        coefficients in prop::collection::vec(finite(), support),
        classes in classes(),
        names in prop::option::of(prop::collection::vec(any::<String>(), features.max(support))),
        numbers in prop::array::uniform4(any_number()),
        trace in prop::collection::vec(any_number(), 0..4),
        truncation in prop::option::of(finite()),
        intercept in finite(),
        solver in any::<String>(),
        class_weight in prop::option::of(prop::array::uniform2(0.0..1e300f64)),
        (fit_intercept, max_iter, steps) in any::<(bool, u32, u32)>(),
    ) -> Model {
        let mut model = linear(vec![0.0; features.max(support)]);
        let predictor = &mut model.predictor;
        (predictor.kernel, predictor.function) = (kernel, function);
        (predictor.support, predictor.coefficients) = ((0..support as u32).collect(), coefficients);
        (predictor.classes, predictor.feature_names, predictor.intercepts) = (classes, names, vec![intercept]);
        let summary = &mut model.summary;
        if predictor.kernel.name() == "precomputed" {
            summary.rows = predictor.features;
        }
        [summary.c, summary.objective, summary.gap, summary.tol] = numbers;
        (summary.fit_intercept, summary.max_iter, summary.steps) = (fit_intercept, max_iter as usize, steps as usize);
        (summary.class_weight, summary.solver_asked) = (class_weight.map(Vec::from), solver.clone());
        (summary.trace, summary.truncation, summary.solver) = (trace, truncation, solver);
        model
    }
}

proptest! {
    #[test]
    fn models_come_back_bit_for_bit(model in models()) {
        let bytes = model_to_bytes(&model).unwrap();
        let back = model_from_bytes(&bytes).unwrap();
        prop_assert_eq!(bits(&back), bits(&model));
        prop_assert_eq!(words(&back), words(&model));
        prop_assert_eq!(model_to_bytes(&back).unwrap(), bytes);
    }

    #[test]
    fn a_changed_byte_or_a_missing_end_is_noticed(model in models(), change in 1..=255u8, place in any::<prop::sample::Index>()) {
        let bytes = model_to_bytes(&model).unwrap();
        let at = place.index(bytes.len());
        let mut changed = bytes.clone();
        changed[at] ^= change;
        prop_assert!(model_from_bytes(&changed).is_err());
        prop_assert!(model_from_bytes(&bytes[..at]).is_err());
    }

    /// A stranger can write a right checksum: then the content itself must hold, or be refused.
    #[test]
    fn a_forged_header_never_panics(model in models(), change in 1..=255u8, place in any::<prop::sample::Index>()) {
        let mut bytes = model_to_bytes(&model).unwrap();
        let end = bytes.len() - 4;
        let at = 8 + place.index(end - 8);
        bytes[at] ^= change;
        let checksum = crc32fast::hash(&bytes[..end]);
        bytes[end..].copy_from_slice(&checksum.to_le_bytes());
        if let Ok(model) = model_from_bytes(&bytes) {
            prop_assert!(header::check(&model).is_ok());
        }
    }
}

#[test]
fn every_single_byte_counts() {
    let bytes = model_to_bytes(&linear(vec![1.0, -2.0])).unwrap();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            assert!(model_from_bytes(&changed).is_err(), "bit {bit} of byte {at}");
        }
        assert!(model_from_bytes(&bytes[..at]).is_err(), "cut at {at}");
    }
    assert!(model_from_bytes(&[&bytes[..], b"x"].concat()).is_err());
}

/// A file with a header of our making and a right checksum.
fn forged(change: impl Fn(&str) -> String) -> String {
    let bytes = model_to_bytes(&linear(vec![1.0, -2.0])).unwrap();
    let length = u64::from_le_bytes(bytes[12..20].try_into().unwrap()) as usize;
    let header = std::str::from_utf8(&bytes[20..20 + length]).unwrap();
    let new = change(header);
    assert_ne!(new, header, "the change must hit");
    let mut file = bytes[..12].to_vec();
    file.extend_from_slice(&(new.len() as u64).to_le_bytes());
    file.extend_from_slice(new.as_bytes());
    file.extend_from_slice(&bytes[20 + length..bytes.len() - 4]);
    let checksum = crc32fast::hash(&file);
    file.extend_from_slice(&checksum.to_le_bytes());
    model_from_bytes(&file).unwrap_err().to_string()
}

#[test]
fn forged_files_are_refused_with_a_reason() {
    let huge = u64::MAX.to_string();
    for (from, to, word) in [
        ("\"shape\":[2]", format!("\"shape\":[{huge}]"), "beyond the end"),
        ("\"shape\":[2]", format!("\"shape\":[{huge},{huge}]"), "beyond the end"),
        ("\"offset\":0", format!("\"offset\":{huge}"), "beyond the end"),
        ("\"features\":2", "\"features\":3".to_string(), "weights as features"),
        ("\"features\":2", "\"features\":1000000000000".to_string(), "too many features"),
        ("\"name\":\"weights\"", "\"name\":\"w\"".to_string(), "weights is missing"),
        ("\"kernel\":\"linear\"", "\"kernel\":\"magic\"".to_string(), "kernel \"magic\" is unknown"),
        ("\"converged\"", "\"done\"".to_string(), "status"),
        ("\"rows\":5", "\"rows\":3".to_string(), "no training row"),
        ("[{\"int\":-1},{\"int\":1}]", "[{\"int\":1},{\"int\":-1}]".to_string(), "sorted"),
        ("[{\"int\":-1},{\"int\":1}]", "[]".to_string(), "two classes"),
        ("\"method\"", "\"extra\":1,\"method\"".to_string(), "unreadable"),
        ("\"f64\"", "\"u32\"".to_string(), "of type"),
    ] {
        let error = forged(|header| header.replace(from, &to));
        assert!(error.contains(word) && error.contains("damaged"), "{from} -> {to}: {error}");
    }
    assert!(forged(|_| "[".repeat(100_000)).contains("unreadable"));
}

/// What a file claims must not decide how much memory predicting takes.
#[test]
fn claims_beyond_the_data_are_refused() {
    let refused = |change: &dyn Fn(&mut Model), word: &str| {
        let mut model = linear(vec![]);
        (model.predictor.support, model.predictor.coefficients) = (vec![], vec![]);
        change(&mut model);
        let error = header::check(&model).unwrap_err();
        assert!(error.contains(word), "{error}");
    };
    let sparse = |features| Csr::new(0, features, vec![0], vec![], vec![]).unwrap();
    refused(
        &|model| {
            model.predictor.features = 1 << 40;
            model.predictor.kernel = KernelFunction::Rbf { gamma: 1.0 };
            model.predictor.function = Function::Kernel { rows: Rows::Dense(Dense::new(0, 1 << 40, vec![]).unwrap()) };
        },
        "too many features",
    );
    refused(
        &|model| {
            model.predictor.features = 7;
            model.predictor.kernel = KernelFunction::Rbf { gamma: 1.0 };
            model.predictor.function = Function::Kernel { rows: Rows::Sparse(sparse(8)) };
        },
        "as many columns as features",
    );
    let precomputed = |model: &mut Model, features: usize, rows: usize| {
        (model.predictor.kernel, model.predictor.function) = (KernelFunction::Precomputed, Function::Precomputed);
        (model.predictor.features, model.summary.rows) = (features, rows);
    };
    refused(&|model| precomputed(model, u32::MAX as usize, 5), "as many features as training rows");
    refused(&|model| precomputed(model, u32::MAX as usize, u32::MAX as usize), "too many rows");
    refused(&|model| model.summary.class_weight = Some(vec![1.0]), "class_weight");
    refused(&|model| model.summary.class_weight = Some(vec![1.0, f64::NAN]), "class_weight");
}

#[test]
fn foreign_new_and_empty_files_are_told_apart() {
    let message = |bytes: &[u8]| model_from_bytes(bytes).unwrap_err().to_string();
    assert!(message(b"").contains("empty"));
    assert!(message(b"PK\x03\x04").contains("not a model file"));
    assert!(message(b"OUTLAST\0\x01").contains("too early"));
    let mut newer = model_to_bytes(&linear(vec![1.0])).unwrap();
    newer[8] = 3;
    assert!(message(&newer).contains("version 3, newer than the 2 known here"));
}

#[test]
fn what_can_not_be_read_back_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let mut custom = linear(vec![1.0]);
    let x = Dense::from_rows(&[[1.0]]);
    custom.predictor.kernel = Kernel::custom("mine", |_, _| 0.0).resolve(&x, &crate::Labels::new([0]), None).unwrap();
    let error = save_model(&custom, &path).unwrap_err().to_string();
    assert!(error.contains("\"mine\" is a function of the caller's"), "{error}");
    let broken = linear(vec![f64::NAN]);
    assert!(save_model(&broken, &path).unwrap_err().to_string().contains("finite"));
    assert!(!path.exists());
    save_model(&linear(vec![1.0]), &path).unwrap();
    assert_eq!(load_model(&path).unwrap(), linear(vec![1.0]));
    assert!(matches!(load_model(folder.path().join("none")), Err(Error::Io { .. })));
    assert!(load_model(folder.path()).is_err());
}
