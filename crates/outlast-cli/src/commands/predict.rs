//! `outlast predict`: a class and a decision value for every row.

use crate::args::PredictArgs;
use crate::destination;
use crate::failure::Failure;
use crate::output::{self, class_json, csv_field};
use crate::watch::Watch;
use outlast::{Class, io};
use serde_json::json;
use std::io::Write;
use std::path::Path;

/// Predictions of all rows.
struct Predictions<'a> {
    classes: &'a [Class],
    decisions: Vec<f64>,
}

/// Runs the command.
pub fn run(request: &PredictArgs) -> Result<(), Failure> {
    destination::check(&[("--output", request.output.as_deref())], request.show.json)?;
    let watch = Watch::start(request.show.quiet);
    watch.say("reading");
    let model = io::load_model(&request.model)?;
    let table = io::read_for_model(&request.data, &request.input.options(None), &model.predictor, false)?;
    watch.say("predicting");
    let decisions = model.decision_function(table.design())?;
    let predictions = Predictions { classes: model.classes(), decisions };
    let file = request.output.as_deref().filter(|path| !destination::is_standard_output(path));
    if let Some(path) = file {
        watch.write(|| destination::write(path, |out| predictions.write(out)))?;
    }
    drop(watch);
    match (file, request.show.json) {
        (Some(path), true) => output::print_json(&json!({
            "command": "predict",
            "output": path.to_string_lossy(),
            "rows": predictions.decisions.len(),
            "counts": predictions.counts(),
        })),
        (Some(_), false) => Ok(()),
        (None, true) => output::print_json(&json!({
            "command": "predict",
            "rows": predictions.decisions.len(),
            "counts": predictions.counts(),
            "predictions": predictions.classes().map(class_json).collect::<Vec<_>>(),
            "decisions": predictions.decisions,
        })),
        (None, false) => destination::write(Path::new("-"), |out| predictions.write(out)),
    }
}

impl Predictions<'_> {
    /// Positive decision values mean the second class.
    fn classes(&self) -> impl Iterator<Item = &Class> {
        self.decisions.iter().map(|&decision| &self.classes[usize::from(decision > 0.0)])
    }

    fn counts(&self) -> Vec<serde_json::Value> {
        let second = self.decisions.iter().filter(|&&decision| decision > 0.0).count();
        let counts = [self.decisions.len() - second, second];
        self.classes.iter().zip(counts).map(|(class, rows)| json!({"class": class_json(class), "rows": rows})).collect()
    }

    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(out, "prediction,decision")?;
        let names: Vec<String> = self.classes.iter().map(|class| csv_field(&class.to_string())).collect();
        for &decision in &self.decisions {
            writeln!(out, "{},{decision}", names[usize::from(decision > 0.0)])?;
        }
        Ok(())
    }
}
