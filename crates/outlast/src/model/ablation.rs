//! Convex outlier ablation: the relaxations REH and ROD, and the classifiers they lead to.
//!
//! ```text
//! REH  min  1/2 |f|^2 + C sum_i weight_i min(1, [1 - y_i f(x_i)]_+)
//! ROD  min  1/2 |f|^2 + C sum_i weight_i eta_i [1 - y_i f(x_i)]_+,    0 <= eta <= 1,  sum weight eta >= rho sum weight
//! ```
//!
//! (Xu, Crammer and Schuurmans, "Robust support vector machine training via convex outlier ablation", AAAI 2006, with C =
//! 1/beta.) Both are not convex. Their relaxations are; these give a lower bound and a classifier, from which the turns of
//! [`refine`](crate::solver::alternate::refine) go on to a critical point of the problem itself.

use super::common::shared_parameters;
use super::one_vs_rest::{self, Found};
use super::{Common, Details, Estimator, FitRequest, Inliers, Model, fit, inliers};
use crate::data::{Design, Labels};
use crate::error::{Error, Result};
use crate::problem::{Kernel, KernelFunction, TwoClass};
use crate::solver::ablation::{self, Relaxed, Rule};
use crate::solver::{Solution, Start, alternate};

/// The two forms of ablation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AblationMethod {
    /// The robust eta-hinge loss: a row costs at most C.
    Reh,
    /// The robust outlier detector: a given share of the rows is obeyed.
    Rod,
}

impl AblationMethod {
    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            AblationMethod::Reh => "reh",
            AblationMethod::Rod => "rod",
        }
    }

    /// The form of that name.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "reh" => Ok(AblationMethod::Reh),
            "rod" => Ok(AblationMethod::Rod),
            _ => Err(Error::parameter("method", format!("{name:?}"), "\"reh\" or \"rod\"")),
        }
    }
}

/// Parameters of convex outlier ablation. Two classes make one problem; of more, each is set against the others.
///
/// ```
/// use outlast::{Ablation, Dense};
///
/// let x = Dense::from_rows(&[[-2.0], [-1.5], [-1.0], [1.0], [1.5], [2.0], [40.0]]);
/// let y = [0, 0, 0, 1, 1, 1, 0]; // the last label is wrong, and far away
/// let model = Ablation::reh(1.0).fit(&x, &y)?;
/// let training = model.training.as_ref().expect("a fitted model knows its training rows");
/// assert_eq!(training.outliers, [false, false, false, false, false, false, true]);
/// let bound = model.summary.details.get("lower_bound").expect("ablation bounds its problem");
/// assert!(bound <= model.summary.objective);
/// # Ok::<(), outlast::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ablation {
    /// What it shares with the other methods. The kernel is linear and there is no intercept unless asked for; `tol` is the
    /// relative gap between the relaxation's value and its certificate.
    pub common: Common,
    /// Which form.
    pub method: AblationMethod,
    /// rho of ROD: the share of the rows' weight that is kept.
    pub inlier_fraction: Inliers,
    /// Whether the relaxation's classifier is refined by turns over the rows kept and the classifier.
    pub refine: bool,
}

impl Ablation {
    /// A `tol` that suits a fit with an intercept, where every further digit takes several times as long.
    pub const TOL_WITH_INTERCEPT: f64 = 1e-3;

    /// REH with a given C and the default parameters.
    pub fn reh(c: f64) -> Self {
        Ablation::new(AblationMethod::Reh, c)
    }

    /// ROD with a given C and the default parameters.
    pub fn rod(c: f64) -> Self {
        Ablation::new(AblationMethod::Rod, c)
    }

    /// Either form.
    pub fn new(method: AblationMethod, c: f64) -> Self {
        let common = Common { c, kernel: Kernel::Linear, fit_intercept: false, tol: 1e-6, ..Common::default() };
        Ablation { common, method, inlier_fraction: Inliers::default(), refine: true }
    }

    /// Sets the share of the rows' weight that ROD keeps.
    pub fn inlier_fraction(mut self, inliers: impl Into<Inliers>) -> Self {
        self.inlier_fraction = inliers.into();
        self
    }

    /// Sets whether the relaxation's classifier is refined.
    pub fn refine(mut self, refine: bool) -> Self {
        self.refine = refine;
        self
    }

    fn solve(&self, problem: &TwoClass, request: &FitRequest) -> Result<Found> {
        let options = self.common.options(self.common.tol, None);
        let (rule, relaxed) = match (self.method, self.inlier_fraction) {
            (AblationMethod::Reh, _) => (Rule::Reh, None),
            (AblationMethod::Rod, Inliers::Given(inliers)) => (Rule::Rod { inliers }, None),
            (AblationMethod::Rod, Inliers::Transition) => inliers::transition(problem, &options, &request.control)?,
            (AblationMethod::Rod, Inliers::CrossValidation) => {
                (inliers::cross_validated(problem, self.refine, &options, &request.control)?, None)
            }
        };
        let relaxed = match relaxed {
            Some(relaxed) => relaxed,
            None => ablation::relax(problem, rule, &options, request.control)?,
        };
        let exact = self.common.options(self.common.tolerance(problem.rows()), None);
        let solution = classifier(problem, rule, &relaxed, self.refine, &exact, &request.control)?;
        let solution = self.common.settled(solution);
        // what was asked for is the relaxation: its gap counts
        let gap = relative_gap(&relaxed, problem.caps);
        let iterations = relaxed.iterations + solution.iterations;
        let status = if relaxed.status.is_converged() { solution.status } else { relaxed.status };
        let solution = Solution { gap, iterations, status, solver: ablation::NAME, ..solution };
        let mut details = Details::default();
        // no objective is negative, and no bound above an objective is one
        details.set("lower_bound", relaxed.lower.max(0.0).min(solution.objective));
        details.set("relaxation", relaxed.value);
        details.set("refined", f64::from(self.refine));
        details.set("rank", relaxed.rank as f64);
        details.set("kernel_error", relaxed.kernel_error);
        if let Rule::Rod { inliers } = rule {
            details.set("inlier_fraction", inliers);
        }
        Ok(Found { solution, eta: Some(relaxed.eta), details })
    }
}

/// The relaxation's gap relative to its value; a value of 0 is measured by what all rows weigh, as the solver does.
fn relative_gap(relaxed: &Relaxed, caps: &[f64]) -> f64 {
    let least = ablation::NOTHING * caps.iter().sum::<f64>();
    ((relaxed.value - relaxed.lower) / relaxed.value.abs().max(least).max(f64::MIN_POSITIVE)).max(0.0)
}

/// The relaxation's classifier, refined if asked for.
pub(super) fn classifier(
    problem: &TwoClass,
    rule: Rule,
    relaxed: &Relaxed,
    refine: bool,
    options: &crate::solver::Options,
    control: &crate::Control,
) -> Result<Solution> {
    let expansion = relaxed.expansion.clone();
    let linear = matches!(problem.kernel, KernelFunction::Linear);
    let weights = linear.then(|| fit::combine(problem.x, &expansion, 1));
    let start = Start { expansion, weights, intercepts: vec![relaxed.intercept] };
    if !refine {
        return Ok(alternate::evaluate(problem, rule, start));
    }
    let solution = alternate::refine(problem, rule, start, &relaxed.eta, options, control)?;
    // on data of absurd scales rounding may have led astray: f = 0 is always there to begin with
    let nothing = Start {
        expansion: vec![0.0; problem.rows()],
        weights: linear.then(|| vec![0.0; problem.x.cols()]),
        intercepts: vec![0.0],
    };
    if solution.objective <= alternate::evaluate(problem, rule, nothing.clone()).objective {
        return Ok(solution);
    }
    alternate::refine(problem, rule, nothing, &relaxed.eta, options, control)
}

impl Estimator for Ablation {
    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn check(&self) -> Result<()> {
        self.common.check()?;
        self.inlier_fraction.check()
    }

    fn fit_labels(&self, x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<Model> {
        self.check()?;
        fit::check_shapes(x, labels, request)?;
        let name = self.method.name();
        fit::in_pool(self.common.threads, || {
            let mut model =
                one_vs_rest::run(name, &self.common, x, labels, request, |problem| self.solve(problem, request))?;
            // what a row costs at most, as a truncation: the margin 0
            model.summary.truncation = (self.method == AblationMethod::Reh).then_some(0.0);
            Ok(model)
        })
    }
}

shared_parameters!(Ablation);
