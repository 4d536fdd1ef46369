//! Random small problems over every estimator, loss, penalty, kernel, weighting, payoff, form of the rows and number of threads. Each fit is
//! held against its objective written down once more, against the judges of `problem`, and, where it is convex, against Clarabel; those
//! of ablation against the minimum over all sets of outliers.
//!
//! `OUTLAST_DIFFERENTIAL` says how many (`make differential COUNT=5000`), `OUTLAST_DIFFERENTIAL_FROM` where the seeds begin;
//! with `OUTLAST_DIFFERENTIAL_SHOW` each problem is printed.

mod cases;
mod conic;
mod judge;

use cases::Case;
use judge::{Judge, Verdict};
use outlast::{FitRequest, Model, Result};
use std::collections::BTreeMap;
use std::time::Instant;

/// Problems in a plain run of the tests.
const FEW: u64 = 250;

/// How far an objective may lie from its definition, relatively.
const OBJECTIVE: f64 = 1e-7;
/// How far above Clarabel's, beyond the tolerance asked for; how far below.
const ABOVE: f64 = 1e-6;
const BELOW: f64 = 1e-6;
/// Objectives below this share of what all rows weigh are measured by that.
const NOTHING: f64 = 1e-3;
/// How much more than its method's median a fit may take, and what is never too long, in seconds.
const STALL: f64 = 2000.0;
const SHORT: f64 = 5.0;

/// Centroid by SMO on badly scaled columns; ROD with an intercept and an optimum of 0; LOO with kernel values of very different sizes, and
/// with multipliers that must become very large.
const FOUND: [u64; 6] = [22, 462, 452, 2006, 2162, 2192];

fn fitted(case: &Case) -> Result<Model> {
    let request = FitRequest { sample_weight: case.weights.as_deref(), ..FitRequest::default() };
    case.method.estimator().fit_labels(&*case.design(), &case.labels, &request)
}

/// What is wrong with a fit, in words.
fn complaints(model: &Model, verdict: &Verdict) -> Vec<String> {
    let summary = &model.summary;
    let unit = NOTHING * verdict.unit;
    let far = |a: f64, b: f64| (a - b) / (b.abs() + unit);
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            wrong.push(what);
        }
    };
    let off = (summary.objective - verdict.objective).abs();
    let allowed = OBJECTIVE * (verdict.objective.abs() + unit) + verdict.rounding;
    check(off <= allowed, format!("objective {} is {} by its definition", summary.objective, verdict.objective));
    check(summary.trace.windows(2).all(|pair| pair[1] <= pair[0]), format!("the objective rises: {:?}", summary.trace));
    let uncertified = summary.solver == "lqa" && summary.gap.is_nan();
    check(summary.gap >= 0.0 || uncertified, format!("gap {}", summary.gap));
    if let Some(least) = verdict.least {
        let above = far(verdict.objective, least);
        check(above >= -BELOW, format!("objective {} below the minimum {least}", verdict.objective));
        // the paper's algorithm has no gap, and ends by its own rule
        if summary.status.is_converged() && summary.solver_asked != "lqa" {
            check(above <= ABOVE + summary.tol, format!("objective {} above the minimum {least}", verdict.objective));
        }
    }
    // of a truncated fit the judge must guess which rows that lie on the edge count as cut off, and an infinite gap is a wrong guess
    if let (Some(gap), true) =
        (verdict.gap.filter(|gap| verdict.convex || gap.is_finite()), summary.status.is_converged())
    {
        check(gap >= -1e-9, format!("the judge's gap is {gap}"));
        check(gap <= summary.tol + 1e-9, format!("the judge's gap is {gap}, the tolerance {}", summary.tol));
    }
    if let Some(minimum) = verdict.minimum {
        let bound = summary.details.get("lower_bound").unwrap();
        check(far(bound, minimum) <= BELOW, format!("lower bound {bound} above the minimum {minimum}"));
        if summary.method == "reh" {
            check(far(summary.objective, minimum) >= -BELOW, format!("objective below the minimum {minimum}"));
        }
    }
    wrong
}

#[derive(Default)]
struct Group {
    fits: usize,
    unconverged: usize,
    convex: usize,
    judged: usize,
    /// Of ablation, with the minimum over all sets of outliers.
    enumerated: usize,
    /// Fits that Clarabel could not solve to its tolerance.
    unjudged: usize,
    worst_difference: f64,
    worst_gap: f64,
    seconds: Vec<(f64, u64)>,
}

impl Group {
    fn add(&mut self, model: &Model, verdict: &Verdict, seconds: f64, seed: u64) {
        self.fits += 1;
        self.enumerated += usize::from(verdict.minimum.is_some());
        self.unconverged += usize::from(!model.summary.status.is_converged());
        self.convex += usize::from(verdict.convex);
        self.unjudged += usize::from(verdict.convex && verdict.least.is_none());
        if let Some(least) = verdict.least.filter(|_| model.summary.status.is_converged()) {
            self.judged += 1;
            let unit = least.abs() + NOTHING * verdict.unit;
            self.worst_difference = self.worst_difference.max((verdict.objective - least).abs() / unit);
        }
        self.worst_gap = self
            .worst_gap
            .max(verdict.gap.filter(|gap| gap.is_finite() && model.summary.status.is_converged()).unwrap_or(0.0));
        self.seconds.push((seconds, seed));
    }

    /// The median, the longest time and whose it was.
    fn times(&mut self) -> (f64, f64, u64) {
        self.seconds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let longest = self.seconds[self.seconds.len() - 1];
        (self.seconds[self.seconds.len() / 2].0, longest.0, longest.1)
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} = {text:?}")))
}

#[test]
fn every_estimator_agrees_with_solvers_that_are_not_ours() {
    let count = number("OUTLAST_DIFFERENTIAL", FEW);
    let from = number("OUTLAST_DIFFERENTIAL_FROM", 0);
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let mut wrong = Vec::new();
    // what was found before is looked at every time
    for seed in (from..from + count).chain(FOUND) {
        let case = Case::new(seed);
        let began = Instant::now();
        let result = fitted(&case);
        let seconds = began.elapsed().as_secs_f64();
        match result {
            Err(error) => wrong.push(format!("{seed}: {}: {error}", case.method.group())),
            Ok(model) => {
                if std::env::var_os("OUTLAST_DIFFERENTIAL_SHOW").is_some() {
                    println!("{case:?}\n{:?}", model.summary);
                }
                let verdict = Judge::new(&case, &model).verdict();
                for complaint in complaints(&model, &verdict) {
                    let status = model.summary.status;
                    wrong.push(format!("{seed}: {} ({status}): {complaint}", case.method.group()));
                }
                groups.entry(case.method.group()).or_default().add(&model, &verdict, seconds, seed);
            }
        }
    }
    println!(
        "{:34} {:>6} {:>6} {:>11} {:>9} {:>9} {:>9} {:>9}",
        "", "fits", "open", "by Clarabel", "differ by", "gap", "median s", "worst s"
    );
    for (name, group) in &mut groups {
        let (median, longest, seed) = group.times();
        println!(
            "{name:34} {:6} {:6} {:5} of {:3} {:9.1e} {:9.1e} {median:9.1e} {longest:9.1e} (seed {seed})",
            group.fits, group.unconverged, group.judged, group.convex, group.worst_difference, group.worst_gap
        );
        if longest > (STALL * median).max(SHORT) {
            wrong.push(format!("{seed}: {name} took {longest} s, the median is {median} s"));
        }
    }
    let sum = |of: fn(&Group) -> usize| groups.values().map(of).sum::<usize>();
    let worst = |of: fn(&Group) -> f64| groups.values().map(of).fold(0.0, f64::max);
    println!(
        "{} fits, {} of ablation by enumeration, {} judged by Clarabel ({} it could not solve), worst relative difference {:.1e}, worst certified gap {:.1e}",
        sum(|g| g.fits),
        sum(|g| g.enumerated),
        sum(|g| g.judged),
        sum(|g| g.unjudged),
        worst(|g| g.worst_difference),
        worst(|g| g.worst_gap)
    );
    assert!(wrong.is_empty(), "{} complaints:\n{}", wrong.len(), wrong.join("\n"));
}
