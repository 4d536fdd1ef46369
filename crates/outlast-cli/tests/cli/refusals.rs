//! Bad usage and bad input: exit code 2, a message that names the place, nothing written, no panic.

use super::common::Folder;

/// Nothing that is read is written over, under no name.
#[test]
fn what_is_read_is_not_overwritten() {
    let folder = Folder::new();
    let table: String = (0..40).map(|row| format!("{},{}\n", row % 2 * 3 + row % 5, row % 2)).collect();
    folder.file("d.csv", &table);
    folder.file("decisions.csv", "row,decision,label\n3,drop,\n");
    folder.run(&["fit", "d.csv", "-o", "m"]).good();
    let model = std::fs::read(folder.path("m")).unwrap();
    for arguments in [
        &["fit", "d.csv", "-o", "d.csv"][..],
        &["fit", "d.csv", "--outliers", "./d.csv"],
        &["tune", "d.csv", "--cv", "2", "-o", "d.csv"],
        &["tune", "d.csv", "--cv", "2", "--grid", "d.csv"],
        &["audit", "d.csv", "--csv", "d.csv"],
        &["audit", "d.csv", "--html", "d.csv"],
        &["predict", "m", "d.csv", "-o", "d.csv"],
        &["predict", "m", "d.csv", "-o", "m"],
        &["export", "m", "--format", "json", "-o", "m"],
        &["apply-decisions", "d.csv", "decisions.csv", "-o", "decisions.csv"],
    ] {
        let refused = folder.run(arguments).refused();
        assert!(refused.contains("is read by this command"), "{arguments:?}: {refused}");
    }
    let twice = folder.run(&["audit", "d.csv", "--csv", "out", "--html", "out"]).refused();
    assert!(twice.contains("--csv names the same file"), "{twice}");
    assert_eq!(std::fs::read_to_string(folder.path("d.csv")).unwrap(), table);
    assert_eq!(std::fs::read(folder.path("m")).unwrap(), model);
}

#[test]
fn a_quantity_is_no_label() {
    let folder = Folder::new();
    let table: String = (0..120).map(|row| format!("{},{}.5\n", row % 7, row * row)).collect();
    folder.file("d.csv", &table);
    let refused = folder.run(&["fit", "d.csv"]).refused();
    assert!(refused.contains("120 distinct values in 120 rows") && refused.contains("--target"), "{refused}");
}

/// One column in huge units drowns the other, by which the classes differ.
#[test]
fn a_model_that_learnt_nothing_says_so() {
    let folder = Folder::new();
    let row =
        |row: usize| format!("{}e12,{},{}\n", row * 7919 % 101, row % 3, if row.is_multiple_of(3) { "a" } else { "b" });
    folder.file("d.csv", (0..90).map(row).collect::<String>());
    let ran = folder.run(&["fit", "d.csv", "--gamma", "1e-40"]);
    assert!(ran.code == 0 && ran.err.contains("no more than the class \"b\" has"), "{}", ran.err);
    let ran = folder.run(&["tune", "d.csv", "--cv", "3"]);
    assert!(ran.code == 0 && !ran.err.contains("no more than"), "{}", ran.err);
}

#[test]
fn usage_errors_end_with_code_2() {
    let folder = Folder::new();
    folder.file("d.csv", "1,a\n2,b\n");
    for arguments in [
        &["nonsense"][..],
        &["fit"],
        &["fit", "d.csv", "--truncation", "0.5"],
        &["fit", "d.csv", "--truncation", "maybe"],
        &["fit", "d.csv", "--loss", "huber"],
        &["fit", "d.csv", "--kernel", "magic"],
        &["fit", "d.csv", "--gamma", "-1"],
        &["fit", "d.csv", "--n-jobs", "0"],
        &["fit", "d.csv", "--header", "--no-header"],
        &["fit", "d.csv", "--fit-intercept", "true", "--no-intercept"],
        &["fit", "d.csv", "--delimiter", "ab"],
        &["fit", "d.csv", "--time-limit", "-3"],
        &["evaluate", "m", "d.csv", "--fail-below", "1.5"],
        &["demo", "--rows", "3"],
        &["demo", "--flip", "0.9"],
        &["fit", "d.csv", "-o", "-", "--json"],
        &["fit", "d.csv", "-o", "-", "--outliers", "-"],
        &["fit", "d.csv", "--outliers", "-", "--json"],
        &["fit", "d.csv", "--outliers", "."],
        &["fit", "none.csv", "-o", "no/such/model"],
        &["predict", "m", "d.csv", "-o", "-", "--json"],
        &["demo", "-o", "-", "--json"],
        &["demo", "-o", "no/such/picture.svg"],
        &["demo", "--save-data", "d.csv"],
    ] {
        let ran = folder.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}: {}", ran.err);
        assert!(ran.err.starts_with("error: "), "{arguments:?}: {}", ran.err);
    }
    assert_eq!(folder.names(), ["d.csv"]);
}

#[test]
fn help_teaches() {
    let folder = Folder::new();
    assert!(folder.run(&["--help"]).good().contains("outlast fit data.csv -o model.outlast"));
    let help = folder.run(&["fit", "--help"]).good();
    for word in [
        "--truncation",
        "--class-weight",
        "[default: rbf for truncated",
        "hinge, logistic, exponential",
        "Examples:",
        "--weight-column",
    ] {
        assert!(help.contains(word), "{word} in {help}");
    }
    assert!(folder.run(&["--version"]).good().starts_with("outlast "));
}

#[test]
fn bad_data_are_named_with_line_and_column() {
    let folder = Folder::new();
    for (name, content, expected) in [
        (
            "a.csv",
            &b"id,age,y\n1,2,a\n3,abc,b\n"[..],
            "error: a.csv, line 3, column 2 (\"age\"): \"abc\" is not a number\nhint: ",
        ),
        ("b.csv", b"1,2,a\n3,,b\n", "b.csv, line 2, column 2: the value is missing (empty field)"),
        ("c.csv", b"1,2,a\n3,b\n", "c.csv, line 2: the row has 2 fields, but the first row has 3"),
        ("d.csv", b"", "d.csv: the file is empty"),
        ("e.csv", b"a,b,y\n", "e.csv: the file has a header and no data"),
        ("f.svm", b"1 1:1\n0 2:1 1:1\n", "f.svm, line 2, column 7: feature index 1 after 2"),
        ("g.svm", b"1 0:1\n", "--zero-based"),
        ("h.csv", b"1,2\0,a\n", "zero byte"),
        ("i.parquet", b"PAR1", "too short for a Parquet file"),
        ("j.csv.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\0", "truncated"),
    ] {
        folder.file(name, content);
        let error = folder.run(&["fit", name, "-o", "model"]).refused();
        assert!(error.contains(expected), "{error}");
    }
    assert!(folder.run(&["fit", "none.csv"]).refused().contains("none.csv: No such file"));
    assert!(folder.run(&["fit", "."]).refused().contains("is a folder"));
    assert!(folder.run(&["fit", "c.csv", "--target", "z"]).refused().contains("there is no target column \"z\""));
    assert!(!folder.path("model").exists());
}

#[test]
fn bad_models_are_told_from_bad_data() {
    let folder = Folder::new();
    folder.file("d.csv", "1,a\n2,b\n");
    folder.file("newer", [&b"OUTLAST\0"[..], &[9; 30]].concat());
    let hint =
        "not a model file\nhint: this looks like data, where a file written by outlast fit -o MODEL must come first";
    assert!(folder.run(&["predict", "d.csv", "d.csv"]).refused().contains(hint));
    assert!(folder.run(&["export", "d.csv", "--format", "json", "-o", "out.json"]).refused().contains(hint));
    assert!(folder.run(&["predict", "newer", "d.csv"]).refused().contains("update outlast"));
    assert!(folder.run(&["evaluate", "none", "d.csv"]).refused().contains("none: No such file"));
}

#[test]
fn options_are_named_as_the_user_writes_them() {
    let folder = Folder::new();
    folder.file("d.csv", "1,a\n2,b\n");
    for (arguments, word) in [
        (&["-C", "-1"][..], "error: -C -1 is not allowed: it must be a finite number > 0"),
        (&["--cache-size", "0"], "error: --cache-size 0"),
        (&["--max-iter", "0"], "error: --max-iter 0"),
        (&["--class-weight", "c=1"], "error: --class-weight \"c=1\""),
        (&["--kernel", "poly", "--degree", "99"], "error: --degree 99"),
    ] {
        let error = folder.run(&[&["fit", "d.csv"], arguments].concat()).refused();
        assert!(error.starts_with(word), "{error}");
    }
}

/// A class is the user's text: it must neither move the cursor nor fill the screen.
#[test]
fn class_names_are_shown_harmless_and_short() {
    let folder = Folder::new();
    let long = "x".repeat(5000);
    folder.file("one.csv", format!("1,\x1b[2J{long}\n2,\x1b[2J{long}\n"));
    let error = folder.run(&["fit", "one.csv"]).refused();
    assert!(error.contains("every row is of class \"\\u{1b}[2Jxxx") && error.len() < 400, "{error}");
    folder.file("two.csv", format!("1,\x1b[2J{long}\n2,b\n3,\x1b[2J{long}\n4,b\n"));
    let text = folder.run(&["fit", "two.csv", "-o", "model"]).good();
    assert!(!text.contains('\x1b') && text.contains("\\u{1b}[2Jxxx") && text.len() < 2000, "{text}");
    let text = folder.run(&["evaluate", "model", "two.csv"]).good();
    assert!(!text.contains('\x1b') && text.len() < 2000, "{text}");
    let error = folder.run(&["fit", "two.csv", "--class-weight", &format!("{long}=1")]).refused();
    assert!(error.len() < 400, "{error}");
}
