//! Memory that is not in use any more, back to the system.
//!
//! The allocator of glibc keeps what is freed, tens of megabytes for each thread once large blocks have come and gone. A solve that is to stay within
//! some bytes would begin each of its phases on top of what the one before has left.

/// While one of these lives, large blocks come straight from the system and go straight back to it.
pub(crate) struct Lean(());

impl Lean {
    pub(crate) fn new() -> Lean {
        count(|living| {
            *living += 1;
            if *living == 1 {
                system::from_the_system(true);
            }
        });
        Lean(())
    }
}

impl Drop for Lean {
    fn drop(&mut self) {
        count(|living| {
            *living -= 1;
            if *living == 0 {
                system::from_the_system(false);
            }
        });
        give_back();
    }
}

/// How many are alive: fits may run side by side.
fn count(with: impl FnOnce(&mut usize)) {
    static LIVING: std::sync::Mutex<usize> = std::sync::Mutex::new(0);
    with(&mut LIVING.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
}

/// Gives pages that the allocator keeps for later back to the system, between phases of a solve.
pub(crate) fn give_back() {
    system::trim();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod system {
    /// Bytes from which on a block is one of the system's, and afterwards: what the allocator itself would come to in the end.
    const LARGE: (libc::c_int, libc::c_int) = (1 << 18, 1 << 25);

    pub(super) fn from_the_system(on: bool) {
        // SAFETY: it takes no pointers and changes where later blocks come from, nothing about those in use.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, if on { LARGE.0 } else { LARGE.1 });
            libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * if on { LARGE.0 } else { LARGE.1 });
        }
    }

    pub(super) fn trim() {
        // SAFETY: it takes no pointers, locks what it works on, and touches nothing that is in use.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

/// Elsewhere the allocator knows best.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod system {
    pub(super) fn from_the_system(_: bool) {}

    pub(super) fn trim() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_may_live_at_once() {
        let (one, two) = (Lean::new(), Lean::new());
        let block = vec![1u8; 1 << 20];
        drop(one);
        give_back();
        assert_eq!(block.iter().map(|byte| u32::from(*byte)).sum::<u32>(), 1 << 20);
        drop(two);
    }
}
