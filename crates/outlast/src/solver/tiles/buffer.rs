//! Zeroed f32 storage that starts on a cache line, on large pages where the system offers them.
//!
//! SMO jumps between rows of a matrix of tens of megabytes: with 4 KB pages it waits for address translation more than
//! for data.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// f32 storage aligned to 64 bytes.
pub(crate) struct Aligned {
    start: NonNull<f32>,
    len: usize,
    capacity: usize,
}

// SAFETY: `Aligned` owns its storage, like a Vec<f32>.
unsafe impl Send for Aligned {}
unsafe impl Sync for Aligned {}

/// Size of a large page.
const PAGE: usize = 2 << 20;

fn layout(capacity: usize) -> Layout {
    let bytes = 4 * capacity;
    // a capacity that overflows isize could never be allocated: the allocation error is the honest answer
    Layout::from_size_align(bytes, if bytes >= 2 * PAGE { PAGE } else { 64 }).expect("less than half the address space")
}

impl Aligned {
    pub(crate) fn zeroed(len: usize) -> Aligned {
        let capacity = len.next_multiple_of(16);
        if capacity == 0 {
            return Aligned { start: NonNull::dangling(), len: 0, capacity: 0 };
        }
        let layout = layout(capacity);
        // SAFETY: the layout's size is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start.cast::<f32>()) else { handle_alloc_error(layout) };
        ask_for_large_pages(start, layout);
        Aligned { start, len, capacity }
    }

    /// Makes room for `len` values, dropping the old ones first so that both never exist at once.
    pub(crate) fn reserve(&mut self, len: usize) {
        if self.capacity < len {
            *self = Aligned::default();
            *self = Aligned::zeroed(len);
        }
        self.len = len;
    }
}

#[cfg(target_os = "linux")]
fn ask_for_large_pages(start: NonNull<f32>, layout: Layout) {
    if layout.align() == PAGE {
        // SAFETY: the range was just allocated; the advice changes no content, and a refusal changes nothing.
        unsafe { libc::madvise(start.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages(_: NonNull<f32>, _: Layout) {}

impl Default for Aligned {
    fn default() -> Self {
        Aligned::zeroed(0)
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        if self.capacity > 0 {
            // SAFETY: allocated with this very layout.
            unsafe { dealloc(self.start.as_ptr().cast(), layout(self.capacity)) }
        }
    }
}

impl std::ops::Deref for Aligned {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        // SAFETY: `capacity` >= `len` initialised f32 (a dangling pointer only for len 0).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl std::ops::DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in `deref`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}
