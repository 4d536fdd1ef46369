//! Zeroed f32 storage that starts on a cache line.

/// A cache line of f32.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// f32 storage aligned to 64 bytes.
#[derive(Clone, Default)]
pub(crate) struct Aligned {
    lines: Vec<Line>,
    len: usize,
}

impl Aligned {
    pub(crate) fn zeroed(len: usize) -> Aligned {
        Aligned { lines: vec![Line([0.0; 16]); len.div_ceil(16)], len }
    }

    /// Makes room for `len` values, dropping the old ones first so that both never exist at once.
    pub(crate) fn reserve(&mut self, len: usize) {
        if self.lines.len() * 16 < len {
            self.lines = Vec::new();
            *self = Aligned::zeroed(len);
        }
        self.len = len;
    }
}

impl std::ops::Deref for Aligned {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        // SAFETY: `lines` holds at least `len` initialised f32 without padding.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl std::ops::DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in `deref`.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
