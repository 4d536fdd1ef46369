//! Figure 6: precision over recall of ROD as a detector of outliers.
//!
//! Outliers are the training rows that the best rule decides wrongly. Rows are ordered by eta, as in the paper, and by the margin y f(x) of the
//! classifier that the relaxation leads to. After each row of the order there are a precision p and a recall r; F = 2 p r / (p + r), the best of
//! the order counts. R = 55; the paper's curves are those of the smallest beta.

use super::{BETAS, RHOS, beta_name, rho_of, train, wrong};
use crate::draw::{Axis, Figure, Look, Mark, Panel};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit, less};
use crate::lines::{Row, Statement};
use crate::papers;
use crate::report::Report;
use crate::verdict::{Printed, Sample};
use outlast::{Ablation, Design, Error, Result};

/// The experiment.
pub struct Detection;

const ABOUT: About = About {
    name: "ablation-figure6",
    paper: &papers::ABLATION,
    what: "precision and recall of ROD as a detector of outliers, by eta and by margin",
    reps: Reps::Printed(50),
    revision: 2,
    seconds: 0.06,
};

const RADIUS: f64 = 55.0;
const SHOWN: [f64; 2] = [BETAS[0], BETAS[3]];
/// By eta, by the margins of the relaxation's own classifier, by those of the classifier refined from there.
const ORDERS: [&str; 3] = ["eta", "margin", "refined margin"];

/// F as the paper tells it: low for large rho, else high.
const PRINTED: [&str; 7] = ["0.85", "0.85", "0.85", "0.85", "0.75", "0.75", "0.75"];

/// Recalls at which the precision is kept.
const LEVELS: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
const VALUES: [&str; 12] = ["f", "outliers", "p10", "p20", "p30", "p40", "p50", "p60", "p70", "p80", "p90", "p100"];

/// The best F of an order, and the best precision at each recall or beyond; NaN where there is no outlier.
fn curve(scores: &[f64], outliers: &[bool]) -> (f64, [f64; 10]) {
    let all = outliers.iter().filter(|&&outlier| outlier).count() as f64;
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let (mut hits, mut best, mut precisions) = (0.0, f64::NAN, [f64::NAN; 10]);
    for (at, &row) in order.iter().enumerate() {
        hits += f64::from(u8::from(outliers[row]));
        let (precision, recall) = (hits / (at as f64 + 1.0), hits / all);
        best = f64::max(best, 2.0 * hits / (at as f64 + 1.0 + all));
        for (level, kept) in LEVELS.iter().zip(&mut precisions) {
            if recall >= level - 1e-9 {
                *kept = f64::max(*kept, precision);
            }
        }
    }
    if all > 0.0 { (best, precisions) } else { (f64::NAN, [f64::NAN; 10]) }
}

impl Experiment for Detection {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        SHOWN.iter().map(|&beta| Setting::new(format!("beta={}", beta_name(beta)))).collect()
    }

    fn labels(&self) -> &'static [&'static str] {
        &["rho", "order"]
    }

    fn values(&self) -> &'static [&'static str] {
        &VALUES
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        let rows = train(RADIUS, &mut unit.random)?;
        let outliers: Vec<bool> = (0..rows.x.rows()).map(|row| wrong(&rows, row)).collect();
        let count = outliers.iter().filter(|&&outlier| outlier).count() as f64;
        let mut records = Vec::new();
        for rho in RHOS {
            let training = |refined: bool| {
                let method = Ablation::rod(1.0 / SHOWN[unit.setting]).inlier_fraction(rho_of(rho)).refine(refined);
                let model = method.fit_with(&rows.x, &rows.y, &unit.request())?;
                model.training.ok_or_else(|| Error::shape("training", "nothing", "margins and eta"))
            };
            let (own, refined) = (training(false)?, training(true)?);
            for (order, scores) in ORDERS.iter().zip([own.eta.unwrap_or_default(), own.margins, refined.margins]) {
                let (f, precisions) = curve(&scores, &outliers);
                let values = [&[f, count], &precisions[..]].concat();
                records.push(Record::new([rho.to_string(), order.to_string()], values));
            }
        }
        Ok(records)
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let mut report = Report::default();
        for (setting, &beta) in SHOWN.iter().enumerate() {
            for order in ORDERS {
                for (rho, printed) in RHOS.iter().zip(PRINTED) {
                    let here = Sample::of(&known(results, setting, *rho, order, "f"));
                    let printed = (setting == 0 && order == "eta").then(|| Printed::new(printed, ABOUT.reps.count()));
                    let what = format!("beta = {}, rho = {rho}, by {order}: F", beta_name(beta));
                    report.rows.push(Row::new(what, printed, here, 3));
                }
            }
        }
        let best = |setting: usize| {
            let mean = |rho: f64| Sample::of(&known(results, setting, rho, "eta", "f")).mean;
            RHOS.into_iter().max_by(|&a, &b| mean(a).total_cmp(&mean(b))).unwrap_or(RHOS[0])
        };
        let text = "where rho is too large detection is worse (F at rho = 0.8 less F at 0.98)";
        let f = |setting: usize, rho: f64, order: &str| results.values(setting, &[&rho.to_string(), order], "f");
        let finite = |values: Vec<f64>| -> Vec<f64> { values.into_iter().filter(|value| value.is_finite()).collect() };
        let differences = finite(less(&f(0, 0.8, "eta"), &f(0, 0.98, "eta")));
        report.statements.push(Statement::difference(text, &differences, 3));
        let text = "when beta is large a better F is achieved by tuning rho (best rho at 1e2 less best at 1e-4)";
        let differences = finite(less(&f(1, best(1), "eta"), &f(0, best(0), "eta")));
        report.statements.push(Statement::difference(text, &differences, 3));
        for (setting, &beta) in SHOWN.iter().enumerate() {
            for rho in RHOS {
                let differences = finite(less(&f(setting, rho, "margin"), &f(setting, rho, "eta")));
                let text = format!("beta = {}, rho = {rho}: the margin orders rows better than eta", beta_name(beta));
                report.own.push(Statement::difference(text, &differences, 3));
            }
        }
        report.notes = vec![
            "The paper says \"about 0.85\", and \"about 0.75\" for rho that is too large; both are read here as numbers of two digits, and rho >= 0.9 \
             as too large (a tenth of the rows are outliers)."
                .to_string(),
            "F is the best of each order, averaged over the replications; precision at a recall is the best at that recall or beyond, from a recall of 0.1 on.".to_string(),
            "eta and the margins are those of the relaxation, as in figures 4 and 5; the refined margins are those after alternation.".to_string(),
            "The paper does not say which R its figure has; R = 55, as in its figure 5.".to_string(),
        ];
        report.figures = vec![(String::new(), figure(results))];
        Ok(report)
    }
}

/// A number's values in the replications that have an outlier.
fn known(results: &Results, setting: usize, rho: f64, order: &str, value: &str) -> Vec<f64> {
    let values = results.values(setting, &[&rho.to_string(), order], value);
    values.into_iter().filter(|value| value.is_finite()).collect()
}

fn figure(results: &Results) -> String {
    let mut panels = Vec::new();
    for (setting, &beta) in SHOWN.iter().enumerate() {
        for order in ORDERS {
            let line = |(at, rho): (usize, &f64)| {
                let points = LEVELS
                    .iter()
                    .zip(&VALUES[2..])
                    .map(|(&level, value)| [level, Sample::of(&known(results, setting, *rho, order, value)).mean]);
                Mark::Line(points.collect(), Look::line(at))
            };
            panels.push(Panel {
                title: format!("beta = {}, by {order}", beta_name(beta)),
                x: Axis::linear("recall").range(0.0, 1.0),
                y: Axis::linear("precision").range(0.0, 1.05),
                marks: RHOS.iter().enumerate().map(line).collect(),
            });
        }
    }
    let legend = RHOS.iter().enumerate().map(|(at, rho)| (format!("rho = {rho}"), Look::line(at)));
    Figure::new("Precision over recall of ROD, R = 55", ORDERS.len(), panels).lines(legend).draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_recall_and_f_are_the_textbook_ones() {
        // order: outlier, row, outlier, row
        let (f, precisions) = curve(&[0.1, 0.2, 0.3, 0.4], &[true, false, true, false]);
        assert!((f - 0.8).abs() < 1e-12);
        assert_eq!(precisions[4], 1.0);
        assert!((precisions[9] - 2.0 / 3.0).abs() < 1e-12);
        assert!(curve(&[0.1], &[false]).0.is_nan());
    }
}
