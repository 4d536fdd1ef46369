//! `outlast gamma`: kernel widths worth trying.

use super::labels_of;
use crate::args::GammaArgs;
use crate::failure::Failure;
use crate::output::{self, Pairs, class_json, classes_text, count, short};
use crate::watch::Watch;
use outlast::{gamma_quartiles, io};
use serde_json::{Value, json};

const NAMES: [&str; 3] = ["q1", "median", "q3"];

/// Runs the command.
pub fn run(request: &GammaArgs) -> Result<(), Failure> {
    let watch = Watch::start(request.show.quiet);
    watch.say("reading");
    let table = io::read_table(&request.data, &request.input.options(request.weight_column.as_deref()))?;
    let labels = labels_of(&table)?;
    watch.say("measuring");
    let gammas = gamma_quartiles(table.design(), labels, table.weights.as_deref())?;
    drop(watch);
    if !request.show.quiet {
        table.notes.iter().for_each(|note| output::tell(&format!("note: {note}")));
    }
    if request.show.json {
        let counts = labels.classes().iter().zip(labels.counts());
        let mut answer = json!({
            "command": "gamma",
            "data": table.source.to_string_lossy(),
            "rows": table.rows(),
            "features": table.cols(),
            "classes": counts.map(|(class, rows)| json!({"class": class_json(class), "rows": rows})).collect::<Vec<_>>(),
        });
        for (name, gamma) in NAMES.into_iter().zip(gammas) {
            answer[name] = json!({"gamma": gamma, "sigma": sigma(gamma)}) as Value;
        }
        return output::print_json(&answer);
    }
    let mut pairs = Pairs::default();
    let size = format!("{}, {}", count(table.rows(), "row", "rows"), count(table.cols(), "feature", "features"));
    pairs.add("data", format!("{}: {size}", table.source.display()));
    pairs.add("classes", classes_text(labels.classes().iter().zip(labels.counts())));
    let rows: Vec<Vec<String>> = NAMES
        .iter()
        .zip(gammas)
        .map(|(name, gamma)| vec![name.to_string(), short(gamma), short(sigma(gamma))])
        .collect();
    output::print(&format!("{}\n{}", pairs.render(), output::table(&["quartile", "gamma", "sigma"], &rows)))
}

/// gamma = 1 / (2 sigma^2)
fn sigma(gamma: f64) -> f64 {
    // not (2 gamma)^(-1/2): that overflows for the largest gamma
    std::f64::consts::FRAC_1_SQRT_2 / gamma.sqrt()
}
