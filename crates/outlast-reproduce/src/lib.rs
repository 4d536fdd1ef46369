//! The tables and figures of the papers behind Outlast, made again with its estimators beside the printed numbers.
//!
//! ```text
//! registry::ALL ── Experiment ──► run: (setting, replication), each with a random stream of its own, over the threads
//!                                  │
//!                                  ▼
//!                  store: NAME.csv, a journal until it is complete ──► Report ──► NAME.md, NAME.json, NAME*.svg
//! ```
//!
//! An [`Experiment`] is one file and one line in [`registry::ALL`]. It says what is run for one replication
//! ([`Experiment::replicate`]) and what is made of all of them ([`Experiment::report`]); running, resuming, judging and writing are
//! here, once.
//!
//! **The verdict rule** ([`verdict`]): a printed mean agrees when it lies within two joint standard errors of ours, plus its rounding.
//!
//! ```
//! use outlast_reproduce::{Settings, registry, run};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let settings = Settings { reps: Some(1), threads: 1, ..Settings::into_folder(folder.path()) };
//! let experiment = registry::find("rsvm-figure1").unwrap();
//! let outcome = run(experiment, &settings, outlast::Control::default(), &|message| println!("{message}"))?;
//! assert!(folder.path().join("rsvm-figure1.svg").exists());
//! # Ok::<(), outlast::Error>(())
//! ```

mod ablation;
mod capped;
mod columns;
mod costs;
mod data;
pub mod draw;
mod experiment;
mod lines;
mod lq;
pub mod papers;
pub mod random;
pub mod registry;
mod report;
mod rsvm;
mod run;
mod samples;
mod store;
mod summary;
mod theory;
mod tuning;
pub mod verdict;
mod wrsvm;

pub use data::{DataFolder, DataSet, Rows};
pub use experiment::{About, Experiment, Record, Reps, Results, Setting, Unit};
pub use lines::{Row, Statement};
pub use report::Report;
pub use run::{Finished, Outcome, Settings, run, units};
pub use summary::summary;
pub use verdict::{Printed, Sample, Verdict};
