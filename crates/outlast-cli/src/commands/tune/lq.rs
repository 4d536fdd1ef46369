//! `outlast tune --method lq`: C and q along paths.

use super::show::Selection;
use super::{Found, Read, judge, show};
use crate::args::tune::{TuneArgs, Values};
use crate::failure::Failure;
use crate::watch::Watch;
use outlast::select::Cs;
use outlast::select::tune::Rule;
use outlast::{Labels, LqChoice, LqSearch, Status};
use std::time::Instant;

/// Refuses what only other methods know.
pub fn check(request: &TuneArgs) -> Result<(), Failure> {
    let usage = |problem: String| Err(Failure::Usage(problem));
    if let Some((option, ..)) = request.lists().into_iter().find(|(option, ..)| *option != "--qs") {
        return usage(format!("{option} is no option of --method lq"));
    }
    let options = [
        ("--halving", request.halving),
        ("--exact", request.exact),
        ("--no-early-stopping", request.no_early_stopping),
        ("--solver", request.method.solver.is_some()),
    ];
    match options.iter().find(|(_, given)| *given) {
        Some((option, _)) => usage(format!("{option} is no option of tune --method lq")),
        None => Ok(()),
    }
}

/// Searches.
pub fn search(request: &TuneArgs, watch: &Watch) -> Result<Found, Failure> {
    let read = Read::new(request, watch)?;
    let (labels, tuning) = (read.labels()?, read.tuning()?);
    let search = prepared(request, labels)?;
    watch.say("tuning");
    watch.count(search.steps(read.table.rows(), tuning.is_some()));
    let start = Instant::now();
    let best_so_far = |choice: &LqChoice| choice.tuned.status == Status::Interrupted;
    let choice = watch.run(request.method.time_limit, best_so_far, |control| {
        let by = tuning.map(|(table, labels)| (table.design(), labels));
        search.fit_labels(read.table.design(), labels, by, &read.request(control))
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let LqChoice { tuned, path, stability } = choice;
    let selection = Selection { path, stability };
    Ok(show::found(request, read.fitted(tuned.model.clone(), seconds), &tuned, Some(&selection)))
}

fn prepared(request: &TuneArgs, labels: &Labels) -> Result<LqSearch, Failure> {
    let search = LqSearch {
        base: request.method.lq(labels)?,
        judge: judge(request),
        standardize: !request.no_standardize,
        rule: Rule::from_name(&request.rule)?,
        nested: request.nested,
        ..LqSearch::default()
    };
    let cs = match &request.cs {
        Some(Values::Given(cs)) => Cs::Given(cs.clone()),
        Some(Values::Count(count)) => Cs::Count(*count),
        None => search.cs.clone(),
    };
    let qs = request.qs.clone().unwrap_or_else(|| search.qs.clone());
    let search = LqSearch { cs, qs, ..search };
    search.check()?;
    Ok(search)
}
