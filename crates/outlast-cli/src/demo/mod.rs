//! `outlast demo`: the plain and the truncated support vector machine on the same data with wrong labels.
//!
//! Both minimise the same objective with the same C and the same kernel, (x.z + 1)^2, in which the true boundary, a circle,
//! is exact. They differ in the truncation only.

mod data;
mod svg;

use crate::args::DemoArgs;
use crate::commands;
use crate::destination;
use crate::failure::Failure;
use crate::output::{self, count};
use crate::watch::Watch;
use data::Point;
use outlast::{Audit, Control, Dense, Error, FitRequest, Gamma, Kernel, Labels, Model, Truncated, Truncation, io};
use outlast_reproduce::draw::contour::Grid;
use outlast_reproduce::random::Random;
use serde_json::{Value, json};
use svg::Panel;

const C: f64 = 10.0;
const TEST_ROWS: usize = 10_000;
const GRID: usize = 161;

/// What one method made of the data.
struct Outcome {
    name: &'static str,
    model: Model,
    test_error: f64,
    support: Vec<bool>,
    outliers: Vec<bool>,
    /// Outliers whose label is wrong indeed.
    recognised: usize,
}

/// Runs the command.
pub fn run(request: &DemoArgs) -> Result<(), Failure> {
    let files = [("--output", Some(request.output.as_path())), ("--html", request.html.as_deref())];
    let taken = destination::check(&files, &[], request.show.json)?;
    if let Some(folder) = &request.save_data {
        std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    }
    let watch = Watch::start(request.show.quiet);
    let mut random = Random::new(request.seed);
    let training = data::training(request.rows as usize, request.flip, &mut random);
    let test = data::test(TEST_ROWS, &mut random);
    let [plain, truncated] = watch.run(None, |_| false, |control| compare(&training, &test, control))?;
    let outcomes = [plain, truncated];
    let audited = match request.html {
        Some(_) => Some(watch.run(None, |_| false, |control| audit(&training, control))?),
        None => None,
    };
    let picture = picture(&training, &outcomes)?;
    watch.write(|| destination::write(&request.output, |out| out.write_all(picture.as_bytes())))?;
    if let (Some(path), Some(audited)) = (&request.html, &audited) {
        watch.write(|| destination::write(path, |out| out.write_all(&audited.page)))?;
    }
    if let Some(folder) = &request.save_data {
        for (name, points) in [("train.csv", &training), ("test.csv", &test)] {
            let text = data::as_csv(points);
            watch.write(|| destination::write(&folder.join(name), |out| out.write_all(text.as_bytes())))?;
        }
    }
    drop(watch);
    if request.show.json {
        output::print_json(&as_json(request, &training, &outcomes, audited.as_ref()))
    } else if request.show.quiet {
        Ok(())
    } else if taken {
        output::tell(as_text(request, &training, &outcomes, audited.as_ref()).trim_end());
        Ok(())
    } else {
        output::print(&as_text(request, &training, &outcomes, audited.as_ref()))
    }
}

/// The suspects among the training rows, and the page that shows them.
struct Audited {
    suspects: usize,
    /// Suspects whose label is wrong indeed.
    recognised: usize,
    /// Of as many rows with the highest scores as there are wrong labels, those whose label is wrong.
    first: usize,
    page: Vec<u8>,
}

fn audit(training: &[Point], control: Control) -> outlast::Result<Audited> {
    let (x, y) = data::split(training)?;
    let report = Audit::default().run_with(&x, &y, control)?;
    let text = data::as_csv(training);
    let cells = io::read_cells(text.as_bytes(), "train.csv", &io::ReadOptions::default(), usize::MAX)?;
    let wrong = |row: usize| training[row].wrong;
    let recognised = report.suspects.iter().filter(|suspect| wrong(suspect.row)).count();
    let first = report.suspects.iter().take(wrong_labels(training)).filter(|suspect| wrong(suspect.row)).count();
    let page = commands::audit::page(&report, &x, "train.csv", cells)?;
    Ok(Audited { suspects: report.suspects.len(), recognised, first, page })
}

fn compare(training: &[Point], test: &[Point], control: Control) -> outlast::Result<[Outcome; 2]> {
    let data = data::split(training)?;
    let clean = data::split(test)?;
    let run = |name, truncation| outcome(name, truncation, training, &data, &clean, control);
    Ok([run("plain", Truncation::Off)?, run("truncated", Truncation::Auto)?])
}

fn outcome(
    name: &'static str,
    truncation: Truncation,
    training: &[Point],
    (x, y): &(Dense<'static>, Labels),
    (test_x, test_y): &(Dense<'static>, Labels),
    control: Control,
) -> outlast::Result<Outcome> {
    let kernel = Kernel::Poly { gamma: Gamma::Value(1.0), degree: 2, coef0: 1.0 };
    let method = Truncated::new(C).kernel(kernel).truncation(truncation);
    let model = method.fit_with(x, y, &FitRequest { control, ..FitRequest::default() })?;
    let predicted = model.predict_codes(test_x)?;
    let wrong = predicted.iter().zip(test_y.codes()).filter(|(a, b)| a != b).count();
    let mut support = vec![false; training.len()];
    for &row in &model.predictor.support {
        support[row as usize] = true;
    }
    let outliers = model.training.as_ref().map_or(vec![false; training.len()], |training| training.outliers.clone());
    let recognised = outliers.iter().zip(training).filter(|(outlier, point)| **outlier && point.wrong).count();
    Ok(Outcome { name, test_error: wrong as f64 / test_y.len().max(1) as f64, support, outliers, recognised, model })
}

fn wrong_labels(training: &[Point]) -> usize {
    training.iter().filter(|point| point.wrong).count()
}

fn picture(training: &[Point], outcomes: &[Outcome; 2]) -> outlast::Result<String> {
    let [plain, truncated] = outcomes;
    let wrong = count(wrong_labels(training), "wrong label", "wrong labels");
    let head = format!("Two support vector machines, one data set: {} rows, {wrong}", training.len());
    let panels = [panel("Plain hinge loss", plain)?, panel("Truncated hinge loss", truncated)?];
    Ok(svg::draw(&head, training, &panels))
}

fn panel(title: &str, outcome: &Outcome) -> outlast::Result<Panel> {
    let points = Grid::points(GRID, -svg::REACH, svg::REACH);
    let values = outcome.model.decision_function(&Dense::new(GRID * GRID, 2, points)?)?;
    let support = count(outcome.model.support_count(), "support vector", "support vectors");
    let outliers = count(outcome.model.summary.outliers, "outlier", "outliers");
    let subtitle = match outcome.model.summary.truncation {
        None => support,
        Some(_) => format!("{support}; {outliers} found, {} with a wrong label", outcome.recognised),
    };
    Ok(Panel {
        title: format!("{title}: {:.1} % test error", 100.0 * outcome.test_error),
        subtitle,
        grid: Grid { side: GRID, low: -svg::REACH, high: svg::REACH, values },
        support: outcome.support.clone(),
        outliers: outcome.outliers.clone(),
    })
}

fn as_text(request: &DemoArgs, training: &[Point], outcomes: &[Outcome; 2], audited: Option<&Audited>) -> String {
    let wrong = wrong_labels(training);
    let mut text = format!(
        "A disc within a ring: {} training rows, {} of them with a wrong label, and {TEST_ROWS} clean test rows.\n\
         Both methods use C = {C} and the kernel (x.z + 1)^2.\n\n",
        training.len(),
        wrong
    );
    let rows: Vec<Vec<String>> = outcomes
        .iter()
        .map(|outcome| {
            let truncated = outcome.model.summary.truncation.is_some();
            let only_if = |number: String| if truncated { number } else { "-".to_string() };
            vec![
                outcome.name.to_string(),
                format!("{:.2} %", 100.0 * outcome.test_error),
                outcome.model.support_count().to_string(),
                only_if(outcome.model.summary.outliers.to_string()),
                only_if(format!("{} of {wrong}", outcome.recognised)),
            ]
        })
        .collect();
    text += &output::table(&["SVM", "test error", "support vectors", "outliers found", "wrong labels found"], &rows);
    let picture = match destination::is_standard_output(&request.output) {
        true => "standard output".to_string(),
        false => request.output.display().to_string(),
    };
    text += &format!("\npicture: {picture}\n");
    if let (Some(audited), Some(path)) = (audited, &request.html) {
        let suspects = count(audited.suspects, "suspect", "suspects");
        text += &format!(
            "\nThe audit of the training rows names {suspects}, {} of them with a wrong label; of the first {wrong}, {} have one.\n\
             audit page: {}\n",
            audited.recognised,
            audited.first,
            path.display()
        );
    }
    text
}

fn as_json(request: &DemoArgs, training: &[Point], outcomes: &[Outcome; 2], audited: Option<&Audited>) -> Value {
    let one = |outcome: &Outcome| {
        json!({
            "test_error": outcome.test_error,
            "support_vectors": outcome.model.support_count(),
            "outliers": outcome.model.summary.outliers,
            "outliers_wrong": outcome.recognised,
            "objective": outcome.model.summary.objective,
            "status": outcome.model.summary.status.name(),
        })
    };
    json!({
        "command": "demo",
        "seed": request.seed,
        "rows": training.len(),
        "wrong_labels": wrong_labels(training),
        "test_rows": TEST_ROWS,
        "c": C,
        "picture": request.output.to_string_lossy(),
        "audit": audited.map(|audited| json!({
            "suspects": audited.suspects,
            "suspects_wrong": audited.recognised,
            "page": request.html.as_ref().map(|path| path.to_string_lossy()),
        })),
        "plain": one(&outcomes[0]),
        "truncated": one(&outcomes[1]),
    })
}
