//! LIBSVM's model files, read for prediction.
//!
//! ```text
//! svm_type c_svc            or nu_svc, which predicts the same way
//! kernel_type rbf           linear, polynomial, rbf, sigmoid; then degree, gamma and coef0 as the kernel needs them
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
//! signs change where the first label is the smaller. More than two classes are decided there by a vote of all pairs, for which
//! there is no function per class: such files are refused.
//!
//! A file tells how to predict, not how it was trained: C, the objective and the training rows other than the support vectors are
//! unknown. The number of features is the largest index of a support vector; [`Predictor::widen`] sets a larger one.

use super::field::{Problem, number, quote};
use super::libsvm::{LARGEST_INDEX, Tokens, whole_number};
use super::lines::Lines;
use super::source::Source;
use crate::data::{Class, Csr, Dense, Design};
use crate::error::Result;
use crate::model::{Baseline, Common, CostForm, Details, Function, Model, Predictor, Rows, Summary};
use crate::problem::{KernelFunction, Loss, Penalty};
use crate::solver::Status;
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
    let mut lines = Lines::new(Source::open(path)?);
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
    let mut vectors = Vectors { starts: vec![0], ..Vectors::default() };
    while lines.next_line(&mut line)? {
        if vectors.coefficients.len() == parts.total && !line.trim_ascii().is_empty() {
            let problem = format!("a support vector beyond the {} that total_sv says", parts.total);
            return Err(lines.at(lines.line(), None, None, problem));
        }
        vectors.push(&line).map_err(|wrong| wrong.into_error(&line, &lines))?;
    }
    if vectors.coefficients.len() != parts.total {
        let found = vectors.coefficients.len();
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
    rho: Option<f64>,
    labels: Option<[i64; 2]>,
    counts: Option<[usize; 2]>,
}

/// A header that says all that is needed.
struct Parts {
    kernel: KernelFunction,
    total: usize,
    rho: f64,
    labels: [i64; 2],
    counts: [usize; 2],
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
        // with more classes there are more of them, and the file is refused for that
        let two = |what: &str| match values[..] {
            [a, b, ..] => Ok([a, b]),
            _ => Err(Wrong::new(end, format!("{what} must have a value for each of two classes"))),
        };
        match key {
            b"svm_type" => self.machine = Some(machine(first()?)?),
            b"kernel_type" => self.kernel = Some(kernel_name(first()?)?),
            b"degree" => self.degree = Some(count(first()?)?.try_into().unwrap_or(u32::MAX)),
            b"gamma" => self.gamma = Some(real(first()?)?),
            b"coef0" => self.coef0 = Some(real(first()?)?),
            b"nr_class" => {
                let (at, _) = first()?;
                self.classes = Some(match count(first()?)? {
                    2 => 2,
                    other => {
                        let problem = format!(
                            "nr_class {other}: LIBSVM decides between more than two classes by a vote of all pairs, which is not \
                             supported; only models of two classes are"
                        );
                        return Err(Wrong::new(at, problem));
                    }
                });
            }
            b"total_sv" => self.total = Some(count(first()?)?),
            b"rho" => self.rho = Some(real(first()?)?),
            b"label" => self.labels = Some(labels(two("label")?)?),
            b"nr_sv" => {
                let [a, b] = two("nr_sv")?;
                self.counts = Some([count(a)?, count(b)?]);
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
            _ => {
                let degree = self.degree.ok_or_else(|| missing("degree"))?;
                if !(1..=64).contains(&degree) {
                    return Err(format!("degree = {degree} is not allowed: it must be a whole number from 1 to 64"));
                }
                KernelFunction::Poly { gamma: gamma()?, degree, coef0 }
            }
        };
        let total = self.total.ok_or_else(|| missing("total_sv"))?;
        let counts = self.counts.unwrap_or([total, 0]);
        if counts[0].checked_add(counts[1]) != Some(total) {
            return Err(format!("nr_sv {} {} do not add up to total_sv {total}", counts[0], counts[1]));
        }
        let rho = self.rho.ok_or_else(|| missing("rho"))?;
        Ok(Parts { kernel, total, rho, labels: self.labels.ok_or_else(|| missing("label"))?, counts })
    }
}

fn machine((at, name): (usize, &[u8])) -> std::result::Result<(), Wrong> {
    match name {
        b"c_svc" | b"nu_svc" => Ok(()),
        _ => Err(Wrong::new(
            at,
            format!("svm_type {} is no classifier of two classes: only c_svc and nu_svc are", quote(name)),
        )),
    }
}

fn kernel_name((at, name): (usize, &[u8])) -> std::result::Result<&'static str, Wrong> {
    let known = [(&b"linear"[..], "linear"), (b"polynomial", "polynomial"), (b"rbf", "rbf"), (b"sigmoid", "sigmoid")];
    let found = known.iter().find(|(known, _)| *known == name).map(|(_, name)| *name);
    let allowed = "linear, polynomial, rbf and sigmoid are supported";
    found.ok_or_else(|| Wrong::new(at, format!("kernel_type {} is not supported: {allowed}", quote(name))))
}

fn labels(values: [(usize, &[u8]); 2]) -> std::result::Result<[i64; 2], Wrong> {
    let label = |(at, text): (usize, &[u8])| {
        let found = std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
        found.ok_or_else(|| Wrong::new(at, format!("the label {} is not a whole number", quote(text))))
    };
    let found = [label(values[0])?, label(values[1])?];
    match found[0] == found[1] {
        true => Err(Wrong::new(values[1].0, format!("the label {} twice", found[0]))),
        false => Ok(found),
    }
}

/// Support vectors read so far.
#[derive(Default)]
struct Vectors {
    coefficients: Vec<f64>,
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
    width: usize,
}

impl Vectors {
    fn push(&mut self, line: &[u8]) -> std::result::Result<(), Wrong> {
        let mut words = Tokens { content: line, at: 0 };
        let Some((at, coefficient)) = words.next() else { return Ok(()) };
        self.coefficients.push(number(coefficient).map_err(|problem| Wrong::new(at, problem))?);
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
}

fn model(parts: Parts, vectors: Vectors) -> std::result::Result<Model, String> {
    let Parts { kernel, total, rho, labels, counts } = parts;
    let turned = labels[0] < labels[1];
    let sign = if turned { -1.0 } else { 1.0 };
    let coefficients: Vec<f64> = vectors.coefficients.iter().map(|coefficient| sign * coefficient).collect();
    let features = vectors.width.max(1);
    let stored = vectors.values.len();
    let sparse = Csr::new(total, features, vectors.starts, vectors.columns, vectors.values);
    let sparse = sparse.map_err(|error| error.to_string())?;
    let affordable = stored.saturating_mul(DENSE).max(DENSE_ANYWAY);
    let function = match kernel {
        KernelFunction::Linear if features > affordable => {
            return Err(format!("a linear LIBSVM model of {features} features for {stored} values: there are too few"));
        }
        KernelFunction::Linear => {
            let mut weights = vec![0.0; features];
            for (row, &coefficient) in coefficients.iter().enumerate() {
                sparse.add_scaled(row, coefficient, &mut weights);
            }
            if weights.iter().any(|w| !w.is_finite()) {
                return Err("the weights of a linear LIBSVM model are too large for 64-bit numbers".to_string());
            }
            Function::Linear { weights }
        }
        _ => Function::Kernel { rows: rows(sparse, affordable)? },
    };
    let classes = if turned { labels } else { [labels[1], labels[0]] };
    let class_rows = if turned { counts } else { [counts[1], counts[0]] };
    let predictor = Predictor {
        classes: classes.map(Class::Int).to_vec(),
        feature_names: None,
        features,
        kernel,
        support: (0..total as u32).collect(),
        coefficients,
        function,
        intercepts: vec![-sign * rho],
        probabilities: None,
        scaling: None,
    };
    Ok(Model { predictor, summary: summary(total, class_rows), training: None })
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
fn summary(total: usize, class_rows: [usize; 2]) -> Summary {
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
        rows: total,
        class_rows: class_rows.to_vec(),
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
