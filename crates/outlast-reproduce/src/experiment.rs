//! What an experiment is: settings, replications of each, and what is made of all replications.

use crate::data::{DataFolder, DataSet};
use crate::papers::Paper;
use crate::random::Random;
use crate::report::Report;
use outlast::{Control, FitRequest, Result};
use std::collections::BTreeMap;

/// Most rows of a sample cut down.
const SMALL: usize = 60;

/// What the list says about an experiment.
#[derive(Debug)]
pub struct About {
    /// The name on the command line and of the files.
    pub name: &'static str,
    /// Where it is printed.
    pub paper: &'static Paper,
    /// One line.
    pub what: &'static str,
    /// Replications.
    pub reps: Reps,
    /// Raised whenever what a replication computes changes, so that replications of before are not mixed with those of after.
    pub revision: u32,
    /// Seconds of one core that one replication of all settings takes, measured.
    pub seconds: f64,
}

/// How many replications there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reps {
    /// As many as the paper says.
    Printed(usize),
    /// The paper does not say; so many here.
    NotPrinted(usize),
    /// The paper shows one data set; so many here, to have something to judge by. Figures show the first.
    OneShown(usize),
    /// Nothing is random.
    Exact,
}

impl Reps {
    /// Replications that are run unless others are asked for.
    pub fn count(self) -> usize {
        match self {
            Reps::Printed(count) | Reps::NotPrinted(count) | Reps::OneShown(count) => count,
            Reps::Exact => 1,
        }
    }

    /// What the paper says.
    pub fn printed(self) -> String {
        match self {
            Reps::Printed(count) => format!("the paper: {count}"),
            Reps::NotPrinted(_) => "the paper does not print how many".to_string(),
            Reps::OneShown(_) => "the paper shows one data set".to_string(),
            Reps::Exact => "nothing is random".to_string(),
        }
    }
}

/// One of the settings an experiment runs under: a unit of work for each replication.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Stands in the first column of the CSV file.
    pub name: String,
    /// Real data it needs; without them the setting is left out.
    pub data: &'static [DataSet],
}

impl Setting {
    /// A setting on made-up data.
    pub fn new(name: impl Into<String>) -> Setting {
        Setting { name: name.into(), data: &[] }
    }

    /// A setting on real data.
    pub fn on(name: impl Into<String>, data: &'static [DataSet]) -> Setting {
        Setting { name: name.into(), data }
    }
}

/// One line of the CSV file: texts that say of what, then numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// In the order of [`Experiment::labels`].
    pub labels: Vec<String>,
    /// In the order of [`Experiment::values`]. NaN is an empty field.
    pub values: Vec<f64>,
}

impl Record {
    /// A record.
    pub fn new<L: Into<String>>(labels: impl IntoIterator<Item = L>, values: impl Into<Vec<f64>>) -> Record {
        Record { labels: labels.into_iter().map(Into::into).collect(), values: values.into() }
    }
}

/// One replication under one setting, about to be run.
pub struct Unit<'a> {
    /// Position among [`Experiment::settings`].
    pub setting: usize,
    /// From 0.
    pub replication: usize,
    /// The unit's own stream.
    pub random: Random,
    /// Where real data are.
    pub data: &'a DataFolder,
    /// To be handed to every fit, so that Ctrl-C works.
    pub control: Control<'a>,
    /// Whether numbers of rows and grids are cut down, see [`Settings::small`](crate::Settings::small).
    pub small: bool,
}

impl<'a> Unit<'a> {
    /// A fit request under the unit's control.
    pub fn request(&self) -> FitRequest<'a> {
        FitRequest { control: self.control, ..FitRequest::default() }
    }

    /// A number of rows.
    pub fn rows(&self, count: usize) -> usize {
        if self.small { count.min(SMALL) } else { count }
    }

    /// A grid; a small one has two of its values.
    pub fn grid<T>(&self, mut values: Vec<T>) -> Vec<T> {
        if self.small {
            let middle = values.len() / 2;
            values.drain(..middle);
            values.truncate(2);
        }
        values
    }
}

/// An experiment of a paper.
pub trait Experiment: Sync {
    /// Name, paper, cost.
    fn about(&self) -> &'static About;

    /// What varies from one unit of work to another, other than chance.
    fn settings(&self) -> Vec<Setting>;

    /// Names of a record's texts.
    fn labels(&self) -> &'static [&'static str];

    /// Names of a record's numbers.
    fn values(&self) -> &'static [&'static str];

    /// Runs one replication under one setting.
    fn replicate(&self, unit: Unit) -> Result<Vec<Record>>;

    /// Judges all replications and draws. What a figure needs beyond the records is computed again, from the streams of the seed.
    fn report(&self, results: &Results) -> Result<Report>;
}

/// All replications of an experiment.
pub struct Results<'a> {
    /// Whose they are.
    pub experiment: &'a dyn Experiment,
    /// Replications asked for.
    pub reps: usize,
    /// The seed.
    pub seed: u64,
    /// Where real data are.
    pub data: &'a DataFolder,
    /// Interrupt.
    pub control: Control<'a>,
    /// As in [`Unit::small`].
    pub small: bool,
    /// Records by setting and replication. A setting whose data are missing has none.
    pub records: &'a BTreeMap<(usize, usize), Vec<Record>>,
}

impl<'a> Results<'a> {
    /// The unit of a setting and replication, to compute again what the records don't hold.
    pub fn unit(&self, setting: usize, replication: usize) -> Unit<'a> {
        Unit {
            setting,
            replication,
            random: Random::of(self.experiment.about().name, self.seed, setting, replication),
            data: self.data,
            control: self.control,
            small: self.small,
        }
    }

    /// A number's values over all replications, of the records with these texts.
    pub fn values(&self, setting: usize, labels: &[&str], value: &str) -> Vec<f64> {
        let column = self.column(value);
        let of_setting = self.records.range((setting, 0)..(setting, self.reps));
        let rows = of_setting.flat_map(|(_, records)| records).filter(|record| record.labels == labels);
        rows.map(|record| record.values[column]).collect()
    }

    /// a - b, replication by replication.
    pub fn differences(&self, setting: usize, a: &[&str], b: &[&str], value: &str) -> Vec<f64> {
        less(&self.values(setting, a, value), &self.values(setting, b, value))
    }

    /// How often what was chosen lies at either end of its grid, over all settings and the records kept by a filter.
    pub fn at_ends(&self, what: &str, column: &str, ends: [f64; 2], keep: impl Fn(&Record) -> bool) -> String {
        let at = self.column(column);
        let records = self.records.iter().filter(|((_, replication), _)| *replication < self.reps);
        let chosen: Vec<f64> = records
            .flat_map(|(_, records)| records)
            .filter(|record| keep(record))
            .map(|record| record.values[at])
            .collect();
        let share = |end: f64| {
            let close = chosen.iter().filter(|value| (*value / end - 1.0).abs() < 1e-6).count();
            100.0 * close as f64 / chosen.len() as f64
        };
        let (low, high) = (share(ends[0]), share(ends[1]));
        format!(
            "What was chosen of {what} lies at the lower end of its grid in {low:.0} % of the fits, at the upper end in {high:.0} %."
        )
    }

    fn column(&self, value: &str) -> usize {
        let column = self.experiment.values().iter().position(|name| *name == value);
        column.unwrap_or_else(|| panic!("{} has no value {value}", self.experiment.about().name))
    }

    /// Names of the settings that were not run.
    pub fn skipped(&self) -> Vec<String> {
        let settings = self.experiment.settings().into_iter().enumerate();
        settings.filter(|(at, _)| !self.has(*at)).map(|(_, setting)| setting.name).collect()
    }

    /// Whether a setting was run.
    pub fn has(&self, setting: usize) -> bool {
        self.records.range((setting, 0)..(setting, self.reps)).next().is_some()
    }
}

/// a - b, one by one.
pub fn less(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}
