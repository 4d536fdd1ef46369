//! Figures 5 and 6: one training set, the boundaries of the three losses, and their support vectors.
//!
//! The first panel shows the rows and the Bayes boundary, the others a loss each, its support vectors with a dot in the middle. Every
//! replication is another training set; the figure shows the first.

use super::{LOSSES, TEST, TRAIN, TUNE, losses, titles};
use crate::data::Rows;
use crate::draw::contour::Place;
use crate::draw::decisions::{boundaries, boundaries_by};
use crate::draw::{Axis, Figure, Key, Look, Mark, Panel, Shape};
use crate::experiment::{About, Experiment, Record, Results, Setting, Unit};
use crate::papers;
use crate::report::Report;
use crate::samples::Sectors;
use crate::tuning::{error, gaussians, over, powers};
use crate::verdict::Statement;
use outlast::{Design, Kernel, Model, Result, Truncated};

/// One of the two figures.
pub struct Boundaries {
    about: About,
    sectors: Sectors,
    gaussian: bool,
    share: f64,
    note: &'static str,
}

/// Figure 5.
pub const LINEAR: Boundaries = Boundaries {
    about: About {
        name: "rsvm-figure5",
        paper: &papers::RSVM,
        what: "boundaries and support vectors of one training set, linear",
        reps: 1,
        seconds: 0.2,
    },
    sectors: Sectors::equal(3),
    gaussian: false,
    share: 0.2,
    note: "Three classes (T_-.5 is drawn), 20 % of the labels changed, as in the paper.",
};

/// Figure 6.
pub const GAUSSIAN: Boundaries = Boundaries {
    about: About {
        name: "rsvm-figure6",
        paper: &papers::RSVM,
        what: "boundaries and support vectors of one training set, Gaussian kernel",
        reps: 1,
        seconds: 1.0,
    },
    sectors: Sectors::SIX,
    gaussian: true,
    share: 0.1,
    note: "The paper does not say which share of the labels was changed for its figure; 10 % here.",
};

/// Half the width of the square shown.
const REACH: f64 = 1.05;

impl Boundaries {
    fn train(&self, unit: &mut Unit) -> Result<[Rows; 3]> {
        let counts = [TRAIN, TUNE, TEST].map(|rows| unit.rows(rows));
        let mut draw = |rows| self.sectors.draw(rows, 2, self.share, &mut unit.random);
        Ok([draw(counts[0])?, draw(counts[1])?, draw(counts[2])?])
    }

    /// The model of each loss.
    fn models(&self, [train, tune, _]: &[Rows; 3], unit: &Unit) -> Result<Vec<Model>> {
        let kernels = match self.gaussian {
            true => gaussians(train)?,
            false => vec![Kernel::Linear],
        };
        let cs = unit.grid(powers(-1, 3, 2));
        let mut models = Vec::new();
        for (_, truncation) in losses(3) {
            let method = Truncated::new(1.0).truncation(truncation);
            let best = over(&kernels, &cs, &method, train, &unit.request(), |model| error(model, tune))?;
            models.push(best.model);
        }
        Ok(models)
    }

    /// Whether a row's label was changed.
    fn wrong(&self, rows: &Rows, row: usize) -> bool {
        self.sectors.class(rows.x.row(row)[0], rows.x.row(row)[1]) != rows.y.codes()[row]
    }

    fn panel(&self, title: String, rows: &Rows, lines: Vec<Vec<Place>>, support: &[u32]) -> Panel {
        let mut marks: Vec<Mark> = lines.into_iter().map(|line| Mark::Line(line, Look::line(7))).collect();
        let place = |row: usize| [rows.x.row(row)[0], rows.x.row(row)[1]];
        for class in 0..self.sectors.count {
            let of_class = (0..rows.x.rows()).filter(|&row| rows.y.codes()[row] as usize == class);
            let look = Look { colour: class, width: 4.0, dash: "" };
            marks.push(Mark::Points(of_class.map(place).collect(), Shape::of(class), look));
        }
        let dots = support.iter().map(|&row| place(row as usize)).collect();
        marks.push(Mark::Points(dots, Shape::Dot, Look { colour: 7, width: 1.6, dash: "" }));
        let axis = |label| Axis::linear(label).range(-REACH, REACH);
        Panel { title, x: axis("x_1"), y: axis("x_2"), marks }
    }

    fn figure(&self, results: &Results) -> Result<String> {
        let mut unit = results.unit(0, 0);
        let rows = self.train(&mut unit)?;
        let models = self.models(&rows, &unit)?;
        let bayes = boundaries_by(-REACH, REACH, |at| self.sectors.closeness(at));
        let mut panels = vec![self.panel("(a) Bayes boundary".to_string(), &rows[0], bayes, &[])];
        for ((model, title), letter) in models.iter().zip(titles(3)).zip(["b", "c", "d"]) {
            let title = format!("({letter}) {title}: {} support vectors", model.support_count());
            panels.push(self.panel(title, &rows[0], boundaries(model, -REACH, REACH)?, &model.predictor.support));
        }
        let title = format!("One training set, {} % of the labels changed", 100.0 * self.share);
        let mut figure = Figure::new(title, 2, panels).size(320.0, 320.0);
        let key = |name: String, shape, look| Key { name, look, shape: Some(shape) };
        let classes = (0..self.sectors.count).map(|class| {
            key(format!("class {}", class + 1), Shape::of(class), Look { colour: class, width: 4.0, dash: "" })
        });
        figure.legend = classes.collect();
        figure.legend.push(key("support vector".to_string(), Shape::Dot, Look { colour: 7, width: 1.6, dash: "" }));
        Ok(figure.draw())
    }
}

impl Experiment for Boundaries {
    fn about(&self) -> &'static About {
        // both experiments are constants
        if self.gaussian { const { &GAUSSIAN.about } } else { const { &LINEAR.about } }
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting::new(format!("{}%", 100.0 * self.share))]
    }

    fn labels(&self) -> &'static [&'static str] {
        &["loss"]
    }

    fn values(&self) -> &'static [&'static str] {
        &["error", "support_vectors", "wrong_labels", "wrong_support_vectors", "C"]
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        let rows = self.train(&mut unit)?;
        let models = self.models(&rows, &unit)?;
        let train = &rows[0];
        let wrong = (0..train.x.rows()).filter(|&row| self.wrong(train, row)).count();
        let record = |(loss, model): (&str, &Model)| {
            let support = &model.predictor.support;
            let among = support.iter().filter(|&&row| self.wrong(train, row as usize)).count();
            let values = [error(model, &rows[2])?, support.len() as f64, wrong as f64, among as f64, model.summary.c];
            Ok(Record::new([loss], values))
        };
        LOSSES.into_iter().zip(&models).map(record).collect()
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let sum = |loss: &str, value: &str| results.values(0, &[loss], value).iter().sum::<f64>();
        let wrong = sum("H1", "wrong_labels");
        let among = LOSSES.map(|loss| sum(loss, "wrong_support_vectors"));
        let found = |at: usize| format!("{} of {wrong} changed rows are support vectors", among[at]);
        let fewer = LOSSES.map(|loss| sum(loss, "support_vectors"));
        let statements = vec![
            Statement::check("the SVM has all outliers among its support vectors", among[0] == wrong, found(0)),
            Statement::check("T_0 has most outliers not among them", among[1] < wrong / 2.0, found(1)),
            Statement::check("T_-.5 has most outliers not among them", among[2] < wrong / 2.0, found(2)),
            Statement::check(
                "truncation leaves fewer support vectors",
                fewer[1] < fewer[0] && fewer[2] < fewer[0],
                format!("H_1 {}, T_0 {}, T_-.5 {}", fewer[0], fewer[1], fewer[2]),
            ),
        ];
        let notes = vec![
            self.note.to_string(),
            "C (and sigma) are tuned on 1,000 rows. The paper shows one \"typical\" training set; here it is the first replication, whatever \
             it looks like. Statements are about all replications together."
                .to_string(),
            "The paper says the support vectors of the truncated machine are a subset of the plain one's. They need not be: rows may \
             become support vectors when others are let go."
                .to_string(),
        ];
        Ok(Report { statements, notes, figures: vec![(String::new(), self.figure(results)?)], ..Report::default() })
    }
}
