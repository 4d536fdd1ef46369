//! A fitted model as Python sees it.

use crate::errors::to_python;
use crate::fit::ClassName;
use crate::gate;
use crate::matrix::Matrix;
use crate::pool;
use crate::storage;
use numpy::{PyArray1, PyReadonlyArray1};
use outlast::model::{Function, Rows, Training, certify_with};
use outlast::problem::KernelFunction;
use outlast::{Design, Labels, Model, Probability};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A fitted model: what predicts, how it was made, and, until it is stored in a file, what the fit says about each
/// training row.
#[pyclass(frozen, module = "outlast._core")]
pub struct Fitted {
    pub model: Model,
}

/// The arguments of `from_bytes`.
type State<'py> = (
    Bound<'py, PyBytes>,
    Option<Bound<'py, PyArray1<f64>>>,
    Option<Bound<'py, PyArray1<bool>>>,
    Option<Bound<'py, PyArray1<f64>>>,
    Option<Bound<'py, PyArray1<f64>>>,
    Option<Bound<'py, PyArray1<f64>>>,
);

/// A sequence of numbers, or what went wrong.
type Numbers<'py, T> = PyResult<Bound<'py, PyArray1<T>>>;

/// The parts of a CSR matrix: row starts, columns, values.
type Parts<'py> = (Bound<'py, PyArray1<usize>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>);

impl Fitted {
    /// What a model says about the rows of X, without the GIL.
    fn of_rows<'py, T: numpy::Element + Send>(
        &self,
        py: Python<'py>,
        x: &Matrix<'py>,
        threads: Option<usize>,
        ask: impl Fn(&Model, &dyn Design) -> outlast::Result<Vec<T>> + Sync,
    ) -> Numbers<'py, T> {
        let (design, pool) = (x.as_stored()?, pool::pool(py, threads)?);
        let values = py.detach(|| pool.install(|| ask(&self.model, &*design))).map_err(to_python)?;
        Ok(PyArray1::from_vec(py, values))
    }
}

#[pymethods]
impl Fitted {
    /// f(x) + b, rows x functions in one sequence, on that many threads; None for all cores.
    #[pyo3(signature = (x, threads=None))]
    fn decision_function<'py>(&self, py: Python<'py>, x: Matrix<'py>, threads: Option<usize>) -> Numbers<'py, f64> {
        self.of_rows(py, &x, threads, Model::decision_function)
    }

    /// The class of each row, as a position in `classes`, on that many threads; None for all cores.
    #[pyo3(signature = (x, threads=None))]
    fn predict_codes<'py>(&self, py: Python<'py>, x: Matrix<'py>, threads: Option<usize>) -> Numbers<'py, u32> {
        self.of_rows(py, &x, threads, Model::predict_codes)
    }

    /// The probability of each class, rows x classes in one sequence, on that many threads; None for all cores.
    #[pyo3(signature = (x, threads=None))]
    fn predict_proba<'py>(&self, py: Python<'py>, x: Matrix<'py>, threads: Option<usize>) -> Numbers<'py, f64> {
        self.of_rows(py, &x, threads, Model::predict_proba)
    }

    /// How probabilities are estimated: "weighted", or "none".
    #[getter]
    fn probability(&self) -> &'static str {
        match &self.model.predictor.probabilities {
            None => Probability::Off.name(),
            Some(_) => Probability::Weighted.name(),
        }
    }

    /// The classes, as the model file names them.
    #[getter]
    fn classes(&self) -> Vec<ClassName> {
        self.model.classes().iter().map(ClassName::from).collect()
    }

    /// Names of the columns, where the data had any.
    #[getter]
    fn feature_names(&self) -> Option<Vec<String>> {
        self.model.predictor.feature_names.clone()
    }

    /// Columns expected of X.
    #[getter]
    fn features(&self) -> usize {
        self.model.predictor.features
    }

    /// Weight of the loss.
    #[getter]
    fn c(&self) -> f64 {
        self.model.summary.c
    }

    /// Base loss.
    #[getter]
    fn loss(&self) -> &str {
        &self.model.summary.loss
    }

    /// Where the loss is cut off; None for no truncation.
    #[getter]
    fn truncation(&self) -> Option<f64> {
        self.model.summary.truncation
    }

    /// Penalty.
    #[getter]
    fn penalty(&self) -> &str {
        &self.model.summary.penalty
    }

    /// What a linear function is linear in.
    #[getter]
    fn feature_map(&self) -> &'static str {
        self.model.predictor.feature_map().name()
    }

    /// The utility matrix given, row by row.
    #[getter]
    fn utility(&self) -> Option<Vec<f64>> {
        self.model.summary.utility.clone()
    }

    /// The cost matrix given, row by row.
    #[getter]
    fn cost(&self) -> Option<Vec<f64>> {
        self.model.summary.cost.clone()
    }

    /// How costs entered the loss.
    #[getter]
    fn cost_form(&self) -> &str {
        &self.model.summary.cost_form
    }

    /// What was subtracted from the rows of the utility matrix.
    #[getter]
    fn utility_baseline(&self) -> &str {
        &self.model.summary.utility_baseline
    }

    /// Number of decision functions: 1 for two classes, else one per class, or one per pair of classes where these vote.
    #[getter]
    fn functions(&self) -> usize {
        self.model.predictor.functions()
    }

    /// Columns with a coefficient that is not 0, for a linear model.
    #[getter]
    fn selected<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<usize>>> {
        self.model.selected().map(|columns| PyArray1::from_vec(py, columns))
    }

    /// Factors on C by class; None where all are 1.
    #[getter]
    fn class_weight(&self) -> Option<Vec<f64>> {
        self.model.summary.class_weight.clone()
    }

    /// Whether an intercept was fitted.
    #[getter]
    fn fit_intercept(&self) -> bool {
        self.model.summary.fit_intercept
    }

    /// Relative duality gap asked for.
    #[getter]
    fn tol(&self) -> f64 {
        self.model.summary.tol
    }

    /// Most majorise-minimise steps allowed.
    #[getter]
    fn max_iter(&self) -> usize {
        self.model.summary.max_iter
    }

    /// Which solver was asked for.
    #[getter]
    fn solver_asked(&self) -> &str {
        &self.model.summary.solver_asked
    }

    /// Name of the kernel.
    #[getter]
    fn kernel(&self) -> &str {
        self.model.predictor.kernel.name()
    }

    /// gamma, where the kernel has one.
    #[getter]
    fn gamma(&self) -> Option<f64> {
        self.model.predictor.kernel.gamma()
    }

    /// The power of a polynomial kernel.
    #[getter]
    fn degree(&self) -> Option<u32> {
        match self.model.predictor.kernel {
            KernelFunction::Poly { degree, .. } => Some(degree),
            _ => None,
        }
    }

    /// The constant of a polynomial or sigmoid kernel.
    #[getter]
    fn coef0(&self) -> Option<f64> {
        match self.model.predictor.kernel {
            KernelFunction::Poly { coef0, .. } | KernelFunction::Sigmoid { coef0, .. } => Some(coef0),
            _ => None,
        }
    }

    /// w of a linear model, functions x columns in one sequence.
    #[getter]
    fn coef<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.model.predictor.weights().map(|weights| PyArray1::from_slice(py, weights))
    }

    /// b, one per function.
    #[getter]
    fn intercept<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.model.predictor.intercepts)
    }

    /// Positions of the support vectors among the training rows, ascending.
    #[getter]
    fn support<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, &self.model.predictor.support)
    }

    /// The support vectors that a kernel model keeps, dense, in one sequence; None for other models and where they are sparse.
    #[getter]
    fn support_vectors<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        match &self.model.predictor.function {
            Function::Kernel { rows: Rows::Dense(rows) } => Some(PyArray1::from_slice(py, rows.values())),
            _ => None,
        }
    }

    /// The support vectors that a kernel model keeps, as (indptr, indices, data); None for other models and where they are dense.
    #[getter]
    fn sparse_support_vectors<'py>(&self, py: Python<'py>) -> Option<Parts<'py>> {
        let Function::Kernel { rows: Rows::Sparse(rows) } = &self.model.predictor.function else { return None };
        let (starts, columns) = (PyArray1::from_slice(py, rows.starts()), PyArray1::from_slice(py, rows.columns()));
        Some((starts, columns, PyArray1::from_slice(py, rows.values())))
    }

    /// Coefficients of each support vector: one per function, or one per other class where pairs of classes vote.
    #[getter]
    fn width(&self) -> usize {
        self.model.predictor.width()
    }

    /// The support vectors' coefficients, support vectors x `width` in one sequence.
    #[getter]
    fn dual_coef<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.model.predictor.coefficients)
    }

    /// The full objective.
    #[getter]
    fn objective(&self) -> f64 {
        self.model.summary.objective
    }

    /// The objective after each majorise-minimise step.
    #[getter]
    fn trace<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.model.summary.trace)
    }

    /// Majorise-minimise steps taken.
    #[getter]
    fn steps(&self) -> usize {
        self.model.summary.steps
    }

    /// Relative duality gap of the last convex problem.
    #[getter]
    fn gap(&self) -> f64 {
        self.model.summary.gap
    }

    /// Iterations of the solver, all convex problems together.
    #[getter]
    fn iterations(&self) -> usize {
        self.model.summary.iterations
    }

    /// How the fit ended.
    #[getter]
    fn status(&self) -> &str {
        self.model.summary.status.name()
    }

    /// Which solver was taken.
    #[getter]
    fn solver(&self) -> &str {
        &self.model.summary.solver
    }

    /// Rows of the training data.
    #[getter]
    fn rows(&self) -> usize {
        self.model.summary.rows
    }

    /// The functional margin of each training row; None for a model that was loaded from a file.
    #[getter]
    fn margins<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.model.training.as_ref().map(|training| PyArray1::from_slice(py, &training.margins))
    }

    /// Which training rows lie beyond the truncation; None for a model that was loaded from a file.
    #[getter]
    fn outliers<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<bool>>> {
        self.model.training.as_ref().map(|training| PyArray1::from_slice(py, &training.outliers))
    }

    /// One number per training row, larger = more suspect; None for a model that was loaded from a file.
    #[getter]
    fn outlier_scores<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.model.training.as_ref().map(|training| PyArray1::from_vec(py, training.outlier_scores()))
    }

    /// How far ablation keeps each training row, rows x functions in one sequence; None for other methods and for a model
    /// that was loaded from a file.
    #[getter]
    fn eta<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        let eta = self.model.training.as_ref().and_then(|training| training.eta.as_ref());
        eta.map(|eta| PyArray1::from_slice(py, eta))
    }

    /// The method's name.
    #[getter]
    fn method(&self) -> &str {
        &self.model.summary.method
    }

    /// The number of that name that only some methods have; None where there is none.
    fn detail(&self, name: &str) -> Option<f64> {
        self.model.summary.details.get(name)
    }

    /// (lower bound, objective, gap, proved) on the rows the model was fitted to; `codes` are positions in `classes`.
    #[pyo3(signature = (x, codes, sample_weight=None, threads=None))]
    fn certify(
        &self,
        py: Python<'_>,
        x: Matrix<'_>,
        codes: PyReadonlyArray1<'_, u32>,
        sample_weight: Option<PyReadonlyArray1<'_, f64>>,
        threads: Option<usize>,
    ) -> PyResult<(f64, f64, f64, bool)> {
        let labels =
            Labels::from_codes(self.model.classes().to_vec(), codes.as_slice()?.to_vec()).map_err(to_python)?;
        let design = x.design()?;
        let weights = sample_weight.as_ref().map(|weights| weights.as_slice()).transpose()?;
        let found = gate::run(
            py,
            threads,
            None,
            |_| false,
            move |control| certify_with(&self.model, &*design, &labels, weights, control),
        )?;
        Ok((found.lower_bound, found.objective, found.gap, found.proved))
    }

    /// Writes the model file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| storage::save(&self.model, &path))
    }

    /// Writes the model in the form of another program; returns what the reader should know about it.
    fn export(&self, py: Python<'_>, path: PathBuf, format: &str) -> PyResult<Vec<String>> {
        py.detach(|| storage::export(&self.model, &path, format))
    }

    /// Reads a model file; `features` is the number of columns where the file can't tell (LIBSVM's).
    #[staticmethod]
    #[pyo3(signature = (path, features=None))]
    fn load(py: Python<'_>, path: PathBuf, features: Option<usize>) -> PyResult<Fitted> {
        Ok(Fitted { model: py.detach(|| storage::load(&path, features))? })
    }

    /// The model file's content.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &storage::to_bytes(&self.model)?))
    }

    /// The inverse of `to_bytes`; what the fit says about the training rows can be added.
    #[staticmethod]
    #[pyo3(signature = (data, margins=None, outliers=None, expansion=None, eta=None, scores=None))]
    fn from_bytes(
        data: &[u8],
        margins: Option<PyReadonlyArray1<'_, f64>>,
        outliers: Option<PyReadonlyArray1<'_, bool>>,
        expansion: Option<PyReadonlyArray1<'_, f64>>,
        eta: Option<PyReadonlyArray1<'_, f64>>,
        scores: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Fitted> {
        let mut model = storage::from_bytes(data)?;
        if let (Some(margins), Some(outliers), Some(expansion)) = (margins, outliers, expansion) {
            let training = Training {
                margins: margins.as_slice()?.to_vec(),
                outliers: outliers.as_slice()?.to_vec(),
                expansion: expansion.as_slice()?.to_vec(),
                eta: eta.map(|eta| eta.as_slice().map(<[f64]>::to_vec)).transpose()?,
                scores: scores.map(|scores| scores.as_slice().map(<[f64]>::to_vec)).transpose()?,
            };
            let (rows, values) = (model.summary.rows, model.summary.rows.checked_mul(model.predictor.functions()));
            let lengths = (training.margins.len(), training.outliers.len(), Some(training.expansion.len()));
            let kept = training.eta.as_ref().is_none_or(|eta| Some(eta.len()) == values);
            let scored = training.scores.as_ref().is_none_or(|scores| scores.len() == rows);
            if lengths != (rows, rows, values) || !kept || !scored {
                return Err(PyValueError::new_err(format!(
                    "the training rows are not those of a model of {rows} rows"
                )));
            }
            model.training = Some(training);
        }
        Ok(Fitted { model })
    }

    /// Pickling: the model file's content, and beside it what model files leave out.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, State<'py>)> {
        let rebuild = py.get_type::<Fitted>().getattr("from_bytes")?;
        let expansion = self.model.training.as_ref().map(|training| PyArray1::from_slice(py, &training.expansion));
        let scores = self.model.training.as_ref().and_then(|training| training.scores.as_ref());
        let scores = scores.map(|scores| PyArray1::from_slice(py, scores));
        Ok((rebuild, (self.to_bytes(py)?, self.margins(py), self.outliers(py), expansion, self.eta(py), scores)))
    }
}
