//! The built-in functions: the list. Each has its own file, with its definition, its body and its measured results.
//!
//! Knows nothing of expressions and scopes: arguments come evaluated. What reads files does so through [`crate::Files`].

mod abs;
mod affix;
mod alltrue;
mod arguments;
mod base64;
mod bcrypt;
mod call;
mod ceil;
mod chomp;
mod chunklist;
mod cidr;
mod coalesce;
mod compact;
mod concat;
mod contains;
mod csvdecode;
mod definition;
mod deflate;
mod digests;
mod distinct;
mod element;
mod elsewhere;
mod encodings;
mod ephemeralasnull;
mod file;
mod fileset;
mod flatten;
mod floats;
mod format;
mod formatdate;
mod gzip;
mod indent;
mod index;
mod join;
mod json;
mod keys;
mod length;
mod letters;
mod log;
mod lookup;
mod matchkeys;
mod max;
mod merge;
mod numerals;
mod one;
mod parseint;
mod paths;
mod pattern;
mod pow;
mod prelude;
mod range;
mod regex;
mod replace;
mod reverse;
mod rsadecrypt;
mod secrets;
mod setproduct;
mod sets;
mod signum;
mod slice;
mod sort;
mod special;
mod split;
mod strcontains;
mod strrev;
mod substr;
mod sum;
mod textencode;
mod tfvars;
mod time;
mod timestamps;
mod to;
mod transpose;
mod trim;
mod r#type;
mod urldecode;
mod urlencode;
mod uuid;
mod verbs;
mod yamldecode;
mod yamlencode;
mod yamlprepared;
mod yamlscalars;
mod yamlwriter;
mod zipmap;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use karmaform_model::Value;

pub(crate) use arguments::{FunctionError, string, unknown_with_prefix};
pub(crate) use bcrypt::hash as bcrypt_hash;
use definition::Function;
pub use definition::{ParameterSignature, Signature};
pub(crate) use elsewhere::elsewhere;
pub use elsewhere::{ELSEWHERE, Elsewhere};

use crate::Context;

/// Calls a built-in function with evaluated arguments.
///
/// # Errors
/// If there is no such function, or the arguments don't fit it.
pub(crate) fn call(name: &str, arguments: &[Value], context: &Context) -> Result<Value, FunctionError> {
    let function = find(name).ok_or_else(|| FunctionError::new(format!("there is no function named \"{name}\"")))?;
    call::run(function, arguments, context)
}

/// What the argument of this number (from 0) is called.
pub(crate) fn parameter_name(function: &str, argument: usize) -> Option<&'static str> {
    find(function)?.parameter(argument).map(|p| p.name)
}

/// A point in time as functions write it; nothing for a clock that is far off. `seconds` since 1970-01-01 UTC.
pub(crate) fn time_text(seconds: i64) -> Option<String> {
    timestamps::Stamp::from_seconds(seconds).map(|stamp| stamp.text())
}

/// The names of all functions, sorted; special forms (`try`, `can`, `templatefile`...) included.
pub(crate) fn names() -> Vec<&'static str> {
    all().into_iter().map(|f| f.name).collect()
}

/// All functions, sorted by name, for the reference page.
pub fn all() -> Vec<Signature> {
    let mut all: Vec<Signature> = LIST.iter().map(|f| Signature::from(*f)).collect();
    all.sort_by_key(|f| f.name);
    all
}

fn find(name: &str) -> Option<&'static Function> {
    LIST.iter().find(|f| f.name == name).copied()
}

/// The list.
const LIST: &[&Function] = &[
    &abs::FUNCTION,
    &affix::STARTSWITH,
    &affix::ENDSWITH,
    &affix::TRIMPREFIX,
    &affix::TRIMSUFFIX,
    &alltrue::ALLTRUE,
    &alltrue::ANYTRUE,
    &base64::ENCODE,
    &base64::DECODE,
    &gzip::GZIP,
    &gzip::GUNZIP,
    &bcrypt::FUNCTION,
    &ceil::CEIL,
    &ceil::FLOOR,
    &chomp::FUNCTION,
    &chunklist::FUNCTION,
    &cidr::CONTAINS,
    &cidr::HOST,
    &cidr::NETMASK,
    &cidr::SUBNET,
    &cidr::SUBNETS,
    &coalesce::COALESCE,
    &coalesce::COALESCELIST,
    &compact::FUNCTION,
    &concat::FUNCTION,
    &contains::FUNCTION,
    &csvdecode::FUNCTION,
    &digests::MD5,
    &digests::SHA1,
    &digests::SHA256,
    &digests::SHA512,
    &digests::BASE64_SHA256,
    &digests::BASE64_SHA512,
    &digests::FILE_MD5,
    &digests::FILE_SHA1,
    &digests::FILE_SHA256,
    &digests::FILE_SHA512,
    &digests::FILE_BASE64_SHA256,
    &digests::FILE_BASE64_SHA512,
    &distinct::FUNCTION,
    &element::FUNCTION,
    &ephemeralasnull::EPHEMERALASNULL,
    &file::FILE,
    &file::BASE64,
    &file::EXISTS,
    &fileset::FUNCTION,
    &flatten::FUNCTION,
    &format::FORMAT,
    &format::FORMATLIST,
    &formatdate::FUNCTION,
    &indent::FUNCTION,
    &index::FUNCTION,
    &join::FUNCTION,
    &json::ENCODE,
    &json::DECODE,
    &keys::KEYS,
    &keys::VALUES,
    &length::FUNCTION,
    &letters::LOWER,
    &letters::UPPER,
    &letters::TITLE,
    &log::FUNCTION,
    &lookup::FUNCTION,
    &matchkeys::FUNCTION,
    &max::MAX,
    &max::MIN,
    &merge::FUNCTION,
    &one::FUNCTION,
    &parseint::FUNCTION,
    &paths::ABSPATH,
    &paths::BASENAME,
    &paths::DIRNAME,
    &paths::PATHEXPAND,
    &pow::FUNCTION,
    &range::FUNCTION,
    &regex::REGEX,
    &regex::REGEXALL,
    &replace::FUNCTION,
    &reverse::FUNCTION,
    &rsadecrypt::FUNCTION,
    &secrets::SENSITIVE,
    &secrets::NONSENSITIVE,
    &secrets::ISSENSITIVE,
    &setproduct::FUNCTION,
    &sets::UNION,
    &sets::INTERSECTION,
    &sets::SUBTRACT,
    &signum::FUNCTION,
    &slice::FUNCTION,
    &sort::FUNCTION,
    &special::TRY,
    &special::CAN,
    &special::TEMPLATEFILE,
    &special::TEMPLATESTRING,
    &split::FUNCTION,
    &strcontains::FUNCTION,
    &strrev::FUNCTION,
    &substr::FUNCTION,
    &sum::FUNCTION,
    &textencode::ENCODE,
    &textencode::DECODE,
    &tfvars::DECODE_TFVARS,
    &tfvars::ENCODE_EXPR,
    &tfvars::ENCODE_TFVARS,
    &time::ADD,
    &time::COMPARE,
    &time::NOW,
    &time::PLAN,
    &to::BOOL,
    &to::NUMBER,
    &to::STRING,
    &to::LIST,
    &to::SET,
    &to::MAP,
    &transpose::FUNCTION,
    &trim::TRIM,
    &trim::TRIMSPACE,
    &r#type::FUNCTION,
    &urldecode::FUNCTION,
    &urlencode::FUNCTION,
    &uuid::UUID,
    &uuid::V5,
    &yamldecode::FUNCTION,
    &yamlencode::FUNCTION,
    &zipmap::FUNCTION,
];
