//! Upper bounds of the ablation paper: on the misclassification error, on the robust loss, on leave-one-out errors; and its relaxation, a lower
//! bound of the robust objective.

use super::Finding;
use crate::data::Rows;
use crate::experiment::Unit;
use crate::samples::rows;
use outlast::{Ablation, Design, FitRequest, Kernel, Labels, Result, Truncated, Truncation};

/// Propositions 1 to 3, over a grid of margins and of eta. Nothing is random.
pub fn losses(_: &mut Unit) -> Result<Vec<Finding>> {
    let margins: Vec<f64> = (-300..=300).map(|at| f64::from(at) / 100.0).collect();
    let etas: Vec<f64> = (0..=20).map(|at| f64::from(at) / 20.0).collect();
    let hinge = |m: f64| (1.0 - m).max(0.0);
    let wrong = |m: f64| f64::from(m <= 0.0);
    let robust = |m: f64| hinge(m).min(1.0);
    let eta_hinge = |eta: f64, m: f64| eta * hinge(m) + 1.0 - eta;
    let over = |slack: &dyn Fn(f64) -> f64| margins.iter().map(|&m| slack(m)).fold(f64::INFINITY, f64::min);
    let least = |m: f64| etas.iter().map(|&eta| eta_hinge(eta, m)).fold(f64::INFINITY, f64::min);
    let slack = "smallest slack";
    let bounds: [(&str, f64); 4] = [
        ("the hinge loss bounds the misclassification error", over(&|m| hinge(m) - wrong(m))),
        ("the eta-hinge loss bounds the misclassification error for every eta", over(&|m| least(m) - wrong(m))),
        ("the robust hinge loss bounds the misclassification error", over(&|m| robust(m) - wrong(m))),
        ("the eta-hinge loss bounds the robust hinge loss for every eta", over(&|m| least(m) - robust(m))),
    ];
    let mut findings: Vec<Finding> =
        bounds.into_iter().map(|(text, least)| Finding::new(text, slack, least, least >= -1e-12)).collect();
    let off = margins.iter().map(|&m| (least(m) - robust(m)).abs()).fold(0.0, f64::max);
    let text = "minimised over eta the eta-hinge loss is the robust hinge loss";
    findings.push(Finding::new(text, "largest difference", off, off <= 1e-12));
    let rod = margins.iter().map(|&m| 0.0 - wrong(m)).fold(f64::INFINITY, f64::min);
    let text = "eta times the hinge loss (ROD) does not bound the misclassification error";
    findings.push(Finding::new(text, slack, rod, rod < 0.0));
    Ok(findings)
}

/// Rows with some labels wrong and far out.
fn outlying(count: usize, unit: &mut Unit) -> Result<Rows> {
    let (mut values, mut codes) = (Vec::new(), Vec::new());
    for row in 0..count {
        let code = row % 2;
        let centre = if code == 1 { 1.0 } else { -1.0 };
        let far = if row % 7 == 0 { -3.0 } else { 1.0 };
        values.extend([far * centre + unit.random.normal(), unit.random.normal()]);
        codes.push(code as u32);
    }
    rows(2, values, codes, 2)
}

/// REH lies below the global optimum of the robust problem; the leave-one-out bound.
pub fn relaxation(unit: &mut Unit) -> Result<Vec<Finding>> {
    const C: f64 = 0.5;
    let data = outlying(20, unit)?;
    let relaxed = Ablation::reh(C).kernel(Kernel::Linear).fit_with(&data.x, &data.y, &unit.request())?;
    let robust = Truncated::new(C).kernel(Kernel::Linear).truncation(0.0).fit_intercept(false).global_search(true);
    let best = robust.fit_with(&data.x, &data.y, &unit.request())?;
    let proved = best.summary.details.get("proved").unwrap_or(0.0);
    let bound = relaxed.summary.details.get("lower_bound").unwrap_or(f64::NAN);
    let slack = (best.summary.objective - bound) / best.summary.objective;
    let mut findings = vec![
        Finding::new("the global optimum of the robust problem was proved", "proved", proved, proved == 1.0).ours(),
        Finding::new("REH is a lower bound of the robust optimum", "relative slack", slack, slack >= -1e-9),
    ];
    let [right, printed, rows] = leave_one_out(&data, C, unit)?;
    let text = "leave-one-out errors of the SVM are bounded by step(-y_i sum_{j != i} alpha_j y_j k_ij)";
    findings.push(Finding::new(text, "rows that break it", right, right == 0.0).ours());
    let text = "leave-one-out errors of the SVM are bounded by y_i sum_{j != i} alpha_j y_j k_ij";
    findings.push(Finding::new(text, "rows that break it", printed, printed == 0.0));
    debug_assert!(rows > 0.0);
    Ok(findings)
}

/// Rows whose leave-one-out error exceeds the bound, right and as printed; and how many rows there are.
fn leave_one_out(data: &Rows, c: f64, unit: &Unit) -> Result<[f64; 3]> {
    let method = Truncated::new(c).kernel(Kernel::rbf(0.5)).truncation(Truncation::Off).fit_intercept(false).tol(1e-8);
    let request: FitRequest = unit.request();
    let whole = method.fit_with(&data.x, &data.y, &request)?;
    let decision = whole.decision_function(&data.x)?;
    let n = data.x.rows();
    let mut broken = [0.0; 2];
    for row in 0..n {
        let sign = if data.y.codes()[row] == 1 { 1.0 } else { -1.0 };
        let position = whole.predictor.support.iter().position(|&at| at as usize == row);
        // k_ii = 1: without its own term f(x_i) is sum_{j != i} alpha_j y_j k_ij
        let own = position.map_or(0.0, |at| whole.predictor.coefficients[at]);
        let without = sign * (decision[row] - own);
        let others: Vec<usize> = (0..n).filter(|&other| other != row).collect();
        let part = data.some(&others)?;
        let left = method.fit_with(&part.x, &part.y, &request)?;
        let one = Rows { x: data.some(&[row])?.x, y: Labels::new([0]) };
        let error = f64::from(sign * left.decision_function(&one.x)?[0] <= 0.0);
        // a row exactly on the fence is left to neither
        let bounds = [f64::from(without <= 1e-6), without];
        for (count, bound) in broken.iter_mut().zip(bounds) {
            *count += f64::from(error > bound);
        }
    }
    Ok([broken[0], broken[1], n as f64])
}
