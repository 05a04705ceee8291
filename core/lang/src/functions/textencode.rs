//! `textencodebase64` and `textdecodebase64`

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::encodings::Encoding;
use super::prelude::*;

pub(super) const ENCODE: Function = Function {
    name: "textencodebase64",
    doc: "A string in a character encoding, in Base64.",
    parameters: &[Parameter::string("string"), Parameter::string("encoding")],
    body: Some(|a| {
        let bytes = encoding(a)?.encode(a.text(0));
        let bytes = bytes.ok_or_else(|| FunctionError::at(0, "holds a character that this encoding does not have"))?;
        Ok(string(STANDARD.encode(bytes)))
    }),
    #[cfg(test)]
    rows: &[
        ("textencodebase64(\"a\",\"UTF-16LE\")", "\"YQA=\""),
        ("textencodebase64(\"é\",\"ISO-8859-1\")", "\"6Q==\""),
        ("textencodebase64(\"a\",\"utf-8\")", "\"YQ==\""),
        ("textencodebase64(\"é\",\"US-ASCII\")", "ERROR a character that this encoding does not have"),
        ("textencodebase64(\"a\",\"UTF-16\")", "\"/v8AYQ==\""),
        ("textencodebase64(\"\",\"UTF-16\")", "\"/v8=\""),
        ("textencodebase64(\"日本語～\",\"Shift_JIS\")", "\"k/qWe4zqgWA=\""),
        ("textencodebase64(\"日本\",\"ISO-2022-JP\")", "\"GyRCRnxLXBsoQg==\""),
        ("textencodebase64(\"€\",\"GB18030\")", "\"ouM=\""),
        ("textencodebase64(\"ş\\u0080\",\"latin5\")", "\"/oA=\""),
        ("textencodebase64(\"€\",\"windows-1252\")", "\"gA==\""),
        ("textencodebase64(\"é\",\"windows-1251\")", "ERROR a character that this encoding does not have"),
        ("textencodebase64(\"a\",\"UTF8\")", "ERROR \"UTF8\" is not an encoding that is supported"),
        ("textencodebase64(\"a\",\"KLINGON\")", "ERROR \"KLINGON\" is not an encoding that is supported"),
    ],
    ..Function::BASE
};

pub(super) const DECODE: Function = Function {
    name: "textdecodebase64",
    doc: "The string that bytes, given in Base64, stand for in a character encoding.",
    parameters: &[Parameter::string("source"), Parameter::string("encoding")],
    body: Some(|a| {
        let bytes = super::base64::decode(a.text(0)).ok_or_else(|| FunctionError::at(0, "is not valid Base64"))?;
        let text = encoding(a)?.decode(&bytes);
        text.map(string).ok_or_else(|| FunctionError::at(0, "holds bytes that stand for nothing in this encoding"))
    }),
    #[cfg(test)]
    rows: &[
        ("textdecodebase64(\"YQA=\",\"UTF-16LE\")", "\"a\""),
        ("textdecodebase64(\"6Q==\",\"ISO-8859-1\")", "\"é\""),
        ("textdecodebase64(\"YQBh\\nAA==\",\"UTF-16LE\")", "\"aa\""),
        ("textdecodebase64(\"//5hAA==\",\"UTF-16\")", "\"a\""),
        ("textdecodebase64(\"AGE=\",\"UTF-16\")", "\"a\""),
        ("textdecodebase64(\"xvzL3A==\",\"EUC-JP\")", "\"日本\""),
        ("textdecodebase64(\"/oA=\",\"ISO-8859-9\")", "\"ş\u{80}\""),
        ("textdecodebase64(\"77+9\",\"UTF-8\")", "ERROR stand for nothing"),
        ("textdecodebase64(\"YQ==\",\"UTF-16\")", "ERROR stand for nothing"),
        ("textdecodebase64(\"gQ==\",\"Shift_JIS\")", "ERROR stand for nothing"),
        ("textdecodebase64(\"6Q==\",\"UTF-8\")", "ERROR stand for nothing"),
    ],
    ..Function::BASE
};

fn encoding(a: &Arguments<'_>) -> Result<Encoding, FunctionError> {
    Encoding::named(a.text(1)).ok_or_else(|| FunctionError::at(1, format!("{} is not an encoding that is supported", a.quote(1))))
}
