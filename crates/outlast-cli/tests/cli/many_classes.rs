//! More than two classes, utilities and costs, selected variables: as the command shows them.

use super::common::Folder;
use serde_json::{Value, json};

/// Three groups that only two columns together tell apart, two useless columns, one label wrong in row 1; classes by name.
fn three() -> String {
    let mut text = "east,north,noise,more,kind\n3,0,0.1,0.2,\"south, far\"\n".to_string();
    for step in 0..60u32 {
        let (a, b) = (f64::from(step % 7) / 7.0 - 0.5, f64::from(step % 11) / 11.0 - 0.5);
        let (east, north, kind) =
            [(3.0, 0.0, "left"), (0.0, 3.0, "right"), (0.0, 0.0, "\"south, far\"")][step as usize % 3];
        let (noise, more) = (f64::from(step * 37 % 23) / 23.0, f64::from(step * 29 % 19) / 19.0);
        text += &format!("{},{},{noise},{more},{kind}\n", east + a, north + b);
    }
    text
}

/// Two groups on a line.
fn two() -> String {
    (0..20).fold("x,y\n".to_string(), |text, step| {
        let spread = f64::from(step % 5) / 5.0;
        text + &if step % 2 == 0 { format!("{},no\n", -1.0 - spread) } else { format!("{},yes\n", 1.0 + spread) }
    })
}

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

#[test]
fn three_classes_from_fit_to_evaluate() {
    let folder = Folder::new();
    folder.file("train.csv", three());
    let fit = ["fit", "train.csv", "--kernel", "linear", "-C", "1", "-o", "model"];
    let text = folder.run(&fit).good();
    for word in ["left (20), right (20), south, far (21)", "truncated at -0.5", "1 row: south, far (1)"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let json = folder.run(&[&fit[..], &["--json"]].concat()).json();
    assert_eq!(json["classes"][2], json!({"class": "south, far", "rows": 21, "outliers": 1}));
    assert_eq!((&json["n_features_selected"], &json["utility"]), (&Value::Null, &Value::Null));

    let predictions = folder.run(&["predict", "model", "train.csv"]).good();
    let lines: Vec<&str> = predictions.lines().collect();
    assert_eq!((lines.len(), lines[0]), (62, "prediction,left,right,\"south, far\""));
    assert!(lines[1].starts_with("left,") && lines[4].starts_with("\"south, far\","), "{}", lines[4]);
    let json = folder.run(&["predict", "model", "train.csv", "--json"]).json();
    for (line, values) in lines[1..].iter().zip(json["decisions"].as_array().unwrap()) {
        let printed: Vec<f64> = line.rsplitn(4, ',').take(3).map(|value| value.parse().unwrap()).collect();
        let values = numbers(values);
        assert_eq!(printed, [values[2], values[1], values[0]]);
        let size = values.iter().fold(1.0f64, |size, value| size.max(value.abs()));
        assert!(values.iter().sum::<f64>().abs() < 1e-9 * size, "the functions sum to 0: {values:?}");
    }
    assert_eq!(json["counts"][0], json!({"class": "left", "rows": 21}));

    let json = folder.run(&["evaluate", "model", "train.csv", "--json"]).json();
    assert_eq!(json["confusion"]["counts"], json!([[20, 0, 0], [0, 20, 0], [1, 0, 20]]));
    assert_eq!((&json["average_utility"], &json["average_cost"]), (&Value::Null, &Value::Null));
    let text = folder.run(&["evaluate", "model", "train.csv"]).good();
    assert!(text.contains("true \\ predicted") && text.contains("0.9836 (1 wrong)"), "{text}");
}

#[test]
fn utilities_go_by_class_name_and_show_in_the_evaluation() {
    let folder = Folder::new();
    folder.file("train.csv", three());
    folder.file("sorted.csv", "left,right,\"south, far\"\n1,0.5,0\n0,1,0\n0.25,0,2\n");
    folder.file("named.csv", "true,\"south, far\",left,right\nright,0,0,1\n\"south, far\",2,0.25,0\nleft,0,1,0.5\n");
    let fit = |file: &str| {
        let out = format!("{file}.model");
        folder.run(&["fit", "train.csv", "--kernel", "linear", "--utility", file, "-o", &out, "--json"]).json()
    };
    let (sorted, named) = (fit("sorted.csv"), fit("named.csv"));
    assert_eq!(sorted["utility"], json!([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.25, 0.0, 2.0]]));
    assert_eq!((&sorted["utility"], &sorted["objective"]), (&named["utility"], &named["objective"]));
    let json = folder.run(&["evaluate", "named.csv.model", "train.csv", "--json"]).json();
    let counts: Vec<Vec<f64>> = json["confusion"]["counts"].as_array().unwrap().iter().map(numbers).collect();
    let utility = [[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.25, 0.0, 2.0]];
    let sum: f64 = (0..3).flat_map(|a| (0..3).map(move |b| (a, b))).map(|(a, b)| counts[a][b] * utility[a][b]).sum();
    assert!((json["average_utility"].as_f64().unwrap() - sum / 61.0).abs() < 1e-12);
    assert!(folder.run(&["evaluate", "named.csv.model", "train.csv"]).good().contains("average utility  "));
}

#[test]
fn costs_of_two_classes() {
    let folder = Folder::new();
    folder.file("train.csv", two());
    folder.file("cost.csv", "no,yes\n0,1\n5,0\n");
    let fit = ["fit", "train.csv", "--cost", "cost.csv", "-o", "model"];
    let text = folder.run(&fit).good();
    assert!(text.contains("cost       cost.csv, as utilities\n"), "{text}");
    assert!(folder.run(&["evaluate", "model", "train.csv"]).good().contains("average cost       0\n"));
    let text = folder.run(&[&fit[..], &["--cost-form", "direct"]].concat()).good();
    assert!(text.contains("in its direct form"), "{text}");
    let json = folder.run(&[&fit[..], &["--utility-baseline", "row_minimum", "--json"]].concat()).json();
    assert_eq!((&json["cost"], &json["utility_baseline"]), (&json!([[0.0, 1.0], [5.0, 0.0]]), &json!("row_minimum")));
}

#[test]
fn an_identity_of_utilities_is_none() {
    let folder = Folder::new();
    folder.file("train.csv", two());
    folder.file("identity.csv", "yes,no\n1,0\n0,1\n");
    let objective = |more: &[&str]| {
        let fit = ["fit", "train.csv", "--kernel", "linear", "--tol", "1e-9", "--json"];
        folder.run(&[&fit[..], more].concat()).json()["objective"].as_f64().unwrap()
    };
    let (with, without) = (objective(&["--utility", "identity.csv"]), objective(&[]));
    assert!((with - without).abs() <= 1e-7 * without, "{with} {without}");
}

#[test]
fn selected_variables_are_named() {
    let folder = Folder::new();
    folder.file("train.csv", three());
    for penalty in ["l1", "adaptive_l1"] {
        let fit = ["fit", "train.csv", "--kernel", "linear", "--penalty", penalty];
        let text = folder.run(&fit).good();
        assert!(text.contains("selected   2 of 4 features: east, north\n"), "{text}");
        let json = folder.run(&[&fit[..], &["--json"]].concat()).json();
        assert_eq!(json["selected_features"], json!(["east", "north"]));
        assert_eq!(json["n_features_selected"], 2);
    }
    // without names they are counted from 1
    let bare: String = three().lines().skip(1).map(|line| format!("{line}\n")).collect();
    folder.file("bare.csv", bare);
    let json = folder.run(&["fit", "bare.csv", "--kernel", "linear", "--penalty", "l1", "--json"]).json();
    assert_eq!(json["selected_features"], json!([1, 2]));
}

#[test]
fn a_matrix_that_does_not_fit_is_refused_with_its_place() {
    let folder = Folder::new();
    folder.file("train.csv", three());
    for (content, expected) in [
        (
            "left,right\n1,0\n0,1\n",
            "u.csv, line 1: the first row must hold the names of the classes of the data; missing: \"south, far\"",
        ),
        ("left,right,up\n1,0,0\n", "missing: \"south, far\"; unknown: \"up\""),
        ("left,right,\"south, far\"\n1,0,0\n0,1,0\n", "u.csv: there are 2 rows of values for 3 classes"),
        ("left,right,\"south, far\"\n1,0,-3\n", "u.csv, line 2, column 3 (\"south, far\"): -3 is negative"),
        ("left,right,\"south, far\"\n1,0,inf\n", "u.csv, line 2, column 3 (\"south, far\"): \"inf\" is infinite"),
        ("left,right,\"south, far\"\n0,0,0\n0,0,0\n0,0,0\n", "u.csv: every utility is 0"),
        ("", "u.csv: the file is empty"),
    ] {
        folder.file("u.csv", content);
        let error = folder.run(&["fit", "train.csv", "--utility", "u.csv", "-o", "model"]).refused();
        assert!(error.contains(expected), "{error}");
    }
    assert!(folder.run(&["fit", "train.csv", "--cost", "none.csv"]).refused().contains("none.csv: No such file"));
    assert!(!folder.path("model").exists());
}

#[test]
fn what_does_not_fit_together_is_refused_before_any_file_is_read() {
    let folder = Folder::new();
    for (arguments, expected) in [
        (&["--utility", "u.csv", "--cost", "c.csv"][..], "cannot be used with"),
        (&["--penalty", "l1"], "error: --penalty \"l1\" with the rbf kernel"),
        (&["--penalty", "adaptive_l1", "--kernel", "poly"], "error: --penalty \"adaptive_l1\" with the poly kernel"),
        (&["--penalty", "l7"], "l2, l1, adaptive_l1"),
        (
            &["--cost", "c.csv", "--cost-form", "direct", "--loss", "logistic"],
            "error: --cost-form \"direct\" with the logistic",
        ),
        (&["--cost-form", "direct"], "error: --cost-form \"direct\" with no cost matrix"),
        (&["--utility-baseline", "zero"], "keep, row_minimum"),
        (&["--truncation", "0.5"], "must be a number <= 0"),
    ] {
        let error = folder.run(&[&["fit", "none.csv"], arguments].concat()).refused();
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    let error = folder.run(&["fit", "-", "--cost", "-"]).refused();
    assert!(error.contains("can't both be standard input"), "{error}");
}

#[test]
fn widths_are_the_quartiles_of_the_distances_between_classes() {
    let folder = Folder::new();
    folder.file("d.csv", "0,a\n1,b\n2,c\n3,c\n");
    // between classes: 1 2 3 | 1 2, of which the quartiles are 1, 2, 2
    let json = folder.run(&["gamma", "d.csv", "--json"]).json();
    for (name, sigma) in [("q1", 1.0), ("median", 2.0), ("q3", 2.0)] {
        let found = (json[name]["gamma"].as_f64().unwrap(), json[name]["sigma"].as_f64().unwrap());
        assert!((found.1 - sigma).abs() < 1e-12 && (found.0 * 2.0 * sigma * sigma - 1.0).abs() < 1e-12, "{json}");
    }
    let text = folder.run(&["gamma", "d.csv"]).good();
    assert!(text.contains("quartile  gamma  sigma\nq1          0.5      1\nmedian    0.125      2\n"), "{text}");
    assert!(text.contains("a (1), b (1), c (2)"), "{text}");
    assert!(folder.run(&["gamma", "none.csv"]).refused().contains("none.csv"));
    folder.file("one.csv", "0,a\n1,a\n");
    assert!(folder.run(&["gamma", "one.csv"]).refused().contains("every row is of class \"a\""));
}

#[test]
fn a_hundred_classes() {
    let folder = Folder::new();
    let rows: String = (0..300).map(|row| format!("{},{},c{}\n", row % 100, row % 7, row % 100)).collect();
    folder.file("many.csv", rows);
    let text = folder.run(&["fit", "many.csv", "--gamma", "1", "-C", "10", "-o", "model"]).good();
    assert!(text.contains("88 more") && text.lines().all(|line| line.chars().count() < 400), "{text}");
    let text = folder.run(&["evaluate", "model", "many.csv"]).good();
    assert!(text.contains("kinds of mistakes"), "{text}");
    let lines = folder.run(&["predict", "model", "many.csv"]).good();
    assert_eq!(lines.lines().next().unwrap().split(',').count(), 101);
}
