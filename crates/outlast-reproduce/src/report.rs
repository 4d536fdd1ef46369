//! What is made of an experiment's replications, as files: a Markdown page, JSON, figures.

use crate::experiment::Results;
use crate::verdict::{Row, Statement, Verdict};
use outlast::io::write_atomically;
use outlast::{Error, Result};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What an experiment found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Numbers beside the printed ones.
    pub rows: Vec<Row>,
    /// Statements of the paper.
    pub statements: Vec<Statement>,
    /// What the paper leaves open and how it was chosen; what is wrong in print.
    pub notes: Vec<String>,
    /// Figures: what is added to the experiment's name for the file's (mostly nothing), and the picture.
    pub figures: Vec<(String, String)>,
}

impl Report {
    /// How often each verdict was given.
    pub fn count(&self, name: &str) -> usize {
        let rows = self.rows.iter().map(Row::verdict);
        rows.chain(self.statements.iter().map(|one| one.verdict)).filter(|verdict| verdict.name() == name).count()
    }

    /// Numbers and statements that were judged, and those of them that agree or hold.
    pub fn score(&self) -> String {
        let judged = |good: &str, bad: &str, word: &str| {
            let (good, bad) = (self.count(good), self.count(bad));
            (good + bad > 0).then(|| format!("{good} of {} {word}", good + bad))
        };
        let parts = [
            judged("agrees", "differs", "printed numbers agree"),
            judged("holds", "fails", "statements hold"),
            Some(self.count("open")).filter(|&open| open > 0).map(|open| format!("{open} open")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "nothing printed to compare with".to_string() } else { parts.join(", ") }
    }

    /// Writes the page, the JSON and the figures; their paths.
    pub(crate) fn write(&self, results: &Results, identity: &Value, folder: &Path) -> Result<Vec<PathBuf>> {
        let name = results.experiment.about().name;
        let mut written = Vec::new();
        for (suffix, picture) in &self.figures {
            let path = folder.join(format!("{name}{suffix}.svg"));
            write_atomically(&path, |out| out.write_all(picture.as_bytes()))?;
            written.push(path);
        }
        let page = folder.join(format!("{name}.md"));
        let text = self.markdown(results);
        write_atomically(&page, |out| out.write_all(text.as_bytes()))?;
        let object = folder.join(format!("{name}.json"));
        write_json(&object, &self.json(results, identity))?;
        written.extend([page, object]);
        Ok(written)
    }

    fn markdown(&self, results: &Results) -> String {
        let about = results.experiment.about();
        let replications = if about.reps == 1 && results.reps == 1 {
            String::new()
        } else {
            format!(" {} replications (the paper: {}).", results.reps, about.reps)
        };
        let mut text = format!(
            "# {}: {}\n\n{}.\n\n`outlast reproduce {}`, seed {}.{replications}\n",
            about.name, about.what, about.paper.reference, about.name, results.seed
        );
        for (suffix, _) in &self.figures {
            text += &format!("\n![{0}{suffix}]({0}{suffix}.svg)\n", about.name);
        }
        if !self.rows.is_empty() {
            text += "\n| | paper | here | standard error | verdict |\n|---|---|---|---|---|\n";
            text.extend(self.rows.iter().map(Row::markdown));
            text += "\nA printed mean agrees when it lies within two joint standard errors of ours, plus its rounding. Where the paper \
                     prints no standard deviation, ours stands in for it.\n";
        }
        if !self.statements.is_empty() {
            text += "\n| the paper says | found here | verdict |\n|---|---|---|\n";
            text.extend(self.statements.iter().map(Statement::markdown));
        }
        if !self.notes.is_empty() {
            text += "\nNotes\n\n";
            text.extend(self.notes.iter().map(|note| format!("- {note}\n")));
        }
        text
    }

    fn json(&self, results: &Results, identity: &Value) -> Value {
        let about = results.experiment.about();
        json!({
            "name": about.name,
            "what": about.what,
            "paper": about.paper.short,
            "identity": identity,
            "replications": results.reps,
            "paper_replications": about.reps,
            "score": self.score(),
            "rows": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
            "statements": self.statements.iter().map(Statement::json).collect::<Vec<_>>(),
        })
    }
}

pub(crate) fn write_json(path: &Path, value: &Value) -> Result<()> {
    write_atomically(path, |out| writeln!(out, "{value:#}"))
}

/// Writes `summary.md` in a folder: a line for each experiment that has been run into it, in the order of the registry, and everything
/// that differs or fails.
pub fn summary(folder: &Path) -> Result<PathBuf> {
    let mut text = "# Summary\n\n| name | what | paper | replications | score |\n|---|---|---|---|---|\n".to_string();
    let mut against = String::new();
    for experiment in crate::registry::ALL {
        let name = experiment.about().name;
        let Some(object) = read_json(&folder.join(format!("{name}.json"))) else { continue };
        let Some(score) = object["score"].as_str() else { continue };
        let (reps, printed) = (&object["replications"], &object["paper_replications"]);
        let what = object["what"].as_str().unwrap_or_default();
        let paper = object["paper"].as_str().unwrap_or_default();
        text += &format!("| [{name}]({name}.md) | {what} | {paper} | {reps} of {printed} | {score} |\n");
        against += &against_of(name, &object);
    }
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
        let part = |key: &str| one[key].as_str().unwrap_or_default().to_string();
        text += &format!("| {name} | {} | stated | {} |\n", part("statement"), part("found"));
    }
    text
}

/// A JSON file, if it is there and is one.
pub(crate) fn read_json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Makes the folder results go to.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))
}
