//! The page of an audit, from its report.

use super::cells::Cells;
use super::page::{Page, Suspect};
use crate::data::Design;
use crate::error::Result;
use crate::select::audit::{AuditReport, components};

/// Fills the page of an audit. `source` and `target` are the names of the table and of its labels; `x` is what was audited.
///
/// ```
/// use outlast::{Audit, Dense};
/// use outlast::io::{Cells, audit_page, write_page};
///
/// let rows: Vec<[f64; 1]> = (0..20).map(|i| [f64::from(i)]).collect();
/// let y: Vec<bool> = (0..20).map(|i| i >= 10).collect();
/// let x = Dense::from_rows(&rows);
/// let report = Audit::default().run(&x, &y)?;
/// let page = audit_page(&report, &x, "numbers.csv", "large", Cells::default())?;
/// let mut html = Vec::new();
/// write_page(&page, &mut html)?;
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn audit_page(report: &AuditReport, x: &dyn Design, source: &str, target: &str, cells: Cells) -> Result<Page> {
    let single = |values: &[f64]| values.iter().map(|&value| value as f32).collect::<Vec<f32>>();
    let suspect = |found: &crate::select::audit::Suspect| Suspect {
        row: found.row,
        score: found.score,
        suggested: found.suggested as usize,
        confidence: found.confidence,
        agreement: found.agreement,
        reasons: report.words(found),
    };
    let empty = cells.columns.is_empty();
    Ok(Page {
        version: env!("CARGO_PKG_VERSION").to_string(),
        source: source.to_string(),
        target: target.to_string(),
        target_column: if empty { None } else { cells.target_column },
        header: if empty { None } else { cells.header },
        numeric: cells.numeric,
        cells: cells.columns,
        classes: report.classes.iter().map(ToString::to_string).collect(),
        labels: report.given.iter().map(|&code| code as usize).collect(),
        first_line: cells.first_line,
        components: components(x)?,
        margins: single(&report.margins),
        scores: single(&report.scores),
        suspects: report.suspects.iter().map(suspect).collect(),
        truncation: report.truncation,
        confusion: report.confusion.clone(),
        noise: report.noise.clone(),
        model: card(report, x),
        headline: headline(report),
    })
}

/// The numbers that come first.
fn headline(report: &AuditReport) -> Vec<(String, String)> {
    let line = |name: &str, value: String| (name.to_string(), value);
    let conflicting: usize = report.conflicts.iter().map(Vec::len).sum();
    let far = report.far.iter().flatten().count();
    let likely = |row: &usize| report.suggested[*row] != report.given[*row];
    vec![
        line("rows", report.given.len().to_string()),
        line("suspects", report.suspects.len().to_string()),
        line("labels that look wrong", (0..report.given.len()).filter(likely).count().to_string()),
        line("estimated wrong labels", format!("{:.0} ({:.1} %)", report.wrong_labels(), 100.0 * report.wrong_share)),
        line("rows in conflict", conflicting.to_string()),
        line("far rows", far.to_string()),
        line("near-empty classes", report.small_classes.len().to_string()),
    ]
}

/// What the fits were.
fn card(report: &AuditReport, x: &dyn Design) -> Vec<(String, String)> {
    let line = |name: &str, value: String| (name.to_string(), value);
    let summary = &report.model.summary;
    let method = if report.truncation.is_some() { "truncated hinge" } else { "hinge without truncation" };
    let mut lines = vec![line("method", format!("{method}, {}, columns of variance 1", report.scheme()))];
    for chosen in &report.chosen {
        let gamma = chosen.kernel.gamma().map_or(String::new(), |gamma| format!(", gamma {gamma:.4}"));
        lines.push(line(chosen.kernel.name(), format!("C {}{gamma}", chosen.c)));
    }
    let truncation = |at: Option<f64>| at.map_or("none".to_string(), |at| format!("{at:.4}"));
    lines.push(line("truncation", truncation(report.truncation)));
    lines.push(line(
        "cross-validation",
        format!("{} folds, {} times, seed {}", report.folds, report.repeats, report.seed),
    ));
    let kernel = report.model.predictor.kernel.name();
    lines.push(line(
        "fit to all rows",
        format!("{kernel}, C {}, truncation {}", summary.c, truncation(summary.truncation)),
    ));
    lines.push(line("objective", format!("{:.6}", summary.objective)));
    lines.push(line("relative gap", format!("{:.1e}", summary.gap)));
    lines.push(line("support vectors", report.model.support_count().to_string()));
    lines.push(line("rows given up", summary.outliers.to_string()));
    let selected = report.model.selected().map_or(x.cols(), |selected| selected.len());
    lines.push(line("variables", format!("{selected} of {}", x.cols())));
    lines
}
