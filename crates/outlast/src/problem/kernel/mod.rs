//! Kernels: what a user asks for ([`Kernel`], whose width may be left to the data) and what a solver gets
//! ([`KernelFunction`], numbers only).
//!
//! | name | k(x, z) |
//! |---|---|
//! | linear | x.z |
//! | rbf | exp(-gamma \|x - z\|^2) |
//! | poly | (gamma x.z + coef0)^degree |
//! | sigmoid | tanh(gamma x.z + coef0) |
//! | precomputed | X *is* the matrix of kernel values |
//! | custom | the caller's function of two rows |

mod gamma;

pub use gamma::Gamma;

use crate::data::{Design, Labels};
use crate::error::{Error, Result};
use crate::linalg::lane_sum;
use rayon::prelude::*;
use std::fmt;
use std::sync::Arc;

/// A kernel as a user asks for it.
///
/// ```
/// use outlast::{Gamma, Kernel};
/// let by_number = Kernel::rbf(0.5);
/// let by_data = Kernel::rbf(Gamma::Median);
/// let cubic = Kernel::Poly { gamma: Gamma::Scale, degree: 3, coef0: 1.0 };
/// # let _ = (by_number, by_data, cubic);
/// ```
#[derive(Debug, Clone)]
pub enum Kernel {
    /// x.z
    Linear,
    /// exp(-gamma |x - z|^2)
    Rbf {
        /// Width.
        gamma: Gamma,
    },
    /// (gamma x.z + coef0)^degree
    Poly {
        /// Factor of the inner product.
        gamma: Gamma,
        /// Power, at least 1.
        degree: u32,
        /// Constant term.
        coef0: f64,
    },
    /// tanh(gamma x.z + coef0); not positive definite in general
    Sigmoid {
        /// Factor of the inner product.
        gamma: Gamma,
        /// Constant term.
        coef0: f64,
    },
    /// X holds the kernel values themselves: n x n to fit, m x n to predict.
    Precomputed,
    /// The caller's function.
    Custom(CustomKernel),
}

impl Default for Kernel {
    fn default() -> Self {
        Kernel::rbf(Gamma::Scale)
    }
}

impl Kernel {
    /// The names users can ask for.
    pub const NAMES: &'static [&'static str] = &["linear", "rbf", "poly", "sigmoid", "precomputed"];

    /// The name users see; a caller's own name for a caller's kernel.
    pub fn name(&self) -> &str {
        match self {
            Kernel::Linear => "linear",
            Kernel::Rbf { .. } => "rbf",
            Kernel::Poly { .. } => "poly",
            Kernel::Sigmoid { .. } => "sigmoid",
            Kernel::Precomputed => "precomputed",
            Kernel::Custom(custom) => custom.name(),
        }
    }

    /// The Gaussian kernel of a given width.
    pub fn rbf(gamma: impl Into<Gamma>) -> Kernel {
        Kernel::Rbf { gamma: gamma.into() }
    }

    /// The kernel of that name.
    pub fn from_name(name: &str, gamma: Gamma, degree: u32, coef0: f64) -> Result<Kernel> {
        Ok(match name {
            "linear" => Kernel::Linear,
            "rbf" => Kernel::Rbf { gamma },
            "poly" => Kernel::Poly { gamma, degree, coef0 },
            "sigmoid" => Kernel::Sigmoid { gamma, coef0 },
            "precomputed" => Kernel::Precomputed,
            _ => {
                return Err(Error::parameter(
                    "kernel",
                    format!("{name:?}"),
                    format!("one of {}", Self::NAMES.join(", ")),
                ));
            }
        })
    }

    /// A kernel from a function of two dense rows, symmetric and positive semidefinite.
    pub fn custom(name: impl Into<String>, function: impl Fn(&[f64], &[f64]) -> f64 + Send + Sync + 'static) -> Kernel {
        Kernel::Custom(CustomKernel { name: name.into(), function: Arc::new(function) })
    }

    /// Whether it has a width that is a number, so that nothing is left to the data.
    pub(crate) fn has_given_width(&self) -> bool {
        match self {
            Kernel::Rbf { gamma } | Kernel::Poly { gamma, .. } | Kernel::Sigmoid { gamma, .. } => {
                matches!(gamma, Gamma::Value(_))
            }
            _ => false,
        }
    }

    /// Checks the parameters and fills in what the data decide.
    pub fn resolve(&self, x: &dyn Design, labels: &Labels, weights: Option<&[f64]>) -> Result<KernelFunction> {
        let finite = |coef0: f64| {
            if coef0.is_finite() { Ok(coef0) } else { Err(Error::parameter("coef0", coef0, "a finite number")) }
        };
        Ok(match self {
            Kernel::Linear => KernelFunction::Linear,
            Kernel::Rbf { gamma } => KernelFunction::Rbf { gamma: gamma.resolve(x, labels, weights)? },
            Kernel::Poly { gamma, degree, coef0 } => {
                if *degree == 0 || *degree > 64 {
                    return Err(Error::parameter("degree", degree, "a whole number from 1 to 64"));
                }
                KernelFunction::Poly {
                    gamma: gamma.resolve(x, labels, weights)?,
                    degree: *degree,
                    coef0: finite(*coef0)?,
                }
            }
            Kernel::Sigmoid { gamma, coef0 } => {
                KernelFunction::Sigmoid { gamma: gamma.resolve(x, labels, weights)?, coef0: finite(*coef0)? }
            }
            Kernel::Precomputed => {
                if x.rows() != x.cols() {
                    let found = format!("{} rows and {} columns", x.rows(), x.cols());
                    return Err(Error::shape("X", found, "a square matrix with kernel = precomputed"));
                }
                KernelFunction::Precomputed
            }
            Kernel::Custom(custom) => KernelFunction::Custom(custom.clone()),
        })
    }
}

/// A caller's kernel, k(x, z) of two dense rows.
#[derive(Clone)]
pub struct CustomKernel {
    name: String,
    function: Arc<Evaluate>,
}

type Evaluate = dyn Fn(&[f64], &[f64]) -> f64 + Send + Sync;

impl CustomKernel {
    /// The caller's name for it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// k(x, z)
    pub fn evaluate(&self, x: &[f64], z: &[f64]) -> f64 {
        (self.function)(x, z)
    }
}

impl fmt::Debug for CustomKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CustomKernel({})", self.name)
    }
}

/// A kernel whose every number is known.
#[derive(Debug, Clone)]
pub enum KernelFunction {
    /// x.z
    Linear,
    /// exp(-gamma |x - z|^2)
    Rbf {
        /// Width, > 0.
        gamma: f64,
    },
    /// (gamma x.z + coef0)^degree
    Poly {
        /// Factor of the inner product, > 0.
        gamma: f64,
        /// Power, at least 1.
        degree: u32,
        /// Constant term.
        coef0: f64,
    },
    /// tanh(gamma x.z + coef0)
    Sigmoid {
        /// Factor of the inner product, > 0.
        gamma: f64,
        /// Constant term.
        coef0: f64,
    },
    /// X holds the kernel values.
    Precomputed,
    /// The caller's function.
    Custom(CustomKernel),
}

impl KernelFunction {
    /// The name users see.
    pub fn name(&self) -> &str {
        match self {
            KernelFunction::Linear => "linear",
            KernelFunction::Rbf { .. } => "rbf",
            KernelFunction::Poly { .. } => "poly",
            KernelFunction::Sigmoid { .. } => "sigmoid",
            KernelFunction::Precomputed => "precomputed",
            KernelFunction::Custom(custom) => custom.name(),
        }
    }

    /// gamma, where the kernel has one.
    pub fn gamma(&self) -> Option<f64> {
        match *self {
            KernelFunction::Rbf { gamma }
            | KernelFunction::Poly { gamma, .. }
            | KernelFunction::Sigmoid { gamma, .. } => Some(gamma),
            _ => None,
        }
    }

    /// k(x, z) in double precision from two dense rows. For `Precomputed` there is no such function: 0.
    pub fn evaluate(&self, x: &[f64], z: &[f64]) -> f64 {
        let inner = || lane_sum(x, z, |a, b| a * b);
        match self {
            KernelFunction::Linear => inner(),
            KernelFunction::Rbf { gamma } => {
                // scaled before squaring: gamma |x - z|^2 is in range even where |x - z|^2 is not
                let root = gamma.sqrt();
                (-lane_sum(x, z, |a, b| (root * (a - b)).powi(2))).exp()
            }
            KernelFunction::Poly { gamma, degree, coef0 } => (gamma * inner() + coef0).powi(*degree as i32),
            KernelFunction::Sigmoid { gamma, coef0 } => (gamma * inner() + coef0).tanh(),
            KernelFunction::Precomputed => 0.0,
            KernelFunction::Custom(custom) => custom.evaluate(x, z),
        }
    }

    /// sum_j coefficients_j k(x_j, x_i) for every row i, in double precision: O(n) kernel values per non-zero coefficient.
    pub fn expand(&self, x: &dyn Design, coefficients: &[f64]) -> Vec<f64> {
        let all: Vec<u32> = (0..x.rows() as u32).collect();
        self.expand_at(x, coefficients, &all)
    }

    /// As [`expand`](Self::expand), for the rows listed only.
    pub fn expand_at(&self, x: &dyn Design, coefficients: &[f64], rows: &[u32]) -> Vec<f64> {
        let support: Vec<u32> = (0..x.rows() as u32).filter(|&row| coefficients[row as usize] != 0.0).collect();
        let weights: Vec<f64> = support.iter().map(|&row| coefficients[row as usize]).collect();
        let mut sums = vec![0.0; rows.len()];
        self.for_each_row(x, x, rows, &support, &mut sums, |sum, values| {
            *sum = values.iter().zip(&weights).map(|(value, weight)| value * weight).sum();
        });
        sums
    }

    /// For each listed row of `x`, in parallel: computes k(row, z_j) for the listed rows j of `z` and hands the values, with
    /// the row's element of `out`, to `take`. O(non-zeros) per value. For `Precomputed`, k(row, z_j) is x[row, j].
    pub fn for_each_row<T: Send>(
        &self,
        x: &dyn Design,
        z: &dyn Design,
        x_rows: &[u32],
        z_rows: &[u32],
        out: &mut [T],
        take: impl Fn(&mut T, &[f64]) + Sync,
    ) {
        let sparse = z.is_sparse() && !matches!(self, KernelFunction::Custom(_));
        let copies = if sparse { Vec::new() } else { dense_copies(self, z, z_rows) };
        let squares: Vec<f64> = match self {
            KernelFunction::Rbf { .. } if sparse => z_rows.iter().map(|&row| z.squared_norm(row as usize)).collect(),
            _ => vec![0.0; z_rows.len()],
        };
        let cols = x.cols();
        out.par_iter_mut().zip(x_rows).for_each_init(
            || (vec![0.0; cols], vec![0.0; z_rows.len()]),
            |(own, values), (out, &row)| {
                x.for_each(row as usize, &mut |column, value| own[column] = value);
                if let KernelFunction::Precomputed = self {
                    for (value, &j) in values.iter_mut().zip(z_rows) {
                        *value = own[j as usize];
                    }
                } else if sparse {
                    let square = x.squared_norm(row as usize);
                    for ((value, &j), square_j) in values.iter_mut().zip(z_rows).zip(&squares) {
                        *value = self.value_from_inner(z.dot(j as usize, own), square + square_j);
                    }
                } else {
                    for (value, z) in values.iter_mut().zip(copies.chunks_exact(cols.max(1))) {
                        *value = self.evaluate(own, z);
                    }
                }
                take(out, values);
                x.for_each(row as usize, &mut |column, _| own[column] = 0.0);
            },
        );
    }

    /// k from x.z and |x|^2 + |z|^2.
    fn value_from_inner(&self, inner: f64, squares: f64) -> f64 {
        match self {
            KernelFunction::Rbf { gamma } => (-gamma * (squares - 2.0 * inner).max(0.0)).exp(),
            KernelFunction::Poly { gamma, degree, coef0 } => (gamma * inner + coef0).powi(*degree as i32),
            KernelFunction::Sigmoid { gamma, coef0 } => (gamma * inner + coef0).tanh(),
            _ => inner,
        }
    }
}

fn dense_copies(kernel: &KernelFunction, z: &dyn Design, rows: &[u32]) -> Vec<f64> {
    if let KernelFunction::Precomputed = kernel {
        return Vec::new();
    }
    let cols = z.cols();
    let mut copies = vec![0.0; rows.len() * cols];
    for (out, &row) in copies.chunks_exact_mut(cols.max(1)).zip(rows) {
        z.copy_row(row as usize, out);
    }
    copies
}
