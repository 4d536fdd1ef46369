//! Ways out of local minima of truncated losses: some way down with another ceiling of the loss, and on from there with the own one. The lowest end counts, and
//! the next ways begin there, as long as they lead lower.

use crate::control::Control;
use crate::error::Result;

/// Factors of the ceiling, those first that some are enough of, how many turns there are at most, and the relative decrease that is worth another one.
const CEILINGS: [f64; 10] = [0.7, 1.4, 0.5, 2.0, 0.85, 1.15, 3.0, 0.93, 5.0, 1.07];
const TURNS: usize = 4;
const WORTH: f64 = 1e-5;

/// Where a descent has ended.
pub(super) trait End: Sized {
    fn objective(&self) -> f64;

    /// The end with what led to it before.
    fn after(self, before: Self) -> Self;

    /// Whether it is lower than another by enough for another turn.
    fn is_worth(&self, before: &Self) -> bool {
        before.objective() - self.objective() > WORTH * before.objective().abs()
    }
}

/// Out of a local minimum; `ways` are descents from there, one for each factor of the ceiling, and may be fewer where they meet.
pub(super) fn out<E: End>(
    mut lowest: E,
    control: &Control,
    mut ways: impl FnMut(&E, &[f64]) -> Result<Vec<E>>,
) -> Result<E> {
    for _ in 0..TURNS {
        if control.out_of_time() {
            break;
        }
        let ends = ways(&lowest, &CEILINGS)?;
        match ends.into_iter().min_by(|a, b| a.objective().total_cmp(&b.objective())) {
            Some(end) if end.is_worth(&lowest) => lowest = end.after(lowest),
            _ => break,
        }
    }
    Ok(lowest)
}
