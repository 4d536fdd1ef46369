//! One file per command.

pub mod apply;
pub mod audit;
pub mod certify;
pub mod evaluate;
pub mod export;
pub mod fit;
pub mod gamma;
pub mod predict;
pub mod tune;

use crate::failure::Failure;
use outlast::Labels;
use outlast::io;

/// The labels of a table that must have some.
pub fn labels_of(table: &io::Table) -> Result<&Labels, Failure> {
    table.labels.as_ref().ok_or_else(|| Failure::Usage(format!("{}: there are no labels", table.source.display())))
}
