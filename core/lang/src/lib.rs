//! The configuration language: HCL text to a [`Config`], and expressions to values.
//!
//! `text -> load -> Config -> Evaluator`. Everything is pure: the only door to the outside is [`Files`], time is an argument.
//! Knows nothing of: state, plans, providers' clients, terminals, the file system.

mod asked;
mod attributes;
mod blocks;
mod budget;
mod calls;
mod checks;
mod conditions;
mod config;
mod context;
mod decode;
mod describe;
mod ephemeral;
mod eval;
mod evaluator;
mod expand;
mod format;
mod functions;
mod given;
mod imports;
mod instances;
mod lifecycle;
mod load;
mod locals;
mod loops;
mod modules;
mod moment;
mod moved;
mod ops;
mod overrides;
mod policies;
mod protection;
mod references;
mod relevant;
mod removed;
mod render;
mod scope;
mod settings;
mod shown;
mod source;
mod special;
mod statics;
mod steps;
mod suggest;
mod syntax;
mod template;
mod testing;
mod traversal;
mod types;
mod validate;
mod variables;
mod version;
mod written;

pub use asked::Asked;
pub use checks::{Check, CheckSaid};
pub use conditions::{OUTPUT_PRECONDITION, PRECONDITION, Verdict};
pub use config::{
    Config, IgnoreChanges, IgnoredDrift, IgnoredPath, Lifecycle, Output, Reference, Repetition, ResourceBlock, Settings, SettingsBlock,
    Variable,
};
pub use context::{Context, Files};
pub use evaluator::{Evaluator, NothingKnown, Resolver};
pub use format::{FormatError, format};
pub use functions::{ELSEWHERE, Elsewhere, ParameterSignature, Signature, all as function_signatures};
pub use given::VariableInputs;
pub use imports::{Import, OpenImport};
pub use load::{load, load_with};
pub use modules::ModuleCall;
pub use moment::Moment;
pub use moved::{Moved, Unit};
pub use policies::Policy;
pub use protection::BEFORE as PROTECTION_BEFORE;
pub use relevant::Relevant;
pub use removed::Removed;
pub use render::{quoted, render};
pub use settings::{OTHER_BACKEND, OTHER_VERSION};
pub use source::{SourceFile, Sources};
pub use syntax::{gives_type, is_unfinished, syntax_errors};
pub use testing::{Judged, Mock, Override, Run, RunOptions, TestFile, read_tests};
pub use validate::{validate, validate_beside};
pub use variables::{MISSING_VARIABLE, VariableOrigin, given_as};
pub use version::TERRAFORM;
pub use written::{Said, Written};
