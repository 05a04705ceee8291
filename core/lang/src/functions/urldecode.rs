//! `urldecode`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "urldecode",
    doc: "The string that urlencode made this of; a plus sign becomes a space.",
    parameters: &[Parameter::string("str")],
    body: Some(|a| {
        let mut bytes = a.text(0).bytes();
        let mut out = Vec::new();
        while let Some(byte) = bytes.next() {
            out.push(match byte {
                b'+' => b' ',
                b'%' => {
                    let mut digit = || char::from(bytes.next()?).to_digit(16);
                    let value = digit().and_then(|high| Some(high * 16 + digit()?)).and_then(|value| u8::try_from(value).ok());
                    value.ok_or_else(|| FunctionError::at(0, "has a % that no two hexadecimal digits follow"))?
                }
                other => other,
            });
        }
        let text = String::from_utf8(out).map_err(|_| FunctionError::at(0, "stands for bytes that are no text (UTF-8)"))?;
        Ok(string(text))
    }),
    #[cfg(test)]
    rows: &[
        ("urldecode(\"a+b%2Fc%3F%C3%BC%2a~\")", "\"a b/c?ü*~\""),
        ("urldecode(urlencode(\"1 + 1 = 2 & é\"))", "\"1 + 1 = 2 & é\""),
        ("urldecode(\"100%\")", "ERROR no two hexadecimal digits"),
        ("urldecode(\"%g0\")", "ERROR no two hexadecimal digits"),
        ("urldecode(\"%ff\")", "ERROR no text (UTF-8)"),
        ("urldecode(u.id)", "UNKNOWN string"),
    ],
    ..Function::BASE
};
