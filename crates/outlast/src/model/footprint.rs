//! What a fit in memory takes: which rows are fitted so, and which in chunks, where memory is bounded.
//!
//! Measured are the largest resident sets of `outlast fit` (two threads, C from 0.001 to 0.03, less the 13 MB of the process itself): bytes of a row, of which the
//! table as it was read has 8 d + 20. Taken is a d + b + c k^2, the last only with several functions:
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
//! Matrices of the order of the coefficients (of the rows, where these are fewer) come on top. With 600 columns and two classes 1,000 and 2,000 rows took 26 and 56 MB with
//! q < 1, 8 and 18 with l1: no matrices to speak of; 58 and 69 MB with a capped loss, 5 and 67 with the truncated one: 16 of them. With 20 columns and ten classes the
//! truncated loss took 46 beside its rows. Utilities make of a row one for each class.

/// Bytes of a fit in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Of each row.
    row: usize,
    /// Matrices, and their order where there are enough rows.
    matrices: usize,
    order: usize,
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

    /// Matrices, with one function and with several.
    fn matrices(self) -> (usize, usize) {
        match self {
            Kind::Squared => (16, 48),
            Kind::Capped => (16, 5),
            Kind::Selecting | Kind::Concave => (1, 1),
        }
    }

    /// Of rows that become so many each.
    pub(super) fn footprint(self, cols: usize, classes: usize, copies: usize) -> Footprint {
        let (functions, terms) = if classes == 2 { (1, 0) } else { (classes, classes.saturating_mul(classes)) };
        let [column, row, term] = self.row();
        let each = column.saturating_mul(cols).saturating_add(row).saturating_add(term.saturating_mul(terms));
        Footprint {
            row: each.saturating_mul(copies),
            matrices: if functions == 1 { self.matrices().0 } else { self.matrices().1 },
            order: functions.saturating_mul(cols.saturating_add(1)),
        }
    }
}

impl Footprint {
    /// Of a method that nothing is known of.
    pub const UNKNOWN: Footprint = Footprint { row: usize::MAX, matrices: 0, order: 0 };

    /// Bytes of a fit to so many rows.
    pub fn bytes(&self, rows: usize) -> usize {
        let order = self.order.min(rows);
        let matrices = order.saturating_mul(order).saturating_mul(8 * self.matrices);
        self.row.saturating_mul(rows).saturating_add(matrices)
    }

    /// Rows, up to so many, that can be fitted with these bytes.
    pub fn rows(&self, bytes: usize, most: usize) -> usize {
        let (mut some, mut too_many) = (0, most.saturating_add(1));
        while too_many - some > 1 {
            let middle = some + (too_many - some) / 2;
            if self.bytes(middle) <= bytes { some = middle } else { too_many = middle }
        }
        some
    }

    /// Of one fit after the other.
    pub(super) fn or(self, other: Footprint) -> Footprint {
        Footprint {
            row: self.row.max(other.row),
            matrices: self.matrices.max(other.matrices),
            order: self.order.max(other.order),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_many_as_there_are_bytes_for() {
        for kind in [Kind::Squared, Kind::Selecting, Kind::Concave, Kind::Capped] {
            for (cols, classes) in [(4, 2), (600, 2), (12, 10)] {
                let fit = kind.footprint(cols, classes, 1);
                let rows = fit.rows(40_000_000, 1_000_000);
                assert!(fit.bytes(rows) <= 40_000_000 && fit.bytes(rows + 1) > 40_000_000, "{kind:?} {cols} {classes}");
                assert_eq!(fit.rows(usize::MAX, 20_000), 20_000);
            }
        }
        assert_eq!(Footprint::UNKNOWN.rows(usize::MAX / 2, 100), 0);
    }

    /// What was measured is not above what is taken.
    #[test]
    fn measured_fits_are_within() {
        let megabyte = 1_000_000;
        for (kind, cols, classes, rows, measured) in [
            (Kind::Squared, 12, 10, 100_000, 131),
            (Kind::Squared, 16, 10, 700_000, 859),
            (Kind::Squared, 600, 2, 2000, 67),
            (Kind::Selecting, 12, 10, 100_000, 379),
            (Kind::Selecting, 16, 10, 700_000, 3017),
            (Kind::Concave, 12, 10, 100_000, 460),
            (Kind::Concave, 100, 2, 15_000, 78),
            (Kind::Concave, 600, 2, 2000, 56),
            (Kind::Capped, 12, 10, 100_000, 82),
            (Kind::Capped, 16, 10, 700_000, 623),
            (Kind::Capped, 600, 2, 2000, 69),
        ] {
            let taken = kind.footprint(cols, classes, 1).bytes(rows);
            assert!(taken >= measured * megabyte, "{kind:?} {cols} {classes} {rows}: {taken}");
        }
    }
}
