//! Pictures as SVG, in pure Rust: figures of panels ([`figure`]), level lines ([`contour`]), and what a classifier decides over a square
//! ([`decisions`]).

pub mod contour;
pub mod decisions;
pub mod figure;
pub mod svg;

pub use figure::{Axis, Figure, Key, Look, Mark, Panel, Shape};
