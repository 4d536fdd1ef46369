use super::super::table::{Format, read_from};
use super::*;
use crate::data::{Class, Design};

fn read_with(text: &str, options: ReadOptions) -> Result<Table> {
    read_from(text.as_bytes(), "data.svm", &options)
}

fn read_text(text: &str) -> Result<Table> {
    read_with(text, ReadOptions::default())
}

fn refusal(text: &str) -> String {
    read_text(text).unwrap_err().to_string()
}

fn sparse(table: &Table) -> &Csr<'static> {
    match &table.x {
        Rows::Sparse(rows) => rows,
        Rows::Dense(_) => panic!("dense"),
    }
}

#[test]
fn the_usual_file() {
    let table = read_text("+1 1:0.5 3:-2 # first\n\n# nothing\n-1\t2:1e-3  \r\n+1 1:0\n").unwrap();
    let x = sparse(&table);
    assert_eq!((x.rows(), x.cols()), (3, 3));
    assert_eq!(
        (x.row(0), x.row(1), x.row(2)),
        ((&[0, 2][..], &[0.5, -2.0][..]), (&[1][..], &[1e-3][..]), (&[][..], &[][..]))
    );
    assert_eq!(table.labels.as_ref().unwrap().classes(), [Class::Int(-1), Class::Int(1)]);
    assert_eq!(table.lines, [1, 4, 5]);
}

#[test]
fn the_format_is_recognised_by_content() {
    let table = read_from(&b"spam 4:1\nham 2:1\n"[..], "data.txt", &ReadOptions::default()).unwrap();
    assert_eq!((table.cols(), table.labels.unwrap().codes().to_vec()), (4, vec![1, 0]));
    let dense = read_from(&b"4,1\n2,1\n"[..], "data.txt", &ReadOptions::default()).unwrap();
    assert!(matches!(dense.x, Rows::Dense(_)));
}

#[test]
fn the_width_can_be_given() {
    let wide = read_with("1 1:1\n", ReadOptions { features: Some(5), ..Default::default() }).unwrap();
    assert_eq!(wide.cols(), 5);
    let error = read_with("1 6:1\n", ReadOptions { features: Some(5), ..Default::default() }).unwrap_err();
    assert!(error.to_string().contains("feature index 6, but there are 5"), "{error}");
    assert_eq!(read_text("1 1000000:1\n0 1:1\n").unwrap().cols(), 1_000_000);
}

#[test]
fn indices_from_zero_on_request() {
    let zero = ReadOptions { zero_based: true, ..Default::default() };
    assert_eq!(sparse(&read_with("1 0:1 2:3\n", zero).unwrap()).row(0).0, [0, 2]);
    assert!(refusal("1 0:1 2:3\n").contains("line 1, column 3: feature index 0"));
}

#[test]
fn a_model_brings_its_width_and_may_do_without_labels() {
    let read = |text: &str, labels| {
        let source = Source::new(Box::new(text.as_bytes()), "data.svm".into()).unwrap();
        super::read(source, &ReadOptions::default(), Some(&Expected { features: 4, names: None, labels }))
    };
    for text in ["1:1 3:2\n", "7 1:1 3:2\n"] {
        let table = read(text, false).unwrap();
        assert_eq!((table.cols(), table.rows(), table.labels.is_none()), (4, 1, true));
    }
    assert!(read("1:1 3:2\n", true).unwrap_err().to_string().contains("not with its label"));
    assert!(read("1 5:1\n", true).is_err());
}

#[test]
fn refusals_name_line_and_character() {
    for (text, expected) in [
        ("1 1:1\n1 3:1 2:5\n", "line 2, column 7: feature index 2 after 3: indices must ascend"),
        ("1 1:1 1:2\n", "line 1, column 7: feature index 1 after 1"),
        ("1 1:x\n", "line 1, column 5: \"x\" is not a number"),
        ("ä 1:1 2:nan\n", "line 1, column 9: the value is missing"),
        ("1 1:inf\n", "infinite"),
        ("1 qid:3 1:1\n", "qid"),
        ("1 5\n", "\"5\" is not of the form index:value"),
        ("1 -1:5\n", "\"-1\" is not a feature index"),
        ("1 :5\n", "\"\" is not a feature index"),
        ("1 4294967295:5\n", "too large"),
        ("1 99999999999999999999999:5\n", "too large"),
        ("1 2: 3:1\n", "the value is missing"),
        ("1:1\n", "not with its label"),
        ("# only a comment\n", "the file is empty"),
        ("1\n0\n", "no row has any feature"),
    ] {
        assert!(refusal(text).contains(expected), "{text:?}: {}", refusal(text));
    }
    assert!(read_with("1 1:1\n", ReadOptions { weight_column: Some("w".into()), ..Default::default() }).is_err());
    let target = TargetColumn::Given("y".into());
    assert!(read_with("1 1:1\n", ReadOptions { target, ..Default::default() }).is_err());
    assert_eq!(ReadOptions::default().format, Format::Auto);
}
