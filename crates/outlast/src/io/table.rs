//! What a data file holds, and how to ask for it.

use super::columns::Expected;
use super::source::{Source, display_name};
use super::{csv, libsvm, parquet};
use crate::data::{Design, Labels};
use crate::error::Result;
use crate::model::{Predictor, Rows};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The formats of data files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// By how the file begins, by the name's ending, else by the first line.
    #[default]
    Auto,
    /// Fields between commas, semicolons or tabs.
    Csv,
    /// `label index:value index:value ...`
    Libsvm,
    /// Columns of numbers and texts in binary form.
    Parquet,
}

/// Whether a CSV file starts with the names of its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Header {
    /// Yes if no field of the first row is a number, if one of them is a usual name of the target, or if one is no number
    /// where the second row has one.
    #[default]
    Auto,
    /// The first row holds names.
    Yes,
    /// The first row holds data.
    No,
}

/// Which column holds the labels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TargetColumn {
    /// The one named label, target, class or y, if exactly one is; else the last.
    #[default]
    Auto,
    /// None does: every column is a feature.
    Absent,
    /// A name, or a number: 1 is the first column, -1 the last. A column of that name wins over the number.
    Given(String),
}

/// How to read a data file. The default works for most.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// The format.
    pub format: Format,
    /// Whether the first row holds names (CSV).
    pub header: Header,
    /// The byte between fields (CSV); `None`: tab, semicolon or comma, whichever the first lines agree on.
    pub delimiter: Option<u8>,
    /// The column of the labels.
    pub target: TargetColumn,
    /// The column of the sample weights, by name or number (CSV, Parquet).
    pub weight_column: Option<String>,
    /// Columns that are left out, by name or number (CSV, Parquet).
    pub ignore: Vec<String>,
    /// Number of features, where the largest index of the file may be smaller (LIBSVM).
    pub features: Option<usize>,
    /// Whether indices count from 0 (LIBSVM).
    pub zero_based: bool,
}

/// What a data file holds.
#[derive(Debug, Clone)]
pub struct Table {
    /// The features: dense from CSV and Parquet, sparse from LIBSVM text.
    pub x: Rows,
    /// The labels, if the file has any and they were asked for.
    pub labels: Option<Labels>,
    /// The sample weights, if a column was named for them.
    pub weights: Option<Vec<f64>>,
    /// Names of the features, if the file has a header.
    pub feature_names: Option<Vec<String>>,
    /// One-based line where each row starts; in a Parquet file the number of the row.
    pub lines: Vec<u64>,
    /// The file as the user named it.
    pub source: PathBuf,
    /// What the user may want to know about the reading, one sentence each.
    pub notes: Vec<String>,
}

impl Table {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.x.as_design().rows()
    }

    /// Number of features.
    pub fn cols(&self) -> usize {
        self.x.as_design().cols()
    }

    /// The features behind the one trait.
    pub fn design(&self) -> &dyn Design {
        self.x.as_design()
    }
}

/// Reads a data file; `-` is standard input.
pub fn read_table(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Table> {
    read(Source::open(path.as_ref())?, options, None)
}

/// Reads data from memory or any other reader; `name` stands for the file in messages and for guessing the format.
pub fn read_from(reader: impl Read, name: impl AsRef<Path>, options: &ReadOptions) -> Result<Table> {
    read(Source::new(Box::new(reader), display_name(name.as_ref()))?, options, None)
}

/// Reads a data file for a model that is already there; `-` is standard input.
///
/// If both the model and the file have names, features are taken by name and other columns left alone; else they are taken
/// by position. LIBSVM rows are as wide as the model. Labels are read only if `labels` asks for them; then their column is
/// [`ReadOptions::target`], where `Auto` means the one usual name among the columns the model does not use, else the only
/// such column.
pub fn read_for_model(
    path: impl AsRef<Path>,
    options: &ReadOptions,
    predictor: &Predictor,
    labels: bool,
) -> Result<Table> {
    let expected = Expected { features: predictor.features, names: predictor.feature_names.as_deref(), labels };
    read(Source::open(path.as_ref())?, options, Some(&expected))
}

pub(super) fn read(source: Source, options: &ReadOptions, expected: Option<&Expected>) -> Result<Table> {
    let format = source.format(options.format)?;
    match format {
        Format::Libsvm => libsvm::read(source, options, expected),
        Format::Parquet => parquet::read(source, options, expected),
        _ => csv::read(source, options, expected),
    }
}
