//! The L_q machine, the choice of its parameters, and models in the forms of other programs: as the command shows them.

use super::common::Folder;
use serde_json::{Value, json};

/// Two columns count, four do not; some labels are wrong.
fn table(classes: &[&str]) -> String {
    let mut text = "age,income,a,b,c,d,kind\n".to_string();
    let mut state = 7u64;
    let mut draw = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f64 / (1u64 << 23) as f64 - 1.0
    };
    for row in 0..120 {
        let class = row % classes.len();
        let angle = std::f64::consts::TAU * class as f64 / classes.len() as f64;
        let shown = if row % 11 == 0 { (class + 1) % classes.len() } else { class };
        let near = [1.2 * angle.cos() + draw(), 1.2 * angle.sin() + draw()];
        let rest: Vec<String> = (0..4).map(|_| draw().to_string()).collect();
        text += &format!("{},{},{},{}\n", near[0], near[1], rest.join(","), classes[shown]);
    }
    text
}

#[test]
fn from_fit_to_predict() {
    let folder = Folder::new();
    for classes in [&["no", "yes"][..], &["a", "b", "c"]] {
        folder.file("train.csv", table(classes));
        let fit = ["fit", "train.csv", "--method", "lq", "--q", "0.5", "-C", "0.1", "-o", "model"];
        let text = folder.run(&fit).good();
        assert!(text.contains("penalty sum |w|^q with q = 0.5, C = 0.1"), "{text}");
        assert!(text.contains("of 6 features: age"), "{text}");
        let json = folder.run(&[&fit[..], &["--json"]].concat()).json();
        assert_eq!((&json["method"], &json["details"]["q"]), (&json!("lq"), &json!(0.5)));
        assert!(json["selected_features"].as_array().unwrap().contains(&json!("age")));
        let evaluated = folder.run(&["evaluate", "model", "train.csv", "--json"]).json();
        assert!(evaluated["accuracy"].as_f64().unwrap() > 0.7, "{evaluated}");
    }
    let squares = ["fit", "train.csv", "--method", "lq", "--feature-map", "squares", "-o", "model"];
    folder.run(&squares).good();
    assert_eq!(folder.run(&["predict", "model", "train.csv"]).good().lines().count(), 121);
    let robust = ["fit", "train.csv", "--kernel", "linear", "--penalty", "lq", "--q", "0.7", "--json"];
    assert_eq!(folder.run(&robust).json()["details"]["q"], json!(0.7));
}

#[test]
fn costs_come_from_a_file() {
    let folder = Folder::new();
    folder.file("train.csv", table(&["no", "yes"]));
    folder.file("cost.csv", "no,yes\n0,1\n20,0\n");
    let fit = ["fit", "train.csv", "--method", "lq", "--cost", "cost.csv", "-o", "model"];
    let text = folder.run(&fit).good();
    assert!(text.contains("cost.csv") && !text.contains("utilities"), "{text}");
    let json = folder.run(&[&fit[..], &["--json"]].concat()).json();
    assert_eq!((&json["cost_form"], &json["cost"]), (&json!("direct"), &json!([[0.0, 1.0], [20.0, 0.0]])));
    let wrong = folder.run(&["evaluate", "model", "train.csv", "--json"]).json();
    let counts = &wrong["confusion"];
    // a missed yes costs twenty times a false one
    let plain = folder.run(&["fit", "train.csv", "--method", "lq", "-o", "plain"]);
    plain.good();
    let other = folder.run(&["evaluate", "plain", "train.csv", "--json"]).json();
    assert_ne!(counts, &other["confusion"]);
    folder.file("cost.csv", "no,yes\n0,1\n20,1e-300\n");
    let tune = ["tune", "train.csv", "--method", "lq", "--cost", "cost.csv"];
    for told in [folder.run(&fit).refused(), folder.run(&tune).refused()] {
        assert!(told.contains("cost.csv, line 3") && told.contains("1e-300 for a right decision"), "{told}");
    }
}

#[test]
fn values_of_a_grid_are_refused_by_the_name_of_their_list() {
    let folder = Folder::new();
    folder.file("train.csv", table(&["no", "yes"]));
    for (list, value) in [("--qs", "0"), ("--qs", "0.5,3"), ("--cs", "0.1,0")] {
        let told = folder.run(&["tune", "train.csv", "--method", "lq", list, value]).refused();
        assert!(told.contains(&format!("{list} ")), "{told}");
    }
}

#[test]
fn tune_chooses_writes_and_shows() {
    let folder = Folder::new();
    folder.file("train.csv", table(&["no", "yes"]));
    let tune = ["tune", "train.csv", "--method", "lq", "--cs", "6", "--qs", "0.5,1,2", "--cv", "3"];
    let files = ["-o", "model", "--plot", "grid.svg", "--grid", "grid.csv"];
    let text = folder.run(&[&tune[..], &files].concat()).good();
    for words in [
        "chosen",
        " ± ",
        "over 3 folds",
        "18 points (3 of q x 6 of C)",
        "standardized",
        "in splits",
        "age",
        "std. error",
        "selected",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let grid = std::fs::read_to_string(folder.path("grid.csv")).unwrap();
    assert_eq!(grid.lines().count(), 1 + 18);
    // selected, objective, converged, chosen
    assert_eq!(grid.lines().filter(|line| line.split(',').nth(9) == Some("true")).count(), 1);
    assert!(grid.lines().skip(1).all(|line| line.split(',').nth(8) == Some("true")));
    let json = folder.run(&[&tune[..], &["--json"]].concat()).json();
    let points = json["grid"].as_array().unwrap();
    assert_eq!(points.len(), 18);
    let least = points.iter().map(|point| point["error"].as_f64().unwrap()).fold(f64::INFINITY, f64::min);
    assert_eq!(json["error"].as_f64(), Some(least));
    assert_eq!(json["fit"]["details"]["q"], json["chosen"]["q"]);
    assert_eq!((&json["measure"], &json["standardize"]), (&json!("error"), &json!(true)));
    assert!(points.iter().all(|point| point["standard_error"].as_f64().is_some() && point["selected"].is_u64()));
    // three panels over six C: errors with their bars, sizes, and the coefficients that are not 0 everywhere at the chosen q
    let picture = std::fs::read_to_string(folder.path("grid.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    assert_eq!(picture.matches("class=\"title\"").count(), 3);
    let q = json["chosen"]["q"].as_f64().unwrap();
    for words in [">error<", ">selected columns<", &format!(">coefficients, q = {q}<"), ">q 0.5<", ">q 1<", ">q 2<"] {
        assert!(picture.contains(words), "{words} in {picture}");
    }
    let lines: Vec<&str> = picture.lines().filter(|line| line.starts_with("<polyline")).collect();
    let places = |line: &&str| line.split('"').nth(1).unwrap().split(' ').count();
    assert!(lines.iter().all(|line| places(line) == 6), "{lines:?}");
    let sizes = points.iter().filter(|point| point["q"].as_f64() == Some(q)).map(|point| point["selected"].as_u64());
    let largest = sizes.flatten().max().unwrap() as usize;
    assert!(largest > 0 && (3 + 3 + largest..=3 + 3 + 6).contains(&lines.len()), "{largest}, {lines:?}");
    assert_eq!((picture.matches("class=\"bar\"").count(), picture.matches("<circle").count()), (18, 2));
    // the same by a set of its own
    folder.file("tune.csv", table(&["no", "yes"]));
    let own = ["tune", "train.csv", "--method", "lq", "--cs", "0.1,1", "--tuning", "tune.csv", "--json"];
    let json = folder.run(&own).json();
    folder.file("turned.csv", table(&["no", "yes"]).replacen("age,income", "income,age", 1));
    let turned = ["tune", "train.csv", "--method", "lq", "--tuning", "turned.csv"];
    assert!(folder.run(&turned).refused().contains("in the same order"));
    assert_eq!((&json["cv"], json["grid"][0]["fold_errors"].as_array().map(Vec::len)), (&Value::Null, Some(1)));
}

#[test]
fn tune_has_the_rules_and_judges_of_the_other_methods() {
    let folder = Folder::new();
    folder.file("train.csv", table(&["no", "yes"]));
    folder.file("cost.csv", "no,yes\n0,1\n20,0\n");
    let run = |more: &[&str]| {
        let tune = ["tune", "train.csv", "--method", "lq", "--cs", "5", "--qs", "0.5,1", "--json"];
        folder.run(&[&tune[..], more].concat()).json()
    };
    let (best, simple) = (run(&[]), run(&["--rule", "one_se"]));
    let size = |found: &Value| found["fit"]["selected_features"].as_array().unwrap().len();
    assert!(size(&simple) <= size(&best));
    assert_eq!(run(&["--nested", "3", "--cv", "2"])["nested"]["fold_errors"].as_array().map(Vec::len), Some(3));
    let held = run(&["--holdout", "0.3"]);
    assert_eq!((&held["holdout"], &held["cv"]), (&json!(0.3), &Value::Null));
    assert_eq!(run(&["--cost", "cost.csv"])["measure"], json!("mean cost"));
    assert_eq!(run(&["--no-standardize"])["standardize"], json!(false));
    assert_eq!(run(&["--n-jobs", "1"])["grid"], best["grid"]);
}

#[test]
fn tune_refuses_what_it_can_t_do() {
    let folder = Folder::new();
    folder.file("train.csv", table(&["no", "yes"]));
    for (arguments, words) in [
        (&["tune", "train.csv", "--method", "centroid"][..], "tune chooses for"),
        (&["tune", "train.csv", "--method", "lq", "-C", "1"], "--cs"),
        (&["tune", "train.csv", "--method", "lq", "--q", "1"], "--qs"),
        (&["tune", "train.csv", "--method", "lq", "--qs", "0"], "--qs 0"),
        (&["tune", "train.csv", "--method", "lq", "--cs=-1,1"], "--cs -1"),
        (&["tune", "train.csv", "--method", "lq", "--cv", "1"], "--cv 1"),
        (&["tune", "train.csv", "--method", "lq", "--halving"], "--halving is no option"),
        (&["tune", "train.csv", "--method", "lq", "--holdout", "2"], "holdout"),
        (&["tune", "train.csv", "--method", "lq", "--nested", "1"], "nested"),
        (&["fit", "train.csv", "--method", "lq", "--kernel", "rbf"], "kernel"),
        (&["fit", "train.csv", "--method", "lq", "--truncation", "0"], "--truncation"),
        (&["fit", "train.csv", "--method", "reh", "--q", "1"], "--q"),
        (&["fit", "train.csv", "--q", "0.5"], "--q is an option of --penalty lq"),
        (
            &["fit", "train.csv", "--kernel", "linear", "--penalty", "l1", "--q", "0.5"],
            "--q is an option of --penalty lq",
        ),
    ] {
        let said = folder.run(arguments).refused();
        assert!(said.contains(words), "{words} in {said}");
    }
}

/// The paper's algorithm certifies nothing, and says so.
#[test]
fn the_paper_s_algorithm_has_no_gap() {
    let folder = Folder::new();
    folder.file("train.csv", table(&["no", "yes"]));
    let fit = ["fit", "train.csv", "--method", "lq", "--q", "0.5", "--solver", "lqa", "-o", "model"];
    let json = folder.run(&[&fit[..], &["--json"]].concat()).json();
    assert_eq!((&json["gap"], &json["status"]), (&Value::Null, &json!("converged")));
    assert!(folder.run(&fit).good().contains("nothing certified"));
    folder.run(&["evaluate", "model", "train.csv"]).good();
    let short = folder.run(&[&fit[..], &["--max-iter", "2"]].concat());
    let said = short.err;
    assert!(said.contains("iteration limit") && !said.contains("gap"), "{said}");
}

#[test]
fn odd_columns_are_taken_and_bad_values_refused() {
    let folder = Folder::new();
    let plain = table(&["no", "yes"]);
    folder.file("train.csv", &plain);
    let objective = |file: &str, q: &str| {
        folder.run(&["fit", file, "--method", "lq", "--q", q, "-C", "0.3", "--json"]).json()["objective"]
            .as_f64()
            .unwrap()
    };
    // age once more, and a constant
    let doubled: Vec<String> = plain
        .lines()
        .enumerate()
        .map(|(line, text)| {
            let age = if line == 0 { "again" } else { text.split(',').next().unwrap() };
            format!("{age},{},{text}", if line == 0 { "constant" } else { "7" })
        })
        .collect();
    folder.file("doubled.csv", doubled.join("\n") + "\n");
    for q in ["0.5", "1"] {
        let (one, two) = (objective("train.csv", q), objective("doubled.csv", q));
        assert!((one - two).abs() < 1e-5 * one, "q {q}: {one} {two}");
    }
    for (q, words) in [("0", "--q 0"), ("-1", "--q -1"), ("2.5", "--q 2.5"), ("nan", "--q NaN")] {
        let said = folder.run(&["fit", "train.csv", "--method", "lq", &format!("--q={q}")]).refused();
        assert!(said.contains(words), "{words} in {said}");
    }
    folder.file("infinite.csv", plain.replacen("0.", "inf", 1));
    let said = folder.run(&["fit", "infinite.csv", "--method", "lq"]).refused();
    assert!(said.contains("infinite.csv"), "{said}");
}

#[test]
fn models_leave_in_other_forms() {
    let folder = Folder::new();
    folder.file("train.csv", table(&["no", "yes"]));
    folder.run(&["fit", "train.csv", "-o", "model"]).good();
    let text = folder.run(&["export", "model", "--format", "libsvm", "-o", "-"]).good();
    assert!(text.starts_with("svm_type c_svc\nkernel_type rbf\ngamma "), "{text}");
    folder.run(&["export", "model", "--format", "onnx", "-o", "model.onnx"]).good();
    assert!(std::fs::metadata(folder.path("model.onnx")).unwrap().len() > 1000);
    let json = folder.run(&["export", "model", "--format", "json", "-o", "-"]).good();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["classes"], json!(["no", "yes"]));
    let said = folder.run(&["export", "model", "--format", "liblinear", "-o", "linear"]).refused();
    assert!(said.contains("the model a linear one"), "{said}");
    assert!(!folder.path("linear").exists());
}
