//! Parquet files without nesting: tables by columns, each cut into row groups and those into pages.
//!
//! ```text
//! "PAR1" | pages of column 1, pages of column 2, ... of row group 1 | row group 2 | ... | footer | length of the footer | "PAR1"
//! ```
//!
//! | file | does |
//! |---|---|
//! | `thrift` | the protocol that footer and page headers are written in |
//! | `footer` | columns, kinds, places; every claim held against the file's length |
//! | `pages` | a column's pages: decompression, levels |
//! | `encodings` | values: plain, dictionaries, runs, differences, split bytes |
//!
//! Columns are read side by side, a page of each at a time, so that a table of any length can be read in batches of rows. All numbers
//! but decimals become f64; texts are read as the fields of a CSV file are. A missing value is refused as an empty field is, in a column
//! that is used; other columns are never looked at.

mod encodings;
mod footer;
mod pages;
mod thrift;

use self::footer::{Field, Footer, Meaning};
use self::pages::{Pages, Stop, Values};
use super::columns::{Columns, Expected, Plan, Role};
use super::csv::{label, weight};
use super::field::{Problem, missing, number};
use super::names::Names;
use super::source::{Source, whole_file, without_rows};
use super::table::{Header, ReadOptions, Table};
use crate::data::Dense;
use crate::error::{Error, Result};
use crate::model::Rows;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// Rows of a batch when the whole table is read.
const BATCH: usize = 1 << 14;
/// A table may be so much larger than its file; beyond that, few bytes claim too many rows.
const ALLOWANCE: u64 = 1 << 28;
const RATIO: u64 = 1000;

/// Why a file can't be read.
#[derive(Debug)]
enum Trouble {
    System(io::Error),
    Damage(String),
}

type Outcome<T> = std::result::Result<T, Trouble>;

impl From<String> for Trouble {
    fn from(problem: String) -> Self {
        Trouble::Damage(problem)
    }
}

impl From<&str> for Trouble {
    fn from(problem: &str) -> Self {
        Trouble::Damage(problem.to_string())
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => "the file is shorter than it was".into(),
            _ => Trouble::System(error),
        }
    }
}

impl Trouble {
    fn within(self, what: &str) -> Trouble {
        match self {
            Trouble::Damage(problem) => Trouble::Damage(format!("{what}: {problem}")),
            system => system,
        }
    }
}

/// The bytes of a file, in any order.
struct Bytes {
    storage: Storage,
    length: u64,
}

enum Storage {
    File(File),
    Memory(Vec<u8>),
}

impl Bytes {
    fn new(source: Source) -> Result<Bytes> {
        let name = source.name.clone();
        let storage = match source.file {
            // a pipe has a name too
            Some(file) if file.metadata().is_ok_and(|metadata| metadata.is_file()) => Storage::File(file),
            _ => {
                let mut all = Vec::new();
                source.into_reader().1.read_to_end(&mut all).map_err(|error| Error::io(&name, error))?;
                Storage::Memory(all)
            }
        };
        let length = match &storage {
            Storage::File(file) => file.metadata().map_err(|error| Error::io(&name, error))?.len(),
            Storage::Memory(bytes) => bytes.len() as u64,
        };
        Ok(Bytes { storage, length })
    }

    /// So many bytes from a place on; both have been held against the length.
    fn read(&self, start: u64, count: u64) -> Outcome<Vec<u8>> {
        let end = start.checked_add(count).filter(|&end| end <= self.length).ok_or("it lies outside the file")?;
        match &self.storage {
            Storage::Memory(bytes) => Ok(bytes[start as usize..end as usize].to_vec()),
            Storage::File(file) => {
                let mut file = file;
                let mut found = vec![0; usize::try_from(count).map_err(|_| "it is too large")?];
                file.seek(SeekFrom::Start(start))?;
                file.read_exact(&mut found)?;
                Ok(found)
            }
        }
    }
}

/// Rows read at a time.
#[derive(Default)]
pub(super) struct Batch {
    /// Row-major.
    pub values: Vec<f64>,
    pub weights: Vec<f64>,
    pub rows: usize,
}

/// A Parquet file, read in batches of rows.
pub(super) struct Reader {
    name: PathBuf,
    bytes: Bytes,
    footer: Footer,
    pub plan: Plan,
    columns: Vec<Column>,
    /// The row group that is being read, and how many of its rows are left.
    group: usize,
    left: u64,
    row: u64,
    pub names: Names,
    pub notes: Vec<String>,
    /// Bytes that the pages of all columns may take.
    pub most_held: usize,
}

/// A column in use.
struct Column {
    /// Its place in the table.
    at: usize,
    role: Role,
    pages: Option<Pages>,
    values: Values,
    next: usize,
}

impl Reader {
    /// Reads the footer and decides what each column is.
    pub(super) fn open(source: Source, options: &ReadOptions, expected: Option<&Expected>) -> Result<Reader> {
        let name = source.name.clone();
        if options.delimiter.is_some() || options.header == Header::No {
            let problem = "a Parquet file has names for its columns and no delimiters; leave these options out";
            return Err(whole_file(&name, problem));
        }
        let bytes = Bytes::new(source)?;
        let footer = footer::read(&bytes).map_err(|trouble| about(&name, trouble))?;
        let header: Vec<String> = footer.fields.iter().map(|field| field.name.trim().to_string()).collect();
        let mut notes = Vec::new();
        let mut options = options.clone();
        // pandas writes an index that is not just counted as a column of such a name
        for index in header.iter().filter(|name| name.starts_with("__index_level_") && expected.is_none()) {
            notes.push(format!("column {index:?} is the index of a data frame and left out"));
            options.ignore.push(index.clone());
        }
        let columns = Columns { count: header.len(), header: Some(&header) };
        let plan = columns.plan(&options, expected).map_err(|problem| whole_file(&name, problem.text))?;
        if footer.rows == 0 {
            return Err(without_rows(&name, "the file has columns and no rows"));
        }
        let columns: Vec<Column> =
            plan.roles.iter().enumerate().filter_map(|(at, &role)| Column::new(at, role)).collect();
        let reader = Reader {
            name,
            bytes,
            footer,
            plan,
            columns,
            group: 0,
            left: 0,
            row: 0,
            names: Names::default(),
            notes,
            most_held: usize::MAX,
        };
        for column in &reader.columns {
            if let Meaning::Refused(what) = &reader.footer.fields[column.at].meaning {
                let problem = format!("the column {what}; convert it, or leave it out");
                return Err(reader.at(column.at, None, problem.into()));
            }
        }
        Ok(reader)
    }

    /// Rows of the file.
    pub(super) fn rows(&self) -> u64 {
        self.footer.rows
    }

    /// Reads up to `most` rows; a batch without rows is the end. Labels go to [`Self::names`].
    pub(super) fn next(&mut self, most: usize, batch: &mut Batch) -> Result<()> {
        while self.left == 0 {
            let Some(group) = self.footer.groups.get(self.group) else {
                *batch = Batch::default();
                return Ok(());
            };
            self.left = group.rows;
            for column in &mut self.columns {
                let field = &self.footer.fields[column.at];
                column.pages = Some(Pages::new(field, &group.chunks[field.leaf], group.rows));
                (column.values, column.next) = (Values::Bits(Vec::new()), 0);
            }
            self.group += 1;
        }
        let rows = self.left.min(most as u64) as usize;
        batch.rows = rows;
        batch.values.clear();
        batch.values.resize(rows * self.plan.features, 0.0);
        batch.weights.clear();
        let mut columns = std::mem::take(&mut self.columns);
        let mut held = 0usize;
        let done = columns.iter_mut().try_for_each(|column| {
            self.fill(column, rows, batch)?;
            held = held.saturating_add(column.held());
            if held > self.most_held { Err(self.too_large()) } else { Ok(()) }
        });
        self.columns = columns;
        done?;
        self.left -= rows as u64;
        self.row += rows as u64;
        Ok(())
    }

    /// A column's part of a batch.
    fn fill(&mut self, column: &mut Column, rows: usize, batch: &mut Batch) -> Result<()> {
        let mut row = 0;
        while row < rows {
            if column.next == column.values.len() {
                let Some(pages) = &mut column.pages else { return Ok(()) };
                match pages.next(&self.bytes, rows - row) {
                    Ok(Some(values)) => (column.values, column.next) = (values, 0),
                    Ok(None) => return Err(self.at(column.at, None, "its pages end before the rows do".into())),
                    Err(Stop::Missing(at)) => {
                        let row = self.row + row as u64 + at as u64;
                        return Err(self.at(column.at, Some(row), missing(b"")));
                    }
                    Err(Stop::Trouble(Trouble::Damage(problem))) => {
                        return Err(self.at(column.at, None, problem.into()));
                    }
                    Err(Stop::Trouble(trouble)) => return Err(about(&self.name, trouble)),
                }
                continue;
            }
            let count = (column.values.len() - column.next).min(rows - row);
            for step in 0..count {
                let outcome = self.put(column, column.next + step, row + step, batch);
                outcome.map_err(|problem| self.at(column.at, Some(self.row + (row + step) as u64), problem))?;
            }
            column.next += count;
            row += count;
        }
        if column.next == column.values.len() {
            (column.values, column.next) = (Values::Bits(Vec::new()), 0);
        }
        Ok(())
    }

    /// The error for pages that do not fit.
    fn too_large(&self) -> Error {
        let (columns, megabytes) = (self.plan.features, self.most_held.div_ceil(1_000_000));
        let problem = format!(
            "a page of each of {columns} columns takes more than the {megabytes} MB that the memory leaves for them; \
             write the file again with smaller row groups, or allow more memory"
        );
        whole_file(&self.name, problem)
    }

    /// One value of a column, on its way into the batch.
    fn put(
        &mut self,
        column: &Column,
        place: usize,
        row: usize,
        batch: &mut Batch,
    ) -> std::result::Result<(), Problem> {
        let field = &self.footer.fields[column.at];
        match (&column.values, column.role) {
            (Values::Bits(bits), Role::Target) => self.names.push(&label_of(field, bits[place])?)?,
            (Values::Texts { bytes, ranges }, Role::Target) => {
                self.names.push(label(&bytes[ranges[place].clone()])?)?
            }
            (Values::Bits(bits), role) => {
                let value = value_of(field, bits[place]);
                if !value.is_finite() {
                    // the words of a text file's field
                    number(value.to_string().as_bytes())?;
                }
                match role {
                    Role::Feature(position) => batch.values[row * self.plan.features + position] = value,
                    _ => batch.weights.push(super::csv::allowed_weight(value)?),
                }
            }
            (Values::Texts { bytes, ranges }, Role::Feature(position)) => {
                batch.values[row * self.plan.features + position] = number(&bytes[ranges[place].clone()])?;
            }
            (Values::Texts { bytes, ranges }, _) => batch.weights.push(weight(&bytes[ranges[place].clone()])?),
        }
        Ok(())
    }

    /// The error for a column, and a row of it.
    fn at(&self, column: usize, row: Option<u64>, problem: Problem) -> Error {
        let Problem { kind, text } = problem;
        let problem = row.map_or_else(|| text.clone(), |row| format!("row {}: {text}", row + 1));
        let name = self.footer.fields.get(column).map(|field| field.name.clone());
        Error::Parse { file: self.name.clone(), line: None, column: Some(column as u64 + 1), name, kind, problem }
    }
}

impl Column {
    fn new(at: usize, role: Role) -> Option<Column> {
        let values = Values::Bits(Vec::new());
        (role != Role::Ignored).then_some(Column { at, role, pages: None, values, next: 0 })
    }

    /// Bytes of what is kept between two batches.
    fn held(&self) -> usize {
        self.values.bytes() + self.pages.as_ref().map_or(0, Pages::bytes)
    }
}

fn about(name: &std::path::Path, trouble: Trouble) -> Error {
    match trouble {
        Trouble::Damage(problem) => whole_file(name, problem),
        Trouble::System(error) => Error::io(name, error),
    }
}

/// A number of any kind.
fn value_of(field: &Field, bits: u64) -> f64 {
    match field.meaning {
        Meaning::Float => f64::from_bits(bits),
        Meaning::Unsigned => unsigned(field, bits) as f64,
        _ => bits as i64 as f64,
    }
}

/// Numbers of 32 bits were extended with their sign.
fn unsigned(field: &Field, bits: u64) -> u64 {
    if field.physical == footer::Physical::Int32 { u64::from(bits as u32) } else { bits }
}

/// A number as the label it is.
fn label_of(field: &Field, bits: u64) -> std::result::Result<String, Problem> {
    match field.meaning {
        Meaning::Bool => Ok(if bits == 0 { "false" } else { "true" }.to_string()),
        Meaning::Unsigned => Ok(unsigned(field, bits).to_string()),
        Meaning::Float => {
            // as texts have them: a dot even where nothing follows
            let text = format!("{:?}", f64::from_bits(bits));
            label(text.as_bytes()).map(str::to_string)
        }
        _ => Ok((bits as i64).to_string()),
    }
}

/// Reads a whole table.
pub(super) fn read(source: Source, options: &ReadOptions, expected: Option<&Expected>) -> Result<Table> {
    let mut reader = Reader::open(source, options, expected)?;
    let features = reader.plan.features;
    let bytes = reader.rows().saturating_mul(8 * (features as u64 + 2));
    if bytes > ALLOWANCE.saturating_add(RATIO.saturating_mul(reader.bytes.length)) {
        let (rows, length) = (reader.rows(), reader.bytes.length);
        return Err(whole_file(&reader.name, format!("claims {rows} rows in {length} bytes: it is damaged")));
    }
    let mut values = Vec::with_capacity(reader.rows() as usize * features);
    let mut weights = Vec::new();
    let mut batch = Batch::default();
    loop {
        reader.next(BATCH, &mut batch)?;
        if batch.rows == 0 {
            break;
        }
        values.extend_from_slice(&batch.values);
        weights.extend_from_slice(&batch.weights);
    }
    let rows = reader.row as usize;
    Ok(Table {
        x: Rows::Dense(Dense::new(rows, features, values)?),
        labels: reader.plan.has(Role::Target).then(|| reader.names.finish()),
        weights: reader.plan.has(Role::Weight).then_some(weights),
        feature_names: reader.plan.names,
        lines: (1..=rows as u64).collect(),
        source: reader.name,
        notes: reader.notes,
    })
}
