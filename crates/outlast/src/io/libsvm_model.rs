//! LIBSVM's model files, read for prediction.
//!
//! ```text
//! svm_type c_svc            or nu_svc, which predicts the same way
//! kernel_type rbf           linear, polynomial, rbf, sigmoid, precomputed; then degree, gamma and coef0 as the kernel needs them
//! nr_class 2
//! total_sv 2
//! rho 0.5
//! label 1 -1
//! nr_sv 1 1
//! SV
//! 0.25 1:0.5 3:2            coefficient, then the support vector's entries, indices from 1
//! -0.25 2:1
//! ```
//!
//! LIBSVM decides for the first label where sum_i coefficient_i k(x_i, x) - rho > 0; here f is positive for the larger label, so that the
//! signs change where the first label is the smaller. With k > 2 classes there are a rho for each pair of labels and k - 1 coefficients for
//! each support vector, and the pairs vote: [`Votes`].
//!
//! Of a precomputed kernel, for two classes, a support vector is `0:row`, the training row counted from 1; X has the kernel values
//! with the training rows in their order.
//!
//! A file tells how to predict, not how it was trained: C, the objective and the training rows other than the support vectors are
//! unknown. The number of features is the largest index of a support vector; [`Model::widen`] sets a larger one.

use super::field::{Problem, number, quote};
use super::libsvm::{LARGEST_INDEX, Tokens, whole_number};
use super::lines::Lines;
use super::model_file::MOST_ROWS;
use super::source::Source;
use crate::data::{Class, Csr, Dense, Design};
use crate::error::Result;
use crate::model::{Baseline, Common, CostForm, Details, Function, Model, Predictor, Rows, Summary, Votes, pairs};
use crate::problem::{KernelFunction, Loss, Penalty};
use crate::solver::Status;
use std::collections::BTreeSet;
use std::path::Path;

/// How such a file begins.
pub(super) const START: &[u8] = b"svm_type";

/// The solver's name in a summary.
const SOLVER: &str = "libsvm";

/// Dense numbers allowed for each entry that the file has, and how many are allowed anyway.
const DENSE: usize = 16;
const DENSE_ANYWAY: usize = 1 << 24;

/// Reads a model file of LIBSVM.
pub(super) fn load(path: &Path) -> Result<Model> {
    read(Source::open(path)?)
}

/// Reads one from memory.
pub(super) fn from_bytes(bytes: &[u8]) -> Result<Model> {
    read(Source::new(Box::new(bytes), "model".into())?)
}

fn read(source: Source) -> Result<Model> {
    let mut lines = Lines::new(source);
    let mut header = Header::default();
    let mut line = Vec::new();
    loop {
        if !lines.next_line(&mut line)? {
            return Err(lines.whole("a LIBSVM model ends before its support vectors: there is no line SV"));
        }
        if line.trim_ascii() == b"SV" {
            break;
        }
        header.take(&line).map_err(|wrong| wrong.into_error(&line, &lines))?;
    }
    let parts = header.check().map_err(|problem| lines.whole(problem))?;
    let precomputed = matches!(parts.kernel, KernelFunction::Precomputed);
    let mut vectors = Vectors { starts: vec![0], each: parts.labels.len() - 1, precomputed, ..Vectors::default() };
    while lines.next_line(&mut line)? {
        if vectors.count() == parts.total && !line.trim_ascii().is_empty() {
            let problem = format!("a support vector beyond the {} that total_sv says", parts.total);
            return Err(lines.at(lines.line(), None, None, problem));
        }
        vectors.push(&line).map_err(|wrong| wrong.into_error(&line, &lines))?;
    }
    if vectors.count() != parts.total {
        let found = vectors.count();
        return Err(lines.whole(format!("a LIBSVM model with {found} support vectors, but total_sv {}", parts.total)));
    }
    model(parts, vectors).map_err(|problem| lines.whole(problem))
}

/// Something wrong at a byte of the line.
struct Wrong {
    at: usize,
    problem: Problem,
}

impl Wrong {
    fn new(at: usize, problem: impl Into<Problem>) -> Self {
        Wrong { at, problem: problem.into() }
    }

    fn into_error(self, line: &[u8], lines: &Lines) -> crate::Error {
        let column = 1 + String::from_utf8_lossy(&line[..self.at]).chars().count() as u64;
        lines.at(lines.line(), Some(column), None, self.problem)
    }
}

/// The lines before the support vectors.
#[derive(Default)]
struct Header {
    machine: Option<()>,
    kernel: Option<&'static str>,
    degree: Option<u32>,
    gamma: Option<f64>,
    coef0: Option<f64>,
    classes: Option<usize>,
    total: Option<usize>,
    rho: Option<Vec<f64>>,
    labels: Option<Vec<i64>>,
    counts: Option<Vec<usize>>,
}

/// A header that says all that is needed.
struct Parts {
    kernel: KernelFunction,
    total: usize,
    /// One for each pair of labels.
    rho: Vec<f64>,
    labels: Vec<i64>,
    /// Support vectors of each label.
    counts: Vec<usize>,
}

impl Header {
    /// Takes one line.
    fn take(&mut self, line: &[u8]) -> std::result::Result<(), Wrong> {
        let mut words = Tokens { content: line, at: 0 };
        let Some((at, key)) = words.next() else { return Ok(()) };
        let values: Vec<(usize, &[u8])> = words.collect();
        let end = line.len();
        let first = || values.first().copied().ok_or_else(|| Wrong::new(end, format!("{} has no value", quote(key))));
        let real = |(at, text): (usize, &[u8])| number(text).map_err(|problem| Wrong::new(at, problem));
        let count = |(at, text): (usize, &[u8])| {
            let found = whole_number(text).and_then(|value| usize::try_from(value).ok());
            found.ok_or_else(|| Wrong::new(at, format!("{} is not a whole number", quote(text))))
        };
        // LIBSVM, too, reads nr_class before the lists that go by it
        let classes = self.classes;
        let list = |wanted: fn(usize) -> Option<usize>, of_each: &str| match classes.map(wanted) {
            None => Err(Wrong::new(at, format!("{} before nr_class", quote(key)))),
            Some(wanted) if wanted == Some(values.len()) => Ok(&values[..]),
            Some(_) => Err(Wrong::new(end, format!("{} must have a value for each {of_each}", quote(key)))),
        };
        match key {
            b"svm_type" => self.machine = Some(machine(first()?)?),
            b"kernel_type" => self.kernel = Some(kernel_name(first()?)?),
            b"degree" => self.degree = Some(count(first()?)?.try_into().unwrap_or(u32::MAX)),
            b"gamma" => self.gamma = Some(real(first()?)?),
            b"coef0" => self.coef0 = Some(real(first()?)?),
            b"nr_class" => {
                let (place, found) = (first()?.0, count(first()?)?);
                if self.classes.replace(found).is_some() {
                    return Err(Wrong::new(at, "nr_class twice"));
                }
                if found < 2 {
                    return Err(Wrong::new(place, "a classifier needs two classes"));
                }
            }
            b"total_sv" => self.total = Some(count(first()?)?),
            b"rho" => {
                let values = list(Votes::pairs, "pair of classes")?;
                self.rho = Some(values.iter().map(|&value| real(value)).collect::<std::result::Result<_, _>>()?);
            }
            b"label" => self.labels = Some(labels(list(Some, "class")?)?),
            b"nr_sv" => {
                let values = list(Some, "class")?;
                self.counts = Some(values.iter().map(|&value| count(value)).collect::<std::result::Result<_, _>>()?);
            }
            // Platt's curve and the like: probabilities are not read
            b"probA" | b"probB" | b"prob_density_marks" => {}
            _ => return Err(Wrong::new(at, format!("{} is no line of a LIBSVM model", quote(key)))),
        }
        Ok(())
    }

    fn check(self) -> std::result::Result<Parts, String> {
        let missing = |name: &str| format!("a LIBSVM model without a line {name}");
        self.machine.ok_or_else(|| missing("svm_type"))?;
        self.classes.ok_or_else(|| missing("nr_class"))?;
        let gamma = || match self.gamma {
            None => Err(missing("gamma")),
            Some(gamma) if gamma > 0.0 => Ok(gamma),
            Some(gamma) => Err(format!("gamma = {gamma} is not allowed: it must be > 0")),
        };
        let coef0 = self.coef0.unwrap_or(0.0);
        let kernel = match self.kernel.ok_or_else(|| missing("kernel_type"))? {
            "linear" => KernelFunction::Linear,
            "rbf" => KernelFunction::Rbf { gamma: gamma()? },
            "sigmoid" => KernelFunction::Sigmoid { gamma: gamma()?, coef0 },
            "precomputed" if self.classes == Some(2) => KernelFunction::Precomputed,
            "precomputed" => return Err("a precomputed kernel of more than two classes is not supported".to_string()),
            _ => {
                let degree = self.degree.ok_or_else(|| missing("degree"))?;
                if !(1..=64).contains(&degree) {
                    return Err(format!("degree = {degree} is not allowed: it must be a whole number from 1 to 64"));
                }
                KernelFunction::Poly { gamma: gamma()?, degree, coef0 }
            }
        };
        let total = self.total.ok_or_else(|| missing("total_sv"))?;
        let labels = self.labels.ok_or_else(|| missing("label"))?;
        // two classes make no use of them
        let counts = match self.counts {
            None if labels.len() == 2 => vec![total, 0],
            counts => counts.ok_or_else(|| missing("nr_sv"))?,
        };
        if counts.iter().try_fold(0usize, |sum, &count| sum.checked_add(count)) != Some(total) {
            let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
            return Err(format!("nr_sv {} do not add up to total_sv {total}", counts.join(" ")));
        }
        Ok(Parts { kernel, total, rho: self.rho.ok_or_else(|| missing("rho"))?, labels, counts })
    }
}

fn machine((at, name): (usize, &[u8])) -> std::result::Result<(), Wrong> {
    match name {
        b"c_svc" | b"nu_svc" => Ok(()),
        _ => Err(Wrong::new(
            at,
            format!(
                "svm_type {} is no classifier: c_svc and nu_svc are read, regression and one-class models are not",
                quote(name)
            ),
        )),
    }
}

fn kernel_name((at, name): (usize, &[u8])) -> std::result::Result<&'static str, Wrong> {
    let known = ["linear", "polynomial", "rbf", "sigmoid", "precomputed"];
    let found = known.into_iter().find(|known| known.as_bytes() == name);
    let allowed = "linear, polynomial, rbf, sigmoid and precomputed are supported";
    found.ok_or_else(|| Wrong::new(at, format!("kernel_type {} is not supported: {allowed}", quote(name))))
}

fn labels(values: &[(usize, &[u8])]) -> std::result::Result<Vec<i64>, Wrong> {
    let mut found = Vec::with_capacity(values.len());
    let mut seen = BTreeSet::new();
    for &(at, text) in values {
        let label = std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
        let label = label.ok_or_else(|| Wrong::new(at, format!("the label {} is not a whole number", quote(text))))?;
        if !seen.insert(label) {
            return Err(Wrong::new(at, format!("the label {label} twice")));
        }
        found.push(label);
    }
    Ok(found)
}

/// Support vectors read so far.
#[derive(Default)]
struct Vectors {
    /// Coefficients of each.
    each: usize,
    /// Whether they are numbers of training rows, which are the columns then.
    precomputed: bool,
    coefficients: Vec<f64>,
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
    width: usize,
}

impl Vectors {
    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    fn push(&mut self, line: &[u8]) -> std::result::Result<(), Wrong> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let mut words = Tokens { content: line, at: 0 };
        for _ in 0..self.each {
            let few = || Wrong::new(line.len(), format!("a support vector must have {} coefficients", self.each));
            let (at, coefficient) = words.next().ok_or_else(few)?;
            self.coefficients.push(number(coefficient).map_err(|problem| Wrong::new(at, problem))?);
        }
        if self.precomputed {
            return self.push_number(words, line.len());
        }
        let mut previous = 0;
        for (at, word) in words {
            let Some(colon) = word.iter().position(|&byte| byte == b':') else {
                return Err(Wrong::new(at, format!("{} is not of the form index:value", quote(word))));
            };
            let index = whole_number(&word[..colon])
                .ok_or_else(|| Wrong::new(at, format!("{} is not a feature index", quote(&word[..colon]))))?;
            if index == 0 || index > LARGEST_INDEX {
                return Err(Wrong::new(at, format!("feature index {index}: indices count from 1 to {LARGEST_INDEX}")));
            }
            if index <= previous {
                return Err(Wrong::new(at, format!("feature index {index} after {previous}: indices must ascend")));
            }
            let value = number(&word[colon + 1..]).map_err(|problem| Wrong::new(at + colon + 1, problem))?;
            previous = index;
            self.width = self.width.max(index as usize);
            if value != 0.0 {
                self.columns.push(index as u32 - 1);
                self.values.push(value);
            }
        }
        self.starts.push(self.values.len());
        Ok(())
    }

    /// What is left of the line of a precomputed kernel: the number of the training row.
    fn push_number(&mut self, mut words: Tokens, end: usize) -> std::result::Result<(), Wrong> {
        let (at, word) = words.next().ok_or_else(|| Wrong::new(end, "a support vector without its row, 0:number"))?;
        let row = word.strip_prefix(b"0:").and_then(whole_number);
        let row = row.ok_or_else(|| Wrong::new(at, format!("{} is not of the form 0:number", quote(word))))?;
        if row == 0 || row > MOST_ROWS as u64 {
            return Err(Wrong::new(at, format!("training row {row}: rows count from 1 to {MOST_ROWS}")));
        }
        if let Some((at, word)) = words.next() {
            return Err(Wrong::new(at, format!("{} after the number of a training row", quote(word))));
        }
        self.width = self.width.max(row as usize);
        self.columns.push(row as u32 - 1);
        self.starts.push(self.columns.len());
        Ok(())
    }
}

fn model(parts: Parts, vectors: Vectors) -> std::result::Result<Model, String> {
    if vectors.precomputed {
        return of_kernel_values(parts, vectors);
    }
    let features = vectors.width.max(1);
    let stored = vectors.values.len();
    let sparse = Csr::new(parts.total, features, vectors.starts, vectors.columns, vectors.values);
    let sparse = sparse.map_err(|error| error.to_string())?;
    let affordable = stored.saturating_mul(DENSE).max(DENSE_ANYWAY);
    let mut order: Vec<usize> = (0..parts.labels.len()).collect();
    order.sort_by_key(|&place| parts.labels[place]);
    let class_rows = order.iter().map(|&place| parts.counts[place]).collect();
    let summary = summary(parts.total, class_rows);
    let mut predictor = Predictor {
        classes: order.iter().map(|&place| Class::Int(parts.labels[place])).collect(),
        feature_names: None,
        features,
        support: (0..parts.total as u32).collect(),
        coefficients: vectors.coefficients,
        function: Function::Precomputed,
        intercepts: Vec::new(),
        probabilities: None,
        votes: None,
        kernel: parts.kernel.clone(),
        scaling: None,
    };
    if parts.labels.len() == 2 {
        // positive for the larger label
        let sign = if order == [0, 1] { -1.0 } else { 1.0 };
        predictor.coefficients.iter_mut().for_each(|coefficient| *coefficient *= sign);
        predictor.intercepts = vec![-sign * parts.rho[0]];
        predictor.function = match parts.kernel {
            KernelFunction::Linear => linear(&sparse, &predictor.coefficients, affordable)?,
            _ => Function::Kernel { rows: rows(sparse, affordable)? },
        };
    } else {
        predictor.intercepts = intercepts(&order, &parts.rho);
        predictor.function = Function::Kernel { rows: rows(sparse, affordable)? };
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(class, &place)| places[place] = class as u32);
        predictor.votes = Some(Votes { order: places, counts: parts.counts });
    }
    Ok(Model { predictor, summary, training: None })
}

/// Two classes and a precomputed kernel.
fn of_kernel_values(parts: Parts, vectors: Vectors) -> std::result::Result<Model, String> {
    let features = vectors.width.max(1);
    // positive for the larger label
    let swapped = parts.labels[0] < parts.labels[1];
    let sign = if swapped { -1.0 } else { 1.0 };
    let (mut labels, mut counts) = (parts.labels, parts.counts);
    if !swapped {
        labels.reverse();
        counts.reverse();
    }
    let mut support: Vec<(u32, f64)> = vectors.columns.into_iter().zip(vectors.coefficients).collect();
    support.sort_by_key(|&(row, _)| row);
    if let Some(twice) = support.windows(2).find(|two| two[0].0 == two[1].0) {
        return Err(format!("training row {} twice among the support vectors", twice[0].0 + 1));
    }
    let predictor = Predictor {
        classes: labels.into_iter().map(Class::Int).collect(),
        feature_names: None,
        features,
        support: support.iter().map(|&(row, _)| row).collect(),
        coefficients: support.iter().map(|&(_, coefficient)| sign * coefficient).collect(),
        function: Function::Precomputed,
        intercepts: vec![-sign * parts.rho[0]],
        probabilities: None,
        votes: None,
        kernel: parts.kernel,
        scaling: None,
    };
    Ok(Model { predictor, summary: summary(features, counts), training: None })
}

/// One for each pair of sorted classes, positive for the first; `order` has the place of each class among the labels.
fn intercepts(order: &[usize], rho: &[f64]) -> Vec<f64> {
    let k = order.len();
    let mut by_place = vec![0.0; k * k];
    for ((first, second), rho) in pairs(k).zip(rho) {
        by_place[first * k + second] = -rho;
        by_place[second * k + first] = *rho;
    }
    pairs(k).map(|(first, second)| by_place[order[first] * k + order[second]]).collect()
}

fn linear(sparse: &Csr, coefficients: &[f64], affordable: usize) -> std::result::Result<Function, String> {
    let (features, stored) = (sparse.cols(), sparse.stored());
    if features > affordable {
        return Err(format!("a linear LIBSVM model of {features} features for {stored} values: there are too few"));
    }
    let mut weights = vec![0.0; features];
    for (row, &coefficient) in coefficients.iter().enumerate() {
        sparse.add_scaled(row, coefficient, &mut weights);
    }
    match weights.iter().all(|w| w.is_finite()) {
        true => Ok(Function::Linear { weights }),
        false => Err("the weights of a linear LIBSVM model are too large for 64-bit numbers".to_string()),
    }
}

/// Dense where more than half is stored, which is what dense data leave.
fn rows(sparse: Csr<'static>, affordable: usize) -> std::result::Result<Rows, String> {
    let size = sparse.rows().saturating_mul(sparse.cols());
    if sparse.stored() < size / 2 || size > affordable {
        return Ok(Rows::Sparse(sparse));
    }
    let mut values = vec![0.0; size];
    for (row, out) in values.chunks_exact_mut(sparse.cols()).enumerate() {
        sparse.copy_row(row, out);
    }
    Dense::new(sparse.rows(), sparse.cols(), values).map(Rows::Dense).map_err(|error| error.to_string())
}

/// An ordinary support vector machine of which little is known.
fn summary(rows: usize, class_rows: Vec<usize>) -> Summary {
    let unknown = Common::default();
    Summary {
        method: "truncated".to_string(),
        c: unknown.c,
        loss: Loss::hinge().base().name().to_string(),
        truncation: None,
        penalty: Penalty::L2.name().to_string(),
        utility: None,
        cost: None,
        cost_form: CostForm::default().name().to_string(),
        utility_baseline: Baseline::default().name().to_string(),
        class_weight: None,
        fit_intercept: true,
        tol: unknown.tol,
        max_iter: unknown.max_iter,
        solver_asked: "auto".to_string(),
        solver: SOLVER.to_string(),
        rows,
        class_rows,
        outliers: 0,
        objective: f64::NAN,
        trace: Vec::new(),
        steps: 0,
        gap: f64::NAN,
        iterations: 0,
        status: Status::Converged,
        details: Details::default(),
    }
}

#[cfg(test)]
mod tests;
