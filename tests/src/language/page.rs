//! A page of Markdown as text and fenced blocks. Knows nothing of what they mean.

/// A page, in pieces that make it up again.
pub(super) struct Page {
    pieces: Vec<Piece>,
}

enum Piece {
    Line(String),
    Block(Block),
}

/// A fenced block.
pub(super) struct Block {
    /// What stands behind the fence: `hcl main.kf.hcl`
    pub(super) info: String,
    /// What stands between the fences.
    pub(super) lines: Vec<String>,
    /// Where it begins, from 1.
    pub(super) line: usize,
    /// The nearest heading of the second level above it, without its marks.
    pub(super) heading: String,
}

impl Block {
    /// The first word behind the fence.
    pub(super) fn word(&self) -> &str {
        self.info.split(' ').next().unwrap_or_default()
    }
}

const FENCE: &str = "```";

impl Page {
    pub(super) fn parse(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut heading = String::new();
        let mut lines = text.lines().enumerate();
        while let Some((at, line)) = lines.next() {
            if let Some(title) = line.strip_prefix("## ") {
                heading = title.trim_matches('`').to_owned();
            }
            let Some(info) = line.strip_prefix(FENCE) else {
                pieces.push(Piece::Line(line.to_owned()));
                continue;
            };
            let lines = lines.by_ref().map(|(_, l)| l.to_owned()).take_while(|l| l != FENCE).collect();
            pieces.push(Piece::Block(Block { info: info.to_owned(), lines, line: at + 1, heading: heading.clone() }));
        }
        Self { pieces }
    }

    /// Its fenced blocks, in order.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.pieces.iter().filter_map(|p| match p {
            Piece::Block(block) => Some(block),
            Piece::Line(_) => None,
        })
    }

    /// Its lines that are in no block, in order.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|p| match p {
            Piece::Line(line) => Some(line.as_str()),
            Piece::Block(_) => None,
        })
    }

    /// What its headings of the second level say, without their marks.
    pub(super) fn headings(&self) -> impl Iterator<Item = &str> {
        self.lines().filter_map(|l| l.strip_prefix("## ")).map(|t| t.trim_matches('`'))
    }

    /// The text of the page with other lines in its blocks.
    pub(super) fn with(&self, lines: impl Fn(&Block) -> Vec<String>) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Line(line) => text.extend([line, "\n"]),
                Piece::Block(block) => {
                    text.extend([FENCE, &block.info, "\n"]);
                    lines(block).iter().for_each(|l| text.extend([l, "\n"]));
                    text.extend([FENCE, "\n"]);
                }
            }
        }
        text
    }
}

#[test]
fn a_page_is_taken_apart_and_put_together() {
    let text = "# a\n\n## `b`\n```hcl main.kf.hcl\nx = 1\n```\nend\n";
    let page = Page::parse(text);
    assert_eq!(page.with(|b| b.lines.clone()), text);
    assert_eq!(page.headings().collect::<Vec<_>>(), ["b"]);
    assert_eq!(page.blocks().map(|b| (b.word(), b.line, b.heading.as_str())).collect::<Vec<_>>(), [("hcl", 4, "b")]);
    assert!(page.with(|_| vec!["y = 2".to_owned()]).contains("hcl\ny = 2\n```\n"));
}
