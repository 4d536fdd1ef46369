//! Choices and numbers made of bytes; zeros after their end.

/// Bytes that are used up from the front.
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.byte() as usize % n
    }

    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub fn choose<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// What is left, in two parts: the first as long as the first byte says, in steps of 4.
    pub fn split(&mut self) -> (&'a [u8], &'a [u8]) {
        let length = 4 * self.byte() as usize;
        self.0.split_at(length.min(self.0.len()))
    }

    /// A number of a scale that is common: most bytes are small numbers, few are anything else.
    pub fn usual(&mut self) -> f64 {
        (f64::from(self.byte()) - 128.0) / 16.0
    }

    /// Any number at all, more often one that is hard.
    pub fn any(&mut self) -> f64 {
        const HARD: [f64; 23] = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MIN_POSITIVE,
            5e-324,
            f64::EPSILON,
            f64::MAX,
            f64::MIN,
            1e-300,
            1e300,
            1e-200,
            1e200,
            -1e150,
            1e-150,
            1e-12,
            1e12,
            1e30,
            1e39,
            4294967296.0,
        ];
        match self.byte() {
            at if (at as usize) < HARD.len() => HARD[at as usize],
            255 => f64::from_le_bytes(std::array::from_fn(|_| self.byte())),
            at => (f64::from(at) - 128.0) / 16.0,
        }
    }
}
