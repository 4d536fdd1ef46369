//! Ways out of local minima of truncated losses: some way down with another ceiling of the loss, and on from there with the own one. The lowest end counts, and
//! the next ways begin there, as long as they lead lower.

use crate::control::Control;
use crate::error::Result;
use rayon::prelude::*;

/// Factors of the ceiling, those first that some are enough of, how many turns there are at most, and the relative decrease that is worth another one.
const CEILINGS: [f64; 10] = [0.7, 1.4, 0.5, 2.0, 0.85, 1.15, 3.0, 0.93, 5.0, 1.07];
const TURNS: usize = 4;
const WORTH: f64 = 1e-5;
/// Ways over rows in memory that are followed at once: each holds some of them.
const AT_ONCE: usize = 2;

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

/// A point of a problem in memory.
struct Point {
    theta: Vec<f64>,
    objective: f64,
}

impl End for Point {
    fn objective(&self) -> f64 {
        self.objective
    }

    fn after(self, _: Point) -> Point {
        self
    }
}

/// A point lower than `theta` by such ways, with a descent for a ceiling, and the objective. Nothing where none is found.
pub(super) fn explore(
    ceiling: f64,
    theta: &[f64],
    control: &Control,
    down: impl Fn(&[f64], f64) -> Result<Vec<f64>> + Sync,
    value: impl Fn(&[f64]) -> Result<f64> + Sync,
) -> Result<Option<Vec<f64>>> {
    let point = |theta: Vec<f64>| Ok(Point { objective: value(&theta)?, theta });
    let start = point(theta.to_vec())?;
    let bound = start.objective;
    let end = out(start, control, |lowest, factors| {
        let way = |factor: &f64| point(down(&down(&lowest.theta, factor * ceiling)?, ceiling)?);
        let mut ends = Vec::new();
        for some in factors.chunks(AT_ONCE) {
            if control.out_of_time() {
                break;
            }
            ends.extend(some.par_iter().map(way).collect::<Result<Vec<_>>>()?);
        }
        Ok(ends)
    })?;
    Ok((end.objective < bound).then_some(end.theta))
}
