//! Reading `module` blocks and the directories that they name, each directory once. Also checks what a call gives its module.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmaform_model::{Catalog, Diagnostic, Diagnostics, FileId, Span, Type};

use super::{Argument, ModuleCall, defaults, names_of};
use crate::config::{Config, Repeat, Variable};
use crate::context::Context;
use crate::decode;
use crate::eval::Errors;
use crate::evaluator::{Evaluator, NothingKnown};
use crate::load::{self, TopLevel};
use crate::scope::{Scope, Site};
use crate::source::SourceFile;
use crate::statics::{self, Place};
use crate::syntax::{Attribute, Block, ExprKind, parse_file};
use crate::{lifecycle, overrides, settings, suggest, variables};

/// Files of a configuration end so.
const CONFIGURATION: [&str; 2] = [".kf.hcl", ".kf.json"];
/// Modules are called inside of each other so deep.
const DEEPEST: usize = 64;
/// Arguments that say how a module is called, and are no variables of it.
const META: [&str; 4] = ["source", "count", "for_each", "depends_on"];
const EARLY: &str = "A source is needed before anything is read or planned, so resources, data sources and modules can't be referred to.";
const LOCAL: &str = "Write the path of a directory, starting with \"./\" or \"../\". What is elsewhere is fetched before, by git for one.";

/// Reads directories, and remembers them.
pub(crate) struct Loader<'a> {
    context: &'a Context,
    registry: &'a Catalog,
    /// The id of the first file.
    first: usize,
    files: Vec<SourceFile>,
    /// By directory.
    units: BTreeMap<String, Result<Arc<Config>, Diagnostic>>,
    /// Those that are being read, the outermost first.
    open: Vec<String>,
}

impl<'a> Loader<'a> {
    /// `first`: how many sources there are without the files of modules.
    pub(crate) fn new(context: &'a Context, registry: &'a Catalog, first: usize) -> Self {
        Self { context, registry, first, files: Vec::new(), units: BTreeMap::new(), open: vec![join("", &context.directory)] }
    }

    /// The files that were read.
    pub(crate) fn files(self) -> Vec<SourceFile> {
        self.files
    }

    /// What stands in a directory. Mistakes in it are reported once.
    ///
    /// # Errors
    /// Why there is nothing to read, without a place: that is the call's.
    fn unit(&mut self, directory: &str, diagnostics: &mut Diagnostics) -> Result<Arc<Config>, Diagnostic> {
        if let Some(from) = self.open.iter().position(|d| d == directory) {
            let round: Vec<_> = self.open[from..].iter().chain([&self.open[from]]).map(|d| format!("\"{d}\"")).collect();
            let detail = format!("A module can't be a part of itself: {}.", round.join(" calls "));
            return Err(Diagnostic::error("Module includes itself", detail).with_hint("Take one of these calls out."));
        }
        if self.open.len() > DEEPEST {
            let detail = format!("Modules are called inside of each other more than {DEEPEST} levels deep.");
            return Err(Diagnostic::error("Modules too deep", detail));
        }
        if let Some(unit) = self.units.get(directory) {
            return unit.clone();
        }
        let unit = self.bodies(directory, diagnostics).map(|(bodies, broken)| {
            self.open.push(directory.to_owned());
            let context = Context { directory: directory.to_owned(), ..self.context.clone() };
            let mut config = Config::empty(context, self.registry.clone(), broken);
            let blocks = load::sort_out(bodies, diagnostics);
            only_in_root(&blocks, diagnostics);
            settings::version_of_module(&config, &blocks.settings, diagnostics);
            settings::of_terraform(&blocks.of_terraform, true, diagnostics);
            config.declared = load::declare_variables(&config, &blocks.variables, diagnostics);
            config.variables = config.declared.iter().map(|(name, d)| (name.clone(), Variable::of_module(d))).collect();
            let providers = blocks.providers.clone();
            load::read_blocks(&mut config, blocks, self, diagnostics);
            config.defaults = defaults::read(&config, &providers, diagnostics);
            variables::check_validations(&mut config, diagnostics);
            self.open.pop();
            Arc::new(config)
        });
        self.units.insert(directory.to_owned(), unit.clone());
        unit
    }

    /// The parsed files of a directory, and whether one of them is broken.
    fn bodies(&mut self, directory: &str, diagnostics: &mut Diagnostics) -> Result<(Vec<crate::syntax::Body>, bool), Diagnostic> {
        let unreadable = |why: &str| {
            Diagnostic::error("Module can't be read", format!("The directory \"{directory}\" can't be read: {why}."))
                .with_hint("The path is relative to the directory of the file that it stands in.")
        };
        let names = self.context.files.names(directory).map_err(|why| unreadable(why.as_str()))?;
        let is_left_over = |n: &String| n.starts_with(['.', '#']) || n.ends_with('~');
        let mut ours: Vec<_> = names.iter().filter(|n| is_configuration(n) && !is_left_over(n)).collect();
        ours.sort();
        if ours.is_empty() {
            let hint = match names.iter().find(|n| n.ends_with(".tf")) {
                Some(_) => "Files of Terraform are not read as they are: give them names that end in .kf.hcl.",
                None => "Check the path; it is relative to the directory of the file that it stands in.",
            };
            let detail = format!("The directory \"{directory}\" holds no file that ends in .kf.hcl or .kf.json.");
            return Err(Diagnostic::error("No configuration files in a module", detail).with_hint(hint));
        }
        let (mut bodies, mut broken) = (Vec::new(), false);
        for name in ours {
            let path = if directory == "." { name.clone() } else { format!("{directory}/{name}") };
            let bytes = self.context.files.read(&path);
            let text = bytes.and_then(|b| String::from_utf8(b).map_err(|_| "it is not UTF-8 text".to_owned()));
            let text =
                text.map_err(|why| Diagnostic::error("Module can't be read", format!("The file \"{path}\" can't be read: {why}.")))?;
            let id = FileId(u32::try_from(self.first + self.files.len()).unwrap_or(u32::MAX));
            let source = SourceFile { path, text };
            let path = source.path.clone();
            let parsed = parse_file(id, &source, self.registry);
            self.files.push(source);
            broken |= parsed.broken;
            diagnostics.extend(parsed.diagnostics);
            bodies.push((path, parsed.body));
        }
        Ok((overrides::merged(bodies, diagnostics), broken))
    }
}

fn is_configuration(name: &str) -> bool {
    CONFIGURATION.iter().any(|end| name.ends_with(end))
}

/// What is of the whole run and not of a part.
fn only_in_root(blocks: &TopLevel, diagnostics: &mut Diagnostics) {
    for block in &blocks.imports {
        let error =
            Diagnostic::error("Import in a module", "What is there already is named by the root module, in \"to\" with the whole address.");
        diagnostics.push(error.with_span(Some(block.span)).with_hint("Move the block to the root module."));
    }
    for block in &blocks.policies {
        let error = Diagnostic::error("Policy in a module", "A policy is about a whole plan, so it stands in the root module.");
        diagnostics.push(error.with_span(Some(block.span)).with_hint("Move the block to the root module."));
    }
}

/// All `module` blocks by name, with what stands in their directories. What they refer to is checked later, by [`connect`].
pub(crate) fn read(
    config: &Config,
    blocks: &[Block],
    loader: &mut Loader<'_>,
    diagnostics: &mut Diagnostics,
) -> BTreeMap<String, Arc<ModuleCall>> {
    let mut all: BTreeMap<String, Arc<ModuleCall>> = BTreeMap::new();
    for block in blocks {
        let Some(name) = decode::labels(block, ["NAME"], diagnostics).and_then(|[label]| decode::name(label, diagnostics)) else {
            continue;
        };
        if let Some(first) = all.get(name) {
            diagnostics.push(decode::double(&format!("the module \"{name}\""), block.span, first.span));
            continue;
        }
        let call = call(config, block, name, loader, diagnostics);
        all.insert(name.to_owned(), Arc::new(call));
    }
    all
}

fn call(config: &Config, block: &Block, name: &str, loader: &mut Loader<'_>, diagnostics: &mut Diagnostics) -> ModuleCall {
    for nested in &block.body.blocks {
        let error = Diagnostic::error("Block in a module block", "A \"module\" block holds only arguments.");
        diagnostics.push(error.with_span(Some(nested.span)).with_hint("For an object write NAME = { ... } with the equals sign."));
    }
    let mut arguments = BTreeMap::new();
    for attribute in &block.body.attributes {
        let without_use = match attribute.name.as_str() {
            "version" => Some("A directory has no versions to choose from."),
            "providers" => Some("There are no provider aliases: connections are values, given as variables."),
            _ => None,
        };
        if let Some(detail) = without_use {
            let error = Diagnostic::error("Argument without use here", detail).with_span(Some(attribute.name_span));
            diagnostics.push(error.with_hint("Remove it."));
        } else if !META.contains(&attribute.name.as_str()) {
            let (expr, name_span) = (attribute.expr.clone(), attribute.name_span);
            let names = names_of([&expr]);
            arguments.insert(attribute.name.clone(), Argument { expr, name_span, names, references: Vec::new() });
        }
    }
    let repeat = load::repeat(&block.body, diagnostics);
    let (source, unit) = match block.body.attribute("source") {
        None => {
            let detail = format!("The module \"{name}\" needs the argument \"source\", the directory that it stands in.");
            diagnostics.push(Diagnostic::error("Missing argument", detail).with_span(Some(block.span)).with_hint(LOCAL));
            (String::new(), None)
        }
        Some(attribute) => {
            let source = source(config, attribute, loader.open.len() > 1, diagnostics);
            let unit = source.as_deref().and_then(|s| found(config, s, attribute.expr.span, loader, diagnostics));
            (source.unwrap_or_default(), unit)
        }
    };
    let repeat_names = names_of(repeat.expr());
    let depends_on = block.body.attribute("depends_on").map(|a| a.expr.clone());
    let needs = depends_on.as_ref().map(crate::written::needs).unwrap_or_default();
    let (repeat_references, depends) = (Vec::new(), Vec::new());
    ModuleCall { span: block.span, source, arguments, repeat, repeat_names, repeat_references, needs, depends_on, depends, unit }
}

/// The text of `source`: written out, or in the root module made of variables and locals.
fn source(config: &Config, attribute: &Attribute, is_inner: bool, diagnostics: &mut Diagnostics) -> Option<String> {
    let expr = &attribute.expr;
    if let Some(text) = expr.bare().as_text() {
        return Some(text.to_owned());
    }
    if matches!(expr.kind, ExprKind::Wrong) {
        return None;
    }
    let wrong = |detail: &str| Diagnostic::error("Invalid source", detail).with_span(Some(expr.span));
    if is_inner {
        diagnostics.push(wrong("In a module the source of another one must be a text in quotes without interpolation.").with_hint(LOCAL));
        return None;
    }
    let place = Place { no_blocks: Some(EARLY), ..Place::default() };
    let found = statics::check(config, expr, place, &mut Vec::new());
    let failed = found.has_errors();
    diagnostics.extend(found);
    if failed {
        return None;
    }
    let evaluator = Evaluator::new(config, &NothingKnown);
    let mut errors = Errors::default();
    let value = evaluator.eval(expr, &Scope::new(&Site::default()), &mut errors);
    let found = evaluator.finish(errors);
    let failed = found.has_errors();
    diagnostics.extend(found);
    if value.contains_ephemeral() {
        diagnostics.push(crate::ephemeral::refused("The source of a module", expr.span));
        return None;
    }
    if value.contains_secret() {
        diagnostics.push(wrong("A secret would show: the source of a module is printed."));
    } else if value.as_str().is_none() && !failed && !value.is_unknown() {
        diagnostics.push(wrong("\"source\" is the path of a directory, as text.").with_hint(LOCAL));
    }
    value.as_str().filter(|_| !value.secret).map(str::to_owned)
}

/// What stands where a source says.
fn found(config: &Config, source: &str, span: Span, loader: &mut Loader<'_>, diagnostics: &mut Diagnostics) -> Option<Arc<Config>> {
    let is_local = [".", ".."].contains(&source) || source.starts_with("./") || source.starts_with("../");
    if !is_local {
        let detail = format!("\"{source}\" is no directory of this project: modules are read from directories beside the configuration.");
        let there = loader.context.files.names(&join(&config.context.directory, source));
        let is_meant = there.is_ok_and(|names| names.iter().any(|n| is_configuration(n)));
        let hint = if is_meant { format!("Write source = \"./{source}\".") } else { LOCAL.to_owned() };
        diagnostics.push(Diagnostic::error("Source not supported", detail).with_span(Some(span)).with_hint(hint));
        return None;
    }
    match loader.unit(&join(&config.context.directory, source), diagnostics) {
        Ok(unit) => Some(unit),
        Err(error) => {
            diagnostics.push(error.with_span(Some(span)));
            None
        }
    }
}

/// A relative path from a directory on, without detours: `mods/a` and `../b` are `mods/b`.
fn join(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|p| *p != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let start = if directory.starts_with('/') { "/" } else { "" };
    if parts.is_empty() && start.is_empty() { ".".to_owned() } else { format!("{start}{}", parts.join("/")) }
}

/// Checks what the calls of a configuration refer to and whether they fit their modules, and gives them with what they need.
pub(crate) fn connect(config: &Config, diagnostics: &mut Diagnostics) -> BTreeMap<String, Arc<ModuleCall>> {
    let mut all = BTreeMap::new();
    for (name, call) in &config.calls {
        let mut call = ModuleCall::clone(call);
        fits(name, &call, diagnostics);
        let is_wrong = matches!(call.repeat, Repeat::Wrong);
        if let Some(expr) = call.repeat.expr() {
            let found = statics::check(config, expr, Place::default(), &mut call.repeat_references);
            let failed = found.has_errors();
            diagnostics.extend(found);
            // An expression with a mistake is not evaluated.
            if failed {
                call.repeat = Repeat::Wrong;
            }
        }
        let (each, count) =
            (matches!(call.repeat, Repeat::ForEach(_) | Repeat::Wrong), matches!(call.repeat, Repeat::Count(_) | Repeat::Wrong));
        let place = Place { each: each || is_wrong, count: count || is_wrong, ..Place::default() };
        for argument in call.arguments.values_mut() {
            let mut references = Vec::new();
            let found = statics::check(config, &argument.expr, place, &mut references);
            if found.has_errors() {
                argument.expr.kind = ExprKind::Wrong;
                argument.names.clear();
            }
            diagnostics.extend(found);
            argument.references = references;
        }
        if let Some(expr) = call.depends_on.take() {
            let mut depends = Vec::new();
            diagnostics.extend(lifecycle::depends_on(config, &expr, place, &mut depends));
            call.depends = depends;
        }
        all.insert(name.clone(), Arc::new(call));
    }
    all
}

/// Whether a call gives what the module wants, and nothing else.
fn fits(name: &str, call: &ModuleCall, diagnostics: &mut Diagnostics) {
    let Some(unit) = &call.unit else { return };
    for (argument, given) in call.arguments.iter().filter(|(n, _)| !unit.declared.contains_key(*n) && !unit.incomplete) {
        let names = unit.declared.keys().map(String::as_str);
        let detail = format!("The module \"{name}\" has no variable \"{argument}\".");
        let hint = match suggest::hint(argument, names.clone().chain(META)) {
            Some(hint) => hint,
            None if unit.declared.is_empty() => "It takes no values; remove the argument.".to_owned(),
            None => format!("It has {}.", suggest::listed(names)),
        };
        diagnostics.push(Diagnostic::slip("Unknown argument", detail).with_span(Some(given.name_span)).with_hint(hint));
    }
    let missing: Vec<_> = unit.declared.iter().filter(|(n, d)| d.default.is_none() && !call.arguments.contains_key(*n)).collect();
    if let Some((_, declaration)) = missing.first() {
        let names: Vec<_> = missing.iter().map(|(n, _)| n.as_str()).collect();
        let (summary, word) = if names.len() == 1 { ("Missing argument", "argument") } else { ("Missing arguments", "arguments") };
        let detail = format!("The module \"{name}\" needs the {word} {}.", suggest::listed(names));
        let error =
            Diagnostic::error(summary, detail).with_span(Some(call.span)).with_label(declaration.span, "declared here, without a default");
        diagnostics.push(error);
    }
}

impl Variable {
    /// A variable of a module, whose value is another one in each instance.
    pub(crate) fn of_module(declaration: &crate::variables::Declaration) -> Self {
        Self {
            value: karmaform_model::Value::unknown(Type::Any),
            ty: declaration.ty.clone(),
            sensitive: declaration.sensitive,
            ephemeral: declaration.ephemeral,
            description: declaration.description.clone(),
            default: declaration.default.clone(),
            given: None,
            origin: None,
            span: declaration.span,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn paths_are_joined_without_detours() {
        for (directory, path, joined) in [
            (".", "./m", "m"),
            (".", "./m/../m/", "m"),
            ("a/b", "../c", "a/c"),
            ("a", "../..", ".."),
            ("..", "../x", "../../x"),
            ("a", "..", "."),
            ("/a", "./b", "/a/b"),
        ] {
            assert_eq!(join(directory, path), joined, "{directory} {path}");
        }
    }
}
