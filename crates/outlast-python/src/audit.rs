//! The audit of labels.

use crate::errors::to_python;
use crate::fit::{self, ClassName, NumberOrName};
use crate::gate;
use crate::matrix::Matrix;
use numpy::{PyArray1, PyReadonlyArray1};
use outlast::io::{self, Cells};
use outlast::{Audit, AuditKernel, AuditReport};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// What an audit found.
#[pyclass(frozen, module = "outlast._core")]
pub struct Audited {
    report: AuditReport,
}

/// Audits labels. `codes` are positions in `classes`; `c=None` chooses; `progress` is called as `progress(stage, step, objective, gap)`.
#[pyfunction]
#[pyo3(signature = (x, codes, classes, *, folds, repeats, seed, kernel, gamma, c, truncation, threads=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "every one is a named argument in Python")]
pub fn audit(
    py: Python<'_>,
    x: Matrix<'_>,
    codes: PyReadonlyArray1<'_, u32>,
    classes: Vec<ClassName>,
    folds: usize,
    repeats: usize,
    seed: u64,
    kernel: &str,
    gamma: NumberOrName,
    c: Option<f64>,
    truncation: Option<NumberOrName>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Audited> {
    let audit = Audit {
        folds,
        repeats,
        seed,
        kernel: AuditKernel::from_name(kernel).map_err(to_python)?,
        gamma: fit::gamma(gamma).map_err(to_python)?,
        c,
        truncation: fit::truncation(truncation).map_err(to_python)?,
        // the gate's pool has the threads asked for
        threads: None,
    };
    let labels = fit::labels(classes, &codes)?;
    let design = x.design()?;
    let report =
        gate::run(py, threads, progress, |_| false, move |control| audit.run_with(&*design, &labels, control))?;
    Ok(Audited { report })
}

#[pymethods]
impl Audited {
    /// How suspect each row is.
    #[getter]
    fn scores<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.report.scores)
    }

    /// The likeliest class of each row.
    #[getter]
    fn suggested<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, &self.report.suggested)
    }

    /// Its chance.
    #[getter]
    fn confidence<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.report.confidence)
    }

    /// Share of the fits without the row that say so.
    #[getter]
    fn agreement<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.report.agreement)
    }

    /// Mean margin of each row in fits without it.
    #[getter]
    fn margins<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.report.margins)
    }

    /// Chances of the classes, rows x classes, flat.
    #[getter]
    fn chances<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.report.chances)
    }

    /// Shares of the true classes by given class, flat.
    #[getter]
    fn noise<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.report.noise.concat())
    }

    /// Rows by given and likeliest class, flat.
    #[getter]
    fn confusion<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_vec(py, self.report.confusion.concat().into_iter().map(|count| count as i64).collect())
    }

    /// Rows that the fit to all rows gives up.
    #[getter]
    fn truncated<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        PyArray1::from_slice(py, &self.report.truncated)
    }

    /// Rows whose values are far from those of all others.
    #[getter]
    fn far<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        PyArray1::from_vec(py, self.report.far.iter().map(Option::is_some).collect())
    }

    /// Groups of rows with the same values and different labels.
    #[getter]
    fn conflicts(&self) -> Vec<Vec<usize>> {
        self.report.conflicts.clone()
    }

    /// Classes with hardly any rows.
    #[getter]
    fn small_classes(&self) -> Vec<u32> {
        self.report.small_classes.clone()
    }

    /// Estimated share of wrong labels.
    #[getter]
    fn wrong_share(&self) -> f64 {
        self.report.wrong_share
    }

    /// The kernels and the C chosen for each.
    #[getter]
    fn chosen(&self) -> Vec<(String, f64)> {
        self.report.chosen.iter().map(|chosen| (chosen.kernel.name().to_string(), chosen.c)).collect()
    }

    /// The suspects as columns, most suspect first: row, given, suggested, score, confidence, agreement, margin, reasons.
    fn suspects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let suspects = &self.report.suspects;
        let columns = PyDict::new(py);
        columns.set_item("row", PyArray1::from_vec(py, suspects.iter().map(|s| s.row as i64).collect()))?;
        columns.set_item("given", PyArray1::from_vec(py, suspects.iter().map(|s| s.given).collect()))?;
        columns.set_item("suggested", PyArray1::from_vec(py, suspects.iter().map(|s| s.suggested).collect()))?;
        columns.set_item("score", PyArray1::from_vec(py, suspects.iter().map(|s| s.score).collect()))?;
        columns.set_item("confidence", PyArray1::from_vec(py, suspects.iter().map(|s| s.confidence).collect()))?;
        columns.set_item("agreement", PyArray1::from_vec(py, suspects.iter().map(|s| s.agreement).collect()))?;
        let margins = suspects.iter().map(|s| self.report.margins[s.row]).collect();
        columns.set_item("margin", PyArray1::from_vec(py, margins))?;
        let reasons: Vec<String> = suspects.iter().map(|s| self.report.words(s).join("; ")).collect();
        columns.set_item("reasons", reasons)?;
        Ok(columns)
    }

    /// Writes the page. `cells` is the table as text, column by column, its last column the labels; empty to leave it out.
    fn write_page(
        &self,
        py: Python<'_>,
        path: PathBuf,
        x: Matrix<'_>,
        header: Vec<String>,
        cells: Vec<Vec<String>>,
        source: &str,
    ) -> PyResult<()> {
        let design = x.design()?;
        let target = header.last().cloned().unwrap_or_default();
        let last = cells.len().checked_sub(1);
        let numeric = (0..cells.len()).map(|column| Some(column) != last).collect();
        let cells = Cells { header: Some(header), columns: cells, numeric, target_column: last, first_line: 0 };
        py.detach(|| io::save_page(&io::audit_page(&self.report, &*design, source, &target, cells)?, path))
            .map_err(to_python)
    }

    /// Writes the suspects as CSV, rows counted from 1.
    fn write_csv(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| io::write_atomically(&path, |out| io::write_suspects(&self.report, None, out))).map_err(to_python)
    }
}
