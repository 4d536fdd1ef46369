//! Figure 1: the penalties |theta|^q and the minimisers of (theta - z)^2 + 3 |theta|^q.

use crate::draw::{Axis, Figure, Look, Mark, Panel};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit};
use crate::lines::Statement;
use crate::papers;
use crate::report::Report;
use outlast::Result;

/// The experiment.
pub struct Penalties;

const ABOUT: About = About {
    name: "lq-figure1",
    paper: &papers::LQ,
    what: "L_q penalties and what they do to one coefficient",
    reps: Reps::Exact,
    revision: 1,
    seconds: 0.01,
};

const LAMBDA: f64 = 3.0;
const QS: [f64; 5] = [0.1, 0.5, 1.0, 1.5, 2.0];
const REACH: f64 = 5.0;
const POINTS: usize = 401;

fn objective(theta: f64, z: f64, q: f64) -> f64 {
    (theta - z).powi(2) + LAMBDA * theta.abs().powf(q)
}

/// The minimiser. On (0, |z|) the derivative 2 (theta - |z|) + lambda q theta^(q-1) rises from where the second one is 0 on; what it
/// has there is a root or nothing, and a root is compared with 0.
pub fn minimiser(z: f64, q: f64) -> f64 {
    let far = z.abs();
    let slope = |theta: f64| 2.0 * (theta - far) + LAMBDA * q * theta.powf(q - 1.0);
    let mut low = if q < 1.0 { (LAMBDA * q * (1.0 - q) / 2.0).powf(1.0 / (2.0 - q)) } else { 0.0 };
    if low >= far || (low > 0.0 && slope(low) >= 0.0) || (q == 1.0 && 2.0 * far <= LAMBDA) {
        return 0.0;
    }
    let mut high = far;
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if slope(middle) < 0.0 { low = middle } else { high = middle }
    }
    let root = 0.5 * (low + high);
    if objective(root, far, q) < objective(0.0, far, q) { root * z.signum() } else { 0.0 }
}

/// A line that is interrupted where it jumps.
fn broken(points: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    let mut line: Vec<[f64; 2]> = Vec::with_capacity(points.len());
    for point in points {
        let jumps = |last: &[f64; 2]| (point[1] - last[1]).abs() > 0.5;
        if line.last().is_some_and(jumps) {
            line.push([point[0], f64::NAN]);
        }
        line.push(point);
    }
    line
}

/// The |z| below which the minimiser is 0, as printed (q < 1).
fn threshold(q: f64) -> f64 {
    (LAMBDA * (2.0 - q) / 2.0 * ((2.0 - q) / (2.0 * (1.0 - q))).powf(1.0 - q)).powf(1.0 / (2.0 - q))
}

/// The |z| below which the minimiser is 0, found by bisection.
fn found_threshold(q: f64) -> f64 {
    let (mut low, mut high) = (0.0, REACH);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if minimiser(middle, q) == 0.0 { low = middle } else { high = middle }
    }
    high
}

impl Experiment for Penalties {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting::new("lambda=3")]
    }

    fn labels(&self) -> &'static [&'static str] {
        &["q"]
    }

    fn values(&self) -> &'static [&'static str] {
        &["z", "penalty", "minimiser"]
    }

    fn replicate(&self, _: Unit) -> Result<Vec<Record>> {
        let at = |step: usize| REACH * (2.0 * step as f64 / (POINTS - 1) as f64 - 1.0);
        let record = |q: f64| move |z: f64| Record::new([q.to_string()], [z, z.abs().powf(q), minimiser(z, q)]);
        Ok(QS.iter().flat_map(|&q| (0..POINTS).map(at).map(record(q))).collect())
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let column = |q: f64, value: &str| results.values(0, &[&q.to_string()], value);
        let pairs = |q: f64, value: &str| -> Vec<[f64; 2]> {
            column(q, "z").into_iter().zip(column(q, value)).map(|(z, value)| [z, value]).collect()
        };
        let off = |q: f64, formula: &dyn Fn(f64) -> f64| {
            pairs(q, "minimiser").iter().map(|[z, found]| (found - formula(*z)).abs()).fold(0.0, f64::max)
        };
        let (ridge, lasso) =
            (off(2.0, &|z| z / (LAMBDA + 1.0)), off(1.0, &|z| z.signum() * (z.abs() - LAMBDA / 2.0).max(0.0)));
        let mut report = Report::default();
        for q in [0.1, 0.5] {
            let (printed, found) = (threshold(q), found_threshold(q));
            let text = format!("q = {q}: the formula for the abs(z) below which theta = 0");
            report.statements.push(Statement::exact(
                text,
                (printed - found).abs() < 1e-6,
                format!("{printed:.6}; found {found:.6}"),
            ));
        }
        let wrong = column(1.0, "z").into_iter().filter(|&z| {
            // theta = z costs lambda, theta = 0 costs z^2
            let keeps = z.abs() < LAMBDA.sqrt();
            let (cost, other) = if keeps { (LAMBDA, z * z) } else { (z * z, LAMBDA) };
            z != 0.0 && cost > other + 1e-12
        });
        let (wrong, all) = (wrong.count(), column(1.0, "z").len());
        report.statements.extend([
            Statement::exact(
                "q = 2: theta = z / (lambda + 1)",
                ridge < 1e-9,
                format!("largest difference {ridge:.0e}"),
            ),
            Statement::exact(
                "q = 1: theta = sign(z) [abs(z) - lambda/2]_+",
                lasso < 1e-9,
                format!("largest difference {lasso:.0e}"),
            ),
            Statement::exact(
                "q = 0: theta = z where abs(z) < sqrt(lambda), else 0",
                wrong == 0,
                format!("at {wrong} of {all} points z the other choice costs less"),
            ),
        ]);
        report.notes = vec![
            "The paper's threshold for q < 1 (from Knight and Fu) is put in numbers, and compared with where the minimiser found leaves 0.".to_string(),
            "q = 0: theta = z costs lambda and theta = 0 costs z^2, so that the inequality has to be the other way round.".to_string(),
            "Which q the figure shows is not printed.".to_string(),
        ];
        let panel = |title: &str, label: &str, value: &str, reach: Option<(f64, f64)>| Panel {
            title: title.to_string(),
            x: Axis::linear(if value == "penalty" { "theta" } else { "z" }),
            y: Axis { range: reach, ..Axis::linear(label) },
            marks: QS
                .iter()
                .enumerate()
                .map(|(at, &q)| {
                    Mark::Line(
                        if value == "minimiser" { broken(pairs(q, value)) } else { pairs(q, value) },
                        Look::line(at),
                    )
                })
                .collect(),
        };
        let panels = vec![
            panel("Penalties", "|theta|^q", "penalty", Some((0.0, 5.0))),
            panel("Minimisers, lambda = 3", "theta", "minimiser", None),
        ];
        let legend = QS.iter().enumerate().map(|(at, q)| (format!("q = {q}"), Look::line(at)));
        report.figures =
            vec![(String::new(), Figure::new("L_q penalties and minimisers", 2, panels).lines(legend).draw())];
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_point_of_a_fine_grid_is_better() {
        for q in [0.1, 0.5, 0.9, 1.0, 1.3, 2.0] {
            for z in [-4.0, -1.9, -0.3, 0.0, 0.7, 1.4, 1.6, 2.2, 5.0] {
                let found = objective(minimiser(z, q), z, q);
                let grid = (0..=60_000).map(|step| objective(-6.0 + 2e-4 * f64::from(step), z, q));
                assert!(found <= grid.fold(f64::INFINITY, f64::min) + 1e-9, "q {q}, z {z}");
            }
        }
    }
}
