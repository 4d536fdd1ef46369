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
    /// Replications in the paper; 1 for what has none.
    pub reps: usize,
    /// Seconds of one core that one replication of all settings takes, measured.
    pub seconds: f64,
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
        let column = self.experiment.values().iter().position(|name| *name == value);
        let column = column.unwrap_or_else(|| panic!("{} has no value {value}", self.experiment.about().name));
        let of_setting = self.records.range((setting, 0)..(setting, self.reps));
        let rows = of_setting.flat_map(|(_, records)| records).filter(|record| record.labels == labels);
        rows.map(|record| record.values[column]).collect()
    }

    /// a - b, replication by replication.
    pub fn differences(&self, setting: usize, a: &[&str], b: &[&str], value: &str) -> Vec<f64> {
        let (a, b) = (self.values(setting, a, value), self.values(setting, b, value));
        a.iter().zip(&b).map(|(a, b)| a - b).collect()
    }

    /// Whether a setting was run.
    pub fn has(&self, setting: usize) -> bool {
        self.records.range((setting, 0)..(setting, self.reps)).next().is_some()
    }
}
