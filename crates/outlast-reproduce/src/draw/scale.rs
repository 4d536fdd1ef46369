//! From values to places, and where ticks stand.

use super::panel::Axis;

/// From values to places.
pub(super) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    pub(super) fn new(axis: &Axis, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
        let on = |value: f64| if axis.log { value.log10() } else { value };
        let values = values.map(on).filter(|value| value.is_finite());
        let (low, high) = match axis.range {
            Some((low, high)) => (on(low), on(high)),
            None => {
                let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
                let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
                let room = if high > low { 0.04 * (high - low) } else { 0.5 };
                (low - room, high + room)
            }
        };
        Scale { low, high, from, to, log: axis.log }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        let value = if self.log { value.log10() } else { value };
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    pub(super) fn ticks(&self, axis: &Axis) -> Vec<(f64, String)> {
        if !axis.names.is_empty() {
            return axis.names.iter().enumerate().map(|(at, name)| (at as f64, name.clone())).collect();
        }
        if !axis.places.is_empty() {
            return axis.places.iter().map(|&place| (place, place.to_string())).collect();
        }
        if self.log {
            let powers = self.low.ceil() as i32..=self.high.floor() as i32;
            if powers.clone().count() < 3 {
                return self.between_powers();
            }
            return powers.map(|power| (10f64.powi(power), format!("1e{power}"))).collect();
        }
        let step = step(self.high - self.low);
        let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let (first, last) = ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
        (first..=last).map(|at| at as f64 * step).map(|value| (value, format!("{value:.decimals$}"))).collect()
    }
}

impl Scale {
    /// 1, 2 and 5 times the powers of ten.
    fn between_powers(&self) -> Vec<(f64, String)> {
        let powers = self.low.floor() as i32..=self.high.ceil() as i32;
        let all = powers
            .flat_map(|power| [1.0, 2.0, 5.0].map(|factor| (factor * 10f64.powi(power), (-power).max(0) as usize)));
        let inside = all.filter(|(value, _)| (self.low..=self.high).contains(&value.log10()));
        inside.map(|(value, decimals)| (value, format!("{value:.decimals$}"))).collect()
    }
}

/// A step of 1, 2 or 5 times a power of 10 that cuts a range into four to nine.
fn step(range: f64) -> f64 {
    let power = 10f64.powf((range / 5.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| range / step <= 8.0).unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_logarithmic_axis_has_ticks_between_the_powers() {
        let axis = Axis::log("");
        let ticks = |low: f64, high: f64| -> Vec<String> {
            Scale::new(&Axis { range: Some((low, high)), ..axis.clone() }, [].into_iter(), 0.0, 1.0)
                .ticks(&axis)
                .into_iter()
                .map(|(_, text)| text)
                .collect()
        };
        assert_eq!(ticks(0.015, 0.3), ["0.02", "0.05", "0.1", "0.2"]);
        assert_eq!(ticks(1e-4, 1.0), ["1e-4", "1e-3", "1e-2", "1e-1", "1e0"]);
    }

    #[test]
    fn steps_are_round() {
        for (range, expected) in [(1.0, 0.2), (0.05, 0.01), (7.0, 1.0), (9.0, 2.0), (100.0, 20.0)] {
            assert!((step(range) / expected - 1.0).abs() < 1e-9, "{range}: {}", step(range));
        }
    }
}
