//! `outlast fit --stream`: data larger than the memory it is given; and Parquet files, which every command reads.

use super::common::Folder;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Relative difference of objectives: rows are kept in 32 bits.
const SAME: f64 = 1e-5;
const COLUMNS: usize = 20;

/// A table of two classes with some wrong labels, by a generator that has nothing to do with ours.
fn table(rows: usize, mut seed: u64) -> String {
    let mut next = move || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as f64 / (1u64 << 31) as f64
    };
    let mut text: String = (1..=COLUMNS).map(|column| format!("x{column},")).collect();
    text.push_str("y\n");
    for _ in 0..rows {
        let positive = next() < 0.4;
        for column in 0..COLUMNS {
            let middle = if positive { 0.15 } else { -0.1 } * ((column % 5) as f64 - 1.0);
            let value = middle + next() + next() + next() - 1.5;
            // a column far from 0 keeps its digits
            let value = if column == 3 { value + 1e5 } else { value };
            write!(text, "{value:.4},").unwrap();
        }
        let wrong = next() < 0.05;
        text.push_str(if positive != wrong { "yes\n" } else { "no\n" });
    }
    text
}

fn fitted(folder: &Folder, arguments: &[&str]) -> Value {
    serde_json::from_str(&folder.run(arguments).good()).unwrap()
}

fn objective(answer: &Value) -> f64 {
    answer["objective"].as_f64().unwrap()
}

#[test]
fn more_rows_than_memory_give_the_same_model() {
    let folder = Folder::new();
    let whole = table(120_000, 7);
    let (header, rows) = whole.split_once('\n').unwrap();
    let half = rows[..rows.len() / 2].rfind('\n').unwrap() + 1;
    folder.file("all.csv", &whole);
    folder.file("a.csv", format!("{header}\n{}", &rows[..half]));
    folder.file("b.csv", format!("{header}\n{}", &rows[half..]));
    folder.file("few.csv", whole.lines().take(2000).collect::<Vec<_>>().join("\n"));
    let common = ["--kernel", "linear", "-C", "0.01", "--tol", "1e-7", "--json"];
    let run = |arguments: &[&str]| fitted(&folder, &[arguments, &common].concat());
    for truncation in ["none", "auto"] {
        let wanted = run(&["fit", "all.csv", "--truncation", truncation, "-o", "whole.outlast"]);
        let streamed = ["fit", "a.csv", "b.csv", "--stream", "--memory", "64MB", "--truncation", truncation];
        let found = run(&[&streamed[..], &["-o", "streamed.outlast"]].concat());
        assert_eq!(found["solver"], "linear-stream");
        assert_eq!(found["rows"], wanted["rows"]);
        assert_eq!(found["files"], json!(["a.csv", "b.csv"]));
        assert_eq!(found["status"], "converged");
        // nothing is known about single rows
        assert!(found["support_vectors"].is_null() && found["classes"][0]["outliers"].is_null(), "{found}");
        assert!(found["outliers"].is_u64() && wanted["support_vectors"].is_u64(), "{found}");
        let (found, wanted) = (objective(&found), objective(&wanted));
        assert!(found <= wanted * (1.0 + SAME), "{found} is above {wanted}");
        assert!(truncation == "auto" || (found - wanted).abs() <= SAME * wanted, "{found} is not {wanted}");
    }
    let told = ["fit", "a.csv", "b.csv", "--stream", "--memory", "64MB", "--kernel", "linear", "-C", "0.01"];
    let told = folder.run(&told).good();
    assert!(told.contains("a.csv and 1 other file: 120000 rows"), "{told}");
    let accuracy =
        |model: &str| fitted(&folder, &["evaluate", model, "few.csv", "--json"])["accuracy"].as_f64().unwrap();
    assert!((accuracy("streamed.outlast") - accuracy("whole.outlast")).abs() < 2e-3);
    assert!(!folder.names().iter().any(|name| name.contains("tmp")), "{:?}", folder.names());
}

#[test]
fn other_methods_give_the_same_model() {
    let folder = Folder::new();
    // fewer rows would be read whole
    folder.file("all.csv", table(110_000, 11));
    let methods: [&[&str]; 4] = [
        &["--kernel", "linear", "--penalty", "l1", "-C", "0.01"],
        &["--method", "lq", "--q", "1", "-C", "0.01"],
        &["--method", "capped", "--p", "2", "--cap", "4", "-C", "0.01"],
        &["--method", "capped", "--p", "1", "--cap", "2", "-C", "0.01"],
    ];
    for method in methods {
        let wanted = fitted(&folder, &[&["fit", "all.csv", "--json"], method].concat());
        let found = fitted(&folder, &[&["fit", "all.csv", "--stream", "--memory", "64MB", "--json"], method].concat());
        assert_eq!(found["solver"], "linear-stream");
        assert_eq!(found["status"], "converged", "{method:?}: {found}");
        let (found, wanted) = (objective(&found), objective(&wanted));
        assert!(found <= wanted * (1.0 + 1e-4), "{method:?}: {found} is above {wanted}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn memory_is_kept_to() {
    let folder = Folder::new();
    folder.file("data.csv", table(400_000, 3));
    let arguments = ["fit", "--stream", "data.csv", "--memory", "64MB", "--kernel", "linear", "-C", "0.01", "-q"];
    let mut child = folder.command(&arguments).spawn().unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let found =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok());
        peak = found.unwrap_or(0).max(peak);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(child.wait().unwrap().success());
    println!("peak {peak} kB");
    // the rows alone are 64 MB in double precision
    assert!((1_000..64_000u64).contains(&peak), "the resident set was {peak} kB at its largest");
}

#[test]
fn few_rows_are_fitted_in_memory() {
    let folder = Folder::new();
    folder.file("few.csv", table(300, 1));
    let common = ["--kernel", "linear", "--json"];
    let wanted = fitted(&folder, &[&["fit", "few.csv"][..], &common].concat());
    let found = fitted(&folder, &[&["fit", "--stream", "few.csv"][..], &common].concat());
    assert_eq!((&found["objective"], &found["solver"]), (&wanted["objective"], &wanted["solver"]));
}

#[test]
fn files_without_rows_are_passed_over() {
    let folder = Folder::new();
    let some = table(300, 1);
    folder.file("some.csv", &some);
    folder.file("header.csv", some.lines().next().unwrap());
    folder.file("empty.csv", "");
    let fit = |files: &[&str]| {
        objective(&fitted(&folder, &[&["fit", "--stream", "--kernel", "linear", "--json"], files].concat()))
    };
    let wanted = fit(&["some.csv"]);
    for files in [["some.csv", "header.csv", "empty.csv"], ["header.csv", "some.csv", "empty.csv"]] {
        assert_eq!(fit(&files), wanted, "{files:?}");
    }
    let refused = folder.run(&["fit", "--stream", "--kernel", "linear", "header.csv", "empty.csv"]).refused();
    assert!(refused.contains("header.csv: the file has a header and no data"), "{refused}");
    // columns are compared all the same
    folder.file("other.csv", "colour,label\n");
    let refused = folder.run(&["fit", "--stream", "--kernel", "linear", "some.csv", "other.csv"]).refused();
    assert!(refused.contains("other.csv"), "{refused}");
}

/// Weights that are all 0 leave three classes level: the first is predicted, and a third of the rows is right.
#[test]
fn rows_of_classes_that_are_level_are_counted_as_predictions_are() {
    let folder = Folder::new();
    folder.file("d.csv", (0..300).map(|row| format!("{},{}\n", row * 7919 % 101, row % 3)).collect::<String>());
    let ran = folder.run(&["fit", "d.csv", "--kernel", "linear", "--penalty", "l1", "-C", "1e-9", "--no-intercept"]);
    assert!(ran.code == 0 && ran.err.contains("decides 100 of 300 rightly"), "{}", ran.err);
}

#[test]
fn what_goes_not_with_it_is_refused() {
    let folder = Folder::new();
    folder.file("a.csv", "x,y\n1,0\n2,1\n");
    folder.file("b.csv", "z,y\n1,0\n2,1\n");
    let refused = |arguments: &[&str]| folder.run(arguments).refused();
    assert!(refused(&["fit", "a.csv", "a.csv"]).contains("only with --stream"));
    assert!(refused(&["fit", "--stream", "a.csv"]).contains("--kernel"));
    assert!(refused(&["fit", "--stream", "a.csv", "--kernel", "linear", "--loss", "logistic"]).contains("--loss"));
    assert!(refused(&["fit", "--stream", "a.csv", "--method", "reh"]).contains("rows in chunks"));
    assert!(refused(&["fit", "--stream", "a.csv", "--method", "capped", "--kernel", "rbf"]).contains("--kernel"));
    assert!(refused(&["fit", "--stream", "a.csv", "b.csv", "--kernel", "linear"]).contains("no column \"x\""));
    assert!(refused(&["fit", "--stream", "a.csv", "--kernel", "linear", "--outliers", "o.csv"]).contains("--outliers"));
    for memory in ["512", "1MB", "many", "-1GB"] {
        let said = folder.run(&["fit", "--stream", "a.csv", "--kernel", "linear", "--memory", memory]);
        assert_eq!(said.code, 2, "{memory}");
    }
}

#[test]
fn libsvm_text_gives_the_same_model() {
    let folder = Folder::new();
    // fewer rows would be read whole
    let csv = table(110_000, 13);
    let mut text = String::new();
    for line in csv.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        text.push_str(if fields[COLUMNS] == "yes" { "+1" } else { "-1" });
        for (column, value) in fields[..COLUMNS].iter().enumerate() {
            // what is not written is 0
            let value: f64 = value.parse().unwrap();
            let near = value.abs() < 0.3;
            write!(text, "{}", if near { String::new() } else { format!(" {}:{value}", column + 1) }).unwrap();
        }
        text.push('\n');
    }
    folder.file("all.svm", &text);
    let half = text[..text.len() / 2].rfind('\n').unwrap() + 1;
    folder.file("a.svm", &text[..half]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &text.as_bytes()[half..]).unwrap();
    folder.file("b.svm.gz", gzip.finish().unwrap());
    let methods: [&[&str]; 2] = [
        &["--kernel", "linear", "--truncation", "none", "-C", "0.01", "--tol", "1e-7"],
        &["--method", "capped", "--p", "2", "--cap", "4", "-C", "0.01"],
    ];
    for method in methods {
        let wanted = fitted(&folder, &[&["fit", "all.svm", "--json"], method].concat());
        let streamed = ["fit", "a.svm", "b.svm.gz", "--stream", "--memory", "64MB", "--json"];
        let found = fitted(&folder, &[&streamed, method].concat());
        assert_eq!((&found["solver"], &found["rows"]), (&json!("linear-stream"), &json!(110_000)));
        assert_eq!(found["status"], "converged", "{method:?}: {found}");
        let (found, wanted) = (objective(&found), objective(&wanted));
        assert!(found <= wanted * (1.0 + 1e-4), "{method:?}: {found} is above {wanted}");
        assert!(method[0] != "--kernel" || (found - wanted).abs() <= SAME * wanted, "{found} is not {wanted}");
    }
}

#[test]
fn a_number_taken_for_classes_is_refused_where_it_is_met() {
    let folder = Folder::new();
    let csv: String = (0..9000).map(|row| format!("{},{}\n", row % 7, 0.5 + f64::from(row / 3))).collect();
    folder.file("numbers.csv", format!("x,y\n{csv}"));
    folder.file("numbers.svm", (0..9000).map(|row| format!("{}.5 1:{}\n", row / 3, row % 7)).collect::<String>());
    for (file, line) in [("numbers.csv", 3002), ("numbers.svm", 3001)] {
        let refused = folder.run(&["fit", "--stream", file, "--kernel", "linear"]).refused();
        assert!(refused.contains(&format!("line {line}")) && refused.contains(file), "{refused}");
        assert!(refused.contains("is y a number to predict?"), "{refused}");
    }
}

#[test]
fn reading_counts_towards_the_time_limit() {
    let folder = Folder::new();
    folder.file("data.csv", table(120_000, 5));
    let limited = ["fit", "--stream", "data.csv", "--memory", "64MB", "--kernel", "linear", "--time-limit", "0.001"];
    let refused = folder.run(&limited).refused();
    assert!(refused.contains("before all rows were read") && refused.contains("--time-limit"), "{refused}");
}

#[test]
fn every_command_reads_parquet() {
    let folder = Folder::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../outlast/tests/parquet_data");
    for name in ["table.csv", "snappy.parquet", "zstd_v2.parquet"] {
        folder.file(name, std::fs::read(from.join(name)).unwrap());
    }
    let options = ["--ignore", "f", "--target", "kind", "--json"];
    let wanted = fitted(&folder, &[&["fit", "table.csv", "-o", "m"][..], &options].concat());
    for name in ["snappy.parquet", "zstd_v2.parquet"] {
        let found = fitted(&folder, &[&["fit", name][..], &options].concat());
        assert_eq!(found["objective"], wanted["objective"], "{name}");
        assert_eq!(folder.run(&["predict", "m", name]).good(), folder.run(&["predict", "m", "table.csv"]).good());
        let evaluated = |name: &str| {
            let answer = fitted(&folder, &["evaluate", "m", name, "--target", "kind", "--json"]);
            answer["accuracy"].clone()
        };
        assert_eq!(evaluated(name), evaluated("table.csv"));
        assert!(folder.run(&["gamma", name, "--ignore", "f", "--target", "kind"]).good().contains("median"));
        folder.run(&[&["audit", name, "--html", "page.html"][..], &options].concat()).good();
        let piped = folder.run_with_input(&["predict", "m", "-"], &std::fs::read(folder.path(name)).unwrap());
        assert_eq!(piped.good(), folder.run(&["predict", "m", "table.csv"]).good());
        let grid = ["tune", name, "--cs", "1,10", "--cv", "3"];
        folder.run(&[&grid[..], &options].concat()).good();
    }
}
