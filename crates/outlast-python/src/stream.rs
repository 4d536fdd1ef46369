//! Files larger than memory: opened in one step, so that Python knows the classes, and fitted in another.

use crate::errors::to_python;
use crate::fit::{ClassName, method, seconds};
use crate::fitted::Fitted;
use crate::gate;
use outlast::io::{ReadOptions, Stream, StreamOptions, TargetColumn, open_stream};
use outlast::model::StreamRequest;
use outlast::solver::stream::MOST_SENT;
use outlast::{ClassWeight, FitRequest};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Mutex;

/// The rows of some files: in memory if they fit, else on disk.
#[pyclass(frozen, module = "outlast._core")]
pub struct FileRows {
    stream: Mutex<Option<Stream>>,
    classes: Vec<outlast::Class>,
    how: StreamOptions,
    #[pyo3(get)]
    feature_names: Option<Vec<String>>,
    notes: Mutex<Vec<String>>,
    #[pyo3(get)]
    in_memory: bool,
}

#[pymethods]
impl FileRows {
    /// What the user may want to know about the reading; a fit that keeps the rows on disk may have more to say.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.lock().map(|notes| notes.clone()).unwrap_or_default()
    }

    /// The classes, sorted.
    #[getter]
    fn classes(&self) -> Vec<ClassName> {
        self.classes.iter().map(ClassName::from).collect()
    }
}

/// Reads files of the same columns as one table. `memory` is in bytes, `cache` a folder; constants are taken off columns where `shift`.
#[pyfunction]
#[pyo3(signature = (files, *, target=None, weight_column=None, ignore=Vec::new(), memory, cache=None, shift=true,
    time_limit=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "every one is a named argument in Python")]
pub fn open_files(
    py: Python<'_>,
    files: Vec<PathBuf>,
    target: Option<String>,
    weight_column: Option<String>,
    ignore: Vec<String>,
    memory: usize,
    cache: Option<PathBuf>,
    shift: bool,
    time_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<FileRows> {
    let limit = time_limit.map(seconds).transpose()?;
    let target = target.map_or(TargetColumn::Auto, TargetColumn::Given);
    let options = ReadOptions { target, weight_column, ignore, ..ReadOptions::default() };
    let how = StreamOptions { memory, cache, shift };
    let asked = how.clone();
    let read = move |control: outlast::Control<'_>| {
        let control = limit.map_or(control, |limit| control.time_limit(limit));
        open_stream(&files, &options, &asked, &control)
    };
    let stream = gate::run(py, None, progress, |_| false, read)?;
    let (classes, feature_names, notes, in_memory) = match &stream {
        Stream::Whole(table) => {
            let classes = table.labels.as_ref().map(|labels| labels.classes().to_vec()).unwrap_or_default();
            (classes, table.feature_names.clone(), table.notes.clone(), true)
        }
        Stream::Cached { classes, feature_names, notes, .. } => {
            (classes.clone(), feature_names.clone(), notes.clone(), false)
        }
    };
    Ok(FileRows { stream: Mutex::new(Some(stream)), classes, how, feature_names, notes: Mutex::new(notes), in_memory })
}

/// Fits the method to the rows of files, once. `balanced` stands for class weights by the number of rows.
#[pyfunction]
#[pyo3(signature = (rows, method, parameters, *, balanced=false, threads=None, time_limit=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "every one is a named argument in Python")]
pub fn fit_files(
    py: Python<'_>,
    rows: &FileRows,
    method: &str,
    parameters: &Bound<'_, PyAny>,
    balanced: bool,
    threads: Option<usize>,
    time_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Fitted> {
    let mut method = self::method(method, parameters)?;
    if balanced {
        method.common_mut().class_weight = ClassWeight::Balanced;
    }
    method.check_chunks().map_err(to_python)?;
    let limit = time_limit.map(seconds).transpose()?;
    let taken = rows.stream.lock().map(|mut stream| stream.take()).ok().flatten();
    let stream = taken.ok_or_else(|| PyValueError::new_err("these rows were fitted already; open the files again"))?;
    let (classes, how, told) = (&rows.classes, &rows.how, &rows.notes);
    let model = gate::run(
        py,
        threads,
        progress,
        |_| false,
        move |control| {
            let control = limit.map_or(control, |limit| control.time_limit(limit));
            match stream.within(method.as_ref(), how)? {
                Stream::Whole(table) => {
                    let labels =
                        table.labels.as_ref().ok_or_else(|| outlast::Error::shape("y", "no labels", "one per row"))?;
                    let request = FitRequest {
                        sample_weight: table.weights.as_deref(),
                        feature_names: table.feature_names.as_deref(),
                        start: None,
                        control,
                    };
                    method.fit_labels(table.design(), labels, &request)
                }
                Stream::Cached { mut rows, feature_names, notes, .. } => {
                    if let Ok(mut told) = told.lock() {
                        *told = notes;
                    }
                    let feature_names = feature_names.as_deref();
                    method.fit_chunks(
                        &mut rows,
                        &StreamRequest { classes, feature_names, memory: how.memory, sums: MOST_SENT, control },
                    )
                }
            }
        },
    )?;
    Ok(Fitted { model })
}
