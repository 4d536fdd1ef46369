//! `outlast fit`: learn a model, save it, say what was found.

use super::labels_of;
use crate::args::FitArgs;
use crate::destination;
use crate::failure::Failure;
use crate::output::{self, Pairs, class_json, class_text, classes_text, count, csv_field, listed, seconds, short};
use crate::watch::Watch;
use outlast::error::{quoted, shown};
use outlast::model::{Rows, StreamRequest};
use outlast::solver::stream::MOST_SENT;
use outlast::{Class, Dense, FitRequest, KernelFunction, Labels, Model, Penalty, Status, io};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Outliers shown in the summary.
const WORST: usize = 10;

/// Most selected variables named in the summary, and most characters they take.
const NAMED: usize = 20;
const NAMED_LENGTH: usize = 300;

/// Classes that may have a single row each.
const MOST_RARE_CLASSES: usize = 50;

/// Rows from which a model is expected to have learnt something of them.
const FEWEST_TO_LEARN: usize = 20;

/// What a fit found, ready to be shown.
pub struct Fitted {
    /// The files of data; `table.source` is the first.
    pub files: Vec<PathBuf>,
    pub table: io::Table,
    pub model: Model,
    pub read_seconds: f64,
    pub fit_seconds: f64,
}

/// Runs the command.
pub fn run(request: &FitArgs) -> Result<(), Failure> {
    let (model, outliers) = (request.output.as_deref(), request.outliers.as_deref());
    let inputs: Vec<&Path> = request.data.iter().map(PathBuf::as_path).collect();
    let taken = destination::check(&[("--output", model), ("--outliers", outliers)], &inputs, request.show.json)?;
    destination::check_no_terminal("--output", model)?;
    let first = only_one_unless_streamed(request)?;
    request.method.check(first)?;
    let watch = Watch::start(request.show.quiet);
    let fitted = fit(request, &watch)?;
    watch.say("writing");
    watch.write(|| -> Result<(), Failure> {
        if let Some(path) = model {
            fitted.write_model(path)?;
        }
        if let Some(path) = outliers {
            destination::write(path, |out| fitted.write_outliers(out))?;
        }
        Ok(())
    })?;
    drop(watch);
    tell(&fitted, request.show.quiet);
    if request.show.json {
        output::print_json(&fitted.json_for(request.output.as_deref()))
    } else if request.show.quiet {
        Ok(())
    } else if taken {
        output::tell(fitted.text(request).trim_end());
        Ok(())
    } else {
        output::print(&fitted.text(request))
    }
}

/// What the reader should know beside the result.
pub fn tell(fitted: &Fitted, quiet: bool) {
    tell_with(fitted, warning(&fitted.model), quiet);
}

/// The same with another warning about how the model came about.
pub fn tell_with(fitted: &Fitted, warning: Option<String>, quiet: bool) {
    if !quiet {
        fitted.table.notes.iter().for_each(|note| output::tell(&format!("note: {note}")));
    }
    if let Some(warning) = warning {
        output::tell(&format!("warning: {warning}"));
    }
    if let Some(warning) = fitted.learnt_nothing() {
        output::tell(&format!("warning: {warning}"));
    }
    if let Some(count) = fitted.model.summary.details.get("probability_unconverged").filter(|count| *count > 0.0) {
        output::tell(&format!("warning: {count} of the weighted fits behind the probabilities did not converge"));
    }
}

/// The first file, where the others are in place.
fn only_one_unless_streamed(request: &FitArgs) -> Result<&Path, Failure> {
    if request.stream.stream && request.outliers.is_some() {
        return Err(Failure::Usage("--outliers says something about every row; it does not go with --stream".into()));
    }
    match &request.data[..] {
        [first] => Ok(first),
        [first, ..] if request.stream.stream => Ok(first),
        files => Err(Failure::Usage(format!("{} files of data; several are read only with --stream", files.len()))),
    }
}

fn fit(request: &FitArgs, watch: &Watch) -> Result<Fitted, Failure> {
    let start = Instant::now();
    let first = only_one_unless_streamed(request)?;
    watch.say(format!("reading {}", first.display()));
    let options = request.input.options(request.weight_column.as_deref());
    if request.stream.stream {
        return stream(request, &options, watch);
    }
    let table = io::read_table(first, &options)?;
    fit_table(table, request, request.method.time_limit, start.elapsed().as_secs_f64(), watch)
}

fn fit_table(
    table: io::Table,
    request: &FitArgs,
    time_limit: Option<Duration>,
    read_seconds: f64,
    watch: &Watch,
) -> Result<Fitted, Failure> {
    let labels = labels_of(&table)?;
    check_classes(labels)?;
    let parameters = request.method.parameters(labels)?;
    watch.say("fitting");
    let start = Instant::now();
    let best_so_far = |model: &Model| model.summary.status == Status::Interrupted;
    let model = watch.run(time_limit, best_so_far, |control| {
        let fit = FitRequest {
            sample_weight: table.weights.as_deref(),
            feature_names: table.feature_names.as_deref(),
            start: None,
            control,
        };
        parameters.fit_labels(table.design(), labels, &fit)
    })?;
    let fit_seconds = start.elapsed().as_secs_f64();
    Ok(Fitted { files: request.data.clone(), table, model, read_seconds, fit_seconds })
}

/// Refuses a column of numbers that was taken for classes.
fn check_classes(labels: &Labels) -> Result<(), Failure> {
    let (classes, rows) = (labels.classes().len(), labels.len());
    if classes <= MOST_RARE_CLASSES || 2 * classes <= rows {
        return Ok(());
    }
    let problem = format!("the labels have {classes} distinct values in {rows} rows, most of them in a single row");
    Err(Failure::Usage(format!("{problem}; if another column has the classes, name it with --target")))
}

/// Fits to files that may be larger than memory.
fn stream(request: &FitArgs, options: &io::ReadOptions, watch: &Watch) -> Result<Fitted, Failure> {
    // what can't be done is said before anything is read
    request.method.check_chunks()?;
    let (memory, cache) = (request.stream.memory, request.stream.cache.clone());
    let how = io::StreamOptions { memory, cache, shift: !request.method.no_intercept };
    let start = Instant::now();
    let limit = request.method.time_limit;
    let opened = watch.run(limit, |_| false, |control| io::open_stream(&request.data, options, &how, &control))?;
    // classes matter to weights and payoffs, not to what a fit takes
    let opened = request.method.within(opened, &how)?;
    let read_seconds = start.elapsed().as_secs_f64();
    // what is left of it
    let limit = limit.map(|limit| limit.saturating_sub(start.elapsed()));
    let (mut rows, classes, feature_names, notes) = match opened {
        io::Stream::Whole(table) => return fit_table(table, request, limit, read_seconds, watch),
        io::Stream::Cached { rows, classes, feature_names, notes } => (rows, classes, feature_names, notes),
    };
    let labels = Labels::from_codes(classes.clone(), Vec::new())?;
    let parameters = request.method.parameters(&labels)?;
    watch.say("fitting");
    let start = Instant::now();
    let model = watch.run(
        limit,
        |_| false,
        |control| {
            let names = feature_names.as_deref();
            parameters.fit_chunks(
                &mut rows,
                &StreamRequest { classes: &classes, feature_names: names, memory, sums: MOST_SENT, control },
            )
        },
    )?;
    let fit_seconds = start.elapsed().as_secs_f64();
    // the rows are not at hand, but what they are is
    let table = io::Table {
        x: Rows::Dense(Dense::new(0, model.predictor.features, Vec::new())?),
        labels: None,
        weights: None,
        feature_names,
        lines: Vec::new(),
        source: request.data[0].clone(),
        notes,
    };
    Ok(Fitted { files: request.data.clone(), table, model, read_seconds, fit_seconds })
}

/// What to say when the tolerance was not met.
pub fn warning(model: &Model) -> Option<String> {
    let gap = model.summary.gap;
    // the paper's algorithm for the L_q penalty certifies none
    let at = if gap.is_nan() { String::new() } else { format!(" at a relative gap of {gap:.1e}") };
    match model.summary.status {
        Status::Converged => None,
        Status::IterationLimit => {
            Some(format!("not converged: the iteration limit was reached{at}; raise --max-iter, or scale the features"))
        }
        Status::TimeLimit => Some(format!("not converged: the time limit was reached{at}")),
        Status::Interrupted => Some("interrupted: this is the best model so far".to_string()),
        Status::AllCapped => {
            Some("every row lies beyond the cap: this is the last model before that; raise --cap".to_string())
        }
        _ if gap.is_nan() => Some(format!("not converged: {}", model.summary.status)),
        Status::Inaccurate => Some(format!("rounding kept the relative gap at {gap:.1e}, above the tolerance")),
        other => Some(format!("not converged: {other}, relative gap {gap:.1e}")),
    }
}

/// One suspicious row.
struct Suspect {
    row: usize,
    margin: f64,
}

impl Fitted {
    fn labels(&self) -> Option<&Labels> {
        self.table.labels.as_ref()
    }

    fn label(&self, row: usize) -> Option<&Class> {
        let labels = self.labels()?;
        labels.classes().get(*labels.codes().get(row)? as usize)
    }

    /// Rows beyond the truncation, the worst first.
    fn worst(&self) -> Vec<Suspect> {
        let Some(training) = &self.model.training else { return Vec::new() };
        let rows = training.margins.iter().zip(&training.outliers).enumerate();
        let mut worst: Vec<Suspect> =
            rows.filter(|(_, (_, outlier))| **outlier).map(|(row, (&margin, _))| Suspect { row, margin }).collect();
        worst.sort_by(|a, b| a.margin.total_cmp(&b.margin));
        worst.truncate(WORST);
        worst
    }

    pub fn write_model(&self, path: &Path) -> Result<(), Failure> {
        if destination::is_standard_output(path) {
            let bytes = io::model_to_bytes(&self.model)?;
            return destination::write(path, |out| out.write_all(&bytes));
        }
        Ok(io::save_model(&self.model, path)?)
    }

    fn write_outliers(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(out, "row,line,label,margin,outlier,score")?;
        let Some(training) = &self.model.training else { return Ok(()) };
        for (row, score) in training.outlier_scores().into_iter().enumerate() {
            let label = self.label(row).map(|class| csv_field(&class.to_string())).unwrap_or_default();
            let (line, margin, outlier) = (self.table.lines[row], training.margins[row], training.outliers[row]);
            writeln!(out, "{},{line},{label},{margin},{outlier},{score}", row + 1)?;
        }
        Ok(())
    }

    fn classes(&self) -> impl ExactSizeIterator<Item = (&Class, usize)> {
        self.model.classes().iter().zip(self.model.summary.class_rows.iter().copied())
    }

    /// Rows of each class beyond the truncation, where there is something known about single rows.
    fn outliers_by_class(&self) -> Option<Vec<usize>> {
        let (labels, training) = (self.labels()?, self.model.training.as_ref()?);
        let mut counts = vec![0; self.model.classes().len()];
        let rows = labels.codes().iter().zip(&training.outliers);
        rows.filter(|(_, outlier)| **outlier).for_each(|(&code, _)| counts[code as usize] += 1);
        Some(counts)
    }

    /// How many of its own rows the model decides rightly, where margins are known.
    fn decided_rightly(&self) -> Option<usize> {
        let margins = &self.model.training.as_ref()?.margins;
        let right = margins.iter().filter(|margin| **margin > 0.0).count();
        if !margins.contains(&0.0) {
            return Some(right);
        }
        // one of several classes that are level is predicted, and may be the right one
        let predicted = self.model.predict_codes(self.table.design()).ok()?;
        let rows = predicted.iter().zip(self.labels()?.codes()).zip(margins);
        Some(right + rows.filter(|((predicted, own), margin)| **margin == 0.0 && predicted == own).count())
    }

    /// What to say of a model that decides its own rows no better than one class for all would.
    fn learnt_nothing(&self) -> Option<String> {
        let summary = &self.model.summary;
        if summary.utility.is_some() || summary.cost.is_some() || summary.class_weight.is_some() {
            // one class for all may be what pays
            return None;
        }
        let right = self.decided_rightly()?;
        let (class, &most) = summary.class_rows.iter().enumerate().max_by_key(|(_, rows)| **rows)?;
        (right <= most && summary.rows >= FEWEST_TO_LEARN).then(|| {
            let name = quoted(&self.model.predictor.classes[class].to_string());
            format!(
                "of its own rows the model decides {right} of {} rightly, no more than the class {name} has: another --gamma or -C, or columns on one \
                 scale, as `outlast tune` puts them, may help",
                summary.rows
            )
        })
    }

    /// The variables a penalty that selects has left: by name, or counted from 1.
    fn selected(&self) -> Option<Vec<Value>> {
        let selects = Penalty::from_name(&self.model.summary.penalty).is_ok_and(Penalty::selects);
        let columns = self.model.selected().filter(|_| selects)?;
        let name = |column: usize| match &self.table.feature_names {
            Some(names) => json!(names[column]),
            None => json!(column + 1),
        };
        Some(columns.into_iter().map(name).collect())
    }

    fn selected_text(&self, selected: &[Value]) -> String {
        let total = format!("{} of {}", selected.len(), count(self.table.cols(), "feature", "features"));
        let mut names = Vec::new();
        let mut length = 0;
        for value in selected {
            let name = shown(value.as_str().map_or_else(|| value.to_string(), str::to_string).as_str());
            length += name.chars().count() + 2;
            if names.len() == NAMED || length > NAMED_LENGTH {
                break;
            }
            names.push(name);
        }
        let more = selected.len() - names.len();
        if names.is_empty() { total } else { format!("{total}: {}", listed(names, more)) }
    }

    /// What decisions are worth, in words.
    fn payoff_text(&self, request: &FitArgs) -> Option<(&'static str, String)> {
        let (name, _) = self.model.summary.payoff()?;
        let file = request.method.utility.as_ref().or(request.method.cost.as_ref())?;
        let (form, baseline) = (&self.model.summary.cost_form, &self.model.summary.utility_baseline);
        let how = match (name, form.as_str(), baseline.as_str()) {
            _ if self.model.summary.method == "lq" => "",
            ("cost", "direct", _) => ", in its direct form",
            ("cost", _, "row_minimum") => ", as utilities less the minimum of their row",
            ("cost", ..) => ", as utilities",
            (_, _, "row_minimum") => ", less the minimum of each row",
            _ => "",
        };
        Some((name, format!("{}{how}", file.display())))
    }

    /// The first file, and how many others there are.
    fn files_text(&self) -> String {
        let first = self.table.source.display();
        match self.files.len() {
            0 | 1 => first.to_string(),
            files => format!("{first} and {}", count(files - 1, "other file", "other files")),
        }
    }

    fn text(&self, request: &FitArgs) -> String {
        self.text_for(request.output.as_deref(), self.payoff_text(request))
    }

    /// The model in words; where it was written, and what decisions are worth.
    pub fn text_for(&self, output: Option<&Path>, payoff: Option<(&'static str, String)>) -> String {
        let summary = &self.model.summary;
        let mut pairs = Pairs::default();
        let size =
            format!("{}, {}", count(summary.rows, "row", "rows"), count(self.table.cols(), "feature", "features"));
        pairs.add("data", format!("{}: {size}", self.files_text()));
        pairs.add("classes", classes_text(self.classes()));
        pairs.add("method", self.method_text());
        if let Some((name, text)) = payoff {
            pairs.add(name, text);
        }
        pairs.add("kernel", kernel_text(&self.model.predictor.kernel));
        let steps = count(summary.steps, "majorise-minimise step", "majorise-minimise steps");
        let iterations = count(summary.iterations, "iteration", "iterations");
        pairs.add(
            "solver",
            format!("{}: {}, {steps}, {iterations}", summary.solver, summary.status.name().replace('_', " ")),
        );
        let certified = match summary.gap.is_nan() {
            true => "nothing certified".to_string(),
            false => format!("relative gap {:.1e}", summary.gap),
        };
        pairs.add("objective", format!("{} ({certified})", short(summary.objective)));
        if let Some(bound) = summary.details.get("lower_bound") {
            pairs.add("lower bound", self.bound_text(bound));
        }
        if self.model.training.is_some() {
            let rows = count(summary.rows, "row", "rows");
            pairs.add("support", format!("{} of {rows}", self.model.support_count()));
        }
        if summary.truncation.is_some() || summary.outliers > 0 {
            let by_class = self.outliers_by_class().unwrap_or_default();
            let some: Vec<(&Class, usize)> =
                self.model.classes().iter().zip(by_class).filter(|(_, outliers)| *outliers > 0).collect();
            let detail = if some.is_empty() { String::new() } else { format!(": {}", classes_text(some.into_iter())) };
            pairs.add("outliers", count(summary.outliers, "row", "rows") + &detail);
        }
        if let Some(selected) = self.selected() {
            pairs.add("selected", self.selected_text(&selected));
        }
        pairs.add("time", format!("{} reading, {} fitting", seconds(self.read_seconds), seconds(self.fit_seconds)));
        match output {
            Some(path) if destination::is_standard_output(path) => pairs.add("model", "standard output"),
            Some(path) => pairs.add("model", path.display().to_string()),
            None => pairs.add("model", "not saved; name a file with -o"),
        }
        pairs.render() + &self.worst_text()
    }

    /// The method and its parameters, in words.
    fn method_text(&self) -> String {
        let summary = &self.model.summary;
        let number = |name: &str| summary.details.get(name).map(short).unwrap_or_default();
        let refined = if summary.details.get("refined") == Some(0.0) { ", not refined" } else { "" };
        let each = match (summary.method.as_str(), self.model.classes().len()) {
            ("truncated" | "capped" | "lq", _) | (_, 2) => "",
            _ => ", each class against the others",
        };
        let c = short(summary.c);
        let own = match summary.method.as_str() {
            "reh" => format!("relaxed robust hinge (reh){refined}, C = {c}"),
            "rod" => format!(
                "relaxed outlier detection (rod), {} of the weight kept{refined}, C = {c}",
                number("inlier_fraction")
            ),
            "capped" => self.capped_text(),
            "centroid" => format!("centroid machine, shift = {}, C = {c}", number("shift")),
            "loo" => format!("leave-one-out machine, factor = {}", number("factor")),
            "lq" => format!("hinge loss, penalty sum |w|^q with q = {}, C = {c}", number("q")),
            _ => {
                let loss = match summary.truncation {
                    Some(truncation) => format!("{} loss truncated at {}", summary.loss, short(truncation)),
                    None => format!("{} loss, not truncated", summary.loss),
                };
                format!("{loss}, {} penalty, C = {c}", summary.penalty)
            }
        };
        own + each
    }

    fn capped_text(&self) -> String {
        let summary = &self.model.summary;
        let loss = match (summary.loss.as_str(), summary.details.get("power")) {
            ("lp", Some(power)) => format!("residuals to the power {}", short(power)),
            (loss, _) => format!("{loss} loss"),
        };
        let cap =
            summary.details.get("cap").map_or("not capped".to_string(), |cap| format!("capped at {}", short(cap)));
        format!("{loss}, {cap}, C = {}", short(summary.c))
    }

    fn bound_text(&self, bound: f64) -> String {
        let (summary, details) = (&self.model.summary, &self.model.summary.details);
        let nodes = details.get("nodes").filter(|&nodes| nodes > 0.0);
        let searched =
            nodes.map_or(String::new(), |nodes| format!(", {} searched", count(nodes as usize, "node", "nodes")));
        if details.get("proved") == Some(1.0) {
            return format!("{} (proved globally optimal{searched})", short(bound));
        }
        let above = 100.0 * (summary.objective - bound).max(0.0) / summary.objective.abs().max(f64::MIN_POSITIVE);
        format!("{} (the optimum is at most {above:.2} % lower{searched})", short(bound))
    }

    fn worst_text(&self) -> String {
        let worst = self.worst();
        if worst.is_empty() {
            return String::new();
        }
        let rows: Vec<Vec<String>> = worst
            .iter()
            .map(|suspect| {
                let label = self.label(suspect.row).map(class_text).unwrap_or_default();
                vec![
                    label,
                    (suspect.row + 1).to_string(),
                    self.table.lines[suspect.row].to_string(),
                    short(suspect.margin),
                ]
            })
            .collect();
        let title = format!("\nworst {}\n", count(worst.len(), "outlier", "outliers"));
        title + &output::table(&["label", "row", "line", "margin"], &rows)
    }

    /// The model for programs, and where it was written.
    pub fn json_for(&self, output: Option<&Path>) -> Value {
        let summary = &self.model.summary;
        let kernel = &self.model.predictor.kernel;
        let worst: Vec<Value> = self
            .worst()
            .iter()
            .map(|suspect| {
                json!({
                    "row": suspect.row + 1,
                    "line": self.table.lines[suspect.row],
                    "label": self.label(suspect.row).map(class_json),
                    "margin": suspect.margin,
                })
            })
            .collect();
        let outliers = self.outliers_by_class();
        let of_class = |at: usize| outliers.as_ref().map(|outliers| outliers[at]);
        let classes: Vec<Value> = self
            .classes()
            .enumerate()
            .map(|(at, (class, rows))| json!({"class": class_json(class), "rows": rows, "outliers": of_class(at)}))
            .collect();
        // rows in chunks are not told apart
        let support = self.model.training.as_ref().map(|_| self.model.support_count());
        let selected = self.selected();
        let matrix = |matrix: &Option<Vec<f64>>| {
            matrix.as_ref().map(|values| values.chunks_exact(classes.len()).map(<[f64]>::to_vec).collect::<Vec<_>>())
        };
        json!({
            "command": "fit",
            "data": self.table.source.to_string_lossy(),
            "files": self.files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>(),
            "model": output.map(|path| path.to_string_lossy()),
            "rows": summary.rows,
            "features": self.table.cols(),
            "classes": classes,
            "method": summary.method,
            "c": summary.c,
            "loss": summary.loss,
            "truncation": summary.truncation,
            "penalty": summary.penalty,
            "utility": matrix(&summary.utility),
            "cost": matrix(&summary.cost),
            "cost_form": summary.cost_form,
            "utility_baseline": summary.utility_baseline,
            "kernel": kernel.name(),
            "gamma": kernel.gamma(),
            "solver": summary.solver,
            "status": summary.status.name(),
            "objective": summary.objective,
            "gap": summary.gap,
            "trace": summary.trace,
            "steps": summary.steps,
            "iterations": summary.iterations,
            "support_vectors": support,
            "n_features_selected": selected.as_ref().map(Vec::len),
            "selected_features": selected,
            "details": summary.details.iter().map(|(name, value)| (name.to_string(), json!(value))).collect::<serde_json::Map<_, _>>(),
            "outliers": summary.outliers,
            "worst_outliers": worst,
            "seconds": {"read": self.read_seconds, "fit": self.fit_seconds},
        })
    }
}

fn kernel_text(kernel: &KernelFunction) -> String {
    let name = kernel.name();
    match kernel {
        KernelFunction::Rbf { gamma } => format!("{name}, gamma = {}", short(*gamma)),
        KernelFunction::Poly { gamma, degree, coef0 } => {
            format!("{name}, degree = {degree}, gamma = {}, coef0 = {}", short(*gamma), short(*coef0))
        }
        KernelFunction::Sigmoid { gamma, coef0 } => {
            format!("{name}, gamma = {}, coef0 = {}", short(*gamma), short(*coef0))
        }
        _ => name.to_string(),
    }
}
