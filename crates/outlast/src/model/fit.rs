//! What all fits have in common: the checks of rows and labels, the threads, and the way from a solution to what predicts and
//! what is reported.

use super::{Baseline, Common, CostForm, Details, FitRequest, Function, Predictor, Rows, Summary};
use crate::data::{Design, Labels, check_weights};
use crate::error::{Error, Result, quoted};
use crate::problem::{KernelFunction, Loss, ManyClass, Penalty};
use crate::solver::{Solution, Start};

/// Most columns: their numbers have 32 bits.
const MOST_COLUMNS: usize = u32::MAX as usize;

/// A relative gap that far below 0 is 0 but for rounding.
const ROUNDING: f64 = -1e-9;

/// A relative gap as it is told: what no solve has narrowed down, because time was up before, is infinite in a solver, and all of the
/// objective here.
pub(super) fn told_gap(gap: f64) -> f64 {
    match gap {
        gap if (ROUNDING..0.0).contains(&gap) => 0.0,
        f64::INFINITY => 1.0,
        gap => gap,
    }
}

/// Most classes a joint fit takes.
pub(crate) const MOST_CLASSES: usize = 1000;

pub(super) fn check_shapes(x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<()> {
    if x.rows() == 0 {
        return Err(Error::shape("X", "0 rows", "at least 2"));
    }
    if x.cols() == 0 {
        return Err(Error::shape("X", "0 columns", "at least 1"));
    }
    if x.cols() > MOST_COLUMNS {
        return Err(Error::shape("X", format!("{} columns", x.cols()), format!("at most {MOST_COLUMNS}")));
    }
    if x.rows() > u32::MAX as usize - 64 {
        return Err(Error::shape("X", format!("{} rows", x.rows()), "fewer than 2^32"));
    }
    if labels.len() != x.rows() {
        return Err(Error::shape("y", format!("{} labels", labels.len()), format!("{}, one per row of X", x.rows())));
    }
    match labels.classes() {
        [only] => {
            let only = quoted(&only.to_string());
            let problem = format!("every row is of class {only}; a classifier needs two classes");
            return Err(Error::Classes { problem });
        }
        classes => check_class_count(classes.len())?,
    }
    if let Some(names) = request.feature_names
        && names.len() != x.cols()
    {
        let found = format!("{} names", names.len());
        return Err(Error::shape("feature_names", found, format!("{}, one per column of X", x.cols())));
    }
    request.sample_weight.map_or(Ok(()), |weights| check_weights(weights, x.rows()))
}

/// Refuses more classes than a classifier takes.
pub(super) fn check_class_count(classes: usize) -> Result<()> {
    if classes <= MOST_CLASSES {
        return Ok(());
    }
    let problem = format!(
        "y has {classes} distinct values; a classifier takes at most {MOST_CLASSES} classes (is y a number to predict?)"
    );
    Err(Error::Classes { problem })
}

/// Runs `work` on that many threads, or on those of the pool at hand: on one of them, because a thread that is none of the pool's sleeps and
/// is woken again for each piece of work it hands over.
pub(super) fn in_pool<T: Send>(threads: Option<usize>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let Some(threads) = threads else { return rayon::scope(|_| work()) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    match pool {
        Ok(pool) => pool.install(work),
        Err(error) => {
            Err(Error::parameter("n_jobs", threads, format!("a number of threads the system can start ({error})")))
        }
    }
}

/// How many decision functions so many classes have.
pub(super) fn functions(labels: &Labels) -> usize {
    if labels.classes().len() == 2 { 1 } else { labels.classes().len() }
}

/// The start a request asks for, if it fits the data.
pub(super) fn start(x: &dyn Design, labels: &Labels, request: &FitRequest) -> Result<Option<Start>> {
    let Some(model) = request.start else { return Ok(None) };
    let Some(training) = &model.training else {
        return Err(Error::shape("start", "no training rows", "a model fitted in this process"));
    };
    let (rows, functions) = (x.rows(), functions(labels));
    if model.predictor.functions() != functions {
        let found = format!("{} classes", model.predictor.classes.len());
        return Err(Error::shape("start", found, format!("{}, as y has", labels.classes().len())));
    }
    if training.expansion.len() != rows * functions {
        let found = format!("{} training rows", training.expansion.len() / functions);
        return Err(Error::shape("start", found, format!("{rows}, as X has")));
    }
    Ok(Some(Start {
        expansion: training.expansion.clone(),
        // weights of other columns than these would lead astray
        weights: model.predictor.weights().filter(|_| !model.is_standardized()).map(<[f64]>::to_vec),
        intercepts: model.predictor.intercepts.clone(),
    }))
}

/// The margin of each row's own class.
pub(super) fn margins(labels: &Labels, decision: &[f64]) -> Vec<f64> {
    let codes = labels.codes().iter();
    match functions(labels) {
        1 => codes.zip(decision).map(|(&code, f)| if code == 1 { *f } else { -f }).collect(),
        m => codes.zip(decision.chunks_exact(m)).map(|(&code, f)| ManyClass::margin(f, code as usize)).collect(),
    }
}

/// What predicts, of a solution.
pub(super) fn predictor(
    x: &dyn Design,
    labels: &Labels,
    kernel: &KernelFunction,
    request: &FitRequest,
    solution: &Solution,
) -> Result<Predictor> {
    let m = functions(labels);
    let of_row = |row: u32| &solution.expansion[row as usize * m..(row as usize + 1) * m];
    let support: Vec<u32> = (0..x.rows() as u32).filter(|&row| of_row(row).iter().any(|&v| v != 0.0)).collect();
    let coefficients: Vec<f64> = support.iter().flat_map(|&row| of_row(row).iter().copied()).collect();
    let function = match kernel {
        KernelFunction::Linear => {
            Function::Linear { weights: solution.weights.clone().unwrap_or_else(|| combine(x, &solution.expansion, m)) }
        }
        KernelFunction::Precomputed => Function::Precomputed,
        _ => Function::Kernel { rows: Rows::copy(x, &support)? },
    };
    Ok(Predictor {
        classes: labels.classes().to_vec(),
        feature_names: request.feature_names.map(<[String]>::to_vec),
        features: x.cols(),
        kernel: kernel.clone(),
        support,
        coefficients,
        function,
        intercepts: solution.intercepts.clone(),
        probabilities: None,
        votes: None,
        scaling: None,
    })
}

/// The numbers every method reports: those of a hinge loss with the l2 penalty, for a method to change.
pub(super) fn summary(method: &str, common: &Common, labels: &Labels, solution: &Solution) -> Result<Summary> {
    Ok(Summary {
        method: method.to_string(),
        c: common.c,
        loss: Loss::hinge().base().name().to_string(),
        truncation: None,
        penalty: Penalty::L2.name().to_string(),
        utility: None,
        cost: None,
        cost_form: CostForm::Utility.name().to_string(),
        utility_baseline: Baseline::Keep.name().to_string(),
        class_weight: common.class_factors(labels)?,
        fit_intercept: common.fit_intercept,
        tol: common.tol,
        max_iter: common.max_iter,
        solver_asked: "auto".to_string(),
        solver: solution.solver.to_string(),
        rows: labels.len(),
        class_rows: labels.counts(),
        outliers: 0,
        objective: solution.objective,
        steps: solution.trace.len().saturating_sub(1),
        trace: solution.trace.clone(),
        gap: told_gap(solution.gap),
        iterations: solution.iterations,
        status: solution.status,
        details: Details::default(),
    })
}

/// sum_i expansion_ij x_i, functions x columns
pub(super) fn combine(x: &dyn Design, expansion: &[f64], functions: usize) -> Vec<f64> {
    let cols = x.cols();
    let mut weights = vec![0.0; functions * cols];
    for (row, coefficients) in expansion.chunks_exact(functions).enumerate() {
        for (coefficient, out) in coefficients.iter().zip(weights.chunks_exact_mut(cols)) {
            if *coefficient != 0.0 {
                x.add_scaled(row, *coefficient, out);
            }
        }
    }
    weights
}
