//! What comes in: the design matrix, the labels, the sample weights. Nothing here knows of losses or solvers.

mod chunks;
mod columns;
mod design;
mod fences;
mod labels;
mod map;
mod repeated;
mod standard;

pub use chunks::{Chunk, ChunkView, Chunks, Parts};
pub use columns::Columns;
pub(crate) use design::chunks;
pub use design::{Csr, Dense, Design, Element};
pub(crate) use fences::Fences;
pub use labels::{Class, Labels, Target};
pub use map::{FeatureMap, Squared};
pub use repeated::Repeated;
#[cfg(feature = "io")]
pub(crate) use standard::FARTHEST;
pub use standard::{Scaling, Standardized};

use crate::error::{Error, Result};

/// Checks sample weights: one per row, finite, not negative, not all zero.
pub fn check_weights(weights: &[f64], rows: usize) -> Result<()> {
    if weights.len() != rows {
        return Err(Error::shape(
            "sample_weight",
            format!("{} values", weights.len()),
            format!("{rows}, one per row of X"),
        ));
    }
    if let Some(row) = weights.iter().position(|w| !w.is_finite() || *w < 0.0) {
        let problem = format!("a weight of {} is not allowed: weights must be finite and >= 0", weights[row]);
        return Err(Error::Value { what: "sample_weight", row, column: None, problem });
    }
    Ok(())
}
