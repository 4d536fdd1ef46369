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

    /// The number for these data. Sample weights count for `Scale` only: a row of weight 2 is as good as two rows.
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
            Gamma::Q1 => from_quantile(x, labels, 0.25),
            Gamma::Median => from_quantile(x, labels, 0.5),
            Gamma::Q3 => from_quantile(x, labels, 0.75),
        };
        // data scaled by 1e-160 would ask for an infinite gamma; the nearest finite one gives the same kernel matrix
        Ok(gamma.clamp(f64::MIN_POSITIVE, f64::MAX))
    }
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

fn from_quantile(x: &dyn Design, labels: &Labels, quantile: f64) -> f64 {
    let largest =
        fold(x, f64::max, |_, values| values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs())));
    if largest == 0.0 {
        return 1.0;
    }
    let rows = spread_over_classes(labels);
    // in units of the largest entry, as in `variance`
    let mut table = vec![0.0; rows.len() * x.cols()];
    table.par_chunks_exact_mut(x.cols()).zip(&rows).for_each(|(out, &row)| {
        x.copy_row(row, out);
        out.iter_mut().for_each(|value| *value /= largest);
    });
    let of = |position: usize| &table[position * x.cols()..(position + 1) * x.cols()];
    let class = |position: usize| labels.codes()[rows[position]];
    let distance = |a: usize, b: usize| of(a).iter().zip(of(b)).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let to_others =
        |a: usize| -> Vec<f64> { (0..a).filter(|&b| class(a) != class(b)).map(|b| distance(a, b)).collect() };
    let mut distances: Vec<f64> = (0..rows.len()).into_par_iter().flat_map_iter(to_others).collect();
    if distances.is_empty() {
        return 1.0;
    }
    let middle = ((distances.len() - 1) as f64 * quantile).round() as usize;
    let (_, &mut squared, _) = distances.select_nth_unstable_by(middle, f64::total_cmp);
    if squared > 0.0 { 1.0 / (2.0 * squared) / largest / largest } else { 1.0 }
}

/// Rows for the quartiles: all, or evenly spread within each class, as many of it as its share.
fn spread_over_classes(labels: &Labels) -> Vec<usize> {
    let most = (2.0 * PAIRS as f64).sqrt();
    let step = (labels.len() as f64 / most).ceil().max(1.0) as usize;
    let mut seen = vec![0usize; labels.classes().len()];
    let chosen = |&row: &usize| {
        let count = &mut seen[labels.codes()[row] as usize];
        *count += 1;
        (*count - 1).is_multiple_of(step)
    };
    (0..labels.len()).filter(chosen).collect()
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
