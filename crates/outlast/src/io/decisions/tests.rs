//! Decisions are read as written, applied byte for byte, and refused with a place.

use super::*;
use crate::error::Result;
use crate::io::ReadOptions;
use proptest::prelude::*;

fn decisions(text: &str) -> Result<Decisions> {
    read_decisions_from(text.as_bytes(), "decisions.csv")
}

fn applied(data: &str, name: &str, chosen: &str) -> Result<String> {
    let mut out = Vec::new();
    apply_decisions_to(data.as_bytes(), name, &ReadOptions::default(), &decisions(chosen)?, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn refused(outcome: Result<impl std::fmt::Debug>) -> String {
    outcome.unwrap_err().to_string()
}

#[test]
fn csv_and_json_say_the_same() {
    let csv = decisions("label,row,decision,note\ncat,3,relabel,x\n,7,Drop,\n,1,keep,\n").unwrap();
    for json in [
        r#"[{"row":3,"decision":"relabel","label":"cat"},{"row":7,"decision":"drop"},{"row":1,"decision":"keep"}]"#,
        r#" {"decisions":[{"row":1,"decision":"keep","label":null},{"row":7,"decision":"drop"},{"row":3,"decision":"relabel","label":"cat"}]}"#,
    ] {
        let json = decisions(json).unwrap();
        assert_eq!(json.iter().collect::<Vec<_>>(), csv.iter().collect::<Vec<_>>());
    }
    assert_eq!(csv.len(), 3);
    assert_eq!(csv.get(2), None);
}

#[test]
fn every_other_byte_stays() {
    let data = "\u{feff}a;\"b; c\";kind\r\n\r\n 1.50 ;\"2\"; \"x\" \r\n3;\"4\n5\";y\r\n6;7;\"a\"\"b\"";
    let options = ReadOptions {
        header: crate::io::Header::Yes,
        target: crate::io::TargetColumn::Given("kind".into()),
        ..ReadOptions::default()
    };
    let run = |chosen: &str| {
        let mut out = Vec::new();
        apply_decisions_to(data.as_bytes(), "d.csv", &options, &decisions(chosen).unwrap(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(run("row,decision\n2,keep\n"), data);
    assert_eq!(run("row,decision,label\n3,relabel,\"q;\"\"\"\n"), data.replace("\"a\"\"b\"", "\"q;\"\"\""));
    assert_eq!(run("row,decision,label\n2,relabel,z\n"), data.replace(";y\r", ";z\r"));
    assert_eq!(run("row,decision\n2,drop\n"), data.replace("3;\"4\n5\";y\r\n", ""));
}

#[test]
fn libsvm_keeps_comments_and_spaces() {
    let data = "# head\n+1  1:2 3:4 # note\n\n -1 2:1\n+1\n";
    assert_eq!(
        applied(data, "d.svm", "row,decision,label\n2,relabel,+1\n3,drop,\n").unwrap(),
        "# head\n+1  1:2 3:4 # note\n\n +1 2:1\n"
    );
    assert!(refused(applied(data, "d.svm", "row,decision,label\n2,relabel,a b\n")).contains("d.svm, line 4"));
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (text, expected) in [
        ("", "is empty"),
        ("row,what\n", "no column \"decision\""),
        ("row,decision\n1,keep\nx,drop\n", "line 3, column 1 (\"row\"): \"x\" is not a row number"),
        ("row,decision\n0,drop\n", "there is no row 0"),
        ("row,decision\n-1,drop\n", "not a row number"),
        ("row,decision\n1,delete\n", "line 2, column 2 (\"decision\"): \"delete\" is no decision"),
        ("row,decision,label\n1,relabel, \n", "line 2, column 3 (\"label\")"),
        (
            "row,decision,label\n1,drop,\n2,drop,\n1,keep,\n",
            "line 4, column 1 (\"row\"): row 1 has another decision on line 2",
        ),
        ("row,decision\n1\n", "line 2: the row has 1 fields"),
        ("[{\"row\":1,\n}]", "line 2, column 1: not JSON"),
        ("{\"a\":1}", "a list of decisions"),
        ("[{\"row\":1.5,\"decision\":\"keep\"}]", "decision 1: \"row\""),
        ("[{\"row\":1,\"decision\":\"keep\",\"label\":[]}]", "decision 1: \"label\""),
    ] {
        let found = refused(decisions(text));
        assert!(found.starts_with("decisions.csv") && found.contains(expected), "{text:?}: {found}");
    }
    assert!(decisions("row,decision,label\n1,relabel,a\n1,relabel,a\n").is_ok());
    let data = "a,y\n1,0\n2,1\n";
    let found = refused(applied(data, "d.csv", "row,decision\n1,keep\n3,drop\n"));
    assert!(found.contains("decisions.csv, line 3") && found.contains("no row 3: the data have 2"), "{found}");
    let found = refused(applied("a,y\n1,0\n2\n", "d.csv", "row,decision\n1,keep\n"));
    assert!(found.starts_with("d.csv, line 3: the row has 1 fields"), "{found}");
}

proptest! {
    /// Any text: either refused, or with no decision the same bytes, and its rows are those the reader counts.
    #[test]
    fn nothing_decided_changes_nothing(text in "[a1\",\n\r ;.]{0,60}") {
        let mut out = Vec::new();
        let options = ReadOptions::default();
        let none = Decisions::default();
        if let Ok(applied) = apply_decisions_to(text.as_bytes(), "d.csv", &options, &none, &mut out) {
            prop_assert_eq!(out, text.as_bytes());
            if let Ok(table) = crate::io::read_from(text.as_bytes(), "d.csv", &options) {
                prop_assert_eq!(applied.kept, table.rows() as u64);
            }
        }
    }
}
