//! Options about the method: the parameters of the Python estimator, with dashes.

use crate::failure::Failure;
use crate::output::class_text;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use outlast::error::quoted;
use outlast::model::{AblationMethod, Common};
use outlast::select::tune::Tunable;
use outlast::{
    Ablation, Baseline, Cap, Capped, Centroid, ClassWeight, CostForm, Error, Estimator, FeatureMap, Gamma, Inliers,
    Kernel, Labels, LeaveOneOut, Loss, Lq, Penalty, Probability, Shift, Truncated, Truncation, io,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What decisions are worth, or cost.
type Matrix = Option<Vec<Vec<f64>>>;

/// The method and its parameters.
#[derive(Args, Clone)]
pub struct MethodArgs {
    /// The method
    #[arg(long, default_value = "truncated", value_parser = PossibleValuesParser::new(methods()), help_heading = "Method")]
    pub method: String,
    /// Weight of the losses against the penalty: larger follows the data more closely [default: 1]
    #[arg(
        short = 'C',
        long = "c",
        alias = "C",
        value_name = "NUMBER",
        allow_negative_numbers = true,
        help_heading = "Method"
    )]
    pub c: Option<f64>,
    /// Kernel [default: rbf for truncated, linear for the others]
    #[arg(long, value_parser = PossibleValuesParser::new(Kernel::NAMES), help_heading = "Method")]
    pub kernel: Option<String>,
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
    /// Whether an unpenalised intercept is fitted [default: true for truncated, capped, lq and centroid, false for reh, rod and loo]
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, help_heading = "Method")]
    pub fit_intercept: Option<bool>,
    /// Fit no intercept, as --fit-intercept false
    #[arg(long, conflicts_with = "fit_intercept", help_heading = "Method")]
    pub no_intercept: bool,
    /// Margin below which a row costs no more and counts as an outlier: a number <= 0, auto (-1/(k-1) for the hinge
    /// with k classes), or none for the ordinary support vector machine [default: auto]
    #[arg(long, value_name = "NUMBER|auto|none", value_parser = truncation, allow_negative_numbers = true,
        help_heading = "Method truncated")]
    pub truncation: Option<Truncation>,
    /// Loss: hinge, logistic or exponential before truncation; lp, logistic or geman_mcclure for capped [default: hinge, lp]
    #[arg(long, value_parser = PossibleValuesParser::new(loss_names()), help_heading = "Methods truncated and capped")]
    pub loss: Option<String>,
    /// Penalty on the size of the decision function [default: l2]
    #[arg(long, value_parser = PossibleValuesParser::new(penalties()), help_heading = "Method truncated")]
    pub penalty: Option<String>,
    /// What decisions are worth: a CSV file with the classes decided for as header and a row per true class, in the
    /// order of the header unless the first column names it; all values >= 0
    #[arg(long, value_name = "FILE", conflicts_with = "cost", help_heading = "Method truncated")]
    pub utility: Option<PathBuf>,
    /// What decisions cost: a CSV file as for --utility; for lq with zeros on the diagonal
    #[arg(long, value_name = "FILE", help_heading = "Method truncated")]
    pub cost: Option<PathBuf>,
    /// How costs enter the loss [default: utility]
    #[arg(long, value_parser = PossibleValuesParser::new(cost_forms()), help_heading = "Method truncated")]
    pub cost_form: Option<String>,
    /// What is subtracted from each utility [default: keep]
    #[arg(long, value_parser = PossibleValuesParser::new(baselines()), help_heading = "Method truncated")]
    pub utility_baseline: Option<String>,
    /// Power of the penalty sum |w|^q, in (0, 2]; below 1 it selects fewest variables [default: 1 for lq, 0.5 with --penalty lq]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, help_heading = "Method lq")]
    pub q: Option<f64>,
    /// What the function is linear in [default: identity]
    #[arg(long, value_parser = PossibleValuesParser::new(feature_maps()), help_heading = "Method lq")]
    pub feature_map: Option<String>,
    /// Look for the global optimum (two classes, hinge, --truncation 0): start from a convex relaxation as well, and on
    /// few rows prove the optimum by branch and bound; Ctrl-C ends it with the best model so far
    #[arg(long = "global", help_heading = "Method truncated")]
    pub global_search: bool,
    /// Estimate the probability of each class as well, which `outlast predict` then shows [default: none]
    #[arg(long, value_parser = PossibleValuesParser::new(probabilities()), help_heading = "Method truncated")]
    pub probability: Option<String>,
    /// Power of the residuals' norm, in (0, 2] [default: 1]
    #[arg(long = "p", value_name = "NUMBER", allow_negative_numbers = true, help_heading = "Method capped")]
    pub power: Option<f64>,
    /// What a row costs at most: a number > 0, none (or inf) for no cap, auto to leave --cap-fraction of the rows beyond it, cv to choose
    /// that share by cross-validation [default: auto]
    #[arg(long, value_name = "NUMBER|RULE", value_parser = cap, allow_negative_numbers = true,
        help_heading = "Method capped")]
    pub cap: Option<Cap>,
    /// Share of the rows that --cap auto leaves beyond the cap, in [0, 1) [default: 0.1]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, help_heading = "Method capped")]
    pub cap_fraction: Option<f64>,
    /// Share of the rows' weight that is kept: a number in (0, 1]; cv (or auto) by cross-validation, transition by where
    /// the largest eta falls below 1 [default: auto]
    #[arg(long, value_name = "NUMBER|RULE", value_parser = inliers, allow_negative_numbers = true,
        help_heading = "Methods reh and rod")]
    pub inlier_fraction: Option<Inliers>,
    /// Keep the relaxation's own classifier instead of refining it
    #[arg(long, help_heading = "Methods reh and rod")]
    pub no_refine: bool,
    /// Factor on the squared distance of a row to the centre of its class: a number >= 0, or auto = 1 / (2 x the median
    /// of these) [default: auto]
    #[arg(long, value_name = "NUMBER|auto", value_parser = shift, allow_negative_numbers = true,
        help_heading = "Methods centroid and loo")]
    pub shift: Option<Shift>,
    /// Factor on a row's own kernel value in its loss; other than 1: adaptive margins [default: 1]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, help_heading = "Methods centroid and loo")]
    pub factor: Option<f64>,
    /// Relative duality gap at which a convex step counts as solved [default: 1e-4; 1e-6 for lq, reh, rod
    /// and loo, 1e-3 for reh and rod with an intercept]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, help_heading = "Solver")]
    pub tol: Option<f64>,
    /// Most majorise-minimise steps [default: 100; 1000 for lq and capped]
    #[arg(long, value_name = "NUMBER", help_heading = "Solver")]
    pub max_iter: Option<usize>,
    /// Memory the kernel solver may keep, in megabytes
    #[arg(long, value_name = "MB", default_value_t = Common::default().cache_size, allow_negative_numbers = true,
        help_heading = "Solver")]
    pub cache_size: f64,
    /// Threads; -1 for all cores [default: all cores]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = jobs, help_heading = "Solver")]
    pub n_jobs: Option<i64>,
    /// Seed of whatever is drawn at random
    #[arg(long, value_name = "NUMBER", default_value_t = Common::default().random_state, help_heading = "Solver")]
    pub random_state: u64,
    /// Solver to take; auto chooses by the shape of the data [default: auto]
    #[arg(long, value_name = "NAME", help_heading = "Solver")]
    pub solver: Option<String>,
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
        self.check_options()?;
        Ok(self.without_data()?.check()?)
    }

    /// Checks that the method can be fitted to data in parts.
    pub fn check_chunks(&self) -> Result<(), Failure> {
        Ok(self.without_data()?.check_chunks()?)
    }

    /// Rows that were read, on disk where the fit in memory would take too much.
    pub fn within(&self, rows: io::Stream, options: &io::StreamOptions) -> Result<io::Stream, Failure> {
        Ok(rows.within(self.without_data()?.as_ref(), options)?)
    }

    fn without_data(&self) -> Result<Box<dyn Estimator>, Failure> {
        // which matrix is given matters here, not what is in it
        let given = |file: &Option<PathBuf>| file.as_ref().map(|_| Vec::new());
        self.method(ClassWeight::Equal, given(&self.utility), given(&self.cost))
    }

    /// The method and its parameters, for data with these labels.
    pub fn parameters(&self, labels: &Labels) -> Result<Box<dyn Estimator>, Failure> {
        let (utility, cost) = self.payoffs(labels)?;
        self.method(self.class_weight(labels)?, utility, cost)
    }

    fn payoffs(&self, labels: &Labels) -> Result<(Matrix, Matrix), Failure> {
        let read = |path: &PathBuf, what| io::read_payoff(path, what, labels.classes());
        let utility = self.utility.as_ref().map(|path| read(path, "utility")).transpose()?;
        let cost = self.cost.as_ref().map(|path| match self.method.as_str() {
            "lq" => io::read_cost(path, labels.classes()),
            _ => read(path, "cost"),
        });
        let cost = cost.transpose()?;
        Ok((utility, cost))
    }

    /// An option that the method does not know is a mistake, not something to pass over.
    fn check_options(&self) -> Result<(), Failure> {
        let options = [
            ("--c", self.c.is_some(), &["truncated", "capped", "lq", "reh", "rod", "centroid"][..]),
            ("--truncation", self.truncation.is_some(), &["truncated"]),
            ("--loss", self.loss.is_some(), &["truncated", "capped"]),
            ("--penalty", self.penalty.is_some(), &["truncated"]),
            ("--utility", self.utility.is_some(), &["truncated"]),
            ("--cost", self.cost.is_some(), &["truncated", "lq"]),
            ("--cost-form", self.cost_form.is_some(), &["truncated"]),
            ("--utility-baseline", self.utility_baseline.is_some(), &["truncated"]),
            ("--global", self.global_search, &["truncated"]),
            ("--probability", self.probability.is_some(), &["truncated"]),
            ("--solver", self.solver.is_some(), &["truncated", "lq", "capped"]),
            ("--q", self.q.is_some(), &["truncated", "lq"]),
            ("--feature-map", self.feature_map.is_some(), &["lq"]),
            ("--p", self.power.is_some(), &["capped"]),
            ("--cap", self.cap.is_some(), &["capped"]),
            ("--cap-fraction", self.cap_fraction.is_some(), &["capped"]),
            ("--inlier-fraction", self.inlier_fraction.is_some(), &["rod"]),
            ("--no-refine", self.no_refine, &["reh", "rod"]),
            ("--shift", self.shift.is_some(), &["centroid"]),
            ("--factor", self.factor.is_some(), &["loo"]),
        ];
        // of the truncated method the exponent is one penalty's
        if self.method == "truncated" && self.q.is_some() && self.penalty.as_deref() != Some(Penalty::Lq.name()) {
            return Err(Failure::Usage("--q is an option of --penalty lq and of --method lq".to_string()));
        }
        match options.iter().find(|(_, given, methods)| *given && !methods.contains(&self.method.as_str())) {
            None => Ok(()),
            Some((option, _, methods)) => Err(Failure::Usage(format!(
                "{option} is no option of --method {}, but of {}",
                self.method,
                methods.join(", ")
            ))),
        }
    }

    fn method(&self, class_weight: ClassWeight, utility: Matrix, cost: Matrix) -> Result<Box<dyn Estimator>, Failure> {
        let c = self.c.unwrap_or(Common::default().c);
        let mut method: Box<dyn Estimator> = match self.method.as_str() {
            "lq" => Box::new(self.lq_alone(cost)?),
            "centroid" => Box::new(Centroid::new(c).shift(self.shift.unwrap_or_default())),
            "loo" => Box::new(LeaveOneOut::new().factor(self.factor.unwrap_or(LeaveOneOut::new().factor))),
            _ => self.tunable_alone(utility, cost)?,
        };
        self.fill(method.common_mut(), class_weight)?;
        Ok(method)
    }

    /// A method that a search can run over, with its own parameters.
    fn tunable_alone(&self, utility: Matrix, cost: Matrix) -> Result<Box<dyn Tunable>, Failure> {
        let c = self.c.unwrap_or(Common::default().c);
        Ok(match self.method.as_str() {
            "reh" | "rod" => {
                let mut ablation = Ablation::new(AblationMethod::from_name(&self.method)?, c).refine(!self.no_refine);
                ablation.inlier_fraction = self.inlier_fraction.unwrap_or_default();
                Box::new(ablation)
            }
            "capped" => {
                let mut capped = Capped::new(c).cap(self.cap.unwrap_or_default());
                capped.power = self.power.unwrap_or(capped.power);
                capped.cap_fraction = self.cap_fraction.unwrap_or(capped.cap_fraction);
                capped.loss = self.loss.clone().unwrap_or(capped.loss);
                capped.solver = self.solver.clone().unwrap_or(capped.solver);
                Box::new(capped)
            }
            _ => {
                let mut truncated = Truncated::new(c).global_search(self.global_search);
                truncated.truncation = self.truncation.unwrap_or_default();
                truncated.loss = named(&self.loss, Loss::from_name)?.unwrap_or(truncated.loss);
                truncated.penalty = named(&self.penalty, Penalty::from_name)?.unwrap_or(truncated.penalty);
                truncated.q = self.q.unwrap_or(truncated.q);
                truncated.cost_form = named(&self.cost_form, CostForm::from_name)?.unwrap_or(truncated.cost_form);
                truncated.utility_baseline =
                    named(&self.utility_baseline, Baseline::from_name)?.unwrap_or(truncated.utility_baseline);
                truncated.probability =
                    named(&self.probability, Probability::from_name)?.unwrap_or(truncated.probability);
                (truncated.utility, truncated.cost) = (utility, cost);
                truncated.solver = self.solver.clone().unwrap_or(truncated.solver);
                Box::new(truncated)
            }
        })
    }

    /// The method and its parameters for a search, for data with these labels.
    pub fn tunable(&self, labels: &Labels) -> Result<Box<dyn Tunable>, Failure> {
        let (utility, cost) = self.payoffs(labels)?;
        let mut method = self.tunable_alone(utility, cost)?;
        self.fill(method.common_mut(), self.class_weight(labels)?)?;
        Ok(method)
    }

    /// The L_q machine with its own parameters.
    fn lq_alone(&self, cost: Matrix) -> Result<Lq, Failure> {
        let mut lq = Lq::new(self.c.unwrap_or(Common::default().c));
        lq.q = self.q.unwrap_or(lq.q);
        lq.cost = cost;
        lq.feature_map = named(&self.feature_map, FeatureMap::from_name)?.unwrap_or(lq.feature_map);
        lq.solver = self.solver.clone().unwrap_or(lq.solver);
        Ok(lq)
    }

    /// The L_q machine and its parameters, for data with these labels.
    pub fn lq(&self, labels: &Labels) -> Result<Lq, Failure> {
        let read = |path: &PathBuf| io::read_cost(path, labels.classes());
        let mut lq = self.lq_alone(self.cost.as_ref().map(read).transpose()?)?;
        self.fill(&mut lq.common, self.class_weight(labels)?)?;
        Ok(lq)
    }

    /// The parameters that all methods share.
    fn fill(&self, common: &mut Common, class_weight: ClassWeight) -> Result<(), Failure> {
        if let Some(kernel) = &self.kernel {
            common.kernel = Kernel::from_name(kernel, self.gamma, self.degree, self.coef0)?;
        } else if !matches!(common.kernel, Kernel::Linear) {
            common.kernel = Kernel::rbf(self.gamma);
        }
        common.class_weight = class_weight;
        common.fit_intercept = self.fit_intercept.unwrap_or(common.fit_intercept) && !self.no_intercept;
        let relaxed = matches!(self.method.as_str(), "reh" | "rod");
        let usual = if relaxed && common.fit_intercept { Ablation::TOL_WITH_INTERCEPT } else { common.tol };
        common.tol = self.tol.unwrap_or(usual);
        common.max_iter = self.max_iter.unwrap_or(common.max_iter);
        common.cache_size = self.cache_size;
        common.random_state = self.random_state;
        common.threads = self.n_jobs.and_then(threads);
        Ok(())
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

/// What a name given stands for.
fn named<T>(name: &Option<String>, find: impl Fn(&str) -> outlast::Result<T>) -> Result<Option<T>, Failure> {
    Ok(name.as_deref().map(find).transpose()?)
}

fn methods() -> Vec<PossibleValue> {
    [
        ("truncated", "the loss is cut off; any number of classes jointly"),
        ("lq", "the penalty sum |w|^q, which selects variables; linear, any number of classes"),
        ("reh", "convex relaxation of the hinge cut off at 0, with a bound of the global optimum"),
        ("rod", "convex relaxation of the hinge over a share of the rows"),
        ("centroid", "less margin is asked of rows far from the centre of their class"),
        ("capped", "a power of the residuals, capped; a function for each class"),
        ("loo", "leave-one-out machine: a row's own term does not help its own loss"),
    ]
    .map(|(name, help)| PossibleValue::new(name).help(help))
    .to_vec()
}

/// Of either method; which has which is checked with the other parameters.
fn loss_names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = outlast::problem::loss::ALL.iter().map(|loss| loss.name()).collect();
    let more = outlast::problem::concave::ALL.iter().map(|form| form.name());
    names.extend(more.filter(|name| !outlast::problem::loss::ALL.iter().any(|loss| loss.name() == *name)));
    names
}

fn penalties() -> Vec<PossibleValue> {
    Penalty::ALL.iter().map(|penalty| PossibleValue::new(penalty.name()).help(penalty.about())).collect()
}

fn feature_maps() -> Vec<PossibleValue> {
    FeatureMap::ALL.iter().map(|map| PossibleValue::new(map.name()).help(map.about())).collect()
}

fn cost_forms() -> Vec<PossibleValue> {
    CostForm::ALL.iter().map(|form| PossibleValue::new(form.name()).help(form.about())).collect()
}

fn baselines() -> Vec<PossibleValue> {
    Baseline::ALL.iter().map(|baseline| PossibleValue::new(baseline.name()).help(baseline.about())).collect()
}

fn probabilities() -> Vec<PossibleValue> {
    Probability::ALL.iter().map(|way| PossibleValue::new(way.name()).help(way.about())).collect()
}

pub(super) fn truncation(text: &str) -> Result<Truncation, String> {
    match text {
        "auto" => Ok(Truncation::Auto),
        "none" => Ok(Truncation::Off),
        _ => match text.parse::<f64>() {
            Ok(value) if value.is_finite() && value <= 0.0 => Ok(Truncation::At(value)),
            _ => Err("must be a number <= 0, auto or none".to_string()),
        },
    }
}

fn inliers(text: &str) -> Result<Inliers, String> {
    let wrong = || format!("must be a number in (0, 1] or one of {}", Inliers::NAMES.join(", "));
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(Inliers::Given(share)),
        Ok(_) => Err(wrong()),
        Err(_) => Inliers::from_name(text).map_err(|_| wrong()),
    }
}

fn cap(text: &str) -> Result<Cap, String> {
    let wrong = || "must be a number > 0, auto, cv or none".to_string();
    match text.parse::<f64>() {
        Ok(cap) if cap > 0.0 => Ok(Cap::At(cap)),
        Ok(_) => Err(wrong()),
        Err(_) => Cap::from_name(text).map_err(|_| wrong()),
    }
}

fn shift(text: &str) -> Result<Shift, String> {
    match text.parse::<f64>() {
        _ if text == "auto" => Ok(Shift::Auto),
        Ok(shift) if shift.is_finite() && shift >= 0.0 => Ok(Shift::By(shift)),
        _ => Err("must be a number >= 0 or auto".to_string()),
    }
}

pub(super) fn gamma(text: &str) -> Result<Gamma, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(Gamma::Value(value)),
        Ok(_) => Err("must be a finite number > 0".to_string()),
        Err(_) => {
            Gamma::from_name(text).map_err(|_| format!("must be a number > 0 or one of {}", Gamma::NAMES.join(", ")))
        }
    }
}

pub(super) fn jobs(text: &str) -> Result<i64, String> {
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
