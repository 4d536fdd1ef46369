//! What a fit in memory takes: which rows are fitted so, and which in chunks, where memory is bounded.
//!
//! Measured are the largest resident sets of `outlast fit` (two threads, C from 0.001 to 0.03, less the 13 MB of the process itself): bytes of a row, of which the
//! table as it was read has 8 d + 20. Taken is a d + b + c k (k - 1), the last only with several functions:
//!
//! ```text
//!                            k = 2                    k = 3               k = 10                             taken
//!                      d =   4       20      100      20      100         4      12      16     20           a    b    c
//! truncated, l2              348     487     1952     487     3056*       1530   1310    1230   3344*        18   320  12
//! l1, adaptive l1            484     690     2193     941     3002        4031   3790    4310   5197         20   420  45
//! q < 1                      715     1369    4799     2021    5502        4330   4600           5389         48   700  60
//! capped, p = 1 or 2         630     427     1613     468     1960        2050   820     890    1108         20   600  15
//! ```
//!
//! (n = 40,000, 40,000, 10,000; 20,000, 10,000; 10,000, 100,000, 700,000, 10,000; * with few rows, of which matrices are a good part.)
//!
//! Matrices of the order of the coefficients come on top. Utilities make of a row one for each class.

/// Bytes of a fit in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Whatever the rows.
    pub fixed: usize,
    /// Of each row.
    pub row: usize,
}

/// Methods whose fits in memory take about the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Squared,
    Selecting,
    Concave,
    Capped,
}

impl Kind {
    /// The penalty sum |w|^q.
    pub(super) fn power(q: f64) -> Kind {
        if q < 1.0 { Kind::Concave } else { Kind::Selecting }
    }

    /// Bytes of a row for each column, beside these, and for each of its terms.
    fn row(self) -> [usize; 3] {
        match self {
            Kind::Squared => [18, 320, 12],
            Kind::Selecting => [20, 420, 45],
            Kind::Concave => [48, 700, 60],
            Kind::Capped => [20, 600, 15],
        }
    }

    /// Matrices of the order of the coefficients, with one function and with several.
    fn matrices(self) -> (usize, usize) {
        match self {
            Kind::Squared => (8, 48),
            _ => (8, 16),
        }
    }

    /// Of rows with so many terms each.
    pub(super) fn footprint(self, cols: usize, classes: usize, terms: usize) -> Footprint {
        let (functions, pairs) = if classes == 2 { (1, 0) } else { (classes, classes.saturating_mul(classes - 1)) };
        let [column, row, pair] = self.row();
        let each = column.saturating_mul(cols).saturating_add(row).saturating_add(pair.saturating_mul(pairs));
        let size = functions.saturating_mul(cols.saturating_add(1));
        let matrices = if functions == 1 { self.matrices().0 } else { self.matrices().1 };
        Footprint {
            fixed: size.saturating_mul(size).saturating_mul(8 * matrices),
            row: each.saturating_mul(terms),
        }
    }
}

impl Footprint {
    /// Of a method that nothing is known of.
    pub const UNKNOWN: Footprint = Footprint { fixed: usize::MAX, row: usize::MAX };

    /// Bytes of a fit to so many rows.
    pub fn bytes(&self, rows: usize) -> usize {
        self.row.saturating_mul(rows).saturating_add(self.fixed)
    }

    /// Rows that can be fitted with so many bytes.
    pub fn rows(&self, bytes: usize) -> usize {
        bytes.saturating_sub(self.fixed) / self.row.max(1)
    }
}
