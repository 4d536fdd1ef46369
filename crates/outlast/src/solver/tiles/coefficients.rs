//! Coefficients of some rows in several functions, zeros left out: with many classes a row counts in two or three.

/// rows x functions, by rows.
#[derive(Debug, Clone)]
pub(crate) struct Coefficients {
    functions: usize,
    starts: Vec<usize>,
    entries: Vec<(u32, f64)>,
}

impl Coefficients {
    /// No rows yet.
    pub(crate) fn new(functions: usize) -> Coefficients {
        Coefficients { functions, starts: vec![0], entries: Vec::new() }
    }

    /// The rows of a row-major matrix.
    pub(crate) fn from_dense(functions: usize, values: &[f64]) -> Coefficients {
        let mut coefficients = Coefficients::new(functions);
        values.chunks_exact(functions.max(1)).for_each(|row| coefficients.push(row.iter().copied()));
        coefficients
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: impl Iterator<Item = f64>) {
        let entries = row.enumerate().filter(|(_, c)| *c != 0.0);
        self.entries.extend(entries.map(|(function, c)| (function as u32, c)));
        self.starts.push(self.entries.len());
    }

    /// Adds a row given by its entries.
    pub(crate) fn push_entries(&mut self, entries: &[(u32, f64)]) {
        self.entries.extend_from_slice(entries);
        self.starts.push(self.entries.len());
    }

    pub(crate) fn functions(&self) -> usize {
        self.functions
    }

    /// (function, coefficient) of a row.
    pub(crate) fn row(&self, row: usize) -> &[(u32, f64)] {
        &self.entries[self.starts[row]..self.starts[row + 1]]
    }

    /// The largest absolute value.
    pub(crate) fn largest(&self) -> f64 {
        self.entries.iter().fold(0.0, |largest, (_, c)| largest.max(c.abs()))
    }

    /// Per function, the sum of squares.
    pub(crate) fn squares(&self) -> Vec<f64> {
        let mut squares = vec![0.0; self.functions];
        self.entries.iter().for_each(|&(function, c)| squares[function as usize] += c * c);
        squares
    }

    /// out[function] += sum over rows of coefficient times value.
    pub(crate) fn add_products(&self, values: &[f64], out: &mut [f64]) {
        for (row, value) in values.iter().enumerate() {
            for &(function, c) in self.row(row) {
                out[function as usize] += c * value;
            }
        }
    }
}
