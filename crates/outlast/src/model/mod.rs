//! From a solution to something that predicts: [`Model`]. Parameters and their checks live in a type for each method
//! ([`Truncated`] and others) and, where methods share them, in [`Common`].

mod ablation;
mod baselines;
mod capped;
mod certify;
mod common;
pub(crate) mod condense;
mod details;
mod fit;
mod footprint;
mod inliers;
mod lq;
mod one_vs_rest;
mod payoff;
mod predictor;
pub(crate) mod probability;
mod probability_fit;
mod scaled;
mod search;
mod streamed;
mod truncated;
mod truncated_fit;
mod votes;
mod widths;

pub use ablation::{Ablation, AblationMethod};
pub use baselines::{Centroid, LeaveOneOut, Shift};
pub use capped::{Cap, Capped};
pub use certify::{Certified, certify, certify_with};
pub use common::{ClassWeight, Common, Estimator, FitRequest};
pub use details::Details;
#[cfg(feature = "io")]
pub(crate) use fit::MOST_CLASSES;
pub use footprint::Footprint;
pub use inliers::Inliers;
pub use lq::Lq;
pub(crate) use lq::{check_memory, copies};
pub use payoff::{Baseline, CostForm};
pub use predictor::{Function, Predictor, Rows};
pub use probability::{Family, Probabilities, Probability, pairs};
pub use streamed::StreamRequest;
pub use truncated::{Truncated, Truncation};
pub use votes::Votes;
pub use widths::gamma_quartiles;

pub(crate) use scaled::unscaled;

use crate::data::{Class, Design, Target};
use crate::error::{Error, Result, quoted};
use crate::solver::Status;

/// The names of the methods.
pub const METHODS: &[&str] = &["truncated", "capped", "lq", "reh", "rod", "centroid", "loo"];

/// A fitted model.
///
/// ```
/// use outlast::{Dense, Kernel, Truncated};
///
/// let x = Dense::from_rows(&[[0.0], [1.0], [2.0], [3.0]]);
/// let model = Truncated::new(10.0).kernel(Kernel::Linear).fit(&x, &[-1, -1, 1, 1])?;
/// let new = Dense::from_rows(&[[-5.0], [5.0]]);
/// assert_eq!(model.predict(&new)?[1].to_string(), "1");
/// assert!(model.decision_function(&new)?[0] < 0.0);
/// println!("{} support vectors, gap {:.0e}", model.support_count(), model.summary.gap);
/// # Ok::<(), outlast::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// What predicts.
    pub predictor: Predictor,
    /// How it was made.
    pub summary: Summary,
    /// What the fit says about each training row; not kept in model files.
    pub training: Option<Training>,
}

/// How a model was made: the numbers a report shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The method's name on every face, e.g. `"truncated"`.
    pub method: String,
    /// Weight of the loss.
    pub c: f64,
    /// Base loss.
    pub loss: String,
    /// The paper's s; `None` for no truncation.
    pub truncation: Option<f64>,
    /// Penalty.
    pub penalty: String,
    /// The utility matrix given, k x k, row-major, row = true class.
    pub utility: Option<Vec<f64>>,
    /// The cost matrix given.
    pub cost: Option<Vec<f64>>,
    /// How costs entered: `"utility"` or `"direct"`.
    pub cost_form: String,
    /// What was subtracted from the rows of the utility matrix: `"keep"` (nothing) or `"row_minimum"`.
    pub utility_baseline: String,
    /// Factors on C by class, in the order of the classes; `None` where all are 1.
    pub class_weight: Option<Vec<f64>>,
    /// Whether an intercept was fitted.
    pub fit_intercept: bool,
    /// Relative duality gap asked for.
    pub tol: f64,
    /// Most majorise-minimise steps allowed.
    pub max_iter: usize,
    /// Which solver was asked for: a name or `"auto"`.
    pub solver_asked: String,
    /// Which solver was taken.
    pub solver: String,
    /// Rows of the training data.
    pub rows: usize,
    /// Rows of each class, in the order of the classes.
    pub class_rows: Vec<usize>,
    /// Rows beyond the truncation.
    pub outliers: usize,
    /// The full objective, sample weights included.
    pub objective: f64,
    /// The objective at the start and after each majorise-minimise step. Never rises.
    pub trace: Vec<f64>,
    /// Majorise-minimise steps taken.
    pub steps: usize,
    /// Relative duality gap of the last convex problem.
    pub gap: f64,
    /// Iterations of the solver, all convex problems together.
    pub iterations: usize,
    /// How the fit ended.
    pub status: Status,
    /// Numbers that only some methods have.
    pub details: Details,
}

/// What a fit says about its training rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Training {
    /// Functional margin of each row: y f(x), or f_y(x) minus the largest other f_j(x).
    pub margins: Vec<f64>,
    /// Whether the row lies beyond the truncation.
    pub outliers: Vec<bool>,
    /// The expansion's coefficients, rows x functions, 0 for rows that are no support vectors.
    pub expansion: Vec<f64>,
    /// How far ablation keeps each row, 0 to 1, rows x functions.
    pub eta: Option<Vec<f64>>,
    /// How suspect each row is, where that is not told by its margin: the loss without its cap.
    pub scores: Option<Vec<f64>>,
}

impl Summary {
    /// The matrix given, k x k, row = true class, and its name: `"utility"` or `"cost"`.
    pub fn payoff(&self) -> Option<(&'static str, &[f64])> {
        match &self.utility {
            Some(matrix) => Some(("utility", matrix)),
            None => self.cost.as_deref().map(|matrix| ("cost", matrix)),
        }
    }
}

impl Training {
    /// One number per row, larger = more suspect: the scores, or minus the functional margin.
    pub fn outlier_scores(&self) -> Vec<f64> {
        if let Some(scores) = &self.scores {
            return scores.clone();
        }
        self.margins.iter().map(|margin| -margin).collect()
    }
}

impl Model {
    /// The classes, sorted. With two, positive decision values mean the second.
    pub fn classes(&self) -> &[Class] {
        &self.predictor.classes
    }

    /// Sets a larger number of features, where the file of another program does not tell it: see [`Predictor::widen`]. Of a precomputed kernel
    /// the features are the training rows, of which such a file names the support vectors only.
    pub fn widen(&mut self, features: usize) -> Result<()> {
        if !matches!(self.predictor.function, Function::Precomputed) || self.summary.solver != "libsvm" {
            return self.predictor.widen(features);
        }
        self.predictor.check_wider(features)?;
        self.predictor.features = features;
        self.summary.rows = features;
        Ok(())
    }

    /// f(x) + b of each row: one number per row for two classes, else rows x classes, row-major; rows x pairs for a model whose pairs
    /// of classes [vote](Votes).
    pub fn decision_function(&self, x: &dyn Design) -> Result<Vec<f64>> {
        self.predictor.decision_function(x)
    }

    /// The class of each row, as a position in [`classes`](Self::classes).
    pub fn predict_codes(&self, x: &dyn Design) -> Result<Vec<u32>> {
        self.predictor.predict_codes(x)
    }

    /// The class of each row.
    pub fn predict(&self, x: &dyn Design) -> Result<Vec<Class>> {
        let codes = self.predict_codes(x)?;
        Ok(codes.into_iter().map(|code| self.classes()[code as usize].clone()).collect())
    }

    /// The probability of each class, rows x classes, of a model that was fitted with
    /// [`Probability::Weighted`].
    ///
    /// They come from other fits than the decisions. Without payoffs the most probable class is the one decided for: where the estimates
    /// say otherwise, which they do only where classes are nearly as probable as each other, they are changed as little as that takes.
    pub fn predict_proba(&self, x: &dyn Design) -> Result<Vec<f64>> {
        let mut probabilities = self.predictor.probabilities(x)?;
        if self.summary.payoff().is_none() {
            let rows = probabilities.chunks_exact_mut(self.classes().len());
            rows.zip(self.predict_codes(x)?).for_each(|(p, code)| probability::agree(p, code as usize));
        }
        Ok(probabilities)
    }

    /// Mean utility (or cost, if the model was fitted with costs) of the decisions for labelled rows; `None` for a model
    /// without such a matrix.
    ///
    /// ```
    /// use outlast::{Dense, Kernel, Truncated};
    ///
    /// let x = Dense::from_rows(&[[0.0], [0.1], [1.0], [1.1]]);
    /// let cost = vec![vec![0.0, 1.0], vec![5.0, 0.0]];
    /// let model = Truncated::new(10.0).kernel(Kernel::Linear).cost(cost).fit(&x, &["ham", "ham", "spam", "spam"])?;
    /// assert_eq!(model.average_payoff(&x, &["ham", "ham", "spam", "spam"])?, Some(0.0));
    /// assert_eq!(model.average_payoff(&x, &["spam", "ham", "spam", "spam"])?, Some(1.25));
    /// # Ok::<(), outlast::Error>(())
    /// ```
    pub fn average_payoff(&self, x: &dyn Design, y: &(impl Target + ?Sized)) -> Result<Option<f64>> {
        let Some((_, matrix)) = self.summary.payoff() else { return Ok(None) };
        let labels = y.labels();
        if labels.len() != x.rows() || labels.is_empty() {
            return Err(Error::shape("y", format!("{} labels", labels.len()), format!("{}, one per row", x.rows())));
        }
        let known = |class: &Class| {
            self.classes().iter().position(|known| known == class).ok_or_else(|| {
                let problem = format!("the model does not know class {}", quoted(&class.to_string()));
                Error::Classes { problem }
            })
        };
        let truth: Vec<usize> = labels.classes().iter().map(known).collect::<Result<_>>()?;
        let decided = self.predict_codes(x)?;
        let pairs = labels.codes().iter().zip(&decided);
        let sum: f64 =
            pairs.map(|(&code, &to)| matrix[truth[code as usize] * self.classes().len() + to as usize]).sum();
        Ok(Some(sum / labels.len() as f64))
    }

    /// Whether the columns were put on one scale as part of the fit.
    pub fn is_standardized(&self) -> bool {
        self.summary.details.get("standardized") == Some(1.0)
    }

    /// Columns of X that a linear model uses: those with a coefficient that is not 0.
    pub fn selected(&self) -> Option<Vec<usize>> {
        self.predictor.selected()
    }

    /// Number of support vectors.
    pub fn support_count(&self) -> usize {
        self.predictor.support.len()
    }
}
