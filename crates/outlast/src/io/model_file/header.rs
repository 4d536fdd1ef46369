//! The header of format versions 3 to 5, and the way between it and a [`Model`].

use super::container::{Arrays, Entry, Reader};
use super::probability;
use crate::data::{Class, Csr, Dense, Design, Scaling};
use crate::error::quoted;
use crate::model::{Baseline, CostForm, Details, Function, METHODS, Model, Predictor, Rows, Summary, Votes};
use crate::problem::KernelFunction;
use crate::solver::Status;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Everything about a model that is not a floating-point number.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    method: String,
    loss: String,
    penalty: String,
    fit_intercept: bool,
    max_iter: u64,
    solver_asked: String,
    solver: String,
    // version 1 knew no payoffs
    #[serde(default = "utility")]
    cost_form: String,
    #[serde(default = "keep")]
    utility_baseline: String,
    status: String,
    rows: u64,
    class_rows: Vec<u64>,
    outliers: u64,
    // versions 1 and 2 had one method, with no numbers of its own
    #[serde(default)]
    details: Vec<String>,
    steps: u64,
    iterations: u64,
    classes: Vec<Name>,
    feature_names: Option<Vec<String>>,
    features: u64,
    kernel: String,
    degree: Option<u32>,
    function: Shape,
    pub arrays: Vec<Entry>,
}

/// A class.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Name {
    Int(i64),
    Text(String),
}

/// How f is held.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Shape {
    Linear,
    Squares,
    Dense,
    Sparse,
    Precomputed,
}

fn utility() -> String {
    CostForm::Utility.name().to_string()
}

fn keep() -> String {
    Baseline::Keep.name().to_string()
}

pub(super) type Outcome<T> = Result<T, String>;

/// Column numbers are 32 bits wide.
const MOST_FEATURES: usize = u32::MAX as usize;

/// As many rows as a fit takes.
pub(in crate::io) const MOST_ROWS: usize = u32::MAX as usize - 64;

/// Header and arrays of a model, which must be [`valid`](check).
pub(super) fn pack(model: &Model) -> (Header, Arrays) {
    let (predictor, summary) = (&model.predictor, &model.summary);
    let mut arrays = Arrays::default();
    for (name, value) in [
        ("c", Some(summary.c)),
        ("truncation", summary.truncation),
        ("tol", Some(summary.tol)),
        ("objective", Some(summary.objective)),
        ("gap", Some(summary.gap)),
        ("gamma", predictor.kernel.gamma()),
        ("coef0", coef0(&predictor.kernel)),
    ] {
        if let Some(value) = value {
            arrays.f64(name, &[1], &[value]);
        }
    }
    if let Some(factors) = &summary.class_weight {
        arrays.f64("class_weight", &[factors.len()], factors);
    }
    let classes = predictor.classes.len();
    for (name, matrix) in [("utility", &summary.utility), ("cost", &summary.cost)] {
        if let Some(matrix) = matrix {
            arrays.f64(name, &[classes, classes], matrix);
        }
    }
    let details: Vec<f64> = summary.details.iter().map(|(_, value)| value).collect();
    arrays.f64("details", &[details.len()], &details);
    arrays.f64("intercept", &[predictor.intercepts.len()], &predictor.intercepts);
    arrays.f64("trace", &[summary.trace.len()], &summary.trace);
    arrays.u32("support", &[predictor.support.len()], &predictor.support);
    arrays.f64("coefficients", &[predictor.support.len(), predictor.width()], &predictor.coefficients);
    if let Some(Votes { order, counts }) = &predictor.votes {
        arrays.u32("votes_order", &[order.len()], order);
        arrays.u64("votes_counts", &[counts.len()], counts.iter().map(|&count| count as u64));
    }
    let function = pack_function("", &predictor.function, predictor.features, &mut arrays);
    if let Some(probabilities) = &predictor.probabilities {
        probability::pack(probabilities, predictor.features, &mut arrays);
    }
    if let Some(Scaling { shift, scale }) = &predictor.scaling {
        arrays.f64("shift", &[shift.len()], shift);
        arrays.f64("scale", &[scale.len()], scale);
    }
    let header = Header {
        method: summary.method.clone(),
        loss: summary.loss.clone(),
        penalty: summary.penalty.clone(),
        fit_intercept: summary.fit_intercept,
        max_iter: summary.max_iter as u64,
        solver_asked: summary.solver_asked.clone(),
        solver: summary.solver.clone(),
        cost_form: summary.cost_form.clone(),
        utility_baseline: summary.utility_baseline.clone(),
        status: summary.status.name().to_string(),
        rows: summary.rows as u64,
        class_rows: summary.class_rows.iter().map(|&rows| rows as u64).collect(),
        outliers: summary.outliers as u64,
        details: summary.details.iter().map(|(name, _)| name.to_string()).collect(),
        steps: summary.steps as u64,
        iterations: summary.iterations as u64,
        classes: predictor.classes.iter().map(Name::from).collect(),
        feature_names: predictor.feature_names.clone(),
        features: predictor.features as u64,
        kernel: predictor.kernel.name().to_string(),
        degree: match predictor.kernel {
            KernelFunction::Poly { degree, .. } => Some(degree),
            _ => None,
        },
        function,
        arrays: arrays.entries.clone(),
    };
    (header, arrays)
}

/// Adds what functions are made of, under names with a prefix.
pub(super) fn pack_function(prefix: &str, function: &Function, features: usize, arrays: &mut Arrays) -> Shape {
    let name = |name: &str| format!("{prefix}{name}");
    match function {
        Function::Linear { weights } => {
            arrays.f64(&name("weights"), &[weights.len() / features.max(1), features], weights);
            Shape::Linear
        }
        Function::Squares { weights } => {
            arrays.f64(&name("weights"), &[weights.len() / (2 * features).max(1), 2 * features], weights);
            Shape::Squares
        }
        Function::Kernel { rows: Rows::Dense(rows) } => {
            arrays.f64(&name("rows"), &[rows.rows(), rows.cols()], rows.values());
            Shape::Dense
        }
        Function::Kernel { rows: Rows::Sparse(rows) } => {
            arrays.u64(&name("row_starts"), &[rows.rows() + 1], rows.starts().iter().map(|&start| start as u64));
            arrays.u32(&name("row_columns"), &[rows.stored()], rows.columns());
            arrays.f64(&name("row_values"), &[rows.stored()], rows.values());
            Shape::Sparse
        }
        Function::Precomputed => Shape::Precomputed,
    }
}

/// The model of a header and its arrays, every invariant checked.
pub(super) fn unpack(header: Header, reader: &Reader) -> Outcome<Model> {
    let features = size("features", header.features)?;
    let kernel = unpack_kernel(&header, reader)?;
    let status =
        Status::from_name(&header.status).ok_or_else(|| format!("status {} is unknown", quoted(&header.status)))?;
    let function = unpack_function("", header.function, features, reader)?;
    let probabilities = probability::unpack(header.function, features, reader)?;
    let details = unpack_details(header.details, reader)?;
    let model = Model {
        predictor: Predictor {
            classes: header.classes.into_iter().map(Class::from).collect(),
            feature_names: header.feature_names,
            features,
            kernel,
            support: reader.u32("support")?,
            coefficients: reader.f64("coefficients")?.0,
            function,
            intercepts: reader.f64("intercept")?.0,
            probabilities,
            votes: unpack_votes(reader)?,
            scaling: match reader.has("shift") {
                true => Some(Scaling { shift: reader.f64("shift")?.0, scale: reader.f64("scale")?.0 }),
                false => None,
            },
        },
        summary: Summary {
            method: header.method,
            c: reader.scalar("c")?,
            loss: header.loss,
            truncation: if reader.has("truncation") { Some(reader.scalar("truncation")?) } else { None },
            penalty: header.penalty,
            utility: if reader.has("utility") { Some(reader.f64("utility")?.0) } else { None },
            cost: if reader.has("cost") { Some(reader.f64("cost")?.0) } else { None },
            cost_form: header.cost_form,
            utility_baseline: header.utility_baseline,
            class_weight: if reader.has("class_weight") { Some(reader.f64("class_weight")?.0) } else { None },
            fit_intercept: header.fit_intercept,
            tol: reader.scalar("tol")?,
            max_iter: size("max_iter", header.max_iter)?,
            solver_asked: header.solver_asked,
            solver: header.solver,
            rows: size("rows", header.rows)?,
            class_rows: header.class_rows.iter().map(|&rows| size("class_rows", rows)).collect::<Outcome<_>>()?,
            outliers: size("outliers", header.outliers)?,
            objective: reader.scalar("objective")?,
            trace: reader.f64("trace")?.0,
            steps: size("steps", header.steps)?,
            gap: reader.scalar("gap")?,
            iterations: size("iterations", header.iterations)?,
            status,
            details,
        },
        training: None,
    };
    check(&model)?;
    Ok(model)
}

fn unpack_details(names: Vec<String>, reader: &Reader) -> Outcome<Details> {
    let values = if reader.has("details") { reader.f64("details")?.0 } else { Vec::new() };
    if values.len() != names.len() {
        return Err(format!("{} names of details for {} numbers", names.len(), values.len()));
    }
    let mut details = Details::default();
    names.into_iter().zip(values).for_each(|(name, value)| details.set(name, value));
    Ok(details)
}

fn unpack_votes(reader: &Reader) -> Outcome<Option<Votes>> {
    if !reader.has("votes_order") {
        return Ok(None);
    }
    let counts = reader.u64("votes_counts")?.into_iter().map(|count| size("votes_counts", count));
    Ok(Some(Votes { order: reader.u32("votes_order")?, counts: counts.collect::<Outcome<_>>()? }))
}

fn unpack_kernel(header: &Header, reader: &Reader) -> Outcome<KernelFunction> {
    let gamma = || reader.scalar("gamma");
    let coef0 = || reader.scalar("coef0");
    Ok(match header.kernel.as_str() {
        "linear" => KernelFunction::Linear,
        "rbf" => KernelFunction::Rbf { gamma: gamma()? },
        "poly" => {
            let degree = header.degree.ok_or("the degree is missing")?;
            KernelFunction::Poly { gamma: gamma()?, degree, coef0: coef0()? }
        }
        "sigmoid" => KernelFunction::Sigmoid { gamma: gamma()?, coef0: coef0()? },
        "precomputed" => KernelFunction::Precomputed,
        other => return Err(format!("kernel {} is unknown", quoted(other))),
    })
}

/// What functions are made of, from names with a prefix.
pub(super) fn unpack_function(prefix: &str, shape: Shape, features: usize, reader: &Reader) -> Outcome<Function> {
    let name = |name: &str| format!("{prefix}{name}");
    let rows = match shape {
        Shape::Linear => return Ok(Function::Linear { weights: reader.f64(&name("weights"))?.0 }),
        Shape::Squares => return Ok(Function::Squares { weights: reader.f64(&name("weights"))?.0 }),
        Shape::Precomputed => return Ok(Function::Precomputed),
        Shape::Dense => {
            let (values, shape) = reader.f64(&name("rows"))?;
            let [rows, cols] = *shape else { return Err("rows is not a matrix".to_string()) };
            Rows::Dense(Dense::new(size("rows", rows)?, size("rows", cols)?, values).map_err(|e| e.to_string())?)
        }
        Shape::Sparse => {
            let starts = reader.u64(&name("row_starts"))?;
            let starts: Vec<usize> =
                starts.into_iter().map(|start| size("row_starts", start)).collect::<Outcome<_>>()?;
            let rows = starts.len().checked_sub(1).ok_or("row_starts is empty")?;
            let (columns, values) = (reader.u32(&name("row_columns"))?, reader.f64(&name("row_values"))?.0);
            Rows::Sparse(Csr::new(rows, features, starts, columns, values).map_err(|e| e.to_string())?)
        }
    };
    Ok(Function::Kernel { rows })
}

pub(super) fn size(name: &str, value: u64) -> Outcome<usize> {
    usize::try_from(value).map_err(|_| format!("{name} = {value} is too large for this machine"))
}

fn coef0(kernel: &KernelFunction) -> Option<f64> {
    match *kernel {
        KernelFunction::Poly { coef0, .. } | KernelFunction::Sigmoid { coef0, .. } => Some(coef0),
        _ => None,
    }
}

/// Whether a model is one that can predict: the same test before writing and after reading.
pub(super) fn check(model: &Model) -> Outcome<()> {
    let (predictor, summary) = (&model.predictor, &model.summary);
    let require = |holds: bool, problem: &str| if holds { Ok(()) } else { Err(problem.to_string()) };
    check_kernel(&predictor.kernel)?;
    let classes = predictor.classes.len();
    require(classes >= 2, "there must be at least two classes")?;
    require(Votes::pairs(classes).is_some(), "there are too many classes")?;
    let functions = predictor.functions();
    if let Some(votes) = &predictor.votes {
        check_votes(votes, predictor)?;
    }
    require(METHODS.contains(&summary.method.as_str()), "the method is unknown")?;
    let distinct: BTreeSet<&Class> = predictor.classes.iter().collect();
    require(distinct.len() == classes, "the classes must be distinct")?;
    require(predictor.features <= MOST_FEATURES, "there are too many features")?;
    require(
        summary.class_weight.as_ref().is_none_or(|factors| {
            factors.len() == predictor.classes.len()
                && factors.iter().all(|factor| factor.is_finite() && *factor >= 0.0)
        }),
        "class_weight must have one finite number >= 0 per class",
    )?;
    let is_payoff = |matrix: &Vec<f64>| {
        matrix.len() == classes * classes && matrix.iter().all(|value| value.is_finite() && *value >= 0.0)
    };
    for matrix in [&summary.utility, &summary.cost] {
        require(matrix.as_ref().is_none_or(is_payoff), "utility and cost must be classes x classes, finite and >= 0")?;
    }
    require(summary.utility.is_none() || summary.cost.is_none(), "a model has utilities or costs, not both")?;
    CostForm::from_name(&summary.cost_form).map_err(|error| error.to_string())?;
    Baseline::from_name(&summary.utility_baseline).map_err(|error| error.to_string())?;
    require(summary.class_rows.len() == predictor.classes.len(), "class_rows must have one number per class")?;
    require(
        predictor.feature_names.as_ref().is_none_or(|names| names.len() == predictor.features),
        "there must be as many feature names as features",
    )?;
    let (support, coefficients) = (&predictor.support, &predictor.coefficients);
    require(
        support.len().checked_mul(predictor.width()) == Some(coefficients.len()),
        "there must be as many coefficients as support vectors times functions",
    )?;
    require(support.is_sorted_by(|a, b| a < b), "the support vectors must ascend")?;
    require(support.last().is_none_or(|&last| (last as usize) < summary.rows), "a support vector is no training row")?;
    require(coefficients.iter().all(|value| value.is_finite()), "every coefficient must be finite")?;
    require(predictor.intercepts.len() == functions, "there must be one intercept per function")?;
    require(predictor.intercepts.iter().all(|b| b.is_finite()), "every intercept must be finite")?;
    let is_scaling = |Scaling { shift, scale }: &Scaling| {
        [shift, scale].iter().all(|numbers| numbers.len() == predictor.features)
            && shift.iter().all(|shift| shift.is_finite())
            && scale.iter().all(|scale| scale.is_finite() && *scale > 0.0)
    };
    require(
        predictor.scaling.as_ref().is_none_or(is_scaling),
        "shift and scale must have a finite number per column, scale > 0",
    )?;
    if let Some(probabilities) = &predictor.probabilities {
        probability::check(probabilities, predictor, summary.rows)?;
    }
    match &predictor.function {
        Function::Linear { weights } | Function::Squares { weights } => {
            let squares = matches!(predictor.function, Function::Squares { .. });
            require(matches!(predictor.kernel, KernelFunction::Linear), "weights need the linear kernel")?;
            require(
                predictor.features.checked_mul(functions * (1 + usize::from(squares))) == Some(weights.len()),
                "there must be as many weights as features times functions",
            )?;
            require(weights.iter().all(|value| value.is_finite()), "every weight must be finite")
        }
        Function::Kernel { rows } => {
            require(!matches!(predictor.kernel, KernelFunction::Precomputed), "a precomputed kernel keeps no rows")?;
            let rows = rows.as_design();
            require(rows.rows() == support.len(), "there must be one row per support vector")?;
            require(rows.cols() == predictor.features, "the support vectors must have as many columns as features")?;
            rows.check_finite().map_err(|error| error.to_string())
        }
        Function::Precomputed => {
            require(matches!(predictor.kernel, KernelFunction::Precomputed), "the kernel must be precomputed")?;
            // what predicts is as wide as the training data were long, whatever the file claims
            require(predictor.features == summary.rows, "a precomputed kernel has as many features as training rows")?;
            require(summary.rows <= MOST_ROWS, "there are too many rows")?;
            let inside = support.last().is_none_or(|&last| (last as usize) < predictor.features);
            require(inside, "a support vector is no column of the kernel matrix")
        }
    }
}

/// Whether pairs of classes can vote.
fn check_votes(votes: &Votes, predictor: &Predictor) -> Outcome<()> {
    let (classes, support) = (predictor.classes.len(), predictor.support.len());
    let require = |holds: bool, problem: &str| if holds { Ok(()) } else { Err(format!("votes: {problem}")) };
    require(classes > 2, "there must be more than two classes")?;
    require(matches!(predictor.function, Function::Kernel { .. }), "there must be rows")?;
    require(predictor.probabilities.is_none(), "there can't be probabilities")?;
    let mut order = votes.order.clone();
    order.sort_unstable();
    require(order.iter().copied().eq(0..classes as u32), "every class must have its place in the order")?;
    let total = votes.counts.iter().try_fold(0usize, |sum, &count| sum.checked_add(count));
    require(votes.counts.len() == classes && total == Some(support), "each support vector must be of one class")
}

fn check_kernel(kernel: &KernelFunction) -> Outcome<()> {
    if let KernelFunction::Custom(custom) = kernel {
        return Err(format!("the kernel {:?} is a function of the caller's, which a file can't hold", custom.name()));
    }
    if let KernelFunction::Poly { degree, .. } = kernel
        && !(1..=64).contains(degree)
    {
        return Err(format!("degree = {degree} is not from 1 to 64"));
    }
    if kernel.gamma().is_some_and(|gamma| !(gamma.is_finite() && gamma > 0.0)) {
        return Err("gamma must be finite and > 0".to_string());
    }
    if coef0(kernel).is_some_and(|coef0| !coef0.is_finite()) {
        return Err("coef0 must be finite".to_string());
    }
    Ok(())
}

impl From<&Class> for Name {
    fn from(class: &Class) -> Self {
        match class {
            Class::Int(value) => Name::Int(*value),
            Class::Text(text) => Name::Text(text.clone()),
        }
    }
}

impl From<Name> for Class {
    fn from(name: Name) -> Self {
        match name {
            Name::Int(value) => Class::Int(value),
            Name::Text(text) => Class::Text(text),
        }
    }
}
