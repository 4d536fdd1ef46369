//! Every shell example of the README and of the documentation runs: each page in an empty folder of its own, in order.
//!
//! Other languages have their runners: `python` and the `output` after it `python/tests/test_readme.py`, `rust` the doc tests of the page that the
//! crate includes; `text`, and what is in braces, which only the documentation site reads, is no code. A block of any other language would be
//! run by nobody, and is an error.

use std::path::{Path, PathBuf};
use std::process::Command;

const ELSEWHERE: [&str; 3] = ["python", "output", "text"];

/// The pages whose Rust examples are doc tests of the crate.
const RUST: [&str; 2] = ["README.md", "docs/rust.md"];

/// Blocks that are not run: their page, how they begin, and why.
const NOT_RUN: [(&str, &str, &str); 2] = [
    ("README.md", "make demo", "installs from the sources: `make demo` and python/tests/test_wheel.py do that"),
    ("docs/audit.md", "pip install cleanlab", "a benchmark of minutes, on data that are not in the repository"),
];

#[test]
fn shell_examples_of_the_pages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![PathBuf::from("README.md")];
    add_pages(&root, Path::new("docs"), &mut pages);
    let ran: Vec<usize> = pages.iter().map(|page| run_page(&root, page)).collect();
    assert!(ran[0] > 0, "the README shows no use of the command");
    assert!(ran[1..].iter().sum::<usize>() > 5, "the documentation shows little use of the command");
    for (page, start, _) in NOT_RUN {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let found = blocks(&text).iter().any(|block| block.code.starts_with(start));
        assert!(found, "{page} has no block that begins with {start}: take it off the list");
    }
}

/// The pages in a folder and the folders in it, in order.
fn add_pages(root: &Path, folder: &Path, pages: &mut Vec<PathBuf>) {
    let mut names: Vec<_> =
        std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    for path in names.into_iter().map(|name| folder.join(name)) {
        if root.join(&path).is_dir() {
            add_pages(root, &path, pages);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
}

struct Block<'a> {
    language: &'a str,
    code: String,
}

/// The fenced blocks of a page.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else { continue };
        let code = lines.by_ref().take_while(|line| line.trim() != "```").map(|line| format!("{line}\n")).collect();
        found.push(Block { language: language.trim(), code });
    }
    found
}

/// Runs the shell blocks of a page; how many there are.
fn run_page(root: &Path, page: &Path) -> usize {
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let name = page.to_str().unwrap().replace('\\', "/");
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    for Block { language, code } in blocks(&text) {
        match language {
            "sh" if NOT_RUN.iter().any(|(page, start, _)| *page == name && code.starts_with(start)) => {}
            "sh" => {
                run(&name, &code, folder.path());
                count += 1;
            }
            "rust" => assert!(RUST.contains(&&*name), "{name}: its Rust examples are no doc tests\n{code}"),
            _ => {
                let known = ELSEWHERE.contains(&language) || language.starts_with('{');
                assert!(known, "{name}: nobody runs blocks of the language {language:?}\n{code}");
            }
        }
    }
    count
}

fn run(page: &str, script: &str, folder: &Path) {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_outlast"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh").args(["-euc", script]).current_dir(folder).env("PATH", &path).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{page}\n{script}\n{error}");
}
