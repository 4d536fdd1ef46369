//! The dual of all rows and its state.
//!
//! ```text
//! min 1/2 sum_j V_j'K V_j + sum_ij [q_ij - knot_ij]_+,   V = base - q,   q_i in total_i x simplex,   sum_i V_ij = 0 (b free)
//! ```
//!
//! h = K V in f64. The duality gap is a sum over rows, each >= 0, at O(n k).

use super::super::super::tiles::{Aligned, Coefficients, PANEL};
use super::super::gram::{Gram, place};
use super::cycles::{best_cycle, intercepts};
use super::gains::{Support, gains};
use super::sheet::{Sheet, TINY};
use rayon::prelude::*;

pub(super) struct Joint<'a> {
    pub(super) gram: Gram<'a>,
    pub(super) sheet: Sheet,
    /// Rows x classes.
    pub(super) base: Vec<f64>,
    /// Whether the column sums of V are 0: the intercepts are free.
    pub(super) balanced: bool,
    /// Whether the loss is the cost form's.
    pub(super) cost_form: bool,
}

/// Where a state stands.
#[derive(Debug, Clone)]
pub(super) struct Measure {
    /// Largest mean gain over cycles of moves, or largest gain without intercept.
    pub(super) violation: f64,
    pub(super) intercepts: Vec<f64>,
    pub(super) gap: f64,
    pub(super) primal: f64,
}

impl Measure {
    pub(super) fn relative_gap(&self) -> f64 {
        self.gap / self.primal.abs().max(f64::MIN_POSITIVE)
    }
}

impl<'a> Joint<'a> {
    /// The problem with nothing in it.
    pub(super) fn new(gram: Gram<'a>, classes: usize, balanced: bool, straight: bool, cost_form: bool) -> Joint<'a> {
        let rows = gram.rows();
        let values = || vec![0.0; rows * classes];
        let sheet = Sheet {
            isa: gram.isa,
            classes,
            total: vec![0.0; rows],
            knots: values(),
            q: values(),
            h: vec![0.0; rows.next_multiple_of(PANEL) * classes],
            straight,
            own: vec![0; rows],
        };
        Joint { gram, sheet, base: values(), balanced, cost_form }
    }

    pub(super) fn rows(&self) -> usize {
        self.sheet.rows()
    }

    /// V_ij
    pub(super) fn v(&self, row: usize, class: usize) -> f64 {
        let at = row * self.sheet.classes + class;
        self.base[at] - self.sheet.q[at]
    }

    pub(super) fn measure(&self) -> Measure {
        let k = self.sheet.classes;
        let gains = gains(&self.sheet, &Support::new(&self.sheet));
        let (violation, intercepts) = match self.balanced {
            true => {
                let mean = best_cycle(&gains).0;
                (mean, intercepts(&gains, if mean.is_finite() { mean.max(0.0) } else { 0.0 }))
            }
            false => (gains.largest(), vec![0.0; k]),
        };
        let [gap, dual] = self.sum(|row| match self.sheet.total[row] > 0.0 {
            true => {
                let dual = self.sheet.total[row] - self.sheet.excess(row) - 0.5 * self.square(row);
                [self.sheet.row_gap(row, &intercepts, self.cost_form), dual]
            }
            false => [0.0; 2],
        });
        Measure { violation: violation.max(0.0), intercepts, gap, primal: dual + gap }
    }

    /// The sums of values over the rows, the same on any number of threads.
    fn sum<const N: usize>(&self, values: impl Fn(usize) -> [f64; N] + Sync) -> [f64; N] {
        const PIECE: usize = 512;
        let add = |sums: [f64; N], values: [f64; N]| std::array::from_fn(|at| sums[at] + values[at]);
        let of_piece = |piece: usize| -> [f64; N] {
            (piece * PIECE..((piece + 1) * PIECE).min(self.rows())).map(&values).fold([0.0; N], add)
        };
        let parts: Vec<[f64; N]> = (0..self.rows().div_ceil(PIECE)).into_par_iter().map(of_piece).collect();
        parts.into_iter().fold([0.0; N], add)
    }

    /// sum_j V_ij h_ij
    fn square(&self, row: usize) -> f64 {
        let k = self.sheet.classes;
        let (base, q) = (self.sheet.of(&self.base, row), self.sheet.of(&self.sheet.q, row));
        let v = base.iter().zip(q).map(|(base, q)| base - q).enumerate();
        v.filter(|(_, v)| *v != 0.0).map(|(class, v)| v * self.sheet.h[place(k, row, class)]).sum()
    }

    /// 1/2 sum_j V_j'K V_j
    pub(super) fn penalty(&self) -> f64 {
        0.5 * self.sum(|row| [self.square(row)])[0]
    }

    /// Brings h up to date after rows moved from the V given, rows x classes.
    pub(super) fn moved(&mut self, rows: &[u32], old: &[f64]) {
        let k = self.sheet.classes;
        let mut changes = Coefficients::new(k);
        for (&row, old) in rows.iter().zip(old.chunks_exact(k)) {
            changes.push((0..k).map(|class| self.v(row as usize, class) - old[class]));
        }
        self.gram.multiply_all_many(rows, &changes, &mut self.sheet.h);
    }

    /// Computes h anew in double precision.
    pub(super) fn refresh(&mut self) {
        let k = self.sheet.classes;
        let all: Vec<u32> = (0..self.rows() as u32).collect();
        let product = self.exact(&all);
        for (row, values) in product.chunks_exact(k).enumerate() {
            for (class, value) in values.iter().enumerate() {
                self.sheet.h[place(k, row, class)] = *value;
            }
        }
    }

    /// K V at some rows in double precision.
    fn exact(&self, targets: &[u32]) -> Vec<f64> {
        let k = self.sheet.classes;
        let support: Vec<u32> =
            (0..self.rows() as u32).filter(|&row| (0..k).any(|class| self.v(row as usize, class) != 0.0)).collect();
        let mut coefficients = Coefficients::new(k);
        support.iter().for_each(|&row| coefficients.push((0..k).map(|class| self.v(row as usize, class))));
        self.gram.exact_many(&support, &coefficients, targets)
    }

    /// The largest error of h among an even spread of rows.
    pub(super) fn score_error(&self) -> f64 {
        const SAMPLE: usize = 32;
        let k = self.sheet.classes;
        let rows: Vec<u32> = (0..self.rows() as u32).step_by(self.rows().div_ceil(SAMPLE).max(1)).collect();
        let product = self.exact(&rows);
        let errors = rows.iter().zip(product.chunks_exact(k)).flat_map(|(&row, values)| {
            let row = row as usize;
            values.iter().enumerate().map(move |(class, value)| (value - self.sheet.score(row, class)).abs())
        });
        errors.fold(0.0, f64::max)
    }

    /// Puts q on the simplices of changed rows, V staying where it was as far as it can, and h up to date. `shapes` gives
    /// total, knots and base.
    pub(super) fn reshape(&mut self, shapes: impl Fn(usize, &mut [f64], &mut [f64]) -> f64 + Sync) {
        let k = self.sheet.classes;
        let scratch = || (vec![0.0; k], vec![0.0; k]);
        let differs = |(knots, base): &mut (Vec<f64>, Vec<f64>), row: &usize| {
            let total = shapes(*row, knots, base);
            let (old_base, old_knots) = (self.sheet.of(&self.base, *row), self.sheet.of(&self.sheet.knots, *row));
            total != self.sheet.total[*row] || base != old_base || knots != old_knots
        };
        let all = (0..self.rows()).into_par_iter().with_min_len(512);
        let changed = all.map_init(scratch, |scratch, row| differs(scratch, &row).then_some(row));
        let changed: Vec<usize> = changed.flatten().collect();
        let (mut rows, mut old) = (Vec::new(), Vec::new());
        let (mut knots, mut base) = scratch();
        for row in changed {
            let at = row * k..(row + 1) * k;
            let before: Vec<f64> = (0..k).map(|class| self.v(row, class)).collect();
            self.sheet.total[row] = shapes(row, &mut knots, &mut base);
            self.sheet.knots[at.clone()].copy_from_slice(&knots);
            self.base[at].copy_from_slice(&base);
            if let (true, Some(own)) = (self.sheet.total[row] > 0.0, knots.iter().position(|&knot| knot <= 0.0)) {
                self.sheet.own[row] = own as u32;
            }
            self.set_v(row, &before);
            if (0..k).any(|class| self.v(row, class) != before[class]) {
                rows.push(row as u32);
                old.extend(before);
            }
        }
        self.moved(&rows, &old);
    }

    /// q = base - V, put on the simplex.
    pub(super) fn set_v(&mut self, row: usize, v: &[f64]) {
        let k = self.sheet.classes;
        let total = self.sheet.total[row];
        let at = row * k;
        let mut sum = 0.0;
        for class in 0..k {
            let q = (self.base[at + class] - v[class]).clamp(0.0, total);
            self.sheet.q[at + class] = if q <= TINY * total { 0.0 } else { q };
            sum += self.sheet.q[at + class];
        }
        let q = &mut self.sheet.q[at..at + k];
        if !(sum > 0.0) {
            q.copy_from_slice(&self.base[at..at + k]);
        } else if sum != total {
            q.iter_mut().for_each(|q| *q *= total / sum);
        }
        self.tidy(row);
    }

    /// Makes a row of q sum to its total to the last digit.
    fn tidy(&mut self, row: usize) {
        let k = self.sheet.classes;
        tidy(&mut self.sheet.q[row * k..(row + 1) * k], self.sheet.total[row]);
    }

    /// Column sums of V, and a size to compare them with.
    fn imbalance(&self) -> (Vec<f64>, f64) {
        const PIECE: usize = 512;
        let k = self.sheet.classes;
        let pieces = self.base.par_chunks(PIECE * k).zip(self.sheet.q.par_chunks(PIECE * k));
        let of_piece = |(base, q): (&[f64], &[f64])| {
            let (mut sums, mut size) = (vec![0.0; k], 0.0);
            for (base, q) in base.chunks_exact(k).zip(q.chunks_exact(k)) {
                for class in 0..k {
                    let v = base[class] - q[class];
                    sums[class] += v;
                    size += v.abs();
                }
            }
            (sums, size)
        };
        let parts: Vec<(Vec<f64>, f64)> = pieces.map(of_piece).collect();
        let (mut sums, mut size) = (vec![0.0; k], 0.0);
        for part in parts {
            sums.iter_mut().zip(part.0).for_each(|(sum, part)| *sum += part);
            size += part.1;
        }
        (sums, size)
    }

    /// Brings the column sums of V back to 0: mass goes from the class with most too much to the one with most too little,
    /// in the rows where that gains most, with h kept current inside a block of candidates.
    pub(super) fn balance(&mut self) {
        const CANDIDATES: usize = 512;
        let rows = self.sheet.q.par_chunks_exact_mut(self.sheet.classes).zip(&self.sheet.total);
        rows.with_min_len(512).for_each(|(q, total)| tidy(q, *total));
        if !self.balanced {
            return;
        }
        let k = self.sheet.classes;
        for _ in 0..4 * k + self.rows().div_ceil(CANDIDATES) {
            let (sums, size) = self.imbalance();
            let (mut from, mut to) = (0, 0);
            for class in 0..k {
                from = if sums[class] < sums[from] { class } else { from };
                to = if sums[class] > sums[to] { class } else { to };
            }
            let mut left = sums[to].min(-sums[from]);
            if !(left > 1e-13 * size) {
                break;
            }
            let sheet = &self.sheet;
            let mut keys: Vec<(f64, u32)> = (0..sheet.rows())
                .filter(|&row| sheet.q[row * k + from] > 0.0)
                .map(|row| (sheet.gain(row, from, to), row as u32))
                .collect();
            if keys.len() > CANDIDATES {
                keys.select_nth_unstable_by(CANDIDATES, |a, b| b.0.total_cmp(&a.0));
                keys.truncate(CANDIDATES);
            }
            let rows: Vec<u32> = keys.iter().map(|key| key.1).collect();
            let packed = self.gram.pack(&rows, 0);
            let mut kernel = Aligned::default();
            self.gram.block(&packed, &mut kernel);
            let stride = packed.padded();
            let old: Vec<f64> = rows
                .iter()
                .flat_map(|&row| (0..k).map(move |class| (row as usize, class)))
                .map(|(row, class)| self.v(row, class))
                .collect();
            // what h_to - h_from of the candidates has changed by
            let mut shift = vec![0.0; rows.len()];
            let mut touched = vec![false; rows.len()];
            while left > 0.0 {
                let sheet = &self.sheet;
                let gain = |at: usize| sheet.gain(rows[at] as usize, from, to) + shift[at];
                let open = (0..rows.len()).filter(|&at| sheet.q[rows[at] as usize * k + from] > 0.0);
                let Some((at, _)) = open.map(|at| (at, gain(at))).max_by(|a, b| a.1.total_cmp(&b.1)) else { break };
                let row = rows[at] as usize;
                let mass = self.sheet.room(row, from, to).min(left);
                self.sheet.shift(row, from, to, mass);
                touched[at] = true;
                left -= mass;
                for (shift, value) in shift.iter_mut().zip(&kernel[at * stride..]) {
                    *shift -= 2.0 * mass * f64::from(*value);
                }
            }
            let chosen: Vec<usize> = (0..rows.len()).filter(|&at| touched[at]).collect();
            let moved: Vec<u32> = chosen.iter().map(|&at| rows[at]).collect();
            let old: Vec<f64> = chosen.iter().flat_map(|&at| old[at * k..(at + 1) * k].iter().copied()).collect();
            self.moved(&moved, &old);
        }
    }
}

/// Makes a row of q sum to its total to the last digit.
fn tidy(q: &mut [f64], total: f64) {
    let largest = (0..q.len()).fold(0, |best, class| if q[class] > q[best] { class } else { best });
    q[largest] = 0.0;
    q[largest] = (total - q.iter().sum::<f64>()).max(0.0);
}
