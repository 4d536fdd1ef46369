//! Model files, and what is made of a model: predictions, other formats, the JSON form and a scorer written from its description.

use super::bytes::Bytes;
use super::files::refused;
use outlast::io::{ExportFormat, export_model, model_from_bytes, model_to_bytes};
use outlast::{Dense, Model};
use serde_json::Value;

/// Columns beyond which a model of a stranger is not asked to predict here.
const MOST_COLUMNS: usize = 1000;

/// Our model files. The checksum is made right first, so that what is behind it is seen.
pub fn model(data: &[u8]) {
    let mut file = data.to_vec();
    if let Some(end) = file.len().checked_sub(4) {
        let checksum = crc32fast::hash(&file[..end]);
        file[end..].copy_from_slice(&checksum.to_le_bytes());
    }
    match model_from_bytes(&file) {
        Err(error) => refused(&error),
        Ok(model) => used(&model),
    }
}

/// Model files of LIBSVM.
pub fn libsvm_model(data: &[u8]) {
    let text = [b"svm_type", data].concat();
    for file in [data, &text] {
        match model_from_bytes(file) {
            Err(error) => refused(&error),
            Ok(model) => used(&model),
        }
    }
}

/// What every model that could be read must be good for.
fn used(model: &Model) {
    round_trip(model);
    let d = model.predictor.features;
    if d <= MOST_COLUMNS {
        let mut bytes = Bytes(&[100, 140, 128, 128, 255, 0, 160, 90, 128, 129]);
        let values: Vec<f64> = (0..3 * d).map(|_| bytes.usual()).collect();
        let x = Dense::new(3, d, values).unwrap();
        match model.predict_codes(&x) {
            Err(error) => refused(&error),
            Ok(codes) => assert!(codes.iter().all(|&code| (code as usize) < model.classes().len()), "{codes:?}"),
        }
        if model.predictor.probabilities.is_some() {
            match model.predict_proba(&x) {
                Err(error) => refused(&error),
                Ok(p) => assert_eq!(p.len(), 3 * model.classes().len()),
            }
        }
        scored(model, &x);
    }
    for &format in ExportFormat::ALL {
        match export_model(model, format) {
            Err(error) => refused(&error),
            Ok(exported) => assert!(!exported.bytes.is_empty()),
        }
    }
}

/// Written and read again, a model is the same to the bit.
pub fn round_trip(model: &Model) {
    match model_to_bytes(model) {
        Err(error) => refused(&error),
        Ok(bytes) => {
            let again = model_from_bytes(&bytes).expect("what was written can be read");
            assert_eq!(model_to_bytes(&again).expect("and written again"), bytes);
        }
    }
}

/// Compares the decisions with those of the scorer, where numbers are of a scale at which rounding says little.
pub fn scored(model: &Model, x: &Dense) {
    let Ok(decision) = model.decision_function(x) else { return };
    let Ok(exported) = export_model(model, ExportFormat::Json) else { return };
    let json: Value = serde_json::from_slice(&exported.bytes).expect("the JSON form is JSON");
    let Some(scorer) = Scorer::new(&json) else { return };
    let m = model.predictor.functions();
    for (row, found) in decision.chunks_exact(m).enumerate() {
        for (function, (score, size)) in scorer.scores(x.row(row), m).into_iter().enumerate() {
            if size < 1e10 {
                let difference = (found[function] - score).abs();
                assert!(difference <= 1e-4 * size + 1e-12, "{} by the model, {score} by the scorer", found[function]);
            }
        }
    }
}

/// A scorer as docs/models.md describes it. `None` where a number is not finite, which JSON has no word for.
struct Scorer<'a> {
    json: &'a Value,
    intercept: Vec<f64>,
    scaling: Option<(Vec<f64>, Vec<f64>)>,
    coef: Vec<Vec<f64>>,
    rows: Vec<Vec<f64>>,
    dual: Vec<Vec<f64>>,
}

fn numbers(value: &Value) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(Value::as_f64).collect()
}

fn matrix(value: &Value) -> Option<Vec<Vec<f64>>> {
    value.as_array().map_or(Some(Vec::new()), |rows| rows.iter().map(numbers).collect())
}

impl<'a> Scorer<'a> {
    fn new(json: &'a Value) -> Option<Scorer<'a>> {
        let scaling = match &json["scaling"] {
            Value::Null => None,
            given => Some((numbers(&given["shift"])?, numbers(&given["scale"])?)),
        };
        Some(Scorer {
            json,
            intercept: numbers(&json["intercept"])?,
            scaling,
            coef: matrix(&json["coef"])?,
            rows: matrix(&json["support_vectors"])?,
            dual: matrix(&json["dual_coef"])?,
        })
    }

    /// The score of each function, and the sum of the sizes of its terms.
    fn scores(&self, x: &[f64], functions: usize) -> Vec<(f64, f64)> {
        let x: Vec<f64> = match &self.scaling {
            None => x.to_vec(),
            Some((shift, scale)) => {
                let scaled = |(j, x): (usize, &f64)| (x - shift.get(j).unwrap_or(&0.0)) / scale[j];
                x.iter().enumerate().map(scaled).map(|z| z.clamp(-1000.0, 1000.0)).collect()
            }
        };
        let mapped: Vec<f64> = match self.json["feature_map"].as_str() {
            Some("squares") => x.iter().copied().chain(x.iter().map(|x| x * x)).collect(),
            _ => x.clone(),
        };
        let terms = |function: usize| -> Vec<f64> {
            if !self.coef.is_empty() {
                return self.coef[function].iter().zip(&mapped).map(|(w, x)| w * x).collect();
            }
            if self.json["kernel"]["name"] == "precomputed" {
                let support = numbers(&self.json["support"]).unwrap_or_default();
                return self.dual.iter().zip(support).map(|(dual, at)| dual[function] * x[at as usize]).collect();
            }
            self.dual.iter().zip(&self.rows).map(|(dual, row)| dual[function] * self.kernel(row, &x)).collect()
        };
        let score = |function: usize| {
            let terms = terms(function);
            let size: f64 = terms.iter().map(|term| term.abs()).sum::<f64>() + self.intercept[function].abs();
            let rounding = |(dual, row): (&Vec<f64>, &Vec<f64>)| dual[function].abs() * self.sensitivity(row, &x);
            let sensitive: f64 = self.dual.iter().zip(&self.rows).map(rounding).sum();
            (terms.iter().sum::<f64>() + self.intercept[function], size + sensitive)
        };
        (0..functions).map(score).collect()
    }

    /// How much of a kernel value rounding of what it is made of may change, as a factor on the rounding.
    fn sensitivity(&self, a: &[f64], b: &[f64]) -> f64 {
        let number = |name: &str| self.json["kernel"][name].as_f64().unwrap_or(0.0).abs();
        let squares: f64 = a.iter().chain(b).map(|value| value * value).sum();
        let inside = number("gamma") * squares + number("coef0");
        if self.json["kernel"]["name"] == "poly" { number("degree") * inside.powf(number("degree")) } else { inside }
    }

    fn kernel(&self, a: &[f64], b: &[f64]) -> f64 {
        let kernel = &self.json["kernel"];
        let number = |name: &str| kernel[name].as_f64().unwrap_or(f64::NAN);
        let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        let squared: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
        match kernel["name"].as_str() {
            Some("rbf") => (-number("gamma") * squared).exp(),
            Some("poly") => (number("gamma") * dot + number("coef0")).powf(number("degree")),
            Some("sigmoid") => (number("gamma") * dot + number("coef0")).tanh(),
            _ => dot,
        }
    }
}
