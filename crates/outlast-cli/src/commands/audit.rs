//! `outlast audit`: which rows have a label, or values, that look wrong.

use super::labels_of;
use crate::args::audit::AuditArgs;
use crate::destination;
use crate::failure::Failure;
use crate::output::{self, Pairs, class_json, class_text, classes_text, count, cut, seconds, short};
use crate::watch::Watch;
use outlast::io::{self, Cells};
use outlast::select::audit::Suspect;
use outlast::{Audit, AuditKernel, AuditReport, Design, Error};
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;
use std::time::Instant;

/// Bytes of a table that a page carries along.
const MOST_CELLS: usize = 64 << 20;

/// Columns and entries of LIBSVM data that a page carries along as a table.
const MOST_COLUMNS: usize = 200;
const MOST_ENTRIES: usize = 2_000_000;

/// Most classes whose noise matrix is printed; of more, the largest shares are.
const MATRIX: usize = 10;

/// Largest shares printed.
const SHARES: usize = 10;

/// Longest class in a table.
const NARROW: usize = 20;

/// What was read, and what was found.
struct Audited {
    table: io::Table,
    cells: Cells,
    report: AuditReport,
    audit_seconds: f64,
}

/// Runs the command.
pub fn run(request: &AuditArgs) -> Result<(), Failure> {
    let files = [("--csv", request.csv.as_deref()), ("--html", request.html.as_deref())];
    let taken = destination::check(&files, &[&request.data], request.show.json)?;
    let audit = parameters(request)?;
    let watch = Watch::start(request.show.quiet);
    let audited = run_audit(request, &audit, &watch)?;
    watch.say("writing");
    watch.write(|| audited.write(request))?;
    drop(watch);
    if !request.show.quiet {
        audited.table.notes.iter().for_each(|note| output::tell(&format!("note: {note}")));
    }
    if request.show.json {
        output::print_json(&audited.json(request))?;
    } else if !request.show.quiet {
        match taken {
            true => output::tell(audited.text(request).trim_end()),
            false => output::print(&audited.text(request))?,
        }
    }
    match (request.fail_above, audited.report.suspects.first()) {
        (Some(bound), Some(worst)) if worst.score > bound => {
            let above = audited.report.suspects.iter().filter(|suspect| suspect.score > bound).count();
            let rows = count(above, "row has a score", "rows have scores");
            Err(Failure::Finding(format!("{rows} above {bound}; row {} has {:.4}", worst.row + 1, worst.score)))
        }
        _ => Ok(()),
    }
}

fn parameters(request: &AuditArgs) -> Result<Audit, Failure> {
    let audit = Audit {
        folds: request.folds,
        repeats: request.repeats,
        seed: request.random_state,
        kernel: AuditKernel::from_name(&request.kernel)?,
        gamma: request.gamma,
        c: request.c,
        truncation: request.truncation,
        threads: request.n_jobs.and_then(|jobs| usize::try_from(jobs).ok()),
    };
    audit.check()?;
    Ok(audit)
}

fn run_audit(request: &AuditArgs, audit: &Audit, watch: &Watch) -> Result<Audited, Failure> {
    watch.say(format!("reading {}", request.data.display()));
    let options = request.input.options(None);
    let (table, cells) = match request.html {
        None => (io::read_table(&request.data, &options)?, Cells::default()),
        // the page shows the text itself, and standard input is there once
        Some(_) => {
            let text = all_of(&request.data)?;
            let table = io::read_from(&text[..], &request.data, &options)?;
            let cells = io::read_cells(&text[..], &request.data, &options, MOST_CELLS)?;
            let cells = if table.design().is_sparse() { entries(&table) } else { cells };
            (table, cells)
        }
    };
    let labels = labels_of(&table)?;
    watch.say("auditing");
    watch.count(audit.steps(labels));
    let start = Instant::now();
    let report = watch.run(None, |_| false, |control| audit.run_with(table.design(), labels, control))?;
    Ok(Audited { audit_seconds: start.elapsed().as_secs_f64(), table, cells, report })
}

fn all_of(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    let read = match destination::is_standard_output(path) {
        true => std::io::stdin().lock().read_to_end(&mut text),
        false => std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut text)),
    };
    read.map_err(|error| Error::io(path, error))?;
    Ok(text)
}

/// The entries of LIBSVM data as a table, if there are not too many.
fn entries(table: &io::Table) -> Cells {
    let (x, rows, cols) = (table.design(), table.rows(), table.cols());
    let Some(labels) = &table.labels else { return Cells::default() };
    let first_line = table.lines.first().map_or(0, |&line| line as usize);
    if cols > MOST_COLUMNS || rows * cols > MOST_ENTRIES {
        return Cells { first_line, ..Cells::default() };
    }
    let mut columns = vec![vec!["0".to_string(); rows]; cols];
    for row in 0..rows {
        x.for_each(row, &mut |column, value| columns[column][row] = value.to_string());
    }
    columns.push(labels.codes().iter().map(|&code| labels.classes()[code as usize].to_string()).collect());
    let header: Vec<String> = (1..=cols).map(|column| format!("x{column}")).chain(["label".to_string()]).collect();
    let mut numeric = vec![true; cols];
    numeric.push(false);
    Cells { header: Some(header), columns, numeric, target_column: Some(cols), first_line }
}

impl Audited {
    fn write(&self, request: &AuditArgs) -> Result<(), Failure> {
        if let Some(path) = &request.csv {
            destination::write(path, |out| io::write_suspects(&self.report, Some(&self.table.lines), out))?;
        }
        if let Some(path) = &request.html {
            let page =
                page(&self.report, self.table.design(), &self.table.source.display().to_string(), self.cells.clone())?;
            destination::write(path, |out| out.write_all(&page))?;
        }
        Ok(())
    }

    fn class(&self, code: u32) -> String {
        self.report.classes.get(code as usize).map(class_text).unwrap_or_default()
    }

    fn text(&self, request: &AuditArgs) -> String {
        let report = &self.report;
        let rows = report.given.len();
        let mut pairs = Pairs::default();
        let shape = format!("{}, {}", count(rows, "row", "rows"), count(self.table.cols(), "feature", "features"));
        pairs.add("data", shape);
        let counts = report.confusion.iter().map(|row| row.iter().sum::<usize>());
        pairs.add("classes", classes_text(report.classes.iter().zip(counts.collect::<Vec<_>>())));
        let chosen =
            report.chosen.iter().map(|chosen| format!("{} with C = {}", chosen.kernel.name(), short(chosen.c)));
        let folds = format!("{}, {} times", count(report.folds, "fold", "folds"), report.repeats);
        let loss = report.loss_words(report.truncation);
        pairs.add("fits", format!("{loss}, {}; {folds}", chosen.collect::<Vec<_>>().join(", ")));
        let looks = (0..rows).filter(|&row| report.suggested[row] != report.given[row]).count();
        pairs.add("look wrong", count(looks, "label", "labels"));
        pairs.add(
            "estimate",
            format!(
                "{:.0} wrong labels ({:.1} %); where classes overlap, right ones are counted too",
                report.wrong_labels(),
                100.0 * report.wrong_share
            ),
        );
        let given_up = report.truncated.iter().filter(|&&truncated| truncated).count();
        let summary = &report.model.summary;
        let (fit, kernel) = (report.loss_words(summary.truncation), report.model.predictor.kernel.name());
        let c = short(summary.c);
        pairs.add(
            "given up",
            format!("{} by the fit to all rows ({fit}, {kernel} with C = {c})", count(given_up, "row", "rows")),
        );
        let conflicting: usize = report.conflicts.iter().map(Vec::len).sum();
        if conflicting > 0 {
            pairs.add("conflicts", format!("{conflicting} rows share their values with a row of another label"));
        }
        let far = report.far.iter().flatten().count();
        if far > 0 {
            pairs.add("far", format!("{} far from all others", count(far, "row", "rows")));
        }
        if !report.small_classes.is_empty() {
            let names = report.small_classes.iter().map(|&class| self.class(class)).collect();
            pairs.add("near-empty", output::listed(names, 0));
        }
        pairs.add("time", seconds(self.audit_seconds));
        for (name, path) in [("suspects", &request.csv), ("page", &request.html)] {
            if let Some(path) = path.as_deref().filter(|path| !destination::is_standard_output(path)) {
                pairs.add(name, path.display().to_string());
            }
        }
        pairs.render() + &self.noise_text() + &self.suspects_text(request.top)
    }

    /// The largest shares of labels that belong to another class.
    fn noise_text(&self) -> String {
        let report = &self.report;
        let mut shares = Vec::new();
        for (given, row) in report.noise.iter().enumerate() {
            shares.extend(
                row.iter()
                    .enumerate()
                    .filter(|(class, share)| *class != given && **share > 0.0)
                    .map(|(class, &share)| (given as u32, class as u32, share)),
            );
        }
        if shares.is_empty() {
            return String::new();
        }
        let k = report.classes.len();
        if k <= MATRIX {
            let names: Vec<String> = report.classes.iter().map(|class| cut(&class_text(class), NARROW)).collect();
            let head: Vec<&str> = std::iter::once("given").chain(names.iter().map(String::as_str)).collect();
            let cell = |share: &f64| if *share == 0.0 { "-".to_string() } else { format!("{:.1} %", 100.0 * share) };
            let line =
                |(name, row): (&String, &Vec<f64>)| std::iter::once(name.clone()).chain(row.iter().map(cell)).collect();
            let rows: Vec<Vec<String>> = names.iter().zip(&report.noise).map(line).collect();
            return format!("\nestimated true class of the rows given a class\n{}", output::table(&head, &rows));
        }
        shares.sort_by(|a, b| b.2.total_cmp(&a.2));
        let line = |&(given, class, share): &(u32, u32, f64)| {
            vec![cut(&self.class(given), NARROW), cut(&self.class(class), NARROW), format!("{:.1} %", 100.0 * share)]
        };
        let rows: Vec<Vec<String>> = shares.iter().take(SHARES).map(line).collect();
        format!("\nmost frequent mistakes\n{}", output::table(&["given", "likely", "share"], &rows))
    }

    fn suspects_text(&self, top: usize) -> String {
        let suspects = &self.report.suspects;
        if suspects.is_empty() {
            return "\nno suspects\n".to_string();
        }
        let line = |suspect: &Suspect| {
            vec![
                (suspect.row + 1).to_string(),
                self.table.lines[suspect.row].to_string(),
                cut(&self.class(suspect.given), NARROW),
                cut(&self.class(suspect.suggested), NARROW),
                format!("{:.3}", suspect.score),
            ]
        };
        let rows: Vec<Vec<String>> = suspects.iter().take(top).map(line).collect();
        let table = output::table(&["row", "line", "given", "looks like", "score"], &rows);
        // the reasons are of any length: to the left, after the aligned columns
        let width = table.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let reasons = suspects.iter().take(top).map(|suspect| self.report.words(suspect).join("; "));
        let reasons = std::iter::once("reasons".to_string()).chain(reasons);
        let lines = table.lines().zip(reasons).map(|(line, reasons)| {
            let gap = " ".repeat(width - line.chars().count());
            format!("{line}{gap}  {reasons}\n")
        });
        let more = suspects.len().saturating_sub(top);
        let more = if more > 0 { format!("... and {more} more\n") } else { String::new() };
        format!(
            "\n{}, most suspect first\n{}{more}",
            count(suspects.len(), "suspect", "suspects"),
            lines.collect::<String>()
        )
    }

    fn json(&self, request: &AuditArgs) -> Value {
        let report = &self.report;
        let suspects: Vec<Value> = report.suspects.iter().map(|suspect| self.suspect_json(suspect)).collect();
        let rows = |of: &[bool]| -> Vec<usize> { (0..of.len()).filter(|&row| of[row]).map(|row| row + 1).collect() };
        let far: Vec<bool> = report.far.iter().map(Option::is_some).collect();
        let conflicts: Vec<Vec<usize>> =
            report.conflicts.iter().map(|group| group.iter().map(|row| row + 1).collect()).collect();
        let class = |&code: &u32| class_json(&report.classes[code as usize]);
        let chosen: Vec<Value> = report
            .chosen
            .iter()
            .map(|chosen| json!({"kernel": chosen.kernel.name(), "gamma": chosen.kernel.gamma(), "c": chosen.c}))
            .collect();
        let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
        json!({
            "command": "audit",
            "rows": report.given.len(),
            "features": self.table.cols(),
            "classes": report.classes.iter().map(class_json).collect::<Vec<_>>(),
            "folds": report.folds,
            "repeats": report.repeats,
            "seed": report.seed,
            "truncation": report.truncation,
            "final_truncation": report.model.summary.truncation,
            "final_c": report.model.summary.c,
            "fits": chosen,
            "wrong_share": report.wrong_share,
            "noise": report.noise,
            "confusion": report.confusion,
            "given_up": rows(&report.truncated),
            "far": rows(&far),
            "conflicts": conflicts,
            "small_classes": report.small_classes.iter().map(class).collect::<Vec<_>>(),
            "suspects": suspects,
            "csv": path(&request.csv),
            "html": path(&request.html),
            "seconds": self.audit_seconds,
        })
    }

    fn suspect_json(&self, suspect: &Suspect) -> Value {
        let class = |code: u32| class_json(&self.report.classes[code as usize]);
        json!({
            "row": suspect.row + 1,
            "line": self.table.lines[suspect.row],
            "given": class(suspect.given),
            "suggested": class(suspect.suggested),
            "score": suspect.score,
            "confidence": suspect.confidence,
            "agreement": suspect.agreement,
            "margin": self.report.margins[suspect.row],
            "reasons": self.report.words(suspect),
            "kinds": suspect.reasons.iter().map(|reason| reason.name()).collect::<Vec<_>>(),
        })
    }
}

/// The page of an audit as it is written.
pub fn page(report: &AuditReport, x: &dyn Design, source: &str, cells: Cells) -> outlast::Result<Vec<u8>> {
    let name = |cells: &Cells| cells.header.as_ref()?.get(cells.target_column?).cloned();
    let target = name(&cells).unwrap_or_else(|| "label".to_string());
    let page = io::audit_page(report, x, source, &target, cells)?;
    let mut html = Vec::new();
    io::write_page(&page, &mut html)?;
    Ok(html)
}
