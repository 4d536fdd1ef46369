//! Probabilities, and models that another program made: as the command shows them.

use super::common::Folder;
use serde_json::json;

/// Rows at x = 0, 1, ..., 9, the larger the more of them "yes".
fn rising(folder: &Folder) {
    let mut text = "x,kind\n".to_string();
    for x in 0..10 {
        for draw in 0..10 {
            text += &format!("{x},{}\n", if draw < x { "yes" } else { "no" });
        }
    }
    folder.file("train.csv", text);
}

#[test]
fn probabilities_are_kept_and_shown() {
    let folder = Folder::new();
    rising(&folder);
    folder.file("new.csv", "x\n1\n5\n9\n");
    let fit = ["fit", "train.csv", "--kernel", "linear", "--probability", "weighted", "-o", "model"];
    folder.run(&fit).good();
    let text = folder.run(&["predict", "model", "new.csv"]).good();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0], ["prediction", "decision", "probability no", "probability yes"]);
    let numbers = |line: &[&str]| -> Vec<f64> { line[1..].iter().map(|field| field.parse().unwrap()).collect() };
    for (line, expected) in lines[1..].iter().zip([0.1, 0.5, 0.9]) {
        let found = numbers(line);
        assert!((found[1] + found[2] - 1.0).abs() < 1e-12 && (found[2] - expected).abs() < 0.12, "{line:?}");
    }
    let json = folder.run(&["predict", "model", "new.csv", "--json"]).json();
    assert_eq!(json["probabilities"].as_array().unwrap().len(), 3);
    let refused = folder.run(&["fit", "train.csv", "--method", "lq", "--probability", "weighted"]);
    assert!(refused.code == 2 && refused.err.contains("--probability is no option of --method lq"), "{}", refused.err);
    folder.run(&["fit", "train.csv", "--kernel", "linear", "-o", "plain"]).good();
    assert_eq!(folder.run(&["predict", "plain", "new.csv", "--json"]).json()["probabilities"], json!(null));
}

#[test]
fn classes_beyond_32_bits_are_numbered_for_libsvm() {
    let folder = Folder::new();
    folder.file("d.csv", "x,y\n0,1\n1,1\n4,5000000000\n5,5000000000\n");
    folder.run(&["fit", "d.csv", "--kernel", "linear", "-o", "model"]).good();
    let run = folder.run(&["export", "model", "--format", "libsvm", "-o", "theirs"]);
    let note = "note: the format knows whole numbers of 32 bits as classes only: 0 = 1, 1 = 5000000000";
    assert!(run.code == 0 && run.err.contains(note), "{}", run.err);
}

const LIBSVM: &str = "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 2 1\nnr_sv 1 1\nSV\n\
                      1 1:1 \n-1 2:1 \n";

#[test]
fn models_of_libsvm_predict() {
    let folder = Folder::new();
    folder.file("theirs", LIBSVM);
    folder.file("new.svm", "2 1:1\n1 2:1\n2 1:1 2:0.5\n");
    let json = folder.run(&["predict", "theirs", "new.svm", "--json"]).json();
    assert_eq!(json["predictions"], json!([2, 1, 2]));
    assert!((json["decisions"][0].as_f64().unwrap() - (1.0 - (-1.0f64).exp())).abs() < 1e-12, "{json}");
    assert_eq!(folder.run(&["evaluate", "theirs", "new.svm", "--json"]).json()["accuracy"], json!(1.0));
    // a column that no support vector has
    folder.file("wide.svm", "2 1:1 7:1\n");
    let refused = folder.run(&["predict", "theirs", "wide.svm"]);
    assert!(refused.code == 2 && refused.err.contains("there are 2 features"), "{}", refused.err);
    let json = folder.run(&["predict", "theirs", "wide.svm", "--features", "7", "--json"]).json();
    let expected = (-0.5f64).exp() - (-1.5f64).exp();
    assert!((json["decisions"][0].as_f64().unwrap() - expected).abs() < 1e-12, "{json}");
    folder.run(&["export", "theirs", "--format", "json", "-o", "model.json"]).good();
    folder.file("bad", LIBSVM.replace("rbf", "spline"));
    let refused = folder.run(&["predict", "bad", "new.svm"]);
    assert!(refused.code == 2 && refused.err.contains("bad, line 2, column 13"), "{}", refused.err);
}
