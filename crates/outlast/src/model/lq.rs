//! The L_q support vector machine: any exponent from 0 to 2, costs, many classes.
//!
//! ```text
//! min  sum_j |w_j|^q + C sum_i weight_i cost[y_i, other] [1 - y_i f(x_i)]_+                                two classes
//! min  sum_kj |w_kj|^q + C sum_i weight_i sum_{k != y_i} cost[y_i, k] [f_k(x_i) + 1]_+,  sum_k f_k = 0     k classes
//! ```
//!
//! f = w'x + b with b not penalised, or w'(x, x^2) + b. (Liu, Zhang, Park and Ahn, "The L_q support vector machine", 2007; their lambda is 1 / (n C).) For q <= 1 coefficients are exactly 0 where they are not needed; for q < 1 the problem
//! is not convex, and what is found is the best of several local minima.

use super::common::{LARGEST_CAP, affordable_gap, positive, shared_parameters};
use super::condense::Condensed;
use super::footprint::{Footprint, Kind};
use super::payoff;
use super::{Common, CostForm, Estimator, FitRequest, Model, StreamRequest, Summary, Training, fit};
use crate::data::{Class, Design, FeatureMap, Labels, Repeated, Squared, Target};
use crate::error::{Error, Result};
use crate::problem::{Kernel, KernelFunction, LqProblem, Penalty};
use crate::solver::stream::Passes;
use crate::solver::{Care, Options, Solution, Start, lq};

/// Most steps unless asked otherwise: the paper's algorithm takes hundreds.
const MAX_ITER: usize = 1000;

/// Lists of all coefficients that a fit holds at a time: rates, sums and points; for q < 1 some ten starts and where they lead as well, and
/// for q > 1 what an interior point method knows of each.
const COPIES: usize = 8;
const COPIES_OF_STARTS: usize = 24;
const COPIES_INSIDE: usize = 40;

/// Parameters of the L_q machine.
///
/// ```
/// use outlast::{Dense, Lq};
///
/// // the first column tells the classes apart, the second hardly
/// let x = Dense::from_rows(&[[-1.0, 0.2], [-0.9, -0.1], [-1.1, 0.0], [1.0, 0.1], [0.9, -0.2], [1.1, 0.3]]);
/// let y = ["no", "no", "no", "yes", "yes", "yes"];
/// let model = Lq::new(1.0).q(0.5).fit(&x, &y)?;
/// assert_eq!(model.selected(), Some(vec![0]));
/// assert_eq!(model.predict_codes(&x)?, [0, 0, 0, 1, 1, 1]);
/// # Ok::<(), outlast::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Lq {
    /// What it shares with the other methods. The kernel is linear, and no other is taken.
    pub common: Common,
    /// The exponent, 0 < q <= 2.
    pub q: f64,
    /// k x k, >= 0 with zeros on the diagonal, row = true class: factors on the loss of the wrong classes.
    pub cost: Option<Vec<Vec<f64>>>,
    /// What f is linear in.
    pub feature_map: FeatureMap,
    /// `"auto"`, or `"lqa"` for the paper's algorithm.
    pub solver: String,
}

impl Lq {
    /// The default parameters, q = 1, with a given C.
    pub fn new(c: f64) -> Self {
        let common = Common { c, kernel: Kernel::Linear, tol: 1e-6, max_iter: MAX_ITER, ..Common::default() };
        Lq { common, q: 1.0, cost: None, feature_map: FeatureMap::Identity, solver: "auto".to_string() }
    }

    /// Sets the exponent.
    pub fn q(mut self, q: f64) -> Self {
        self.q = q;
        self
    }

    /// Sets the cost matrix: row = true class, column = decision, in the sorted order of the classes.
    pub fn cost(mut self, cost: Vec<Vec<f64>>) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Sets what f is linear in.
    pub fn feature_map(mut self, map: FeatureMap) -> Self {
        self.feature_map = map;
        self
    }

    /// Sets the solver by name.
    pub fn solver(mut self, solver: impl Into<String>) -> Self {
        self.solver = solver.into();
        self
    }

    /// The cost matrix, row-major, checked against the classes.
    pub(crate) fn costs(&self, labels: &Labels) -> Result<Option<Vec<f64>>> {
        self.costs_of(labels.classes())
    }

    /// The same for classes.
    pub(super) fn costs_of(&self, classes: &[Class]) -> Result<Option<Vec<f64>>> {
        let Some(rows) = &self.cost else { return Ok(None) };
        let given = payoff::checked("cost", rows, classes)?;
        let k = classes.len();
        match (0..k).find(|&class| given[class * k + class] != 0.0) {
            None => Ok(Some(given)),
            Some(class) => {
                let problem = format!("{:?} for a right decision, which must cost 0", given[class * k + class]);
                Err(Error::Value { what: "cost", row: class, column: Some(class), problem })
            }
        }
    }

    /// The relative gap to solve to.
    pub(crate) fn tolerance(&self, x: &dyn Design, labels: &Labels) -> f64 {
        // what selects variables pays by the column as well
        let size = x.rows() * fit::functions(labels);
        self.common.tol.min(affordable_gap(size.max(size * x.cols() / 20)))
    }

    /// Whether a fit costs next to nothing, so that what it finds is worth a pass over the rows.
    pub(crate) fn is_small(&self, x: &dyn Design, labels: &Labels) -> bool {
        let size = x.rows() * fit::functions(labels);
        affordable_gap(size.max(size * x.cols() / 20)).is_finite()
    }

    /// C x class weight x sample weight of each row, for C = 1.
    pub(crate) fn unit_caps(&self, labels: &Labels, sample_weight: Option<&[f64]>) -> Result<Vec<f64>> {
        Common { c: 1.0, ..self.common.clone() }.caps(labels, sample_weight)
    }

    /// The same for some of the rows, which may lack a class; weights by class are those of these rows.
    pub(crate) fn unit_caps_of_some(&self, labels: &Labels, sample_weight: Option<&[f64]>) -> Result<Vec<f64>> {
        let factors = self.common.class_factors(labels)?;
        super::common::caps(1.0, factors.as_deref(), labels.codes(), sample_weight)
    }

    /// Checks parameters and data as a fit does.
    pub(crate) fn check_data(&self, x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<()> {
        self.check()?;
        fit::check_shapes(x, labels, request)?;
        x.check_finite()?;
        self.on_columns(x, |mapped| {
            check_memory(mapped.cols(), fit::functions(labels), copies(self.q))?;
            mapped.check_finite().map_err(|error| in_terms_of_x(error, x))
        })
    }

    /// Refuses more columns than there is memory for in a search of that many points: all rows hold a solution for each, and so does every
    /// split that is at work.
    pub(crate) fn check_search_memory(
        &self,
        x: &dyn Design,
        labels: &Labels,
        points: usize,
        splits: usize,
    ) -> Result<()> {
        let at_work = self.common.threads.unwrap_or_else(rayon::current_num_threads).min(splits);
        let lists = points.saturating_add(COPIES_OF_STARTS).saturating_mul(at_work.saturating_add(1));
        self.on_columns(x, |mapped| check_memory(mapped.cols(), fit::functions(labels), lists))
    }

    /// Refuses a C beyond what can be told apart from infinity: as a cap, C times weights and costs.
    pub(crate) fn check_caps(&self, c: f64, labels: &Labels, sample_weight: Option<&[f64]>) -> Result<()> {
        let weight = self.unit_caps(labels, sample_weight)?.into_iter().fold(0.0, f64::max);
        let cost = self.costs(labels)?.map_or(1.0, |cost| cost.into_iter().fold(0.0, f64::max));
        match c * weight * cost < LARGEST_CAP {
            true => Ok(()),
            false => {
                let allowed = format!("a number that is below {LARGEST_CAP:e} when multiplied by weights and costs");
                Err(Error::parameter("C", format_args!("{c:?}"), allowed))
            }
        }
    }

    /// Does something with the columns f is linear in.
    pub(crate) fn on_columns<T>(&self, x: &dyn Design, work: impl FnOnce(&dyn Design) -> T) -> T {
        match self.feature_map {
            FeatureMap::Identity => work(x),
            FeatureMap::Squares => work(&Squared::new(x)),
        }
    }

    /// The problem on columns already mapped; `counts` are the caps of C = 1.
    pub(crate) fn problem<'a>(
        &self,
        x: &'a dyn Design,
        labels: &'a Labels,
        caps: &'a [f64],
        counts: &'a [f64],
        cost: Option<&'a [f64]>,
    ) -> LqProblem<'a> {
        LqProblem {
            x,
            codes: labels.codes(),
            classes: labels.classes().len(),
            functions: fit::functions(labels),
            caps,
            counts: Some(counts),
            cost,
            q: self.q,
            intercept: self.common.fit_intercept,
        }
    }

    /// Runs on as many threads as asked for.
    pub(crate) fn in_pool<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        fit::in_pool(self.common.threads, work)
    }

    /// Fits data that were checked; `start` as [`FitRequest::start`], one of several or, by `care`, the only one.
    pub(crate) fn run(
        &self,
        x: &dyn Design,
        labels: &Labels,
        request: &FitRequest,
        start: Option<Start>,
        care: Care,
    ) -> Result<Model> {
        self.check_caps(self.common.c, labels, request.sample_weight)?;
        let caps = self.common.caps(labels, request.sample_weight)?;
        let cost = self.costs(labels)?;
        let solution = self.on_columns(x, |mapped| {
            // the paper's algorithm has no gap, and ends where the tolerance says
            let paper = self.solver == lq::LQA;
            let tolerance = if paper { self.common.tol } else { self.tolerance(mapped, labels) };
            let solve = |x: &dyn Design, labels: &Labels, caps: &[f64], start: Option<Start>| {
                let counts: Vec<f64> = caps.iter().map(|cap| cap / self.common.c).collect();
                let problem = self.problem(x, labels, caps, &counts, cost.as_deref());
                let options = Options { care, ..self.common.options(tolerance, start) };
                lq::solve(&problem, &self.solver, &options, &request.control)
            };
            if !self.is_small(mapped, labels) {
                return solve(mapped, labels, &caps, start);
            }
            let few = Condensed::new(mapped, labels, &caps)?;
            // a start's expansion belongs to the rows there were
            let start = start.map(|start| Start { expansion: Vec::new(), ..start });
            let found = solve(&Repeated::new(mapped, few.rows.clone()), &few.labels, &few.caps, start)?;
            Ok(few.expand(found, mapped, &caps))
        })?;
        self.model(x, labels, request, self.settled(solution))
    }

    /// With the status of what was asked for; the paper's algorithm has no gap, and keeps its own.
    fn settled(&self, solution: Solution) -> Solution {
        if self.q < 1.0 { self.common.settled(solution) } else { self.common.settled_convex(solution) }
    }

    /// Refuses the paper's algorithm where solutions are to start from each other: it has a start of its own.
    pub(crate) fn check_path(&self) -> Result<()> {
        match self.solver == lq::LQA {
            true => {
                Err(Error::parameter("solver", format!("{:?}", self.solver), "\"auto\" along a path and in a search"))
            }
            false => Ok(()),
        }
    }

    /// Models for every C of a list, in its order, each solution the start of others. They are those of separate fits for q >= 1, to the
    /// tolerance; for q < 1 the starts are those of the path.
    ///
    /// ```
    /// use outlast::{Dense, Lq};
    ///
    /// let x = Dense::from_rows(&[[-1.0, 0.2], [-0.9, -0.1], [-1.1, 0.0], [1.0, 0.1], [0.9, -0.2], [1.1, 0.3]]);
    /// let models = Lq::new(1.0).q(0.5).path(&x, &[0, 0, 0, 1, 1, 1], &[0.01, 1.0])?;
    /// assert!(models[0].selected().unwrap().len() <= models[1].selected().unwrap().len());
    /// # Ok::<(), outlast::Error>(())
    /// ```
    pub fn path(&self, x: &dyn Design, y: &(impl Target + ?Sized), cs: &[f64]) -> Result<Vec<Model>> {
        self.path_with(x, y, cs, &FitRequest::default())
    }

    /// As [`path`](Self::path), with sample weights or someone watching; a start is not looked at.
    pub fn path_with(
        &self,
        x: &dyn Design,
        y: &(impl Target + ?Sized),
        cs: &[f64],
        request: &FitRequest,
    ) -> Result<Vec<Model>> {
        let labels = y.labels();
        self.check_path()?;
        self.check_data(x, &labels, request)?;
        cs.iter().try_for_each(|&c| positive("Cs", c))?;
        cs.iter().try_for_each(|&c| self.check_caps(c, &labels, request.sample_weight))?;
        let caps = self.unit_caps(&labels, request.sample_weight)?;
        let cost = self.costs(&labels)?;
        self.in_pool(|| {
            let solutions = self.on_columns(x, |mapped| {
                let problem = self.problem(mapped, &labels, &caps, &caps, cost.as_deref());
                let options = self.common.options(self.tolerance(mapped, &labels), None);
                lq::Path { cs, qs: &[self.q], screening: true, decisions: false }.solve(
                    &problem,
                    &options,
                    &request.control,
                )
            })?;
            let models = solutions.into_iter().flatten().zip(cs).map(|(solution, &c)| {
                let at = self.clone().c(c);
                at.model(x, &labels, request, self.settled(solution))
            });
            models.collect()
        })
    }

    /// The model of a solution on the mapped columns.
    pub(crate) fn model(
        &self,
        x: &dyn Design,
        labels: &Labels,
        request: &FitRequest,
        solution: Solution,
    ) -> Result<Model> {
        let margins = fit::margins(labels, &solution.decision);
        let mut predictor = fit::predictor(x, labels, &KernelFunction::Linear, request, &solution)?;
        if self.feature_map == FeatureMap::Squares {
            predictor.function = super::Function::Squares { weights: solution.weights.clone().unwrap_or_default() };
        }
        let mut summary = Summary {
            penalty: Penalty::Lq.name().to_string(),
            cost: self.costs(labels)?,
            cost_form: CostForm::Direct.name().to_string(),
            solver_asked: self.solver.clone(),
            ..fit::summary("lq", &self.common, labels, &solution)?
        };
        summary.details.set("q", self.q);
        let training = Training {
            outliers: vec![false; margins.len()],
            margins,
            expansion: solution.expansion,
            eta: None,
            scores: None,
        };
        Ok(Model { predictor, summary, training: Some(training) })
    }
}

/// Lists of all coefficients that a fit holds at a time.
pub(crate) fn copies(q: f64) -> usize {
    match q {
        q if q < 1.0 => COPIES_OF_STARTS,
        q if q > 1.0 => COPIES_INSIDE,
        _ => COPIES,
    }
}

/// Refuses more columns than there is memory for that many copies of the coefficients of.
pub(crate) fn check_memory(cols: usize, functions: usize, copies: usize) -> Result<()> {
    let size = cols.saturating_mul(functions).saturating_mul(copies);
    match Vec::<f64>::new().try_reserve_exact(size) {
        Ok(()) => Ok(()),
        Err(_) => {
            let found = format!("{cols} columns (of the feature map), whose coefficients do not fit into memory");
            Err(Error::shape("X", found, "fewer"))
        }
    }
}

/// The complaint about a square as one about the column it is the square of.
fn in_terms_of_x(error: Error, x: &dyn Design) -> Error {
    match error {
        Error::Value { row, column: Some(column), .. } if column >= x.cols() => {
            let mut values = vec![0.0; x.cols()];
            x.copy_row(row, &mut values);
            let column = column - x.cols();
            let problem =
                format!("the square of {} is not finite, and feature_map = \"squares\" needs it", values[column]);
            Error::Value { what: "X", row, column: Some(column), problem }
        }
        other => other,
    }
}

/// An exponent that is allowed.
pub(super) fn check_exponent(q: f64) -> Result<()> {
    match q.is_finite() && q > 0.0 && q <= 2.0 {
        true => Ok(()),
        false => Err(Error::parameter("q", q, "a number > 0 and <= 2")),
    }
}

impl Estimator for Lq {
    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn check(&self) -> Result<()> {
        self.common.check()?;
        check_exponent(self.q)?;
        if !matches!(self.common.kernel, Kernel::Linear) {
            let found = format!("{:?}", self.common.kernel.name());
            return Err(Error::parameter("kernel", found, "\"linear\", the only one of the method lq"));
        }
        match lq::NAMES.contains(&self.solver.as_str()) {
            true => Ok(()),
            false => Err(Error::parameter(
                "solver",
                format!("{:?}", self.solver),
                format!("one of {}", lq::NAMES.join(", ")),
            )),
        }
    }

    fn fit_labels(&self, x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<Model> {
        self.check()?;
        self.check_data(x, labels, request)?;
        let start = fit::start(x, labels, request)?;
        self.in_pool(|| self.run(x, labels, request, start, Care::Full))
    }

    fn check_chunks(&self) -> Result<()> {
        self.check_streamed()
    }

    fn footprint(&self, cols: usize, classes: usize) -> Footprint {
        Kind::power(self.q).footprint(cols, classes, 1)
    }

    fn fit_passes(&self, rows: &mut dyn Passes, request: &StreamRequest) -> Result<Model> {
        self.stream(rows, request)
    }
}

shared_parameters!(Lq);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Csr;

    /// Below the most columns there may be at all, it is memory that does not suffice.
    #[test]
    fn what_memory_can_not_hold_is_refused_by_name() {
        assert!(check_memory(1000, 3, COPIES_OF_STARTS).is_ok());
        let cols = 1 << 31;
        let told = check_memory(cols, 4, 1 << 30).unwrap_err().to_string();
        assert!(told.contains("2147483648 columns") && told.contains("do not fit into memory"), "{told}");
        let x = Csr::new(2, cols, vec![0, 1, 2], vec![0, 0], vec![1.0, -1.0]).unwrap();
        let labels = Labels::new([0, 1]);
        let few = Csr::new(2, 10, vec![0, 1, 2], vec![0, 0], vec![1.0, -1.0]).unwrap();
        let lq = Lq::new(1.0).threads(3);
        // one list for each point would be within the range of addresses; all rows and three splits at work are not
        let points = (isize::MAX as usize / 8 / cols) / 2;
        let told = lq.check_search_memory(&x, &labels, points, 5).unwrap_err().to_string();
        assert!(told.contains("do not fit into memory"), "{told}");
        assert!(lq.check_search_memory(&few, &labels, 120, 5).is_ok());
    }
}
