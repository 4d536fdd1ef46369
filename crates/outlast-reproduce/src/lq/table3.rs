//! Table 3: heart disease and balance scale; two thirds of the rows to train, C and q by five-fold cross-validation within them.

use super::{MACHINES, VALUES, base, ends, less_than_both, machines, notes, records, search};
use crate::data::DataSet;
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit};
use crate::lines::{Row, Statement};
use crate::papers;
use crate::report::Report;
use crate::verdict::{Printed, Sample};
use outlast::{Design, Result};

/// The experiment.
pub struct Real;

const ABOUT: About = About {
    name: "lq-table3",
    paper: &papers::LQ,
    what: "heart disease and balance scale: errors of three penalties",
    reps: Reps::Printed(10),
    revision: 4,
    seconds: 4.8,
};

const HEART: [DataSet; 1] = [DataSet {
    name: "heart",
    source: "the UCI Machine Learning Repository, Statlog (Heart)",
    columns: 13,
    classes: &[1, 2],
}];
const BALANCE: [DataSet; 1] = [DataSet {
    name: "balance",
    source: "the UCI Machine Learning Repository, Balance Scale",
    columns: 4,
    classes: &[1, 2, 3],
}];

/// By data set and machine: error and standard deviation; then the mean q.
const PRINTED: [([[&str; 2]; 3], &str); 2] = [
    ([[".170", ".032"], [".166", ".033"], [".160", ".018"]], "1.29"),
    ([[".124", ".021"], [".123", ".016"], [".123", ".025"]], "1.67"),
];

const NAMES: [&str; 2] = ["heart", "balance"];

impl Experiment for Real {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting::on(NAMES[0], &HEART), Setting::on(NAMES[1], &BALANCE)]
    }

    fn labels(&self) -> &'static [&'static str] {
        &["method"]
    }

    fn values(&self) -> &'static [&'static str] {
        &VALUES
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        let set = [&HEART[0], &BALANCE[0]][unit.setting];
        let all = unit.data.get(set)?.standardized()?;
        let order = unit.random.choose(all.x.rows(), all.x.rows());
        let (train, test) = order.split_at(2 * order.len() / 3);
        let (train, test) = (all.some(train)?, all.some(test)?);
        let base = base().random_state(unit.random.below(1 << 30) as u64);
        let choice = search(train.x.rows(), &unit, base).fit_with(&train.x, &train.y, &unit.request())?;
        Ok(records(&machines(&choice), &train, &test, &[]))
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let mut report = Report { notes: notes(), ..Report::default() };
        for (setting, (name, (errors, q))) in NAMES.iter().zip(PRINTED).enumerate().filter(|(at, _)| results.has(*at)) {
            for (machine, [error, deviation]) in MACHINES.iter().zip(errors) {
                let here = Sample::of(&results.values(setting, &[machine], "error"));
                let printed = Printed::new(error, ABOUT.reps.count()).deviation(deviation);
                report.rows.push(Row::new(format!("{name}, {machine}: error"), Some(printed), here, 4));
            }
            let here = Sample::of(&results.values(setting, &["Lq"], "q"));
            let printed = Printed::new(q, ABOUT.reps.count());
            report.rows.push(Row::new(format!("{name}, Lq: q chosen"), Some(printed), here, 3));
            for (machine, title) in [("L1", "L_1"), ("L2", "L_2")] {
                let differences = results.differences(setting, &[machine], &["Lq"], "error");
                let text = format!("{name}: L_q is as good as {title} or better");
                report.statements.push(Statement::at_least(text, &differences, 4));
            }
            report.own.extend(less_than_both(results, setting, &format!("{name}: ")));
        }
        report.notes.push(ends(results));
        report.notes.push(
            "Whether columns were scaled is not printed; here each has mean 0 and standard deviation 1 over all rows."
                .to_string(),
        );
        Ok(report)
    }
}
