//! Figures of panels: lines, points, box plots and regions over linear, logarithmic or named axes.
//!
//! A figure holds what a paper's figure holds: panels in rows, each with axes of its own, and one legend below.

use super::frame::Frame;
use super::look::{Look, Shape};
use super::panel::Panel;
use super::svg::{STYLE, escape};
use std::fmt::Write;

const LEFT: f64 = 62.0;
const TOP: f64 = 58.0;
const PANEL_TOP: f64 = 30.0;
const PANEL_BELOW: f64 = 54.0;
const GAP: f64 = 66.0;
const LEGEND: f64 = 10.0;
const LEGEND_LINE: f64 = 20.0;
/// Width of a letter in the legend, in a wide font.
const LEGEND_LETTER: f64 = 7.6;

/// A picture of panels.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Above everything.
    pub title: String,
    /// Row by row.
    pub panels: Vec<Panel>,
    /// Panels side by side.
    pub across: usize,
    /// Width and height of a panel.
    pub size: (f64, f64),
    /// Below everything.
    pub legend: Vec<Key>,
}

/// An entry of the legend.
#[derive(Debug, Clone)]
pub struct Key {
    /// What it says.
    pub name: String,
    /// How it looks.
    pub look: Look,
    /// A line, or a point of this shape.
    pub shape: Option<Shape>,
}

impl Figure {
    /// Panels side by side.
    pub fn new(title: impl Into<String>, across: usize, panels: Vec<Panel>) -> Figure {
        Figure { title: title.into(), panels, across: across.max(1), size: (300.0, 240.0), legend: Vec::new() }
    }

    /// With panels of another size.
    pub fn size(self, width: f64, height: f64) -> Figure {
        Figure { size: (width, height), ..self }
    }

    /// With a legend: lines.
    pub fn lines<S: Into<String>>(self, legend: impl IntoIterator<Item = (S, Look)>) -> Figure {
        let legend = legend.into_iter().map(|(name, look)| Key { name: name.into(), look, shape: None }).collect();
        Figure { legend, ..self }
    }

    /// The picture.
    pub fn draw(&self) -> String {
        let rows = self.panels.len().div_ceil(self.across);
        let label = self.panels.iter().map(|panel| panel.x.label_below(self.size.0)).fold(0.0, f64::max);
        let below = PANEL_BELOW.max(label + 20.0);
        let (width, height) = (self.size.0 + GAP, self.size.1 + PANEL_TOP + below);
        let title = 11.0 * self.title.chars().count() as f64;
        let whole_width = (LEFT + self.across as f64 * width).max(LEFT + title);
        let keys = self.places_of_keys(whole_width);
        let legend = keys.last().map_or(0.0, |(_, below)| LEGEND + LEGEND_LINE + below);
        let foot = TOP + rows as f64 * height;
        let whole_height = foot + legend;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole_width} {whole_height}\" width=\"{whole_width}\" \
             height=\"{whole_height}\" role=\"img\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n<text class=\"head\" x=\"{LEFT}\" y=\"34\">{title}</text>\n",
            title = escape(&self.title)
        );
        for (at, panel) in self.panels.iter().enumerate() {
            let left = LEFT + (at % self.across) as f64 * width;
            let top = TOP + (at / self.across) as f64 * height + PANEL_TOP;
            Frame::new(panel, (left, top), self.size).draw(&mut svg, at);
        }
        self.draw_legend(&mut svg, foot + LEGEND, &keys);
        svg + "</svg>\n"
    }

    /// Where each entry of the legend begins: from the left, and below the first line. What has no room begins a new line.
    fn places_of_keys(&self, width: f64) -> Vec<(f64, f64)> {
        let (mut x, mut below) = (LEFT, 0.0);
        let place = |key: &Key| {
            let text = 30.0 + LEGEND_LETTER * key.name.chars().count() as f64;
            if x > LEFT && x + text > width {
                (x, below) = (LEFT, below + LEGEND_LINE);
            }
            let at = (x, below);
            x += text + 22.0;
            at
        };
        self.legend.iter().map(place).collect()
    }

    fn draw_legend(&self, svg: &mut String, top: f64, places: &[(f64, f64)]) {
        for (key, &(x, below)) in self.legend.iter().zip(places) {
            let y = top + below;
            match key.shape {
                Some(shape) => svg.push_str(&shape.draw(x + 12.0, y - 4.0, &key.look)),
                None => {
                    let _ = writeln!(svg, "<path d=\"M{x} {:.1}h24\" {}/>", y - 4.0, key.look.stroke());
                }
            }
            let _ = writeln!(svg, "<text class=\"legend\" x=\"{}\" y=\"{y}\">{}</text>", x + 30.0, escape(&key.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::{Axis, Mark};

    #[test]
    fn a_legend_without_room_goes_on_in_the_next_line() {
        let keys = (0..9).map(|at| (format!("a name of some length {at}"), Look::line(at)));
        let figure = Figure::new("", 1, Vec::new()).lines(keys);
        let places = figure.places_of_keys(500.0);
        assert_eq!(places.iter().filter(|(x, _)| *x == LEFT).count(), 5);
        assert!(places.iter().all(|(x, _)| x + 30.0 + LEGEND_LETTER * 23.0 <= 500.0));
        assert_eq!(places[8].1, 4.0 * LEGEND_LINE);
    }

    #[test]
    fn every_mark_is_drawn_and_nothing_is_not_a_number() {
        let look = Look::line(0);
        let panel = Panel {
            title: "a < b".to_string(),
            x: Axis::log("C"),
            y: Axis::linear("error"),
            marks: vec![
                Mark::Line(vec![[0.1, 1.0], [1.0, f64::NAN], [10.0, 2.0], [100.0, 2.5]], look),
                Mark::Points(vec![[1.0, 1.0], [f64::INFINITY, 1.0]], Shape::Plus, look),
                Mark::Whisker(1.0, (f64::NAN, 1.0), look),
                Mark::Box(10.0, vec![1.0, 2.0, 3.0], look),
                Mark::Text([1.0, 1.0], "&".to_string()),
            ],
        };
        let names =
            Panel { x: Axis::names("", ["one", "two"]), marks: vec![Mark::Bar(0.0, 3.0, look)], ..panel.clone() };
        let svg = Figure::new("title", 2, vec![panel, names]).lines([("x", look)]).draw();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"));
        assert_eq!(svg.matches("a &lt; b").count(), 2);
        assert!(svg.contains(">one<") && svg.contains("&amp;") && svg.contains("1e1"));
    }
}
