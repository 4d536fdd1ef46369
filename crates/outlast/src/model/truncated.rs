//! The truncated-loss support vector machine: its parameters, their checks, and the fit.
//!
//! ```text
//! min  1/2 |f|^2 + C sum_i weight_i l_T(y_i f(x_i))
//! ```
//!
//! (Wu and Liu, "Robust truncated hinge loss support vector machines", JASA 2007; s, the truncation, is theirs.)

use super::{Function, Model, Predictor, Rows, Summary, Training};
use crate::control::Control;
use crate::data::{Design, Labels, Target, check_weights};
use crate::error::{Error, Result, quoted};
use crate::problem::{Kernel, KernelFunction, Loss, Penalty, TwoClass};
use crate::solver::{self, Options, Solution, Start, Status};

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
        check_shapes(x, &labels, request)?;
        in_pool(self.threads, || self.fit_checked(x, &labels, request))
    }

    fn fit_checked(&self, x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<Model> {
        x.check_finite()?;
        let loss = self.truncated_loss(labels.classes().len())?;
        let caps = self.caps(labels, request.sample_weight)?;
        let kernel = self.kernel.resolve(x, labels, request.sample_weight)?;
        let signs: Vec<f64> = labels.codes().iter().map(|&code| if code == 1 { 1.0 } else { -1.0 }).collect();
        let problem = TwoClass { x, signs: &signs, caps: &caps, loss, kernel: &kernel, intercept: self.fit_intercept };
        let options = self.options(request.start, labels.len())?;
        let name = solver::choose(&self.solver, &problem)?;
        let mut solution = solver::solve(name, &problem, &options, &request.control)?;
        if solution.status == Status::Inaccurate && solution.gap <= self.tol {
            // small fits aim higher than they were asked to
            solution.status = Status::Converged;
        }
        self.model(&problem, labels, solution, request)
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
        Ok(())
    }

    fn truncated_loss(&self, classes: usize) -> Result<Loss> {
        match self.truncation {
            Truncation::Off => Ok(self.loss),
            Truncation::At(truncation) => self.loss.truncated_at(truncation),
            Truncation::Auto => self.loss.truncated_at(self.loss.base().lowest_consistent_truncation(classes)),
        }
    }

    /// The factors on C by class; `None` where all are 1.
    fn class_factors(&self, labels: &Labels) -> Result<Option<Vec<f64>>> {
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
    fn caps(&self, labels: &Labels, sample_weight: Option<&[f64]>) -> Result<Vec<f64>> {
        let factors = self.class_factors(labels)?.unwrap_or_else(|| vec![1.0; labels.classes().len()]);
        let mut total = vec![0.0; labels.classes().len()];
        let mut caps = Vec::with_capacity(labels.len());
        for (row, &code) in labels.codes().iter().enumerate() {
            let weight = sample_weight.map_or(1.0, |weights| weights[row]);
            // beyond 1e200 a weight only says "infinitely hard"; kept finite so that sums are
            let cap = (self.c * factors[code as usize] * weight).min(1e200);
            total[code as usize] += cap;
            caps.push(cap);
        }
        if let Some(empty) = total.iter().position(|&total| total == 0.0) {
            let class = quoted(&labels.classes()[empty].to_string());
            let problem = format!("class {class} has no row of positive weight; every class needs one");
            return Err(Error::Classes { problem });
        }
        Ok(caps)
    }

    fn options(&self, start: Option<&Model>, rows: usize) -> Result<Options> {
        let start = match start.map(|model| (model, model.training.as_ref())) {
            None => None,
            Some((_, None)) => return Err(Error::shape("start", "no training rows", "a model fitted in this process")),
            Some((model, Some(training))) => {
                if training.expansion.len() != rows {
                    let found = format!("{} training rows", training.expansion.len());
                    return Err(Error::shape("start", found, format!("{rows}, as X has")));
                }
                Some(Start {
                    expansion: training.expansion.clone(),
                    weights: model.predictor.weights().map(<[f64]>::to_vec),
                    intercept: model.predictor.intercept,
                })
            }
        };
        Ok(Options {
            tolerance: self.tol.min(affordable_gap(rows)),
            max_steps: self.max_iter,
            cache_bytes: (self.cache_size * 1e6) as usize,
            seed: self.random_state,
            start,
            ..Options::default()
        })
    }

    fn model(&self, problem: &TwoClass, labels: &Labels, solution: Solution, request: &FitRequest) -> Result<Model> {
        let x = problem.x;
        let support: Vec<u32> = (0..x.rows() as u32).filter(|&row| solution.expansion[row as usize] != 0.0).collect();
        let coefficients: Vec<f64> = support.iter().map(|&row| solution.expansion[row as usize]).collect();
        let function = match problem.kernel {
            KernelFunction::Linear => {
                Function::Linear { weights: solution.weights.unwrap_or_else(|| combine(x, &support, &coefficients)) }
            }
            KernelFunction::Precomputed => Function::Precomputed,
            _ => Function::Kernel { rows: Rows::copy(x, &support)? },
        };
        let margins: Vec<f64> = solution.decision.iter().zip(problem.signs).map(|(f, y)| f * y).collect();
        let outliers: Vec<bool> = margins.iter().map(|&margin| problem.loss.truncates(margin)).collect();
        let summary = Summary {
            method: "truncated".to_string(),
            c: self.c,
            loss: problem.loss.base().name().to_string(),
            truncation: problem.loss.truncation(),
            penalty: self.penalty.name().to_string(),
            class_weight: self.class_factors(labels)?,
            fit_intercept: self.fit_intercept,
            tol: self.tol,
            max_iter: self.max_iter,
            solver_asked: self.solver.clone(),
            solver: solution.solver.to_string(),
            rows: x.rows(),
            class_rows: labels.counts(),
            outliers: outliers.iter().filter(|&&outlier| outlier).count(),
            objective: solution.objective,
            steps: solution.trace.len().saturating_sub(1),
            trace: solution.trace,
            gap: solution.gap,
            iterations: solution.iterations,
            status: solution.status,
        };
        let predictor = Predictor {
            classes: labels.classes().to_vec(),
            feature_names: request.feature_names.map(<[String]>::to_vec),
            features: x.cols(),
            kernel: problem.kernel.clone(),
            support,
            coefficients,
            function,
            intercept: solution.intercept,
        };
        let training = Training { margins, outliers, expansion: solution.expansion };
        Ok(Model { predictor, summary, training: Some(training) })
    }
}

/// A gap that costs next to nothing on that many rows, so that small fits are exact whatever the tolerance asked for: two
/// ways of writing the same data give the same model, and the d.c. path is the exact one.
fn affordable_gap(rows: usize) -> f64 {
    match rows {
        0..=1000 => 1e-10,
        1001..=4000 => 1e-7,
        _ => f64::INFINITY,
    }
}

/// sum_j coefficients_j x_j
fn combine(x: &dyn Design, rows: &[u32], coefficients: &[f64]) -> Vec<f64> {
    let mut weights = vec![0.0; x.cols()];
    for (&row, &coefficient) in rows.iter().zip(coefficients) {
        x.add_scaled(row as usize, coefficient, &mut weights);
    }
    weights
}

fn check_shapes(x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<()> {
    if x.rows() == 0 {
        return Err(Error::shape("X", "0 rows", "at least 2"));
    }
    if x.cols() == 0 {
        return Err(Error::shape("X", "0 columns", "at least 1"));
    }
    if x.rows() > u32::MAX as usize - 64 {
        return Err(Error::shape("X", format!("{} rows", x.rows()), "fewer than 2^32"));
    }
    if labels.len() != x.rows() {
        return Err(Error::shape("y", format!("{} labels", labels.len()), format!("{}, one per row of X", x.rows())));
    }
    match labels.classes() {
        [only] => {
            let only = quoted(&only.to_string());
            let problem = format!("every row is of class {only}; a classifier needs two classes");
            return Err(Error::Classes { problem });
        }
        [_, _] => {}
        classes => {
            let problem = format!("y has {} classes; this version fits two classes", classes.len());
            return Err(Error::Classes { problem });
        }
    }
    if let Some(names) = request.feature_names
        && names.len() != x.cols()
    {
        let found = format!("{} names", names.len());
        return Err(Error::shape("feature_names", found, format!("{}, one per column of X", x.cols())));
    }
    request.sample_weight.map_or(Ok(()), |weights| check_weights(weights, x.rows()))
}

/// Runs `work` on that many threads, or on the global pool.
fn in_pool<T: Send>(threads: Option<usize>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let Some(threads) = threads else { return work() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    match pool {
        Ok(pool) => pool.install(work),
        Err(error) => {
            Err(Error::parameter("n_jobs", threads, format!("a number of threads the system can start ({error})")))
        }
    }
}
