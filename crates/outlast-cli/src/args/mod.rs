//! The command line: commands here, the groups of options they share in the files beside this.

pub mod audit;
mod data;
mod method;
pub mod reproduce;
pub mod tune;

pub use data::{DataArgs, StreamArgs};
pub use method::MethodArgs;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand};
use outlast::io::ExportFormat;
use std::path::PathBuf;

/// Support vector machines that outlast bad labels and outliers.
#[derive(Parser)]
#[command(
    name = "outlast",
    version,
    about = "Support vector machines that outlast bad labels and outliers",
    long_about = "Support vector machines that outlast bad labels and outliers.\n\n\
        An ordinary support vector machine lets one wrong label far from the boundary pull as hard as it likes. Here the \
        loss of a row is cut off (truncated): a row that lies too far on the wrong side stops pulling, and is reported \
        as an outlier.",
    after_help = "Start here:\n  outlast demo                                  see the difference on data with wrong labels\n  \
        outlast fit data.csv -o model.outlast         learn from a CSV file; --target names the labels\n  \
        outlast predict model.outlast new.csv         label new rows\n  \
        outlast evaluate model.outlast test.csv       compare with known labels\n  \
        outlast audit data.csv --html page.html       rank rows whose label looks wrong\n\n\
        Exit codes: 0 done, 1 finished with a finding you asked to fail on, 2 bad usage or bad input, 130 interrupted."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Learn a model from labelled data
    #[command(after_help = FIT_EXAMPLES)]
    Fit(Box<FitArgs>),
    /// Label new data with a model
    #[command(after_help = PREDICT_EXAMPLES)]
    Predict(PredictArgs),
    /// Compare a model's predictions with known labels
    #[command(after_help = EVALUATE_EXAMPLES)]
    Evaluate(EvaluateArgs),
    /// Choose parameters by cross-validation or on a tuning set, then learn the model
    #[command(after_help = tune::EXAMPLES)]
    Tune(Box<tune::TuneArgs>),
    /// Rank the rows whose label, or whose values, look wrong
    #[command(after_help = audit::EXAMPLES)]
    Audit(Box<audit::AuditArgs>),
    /// Keep, relabel or drop rows as decided on the page of an audit
    #[command(after_help = audit::APPLY_EXAMPLES)]
    ApplyDecisions(audit::ApplyArgs),
    /// Print kernel widths worth trying: the quartiles of the distances between the classes
    #[command(after_help = GAMMA_EXAMPLES)]
    Gamma(GammaArgs),
    /// Say how far a model may be from the global optimum of its problem
    #[command(after_help = CERTIFY_EXAMPLES)]
    Certify(CertifyArgs),
    /// Write a model in the form of another program
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Make the tables and figures of the papers again, beside the printed numbers
    #[command(after_help = reproduce::EXAMPLES)]
    Reproduce(reproduce::ReproduceArgs),
    /// Show what truncation does, on made-up data with wrong labels
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArgs),
}

const FIT_EXAMPLES: &str = "Examples:
  outlast fit data.csv -o model.outlast
  outlast fit data.csv --target species -C 10 --gamma 0.5 -o model.outlast
  outlast fit train.svm.gz --kernel linear -o model.outlast
  outlast fit data.csv --truncation none              the ordinary support vector machine
  outlast fit data.csv --utility utility.csv          decisions worth what the file says, any number of classes
  outlast fit data.csv --kernel linear --penalty l1   selects variables
  outlast fit data.csv --probability weighted         predict then shows the probability of each class
  outlast fit data.csv --method lq --q 0.5            selects fewer; see also outlast tune
  outlast fit data.csv --method reh                   convex relaxation, with a bound of the global optimum
  outlast fit small.csv --truncation 0 --global       look for the global optimum, and prove it if it can be
  outlast fit --stream part*.parquet --memory 512MB --kernel linear      data larger than memory
  outlast fit data.csv --outliers suspects.csv        every row with its margin, the worst are worth a look
  zcat data.csv.gz | outlast fit - --json             one JSON object for programs";

const PREDICT_EXAMPLES: &str = "Examples:
  outlast predict model.outlast new.csv
  outlast predict model.outlast new.csv -o predictions.csv
  outlast predict libsvm.model new.svm
  cat new.csv | outlast predict model.outlast - | head

The answer has one line per row: the predicted class, and the decision value (positive for the second class,
further from 0 the surer). With more than two classes there is a decision value for each, in a column of its name; the
largest wins. A model fitted with --probability weighted adds a column \"probability NAME\" for each class.

MODEL may also be a model file of LIBSVM; --features says how many there are, if more than it names. With more than two
classes it has a decision value for each pair, in a column \"A or B\", positive for A, and the pairs vote.";

const EVALUATE_EXAMPLES: &str = "Examples:
  outlast evaluate model.outlast test.csv
  outlast evaluate model.outlast test.csv --target species
  outlast evaluate model.outlast test.csv --fail-below 0.9     exit code 1 if the accuracy is lower

A model fitted with --utility or --cost also shows what its decisions are worth, or cost, on average.";

const GAMMA_EXAMPLES: &str = "Examples:
  outlast gamma data.csv
  outlast gamma data.csv --target species --json

`outlast fit --gamma q1`, median and q3 use the same numbers.";

const CERTIFY_EXAMPLES: &str = "Examples:
  outlast fit data.csv --kernel linear --truncation 0 --no-intercept -C 0.01 -o model.outlast
  outlast certify model.outlast data.csv
  outlast certify model.outlast data.csv --fail-above 0.05     exit code 1 if the gap may be larger

The model must have two classes, the hinge truncated at 0 (or method reh) and the l2 penalty; the data are those it was fitted
to. The bound is close for small C or classes that are nearly separable; for large C it falls towards 0 and says little.";

const EXPORT_EXAMPLES: &str = "Examples:
  outlast export model.outlast --format libsvm -o model.libsvm       svm-predict reads it
  outlast export model.outlast --format onnx -o model.onnx           input X, outputs label and scores, double precision
  outlast export model.outlast --format json -o - | jq .classes

LIBSVM takes models of two classes, LIBLINEAR linear ones. Both know whole numbers of 32 bits as classes only: others are numbered from 0,
and a note says which is which.";

const DEMO_EXAMPLES: &str = "Examples:
  outlast demo
  outlast demo --html audit.html
  outlast demo --seed 7 --flip 0.2 -o picture.svg";

/// How results are shown.
#[derive(Args, Clone)]
pub struct OutputArgs {
    /// Print one JSON object instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print no summary and no progress; errors and warnings still show
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

/// Arguments of `outlast fit`.
#[derive(Args)]
pub struct FitArgs {
    /// Training data: CSV or LIBSVM text, plain or gzipped, or Parquet; - is standard input. Several files only with --stream
    #[arg(value_name = "DATA", required = true)]
    pub data: Vec<PathBuf>,
    /// Write the model to this file (all of it, or none); - is standard output
    #[arg(short, long, value_name = "MODEL")]
    pub output: Option<PathBuf>,
    /// Write a CSV file with each row's margin, whether it is an outlier, and a score (larger = more suspect);
    /// - is standard output
    #[arg(long, value_name = "FILE")]
    pub outliers: Option<PathBuf>,
    /// Column of the sample weights: a name or a number
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true, help_heading = "Data")]
    pub weight_column: Option<String>,
    #[command(flatten)]
    pub input: DataArgs,
    #[command(flatten)]
    pub stream: StreamArgs,
    #[command(flatten)]
    pub method: MethodArgs,
    #[command(flatten)]
    pub show: OutputArgs,
}

/// Arguments of `outlast predict`.
#[derive(Args)]
pub struct PredictArgs {
    /// Model file written by `outlast fit`
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    /// Data to label; - is standard input. Columns go by name if model and data have names, else by position
    #[arg(value_name = "DATA")]
    pub data: PathBuf,
    /// Write the predictions to this file; - is standard output [default: standard output]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub input: DataArgs,
    #[command(flatten)]
    pub show: OutputArgs,
}

/// Arguments of `outlast evaluate`.
#[derive(Args)]
pub struct EvaluateArgs {
    /// Model file written by `outlast fit`
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    /// Labelled data; - is standard input
    #[arg(value_name = "DATA")]
    pub data: PathBuf,
    /// Exit with code 1 if the accuracy is below this share, from 0 to 1
    #[arg(long, value_name = "ACCURACY", value_parser = share)]
    pub fail_below: Option<f64>,
    #[command(flatten)]
    pub input: DataArgs,
    #[command(flatten)]
    pub show: OutputArgs,
}

/// Arguments of `outlast certify`.
#[derive(Args)]
pub struct CertifyArgs {
    /// Model file written by `outlast fit`
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    /// The data it was fitted to; - is standard input
    #[arg(value_name = "DATA")]
    pub data: PathBuf,
    /// Exit with code 1 if the gap may be larger than this share of the objective, from 0 to 1
    #[arg(long, value_name = "GAP", value_parser = share)]
    pub fail_above: Option<f64>,
    /// Column of the sample weights: a name or a number
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true, help_heading = "Data")]
    pub weight_column: Option<String>,
    #[command(flatten)]
    pub input: DataArgs,
    #[command(flatten)]
    pub show: OutputArgs,
}

/// Arguments of `outlast export`.
#[derive(Args)]
pub struct ExportArgs {
    /// Model file written by `outlast fit`
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    /// The form
    #[arg(long, value_parser = PossibleValuesParser::new(export_formats()))]
    pub format: String,
    /// Write to this file (all of it, or none); - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub show: OutputArgs,
}

/// Arguments of `outlast gamma`.
#[derive(Args)]
pub struct GammaArgs {
    /// Labelled data: CSV or LIBSVM text, plain or gzipped, or Parquet; - is standard input
    #[arg(value_name = "DATA")]
    pub data: PathBuf,
    /// Column of the sample weights: a name or a number
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true, help_heading = "Data")]
    pub weight_column: Option<String>,
    #[command(flatten)]
    pub input: DataArgs,
    #[command(flatten)]
    pub show: OutputArgs,
}

/// Arguments of `outlast demo`.
#[derive(Args)]
pub struct DemoArgs {
    /// Where the picture goes; - is standard output
    #[arg(short, long, value_name = "SVG", default_value = "outlast-demo.svg")]
    pub output: PathBuf,
    /// Also audit the training data, and write the page of it to this file
    #[arg(long, value_name = "HTML")]
    pub html: Option<PathBuf>,
    /// Also write the data to this folder, as train.csv and test.csv; it is made if it is not there
    #[arg(long, value_name = "FOLDER")]
    pub save_data: Option<PathBuf>,
    /// Seed of the made-up data
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Training rows
    #[arg(long, value_name = "NUMBER", default_value_t = 300, value_parser = clap::value_parser!(u32).range(20..=20_000))]
    pub rows: u32,
    /// Share of the training labels that is flipped, from 0 to 0.4
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = flip_share)]
    pub flip: f64,
    #[command(flatten)]
    pub show: OutputArgs,
}

fn export_formats() -> Vec<PossibleValue> {
    ExportFormat::ALL.iter().map(|format| PossibleValue::new(format.name()).help(format.about())).collect()
}

fn share(text: &str) -> Result<f64, String> {
    in_range(text, 0.0, 1.0)
}

fn flip_share(text: &str) -> Result<f64, String> {
    in_range(text, 0.0, 0.4)
}

fn in_range(text: &str, low: f64, high: f64) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_string())?;
    if (low..=high).contains(&value) { Ok(value) } else { Err(format!("must lie from {low} to {high}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
