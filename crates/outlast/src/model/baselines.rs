//! The two baselines that ablation is compared with: the centroid machine and the leave-one-out machine.

use super::common::{positive, shared_parameters};
use super::one_vs_rest::{self, Found};
use super::{Common, Details, Estimator, FitRequest, Model, fit};
use crate::data::{Design, Labels};
use crate::error::{Error, Result};
use crate::linalg::dot;
use crate::problem::{Kernel, KernelFunction, TwoClass};
use crate::solver::{ablation, kernel, leave_one_out};

/// How much less margin is asked of a row far from the centre of its class.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Shift {
    /// 1 / (2 m) with m the median over the rows of the squared distance: half the margin is asked of a row at that distance.
    #[default]
    Auto,
    /// A number >= 0; 0 is the ordinary machine.
    By(f64),
}

impl From<f64> for Shift {
    fn from(shift: f64) -> Self {
        Shift::By(shift)
    }
}

/// Parameters of the centroid machine (Song, Hu and Xie 2002):
///
/// ```text
/// min 1/2 |f|^2 + C sum_i weight_i [1 - y_i f(x_i) - shift |x_i - centre of its class|^2]_+
/// ```
///
/// Distances are those of the kernel's space, centres are weighted means. It is the dual of the ordinary machine with
/// another linear term. Two classes make one problem; of more, each is set against the others.
///
/// ```
/// use outlast::{Centroid, Dense};
///
/// let x = Dense::from_rows(&[[-2.0], [-1.0], [1.0], [2.0]]);
/// let model = Centroid::new(1.0).shift(0.1).fit(&x, &["a", "a", "b", "b"])?;
/// assert_eq!(model.predict_codes(&x)?, [0, 0, 1, 1]);
/// # Ok::<(), outlast::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Centroid {
    /// What it shares with the other methods. The kernel is linear unless asked for.
    pub common: Common,
    /// Factor on the squared distance.
    pub shift: Shift,
}

impl Centroid {
    /// The default parameters with a given C.
    pub fn new(c: f64) -> Self {
        Centroid { common: Common { c, kernel: Kernel::Linear, ..Common::default() }, shift: Shift::Auto }
    }

    /// Sets the factor on the squared distance.
    pub fn shift(mut self, shift: impl Into<Shift>) -> Self {
        self.shift = shift.into();
        self
    }

    fn solve(&self, problem: &TwoClass, request: &FitRequest) -> Result<Found> {
        ablation::check_semidefinite(problem, &request.control)?;
        let distances = squared_distances(problem)?;
        let shift = match self.shift {
            Shift::By(shift) => shift,
            Shift::Auto => match median(&distances, problem.caps) {
                middle if middle > 0.0 => 0.5 / middle,
                _ => 0.0,
            },
        };
        let targets: Vec<f64> = distances.iter().map(|distance| 1.0 - shift * distance).collect();
        if targets.iter().any(|target| !target.is_finite()) {
            return Err(Error::parameter("shift", shift, "small enough for shift x squared distance to be finite"));
        }
        let options = self.common.options(self.common.tolerance(problem.rows()), None);
        let solution = kernel::solve_shifted(problem, &targets, &options, &request.control)?;
        let mut solution = self.common.settled_convex(solution);
        solution.truncated = targets.iter().map(|&target| target <= 0.0).collect();
        let mut details = Details::default();
        details.set("shift", shift);
        Ok(Found { solution, eta: None, details })
    }
}

/// |x_i - centre of its class|^2 in the kernel's space.
fn squared_distances(problem: &TwoClass) -> Result<Vec<f64>> {
    let n = problem.rows();
    let mut distances = vec![0.0; n];
    for sign in [-1.0, 1.0] {
        let own: Vec<u32> = (0..n as u32).filter(|&row| problem.signs[row as usize] == sign).collect();
        let total: f64 = own.iter().map(|&row| problem.caps[row as usize]).sum();
        let mut share = vec![0.0; n];
        own.iter().for_each(|&row| share[row as usize] = problem.caps[row as usize] / total);
        if let KernelFunction::Linear = problem.kernel {
            let centre = fit::combine(problem.x, &share, 1);
            let square = dot(&centre, &centre);
            for &row in &own {
                let row = row as usize;
                distances[row] = problem.x.squared_norm(row) - 2.0 * problem.x.dot(row, &centre) + square;
            }
        } else {
            let to_centre = problem.kernel.expand_at(problem.x, &share, &own);
            let square: f64 = own.iter().zip(&to_centre).map(|(&row, value)| share[row as usize] * value).sum();
            let mut itself = vec![0.0; own.len()];
            for (at, &row) in own.iter().enumerate() {
                let x = problem.x;
                problem.kernel.for_each_row(x, x, &[row], &[row], &mut itself[at..=at], |out, value| *out = value[0]);
                distances[row as usize] = itself[at] - 2.0 * to_centre[at] + square;
            }
        }
    }
    match distances.iter().position(|distance| !distance.is_finite()) {
        None => Ok(distances.into_iter().map(|distance| distance.max(0.0)).collect()),
        Some(row) => {
            let problem =
                "its squared distance to the centre of its class is not finite; scale the columns".to_string();
            Err(Error::Value { what: "X", row, column: None, problem })
        }
    }
}

/// The median by weight.
fn median(values: &[f64], weights: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let half = 0.5 * weights.iter().sum::<f64>();
    let mut seen = 0.0;
    for row in order {
        seen += weights[row];
        if seen >= half {
            return values[row];
        }
    }
    0.0
}

impl Estimator for Centroid {
    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn check(&self) -> Result<()> {
        self.common.check()?;
        match self.shift {
            Shift::By(shift) if !(shift.is_finite() && shift >= 0.0) => {
                Err(Error::parameter("shift", shift, "a finite number >= 0, or \"auto\""))
            }
            _ => Ok(()),
        }
    }

    fn fit_labels(&self, x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<Model> {
        self.check()?;
        fit::check_shapes(x, labels, request)?;
        fit::in_pool(self.common.threads, || {
            one_vs_rest::run("centroid", &self.common, x, labels, request, |problem| self.solve(problem, request))
        })
    }
}

shared_parameters!(Centroid);

/// Parameters of the leave-one-out machine (Weston and Herbrich 2000), a linear program:
///
/// ```text
/// min over alpha >= 0:  sum_i weight_i [1 - y_i f(x_i) + factor alpha_i k(x_i, x_i)]_+,    f = sum_j alpha_j y_j k(x_j, .)
/// ```
///
/// With factor 1 a row's own term does not help its own loss; other factors are adaptive margins. There is neither C nor an
/// intercept. Two classes make one problem; of more, each is set against the others.
///
/// ```
/// use outlast::{Dense, LeaveOneOut};
///
/// let x = Dense::from_rows(&[[-2.0], [-1.0], [1.0], [2.0]]);
/// let model = LeaveOneOut::new().fit(&x, &["a", "a", "b", "b"])?;
/// assert_eq!(model.predict_codes(&x)?, [0, 0, 1, 1]);
/// # Ok::<(), outlast::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LeaveOneOut {
    /// What it shares with the other methods; the kernel is linear unless asked for, C and the intercept mean nothing here.
    pub common: Common,
    /// Factor on a row's own term.
    pub factor: f64,
}

impl Default for LeaveOneOut {
    fn default() -> Self {
        LeaveOneOut::new()
    }
}

impl LeaveOneOut {
    /// The default parameters.
    pub fn new() -> Self {
        let common = Common { kernel: Kernel::Linear, fit_intercept: false, tol: 1e-6, ..Common::default() };
        LeaveOneOut { common, factor: 1.0 }
    }

    /// Sets the factor on a row's own term.
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    fn solve(&self, problem: &TwoClass, request: &FitRequest) -> Result<Found> {
        ablation::check_semidefinite(problem, &request.control)?;
        let options = self.common.options(self.common.tol, None);
        let solution = leave_one_out::solve(problem, self.factor, &options, &request.control)?;
        let mut details = Details::default();
        details.set("factor", self.factor);
        Ok(Found { solution, eta: None, details })
    }
}

impl Estimator for LeaveOneOut {
    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn check(&self) -> Result<()> {
        self.common.check()?;
        if self.common.fit_intercept {
            return Err(Error::parameter("fit_intercept", true, "false: the leave-one-out machine has no intercept"));
        }
        positive("factor", self.factor)
    }

    fn fit_labels(&self, x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<Model> {
        self.check()?;
        fit::check_shapes(x, labels, request)?;
        fit::in_pool(self.common.threads, || {
            let mut model =
                one_vs_rest::run("loo", &self.common, x, labels, request, |problem| self.solve(problem, request))?;
            model.summary.penalty = "none".to_string();
            Ok(model)
        })
    }
}

shared_parameters!(LeaveOneOut);
