//! Two-class methods on any number of classes.
//!
//! Two classes are one problem, with the second class as +1. Of k > 2 classes each is set against all the others in a problem
//! of its own, and the class whose decision value is largest wins. The objective is the sum over these problems, and so is
//! a lower bound of it.

use super::{Common, Details, FitRequest, Model, Summary, Training, fit};
use crate::data::{Design, Labels};
use crate::error::Result;
use crate::problem::{KernelFunction, Loss, Norm, TwoClass};
use crate::solver::{Solution, Status};

/// What a method found about one two-class problem.
pub(super) struct Found {
    /// `truncated` are the rows given up.
    pub solution: Solution,
    /// How far each row is kept.
    pub eta: Option<Vec<f64>>,
    pub details: Details,
}

/// Fits a two-class method. `solve` gets each problem, its loss the hinge truncated at 0.
pub(super) fn run(
    method: &str,
    common: &Common,
    x: &dyn Design,
    labels: &Labels,
    request: &FitRequest,
    solve: impl Fn(&TwoClass) -> Result<Found>,
) -> Result<Model> {
    x.check_finite()?;
    let caps = common.caps(labels, request.sample_weight)?;
    let kernel = common.kernel.resolve(x, labels, request.sample_weight)?;
    let loss = Loss::hinge().truncated_at(0.0)?;
    let positive: Vec<u32> =
        if labels.classes().len() == 2 { vec![1] } else { (0..labels.classes().len() as u32).collect() };
    let mut found = Vec::with_capacity(positive.len());
    for class in positive {
        let signs: Vec<f64> = labels.codes().iter().map(|&code| if code == class { 1.0 } else { -1.0 }).collect();
        let intercept = common.fit_intercept;
        found.push(solve(&TwoClass {
            x,
            signs: &signs,
            caps: &caps,
            loss,
            norm: Norm::Squared,
            kernel: &kernel,
            intercept,
        })?);
    }
    model(method, common, x, labels, &kernel, request, found)
}

fn model(
    method: &str,
    common: &Common,
    x: &dyn Design,
    labels: &Labels,
    kernel: &KernelFunction,
    request: &FitRequest,
    found: Vec<Found>,
) -> Result<Model> {
    let of_own_class = |code: u32| if found.len() == 1 { 0 } else { code as usize };
    let given_up = |(row, &code): (usize, &u32)| found[of_own_class(code)].solution.truncated[row];
    let outliers: Vec<bool> = labels.codes().iter().enumerate().map(given_up).collect();
    let etas: Option<Vec<&[f64]>> = found.iter().map(|found| found.eta.as_deref()).collect();
    let eta = etas.map(|etas| interleave(&etas));
    let details = combined_details(&found);
    let solution = together(found.into_iter().map(|found| found.solution).collect());
    let summary = Summary {
        outliers: outliers.iter().filter(|&&outlier| outlier).count(),
        details,
        ..fit::summary(method, common, labels, &solution)?
    };
    let predictor = fit::predictor(x, labels, kernel, request, &solution)?;
    let margins = fit::margins(labels, &solution.decision);
    let training = Training { margins, outliers, expansion: solution.expansion, eta, scores: None };
    Ok(Model { predictor, summary, training: Some(training) })
}

/// Bounds add up as objectives do; everything else is averaged.
fn combined_details(found: &[Found]) -> Details {
    let mut all = Details::default();
    for (name, _) in found.iter().flat_map(|found| found.details.iter()) {
        let values: Vec<f64> = found.iter().filter_map(|found| found.details.get(name)).collect();
        let sum: f64 = values.iter().sum();
        let same = values.iter().all(|value| *value == values[0]);
        all.set(
            name,
            match name {
                "lower_bound" | "relaxation" => sum,
                _ if same => values[0],
                _ => sum / values.len() as f64,
            },
        );
    }
    all
}

/// Vectors side by side: rows x functions.
fn interleave(columns: &[&[f64]]) -> Vec<f64> {
    let rows = columns.first().map_or(0, |column| column.len());
    (0..rows).flat_map(|row| columns.iter().map(move |column| column[row])).collect()
}

/// The solutions of several problems as one.
fn together(mut solutions: Vec<Solution>) -> Solution {
    if solutions.len() == 1 {
        return solutions.remove(0);
    }
    let side_by_side = |column: fn(&Solution) -> &[f64]| interleave(&solutions.iter().map(column).collect::<Vec<_>>());
    let weights: Option<Vec<&[f64]>> = solutions.iter().map(|solution| solution.weights.as_deref()).collect();
    let longest = solutions.iter().map(|solution| solution.trace.len()).max().unwrap_or(0);
    // a problem that has ended stays where it is
    let at = |solution: &Solution, step: usize| solution.trace[step.min(solution.trace.len() - 1)];
    let status = |status: &Status| {
        [Status::Converged, Status::Inaccurate, Status::IterationLimit].iter().position(|s| s == status)
    };
    Solution {
        expansion: side_by_side(|solution| &solution.expansion),
        weights: weights.map(|weights| weights.concat()),
        intercepts: solutions.iter().flat_map(|solution| solution.intercepts.iter().copied()).collect(),
        decision: side_by_side(|solution| &solution.decision),
        truncated: Vec::new(),
        majorant: None,
        objective: solutions.iter().map(|solution| solution.objective).sum(),
        gap: solutions.iter().map(|solution| solution.gap).fold(0.0, f64::max),
        trace: (0..longest).map(|step| solutions.iter().map(|solution| at(solution, step)).sum()).collect(),
        iterations: solutions.iter().map(|solution| solution.iterations).sum(),
        // the worst of them; what is not listed is worse still
        status: solutions
            .iter()
            .map(|solution| solution.status)
            .max_by_key(|s| status(s).unwrap_or(usize::MAX))
            .unwrap_or(Status::Converged),
        solver: solutions[0].solver,
    }
}
