//! Table 1: three classes in six sectors of the disc (section 4.2), Gaussian kernel.
//!
//! For each loss, C and sigma are tuned on 1,000 rows: sigma among the quartiles of the between-class distances of the training rows, kernel
//! exp(-|x - x'|^2 / (2 sigma^2)); error on 10,000 rows.

use super::{LOSSES, TEST, TRAIN, TUNE, losses, notes, titles};
use crate::experiment::{About, Experiment, Record, Results, Setting, Unit};
use crate::papers;
use crate::report::Report;
use crate::samples::Sectors;
use crate::tuning::{Chosen, error, gaussians, over, powers, sigma};
use crate::verdict::{Printed, Row, Sample, Statement};
use outlast::{Result, Truncated};

/// The experiment.
pub struct Nonlinear;

const ABOUT: About = About {
    name: "rsvm-table1",
    paper: &papers::RSVM,
    what: "three classes in six sectors, Gaussian kernel: errors and support vectors",
    reps: 100,
    seconds: 1.5,
};

const SHARES: [f64; 2] = [0.1, 0.2];

/// Error and support vectors, each with its standard deviation, by share and loss.
const PRINTED: [[[&str; 4]; 3]; 2] = [
    [[".1694", ".0268", "48.72", "9.62"], [".1603", ".0195", "16.44", "5.35"], [".1538", ".0182", "24.64", "11.09"]],
    [[".2767", ".0248", "69.17", "9.72"], [".2671", ".0234", "18.78", "8.51"], [".2620", ".0244", "26.88", "13.72"]],
];

impl Experiment for Nonlinear {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        SHARES.iter().map(|share| Setting::new(format!("{}%", 100.0 * share))).collect()
    }

    fn labels(&self) -> &'static [&'static str] {
        &["loss"]
    }

    fn values(&self) -> &'static [&'static str] {
        &["error", "support_vectors", "tuning_error", "C", "sigma"]
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        let share = SHARES[unit.setting];
        let [train, tune, test] = [TRAIN, TUNE, TEST].map(|rows| unit.rows(rows));
        let mut draw = |rows| Sectors::SIX.draw(rows, 2, share, &mut unit.random);
        let (train, tune, test) = (draw(train)?, draw(tune)?, draw(test)?);
        let cs = unit.grid(powers(-1, 3, 2));
        let kernels = gaussians(&train)?;
        let mut records = Vec::new();
        for (name, truncation) in losses(3) {
            let method = Truncated::new(1.0).truncation(truncation);
            let Chosen { model, tuning } =
                over(&kernels, &cs, &method, &train, &unit.request(), |model| error(model, &tune))?;
            let (vectors, c) = (model.support_count() as f64, model.summary.c);
            records.push(Record::new([name], [error(&model, &test)?, vectors, tuning, c, sigma(&model)]));
        }
        Ok(records)
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let mut report = Report { notes: notes(), ..Report::default() };
        for (setting, share) in SHARES.iter().enumerate() {
            for (loss, title) in titles(3).iter().enumerate() {
                let [mean, deviation, vectors, vectors_deviation] = PRINTED[setting][loss];
                let cells = [
                    ("error", "error", mean, deviation, 4),
                    ("support_vectors", "support vectors", vectors, vectors_deviation, 2),
                ];
                for (value, what, mean, deviation, decimals) in cells {
                    let here = Sample::of(&results.values(setting, &[LOSSES[loss]], value));
                    let printed = Printed::new(mean, ABOUT.reps).deviation(deviation);
                    report.rows.push(Row::new(
                        format!("{} %, {title}: {what}", 100.0 * share),
                        Some(printed),
                        here,
                        decimals,
                    ));
                }
            }
        }
        for (setting, share) in SHARES.iter().enumerate() {
            for (truncated, title) in [("T0", "T_0"), ("Ts", "T_-1/2")] {
                for (value, what, decimals) in
                    [("error", "errs less", 4), ("support_vectors", "has fewer support vectors", 1)]
                {
                    let text = format!("{} %: {title} {what} than H_1", 100.0 * share);
                    let differences = results.differences(setting, &["H1"], &[truncated], value);
                    report.statements.push(Statement::difference(text, &differences, decimals));
                }
            }
            let text = format!("{} %: T_-1/2 errs less than T_0", 100.0 * share);
            let differences = results.differences(setting, &["T0"], &["Ts"], "error");
            report.statements.push(Statement::difference(text, &differences, 4));
        }
        report.notes.extend([
            "In print the kernel is exp(-<x, x'>/(2 sigma^2)), which is no Gaussian; exp(-|x - x'|^2/(2 sigma^2)) is meant and taken.".to_string(),
            "In print the labels use floor(k theta/2 pi) with k = 3 and sector 4 twice; six sectors with the classes {1, 4}, {2, 3}, {5, 6} \
             are meant and taken."
                .to_string(),
        ]);
        Ok(report)
    }
}
