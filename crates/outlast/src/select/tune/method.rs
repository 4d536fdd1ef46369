//! What a search must know of a method: which parameters it may run over, how a value is set, and how to fit roughly.

use super::{Axis, Setting};
use crate::data::{Design, Labels};
use crate::error::{Error, Result};
use crate::model::{Ablation, AblationMethod, Capped, Common, Estimator, FitRequest, Inliers, Model, Probability};
use crate::model::{Cap, Truncated, Truncation};
use crate::problem::{Gamma, Kernel, Penalty};
use crate::solver::kernel::KernelStore;

/// A relative gap that is enough to compare points of a grid.
const ROUGH: f64 = 1e-3;

/// A method whose parameters can be chosen by data.
pub trait Tunable: Estimator + Send {
    /// The parameters beside C and gamma that a search may run over, the slowest first.
    fn parameters(&self) -> &'static [&'static str];

    /// Those of them along which a fit is a good start for the next, and in which order: the easiest first.
    fn ease(&self, name: &str, value: &Setting) -> Option<f64>;

    /// Sets a parameter of [`parameters`](Self::parameters).
    fn set_own(&mut self, name: &'static str, value: &Setting) -> Result<()>;

    /// What is tried unless something else is asked for, of the method's own parameters, and of C where it is not the usual list.
    fn own_defaults(&self) -> Vec<Axis>;

    /// The parameters it shares with the other methods.
    fn common(&self) -> &Common;

    /// A copy.
    fn copied(&self) -> Box<dyn Tunable>;

    /// Leaves out what only the chosen model needs, such as probabilities.
    fn plain(&mut self) {}

    /// What decisions are worth: the matrix, k x k, row = true class, and whether it holds costs.
    fn payoff(&self, labels: &Labels) -> Result<Option<(Vec<f64>, bool)>> {
        let _ = labels;
        Ok(None)
    }

    /// Fits as exactly as a comparison needs, on the threads of the caller; `request.start` is a fit to the same rows, and `store` has
    /// kernel rows of such fits.
    fn fit_roughly(&self, x: &dyn Design, labels: &Labels, request: &FitRequest, store: &KernelStore) -> Result<Model>;
}

/// Sets any parameter a search may run over.
pub(super) fn set(method: &mut dyn Tunable, name: &'static str, value: &Setting) -> Result<()> {
    match name {
        "C" => method.common_mut().c = number(name, value, "a finite number > 0")?,
        "gamma" => {
            let width = match value {
                Setting::Number(number) if number.is_finite() && *number > 0.0 => Gamma::Value(*number),
                Setting::Name(name) => Gamma::from_name(name)?,
                other => return Err(Error::parameter(name, other, allowed_gamma())),
            };
            match &mut method.common_mut().kernel {
                Kernel::Rbf { gamma } | Kernel::Poly { gamma, .. } | Kernel::Sigmoid { gamma, .. } => *gamma = width,
                other => {
                    let found = format!("{value} with the {} kernel", other.name());
                    return Err(Error::parameter(name, found, "left out: the kernel has no width"));
                }
            }
        }
        _ => method.set_own(name, value)?,
    }
    Ok(())
}

fn allowed_gamma() -> String {
    format!("a finite number > 0 or one of {}", Gamma::NAMES.join(", "))
}

/// Whether the kernel has a width.
pub(super) fn has_width(kernel: &Kernel) -> bool {
    matches!(kernel, Kernel::Rbf { .. } | Kernel::Poly { .. } | Kernel::Sigmoid { .. })
}

fn number(name: &'static str, value: &Setting, allowed: &str) -> Result<f64> {
    value.number().ok_or_else(|| Error::parameter(name, value, allowed))
}

fn unknown(name: &'static str, method: &str) -> Error {
    Error::parameter(name, "a list of values", format!("left out: the {method} machine has no such parameter"))
}

/// The tolerance of a comparison.
fn rough(common: &mut Common) {
    common.tol = common.tol.max(ROUGH);
    common.threads = None;
}

impl Tunable for Truncated {
    fn parameters(&self) -> &'static [&'static str] {
        &["penalty", "q", "truncation"]
    }

    fn ease(&self, name: &str, value: &Setting) -> Option<f64> {
        match (name, value) {
            ("truncation", Setting::Nothing) => Some(f64::NEG_INFINITY),
            ("truncation", Setting::Number(at)) => Some(*at),
            ("truncation", _) => Some(-1.0),
            _ => None,
        }
    }

    fn set_own(&mut self, name: &'static str, value: &Setting) -> Result<()> {
        match (name, value) {
            ("truncation", Setting::Number(at)) => self.truncation = Truncation::At(*at),
            ("truncation", Setting::Nothing) => self.truncation = Truncation::Off,
            ("truncation", Setting::Name(rule)) if rule == "auto" => self.truncation = Truncation::Auto,
            ("truncation", other) => {
                return Err(Error::parameter(name, format!("{:?}", other.to_string()), "numbers <= 0, auto or none"));
            }
            ("penalty", Setting::Name(penalty)) => self.penalty = Penalty::from_name(penalty)?,
            ("penalty", other) => return Err(Error::parameter(name, other, "names of penalties")),
            ("q", value) => self.q = number(name, value, "a number > 0 and <= 1")?,
            _ => return Err(unknown(name, "truncated")),
        }
        Ok(())
    }

    fn own_defaults(&self) -> Vec<Axis> {
        let truncation = match self.truncation {
            Truncation::Auto => Setting::from("auto"),
            Truncation::Off => Setting::Nothing,
            Truncation::At(at) => Setting::Number(at),
        };
        let mut axes = vec![Axis::new("penalty", [self.penalty.name()])];
        if self.penalty == Penalty::Lq {
            axes.push(Axis::new("q", [self.q]));
        }
        axes.push(Axis::new("truncation", [truncation]));
        axes
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn copied(&self) -> Box<dyn Tunable> {
        Box::new(self.clone())
    }

    fn plain(&mut self) {
        (self.probability, self.global_search) = (Probability::Off, false);
    }

    fn payoff(&self, labels: &Labels) -> Result<Option<(Vec<f64>, bool)>> {
        self.given_payoff(labels)
    }

    fn fit_roughly(&self, x: &dyn Design, labels: &Labels, request: &FitRequest, store: &KernelStore) -> Result<Model> {
        let mut rougher = self.clone();
        rough(&mut rougher.common);
        rougher.fit_roughly(x, labels, request, store)
    }
}

impl Tunable for Capped {
    fn parameters(&self) -> &'static [&'static str] {
        &["p", "cap", "cap_fraction"]
    }

    fn ease(&self, _: &str, _: &Setting) -> Option<f64> {
        None
    }

    fn set_own(&mut self, name: &'static str, value: &Setting) -> Result<()> {
        match (name, value) {
            ("p", value) => self.power = number(name, value, "a number > 0 and <= 2")?,
            ("cap", Setting::Number(cap)) => self.cap = Cap::At(*cap),
            ("cap", Setting::Nothing) => self.cap = Cap::At(f64::INFINITY),
            ("cap", Setting::Name(rule)) => self.cap = Cap::from_name(rule)?,
            ("cap_fraction", value) => self.cap_fraction = number(name, value, "a number >= 0 and < 1")?,
            _ => return Err(unknown(name, "capped")),
        }
        Ok(())
    }

    fn own_defaults(&self) -> Vec<Axis> {
        let mut axes = vec![Axis::new("p", [self.power])];
        match self.cap {
            Cap::At(cap) => axes.push(Axis::new("cap", [cap])),
            Cap::CrossValidation => axes.push(Axis::new("cap", ["cv"])),
            Cap::Auto => {
                axes.push(Axis::new("cap", ["auto"]));
                axes.push(Axis::new("cap_fraction", [0.0, 0.1, 0.2]));
            }
        }
        axes
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn copied(&self) -> Box<dyn Tunable> {
        Box::new(self.clone())
    }

    fn fit_roughly(&self, x: &dyn Design, labels: &Labels, request: &FitRequest, _: &KernelStore) -> Result<Model> {
        let mut rougher = self.clone();
        rough(&mut rougher.common);
        rougher.fit_roughly(x, labels, request)
    }
}

impl Tunable for Ablation {
    fn parameters(&self) -> &'static [&'static str] {
        match self.method {
            AblationMethod::Reh => &[],
            AblationMethod::Rod => &["inlier_fraction"],
        }
    }

    fn ease(&self, _: &str, _: &Setting) -> Option<f64> {
        None
    }

    fn set_own(&mut self, name: &'static str, value: &Setting) -> Result<()> {
        match (name, self.method, value) {
            ("inlier_fraction", AblationMethod::Rod, Setting::Number(share)) => {
                self.inlier_fraction = Inliers::Given(*share);
            }
            ("inlier_fraction", AblationMethod::Rod, Setting::Name(rule)) => {
                self.inlier_fraction = Inliers::from_name(rule)?;
            }
            _ => return Err(unknown(name, self.method.name())),
        }
        Ok(())
    }

    fn own_defaults(&self) -> Vec<Axis> {
        let shares = match (self.method, self.inlier_fraction) {
            (AblationMethod::Reh, _) => None,
            (AblationMethod::Rod, Inliers::Given(share)) => Some(Axis::new("inlier_fraction", [share])),
            (AblationMethod::Rod, Inliers::Transition) => Some(Axis::new("inlier_fraction", ["transition"])),
            (AblationMethod::Rod, Inliers::CrossValidation) => {
                Some(Axis::new("inlier_fraction", [1.0, 0.95, 0.9, 0.8, 0.7]))
            }
        };
        // a fit takes much longer than those of the other methods
        shares.into_iter().chain([Axis::new("C", [0.01, 0.1, 1.0, 10.0])]).collect()
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn copied(&self) -> Box<dyn Tunable> {
        Box::new(self.clone())
    }

    fn fit_roughly(&self, x: &dyn Design, labels: &Labels, request: &FitRequest, _: &KernelStore) -> Result<Model> {
        let mut rougher = self.clone();
        rough(&mut rougher.common);
        rougher.fit_labels(x, labels, request)
    }
}
