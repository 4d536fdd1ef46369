//! The truncated machine.

use super::super::payoff::Payoff;
use super::super::{CostForm, Estimator, Model, Probability, Summary, Truncated, fit};
use super::{Asked, First, StreamRequest, check_request, in_memory, prepare, refuse, start_of};
use crate::error::Result;
use crate::memory::Lean;
use crate::problem::{Kernel, Penalty};
use crate::solver::Options;
use crate::solver::stream::{self, Passes, Separable, Shape, Task};

/// Tolerance of an answer that another descent begins with.
pub(super) const PILOT: f64 = 1e-2;

impl Truncated {
    /// [`Estimator::fit_passes`] of this method.
    pub(in crate::model) fn stream(&self, rows: &mut dyn Passes, request: &StreamRequest) -> Result<Model> {
        self.check()?;
        self.check_streamed()?;
        check_request(rows, request)?;
        let _lean = Lean::new();
        let payoff = Payoff::of(self, request.classes)?;
        fit::in_pool(self.common.threads, || self.streamed(rows, request, payoff))
    }

    fn streamed(&self, rows: &mut dyn Passes, request: &StreamRequest, payoff: Option<Payoff>) -> Result<Model> {
        let k = request.classes.len();
        let prepared = match prepare(&self.common, rows, request, self.penalty == Penalty::L2)? {
            First::Few(few) => return in_memory(self, few, rows, request),
            First::Many(prepared) => prepared,
        };
        let terms = |class: usize| -> Vec<(u32, f64)> {
            let cap = prepared.caps[class];
            let Some(payoff) = &payoff else { return vec![(class as u32, cap)] };
            let own = (0..k).map(|other| (other as u32, cap * payoff.factors[class * k + other]));
            own.filter(|(_, cap)| *cap > 0.0).collect()
        };
        let mut task = Task {
            classes: k,
            terms: (0..k).map(terms).collect(),
            shape: Shape::Margin,
            loss: self.truncated_loss(k)?,
            penalty: None,
            starts: Vec::new(),
            intercept: self.common.fit_intercept,
            memory: request.memory,
            sums: request.sums,
        };
        let options: Options = self.common.options(self.common.tol, None);
        let coefficients = rows.cols() * if k == 2 { 1 } else { k };
        // another penalty has few local minima that the squared norm doesn't have as well, and there the way to a low one is known
        let has_pilot = match self.penalty {
            Penalty::L2 => false,
            Penalty::L1 | Penalty::Lq => task.loss.truncation().is_some() && !task.is_wide(rows.cols()),
            Penalty::AdaptiveL1 => true,
        };
        let pilot = match has_pilot {
            true => {
                // as exact as the answer where rates are made of it, else a start
                let tolerance = if self.penalty == Penalty::AdaptiveL1 { options.tolerance } else { PILOT };
                let options = Options { tolerance, ..options.clone() };
                Some(stream::solve(rows, &prepared.survey, &task, &options, &request.control)?)
            }
            false => None,
        };
        if self.penalty != Penalty::L2 {
            let rates = match &pilot {
                // weights from the l2 fit with the same loss and C, as in memory
                Some(pilot) if self.penalty == Penalty::AdaptiveL1 => {
                    pilot.weights.iter().map(|w| 1.0 / w.abs()).collect()
                }
                _ => vec![1.0; coefficients],
            };
            let q = if self.penalty == Penalty::Lq { self.q } else { 1.0 };
            task.penalty = Some(Separable { q, rates });
            task.starts = start_of(prepared.on_sample(self, request)?);
            if q < 1.0 {
                // zeros are for good: a start that has fewer of them
                let convex = Truncated { penalty: Penalty::L1, ..self.clone() };
                task.starts.extend(start_of(prepared.on_sample(&convex, request)?));
            }
            if !task.is_wide(rows.cols()) && task.loss.truncation().is_some() {
                task.starts.extend(pilot.as_ref().map(|pilot| pilot.start(rows.shift())));
            }
        }
        let mut found = stream::solve(rows, &prepared.survey, &task, &options, &request.control)?;
        found.passes += pilot.map_or(0, |pilot| pilot.passes - prepared.survey.passes);
        let mut asked = Asked::of("truncated", task.loss.base().name(), self.penalty.name(), &self.solver);
        if self.penalty == Penalty::Lq {
            asked.details.set("q", self.q);
        }
        asked.summary = Summary {
            truncation: task.loss.truncation(),
            utility: payoff.as_ref().filter(|payoff| !payoff.is_cost).map(|payoff| payoff.given.clone()),
            cost: payoff.as_ref().filter(|payoff| payoff.is_cost).map(|payoff| payoff.given.clone()),
            cost_form: self.cost_form.name().to_string(),
            utility_baseline: self.utility_baseline.name().to_string(),
            ..asked.summary
        };
        Ok(prepared.model(&self.common, found, asked, rows.cols(), request))
    }

    /// What a fit in chunks does not know is refused by name.
    pub(in crate::model) fn check_streamed(&self) -> Result<()> {
        match () {
            _ if !matches!(self.common.kernel, Kernel::Linear) => {
                refuse("kernel", format!("{:?}", self.common.kernel.name()), "\"linear\"")
            }
            _ if self.loss.base().name() != "hinge" => {
                refuse("loss", format!("{:?}", self.loss.base().name()), "\"hinge\"")
            }
            _ if self.cost_form == CostForm::Direct => refuse("cost_form", "\"direct\"".to_string(), "\"utility\""),
            _ if self.global_search => refuse("global_search", "on".to_string(), "off"),
            _ if self.probability != Probability::Off => refuse("probability", "on".to_string(), "off"),
            _ if !matches!(self.solver.as_str(), "auto" | stream::NAME) => {
                refuse("solver", format!("{:?}", self.solver), "\"auto\"")
            }
            _ => Ok(()),
        }
    }
}
