//! Table 1: example 1, three columns of twenty count.

use super::examples::{COLUMNS, first, signal};
use super::{MACHINES, TEST, VALUES, less_than_both, machines, notes, records, tuned};
use crate::experiment::{About, Experiment, Record, Results, Setting, Unit};
use crate::papers;
use crate::report::Report;
use crate::verdict::{Printed, Row, Sample, Statement};
use outlast::{Design, FeatureMap, Result};

/// The experiment.
pub struct Noise;

const ABOUT: About = About {
    name: "lq-table1",
    paper: &papers::LQ,
    what: "example 1, seventeen noise columns: errors and model sizes of three penalties",
    reps: 100,
    seconds: 1.6,
};

pub const TRAIN: usize = 400;
const BAYES: &str = "Bayes";

/// Error and size, each with its standard deviation, by machine.
const PRINTED: [[&str; 4]; 3] = [
    ["0.2578", "0.0265", "11.79", "3.40"],
    ["0.2673", "0.0136", "19.97", "0.17"],
    ["0.2415", "0.0380", "5.28", "4.11"],
];

impl Experiment for Noise {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting::new("example 1")]
    }

    fn labels(&self) -> &'static [&'static str] {
        &["method"]
    }

    fn values(&self) -> &'static [&'static str] {
        &VALUES
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        let counts = [TRAIN, TRAIN, TEST].map(|rows| unit.rows(rows));
        let mut draw = |rows| first(rows, &mut unit.random);
        let (train, tune, test) = (draw(counts[0])?, draw(counts[1])?, draw(counts[2])?);
        let choice = tuned(&train, &tune, FeatureMap::Identity, &unit)?;
        let mut all = records(&machines(&choice), &train, &test, &[0, 1, 2]);
        let n = test.x.rows();
        let missed = (0..n).filter(|&row| u32::from(signal(test.x.row(row)) > 0.0) != test.y.codes()[row]).count();
        let nothing = f64::NAN;
        all.push(Record::new([BAYES], [missed as f64 / n as f64, 3.0, 1.0, nothing, nothing, nothing]));
        Ok(all)
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let mut report = Report { notes: notes(), ..Report::default() };
        let of = |machine: &str, value: &str| Sample::of(&results.values(0, &[machine], value));
        let bayes = Printed::new("0.2216", ABOUT.reps).deviation("0.0070");
        report.rows.push(Row::new("Bayes rule: error", Some(bayes), of(BAYES, "error"), 4));
        for (machine, [error, error_deviation, size, size_deviation]) in MACHINES.iter().zip(PRINTED) {
            let printed = Printed::new(error, ABOUT.reps).deviation(error_deviation);
            report.rows.push(Row::new(format!("{machine}: error"), Some(printed), of(machine, "error"), 4));
            let printed = Printed::new(size, ABOUT.reps).deviation(size_deviation);
            report.rows.push(Row::new(format!("{machine}: model size"), Some(printed), of(machine, "size"), 2));
        }
        let printed = Printed::new("0.4074", ABOUT.reps);
        report.rows.push(Row::new("Lq: q chosen", Some(printed), of("Lq", "q"), 4));
        report.statements = less_than_both(results, 0, "");
        let differences = results.differences(0, &["L2"], &["L1"], "error");
        report.statements.push(Statement::difference("L_1 errs less than L_2", &differences, 4));
        let differences = results.differences(0, &["L1"], &["Lq"], "size");
        report.statements.push(Statement::difference("L_q keeps fewer variables than L_1", &differences, 2));
        let kept: f64 = results.values(0, &["Lq"], "relevant_kept").iter().sum();
        report.statements.push(Statement::check(
            "L_q never misses any of the three important variables",
            kept == results.reps as f64,
            format!("{kept} of {} fits keep all three", results.reps),
        ));
        report.notes.extend([
            "In print the label is sign(f), f = 2 x_1 + 4 x_2 + 4 x_3 - 4.8, which would make the Bayes error 0, not .2216. Here P(y = 1) = 1 / (1 + exp(-1.101 \
             f)): a logistic label, with the factor that gives the printed Bayes error."
                .to_string(),
            format!("The level of this table and the size of the gain over L_1 are not reproduced: with {COLUMNS} columns and 400 rows all three machines come close to the Bayes rule."),
        ]);
        Ok(report)
    }
}
