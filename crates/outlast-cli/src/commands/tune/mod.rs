//! `outlast tune`: parameters chosen by data, then the model.

mod grid;
mod lq;
mod show;

use super::fit::{self, Fitted};
use super::labels_of;
use crate::args::tune::TuneArgs;
use crate::destination;
use crate::failure::Failure;
use crate::output;
use crate::watch::Watch;
use outlast::error::quoted;
use outlast::select::tune::Judge;
use outlast::{Control, FitRequest, Labels, Model, io};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What was found, in every form it is asked for.
struct Found {
    fitted: Fitted,
    /// What to say of a search that did not go through.
    cut: Option<String>,
    text: String,
    json: Value,
    /// CSV.
    grid: Vec<u8>,
    /// SVG.
    picture: String,
}

/// The data, and those to choose by, if they are other ones.
struct Read {
    table: io::Table,
    tuning: Option<io::Table>,
    seconds: f64,
}

impl Read {
    fn new(request: &TuneArgs, watch: &Watch) -> Result<Read, Failure> {
        let start = Instant::now();
        watch.say(format!("reading {}", request.data.display()));
        let options = request.input.options(request.weight_column.as_deref());
        let table = io::read_table(&request.data, &options)?;
        let tuning = request.tuning.as_ref().map(|path| io::read_table(path, &options)).transpose()?;
        if let Some(tuning) = &tuning {
            check_columns(&table, tuning)?;
        }
        Ok(Read { table, tuning, seconds: start.elapsed().as_secs_f64() })
    }

    fn labels(&self) -> Result<&Labels, Failure> {
        labels_of(&self.table)
    }

    fn tuning(&self) -> Result<Option<(&io::Table, &Labels)>, Failure> {
        self.tuning.as_ref().map(|table| labels_of(table).map(|labels| (table, labels))).transpose()
    }

    fn request<'a>(&'a self, control: Control<'a>) -> FitRequest<'a> {
        let feature_names = self.table.feature_names.as_deref();
        FitRequest { sample_weight: self.table.weights.as_deref(), feature_names, start: None, control }
    }

    fn fitted(self, model: Model, fit_seconds: f64) -> Fitted {
        let files = vec![self.table.source.clone()];
        Fitted { files, table: self.table, model, read_seconds: self.seconds, fit_seconds }
    }
}

/// What the points are judged by, unless there is a set of its own.
fn judge(request: &TuneArgs) -> Judge {
    request.holdout.map_or(Judge::Folds(request.cv), Judge::HoldOut)
}

/// Runs the command.
pub fn run(request: &TuneArgs) -> Result<(), Failure> {
    check(request)?;
    let files = [
        ("--output", request.output.as_deref()),
        ("--grid", request.grid.as_deref()),
        ("--plot", request.plot.as_deref()),
    ];
    let inputs: Vec<&Path> = std::iter::once(&request.data).chain(&request.tuning).map(PathBuf::as_path).collect();
    let taken = destination::check(&files, &inputs, request.show.json)?;
    destination::check_no_terminal("--output", request.output.as_deref())?;
    let watch = Watch::start(request.show.quiet);
    let found = match request.method.method.as_str() {
        "lq" => lq::search(request, &watch)?,
        _ => grid::search(request, &watch)?,
    };
    watch.say("writing");
    watch.write(|| -> Result<(), Failure> {
        if let Some(path) = &request.output {
            found.fitted.write_model(path)?;
        }
        if let Some(path) = &request.grid {
            destination::write(path, |out| out.write_all(&found.grid))?;
        }
        if let Some(path) = &request.plot {
            destination::write(path, |out| out.write_all(found.picture.as_bytes()))?;
        }
        Ok(())
    })?;
    drop(watch);
    let warning = found.cut.clone().or_else(|| fit::warning(&found.fitted.model));
    fit::tell_with(&found.fitted, warning, request.show.quiet);
    if request.show.json {
        output::print_json(&found.json)
    } else if request.show.quiet {
        Ok(())
    } else if taken {
        output::tell(found.text.trim_end());
        Ok(())
    } else {
        output::print(&found.text)
    }
}

/// What can be refused before any file is read.
fn check(request: &TuneArgs) -> Result<(), Failure> {
    let usage = |problem: String| Err(Failure::Usage(problem));
    let method = request.method.method.as_str();
    if matches!(method, "centroid" | "loo") {
        return usage(format!("--method {method}: tune chooses for truncated, capped, reh, rod and lq"));
    }
    let singles = [("--c", request.method.c.is_some(), "--cs"), ("--q", request.method.q.is_some(), "--qs")];
    for (option, given, instead) in singles {
        if given {
            return usage(format!("{option} is what tune chooses; give the values to try with {instead}"));
        }
    }
    match method {
        "lq" => lq::check(request)?,
        _ => grid::check(request)?,
    }
    request.method.check(&request.data)
}

/// Columns go by position, so that their names, where both files have any, must be the same.
fn check_columns(data: &io::Table, tuning: &io::Table) -> Result<(), Failure> {
    let (Some(names), Some(others)) = (&data.feature_names, &tuning.feature_names) else { return Ok(()) };
    match names.iter().zip(others).position(|(name, other)| name != other) {
        None => Ok(()),
        Some(at) => Err(Failure::Usage(format!(
            "--tuning {}: feature {} is {}, but {} in {}; both files must have the same columns in the same order",
            tuning.source.display(),
            at + 1,
            quoted(&others[at]),
            quoted(&names[at]),
            data.source.display()
        ))),
    }
}

fn column_name(fitted: &Fitted, column: usize) -> Value {
    match &fitted.table.feature_names {
        Some(names) => json!(names[column]),
        None => json!(column + 1),
    }
}
