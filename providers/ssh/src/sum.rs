//! SHA-256 sums of texts and files.

use std::io::{self, Read};

use karmaform_model::{Object, Type, Value};
use sha2::{Digest, Sha256};

/// 64 hexadecimal digits.
pub(crate) fn is_sum(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// In hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// Of what is read to its end, in pieces.
pub(crate) fn sha256_of(file: &mut impl Read) -> io::Result<String> {
    let mut sum = Sha256::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hexadecimal(&sum.finalize())),
            n => sum.update(&piece[..n]),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// `wanted` with its `sha256` told in advance from the attribute `content`. The sum of a secret is one: a short secret can be guessed by it.
pub(crate) fn plan_sum(wanted: &Object, content: &str) -> Object {
    let mut wanted = wanted.clone();
    let content = wanted.get(content);
    let sum = match content.and_then(Value::as_str) {
        Some(text) => sha256(text.as_bytes()).into(),
        None => Value::unknown(Type::String),
    };
    let sum = sum.secret_if(content.is_some_and(Value::contains_secret));
    wanted.insert("sha256".to_owned(), sum);
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_sha256sum() {
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
