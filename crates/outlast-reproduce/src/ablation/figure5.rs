//! Figure 5: test error over beta at R = 55: the SVM, REH, and ROD with each rho.

use super::{BETAS, Machine, RHOS, TEST, beta_name, notes, test, train};
use crate::draw::{Axis, Figure, Look, Panel, with_intervals};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit, less};
use crate::lines::{Row, Statement};
use crate::papers;
use crate::report::Report;
use crate::tuning::error;
use crate::verdict::Sample;
use outlast::Result;

/// The experiment.
pub struct Betas;

const ABOUT: About = About {
    name: "ablation-figure5",
    paper: &papers::ABLATION,
    what: "test error over beta at R = 55: the SVM, REH and ROD with seven shares",
    reps: Reps::Printed(50),
    revision: 1,
    seconds: 0.05,
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
        for machine in machines() {
            for beta in BETAS {
                let (name, here) = (machine.name(), Sample::of(&errors(&machine.name(), beta)));
                report.rows.push(Row::new(format!("{name}, beta = {}", beta_name(beta)), None, here, 4));
            }
        }
        // largest less smallest error of a replication, over a parameter
        let spread = |lists: &[Vec<f64>]| -> Vec<f64> {
            let of = |rep: usize| {
                let known = || lists.iter().filter_map(|list| list.get(rep).copied());
                known().fold(f64::NEG_INFINITY, f64::max) - known().fold(f64::INFINITY, f64::min)
            };
            (0..results.reps).map(of).collect()
        };
        let over_rho = |beta: f64| spread(&RHOS.map(|rho| errors(&Machine::Rod(rho).name(), beta)));
        let over_beta =
            |name: &str, betas: &[f64]| spread(&betas.iter().map(|&beta| errors(name, beta)).collect::<Vec<_>>());
        for beta in &BETAS[2..4] {
            let text = format!(
                "rho matters less for beta close to 0 (spread over rho at {}, less that at 1e-4)",
                beta_name(*beta)
            );
            report.statements.push(Statement::difference(text, &less(&over_rho(*beta), &over_rho(BETAS[0])), 4));
        }
        for beta in &BETAS[1..4] {
            let text = format!("beta = {}: too small a rho degrades (0.2 errs more than 0.8)", beta_name(*beta));
            report.statements.push(Statement::difference(
                text,
                &less(&errors("ROD 0.2", *beta), &errors("ROD 0.8", *beta)),
                4,
            ));
        }
        for name in ["REH", "ROD 0.8"] {
            let differences = |betas: &[f64]| less(&over_beta("SVM", betas), &over_beta(name, betas));
            let text = format!("{name} depends less on beta than the SVM (spread over beta)");
            report.statements.push(Statement::difference(text, &differences(&BETAS), 4));
            let text = format!("{name} depends less on beta than the SVM, up to beta = 100");
            report.own.push(Statement::difference(text, &differences(&BETAS[..4]), 4));
        }
        for name in ["REH", "ROD 0.8"] {
            let text = format!("for very large beta {name} becomes the SVM (difference of errors at 1e4)");
            report.statements.push(Statement::equality(
                text,
                &less(&errors(name, BETAS[4]), &errors("SVM", BETAS[4])),
                4,
            ));
        }
        for beta in BETAS {
            let few: Vec<Vec<f64>> = RHOS[2..].iter().map(|&rho| errors(&Machine::Rod(rho).name(), beta)).collect();
            let what = format!("spread over rho from 0.6 to 0.98, beta = {}", beta_name(beta));
            report.rows.push(Row::new(what, None, Sample::of(&spread(&few)), 4));
            let what = format!("spread over all rho, beta = {}", beta_name(beta));
            report.rows.push(Row::new(what, None, Sample::of(&over_rho(beta)), 4));
        }
        report.notes.push(
            "The paper prints a figure and no numbers. A spread is the largest less the smallest error of a replication; that the robust machines become the SVM is judged as no \
             difference at beta = 1e4."
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
            Machine::Rod(_) => (machine.name(), Look::dashed(at - 1, ["7 4", "2 3", "8 3 2 3"][at % 3])),
            _ => (machine.name(), Look::line(if at == 0 { 7 } else { 0 })),
        })
        .collect();
    let mut marks = Vec::new();
    for (at, (name, look)) in looks.iter().enumerate() {
        let place = |beta: f64| beta * 10f64.powf(0.05 * (at as f64 - 4.0));
        let of = |beta: f64| (place(beta), Sample::of(&results.values(0, &[name, &beta_name(beta)], "error")));
        marks.extend(with_intervals(&BETAS.map(of), *look));
    }
    let panel = Panel { title: String::new(), x: Axis::log("beta"), y: Axis::log("test error"), marks };
    Figure::new("Test error over beta, R = 55, 95 % intervals", 1, vec![panel]).size(760.0, 380.0).lines(looks).draw()
}
