//! `outlast predict`: a class and a decision value for every row, and where the model has them the probability of every class.

use super::load_model;
use crate::args::PredictArgs;
use crate::destination;
use crate::failure::Failure;
use crate::output::{self, class_json, csv_field};
use crate::watch::Watch;
use outlast::model::pairs;
use outlast::{Class, io};
use serde_json::json;
use std::io::Write;
use std::path::Path;

/// Predictions of all rows.
struct Predictions<'a> {
    classes: &'a [Class],
    /// One decision value per row with two classes, else one per row and class, or per row and pair of classes.
    decisions: Vec<f64>,
    functions: usize,
    of_pairs: bool,
    codes: Vec<u32>,
    /// One per row and class, where the model has them.
    probabilities: Option<Vec<f64>>,
}

/// Runs the command.
pub fn run(request: &PredictArgs) -> Result<(), Failure> {
    let output = request.output.as_deref();
    destination::check(&[("--output", output)], &[&request.model, &request.data], request.show.json)?;
    let watch = Watch::start(request.show.quiet);
    watch.say("reading");
    let model = load_model(&request.model, request.input.features)?;
    let table = io::read_for_model(&request.data, &request.input.options(None), &model.predictor, false)?;
    watch.say("predicting");
    let decisions = model.decision_function(table.design())?;
    let predictions = Predictions {
        classes: model.classes(),
        functions: model.predictor.functions(),
        of_pairs: model.predictor.votes.is_some(),
        codes: model.predictor.decide(&decisions),
        decisions,
        probabilities: match &model.predictor.probabilities {
            Some(_) => Some(model.predict_proba(table.design())?),
            None => None,
        },
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
            "probabilities": predictions.probabilities(),
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

    /// A number per row, or a list of numbers in the order of the classes or of their pairs.
    fn values(&self) -> serde_json::Value {
        match self.functions {
            1 => json!(self.decisions),
            m => json!(self.decisions.chunks_exact(m).collect::<Vec<_>>()),
        }
    }

    /// A list of numbers per row, in the order of the classes.
    fn probabilities(&self) -> Option<Vec<&[f64]>> {
        self.probabilities.as_ref().map(|all| all.chunks_exact(self.classes.len()).collect())
    }

    fn header(&self, names: &[String]) -> String {
        let mut header = match self.functions {
            1 => "prediction,decision".to_string(),
            _ if !self.of_pairs => format!("prediction,{}", names.join(",")),
            _ => {
                let name = |(first, second)| csv_field(&format!("{} or {}", self.classes[first], self.classes[second]));
                format!("prediction,{}", pairs(self.classes.len()).map(name).collect::<Vec<String>>().join(","))
            }
        };
        if self.probabilities.is_some() {
            let name = |class: &Class| format!(",{}", csv_field(&format!("probability {class}")));
            header.extend(self.classes.iter().map(name));
        }
        header
    }

    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let names: Vec<String> = self.classes.iter().map(|class| csv_field(&class.to_string())).collect();
        writeln!(out, "{}", self.header(&names))?;
        let probabilities = self.probabilities();
        for (row, values) in self.decisions.chunks_exact(self.functions).enumerate() {
            out.write_all(names[self.codes[row] as usize].as_bytes())?;
            let probabilities = probabilities.as_ref().map_or(&[][..], |all| all[row]);
            for value in values.iter().chain(probabilities) {
                write!(out, ",{value}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}
