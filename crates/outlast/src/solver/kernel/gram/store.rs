//! Rows of a kernel matrix that outlive a fit.

use super::super::super::tiles::{self, Panels, Prepared};
use super::{DEAR, Kept};
use crate::data::Design;
use crate::linalg::Isa;
use crate::problem::KernelFunction;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Kernel rows handed from one fit to the next, of fits to the same rows with the same kernel: another C, another truncation.
#[derive(Clone, Default)]
pub struct KernelStore {
    kept: Arc<Mutex<Option<Kept>>>,
    part: Option<Part>,
}

/// Which rows of a larger set the fits are to.
#[derive(Clone)]
pub(super) struct Part {
    whole: SharedRows,
    rows: Arc<[u32]>,
}

impl KernelStore {
    /// A store of fits to some rows of a larger set, in that order, with the kernel of that set.
    pub(crate) fn within(whole: SharedRows, rows: Arc<[u32]>) -> KernelStore {
        KernelStore { part: Some(Part { whole, rows }), ..KernelStore::default() }
    }

    /// What was kept, if it has this shape and nobody else has it.
    pub(super) fn take(&self, rows: usize, slots: usize) -> Option<Kept> {
        let mut inside = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        inside.take_if(|kept| kept.slot.len() == rows && kept.slots == slots)
    }

    /// Keeps the longer list of rows.
    pub(super) fn put(&self, kept: Kept) {
        let mut inside = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if inside.as_ref().is_none_or(|other| other.used <= kept.used) {
            *inside = Some(kept);
        }
    }

    /// The set around that many rows, if there is one.
    pub(super) fn part(&self, rows: usize) -> Option<&Part> {
        self.part.as_ref().filter(|part| part.rows.len() == rows)
    }
}

impl fmt::Debug for KernelStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KernelStore")
    }
}

impl Part {
    /// Makes sure that as many of these rows as there is room for are known to all.
    pub(super) fn compute(&self, isa: Isa, rows: &[u32]) {
        let rows: Vec<u32> = rows.iter().map(|&row| self.rows[row as usize]).collect();
        self.whole.compute(isa, &rows);
    }

    pub(super) fn knows(&self, row: u32) -> bool {
        self.whole.0.values[self.rows[row as usize] as usize].get().is_some()
    }

    /// Copies the values of a row that is known, divided by a unit.
    pub(super) fn copy(&self, row: u32, unit: f64, out: &mut [f32]) {
        self.take(row, unit, self.rows.iter().copied(), out);
    }

    /// The same, against some rows of the part.
    pub(super) fn copy_some(&self, row: u32, unit: f64, columns: &[u32], out: &mut [f32]) {
        self.take(row, unit, columns.iter().map(|&column| self.rows[column as usize]), out);
    }

    fn take(&self, row: u32, unit: f64, columns: impl Iterator<Item = u32>, out: &mut [f32]) {
        let Some(values) = self.whole.0.values[self.rows[row as usize] as usize].get() else { return };
        // both units are powers of two
        let ratio = (self.whole.0.prepared.unit / unit) as f32;
        for (out, column) in out.iter_mut().zip(columns) {
            *out = ratio * values[column as usize];
        }
    }
}

/// Rows of the kernel matrix of a set, for fits to parts of it: the training rows of several folds. A row is computed when the first
/// of them needs it, with all rows of the set, and copied from there by the others.
#[derive(Clone)]
pub struct SharedRows(Arc<Shared>);

struct Shared {
    prepared: Prepared,
    panels: Panels,
    values: Vec<OnceLock<Box<[f32]>>>,
    /// Rows there is room for.
    room: AtomicUsize,
}

/// Rows computed at once.
const BATCH: usize = 64;

impl SharedRows {
    /// None where a value costs little more than reading it, or where there is no room for half the rows.
    pub(crate) fn new(x: &dyn Design, kernel: &KernelFunction, bytes: usize) -> Option<SharedRows> {
        let room = bytes / (4 * x.rows().max(1));
        if 2 * room < x.rows() {
            return None;
        }
        let prepared = Prepared::new(x, kernel, bytes)?;
        if prepared.work_per_value() <= DEAR || !prepared.far_rows().is_empty() {
            return None;
        }
        let all: Vec<u32> = (0..x.rows() as u32).collect();
        let panels = Panels::with_room(&prepared, &all, 0);
        let values = all.iter().map(|_| OnceLock::new()).collect();
        Some(SharedRows(Arc::new(Shared { prepared, panels, values, room: AtomicUsize::new(room) })))
    }

    fn compute(&self, isa: Isa, rows: &[u32]) {
        let shared = &*self.0;
        let missing: Vec<u32> =
            rows.iter().copied().filter(|&row| shared.values[row as usize].get().is_none()).collect();
        let (length, stride) = (shared.values.len(), shared.panels.padded());
        let mut buffer = vec![0f32; BATCH.min(missing.len()) * stride];
        for batch in missing.chunks(BATCH) {
            let take = |room: usize| room.checked_sub(batch.len());
            if shared.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
                return;
            }
            tiles::store(isa, &shared.panels, &shared.prepared, batch, &mut buffer);
            for (&row, values) in batch.iter().zip(buffer.chunks_exact(stride)) {
                // another fit may have been quicker: its values are the same
                if shared.values[row as usize].set(values[..length].into()).is_err() {
                    shared.room.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Gram;
    use super::*;
    use crate::data::Dense;
    use crate::solver::tiles::Aligned;

    /// Rounding of kernel values in single precision.
    const ROUNDING: f32 = 2e-6;

    #[test]
    fn rows_of_a_part_are_those_of_the_whole() {
        let (n, d) = (150, 80);
        let values: Vec<f64> = (0..n * d).map(|at| ((at * 7919) % 101) as f64 / 101.0).collect();
        let x = Dense::new(n, d, values).unwrap();
        let isa = Isa::detect();
        for kernel in [
            KernelFunction::Rbf { gamma: 0.1 },
            KernelFunction::Poly { gamma: 0.3, degree: 2, coef0: 1.0 },
            KernelFunction::Linear,
        ] {
            let whole = SharedRows::new(&x, &kernel, 1 << 24).unwrap();
            for start in [0, 30] {
                let rows: Arc<[u32]> = (0..n as u32).filter(|row| !(start..start + 30).contains(row)).collect();
                let values: Vec<f64> = rows.iter().flat_map(|&row| x.row(row as usize).to_vec()).collect();
                let part = Dense::new(rows.len(), d, values).unwrap();
                let store = KernelStore::within(whole.clone(), rows.clone());
                let mut with = Gram::new(&part, &kernel, isa, 1 << 24).unwrap().with_store(Some(&store));
                let mut without = Gram::new(&part, &kernel, isa, 1 << 24).unwrap();
                let asked: Vec<u32> = (0..rows.len() as u32).step_by(3).collect();
                let packed = without.pack(&asked, 0);
                let mut blocks = [Aligned::default(), Aligned::default()];
                with.block(&packed, &mut blocks[0]);
                without.block(&packed, &mut blocks[1]);
                for i in 0..asked.len() {
                    for at in (0..asked.len()).map(|j| i * packed.padded() + j) {
                        assert!((blocks[0][at] - blocks[1][at]).abs() <= ROUNDING, "{}", kernel.name());
                    }
                }
                with.keep(&asked);
                without.keep(&asked);
                for &row in &asked {
                    assert!(store.part(rows.len()).unwrap().knows(row));
                    for (found, wanted) in with.kept_row(row)[..rows.len()].iter().zip(without.kept_row(row)) {
                        assert!((found - wanted).abs() <= ROUNDING, "{}: {found} and {wanted}", kernel.name());
                    }
                }
            }
        }
    }

    #[test]
    fn there_is_none_where_values_are_cheap_or_room_is_short() {
        let kernel = KernelFunction::Rbf { gamma: 0.1 };
        assert!(SharedRows::new(&Dense::new(100, 3, vec![0.5; 300]).unwrap(), &kernel, 1 << 24).is_none());
        assert!(SharedRows::new(&Dense::new(100, 90, vec![0.5; 9000]).unwrap(), &kernel, 1 << 10).is_none());
    }
}
