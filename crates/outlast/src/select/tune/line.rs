//! The points of a grid that are fitted one after the other on the same rows, each from its neighbour.
//!
//! A line has one kernel, and all values of C and of what eases a fit: with the truncated loss, at each C first the ordinary support
//! vector machine, or the lowest truncation, then the others from there; the next C begins where the last one began. What is
//! decided about the rows held out is computed for the whole line at once, so that their kernel values are needed once. Kernel rows go
//! from fit to fit along the line, and from split to split where columns stay as they are: each is computed once for all.

use super::method::{self, Tunable};
use super::part::{Labelled, Part};
use super::score::Payoff;
use super::{Axis, Setting};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::model::{FitRequest, Function, Model, Rows};
use crate::problem::KernelFunction;
use crate::solver::kernel::{KernelStore, SharedRows};
use crate::solver::tiles;

/// Points in the order in which they are fitted.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub cells: Vec<usize>,
}

/// What a line of points lost on the rows held out of a split.
pub(super) struct Judged {
    pub cell: usize,
    /// By row: 1 for a wrong decision, or what it costs, or minus what it is worth.
    pub losses: Vec<f64>,
}

/// Groups the points: those that differ only in C and in what eases a fit are one line.
pub(super) fn lines(method: &dyn Tunable, axes: &[Axis], cells: &[Vec<Setting>]) -> Vec<Line> {
    let eases = |at: usize, value: &Setting| method.ease(axes[at].name, value);
    let is_shared = |at: usize| axes[at].name == "C" || eases(at, &axes[at].values[0]).is_some();
    let key = |cell: &[Setting]| -> Vec<String> {
        (0..axes.len()).filter(|&at| !is_shared(at)).map(|at| cell[at].to_string()).collect()
    };
    let place = |cell: &[Setting]| -> Vec<f64> {
        let c = (0..axes.len()).filter(|&at| axes[at].name == "C").filter_map(|at| cell[at].number());
        let ease = (0..axes.len()).filter_map(|at| eases(at, &cell[at]));
        c.chain(ease).collect()
    };
    let mut lines: Vec<(Vec<String>, Line)> = Vec::new();
    for (at, cell) in cells.iter().enumerate() {
        let key = key(cell);
        match lines.iter_mut().find(|(other, _)| *other == key) {
            Some((_, line)) => line.cells.push(at),
            None => lines.push((key, Line { cells: vec![at] })),
        }
    }
    let order = |a: &usize, b: &usize| {
        let (a, b) = (place(&cells[*a]), place(&cells[*b]));
        a.iter().zip(&b).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    };
    let sorted = |mut line: Line| {
        line.cells.sort_by(order);
        line
    };
    lines.into_iter().map(|(_, line)| sorted(line)).collect()
}

/// Everything the fits of a line need.
pub(super) struct Runner<'a> {
    pub method: &'a dyn Tunable,
    pub axes: &'a [Axis],
    pub cells: &'a [Vec<Setting>],
    pub payoff: &'a Payoff,
    /// Whether every fit is made as a single estimator makes it.
    pub exact: bool,
}

impl Runner<'_> {
    /// The method at a point.
    pub fn at(&self, cell: usize) -> Result<Box<dyn Tunable>> {
        let mut method = self.method.copied();
        for (axis, value) in self.axes.iter().zip(&self.cells[cell]) {
            method::set(method.as_mut(), axis.name, value)?;
        }
        Ok(method)
    }

    /// Kernel rows of all the data, which the splits of a line can share where its kernel does not depend on them.
    pub fn shared_rows(&self, line: &Line, data: Labelled, bytes: usize) -> Result<Option<SharedRows>> {
        let method = self.at(line.cells[0])?;
        let kernel = &method.common().kernel;
        if self.exact || !kernel.has_given_width() {
            return Ok(None);
        }
        Ok(SharedRows::new(data.x, &kernel.resolve(data.x, data.labels, data.weights)?, bytes))
    }

    /// Fits and judges the points of a line that still count. Asked to stop, it returns those it is through with.
    pub fn run(
        &self,
        part: &Part,
        line: &Line,
        counts: &[bool],
        control: &Control,
        told: &(dyn Fn() + Sync),
        store: KernelStore,
    ) -> Result<Vec<Judged>> {
        let mut models: Vec<(usize, Model)> = Vec::new();
        // the fit that begins the current C, and that C
        let mut first: Option<(f64, Model)> = None;
        for &cell in line.cells.iter().filter(|&&cell| counts[cell]) {
            if control.out_of_time() || control.check().is_err() {
                break;
            }
            let mut method = self.at(cell)?;
            method.plain();
            method.common_mut().threads = None;
            let c = method.common().c;
            // a fit as by itself does not know its neighbours
            let start = first.as_ref().map(|(_, model)| model).filter(|_| !self.exact);
            let request = FitRequest { start, control: *control, ..part.train.request(&FitRequest::default()) };
            let x = part.train.rows.as_design();
            let fitted = match self.exact {
                true => method.fit_labels(x, &part.train.labels, &request),
                false => method.fit_roughly(x, &part.train.labels, &request, &store),
            };
            let model = match fitted {
                Err(Error::Interrupted) => break,
                fitted => fitted?,
            };
            if control.out_of_time() {
                break;
            }
            told();
            if first.as_ref().is_none_or(|(at, _)| *at != c) {
                first = Some((c, model.clone()));
            }
            models.push((cell, slim(model)));
        }
        self.judge(part, &models)
    }

    fn judge(&self, part: &Part, models: &[(usize, Model)]) -> Result<Vec<Judged>> {
        let together = match models.first() {
            Some((_, model)) if models.len() > 1 && matches!(model.predictor.function, Function::Kernel { .. }) => {
                Some(self.decide_together(part, models)?)
            }
            _ => None,
        };
        let judged = |(at, (cell, model)): (usize, &(usize, Model))| -> Result<Judged> {
            let decided = match &together {
                Some(decisions) => model.predictor.decide(&decisions[at]),
                None => model.predictor.predict_codes(part.held.as_design())?,
            };
            let losses = part.codes.iter().zip(&decided).map(|(&truth, &to)| self.payoff.loss(truth, to)).collect();
            Ok(Judged { cell: *cell, losses })
        };
        models.iter().enumerate().map(judged).collect()
    }

    /// Decision values of every model about the rows held out, with kernel values computed once.
    fn decide_together(&self, part: &Part, models: &[(usize, Model)]) -> Result<Vec<Vec<f64>>> {
        let n = part.train.labels.len();
        let m = models[0].1.predictor.functions();
        let mut used = vec![false; n];
        models.iter().for_each(|(_, model)| model.predictor.support.iter().for_each(|&row| used[row as usize] = true));
        let support: Vec<u32> = (0..n as u32).filter(|&row| used[row as usize]).collect();
        let mut place = vec![0; n];
        support.iter().enumerate().for_each(|(at, &row)| place[row as usize] = at);
        let width = models.len() * m;
        let mut coefficients = vec![0.0; support.len() * width];
        for (at, (_, model)) in models.iter().enumerate() {
            let rows = model.predictor.support.iter().zip(model.predictor.coefficients.chunks_exact(m));
            for (&row, values) in rows {
                coefficients[place[row as usize] * width + at * m..][..m].copy_from_slice(values);
            }
        }
        let kernel: &KernelFunction = &models[0].1.predictor.kernel;
        let rows = Rows::copy(part.train.rows.as_design(), &support)?;
        let values = tiles::expand(kernel, rows.as_design(), &coefficients, width, part.held.as_design());
        let of = |(at, (_, model)): (usize, &(usize, Model))| -> Vec<f64> {
            let row = |values: &[f64]| -> Vec<f64> {
                values[at * m..][..m].iter().zip(&model.predictor.intercepts).map(|(value, b)| value + b).collect()
            };
            values.chunks_exact(width).flat_map(row).collect()
        };
        Ok(models.iter().enumerate().map(of).collect())
    }
}

/// A model without what belongs to its training rows, and without copies of these where they are at hand.
fn slim(model: Model) -> Model {
    Model { training: None, ..model }
}
