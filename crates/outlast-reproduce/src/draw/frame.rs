//! Draws a panel.

use super::box_plot::BoxPlot;
use super::look::{Look, Shape, colour};
use super::panel::{Mark, Panel};
use super::scale::Scale;
use super::svg::escape;
use std::fmt::Write;

/// A part of a pixel that makes no difference.
const UNSEEN: f64 = 0.1;
const INK: &str = "#263238";

/// A panel and where it stands.
pub(super) struct Frame<'a> {
    panel: &'a Panel,
    left: f64,
    top: f64,
    size: (f64, f64),
    x: Scale,
    y: Scale,
}

impl<'a> Frame<'a> {
    pub(super) fn new(panel: &'a Panel, (left, top): (f64, f64), size: (f64, f64)) -> Frame<'a> {
        let points: Vec<[f64; 2]> = panel.marks.iter().flat_map(Mark::reach).collect();
        let x = Scale::new(&panel.x, points.iter().map(|point| point[0]), left, left + size.0);
        let y = Scale::new(&panel.y, points.iter().map(|point| point[1]), top + size.1, top);
        Frame { panel, left, top, size, x, y }
    }

    pub(super) fn draw(&self, svg: &mut String, number: usize) {
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
                // what reaches to 0 or below on a logarithmic axis goes out of the panel
                let place =
                    |value: f64| Some(self.y.at(value)).filter(|y| y.is_finite()).unwrap_or(self.top + self.size.1);
                let (x, low, high) = (self.x.at(*at), place(*low), place(*high));
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
}
