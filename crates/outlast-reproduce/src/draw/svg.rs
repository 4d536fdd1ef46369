//! What all pictures share: the look of text, and text made fit to stand in SVG.

/// The classes of text.
pub const STYLE: &str =
    "text { font-family: 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif; fill: #263238; }
.head { font-size: 19px; font-weight: 600; }
.title { font-size: 15px; font-weight: 600; }
.small { font-size: 12px; fill: #607d8b; }
.tick { font-size: 11px; fill: #607d8b; }
.legend { font-size: 12px; }";

/// Text fit to stand in SVG.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            sign if sign.is_control() => escaped.push(' '),
            sign => escaped.push(sign),
        }
    }
    escaped
}
