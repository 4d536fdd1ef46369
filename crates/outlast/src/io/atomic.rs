//! Files that appear whole or not at all.
//!
//! The bytes go to a temporary file in the same folder, reach the disk, and only then take the name. A reader never sees
//! half a file, and after a failure or a crash the old one is still there.

use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a file atomically. Whatever `write` reports, an existing file changes only if everything went well.
///
/// A symbolic link keeps pointing where it did: the file it points to is replaced. Something that is no ordinary file, like
/// a pipe, is written to directly.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("notes.txt");
/// use std::io::Write;
/// outlast::io::write_atomically(&path, |out| writeln!(out, "all of it"))?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "all of it\n");
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn write_atomically(path: impl AsRef<Path>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let path = path.as_ref();
    attempt(path, write).map_err(|error| Error::io(path, error))
}

fn attempt(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let existing = fs::metadata(path).ok();
    if let Some(metadata) = &existing
        && !metadata.is_file()
    {
        let mut out = BufWriter::new(fs::OpenOptions::new().write(true).open(path)?);
        write(&mut out)?;
        return out.flush();
    }
    let target = if existing.is_some() { fs::canonicalize(path)? } else { path.to_path_buf() };
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let mut temporary = temporary_in(&folder)?;
    {
        let mut out = BufWriter::with_capacity(1 << 16, temporary.as_file_mut());
        write(&mut out)?;
        out.flush()?;
    }
    if let Some(metadata) = existing {
        temporary.as_file().set_permissions(metadata.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|failed| failed.error)?;
    // the new name itself reaches the disk too, where folders can be synced
    if let Ok(folder) = File::open(&folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

fn temporary_in(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".outlast-").suffix(".tmp");
    #[cfg(unix)]
    {
        // as any new file would have it: the process's mask applies
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder).map_err(of_the_system)
}

/// What the operating system said, without the temporary's name, which means nothing to whom it is told. The error that carries both
/// does not hand out its number but in words.
fn of_the_system(error: io::Error) -> io::Error {
    let text = error.to_string();
    let number = text.split_once("(os error ").and_then(|(_, rest)| rest.split_once(')'));
    match number.and_then(|(number, _)| number.parse().ok()) {
        Some(code) => io::Error::from_raw_os_error(code),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_atomically(&path, |out| out.write_all(b"old")).unwrap();
        let failed = write_atomically(&path, |out| {
            out.write_all(&[b'n'; 100_000])?;
            Err(io::Error::other("disk full"))
        });
        assert!(failed.unwrap_err().to_string().contains("disk full"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["file"]);
        let missing = write_atomically(folder.path().join("missing/file"), |_| Ok(())).unwrap_err();
        let Error::Io { source, .. } = &missing else { panic!("{missing}") };
        assert!(source.raw_os_error().is_some() && source.kind() == io::ErrorKind::NotFound, "{source:?}");
        assert!(!missing.to_string().contains(".outlast-"), "{missing}");
        assert!(write_atomically(folder.path(), |_| Ok(())).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_survive() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        write_atomically(&link, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
