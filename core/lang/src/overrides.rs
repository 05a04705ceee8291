//! Override files: what they say replaces, argument by argument, what the other files of the directory say of the same thing. As in Terraform,
//! they are `override.kf.hcl` and what ends in `_override.kf.hcl`, or the same in JSON; of several the last one by name wins.

use std::collections::BTreeMap;

use karmaform_model::{Diagnostic, Diagnostics};

use crate::syntax::{Attribute, Block, Body, Expr, ExprKind};

/// What names the same thing in both kinds of files: the kind of a block, and its labels.
type Name = (String, Vec<String>);

/// A file by this path only changes what the others say.
fn is_override(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.strip_suffix(".kf.hcl").or_else(|| name.strip_suffix(".kf.json"));
    stem.is_some_and(|stem| stem == "override" || stem.ends_with("_override"))
}

/// The bodies of the files of a directory, by path, with what override files say in its place.
pub(crate) fn merged(files: Vec<(String, Body)>, diagnostics: &mut Diagnostics) -> Vec<Body> {
    let (mut overrides, base): (Vec<_>, Vec<_>) = files.into_iter().partition(|(path, _)| is_override(path));
    let bodies: Vec<Body> = base.into_iter().map(|(_, body)| body).collect();
    if overrides.is_empty() {
        return bodies;
    }
    overrides.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut directory = Directory::new(bodies);
    for (_, body) in overrides {
        // What stands outside of all blocks is told of as anywhere.
        directory.bodies.push(Body { attributes: body.attributes, blocks: Vec::new() });
        body.blocks.into_iter().for_each(|block| directory.take(block, diagnostics));
    }
    directory.bodies
}

/// What the other files say, and where: by the number of the file and of the block in it.
struct Directory {
    bodies: Vec<Body>,
    named: BTreeMap<Name, (usize, usize)>,
    locals: BTreeMap<String, (usize, usize)>,
}

impl Directory {
    fn new(bodies: Vec<Body>) -> Self {
        let (mut named, mut locals) = (BTreeMap::new(), BTreeMap::new());
        for (file, body) in bodies.iter().enumerate() {
            for (number, block) in body.blocks.iter().enumerate() {
                named.entry(name_of(block)).or_insert((file, number));
                if block.kind == "locals" {
                    for attribute in &block.body.attributes {
                        locals.entry(attribute.name.clone()).or_insert((file, number));
                    }
                }
            }
        }
        Self { bodies, named, locals }
    }

    fn take(&mut self, mut block: Block, diagnostics: &mut Diagnostics) {
        match block.kind.as_str() {
            "resource" | "data" | "module" | "variable" | "output" | "provider" => match self.named.get(&name_of(&block)) {
                Some(&(file, number)) => change(&mut self.bodies[file].blocks[number], block, diagnostics),
                // As in Terraform: a provider without a block has one in which nothing stands.
                None if block.kind == "provider" => self.beside(block),
                None => diagnostics.push(nothing(&described(&block)).with_span(Some(block.span))),
            },
            "locals" => {
                let attributes = std::mem::take(&mut block.body.attributes);
                // What else there may be, labels or blocks, is told of as anywhere.
                self.beside(block);
                for attribute in attributes {
                    match self.locals.get(&attribute.name) {
                        Some(&(file, number)) => set(&mut self.bodies[file].blocks[number].body, attribute),
                        None => diagnostics.push(nothing(&format!("local \"{}\"", attribute.name)).with_span(Some(attribute.name_span))),
                    }
                }
            }
            "karmaform" | "terraform" => self.settings(block),
            kind @ ("moved" | "removed" | "import" | "check" | "policy") => diagnostics.push(
                Diagnostic::error("Can't be overridden", format!("Blocks of the kind \"{kind}\" can't stand in an override file."))
                    .with_span(Some(block.span))
                    .with_hint(ELSEWHERE),
            ),
            // Whatever it is, it is told of as anywhere.
            _ => self.beside(block),
        }
    }

    fn beside(&mut self, block: Block) {
        self.bodies.push(Body { attributes: Vec::new(), blocks: vec![block] });
    }

    /// Settings need not be there before: that is how a backend is chosen for one directory alone.
    fn settings(&mut self, block: Block) {
        let others = self.bodies.iter_mut().flat_map(|b| &mut b.blocks).filter(|b| b.kind == block.kind);
        for other in others {
            other.body.attributes.retain(|a| block.body.attribute(&a.name).is_none());
            other.body.blocks.retain(|b| block.body.blocks(&b.kind).next().is_none());
        }
        self.beside(block);
    }
}

const ELSEWHERE: &str = "Write it in a file whose name does not end in override.kf.hcl.";

fn name_of(block: &Block) -> Name {
    (block.kind.clone(), block.labels.iter().map(|l| l.text.clone()).collect())
}

fn described(block: &Block) -> String {
    let labels: Vec<_> = block.labels.iter().map(|l| format!("\"{}\"", l.text)).collect();
    format!("{} {}", block.kind, labels.join(" "))
}

fn nothing(what: &str) -> Diagnostic {
    let detail = format!("There is no {what} in the other files, and an override file only changes what stands there.");
    Diagnostic::error("Nothing to override", detail).with_hint(ELSEWHERE)
}

/// What an override says of a block that is there.
fn change(base: &mut Block, over: Block, diagnostics: &mut Diagnostics) {
    let is_both = ["count", "for_each"].iter().all(|name| over.body.attribute(name).is_some());
    for attribute in over.body.attributes {
        match attribute.name.as_str() {
            "depends_on" if is_empty(&attribute.expr) => continue,
            "depends_on" => {
                diagnostics.push(fixed("depends_on").with_span(Some(attribute.name_span)));
                continue;
            }
            "count" if !is_both => base.body.attributes.retain(|a| a.name != "for_each"),
            "for_each" if !is_both => base.body.attributes.retain(|a| a.name != "count"),
            _ => {}
        }
        set(&mut base.body, attribute);
    }
    let mut replaced: Vec<String> = Vec::new();
    for block in over.body.blocks {
        let kind = made(&block).to_owned();
        match kind.as_str() {
            "lifecycle" => lifecycle(base, block, diagnostics),
            "validation" | "precondition" | "postcondition" => diagnostics.push(fixed(&kind).with_span(Some(block.span))),
            // As in Terraform: those of one kind all go, for none of them has a name.
            _ => {
                if !replaced.contains(&kind) {
                    base.body.blocks.retain(|b| made(b) != kind);
                    replaced.push(kind);
                }
                base.body.blocks.push(block);
            }
        }
    }
}

fn lifecycle(base: &mut Block, over: Block, diagnostics: &mut Diagnostics) {
    for condition in &over.body.blocks {
        diagnostics.push(fixed(&condition.kind).with_span(Some(condition.span)));
    }
    let there = base.body.blocks.iter().position(|b| b.kind == "lifecycle").unwrap_or_else(|| {
        base.body.blocks.push(Block { body: Body { attributes: Vec::new(), blocks: Vec::new() }, ..over.clone() });
        base.body.blocks.len() - 1
    });
    if !over.labels.is_empty() {
        base.body.blocks[there].labels = over.labels;
    }
    for attribute in over.body.attributes {
        match attribute.name.as_str() {
            "replace_triggered_by" => diagnostics.push(fixed("replace_triggered_by").with_span(Some(attribute.name_span))),
            // Terraform keeps the list that is there, and does not say so.
            "ignore_changes" if is_empty(&attribute.expr) => {
                let error = Diagnostic::error("Can't be overridden", "An override file can change \"ignore_changes\", but not empty it.");
                diagnostics.push(error.with_span(Some(attribute.name_span)).with_hint("Change it where it stands."));
            }
            _ => set(&mut base.body.blocks[there].body, attribute),
        }
    }
}

/// The kind of the blocks that a block stands for: of a `dynamic` one, that which it makes.
fn made(block: &Block) -> &str {
    match block.labels.first() {
        Some(label) if block.kind == "dynamic" => &label.text,
        _ => &block.kind,
    }
}

fn fixed(what: &str) -> Diagnostic {
    Diagnostic::error("Can't be overridden", format!("\"{what}\" can't be changed by an override file."))
        .with_hint("Change it where it stands.")
}

fn is_empty(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Tuple(items) if items.is_empty())
}

fn set(body: &mut Body, attribute: Attribute) {
    match body.attributes.iter_mut().find(|a| a.name == attribute.name) {
        Some(there) => *there = attribute,
        None => body.attributes.push(attribute),
    }
}

#[cfg(test)]
mod tests {
    use super::is_override;

    #[test]
    fn names_of_override_files() {
        for name in ["override.kf.hcl", "x_override.kf.hcl", "_override.kf.json", "modules/m/override.kf.json"] {
            assert!(is_override(name), "{name}");
        }
        for name in
            ["overrides.kf.hcl", "my-override.kf.hcl", "OVERRIDE.kf.hcl", "override_x.kf.hcl", "override/main.kf.hcl", "override.hcl"]
        {
            assert!(!is_override(name), "{name}");
        }
    }
}
