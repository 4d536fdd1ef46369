//! Figure 5: the boundaries of the three machines in the plane of x_1 and x_2, example 3 with 20 noise columns.
//!
//! "Projected" is read as the expected value over the noise: noise columns at 0, their squares at 1.

use super::examples::{radius, third};
use super::figure4::TRAIN;
use super::{
    LOOKS, MACHINES, Machine, TEST, VALUES, decision, ends, less_than_both, machines, notes, records, shown, tuned,
};
use crate::data::Rows;
use crate::draw::decisions::boundaries_by;
use crate::draw::{Axis, Figure, Key, Look, Mark, Panel, Shape};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit};
use crate::lines::Statement;
use crate::papers;
use crate::report::Report;
use outlast::select::Point;
use outlast::{Design, FeatureMap, Result};

/// The experiment.
pub struct Boundaries;

const ABOUT: About = About {
    name: "lq-figure5",
    paper: &papers::LQ,
    what: "boundaries of three penalties in example 3 with 20 noise columns",
    reps: Reps::OneShown(20),
    revision: 3,
    seconds: 8.5,
};

const NOISE: usize = 20;

/// Numbers of a record: the usual ones, and the area between the boundary and the Bayes rule's.
const FOUND: [&str; 7] = [VALUES[0], VALUES[1], VALUES[2], VALUES[3], VALUES[4], VALUES[5], "area"];

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

/// The area between a boundary and that of the Bayes rule: the share of the unit square on which they decide differently, on a grid.
fn area(point: &Point) -> f64 {
    const SIDE: usize = 200;
    let at = |step: usize| (step as f64 + 0.5) / SIDE as f64;
    let differ = |place: [f64; 2]| (projected(point, place)[0] > 0.0) != (radius(place[0], place[1]) < 0.1);
    let places = (0..SIDE * SIDE).map(|cell| [at(cell % SIDE), at(cell / SIDE)]);
    places.filter(|&place| differ(place)).count() as f64 / (SIDE * SIDE) as f64
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
        &FOUND
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        let ([train, _, test], found) = run(&mut unit)?;
        let mut all = records(&found, &train, &test, &[0, 1, NOISE + 2, NOISE + 3]);
        all.iter_mut().zip(&found).for_each(|(record, machine)| record.values.push(area(&machine.point)));
        Ok(all)
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let mut report = Report { notes: notes(), ..Report::default() };
        for machine in MACHINES {
            report.rows.push(shown(results, 0, machine, "error", format!("{machine}: error"), 4));
            report.rows.push(shown(results, 0, machine, "size", format!("{machine}: model size"), 2));
        }
        for machine in MACHINES {
            let what = format!("{machine}: area between its boundary and the Bayes boundary");
            report.rows.push(shown(results, 0, machine, "area", what, 4));
        }
        for (far, near, text) in [
            ("L1", "Lq", "the boundary of L_q is closer to the Bayes boundary than that of L_1 (areas between)"),
            ("L2", "Lq", "that of L_q is closer than that of L_2"),
            ("L2", "L1", "that of L_1 is closer than that of L_2"),
        ] {
            report.statements.push(Statement::difference(text, &results.differences(0, &[far], &[near], "area"), 4));
        }
        report.own = less_than_both(results, 0, "");
        let differences = results.differences(0, &["L2"], &["L1"], "error");
        report.own.push(Statement::difference("L_1 errs less than L_2", &differences, 4));
        report.notes.push(ends(results));
        report.notes.push(
            "The paper shows \"one particular data set\"; the figure shows the first replication, the statements are judged over all. Where a boundary lies is averaged over the noise \
             columns: those at 0, their squares at 1. The area is that of the part of the unit square on which the two decide differently."
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
