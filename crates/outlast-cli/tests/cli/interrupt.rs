//! Ctrl-C.

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_search_with_the_best_model_so_far() {
    use super::common::{Folder, Ran};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    let folder = Folder::new();
    // labels that have nothing to do with the columns: the search takes hours
    let mut text = String::new();
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as f64 / f64::from(1u32 << 31) - 0.5
    };
    for row in 0..120 {
        text += &format!("{},{},{},{},{},{}\n", draw(), draw(), draw(), draw(), draw(), row % 2);
    }
    folder.file("noise.csv", text);
    let fit = ["fit", "noise.csv", "--kernel", "linear", "--truncation", "0", "-C", "10", "--global", "-o", "model"];
    let child = folder.command(&fit).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!(ran.err.contains("interrupted: this is the best model so far"), "{}", ran.err);
    assert!(ran.good().contains("the optimum is at most"));
    assert_eq!(folder.names(), ["model", "noise.csv"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_tuning_with_the_best_choice_so_far() {
    interrupted_tuning(3, &["--exact", "--no-early-stopping", "--cv", "100"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_search_along_paths_with_the_best_choice_so_far() {
    interrupted_tuning(10, &["--method", "lq", "--cv", "500"]);
}

/// Labels that have nothing to do with the columns: all points are alike, and the search takes minutes.
#[cfg(unix)]
fn interrupted_tuning(columns: usize, options: &[&str]) {
    use super::common::{Folder, Ran};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    let folder = Folder::new();
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as f64 / f64::from(1u32 << 31) - 0.5
    };
    let mut row = |row: usize| {
        let values: Vec<String> = (0..columns).map(|_| draw().to_string()).collect();
        format!("{},{}\n", values.join(","), row % 2)
    };
    folder.file("noise.csv", (0..1500).map(&mut row).collect::<String>());
    let tune = [&["tune", "noise.csv", "--json", "-o", "model"], options].concat();
    let child = folder.command(&tune).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(6));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!(ran.err.contains("interrupted: this is the best model so far"), "{}", ran.err);
    let json = ran.json();
    assert_eq!((&json["status"], &json["fit"]["status"]), (&"interrupted".into(), &"interrupted".into()));
    assert!(json["grid"].as_array().unwrap().iter().any(|point| point["state"] != "done"));
    assert_eq!(folder.names(), ["model", "noise.csv"]);
}

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
