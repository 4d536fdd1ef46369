//! Parquet files that pyarrow and polars wrote (`parquet_data/make.py`), against the same table as CSV; and what damage does to them.

use outlast::io::{Format, ReadOptions, Table, TargetColumn, apply_decisions, read_cells, read_from, read_table};
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parquet_data")
}

fn files(refused: bool) -> Vec<PathBuf> {
    let all = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut files: Vec<PathBuf> = all
        .filter(|path| path.extension().is_some_and(|ending| ending == "parquet"))
        .filter(|path| name(path).starts_with("refused_") == refused)
        .collect();
    files.sort();
    assert!(files.len() >= 10, "the files are not there");
    files
}

fn read(bytes: &[u8], options: &ReadOptions) -> outlast::Result<Table> {
    read_from(bytes, "t.parquet", options)
}

fn values(table: &Table) -> Vec<f64> {
    let mut out = vec![0.0; table.rows() * table.cols()];
    for (row, out) in out.chunks_exact_mut(table.cols()).enumerate() {
        table.design().copy_row(row, out);
    }
    out
}

#[test]
fn every_codec_and_encoding_is_the_table_of_the_csv_file() {
    let options = ReadOptions { target: TargetColumn::Given("kind".into()), ..ReadOptions::default() };
    let wanted = read_table(folder().join("table.csv"), &options).unwrap();
    for path in files(false) {
        for found in [read_table(&path, &options), read(&fs::read(&path).unwrap(), &options)] {
            let found = found.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(found.feature_names, wanted.feature_names, "{path:?}");
            assert_eq!(found.labels, wanted.labels, "{path:?}");
            assert_eq!((found.rows(), values(&found)), (wanted.rows(), values(&wanted)), "{path:?}");
        }
    }
}

#[test]
fn columns_play_the_parts_they_are_given() {
    let path = folder().join("snappy.parquet");
    let csv = folder().join("table.csv");
    let given = |target: &str, weight: &str, ignore: &[&str]| ReadOptions {
        target: TargetColumn::Given(target.into()),
        weight_column: Some(weight.into()),
        ignore: ignore.iter().map(|name| name.to_string()).collect(),
        ..ReadOptions::default()
    };
    for options in [given("c", "f", &["kind"]), given("-2", "6", &["9", "a"]), given("1", "f", &["kind", "g", "b"])] {
        let (found, wanted) = (read_table(&path, &options).unwrap(), read_table(&csv, &options).unwrap());
        assert_eq!(values(&found), values(&wanted));
        assert_eq!((found.labels, found.weights), (wanted.labels, wanted.weights));
        assert_eq!(found.feature_names, wanted.feature_names);
    }
    // truth values are labels by name
    let truth = read_table(&path, &given("e", "f", &["kind"])).unwrap().labels.unwrap();
    assert_eq!(truth.classes().iter().map(ToString::to_string).collect::<Vec<_>>(), ["false", "true"]);
    let negative = read_table(&path, &given("kind", "c", &[])).unwrap_err().to_string();
    assert!(negative.contains("column 3 (\"c\"): row 1: a weight of -50"), "{negative}");
    let both = ReadOptions { format: Format::Csv, ..ReadOptions::default() };
    assert!(read_table(&path, &both).unwrap_err().to_string().contains("is a Parquet file"));
}

#[test]
fn what_is_no_number_is_refused_by_name_and_row() {
    let said = |name: &str| {
        let path = folder().join(format!("refused_{name}.parquet"));
        read_table(path, &ReadOptions::default()).unwrap_err().to_string()
    };
    for (name, words) in [
        ("null", "column 2 (\"when\"): row 3: the value is missing (empty field); fill it in"),
        ("nan", "column 2 (\"when\"): row 2: the value is missing (\"NaN\")"),
        ("text", "column 2 (\"when\"): row 2: \"many\" is not a number"),
        ("timestamp", "column 2 (\"when\"): the column holds timestamps"),
        ("old_timestamp", "column 2 (\"when\"): the column holds timestamps"),
        ("date", "column 2 (\"when\"): the column holds dates"),
        ("decimal", "column 2 (\"when\"): the column holds decimals"),
        ("nested", "column 2 (\"when\"): the column is nested"),
        ("struct", "column 2 (\"when\"): the column is nested"),
        ("bytes", "column 2 (\"when\"): the column holds raw bytes"),
        ("brotli", "compressed with brotli, which is not read here; write the file again with zstd or snappy"),
        ("empty", "no rows"),
    ] {
        assert!(said(name).contains(words), "{name}: {}", said(name));
    }
    let ignored = ReadOptions { ignore: vec!["when".into()], ..ReadOptions::default() };
    for name in ["null", "timestamp", "nested", "struct", "bytes"] {
        let table = read_table(folder().join(format!("refused_{name}.parquet")), &ignored).unwrap();
        assert_eq!(values(&table), [1.0, 2.0, 3.0], "{name}");
    }
}

#[test]
fn a_page_shows_the_cells_and_decisions_want_text() {
    let path = folder().join("zstd_v2.parquet");
    let cells = read_cells(&fs::read(&path).unwrap()[..], &path, &ReadOptions::default(), 1 << 20).unwrap();
    assert_eq!((cells.columns.len(), cells.columns[2][0].as_str(), cells.columns[8][1].as_str()), (9, "-50", "green"));
    let few = read_cells(&fs::read(&path).unwrap()[..], &path, &ReadOptions::default(), 10).unwrap();
    assert!(few.columns.is_empty());
    let refused = apply_decisions(&path, &ReadOptions::default(), &Default::default(), &mut Vec::new());
    assert!(refused.unwrap_err().to_string().contains("convert the Parquet file to CSV"));
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    for path in files(false) {
        let file = fs::read(&path).unwrap();
        for length in 0..file.len() {
            assert!(read(&file[..length], &ReadOptions::default()).is_err(), "{path:?}: {length} of {}", file.len());
        }
    }
}

#[test]
fn damage_is_refused_or_changes_values_but_never_panics() {
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for path in files(false) {
        let file = fs::read(path).unwrap();
        // every byte in turn, then several at once
        for at in 0..file.len() {
            for value in [0u8, 0xff, file[at] ^ 1 << (next() % 8)] {
                let mut damaged = file.clone();
                damaged[at] = value;
                drop(read(&damaged, &ReadOptions::default()));
            }
        }
        for _ in 0..500 {
            let mut damaged = file.clone();
            for _ in 0..1 + next() % 6 {
                damaged[(next() % file.len() as u64) as usize] = next() as u8;
            }
            drop(read(&damaged, &ReadOptions::default()));
        }
    }
}

#[test]
fn a_footer_longer_than_the_file_is_refused() {
    let mut file = fs::read(folder().join("plain.parquet")).unwrap();
    let tail = file.len() - 8;
    for claim in [u32::MAX, file.len() as u32, 0] {
        file[tail..tail + 4].copy_from_slice(&claim.to_le_bytes());
        let refused = read(&file, &ReadOptions::default()).unwrap_err().to_string();
        assert!(refused.contains("footer"), "{refused}");
    }
}
