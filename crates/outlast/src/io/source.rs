//! From a name to plain text, or the bytes of a Parquet file: opening, unpacking, recognising.

use super::table::Format;
use crate::error::{Error, ParseKind, Result};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

/// Bytes looked at to recognise what a file holds.
const PREFIX: usize = 1 << 16;

/// Plain text, its beginning already looked at.
pub(super) struct Source<'a> {
    /// The file as the user named it.
    pub name: PathBuf,
    /// The beginning of the text, up to [`PREFIX`] bytes.
    pub prefix: Vec<u8>,
    /// Whether it began with a byte order mark, which is taken off.
    pub marked: bool,
    /// The file itself, where it was opened by name: a Parquet file is not read from front to back.
    pub file: Option<File>,
    rest: Box<dyn Read + 'a>,
}

/// How a source is called in messages.
pub(super) fn display_name(path: &Path) -> PathBuf {
    if path == Path::new("-") { PathBuf::from("standard input") } else { path.to_path_buf() }
}

/// An [`Error::Parse`] about a file as a whole.
pub(super) fn whole_file(file: &Path, problem: impl Into<String>) -> Error {
    let (file, kind) = (file.to_path_buf(), ParseKind::Other);
    Error::Parse { file, line: None, column: None, name: None, kind, problem: problem.into() }
}

/// The same about a file without rows.
pub(super) fn without_rows(file: &Path, problem: &str) -> Error {
    let (file, kind, problem) = (file.to_path_buf(), ParseKind::NoRows, problem.to_string());
    Error::Parse { file, line: None, column: None, name: None, kind, problem }
}

/// What a failed read means: a damaged gzip stream is a matter of the file's content, the rest of the system.
pub(super) fn read_failure(file: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => whole_file(file, "the gzip data end too early: the file is truncated"),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
            whole_file(file, format!("the gzip data are damaged ({error})"))
        }
        _ => Error::io(file, error),
    }
}

impl<'a> Source<'a> {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Source<'static>> {
        let name = display_name(path);
        if path == Path::new("-") {
            return Source::new(Box::new(io::stdin().lock()), name);
        }
        let file = File::open(path).map_err(|error| Error::io(&name, error))?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return Err(whole_file(&name, "is a folder, not a file"));
        }
        let again = file.try_clone().ok();
        Ok(Source { file: again, ..Source::new(Box::new(file), name)? })
    }

    /// Takes text from any reader, unpacking it if it is gzipped.
    pub fn new(mut raw: Box<dyn Read + 'a>, name: PathBuf) -> Result<Source<'a>> {
        let mut magic = Vec::new();
        raw.by_ref().take(8).read_to_end(&mut magic).map_err(|error| Error::io(&name, error))?;
        if let Some(problem) = foreign(&magic) {
            return Err(whole_file(&name, problem));
        }
        if magic.starts_with(PARQUET) {
            return Ok(Source { name, prefix: magic, marked: false, file: None, rest: raw });
        }
        let packed = magic.starts_with(&[0x1f, 0x8b]);
        let raw = Cursor::new(magic).chain(raw);
        let mut text: Box<dyn Read + 'a> = if packed { Box::new(MultiGzDecoder::new(raw)) } else { Box::new(raw) };
        let mut prefix = Vec::new();
        text.by_ref().take(PREFIX as u64).read_to_end(&mut prefix).map_err(|error| read_failure(&name, error))?;
        let marked = prefix.starts_with(b"\xef\xbb\xbf");
        if marked {
            prefix.drain(..3);
        }
        check_text(&name, &prefix)?;
        Ok(Source { name, prefix, marked, file: None, rest: text })
    }

    /// The whole text, beginning included.
    pub fn into_reader(self) -> (PathBuf, impl Read + 'a) {
        (self.name, Cursor::new(self.prefix).chain(self.rest))
    }

    /// The format asked for, if the file can be of it, else the likely one.
    pub fn format(&self, asked: Format) -> Result<Format> {
        match asked {
            Format::Auto => Ok(self.guess_format()),
            Format::Csv | Format::Libsvm if self.prefix.starts_with(PARQUET) => {
                Err(whole_file(&self.name, "is a Parquet file, not text"))
            }
            given => Ok(given),
        }
    }

    /// The format by the name's ending, else by the first line that says something.
    fn guess_format(&self) -> Format {
        if self.prefix.starts_with(PARQUET) || has_extension(&self.name, "parquet") {
            return Format::Parquet;
        }
        let stem = if has_extension(&self.name, "gz") { self.name.with_extension("") } else { self.name.clone() };
        if ["csv", "tsv", "tab"].iter().any(|ending| has_extension(&stem, ending)) {
            return Format::Csv;
        }
        if ["libsvm", "svm", "svmlight"].iter().any(|ending| has_extension(&stem, ending)) {
            return Format::Libsvm;
        }
        let mut lines = self.prefix.split(|&byte| byte == b'\n').map(|line| line.trim_ascii());
        let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#")).unwrap_or_default();
        let looks_sparse = |token: &[u8]| {
            let digits = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
            digits > 0 && token.get(digits) == Some(&b':')
        };
        let tokens = first.split(|byte| byte.is_ascii_whitespace()).filter(|token| !token.is_empty());
        if tokens.take(2).any(looks_sparse) { Format::Libsvm } else { Format::Csv }
    }
}

/// How a Parquet file begins.
const PARQUET: &[u8] = b"PAR1";

fn has_extension(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(ending))
}

/// Well-known files that are not text.
fn foreign(magic: &[u8]) -> Option<&'static str> {
    const KNOWN: &[(&[u8], &str)] = &[
        (b"PK\x03\x04", "is a zip archive or a spreadsheet; unpack it or save it as CSV"),
        (b"BZh", "is compressed with bzip2; unpack it or use gzip"),
        (b"\xfd7zXZ\0", "is compressed with xz; unpack it or use gzip"),
        (b"\x28\xb5\x2f\xfd", "is compressed with zstd; unpack it or use gzip"),
        (b"OUTLAST\0", "is a model file, not data"),
        (b"\xff\xfe", "is UTF-16 text; save it as UTF-8"),
        (b"\xfe\xff", "is UTF-16 text; save it as UTF-8"),
    ];
    KNOWN.iter().find(|(start, _)| magic.starts_with(start)).map(|(_, problem)| *problem)
}

/// Refuses what is plainly binary, before any of it lands in a message.
fn check_text(name: &Path, prefix: &[u8]) -> Result<()> {
    match prefix.iter().position(|&byte| byte == 0) {
        None => Ok(()),
        Some(at) => {
            let line = 1 + prefix[..at].iter().filter(|&&byte| byte == b'\n').count() as u64;
            Err(Error::Parse {
                file: name.to_path_buf(),
                line: Some(line),
                column: None,
                name: None,
                kind: ParseKind::Other,
                problem: "holds a zero byte: this is not a text file".to_string(),
            })
        }
    }
}
