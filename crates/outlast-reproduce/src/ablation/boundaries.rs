//! Figures 2 and 3: one training set with a ring of outliers, the lines of the machines, and the rows ROD calls outliers.
//!
//! The paper says nothing of the data behind either; the made-up data of its experiments are taken, R = 35 for figure 2 and R = 55 for
//! figure 3, beta = 100. Every replication is another training set; the figures show the first.

use super::{Machine, RHO, TEST, notes, test, train, wrong};
use crate::data::Rows;
use crate::draw::decisions::boundaries;
use crate::draw::{Axis, Figure, Key, Look, Mark, Panel, Shape};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit, less};
use crate::lines::{Row, Statement};
use crate::papers;
use crate::report::Report;
use crate::tuning::error;
use crate::verdict::Sample;
use outlast::{Ablation, Design, Model, Result};

/// One of the two figures.
pub struct Boundaries {
    about: About,
    radius: f64,
    machines: &'static [Machine],
    /// Whether rows are called outliers.
    names: bool,
}

/// lambda of the centroid machine: half the margin is asked of a row at about the edge of the groups.
const LAMBDA: f64 = 1e-2;
const BETA: f64 = 100.0;

/// Figure 2.
pub const FIGURE2: Boundaries = Boundaries {
    about: About {
        name: "ablation-figure2",
        paper: &papers::ABLATION,
        what: "the lines of five machines on one training set with outliers",
        reps: Reps::OneShown(50),
        revision: 1,
        seconds: 0.05,
    },
    radius: 35.0,
    machines: &[
        Machine::Svm,
        Machine::LeaveOneOut,
        Machine::Centroid(LAMBDA),
        Machine::Reh { refined: false },
        Machine::Rod(RHO),
    ],
    names: false,
};

/// Figure 3.
pub const FIGURE3: Boundaries = Boundaries {
    about: About {
        name: "ablation-figure3",
        paper: &papers::ABLATION,
        what: "the SVM and ROD on one training set, and the rows ROD calls outliers",
        reps: Reps::OneShown(50),
        revision: 2,
        seconds: 0.05,
    },
    radius: 55.0,
    machines: &[Machine::Svm, Machine::Rod(RHO)],
    names: true,
};

impl Boundaries {
    fn rows(&self, unit: &mut Unit) -> Result<[Rows; 2]> {
        let each = unit.rows(TEST);
        Ok([train(self.radius, &mut unit.random)?, test(each, &mut unit.random)?])
    }

    fn models(&self, rows: &Rows, unit: &Unit) -> Result<Vec<Model>> {
        self.machines.iter().map(|machine| machine.fit(BETA, rows, &unit.request())).collect()
    }

    /// The rows that ROD drops.
    fn dropped(&self, rows: &Rows, unit: &Unit) -> Result<Vec<bool>> {
        if !self.names {
            return Ok(vec![false; rows.x.rows()]);
        }
        let method = Ablation::rod(1.0 / BETA).inlier_fraction(super::rho_of(RHO)).refine(false);
        let model = method.fit_with(&rows.x, &rows.y, &unit.request())?;
        Ok(model.training.map_or_else(Vec::new, |training| training.outliers))
    }

    fn figure(&self, results: &Results) -> Result<String> {
        let mut unit = results.unit(0, 0);
        let [rows, _] = self.rows(&mut unit)?;
        let reach = 1.1 * (self.radius + 1.0);
        let (mut marks, mut legend) = (Vec::new(), Vec::new());
        let place = |row: usize| [rows.x.row(row)[0], rows.x.row(row)[1]];
        for (class, name) in ["class -1", "class +1"].into_iter().enumerate() {
            let of_class = (0..rows.x.rows()).filter(|&row| rows.y.codes()[row] as usize == class);
            let (shape, look) = (Shape::of(class), Look { colour: class, width: 3.5, dash: "" });
            marks.push(Mark::Points(of_class.map(place).collect(), shape, look));
            legend.push(Key { name: name.to_string(), look, shape: Some(shape) });
        }
        if self.names {
            let dropped = self.dropped(&rows, &unit)?;
            let look = Look { colour: 7, width: 7.0, dash: "" };
            let places = (0..rows.x.rows()).filter(|&row| dropped[row]).map(place).collect();
            marks.push(Mark::Points(places, Shape::Circle, look));
            legend.push(Key { name: "called an outlier".to_string(), look, shape: Some(Shape::Circle) });
        }
        for (at, (machine, model)) in self.machines.iter().zip(self.models(&rows, &unit)?).enumerate() {
            // those drawn first are the widest, so that lines on each other are seen
            let look = Look { width: 1.2 + 1.6 * (self.machines.len() - 1 - at) as f64, ..Look::line(at + 2) };
            marks.extend(boundaries(&model, -reach, reach)?.into_iter().map(|line| Mark::Line(line, look)));
            legend.push(Key { name: machine.name(), look, shape: None });
        }
        let best = Look::dashed(7, "3 4");
        marks.push(Mark::Line(vec![[-reach, -reach], [reach, reach]], best));
        legend.push(Key { name: "best rule".to_string(), look: best, shape: None });
        let axis = |label| Axis::linear(label).range(-reach, reach);
        let panel = Panel { title: String::new(), x: axis("x_1"), y: axis("x_2"), marks };
        let title = format!("A ring of outliers, R = {}, beta = {BETA}", self.radius);
        let figure = Figure { legend, ..Figure::new(title, 1, vec![panel]).size(560.0, 420.0) };
        Ok(figure.draw())
    }
}

impl Experiment for Boundaries {
    fn about(&self) -> &'static About {
        // both experiments are constants
        if self.names { const { &FIGURE3.about } } else { const { &FIGURE2.about } }
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting::new(format!("R={}", self.radius))]
    }

    fn labels(&self) -> &'static [&'static str] {
        &["method"]
    }

    fn values(&self) -> &'static [&'static str] {
        &["error", "wrong_rows", "called_outliers", "called_and_wrong"]
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        let [rows, new] = self.rows(&mut unit)?;
        let dropped = self.dropped(&rows, &unit)?;
        let all = 0..rows.x.rows();
        let misplaced = all.clone().filter(|&row| wrong(&rows, row)).count() as f64;
        let called = dropped.iter().filter(|&&dropped| dropped).count() as f64;
        let hits = all.filter(|&row| dropped[row] && wrong(&rows, row)).count() as f64;
        let models = self.models(&rows, &unit)?;
        let record = |(machine, model): (&Machine, &Model)| {
            Ok(Record::new([machine.name()], [error(model, &new)?, misplaced, called, hits]))
        };
        self.machines.iter().zip(&models).map(record).collect()
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let of = |machine: &Machine, value: &str| results.values(0, &[&machine.name()], value);
        let mut report = Report { notes: notes(), ..Report::default() };
        for machine in self.machines {
            let here = Sample::of(&of(machine, "error"));
            report.rows.push(Row::new(format!("{}: test error", machine.name()), None, here, 4));
        }
        let gain = |machine: &Machine| less(&of(&Machine::Svm, "error"), &of(machine, "error"));
        if self.names {
            let rod = self.machines[1];
            let text = "ROD finds a better classifier than the soft margin SVM (its error less)";
            report.statements.push(Statement::difference(text, &gain(&rod), 4));
            let (misplaced, called, hits) =
                (of(&rod, "wrong_rows"), of(&rod, "called_outliers"), of(&rod, "called_and_wrong"));
            let share = |a: &[f64], b: &[f64]| -> Vec<f64> {
                a.iter().zip(b).map(|(a, b)| a / b).filter(|share| share.is_finite()).collect()
            };
            let found = share(&hits, &misplaced);
            let above: Vec<f64> = found.iter().map(|share| share - 0.5).collect();
            let text = "ROD identifies the outlier points (share of them called so, less 1/2)";
            report.statements.push(Statement::difference(text, &above, 3));
            let all = found.iter().filter(|&&share| share == 1.0).count();
            report.own.push(Statement::always("ROD calls every outlier one", all, found.len()));
            for (what, values) in [
                ("share of the outliers (rows that the best rule decides wrongly) that ROD calls so", found),
                ("share of the rows called outliers that are", share(&hits, &called)),
            ] {
                report.rows.push(Row::new(what, None, Sample::of(&values), 3));
            }
        } else {
            let text = "the SVM is drawn toward the outliers (errs more than REH)";
            report.statements.push(Statement::difference(text, &gain(&self.machines[3]), 4));
            for machine in [&self.machines[1], &self.machines[2], &self.machines[4]] {
                let text = format!("the SVM errs more than {}", machine.name());
                report.own.push(Statement::difference(text, &gain(machine), 4));
            }
        }
        report.notes.push(format!(
            "The paper does not say which data its figure shows; here it is the first replication of its made-up data with R = {}, beta = {BETA}. \
             Statements are judged over all replications.",
            self.radius
        ));
        if self.names {
            report.notes.push(format!(
                "rho = {RHO} makes ROD drop a fifth of the rows whatever their number of outliers, of which there is about a tenth."
            ));
        } else {
            report.notes.push(format!(
                "lambda = {LAMBDA} for the centroid machine; its objective has no beta in print, here it has the same C = 1/beta as the others."
            ));
        }
        report.figures = vec![(String::new(), self.figure(results)?)];
        Ok(report)
    }
}
