//! Readers of what is not ours: whatever the bytes, a refusal in words or a table that keeps all its promises.

use super::bytes::Bytes;
use outlast::data::{Chunk, Chunks};
use outlast::io::{
    Format, Header, ReadOptions, Stream, StreamOptions, Table, TargetColumn, apply_decisions_to, open_stream,
    read_decisions_from, read_from, read_payoff_from, read_table,
};
use outlast::{Control, Error, Labels, Result};
use std::path::Path;

/// An error that says something, and nothing that would move a cursor.
pub fn refused(error: &Error) {
    let text = error.to_string();
    assert!(text.len() > 4 && text.len() < 5000, "{text:?}");
    assert!(!text.chars().any(|sign| sign.is_control()), "{text:?}");
}

fn options(bytes: &mut Bytes, format: Format) -> ReadOptions {
    let target = [
        TargetColumn::Auto,
        TargetColumn::Absent,
        TargetColumn::Given("1".into()),
        TargetColumn::Given("-1".into()),
        TargetColumn::Given("y".into()),
    ];
    ReadOptions {
        format,
        header: bytes.choose(&[Header::Auto, Header::Yes, Header::No]),
        delimiter: bytes.choose(&[None, Some(b','), Some(b';'), Some(b' '), Some(b'"'), Some(b'\n')]),
        target: bytes.choose(&target),
        weight_column: bytes.choose(&[None, None, Some("w".into()), Some("2".into())]),
        ignore: bytes.choose(&[vec![], vec![], vec!["id".into()], vec!["-2".into(), "1".into()]]),
        features: bytes.choose(&[None, None, Some(0), Some(3), Some(70_000), Some(usize::MAX)]),
        zero_based: bytes.flag(),
    }
}

/// All that a table promises.
fn kept(table: &Table) {
    let rows = table.rows();
    assert!(rows > 0, "a table without rows");
    assert_eq!(table.lines.len(), rows);
    assert!(table.lines.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", table.lines);
    table.design().check_finite().expect("every value is finite");
    if let Some(names) = &table.feature_names {
        assert_eq!(names.len(), table.cols());
    }
    if let Some(labels) = &table.labels {
        assert_eq!(labels.len(), rows);
        let classes = labels.classes();
        assert!(classes.windows(2).all(|pair| pair[0] < pair[1]), "{classes:?}");
        assert!(labels.counts().iter().all(|&count| count > 0), "{classes:?}");
    }
    if let Some(weights) = &table.weights {
        outlast::data::check_weights(weights, rows).expect("weights are weights");
    }
}

fn read(data: &[u8], name: &str, format: Format) {
    let mut bytes = Bytes(data);
    let options = options(&mut bytes, format);
    match read_from(bytes.0, name, &options) {
        Ok(table) => kept(&table),
        Err(error) => refused(&error),
    }
}

pub fn csv(data: &[u8]) {
    read(data, "data.csv", Format::Csv);
}

pub fn libsvm(data: &[u8]) {
    read(data, "data.svm", Format::Libsvm);
}

pub fn parquet(data: &[u8]) {
    // a footer is looked for at the end: bytes of options would not shift what is before it
    read(data, "data.parquet", Format::Parquet);
}

/// Reading in parts finds what reading at once finds.
pub fn stream(data: &[u8]) {
    let mut bytes = Bytes(data);
    let format = bytes.choose(&[Format::Csv, Format::Libsvm, Format::Parquet]);
    let options = ReadOptions { features: None, ..options(&mut bytes, format) };
    let folder = tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "." }).unwrap();
    let path = folder.path().join("data");
    std::fs::write(&path, bytes.0).unwrap();
    let whole = read_table(&path, &options);
    let how = StreamOptions { memory: 64, cache: Some(folder.path().to_path_buf()), shift: false };
    let parts = open_stream(std::slice::from_ref(&path), &options, &how, &Control::default());
    match (whole, parts) {
        (Ok(table), Ok(Stream::Cached { rows, classes, feature_names, .. })) => {
            let labels = table.labels.as_ref().expect("a stream has labels");
            assert_eq!(labels.classes(), &classes[..]);
            assert_eq!(table.feature_names, feature_names);
            same(&table, labels, rows).expect("the cache can be read");
        }
        (Ok(table), Ok(Stream::Whole(held))) => assert_eq!(table.labels, held.labels),
        (Ok(_), Err(error)) | (Err(_), Err(error)) => refused(&error),
        (Err(error), Ok(_)) => panic!("read at once: {error}; in parts: nothing wrong"),
    }
}

/// The rows of a table, with values rounded to 32 bits.
fn same(table: &Table, labels: &Labels, mut rows: impl Chunks) -> Result<()> {
    let (x, cols) = (table.design(), table.cols());
    assert_eq!(rows.cols(), cols);
    let mut chunk = Chunk::default();
    let (mut at, mut row) = (0, vec![0.0; cols]);
    rows.rewind()?;
    while rows.next(&mut chunk)? {
        for inside in 0..chunk.rows() {
            x.copy_row(at, &mut row);
            let narrow: Vec<f32> = row.iter().map(|&value| value as f32).collect();
            assert_eq!(chunk.x[inside * cols..(inside + 1) * cols], narrow);
            assert_eq!(chunk.codes[inside], labels.codes()[at]);
            assert_eq!(chunk.weight(inside), table.weights.as_ref().map_or(1.0, |weights| weights[at]));
            at += 1;
        }
    }
    assert_eq!(at, table.rows());
    Ok(())
}

/// Decisions, and what becomes of a table by them.
pub fn decisions(data: &[u8]) {
    let mut bytes = Bytes(data);
    let format = bytes.choose(&[Format::Csv, Format::Libsvm, Format::Auto]);
    let options = options(&mut bytes, format);
    let (first, text) = bytes.split();
    let decisions = match read_decisions_from(first, "decisions") {
        Ok(decisions) => decisions,
        Err(error) => return refused(&error),
    };
    assert!(decisions.iter().all(|(row, _)| row > 0));
    let mut out = Vec::new();
    match apply_decisions_to(text, "data", &options, &decisions, &mut out) {
        Err(error) => refused(&error),
        Ok(applied) => {
            let table = read_from(text, "data", &options);
            if let Ok(table) = table {
                assert_eq!(applied.kept + applied.relabelled + applied.dropped, table.rows() as u64);
            }
            if decisions.is_empty() {
                assert_eq!(out, text);
            }
        }
    }
}

/// Utility and cost matrices.
pub fn payoff(data: &[u8]) {
    let mut bytes = Bytes(data);
    let labels =
        bytes.choose(&[Labels::new(["a", "b", "c"]), Labels::new([-1, 1]), Labels::new(["x, y", "say \"z\"", ""])]);
    match read_payoff_from(bytes.0, "payoff.csv", "utility", labels.classes()) {
        Err(error) => refused(&error),
        Ok(matrix) => {
            let k = labels.classes().len();
            assert!(matrix.len() == k && matrix.iter().all(|row| row.len() == k));
            assert!(matrix.iter().flatten().all(|value| value.is_finite() && *value >= 0.0), "{matrix:?}");
            assert!(matrix.iter().flatten().any(|value| *value > 0.0));
        }
    }
}
