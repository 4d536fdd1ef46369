//! Data files larger than memory: read once, kept on disk in a form that is quick to read again.
//!
//! ```text
//! CSV, LIBSVM, Parquet -> batches of rows -> held in memory, if all of them fit   -> Table, as read_table gives it
//!                                         -> else a cache on disk (f32, checked)  -> CachedRows, for Truncated::fit_chunks
//! ```
//!
//! Columns far from 0 have a constant taken off before they are rounded to 32 bits, so that they keep their digits; a fit puts it
//! into the intercept.

mod cache;
mod rows;

pub use self::cache::CachedRows;
use self::cache::{Writer, block_rows};
use self::rows::{Batch, Files};
use super::table::{ReadOptions, Table};
use crate::control::{Control, Progress};
use crate::data::{Class, Dense, Labels};
use crate::error::{Error, Result};
use crate::memory::Lean;
use crate::model::Rows;
use std::path::PathBuf;

/// Share of the memory that rows may take to be held: a fit in memory takes several times as much.
const SHARE: usize = 5;
/// Share of the memory for the pages of Parquet files that are read side by side.
const PAGE_SHARE: (usize, usize) = (2, 5);
/// A column whose mean is so many standard deviations from 0 is shifted.
const FAR: f64 = 8.0;
/// Most columns: the sums of a pass grow with their square.
const MOST_COLUMNS: usize = 4000;

/// How files larger than memory are read.
#[derive(Debug, Clone)]
pub struct StreamOptions {
    /// Bytes that reading and fitting may use.
    pub memory: usize,
    /// Folder of the cache; `None` for the system's folder of temporary files.
    pub cache: Option<PathBuf>,
    /// Whether constants may be taken off columns: not without an intercept.
    pub shift: bool,
}

/// The rows of some files.
#[allow(clippy::large_enum_variant)]
pub enum Stream {
    /// They fit in memory.
    Whole(Table),
    /// They are kept on disk.
    Cached {
        /// The rows.
        rows: CachedRows,
        /// The classes, sorted.
        classes: Vec<Class>,
        /// Names of the features, if the files have any.
        feature_names: Option<Vec<String>>,
        /// What the user may want to know about the reading, one sentence each.
        notes: Vec<String>,
    },
}

/// Reads files of the same columns as one table, which may be larger than memory. The first says which features there are; those of the
/// others are found by name, or by position where there are no names.
///
/// ```
/// use outlast::io::{ReadOptions, Stream, StreamOptions, open_stream};
/// # let folder = tempfile::tempdir().unwrap();
/// # let (a, b) = (folder.path().join("a.csv"), folder.path().join("b.csv"));
/// # std::fs::write(&a, "age,label\n31,yes\n").unwrap();
/// # std::fs::write(&b, "label,age\nno,47\n").unwrap();
/// let options = StreamOptions { memory: 1 << 26, cache: None, shift: true };
/// match open_stream(&[a, b], &ReadOptions::default(), &options, &Default::default())? {
///     Stream::Whole(table) => assert_eq!(table.rows(), 2),
///     Stream::Cached { .. } => unreachable!("two rows fit in memory"),
/// }
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn open_stream(
    paths: &[PathBuf],
    options: &ReadOptions,
    stream: &StreamOptions,
    control: &Control,
) -> Result<Stream> {
    let Some(first) = paths.first() else { return Err(Error::shape("data", "no files", "at least one")) };
    let _lean = Lean::new();
    let mut files = Files::new(paths, options, stream.memory / PAGE_SHARE.1 * PAGE_SHARE.0)?;
    if files.features > MOST_COLUMNS {
        let found = format!("{} columns", files.features);
        return Err(Error::shape("X", found, format!("at most {MOST_COLUMNS} for data that are not held in memory")));
    }
    let mut held = Batch::default();
    let mut batch = Batch::default();
    let mut writer: Option<Writer> = None;
    let mut rows = 0usize;
    loop {
        control.check()?;
        files.next(block_rows(files.features, stream.memory), &mut batch)?;
        if batch.rows() == 0 {
            break;
        }
        rows += batch.rows();
        control.report(Progress { stage: "reading", step: rows, objective: f64::NAN, gap: f64::NAN });
        match &mut writer {
            Some(writer) => writer.write(&batch.values, &batch.codes, &batch.weights)?,
            None => {
                held.values.extend_from_slice(&batch.values);
                held.codes.extend_from_slice(&batch.codes);
                held.weights.extend_from_slice(&batch.weights);
                if 8 * (held.values.len() + held.weights.len()) + 4 * held.rows() > stream.memory / SHARE {
                    writer = Some(spill(std::mem::take(&mut held), files.features, stream)?);
                }
            }
        }
    }
    let (features, feature_names, notes) = (files.features, files.feature_names, files.notes);
    let (classes, position) = files.names.classes();
    if let Some(writer) = writer {
        return Ok(Stream::Cached { rows: writer.finish(position)?, classes, feature_names, notes });
    }
    let codes = held.codes.iter().map(|&code| position[code as usize]).collect();
    Ok(Stream::Whole(Table {
        x: Rows::Dense(Dense::new(held.rows(), features, held.values)?),
        labels: Some(Labels::from_codes(classes, codes)?),
        weights: (!held.weights.is_empty()).then_some(held.weights),
        feature_names,
        lines: (1..=rows as u64).collect(),
        source: first.clone(),
        notes,
    }))
}

/// Begins a cache with the rows held so far, which say what is taken off each column.
fn spill(held: Batch, cols: usize, stream: &StreamOptions) -> Result<Writer> {
    let shift = if stream.shift { shifts(&held.values, cols) } else { Vec::new() };
    let folder = stream.cache.clone().unwrap_or_else(std::env::temp_dir);
    let mut writer = Writer::new(&folder, cols, !held.weights.is_empty(), shift)?;
    let step = block_rows(cols, stream.memory);
    for (number, codes) in held.codes.chunks(step).enumerate() {
        let from = number * step;
        let values = &held.values[from * cols..(from + codes.len()) * cols];
        let weights = held.weights.get(from..from + codes.len()).unwrap_or_default();
        writer.write(values, codes, weights)?;
    }
    Ok(writer)
}

/// The means of columns that lie far from 0, as 32 bits hold them; 0 for others. Empty where no column does.
fn shifts(values: &[f64], cols: usize) -> Vec<f64> {
    let rows = (values.len() / cols.max(1)).max(1) as f64;
    let mut mean = vec![0.0; cols];
    values.chunks_exact(cols).for_each(|row| mean.iter_mut().zip(row).for_each(|(mean, x)| *mean += x / rows));
    let mut spread = vec![0.0; cols];
    for row in values.chunks_exact(cols) {
        spread.iter_mut().zip(row).zip(&mean).for_each(|((spread, x), mean)| *spread += (x - mean) * (x - mean) / rows);
    }
    let far = |(mean, spread): (&f64, &f64)| match mean.abs() > FAR * spread.sqrt() && mean.is_finite() {
        true => f64::from(*mean as f32),
        false => 0.0,
    };
    let shift: Vec<f64> =
        mean.iter().zip(&spread).map(far).map(|shift| if shift.is_finite() { shift } else { 0.0 }).collect();
    if shift.iter().any(|shift| *shift != 0.0) { shift } else { Vec::new() }
}
