//! `outlast apply-decisions`: the rows of a table kept, relabelled or dropped as decided.

use crate::args::audit::ApplyArgs;
use crate::destination;
use crate::failure::Failure;
use crate::output::{self, Pairs, count};
use crate::watch::Watch;
use outlast::error::quoted;
use outlast::io;
use serde_json::json;

/// Runs the command.
pub fn run(request: &ApplyArgs) -> Result<(), Failure> {
    // the data may be corrected in place
    let output = [("--output", Some(request.output.as_path()))];
    let taken = destination::check(&output, &[&request.decisions], request.show.json)?;
    let is_input = |path: &std::path::Path| destination::is_standard_output(path);
    if is_input(&request.data) && is_input(&request.decisions) {
        return Err(Failure::Usage("the data and the decisions can't both be standard input".to_string()));
    }
    if request.output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz")) {
        let problem = "the data are written unpacked; leave out the .gz";
        return Err(Failure::Usage(format!("--output {}: {problem}", request.output.display())));
    }
    let watch = Watch::start(request.show.quiet);
    watch.say("reading");
    let decisions = io::read_decisions(&request.decisions)?;
    let mut text = Vec::new();
    let applied = io::apply_decisions(&request.data, &request.input.options(None), &decisions, &mut text)?;
    watch.write(|| destination::write(&request.output, |out| out.write_all(&text)))?;
    drop(watch);
    if !request.show.quiet {
        for (label, rows) in &applied.new_labels {
            let rows = count(*rows as usize, "row is", "rows are");
            output::tell(&format!("note: {rows} relabelled to {}, a class that the data did not have", quoted(label)));
        }
    }
    if request.show.json {
        return output::print_json(&json!({
            "command": "apply-decisions",
            "kept": applied.kept,
            "relabelled": applied.relabelled,
            "dropped": applied.dropped,
            "new_labels": applied.new_labels.keys().collect::<Vec<_>>(),
            "output": request.output.to_string_lossy(),
        }));
    }
    if request.show.quiet {
        return Ok(());
    }
    let mut pairs = Pairs::default();
    pairs.add("kept", applied.kept.to_string());
    pairs.add("relabelled", applied.relabelled.to_string());
    pairs.add("dropped", applied.dropped.to_string());
    if taken {
        output::tell(pairs.render().trim_end());
        return Ok(());
    }
    pairs.add("written", request.output.display().to_string());
    output::print(&pairs.render())
}
