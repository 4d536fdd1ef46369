//! Whether further steps from a start are worth while.
//!
//! Three numbers fall on the way to a solution: the gap, the sum of the products, and what the equations lack. Early on the gap need not
//! fall for many steps, and the products may rise while what the equations lack is made up for; at the end the products go on falling
//! when rounding has long stopped the gap. So any of the three is progress while the products could still be what the gap consists of,
//! and the gap alone is after that.

/// Steps without progress that are waited for: on the way, and where rounding is the reason.
const ON_THE_WAY: usize = 30;
const ROUNDED: usize = 5;
/// A fall that counts: of the gap, and of the others.
const FALL: f64 = 0.9;
const HALF: f64 = 0.5;
/// Sums of products, next to the tolerance, that are no part of the gap any more.
const GONE: f64 = 1e-2;

/// What was reached when progress was last seen, and the steps since.
pub(super) struct Patience {
    tolerance: f64,
    /// The part of what the equations lacked at first that is left.
    pub(super) lack: f64,
    reached: (f64, f64, f64),
    waited: usize,
}

impl Patience {
    pub(super) fn new(tolerance: f64) -> Patience {
        Patience { tolerance, lack: 1.0, reached: (f64::INFINITY, f64::INFINITY, f64::INFINITY), waited: 0 }
    }

    /// Looks at the gap and at the products, both relative to the objective.
    pub(super) fn is_over(&mut self, gap: f64, products: f64) -> bool {
        let on_the_way = products > GONE * self.tolerance;
        let (least_gap, least_products, least_lack) = self.reached;
        let fallen = products < HALF * least_products || self.lack < HALF * least_lack;
        if gap < FALL * least_gap || on_the_way && fallen {
            self.reached = (gap.min(least_gap), products.min(least_products), self.lack.min(least_lack));
            self.waited = 0;
        } else {
            self.waited += 1;
        }
        self.waited > if on_the_way { ON_THE_WAY } else { ROUNDED }
    }
}
