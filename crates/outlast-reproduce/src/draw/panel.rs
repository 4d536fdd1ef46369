//! A panel: its axes, and what is drawn on them.

use super::look::{Look, Shape};

/// Width of a letter of a name at a tick, and the sine of the angle by which names are turned where they have no room.
const LETTER: f64 = 6.2;
const TURNED: f64 = 0.64;

/// One panel.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, in order.
    pub marks: Vec<Mark>,
}

/// An axis.
#[derive(Debug, Clone, Default)]
pub struct Axis {
    /// What it measures.
    pub label: String,
    /// From, to; `None` for what the marks need.
    pub range: Option<(f64, f64)>,
    /// Whether equal steps are equal factors.
    pub log: bool,
    /// Names of the positions 0, 1, ... instead of numbers.
    pub names: Vec<String>,
    /// Where ticks stand; none for round numbers.
    pub places: Vec<f64>,
}

impl Axis {
    /// Equal steps.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), ..Axis::default() }
    }

    /// Equal factors.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), log: true, ..Axis::default() }
    }

    /// Names at 0, 1, ...
    pub fn names<S: Into<String>>(label: impl Into<String>, names: impl IntoIterator<Item = S>) -> Axis {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        Axis { label: label.into(), range: Some((-0.6, names.len() as f64 - 0.4)), names, ..Axis::default() }
    }

    /// With ticks at these places.
    pub fn ticks(self, places: impl Into<Vec<f64>>) -> Axis {
        Axis { places: places.into(), ..self }
    }

    /// Whether its names have no room side by side.
    pub(super) fn is_crowded(&self, width: f64) -> bool {
        (LETTER * self.longest() + 4.0) * self.names.len() as f64 > width
    }

    /// Letters of the longest name.
    pub(super) fn longest(&self) -> f64 {
        self.names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as f64
    }

    /// How far below the panel its label stands.
    pub(super) fn label_below(&self, width: f64) -> f64 {
        match self.is_crowded(width) {
            true => 36.0 + TURNED * LETTER * self.longest(),
            false => 34.0,
        }
    }

    /// From, to.
    pub fn range(self, low: f64, high: f64) -> Axis {
        Axis { range: Some((low, high)), ..self }
    }
}

/// Something drawn in a panel, in the units of its axes.
#[derive(Debug, Clone)]
pub enum Mark {
    /// A line through points; NaN interrupts it.
    Line(Vec<[f64; 2]>, Look),
    /// Points.
    Points(Vec<[f64; 2]>, Shape, Look),
    /// A box plot at a position: quartiles, whiskers to the last value within 1.5 times their distance, the others as circles.
    Box(f64, Vec<f64>, Look),
    /// A vertical bar from, to: an error.
    Whisker(f64, (f64, f64), Look),
    /// A bar from 0.
    Bar(f64, f64, Look),
    /// A text.
    Text([f64; 2], String),
}

impl Mark {
    pub(super) fn reach(&self) -> Vec<[f64; 2]> {
        match self {
            Mark::Line(points, _) | Mark::Points(points, _, _) => points.clone(),
            Mark::Box(at, values, _) => values.iter().map(|value| [*at, *value]).collect(),
            Mark::Whisker(at, (low, high), _) => vec![[*at, *low], [*at, *high]],
            Mark::Bar(at, value, _) => vec![[*at, 0.0], [*at, *value]],
            Mark::Text(..) => Vec::new(),
        }
    }
}
