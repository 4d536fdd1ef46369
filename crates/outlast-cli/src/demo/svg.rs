//! The picture: both boundaries side by side over the training data.

use super::data::{Point, TRUE_RADIUS_SQUARED};
use crate::svg::{STYLE, escape};
use outlast_reproduce::draw::contour::{Grid, Place};
use std::fmt::Write;

/// One model's half of the picture.
pub struct Panel {
    pub title: String,
    pub subtitle: String,
    /// The decision function.
    pub grid: Grid,
    /// Which rows are support vectors.
    pub support: Vec<bool>,
    /// Which rows are recognised as outliers.
    pub outliers: Vec<bool>,
}

/// Half the width of the square shown.
pub const REACH: f64 = 1.9;

const SIDE: f64 = 430.0;
const LEFT: f64 = 46.0;
const TOP: f64 = 104.0;
const GAP: f64 = 44.0;
const WIDTH: f64 = LEFT + 2.0 * SIDE + GAP + 24.0;
const HEIGHT: f64 = TOP + SIDE + 96.0;

const INSIDE: &str = "#2166ac";
const OUTSIDE: &str = "#e08214";
const WRONG: &str = "#c2185b";
const INK: &str = "#263238";

/// The whole picture as SVG.
pub fn draw(head: &str, points: &[Point], panels: &[Panel; 2]) -> String {
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\">"
    );
    let _ = writeln!(svg, "<title>{}</title>\n<style>{STYLE}</style>", escape(head));
    let _ = writeln!(svg, "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>");
    let _ = writeln!(svg, "<text class=\"head\" x=\"{LEFT}\" y=\"34\">{}</text>", escape(head));
    for (number, panel) in panels.iter().enumerate() {
        let frame = Frame { left: LEFT + number as f64 * (SIDE + GAP), top: TOP };
        frame.draw(&mut svg, number, panel, points);
    }
    legend(&mut svg);
    svg + "</svg>\n"
}

/// Where a panel stands.
struct Frame {
    left: f64,
    top: f64,
}

impl Frame {
    /// From the plane to the picture.
    fn to(&self, place: Place) -> (f64, f64) {
        let scale = SIDE / (2.0 * REACH);
        (self.left + (place[0] + REACH) * scale, self.top + (REACH - place[1]) * scale)
    }

    fn draw(&self, svg: &mut String, number: usize, panel: &Panel, points: &[Point]) {
        let (left, top) = (self.left, self.top);
        let _ =
            writeln!(svg, "<text class=\"title\" x=\"{left}\" y=\"{}\">{}</text>", top - 30.0, escape(&panel.title));
        let _ =
            writeln!(svg, "<text class=\"small\" x=\"{left}\" y=\"{}\">{}</text>", top - 12.0, escape(&panel.subtitle));
        let square = format!("x=\"{left}\" y=\"{top}\" width=\"{SIDE}\" height=\"{SIDE}\"");
        let _ = writeln!(svg, "<clipPath id=\"panel{number}\"><rect {square}/></clipPath>");
        let _ = writeln!(svg, "<g clip-path=\"url(#panel{number})\">");
        let _ = writeln!(svg, "<rect {square} fill=\"#dbe9f6\"/>");
        self.region(svg, &panel.grid);
        self.truth(svg);
        for (level, look) in [
            (-1.0, "stroke-width=\"1\" stroke-dasharray=\"5 4\" opacity=\"0.55\""),
            (1.0, "stroke-width=\"1\" stroke-dasharray=\"5 4\" opacity=\"0.55\""),
            (0.0, "stroke-width=\"2.6\""),
        ] {
            for line in panel.grid.lines(level) {
                let _ = writeln!(svg, "<path d=\"{}\" fill=\"none\" stroke=\"{INK}\" {look}/>", self.path(&line));
            }
        }
        for (row, point) in points.iter().enumerate() {
            let (x, y) = self.to(point.x);
            mark(svg, x, y, point, panel.support[row], panel.outliers[row]);
        }
        let _ = writeln!(svg, "</g>\n<rect {square} fill=\"none\" stroke=\"#90a4ae\"/>");
        self.axes(svg);
    }

    /// Shades where the model says outside.
    fn region(&self, svg: &mut String, grid: &Grid) {
        let shapes: String = grid.above_zero().iter().map(|polygon| self.path(polygon) + "Z").collect();
        let _ = writeln!(svg, "<path d=\"{shapes}\" fill=\"#fdebd3\" stroke=\"#fdebd3\" stroke-width=\"0.6\"/>");
    }

    fn truth(&self, svg: &mut String) {
        let (x, y) = self.to([0.0, 0.0]);
        let radius = TRUE_RADIUS_SQUARED.sqrt() * SIDE / (2.0 * REACH);
        let look =
            "fill=\"none\" stroke=\"#2e7d32\" stroke-width=\"1.6\" stroke-dasharray=\"2 4\" stroke-linecap=\"round\"";
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" {look}/>");
    }

    fn path(&self, places: &[Place]) -> String {
        let mut path = String::new();
        for (step, &place) in places.iter().enumerate() {
            let (x, y) = self.to(place);
            let _ = write!(path, "{}{x:.1} {y:.1}", if step == 0 { 'M' } else { 'L' });
        }
        path
    }

    fn axes(&self, svg: &mut String) {
        let bottom = self.top + SIDE;
        for tick in [-1.0, 0.0, 1.0] {
            let ((x, _), (_, y)) = (self.to([tick, 0.0]), self.to([0.0, tick]));
            let look = "stroke=\"#90a4ae\"";
            let _ = writeln!(svg, "<line x1=\"{x:.1}\" y1=\"{bottom}\" x2=\"{x:.1}\" y2=\"{}\" {look}/>", bottom + 5.0);
            let _ = writeln!(
                svg,
                "<line x1=\"{}\" y1=\"{y:.1}\" x2=\"{}\" y2=\"{y:.1}\" {look}/>",
                self.left - 5.0,
                self.left
            );
            let label = format!("{tick}").replace('-', "\u{2212}");
            let _ = writeln!(
                svg,
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>\
                 <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                bottom + 17.0,
                self.left - 8.0,
                y + 4.0
            );
        }
    }
}

/// A row: coloured by its label, ringed if that is wrong, outlined if a support vector, crossed if an outlier.
fn mark(svg: &mut String, x: f64, y: f64, point: &Point, support: bool, outlier: bool) {
    let colour = if point.outside { OUTSIDE } else { INSIDE };
    let edge = if support { format!("stroke=\"{INK}\" stroke-width=\"1.3\"") } else { "opacity=\"0.75\"".to_string() };
    let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\" fill=\"{colour}\" {edge}/>");
    if point.wrong {
        let look = format!("fill=\"none\" stroke=\"{WRONG}\" stroke-width=\"1.4\"");
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6.4\" {look}/>");
    }
    if outlier {
        let r = 4.6;
        let cross =
            format!("M{:.1} {:.1}l{} {}m0 {}l{} {}", x - r, y - r, 2.0 * r, 2.0 * r, -2.0 * r, -2.0 * r, 2.0 * r);
        let _ = writeln!(svg, "<path d=\"{cross}\" stroke=\"{INK}\" stroke-width=\"1.7\" fill=\"none\"/>");
    }
}

fn legend(svg: &mut String) {
    let y = TOP + SIDE + 46.0;
    let inside = Point { x: [0.0, 0.0], outside: false, wrong: false };
    let outside = Point { outside: true, ..inside };
    let wrong = Point { wrong: true, ..inside };
    let marks = [
        ("labelled inside", inside, false, false),
        ("labelled outside", outside, false, false),
        ("wrong label", wrong, false, false),
        ("support vector", inside, true, false),
        ("recognised as outlier", inside, false, true),
    ];
    let mut x = LEFT + 8.0;
    for (text, point, support, outlier) in marks {
        mark(svg, x, y, &point, support, outlier);
        let _ = writeln!(svg, "<text class=\"legend\" x=\"{}\" y=\"{}\">{text}</text>", x + 12.0, y + 4.0);
        x += 40.0 + 6.6 * text.len() as f64;
    }
    let mut x = LEFT;
    let y = y + 26.0;
    for (text, look) in [
        ("boundary learnt", "stroke=\"#263238\" stroke-width=\"2.6\""),
        ("margins", "stroke=\"#263238\" stroke-dasharray=\"5 4\" opacity=\"0.55\""),
        ("true boundary", "stroke=\"#2e7d32\" stroke-width=\"1.6\" stroke-dasharray=\"2 4\" stroke-linecap=\"round\""),
    ] {
        let _ = writeln!(svg, "<line x1=\"{x}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" {look}/>", x + 26.0);
        let _ = writeln!(svg, "<text class=\"legend\" x=\"{}\" y=\"{}\">{text}</text>", x + 33.0, y + 4.0);
        x += 60.0 + 6.6 * text.len() as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escape("<a href='x'>\"&\u{7}"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp; ");
    }

    #[test]
    fn every_row_and_both_panels_are_drawn() {
        let points = [
            Point { x: [0.1, 0.2], outside: false, wrong: true },
            Point { x: [-0.5, 0.7], outside: true, wrong: false },
        ];
        let panel = || Panel {
            title: "a < b".to_string(),
            subtitle: String::new(),
            grid: Grid { side: 3, low: -REACH, high: REACH, values: vec![-1., -1., -1., -1., 2., -1., -1., -1., -1.] },
            support: vec![true, false],
            outliers: vec![true, false],
        };
        let svg = draw("head & tail", &points, &[panel(), panel()]);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("a &lt; b").count(), 2);
        assert_eq!(svg.matches(&format!("r=\"3.2\" fill=\"{OUTSIDE}\"")).count(), 2 + 1);
        assert!(!svg.contains("NaN"));
    }
}
