//! What goes wrong outside: kills at random moments, a disk that is full, folders that can't be written, readers that go away, input
//! that ends early or changes, no memory. An old file is intact or the new one complete, work that was interrupted goes on, and everything
//! else ends with code 2 and a message.
//!
//! `OUTLAST_KILLS` says how often each command is killed (`make faults`).
#![cfg(unix)]

use super::common::{Folder, Ran};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Kills of each command in a plain run of the tests.
const FEW: usize = 4;

fn kills() -> usize {
    std::env::var("OUTLAST_KILLS").map_or(FEW, |text| text.parse().unwrap())
}

struct Random(u64);

impl Random {
    /// In [0, 1).
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }
}

fn table(rows: usize, columns: usize, seed: u64) -> String {
    let mut random = Random(seed);
    let mut row = |_| {
        let values: Vec<f64> = (0..columns).map(|_| 2.0 * random.unit() - 1.0).collect();
        let class = values[0] + values[1] * values[2] + 0.3 * random.unit() > 0.15;
        values.iter().map(|value| format!("{value:.5},")).collect::<String>() + if class { "yes\n" } else { "no\n" }
    };
    (0..rows).map(&mut row).collect()
}

fn started(folder: &Folder, arguments: &[&str]) -> Child {
    let mut command = folder.command(arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills a command after so long; whether it was still there to be killed.
fn killed_after(mut child: Child, time: Duration) -> bool {
    let began = Instant::now();
    while began.elapsed() < time {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    // SIGKILL
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

/// Moments of a command that takes so long: anywhere, and every second time near the end, where files are written.
fn moment(random: &mut Random, attempt: usize, length: Duration) -> Duration {
    let at = random.unit();
    length.mul_f64(if attempt.is_multiple_of(2) { at } else { 0.9 + 0.2 * at })
}

fn time_of(folder: &Folder, arguments: &[&str]) -> Duration {
    let began = Instant::now();
    folder.run(arguments).good();
    began.elapsed()
}

/// The old file or the new one, whenever the command is killed.
fn old_or_new(arguments: &[&str]) {
    let folder = Folder::new();
    folder.file("old.csv", table(60, 20, 1));
    folder.file("new.csv", table(400, 20, 2));
    folder.run(&["fit", "old.csv", "-o", "old"]).good();
    let old = std::fs::read(folder.path("old")).unwrap();
    let (command, options) = arguments.split_first().unwrap();
    let run = [&[*command, "new.csv", "-o", "model"], options].concat();
    let length = time_of(&folder, &run).min(time_of(&folder, &run));
    let new = std::fs::read(folder.path("model")).unwrap();
    assert!(old != new);
    let mut random = Random(7);
    let (mut done, mut kept, mut left, mut attempts) = (0, 0, 0, 0);
    while done < kills() {
        std::fs::write(folder.path("model"), &old).unwrap();
        attempts += 1;
        done += usize::from(killed_after(started(&folder, &run), moment(&mut random, attempts, length)));
        let found = std::fs::read(folder.path("model")).unwrap();
        assert!(found == old || found == new, "{} bytes, neither the old model nor the new one", found.len());
        kept += usize::from(found == old);
        for name in folder.names().iter().filter(|name| name.starts_with(".outlast-")) {
            left += 1;
            std::fs::remove_file(folder.path(name)).unwrap();
        }
        assert!(attempts < 100 * kills(), "{done} kills in {attempts} attempts");
    }
    assert_eq!(folder.names(), ["model", "new.csv", "old", "old.csv"]);
    println!(
        "{command}: {done} kills in {attempts} runs of {length:?}, the old file {kept} times, {left} hidden temporaries left"
    );
}

#[test]
fn a_killed_fit_leaves_the_old_model_or_the_new_one() {
    old_or_new(&["fit", "--n-jobs", "1", "-C", "10"]);
}

#[test]
fn a_killed_search_leaves_the_old_model_or_the_new_one() {
    old_or_new(&["tune", "--n-jobs", "1", "--cv", "2"]);
}

#[test]
fn a_killed_reproduction_goes_on_to_the_same_results() {
    let folder = Folder::new();
    let run = |out: &'static str| ["reproduce", "ablation-figure5", "--reps", "12", "--threads", "1", "--out", out];
    let length = time_of(&folder, &run("whole"));
    let whole = std::fs::read(folder.path("whole/ablation-figure5.csv")).unwrap();
    let mut random = Random(8);
    let (mut done, mut finished) = (0, 0);
    while done < kills() {
        // long enough to get on, so that a run ends after a few kills
        let time = length.mul_f64(0.05 + 0.5 * random.unit());
        if killed_after(started(&folder, &run("parts")), time) {
            done += 1;
            continue;
        }
        assert_eq!(std::fs::read(folder.path("parts/ablation-figure5.csv")).unwrap(), whole);
        std::fs::remove_dir_all(folder.path("parts")).unwrap();
        finished += 1;
    }
    folder.run(&run("parts")).good();
    assert_eq!(std::fs::read(folder.path("parts/ablation-figure5.csv")).unwrap(), whole);
    println!("reproduce: {done} kills, {} runs that ended with the results of an uninterrupted one", finished + 1);
}

#[test]
fn a_killed_stream_leaves_no_cache_behind() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("cache")).unwrap();
    folder.file("data.csv", table(60_000, 30, 3));
    let run =
        ["fit", "data.csv", "--stream", "--memory", "64MB", "--kernel", "linear", "--cache", "cache", "-o", "model"];
    let length = time_of(&folder, &run);
    let model = std::fs::read(folder.path("model")).unwrap();
    let mut random = Random(9);
    let (mut done, mut attempts) = (0, 0);
    while done < kills() {
        attempts += 1;
        let _ = std::fs::remove_file(folder.path("model"));
        done += usize::from(killed_after(started(&folder, &run), moment(&mut random, attempts, length)));
        assert_eq!(std::fs::read_dir(folder.path("cache")).unwrap().count(), 0);
        assert!(std::fs::read(folder.path("model")).map_or(true, |found| found.len() == model.len()));
        assert!(attempts < 100 * kills());
    }
    println!("stream: {done} kills in {attempts} runs of {length:?}, nothing left in the folder of the cache");
}

/// A command under limits of the shell.
fn limited(folder: &Folder, limit: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new("sh");
    command.current_dir(folder.path(".")).args(["-c", &format!("{limit}; exec \"$0\" \"$@\"")]);
    command.arg(env!("CARGO_BIN_EXE_outlast")).args(arguments).stdin(Stdio::null());
    Ran::from(command.output().unwrap())
}

#[test]
fn files_that_cannot_be_written_are_named_and_the_old_one_stays() {
    let folder = Folder::new();
    folder.file("data.csv", table(400, 20, 4));
    folder.run(&["fit", "data.csv", "-o", "model"]).good();
    let old = std::fs::read(folder.path("model")).unwrap();
    // a disk with room for 8 kB
    let full = limited(&folder, "trap '' XFSZ; ulimit -f 16", &["fit", "data.csv", "-C", "9", "-o", "model"]).refused();
    assert!(full.contains("model: File too large"), "{full}");
    assert_eq!(std::fs::read(folder.path("model")).unwrap(), old);
    assert_eq!(folder.names(), ["data.csv", "model"]);
    let long = Folder::new();
    long.file("data.csv", table(60_000, 30, 3));
    let streamed = ["fit", "data.csv", "--stream", "--memory", "64MB", "--kernel", "linear", "--cache", "."];
    let full = limited(&long, "trap '' XFSZ; ulimit -f 2048", &streamed).refused();
    assert!(full.contains("File too large"), "{full}");
    if cfg!(target_os = "linux") {
        let full = folder.run(&["predict", "model", "data.csv", "-o", "/dev/full"]).refused();
        assert!(full.contains("/dev/full: No space left on device"), "{full}");
        // nobody can write there, root included
        let refused = folder.run(&["fit", "data.csv", "-o", "/proc/model"]).refused();
        assert!(refused.contains("/proc/model: "), "{refused}");
    }
}

#[test]
fn readers_that_go_away_are_no_failure() {
    let folder = Folder::new();
    folder.file("data.csv", table(30_000, 5, 5));
    folder.run(&["fit", "data.csv", "--kernel", "linear", "-o", "model"]).good();
    let mut command = folder.command(&["predict", "model", "data.csv"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut some = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn input_that_ends_early_is_named_with_its_line() {
    let folder = Folder::new();
    let text = table(50, 3, 6);
    folder.file("data.csv", &text);
    folder.run(&["fit", "data.csv", "-o", "model"]).good();
    let cut = &text[..text.trim_end().rfind(',').unwrap()];
    for arguments in [&["fit", "-"][..], &["evaluate", "model", "-"]] {
        let error = folder.run_with_input(arguments, cut.as_bytes()).refused();
        assert!(error.contains("standard input, line 50: the row has 3 fields"), "{error}");
    }
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(text.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let error = folder.run_with_input(&["fit", "-"], &packed[..packed.len() / 2]).refused();
    assert!(error.contains("standard input: the gzip data end too early"), "{error}");
    let error = folder.run_with_input(&["fit", "-"], b"").refused();
    assert!(error.contains("standard input: the file is empty"), "{error}");
    let parquet = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../outlast/tests/parquet_data/plain.parquet"));
    let parquet = parquet.unwrap();
    folder.run_with_input(&["fit", "-"], &parquet[..parquet.len() - 100]).refused();
    assert_eq!(folder.names(), ["data.csv", "model"]);
}

/// Files that shrink, grow or turn into something else while they are streamed: a model of what was read, or a refusal.
#[test]
fn files_that_change_while_they_are_streamed() {
    let folder = Folder::new();
    let csv = table(170_000, 10, 10);
    let mut svm = String::new();
    for (number, line) in csv.lines().enumerate() {
        let fields: Vec<&str> = line.split(',').collect();
        svm += &format!(
            "{} 1:{} 2:{} 3:{} {}:1\n",
            u8::from(fields[10] == "yes"),
            fields[0],
            fields[1],
            fields[2],
            4 + number % 7
        );
    }
    let mut random = Random(11);
    let (mut refused, mut fitted) = (0, 0);
    for attempt in 0..kills() {
        let (name, text, other) = match attempt % 2 {
            0 => ("data.csv", &csv, "1,2,3\n\"".to_string()),
            _ => ("data.svm", &svm, format!("{svm}1 4000000000:1\n")),
        };
        folder.file(name, text);
        let run = ["fit", name, "--stream", "--memory", "64MB", "--kernel", "linear", "-o", "model"];
        let mut command = folder.command(&run);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros((900_000.0 * random.unit()) as u64));
        match attempt % 3 {
            0 => std::fs::OpenOptions::new().write(true).open(folder.path(name)).unwrap().set_len(5000).unwrap(),
            1 => std::fs::OpenOptions::new()
                .append(true)
                .open(folder.path(name))
                .unwrap()
                .write_all(other.as_bytes())
                .unwrap(),
            _ => std::fs::write(folder.path(name), &other).unwrap(),
        }
        let ran = Ran::from(child.wait_with_output().unwrap());
        match ran.code {
            0 => {
                fitted += 1;
                folder.run(&["export", "model", "--format", "json", "-o", "model.json"]).good();
            }
            _ => {
                refused += 1;
                let error = ran.refused();
                assert!(error.contains(name), "{error}");
            }
        }
    }
    println!("changed files: {fitted} fits, {refused} refusals");
}

/// No memory: code 2 and a message, whatever asked for it. (With less than some 25 MB the system can't load the program, or start a thread.)
#[cfg(target_os = "linux")]
#[test]
fn without_memory_a_command_says_so() {
    let folder = Folder::new();
    folder.file("data.csv", table(4000, 20, 12));
    folder.run(&["fit", "data.csv", "--kernel", "linear", "-o", "old"]).good();
    let mut refused = 0;
    for megabytes in [30, 40, 50, 60, 80, 120, 200, 400] {
        let limit = format!("ulimit -v {}", megabytes * 1024);
        let ran = limited(&folder, &limit, &["fit", "data.csv", "--n-jobs", "1", "-C", "100", "-o", "model"]);
        assert!(ran.code == 0 || ran.code == 2, "{megabytes} MB: code {}: {}", ran.code, ran.err);
        assert!(!ran.err.contains("panicked"), "{megabytes} MB: {}", ran.err);
        if ran.code == 2 {
            refused += 1;
            // a thread that the system has no room for is named, too
            assert!(ran.err.contains("memory") || ran.err.contains("threads"), "{megabytes} MB: {}", ran.err);
            assert!(!folder.path("model").exists());
        }
        let _ = std::fs::remove_file(folder.path("model"));
    }
    println!("limits of memory: {refused} of 8 refused");
    assert!(refused > 0);
}
