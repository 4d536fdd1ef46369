//! Figures 2 and 3: one training set with a ring of outliers, the lines of the machines, and the rows ROD calls outliers.
//!
//! The paper says nothing of the data behind either; the made-up data of its experiments are taken, R = 35 for figure 2 and R = 55 for
//! figure 3, beta = 100. Every replication is another training set; the figures show the first.

use super::{Machine, RHO, TEST, notes, test, train, wrong};
use crate::data::Rows;
use crate::draw::decisions::boundaries;
use crate::draw::{Axis, Figure, Key, Look, Mark, Panel, Shape};
use crate::experiment::{About, Experiment, Record, Results, Setting, Unit};
use crate::papers;
use crate::report::Report;
use crate::tuning::error;
use crate::verdict::{Row, Sample, Statement};
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
        reps: 1,
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
        reps: 1,
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

    /// The rows that ROD, refined, drops.
    fn dropped(&self, rows: &Rows, unit: &Unit) -> Result<Vec<bool>> {
        if !self.names {
            return Ok(vec![false; rows.x.rows()]);
        }
        let method = Ablation::rod(1.0 / BETA).inlier_fraction(super::rho_of(RHO));
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
            let look = Look::line(at + 2);
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
        let sum = |machine: &Machine, value: &str| results.values(0, &[&machine.name()], value).iter().sum::<f64>();
        let mut report = Report { notes: notes(), ..Report::default() };
        for machine in self.machines {
            let here = Sample::of(&results.values(0, &[&machine.name()], "error"));
            report.rows.push(Row::new(format!("{}: test error", machine.name()), None, here, 4));
        }
        let robust = self.machines[self.machines.len() - 1];
        let (text, other) = match self.names {
            true => ("ROD finds a much better classifier than the soft margin SVM (half its error at most)", robust),
            false => ("the SVM is drawn toward the outliers (errs twice as much as REH at least)", self.machines[3]),
        };
        let errors = [self.machines[0], other].map(|machine| sum(&machine, "error") / results.reps as f64);
        report.statements.push(Statement::check(
            text,
            errors[1] <= 0.5 * errors[0],
            format!("test error {:.4} against {:.4}", errors[1], errors[0]),
        ));
        if self.names {
            let (misplaced, called, hits) =
                (sum(&robust, "wrong_rows"), sum(&robust, "called_outliers"), sum(&robust, "called_and_wrong"));
            report.statements.push(Statement::check(
                "ROD identifies the outlier points",
                hits >= 0.8 * misplaced,
                format!("{called} rows are called outliers; of {misplaced} rows on the wrong side of the best rule {hits} are among them"),
            ));
        }
        report.notes.push(format!(
            "The paper does not say which data its figure shows; here it is the first replication of its made-up data with R = {}, beta = {BETA}.",
            self.radius
        ));
        if self.names {
            report.notes.push(format!(
                "rho = {RHO} makes ROD drop a fifth of the rows whatever their number of outliers; with about a tenth there, rows that are only \
                 difficult are called outliers as well."
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
