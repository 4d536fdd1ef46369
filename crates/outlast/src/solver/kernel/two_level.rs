//! Two-level block minimisation of the dual.
//!
//! ```text
//! level 0   F on all n rows in f64. A = all free rows + violators alternately from both ends.
//! level 1   the problem on A, to a tenth of level 0's violation: directly by SMO on a dense K_AA if A is small, else by
//!           blocks B of 256..1024 rows: SMO on K_BB, then F_A += K[A,B] db recomputed. When the blocks have cost more than
//!           3 |A|^2 values, K_AA is built after all.
//! sync      F += K[:, changed] db for the rows that changed net, one pass over all rows.
//! ```
//!
//! Keeping all free rows in A is what makes the number of passes over the n rows small (a few tens). Stops on the relative
//! duality gap; the violation that level 1 has to reach is foreseen from it, the two falling together.
//!
//! How f32 errors of F are kept out is in [`outer`](super::outer).

use super::super::Options;
use super::super::majorize::Step;
use super::super::tiles::Aligned;
use super::block::DenseBlock;
use super::double;
use super::dual::{Dual, Measure};
use super::gram::Packed;
use super::outer::{self, Outer, Standing};
use super::ranges::Ranges;
use super::select::View;
use crate::control::Control;
use crate::error::Result;

/// Sizes of the working sets, from the byte budget.
pub(crate) struct Sizes {
    /// Largest A solved directly on a dense K_AA.
    direct: usize,
    /// Largest block B; also: an A of this size is always solved directly.
    block: usize,
}

/// Blocks are not made smaller than this.
const SMALLEST: usize = 256;

impl Sizes {
    pub(crate) fn new(bytes: usize) -> Sizes {
        let direct = ((bytes / 4) as f64).sqrt() as usize;
        let direct = direct.clamp(SMALLEST, 8192);
        Sizes { direct, block: direct.min(1024) }
    }

    /// Rows of the largest dense K_AA.
    pub(crate) fn direct(&self) -> usize {
        self.direct
    }

    /// Bytes a dense K_AA of the largest size takes.
    pub(crate) fn bytes(&self) -> usize {
        4 * self.direct * self.direct
    }
}

/// Blocks that level 1 may take before level 0 looks again.
const MOST_BLOCKS: usize = 1000;

/// What a solve may spend, and its scratch space.
pub(crate) struct Solver<'o> {
    pub(crate) sizes: Sizes,
    pub(crate) options: &'o Options,
    pub(crate) stage: &'static str,
    kernel: Aligned,
}

/// The problem on the rows of A.
struct Part {
    rows: Vec<u32>,
    packed: Packed,
    beta: Vec<f64>,
    gradient: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
}

impl Part {
    fn view(&self) -> View<'_> {
        View { beta: &self.beta, gradient: &self.gradient, lower: &self.lower, upper: &self.upper }
    }
}

impl<'o> Solver<'o> {
    pub(crate) fn new(sizes: Sizes, options: &'o Options) -> Solver<'o> {
        Solver { sizes, options, stage: "kernel", kernel: Aligned::default() }
    }

    /// Minimises to a relative gap, from the dual's current state.
    pub(crate) fn solve(&mut self, dual: &mut Dual, tolerance: f64, control: &Control) -> Result<Step> {
        let (options, stage) = (self.options, self.stage);
        outer::run(&mut Joined { solver: self, dual }, tolerance, options, stage, control)
    }

    /// One step of level 0.
    fn improve(
        &mut self,
        dual: &mut Dual,
        measure: &Measure,
        tolerance: f64,
        outer: usize,
        control: &Control,
    ) -> Result<()> {
        let mut part = self.choose(dual, measure, outer);
        // gap and violation fall together: aim below the violation at which the gap will do
        let enough = 0.3 * measure.violation() * (tolerance / measure.relative_gap()).min(1.0);
        let eps = (0.1 * measure.violation()).max(enough);
        let size = part.rows.len();
        let mut direct = size <= self.block_size(dual).max(measure.free + measure.free / 4).min(self.sizes.direct);
        if !direct {
            direct = self.solve_by_blocks(dual, &mut part, measure.free, eps, control)?;
        }
        if direct {
            let all: Vec<u32> = (0..size as u32).collect();
            self.solve_block(dual, &mut part, &all, eps, control)?;
        }
        let (mut rows, mut moves) = (Vec::new(), Vec::new());
        for (&row, &beta) in part.rows.iter().zip(&part.beta) {
            let old = &mut dual.beta[row as usize];
            if *old != beta {
                rows.push(row);
                moves.push(beta - *old);
                *old = beta;
            }
        }
        dual.moved(&rows, &moves);
        Ok(())
    }

    /// Where values are dear and kept, recomputing blocks is the dear part: solve A directly instead.
    fn block_size(&self, dual: &Dual) -> usize {
        if dual.gram.keeps_rows() { self.sizes.direct.min(2048) } else { self.sizes.block }
    }

    /// The rows of A, packed.
    fn choose(&self, dual: &Dual, measure: &Measure, outer: usize) -> Part {
        let rows = dual.rows();
        let usual = if dual.gram.keeps_rows() { 2048 } else { 4096.max(rows / 7) };
        let size = usual.max((measure.free + measure.free / 2).min(8192)).min(rows);
        let view = View::from(dual);
        let mut violators = view.violators(measure.lowest, measure.highest);
        if outer == 0 && measure.free == 0 {
            violators.shuffle(self.options.seed);
        }
        let mut taken = vec![false; rows];
        let mut set = Vec::with_capacity(size);
        if measure.free <= size * 3 / 4 {
            set.extend((0..rows as u32).filter(|&row| view.is_free(row as usize)));
            set.iter().for_each(|&row| taken[row as usize] = true);
        }
        violators.fill(&mut set, &mut taken, size);
        let take = |from: &[f64]| -> Vec<f64> { set.iter().map(|&row| from[row as usize]).collect() };
        let packed = dual.gram.pack(&set, 0);
        let mut gradient = take(&dual.gradient);
        gradient.resize(packed.padded(), 0.0);
        Part { packed, beta: take(&dual.beta), gradient, lower: take(&dual.lower), upper: take(&dual.upper), rows: set }
    }

    /// Level 1 by blocks. Returns whether to finish directly because the blocks cost too much.
    fn solve_by_blocks(
        &mut self,
        dual: &Dual,
        part: &mut Part,
        free: usize,
        eps: f64,
        control: &Control,
    ) -> Result<bool> {
        let size = part.rows.len();
        let largest = self.block_size(dual);
        let may_build = size <= self.sizes.direct.min((3 * free).max(4096));
        let rent = 3.0 * (size * part.packed.padded()) as f64;
        let mut spent = 0.0;
        let mut target = largest;
        let mut previous: Vec<u32> = Vec::new();
        let mut taken = vec![false; size];
        for _ in 0..MOST_BLOCKS {
            control.check()?;
            if may_build && spent > rent {
                return Ok(true);
            }
            let (lowest, highest) = part.view().extremes(dual.balanced);
            let violation = highest - lowest;
            if !(violation > eps) {
                return Ok(false);
            }
            let mut block: Vec<u32> = Vec::with_capacity(target);
            taken.fill(false);
            let view = part.view();
            block.extend(previous.iter().filter(|&&at| view.is_free(at as usize)).take(target / 2));
            block.iter().for_each(|&at| taken[at as usize] = true);
            view.violators(lowest, highest).fill(&mut block, &mut taken, target);
            let (rows, moves) = self.solve_block(dual, part, &block, (0.1 * violation).max(0.5 * eps), control)?;
            dual.gram.multiply(&part.packed, &rows, &moves, &mut part.gradient);
            spent += (block.len() * block.len() + rows.len() * size) as f64;
            if rows.len() * 10 > 6 * target {
                target = (2 * target).min(largest);
            } else if rows.len() * 10 < 2 * target {
                target = (target / 2).max(SMALLEST.min(largest));
            }
            previous = block;
        }
        Ok(false)
    }

    /// SMO on the rows of A at the positions `block`. Returns the rows that moved, and by how much; F is not updated.
    fn solve_block(
        &mut self,
        dual: &Dual,
        part: &mut Part,
        block: &[u32],
        eps: f64,
        control: &Control,
    ) -> Result<(Vec<u32>, Vec<f64>)> {
        let rows: Vec<u32> = block.iter().map(|&at| part.rows[at as usize]).collect();
        let take = |from: &[f64]| -> Vec<f64> { block.iter().map(|&at| from[at as usize]).collect() };
        let (mut beta, mut gradient) = (take(&part.beta), take(&part.gradient));
        let (mut lower, mut upper) = (take(&part.lower), take(&part.upper));
        let view = View { beta: &beta, gradient: &gradient, lower: &lower, upper: &upper };
        let (lowest, highest) = view.extremes(dual.balanced);
        let shift = 0.5 * (lowest + highest);
        let anchors = usize::from(!dual.balanced);
        let packed = dual.gram.pack(&rows, anchors);
        let stride = packed.padded();
        dual.gram.block(&packed, &mut self.kernel);
        let mut diagonal: Vec<f32> = rows.iter().map(|&row| dual.gram.diagonal()[row as usize]).collect();
        if !dual.balanced {
            // the anchor: kernel values 0, F = 0, no bounds
            add_anchor(&mut self.kernel, rows.len(), stride);
            diagonal.push(0.0);
            gradient.push(0.0);
            beta.push(0.0);
            lower.push(f64::NEG_INFINITY);
            upper.push(f64::INFINITY);
        }
        let ranges = Ranges { lower: &lower, upper: &upper, kinks: &[], jump: 0.0 };
        let dense = DenseBlock { stride, diagonal: &diagonal, ranges };
        let most = 200 * rows.len() + 10_000;
        let stop = || control.check().is_err() || control.out_of_time();
        dense.solve(dual.gram.isa, &self.kernel[..], &mut beta, &gradient, shift, eps, most, &stop);
        control.check()?;
        let (mut moved, mut moves) = (Vec::new(), Vec::new());
        for ((&at, &row), &beta) in block.iter().zip(&rows).zip(&beta) {
            let old = &mut part.beta[at as usize];
            if *old != beta {
                moved.push(row);
                moves.push(beta - *old);
                *old = beta;
            }
        }
        Ok((moved, moves))
    }
}

/// The solver with its dual, as the outer loop sees them.
struct Joined<'s, 'o, 'd, 'a> {
    solver: &'s mut Solver<'o>,
    dual: &'d mut Dual<'a>,
}

impl Outer for Joined<'_, '_, '_, '_> {
    type Measure = Measure;

    fn measure(&mut self) -> Measure {
        self.dual.measure()
    }

    fn standing(&self, measure: &Measure) -> Standing {
        let unit = self.dual.gram.unit();
        Standing { gap: measure.gap, primal: measure.primal, violation: measure.violation(), unit }
    }

    fn check(&self) -> Result<()> {
        self.dual.gram.check()
    }

    fn improve(&mut self, measure: &Measure, tolerance: f64, outer: usize, control: &Control) -> Result<()> {
        self.solver.improve(self.dual, measure, tolerance, outer, control)
    }

    fn refresh(&mut self) {
        self.dual.refresh();
    }

    /// Errors of different rows are independent, and enter the gap times beta: their sum is that of a random walk, taken
    /// four times as large.
    fn error_matters(&self, measure: &Measure, tolerance: f64) -> bool {
        let dual = &self.dual;
        let size = 4.0 * dual.beta.iter().map(|b| b * b).sum::<f64>().sqrt();
        let allowed = tolerance * measure.primal.abs();
        // nothing to look at where even the worst error of the values would not matter
        dual.gram.value_error() * size * size > 0.1 * allowed && size * dual.gradient_error(measure) > allowed
    }

    fn has_few_rows(&self) -> bool {
        self.dual.rows() <= double::ROWS
    }

    fn finish_in_double(&mut self, tolerance: f64, control: &Control) -> Result<()> {
        double::finish(self.dual, tolerance, control)
    }
}

fn add_anchor(kernel: &mut Aligned, size: usize, stride: usize) {
    kernel[size * stride..(size + 1) * stride].fill(0.0);
    for row in 0..size {
        kernel[row * stride + size] = 0.0;
    }
}
