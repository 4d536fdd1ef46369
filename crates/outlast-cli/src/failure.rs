//! How a command ends when it does not end well.

use outlast::Error;
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
            // whoever read our output has seen enough
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Failure::Output(error) => bad(&format!("standard output: {error}"), None),
            Failure::Core(Error::Interrupted) => {
                eprintln!("interrupted; nothing was written");
                ExitCode::from(130)
            }
            Failure::Core(error) => bad(&error.to_string(), hint(error)),
            Failure::Usage(problem) => bad(problem, None),
            Failure::Finding(finding) => {
                eprintln!("failed: {finding}");
                ExitCode::from(1)
            }
        }
    }
}

fn bad(problem: &str, hint: Option<&str>) -> ExitCode {
    eprintln!("error: {problem}");
    if let Some(hint) = hint {
        eprintln!("hint: {hint}");
    }
    ExitCode::from(2)
}

/// What the user might do about it, where that is not in the message already.
fn hint(error: &Error) -> Option<&'static str> {
    match error {
        Error::Parse { line: Some(1), problem, .. } if problem.ends_with("is not a number") => {
            Some("if the first line holds the names of the columns, say --header")
        }
        Error::Parse { problem, .. } if problem.ends_with("is not a number") => {
            Some("every column but the target must hold numbers; name the target with --target")
        }
        Error::Parse { problem, .. } if problem.starts_with("the row has") => {
            Some("if fields are separated by something else, say so with --delimiter")
        }
        Error::Parse { problem, .. } if problem.starts_with("feature index 0") => {
            Some("say --zero-based if indices count from 0")
        }
        Error::Parse { problem, .. } if problem.starts_with("there is no target column;") => {
            Some("name it with --target")
        }
        Error::Classes { .. } => Some("the labels are taken from --target, by default the last column"),
        Error::ModelFile { file, .. } if looks_like_data(file) => {
            Some("the model comes first, then the data: outlast predict MODEL DATA")
        }
        _ => None,
    }
}

fn looks_like_data(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ["csv", "tsv", "svm", "libsvm", "txt", "gz"].iter().any(|e| ending == *e))
}
