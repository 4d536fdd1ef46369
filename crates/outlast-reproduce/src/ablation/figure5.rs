//! Figure 5: test error over beta at R = 55: the SVM, REH, and ROD with each rho.

use super::{BETAS, Machine, RHOS, TEST, beta_name, line, notes, test, train};
use crate::draw::{Axis, Figure, Look, Panel};
use crate::experiment::{About, Experiment, Record, Results, Setting, Unit};
use crate::papers;
use crate::report::Report;
use crate::tuning::error;
use crate::verdict::{Row, Sample, Statement};
use outlast::Result;

/// The experiment.
pub struct Betas;

const ABOUT: About = About {
    name: "ablation-figure5",
    paper: &papers::ABLATION,
    what: "test error over beta at R = 55: the SVM, REH and ROD with seven shares",
    reps: 50,
    seconds: 0.1,
};

const RADIUS: f64 = 55.0;

fn machines() -> Vec<Machine> {
    let mut all = vec![Machine::Svm, Machine::Reh { refined: false }];
    all.extend(RHOS.map(Machine::Rod));
    all
}

impl Experiment for Betas {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting::new(format!("R={RADIUS}"))]
    }

    fn labels(&self) -> &'static [&'static str] {
        &["method", "beta"]
    }

    fn values(&self) -> &'static [&'static str] {
        &["error"]
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        let rows = train(RADIUS, &mut unit.random)?;
        let each = unit.rows(TEST);
        let new = test(each, &mut unit.random)?;
        let mut records = Vec::new();
        for beta in BETAS {
            for machine in machines() {
                let model = machine.fit(beta, &rows, &unit.request())?;
                records.push(Record::new([machine.name(), beta_name(beta)], [error(&model, &new)?]));
            }
        }
        Ok(records)
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let mut report = Report { notes: notes(), ..Report::default() };
        let errors = |name: &str, beta: f64| results.values(0, &[name, &beta_name(beta)], "error");
        let mean = |name: &str, beta: f64| Sample::of(&errors(name, beta)).mean;
        for machine in machines() {
            for beta in BETAS {
                let (name, here) = (machine.name(), Sample::of(&errors(&machine.name(), beta)));
                report.rows.push(Row::new(format!("{name}, beta = {}", beta_name(beta)), None, here, 4));
            }
        }
        let spread = |values: Vec<f64>| {
            values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
                - values.iter().copied().fold(f64::INFINITY, f64::min)
        };
        let over_rho = |beta: f64| spread(RHOS.map(|rho| mean(&Machine::Rod(rho).name(), beta)).to_vec());
        let (small, large) = (over_rho(BETAS[0]), over_rho(BETAS[3]));
        report.statements.push(Statement::check(
            "for beta near 0 rho hardly matters",
            small < 0.25 * large,
            format!("mean errors of ROD differ by {small:.4} over rho at beta = 1e-4, by {large:.4} at beta = 100"),
        ));
        for beta in [BETAS[2], BETAS[3]] {
            let (low, high) = (errors("ROD 0.2", beta), errors("ROD 0.8", beta));
            let differences: Vec<f64> = low.iter().zip(&high).map(|(low, high)| low - high).collect();
            let text = format!("beta = {}: rho = 0.2 errs more than 0.8", beta_name(beta));
            report.statements.push(Statement::difference(text, &differences, 4));
        }
        let over_beta = |name: &str| spread(BETAS.map(|beta| mean(name, beta)).to_vec());
        for name in ["REH", "ROD 0.8"] {
            let (robust, plain) = (over_beta(name), over_beta("SVM"));
            report.statements.push(Statement::check(
                format!("{name} depends less on beta than the SVM"),
                robust < plain,
                format!("mean errors differ by {robust:.4} over beta, those of the SVM by {plain:.4}"),
            ));
        }
        for name in ["REH", "ROD 0.8"] {
            let off = (mean(name, BETAS[4]) - mean("SVM", BETAS[4])).abs();
            report.statements.push(Statement::check(
                format!("for very large beta {name} becomes the SVM"),
                off < 0.01,
                format!("mean errors at beta = 1e4 differ by {off:.4}"),
            ));
        }
        report.notes.push(
            "The paper prints a figure and no numbers; the statements are its own, \"hardly\" read as a quarter of the spread at beta = 100, \
             \"becomes\" as within .01."
                .to_string(),
        );
        report.figures = vec![(String::new(), figure(results))];
        Ok(report)
    }
}

fn figure(results: &Results) -> String {
    let looks: Vec<(String, Look)> = machines()
        .iter()
        .enumerate()
        .map(|(at, machine)| match machine {
            Machine::Rod(_) => (machine.name(), Look::dashed(at, ["7 4", "2 3", "8 3 2 3"][at % 3])),
            _ => (machine.name(), Look::line(if at == 0 { 7 } else { 0 })),
        })
        .collect();
    let mut marks = Vec::new();
    for (at, (name, look)) in looks.iter().enumerate() {
        let place = |beta: f64| beta * 10f64.powf(0.05 * (at as f64 - 4.0));
        let of = |beta: f64| (place(beta), Sample::of(&results.values(0, &[name, &beta_name(beta)], "error")));
        marks.extend(line(&BETAS.map(of), *look));
    }
    let panel = Panel { title: String::new(), x: Axis::log("beta"), y: Axis::linear("test error"), marks };
    Figure::new("Test error over beta, R = 55, 95 % intervals", 1, vec![panel]).size(760.0, 380.0).lines(looks).draw()
}
