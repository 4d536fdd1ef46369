//! What is made of an experiment's replications, as files: a Markdown page, JSON, figures.

use crate::experiment::{Reps, Results};
use crate::lines::{Row, Statement};
use outlast::io::write_atomically;
use outlast::{Error, Result};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What an experiment found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Numbers beside the printed ones, each printed number once; and numbers the paper does not print, which are not counted.
    pub rows: Vec<Row>,
    /// Numbers beside printed ones that are not counted: other readings of the paper, or other data.
    pub readings: Vec<Row>,
    /// Statements of the paper.
    pub statements: Vec<Statement>,
    /// Statements that are ours: not counted.
    pub own: Vec<Statement>,
    /// What the paper leaves open and how it was chosen; what is wrong in print.
    pub notes: Vec<String>,
    /// Figures: what is added to the experiment's name for the file's (mostly nothing), and the picture.
    pub figures: Vec<(String, String)>,
}

const HEADER: &str = "paper | here | standard error | verdict |\n|---|---|---|---|---|\n";

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
        let some = |name: &str, word: &str| {
            Some(self.count(name)).filter(|&count| count > 0).map(|count| format!("{count} {word}"))
        };
        let parts = [
            judged("agrees", "differs", "printed numbers agree"),
            judged("holds", "fails", "statements hold"),
            some("open", "open"),
            some("no verdict", "without a verdict"),
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
        let mut text = format!(
            "# {}: {}\n\n{}.\n\n`outlast reproduce {}`, seed {}.{}\n",
            about.name,
            about.what,
            about.paper.reference,
            about.name,
            results.seed,
            replications(results)
        );
        let skipped = results.skipped();
        if !skipped.is_empty() {
            text += &format!("\nSkipped, as the data were not there: {}.\n", skipped.join(", "));
        }
        for (suffix, _) in &self.figures {
            text += &format!("\n![{0}{suffix}]({0}{suffix}.svg)\n", about.name);
        }
        self.tables(&mut text);
        if !self.notes.is_empty() {
            text += "\nNotes\n\n";
            text.extend(self.notes.iter().map(|note| format!("- {note}\n")));
        }
        text
    }

    fn tables(&self, text: &mut String) {
        let (printed, others): (Vec<&Row>, Vec<&Row>) = self.rows.iter().partition(|row| row.paper.is_some());
        if !printed.is_empty() {
            *text += &format!("\n| printed number | {HEADER}");
            text.extend(printed.into_iter().map(Row::markdown));
            *text += "\nA printed mean agrees when it lies within two joint standard errors of ours, plus its rounding. Where the paper \
                      prints no standard deviation, ours stands in for it.\n";
        }
        if !self.statements.is_empty() {
            *text += &format!("\n| the paper says | {HEADER}");
            text.extend(self.statements.iter().map(|one| one.markdown(true)));
            *text += "\nA difference that is stated holds when the mean of the paired differences lies more than two standard errors on the stated \
                      side, fails when it lies so on the other side, and is open in between.\n";
        }
        if !self.readings.is_empty() {
            *text += &format!(
                "\nBeside printed numbers but not counted: other readings of the paper, or other data.\n\n| not counted | {HEADER}"
            );
            text.extend(self.readings.iter().map(Row::markdown));
        }
        if !self.own.is_empty() {
            *text += &format!("\nNot in the paper, judged by the same rule: not counted.\n\n| ours | {HEADER}");
            text.extend(self.own.iter().map(|one| one.markdown(false)));
        }
        if !others.is_empty() {
            *text += &format!("\nNumbers that the paper does not print.\n\n| not printed | {HEADER}");
            text.extend(others.into_iter().map(Row::markdown));
        }
    }

    fn json(&self, results: &Results, identity: &Value) -> Value {
        let about = results.experiment.about();
        let statements = |list: &[Statement]| list.iter().map(Statement::json).collect::<Vec<_>>();
        let rows = |list: &[Row]| list.iter().map(Row::json).collect::<Vec<_>>();
        json!({
            "name": about.name,
            "what": about.what,
            "paper": about.paper.short,
            "identity": identity,
            "replications": results.reps,
            "default_replications": about.reps.count(),
            "paper_replications": about.reps.printed(),
            "skipped": results.skipped(),
            "score": self.score(),
            "rows": rows(&self.rows),
            "statements": statements(&self.statements),
            "readings": rows(&self.readings),
            "own": statements(&self.own),
        })
    }
}

/// How many replications, and how many there are in the paper and in the CSV file.
fn replications(results: &Results) -> String {
    let reps = results.experiment.about().reps;
    if reps == Reps::Exact && results.reps == 1 {
        return String::new();
    }
    let there = results.records.keys().map(|(_, replication)| replication + 1).max().unwrap_or(0);
    let more = if there > results.reps { format!(" The CSV file holds {there}.") } else { String::new() };
    format!(" {} replications ({}).{more}", results.reps, reps.printed())
}

pub(crate) fn write_json(path: &Path, value: &Value) -> Result<()> {
    write_atomically(path, |out| writeln!(out, "{value:#}"))
}

/// A JSON file, if it is there and is one.
pub(crate) fn read_json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Makes the folder results go to.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))
}
