//! The command reference of the documentation is what the command prints: `python docs/commands.py` writes it anew.

use crate::common::{Folder, Ran};
use std::path::Path;

#[test]
fn reference_is_what_the_command_prints() {
    let overview = help(&[]);
    let listed = overview.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let mut expected = section("outlast", &overview);
    for line in listed.lines() {
        // a command is set in by two; a line set in further goes on about it
        let name = line.strip_prefix("  ").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        if !name.is_empty() && name != "help" {
            expected += &section(&format!("outlast {name}"), &help(&[name]));
        }
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/command.md");
    let page = std::fs::read_to_string(page).unwrap();
    let written = &page[page.find("\n## ").expect("a section for each command")..];
    assert!(
        written == expected,
        "docs/reference/command.md is not what the command prints: run python docs/commands.py"
    );
}

fn help(words: &[&str]) -> String {
    let arguments: Vec<&str> = words.iter().copied().chain(["--help"]).collect();
    let folder = Folder::new();
    let printed = Ran::from(folder.command(&arguments).env("COLUMNS", "86").output().unwrap()).good();
    printed.trim_end().lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn section(title: &str, text: &str) -> String {
    format!("\n## {title}\n\n```text\n{text}```\n")
}
