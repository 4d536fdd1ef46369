//! How a caller watches and stops long work: progress, interrupt, time limit.
//!
//! Solvers call [`Control::report`] and [`Control::check`] at least a few times a second and never print.

use crate::error::{Error, Result};
use std::fmt;
use std::time::{Duration, Instant};

/// One report of progress.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// What is going on, e.g. `"hinge"` or `"truncated"`.
    pub stage: &'static str,
    /// Steps of that stage taken so far.
    pub step: usize,
    /// Current value of the objective, `NaN` where unknown.
    pub objective: f64,
    /// Current relative duality gap or violation, `NaN` where unknown.
    pub gap: f64,
}

/// Caller's side of a running fit. The default neither reports nor stops.
///
/// ```
/// use outlast::Control;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// let stop = AtomicBool::new(false);
/// let interrupt = || stop.load(Ordering::Relaxed);
/// let control = Control::default().interrupt(&interrupt);
/// assert!(control.check().is_ok());
/// stop.store(true, Ordering::Relaxed);
/// assert!(control.check().is_err());
/// ```
#[derive(Clone, Copy, Default)]
pub struct Control<'a> {
    progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    interrupt: Option<&'a (dyn Fn() -> bool + Sync)>,
    finish: Option<&'a (dyn Fn() -> bool + Sync)>,
    deadline: Option<Instant>,
}

impl<'a> Control<'a> {
    /// Calls `progress` now and then.
    pub fn progress(mut self, progress: &'a (dyn Fn(Progress) + Sync)) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Asks `interrupt` now and then; when it answers `true` the work ends with [`Error::Interrupted`].
    pub fn interrupt(mut self, interrupt: &'a (dyn Fn() -> bool + Sync)) -> Self {
        self.interrupt = Some(interrupt);
        self
    }

    /// Asks `finish` now and then; when it answers `true` the work ends as if its time were up: with what it has.
    pub fn finish(mut self, finish: &'a (dyn Fn() -> bool + Sync)) -> Self {
        self.finish = Some(finish);
        self
    }

    /// Ends the work with status [`TimeLimit`](crate::Status::TimeLimit) when `limit` has passed from now.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.deadline = Instant::now().checked_add(limit);
        self
    }

    /// Tells the caller where the work stands.
    pub fn report(&self, progress: Progress) {
        if let Some(tell) = self.progress {
            tell(progress);
        }
    }

    /// Fails when the caller wants the work to end at once.
    pub fn check(&self) -> Result<()> {
        match self.interrupt {
            Some(asked) if asked() => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }

    /// The same without reports: for a part of the work that is reported as a whole.
    pub fn silent(mut self) -> Self {
        self.progress = None;
        self
    }

    /// The same, deaf to interrupts and without a time limit: for what must be done after the caller has asked for the end.
    pub fn to_the_end(mut self) -> Self {
        (self.interrupt, self.finish, self.deadline) = (None, None, None);
        self
    }

    /// The same, with a time limit if there was none.
    pub fn or_time_limit(self, limit: Duration) -> Self {
        if self.deadline.is_some() { self } else { self.time_limit(limit) }
    }

    /// The same with that share, from 0 to 1, of the time that is left, if there is a limit.
    pub fn share_of_time(mut self, share: f64) -> Self {
        if let Some(deadline) = self.deadline {
            let now = Instant::now();
            self.deadline = Some(now + deadline.saturating_duration_since(now).mul_f64(share.clamp(0.0, 1.0)));
        }
        self
    }

    /// Whether the time limit has passed, or the caller has enough. The solver then returns what it has, with status `TimeLimit`.
    pub fn out_of_time(&self) -> bool {
        self.finish.is_some_and(|finish| finish()) || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl fmt::Debug for Control<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("progress", &self.progress.is_some())
            .field("interrupt", &self.interrupt.is_some())
            .field("finish", &self.finish.is_some())
            .field("deadline", &self.deadline)
            .finish()
    }
}
