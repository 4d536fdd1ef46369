//! Every shell example of the README runs, in one empty folder, in order.

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn shell_examples_of_the_readme() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(readme).unwrap();
    let blocks: Vec<&str> = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let scripts: Vec<&str> =
        blocks.into_iter().filter(|block| block.contains("outlast ") && !block.contains("cargo ")).collect();
    assert!(!scripts.is_empty(), "the README shows no use of the command");
    let folder = tempfile::tempdir().unwrap();
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_outlast"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    for script in scripts {
        let output =
            Command::new("sh").args(["-euc", script]).current_dir(folder.path()).env("PATH", &path).output().unwrap();
        assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    }
}
