//! The numbers of a box plot.

/// The numbers of a box plot.
#[derive(Debug, PartialEq)]
pub struct BoxPlot {
    /// Lower quartile, median, upper quartile (linear between order statistics).
    pub quartiles: [f64; 3],
    /// The last values within 1.5 times the quartiles' distance.
    pub whiskers: [f64; 2],
    /// The values beyond.
    pub outside: Vec<f64>,
}

impl BoxPlot {
    /// Of finite values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<BoxPlot> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let quartiles = [0.25, 0.5, 0.75].map(|share| {
            let at = share * last as f64;
            let (below, part) = (at.floor() as usize, at.fract());
            sorted[below] + part * (sorted[(below + 1).min(last)] - sorted[below])
        });
        let reach = 1.5 * (quartiles[2] - quartiles[0]);
        let inside = |value: &&f64| (quartiles[0] - reach..=quartiles[2] + reach).contains(*value);
        let whiskers = [*sorted.iter().find(inside)?, *sorted.iter().rfind(inside)?];
        let outside = sorted.iter().copied().filter(|value| !inside(&value)).collect();
        Some(BoxPlot { quartiles, whiskers, outside })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_plot_has_the_textbook_numbers() {
        let plot = BoxPlot::of(&[9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 100.0, f64::NAN]).unwrap();
        assert_eq!(plot.quartiles, [2.5, 4.0, 7.0]);
        assert_eq!(plot.whiskers, [1.0, 9.0]);
        assert_eq!(plot.outside, [100.0]);
        assert_eq!(BoxPlot::of(&[f64::NAN]), None);
    }
}
