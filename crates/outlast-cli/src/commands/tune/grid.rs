//! `outlast tune` for the methods that share one search.

use super::{Found, Read, judge, show};
use crate::args::tune::TuneArgs;
use crate::failure::Failure;
use crate::watch::Watch;
use outlast::select::tune::Rule;
use outlast::{Status, Tune, Tuned};
use std::time::Instant;

/// Lists that only some methods have.
const OWN: [(&str, &[&str]); 7] = [
    ("--truncations", &["truncated"]),
    ("--penalties", &["truncated"]),
    ("--qs", &["truncated"]),
    ("--ps", &["capped"]),
    ("--caps", &["capped"]),
    ("--cap-fractions", &["capped"]),
    ("--inlier-fractions", &["rod"]),
];

/// Refuses lists that the method does not know.
pub fn check(request: &TuneArgs) -> Result<(), Failure> {
    let method = request.method.method.as_str();
    for (option, ..) in request.lists() {
        if let Some((_, methods)) = OWN.iter().find(|(own, methods)| *own == option && !methods.contains(&method)) {
            let methods = methods.join(", ");
            return Err(Failure::Usage(format!("{option} is no option of --method {method}, but of {methods}")));
        }
    }
    Ok(())
}

/// Searches.
pub fn search(request: &TuneArgs, watch: &Watch) -> Result<Found, Failure> {
    let read = Read::new(request, watch)?;
    let (labels, tuning) = (read.labels()?, read.tuning()?);
    let tune = prepared(request, labels)?;
    watch.say("tuning");
    watch.count(if tuning.is_some() { tune.steps(1) } else { tune.steps(read.table.rows()) });
    let start = Instant::now();
    let best_so_far = |tuned: &Tuned| tuned.status == Status::Interrupted;
    let tuned = watch.run(request.method.time_limit, best_so_far, |control| {
        let by = tuning.map(|(table, labels)| (table.design(), labels));
        tune.fit_labels(read.table.design(), labels, by, &read.request(control))
    })?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(show::found(request, read.fitted(tuned.model.clone(), seconds), &tuned, None))
}

fn prepared(request: &TuneArgs, labels: &outlast::Labels) -> Result<Tune, Failure> {
    let tune = Tune::of(request.method.tunable(labels)?)
        .standardize(!request.no_standardize)
        .rule(Rule::from_name(&request.rule)?)
        .early_stop(!request.no_early_stopping)
        .halving(request.halving)
        .nested(request.nested)
        .exact(request.exact)
        .judge(judge(request));
    let tune = request.fill(tune);
    tune.check()?;
    Ok(tune)
}
