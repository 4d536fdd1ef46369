//! `outlast evaluate`: how well a model's predictions agree with known labels.
//!
//! With n_ab rows of true class a predicted as b: accuracy = sum_a n_aa / n; recall of a = n_aa / sum_b n_ab; precision of
//! b = n_bb / sum_a n_ab; balanced accuracy = mean recall over the classes that occur. Labels the model has never seen are
//! rows of the matrix like others, and always wrong. A model fitted with utilities (or costs) U shows their mean as well,
//! sum_ab n_ab U_ab / n over the rows of known classes.

use super::{labels_of, load_model};
use crate::args::EvaluateArgs;
use crate::failure::Failure;
use crate::output::{self, Pairs, class_json, class_text, count, cut, short};
use crate::watch::Watch;
use outlast::{Class, Labels, io};
use serde_json::{Value, json};

/// Most classes whose whole matrix is printed; of more, the most frequent mistakes are.
const MATRIX: usize = 16;

/// Mistakes printed, and lines of precision and recall.
const MISTAKES: usize = 20;
const LINES: usize = 100;

/// Longest class over a column.
const NARROW: usize = 14;

/// Runs the command.
pub fn run(request: &EvaluateArgs) -> Result<(), Failure> {
    let watch = Watch::start(request.show.quiet);
    watch.say("reading");
    let model = load_model(&request.model, request.input.features)?;
    let table = io::read_for_model(&request.data, &request.input.options(None), &model.predictor, true)?;
    watch.say("predicting");
    let codes = model.predict_codes(table.design())?;
    let mut evaluation = Evaluation::new(model.classes(), labels_of(&table)?, &codes);
    evaluation.payoff = model.summary.payoff().map(|(name, matrix)| (name, matrix.to_vec()));
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
    /// What decisions are worth or cost by the model, with its name.
    payoff: Option<(&'static str, Vec<f64>)>,
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
        Evaluation { classes, known: known.len(), counts, payoff: None }
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

    /// Name and mean of the payoff over the rows of known classes, if there are any.
    fn average_payoff(&self) -> Option<(&'static str, f64)> {
        let (name, matrix) = self.payoff.as_ref()?;
        let known = &self.counts[..self.known];
        let rows: usize = known.iter().flatten().sum();
        let sum: f64 = known.iter().flatten().zip(matrix).map(|(&count, value)| count as f64 * value).sum();
        (rows > 0).then(|| (*name, sum / rows as f64))
    }

    fn text(&self) -> String {
        let mut pairs = Pairs::default();
        pairs.add("rows", self.rows().to_string());
        pairs.add("accuracy", format!("{:.4} ({} wrong)", self.accuracy(), self.rows() - self.correct()));
        pairs.add("balanced accuracy", format!("{:.4}", self.balanced_accuracy()));
        match self.average_payoff() {
            Some(("cost", average)) => pairs.add("average cost", short(average)),
            Some((_, average)) => pairs.add("average utility", short(average)),
            None => {}
        }
        let confusion = if self.classes.len() <= MATRIX { self.matrix_text() } else { self.mistakes_text() };
        let mut text = format!("{}\n{}\n{confusion}", pairs.render(), self.classes_text());
        let unknown = self.classes.len() - self.known;
        if unknown > 0 {
            text += &format!("\nThe model does not know {} of the data.\n", count(unknown, "class", "classes"));
        }
        text
    }

    fn classes_text(&self) -> String {
        let share = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.4}"));
        let lines: Vec<Vec<String>> = (0..self.classes.len().min(LINES))
            .map(|class| {
                let (precision, recall) = (share(self.precision(class)), share(self.recall(class)));
                vec![class_text(&self.classes[class]), precision, recall, self.support(class).to_string()]
            })
            .collect();
        let more = self.classes.len() - lines.len();
        let rest = if more > 0 { format!("... and {more} more, with --json\n") } else { String::new() };
        output::table(&["class", "precision", "recall", "rows"], &lines) + &rest
    }

    fn matrix_text(&self) -> String {
        let names: Vec<String> = self.classes.iter().map(class_text).collect();
        let above: Vec<String> = names[..self.known].iter().map(|name| cut(name, NARROW)).collect();
        let header: Vec<&str> = std::iter::once("true \\ predicted").chain(above.iter().map(String::as_str)).collect();
        let row = |(name, counts): (&String, &Vec<usize>)| {
            std::iter::once(name.clone()).chain(counts.iter().map(ToString::to_string)).collect()
        };
        let rows: Vec<Vec<String>> = names.iter().zip(&self.counts).map(row).collect();
        output::table(&header, &rows)
    }

    /// The most frequent mistakes, where the whole matrix would not fit.
    fn mistakes_text(&self) -> String {
        let mut mistakes: Vec<(usize, usize, usize)> = Vec::new();
        for (truth, counts) in self.counts.iter().enumerate() {
            let wrong = counts.iter().enumerate().filter(|(decided, count)| *decided != truth && **count > 0);
            mistakes.extend(wrong.map(|(decided, &count)| (count, truth, decided)));
        }
        let different = mistakes.len();
        mistakes.sort_by_key(|&(count, truth, decided)| (std::cmp::Reverse(count), truth, decided));
        mistakes.truncate(MISTAKES);
        let name = |class: usize| class_text(&self.classes[class]);
        let lines: Vec<Vec<String>> = mistakes
            .into_iter()
            .map(|(count, truth, decided)| vec![name(truth), name(decided), count.to_string()])
            .collect();
        let title = format!("{different} kinds of mistakes, the most frequent first; the whole matrix with --json\n");
        title + &output::table(&["true", "predicted", "rows"], &lines)
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
        let average = |wanted: &str| self.average_payoff().filter(|(name, _)| *name == wanted).map(|(_, value)| value);
        json!({
            "command": "evaluate",
            "rows": self.rows(),
            "correct": self.correct(),
            "accuracy": self.accuracy(),
            "error": 1.0 - self.accuracy(),
            "balanced_accuracy": self.balanced_accuracy(),
            "average_utility": average("utility"),
            "average_cost": average("cost"),
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
    fn payoffs_are_averaged_over_known_classes() {
        let known = [Class::from("a"), Class::from("b")];
        let mut evaluation = Evaluation::new(&known, &Labels::new(["a", "a", "b", "c"]), &[0, 1, 1, 0]);
        assert_eq!(evaluation.average_payoff(), None);
        evaluation.payoff = Some(("utility", vec![1.0, 0.5, 0.0, 3.0]));
        assert_eq!(evaluation.average_payoff(), Some(("utility", 1.5)));
        assert!(evaluation.text().contains("average utility    1.5\n"));
        assert_eq!(
            (&evaluation.json()["average_utility"], &evaluation.json()["average_cost"]),
            (&json!(1.5), &Value::Null)
        );
    }

    #[test]
    fn many_classes_show_their_mistakes() {
        let known: Vec<Class> = (0..150).map(Class::Int).collect();
        let truth: Vec<i64> = (0..300).map(|row| row % 150).collect();
        let predicted: Vec<u32> = (0..300).map(|row| if row % 150 < 3 { 149 } else { row % 150 }).collect();
        let evaluation = Evaluation::new(&known, &Labels::new(truth), &predicted);
        let text = evaluation.text();
        assert!(text.contains("3 kinds of mistakes") && text.contains("and 50 more"), "{text}");
        assert!(text.lines().all(|line| line.len() < 120) && text.lines().count() < 120);
        assert_eq!(evaluation.json()["confusion"]["counts"][2][149], 2);
    }

    #[test]
    fn labels_of_another_kind_still_match() {
        let known = [Class::Int(-1), Class::Int(1)];
        let evaluation = Evaluation::new(&known, &Labels::new(["1.0", "-1", "x"]), &[1, 0, 0]);
        assert_eq!((evaluation.correct(), evaluation.classes.len()), (2, 3));
    }
}
