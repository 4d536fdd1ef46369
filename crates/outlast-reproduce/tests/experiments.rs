//! Every experiment, cut down: its files, their shapes, the same bytes on one thread and on two, and after having been cut off.

use outlast::{Control, Progress};
use outlast_reproduce::random::Random;
use outlast_reproduce::{DataFolder, DataSet, Experiment, Outcome, Settings, registry, run, summary, units};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

const ROWS_PER_CLASS: usize = 200;

/// Numbers of a made-up set, about: wide ones have fewer rows.
const NUMBERS: usize = 200_000;

/// Writes a data set of the right shape, a group of points for each class.
fn make_up(set: &DataSet, folder: &Path) {
    let mut random = Random::new(set.columns as u64);
    let names: Vec<String> = (1..=set.columns).map(|column| format!("x{column},")).collect();
    let mut text = names.concat() + "label\n";
    let each = (NUMBERS / (set.columns * set.classes.len())).clamp(12, ROWS_PER_CLASS);
    for row in 0..each * set.classes.len() {
        let at = row % set.classes.len();
        for column in 0..set.columns {
            let centre = if column % set.classes.len() == at { 1.0 } else { 0.0 };
            text += &format!("{},", centre + random.normal());
        }
        text += &format!("{}\n", set.classes[at]);
    }
    fs::write(folder.join(format!("{}.csv", set.name)), text).unwrap();
}

fn settings(experiment: &dyn Experiment, data: &Path, out: PathBuf, threads: usize) -> Settings {
    for setting in experiment.settings() {
        setting
            .data
            .iter()
            .filter(|set| !data.join(format!("{}.csv", set.name)).exists())
            .for_each(|set| make_up(set, data));
    }
    let data = DataFolder::new(Some(data.to_path_buf()));
    Settings { reps: Some(2), threads, data, small: true, ..Settings::into_folder(out) }
}

/// The files of a folder but for what they cost, which is never the same twice.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let entries = entries.filter(|path| !path.ends_with("costs.json"));
    entries.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap())).collect()
}

/// Runs until so many units are done, then asks to stop.
fn cut_off(experiment: &dyn Experiment, settings: &Settings, after: usize) -> Outcome {
    let done = AtomicUsize::new(0);
    let watch = |progress: Progress| done.store(progress.step, Ordering::SeqCst);
    let stop = || done.load(Ordering::SeqCst) >= after;
    run(experiment, settings, Control::default().progress(&watch).interrupt(&stop), &|_| ()).unwrap()
}

/// The same files on one thread, and on two after having been cut off on one.
fn check_runs(chosen: impl Fn(&str) -> bool) {
    let mut count = 0;
    for experiment in registry::ALL.iter().filter(|experiment| chosen(experiment.about().name)) {
        count += 1;
        let name = experiment.about().name;
        let folder = tempfile::tempdir().unwrap();
        let (data, one, two) = (folder.path().join("data"), folder.path().join("one"), folder.path().join("two"));
        fs::create_dir(&data).unwrap();
        let whole = settings(*experiment, &data, one.clone(), 1);
        let Outcome::Finished(finished) = run(*experiment, &whole, Control::default(), &|_| ()).unwrap() else {
            panic!("{name} did not finish")
        };
        assert_eq!(finished.ran, units(*experiment, &whole), "{name}");
        check_shapes(*experiment, &one);

        let parts = settings(*experiment, &data, two.clone(), 2);
        let all = units(*experiment, &parts);
        // on one thread, so that the next unit is the one that learns of it
        let first = settings(*experiment, &data, two.clone(), 1);
        let Outcome::Stopped { done, of } = cut_off(*experiment, &first, all.div_ceil(2)) else {
            panic!("{name} was not cut off")
        };
        assert!((1..=all).contains(&done) && of == all, "{name}: {done} of {of}");
        // as a machine that went down in the middle of a line would leave it
        let journal = two.join(format!("{name}.partial"));
        let bytes = fs::read(&journal).unwrap();
        fs::write(&journal, &bytes[..bytes.len() - 4]).unwrap();
        let Outcome::Finished(finished) = run(*experiment, &parts, Control::default(), &|_| ()).unwrap() else {
            panic!("{name} did not go on")
        };
        assert_eq!(finished.ran, all - (done - 1), "{name}");
        let (one, two) = (files(&one), files(&two));
        assert_eq!(one.keys().collect::<Vec<_>>(), two.keys().collect::<Vec<_>>(), "{name}");
        for (file, bytes) in &one {
            assert!(two[file] == *bytes, "{file} differs");
        }
    }
    assert!(count > 0);
}

// a test for each group, so that they run beside each other

#[test]
fn linear_machines_run_alike() {
    check_runs(|name| name == "rsvm-linear");
}

#[test]
fn truncated_machines_run_alike() {
    check_runs(|name| name.starts_with("rsvm") && name != "rsvm-linear");
}

#[test]
fn weighted_tables_run_alike() {
    check_runs(|name| name.starts_with("wrsvm-table"));
}

#[test]
fn weighted_figures_run_alike() {
    check_runs(|name| name.starts_with("wrsvm-figure"));
}

#[test]
fn ablation_runs_alike() {
    check_runs(|name| name.starts_with("ablation"));
}

#[test]
fn the_lq_machine_runs_alike() {
    check_runs(|name| name.starts_with("lq"));
}

#[test]
fn the_capped_machine_runs_alike() {
    check_runs(|name| name.starts_with("capped"));
}

#[test]
fn all_others_run_alike() {
    let papers = ["rsvm", "wrsvm", "ablation", "lq", "capped"];
    check_runs(|name| !papers.iter().any(|paper| name.starts_with(paper)));
}

/// The CSV file has a record for each unit, every number in its column; the page has the table and the figures are pictures.
fn check_shapes(experiment: &dyn Experiment, folder: &Path) {
    let name = experiment.about().name;
    let read = |ending: &str| fs::read_to_string(folder.join(format!("{name}.{ending}"))).unwrap();
    let csv = read("csv");
    let mut lines = csv.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(columns.len(), 2 + experiment.labels().len() + experiment.values().len(), "{name}");
    let records: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert!(records.iter().all(|record| record.len() == columns.len()), "{name}");
    for setting in experiment.settings() {
        for replication in ["0", "1"] {
            assert!(records.iter().any(|record| record[0] == setting.name && record[1] == replication), "{name}");
        }
    }
    let object: serde_json::Value = serde_json::from_str(&read("json")).unwrap();
    let judged = ["rows", "statements", "own"].map(|key| object[key].as_array().unwrap().len());
    assert!(judged.iter().sum::<usize>() > 0, "{name} says nothing");
    let page = read("md");
    assert!(page.starts_with(&format!("# {name}: ")), "{name}");
    assert!(page.contains(" | paper | here | standard error | verdict |\n"), "{name}");
    // a printed number is counted once
    let printed: Vec<String> = object["rows"].as_array().unwrap().iter().map(|row| row["what"].to_string()).collect();
    assert!(printed.iter().enumerate().all(|(at, what)| !printed[..at].contains(what)), "{name}");
    for (file, bytes) in files(folder) {
        if file.ends_with(".svg") {
            let picture = String::from_utf8(bytes).unwrap();
            assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n") && !picture.contains("NaN"), "{file}");
            assert!(page.contains(&format!("({file})")), "{file} is not shown");
        }
        assert!(!file.ends_with(".partial"), "{file} was left behind");
    }
}

#[test]
fn what_is_there_is_not_run_again_more_replications_are_added_and_another_seed_starts_anew() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = registry::find("rsvm-table1").unwrap();
    let told = std::sync::Mutex::new(Vec::new());
    let go = |reps: usize, seed: u64, out: &str| {
        let out = folder.path().join(out);
        let settings = Settings { reps: Some(reps), seed, ..settings(experiment, folder.path(), out, 1) };
        let tell = |message: &str| told.lock().unwrap().push(message.to_string());
        match run(experiment, &settings, Control::default(), &tell).unwrap() {
            Outcome::Finished(finished) => finished.ran,
            other => panic!("{other:?}"),
        }
    };
    let settings = experiment.settings().len();
    assert_eq!(go(1, 1, "a"), settings);
    assert_eq!(go(1, 1, "a"), 0);
    assert_eq!(go(2, 1, "a"), settings);
    assert_eq!(go(2, 1, "b"), 2 * settings);
    assert_eq!(files(&folder.path().join("a")), files(&folder.path().join("b")));
    // fewer than there are: the page says so, and nothing is lost
    let page = || fs::read_to_string(folder.path().join("a/rsvm-table1.md")).unwrap();
    let all = fs::read(folder.path().join("a/rsvm-table1.csv")).unwrap();
    assert!(!page().contains("The CSV file holds"));
    assert_eq!(go(1, 1, "a"), 0);
    assert!(page().contains("1 replications (the paper: 100). The CSV file holds 2."), "{}", page());
    assert_eq!(fs::read(folder.path().join("a/rsvm-table1.csv")).unwrap(), all);
    told.lock().unwrap().clear();
    assert_eq!(go(1, 2, "a"), settings);
    assert_eq!(told.lock().unwrap().as_slice(), ["rsvm-table1: seed was 1 and is 2; starting anew"]);
    assert_eq!(fs::read(folder.path().join("a/rsvm-table1.old.csv")).unwrap(), all);
    summary(&folder.path().join("a"), &["rsvm-table2"]).unwrap();
    let text = fs::read_to_string(folder.path().join("a/summary.md")).unwrap();
    assert!(text.contains("[rsvm-table1](rsvm-table1.md)") && text.contains("1 (the paper: 100)"), "{text}");
    assert!(text.contains("| rsvm-table2 |") && text.contains("skipped: the data were not there"), "{text}");
}

#[test]
fn without_its_data_an_experiment_is_skipped_with_a_line_that_says_where_they_come_from() {
    let folder = tempfile::tempdir().unwrap();
    for experiment in registry::ALL.iter().filter(|one| one.settings().iter().all(|s| !s.data.is_empty())) {
        let told = std::sync::Mutex::new(Vec::new());
        let tell = |message: &str| told.lock().unwrap().push(message.to_string());
        let settings = Settings { small: true, ..Settings::into_folder(folder.path()) };
        let outcome = run(*experiment, &settings, Control::default(), &tell).unwrap();
        assert!(matches!(outcome, Outcome::Skipped));
        let told = told.lock().unwrap().join("\n");
        assert!(told.contains("a public set from"), "{told}");
    }
}

#[test]
fn a_unit_that_is_stopped_in_the_middle_is_no_result() {
    for name in ["theory", "lq-table3", "ablation-figure7"] {
        let experiment = registry::find(name).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let go = |out: &str, last: usize| {
            let asked = AtomicUsize::new(0);
            let stop = || asked.fetch_add(1, Ordering::SeqCst) >= last;
            let settings =
                Settings { reps: Some(1), ..settings(experiment, folder.path(), folder.path().join(out), 1) };
            let outcome = run(experiment, &settings, Control::default().interrupt(&stop), &|_| ()).unwrap();
            (matches!(outcome, Outcome::Stopped { .. }), asked.into_inner())
        };
        let (stopped, asked) = go("whole", usize::MAX);
        assert!(!stopped && asked > 30, "{name}: asked {asked} times");
        let whole = files(&folder.path().join("whole"));
        for part in 1..6 {
            let out = format!("part{part}");
            assert!(go(&out, part * asked / 6).0, "{name}");
            assert!(!go(&out, usize::MAX).0, "{name}");
            assert!(files(&folder.path().join(out)) == whole, "{name}, stopped after {part} of 6");
        }
    }
}

#[test]
fn the_names_are_those_that_were_asked_for() {
    let numbered = |paper: &str, kinds: &[(&str, &[usize])]| -> Vec<String> {
        kinds.iter().flat_map(|(kind, numbers)| numbers.iter().map(move |n| format!("{paper}-{kind}{n}"))).collect()
    };
    let mut expected = [
        numbered("rsvm", &[("table", &[1, 2]), ("figure", &[1, 5, 6])]),
        numbered("wrsvm", &[("figure", &[1, 2]), ("table", &[1, 2, 3])]),
        numbered("ablation", &[("figure", &[2, 3, 4, 5, 6, 7])]),
        numbered("lq", &[("figure", &[1, 2, 3, 4, 5]), ("table", &[1, 2, 3])]),
        numbered("capped", &[("figure", &[1, 2]), ("table", &[1, 2])]),
        ["rsvm-linear", "capped-noise", "theory"].map(String::from).to_vec(),
    ]
    .concat();
    expected.sort();
    let mut names: Vec<&str> = registry::ALL.iter().map(|experiment| experiment.about().name).collect();
    names.sort_unstable();
    assert_eq!(names, expected);
}

#[test]
fn no_replications_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { reps: Some(0), ..Settings::into_folder(folder.path()) };
    let refused = run(registry::ALL[0], &settings, Control::default(), &|_| ()).unwrap_err();
    assert!(refused.to_string().contains("reps"), "{refused}");
}
