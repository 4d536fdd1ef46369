//! Solutions for a list of C and a list of q on the same rows, each of which helps the others.
//!
//! ```text
//! q = 1     C rising: point, multipliers and working set of one C are the start of the next
//! q < 1     C falling, q falling: followed are the solutions of the next larger C and of the next larger q, and the l1 solutions
//!           of this C and of about 3 and 10 times it (rates of 1/3 and 1/10), all known already; those that did not change with C
//!           are left out
//! q > 1     each C by itself; two classes with q = 2 start from the C before
//! ```
//!
//! *Screening.* A column takes part once its bound |x_c'V| <= rate fails by more than the accuracy, and is looked at again at every
//! certificate: what is left out is checked afterwards, so that nothing is lost (the gap counts all columns). For q < 1 columns at 0
//! stay there by the bound itself, and the work is done on copies of the others.

use super::super::proximal::Weighted;
use super::super::{Options, Solution, Status};
use super::portfolio::{self, Start};
use super::reweight::Effort;
use super::{smooth, square};
use crate::control::Control;
use crate::error::Result;
use crate::problem::LqProblem;

/// How many times C the l1 solutions are taken from, unless they have too many columns.
const STRONGER: [f64; 3] = [1.0, 3.0, 10.0];

/// Relative difference of coefficients that are alike.
const ALIKE: f64 = 0.05;

/// What is wanted.
#[derive(Debug, Clone)]
pub struct Path<'a> {
    /// The values of C, in any order.
    pub cs: &'a [f64],
    /// The values of q, in any order.
    pub qs: &'a [f64],
    /// Whether columns are left out until they are needed; only a test has reason to say no.
    pub screening: bool,
}

impl Path<'_> {
    /// Solves for every q and C: solutions by q, then by C, in the order given. The caps of `problem` are those of C = 1.
    pub fn solve(&self, problem: &LqProblem, options: &Options, control: &Control) -> Result<Vec<Vec<Solution>>> {
        let mut rising: Vec<usize> = (0..self.cs.len()).collect();
        rising.sort_by(|&a, &b| self.cs[a].total_cmp(&self.cs[b]));
        let mut falling: Vec<usize> = (0..self.qs.len()).collect();
        falling.sort_by(|&a, &b| self.qs[b].total_cmp(&self.qs[a]));
        let needed = self.qs.iter().any(|q| *q <= 1.0);
        let absolute = if needed { self.absolute(problem, &rising, options, control)? } else { Vec::new() };
        let mut all: Vec<Vec<Solution>> = vec![Vec::new(); self.qs.len()];
        let mut before: Option<usize> = None;
        for at in falling {
            let q = self.qs[at];
            let scaled = LqProblem { q, ..*problem };
            all[at] = match q {
                1.0 => absolute.clone(),
                q if q > 1.0 => self.smooth(&scaled, &rising, options, control)?,
                _ => {
                    let above = before.map(|before| &all[before][..]).unwrap_or(&absolute);
                    self.reweighted(&scaled, &rising, &absolute, above, options, control)?
                }
            };
            if q < 1.0 {
                before = Some(at);
            }
        }
        Ok(all)
    }

    /// q = 1, in the order of the list.
    fn absolute(
        &self,
        problem: &LqProblem,
        rising: &[usize],
        options: &Options,
        control: &Control,
    ) -> Result<Vec<Solution>> {
        let mut engine = Weighted::new(&LqProblem { q: 1.0, ..*problem }, options.max_iterations);
        engine.screen(self.screening);
        let mut found: Vec<Option<Solution>> = vec![None; self.cs.len()];
        let mut last = 1.0;
        for &at in rising {
            control.check()?;
            engine.scale_caps(self.cs[at] / last);
            last = self.cs[at];
            let step = engine.minimize(options.tolerance, control)?;
            let caps = caps_at(problem, last);
            found[at] = Some(super::solution(&LqProblem { q: 1.0, caps: &caps, ..*problem }, &engine, step));
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// q > 1
    fn smooth(
        &self,
        problem: &LqProblem,
        rising: &[usize],
        options: &Options,
        control: &Control,
    ) -> Result<Vec<Solution>> {
        let mut found: Vec<Option<Solution>> = vec![None; self.cs.len()];
        let mut options = options.clone();
        for &at in rising {
            control.check()?;
            let caps = caps_at(problem, self.cs[at]);
            let problem = LqProblem { caps: &caps, ..*problem };
            let solution = if problem.q == 2.0 && problem.functions == 1 {
                square(&problem, &options, control)?
            } else {
                smooth::solve(&problem, &options, control)?
            };
            options.start = Some(super::super::Start {
                expansion: solution.expansion.clone(),
                weights: solution.weights.clone(),
                intercepts: solution.intercepts.clone(),
            });
            found[at] = Some(solution);
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// q < 1
    fn reweighted(
        &self,
        problem: &LqProblem,
        rising: &[usize],
        absolute: &[Solution],
        above: &[Solution],
        options: &Options,
        control: &Control,
    ) -> Result<Vec<Solution>> {
        let (rough, fine) = portfolio::efforts(options);
        // neighbours are close: what a step gains below the tolerance is left
        let rough = Effort { tolerance: rough.tolerance.max(1e-3), loose: 1e-2, decrease: 1e-3, ..rough };
        let fine = Effort { decrease: fine.decrease.max(0.1 * options.tolerance), ..fine };
        let mut found: Vec<Option<Solution>> = vec![None; self.cs.len()];
        let mut larger: Option<usize> = None;
        for (place, &at) in rising.iter().enumerate().rev() {
            control.check()?;
            let caps = caps_at(problem, self.cs[at]);
            let problem = LqProblem { caps: &caps, ..*problem };
            // a source that is as it was for the larger C leads where it led then
            let next = |place: usize| rising.get(place + 1).copied();
            let moved = |list: &[Solution], place: usize| {
                next(place).is_none_or(|next| !alike(&list[rising[place]], &list[next]))
            };
            let mut sources: Vec<(&Solution, f64)> = Vec::new();
            if moved(above, place) {
                sources.push((&above[at], 1.0));
            }
            for factor in STRONGER {
                let reached = |&other: &usize| self.cs[rising[other]] >= 0.999 * factor * self.cs[at];
                let Some(other) = (place..rising.len()).find(reached) else { continue };
                let source = &absolute[rising[other]];
                let weights = source.weights.as_deref().unwrap_or(&[]);
                let sparse = portfolio::columns_used(&problem, weights) <= portfolio::most_columns(&problem);
                if sparse && moved(absolute, other) {
                    sources.push((source, self.cs[at] / self.cs[rising[other]]));
                }
            }
            let source = |larger: usize| Some((found[larger].as_ref()?, self.cs[at] / self.cs[larger]));
            sources.extend(larger.and_then(source));
            let mut starts: Vec<Start> = Vec::new();
            for (source, factor) in sources {
                let weights = source.weights.clone().unwrap_or_default();
                if starts.iter().all(|start| start.weights != weights) {
                    // multipliers grow with C, at their bounds in proportion
                    let expansion = source.expansion.iter().map(|v| v * factor).collect();
                    starts.push(Start { weights, intercepts: source.intercepts.clone(), expansion: Some(expansion) });
                }
            }
            starts.push(portfolio::nothing(&problem));
            let starts = portfolio::race(&problem, starts, &rough, control)?;
            let solution = match portfolio::best(&problem, starts, &rough, control)? {
                Some(best) => portfolio::polish(&problem, best, &fine, control)?,
                None => above[at].clone(),
            };
            let out_of_time = solution.status == Status::TimeLimit;
            found[at] = Some(solution);
            larger = Some(at);
            if out_of_time {
                // what is left is what the larger q found
                rising.iter().for_each(|&other| {
                    found[other].get_or_insert_with(|| {
                        let caps = caps_at(&problem, self.cs[other] / self.cs[at]);
                        let source = above[other].clone();
                        let weights = source.weights.as_deref().unwrap_or(&[]);
                        let objective = LqProblem { caps: &caps, ..problem }.objective(weights, &source.intercepts);
                        Solution { objective, trace: vec![objective], status: Status::TimeLimit, ..source }
                    });
                });
                break;
            }
        }
        Ok(found.into_iter().flatten().collect())
    }
}

/// Whether two solutions use the same coefficients, and these hardly differ.
fn alike(one: &Solution, other: &Solution) -> bool {
    let (a, b) = (one.weights.as_deref().unwrap_or(&[]), other.weights.as_deref().unwrap_or(&[]));
    a.iter().zip(b).all(|(a, b)| (a == b) || *a != 0.0 && *b != 0.0 && (a - b).abs() <= ALIKE * a.abs())
}

/// The caps of another C.
fn caps_at(problem: &LqProblem, c: f64) -> Vec<f64> {
    problem.caps.iter().map(|cap| (c * cap).min(1e200)).collect()
}
