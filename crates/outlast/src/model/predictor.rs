//! The part of a model that predicts.

use super::{Probabilities, Votes};
use crate::data::{Class, Csr, Dense, Design, FeatureMap, Scaling, Squared, Standardized};
use crate::error::{Error, Result};
use crate::problem::KernelFunction;
use crate::solver::tiles;
use rayon::prelude::*;

/// Training rows a kernel model keeps.
#[derive(Debug, Clone, PartialEq)]
pub enum Rows {
    /// Dense rows.
    Dense(Dense<'static, f64>),
    /// Sparse rows.
    Sparse(Csr<'static>),
}

impl Rows {
    /// The rows behind the one trait.
    pub fn as_design(&self) -> &dyn Design {
        match self {
            Rows::Dense(rows) => rows,
            Rows::Sparse(rows) => rows,
        }
    }

    /// The same rows with more columns, which are 0; sparse, as the caller named the number.
    fn widened(&self, cols: usize) -> Result<Rows> {
        let x = self.as_design();
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in 0..x.rows() {
            x.for_each(row, &mut |column, value| {
                columns.push(column as u32);
                values.push(value);
            });
            starts.push(values.len());
        }
        Ok(Rows::Sparse(Csr::new(x.rows(), cols, starts, columns, values)?))
    }

    /// Copies some rows of a design, keeping it dense or sparse.
    pub fn copy(x: &dyn Design, rows: &[u32]) -> Result<Rows> {
        if x.is_sparse() {
            let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
            for &row in rows {
                x.for_each(row as usize, &mut |column, value| {
                    columns.push(column as u32);
                    values.push(value);
                });
                starts.push(values.len());
            }
            return Ok(Rows::Sparse(Csr::new(rows.len(), x.cols(), starts, columns, values)?));
        }
        let mut values = vec![0.0; rows.len() * x.cols()];
        for (out, &row) in values.chunks_exact_mut(x.cols().max(1)).zip(rows) {
            x.copy_row(row as usize, out);
        }
        Ok(Rows::Dense(Dense::new(rows.len(), x.cols(), values)?))
    }
}

/// f without its intercept.
#[derive(Debug, Clone, PartialEq)]
pub enum Function {
    /// w_j'x
    Linear {
        /// w, functions x columns.
        weights: Vec<f64>,
    },
    /// w_j'(x, x^2)
    Squares {
        /// w, functions x (columns, then their squares).
        weights: Vec<f64>,
    },
    /// sum_i coefficients_ij k(row_i, x)
    Kernel {
        /// The support vectors.
        rows: Rows,
    },
    /// sum_i coefficients_ij `x[support_i]`: the columns of x are kernel values against the training rows.
    Precomputed,
}

/// Everything needed to predict.
#[derive(Debug, Clone)]
pub struct Predictor {
    /// The classes, sorted.
    pub classes: Vec<Class>,
    /// Names of the columns, where the data had any.
    pub feature_names: Option<Vec<String>>,
    /// Columns expected of X.
    pub features: usize,
    /// The kernel.
    pub kernel: KernelFunction,
    /// Positions of the support vectors among the training rows, ascending.
    pub support: Vec<u32>,
    /// Their coefficients, support vectors x [`width`](Predictor::width): y_i alpha_i for two classes.
    pub coefficients: Vec<f64>,
    /// f without its intercept.
    pub function: Function,
    /// b, one per function.
    pub intercepts: Vec<f64>,
    /// What probabilities are read off, where they were asked for.
    pub probabilities: Option<Probabilities>,
    /// How pairs of classes vote, of a model of more than two that has a function for each pair.
    pub votes: Option<Votes>,
    /// What is done to the columns of X first, where that is part of the model and not in the weights already.
    pub scaling: Option<Scaling>,
}

impl PartialEq for Predictor {
    /// Equal when every number is; caller's own kernels are compared by name.
    fn eq(&self, other: &Self) -> bool {
        self.classes == other.classes
            && self.feature_names == other.feature_names
            && self.features == other.features
            && format!("{:?}", self.kernel) == format!("{:?}", other.kernel)
            && self.support == other.support
            && self.coefficients == other.coefficients
            && self.function == other.function
            && self.intercepts == other.intercepts
            && self.probabilities == other.probabilities
            && self.votes == other.votes
            && self.scaling == other.scaling
    }
}

impl Predictor {
    /// Number of decision functions: 1 for two classes, else one per class, or one per pair of classes where these vote.
    pub fn functions(&self) -> usize {
        match (self.classes.len(), &self.votes) {
            (2, _) => 1,
            (k, None) => k,
            (k, Some(_)) => k * (k - 1) / 2,
        }
    }

    /// Coefficients of each support vector: one per function, or one per other class where pairs of classes vote.
    pub fn width(&self) -> usize {
        if self.votes.is_some() { self.classes.len() - 1 } else { self.functions() }
    }

    /// Columns with a coefficient that is not 0 (their own or that of their square), for linear models.
    pub fn selected(&self) -> Option<Vec<usize>> {
        let weights = self.weights()?;
        let used = |column: usize| weights.iter().skip(column).step_by(self.features).any(|&w| w != 0.0);
        Some((0..self.features).filter(|&column| used(column)).collect())
    }

    /// What a linear function is linear in.
    pub fn feature_map(&self) -> FeatureMap {
        match &self.function {
            Function::Squares { .. } => FeatureMap::Squares,
            _ => FeatureMap::Identity,
        }
    }

    /// w, functions x columns, for linear models; functions x (columns, then their squares) for those of squares.
    pub fn weights(&self) -> Option<&[f64]> {
        match &self.function {
            Function::Linear { weights } | Function::Squares { weights } => Some(weights),
            _ => None,
        }
    }

    /// Sets a larger number of features: the model of a file that does not tell it (LIBSVM's) knows only those that occur in it. The
    /// new columns are 0 in every support vector.
    ///
    /// A model of kernel values is as wide as there were training rows, which its [`summary`](super::Summary) tells: [`Model::widen`].
    ///
    /// [`Model::widen`]: super::Model::widen
    pub fn widen(&mut self, features: usize) -> Result<()> {
        self.check_wider(features)?;
        let open = self.feature_names.is_none() && self.probabilities.is_none() && self.scaling.is_none();
        match &mut self.function {
            _ if features == self.features => {}
            Function::Linear { weights } if open && weights.len() == self.features => weights.resize(features, 0.0),
            Function::Kernel { rows } if open => *rows = rows.widened(features)?,
            _ => return Err(Error::parameter("features", features, format!("{}, as in training", self.features))),
        }
        self.features = features;
        Ok(())
    }

    /// Refuses fewer features than there are.
    pub(super) fn check_wider(&self, features: usize) -> Result<()> {
        if features < self.features || features > u32::MAX as usize {
            let allowed = format!("a whole number from {}, which the model has, to {}", self.features, u32::MAX);
            return Err(Error::parameter("features", features, allowed));
        }
        Ok(())
    }

    /// f(x) + b, rows x functions.
    pub fn decision_function(&self, x: &dyn Design) -> Result<Vec<f64>> {
        self.check(x)?;
        let Predictor { function, kernel, support, coefficients, .. } = self;
        let scaled = self.scaling.as_ref().map(|scaling| Standardized::new(x, scaling));
        let x: &dyn Design = scaled.as_ref().map_or(x, |scaled| scaled);
        let mut decision = match (&self.votes, function) {
            (Some(votes), Function::Kernel { rows }) => votes.values(kernel, rows.as_design(), coefficients, x),
            _ => Expansion { function, kernel, support, coefficients, functions: self.functions() }.values(x),
        };
        for row in decision.chunks_exact_mut(self.functions()) {
            row.iter_mut().zip(&self.intercepts).for_each(|(value, b)| *value += b);
        }
        Ok(decision)
    }

    /// The class of each row, as a position in the list of classes.
    pub fn predict_codes(&self, x: &dyn Design) -> Result<Vec<u32>> {
        Ok(self.decide(&self.decision_function(x)?))
    }

    /// The class each row of decision values stands for: the second of two where the value is positive, else the one with
    /// the largest value or, where pairs vote, the most votes.
    pub fn decide(&self, decision: &[f64]) -> Vec<u32> {
        if let Some(votes) = &self.votes {
            return votes.decide(decision);
        }
        match self.functions() {
            1 => decision.iter().map(|&value| u32::from(value > 0.0)).collect(),
            m => decision.chunks_exact(m).map(largest).collect(),
        }
    }

    /// The probability of each class, rows x classes.
    pub fn probabilities(&self, x: &dyn Design) -> Result<Vec<f64>> {
        let Some(probabilities) = &self.probabilities else {
            let allowed = "\"weighted\" in the fit: this model was fitted without it";
            return Err(Error::parameter("probability", "\"none\"", allowed));
        };
        self.check(x)?;
        let of = |x: &dyn Design| probabilities.of(&self.kernel, self.classes.len(), x);
        Ok(self.scaling.as_ref().map_or_else(|| of(x), |scaling| of(&Standardized::new(x, scaling))))
    }

    fn check(&self, x: &dyn Design) -> Result<()> {
        if x.cols() != self.features {
            let found = format!("{} columns", x.cols());
            return Err(Error::shape("X", found, format!("{}, as in training", self.features)));
        }
        x.check_finite()
    }
}

/// Functions without their intercepts, whatever they are made of.
pub(super) struct Expansion<'a> {
    pub(super) function: &'a Function,
    pub(super) kernel: &'a KernelFunction,
    pub(super) support: &'a [u32],
    pub(super) coefficients: &'a [f64],
    pub(super) functions: usize,
}

impl Expansion<'_> {
    /// Their values, rows x functions.
    pub(super) fn values(&self, x: &dyn Design) -> Vec<f64> {
        match self.function {
            Function::Linear { weights } => self.linear(weights, x),
            Function::Squares { weights } => self.linear(weights, &Squared::new(x)),
            Function::Precomputed => self.each_row(x, |row, out| self.sum_over_support(x, row, out)),
            Function::Kernel { rows } => {
                Self::of_rows(self.kernel, rows.as_design(), self.coefficients, self.functions, x)
            }
        }
    }

    /// sum_i coefficients_ij k(rows_i, x)
    pub(super) fn of_rows(
        kernel: &KernelFunction,
        rows: &dyn Design,
        coefficients: &[f64],
        functions: usize,
        x: &dyn Design,
    ) -> Vec<f64> {
        tiles::expand(kernel, rows, coefficients, functions, x)
    }

    fn linear(&self, weights: &[f64], x: &dyn Design) -> Vec<f64> {
        self.each_row(x, |row, out| {
            for (out, w) in out.iter_mut().zip(weights.chunks_exact(x.cols().max(1))) {
                *out = x.dot(row, w);
            }
        })
    }

    fn each_row(&self, x: &dyn Design, fill: impl Fn(usize, &mut [f64]) + Sync) -> Vec<f64> {
        let m = self.functions;
        let mut values = vec![0.0; x.rows() * m];
        values.par_chunks_exact_mut(m).enumerate().for_each(|(row, out)| fill(row, out));
        values
    }

    /// sum_i coefficients_ij x[row, support_i]
    fn sum_over_support(&self, x: &dyn Design, row: usize, out: &mut [f64]) {
        let m = self.functions;
        x.for_each(row, &mut |column, value| {
            if let Ok(position) = self.support.binary_search(&(column as u32)) {
                let coefficients = &self.coefficients[position * m..(position + 1) * m];
                out.iter_mut().zip(coefficients).for_each(|(out, c)| *out += c * value);
            }
        });
    }
}

/// Position of the largest value; the first of several.
fn largest(values: &[f64]) -> u32 {
    let mut best = 0;
    for (at, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = at;
        }
    }
    best as u32
}
