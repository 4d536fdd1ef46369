//! The coefficients inside their barrier.
//!
//! An entry u = p - m has p, m >= 0, and with G = x_c'V and the multiplier t of its column's sum (several functions only) the dual
//! numbers z_p = rate - (G - t) and z_m = rate + (G - t). With g = dG - dt and the errors of these equations
//!
//! ```text
//! du = D g + h,   D = p / z_p + m / z_m,   h = (T_p - p e_p) / z_p - (T_m - m e_m) / z_m
//! ```
//!
//! and dt such that the sum over the functions becomes 0.

use super::couples::Couples;

#[derive(Debug, Clone)]
pub(super) struct Entries {
    /// Slots of the working set, all of whose rates are positive and finite.
    pub(super) slots: Vec<usize>,
    functions: usize,
    rates: Vec<f64>,
    pub(super) plus: Couples,
    pub(super) minus: Couples,
    errors: Vec<(f64, f64)>,
    /// t of each slot.
    shifts: Vec<f64>,
    steps: Vec<f64>,
}

impl Entries {
    pub(super) fn new(functions: usize) -> Self {
        Entries {
            slots: Vec::new(),
            functions,
            rates: Vec::new(),
            plus: Couples::default(),
            minus: Couples::default(),
            errors: Vec::new(),
            shifts: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Takes a column with u = 0 in, z from its G, and every product next to `center`.
    pub(super) fn push(&mut self, slot: usize, rates: &[f64], pulled: &[f64], center: f64) {
        let shift = if self.functions == 1 { 0.0 } else { middle(rates, pulled) };
        for (rate, g) in rates.iter().zip(pulled) {
            // at least a tenth of the rate: an error then, which steps mend
            let (plus, minus) = ((rate - (g - shift)).max(0.1 * rate), (rate + (g - shift)).max(0.1 * rate));
            let size = center / (plus * minus).sqrt();
            self.plus.push(size, plus);
            self.minus.push(size, minus);
            self.rates.push(*rate);
            self.errors.push((0.0, 0.0));
        }
        self.slots.push(slot);
        self.shifts.push(shift);
        self.steps.push(0.0);
    }

    /// Keeps the columns of some slots.
    pub(super) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let keep: Vec<bool> = self.slots.iter().map(|&slot| keep(slot)).collect();
        let m = self.functions;
        self.plus.retain(|entry| keep[entry / m]);
        self.minus.retain(|entry| keep[entry / m]);
        let mut entries = (0..).map(|entry: usize| keep[entry / m]);
        self.rates.retain(|_| entries.next().unwrap_or(true));
        let mut columns = keep.iter();
        self.shifts.retain(|_| *columns.next().unwrap_or(&true));
        let mut columns = keep.iter();
        self.slots.retain(|_| *columns.next().unwrap_or(&true));
        self.steps.truncate(self.slots.len());
        self.errors.truncate(self.rates.len());
    }

    /// u
    pub(super) fn at(&self, entry: usize) -> f64 {
        self.plus.x[entry] - self.minus.x[entry]
    }

    /// Whether the size of u, relative to the largest, exceeds that of the slack of its bound, relative to the rate.
    pub(super) fn is_used(&self, entry: usize, largest: f64) -> bool {
        self.at(entry).abs() > self.slack(entry) * largest
    }

    /// What an entry's bound leaves, relative to the rate.
    pub(super) fn slack(&self, entry: usize) -> f64 {
        self.plus.z[entry].min(self.minus.z[entry]) / self.rates[entry]
    }

    pub(super) fn largest(&self) -> f64 {
        (0..self.rates.len()).fold(0.0, |largest, entry| self.at(entry).abs().max(largest))
    }

    /// Notes how far G, slot-major over the working set, is from what z says.
    pub(super) fn look(&mut self, pulled: &[f64]) {
        let m = self.functions;
        for (entry, (error, rate)) in self.errors.iter_mut().zip(&self.rates).enumerate() {
            let g = pulled[self.slots[entry / m] * m + entry % m] - self.shifts[entry / m];
            *error = (rate - g - self.plus.z[entry], rate + g - self.minus.z[entry]);
        }
    }

    /// D
    pub(super) fn spread(&self, entry: usize) -> f64 {
        self.plus.x[entry] / self.plus.z[entry] + self.minus.x[entry] / self.minus.z[entry]
    }

    /// The direction at a change of G, slot-major over the working set, of the first `given` functions; 0 for the others.
    pub(super) fn follow(&mut self, pulled: &[f64], given: usize) {
        let m = self.functions;
        for place in 0..self.slots.len() {
            let slot = self.slots[place];
            let change = |function: usize| if function < given { pulled[slot * given + function] } else { 0.0 };
            if m > 1 {
                let (mut sum, mut total) = (0.0, 0.0);
                for function in 0..m {
                    let entry = place * m + function;
                    let spread = self.spread(entry);
                    sum += spread * change(function) + self.drift(entry) + self.at(entry);
                    total += spread;
                }
                self.steps[place] = sum / total;
            }
            for function in 0..m {
                let entry = place * m + function;
                let g = change(function) - self.steps[place];
                self.plus.answer(entry, self.errors[entry].0 - g);
                self.minus.answer(entry, self.errors[entry].1 + g);
            }
        }
    }

    /// h
    fn drift(&self, entry: usize) -> f64 {
        let of = |couples: &Couples, error: f64| (couples.target[entry] - couples.x[entry] * error) / couples.z[entry];
        of(&self.plus, self.errors[entry].0) - of(&self.minus, self.errors[entry].1)
    }

    /// du
    pub(super) fn step(&self, entry: usize) -> f64 {
        self.plus.dx[entry] - self.minus.dx[entry]
    }

    pub(super) fn advance(&mut self, primal: f64, dual: f64) {
        self.plus.advance(primal, dual);
        self.minus.advance(primal, dual);
        self.shifts.iter_mut().zip(&self.steps).for_each(|(shift, step)| *shift += dual * step);
    }
}

/// The middle of the t with |G_j - t| <= rate_j for all j.
fn middle(rates: &[f64], pulled: &[f64]) -> f64 {
    let low = rates.iter().zip(pulled).map(|(rate, g)| g - rate).fold(f64::NEG_INFINITY, f64::max);
    let high = rates.iter().zip(pulled).map(|(rate, g)| g + rate).fold(f64::INFINITY, f64::min);
    0.5 * (low + high)
}
