//! What the user sees and can do while work goes on: a spinner on a terminal, and Ctrl-C.
//!
//! While data are read or predictions computed, Ctrl-C ends the process at once: nothing has been written yet. During a fit
//! it asks the solver to stop. While a file is being written it waits, so that no half-made file is left behind. Pressed
//! again, it ends the process at once, whatever is going on.

use crate::output::short;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use outlast::{Control, Progress};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

static ASKED_TO_STOP: AtomicBool = AtomicBool::new(false);
static PHASE: AtomicU8 = AtomicU8::new(READING);

const READING: u8 = 0;
const FITTING: u8 = 1;
const WRITING: u8 = 2;

/// Watches over one command.
pub struct Watch {
    spinner: ProgressBar,
}

impl Watch {
    /// Catches Ctrl-C from here on; shows a spinner if standard error is a terminal and nobody asked for quiet.
    pub fn start(quiet: bool) -> Watch {
        // without the handler Ctrl-C still ends the process, only less gently
        let _ = ctrlc::set_handler(|| {
            let again = ASKED_TO_STOP.swap(true, Ordering::SeqCst);
            if again || PHASE.load(Ordering::SeqCst) == READING {
                std::process::exit(130);
            }
        });
        let spinner = if quiet || !std::io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]") {
            spinner.set_style(style);
        }
        spinner.enable_steady_tick(Duration::from_millis(120));
        Watch { spinner }
    }

    /// Says what is going on.
    pub fn say(&self, message: impl Into<String>) {
        self.spinner.set_message(message.into());
    }

    /// Writes a line to standard error, above the bar.
    pub fn tell(&self, message: &str) {
        self.spinner.suspend(|| crate::output::tell(message));
    }

    /// Shows a bar for work of so many steps, with its rate and the time left.
    pub fn count(&self, steps: usize) {
        self.spinner.set_length(steps as u64);
        self.spinner.set_position(0);
        self.spinner.reset_eta();
        let template = "{spinner} {msg} [{wide_bar}] {pos}/{len}, {rate}, {eta} left";
        let rate = |state: &ProgressState, out: &mut dyn Write| {
            // on a screen: if that is gone nobody sees the rate either
            let _ = write!(out, "{:.1}/s", state.per_sec());
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.spinner.set_style(style.with_key("rate", rate).progress_chars("=> "));
        }
    }

    /// Runs long work under control of the user. Once asked to stop it counts as interrupted, unless its answer says that it
    /// is the best so far.
    pub fn run<T>(
        &self,
        time_limit: Option<Duration>,
        best_so_far: impl FnOnce(&T) -> bool,
        work: impl FnOnce(Control) -> outlast::Result<T>,
    ) -> outlast::Result<T> {
        PHASE.store(FITTING, Ordering::SeqCst);
        let show = |progress: Progress| self.show(progress);
        let told = AtomicBool::new(false);
        let stop = || {
            let asked = ASKED_TO_STOP.load(Ordering::SeqCst);
            if asked && !told.swap(true, Ordering::SeqCst) {
                self.say("stopping");
            }
            asked
        };
        let control = Control::default().progress(&show).interrupt(&stop);
        let outcome = work(match time_limit {
            Some(limit) => control.time_limit(limit),
            None => control,
        });
        let outcome = outcome.and_then(|value| match control.check() {
            Err(stopped) if !best_so_far(&value) => Err(stopped),
            _ => Ok(value),
        });
        PHASE.store(READING, Ordering::SeqCst);
        outcome
    }

    /// Runs a piece of work that writes files.
    pub fn write<T>(&self, work: impl FnOnce() -> T) -> T {
        PHASE.store(WRITING, Ordering::SeqCst);
        let outcome = work();
        PHASE.store(READING, Ordering::SeqCst);
        outcome
    }

    fn show(&self, progress: Progress) {
        if self.spinner.length().is_some() {
            self.spinner.set_position(progress.step as u64);
            if self.spinner.length().is_some_and(|steps| progress.step as u64 >= steps) {
                // what is left is no step
                self.say("finishing");
            }
            // what was done before this command says nothing of how fast it works
            if progress.stage == "kept" {
                self.spinner.reset_eta();
            }
            return;
        }
        let mut message = format!("{}, step {}", progress.stage, progress.step);
        if !progress.objective.is_nan() {
            message += &format!(", objective {}", short(progress.objective));
        }
        if !progress.gap.is_nan() {
            message += &format!(", gap {:.1e}", progress.gap);
        }
        self.spinner.set_message(message);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.spinner.finish_and_clear();
    }
}
