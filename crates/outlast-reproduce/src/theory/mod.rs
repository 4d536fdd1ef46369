//! Statements of the papers, checked by numbers alone: Fisher consistency, monotone descent, upper bounds, costs and utilities.
//!
//! A check is a setting; it gives findings, each a statement with a number and whether that bears it out. Where a paper's formula is wrong in
//! print, the formula as printed stands beside the right one, and fails.

mod bounds;
mod descent;
mod fisher;
mod payoffs;

use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit};
use crate::lines::Statement;
use crate::papers;
use crate::report::Report;
use outlast::Result;

/// The experiment.
pub struct Theory;

const ABOUT: About = About {
    name: "theory",
    paper: &papers::SEVERAL,
    what: "Fisher consistency, monotone descent, upper bounds, costs and utilities, by numbers",
    reps: Reps::NotPrinted(10),
    revision: 2,
    seconds: 0.4,
};

/// A statement with a number and whether that bears it out.
pub struct Finding {
    /// The statement; stands in the CSV file, so without commas.
    pub statement: String,
    /// What was measured.
    pub what: &'static str,
    /// The number.
    pub measured: f64,
    /// Whether the statement holds.
    pub holds: bool,
    /// Whether it is ours, and not in a paper.
    pub own: bool,
}

impl Finding {
    fn new(statement: impl Into<String>, what: &'static str, measured: f64, holds: bool) -> Finding {
        Finding { statement: statement.into(), what, measured, holds, own: false }
    }

    /// What no paper states.
    fn ours(self) -> Finding {
        Finding { own: true, ..self }
    }
}

/// Whose a statement is, in the records.
const OURS: &str = "ours";
const PAPER: &str = "paper";

type Check = fn(&mut Unit) -> Result<Vec<Finding>>;

const CHECKS: [(&str, Check); 7] = [
    ("consistency", fisher::standard),
    ("weighted consistency", fisher::weighted),
    ("descent", descent::check),
    ("support vectors", descent::subset),
    ("losses", bounds::losses),
    ("relaxation", bounds::relaxation),
    ("payoffs", payoffs::check),
];

impl Experiment for Theory {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        CHECKS.iter().map(|(name, _)| Setting::new(*name)).collect()
    }

    fn labels(&self) -> &'static [&'static str] {
        &["statement", "what", "whose"]
    }

    fn values(&self) -> &'static [&'static str] {
        &["measured", "holds"]
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        let findings = CHECKS[unit.setting].1(&mut unit)?;
        let record = |one: Finding| {
            debug_assert!(!one.statement.contains(','), "{}", one.statement);
            let whose = if one.own { OURS } else { PAPER };
            Record::new([one.statement, one.what.to_string(), whose.to_string()], [one.measured, f64::from(one.holds)])
        };
        Ok(findings.into_iter().map(record).collect())
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let mut report = Report::default();
        for setting in 0..CHECKS.len() {
            let Some(first) = results.records.get(&(setting, 0)) else { continue };
            for record in first {
                let labels: Vec<&str> = record.labels.iter().map(String::as_str).collect();
                let measured = results.values(setting, &labels, "measured");
                let holds = results.values(setting, &labels, "holds");
                let (low, high) =
                    measured.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &m| (a.min(m), b.max(m)));
                let range = if low == high { short(low) } else { format!("{} to {}", short(low), short(high)) };
                let held = holds.iter().filter(|&&held| held == 1.0).count();
                let mut statement = Statement::always(labels[0], held, holds.len());
                statement.here = format!("{held} of {}; {} {range}", holds.len(), labels[1]);
                if labels[2] == OURS { report.own.push(statement) } else { report.statements.push(statement) }
            }
        }
        report.notes = vec![
            "Consistency: over a grid of class probabilities p the conditional risk is minimised by brute force over the differences of the functions, once \
             among those that decide for the likeliest class alone, once among all others; the gap is the second minimum less the first. Positive for every p: \
             consistent. Not positive for some p: not. The bounds are -1/(k-1) for the hinge, log(1 - 1/k) for the exponential and \
             -log(2^{k/(k-1)} - 1) for the logistic loss."
                .to_string(),
            "Outside the range one p for which the risk has its minimum elsewhere is enough; near even chances are taken. Everything is checked in every \
             replication; where nothing is random all are the same."
                .to_string(),
            "The leave-one-out bound as printed lacks a minus and the step function; the right form is among ours.".to_string(),
        ];
        Ok(report)
    }
}

fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_string(),
        size if (1e-3..1e4).contains(&size) => format!("{value:.4}"),
        _ => format!("{value:.1e}"),
    }
}
