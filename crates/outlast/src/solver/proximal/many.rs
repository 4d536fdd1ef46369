//! The rows of a problem with k classes, each with the term of its own class y.
//!
//! Hinge: c [max_j (f_j + 1(j != y)) - f_y] is the maximum of q't - c f_y over q in c x simplex, t_j = f_j + 1(j != y); so
//! V = c e_y - q with the dual value V_y. Smoothed, q is the projection of q0 + sigma t, and the curvature is
//! sigma (I - 11'/|S|) on the classes S with q > 0.
//!
//! Smooth losses: c l(-max t) with t_j = f_j - f_y, j != y, has a kink where rivals tie. It is the maximum of
//! q't - c l*(-r / c) over q >= 0, r = sum q; V_y = r, V_j = -q_j. Smoothed, q_j = [q0_j + sigma (t_j + u)]_+ where u, the margin,
//! solves sum_j q_j = -c l'(u). The curvature in t is sigma (I - kappa 11') on S, kappa = sigma / (sigma |S| + c l''(u)).

use super::rows::{Blocks, Local, Piece, Rows, Term};
use crate::problem::BaseLoss;

/// How far q may be below 0, relative to c: rounding.
const SLACK: f64 = 1e-12;
const NEWTON_STEPS: usize = 60;

pub(super) struct Many<'a> {
    pub(super) base: &'static dyn BaseLoss,
    pub(super) codes: &'a [u32],
    pub(super) classes: usize,
    /// c_i, 0 for rows that do not count.
    pub(super) caps: Vec<f64>,
}

/// One row worked on.
struct Row {
    t: Vec<f64>,
    start: Vec<f64>,
    q: Vec<f64>,
    /// Smoothed loss.
    value: f64,
    /// 1 - kappa |S| and kappa; 0 and 1/|S| for the hinge.
    rest: f64,
    kappa: f64,
}

impl Many<'_> {
    fn rows(&self) -> usize {
        self.codes.len()
    }

    fn scratch(&self) -> Row {
        let k = self.classes;
        Row { t: vec![0.0; k], start: vec![0.0; k], q: vec![0.0; k], value: 0.0, rest: 0.0, kappa: 0.0 }
    }

    /// Smoothed loss and q of a row that counts.
    fn smooth_row(&self, row: usize, decision: &[f64], multipliers: &[f64], sigma: f64, out: &mut Row) {
        let (n, k) = (self.rows(), self.classes);
        let (y, cap) = (self.codes[row] as usize, self.caps[row]);
        let own = decision[y * n + row];
        for class in 0..k {
            out.start[class] = -multipliers[class * n + row];
            out.t[class] = decision[class * n + row] - own + 1.0;
        }
        if self.base.is_smooth() {
            out.t.iter_mut().for_each(|t| *t -= 1.0);
            self.smooth_kinks(y, cap, sigma, out);
        } else {
            out.start[y] += cap;
            out.t[y] = 0.0;
            project(cap, sigma, out);
        }
        let pairs = out.q.iter().zip(&out.start).zip(&out.t).enumerate();
        let counted = pairs.filter(|(class, _)| *class != y || !self.base.is_smooth());
        out.value += counted.map(|(_, ((q, start), t))| q * t - (q - start) * (q - start) / (2.0 * sigma)).sum::<f64>();
    }

    /// q of a smooth loss; leaves c l(u) + r u as the value.
    fn smooth_kinks(&self, y: usize, cap: f64, sigma: f64, out: &mut Row) {
        let rivals = || (0..self.classes).filter(|&class| class != y);
        let touch = rivals().map(|class| out.t[class] + out.start[class] / sigma).fold(f64::NEG_INFINITY, f64::max);
        let mut low = -touch;
        let mut high = low - cap * self.base.slope(low) / sigma;
        let mut u = low;
        if !high.is_finite() {
            out.value = f64::INFINITY;
            out.q.fill(0.0);
            return;
        }
        for _ in 0..NEWTON_STEPS {
            let active = || rivals().map(|class| out.start[class] + sigma * (out.t[class] + u)).filter(|q| *q > 0.0);
            let excess = active().sum::<f64>() + cap * self.base.slope(u);
            if excess > 0.0 {
                high = u
            } else {
                low = u
            }
            let slope = sigma * active().count() as f64 + cap * self.base.curvature(u);
            let next = u - excess / slope;
            let next = if next > low && next < high { next } else { 0.5 * (low + high) };
            let moved = (next - u).abs();
            u = next;
            if excess == 0.0 || moved <= 1e-16 * u.abs() {
                break;
            }
        }
        for class in rivals() {
            out.q[class] = (out.start[class] + sigma * (out.t[class] + u)).max(0.0);
        }
        out.q[y] = 0.0;
        let active = out.q.iter().filter(|q| **q > 0.0).count() as f64;
        let bend = cap * self.base.curvature(u);
        out.kappa = sigma / (sigma * active + bend);
        out.rest = bend / (sigma * active + bend);
        let r: f64 = out.q.iter().sum();
        out.value = cap * self.base.value(u) + r * u;
    }

    /// c l of the margin itself.
    fn plain_loss(&self, row: usize, decision: &[f64]) -> f64 {
        let (n, y) = (self.rows(), self.codes[row] as usize);
        let rivals = (0..self.classes).filter(|&class| class != y).map(|class| decision[class * n + row]);
        self.caps[row] * self.base.value(decision[y * n + row] - rivals.fold(f64::NEG_INFINITY, f64::max))
    }

    /// The curvature of a row, over sigma.
    fn bend(&self, row: usize, out: &Row, blocks: &mut Blocks) {
        let y = self.codes[row] as usize;
        let smooth = self.base.is_smooth();
        let active: Vec<usize> = (0..self.classes).filter(|&class| out.q[class] > 0.0).collect();
        let count = active.len() as f64;
        if active.is_empty() || !smooth && active.len() == 1 {
            return;
        }
        for (position, &one) in active.iter().enumerate() {
            blocks.push(row, one, one, 1.0 - out.kappa);
            for &other in &active[..position] {
                blocks.push(row, one, other, -out.kappa);
            }
            if smooth {
                blocks.push(row, one, y, -out.rest);
            }
        }
        if smooth {
            blocks.push(row, y, y, count * out.rest);
        }
    }
}

/// q = the projection of start + sigma t on c x simplex.
fn project(cap: f64, sigma: f64, out: &mut Row) {
    let (start, t) = (&out.start, &out.t);
    out.q.iter_mut().zip(start.iter().zip(t)).for_each(|(q, (start, t))| *q = start + sigma * t);
    let mut active = out.q.len();
    let mut level = (out.q.iter().sum::<f64>() - cap) / active as f64;
    loop {
        let above = out.q.iter().filter(|q| **q > level);
        let (count, sum) = above.fold((0usize, 0.0), |(count, sum), q| (count + 1, sum + q));
        // the level only rises and the count falls, but for rounding
        if count >= active || count == 0 {
            break;
        }
        active = count;
        level = (sum - cap) / count as f64;
    }
    out.q.iter_mut().for_each(|q| *q = (*q - level).max(0.0));
    out.value = 0.0;
    out.rest = 0.0;
    out.kappa = 1.0 / out.q.iter().filter(|q| **q > 0.0).count().max(1) as f64;
}

impl Rows for Many<'_> {
    fn functions(&self) -> usize {
        self.classes
    }

    fn is_smooth(&self) -> bool {
        false
    }

    fn largest_cap(&self) -> f64 {
        self.caps.iter().fold(0.0, |largest, &cap| cap.max(largest))
    }

    fn look(&self, decision: &[f64], multipliers: &[f64], sigma: f64) -> Local {
        let (n, k) = (self.rows(), self.classes);
        let mut blocks = Blocks::new(k);
        let mut v = vec![0.0; decision.len()];
        let (mut value, mut loss) = (0.0, 0.0);
        let mut out = self.scratch();
        for (row, &cap) in self.caps.iter().enumerate().filter(|(_, cap)| **cap > 0.0) {
            self.smooth_row(row, decision, multipliers, sigma, &mut out);
            value += out.value;
            loss += self.plain_loss(row, decision);
            let y = self.codes[row] as usize;
            let mut others = 0.0;
            for class in (0..k).filter(|&class| class != y) {
                v[class * n + row] = -out.q[class];
                others += out.q[class];
            }
            v[y * n + row] = if self.base.is_smooth() { others } else { others.min(cap) };
            self.bend(row, &out, &mut blocks);
        }
        Local { value, loss, v, blocks, scale: sigma }
    }

    fn value(&self, decision: &[f64], multipliers: &[f64], sigma: f64) -> f64 {
        let mut out = self.scratch();
        let mut sum = 0.0;
        for row in (0..self.rows()).filter(|&row| self.caps[row] > 0.0) {
            self.smooth_row(row, decision, multipliers, sigma, &mut out);
            sum += out.value;
        }
        sum
    }

    fn admit(&self, multipliers: &mut [f64]) {
        let (n, k) = (self.rows(), self.classes);
        for (row, &cap) in self.caps.iter().enumerate() {
            let y = self.codes[row] as usize;
            let mut sum = 0.0;
            for class in (0..k).filter(|&class| class != y) {
                let v = &mut multipliers[class * n + row];
                *v = v.min(0.0);
                sum -= *v;
            }
            // the exponential loss has no upper end
            let closed = self.base.conjugate(2.0).is_infinite();
            let factor = if cap == 0.0 {
                0.0
            } else if closed && sum > cap {
                cap / sum
            } else {
                1.0
            };
            for class in (0..k).filter(|&class| class != y) {
                multipliers[class * n + row] *= factor;
            }
            multipliers[y * n + row] = if factor == 1.0 { sum } else { (sum * factor).min(cap) };
        }
    }

    fn room(&self, v: &[f64]) -> Blocks {
        let (n, k) = (self.rows(), self.classes);
        let mut blocks = Blocks::new(k);
        let closed = self.base.conjugate(2.0).is_infinite();
        for (row, &cap) in self.caps.iter().enumerate().filter(|(_, cap)| **cap > 0.0) {
            let y = self.codes[row] as usize;
            // q of the rivals; what is left of c counts as q of the class itself
            let q = |class: usize| (-v[class * n + row]).max(0.0);
            let rivals: Vec<usize> = (0..k).filter(|&class| class != y && q(class) > 0.0).collect();
            let r: f64 = rivals.iter().map(|&class| q(class)).sum();
            let share = if closed { 1.0 / cap } else { 0.0 };
            for (position, &one) in rivals.iter().enumerate() {
                blocks.push(row, one, one, q(one) * (1.0 - share * q(one)));
                for &other in &rivals[..position] {
                    blocks.push(row, one, other, -share * q(one) * q(other));
                }
                blocks.push(row, one, y, -q(one) * (1.0 - share * r).max(0.0));
            }
            if !rivals.is_empty() {
                blocks.push(row, y, y, r * (1.0 - share * r).max(0.0));
            }
        }
        blocks
    }

    fn is_feasible(&self, v: &[f64]) -> bool {
        let (n, k) = (self.rows(), self.classes);
        let closed = self.base.conjugate(2.0).is_infinite();
        let fits = |row: usize| {
            let (y, cap) = (self.codes[row] as usize, self.caps[row]);
            let slack = SLACK * cap;
            let rivals = (0..k).filter(|&class| class != y).all(|class| v[class * n + row] <= slack);
            rivals && (!closed || v[y * n + row] <= cap + slack) && (cap > 0.0 || v[y * n + row] == 0.0)
        };
        (0..n).all(fits)
    }

    fn dual(&self, v: &[f64]) -> f64 {
        let n = self.rows();
        let closed = self.base.conjugate(2.0).is_infinite();
        let of = |(row, &cap): (usize, &f64)| {
            let share = (v[self.codes[row] as usize * n + row] / cap).max(0.0);
            -cap * self.base.conjugate(if closed { share.min(1.0) } else { share })
        };
        self.caps.iter().enumerate().filter(|(_, cap)| **cap > 0.0).map(of).sum()
    }

    fn terms(&self) -> Option<Vec<Term>> {
        let pieces = |own: usize| {
            let rivals = (0..self.classes).filter(|&class| class != own);
            rivals.map(|rival| Piece { plus: Some(own), minus: Some(rival) }).collect()
        };
        let counted = self.caps.iter().enumerate().filter(|(_, cap)| **cap > 0.0);
        let term = |(row, &cap): (usize, &f64)| Term { row, cap, pieces: pieces(self.codes[row] as usize) };
        (!self.base.is_smooth()).then(|| counted.map(term).collect())
    }
}
