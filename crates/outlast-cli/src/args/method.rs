//! Options about the method: the parameters of the Python estimator, with dashes.

use crate::failure::Failure;
use crate::output::class_text;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use outlast::error::quoted;
use outlast::{
    Baseline, ClassWeight, CostForm, Error, Gamma, Kernel, Labels, Loss, Penalty, Truncated, Truncation, io,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The method and its parameters.
#[derive(Args, Clone)]
pub struct MethodArgs {
    /// The method: truncated is the truncated-loss support vector machine
    #[arg(long, default_value = "truncated", value_parser = ["truncated"], help_heading = "Method")]
    pub method: String,
    /// Weight of the losses against the penalty: larger follows the data more closely
    #[arg(
        short = 'C',
        long = "c",
        alias = "C",
        value_name = "NUMBER",
        default_value_t = 1.0,
        allow_negative_numbers = true,
        help_heading = "Method"
    )]
    pub c: f64,
    /// Margin below which a row costs no more and counts as an outlier: a number <= 0, auto (-1/(k-1) for the hinge
    /// with k classes), or none for the ordinary support vector machine
    #[arg(long, value_name = "NUMBER|auto|none", default_value = "auto", value_parser = truncation,
        allow_negative_numbers = true, help_heading = "Method")]
    pub truncation: Truncation,
    /// Loss before truncation
    #[arg(long, default_value = "hinge", value_parser = PossibleValuesParser::new(loss_names()), help_heading = "Method")]
    pub loss: String,
    /// Penalty on the size of the decision function
    #[arg(long, default_value = "l2", value_parser = PossibleValuesParser::new(penalties()), help_heading = "Method")]
    pub penalty: String,
    /// What decisions are worth: a CSV file with the classes decided for as header and a row per true class, in the
    /// order of the header unless the first column names it; all values >= 0
    #[arg(long, value_name = "FILE", conflicts_with = "cost", help_heading = "Method")]
    pub utility: Option<PathBuf>,
    /// What decisions cost: a CSV file as for --utility
    #[arg(long, value_name = "FILE", help_heading = "Method")]
    pub cost: Option<PathBuf>,
    /// How costs enter the loss
    #[arg(long, default_value = "utility", value_parser = PossibleValuesParser::new(cost_forms()), help_heading = "Method")]
    pub cost_form: String,
    /// What is subtracted from each utility
    #[arg(long, default_value = "keep", value_parser = PossibleValuesParser::new(baselines()), help_heading = "Method")]
    pub utility_baseline: String,
    /// Kernel
    #[arg(long, default_value = "rbf", value_parser = PossibleValuesParser::new(Kernel::NAMES), help_heading = "Method")]
    pub kernel: String,
    /// Kernel width: a number > 0; scale = 1 / (features x variance), auto = 1 / features; q1, median, q3 =
    /// 1 / (2 sigma^2) with sigma that quartile of the distances between the classes
    #[arg(long, value_name = "NUMBER|RULE", default_value = "scale", value_parser = gamma, allow_negative_numbers = true,
        help_heading = "Method")]
    pub gamma: Gamma,
    /// Degree of the poly kernel
    #[arg(long, value_name = "NUMBER", default_value_t = 3, help_heading = "Method")]
    pub degree: u32,
    /// Constant term of the poly and sigmoid kernels
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0, allow_negative_numbers = true, help_heading = "Method")]
    pub coef0: f64,
    /// Factors on C by class: balanced, or name=factor,name=factor (others 1)
    #[arg(long, value_name = "balanced|NAME=FACTOR,...", help_heading = "Method")]
    pub class_weight: Option<String>,
    /// Whether an unpenalised intercept is fitted
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, help_heading = "Method")]
    pub fit_intercept: bool,
    /// Fit no intercept, as --fit-intercept false
    #[arg(long, conflicts_with = "fit_intercept", help_heading = "Method")]
    pub no_intercept: bool,
    /// Relative duality gap at which a convex step counts as solved
    #[arg(long, value_name = "NUMBER", default_value_t = defaults().tol, allow_negative_numbers = true,
        help_heading = "Solver")]
    pub tol: f64,
    /// Most majorise-minimise steps
    #[arg(long, value_name = "NUMBER", default_value_t = defaults().max_iter, help_heading = "Solver")]
    pub max_iter: usize,
    /// Memory the kernel solver may keep, in megabytes
    #[arg(long, value_name = "MB", default_value_t = defaults().cache_size, allow_negative_numbers = true,
        help_heading = "Solver")]
    pub cache_size: f64,
    /// Threads; -1 for all cores [default: all cores]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = jobs, help_heading = "Solver")]
    pub n_jobs: Option<i64>,
    /// Seed of whatever is drawn at random
    #[arg(long, value_name = "NUMBER", default_value_t = defaults().random_state, help_heading = "Solver")]
    pub random_state: u64,
    /// Solver to take; auto chooses by the shape of the data
    #[arg(long, value_name = "NAME", default_value = "auto", help_heading = "Solver")]
    pub solver: String,
    /// Stop after this many seconds with the best model so far
    #[arg(long, value_name = "SECONDS", value_parser = time_limit, help_heading = "Solver")]
    pub time_limit: Option<Duration>,
}

impl MethodArgs {
    /// Checks what can be checked before any file is read. Standard input holds one thing only.
    pub fn check(&self, data: &Path) -> Result<(), Failure> {
        let from_input = |path: &Path| path == Path::new("-");
        for (option, file) in [("--utility", &self.utility), ("--cost", &self.cost)] {
            if file.as_deref().is_some_and(from_input) && from_input(data) {
                return Err(Failure::Usage(format!("{option} - and the data can't both be standard input")));
            }
        }
        let mut parameters = self.without_data()?;
        // which matrix is given matters here, not what is in it
        parameters.utility = self.utility.as_ref().map(|_| Vec::new());
        parameters.cost = self.cost.as_ref().map(|_| Vec::new());
        Ok(parameters.check()?)
    }

    /// The parameters, for data with these labels.
    pub fn parameters(&self, labels: &Labels) -> Result<Truncated, Failure> {
        let mut parameters = self.without_data()?.class_weight(self.class_weight(labels)?);
        let read = |path: &PathBuf, what| io::read_payoff(path, what, labels.classes());
        parameters.utility = self.utility.as_ref().map(|path| read(path, "utility")).transpose()?;
        parameters.cost = self.cost.as_ref().map(|path| read(path, "cost")).transpose()?;
        Ok(parameters)
    }

    fn without_data(&self) -> Result<Truncated, Failure> {
        let mut parameters = Truncated::new(self.c)
            .truncation(self.truncation)
            .loss(Loss::from_name(&self.loss)?)
            .kernel(Kernel::from_name(&self.kernel, self.gamma, self.degree, self.coef0)?)
            .penalty(Penalty::from_name(&self.penalty)?)
            .cost_form(CostForm::from_name(&self.cost_form)?)
            .utility_baseline(Baseline::from_name(&self.utility_baseline)?)
            .fit_intercept(self.fit_intercept && !self.no_intercept)
            .tol(self.tol)
            .solver(self.solver.clone());
        parameters.max_iter = self.max_iter;
        parameters.cache_size = self.cache_size;
        parameters.random_state = self.random_state;
        parameters.threads = self.n_jobs.and_then(threads);
        Ok(parameters)
    }

    fn class_weight(&self, labels: &Labels) -> Result<ClassWeight, Failure> {
        match self.class_weight.as_deref() {
            None => Ok(ClassWeight::Equal),
            Some("balanced") => Ok(ClassWeight::Balanced),
            Some(text) => given_weights(text, labels).map(ClassWeight::Given),
        }
    }
}

fn given_weights(text: &str, labels: &Labels) -> Result<Vec<f64>, Failure> {
    let refuse = |allowed: String| Failure::from(Error::parameter("class_weight", quoted(text), allowed));
    let mut weights = vec![1.0; labels.classes().len()];
    for part in text.split(',').filter(|part| !part.trim().is_empty()) {
        let (name, factor) = part
            .rsplit_once('=')
            .ok_or_else(|| refuse("balanced, or name=factor pairs separated by commas".to_string()))?;
        let class = io::match_class(labels.classes(), &name.trim().into()).ok_or_else(|| {
            let known: Vec<String> = labels.classes().iter().take(10).map(class_text).collect();
            refuse(format!("about classes of the data ({}), not {}", known.join(", "), quoted(name.trim())))
        })?;
        let factor: f64 = factor.trim().parse().map_err(|_| refuse("made of numbers after each =".to_string()))?;
        weights[class] = factor;
    }
    Ok(weights)
}

fn defaults() -> Truncated {
    Truncated::new(1.0)
}

fn loss_names() -> Vec<&'static str> {
    outlast::problem::loss::ALL.iter().map(|loss| loss.name()).collect()
}

fn penalties() -> Vec<PossibleValue> {
    Penalty::ALL.iter().map(|penalty| PossibleValue::new(penalty.name()).help(penalty.about())).collect()
}

fn cost_forms() -> Vec<PossibleValue> {
    CostForm::ALL.iter().map(|form| PossibleValue::new(form.name()).help(form.about())).collect()
}

fn baselines() -> Vec<PossibleValue> {
    Baseline::ALL.iter().map(|baseline| PossibleValue::new(baseline.name()).help(baseline.about())).collect()
}

fn truncation(text: &str) -> Result<Truncation, String> {
    match text {
        "auto" => Ok(Truncation::Auto),
        "none" => Ok(Truncation::Off),
        _ => match text.parse::<f64>() {
            Ok(value) if value.is_finite() && value <= 0.0 => Ok(Truncation::At(value)),
            _ => Err("must be a number <= 0, auto or none".to_string()),
        },
    }
}

fn gamma(text: &str) -> Result<Gamma, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(Gamma::Value(value)),
        Ok(_) => Err("must be a finite number > 0".to_string()),
        Err(_) => {
            Gamma::from_name(text).map_err(|_| format!("must be a number > 0 or one of {}", Gamma::NAMES.join(", ")))
        }
    }
}

fn jobs(text: &str) -> Result<i64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("must be a whole number, not 0; -1 is all cores".to_string()),
        Ok(number) => Ok(number),
    }
}

/// Negative numbers count back from all cores, as in Python: -1 is all, -2 all but one.
fn threads(jobs: i64) -> Option<usize> {
    if jobs > 0 {
        return usize::try_from(jobs).ok();
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as i64;
    usize::try_from((cores + 1).saturating_add(jobs).max(1)).ok()
}

fn time_limit(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_string())?;
    Duration::try_from_secs_f64(seconds).ok().filter(|limit| !limit.is_zero()).ok_or("must be > 0 seconds".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_weights_go_by_name() {
        let labels = Labels::new(["a=b", "c", "d"]);
        assert_eq!(given_weights("a=b=2, d=0.5", &labels).unwrap(), [2.0, 1.0, 0.5]);
        for wrong in ["e=1", "c", "c=x"] {
            assert!(given_weights(wrong, &labels).is_err(), "{wrong}");
        }
        assert_eq!(given_weights("-1=3", &Labels::new([-1, 1])).unwrap(), [3.0, 1.0]);
    }

    #[test]
    fn texts_become_parameters() {
        assert_eq!(truncation("-0.5"), Ok(Truncation::At(-0.5)));
        assert_eq!(truncation("none"), Ok(Truncation::Off));
        assert!(truncation("0.5").is_err() && truncation("nan").is_err());
        assert_eq!(gamma("q1"), Ok(Gamma::Q1));
        assert!(gamma("wide").is_err() && gamma("0").is_err());
        assert_eq!(threads(3), Some(3));
        assert!(threads(-1) >= Some(1) && threads(i64::MIN) == Some(1));
        assert!(time_limit("0").is_err() && time_limit("1e300").is_err() && time_limit("-1").is_err());
    }
}
