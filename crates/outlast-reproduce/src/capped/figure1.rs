//! Figure 1: losses of one side and of both, over y f(x) - 1.

use crate::draw::{Axis, Figure, Look, Mark, Panel};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit};
use crate::lines::Statement;
use crate::papers;
use crate::report::Report;
use outlast::Result;
use outlast::problem::concave::{Robust, from_name};

/// The experiment.
pub struct Losses;

const ABOUT: About = About {
    name: "capped-figure1",
    paper: &papers::CAPPED,
    what: "hinge, absolute, squared hinge, squared and capped hinge loss",
    reps: Reps::Exact,
    revision: 1,
    seconds: 0.01,
};

const TITLES: [(&str, &str); 5] = [
    ("hinge", "(a) hinge"),
    ("absolute", "(b) l_1"),
    ("squared_hinge", "(c) squared hinge"),
    ("squared", "(d) l_2"),
    ("capped", "(e) capped hinge, p = 1, cap 1"),
];
const CAP: f64 = 1.0;
const REACH: f64 = 3.0;
const POINTS: usize = 121;

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
        &["u", "hinge", "absolute", "squared_hinge", "squared", "capped", "library"]
    }

    fn replicate(&self, _: Unit) -> Result<Vec<Record>> {
        let library = Robust::new(from_name("lp")?, 1.0, CAP, 1);
        let record = |step: usize| {
            let u = REACH * (2.0 * step as f64 / (POINTS - 1) as f64 - 1.0);
            let hinge = (-u).max(0.0);
            let of_library = library.concave.value(library.base.value(1.0 + u));
            Record::new([""; 0], [u, hinge, u.abs(), hinge * hinge, u * u, hinge.min(CAP), of_library])
        };
        Ok((0..POINTS).map(record).collect())
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let column = |name: &str| results.values(0, &[], name);
        let u = column("u");
        let panel = |(name, title): &(&str, &str)| Panel {
            title: title.to_string(),
            x: Axis::linear("y f(x) - 1"),
            y: Axis::linear("loss").range(-0.2, 4.0),
            marks: vec![Mark::Line(u.iter().zip(column(name)).map(|(&u, value)| [u, value]).collect(), Look::line(0))],
        };
        let figure = Figure::new("Losses of one side and of both", 3, TITLES.iter().map(panel).collect());
        let off = column("capped").iter().zip(column("library")).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        // a row is decided rightly where y f > 0, that is u > -1
        let step = |u: f64| f64::from(u8::from(u <= -1.0));
        let most = u.iter().zip(column("capped")).map(|(&u, loss)| (loss - step(u)).abs()).fold(0.0, f64::max);
        Ok(Report {
            statements: vec![
                Statement::exact(
                    "the capped loss is min([1 - y f]_+^p, cap)",
                    off < 1e-12,
                    format!("largest difference from the library's loss over {POINTS} points: {off:.0e}"),
                ),
                Statement::exact(
                    "p = 1 with cap 1 minimises the training error (footnote 1)",
                    most < 1e-12,
                    format!("differs from the 0-1 loss by up to {most:.2} over {POINTS} points"),
                ),
            ],
            notes: vec!["The footnote holds only without a penalty (gamma = 0), where f may be scaled up: a row inside the margin costs 1 - y f > 0 though it is decided rightly."
                .to_string(), "Algorithm 2 as printed divides by 0 for p < 2: after its fourth step every row outside the margin has g_i = 0 exactly. With something \
                         small added it runs but stalls; the library solves the weighted problem (24) jointly instead."
                .to_string()],
            figures: vec![(String::new(), figure.size(260.0, 190.0).draw())],
            ..Report::default()
        })
    }
}
