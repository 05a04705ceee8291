//! Draws what the layout library lays out as SVG: with classes instead of colours, so that it is light or dark as the reader likes.

use layout::core::format::{ClipHandle, RenderBackend};
use layout::core::geometry::Point;
use layout::core::style::StyleAttr;

use super::{Node, Picture};
use crate::ui::markup::{class, escaped};

/// Room around everything, in pixels.
const MARGIN: f64 = 8.0;
/// For a picture that stands alone; in a page, the page has its own.
const STYLE: &str = "\
.n rect{fill:#f3f6fa;stroke:#6b7f99}.n text{font:13px ui-monospace,monospace;text-anchor:middle;dominant-baseline:central;fill:#1b2430}\
.l{fill:none;stroke:#8a97a8}.h{fill:#8a97a8}\
.add rect{fill:#d8f3dc;stroke:#2d7d46}.change rect{fill:#fdf0cc;stroke:#a06a00}.remove rect{fill:#fbdcdc;stroke:#b3261e;stroke-width:2}\
.read rect{fill:#d9ecff;stroke:#1769aa}\
@media (prefers-color-scheme:dark){.n rect{fill:#1d2530;stroke:#6f8098}.n text{fill:#e3e9f1}.l{stroke:#66758a}.h{fill:#66758a}\
.add rect{fill:#143a22;stroke:#58b877}.change rect{fill:#45350a;stroke:#e0ac3a}.remove rect{fill:#4d1613;stroke:#ff8a80}\
.read rect{fill:#0e2f4d;stroke:#6cb6f5}}";

/// What was drawn so far.
pub(super) struct Canvas<'a> {
    nodes: Vec<&'a Node>,
    out: String,
    /// The node whose box was drawn last: its text comes next.
    open: Option<&'a Node>,
    size: Point,
}

impl<'a> Canvas<'a> {
    /// An empty one for this picture.
    pub(super) fn new(picture: &'a Picture) -> Self {
        Self { nodes: picture.nodes.values().collect(), out: String::new(), open: None, size: Point::zero() }
    }

    /// The picture.
    pub(super) fn finish(self) -> String {
        let (width, height) = (self.size.x + MARGIN, self.size.y + MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">\n\
             <style>{STYLE}</style>\n<defs><marker id=\"h\" markerWidth=\"9\" markerHeight=\"6\" refX=\"9\" refY=\"3\" orient=\"auto\">\
             <path class=\"h\" d=\"M0 0L9 3L0 6z\"/></marker></defs>\n{}</svg>\n",
            self.out
        )
    }

    fn grow(&mut self, x: f64, y: f64) {
        self.size = Point::new(self.size.x.max(x), self.size.y.max(y));
    }
}

impl RenderBackend for Canvas<'_> {
    fn draw_rect(&mut self, xy: Point, size: Point, look: &StyleAttr, properties: Option<String>, _: Option<ClipHandle>) {
        self.grow(xy.x + size.x, xy.y + size.y);
        let Some(node) = properties.and_then(|p| p.parse::<usize>().ok()).and_then(|i| self.nodes.get(i).copied()) else { return };
        if let Some(link) = &node.link {
            self.out.push_str(&format!("<a href=\"#{}\">", escaped(link)));
        }
        let tone = node.tone.map(|t| format!(" {}", class(t))).unwrap_or_default();
        let (x, y, width, height, round) = (xy.x, xy.y, size.x, size.y, look.rounded);
        self.out.push_str(&format!(
            "<g class=\"n{tone}\"><rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" rx=\"{round}\"/>"
        ));
        self.open = Some(node);
    }

    fn draw_text(&mut self, xy: Point, text: &str, _: &StyleAttr) {
        let Some(node) = self.open.take() else { return };
        self.out.push_str(&format!("<text x=\"{:.0}\" y=\"{:.0}\">{}</text></g>", xy.x, xy.y, escaped(text)));
        self.out.push_str(if node.link.is_some() { "</a>\n" } else { "\n" });
    }

    fn draw_arrow(&mut self, path: &[(Point, Point)], _: bool, _: (bool, bool), _: &StyleAttr, _: Option<String>, _: &str) {
        // The first pair leaves where the arrow begins; each other comes in at where it goes through or ends.
        let [(start, leave), (end, come), rest @ ..] = path else { return };
        let mut curve =
            format!("M{:.0} {:.0}C{:.0} {:.0} {:.0} {:.0} {:.0} {:.0}", start.x, start.y, leave.x, leave.y, end.x, end.y, come.x, come.y);
        for (control, point) in rest {
            curve.push_str(&format!("S{:.0} {:.0} {:.0} {:.0}", control.x, control.y, point.x, point.y));
        }
        for (a, b) in path {
            self.grow(a.x, a.y);
            self.grow(b.x, b.y);
        }
        self.out.push_str(&format!("<path class=\"l\" marker-end=\"url(#h)\" d=\"{curve}\"/>\n"));
    }

    // Shapes that this program does not ask for.
    fn draw_line(&mut self, _: Point, _: Point, _: &StyleAttr, _: Option<String>) {}

    fn draw_circle(&mut self, _: Point, _: Point, _: &StyleAttr, _: Option<String>) {}

    fn create_clip(&mut self, _: Point, _: Point, _: usize) -> ClipHandle {
        0
    }
}
