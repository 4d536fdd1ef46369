//! The hinge loss with a margin of its own for every row.
//!
//! ```text
//! min 1/2 |f|^2 + sum_i c_i [t_i - y_i (f(x_i) + b)]_+
//! ```
//!
//! is the dual of the ordinary hinge with the linear term q_i = -y_i t_i in place of -y_i; any t is allowed.

use super::LARGEST_CAP;
use super::dual::Dual;
use super::gram::Gram;
use super::two_level::{Sizes, Solver};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::Isa;
use crate::problem::TwoClass;
use crate::solver::{Options, Solution, Status};

/// Solves it; the problem's own loss is not looked at.
pub fn solve_shifted(problem: &TwoClass, targets: &[f64], options: &Options, control: &Control) -> Result<Solution> {
    let sizes = Sizes::new(options.cache_bytes / 2);
    let keep = options.cache_bytes.saturating_sub(sizes.bytes());
    let gram = Gram::new(problem.x, problem.kernel, Isa::detect(), keep)?;
    let unit = gram.unit();
    let mut solver = Solver::new(sizes, options);
    solver.stage = "shifted hinge";
    let caps: Vec<f64> = problem.caps.iter().map(|cap| (cap * unit).min(LARGEST_CAP)).collect();
    let bounds = |sign: f64| -> Vec<f64> {
        let signs = problem.signs.iter().zip(&caps);
        signs.map(|(y, cap)| if *y == sign { sign * cap } else { 0.0 }).collect()
    };
    let linear: Vec<f64> = problem.signs.iter().zip(targets).map(|(y, target)| -y * target).collect();
    let mut dual = Dual::new(gram, linear, bounds(-1.0), bounds(1.0), problem.intercept);
    let step = solver.solve(&mut dual, options.tolerance, control)?;
    let intercept = dual.intercept(&dual.measure());
    let rows = dual.rows();
    let f: Vec<f64> = (0..rows).map(|row| dual.gradient[row] - dual.linear[row]).collect();
    let loss = |row: usize| (targets[row] - problem.signs[row] * (f[row] + intercept)).max(0.0);
    let quadratic: f64 = dual.beta.iter().zip(&f).map(|(beta, f)| beta * f).sum();
    let objective = 0.5 * quadratic / unit + (0..rows).map(|row| problem.caps[row] * loss(row)).sum::<f64>();
    let at_a_clip = (0..rows).any(|row| dual.beta[row].abs() >= caps[row] && caps[row] < problem.caps[row] * unit);
    let (status, gap) = if at_a_clip { (Status::Inaccurate, f64::INFINITY) } else { (step.status, step.gap) };
    Ok(Solution {
        expansion: dual.beta.iter().map(|b| b / unit).collect(),
        weights: None,
        intercepts: vec![intercept],
        decision: f.iter().map(|f| f + intercept).collect(),
        truncated: vec![false; rows],
        majorant: None,
        objective,
        gap,
        trace: vec![objective],
        iterations: step.iterations,
        status,
        solver: super::NAME,
    })
}
