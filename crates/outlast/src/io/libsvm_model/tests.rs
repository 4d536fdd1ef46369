use crate::data::Dense;
use crate::io::load_model;
use proptest::prelude::*;
use std::io::Write;

const GOOD: &str = "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.25\nlabel 1 -1\nnr_sv 1 1\nSV\n\
                    2 1:1 \n-1 2:0.5 \n";

fn load(text: &[u8]) -> crate::Result<crate::Model> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text).unwrap();
    load_model(file.path())
}

#[test]
fn decisions_follow_the_formula() {
    let x = Dense::from_rows(&[[0.0, 0.0], [1.0, 2.0]]);
    let expected = |a: f64, b: f64| {
        2.0 * (-0.5 * ((a - 1.0).powi(2) + b * b)).exp() - (-0.5 * (a * a + (b - 0.5).powi(2))).exp() - 0.25
    };
    for (labels, sign) in [("1 -1", 1.0), ("-1 1", -1.0)] {
        let model = load(GOOD.replace("1 -1", labels).as_bytes()).unwrap();
        assert_eq!(model.classes().iter().map(ToString::to_string).collect::<Vec<_>>(), ["-1", "1"]);
        let found = model.decision_function(&x).unwrap();
        for (found, expected) in found.iter().zip([expected(0.0, 0.0), expected(1.0, 2.0)]) {
            assert!((found - sign * expected).abs() < 1e-12, "{found} for {expected}");
        }
    }
}

/// Labels 7, 3, 5 in this order, one support vector each.
const THREE: &str = "svm_type c_svc\nkernel_type linear\nnr_class 3\ntotal_sv 3\nrho 1 2 3\nlabel 7 3 5\nnr_sv 1 1 1\nSV\n\
                     1 2 1:1\n-3 4 1:10\n-5 -6 1:100\n";

#[test]
fn pairs_of_three_classes_vote() {
    let model = load(THREE.as_bytes()).unwrap();
    assert_eq!(model.classes().iter().map(ToString::to_string).collect::<Vec<_>>(), ["3", "5", "7"]);
    // at x = 1: (7, 3) 1 - 30 - 1, (7, 5) 2 - 500 - 2, (3, 5) 40 - 600 - 3
    let x = Dense::from_rows(&[[1.0], [-1.0]]);
    let found = model.decision_function(&x).unwrap();
    let expected = [-563.0, 30.0, 500.0, 557.0, -28.0, -496.0];
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
    let decided: Vec<String> = model.predict(&x).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(decided, ["5", "7"]);
    let again = crate::io::model_from_bytes(&crate::io::model_to_bytes(&model).unwrap()).unwrap();
    assert_eq!(again.predictor, model.predictor);
    let text = crate::io::export_model(&model, crate::io::ExportFormat::Libsvm).unwrap().bytes;
    assert_eq!(load(&text).unwrap().predictor, model.predictor);
    let error = load(THREE.replace("-3 4 1:10", "-3 1:10").as_bytes()).unwrap_err().to_string();
    assert!(error.contains("line 10, column 4"), "{error}");
    let error = load(THREE.replace("nr_sv 1 1 1\n", "").as_bytes()).unwrap_err().to_string();
    assert!(error.contains("without a line nr_sv"), "{error}");
}

#[test]
fn a_linear_model_has_weights() {
    let text = GOOD.replace("kernel_type rbf\ngamma 0.5", "kernel_type linear");
    let model = load(text.as_bytes()).unwrap();
    assert_eq!(model.predictor.weights(), Some(&[2.0, -0.5][..]));
    assert_eq!(model.predictor.intercepts, [-0.25]);
}

/// Training rows 4 and 2.
const VALUES: &str = "svm_type c_svc\nkernel_type precomputed\nnr_class 2\ntotal_sv 2\nrho 0.25\nlabel 1 -1\nnr_sv 1 1\nSV\n\
                      2 0:4 \n-1 0:2 \n";

#[test]
fn a_precomputed_kernel_takes_the_columns_of_its_support_vectors() {
    let x = Dense::from_rows(&[[9.0, 1.0, 9.0, 3.0], [9.0, -1.0, 9.0, 0.5]]);
    for (labels, sign) in [("1 -1", 1.0), ("-1 1", -1.0)] {
        let mut model = load(VALUES.replace("1 -1", labels).as_bytes()).unwrap();
        assert_eq!(model.classes().iter().map(ToString::to_string).collect::<Vec<_>>(), ["-1", "1"]);
        assert_eq!((model.predictor.features, &model.predictor.support[..]), (4, &[1, 3][..]));
        assert_eq!(model.decision_function(&x).unwrap(), [sign * 4.75, sign * 1.75]);
        // there were more training rows than the last support vector
        assert!(model.widen(3).is_err());
        model.widen(6).unwrap();
        let wide = Dense::from_rows(&[[9.0, 1.0, 9.0, 3.0, 9.0, 9.0]]);
        assert_eq!(model.decision_function(&wide).unwrap(), [sign * 4.75]);
        // and what is saved is read back
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        crate::io::save_model(&model, &path).unwrap();
        assert_eq!(load_model(&path).unwrap().decision_function(&wide).unwrap(), [sign * 4.75]);
    }
}

#[test]
fn a_precomputed_kernel_is_read_as_it_is_exported() {
    let x = Dense::from_rows(&[[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 2.0]]);
    let y = ["a", "b", "b"];
    let model = crate::Truncated::new(1.0).kernel(crate::Kernel::Precomputed).fit(&x, &y).unwrap();
    let exported = crate::io::export_model(&model, crate::io::ExportFormat::Libsvm).unwrap();
    let mut again = load(&exported.bytes).unwrap();
    again.widen(3).unwrap();
    assert_eq!(again.decision_function(&x).unwrap(), model.decision_function(&x).unwrap());
}

#[test]
fn refusals_of_a_precomputed_kernel() {
    let refused = |from: &str, to: &str, expected: &str| {
        assert!(VALUES.contains(from), "{from}");
        let error = load(VALUES.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n  lacks {expected}");
    };
    refused("0:4", "1:4", "line 9, column 3: \"1:4\" is not of the form 0:number");
    refused("0:4", "0:x", "line 9, column 3: \"0:x\" is not of the form 0:number");
    refused("0:4", "0:0", "line 9, column 3: training row 0: rows count from 1");
    refused("0:4", "0:5000000000", "line 9, column 3: training row 5000000000");
    refused("0:4", "0:4 1:1", "line 9, column 7: \"1:1\" after the number of a training row");
    refused(" 0:4", "", "a support vector without its row");
    refused("0:4", "0:2", "training row 2 twice");
    let three = THREE.replace("kernel_type linear", "kernel_type precomputed");
    assert!(load(three.as_bytes()).unwrap_err().to_string().contains("precomputed kernel of more than two classes"));
}

#[test]
fn refusals_name_the_file_the_line_and_the_place() {
    let refused = |from: &str, to: &str, expected: &str| {
        assert!(GOOD.contains(from), "{from}");
        let error = load(GOOD.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n  lacks {expected}");
    };
    refused("c_svc", "epsilon_svr", "line 1, column 10: svm_type \"epsilon_svr\" is no classifier");
    refused("rbf", "spline", "line 2, column 13: kernel_type \"spline\" is not supported");
    refused("gamma 0.5", "gamma x", "line 3, column 7: \"x\" is not a number");
    refused("gamma 0.5", "gamma", "line 3, column 6: \"gamma\" has no value");
    refused("gamma 0.5", "gamma -1", "gamma = -1 is not allowed");
    refused("gamma 0.5", "gamma nan", "line 3");
    refused("gamma 0.5\n", "", "without a line gamma");
    refused("nr_class 2", "nr_class 1", "line 4, column 10: a classifier needs two classes");
    refused("nr_class 2", "nr_class 3", "line 6, column 9: \"rho\" must have a value for each pair of classes");
    refused("nr_class 2", "nr_class 18446744073709551615", "line 6, column 9: \"rho\" must have");
    refused("label 1 -1", "nr_class 3", "line 7, column 1: nr_class twice");
    refused("nr_class 2\n", "", "line 5, column 1: \"rho\" before nr_class");
    refused("total_sv 2", "total_sv 3", "nr_sv 1 1 do not add up to total_sv 3");
    refused("nr_sv 1 1\n", "nr_sv 18446744073709551615 1\n", "do not add up");
    refused(
        "total_sv 2\nrho 0.25\nlabel 1 -1\nnr_sv 1 1",
        "total_sv 9\nrho 0.25\nlabel 1 -1\nnr_sv 8 1",
        "2 support vectors, but total_sv 9",
    );
    refused("-1 2:0.5 \n", "-1 2:0.5\n3 1:1\n", "line 12: a support vector beyond the 2");
    refused("label 1 -1", "label 1 1", "line 7, column 9: the label 1 twice");
    refused("label 1 -1", "label 1", "line 7, column 8: \"label\" must have a value for each class");
    refused("label 1 -1", "label yes no", "the label \"yes\" is not a whole number");
    refused("rho 0.25", "tau 0.25", "line 6, column 1: \"tau\" is no line of a LIBSVM model");
    refused("SV\n", "", "line 9, column 1");
    refused("1:1", "0:1", "line 10, column 3: feature index 0");
    refused("1:1", "5000000000:1", "line 10, column 3: feature index 5000000000");
    refused("1:1", "1:inf", "line 10, column 5");
    refused("1:1", "2:1 1:1", "line 10, column 7: feature index 1 after 2");
    refused("1:1", "one", "line 10, column 3: \"one\" is not of the form index:value");
    refused("rbf\ngamma 0.5", "polynomial\ngamma 0.5\ndegree 99", "degree = 99");
}

#[test]
fn an_index_out_of_all_proportion_costs_no_memory() {
    let linear = GOOD.replace("kernel_type rbf\ngamma 0.5", "kernel_type linear").replace("2:0.5", "4294967294:0.5");
    let error = load(linear.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("4294967294 features for 2 values"), "{error}");
    let model = load(GOOD.replace("2:0.5", "4294967294:0.5").as_bytes()).unwrap();
    assert_eq!(model.predictor.features, 4294967294);
}

proptest! {
    #[test]
    fn no_change_of_a_byte_makes_it_panic(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut text = [GOOD, THREE, VALUES][at.index(3)].as_bytes().to_vec();
        let place = at.index(text.len());
        text[place] = byte;
        if let Ok(model) = load(&text) {
            let x = Dense::new(1, model.predictor.features.min(1000), vec![1.0; model.predictor.features.min(1000)]).unwrap();
            let _ = model.decision_function(&x);
        }
        let _ = load(&text[..place]);
    }
}
