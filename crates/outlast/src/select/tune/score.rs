//! What decisions lose, and the means and standard errors of that.

use super::Measure;

/// What decisions are worth.
pub(in crate::select) struct Payoff {
    /// k x k losses, row = true class; `None` for 0 and 1.
    pub losses: Option<Vec<f64>>,
    pub classes: usize,
}

impl Payoff {
    /// Of a matrix, k x k, row = true class, that holds costs or else utilities; and what is compared then.
    pub fn of(matrix: Option<(Vec<f64>, bool)>, classes: usize) -> (Payoff, Measure) {
        let Some((matrix, costs)) = matrix else { return (Payoff { losses: None, classes }, Measure::Error) };
        let measure = if costs { Measure::Cost } else { Measure::Utility };
        let losses = matrix.into_iter().map(|value| measure.shown(value)).collect();
        (Payoff { losses: Some(losses), classes }, measure)
    }

    pub fn loss(&self, truth: u32, decided: u32) -> f64 {
        match &self.losses {
            None => f64::from(truth != decided),
            Some(losses) => losses[truth as usize * self.classes + decided as usize],
        }
    }
}

/// The mean loss of some rows by their weights, and its standard error over the rows. Without any weight there is nothing to judge by:
/// not a number.
pub(in crate::select) fn of_rows(losses: &[f64], weights: &[f64]) -> (f64, f64) {
    let total: f64 = weights.iter().sum();
    let error = losses.iter().zip(weights).map(|(loss, weight)| loss * weight).sum::<f64>() / total;
    let spread = |(loss, weight): (&f64, &f64)| (weight * (loss - error)).powi(2);
    (error, losses.iter().zip(weights).map(spread).sum::<f64>().sqrt() / total)
}

/// The mean of the splits judged; NaN where there are none, the one that any order by size has last: 0 / 0 may be the one that comes first.
pub(in crate::select) fn mean(errors: &[f64]) -> f64 {
    let judged: Vec<f64> = errors.iter().copied().filter(|error| !error.is_nan()).collect();
    if judged.is_empty() {
        return f64::NAN;
    }
    judged.iter().sum::<f64>() / judged.len() as f64
}

/// Of the mean over splits; of a single split, that over its rows.
pub(in crate::select) fn standard_error(errors: &[f64], of_rows: f64) -> f64 {
    let judged: Vec<f64> = errors.iter().copied().filter(|error| !error.is_nan()).collect();
    let count = judged.len() as f64;
    if judged.len() < 2 {
        return of_rows;
    }
    let mean = mean(&judged);
    (judged.iter().map(|error| (error - mean).powi(2)).sum::<f64>() / (count - 1.0) / count).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_errors_are_those_of_the_textbook() {
        let errors = [0.1, 0.2, f64::NAN, 0.3];
        assert!((mean(&errors) - 0.2).abs() < 1e-15);
        assert!((standard_error(&errors, 9.0) - 0.1 / 3f64.sqrt()).abs() < 1e-15);
        assert_eq!(standard_error(&[0.5], 9.0), 9.0);
        assert!(mean(&[f64::NAN]).is_nan());
        let mut means = [mean(&[]), 0.5, mean(&[-f64::NAN]), -0.5];
        means.sort_by(f64::total_cmp);
        assert_eq!(means[..2], [-0.5, 0.5], "what was not judged comes last");
    }

    #[test]
    fn rows_count_by_their_weights() {
        let (error, spread) = of_rows(&[1.0, 0.0, 0.0], &[2.0, 1.0, 1.0]);
        assert_eq!(error, 0.5);
        assert!((spread - (1.0f64 + 0.25 + 0.25).sqrt() / 4.0).abs() < 1e-15);
        assert!(of_rows(&[1.0], &[0.0]).0.is_nan());
    }
}
