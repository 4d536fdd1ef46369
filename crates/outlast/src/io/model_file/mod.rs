//! Model files: [`container`] is the outer form, [`header`] what is in it.
//!
//! What a fit says about its training rows ([`Training`](crate::model::Training)) is not stored; everything else comes back
//! bit for bit. A file is data only: reading one runs nothing and trusts nothing.

mod container;
mod header;
mod probability;

use super::atomic::write_atomically;
use super::libsvm_model;
use crate::error::{Error, Result, harmless};
use crate::model::{Model, Predictor};
use container::{MAGIC, PREAMBLE, Reader};
pub(super) use header::MOST_ROWS;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The newest format. A model is written in the oldest that says all of it: 3, with probabilities 4, with votes of pairs or a scaling of the
/// columns 5.
pub const FORMAT_VERSION: u32 = 5;

/// Writes a model file, atomically.
///
/// ```
/// use outlast::io::{load_model, save_model};
/// # use outlast::{model::{Details, Function, Predictor, Summary}, KernelFunction, Model, Status};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("model.outlast");
/// # let predictor = Predictor { classes: vec!["no".into(), "yes".into()], feature_names: None, features: 1,
/// #     kernel: KernelFunction::Linear, support: vec![], coefficients: vec![],
/// #     function: Function::Linear { weights: vec![0.1] }, intercepts: vec![0.2], probabilities: None, votes: None,
/// #     scaling: None };
/// # let summary = Summary { method: "truncated".into(), c: 1.0, loss: "hinge".into(), truncation: Some(-1.0),
/// #     penalty: "l2".into(), utility: None, cost: None, cost_form: "utility".into(),
/// #     utility_baseline: "keep".into(), class_weight: None, fit_intercept: true, tol: 1e-4, max_iter: 100,
/// #     solver_asked: "auto".into(), steps: 0, solver: "newton".into(), rows: 2, class_rows: vec![1, 1], outliers: 0, objective: 1.0,
/// #     trace: vec![1.0], gap: 0.0, iterations: 1, status: Status::Converged, details: Details::default() };
/// # let model = Model { predictor, summary, training: None };
/// save_model(&model, &path)?;
/// assert_eq!(load_model(&path)?, model);
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn save_model(model: &Model, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let bytes = pack(model).map_err(|problem| refuse(path, format!("the model can't be saved: {problem}")))?;
    write_atomically(path, |out| out.write_all(&bytes))
}

/// Reads a model file, or a model file of LIBSVM: a classifier with the linear, polynomial, rbf or sigmoid kernel,
/// or of two classes with a precomputed one.
///
/// Of the latter only what predicts is known; its C is 1 by default, its objective and gap are NaN.
pub fn load_model(path: impl AsRef<Path>) -> Result<Model> {
    let path = path.as_ref();
    let failed = |error| Error::io(path, error);
    let mut file = File::open(path).map_err(failed)?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(refuse(path, "is a folder, not a model file".to_string()));
    }
    // a look at the beginning first: whatever is not a model is refused before it is read
    let mut bytes = Vec::new();
    file.by_ref().take(PREAMBLE as u64).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.starts_with(MAGIC) {
        file.read_to_end(&mut bytes).map_err(failed)?;
    }
    if bytes.starts_with(libsvm_model::START) {
        return libsvm_model::load(path);
    }
    unpack(&bytes).map_err(|problem| refuse(path, problem))
}

/// The bytes of a model file.
pub fn model_to_bytes(model: &Model) -> Result<Vec<u8>> {
    pack(model).map_err(|problem| refuse(Path::new("model"), format!("the model can't be saved: {problem}")))
}

/// The model in the bytes of a model file, ours or of LIBSVM, as [`load_model`] reads it.
pub fn model_from_bytes(bytes: &[u8]) -> Result<Model> {
    if bytes.starts_with(libsvm_model::START) {
        return libsvm_model::from_bytes(bytes);
    }
    unpack(bytes).map_err(|problem| refuse(Path::new("model"), problem))
}

fn refuse(file: &Path, problem: String) -> Error {
    Error::ModelFile { file: file.to_path_buf(), problem }
}

fn pack(model: &Model) -> std::result::Result<Vec<u8>, String> {
    header::check(model)?;
    let (header, arrays) = header::pack(model);
    let header = serde_json::to_vec(&header).map_err(|error| error.to_string())?;
    let Predictor { votes, scaling, probabilities, .. } = &model.predictor;
    let version = match probabilities {
        _ if votes.is_some() || scaling.is_some() => FORMAT_VERSION,
        Some(_) => 4,
        None => 3,
    };
    Ok(arrays.seal(version, &header))
}

fn unpack(bytes: &[u8]) -> std::result::Result<Model, String> {
    let opened = container::open(bytes, FORMAT_VERSION)?;
    let damaged = |problem: String| format!("the model file is damaged: {problem}");
    let mut header: header::Header = serde_json::from_slice(opened.header)
        .map_err(|error| damaged(format!("its header is unreadable ({})", harmless(&error.to_string()))))?;
    let entries = std::mem::take(&mut header.arrays);
    header::unpack(header, &Reader { entries: &entries, opened: &opened }).map_err(damaged)
}

#[cfg(test)]
mod tests;
