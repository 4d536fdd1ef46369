//! Some rows of all, as they are, drawn evenly: they tell where columns lie.
//!
//! A value x that has s taken off is off by |x - s| 2^-24 at most. That matters next to how far values lie from each other, the spread: the median of |x - m|, m the median of x. Medians,
//! because the rows of one level are what is to be told apart, however far away another level is.

/// Fewest rows held once there are as many; at most twice as many.
const HELD: usize = 64;
/// Rounding to 32 bits, relative.
const ROUNDING: f64 = 1.0 / (1 << 24) as f64;
/// Share of the spread that may be lost.
const MAY_LOSE: f64 = 1e-4;
/// One row in so many that loses digits is worth a word.
const WORTH: usize = 10;

/// Rows whose number, scattered, has nothing but zeros below a bit that rises as rows do.
#[derive(Default)]
pub(super) struct Thinned {
    cols: usize,
    numbers: Vec<u64>,
    values: Vec<f64>,
    rows: u64,
    mask: u64,
}

impl Thinned {
    /// Looks at some more rows.
    pub fn add(&mut self, values: &[f64], cols: usize) {
        self.cols = cols;
        for row in values.chunks_exact(cols.max(1)) {
            if scatter(self.rows) & self.mask == 0 {
                self.numbers.push(self.rows);
                self.values.extend_from_slice(row);
            }
            self.rows += 1;
            if self.numbers.len() == 2 * HELD {
                self.thin();
            }
        }
    }

    /// Lets about half of the rows go.
    fn thin(&mut self) {
        self.mask = 2 * self.mask + 1;
        let keep: Vec<usize> =
            (0..self.numbers.len()).filter(|at| scatter(self.numbers[*at]) & self.mask == 0).collect();
        self.values = keep.iter().flat_map(|at| self.values[at * self.cols..][..self.cols].to_vec()).collect();
        self.numbers = keep.into_iter().map(|at| self.numbers[at]).collect();
    }

    fn column(&self, column: usize) -> Vec<f64> {
        self.values.iter().skip(column).step_by(self.cols.max(1)).copied().collect()
    }

    /// What should be taken off instead, where most rows of a column lose digits. `None` where that can stay.
    pub fn better_shift(&self, shift: &[f64]) -> Option<Vec<f64>> {
        let mut better: Vec<f64> = (0..self.cols).map(|column| shift.get(column).copied().unwrap_or(0.0)).collect();
        let mut is_other = false;
        for (column, shift) in better.iter_mut().enumerate() {
            if let Some((middle, spread)) = middle_and_spread(self.column(column))
                && loses(middle, *shift, spread)
                && (middle as f32).is_finite()
            {
                (*shift, is_other) = (f64::from(middle as f32), true);
            }
        }
        is_other.then_some(better)
    }

    /// Columns many of whose rows lie far away from what is taken off, and close to each other.
    pub fn lost(&self, shift: &[f64]) -> Vec<usize> {
        let is_lost = |column: &usize| {
            let (values, shift) = (self.column(*column), shift.get(*column).copied().unwrap_or(0.0));
            let Some((_, spread)) = middle_and_spread(values.clone()) else { return false };
            let far: Vec<f64> = values.iter().copied().filter(|x| loses(*x, shift, spread)).collect();
            WORTH * far.len() > values.len()
                && middle_and_spread(far).is_some_and(|(middle, spread)| loses(middle, shift, spread))
        };
        (0..self.cols).filter(is_lost).collect()
    }
}

fn loses(x: f64, shift: f64, spread: f64) -> bool {
    (x - shift).abs() * ROUNDING > MAY_LOSE * spread
}

/// The median, and how far values lie from it. `None` where they are all the same.
fn middle_and_spread(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let middle = *values.get(values.len() / 2)?;
    let mut away: Vec<f64> = values.iter().map(|x| (x - middle).abs()).collect();
    away.sort_by(f64::total_cmp);
    // most may be at the median
    let spread = [2, 4, 10, away.len()].map(|part| away[away.len() - 1 - (away.len() - 1) / part]);
    spread.into_iter().find(|spread| *spread > 0.0).map(|spread| (middle, spread))
}

/// A number scattered over 64 bits (SplitMix64).
fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thinned(values: impl Iterator<Item = f64>) -> Thinned {
        let mut thinned = Thinned::default();
        let values: Vec<f64> = values.collect();
        values.chunks(777).for_each(|some| thinned.add(some, 1));
        assert!((HELD / 4..2 * HELD).contains(&thinned.numbers.len()), "{}", thinned.numbers.len());
        thinned
    }

    fn wave(row: usize) -> f64 {
        (row as f64 * 0.7).sin()
    }

    #[test]
    fn levels_are_found() {
        // few rows at 0, the others far away
        let moved = thinned((0..20_000).map(|row| if row < 1000 { wave(row) } else { 1e8 + wave(row) }));
        assert_eq!(moved.better_shift(&[]), Some(vec![1e8]));
        assert_eq!((moved.lost(&[]), moved.lost(&[1e8])), (vec![0], vec![]));
        // two levels: neither is good for both
        let two = thinned((0..20_000).map(|row| if row % 3 == 0 { wave(row) } else { 1e8 + wave(row) }));
        assert_eq!((two.better_shift(&[1e8]), two.lost(&[1e8])), (None, vec![0]));
    }

    #[test]
    fn ordinary_columns_stay() {
        let columns: [fn(usize) -> f64; 6] = [
            wave,
            |row| 1e5 + wave(row),
            |row| f64::from(u8::from(row % 50 == 0)),
            |_| 1e9,
            |row| 10f64.powf(10.0 * wave(row)),
            |row| 0.1 * (row as f64),
        ];
        for (at, column) in columns.into_iter().enumerate() {
            let shift = if at == 1 { 1e5 } else { 0.0 };
            let seen = thinned((0..20_000).map(column));
            assert_eq!((seen.better_shift(&[shift]), seen.lost(&[shift])), (None, vec![]), "column {at}");
        }
    }
}
