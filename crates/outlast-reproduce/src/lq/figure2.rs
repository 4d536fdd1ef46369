//! Figure 2: test error in example 1 as q grows; for each q, lambda is tuned on 400 rows.

use super::examples::first;
use super::table1::TRAIN;
use super::{QS, TEST, best, error, notes, qs, tuned, used};
use crate::draw::{Axis, Figure, Look, Mark, Panel, Shape};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit};
use crate::lines::{Row, Statement};
use crate::papers;
use crate::report::Report;
use crate::verdict::Sample;
use outlast::{FeatureMap, Result};

/// The experiment.
pub struct Exponents;

const ABOUT: About = About {
    name: "lq-figure2",
    paper: &papers::LQ,
    what: "test error in example 1 as q grows",
    reps: Reps::Printed(100),
    revision: 2,
    seconds: 1.6,
};

impl Experiment for Exponents {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting::new("example 1")]
    }

    fn labels(&self) -> &'static [&'static str] {
        &["q"]
    }

    fn values(&self) -> &'static [&'static str] {
        &["error", "size", "lambda", "tuning_error"]
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        let counts = [TRAIN, TRAIN, TEST].map(|rows| unit.rows(rows));
        let mut draw = |rows| first(rows, &mut unit.random);
        let (train, tune, test) = (draw(counts[0])?, draw(counts[1])?, draw(counts[2])?);
        let choice = tuned(&train, &tune, FeatureMap::Identity, &unit)?;
        let record = |&q: &f64| {
            let at = best(&choice, q)?;
            let point = &choice.path[at];
            let lambda = 1.0 / (counts[0] as f64 * point.c);
            let values = [error(point, &test), used(point).len() as f64, lambda, choice.tuned.cells[at].mean];
            Some(Record::new([q.to_string()], values))
        };
        Ok(qs(&unit).iter().filter_map(record).collect())
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let mut report = Report { notes: notes(), ..Report::default() };
        let of = |q: f64, value: &str| Sample::of(&results.values(0, &[&q.to_string()], value));
        for q in QS {
            report.rows.push(Row::new(format!("q = {q}: error"), None, of(q, "error"), 4));
        }
        for (small, large) in [(0.1, 1.0), (0.1, 2.0), (1.0, 2.0)] {
            let differences = results.differences(0, &[&large.to_string()], &[&small.to_string()], "error");
            let text = format!("q = {small} errs less than q = {large}");
            report.statements.push(Statement::difference(text, &differences, 4));
        }
        report.notes.push(results.at_ends("lambda", "lambda", [1e-5, 10.0], |_| true));
        report.notes.push("Labels as in lq-table1. The paper prints a figure and no numbers.".to_string());
        let points: Vec<(f64, Sample)> = QS.iter().map(|&q| (q, of(q, "error"))).collect();
        let mut marks = crate::draw::with_intervals(&points, Look::line(2));
        let places = points.iter().map(|(q, sample)| [*q, sample.mean]).collect();
        marks.push(Mark::Points(places, Shape::Dot, Look { colour: 2, width: 3.0, dash: "" }));
        let panel = Panel { title: String::new(), x: Axis::linear("q"), y: Axis::linear("test error"), marks };
        let figure = Figure::new("Example 1: test error as q grows, 95 % intervals", 1, vec![panel]).size(480.0, 300.0);
        report.figures = vec![(String::new(), figure.draw())];
        Ok(report)
    }
}
