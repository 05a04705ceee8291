//! A small world for the tests: files in a map, a provider with a few types, and short ways to load and evaluate.

// The traits of model say so.
#![allow(clippy::result_large_err)]

use std::collections::BTreeMap;
use std::sync::Arc;

use karmaform_lang::{Config, Context, Evaluator, Files, Resolver, SourceFile, Sources, VariableInputs, load, validate};
use karmaform_model::{
    Adapter, Address, Ask, Attribute, Block, BoxFuture, Change, Connection, Connections, DataSource, Diagnostic, Diagnostics, Driver,
    Nesting, Object, Provider, Registry, ResourceSpec, ResourceType, Schema, Severity, Type, Value,
};

/// Files in a map.
#[derive(Clone, Default)]
pub(crate) struct Memory(pub(crate) BTreeMap<String, String>);

impl Files for Memory {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.0.get(path).map(|t| t.clone().into_bytes()).ok_or_else(|| "no such file".to_owned())
    }
    fn exists(&self, path: &str) -> Result<bool, String> {
        Ok(self.0.contains_key(path))
    }
    fn list(&self, directory: &str) -> Result<Vec<String>, String> {
        let below = |p: &String| p.strip_prefix(&format!("{directory}/")).map(str::to_owned);
        Ok(self.0.keys().filter_map(below).collect())
    }
}

/// A resource type that is only a schema.
struct Kind(&'static str, Schema);

impl ResourceSpec for Kind {
    fn name(&self) -> &'static str {
        self.0
    }
    fn schema(&self) -> &Schema {
        &self.1
    }
}

fn nothing<T>() -> Result<T, Diagnostic> {
    Err(Diagnostic::error("Nothing here", ""))
}

impl ResourceType<()> for Kind {
    fn observe<'a>(&'a self, _: &'a (), _: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async { nothing() })
    }
    fn apply<'a>(&'a self, _: &'a (), _: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async { nothing() })
    }
}

impl DataSource<()> for Kind {
    fn name(&self) -> &'static str {
        self.0
    }
    fn schema(&self) -> &Schema {
        &self.1
    }
    fn read<'a>(&'a self, _: &'a (), _: &'a Object) -> BoxFuture<'a, Result<Object, Diagnostic>> {
        Box::pin(async { nothing() })
    }
}

/// A provider of a few types.
struct Fake {
    schema: Schema,
    types: Vec<Kind>,
    data: Vec<Kind>,
}

impl Provider for Fake {
    type Client = ();
    fn name(&self) -> &'static str {
        "fake"
    }
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn types(&self) -> Vec<&dyn ResourceType<()>> {
        self.types.iter().map(|t| t as &dyn ResourceType<()>).collect()
    }
    fn data_sources(&self) -> Vec<&dyn DataSource<()>> {
        self.data.iter().map(|t| t as &dyn DataSource<()>).collect()
    }
    fn connect<'a>(&'a self, _: &'a Object, _: &'a Object, _: Arc<dyn Connections>) -> BoxFuture<'a, Result<(), Diagnostic>> {
        Box::pin(async { Ok(()) })
    }
}

fn types() -> Vec<Kind> {
    let rule =
        Schema::new("", vec![Attribute::required("port", Type::Number, ""), Attribute::optional("note", Type::String, "").or("none")]);
    let option =
        Schema::new("", vec![Attribute::optional("value", Type::String, ""), Attribute::optional("token", Type::String, "").secret()]);
    let limit = Schema::new("", vec![Attribute::optional("cpu", Type::Number, "")]);
    let file = Schema::new(
        "",
        vec![
            Attribute::required("path", Type::String, "").identity(),
            Attribute::optional("content", Type::String, ""),
            Attribute::optional("mode", Type::String, "").or("0644"),
            Attribute::optional("size", Type::Number, ""),
            Attribute::optional("tags", Type::map(Type::String), ""),
            Attribute::optional("key", Type::String, "").secret(),
            Attribute::optional("input", Type::Any, ""),
            Attribute::computed("sha256", Type::String, ""),
            Attribute::optional_computed("owner", Type::String, ""),
        ],
    )
    .with_blocks(vec![
        Block { name: "rule", nesting: Nesting::List, schema: rule },
        Block { name: "option", nesting: Nesting::Map, schema: option },
        Block { name: "limit", nesting: Nesting::Single, schema: limit },
    ]);
    let data = Schema::new(
        "",
        vec![
            Attribute::optional("input", Type::Any, ""),
            Attribute::optional("triggers_replace", Type::Any, ""),
            Attribute::computed("output", Type::Any, ""),
            Attribute::computed("id", Type::String, ""),
        ],
    );
    vec![Kind("file", file), Kind("terraform_data", data)]
}

fn data() -> Vec<Kind> {
    let host = Schema::new(
        "",
        vec![
            Attribute::required("address", Type::String, ""),
            Attribute::optional("user", Type::String, "").or("root"),
            Attribute::computed("connection", Type::Any, ""),
            Attribute::computed("addresses", Type::list(Type::String), ""),
        ],
    );
    let mut machine = Schema::new("", vec![Attribute::required("address", Type::String, "")]);
    machine.attributes.extend(ways());
    machine.attributes.push(Attribute::computed("connection", Type::Any, ""));
    machine.connection = Connection::Arguments;
    vec![Kind("host", host), Kind("machine", machine)]
}

/// What both the provider and a data source that gives connections have.
fn ways() -> Vec<Attribute> {
    vec![
        Attribute::optional("port", Type::Number, ""),
        Attribute::optional("password", Type::String, "").secret(),
        Attribute::optional("bastion", Type::Any, ""),
    ]
}

pub(crate) fn registry() -> Registry {
    let user = Attribute::optional("user", Type::String, "").or("root");
    let cache = Attribute::optional("cache", Type::String, "");
    let schema = Schema::new("", [vec![user, cache], ways()].concat());
    let fake: Arc<dyn Driver> = Arc::new(Adapter(Fake { schema, types: types(), data: data() }));
    Registry::new(vec![fake], Vec::new())
}

pub(crate) fn context(files: &[(&str, &str)]) -> Context {
    Context {
        files: Arc::new(Memory(files.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect())),
        now: 1_700_000_000,
        directory: ".".into(),
        working_directory: "/here".into(),
        workspace: "default".into(),
        home: Some("/home/me".into()),
        tool_version: "0.1.0".into(),
    }
}

/// Loads one text.
pub(crate) fn load_text(text: &str) -> (Config, Diagnostics, Sources) {
    load_all(&[("main.kf.hcl", text)], &[], |_| {})
}

/// A root module and files beside it, without anything wrong with them.
#[track_caller]
pub(crate) fn loaded(text: &str, files: &[(&str, &str)]) -> Config {
    let (config, mut diagnostics, mut sources) = load_all(&[("main.kf.hcl", text)], files, |_| {});
    sources.files.extend(config.module_files.clone());
    diagnostics.extend(validate(&config));
    assert!(diagnostics.is_empty(), "{}", show(&sources, &diagnostics));
    config
}

/// Loads several texts, with inputs and files for functions. Texts that end in `.kfvars.hcl` are variables files.
pub(crate) fn load_all(
    texts: &[(&str, &str)],
    files: &[(&str, &str)],
    more: impl FnOnce(&mut VariableInputs),
) -> (Config, Diagnostics, Sources) {
    let mut sources = Sources::default();
    let mut inputs = VariableInputs::default();
    for (path, text) in texts {
        let id = sources.add(SourceFile { path: (*path).into(), text: (*text).into() });
        if path.ends_with(".kfvars.hcl") {
            inputs.file(id);
        }
    }
    more(&mut inputs);
    let (config, diagnostics) = load(&sources, &inputs, &context(files), &registry());
    (config, diagnostics, sources)
}

/// Known instances by address; nothing is known of the others.
#[derive(Default)]
pub(crate) struct Known(pub(crate) BTreeMap<String, Value>);

impl Resolver for Known {
    fn instance(&self, address: &Address) -> Value {
        self.0.get(&address.to_string()).cloned().unwrap_or_else(|| Value::unknown_not_null(Type::Any))
    }
}

/// The value of an expression in a configuration.
pub(crate) fn evaluate(config: &Config, known: &Known, text: &str) -> Result<Value, String> {
    let (value, diagnostics) = Evaluator::new(config, known).expression(text);
    let errors: Vec<_> = diagnostics.iter().filter(|d| d.is_error()).map(|d| format!("{}: {}", d.summary, d.detail)).collect();
    if errors.is_empty() { Ok(value) } else { Err(errors.join(" | ")) }
}

/// Diagnostics, one line each: `error 2:3-6 Summary: detail [label 1:1-3 word] (hint)`.
pub(crate) fn show(sources: &Sources, diagnostics: &Diagnostics) -> String {
    let place = |span: karmaform_model::Span| {
        let (line, column) = sources.position(span.file, span.start);
        let (end_line, end) = sources.position(span.file, span.end);
        let file = if sources.files.len() > 1 { format!("{}:", sources.get(span.file).path) } else { String::new() };
        if line == end_line { format!("{file}{line}:{column}-{end}") } else { format!("{file}{line}:{column}-{end_line}:{end}") }
    };
    let mut out = String::new();
    for d in diagnostics.iter() {
        let severity = if d.severity == Severity::Error { "error" } else { "warning" };
        let at = d.span.map_or_else(|| "-".to_owned(), place);
        let labels: String = d.labels.iter().map(|(s, w)| format!(" [{} {w}]", place(*s))).collect();
        let hints: String = d.hints.iter().map(|h| format!(" ({h})")).collect();
        out.push_str(&format!("{severity} {at} {}: {}{labels}{hints}\n", d.summary, d.detail));
    }
    out
}

/// A value on one line, in the form of the measured tables.
pub(crate) fn folded(value: &Value) -> String {
    use karmaform_model::{Kind, Object};
    let all = |items: &[Value]| items.iter().map(folded).collect::<Vec<_>>().join(", ");
    let entries = |e: &Object| {
        let each: Vec<_> = e.iter().map(|(n, v)| format!("{n:?} = {}", folded(v))).collect();
        if each.is_empty() { "{}".to_owned() } else { format!("{{{}}}", each.join(" ")) }
    };
    if value.secret {
        return "(sensitive value)".into();
    }
    match &value.kind {
        Kind::List(_, items) => format!("tolist([{}])", all(items)),
        Kind::Set(_, items) => format!("toset([{}])", all(items)),
        Kind::Tuple(items) => format!("[{}]", all(items)),
        Kind::Map(_, e) => format!("tomap({})", entries(e)),
        Kind::Object(e) => entries(e),
        Kind::String(s) => format!("{s:?}"),
        _ => karmaform_lang::render(value),
    }
}
