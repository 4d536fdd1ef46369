//! Ways out of local minima: some way down with another ceiling of the loss, and on from there with the own one. The lowest end counts, and the next ways begin
//! there, as long as they lead lower. All of a turn go by the same passes.

use super::together::Descent;
use super::{Shape, Work};
use crate::error::Result;

/// Factors of the ceiling, how many turns there are at most, and the relative decrease that is worth another one.
const CEILINGS: [f64; 8] = [0.6, 0.7, 0.85, 0.93, 1.07, 1.15, 1.4, 1.7];
const TURNS: usize = 4;
const WORTH: f64 = 1e-5;
/// Rows up to which ways out are tried. With more there are fewer minima, and passes are dear.
const MOST: u64 = 2_000_000;
/// What is not worth a pass with another ceiling.
const ROUGH: f64 = 1e-4;

/// Where a descent has ended.
pub(super) trait End: Send {
    fn objective(&self) -> f64;

    /// The end with what led to it before.
    fn after(self, before: Self) -> Self;
}

impl Work<'_> {
    /// Out of a local minimum; `way` is a descent with a ceiling times a factor, and on with the own one, or nothing where that meets another. Stays where ways are
    /// not known, or passes too dear.
    pub(super) fn out<'a, E: End + 'a>(
        &mut self,
        mut lowest: E,
        way: impl Fn(&E, f64) -> Descent<'a, Option<E>>,
    ) -> Result<E> {
        let is_bounded = match self.given.spec.shape {
            Shape::Capped { cap, .. } => cap.is_finite(),
            _ => self.given.spec.ceiling.is_finite(),
        };
        if !is_bounded || self.given.spec.wide || self.given.survey.total() > MOST {
            return Ok(lowest);
        }
        for _ in 0..TURNS {
            if self.control.out_of_time() {
                break;
            }
            let mut ends = Vec::new();
            for some in CEILINGS.chunks(self.given.side_by_side) {
                ends.extend(self.together(some.iter().map(|factor| way(&lowest, *factor)).collect())?);
            }
            let end = ends.into_iter().flatten().min_by(|a, b| a.objective().total_cmp(&b.objective()));
            match end.filter(|end| end.objective() < lowest.objective() * (1.0 - WORTH)) {
                Some(end) => lowest = end.after(lowest),
                None => break,
            }
        }
        Ok(lowest)
    }

    /// Something done roughly, with the ceiling times a factor.
    pub(super) fn with_ceiling<T>(&mut self, factor: f64, with: impl FnOnce(&mut Work) -> Result<T>) -> Result<T> {
        let (spec, board) = (&mut self.given.spec, self.board.take());
        let (shape, ceiling) = (spec.shape, spec.ceiling);
        spec.ceiling *= factor;
        if let Shape::Capped { cap, .. } = &mut spec.shape {
            *cap *= factor;
        }
        let little = std::mem::replace(&mut self.given.little, ROUGH);
        let found = with(self);
        (self.given.spec.shape, self.given.spec.ceiling) = (shape, ceiling);
        (self.given.little, self.board) = (little, board);
        found
    }
}
