//! Figure 4: example 3, a disc in the unit square, (x, x^2) as columns: test error and model size as noise columns are added.

use super::examples::third;
use super::{LOOKS, MACHINES, TEST, VALUES, ends, less_than_both, machines, notes, records, shown, tuned};
use crate::draw::{Axis, Figure, Panel, with_intervals};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit, less};
use crate::lines::{Row, Statement};
use crate::papers;
use crate::report::Report;
use crate::verdict::{Printed, Sample};
use outlast::{FeatureMap, Result};

/// The experiment.
pub struct Curved;

const ABOUT: About = About {
    name: "lq-figure4",
    paper: &papers::LQ,
    what: "example 3, columns and squares: test error and model size as noise columns are added",
    reps: Reps::Printed(100),
    revision: 2,
    seconds: 20.0,
};

pub const TRAIN: usize = 200;
const NOISE: [usize; 6] = [0, 20, 40, 60, 80, 100];

impl Experiment for Curved {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        NOISE.iter().map(|noise| Setting::new(format!("m={noise}"))).collect()
    }

    fn labels(&self) -> &'static [&'static str] {
        &["method"]
    }

    fn values(&self) -> &'static [&'static str] {
        &VALUES
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        // cut down, a tenth of the noise: the fits below 1 are what costs
        let noise = NOISE[unit.setting] / if unit.small { 10 } else { 1 };
        let counts = [TRAIN, TRAIN, TEST].map(|rows| unit.rows(rows));
        let mut draw = |rows| third(rows, noise, &mut unit.random);
        let (train, tune, test) = (draw(counts[0])?, draw(counts[1])?, draw(counts[2])?);
        let found = machines(&tuned(&train, &tune, FeatureMap::Squares, &unit)?);
        // x_1, x_2 and their squares, which stand after all columns
        Ok(records(&found, &train, &test, &[0, 1, noise + 2, noise + 3]))
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let mut report = Report { notes: notes(), ..Report::default() };
        let (mut kept, mut exponents) = (0.0, Vec::new());
        for (setting, noise) in NOISE.iter().enumerate() {
            for machine in MACHINES {
                for (value, what, decimals) in [("error", "error", 4), ("size", "model size", 2)] {
                    let what = format!("m = {noise}, {machine}: {what}");
                    report.rows.push(shown(results, setting, machine, value, what, decimals));
                }
            }
            report.own.extend(less_than_both(results, setting, &format!("m = {noise}: ")));
            if *noise > 0 {
                for (more, fewer, text) in [
                    ("L1", "Lq", "L_q keeps fewer variables than L_1"),
                    ("L2", "Lq", "L_q keeps fewer variables than L_2"),
                    ("L2", "L1", "L_1 keeps fewer variables than L_2"),
                ] {
                    let differences = results.differences(setting, &[more], &[fewer], "size");
                    report.statements.push(Statement::difference(format!("m = {noise}: {text}"), &differences, 2));
                }
            }
            kept += results.values(setting, &["Lq"], "relevant_kept").iter().sum::<f64>();
            exponents.extend(results.values(setting, &["Lq"], "q"));
        }
        let printed = Printed::new("0.25", ABOUT.reps.count() * NOISE.len());
        report.rows.push(Row::new("q chosen, all m", Some(printed), Sample::of(&exponents), 3));
        let error = |setting: usize, machine: &str| results.values(setting, &[machine], "error");
        let grown = |machine: &str| less(&error(NOISE.len() - 1, machine), &error(0, machine));
        for (machine, title) in [("L1", "L_1"), ("L2", "L_2")] {
            let text = format!("from m = 0 to 100 the error of {title} deteriorates");
            report.statements.push(Statement::difference(text, &grown(machine), 4));
            let text = format!("from m = 0 to 100 the error of L_q grows less than that of {title}");
            report.statements.push(Statement::difference(text, &less(&grown(machine), &grown("Lq")), 4));
        }
        let text = "L_q selects all important variables (x_1, x_1^2, x_2, x_2^2) in all replications";
        report.statements.push(Statement::always(text, kept as usize, NOISE.len() * results.reps));
        report.notes.push(ends(results));
        report.notes.extend([
            "The best possible error is .0942: half the area of the ring in which labels are drawn by a coin."
                .to_string(),
            "The paper prints a figure and, as the only number, \"the average selected q around 0.25\".".to_string(),
        ]);
        report.figures = vec![(String::new(), figure(results))];
        Ok(report)
    }
}

fn figure(results: &Results) -> String {
    let panel = |(value, label): (&str, &str)| {
        let marks = MACHINES.iter().zip(LOOKS).flat_map(|(machine, (_, look))| {
            let of = |setting: usize| Sample::of(&results.values(setting, &[machine], value));
            let points: Vec<(f64, Sample)> =
                NOISE.iter().enumerate().map(|(at, &noise)| (noise as f64, of(at))).collect();
            with_intervals(&points, look)
        });
        Panel { title: String::new(), x: Axis::linear("noise columns"), y: Axis::linear(label), marks: marks.collect() }
    };
    let panels = [("error", "test error"), ("size", "variables kept")].map(panel).to_vec();
    Figure::new("Example 3: errors and model sizes", 2, panels).lines(LOOKS).draw()
}
