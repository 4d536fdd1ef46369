//! Choosing parameters by data: splits of the rows, and searches over grids that share work between their points.

mod folds;
mod lq;

pub use folds::{Split, stratified};
pub use lq::{LqChoice, LqSearch, Point, default_cs};
