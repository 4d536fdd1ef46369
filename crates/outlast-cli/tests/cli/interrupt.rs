//! Ctrl-C.

#[cfg(unix)]
#[test]
fn ctrl_c_while_reading_ends_with_130_and_leaves_nothing() {
    use super::common::Folder;
    use std::io::Write;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    let folder = Folder::new();
    let mut command = folder.command(&["fit", "-", "-o", "model"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // more than any buffer on the way holds: once this is through, the command is up and reading
    let row = "1,2,a\n".repeat(100_000);
    input.write_all(row.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let status = child.wait().unwrap();
    drop(input);
    assert_eq!(status.code(), Some(130));
    assert!(folder.names().is_empty());
}
