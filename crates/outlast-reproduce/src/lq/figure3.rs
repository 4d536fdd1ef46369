//! Figure 3: example 2, test error as noise columns are added, for 20, 40, 70 and 100 training rows.

use super::examples::second;
use super::{LOOKS, MACHINES, TEST, VALUES, ends, less_than_both, machines, notes, records, shown, tuned};
use crate::draw::{Axis, Figure, Panel, with_intervals};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit, less};
use crate::lines::Statement;
use crate::papers;
use crate::report::Report;
use crate::verdict::{Sample, Verdict};
use outlast::{FeatureMap, Result};

/// The experiment.
pub struct Sizes;

const ABOUT: About = About {
    name: "lq-figure3",
    paper: &papers::LQ,
    what: "example 2: test error as noise columns are added, four sample sizes",
    reps: Reps::Printed(100),
    revision: 2,
    seconds: 2.7,
};

const ROWS: [usize; 4] = [20, 40, 70, 100];
const NOISE: [usize; 5] = [0, 6, 12, 24, 48];

fn cases() -> Vec<(usize, usize)> {
    ROWS.iter().flat_map(|&rows| NOISE.map(|noise| (rows, noise))).collect()
}

impl Experiment for Sizes {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        cases().iter().map(|(rows, noise)| Setting::new(format!("n={rows} noise={noise}"))).collect()
    }

    fn labels(&self) -> &'static [&'static str] {
        &["method"]
    }

    fn values(&self) -> &'static [&'static str] {
        &VALUES
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        let (rows, noise) = cases()[unit.setting];
        let test = unit.rows(TEST);
        let mut draw = |rows| second(rows, noise, &mut unit.random);
        // a sample of one class alone is drawn again
        let mut both = |rows: usize| loop {
            let sample = draw(rows)?;
            if sample.y.counts().iter().all(|&count| count > 0) {
                return Ok::<_, outlast::Error>(sample);
            }
        };
        let (train, tune, test) = (both(rows)?, both(rows)?, both(test)?);
        let choice = tuned(&train, &tune, FeatureMap::Identity, &unit)?;
        Ok(records(&machines(&choice), &train, &test, &[0, 1, 2, 3, 4, 5]))
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let mut report = Report { notes: notes(), ..Report::default() };
        let mut sizes = Vec::new();
        for (setting, (rows, noise)) in cases().into_iter().enumerate() {
            let name = format!("n = {rows}, {noise} noise columns");
            for machine in MACHINES {
                report.rows.push(shown(results, setting, machine, "error", format!("{name}, {machine}: error"), 4));
            }
            report.rows.push(shown(results, setting, "Lq", "size", format!("{name}, Lq: model size"), 2));
            sizes.push(Sample::of(&results.values(setting, &["Lq"], "size")).mean);
            report.statements.extend(less_than_both(results, setting, &format!("{name}: ")));
        }
        growth(&mut report, results);
        one_or_two(&mut report, results);
        let low = sizes.iter().copied().fold(f64::INFINITY, f64::min);
        let high = sizes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        report.statements.push(Statement::exact(
            "L_q selects 5 to 9 variables whatever n and the noise (means, rounded)",
            low.round() >= 5.0 && high.round() <= 9.0,
            format!("from {low:.2} to {high:.2}"),
        ));
        report.notes.extend([
            "In print the second group of columns is x_i = y N(i - 3, 1); x_i ~ y N(i - 3, 1) for i = 4, 5, 6 is meant. N(0, 20) is read as variance 20.".to_string(),
            "\"Clearly, the L_q SVM performs the best compared to the other two methods in this example\" is judged at every n and every number of noise columns."
                .to_string(),
            "Which numbers of noise columns are drawn is not printed, but for the last, 48.".to_string(),
            ends(results),
        ]);
        report.figures = vec![(String::new(), figure(results))];
        Ok(report)
    }
}

/// The errors of a machine for so many rows and noise columns.
fn errors(results: &Results, rows: usize, noise: usize, machine: &str) -> Vec<f64> {
    let setting = cases().iter().position(|case| *case == (rows, noise));
    setting.map_or_else(Vec::new, |setting| results.values(setting, &[machine], "error"))
}

/// As noise columns are added all errors increase, that of L_q the slowest; as rows are added it improves the fastest.
fn growth(report: &mut Report, results: &Results) {
    let grown =
        |rows: usize, machine: &str| less(&errors(results, rows, 48, machine), &errors(results, rows, 0, machine));
    for rows in ROWS {
        for (machine, (title, _)) in MACHINES.iter().zip(LOOKS) {
            let text = format!("n = {rows}: the error of {title} increases from 0 to 48 noise columns");
            report.statements.push(Statement::difference(text, &grown(rows, machine), 4));
        }
        for (machine, (title, _)) in MACHINES.iter().zip(LOOKS).take(2) {
            let text = format!("n = {rows}: the error of L_q increases less than that of {title}");
            report.statements.push(Statement::difference(text, &less(&grown(rows, machine), &grown(rows, "Lq")), 4));
        }
    }
    let fallen = |machine: &str| less(&errors(results, 20, 48, machine), &errors(results, 100, 48, machine));
    for (machine, (title, _)) in MACHINES.iter().zip(LOOKS).take(2) {
        let text = format!("48 noise columns: from n = 20 to 100 L_q improves more than {title}");
        report.statements.push(Statement::difference(text, &less(&fallen("Lq"), &fallen(machine)), 4));
    }
}

/// L_1 against L_2: better for n = 70 and 100, sometimes worse for n = 20 and 40 even with many noise columns.
fn one_or_two(report: &mut Report, results: &Results) {
    let gain =
        |rows: usize, noise: usize| less(&errors(results, rows, noise, "L2"), &errors(results, rows, noise, "L1"));
    for rows in [70, 100] {
        for noise in NOISE {
            let statement = Statement::difference(
                format!("n = {rows}, {noise} noise columns: L_1 errs less than L_2"),
                &gain(rows, noise),
                4,
            );
            if noise == 48 { report.statements.push(statement) } else { report.own.push(statement) }
        }
    }
    let cases = [20, 40].map(|rows| [12, 24, 48].map(|noise| (rows, noise))).concat();
    let worse = cases
        .iter()
        .filter(|(rows, noise)| Verdict::of_difference(&Sample::of(&gain(*rows, *noise))) == Verdict::Fails);
    let worse: Vec<String> = worse.map(|(rows, noise)| format!("n = {rows} and {noise}")).collect();
    let here = if worse.is_empty() { "never".to_string() } else { worse.join(", ") };
    let text = "n = 20 and 40: L_2 sometimes outperforms L_1 with 12, 24 or 48 noise columns";
    report.statements.push(Statement::exact(text, !worse.is_empty(), here));
}

fn figure(results: &Results) -> String {
    let all = cases();
    let panel = |&rows: &usize| {
        let marks = MACHINES.iter().zip(LOOKS).flat_map(|(machine, (_, look))| {
            let settings = all.iter().enumerate().filter(|(_, case)| case.0 == rows);
            let points: Vec<(f64, Sample)> = settings
                .map(|(setting, case)| (case.1 as f64, Sample::of(&results.values(setting, &[machine], "error"))))
                .collect();
            with_intervals(&points, look)
        });
        Panel {
            title: format!("n = {rows}"),
            x: Axis::linear("noise columns"),
            y: Axis::linear("test error"),
            marks: marks.collect(),
        }
    };
    let panels = ROWS.iter().map(panel).collect();
    Figure::new("Example 2: test error as noise columns are added", 2, panels).lines(LOOKS).draw()
}
