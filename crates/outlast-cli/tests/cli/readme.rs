//! Every shell example of the README and of the documentation runs: each page in an empty folder of its own, in order.

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn shell_examples_of_the_pages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    let documents = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(documents.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    let ran: Vec<usize> = pages.iter().map(|page| run_page(page)).collect();
    assert!(ran[0] > 0, "the README shows no use of the command");
    assert!(ran[1..].iter().sum::<usize>() > 5, "the documentation shows little use of the command");
}

/// Runs the blocks of a page that use the command; how many there are.
fn run_page(page: &Path) -> usize {
    let text = std::fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let scripts: Vec<&str> =
        blocks.into_iter().filter(|block| block.contains("outlast ") && !block.contains("cargo ")).collect();
    let folder = tempfile::tempdir().unwrap();
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_outlast"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    for script in &scripts {
        let output =
            Command::new("sh").args(["-euc", script]).current_dir(folder.path()).env("PATH", &path).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}\n{script}\n{error}", page.display());
    }
    scripts.len()
}
