//! A table's text with decisions applied, byte for byte as it was where nothing was decided.

use super::super::columns::{Columns, Role};
use super::super::csv::{Place, Record, Records, guess_delimiter, has_header, header_names};
use super::super::field::quote;
use super::super::lines::{LONGEST_LINE, Lines, trim_end};
use super::super::names::match_class;
use super::super::source::{Source, display_name, whole_file};
use super::super::table::{Format, ReadOptions, TargetColumn};
use super::{Decision, Decisions};
use crate::data::Class;
use crate::error::{Error, ParseKind, Result, quoted};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How many rows met which fate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// Rows that stay as they were.
    pub kept: u64,
    /// Rows with another label.
    pub relabelled: u64,
    /// Rows left out.
    pub dropped: u64,
    /// Labels given to rows, each with the number of these rows, that no row of the data had: new classes, or slips.
    pub new_labels: BTreeMap<String, u64>,
}

/// Writes a data file with decisions applied; `-` is standard input. Gzipped data are written unpacked.
pub fn apply_decisions(
    path: impl AsRef<Path>,
    options: &ReadOptions,
    decisions: &Decisions,
    out: &mut dyn Write,
) -> Result<Applied> {
    apply(Source::open(path.as_ref())?, options, decisions, out)
}

/// As [`apply_decisions`], from memory or any other reader; `name` stands for the file in messages.
pub fn apply_decisions_to(
    reader: impl Read,
    name: impl AsRef<Path>,
    options: &ReadOptions,
    decisions: &Decisions,
    out: &mut dyn Write,
) -> Result<Applied> {
    apply(Source::new(Box::new(reader), display_name(name.as_ref()))?, options, decisions, out)
}

fn apply(source: Source, options: &ReadOptions, decisions: &Decisions, out: &mut dyn Write) -> Result<Applied> {
    let format = source.format(options.format)?;
    if format == Format::Parquet {
        return Err(whole_file(&source.name, "decisions are applied to text: convert the Parquet file to CSV first"));
    }
    let mut writer =
        Writer { out, decisions, applied: Applied { new_labels: labels_of(decisions), ..Applied::default() } };
    if source.marked {
        writer.put(BYTE_ORDER_MARK)?;
    }
    match format {
        Format::Libsvm => libsvm(source, options, &mut writer)?,
        _ => csv(source, options, &mut writer)?,
    }
    writer.check_range()?;
    Ok(writer.applied)
}

/// The text on its way out.
struct Writer<'a> {
    out: &'a mut dyn Write,
    decisions: &'a Decisions,
    applied: Applied,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|error| Error::io("the output", error))
    }

    /// The next row; `label` is where its label stands.
    fn row(&mut self, bytes: &[u8], label: Range<usize>, written: impl FnOnce(&str) -> Result<Vec<u8>>) -> Result<()> {
        let row = self.applied.kept + self.applied.relabelled + self.applied.dropped + 1;
        if !self.applied.new_labels.is_empty() {
            let present = Class::Text(plain(&bytes[label.clone()]));
            // a number is the same class however it is written
            self.applied.new_labels.retain(|new, _| match_class(&[Class::Text(new.clone())], &present).is_none());
        }
        match self.decisions.get(row) {
            Some(Decision::Drop) => {
                self.applied.dropped += 1;
                Ok(())
            }
            Some(Decision::Relabel(new)) => {
                self.applied.relabelled += 1;
                let new = written(new)?;
                self.put(&bytes[..label.start])?;
                self.put(&new)?;
                self.put(&bytes[label.end..])
            }
            _ => {
                self.applied.kept += 1;
                self.put(bytes)
            }
        }
    }

    /// Refuses decisions about rows that are not there.
    fn check_range(&self) -> Result<()> {
        let rows = self.applied.kept + self.applied.relabelled + self.applied.dropped;
        let Some((row, entry)) = self.decisions.rows.range(rows + 1..).next() else { return Ok(()) };
        Err(Error::Parse {
            file: self.decisions.source.clone(),
            line: entry.line,
            column: None,
            name: Some("row".to_string()),
            kind: ParseKind::Other,
            problem: format!("there is no row {row}: the data have {rows}"),
        })
    }
}

/// The labels that rows are to get, and how many rows each.
fn labels_of(decisions: &Decisions) -> BTreeMap<String, u64> {
    let mut labels = BTreeMap::new();
    for (_, decision) in decisions.iter() {
        if let Decision::Relabel(label) = decision {
            *labels.entry(label.clone()).or_default() += 1;
        }
    }
    labels
}

/// The text of a field, without spaces around it and quotes, lines ended as readers end them.
fn plain(field: &[u8]) -> String {
    let text = String::from_utf8_lossy(field.trim_ascii()).replace("\r\n", "\n");
    match text.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\"").trim().to_string(),
        None => text,
    }
}

/// A record as it stands in the file, line end included.
#[derive(Default)]
struct Raw {
    bytes: Vec<u8>,
    /// Fields with their quotes.
    fields: Vec<Range<usize>>,
    line: u64,
}

impl Raw {
    /// Reads the next record. False at the end of the text; a line without anything has no fields.
    fn next(&mut self, lines: &mut Lines, delimiter: u8) -> Result<bool> {
        self.bytes.clear();
        self.fields.clear();
        if !lines.append(&mut self.bytes)? {
            return Ok(false);
        }
        self.line = lines.line();
        if trim_end(&self.bytes).iter().all(|&byte| byte == b' ') {
            return Ok(true);
        }
        let (mut at, mut start, mut place) = (0, 0, Place::Start);
        loop {
            let end = trim_end(&self.bytes).len();
            while at < end {
                place = match place.after(self.bytes[at], delimiter) {
                    Some(place) => place,
                    None => {
                        self.fields.push(start..at);
                        start = at + 1;
                        Place::Start
                    }
                };
                at += 1;
            }
            if place != Place::Quoted {
                self.fields.push(start..end);
                return Ok(true);
            }
            at = self.bytes.len();
            if self.bytes.len() > LONGEST_LINE || !lines.append(&mut self.bytes)? {
                return Err(lines.at(self.line, None, None, "a quote is opened in this row and never closed"));
            }
        }
    }
}

fn csv(source: Source, options: &ReadOptions, writer: &mut Writer) -> Result<()> {
    let name = source.name.clone();
    let delimiter = options.delimiter.unwrap_or_else(|| guess_delimiter(&source.prefix));
    let mut lines = Lines::new(source);
    // everything up to the second record: what the header is told by
    let mut begun: Vec<Raw> = Vec::new();
    while begun.iter().filter(|raw| !raw.fields.is_empty()).count() < 2 {
        let mut raw = Raw::default();
        if !raw.next(&mut lines, delimiter)? {
            break;
        }
        begun.push(raw);
    }
    let mut parsed = Vec::new();
    for raw in begun.iter().filter(|raw| !raw.fields.is_empty()) {
        let mut record = Record::default();
        Records::new(Source::new(Box::new(&raw.bytes[..]), name.clone())?, Some(delimiter)).next(&mut record)?;
        parsed.push(record);
    }
    let Some(first) = parsed.first() else { return Err(lines.whole("the file is empty")) };
    let with_header = has_header(first, parsed.get(1), options);
    let header = if with_header { Some(header_names(first, &lines)?) } else { None };
    let columns = Columns { count: first.fields.len(), header: header.as_deref() };
    let plan = columns.plan(options, None).map_err(|problem| lines.at(first.line, None, None, problem))?;
    let Some(target) = plan.roles.iter().position(|role| *role == Role::Target) else {
        return Err(lines.whole("there is no target column"));
    };
    let width = first.fields.len();
    let mut header_to_come = with_header;
    let mut emit = |raw: &Raw, lines: &Lines, writer: &mut Writer| -> Result<()> {
        if raw.fields.is_empty() {
            return writer.put(&raw.bytes);
        }
        if std::mem::take(&mut header_to_come) {
            return writer.put(&raw.bytes);
        }
        if raw.fields.len() != width {
            let problem = format!("the row has {} fields, but the first row has {width}", raw.fields.len());
            return Err(lines.at(raw.line, None, None, problem));
        }
        let field = raw.fields[target].clone();
        let quoted_before = raw.bytes[field.clone()].trim_ascii().starts_with(b"\"");
        writer.row(&raw.bytes, field, |label| Ok(csv_label(label, delimiter, quoted_before)))
    };
    for raw in &begun {
        emit(raw, &lines, writer)?;
    }
    let mut raw = Raw::default();
    while raw.next(&mut lines, delimiter)? {
        emit(&raw, &lines, writer)?;
    }
    Ok(())
}

/// A label as a field: quoted where the one before was, or where it must be.
fn csv_label(label: &str, delimiter: u8, quoted_before: bool) -> Vec<u8> {
    let special = label.bytes().any(|byte| byte == delimiter || b"\"\r\n".contains(&byte)) || label.trim() != label;
    match quoted_before || special {
        true => format!("\"{}\"", label.replace('"', "\"\"")).into_bytes(),
        false => label.as_bytes().to_vec(),
    }
}

fn libsvm(source: Source, options: &ReadOptions, writer: &mut Writer) -> Result<()> {
    let mut lines = Lines::new(source);
    if let TargetColumn::Given(column) = &options.target {
        let column = quoted(column);
        return Err(lines.whole(format!("LIBSVM text has its labels in front; there is no target column {column}")));
    }
    let mut line = Vec::new();
    loop {
        line.clear();
        if !lines.append(&mut line)? {
            return Ok(());
        }
        let content = line.iter().position(|&byte| byte == b'#').map_or(&line[..], |comment| &line[..comment]);
        let Some(start) = content.iter().position(|byte| !byte.is_ascii_whitespace()) else {
            writer.put(&line)?;
            continue;
        };
        let rest = &content[start..];
        let end = start + rest.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(rest.len());
        if line[start..end].contains(&b':') {
            let problem = format!("the row starts with {}, not with its label", quote(&line[start..end]));
            return Err(lines.at(lines.line(), Some(start as u64 + 1), None, problem));
        }
        writer.row(&line, start..end, |label| {
            if label.bytes().any(|byte| byte.is_ascii_whitespace() || byte == b':' || byte == b'#') {
                let problem = format!("{} can't be a label of LIBSVM text: no spaces, : or #", quoted(label));
                return Err(lines.at(lines.line(), Some(start as u64 + 1), None, problem));
            }
            Ok(label.as_bytes().to_vec())
        })?;
    }
}
