//! How a command ends when it does not end well.

use crate::args::Cli;
use crate::output::tell;
use clap::CommandFactory;
use outlast::Error;
use outlast::error::ParseKind;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Why a command did not finish as asked.
#[derive(Debug)]
pub enum Failure {
    /// Bad input, or a file that could not be read or written.
    Core(Error),
    /// Arguments that do not fit together.
    Usage(String),
    /// A finding the user asked to fail on.
    Finding(String),
    /// Interrupted, but what is done is kept: how to go on.
    Stopped(String),
    /// Standard output could not be written.
    Output(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Core(error)
    }
}

impl Failure {
    /// Tells the user, and gives the exit code.
    pub fn report(&self) -> ExitCode {
        match self {
            Failure::Output(error) => bad(&format!("standard output: {error}"), None),
            Failure::Core(Error::Interrupted) => {
                tell("interrupted; nothing was written");
                ExitCode::from(130)
            }
            Failure::Stopped(how) => {
                tell(&format!("interrupted; {how}"));
                ExitCode::from(130)
            }
            Failure::Core(Error::Parameter { name, value, allowed }) => {
                bad(&format!("{} {value} is not allowed: it must be {allowed}", option(name)), None)
            }
            Failure::Core(Error::TimeLimit) => {
                let problem = "the time was up before a single point of the grid was judged";
                bad(problem, Some("raise --time-limit, or give fewer values, rows or folds"))
            }
            Failure::Core(Error::ReadingTime) => {
                bad("the time was up before all rows were read", Some("raise --time-limit"))
            }
            Failure::Core(error) => bad(&error.to_string(), hint(error)),
            Failure::Usage(problem) => bad(problem, None),
            Failure::Finding(finding) => {
                tell(&format!("failed: {finding}"));
                ExitCode::from(1)
            }
        }
    }
}

fn bad(problem: &str, hint: Option<&str>) -> ExitCode {
    tell(&format!("error: {problem}"));
    if let Some(hint) = hint {
        tell(&format!("hint: {hint}"));
    }
    ExitCode::from(2)
}

/// A parameter as the user wrote it: the option of that name, if there is one.
fn option(name: &str) -> String {
    let long = name.replace('_', "-");
    let command = Cli::command();
    let mut options = command.get_subcommands().flat_map(|command| command.get_arguments());
    match options.find(|option| option.get_long().is_some_and(|known| known.eq_ignore_ascii_case(&long))) {
        Some(option) if long.len() == 1 => option.get_short().map_or(format!("--{long}"), |short| format!("-{short}")),
        Some(option) => format!("--{}", option.get_long().unwrap_or(&long)),
        None => name.to_string(),
    }
}

/// What the user might do about it, where that is not in the message already.
fn hint(error: &Error) -> Option<&'static str> {
    match error {
        Error::Parse { kind: ParseKind::NotANumber, line: Some(1), .. } => {
            Some("if the first line holds the names of the columns, say --header")
        }
        Error::Parse { kind: ParseKind::NotANumber, .. } => Some(
            "every column but the target must hold numbers; name the target with --target, leave out others with --ignore",
        ),
        Error::Parse { kind: ParseKind::FieldCount, .. } => {
            Some("if fields are separated by something else, say so with --delimiter")
        }
        Error::Parse { kind: ParseKind::IndexZero, .. } => Some("say --zero-based if indices count from 0"),
        Error::Parse { kind: ParseKind::NoTarget, .. } => Some("name it with --target"),
        Error::Classes { .. } | Error::Parse { kind: ParseKind::ManyClasses, .. } => Some(
            "the labels are taken from --target, by default the one column named label, target, class or y, else the last",
        ),
        Error::ModelFile { file, .. } if looks_like_data(file) => {
            Some("this looks like data, where a file written by outlast fit -o MODEL must come first")
        }
        _ => None,
    }
}

fn looks_like_data(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ["csv", "tsv", "svm", "libsvm", "txt", "gz"].iter().any(|e| ending == *e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_named_as_options() {
        for (name, shown) in [("class_weight", "--class-weight"), ("C", "-C"), ("n_jobs", "--n-jobs"), ("eta", "eta")] {
            assert_eq!(option(name), shown);
        }
    }
}
