//! Rows that come in chunks, as often as wanted: data larger than memory, or one part of data that lie elsewhere.

use crate::error::Result;

/// Some rows, in order. Values are f32, and have [`Chunks::shift`] taken off.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
pub struct Chunk {
    /// Number of the first row among all.
    pub first: u64,
    /// Row-major.
    pub x: Vec<f32>,
    /// The class of each row.
    pub codes: Vec<u32>,
    /// The weight of each row; empty where all are 1.
    pub weights: Vec<f64>,
}

impl Chunk {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.codes.len()
    }

    /// The weight of a row.
    pub fn weight(&self, row: usize) -> f64 {
        self.weights.get(row).copied().unwrap_or(1.0)
    }

    /// The same rows, borrowed.
    pub fn view(&self) -> ChunkView<'_> {
        ChunkView { first: self.first, x: &self.x, codes: &self.codes, weights: &self.weights }
    }
}

/// A borrowed [`Chunk`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ChunkView<'a> {
    /// Number of the first row among all.
    pub first: u64,
    /// Row-major.
    pub x: &'a [f32],
    /// The class of each row.
    pub codes: &'a [u32],
    /// The weight of each row; empty where all are 1.
    pub weights: &'a [f64],
}

impl ChunkView<'_> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.codes.len()
    }

    /// The weight of a row.
    pub fn weight(&self, row: usize) -> f64 {
        self.weights.get(row).copied().unwrap_or(1.0)
    }
}

/// A source of rows that can be read again and again, the same rows in the same order.
///
/// ```
/// use outlast::data::{Chunk, Chunks, Parts};
/// let part = Chunk { x: vec![0.0, 1.0, 2.0], codes: vec![0, 1, 1], ..Chunk::default() };
/// let mut rows = Parts::new(1, vec![part]);
/// let mut chunk = Chunk::default();
/// for _ in 0..2 {
///     rows.rewind()?;
///     let mut count = 0;
///     while rows.next(&mut chunk)? {
///         count += chunk.rows();
///     }
///     assert_eq!(count, 3);
/// }
/// # Ok::<(), outlast::Error>(())
/// ```
pub trait Chunks: Send {
    /// Number of columns.
    fn cols(&self) -> usize;

    /// What was taken off each column before it was rounded, so that columns far from 0 keep their digits; empty where nothing was.
    fn shift(&self) -> &[f64] {
        &[]
    }

    /// Goes back to the first row.
    fn rewind(&mut self) -> Result<()>;

    /// The next rows in place of those in `chunk`. False at the end.
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool>;
}

/// Chunks in memory.
#[derive(Debug, Clone)]
pub struct Parts {
    cols: usize,
    parts: Vec<Chunk>,
    at: usize,
}

impl Parts {
    /// Chunks of so many columns, in this order.
    pub fn new(cols: usize, mut parts: Vec<Chunk>) -> Parts {
        let mut first = 0;
        for part in &mut parts {
            part.first = first;
            first += part.rows() as u64;
        }
        Parts { cols, parts, at: 0 }
    }
}

impl Chunks for Parts {
    fn cols(&self) -> usize {
        self.cols
    }

    fn rewind(&mut self) -> Result<()> {
        self.at = 0;
        Ok(())
    }

    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let Some(part) = self.parts.get(self.at) else { return Ok(false) };
        chunk.clone_from(part);
        self.at += 1;
        Ok(true)
    }
}
