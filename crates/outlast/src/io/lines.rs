//! Lines of a text, one at a time, counted exactly, of bounded length.

use super::field::Problem;
use super::source::{Source, read_failure, whole_file, without_rows};
use crate::error::{Error, Result};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

/// The longest line accepted: room for ten million columns, yet a bound on what a hostile file can make us hold.
pub(super) const LONGEST_LINE: usize = 1 << 28;

const BUFFER: usize = 1 << 18;

/// A reader of lines that knows where it is.
pub(super) struct Lines<'a> {
    file: PathBuf,
    text: BufReader<Box<dyn Read + 'a>>,
    line: u64,
}

impl<'a> Lines<'a> {
    pub fn new(source: Source<'a>) -> Self {
        let (file, text) = source.into_reader();
        Lines { file, text: BufReader::with_capacity(BUFFER, Box::new(text)), line: 0 }
    }

    /// One-based number of the line last read.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Appends the next line to `into`, its end included. False at the end of the text.
    pub fn append(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        let before = into.len();
        let room = (LONGEST_LINE + 1).saturating_sub(before) as u64;
        if let Err(error) = self.text.by_ref().take(room).read_until(b'\n', into) {
            return Err(read_failure(&self.file, error));
        }
        if into.len() > LONGEST_LINE {
            let problem = format!("a row is longer than {} MB", LONGEST_LINE >> 20);
            return Err(self.at(self.line + 1, None, None, problem));
        }
        let found = into.len() > before;
        self.line += u64::from(found);
        Ok(found)
    }

    /// Replaces `into` by the next line without its end. False at the end of the text.
    pub fn next_line(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        into.clear();
        let found = self.append(into)?;
        into.truncate(trim_end(into).len());
        Ok(found)
    }

    /// The error for a place in this text.
    pub fn at(&self, line: u64, column: Option<u64>, name: Option<String>, problem: impl Into<Problem>) -> Error {
        let Problem { kind, text: problem } = problem.into();
        Error::Parse { file: self.file.clone(), line: Some(line), column, name, kind, problem }
    }

    /// The error for this text as a whole.
    pub fn without_rows(&self, problem: &str) -> Error {
        without_rows(&self.file, problem)
    }

    pub fn whole(&self, problem: impl Into<String>) -> Error {
        whole_file(&self.file, problem)
    }
}

/// A line without `\n` or `\r\n`.
pub(super) fn trim_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
