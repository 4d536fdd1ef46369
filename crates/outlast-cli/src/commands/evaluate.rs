//! `outlast evaluate`: how well a model's predictions agree with known labels.
//!
//! With n_ab rows of true class a predicted as b: accuracy = sum_a n_aa / n; recall of a = n_aa / sum_b n_ab; precision of
//! b = n_bb / sum_a n_ab; balanced accuracy = mean recall over the classes that occur. Labels the model has never seen are
//! rows of the matrix like others, and always wrong.

use super::labels_of;
use crate::args::EvaluateArgs;
use crate::failure::Failure;
use crate::output::{self, Pairs, class_json, class_text, count};
use crate::watch::Watch;
use outlast::{Class, Labels, io};
use serde_json::{Value, json};

/// Runs the command.
pub fn run(request: &EvaluateArgs) -> Result<(), Failure> {
    let watch = Watch::start(request.show.quiet);
    watch.say("reading");
    let model = io::load_model(&request.model)?;
    let table = io::read_for_model(&request.data, &request.input.options(None), &model.predictor, true)?;
    watch.say("predicting");
    let codes = model.predict_codes(table.design())?;
    let evaluation = Evaluation::new(model.classes(), labels_of(&table)?, &codes);
    drop(watch);
    if request.show.json {
        output::print_json(&evaluation.json())?;
    } else if !request.show.quiet {
        output::print(&evaluation.text())?;
    }
    match request.fail_below {
        Some(bound) if evaluation.accuracy() < bound => {
            Err(Failure::Finding(format!("the accuracy {:.4} is below {bound}", evaluation.accuracy())))
        }
        _ => Ok(()),
    }
}

/// The confusion matrix.
struct Evaluation {
    /// Classes of the model, which are the columns; then those only the data have.
    classes: Vec<Class>,
    /// How many classes the model knows.
    known: usize,
    /// Rows by true class and predicted class.
    counts: Vec<Vec<usize>>,
}

impl Evaluation {
    fn new(known: &[Class], labels: &Labels, predicted: &[u32]) -> Evaluation {
        let mut classes = known.to_vec();
        let row_of: Vec<usize> = labels
            .classes()
            .iter()
            .map(|label| {
                io::match_class(known, label).unwrap_or_else(|| {
                    classes.push(label.clone());
                    classes.len() - 1
                })
            })
            .collect();
        let mut counts = vec![vec![0; known.len()]; classes.len()];
        for (&code, &prediction) in labels.codes().iter().zip(predicted) {
            counts[row_of[code as usize]][prediction as usize] += 1;
        }
        Evaluation { classes, known: known.len(), counts }
    }

    fn rows(&self) -> usize {
        self.counts.iter().flatten().sum()
    }

    fn correct(&self) -> usize {
        (0..self.known).map(|class| self.counts[class][class]).sum()
    }

    fn accuracy(&self) -> f64 {
        self.correct() as f64 / self.rows() as f64
    }

    fn support(&self, class: usize) -> usize {
        self.counts[class].iter().sum()
    }

    /// Correct rows among those of the class, if there are any.
    fn recall(&self, class: usize) -> Option<f64> {
        let correct = if class < self.known { self.counts[class][class] } else { 0 };
        ratio(correct, self.support(class))
    }

    /// Correct rows among those predicted as the class, if there are any.
    fn precision(&self, class: usize) -> Option<f64> {
        if class >= self.known {
            return None;
        }
        ratio(self.counts[class][class], self.counts.iter().map(|row| row[class]).sum())
    }

    fn balanced_accuracy(&self) -> f64 {
        let recalls: Vec<f64> = (0..self.classes.len()).filter_map(|class| self.recall(class)).collect();
        recalls.iter().sum::<f64>() / recalls.len() as f64
    }

    fn text(&self) -> String {
        let mut pairs = Pairs::default();
        pairs.add("rows", self.rows().to_string());
        pairs.add("accuracy", format!("{:.4} ({} wrong)", self.accuracy(), self.rows() - self.correct()));
        pairs.add("balanced accuracy", format!("{:.4}", self.balanced_accuracy()));
        let names: Vec<String> = self.classes.iter().map(class_text).collect();
        let share = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.4}"));
        let per_class: Vec<Vec<String>> = (0..names.len())
            .map(|class| {
                let (precision, recall) = (share(self.precision(class)), share(self.recall(class)));
                vec![names[class].clone(), precision, recall, self.support(class).to_string()]
            })
            .collect();
        let mut text = pairs.render() + "\n";
        text += &output::table(&["class", "precision", "recall", "rows"], &per_class);
        let header: Vec<&str> =
            std::iter::once("true \\ predicted").chain(names[..self.known].iter().map(String::as_str)).collect();
        let matrix: Vec<Vec<String>> = names
            .iter()
            .zip(&self.counts)
            .map(|(name, row)| std::iter::once(name.clone()).chain(row.iter().map(ToString::to_string)).collect())
            .collect();
        text += "\n";
        text += &output::table(&header, &matrix);
        let unknown = self.classes.len() - self.known;
        if unknown > 0 {
            text += &format!("\nThe model does not know {} of the data.\n", count(unknown, "class", "classes"));
        }
        text
    }

    fn json(&self) -> Value {
        let per_class: Vec<Value> = (0..self.classes.len())
            .map(|class| {
                json!({
                    "class": class_json(&self.classes[class]),
                    "precision": self.precision(class),
                    "recall": self.recall(class),
                    "rows": self.support(class),
                    "known": class < self.known,
                })
            })
            .collect();
        json!({
            "command": "evaluate",
            "rows": self.rows(),
            "correct": self.correct(),
            "accuracy": self.accuracy(),
            "balanced_accuracy": self.balanced_accuracy(),
            "classes": per_class,
            "confusion": {
                "true": self.classes.iter().map(class_json).collect::<Vec<_>>(),
                "predicted": self.classes[..self.known].iter().map(class_json).collect::<Vec<_>>(),
                "counts": self.counts,
            },
        })
    }
}

fn ratio(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_their_definitions() {
        let known = [Class::from("a"), Class::from("b")];
        let labels = Labels::new(["a", "a", "a", "b", "b", "c"]);
        let evaluation = Evaluation::new(&known, &labels, &[0, 0, 1, 1, 1, 0]);
        assert_eq!(evaluation.counts, [[2, 1], [0, 2], [1, 0]]);
        assert_eq!(evaluation.accuracy(), 4.0 / 6.0);
        assert_eq!(
            (evaluation.recall(0), evaluation.recall(1), evaluation.recall(2)),
            (Some(2.0 / 3.0), Some(1.0), Some(0.0))
        );
        assert_eq!((evaluation.precision(0), evaluation.precision(1)), (Some(2.0 / 3.0), Some(2.0 / 3.0)));
        assert!((evaluation.balanced_accuracy() - 5.0 / 9.0).abs() < 1e-15);
        assert!(evaluation.text().contains("does not know 1 class"));
    }

    #[test]
    fn labels_of_another_kind_still_match() {
        let known = [Class::Int(-1), Class::Int(1)];
        let evaluation = Evaluation::new(&known, &Labels::new(["1.0", "-1", "x"]), &[1, 0, 0]);
        assert_eq!((evaluation.correct(), evaluation.classes.len()), (2, 3));
    }
}
