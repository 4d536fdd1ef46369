//! `outlast certify`: how far a model may be from the global optimum of its problem.

use super::labels_of;
use crate::args::CertifyArgs;
use crate::failure::Failure;
use crate::output::{self, Pairs, short};
use crate::watch::Watch;
use outlast::model::certify_with;
use outlast::{Certified, Labels, io};
use serde_json::{Value, json};

/// Runs the command.
pub fn run(request: &CertifyArgs) -> Result<(), Failure> {
    let watch = Watch::start(request.show.quiet);
    watch.say("reading");
    let model = io::load_model(&request.model)?;
    let options = request.input.options(request.weight_column.as_deref());
    let table = io::read_for_model(&request.data, &options, &model.predictor, true)?;
    let labels = in_terms_of(&model, labels_of(&table)?);
    watch.say("bounding");
    let found = watch.run(
        None,
        |_| false,
        |control| certify_with(&model, table.design(), &labels, table.weights.as_deref(), control),
    )?;
    drop(watch);
    if request.show.json {
        output::print_json(&json(&found))?;
    } else if !request.show.quiet {
        output::print(&text(&found))?;
    }
    match request.fail_above {
        Some(most) if found.gap > most => {
            Err(Failure::Finding(format!("the model may be {:.2} % above the optimum", 100.0 * found.gap)))
        }
        _ => Ok(()),
    }
}

/// The labels with each class written as the model writes it: a file may have 1.0 where another had 1.
fn in_terms_of(model: &outlast::Model, labels: &Labels) -> Labels {
    let class = |label| match io::match_class(model.classes(), label) {
        Some(at) => model.classes()[at].clone(),
        None => label.clone(),
    };
    let classes: Vec<outlast::Class> = labels.classes().iter().map(class).collect();
    Labels::new(labels.codes().iter().map(|&code| classes[code as usize].clone()))
}

fn text(found: &Certified) -> String {
    let mut pairs = Pairs::default();
    pairs.add("objective", short(found.objective));
    pairs.add("lower bound", short(found.lower_bound));
    pairs.add("gap", format!("{:.2} %", 100.0 * found.gap));
    pairs.add(
        "verdict",
        match found.proved {
            true => "proved globally optimal",
            false => "not proved: the global optimum lies between the lower bound and the objective",
        },
    );
    pairs.render()
}

fn json(found: &Certified) -> Value {
    json!({
        "command": "certify",
        "objective": found.objective,
        "lower_bound": found.lower_bound,
        "gap": found.gap,
        "proved": found.proved,
    })
}
