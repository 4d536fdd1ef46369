//! The two one-dimensional problems around an unpenalised intercept: the best b for a given w, and the nearest feasible
//! dual point, sum beta = 0.

/// A minimiser of b -> sum_kept c [1 - y (f + b)]_+ + sum_truncated c [y (f + b) - 1]_+.
///
/// Row i bends at b = y_i - f_i, where the slope rises by c_i; to the left of all bends it is minus the caps of the rows
/// whose beta may be positive (`upper` > 0). The middle of the interval where the minimiser is not unique; its finite end
/// where the interval is unbounded.
pub(super) fn best_intercept(f: &[f64], signs: &[f64], lower: &[f64], upper: &[f64]) -> f64 {
    let mut bends: Vec<(f64, f64)> = (0..f.len())
        .filter(|&row| upper[row] > lower[row])
        .map(|row| (signs[row] - f[row], upper[row] - lower[row]))
        .collect();
    bends.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(&(first, _)), Some(&(last, _))) = (bends.first(), bends.last()) else { return 0.0 };
    let mut slope = -upper.iter().sum::<f64>();
    let total: f64 = bends.iter().map(|(_, cap)| cap).sum();
    // sums of caps are equal when they differ by less than their rounding
    let flat = 8.0 * f64::EPSILON * total;
    if slope >= -flat {
        return first;
    }
    for (position, &(bend, cap)) in bends.iter().enumerate() {
        slope += cap;
        if slope > flat {
            return bend;
        }
        if slope >= -flat {
            return bends.get(position + 1).map_or(bend, |&(next, _)| 0.5 * (bend + next));
        }
    }
    last
}

/// Moves beta within its boxes, which hold 0, so that it sums to zero: rows strictly inside give way first, each by the
/// same share of its room.
pub(super) fn balance(beta: &mut [f64], lower: &[f64], upper: &[f64]) {
    for inside_only in [true, false, false] {
        let sum: f64 = beta.iter().sum();
        if sum == 0.0 {
            return;
        }
        let bound = if sum > 0.0 { lower } else { upper };
        let movable = |row: usize, beta: f64| !inside_only || (beta > lower[row] && beta < upper[row]);
        let rows = beta.iter().enumerate().filter(|(row, beta)| movable(*row, **beta));
        let room: f64 = rows.map(|(row, beta)| (beta - bound[row]).abs()).sum();
        if room == 0.0 {
            continue;
        }
        let share = (sum.abs() / room).min(1.0);
        for (row, beta) in beta.iter_mut().enumerate() {
            if movable(row, *beta) {
                *beta = if share == 1.0 { bound[row] } else { *beta + share * (bound[row] - *beta) };
            }
        }
    }
    remove_rounding(beta, lower, upper);
}

/// Takes what rounding left of the sum from the rows with most room.
fn remove_rounding(beta: &mut [f64], lower: &[f64], upper: &[f64]) {
    for _ in 0..4 {
        let sum: f64 = beta.iter().sum();
        let room = |row: usize| if sum > 0.0 { beta[row] - lower[row] } else { upper[row] - beta[row] };
        let Some(row) = (0..beta.len()).max_by(|&a, &b| room(a).total_cmp(&room(b))) else { return };
        if sum == 0.0 {
            return;
        }
        beta[row] = (beta[row] - sum).clamp(lower[row], upper[row]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxes(signs: &[f64], caps: &[f64], truncated: &[bool]) -> (Vec<f64>, Vec<f64>) {
        let up: Vec<bool> = signs.iter().zip(truncated).map(|(y, t)| (*y > 0.0) != *t).collect();
        let lower = up.iter().zip(caps).map(|(up, cap)| if *up { 0.0 } else { -cap }).collect();
        let upper = up.iter().zip(caps).map(|(up, cap)| if *up { *cap } else { 0.0 }).collect();
        (lower, upper)
    }

    #[test]
    fn the_intercept_is_as_good_as_any_on_a_fine_grid() {
        let f = [0.3, -1.2, 2.0, 0.1, -0.4, 0.9];
        let signs = [1.0, -1.0, 1.0, -1.0, -1.0, 1.0];
        let caps = [1.0, 2.0, 0.0, 0.5, 1.5, 3.0];
        for pattern in 0..64u32 {
            let truncated: Vec<bool> = (0..6).map(|row| pattern >> row & 1 == 1).collect();
            let (lower, upper) = boxes(&signs, &caps, &truncated);
            let value = |b: f64| {
                let cost = |row: usize| {
                    let slack = 1.0 - signs[row] * (f[row] + b);
                    caps[row] * if truncated[row] { -slack } else { slack }.max(0.0)
                };
                (0..6).map(cost).sum::<f64>()
            };
            let best = value(best_intercept(&f, &signs, &lower, &upper));
            for step in -500..=500 {
                let other = value(step as f64 / 100.0);
                assert!(best <= other + 1e-12, "pattern {pattern}: {best} > {other}");
            }
        }
    }

    #[test]
    fn the_middle_is_taken_where_the_minimiser_is_not_unique() {
        let (lower, upper) = boxes(&[1.0, -1.0], &[2.0, 2.0], &[false, false]);
        // bends at b = 1 - 3 and b = -1 + 4: every b in between costs nothing
        assert_eq!(best_intercept(&[3.0, -4.0], &[1.0, -1.0], &lower, &upper), 0.5);
    }

    #[test]
    fn balancing_stays_in_the_boxes() {
        let (lower, upper) = boxes(&[1.0, 1.0, -1.0, -1.0], &[1.0, 2.0, 0.5, 0.1], &[false; 4]);
        for start in [[1.0, 2.0, -0.5, -0.1], [0.3, 0.0, -0.5, -0.1], [0.0, 0.0, -0.2, 0.0], [1.0, 0.0, 0.0, 0.0]] {
            let mut beta = start;
            balance(&mut beta, &lower, &upper);
            assert!(beta.iter().sum::<f64>().abs() <= 1e-16, "{beta:?}");
            assert!((0..4).all(|row| (lower[row]..=upper[row]).contains(&beta[row])), "{beta:?}");
        }
    }
}
