//! LIBSVM text: a row is `label index:value index:value ...`, what follows `#` is a comment.
//!
//! Indices count from 1 (from 0 if the caller says so) and ascend within a row; features that are not listed are 0.

use super::columns::Expected;
use super::field::{Problem, is_missing_label, missing, number, quote};
use super::lines::Lines;
use super::names::Names;
use super::source::Source;
use super::table::{ReadOptions, Table, TargetColumn};
use crate::data::Csr;
use crate::error::{Error, ParseKind, Result};
use crate::model::Rows;

/// Column numbers are 32 bits wide, and one more than the largest must still be countable.
pub(super) const LARGEST_INDEX: u64 = u32::MAX as u64 - 1;

/// Reads LIBSVM text.
pub(super) fn read(source: Source, options: &ReadOptions, expected: Option<&Expected>) -> Result<Table> {
    let name = source.name.clone();
    let mut reader = Reader::open(source, options, expected)?;
    reader.next(usize::MAX)?;
    let Reader { lines, mut rows, .. } = reader;
    rows.starts.push(rows.values.len());
    if rows.lines.is_empty() {
        return Err(lines.whole("the file is empty"));
    }
    let cols = rows.limit.unwrap_or(rows.width);
    if cols == 0 {
        return Err(lines.whole("no row has any feature"));
    }
    let labels = rows.labelled.then(|| rows.names.finish());
    let x = Csr::new(rows.lines.len(), cols, rows.starts, rows.columns, rows.values)?;
    Ok(Table {
        x: Rows::Sparse(x),
        labels,
        weights: None,
        feature_names: None,
        lines: rows.lines,
        source: name,
        notes: Vec::new(),
    })
}

/// LIBSVM text, read some rows at a time.
pub(super) struct Reader<'a> {
    lines: Lines<'a>,
    line: Vec<u8>,
    pub(super) rows: Collector,
}

impl<'a> Reader<'a> {
    pub(super) fn open(source: Source<'a>, options: &ReadOptions, expected: Option<&Expected>) -> Result<Reader<'a>> {
        let lines = Lines::new(source);
        if let TargetColumn::Given(column) = &options.target {
            let column = quote(column.as_bytes());
            return Err(lines.whole(format!("LIBSVM text has its labels in front; there is no target column {column}")));
        }
        if options.weight_column.is_some() {
            return Err(lines.whole("LIBSVM text has no column of weights"));
        }
        if !options.ignore.is_empty() {
            return Err(lines.whole("LIBSVM text has no columns that could be ignored"));
        }
        let labelled = options.target != TargetColumn::Absent && expected.is_none_or(|expected| expected.labels);
        let limit = expected.map(|expected| expected.features).or(options.features);
        let rows = Collector { labelled, zero_based: options.zero_based, limit, ..Collector::default() };
        Ok(Reader { lines, line: Vec::new(), rows })
    }

    /// Adds up to `most` rows to those collected.
    pub(super) fn next(&mut self, most: usize) -> Result<()> {
        let end = self.rows.lines.len().saturating_add(most);
        while self.rows.lines.len() < end && self.lines.next_line(&mut self.line)? {
            let line = &self.line;
            let content = line.iter().position(|&byte| byte == b'#').map_or(&line[..], |comment| &line[..comment]);
            self.rows.push(content, self.lines.line()).map_err(|wrong| wrong.into_error(line, &self.lines))?;
        }
        Ok(())
    }

    /// The rows collected, each `cols` wide, and none left.
    pub(super) fn take_dense(&mut self, cols: usize, out: &mut Vec<f64>) -> usize {
        let count = self.rows.lines.len();
        self.rows.starts.push(self.rows.values.len());
        out.clear();
        out.resize(count * cols, 0.0);
        for row in 0..count {
            for at in self.rows.starts[row]..self.rows.starts[row + 1] {
                out[row * cols + self.rows.columns[at] as usize] = self.rows.values[at];
            }
        }
        self.discard()
    }

    /// Forgets the rows collected; returns how many they were.
    pub(super) fn discard(&mut self) -> usize {
        let count = self.rows.lines.len();
        self.rows.starts.clear();
        self.rows.columns.clear();
        self.rows.values.clear();
        self.rows.lines.clear();
        count
    }
}

/// Something wrong at a byte of the line.
struct Wrong {
    at: usize,
    problem: Problem,
}

impl Wrong {
    fn into_error(self, line: &[u8], lines: &Lines) -> Error {
        let column = 1 + String::from_utf8_lossy(&line[..self.at]).chars().count() as u64;
        lines.at(lines.line(), Some(column), None, self.problem)
    }
}

/// Rows read so far.
#[derive(Default)]
pub(super) struct Collector {
    labelled: bool,
    zero_based: bool,
    limit: Option<usize>,
    pub(super) names: Names,
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
    pub(super) width: usize,
    lines: Vec<u64>,
}

impl Collector {
    fn push(&mut self, content: &[u8], line: u64) -> std::result::Result<(), Wrong> {
        let mut tokens = Tokens { content, at: 0 }.peekable();
        let Some(&(at, first)) = tokens.peek() else { return Ok(()) };
        self.starts.push(self.values.len());
        self.lines.push(line);
        if !first.contains(&b':') {
            tokens.next();
            if self.labelled {
                self.label(at, first)?;
            }
        } else if self.labelled {
            let problem = format!("the row starts with {}, not with its label", quote(first));
            return Err(Wrong { at, problem: problem.into() });
        }
        let mut previous = None;
        for (at, token) in tokens {
            let index = self.entry(at, token, previous)?;
            previous = Some(index);
        }
        Ok(())
    }

    fn label(&mut self, at: usize, token: &[u8]) -> std::result::Result<(), Wrong> {
        let wrong = |problem: Problem| Wrong { at, problem };
        let text =
            std::str::from_utf8(token).map_err(|_| wrong(format!("the label {} is not UTF-8", quote(token)).into()))?;
        if is_missing_label(token) {
            return Err(wrong(missing(token)));
        }
        self.names.push(text).map_err(wrong)
    }

    /// Adds one `index:value`, returns the index as written.
    fn entry(&mut self, at: usize, token: &[u8], previous: Option<u64>) -> std::result::Result<u64, Wrong> {
        let wrong = |at, problem: String| Wrong { at, problem: problem.into() };
        let Some(colon) = token.iter().position(|&byte| byte == b':') else {
            return Err(wrong(at, format!("{} is not of the form index:value", quote(token))));
        };
        let (index, value) = (&token[..colon], &token[colon + 1..]);
        if index == b"qid" {
            return Err(wrong(at, "qid is for ranking and not supported; leave it out".to_string()));
        }
        let index = whole_number(index).ok_or_else(|| wrong(at, format!("{} is not a feature index", quote(index))))?;
        if index == 0 && !self.zero_based {
            let problem = "feature index 0: indices count from 1 (or say that they count from 0)";
            return Err(Wrong { at, problem: Problem::new(ParseKind::IndexZero, problem) });
        }
        if index > LARGEST_INDEX {
            return Err(wrong(at, format!("feature index {index} is too large: at most {LARGEST_INDEX}")));
        }
        if let Some(previous) = previous
            && index <= previous
        {
            return Err(wrong(at, format!("feature index {index} after {previous}: indices must ascend")));
        }
        let column = if self.zero_based { index } else { index - 1 };
        if let Some(limit) = self.limit
            && column >= limit as u64
        {
            return Err(wrong(at, format!("feature index {index}, but there are {limit} features")));
        }
        let value = number(value).map_err(|problem| Wrong { at: at + colon + 1, problem })?;
        self.width = self.width.max(column as usize + 1);
        if value != 0.0 {
            self.columns.push(column as u32);
            self.values.push(value);
        }
        Ok(index)
    }
}

/// Digits as a number; too many of them saturate.
pub(super) fn whole_number(digits: &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    }
    (!digits.is_empty()).then_some(value)
}

/// Pieces between white space, with their offsets.
pub(super) struct Tokens<'a> {
    pub content: &'a [u8],
    pub at: usize,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.content[self.at..];
        let start = self.at + rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let rest = &self.content[start..];
        let end = start + rest.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(rest.len());
        self.at = end;
        Some((start, &self.content[start..end]))
    }
}

#[cfg(test)]
mod tests;
