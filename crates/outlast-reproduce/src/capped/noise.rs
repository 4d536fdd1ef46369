//! The experiment the abstract promises ("especially in the cases when the data noise level increases") and the paper lacks.
//!
//! A share of the training rows is spoiled: their labels are changed to another class ("flipped"), or changed and the rows moved out fourfold
//! from the centre of all rows ("moved"). Two thirds of the rows are for training, the test rows are not touched. The parameter is chosen by five
//! folds within the spoiled training rows.

use super::{Machine, PARAMETERS, accuracy, best, folds, over_folds};
use crate::data::{DataSet, Rows};
use crate::draw::{Axis, Figure, Look, Panel, with_intervals};
use crate::experiment::{About, Experiment, Record, Reps, Results, Setting, Unit};
use crate::lines::{Row, Statement};
use crate::papers;
use crate::random::Random;
use crate::report::Report;
use crate::samples::{changed, rows};
use crate::verdict::Sample;
use outlast::{Dense, Design, Labels, Result};

/// The experiment.
pub struct NoiseLevels;

const ABOUT: About = About {
    name: "capped-noise",
    paper: &papers::CAPPED,
    what: "accuracy as training rows are spoiled, which the abstract promises and the paper lacks",
    reps: Reps::NotPrinted(20),
    revision: 2,
    seconds: 16.0,
};

const MADE_UP: usize = 300;
const APART: f64 = 1.0;
const OUT: f64 = 4.0;

static CANCER: [DataSet; 1] = [DataSet {
    name: "breast_cancer_wisconsin",
    source: "the UCI Machine Learning Repository, Breast Cancer Wisconsin (Original)",
    columns: 9,
    classes: &[2, 4],
}];
static WINE: [DataSet; 1] =
    [DataSet { name: "wine", source: "the UCI Machine Learning Repository, Wine", columns: 13, classes: &[1, 2, 3] }];

const SETS: [&str; 3] = ["two normals", "breast cancer", "wine"];
const KINDS: [&str; 2] = ["flipped", "moved"];
const SHARES: [f64; 4] = [0.0, 0.1, 0.2, 0.3];
const MACHINES: [(Machine, Look); 4] = [
    (Machine::Svm, Look::line(7)),
    (Machine::SquaredHinge, Look::dashed(4, "7 4")),
    (Machine::Capped(2.0), Look::line(0)),
    (Machine::Capped(1.0), Look::line(2)),
];

/// Set, kind and share; without spoiled rows the kinds are the same.
fn cases() -> Vec<(usize, usize, f64)> {
    let of_set = |set: usize| {
        let spoiled = KINDS
            .iter()
            .enumerate()
            .flat_map(move |(kind, _)| SHARES[1..].iter().map(move |&share| (set, kind, share)));
        std::iter::once((set, 0, 0.0)).chain(spoiled)
    };
    (0..SETS.len()).flat_map(of_set).collect()
}

fn at(set: usize, kind: usize, share: f64) -> usize {
    let kind = if share == 0.0 { 0 } else { kind };
    cases()
        .iter()
        .position(|case| *case == (set, kind, share))
        .unwrap_or_else(|| panic!("there is no case {set}, {kind}, {share}"))
}

fn name((set, kind, share): (usize, usize, f64)) -> String {
    let kind = if share == 0.0 { "clean" } else { KINDS[kind] };
    format!("{} {kind} {}%", SETS[set], 100.0 * share)
}

/// All rows, columns with mean 0 and standard deviation 1.
fn all(set: usize, unit: &mut Unit) -> Result<Rows> {
    let rows = match set {
        0 => {
            let codes: Vec<u32> = (0..MADE_UP as u32).map(|row| row % 2).collect();
            let mut place = |class: u32| {
                let centre = if class == 1 { APART } else { -APART };
                [centre + unit.random.normal(), centre + unit.random.normal()]
            };
            let values = codes.iter().flat_map(|&class| place(class)).collect();
            rows(2, values, codes, 2)?
        }
        1 => (*unit.data.get(&CANCER[0])?).clone(),
        _ => (*unit.data.get(&WINE[0])?).clone(),
    };
    rows.standardized()
}

/// The same rows, some of them spoiled.
fn spoiled(rows: &Rows, moved: bool, share: f64, random: &mut Random) -> Result<Rows> {
    let (n, d, classes) = (rows.x.rows(), rows.x.cols(), rows.y.classes().len());
    let (mut values, mut codes) = (rows.x.values().to_vec(), rows.y.codes().to_vec());
    for row in random.choose((share * n as f64).round() as usize, n) {
        codes[row] = changed(codes[row], classes, random);
        if moved {
            values[row * d..(row + 1) * d].iter_mut().for_each(|x| *x *= OUT);
        }
    }
    Ok(Rows { x: Dense::new(n, d, values)?, y: Labels::from_codes(rows.y.classes().to_vec(), codes)? })
}

impl Experiment for NoiseLevels {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings(&self) -> Vec<Setting> {
        let data: [&'static [DataSet]; 3] = [&[], &CANCER, &WINE];
        cases().into_iter().map(|case| Setting::on(name(case), data[case.0])).collect()
    }

    fn labels(&self) -> &'static [&'static str] {
        &["method"]
    }

    fn values(&self) -> &'static [&'static str] {
        &["accuracy", "parameter"]
    }

    fn replicate(&self, mut unit: Unit) -> Result<Vec<Record>> {
        let (set, kind, share) = cases()[unit.setting];
        let all = all(set, &mut unit)?;
        let mut order = unit.random.choose(all.x.rows(), all.x.rows());
        order.truncate(unit.rows(order.len()));
        let (train, test) = order.split_at(2 * order.len() / 3);
        let train = spoiled(&all.some(train)?, kind == 1, share, &mut unit.random)?;
        let test = all.some(test)?;
        let folds = folds(&train, unit.random.below(1 << 30) as u64, unit.small)?;
        let parameters = unit.grid(PARAMETERS.to_vec());
        let record = |(machine, _): &(Machine, Look)| {
            let (parameter, _) = best(&parameters, &over_folds(*machine, &parameters, &folds, &unit.request())?);
            let here = accuracy(*machine, parameter, &train, &test, &unit.request())?;
            Ok(Record::new([machine.name()], [here, parameter]))
        };
        MACHINES.iter().map(record).collect()
    }

    fn report(&self, results: &Results) -> Result<Report> {
        let mut report = Report::default();
        for (setting, case) in cases().into_iter().enumerate().filter(|(at, _)| results.has(*at)) {
            for (machine, _) in MACHINES {
                let here = Sample::of(&results.values(setting, &[&machine.name()], "accuracy"));
                report.rows.push(Row::new(format!("{}, {}", name(case), machine.name()), None, here, 2));
            }
        }
        for set in (0..SETS.len()).filter(|&set| results.has(at(set, 0, 0.0))) {
            for kind in 0..KINDS.len() {
                statements(&mut report, results, set, kind);
            }
        }
        report.notes = vec![
            "The paper has no such experiment: nothing printed to compare with. The statements are read from its abstract: \"consistently improve the classification \
             performance, especially in the cases when the data noise level increases\"."
                .to_string(),
            format!("Two normals: {MADE_UP} rows in the plane, centres (1, 1) and (-1, -1), variance 1. Capped machines put 10 % of the rows beyond the cap, as the paper does, \
                     whatever the share of spoiled rows."),
            "Changed labels are changed to one of the others with equal chances, the same rows for every machine; the SVM is LIBSVM's, with votes."
                .to_string(),
        ];
        report.figures = vec![(String::new(), figure(results))];
        Ok(report)
    }
}

fn statements(report: &mut Report, results: &Results, set: usize, kind: usize) {
    let what = format!("{}, {}", SETS[set], KINDS[kind]);
    for robust in ["capped p=2", "capped p=1"] {
        let gain = |share: f64| results.differences(at(set, kind, share), &[robust], &["SVM"], "accuracy");
        for share in &SHARES[1..] {
            let text = format!("{what} {} %: {robust} is more accurate than the SVM", 100.0 * share);
            report.own.push(Statement::difference(text, &gain(*share), 2));
        }
        let (clean, most) = (gain(0.0), gain(SHARES[3]));
        let growth: Vec<f64> = most.iter().zip(&clean).map(|(most, clean)| most - clean).collect();
        let text = format!("{what}: the gain of {robust} over the SVM is larger at 30 % than at 0 %");
        report.own.push(Statement::difference(text, &growth, 2));
    }
}

fn figure(results: &Results) -> String {
    let mut panels = Vec::new();
    for set in (0..SETS.len()).filter(|&set| results.has(at(set, 0, 0.0))) {
        for kind in 0..KINDS.len() {
            let marks = MACHINES.iter().flat_map(|(machine, look)| {
                let of = |share: f64| Sample::of(&results.values(at(set, kind, share), &[&machine.name()], "accuracy"));
                with_intervals(&SHARES.map(|share| (100.0 * share, of(share))), *look)
            });
            panels.push(Panel {
                title: format!("{}, {}", SETS[set], ["labels changed", "labels changed, rows moved out"][kind]),
                x: Axis::linear("spoiled training rows, %"),
                y: Axis::linear("accuracy, %"),
                marks: marks.collect(),
            });
        }
    }
    let legend = MACHINES.map(|(machine, look)| (machine.name(), look));
    Figure::new("Accuracy as training rows are spoiled", 2, panels).lines(legend).draw()
}
