//! Decisions, from CSV or JSON.

use super::super::csv::{Record, Records};
use super::super::field::quote;
use super::super::source::{Source, display_name, read_failure};
use super::{Decision, Decisions, Entry};
use crate::error::{Error, ParseKind, Result, quoted};
use serde_json::Value;
use std::collections::btree_map::Entry as Place;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The columns, in the order of [`Entry`]'s making.
const COLUMNS: [&str; 3] = ["row", "decision", "label"];

/// Most bytes of a JSON file.
const LONGEST: u64 = 1 << 30;

/// Reads decisions from a file; `-` is standard input.
pub fn read_decisions(path: impl AsRef<Path>) -> Result<Decisions> {
    read(Source::open(path.as_ref())?)
}

/// Reads decisions from memory or any other reader; `name` stands for the file in messages.
pub fn read_decisions_from(reader: impl Read, name: impl AsRef<Path>) -> Result<Decisions> {
    read(Source::new(Box::new(reader), display_name(name.as_ref()))?)
}

fn read(source: Source) -> Result<Decisions> {
    let first = source.prefix.iter().find(|byte| !byte.is_ascii_whitespace());
    if matches!(first, Some(b'[' | b'{')) { read_json(source) } else { read_csv(source) }
}

/// Where something is wrong.
#[derive(Clone, Copy, Default)]
struct At {
    line: Option<u64>,
    column: Option<u64>,
}

fn wrong(file: &Path, at: At, name: Option<&str>, problem: impl Into<String>) -> Error {
    let (file, name, kind) = (file.to_path_buf(), name.map(str::to_string), ParseKind::Other);
    Error::Parse { file, line: at.line, column: at.column, name, kind, problem: problem.into() }
}

fn read_csv(source: Source) -> Result<Decisions> {
    let file = source.name.clone();
    let mut records = Records::new(source, None);
    let mut record = Record::default();
    if !records.next(&mut record)? {
        return Err(wrong(&file, At::default(), None, "the file is empty: a header row,decision,label is expected"));
    }
    let places = header(&record, &file)?;
    let width = record.fields.len();
    let mut decisions = Decisions { source: file.clone(), ..Decisions::default() };
    while records.next(&mut record)? {
        let line = Some(record.line);
        let fields: Vec<&[u8]> = record.iter().collect();
        if fields.len() != width {
            let problem = format!("the row has {} fields, but the header has {width}", fields.len());
            return Err(wrong(&file, At { line, column: None }, None, problem));
        }
        let field = |which: usize| -> Result<&str> {
            let Some(place) = places[which] else { return Ok("") };
            let at = At { line, column: Some(place as u64 + 1) };
            let refuse = |_| wrong(&file, at, Some(COLUMNS[which]), format!("{} is not UTF-8", quote(fields[place])));
            Ok(std::str::from_utf8(fields[place]).map_err(refuse)?.trim())
        };
        let column = |which: usize| At { line, column: places[which].map(|place| place as u64 + 1) };
        let row = field(0)?;
        let number = row.parse::<u64>().map_err(|_| {
            wrong(&file, column(0), Some("row"), format!("{} is not a row number: they count from 1", quoted(row)))
        })?;
        let decision = decision(field(1)?, field(2)?)
            .map_err(|(which, problem)| wrong(&file, column(which), Some(COLUMNS[which]), problem))?;
        insert(&mut decisions, number, decision, column(0))?;
    }
    Ok(decisions)
}

/// Where the columns are; that of the labels may be left out.
fn header(record: &Record, file: &Path) -> Result<[Option<usize>; 3]> {
    let names: Vec<String> =
        record.iter().map(|field| String::from_utf8_lossy(field).trim().to_ascii_lowercase()).collect();
    let places = COLUMNS.map(|column| names.iter().position(|name| name == column));
    match places.iter().take(2).position(Option::is_none) {
        None => Ok(places),
        Some(missing) => {
            let problem = format!(
                "there is no column {:?}; a file of decisions has the columns row, decision and label",
                COLUMNS[missing]
            );
            Err(wrong(file, At { line: Some(record.line), column: None }, None, problem))
        }
    }
}

/// A decision by its name and label, or which column is wrong and why.
fn decision(name: &str, label: &str) -> std::result::Result<Decision, (usize, String)> {
    match name.to_ascii_lowercase().as_str() {
        "keep" => Ok(Decision::Keep),
        "drop" => Ok(Decision::Drop),
        "relabel" if label.is_empty() => Err((2, "a row to relabel needs its new label".to_string())),
        "relabel" => Ok(Decision::Relabel(label.to_string())),
        _ => Err((1, format!("{} is no decision: it must be keep, relabel or drop", quoted(name)))),
    }
}

fn insert(decisions: &mut Decisions, row: u64, decision: Decision, at: At) -> Result<()> {
    let file: PathBuf = decisions.source.clone();
    if row == 0 {
        return Err(wrong(&file, at, Some("row"), "there is no row 0: rows count from 1"));
    }
    match decisions.rows.entry(row) {
        Place::Vacant(place) => {
            place.insert(Entry { decision, line: at.line });
            Ok(())
        }
        Place::Occupied(found) if found.get().decision == decision => Ok(()),
        Place::Occupied(found) => {
            let before = found.get().line.map_or(String::new(), |line| format!(" on line {line}"));
            Err(wrong(&file, at, Some("row"), format!("row {row} has another decision{before}")))
        }
    }
}

fn read_json(source: Source) -> Result<Decisions> {
    let (file, reader) = source.into_reader();
    let mut text = Vec::new();
    reader.take(LONGEST).read_to_end(&mut text).map_err(|error| read_failure(&file, error))?;
    let value: Value = serde_json::from_slice(&text).map_err(|error| {
        let at = At { line: Some(error.line() as u64), column: Some(error.column() as u64) };
        let message = error.to_string();
        let problem = message.split(" at line ").next().unwrap_or("this is not JSON").to_string();
        wrong(&file, at, None, format!("not JSON: {problem}"))
    })?;
    let list = value.as_array().or_else(|| value.get("decisions").and_then(Value::as_array));
    let Some(list) = list else {
        return Err(wrong(
            &file,
            At::default(),
            None,
            "a list of decisions is expected, or an object with one under \"decisions\"",
        ));
    };
    let mut decisions = Decisions { source: file.clone(), ..Decisions::default() };
    for (number, entry) in list.iter().enumerate() {
        let refuse = |problem: String| wrong(&file, At::default(), None, format!("decision {}: {problem}", number + 1));
        let row = entry.get("row").and_then(Value::as_u64);
        let row = row.ok_or_else(|| refuse("\"row\" must be a whole number >= 1".to_string()))?;
        let name = entry.get("decision").and_then(Value::as_str);
        let name = name.ok_or_else(|| refuse("\"decision\" must be keep, relabel or drop".to_string()))?;
        let label = match entry.get("label") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(label)) => label.trim().to_string(),
            Some(Value::Number(label)) => label.to_string(),
            Some(_) => return Err(refuse("\"label\" must be a text or a number".to_string())),
        };
        let decision = decision(name, &label).map_err(|(_, problem)| refuse(problem))?;
        insert(&mut decisions, row, decision, At::default())?;
    }
    Ok(decisions)
}
