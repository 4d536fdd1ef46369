//! Rows of a kernel matrix that outlive a fit.

use super::Kept;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Kernel rows handed from one fit to the next, of fits to the same rows with the same kernel: another C, another truncation.
#[derive(Clone, Default)]
pub struct KernelStore(Arc<Mutex<Option<Kept>>>);

impl KernelStore {
    /// What was kept, if it has this shape and nobody else has it.
    pub(super) fn take(&self, rows: usize, slots: usize) -> Option<Kept> {
        let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inside.take_if(|kept| kept.slot.len() == rows && kept.slots == slots)
    }

    /// Keeps the longer list of rows.
    pub(super) fn put(&self, kept: Kept) {
        let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if inside.as_ref().is_none_or(|other| other.used <= kept.used) {
            *inside = Some(kept);
        }
    }
}

impl fmt::Debug for KernelStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KernelStore")
    }
}
