//! Rows of another matrix, in any order and as often as wanted.

use super::Design;
use super::columns::copied;
use std::ops::Range;

/// A view of some rows of `x`, repetitions allowed. A *square* one also takes those columns, in the same order: what a
/// matrix of kernel values between the rows becomes.
pub struct Repeated<'a> {
    x: &'a dyn Design,
    rows: Vec<u32>,
    square: bool,
}

impl<'a> Repeated<'a> {
    /// Row i of the view is row `rows[i]` of `x`.
    pub fn new(x: &'a dyn Design, rows: Vec<u32>) -> Self {
        Repeated { x, rows, square: false }
    }

    /// Entry (i, j) of the view is entry (`rows[i]`, `rows[j]`) of the square matrix `x`.
    pub fn square(x: &'a dyn Design, rows: Vec<u32>) -> Self {
        Repeated { x, rows, square: true }
    }

    fn source(&self, row: usize) -> usize {
        self.rows[row] as usize
    }
}

impl Design for Repeated<'_> {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn cols(&self) -> usize {
        if self.square { self.rows.len() } else { self.x.cols() }
    }

    fn stored(&self) -> usize {
        if !self.is_sparse() {
            return self.rows() * self.cols();
        }
        // the share of entries stored is taken to be that of the whole
        (self.x.stored() as f64 / self.x.rows().max(1) as f64 * self.rows() as f64) as usize
    }

    fn is_sparse(&self) -> bool {
        !self.square && self.x.is_sparse()
    }

    fn by_columns(&self) -> bool {
        self.x.by_columns()
    }

    fn row_major(&self) -> Option<Box<dyn Design>> {
        self.x.by_columns().then(|| Box::new(copied(self)) as Box<dyn Design>)
    }

    fn for_each(&self, row: usize, visit: &mut dyn FnMut(usize, f64)) {
        if !self.square {
            return self.x.for_each(self.source(row), visit);
        }
        let mut values = vec![0.0; self.x.cols()];
        self.x.copy_row(self.source(row), &mut values);
        for (column, &source) in self.rows.iter().enumerate() {
            visit(column, values[source as usize]);
        }
    }

    fn dot(&self, row: usize, w: &[f64]) -> f64 {
        if !self.square {
            return self.x.dot(self.source(row), w);
        }
        let mut sum = 0.0;
        self.for_each(row, &mut |column, value| sum += value * w[column]);
        sum
    }

    fn add_scaled(&self, row: usize, a: f64, out: &mut [f64]) {
        if !self.square {
            return self.x.add_scaled(self.source(row), a, out);
        }
        self.for_each(row, &mut |column, value| out[column] += a * value);
    }

    fn copy_row(&self, row: usize, out: &mut [f64]) {
        if !self.square {
            return self.x.copy_row(self.source(row), out);
        }
        out.fill(0.0);
        self.for_each(row, &mut |column, value| out[column] = value);
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
        if !self.is_sparse() {
            return self.block(rows, scratch);
        }
        scratch.clear();
        for row in rows {
            self.for_each(row, &mut |_, value| scratch.push(value));
        }
        scratch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;

    #[test]
    fn rows_and_columns_follow_the_list() {
        let x = Dense::from_rows(&[[1.0, 2.0], [3.0, 4.0]]);
        let view = Repeated::new(&x, vec![1, 1, 0]);
        let mut scratch = Vec::new();
        assert_eq!(view.block(0..3, &mut scratch), [3.0, 4.0, 3.0, 4.0, 1.0, 2.0]);
        assert_eq!(view.dot(0, &[1.0, 10.0]), 43.0);
        let square = Repeated::square(&x, vec![1, 0, 0]);
        assert_eq!(square.block(0..2, &mut scratch), [4.0, 3.0, 3.0, 2.0, 1.0, 1.0]);
        assert_eq!(square.cols(), 3);
    }
}
