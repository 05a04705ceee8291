//! Random small configurations, and random changes of them.

use std::fmt::Write as _;

use fastrand::Rng;

/// A configuration as data, so that it can be changed.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    nodes: Vec<Node>,
    pub(super) layout: Layout,
}

/// Where the nodes stand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Layout {
    /// All in the root module.
    Flat,
    /// All in one module.
    Inside,
    /// Those with low numbers in one module, the others in another one, which gets what it needs through outputs and variables.
    Split,
    /// The same, with modules of one instance by `for_each` and by `count`, the second one inside of a third.
    SplitKeyed,
}

/// Nodes below this number are in the first module.
const LOW: usize = 3;

#[derive(Clone, Debug)]
struct Node {
    /// Names it for good: a changed shape keeps it.
    number: usize,
    kind: Kind,
    repetition: Repetition,
    value: u8,
    /// A change replaces it.
    replace_on: u8,
    create_before_destroy: bool,
    /// Numbers of lower nodes.
    needs: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Data,
    Thing,
    Item,
}

#[derive(Clone, Debug, PartialEq)]
enum Repetition {
    Single,
    Count(u8),
    ForEach(Vec<&'static str>),
}

/// Keys to choose from.
const KEYS: [&str; 4] = ["a", "b", "c d", "é"];

fn keys(random: &mut Rng) -> Vec<&'static str> {
    KEYS.into_iter().filter(|_| random.bool()).collect()
}

impl Shape {
    pub(super) fn random(random: &mut Rng) -> Self {
        let mut nodes: Vec<Node> = Vec::new();
        for number in 0..random.usize(2..7) {
            nodes.push(Node::random(number, random));
        }
        Self { nodes, layout: Layout::Flat }
    }

    /// One to three changes: values, keys, edges, blocks gone and new.
    pub(super) fn changed(&self, random: &mut Rng) -> Self {
        let mut shape = self.clone();
        for _ in 0..random.usize(1..4) {
            let count = shape.nodes.len();
            let at = random.usize(0..count);
            match random.u8(0..8) {
                0 => shape.nodes[at].value += 1,
                1 => shape.nodes[at].replace_on += 1,
                2 => shape.nodes[at].needs.clear(),
                3 => shape.nodes[at].create_before_destroy ^= true,
                4 => match &mut shape.nodes[at].repetition {
                    Repetition::Count(n) => *n = random.u8(0..4),
                    Repetition::ForEach(k) => *k = keys(random),
                    Repetition::Single => shape.nodes[at].repetition = Repetition::Count(1),
                },
                5 if count > 1 => {
                    let gone = shape.nodes.remove(at).number;
                    for node in &mut shape.nodes {
                        node.needs.retain(|n| *n != gone);
                    }
                }
                6 => {
                    let number = shape.nodes.iter().map(|n| n.number + 1).max().unwrap_or(0);
                    shape.nodes.push(Node::random(number, random));
                }
                _ => shape.nodes[at].value += 1,
            }
            let numbers: Vec<usize> = shape.nodes.iter().map(|n| n.number).collect();
            for node in &mut shape.nodes {
                node.needs.retain(|n| numbers.contains(n));
            }
        }
        shape
    }

    /// The text; `%%%% PATH` starts a file of a module.
    pub(super) fn text(&self) -> String {
        let last = self.nodes.last().map(|n| n.whole("id")).unwrap_or_default();
        let flat = || part(&self.nodes, &|_| true) + &output("last", &last);
        let (low, high) = match self.layout {
            Layout::Flat => return flat(),
            Layout::Inside => {
                return format!(
                    "module \"m\" {{\n  source = \"./m\"\n}}\n{}%%%% m/main.kf.hcl\n{}",
                    output("last", "module.m.last"),
                    flat()
                );
            }
            Layout::Split => ("", "  source = \"./high\"\n"),
            Layout::SplitKeyed => ("  for_each = toset([\"x y\"])\n", "  source = \"./around\"\n  count = 1\n"),
        };
        let is_low = |n: &Node| n.number < LOW;
        let lows = || self.nodes.iter().filter(|n| is_low(n));
        let (low_key, high_key) = if self.layout == Layout::Split { ("", "") } else { ("[\"x y\"]", "[0]") };
        let given: String = lows().map(|n| format!("  n{0} = module.low{low_key}.n{0}\n", n.number)).collect();
        let variables: String = lows().map(|n| format!("variable \"n{}\" {{}}\n", n.number)).collect();
        let outputs: String = lows().map(|n| output(&format!("n{}", n.number), &n.whole("id"))).collect();
        let is_last_low = self.nodes.last().is_some_and(is_low);
        let last_high = if is_last_low { output("last", "\"none\"") } else { output("last", &last) };
        let root_last = match self.nodes.last() {
            Some(node) if is_last_low => format!("module.low{low_key}.n{}", node.number),
            _ => format!("module.high{high_key}.last"),
        };
        let passed: String = lows().map(|n| format!("  n{0} = var.n{0}\n", n.number)).collect();
        let around = format!("{variables}module \"high\" {{\n  source = \"../high\"\n{passed}}}\n{}", output("last", "module.high.last"));
        [
            format!(
                "module \"low\" {{\n  source = \"./low\"\n{low}}}\nmodule \"high\" {{\n{high}{given}}}\n{}",
                output("last", &root_last)
            ),
            format!("%%%% low/main.kf.hcl\n{}{outputs}", part(&self.nodes, &is_low)),
            format!("%%%% high/main.kf.hcl\n{variables}{}{last_high}", part(&self.nodes, &|n| !is_low(n))),
            format!("%%%% around/main.kf.hcl\n{around}"),
        ]
        .concat()
    }
}

fn output(name: &str, value: &str) -> String {
    format!("output \"{name}\" {{\n  value = {value}\n}}\n")
}

/// The nodes of one module; what others of them need comes as a variable.
fn part(nodes: &[Node], is_here: &dyn Fn(&Node) -> bool) -> String {
    let mut text = String::from("data \"memory_host\" \"h\" {\n  for_each = toset([\"one\", \"two\"])\n  address  = each.key\n}\n");
    for node in nodes.iter().filter(|n| is_here(n)) {
        let needed = nodes.iter().filter(|n| node.needs.contains(&n.number));
        let needed: Vec<String> = needed.map(|n| if is_here(n) { n.whole("id") } else { format!("var.n{}", n.number) }).collect();
        node.write(&mut text, &needed);
    }
    text
}

impl Node {
    fn random(number: usize, random: &mut Rng) -> Self {
        let kind = [Kind::Data, Kind::Thing, Kind::Thing, Kind::Item, Kind::Item][random.usize(0..5)];
        let repetition = match random.u8(0..5) {
            0 => Repetition::Count(random.u8(0..4)),
            1 => Repetition::ForEach(keys(random)),
            _ => Repetition::Single,
        };
        let needs = (0..number).filter(|_| random.u8(0..3) == 0).collect();
        // What is known to a thing by its name can't be there twice, so these are replaced in the usual order.
        let create_before_destroy = kind == Kind::Data && random.u8(0..3) == 0;
        Self { number, kind, repetition, value: random.u8(0..3), replace_on: 0, create_before_destroy, needs }
    }

    fn address(&self) -> String {
        let kind = match self.kind {
            Kind::Data => "terraform_data",
            Kind::Thing => "memory_thing",
            Kind::Item => "memory_item",
        };
        format!("{kind}.n{}", self.number)
    }

    /// An expression over all instances.
    fn whole(&self, attribute: &str) -> String {
        match self.repetition {
            Repetition::Single => format!("{}.{attribute}", self.address()),
            Repetition::Count(_) => format!("{}[*].{attribute}", self.address()),
            Repetition::ForEach(_) => format!("{{ for k, v in {} : k => v.{attribute} }}", self.address()),
        }
    }

    fn write(&self, text: &mut String, needed: &[String]) {
        let (kind, name) = self.address().split_once('.').map(|(k, n)| (k.to_owned(), n.to_owned())).unwrap_or_default();
        let _ = writeln!(text, "resource \"{kind}\" \"{name}\" {{");
        let suffix = match &self.repetition {
            Repetition::Single => "",
            Repetition::Count(n) => {
                let _ = writeln!(text, "  count = {n}");
                "-${count.index}"
            }
            Repetition::ForEach(keys) => {
                let _ = writeln!(text, "  for_each = toset({keys:?})");
                "-${each.key}"
            }
        };
        let value = format!("{{ number = {}, needed = [{}] }}", self.value, needed.join(", "));
        if self.kind == Kind::Data {
            let _ = writeln!(text, "  input = {value}\n  triggers_replace = {}", self.replace_on);
        } else {
            if self.kind == Kind::Item {
                let host = if self.number.is_multiple_of(2) { "one" } else { "two" };
                let _ = writeln!(text, "  host = data.memory_host.h[\"{host}\"].connection");
            }
            let _ = writeln!(text, "  name = \"n{}{suffix}\"\n  value = {value}\n  replace_on = \"{}\"", self.number, self.replace_on);
            let _ = writeln!(text, "  secret_value = \"secret-{}\"", self.value);
        }
        if self.create_before_destroy {
            let _ = writeln!(text, "  lifecycle {{\n    create_before_destroy = true\n  }}");
        }
        text.push_str("}\n");
    }
}
