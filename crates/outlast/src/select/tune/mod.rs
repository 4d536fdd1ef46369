//! Parameters chosen by data: C, the kernel's width, and what else a method has.
//!
//! ```text
//! error of a point   =   mean over splits of   sum of weight x loss(true class, decision) / sum of weight,    rows held out
//! ```
//!
//! The loss is 1 for a wrong decision, or the cost, or minus the utility of a decision where such a matrix is given. Splits are
//! stratified folds, one part held out, splits of the caller's, or other rows to judge by.
//!
//! **Columns on one scale** are part of the model: mean and deviation are those of the training rows of a split, far values left out, and rows held out
//! are put on that scale. The chosen model keeps the scaling of all rows. So do the rules for gamma: a split's own training rows decide.
//!
//! **What is shared.** The rows of a split are copied and scaled once. Points that differ in C and truncation only are fitted one after
//! the other, each from its neighbour, on the same kernel rows, and the kernel values of the rows held out are computed once for all of
//! them (`line`). Splits and such lines of points are spread over the cores. Points that are clearly behind are given up after the first splits
//! (`search`). Fits of the search meet a looser tolerance, from one start each; the chosen model is fitted like any other.
//!
//! The point with the least mean error is chosen, of equals that of the smallest C; or, with [`Rule::OneSe`], the point of smallest C
//! whose mean is within one standard error of the least. The error of the chosen point is optimistic, as it was chosen for it:
//! [`nested`](Tune::nested) cross-validation around the whole search is not.

mod ended;
pub(super) mod grid;
pub(super) mod judge;
mod line;
mod method;
pub(super) mod nested;
pub(super) mod part;
pub(super) mod score;
mod search;
pub(super) mod tuned;

pub use grid::{Axis, Setting};
pub use judge::{Judge, Rule};
pub use method::Tunable;
pub use tuned::{Cell, Measure, Nested, State, Tuned};

pub(super) use ended::Ended;

use crate::data::{Design, Labels, Scaling, Standardized, Target};
use crate::error::{Error, Result};
use crate::model::{FitRequest, Model};
use crate::problem::{Gamma, Kernel};
use crate::solver::Status;
use line::Runner;
use part::Labelled;
use score::Payoff;
use search::Search;
use std::sync::atomic::AtomicUsize;

/// What progress is called.
pub(crate) const STAGE: &str = "tuning";

/// Values of C tried unless others are asked for: nine from 0.01 to 100, evenly in the logarithm.
pub const DEFAULT_CS: [f64; 9] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0];

/// Widths of a kernel tried unless others are asked for, as multiples of what the rule `scale` says.
pub const DEFAULT_WIDTHS: [f64; 3] = [0.25, 1.0, 4.0];

/// The part of a time limit that the search may take; the rest is for the fit that follows.
pub(super) const SEARCH_TIME: f64 = 0.7;

/// A search for the parameters of a method.
///
/// ```
/// use outlast::{Dense, Truncated, Tune};
///
/// let rows: Vec<[f64; 2]> = (0..60).map(|i| [f64::from(i % 8) - 3.5, 100.0 * f64::from(i % 7)]).collect();
/// let y: Vec<bool> = rows.iter().map(|row| row[0].abs() > 2.0).collect();
/// let tuned = Tune::new(Truncated::new(1.0)).over("C", [1.0, 10.0]).folds(3).fit(&Dense::from_rows(&rows), &y)?;
/// assert_eq!(tuned.cells.len(), 6); // two values of C and three widths
/// assert!(tuned.best().mean < 0.1);
/// assert_eq!(tuned.model.predict_codes(&Dense::from_rows(&[[3.5, 0.0], [0.5, 600.0]]))?, [1, 0]);
/// # Ok::<(), outlast::Error>(())
/// ```
pub struct Tune {
    /// The method, with the parameters that are not searched.
    pub method: Box<dyn Tunable>,
    /// The lists of values asked for; what is not among them is the default.
    pub axes: Vec<Axis>,
    /// What the points are judged by.
    pub judge: Judge,
    /// Whether columns are put on one scale as part of the model.
    pub standardize: bool,
    /// Which point is taken.
    pub rule: Rule,
    /// Whether points that are clearly behind are given up.
    pub early_stop: bool,
    /// Whether points are first compared on few rows.
    pub halving: bool,
    /// Folds of a cross-validation around the whole search, for an honest error.
    pub nested: Option<usize>,
    /// Whether every fit of the search is made as exactly, and from as many starts, as a fit by itself.
    pub exact: bool,
}

impl Clone for Tune {
    fn clone(&self) -> Self {
        let Tune { axes, judge, .. } = self;
        Tune { method: self.method.copied(), axes: axes.clone(), judge: judge.clone(), ..*self }
    }
}

impl Tune {
    /// The default search: five folds, columns on one scale, [`DEFAULT_CS`] and [`DEFAULT_WIDTHS`].
    pub fn new(method: impl Tunable + 'static) -> Self {
        Tune::of(Box::new(method))
    }

    /// The same for a method known only at run time.
    pub fn of(method: Box<dyn Tunable>) -> Self {
        Tune {
            method,
            axes: Vec::new(),
            judge: Judge::Folds(5),
            standardize: true,
            rule: Rule::Best,
            early_stop: true,
            halving: false,
            nested: None,
            exact: false,
        }
    }

    /// Sets the values to try of a parameter, by its name in Python.
    pub fn over<T: Into<Setting>>(mut self, name: &'static str, values: impl IntoIterator<Item = T>) -> Self {
        self.axes.retain(|axis| axis.name != name);
        self.axes.push(Axis::new(name, values));
        self
    }

    search_methods!(Tuned);

    /// Sets whether points that are clearly behind are given up.
    pub fn early_stop(mut self, early_stop: bool) -> Self {
        self.early_stop = early_stop;
        self
    }

    /// Sets whether points are first compared on few rows.
    pub fn halving(mut self, halving: bool) -> Self {
        self.halving = halving;
        self
    }

    /// Sets whether every fit of the search is made like a fit by itself.
    pub fn exact(mut self, exact: bool) -> Self {
        self.exact = exact;
        self
    }

    /// How many fits are reported as progress, at most.
    pub fn steps(&self, rows: usize) -> usize {
        let cells: usize = self.sizes().iter().product();
        Search::steps(cells, self.judge.count(rows), self.halving) * (1 + self.nested.unwrap_or(0))
    }

    /// How many values each parameter has.
    fn sizes(&self) -> Vec<usize> {
        let width = method::has_width(&self.method.common().kernel);
        let mut names: Vec<&str> = self.method.parameters().to_vec();
        names.extend(["gamma", "C"]);
        let own = self.method.own_defaults();
        let size = |name: &str| match self.axes.iter().chain(&own).find(|axis| axis.name == name) {
            Some(axis) => axis.values.len(),
            None if name == "C" => DEFAULT_CS.len(),
            None if name == "gamma" && width => DEFAULT_WIDTHS.len(),
            None => 1,
        };
        names.into_iter().map(size).collect()
    }

    /// Checks whatever can be checked without data.
    pub fn check(&self) -> Result<()> {
        for axis in &self.axes {
            let known = self.method.parameters().iter().chain(&["gamma", "C"]).any(|name| *name == axis.name);
            if !known {
                let allowed = format!("one of {}", [self.method.parameters(), &["gamma", "C"]].concat().join(", "));
                return Err(Error::parameter("over", format!("{:?}", axis.name), allowed));
            }
        }
        self.judge.check()?;
        judge::check_nested(self.nested)?;
        // every value by itself: a mistake in one is found before the first fit
        for axis in &self.axes {
            for value in &axis.values {
                let mut method = self.method.copied();
                method::set(method.as_mut(), axis.name, value)?;
                if axis.name == "C" {
                    method.common().check()?;
                }
            }
        }
        Ok(())
    }

    /// Chooses, by the rows of `tuning` if there are any, and fits to `x`.
    pub fn fit_labels(
        &self,
        x: &dyn Design,
        labels: &Labels,
        tuning: Option<(&dyn Design, &Labels)>,
        request: &FitRequest,
    ) -> Result<Tuned> {
        self.check()?;
        self.method.common().check_data(x, labels, request)?;
        let data = Labelled { x, labels, weights: request.sample_weight };
        let other = match tuning {
            Some((x, y)) => Some((x, part::known_labels(labels, data.x.cols(), x, y)?)),
            None => None,
        };
        if other.is_some() && (self.nested.is_some() || matches!(self.method.common().kernel, Kernel::Precomputed)) {
            let found = "a set of its own with nested cross-validation or a precomputed kernel";
            return Err(Error::parameter("tuning", found, "left out, or used without these"));
        }
        let by = other.as_ref().map(|(x, labels)| Labelled { x: *x, labels, weights: None });
        let done = AtomicUsize::new(0);
        self.method.common().in_pool(|| {
            let mut tuned = self.search(data, by, request, &done)?;
            if let Some(folds) = self.nested.filter(|_| tuned.status == Status::Converged) {
                tuned.nested = self.around(data, folds, request, &done)?;
            }
            Ok(tuned)
        })
    }

    /// The search, and the fit of what it chose.
    fn search(&self, data: Labelled, by: Option<Labelled>, request: &FitRequest, done: &AtomicUsize) -> Result<Tuned> {
        let splits = self.judge.splits(data, by, self.method.common().random_state)?;
        part::check_classes(data, &splits)?;
        let axes = self.grid(data)?;
        let cells = grid::product(&axes)?;
        let (payoff, measure) = Payoff::of(self.method.payoff(data.labels)?, data.labels.classes().len());
        let runner = Runner { method: &*self.method, axes: &axes, cells: &cells, payoff: &payoff, exact: self.exact };
        // a combination that can't be is refused before the first fit
        (0..cells.len()).try_for_each(|cell| {
            let mut method = runner.at(cell)?;
            method.plain();
            method.check()
        })?;
        let search = Search {
            lines: line::lines(&*self.method, &axes, &cells),
            runner,
            data,
            by: by.unwrap_or(data),
            splits: &splits,
            kernel: &self.method.common().kernel,
            scale: self.standardize,
            rule: self.rule,
            early_stop: self.early_stop,
            halving: self.halving,
            seed: self.method.common().random_state,
            control: request.control.share_of_time(SEARCH_TIME),
            done,
        };
        let (judged, ended) = search.run()?;
        let chosen = tuned::choose(&judged, &axes, self.rule, &[]).ok_or_else(|| ended.without_choice())?;
        let method = search.runner.at(chosen)?;
        let request = FitRequest { start: None, control: ended.control(request.control), ..*request };
        let mut model = self.refit(&*method, data, &request)?;
        let status = ended.status();
        if status != Status::Converged {
            model.summary.status = status;
        }
        let nested = None;
        Ok(Tuned { axes, cells: judged, chosen, splits: splits.len(), measure, nested, status, model })
    }

    /// The chosen model, of all rows.
    fn refit(&self, method: &dyn Tunable, data: Labelled, request: &FitRequest) -> Result<Model> {
        if !self.scales() {
            return method.fit_labels(data.x, data.labels, request);
        }
        let scaling = Scaling::of(data.x, data.weights);
        // rows are read again and again: next to each other
        let all: Vec<u32> = (0..data.x.rows() as u32).collect();
        let rows = crate::model::Rows::copy(&Standardized::new(data.x, &scaling), &all)?;
        Ok(method.fit_labels(rows.as_design(), data.labels, request)?.of_unscaled(scaling))
    }

    /// Whether there are columns to put on one scale: kernel values have none.
    fn scales(&self) -> bool {
        self.standardize && !matches!(self.method.common().kernel, Kernel::Precomputed)
    }

    /// The lists of values, the method's own first, C last.
    fn grid(&self, data: Labelled) -> Result<Vec<Axis>> {
        let own = self.method.own_defaults();
        let mut axes = Vec::new();
        for name in self.method.parameters() {
            let given = self.axes.iter().find(|axis| axis.name == *name);
            axes.extend(given.or_else(|| own.iter().find(|axis| axis.name == *name)).cloned());
        }
        let given = |name: &str| self.axes.iter().find(|axis| axis.name == name).cloned();
        match given("gamma") {
            Some(axis) => axes.push(axis),
            None if method::has_width(&self.method.common().kernel) => axes.push(self.default_widths(data)?),
            None => {}
        }
        let usual = || own.iter().find(|axis| axis.name == "C").cloned().unwrap_or_else(|| Axis::new("C", DEFAULT_CS));
        axes.push(given("C").unwrap_or_else(usual));
        Ok(axes)
    }

    /// Multiples of what the rule `scale` says, which does not look at labels; with columns on one scale it is 1 / (number of columns), but
    /// for those without spread. Far values count as if they stood at the fence: one of them must not make every row look alike.
    fn default_widths(&self, data: Labelled) -> Result<Axis> {
        let scale = |x: &dyn Design| Gamma::Scale.resolve(x, data.labels, data.weights);
        let width = match self.scales() {
            true => {
                let (scaling, fences) = Scaling::with_fences(data.x, data.weights);
                scale(&Standardized::within(data.x, &scaling, &fences))?
            }
            false => scale(data.x)?,
        };
        // rounded, as it is a place to start from, and so that rounding of the mean does not show
        let width = format!("{width:.6e}").parse().unwrap_or(width);
        Ok(Axis::new("gamma", DEFAULT_WIDTHS.map(|factor| factor * width)))
    }

    /// The error of the whole procedure, by cross-validation around it.
    fn around(&self, data: Labelled, folds: usize, request: &FitRequest, done: &AtomicUsize) -> Result<Option<Nested>> {
        let inner = Tune { nested: None, judge: self.judge.inner(), ..self.clone() };
        let outer = judge::outer_splits(data.labels, folds, self.method.common().random_state)?;
        part::check_classes(data, &outer)?;
        let (payoff, _) = Payoff::of(self.method.payoff(data.labels)?, data.labels.classes().len());
        let kernel = &self.method.common().kernel;
        nested::around(data, &outer, kernel, &payoff, request, |some, request| inner.search(some, None, request, done))
    }
}
