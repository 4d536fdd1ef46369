//! What many fits say together: splits of the rows, searches over grids that share work between their points, and the audit of
//! labels.

/// What every search has beside its grid: how it is set up, and the ways to run it. The type has the fields `judge`, `standardize`, `rule` and
/// `nested`, and `fit_labels` does the work.
macro_rules! search_methods {
    ($found:ty) => {
        /// Sets the number of folds.
        pub fn folds(self, folds: usize) -> Self {
            self.judge(Judge::Folds(folds))
        }

        /// Sets what the points are judged by.
        pub fn judge(mut self, judge: Judge) -> Self {
            self.judge = judge;
            self
        }

        /// Sets whether columns are put on one scale as part of the model.
        pub fn standardize(mut self, standardize: bool) -> Self {
            self.standardize = standardize;
            self
        }

        /// Sets which point is taken.
        pub fn rule(mut self, rule: Rule) -> Self {
            self.rule = rule;
            self
        }

        /// Sets the folds of a cross-validation around the whole search; `None` for none.
        pub fn nested(mut self, folds: impl Into<Option<usize>>) -> Self {
            self.nested = folds.into();
            self
        }

        /// Chooses and fits.
        pub fn fit(&self, x: &dyn Design, y: &(impl Target + ?Sized)) -> Result<$found> {
            self.fit_with(x, y, &FitRequest::default())
        }

        /// Chooses and fits with sample weights, or someone watching. An interrupt, or the end of a time limit, ends the search with the
        /// best point so far, if any was judged; that model is fitted and has the status [`Interrupted`](Status::Interrupted) or
        /// [`TimeLimit`](Status::TimeLimit).
        pub fn fit_with(&self, x: &dyn Design, y: &(impl Target + ?Sized), request: &FitRequest) -> Result<$found> {
            self.fit_labels(x, &y.labels(), None, request)
        }

        /// Chooses by other rows, and fits to `x` alone.
        pub fn fit_tuned(
            &self,
            x: &dyn Design,
            y: &(impl Target + ?Sized),
            tuning: (&dyn Design, &(impl Target + ?Sized)),
            request: &FitRequest,
        ) -> Result<$found> {
            self.fit_labels(x, &y.labels(), Some((tuning.0, &tuning.1.labels())), request)
        }
    };
}

pub mod audit;
mod folds;
pub mod lq;
pub mod tune;

pub use audit::{Audit, AuditKernel, AuditReport, components};
pub use folds::{Split, stratified};
pub use lq::{Cs, LqChoice, LqSearch, Point, default_cs};
pub use tune::{Tune, Tuned};
