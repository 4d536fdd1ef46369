use super::super::table::{Format, read_from};
use super::*;
use crate::data::Class;
use proptest::prelude::*;
use std::io::Write;

fn options() -> ReadOptions {
    ReadOptions { format: Format::Csv, ..Default::default() }
}

fn read_text(text: impl AsRef<[u8]>) -> Result<Table> {
    read_from(text.as_ref(), "data.csv", &options())
}

fn refusal(text: impl AsRef<[u8]>) -> String {
    read_text(text).unwrap_err().to_string()
}

fn values(table: &Table) -> Vec<f64> {
    let mut out = vec![0.0; table.rows() * table.cols()];
    for (row, out) in out.chunks_exact_mut(table.cols()).enumerate() {
        table.design().copy_row(row, out);
    }
    out
}

fn classes(table: &Table) -> Vec<String> {
    let labels = table.labels.as_ref().unwrap();
    labels.codes().iter().map(|&code| labels.classes()[code as usize].to_string()).collect()
}

#[test]
fn the_usual_table() {
    let table = read_text("age,income,label\r\n1,2.5,yes\r\n\r\n3,-4e-1, no \r\n").unwrap();
    assert_eq!(values(&table), [1.0, 2.5, 3.0, -0.4]);
    assert_eq!(classes(&table), ["yes", "no"]);
    assert_eq!(table.feature_names, Some(vec!["age".to_string(), "income".to_string()]));
    assert_eq!(table.lines, [2, 4]);
}

#[test]
fn header_and_delimiter_are_recognised() {
    for text in ["1,2,a\n3,4,b\n", "\u{feff}1;2;a\n3;4;b", "1\t2\ta\n3\t4\tb\n", "1.0,2,a\n3,4,b"] {
        let table = read_text(text).unwrap();
        assert_eq!((values(&table), table.feature_names.clone()), (vec![1.0, 2.0, 3.0, 4.0], None), "{text}");
    }
    // numbers for names, told by the name of the target or by the row below
    assert_eq!(values(&read_text("0,1,y\n1,2,a\n3,4,b\n").unwrap()), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(values(&read_text("0,x,k\n1,2,a\n3,4,b\n").unwrap()), [1.0, 2.0, 3.0, 4.0]);
    // a decimal comma does not hide the semicolon, and is then refused as a number
    assert!(refusal("1,5;2,5;a\n1,0;2,5;b\n").contains("\"1,0\" is not a number"));
    let forced = ReadOptions { header: Header::Yes, ..options() };
    assert_eq!(values(&read_from(&b"1,2,3\n4,5,6\n"[..], "x", &forced).unwrap()), [4.0, 5.0]);
}

#[test]
fn quotes_hold_delimiters_breaks_and_quotes() {
    let table = read_text("\"a\"\"b\",\"c,d\",y\n1,\"2\",\"x\ny\"\n3,4,z\n").unwrap();
    assert_eq!(table.feature_names.as_ref().unwrap()[..], ["a\"b", "c,d"]);
    assert_eq!(classes(&table), ["x\ny", "z"]);
    assert_eq!(table.lines, [2, 4]);
    assert!(refusal("a,y\n1,\"x\n2,z\n").contains("line 2: a quote is opened"));
}

#[test]
fn integer_labels_are_numbers() {
    let table = read_text("1,+1\n2,-1.0\n3,1\n").unwrap();
    assert_eq!(table.labels.unwrap().classes(), [Class::Int(-1), Class::Int(1)]);
}

#[test]
fn refusals_name_line_column_and_name() {
    let text = "id,age,y\n1,2,a\n\n1,abc,b\n";
    assert_eq!(refusal(text), "data.csv, line 4, column 2 (\"age\"): \"abc\" is not a number");
    assert!(refusal("1,2,a\n1,,b\n").contains("line 2, column 2: the value is missing (empty field)"));
    assert!(refusal("1,2,a\n1,NA,b\n").contains("the value is missing (\"NA\")"));
    assert!(refusal("1,2,a\n1,-inf,b\n").contains("infinite"));
    assert!(refusal("1,2,a\n1,2,\n").contains("line 2, column 3: the value is missing"));
    assert!(refusal("1,2,a\n1,2\n").contains("line 2: the row has 2 fields, but the first row has 3"));
    assert!(refusal("").contains("the file is empty"));
    assert!(refusal("\n\n").contains("the file is empty"));
    assert!(refusal("a,b,y\n").contains("a header and no data"));
    assert!(refusal("a\n1\n").contains("no feature column"));
}

#[test]
fn weights_have_their_column() {
    let weighted = ReadOptions { weight_column: Some("w".to_string()), ..options() };
    let table = read_from(&b"a,w,y\n1,0.5,p\n2,0,q\n"[..], "x", &weighted).unwrap();
    assert_eq!((values(&table), table.weights.clone()), (vec![1.0, 2.0], Some(vec![0.5, 0.0])));
    let error = read_from(&b"a,w,y\n1,-1,p\n"[..], "x", &weighted).unwrap_err().to_string();
    assert!(error.contains("column 2 (\"w\"): a weight of -1"), "{error}");
}

#[test]
fn row_numbers_without_a_name_are_left_out() {
    for start in [0, 1] {
        let rows: String =
            (0..5).map(|row| format!("{},{},{},{}\n", row + start, 7 - row, row * row, row % 2)).collect();
        let table = read_text(format!(",a,b,y\n{rows}")).unwrap();
        assert_eq!(table.feature_names, Some(vec!["a".to_string(), "b".to_string()]));
        assert_eq!(values(&table)[..4], [7.0, 0.0, 6.0, 1.0]);
        assert!(table.notes[0].contains("counts the rows"));
    }
    // a name, other values, a single row or no other feature: the column stays
    for text in ["n,a,y\n0,1,p\n1,2,q\n", ",a,y\n0,1,p\n2,2,q\n", ",a,y\n0,1,p\n", ",y\n0,p\n1,q\n"] {
        let table = read_text(text).unwrap();
        assert_eq!(table.feature_names.as_ref().map(Vec::len), Some(table.cols()));
        assert!(values(&table)[0] == 0.0 && table.notes.is_empty(), "{text}");
    }
    let ignoring = ReadOptions { ignore: vec!["1".to_string()], ..options() };
    let table = read_from(&b"name,a,y\nx,1,p\nz,2,q\n"[..], "x", &ignoring).unwrap();
    assert_eq!((values(&table), table.notes.len()), (vec![1.0, 2.0], 0));
}

#[test]
fn none_and_null_are_classes_but_no_numbers() {
    assert_eq!(classes(&read_text("1,none\n2,null\n3,N/A\n").unwrap()), ["none", "null", "N/A"]);
    for missing in ["", "?", "NA", "NaN"] {
        assert!(refusal(format!("1,a\n2,{missing}\n")).contains("missing"), "{missing}");
    }
    assert!(refusal("1,a\nnone,b\n").contains("missing"));
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

#[test]
fn gzip_is_recognised_whatever_the_name_and_its_damage_reported() {
    let text = (0..20_000).map(|row| format!("{row},{},{}\n", row * row, row % 2)).collect::<String>();
    let packed = gzip(text.as_bytes());
    let table = read_text(&packed).unwrap();
    assert_eq!((table.rows(), table.cols()), (20_000, 2));
    let twice = [packed.clone(), packed.clone()].concat();
    assert_eq!(read_text(&twice).unwrap().rows(), 40_000);
    for end in [9, 12, 100, packed.len() / 2, packed.len() - 1] {
        assert!(refusal(&packed[..end]).contains("truncated"), "cut at {end}");
    }
    let mut damaged = packed.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 8].fill(0xff);
    assert!(read_text(&damaged).is_err());
}

#[test]
fn what_is_no_text_is_refused_by_name() {
    for (bytes, word) in [
        (&b"PAR1\x15\x04"[..], "Parquet"),
        (b"PK\x03\x04rest", "zip"),
        (b"1,2\n3,\x004\n", "line 2: holds a zero byte"),
        (b"\xff\xfe1\0,\x002\0", "UTF-16"),
        (b"OUTLAST\0\x01", "model file"),
    ] {
        assert!(refusal(bytes).contains(word), "{}", refusal(bytes));
    }
    assert!(refusal(b"1,2,a\n1,\xff,b\n").contains("line 2, column 2"));
    assert!(refusal(b"1,2,a\n1,2,\xff\n").contains("not UTF-8"));
    let long = vec![b'x'; 10 << 20];
    assert!(refusal(&long).len() < 300);
    let mut wide = vec![b'1'];
    (0..1_000_000).for_each(|_| wide.extend_from_slice(b",1"));
    assert_eq!(read_text(&wide).unwrap().cols(), 1_000_000);
}

/// Records as the `csv` crate reads them.
fn by_the_crate(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut reader = ::csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
    reader.byte_records().map(|record| record.unwrap().iter().map(<[u8]>::to_vec).collect()).collect()
}

/// Records as we read them, `None` when a quote never closes.
fn by_us(text: &[u8]) -> Option<Vec<Vec<Vec<u8>>>> {
    let source = Source::new(Box::new(text), "data.csv".into()).unwrap();
    let mut records = Records { lines: Lines::new(source), delimiter: b',', scratch: Vec::new() };
    let (mut found, mut record) = (Vec::new(), Record::default());
    while records.next(&mut record).ok()? {
        found.push(record.iter().map(<[u8]>::to_vec).collect());
    }
    Some(found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn records_are_those_of_the_csv_crate(text in "[ab,\"\n]{0,40}") {
        if let Some(records) = by_us(text.as_bytes()) {
            prop_assert_eq!(records, by_the_crate(text.as_bytes()));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_text(&bytes);
        let _ = read_from(&bytes[..], "data.svm", &ReadOptions::default());
        let _ = read_from(&gzip(&bytes)[..], "data", &ReadOptions::default());
    }

    #[test]
    fn numbers_come_back_bit_for_bit(rows in prop::collection::vec((any::<f64>(), any::<f64>()), 1..20)) {
        let rows: Vec<_> = rows.into_iter().filter(|(a, b)| a.is_finite() && b.is_finite()).collect();
        prop_assume!(!rows.is_empty());
        let text: String = rows.iter().map(|(a, b)| format!("{a:e},{b},k\n")).collect();
        let found = values(&read_text(text).unwrap());
        let expected: Vec<f64> = rows.iter().flat_map(|&(a, b)| [a, b]).collect();
        prop_assert!(found.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}
