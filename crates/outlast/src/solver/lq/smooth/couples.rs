//! Pairs of numbers whose products fall to 0.

/// A pair of numbers >= 0 whose product falls to 0: values and their steps.
#[derive(Clone, Default)]
pub(super) struct Couple {
    pub(super) x: Vec<f64>,
    pub(super) z: Vec<f64>,
}

impl Couple {
    pub(super) fn product(&self) -> f64 {
        crate::linalg::dot(&self.x, &self.z)
    }

    /// The longest step that keeps the signs.
    pub(super) fn room(&self, by: &Couple) -> f64 {
        let sides = self.x.iter().zip(&by.x).chain(self.z.iter().zip(&by.z));
        sides.filter(|(_, step)| **step < 0.0).fold(f64::INFINITY, |room, (value, step)| room.min(-value / step))
    }

    pub(super) fn product_after(&self, by: &Couple, length: f64) -> f64 {
        let pairs = self.x.iter().zip(&by.x).zip(self.z.iter().zip(&by.z));
        pairs.map(|((x, dx), (z, dz))| (x + length * dx) * (z + length * dz)).sum()
    }

    pub(super) fn advance(&mut self, by: &Couple, length: f64) {
        self.x.iter_mut().zip(&by.x).for_each(|(x, by)| *x += length * by);
        self.z.iter_mut().zip(&by.z).for_each(|(z, by)| *z += length * by);
    }

    /// target - share dx dz
    fn corrected(&self, target: f64, share: f64) -> Vec<f64> {
        self.x.iter().zip(&self.z).map(|(dx, dz)| target - share * dx * dz).collect()
    }
}

/// t with alpha, xi with c - alpha (terms that count); w+ with v+, w- with v- (functions x columns).
#[derive(Clone, Default)]
pub(super) struct Couples {
    pub(super) low: Couple,
    pub(super) high: Couple,
    pub(super) plus: Couple,
    pub(super) minus: Couple,
}

impl Couples {
    pub(super) fn all(&self) -> [&Couple; 4] {
        [&self.low, &self.high, &self.plus, &self.minus]
    }

    pub(super) fn count(&self) -> usize {
        self.all().iter().map(|couple| couple.x.len()).sum()
    }

    pub(super) fn product(&self) -> f64 {
        self.all().iter().map(|couple| couple.product()).sum()
    }

    pub(super) fn room(&self, by: &Couples) -> f64 {
        self.all().iter().zip(by.all()).fold(f64::INFINITY, |room, (couple, by)| room.min(couple.room(by)))
    }

    pub(super) fn product_after(&self, by: &Couples, length: f64) -> f64 {
        self.all().iter().zip(by.all()).map(|(couple, by)| couple.product_after(by, length)).sum()
    }

    /// What to aim at after a step such as this, so much of whose products is taken off.
    pub(super) fn corrected(&self, target: f64, share: f64) -> Targets {
        let of = |couple: &Couple| couple.corrected(target, share);
        Targets { low: of(&self.low), high: of(&self.high), plus: of(&self.plus), minus: of(&self.minus) }
    }
}

/// What products are aimed at.
pub(super) struct Targets {
    pub(super) low: Vec<f64>,
    pub(super) high: Vec<f64>,
    pub(super) plus: Vec<f64>,
    pub(super) minus: Vec<f64>,
}
