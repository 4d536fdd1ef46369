//! Lines of a page's tables: numbers and statements, each beside what the paper has, with the verdict.

use crate::verdict::{Printed, Sample, Verdict};
use serde_json::{Value, json};

/// A number printed and the number here.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Of what.
    pub what: String,
    /// As printed; `None` where the paper shows no number.
    pub paper: Option<Printed>,
    /// Here.
    pub here: Sample,
    /// Digits shown after the point.
    pub decimals: usize,
}

impl Row {
    /// A line.
    pub fn new(what: impl Into<String>, paper: Option<Printed>, here: Sample, decimals: usize) -> Row {
        Row { what: what.into(), paper, here, decimals }
    }

    /// What is said of it.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(self.paper.as_ref(), &self.here)
    }

    pub(crate) fn markdown(&self) -> String {
        let paper = self.paper.map_or("-".to_string(), |paper| paper.text());
        let (here, error) = (shown(self.here.mean, self.decimals), shown(self.here.error, self.decimals + 1));
        format!("| {} | {paper} | {here} | {error} | {} |\n", self.what, self.verdict().text())
    }

    pub(crate) fn json(&self) -> Value {
        json!({"what": self.what, "paper": self.paper.map(|paper| paper.value()), "here": finite(self.here.mean),
            "standard_error": finite(self.here.error), "replications": self.here.count, "verdict": self.verdict().name()})
    }
}

/// A statement and what was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The statement.
    pub text: String,
    /// What the number here would have to be.
    pub stated: String,
    /// The number that decides, or several.
    pub here: String,
    /// Its standard error; empty where there is none.
    pub error: String,
    /// What is said of it.
    pub verdict: Verdict,
}

impl Statement {
    /// That something is more, by differences replication by replication, positive as stated.
    pub fn difference(text: impl Into<String>, differences: &[f64], decimals: usize) -> Statement {
        Statement::of_sample(text, "> 0", differences, decimals, Verdict::of_difference)
    }

    /// That something is not less: fails only where it is.
    pub fn at_least(text: impl Into<String>, differences: &[f64], decimals: usize) -> Statement {
        let judge = |sample: &Sample| match Verdict::of_difference(sample) {
            Verdict::Open if sample.count > 1 => Verdict::Holds,
            verdict => verdict,
        };
        Statement::of_sample(text, ">= 0", differences, decimals, judge)
    }

    /// That there is no difference.
    pub fn equality(text: impl Into<String>, differences: &[f64], decimals: usize) -> Statement {
        Statement::of_sample(text, "0", differences, decimals, Verdict::of_equality)
    }

    fn of_sample(
        text: impl Into<String>,
        stated: &str,
        values: &[f64],
        decimals: usize,
        judge: impl Fn(&Sample) -> Verdict,
    ) -> Statement {
        let sample = Sample::of(values);
        Statement {
            text: text.into(),
            stated: stated.to_string(),
            here: shown(sample.mean, decimals),
            error: shown(sample.error, decimals + 1),
            verdict: judge(&sample),
        }
    }

    /// That something is so every time it was looked at.
    pub fn always(text: impl Into<String>, held: usize, of: usize) -> Statement {
        Statement { stated: "all".to_string(), ..Statement::exact(text, held == of, format!("{held} of {of}")) }
    }

    /// That something is so, which is not left to chance: an equation, a count.
    pub fn exact(text: impl Into<String>, holds: bool, here: impl Into<String>) -> Statement {
        let verdict = if holds { Verdict::Holds } else { Verdict::Fails };
        Statement { text: text.into(), stated: "so".to_string(), here: here.into(), error: String::new(), verdict }
    }

    pub(crate) fn markdown(&self, of_paper: bool) -> String {
        let (stated, error) =
            (if of_paper { &self.stated } else { "-" }, if self.error.is_empty() { "-" } else { &self.error });
        format!("| {} | {stated} | {} | {error} | {} |\n", self.text, self.here, self.verdict.text())
    }

    pub(crate) fn json(&self) -> Value {
        json!({"statement": self.text, "stated": self.stated, "here": self.here, "standard_error": self.error,
            "verdict": self.verdict.name()})
    }
}

fn shown(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        _ if !value.is_finite() => "-".to_string(),
        // what is rounded to 0 has no sign
        Some(digits) if digits.bytes().all(|digit| digit == b'0' || digit == b'.') => digits.to_string(),
        _ => text,
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_judged_by_the_rule_and_shown_with_its_numbers() {
        let more = Statement::difference("a", &[1.0, 1.1, 0.9], 1);
        assert_eq!(more.markdown(true), "| a | > 0 | 1.0 | 0.06 | holds |\n");
        assert_eq!(more.markdown(false), "| a | - | 1.0 | 0.06 | holds |\n");
        assert_eq!(Statement::equality("a", &[1.0, 1.1, 0.9], 1).verdict, Verdict::Fails);
        assert_eq!([shown(-0.00001, 3), shown(-0.0006, 3), shown(f64::NAN, 3)], ["0.000", "-0.001", "-"]);
        assert_eq!(Statement::always("a", 3, 3).verdict, Verdict::Holds);
        assert_eq!(Statement::always("a", 2, 3).markdown(true), "| a | all | 2 of 3 | - | **fails** |\n");
    }
}
