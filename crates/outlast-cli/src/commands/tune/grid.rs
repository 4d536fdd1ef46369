//! `outlast tune` for the methods that share one search.

use super::{Found, check_columns};
use crate::args::tune::TuneArgs;
use crate::chart::{Chart, Panel};
use crate::commands::fit::Fitted;
use crate::commands::labels_of;
use crate::failure::Failure;
use crate::output::{self, Pairs, count, short};
use crate::watch::Watch;
use outlast::select::tune::{Axis, Cell, Judge, Rule, Setting, State};
use outlast::{FitRequest, Status, Tune, Tuned, io};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::time::Instant;

/// Points shown where there are more of them than twice as many.
const SHOWN: usize = 15;

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
    let start = Instant::now();
    watch.say(format!("reading {}", request.data.display()));
    let options = request.input.options(request.weight_column.as_deref());
    let table = io::read_table(&request.data, &options)?;
    let labels = labels_of(&table)?;
    let tune = prepared(request, labels)?;
    let tuning = request.tuning.as_ref().map(|path| io::read_table(path, &options)).transpose()?;
    if let Some(tuning) = &tuning {
        check_columns(&table, tuning)?;
    }
    let tuning = tuning.as_ref().map(|table| labels_of(table).map(|labels| (table, labels))).transpose()?;
    let read_seconds = start.elapsed().as_secs_f64();
    watch.say("tuning");
    watch.count(if tuning.is_some() { tune.steps(1) } else { tune.steps(table.rows()) });
    let start = Instant::now();
    let best_so_far = |tuned: &Tuned| tuned.status == Status::Interrupted;
    let mut tuned = watch.run(request.method.time_limit, best_so_far, |control| {
        let fit = FitRequest {
            sample_weight: table.weights.as_deref(),
            feature_names: table.feature_names.as_deref(),
            start: None,
            control,
        };
        match tuning {
            Some((other, truth)) => tune.fit_tuned(table.design(), labels, (other.design(), truth), &fit),
            None => tune.fit_with(table.design(), labels, &fit),
        }
    })?;
    let fit_seconds = start.elapsed().as_secs_f64();
    let model = tuned.model.clone();
    // what is shown of each training row is the model's, not the search's
    tuned.model.training = None;
    let fitted = Fitted { table, model, read_seconds, fit_seconds };
    let mut grid = Vec::new();
    // writing to memory does not fail
    let _ = write_grid(&tuned, &mut grid);
    Ok(Found {
        text: text(request, &fitted, &tuned),
        json: json(request, &fitted, &tuned),
        grid,
        picture: draw(&tuned),
        fitted,
    })
}

fn prepared(request: &TuneArgs, labels: &outlast::Labels) -> Result<Tune, Failure> {
    let tune = Tune::of(request.method.tunable(labels)?)
        .standardize(!request.no_standardize)
        .rule(Rule::from_name(&request.rule)?)
        .early_stop(!request.no_early_stopping)
        .halving(request.halving)
        .nested(request.nested)
        .exact(request.exact)
        .judge(request.holdout.map_or(Judge::Folds(request.cv), Judge::HoldOut));
    let tune = request.fill(tune);
    tune.check()?;
    Ok(tune)
}

fn value_text(value: &Setting) -> String {
    value.number().map_or_else(|| value.to_string(), short)
}

fn value_json(value: &Setting) -> Value {
    match value {
        Setting::Number(number) => json!(number),
        Setting::Name(name) => json!(name),
        Setting::Nothing => Value::Null,
    }
}

fn named(axes: &[Axis], settings: &[Setting]) -> Map<String, Value> {
    axes.iter().zip(settings).map(|(axis, value)| (axis.name.to_string(), value_json(value))).collect()
}

/// A line per point of the grid.
fn write_grid(tuned: &Tuned, out: &mut dyn Write) -> std::io::Result<()> {
    let names: Vec<&str> = tuned.axes.iter().map(|axis| axis.name).collect();
    let splits: Vec<String> = (1..=tuned.splits).map(|split| format!(",error_{split}")).collect();
    let measure = tuned.measure.name().replace(' ', "_");
    writeln!(out, "{},{measure},standard_error,state,train_share,chosen{}", names.join(","), splits.concat())?;
    let number = |value: f64| if value.is_nan() { String::new() } else { value.to_string() };
    for (at, cell) in tuned.cells.iter().enumerate() {
        let settings: Vec<String> = cell.settings.iter().map(Setting::to_string).collect();
        let (mean, spread) = (number(tuned.measure.shown(cell.mean)), number(cell.standard_error));
        let (state, chosen) = (cell.state.name(), at == tuned.chosen);
        write!(out, "{},{mean},{spread},{state},{},{chosen}", settings.join(","), cell.share)?;
        for error in &cell.errors {
            write!(out, ",{}", number(tuned.measure.shown(*error)))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The error over C with its standard errors, a line for each choice of the other parameters.
fn draw(tuned: &Tuned) -> String {
    let axes = &tuned.axes;
    let Some(last) = axes.last() else { return String::new() };
    let cs: Vec<f64> = last.values.iter().filter_map(Setting::number).collect();
    let mut order: Vec<usize> = (0..cs.len()).collect();
    order.sort_by(|&a, &b| cs[a].total_cmp(&cs[b]));
    let positions: Vec<f64> = order.iter().map(|&at| cs[at]).collect();
    let lines: Vec<&[Cell]> = tuned.cells.chunks_exact(cs.len().max(1)).collect();
    let of = |value: &dyn Fn(&Cell) -> f64| -> Vec<Vec<f64>> {
        lines.iter().map(|line| order.iter().map(|&at| value(&line[at])).collect()).collect()
    };
    let place = order.iter().position(|&at| at == tuned.chosen % cs.len().max(1)).unwrap_or(0);
    let panel = Panel {
        title: tuned.measure.name(),
        lines: of(&|cell| tuned.measure.shown(cell.mean)),
        named: true,
        ring: Some((tuned.chosen / cs.len().max(1), place)),
        bars: of(&|cell| cell.standard_error),
    };
    let name = |line: &&[Cell]| {
        let several = axes.iter().zip(&line[0].settings).take(axes.len() - 1).filter(|(axis, _)| axis.values.len() > 1);
        several.map(|(axis, value)| format!("{} {}", axis.name, value_text(value))).collect::<Vec<_>>().join(", ")
    };
    let names = if lines.len() > 1 { lines.iter().map(name).collect() } else { Vec::new() };
    let title = format!("{} chosen, {}", chosen_text(tuned), score_text(tuned));
    Chart { title: &title, names, axis: ("C", &positions), panels: vec![panel] }.draw()
}

fn chosen_text(tuned: &Tuned) -> String {
    tuned.parameters().map(|(name, value)| format!("{name} = {}", value_text(value))).collect::<Vec<_>>().join(", ")
}

fn with_error(mean: f64, spread: f64) -> String {
    if spread.is_nan() { format!("{mean:.4}") } else { format!("{mean:.4} ± {spread:.4}") }
}

fn score_text(tuned: &Tuned) -> String {
    let best = tuned.best();
    format!("{} {}", tuned.measure.name(), with_error(tuned.measure.shown(best.mean), best.standard_error))
}

fn text(request: &TuneArgs, fitted: &Fitted, tuned: &Tuned) -> String {
    let mut pairs = Pairs::default();
    let judge = match (&request.tuning, request.holdout) {
        (Some(path), _) => format!("on {}", path.display()),
        (_, Some(share)) => format!("on {} of the rows", short(share)),
        _ => format!("over {}", count(request.cv, "fold", "folds")),
    };
    let best = tuned.best();
    pairs.add("chosen", chosen_text(tuned));
    pairs.add(
        tuned.measure.name(),
        format!("{} {judge}", with_error(tuned.measure.shown(best.mean), best.standard_error)),
    );
    if let Some(nested) = &tuned.nested {
        let honest = with_error(tuned.measure.shown(nested.mean), nested.standard_error);
        pairs.add("honest", format!("{honest} by nested cross-validation, {} folds", nested.errors.len()));
    }
    let sizes = tuned.axes.iter().filter(|axis| axis.values.len() > 1);
    let sizes: Vec<String> = sizes.map(|axis| format!("{} of {}", axis.values.len(), axis.name)).collect();
    let of = |state: State| tuned.cells.iter().filter(|cell| cell.state == state).count();
    let mut grid = count(tuned.cells.len(), "point", "points");
    if !sizes.is_empty() {
        grid += &format!(" ({})", sizes.join(" x "));
    }
    if of(State::Stopped) > 0 {
        grid += &format!(", {} given up early", of(State::Stopped));
    }
    if tuned.status != Status::Converged {
        grid += &format!(", {} judged before the search ended", of(State::Done));
    }
    pairs.add("grid", grid);
    pairs.add(
        "columns",
        if fitted.model.is_standardized() { "standardized, as part of the model" } else { "as they are" },
    );
    pairs.render() + "\n" + &fitted.text_for(request.output.as_deref(), None) + &table_text(tuned)
}

/// The grid, the best points first; those given up after the others.
fn table_text(tuned: &Tuned) -> String {
    let cells = &tuned.cells;
    let mut order: Vec<usize> = (0..cells.len()).collect();
    let behind = |at: usize| cells[at].state != State::Done;
    order.sort_by(|&a, &b| behind(a).cmp(&behind(b)).then(cells[a].mean.total_cmp(&cells[b].mean)).then(a.cmp(&b)));
    let shown = if cells.len() <= 2 * SHOWN { cells.len() } else { SHOWN };
    let several: Vec<usize> = (0..tuned.axes.len()).filter(|&at| tuned.axes[at].values.len() > 1).collect();
    let several = if several.is_empty() { vec![tuned.axes.len() - 1] } else { several };
    let line = |&at: &usize| -> Vec<String> {
        let cell = &cells[at];
        let mut row: Vec<String> = several.iter().map(|&axis| value_text(&cell.settings[axis])).collect();
        let number = |value: f64| if value.is_nan() { "-".to_string() } else { format!("{value:.4}") };
        row.extend([number(tuned.measure.shown(cell.mean)), number(cell.standard_error)]);
        let judged = cell.errors.iter().filter(|error| !error.is_nan()).count();
        row.push(match (at == tuned.chosen, cell.state) {
            (true, _) => "chosen".to_string(),
            (_, State::Done) => String::new(),
            (_, State::Stopped) => format!("given up after {judged}"),
            (_, State::Partly) => format!("judged on {judged}"),
            (_, State::NotReached) => "not reached".to_string(),
        });
        row
    };
    let rows: Vec<Vec<String>> = order.iter().take(shown).map(line).collect();
    let mut head: Vec<&str> = several.iter().map(|&axis| tuned.axes[axis].name).collect();
    head.extend([tuned.measure.name(), "std. error", ""]);
    let more = cells.len() - shown;
    let more = if more > 0 { format!("... and {more} more; --grid writes them all\n") } else { String::new() };
    format!("\nthe grid, best first\n{}{more}", output::table(&head, &rows))
}

fn json(request: &TuneArgs, fitted: &Fitted, tuned: &Tuned) -> Value {
    let shown = |value: f64| tuned.measure.shown(value);
    let point = |cell: &Cell| {
        let mut point = named(&tuned.axes, &cell.settings);
        point.insert("error".to_string(), json!(shown(cell.mean)));
        point.insert("standard_error".to_string(), json!(cell.standard_error));
        point.insert("fold_errors".to_string(), json!(cell.errors.iter().map(|&e| shown(e)).collect::<Vec<_>>()));
        point.insert("state".to_string(), json!(cell.state.name()));
        point.insert("train_share".to_string(), json!(cell.share));
        Value::Object(point)
    };
    let nested = tuned.nested.as_ref().map(|nested| {
        json!({
            "folds": nested.errors.len(),
            "error": shown(nested.mean),
            "standard_error": nested.standard_error,
            "fold_errors": nested.errors.iter().map(|&e| shown(e)).collect::<Vec<_>>(),
            "chosen": nested.chosen.iter().map(|settings| named(&tuned.axes, settings)).collect::<Vec<_>>(),
        })
    });
    json!({
        "command": "tune",
        "method": request.method.method,
        "chosen": named(&tuned.axes, &tuned.best().settings),
        "measure": tuned.measure.name(),
        "error": shown(tuned.best().mean),
        "standard_error": tuned.best().standard_error,
        "nested": nested,
        "rule": request.rule,
        "standardize": fitted.model.is_standardized(),
        "status": tuned.status.name(),
        "cv": (request.tuning.is_none() && request.holdout.is_none()).then_some(request.cv),
        "holdout": request.holdout,
        "tuning": request.tuning.as_ref().map(|path| path.to_string_lossy()),
        "grid": tuned.cells.iter().map(point).collect::<Vec<_>>(),
        "fit": fitted.json_for(request.output.as_deref()),
    })
}
