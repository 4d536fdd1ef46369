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
// SAFETY: likewise.
unsafe impl Sync for Aligned {}

impl Aligned {
    pub(crate) fn zeroed(len: usize) -> Aligned {
        let capacity = len.next_multiple_of(16);
        if capacity == 0 {
            return Aligned { start: NonNull::dangling(), len: 0, capacity: 0 };
        }
        Aligned { start: obtain(layout(capacity)), len, capacity }
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

fn layout(capacity: usize) -> Layout {
    // a size that overflows isize could never be allocated: stopping here is the honest answer
    Layout::array::<f32>(capacity).and_then(|layout| layout.align_to(64)).expect("less than half the address space")
}

/// From this many bytes on, storage comes straight from the system: pages that are never touched are never taken.
#[cfg(target_os = "linux")]
const MAPPED: usize = 4 << 20;

#[cfg(target_os = "linux")]
fn obtain(layout: Layout) -> NonNull<f32> {
    if layout.size() < MAPPED {
        return from_allocator(layout);
    }
    let (read_write, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh anonymous mapping, page aligned and zeroed by the system; the advice changes no content, and a refusal
    // of it changes nothing.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), layout.size(), read_write, private, -1, 0);
        if start == libc::MAP_FAILED {
            handle_alloc_error(layout);
        }
        libc::madvise(start, layout.size(), libc::MADV_HUGEPAGE);
        NonNull::new(start.cast()).unwrap_or_else(|| handle_alloc_error(layout))
    }
}

#[cfg(target_os = "linux")]
fn give_back(start: NonNull<f32>, layout: Layout) {
    // SAFETY: obtained with this very layout, by the same rule.
    unsafe {
        if layout.size() < MAPPED {
            dealloc(start.as_ptr().cast(), layout);
        } else {
            libc::munmap(start.as_ptr().cast(), layout.size());
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn obtain(layout: Layout) -> NonNull<f32> {
    from_allocator(layout)
}

#[cfg(not(target_os = "linux"))]
fn give_back(start: NonNull<f32>, layout: Layout) {
    // SAFETY: obtained with this very layout.
    unsafe { dealloc(start.as_ptr().cast(), layout) }
}

fn from_allocator(layout: Layout) -> NonNull<f32> {
    // SAFETY: the layout's size is not 0.
    let start = unsafe { alloc_zeroed(layout) };
    NonNull::new(start.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

impl Default for Aligned {
    fn default() -> Self {
        Aligned::zeroed(0)
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        if self.capacity > 0 {
            give_back(self.start, layout(self.capacity));
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
