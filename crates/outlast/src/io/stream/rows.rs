//! Files of any format as one sequence of rows, a batch at a time.

use super::super::columns::Expected;
use super::super::names::Names;
use super::super::source::{Source, whole_file};
use super::super::table::{Format, ReadOptions, TargetColumn};
use super::super::{csv, libsvm, parquet};
use crate::control::Control;
use crate::error::{Error, ParseKind, Result, quoted};
use std::path::{Path, PathBuf};

/// Rows looked at together when LIBSVM text is only measured.
const MEASURED: usize = 1 << 14;

/// Some rows.
#[derive(Default)]
pub(super) struct Batch {
    /// Row-major.
    pub values: Vec<f64>,
    /// In the order in which labels were met.
    pub codes: Vec<u32>,
    /// Empty where no column holds any.
    pub weights: Vec<f64>,
}

impl Batch {
    pub fn rows(&self) -> usize {
        self.codes.len()
    }
}

enum Reader {
    Csv(Box<csv::Reader<'static>>),
    Libsvm(Box<libsvm::Reader<'static>>),
    Parquet(Box<parquet::Reader>),
}

/// Files one after the other.
pub(super) struct Files<'a> {
    paths: &'a [PathBuf],
    options: ReadOptions,
    /// Bytes of pages that are read side by side.
    pages: usize,
    next: usize,
    reader: Option<Reader>,
    /// Which files have been opened, and how many rows were read before each.
    opened: Vec<(usize, usize)>,
    rows: usize,
    /// What is wrong with the first that has no rows, where there are others.
    without_rows: Option<Error>,
    pub names: Names,
    pub features: usize,
    pub feature_names: Option<Vec<String>>,
    pub notes: Vec<String>,
}

impl<'a> Files<'a> {
    /// These files; `pages` are the bytes that pages of a Parquet file may take.
    pub fn new(paths: &'a [PathBuf], options: &ReadOptions, pages: usize, control: &Control) -> Result<Files<'a>> {
        if options.target == TargetColumn::Absent {
            return Err(Error::parameter("target", "absent", "a column: rows that are streamed need labels"));
        }
        let mut options = options.clone();
        if options.features.is_none() {
            options.features = measured(paths, &options, control)?;
        }
        let mut files = Files {
            paths,
            options,
            pages,
            next: 0,
            reader: None,
            opened: Vec::new(),
            rows: 0,
            without_rows: None,
            names: Names::bounded(),
            features: 0,
            feature_names: None,
            notes: Vec::new(),
        };
        files.open()?;
        Ok(files)
    }

    /// Opens the next file that has rows; false after the last.
    fn open(&mut self) -> Result<bool> {
        while let Some(path) = self.paths.get(self.next) {
            self.next += 1;
            match self.reader(path) {
                Err(error) if self.paths.len() > 1 && has_no_rows(&error) => {
                    self.without_rows.get_or_insert(error);
                }
                reader => {
                    self.reader = Some(reader?);
                    self.opened.push((self.next - 1, self.rows));
                    return Ok(true);
                }
            }
        }
        self.without_rows.take().filter(|_| self.opened.is_empty()).map_or(Ok(false), Err)
    }

    fn reader(&mut self, path: &Path) -> Result<Reader> {
        // the first file with rows says which features there are, the others must have them too
        let names = self.feature_names.clone();
        let known = Expected { features: self.features, names: names.as_deref(), labels: true };
        let expected = (!self.opened.is_empty()).then_some(&known);
        let source = Source::open(path)?;
        let name = source.name.clone();
        let format = source.format(self.options.format)?;
        let reader = match format {
            Format::Libsvm => Reader::Libsvm(Box::new(libsvm::Reader::open(source, &self.options, expected)?)),
            Format::Parquet => {
                let mut reader = parquet::Reader::open(source, &self.options, expected)?;
                reader.most_held = self.pages;
                Reader::Parquet(Box::new(reader))
            }
            _ => Reader::Csv(Box::new(csv::Reader::open(source, &self.options, expected)?)),
        };
        if self.opened.is_empty() {
            (self.features, self.feature_names) = match &reader {
                Reader::Csv(reader) => (reader.rows.plan.features, reader.rows.plan.names.clone()),
                Reader::Parquet(reader) => (reader.plan.features, reader.plan.names.clone()),
                Reader::Libsvm(_) => (self.options.features.unwrap_or(0), None),
            };
            if self.features == 0 {
                let problem = match self.options.features {
                    None => "LIBSVM text that can be read only once: say how many features there are",
                    Some(_) => "no row has any feature",
                };
                return Err(whole_file(&name, problem));
            }
        }
        Ok(reader)
    }

    /// What is wrong with a value of all rows, as a matter of its file.
    pub fn in_its_file(&self, error: Error) -> Error {
        let Error::Value { row, column: Some(column), problem, .. } = &error else { return error };
        let Some((file, before)) = self.opened.iter().rev().find(|(_, before)| before <= row) else { return error };
        let name = self.feature_names.as_ref().and_then(|names| names.get(*column));
        let name = name.map_or_else(|| (column + 1).to_string(), |name| quoted(name));
        whole_file(&self.paths[*file], format!("row {}, column {name}: {problem}", row - before + 1))
    }

    /// The next rows, up to `most`, in place of those in `batch`; none at the end.
    pub fn next(&mut self, most: usize, batch: &mut Batch) -> Result<()> {
        batch.codes.clear();
        loop {
            let Some(reader) = &mut self.reader else { return Ok(()) };
            let rows = match reader {
                Reader::Csv(reader) => {
                    std::mem::swap(&mut reader.rows.names, &mut self.names);
                    let read = reader.next(most);
                    std::mem::swap(&mut reader.rows.names, &mut self.names);
                    read?;
                    batch.values.clear();
                    batch.weights.clear();
                    std::mem::swap(&mut reader.rows.values, &mut batch.values);
                    std::mem::swap(&mut reader.rows.weights, &mut batch.weights);
                    self.notes.append(&mut reader.rows.notes);
                    if self.opened.len() == 1 && self.features != reader.rows.plan.features {
                        // a column of row numbers was found and left out
                        (self.features, self.feature_names) =
                            (reader.rows.plan.features, reader.rows.plan.names.clone());
                    }
                    let rows = reader.rows.lines.len();
                    reader.rows.lines.clear();
                    rows
                }
                Reader::Libsvm(reader) => {
                    std::mem::swap(&mut reader.rows.names, &mut self.names);
                    let read = reader.next(most);
                    std::mem::swap(&mut reader.rows.names, &mut self.names);
                    read?;
                    batch.weights.clear();
                    reader.take_dense(self.features, &mut batch.values)
                }
                Reader::Parquet(reader) => {
                    let mut rows = parquet::Batch {
                        values: std::mem::take(&mut batch.values),
                        weights: std::mem::take(&mut batch.weights),
                        rows: 0,
                    };
                    std::mem::swap(&mut reader.names, &mut self.names);
                    let read = reader.next(most, &mut rows);
                    std::mem::swap(&mut reader.names, &mut self.names);
                    read?;
                    self.notes.append(&mut reader.notes);
                    (batch.values, batch.weights) = (rows.values, rows.weights);
                    rows.rows
                }
            };
            self.rows += rows;
            if rows > 0 {
                batch.codes = self.names.take_codes();
                return Ok(());
            }
            self.reader = None;
            if !self.open()? {
                return Ok(());
            }
        }
    }
}

fn has_no_rows(error: &Error) -> bool {
    matches!(error, Error::Parse { kind: ParseKind::NoRows, .. })
}

/// The width of LIBSVM files: their largest index. `None` where there are none among the files.
fn measured(paths: &[PathBuf], options: &ReadOptions, control: &Control) -> Result<Option<usize>> {
    let mut width = None;
    for path in paths {
        if path == Path::new("-") {
            continue;
        }
        let source = Source::open(path)?;
        if source.format(options.format)? != Format::Libsvm {
            continue;
        }
        let mut reader = libsvm::Reader::open(source, options, None)?;
        reader.rows.names = Names::bounded();
        loop {
            super::go_on(control)?;
            reader.next(MEASURED)?;
            reader.rows.names.take_codes();
            width = width.max(Some(reader.rows.width));
            if reader.discard() == 0 {
                break;
            }
        }
    }
    Ok(width)
}
