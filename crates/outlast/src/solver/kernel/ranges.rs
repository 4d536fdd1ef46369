//! Where a variable may move, and the piecewise linear cost it carries.

/// lower <= b <= upper, and up to two *kinks* per row at which the derivative jumps up by `jump`.
#[derive(Clone, Copy)]
pub(crate) struct Ranges<'a> {
    pub(crate) lower: &'a [f64],
    pub(crate) upper: &'a [f64],
    /// Lower one first; the first `kinks.len()` rows have them.
    pub(crate) kinks: &'a [[f64; 2]],
    pub(crate) jump: f64,
}

impl Ranges<'_> {
    /// The piece of a row's range above (or below) b: its end, and the change of slope against piece number `start`.
    #[inline(always)]
    pub(crate) fn piece(&self, row: usize, beta: f64, start: i8, above: bool) -> (f64, f64) {
        let bound = if above { self.upper[row] } else { self.lower[row] };
        let Some(kinks) = self.kinks.get(row) else { return (bound, 0.0) };
        let number = kinks.iter().filter(|&&kink| if above { kink <= beta } else { kink < beta }).count();
        let end = match above {
            true => kinks.get(number).map_or(bound, |kink| kink.min(bound)),
            false => number.checked_sub(1).map_or(bound, |below| kinks[below].max(bound)),
        };
        (end, self.jump * (number as f64 - f64::from(start)))
    }

    /// How many kinks lie at or below b.
    pub(crate) fn kinks_below(&self, row: usize, beta: f64) -> i8 {
        self.kinks.get(row).map_or(0, |kinks| kinks.iter().filter(|&&kink| kink <= beta).count() as i8)
    }
}
