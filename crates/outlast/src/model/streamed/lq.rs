//! The L_q machine.

use super::super::{CostForm, Estimator, Lq, Model};
use super::truncated::PILOT;
use super::{Asked, First, StreamRequest, check_request, in_memory, prepare, refuse, start_of};
use crate::data::FeatureMap;
use crate::error::Result;
use crate::memory::Lean;
use crate::problem::{Loss, Penalty};
use crate::solver::stream::{self, Passes, Separable, Shape, Task};
use crate::solver::{Options, lq};

impl Lq {
    /// [`Estimator::fit_passes`] of this method.
    pub(in crate::model) fn stream(&self, rows: &mut dyn Passes, request: &StreamRequest) -> Result<Model> {
        self.check()?;
        self.check_streamed()?;
        check_request(rows, request)?;
        let _lean = Lean::new();
        let cost = self.costs_of(request.classes)?;
        self.in_pool(|| self.streamed(rows, request, cost))
    }

    fn streamed(&self, rows: &mut dyn Passes, request: &StreamRequest, cost: Option<Vec<f64>>) -> Result<Model> {
        let k = request.classes.len();
        let prepared = match prepare(&self.common, rows, request, false)? {
            First::Few(few) => return in_memory(self, few, rows, request),
            First::Many(prepared) => prepared,
        };
        let factor = |own: usize, other: usize| cost.as_ref().map_or(1.0, |cost| cost[own * k + other]);
        let terms = |own: usize| -> Vec<(u32, f64)> {
            let cap = prepared.caps[own];
            if k == 2 {
                return vec![(own as u32, cap * factor(own, 1 - own))];
            }
            (0..k).filter(|other| *other != own).map(|other| (other as u32, cap * factor(own, other))).collect()
        };
        let mut task = Task {
            classes: k,
            terms: (0..k).map(terms).collect(),
            shape: if k == 2 { Shape::Margin } else { Shape::Apart },
            loss: Loss::hinge(),
            penalty: Some(Separable { q: self.q, rates: vec![1.0; rows.cols() * if k == 2 { 1 } else { k }] }),
            starts: start_of(prepared.on_sample(self, request)?),
            intercept: self.common.fit_intercept,
            memory: request.memory,
            sums: request.sums,
        };
        if self.q < 1.0 {
            // zeros are for good: a start that has fewer of them
            let convex = Lq { q: 1.0, ..self.clone() };
            task.starts.extend(start_of(prepared.on_sample(&convex, request)?));
        }
        let options: Options = self.common.options(self.common.tol, None);
        // where zeros are for good, another start that has none
        let pilot = match self.q < 1.0 && !task.is_wide(rows.cols()) {
            true => {
                let squared = Task { penalty: None, starts: Vec::new(), ..task.clone() };
                let options = Options { tolerance: PILOT, ..options.clone() };
                Some(stream::solve(rows, &prepared.survey, &squared, &options, &request.control)?)
            }
            false => None,
        };
        task.starts.extend(pilot.as_ref().map(|pilot| pilot.start(rows.shift())));
        let mut found = stream::solve(rows, &prepared.survey, &task, &options, &request.control)?;
        found.passes += pilot.map_or(0, |pilot| pilot.passes - prepared.survey.passes);
        let mut asked = Asked::of("lq", Loss::hinge().base().name(), Penalty::Lq.name(), &self.solver);
        (asked.summary.cost, asked.summary.cost_form) = (cost, CostForm::Direct.name().to_string());
        asked.details.set("q", self.q);
        Ok(prepared.model(&self.common, found, asked, rows.cols(), request))
    }

    /// As of [`Truncated`].
    pub(in crate::model) fn check_streamed(&self) -> Result<()> {
        match () {
            _ if self.feature_map != FeatureMap::Identity => {
                refuse("feature_map", format!("{:?}", self.feature_map.name()), "\"identity\"")
            }
            _ if self.solver == lq::LQA => refuse("solver", format!("{:?}", self.solver), "\"auto\""),
            _ => Ok(()),
        }
    }
}
