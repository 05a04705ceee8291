//! The `-- state --` section: one `ADDRESS = {attributes}` each, to a snapshot.

use karmaform_lang::{Context, Evaluator, Resolver, Sources, VariableInputs, load};
use karmaform_model::{Address, Object, Registry, ResourceEntry, ResourceState, Snapshot, Status, Type, Value, convert};

struct Nothing;

impl Resolver for Nothing {
    fn instance(&self, _: &Address) -> Value {
        Value::null(Type::Any)
    }
}

/// What expressions of a test may ask for: nothing.
pub(crate) fn context() -> Context {
    Context { now: 1_767_225_600, working_directory: ".".into(), ..Context::alone() }
}

/// # Errors
/// The first line that makes no sense.
pub(super) fn snapshot(body: &str, registry: &Registry) -> Result<Snapshot, String> {
    let (config, _) = load(&Sources::default(), &VariableInputs::default(), &context(), registry);
    let evaluator = Evaluator::new(&config, &Nothing);
    let mut snapshot = Snapshot { tool_version: "0.1.0".into(), lineage: "lineage".into(), serial: 1, ..Snapshot::default() };
    for line in body.lines().filter(|l| !l.trim().is_empty()) {
        let (address, text) = line.split_once(" = ").ok_or_else(|| format!("no \" = \" in: {line}"))?;
        let address: Address = address.parse().map_err(|e| format!("{e}"))?;
        let (value, problems) = evaluator.expression(text);
        if problems.has_errors() {
            return Err(format!("{line}: {problems:?}"));
        }
        let entry = registry.resource(&address.kind).ok_or_else(|| format!("there is no resource type {}", address.kind))?;
        let mut attributes = Object::new();
        for (name, value) in value.as_entries().ok_or_else(|| format!("no object: {line}"))? {
            let ty = entry.schema().type_of(name).ok_or_else(|| format!("{address} has no {name}"))?;
            attributes.insert(name.clone(), convert(value, &ty).map_err(|e| format!("{address}: {name}: {e}"))?);
        }
        for attribute in &entry.schema().attributes {
            let default = || attribute.default.clone().unwrap_or_else(|| Value::null(attribute.ty.clone()));
            attributes.get_or_insert_with(attribute.name, default);
        }
        let provider = match entry {
            ResourceEntry::Type(driver, _) => driver.name(),
            ResourceEntry::Composite(_) => "karmaform",
        };
        let resource = ResourceState {
            resource_type: address.kind.clone(),
            provider: provider.to_owned(),
            schema_version: entry.schema().version,
            attributes: entry.schema().encode(&attributes).into(),
            secret_paths: Vec::new(),
            dependencies: Vec::new(),
            create_before_destroy: false,
            protected: false,
            status: Status::Ready,
        };
        snapshot.resources.insert(address, resource);
    }
    Ok(snapshot)
}
