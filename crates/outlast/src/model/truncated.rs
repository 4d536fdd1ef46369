//! The truncated-loss support vector machine: its parameters, their checks, and the fit.
//!
//! ```text
//! min  penalty(f) + C sum_i weight_i l_T(y_i f(x_i))                                       two classes
//! min  penalty(f) + C sum_i weight_i sum_j U[y_i, j] l_T(f_j - max_{l != j} f_l)           k classes, sum_j f_j = 0
//! ```
//!
//! U is the utility matrix, without one the identity. (Wu and Liu, "Robust truncated hinge loss support vector machines",
//! JASA 2007; Liu, Wu and He, "Utility-based weighted multicategory robust support vector machines"; s, the truncation,
//! is theirs.) With two classes and a utility matrix, f stands for f_2 - f_1 and the terms are U[y, y] l_T(y f) and
//! U[y, other] l_T(-y f).

use super::payoff::{Baseline, CostForm, Payoff};
use super::{Model, fit};
use crate::control::Control;
use crate::data::{Design, Labels, Target};
use crate::error::{Error, Result};
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
///
/// ```
/// use outlast::{Dense, Gamma, Kernel, Loss, Truncated, Truncation};
///
/// let x = Dense::from_rows(&[[0.0, 0.1], [0.2, 0.0], [1.0, 0.9], [0.8, 1.1]]);
/// let y = ["a", "a", "b", "b"];
/// let robust = Truncated::new(1.0).kernel(Kernel::rbf(Gamma::Median)).fit(&x, &y)?;
/// let plain = Truncated::new(1.0).truncation(Truncation::Off).kernel(Kernel::Linear).fit(&x, &y)?;
/// let logistic = Truncated::new(1.0).loss(Loss::logistic()).truncation(-1.0).fit(&x, &y)?;
/// for model in [robust, plain, logistic] {
///     assert_eq!(model.predict_codes(&x)?, [0, 0, 1, 1]);
/// }
/// # Ok::<(), outlast::Error>(())
/// ```
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
    /// k x k, >= 0, row = true class: what deciding for a class is worth. In the sorted order of the classes.
    pub utility: Option<Vec<Vec<f64>>>,
    /// k x k, >= 0, row = true class: what deciding for a class costs. Not together with `utility`.
    pub cost: Option<Vec<Vec<f64>>>,
    /// How costs enter.
    pub cost_form: CostForm,
    /// What is subtracted from the rows of the utility matrix.
    pub utility_baseline: Baseline,
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
    /// `"auto"`, or the name of the solver to take (see [`solver::NAMES`]).
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
            utility: None,
            cost: None,
            cost_form: CostForm::Utility,
            utility_baseline: Baseline::Keep,
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

    /// Sets the penalty.
    pub fn penalty(mut self, penalty: Penalty) -> Self {
        self.penalty = penalty;
        self
    }

    /// Sets the kernel.
    pub fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self
    }

    /// Sets the utility matrix: row = true class, column = decision, both in the sorted order of the classes.
    ///
    /// ```
    /// use outlast::{Dense, Kernel, Truncated};
    ///
    /// let x = Dense::from_rows(&[[0.0], [0.1], [1.0], [1.1], [2.0], [2.1]]);
    /// let y = ["a", "a", "b", "b", "c", "c"];
    /// // taking an "a" for a "b" is worth half as much as being right
    /// let utility = vec![vec![1.0, 0.5, 0.0], vec![0.0, 1.0, 0.0], vec![0.0, 0.0, 1.0]];
    /// let model = Truncated::new(10.0).kernel(Kernel::Linear).utility(utility).fit(&x, &y)?;
    /// assert_eq!(model.predict_codes(&x)?, [0, 0, 1, 1, 2, 2]);
    /// # Ok::<(), outlast::Error>(())
    /// ```
    pub fn utility(mut self, utility: Vec<Vec<f64>>) -> Self {
        self.utility = Some(utility);
        self
    }

    /// Sets the cost matrix: row = true class, column = decision.
    pub fn cost(mut self, cost: Vec<Vec<f64>>) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Sets how costs enter.
    pub fn cost_form(mut self, cost_form: CostForm) -> Self {
        self.cost_form = cost_form;
        self
    }

    /// Sets what is subtracted from the rows of the utility matrix.
    pub fn utility_baseline(mut self, baseline: Baseline) -> Self {
        self.utility_baseline = baseline;
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

    /// Sets the largest number of majorise-minimise steps.
    pub fn max_iter(mut self, max_iter: usize) -> Self {
        self.max_iter = max_iter;
        self
    }

    /// Sets the seed of whatever is drawn at random.
    pub fn random_state(mut self, seed: u64) -> Self {
        self.random_state = seed;
        self
    }

    /// Sets the megabytes the kernel solver may keep.
    pub fn cache_size(mut self, megabytes: f64) -> Self {
        self.cache_size = megabytes;
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
    ///
    /// ```
    /// use outlast::{Control, Dense, FitRequest, Progress, Truncated};
    ///
    /// let x = Dense::from_rows(&[[0.0], [1.0], [2.0], [3.0]]);
    /// let watch = |progress: Progress| assert!(progress.step < 1000);
    /// let request = FitRequest {
    ///     sample_weight: Some(&[1.0, 1.0, 1.0, 0.5]),
    ///     control: Control::default().progress(&watch),
    ///     ..FitRequest::default()
    /// };
    /// let model = Truncated::new(1.0).fit_with(&x, &[0, 0, 1, 1], &request)?;
    /// // a second fit may start from the first
    /// let warm = FitRequest { start: Some(&model), ..FitRequest::default() };
    /// let stiffer = Truncated::new(10.0).fit_with(&x, &[0, 0, 1, 1], &warm)?;
    /// assert_eq!(stiffer.predict_codes(&x)?, [0, 0, 1, 1]);
    /// # Ok::<(), outlast::Error>(())
    /// ```
    pub fn fit_with(&self, x: &dyn Design, y: &(impl Target + ?Sized), request: &FitRequest) -> Result<Model> {
        let labels = y.labels();
        self.check()?;
        fit::check_shapes(x, &labels, request)?;
        let payoff = Payoff::of(self, labels.classes())?;
        fit::in_pool(self.threads, || fit::run(self, payoff.as_ref(), x, &labels, request))
    }

    /// Checks every parameter that can be checked without data.
    pub fn check(&self) -> Result<()> {
        let positive = |name, value: f64| match value.is_finite() && value > 0.0 {
            true => Ok(()),
            false => Err(Error::parameter(name, value, "a finite number > 0")),
        };
        positive("C", self.c)?;
        positive("tol", self.tol)?;
        positive("cache_size", self.cache_size)?;
        if self.max_iter == 0 {
            return Err(Error::parameter("max_iter", 0, "a whole number >= 1"));
        }
        if self.threads == Some(0) {
            return Err(Error::parameter("n_jobs", 0, "a whole number >= 1, or none for all cores"));
        }
        if let Truncation::At(truncation) = self.truncation {
            self.loss.truncated_at(truncation)?;
        }
        if let ClassWeight::Given(weights) = &self.class_weight
            && let Some(bad) = weights.iter().find(|weight| !(weight.is_finite() && **weight >= 0.0))
        {
            return Err(Error::parameter("class_weight", bad, "finite numbers >= 0"));
        }
        if self.penalty.selects() && !matches!(self.kernel, Kernel::Linear) {
            let found = format!("{:?} with the {} kernel", self.penalty.name(), self.kernel.name());
            return Err(Error::parameter("penalty", found, "\"l2\", or the linear kernel"));
        }
        if self.cost_form == CostForm::Direct {
            self.check_direct()?;
        }
        Ok(())
    }

    fn check_direct(&self) -> Result<()> {
        let refuse = |with: String, or: &str| {
            Err(Error::parameter("cost_form", format!("\"direct\" with {with}"), format!("\"utility\", or {or}")))
        };
        match () {
            _ if self.cost.is_none() => refuse("no cost matrix".to_string(), "a cost matrix given"),
            _ if self.loss.base().is_smooth() => {
                refuse(format!("the {} loss", self.loss.base().name()), "the loss hinge")
            }
            _ if self.penalty.selects() => refuse(format!("penalty {:?}", self.penalty.name()), "penalty \"l2\""),
            _ => Ok(()),
        }
    }

    pub(super) fn truncated_loss(&self, classes: usize) -> Result<Loss> {
        match self.truncation {
            Truncation::Off => Ok(self.loss),
            Truncation::At(truncation) => self.loss.truncated_at(truncation),
            Truncation::Auto => self.loss.truncated_at(self.loss.base().lowest_consistent_truncation(classes)),
        }
    }

    /// The factors on C by class; `None` where all are 1.
    pub(super) fn class_factors(&self, labels: &Labels) -> Result<Option<Vec<f64>>> {
        match &self.class_weight {
            ClassWeight::Equal => Ok(None),
            ClassWeight::Balanced => {
                let total = labels.len() as f64 / labels.classes().len() as f64;
                Ok(Some(labels.counts().into_iter().map(|count| total / count as f64).collect()))
            }
            ClassWeight::Given(weights) => {
                if weights.len() != labels.classes().len() {
                    let found = format!("{} values", weights.len());
                    return Err(Error::shape(
                        "class_weight",
                        found,
                        format!("{}, one per class", labels.classes().len()),
                    ));
                }
                Ok(Some(weights.clone()))
            }
        }
    }

    /// c_i = C x class weight x sample weight. Every class must keep some weight.
    pub(super) fn caps(&self, labels: &Labels, sample_weight: Option<&[f64]>) -> Result<Vec<f64>> {
        let factors = self.class_factors(labels)?.unwrap_or_else(|| vec![1.0; labels.classes().len()]);
        let mut caps = Vec::with_capacity(labels.len());
        for (row, &code) in labels.codes().iter().enumerate() {
            let weight = sample_weight.map_or(1.0, |weights| weights[row]);
            // beyond 1e200 a weight only says "infinitely hard"; kept finite so that sums are
            caps.push((self.c * factors[code as usize] * weight).min(1e200));
        }
        fit::check_class_weights(labels, &caps)?;
        Ok(caps)
    }
}
