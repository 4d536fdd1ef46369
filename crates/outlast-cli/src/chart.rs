//! Line charts over a logarithmic axis, as SVG: panels side by side, a line for each name, the same colour in all panels.

use crate::output::{cut, short};
use crate::svg::{STYLE, escape};
use std::fmt::Write;

/// A picture of one or more panels.
pub struct Chart<'a> {
    pub title: &'a str,
    /// What the lines are called, in the legend.
    pub names: Vec<String>,
    /// Positions of all points, > 0 and ascending, and what they mean.
    pub axis: (&'a str, &'a [f64]),
    pub panels: Vec<Panel<'a>>,
}

/// One panel: lines with a value for each position.
pub struct Panel<'a> {
    pub title: &'a str,
    pub lines: Vec<Vec<f64>>,
    /// Whether the lines are those the legend names; others share one colour.
    pub named: bool,
    /// A point to be ringed: line and position.
    pub ring: Option<(usize, usize)>,
    /// How far each point may be off, up and down; empty where that is not told.
    pub bars: Vec<Vec<f64>>,
}

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 84.0;
const GAP: f64 = 76.0;
const BELOW: f64 = 56.0;
const LEGEND: f64 = 96.0;
const TICKS: usize = 5;

/// Width of a sign of the title and of the legend, on average.
const HEAD_SIGN: f64 = 11.5;
const LEGEND_SIGN: f64 = 7.0;

/// Space above what is highest, as a part of the whole.
const ROOM: f64 = 0.05;

/// Colours that stay apart for most readers (Okabe and Ito).
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5d4037", "#000000"];

impl Chart<'_> {
    /// The picture.
    pub fn draw(&self) -> String {
        let panels = self.panels.len() as f64;
        let longest = self.names.iter().map(|name| name.chars().count()).max();
        let legend = longest.map_or(0.0, |signs| (32.0 + LEGEND_SIGN * signs as f64).max(LEGEND));
        let (width, height) = (LEFT + panels * WIDTH + (panels - 1.0) * GAP + legend + 24.0, TOP + HEIGHT + BELOW);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\">\n<title>{title}</title>\n<style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            title = escape(self.title)
        );
        for (at, line) in wrapped(self.title, ((width - LEFT) / HEAD_SIGN) as usize).iter().enumerate() {
            let y = 30.0 + 20.0 * at as f64;
            let _ = writeln!(svg, "<text class=\"head\" x=\"{LEFT}\" y=\"{y}\">{}</text>", escape(line));
        }
        for (number, panel) in self.panels.iter().enumerate() {
            self.draw_panel(&mut svg, panel, LEFT + number as f64 * (WIDTH + GAP));
        }
        for (at, name) in self.names.iter().enumerate() {
            let (x, y) = (width - legend, TOP + 14.0 + 20.0 * at as f64);
            let _ = writeln!(
                svg,
                "<line x1=\"{x}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{}\" stroke-width=\"2\"/>\n\
                 <text class=\"legend\" x=\"{}\" y=\"{}\">{}</text>",
                x + 18.0,
                colour(at),
                x + 24.0,
                y + 4.0,
                escape(name)
            );
        }
        svg + "</svg>\n"
    }

    fn draw_panel(&self, svg: &mut String, panel: &Panel, left: f64) {
        let (name, positions) = self.axis;
        let across = Scale::new(positions.iter().map(|x| x.log10()), left, left + WIDTH);
        let values = panel.lines.iter().flatten().copied().filter(|value| value.is_finite());
        let bars = panel.lines.iter().zip(&panel.bars).flat_map(|(line, bars)| line.iter().zip(bars));
        // an error has no part below 0
        let ends = bars.flat_map(|(y, bar)| [y + bar, if *y < 0.0 { y - bar } else { *y }]);
        let up =
            Scale::new(values.chain(ends.filter(|end| end.is_finite())).chain([0.0]), TOP + HEIGHT, TOP).with_room();
        let _ = writeln!(svg, "<text class=\"title\" x=\"{left}\" y=\"{}\">{}</text>", TOP - 14.0, escape(panel.title));
        for at in 0..TICKS {
            let value = up.low + (up.high - up.low) * at as f64 / (TICKS - 1) as f64;
            let y = up.at(value);
            let _ = writeln!(
                svg,
                "<line x1=\"{left}\" y1=\"{y:.1}\" x2=\"{}\" y2=\"{y:.1}\" stroke=\"#eceff1\"/>\n\
                 <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left + WIDTH,
                left - 6.0,
                y + 4.0,
                short_tick(value)
            );
        }
        for power in across.low.ceil() as i32..=across.high.floor() as i32 {
            let x = across.at(f64::from(power));
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"#eceff1\"/>\n\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">1e{power}</text>",
                TOP + HEIGHT,
                TOP + HEIGHT + 18.0
            );
        }
        let _ = writeln!(
            svg,
            "<text class=\"small\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            left + WIDTH / 2.0,
            TOP + HEIGHT + 40.0,
            escape(name)
        );
        for (at, line) in panel.lines.iter().enumerate() {
            let points: Vec<String> = positions
                .iter()
                .zip(line)
                .filter(|(_, value)| value.is_finite())
                .map(|(x, &value)| format!("{:.1},{:.1}", across.at(x.log10()), up.at(value)))
                .collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>",
                points.join(" "),
                if panel.named { colour(at) } else { "#607d8b" }
            );
        }
        for (at, (line, bars)) in panel.lines.iter().zip(&panel.bars).enumerate() {
            for ((x, y), bar) in positions.iter().zip(line).zip(bars).filter(|((_, y), bar)| (*y + *bar).is_finite()) {
                let x = across.at(x.log10());
                let _ = writeln!(
                    svg,
                    "<line class=\"bar\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"{}\" stroke-opacity=\"0.5\"/>",
                    up.at(if *y < 0.0 { y - bar } else { (y - bar).max(0.0) }),
                    up.at(y + bar),
                    colour(at)
                );
            }
        }
        if let Some((line, at)) = panel.ring {
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"7\" fill=\"none\" stroke=\"#000000\" stroke-width=\"1.8\"/>",
                across.at(positions[at].log10()),
                up.at(panel.lines[line][at])
            );
        }
    }
}

/// A text in as few lines of so many signs as its commas allow, at most two; what does not fit is left out.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let length = |text: &str| text.chars().count();
    if length(text) <= most {
        return vec![text.to_string()];
    }
    let (mut first, mut rest) = (String::new(), String::new());
    for part in text.split_inclusive(',') {
        match rest.is_empty() && length(&first) + length(part.trim_end()) <= most {
            true => first += part,
            false => rest += part,
        }
    }
    if first.is_empty() {
        first = std::mem::take(&mut rest);
    }
    let mut lines = vec![first.trim().to_string(), rest.trim().to_string()];
    lines.retain(|line| !line.is_empty());
    lines.into_iter().map(|line| cut(&line, most)).collect()
}

fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

fn short_tick(value: f64) -> String {
    if value == 0.0 { "0".to_string() } else { short((value * 1e4).round() / 1e4) }
}

/// From values to places.
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn new(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let empty = low >= high;
        Scale { low: if empty { low - 0.5 } else { low }, high: if empty { high + 0.5 } else { high }, from, to }
    }

    /// The same with some space between the outermost values, where they are not 0, and the frame.
    fn with_room(self) -> Scale {
        let room = ROOM * (self.high - self.low);
        let (low, high) =
            (self.low - if self.low < 0.0 { room } else { 0.0 }, self.high + if self.high > 0.0 { room } else { 0.0 });
        Scale { low, high, ..self }
    }

    fn at(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_where_their_values_say() {
        let scale = Scale::new([1.0, 3.0].into_iter(), 100.0, 200.0);
        assert_eq!((scale.at(1.0), scale.at(2.0), scale.at(3.0)), (100.0, 150.0, 200.0));
        let flat = Scale::new([2.0].into_iter(), 0.0, 10.0);
        assert_eq!(flat.at(2.0), 5.0);
    }

    #[test]
    fn titles_are_wrapped_and_not_cut_by_the_edge() {
        assert_eq!(wrapped("error 0.1 at C = 3", 20), ["error 0.1 at C = 3"]);
        assert_eq!(wrapped("error 0.1 at gamma = 0.05, C = 3", 26), ["error 0.1 at gamma = 0.05,", "C = 3"]);
        assert_eq!(wrapped(&"w".repeat(50), 20), [cut(&"w".repeat(50), 20)]);
    }

    /// The frame is from TOP to TOP + HEIGHT.
    #[test]
    fn bars_end_within_the_frame() {
        for sign in [1.0, -1.0] {
            let lines = vec![vec![sign * 0.5, sign * 0.1]];
            let panel = Panel { title: "error", lines, named: true, ring: None, bars: vec![vec![0.2, 0.3]] };
            let svg = Chart { title: "t", names: vec![], axis: ("C", &[0.1, 1.0]), panels: vec![panel] }.draw();
            let ends: Vec<f64> = svg
                .lines()
                .filter(|line| line.contains("class=\"bar\""))
                .flat_map(|line| {
                    ["y1=\"", "y2=\""]
                        .map(|name| line.split(name).nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
                })
                .collect();
            assert_eq!(ends.len(), 4);
            assert!(ends.iter().all(|&end| end > TOP + 1.0 && end <= TOP + HEIGHT), "{ends:?}");
        }
    }

    #[test]
    fn a_chart_has_its_lines_and_escapes_its_names() {
        let panel = Panel {
            title: "error",
            lines: vec![vec![0.5, 0.2, f64::NAN], vec![0.4, 0.3, 0.2]],
            named: true,
            ring: Some((1, 2)),
            bars: vec![vec![0.1, 0.1, f64::NAN], vec![0.1; 3]],
        };
        let chart = Chart {
            title: "<b>",
            names: vec!["a".into(), "b & c".into()],
            axis: ("C", &[0.1, 1.0, 10.0]),
            panels: vec![panel],
        };
        let svg = chart.draw();
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert_eq!(svg.matches("class=\"bar\"").count(), 5);
        assert!(svg.contains("&lt;b&gt;") && svg.contains("b &amp; c") && !svg.contains("NaN"));
    }
}
