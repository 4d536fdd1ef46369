//! Pictures as SVG, in pure Rust: figures of panels ([`figure`]), level lines ([`contour`]), and what a classifier decides over a square
//! ([`decisions`]).

pub mod box_plot;
pub mod contour;
pub mod decisions;
pub mod figure;
mod frame;
pub mod intervals;
mod look;
mod panel;
mod scale;
pub mod svg;

pub use figure::{Figure, Key};
pub use intervals::with_intervals;
pub use look::{COLOURS, Look, Shape};
pub use panel::{Axis, Mark, Panel};
