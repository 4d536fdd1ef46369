//! The capped l_p machine and other machines whose loss is a concave function of a convex one.
//!
//! ```text
//! min  1/2 sum_j |f_j|^2 + C sum_i weight_i min(r_i^p, cap),      r_i = |([1 - y_ij f_j(x_i)]_+)_j|
//! ```
//!
//! (Nie, Wang and Huang, "Multiclass capped l_p-norm SVM for robust classifications", AAAI 2017, with C = 1/(2 gamma).) Two classes
//! have one function; of more, each has a function of its own and the largest wins. Rows beyond the cap have no pull on the
//! functions (with `geman_mcclure`, whose pull falls smoothly, little).

use super::common::shared_parameters;
use super::footprint::{Footprint, Kind};
use super::{Common, Details, Estimator, FitRequest, Model, StreamRequest, Summary, Training, fit};
use crate::control::Control;
use crate::data::{Design, Labels, Repeated};
use crate::error::{Error, Result};
use crate::problem::concave::{self, Form, Robust};
use crate::problem::{Coded, Kernel, KernelFunction};
use crate::solver::reweighted::{self, CapRule, Found, Settings};
use crate::solver::stream::Passes;

/// What a row costs at most.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Cap {
    /// Where `cap_fraction` of the rows lie beyond it during the first five rounds; the paper's heuristic.
    #[default]
    Auto,
    /// As `Auto`, with the share from 0 to 0.3 that has the fewest mistakes in five-fold cross-validation.
    CrossValidation,
    /// A number > 0; infinite for no cap.
    At(f64),
}

impl Cap {
    /// The rule of that name; `"none"` is no cap.
    pub fn from_name(name: &str) -> Result<Cap> {
        match name {
            "auto" => Ok(Cap::Auto),
            "cv" => Ok(Cap::CrossValidation),
            "none" => Ok(Cap::At(f64::INFINITY)),
            _ => Err(Error::parameter("cap", format!("{name:?}"), ALLOWED_CAPS)),
        }
    }
}

impl From<f64> for Cap {
    fn from(cap: f64) -> Cap {
        Cap::At(cap)
    }
}

const ALLOWED_CAPS: &str = "a number > 0, \"auto\", \"cv\", or none for no cap";

/// Shares that cross-validation chooses from; the first of equals is taken.
const SHARES: [f64; 5] = [0.1, 0.05, 0.0, 0.2, 0.3];
const FOLDS: usize = 5;

/// Most rounds unless asked otherwise: with p < 2 and several functions the weights move slowly.
const MAX_ITER: usize = 1000;

/// The part of a time limit that choosing the share may take.
const SEARCH_TIME: f64 = 0.5;

/// Parameters of the capped machine.
///
/// ```
/// use outlast::{Capped, Dense};
///
/// let x = Dense::from_rows(&[[-2.0], [-1.5], [-1.0], [1.0], [1.5], [2.0], [40.0]]);
/// let y = [0, 0, 0, 1, 1, 1, 0]; // the last label is wrong, and far away
/// let model = Capped::new(1.0).power(2.0).cap(4.0).fit(&x, &y)?;
/// let training = model.training.as_ref().expect("a fitted model knows its training rows");
/// assert_eq!(training.outliers, [false, false, false, false, false, false, true]);
/// # Ok::<(), outlast::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Capped {
    /// What it shares with the other methods. The kernel is linear unless asked for; `tol` is the gap of a convex round.
    pub common: Common,
    /// p, in (0, 2].
    pub power: f64,
    /// What a row costs at most.
    pub cap: Cap,
    /// The share of the rows' weight that `Cap::Auto` puts beyond the cap, in [0, 1).
    pub cap_fraction: f64,
    /// The loss: a name of [`concave::ALL`].
    pub loss: String,
    /// `"exact"`, or `"alternating"` for the paper's algorithm 2.
    pub solver: String,
}

impl Capped {
    /// The default parameters with a given C.
    pub fn new(c: f64) -> Self {
        Capped {
            common: Common { c, kernel: Kernel::Linear, max_iter: MAX_ITER, ..Common::default() },
            power: 1.0,
            cap: Cap::Auto,
            cap_fraction: 0.1,
            loss: concave::ALL[0].name().to_string(),
            solver: reweighted::NAMES[0].to_string(),
        }
    }

    /// Sets p.
    pub fn power(mut self, power: f64) -> Self {
        self.power = power;
        self
    }

    /// Sets what a row costs at most.
    pub fn cap(mut self, cap: impl Into<Cap>) -> Self {
        self.cap = cap.into();
        self
    }

    /// Sets the share of the rows that `Cap::Auto` puts beyond the cap.
    pub fn cap_fraction(mut self, share: f64) -> Self {
        self.cap_fraction = share;
        self
    }

    /// Sets the loss by name.
    pub fn loss(mut self, loss: impl Into<String>) -> Self {
        self.loss = loss.into();
        self
    }

    /// Sets the solver by name.
    pub fn solver(mut self, solver: impl Into<String>) -> Self {
        self.solver = solver.into();
        self
    }

    fn form(&self) -> Result<&'static dyn Form> {
        concave::from_name(&self.loss)
    }

    /// Fits to the tolerance asked for, from one start, on the threads of the caller.
    pub(crate) fn fit_roughly(&self, x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<Model> {
        self.check()?;
        fit::check_shapes(x, labels, request)?;
        self.run(x, labels, request, false)
    }

    fn run(&self, x: &dyn Design, labels: &Labels, request: &FitRequest, exact: bool) -> Result<Model> {
        x.check_finite()?;
        let caps = self.common.caps(labels, request.sample_weight)?;
        let kernel = self.common.kernel.resolve(x, labels, request.sample_weight)?;
        let functions = fit::functions(labels);
        let cap = if let Cap::At(cap) = self.cap { cap } else { f64::INFINITY };
        let loss = Robust::new(self.form()?, self.power, cap, functions);
        let problem = Coded {
            x,
            codes: labels.codes(),
            functions,
            caps: &caps,
            loss: &loss,
            kernel: &kernel,
            intercept: self.common.fit_intercept,
        };
        let share = match self.cap {
            Cap::CrossValidation => self.cross_validated(&problem, request)?,
            Cap::At(_) | Cap::Auto => self.cap_fraction,
        };
        let rule = if let Cap::At(_) = self.cap { CapRule::Fixed } else { CapRule::Beyond(share) };
        let found = self.solve(&problem, rule, exact, &request.control)?;
        self.model(&problem, labels, request, found, share)
    }

    /// `exact`: as exactly as costs next to nothing, and from several starts.
    fn solve(&self, problem: &Coded, cap: CapRule, exact: bool, control: &Control) -> Result<Found> {
        let alternating = self.solver == "alternating";
        let settings = Settings { cap, alternating, portfolio: exact, ..Settings::default() };
        let tolerance = match exact {
            true => self.common.tolerance(problem.rows() * problem.functions),
            false => self.common.tol,
        };
        let options = self.common.options(tolerance, None);
        let mut found = reweighted::solve(problem, &settings, &options, control)?;
        found.solution = self.common.settled(found.solution);
        Ok(found)
    }

    fn model(&self, problem: &Coded, labels: &Labels, request: &FitRequest, found: Found, share: f64) -> Result<Model> {
        let solution = found.solution;
        let margins = fit::margins(labels, &solution.decision);
        let mut details = Details::default();
        details.set("power", self.power);
        if found.cap.is_finite() {
            details.set("cap", found.cap);
        }
        match self.cap {
            Cap::At(_) => details.set("cap_fraction_unused", self.cap_fraction),
            Cap::Auto => details.set("cap_fraction", self.cap_fraction),
            Cap::CrossValidation => {
                details.set("cap_fraction", share);
                details.set("cap_fraction_unused", self.cap_fraction);
            }
        }
        let predictor = fit::predictor(problem.x, labels, problem.kernel, request, &solution)?;
        let summary = Summary {
            loss: self.loss.clone(),
            solver_asked: self.solver.clone(),
            outliers: solution.truncated.iter().filter(|&&outlier| outlier).count(),
            details,
            ..fit::summary("capped", &self.common, labels, &solution)?
        };
        let (outliers, expansion, scores) = (solution.truncated, solution.expansion, Some(found.losses));
        let training = Training { margins, outliers, expansion, eta: None, scores };
        Ok(Model { predictor, summary, training: Some(training) })
    }

    /// The share with the fewest held-out mistakes, by weight. A time limit leaves half of the time to the fit that follows; shares
    /// that are not through by then do not take part.
    fn cross_validated(&self, problem: &Coded, request: &FitRequest) -> Result<f64> {
        let folds = folds(problem, self.common.random_state);
        let control = request.control.share_of_time(SEARCH_TIME);
        let mut best = (f64::INFINITY, SHARES[0]);
        for share in SHARES {
            let mut mistakes = 0.0;
            for fold in 0..FOLDS {
                mistakes += self.held_out(problem, &folds, fold, share, &control)?;
            }
            if control.out_of_time() {
                break;
            }
            if mistakes < best.0 {
                best = (mistakes, share);
            }
        }
        Ok(best.1)
    }

    /// Weight of the rows of a fold that the others' classifier gets wrong.
    fn held_out(&self, problem: &Coded, folds: &[usize], fold: usize, share: f64, control: &Control) -> Result<f64> {
        let all = 0..folds.len() as u32;
        let (inside, outside): (Vec<u32>, Vec<u32>) = all.partition(|&row| folds[row as usize] != fold);
        if inside.is_empty() || outside.is_empty() {
            return Ok(0.0);
        }
        let codes: Vec<u32> = inside.iter().map(|&row| problem.codes[row as usize]).collect();
        let caps: Vec<f64> = inside.iter().map(|&row| problem.caps[row as usize]).collect();
        let x = match problem.kernel {
            KernelFunction::Precomputed => Repeated::square(problem.x, inside.clone()),
            _ => Repeated::new(problem.x, inside.clone()),
        };
        let part = Coded { x: &x, codes: &codes, caps: &caps, ..*problem };
        let solution = self.solve(&part, CapRule::Beyond(share), true, control)?.solution;
        let m = problem.functions;
        let mut decision = vec![0.0; outside.len() * m];
        for function in 0..m {
            let mut expansion = vec![0.0; folds.len()];
            let own = solution.expansion.iter().skip(function).step_by(m);
            inside.iter().zip(own).for_each(|(&row, &value)| expansion[row as usize] = value);
            let values: Vec<f64> = match &solution.weights {
                Some(weights) => {
                    let w = &weights[function * problem.x.cols()..(function + 1) * problem.x.cols()];
                    outside.iter().map(|&row| problem.x.dot(row as usize, w)).collect()
                }
                None => problem.kernel.expand_at(problem.x, &expansion, &outside),
            };
            values.iter().enumerate().for_each(|(k, f)| decision[k * m + function] = f + solution.intercepts[function]);
        }
        let wrong = |(row, f): &(&u32, &[f64])| decided(f) != problem.codes[**row as usize];
        let rows = outside.iter().zip(decision.chunks_exact(m)).filter(wrong);
        Ok(rows.map(|(&row, _)| problem.caps[row as usize]).sum())
    }
}

/// The class that decision values stand for.
fn decided(f: &[f64]) -> u32 {
    if let [only] = f {
        return u32::from(*only > 0.0);
    }
    let largest = f.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    f.iter().position(|&value| value == largest).unwrap_or(0) as u32
}

/// The fold of each row: the rows of each class are shuffled and dealt out in turn. Rows without weight are in no fold.
fn folds(problem: &Coded, seed: u64) -> Vec<usize> {
    let classes = problem.codes.iter().max().map_or(0, |&code| code + 1);
    let (mut of, mut next, mut random) = (vec![FOLDS; problem.rows()], 0, seed);
    for class in 0..classes {
        let own = |row: &usize| problem.codes[*row] == class && problem.caps[*row] > 0.0;
        let mut rows: Vec<usize> = (0..problem.rows()).filter(own).collect();
        for last in (1..rows.len()).rev() {
            rows.swap(last, (splitmix(&mut random) % (last as u64 + 1)) as usize);
        }
        for row in rows {
            of[row] = next % FOLDS;
            next += 1;
        }
    }
    of
}

/// The next of Steele, Lea and Flood's pseudorandom numbers.
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Estimator for Capped {
    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn check(&self) -> Result<()> {
        self.common.check()?;
        let form = self.form()?;
        if !(self.power > 0.0 && self.power <= 2.0) {
            return Err(Error::parameter("p", self.power, "a number > 0 and <= 2"));
        }
        if let Cap::At(cap) = self.cap
            && !(cap > 0.0)
        {
            return Err(Error::parameter("cap", cap, ALLOWED_CAPS));
        }
        if !(0.0..1.0).contains(&self.cap_fraction) {
            return Err(Error::parameter("cap_fraction", self.cap_fraction, "a number >= 0 and < 1"));
        }
        if !reweighted::NAMES.contains(&self.solver.as_str()) {
            let allowed = format!("one of {}", reweighted::NAMES.join(", "));
            return Err(Error::parameter("solver", format!("{:?}", self.solver), allowed));
        }
        if self.solver == "alternating" && !form.has_power() {
            let found = format!("\"alternating\" with the loss {:?}", self.loss);
            return Err(Error::parameter("solver", found, "\"exact\", or the loss \"lp\""));
        }
        Ok(())
    }

    fn fit_labels(&self, x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<Model> {
        self.check()?;
        fit::check_shapes(x, labels, request)?;
        fit::in_pool(self.common.threads, || self.run(x, labels, request, true))
    }

    fn check_chunks(&self) -> Result<()> {
        self.check_streamed()
    }

    fn footprint(&self, cols: usize, classes: usize) -> Footprint {
        Kind::Capped.footprint(cols, classes, 1)
    }

    fn fit_passes(&self, rows: &mut dyn Passes, request: &StreamRequest) -> Result<Model> {
        self.stream(rows, request)
    }
}

shared_parameters!(Capped);
