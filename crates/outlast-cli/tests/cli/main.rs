//! The command as its users meet it: run as a process, judged by what it prints, writes and returns.

mod ablation;
mod audit;
mod capped;
mod common;
mod demo;
mod faults;
mod hostile;
mod interrupt;
mod lq;
mod many_classes;
#[cfg(unix)]
mod readme;
mod reference;
mod refusals;
mod reproduce;
mod round_trip;
mod stream;
mod travel;
mod tune;
