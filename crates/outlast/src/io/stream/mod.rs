//! Data files larger than memory: read once, kept on disk in a form that is quick to read again.
//!
//! ```text
//! CSV, LIBSVM, Parquet -> batches of rows -> held in memory, if all of them fit   -> Table, as read_table gives it
//!                                         -> else a cache on disk (f32, checked)  -> CachedRows, for Truncated::fit_chunks
//! ```
//!
//! What fits depends on the method, which may need the classes first: so rows are held up to a share of the memory, and [`Stream::within`] moves them to
//! disk where the fit in memory would take more than there is.
//!
//! Columns far from 0 have a constant taken off before they are rounded to 32 bits, so that they keep their digits; a fit puts it
//! into the intercept. The first rows say which constant. Where all rows together tell that it was the wrong one (`thinned`), files are read once more; what
//! 32 bits can't hold even so is noted.

mod cache;
mod rows;
mod thinned;

pub use self::cache::CachedRows;
use self::cache::{Writer, block_rows};
use self::rows::{Batch, Files};
use self::thinned::Thinned;
use super::table::{ReadOptions, Table};
use crate::control::{Control, Progress};
use crate::data::{Chunks, Class, Dense, Labels};
use crate::error::{Error, Result, quoted};
use crate::memory::Lean;
use crate::model::{Estimator, Rows};
use std::path::PathBuf;

/// Share of the memory that rows may take to be held: every fit in memory takes several times as much.
const SHARE: usize = 5;
/// Share of the memory that a fit in memory may take, by the method's footprint, which is an estimate.
const FIT_SHARE: (usize, usize) = (2, 3);
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

impl Stream {
    /// The same rows where the method's fit to them takes no more than the memory; else on disk.
    pub fn within(self, method: &dyn Estimator, options: &StreamOptions) -> Result<Stream> {
        let table = match self {
            Stream::Whole(table) => table,
            cached => return Ok(cached),
        };
        let classes = table.labels.as_ref().map_or(0, |labels| labels.classes().len());
        let bytes = method.footprint(table.cols(), classes).bytes(table.rows());
        if bytes <= options.memory / FIT_SHARE.1 * FIT_SHARE.0 {
            Ok(Stream::Whole(table))
        } else {
            moved(table, options)
        }
    }
}

/// A table that was read, on disk.
fn moved(table: Table, options: &StreamOptions) -> Result<Stream> {
    let _lean = Lean::new();
    let cols = table.cols();
    let (Rows::Dense(x), Some(labels)) = (table.x, table.labels) else {
        return Err(Error::shape("data", "rows that were not read for a stream", "dense rows with labels"));
    };
    let (classes, codes) = (labels.classes().to_vec(), labels.codes().to_vec());
    let held = Batch { values: x.into_values(), codes, weights: table.weights.unwrap_or_default() };
    let mut seen = Thinned::default();
    seen.add(&held.values, cols);
    let shift = if options.shift { shifts(&held.values, cols) } else { Vec::new() };
    let shift = seen.better_shift(&shift).filter(|_| options.shift).unwrap_or(shift);
    let position = (0..classes.len() as u32).collect();
    let rows = spill(held, cols, Some(&shift), options)?.finish(position)?;
    let (feature_names, mut notes) = (table.feature_names, table.notes);
    notes.extend(note(&seen.lost(rows.shift()), feature_names.as_deref()));
    Ok(Stream::Cached { rows, classes, feature_names, notes })
}

/// Reads files of the same columns as one table, which may be larger than memory. Files without rows are passed over, unless there are no others. The first says which features there are; those of the
/// others are found by name, or by position where there are no names. More classes than a classifier takes are refused where they are met, and a time limit that
/// passes ends the reading with [`Error::ReadingTime`].
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
    let (mut opened, mut seen) = read(paths, options, stream, None, control)?;
    if let Stream::Cached { rows, .. } = &opened
        && let Some(shift) = seen.better_shift(rows.shift())
        && stream.shift
        && paths.iter().all(|path| path.is_file())
    {
        // its room on disk is wanted
        drop(opened);
        (opened, seen) = read(paths, options, stream, Some(shift), control)?;
    }
    if let Stream::Cached { rows, feature_names, notes, .. } = &mut opened {
        notes.extend(note(&seen.lost(rows.shift()), feature_names.as_deref()));
    }
    Ok(opened)
}

/// What to say of columns that lose digits.
fn note(lost: &[usize], names: Option<&[String]>) -> Option<String> {
    let first = *lost.first()?;
    let name = names.map_or_else(|| (first + 1).to_string(), |names| quoted(&names[first]));
    let others = match lost.len() {
        1 => String::new(),
        2 => " and 1 other".to_string(),
        count => format!(" and {} others", count - 1),
    };
    Some(format!(
        "column {name}{others}: many values lie so far from the others that 32 bits lose the digits that tell them apart; take off a constant, or use two columns"
    ))
}

/// Reads files once: their rows, and some of them as they are. A shift that is given says that rows go to disk.
fn read(
    paths: &[PathBuf],
    options: &ReadOptions,
    stream: &StreamOptions,
    shift: Option<Vec<f64>>,
    control: &Control,
) -> Result<(Stream, Thinned)> {
    let Some(first) = paths.first() else { return Err(Error::shape("data", "no files", "at least one")) };
    let _lean = Lean::new();
    let mut files = Files::new(paths, options, stream.memory / PAGE_SHARE.1 * PAGE_SHARE.0, control)?;
    if files.features > MOST_COLUMNS {
        let found = format!("{} columns", files.features);
        return Err(Error::shape("X", found, format!("at most {MOST_COLUMNS} for data that are not held in memory")));
    }
    let mut held = Batch::default();
    let mut batch = Batch::default();
    let mut writer: Option<Writer> = None;
    let mut rows = 0usize;
    let mut seen = Thinned::default();
    loop {
        go_on(control)?;
        files.next(block_rows(files.features, stream.memory), &mut batch)?;
        if batch.rows() == 0 {
            break;
        }
        rows += batch.rows();
        seen.add(&batch.values, files.features);
        control.report(Progress { stage: "reading", step: rows, objective: f64::NAN, gap: f64::NAN });
        match &mut writer {
            Some(writer) => {
                writer.write(&batch.values, &batch.codes, &batch.weights).map_err(|error| files.in_its_file(error))?
            }
            None => {
                held.values.extend_from_slice(&batch.values);
                held.codes.extend_from_slice(&batch.codes);
                held.weights.extend_from_slice(&batch.weights);
                let bytes = 8 * (held.values.len() + held.weights.len()) + 4 * held.rows();
                if bytes > stream.memory / SHARE || shift.is_some() {
                    let begun = spill(std::mem::take(&mut held), files.features, shift.as_deref(), stream);
                    writer = Some(begun.map_err(|error| files.in_its_file(error))?);
                }
            }
        }
    }
    let (features, feature_names, notes) = (files.features, files.feature_names, files.notes);
    let (classes, position) = files.names.classes();
    if let Some(writer) = writer {
        return Ok((Stream::Cached { rows: writer.finish(position)?, classes, feature_names, notes }, seen));
    }
    let codes = held.codes.iter().map(|&code| position[code as usize]).collect();
    let table = Table {
        x: Rows::Dense(Dense::new(held.rows(), features, held.values)?),
        labels: Some(Labels::from_codes(classes, codes)?),
        weights: (!held.weights.is_empty()).then_some(held.weights),
        feature_names,
        lines: (1..=rows as u64).collect(),
        source: first.clone(),
        notes,
    };
    Ok((Stream::Whole(table), seen))
}

/// Whether there is time to read on.
fn go_on(control: &Control) -> Result<()> {
    control.check()?;
    if control.out_of_time() { Err(Error::ReadingTime) } else { Ok(()) }
}

/// Begins a cache with the rows held so far, which say what is taken off each column, unless that is given.
fn spill(held: Batch, cols: usize, given: Option<&[f64]>, stream: &StreamOptions) -> Result<Writer> {
    let shift = match given {
        Some(given) => given.to_vec(),
        None if stream.shift => shifts(&held.values, cols),
        None => Vec::new(),
    };
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
