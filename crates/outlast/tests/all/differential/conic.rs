//! Convex problems written for a general conic solver, Clarabel.
//!
//! ```text
//! min  penalty(f) + sum_t cap_t phi(max_a e_ta(f)),      e_ta = sum_j factor_j f_j(x_row),      phi increasing and convex
//! ```
//!
//! with f_j = z'w_j + b_j on the rows z of the features, or, for a kernel, on those of its matrix, with w_j'K w_j as the norm.

use clarabel::algebra::CscMatrix;
use clarabel::solver::SupportedConeT::{self, ExponentialConeT, NonnegativeConeT, ZeroConeT};
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, SolverStatus};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Phi {
    /// [target + e]_+
    Hinge(f64),
    /// [1 + e]_+^2
    Squared,
    /// log(1 + exp(e))
    Logistic,
    /// exp(e)
    Exponential,
}

/// A term of the loss; each argument is a list of functions and their factors.
#[derive(Debug, Clone)]
pub struct Term {
    pub row: usize,
    pub cap: f64,
    pub arguments: Vec<Vec<(usize, f64)>>,
}

#[derive(Debug, Clone)]
pub enum Size {
    /// 1/2 sum |f_j|^2
    Half,
    /// sum w^2
    Squares,
    /// sum rate |w|, functions x columns; an infinite rate keeps the coefficient at 0
    Absolute(Vec<f64>),
}

pub struct Convex<'a> {
    /// Rows of features, or of the kernel matrix.
    pub features: &'a [Vec<f64>],
    pub is_kernel: bool,
    pub functions: usize,
    pub size: Size,
    pub phi: Phi,
    /// Of each term, in place of that of `phi`.
    pub targets: Option<Vec<f64>>,
    pub intercept: bool,
    /// Whether the functions sum to 0.
    pub balanced: bool,
    pub terms: Vec<Term>,
}

/// A conic program: A v + s = right, s in the cones.
#[derive(Default)]
pub struct Program {
    rows: Vec<usize>,
    columns: Vec<usize>,
    values: Vec<f64>,
    right: Vec<f64>,
    cones: Vec<SupportedConeT<f64>>,
    linear: Vec<f64>,
    quadratic: (Vec<usize>, Vec<usize>, Vec<f64>),
}

impl Program {
    pub fn variable(&mut self, cost: f64) -> usize {
        self.linear.push(cost);
        self.linear.len() - 1
    }

    fn entry(&mut self, terms: &[(usize, f64)], right: f64) {
        for &(column, value) in terms.iter().filter(|(_, value)| *value != 0.0) {
            self.rows.push(self.right.len());
            self.columns.push(column);
            self.values.push(value);
        }
        self.right.push(right);
    }

    pub fn equal(&mut self, terms: &[(usize, f64)], right: f64) {
        self.entry(terms, right);
        self.cones.push(ZeroConeT(1));
    }

    pub fn at_least(&mut self, terms: &[(usize, f64)], bound: f64) {
        let negated: Vec<(usize, f64)> = terms.iter().map(|&(column, value)| (column, -value)).collect();
        self.entry(&negated, -bound);
        self.cones.push(NonnegativeConeT(1));
    }

    /// exp(first) <= second
    fn exponential(&mut self, first: &[(usize, f64)], second: usize) {
        let negated: Vec<(usize, f64)> = first.iter().map(|&(column, value)| (column, -value)).collect();
        self.entry(&negated, 0.0);
        self.entry(&[], 1.0);
        self.entry(&[(second, -1.0)], 0.0);
        self.cones.push(ExponentialConeT());
    }

    fn curve(&mut self, row: usize, column: usize, value: f64) {
        self.quadratic.0.push(row);
        self.quadratic.1.push(column);
        self.quadratic.2.push(value);
    }

    /// The least value; `None` where Clarabel does not get there.
    pub fn minimum(self) -> Option<f64> {
        let size = self.linear.len();
        let (rows, columns, values) = self.quadratic;
        let p = CscMatrix::new_from_triplets(size, size, rows, columns, values);
        let a = CscMatrix::new_from_triplets(self.right.len(), size, self.rows, self.columns, self.values);
        let settings = DefaultSettingsBuilder::default()
            .verbose(false)
            .tol_gap_abs(1e-10)
            .tol_gap_rel(1e-10)
            .tol_feas(1e-10)
            .max_iter(200)
            .build()
            .unwrap();
        let mut solver = DefaultSolver::new(&p, &self.linear, &a, &self.right, &self.cones, settings).unwrap();
        solver.solve();
        matches!(solver.solution.status, SolverStatus::Solved).then_some(solver.solution.obj_val)
    }
}

impl Convex<'_> {
    pub fn minimum(&self) -> Option<f64> {
        let (m, p) = (self.functions, self.features.first().map_or(0, Vec::len));
        let mut program = Program::default();
        (0..m * p + m).for_each(|_| {
            program.variable(0.0);
        });
        let (w, b) = (|j: usize, column: usize| j * p + column, |j: usize| m * p + j);
        if !self.intercept {
            (0..m).for_each(|j| program.equal(&[(b(j), 1.0)], 0.0));
        }
        if self.balanced {
            for column in 0..p {
                program.equal(&(0..m).map(|j| (w(j, column), 1.0)).collect::<Vec<_>>(), 0.0);
            }
            if self.intercept {
                program.equal(&(0..m).map(|j| (b(j), 1.0)).collect::<Vec<_>>(), 0.0);
            }
        }
        self.add_size(&mut program, m, p);
        for (at, term) in self.terms.iter().enumerate().filter(|(_, term)| term.cap > 0.0) {
            let phi = self.targets.as_ref().map_or(self.phi, |targets| Phi::Hinge(targets[at]));
            let arguments: Vec<Vec<(usize, f64)>> = term
                .arguments
                .iter()
                .map(|argument| {
                    let parts = argument.iter().flat_map(|&(j, factor)| {
                        let weights =
                            self.features[term.row].iter().enumerate().map(move |(c, z)| (w(j, c), factor * z));
                        weights.chain([(b(j), factor)])
                    });
                    parts.collect()
                })
                .collect();
            add_term(&mut program, term.cap, phi, &arguments);
        }
        program.minimum()
    }

    fn add_size(&self, program: &mut Program, m: usize, p: usize) {
        for j in 0..m {
            for column in 0..p {
                let at = j * p + column;
                match &self.size {
                    Size::Half if self.is_kernel => (0..=column).for_each(|row| {
                        let both = 0.5 * (self.features[row][column] + self.features[column][row]);
                        program.curve(j * p + row, at, both);
                    }),
                    Size::Half => program.curve(at, at, 1.0),
                    Size::Squares => program.curve(at, at, 2.0),
                    Size::Absolute(rates) if rates[at].is_infinite() => program.equal(&[(at, 1.0)], 0.0),
                    Size::Absolute(rates) => {
                        let size = program.variable(rates[at]);
                        program.at_least(&[(size, 1.0), (at, 1.0)], 0.0);
                        program.at_least(&[(size, 1.0), (at, -1.0)], 0.0);
                    }
                }
            }
        }
    }
}

/// loss >= phi(e) of every argument.
fn add_term(program: &mut Program, cap: f64, phi: Phi, arguments: &[Vec<(usize, f64)>]) {
    let minus = |terms: &[(usize, f64)]| -> Vec<(usize, f64)> { terms.iter().map(|&(at, v)| (at, -v)).collect() };
    match phi {
        Phi::Hinge(_) | Phi::Squared => {
            let target = if let Phi::Hinge(target) = phi { target } else { 1.0 };
            let loss = program.variable(if phi == Phi::Squared { 0.0 } else { cap });
            if phi == Phi::Squared {
                program.curve(loss, loss, 2.0 * cap);
            }
            program.at_least(&[(loss, 1.0)], 0.0);
            for argument in arguments {
                program.at_least(&[minus(argument), vec![(loss, 1.0)]].concat(), target);
            }
        }
        Phi::Logistic | Phi::Exponential => {
            let (largest, loss) = (program.variable(0.0), program.variable(cap));
            for argument in arguments {
                program.at_least(&[minus(argument), vec![(largest, 1.0)]].concat(), 0.0);
            }
            if phi == Phi::Exponential {
                program.exponential(&[(largest, 1.0)], loss);
                return;
            }
            // exp(e - t) + exp(-t) <= 1
            let (one, two) = (program.variable(0.0), program.variable(0.0));
            program.exponential(&[(largest, 1.0), (loss, -1.0)], one);
            program.exponential(&[(loss, -1.0)], two);
            program.at_least(&[(one, -1.0), (two, -1.0)], -1.0);
        }
    }
}
