//! `base64encode` and `base64decode`

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};

use super::prelude::*;

pub(super) const ENCODE: Function = Function {
    name: "base64encode",
    doc: "The bytes of a string in Base64.",
    parameters: &[Parameter::string("str")],
    body: Some(|a| Ok(string(STANDARD.encode(a.text(0))))),
    #[cfg(test)]
    rows: &[("base64encode(\"héllo\")", "\"aMOpbGxv\""), ("base64encode(\"\")", "\"\""), ("base64encode(u.id)", "UNKNOWN string")],
    ..Function::BASE
};

pub(super) const DECODE: Function = Function {
    name: "base64decode",
    doc: "The text that a Base64 string stands for.",
    parameters: &[Parameter::string("str")],
    body: Some(|a| {
        let bytes = decode(a.text(0)).ok_or_else(|| FunctionError::at(0, "is not valid Base64"))?;
        let text = String::from_utf8(bytes).map_err(|_| FunctionError::at(0, "stands for bytes that are no text (UTF-8)"))?;
        Ok(string(text))
    }),
    #[cfg(test)]
    rows: &[
        ("base64decode(\"aMOpbGxv\")", "\"héllo\""),
        ("base64decode(\"aMOp\\nbGxv\")", "\"héllo\""),
        ("base64decode(\"/w==\")", "ERROR no text (UTF-8)"),
        ("base64decode(\"YR==\")", "\"a\""),
        ("base64decode(\"YQ\")", "ERROR is not valid Base64"),
        ("base64decode(\"a\")", "ERROR is not valid Base64"),
    ],
    ..Function::BASE
};

/// The bytes that a Base64 text stands for. Line breaks may be anywhere, as in a PEM file, and bits behind the last byte don't count.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    const ENGINE: GeneralPurpose =
        GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));
    ENGINE.decode(text.replace(['\n', '\r'], "")).ok()
}
