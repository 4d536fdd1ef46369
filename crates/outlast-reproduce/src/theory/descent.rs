//! The objective never rises: d.c. steps (Wu and Liu, section 3), reweighting (capped norms), local quadratic approximation (L_q).

use super::Finding;
use crate::experiment::Unit;
use crate::samples::{Sectors, triangle};
use outlast::{Capped, Estimator, Kernel, Loss, Lq, Penalty, Result, Truncated, Truncation};

/// Every non-convex method on data of its own.
pub fn check(unit: &mut Unit) -> Result<Vec<Finding>> {
    let three = triangle::draw(90, 0.2, &mut unit.random)?;
    let two = Sectors::equal(2).draw(80, 4, 0.2, &mut unit.random)?;
    let truncated = |kernel: Kernel, loss: Loss, penalty| -> Box<dyn Estimator> {
        Box::new(Truncated::new(3.0).kernel(kernel).loss(loss).penalty(penalty))
    };
    let utility = vec![vec![1.0, 0.4, 0.4], vec![0.0, 1.0, 0.0], vec![0.0, 0.0, 1.0]];
    let methods: [(&str, Box<dyn Estimator>); 9] = [
        ("truncated hinge linear", truncated(Kernel::Linear, Loss::hinge(), Penalty::L2)),
        ("truncated hinge Gaussian", truncated(Kernel::rbf(1.0), Loss::hinge(), Penalty::L2)),
        ("truncated logistic", truncated(Kernel::rbf(1.0), Loss::logistic(), Penalty::L2)),
        ("truncated exponential", truncated(Kernel::Linear, Loss::exponential(), Penalty::L2)),
        ("truncated hinge with L_1", truncated(Kernel::Linear, Loss::hinge(), Penalty::L1)),
        ("truncated hinge with utilities", Box::new(Truncated::new(1.0).kernel(Kernel::Linear).utility(utility))),
        ("capped p = 1", Box::new(Capped::new(1.0).power(1.0).cap(2.0))),
        ("capped p = 2", Box::new(Capped::new(1.0).power(2.0).cap(2.0))),
        ("L_q by local quadratic approximation", Box::new(Lq::new(1.0).q(0.5).solver("lqa"))),
    ];
    let mut findings = Vec::new();
    for (name, method) in &methods {
        for (rows, classes) in [(&two, "two classes"), (&three, "three classes")] {
            if classes == "two classes" && name.contains("utilities") {
                continue;
            }
            let trace = method.fit_labels(&rows.x, &rows.y, &unit.request())?.summary.trace;
            let rise =
                trace.windows(2).map(|pair| (pair[1] - pair[0]) / pair[0].abs()).fold(f64::NEG_INFINITY, f64::max);
            // a single value can't rise
            let rise = if rise.is_finite() { rise } else { 0.0 };
            let text = format!("{name}: {classes}: the objective never rises");
            let finding = Finding::new(text, "largest relative step", rise, rise <= 1e-12);
            // the papers prove it for the d.c. algorithm with the hinge loss and for reweighting
            let stated = (name.contains("hinge") || name.contains("capped")) && !name.contains("utilities");
            findings.push(if stated { finding } else { finding.ours() });
        }
    }
    Ok(findings)
}

/// "The set of support vectors of the RSVM using the d.c. algorithm is only a subset of the set of support vectors of the original SVM": the same
/// rows, kernel and C with and without truncation.
pub fn subset(unit: &mut Unit) -> Result<Vec<Finding>> {
    const FITS: usize = 8;
    let mut new = 0;
    for fit in 0..FITS {
        let rows = Sectors::equal(3).draw(60, 2, 0.2, &mut unit.random)?;
        let kernel = if fit % 2 == 0 { Kernel::Linear } else { Kernel::rbf(1.0) };
        let support = |truncation: Truncation| -> Result<Vec<u32>> {
            let method = Truncated::new(3.0).kernel(kernel.clone()).truncation(truncation);
            Ok(method.fit_with(&rows.x, &rows.y, &unit.request())?.predictor.support)
        };
        let (plain, truncated) = (support(Truncation::Off)?, support(Truncation::Auto)?);
        new += usize::from(truncated.iter().any(|row| !plain.contains(row)));
    }
    let text = "support vectors of the truncated machine are a subset of the plain one's at the same C";
    Ok(vec![Finding::new(text, "of 8 fits with others", new as f64, new == 0)])
}
