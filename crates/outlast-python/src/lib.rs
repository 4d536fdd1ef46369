//! The private extension module `outlast._core`: numpy arrays in, a fitted model out.
//!
//! ```text
//! numpy -> matrix (borrowed, no copy) -> gate (GIL released, Ctrl-C let through) -> pool -> outlast -> Fitted
//! ```
//!
//! Whatever scikit-learn users expect of an estimator is in Python; here is only what needs the core.

mod audit;
mod errors;
mod fit;
mod fitted;
mod gate;
mod matrix;
mod page;
mod parts;
mod pool;
mod search;
mod storage;
mod stream;
mod tune;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::audit::{Audited, audit};
    #[pymodule_export]
    use crate::fit::{fit, gamma_quartiles};
    #[pymodule_export]
    use crate::fitted::Fitted;
    #[pymodule_export]
    use crate::page::write_page;
    #[pymodule_export]
    use crate::parts::{Partition, add_answers, fit_parts};
    #[pymodule_export]
    use crate::stream::{FileRows, fit_files, open_files};
    #[pymodule_export]
    use crate::tune::{search_lq, tune};
}
