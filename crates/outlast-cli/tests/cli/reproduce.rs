//! `outlast reproduce`: the list, a run, how it goes on, and what it refuses.

use super::common::Folder;

#[test]
fn the_list_names_every_experiment_with_its_cost() {
    let folder = Folder::new();
    let text = folder.run(&["reproduce", "list"]).good();
    assert_eq!(text, folder.run(&["reproduce"]).good());
    let json = folder.run(&["reproduce", "list", "--json"]).json();
    let experiments = json["experiments"].as_array().unwrap();
    assert_eq!(experiments.len(), 31);
    for one in experiments {
        let name = one["name"].as_str().unwrap();
        assert!(text.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}");
        assert!(one["replications"].as_u64().unwrap() > 0 && one["core_seconds"].as_f64().unwrap() > 0.0);
    }
    assert!(folder.names().is_empty());
}

#[test]
fn a_run_writes_its_files_and_a_second_one_runs_nothing_again() {
    let folder = Folder::new();
    let run = || {
        folder.run(&["reproduce", "rsvm-figure1", "rsvm-figure5", "--reps", "1", "--json", "--out", "results"]).json()
    };
    let first = run();
    let experiments = first["experiments"].as_array().unwrap();
    assert_eq!(experiments.len(), 2);
    for one in experiments {
        assert_eq!((one["status"].as_str(), one["ran"].as_u64()), (Some("finished"), Some(1)));
        for file in one["files"].as_array().unwrap() {
            assert!(folder.path(file.as_str().unwrap()).exists(), "{file}");
        }
    }
    let csv = std::fs::read(folder.path("results/rsvm-figure5.csv")).unwrap();
    assert!(run()["experiments"].as_array().unwrap().iter().all(|one| one["ran"] == 0));
    assert_eq!(csv, std::fs::read(folder.path("results/rsvm-figure5.csv")).unwrap());
    let summary = std::fs::read_to_string(folder.path("results/summary.md")).unwrap();
    assert!(summary.contains("[rsvm-figure5](rsvm-figure5.md)"), "{summary}");
    let again = folder.run(&["reproduce", "rsvm-figure5", "--reps", "1", "--seed", "2", "--out", "results"]);
    assert!(again.err.contains("seed was 1 and is 2; starting anew"), "{}", again.err);
    assert!(again.good().contains("rsvm-figure5: "));
}

#[test]
fn real_data_that_are_missing_are_named_with_their_source() {
    let folder = Folder::new();
    let ran = folder.run(&["reproduce", "rsvm-table2"]);
    assert!(ran.err.contains("liver.csv") && ran.err.contains("UCI"), "{}", ran.err);
    ran.good();
}

#[test]
fn unknown_names_and_folders_are_refused() {
    let folder = Folder::new();
    let problem = folder.run(&["reproduce", "rsvm-table9"]).refused();
    assert!(problem.contains("rsvm-table9") && problem.contains("rsvm-table1"), "{problem}");
    assert!(folder.run(&["reproduce", "all", "--data", "nowhere"]).refused().contains("nowhere"));
    assert!(folder.run(&["reproduce", "list", "rsvm-table1"]).refused().contains("list"));
    folder.run(&["reproduce", "rsvm-table1", "--reps", "0"]).refused();
    assert!(folder.names().is_empty());
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_is_done_and_says_how_to_go_on() {
    use super::common::Ran;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    let folder = Folder::new();
    let arguments = ["reproduce", "rsvm-table1", "--threads", "1", "--out", "results"];
    let child = folder.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let journal = folder.path("results/rsvm-table1.partial");
    let closed = || std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("\n.\n"));
    (0..3000).find(|_| {
        std::thread::sleep(Duration::from_millis(20));
        closed()
    });
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.err);
    assert!(ran.err.contains("of 200 units of work of rsvm-table1 are kept in results"), "{}", ran.err);
    assert!(ran.err.contains("the same command goes on from there"), "{}", ran.err);
    assert!(closed());
}
