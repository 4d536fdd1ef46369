//! Multipliers of many rows of which few are mixed: q_i = c_i e_label, or listed in full.

/// A row whose multipliers are listed.
const MIXED: u32 = u32::MAX;
/// A row without weight.
const NONE: u32 = u32::MAX - 1;

/// q_i in c_i x simplex for every row.
#[derive(Debug, Clone)]
pub(super) struct Dual {
    classes: usize,
    labels: Vec<u32>,
    /// Rows that are mixed, ascending, and their shares q_i / c_i, k each.
    mixed: Vec<u32>,
    shares: Vec<f64>,
}

impl Dual {
    /// From q of every row, rows x classes; row sums are made exact.
    pub fn from_rows(q: &[f64], caps: &[f64], classes: usize) -> Dual {
        let mut dual = Dual { classes, labels: vec![NONE; caps.len()], mixed: Vec::new(), shares: Vec::new() };
        for (row, q) in q.chunks_exact(classes).enumerate() {
            if caps[row] > 0.0 {
                dual.push(row, q);
            }
        }
        dual
    }

    /// From the label of every row, and the shares of those that are mixed, ascending.
    pub fn new(mut labels: Vec<u32>, mixed: Vec<u32>, shares: Vec<f64>, classes: usize) -> Dual {
        mixed.iter().for_each(|&row| labels[row as usize] = MIXED);
        Dual { classes, labels, mixed, shares }
    }

    /// From the label of every row.
    pub fn from_labels(labels: Vec<u32>, classes: usize) -> Dual {
        Dual { classes, labels, mixed: Vec::new(), shares: Vec::new() }
    }

    /// Labels, with the rows of `band` as in `inner`.
    pub fn compose(labels: Vec<u32>, band: &[u32], inner: &Dual) -> Dual {
        let mut dual = Dual::from_labels(labels, inner.classes);
        for (&row, &label) in band.iter().zip(&inner.labels) {
            dual.labels[row as usize] = label;
        }
        dual.mixed = inner.mixed.iter().map(|&row| band[row as usize]).collect();
        dual.shares.clone_from(&inner.shares);
        dual
    }

    fn push(&mut self, row: usize, q: &[f64]) {
        let sum: f64 = q.iter().sum();
        if sum > 0.0 && sum.is_finite() {
            self.labels[row] = MIXED;
            self.mixed.push(row as u32);
            self.shares.extend(q.iter().map(|q| q / sum));
        }
    }

    pub fn rows(&self) -> usize {
        self.labels.len()
    }

    /// The class that has all of q_i, if one has.
    pub fn label(&self, row: usize) -> Option<usize> {
        (self.labels[row] < NONE).then_some(self.labels[row] as usize)
    }

    /// Whether the row had weight when the multipliers were found.
    pub fn counts(&self, row: usize) -> bool {
        self.labels[row] != NONE
    }

    /// The mixed rows.
    pub fn mixed(&self) -> &[u32] {
        &self.mixed
    }

    /// Shares of the mixed rows, k each, in the order of [`mixed`](Self::mixed).
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    pub fn shares_mut(&mut self) -> &mut [f64] {
        &mut self.shares
    }

    /// Gives rows the label `to(row)` says, if it says one.
    pub fn relabel(&mut self, to: impl Fn(usize) -> Option<u32>) {
        let k = self.classes;
        let (mut mixed, mut shares) = (Vec::new(), Vec::new());
        for (at, &row) in self.mixed.iter().enumerate() {
            if to(row as usize).is_none() {
                mixed.push(row);
                shares.extend_from_slice(&self.shares[at * k..(at + 1) * k]);
            }
        }
        (self.mixed, self.shares) = (mixed, shares);
        for row in 0..self.labels.len() {
            if let Some(label) = to(row) {
                self.labels[row] = label;
            }
        }
    }

    /// Makes rows mixed, with all of their share where their label is.
    pub fn mix(&mut self, rows: impl Iterator<Item = usize>) {
        let k = self.classes;
        let mut joined: Vec<(u32, Vec<f64>)> =
            self.mixed.iter().zip(self.shares.chunks_exact(k)).map(|(row, share)| (*row, share.to_vec())).collect();
        for row in rows {
            if let Some(label) = self.label(row) {
                let mut share = vec![0.0; k];
                share[label] = 1.0;
                self.labels[row] = MIXED;
                joined.push((row as u32, share));
            }
        }
        joined.sort_by_key(|(row, _)| *row);
        self.mixed = joined.iter().map(|(row, _)| *row).collect();
        self.shares = joined.into_iter().flat_map(|(_, share)| share).collect();
    }

    /// q of every row, or of those listed, rows x classes, divided by c_i.
    pub fn dense(&self, index: Option<&[u32]>) -> Vec<f64> {
        let k = self.classes;
        let mut out = vec![0.0; index.map_or(self.rows(), <[u32]>::len) * k];
        for (at, out) in out.chunks_exact_mut(k).enumerate() {
            let row = index.map_or(at, |index| index[at] as usize);
            if let Some(label) = self.label(row) {
                out[label] = 1.0;
            } else if let Ok(at) = self.mixed.binary_search(&(row as u32)) {
                out.copy_from_slice(&self.shares[at * k..(at + 1) * k]);
            }
        }
        out
    }
}
