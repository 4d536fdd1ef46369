//! Files: tables of data to read, and model files to write and read back. The numerics never use this module.
//!
//! | what | how |
//! |---|---|
//! | [`read_table`] | CSV or LIBSVM text, plain or gzipped, or Parquet, a file or standard input, into a [`Table`] |
//! | [`read_for_model`] | the same, with its columns brought into the order a model expects |
//! | [`open_stream`] | files of any length, for fits that read their rows in chunks |
//! | [`read_payoff`] | a utility or cost matrix from CSV, in the order of the classes |
//! | [`save_model`], [`load_model`] | model files: versioned, checksummed, exact to the bit, written atomically |
//! | [`load_model`] | model files of LIBSVM as well, for prediction |
//! | [`export_model`] | models in the forms of other programs: LIBSVM, LIBLINEAR, ONNX, JSON |
//! | [`read_decisions`], [`apply_decisions`] | what becomes of single rows: kept, relabelled, dropped |
//! | [`write_suspects`] | the suspects of an audit as CSV |
//! | `write_page` | the page of an audit, one HTML file; behind the cargo feature `page` |
//! | [`write_atomically`] | any file: all of it appears under its name, or nothing changes |
//!
//! Nothing in a file can make this module panic, and it allocates no more than a small multiple of what it has read: every
//! refusal is an [`Error`](crate::Error) that names the file and, for text, the line and the column.
//!
//! ```
//! use outlast::io::{read_from, ReadOptions};
//! let text = "age,income,label\n31,2.5,yes\n47,1.5,no\n";
//! let table = read_from(text.as_bytes(), "people.csv", &ReadOptions::default())?;
//! assert_eq!(table.rows(), 2);
//! assert_eq!(table.feature_names.as_deref(), Some(&["age".to_string(), "income".to_string()][..]));
//! assert_eq!(table.labels.as_ref().map(|labels| labels.codes().to_vec()), Some(vec![1, 0]));
//!
//! let wrong = "age,income,label\n31,2.5,yes\n47,abc,no\n";
//! let error = read_from(wrong.as_bytes(), "people.csv", &ReadOptions::default()).unwrap_err();
//! assert_eq!(error.to_string(), "people.csv, line 3, column 2 (\"income\"): \"abc\" is not a number");
//! # Ok::<(), outlast::Error>(())
//! ```

mod atomic;
#[cfg(feature = "page")]
mod audited;
mod cells;
mod columns;
mod csv;
mod decisions;
mod export;
mod field;
mod libsvm;
mod libsvm_model;
mod lines;
mod model_file;
mod names;
#[cfg(feature = "page")]
mod page;
mod parquet;
mod payoff;
mod source;
mod stream;
mod suspects;
mod table;

pub use atomic::write_atomically;
#[cfg(feature = "page")]
pub use audited::audit_page;
pub use cells::{Cells, read_cells};
pub use decisions::{
    Applied, Decision, Decisions, apply_decisions, apply_decisions_to, read_decisions, read_decisions_from,
};
pub use export::{ExportFormat, Exported, export_model};
pub use model_file::{FORMAT_VERSION, load_model, model_from_bytes, model_to_bytes, save_model};
pub use names::match_class;
#[cfg(feature = "page")]
pub use page::{Page, Suspect, save_page, write_page};
pub use payoff::{read_cost, read_payoff, read_payoff_from};
pub use stream::{CachedRows, Stream, StreamOptions, open_stream};
pub use suspects::write_suspects;
pub use table::{Format, Header, ReadOptions, Table, TargetColumn, read_for_model, read_from, read_table};
