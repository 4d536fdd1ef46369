//! `outlast tune` for the methods that share one search.

use super::common::Folder;
use serde_json::{Value, json};

/// Two rings on columns of different sizes; one label in eleven is wrong.
fn rings(rows: usize) -> String {
    let mut text = "east,north,kind\n".to_string();
    let mut state = 5u64;
    let mut draw = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    for row in 0..rows {
        let (class, angle) = (row % 2, std::f64::consts::TAU * draw());
        let radius = 1.0 + class as f64 + 0.5 * draw();
        let shown = if row % 11 == 0 { 1 - class } else { class };
        text += &format!("{},{},{}\n", radius * angle.cos(), 1000.0 * radius * angle.sin(), ["in", "out"][shown]);
    }
    text
}

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect()
}

#[test]
fn tune_chooses_writes_and_shows() {
    let folder = Folder::new();
    folder.file("train.csv", rings(160));
    let tune =
        ["tune", "train.csv", "--cs", "0.1,1,10", "--truncations", "auto,none", "--cv", "3", "--no-early-stopping"];
    let files = ["-o", "model", "--plot", "grid.svg", "--grid", "grid.csv"];
    let text = folder.run(&[&tune[..], &files].concat()).good();
    for words in
        ["chosen", "over 3 folds", "18 points (2 of truncation x 3 of gamma x 3 of C)", "standardized", "std. error"]
    {
        assert!(text.contains(words), "{words} in {text}");
    }
    let grid = std::fs::read_to_string(folder.path("grid.csv")).unwrap();
    assert_eq!(grid.lines().count(), 1 + 18);
    let head = "penalty,truncation,gamma,C,error,standard_error,state,train_share,chosen,error_1,error_2,error_3";
    assert_eq!(grid.lines().next(), Some(head));
    assert_eq!(grid.matches(",true,").count(), 1);
    let picture = std::fs::read_to_string(folder.path("grid.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("class=\"bar\"") && !picture.contains("NaN"));
    let json = folder.run(&[&tune[..], &["--json"]].concat()).json();
    assert_eq!((&json["status"], &json["measure"], &json["cv"]), (&json!("converged"), &json!("error"), &json!(3)));
    let points = json["grid"].as_array().unwrap();
    assert_eq!(points.len(), 18);
    let chosen = points
        .iter()
        .find(|point| ["truncation", "gamma", "C"].iter().all(|name| point[*name] == json["chosen"][*name]));
    assert_eq!(chosen.unwrap()["error"], json["error"]);
    let least = points.iter().map(|point| point["error"].as_f64().unwrap()).fold(f64::INFINITY, f64::min);
    assert_eq!(json["error"].as_f64(), Some(least));
    for point in points {
        let errors = numbers(&point["fold_errors"]);
        assert!((errors.iter().sum::<f64>() / 3.0 - point["error"].as_f64().unwrap()).abs() < 1e-12);
    }
    // the model holds the scale of its columns
    let evaluated = folder.run(&["evaluate", "model", "train.csv", "--json"]).json();
    assert!(evaluated["accuracy"].as_f64().unwrap() > 0.85, "{evaluated}");
    folder.run(&["export", "model", "--format", "onnx", "-o", "model.onnx"]).good();
    assert!(folder.run(&["export", "model", "--format", "libsvm", "-o", "other"]).refused().contains("one scale"));
}

#[test]
fn rules_halving_nesting_and_parts_held_out() {
    let folder = Folder::new();
    folder.file("train.csv", rings(200));
    folder.file("more.csv", rings(60));
    let run = |more: &[&str]| folder.run(&[&["tune", "train.csv", "--cv", "3", "--json"], more].concat()).json();
    let (best, simple) = (run(&[]), run(&["--rule", "one_se"]));
    let c = |found: &Value| found["chosen"]["C"].as_f64().unwrap();
    assert!(c(&simple) <= c(&best));
    assert_eq!(best["grid"].as_array().unwrap().len(), 27);
    assert!(best["grid"].as_array().unwrap().iter().any(|point| point["state"] == "stopped"));
    let nested = run(&["--cs", "1,10", "--gammas", "scale", "--nested", "3"]);
    assert_eq!(numbers(&nested["nested"]["fold_errors"]).len(), 3);
    let halved = run(&["--halving"]);
    assert!(halved["grid"].as_array().unwrap().iter().any(|point| point["train_share"].as_f64().unwrap() < 0.2));
    let held = folder.run(&["tune", "train.csv", "--holdout", "0.3", "--json"]).json();
    assert_eq!((&held["holdout"], &held["cv"]), (&json!(0.3), &Value::Null));
    let other = folder.run(&["tune", "train.csv", "--tuning", "more.csv", "--cs", "1", "--json"]).json();
    assert_eq!(other["tuning"], json!("more.csv"));
    // the same seed, the same answer on one core
    assert_eq!(run(&["--n-jobs", "1"])["grid"], best["grid"]);
}

#[test]
fn other_methods_costs_and_single_values() {
    let folder = Folder::new();
    folder.file("train.csv", rings(90));
    folder.file("cost.csv", "in,out\n0,1\n5,0\n");
    let run = |more: &[&str]| {
        folder.run(&[&["tune", "train.csv", "--cv", "2", "--cs", "0.1,1", "--json"], more].concat()).json()
    };
    let capped = run(&["--method", "capped", "--ps", "1,2", "--cap-fractions", "0,0.1"]);
    assert_eq!(capped["grid"].as_array().unwrap().len(), 8);
    assert_eq!(run(&["--method", "capped", "--cap", "3"])["chosen"]["cap"], json!(3.0));
    let rod = run(&["--method", "rod", "--inlier-fractions", "0.8,1"]);
    assert_eq!(rod["grid"].as_array().unwrap().len(), 4);
    assert_eq!(run(&["--method", "reh"])["grid"].as_array().unwrap().len(), 2);
    let costly = run(&["--cost", "cost.csv", "--gamma", "median"]);
    assert_eq!((&costly["measure"], &costly["chosen"]["gamma"]), (&json!("mean cost"), &json!("median")));
    let plain = run(&["--kernel", "linear", "--truncation", "-0.5", "--no-standardize"]);
    assert_eq!((&plain["standardize"], &plain["chosen"]["truncation"]), (&json!(false), &json!(-0.5)));
}

#[test]
fn mistakes_are_refused_by_name() {
    let folder = Folder::new();
    folder.file("train.csv", rings(40));
    folder.file("rare.csv", rings(40).replacen(",in\n", ",rare\n", 1));
    let refused = |more: &[&str], words: &str| {
        let said = folder.run(&[&["tune", "train.csv"], more].concat()).refused();
        assert!(said.contains(words), "{words} in {said}");
    };
    refused(&["-C", "1"], "--cs");
    refused(&["--cs", "1,nan"], "-C NaN");
    refused(&["--cs", "0,1"], "-C 0");
    refused(&["--gammas", "wide"], "gamma");
    refused(&["--truncations", "0.5"], "truncation");
    refused(&["--penalties", "l1"], "penalty");
    refused(&["--kernel", "linear", "--gammas", "1"], "gamma");
    refused(&["--ps", "1"], "--ps is no option of --method truncated, but of capped");
    refused(&["--method", "loo"], "tune chooses for");
    refused(&["--method", "lq", "--gammas", "1"], "--gammas");
    refused(&["--holdout", "2"], "holdout");
    refused(&["--cv", "1"], "cv");
    refused(&["--nested", "1"], "nested");
    let said = folder.run(&["tune", "rare.csv"]).refused();
    assert!(said.contains("leaves no row of class \"rare\""), "{said}");
}

/// Three clouds in four columns; with a factor, one row is that much further out.
fn clouds(factor: f64) -> String {
    let mut state = 3u64;
    let mut draw = || {
        let mut sum = -6.0;
        for _ in 0..12 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            sum += (state >> 33) as f64 / f64::from(1u32 << 31);
        }
        sum
    };
    let mut text = "a,b,c,d,kind\n".to_string();
    for row in 0..300 {
        let (x, y) = [(-1.5, 0.0), (1.5, 0.0), (0.0, 2.2)][row % 3];
        let times = if row == 17 { factor } else { 1.0 };
        let values = [x + draw(), y + draw(), draw(), draw()].map(|value| format!("{:.4}", times * value));
        text += &format!("{},{}\n", values.join(","), ["x", "y", "z"][row % 3]);
    }
    text
}

#[test]
fn one_far_row_does_not_spoil_the_scale() {
    let folder = Folder::new();
    folder.file("clean.csv", clouds(1.0));
    for kernel in ["rbf", "linear"] {
        let accuracy = |factor: f64| {
            folder.file("train.csv", clouds(factor));
            let tune =
                ["tune", "train.csv", "--cs", "0.1,1,10", "--cv", "3", "--kernel", kernel, "-o", "model", "--quiet"];
            folder.run(&tune).good();
            folder.run(&["evaluate", "model", "clean.csv", "--json"]).json()["accuracy"].as_f64().unwrap()
        };
        let clean = accuracy(1.0);
        assert!(clean > 0.8, "{kernel}: {clean}");
        for factor in [1e4, 1e9] {
            let far = accuracy(factor);
            // by plain means and deviations of the columns it falls to 0.66 and less
            assert!(far > clean - 0.05, "{kernel}: {far} with a row {factor:e} times as far out, {clean} without");
        }
    }
}

#[test]
fn too_little_time_is_said_in_plain_words() {
    let folder = Folder::new();
    folder.file("train.csv", rings(60));
    for method in ["truncated", "lq"] {
        let ran = folder.run(&["tune", "train.csv", "--method", method, "--time-limit", "0.000001"]).refused();
        assert!(ran.contains("the time was up before a single point of the grid was judged"), "{ran}");
        assert!(ran.contains("hint: raise --time-limit"), "{ran}");
    }
}

#[test]
fn a_choice_at_the_end_of_its_list_is_pointed_out() {
    let folder = Folder::new();
    folder.file("train.csv", rings(120));
    let text = folder.run(&["tune", "train.csv", "--cs", "0.00001,0.00002,0.00003", "--cv", "3"]).good();
    let line = text.lines().find(|line| line.starts_with("at the end")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("of its 3 values") && line.contains("a better one may lie beyond"), "{line}");
}
