//! What can be seen of rows without any fit: the same values with another label, and values far from those of all other rows.

use super::scaled::Scaled;
use crate::control::Control;
use crate::data::Design;
use crate::error::Result;
use rayon::prelude::*;
use std::collections::HashMap;

/// Rows that distances are taken to, drawn evenly.
const REFERENCES: usize = 500;

/// Which of the nearest of them counts: a single row like it does not make a row usual.
const NEIGHBOUR: usize = 3;

/// How far out a coordinate counts, in standard deviations: beyond, only that it is far matters.
const LIMIT: f64 = 1e6;

/// A far row is that many times as far as usual.
const TIMES: f64 = 3.0;

/// Rows with the same values and not all the same label: each group's rows, ascending.
pub(super) fn conflicts(x: &dyn Design, codes: &[u32]) -> Vec<Vec<usize>> {
    let mut groups: HashMap<u64, Vec<usize>> = HashMap::new();
    for row in 0..x.rows() {
        groups.entry(hash(x, row)).or_default().push(row);
    }
    let mut found = Vec::new();
    for (_, rows) in groups.into_iter().filter(|(_, rows)| rows.len() > 1) {
        // rows that share a hash need not be the same
        let mut same: Vec<Vec<usize>> = Vec::new();
        for row in rows {
            match same.iter_mut().find(|group| equal(x, group[0], row)) {
                Some(group) => group.push(row),
                None => same.push(vec![row]),
            }
        }
        found.extend(same.into_iter().filter(|group| group.iter().any(|&row| codes[row] != codes[group[0]])));
    }
    found.sort();
    found
}

/// -0 is 0.
fn bits(value: f64) -> u64 {
    (value + 0.0).to_bits()
}

fn hash(x: &dyn Design, row: usize) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    x.for_each(row, &mut |column, value| {
        if value != 0.0 {
            for word in [column as u64, bits(value)] {
                hash = (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
        }
    });
    hash
}

fn equal(x: &dyn Design, a: usize, b: usize) -> bool {
    let entries = |row: usize| {
        let mut entries = Vec::new();
        x.for_each(row, &mut |column, value| {
            if value != 0.0 {
                entries.push((column, bits(value)));
            }
        });
        entries
    };
    entries(a) == entries(b)
}

/// How many times as far as usual a row lies from its neighbours, for rows that are far: the logarithm of their distance lies
/// beyond the outer fence q3 + 3 (q3 - q1) of all rows', and the distance is at least [`TIMES`] the median.
pub(super) fn far(x: &dyn Design, scaled: &Scaled, control: &Control) -> Result<Vec<Option<f64>>> {
    let (n, d) = (x.rows(), x.cols());
    if x.is_sparse() && !matches!(scaled.rows, crate::model::Rows::Dense(_)) {
        // distances of very wide sparse rows are those of their lengths
        return Ok(vec![None; n]);
    }
    let step = n.div_ceil(REFERENCES).max(1);
    let chosen: Vec<usize> = (0..n).step_by(step).collect();
    let mut references = vec![0.0; chosen.len() * d];
    for (out, &row) in references.chunks_exact_mut(d).zip(&chosen) {
        scaled.far_row(x, row, LIMIT, out);
    }
    let distance = |scratch: &mut Vec<f64>, row: usize| -> Result<f64> {
        if row.is_multiple_of(64) {
            control.check()?;
        }
        scratch.resize(d, 0.0);
        scaled.far_row(x, row, LIMIT, scratch);
        let mut nearest = [f64::INFINITY; NEIGHBOUR];
        for (other, &at) in references.chunks_exact(d).zip(&chosen) {
            if at == row {
                continue;
            }
            let mut sum = squared_distance(scratch, other);
            for slot in &mut nearest {
                if sum < *slot {
                    std::mem::swap(&mut sum, slot);
                }
            }
        }
        Ok(nearest.iter().rev().find(|value| value.is_finite()).map_or(0.0, |value| value.sqrt()))
    };
    let distances: Vec<f64> = (0..n).into_par_iter().map_init(Vec::new, distance).collect::<Result<Vec<f64>>>()?;
    Ok(beyond_fence(&distances))
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 4];
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(a, b)| (a - b) * (a - b)).sum();
    for (a, b) in a4.zip(b4) {
        for lane in 0..4 {
            lanes[lane] += (a[lane] - b[lane]) * (a[lane] - b[lane]);
        }
    }
    lanes.iter().sum::<f64>() + rest
}

fn beyond_fence(distances: &[f64]) -> Vec<Option<f64>> {
    let mut sorted = distances.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at =
        |share: f64| sorted.get((share * (sorted.len().max(1) - 1) as f64).round() as usize).copied().unwrap_or(0.0);
    let median = at(0.5);
    if median <= 0.0 {
        return vec![None; distances.len()];
    }
    // rows that are the same have distance 0: as near as can be, not infinitely nearer
    let log = |distance: f64| (distance / median).max(1e-3).ln();
    let (q1, q3) = (log(at(0.25)), log(at(0.75)));
    let fence = q3 + 3.0 * (q3 - q1);
    let judge = |&distance: &f64| (log(distance) > fence && distance > TIMES * median).then_some(distance / median);
    distances.iter().map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, Dense};

    #[test]
    fn conflicts_are_the_same_values_with_another_label() {
        let x = Dense::from_rows(&[[0.0, 1.0], [2.0, 3.0], [-0.0, 1.0], [2.0, 3.0], [0.0, 1.0], [5.0, 5.0]]);
        assert_eq!(conflicts(&x, &[0, 1, 1, 1, 0, 0]), [vec![0, 2, 4]]);
        let sparse = Csr::new(3, 3, vec![0, 1, 2, 4], vec![1, 1, 0, 1], vec![2.0, 2.0, 0.0, 2.0]).unwrap();
        assert_eq!(conflicts(&sparse, &[0, 1, 0]), [vec![0, 1, 2]]);
    }

    #[test]
    fn far_rows_stand_out_and_others_do_not() {
        let mut rows: Vec<[f64; 2]> = (0..400).map(|row| [f64::from(row % 20), f64::from(row / 20)]).collect();
        rows.push([300.0, 10.0]);
        rows.push([1e300, -1e300]);
        let x = Dense::from_rows(&rows);
        let scaled = Scaled::new(&x).unwrap();
        let found = far(&x, &scaled, &Control::default()).unwrap();
        let flagged: Vec<usize> = (0..rows.len()).filter(|&row| found[row].is_some()).collect();
        assert_eq!(flagged, [400, 401]);
        let same = Dense::from_rows(&[[1.0]; 30]);
        assert!(far(&same, &Scaled::new(&same).unwrap(), &Control::default()).unwrap().iter().all(Option::is_none));
    }
}
