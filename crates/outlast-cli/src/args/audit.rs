//! Options of `outlast audit` and `outlast apply-decisions`.

use super::method::{gamma, jobs, truncation};
use super::{DataArgs, OutputArgs};
use clap::Args;
use clap::builder::PossibleValuesParser;
use outlast::{AuditKernel, Gamma, Truncation};
use std::path::PathBuf;

pub const EXAMPLES: &str = "Examples:
  outlast audit data.csv
  outlast audit data.csv --target species --csv suspects.csv --html suspects.html
  outlast audit data.csv --fail-above 0.95            exit code 1 if a row is that suspect, for pipelines
  outlast apply-decisions data.csv decisions.csv -o corrected.csv

Every row is judged by robust fits that were made without it. Its score is one minus the chance of the label it was given, a
little less where the rest is spread over several classes. Open the page of --html in a browser, mark rows as keep, relabel or drop, and
download the decisions.";

pub const APPLY_EXAMPLES: &str = "Examples:
  outlast apply-decisions data.csv decisions.csv -o corrected.csv
  outlast apply-decisions data.svm decisions.json -o -

The decisions are CSV with the columns row, decision and label, or a JSON list of objects with these members. Rows count from 1, the
header left out; the decision is keep, relabel or drop; the label is the new one of a row to relabel. Rows that are not named are
kept. Every byte but the new labels stays as it is; gzipped data are written unpacked.";

/// Arguments of `outlast audit`.
#[derive(Args)]
pub struct AuditArgs {
    /// Labelled data: CSV or LIBSVM text, plain or gzipped, or Parquet; - is standard input
    #[arg(value_name = "DATA")]
    pub data: PathBuf,
    /// Write the suspects to this CSV file, most suspect first; - is standard output. Text that a spreadsheet would take for a
    /// formula gets an apostrophe in front
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write a page to work with to this file: look, filter, decide, download; it needs no network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Suspects shown in the summary
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub top: usize,
    /// Exit with code 1 if the score of a suspect is above this, from 0 to 1
    #[arg(long, value_name = "SCORE", value_parser = super::share)]
    pub fail_above: Option<f64>,
    /// Folds of each cross-validation
    #[arg(long, value_name = "NUMBER", default_value_t = 5, help_heading = "Method")]
    pub folds: usize,
    /// How often the rows are split anew
    #[arg(long, value_name = "NUMBER", default_value_t = 3, help_heading = "Method")]
    pub repeats: usize,
    /// Kernels of the fits; what both say is pooled
    #[arg(long, default_value = "both", value_parser = PossibleValuesParser::new(AuditKernel::NAMES), help_heading = "Method")]
    pub kernel: String,
    /// Width of the rbf kernel, for columns of variance 1: a number > 0, scale, auto, q1, median or q3
    #[arg(long, value_name = "NUMBER|RULE", default_value = "scale", value_parser = gamma, allow_negative_numbers = true,
        help_heading = "Method")]
    pub gamma: Gamma,
    /// Weight of the losses [default: 0.1, 1 or 10 for each kernel, by the likelihood of labels held out]
    #[arg(
        short = 'C',
        long = "c",
        alias = "C",
        value_name = "NUMBER",
        allow_negative_numbers = true,
        help_heading = "Method"
    )]
    pub c: Option<f64>,
    /// Margin below which a row costs no more: a number <= 0, auto (-1), or none
    #[arg(long, value_name = "NUMBER|auto|none", default_value = "auto", value_parser = truncation, allow_negative_numbers = true,
        help_heading = "Method")]
    pub truncation: Truncation,
    /// Threads; -1 for all cores [default: all cores]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = jobs, help_heading = "Method")]
    pub n_jobs: Option<i64>,
    /// Seed of the splits
    #[arg(long, value_name = "NUMBER", default_value_t = 0, help_heading = "Method")]
    pub random_state: u64,
    #[command(flatten)]
    pub input: DataArgs,
    #[command(flatten)]
    pub show: OutputArgs,
}

/// Arguments of `outlast apply-decisions`.
#[derive(Args)]
pub struct ApplyArgs {
    /// The data that were audited; - is standard input
    #[arg(value_name = "DATA")]
    pub data: PathBuf,
    /// What was decided: CSV or JSON
    #[arg(value_name = "DECISIONS")]
    pub decisions: PathBuf,
    /// Write the corrected data to this file (all of it, or none); - is standard output
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    #[command(flatten)]
    pub input: DataArgs,
    #[command(flatten)]
    pub show: OutputArgs,
}
