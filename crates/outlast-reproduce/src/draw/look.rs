//! How lines and points look. Colours are those that stay apart for most readers (Okabe and Ito).

/// Colours, by number.
pub const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5d4037", "#000000"];

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

    pub(super) fn stroke(&self) -> String {
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

    pub(super) fn draw(self, x: f64, y: f64, look: &Look) -> String {
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

/// A colour, around and around.
pub(super) fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}
