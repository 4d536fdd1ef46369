//! The terms of the loss inside their barrier.
//!
//! A term c max(0, max_r (1 - e_r'f)) has the primal numbers s_r, xi >= 0 with s_r - xi = e_r'f - 1 and the dual numbers
//! q_r, q_0 >= 0 with q_0 + sum q_r = c; q_r s_r and q_0 xi vanish at the solution, and V = sum q_r e_r. With the targets T of the
//! products and the error rho_r = xi + e_r'f - 1 - s_r, a change df of f leads to
//!
//! ```text
//! dq_r = b_r - a_r (e_r'df + dxi),   a_r = q_r / s_r,   b_r = (T_r - q_r rho_r) / s_r
//! dxi  = (T_0 + xi sum dq) / q_0
//! ```
//!
//! so that dV = k - W df with W = sum a_r e_r e_r' - kappa a a', a = sum a_r e_r, kappa = 1 / (q_0 / xi + sum a_r).

use super::super::rows::Term;
use super::couples::Couples;

#[derive(Debug, Clone)]
pub(super) struct Terms {
    terms: Vec<Term>,
    /// Where the pieces of a term begin.
    starts: Vec<usize>,
    /// s and q.
    pub(super) pieces: Couples,
    /// xi and q_0.
    pub(super) rests: Couples,
    errors: Vec<f64>,
    rows: usize,
    functions: usize,
}

impl Terms {
    /// All q of a term equal, a share of its c; f = 0.
    pub(super) fn new(terms: Vec<Term>, share: f64, rows: usize, functions: usize) -> Self {
        let mut starts = vec![0];
        let (mut q, mut rest) = (Vec::new(), Vec::new());
        for term in &terms {
            let count = term.pieces.len();
            let each = share * term.cap / (count + 1) as f64;
            q.extend(std::iter::repeat_n(each, count));
            rest.push(term.cap - count as f64 * each);
            starts.push(q.len());
        }
        let pieces = Couples::new(vec![1.0; q.len()], q);
        let rests = Couples::new(vec![2.0; rest.len()], rest);
        let errors = vec![0.0; pieces.len()];
        Terms { terms, starts, pieces, rests, errors, rows, functions }
    }

    /// V, function-major.
    pub(super) fn v(&self) -> Vec<f64> {
        self.sum(&self.pieces.z)
    }

    /// dV at df = 0.
    pub(super) fn constant(&mut self) -> Vec<f64> {
        let still = vec![0.0; self.rows * self.functions];
        (0..self.terms.len()).for_each(|t| self.bend(t, &still));
        self.sum(&self.pieces.dz)
    }

    pub(super) fn advance(&mut self, primal: f64, dual: f64) {
        self.pieces.advance(primal, dual);
        self.rests.advance(primal, dual);
    }

    /// sum_r e_r values_r
    fn sum(&self, values: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.rows * self.functions];
        for (term, start) in self.terms.iter().zip(&self.starts) {
            for (piece, value) in term.pieces.iter().zip(&values[*start..]) {
                piece.parts().for_each(|(function, sign)| out[function * self.rows + term.row] += sign * value);
            }
        }
        out
    }

    /// Notes how far f is from what s and xi say.
    pub(super) fn look(&mut self, decision: &[f64]) {
        for (t, term) in self.terms.iter().enumerate() {
            for (piece, k) in term.pieces.iter().zip(self.starts[t]..) {
                let f = piece.of(decision, self.rows, term.row);
                self.errors[k] = self.rests.x[t] + f - 1.0 - self.pieces.x[k];
            }
        }
    }

    /// W of every row, functions x functions each.
    pub(super) fn curvature(&self) -> Vec<f64> {
        let m = self.functions;
        let mut blocks = vec![0.0; self.rows * m * m];
        let mut total = vec![0.0; m];
        for (t, term) in self.terms.iter().enumerate() {
            let block = &mut blocks[term.row * m * m..(term.row + 1) * m * m];
            total.fill(0.0);
            let mut sum = 0.0;
            for (piece, k) in term.pieces.iter().zip(self.starts[t]..) {
                let a = self.pieces.z[k] / self.pieces.x[k];
                sum += a;
                for (one, sign) in piece.parts() {
                    total[one] += sign * a;
                    piece.parts().for_each(|(other, with)| block[one * m + other] += sign * with * a);
                }
            }
            let kappa = 1.0 / (self.rests.z[t] / self.rests.x[t] + sum);
            for one in 0..m {
                for other in 0..m {
                    block[one * m + other] -= kappa * total[one] * total[other];
                }
            }
        }
        blocks
    }

    /// W^-1 of a row whose V one term decides, as a form of dV: sum_r (s_r / q_r) dq_r^2 + (xi / q_0) (sum dq)^2. `basis` lists dV
    /// (functions each) of some moves; out is moves x moves.
    pub(super) fn stiffness(&self, t: usize, basis: &[f64], out: &mut [f64]) {
        let (m, term) = (self.functions, &self.terms[t]);
        let size = basis.len() / m;
        let mut totals = vec![0.0; size];
        let mut moves = vec![0.0; size];
        out.fill(0.0);
        let mut add = |weight: f64, moves: &[f64]| {
            for one in 0..size {
                (0..size).for_each(|other| out[one * size + other] += weight * moves[one] * moves[other]);
            }
        };
        for (piece, k) in term.pieces.iter().zip(self.starts[t]..) {
            for (at, dv) in basis.chunks_exact(m).enumerate() {
                moves[at] = piece.dual_of(dv, 1, 0);
                totals[at] += moves[at];
            }
            add(self.pieces.x[k] / self.pieces.z[k], &moves);
        }
        add(self.rests.x[t] / self.rests.z[t], &totals);
    }

    /// The row of each term.
    pub(super) fn rows(&self) -> impl Iterator<Item = usize> {
        self.terms.iter().map(|term| term.row)
    }

    /// The direction at a change dV of V, for terms that alone decide V of their row, and at a change of f for others.
    pub(super) fn follow(&mut self, dv: &[f64], change: &[f64], alone: &[bool]) {
        for t in 0..self.terms.len() {
            if alone[self.terms[t].row] { self.take(t, dv) } else { self.bend(t, change) }
        }
    }

    /// The direction of a term at dV: W may be as large as it likes.
    fn take(&mut self, t: usize, dv: &[f64]) {
        let term = &self.terms[t];
        let mut total = 0.0;
        for (piece, k) in term.pieces.iter().zip(self.starts[t]..) {
            let dq = piece.dual_of(dv, self.rows, term.row);
            self.pieces.answer(k, dq);
            total += dq;
        }
        self.rests.answer(t, -total);
    }

    /// The direction of a term at df.
    fn bend(&mut self, t: usize, change: &[f64]) {
        let term = &self.terms[t];
        let (rest, xi) = (self.rests.z[t], self.rests.x[t]);
        let (mut slopes, mut sum) = (0.0, 0.0);
        for (piece, k) in term.pieces.iter().zip(self.starts[t]..) {
            let (s, q) = (self.pieces.x[k], self.pieces.z[k]);
            slopes += q / s;
            let by = piece.of(change, self.rows, term.row);
            // dq without dxi
            self.pieces.dz[k] = (self.pieces.target[k] - q * (self.errors[k] + by)) / s;
            sum += self.pieces.dz[k];
        }
        let aim = self.rests.target[t];
        let moved = (sum - slopes * aim / rest) / (1.0 + slopes * xi / rest);
        let dxi = (aim + xi * moved) / rest;
        let mut total = 0.0;
        for (piece, k) in term.pieces.iter().zip(self.starts[t]..) {
            let (s, q) = (self.pieces.x[k], self.pieces.z[k]);
            self.pieces.dz[k] -= q / s * dxi;
            self.pieces.dx[k] = dxi + piece.of(change, self.rows, term.row) + self.errors[k];
            total += self.pieces.dz[k];
        }
        self.rests.dx[t] = dxi;
        self.rests.dz[t] = -total;
    }
}
