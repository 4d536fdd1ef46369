//! The quadratic model of one Newton step, with the penalty as it is:
//!
//! ```text
//! min over u   g'(u - w) + 1/2 (u - w)'(H + shift I)(u - w) + sum rate |u|,       sum_j u_sj = 0 for each column s
//! ```
//!
//! (the constraint with several functions only). Sweeps of coordinate descent, which with several functions move two
//! entries of a column against each other, find the signs; then a Cholesky factor of the entries that are not 0 minimises over
//! them at once. Entries that would change their sign are set to 0 together if that goes down, else the step ends at
//! the first of them. Both are repeated until a round gains little.

use super::gram::Gram;
use crate::linalg::{Isa, solve_one};
use faer::linalg::solvers::Llt;
use faer::{Mat, Side};

/// Most rounds of sweeps and a face step.
const ROUNDS: usize = 30;
const SWEEPS: usize = 2;
/// Share of the whole gain below which a round counts as the last.
const ENOUGH: f64 = 5e-2;

/// Lengths at which entries that crossed 0 are set to 0 together, before the step ends at the first of them.
const LENGTHS: [f64; 4] = [1.0, 0.5, 0.2, 0.05];

/// Vectors are function-major: entry (function, slot) at function p + slot.
pub(super) struct Model<'a> {
    pub(super) gram: &'a Gram,
    /// H is this times the Gram matrix.
    pub(super) scale: f64,
    pub(super) shift: f64,
    pub(super) functions: usize,
    pub(super) slots: usize,
    pub(super) isa: Isa,
    /// An infinite rate fixes its entry.
    pub(super) rates: &'a [f64],
    pub(super) point: Vec<f64>,
    /// Gradient of the quadratic part at the point.
    pub(super) slope: Vec<f64>,
    /// Multiplications spent.
    pub(super) work: f64,
}

/// An entry that is free on a face, and the entry of its column that moves against it.
#[derive(PartialEq)]
struct Free {
    slot: usize,
    function: usize,
    against: Option<usize>,
}

/// A face: its entries, and the factor of H there.
struct Face {
    free: Vec<Free>,
    factor: Llt<f64>,
}

impl Model<'_> {
    /// Minimises; returns how much the model fell.
    pub(super) fn minimize(&mut self) -> f64 {
        let (mut total, mut face) = (0.0, None);
        for _ in 0..ROUNDS {
            let swept: f64 = (0..SWEEPS).map(|_| self.sweep()).sum();
            total += swept;
            let gained = self.face(&mut face);
            total += gained;
            if !(swept + gained > ENOUGH * total) || gained == 0.0 && swept <= 0.1 * total {
                break;
            }
        }
        total
    }

    fn curvature(&self, one: usize, other: usize, slot: usize, with: usize) -> f64 {
        let shift = if slot == with && one == other { self.shift } else { 0.0 };
        self.scale * self.gram.at(one, other, slot, with) + shift
    }

    fn shift_entry(&mut self, function: usize, slot: usize, by: f64) {
        self.point[function * self.slots + slot] += by;
        self.work += self.point.len() as f64;
        let mut slope = std::mem::take(&mut self.slope);
        self.add_image(function, slot, by, &mut slope);
        self.slope = slope;
    }

    /// out += by (H + shift I) e, e the unit vector of an entry.
    fn add_image(&self, function: usize, slot: usize, by: f64, out: &mut [f64]) {
        let p = self.slots;
        out[function * p + slot] += self.shift * by;
        let by = self.scale * by;
        for other in (0..self.functions).filter(|&other| !self.gram.is_empty(function, other)) {
            let (row, out) = (self.gram.row(function, other, slot), &mut out[other * p..(other + 1) * p]);
            self.isa.run(
                #[inline(always)]
                || out.iter_mut().zip(row).for_each(|(out, h)| *out += by * h),
            );
        }
    }

    /// One pass over all columns; returns how much the model fell.
    fn sweep(&mut self) -> f64 {
        match self.functions {
            1 => (0..self.slots).map(|slot| self.move_one(slot)).sum(),
            functions => (0..self.slots).map(|slot| (0..functions).map(|_| self.move_two(slot)).sum::<f64>()).sum(),
        }
    }

    fn move_one(&mut self, slot: usize) -> f64 {
        let (rate, old, slope) = (self.rates[slot], self.point[slot], self.slope[slot]);
        if rate == f64::INFINITY || old == 0.0 && slope.abs() <= rate {
            return 0.0;
        }
        let h = self.curvature(0, 0, slot, slot);
        let (target, width) = (old - slope / h, rate / h);
        let new = target.signum() * (target.abs() - width).max(0.0);
        let by = new - old;
        if by == 0.0 {
            return 0.0;
        }
        self.shift_entry(0, slot, by);
        self.point[slot] = new;
        -(by * (slope + 0.5 * h * by) + rate * (new.abs() - old.abs()))
    }

    /// Moves the two entries of a column that gain most against each other.
    fn move_two(&mut self, slot: usize) -> f64 {
        let p = self.slots;
        let Some((up, down)) = self.steepest_pair(slot) else { return 0.0 };
        let (at, against) = (up * p + slot, down * p + slot);
        let h = self.curvature(up, up, slot, slot) + self.curvature(down, down, slot, slot)
            - 2.0 * self.curvature(up, down, slot, slot);
        let slope = self.slope[at] - self.slope[against];
        let (old, other) = (self.point[at], self.point[against]);
        let by = exchange(slope, h, (self.rates[at], old), (self.rates[against], other));
        if !(by.abs() > 0.0) || !by.is_finite() {
            return 0.0;
        }
        self.shift_entry(up, slot, by);
        self.shift_entry(down, slot, -by);
        let penalty = self.rates[at] * (self.point[at].abs() - old.abs())
            + self.rates[against] * (self.point[against].abs() - other.abs());
        -(by * (slope + 0.5 * h * by) + penalty)
    }

    /// The entries whose rise and fall together go down most steeply, if any do.
    fn steepest_pair(&self, slot: usize) -> Option<(usize, usize)> {
        let p = self.slots;
        let rise = |function: usize| {
            let at = function * p + slot;
            self.slope[at] + if self.point[at] >= 0.0 { self.rates[at] } else { -self.rates[at] }
        };
        let fall = |function: usize| {
            let at = function * p + slot;
            -self.slope[at] + if self.point[at] > 0.0 { -self.rates[at] } else { self.rates[at] }
        };
        let finite = || (0..self.functions).filter(|function| self.rates[function * p + slot] < f64::INFINITY);
        let least = |of: &dyn Fn(usize) -> f64, but: Option<usize>| {
            finite().filter(|&function| Some(function) != but).min_by(|&a, &b| of(a).total_cmp(&of(b)))
        };
        let first = least(&rise, None)?;
        let with = least(&fall, Some(first))?;
        let second = least(&fall, None)?;
        let other = least(&rise, Some(second))?;
        let (up, down) =
            if rise(first) + fall(with) <= rise(other) + fall(second) { (first, with) } else { (other, second) };
        (rise(up) + fall(down) < 0.0).then_some((up, down))
    }

    /// The entries that are not 0 or cost nothing; with several functions, one of each column moves against the others.
    fn free_entries(&self) -> Vec<Free> {
        let p = self.slots;
        let is_free = |at: usize| self.point[at] != 0.0 || self.rates[at] == 0.0;
        let mut free = Vec::new();
        for slot in 0..p {
            let against = if self.functions == 1 {
                None
            } else {
                // one without a sign to keep, else the largest
                let size = |function: &usize| {
                    let at = function * p + slot;
                    if self.rates[at] == 0.0 { f64::INFINITY } else { self.point[at].abs() }
                };
                let among = (0..self.functions).filter(|function| is_free(function * p + slot));
                let largest = among.max_by(|a, b| size(a).total_cmp(&size(b)));
                if largest.is_none() {
                    continue;
                }
                largest
            };
            for function in (0..self.functions).filter(|&function| Some(function) != against) {
                if is_free(function * p + slot) {
                    free.push(Free { slot, function, against });
                }
            }
        }
        free
    }

    fn reduced_matrix(&self, free: &[Free]) -> Mat<f64> {
        let (p, size) = (self.slots, free.len());
        let mut matrix = Mat::zeros(size, size);
        if self.functions == 1 && !self.gram.is_empty(0, 0) {
            for (column, b) in free.iter().enumerate() {
                let row = self.gram.row(0, 0, b.slot);
                let out = &mut matrix.col_as_slice_mut(column)[column..];
                out.iter_mut().zip(&free[column..]).for_each(|(out, a)| *out = self.scale * row[a.slot]);
                out[0] += self.shift;
            }
            return matrix;
        }
        let mut image = vec![0.0; self.point.len()];
        for (column, b) in free.iter().enumerate() {
            image.fill(0.0);
            self.add_image(b.function, b.slot, 1.0, &mut image);
            if let Some(against) = b.against {
                self.add_image(against, b.slot, -1.0, &mut image);
            }
            let out = &mut matrix.col_as_slice_mut(column)[column..];
            for (out, a) in out.iter_mut().zip(&free[column..]) {
                let against = a.against.map_or(0.0, |function| image[function * p + a.slot]);
                *out = image[a.function * p + a.slot] - against;
            }
        }
        matrix
    }

    /// Slope of the whole model along the face.
    fn face_slope(&self, function: usize, slot: usize) -> f64 {
        let at = function * self.slots + slot;
        let rate = self.rates[at];
        // the entry moving against others may be 0 with a rate of 0
        self.slope[at] + if rate == 0.0 { 0.0 } else { rate * self.point[at].signum() }
    }

    /// Minimises over the entries that are not 0; returns how much the model fell. `last` is the face of the last time, whose factor
    /// serves again if it is the same.
    fn face(&mut self, last: &mut Option<Face>) -> f64 {
        let p = self.slots;
        let free = self.free_entries();
        if free.is_empty() {
            return 0.0;
        }
        self.work += (free.len() as f64).powi(3) / 3.0 + (free.len() * self.point.len() * self.functions) as f64;
        if last.as_ref().is_none_or(|face| face.free != free) {
            let Ok(factor) = self.reduced_matrix(&free).llt(Side::Lower) else { return 0.0 };
            *last = Some(Face { free, factor });
        }
        let Some(Face { free, factor }) = last else { return 0.0 };
        let downhill = |entry: &Free| {
            let against = entry.against.map_or(0.0, |function| self.face_slope(function, entry.slot));
            against - self.face_slope(entry.function, entry.slot)
        };
        let mut solution: Vec<f64> = free.iter().map(downhill).collect();
        solve_one(factor, &mut solution);
        let mut direction = vec![0.0; self.point.len()];
        for (entry, by) in free.iter().zip(solution) {
            direction[entry.function * p + entry.slot] += by;
            if let Some(function) = entry.against {
                direction[function * p + entry.slot] -= by;
            }
        }
        if direction.iter().any(|by| !by.is_finite()) {
            return 0.0;
        }
        self.follow(&direction)
    }

    /// Goes along a direction as far as signs allow.
    fn follow(&mut self, direction: &[f64]) -> f64 {
        let p = self.slots;
        let mut image = vec![0.0; direction.len()];
        for (at, &by) in direction.iter().enumerate().filter(|(_, by)| **by != 0.0) {
            self.add_image(at / p, at % p, by, &mut image);
        }
        let full = self.reached(direction, 1.0);
        let all = self.crossed(&full);
        if all.is_empty() {
            return self.try_target(full, &image, direction, 1.0);
        }
        for length in LENGTHS {
            let mut target = self.reached(direction, length);
            let crossed = self.crossed(&target);
            if crossed.len() < 2 && length < 1.0 {
                break;
            }
            self.clear(&mut target, &crossed);
            let gained = self.try_target(target, &image, direction, length);
            if gained > 0.0 {
                return gained;
            }
        }
        let reach = |at: usize| -self.point[at] / direction[at];
        let Some(&first) = all.iter().min_by(|&&a, &&b| reach(a).total_cmp(&reach(b))) else { return 0.0 };
        let length = reach(first);
        let mut target = self.reached(direction, length);
        target[first] = 0.0;
        self.clear(&mut target, &[first]);
        self.try_target(target, &image, direction, length)
    }

    fn reached(&self, direction: &[f64], length: f64) -> Vec<f64> {
        self.point.iter().zip(direction).map(|(point, by)| point + length * by).collect()
    }

    /// Entries with a sign to keep that have lost it.
    fn crossed(&self, target: &[f64]) -> Vec<usize> {
        (0..target.len()).filter(|&at| self.rates[at] > 0.0 && self.point[at] * target[at] < 0.0).collect()
    }

    /// Sets entries that crossed 0 to 0; with several functions the nearest point of the column with sum 0 and the signs
    /// of the current point.
    fn clear(&self, target: &mut [f64], crossed: &[usize]) {
        if self.functions == 1 {
            crossed.iter().for_each(|&at| target[at] = 0.0);
            return;
        }
        let p = self.slots;
        for &at in crossed {
            let column: Vec<usize> = (0..self.functions).map(|function| function * p + at % p).collect();
            let movable: Vec<(usize, f64)> = column
                .into_iter()
                .filter(|&at| self.point[at] != 0.0 || self.rates[at] == 0.0)
                .map(|at| (at, if self.rates[at] == 0.0 { 0.0 } else { self.point[at].signum() }))
                .collect();
            let values: Vec<(f64, f64)> = movable.iter().map(|&(at, sign)| (target[at], sign)).collect();
            for ((at, _), value) in movable.into_iter().zip(nearest(&values)) {
                target[at] = value;
            }
        }
    }

    /// Goes to a target, which lies near point + length direction, if the model falls; returns by how much.
    fn try_target(&mut self, target: Vec<f64>, image: &[f64], direction: &[f64], length: f64) -> f64 {
        let p = self.slots;
        let mut slope: Vec<f64> = self.slope.iter().zip(image).map(|(slope, image)| slope + length * image).collect();
        let (mut change, mut penalty) = (0.0, 0.0);
        for at in 0..target.len() {
            let by = target[at] - self.point[at];
            let beside = by - length * direction[at];
            // what was not along the direction; rounding is left out
            if beside.abs() > 1e-15 * self.point[at].abs() {
                self.add_image(at / p, at % p, beside, &mut slope);
            }
            if by != 0.0 {
                penalty += self.rates[at] * (target[at].abs() - self.point[at].abs());
            }
        }
        for at in 0..target.len() {
            change += 0.5 * (target[at] - self.point[at]) * (slope[at] + self.slope[at]);
        }
        let gained = -(change + penalty);
        if gained > 0.0 {
            self.point = target;
            self.slope = slope;
            return gained;
        }
        0.0
    }
}

/// The nearest point with sum 0 to values with given signs: +1 and -1 must be kept (0 is allowed), 0 means any.
fn nearest(values: &[(f64, f64)]) -> Vec<f64> {
    let at = |level: f64| {
        values.iter().map(move |&(value, sign)| {
            let moved = value - level;
            if sign * moved < 0.0 { 0.0 } else { moved }
        })
    };
    // the sum falls with the level, and is linear between the levels at which an entry is 0
    let sum = |level: f64| at(level).sum::<f64>();
    let mut levels: Vec<f64> = values.iter().map(|(value, _)| *value).collect();
    levels.sort_by(f64::total_cmp);
    let above = levels.iter().position(|&level| sum(level) <= 0.0);
    let (low, high) = match above {
        None => (levels[levels.len() - 1], None),
        Some(0) => (levels[0], None),
        Some(index) => (levels[index - 1], Some(levels[index])),
    };
    let level = match high {
        Some(high) if sum(low) > sum(high) => low + (high - low) * sum(low) / (sum(low) - sum(high)),
        Some(high) => high,
        // beyond the ends all entries of one sign are 0, and the sum is linear if anything is left
        None => {
            let beyond = if above.is_none() { low + 1.0 } else { low - 1.0 };
            let (here, there) = (sum(low), sum(beyond));
            if here == there { low } else { low + (beyond - low) * here / (here - there) }
        }
    };
    let mut result: Vec<f64> = at(level).collect();
    // the entry at whose own level the sum vanishes is exactly 0
    for (result, (value, sign)) in result.iter_mut().zip(values) {
        if *sign != 0.0 && (value - level) * sign <= 0.0 {
            *result = 0.0;
        }
    }
    result
}

/// argmin over t of slope t + h t^2 / 2 + r |a + t| + s |b - t|, for (r, a) and (s, b).
fn exchange(slope: f64, h: f64, (r, a): (f64, f64), (s, b): (f64, f64)) -> f64 {
    let mut kinks = [(-a, 2.0 * r), (b, 2.0 * s)];
    if kinks[0].0 > kinks[1].0 {
        kinks.swap(0, 1);
    }
    let mut slope = slope - r - s;
    for (kink, jump) in kinks {
        if -slope / h <= kink {
            return -slope / h;
        }
        slope += jump;
        if -slope / h < kink {
            return kink;
        }
    }
    -slope / h
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_column_keeps_signs_and_sum() {
        for k in 0..500u32 {
            let number = |m: u32| f64::from((k * m + m) % 23) / 5.0 - 2.0;
            let signs = [1.0, -1.0, 0.0, if k % 2 == 0 { 1.0 } else { -1.0 }];
            let count = if k % 3 == 0 { 2 } else { 4 };
            let values: Vec<(f64, f64)> = (0..count).map(|j| (number(3 + 4 * j as u32), signs[j])).collect();
            let found = nearest(&values);
            assert!(found.iter().sum::<f64>().abs() < 1e-12, "{values:?} {found:?}");
            assert!(found.iter().zip(&values).all(|(u, (_, sign))| u * sign >= 0.0), "{values:?} {found:?}");
            let distance = |u: &[f64]| u.iter().zip(&values).map(|(u, (value, _))| (u - value).powi(2)).sum::<f64>();
            for one in 0..count {
                for other in 0..count {
                    let mut moved = found.clone();
                    moved[one] += 1e-3;
                    moved[other] -= 1e-3;
                    if moved.iter().zip(&values).all(|(u, (_, sign))| u * sign >= 0.0) {
                        assert!(distance(&found) <= distance(&moved) + 1e-12, "{values:?} {found:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_exchange_is_the_minimum() {
        for k in 0..2000u32 {
            let number = |m: u32| f64::from((k * m) % 17) / 4.0 - 2.0;
            let (slope, h) = (3.0 * number(3), 0.1 + number(5).abs());
            let (r, s) = (number(7).abs(), number(11).abs());
            let (a, b) = (number(13), number(2));
            let value = |t: f64| slope * t + 0.5 * h * t * t + r * (a + t).abs() + s * (b - t).abs();
            let best = exchange(slope, h, (r, a), (s, b));
            for step in [1e-4, 1e-2, 1.0] {
                assert!(value(best) <= value(best + step) + 1e-12 && value(best) <= value(best - step) + 1e-12);
            }
        }
    }
}
