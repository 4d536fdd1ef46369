//! The truncated-loss support vector machine: its parameters, their checks, and the fit.
//!
//! ```text
//! min  1/2 |f|^2 + C sum_i weight_i l_T(y_i f(x_i))
//! ```
//!
//! (Wu and Liu, "Robust truncated hinge loss support vector machines", JASA 2007; s, the truncation, is theirs.)

use super::{Model, Summary, Training};
use crate::control::Control;
use crate::data::{Design, Target};
use crate::error::Result;
use crate::problem::{Kernel, Loss, Penalty};

/// Where the loss is cut off, the paper's s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Truncation {
    /// The lowest Fisher-consistent point: -1/(k-1) for the hinge.
    #[default]
    Auto,
    /// A number <= 0; 0 is psi-learning.
    At(f64),
    /// No truncation: the ordinary support vector machine.
    Off,
}

impl From<f64> for Truncation {
    fn from(truncation: f64) -> Self {
        Truncation::At(truncation)
    }
}

/// Factors on C by class.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ClassWeight {
    /// All 1.
    #[default]
    Equal,
    /// n / (k n_class): every class counts the same in total.
    Balanced,
    /// One factor per class, in the sorted order of the classes.
    Given(Vec<f64>),
}

/// Parameters of the truncated-loss SVM. Build with [`Truncated::new`] and the setters, then [`fit`](Self::fit).
#[derive(Debug, Clone)]
pub struct Truncated {
    /// Weight of the loss against the penalty, > 0.
    pub c: f64,
    /// Where the loss is cut off.
    pub truncation: Truncation,
    /// The loss before truncation.
    pub loss: Loss,
    /// The penalty.
    pub penalty: Penalty,
    /// The kernel.
    pub kernel: Kernel,
    /// Factors on C by class.
    pub class_weight: ClassWeight,
    /// Whether an unpenalised intercept is fitted.
    pub fit_intercept: bool,
    /// Relative duality gap at which a convex step stops.
    pub tol: f64,
    /// Most majorise-minimise steps.
    pub max_iter: usize,
    /// Megabytes the kernel solver may keep.
    pub cache_size: f64,
    /// Threads; `None` for all cores.
    pub threads: Option<usize>,
    /// Seed of whatever is drawn at random.
    pub random_state: u64,
    /// `"auto"`, or the name of the solver to take (see [`solver::NAMES`](crate::solver)).
    pub solver: String,
}

/// What goes into a fit beside the parameters, the rows and the labels.
#[derive(Debug, Clone, Copy, Default)]
pub struct FitRequest<'a> {
    /// One weight per row.
    pub sample_weight: Option<&'a [f64]>,
    /// Names of the columns.
    pub feature_names: Option<&'a [String]>,
    /// A model fitted to the same rows with other parameters, to start from.
    pub start: Option<&'a Model>,
    /// Progress, interrupt, time limit.
    pub control: Control<'a>,
}

impl Truncated {
    /// The default parameters with a given C.
    pub fn new(c: f64) -> Self {
        Truncated {
            c,
            truncation: Truncation::Auto,
            loss: Loss::hinge(),
            penalty: Penalty::L2,
            kernel: Kernel::default(),
            class_weight: ClassWeight::Equal,
            fit_intercept: true,
            tol: 1e-4,
            max_iter: 100,
            cache_size: 1000.0,
            threads: None,
            random_state: 0,
            solver: "auto".to_string(),
        }
    }

    /// Sets the truncation.
    pub fn truncation(mut self, truncation: impl Into<Truncation>) -> Self {
        self.truncation = truncation.into();
        self
    }

    /// Sets the loss before truncation.
    pub fn loss(mut self, loss: Loss) -> Self {
        self.loss = loss.untruncated();
        self
    }

    /// Sets the kernel.
    pub fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self
    }

    /// Sets the factors on C by class.
    pub fn class_weight(mut self, class_weight: ClassWeight) -> Self {
        self.class_weight = class_weight;
        self
    }

    /// Sets whether an intercept is fitted.
    pub fn fit_intercept(mut self, fit_intercept: bool) -> Self {
        self.fit_intercept = fit_intercept;
        self
    }

    /// Sets the relative duality gap at which a convex step stops.
    pub fn tol(mut self, tol: f64) -> Self {
        self.tol = tol;
        self
    }

    /// Sets the number of threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets the solver by name.
    pub fn solver(mut self, solver: impl Into<String>) -> Self {
        self.solver = solver.into();
        self
    }

    /// Fits.
    pub fn fit(&self, x: &dyn Design, y: &(impl Target + ?Sized)) -> Result<Model> {
        self.fit_with(x, y, &FitRequest::default())
    }

    /// Fits with sample weights, a start, or someone watching.
    pub fn fit_with(&self, _x: &dyn Design, _y: &(impl Target + ?Sized), _request: &FitRequest) -> Result<Model> {
        let _: Option<(Summary, Training)> = None;
        todo!()
    }
}
