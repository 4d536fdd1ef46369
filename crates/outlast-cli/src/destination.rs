//! Where results go: files, checked before any work is done, or standard output for `-`.

use crate::failure::Failure;
use outlast::io;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;

/// Whether a name means standard output.
pub fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Checks every file a command will write, before it reads anything: the folder must be there, nothing that is read or written besides may be
/// the same file, and standard output can take one thing only. Each comes with the option that named it. True if one of them takes
/// standard output.
pub fn check(files: &[(&str, Option<&Path>)], inputs: &[&Path], json: bool) -> Result<bool, Failure> {
    let mut taken = json.then_some("--json");
    let mut before: Vec<(&str, &Path)> = Vec::new();
    for &(option, path) in files {
        let Some(path) = path else { continue };
        if !is_standard_output(path) {
            check_file(option, path)?;
            let refuse = |problem: &str| Err(Failure::Usage(format!("{option} {}: {problem}", path.display())));
            if inputs.iter().any(|input| is_same_file(input, path)) {
                return refuse("is read by this command, and would be lost; name another file");
            }
            if let Some((other, _)) = before.iter().find(|(_, other)| *other == path) {
                return refuse(&format!("{other} names the same file"));
            }
            before.push((option, path));
            continue;
        }
        if let Some(other) = taken {
            return Err(Failure::Usage(format!("{option} - and {other} can't both have standard output")));
        }
        taken = Some(option);
    }
    Ok(taken.is_some() && !json)
}

fn check_file(option: &str, path: &Path) -> Result<(), Failure> {
    let refuse = |problem: String| Err(Failure::Usage(format!("{option} {}: {problem}", path.display())));
    if path.is_dir() {
        return refuse("is a folder".to_string());
    }
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) if !folder.is_dir() => refuse(format!("there is no folder {}", folder.display())),
        _ => Ok(()),
    }
}

/// Whether two names are of one file; a device is none.
fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other && one.is_file(),
        _ => false,
    }
}

/// Refuses to fill a terminal with bytes that are no text.
pub fn check_no_terminal(option: &str, path: Option<&Path>) -> Result<(), Failure> {
    if path.is_some_and(is_standard_output) && std::io::stdout().is_terminal() {
        let problem = "the model is no text for a terminal; name a file or send standard output to one";
        return Err(Failure::Usage(format!("{option} -: {problem}")));
    }
    Ok(())
}

/// Writes a file, all of it or nothing, or standard output for `-`. A reader of standard output that has seen enough is no
/// error.
pub fn write(path: &Path, work: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Failure> {
    if !is_standard_output(path) {
        return Ok(io::write_atomically(path, work)?);
    }
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let written = work(&mut out).and_then(|()| out.flush());
    // what is still buffered for a reader that is gone must not be written again
    let _ = out.into_parts();
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}
