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

use super::common::shared_parameters;
use super::footprint::{Footprint, Kind};
use super::payoff::{Baseline, CostForm, Payoff};
use super::{
    Common, Estimator, FitRequest, Model, Probability, StreamRequest, check_memory, copies, fit, truncated_fit,
};
use crate::data::{Design, Labels};
use crate::error::{Error, Result};
use crate::problem::{Kernel, Loss, Penalty};
use crate::solver::kernel::KernelStore;
use crate::solver::stream::Passes;

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
    /// What it shares with the other methods; `tol` is the gap of a convex step, `max_iter` counts majorise-minimise steps.
    pub common: Common,
    /// Where the loss is cut off.
    pub truncation: Truncation,
    /// The loss before truncation.
    pub loss: Loss,
    /// The penalty.
    pub penalty: Penalty,
    /// The exponent of the penalty `lq`, 0 < q <= 1; other penalties do not look at it.
    pub q: f64,
    /// k x k, >= 0, row = true class: what deciding for a class is worth. In the sorted order of the classes.
    pub utility: Option<Vec<Vec<f64>>>,
    /// k x k, >= 0, row = true class: what deciding for a class costs. Not together with `utility`.
    pub cost: Option<Vec<Vec<f64>>>,
    /// How costs enter.
    pub cost_form: CostForm,
    /// What is subtracted from the rows of the utility matrix.
    pub utility_baseline: Baseline,
    /// Whether to look for the global optimum: two classes, hinge, truncation 0. The d.c. algorithm is started from a convex
    /// relaxation as well, and on few rows a branch and bound goes on until the optimum is proved.
    pub global_search: bool,
    /// Whether probabilities are estimated as well.
    pub probability: Probability,
    /// `"auto"`, or the name of the solver to take (see [`solver::NAMES`](crate::solver::NAMES)).
    pub solver: String,
}

impl Truncated {
    /// The default parameters with a given C.
    pub fn new(c: f64) -> Self {
        Truncated {
            common: Common { c, ..Common::default() },
            truncation: Truncation::Auto,
            loss: Loss::hinge(),
            penalty: Penalty::L2,
            q: 0.5,
            utility: None,
            cost: None,
            cost_form: CostForm::Utility,
            utility_baseline: Baseline::Keep,
            global_search: false,
            probability: Probability::Off,
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

    /// Sets the exponent of the penalty `lq`.
    pub fn q(mut self, q: f64) -> Self {
        self.q = q;
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

    /// Sets whether to look for the global optimum.
    pub fn global_search(mut self, global_search: bool) -> Self {
        self.global_search = global_search;
        self
    }

    /// Sets whether probabilities are estimated as well.
    ///
    /// ```
    /// use outlast::{Dense, Kernel, Probability, Truncated};
    ///
    /// let x = Dense::from_rows(&[[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]);
    /// let method = Truncated::new(1.0).kernel(Kernel::Linear).probability(Probability::Weighted);
    /// let model = method.fit(&x, &["no", "no", "yes", "no", "yes", "yes"])?;
    /// let p = model.predict_proba(&x)?; // rows x classes
    /// assert!((p[0] + p[1] - 1.0).abs() < 1e-12);
    /// assert!(p[1] < p[5] && p[5] < p[11]);
    /// # Ok::<(), outlast::Error>(())
    /// ```
    pub fn probability(mut self, probability: Probability) -> Self {
        self.probability = probability;
        self
    }

    /// Sets the solver by name.
    pub fn solver(mut self, solver: impl Into<String>) -> Self {
        self.solver = solver.into();
        self
    }

    pub(super) fn truncated_loss(&self, classes: usize) -> Result<Loss> {
        match self.truncation {
            Truncation::Off => Ok(self.loss),
            Truncation::At(truncation) => self.loss.truncated_at(truncation),
            Truncation::Auto => self.loss.truncated_at(self.loss.base().lowest_consistent_truncation(classes)),
        }
    }

    /// Checks rows and labels.
    pub(crate) fn check_data(&self, x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<()> {
        fit::check_shapes(x, labels, request)?;
        if self.penalty != Penalty::L2 {
            let q = if self.penalty == Penalty::Lq { self.q } else { 1.0 };
            check_memory(x.cols(), fit::functions(labels), copies(q))?;
        }
        x.check_finite()
    }

    /// Runs work on the threads asked for.
    pub(crate) fn in_pool<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        fit::in_pool(self.common.threads, work)
    }

    /// Fits to the tolerance asked for, however small the problem, on the threads of the caller.
    /// `store` has kernel rows of earlier fits to the same rows.
    pub(crate) fn fit_roughly(
        &self,
        x: &dyn Design,
        labels: &Labels,
        request: &FitRequest,
        store: &KernelStore,
    ) -> Result<Model> {
        self.check()?;
        fit::check_shapes(x, labels, request)?;
        let payoff = Payoff::of(self, labels.classes())?;
        truncated_fit::run(self, payoff.as_ref(), x, labels, request, Some(store))
    }

    /// The matrix given, checked, and whether it holds costs.
    pub(crate) fn given_payoff(&self, labels: &Labels) -> Result<Option<(Vec<f64>, bool)>> {
        Ok(Payoff::of(self, labels.classes())?.map(|payoff| (payoff.given, payoff.is_cost)))
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

    /// The search for a global optimum knows one problem.
    fn check_global(&self) -> Result<()> {
        let refuse = |with: String, allowed: &str| {
            Err(Error::parameter("global_search", format!("on with {with}"), format!("off, or {allowed}")))
        };
        match self.truncation {
            Truncation::At(0.0) => {}
            Truncation::At(at) => return refuse(format!("truncation {at}"), "truncation 0"),
            Truncation::Auto => return refuse("truncation \"auto\"".to_string(), "truncation 0"),
            Truncation::Off => return refuse("no truncation".to_string(), "truncation 0"),
        }
        match () {
            _ if self.loss.base().is_smooth() => {
                refuse(format!("the {} loss", self.loss.base().name()), "the loss hinge")
            }
            _ if self.penalty.selects() => refuse(format!("penalty {:?}", self.penalty.name()), "penalty \"l2\""),
            _ if self.utility.is_some() => refuse("a utility matrix".to_string(), "no utility matrix"),
            _ if self.cost.is_some() => refuse("a cost matrix".to_string(), "no cost matrix"),
            _ => Ok(()),
        }
    }
}

impl Estimator for Truncated {
    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn check(&self) -> Result<()> {
        self.common.check()?;
        if let Truncation::At(truncation) = self.truncation {
            self.loss.truncated_at(truncation)?;
        }
        if self.penalty.selects() && !matches!(self.common.kernel, Kernel::Linear) {
            let found = format!("{:?} with the {} kernel", self.penalty.name(), self.common.kernel.name());
            return Err(Error::parameter("penalty", found, "\"l2\", or the linear kernel"));
        }
        if self.penalty == Penalty::Lq && !(self.q > 0.0 && self.q <= 1.0) {
            return Err(Error::parameter("q", self.q, "a number > 0 and <= 1 with a truncated loss"));
        }
        if self.cost_form == CostForm::Direct {
            self.check_direct()?;
        }
        if self.global_search { self.check_global() } else { Ok(()) }
    }

    fn fit_labels(&self, x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<Model> {
        self.check()?;
        fit::check_shapes(x, labels, request)?;
        let payoff = Payoff::of(self, labels.classes())?;
        fit::in_pool(self.common.threads, || truncated_fit::run(self, payoff.as_ref(), x, labels, request, None))
    }

    fn check_chunks(&self) -> Result<()> {
        self.check_streamed()
    }

    fn footprint(&self, cols: usize, classes: usize) -> Footprint {
        let copies = if self.utility.is_some() || self.cost.is_some() { classes } else { 1 };
        let of = |kind: Kind| kind.footprint(cols, classes, copies);
        match self.penalty {
            Penalty::L2 => of(Kind::Squared),
            Penalty::L1 => of(Kind::Selecting),
            // its rates are those of a fit with the l2 penalty
            Penalty::AdaptiveL1 => of(Kind::Squared).or(of(Kind::Selecting)),
            Penalty::Lq => of(Kind::power(self.q)),
        }
    }

    fn fit_passes(&self, rows: &mut dyn Passes, request: &StreamRequest) -> Result<Model> {
        self.stream(rows, request)
    }
}

shared_parameters!(Truncated);
