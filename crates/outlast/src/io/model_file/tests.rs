use super::*;
use crate::data::{Class, Csr, Dense};
use crate::model::{Details, Family, Function, Predictor, Probabilities, Rows, Summary, Votes};
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
            probabilities: None,
            votes: None,
            scaling: None,
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
            details: Details::default(),
        },
        training: None,
    }
}

/// All floating-point numbers of a model, as bits: equality of these and of the rest is equality bit for bit.
fn bits(model: &Model) -> Vec<u64> {
    let (p, s) = (&model.predictor, &model.summary);
    let mut all = vec![s.c, s.truncation.unwrap_or(9.0), s.objective, s.gap, s.tol];
    all.extend(&p.intercepts);
    all.extend(s.utility.iter().chain(&s.cost).flatten());
    all.extend(s.class_weight.iter().flatten());
    all.extend(&s.trace);
    all.extend(s.details.iter().map(|(_, value)| value));
    all.extend(&p.coefficients);
    all.extend(p.kernel.gamma());
    match &p.function {
        Function::Linear { weights } | Function::Squares { weights } => all.extend(weights),
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
    let names: Vec<String> = rest.summary.details.iter().map(|(name, _)| name.to_string()).collect();
    names.into_iter().for_each(|name| rest.summary.details.set(name, 0.0));
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

fn functions(features: usize, support: usize, count: usize) -> impl Strategy<Value = (KernelFunction, Function)> {
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
        prop::collection::vec(finite(), features * count)
            .prop_map(|weights| (KernelFunction::Linear, Function::Linear { weights })),
        prop::collection::vec(finite(), 2 * features * count)
            .prop_map(|weights| (KernelFunction::Linear, Function::Squares { weights })),
        (kernels(), dense),
        (kernels(), sparse),
        Just((KernelFunction::Precomputed, Function::Precomputed)),
    ]
}

fn classes(count: usize) -> impl Strategy<Value = Vec<Class>> {
    let class = prop_oneof![any::<i64>().prop_map(Class::Int), any::<String>().prop_map(Class::Text)];
    prop::collection::btree_set(class, count).prop_map(|classes| classes.into_iter().collect())
}

/// A utility matrix, a cost matrix, or none.
fn payoffs(classes: usize) -> impl Strategy<Value = (Option<Vec<f64>>, Option<Vec<f64>>)> {
    let matrix = prop::collection::vec(0.0..1e300f64, classes * classes);
    prop_oneof![
        Just((None, None)),
        matrix.clone().prop_map(|matrix| (Some(matrix), None)),
        matrix.prop_map(|matrix| (None, Some(matrix))),
    ]
}

prop_compose! {
    fn predictors()(features in 1..5usize, support in 0..4usize, k in 2..6usize)(
        (kernel, function) in functions(features.max(support), support, if k == 2 { 1 } else { k }),
        coefficients in prop::collection::vec(finite(), support * if k == 2 { 1 } else { k }),
        intercepts in prop::collection::vec(finite(), if k == 2 { 1 } else { k }),
        names in prop::option::of(prop::collection::vec(any::<String>(), features.max(support))),
        classes in classes(k),
        (features, support) in Just((features.max(support), support)),
    ) -> Predictor {
        let support = (0..support as u32).collect();
        let (probabilities, votes, scaling) = (None, None, None);
        Predictor {
            classes, feature_names: names, features, kernel, support, coefficients, function, intercepts, probabilities, votes, scaling
        }
    }
}

prop_compose! {
    fn models()(predictor in predictors())(
        (utility, cost) in payoffs(predictor.classes.len()),
        class_weight in prop::option::of(prop::collection::vec(0.0..1e300f64, predictor.classes.len())),
        class_rows in prop::collection::vec(0..9usize, predictor.classes.len()),
        predictor in Just(predictor),
        numbers in prop::array::uniform4(any_number()),
        trace in prop::collection::vec(any_number(), 0..4),
        details in prop::collection::btree_map(any::<String>(), any_number(), 0..4),
        truncation in prop::option::of(finite()),
        solver in any::<String>(),
        (fit_intercept, max_iter, steps) in any::<(bool, u32, u32)>(),
        (direct, lowest) in any::<(bool, bool)>(),
    ) -> Model {
        let mut model = linear(vec![0.0]);
        let summary = &mut model.summary;
        if predictor.kernel.name() == "precomputed" {
            summary.rows = predictor.features;
        }
        [summary.c, summary.objective, summary.gap, summary.tol] = numbers;
        (summary.fit_intercept, summary.max_iter, summary.steps) = (fit_intercept, max_iter as usize, steps as usize);
        (summary.class_weight, summary.class_rows, summary.solver_asked) = (class_weight, class_rows, solver.clone());
        (summary.trace, summary.truncation, summary.solver) = (trace, truncation, solver);
        (summary.utility, summary.cost) = (utility, cost);
        details.into_iter().for_each(|(name, value)| summary.details.set(name, value));
        summary.cost_form = if direct { "direct" } else { "utility" }.to_string();
        summary.utility_baseline = if lowest { "row_minimum" } else { "keep" }.to_string();
        model.predictor = predictor;
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

/// Three classes, a linear function each.
fn three() -> Model {
    let mut model = linear(vec![1.0, -2.0]);
    let (predictor, summary) = (&mut model.predictor, &mut model.summary);
    predictor.classes = ["a", "b", "c"].map(Class::from).to_vec();
    predictor.coefficients = vec![0.1, 0.2, -0.3, 1.0, -2.0, 1.0];
    predictor.function = Function::Linear { weights: vec![1.0, 2.0, 3.0, -1.0, -4.0, -1.0] };
    predictor.intercepts = vec![0.5, -1.5, 1.0];
    summary.class_rows = vec![2, 2, 1];
    summary.utility = Some(vec![1.0, 0.5, 0.0, 0.0, 1.0, 0.25, 0.0, 0.0, 2.0]);
    model
}

#[test]
fn models_of_three_classes_predict_the_same_when_read_back() {
    let x = Dense::from_rows(&[[1.0, 0.0], [0.5, -3.0], [1e-3, 1e9]]);
    let dense = Rows::Dense(Dense::from_rows(&[[1.0, -0.0], [0.3, 2.0]]));
    let sparse = Rows::Sparse(Csr::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1e-300, 0.7]).unwrap());
    let rbf = KernelFunction::Rbf { gamma: 0.3 };
    let mut models = vec![three()];
    for rows in [dense, sparse] {
        let mut model = three();
        (model.predictor.kernel, model.predictor.function) = (rbf.clone(), Function::Kernel { rows });
        (model.summary.cost, model.summary.utility) = (model.summary.utility.take(), None);
        models.push(model);
    }
    let mut model = three();
    (model.predictor.kernel, model.predictor.function) = (KernelFunction::Precomputed, Function::Precomputed);
    (model.summary.rows, model.predictor.support) = (2, vec![0, 1]);
    models.push(model);
    for model in models {
        let back = model_from_bytes(&model_to_bytes(&model).unwrap()).unwrap();
        assert_eq!((bits(&back), words(&back)), (bits(&model), words(&model)));
        let values = |model: &Model| -> Vec<u64> {
            model.decision_function(&x).unwrap().into_iter().map(f64::to_bits).collect()
        };
        assert_eq!((values(&back), values(&back).len()), (values(&model), 9));
        assert_eq!(back.predict(&x).unwrap(), model.predict(&x).unwrap());
    }
}

/// A file of format 1, byte by byte: a linear model of two classes, one intercept, no payoffs.
#[test]
fn the_first_format_is_still_read() {
    let header = concat!(
        r#"{"method":"truncated","loss":"hinge","penalty":"l2","fit_intercept":true,"max_iter":100,"#,
        r#""solver_asked":"auto","solver":"linear-band","status":"converged","rows":5,"class_rows":[2,3],"outliers":1,"#,
        r#""steps":1,"iterations":7,"classes":[{"int":-1},{"text":"x"}],"feature_names":["u","v"],"features":2,"#,
        r#""kernel":"linear","degree":null,"function":"linear","arrays":["#,
        r#"{"name":"c","dtype":"f64","shape":[1],"offset":0},{"name":"truncation","dtype":"f64","shape":[1],"offset":8},"#,
        r#"{"name":"tol","dtype":"f64","shape":[1],"offset":16},{"name":"objective","dtype":"f64","shape":[1],"offset":24},"#,
        r#"{"name":"gap","dtype":"f64","shape":[1],"offset":32},{"name":"intercept","dtype":"f64","shape":[1],"offset":40},"#,
        r#"{"name":"trace","dtype":"f64","shape":[2],"offset":48},{"name":"support","dtype":"u32","shape":[2],"offset":64},"#,
        r#"{"name":"coefficients","dtype":"f64","shape":[2],"offset":72},"#,
        r#"{"name":"weights","dtype":"f64","shape":[2],"offset":88}]}"#,
    );
    let mut file = b"OUTLAST\0\x01\0\0\0".to_vec();
    file.extend((header.len() as u64).to_le_bytes());
    file.extend(header.as_bytes());
    for number in [0.5, -1.0, 1e-4, 1.5, 1e-6, 0.3, 2.0, 1.5f64] {
        file.extend(number.to_le_bytes());
    }
    file.extend([0u32, 3].map(u32::to_le_bytes).concat());
    for number in [-0.1, 0.1, 7.0, -8.0f64] {
        file.extend(number.to_le_bytes());
    }
    file.extend(crc32fast::hash(&file).to_le_bytes());
    let model = model_from_bytes(&file).unwrap();
    let (predictor, summary) = (&model.predictor, &model.summary);
    assert_eq!(predictor.classes, [Class::Int(-1), Class::from("x")]);
    assert_eq!(predictor.weights(), Some(&[7.0, -8.0][..]));
    assert_eq!((&predictor.intercepts[..], &predictor.coefficients[..]), (&[0.3][..], &[-0.1, 0.1][..]));
    assert_eq!((summary.c, summary.truncation, summary.objective), (0.5, Some(-1.0), 1.5));
    assert_eq!((summary.payoff(), &summary.cost_form[..], &summary.utility_baseline[..]), (None, "utility", "keep"));
    let x = Dense::from_rows(&[[1.0, 0.0], [0.0, 1.0]]);
    assert_eq!(model.decision_function(&x).unwrap(), [7.0 + 0.3, -8.0 + 0.3]);
    // written again it is a file of today, and the same model
    assert_eq!(model_from_bytes(&model_to_bytes(&model).unwrap()).unwrap(), model);
}

#[test]
fn functions_classes_and_payoffs_must_agree() {
    let refused = |change: &dyn Fn(&mut Model), word: &str| {
        let mut model = three();
        header::check(&model).unwrap();
        change(&mut model);
        let error = header::check(&model).unwrap_err();
        assert!(error.contains(word), "{error}");
        assert!(model_to_bytes(&model).is_err());
    };
    refused(&|model| _ = model.predictor.intercepts.pop(), "one intercept per function");
    refused(&|model| model.predictor.intercepts = vec![0.0], "one intercept per function");
    refused(&|model| _ = model.predictor.coefficients.pop(), "support vectors times functions");
    refused(&|model| model.predictor.function = Function::Linear { weights: vec![1.0, 2.0] }, "weights as features");
    refused(&|model| model.predictor.classes.truncate(2), "");
    refused(&|model| model.predictor.classes[0] = Class::from("b"), "distinct");
    refused(&|model| model.summary.class_rows = vec![2, 3], "one number per class");
    refused(&|model| model.summary.utility = Some(vec![1.0; 4]), "classes x classes");
    refused(&|model| model.summary.cost = Some(vec![1.0; 9]), "not both");
    refused(&|model| model.summary.utility = Some(vec![-1.0; 9]), "classes x classes");
    refused(&|model| model.summary.utility = Some(vec![f64::NAN; 9]), "classes x classes");
    refused(&|model| model.summary.cost_form = "odd".to_string(), "cost_form");
    refused(&|model| model.summary.utility_baseline = "odd".to_string(), "utility_baseline");
    refused(&|model| model.predictor.intercepts[1] = f64::INFINITY, "finite");
}

#[test]
fn forged_files_of_three_classes_are_refused_with_a_reason() {
    for (from, to, word) in [
        ("\"shape\":[3,2]", "\"shape\":[2,2]", "weights as features"),
        ("\"shape\":[2,3]", "\"shape\":[2,2]", "coefficients"),
        ("\"name\":\"utility\"", "\"name\":\"class_weight\"", "class_weight"),
        ("[{\"text\":\"a\"},", "[", "class_rows"),
        ("\"class_rows\":[2,2,1]", "\"class_rows\":[2,3]", "class_rows"),
        ("\"cost_form\":\"utility\"", "\"cost_form\":\"x\"", "cost_form"),
    ] {
        let error = forged_of(&three(), |header| header.replace(from, to));
        assert!(error.contains("damaged"), "{from} -> {to}: {error}");
        assert!(word == "class_rows" || error.contains(word), "{from} -> {to}: {error}");
    }
}

/// A file with a header of our making and a right checksum.
fn forged(change: impl Fn(&str) -> String) -> String {
    forged_of(&linear(vec![1.0, -2.0]), change)
}

fn forged_of(model: &Model, change: impl Fn(&str) -> String) -> String {
    let bytes = model_to_bytes(model).unwrap();
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
        ("[{\"int\":-1},{\"int\":1}]", "[{\"int\":1},{\"int\":1}]".to_string(), "distinct"),
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

fn with_probabilities() -> Model {
    let family = Family { positions: vec![0, 1], coefficients: vec![0.1, -0.2, 0.3, 0.4], intercepts: vec![0.5, -0.5] };
    let rows = Rows::Dense(Dense::new(2, 1, vec![1.0, 2.0]).unwrap());
    let mut model = linear(vec![1.0]);
    model.predictor.kernel = KernelFunction::Rbf { gamma: 0.5 };
    model.predictor.function = Function::Kernel { rows: rows.clone() };
    model.predictor.probabilities = Some(Probabilities {
        levels: vec![0.25, 0.75],
        support: vec![1, 4],
        function: Function::Kernel { rows },
        families: vec![family],
    });
    model
}

#[test]
fn probabilities_come_back_and_need_a_newer_format() {
    let model = with_probabilities();
    let bytes = model_to_bytes(&model).unwrap();
    assert_eq!(bytes[8], 4);
    assert_eq!(model_from_bytes(&bytes).unwrap(), model);
    assert_eq!(model_to_bytes(&linear(vec![1.0])).unwrap()[8], 3);
}

#[test]
fn probabilities_that_can_not_be_computed_are_refused() {
    let refused = |change: &dyn Fn(&mut Probabilities), expected: &str| {
        let mut model = with_probabilities();
        change(model.predictor.probabilities.as_mut().unwrap());
        let error = model_to_bytes(&model).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n  lacks {expected}");
    };
    refused(&|p| p.levels = vec![0.75, 0.25], "ascend");
    refused(&|p| p.levels.clear(), "ascend");
    refused(&|p| p.levels = vec![0.5, f64::NAN], "ascend");
    refused(&|p| p.support = vec![4, 1], "ascend");
    refused(&|p| p.support = vec![1, 5], "no training row");
    refused(&|p| p.families.clear(), "a family for each pair");
    refused(&|p| p.families[0].positions = vec![0, 2], "out of range");
    refused(&|p| _ = p.families[0].coefficients.pop(), "a coefficient for each row and level");
    refused(&|p| p.families[0].intercepts[0] = f64::INFINITY, "finite");
    refused(&|p| p.function = Function::Precomputed, "of the same kind");
    refused(&|p| p.function = Function::Linear { weights: vec![1.0; 2] }, "of the same kind");
}

fn with_votes() -> Model {
    let mut model = linear(vec![1.0]);
    let rows = Rows::Dense(Dense::new(3, 1, vec![1.0, 2.0, 3.0]).unwrap());
    model.summary.class_rows = vec![1, 1, 3];
    model.predictor = Predictor {
        classes: [1, 2, 3].map(Class::Int).to_vec(),
        support: vec![0, 1, 2],
        coefficients: vec![0.5; 6],
        function: Function::Kernel { rows },
        intercepts: vec![0.1, 0.2, 0.3],
        votes: Some(Votes { order: vec![2, 0, 1], counts: vec![2, 0, 1] }),
        ..model.predictor
    };
    model
}

#[test]
fn votes_come_back_and_need_the_newest_format() {
    let model = with_votes();
    let bytes = model_to_bytes(&model).unwrap();
    assert_eq!(bytes[8], FORMAT_VERSION as u8);
    assert_eq!(model_from_bytes(&bytes).unwrap(), model);
}

#[test]
fn votes_that_can_not_be_counted_are_refused() {
    let refused = |change: &dyn Fn(&mut Predictor, &mut Votes), expected: &str| {
        let mut model = with_votes();
        let mut votes = model.predictor.votes.take().unwrap();
        change(&mut model.predictor, &mut votes);
        model.predictor.votes = Some(votes);
        let error = model_to_bytes(&model).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n  lacks {expected}");
    };
    refused(&|_, votes| votes.order = vec![2, 0, 0], "its place in the order");
    refused(&|_, votes| votes.order = vec![2, 0], "its place in the order");
    refused(&|_, votes| votes.counts = vec![2, 0, 2], "of one class");
    refused(&|_, votes| votes.counts = vec![usize::MAX, 4, 0], "of one class");
    refused(&|predictor, _| predictor.function = Function::Precomputed, "there must be rows");
    refused(&|predictor, _| _ = predictor.coefficients.pop(), "as many coefficients");
    refused(&|predictor, _| _ = predictor.intercepts.pop(), "one intercept per function");
    refused(&|predictor, _| _ = predictor.classes.pop(), "more than two classes");
}

#[test]
fn foreign_new_and_empty_files_are_told_apart() {
    let message = |bytes: &[u8]| model_from_bytes(bytes).unwrap_err().to_string();
    assert!(message(b"").contains("empty"));
    assert!(message(b"PK\x03\x04").contains("not a model file"));
    assert!(message(b"OUTLAST\0\x01").contains("too early"));
    let mut newer = model_to_bytes(&linear(vec![1.0])).unwrap();
    newer[8] = 6;
    assert!(message(&newer).contains("version 6, newer than the 5 known here"));
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
