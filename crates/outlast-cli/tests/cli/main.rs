//! The command as its users meet it: run as a process, judged by what it prints, writes and returns.

mod ablation;
mod capped;
mod common;
mod demo;
mod interrupt;
mod lq;
mod many_classes;
#[cfg(unix)]
mod readme;
mod refusals;
mod round_trip;
mod travel;
