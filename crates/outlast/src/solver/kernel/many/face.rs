//! Steps on the face of free entries, for matrices so alike in their rows that pairs of classes move by inches.
//!
//! Entries strictly between bounds and knots may move either way at one rate. With all others fixed, the best move d
//! maximises s.d - 1/2 sum_j d_j'K d_j, s the scores, with d summing to 0 over each row and, if the intercepts are free,
//! over each class. Conjugate gradients on that subspace: O(free rows x rows) per class and iteration, and no more iterations
//! than the kernel has clearly different directions. The step ends at the first bound or knot it meets.

use super::pair::Matrix;
use super::sheet::{Sheet, TINY, snap};

/// A pivot below this share of the largest is rounding.
const FLAT: f64 = 1e-10;

/// The free entries of the rows that have two or more.
struct Face {
    classes: usize,
    rows: Vec<u32>,
    /// Row number r has the classes[starts[r]..starts[r + 1]].
    starts: Vec<usize>,
    entries: Vec<u32>,
    /// L of the column constraints' matrix, unit diagonal left out, and its pivots; empty without them.
    factor: Vec<f64>,
    pivots: Vec<f64>,
}

impl Face {
    fn new(sheet: &Sheet, balanced: bool) -> Face {
        let k = sheet.classes;
        let mut face = Face {
            classes: k,
            rows: Vec::new(),
            starts: vec![0],
            entries: Vec::new(),
            factor: Vec::new(),
            pivots: Vec::new(),
        };
        for row in 0..sheet.rows() {
            let tiny = TINY * sheet.total[row];
            let (q, knots) = (sheet.of(&sheet.q, row), sheet.of(&sheet.knots, row));
            let free = (0..k).filter(|&class| q[class] > tiny && (q[class] - knots[class]).abs() > tiny);
            face.entries.extend(free.map(|class| class as u32));
            if face.entries.len() < face.starts[face.rows.len()] + 2 {
                face.entries.truncate(face.starts[face.rows.len()]);
                continue;
            }
            face.rows.push(row as u32);
            face.starts.push(face.entries.len());
        }
        if balanced {
            face.factorise();
        }
        face
    }

    /// (number, entries) of each row.
    fn segments(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        self.starts.windows(2).map(|pair| pair[0]..pair[1])
    }

    /// L D L' of the matrix of the column constraints with the row constraints eliminated.
    fn factorise(&mut self) {
        let k = self.classes;
        let mut matrix = vec![0.0; k * k];
        for range in self.segments() {
            let share = 1.0 / range.len() as f64;
            for &a in &self.entries[range.clone()] {
                matrix[a as usize * (k + 1)] += 1.0;
                self.entries[range.clone()].iter().for_each(|&b| matrix[a as usize * k + b as usize] -= share);
            }
        }
        let largest = (0..k).map(|class| matrix[class * (k + 1)]).fold(0.0, f64::max);
        self.pivots = vec![0.0; k];
        for j in 0..k {
            let pivot = matrix[j * (k + 1)];
            if pivot <= FLAT * largest {
                (j + 1..k).for_each(|i| matrix[i * k + j] = 0.0);
                continue;
            }
            self.pivots[j] = pivot;
            for i in j + 1..k {
                matrix[i * k + j] /= pivot;
            }
            for i in j + 1..k {
                for l in j + 1..=i {
                    matrix[i * k + l] -= matrix[i * k + j] * pivot * matrix[l * k + j];
                }
            }
        }
        self.factor = matrix;
    }

    /// Solves for the column multipliers; those without a pivot are 0.
    fn solve(&self, mut values: Vec<f64>) -> Vec<f64> {
        let k = self.classes;
        for j in 0..k {
            for i in j + 1..k {
                values[i] -= self.factor[i * k + j] * values[j];
            }
        }
        for (value, pivot) in values.iter_mut().zip(&self.pivots) {
            *value = if *pivot > 0.0 { *value / pivot } else { 0.0 };
        }
        for j in (0..k).rev() {
            for i in j + 1..k {
                values[j] -= self.factor[i * k + j] * values[i];
            }
        }
        values
    }

    /// The nearest point whose rows, and columns if constrained, sum to 0.
    fn project(&self, values: &mut [f64]) {
        self.centre(values);
        if self.factor.is_empty() {
            return;
        }
        let mut sums = vec![0.0; self.classes];
        values.iter().zip(&self.entries).for_each(|(value, &class)| sums[class as usize] += value);
        let multipliers = self.solve(sums);
        values.iter_mut().zip(&self.entries).for_each(|(value, &class)| *value -= multipliers[class as usize]);
        self.centre(values);
    }

    fn centre(&self, values: &mut [f64]) {
        for range in self.segments() {
            let mean = values[range.clone()].iter().sum::<f64>() / range.len() as f64;
            values[range].iter_mut().for_each(|value| *value -= mean);
        }
    }

    /// Of each class, the rows with entries and the entries' values.
    fn columns(&self, values: &[f64]) -> Vec<(Vec<u32>, Vec<f64>)> {
        let mut columns = vec![(Vec::new(), Vec::new()); self.classes];
        for (range, &row) in self.segments().zip(&self.rows) {
            for at in range {
                let column = &mut columns[self.entries[at] as usize];
                column.0.push(row);
                column.1.push(values[at]);
            }
        }
        columns
    }

    /// K times the columns, at the entries.
    fn multiply<M: Matrix>(&self, matrix: &M, values: &[f64]) -> Vec<f64> {
        let columns = self.columns(values);
        let products: Vec<Vec<f64>> = columns
            .iter()
            .map(|(rows, values)| if rows.is_empty() { Vec::new() } else { matrix.combine(rows, values) })
            .collect();
        let mut out = vec![0.0; values.len()];
        for (range, &row) in self.segments().zip(&self.rows) {
            range.for_each(|at| out[at] = products[self.entries[at] as usize][row as usize]);
        }
        out
    }

    /// The move that maximises the gain.
    fn best_move<M: Matrix>(&self, matrix: &M, mut residual: Vec<f64>) -> Vec<f64> {
        let square = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
        let rounding = 1e-28 * square(&residual);
        self.project(&mut residual);
        let mut d = vec![0.0; residual.len()];
        let mut direction = residual.clone();
        let first = square(&residual);
        let mut current = first;
        for _ in 0..M::MOST {
            if !(current > (M::ENOUGH * first).max(rounding)) {
                break;
            }
            let mut product = self.multiply(matrix, &direction);
            self.project(&mut product);
            let curvature: f64 = direction.iter().zip(&product).map(|(a, b)| a * b).sum();
            if !(curvature > 1e-12 * square(&direction)) {
                break;
            }
            let step = current / curvature;
            for at in 0..d.len() {
                d[at] += step * direction[at];
                residual[at] -= step * product[at];
            }
            let next = square(&residual);
            let ratio = next / current;
            direction.iter_mut().zip(&residual).for_each(|(direction, r)| *direction = r + ratio * *direction);
            current = next;
        }
        // what rounding left of the sums, large steps along flat directions having magnified it
        self.project(&mut d);
        d
    }
}

/// One step. Returns whether anything moved.
pub(super) fn descend<M: Matrix>(sheet: &mut Sheet, matrix: &M, balanced: bool) -> bool {
    let k = sheet.classes;
    let face = Face::new(sheet, balanced);
    if face.rows.is_empty() {
        return false;
    }
    let mut scores = Vec::with_capacity(face.entries.len());
    for (range, &row) in face.segments().zip(&face.rows) {
        scores.extend(face.entries[range].iter().map(|&class| sheet.lower(row as usize, class as usize)));
    }
    let mut d = face.best_move(matrix, scores.clone());
    if !(d.iter().zip(&scores).map(|(d, s)| d * s).sum::<f64>() > 0.0) {
        return false;
    }
    // to the first bound or knot
    let mut share = 1.0f64;
    for (range, &row) in face.segments().zip(&face.rows) {
        for at in range {
            let place = row as usize * k + face.entries[at] as usize;
            let (q, knot) = (sheet.q[place], sheet.knots[place]);
            let room = match d[at] > 0.0 {
                true if q < knot => knot - q,
                true => f64::INFINITY,
                false if q > knot => q - knot,
                false => q,
            };
            if d[at].abs() > room {
                share = share.min(room / d[at].abs());
            }
        }
    }
    d.iter_mut().for_each(|d| *d *= share);
    for (range, &row) in face.segments().zip(&face.rows) {
        for at in range {
            let row = row as usize;
            let place = row * k + face.entries[at] as usize;
            let moved = snap(sheet.q[place] + d[at], sheet.knots[place], TINY * sheet.total[row]);
            // V = base - q
            (d[at], sheet.q[place]) = (sheet.q[place] - moved, moved);
        }
    }
    for (class, (rows, moves)) in face.columns(&d).into_iter().enumerate() {
        if !rows.is_empty() {
            let column = matrix.combine(&rows, &moves);
            sheet.add_to_class(class, &column);
        }
    }
    share > 0.0
}
