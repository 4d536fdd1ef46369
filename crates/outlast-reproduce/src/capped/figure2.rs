//! Figure 2: accuracy over the parameter.

use super::{Machine, PARAMETERS, SETS, folds, over_folds, scaled, settings};
use crate::draw::{Axis, Figure, Look, Panel, with_intervals};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit, less};
use crate::lines::{Row, Statement};
use crate::papers;
use crate::report::Report;
use crate::verdict::Sample;
use outlast::Result;

/// The experiment.
pub struct Parameters;

const ABOUT: About = About {
    name: "capped-figure2",
    paper: &papers::CAPPED,
    what: "accuracy over the parameter, three machines",
    reps: Reps::NotPrinted(10),
    revision: 2,
    seconds: 18.0,
};

const MACHINES: [(Machine, Look); 4] = [
    (Machine::Svm, Look::line(7)),
    (Machine::LeastSquares, Look::dashed(4, "7 4")),
    (Machine::Capped(2.0), Look::line(0)),
    (Machine::Capped(1.0), Look::dashed(2, "2 3")),
];

fn name(parameter: f64) -> String {
    format!("{parameter:.0e}")
}

impl Experiment for Parameters {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        settings()
    }

    fn labels(&self) -> &'static [&'static str] {
        &["method", "parameter"]
    }

    fn values(&self) -> &'static [&'static str] {
        &["accuracy"]
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        let rows = scaled(&unit)?;
        let folds = folds(&rows, unit.random.below(1 << 30) as u64, unit.small)?;
        let parameters = unit.grid(PARAMETERS.to_vec());
        let mut records = Vec::new();
        for (machine, _) in MACHINES {
            let found = over_folds(machine, &parameters, &folds, &unit.request())?;
            for (&parameter, accuracy) in parameters.iter().zip(found) {
                records.push(Record::new([machine.name(), name(parameter)], [accuracy]));
            }
        }
        Ok(records)
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let mut report = Report::default();
        let mut panels = Vec::new();
        for (setting, (set, ..)) in SETS.iter().enumerate().filter(|(at, _)| results.has(*at)) {
            let values = |machine: Machine, parameter: f64| {
                results.values(setting, &[&machine.name(), &name(parameter)], "accuracy")
            };
            let mut marks = Vec::new();
            for (machine, look) in MACHINES {
                let points = PARAMETERS.map(|parameter| (parameter, Sample::of(&values(machine, parameter))));
                marks.extend(with_intervals(&points, look));
                let spread = Sample::of(&spreads(results, &values, machine));
                report.rows.push(Row::new(format!("{set}, {}: best less worst, %", machine.name()), None, spread, 2));
            }
            for (capped, _) in &MACHINES[2..] {
                for other in [Machine::Svm, Machine::LeastSquares] {
                    let differences = less(&spreads(results, &values, other), &spreads(results, &values, *capped));
                    let text = format!("{set}: {} depends less on its parameter than {}", capped.name(), other.name());
                    let statement = Statement::difference(text, &differences, 2);
                    if *capped == Machine::Capped(2.0) {
                        report.statements.push(statement)
                    } else {
                        report.own.push(statement)
                    }
                }
            }
            panels.push(Panel {
                title: set.to_string(),
                x: Axis::log("parameter"),
                y: Axis::linear("accuracy, %"),
                marks,
            });
        }
        report.notes = vec![
            "The parameter is C for the SVM and gamma = 1/(2C) for the others, over the same six values: the axis runs from strong to weak regularisation for the one and \
             from weak to strong for the others, in print as here, so that the ranges compared are not the same."
                .to_string(),
            "\"More robust to the setting of parameters\" is judged by the best accuracy less the worst over the six values, in each division. p is not printed; p = 2 is counted."
                .to_string(),
        ];
        let legend = MACHINES.map(|(machine, look)| (machine.name(), look));
        let figure = Figure::new("Accuracy over the parameter, 95 % intervals", 2, panels).lines(legend);
        report.figures = vec![(String::new(), figure.draw())];
        Ok(report)
    }
}

/// The best accuracy less the worst over the parameters, of each replication.
fn spreads(results: &Results, values: &dyn Fn(Machine, f64) -> Vec<f64>, machine: Machine) -> Vec<f64> {
    let all = PARAMETERS.map(|parameter| values(machine, parameter));
    let of = |rep: usize| {
        let known = || all.iter().filter_map(|values| values.get(rep).copied());
        known().fold(f64::NEG_INFINITY, f64::max) - known().fold(f64::INFINITY, f64::min)
    };
    (0..results.reps).map(of).collect()
}
