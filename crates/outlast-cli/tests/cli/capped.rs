//! The capped machine as the command shows it.

use super::common::Folder;
use serde_json::json;

/// Three groups in the plane and two rows with a wrong label far out.
fn three_groups() -> String {
    let mut text = "x,z,kind\n-30,-30,a\n-28,-31,a\n".to_string();
    for step in 0..45u32 {
        let (x, z, kind) = [(2.0, 0.0, "a"), (-2.0, 2.0, "b"), (-2.0, -2.0, "c")][step as usize % 3];
        let spread = f64::from(step % 7) / 7.0 - 0.5;
        text += &format!("{},{},{kind}\n", x + spread, z + f64::from(step % 5) / 5.0 - 0.4);
    }
    text
}

#[test]
fn every_loss_from_fit_to_predict() {
    let folder = Folder::new();
    folder.file("train.csv", three_groups());
    let forms: [(&[&str], &str); 7] = [
        (&["--p", "2", "--cap", "4"], "residuals to the power 2, capped at 4, C = 1"),
        (&["--p", "0.5", "--cap-fraction", "0.05"], "residuals to the power 0.5, capped at"),
        (&["--cap", "inf"], "residuals to the power 1, not capped"),
        (&["--cap", "none"], "residuals to the power 1, not capped"),
        (&["--loss", "logistic", "--cap", "cv", "--kernel", "rbf"], "logistic loss"),
        (&["--loss", "geman_mcclure", "--cap", "2"], "geman_mcclure loss, capped at 2"),
        (&["--p", "2", "--solver", "alternating", "--max-iter", "2000"], "alternating"),
    ];
    for (form, words) in forms {
        let fit = [&["fit", "train.csv", "--method", "capped", "-o", "model"], form].concat();
        let text = folder.run(&fit).good();
        assert!(text.contains(words), "{words} in {text}");
        let json = folder.run(&[&fit[..], &["--json"]].concat()).json();
        assert_eq!((&json["method"], &json["status"]), (&json!("capped"), &json!("converged")), "{form:?}");
        let evaluated = folder.run(&["evaluate", "model", "train.csv", "--json"]).json();
        // the two far rows spoil the fit that may not give them up
        let least = if form.contains(&"inf") || form.contains(&"none") { 0.5 } else { 0.9 };
        assert!(evaluated["accuracy"].as_f64().unwrap() > least, "{form:?} {evaluated}");
    }
    let json = folder.run(&["fit", "train.csv", "--method", "capped", "--p", "2", "--cap", "4", "--json"]).json();
    assert_eq!(json["outliers"], json!(2));
    assert_eq!((&json["details"]["cap"], &json["details"]["power"]), (&json!(4.0), &json!(2.0)));
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let folder = Folder::new();
    folder.file("train.csv", three_groups());
    let cases: [(&[&str], &str); 8] = [
        (&["--method", "capped", "--p", "0"], "--p 0 is not allowed"),
        (&["--method", "capped", "--p", "3"], "--p 3 is not allowed"),
        (&["--method", "capped", "--cap", "0"], "must be a number > 0"),
        (&["--method", "capped", "--cap", "never"], "must be a number > 0, auto, cv or none"),
        (&["--method", "capped", "--cap-fraction", "1"], "--cap-fraction 1 is not allowed"),
        (&["--method", "capped", "--loss", "hinge"], "lp, logistic, geman_mcclure"),
        (&["--method", "capped", "--truncation", "0"], "--truncation is no option of --method capped"),
        (&["--p", "2"], "--p is no option of --method truncated"),
    ];
    for (options, words) in cases {
        let text = folder.run(&[&["fit", "train.csv"], options].concat()).refused();
        assert!(text.contains(words), "{words} in {text}");
    }
}

#[test]
fn a_cap_below_every_loss_warns() {
    let folder = Folder::new();
    folder.file("train.csv", three_groups());
    let fit = ["fit", "train.csv", "--method", "capped", "--p", "2", "--c", "1e-6", "--cap", "1e-3", "--json"];
    assert_eq!(folder.run(&fit).json()["status"], json!("all_capped"));
}
