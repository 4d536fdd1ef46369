//! `outlast reproduce`: the papers' tables and figures, made again.

use crate::args::reproduce::ReproduceArgs;
use crate::failure::Failure;
use crate::output::{self, seconds};
use crate::watch::Watch;
use outlast_reproduce::{DataFolder, Experiment, Finished, Outcome, Settings, registry, summary, units};
use serde_json::{Value, json};
use std::time::Instant;

/// Runs the command.
pub fn run(request: &ReproduceArgs) -> Result<(), Failure> {
    if request.names.iter().any(|name| name == "list") {
        return list(request);
    }
    let experiments = named(&request.names)?;
    if let Some(folder) = request.data.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(Failure::Usage(format!("--data {}: there is no such folder", folder.display())));
    }
    let settings = Settings {
        reps: request.reps.map(|reps| reps as usize),
        seed: request.seed,
        data: DataFolder::new(request.data.clone()),
        threads: request.threads.map_or_else(|| Settings::into_folder("").threads, |threads| threads as usize),
        out: request.out.clone(),
        small: false,
    };
    let (mut objects, mut skipped) = (Vec::new(), Vec::new());
    for (at, &experiment) in experiments.iter().enumerate() {
        let place = place(&experiments, at, &settings);
        let object = one(experiment, &settings, request, &place)?;
        if object["status"] == "skipped" {
            skipped.push(experiment.about().name);
        }
        objects.push(object);
        // after each, so that what is there is summed up whenever it is looked at
        summary(&settings.out, &skipped)?;
    }
    if request.show.json {
        output::print_json(
            &json!({"command": "reproduce", "out": request.out.to_string_lossy(), "experiments": objects}),
        )?;
    } else if !request.show.quiet {
        output::print(&format!("results: {}\n", request.out.display()))?;
    }
    Ok(())
}

/// Where an experiment stands among several, and how long all that are left take by their listed costs.
fn place(experiments: &[&dyn Experiment], at: usize, settings: &Settings) -> String {
    if experiments.len() == 1 {
        return String::new();
    }
    let cost = |experiment: &&dyn Experiment| cost(*experiment, settings.reps) / settings.threads.max(1) as f64;
    let left: f64 = experiments[at..].iter().map(cost).sum();
    format!(" ({} of {}, about {} for all that are left)", at + 1, experiments.len(), duration(left))
}

/// Seconds of one core, as listed.
fn cost(experiment: &dyn Experiment, reps: Option<usize>) -> f64 {
    let about = experiment.about();
    reps.unwrap_or(about.reps.count()) as f64 * about.seconds
}

/// Runs one experiment and says how it went.
fn one(
    experiment: &dyn Experiment,
    settings: &Settings,
    request: &ReproduceArgs,
    place: &str,
) -> Result<Value, Failure> {
    let name = experiment.about().name;
    let watch = Watch::start(request.show.quiet);
    watch.say(format!("{name}{place}"));
    watch.count(units(experiment, settings));
    let start = Instant::now();
    let tell = |message: &str| watch.tell(message);
    // what was stopped knows how far it got, which says more than that it was stopped
    let outcome = watch.run(None, |_| true, |control| outlast_reproduce::run(experiment, settings, control, &tell))?;
    drop(watch);
    let took = start.elapsed().as_secs_f64();
    match outcome {
        Outcome::Finished(finished) => {
            if !request.show.json && !request.show.quiet {
                let score = finished.report.score();
                output::print(&format!("{name}: {score} ({})\n", seconds(took)))?;
            }
            Ok(finished_json(name, &finished, took))
        }
        Outcome::Skipped => Ok(json!({"name": name, "status": "skipped"})),
        Outcome::Stopped { done, of } => Err(Failure::Stopped(format!(
            "{done} of {of} units of work of {name} are kept in {}: the same command goes on from there",
            settings.out.display()
        ))),
    }
}

fn finished_json(name: &str, finished: &Finished, took: f64) -> Value {
    let report = &finished.report;
    let files: Vec<_> = finished.files.iter().map(|file| file.to_string_lossy()).collect();
    json!({
        "name": name,
        "status": "finished",
        "agree": report.count("agrees"),
        "differ": report.count("differs"),
        "hold": report.count("holds"),
        "fail": report.count("fails"),
        "open": report.count("open"),
        "ran": finished.ran,
        "seconds": took,
        "files": files,
    })
}

/// The experiments of some names, in the order of the list, each once.
fn named(names: &[String]) -> Result<Vec<&'static dyn Experiment>, Failure> {
    if let Some(unknown) = names.iter().find(|name| *name != "all" && registry::find(name).is_none()) {
        let known = registry::ALL.iter().map(|experiment| experiment.about().name).collect::<Vec<_>>().join(", ");
        let problem = format!("there is no experiment {}; there are {known}", outlast::error::quoted(unknown));
        return Err(Failure::Usage(problem));
    }
    let asked =
        |experiment: &&dyn Experiment| names.iter().any(|name| name == "all" || name == experiment.about().name);
    Ok(registry::ALL.iter().copied().filter(asked).collect())
}

fn list(request: &ReproduceArgs) -> Result<(), Failure> {
    if request.names.len() > 1 {
        return Err(Failure::Usage("list stands alone".to_string()));
    }
    let cost = |experiment: &dyn Experiment| cost(experiment, None);
    if request.show.json {
        let one = |experiment: &&dyn Experiment| {
            let about = experiment.about();
            let mut sets: Vec<&str> = experiment.settings().iter().flat_map(|s| s.data).map(|set| set.name).collect();
            sets.sort_unstable();
            sets.dedup();
            json!({"name": about.name, "paper": about.paper.short, "what": about.what, "replications": about.reps.count(),
                "paper_replications": about.reps.printed(),
                "core_seconds_each": about.seconds, "core_seconds": cost(*experiment), "data": sets})
        };
        let experiments: Vec<Value> = registry::ALL.iter().map(one).collect();
        return output::print_json(&json!({"command": "reproduce", "experiments": experiments}));
    }
    let rows: Vec<Vec<String>> = registry::ALL
        .iter()
        .map(|experiment| {
            let about = experiment.about();
            vec![
                about.name.to_string(),
                about.reps.count().to_string(),
                duration(cost(*experiment)),
                about.paper.short.to_string(),
                about.what.to_string(),
            ]
        })
        .collect();
    let total: f64 = registry::ALL.iter().map(|experiment| cost(*experiment)).sum();
    let text = listing(&rows) + &format!("\nThe times are those of one core; all together {}.\n", duration(total));
    output::print(&text)
}

/// Columns of text, all to the left but the numbers.
fn listing(rows: &[Vec<String>]) -> String {
    let header = ["name", "replications", "time", "paper", "what"];
    let width = |column: usize| {
        let lengths = rows.iter().map(|row| row[column].len());
        lengths.chain([header[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            1 | 2 => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_string() + "\n"
    };
    std::iter::once(line(header.to_vec()))
        .chain(rows.iter().map(|row| line(row.iter().map(String::as_str).collect())))
        .collect()
}

fn duration(value: f64) -> String {
    match value {
        value if value < 100.0 => seconds(value),
        value => format!("{:.0} min", value / 60.0),
    }
}
