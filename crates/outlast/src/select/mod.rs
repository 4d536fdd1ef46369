//! What many fits say together: splits of the rows, searches over grids that share work between their points, and the audit of
//! labels.

pub mod audit;
mod folds;
pub mod lq;
pub mod tune;

pub use audit::{Audit, AuditKernel, AuditReport, components};
pub use folds::{Split, stratified};
pub use lq::{Cs, LqChoice, LqSearch, Point, default_cs};
pub use tune::{Tune, Tuned};
