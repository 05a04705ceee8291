//! What a configuration says, after loading: settings, variables, outputs and blocks with their instances.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmaform_model::{Address, Catalog, Diagnostics, Key, Marks, ModuleStep, Object, Path, PathStep, Span, Type, Value};

use crate::checks::Check;
use crate::context::Context;
use crate::imports::{Import, OpenImport};
use crate::locals::Locals;
use crate::modules::{Defaults, ModuleCall, ModuleInstance, Name};
use crate::moved::Moved;
use crate::policies::Policy;
use crate::removed::Removed;
use crate::source::SourceFile;
use crate::syntax::{Body, Expr};
use crate::variables::{Declaration, VariableOrigin};

/// A loaded configuration: that of the root module with all that its modules make of it; or, as [`ModuleCall::unit`], what stands in the
/// directory of a module, once for all its calls.
#[derive(Clone)]
pub struct Config {
    /// The `karmaform` block.
    pub settings: Settings,
    /// Root variables with their values; of the unit of a module without.
    pub variables: BTreeMap<String, Variable>,
    /// Outputs, by name.
    pub outputs: BTreeMap<String, Output>,
    /// The arguments of every provider, by name: its `provider` block in the root module, or its defaults. What other modules say is in the
    /// arguments of what stands there.
    pub providers: BTreeMap<String, Object>,
    /// Resources and data sources, by address without their own key; also those in modules, once for every instance of the module.
    pub blocks: BTreeMap<Address, ResourceBlock>,
    /// `module` blocks that stand here, by name.
    pub calls: BTreeMap<String, Arc<ModuleCall>>,
    /// The files of modules. Their ids follow those of the sources that were loaded.
    pub module_files: Vec<SourceFile>,
    /// `removed` blocks, by the address of the resource or module without any key.
    pub removed: BTreeMap<Address, Removed>,
    /// `moved` blocks, those of modules among them, in the order in which they take effect; of the unit of a module, as they stand.
    pub moved: Vec<Moved>,
    /// `import` blocks, by the instance that takes something over.
    pub imports: BTreeMap<Address, Import>,
    /// Those of them of which it is not known yet what is taken over, or by which instance: an error for who can't go on without knowing. By the
    /// instance; if that is not known, by the resource without any key.
    pub open_imports: BTreeMap<Address, OpenImport>,
    /// `policy` blocks, by name.
    pub policies: BTreeMap<String, Policy>,
    /// `check` blocks that stand here, by name.
    pub checks: BTreeMap<String, Check>,
    /// Variables that have no value: neither given nor a default. Each is an error as well.
    pub missing_variables: Vec<String>,
    /// What stands so often that it is not known yet: an error for each, for who can't go on without knowing.
    pub open: Diagnostics,
    /// The modules among these, each with what has to be known first.
    pub open_modules: BTreeMap<Address, Vec<Reference>>,
    /// What a test says that modules give, by their addresses, in place of what stands in them.
    pub(crate) overridden: BTreeMap<Address, Arc<Object>>,
    /// Variables have no values, and blocks no instances: see [`crate::VariableInputs::any_values`].
    pub(crate) any_values: bool,
    pub(crate) declared: BTreeMap<String, Declaration>,
    /// What is given to variables that nobody declares, for tests that make something of it.
    pub(crate) undeclared: Object,
    /// The `provider` blocks of the unit of a module, by the provider's name.
    pub(crate) defaults: BTreeMap<String, Defaults>,
    pub(crate) locals: Locals,
    /// All instances of modules; the first is the root.
    pub(crate) modules: Vec<ModuleInstance>,
    /// Where each instance of a module is among them.
    pub(crate) places: BTreeMap<Vec<ModuleStep>, usize>,
    pub(crate) context: Context,
    pub(crate) registry: Catalog,
    /// A text did not parse, so what seems undeclared may stand there.
    pub(crate) incomplete: bool,
}

/// What the `karmaform` block says.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where the `karmaform` blocks stand.
    pub spans: Vec<Span>,
    /// `required_version`; it has been checked.
    pub required_version: Option<String>,
    /// `backend "KIND" { ... }`; none means the default.
    pub backend: Option<SettingsBlock>,
    /// `bundle`: the path of the file that everything from elsewhere is taken out of, and where that is written.
    pub bundle: Option<(String, Span)>,
    /// `ca_file`: the path of a file with authorities to trust, and where that is written.
    pub ca_file: Option<(String, Span)>,
    /// `encryption { ... }`
    pub encryption: Option<SettingsBlock>,
}

/// A free-form block of the settings; whoever uses it checks its arguments.
#[derive(Clone, Debug)]
pub struct SettingsBlock {
    /// Its label (`"s3"`); empty if it has none.
    pub kind: String,
    /// Its arguments; nested blocks are objects.
    pub arguments: Object,
    /// Where each argument stands.
    pub spans: BTreeMap<String, Span>,
    /// Where it stands.
    pub span: Span,
}

/// A root variable.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its value, converted, marked if sensitive; unknown after an error.
    pub value: Value,
    /// Its type constraint.
    pub ty: Type,
    /// `sensitive = true`
    pub sensitive: bool,
    /// `ephemeral = true`: in no plan and no state.
    pub ephemeral: bool,
    /// What it is for.
    pub description: Option<String>,
    /// What it is if nobody says so, converted; `None`: somebody has to.
    pub default: Option<Value>,
    /// What it was given, as it was given; `None`: nobody did.
    pub given: Option<Value>,
    /// Where the value came from; `None`: its default.
    pub origin: Option<VariableOrigin>,
    /// Where it is declared.
    pub span: Span,
}

impl Variable {
    /// The marks of its value.
    pub fn marks(&self) -> Marks {
        Marks { secret: self.sensitive, ephemeral: self.ephemeral }
    }
}

/// An output.
#[derive(Clone, Debug)]
pub struct Output {
    /// `sensitive = true`
    pub sensitive: bool,
    /// `ephemeral = true`, which only the outputs of modules can be.
    pub ephemeral: bool,
    /// What it is for.
    pub description: Option<String>,
    /// Where it is declared.
    pub span: Span,
    pub(crate) value: Expr,
    /// What `depends_on` names.
    pub(crate) needs: Vec<String>,
    pub(crate) references: Vec<Reference>,
    pub(crate) names: Vec<Name>,
    pub(crate) preconditions: Vec<Condition>,
}

impl Output {
    /// The marks of its value.
    pub(crate) fn marks(&self) -> Marks {
        Marks { secret: self.sensitive, ephemeral: self.ephemeral }
    }
}

/// How often a block stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Repetition {
    /// Once, without key.
    Single,
    /// `count`
    Count(u64),
    /// `for_each`: key to value; values may be unknown.
    ForEach(Object),
    /// By `count` or `for_each`, and how often is not known yet.
    Open,
}

/// A `resource` or `data` block.
#[derive(Clone, Debug)]
pub struct ResourceBlock {
    /// Its address without key.
    pub address: Address,
    /// Where its header stands.
    pub span: Span,
    /// How often it stands.
    pub repetition: Repetition,
    /// The `lifecycle` block.
    pub lifecycle: Lifecycle,
    /// What it needs first: references of its body, also through locals and modules, of `count`, `for_each` and `depends_on`, of itself and
    /// of the modules it is in. No doubles.
    pub references: Vec<Reference>,
    pub(crate) body: Arc<Body>,
    pub(crate) repeat: Repeat,
    pub(crate) preconditions: Arc<[Condition]>,
    /// What is asked of it when it is there; in these `self` is the instance.
    pub(crate) postconditions: Arc<[Condition]>,
    /// The name of the `check` block that a data source stands in.
    pub(crate) check: Option<String>,
    /// The instance of a module that it is in.
    pub(crate) module: usize,
    /// Values that it needs by name.
    pub(crate) names: Arc<[Name]>,
}

/// The expression behind [`Repetition`].
#[derive(Clone, Debug)]
pub(crate) enum Repeat {
    None,
    Count(Arc<Expr>),
    ForEach(Arc<Expr>),
    /// Both were written, or what was written was refused already.
    Wrong,
}

/// A `precondition`, `postcondition`, `validation` or `assert` block.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub condition: Expr,
    pub message: Expr,
}

/// The `lifecycle` block.
#[derive(Clone, Debug, Default)]
pub struct Lifecycle {
    /// A replacement creates first.
    pub create_before_destroy: bool,
    /// Whether destroying is an error; see [`crate::Evaluator::is_protected`].
    pub(crate) prevent_destroy: Option<Expr>,
    /// Differences that are not looked at.
    pub ignore_changes: IgnoreChanges,
    /// Drift that does not matter.
    pub ignore_drift: IgnoredDrift,
    /// A planned change of one of these replaces the resource.
    pub replace_triggered_by: Vec<Reference>,
    /// Those of them, by where they stand, that mean the instance with the key of the resource's own: `[each.key]`, `[count.index]`.
    pub(crate) own_keys: Vec<Span>,
    /// What of an instance they mean, by where they stand; nothing for a step that is the key of the resource's own.
    pub(crate) trigger_parts: Vec<(Span, Vec<Option<PathStep>>)>,
}

impl Lifecycle {
    /// From now on destroying is no error.
    pub fn allow_destroy(&mut self) {
        self.prevent_destroy = None;
    }

    /// True if one of `replace_triggered_by` means, of several instances, the one with the same key.
    pub fn is_of_own_key(&self, trigger: &Reference) -> bool {
        self.own_keys.contains(&trigger.span)
    }

    /// What of an instance one of `replace_triggered_by` is about, for a resource with this key; `None` if it is about all of it.
    pub fn trigger_path(&self, trigger: &Reference, own: Option<&Key>) -> Option<Path> {
        let (_, parts) = self.trigger_parts.iter().find(|(span, _)| *span == trigger.span)?;
        let mut path = Path::default();
        for part in parts {
            match (part, own) {
                (Some(step), _) => path.0.push(step.clone()),
                (None, Some(Key::Name(name))) => path.0.push(PathStep::Name(name.clone())),
                (None, Some(Key::Index(index))) => path.0.push(PathStep::Index(usize::try_from(*index).unwrap_or(usize::MAX))),
                (None, None) => break,
            }
        }
        (!path.0.is_empty()).then_some(path)
    }
}

/// Which attributes keep what the state says.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum IgnoreChanges {
    /// None.
    #[default]
    None,
    /// All of them.
    All,
    /// These.
    Paths(Vec<IgnoredPath>),
}

/// A part of a resource whose differences are not looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct IgnoredPath {
    /// Where it is.
    pub path: Path,
    /// It was written with a key in brackets, as an entry of a map is.
    pub is_entry: bool,
}

/// Which drift is told of and does not count.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum IgnoredDrift {
    /// None.
    #[default]
    None,
    /// All of it, also of what is below a composite.
    All,
    /// That of these.
    These {
        /// Attributes of the block.
        attributes: Vec<Path>,
        /// What is below a composite, as patterns: `member["a"]/unit`, `member["*"]/unit::active_state`.
        parts: Vec<String>,
    },
}

/// One block or instance that an expression names.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Of a block, or of one instance if the key is literal in the text; of a module in `depends_on`. Where a module has several instances
    /// and no key is given, all of them are meant.
    pub address: Address,
    /// The attribute that follows.
    pub attribute: Option<String>,
    /// Where it stands.
    pub span: Span,
}

impl Repetition {
    /// The keys of the instances, in order.
    pub fn keys(&self) -> Vec<Option<Key>> {
        match self {
            Self::Single => vec![None],
            Self::Count(n) => (0..*n).map(|i| Some(Key::Index(i))).collect(),
            Self::ForEach(entries) => entries.keys().map(|k| Some(Key::Name(k.clone()))).collect(),
            Self::Open => Vec::new(),
        }
    }

    /// True if there is an instance of this key, or may be.
    pub fn has(&self, key: Option<&Key>) -> bool {
        match (self, key) {
            (Self::Single, None) => true,
            (Self::Count(n), Some(Key::Index(i))) => i < n,
            (Self::ForEach(entries), Some(Key::Name(k))) => entries.contains_key(k),
            (Self::Open, key) => key.is_some(),
            _ => false,
        }
    }
}

impl ResourceBlock {
    /// Where each argument of the block's body stands, by attribute or nested block.
    pub fn argument_spans(&self) -> BTreeMap<String, Span> {
        let attributes = self.body.attributes.iter().map(|a| (a.name.clone(), a.expr.span));
        attributes.chain(self.body.blocks.iter().map(|b| (b.kind.clone(), b.span))).collect()
    }
}

impl Repeat {
    /// The expression that says how often.
    pub(crate) fn expr(&self) -> Option<&Expr> {
        match self {
            Self::Count(expr) | Self::ForEach(expr) => Some(expr),
            Self::None | Self::Wrong => None,
        }
    }
}

impl Config {
    /// One that says nothing.
    pub(crate) fn empty(context: Context, registry: Catalog, incomplete: bool) -> Self {
        Self {
            settings: Settings::default(),
            variables: BTreeMap::new(),
            outputs: BTreeMap::new(),
            providers: BTreeMap::new(),
            blocks: BTreeMap::new(),
            calls: BTreeMap::new(),
            module_files: Vec::new(),
            removed: BTreeMap::new(),
            moved: Vec::new(),
            imports: BTreeMap::new(),
            open_imports: BTreeMap::new(),
            policies: BTreeMap::new(),
            checks: BTreeMap::new(),
            missing_variables: Vec::new(),
            open: Diagnostics::new(),
            open_modules: BTreeMap::new(),
            overridden: BTreeMap::new(),
            any_values: false,
            declared: BTreeMap::new(),
            undeclared: Object::new(),
            defaults: BTreeMap::new(),
            locals: Locals::default(),
            modules: Vec::new(),
            places: BTreeMap::new(),
            context,
            registry,
            incomplete,
        }
    }

    /// True if everything stands as often as in another configuration of the same texts, and as much is imported.
    pub fn is_expanded_like(&self, other: &Self) -> bool {
        let keys = |config: &Self| -> Vec<(Address, bool, Vec<Option<Key>>)> {
            let told = |b: &ResourceBlock| (b.address.clone(), b.repetition == Repetition::Open, b.repetition.keys());
            config.blocks.values().map(told).collect()
        };
        let is_open_alike = self.open_imports.len() == other.open_imports.len()
            && self.open_imports.iter().zip(&other.open_imports).all(|((to, one), (with, two))| to == with && one.is_any == two.is_any);
        let is_imported_alike = self.imports == other.imports && is_open_alike;
        self.places == other.places && self.open.len() == other.open.len() && keys(self) == keys(other) && is_imported_alike
    }

    /// The keys of the instances to evaluate of what stands so often. Held against any values, what stands any number of times is evaluated
    /// once, without key.
    pub(crate) fn evaluated(&self, repetition: &Repetition) -> Vec<Option<Key>> {
        if *repetition == Repetition::Open && self.any_values { vec![None] } else { repetition.keys() }
    }

    /// True if there is a block or a module of which nothing stands (`count = 0`), so that nothing in it was evaluated.
    pub fn has_absent(&self) -> bool {
        let is_none = |repetition: &Repetition| *repetition != Repetition::Open && repetition.keys().is_empty();
        let mut called = self.modules.iter().flat_map(|m| m.children.values());
        self.blocks.values().any(|b| is_none(&b.repetition)) || called.any(|c| is_none(&c.repetition))
    }

    /// True if a part of the texts did not parse, so that anything may be missing here.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// The addresses of all instances, with their keys, sorted.
    pub fn instances(&self) -> Vec<Address> {
        let keyed = |block: &ResourceBlock| -> Vec<_> { block.repetition.keys().into_iter().map(|k| block.address.with_key(k)).collect() };
        let mut all: Vec<_> = self.blocks.values().flat_map(keyed).collect();
        all.sort();
        all
    }

    /// True if an instance, or a child of it, is to be taken out of the state and left as it is.
    pub fn forgets(&self, address: &Address) -> bool {
        self.removed_by(address).is_some_and(|r| !r.destroy)
    }

    /// The `removed` block of an instance, or of a child of it: its own, or that of the innermost module that it was in.
    pub fn removed_by(&self, address: &Address) -> Option<&Removed> {
        if self.removed.is_empty() {
            return None;
        }
        let configured = address.configuration();
        let modules = (1..=configured.module.len()).rev().map(|n| Address::of_module(configured.module[..n].to_vec()));
        self.removed.get(&configured).or_else(|| modules.into_iter().find_map(|m| self.removed.get(&m)))
    }

    /// The innermost module of these that is not configured, or has no such instance; `None` if all are there.
    pub fn missing_module(&self, module: &[ModuleStep]) -> Option<Address> {
        let there = |n: &usize| self.places.contains_key(&module[..*n]);
        (1..=module.len()).find(|n| !there(n)).map(|n| Address::of_module(module[..n].to_vec()))
    }

    /// All that secret variables are, are given, and would be by default, those of modules among them: what must not stand in clear anywhere.
    pub fn secret_values(&self) -> Vec<&Value> {
        let mut all = Vec::new();
        for variable in self.variables.values().filter(|v| v.sensitive) {
            all.extend(std::iter::once(&variable.value).chain(&variable.given).chain(&variable.default));
            defaults_in(&variable.ty, &mut all);
        }
        all.extend(self.calls.values().filter_map(|call| call.unit()).flat_map(Self::secret_values));
        all
    }

    /// True if the text has the block of an instance, even where its module has no such instance.
    pub fn is_written(&self, address: &Address) -> bool {
        let inside = Address { module: Vec::new(), ..address.block() };
        self.unit_at(&address.module).is_some_and(|unit| unit.blocks.contains_key(&inside))
    }

    /// What stands in a module, whichever of its instances is meant; nothing where the text calls none.
    pub(crate) fn unit_at(&self, module: &[ModuleStep]) -> Option<&Self> {
        module.iter().try_fold(self, |unit, step| unit.calls.get(&step.name)?.unit())
    }

    /// What the block of an instance refers to in all but these attributes.
    pub fn references_without(&self, address: &Address, attributes: &[&str]) -> Vec<Reference> {
        self.block(address).map(|block| crate::load::references_without(self, block, attributes)).unwrap_or_default()
    }

    /// What an output needs first.
    pub fn output_references(&self, name: &str) -> Vec<Reference> {
        self.outputs.get(name).map(|o| o.references.clone()).unwrap_or_default()
    }

    /// The block of an instance.
    pub fn block(&self, address: &Address) -> Option<&ResourceBlock> {
        self.blocks.get(&address.block())
    }
}

/// What a type fills in where nothing is given.
fn defaults_in<'t>(ty: &'t Type, found: &mut Vec<&'t Value>) {
    match ty {
        Type::List(inner) | Type::Set(inner) | Type::Map(inner) => defaults_in(inner, found),
        Type::Tuple(parts) => parts.iter().for_each(|part| defaults_in(part, found)),
        Type::Object(attributes) => {
            for attribute in attributes.values() {
                found.extend(attribute.default.as_deref());
                defaults_in(&attribute.ty, found);
            }
        }
        Type::Any | Type::Bool | Type::Number | Type::String => {}
    }
}
