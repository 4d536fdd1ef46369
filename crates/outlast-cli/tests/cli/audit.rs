//! Audits and decisions on the command line.

use super::common::Folder;

/// Two clouds, "cat" and "dog", with one wrong label in data row 11.
fn pets() -> String {
    let mut text = "size,\"weight, kg\",kind\n".to_string();
    for row in 0..60 {
        let (dog, jitter) = (row % 2, f64::from(row * 7 % 13) / 13.0);
        let kind = if (dog == 1) != (row == 10) { "dog" } else { "cat" };
        text += &format!("{},{},{kind}\n", f64::from(dog) * 4.0 + jitter, f64::from(row % 5));
    }
    text
}

#[test]
fn the_wrong_label_comes_first_everywhere() {
    let folder = Folder::new();
    folder.file("pets.csv", pets());
    let text = folder.run(&["audit", "pets.csv", "--target", "kind", "--csv", "s.csv", "--html", "p.html"]).good();
    assert!(text.contains("60 rows, 2 features") && text.contains("most suspect first"), "{text}");
    let first = text.lines().skip_while(|line| !line.starts_with("row ")).nth(1).unwrap();
    let words: Vec<&str> = first.split_whitespace().take(4).collect();
    assert_eq!(words, ["11", "12", "dog", "cat"], "{text}");
    let csv = std::fs::read_to_string(folder.path("s.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "row,line,given,suggested,score,confidence,agreement,margin,reasons");
    assert!(lines[1].starts_with("11,12,dog,cat,0."), "{csv}");
    let page = std::fs::read_to_string(folder.path("p.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("weight, kg"));
    let json = folder.run(&["audit", "pets.csv", "--target", "kind", "--json"]).json();
    assert_eq!(json["suspects"][0]["row"], 11);
    assert_eq!(json["suspects"][0]["suggested"], "cat");
    assert_eq!(json["suspects"][0]["kinds"][0], "looks_like");
    assert_eq!(json["noise"].as_array().unwrap().len(), 2);
}

#[test]
fn a_score_above_the_bound_fails() {
    let folder = Folder::new();
    folder.file("pets.csv", pets());
    let ran = folder.run(&["audit", "pets.csv", "--fail-above", "0.5", "--quiet"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("above 0.5; row 11 has 0."), "{}", ran.err);
    assert_eq!(folder.run(&["audit", "pets.csv", "--fail-above", "1", "--quiet"]).code, 0);
}

#[test]
fn standard_input_libsvm_and_bad_wishes() {
    let folder = Folder::new();
    let csv = folder.run_with_input(&["audit", "-", "--csv", "-", "--html", "p.html"], pets().as_bytes());
    assert!(csv.err.contains("most suspect first"), "{}", csv.err);
    assert!(csv.good().starts_with("row,line,given"));
    let sparse: String = (0..40).map(|row| format!("{} 1:{} 3:{}\n", row % 2, row % 2 * 3, row % 7)).collect();
    folder.file("d.svm", sparse);
    assert!(folder.run(&["audit", "d.svm", "--html", "q.html"]).good().contains("q.html"));
    folder.file("one.csv", "a,y\n1,x\n2,x\n3,x\n");
    assert!(folder.run(&["audit", "one.csv"]).refused().contains("two classes"));
    folder.file("few.csv", "a,y\n1,x\n2,x\n3,x\n4,z\n");
    assert!(folder.run(&["audit", "few.csv"]).refused().contains("two classes of 3 rows"));
    assert!(folder.run(&["audit", "none.csv"]).refused().contains("none.csv"));
    assert!(folder.run(&["audit", "d.svm", "--folds", "1"]).refused().contains("--folds 1 is not allowed"));
    assert!(folder.run(&["audit", "d.svm", "-C", "0"]).refused().contains("-C 0 is not allowed"));
    assert!(folder.run(&["audit", "d.svm", "--csv", "no/s.csv"]).refused().contains("no folder"));
}

#[test]
fn formulas_and_scripts_in_labels_do_nothing() {
    let folder = Folder::new();
    let mut text = "a,b,y\n".to_string();
    for row in 0..40 {
        let (other, wrong) = (row % 2, row == 10);
        let label = if (other == 1) != wrong { "=cmd|' /C calc'!A0" } else { "<script>alert(1)</script>" };
        text += &format!("{},{},\"{label}\"\n", other * 5 + row % 3, row % 4);
    }
    folder.file("hostile.csv", text);
    folder.run(&["audit", "hostile.csv", "--csv", "s.csv", "--html", "p.html"]).good();
    let csv = std::fs::read_to_string(folder.path("s.csv")).unwrap();
    assert!(csv.contains("'=cmd|") && !csv.contains(",=cmd"), "{csv}");
    let page = std::fs::read_to_string(folder.path("p.html")).unwrap();
    assert!(!page.contains("<script>alert(1)"));
}

#[test]
fn decisions_are_applied_byte_for_byte() {
    let folder = Folder::new();
    let data = pets();
    folder.file("pets.csv", &data);
    folder.file("d.csv", "row,decision,label\n11,relabel,cat\n1,drop,\n2,keep,\n");
    let text = folder.run(&["apply-decisions", "pets.csv", "d.csv", "--target", "kind", "-o", "new.csv"]).good();
    assert!(text.contains("kept        58") && text.contains("relabelled  1"), "{text}");
    let expected: String = data
        .split_inclusive('\n')
        .enumerate()
        .filter(|(line, _)| *line != 1)
        .map(|(line, text)| if line == 11 { text.replace("dog", "cat") } else { text.to_string() })
        .collect();
    assert_eq!(std::fs::read_to_string(folder.path("new.csv")).unwrap(), expected);
    // onto itself, and from JSON to standard output
    folder.file("d.json", r#"[{"row":11,"decision":"relabel","label":"cat"},{"row":1,"decision":"drop"}]"#);
    let out = folder.run(&["apply-decisions", "pets.csv", "d.json", "-o", "-"]);
    assert_eq!(out.good(), expected);
    folder.run(&["apply-decisions", "pets.csv", "d.csv", "-o", "pets.csv", "--quiet"]).good();
    assert_eq!(std::fs::read_to_string(folder.path("pets.csv")).unwrap(), expected);
}

#[test]
fn a_class_that_the_data_did_not_have_is_named() {
    let folder = Folder::new();
    folder.file("pets.csv", pets());
    folder.file("d.csv", "row,decision,label\n11,relabel,cat\n2,relabel,cta\n3,relabel,\"d,og\"\n4,relabel,cta\n");
    let apply = ["apply-decisions", "pets.csv", "d.csv", "-o", "new.csv"];
    let ran = folder.run(&apply);
    let notes: Vec<&str> = ran.err.lines().collect();
    let note =
        |rows: &str, label: &str| format!("note: {rows} relabelled to {label}, a class that the data did not have");
    assert_eq!(notes, [note("2 rows are", "\"cta\""), note("1 row is", "\"d,og\"")]);
    let json = folder.run(&[&apply[..], &["--json"]].concat()).json();
    assert_eq!(json["new_labels"], serde_json::json!(["cta", "d,og"]));
    assert_eq!(folder.run(&[&apply[..], &["--quiet"]].concat()).err, "");
    // a number is the same class however it is written, and so is a quoted text
    folder.file("numbers.csv", "x,y\n1,1\n2,\"2\"\n3,2\n");
    folder.file("d.csv", "row,decision,label\n1,relabel,2.0\n3,relabel,1\n");
    assert_eq!(folder.run(&["apply-decisions", "numbers.csv", "d.csv", "-o", "new.csv"]).err, "");
}

/// The fit to all rows keeps every class that can be judged, and leaves out those that can't.
#[test]
fn a_class_of_one_row_does_not_cost_another_class() {
    let folder = Folder::new();
    folder.file("three.csv", overlapping() + "0.1,0.2,0.3,rare\n");
    let json = folder.run(&["audit", "three.csv", "--json"]).json();
    let given_up = json["given_up"].as_array().unwrap();
    for kind in 0..3 {
        let lost = given_up.iter().filter(|row| (row.as_u64().unwrap() - 1) % 3 == kind).count();
        assert!(lost <= 134 / 2, "{lost} rows of class {kind}");
    }
    assert_eq!(json["final_truncation"], -0.5, "of three classes");
    let suspects = json["suspects"].as_array().unwrap();
    let named = |row: &serde_json::Value| {
        suspects
            .iter()
            .any(|suspect| suspect["row"] == *row && suspect["kinds"].as_array().unwrap().contains(&"given_up".into()))
    };
    assert!(given_up.iter().all(named), "every row given up is named, with its reason");
    let text = folder.run(&["audit", "three.csv"]).good();
    assert!(text.contains("hinge truncated at -1, ") && text.contains("hinge truncated at -0.5, "), "{text}");
    let text = folder.run(&["audit", "three.csv", "--truncation", "none", "--html", "p.html"]).good();
    assert!(text.contains("fits        hinge without truncation") && !text.contains("truncated hinge"), "{text}");
    let page = std::fs::read_to_string(folder.path("p.html")).unwrap();
    assert!(page.contains("hinge without truncation, pairs of classes") && page.contains("estimated wrong labels"));
}

/// Three classes of which two overlap.
fn overlapping() -> String {
    let mut state = 7u64;
    let mut draw = || {
        let mut sum = -6.0;
        for _ in 0..12 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            sum += (state >> 33) as f64 / f64::from(1u32 << 31);
        }
        sum
    };
    let mut text = "a,b,c,kind\n".to_string();
    for row in 0..402 {
        let (centre, kind) = [(-1.5, "bird"), (0.0, "cat"), (0.9, "dog")][row % 3];
        text += &format!("{:.3},{:.3},{:.3},{kind}\n", centre + draw(), centre * 0.7 + draw(), draw());
    }
    text
}

#[test]
fn bad_decisions_are_refused_and_write_nothing() {
    let folder = Folder::new();
    folder.file("pets.csv", pets());
    for (decisions, expected) in [
        ("row,decision\n61,drop\n", "d.csv, line 2 (\"row\"): there is no row 61: the data have 60"),
        ("row,decision\n1,drop\n1,keep\n", "d.csv, line 3, column 1 (\"row\"): row 1 has another decision on line 2"),
        ("row,decision\n1,burn\n", "\"burn\" is no decision"),
    ] {
        folder.file("d.csv", decisions);
        let said = folder.run(&["apply-decisions", "pets.csv", "d.csv", "-o", "new.csv"]).refused();
        assert!(said.contains(expected), "{said}");
    }
    assert!(folder.run(&["apply-decisions", "-", "-", "-o", "new.csv"]).refused().contains("both be standard input"));
    assert!(folder.run(&["apply-decisions", "pets.csv", "d.csv", "-o", "new.csv.gz"]).refused().contains("unpacked"));
    assert_eq!(folder.names(), ["d.csv", "pets.csv"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_an_audit_at_once() {
    use super::common::Ran;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    let folder = Folder::new();
    let text: String = (0..3000u64)
        .map(|row| {
            let noise = |k: u64| (row * k % 1009) as f64 / 1009.0;
            format!("{},{},{},{}\n", noise(7919), noise(6151), noise(4219), row % 4)
        })
        .collect();
    folder.file("noise.csv", text);
    let arguments = ["audit", "noise.csv", "--repeats", "500", "--html", "p.html"];
    let child = folder.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let asked = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.err);
    assert!(ran.err.contains("interrupted; nothing was written"), "{}", ran.err);
    assert!(asked.elapsed() < Duration::from_secs(10));
    assert_eq!(folder.names(), ["noise.csv"]);
}

#[test]
fn the_demo_ends_with_an_audit() {
    let folder = Folder::new();
    let text = folder.run(&["demo", "--html", "audit.html"]).good();
    assert!(
        text.contains("The audit of the training rows names") && text.ends_with("audit page: audit.html\n"),
        "{text}"
    );
    assert_eq!(folder.names(), ["audit.html", "outlast-demo.svg"]);
}
