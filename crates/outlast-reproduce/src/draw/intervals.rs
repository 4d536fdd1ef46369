//! Lines through means, with intervals.

use super::{Look, Mark};
use crate::verdict::Sample;

/// Standard errors to either side of a 95 % interval.
const INTERVAL: f64 = 1.96;

/// A line through means with 95 % intervals.
pub fn with_intervals(points: &[(f64, Sample)], look: Look) -> Vec<Mark> {
    let mut marks = vec![Mark::Line(points.iter().map(|(x, sample)| [*x, sample.mean]).collect(), look)];
    marks.extend(points.iter().map(|(x, sample)| {
        let reach = INTERVAL * sample.error;
        Mark::Whisker(*x, (sample.mean - reach, sample.mean + reach), look)
    }));
    marks
}
