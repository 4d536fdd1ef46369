//! Threads that survive a fork.
//!
//! A process made by fork (multiprocessing, a web server that loads models before it splits) has one thread and a copy of
//! the memory, in which a pool of threads looks alive and is not: work given to it would wait forever. Every fit and
//! every prediction therefore runs in a pool that belongs to this process, made anew when the process or the number of
//! threads is another than last time.

use crate::errors::to_python;
use outlast::Error;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, Mutex, PoisonError};

/// Stack of a thread.
const STACK: usize = 16 << 20;

struct Kept {
    process: u32,
    threads: Option<usize>,
    pool: Arc<ThreadPool>,
}

/// Locked only by holders of the GIL, and so is fork: no other thread can hold it in the moment of a fork.
static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

/// The pool of this process with that many threads, `None` for all cores.
pub fn pool(_py: Python<'_>, threads: Option<usize>) -> PyResult<Arc<ThreadPool>> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some(found) = &*kept
        && found.process == process
        && found.threads == threads
    {
        return Ok(found.pool.clone());
    }
    // 0 asks rayon for its default, all cores
    let built = ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).stack_size(STACK).build();
    let pool = Arc::new(built.map_err(|error| {
        let allowed = format!("a number of threads the system can start ({error})");
        to_python(Error::parameter("n_jobs", threads.unwrap_or(0), allowed))
    })?);
    let old = kept.replace(Kept { process, threads, pool: pool.clone() });
    if let Some(old) = old
        && old.process != process
    {
        // its threads are the parent's; telling them to end could wait for a lock one of them held
        std::mem::forget(old);
    }
    Ok(pool)
}
