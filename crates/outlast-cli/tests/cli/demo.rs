//! The demonstration shows what it claims.

use super::common::Folder;
use std::path::Path;

#[test]
fn truncation_wins_on_average_and_the_picture_is_written() {
    let folder = Folder::new();
    let (mut plain, mut truncated, mut found, mut right) = (0.0, 0.0, 0, 0);
    const SEEDS: u64 = 12;
    for seed in 1..=SEEDS {
        let json = folder.run(&["demo", "--json", "--seed", &seed.to_string(), "-o", "picture.svg"]).json();
        plain += json["plain"]["test_error"].as_f64().unwrap();
        truncated += json["truncated"]["test_error"].as_f64().unwrap();
        found += json["truncated"]["outliers"].as_u64().unwrap();
        right += json["truncated"]["outliers_wrong"].as_u64().unwrap();
        assert_eq!(json["plain"]["outliers"], 0);
    }
    assert!(truncated < 0.6 * plain, "{truncated} against {plain} over {SEEDS} seeds");
    assert!(right as f64 > 0.8 * found as f64, "{right} of {found} outliers have a wrong label");
    let picture = std::fs::read_to_string(folder.path("picture.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n") && !picture.contains("NaN"));
    assert_eq!(folder.names(), ["picture.svg"]);
}

#[test]
fn the_same_seed_gives_the_same_answer() {
    let folder = Folder::new();
    let run = |name: &str| folder.run(&["demo", "--rows", "100", "--seed", "5", "-o", name]).good();
    let (first, second) = (run("a.svg"), run("b.svg"));
    assert_eq!(first.replace("a.svg", ""), second.replace("b.svg", ""));
    assert_eq!(std::fs::read(folder.path("a.svg")).unwrap(), std::fs::read(folder.path("b.svg")).unwrap());
    assert!(first.contains("test error") && first.contains("truncated"), "{first}");
}

/// What a picture says: the texts above its panels.
fn texts(picture: &str) -> Vec<&str> {
    let lines = picture.lines().filter(|line| {
        ["head", "title", "small"].iter().any(|class| line.starts_with(&format!("<text class=\"{class}\"")))
    });
    lines.filter_map(|line| line.split_once('>')?.1.strip_suffix("</text>")).collect()
}

#[test]
fn the_picture_in_the_documentation_is_what_the_demo_draws() {
    let folder = Folder::new();
    let json = folder.run(&["demo", "--json"]).json();
    let drawn = std::fs::read_to_string(folder.path("outlast-demo.svg")).unwrap();
    let documented = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo.svg");
    let documented = std::fs::read_to_string(documented).unwrap();
    assert_eq!(texts(&documented), texts(&drawn));
    let all = texts(&documented).join("\n");
    for (method, place) in [("plain", "Plain"), ("truncated", "Truncated")] {
        let error = 100.0 * json[method]["test_error"].as_f64().unwrap();
        assert!(all.contains(&format!("{place} hinge loss: {error:.1} % ")), "{error} in {all}");
        assert!(all.contains(&format!("{} support vectors", json[method]["support_vectors"])), "{all}");
    }
    assert!(all.contains(&format!("{} rows, {} wrong labels", json["rows"], json["wrong_labels"])), "{all}");
}
