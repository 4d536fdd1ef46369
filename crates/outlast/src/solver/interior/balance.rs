//! The last rounding errors of the dual point: the column sums of V, which the intercepts want to be 0.
//!
//! Moving an amount from V_ia to V_ib leaves row i's sum alone. q_ib = base_ib - V_ib falls by it and must stay >= 0; r of a
//! smooth row must stay within the domain of the loss's conjugate. Each move takes the row with most room.

use crate::problem::BaseLoss;

/// What a row allows.
pub(in super::super) struct Room<'a> {
    /// Rows x classes; empty for smooth losses.
    pub(in super::super) base: &'a [f64],
    pub(in super::super) codes: &'a [u32],
    pub(in super::super) caps: &'a [f64],
    pub(in super::super) loss: Option<&'static dyn BaseLoss>,
}

impl Room<'_> {
    /// Most that may be moved from class a to class b within a row.
    fn between(&self, expansion: &[f64], row: usize, k: usize, a: usize, b: usize) -> f64 {
        if self.caps[row] == 0.0 {
            return 0.0;
        }
        let v = &expansion[row * k..(row + 1) * k];
        let Some(loss) = self.loss else {
            return (self.base[row * k + b] - v[b]).max(0.0);
        };
        let own = self.codes[row] as usize;
        let cap = self.caps[row];
        if b == own {
            // r rises: at most to where the conjugate ends, if it does
            let bounded = !loss.conjugate(2.0).is_finite();
            return if bounded { 0.5 * (cap - v[own]).max(0.0) } else { cap };
        }
        // q_b falls, and r with it if a is the own class
        let room = (-v[b]).max(0.0);
        if a == own { room.min(v[own].max(0.0)) } else { room }
    }
}

/// Makes the columns of V (rows x k) sum to 0 within the rows' sets, to rounding. O(n k) per move; few moves are needed where
/// the sums are small to begin with.
pub(in super::super) fn balance(expansion: &mut [f64], k: usize, room: &Room) {
    let rows = expansion.len() / k.max(1);
    let mut smallest = f64::INFINITY;
    for _ in 0..50 * k {
        let sums: Vec<f64> = (0..k).map(|class| expansion.iter().skip(class).step_by(k).sum()).collect();
        let a = (0..k).fold(0, |at, class| if sums[class] > sums[at] { class } else { at });
        let b = (0..k).fold(0, |at, class| if sums[class] < sums[at] { class } else { at });
        let amount = sums[a].max(-sums[b]);
        // sums of no more than rounding stop falling
        if a == b || amount == 0.0 || (amount >= smallest && amount < 1e-14 * size(expansion)) {
            return;
        }
        smallest = smallest.min(amount);
        let amount = if sums[a] > 0.0 && sums[b] < 0.0 { sums[a].min(-sums[b]) } else { amount };
        let of_row = |row: usize| room.between(expansion, row, k, a, b);
        let row = (0..rows).fold((0, 0.0), |best, row| {
            let own = of_row(row);
            if own > best.1 { (row, own) } else { best }
        });
        let moved = amount.min(row.1);
        if moved == 0.0 {
            return;
        }
        expansion[row.0 * k + a] -= moved;
        expansion[row.0 * k + b] += moved;
    }
}

fn size(expansion: &[f64]) -> f64 {
    expansion.iter().map(|v| v.abs()).sum()
}
