//! The cap that leaves a given share of the rows beyond it.

/// Losses this close, relatively, are those of copies of one row.
const SAME: f64 = 1e-9;

/// The cap halfway between the smallest of the largest losses that together weigh at most `share`, and the next one. Rows of the same
/// loss go together, so that a row of weight 2 is two rows. Infinite where no rows are beyond, or none of them costs anything.
pub(super) fn beyond(losses: &[f64], weights: &[f64], share: f64) -> f64 {
    let mut order: Vec<usize> = (0..losses.len()).filter(|&row| weights[row] > 0.0).collect();
    order.sort_unstable_by(|&a, &b| losses[b].total_cmp(&losses[a]));
    let total: f64 = order.iter().map(|&row| weights[row]).sum();
    let mut left = share * total * (1.0 + 1e-12);
    let mut last = None;
    let mut rest = &order[..];
    while let Some(&first) = rest.first() {
        let same = rest.iter().take_while(|&&row| losses[first] - losses[row] <= SAME * losses[first]).count().max(1);
        let weight: f64 = rest[..same].iter().map(|&row| weights[row]).sum();
        if weight > left {
            let Some(last) = last else { return f64::INFINITY };
            let middle: f64 = 0.5 * losses[first] + 0.5 * last;
            // losses so small that nothing lies between them
            return if middle > 0.0 { middle } else { f64::INFINITY };
        }
        left -= weight;
        last = Some(losses[rest[same - 1]]);
        rest = &rest[same..];
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::beyond;

    #[test]
    fn the_share_lies_beyond() {
        let losses: Vec<f64> = (0..20).map(f64::from).collect();
        assert_eq!(beyond(&losses, &[1.0; 20], 0.1), 17.5);
        assert_eq!(beyond(&losses, &[1.0; 20], 0.0), f64::INFINITY);
        assert_eq!(beyond(&losses, &[1.0; 20], 0.04), f64::INFINITY);
        assert_eq!(beyond(&[0.0; 20], &[1.0; 20], 0.5), f64::INFINITY);
        // doubled rows are doubled weights
        let twice: Vec<f64> = (0..40).map(|row| f64::from(row / 2)).collect();
        assert_eq!(beyond(&twice, &[1.0; 40], 0.1), beyond(&losses, &[2.0; 20], 0.1));
        // three copies of which only two would fit, as one row of weight 3
        let copies = [5.0, 4.0, 4.0, 4.0, 3.0, 2.0, 1.0, 1.0, 0.0, 0.0];
        let single = ([5.0, 4.0, 3.0, 2.0, 1.0, 0.0], [1.0, 3.0, 1.0, 1.0, 2.0, 2.0]);
        assert_eq!(beyond(&copies, &[1.0; 10], 0.3), 4.5);
        assert_eq!(beyond(&single.0, &single.1, 0.3), 4.5);
        // rows without weight do not count
        let mut weights = [1.0; 20];
        weights[19] = 0.0;
        assert_eq!(beyond(&losses, &weights, 0.11), 16.5);
    }
}
