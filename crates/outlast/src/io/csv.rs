//! CSV: records of fields between delimiters, RFC 4180 quoting, with or without a header.
//!
//! A record without a quote sign is split where it stands; one with quotes goes through a small state machine that follows
//! the `csv` crate (a test holds the two together). Reading our own lines keeps the line numbers exact through blank
//! lines, CRLF and line breaks within quotes, and keeps the memory bounded when a quote never closes.

use super::columns::{Columns, Expected, Plan, Role, is_target_name};
use super::field::{Problem, is_missing, is_missing_label, missing, number, quote};
use super::lines::{LONGEST_LINE, Lines, trim_end};
use super::names::Names;
use super::source::Source;
use super::table::{Header, ReadOptions, Table, TargetColumn};
use crate::data::Dense;
use crate::error::{Error, ParseKind, Result};
use crate::model::Rows;
use std::ops::Range;

/// One record, its fields unquoted.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    text: Vec<u8>,
    pub(super) fields: Vec<Range<usize>>,
    /// Line where it starts.
    pub(super) line: u64,
}

impl Record {
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.fields.iter().map(|range| &self.text[range.clone()])
    }

    /// Splits text without quote signs.
    fn split_plain(&mut self, delimiter: u8) {
        self.fields.clear();
        let mut start = 0;
        for (at, &byte) in self.text.iter().enumerate() {
            if byte == delimiter {
                self.fields.push(start..at);
                start = at + 1;
            }
        }
        self.fields.push(start..self.text.len());
    }
}

/// Where the quoting state machine stands within a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Place {
    Start,
    Plain,
    Quoted,
    /// After a quote sign within quotes: the second of a pair, or the end.
    Closing,
}

impl Place {
    /// Where it stands after one more byte; `None` if that ends the field.
    #[inline(always)]
    pub(super) fn after(self, byte: u8, delimiter: u8) -> Option<Place> {
        match (self, byte) {
            (Place::Start | Place::Closing, b'"') => Some(Place::Quoted),
            (Place::Quoted, b'"') => Some(Place::Closing),
            (Place::Quoted, _) => Some(Place::Quoted),
            (_, byte) if byte == delimiter => None,
            _ => Some(Place::Plain),
        }
    }
}

/// Records of a text.
pub(super) struct Records<'a> {
    pub(super) lines: Lines<'a>,
    delimiter: u8,
    scratch: Vec<u8>,
}

impl<'a> Records<'a> {
    /// The records of a source; without a delimiter given, it is guessed.
    pub(super) fn new(source: Source<'a>, delimiter: Option<u8>) -> Self {
        let delimiter = delimiter.unwrap_or_else(|| guess_delimiter(&source.prefix));
        Records { lines: Lines::new(source), delimiter, scratch: Vec::new() }
    }

    /// Reads the next record. False at the end of the text.
    pub(super) fn next(&mut self, record: &mut Record) -> Result<bool> {
        loop {
            if !self.lines.next_line(&mut record.text)? {
                return Ok(false);
            }
            if record.text.iter().any(|&byte| byte != b' ') {
                break;
            }
        }
        record.line = self.lines.line();
        if record.text.contains(&b'"') {
            self.split_quoted(record)?;
        } else {
            record.split_plain(self.delimiter);
        }
        Ok(true)
    }

    /// Splits text with quote signs, reading on while a quote is open.
    fn split_quoted(&mut self, record: &mut Record) -> Result<()> {
        let mut piece = std::mem::take(&mut record.text);
        record.fields.clear();
        let (mut start, mut place) = (0, Place::Start);
        loop {
            let content = trim_end(&piece).len();
            for &byte in &piece[..content] {
                let next = place.after(byte, self.delimiter);
                // a byte that only moves in or out of quotes is no content; the second of a pair of quotes is
                let opens_or_closes =
                    next == Some(Place::Closing) || place == Place::Start && next == Some(Place::Quoted);
                match next {
                    None => {
                        record.fields.push(start..record.text.len());
                        start = record.text.len();
                    }
                    Some(_) if opens_or_closes => {}
                    Some(_) => record.text.push(byte),
                }
                place = next.unwrap_or(Place::Start);
            }
            if place != Place::Quoted {
                break;
            }
            record.text.push(b'\n');
            self.scratch.clear();
            if record.text.len() > LONGEST_LINE || !self.lines.append(&mut self.scratch)? {
                return Err(self.lines.at(record.line, None, None, "a quote is opened in this row and never closed"));
            }
            std::mem::swap(&mut piece, &mut self.scratch);
        }
        record.fields.push(start..record.text.len());
        Ok(())
    }
}

/// Reads a CSV text.
pub(super) fn read(source: Source, options: &ReadOptions, expected: Option<&Expected>) -> Result<Table> {
    let name = source.name.clone();
    let mut reader = Reader::open(source, options, expected)?;
    reader.next(usize::MAX)?;
    reader.rows.finish(name)
}

/// A CSV text, read some rows at a time.
pub(super) struct Reader<'a> {
    records: Records<'a>,
    /// Records that were read to recognise the columns and are still to be taken in.
    waiting: [Option<Record>; 2],
    record: Record,
    pub(super) rows: Collector,
    /// Whether the first column may be nothing but row numbers: it has no name.
    maybe_numbering: bool,
}

impl<'a> Reader<'a> {
    /// Reads the first records and decides what each column is.
    pub(super) fn open(source: Source<'a>, options: &ReadOptions, expected: Option<&Expected>) -> Result<Reader<'a>> {
        let mut records = Records::new(source, options.delimiter);
        let (mut first, mut record) = (Record::default(), Record::default());
        if !records.next(&mut first)? {
            return Err(records.lines.without_rows("the file is empty"));
        }
        let more = records.next(&mut record)?;
        let with_header = has_header(&first, more.then_some(&record), options);
        let header = if with_header { Some(header_names(&first, &records.lines)?) } else { None };
        let columns = Columns { count: first.fields.len(), header: header.as_deref() };
        let at_first = |problem| records.lines.at(first.line, None, None, problem);
        let plan = columns.plan(options, expected).map_err(at_first)?;
        if with_header && !more {
            return Err(records.lines.without_rows("the file has a header and no data"));
        }
        let unnamed = with_header && first.iter().next().is_some_and(|name| name.trim_ascii().is_empty());
        // a model says itself which columns it wants
        let maybe_numbering = unnamed && expected.is_none() && plan.roles[0] == Role::Feature(0) && plan.features > 1;
        let rows = Collector::new(plan, header);
        let waiting = [(!with_header).then_some(first), more.then_some(record)];
        Ok(Reader { records, waiting, record: Record::default(), rows, maybe_numbering })
    }

    /// Adds up to `most` rows to those collected.
    pub(super) fn next(&mut self, most: usize) -> Result<()> {
        let mut left = most;
        for record in self.waiting.iter_mut().filter_map(Option::take) {
            self.rows.push(&record, &self.records.lines)?;
            left = left.saturating_sub(1);
        }
        while left > 0 && self.records.next(&mut self.record)? {
            self.rows.push(&self.record, &self.records.lines)?;
            left -= 1;
        }
        if std::mem::take(&mut self.maybe_numbering) && self.rows.first_feature_counts() {
            self.rows.drop_first_feature();
        }
        Ok(())
    }
}

/// Rows read so far.
pub(super) struct Collector {
    pub(super) plan: Plan,
    header: Option<Vec<String>>,
    pub(super) values: Vec<f64>,
    pub(super) names: Names,
    pub(super) weights: Vec<f64>,
    pub(super) lines: Vec<u64>,
    pub(super) notes: Vec<String>,
}

impl Collector {
    fn new(plan: Plan, header: Option<Vec<String>>) -> Self {
        Collector {
            plan,
            header,
            values: Vec::new(),
            names: Names::default(),
            weights: Vec::new(),
            lines: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn push(&mut self, record: &Record, lines: &Lines) -> Result<()> {
        let (found, wanted) = (record.fields.len(), self.plan.roles.len());
        if found != wanted {
            let problem = format!("the row has {found} fields, but the first row has {wanted}");
            return Err(lines.at(record.line, None, None, Problem::new(ParseKind::FieldCount, problem)));
        }
        let base = self.values.len();
        self.values.resize(base + self.plan.features, 0.0);
        for (column, (field, role)) in record.iter().zip(&self.plan.roles).enumerate() {
            let outcome = match *role {
                Role::Feature(position) => number(field).map(|value| self.values[base + position] = value),
                Role::Target => label(field).and_then(|label| self.names.push(label)),
                Role::Weight => weight(field).map(|value| self.weights.push(value)),
                Role::Ignored => Ok(()),
            };
            if let Err(problem) = outcome {
                let name = self.header.as_ref().map(|header| header[column].clone());
                return Err(lines.at(record.line, Some(column as u64 + 1), name, problem));
            }
        }
        self.lines.push(record.line);
        Ok(())
    }

    /// Whether the first feature is 0, 1, 2, ... or 1, 2, 3, ...: row numbers, which say nothing about the rows.
    fn first_feature_counts(&self) -> bool {
        let first = || self.values.iter().step_by(self.plan.features).enumerate();
        let from = |start: usize| first().all(|(row, &value)| value == (row + start) as f64);
        self.lines.len() > 1 && (from(0) || from(1))
    }

    fn drop_first_feature(&mut self) {
        let width = self.plan.features;
        let mut at = 0;
        self.values.retain(|_| {
            at += 1;
            at % width != 1
        });
        self.plan.features -= 1;
        for role in &mut self.plan.roles {
            *role = match *role {
                Role::Feature(0) => Role::Ignored,
                Role::Feature(position) => Role::Feature(position - 1),
                other => other,
            };
        }
        self.plan.names.iter_mut().for_each(|names| drop(names.remove(0)));
        let note =
            "column 1 has no name and counts the rows, so it is left out; give it a name to keep it as a feature";
        self.notes.push(note.to_string());
    }

    fn finish(self, source: std::path::PathBuf) -> Result<Table> {
        Ok(Table {
            x: Rows::Dense(Dense::new(self.lines.len(), self.plan.features, self.values)?),
            labels: self.plan.has(Role::Target).then(|| self.names.finish()),
            weights: self.plan.has(Role::Weight).then_some(self.weights),
            feature_names: self.plan.names,
            lines: self.lines,
            source,
            notes: self.notes,
        })
    }
}

pub(super) fn label(field: &[u8]) -> std::result::Result<&str, Problem> {
    let text = std::str::from_utf8(field).map_err(|_| format!("the label {} is not UTF-8", quote(field)))?.trim();
    if is_missing_label(text.as_bytes()) { Err(missing(text.as_bytes())) } else { Ok(text) }
}

pub(super) fn weight(field: &[u8]) -> std::result::Result<f64, Problem> {
    allowed_weight(number(field)?)
}

pub(super) fn allowed_weight(value: f64) -> std::result::Result<f64, Problem> {
    match value >= 0.0 {
        true => Ok(value),
        false => Err(format!("a weight of {value} is not allowed: weights must be >= 0").into()),
    }
}

pub(super) fn header_names(first: &Record, lines: &Lines) -> Result<Vec<String>> {
    let name = |(column, field): (usize, &[u8])| -> Result<String> {
        match std::str::from_utf8(field) {
            // a table written with its row numbers has no name over them
            Ok(text) if text.trim().is_empty() => Ok(format!("column {}", column + 1)),
            Ok(text) => Ok(text.trim().to_string()),
            Err(_) => {
                let problem = format!("the name {} is not UTF-8", quote(field));
                Err::<_, Error>(lines.at(first.line, Some(column as u64 + 1), None, problem))
            }
        }
    };
    first.iter().enumerate().map(name).collect()
}

/// Whether the first record holds names, see [`Header::Auto`].
pub(super) fn has_header(first: &Record, second: Option<&Record>, options: &ReadOptions) -> bool {
    match options.header {
        Header::Yes => return true,
        Header::No => return false,
        Header::Auto => {}
    }
    let text = |field: &[u8]| std::str::from_utf8(field).map(str::trim).unwrap_or_default().to_string();
    let asked_for = |name: &str| {
        matches!(&options.target, TargetColumn::Given(column) if column.trim() == name)
            || options.weight_column.as_deref().is_some_and(|column| column.trim() == name)
            || options.ignore.iter().any(|column| column.trim() == name)
    };
    let is_number = |field: &[u8]| number(field).is_ok();
    if first.iter().any(|field| !is_number(field) && (is_target_name(&text(field)) || asked_for(&text(field)))) {
        return true;
    }
    let wordy = |field: &[u8]| !is_number(field) && !is_missing(field.trim_ascii());
    let none_is_a_number = !first.iter().any(is_number) && first.iter().any(wordy);
    let numbers_below = second.is_some_and(|second| {
        first.fields.len() == second.fields.len()
            && first.iter().zip(second.iter()).any(|(above, below)| wordy(above) && is_number(below))
    });
    none_is_a_number || numbers_below
}

/// Tab, semicolon or comma: the first of them that occurs in the first line, and as often in the second.
pub(super) fn guess_delimiter(prefix: &[u8]) -> u8 {
    let lines = prefix.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let counts: Vec<[usize; 3]> =
        lines.take(2).map(|line| [b'\t', b';', b','].map(|byte| outside_quotes(line, byte))).collect();
    let Some(first) = counts.first() else { return b',' };
    let agrees = |at: &usize| first[*at] > 0 && counts.iter().all(|count| count[*at] == first[*at]);
    let most = (0..3).rev().max_by_key(|&at| first[at]).unwrap_or(2);
    [b'\t', b';', b','][(0..3).find(agrees).unwrap_or(most)]
}

fn outside_quotes(line: &[u8], wanted: u8) -> usize {
    let mut quoted = false;
    let mut count = 0;
    for &byte in line {
        quoted ^= byte == b'"';
        count += usize::from(!quoted && byte == wanted);
    }
    count
}

#[cfg(test)]
mod tests;
