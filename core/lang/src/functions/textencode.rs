//! `textencodebase64` and `textdecodebase64`

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::prelude::*;

pub(super) const ENCODE: Function = Function {
    name: "textencodebase64",
    doc: "A string in a character encoding (UTF-8, UTF-16LE, UTF-16BE, ISO-8859-1, US-ASCII), in Base64.",
    parameters: &[Parameter::string("string"), Parameter::string("encoding")],
    body: Some(|a| {
        let text = a.text(0);
        let misfit = || FunctionError::at(0, "holds a character that this encoding does not have");
        let narrow = |limit: u32| text.chars().map(|c| u8::try_from(u32::from(c)).ok().filter(|b| u32::from(*b) < limit)).collect();
        let bytes: Vec<u8> = match encoding(a)? {
            Encoding::Utf8 => text.bytes().collect(),
            Encoding::Utf16Little => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Encoding::Utf16Big => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Encoding::Latin1 => Option::<Vec<u8>>::ok_or_else(narrow(256), misfit)?,
            Encoding::Ascii => Option::<Vec<u8>>::ok_or_else(narrow(128), misfit)?,
        };
        Ok(string(STANDARD.encode(bytes)))
    }),
    #[cfg(test)]
    rows: &[
        ("textencodebase64(\"a\",\"UTF-16LE\")", "\"YQA=\""),
        ("textencodebase64(\"é\",\"ISO-8859-1\")", "\"6Q==\""),
        ("textencodebase64(\"a\",\"utf-8\")", "\"YQ==\""),
        ("textencodebase64(\"é\",\"US-ASCII\")", "ERROR a character that this encoding does not have"),
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
        let wide = |of: fn([u8; 2]) -> u16| {
            let units: Vec<u16> = bytes.chunks_exact(2).map(|b| of([b[0], b[1]])).collect();
            (bytes.len() % 2 == 0).then(|| String::from_utf16(&units).ok()).flatten()
        };
        let text = match encoding(a)? {
            Encoding::Utf8 => String::from_utf8(bytes.clone()).ok(),
            Encoding::Utf16Little => wide(u16::from_le_bytes),
            Encoding::Utf16Big => wide(u16::from_be_bytes),
            Encoding::Latin1 => Some(bytes.iter().map(|b| char::from(*b)).collect()),
            Encoding::Ascii => bytes.is_ascii().then(|| bytes.iter().map(|b| char::from(*b)).collect()),
        };
        text.map(string).ok_or_else(|| FunctionError::at(0, "holds bytes that stand for nothing in this encoding"))
    }),
    #[cfg(test)]
    rows: &[
        ("textdecodebase64(\"YQA=\",\"UTF-16LE\")", "\"a\""),
        ("textdecodebase64(\"6Q==\",\"ISO-8859-1\")", "\"é\""),
        ("textdecodebase64(\"YQBh\\nAA==\",\"UTF-16LE\")", "\"aa\""),
        ("textdecodebase64(\"6Q==\",\"UTF-8\")", "ERROR stand for nothing"),
    ],
    ..Function::BASE
};

#[derive(Clone, Copy)]
enum Encoding {
    Utf8,
    Utf16Little,
    Utf16Big,
    Latin1,
    Ascii,
}

fn encoding(a: &Arguments<'_>) -> Result<Encoding, FunctionError> {
    Ok(match a.text(1).to_ascii_uppercase().as_str() {
        "UTF-8" => Encoding::Utf8,
        "UTF-16LE" => Encoding::Utf16Little,
        "UTF-16BE" => Encoding::Utf16Big,
        "ISO-8859-1" | "LATIN1" => Encoding::Latin1,
        "US-ASCII" => Encoding::Ascii,
        _ => return Err(FunctionError::at(1, format!("{} is not an encoding that is supported", a.quote(1)))),
    })
}
