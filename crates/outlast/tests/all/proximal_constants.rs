//! Truncated losses with penalties that select: no fit is above a constant function, nor above the machine without truncation. Both are
//! judged here, from the formula.

use crate::common::{Noise, Random, planes};
use outlast::{Dense, FitRequest, Kernel, Loss, Model, Penalty, Status, Truncated, Truncation};

/// Of objectives summed in another order.
const ROUNDING: f64 = 1e-8;

struct Case {
    n: usize,
    d: usize,
    k: usize,
    values: Vec<f64>,
    codes: Vec<u32>,
    weights: Option<Vec<f64>>,
    utility: Option<Vec<Vec<f64>>>,
}

impl Case {
    fn new(k: usize, weighted: bool, with_utility: bool, seed: u64) -> Case {
        let (n, d) = (60, 5);
        let (values, codes) = planes(n, d, k, &Noise { used: 2, spread: 1.0, flipped: 0.1 }, seed);
        let mut random = Random(seed + 7);
        let weights =
            weighted.then(|| (0..n).map(|row| if row % 9 == 8 { 0.0 } else { 0.3 + random.unit() }).collect());
        let entry = |row: usize, column: usize| if row == column { 1.0 } else { 0.1 * ((row + 2 * column) % 4) as f64 };
        let utility =
            with_utility.then(|| (0..k).map(|row| (0..k).map(|column| entry(row, column)).collect()).collect());
        Case { n, d, k, values, codes, weights, utility }
    }

    fn x(&self) -> Dense<'_> {
        Dense::new(self.n, self.d, &self.values[..]).unwrap()
    }

    fn fit(&self, method: &Truncated) -> Model {
        let method = match &self.utility {
            Some(utility) => method.clone().utility(utility.clone()),
            None => method.clone(),
        };
        let request = FitRequest { sample_weight: self.weights.as_deref(), ..FitRequest::default() };
        method.fit_with(&self.x(), &self.codes[..], &request).unwrap()
    }

    /// C sum_i weight_i sum_j U[y_i, j] l_T(f_j - max_{l != j} f_l), where f(row) has one entry per class.
    fn loss(&self, c: f64, loss: Loss, f: impl Fn(usize) -> Vec<f64>) -> f64 {
        let margin = |f: &[f64], j: usize| {
            f[j] - (0..self.k).filter(|&l| l != j).map(|l| f[l]).fold(f64::NEG_INFINITY, f64::max)
        };
        let worth = |y: usize, j: usize| match &self.utility {
            Some(utility) => utility[y][j],
            None => f64::from(u8::from(y == j)),
        };
        let of_row = |row: usize| -> f64 {
            let (f, y) = (f(row), self.codes[row] as usize);
            let weight = self.weights.as_ref().map_or(1.0, |weights| weights[row]);
            (0..self.k).map(|j| c * weight * worth(y, j) * loss.value(margin(&f, j))).sum()
        };
        (0..self.n).map(of_row).sum()
    }

    /// The least loss of constants: each class ahead of the others by up to 40, and all alike.
    fn least_constant(&self, c: f64, loss: Loss) -> f64 {
        let leads = (0..=80).map(|step| f64::from(step) / 20.0).chain([10.0, 40.0]);
        let constants = leads.flat_map(|lead| (0..self.k).map(move |class| (class, lead)));
        let of = |(class, lead): (usize, f64)| {
            self.loss(c, loss, |_| (0..self.k).map(|j| if j == class { lead } else { 0.0 }).collect())
        };
        constants.map(of).fold(f64::INFINITY, f64::min)
    }

    /// The truncated objective of a model's coefficients.
    fn objective(&self, model: &Model, q: f64, c: f64, loss: Loss) -> f64 {
        let (weights, b) = (model.predictor.weights().unwrap(), &model.predictor.intercepts);
        let value = |row: usize, j: usize| -> f64 {
            let pairs = weights[j * self.d..(j + 1) * self.d].iter().zip(&self.values[row * self.d..]);
            b[j] + pairs.map(|(w, x)| w * x).sum::<f64>()
        };
        let f = |row: usize| match self.k {
            2 => vec![0.0, value(row, 0)],
            k => (0..k).map(|j| value(row, j)).collect(),
        };
        let penalty: f64 = weights.iter().filter(|w| **w != 0.0).map(|w| w.abs().powf(q)).sum();
        penalty + self.loss(c, loss, f)
    }
}

fn cases(k: usize) -> Vec<Case> {
    let all = [(false, false), (true, false), (false, true), (true, true)];
    all.iter().zip(100..).map(|((weighted, utility), seed)| Case::new(k, *weighted, *utility, seed)).collect()
}

fn truncated(c: f64, penalty: Penalty) -> Truncated {
    Truncated::new(c).kernel(Kernel::Linear).penalty(penalty)
}

/// With C small a constant is best, with C large it is not.
#[test]
fn no_fit_is_above_a_constant_function() {
    let (mut constants, mut others) = (0, 0);
    for k in [2, 3, 4] {
        let loss = Loss::hinge().truncated_at(-1.0 / (k as f64 - 1.0)).unwrap();
        for case in cases(k) {
            for penalty in [Penalty::L1, Penalty::AdaptiveL1, Penalty::Lq] {
                for c in [0.03, 0.1, 1.0] {
                    let model = case.fit(&truncated(c, penalty));
                    let (found, least) = (model.summary.objective, case.least_constant(c, loss));
                    assert!(found <= least * (1.0 + ROUNDING), "k {k} {penalty:?} C {c}: {found} {least}");
                    assert!(model.summary.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", model.summary.trace);
                    assert_eq!(model.summary.trace.last(), Some(&found));
                    let is_constant = model.selected().unwrap().is_empty();
                    constants += usize::from(is_constant);
                    others += usize::from(!is_constant);
                    if is_constant {
                        assert!((found - least).abs() <= ROUNDING * least, "k {k} {penalty:?} C {c}: {found} {least}");
                        assert_eq!(model.summary.status, Status::Converged, "k {k} {penalty:?} C {c}");
                    }
                }
            }
        }
    }
    assert!(constants > 10 && others > 10, "{constants} {others}");
}

/// So with other losses, truncated anywhere, and without intercepts.
#[test]
fn nor_with_other_losses_or_without_intercepts() {
    for k in [2, 3] {
        let case = Case::new(k, true, false, 200);
        for base in [Loss::hinge(), Loss::logistic(), Loss::exponential()] {
            for at in [0.0, -0.4, -2.0] {
                for penalty in [Penalty::L1, Penalty::Lq] {
                    let loss = base.truncated_at(at).unwrap();
                    let method = truncated(0.05, penalty).loss(base).truncation(at);
                    let found = case.fit(&method).summary.objective;
                    let least = case.least_constant(0.05, loss);
                    assert!(found <= least * (1.0 + ROUNDING), "k {k} {loss:?} {penalty:?}: {found} {least}");
                    let through_zero = case.fit(&method.fit_intercept(false)).summary.objective;
                    let zero = case.loss(0.05, loss, |_| vec![0.0; k]);
                    assert!(
                        through_zero <= zero * (1.0 + ROUNDING),
                        "k {k} {loss:?} {penalty:?}: {through_zero} {zero}"
                    );
                }
            }
        }
    }
}

/// The machine without truncation is a start; for q < 1 that with q = 1 is one as well.
#[test]
fn no_fit_is_above_the_plain_machine() {
    for k in [2, 3, 4] {
        let loss = Loss::hinge().truncated_at(-1.0 / (k as f64 - 1.0)).unwrap();
        for case in cases(k) {
            for (penalty, q) in [(Penalty::L1, 1.0), (Penalty::Lq, 0.5), (Penalty::Lq, 0.3)] {
                for c in [0.1, 1.0] {
                    let method = truncated(c, penalty).q(q);
                    let model = case.fit(&method);
                    let found = model.summary.objective;
                    let own = case.objective(&model, q, c, loss);
                    assert!((found - own).abs() <= ROUNDING * own, "k {k} q {q} C {c}: {found} {own}");
                    for other in [method.clone().truncation(Truncation::Off), method.clone().penalty(Penalty::L1)] {
                        let other = case.objective(&case.fit(&other), q, c, loss);
                        assert!(found <= other * (1.0 + ROUNDING), "k {k} q {q} C {c}: {found} {other}");
                    }
                }
            }
        }
    }
}

/// A constant depends on rows by their sums alone: rows that come twice are rows of weight 2.
#[test]
fn constants_of_repeated_rows_are_those_of_weights() {
    let mut weighted = Case::new(3, false, false, 300);
    let times: Vec<usize> = (0..weighted.n).map(|row| 1 + row % 3).collect();
    let rows: Vec<usize> = (0..weighted.n).flat_map(|row| std::iter::repeat_n(row, times[row])).collect();
    let values: Vec<f64> = rows.iter().flat_map(|&row| weighted.values[row * 5..(row + 1) * 5].to_vec()).collect();
    let codes: Vec<u32> = rows.iter().map(|&row| weighted.codes[row]).collect();
    let repeated = Case { n: rows.len(), d: 5, k: 3, values, codes, weights: None, utility: None };
    weighted.weights = Some(times.iter().map(|times| *times as f64).collect());
    for penalty in [Penalty::L1, Penalty::AdaptiveL1, Penalty::Lq] {
        let method = truncated(0.003, penalty);
        let (one, other) = (weighted.fit(&method), repeated.fit(&method));
        assert!(one.selected().unwrap().is_empty());
        assert_eq!(one.predictor.intercepts, other.predictor.intercepts, "{penalty:?}");
    }
}
