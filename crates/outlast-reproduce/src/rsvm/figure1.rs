//! Figure 1: H_1(u) = [1 - u]_+, H_s(u) = [s - u]_+ and T_s = H_1 - H_s.
//!
//! The curves come from the library's own loss, so that the picture is that of what is minimised; the records hold the difference from the
//! formula.

use crate::draw::{Axis, Figure, Look, Mark, Panel};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit};
use crate::lines::Statement;
use crate::papers;
use crate::report::Report;
use outlast::{Loss, Result};

/// The experiment.
pub struct Losses;

const ABOUT: About = About {
    name: "rsvm-figure1",
    paper: &papers::RSVM,
    what: "the hinge loss, what is taken off, and the truncated hinge loss",
    reps: Reps::Exact,
    revision: 1,
    seconds: 0.01,
};

/// The paper's axis has no numbers; s is drawn at a place between -1 and 0.
const TRUNCATION: f64 = -0.5;
const REACH: (f64, f64) = (-3.0, 2.0);
const POINTS: usize = 101;

fn hinge(at: f64, u: f64) -> f64 {
    (at - u).max(0.0)
}

impl Experiment for Losses {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting::new("losses")]
    }

    fn labels(&self) -> &'static [&'static str] {
        &[]
    }

    fn values(&self) -> &'static [&'static str] {
        &["u", "H1", "Hs", "Ts", "library"]
    }

    fn replicate(&self, _: Unit) -> Result<Vec<Record>> {
        let loss = Loss::hinge().truncated_at(TRUNCATION)?;
        let at = |step: usize| REACH.0 + (REACH.1 - REACH.0) * step as f64 / (POINTS - 1) as f64;
        let record = |u: f64| {
            let (plain, taken) = (hinge(1.0, u), hinge(TRUNCATION, u));
            Record::new([""; 0], [u, plain, taken, plain - taken, loss.value(u)])
        };
        Ok((0..POINTS).map(at).map(record).collect())
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let u = results.values(0, &[], "u");
        let line = |name: &str| -> Vec<[f64; 2]> {
            u.iter().zip(results.values(0, &[], name)).map(|(&u, value)| [u, value]).collect()
        };
        let looks = [
            ("H1", "H_1", Look::line(7)),
            ("Hs", "H_s", Look::dashed(0, "7 5")),
            ("Ts", "T_s", Look::dashed(1, "2 4")),
        ];
        let panel = Panel {
            title: String::new(),
            x: Axis::linear("u"),
            y: Axis::linear("loss"),
            marks: looks.iter().map(|(name, _, look)| Mark::Line(line(name), *look)).collect(),
        };
        let figure = Figure::new(format!("T_s = H_1 - H_s, s = {TRUNCATION}"), 1, vec![panel]).size(420.0, 300.0);
        let figure = figure.lines(looks.map(|(_, title, look)| (title, look)));
        let (formula, library) = (results.values(0, &[], "Ts"), results.values(0, &[], "library"));
        let off = formula.iter().zip(&library).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        Ok(Report {
            statements: vec![Statement::exact(
                "T_s = H_1 - H_s",
                off < 1e-12,
                format!("largest difference from the library's loss over {POINTS} points: {off:.0e}"),
            )],
            notes: vec![format!("The paper's axes carry no numbers; s = {TRUNCATION} is drawn.")],
            figures: vec![(String::new(), figure.draw())],
            ..Report::default()
        })
    }
}
