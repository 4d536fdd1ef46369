//! Figures 1 and 2: how the boundaries between three normal groups move with the utility (example 1), linear and Gaussian.
//!
//! Figure 1 has a panel for each matrix and a line for each a, figure 2 a row for each matrix and a panel for each a. Both show the first
//! replication; the records say which share of new rows each class gets, of all replications.

use super::{METHODS, utility, worths};
use crate::data::Rows;
use crate::draw::decisions::{boundaries, boundaries_by};
use crate::draw::{Axis, Figure, Key, Look, Mark, Panel, Shape};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit, less};
use crate::lines::{Row, Statement};
use crate::papers;
use crate::report::Report;
use crate::samples::triangle;
use crate::tuning::{self, gaussians, over, powers};
use crate::verdict::Sample;
use outlast::{Design, Kernel, Model, Result, Truncated};

/// One of the two figures.
pub struct Boundaries {
    about: About,
    rows: usize,
    gaussian: bool,
}

/// Figure 1.
pub const LINEAR: Boundaries = Boundaries {
    about: About {
        name: "wrsvm-figure1",
        paper: &papers::WRSVM,
        what: "boundaries as the utility moves, linear",
        reps: Reps::OneShown(5),
        revision: 1,
        seconds: 18.0,
    },
    rows: 1600,
    gaussian: false,
};

/// Figure 2.
pub const GAUSSIAN: Boundaries = Boundaries {
    about: About {
        name: "wrsvm-figure2",
        paper: &papers::WRSVM,
        what: "boundaries as the utility moves, Gaussian kernel",
        reps: Reps::OneShown(5),
        revision: 1,
        seconds: 34.0,
    },
    rows: 800,
    gaussian: true,
};

const AS: [f64; 5] = [0.0, 0.2, 0.4, 0.6, 0.8];
const NEW: usize = 10_000;
const REACH: f64 = 3.0;

/// How a class's rows look.
fn dot(class: usize) -> Look {
    Look { colour: class, width: 1.2, dash: "" }
}

/// How the boundary for one of the values of a looks, in colours other than those of the classes.
fn line_of(at: usize) -> Look {
    Look { colour: [7, 6, 3, 4, 5][at], width: 2.2, dash: "" }
}

/// A model for each matrix and a, matrix by matrix.
type Models = Vec<(usize, f64, Model)>;

impl Boundaries {
    /// Training rows, new rows, and the models.
    fn models(&self, mut unit: Unit) -> Result<(Rows, Rows, Models)> {
        let counts = [self.rows, self.rows, NEW].map(|rows| unit.rows(rows));
        let mut draw = |rows| triangle::draw(rows, 0.0, &mut unit.random);
        let (train, tune, new) = (draw(counts[0])?, draw(counts[1])?, draw(counts[2])?);
        let kernels = match self.gaussian {
            true => gaussians(&train)?,
            false => vec![Kernel::Linear],
        };
        let cs = unit.grid(powers(-2, 1, 1));
        let mut models = Vec::new();
        for matrix in 1..=3 {
            for a in AS {
                let worth = utility(matrix, a);
                let loss = |model: &_| tuning::utility(model, &tune, &worth).map(|utility| -utility);
                let method = Truncated::new(1.0).truncation(METHODS[0].1).utility(worth.clone());
                let best = over(&kernels, &cs, &method, &train, &unit.request(), loss)?;
                models.push((matrix, a, best.model));
            }
        }
        Ok((train, new, models))
    }

    fn lines(&self, model: &Model, look: Look) -> Result<Vec<Mark>> {
        Ok(boundaries(model, -REACH, REACH)?.into_iter().map(|line| Mark::Line(line, look)).collect())
    }

    fn figure(&self, results: &Results) -> Result<String> {
        let (train, _, models) = self.models(results.unit(0, 0))?;
        let axis = |label| Axis::linear(label).range(-REACH, REACH);
        let panel = |title: String, marks| Panel { title, x: axis("x_1"), y: axis("x_2"), marks };
        let classes = |every: usize| -> Vec<Mark> {
            let of_class = |class: usize| {
                let rows = (0..train.x.rows()).step_by(every).filter(|&row| train.y.codes()[row] as usize == class);
                let places = rows.map(|row| [train.x.row(row)[0], train.x.row(row)[1]]).collect();
                Mark::Points(places, Shape::Dot, dot(class))
            };
            (0..3).map(of_class).collect()
        };
        let keys =
            (0..3).map(|class| Key { name: format!("class {}", class + 1), look: dot(class), shape: Some(Shape::Dot) });
        let mut panels = Vec::new();
        if !self.gaussian {
            for matrix in 1..=3 {
                let mut marks = classes(4);
                for (at, (_, _, model)) in models.iter().filter(|model| model.0 == matrix).enumerate() {
                    marks.extend(self.lines(model, line_of(at))?);
                }
                panels.push(panel(format!("U_{matrix},a"), marks));
            }
            let legend = AS.iter().enumerate().map(|(at, a)| (format!("a = {a}"), line_of(at)));
            let mut figure = Figure::new("Boundaries as the utility moves, linear", 3, panels).lines(legend);
            figure.legend.extend(keys);
            return Ok(figure.draw());
        }
        for (matrix, a, model) in &models {
            let mut marks = classes(2);
            let bayes = boundaries_by(-REACH, REACH, |at| worths(&triangle::chances(at, 0.0), &utility(*matrix, *a)));
            marks.extend(bayes.into_iter().map(|line| Mark::Line(line, Look::dashed(7, "3 4"))));
            marks.extend(self.lines(model, Look::line(7))?);
            panels.push(panel(format!("U_{matrix}, a = {a}"), marks));
        }
        let legend = [("boundary", Look::line(7)), ("Bayes boundary", Look::dashed(7, "3 4"))];
        let mut figure =
            Figure::new("Boundaries as the utility moves, Gaussian kernel", AS.len(), panels).lines(legend);
        figure.legend.extend(keys);
        Ok(figure.size(230.0, 230.0).draw())
    }
}

impl Experiment for Boundaries {
    fn about(&self) -> &'static About {
        // both experiments are constants
        if self.gaussian { const { &GAUSSIAN.about } } else { const { &LINEAR.about } }
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting::new(format!("n={}", self.rows))]
    }

    fn labels(&self) -> &'static [&'static str] {
        &["utility", "a"]
    }

    fn values(&self) -> &'static [&'static str] {
        &["share_1", "share_2", "share_3", "bayes_1", "bayes_2", "bayes_3", "worth", "C"]
    }

    fn replicate(&self, unit: Unit) -> Result<Vec<Record>> {
        let (_, new, models) = self.models(unit)?;
        let n = new.x.rows() as f64;
        let share =
            |decided: &[u32]| [0, 1, 2].map(|class| decided.iter().filter(|&&to| to == class).count() as f64 / n);
        let record = |(matrix, a, model): &(usize, f64, Model)| {
            let worth = utility(*matrix, *a);
            let best = |row: usize| {
                let chances = triangle::chances([new.x.row(row)[0], new.x.row(row)[1]], 0.0);
                super::bayes(&chances, &worth).0 as u32
            };
            let bayes: Vec<u32> = (0..new.x.rows()).map(best).collect();
            let mut values = [share(&model.predict_codes(&new.x)?), share(&bayes)].concat();
            values.extend([tuning::utility(model, &new, &worth)?, model.summary.c]);
            Ok(Record::new([format!("U{matrix}"), a.to_string()], values))
        };
        models.iter().map(record).collect()
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let moves = [
            ("U1", "share_1", false),
            ("U1", "share_2", true),
            ("U2", "share_1", false),
            ("U2", "share_2", true),
            ("U2", "share_3", true),
            ("U3", "share_1", true),
            ("U3", "share_2", false),
            ("U3", "share_3", false),
        ];
        let mut report = Report { figures: vec![(String::new(), self.figure(results)?)], ..Report::default() };
        for (matrix, value, grows) in moves {
            let class = &value[6..];
            let share = |a: f64| results.values(0, &[matrix, &a.to_string()], value);
            let (first, last) = (share(AS[0]), share(AS[AS.len() - 1]));
            let (word, differences) =
                if grows { ("larger", less(&last, &first)) } else { ("smaller", less(&first, &last)) };
            let text = format!("{matrix}: the region of class {class} becomes {word} as a grows from 0 to 0.8");
            report.statements.push(Statement::difference(text, &differences, 3));
            for a in AS {
                let bayes =
                    Sample::of(&results.values(0, &[matrix, &a.to_string()], &value.replace("share", "bayes"))).mean;
                let what = format!("{matrix}, a = {a}: share of class {class} (Bayes rule {bayes:.3})");
                report.rows.push(Row::new(what, None, Sample::of(&share(a)), 3));
            }
        }
        report.notes = vec![
            format!("C is tuned on {} more rows, by their utility, over the powers of ten from 0.01 to 10{}; not printed in the paper.", self.rows, if self.gaussian { ", sigma over the quartiles of the between-class distances" } else { "" }),
            "The values of a in the paper's figure can't be read from its text; a = 0, 0.2, ..., 0.8 are drawn.".to_string(),
            "A region is measured by the share of 10,000 new rows decided for its class; it grows or shrinks where its share at a = 0.8 is larger or smaller than at a = 0. The figure shows the first replication.".to_string(),
        ];
        if self.gaussian {
            report.notes.push("Every second training row is drawn; the broken lines are the Bayes rule's.".to_string());
        }
        Ok(report)
    }
}
