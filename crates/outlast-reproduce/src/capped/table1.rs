//! Table 1: the data sets, counted.

use super::{SETS, settings};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit};
use crate::lines::Row;
use crate::papers;
use crate::report::Report;
use crate::verdict::{Printed, Sample};
use outlast::{Design, Result};

/// The experiment.
pub struct Sets;

const ABOUT: About = About {
    name: "capped-table1",
    paper: &papers::CAPPED,
    what: "the data sets, counted",
    reps: Reps::Exact,
    revision: 1,
    seconds: 0.5,
};

impl Experiment for Sets {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        settings()
    }

    fn labels(&self) -> &'static [&'static str] {
        &[]
    }

    fn values(&self) -> &'static [&'static str] {
        &["samples", "features", "classes"]
    }

    fn replicate(&self, unit: Unit) -> Result<Vec<Record>> {
        let rows = unit.data.get(&SETS[unit.setting].1[0])?;
        let counts = [rows.x.rows(), rows.x.cols(), rows.y.classes().len()].map(|count| count as f64);
        Ok(vec![Record::new([""; 0], counts)])
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let mut report = Report::default();
        for (setting, (name, data, rows)) in SETS.iter().enumerate().filter(|(at, _)| results.has(*at)) {
            let here = results.values(setting, &[], "samples").first().copied().unwrap_or(f64::NAN);
            let printed = Printed::new(&rows.to_string(), 0);
            report.rows.push(Row::new(format!("{name}: samples"), Some(printed), Sample::exact(here), 0));
            for (value, printed) in [("features", data[0].columns), ("classes", data[0].classes.len())] {
                let here = results.values(setting, &[], value).first().copied().unwrap_or(f64::NAN);
                let what = format!("{name}: {value} (the paper: {printed}; other files are refused)");
                report.rows.push(Row::new(what, None, Sample::exact(here), 0));
            }
        }
        report.notes = vec![
            "The text names seven sets (Abalone among them), the table six.".to_string(),
            "The columns of ALLAML as distributed already have mean 0 and standard deviation 1 over all rows, so that every split has seen the scale of its test rows."
                .to_string(),
        ];
        Ok(report)
    }
}
