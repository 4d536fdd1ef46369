//! Figures 5 and 6: one training set, the boundaries of the three losses, and their support vectors.
//!
//! The first panel shows the rows and the Bayes boundary, the others a loss each, its support vectors with a dot in the middle. Every
//! replication is another training set; the figure shows the first.

use super::{LOSSES, TEST, TRAIN, TUNE, losses, titles};
use crate::data::Rows;
use crate::draw::contour::Place;
use crate::draw::decisions::{boundaries, boundaries_by};
use crate::draw::{Axis, Figure, Key, Look, Mark, Panel, Shape};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit};
use crate::lines::{Row, Statement};
use crate::papers;
use crate::report::Report;
use crate::samples::Sectors;
use crate::tuning::{error, gaussians, over, powers};
use crate::verdict::Sample;
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
        reps: Reps::OneShown(50),
        revision: 1,
        seconds: 0.05,
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
        reps: Reps::OneShown(50),
        revision: 1,
        seconds: 0.45,
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
        let of = |loss: &str, value: &str| results.values(0, &[loss], value);
        let shares = LOSSES.map(|loss| -> Vec<f64> {
            let (among, wrong) = (of(loss, "wrong_support_vectors"), of(loss, "wrong_labels"));
            among.iter().zip(&wrong).map(|(among, wrong)| among / wrong).collect()
        });
        let mut report = Report { figures: vec![(String::new(), self.figure(results)?)], ..Report::default() };
        for ((loss, title), share) in LOSSES.iter().zip(titles(3)).zip(&shares) {
            for (value, what, decimals) in [("error", "test error", 4), ("support_vectors", "support vectors", 1)] {
                report.rows.push(Row::new(format!("{title}: {what}"), None, Sample::of(&of(loss, value)), decimals));
            }
            let what = format!("{title}: share of the changed rows that are support vectors");
            report.rows.push(Row::new(what, None, Sample::of(share), 3));
        }
        self.judge(&mut report, results, &shares);
        report.notes = vec![
            self.note.to_string(),
            format!(
                "C, over half powers of ten from 0.1 to 1,000{}, is tuned on 1,000 rows. The paper shows one \"typical\" training set; the figure shows the \
                 first replication, whatever it looks like. Statements are judged over all replications.",
                if self.gaussian { ", with sigma among the quartiles of the between-class distances" } else { "" }
            ),
        ];
        Ok(report)
    }
}

impl Boundaries {
    /// What the paper says of one of its figures is ours for the other.
    fn judge(&self, report: &mut Report, results: &Results, shares: &[Vec<f64>; 3]) {
        let everything = shares[0].iter().filter(|&&share| share == 1.0).count();
        let text = "the SVM includes all outliers in its set of support vectors";
        let mut outliers = vec![Statement::always(text, everything, results.reps)];
        let mut machines = Vec::new();
        for ((loss, title), share) in LOSSES.iter().zip(titles(3)).zip(shares).skip(1) {
            let below: Vec<f64> = share.iter().map(|share| 0.5 - share).collect();
            let text = format!("{title} eliminates most outliers (1/2 less the share that are support vectors)");
            outliers.push(Statement::difference(text, &below, 3));
            let differences = |value: &str| results.differences(0, &["H1"], &[loss], value);
            let text = format!("{title} uses fewer support vectors than H_1");
            machines.push(Statement::difference(text, &differences("support_vectors"), 1));
            machines.push(Statement::difference(format!("{title} errs less than H_1"), &differences("error"), 4));
        }
        (report.statements, report.own) = if self.gaussian { (machines, outliers) } else { (outliers, machines) };
    }
}
