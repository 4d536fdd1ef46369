//! The box-constrained dual with the intercept's constraint augmented, and coordinate descent on it.
//!
//! ```text
//! min  1/2 |X'beta|^2 - y'beta + b0 s + rho/2 s^2,   s = sum beta,      lower <= beta <= upper
//! ```
//!
//! Its gradient is G_i = x_i.w + b - y_i with w = X'beta and b = b0 + rho s. A coordinate step costs one dot product and,
//! when beta_i moves, one addition of a row: O(non-zeros of the row).
//!
//! Shrinking (Hsieh et al. 2008, section 3.2): a row at a bound whose gradient points outwards by more than the largest
//! violation of the previous epoch is left out until the others have converged.

use super::super::scaled::Scaled;
use super::intercept::balance;

/// Most that rho may grow.
pub(super) const STIFFEST: f64 = 16.0;

/// SplitMix64: small, seeded, the same on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in [0, 1).
    #[cfg(test)]
    pub(super) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(super) fn shuffle(&mut self, values: &mut [u32]) {
        for last in (1..values.len()).rev() {
            let other = ((u128::from(self.next()) * (last as u128 + 1)) >> 64) as usize;
            values.swap(last, other);
        }
    }
}

/// The dual, its current point and the rows still looked at.
pub(super) struct Dual<'a> {
    pub(super) data: &'a Scaled<'a>,
    pub(super) signs: &'a [f64],
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    pub(super) beta: Vec<f64>,
    /// w = X'beta
    pub(super) weights: Vec<f64>,
    /// |x_i|^2
    pub(super) squares: Vec<f64>,
    /// s
    pub(super) sum: f64,
    /// b0
    pub(super) centre: f64,
    /// rho, 0 without intercept
    pub(super) stiffness: f64,
    least_stiffness: f64,
    /// Rows with room to move; the first `live` of them are not shrunk.
    pub(super) rows: Vec<u32>,
    pub(super) live: usize,
    /// Largest and smallest projected gradient of the previous epoch: beyond them a row at its bound is left out.
    limits: (f64, f64),
    shrinking: bool,
    random: Random,
}

impl<'a> Dual<'a> {
    pub(super) fn new(data: &'a Scaled<'a>, signs: &'a [f64], intercept: bool, shrinking: bool, seed: u64) -> Self {
        let n = data.rows();
        let squares: Vec<f64> = (0..n).map(|row| data.squared_norm(row)).collect();
        let stiffness = if intercept { typical(&squares) } else { 0.0 };
        Dual {
            data,
            signs,
            lower: vec![0.0; n],
            upper: vec![0.0; n],
            beta: vec![0.0; n],
            weights: vec![0.0; data.cols()],
            squares,
            sum: 0.0,
            centre: 0.0,
            stiffness,
            least_stiffness: stiffness,
            rows: Vec::new(),
            live: 0,
            limits: (f64::INFINITY, f64::NEG_INFINITY),
            shrinking,
            random: Random(seed),
        }
    }

    /// Starts from `beta`, brought into the boxes and balanced, and b.
    pub(super) fn start(&mut self, beta: &[f64], centre: f64) {
        for row in 0..beta.len() {
            self.beta[row] = beta[row].clamp(self.lower[row], self.upper[row]);
        }
        if self.stiffness > 0.0 {
            balance(&mut self.beta, &self.lower, &self.upper);
            self.stiffness = self.least_stiffness;
        }
        self.rows = (0..beta.len()).filter(|&row| self.upper[row] > self.lower[row]).map(|row| row as u32).collect();
        self.centre = centre;
        self.refresh();
        self.unshrink();
    }

    /// Recomputes w and s from beta, free of the rounding of many small steps.
    pub(super) fn refresh(&mut self) {
        self.weights = self.data.combine(&self.beta);
        self.sum = self.beta.iter().sum();
    }

    /// Looks at every row again.
    pub(super) fn unshrink(&mut self) {
        self.live = self.rows.len();
        self.limits = (f64::INFINITY, f64::NEG_INFINITY);
    }

    /// Doubles rho, within the range in which a coordinate step still has a fair length.
    pub(super) fn stiffen(&mut self) {
        self.stiffness = (2.0 * self.stiffness).min(STIFFEST * self.least_stiffness);
    }

    /// b
    pub(super) fn intercept(&self) -> f64 {
        if self.stiffness > 0.0 { self.centre + self.stiffness * self.sum } else { 0.0 }
    }

    #[inline]
    pub(super) fn gradient(&self, row: usize) -> f64 {
        self.data.dot(row, &self.weights) + self.intercept() - self.signs[row]
    }

    /// One pass over the live rows in random order, each minimised exactly. Returns the spread of projected gradients met.
    pub(super) fn epoch(&mut self) -> f64 {
        self.random.shuffle(&mut self.rows[..self.live]);
        let (mut highest, mut lowest) = (0.0f64, 0.0f64);
        let mut position = 0;
        while position < self.live {
            let row = self.rows[position] as usize;
            let gradient = self.gradient(row);
            if self.shrinking && self.is_idle(row, gradient) {
                self.live -= 1;
                self.rows.swap(position, self.live);
                continue;
            }
            let projected = self.projected(row, gradient);
            highest = highest.max(projected);
            lowest = lowest.min(projected);
            if projected != 0.0 {
                let curvature = self.squares[row] + self.stiffness;
                let target = (self.beta[row] - gradient / curvature).clamp(self.lower[row], self.upper[row]);
                self.set(row, target);
            }
            position += 1;
        }
        let above = if highest > 0.0 { highest } else { f64::INFINITY };
        let below = if lowest < 0.0 { lowest } else { f64::NEG_INFINITY };
        self.limits = (above, below);
        highest - lowest
    }

    fn set(&mut self, row: usize, target: f64) {
        let change = target - self.beta[row];
        if change != 0.0 {
            self.beta[row] = target;
            self.sum += change;
            self.data.add_scaled(row, change, &mut self.weights);
        }
    }

    fn is_idle(&self, row: usize, gradient: f64) -> bool {
        (self.beta[row] <= self.lower[row] && gradient > self.limits.0)
            || (self.beta[row] >= self.upper[row] && gradient < self.limits.1)
    }

    fn projected(&self, row: usize, gradient: f64) -> f64 {
        if self.beta[row] <= self.lower[row] {
            gradient.min(0.0)
        } else if self.beta[row] >= self.upper[row] {
            gradient.max(0.0)
        } else {
            gradient
        }
    }

    /// Live rows strictly between their bounds.
    pub(super) fn free_rows(&self) -> Vec<u32> {
        let free = |&row: &u32| {
            let row = row as usize;
            let inside = self.beta[row] > self.lower[row] && self.beta[row] < self.upper[row];
            inside && self.squares[row] + self.stiffness > 0.0
        };
        self.rows[..self.live].iter().copied().filter(free).collect()
    }
}

/// The median of the positive values; 1 if there are none. One row far from the others must not set the stiffness.
pub(super) fn typical(squares: &[f64]) -> f64 {
    let mut positive: Vec<f64> = squares.iter().copied().filter(|&square| square > 0.0).collect();
    if positive.is_empty() {
        return 1.0;
    }
    let middle = positive.len() / 2;
    *positive.select_nth_unstable_by(middle, f64::total_cmp).1
}
