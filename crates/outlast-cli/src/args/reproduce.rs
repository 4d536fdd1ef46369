//! Options of `outlast reproduce`.

use super::OutputArgs;
use clap::Args;
use std::path::PathBuf;

pub const EXAMPLES: &str = "Examples:
  outlast reproduce list                           every name, with its replications and its cost
  outlast reproduce rsvm-table1                    with as many replications as the paper
  outlast reproduce rsvm-table1 --reps 10          fewer: quicker, and wider standard errors
  outlast reproduce all --data sets --out results  everything; real data are read from a folder of yours

For each name there are a CSV file of every replication, a page with a table (paper, here, standard error, verdict), the same
as JSON, and the figures. A printed mean agrees when it lies within two joint standard errors of ours, plus its rounding; where
the paper prints no standard deviation, ours stands in for it.

Interrupted, the same command goes on where it stopped, with the results of an uninterrupted run; more --reps add to what is there.
Every replication has random numbers of its own, so that results do not depend on the number of threads.";

/// Arguments of `outlast reproduce`.
#[derive(Args)]
pub struct ReproduceArgs {
    /// Names from the list; `all` for every one, `list` to print them
    #[arg(value_name = "NAME", default_value = "list")]
    pub names: Vec<String>,
    /// Replications [default: the paper's]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub reps: Option<u32>,
    /// Seed of the random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Threads, each running replications of its own [default: all cores]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Folder of the real data sets, as CSV; what needs others is skipped, with a line on where the public set comes from
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Folder for the results; it is made if it is not there
    #[arg(long, value_name = "FOLDER", default_value = "reproduction")]
    pub out: PathBuf,
    #[command(flatten)]
    pub show: OutputArgs,
}
