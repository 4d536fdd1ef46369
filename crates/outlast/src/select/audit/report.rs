//! What an audit found: scores, suspects with their reasons, and how many labels of which class are wrong.

use super::chances::pool;
use super::fits::Scheme;
use super::scaled::{Scale, Scaled};
use super::{Audit, FEWEST, Verdict};
use crate::data::{Class, Labels};
use crate::error::shown;
use crate::model::Model;
use crate::problem::KernelFunction;
use std::collections::HashMap;

/// Share of a class's own rows that are not sure.
const UNSURE: f64 = 0.2;
/// Score of a row with values far from all others, if its label does not ask for more.
const FAR_SCORE: f64 = 0.5;

/// Which part of the chance of classes that are neither the given nor the likeliest other one is not counted.
const NEITHER: f64 = 1.0 / 3.0;

/// Chance of the given label where nothing is known of its class.
const UNKNOWN: f64 = 0.5;

/// Why a row is suspect.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// Fits made without it take it for another class.
    LooksLike {
        /// That class, as a position among the classes.
        class: u32,
        /// Fits (repeats x kernels) that say so.
        fits: usize,
        /// Fits that were asked.
        of: usize,
    },
    /// Its mean margin in fits made without it lies beyond the truncation: they would give it up.
    BeyondTruncation {
        /// The margin.
        margin: f64,
        /// The truncation.
        truncation: f64,
    },
    /// The fit to all rows gives it up, though it had a say in it.
    GivenUp,
    /// Another row has the same values and another label.
    Conflict {
        /// The first such row, counted from 0.
        with: usize,
        /// Rows with these values.
        rows: usize,
    },
    /// Its values are far from those of all other rows.
    Far {
        /// How many times as far as usual.
        times: f64,
    },
    /// Its class has hardly any rows.
    SmallClass {
        /// How many.
        rows: usize,
    },
}

impl Reason {
    /// A short name for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Reason::LooksLike { .. } => "looks_like",
            Reason::BeyondTruncation { .. } => "beyond_truncation",
            Reason::GivenUp => "given_up",
            Reason::Conflict { .. } => "conflict",
            Reason::Far { .. } => "far",
            Reason::SmallClass { .. } => "small_class",
        }
    }

    /// The reason in words; rows are counted from 1.
    pub fn words(&self, classes: &[Class]) -> String {
        match self {
            Reason::LooksLike { class, fits, of } => {
                let class = classes.get(*class as usize).map(|class| shown(&class.to_string())).unwrap_or_default();
                format!("looks like {class} in {fits} of {of} fits without it")
            }
            Reason::BeyondTruncation { margin, truncation } => {
                format!("margin {margin:.2}, beyond the truncation at {truncation}")
            }
            Reason::GivenUp => "given up by the fit to all rows".to_string(),
            Reason::Conflict { with, rows: 2 } => format!("same values as row {}, other label", with + 1),
            Reason::Conflict { with, rows } => {
                format!("same values as row {}, other label ({rows} rows have these values)", with + 1)
            }
            Reason::Far { times } => format!("values {} times as far from other rows as usual", rounded(*times)),
            Reason::SmallClass { rows: 1 } => "the only row of its class".to_string(),
            Reason::SmallClass { rows } => format!("one of only {rows} rows of its class"),
        }
    }
}

fn rounded(times: f64) -> String {
    if times < 1000.0 { format!("{times:.1}") } else { format!("{times:.0e}") }
}

/// A row to look at.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// The row, counted from 0.
    pub row: usize,
    /// Its label, as a position among the classes.
    pub given: u32,
    /// The class it looks like; the given one where only its values are odd.
    pub suggested: u32,
    /// Chance of that class.
    pub confidence: f64,
    /// Share of the fits without it that say so.
    pub agreement: f64,
    /// How suspect it is, 0 to 1.
    pub score: f64,
    /// Why.
    pub reasons: Vec<Reason>,
}

/// A kernel and the C chosen for it.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The kernel, on columns of variance 1.
    pub kernel: KernelFunction,
    /// C
    pub c: f64,
    /// Mean of -ln chance of the given label, over held-out rows.
    pub surprise: f64,
}

/// What an audit found. Lists over rows are in the order of the table, matrices k x k in that of the classes.
#[derive(Debug, Clone)]
pub struct AuditReport {
    /// The classes, sorted.
    pub classes: Vec<Class>,
    /// The given label of each row, as a position among the classes.
    pub given: Vec<u32>,
    /// How suspect each row is, 0 to 1: one minus the chance of its label and a third of that of classes which are neither its own nor the
    /// likeliest other; and at least 0.5 for rows far from all others.
    pub scores: Vec<f64>,
    /// The likeliest class of each row.
    pub suggested: Vec<u32>,
    /// Its chance.
    pub confidence: Vec<f64>,
    /// Share of the fits without the row in which it is the likeliest.
    pub agreement: Vec<f64>,
    /// Chances of the classes, rows x classes.
    pub chances: Vec<f64>,
    /// Mean functional margin of each row in fits without it: the least over the other classes.
    pub margins: Vec<f64>,
    /// The rows to look at, most suspect first.
    pub suspects: Vec<Suspect>,
    /// Of the rows given a class (row), the estimated share that truly is of a class (column).
    pub noise: Vec<Vec<f64>>,
    /// Rows by given class (row) and likeliest class (column).
    pub confusion: Vec<Vec<usize>>,
    /// Estimated share of wrong labels.
    pub wrong_share: f64,
    /// Rows with the same values and different labels, group by group.
    pub conflicts: Vec<Vec<usize>>,
    /// How many times as far as usual from other rows, for rows that are far.
    pub far: Vec<Option<f64>>,
    /// Classes with hardly any rows.
    pub small_classes: Vec<u32>,
    /// Rows that the fit to all rows gives up.
    pub truncated: Vec<bool>,
    /// The kernels, and the C chosen for each.
    pub chosen: Vec<Chosen>,
    /// Where the loss of the fits in folds is cut off.
    pub truncation: Option<f64>,
    /// The fit to all rows of the classes that can be judged, on columns of variance 1.
    pub model: Model,
    /// What was done to each column before the fits.
    pub scales: Vec<Scale>,
    /// Folds.
    pub folds: usize,
    /// Repeats.
    pub repeats: usize,
    /// Seed.
    pub seed: u64,
}

impl AuditReport {
    /// The reasons of a suspect in words.
    pub fn words(&self, suspect: &Suspect) -> Vec<String> {
        suspect.reasons.iter().map(|reason| reason.words(&self.classes)).collect()
    }

    /// The loss of a fit in words.
    pub fn loss_words(&self, truncation: Option<f64>) -> String {
        truncation.map_or("hinge without truncation".to_string(), |at| {
            let text = format!("{at:.4}");
            format!("hinge truncated at {}", text.trim_end_matches('0').trim_end_matches('.'))
        })
    }

    /// How the fits in folds take the classes: in pairs, or each against all others.
    pub fn scheme(&self) -> &'static str {
        let judged = self.confusion.iter().filter(|row| row.iter().sum::<usize>() >= FEWEST).count();
        match Scheme::of(judged) {
            Scheme::Pairs(2) => "two classes",
            Scheme::Pairs(_) => "pairs of classes",
            Scheme::Rest(_) => "each class against the rest",
        }
    }

    /// How many labels are estimated to be wrong: rows that another class claims surely. Where classes overlap, right labels are among them.
    pub fn wrong_labels(&self) -> f64 {
        self.wrong_share * self.given.len() as f64
    }
}

/// Everything that was found out about the rows.
pub(super) struct Evidence<'a> {
    pub labels: &'a Labels,
    /// The classes that could be judged.
    pub judged: &'a [u32],
    /// By kernel, one for each repeat.
    pub verdicts: Vec<Vec<Verdict>>,
    pub conflicts: Vec<Vec<usize>>,
    pub far: Vec<Option<f64>>,
    pub nearly_empty: usize,
}

impl Evidence<'_> {
    pub fn report(
        self,
        chosen: Vec<Chosen>,
        truncation: Option<f64>,
        (model, truncated): (Model, Vec<bool>),
        scaled: Scaled,
        audit: &Audit,
    ) -> AuditReport {
        let (n, k) = (self.labels.len(), self.labels.classes().len());
        let given = self.labels.codes().to_vec();
        let chances = self.chances();
        let of = |row: usize| &chances[row * k..(row + 1) * k];
        let suggested: Vec<u32> = (0..n).map(|row| likeliest(of(row), given[row])).collect();
        let confidence: Vec<f64> = (0..n).map(|row| of(row)[suggested[row] as usize]).collect();
        let agreement = (0..n).map(|row| self.votes(row, suggested[row]) as f64 / self.fits().count() as f64).collect();
        let margins: Vec<f64> = (0..n).map(|row| self.mean_margin(row)).collect();
        let noise = self.noise(&chances);
        let mut confusion = vec![vec![0; k]; k];
        (0..n).for_each(|row| confusion[given[row] as usize][suggested[row] as usize] += 1);
        let counts = self.labels.counts();
        let wrong: f64 =
            noise.iter().zip(&counts).enumerate().map(|(at, (row, &count))| (1.0 - row[at]) * count as f64).sum();
        let small_classes = (0..k as u32).filter(|&class| counts[class as usize] < self.nearly_empty).collect();
        let scores = self.scores(&chances);
        let mut report = AuditReport {
            classes: self.labels.classes().to_vec(),
            given,
            scores,
            suggested,
            confidence,
            agreement,
            chances,
            margins,
            suspects: Vec::new(),
            noise,
            confusion,
            wrong_share: wrong / n as f64,
            conflicts: self.conflicts.clone(),
            far: self.far.clone(),
            small_classes,
            truncated,
            chosen,
            truncation,
            model,
            scales: scaled.scales,
            folds: audit.folds.min(n),
            repeats: audit.repeats,
            seed: audit.seed,
        };
        report.suspects = self.suspects(&report, &counts);
        report
    }

    /// Chances of all classes, rows x classes: the mean over repeats, pooled over kernels. Where a row's class could not be judged, nothing
    /// is known of it, and the other classes share the rest.
    fn chances(&self) -> Vec<f64> {
        let (n, k, m) = (self.labels.len(), self.labels.classes().len(), self.judged.len());
        let mut chances = vec![0.0; n * k];
        let mut pooled = vec![0.0; m];
        for (row, out) in chances.chunks_exact_mut(k).enumerate() {
            let given = self.labels.codes()[row];
            let known = self.judged.contains(&given);
            let share = if known { 1.0 } else { 1.0 - UNKNOWN };
            let opinions: Vec<Vec<f64>> = self.verdicts.iter().map(|repeats| mean_chances(repeats, row, m)).collect();
            pool(&opinions, &mut pooled);
            self.judged.iter().zip(&pooled).for_each(|(&class, chance)| out[class as usize] = share * chance);
            if !known {
                out[given as usize] = UNKNOWN;
            }
        }
        chances
    }

    /// Every fit that was asked about a row.
    fn fits(&self) -> impl Iterator<Item = &Verdict> {
        self.verdicts.iter().flatten()
    }

    /// In how many verdicts a class is the likeliest.
    fn votes(&self, row: usize, class: u32) -> usize {
        let m = self.judged.len();
        let says = |verdict: &&Verdict| {
            let found = &verdict.chances[row * m..(row + 1) * m];
            let best = (0..m).fold(0, |best, at| if found[at] > found[best] { at } else { best });
            self.judged[best] == class
        };
        self.fits().filter(says).count()
    }

    fn mean_margin(&self, row: usize) -> f64 {
        self.fits().map(|verdict| verdict.margins[row]).sum::<f64>() / self.fits().count() as f64
    }

    fn scores(&self, chances: &[f64]) -> Vec<f64> {
        let k = self.labels.classes().len();
        let codes = self.labels.codes();
        let score = |row: usize| match self.judged.contains(&codes[row]) {
            true => doubt(&chances[row * k..(row + 1) * k], codes[row] as usize),
            false => 1.0 - UNKNOWN,
        };
        let mut scores: Vec<f64> = (0..codes.len()).map(score).collect();
        for group in &self.conflicts {
            let mut counts: HashMap<u32, usize> = HashMap::new();
            group.iter().for_each(|&row| *counts.entry(codes[row]).or_default() += 1);
            for &row in group {
                scores[row] = scores[row].max(1.0 - counts[&codes[row]] as f64 / group.len() as f64);
            }
        }
        for (score, far) in scores.iter_mut().zip(&self.far) {
            *score = if far.is_some() { score.max(FAR_SCORE) } else { *score };
        }
        scores
    }

    /// Shares by given class of the rows that are surely of some class: at least as sure as most rows that bear its label and look like it.
    /// Rows of a class are as sure whatever label they were given, so that as many of them count with every label. A class without
    /// any such row is taken to be right.
    fn noise(&self, chances: &[f64]) -> Vec<Vec<f64>> {
        let (k, codes) = (self.labels.classes().len(), self.labels.codes());
        let likeliest = |row: usize| {
            let found = &chances[row * k..(row + 1) * k];
            (0..k).max_by(|&a, &b| found[a].total_cmp(&found[b])).map(|class| (class, found[class]))
        };
        let mut own = vec![Vec::new(); k];
        for (row, &code) in codes.iter().enumerate() {
            if let Some((class, chance)) = likeliest(row).filter(|(class, _)| *class == code as usize) {
                own[class].push(chance);
            }
        }
        let threshold: Vec<f64> = own
            .iter_mut()
            .map(|chances| {
                chances.sort_by(f64::total_cmp);
                chances.get((UNSURE * chances.len() as f64) as usize).copied().unwrap_or(f64::INFINITY)
            })
            .collect();
        let mut joint = vec![vec![0.0; k]; k];
        for (row, &code) in codes.iter().enumerate() {
            if let Some((class, _)) = likeliest(row).filter(|&(class, chance)| chance >= threshold[class]) {
                joint[code as usize][class] += 1.0;
            }
        }
        for (class, row) in joint.iter_mut().enumerate() {
            let sum: f64 = row.iter().sum();
            match sum > 0.0 && self.judged.contains(&(class as u32)) {
                true => row.iter_mut().for_each(|value| *value /= sum),
                false => {
                    row.fill(0.0);
                    row[class] = 1.0;
                }
            }
        }
        joint
    }

    fn suspects(&self, report: &AuditReport, counts: &[usize]) -> Vec<Suspect> {
        let mut conflict: HashMap<usize, Reason> = HashMap::new();
        for group in &self.conflicts {
            for &row in group {
                let other = group.iter().find(|&&other| report.given[other] != report.given[row]);
                if let Some(&with) = other {
                    conflict.insert(row, Reason::Conflict { with, rows: group.len() });
                }
            }
        }
        let mut suspects = Vec::new();
        for (row, &given) in report.given.iter().enumerate() {
            let (suggested, rows) = (report.suggested[row], counts[given as usize]);
            let mut reasons = Vec::new();
            if suggested != given {
                let (fits, of) = (self.votes(row, suggested), self.fits().count());
                reasons.push(Reason::LooksLike { class: suggested, fits, of });
            }
            reasons.extend(conflict.remove(&row));
            reasons.extend(self.far[row].map(|times| Reason::Far { times }));
            if rows < self.nearly_empty {
                reasons.push(Reason::SmallClass { rows });
            }
            if reasons.is_empty() && !report.truncated[row] {
                continue;
            }
            let margin = report.margins[row];
            if let Some(truncation) = report.truncation.filter(|&truncation| margin < truncation) {
                reasons.push(Reason::BeyondTruncation { margin, truncation });
            }
            if report.truncated[row] {
                reasons.push(Reason::GivenUp);
            }
            suspects.push(Suspect {
                row,
                given,
                suggested,
                confidence: report.confidence[row],
                agreement: report.agreement[row],
                score: report.scores[row],
                reasons,
            });
        }
        suspects.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
        suspects
    }
}

/// The mean over repeats of a row's chances.
fn mean_chances(repeats: &[Verdict], row: usize, classes: usize) -> Vec<f64> {
    let mut mean = vec![0.0; classes];
    for verdict in repeats {
        let found = &verdict.chances[row * classes..(row + 1) * classes];
        mean.iter_mut().zip(found).for_each(|(mean, chance)| *mean += chance / repeats.len() as f64);
    }
    mean
}

/// How doubtful the given class is: one minus its chance, less a part of what goes to neither it nor the likeliest other.
fn doubt(chances: &[f64], given: usize) -> f64 {
    let other =
        chances.iter().enumerate().filter(|(class, _)| *class != given).fold(0.0f64, |most, (_, p)| most.max(*p));
    let rest = (1.0 - chances[given] - other).max(0.0);
    (1.0 - chances[given] - NEITHER * rest).clamp(0.0, 1.0)
}

/// The class with the largest chance; the given one of several.
fn likeliest(chances: &[f64], given: u32) -> u32 {
    let mut best = given as usize;
    for (class, chance) in chances.iter().enumerate() {
        if *chance > chances[best] {
            best = class;
        }
    }
    best as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_looks_like_one_other_class_is_the_most_doubtful() {
        assert!((doubt(&[0.3, 0.7], 0) - 0.7).abs() < 1e-12);
        let (one, spread) = (doubt(&[0.1, 0.9, 0.0, 0.0], 0), doubt(&[0.1, 0.3, 0.3, 0.3], 0));
        assert!((one - 0.9).abs() < 1e-12 && (spread - 0.7).abs() < 1e-12, "{one} {spread}");
        assert_eq!((doubt(&[1.0, 0.0, 0.0], 0), doubt(&[0.0, 1.0, 0.0], 0)), (0.0, 1.0));
    }
}
