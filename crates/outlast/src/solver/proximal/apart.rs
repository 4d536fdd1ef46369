//! Rows whose functions pay apart from each other: loss = sum_ij c_ij [1 - s_ij f_ij]_+, s = -1 or +1.
//!
//! One function with s = y is the two-class hinge; several with s = -1 are the hinge of Lee, Lin and Wahba. V = s alpha with alpha in
//! [0, c] and the dual value alpha; smoothed, alpha = clip(alpha0 + sigma (1 - s f), 0, c), with curvature sigma where it is not
//! clipped. Blocks are diagonal.

use super::rows::{Blocks, Local, Piece, Rows, Term};

/// Vectors are function-major.
pub(super) struct Apart {
    pub(super) functions: usize,
    pub(super) signs: Vec<f64>,
    /// c_ij, 0 for terms that do not count.
    pub(super) caps: Vec<f64>,
}

impl Apart {
    fn rows(&self) -> usize {
        self.caps.len() / self.functions
    }

    /// Terms that count.
    fn counted(&self) -> impl Iterator<Item = (usize, f64, f64)> {
        let terms = self.caps.iter().zip(&self.signs).enumerate();
        terms.filter(|(_, (cap, _))| **cap > 0.0).map(|(at, (&cap, &sign))| (at, cap, sign))
    }
}

/// alpha unclipped, alpha, and max over alpha of alpha z - (alpha - alpha0)^2 / (2 sigma), z = 1 - s f.
#[inline]
fn smooth(cap: f64, z: f64, before: f64, sigma: f64) -> (f64, f64, f64) {
    let raw = before + sigma * z;
    let alpha = raw.clamp(0.0, cap);
    let moved = alpha - before;
    (raw, alpha, alpha * z - moved * moved / (2.0 * sigma))
}

impl Rows for Apart {
    fn functions(&self) -> usize {
        self.functions
    }

    fn is_smooth(&self) -> bool {
        false
    }

    fn largest_cap(&self) -> f64 {
        self.caps.iter().fold(0.0, |largest, &cap| cap.max(largest))
    }

    fn look(&self, decision: &[f64], multipliers: &[f64], sigma: f64) -> Local {
        let n = self.rows();
        let mut blocks = Blocks::new(self.functions);
        let mut v = vec![0.0; decision.len()];
        let (mut value, mut loss) = (0.0, 0.0);
        for (at, cap, sign) in self.counted() {
            let z = 1.0 - sign * decision[at];
            let (raw, alpha, smoothed) = smooth(cap, z, sign * multipliers[at], sigma);
            v[at] = sign * alpha;
            value += smoothed;
            loss += cap * z.max(0.0);
            if raw > 0.0 && raw < cap {
                blocks.push(at % n, at / n, at / n, 1.0);
            }
        }
        Local { value, loss, v, blocks, scale: sigma }
    }

    fn value(&self, decision: &[f64], multipliers: &[f64], sigma: f64) -> f64 {
        let of = |(at, cap, sign): (usize, f64, f64)| {
            smooth(cap, 1.0 - sign * decision[at], sign * multipliers[at], sigma).2
        };
        self.counted().map(of).sum()
    }

    fn admit(&self, multipliers: &mut [f64]) {
        for (v, (sign, cap)) in multipliers.iter_mut().zip(self.signs.iter().zip(&self.caps)) {
            *v = sign * (sign * *v).clamp(0.0, *cap);
        }
    }

    fn room(&self, v: &[f64]) -> Blocks {
        let n = self.rows();
        let mut blocks = Blocks::new(self.functions);
        for (at, cap, _) in self.counted() {
            let alpha = v[at].abs();
            let room = alpha * ((cap - alpha) / cap);
            if room > 0.0 {
                blocks.push(at % n, at / n, at / n, room);
            }
        }
        blocks
    }

    fn is_feasible(&self, v: &[f64]) -> bool {
        let terms = v.iter().zip(self.signs.iter().zip(&self.caps));
        terms.into_iter().all(|(v, (sign, cap))| (0.0..=*cap).contains(&(sign * v)))
    }

    fn dual(&self, v: &[f64]) -> f64 {
        self.counted().map(|(at, _, sign)| sign * v[at]).sum()
    }

    fn terms(&self) -> Option<Vec<Term>> {
        let n = self.rows();
        let piece = |function: usize, sign: f64| match sign > 0.0 {
            true => Piece { plus: Some(function), minus: None },
            false => Piece { plus: None, minus: Some(function) },
        };
        let term = |(at, cap, sign): (usize, f64, f64)| Term { row: at % n, cap, pieces: vec![piece(at / n, sign)] };
        Some(self.counted().map(term).collect())
    }

    fn best_constant(&self) -> Option<Vec<f64>> {
        if self.functions > 1 {
            return None;
        }
        // on [-1, 1] the loss of b is linear: sum c (1 - s b)
        let lean: f64 = self.caps.iter().zip(&self.signs).map(|(cap, sign)| cap * sign).sum();
        Some(vec![if lean == 0.0 { 0.0 } else { lean.signum() }])
    }
}
