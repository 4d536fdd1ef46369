//! The part of a model that predicts.

use crate::data::{Class, Csr, Dense, Design};
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
    /// w'x
    Linear {
        /// w, one per column.
        weights: Vec<f64>,
    },
    /// sum_j coefficients_j k(row_j, x)
    Kernel {
        /// The support vectors.
        rows: Rows,
    },
    /// sum_j coefficients_j x[support_j]: the columns of x are kernel values against the training rows.
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
    /// Their coefficients beta_j = y_j alpha_j.
    pub coefficients: Vec<f64>,
    /// f without its intercept.
    pub function: Function,
    /// b
    pub intercept: f64,
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
            && self.intercept == other.intercept
    }
}

impl Predictor {
    /// w, for linear models.
    pub fn weights(&self) -> Option<&[f64]> {
        match &self.function {
            Function::Linear { weights } => Some(weights),
            _ => None,
        }
    }

    /// f(x) + b of each row.
    pub fn decision_function(&self, x: &dyn Design) -> Result<Vec<f64>> {
        if x.cols() != self.features {
            let found = format!("{} columns", x.cols());
            return Err(Error::shape("X", found, format!("{}, as in training", self.features)));
        }
        x.check_finite()?;
        let mut decision = self.without_intercept(x);
        for value in &mut decision {
            *value += self.intercept;
        }
        Ok(decision)
    }

    /// The class of each row, as a position in the list of classes.
    pub fn predict_codes(&self, x: &dyn Design) -> Result<Vec<u32>> {
        Ok(self.decision_function(x)?.into_iter().map(|value| u32::from(value > 0.0)).collect())
    }

    fn without_intercept(&self, x: &dyn Design) -> Vec<f64> {
        match &self.function {
            Function::Linear { weights } => (0..x.rows()).into_par_iter().map(|row| x.dot(row, weights)).collect(),
            Function::Precomputed => (0..x.rows()).into_par_iter().map(|row| self.sum_over_support(x, row)).collect(),
            Function::Kernel { rows } => tiles::expand(&self.kernel, rows.as_design(), &self.coefficients, x),
        }
    }

    /// sum_j coefficients_j x[row, support_j]
    fn sum_over_support(&self, x: &dyn Design, row: usize) -> f64 {
        let mut sum = 0.0;
        x.for_each(row, &mut |column, value| {
            if let Ok(position) = self.support.binary_search(&(column as u32)) {
                sum += self.coefficients[position] * value;
            }
        });
        sum
    }
}
