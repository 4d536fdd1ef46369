//! From an approximate solution to one with exact multipliers: clean, balance, certify.
//!
//! Multipliers of an interior point are all strictly inside their simplices and miss the column sums by rounding or more. Here
//! tiny ones are put to 0, mixed rows absorb the residual r of the dual's equations (weighted least squares: row i moves q by
//! (diag q - q q'/c) u'(x, 1)), and what is left of the column sums goes to the rows where it costs least. Then
//!
//! ```text
//! P - D = sum_ij q_ij (max_l (f + o)_il - (f + o)_ij) + |r_w|^2 / (2 rho)
//! ```
//!
//! is the true gap. w is the iterate or the expansion's own, whichever has the smaller P.

use super::dual::Dual;
use super::interior::{Pair, loss_and_augment};
use super::level::{Block, Level, PairGrams, Side, add};

/// Shares this small of classes that are not the largest are put to 0.
const EDGE: f64 = 1e-7;
const CORRECTIONS: usize = 3;
/// Rounds of moves between columns: each leaves the rounding of the one before.
const BALANCINGS: usize = 4;

/// A certified pair.
pub(super) struct Certified {
    pub theta: Vec<f64>,
    pub dual: Dual,
    /// The certificate's V is this multiple of base - q.
    pub scale: f64,
    pub objective: f64,
    pub gap: f64,
}

impl Certified {
    pub fn relative_gap(&self) -> f64 {
        (self.gap / self.objective.abs().max(f64::MIN_POSITIVE)).max(0.0)
    }
}

/// Certifies a pair for the level it belongs to, with clean multipliers if those reach the tolerance, else with the better of
/// clean and raw ones. `keep`: the pair's own w is kept if that reaches the tolerance.
pub(super) fn certify(level: &Level, pair: &Pair, tolerance: f64, keep: bool) -> Certified {
    let enough = if keep { tolerance } else { 0.0 };
    let clean = judge(level, &pair.theta, &pair.dual, true, enough);
    if clean.relative_gap() <= tolerance {
        return clean;
    }
    let raw = judge(level, &pair.theta, &pair.dual, false, enough);
    if raw.gap < clean.gap { raw } else { clean }
}

/// What a look at all rows tells at one theta: the loss, and for rows of one label what they add to the gap and to the dual's
/// equations.
struct Look {
    loss: f64,
    gap: f64,
    sum: Vec<f64>,
}

fn look(level: &Level, theta: &[f64], dual: &Dual) -> Look {
    let k = level.classes;
    let functional = level.functional(theta);
    struct Sums {
        look: Look,
        scores: Vec<f64>,
        factors: Vec<f64>,
        column: Vec<f64>,
    }
    let new = || Sums {
        look: Look { loss: 0.0, gap: 0.0, sum: vec![0.0; level.size()] },
        scores: Vec::new(),
        factors: Vec::new(),
        column: Vec::new(),
    };
    let visit = |block: &Block, rows: &mut [()], sums: &mut Sums| {
        sums.scores.resize(rows.len() * k, 0.0);
        level.scores(block, &functional, &mut sums.column, &mut sums.scores);
        sums.factors.clear();
        sums.factors.resize(rows.len() * k, 0.0);
        for row in 0..rows.len() {
            let (cap, code) = (block.caps[row], block.codes[row]);
            if cap == 0.0 {
                continue;
            }
            let f = &mut sums.scores[row * k..(row + 1) * k];
            sums.look.loss += cap * loss_and_augment(level, code, f);
            if let Some(label) = dual.label(block.first + row) {
                let top = f.iter().fold(f64::NEG_INFINITY, |top, f| top.max(*f));
                sums.look.gap += cap * (top - f[label]);
                sums.factors[row * k + label] += cap;
                if level.side == Side::Margin {
                    sums.factors[row * k + code as usize] -= cap;
                }
            }
        }
        level.add_rows(block, &sums.factors, &mut sums.column, &mut sums.look.sum);
    };
    let mut nothing = vec![(); level.rows()];
    let mut look = level
        .sweep(1, &mut nothing, new, visit, |total, part| {
            total.look.loss += part.look.loss;
            total.look.gap += part.look.gap;
            add(&mut total.look.sum, &part.look.sum);
        })
        .look;
    level.normalise(&mut look.sum);
    look
}

fn judge(level: &Level, theta: &[f64], dual: &Dual, clean: bool, enough: f64) -> Certified {
    let mut dual = dual.clone();
    let mut first = look(level, theta, &dual);
    let mut mixed = Mixed::new(level, theta, &first, &mut dual, clean);
    if level.intercept && !mixed.balance(&mut dual) {
        // the mixed rows cannot: every row takes part
        let rows = dual.rows();
        dual.mix((0..rows).filter(|&row| level.caps[row] > 0.0));
        first = look(level, theta, &dual);
        mixed = Mixed::new(level, theta, &first, &mut dual, false);
        mixed.balance(&mut dual);
    }
    let sum = mixed.sum(&dual);
    let own_gap = first.gap + mixed.gap(theta, &dual);
    let scale = scale(level, first.loss - own_gap, theta, &sum);
    let assemble = |theta: Vec<f64>, loss: f64, complement: f64| {
        let mut residual = level.affine_gradient(&theta);
        residual.iter_mut().zip(&sum).for_each(|(r, s)| *r += scale * s);
        let gap = (1.0 - scale) * loss + scale * complement;
        let objective = level.affine_part(&theta) + loss;
        let gap = gap + level.residual_gap(&theta, &residual);
        Certified { theta, dual: Dual::from_labels(Vec::new(), level.classes), scale, objective, gap }
    };
    let own = assemble(theta.to_vec(), first.loss, own_gap);
    if own.relative_gap() <= enough {
        return Certified { dual, ..own };
    }
    // the expansion's own w
    let p = level.order();
    let expanded: Vec<f64> = (0..theta.len())
        .map(|at| match (at + 1).is_multiple_of(p) {
            true => theta[at],
            false => -(scale * sum[at] + level.linear[at]) / level.ridge,
        })
        .collect();
    let again = look(level, &expanded, &dual);
    let complement = again.gap + mixed.gap(&expanded, &dual);
    let expanded = assemble(expanded, again.loss, complement);
    let better = if expanded.gap < own.gap { expanded } else { own };
    Certified { dual, ..better }
}

/// The best point of the segment from V = 0, D(t) = t l - t^2 |sum|^2 / (2 rho), l the linear part of the dual. At an optimum
/// that is t = 1; it is less when rounding in the sum outweighs everything, as with enormous caps.
fn scale(level: &Level, complementary: f64, theta: &[f64], sum: &[f64]) -> f64 {
    if level.side != Side::Margin || level.linear.iter().any(|g| *g != 0.0) {
        return 1.0;
    }
    // loss - gap = sum_i (q.(f + o) - c f_y) = l + sum.theta
    let l = complementary - crate::linalg::dot(sum, theta);
    let best = level.ridge * l / level.squared_norm(sum);
    if best > 0.0 && best < 1.0 { best } else { 1.0 }
}

/// The mixed rows, copied out.
struct Mixed<'a> {
    parent: &'a Level<'a>,
    copied: super::level::Copied,
    /// f + o, rows x classes
    scores: Vec<f64>,
    /// What all other rows add to the dual's equations.
    fixed: Vec<f64>,
}

impl<'a> Mixed<'a> {
    fn new(parent: &'a Level<'a>, theta: &[f64], look: &Look, dual: &mut Dual, clean: bool) -> Self {
        let copied = parent.copy(dual.mixed());
        let mut mixed = Mixed { parent, copied, scores: Vec::new(), fixed: look.sum.clone() };
        mixed.scores = mixed.augmented(theta);
        if clean {
            mixed.snap(dual);
        }
        for _ in 0..CORRECTIONS {
            if !mixed.absorb(theta, dual) {
                break;
            }
        }
        mixed
    }

    fn level(&self) -> Level<'_> {
        self.copied.level(self.parent, Vec::new(), 0.0)
    }

    fn augmented(&self, theta: &[f64]) -> Vec<f64> {
        let level = self.level();
        let mut scores = level.all_scores(theta);
        for (row, f) in scores.chunks_exact_mut(level.classes).enumerate() {
            level.augment(level.codes[row], f);
        }
        scores
    }

    /// sum_ij q_ij (max (f + o) - (f + o)_j)
    fn gap(&self, theta: &[f64], dual: &Dual) -> f64 {
        let k = self.parent.classes;
        let scores = self.augmented(theta);
        let of_row = |row: usize| {
            let (f, share) = (&scores[row * k..(row + 1) * k], &dual.shares()[row * k..(row + 1) * k]);
            let top = f.iter().fold(f64::NEG_INFINITY, |top, f| top.max(*f));
            self.copied.caps[row] * f.iter().zip(share).map(|(f, share)| share * (top - f)).sum::<f64>()
        };
        (0..self.copied.caps.len()).map(of_row).sum()
    }

    fn snap(&self, dual: &mut Dual) {
        let k = self.parent.classes;
        for (share, f) in dual.shares_mut().chunks_exact_mut(k).zip(self.scores.chunks_exact(k)) {
            let top = (0..k).fold(0, |top, class| if f[class] > f[top] { class } else { top });
            for class in 0..k {
                if class != top && share[class] <= EDGE {
                    share[class] = 0.0;
                }
            }
            if share[top] >= 1.0 - EDGE {
                share.fill(0.0);
            }
            share[top] = 0.0;
            share[top] = (1.0 - share.iter().sum::<f64>()).max(0.0);
        }
    }

    /// sum (q - c e_y) x (x, 1) over all rows.
    fn sum(&self, dual: &Dual) -> Vec<f64> {
        let level = self.level();
        let k = level.classes;
        let mut nothing = vec![(); level.rows()];
        type Sums = (Vec<f64>, Vec<f64>, Vec<f64>);
        let visit = |block: &Block, rows: &mut [()], (sum, factors, column): &mut Sums| {
            factors.clear();
            for row in 0..rows.len() {
                let at = (block.first + row) * k;
                factors.extend(dual.shares()[at..at + k].iter().map(|share| share * block.caps[row]));
                if level.side == Side::Margin {
                    factors[row * k + block.codes[row] as usize] -= block.caps[row];
                }
            }
            level.add_rows(block, factors, column, sum);
        };
        let new = || (vec![0.0; level.size()], Vec::new(), Vec::new());
        let mut sum = level.sweep(1, &mut nothing, new, visit, |total, part| add(&mut total.0, &part.0)).0;
        level.normalise(&mut sum);
        add(&mut sum, &self.fixed);
        sum
    }

    /// Moves the shares so that the residual falls. Returns whether another round may help.
    fn absorb(&self, theta: &[f64], dual: &mut Dual) -> bool {
        let level = self.level();
        let (k, d) = (level.classes, level.x.cols());
        let mut residual = self.parent.affine_gradient(theta);
        add(&mut residual, &self.sum(dual));
        let mut grams = {
            let shares = dual.shares();
            let visit = |block: &Block, rows: &mut [()], grams: &mut PairGrams| {
                for row in 0..rows.len() {
                    let share = &shares[(block.first + row) * k..][..k];
                    let x = &block.x[row * d..(row + 1) * d];
                    for b in 1..k {
                        for a in 0..b {
                            let weight = block.caps[row] * share[a] * share[b];
                            if weight > 0.0 {
                                grams.push(a, b, x, weight);
                            }
                        }
                    }
                }
            };
            let mut nothing = vec![(); level.rows()];
            level.sweep_grams(1, 1, &mut nothing, || PairGrams::new(&level), visit, |total, part| total.merge(part))
        };
        grams.flush();
        if grams.is_empty() {
            return false;
        }
        let mut matrix = vec![0.0; level.size() * level.size()];
        grams.assemble(level.order(), 1.0, &mut matrix);
        // directions that no mixed row supports get no correction instead of an enormous one; the common shift of all
        // functions is one of them
        let size = level.size();
        let trace: f64 = (0..size).map(|at| matrix[at * size + at]).sum();
        for at in 0..size {
            matrix[at * size + at] = matrix[at * size + at] * (1.0 + 1e-13) + 1e-15 * trace + f64::MIN_POSITIVE;
        }
        if !level.intercept {
            (1..=k).for_each(|class| level.release(&mut matrix, class * level.order() - 1, 1.0));
        }
        let Some(factor) = level.factor(&matrix) else { return false };
        let negative: Vec<f64> = residual.iter().map(|r| -r).collect();
        let direction = factor.solve(&negative);
        if direction.iter().any(|value| !value.is_finite()) {
            return false;
        }
        let change = level.all_scores(&direction);
        let mut clipped = false;
        for (share, u) in dual.shares_mut().chunks_exact_mut(k).zip(change.chunks_exact(k)) {
            let mean: f64 = share.iter().zip(u).map(|(share, u)| share * u).sum();
            // share (1 + t (u - mean)) >= 0
            let lowest = u.iter().zip(&*share).filter(|(_, share)| **share > 0.0).map(|(u, _)| u - mean);
            let lowest = lowest.fold(0.0, f64::min);
            let length = if lowest < -1.0 { -1.0 / lowest } else { 1.0 };
            clipped |= length < 1.0;
            share.iter_mut().zip(u).for_each(|(share, u)| *share = (*share * (1.0 + length * (u - mean))).max(0.0));
            let sum: f64 = share.iter().sum();
            share.iter_mut().for_each(|share| *share /= sum);
        }
        clipped
    }

    /// Brings the column sums to 0 by moves between two classes of a row. Returns whether that succeeded.
    fn balance(&self, dual: &mut Dual) -> bool {
        let (k, p) = (self.parent.classes, self.parent.order());
        let caps = &self.copied.caps;
        let total: f64 = self.parent.caps.iter().sum();
        for _ in 0..BALANCINGS {
            let sum = self.sum(dual);
            let mut excess: Vec<f64> =
                (0..k).map(|class| sum[class * p + p - 1] + self.parent.linear[class * p + p - 1]).collect();
            for _ in 0..2 * k {
                let (mut high, mut low) = (0, 0);
                for class in 1..k {
                    high = if excess[class] > excess[high] { class } else { high };
                    low = if excess[class] < excess[low] { class } else { low };
                }
                let amount = excess[high].min(-excess[low]);
                if !(amount > 0.0) {
                    break;
                }
                let moved = self.shift(dual, caps, high, low, amount);
                excess[high] -= moved;
                excess[low] += moved;
                if moved < 0.5 * amount {
                    return amount <= 1e-13 * total;
                }
            }
        }
        true
    }

    /// Moves `amount` of the multipliers from one class to another; returns how much could be moved.
    fn shift(&self, dual: &mut Dual, caps: &[f64], from: usize, to: usize, amount: f64) -> f64 {
        let k = self.parent.classes;
        let shares = dual.shares_mut();
        // rows that have both, in proportion to the product, so that none is pushed to its edge needlessly
        let room: f64 = (0..caps.len()).map(|row| caps[row] * shares[row * k + from] * shares[row * k + to]).sum();
        if room > amount {
            let part = amount / room;
            for row in 0..caps.len() {
                let step = part * shares[row * k + from] * shares[row * k + to];
                shares[row * k + from] = (shares[row * k + from] - step).max(0.0);
                shares[row * k + to] += step;
            }
            return amount;
        }
        let mut order: Vec<usize> = (0..caps.len()).filter(|&row| caps[row] * shares[row * k + from] > 0.0).collect();
        let cost = |row: usize| self.scores[row * k + from] - self.scores[row * k + to];
        order.sort_by(|&i, &j| cost(i).total_cmp(&cost(j)));
        let mut left = amount;
        for row in order {
            let step = shares[row * k + from].min(left / caps[row]);
            shares[row * k + from] -= step;
            shares[row * k + to] += step;
            left = (left - step * caps[row]).max(0.0);
            if left == 0.0 {
                break;
            }
        }
        amount - left
    }
}
