//! Options of `outlast tune`.

use super::{DataArgs, MethodArgs, OutputArgs};
use clap::Args;
use std::path::PathBuf;

pub const EXAMPLES: &str = "Examples:
  outlast tune data.csv --method lq -o model.outlast
  outlast tune data.csv --method lq --cs 0.01,0.1,1 --qs 0.5,1 --cv 10
  outlast tune train.csv --method lq --tuning tune.csv -o model.outlast      choose by rows of their own
  outlast tune data.csv --method lq --plot grid.svg --grid grid.csv          the whole grid, to look at and to work with

The pair with the least error is chosen, of several the one that selects the fewest columns, and fitted to all rows. Scale the
columns first: the penalty treats them alike.";

/// Arguments of `outlast tune`.
#[derive(Args)]
pub struct TuneArgs {
    /// Training data: CSV or LIBSVM text, plain or gzipped; - is standard input
    #[arg(value_name = "DATA")]
    pub data: PathBuf,
    /// Write the model to this file (all of it, or none); - is standard output
    #[arg(short, long, value_name = "MODEL")]
    pub output: Option<PathBuf>,
    /// Values of C, separated by commas, or how many the data are to choose
    #[arg(long, value_name = "NUMBERS|COUNT", default_value = "20", value_parser = values, help_heading = "Grid")]
    pub cs: Values,
    /// Values of q, separated by commas
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "0.3,0.5,0.75,1,1.5,2",
        allow_negative_numbers = true,
        help_heading = "Grid"
    )]
    pub qs: Vec<f64>,
    /// Folds of the cross-validation
    #[arg(long, value_name = "FOLDS", default_value_t = 5, help_heading = "Grid")]
    pub cv: usize,
    /// Choose by the error on this labelled data, with the same columns, instead of cross-validation
    #[arg(long, value_name = "DATA", conflicts_with = "cv", help_heading = "Grid")]
    pub tuning: Option<PathBuf>,
    /// Draw the error and the number of selected columns over the grid, and the coefficients along C, as SVG
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_counts_and_a_list_lists() {
        assert_eq!(values("7"), Ok(Values::Count(7)));
        assert_eq!(values("1.0"), Ok(Values::Given(vec![1.0])));
        assert_eq!(values("0.1, 1,"), Ok(Values::Given(vec![0.1, 1.0])));
        assert!(values("0").is_err() && values("a,1").is_err());
    }
}
