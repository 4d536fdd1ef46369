//! The one error type of the crate. Every message names the thing, its value and what is allowed.

use std::fmt;
use std::path::{Path, PathBuf};

/// `Result` with the crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a request could not be carried out.
///
/// Not converging is *not* an error: it is a [`Status`](crate::Status) of a usable model.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A parameter lies outside its range.
    Parameter {
        /// The parameter's public name, as in Python and on the command line.
        name: &'static str,
        /// The offending value, as the user wrote it.
        value: String,
        /// What would have been accepted.
        allowed: String,
    },
    /// Two inputs do not fit together, or one has an impossible size.
    Shape {
        /// Which input.
        what: &'static str,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// A value in the data can't be used.
    Value {
        /// Which input: `"X"`, `"y"`, `"sample_weight"`, ...
        what: &'static str,
        /// Zero-based row.
        row: usize,
        /// Zero-based column, where there is one.
        column: Option<usize>,
        /// The offending value and what is allowed.
        problem: String,
    },
    /// The labels do not make a problem that can be solved (one class, more classes than supported, ...).
    Classes {
        /// What is wrong with them.
        problem: String,
    },
    /// A text file could not be understood.
    Parse {
        /// The file as the user named it.
        file: PathBuf,
        /// One-based line, where known.
        line: Option<u64>,
        /// One-based column (field number in a CSV file, character in others), where known.
        column: Option<u64>,
        /// The column's name, where it has one.
        name: Option<String>,
        /// The kind of mistake, for callers who can say what to do about it.
        kind: ParseKind,
        /// What is wrong there.
        problem: String,
    },
    /// Reading or writing failed.
    Io {
        /// The file as the user named it.
        file: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A model file is damaged, foreign or too new.
    ModelFile {
        /// The file as the user named it.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The numbers left the range of floating point in a way no scaling could save.
    Numerical {
        /// Where, and what can be done about it.
        problem: String,
    },
    /// A search ran out of time before it had anything to choose from.
    TimeLimit,
    /// The time limit passed before all rows were read.
    ReadingTime,
    /// The caller's interrupt said stop.
    Interrupted,
}

/// Mistakes in a text file that a face may have advice for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ParseKind {
    /// A field that must hold a number holds something else.
    NotANumber,
    /// A row is longer or shorter than the first.
    FieldCount,
    /// An index of 0 where they count from 1.
    IndexZero,
    /// Labels are wanted, and no column can be taken for them.
    NoTarget,
    /// More distinct labels than a classifier takes.
    ManyClasses,
    /// No rows: nothing, or columns and nothing else.
    NoRows,
    /// Anything else; the message says it all.
    #[default]
    Other,
}

/// Longest piece of the user's text repeated in a message.
const LONGEST_QUOTE: usize = 40;

/// A piece of the user's text, fit for a message or a terminal: control and invisible characters escaped, not too long.
///
/// ```
/// use outlast::error::{quoted, shown};
/// assert_eq!(shown("very \"high\""), "very \"high\"");
/// assert_eq!(shown("a\u{1b}[2J"), "a\\u{1b}[2J");
/// assert_eq!(shown(&"x".repeat(1000)).len(), 43);
/// assert_eq!(quoted("in\nside"), "\"in\\nside\"");
/// ```
pub fn shown(text: &str) -> String {
    let mut out = String::new();
    for (count, sign) in text.chars().enumerate() {
        match sign {
            _ if count == LONGEST_QUOTE => return out + "...",
            '"' | '\'' => out.push(sign),
            _ => out.extend(sign.escape_debug()),
        }
    }
    out
}

/// Longest message of another program that is repeated.
#[cfg(feature = "io")]
const LONGEST_MESSAGE: usize = 500;

/// What another program says about the user's text, with what it repeats of it made harmless.
#[cfg(feature = "io")]
pub(crate) fn harmless(message: &str) -> String {
    let escaped = |sign: char| if sign.is_control() { sign.escape_debug().to_string() } else { sign.to_string() };
    message.chars().take(LONGEST_MESSAGE).map(escaped).collect()
}

/// [`shown`] between quotes.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text))
}

impl Error {
    /// A [`Error::Parameter`], with the value shown as it prints.
    pub fn parameter(name: &'static str, value: impl fmt::Display, allowed: impl Into<String>) -> Self {
        Error::Parameter { name, value: value.to_string(), allowed: allowed.into() }
    }

    /// A [`Error::Shape`].
    pub fn shape(what: &'static str, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Error::Shape { what, found: found.into(), expected: expected.into() }
    }

    /// An [`Error::Io`] about a file.
    pub fn io(file: impl AsRef<Path>, source: std::io::Error) -> Self {
        Error::Io { file: file.as_ref().to_path_buf(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Parameter { name, value, allowed } => {
                write!(f, "{name} = {value} is not allowed: {name} must be {allowed}")
            }
            Error::Shape { what, found, expected } => write!(f, "{what} has {found}, expected {expected}"),
            Error::Value { what, row, column: Some(column), problem } => {
                write!(f, "{what}, row {row}, column {column} (counted from 0): {problem}")
            }
            Error::Value { what, row, column: None, problem } => {
                write!(f, "{what}, row {row} (counted from 0): {problem}")
            }
            Error::Classes { problem } => f.write_str(problem),
            Error::Parse { file, line, column, name, problem, kind: _ } => {
                write!(f, "{}", file.display())?;
                if let Some(line) = line {
                    write!(f, ", line {line}")?;
                }
                if let Some(column) = column {
                    write!(f, ", column {column}")?;
                }
                if let Some(name) = name {
                    write!(f, " ({})", quoted(name))?;
                }
                write!(f, ": {problem}")
            }
            Error::Io { file, source } => write!(f, "{}: {source}", file.display()),
            Error::ModelFile { file, problem } => write!(f, "{}: {problem}", file.display()),
            Error::Numerical { problem } => f.write_str(problem),
            Error::TimeLimit => f.write_str("time_limit: the time was up before a single point of the grid was judged"),
            Error::ReadingTime => f.write_str("time_limit: the time was up before all rows were read; raise it"),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
