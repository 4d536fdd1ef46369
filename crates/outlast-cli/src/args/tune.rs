//! Options of `outlast tune`.

use super::{DataArgs, MethodArgs, OutputArgs};
use clap::Args;
use clap::builder::PossibleValuesParser;
use outlast::Gamma;
use outlast::select::tune::{DEFAULT_CS, Rule, Setting, Tune};
use std::path::PathBuf;

pub const EXAMPLES: &str = "Examples:
  outlast tune data.csv -o model.outlast                              C and the width of an rbf kernel; most need no more
  outlast tune data.csv --truncations auto,none,0 --nested 5           is the robust loss worth it? with an honest error
  outlast tune data.csv --kernel linear --penalties l1,adaptive_l1     selects columns
  outlast tune data.csv --method capped --ps 1,2 --cap-fractions 0,0.1,0.2
  outlast tune data.csv --method rod --inlier-fractions 0.8,0.9,1
  outlast tune train.csv --tuning tune.csv -o model.outlast            choose by rows of their own
  outlast tune data.csv --cost cost.csv --plot grid.svg --grid grid.csv     by mean cost; the whole grid, to look at and to work with
  outlast tune data.csv --method lq --cs 0.01,0.1,1 --qs 0.5,1 --cv 10

Every point of the grid is judged on rows that its fit has not seen. The one with the least mean error is fitted to all rows and written;
--rule one_se takes the smallest C within one standard error of it (lq: the fewest columns, then the smallest C). Columns are brought to mean 0
and variance 1 as part of the model, by the training rows of each split: predict takes columns as they come. Points that are clearly behind
are given up on the way; --halving compares them on few rows first (lq solves all points of a split together). The error shown is that of the best of many and so a little optimistic;
--nested FOLDS repeats the whole search without each of so many parts and is not. Ctrl-C keeps the best so far.";

/// Arguments of `outlast tune`.
#[derive(Args)]
pub struct TuneArgs {
    /// Training data: CSV or LIBSVM text, plain or gzipped, or Parquet; - is standard input
    #[arg(value_name = "DATA")]
    pub data: PathBuf,
    /// Write the model to this file (all of it, or none); - is standard output
    #[arg(short, long, value_name = "MODEL")]
    pub output: Option<PathBuf>,
    /// Values of C, separated by commas, or how many: evenly from 0.01 to 100, for lq by the data [default: 9, for lq 20, for reh
    /// and rod 0.01,0.1,1,10]
    #[arg(long, value_name = "NUMBERS|COUNT", value_parser = values, help_heading = "Grid")]
    pub cs: Option<Values>,
    /// Kernel widths: numbers, or rules by the training rows of each split (scale, auto, q1, median, q3) [default: 1/4, 1 and 4 times scale]
    #[arg(long, value_name = "VALUES", value_delimiter = ',', value_parser = setting, allow_negative_numbers = true, help_heading = "Grid")]
    pub gammas: Option<Vec<Setting>>,
    /// Truncations of the loss: numbers <= 0, auto, none [default: auto]
    #[arg(long, value_name = "VALUES", value_delimiter = ',', value_parser = setting, allow_negative_numbers = true, help_heading = "Grid")]
    pub truncations: Option<Vec<Setting>>,
    /// Penalties: l2, l1, adaptive_l1, lq [default: l2]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = setting, help_heading = "Grid")]
    pub penalties: Option<Vec<Setting>>,
    /// Values of q, for lq and for --penalties lq [default: 0.3,0.5,0.75,1,1.5,2 for lq, else 0.5]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', allow_negative_numbers = true, help_heading = "Grid")]
    pub qs: Option<Vec<f64>>,
    /// Powers of the capped loss, in (0, 2] [default: 1]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = setting, allow_negative_numbers = true, help_heading = "Grid")]
    pub ps: Option<Vec<Setting>>,
    /// Caps of the capped loss: numbers > 0, none, auto, cv [default: auto]
    #[arg(long, value_name = "VALUES", value_delimiter = ',', value_parser = setting, allow_negative_numbers = true, help_heading = "Grid")]
    pub caps: Option<Vec<Setting>>,
    /// Shares of the rows that the cap auto leaves beyond it [default: 0,0.1,0.2]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = setting, allow_negative_numbers = true, help_heading = "Grid")]
    pub cap_fractions: Option<Vec<Setting>>,
    /// Shares of the rows' weight that rod keeps [default: 1,0.95,0.9,0.8,0.7]
    #[arg(long, value_name = "VALUES", value_delimiter = ',', value_parser = setting, allow_negative_numbers = true, help_heading = "Grid")]
    pub inlier_fractions: Option<Vec<Setting>>,
    /// Folds of the cross-validation
    #[arg(long, value_name = "FOLDS", default_value_t = 5, help_heading = "Search")]
    pub cv: usize,
    /// Hold out this share of the rows, once, instead of cross-validation
    #[arg(long, value_name = "SHARE", conflicts_with = "cv", help_heading = "Search")]
    pub holdout: Option<f64>,
    /// Choose by the error on this labelled data, with the same columns, instead of cross-validation
    #[arg(long, value_name = "DATA", conflicts_with_all = ["cv", "holdout", "nested"], help_heading = "Search")]
    pub tuning: Option<PathBuf>,
    /// Which point is taken: the one of least error, or that of the smallest C (lq: of the fewest columns) within one standard error of it
    #[arg(long, default_value = "best", value_parser = PossibleValuesParser::new(Rule::NAMES), help_heading = "Search")]
    pub rule: String,
    /// Leave the columns as they are
    #[arg(long, help_heading = "Search")]
    pub no_standardize: bool,
    /// Judge every point on every split
    #[arg(long, help_heading = "Search")]
    pub no_early_stopping: bool,
    /// Compare the points on a ninth of the rows first, the best third on a third, the best third of these on all
    #[arg(long, help_heading = "Search")]
    pub halving: bool,
    /// Repeat the whole search without each of so many parts of the rows, and report the error on them
    #[arg(long, value_name = "FOLDS", help_heading = "Search")]
    pub nested: Option<usize>,
    /// Make every fit of the search as exactly as the last one
    #[arg(long, help_heading = "Search")]
    pub exact: bool,
    /// Draw the error over C, with standard errors (for lq also the number of selected columns and the coefficients), as SVG
    #[arg(long, value_name = "SVG")]
    pub plot: Option<PathBuf>,
    /// Write the whole grid as CSV; - is standard output
    #[arg(long, value_name = "CSV")]
    pub grid: Option<PathBuf>,
    /// Column of the sample weights: a name or a number
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true, help_heading = "Data")]
    pub weight_column: Option<String>,
    #[command(flatten)]
    pub input: DataArgs,
    #[command(flatten)]
    pub method: MethodArgs,
    #[command(flatten)]
    pub show: OutputArgs,
}

impl TuneArgs {
    /// The lists given, with the option and the parameter they are for.
    pub fn lists(&self) -> Vec<(&'static str, &'static str, Vec<Setting>)> {
        let numbers = |numbers: &Vec<f64>| numbers.iter().map(|&number| Setting::Number(number)).collect();
        let lists = [
            ("--gammas", "gamma", self.gammas.clone()),
            ("--truncations", "truncation", self.truncations.clone()),
            ("--penalties", "penalty", self.penalties.clone()),
            ("--qs", "q", self.qs.as_ref().map(numbers)),
            ("--ps", "p", self.ps.clone()),
            ("--caps", "cap", self.caps.clone()),
            ("--cap-fractions", "cap_fraction", self.cap_fractions.clone()),
            ("--inlier-fractions", "inlier_fraction", self.inlier_fractions.clone()),
        ];
        lists.into_iter().filter_map(|(option, name, values)| values.map(|values| (option, name, values))).collect()
    }

    /// What the search runs over, put into it. A single value given for fit is a list of one.
    pub fn fill(&self, mut tune: Tune) -> Tune {
        for (_, name, values) in self.lists() {
            tune = tune.over(name, values);
        }
        let cs: Option<Vec<f64>> = match &self.cs {
            Some(Values::Given(cs)) => Some(cs.clone()),
            Some(Values::Count(count)) => Some(evenly(*count)),
            None => None,
        };
        if let Some(cs) = cs {
            tune = tune.over("C", cs);
        }
        let width = match self.method.gamma {
            Gamma::Value(gamma) => Some(Setting::Number(gamma)),
            Gamma::Scale => None,
            Gamma::Auto => Some("auto".into()),
            Gamma::Q1 => Some("q1".into()),
            Gamma::Median => Some("median".into()),
            Gamma::Q3 => Some("q3".into()),
        };
        if let Some(width) = width.filter(|_| self.gammas.is_none()) {
            tune = tune.over("gamma", [width]);
        }
        if let Some(share) = self.method.cap_fraction.filter(|_| self.cap_fractions.is_none()) {
            tune = tune.over("cap_fraction", [share]);
        }
        tune
    }
}

/// So many numbers from the least to the largest default, evenly in the logarithm.
fn evenly(count: usize) -> Vec<f64> {
    let (first, last) = (DEFAULT_CS[0], DEFAULT_CS[DEFAULT_CS.len() - 1]);
    if count == DEFAULT_CS.len() {
        return DEFAULT_CS.to_vec();
    }
    let at = |step: usize| first * (last / first).powf(step as f64 / (count - 1).max(1) as f64);
    if count == 1 { vec![1.0] } else { (0..count).map(at).collect() }
}

/// Values, or how many.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    Count(usize),
    Given(Vec<f64>),
}

/// A whole number alone is a count, everything else a list.
fn values(text: &str) -> Result<Values, String> {
    if let Ok(count) = text.parse::<usize>() {
        return match count {
            1..=10_000 => Ok(Values::Count(count)),
            _ => Err("must be from 1 to 10000 if it is a count".to_string()),
        };
    }
    let number = |part: &str| part.trim().parse::<f64>().map_err(|_| format!("{:?} is not a number", part.trim()));
    text.split(',').filter(|part| !part.trim().is_empty()).map(number).collect::<Result<_, _>>().map(Values::Given)
}

/// A number, a name, or none.
fn setting(text: &str) -> Result<Setting, String> {
    match (text.trim(), text.trim().parse::<f64>()) {
        ("", _) => Err("a value is missing".to_string()),
        ("none", _) => Ok(Setting::Nothing),
        (_, Ok(number)) => Ok(Setting::Number(number)),
        (name, Err(_)) => Ok(name.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_counts_and_a_list_lists() {
        assert_eq!(values("7"), Ok(Values::Count(7)));
        assert_eq!(values("1.0"), Ok(Values::Given(vec![1.0])));
        assert_eq!(values("0.1, 1,"), Ok(Values::Given(vec![0.1, 1.0])));
        assert!(values("0").is_err() && values("a,1").is_err());
        assert_eq!(setting("none"), Ok(Setting::Nothing));
        assert_eq!(setting(" -0.5"), Ok(Setting::Number(-0.5)));
        assert_eq!(setting("q1"), Ok("q1".into()));
        let three = evenly(3);
        assert!(three.iter().zip([0.01, 1.0, 100.0]).all(|(a, b)| (a / b - 1.0).abs() < 1e-12), "{three:?}");
    }
}
