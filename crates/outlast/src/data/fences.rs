//! Far fences of a column: beyond them a value says more about itself than about the column.
//!
//! ```text
//! [q1 - reach r, q3 + reach r],    q1 and q3 the quartiles,    r = q3 - q1
//! ```
//!
//! With a reach of 5 that is 7.4 deviations to either side of Gaussian values. Where r = 0 there are none: most values are the same, and the others are what the
//! column has to say.

/// Bounds of the values that are not far; all of them lie within the default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fences {
    pub low: f64,
    pub high: f64,
}

impl Default for Fences {
    fn default() -> Self {
        Fences { low: f64::MIN, high: f64::MAX }
    }
}

impl Fences {
    /// Of a column with these quartiles; `reach` says how far a fence stands from them.
    pub fn of_quartiles(q1: f64, q3: f64, reach: f64) -> Fences {
        // halves, so that the difference of two huge numbers stays finite
        let range = 2.0 * (q3 / 2.0 - q1 / 2.0).min(f64::MAX / 8.0);
        match range > 0.0 {
            true => Fences { low: (q1 - reach * range).max(f64::MIN), high: (q3 + reach * range).min(f64::MAX) },
            false => Fences::default(),
        }
    }

    /// Of values, each with the share of the column that it stands for; `zeros` is the share of those that are not listed. A
    /// quartile is the least value that at least this share of the column does not exceed.
    pub fn of_shares(values: &mut [(f64, f64)], zeros: f64, reach: f64) -> Fences {
        values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let whole = values.iter().map(|(_, share)| share).sum::<f64>() + zeros;
        let quartile = |share: f64| {
            // rounding of the sums must not decide between two values
            let wanted = share * whole * (1.0 - 1e-12);
            let (mut sum, mut passed) = (0.0, zeros <= 0.0);
            for &(value, own) in values.iter() {
                if !passed && value >= 0.0 {
                    passed = true;
                    sum += zeros;
                    if sum >= wanted {
                        return 0.0;
                    }
                }
                sum += own;
                if own > 0.0 && sum >= wanted {
                    return value;
                }
            }
            if passed { values.last().map_or(0.0, |last| last.0) } else { 0.0 }
        };
        Fences::of_quartiles(quartile(0.25), quartile(0.75), reach)
    }

    /// The same, moved so that 0 is not far.
    pub fn around_zero(self) -> Fences {
        Fences { low: self.low.min(0.0), high: self.high.max(0.0) }
    }

    pub fn hold(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// A far value pulled in to the fence.
    pub fn pull(&self, value: f64) -> f64 {
        value.clamp(self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_stand_quartile_distances_out() {
        assert_eq!(Fences::of_quartiles(1.0, 3.0, 5.0), Fences { low: -9.0, high: 13.0 });
        assert_eq!(Fences::of_quartiles(2.0, 2.0, 5.0), Fences::default());
        let huge = Fences::of_quartiles(-1e308, 1e308, 5.0);
        assert!(huge.hold(f64::MAX) && huge.hold(f64::MIN));
    }

    #[test]
    fn shares_count_as_rows_and_zeros_need_not_be_listed() {
        let of = |values: &[f64]| {
            Fences::of_shares(&mut values.iter().map(|&value| (value, 0.1)).collect::<Vec<_>>(), 0.0, 5.0)
        };
        let all = of(&[-3.0, 0.0, 0.0, 1.0, 2.0, 2.0, 5.0, 9.0]);
        let some = Fences::of_shares(&mut [(2.0, 0.2), (-3.0, 0.1), (9.0, 0.1), (1.0, 0.1), (5.0, 0.1)], 0.2, 5.0);
        assert_eq!(all, some);
        assert_eq!(all, Fences::of_quartiles(0.0, 2.0, 5.0));
        assert_eq!(Fences::of_shares(&mut [(4.0, 0.2)], 0.8, 5.0), Fences::default());
        assert_eq!(Fences::of_shares(&mut [], 1.0, 5.0), Fences::default());
    }
}
