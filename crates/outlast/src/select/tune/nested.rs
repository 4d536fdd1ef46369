//! Cross-validation around a whole search.

use super::part::{Labelled, Part};
use super::score::{Payoff, mean, of_rows, standard_error};
use super::tuned::{Nested, Tuned};
use crate::error::{Error, Result};
use crate::model::FitRequest;
use crate::problem::Kernel;
use crate::select::Split;
use crate::solver::Status;

/// The error of the whole procedure: searched and fitted without the held-out rows of each split, judged on them. Nothing, where it was
/// interrupted.
pub(in crate::select) fn around(
    data: Labelled,
    outer: &[Split],
    kernel: &Kernel,
    payoff: &Payoff,
    request: &FitRequest,
    search: impl Fn(Labelled, &FitRequest) -> Result<Tuned>,
) -> Result<Option<Nested>> {
    let (mut errors, mut chosen) = (Vec::new(), Vec::new());
    for split in outer {
        let part = Part::new(data, &split.train, data, &split.test, kernel, false)?;
        let request = FitRequest { feature_names: None, ..part.train.request(request) };
        let tuned = match search(part.train.as_labelled(), &request) {
            Err(Error::Interrupted) => return Ok(None),
            Err(_) if request.control.out_of_time() => return Ok(None),
            tuned => tuned?,
        };
        if tuned.status != Status::Converged {
            return Ok(None);
        }
        let decided = tuned.model.predict_codes(part.held.as_design())?;
        let losses: Vec<f64> = part.codes.iter().zip(&decided).map(|(&truth, &to)| payoff.loss(truth, to)).collect();
        errors.push(of_rows(&losses, &part.weights).0);
        chosen.push(tuned.best().settings.clone());
    }
    let standard_error = standard_error(&errors, f64::NAN);
    Ok(Some(Nested { mean: mean(&errors), standard_error, errors, chosen }))
}
