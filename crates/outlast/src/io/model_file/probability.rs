//! What probabilities are read off, in a model file of format version 4: arrays whose names begin with `probability_`.
//!
//! ```text
//! levels       f64  the levels
//! support      u32  training rows that carry a function
//! weights, or rows, or row_starts, row_columns and row_values: as those of the model itself; pairs x levels functions
//! counts       u64  rows of each pair's family
//! positions    u32  their positions in support, family after family
//! coefficients f64  their coefficients, rows x levels
//! intercepts   f64  pairs x levels
//! ```

use super::container::{Arrays, Reader};
use super::header::{Outcome, Shape, pack_function, size, unpack_function};
use crate::model::{Family, Function, Predictor, Probabilities};

const PREFIX: &str = "probability_";

pub(super) fn pack(probabilities: &Probabilities, features: usize, arrays: &mut Arrays) {
    let Probabilities { levels, support, function, families } = probabilities;
    let name = |name: &str| format!("{PREFIX}{name}");
    arrays.f64(&name("levels"), &[levels.len()], levels);
    arrays.u32(&name("support"), &[support.len()], support);
    pack_function(PREFIX, function, features, arrays);
    arrays.u64(&name("counts"), &[families.len()], families.iter().map(|family| family.positions.len() as u64));
    let positions: Vec<u32> = families.iter().flat_map(|family| family.positions.iter().copied()).collect();
    arrays.u32(&name("positions"), &[positions.len()], &positions);
    let coefficients: Vec<f64> = families.iter().flat_map(|family| family.coefficients.iter().copied()).collect();
    arrays.f64(&name("coefficients"), &[positions.len(), levels.len()], &coefficients);
    let intercepts: Vec<f64> = families.iter().flat_map(|family| family.intercepts.iter().copied()).collect();
    arrays.f64(&name("intercepts"), &[families.len(), levels.len()], &intercepts);
}

pub(super) fn unpack(shape: Shape, features: usize, reader: &Reader) -> Outcome<Option<Probabilities>> {
    let name = |name: &str| format!("{PREFIX}{name}");
    if !reader.has(&name("levels")) {
        return Ok(None);
    }
    let levels = reader.f64(&name("levels"))?.0;
    let function = unpack_function(PREFIX, shape, features, reader)?;
    let positions = reader.u32(&name("positions"))?;
    let coefficients = reader.f64(&name("coefficients"))?.0;
    let intercepts = reader.f64(&name("intercepts"))?.0;
    let (mut families, mut taken) = (Vec::new(), 0usize);
    let missing = || "the families of probabilities are incomplete".to_string();
    for (pair, count) in reader.u64(&name("counts"))?.into_iter().enumerate() {
        let m = levels.len();
        let end = taken.checked_add(size("counts", count)?).ok_or_else(missing)?;
        let positions = positions.get(taken..end).ok_or_else(missing)?.to_vec();
        let wide = |at: usize| at.checked_mul(m).ok_or_else(missing);
        let coefficients = coefficients.get(wide(taken)?..wide(end)?).ok_or_else(missing)?.to_vec();
        let intercepts = intercepts.get(wide(pair)?..wide(pair + 1)?).ok_or_else(missing)?.to_vec();
        families.push(Family { positions, coefficients, intercepts });
        taken = end;
    }
    Ok(Some(Probabilities { levels, support: reader.u32(&name("support"))?, function, families }))
}

/// Whether probabilities can be computed with them.
pub(super) fn check(probabilities: &Probabilities, predictor: &Predictor, rows: usize) -> Outcome<()> {
    let Probabilities { levels, support, function, families } = probabilities;
    let require = |holds: bool, problem: &str| if holds { Ok(()) } else { Err(format!("probabilities: {problem}")) };
    let classes = predictor.classes.len();
    let inside = !levels.is_empty() && levels.iter().all(|&level| level > 0.0 && level < 1.0);
    require(inside && levels.is_sorted_by(|a, b| a < b), "the levels must ascend from 0 to 1")?;
    require(support.is_sorted_by(|a, b| a < b), "the supporting rows must ascend")?;
    require(support.last().is_none_or(|&last| (last as usize) < rows), "a supporting row is no training row")?;
    let pairs = classes.checked_mul(classes - 1).map(|twice| twice / 2);
    require(pairs == Some(families.len()), "there must be a family for each pair of classes")?;
    for Family { positions, coefficients, intercepts } in families {
        require(positions.is_sorted_by(|a, b| a < b), "positions must ascend")?;
        require(positions.last().is_none_or(|&last| (last as usize) < support.len()), "a position is out of range")?;
        let sized = coefficients.len() == positions.len() * levels.len() && intercepts.len() == levels.len();
        require(sized, "there must be a coefficient for each row and level, and an intercept for each level")?;
        let mut numbers = coefficients.iter().chain(intercepts);
        require(numbers.all(|value| value.is_finite()), "every number must be finite")?;
    }
    match (function, &predictor.function) {
        (Function::Linear { weights }, Function::Linear { .. }) => {
            let expected = families.len().checked_mul(levels.len()).and_then(|m| m.checked_mul(predictor.features));
            require(expected == Some(weights.len()), "there must be a weight for each function and feature")?;
            require(weights.iter().all(|value| value.is_finite()), "every weight must be finite")
        }
        (Function::Kernel { rows }, Function::Kernel { .. }) => {
            let rows = rows.as_design();
            require(rows.rows() == support.len(), "there must be one row for each supporting row")?;
            require(rows.cols() == predictor.features, "rows must have as many columns as there are features")?;
            rows.check_finite().map_err(|error| error.to_string())
        }
        (Function::Precomputed, Function::Precomputed) => Ok(()),
        _ => require(false, "they must be of the same kind as the model"),
    }
}
