//! Choosing gamma from the data.

use crate::data::{Design, Labels, chunks};
use crate::error::{Error, Result};
use rayon::prelude::*;

/// The kernel width: a number, or how to take it from the data.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Gamma {
    /// 1 / (d Var(X)), scikit-learn's default.
    #[default]
    Scale,
    /// 1 / d
    Auto,
    /// 1 / (2 sigma^2) with sigma the lower quartile of the distances between rows of different classes.
    Q1,
    /// As `Q1` with the median.
    Median,
    /// As `Q1` with the upper quartile.
    Q3,
    /// A positive number.
    Value(f64),
}

impl From<f64> for Gamma {
    fn from(value: f64) -> Self {
        Gamma::Value(value)
    }
}

/// Pairs of rows looked at for the quartiles; beyond that an even subsample of the rows is taken.
const PAIRS: usize = 1 << 20;

impl Gamma {
    /// The names users can ask for beside a number.
    pub const NAMES: &'static [&'static str] = &["scale", "auto", "q1", "median", "q3"];

    /// The rule of that name.
    pub fn from_name(name: &str) -> Result<Gamma> {
        Ok(match name {
            "scale" => Gamma::Scale,
            "auto" => Gamma::Auto,
            "q1" => Gamma::Q1,
            "median" => Gamma::Median,
            "q3" => Gamma::Q3,
            _ => {
                let allowed = format!("a number > 0 or one of {}", Self::NAMES.join(", "));
                return Err(Error::parameter("gamma", format!("{name:?}"), allowed));
            }
        })
    }

    /// The number for these data. A row of weight 2 is as good as two rows, one of weight 0 is not there.
    pub fn resolve(self, x: &dyn Design, labels: &Labels, weights: Option<&[f64]>) -> Result<f64> {
        let gamma = match self {
            Gamma::Value(value) => {
                if !(value.is_finite() && value > 0.0) {
                    return Err(Error::parameter("gamma", value, "a finite number > 0"));
                }
                value
            }
            Gamma::Auto => 1.0 / x.cols() as f64,
            Gamma::Scale => {
                let variance = variance(x, weights);
                if variance > 0.0 { 1.0 / (x.cols() as f64 * variance) } else { 1.0 }
            }
            Gamma::Q1 => Self::quartiles(x, labels, weights)[0],
            Gamma::Median => Self::quartiles(x, labels, weights)[1],
            Gamma::Q3 => Self::quartiles(x, labels, weights)[2],
        };
        Ok(representable(gamma))
    }

    /// What `Q1`, `Median` and `Q3` are for these data: 1 / (2 sigma^2), sigma the smallest distance between rows of
    /// different classes that more than a quarter (half, three quarters) of all such pairs do not exceed. Pairs of any two
    /// different classes count, each as often as the product of its rows' weights.
    pub fn quartiles(x: &dyn Design, labels: &Labels, weights: Option<&[f64]>) -> [f64; 3] {
        let largest =
            fold(x, f64::max, |_, values| values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs())));
        if largest == 0.0 {
            return [1.0; 3];
        }
        // the power of two below it, so that a division by it rounds nothing
        let unit = f64::from_bits(largest.to_bits() & f64::INFINITY.to_bits()).max(f64::MIN_POSITIVE);
        let rows = spread_over_classes(labels, weights);
        let mut pairs = between_classes(x, labels, weights, &rows, unit);
        pairs.par_sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        [0.25, 0.5, 0.75].map(|share| {
            let squared = quantile(&pairs, share);
            representable(if squared > 0.0 { 1.0 / (2.0 * squared) / unit / unit } else { 1.0 })
        })
    }
}

/// Data scaled by 1e-160 would ask for an infinite gamma; the nearest finite one gives the same kernel matrix.
fn representable(gamma: f64) -> f64 {
    gamma.clamp(f64::MIN_POSITIVE, f64::MAX)
}

/// Variance over all entries, zeros of sparse storage included, each row counted as often as its weight says.
fn variance(x: &dyn Design, weights: Option<&[f64]>) -> f64 {
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let total: f64 = (0..x.rows()).map(weight).sum::<f64>() * x.cols() as f64;
    let largest =
        fold(x, f64::max, |_, values| values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs())));
    if largest == 0.0 || total == 0.0 {
        return 0.0;
    }
    // in units of the largest entry: no overflow for 1e200, no underflow for 1e-200
    let add = |a, b| a + b;
    let sum = fold(x, add, |row, values| weight(row) * values.iter().map(|value| value / largest).sum::<f64>());
    let mean = sum / total;
    let squares = fold(x, add, |row, values| {
        let stored: f64 = values.iter().map(|value| (value / largest - mean).powi(2)).sum();
        weight(row) * (stored + (x.cols() - values.len()) as f64 * mean * mean)
    });
    (squares / total) * largest * largest
}

/// Combines `part` of every row's stored entries, in order whatever the number of threads.
fn fold(x: &dyn Design, combine: impl Fn(f64, f64) -> f64 + Sync, part: impl Fn(usize, &[f64]) -> f64 + Sync) -> f64 {
    let parts: Vec<f64> = chunks(x)
        .into_par_iter()
        .map_init(Vec::new, |scratch, rows| {
            rows.map(|row| part(row, x.stored_in(row..row + 1, scratch))).fold(0.0, &combine)
        })
        .collect();
    parts.into_iter().fold(0.0, &combine)
}

/// Squared distances, in that unit, between those of the rows that differ in class, and the pairs' weights.
fn between_classes(
    x: &dyn Design,
    labels: &Labels,
    weights: Option<&[f64]>,
    rows: &[usize],
    unit: f64,
) -> Vec<(f64, f64)> {
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let class = |row: usize| labels.codes()[row];
    // one row at a time is spread out: |a - b|^2 = |a|^2 + sum over the entries of b of (a - b)^2 - a^2
    let from_row = |scratch: &mut Vec<f64>, position: usize| -> Vec<(f64, f64)> {
        let a = rows[position];
        scratch.resize(x.cols(), 0.0);
        x.copy_row(a, scratch);
        scratch.iter_mut().for_each(|value| *value /= unit);
        let norm = if x.is_sparse() { scratch.iter().map(|value| value * value).sum::<f64>() } else { 0.0 };
        let others = rows[..position].iter().filter(|&&b| class(a) != class(b));
        let distance = |b: usize| {
            let mut sum = norm;
            x.for_each(b, &mut |column, value| {
                let (own, difference) = (scratch[column], scratch[column] - value / unit);
                sum += difference * difference - if x.is_sparse() { own * own } else { 0.0 };
            });
            sum.max(0.0)
        };
        others.map(|&b| (distance(b), weight(a) * weight(b))).collect()
    };
    let lists: Vec<Vec<(f64, f64)>> = (0..rows.len()).into_par_iter().map_init(Vec::new, from_row).collect();
    lists.concat()
}

/// The smallest value that more than a share of the total weight does not exceed; 0 if there is none.
fn quantile(sorted: &[(f64, f64)], share: f64) -> f64 {
    let bound = share * sorted.iter().map(|(_, weight)| weight).sum::<f64>();
    let mut seen = 0.0;
    let reached = sorted.iter().find(|(_, weight)| {
        seen += weight;
        seen > bound
    });
    reached.or(sorted.last()).map_or(0.0, |(value, _)| *value)
}

/// Rows for the quartiles: all that weigh something, or evenly spread within each class, as many of it as its share.
fn spread_over_classes(labels: &Labels, weights: Option<&[f64]>) -> Vec<usize> {
    let counts = |row: &usize| weights.is_none_or(|weights| weights[*row] > 0.0);
    let most = (2.0 * PAIRS as f64).sqrt();
    let step = ((0..labels.len()).filter(counts).count() as f64 / most).ceil().max(1.0) as usize;
    let mut seen = vec![0usize; labels.classes().len()];
    let chosen = |&row: &usize| {
        let count = &mut seen[labels.codes()[row] as usize];
        *count += 1;
        (*count - 1).is_multiple_of(step)
    };
    (0..labels.len()).filter(counts).filter(chosen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, Dense};

    #[test]
    fn scale_matches_its_formula_for_dense_and_sparse() {
        let x = Dense::from_rows(&[[0.0, 2.0], [4.0, 0.0]]);
        let y = Labels::new([0, 1]);
        // mean 1.5, variance (2.25 + .25 + 6.25 + 2.25) / 4 = 2.75
        assert!((Gamma::Scale.resolve(&x, &y, None).unwrap() - 1.0 / 5.5).abs() < 1e-15);
        let sparse = Csr::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![2.0, 4.0]).unwrap();
        assert!((Gamma::Scale.resolve(&sparse, &y, None).unwrap() - 1.0 / 5.5).abs() < 1e-15);
        assert_eq!(Gamma::Auto.resolve(&x, &y, None).unwrap(), 0.5);
    }

    #[test]
    fn a_weight_of_two_is_the_row_twice() {
        let x = Dense::from_rows(&[[0.0, 2.0], [4.0, 0.0], [7.0, 7.0]]);
        let twice = Dense::from_rows(&[[0.0, 2.0], [4.0, 0.0], [4.0, 0.0]]);
        let weighted = Gamma::Scale.resolve(&x, &Labels::new([0, 1, 1]), Some(&[1.0, 2.0, 0.0])).unwrap();
        let repeated = Gamma::Scale.resolve(&twice, &Labels::new([0, 1, 1]), None).unwrap();
        assert!((weighted - repeated).abs() < 1e-15);
    }

    #[test]
    fn quartiles_are_of_distances_between_classes() {
        // between-class distances 1, 2, 3, 4, 5
        let x = Dense::from_rows(&[[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]);
        let y = Labels::new([0, 1, 1, 1, 1, 1]);
        for (gamma, sigma) in [(Gamma::Q1, 2.0), (Gamma::Median, 3.0), (Gamma::Q3, 4.0)] {
            assert!((gamma.resolve(&x, &y, None).unwrap() - 1.0 / (2.0 * sigma * sigma)).abs() < 1e-15);
        }
    }

    /// Every pair of rows of different classes, sorted by distance, by the definition.
    fn expected(rows: &[[f64; 2]], codes: &[u32], share: f64) -> f64 {
        let mut distances = Vec::new();
        for a in 0..rows.len() {
            for b in 0..a {
                if codes[a] != codes[b] {
                    distances.push((rows[a][0] - rows[b][0]).hypot(rows[a][1] - rows[b][1]));
                }
            }
        }
        distances.sort_by(f64::total_cmp);
        distances[(share * distances.len() as f64).floor() as usize]
    }

    #[test]
    fn quartiles_of_many_classes_take_all_pairs_of_different_classes() {
        let rows: Vec<[f64; 2]> = (0..60).map(|row| [f64::from(row * 37 % 61), f64::from(row * row % 17)]).collect();
        for k in [2, 3, 5, 60] {
            let codes: Vec<u32> = (0..60).map(|row| (row * 7 + row / 9) % k).collect();
            let labels = Labels::new(codes.iter().copied());
            let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
            for row in &rows {
                for (column, value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                    columns.push(column as u32);
                    values.push(*value);
                }
                starts.push(values.len());
            }
            let sparse = Csr::new(60, 2, starts, columns, values).unwrap();
            let dense = Dense::from_rows(&rows);
            for x in [&dense as &dyn Design, &sparse] {
                for (found, share) in Gamma::quartiles(x, &labels, None).into_iter().zip([0.25, 0.5, 0.75]) {
                    let sigma = expected(&rows, &codes, share);
                    assert!((found * 2.0 * sigma * sigma - 1.0).abs() < 1e-9, "k = {k}, {share}: {found}");
                }
            }
        }
    }

    #[test]
    fn weights_count_for_the_quartiles_as_repeated_rows() {
        let x = Dense::from_rows(&[[0.0], [1.0], [3.0], [7.0], [20.0]]);
        let repeated = Dense::from_rows(&[[0.0], [1.0], [1.0], [3.0], [7.0], [7.0], [7.0]]);
        let weighted = Gamma::quartiles(&x, &Labels::new([0, 1, 0, 2, 1]), Some(&[1.0, 2.0, 1.0, 3.0, 0.0]));
        assert_eq!(weighted, Gamma::quartiles(&repeated, &Labels::new([0, 1, 1, 0, 2, 2, 2]), None));
        // and only their ratios do
        let halved = Gamma::quartiles(&x, &Labels::new([0, 1, 0, 2, 1]), Some(&[0.5, 1.0, 0.5, 1.5, 0.0]));
        assert_eq!(weighted, halved);
    }

    #[test]
    fn quartiles_see_both_classes_whatever_their_order() {
        let rows: Vec<[f64; 1]> = (0..4000).map(|row| [if row % 2 == 0 { 0.0 } else { 3.0 }]).collect();
        let y = Labels::new((0..4000).map(|row| row % 2));
        for scale in [1.0, 1e-140, 1e140] {
            let rows: Vec<[f64; 1]> = rows.iter().map(|row| [row[0] * scale]).collect();
            let gamma = Gamma::Median.resolve(&Dense::from_rows(&rows), &y, None).unwrap();
            assert!((gamma * 18.0 * scale * scale - 1.0).abs() < 1e-12, "{scale:e}: {gamma}");
        }
    }

    #[test]
    fn extreme_scales_stay_finite() {
        let y = Labels::new([0, 1, 1]);
        for scale in [1e-160, 1e-150, 1e150] {
            let x = Dense::from_rows(&[[scale], [2.0 * scale], [-scale]]);
            let gamma = Gamma::Scale.resolve(&x, &y, None).unwrap();
            assert!(gamma.is_finite() && gamma > 0.0, "{scale}: {gamma}");
        }
        let constant = Dense::from_rows(&[[3.0], [3.0], [3.0]]);
        assert_eq!(Gamma::Scale.resolve(&constant, &y, None).unwrap(), 1.0);
        assert!(Gamma::Value(-1.0).resolve(&constant, &y, None).is_err());
    }
}
