//! `urlencode`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "urlencode",
    doc: "The string with all that is special in a URL's query escaped; a space becomes a plus sign.",
    parameters: &[Parameter::string("str")],
    body: Some(|a| {
        let mut out = String::new();
        for b in a.text(0).bytes() {
            match b {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(b)),
                b' ' => out.push('+'),
                _ => out.push_str(&format!("%{b:02X}")),
            }
        }
        Ok(string(out))
    }),
    #[cfg(test)]
    rows: &[("urlencode(\"a b/c?ü*~\")", "\"a+b%2Fc%3F%C3%BC%2A~\""), ("urlencode(\"\")", "\"\"")],
    ..Function::BASE
};
