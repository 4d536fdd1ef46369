//! The capped machine.

use super::super::{Cap, Capped, Estimator, Model, fit};
use super::{Asked, First, StreamRequest, check_request, in_memory, prepare, refuse, start_of};
use crate::error::Result;
use crate::memory::Lean;
use crate::problem::{Kernel, Loss, Penalty};
use crate::solver::stream::{self, Passes, Shape, Task};
use crate::solver::{Options, reweighted};

impl Capped {
    /// [`Estimator::fit_passes`] of this method.
    pub(in crate::model) fn stream(&self, rows: &mut dyn Passes, request: &StreamRequest) -> Result<Model> {
        self.check()?;
        self.check_streamed()?;
        check_request(rows, request)?;
        let _lean = Lean::new();
        fit::in_pool(self.common.threads, || self.streamed(rows, request))
    }

    fn streamed(&self, rows: &mut dyn Passes, request: &StreamRequest) -> Result<Model> {
        let k = request.classes.len();
        let prepared = match prepare(&self.common, rows, request, false)? {
            First::Few(few) => return in_memory(self, few, rows, request),
            First::Many(prepared) => prepared,
        };
        let start = prepared.on_sample(self, request)?;
        // a cap by a rule is the sample's
        let told = start.summary.details.get("cap");
        let cap = match self.cap {
            Cap::At(cap) => cap,
            Cap::Auto | Cap::CrossValidation => told.unwrap_or(f64::INFINITY),
        };
        let mut asked = Asked::of("capped", &self.loss, Penalty::L2.name(), &self.solver);
        asked.details.set("power", self.power);
        if cap.is_finite() {
            asked.details.set("cap", cap);
        }
        let share = start.summary.details.get("cap_fraction");
        match self.cap {
            Cap::Auto => asked.details.set("cap_fraction", self.cap_fraction),
            Cap::At(_) => asked.details.set("cap_fraction_unused", self.cap_fraction),
            Cap::CrossValidation => {
                asked.details.set("cap_fraction", share.unwrap_or(self.cap_fraction));
                asked.details.set("cap_fraction_unused", self.cap_fraction);
            }
        }
        // one residual to the power 1 is the hinge, and its cap a truncation
        let (shape, loss) = match k == 2 && self.power == 1.0 && cap >= 1.0 {
            true if cap.is_finite() => (Shape::Margin, Loss::hinge().truncated_at(1.0 - cap)?),
            true => (Shape::Margin, Loss::hinge()),
            false => (Shape::Capped { power: self.power, cap }, Loss::hinge()),
        };
        let mut task = Task {
            classes: k,
            terms: (0..k).map(|class| vec![(class as u32, prepared.caps[class])]).collect(),
            shape,
            loss,
            penalty: None,
            starts: start_of(start),
            intercept: self.common.fit_intercept,
            memory: request.memory,
            sums: request.sums,
        };
        if cap.is_finite() && shape != Shape::Margin {
            // the cap decides which rows count, and so where a descent ends: another one begins where all of them do
            let uncapped = Capped { cap: Cap::At(f64::INFINITY), ..self.clone() };
            task.starts.extend(start_of(prepared.on_sample(&uncapped, request)?));
        }
        let options: Options = self.common.options(self.common.tol, None);
        let found = stream::solve(rows, &prepared.survey, &task, &options, &request.control)?;
        Ok(prepared.model(&self.common, found, asked, rows.cols(), request))
    }

    /// As of [`Truncated`].
    pub(in crate::model) fn check_streamed(&self) -> Result<()> {
        match () {
            _ if !matches!(self.common.kernel, Kernel::Linear) => {
                refuse("kernel", format!("{:?}", self.common.kernel.name()), "\"linear\"")
            }
            _ if self.loss != "lp" => refuse("loss", format!("{:?}", self.loss), "\"lp\""),
            _ if self.solver != reweighted::NAMES[0] => refuse("solver", format!("{:?}", self.solver), "\"exact\""),
            _ => Ok(()),
        }
    }
}
