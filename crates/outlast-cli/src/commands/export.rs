//! `outlast export`: a model in the form of another program.

use crate::args::ExportArgs;
use crate::destination;
use crate::failure::Failure;
use crate::output::{self, Pairs, count};
use outlast::io::{self, ExportFormat};
use serde_json::json;

/// Runs the command.
pub fn run(request: &ExportArgs) -> Result<(), Failure> {
    let format = ExportFormat::from_name(&request.format)?;
    let taken = destination::check(&[("--output", Some(&request.output))], &[&request.model], request.show.json)?;
    if format == ExportFormat::Onnx {
        destination::check_no_terminal("--output", Some(&request.output))?;
    }
    let model = io::load_model(&request.model)?;
    let exported = io::export_model(&model, format)?;
    destination::write(&request.output, |out| out.write_all(&exported.bytes))?;
    if !request.show.quiet {
        exported.notes.iter().for_each(|note| output::tell(&format!("note: {note}")));
    }
    if request.show.json {
        return output::print_json(&json!({
            "command": "export",
            "model": request.model.to_string_lossy(),
            "format": format.name(),
            "output": request.output.to_string_lossy(),
            "bytes": exported.bytes.len(),
            "notes": exported.notes,
        }));
    }
    if request.show.quiet || taken {
        return Ok(());
    }
    let mut pairs = Pairs::default();
    pairs.add("format", format!("{}: {}", format.name(), format.about()));
    pairs.add("file", format!("{}, {}", request.output.display(), count(exported.bytes.len(), "byte", "bytes")));
    output::print(&pairs.render())
}
