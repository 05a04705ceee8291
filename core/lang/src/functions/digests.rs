//! `md5`, `sha1`, `sha256`, `sha512` and their variants: of a string or a file, in hexadecimal or Base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::file::read;
use super::prelude::*;

const OF_STRING: Function = Function { parameters: &[Parameter::string("str")], ..Function::BASE };
const OF_FILE: Function = Function { parameters: &[Parameter::string("path")], ..Function::BASE };

pub(super) const MD5: Function = Function {
    name: "md5",
    doc: "The MD5 digest of a string, in hexadecimal.",
    body: Some(|a| Ok(hex::<Md5>(a.text(0).as_bytes()))),
    #[cfg(test)]
    rows: &[("md5(\"a\")", "\"0cc175b9c0f1b6a831c399e269772661\""), ("md5(u.id)", "UNKNOWN string")],
    ..OF_STRING
};

pub(super) const SHA1: Function = Function {
    name: "sha1",
    doc: "The SHA-1 digest of a string, in hexadecimal.",
    body: Some(|a| Ok(hex::<Sha1>(a.text(0).as_bytes()))),
    #[cfg(test)]
    rows: &[("sha1(\"a\")", "\"86f7e437faa5a7fce15d1ddcb9eaeaea377667b8\"")],
    ..OF_STRING
};

pub(super) const SHA256: Function = Function {
    name: "sha256",
    doc: "The SHA-256 digest of a string, in hexadecimal.",
    body: Some(|a| Ok(hex::<Sha256>(a.text(0).as_bytes()))),
    #[cfg(test)]
    rows: &[("sha256(\"a\")", "\"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb\"")],
    ..OF_STRING
};

pub(super) const SHA512: Function = Function {
    name: "sha512",
    doc: "The SHA-512 digest of a string, in hexadecimal.",
    body: Some(|a| Ok(hex::<Sha512>(a.text(0).as_bytes()))),
    #[cfg(test)]
    rows: &[(
        "sha512(\"a\")",
        "\"1f40fc92da241694750979ee6cf582f2d5d7d28e18335de05abc54d0560e0f5302860c652bf08d560252aa5e74210546f369fbbbce8c12cfc7957b2652fe9a75\"",
    )],
    ..OF_STRING
};

pub(super) const BASE64_SHA256: Function = Function {
    name: "base64sha256",
    doc: "The SHA-256 digest of a string, in Base64.",
    body: Some(|a| Ok(base64::<Sha256>(a.text(0).as_bytes()))),
    #[cfg(test)]
    rows: &[("base64sha256(\"a\")", "\"ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=\"")],
    ..OF_STRING
};

pub(super) const BASE64_SHA512: Function = Function {
    name: "base64sha512",
    doc: "The SHA-512 digest of a string, in Base64.",
    body: Some(|a| Ok(base64::<Sha512>(a.text(0).as_bytes()))),
    #[cfg(test)]
    rows: &[("base64sha512(\"a\")", "\"H0D8ktokFpR1CXnubPWC8tXX0o4YM13gWrxU0FYOD1MChgxlK/CNVgJSql50IQVG82n7u86MEs/HlXsmUv6adQ==\"")],
    ..OF_STRING
};

pub(super) const FILE_MD5: Function = Function {
    name: "filemd5",
    doc: "The MD5 digest of a file, in hexadecimal.",
    body: Some(|a| Ok(hex::<Md5>(&read(a)?))),
    #[cfg(test)]
    rows: &[("filemd5(\"conf/a.conf\")", "\"0cc175b9c0f1b6a831c399e269772661\"")],
    ..OF_FILE
};

pub(super) const FILE_SHA1: Function = Function {
    name: "filesha1",
    doc: "The SHA-1 digest of a file, in hexadecimal.",
    body: Some(|a| Ok(hex::<Sha1>(&read(a)?))),
    #[cfg(test)]
    rows: &[("filesha1(\"conf/a.conf\")", "\"86f7e437faa5a7fce15d1ddcb9eaeaea377667b8\"")],
    ..OF_FILE
};

pub(super) const FILE_SHA256: Function = Function {
    name: "filesha256",
    doc: "The SHA-256 digest of a file, in hexadecimal.",
    body: Some(|a| Ok(hex::<Sha256>(&read(a)?))),
    #[cfg(test)]
    rows: &[
        ("filesha256(\"conf/a.conf\")", "\"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb\""),
        ("filesha256(\"nope\")", "ERROR \"nope\" can't be read"),
    ],
    ..OF_FILE
};

pub(super) const FILE_SHA512: Function = Function {
    name: "filesha512",
    doc: "The SHA-512 digest of a file, in hexadecimal.",
    body: Some(|a| Ok(hex::<Sha512>(&read(a)?))),
    #[cfg(test)]
    rows: &[("filesha512(\"conf/a.conf\") == sha512(\"a\")", "true")],
    ..OF_FILE
};

pub(super) const FILE_BASE64_SHA256: Function = Function {
    name: "filebase64sha256",
    doc: "The SHA-256 digest of a file, in Base64.",
    body: Some(|a| Ok(base64::<Sha256>(&read(a)?))),
    #[cfg(test)]
    rows: &[("filebase64sha256(\"conf/a.conf\")", "\"ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=\"")],
    ..OF_FILE
};

pub(super) const FILE_BASE64_SHA512: Function = Function {
    name: "filebase64sha512",
    doc: "The SHA-512 digest of a file, in Base64.",
    body: Some(|a| Ok(base64::<Sha512>(&read(a)?))),
    #[cfg(test)]
    rows: &[("filebase64sha512(\"conf/a.conf\") == base64sha512(\"a\")", "true")],
    ..OF_FILE
};

fn hex<D: Digest>(bytes: &[u8]) -> Value {
    let digest = D::digest(bytes);
    string(digest.iter().map(|b| format!("{b:02x}")).collect::<String>())
}

fn base64<D: Digest>(bytes: &[u8]) -> Value {
    string(STANDARD.encode(D::digest(bytes)))
}
