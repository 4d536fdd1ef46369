//! The L_q problem and its judge.
//!
//! ```text
//! P = sum_cj |w_cj|^q + sum_i sum_j c_ij [1 - s_ij f_j(x_i)]_+,      f_j = w_j'x + b_j,      0 < q <= 2
//! ```
//!
//! Two classes have one function, s_i = y_i and c_i = (C x weight) x cost[y_i, other]. In the joint form there is a function for
//! each class, sum_j w_cj = 0 for each column c and sum_j b_j = 0, and row i pays c_ij = (C x weight) x cost[y_i, j] for [f_j + 1]_+,
//! j != y_i: s = -1 (Lee, Lin and Wahba 2004). (Liu, Zhang, Park and Ahn, "Support vector machines with adaptive L_q penalty",
//! with lambda = 1/(n C).) Intercepts are not penalised.
//!
//! For q > 1 the problem is convex. With V_ij = s_ij alpha_ij, 0 <= alpha_ij <= c_ij, and u = X'V,
//!
//! ```text
//! D(alpha) = sum alpha - sum_c g_c(u_c1 .. u_cm),     column sums of V equal over functions (0 for one) if b is free
//! g_c(u) = min over mu of sum_j g(u_j - mu)  (mu = 0 for one function),    g(u) = (q - 1) (|u| / q)^(q / (q - 1))
//! ```
//!
//! g being the conjugate of |w|^q, and w_j = g'(u_j - mu) the best coefficients. For q <= 1 the judge takes the weighted l1 problem
//! that touches at w, with the rates q |w|^(q-1), infinite at 0: its dual has |u_j - mu| <= rate_j instead of g.

use super::Certificate;
use crate::data::Design;
use crate::linalg::dot;
use rayon::prelude::*;

/// An L_q problem: data, costs and exponent.
#[derive(Clone, Copy)]
pub struct LqProblem<'a> {
    /// The rows.
    pub x: &'a dyn Design,
    /// Class of each row, 0..classes.
    pub codes: &'a [u32],
    /// Number of classes.
    pub classes: usize,
    /// 1 for two classes with a single function, else `classes`: the joint form.
    pub functions: usize,
    /// C times the weight of each row, >= 0; with costs below 1e200.
    pub caps: &'a [f64],
    /// How often each row counts where rows are counted, as the start of the paper's algorithm does; once, if not given.
    pub counts: Option<&'a [f64]>,
    /// Factors on the terms, classes x classes, row = true class; without them all 1.
    pub cost: Option<&'a [f64]>,
    /// The exponent, 0 < q <= 2.
    pub q: f64,
    /// Whether unpenalised b_j are added.
    pub intercept: bool,
}

impl<'a> LqProblem<'a> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.codes.len()
    }

    /// s_ij
    pub fn sign(&self, row: usize) -> f64 {
        if self.functions == 1 && self.codes[row] == 1 { 1.0 } else { -1.0 }
    }

    /// c_ij; 0 for the row's own class in the joint form.
    pub fn cap(&self, row: usize, function: usize) -> f64 {
        let own = self.codes[row] as usize;
        let other = if self.functions == 1 { 1 - own.min(1) } else { function };
        if other == own {
            return 0.0;
        }
        let factor = self.cost.map_or(1.0, |cost| cost[own * self.classes + other]);
        self.caps[row] * factor
    }

    /// The largest c_ij.
    pub fn largest_cap(&self) -> f64 {
        let rows = 0..self.rows();
        rows.flat_map(|row| (0..self.functions).map(move |j| self.cap(row, j))).fold(0.0, f64::max)
    }

    /// The same problem on other columns.
    pub fn on<'b>(&self, x: &'b dyn Design) -> LqProblem<'b>
    where
        'a: 'b,
    {
        LqProblem { x, ..*self }
    }

    /// f + b of every row, rows x functions.
    pub fn decision(&self, weights: &[f64], intercepts: &[f64]) -> Vec<f64> {
        let (m, d) = (self.functions, self.x.cols().max(1));
        let mut f = vec![0.0; self.rows() * m];
        f.par_chunks_exact_mut(m).enumerate().with_min_len(64).for_each(|(row, f)| {
            for ((f, w), b) in f.iter_mut().zip(weights.chunks_exact(d)).zip(intercepts) {
                *f = self.x.dot(row, w) + b;
            }
        });
        f
    }

    /// The loss of decisions, rows x functions.
    pub fn loss(&self, decision: &[f64]) -> f64 {
        let m = self.functions;
        let of_row = |row: usize| -> f64 {
            let terms = (0..m).map(|function| (self.cap(row, function), decision[row * m + function]));
            terms.filter(|(cap, _)| *cap > 0.0).map(|(cap, f)| cap * (1.0 - self.sign(row) * f).max(0.0)).sum()
        };
        (0..self.rows()).map(of_row).sum()
    }

    /// sum |w|^q
    pub fn penalty(&self, weights: &[f64]) -> f64 {
        weights.iter().map(|w| power(w.abs(), self.q)).sum()
    }

    /// P
    pub fn objective(&self, weights: &[f64], intercepts: &[f64]) -> f64 {
        self.penalty(weights) + self.loss(&self.decision(weights, intercepts))
    }

    /// q |w|^(q-1), infinite at 0 if q < 1: the slope of the penalty, and the rates of the l1 problem that touches for q <= 1.
    pub fn rates(&self, weights: &[f64]) -> Vec<f64> {
        touching(weights, self.q)
    }

    /// Primal and dual of the convex problem that belongs to a candidate: the problem itself for q >= 1, else the weighted l1
    /// problem that touches at w. `expansion` is V, rows x functions.
    pub fn certify(&self, weights: &[f64], intercepts: &[f64], expansion: &[f64]) -> Certificate {
        let (n, m, d) = (self.rows(), self.functions, self.x.cols());
        let decision = self.decision(weights, intercepts);
        let penalty = self.penalty(weights) * if self.q < 1.0 { self.q } else { 1.0 };
        let primal = penalty + self.loss(&decision);
        let mut dual = 0.0;
        let mut imbalance = 0.0f64;
        for (row, v) in expansion.chunks_exact(m).enumerate() {
            for (function, &v) in v.iter().enumerate() {
                let (cap, alpha) = (self.cap(row, function), self.sign(row) * v);
                imbalance = imbalance.max(-alpha).max(alpha - cap);
                dual += alpha;
            }
        }
        if self.intercept {
            let sums: Vec<f64> = (0..m).map(|j| (0..n).map(|row| expansion[row * m + j]).sum()).collect();
            let spread =
                sums.iter().fold(0.0f64, |most, sum| most.max(if m == 1 { sum.abs() } else { (sum - sums[0]).abs() }));
            imbalance = imbalance.max(spread);
        }
        let pulled = self.pull(expansion);
        let rates = if self.q <= 1.0 { self.rates(weights) } else { Vec::new() };
        let (mut u, mut bounds) = (vec![0.0; m], vec![0.0; m]);
        for column in 0..d {
            for function in 0..m {
                u[function] = pulled[function * d + column];
                bounds[function] = rates.get(function * d + column).copied().unwrap_or(0.0);
            }
            if self.q > 1.0 {
                dual -= conjugate(&u, self.q).value;
            } else {
                imbalance = imbalance.max(excess(&u, &bounds));
            }
        }
        let violation = primal - dual;
        Certificate { primal, dual, imbalance, violation }
    }

    /// X'V, functions x columns, of V, rows x functions.
    pub fn pull(&self, expansion: &[f64]) -> Vec<f64> {
        let (m, d) = (self.functions, self.x.cols());
        let mut out = vec![0.0; m * d];
        for (row, v) in expansion.chunks_exact(m).enumerate() {
            for (function, &v) in v.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                self.x.add_scaled(row, v, &mut out[function * d..(function + 1) * d]);
            }
        }
        out
    }
}

/// q |w|^(q-1): the rates of the l1 problem that touches sum |w|^q at w, for q <= 1.
pub fn touching(weights: &[f64], q: f64) -> Vec<f64> {
    let of = |w: &f64| if q == 1.0 { 1.0 } else { q * power(w.abs(), q - 1.0) };
    weights.iter().map(of).collect()
}

/// Sets columns of w (functions x columns) to 0 that cost more than they can save: sum_j |w_cj|^q >= sum_j G_cj |w_cj|, where G bounds the
/// slope of the loss in each coefficient. The objective does not rise. Whether there were any.
pub fn clear(weights: &mut [f64], steepest: &[f64], q: f64, functions: usize) -> bool {
    let d = weights.len() / functions.max(1);
    let mut cleared = false;
    for column in 0..d {
        let entries = || (0..functions).map(|j| (weights[j * d + column].abs(), steepest[j * d + column]));
        let cost: f64 = entries().map(|(w, _)| power(w, q)).sum();
        let saved: f64 = entries().map(|(w, g)| w * g).sum();
        if cost > 0.0 && cost >= saved {
            (0..functions).for_each(|j| weights[j * d + column] = 0.0);
            cleared = true;
        }
    }
    cleared
}

/// x^p with the common cases done exactly; 0^p is infinite for p < 0.
pub fn power(x: f64, p: f64) -> f64 {
    match p {
        2.0 => x * x,
        1.0 => x,
        0.5 => x.sqrt(),
        p if x == 0.0 => {
            if p < 0.0 {
                f64::INFINITY
            } else {
                0.0
            }
        }
        p => x.powf(p),
    }
}

/// The conjugate of a column's penalty.
#[derive(Debug, Clone)]
pub struct Conjugate {
    /// g_c(u)
    pub value: f64,
    /// Its gradient, the best coefficients; they sum to 0 if there are several.
    pub weights: Vec<f64>,
    /// g'' of each entry: the second derivatives are diag(bends), less bends bends' / sum if there are several.
    pub bends: Vec<f64>,
}

/// g_c of a column, for q > 1.
pub fn conjugate(u: &[f64], q: f64) -> Conjugate {
    let p = q / (q - 1.0);
    let slope = |u: f64| u.signum() * power(u.abs() / q, p - 1.0);
    let bend = |u: f64| if q == 2.0 { 0.5 } else { (p - 1.0) / q * power(u.abs() / q, p - 2.0) };
    let mu = if u.len() == 1 { 0.0 } else { middle(u, p - 1.0) };
    let value = u.iter().map(|u| (q - 1.0) * power((u - mu).abs() / q, p)).sum();
    let mut weights: Vec<f64> = u.iter().map(|u| slope(u - mu)).collect();
    if u.len() > 1 {
        // what rounding of mu left
        let sum: f64 = weights.iter().sum();
        if let Some(largest) = weights.iter_mut().max_by(|a, b| a.abs().total_cmp(&b.abs())) {
            *largest -= sum;
        }
    }
    let bends = u.iter().map(|u| bend(u - mu)).collect();
    Conjugate { value, weights, bends }
}

/// ln g_c(u), also where powers as large as those of q next to 1 leave the range of numbers.
pub fn log_conjugate(u: &[f64], q: f64) -> f64 {
    let p = q / (q - 1.0);
    let mu = if u.len() == 1 { 0.0 } else { middle(u, p - 1.0) };
    let largest = u.iter().fold(0.0f64, |largest, u| largest.max((u - mu).abs()));
    if largest == 0.0 {
        return f64::NEG_INFINITY;
    }
    let sum: f64 = u.iter().map(|u| power((u - mu).abs() / largest, p)).sum();
    (q - 1.0).ln() + p * (largest / q).ln() + sum.ln()
}

/// mu with sum_j sign(u_j - mu) |u_j - mu|^r = 0, between the smallest and the largest u: where the r-norms of what lies above and of what
/// lies below are equal. The larger r, the straighter these are, and for the largest mu is the middle of both ends.
fn middle(u: &[f64], r: f64) -> f64 {
    let (mut low, mut high) = u.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), u| (a.min(*u), b.max(*u)));
    let mut mu = 0.5 * (low + high);
    for _ in 0..100 {
        if !(high - low > 1e-16 * (high.abs() + low.abs())) {
            break;
        }
        let (above, fall) = norm(u.iter().map(|u| u - mu), r);
        let (below, rise) = norm(u.iter().map(|u| mu - u), r);
        let short = above - below;
        if short == 0.0 {
            break;
        }
        if short > 0.0 {
            low = mu
        } else {
            high = mu
        }
        let next = mu + short / (fall + rise);
        let next = if next > low && next < high { next } else { 0.5 * (low + high) };
        if next == mu {
            break;
        }
        mu = next;
    }
    mu
}

/// The r-norm of the positive ones of some numbers, and by how much it grows with all of them.
fn norm(values: impl Iterator<Item = f64> + Clone, r: f64) -> (f64, f64) {
    let positive = values.filter(|value| *value > 0.0);
    let largest = positive.clone().fold(0.0f64, f64::max);
    if largest == 0.0 {
        return (0.0, 0.0);
    }
    let sum: f64 = positive.clone().map(|value| power(value / largest, r)).sum();
    let slopes: f64 = positive.map(|value| power(value / largest, r - 1.0)).sum();
    (largest * sum.powf(1.0 / r), slopes * sum.powf(1.0 / r - 1.0))
}

/// Largest amount by which |u_j - mu| <= rate_j fails for the best mu (0 for one function).
fn excess(u: &[f64], rates: &[f64]) -> f64 {
    if let ([u], [rate]) = (u, rates) {
        return (u.abs() - rate).max(0.0);
    }
    let entries = || u.iter().zip(rates);
    let low = entries().map(|(u, rate)| u - rate).fold(f64::NEG_INFINITY, f64::max);
    let high = entries().map(|(u, rate)| u + rate).fold(f64::INFINITY, f64::min);
    (0.5 * (low - high)).max(0.0)
}

/// sum |w|^q, for callers without a problem.
pub fn size(weights: &[f64], q: f64) -> f64 {
    if q == 2.0 { dot(weights, weights) } else { weights.iter().map(|w| power(w.abs(), q)).sum() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For q next to 1 the conjugate is a high power of half the range: mu is next to the middle, and powers leave the range of numbers.
    #[test]
    fn the_conjugate_next_to_one() {
        for q in [1.01, 1.001, 1.000_001] {
            let p = q / (q - 1.0);
            for u in [vec![1.5, -1.5], vec![2.0, 2.0, -1.0], vec![1.0, 1.0, 0.3, -3.0]] {
                let half =
                    0.5 * (u.iter().fold(f64::MIN, |a, b| a.max(*b)) - u.iter().fold(f64::MAX, |a, b| a.min(*b)));
                let found = log_conjugate(&u, q) / p;
                assert!((found - half.ln()).abs() < 4.0 * (1.0 - (q - 1.0).ln()) / p, "q {q} {u:?}: {found} {half}");
                let (r, mu) = (p - 1.0, middle(&u, p - 1.0));
                let (above, below) = (norm(u.iter().map(|u| u - mu), r).0, norm(u.iter().map(|u| mu - u), r).0);
                assert!((above - below).abs() < 1e-14 * half, "q {q} {u:?}: {above} {below}");
            }
        }
        let u = [0.4, -0.1, 0.9];
        assert!((log_conjugate(&u, 1.5) - conjugate(&u, 1.5).value.ln()).abs() < 1e-13);
    }

    #[test]
    fn the_conjugate_is_the_best_gain() {
        for q in [1.05, 1.3, 1.5, 2.0] {
            for u in [vec![1.7], vec![0.3, -1.1], vec![2.0, 0.5, 0.4], vec![0.0, 0.0, 1.0, -3.0]] {
                let found = conjugate(&u, q);
                let gain = |w: &[f64]| dot(&u, w) - size(w, q);
                assert!((gain(&found.weights) - found.value).abs() < 1e-9 * (1.0 + found.value), "{q} {u:?} {found:?}");
                for (one, other) in [(0, u.len() - 1), (u.len() / 2, 0)] {
                    let mut near = found.weights.clone();
                    near[one] += 1e-3;
                    if u.len() > 1 {
                        near[other] -= 1e-3;
                    }
                    assert!(gain(&near) <= found.value + 1e-12);
                }
            }
        }
    }
}
