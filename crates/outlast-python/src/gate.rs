//! The one gate through which long work runs: GIL released, Ctrl-C let through, progress brought back.
//!
//! The work runs on a thread of its own. The calling thread sleeps, and every [`PAUSE`] takes the GIL for a moment to let
//! Python run its signal handlers, which it does on the main thread only: a solver that asked from one of its worker
//! threads would never hear of Ctrl-C. Whatever a handler or the progress callback raises stops the work and is passed on. Work that has a question for
//! Python ([`run_asking`]) waits while the calling thread asks it.

use crate::errors::to_python;
use crate::pool;
use outlast::{Control, Error, Progress};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rayon::ThreadPool;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Longest time between two looks at Python's signals.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs `work` without the GIL on that many threads, `None` for all cores. `progress` is called as
/// `progress(stage, step, objective, gap)` on the calling thread; where it returns something true, the work ends with what it
/// has. A result that is the best so far of work stopped by Ctrl-C is kept.
pub fn run<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
    best_so_far: impl FnOnce(&T) -> bool + Send,
    work: impl FnOnce(Control<'_>) -> outlast::Result<T> + Send,
) -> PyResult<T> {
    let pool = pool::pool(py, threads)?;
    py.detach(|| supervise(&pool, progress, None, best_so_far, |control, _| work(control)))
}

/// What the work tells the calling thread.
enum Message {
    Report(Progress),
    /// A question; the answer goes back, or nothing where there is none.
    Question(Vec<u8>, Sender<Option<Vec<u8>>>),
}

/// As [`run`]; `work` can also call `ask` with bytes, which Python's `ask` answers with bytes on the calling thread.
pub fn run_asking<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
    ask: Py<PyAny>,
    work: impl FnOnce(Control<'_>, &(dyn Fn(Vec<u8>) -> outlast::Result<Vec<u8>> + Sync)) -> outlast::Result<T> + Send,
) -> PyResult<T> {
    let pool = pool::pool(py, threads)?;
    py.detach(|| supervise(&pool, progress, Some(ask), |_| false, work))
}

fn supervise<T: Send>(
    pool: &ThreadPool,
    progress: Option<Py<PyAny>>,
    ask: Option<Py<PyAny>>,
    best_so_far: impl FnOnce(&T) -> bool + Send,
    work: impl FnOnce(Control<'_>, &(dyn Fn(Vec<u8>) -> outlast::Result<Vec<u8>> + Sync)) -> outlast::Result<T> + Send,
) -> PyResult<T> {
    let (stop, enough) = (AtomicBool::new(false), AtomicBool::new(false));
    let (sender, receiver) = channel();
    let wanted = progress.is_some();
    let working = || {
        // dropping the sender is how the calling thread learns that the work has ended
        let sender = sender;
        let tell = |progress: Progress| {
            // the receiver lives until the sender is gone, so sending can't fail
            let _ = sender.send(Message::Report(progress));
        };
        let question = |bytes: Vec<u8>| {
            let (back, answer) = channel();
            let _ = sender.send(Message::Question(bytes, back));
            answer.recv().ok().flatten().ok_or(Error::Interrupted)
        };
        let interrupted = || stop.load(Ordering::Relaxed);
        let finish = || enough.load(Ordering::Relaxed);
        let control = Control::default().interrupt(&interrupted).finish(&finish);
        let control = if wanted { control.progress(&tell) } else { control };
        pool.install(|| work(control, &question))
    };
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().name("outlast".into()).spawn_scoped(scope, working)?;
        let mut failure = None;
        let mut looked = Instant::now();
        loop {
            let message = match receiver.recv_timeout(PAUSE.saturating_sub(looked.elapsed())) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if failure.is_some() {
                // a question is dropped, and that is its answer
                looked = Instant::now();
                continue;
            }
            let message = match message {
                Some(Message::Question(bytes, back)) => {
                    let answer = Python::attach(|py| put(py, ask.as_ref(), &bytes));
                    let raised = answer.as_ref().err().map(|raised| Python::attach(|py| raised.clone_ref(py)));
                    // whoever asked waits for it
                    let _ = back.send(answer.ok());
                    if raised.is_some() {
                        failure = raised;
                        stop.store(true, Ordering::Relaxed);
                        continue;
                    }
                    None
                }
                Some(Message::Report(progress)) => Some(progress),
                None => None,
            };
            let look = message.is_none() || looked.elapsed() >= PAUSE;
            match Python::attach(|py| pass_on(py, progress.as_ref(), message, look)) {
                Ok(true) => enough.store(true, Ordering::Relaxed),
                Ok(false) => {}
                Err(raised) => failure = Some(raised),
            }
            if look {
                looked = Instant::now();
            }
            if failure.is_some() {
                stop.store(true, Ordering::Relaxed);
            }
        }
        let outcome = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (failure, outcome) {
            (Some(failure), Ok(value)) if best_so_far(&value) && of_the_keyboard(&failure) => Ok(value),
            (Some(failure), _) => Err(failure),
            (None, outcome) => outcome.map_err(to_python),
        }
    })
}

fn of_the_keyboard(failure: &PyErr) -> bool {
    Python::attach(|py| failure.is_instance_of::<PyKeyboardInterrupt>(py))
}

fn put(py: Python<'_>, ask: Option<&Py<PyAny>>, question: &[u8]) -> PyResult<Vec<u8>> {
    let answer = ask.map(|ask| ask.call1(py, (PyBytes::new(py, question),))).transpose()?;
    answer.map_or(Ok(Vec::new()), |answer| Ok(answer.bind(py).cast::<PyBytes>()?.as_bytes().to_vec()))
}

/// Whether the caller has enough.
fn pass_on(py: Python<'_>, progress: Option<&Py<PyAny>>, message: Option<Progress>, look: bool) -> PyResult<bool> {
    let mut enough = false;
    if let (Some(progress), Some(message)) = (progress, message) {
        let answer = progress.call1(py, (message.stage, message.step, message.objective, message.gap))?;
        enough = answer.is_truthy(py)?;
    }
    if look {
        py.check_signals()?;
    }
    Ok(enough)
}
