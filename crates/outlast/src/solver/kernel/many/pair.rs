//! Two classes of many: the problem between them, in which only their two columns of K V move.
//!
//! With r_i = q_ia + q_ib fixed per row, x_i = q_ib solves a two-class problem with matrix 2 K, box [0, r_i], the sum of x
//! fixed (or free, without intercept), and kinks at x = knot_b and x = r - knot_a. Halved, its gradient is
//! F_i = (lower_ia - raise_ib) / 2 and its matrix K, so the two-class block solver takes it. Pairs without a common class
//! touch different columns and rows' entries: they are independent and run in parallel.

use super::super::ranges::Ranges;
use super::gains::Support;
use super::sheet::{Sheet, TINY, snap};

/// A dense matrix on the rows of a sheet.
pub(super) trait Matrix: Sync {
    /// Reduction of the residual's square that a step on the face of free entries aims at.
    const ENOUGH: f64;

    /// Iterations such a step may take.
    const MOST: usize;

    /// Sweeps without a clear fall of the violation after which such a step is worth its price.
    fn patience(&self, classes: usize) -> usize;

    /// K_ij
    fn value(&self, i: usize, j: usize) -> f64;

    /// sum_r moves_r K[., rows_r]
    fn combine(&self, rows: &[u32], moves: &[f64]) -> Vec<f64>;

    /// h_class += factor (K[plus, .] - K[minus, .])
    fn add_difference(&self, plus: usize, minus: usize, factor: f64, sheet: &mut Sheet, class: usize);

    /// Minimises the problem on some rows, and one more without matrix entries, the anchor, where `ranges` has it.
    fn minimize(
        &self,
        rows: &[u32],
        ranges: Ranges,
        x: &mut [f64],
        gradient: &[f64],
        eps: f64,
        stop: &(dyn Fn() -> bool + Sync),
    );
}

/// Most rows of a pair's problem.
const LARGEST: usize = 1024;

/// Rows whose gain falls short of what a partner needs by up to this share of the violation are taken along: F moves.
const SLACK: f64 = 0.3;

/// What a pair's problem changed: q_ib of some rows, and the columns of K V.
pub(super) struct Moves {
    from: usize,
    to: usize,
    rows: Vec<u32>,
    /// New q_ia and q_ib.
    values: Vec<[f64; 2]>,
    /// What is added to column `from`, and taken off column `to`.
    column: Vec<f64>,
}

impl Moves {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn apply(self, sheet: &mut Sheet, support: &mut Support) {
        let k = sheet.classes;
        for (&row, values) in self.rows.iter().zip(&self.values) {
            for (class, value) in [self.from, self.to].into_iter().zip(*values) {
                sheet.q[row as usize * k + class] = value;
                support.set(row as usize, class, value > 0.0);
            }
        }
        if !self.is_empty() {
            sheet.add_column(self.from, self.to, &self.column);
        }
    }
}

/// Solves the problem between classes a and b, whose `members` are known, to a violation of `eps`.
#[allow(clippy::too_many_arguments)]
pub(super) fn solve<M: Matrix>(
    sheet: &Sheet,
    members: &[Vec<u32>],
    matrix: &M,
    (a, b): (usize, usize),
    balanced: bool,
    share: f64,
    eps: f64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Moves {
    let k = sheet.classes;
    let mut moves = Moves { from: a, to: b, rows: Vec::new(), values: Vec::new(), column: Vec::new() };
    let (rows, violation) = relevant(sheet, members, a, b, balanced);
    if !(violation > eps) {
        return moves;
    }
    let problem = Problem::new(sheet, &rows, a, b, !balanced);
    let mut x = problem.x.clone();
    matrix.minimize(&rows, problem.ranges(), &mut x, &problem.gradient, (share * violation).max(eps), stop);
    let mut changes = Vec::new();
    for ((&row, &x), &old) in rows.iter().zip(&x).zip(&problem.x) {
        let at = row as usize * k;
        if x == old {
            continue;
        }
        let tiny = TINY * sheet.total[row as usize];
        let sum = sheet.q[at + a] + sheet.q[at + b];
        let to = snap(x, sheet.knots[at + b], tiny);
        let from = snap(sum - to, sheet.knots[at + a], tiny);
        let to = if from == 0.0 { sum } else { to };
        let change = to - sheet.q[at + b];
        if change != 0.0 {
            moves.rows.push(row);
            moves.values.push([from, to]);
            changes.push(change);
        }
    }
    if !moves.is_empty() {
        moves.column = matrix.combine(&moves.rows, &changes);
    }
    moves
}

/// Rows that can gain in exchange with another (or alone, without intercept), and the violation, in units of F.
fn relevant(sheet: &Sheet, members: &[Vec<u32>], a: usize, b: usize, balanced: bool) -> (Vec<u32>, f64) {
    let k = sheet.classes;
    // gains of the moves from one class to the other; members may have lost their mass since they were listed
    let moves = |from: usize, to: usize| -> Vec<(f64, u32)> {
        let mut list = Vec::with_capacity(members[from].len());
        for &row in members[from].iter().filter(|&&row| sheet.q[row as usize * k + from] > 0.0) {
            list.push((sheet.gain(row as usize, from, to), row));
        }
        list
    };
    let (mut forth, mut back) = (moves(a, b), moves(b, a));
    let largest = |list: &[(f64, u32)]| list.iter().fold(f64::NEG_INFINITY, |largest, entry| largest.max(entry.0));
    let (most_forth, most_back) = (largest(&forth), largest(&back));
    let (need_forth, need_back) = if balanced { (-most_back, -most_forth) } else { (0.0, 0.0) };
    let violation = if balanced { 0.5 * (most_forth + most_back) } else { 0.5 * most_forth.max(most_back) };
    if !(violation > 0.0) || !violation.is_finite() {
        return (Vec::new(), 0.0);
    }
    let slack = 2.0 * SLACK * violation;
    for (list, need) in [(&mut forth, need_forth), (&mut back, need_back)] {
        list.retain(|entry| entry.0 > need - slack);
        if list.len() > LARGEST / 2 {
            list.select_nth_unstable_by(LARGEST / 2, |x, y| y.0.total_cmp(&x.0));
            list.truncate(LARGEST / 2);
        }
    }
    let mut rows: Vec<u32> = forth.into_iter().chain(back).map(|entry| entry.1).collect();
    rows.sort_unstable();
    rows.dedup();
    (rows, violation)
}

/// The two-class problem.
struct Problem {
    x: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    gradient: Vec<f64>,
    kinks: Vec<[f64; 2]>,
}

impl Problem {
    fn new(sheet: &Sheet, rows: &[u32], a: usize, b: usize, anchor: bool) -> Problem {
        let mut problem = Problem {
            x: Vec::new(),
            lower: vec![0.0; rows.len()],
            upper: Vec::new(),
            gradient: Vec::new(),
            kinks: Vec::new(),
        };
        for &row in rows {
            let row = row as usize;
            let (q, knots) = (sheet.of(&sheet.q, row), sheet.of(&sheet.knots, row));
            let sum = q[a] + q[b];
            problem.upper.push(sum);
            if sheet.straight {
                problem.gradient.push(-0.5 * sheet.gain(row, a, b));
                problem.x.push(q[b]);
                continue;
            }
            problem.gradient.push(0.5 * (sheet.lower(row, a) - sheet.raise(row, b)));
            // a position next to a kink is at it
            let tiny = TINY * sheet.total[row];
            let (mut first, mut second) = (knots[b], sum - knots[a]);
            if (q[b] - first).abs() <= tiny {
                first = q[b];
            }
            if (q[a] - knots[a]).abs() <= tiny {
                second = q[b];
            }
            problem.x.push(q[b]);
            problem.kinks.push([first.min(second), first.max(second)]);
        }
        if anchor {
            problem.x.push(0.0);
            problem.gradient.push(0.0);
            problem.lower.push(f64::NEG_INFINITY);
            problem.upper.push(f64::INFINITY);
        }
        problem
    }

    fn ranges(&self) -> Ranges<'_> {
        Ranges { lower: &self.lower, upper: &self.upper, kinks: &self.kinks, jump: 0.5 }
    }
}
