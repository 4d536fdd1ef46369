//! Fit, predict and evaluate agree with each other, whatever way the data come in.

use super::common::Folder;
use std::io::{Read, Write};
use std::process::Stdio;

/// Two groups on a line and across it, one label wrong in row 1; classes by name.
fn people() -> String {
    let mut text = "age,\"in,come\",kind\n5,5.5,low\n".to_string();
    for step in 0..40 {
        let spread = f64::from(step % 8) / 8.0;
        let (sign, kind) = if step % 2 == 0 { (-1.0, "low") } else { (1.0, "\"very, high\"") };
        text += &format!("{},{},{kind}\n", sign * (1.5 + spread), sign * 2.0 + spread - 0.5);
    }
    text
}

const FIT: [&str; 8] = ["fit", "train.csv", "--kernel", "linear", "-C", "5", "-o", "model"];

fn fitted() -> Folder {
    let folder = Folder::new();
    folder.file("train.csv", people());
    folder.run(&FIT).good();
    folder
}

#[test]
fn the_summary_shows_the_wrong_label() {
    let folder = Folder::new();
    folder.file("train.csv", people());
    let text = folder.run(&FIT).good();
    for word in ["41 rows, 2 features", "low (21), very, high (20)", "truncated at -1", "outliers", "model      model"]
    {
        assert!(text.contains(word), "{word} in {text}");
    }
    let json = folder.run(&[&FIT[..], &["--json", "--outliers", "rows.csv"]].concat()).json();
    assert_eq!(json["rows"], 41);
    assert_eq!(json["status"], "converged");
    assert_eq!(json["outliers"], 1);
    assert_eq!(json["worst_outliers"][0]["row"], 1);
    assert_eq!(json["worst_outliers"][0]["line"], 2);
    assert_eq!(json["worst_outliers"][0]["label"], "low");
    assert!(json["worst_outliers"][0]["margin"].as_f64().unwrap() < -1.0);
    assert!(json["objective"].as_f64().unwrap() > 0.0 && json["solver"].is_string());
    let rows = std::fs::read_to_string(folder.path("rows.csv")).unwrap();
    let lines: Vec<&str> = rows.lines().collect();
    assert_eq!((lines.len(), lines[0]), (42, "row,line,label,margin,outlier,score"));
    assert!(lines[1].starts_with("1,2,low,-") && lines[1].contains(",true,"), "{}", lines[1]);
    assert!(lines[3].starts_with("3,4,\"very, high\",") && lines[3].contains(",false,"), "{}", lines[3]);
    assert_eq!(folder.names(), ["model", "rows.csv", "train.csv"]);
}

#[test]
fn predict_and_evaluate_agree() {
    let folder = fitted();
    let predictions = folder.run(&["predict", "model", "train.csv"]).good();
    let lines: Vec<&str> = predictions.lines().collect();
    assert_eq!((lines.len(), lines[0]), (42, "prediction,decision"));
    assert!(lines[1].starts_with("\"very, high\","), "{}", lines[1]);
    assert!(lines[2].starts_with("low,-"), "{}", lines[2]);
    folder.run(&["predict", "model", "train.csv", "-o", "out.csv"]).good();
    assert_eq!(std::fs::read_to_string(folder.path("out.csv")).unwrap(), predictions);

    let json = folder.run(&["predict", "model", "train.csv", "--json"]).json();
    let decisions: Vec<f64> = json["decisions"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    let printed: Vec<f64> = lines[1..].iter().map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect();
    assert_eq!(decisions, printed);

    let json = folder.run(&["evaluate", "model", "train.csv", "--json"]).json();
    assert_eq!((&json["rows"], &json["correct"]), (&41.into(), &40.into()));
    assert_eq!(json["confusion"]["counts"], serde_json::json!([[20, 1], [0, 20]]));
    assert_eq!(json["accuracy"].as_f64().unwrap(), 40.0 / 41.0);
    let text = folder.run(&["evaluate", "model", "train.csv"]).good();
    assert!(text.contains("0.9756 (1 wrong)") && text.contains("very, high"), "{text}");
}

#[test]
fn a_finding_ends_with_code_1() {
    let folder = fitted();
    let ran = folder.run(&["evaluate", "model", "train.csv", "--fail-below", "0.99"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("accuracy") && ran.err.contains("below 0.99"));
    folder.run(&["evaluate", "model", "train.csv", "--fail-below", "0.9"]).good();
}

#[test]
fn columns_go_by_name() {
    let folder = fitted();
    folder.file("turned.csv", "id,\"in,come\",age\n7,2,1.5\n8,-2,-1.5\n");
    folder.file("straight.csv", "1.5,2\n-1.5,-2\n");
    let turned = folder.run(&["predict", "model", "turned.csv"]).good();
    assert_eq!(turned, folder.run(&["predict", "model", "straight.csv"]).good());
    folder.file("short.csv", "age,kind\n1,low\n");
    let error = folder.run(&["predict", "model", "short.csv"]).refused();
    assert!(error.contains("there is no column \"in,come\", which the model needs"), "{error}");
    folder.file("narrow.csv", "1\n2\n");
    assert!(folder.run(&["predict", "model", "narrow.csv"]).refused().contains("the model has 2 features"));
    assert!(folder.run(&["evaluate", "model", "straight.csv"]).refused().contains("no target column"));
}

#[test]
fn standard_input_and_gzip_give_the_same_model() {
    let folder = fitted();
    let model = std::fs::read(folder.path("model")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(people().as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    folder.file("train.csv.gz", &packed);
    for (data, input) in [("train.csv.gz", &b""[..]), ("-", people().as_bytes()), ("-", &packed)] {
        let arguments = ["fit", data, "--kernel", "linear", "-C", "5", "-o", "again"];
        folder.run_with_input(&arguments, input).good();
        assert_eq!(std::fs::read(folder.path("again")).unwrap(), model, "{data}");
    }
    let piped = folder.run_with_input(&["predict", "model", "-"], people().as_bytes()).good();
    assert_eq!(piped, folder.run(&["predict", "model", "train.csv"]).good());
}

#[test]
fn sparse_and_dense_text_agree() {
    let folder = fitted();
    let mut sparse = String::new();
    for line in people().lines().skip(1) {
        let fields: Vec<&str> = line.splitn(3, ',').collect();
        let label = if fields[2] == "low" { "-1" } else { "+1" };
        sparse += &format!("{label} 1:{} 2:{}\n", fields[0], fields[1]);
    }
    folder.file("train.svm", sparse);
    folder.run(&["fit", "train.svm", "--kernel", "rbf", "--gamma", "0.5", "--tol", "1e-8", "-o", "sparse"]).good();
    folder.run(&["fit", "train.csv", "--kernel", "rbf", "--gamma", "0.5", "--tol", "1e-8", "-o", "dense"]).good();
    let decisions = |model: &str, data: &str| -> Vec<f64> {
        let json = folder.run(&["predict", model, data, "--json"]).json();
        json["decisions"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    };
    let (sparse, dense) = (decisions("sparse", "train.svm"), decisions("dense", "train.csv"));
    assert_eq!(sparse.len(), 41);
    // the gap of 1e-8 bounds the squared distance of the two functions: about 1e-4 of their size
    const TOLERANCE: f64 = 1e-3;
    for (a, b) in sparse.iter().zip(&dense) {
        assert!((a - b).abs() <= TOLERANCE * (1.0 + b.abs()), "{a} {b}");
    }
}

#[test]
fn options_reach_the_method() {
    let folder = Folder::new();
    folder.file("train.csv", people());
    let fit =
        |more: &[&str]| folder.run(&[&["fit", "train.csv", "--json", "--kernel", "linear"], more].concat()).json();
    assert_eq!(fit(&["--truncation", "none"])["truncation"], serde_json::Value::Null);
    assert_eq!(fit(&["--truncation", "none"])["outliers"], 0);
    assert_eq!(fit(&["--truncation", "-0.25", "-C", "0.5"])["truncation"], -0.25);
    assert_eq!(fit(&["--c", "0.5"])["c"], 0.5);
    let error = folder.run(&["fit", "train.csv", "--class-weight", "tall=2"]).refused();
    assert!(error.contains("--class-weight") && error.contains("low, very, high"), "{error}");
    assert!(folder.run(&["fit", "train.csv", "-C", "-1"]).refused().contains("C"));
    assert!(folder.run(&["fit", "train.csv", "--solver", "magic"]).refused().contains("magic"));
    folder.file("one.csv", "1,a\n2,a\n");
    folder.run(&["fit", "one.csv"]).refused();
}

#[test]
fn a_row_of_weight_zero_is_not_there() {
    let folder = Folder::new();
    let weighted = |line: (usize, &str)| match line.0 {
        0 => format!("w,{}\n", line.1),
        1 => format!("0,{}\n", line.1),
        _ => format!("1,{}\n", line.1),
    };
    folder.file("weighted.csv", people().lines().enumerate().map(weighted).collect::<String>());
    let without: Vec<&str> =
        people().leak().lines().enumerate().filter(|(row, _)| *row != 1).map(|(_, line)| line).collect();
    folder.file("without.csv", without.join("\n"));
    let objective = |arguments: &[&str]| {
        folder.run(&[arguments, &["--json", "--kernel", "linear", "--tol", "1e-8"]].concat()).json()["objective"]
            .as_f64()
            .unwrap()
    };
    let (with, without) =
        (objective(&["fit", "weighted.csv", "--weight-column", "w"]), objective(&["fit", "without.csv"]));
    const TOLERANCE: f64 = 1e-6;
    assert!((with - without).abs() <= TOLERANCE * without.abs(), "{with} {without}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = fitted();
    let rows: String = (0..200_000).map(|row| format!("{},{}\n", row % 7, row % 5)).collect();
    folder.file("many.csv", rows);
    let mut child = folder
        .command(&["predict", "model", "many.csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 19];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"prediction,decision");
    drop(out);
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8(ended.stderr).unwrap()), (Some(0), String::new()));
}

/// A pipe nobody reads from.
fn closed() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}

#[test]
fn the_verdict_does_not_depend_on_a_reader() {
    let folder = fitted();
    for (bound, code) in [("0.99", 1), ("0.9", 0)] {
        let arguments = ["evaluate", "model", "train.csv", "--fail-below", bound];
        let ended = folder.command(&arguments).stdout(closed()).stderr(closed()).status().unwrap();
        assert_eq!(ended.code(), Some(code), "{bound}");
    }
    let ended = folder.command(&["fit", "none.csv"]).stderr(closed()).status().unwrap();
    assert_eq!(ended.code(), Some(2));
}

#[test]
fn a_dash_is_standard_output_for_every_writer() {
    let folder = fitted();
    let model = std::fs::read(folder.path("model")).unwrap();
    let ran = folder.command(&[&FIT[..7], &["-"]].concat()).output().unwrap();
    assert_eq!((ran.status.code(), ran.stdout), (Some(0), model));
    assert!(String::from_utf8(ran.stderr).unwrap().contains("model      standard output"));
    let ran = folder.run(&["fit", "train.csv", "--kernel", "linear", "--outliers", "-"]);
    assert!(ran.out.starts_with("row,line,label,") && ran.err.contains("objective"), "{}", ran.err);
    let predictions = folder.run(&["predict", "model", "train.csv", "-o", "-"]).good();
    assert_eq!(predictions, folder.run(&["predict", "model", "train.csv"]).good());
    let picture = folder.run(&["demo", "-o", "-", "--rows", "50", "--save-data", "new/data"]);
    assert!(picture.out.starts_with("<svg") && picture.err.contains("test error"));
    assert!(folder.path("new/data/test.csv").exists() && !folder.path("-").exists());
}

#[test]
fn columns_can_be_ignored_and_row_numbers_are() {
    let folder = fitted();
    let numbered = people().lines().enumerate().fold(String::new(), |text, (row, line)| match row {
        0 => format!(",name,{line}\n"),
        _ => text + &format!("{},person,{line}\n", row - 1),
    });
    folder.file("numbered.csv", numbered);
    assert!(folder.run(&["fit", "numbered.csv"]).refused().contains("--ignore"));
    let arguments = ["fit", "numbered.csv", "--kernel", "linear", "-C", "5", "-o", "again", "--ignore", "name"];
    let ran = folder.run(&arguments);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.starts_with("note: column 1 has no name"), "{}", ran.err);
    assert_eq!(std::fs::read(folder.path("again")).unwrap(), std::fs::read(folder.path("model")).unwrap());
    let both = [&arguments[..], &["--ignore", "1", "--quiet"]].concat();
    assert_eq!((folder.run(&both).err, folder.run(&both).code), (String::new(), 0));
    assert_eq!(std::fs::read(folder.path("again")).unwrap(), std::fs::read(folder.path("model")).unwrap());
    folder.run(&["evaluate", "again", "numbered.csv", "--target", "kind"]).good();
}

#[test]
fn a_failed_write_keeps_the_old_model() {
    let folder = fitted();
    let old = std::fs::read(folder.path("model")).unwrap();
    let error = folder.run(&["fit", "train.csv", "-o", "no/such/model"]).refused();
    assert!(error.contains("no/such/model"), "{error}");
    folder.file("bad.csv", "1,2,a\n1,x,b\n");
    folder.run(&["fit", "bad.csv", "-o", "model"]).refused();
    assert_eq!(std::fs::read(folder.path("model")).unwrap(), old);
}

#[cfg(unix)]
#[test]
fn names_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let data = OsStr::from_bytes(b"d\xff.csv");
    let model = OsStr::from_bytes(b"m\xff");
    folder.file(data, people());
    let fit = folder.command(&["fit", "--kernel", "linear", "--json"]).arg(data).arg("-o").arg(model).output().unwrap();
    assert!(fit.status.success(), "{}", String::from_utf8_lossy(&fit.stderr));
    assert!(folder.path(model).exists());
    let evaluate = folder.command(&["evaluate"]).arg(model).arg(data).output().unwrap();
    assert!(evaluate.status.success());
}

#[test]
fn quiet_is_quiet() {
    let folder = fitted();
    let ran = folder.run(&[&FIT[..], &["--quiet"]].concat());
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
}
