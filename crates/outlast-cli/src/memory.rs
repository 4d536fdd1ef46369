//! What happens when memory runs out.
//!
//! The standard library then says how much was asked for and aborts, which a shell shows as a crash. Here the command ends as it does
//! on everything else that it can't do: with a message and code 2. Files are written whole or not at all, so nothing is lost.

#[cfg(unix)]
mod on_abort {
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Whether a panic came before: then an abort is not about memory.
    static PANICKED: AtomicBool = AtomicBool::new(false);

    const MESSAGE: &[u8] = b"error: there is not enough memory for this; nothing was written\n\
        hint: --stream reads linear fits from disk, --n-jobs 1 and a smaller --cache-size need less\n";

    extern "C" fn report(_: libc::c_int) {
        if PANICKED.load(Ordering::Relaxed) {
            // back to abort(), which then ends the process
            return;
        }
        // SAFETY: write and _exit may be called in a signal handler, and the buffer is a constant.
        unsafe {
            libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
            libc::_exit(2);
        }
    }

    /// From now on an abort for lack of memory ends the process with a message and code 2.
    pub fn install() {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICKED.store(true, Ordering::Relaxed);
            before(panic);
        }));
        let handler: extern "C" fn(libc::c_int) = report;
        // SAFETY: the handler has the signature that signal() asks for, and does nothing but what a signal handler may do.
        unsafe {
            libc::signal(libc::SIGABRT, handler as libc::sighandler_t);
        }
    }
}

/// Makes a lack of memory an ordinary failure, where the system allows it.
pub fn report_lack() {
    #[cfg(unix)]
    on_abort::install();
}
