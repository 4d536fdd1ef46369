//! Liu, Wu and He, "Utility-based weighted multicategory robust support vector machines".

pub mod boundaries;
mod table1;
mod table2;
mod table3;

pub use table1::Outliers;
pub use table2::Curved;
pub use table3::Digits;

use outlast::Truncation;

/// The two machines: names and truncations.
pub const METHODS: [(&str, Truncation); 2] = [("WRSVM", Truncation::At(-0.5)), ("WSVM", Truncation::Off)];

/// The utility matrices of (16), by their number.
pub fn utility(number: usize, a: f64) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![1.0, 0.0, 0.0], vec![0.0, 1.0, 0.0], vec![0.0, 0.0, 1.0]];
    let entries: &[(usize, usize)] = match number {
        1 => &[(0, 1)],
        2 => &[(0, 1), (0, 2)],
        _ => &[(1, 0), (2, 0)],
    };
    entries.iter().for_each(|&(row, column)| matrix[row][column] = a);
    matrix
}

/// The class worth most where the classes have these chances, and what it is worth on average.
pub fn bayes(chances: &[f64], utility: &[Vec<f64>]) -> (usize, f64) {
    let worth = worths(chances, utility);
    let best = (0..worth.len()).max_by(|&a, &b| worth[a].total_cmp(&worth[b]));
    best.map_or((0, 0.0), |best| (best, worth[best]))
}

/// What deciding for each class is worth on average.
pub fn worths(chances: &[f64], utility: &[Vec<f64>]) -> Vec<f64> {
    let of = |to: usize| chances.iter().zip(utility).map(|(chance, row)| chance * row[to]).sum();
    (0..chances.len()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_matrix_is_the_second_turned_over() {
        let (second, third) = (utility(2, 0.4), utility(3, 0.4));
        for row in 0..3 {
            for column in 0..3 {
                assert_eq!(second[row][column], third[column][row]);
            }
        }
        assert_eq!(bayes(&[0.5, 0.3, 0.2], &utility(1, 0.8)).0, 1);
        assert_eq!(bayes(&[0.5, 0.3, 0.2], &utility(1, 0.0)), (0, 0.5));
    }
}
