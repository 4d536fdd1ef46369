//! Table 2: example 4, three classes in the plane.

use super::examples::{fourth, nearest};
use super::{MACHINES, VALUES, ends, less_than_both, machines, notes, records, tuned};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit};
use crate::lines::Row;
use crate::papers;
use crate::report::Report;
use crate::verdict::{Printed, Sample};
use outlast::{Design, FeatureMap, Result};

/// The experiment.
pub struct Triangle;

const ABOUT: About = About {
    name: "lq-table2",
    paper: &papers::LQ,
    what: "example 4, three normal groups: errors of three penalties",
    reps: Reps::Printed(100),
    revision: 2,
    seconds: 0.16,
};

const TRAIN: usize = 100;
const TEST: usize = 1000;
const BAYES: &str = "Bayes";

/// Errors with their standard errors, by machine.
const PRINTED: [[&str; 2]; 3] = [["0.2246", "0.0053"], ["0.2214", "0.0048"], ["0.2155", "0.0040"]];

impl Experiment for Triangle {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting::new("example 4")]
    }

    fn labels(&self) -> &'static [&'static str] {
        &["method"]
    }

    fn values(&self) -> &'static [&'static str] {
        &VALUES
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        let counts = [TRAIN, TRAIN, TEST].map(|rows| unit.rows(rows));
        let mut draw = |rows| fourth(rows, &mut unit.random);
        let (train, tune, test) = (draw(counts[0])?, draw(counts[1])?, draw(counts[2])?);
        let choice = tuned(&train, &tune, FeatureMap::Identity, &unit)?;
        let mut all = records(&machines(&choice), &train, &test, &[0, 1]);
        let n = test.x.rows();
        let missed = (0..n).filter(|&row| nearest(test.x.row(row)) != test.y.codes()[row]).count();
        let nothing = f64::NAN;
        all.push(Record::new([BAYES], [missed as f64 / n as f64, 2.0, 1.0, nothing, nothing, nothing]));
        Ok(all)
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let mut report = Report { notes: notes(), ..Report::default() };
        let of = |machine: &str, value: &str| Sample::of(&results.values(0, &[machine], value));
        let bayes = Printed::new("0.1845", ABOUT.reps.count()).error("0.0013");
        report.rows.push(Row::new("Bayes rule: error", Some(bayes), of(BAYES, "error"), 4));
        for (machine, [error, standard_error]) in MACHINES.iter().zip(PRINTED) {
            let printed = Printed::new(error, ABOUT.reps.count()).error(standard_error);
            report.rows.push(Row::new(format!("{machine}: error"), Some(printed), of(machine, "error"), 4));
            let printed = Printed::new("2", ABOUT.reps.count()).deviation("0");
            report.rows.push(Row::new(format!("{machine}: model size"), Some(printed), of(machine, "size"), 2));
        }
        let printed = Printed::new("0.783", ABOUT.reps.count());
        report.rows.push(Row::new("Lq: q chosen", Some(printed), of("Lq", "q"), 3));
        report.statements = less_than_both(results, 0, "");
        report.notes.push(ends(results));
        report.notes.push(
            "The text calls the numbers in brackets standard deviations; .0013 for the Bayes rule on 1,000 rows can only be the standard error of 100 \
             replications, and so they are read here."
                .to_string(),
        );
        Ok(report)
    }
}
