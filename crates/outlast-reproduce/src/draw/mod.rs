//! Pictures as SVG, in pure Rust: figures of panels ([`figure`]), level lines ([`contour`]), and what a classifier decides over a square
//! ([`decisions`]).

pub mod box_plot;
pub mod contour;
pub mod decisions;
pub mod figure;
mod scale;
pub mod svg;

pub use figure::{Axis, Figure, Key, Look, Mark, Panel, Shape};
