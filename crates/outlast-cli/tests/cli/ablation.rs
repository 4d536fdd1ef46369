//! The methods beside the truncated loss, the search for a global optimum, and certificates: as the command shows them.

use super::common::Folder;
use serde_json::{Value, json};

/// Two groups on a line through 0 and one row with a wrong label far out.
fn far_row() -> String {
    let mut text = "x,z,kind\n40,1,no\n".to_string();
    for step in 0..20u32 {
        let spread = f64::from(step % 5) / 5.0;
        let (x, kind) = if step % 2 == 0 { (-1.0 - spread, "no") } else { (1.0 + spread, "yes") };
        text += &format!("{x},{},{kind}\n", f64::from(step % 3) - 1.0);
    }
    text
}

#[test]
fn every_method_from_fit_to_predict() {
    let folder = Folder::new();
    folder.file("train.csv", far_row());
    let methods: [(&[&str], &str); 5] = [
        (&["--method", "reh"], "relaxed robust hinge (reh)"),
        (&["--method", "reh", "--no-refine", "--kernel", "rbf", "--gamma", "0.1"], "not refined"),
        (&["--method", "rod", "--inlier-fraction", "0.9"], "0.9 of the weight kept"),
        (&["--method", "centroid", "--shift", "0.01"], "centroid machine, shift = 0.01"),
        (&["--method", "loo", "--factor", "0.5"], "leave-one-out machine, factor = 0.5"),
    ];
    for (method, words) in methods {
        let fit = [&["fit", "train.csv", "-o", "model"], method].concat();
        let text = folder.run(&fit).good();
        assert!(text.contains(words), "{words} in {text}");
        let json = folder.run(&[&fit[..], &["--json"]].concat()).json();
        assert_eq!((&json["method"], &json["status"]), (&json!(method[1]), &json!("converged")));
        let evaluated = folder.run(&["evaluate", "model", "train.csv", "--json"]).json();
        assert!(evaluated["accuracy"].as_f64().unwrap() > 0.9, "{method:?} {evaluated}");
        let predictions = folder.run(&["predict", "model", "train.csv"]).good();
        assert_eq!(predictions.lines().count(), 22);
    }
}

#[test]
fn ablation_shows_its_bound_and_the_far_row() {
    let folder = Folder::new();
    folder.file("train.csv", far_row());
    let fit = ["fit", "train.csv", "--method", "reh", "--outliers", "rows.csv"];
    let text = folder.run(&fit).good();
    assert!(text.contains("lower bound") && text.contains("1 row: no (1)"), "{text}");
    let json = folder.run(&["fit", "train.csv", "--method", "reh", "--json"]).json();
    let (bound, objective) = (json["details"]["lower_bound"].as_f64().unwrap(), json["objective"].as_f64().unwrap());
    assert!(0.0 < bound && bound <= objective, "{bound} {objective}");
    assert_eq!(json["worst_outliers"][0]["line"], 2);
    let rows = std::fs::read_to_string(folder.path("rows.csv")).unwrap();
    assert!(rows.lines().nth(1).unwrap().contains("true"), "{rows}");
}

#[test]
fn more_than_two_classes_are_set_against_each_other() {
    let folder = Folder::new();
    let mut text = "x,z,kind\n".to_string();
    for step in 0..30u32 {
        let (x, z, kind) = [(4.0, 0.0, "a"), (-4.0, 4.0, "b"), (-4.0, -4.0, "c")][step as usize % 3];
        let (by, more) = (f64::from(step % 7) / 7.0, f64::from(step % 5) / 5.0);
        text += &format!("{},{},{kind}\n", x + by, z + more);
    }
    folder.file("train.csv", text);
    for method in ["reh", "centroid", "loo"] {
        let text = folder.run(&["fit", "train.csv", "--method", method, "-o", "model"]).good();
        assert!(text.contains("each class against the others"), "{text}");
        let evaluated = folder.run(&["evaluate", "model", "train.csv", "--json"]).json();
        assert_eq!(evaluated["accuracy"], 1.0, "{method}");
    }
}

#[test]
fn the_global_optimum_is_searched_for_and_certified() {
    let folder = Folder::new();
    folder.file("train.csv", far_row());
    let fit =
        ["fit", "train.csv", "--truncation", "0", "--kernel", "linear", "--no-intercept", "-C", "0.1", "-o", "model"];
    let text = folder.run(&[&fit[..], &["--global"]].concat()).good();
    assert!(text.contains("proved globally optimal"), "{text}");
    let json = folder.run(&[&fit[..], &["--global", "--json"]].concat()).json();
    assert_eq!(json["details"]["proved"], 1.0);
    let certified = folder.run(&["certify", "model", "train.csv", "--json"]).json();
    let number = |value: &Value| value.as_f64().unwrap();
    assert!(number(&certified["lower_bound"]) <= number(&certified["objective"]));
    let difference = number(&certified["objective"]) - number(&json["objective"]);
    assert!(difference.abs() <= 1e-6 * number(&json["objective"]), "{certified} {json}");
    let text = folder.run(&["certify", "model", "train.csv"]).good();
    assert!(text.contains("lower bound") && text.contains('%'), "{text}");
    assert_eq!(folder.run(&["certify", "model", "train.csv", "--fail-above", "1"]).code, 0);
}

#[test]
fn what_can_not_be_certified_is_refused_by_name() {
    let folder = Folder::new();
    folder.file("train.csv", far_row());
    folder.file("other.csv", far_row().replace("yes", "maybe"));
    folder.run(&["fit", "train.csv", "--kernel", "linear", "-o", "model"]).good();
    let refused = folder.run(&["certify", "model", "train.csv"]).refused();
    assert!(refused.contains("truncated at -1") && refused.contains("truncated at 0"), "{refused}");
    folder.run(&["fit", "train.csv", "--truncation", "0", "-o", "model"]).good();
    let refused = folder.run(&["certify", "model", "other.csv"]).refused();
    assert!(refused.contains("maybe"), "{refused}");
}

#[test]
fn options_of_other_methods_are_refused() {
    let folder = Folder::new();
    folder.file("train.csv", far_row());
    let cases: [(&[&str], &[&str]); 8] = [
        (&["--method", "reh", "--truncation", "0"], &["--truncation", "--method reh", "truncated"]),
        (&["--method", "reh", "--inlier-fraction", "0.5"], &["--inlier-fraction", "rod"]),
        (&["--shift", "1"], &["--shift", "centroid"]),
        (&["--method", "loo", "-C", "1"], &["--c is no option of --method loo"]),
        (&["--method", "rod", "--inlier-fraction", "1.5"], &["(0, 1]"]),
        (&["--method", "loo", "--fit-intercept", "true"], &["--fit-intercept", "no intercept"]),
        (&["--global"], &["global_search", "truncation 0"]),
        (&["--global", "--truncation", "0", "--loss", "logistic"], &["global_search", "logistic", "hinge"]),
    ];
    for (options, words) in cases {
        let refused = folder.run(&[&["fit", "train.csv"], options].concat()).refused();
        assert!(words.iter().all(|word| refused.contains(word)), "{words:?} in {refused}");
    }
}
