//! Every method of the command on files that break programs: code 0 and finite numbers, or code 2 and a message.

use super::common::Folder;
use std::fmt::Write;

const METHODS: [&[&str]; 9] = [
    &["--method", "truncated"],
    &["--method", "truncated", "--kernel", "linear", "--penalty", "l1"],
    &["--method", "truncated", "--loss", "logistic"],
    &["--method", "capped"],
    &["--method", "lq"],
    &["--method", "reh"],
    &["--method", "rod", "--inlier-fraction", "0.8"],
    &["--method", "centroid"],
    &["--method", "loo"],
];

/// Rows of two classes, each value given by the row, the column and what is usual there.
fn rows(count: usize, value: impl Fn(usize, usize, f64) -> f64) -> String {
    let mut text = String::from("a,b,c,y\n");
    let mut state = 1u64;
    for row in 0..count {
        for column in 0..3 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let usual = (state >> 33) as f64 / f64::from(1u32 << 30) - 1.0 + 0.8 * (row % 2) as f64;
            write!(text, "{:e},", value(row, column, usual)).unwrap();
        }
        writeln!(text, "{}", ["no", "yes"][row % 2]).unwrap();
    }
    text
}

#[test]
fn every_method_on_every_hostile_file() {
    let folder = Folder::new();
    let mut classes = String::new();
    (0..100_000).for_each(|class| writeln!(classes, "1,class{class}").unwrap());
    // what must be refused, with a word of the message
    let refused = [
        ("empty.csv", String::new(), "is empty"),
        ("header.csv", "a,b,y\n".to_string(), "no data"),
        ("one-row.csv", "1,2,a\n".to_string(), "class"),
        ("one-class.csv", "1,a\n2,a\n".to_string(), "two classes"),
        ("no-columns.csv", "a\nb\n".to_string(), "column"),
        ("nan.csv", "1,2,a\nnan,3,b\n".to_string(), "line 2, column 1"),
        ("infinite.csv", "1,2,a\n-inf,3,b\n".to_string(), "line 2, column 1"),
        ("overflow.csv", "1,2,a\n1e400,3,b\n".to_string(), "line 2, column 1"),
        ("classes.csv", classes, "100000 distinct values"),
        ("index.svm", "1 1:1\n0 99999999999999999999:1\n".to_string(), "line 2"),
        ("beyond.svm", "1 1:1\n0 4294967296:1\n".to_string(), "line 2"),
    ];
    let taken = [
        ("constant.csv", rows(12, |_, column, usual| if column == 1 { 7.0 } else { usual })),
        ("constants.csv", rows(12, |_, _, _| 3.0)),
        ("zeros.csv", rows(12, |_, _, _| 0.0)),
        ("duplicates.csv", rows(12, |row, column, _| (row % 2 + column) as f64)),
        ("collinear.csv", rows(12, |row, _, _| row as f64)),
        ("spaces.csv", "x,y\n1,a\n2,\"a \"\n3,b\n4, b\n".to_string()),
        ("wide.svm", "1 1:1 1000000:2\n0 2:1 999999:1\n1 1:2\n0 3:1\n".to_string()),
    ];
    let scaled =
        [1e-300, 1e-200, 1e200, 1e300].map(|scale| (format!("{scale:e}.csv"), rows(12, move |_, _, x| x * scale)));
    for (name, text, _) in &refused {
        folder.file(name, text);
    }
    for (name, text) in &taken {
        folder.file(name, text);
    }
    for (name, text) in &scaled {
        folder.file(name, text);
    }
    for method in METHODS {
        for (name, _, word) in &refused {
            let error = folder.run(&[&["fit", name, "-o", "model"], method].concat()).refused();
            assert!(error.contains(word), "{method:?} {name}: {error}");
            assert!(!folder.path("model").exists(), "{method:?} {name}");
        }
        for name in taken.iter().map(|(name, _)| *name) {
            let json = folder.run(&[&["fit", name, "--json", "-o", "model"], method].concat()).json();
            assert!(json["objective"].as_f64().is_some_and(f64::is_finite), "{method:?} {name}: {json}");
            folder.run(&["predict", "model", name, "-o", "predictions"]).good();
            std::fs::remove_file(folder.path("model")).unwrap();
        }
        for (name, _) in &scaled {
            let ran = folder.run(&[&["fit", name, "--json"], method].concat());
            match ran.code {
                0 => assert!(ran.json()["objective"].as_f64().is_some_and(f64::is_finite), "{method:?} {name}"),
                _ => {
                    let error = ran.refused();
                    assert!(error.contains("scale"), "{method:?} {name}: {error}");
                }
            }
        }
    }
}
