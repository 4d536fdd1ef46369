//! Where replications are kept, so that nothing that was run is run again.
//!
//! `NAME.csv` holds all replications in order, written at once when the last of them is done; until then `NAME.partial` is a journal,
//! to which every unit of work is appended as it ends, in whatever order the threads end them. A unit in the journal is closed by a
//! line with a full stop, so that one cut off in the middle is known and run again. Numbers are written with as many digits as read back the same.
//!
//! Both belong to an identity: name, seed, columns, version and the real data read. The journal's first line holds it, `NAME.json` that
//! of `NAME.csv`. Replications of another identity are moved aside, to `NAME.old.csv` and `NAME.old.partial`.

use crate::experiment::{Experiment, Record};
use crate::report::read_json;
use outlast::io::write_atomically;
use outlast::{Error, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

/// Records by setting and replication.
pub type Kept = BTreeMap<(usize, usize), Vec<Record>>;

/// The files of one experiment.
pub struct Store<'a> {
    experiment: &'a dyn Experiment,
    settings: Vec<String>,
    identity: Value,
    csv: PathBuf,
    journal: PathBuf,
    object: PathBuf,
}

const CLOSED: &str = ".";

impl<'a> Store<'a> {
    /// The files of an experiment in a folder.
    pub fn new(experiment: &'a dyn Experiment, identity: Value, folder: &std::path::Path) -> Store<'a> {
        let name = experiment.about().name;
        let file = |ending: &str| folder.join(format!("{name}.{ending}"));
        Store {
            experiment,
            settings: experiment.settings().into_iter().map(|setting| setting.name).collect(),
            identity,
            csv: file("csv"),
            journal: file("partial"),
            object: file("json"),
        }
    }

    /// What is kept already, under the same identity. The second value tells why something was moved aside.
    pub fn load(&self) -> Result<(Kept, Option<String>)> {
        let mut kept = Kept::new();
        let mut why = None;
        if let Some(text) = read(&self.csv)? {
            match read_json(&self.object).map(|object| object["identity"].clone()) {
                Some(identity) if identity == self.identity => kept = self.parse(&text, false),
                // without a sign of whose they are they may be anybody's; the journal then holds what counts
                None => {}
                Some(other) => {
                    why = Some(self.change(&other));
                    move_aside(&self.csv)?;
                }
            }
        }
        if let Some(text) = read(&self.journal)? {
            let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
            match serde_json::from_str::<Value>(first) {
                Ok(identity) if identity == self.identity => kept.extend(self.parse(rest, true)),
                Ok(other) => {
                    why = Some(self.change(&other));
                    move_aside(&self.journal)?;
                }
                Err(_) => {}
            }
        }
        Ok((kept, why))
    }

    /// What differs from another identity.
    fn change(&self, other: &Value) -> String {
        let Some(own) = self.identity.as_object() else { return String::new() };
        let theirs = other.as_object().into_iter().flat_map(|other| other.keys());
        let keys = own.keys().chain(theirs.filter(|key| !own.contains_key(*key)));
        // the first revision is not written down
        let shown =
            |of: &Value, key: &str| if of[key].is_null() { "not there".to_string() } else { of[key].to_string() };
        let changed = keys.filter(|key| other[key.as_str()] != self.identity[key.as_str()]);
        let lines = changed.map(|key| format!("{key} was {} and is {}", shown(other, key), shown(&self.identity, key)));
        lines.collect::<Vec<_>>().join(", ")
    }

    /// Opens the journal anew, with what is kept beyond the CSV file.
    pub fn open(&self, kept: &Kept) -> Result<Journal> {
        write_atomically(&self.journal, |out| {
            writeln!(out, "{}", self.identity)?;
            kept.iter().try_for_each(|(&unit, records)| out.write_all(self.closed(unit, records).as_bytes()))
        })?;
        let file = OpenOptions::new().append(true).open(&self.journal);
        Ok(Journal { file: file.map_err(|error| Error::io(&self.journal, error))?, path: self.journal.clone() })
    }

    /// Lines of one unit, as the journal holds them.
    pub fn closed(&self, unit: (usize, usize), records: &[Record]) -> String {
        self.lines(unit, records) + CLOSED + "\n"
    }

    /// Writes the CSV file.
    pub fn finish(&self, kept: &Kept) -> Result<()> {
        write_atomically(&self.csv, |out| {
            let columns =
                ["setting", "replication"].iter().chain(self.experiment.labels()).chain(self.experiment.values());
            writeln!(out, "{}", columns.copied().collect::<Vec<_>>().join(","))?;
            kept.iter().try_for_each(|(&unit, records)| out.write_all(self.lines(unit, records).as_bytes()))
        })
    }

    /// Removes the journal, once everything it held stands elsewhere.
    pub fn close(&self) -> Result<()> {
        match fs::remove_file(&self.journal) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&self.journal, error)),
            _ => Ok(()),
        }
    }

    fn lines(&self, (setting, replication): (usize, usize), records: &[Record]) -> String {
        let mut text = String::new();
        for record in records {
            debug_assert_eq!(record.labels.len(), self.experiment.labels().len());
            debug_assert_eq!(record.values.len(), self.experiment.values().len());
            let number = |value: &f64| if value.is_nan() { String::new() } else { value.to_string() };
            let fields = [self.settings[setting].clone(), replication.to_string()].into_iter();
            let fields = fields.chain(record.labels.iter().cloned()).chain(record.values.iter().map(number));
            text += &(fields.collect::<Vec<_>>().join(",") + "\n");
        }
        text
    }

    /// Units of a file; of a journal only those that are closed.
    fn parse(&self, text: &str, journal: bool) -> Kept {
        let mut kept = Kept::new();
        let mut open: Option<((usize, usize), Vec<Record>)> = None;
        for line in text.split_inclusive('\n') {
            // a line without its end was cut off
            let Some(line) = line.strip_suffix('\n') else { break };
            if line == CLOSED {
                kept.extend(open.take());
            } else if let Some((unit, record)) = self.record(line) {
                match &mut open {
                    Some((same, records)) if *same == unit => records.push(record),
                    _ => {
                        kept.extend(open.take().filter(|_| !journal));
                        open = Some((unit, vec![record]));
                    }
                }
            }
        }
        kept.extend(open.filter(|_| !journal));
        kept
    }

    /// A line; `None` for one that is none of ours, like the header.
    fn record(&self, line: &str) -> Option<((usize, usize), Record)> {
        let mut fields = line.split(',');
        let setting = fields.next().and_then(|name| self.settings.iter().position(|known| known == name))?;
        let replication = fields.next()?.parse().ok()?;
        let labels: Vec<String> = fields.by_ref().take(self.experiment.labels().len()).map(str::to_string).collect();
        let number = |field: &str| if field.is_empty() { Some(f64::NAN) } else { field.parse().ok() };
        let values: Vec<f64> = fields.map(number).collect::<Option<_>>()?;
        (values.len() == self.experiment.values().len()).then_some(((setting, replication), Record { labels, values }))
    }
}

/// The journal, open for more.
pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Appends the lines of a unit.
    pub fn append(&mut self, lines: &str) -> Result<()> {
        self.file.write_all(lines.as_bytes()).map_err(|error| Error::io(&self.path, error))
    }
}

/// NAME.csv becomes NAME.old.csv.
fn move_aside(path: &std::path::Path) -> Result<()> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
    fs::rename(path, path.with_extension(format!("old.{ending}"))).map_err(|error| Error::io(path, error))
}

fn read(path: &std::path::Path) -> Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(path, error)),
    }
}
