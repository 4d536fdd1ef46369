//! Features made of the columns: the columns as they are, or beside their squares.

use super::Design;
use super::columns::copied;
use crate::error::{Error, Result};
use std::ops::Range;

/// What a linear function is linear in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FeatureMap {
    /// The columns.
    #[default]
    Identity,
    /// The columns and their squares: x_1 .. x_d, x_1^2 .. x_d^2.
    Squares,
}

impl FeatureMap {
    /// Every map there is.
    pub const ALL: &'static [FeatureMap] = &[FeatureMap::Identity, FeatureMap::Squares];

    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            FeatureMap::Identity => "identity",
            FeatureMap::Squares => "squares",
        }
    }

    /// One line for help texts.
    pub fn about(self) -> &'static str {
        match self {
            FeatureMap::Identity => "the columns as they are",
            FeatureMap::Squares => "the columns and their squares",
        }
    }

    /// The map of that name.
    pub fn from_name(name: &str) -> Result<FeatureMap> {
        Self::ALL
            .iter()
            .copied()
            .find(|map| map.name() == name)
            .ok_or_else(|| Error::parameter("feature_map", format!("{name:?}"), "one of identity, squares"))
    }
}

/// A view of `x` with the squares of its columns beside them.
///
/// ```
/// use outlast::data::{Dense, Design, Squared};
/// let x = Dense::from_rows(&[[2.0, -3.0]]);
/// let mut row = [0.0; 4];
/// Squared::new(&x).copy_row(0, &mut row);
/// assert_eq!(row, [2.0, -3.0, 4.0, 9.0]);
/// ```
pub struct Squared<'a> {
    x: &'a dyn Design,
}

impl<'a> Squared<'a> {
    /// The view.
    pub fn new(x: &'a dyn Design) -> Self {
        Squared { x }
    }
}

impl Design for Squared<'_> {
    fn rows(&self) -> usize {
        self.x.rows()
    }

    fn cols(&self) -> usize {
        2 * self.x.cols()
    }

    fn stored(&self) -> usize {
        2 * self.x.stored()
    }

    fn is_sparse(&self) -> bool {
        self.x.is_sparse()
    }

    fn by_columns(&self) -> bool {
        self.x.by_columns()
    }

    fn row_major(&self) -> Option<Box<dyn Design>> {
        self.x.by_columns().then(|| Box::new(copied(self)) as Box<dyn Design>)
    }

    fn for_each(&self, row: usize, visit: &mut dyn FnMut(usize, f64)) {
        let d = self.x.cols();
        self.x.for_each(row, visit);
        self.x.for_each(row, &mut |column, value| visit(d + column, value * value));
    }

    fn dot(&self, row: usize, w: &[f64]) -> f64 {
        let (plain, squares) = w.split_at(self.x.cols());
        let mut sum = 0.0;
        self.x.for_each(row, &mut |column, value| sum += value * (plain[column] + value * squares[column]));
        sum
    }

    fn add_scaled(&self, row: usize, a: f64, out: &mut [f64]) {
        let (plain, squares) = out.split_at_mut(self.x.cols());
        self.x.for_each(row, &mut |column, value| {
            plain[column] += a * value;
            squares[column] += a * (value * value);
        });
    }

    fn block<'b>(&'b self, rows: Range<usize>, scratch: &'b mut Vec<f64>) -> &'b [f64] {
        let cols = self.cols();
        scratch.clear();
        scratch.resize(rows.len() * cols, 0.0);
        for (out, row) in scratch.chunks_exact_mut(cols.max(1)).zip(rows) {
            self.copy_row(row, out);
        }
        scratch
    }

    fn stored_in<'b>(&'b self, rows: Range<usize>, scratch: &'b mut Vec<f64>) -> &'b [f64] {
        scratch.clear();
        for row in rows {
            self.for_each(row, &mut |_, value| scratch.push(value));
        }
        scratch
    }
}
