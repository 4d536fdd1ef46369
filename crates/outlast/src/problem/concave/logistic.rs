//! The capped logistic loss: min(g, cap), g the sum of log(1 + exp(-y_j f_j)).

use super::super::loss::{BaseLoss, Loss};
use super::lp::Capped;
use super::{Concave, Form};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Logistic;

impl Form for Logistic {
    fn name(&self) -> &'static str {
        "logistic"
    }

    fn about(&self) -> &'static str {
        "min(g, cap) of the logistic loss g"
    }

    fn has_power(&self) -> bool {
        false
    }

    fn make(&self, _: f64, cap: f64, _: usize) -> (&'static dyn BaseLoss, Arc<dyn Concave>) {
        (Loss::logistic().base(), Arc::new(Capped { cap }))
    }
}
