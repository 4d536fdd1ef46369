//! Figure 3: example 2, test error as noise columns are added, for 20, 40, 70 and 100 training rows.

use super::examples::second;
use super::{LOOKS, MACHINES, TEST, VALUES, less_than_both, machines, notes, records, shown, tuned};
use crate::ablation::line;
use crate::draw::{Axis, Figure, Panel};
use crate::experiment::{About, Experiment, Record, Results, Setting, Unit};
use crate::papers;
use crate::report::Report;
use crate::verdict::{Sample, Statement};
use outlast::{FeatureMap, Result};

/// The experiment.
pub struct Sizes;

const ABOUT: About = About {
    name: "lq-figure3",
    paper: &papers::LQ,
    what: "example 2: test error as noise columns are added, four sample sizes",
    reps: 100,
    seconds: 8.0,
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
            if noise == 48 {
                report.statements.extend(less_than_both(results, setting, &format!("{name}: ")));
                let differences = results.differences(setting, &["L2"], &["L1"], "error");
                report.statements.push(Statement::difference(
                    format!("{name}: L_1 errs less than L_2"),
                    &differences,
                    4,
                ));
            }
        }
        let low = sizes.iter().copied().fold(f64::INFINITY, f64::min);
        let high = sizes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        report.statements.push(Statement::check(
            "L_q selects 5 to 9 variables whatever n and the noise",
            low >= 5.0 && high <= 9.0,
            format!("mean model sizes from {low:.2} to {high:.2}"),
        ));
        report.notes.extend([
            "In print the second group of columns is x_i = y N(i - 3, 1); x_i ~ y N(i - 3, 1) for i = 4, 5, 6 is meant. N(0, 20) is read as variance 20.".to_string(),
            "The paper says that for n = 20 and 40 the L_2 machine sometimes errs less than the L_1 machine; the statements here ask for the opposite at 48 noise \
             columns, at every n."
                .to_string(),
            "Which numbers of noise columns are drawn is not printed, but for the last, 48.".to_string(),
        ]);
        report.figures = vec![(String::new(), figure(results))];
        Ok(report)
    }
}

fn figure(results: &Results) -> String {
    let all = cases();
    let panel = |&rows: &usize| {
        let marks = MACHINES.iter().zip(LOOKS).flat_map(|(machine, (_, look))| {
            let settings = all.iter().enumerate().filter(|(_, case)| case.0 == rows);
            let points: Vec<(f64, Sample)> = settings
                .map(|(setting, case)| (case.1 as f64, Sample::of(&results.values(setting, &[machine], "error"))))
                .collect();
            line(&points, look)
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
