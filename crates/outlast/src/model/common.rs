//! What every method is told: the parameters they share, the checks of these, and the request of a fit.

use super::{Footprint, Model, StreamRequest, fit};
use crate::control::Control;
use crate::data::{Chunks, Design, Labels};
use crate::error::{Error, Result, quoted};
use crate::problem::Kernel;
use crate::solver::stream::{Local, Passes};
use crate::solver::{Options, Solution, Start, Status};

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

/// The parameters all methods share. Each method's own type has a setter for every one of them.
#[derive(Debug, Clone)]
pub struct Common {
    /// Weight of the loss against the penalty, > 0.
    pub c: f64,
    /// The kernel.
    pub kernel: Kernel,
    /// Factors on C by class.
    pub class_weight: ClassWeight,
    /// Whether an unpenalised intercept is fitted.
    pub fit_intercept: bool,
    /// Relative duality gap at which a convex problem counts as solved.
    pub tol: f64,
    /// Most steps of the method.
    pub max_iter: usize,
    /// Megabytes a solver may keep.
    pub cache_size: f64,
    /// Threads; `None` for all cores.
    pub threads: Option<usize>,
    /// Seed of whatever is drawn at random.
    pub random_state: u64,
}

/// What goes into a fit beside the parameters, the rows and the labels.
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

/// A method with its parameters, whichever it is.
///
/// ```
/// use outlast::{Ablation, Dense, Estimator, FitRequest, Kernel, Labels, Truncated};
///
/// let x = Dense::from_rows(&[[-2.0], [-1.0], [1.0], [2.0]]);
/// let labels = Labels::new(["a", "a", "b", "b"]);
/// let truncated = Truncated::new(1.0).kernel(Kernel::Linear);
/// let methods: [&dyn Estimator; 2] = [&truncated, &Ablation::reh(1.0)];
/// for method in methods {
///     let model = method.fit_labels(&x, &labels, &FitRequest::default())?;
///     assert_eq!(model.predict_codes(&x)?, [0, 0, 1, 1]);
/// }
/// # Ok::<(), outlast::Error>(())
/// ```
pub trait Estimator: Sync {
    /// The parameters it shares with the other methods.
    fn common_mut(&mut self) -> &mut Common;

    /// Checks every parameter that can be checked without data.
    fn check(&self) -> Result<()>;

    /// Fits.
    fn fit_labels(&self, x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<Model>;

    /// Checks that the method with these parameters can be fitted to rows in chunks; most can't.
    fn check_chunks(&self) -> Result<()> {
        let allowed = "\"truncated\", \"capped\" or \"lq\" for rows in chunks";
        Err(Error::parameter("method", "one that needs all rows in memory", allowed))
    }

    /// What [`fit_labels`](Self::fit_labels) takes beside the process, about, for dense rows of so many columns and classes.
    fn footprint(&self, _cols: usize, _classes: usize) -> Footprint {
        Footprint::UNKNOWN
    }

    /// Fits to rows in chunks, which are read several times.
    fn fit_chunks(&self, rows: &mut dyn Chunks, request: &StreamRequest) -> Result<Model> {
        self.fit_passes(&mut Local::new(rows), request)
    }

    /// Fits to rows that can be asked for sums, wherever they are.
    fn fit_passes(&self, _: &mut dyn Passes, _: &StreamRequest) -> Result<Model> {
        self.check_chunks().and(Err(Error::shape("X", "rows in chunks", "rows in memory")))
    }
}

impl Default for Common {
    fn default() -> Self {
        Common {
            c: 1.0,
            kernel: Kernel::default(),
            class_weight: ClassWeight::Equal,
            fit_intercept: true,
            tol: 1e-4,
            max_iter: 100,
            cache_size: 1000.0,
            threads: None,
            random_state: 0,
        }
    }
}

impl Common {
    /// Checks what can be checked without data.
    pub fn check(&self) -> Result<()> {
        positive("C", self.c)?;
        positive("tol", self.tol)?;
        positive("cache_size", self.cache_size)?;
        if self.max_iter == 0 {
            return Err(Error::parameter("max_iter", 0, "a whole number >= 1"));
        }
        if self.threads == Some(0) {
            return Err(Error::parameter("n_jobs", 0, "a whole number >= 1, or none for all cores"));
        }
        if let ClassWeight::Given(weights) = &self.class_weight
            && let Some(bad) = weights.iter().find(|weight| !(weight.is_finite() && **weight >= 0.0))
        {
            return Err(Error::parameter("class_weight", bad, "finite numbers >= 0"));
        }
        Ok(())
    }

    /// Checks rows and labels.
    pub(crate) fn check_data(&self, x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<()> {
        fit::check_shapes(x, labels, request)?;
        self.caps(labels, request.sample_weight)?;
        x.check_finite()
    }

    /// Runs work on the threads asked for.
    pub(crate) fn in_pool<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        fit::in_pool(self.threads, work)
    }

    /// The factors on C by class; `None` where all are 1.
    pub(super) fn class_factors(&self, labels: &Labels) -> Result<Option<Vec<f64>>> {
        self.factors_for(&labels.counts())
    }

    /// The same, from the number of rows of each class.
    pub(super) fn factors_for(&self, counts: &[usize]) -> Result<Option<Vec<f64>>> {
        match &self.class_weight {
            ClassWeight::Equal => Ok(None),
            ClassWeight::Balanced => {
                let total = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
                Ok(Some(counts.iter().map(|&count| total / count as f64).collect()))
            }
            ClassWeight::Given(weights) if weights.len() != counts.len() => {
                let expected = format!("{}, one per class", counts.len());
                Err(Error::shape("class_weight", format!("{} values", weights.len()), expected))
            }
            ClassWeight::Given(weights) => Ok(Some(weights.clone())),
        }
    }

    /// c_i = C x class weight x sample weight. Every class must keep some weight.
    pub(super) fn caps(&self, labels: &Labels, sample_weight: Option<&[f64]>) -> Result<Vec<f64>> {
        let factors = self.class_factors(labels)?;
        let caps = caps(self.c, factors.as_deref(), labels.codes(), sample_weight)?;
        check_class_weights(labels, &caps)?;
        Ok(caps)
    }

    /// The tolerance of a convex problem of so many rows: small ones are solved as exactly as costs next to nothing, so that
    /// two ways of writing the same data give the same model.
    pub(super) fn tolerance(&self, rows: usize) -> f64 {
        self.tol.min(affordable_gap(rows))
    }

    /// A solution aimed higher than asked for has converged where it meets what was asked.
    pub(super) fn settled(&self, solution: Solution) -> Solution {
        match solution.status {
            Status::Inaccurate if solution.gap <= self.tol => Solution { status: Status::Converged, ..solution },
            _ => solution,
        }
    }

    /// The same for a convex problem: where its gap is met no limit counts that was met beside it. (A loop over convex problems that reached
    /// its limit has not ended, whatever the gap of the last one.)
    pub(super) fn settled_convex(&self, solution: Solution) -> Solution {
        match solution.status {
            Status::IterationLimit | Status::TimeLimit if solution.gap <= self.tol => {
                Solution { status: Status::Converged, ..solution }
            }
            _ => self.settled(solution),
        }
    }

    /// What a solver is told in a search, where the tolerance asked for is enough.
    pub(crate) fn search_options(&self) -> Options {
        self.options(self.tol, None)
    }

    /// What a solver is told, for a given relative gap.
    pub(super) fn options(&self, tolerance: f64, start: Option<Start>) -> Options {
        Options {
            tolerance,
            max_steps: self.max_iter,
            cache_bytes: (self.cache_size * 1e6) as usize,
            seed: self.random_state,
            start,
            ..Options::default()
        }
    }
}

/// A relative gap that costs next to nothing for a problem of that size.
pub(super) fn affordable_gap(size: usize) -> f64 {
    match size {
        0..=1000 => 1e-10,
        1001..=4000 => 1e-7,
        _ => f64::INFINITY,
    }
}

/// C times weights beyond which a row can't be told from one that must be decided rightly, and sums leave the range of numbers.
pub(super) const LARGEST_CAP: f64 = 1e200;

/// c_i = C x class factor x sample weight.
pub(super) fn caps(c: f64, factors: Option<&[f64]>, codes: &[u32], sample_weight: Option<&[f64]>) -> Result<Vec<f64>> {
    let of_row = |(row, &code): (usize, &u32)| {
        let factor = factors.map_or(1.0, |factors| factors[code as usize]);
        c * factor * sample_weight.map_or(1.0, |weights| weights[row])
    };
    let caps: Vec<f64> = codes.iter().enumerate().map(of_row).collect();
    match caps.iter().all(|cap| *cap < LARGEST_CAP) {
        true => Ok(caps),
        false => {
            let allowed = format!("a number that is below {LARGEST_CAP:e} when multiplied by weights");
            Err(Error::parameter("C", format_args!("{c:?}"), allowed))
        }
    }
}

/// Every class must keep some weight.
pub(super) fn check_class_weights(labels: &Labels, weights: &[f64]) -> Result<()> {
    let mut total = vec![0.0; labels.classes().len()];
    for (&code, weight) in labels.codes().iter().zip(weights) {
        total[code as usize] += weight;
    }
    match total.iter().position(|&total| total == 0.0) {
        None => Ok(()),
        Some(empty) => {
            let class = quoted(&labels.classes()[empty].to_string());
            let problem = format!("class {class} has no row of positive weight; every class needs one");
            Err(Error::Classes { problem })
        }
    }
}

/// A parameter that is a finite number > 0.
pub(super) fn positive(name: &'static str, value: f64) -> Result<()> {
    match value.is_finite() && value > 0.0 {
        true => Ok(()),
        false => Err(Error::parameter(name, value, "a finite number > 0")),
    }
}

/// The setters of the shared parameters and the ways to fit, for a type with a field `common` that is an [`Estimator`].
macro_rules! shared_parameters {
    ($method:ty) => {
        impl $method {
            /// Sets the weight of the loss against the penalty.
            pub fn c(mut self, c: f64) -> Self {
                self.common.c = c;
                self
            }

            /// Sets the kernel.
            pub fn kernel(mut self, kernel: $crate::Kernel) -> Self {
                self.common.kernel = kernel;
                self
            }

            /// Sets the factors on C by class.
            pub fn class_weight(mut self, class_weight: $crate::ClassWeight) -> Self {
                self.common.class_weight = class_weight;
                self
            }

            /// Sets whether an intercept is fitted.
            pub fn fit_intercept(mut self, fit_intercept: bool) -> Self {
                self.common.fit_intercept = fit_intercept;
                self
            }

            /// Sets the relative duality gap at which a convex problem counts as solved.
            pub fn tol(mut self, tol: f64) -> Self {
                self.common.tol = tol;
                self
            }

            /// Sets the largest number of steps.
            pub fn max_iter(mut self, max_iter: usize) -> Self {
                self.common.max_iter = max_iter;
                self
            }

            /// Sets the megabytes a solver may keep.
            pub fn cache_size(mut self, megabytes: f64) -> Self {
                self.common.cache_size = megabytes;
                self
            }

            /// Sets the number of threads.
            pub fn threads(mut self, threads: usize) -> Self {
                self.common.threads = Some(threads);
                self
            }

            /// Sets the seed of whatever is drawn at random.
            pub fn random_state(mut self, seed: u64) -> Self {
                self.common.random_state = seed;
                self
            }

            /// Fits.
            pub fn fit(
                &self,
                x: &dyn $crate::Design,
                y: &(impl $crate::Target + ?Sized),
            ) -> $crate::Result<$crate::Model> {
                self.fit_with(x, y, &$crate::FitRequest::default())
            }

            /// Fits with sample weights, a start, or someone watching.
            pub fn fit_with(
                &self,
                x: &dyn $crate::Design,
                y: &(impl $crate::Target + ?Sized),
                request: &$crate::FitRequest,
            ) -> $crate::Result<$crate::Model> {
                $crate::Estimator::fit_labels(self, x, &y.labels(), request)
            }
        }
    };
}

pub(super) use shared_parameters;
