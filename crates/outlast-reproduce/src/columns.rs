//! Columns made from columns before anything is fitted: whitened, products, range [0, 1], as few as carry the same inner products.

use crate::data::Rows;
use faer::{Mat, Side};
use outlast::{Dense, Design, Error, Result};

/// Directions whose variance is this small beside the largest carry nothing.
const NOTHING: f64 = 1e-10;

/// Principal components brought to variance 1 over all rows, at most so many, the largest first.
pub fn whitened(rows: &Rows, most: usize) -> Result<Rows> {
    let (n, d) = (rows.x.rows(), rows.x.cols());
    // columns of their own scales first, so that what is large does not stand for what is much
    let standard = rows.standardized()?;
    let covariance = Mat::from_fn(d, d, |i, j| {
        (0..n).map(|row| standard.x.row(row)[i] * standard.x.row(row)[j]).sum::<f64>() / n as f64
    });
    let (values, vectors) = eigen(&covariance)?;
    let largest = values.first().copied().unwrap_or(0.0);
    let kept = values.iter().take(most).filter(|&&value| value > NOTHING * largest).count();
    let mut out = Vec::with_capacity(n * kept);
    for row in 0..n {
        let x = standard.x.row(row);
        let along = |at: usize| (0..d).map(|i| vectors[(i, at)] * x[i]).sum::<f64>() / values[at].sqrt();
        out.extend((0..kept).map(along));
    }
    Ok(Rows { x: Dense::new(n, kept, out)?, y: rows.y.clone() })
}

/// The columns and all their products: d + d (d + 1) / 2 of them.
pub fn with_products(rows: &Rows) -> Result<Rows> {
    let (n, d) = (rows.x.rows(), rows.x.cols());
    let mut out = Vec::with_capacity(n * (d + d * (d + 1) / 2));
    for row in 0..n {
        let x = rows.x.row(row);
        out.extend_from_slice(x);
        out.extend((0..d).flat_map(|i| (i..d).map(move |j| x[i] * x[j])));
    }
    Ok(Rows { x: Dense::new(n, d + d * (d + 1) / 2, out)?, y: rows.y.clone() })
}

/// Each column brought to the range [0, 1] over all rows; a constant column becomes 0.
pub fn unit_range(rows: &Rows) -> Result<Rows> {
    let (n, d) = (rows.x.rows(), rows.x.cols());
    let mut values = rows.x.values().to_vec();
    for column in 0..d {
        let of_column = || (0..n).map(|row| row * d + column);
        let low = of_column().map(|at| values[at]).fold(f64::INFINITY, f64::min);
        let high = of_column().map(|at| values[at]).fold(f64::NEG_INFINITY, f64::max);
        for at in of_column() {
            values[at] = if high > low { (values[at] - low) / (high - low) } else { 0.0 };
        }
    }
    Ok(Rows { x: Dense::new(n, d, values)?, y: rows.y.clone() })
}

/// Rows with the same inner products in at most as many columns as there are rows. What depends on the rows through inner products alone
/// (distances, linear machines with a Euclidean penalty) comes out the same and costs as many times less as there are columns too many.
pub fn compact(rows: &Rows) -> Result<Rows> {
    let (n, d) = (rows.x.rows(), rows.x.cols());
    if d <= n {
        return Ok(rows.clone());
    }
    let gram = Mat::from_fn(n, n, |i, j| match i >= j {
        true => rows.x.row(i).iter().zip(rows.x.row(j)).map(|(a, b)| a * b).sum(),
        false => 0.0,
    });
    let (values, vectors) = eigen(&gram)?;
    let kept = values.iter().filter(|&&value| value > 0.0).count();
    let out: Vec<f64> = (0..n)
        .flat_map(|row| (0..kept).map(move |at| (row, at)))
        .map(|(row, at)| vectors[(row, at)] * values[at].sqrt())
        .collect();
    Ok(Rows { x: Dense::new(n, kept, out)?, y: rows.y.clone() })
}

/// Eigenvalues, the largest first, and their vectors, of a symmetric matrix given by its lower half.
fn eigen(matrix: &Mat<f64>) -> Result<(Vec<f64>, Mat<f64>)> {
    let order = matrix.nrows();
    let found = matrix.self_adjoint_eigen(Side::Lower);
    let found = found.map_err(|_| Error::shape("data set", "columns that are not finite", "finite numbers"))?;
    let values = (0..order).rev().map(|at| found.S()[at]).collect();
    Ok((values, Mat::from_fn(order, order, |i, at| found.U()[(i, order - 1 - at)])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::samples::rows;

    fn some(n: usize, d: usize) -> Rows {
        let mut random = Random::new(9);
        let values = (0..n * d).map(|at| (1.0 + (at % d) as f64) * random.normal() + 3.0).collect();
        rows(d, values, (0..n as u32).map(|row| row % 2).collect(), 2).unwrap()
    }

    fn product(rows: &Rows, a: usize, b: usize) -> f64 {
        rows.x.row(a).iter().zip(rows.x.row(b)).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn whitened_columns_are_uncorrelated_with_variance_one() {
        let mut mixed = some(200, 3);
        // a fourth column that is the sum of two others carries nothing
        let values = (0..200).flat_map(|row| {
            let x = mixed.x.row(row);
            [x[0], x[1] + 0.5 * x[0], x[2], x[0] + x[2]]
        });
        mixed = rows(4, values.collect(), mixed.y.codes().to_vec(), 2).unwrap();
        let white = whitened(&mixed, 41).unwrap();
        assert_eq!(white.x.cols(), 3);
        for i in 0..3 {
            for j in 0..3 {
                let moment = (0..200).map(|row| white.x.row(row)[i] * white.x.row(row)[j]).sum::<f64>() / 200.0;
                assert!((moment - f64::from(u8::from(i == j))).abs() < 1e-9, "{i} {j} {moment}");
            }
        }
        assert_eq!(whitened(&mixed, 2).unwrap().x.cols(), 2);
    }

    #[test]
    fn products_and_ranges_are_as_named() {
        let small = rows(2, vec![2.0, 3.0, 4.0, 3.0], vec![0, 1], 2).unwrap();
        assert_eq!(with_products(&small).unwrap().x.row(0), [2.0, 3.0, 4.0, 6.0, 9.0]);
        assert_eq!(unit_range(&small).unwrap().x.values(), [0.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn fewer_columns_keep_all_inner_products() {
        let wide = some(6, 40);
        let few = compact(&wide).unwrap();
        assert!(few.x.cols() <= 6);
        for a in 0..6 {
            for b in 0..6 {
                let (one, other) = (product(&wide, a, b), product(&few, a, b));
                assert!((one - other).abs() < 1e-9 * product(&wide, a, a).abs(), "{one} {other}");
            }
        }
    }
}
