//! Choosing working sets: violators from both ends.

use super::dual::Dual;

/// Rows that violate, nearest to the worst first, by both conditions.
pub(crate) struct Violators {
    rising: Vec<(f32, u32)>,
    falling: Vec<(f32, u32)>,
}

/// The part of a state that selection looks at.
pub(crate) struct View<'a> {
    pub(crate) beta: &'a [f64],
    pub(crate) gradient: &'a [f64],
    pub(crate) lower: &'a [f64],
    pub(crate) upper: &'a [f64],
}

impl<'a> From<&'a Dual<'_>> for View<'a> {
    fn from(dual: &'a Dual) -> Self {
        View { beta: &dual.beta, gradient: &dual.gradient, lower: &dual.lower, upper: &dual.upper }
    }
}

impl View<'_> {
    /// (min F over rising, max F over falling)
    pub(crate) fn extremes(&self, balanced: bool) -> (f64, f64) {
        let (mut lowest, mut highest) = if balanced { (f64::INFINITY, f64::NEG_INFINITY) } else { (0.0, 0.0) };
        for row in 0..self.beta.len() {
            let f = self.gradient[row];
            if self.beta[row] < self.upper[row] && f < lowest {
                lowest = f;
            }
            if self.beta[row] > self.lower[row] && f > highest {
                highest = f;
            }
        }
        (lowest, highest)
    }

    pub(crate) fn is_free(&self, row: usize) -> bool {
        self.beta[row] < self.upper[row] && self.beta[row] > self.lower[row]
    }

    pub(crate) fn violators(&self, lowest: f64, highest: f64) -> Violators {
        let middle = 0.5 * (lowest + highest);
        let (mut rising, mut falling) = (Vec::new(), Vec::new());
        for row in 0..self.beta.len() {
            let f = self.gradient[row];
            if f < highest && self.beta[row] < self.upper[row] {
                rising.push(((f - middle) as f32, row as u32));
            }
            if f > lowest && self.beta[row] > self.lower[row] {
                falling.push(((middle - f) as f32, row as u32));
            }
        }
        Violators { rising, falling }
    }
}

impl Violators {
    /// Replaces the order by a random one: at a cold start every row violates alike.
    pub(crate) fn shuffle(&mut self, seed: u64) {
        let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
        for (key, _) in self.rising.iter_mut().chain(&mut self.falling) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *key = (state >> 40) as f32;
        }
    }

    /// Adds violators to `set`, alternately from both ends, until it has `size` rows. `taken` marks the rows already in it.
    pub(crate) fn fill(mut self, set: &mut Vec<u32>, taken: &mut [bool], size: usize) {
        for list in [&mut self.rising, &mut self.falling] {
            if list.len() > size {
                list.select_nth_unstable_by(size, |a, b| a.0.total_cmp(&b.0));
                list.truncate(size);
            }
            list.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        }
        let mut lists = [self.rising.iter(), self.falling.iter()];
        loop {
            let before = set.len();
            for list in &mut lists {
                if set.len() < size
                    && let Some(&(_, row)) = list.find(|(_, row)| !taken[*row as usize])
                {
                    taken[row as usize] = true;
                    set.push(row);
                }
            }
            if set.len() == before {
                return;
            }
        }
    }
}
