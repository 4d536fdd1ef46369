//! Two numbers per row that show most of the spread: the leading principal components.

use crate::data::Design;
use crate::error::Result;
use rayon::prelude::*;

/// Steps of the power method; a picture needs no more.
const STEPS: usize = 40;

/// The two leading principal components of each row, columns on the scale of an audit.
///
/// ```
/// use outlast::{Dense, select::components};
/// let x = Dense::from_rows(&[[0.0, 1.0], [1.0, 3.0], [2.0, 5.0], [3.0, 7.0]]);
/// let [first, second] = components(&x)?;
/// assert!(first[3].abs() > 1.0 && (first[0] + first[3]).abs() < 1e-5);
/// assert!(second.iter().all(|value| value.abs() < 1e-5)); // the rows lie on a line
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn components(x: &dyn Design) -> Result<[Vec<f32>; 2]> {
    x.check_finite()?;
    let scaled = super::scaled::Scaled::new(x)?;
    let x = scaled.design();
    let (n, d) = (x.rows(), x.cols());
    // where columns were not centred, the mean is taken off here
    let mut mean = vec![0.0; d];
    (0..n).for_each(|row| x.add_scaled(row, 1.0 / n as f64, &mut mean));
    let mut axes: Vec<Vec<f64>> = Vec::new();
    let mut found: [Vec<f32>; 2] = [vec![0.0; n], vec![0.0; n]];
    for component in &mut found {
        // any start that is not orthogonal to the answer, the same every time
        let mut axis: Vec<f64> = (0..d).map(|column| 1.0 + ((column * 7919) % 101) as f64 / 101.0).collect();
        let mut values = vec![0.0; n];
        for _ in 0..STEPS {
            for other in &axes {
                let along = dot(&axis, other);
                axis.iter_mut().zip(other).for_each(|(a, o)| *a -= along * o);
            }
            let length = dot(&axis, &axis).sqrt();
            if !(length > 1e-9 && length.is_finite()) {
                axis.fill(0.0);
                break;
            }
            axis.iter_mut().for_each(|a| *a /= length);
            let offset = dot(&mean, &axis);
            values = (0..n).into_par_iter().map(|row| x.dot(row, &axis) - offset).collect();
            let mut next = vec![0.0; d];
            let total: f64 = values.iter().sum();
            values.iter().enumerate().for_each(|(row, &value)| x.add_scaled(row, value, &mut next));
            next.iter_mut().zip(&mean).for_each(|(next, mean)| *next -= total * mean);
            if dot(&next, &next).sqrt() <= 1e-9 * n as f64 {
                break;
            }
            axis = next;
        }
        let length = dot(&axis, &axis).sqrt();
        axis.iter_mut().for_each(|a| *a = if length > 0.0 { *a / length } else { 0.0 });
        component.iter_mut().zip(&values).for_each(|(out, &value)| *out = value as f32);
        axes.push(axis);
    }
    Ok(found)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
