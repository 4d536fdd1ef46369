//! The choice of parameters by rows of their own, as the papers make it.
//!
//! Along C each fit starts from the one before, C rising. The model with the smallest loss on the tuning rows is kept; of several with
//! the same, the first.

use crate::data::Rows;
use outlast::{Design, Error, FitRequest, Kernel, KernelFunction, Model, Result, Truncated, gamma_quartiles};

/// What was chosen.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The model.
    pub model: Model,
    /// Its loss on the tuning rows.
    pub tuning: f64,
}

/// 10^low, ..., 10^high, `steps` to a power of ten.
pub fn powers(low: i32, high: i32, steps: i32) -> Vec<f64> {
    (low * steps..=high * steps).map(|at| 10f64.powf(f64::from(at) / f64::from(steps))).collect()
}

/// The share of the rows a model decides wrongly.
pub fn error(model: &Model, rows: &Rows) -> Result<f64> {
    let decided = model.predict_codes(&rows.x)?;
    let wrong = decided.iter().zip(rows.y.codes()).filter(|(decided, code)| decided != code).count();
    Ok(wrong as f64 / rows.x.rows() as f64)
}

/// What the decisions of a model are worth on average; `utility` is k x k, row = true class.
pub fn utility(model: &Model, rows: &Rows, utility: &[Vec<f64>]) -> Result<f64> {
    let decided = model.predict_codes(&rows.x)?;
    let worth = |(&code, &to): (&u32, &u32)| utility[code as usize][to as usize];
    Ok(rows.y.codes().iter().zip(&decided).map(worth).sum::<f64>() / rows.x.rows() as f64)
}

/// Fits along C, which has at least one value, and keeps the model with the smallest loss.
pub fn along(
    cs: &[f64],
    method: &Truncated,
    train: &Rows,
    request: &FitRequest,
    loss: impl Fn(&Model) -> Result<f64>,
) -> Result<Chosen> {
    let mut best: Option<Chosen> = None;
    for model in each(cs, method, train, request)? {
        let tuning = loss(&model)?;
        if best.as_ref().is_none_or(|best| tuning < best.tuning) {
            best = Some(Chosen { model, tuning });
        }
    }
    best.ok_or_else(|| Error::shape("C", "no values", "at least one"))
}

/// The models along C, each started from the one before.
pub fn each(cs: &[f64], method: &Truncated, train: &Rows, request: &FitRequest) -> Result<Vec<Model>> {
    let mut models: Vec<Model> = Vec::with_capacity(cs.len());
    for &c in cs {
        let request = FitRequest { start: models.last(), ..*request };
        models.push(method.clone().c(c).fit_with(&train.x, &train.y, &request)?);
    }
    Ok(models)
}

/// The same for each of some kernels, of which there is at least one; of equally good ones the first.
pub fn over(
    kernels: &[Kernel],
    cs: &[f64],
    method: &Truncated,
    train: &Rows,
    request: &FitRequest,
    loss: impl Fn(&Model) -> Result<f64>,
) -> Result<Chosen> {
    let one = |kernel: &Kernel| along(cs, &method.clone().kernel(kernel.clone()), train, request, &loss);
    let tuned = kernels.iter().map(one).collect::<Result<Vec<Chosen>>>()?;
    let best = tuned.into_iter().min_by(|a, b| a.tuning.total_cmp(&b.tuning));
    best.ok_or_else(|| Error::shape("kernels", "none", "at least one"))
}

/// Gaussian kernels whose sigma are the quartiles of the between-class distances of some rows.
pub fn gaussians(train: &Rows) -> Result<Vec<Kernel>> {
    Ok(gamma_quartiles(&train.x, &train.y, None)?.map(Kernel::rbf).to_vec())
}

/// sigma of a model's Gaussian kernel exp(-|x - x'|^2 / (2 sigma^2)); NaN of another kernel's.
pub fn sigma(model: &Model) -> f64 {
    match model.predictor.kernel {
        KernelFunction::Rbf { gamma } => (0.5 / gamma).sqrt(),
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::samples::Sectors;
    use outlast::Truncation;

    #[test]
    fn the_smallest_loss_is_kept_and_starts_do_not_change_a_convex_optimum() {
        let sectors = Sectors::equal(3);
        let mut random = Random::new(2);
        let train = sectors.draw(60, 2, 0.1, &mut random).unwrap();
        let tune = sectors.draw(500, 2, 0.1, &mut random).unwrap();
        let method = Truncated::new(1.0).kernel(Kernel::Linear).truncation(Truncation::Off);
        let cs = powers(-1, 1, 2);
        assert_eq!(cs.len(), 5);
        let request = FitRequest::default();
        let best = along(&cs, &method, &train, &request, |model| error(model, &tune)).unwrap();
        for &c in &cs {
            let alone = method.clone().c(c).fit(&train.x, &train.y).unwrap();
            let loss = error(&alone, &tune).unwrap();
            assert!(best.tuning <= loss);
            if c == best.model.summary.c {
                assert!((alone.summary.objective / best.model.summary.objective - 1.0).abs() < 1e-8);
            }
        }
    }
}
