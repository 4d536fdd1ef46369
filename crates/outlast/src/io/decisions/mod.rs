//! Decisions about the rows of a table: read from CSV or JSON, and applied to its text.
//!
//! ```text
//! row,decision,label          [{"row": 3, "decision": "relabel", "label": "cat"},
//! 3,relabel,cat                {"row": 7, "decision": "drop"}]
//! 7,drop,
//! ```
//!
//! Rows count from 1, the header and empty lines left out. A row that is not named is kept; one that is named twice must be named
//! with the same decision. Other columns (and, in JSON, other members) are passed over. [`apply_decisions`] changes nothing but the
//! label's field of the rows that get another one: quoting, spaces, line ends and comments stay as they are.

mod read;
mod rewrite;

pub use read::{read_decisions, read_decisions_from};
pub use rewrite::{Applied, apply_decisions, apply_decisions_to};

use std::collections::BTreeMap;

/// What becomes of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It stays as it is.
    Keep,
    /// It gets another label.
    Relabel(String),
    /// It is left out.
    Drop,
}

/// What becomes of which rows.
///
/// ```
/// use outlast::io::{Decision, apply_decisions_to, read_decisions_from, ReadOptions};
///
/// let decisions = read_decisions_from("row,decision,label\n2,relabel,cat\n3,drop,\n".as_bytes(), "decisions.csv")?;
/// assert_eq!(decisions.get(2), Some(&Decision::Relabel("cat".to_string())));
///
/// let text = "size,label\n 1.0 ,cat\n0.9,\"dog\"\n77,cat\n";
/// let mut out = Vec::new();
/// let applied = apply_decisions_to(text.as_bytes(), "pets.csv", &ReadOptions::default(), &decisions, &mut out)?;
/// assert_eq!(String::from_utf8_lossy(&out), "size,label\n 1.0 ,cat\n0.9,\"cat\"\n");
/// assert_eq!((applied.kept, applied.relabelled, applied.dropped), (1, 1, 1));
/// # Ok::<(), outlast::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decisions {
    /// The file they came from, as the user named it.
    pub source: std::path::PathBuf,
    rows: BTreeMap<u64, Entry>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    decision: Decision,
    /// Line of the file, where there are lines.
    line: Option<u64>,
}

impl Decisions {
    /// The decision about a row, counted from 1.
    pub fn get(&self, row: u64) -> Option<&Decision> {
        self.rows.get(&row).map(|entry| &entry.decision)
    }

    /// How many rows are named.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no row is named.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Rows and their decisions, rows ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Decision)> {
        self.rows.iter().map(|(row, entry)| (*row, &entry.decision))
    }
}

#[cfg(test)]
mod tests;
