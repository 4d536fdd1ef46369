//! Figures of panels: lines, points, box plots and regions over linear, logarithmic or named axes.
//!
//! A figure holds what a paper's figure holds: panels in rows, each with axes of its own, and one legend below. Colours are
//! those that stay apart for most readers (Okabe and Ito).

use super::box_plot::BoxPlot;
use super::scale::Scale;
use super::svg::{STYLE, escape};
use std::fmt::Write;

/// Colours, by number.
pub const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5d4037", "#000000"];

const LEFT: f64 = 62.0;
const TOP: f64 = 58.0;
const PANEL_TOP: f64 = 30.0;
const PANEL_BELOW: f64 = 54.0;
/// Width of a letter of a name at a tick, and the sine of the angle by which names are turned where they have no room.
const LETTER: f64 = 6.2;
const TURNED: f64 = 0.64;
const GAP: f64 = 66.0;
const LEGEND: f64 = 10.0;
const LEGEND_LINE: f64 = 20.0;
/// A part of a pixel that makes no difference.
const UNSEEN: f64 = 0.1;
const INK: &str = "#263238";

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

/// How a line or a point looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Position in [`COLOURS`], around and around.
    pub colour: usize,
    /// Width of a line, radius of a point.
    pub width: f64,
    /// Lengths of dashes and gaps; empty for a whole line.
    pub dash: &'static str,
}

impl Look {
    /// A whole line of a colour.
    pub const fn line(colour: usize) -> Look {
        Look { colour, width: 1.8, dash: "" }
    }

    /// A broken line.
    pub const fn dashed(colour: usize, dash: &'static str) -> Look {
        Look { colour, width: 1.8, dash }
    }

    fn stroke(&self) -> String {
        let dash = if self.dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", self.dash) };
        format!("fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{dash}", colour(self.colour), self.width)
    }
}

/// Shapes of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// An open circle.
    Circle,
    /// A plus.
    Plus,
    /// An open triangle.
    Triangle,
    /// An open diamond.
    Diamond,
    /// A full dot.
    Dot,
}

impl Shape {
    /// The shape of a class.
    pub fn of(class: usize) -> Shape {
        [Shape::Circle, Shape::Plus, Shape::Triangle, Shape::Diamond][class % 4]
    }

    fn draw(self, x: f64, y: f64, look: &Look) -> String {
        let (r, colour) = (look.width, colour(look.colour));
        let open = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\"");
        match self {
            Shape::Circle => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\" {open}/>\n"),
            Shape::Dot => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\" fill=\"{colour}\"/>\n"),
            Shape::Plus => {
                format!("<path d=\"M{:.1} {y:.1}h{}M{x:.1} {:.1}v{}\" {open}/>\n", x - r, 2.0 * r, y - r, 2.0 * r)
            }
            Shape::Triangle => {
                let d = format!("M{x:.1} {:.1}l{r} {}h{}z", y - r, 1.8 * r, -2.0 * r);
                format!("<path d=\"{d}\" {open}/>\n")
            }
            Shape::Diamond => {
                let d = format!("M{x:.1} {:.1}l{r} {r}l{} {r}l{} {}z", y - r, -r, -r, -r);
                format!("<path d=\"{d}\" {open}/>\n")
            }
        }
    }
}

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

    /// Whether its names have no room side by side.
    fn is_crowded(&self, width: f64) -> bool {
        (LETTER * self.longest() + 4.0) * self.names.len() as f64 > width
    }

    /// Letters of the longest name.
    fn longest(&self) -> f64 {
        self.names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as f64
    }

    /// How far below the panel its label stands.
    fn label_below(&self, width: f64) -> f64 {
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
    fn reach(&self) -> Vec<[f64; 2]> {
        match self {
            Mark::Line(points, _) | Mark::Points(points, _, _) => points.clone(),
            Mark::Box(at, values, _) => values.iter().map(|value| [*at, *value]).collect(),
            Mark::Whisker(at, (low, high), _) => vec![[*at, *low], [*at, *high]],
            Mark::Bar(at, value, _) => vec![[*at, 0.0], [*at, *value]],
            Mark::Text(..) => Vec::new(),
        }
    }
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
            let text = 30.0 + 6.8 * key.name.chars().count() as f64;
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

/// A panel and where it stands.
struct Frame<'a> {
    panel: &'a Panel,
    left: f64,
    top: f64,
    size: (f64, f64),
    x: Scale,
    y: Scale,
}

impl<'a> Frame<'a> {
    fn new(panel: &'a Panel, (left, top): (f64, f64), size: (f64, f64)) -> Frame<'a> {
        let points: Vec<[f64; 2]> = panel.marks.iter().flat_map(Mark::reach).collect();
        let x = Scale::new(&panel.x, points.iter().map(|point| point[0]), left, left + size.0);
        let y = Scale::new(&panel.y, points.iter().map(|point| point[1]), top + size.1, top);
        Frame { panel, left, top, size, x, y }
    }

    fn draw(&self, svg: &mut String, number: usize) {
        let (left, top, (width, height)) = (self.left, self.top, self.size);
        let _ = writeln!(
            svg,
            "<text class=\"title\" x=\"{left}\" y=\"{:.1}\">{}</text>",
            top - 10.0,
            escape(&self.panel.title)
        );
        self.draw_axes(svg);
        let square = format!("x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"");
        let _ = writeln!(
            svg,
            "<clipPath id=\"panel{number}\"><rect {square}/></clipPath>\n<g clip-path=\"url(#panel{number})\">"
        );
        for mark in &self.panel.marks {
            self.draw_mark(svg, mark);
        }
        let _ = writeln!(svg, "</g>\n<rect {square} fill=\"none\" stroke=\"#90a4ae\"/>");
    }

    fn draw_axes(&self, svg: &mut String) {
        let (right, bottom) = (self.left + self.size.0, self.top + self.size.1);
        let grid = "stroke=\"#eceff1\"";
        let crowded = self.panel.x.is_crowded(self.size.0);
        for (value, text) in self.x.ticks(&self.panel.x) {
            let x = self.x.at(value);
            let _ = writeln!(svg, "<line x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{bottom}\" {grid}/>", self.top);
            let (turn, anchor) = match crowded {
                true => (format!(" transform=\"rotate(-40 {x:.1} {:.1})\"", bottom + 14.0), "end"),
                false => (String::new(), "middle"),
            };
            let place = format!("x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\"{turn}", bottom + 15.0);
            let _ = writeln!(svg, "<text class=\"tick\" {place}>{}</text>", escape(&text));
        }
        for (value, text) in self.y.ticks(&self.panel.y) {
            let y = self.y.at(value);
            let _ = writeln!(svg, "<line x1=\"{}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" {grid}/>", self.left);
            let place = format!("x=\"{}\" y=\"{:.1}\" text-anchor=\"end\"", self.left - 6.0, y + 4.0);
            let _ = writeln!(svg, "<text class=\"tick\" {place}>{}</text>", escape(&text));
        }
        let (middle, side) = ((self.left + right) / 2.0, self.left - 44.0);
        let below = bottom + self.panel.x.label_below(self.size.0);
        let label = escape(&self.panel.x.label);
        let _ =
            writeln!(svg, "<text class=\"small\" x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">{label}</text>");
        let up = (self.top + bottom) / 2.0;
        let label = escape(&self.panel.y.label);
        let turn = format!("text-anchor=\"middle\" transform=\"rotate(-90 {side} {up})\"");
        let _ = writeln!(svg, "<text class=\"small\" x=\"{side}\" y=\"{up}\" {turn}>{label}</text>");
    }

    fn draw_mark(&self, svg: &mut String, mark: &Mark) {
        match mark {
            Mark::Line(points, look) => {
                for part in points.split(|point| !self.shown(point)).filter(|part| part.len() > 1) {
                    let places = part.iter().map(|point| [self.x.at(point[0]), self.y.at(point[1])]);
                    let path: Vec<String> =
                        thinned(&places.collect::<Vec<_>>()).iter().map(|[x, y]| format!("{x:.1} {y:.1}")).collect();
                    let _ = writeln!(svg, "<path d=\"M{}\" {}/>", path.join("L"), look.stroke());
                }
            }
            Mark::Points(points, Shape::Dot, look) => {
                // one path for all, each a stroke of no length with round ends: a tenth of the bytes
                let shown = points.iter().filter(|point| self.shown(point));
                let path: String =
                    shown.map(|point| format!("M{:.1} {:.1}h0", self.x.at(point[0]), self.y.at(point[1]))).collect();
                let (fill, width) = (colour(look.colour), 2.0 * look.width);
                let _ = writeln!(
                    svg,
                    "<path d=\"{path}\" stroke=\"{fill}\" stroke-width=\"{width}\" stroke-linecap=\"round\"/>"
                );
            }
            Mark::Points(points, shape, look) => {
                for point in points.iter().filter(|point| self.shown(point)) {
                    svg.push_str(&shape.draw(self.x.at(point[0]), self.y.at(point[1]), look));
                }
            }
            Mark::Whisker(at, (low, high), look) if low.is_finite() && high.is_finite() => {
                let (x, low, high) = (self.x.at(*at), self.y.at(*low), self.y.at(*high));
                let cap = "h-6m3 0";
                let _ = writeln!(svg, "<path d=\"M{:.1} {low:.1}{cap}V{high:.1}m3 0h-6\" {}/>", x + 3.0, look.stroke());
            }
            Mark::Bar(at, value, look) if value.is_finite() => {
                let (x, y, foot) = (self.x.at(*at), self.y.at(*value), self.y.at(0.0));
                let (top, height) = (y.min(foot), (y - foot).abs());
                let place = format!("x=\"{:.1}\" y=\"{top:.1}\" width=\"{}\" height=\"{height:.1}\"", x - 5.0, 10.0);
                let _ = writeln!(svg, "<rect {place} fill=\"{}\" opacity=\"0.8\"/>", colour(look.colour));
            }
            Mark::Box(at, values, look) => self.draw_box(svg, *at, values, look),
            Mark::Text(at, text) => {
                let place = format!("x=\"{:.1}\" y=\"{:.1}\"", self.x.at(at[0]), self.y.at(at[1]));
                let _ = writeln!(svg, "<text class=\"tick\" {place}>{}</text>", escape(text));
            }
            Mark::Whisker(..) | Mark::Bar(..) => {}
        }
    }

    fn draw_box(&self, svg: &mut String, at: f64, values: &[f64], look: &Look) {
        let Some(plot) = BoxPlot::of(values) else { return };
        let x = self.x.at(at);
        let half = (0.3 * (self.x.at(at + 1.0) - x).abs()).min(18.0);
        let y = |value: f64| self.y.at(value);
        let (q1, median, q3) = (y(plot.quartiles[0]), y(plot.quartiles[1]), y(plot.quartiles[2]));
        let fill = colour(look.colour);
        let place =
            format!("x=\"{:.1}\" y=\"{q3:.1}\" width=\"{:.1}\" height=\"{:.1}\"", x - half, 2.0 * half, q1 - q3);
        let _ = writeln!(svg, "<rect {place} fill=\"{fill}\" fill-opacity=\"0.25\" stroke=\"{fill}\"/>");
        let (low, high) = (y(plot.whiskers[0]), y(plot.whiskers[1]));
        let caps = format!("M{:.1} {low:.1}h{half:.1}M{:.1} {high:.1}h{half:.1}", x - half / 2.0, x - half / 2.0);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {q1:.1}V{low:.1}M{x:.1} {q3:.1}V{high:.1}{caps}\" fill=\"none\" stroke=\"{fill}\"/>"
        );
        let line = format!("M{:.1} {median:.1}h{:.1}", x - half, 2.0 * half);
        let _ = writeln!(svg, "<path d=\"{line}\" fill=\"none\" stroke=\"{INK}\" stroke-width=\"2\"/>");
        for value in plot.outside {
            let _ =
                writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"2\" fill=\"none\" stroke=\"{fill}\"/>", y(value));
        }
    }

    fn shown(&self, point: &[f64; 2]) -> bool {
        self.x.at(point[0]).is_finite() && self.y.at(point[1]).is_finite()
    }
}

/// A line with fewer points that nowhere lies further off than can be seen.
fn thinned(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let mut kept: Vec<[f64; 2]> = points.first().copied().into_iter().collect();
    let mut from = 0;
    for next in 2..points.len() {
        let between = &points[from + 1..next];
        if between.iter().any(|point| distance(*point, points[from], points[next]) > UNSEEN) {
            from = next - 1;
            kept.push(points[from]);
        }
    }
    kept.extend(points.last().filter(|_| points.len() > 1));
    kept
}

/// How far a point lies from the line between two others; from the first, if they are one.
fn distance(point: [f64; 2], a: [f64; 2], b: [f64; 2]) -> f64 {
    let (along, to) = ([b[0] - a[0], b[1] - a[1]], [point[0] - a[0], point[1] - a[1]]);
    match along[0].hypot(along[1]) {
        0.0 => to[0].hypot(to[1]),
        length => (along[0] * to[1] - along[1] * to[0]).abs() / length,
    }
}

fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_lines_keep_their_shape() {
        let straight: Vec<[f64; 2]> = (0..50).map(|at| [at as f64, 2.0 * at as f64]).collect();
        assert_eq!(thinned(&straight), [straight[0], straight[49]]);
        let circle: Vec<[f64; 2]> = (0..=400)
            .map(|at| at as f64 / 400.0 * std::f64::consts::TAU)
            .map(|a| [100.0 * a.cos(), 100.0 * a.sin()])
            .collect();
        let few = thinned(&circle);
        assert!((20..120).contains(&few.len()), "{}", few.len());
        for point in &circle {
            let off = few.windows(2).map(|pair| distance(*point, pair[0], pair[1])).fold(f64::INFINITY, f64::min);
            assert!(off <= UNSEEN + 1e-9, "{off}");
        }
        assert_eq!(thinned(&circle[..1]).len(), 1);
    }

    #[test]
    fn a_legend_without_room_goes_on_in_the_next_line() {
        let keys = (0..9).map(|at| (format!("a name of some length {at}"), Look::line(at)));
        let figure = Figure::new("", 1, Vec::new()).lines(keys);
        let places = figure.places_of_keys(500.0);
        assert_eq!(places.iter().filter(|(x, _)| *x == LEFT).count(), 5);
        assert!(places.iter().all(|(x, _)| x + 30.0 + 6.8 * 23.0 <= 500.0));
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
