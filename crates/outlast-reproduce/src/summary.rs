//! One page over all experiments of a folder.

use crate::costs;
use crate::report::read_json;
use crate::verdict::Verdict;
use outlast::Result;
use outlast::io::write_atomically;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Writes `summary.md` in a folder: a line for each experiment that has been run into it, in the order of the registry, and everything
/// that differs or fails. Of `skipped` ones, whose data were not there, a line says so, unless there are results of before.
pub fn summary(folder: &Path, skipped: &[&str]) -> Result<PathBuf> {
    let mut text =
        "# Summary\n\n| name | what | paper | replications | score | core time |\n|---|---|---|---|---|---|\n"
            .to_string();
    let mut against = String::new();
    let mut seconds = 0.0;
    for experiment in crate::registry::ALL {
        let about = experiment.about();
        let (name, what, paper) = (about.name, about.what, about.paper.short);
        let object = read_json(&folder.join(format!("{name}.json")));
        let Some(object) = object.filter(|object| object["score"].is_string()) else {
            if skipped.contains(&name) {
                text += &format!("| {name} | {what} | {paper} | - | skipped: the data were not there | - |\n");
            }
            continue;
        };
        let missing: Vec<&str> = object["skipped"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let missing = if missing.is_empty() { String::new() } else { format!("; skipped: {}", missing.join(", ")) };
        let (reps, score) = (&object["replications"], object["score"].as_str().unwrap_or_default());
        let printed = object["paper_replications"].as_str().unwrap_or_default();
        let cost = costs::of(folder, name);
        seconds += cost.map_or(0.0, |cost| cost.seconds);
        let cost = cost.map_or("-".to_string(), |cost| shown(cost.seconds));
        text +=
            &format!("| [{name}]({name}.md) | {what} | {paper} | {reps} ({printed}) | {score}{missing} | {cost} |\n");
        against += &against_of(name, &object);
    }
    text += &format!("\nProcessor time, summed over the threads; all together {}.\n", shown(seconds));
    if !against.is_empty() {
        text += &format!("\n## What differs or fails\n\n| name | what | paper | here |\n|---|---|---|---|\n{against}");
    }
    let path = folder.join("summary.md");
    write_atomically(&path, |out| out.write_all(text.as_bytes()))?;
    Ok(path)
}

/// The lines of what differs or fails.
fn against_of(name: &str, object: &Value) -> String {
    let list = |key: &str| object[key].as_array().cloned().unwrap_or_default();
    let is = |value: &Value, verdict: Verdict| value["verdict"].as_str() == Some(verdict.name());
    let number = |value: &Value| value.as_f64().map_or("-".to_string(), |number| format!("{:.4}", number));
    let mut text = String::new();
    for row in list("rows").iter().filter(|row| is(row, Verdict::Differs(0.0))) {
        let what = row["what"].as_str().unwrap_or_default();
        text += &format!(
            "| {name} | {what} | {} | {} (se {}) |\n",
            row["paper"],
            number(&row["here"]),
            number(&row["standard_error"])
        );
    }
    for one in list("statements").iter().filter(|one| is(one, Verdict::Fails)) {
        let part = |key: &str| one[key].as_str().unwrap_or_default();
        let error =
            if part("standard_error").is_empty() { String::new() } else { format!(" (se {})", part("standard_error")) };
        text += &format!("| {name} | {} | {} | {}{error} |\n", part("statement"), part("stated"), part("here"));
    }
    text
}

/// A time of one core.
fn shown(seconds: f64) -> String {
    if seconds < 100.0 { format!("{seconds:.1} s") } else { format!("{:.0} min", seconds / 60.0) }
}
