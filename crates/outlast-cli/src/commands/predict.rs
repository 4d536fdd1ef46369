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
    /// One decision value per row with two classes, else one per row and class.
    decisions: Vec<f64>,
    functions: usize,
    codes: Vec<u32>,
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
    let predictions = Predictions {
        classes: model.classes(),
        functions: model.predictor.functions(),
        codes: model.predictor.decide(&decisions),
        decisions,
    };
    let file = request.output.as_deref().filter(|path| !destination::is_standard_output(path));
    if let Some(path) = file {
        watch.write(|| destination::write(path, |out| predictions.write(out)))?;
    }
    drop(watch);
    match (file, request.show.json) {
        (Some(path), true) => output::print_json(&json!({
            "command": "predict",
            "output": path.to_string_lossy(),
            "rows": predictions.codes.len(),
            "counts": predictions.counts(),
        })),
        (Some(_), false) => Ok(()),
        (None, true) => output::print_json(&json!({
            "command": "predict",
            "rows": predictions.codes.len(),
            "counts": predictions.counts(),
            "predictions": predictions.classes().map(class_json).collect::<Vec<_>>(),
            "decisions": predictions.values(),
        })),
        (None, false) => destination::write(Path::new("-"), |out| predictions.write(out)),
    }
}

impl Predictions<'_> {
    fn classes(&self) -> impl Iterator<Item = &Class> {
        self.codes.iter().map(|&code| &self.classes[code as usize])
    }

    fn counts(&self) -> Vec<serde_json::Value> {
        let mut counts = vec![0; self.classes.len()];
        self.codes.iter().for_each(|&code| counts[code as usize] += 1);
        self.classes.iter().zip(counts).map(|(class, rows)| json!({"class": class_json(class), "rows": rows})).collect()
    }

    /// A number per row, or a list of numbers in the order of the classes.
    fn values(&self) -> serde_json::Value {
        match self.functions {
            1 => json!(self.decisions),
            m => json!(self.decisions.chunks_exact(m).collect::<Vec<_>>()),
        }
    }

    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let names: Vec<String> = self.classes.iter().map(|class| csv_field(&class.to_string())).collect();
        match self.functions {
            1 => writeln!(out, "prediction,decision")?,
            _ => writeln!(out, "prediction,{}", names.join(","))?,
        }
        for (&code, values) in self.codes.iter().zip(self.decisions.chunks_exact(self.functions)) {
            out.write_all(names[code as usize].as_bytes())?;
            for value in values {
                write!(out, ",{value}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}
