//! `outlast`: support vector machines that outlast bad labels and outliers, on the command line.
//!
//! Arguments ([`args`]) become requests to the `outlast` crate ([`commands`], [`demo`]); what comes back is shown by
//! [`output`] as aligned text or as one JSON object. Exit codes: 0 done, 1 a finding the user asked to fail on, 2 bad usage
//! or bad input, 130 interrupted.

mod args;
mod chart;
mod commands;
mod demo;
mod destination;
mod failure;
mod memory;
mod output;
mod watch;

use args::{Cli, Command};
use clap::Parser;
use outlast_reproduce::draw::svg;
use std::process::ExitCode;

fn main() -> ExitCode {
    memory::report_lack();
    let outcome = match Cli::parse().command {
        Command::Fit(request) => commands::fit::run(&request),
        Command::Predict(request) => commands::predict::run(&request),
        Command::Evaluate(request) => commands::evaluate::run(&request),
        Command::Certify(request) => commands::certify::run(&request),
        Command::Export(request) => commands::export::run(&request),
        Command::Gamma(request) => commands::gamma::run(&request),
        Command::Tune(request) => commands::tune::run(&request),
        Command::Audit(request) => commands::audit::run(&request),
        Command::ApplyDecisions(request) => commands::apply::run(&request),
        Command::Reproduce(request) => commands::reproduce::run(&request),
        Command::Demo(request) => demo::run(&request),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
