//! Figure 5: the boundaries of the three machines in the plane of x_1 and x_2, example 3 with 20 noise columns.
//!
//! "Projected" is read as the expected value over the noise: noise columns at 0, their squares at 1.

use super::examples::{radius, third};
use super::figure4::TRAIN;
use super::{LOOKS, MACHINES, Machine, TEST, VALUES, decision, machines, notes, records, shown, tuned};
use crate::data::Rows;
use crate::draw::decisions::boundaries_by;
use crate::draw::{Axis, Figure, Key, Look, Mark, Panel, Shape};
use crate::experiment::{About, Experiment, Record, Results, Setting, Unit};
use crate::papers;
use crate::report::Report;
use crate::verdict::Statement;
use outlast::select::Point;
use outlast::{Design, FeatureMap, Result};

/// The experiment.
pub struct Boundaries;

const ABOUT: About = About {
    name: "lq-figure5",
    paper: &papers::LQ,
    what: "boundaries of three penalties in example 3 with 20 noise columns",
    reps: 1,
    seconds: 6.0,
};

const NOISE: usize = 20;

fn run(unit: &mut Unit) -> Result<([Rows; 3], Vec<Machine>)> {
    let counts = [TRAIN, TRAIN, TEST].map(|rows| unit.rows(rows));
    let mut draw = |rows| third(rows, NOISE, &mut unit.random);
    let (train, tune, test) = (draw(counts[0])?, draw(counts[1])?, draw(counts[2])?);
    let found = machines(&tuned(&train, &tune, FeatureMap::Squares, unit)?);
    Ok(([train, tune, test], found))
}

/// f over the plane, noise averaged out.
fn projected(point: &Point, at: [f64; 2]) -> Vec<f64> {
    let mut row = vec![0.0; NOISE + 2];
    row[..2].copy_from_slice(&at);
    let squares: f64 = point.weights[NOISE + 4..].iter().sum();
    vec![decision(point, &row)[0] + squares]
}

impl Experiment for Boundaries {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting::new(format!("m={NOISE}"))]
    }

    fn labels(&self) -> &'static [&'static str] {
        &["method"]
    }

    fn values(&self) -> &'static [&'static str] {
        &VALUES
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        let ([train, _, test], found) = run(&mut unit)?;
        Ok(records(&found, &train, &test, &[0, 1, NOISE + 2, NOISE + 3]))
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let mut report = Report { notes: notes(), ..Report::default() };
        for machine in MACHINES {
            report.rows.push(shown(results, 0, machine, "error", format!("{machine}: error"), 4));
            report.rows.push(shown(results, 0, machine, "size", format!("{machine}: model size"), 2));
        }
        let mean = |machine: &str| {
            let values = results.values(0, &[machine], "error");
            values.iter().sum::<f64>() / values.len() as f64
        };
        let [l1, l2, lq] = MACHINES.map(mean);
        report.statements.push(Statement::check(
            "L_q is closest to the Bayes boundary, then L_1, then L_2",
            lq < l1 && l1 < l2,
            format!("test errors {lq:.4}, {l1:.4}, {l2:.4}"),
        ));
        report.notes.push(
            "The paper shows \"one particular data set\"; here it is the first replication. Where a boundary lies is averaged over the noise columns."
                .to_string(),
        );
        report.figures = vec![(String::new(), figure(results)?)];
        Ok(report)
    }
}

fn figure(results: &Results) -> Result<String> {
    let ([train, ..], found) = run(&mut results.unit(0, 0))?;
    let mut marks = Vec::new();
    let mut legend: Vec<Key> = LOOKS.map(|(name, look)| Key { name: name.to_string(), look, shape: None }).to_vec();
    for class in 0..2 {
        let of_class = (0..train.x.rows()).filter(|&row| train.y.codes()[row] as usize == class);
        let places = of_class.map(|row| [train.x.row(row)[0], train.x.row(row)[1]]).collect();
        let (shape, look) = (Shape::of(class), Look { colour: 5 + class, width: 3.0, dash: "" });
        marks.push(Mark::Points(places, shape, look));
        legend.push(Key { name: ["-1", "+1"][class].to_string(), look, shape: Some(shape) });
    }
    let bayes = Look::dashed(7, "2 3");
    let lines = boundaries_by(0.0, 1.0, |at| vec![0.1 - radius(at[0], at[1])]);
    marks.extend(lines.into_iter().map(|line| Mark::Line(line, bayes)));
    legend.push(Key { name: "Bayes".to_string(), look: bayes, shape: None });
    for (machine, (_, look)) in found.iter().zip(LOOKS) {
        let lines = boundaries_by(0.0, 1.0, |at| projected(&machine.point, at));
        marks.extend(lines.into_iter().map(|line| Mark::Line(line, look)));
    }
    let axis = |label| Axis::linear(label).range(0.0, 1.0);
    let panel = Panel { title: String::new(), x: axis("x_1"), y: axis("x_2"), marks };
    let figure = Figure::new("Example 3, 20 noise columns", 1, vec![panel]).size(420.0, 420.0);
    Ok(Figure { legend, ..figure }.draw())
}
