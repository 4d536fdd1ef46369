//! Files: tables of data to read, and model files to write and read back. The numerics never use this module.
//!
//! | what | how |
//! |---|---|
//! | [`read_table`] | CSV or LIBSVM text, plain or gzipped, a file or standard input, into a [`Table`] |
//! | [`read_for_model`] | the same, with its columns brought into the order a model expects |
//! | [`read_payoff`] | a utility or cost matrix from CSV, in the order of the classes |
//! | [`save_model`], [`load_model`] | model files: versioned, checksummed, exact to the bit, written atomically |
//! | [`load_model`] | model files of LIBSVM as well, for prediction |
//! | [`export_model`] | models in the forms of other programs: LIBSVM, LIBLINEAR, ONNX, JSON |
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
mod columns;
mod csv;
mod export;
mod field;
mod libsvm;
mod libsvm_model;
mod lines;
mod model_file;
mod names;
mod payoff;
mod source;
mod table;

pub use atomic::write_atomically;
pub use export::{ExportFormat, Exported, export_model};
pub use model_file::{FORMAT_VERSION, load_model, model_from_bytes, model_to_bytes, save_model};
pub use names::match_class;
pub use payoff::read_payoff;
pub use table::{Format, Header, ReadOptions, Table, TargetColumn, read_for_model, read_from, read_table};
