//! Liu, Zhang, Park and Ahn, "The L_q support vector machine".
//!
//! Every experiment compares the exponent 1, the exponent 2 and the exponent the data choose. One search over C and q finds all three: its grid
//! has 1 and 2 among its exponents.

mod examples;
mod figure1;
mod figure2;
mod figure3;
mod figure4;
mod figure5;
mod table1;
mod table2;
mod table3;

pub use figure1::Penalties;
pub use figure2::Exponents;
pub use figure3::Sizes;
pub use figure4::Curved;
pub use figure5::Boundaries;
pub use table1::Noise;
pub use table2::Triangle;
pub use table3::Real;

use crate::data::Rows;
use crate::draw::Look;
use crate::experiment::{Record, Results, Unit};
use crate::lines::{Row, Statement};
use crate::tuning::powers;
use crate::verdict::Sample;
use outlast::select::Point;
use outlast::{Design, Error, FeatureMap, Lq, LqChoice, LqSearch, Result, Status};

/// The machines: names in the records, titles, looks.
pub const MACHINES: [&str; 3] = ["L1", "L2", "Lq"];
pub const LOOKS: [(&str, Look); 3] = [("L_1", Look::line(0)), ("L_2", Look::dashed(1, "7 4")), ("L_q", Look::line(2))];

/// The exponents to choose from, in (0, 2].
pub const QS: [f64; 11] = [0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0];

/// Names of the numbers of a record.
pub const VALUES: [&str; 6] = ["error", "size", "relevant_kept", "q", "lambda", "tuning_error"];

/// Test rows of the examples.
pub const TEST: usize = 3000;

/// The machine that is tuned. Its choice is judged by errors on whole rows: more digits cost time and change none.
pub fn base() -> Lq {
    Lq::new(1.0).tol(1e-4)
}

/// The values of C for n rows, the smallest first: C = 1/(n lambda), lambda over half powers of ten.
pub fn cs(n: usize, unit: &Unit) -> Vec<f64> {
    unit.grid(powers(-5, 1, 2)).iter().rev().map(|lambda| 1.0 / (n as f64 * lambda)).collect()
}

/// The values of q.
pub fn qs(unit: &Unit) -> Vec<f64> {
    if unit.small { vec![0.5, 1.0, 2.0] } else { QS.to_vec() }
}

/// The search of a machine over the grid for n rows.
pub fn search(n: usize, unit: &Unit, base: Lq) -> LqSearch {
    // the columns are penalised as they come
    LqSearch::new(cs(n, unit), qs(unit)).standardize(false).base(base)
}

/// Searches on a tuning set, to the end: what is the best so far of a search that was interrupted is no result.
pub fn tuned(train: &Rows, tune: &Rows, map: FeatureMap, unit: &Unit) -> Result<LqChoice> {
    let search = search(train.x.rows(), unit, base().feature_map(map));
    let choice = search.fit_tuned(&train.x, &train.y, (&tune.x, &tune.y), &unit.request())?;
    if choice.tuned.status == Status::Converged { Ok(choice) } else { Err(Error::Interrupted) }
}

/// The point with the least error among those of an exponent; of equal ones the one with the fewest variables, then the smaller C.
pub fn best(choice: &LqChoice, q: f64) -> Option<usize> {
    let of_q = (0..choice.path.len()).filter(|&at| choice.path[at].q == q);
    of_q.min_by(|&a, &b| {
        let key = |at: usize| (choice.tuned.cells[at].mean, choice.path[at].size as f64, choice.path[at].c);
        let (a, b) = (key(a), key(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2))
    })
}

/// A machine with its parameters chosen.
pub struct Machine {
    /// Its name in the records.
    pub name: &'static str,
    /// Parameters and coefficients.
    pub point: Point,
    /// Error by which the parameters were chosen.
    pub tuning: f64,
}

/// The three machines of a search.
pub fn machines(choice: &LqChoice) -> Vec<Machine> {
    // all three as they were judged when they were chosen: fitted once more, for q < 1, a point may be another local minimum
    let points = [("L1", best(choice, 1.0)), ("L2", best(choice, 2.0)), ("Lq", Some(choice.tuned.chosen))];
    let machine = |(name, at): (&'static str, Option<usize>)| {
        at.map(|at| Machine { name, point: choice.path[at].clone(), tuning: choice.tuned.cells[at].mean })
    };
    points.into_iter().filter_map(machine).collect()
}

/// f of each function at a row.
pub fn decision(point: &Point, row: &[f64]) -> Vec<f64> {
    let functions = point.intercepts.len();
    let width = point.weights.len() / functions;
    let value = |w: &[f64]| -> f64 {
        let (plain, squares) = w.split_at(row.len());
        let linear: f64 = plain.iter().zip(row).map(|(w, x)| w * x).sum();
        linear + squares.iter().zip(row).map(|(w, x)| w * x * x).sum::<f64>()
    };
    let of = |at: usize| value(&point.weights[at * width..(at + 1) * width]) + point.intercepts[at];
    (0..functions).map(of).collect()
}

/// The share of rows a point decides wrongly.
pub fn error(point: &Point, rows: &Rows) -> f64 {
    let decided = |row: usize| -> u32 {
        let f = decision(point, rows.x.row(row));
        match f[..] {
            [only] => u32::from(only > 0.0),
            _ => (0..f.len()).fold(0, |best, at| if f[at] > f[best] { at } else { best }) as u32,
        }
    };
    let wrong = (0..rows.x.rows()).filter(|&row| decided(row) != rows.y.codes()[row]).count();
    wrong as f64 / rows.x.rows() as f64
}

/// Which mapped columns have a coefficient that is not 0.
pub fn used(point: &Point) -> Vec<usize> {
    let width = point.weights.len() / point.intercepts.len();
    (0..width).filter(|&at| point.weights.iter().skip(at).step_by(width).any(|&w| w != 0.0)).collect()
}

/// A record for each machine; `relevant` are the mapped columns the labels depend on.
pub fn records(machines: &[Machine], train: &Rows, test: &Rows, relevant: &[usize]) -> Vec<Record> {
    let n = train.x.rows() as f64;
    let record = |machine: &Machine| {
        let (point, used) = (&machine.point, used(&machine.point));
        let kept = f64::from(u8::from(relevant.iter().all(|column| used.contains(column))));
        let values = [error(point, test), used.len() as f64, kept, point.q, 1.0 / (n * point.c), machine.tuning];
        Record::new([machine.name], values)
    };
    machines.iter().map(record).collect()
}

/// "L_q errs less than L_1 and than L_2", in a setting.
pub fn less_than_both(results: &Results, setting: usize, what: &str) -> Vec<Statement> {
    let one = |(other, title): (&str, &str)| {
        let differences = results.differences(setting, &[other], &["Lq"], "error");
        Statement::difference(format!("{what}L_q errs less than {title}"), &differences, 4)
    };
    [("L1", "L_1"), ("L2", "L_2")].map(one).to_vec()
}

/// A line of the table without a printed number.
pub fn shown(results: &Results, setting: usize, machine: &str, value: &str, what: String, decimals: usize) -> Row {
    Row::new(what, None, Sample::of(&results.values(setting, &[machine], value)), decimals)
}

/// How often lambda lies at an end of its grid.
pub fn ends(results: &Results) -> String {
    results.at_ends("lambda", "lambda", [1e-5, 10.0], |record| MACHINES.contains(&record.labels[0].as_str()))
}

/// Notes that all experiments share.
pub fn notes() -> Vec<String> {
    vec![
        "The grid is not printed. lambda runs over half powers of ten from 1e-5 to 10, q over 0.1, 0.2, 0.4, ..., 2; of equal tuning errors the point with \
         the fewest variables, then the larger lambda."
            .to_string(),
        "The intercept is not penalised, as in the paper's appendix; (3.1) leaves it out. Coefficients are exactly 0 where they are not needed, \
         which the paper's algorithm does not give."
            .to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(weights: Vec<f64>, intercepts: Vec<f64>) -> Point {
        Point { c: 1.0, q: 1.0, weights, intercepts, objective: 0.0, size: 0, converged: true }
    }

    #[test]
    fn squares_classes_and_used_columns_are_read_as_they_are_stored() {
        let squares = point(vec![1.0, 0.0, 0.0, -2.0], vec![0.5]);
        assert_eq!(decision(&squares, &[3.0, 2.0]), [3.0 - 8.0 + 0.5]);
        assert_eq!(used(&squares), [0, 3]);
        let three = point(vec![1.0, -1.0, 0.0], vec![0.0, 0.0, 0.5]);
        assert_eq!(decision(&three, &[2.0]), [2.0, -2.0, 0.5]);
        let rows = crate::samples::rows(1, vec![2.0, -2.0, 0.1], vec![0, 1, 2], 3).unwrap();
        assert_eq!(error(&three, &rows), 0.0);
    }
}
