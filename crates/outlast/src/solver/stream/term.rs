//! A term of the loss, smoothed.
//!
//! A *term* of a row has an anchor class j and a cap c. With one function f (two classes) its slack is z = 1 - y f, y = 1 or -1 by
//! the anchor; with k functions it has k - 1 slacks z_l = 1 + f_l - f_j. Its loss is c min(h(z), tau), h(z) = max(0, max_l z_l). Smoothed
//! with width delta,
//!
//! ```text
//! h_delta(z) = max_q  q'z + delta/2 sum_l q_l (1 - q_l)      over q >= 0, sum q <= 1:   q = projection of z/delta + 1/2
//! ```
//!
//! which is h wherever no two of 0, z_1, ... are within delta of the largest, and the truncated loss is h_delta(z) - h_delta(z - tau). The
//! gradient in z is q, the second derivative 1/delta times the projection onto the face that q lies on: in f a Laplacian on pairs of
//! classes, so that one weighted Gram matrix sum v (x, 1)(x, 1)' for each pair (one in all for two classes) makes up the Hessian.

use super::Spec;
use crate::data::Chunk;

/// Visits the terms of a few rows at theta that weigh something: the row, the term and its slack.
pub(super) fn each_term(spec: &Spec, rows: &Chunk, theta: &[f64], mut visit: impl FnMut(usize, &Term, f64)) {
    let (folded, d, p) = (spec.folded(theta), spec.cols, spec.order());
    let mut term = Term::new(spec);
    let mut scores = vec![0.0; spec.functions];
    for (row, &code) in rows.codes.iter().enumerate() {
        let x = &rows.x[row * d..(row + 1) * d];
        for (function, score) in scores.iter_mut().enumerate() {
            let w = &folded[function * d..(function + 1) * d];
            *score = w.iter().zip(x).map(|(w, x)| w * f64::from(*x)).sum::<f64>() + theta[function * p + d];
        }
        for &(anchor, _) in spec.terms(code).iter().filter(|(_, factor)| factor * rows.weight(row) > 0.0) {
            let slack = term.slacks(&scores, anchor);
            visit(row, &term, slack);
        }
    }
}

/// One term: its slacks, and the smoothed loss with its derivatives.
pub(super) struct Term {
    functions: usize,
    /// z, one for each class; that of the anchor is 0 and stands for itself.
    z: Vec<f64>,
    q: Vec<f64>,
    sorted: Vec<f64>,
    /// Whether sum q = 1.
    full: bool,
}

impl Term {
    pub(super) fn new(spec: &Spec) -> Term {
        let m = spec.functions;
        Term { functions: m, z: vec![0.0; m], q: vec![0.0; m], sorted: Vec::new(), full: false }
    }

    /// Takes in a term's slacks; returns the largest.
    #[inline]
    pub(super) fn slacks(&mut self, scores: &[f64], anchor: u32) -> f64 {
        if self.functions == 1 {
            self.z[0] = 1.0 - if anchor == 1 { scores[0] } else { -scores[0] };
            return self.z[0];
        }
        let anchor = anchor as usize;
        let mut largest = f64::NEG_INFINITY;
        for (class, score) in scores.iter().enumerate() {
            self.z[class] = 1.0 + score - scores[anchor];
            if class != anchor {
                largest = largest.max(self.z[class]);
            }
        }
        self.z[anchor] = f64::NEG_INFINITY;
        largest
    }

    /// The class of the largest of 0 (`None`) and the slacks.
    pub(super) fn label(&self) -> Option<usize> {
        let mut label = None;
        let mut largest = 0.0;
        for (class, &z) in self.z.iter().enumerate() {
            if z > largest {
                (largest, label) = (z, Some(class));
            }
        }
        label
    }

    /// The slack of a class.
    pub(super) fn slack(&self, class: usize) -> f64 {
        self.z[class]
    }

    /// How far the slacks are from a kink of the truncated loss: a tie of the two largest of 0 and the slacks, or h = tau.
    #[inline]
    pub(super) fn distance(&self, ceiling: f64) -> f64 {
        if let [z] = self.z[..] {
            return if z > 0.0 { z.min((z - ceiling).abs()) } else { -z };
        }
        let (mut first, mut second) = (0.0f64, f64::NEG_INFINITY);
        for &z in &self.z {
            if z > first {
                (second, first) = (first, z);
            } else {
                second = second.max(z);
            }
        }
        // beyond the ceiling it does not matter which of them is the largest, and who comes from 0 meets a tie before the ceiling
        let tie = if first > ceiling { f64::INFINITY } else { first - second };
        if first > 0.0 { tie.min((first - ceiling).abs()) } else { tie }
    }

    /// h_delta(z - lowered); q is what attains it.
    #[inline]
    pub(super) fn smooth(&mut self, lowered: f64, width: f64) -> f64 {
        if self.functions == 1 {
            let t = 0.5 + (self.z[0] - lowered) / width;
            let q = t.clamp(0.0, 1.0);
            (self.q[0], self.full) = (q, t >= 1.0);
            return width * q * (t - 0.5 * q);
        }
        let mut sum = 0.0;
        for (q, z) in self.q.iter_mut().zip(&self.z) {
            *q = (0.5 + (z - lowered) / width).max(0.0);
            sum += *q;
        }
        self.full = sum > 1.0;
        if self.full {
            self.project();
        }
        let mut value = 0.0;
        for (q, z) in self.q.iter().zip(&self.z).filter(|(q, _)| **q > 0.0) {
            value += q * (z - lowered) + 0.5 * width * q * (1.0 - q);
        }
        value
    }

    /// q'z
    #[inline]
    pub(super) fn attained(&self) -> f64 {
        self.q.iter().zip(&self.z).filter(|(q, _)| **q > 0.0).map(|(q, z)| q * z).sum()
    }

    /// Projects q, whose positive part sums up to more than 1, onto the simplex.
    fn project(&mut self) {
        self.sorted.clear();
        self.sorted.extend(self.q.iter().filter(|q| **q > 0.0));
        self.sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        let (mut sum, mut threshold) = (0.0, 0.0);
        for (count, value) in self.sorted.iter().enumerate() {
            sum += value;
            let candidate = (sum - 1.0) / (count + 1) as f64;
            if *value <= candidate {
                break;
            }
            threshold = candidate;
        }
        self.q.iter_mut().for_each(|q| *q = (*q - threshold).max(0.0));
    }

    /// The pairs of classes of the second derivative with their weights, to be divided by delta; a function alone is paired with itself.
    pub(super) fn edges(&self, anchor: u32, mut each: impl FnMut(usize, usize, f64)) {
        if self.functions == 1 {
            if self.q[0] > 0.0 && !self.full {
                each(0, 0, 1.0);
            }
            return;
        }
        if !self.full {
            let own = self.q.iter().enumerate().filter(|(_, q)| **q > 0.0);
            own.for_each(|(class, _)| each(class, anchor as usize, 1.0));
            return;
        }
        let support = self.q.iter().filter(|q| **q > 0.0).count();
        for a in 0..self.functions {
            for b in a + 1..self.functions {
                if self.q[a] > 0.0 && self.q[b] > 0.0 {
                    each(a, b, 1.0 / support as f64);
                }
            }
        }
    }

    /// Adds cap times the derivative in the scores to a row's factors.
    pub(super) fn slope(&self, anchor: u32, cap: f64, (row, rows): (usize, usize), factors: &mut [f64]) {
        if self.functions == 1 {
            factors[row] += if anchor == 1 { -cap * self.q[0] } else { cap * self.q[0] };
            return;
        }
        for (class, q) in self.q.iter().enumerate().filter(|(_, q)| **q > 0.0) {
            factors[class * rows + row] += cap * q;
            factors[anchor as usize * rows + row] -= cap * q;
        }
    }
}

/// The number of a pair of classes; a function alone has number 0.
pub(super) fn pair(a: usize, b: usize, classes: usize) -> usize {
    if classes == 1 {
        return 0;
    }
    let (a, b) = (a.min(b), a.max(b));
    a * (2 * classes - a - 1) / 2 + b - a - 1
}
