//! Rows on disk in a form that is quick to read again: f32, in blocks, each with its checksum.
//!
//! ```text
//! "OUTLROWS" | version, columns, weighted, shifted: u32 | shift of each column: f64 | checksum: u32
//! blocks:  rows: u32 | codes: u32 ... | weights: f64 ... if weighted | values: f32 ..., row-major | checksum: u32
//! end:     0: u32 | all rows: u64 | checksum: u32
//! ```
//!
//! All little-endian. One block at a time is mapped into memory, checked and turned into a chunk: mapped pages count towards the resident set, which is to stay within bounds.
//! The file has no name where the system can do that, so that nobody cuts it off while it is mapped, and goes with the process, however that ends; its length is looked at
//! before every block all the same. A disk that can't be read ends the process, as it does with every mapped file.

use crate::data::{Chunk, Chunks};
use crate::error::{Error, Result};
use memmap2::{Mmap, MmapOptions};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"OUTLROWS";
const VERSION: u32 = 1;
/// Most values of a block, fewest rows of one, and bytes of memory for each value: a block is held a few times over.
const BLOCK_VALUES: usize = 1 << 20;
const BLOCK_ROWS: (usize, usize) = (16, 1 << 16);
const BLOCK_SHARE: usize = 64;
/// Bytes of a checksum.
const SUM: usize = 4;

/// Rows of a block with so many columns.
pub(super) fn block_rows(cols: usize, memory: usize) -> usize {
    (BLOCK_VALUES.min(memory / BLOCK_SHARE) / cols.max(1)).clamp(BLOCK_ROWS.0, BLOCK_ROWS.1)
}

/// A cache that is being written.
pub(super) struct Writer {
    out: BufWriter<File>,
    folder: PathBuf,
    cols: usize,
    weighted: bool,
    shift: Vec<f64>,
    rows: u64,
    /// Rows of the longest block.
    longest: usize,
}

impl Writer {
    /// Begins a cache in a folder, with what is taken off each column (nothing, where empty).
    pub fn new(folder: &Path, cols: usize, weighted: bool, shift: Vec<f64>) -> Result<Writer> {
        let wrong = |error| Error::io(folder, error);
        let file = tempfile::tempfile_in(folder).map_err(wrong)?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let mut head = Vec::new();
        head.extend_from_slice(MAGIC);
        for number in [VERSION, cols as u32, u32::from(weighted), u32::from(!shift.is_empty())] {
            head.extend_from_slice(&number.to_le_bytes());
        }
        shift.iter().for_each(|value| head.extend_from_slice(&value.to_le_bytes()));
        sealed(&mut out, &head).map_err(wrong)?;
        Ok(Writer { out, folder: folder.to_path_buf(), cols, weighted, shift, rows: 0, longest: 0 })
    }

    /// Adds rows, as a block.
    pub fn write(&mut self, values: &[f64], codes: &[u32], weights: &[f64]) -> Result<()> {
        if codes.is_empty() {
            return Ok(());
        }
        let mut block = Vec::with_capacity(8 + 12 * codes.len() + 4 * values.len());
        block.extend_from_slice(&(codes.len() as u32).to_le_bytes());
        codes.iter().for_each(|code| block.extend_from_slice(&code.to_le_bytes()));
        if self.weighted {
            weights.iter().for_each(|weight| block.extend_from_slice(&weight.to_le_bytes()));
        }
        for (row, row_values) in values.chunks_exact(self.cols).enumerate() {
            for (column, value) in row_values.iter().enumerate() {
                let short = (value - self.shift.get(column).copied().unwrap_or(0.0)) as f32;
                if !short.is_finite() {
                    let problem =
                        format!("{value:e} is too large for the 32 bits that rows are kept in; scale the column");
                    let row = (self.rows as usize) + row;
                    return Err(Error::Value { what: "X", row, column: Some(column), problem });
                }
                block.extend_from_slice(&short.to_le_bytes());
            }
        }
        self.rows += codes.len() as u64;
        self.longest = self.longest.max(codes.len());
        sealed(&mut self.out, &block).map_err(|error| Error::io(&self.folder, error))
    }

    /// Ends the cache; `position` says where each code is among the sorted classes.
    pub fn finish(mut self, position: Vec<u32>) -> Result<CachedRows> {
        let wrong = |error| Error::io(&self.folder, error);
        let mut end = 0u32.to_le_bytes().to_vec();
        end.extend_from_slice(&self.rows.to_le_bytes());
        sealed(&mut self.out, &end).map_err(wrong)?;
        let file = self.out.into_inner().map_err(|error| Error::io(&self.folder, error.into_error()))?;
        let start = header(&file, self.cols, &self.shift).map_err(wrong)?;
        Ok(CachedRows {
            start,
            at: start,
            folder: self.folder,
            file,
            cols: self.cols,
            weighted: self.weighted,
            shift: self.shift,
            position,
            rows: self.rows,
            longest: self.longest,
            read: 0,
        })
    }
}

fn sealed(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(bytes)?;
    out.write_all(&crc32fast::hash(bytes).to_le_bytes())
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the rows kept on disk are damaged")
}

/// Maps so many bytes of a file.
fn mapped(file: &File, at: u64, count: usize) -> io::Result<Mmap> {
    let end = at.checked_add(count as u64).ok_or_else(damaged)?;
    if file.metadata()?.len() < end {
        return Err(damaged());
    }
    // SAFETY: the file is a temporary one that this process has opened for itself, writes no more, and has just found to be long enough
    unsafe { MmapOptions::new().offset(at).len(count).populate().map(file) }
}

/// What is before the checksum at the end, if that is right.
fn checked(bytes: &[u8]) -> io::Result<&[u8]> {
    let (content, sum) = bytes.split_last_chunk().ok_or_else(damaged)?;
    if *sum == crc32fast::hash(content).to_le_bytes() { Ok(content) } else { Err(damaged()) }
}

/// The number that some bytes begin with.
fn number(bytes: &[u8]) -> io::Result<u32> {
    bytes.first_chunk().map(|four| u32::from_le_bytes(*four)).ok_or_else(damaged)
}

/// Reads the header back; returns where the blocks begin.
fn header(file: &File, cols: usize, shift: &[f64]) -> io::Result<u64> {
    let size = 8 + 16 + 8 * shift.len() + SUM;
    let map = mapped(file, 0, size)?;
    let content = checked(&map)?;
    let found = (&content[..8], number(&content[8..])?, number(&content[12..])? as usize);
    if found == (MAGIC, VERSION, cols) { Ok(size as u64) } else { Err(damaged()) }
}

/// Rows of files, kept on disk.
pub struct CachedRows {
    folder: PathBuf,
    file: File,
    start: u64,
    /// Where the next block is.
    at: u64,
    cols: usize,
    weighted: bool,
    shift: Vec<f64>,
    position: Vec<u32>,
    rows: u64,
    longest: usize,
    read: u64,
}

impl CachedRows {
    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn block(&mut self, chunk: &mut Chunk) -> io::Result<bool> {
        let rows = number(&mapped(&self.file, self.at, 4)?)? as usize;
        if rows == 0 {
            let map = mapped(&self.file, self.at, 12 + SUM)?;
            let all = checked(&map)?[4..].try_into().map_err(|_| damaged())?;
            return if u64::from_le_bytes(all) == self.read { Ok(false) } else { Err(damaged()) };
        }
        if rows > self.longest {
            return Err(damaged());
        }
        let weights = if self.weighted { 8 * rows } else { 0 };
        let size = 4 + 4 * rows + weights + 4 * rows * self.cols + SUM;
        let map = mapped(&self.file, self.at, size)?;
        let (codes, rest) = checked(&map)?[4..].split_at(4 * rows);
        let (weights, values) = rest.split_at(weights);
        chunk.first = self.read;
        chunk.codes.clear();
        for piece in codes.chunks_exact(4) {
            chunk.codes.push(*self.position.get(number(piece)? as usize).ok_or_else(damaged)?);
        }
        chunk.weights.clear();
        let eight = |piece: &[u8]| f64::from_le_bytes(piece.try_into().unwrap_or_default());
        chunk.weights.extend(weights.chunks_exact(8).map(eight));
        chunk.x.clear();
        let four = |piece: &[u8]| f32::from_le_bytes(piece.try_into().unwrap_or_default());
        chunk.x.extend(values.chunks_exact(4).map(four));
        (self.at, self.read) = (self.at + size as u64, self.read + rows as u64);
        Ok(true)
    }
}

impl Chunks for CachedRows {
    fn cols(&self) -> usize {
        self.cols
    }

    fn shift(&self) -> &[f64] {
        &self.shift
    }

    fn rewind(&mut self) -> Result<()> {
        (self.read, self.at) = (0, self.start);
        Ok(())
    }

    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        self.block(chunk).map_err(|error| Error::io(&self.folder, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, SeekFrom};

    fn small(folder: &Path) -> CachedRows {
        let mut writer = Writer::new(folder, 2, true, vec![1e9, 0.0]).unwrap();
        writer.write(&[1e9 + 0.5, 2.0, 1e9 - 1.0, 3.0], &[0, 1], &[1.0, 0.5]).unwrap();
        writer.write(&[1e9, -1.0], &[1], &[2.0]).unwrap();
        writer.finish(vec![1, 0]).unwrap()
    }

    #[test]
    fn rows_come_back_as_often_as_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let mut rows = small(folder.path());
        for _ in 0..3 {
            rows.rewind().unwrap();
            let mut chunk = Chunk::default();
            assert!(rows.next(&mut chunk).unwrap());
            // far from 0, and yet all digits are there
            assert_eq!((chunk.first, &chunk.x[..], &chunk.codes[..]), (0, &[0.5, 2.0, -1.0, 3.0][..], &[1, 0][..]));
            assert_eq!(chunk.weights, [1.0, 0.5]);
            assert!(rows.next(&mut chunk).unwrap());
            assert_eq!((chunk.first, &chunk.x[..], &chunk.codes[..]), (2, &[0.0, -1.0][..], &[0][..]));
            assert!(!rows.next(&mut chunk).unwrap());
        }
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing is left behind");
    }

    fn ends_badly(mut rows: CachedRows) -> bool {
        rows.rewind().unwrap();
        let mut chunk = Chunk::default();
        let outcome = (0..10).map(|_| rows.next(&mut chunk)).find(|next| !matches!(next, Ok(true)));
        matches!(outcome, Some(Err(_)))
    }

    #[test]
    fn damage_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let length = small(folder.path()).file.metadata().unwrap().len();
        for at in small(folder.path()).start..length {
            let mut rows = small(folder.path());
            let mut byte = [0u8];
            rows.file.seek(SeekFrom::Start(at)).unwrap();
            rows.file.read_exact(&mut byte).unwrap();
            rows.file.seek(SeekFrom::Start(at)).unwrap();
            rows.file.write_all(&[byte[0] ^ 0x40]).unwrap();
            assert!(ends_badly(rows), "byte {at}");
        }
        for length in small(folder.path()).start..length {
            let rows = small(folder.path());
            rows.file.set_len(length).unwrap();
            assert!(ends_badly(rows), "cut at {length}");
        }
    }

    #[test]
    fn what_32_bits_cannot_hold_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::new(folder.path(), 1, false, Vec::new()).unwrap();
        let refused = writer.write(&[1e300], &[0], &[]).unwrap_err().to_string();
        assert!(refused.contains("too large"), "{refused}");
    }
}
