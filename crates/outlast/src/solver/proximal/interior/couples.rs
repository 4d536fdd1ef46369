//! Numbers x >= 0 and z >= 0 whose products vanish at the solution, one of each pair primal and one dual, and where they are
//! headed.

/// Share of the way to the boundary a step may go.
const SHORT: f64 = 0.995;

#[derive(Debug, Clone, Default)]
pub(super) struct Couples {
    pub(super) x: Vec<f64>,
    pub(super) z: Vec<f64>,
    pub(super) dx: Vec<f64>,
    pub(super) dz: Vec<f64>,
    /// What z dx + x dz shall be.
    pub(super) target: Vec<f64>,
}

impl Couples {
    pub(super) fn new(x: Vec<f64>, z: Vec<f64>) -> Self {
        let zeros = vec![0.0; x.len()];
        Couples { x, z, dx: zeros.clone(), dz: zeros.clone(), target: zeros }
    }

    pub(super) fn push(&mut self, x: f64, z: f64) {
        self.x.push(x);
        self.z.push(z);
        [&mut self.dx, &mut self.dz, &mut self.target].into_iter().for_each(|list| list.push(0.0));
    }

    /// Keeps some; the direction is lost.
    pub(super) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        for list in [&mut self.x, &mut self.z] {
            let mut place = 0..;
            list.retain(|_| place.next().is_none_or(&keep));
        }
        let size = self.x.len();
        [&mut self.dx, &mut self.dz, &mut self.target].into_iter().for_each(|list| list.truncate(size));
    }

    pub(super) fn len(&self) -> usize {
        self.x.len()
    }

    /// sum x z
    pub(super) fn product(&self) -> f64 {
        crate::linalg::dot(&self.x, &self.z)
    }

    /// sum x z after steps of these lengths.
    pub(super) fn product_after(&self, primal: f64, dual: f64) -> f64 {
        let at = |k: usize| (self.x[k] + primal * self.dx[k]) * (self.z[k] + dual * self.dz[k]);
        (0..self.len()).map(at).sum()
    }

    /// Aims at x z = center, less a share of what the last direction says of the product dx dz.
    pub(super) fn aim(&mut self, center: f64, bent: f64) {
        for k in 0..self.x.len() {
            let second = if bent > 0.0 { bent * self.dx[k] * self.dz[k] } else { 0.0 };
            self.target[k] = center - self.x[k] * self.z[k] - second;
        }
    }

    /// dx from dz.
    #[inline]
    pub(super) fn answer(&mut self, k: usize, dz: f64) {
        self.dz[k] = dz;
        self.dx[k] = (self.target[k] - self.x[k] * dz) / self.z[k];
    }

    /// The longest steps, primal and dual, that keep all signs.
    pub(super) fn room(&self) -> (f64, f64) {
        (longest(&self.x, &self.dx), longest(&self.z, &self.dz))
    }

    pub(super) fn advance(&mut self, primal: f64, dual: f64) {
        self.x.iter_mut().zip(&self.dx).for_each(|(x, dx)| *x += primal * dx);
        self.z.iter_mut().zip(&self.dz).for_each(|(z, dz)| *z += dual * dz);
    }
}

fn longest(values: &[f64], by: &[f64]) -> f64 {
    let falling = values.iter().zip(by).filter(|(_, by)| **by < 0.0);
    falling.map(|(value, by)| -SHORT * value / by).fold(1.0, f64::min)
}
