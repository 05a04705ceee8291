//! `base64gzip` and `base64gunzip`

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Crc;
use flate2::read::MultiGzDecoder;

use super::deflate::deflate;
use super::prelude::*;
use crate::budget::LONGEST_TEXT;

/// Deflated, no name, no time, no system (RFC 1952).
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

pub(super) const GZIP: Function = Function {
    name: "base64gzip",
    doc: "The bytes of a string compressed with gzip, in Base64.",
    parameters: &[Parameter::string("str")],
    body: Some(|a| {
        let data = a.text(0).as_bytes();
        let mut crc = Crc::new();
        crc.update(data);
        let bytes = [&HEADER, deflate(data).as_slice(), &crc.sum().to_le_bytes(), &crc.amount().to_le_bytes()].concat();
        Ok(string(STANDARD.encode(bytes)))
    }),
    #[cfg(test)]
    rows: &[
        ("base64gzip(\"\")", "\"H4sIAAAAAAAA/wAAAP//AQAA//8AAAAAAAAAAA==\""),
        ("base64gzip(\"a\")", "\"H4sIAAAAAAAA/0oEAAAA//8BAAD//0O+t+gBAAAA\""),
        ("base64gzip(\"hello hello hello hello\")", "\"H4sIAAAAAAAA/8pIzcnJV8AgAQAAAP//AQAA///jUT2NFwAAAA==\""),
        ("base64gzip(u.id)", "UNKNOWN string"),
    ],
    ..Function::BASE
};

pub(super) const GUNZIP: Function = Function {
    name: "base64gunzip",
    doc: "The text that was compressed with gzip and is given in Base64.",
    parameters: &[Parameter::string("str")],
    body: Some(|a| {
        let bytes = super::base64::decode(a.text(0)).ok_or_else(|| FunctionError::at(0, "is not valid Base64"))?;
        // A few bytes can stand for a great many.
        let limit = LONGEST_TEXT as u64 + 1;
        let mut text = Vec::new();
        let read = MultiGzDecoder::new(bytes.as_slice()).take(limit).read_to_end(&mut text);
        read.map_err(|_| FunctionError::at(0, "stands for bytes that gzip has not made, or not all of them"))?;
        fits(text.len())?;
        let text = String::from_utf8(text).map_err(|_| FunctionError::at(0, "stands for bytes that are no text (UTF-8)"))?;
        Ok(string(text))
    }),
    #[cfg(test)]
    rows: &[
        ("base64gunzip(\"H4sIAAAAAAAA/8pIzcnJV8AgAQAAAP//AQAA///jUT2NFwAAAA==\")", "\"hello hello hello hello\""),
        ("base64gunzip(base64gzip(\"héllo\\n\"))", "\"héllo\\n\""),
        ("base64gunzip(base64gzip(join(\" \", range(1000)))) == join(\" \", range(1000))", "true"),
        ("base64gunzip(\"aGVsbG8=\")", "ERROR that gzip has not made"),
        ("base64gunzip(\"H4sIAAAAAAAA/8pIzcnJV8AgAQ==\")", "ERROR that gzip has not made, or not all of them"),
        ("base64gunzip(\"?\")", "ERROR is not valid Base64"),
        ("base64gunzip(u.id)", "UNKNOWN string"),
    ],
    ..Function::BASE
};
